/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tables and scratch of the octree's operators: their memory, and what depends on the order alone. */
#include "fmm/cpu/octree/octree.h"
#include "fmm/cpu/octree/operators.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HARM_T double
#define HARM_R double
#include "fmm/math/harmonics.h"
#include "fmm/math/rotation.h"
#include "fmm/cpu/octree/shift.h"

typedef struct fmm_operators operators;

static size_t whole_vectors(size_t count)
{
    return (count + VLEN - 1) / VLEN * VLEN;
}

/* Vectors of lanes that a variant of M2L works with, besides the rest of fmm_scratch. */
static size_t work_size(const gmxfmm_plan* plan, const operators* ops)
{
    const size_t coef = (size_t)ops->layout[1].row, column = 2 * (size_t)ops->order + 4;
    size_t       work = 14 * coef; /* m2m, l2l, symmetric: eight expansions, and blocks of fold.h */
    if (plan->far.m2l == GMXFMM_M2L_ROTATION)
    {
        work = work > 5 * coef ? work : 5 * coef;
    }
    else
    {
        const size_t naive = ops->theta_row + 8 * column + coef;
        work               = work > naive ? work : naive;
    }
    return work + 16 * column;
}

static size_t scratch_size(const gmxfmm_plan* plan, operators* ops)
{
    const size_t vectors = 13 * (size_t)ops->layout[1].row, lists = 2 * ((size_t)ops->longest + VLEN);
    ops->work_bytes    = work_size(plan, ops) * sizeof(vreal);
    const size_t bytes = vectors * sizeof(vreal) + ops->work_bytes + lists * sizeof(int);
    return (bytes / FMM_ALIGN + 2) * FMM_ALIGN;
}

fmm_scratch fmm_scratch_of(const operators* ops, int thread)
{
    fmm_scratch  s;
    const size_t row = (size_t)ops->layout[1].row;
    vreal*       at  = (vreal*)(void*)(ops->scratch + (size_t)thread * ops->scratch_bytes);
    for (size_t i = 0; i < 4; i++)
    {
        s.sum[i]   = at + i * row;
        s.total[i] = at + (4 + i) * row;
        s.rows[i]  = (real*)(at + (8 + i) * row);
    }
    s.in     = at + 12 * row;
    s.work   = at + 13 * row;
    s.source = (int*)(void*)((char*)s.work + ops->work_bytes);
    s.vector = s.source + ops->longest + VLEN;
    return s;
}

static void size_layout(fmm_row_layout* layout, int order)
{
    layout->order = order;
    layout->num   = harm_size(order);
    layout->row   = (int)whole_vectors((size_t)layout->num);
}

static void fill_layout(fmm_row_layout* layout, int p, int by_degree)
{
    for (int n = 0; n <= layout->order; n++)
    {
        for (int m = 0; m <= n; m++)
        {
            for (int im = 0; im <= (m > 0); im++)
            {
                const int harm    = im ? harm_im(layout->order, n, m) : harm_re(layout->order, n, m);
                const int i       = !by_degree ? harm : im ? rot_im(n, m) : rot_re(n, m);
                layout->harm[i]   = harm;
                layout->level[i]  = n > p ? -1 : im ? harm_im(p, n, m) : harm_re(p, n, m);
                layout->degree[i] = n;
            }
        }
    }
}

/* Mirror images of the vectors without negative components, table[i] being displacement first + i. */
static void fill_mirror(const int (*table)[3], int num, int first, int* mirror)
{
    for (int v = 0; v < num; v++)
    {
        for (int signs = 0; signs < 8; signs++)
        {
            const int k[3] = {signs & 4 ? -table[v][0] : table[v][0], signs & 2 ? -table[v][1] : table[v][1],
                              signs & 1 ? -table[v][2] : table[v][2]};
            int i = table[v][0] < 0 || table[v][1] < 0 || table[v][2] < 0 ? num : 0;
            while (i < num && (table[i][0] != k[0] || table[i][1] != k[1] || table[i][2] != k[2]))
            {
                i++;
            }
            mirror[8 * (first + v) + signs] = first + (i < num ? i : v);
        }
    }
}

