/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a plan keeps for the CPU. */
#ifndef FMM_CPU_STATE_H
#define FMM_CPU_STATE_H

#include "fmm/clock.h"
#include "fmm/cpu/octree/state.h"
#include "fmm/memory.h"
#include "fmm/state.h"
#include "fmm/status.h"

/* Particles in sorted order, cell by cell; arrays are padded by one vector. */
typedef struct
{
    int64_t n;
    int64_t room;               /* particles that there is memory for */
    int*    sorted;             /* sorted[s] = i, i in the caller's order */
    int*    position;           /* position[i] = s */
    int*    cell_of;            /* n: cell of particle i */
    int*    cell_start;         /* fmm_num_cells(plan) + 2: the last is the octree's empty cell */
    size_t  start_capacity;     /* bytes that cell_start has room for */
    void *  x, *y, *z, *q;      /* position relative to the cell's centre, unit u; charge (not of targets) */
    double* charge;             /* of charges, NULL for targets */
    void *  near_phi, *far_phi; /* potentials, unit 1/u */
    void *  ex, *ey, *ez;       /* field, near and far, unit 1/u^2 */
    void*   given[3];           /* where fmm_has_given: the caller's numbers, times fmm_given_scale; else NULL */
    float (*reference)[3];      /* position in the cell at assign, in cells: tells which image of a particle is meant */
    size_t bytes;               /* of all these, without the next */
    /* Of plans with dipoles. */
    double* dipole;      /* 3 n, as charge: caller's unit and axes */
    void*   mu[3];       /* their components, unit u, as of the step */
    void*   gradient[6]; /* of the field, near and far, unit 1/u^3: xx, yy, zz, xy, xz, yz */
    size_t  dipole_bytes;
} fmm_particle_set;

/* Box vectors in one number, as many bits for each direction. */
enum
{
    FMM_IMAGE_BITS = 10,
    FMM_MOST_IMAGE = (1 << (FMM_IMAGE_BITS - 1)) - 1
};

static inline unsigned fmm_pack_image(const int* k)
{
    const unsigned x = (unsigned)(k[0] + FMM_MOST_IMAGE), y = (unsigned)(k[1] + FMM_MOST_IMAGE);
    return x | y << FMM_IMAGE_BITS | (unsigned)(k[2] + FMM_MOST_IMAGE) << 2 * FMM_IMAGE_BITS;
}

/* The number of box vectors in direction d, -FMM_MOST_IMAGE to FMM_MOST_IMAGE. */
static inline int fmm_image(unsigned packed, int d)
{
    return (int)(packed >> d * FMM_IMAGE_BITS & ((1U << FMM_IMAGE_BITS) - 1)) - FMM_MOST_IMAGE;
}

enum
{
    FMM_PARTIAL = 32, /* reals a row of fmm_cpu.partial: sums over the cells of a row */
    FMM_BLOCK   = 16  /* cells that one rank has together: P2M and L2P do a vector of them at once */
};

/* What the two paths through the far field do in different ways: convolution/far.c and octree/far.c. */
typedef struct fmm_cpu_path
{
    gmxfmm_status (*create)(gmxfmm_plan* plan);    /* arrays for the grid, or the roots, and operators */
    gmxfmm_status (*set_shape)(gmxfmm_plan* plan); /* of new cells */
    gmxfmm_status (*assign)(gmxfmm_plan* plan, const void* x);
    gmxfmm_status (*reserve)(gmxfmm_plan* plan);    /* what the particles assigned need; NULL: nothing */
    void (*far)(gmxfmm_plan* plan, double* strain); /* P2M to locals; strain: NULL, or six sums of a virial */
    const void* (*locals)(const gmxfmm_plan* plan, size_t* stride); /* of the cells or leaves */
} fmm_cpu_path;

/* What near/widths.c keeps for plans with widths. */
typedef struct
{
    double    soften; /* pairs closer than this are softened in P2P, caller's unit; 0: none are */
    double    cutoff; /* of pairs, in units of sqrt(2 (s_i^2 + s_j^2)) */
    unsigned* images; /* of excluded particles, near and far, as the caller lists them, at mask_start[s] + 1 on */
    void*     memory; /* particles and targets in bins */
    size_t    capacity, images_capacity; /* bytes of these */
} fmm_widths_state;

struct fmm_convolution;
struct fmm_operators;
struct fmm_ranks;

/* What the ranks that compute a step together have of it, and what they send each other. */
typedef struct
{
    const struct fmm_ranks* ranks; /* NULL: there is one */
    int                     rank, num;
    /* Where each rank's range begins, num + 1: rows of partial sums, and so cells; planes of cells with the
     * coefficients of a group of lanes, plane by plane; columns of frequencies. */
    int *   rows, *units, *columns;
    double* room;          /* FMM_PARTIAL of each rank */
    int     failed;        /* an exchange of this step */
    int     any_far;       /* whether any rank has excluded pairs of far cells */
    int     bad_elsewhere; /* whether the positions that are bad in this step are those of others alone */
    /* Seconds in exchanges: since the last lap of a stage; of all steps of sums, of multipoles and locals, and of
     * spectra. */
    double  waited, time_sums, time_expansions, time_spectra;
    size_t  sent, received; /* bytes so far */
    int64_t messages;       /* sent so far */
} fmm_shares;

