/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Real-space part of the lattice sums: one lane is one lattice vector. */
#ifndef FMM_DOUBLE
#    define FMM_DOUBLE
#endif
#include "fmm/math/portable.h"

#define HARM_T vreal
#define HARM_R double
#include "fmm/math/harmonics.h"

#include <string.h>

#include "fmm/geometry/lattice.h"

int LEVEL(fmm_lattice_lanes)(void)
{
    return VLEN;
}

void LEVEL(fmm_real_block)(const fmm_cells* cells,
                           const fmm_ewald* ewald,
                           fmm_sum          sum,
                           int              degree,
                           const int*       columns,
                           const double*    inverse,
                           const int (*k)[3],
                           int     count,
                           double* out)
{
    const vreal zero = {0};
    vreal       r[3] = {zero, zero, zero}, weight[FMM_MAX_SUM_DEGREE + 1], re = zero, im = zero;
    vreal*      to = (vreal*)out;
    memset(weight, 0, sizeof(weight));
    for (int l = 0; l < count; l++)
    {
        double w[FMM_MAX_SUM_DEGREE + 1];
        fmm_real_weights(cells, ewald, sum, degree, k[l], w);
        for (int n = 0; n <= degree; n++)
        {
            weight[n][l] = w[n];
        }
        for (int d = 0; d < 3; d++)
        {
            r[d][l] = k[l][0] * cells->cell[d] + k[l][1] * cells->cell[3 + d] + k[l][2] * cells->cell[6 + d];
        }
    }
    const vreal r2     = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
    double      column = 1; /* (2m)! */
    re += 1;
    for (int m = 0; m < columns[1]; m++)
    {
        if (m > 0)
        {
            harm_next_diagonal(m, r[0], r[1], &re, &im);
            column *= harm_next_diagonal_factor(m);
        }
        if (m < columns[0])
        {
            continue;
        }
        const int length = degree + 1 - m, parts = m > 0 ? 2 : 1;
        memset(to, 0, (size_t)(parts * length) * sizeof(vreal));
        harm_add_column(degree, m, r[2], r2, re, im, inverse + harm_column(degree, m), to, to + length);
        double factor = column; /* (n-m)!(n+m)! */
        for (int i = 0; i < length; i++)
        {
            const vreal w = weight[m + i] * factor;
            to[i] *= w;
            if (m > 0)
            {
                to[length + i] *= w;
            }
            factor *= harm_next_degree_factor(m + i, m);
        }
        to += parts * length;
    }
}
