/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Functions of vectors: 1/sqrt to rounding, and exp of numbers that are not positive. */
#ifndef FMM_VECTOR_MATH_H
#define FMM_VECTOR_MATH_H

#include "fmm/cpu/simd/rsqrt.h"

/* an operand of asm that is read and written, in a vector register where the compiler has a letter for them */
#if defined(__x86_64__) || defined(__i386__)
#    define VECTOR_REGISTER "+v"
#elif defined(__aarch64__)
#    define VECTOR_REGISTER "+w"
#else
#    define VECTOR_REGISTER "+m"
#endif

/* 1/sqrt(x) from an estimate y with e = 1 - x y^2: y (1 + e/2 + 3/8 e^2 + 5/16 e^3 + ...). Of an estimate to 2^-14, e^4
 * is 2^-52 and has the factor 35/128. x = 0 gives something that is not finite. */
static inline vreal kernel_rsqrt(vreal x)
{
#if defined(__AVX512F__) && defined(FMM_DOUBLE)
    const vreal y = _mm512_rsqrt14_pd(x);
    const vreal e = 1.0 - x * (y * y);
    return y + (y * e) * (0.5 + e * (0.375 + e * 0.3125));
#elif defined(__AVX512F__)
    const vreal y = _mm512_rsqrt14_ps(x);
    return y + (0.5F * y) * (1.0F - x * (y * y));
#elif defined(__AVX__) && !defined(FMM_DOUBLE)
    const vreal y = _mm256_rsqrt_ps(x);
    return y + (0.5F * y) * (1.0F - x * (y * y));
#else
    return fmm_rsqrt_each(x);
#endif
}

/* exp(x), x <= 0: 2^k exp(r), k the integer next to x / log 2 and |r| <= log 2 / 2, exp(r) by its series to a remainder
 * below rounding; 0 below the smallest normal number. Against libmvec's, which is a call and so saves
 * all registers: Yukawa sums 1.3 times as fast in double, 1.9 times in single precision. */
static inline vreal kernel_exp(vreal x)
{
#ifdef FMM_DOUBLE
    static const double inverse_factorial[] = {1.0 / 2,       1.0 / 6,        1.0 / 24,       1.0 / 120,
                                               1.0 / 720,     1.0 / 5040,     1.0 / 40320,    1.0 / 362880,
                                               1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600};
    enum
    {
        c_terms    = 11,
        c_mantissa = 52
    };
    const real lowest = -708, round = 6755399441055744.0, log2_high = 0x1.62e42fefa3800p-1,
               log2_low = 0x1.ef35793c76730p-45;
#else
    static const float inverse_factorial[] = {1.0F / 2, 1.0F / 6, 1.0F / 24, 1.0F / 120, 1.0F / 720};
    enum
    {
        c_terms    = 5,
        c_mantissa = 23
    };
    const real lowest = -87, round = 12582912.0F, log2_high = 0x1.62e400p-1F, log2_low = 0x1.7f7d1cp-20F;
#endif
    const vinteger above   = x > lowest;
    const vreal    limited = (vreal)(((vinteger)x & above) | ((vinteger)((vreal){0} + lowest) & ~above));
    /* adding `round` leaves the integer in the lowest bits; the compiler may not take it away again */
    vreal shifted = limited * (real)1.4426950408889634 + round;
    __asm__("" : VECTOR_REGISTER(shifted));
    const vreal k = shifted - round, r = (limited - k * log2_high) - k * log2_low;
    vreal       sum = (vreal){0} + inverse_factorial[c_terms - 1];
    for (int i = c_terms - 2; i >= 0; i--)
    {
        sum = sum * r + inverse_factorial[i];
    }
    sum = (sum * r + 1) * r + 1;
    return (vreal)(((vinteger)sum + ((vinteger)shifted << c_mantissa)) & above);
}

#endif
