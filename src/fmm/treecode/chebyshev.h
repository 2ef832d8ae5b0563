/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Barycentric Lagrange interpolation at Chebyshev points of the second kind (Berrut & Trefethen 2004; Vaughn, Wilson &
 * Krasny 2020, eqs. 4-7) on [-1, 1]: boxes are mapped there, so that a box of no extent is nothing special.
 */
#ifndef TREECODE_CHEBYSHEV_H
#define TREECODE_CHEBYSHEV_H

#include <math.h>

#include "fmm/gmxfmm.h"
#include "fmm/math/host_device.h"

enum
{
    TREECODE_MAX_DEGREE = GMXFMM_MAX_DEGREE,
    TREECODE_MAX_EDGE   = TREECODE_MAX_DEGREE + 1
};

/* s_k = cos(pi k / n), k = 0 .. n (6), antisymmetric to the last bit. */
static inline void chebyshev_points(int n, double* s)
{
    for (int k = 0; k <= n; k++)
    {
        s[k] = sin(FMM_PI * (n - 2 * k) / (2.0 * n));
    }
}

/* L_k(t), k = 0 .. n (4), by the weights (7); at a point s_k it is the unit vector (5). */
static inline FMM_HD void chebyshev_lagrange(int n, const double* s, double t, double* l)
{
    double sum = 0;
    for (int k = 0; k <= n; k++)
    {
        const double weight = (k % 2 == 0 ? 1.0 : -1.0) * (k == 0 || k == n ? 0.5 : 1.0);
        if (t == s[k])
        {
            for (int j = 0; j <= n; j++)
            {
                l[j] = j == k;
            }
            return;
        }
        l[k] = weight / (t - s[k]);
        sum += l[k];
    }
    for (int k = 0; k <= n; k++)
    {
        l[k] /= sum;
    }
}

/* l[k] = L_k'(s_j), k = 0 .. n, by the weights (7): rows add up to zero (Berrut & Trefethen 2004, section 9.3). */
static inline FMM_HD void chebyshev_differentiate(int n, const double* s, int j, double* l)
{
    const double wj  = (j % 2 == 0 ? 1.0 : -1.0) * (j == 0 || j == n ? 0.5 : 1.0);
    double       sum = 0;
    for (int k = 0; k <= n; k++)
    {
        const double wk = (k % 2 == 0 ? 1.0 : -1.0) * (k == 0 || k == n ? 0.5 : 1.0);
        l[k]            = j == k ? 0 : wk / wj / (s[j] - s[k]);
        sum += l[k];
    }
    l[j] = -sum;
}

/* out[j, a, b] = sum_k l[j][k] in[a, b, k]: after three times, all dimensions are done and in their places again. */
static inline void
chebyshev_contract(int edge, double l[TREECODE_MAX_EDGE][TREECODE_MAX_EDGE], const double* in, double* out)
{
    const int plane = edge * edge;
    for (int j = 0; j < edge; j++)
    {
        for (int ab = 0; ab < plane; ab++)
        {
            double sum = 0;
            for (int k = 0; k < edge; k++)
            {
                sum += l[j][k] * in[ab * edge + k];
            }
            out[j * plane + ab] = sum;
        }
    }
}

/* Place x in the box of that centre and half edge. */
static inline FMM_HD double chebyshev_place(double x, double centre, double half)
{
    return half > 0 ? (x - centre) / half : 0;
}

#endif
