/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FMM_FFTSIZE_H
#define FMM_FFTSIZE_H

/* Whether n has no prime factor above 7, for which FFTs are fast. */
static inline int fmm_is_fft_size(int n)
{
    for (int f = 2; f <= 7; f++)
    {
        while (n % f == 0)
        {
            n /= f;
        }
    }
    return n == 1;
}

/* The smallest such number >= n. */
static inline int fmm_fft_size(int n)
{
    while (!fmm_is_fft_size(n))
    {
        n++;
    }
    return n;
}

#endif
