/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A pair of Gaussian charges, THEORY (53), on vectors: what it has in place of the softened 1/r of P2P. */
#ifndef FMM_GAUSSIANS_H
#define FMM_GAUSSIANS_H

#include "fmm/cpu/near/soften.h"
#include "fmm/cpu/simd/vector_math.h"

/* b where a mask is set, and otherwise a. */
static inline vreal gaussian_choose(vinteger mask, vreal b, vreal a)
{
    return (vreal)(((vinteger)b & mask) | ((vinteger)a & ~mask));
}

/* exp(x^2) erfc(x), x from sqrt(1/2) to 6.5, in single precision to 4.5: interpolated at Chebyshev points of 1/(x + 3),
 * to 4e-17 of 1 in erfc, in single precision 2e-9. */
static inline vreal gaussian_erfc(vreal x)
{
#ifdef FMM_DOUBLE
    static const double c_of[] = {
        0.22394750231437157299,  0.19506255347779225606, 0.075277019898658559055,  0.022823461726844285242,
        0.0052097871923292078,   0.00079873597887794674, 4.886620596725881444e-05, -9.3672768282071518e-06,
        -2.1089847025117371e-06, 7.3191403342979316e-08, 6.2194723683863378e-08,   -3.1081833458866596e-10,
        -1.9638069014306525e-09, 2.8375787059360418e-11, 6.0029866454112734e-11,   -2.9710131559863584e-12};
    const double c_middle = 0.18750765064227739021, c_perHalf = 12.158868838423277321;
#else
    static const float c_of[]   = {0.259545238162F,   0.184825184769F,    0.0604676337058F, 0.0151834033773F,
                                   0.00279694503368F, 0.000330511526122F, 1.0880250162e-5F, -3.2101885897e-6F};
    const float        c_middle = 0.20154273836F, c_perHalf = 14.6607348285F;
#endif
    const int   c_terms = (int)(sizeof(c_of) / sizeof(c_of[0]));
    const vreal s       = (1 / (x + 3) - c_middle) * c_perHalf;
    vreal       sum     = (vreal){0} + c_of[c_terms - 1];
    for (int i = c_terms - 2; i >= 0; i--)
    {
        sum = sum * s + c_of[i];
    }
    return sum;
}

/* (erf(x) - 2 x / sqrt(pi) exp(-x^2)) sqrt(pi) exp(x^2) / (4 x^3) = sum_m z^m / (2 m + 3)!!, z = 2 x^2 up to 1 (DLMF
 * 7.6.2). */
static inline vreal gaussian_series(vreal z)
{
    enum
    {
        c_terms = sizeof(real) == sizeof(double) ? 14 : 8
    };
    vreal sum = {0};
    for (int m = c_terms - 1; m >= 0; m--)
    {
        sum = (sum * z + 1) * (real)(1.0 / (2 * m + 3));
    }
    return sum;
}

/* Of a pair: what is added to 1/r, and to 1/r^3 of its force. */
typedef struct
{
    vreal potential, force;
} gaussian_pair;

/* r2: square of its distance, g2: 2 (s_i^2 + s_j^2); bare: a mask for pairs that have nothing in place of the softened
 * 1/r. */
static inline gaussian_pair gaussian_differ(vreal r2, vreal g2, vreal soften2, vinteger bare)
{
    const vreal    zero = {0}, one = zero + 1, limit = zero + (real)0.5;
    const vinteger point = g2 == zero, close = r2 < soften2;
    const vreal    w = kernel_rsqrt(r2), a = kernel_rsqrt(gaussian_choose(point, one, g2)), x2 = r2 * (a * a);
    const vreal    e = kernel_exp(-x2), gauss = (real)(2 / 1.7724538509055160273) * a * e;
    const vinteger small  = x2 < limit;
    const vreal    series = gaussian_series(2 * x2);
    const vreal    erf_w  = w - e * gaussian_erfc(r2 * (w * a)) * w;
    vreal          phi    = gaussian_choose(small, gauss * (1 + 2 * x2 * series), erf_w);
    vreal          force  = gaussian_choose(small, 2 * gauss * (a * a) * series, (erf_w - gauss) * (w * w));
    phi                   = gaussian_choose(point, w, phi);
    force                 = gaussian_choose(point, w * w * w, force);
    const vreal ws        = kernel_rsqrt(gaussian_choose(close, soften2, r2)),
                v         = gaussian_choose(close, 1 - r2 / soften2, zero);
    const gaussian_pair d = {gaussian_choose(bare, zero, phi) - ws * fmm_soften_potential(v),
                             gaussian_choose(bare, zero, force) - ws * ws * ws * fmm_soften_force(v)};
    return d;
}

#endif
