/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lennard-Jones interactions of groups of atoms, each of which acts from one place.
 *
 * A group is a heavy atom with its hydrogens. Its site is the centre of its dispersion, R = sum_k w_k x_k. A pair of
 * groups has the sums of C6 and C12 over its pairs of atoms. This library computes the pairs of sites with
 *
 *   V(R) = C12 (L12(R) - S12(R)) - C6 (L6(R) - S6(R))
 *
 * L is the potential with the cut-off of the force field (`outer`). S has a shorter one, where its force is switched to
 * zero (`inner`). The caller computes the pairs of atoms up to the shorter cut-off with S. Then atoms that are close
 * interact as they are. Groups that are far from each other act from their sites. Forces are spread to atoms by the
 * weights, so that momentum is conserved and forces are derivatives of the energy. The idea of one site for a group
 * beyond a radius is that of Relative Resolution: Chaimovich, Peter & Kremer, J. Chem. Phys. 143, 243107 (2015).
 *
 * V is constant up to the start of the inner switch, if the outer modifier does not begin before it. Excluded pairs of
 * a molecule need no exception, as their sites are closer. gmxfmm_sites_constant() is that constant.
 *
 * Without an inner range V = C12 L12(R) - C6 L6(R). So a second object computes the pairs of atoms: each atom with
 * parameters is a group, `outer` is the shorter cut-off, and there are excluded pairs. These have neither force nor
 * energy at any distance. A pair closer than a hundredth of the cut-off has the V of that distance.
 *
 *   positions  x[3*i+d] in the unit of length of the cut-offs; an atom may be in any periodic image
 *   energy     sum over pairs of sites, each once
 *   virial     Xi = -1/2 sum_pairs R_ij (x) F_ij, row-major 3x3
 *
 * The calls in their order: create, then again and again one search and several steps, and destroy. Results have the
 * same bits in each run. On a GPU that need not be so for forces of atoms that overlap, closer than 0.3 of the distance
 * where their V is zero.
 */
#ifndef GMXFMM_SITES_H
#define GMXFMM_SITES_H

#include "gmxfmm.h"

typedef struct gmxfmm_sites gmxfmm_sites;

/* How a potential ends at its cut-off, as in the reference manual of GROMACS, "Modified non-bonded interactions". */
typedef enum
{
    GMXFMM_LJ_CUT = 0,         /* force and potential as they are */
    GMXFMM_LJ_POTENTIAL_SHIFT, /* potential shifted to 0 */
    GMXFMM_LJ_FORCE_SWITCH,    /* force switched to 0 from `start` on, potential shifted */
    GMXFMM_LJ_POTENTIAL_SWITCH /* potential switched to 0 from `start` on */
} gmxfmm_lj_modifier;

typedef struct
{
    gmxfmm_lj_modifier modifier;
    double             start;  /* of the switch; not used without one */
    double             cutoff; /* > start */
} gmxfmm_lj_range;

/* What does not change. Set all else to zero. Arrays are of the host, and are copied. */
typedef struct
{
    size_t           size; /* sizeof(gmxfmm_sites_system) */
    gmxfmm_device    device;
    int              device_id;    /* of device = CUDA, as the CUDA runtime counts */
    gmxfmm_precision precision;    /* of positions and forces; pairs are computed in it. CUDA: SINGLE alone */
    int              num_threads;  /* of the CPU; 0: those of OpenMP */
    int              num_periodic; /* 3, 2 (along a and b) or 0 vectors of the box */
    int              num_atoms;
    int              num_groups;
    const int* start; /* [num_groups + 1]: group g has atom[start[g]] .. atom[start[g + 1] - 1], the first of which is
                         within half a box of the others */
    const int*      atom;   /* an atom is in one group or none */
    const double*   weight; /* as many; their sum is 1 in each group */
    const int*      type;   /* [num_groups] */
    int             num_types;
    const double*   c6; /* [num_types * num_types], symmetric within 1e-6: V = c12 / r^12 - c6 / r^6 */
    const double*   c12;
    gmxfmm_lj_range outer;
    gmxfmm_lj_range inner; /* FORCE_SWITCH, with its cut-off at most that of outer; all zero: there is none */
    /* Groups that group g does not interact with: exclusion[exclusion_start[g]] .. exclusion[exclusion_start[g + 1] -
     * 1] in any order. They have g among theirs; g itself may be there. */
    const int* exclusion_start; /* [num_groups + 1]; NULL: no pairs are excluded */
    const int* exclusion;
} gmxfmm_sites_system;

