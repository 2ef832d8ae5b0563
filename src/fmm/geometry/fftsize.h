/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lengths of Fourier transforms: which are fast, and how slow others are. */
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

/* Time of a transform of length n on the CPU over that of a length without large prime factors: those above 10 are
 * transformed by definition, 17 in 1.5 times the time, 37 in 2.3. */
static inline double fmm_fft_slowness(int n)
{
    int prime = 1;
    for (int f = 2; n > 1; f++)
    {
        while (n % f == 0)
        {
            n /= f;
            prime = f;
        }
    }
    return prime > 10 ? 0.6 + prime / 20.0 : 1;
}

/* n = n1 n2 with both at most 10 and as even as can be, as the device's transforms take them: returns n1, 0 if there is
 * none. */
static inline int fmm_two_step_radix(int n)
{
    int best = 0;
    for (int n1 = 1; n1 <= 10; n1++)
    {
        const int n2 = n / n1;
        if (n % n1 == 0 && n2 <= 10 && (best == 0 || n1 + n2 < best + n / best))
        {
            best = n1;
        }
    }
    return best;
}

#endif
