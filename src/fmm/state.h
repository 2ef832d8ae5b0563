/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The plan: four objects, each of which one file writes, the options, the message and the counts.
 *
 * An object has a version, which its file raises when it changes. Who keeps something that depends on an object keeps
 * the version that it was made for, too, and compares: there are no flags to be reset. A version is above 0.
 */
#ifndef FMM_STATE_H
#define FMM_STATE_H

#include <math.h>

#include "fmm/geometry/cells.h"
#include "fmm/geometry/shape_line.h"
#include "fmm/geometry/tree.h"
#include "fmm/gmxfmm.h"

struct fmm_cpu;
struct fmm_device;
struct fmm_treecode;
struct fmm_known_errors;
struct fmm_ranks;
struct fmm_divided;
struct fmm_treecode_ranks;

/* Space: the box, the cells that it is divided into, and which of them are near (domain.c). */
typedef struct
{
    int64_t   version;     /* of box and grid, as they were set */
    double    box[9];      /* reduced: in_basis times the caller's */
    double    given[9];    /* the caller's, in the plan's axes */
    double    in_basis[9]; /* integers */
    int       periodic[3]; /* along each box vector: all, none, the first two of a slab, or the third of a wire */
    int       separation;
    int       grid[3];    /* cells that particles may be in, along each box vector; of an octree its leaves */
    fmm_cells cells;      /* near cells; of an octree its leaves' */
    fmm_cells root_cells; /* octree: the roots' */
    fmm_tree* tree;       /* NULL: cells of one level */
    /* Versions that the cells were made for, 0 for none, and that their near set is known to be right for. A box that
     * changes takes cells with it: those made for an older version still hold the particles assigned to them. */
    int64_t cells_version, near_version;
    int64_t origin_version; /* of the corner of the first cell, where it has moved and the box has not */
} fmm_domain;

/* The plan's axes, in which a slab is open along z, and a wire periodic (frame.c). */
typedef struct
{
    int    turned;   /* whether they are not the caller's */
    int    order[3]; /* which box vector of the caller's is vector d of the plan's */
    double axes[9];  /* rows: the plan's, in the caller's */
    double height;   /* of the caller's box along z, which cells of a slab follow; 0: its open vector is in the plane */
    void*  x;        /* positions in them, in the type of the caller's arrays */
    size_t capacity; /* bytes that it has room for */
} fmm_frame;

/* Particles without their charges: how many, which pairs are excluded, in which cells they are (particles.c). */
typedef struct
{
    int64_t    version; /* of number, targets, exclusions and order: assignments on a stream raise it, too */
    int64_t    n;
    int64_t    pairs_version;  /* of number, exclusions and targets */
    int64_t    graph_version;  /* of what captured graphs have of them, and do not follow: all but such assignments */
    int64_t    cells_version;  /* of the cells that they were assigned to (fmm_domain.cells_version); 0: none */
    int64_t    origin_version; /* and of their place */
    const int* names;          /* of the particles in messages, which those who set them keep; NULL: their indices */
    int*       excl_start;     /* n + 1, or NULL */
    int*       excl_list;
    int64_t    num_targets; /* 0: the particles are the targets */
    double*    target_x;    /* 3 num_targets, of a backend that computes on the host */
    size_t     exclusion_bytes, target_bytes;
    int        assign_begun; /* GMXFMM_ASSIGN_BEGIN, without END so far */
} fmm_particles;

enum
{
    FMM_CHARGE_SETS = 1 /* that a plan has */
};

/* What charges depend on (charge_derivatives.c): of parameter k by dq[j] the charge whose potential a step leaves in
 * phi[entry[j]], j = start[k] .. start[k+1]-1. slot: of each particle the place of its potential in phi, or -1. */
typedef struct
{
    int64_t graph_version; /* of what captured graphs have of them */
    int     num;
    int *   start, *entry, *slot; /* NULL: there are none */
    double *dq, *phi;
    size_t  bytes;
} fmm_charge_derivatives;

/* Where a step is to leave the potential of particle i, or NULL. */
static inline double* fmm_kept_potential(const fmm_charge_derivatives* d, size_t i)
{
    return d->slot != NULL && d->slot[i] >= 0 ? d->phi + d->slot[i] : NULL;
}

