/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Translations between columns of real coefficients. Column m of the input and column l of the output, both >= 0, are
 * related by the 2 x 2 block
 *   X_k^l += a_j Y_n^m + (-1)^m b_j conj Y_n^m   (the second term, that of -m, for m > 0),
 * where a, b are columns of an operator and j = n + k (M2L), n - k or k - n (shifts): as real numbers
 *   Re X += rr Re Y + ri Im Y,   Im X += ir Re Y + ii Im Y.
 * FOLD_T is a scalar, or a vector of lanes with an operator each.
 */
#ifndef FMM_FOLD_H
#define FMM_FOLD_H

#include "fmm/math/harmonics.h"

/* Sign of the mirror image of a coefficient in the planes x = 0, y = 0, z = 0, as bits 4, 2, 1 (set: negative), for the
 * real (im = 0) or imaginary part of degree n and order m: by THEORY (1), x -> -x takes Upsilon_n^m to (-1)^m conj
 * Upsilon_n^m, y -> -y to conj Upsilon_n^m, z -> -z to (-1)^(n+m) Upsilon_n^m. */
static inline FMM_HD int fold_character(int n, int m, int im)
{
    return 4 * ((m + im) & 1) + 2 * im + ((n + m) & 1);
}

/* Signs of P^|l-m| and Q^|l-m| where sum_m M^m X^(m+l), m, l >= 0, has its terms m and -m folded, X = P + iQ and
 * X^-mu = (-1)^mu conj X^mu: M = A + iB times
 *   re = A (P+ + s P-) - B (Q+ - s Q-),  im = A (Q+ + s Q-) + B (P+ - s P-),
 * with P+ = P^(l+m), P- = P^(l-m), s = (-1)^m; m = 0 has one term only. */
static inline FMM_HD void fold_spectrum_signs(int m, int l, int* p, int* q)
{
    const int s = m & 1 ? -1 : 1, odd = (l - m) & 1 ? -1 : 1;
    *p = l < m ? s * odd : s;
    *q = l < m ? -s * odd : s;
}

#ifdef FOLD_T

/* The four blocks for j = first .. first + count - 1; b enters as (re * br, im * bi), the sign (-1)^m included. */
static inline void fold_columns(
    int count, const FOLD_T* ar, const FOLD_T* ai, const FOLD_T* br, const FOLD_T* bi, int re, int im, FOLD_T* block[4])
{
    for (int j = 0; j < count; j++)
    {
        const FOLD_T cr = br[j] * (FOLD_R)re, ci = bi[j] * (FOLD_R)im;
        block[0][j] = ar[j] + cr;
        block[1][j] = ci - ai[j];
        block[2][j] = ai[j] + ci;
        block[3][j] = ar[j] - cr;
    }
}

/* Blocks rr, ri, ir, ii of M2L, THEORY (5), from Theta(R) of degrees <= top: block[.][j - m - l], j = m+l ..
 * m+l+count-1. ri and ii are not written for m = 0, and ir and ii are of no use for l = 0. */
static inline void fold_m2l(int top, int m, int l, int count, const FOLD_T* theta, FOLD_T* block[4])
{
    const int     d  = l > m ? l - m : m - l;
    const FOLD_T* ar = theta + harm_re(top, m + l, m + l);
    const FOLD_T* ai = m + l > 0 ? theta + harm_im(top, m + l, m + l) : ar;
    if (m == 0)
    {
        for (int j = 0; j < count; j++)
        {
            block[0][j] = ar[j];
            block[2][j] = ai[j];
        }
        return;
    }
    /* b = Theta^(l-m), and Theta^(-d) = (-1)^d conj Theta^d */
    const int     sign = l < m ? (l & 1 ? -1 : 1) : (m & 1 ? -1 : 1);
    const FOLD_T* br   = theta + harm_re(top, m + l, d);
    const FOLD_T* bi   = d > 0 ? theta + harm_im(top, m + l, d) : br;
    fold_columns(count, ar, ai, br, bi, sign, d == 0 ? 0 : (l < m ? -sign : sign), block);
}

#endif /* FOLD_T */

#endif
