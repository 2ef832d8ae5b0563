/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reciprocal part of the lattice sums: one lane is one frequency of the grid. */
#ifndef FMM_DOUBLE
#    define FMM_DOUBLE
#endif
#include "fmm/math/portable.h"

#define HARM_T vreal
#define HARM_R double
#include "fmm/math/harmonics.h"

#include <math.h>
#include <string.h>

#include "fmm/geometry/lattice.h"

/* Signed frequency nearest to zero. */
static int centred(int f, int n)
{
    return 2 * f <= n ? f : f - n;
}

void LEVEL(fmm_reciprocal_block)(const fmm_cells* cells,
                                 const fmm_ewald* ewald,
                                 fmm_sum          sum,
                                 int              degree,
                                 const double*    inverse,
                                 const double*    factor,
                                 const int*       frequencies,
                                 double*          out)
{
    const double two_pi = 2 * FMM_PI;
    const int    nz     = cells->n[2] / 2 + 1;
    double       dual[9], kappa[3][VLEN];
    int          range[3];
    vreal*       acc = (vreal*)out;
    fmm_inverse(cells->cell, fmm_determinant(cells->cell), dual); /* k_e = 2 pi sum_d kappa_d dual[3 e + d] */
    memset(out, 0, (size_t)harm_size(degree) * sizeof(vreal));
    fmm_reciprocal_range(cells, ewald, range);
    for (int l = 0; l < VLEN; l++)
    {
        const int f = frequencies[l];
        kappa[2][l] = (double)centred(f % nz, cells->n[2]) / cells->n[2];
        kappa[1][l] = (double)centred(f / nz % cells->n[1], cells->n[1]) / cells->n[1];
        kappa[0][l] = (double)centred(f / nz / cells->n[1], cells->n[0]) / cells->n[0];
    }
    const int rows[3] = {2 * range[0] + 1, 2 * range[1] + 1, 2 * range[2] + 1};
    for (int t = 0; t < rows[0] * rows[1] * rows[2]; t++)
    {
        const int t0 = t / (rows[1] * rows[2]) - range[0], t1 = t / rows[2] % rows[1] - range[1],
                  t2 = t % rows[2] - range[2];
        _Alignas(FMM_ALIGN) double k[3][VLEN], weight[VLEN];
        int                        any = 0;
        for (int l = 0; l < VLEN; l++)
        {
            const double c[3] = {kappa[0][l] + t0, kappa[1][l] + t1, kappa[2][l] + t2};
            double       k2   = 0;
            for (int e = 0; e < 3; e++)
            {
                k[e][l] = two_pi * (c[0] * dual[3 * e] + c[1] * dual[3 * e + 1] + c[2] * dual[3 * e + 2]);
                k2 += k[e][l] * k[e][l];
            }
            const int inside = k2 <= ewald->k_max * ewald->k_max && (c[0] != 0 || c[1] != 0 || c[2] != 0);
            weight[l]        = inside ? fmm_reciprocal_weight(sum, k2, ewald->alpha, cells->cell_volume,
                                                              exp(-k2 / (4 * ewald->alpha * ewald->alpha)))
                                      : 0;
            any |= inside;
        }
        if (any)
        {
            harm_add_upsilon(degree, *(vreal*)k[0], *(vreal*)k[1], *(vreal*)k[2], *(vreal*)weight, inverse, acc);
        }
    }
    for (int i = 0; i < harm_size(degree); i++)
    {
        acc[i] *= factor[i];
    }
}

/* THEORY (14): (n-m)!(n+m)!/(2n-1)!! for S, .../(2n-3)!! for Z. */
void LEVEL(fmm_reciprocal_tables)(fmm_sum sum, int degree, double* inverse, double* factor)
{
    harm_fill_inverse(degree, inverse);
    double column = 1; /* (2m)! / (2m-1)!! */
    for (int m = 0; m <= degree; m++)
    {
        column *= m > 0 ? 2.0 * m : 1;
        double f = column;
        for (int n = m; n <= degree; n++)
        {
            if (n > m)
            {
                f *= (double)(n - m) * (n + m) / (2 * n - 1);
            }
            const double g                = sum == FMM_SUM_S ? f : n > 0 ? f * (2 * n - 1) : 0;
            factor[harm_re(degree, n, m)] = g;
            if (m > 0)
            {
                factor[harm_im(degree, n, m)] = g;
            }
        }
    }
}
