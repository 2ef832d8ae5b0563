/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reciprocal square roots of a vector: the processor's estimate where there is one, for compilers do not make 1/sqrt of
 * vectors into it. Excluded lanes are zero, also where the distance is zero.
 *
 * With the estimate y and e = x y^2, which is near 1, Newton's step for 1/sqrt(x) is y (3 - e) / 2, and that for
 * x^(-3/2) is y^3 (5 - 3 e) / 2; with an error of d in y, they leave 3/2 d^2 and 15/2 d^2.
 */
#ifndef FMM_RSQRT_H
#define FMM_RSQRT_H

#include <math.h>

#include "fmm/math/portable.h"

#if defined(__AVX512F__) || (defined(__AVX__) && !defined(FMM_DOUBLE))
#    include <immintrin.h>
#endif

/* A bit for each lane, that of lane 0 lowest: whether it is kept. */
typedef unsigned short fmm_lanes;

/* 1/sqrt(x), where there is no estimate. */
static inline vreal fmm_rsqrt_each(vreal x)
{
    vreal y = x;
    for (int l = 0; l < VLEN; l++)
    {
#ifdef FMM_DOUBLE
        y[l] = 1 / sqrt(x[l]);
#else
        y[l] = 1 / sqrtf(x[l]);
#endif
    }
    return y;
}

#ifndef __AVX512F__
/* x in the lanes that are kept, 0 in the others, whatever x is there. */
static inline vreal fmm_keep_lanes(vreal x, fmm_lanes kept)
{
    const vinteger zero = {0};
    vinteger       bit;
    for (int l = 0; l < VLEN; l++)
    {
        bit[l] = (lane_integer)1 << l;
    }
    return (vreal)((vinteger)x & (((zero + (lane_integer)kept) & bit) != 0));
}
#endif

/* 1/sqrt(x), approximately, in lanes that are kept, 0 in the others. */
static inline vreal fmm_rsqrt_estimate(vreal x, fmm_lanes kept)
{
#if defined(__AVX512F__) && defined(FMM_DOUBLE)
    const vreal y = _mm512_maskz_rsqrt14_pd((__mmask8)kept, x); /* 2^-14 -> 2^-28 */
    return y * (1.5 - 0.5 * x * y * y);
#elif defined(__AVX512F__)
    return _mm512_maskz_rsqrt14_ps(kept, x); /* 2^-14 */
#elif defined(__AVX__) && !defined(FMM_DOUBLE)
    return fmm_keep_lanes(_mm256_rsqrt_ps(x), kept); /* 1.5 2^-12 */
#else
    return fmm_keep_lanes(fmm_rsqrt_each(x), kept);
#endif
}

#endif
