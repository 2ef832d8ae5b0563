/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Particles of VLEN cells side by side: one lane is one cell, and the lanes walk through their cells' particles, VLEN
 * of each at a time, which are transposed from rows to lanes and back.
 */
#ifndef FMM_WALK_H
#define FMM_WALK_H

#include "fmm/cpu/simd/lanes.h"

typedef struct
{
    int   begin[VLEN], count[VLEN], end; /* sorted places of the cells' particles, which follow each other */
    int   most;                          /* the largest count */
    vreal counts;
} walk;

/* Of cells first .. first + lanes - 1; other lanes have none. */
static inline walk walk_of(const int* cell_start, int first, int lanes)
{
    walk w = {.end = cell_start[first + lanes]};
    for (int l = 0; l < VLEN; l++)
    {
        w.begin[l]  = cell_start[l < lanes ? first + l : first];
        w.count[l]  = l < lanes ? cell_start[first + l + 1] - w.begin[l] : 0;
        w.counts[l] = (real)w.count[l];
        w.most      = w.count[l] > w.most ? w.count[l] : w.most;
    }
    return w;
}

/* Of these leaves, which may be anywhere: for walk_store_apart. */
static inline walk walk_of_leaves(const int* cell_start, const int* leaf, int lanes)
{
    walk w = {.end = 0};
    for (int l = 0; l < VLEN; l++)
    {
        const int c = leaf[l < lanes ? l : 0];
        w.begin[l]  = cell_start[c];
        w.count[l]  = l < lanes ? cell_start[c + 1] - w.begin[l] : 0;
        w.counts[l] = (real)w.count[l];
        w.most      = w.count[l] > w.most ? w.count[l] : w.most;
    }
    return w;
}

/* out[i] lane l: a of particle k + i of lane l's cell, of another one where there is none. a is padded by a vector. */
static inline void walk_load(const walk* w, const real* a, int k, vreal out[VLEN])
{
    for (int l = 0; l < VLEN; l++)
    {
        out[l] = *(const vreal_unaligned*)(a + w->begin[l] + (k < w->count[l] ? k : 0));
    }
    lanes_transpose(out);
}

/* x in lanes that have a particle k, 0 in the others. */
static inline vreal walk_keep(const walk* w, int k, vreal x)
{
    const vreal zero = {0};
    return (vreal)((vinteger)x & ((zero + (real)k) < w->counts));
}

/* The reverse of load; add: to what is there. */
static inline void walk_store(const walk* w, vreal in[VLEN], int k, int add, real* a)
{
    const real* end = a + w->end;
    vreal       place;
    for (int l = 0; l < VLEN; l++)
    {
        place[l] = (real)(k + l);
    }
    lanes_transpose(in);
    for (int l = 0; l < VLEN; l++)
    {
        real* to = a + w->begin[l] + k;
        if (w->count[l] <= k)
        {
            continue;
        }
        if (to + VLEN <= end)
        {
            /* what follows this cell is the next lane's, and left as it is */
            const vreal    zero = {0}, before = *(vreal_unaligned*)to;
            const vinteger own    = place < zero + w->counts[l];
            const vreal    after  = add ? before + in[l] : in[l] + zero;
            *(vreal_unaligned*)to = (vreal)(((vinteger)after & own) | ((vinteger)before & ~own));
            continue;
        }
        for (int i = 0; i < w->count[l] - k; i++)
        {
            to[i] = add ? to[i] + in[l][i] : in[l][i];
        }
    }
}

/* The same of cells that do not follow each other: what is beside them may be another thread's. */
static inline void walk_store_apart(const walk* w, vreal in[VLEN], int k, int add, real* a)
{
    lanes_transpose(in);
    for (int l = 0; l < VLEN; l++)
    {
        real*     to   = a + w->begin[l] + k;
        const int left = w->count[l] - k < VLEN ? w->count[l] - k : VLEN;
        for (int i = 0; i < left; i++)
        {
            to[i] = add ? to[i] + in[l][i] : in[l][i];
        }
    }
}

#endif