typedef struct fmm_cpu
{
    const struct fmm_cpu_path* path; /* by cells of one level, or by an octree: chosen with the grid */

    fmm_particle_set sources, targets;

    /* of an octree, for the particles assigned: octree/levels.c, octree/adaptive.c */
    fmm_level  level[FMM_MAX_LEVEL + 1]; /* up to the tree's depth */
    fmm_leaves leaves;                   /* where they are of several levels */

    /* Particles that particle s (in sorted order) excludes, in a row: those of near cells, then those of far ones. P2P
     * gathers the particles of all cells near a cell into one list; s excludes those at places mask[mask_start[s]] ..
     * mask[mask_far[s] - 1] of it, itself the first of them. mask[mask_far[s]] .. mask[mask_start[s + 1] - 1] are
     * sorted indices of far ones, whose images are of the same places (fmm_pack_image): vector from there to s is x_s -
     * x_j less so many box vectors. */
    int*      mask_start; /* n + 1 */
    int*      mask_far;   /* n */
    int*      mask;
    unsigned* images;        /* NULL without excluded pairs */
    int       any_far;       /* whether there are far ones */
    double (*far_places)[4]; /* positions in a step, and charges (near/far_pairs.c); room of assignments */
    size_t far_capacity;     /* bytes that it has room for */
    int    near_capacity;    /* largest number of particles in a near set, padded */
    int    uncharged;        /* whether any source has neither charge nor dipole */
    int    no_dipoles;       /* whether all dipoles of a plan that has some are zero */

    fmm_widths_state widths;

    void*  scratch;       /* per thread: gathered near particles, expansions of a block of cells */
    size_t scratch_bytes; /* per thread */
    /* Sums over all particles are made in rows, each of cells that follow each other, and the rows are added up in
     * their order: the same bits whatever the number of threads and of ranks. A rank has whole blocks of cells, which
     * have block_rows rows each. */
    double*    partial;
    int        partial_rows, block_rows;
    fmm_shares shares;
    double     near_particles; /* mean number in the near set of a target */

    int64_t charges_version, order_version; /* of charges and particles, that sources.charge are of */
    double  left_then, left_charge2;        /* of fmm_left, of the same; 0 where nobody looks */
    double  left_dipole;                    /* what it multiplies the square of a dipole by, caller's unit */
    size_t  exclusion_bytes, grid_bytes;    /* of what belongs to the list of excluded pairs; to the grid */

    /* of the plan's precision, whose files alone know what is in them */
    struct fmm_convolution* conv;
    struct fmm_operators*   ops; /* octree */
} fmm_cpu;

/* The particles that potentials and fields are computed at. */
static inline const fmm_particle_set* fmm_targets(const gmxfmm_plan* plan)
{
    return plan->particles.num_targets > 0 ? &plan->cpu->targets : &plan->cpu->sources;
}

/* The last level of an octree. */
static inline const fmm_level* fmm_last_level(const gmxfmm_plan* plan)
{
    return &plan->cpu->level[plan->domain.tree->depth];
}

/* Cells that there are, or occupied leaves of an octree. */
static inline int fmm_num_cells(const gmxfmm_plan* plan)
{
    return plan->domain.tree == NULL ? plan->domain.cells.num_cells
           : fmm_is_adaptive(plan)   ? plan->cpu->leaves.num
                                     : fmm_last_level(plan)->num;
}

/* First cell, or leaf, of a row of plan->cpu->partial; of the row behind the last: their number. */
static inline int fmm_row_cell(const gmxfmm_plan* plan, int row)
{
    const fmm_cpu* cpu = plan->cpu;
    const int      num = fmm_num_cells(plan), blocks = (num + FMM_BLOCK - 1) / FMM_BLOCK, each = cpu->block_rows;
    if (plan->domain.tree != NULL)
    {
        return (int)((int64_t)num * row / cpu->partial_rows);
    }
    const int cell = each > 1 ? row * (FMM_BLOCK / each) : (int)((int64_t)blocks * row / cpu->partial_rows) * FMM_BLOCK;
    return cell < num ? cell : num;
}

/* A range of items, begin .. end - 1. */
typedef struct
{
    int begin, end;
} fmm_range;

/* What a rank has, of starts of all, num + 1. */
static inline fmm_range fmm_range_of(const int* starts, int rank)
{
    return (fmm_range){starts[rank], starts[rank + 1]};
}

