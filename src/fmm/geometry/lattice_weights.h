/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Weights of the terms of the lattice sums (THEORY section 4), in C11 and CUDA alike; double precision always. */
#ifndef FMM_LATTICE_WEIGHTS_H
#define FMM_LATTICE_WEIGHTS_H

#include <math.h>

#include "fmm/math/host_device.h"

/* The sums S and Z of lattice.h. */
typedef enum
{
    FMM_SUM_S = 0,
    FMM_SUM_Z
} fmm_sum;

/* Q(n + 1/2, x), n = 0..top: upward, all terms positive. */
static inline FMM_HD void fmm_gamma_upper(int top, double x, double* q)
{
    double term = exp(-x) * sqrt(x / FMM_PI) * 2; /* x^(1/2) e^-x / Gamma(3/2) */
    q[0]        = erfc(sqrt(x));
    for (int n = 1; n <= top; n++)
    {
        q[n] = q[n - 1] + term;
        term *= x / (n + 0.5);
    }
}

/* P(n + 1/2, x), n = 0..top: series at the top, then downward; no cancellation however small x is. */
static inline FMM_HD void fmm_gamma_lower(int top, double x, double* p)
{
    double lead = exp(-x) * sqrt(x / FMM_PI) * 2; /* x^a e^-x / Gamma(a + 1) at a = 1/2 */
    for (int n = 1; n <= top; n++)
    {
        lead *= x / (n + 0.5);
    }
    double series = 1, term = 1;
    for (int i = 1; term > 1e-17 * series; i++)
    {
        term *= x / (top + 0.5 + i);
        series += term;
    }
    p[top] = lead * series;
    for (int n = top - 1; n >= 0; n--)
    {
        lead *= (n + 1.5) / x;
        p[n] = p[n + 1] + lead;
    }
}

/* THEORY (12), (13): weights of Upsilon_n^m, n <= degree, without (n-m)!(n+m)!, at a lattice vector of square length r2
 * (unit u^2), near or not; weight[degree + 1]. That of r2 = 0 is half of it, so that the vector and its mirror image
 * are two terms like those of all others. alpha = 0: open. */
static inline FMM_HD void fmm_vector_weights(fmm_sum sum, double alpha, int degree, int near, double r2, double* weight)
{
    const int back = sum == FMM_SUM_Z ? 1 : 0; /* Z_n goes with the gamma function of n - 1 */
    for (int n = 0; n <= degree; n++)
    {
        weight[n] = 0;
    }
    if (r2 == 0)
    {
        weight[0] = sum == FMM_SUM_S ? -alpha / sqrt(FMM_PI) : 0;
        return;
    }
    double power = 1 / sqrt(r2);
    if (alpha == 0)
    {
        power *= back ? r2 : 1;
        for (int n = 0; n <= degree && !near; n++)
        {
            weight[n] = power;
            power /= r2;
        }
        return;
    }
    near ? fmm_gamma_lower(degree - back, alpha * alpha * r2, weight + back)
         : fmm_gamma_upper(degree - back, alpha * alpha * r2, weight + back);
    for (int n = back; n <= degree; n++)
    {
        /* r^-(2n+1) for S, r^-(2n-1) for Z */
        weight[n] *= near ? -power : power;
        power /= r2;
    }
}

/* THEORY (14): weight of wave vector k^2 = k2 in the reciprocal part, per cell of the grid; gauss: e^(-k2/4 alpha^2).
 */
static inline FMM_HD double
fmm_reciprocal_weight(fmm_sum sum, double k2, double alpha, double cell_volume, double gauss)
{
    const double w = 4 * FMM_PI / (cell_volume * k2) * gauss;
    return sum == FMM_SUM_S ? w : w * 2 * (1 / k2 + 1 / (4 * alpha * alpha));
}

#endif