/* Charges of the particles (charges.c). Those set on a stream are in memory of the device alone. */
typedef struct
{
    int64_t version;
    int64_t graph_version;          /* of those set by the host, which captured graphs do not follow */
    double* q;                      /* FMM_CHARGE_SETS x n, caller's order; NULL: none were set */
    double  total[FMM_CHARGE_SETS]; /* sum of q */
    double  rest[FMM_CHARGE_SETS];  /* digits of the sum behind those of total */
    size_t  bytes;
    double* mu; /* 3 n: dipoles, caller's order and axes; NULL: there are none */
    size_t  mu_bytes;
    double* width; /* n: of each charge's Gaussian, caller's order and unit; NULL: all are points */
    double  widest;
    size_t  width_bytes;
} fmm_charges;

/* What the arrays of a far field were made for. */
typedef struct
{
    int n[3], order, separation, octree;
} fmm_far_key;

/* The shape of a grid of cells, and its near set, that lattice sums are of. */
typedef struct
{
    double   cell[9];
    uint64_t near_set;     /* a checksum */
    double   far_distance; /* shortest far vector, which the ranges of Ewald's sums follow */
} fmm_far_shape;

/* The far field: its order, and the shape whose lattice sums it takes (far_field.c); the sums are a backend's. */
typedef struct
{
    int64_t        version; /* of arrays and shape: spectra belong to one */
    gmxfmm_m2l     m2l;     /* this and the next line: as asked, or chosen where options leave them open */
    int            order;
    double         predicted_error;
    int64_t        arrays; /* version that arrays were made as; 0: there are none */
    fmm_far_key    key;    /* of these arrays */
    fmm_far_shape  shape;
    fmm_shape_line line; /* of shapes whose spectra are interpolated */
} fmm_far_field;

/* Automatic settings that wait for particles, or follow them (tune_plan.c). */
typedef struct
{
    int    done;           /* depth, or cells and no octree, were chosen by counting particles: once a plan */
    double target_edge;    /* open: of a cell, as chosen; the grid follows the particles */
    double compared_cells; /* open: of one level, when that was done: with many more it is done again */
    double tree_gain;      /* cost of cells of one level over that of an octree, by the model; 0: not compared */
    double extent[3];      /* of particles and targets at assign, along open directions; 0 along others */
} fmm_tuning;

/* What particles spread evenly over these cells would have of the sum by which a step finds those that have left their
 * own (left.c). */
typedef struct
{
    int64_t cells_version; /* of the domain; 0: nothing was computed */
    int     order;
    double  even; /* of fmm_left_limits */
} fmm_spread;

/* An error that was measured, and what it was measured of (measured.c). */
typedef struct
{
    double  error, anywhere, asked; /* anywhere: where cells are elsewhere; asked: the accuracy, INFINITY: none was */
    int64_t charges_version, pairs_version; /* 0: nothing was measured */
    int     order, separation, grid[3], depth;
    int     zero_forces;     /* as of gmxfmm_info */
    double  extent[3], edge; /* fmm_tuning.extent and target_edge */
} fmm_measured;

enum
{
    FMM_ALONG_PADDING = 64 /* numbers behind each of the four arrays in room */
};

/* Near field of the two steps of gmxfmm_execute_along (along.c). The first has none; phi and field of the second one
 * are sums over pairs of charges q that go along ways u, of charges and dipoles as the step has them: THEORY (52). */
typedef struct
{
    int     second;
    double *q, *u;       /* n, 3 n: caller's unit, plan's axes */
    double *phi, *field; /* n, 3 n: results of the charges alone, caller's unit, plan's axes, without prefactor */
    void*   room;        /* for what is sorted */
} fmm_along;

struct gmxfmm_plan
{
    gmxfmm_options            options;      /* as asked */
    char*                     cache_dir;    /* what options.cache_dir points to */
    const struct fmm_backend* backend;      /* what computes: a row of backend.c */
    int                       level;        /* of x86-64 (simd_level.h) */
    int                       most_threads; /* for which there is scratch */
    int                       num_threads;  /* of these at work, for the particles as they are */
    int64_t                   expected;     /* particles, as said at create */
    struct fmm_known_errors*  known_errors; /* model/tune.h; NULL: none, else to outlive the plan */

    fmm_frame              frame;
    fmm_domain             domain;
    fmm_particles          particles;
    fmm_charges            charges;
    fmm_charge_derivatives derivatives;
    fmm_far_field          far;
    fmm_tuning             tuning;
    fmm_spread             spread;
    fmm_measured           measured;
    const fmm_along*       along; /* NULL: steps have the near field of their sources */
    int has_way;  /* while derivatives along a way are enqueued (along.c): sources have dipoles, on the device alone */
    int measures; /* FMM_NOT_MEASURED ... (model/problem.h) */

