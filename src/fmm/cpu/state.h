/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a plan keeps for the CPU. */
#ifndef FMM_CPU_STATE_H
#define FMM_CPU_STATE_H

#include "fmm/plan.h"

/* A pair left out whose cells are far from each other. */
typedef struct
{
    int i, j;      /* sorted indices */
    int offset[3]; /* cell of i minus cell of j's image, in cells */
} fmm_far_pair;

enum
{
    FMM_PARTIAL = 32 /* reals a row of fmm_cpu.partial: sums of one thread, or of one slab of cells */
};

/* What the two paths through the far field do in different ways: rows of cpu/backend.c. */
typedef struct fmm_cpu_path
{
    gmxfmm_status (*create)(gmxfmm_plan* plan);    /* arrays for the grid, or the roots, and operators */
    gmxfmm_status (*set_shape)(gmxfmm_plan* plan); /* of new cells */
    gmxfmm_status (*assign)(gmxfmm_plan* plan, const void* x);
    gmxfmm_status (*reserve)(gmxfmm_plan* plan);    /* what the particles assigned need; NULL: nothing */
    void (*far)(gmxfmm_plan* plan, double* strain); /* P2M to locals; strain: NULL, or six sums of a virial */
    const void* (*locals)(const gmxfmm_plan* plan, size_t* stride); /* of the cells or leaves */
} fmm_cpu_path;

struct fmm_convolution;
struct fmm_operators;

typedef struct fmm_cpu
{
    const struct fmm_cpu_path* path; /* by cells of one level, or by an octree: chosen with the grid */

    /* Pairs left out that are near. P2P gathers the particles of all cells near a cell into one array; particle s (in
     * sorted order) leaves out those at places mask[mask_start[s]] .. mask[mask_start[s + 1] - 1] of it, itself among
     * them. A place may stand there more than once. */
    int*          mask_start; /* n + 1 */
    int*          mask;
    fmm_far_pair* far_pairs;
    int           num_far_pairs;
    int           near_capacity; /* largest number of particles in a near set, padded */

    void*  scratch;       /* per thread: gathered near particles, expansions of a block of cells */
    size_t scratch_bytes; /* per thread */
    /* Sums over all particles are made in rows, each of a slab of cells or particles, and the rows are added up in
     * their order: the same bits whatever the number of threads. */
    double* partial;
    int     partial_rows;

    /* of the plan's precision, whose files alone know what is in them */
    struct fmm_convolution* conv;
    struct fmm_operators*   ops; /* octree */
} fmm_cpu;

#endif