static gmxfmm_status allocate_tables(gmxfmm_plan* plan, operators* ops)
{
    const size_t vectors = (size_t)ops->num_vectors, p2 = (size_t)ops->order + 2;
    const int    rotation = plan->far.m2l == GMXFMM_M2L_ROTATION;
    int          ok       = 1;
    ops->displacement     = fmm_alloc(plan, vectors * sizeof(*ops->displacement));
    ops->up               = fmm_alloc(plan, shift_size(ops->order) * sizeof(real));
    ops->down             = fmm_alloc(plan, shift_size(ops->order) * sizeof(real));
    ops->partial          = fmm_alloc(plan, FMM_SHARES * sizeof(*ops->partial));
    ops->scratch          = fmm_alloc(plan, ops->scratch_bytes * (size_t)plan->most_threads);
    if (rotation)
    {
        ops->direction = fmm_alloc(plan, vectors * sizeof(*ops->direction));
        ok             = ops->direction != NULL;
    }
    if (rotation || plan->options.vertical_rotation)
    {
        ops->flip_size = rot_flip_offset(ops->order + 2);
        ops->flips     = fmm_alloc(plan, 3 * (size_t)ops->flip_size * sizeof(real));
        ops->binomial  = fmm_alloc(plan, p2 * p2 * sizeof(real));
        ok             = ok && ops->flips && ops->binomial;
    }
    if (!rotation)
    {
        ops->theta  = fmm_alloc(plan, vectors * ops->theta_row * sizeof(real));
        ops->mirror = fmm_alloc(plan, 8 * vectors * sizeof(int));
        ok          = ok && ops->theta && ops->mirror;
    }
    for (int i = 0; i < 2; i++)
    {
        fmm_row_layout* layout = &ops->layout[i];
        layout->harm           = fmm_alloc(plan, 3 * (size_t)layout->num * sizeof(int));
        ok                     = ok && layout->harm != NULL;
        if (ok)
        {
            layout->level  = layout->harm + layout->num;
            layout->degree = layout->level + layout->num;
            fill_layout(layout, ops->order, rotation);
        }
    }
    ok = ok && ops->displacement && ops->up && ops->down && ops->partial && ops->scratch;
    return ok ? GMXFMM_OK : GMXFMM_ERROR_MEMORY;
}

gmxfmm_status fmm_operators_create(gmxfmm_plan* plan)
{
    const fmm_tree* tree   = plan->domain.tree;
    operators*      ops    = fmm_alloc(plan, sizeof(*ops));
    gmxfmm_status   status = ops == NULL ? GMXFMM_ERROR_MEMORY : GMXFMM_OK;
    plan->cpu->ops         = ops;
    if (status == GMXFMM_OK)
    {
        memset(ops, 0, sizeof(*ops));
        ops->order    = plan->far.order;
        ops->num_coef = harm_size(plan->far.order);
        size_layout(&ops->layout[0], plan->far.order);
        size_layout(&ops->layout[1], plan->far.order + 1);
        ops->num_vectors = tree->num_vectors + tree->num_parent_vectors;
        ops->theta_row   = whole_vectors((size_t)harm_size(2 * plan->far.order + 1));
        ops->longest     = tree->num_to_parent;
        for (int c = 0; c < 8; c++)
        {
            ops->longest = tree->num_list[c] > ops->longest ? tree->num_list[c] : ops->longest;
        }
        ops->scratch_bytes = scratch_size(plan, ops);
        status             = allocate_tables(plan, ops);
    }
    if (status != GMXFMM_OK)
    {
        fmm_operators_destroy(ops);
        plan->cpu->ops = NULL;
        return fmm_fail(plan, status, "out of memory for the operators of an octree of order %d", plan->far.order);
    }
    if (ops->flips != NULL)
    {
        fmm_rotation_tables(ops, (double*)(void*)fmm_scratch_of(ops, 0).sum[0]);
    }
    ops->rows_by_degree = plan->far.m2l == GMXFMM_M2L_ROTATION;
    if (!ops->rows_by_degree)
    {
        fill_mirror((const int(*)[3])tree->vector, tree->num_vectors, 0, ops->mirror);
        fill_mirror((const int(*)[3])tree->parent_vector, tree->num_parent_vectors, tree->num_vectors, ops->mirror);
    }
    return GMXFMM_OK;
}

void fmm_operators_destroy(operators* ops)
{
    if (ops != NULL)
    {
        free(ops->layout[0].harm);
        free(ops->layout[1].harm);
        free(ops->mirror);
        free(ops->theta);
        free(ops->direction);
        free(ops->displacement);
        free(ops->up);
        free(ops->down);
        free(ops->flips);
        free(ops->binomial);
        free(ops->rows);
        free(ops->scratch);
        free(ops->partial);
        free(ops);
    }
}

gmxfmm_status fmm_operators_reserve(gmxfmm_plan* plan)
{
    operators* ops  = plan->cpu->ops;
    size_t     most = 0;
    for (int l = 1; l <= plan->domain.tree->depth; l++)
    {
        const size_t cells = (size_t)plan->cpu->level[l].num + 1;
        most               = cells > most ? cells : most;
    }
    if (!fmm_grow(plan, (void**)&ops->rows, &ops->rows_capacity, most * (size_t)ops->layout[1].row * sizeof(real)))
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for the multipoles of %zu cells", most);
    }
    return GMXFMM_OK;
}
