/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sites on the CPU: blocks of VLEN consecutive sites, one a lane. Of two blocks, one has a list of the other's sites
 * that are within reach of any of its own, so that a pair is computed once. Blocks are divided into domains. A domain
 * has the sites of its lists, its halo, in one array, each in the image that is near, with a sum of forces for each.
 * The division does not depend on the number of threads, and sums of domains are added in their order. So results have
 * the same bits on any number of threads, and of any targets.
 */
#ifndef FMM_SITES_CPU_H
#define FMM_SITES_CPU_H

#include "fmm/math/portable.h"
#include "fmm/sites/state.h"

/* A site of a domain's halo. */
struct sites_halo
{
    int site, image; /* image: of the domain's */
    int next;        /* the same site in another image; -1: none */
};

struct sites_image
{
    int  k[3]; /* multiples of each vector of the box */
    real shift[3];
};

/* Consecutive blocks, which one thread computes. */
struct sites_domain
{
    int                 begin, end; /* blocks */
    int*                list;       /* of places in the halo; that of a block begins at its `list` */
    struct sites_halo*  halo;       /* in the order of sites */
    struct sites_image* image;
    size_t              list_capacity, halo_capacity, image_capacity;
    size_t              num;
    int                 num_halo, num_images;
    size_t              first; /* of its halo in all */
    int64_t             pairs, within;
    int                 failed; /* out of memory */
};

/* The list of a block: first what may come within the inner cut-off, then what is beyond it, and at last what lanes
 * exclude: each with the mask of these. */
struct sites_block
{
    size_t list;
    int    num_near, num_far, num_masked, num_targets;
    int    is_computed; /* it has targets, or others in its list */
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
    SITES_COUNTED = 2,  /* a target whose pairs count for them */
    SITES_STRIDE  = 4   /* reals of a force */
};

/* Arrays have the length num, rounded up to whole blocks, where nothing else is said. */
struct sites_cpu_memory
{
    int                  num, num_blocks, num_domains;
    int*                 order;     /* groups */
    int*                 site;      /* of a group */
    int*                 is_target; /* 0, 1, or SITES_COUNTED */
    double*              near;      /* [3 num], where a group's site was when it was searched: in the box */
    sites_place*         place;
    int*                 excluded;   /* mask of the lanes of its block that exclude the site; NULL: there are none */
    char*                is_used;    /* by any target of these */
    struct sites_block*  block;      /* [num_blocks] */
    struct sites_domain* domain;     /* [num_domains] */
    real*                force;      /* [num][SITES_STRIDE] */
    int*                 halo_start; /* [num + 1]: site s is halo_of[halo_start[s]] .. of the halos of all domains */
    int*                 halo_of;
    real*                halo_force; /* [all][SITES_STRIDE] */
    sites_place*         halo_place; /* [num_threads][longest halo] */
    size_t               halo_of_capacity, halo_force_capacity, halo_place_capacity, longest_halo;
    double*              sums;       /* [num_blocks][SITES_SUMS] */
    real *               p6, *p12;   /* of lj_force.h, [num_types][num_types] */
    real*                table;      /* [num_threads][num_types][2][VLEN] */
    int*                 table_type; /* [num_threads][VLEN]: whose table that is */
    size_t               table_stride;
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
