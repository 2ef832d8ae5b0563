/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a treecode keeps, what its stages share, and the table of stages that a device fills. */
#ifndef TREECODE_STATE_H
#define TREECODE_STATE_H

#include "fmm/treecode/clusters.h"
#include "fmm/treecode/dual.h"
#include "fmm/treecode/lists.h"
#include "fmm/treecode/types.h"

struct treecode
{
    treecode_options options; /* as chosen, once they were */
    char             message[256];
    int64_t          n; /* sources */
    int              has_charges;
    double*          q; /* n, caller's order, where the stages keep it there */

    int                     level;                          /* of x86-64, whose sums are called (fmm/simd_level.h) */
    int                     assigned, separate;             /* separate: targets are not the sources */
    const void *            x, *y;                          /* the caller's places, while an assign lasts */
    double                  unit;                           /* length, a power of two: positions below are in it */
    double                  parameter[TREECODE_PARAMETERS]; /* in that unit */
    treecode_clusters       sources, own_targets; /* of a device: their numbers, and what stages.mirror has copied */
    treecode_lists          lists;                /* this and what follows: on the CPU */
    treecode_lists          point_lists;          /* dual traversal */
    double*                 sorted_q;             /* n, order of the sources */
    int                     uncharged;            /* whether any of them is 0 */
    double*                 charge;               /* modified charges */
    double*                 point; /* dual traversal: potentials at Chebyshev points of target clusters */
    int64_t                 num_targets;
    double*                 phi;      /* num_targets, order of the targets */
    double*                 slope[3]; /* the field, likewise */
    void*                   scratch;  /* of all threads */
    size_t                  scratch_bytes, charge_bytes;
    treecode_info           info;
    struct treecode_device* device; /* what the stages keep, if anything */

    struct treecode_ranks* ranks;      /* the same of stages for several ranks, which fill what follows (ranks/) */
    int64_t                all;        /* sources of all ranks */
    int64_t                imported;   /* particles of other ranks: in the arrays of sources behind the own ones */
    int                    num_points; /* clusters of theirs with modified charges: behind the own clusters, likewise */
    int64_t                bad_target; /* of the last COINCIDENT, in sorted order; negative: not known */
};

static inline const treecode_clusters* treecode_targets(const treecode* t)
{
    return t->separate ? &t->own_targets : &t->sources;
}

/* Errors; those of memory free what an assign has made. */
gmxfmm_status treecode_fail(treecode* t, gmxfmm_status status, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
gmxfmm_status treecode_no_memory(treecode* t);
gmxfmm_status treecode_not_finite(treecode* t, const char* what, int64_t which);
/* pair.c: the sums of target number `target` of the sorted order are not finite; negative: those of some target. */
gmxfmm_status treecode_coincident(treecode* t, int64_t target);

/* Frees what depends on where particles are. */
void treecode_free_assigned(treecode* t);

/* Whether clusters that are approximated count as wider than they are (boxes.h): those of several ranks. */
static inline int treecode_widens(const treecode* t)
{
    return t->options.ranks != NULL;
}

treecode_criterion treecode_criterion_of(const treecode* t);

/* The unit of length, and the kernel's parameters in it. */
void treecode_set_unit(treecode* t, double unit);

/* What values (field: their gradients) in the unit are multiplied by for the caller. */
double treecode_value_factor(const treecode* t, int field);

/* What a device does in its own way. Status as a call's; the message is in t. */
typedef struct treecode_stages
{
    int takes_any; /* places and results may be floats (options.floats), and on the device */

    /* What lasts as long as t, at t->device; destroy is called at any stage. Both NULL: nothing. Errors: MEMORY,
     * DEVICE. */
    gmxfmm_status (*create)(treecode* t);
    void (*destroy)(treecode* t);

    /* The finite charges q[t->n] of the host. Errors: MEMORY, DEVICE. */
    gmxfmm_status (*take_charges)(treecode* t, const double* q);
    /* The range of t->x and t->y. Errors: POSITION, naming the first that is not finite; MEMORY, DEVICE. */
    gmxfmm_status (*extent)(treecode* t, double low[3], double high[3]);
    /* Trees of t->x and t->y for options.leaf, in the unit. Errors: MEMORY, DEVICE. */
    gmxfmm_status (*trees)(treecode* t);
    /* Copies of the device's trees at t->sources and t->own_targets, the particles only if wanted; NULL: they are
     * there. Errors: MEMORY, DEVICE. */
    gmxfmm_status (*mirror)(treecode* t, int with_particles);
    /* Lists for options and trees as they are; sets info.num_batches and info.pairs_per_target. Errors: MEMORY, DEVICE.
     */
    gmxfmm_status (*lists)(treecode* t);
    /* Memory for options, trees and lists as they are. Errors: MEMORY, DEVICE, UNSUPPORTED. */
    gmxfmm_status (*reserve)(treecode* t);

    /* A step: sources from x and their boxes; modified charges; sums of all lists; results. Nothing is allocated.
     * Errors: DEVICE; gather and output: POSITION and COINCIDENT. */
    gmxfmm_status (*gather)(treecode* t, const void* x);
    gmxfmm_status (*charges)(treecode* t);
    gmxfmm_status (*all_sums)(treecode* t, int with_field);
    gmxfmm_status (*output)(treecode* t, treecode_output* output);
    /* Waits for the stages that were called; NULL: they wait themselves. Errors: DEVICE. */
    gmxfmm_status (*wait)(treecode* t);

    /* For choose.c and tests: sums of some lists of the host; and what these or all_sums gave at the targets of such
     * lists, copied to phi and slope, NULL: it is there. Errors: MEMORY, DEVICE. */
    gmxfmm_status (*sums)(treecode* t, const treecode_lists* lists, gmxfmm_precision precision, int with_field);
    gmxfmm_status (*fetch)(treecode* t, const treecode_lists* lists);
} treecode_stages;

extern const treecode_stages treecode_on_cpu; /* cpu.c */

/* treecode.c: whether options leave something to choose, and whether the next assign measures. */
int treecode_is_automatic(const treecode* t);
int treecode_measures(const treecode* t);

/* choose.c: the error of a model for random charges in a cube; sets what options leave automatic. */
double        treecode_predicted_error(double theta, int degree);
gmxfmm_status treecode_choose(treecode* t);

/* sums.c, both precisions: bytes of scratch a thread; potentials, and fields if wanted, of all targets into phi and
 * slope, in the unit. No allocation. */
size_t treecode_sums_scratch_f(const treecode* t);
size_t treecode_sums_scratch_d(const treecode* t);
void   treecode_sums_f(treecode* t, const treecode_lists* lists, int with_field);
void   treecode_sums_d(treecode* t, const treecode_lists* lists, int with_field);

#endif
