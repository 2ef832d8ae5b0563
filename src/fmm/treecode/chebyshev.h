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

/* Place x in the box of that centre and half edge. */
static inline FMM_HD double chebyshev_place(double x, double centre, double half)
{
    return half > 0 ? (x - centre) / half : 0;
}

#endif
