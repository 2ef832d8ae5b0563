/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* P2M, the multipoles of cells from their charges and dipoles: one lane is one cell. */
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

/* Sums over the particles of cells with dipoles of q, mu_x, mu_y, mu_z times Upsilon. */
static inline void
add_to_sums(int p, vreal x, vreal y, vreal z, const real* inverse, const vreal source[4], vreal* const sum[4])
{
    const vreal r2  = x * x + y * y + z * z;
    vreal       re0 = {0}, im0 = {0};
    re0 += 1;
    for (int m = 0; m <= p; m++)
    {
        if (m > 0)
        {
            harm_next_diagonal(m, x, y, &re0, &im0);
        }
        const int   column = harm_column(p, m), half = p + 1 - m;
        const real* inv = inverse + column;
        vreal       re = re0, im = im0, re_below = {0}, im_below = {0};
        for (int i = 0; i <= p - m; i++)
        {
            if (i > 0)
            {
                const vreal a = z * ((real)(2 * (m + i) - 1) * inv[i]), b = r2 * inv[i];
                const vreal t = a * re - b * re_below, u = a * im - b * im_below;
                re_below = re;
                im_below = im;
                re       = t;
                im       = u;
            }
            for (int k = 0; k < 4; k++)
            {
                sum[k][column + i] += source[k] * re;
            }
            for (int k = 0; k < 4 && m > 0; k++)
            {
                sum[k][column + i + half] += source[k] * im;
            }
        }
    }
}

/* Adds mu . grad Upsilon of the sums for dipoles to those of charges, THEORY (50), with A = sum[k]: A_z of degree n -
 * 1,
 * -(A_x - i A_y)/2 of m + 1 there, (A_x + i A_y)/2 of m - 1. */
static void add_dipole_moments(int p, vreal* const sum[4])
{
    const vreal *x = sum[1], *y = sum[2], *z = sum[3];
    vreal*       m_of = sum[0];
    const real   h    = (real)0.5;
    for (int m = 0; m <= p; m++)
    {
        for (int n = m > 1 ? m : 1; n <= p; n++)
        {
            const int at = harm_re(p, n, m), at_im = harm_im(p, n, m);
            if (n > m)
            {
                m_of[at] += z[harm_re(p, n - 1, m)];
            }
            if (m == 0)
            {
                if (n >= 2) /* Upsilon^-1 = -conj Upsilon^1 */
                {
                    m_of[at] -= x[harm_re(p, n - 1, 1)] + y[harm_im(p, n - 1, 1)];
                }
                continue;
            }
            if (n > m)
            {
                m_of[at_im] += z[harm_im(p, n - 1, m)];
            }
            if (n - 1 >= m + 1)
            {
                const int re = harm_re(p, n - 1, m + 1), im = harm_im(p, n - 1, m + 1);
                m_of[at] -= h * (x[re] + y[im]);
                m_of[at_im] -= h * (x[im] - y[re]);
            }
            const int re = harm_re(p, n - 1, m - 1), im = harm_im(p, n - 1, m - 1);
            m_of[at] += h * x[re];
            m_of[at_im] += h * y[re];
            if (m > 1)
            {
                m_of[at] -= h * y[im];
                m_of[at_im] += h * x[im];
            }
        }
    }
}

/* As block_multipoles and leaf_multipoles, of a plan with dipoles; in scratch of four sets of coefficients. Positions
 * are in a unit of 1/unit u, and so are dipoles then. */
static void dipole_multipoles(const gmxfmm_plan* plan, const walk* w, real unit, const real* inverse, vreal* scratch)
{
    const fmm_arrays        a  = fmm_arrays_of(&plan->cpu->sources);
    const fmm_dipole_arrays of = fmm_dipole_arrays_of(&plan->cpu->sources);
    const int               p = plan->far.order, size = harm_size(p);
    vreal* const            sum[4] = {scratch, scratch + size, scratch + 2 * size, scratch + 3 * size};
    for (int i = 0; i < 4 * size; i++)
    {
        scratch[i] = (vreal){0};
    }
    for (int k = 0; k < w->most; k += VLEN)
    {
        vreal x[VLEN], y[VLEN], z[VLEN], q[VLEN], mu[3][VLEN];
        walk_load(w, a.x, k, x);
        walk_load(w, a.y, k, y);
        walk_load(w, a.z, k, z);
        walk_load(w, a.q, k, q);
        for (int d = 0; d < 3; d++)
        {
            walk_load(w, of.mu[d], k, mu[d]);
        }
        for (int i = 0; i < VLEN && k + i < w->most; i++)
        {
            /* mirrored in y, as the positions are */
            const vreal source[4] = {walk_keep(w, k + i, q[i]), walk_keep(w, k + i, mu[0][i] * unit),
                                     walk_keep(w, k + i, mu[1][i] * -unit), walk_keep(w, k + i, mu[2][i] * unit)};
            add_to_sums(p, x[i] * unit, y[i] * -unit, z[i] * unit, inverse, source, sum);
        }
    }
    add_dipole_moments(p, sum);
}

void fmm_p2m(const gmxfmm_plan* plan, real* field, size_t stride)
{
    real            inverse[c_maxCoef];
    const int       num = fmm_num_cells(plan), dipoles = fmm_has_dipoles(plan) && !plan->cpu->no_dipoles;
    const fmm_range own = fmm_own_cells(plan);
    harm_fill_inverse(plan->far.order, inverse);
#pragma omp parallel for schedule(dynamic, 4) num_threads(plan->num_threads)
    for (int first = own.begin / VLEN * VLEN; first < own.end; first += VLEN)
    {
        vreal* const m     = fmm_thread_scratch(plan);
        const int    lanes = num - first < VLEN ? num - first : VLEN;
        if (dipoles)
        {
            const walk w = walk_of(plan->cpu->sources.cell_start, first, lanes);
            dipole_multipoles(plan, &w, 1, inverse, m);
        }
        else
        {
            block_multipoles(plan, first, lanes, inverse, m);
        }
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
        const real unit  = (real)(1 / fmm_leaf_edge(plan, *leaf));
        if (fmm_has_dipoles(plan) && !plan->cpu->no_dipoles)
        {
            dipole_multipoles(plan, &w, unit, inverse, m);
        }
        else
        {
            leaf_multipoles(plan, &w, unit, inverse, m);
        }
        for (int i = 0; i < harm_size(plan->far.order); i++)
        {
            for (int l = 0; l < lanes; l++)
            {
                ((real*)to->multipole)[(size_t)i * to->stride + (size_t)leaves->cell[leaf[l]]] = m[i][l];
            }
        }
    }
}
