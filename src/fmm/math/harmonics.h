/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Solid harmonics of Dehnen 2014 (arXiv:1405.2255, section 3.2), Upsilon_n^m and Theta_n^m; docs/theory.md (1)-(3).
 *
 * Coefficients of degree n <= p are stored by columns of constant m >= 0, real parts before imaginary parts:
 *   Re(n, m) at harm_re(p, n, m),  Im(n, m) at harm_im(p, n, m) (m > 0),  (p+1)^2 reals in all.
 * Negative m follow from X_n^{-m} = (-1)^m conj X_n^m.
 *
 * The recurrences are written for any type HARM_T with + - * (scalar, or a vector of lanes); HARM_R is its scalar.
 */
#ifndef FMM_HARMONICS_H
#define FMM_HARMONICS_H

#include "fmm/math/host_device.h"

/* Number of real coefficients of an expansion of order p. */
static inline FMM_HD int harm_size(int p)
{
    return (p + 1) * (p + 1);
}

/* Offset of column m. */
static inline FMM_HD int harm_column(int p, int m)
{
    return m == 0 ? 0 : (p + 1) + (m - 1) * (2 * (p + 1) - m);
}

static inline FMM_HD int harm_re(int p, int n, int m)
{
    return harm_column(p, m) + n - m;
}

static inline FMM_HD int harm_im(int p, int n, int m)
{
    return harm_column(p, m) + (p + 1 - m) + n - m;
}

/* Signs of the real and imaginary part of X_n^|m| that make X_n^m. */
static inline FMM_HD void harm_signs(int m, int* re, int* im)
{
    *re = m < 0 && (m & 1) ? -1 : 1;
    *im = m < 0 ? -*re : *re;
}

#ifdef HARM_T

/* Factor of the recurrence in n: 1 / ((n-m)(n+m)). */
static inline FMM_HD HARM_R harm_inverse(int n, int m)
{
    return (HARM_R)1 / (HARM_R)((n - m) * (n + m));
}

/*
 * Column m of Upsilon_n^m, n = m..p, from its first element (re, im), added to out_re[n-m] and out_im[n-m] (m > 0).
 * inverse: this column of what harm_fill_inverse makes.
 */
static inline FMM_HD void harm_add_column(
    int p, int m, HARM_T z, HARM_T r2, HARM_T re, HARM_T im, const HARM_R* inverse, HARM_T* out_re, HARM_T* out_im)
{
    HARM_T re_below = re - re, im_below = re - re;
    out_re[0] = out_re[0] + re;
    if (m == 0)
    {
        for (int n = 1; n <= p; n++)
        {
            const HARM_T next = z * ((HARM_R)(2 * n - 1) * inverse[n]) * re - r2 * inverse[n] * re_below;
            re_below          = re;
            re                = next;
            out_re[n]         = out_re[n] + re;
        }
        return;
    }
    const HARM_R* const ratio = inverse + (p + 1 - m);
    out_im[0]                 = out_im[0] + im;
    for (int i = 1; i <= p - m; i++)
    {
        const HARM_T a       = z * ratio[i];
        const HARM_T b       = r2 * inverse[i];
        const HARM_T re_next = a * re - b * re_below;
        const HARM_T im_next = a * im - b * im_below;
        re_below             = re;
        im_below             = im;
        re                   = re_next;
        im                   = im_next;
        out_re[i]            = out_re[i] + re;
        out_im[i]            = out_im[i] + im;
    }
}

/* Upsilon_m^m from Upsilon_{m-1}^{m-1}, m >= 1. */
static inline FMM_HD void harm_next_diagonal(int m, HARM_T x, HARM_T y, HARM_T* re, HARM_T* im)
{
    const HARM_R half = (HARM_R)1 / (HARM_R)(2 * m);
    const HARM_T t    = (*re * x - *im * y) * half;
    *im               = (*re * y + *im * x) * half;
    *re               = t;
}

/* The recurrence one degree at a time: (re, im) from Upsilon_{n-1}^m to Upsilon_n^m, n > m, the one below from degree
 * n - 2 to n - 1. */
static inline FMM_HD void
harm_next_degree(int n, int m, HARM_T z, HARM_T r2, HARM_T* re, HARM_T* im, HARM_T* re_below, HARM_T* im_below)
{
    const HARM_R inverse = harm_inverse(n, m);
    const HARM_T a = z * ((HARM_R)(2 * n - 1) * inverse), b = r2 * inverse;
    const HARM_T re_next = a * *re - b * *re_below, im_next = a * *im - b * *im_below;
    *re_below = *re;
    *im_below = *im;
    *re       = re_next;
    *im       = im_next;
}

/*
 * Upsilon_n^m(x, y, z) * w for all n <= p, 0 <= m <= n, added to out[(p+1)^2] (THEORY (1)).
 * inverse: from harm_fill_inverse.
 */
static inline FMM_HD void
harm_add_upsilon(int p, HARM_T x, HARM_T y, HARM_T z, HARM_T w, const HARM_R* inverse, HARM_T* out)
{
    const HARM_T r2 = x * x + y * y + z * z;
    HARM_T       re = w, im = w - w;
    for (int m = 0; m <= p; m++)
    {
        if (m > 0)
        {
            harm_next_diagonal(m, x, y, &re, &im);
        }
        HARM_T* column = out + harm_column(p, m);
        harm_add_column(p, m, z, r2, re, im, inverse + harm_column(p, m), column, column + (p + 1 - m));
    }
}

/* Fills inverse[(p+1)^2], the factors of the recurrence in n: harm_inverse(n, m) at harm_re(p, n, m) and, for m > 0,
 * 2 n - 1 times as much at harm_im(p, n, m). */
static inline void harm_fill_inverse(int p, HARM_R* inverse)
{
    for (int m = 0; m <= p; m++)
    {
        for (int n = m; n <= p; n++)
        {
            const HARM_R of           = n > m ? harm_inverse(n, m) : (HARM_R)0;
            inverse[harm_re(p, n, m)] = of;
            if (m > 0)
            {
                inverse[harm_im(p, n, m)] = (HARM_R)(2 * n - 1) * of;
            }
        }
    }
}

#endif /* HARM_T */

/* (n-m)!(n+m)! along the diagonal, (2m)!, and down a column: from m - 1 to m, and from n to n + 1. */
static inline FMM_HD double harm_next_diagonal_factor(int m)
{
    return 2.0 * m * (2 * m - 1);
}

static inline FMM_HD double harm_next_degree_factor(int n, int m)
{
    return (double)(n + 1 - m) * (n + 1 + m);
}

#endif