/* What this rank has of all num items. */
static inline fmm_range fmm_own_of(const gmxfmm_plan* plan, const int* starts, int num)
{
    return plan->cpu->shares.ranks != NULL ? fmm_range_of(starts, plan->cpu->shares.rank) : (fmm_range){0, num};
}

static inline fmm_range fmm_own_rows(const gmxfmm_plan* plan)
{
    return fmm_own_of(plan, plan->cpu->shares.rows, plan->cpu->partial_rows);
}

/* The cells of a rank. */
static inline fmm_range fmm_cells_of_rank(const gmxfmm_plan* plan, int rank)
{
    const int* rows = plan->cpu->shares.rows;
    return (fmm_range){fmm_row_cell(plan, rows[rank]), fmm_row_cell(plan, rows[rank + 1])};
}

static inline fmm_range fmm_own_cells(const gmxfmm_plan* plan)
{
    return plan->cpu->shares.ranks != NULL ? fmm_cells_of_rank(plan, plan->cpu->shares.rank)
                                           : (fmm_range){0, fmm_num_cells(plan)};
}

/* The particles, or targets, of the own cells in sorted order. */
static inline fmm_range fmm_own_particles(const gmxfmm_plan* plan, const fmm_particle_set* p)
{
    fmm_range own = {0, (int)p->n};
    if (plan->cpu->shares.ranks != NULL)
    {
        own = fmm_own_cells(plan);
        own = (fmm_range){p->cell_start[own.begin], p->cell_start[own.end]};
    }
    return own;
}

/* Place of a cell in the grid of cells, or of leaves. */
static inline void fmm_cell_place(const gmxfmm_plan* plan, int cell, int* c)
{
    const int* n = plan->domain.cells.n;
    if (plan->domain.tree != NULL)
    {
        const int* at = fmm_last_level(plan)->at[cell];
        c[0]          = at[0];
        c[1]          = at[1];
        c[2]          = at[2];
        return;
    }
    c[0] = cell / (n[1] * n[2]);
    c[1] = cell / n[2] % n[1];
    c[2] = cell % n[2];
}

/* Leaves of several levels: cells of the last level along the edge of one. */
static inline double fmm_leaf_edge(const gmxfmm_plan* plan, int leaf)
{
    return (double)(1 << (plan->domain.tree->depth - plan->cpu->leaves.level[leaf]));
}

/* Centre of a cell, or of a leaf, in cells. */
static inline void fmm_cell_centre(const gmxfmm_plan* plan, int cell, double* centre)
{
    const fmm_leaves* leaves = &plan->cpu->leaves;
    int               place[3];
    if (fmm_is_adaptive(plan))
    {
        const int* at = plan->cpu->level[leaves->level[cell]].at[leaves->cell[cell]];
        for (int d = 0; d < 3; d++)
        {
            centre[d] = (at[d] + 0.5) * fmm_leaf_edge(plan, cell);
        }
        return;
    }
    fmm_cell_place(plan, cell, place);
    for (int d = 0; d < 3; d++)
    {
        centre[d] = place[d] + 0.5;
    }
}

/* What fmm_left takes for the square of a charge in a dipole mu[3] of a leaf, `edge` cells of the last level along. */
static inline double fmm_left_dipole(const gmxfmm_plan* plan, const double* mu, double edge)
{
    return plan->cpu->left_dipole / (edge * edge) * (mu[0] * mu[0] + mu[1] * mu[1] + mu[2] * mu[2]);
}

/* Centre of a leaf of several levels, caller's unit. */
static inline void fmm_leaf_centre(const gmxfmm_plan* plan, int leaf, double* x)
{
    double centre[3];
    fmm_cell_centre(plan, leaf, centre);
    fmm_from_cells(plan->domain.cells.origin, plan->domain.cells.to_cells, centre, x);
}

/* Centre of a cell minus the place that moments are taken about, unit u: itself, or the centre of a leaf's root (in a
 * rectangular box). */
static inline void fmm_moments_offset(const gmxfmm_plan* plan, int cell, double* offset)
{
    offset[0] = offset[1] = offset[2] = 0;
    if (plan->domain.tree == NULL || fmm_is_adaptive(plan)) /* open: there is no background */
    {
        return;
    }
    const int* at = fmm_last_level(plan)->at[cell];
    for (int d = 0; d < 3; d++)
    {
        offset[d] = fmm_root_offset(at[d], 1 << plan->domain.tree->depth, plan->domain.cells.cell[4 * d]);
    }
}

/* Cell at near vector o from the cell at place c. */
static inline int fmm_near_of(const gmxfmm_plan* plan, int cell, const int* c, int o)
{
    return plan->domain.tree != NULL
               ? fmm_last_level(plan)->near[(size_t)cell * (size_t)plan->domain.tree->num_near + (size_t)o]
               : fmm_near_cell(&plan->domain.cells, c, o);
}

#endif
