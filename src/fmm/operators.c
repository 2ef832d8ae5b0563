/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tables and scratch of the octree's operators. */
#include "operators.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HARM_T double
#define HARM_R double
#include "harmonics.h"
#include "rotation.h"
#include "shift.h"

typedef struct FN(fmm_operators) operators;

static size_t whole_vectors(size_t count)
{
    return (count + VLEN - 1) / VLEN * VLEN;
}

/* Vectors of lanes that a variant works with beyond the rest of fmm_scratch. */
static size_t work_size(const gmxfmm_plan* plan, const operators* ops)
{
    const size_t coef = (size_t)ops->row, column = 2 * (size_t)ops->order + 2;
    size_t       work = 14 * coef; /* m2m, l2l, symmetric: eight expansions, and blocks of fold.h */
    if (plan->m2l == GMXFMM_M2L_ROTATION)
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
    const size_t vectors = 4 * (size_t)ops->num_coef + 9 * (size_t)ops->row, lists = 2 * ((size_t)ops->longest + VLEN);
    ops->work_bytes    = work_size(plan, ops) * sizeof(vreal);
    const size_t bytes = vectors * sizeof(vreal) + ops->work_bytes + lists * sizeof(int);
    return (bytes / FMM_ALIGN + 2) * FMM_ALIGN;
}

FN(fmm_scratch) FN(fmm_scratch_of)(const operators* ops, int thread)
{
    FN(fmm_scratch) s;
    char* at = ops->scratch + (size_t)thread * ops->scratch_bytes;
    for (int i = 0; i < 4; i++)
    {
        s.sum[i] = (vreal*)(void*)at;
        at += (size_t)ops->num_coef * sizeof(vreal);
        s.total[i] = (vreal*)(void*)at;
        at += (size_t)ops->row * sizeof(vreal);
        s.rows[i] = (real*)(void*)at;
        at += (size_t)ops->row * sizeof(vreal);
    }
    s.in = (vreal*)(void*)at;
    at += (size_t)ops->row * sizeof(vreal);
    s.work = (vreal*)(void*)at;
    at += ops->work_bytes;
    s.source = (int*)(void*)at;
    s.vector = s.source + ops->longest + VLEN;
    return s;
}

