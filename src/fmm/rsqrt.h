/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reciprocal square root of a vector, times FMM_RSQRT_SCALE: the processor's estimate and Newton steps where there is
 * one, for compilers do not make 1/sqrt of vectors into it. The last step's factor 1/2 is left to the caller.
 */
#ifndef FMM_RSQRT_H
#define FMM_RSQRT_H

#include <math.h>

#include "portable.h"

#if defined(__AVX512F__) || (defined(__AVX__) && !defined(FMM_DOUBLE))
#    include <immintrin.h>
#    define FMM_RSQRT_SCALE ((real)2)
#else
#    define FMM_RSQRT_SCALE ((real)1)
#endif

static inline vreal fmm_scaled_rsqrt(vreal x)
{
#if defined(__AVX512F__) && defined(FMM_DOUBLE)
    vreal y = _mm512_rsqrt14_pd(x); /* 2^-14 -> 2^-28 -> 2^-55 */
    y       = y * 0.5 * (3.0 - x * y * y);
    return y * (3.0 - x * y * y);
#elif defined(__AVX512F__)
    const vreal y = _mm512_rsqrt14_ps(x); /* 2^-14 -> below rounding */
    return y * (3.0F - x * y * y);
#elif defined(__AVX__) && !defined(FMM_DOUBLE)
    const vreal y = _mm256_rsqrt_ps(x); /* 1.5 2^-12 -> 2^-22 */
    return y * (3.0F - x * y * y);
#else
    vreal y;
    for (int l = 0; l < VLEN; l++)
    {
#    ifdef FMM_DOUBLE
        y[l] = 1 / sqrt(x[l]);
#    else
        y[l] = 1 / sqrtf(x[l]);
#    endif
    }
    return y;
#endif
}

#endif