typedef struct
{
    size_t  size;       /* sizeof(gmxfmm_sites_info) */
    int64_t num_pairs;  /* that a step computes, excluded ones too, each counted once for each of its sites */
    int64_t num_within; /* of these those that were within the cut-off when they were searched */
    int64_t bytes;      /* memory of the host */
    int64_t device_bytes;
} gmxfmm_sites_info;

/* Makes *sites. Errors: NULL, OPTION (names what is wrong), UNSUPPORTED (not in this build), MEMORY, DEVICE (no such
 * device). The text of an error goes to message[message_size], which may be NULL. */
GMXFMM_API gmxfmm_status gmxfmm_sites_create(gmxfmm_sites**             sites,
                                             const gmxfmm_sites_system* system,
                                             char*                      message,
                                             size_t                     message_size);

/* Chooses the groups whose forces are computed, num different ones; NULL: all, as after create. A pair gives half of
 * its energy and virial for each of its groups that is among the first num_counted of these. So ranks that divide the
 * groups add up to the whole. A search must follow. CPU alone. Errors: NULL, OPTION, UNSUPPORTED, MEMORY. */
GMXFMM_API gmxfmm_status gmxfmm_sites_set_targets(gmxfmm_sites* sites, int num, int num_counted, const int* groups);

/* Finds all pairs of sites within `reach`, at least the cut-off: steps compute these until the next search. `box` has
 * three row vectors, a lower triangle as in GROMACS; NULL without periodic vectors. x[3 num_atoms] is memory of the
 * device where sites were made for one; the call then waits for `stream` (a cudaStream_t; NULL on the CPU). Errors:
 * NULL, OPTION (reach), BOX (too small: a site would be near two images of another), POSITION, MEMORY, DEVICE. */
GMXFMM_API gmxfmm_status
gmxfmm_sites_search(gmxfmm_sites* sites, const double* box, const void* x, double reach, void* stream);

/* CPU: adds forces to f[3 num_atoms], in double precision or single as x; *energy and virial[9] are set, where they are
 * not NULL. The box is one that the search may have had, a little changed. Errors: NULL, ORDER (no search), BOX,
 * POSITION (a site is not finite), UNSUPPORTED (for a device). */
GMXFMM_API gmxfmm_status
gmxfmm_sites_execute(gmxfmm_sites* sites, const double* box, const void* x, void* f, double* energy, double* virial);

/* Device: the box of later steps, on the caller's stream. Graphs that were captured have it, too. Errors: NULL, BOX,
 * ORDER, UNSUPPORTED (CPU), DEVICE. */
GMXFMM_API gmxfmm_status gmxfmm_sites_enqueue_box(gmxfmm_sites* sites, const double* box, void* stream);

/* Device: computes forces on sites, and where `sums` is not NULL the energy and the virial, sums[10] of the device,
 * which are set. x[3 num_atoms] is memory of the device. It waits for nothing and allocates nothing; the stream may be
 * capturing a graph (gmxfmm_sites_graph_version). Errors: as gmxfmm_sites_enqueue_box. */
GMXFMM_API gmxfmm_status gmxfmm_sites_enqueue(gmxfmm_sites* sites, const void* x, double* sums, void* stream);

/* Device: adds the forces of the last gmxfmm_sites_enqueue to f[3 num_atoms]. Several objects may compute on streams of
 * their own at the same time; forces are then added on one stream that waits for the others. */
GMXFMM_API gmxfmm_status gmxfmm_sites_enqueue_forces(gmxfmm_sites* sites, void* f, void* stream);

/* As long as this is the same, a captured graph of gmxfmm_sites_enqueue does what the call would do. 0 before the first
 * search, and for NULL. */
GMXFMM_API int gmxfmm_sites_graph_version(const gmxfmm_sites* sites);

/* V of a pair of these types that is closer than both switches; NaN without an inner range. */
GMXFMM_API double gmxfmm_sites_constant(const gmxfmm_sites* sites, int type_a, int type_b);

/* Errors: NULL, OPTION (info->size). */
GMXFMM_API gmxfmm_status gmxfmm_sites_get_info(const gmxfmm_sites* sites, gmxfmm_sites_info* info);

/* Text of the last error ("" if none); valid until the next call. */
GMXFMM_API const char* gmxfmm_sites_message(const gmxfmm_sites* sites);

/* Frees all; NULL is allowed. */
GMXFMM_API void gmxfmm_sites_destroy(gmxfmm_sites* sites);

#endif