    /* of the backend, which alone knows what is in it */
    struct fmm_cpu*      cpu;
    struct fmm_device*   device;
    struct fmm_treecode* treecode; /* which uses nothing of domain and far field */

    int64_t     graph_version; /* of boxes and shares that captured graphs have not followed (plan.c) */
    size_t      bytes;
    gmxfmm_info info; /* times and counts */
    char        message[512];

    struct fmm_ranks*          ranks;          /* that share the plan, parallel/ranks.h; NULL: there is one */
    const struct fmm_ranks*    shared;         /* that compute the steps of this plan of one rank together (plan.h) */
    struct fmm_divided*        divided;        /* of the FMM's row for several (ranks/backend.c) */
    struct fmm_treecode_ranks* treecode_ranks; /* of the treecode's row for several (treecode/ranks/backend.c) */
};

static inline int fmm_has_dipoles(const gmxfmm_plan* plan)
{
    return plan->charges.mu != NULL || plan->has_way;
}

static inline int fmm_has_widths(const gmxfmm_plan* plan)
{
    return plan->charges.width != NULL && plan->charges.widest > 0;
}

/* What messages call particle i. */
static inline long long fmm_particle_name(const gmxfmm_plan* plan, int64_t i)
{
    return plan->particles.names != NULL ? plan->particles.names[i] : i;
}

/* Whether the particles are in the cells as they are now. */
static inline int fmm_is_assigned(const gmxfmm_plan* plan)
{
    const fmm_particles* p = &plan->particles;
    return p->cells_version != 0 && p->cells_version == plan->domain.cells_version &&
           p->origin_version == plan->domain.origin_version;
}

static inline int fmm_is_periodic(const gmxfmm_plan* plan)
{
    return fmm_has_images(plan->domain.periodic);
}

/* Whether it is so along all box vectors: then there is a background, THEORY (16), and the box is all there is. */
static inline int fmm_is_bulk(const gmxfmm_plan* plan)
{
    return plan->domain.periodic[0] && plan->domain.periodic[1] && plan->domain.periodic[2];
}

/* Whether cells can stay whatever particles do: those of one level of a periodic system. Where it is open, cells at its
 * edge hold particles that have left it a little, until the next gmxfmm_assign makes cells around all of them. */
static inline int fmm_has_fixed_cells(const gmxfmm_plan* plan)
{
    return plan->domain.tree == NULL && fmm_is_periodic(plan);
}

/* Whether the pairs of P2P are differences of the caller's own numbers, which have all their digits: of positions
 * relative to cells a distance loses those that the extent of the system is larger by. Not in a periodic system, where
 * images differ by vectors of the box; nor where the step has fewer digits than the caller's numbers. */
static inline int fmm_has_given(const gmxfmm_plan* plan)
{
    return !fmm_is_periodic(plan) &&
           (plan->options.precision == GMXFMM_DOUBLE || plan->options.array_type == GMXFMM_SINGLE);
}

/* What these numbers are multiplied by: a power of two, so that no digit is lost, with which the system is some 2^30
 * long. In single precision cubes of distances from 1e-12 on then are numbers, and so are the reciprocal ones of all.
 */
static inline double fmm_given_scale(const gmxfmm_plan* plan)
{
    const int* n       = plan->domain.cells.inner;
    const int  longest = n[0] > n[1] ? (n[0] > n[2] ? n[0] : n[2]) : (n[1] > n[2] ? n[1] : n[2]);
    return ldexp(1, 30 - ilogb(plan->domain.cells.edge * longest));
}

/* Whether lattice sums, and so a convolution, are part of the far field: of an open octree no root is far from another.
 */
static inline int fmm_has_lattice_sums(const gmxfmm_plan* plan)
{
    return plan->domain.tree == NULL || fmm_is_periodic(plan);
}

/* The grid that a convolution is over: the cells, or an octree's roots. */
static inline const fmm_cells* fmm_convolved(const gmxfmm_plan* plan)
{
    return plan->domain.tree == NULL ? &plan->domain.cells : &plan->domain.root_cells;
}

/* Whether leaves are of several levels. */
static inline int fmm_is_adaptive(const gmxfmm_plan* plan)
{
    return plan->domain.tree != NULL && plan->domain.tree->most > 0;
}

/* -1 without an octree. */
static inline int fmm_depth(const gmxfmm_plan* plan)
{
    return plan->domain.tree != NULL ? plan->domain.tree->depth : -1;
}

#endif