/* Where the coefficients of a row stand in the order of harmonics.h. */
static void fill_place(const gmxfmm_plan* plan, operators* ops)
{
    const int p = ops->order;
    for (int i = 0; i < ops->num_coef; i++)
    {
        ops->place[i] = i;
    }
    for (int n = 0; n <= p && plan->m2l == GMXFMM_M2L_ROTATION; n++)
    {
        for (int m = 0; m <= n; m++)
        {
            ops->place[rot_re(n, m)] = harm_re(p, n, m);
            if (m > 0)
            {
                ops->place[rot_im(n, m)] = harm_im(p, n, m);
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
    const size_t vectors = (size_t)ops->num_vectors, p1 = (size_t)ops->order + 1;
    const int    rotation = plan->m2l == GMXFMM_M2L_ROTATION;
    int          ok       = 1;
    ops->place            = fmm_alloc(plan, (size_t)ops->num_coef * sizeof(int));
    ops->displacement     = fmm_alloc(plan, vectors * sizeof(*ops->displacement));
    ops->up               = fmm_alloc(plan, shift_size(ops->order) * sizeof(real));
    ops->down             = fmm_alloc(plan, shift_size(ops->order) * sizeof(real));
    ops->partial          = fmm_alloc(plan, FMM_SHARES * sizeof(*ops->partial));
    ops->scratch          = fmm_alloc(plan, ops->scratch_bytes * (size_t)plan->num_threads);
    if (rotation)
    {
        ops->direction = fmm_alloc(plan, vectors * sizeof(*ops->direction));
        ops->flip_size = rot_flip_offset(ops->order + 1);
        ops->flips     = fmm_alloc(plan, 3 * (size_t)ops->flip_size * sizeof(real));
        ops->binomial  = fmm_alloc(plan, p1 * p1 * sizeof(real));
        ok             = ops->direction && ops->flips && ops->binomial;
    }
    else
    {
        ops->theta  = fmm_alloc(plan, vectors * ops->theta_row * sizeof(real));
        ops->mirror = fmm_alloc(plan, 8 * vectors * sizeof(int));
        ok          = ops->theta && ops->mirror;
    }
    ok = ok && ops->place && ops->displacement && ops->up && ops->down && ops->partial && ops->scratch;
    return ok ? GMXFMM_OK : GMXFMM_ERROR_MEMORY;
}

gmxfmm_status FN(fmm_operators_create)(gmxfmm_plan* plan)
{
    const fmm_tree* tree   = plan->tree;
    operators*      ops    = fmm_alloc(plan, sizeof(*ops));
    gmxfmm_status   status = ops == NULL ? GMXFMM_ERROR_MEMORY : GMXFMM_OK;
    plan->FN(ops)          = ops;
    if (status == GMXFMM_OK)
    {
        memset(ops, 0, sizeof(*ops));
        ops->order       = plan->order;
        ops->num_coef    = harm_size(plan->order);
        ops->row         = (int)whole_vectors((size_t)ops->num_coef);
        ops->num_vectors = tree->num_vectors + tree->num_parent_vectors;
        ops->theta_row   = whole_vectors((size_t)harm_size(2 * plan->order));
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
        FN(fmm_operators_destroy)(ops);
        plan->FN(ops) = NULL;
        return fmm_fail(plan, status, "out of memory for the operators of an octree of order %d", plan->order);
    }
    fill_place(plan, ops);
    if (plan->m2l == GMXFMM_M2L_ROTATION)
    {
        ops->rows_by_degree = 1;
        FN(fmm_rotation_tables)(ops);
    }
    else
    {
        fill_mirror((const int(*)[3])tree->vector, tree->num_vectors, 0, ops->mirror);
        fill_mirror((const int(*)[3])tree->parent_vector, tree->num_parent_vectors, tree->num_vectors, ops->mirror);
    }
    return GMXFMM_OK;
}

void FN(fmm_operators_destroy)(operators* ops)
{
    if (ops != NULL)
    {
        free(ops->place);
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

gmxfmm_status FN(fmm_operators_reserve)(gmxfmm_plan* plan)
{
    operators* ops  = plan->FN(ops);
    size_t     most = 0;
    for (int l = 1; l <= plan->tree->depth; l++)
    {
        const size_t cells = (size_t)plan->tree->level[l].num + 1;
        most               = cells > most ? cells : most;
    }
    if (!fmm_grow(plan, (void**)&ops->rows, &ops->rows_capacity, most * (size_t)ops->row * sizeof(real)))
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for the multipoles of %zu cells", most);
    }
    return GMXFMM_OK;
}

/* Theta_n^m(r), n <= top, by recurrences that stay in range where (2) does not: those of THEORY (1) for Theta. */
static void fill_theta(int top, const double* r, real* theta)
{
    const double inverse2 = 1 / (r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
    const double x = r[0] * inverse2, y = r[1] * inverse2, z = r[2] * inverse2;
    double       re0 = sqrt(inverse2), im0 = 0;
    for (int m = 0; m <= top; m++)
    {
        if (m > 0)
        {
            const double t = (2 * m - 1) * (re0 * x - im0 * y);
            im0            = (2 * m - 1) * (re0 * y + im0 * x);
            re0            = t;
        }
        double re = re0, im = im0, re_below = 0, im_below = 0;
        for (int n = m; n <= top; n++)
        {
            if (n > m)
            {
                const double a = (2 * n - 1) * z, b = ((n - 1) * (n - 1) - m * m) * inverse2;
                const double re_next = a * re - b * re_below, im_next = a * im - b * im_below;
                re_below = re;
                im_below = im;
                re       = re_next;
                im       = im_next;
            }
            theta[harm_re(top, n, m)] = (real)re;
            if (m > 0)
            {
                theta[harm_im(top, n, m)] = (real)im;
            }
        }
    }
}

static FN(fmm_direction) direction_of(const double* r)
{
    FN(fmm_direction) d;
    const double rho = hypot(r[0], r[1]), length = hypot(rho, r[2]);
    memset(&d, 0, sizeof(d));
    d.cos_phi   = (real)(rho > 0 ? r[0] / rho : 1);
    d.sin_phi   = (real)(rho > 0 ? r[1] / rho : 0);
    d.cos_theta = (real)(r[2] / length);
    d.sin_theta = (real)(rho / length);
    d.inverse   = (real)(1 / length);
    return d;
}

typedef struct
{
    vreal re, im;
} complex_lanes;

/* X_n^m for any m, 0 where |m| > n. */
static complex_lanes element(int p, const vreal* x, int n, int m)
{
    const int     a = m < 0 ? -m : m;
    complex_lanes c = {{0}, {0}};
    if (a <= n)
    {
        const real sign = m < 0 && (a & 1) ? -1 : 1;
        c.re            = x[harm_re(p, n, a)] * sign;
        if (a > 0)
        {
            c.im = x[harm_im(p, n, a)] * (m < 0 ? -sign : sign);
        }
    }
    return c;
}

/*
 * The energy sum (-1)^k M_k^l L_k^l changes as the multipoles are displaced, by (3) and (4):
 *   d_z M_k^l = M_{k-1}^l,  (d_x - i d_y) M_k^l = -M_{k-1}^{l+1},  (d_x + i d_y) M_k^l = M_{k-1}^{l-1}.
 */
void FN(fmm_expansion_force)(int p, const vreal* m, const vreal* l, vreal force[3])
{
    force[0] = force[1] = force[2] = (vreal){0};
    for (int k = 1; k <= p; k++)
    {
        for (int j = 0; j <= k; j++)
        {
            const complex_lanes local = element(p, l, k, j), mid = element(p, m, k - 1, j);
            const complex_lanes up = element(p, m, k - 1, j + 1), down = element(p, m, k - 1, j - 1);
            const real          s = (real)((k & 1 ? 1 : -1) * (j > 0 ? 2 : 1)), half = s / 2;
            /* d_x M = (down - up)/2, d_y M = -i (down + up)/2 */
            force[0] += ((down.re - up.re) * local.re - (down.im - up.im) * local.im) * half;
            force[1] += ((down.im + up.im) * local.re + (down.re + up.re) * local.im) * half;
            force[2] += (mid.re * local.re - mid.im * local.im) * s;
        }
    }
}

void FN(fmm_sum_strain)(const operators* ops, double scale, double* strain)
{
    for (int share = 0; share < FMM_SHARES; share++)
    {
        for (int i = 0; i < 6; i++)
        {
            strain[i] += scale * ops->partial[share][i];
        }
    }
}

void FN(fmm_operators_set_shape)(gmxfmm_plan* plan)
{
    operators*      ops  = plan->FN(ops);
    const fmm_tree* tree = plan->tree;
    const double*   cell = plan->cells.cell;
    double          s[3];
    for (int v = 0; v < ops->num_vectors; v++)
    {
        const int    parent = v >= tree->num_vectors;
        const int*   k      = parent ? tree->parent_vector[v - tree->num_vectors] : tree->vector[v];
        const double scale  = parent ? 0.5 : 1;
        double       r[3];
        for (int d = 0; d < 3; d++)
        {
            r[d]                    = scale * (k[0] * cell[d] + k[1] * cell[3 + d] + k[2] * cell[6 + d]);
            ops->displacement[v][d] = (real)r[d];
        }
        if (ops->theta != NULL)
        {
            fill_theta(2 * ops->order, r, ops->theta + (size_t)v * ops->theta_row);
        }
        if (ops->direction != NULL)
        {
            ops->direction[v] = direction_of(r);
        }
    }
    for (int d = 0; d < 3; d++)
    {
        s[d] = 0.5 * (cell[d] + cell[3 + d] + cell[6 + d]);
    }
    FN(fmm_shift_tables)(ops->order, s, ops->up, ops->down);
}
