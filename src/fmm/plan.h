/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The plan, and what the stages see of each other. */
#ifndef FMM_PLAN_H
#define FMM_PLAN_H

#include "fmm/clock.h"
#include "fmm/geometry/cells.h"
#include "fmm/geometry/shape_line.h"
#include "fmm/gmxfmm.h"
#include "fmm/geometry/tree.h"

struct fmm_cpu;
struct fmm_device;
struct fmm_treecode;
struct fmm_known_errors;

struct gmxfmm_plan
{
    gmxfmm_options            options;   /* as asked */
    const struct fmm_backend* backend;   /* what computes: a row of backend.c */
    int                       level;     /* of x86-64 (simd_level.h) */
    char*                     cache_dir; /* what options.cache_dir points to */
    char                      message[512];
    gmxfmm_m2l                m2l; /* this and the next line: as asked, or chosen where options leave them open */
    int                       order, separation, inner[3], periodic, num_threads;
    double                    target_edge; /* open: of a cell, as chosen; the grid follows the particles */
    double                    edge;        /* that of the last assign: longer where such cells would be too many */
    int                       tuned; /* depth, or cells and no octree, were chosen by counting particles: once a plan */
    double considered_cells;         /* open: of one level, when that was done; with many more it is done again */
    double tree_gain;                /* cost of the fft path over that of an octree, by the model; 0: not considered */
    double predicted_error;
    struct fmm_known_errors* known_errors; /* tune.h; NULL: none, else to outlive the plan */
    double                   box[9];
    fmm_cells                cells;          /* octree: the leaves' grid */
    fmm_cells                root_cells;     /* octree: the roots' */
    const fmm_cells*         convolved;      /* the grid that the convolution works on: one of these two */
    fmm_tree*                tree;           /* NULL on the fft path */
    int                      num_cells;      /* fft path: cells.num_cells, octree: occupied leaves */
    int                      geometry_valid; /* cells belongs to box */
    int            near_valid;    /* cells were deformed to those of box, and have the near set of a new assign */
    int            spectra_valid; /* spectra belong to the shape of box */
    int            virial_spectra_valid;
    double         spectra_cell[9];                       /* shape the spectra were made for */
    uint64_t       spectra_near;                          /* and near set */
    fmm_shape_line line;                                  /* of shapes whose spectra are interpolated */
    double         spectra_distance;                      /* and shortest far vector */
    int has_grid, grid_n[3], grid_order, grid_separation; /* whether arrays of a grid were made, and for what */

    int64_t expected;     /* particles, as said at create */
    double* charge;       /* num_charges, caller's order */
    double  total_charge; /* sum q */
    int*    excl_start;   /* n + 1, or NULL */
    int*    excl_list;
    int64_t graph_version;  /* gmxfmm_info */
    int     exclusions_set; /* that there are none is said to the backend, too */
    int     assigned;

    int64_t num_charges;
    int64_t num_targets;    /* 0: the charges receive */
    double* target_x;       /* 3 num_targets, of a backend that computes on the host */
    double  near_particles; /* mean number in the near set of a target; 0: not counted (before assign, on a device) */

    /* of the backend, which alone knows what is in it */
    struct fmm_cpu*      cpu;
    struct fmm_device*   device;
    struct fmm_treecode* treecode; /* which uses nothing of cells, octree and far field */

    gmxfmm_info info; /* times and counts */
    size_t      bytes, exclusion_bytes, grid_bytes, charge_bytes, target_bytes;
};

/* Writes the message of status into the plan and returns status. */
gmxfmm_status fmm_fail(gmxfmm_plan* plan, gmxfmm_status status, const char* format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;

/* Aligned memory, a multiple of FMM_ALIGN; counted in plan->bytes. NULL when there is none. */
void* fmm_alloc(gmxfmm_plan* plan, size_t bytes);

/* Whether a plan with device = CUDA may assign on a stream: on the fft path of a periodic system, whose cells do not
 * follow the particles, with the charges alone. */
static inline int fmm_enqueues_assign(const gmxfmm_plan* plan)
{
    return plan->tree == NULL && plan->periodic && plan->num_targets == 0;
}

/* Whether lattice sums, and so a convolution, are part of the far field: of an open octree no root is far from another.
 */
static inline int fmm_has_lattice_sums(const gmxfmm_plan* plan)
{
    return plan->tree == NULL || plan->periodic;
}

/* Makes *memory hold at least `bytes`, contents lost; *capacity is what it holds. Returns 0 if there is none. */
int fmm_grow(gmxfmm_plan* plan, void** memory, size_t* capacity, size_t bytes);

/* memory.c: targets copied as double precision, for a backend of the host. Errors: MEMORY. */
gmxfmm_status fmm_keep_targets(gmxfmm_plan* plan, const void* x);

/* exclusions.c: the lists and what was made of them. */
void fmm_free_exclusions(gmxfmm_plan* plan);

/* plan_tree.c: an octree without levels, for a plan that has none; whether an octree can take the box. Errors: MEMORY,
 * UNSUPPORTED. */
gmxfmm_status fmm_add_tree(gmxfmm_plan* plan);
void          fmm_tree_free(gmxfmm_plan* plan);
gmxfmm_status fmm_tree_check_box(gmxfmm_plan* plan, const double* box);

#endif
