/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* P2M, the multipoles of cells from their charges: one lane is one cell. */
#include "fmm/math/portable.h"

#define HARM_T vreal
#define HARM_R real
#include "fmm/math/harmonics.h"

#include "fmm/cpu/expansions/expansions.h"
#include "fmm/cpu/simd/walk.h"

enum
{
    c_maxCoef = (GMXFMM_MAX_ORDER + 1) * (GMXFMM_MAX_ORDER + 1)
};

/* conj Upsilon(x, y, z) = Upsilon(x, -y, z) */
static void block_multipoles(const gmxfmm_plan* plan, int first, int lanes, const real* inverse, vreal* m)
{
    const fmm_arrays a = fmm_arrays_of(&plan->cpu->sources);
    const walk       w = walk_of(plan->cpu->sources.cell_start, first, lanes);
    for (int i = 0; i < harm_size(plan->far.order); i++)
    {
        m[i] = (vreal){0};
    }
    for (int k = 0; k < w.most; k += VLEN)
    {
        vreal x[VLEN], y[VLEN], z[VLEN], q[VLEN];
        walk_load(&w, a.x, k, x);
        walk_load(&w, a.y, k, y);
        walk_load(&w, a.z, k, z);
        walk_load(&w, a.q, k, q);
        for (int i = 0; i < VLEN && k + i < w.most; i++)
        {
            harm_add_upsilon(plan->far.order, x[i], -y[i], z[i], walk_keep(&w, k + i, q[i]), inverse, m);
        }
    }
}

void fmm_p2m(const gmxfmm_plan* plan, real* field, size_t stride)
{
    real            inverse[c_maxCoef];
    const int       num = fmm_num_cells(plan);
    const fmm_range own = fmm_own_cells(plan);
    harm_fill_inverse(plan->far.order, inverse);
#pragma omp parallel for schedule(dynamic, 4) num_threads(plan->num_threads)
    for (int first = own.begin / VLEN * VLEN; first < own.end; first += VLEN)
    {
        vreal* const m = fmm_thread_scratch(plan);
        block_multipoles(plan, first, num - first < VLEN ? num - first : VLEN, inverse, m);
        for (int i = 0; i < harm_size(plan->far.order); i++)
        {
            *(vreal*)(field + (size_t)i * stride + first) = m[i];
        }
    }
}

/* The same of positions in another unit. */
static void leaf_multipoles(const gmxfmm_plan* plan, const walk* w, real unit, const real* inverse, vreal* m)
{
    const fmm_arrays a = fmm_arrays_of(&plan->cpu->sources);
    for (int i = 0; i < harm_size(plan->far.order); i++)
    {
        m[i] = (vreal){0};
    }
    for (int k = 0; k < w->most; k += VLEN)
    {
        vreal x[VLEN], y[VLEN], z[VLEN], q[VLEN];
        walk_load(w, a.x, k, x);
        walk_load(w, a.y, k, y);
        walk_load(w, a.z, k, z);
        walk_load(w, a.q, k, q);
        for (int i = 0; i < VLEN && k + i < w->most; i++)
        {
            harm_add_upsilon(plan->far.order, x[i] * unit, y[i] * -unit, z[i] * unit, walk_keep(w, k + i, q[i]),
                             inverse, m);
        }
    }
}

void fmm_p2m_leaves(const gmxfmm_plan* plan, int level)
{
    real              inverse[c_maxCoef];
    const fmm_leaves* leaves = &plan->cpu->leaves;
    const fmm_level*  to     = &plan->cpu->level[level];
    const int         begin = leaves->start[level], end = leaves->start[level + 1];
    harm_fill_inverse(plan->far.order, inverse);
#pragma omp parallel for schedule(dynamic, 4) num_threads(plan->num_threads)
    for (int first = begin; first < end; first += VLEN)
    {
        vreal*     m     = fmm_thread_scratch(plan);
        const int  lanes = end - first < VLEN ? end - first : VLEN;
        const int* leaf  = leaves->by_level + first;
        const walk w     = walk_of_leaves(plan->cpu->sources.cell_start, leaf, lanes);
        leaf_multipoles(plan, &w, (real)(1 / fmm_leaf_edge(plan, *leaf)), inverse, m);
        for (int i = 0; i < harm_size(plan->far.order); i++)
        {
            for (int l = 0; l < lanes; l++)
            {
                ((real*)to->multipole)[(size_t)i * to->stride + (size_t)leaves->cell[leaf[l]]] = m[i][l];
            }
        }
    }
}
