/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The occupied cells of an octree and their expansions, as the CPU has them: levels (levels.c), and leaves of several
 * of them (adaptive.c). Order and units are those of geometry/tree.h. */
#ifndef FMM_CPU_OCTREE_STATE_H
#define FMM_CPU_OCTREE_STATE_H

#include "fmm/geometry/tree.h"

typedef struct
{
    int num;            /* occupied cells */
    int slab[9];        /* cells slab[c] .. slab[c+1]-1 are child c of their parents; roots are all in slab 0 */
    int (*at)[3];       /* num + 1: place in the level's grid */
    int* parent;        /* num: index in the level above; NULL for roots */
    int* child;         /* (num + 1) x 8: indices in the level below; NULL for leaves */
    int* near;          /* (num + 1) x num_near: cells of this level at the near vectors */
    int (*leaves)[2];   /* leaves of several levels: the first leaf in a cell, and one past the last */
    size_t stride;      /* reals from one coefficient's array to the next; > num, a multiple of 64 bytes */
    void*  multipole;   /* num_coef x stride, in the step's precision; [coef][num] is zero */
    void*  local;       /* the same */
    size_t capacity[7]; /* bytes that the arrays above have room for */
} fmm_level;

/* Leaves of several levels. */
typedef struct
{
    int  num;
    int* level;                    /* of each leaf */
    int* cell;                     /* and its index there */
    int* by_level;                 /* leaves sorted by level */
    int  start[FMM_MAX_LEVEL + 2]; /* in by_level */
    int* near_start;               /* num + 1 */
    int (*near)[2];     /* runs of leaves near to leaf c: near_start[c] .. near_start[c + 1] - 1, its own cell first */
    size_t capacity[5]; /* bytes that the arrays have room for */
} fmm_leaves;

#endif
