/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sites on the CPU: blocks of VLEN consecutive sites, one a lane. A block has a list of the sites that are within reach
 * of any of its own, and computes all pairs of both. Each target has its own sum over its whole list: results depend
 * neither on the number of threads nor on which blocks are computed.
 */
#ifndef FMM_SITES_CPU_H
#define FMM_SITES_CPU_H

#include "fmm/math/portable.h"
#include "fmm/sites/state.h"

/* Places in a list whose sites are taken in one image: k of each vector of the box from their own. After num sites
 * there are num_masked pairs of a site and the mask of the lanes that exclude it. */
struct sites_run
{
    size_t place; /* in the list of its part */
    int    num, num_masked;
    int    k[3];
};

/* What one thread found: lists of consecutive blocks. */
struct sites_part
{
    int*              list; /* sites in their order */
    struct sites_run* run;
    size_t            list_capacity, run_capacity;
    size_t            num, num_runs;
    int64_t           pairs, within;
    int               failed; /* out of memory */
};

struct sites_block
{
    size_t run; /* a part's runs */
    int    num_runs, lists, num_targets;
};

/* A site as kernels read it. */
typedef struct
{
    real x[3];
    int  row; /* where its type begins in tables of VLEN reals each, p6 and p12 */
} sites_place;

enum
{
    SITES_SUMS    = 10, /* of a block: energy, virial */
    SITES_COUNTED = 2   /* a target whose pairs count for them */
};

/* Arrays have the length num, rounded up to whole blocks, where nothing else is said. */
struct sites_cpu_memory
{
    int                 num, num_blocks, num_parts;
    int*                order;     /* groups */
    int*                is_target; /* 0, 1, or SITES_COUNTED */
    double*             near;      /* [3 num], where the site was when it was searched: in the box */
    sites_place*        place;
    int*                excluded;   /* mask of the lanes of its block that exclude the site; NULL: there are none */
    char*               is_used;    /* by any target of these */
    struct sites_block* block;      /* [num_blocks] */
    struct sites_part*  lists;      /* [num_parts] */
    double*             sums;       /* [num_blocks][SITES_SUMS] */
    real *              p6, *p12;   /* of lj_force.h, [num_types][num_types] */
    real*               table;      /* [num_threads][num_types][2][VLEN] */
    int*                table_type; /* [num_threads][VLEN]: whose table that is */
    size_t              table_stride;
};

/* Orders the sites and makes the lists for pairs up to reach. R[3 num]: sites by group, finite. Errors: MEMORY. */
gmxfmm_status sites_cpu_make_lists(gmxfmm_sites* sites, const double* R, double reach);

/* Forces of all targets, added to f, and the sums of blocks, if wanted. */
void sites_cpu_pairs(gmxfmm_sites* sites, real* f, int with_sums);

/* The image of r in the box, or if there is none along a vector, r. */
static inline void sites_into_box(const gmxfmm_sites* sites, double* r)
{
    for (int i = sites->system.num_periodic - 1; i >= 0; i--)
    {
        const double k = __builtin_floor(r[i] / sites->box[4 * i]);
        for (int d = 0; d <= i; d++)
        {
            r[d] -= k * sites->box[3 * i + d];
        }
    }
}

#endif
