/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Forces between expansions, and the strain derivative that comes of them. */
#include "fmm/cpu/octree/operators.h"

#include "fmm/math/harmonics.h"

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
        int re, im;
        harm_signs(m, &re, &im);
        c.re = x[harm_re(p, n, a)] * (real)re;
        if (a > 0)
        {
            c.im = x[harm_im(p, n, a)] * (real)im;
        }
    }
    return c;
}

/*
 * The energy sum (-1)^k M_k^l L_k^l changes as the multipoles are displaced, by (3) and (4):
 *   d_z M_k^l = M_{k-1}^l,  (d_x - i d_y) M_k^l = -M_{k-1}^{l+1},  (d_x + i d_y) M_k^l = M_{k-1}^{l-1}.
 */
void fmm_expansion_force(int p, const vreal* m, int q, const vreal* l, vreal force[3])
{
    force[0] = force[1] = force[2] = (vreal){0};
    for (int k = 1; k <= q && k <= p + 1; k++)
    {
        for (int j = 0; j <= k; j++)
        {
            const complex_lanes local = element(q, l, k, j), mid = element(p, m, k - 1, j);
            const complex_lanes up = element(p, m, k - 1, j + 1), down = element(p, m, k - 1, j - 1);
            const real          s = (real)((k & 1 ? 1 : -1) * (j > 0 ? 2 : 1)), half = s / 2;
            /* d_x M = (down - up)/2, d_y M = -i (down + up)/2 */
            force[0] += ((down.re - up.re) * local.re - (down.im - up.im) * local.im) * half;
            force[1] += ((down.im + up.im) * local.re + (down.re + up.re) * local.im) * half;
            force[2] += (mid.re * local.re - mid.im * local.im) * s;
        }
    }
}

void fmm_sum_strain(const struct fmm_operators* ops, double scale, double* strain)
{
    for (int share = 0; share < FMM_SHARES; share++)
    {
        for (int i = 0; i < 6; i++)
        {
            strain[i] += scale * ops->partial[share][i];
        }
    }
}
