/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Translation along any direction as rotations and a translation along z (Dehnen 2014, section 3.3; Lengvenis et al.):
 * a rotation about z into the plane x = 0, the flip x <-> z, a rotation about z, the flip again; R is then along z,
 * where (5) is L_k^l = sum_n (-1)^l conj M_n^l (n+k)!/r^{n+k+1}. With D(a) = diag e^{ima} and B the matrix of the flip,
 * Upsilon_n^m(z, y, x) = sum_l B_n^{ml} Upsilon_n^l(x, y, z), in which R = r (sin theta cos phi, sin theta sin phi, cos
 * theta) and a = phi - pi/2:
 *   M' = B D(theta) B D(a) M,   L = D(a) B^T D(theta) B^T L'.
 *
 * The coefficients of degree n are in a row of 2n + 1 from n^2 on, so that a lower order is the beginning of a higher
 * one, and in it by parity of m: real parts of even m, of odd m, imaginary parts of odd m, of even m >= 2. The flip
 * takes each of these four blocks to one of them, with a square matrix: half the elements of B, the other half being
 * zero or the same.
 */
#ifndef FMM_ROTATION_H
#define FMM_ROTATION_H

#include "fmm/math/host_device.h"

/* Numbers of even and of odd m in 0..n. */
static inline FMM_HD int rot_even(int n)
{
    return n / 2 + 1;
}

static inline FMM_HD int rot_odd(int n)
{
    return (n + 1) / 2;
}

/* Places of the real and imaginary part of degree n and order m >= 0 in a row. */
static inline FMM_HD int rot_re(int n, int m)
{
    return n * n + (m & 1 ? rot_even(n) : 0) + m / 2;
}

static inline FMM_HD int rot_im(int n, int m)
{
    return n * n + n + 1 + (m & 1 ? m / 2 : rot_odd(n) + m / 2 - 1);
}

/* The four blocks of the flip of degree n: their size, and where they begin in the input and in the output. */
static inline FMM_HD int rot_block_size(int n, int block)
{
    return block == 0 ? rot_even(n) : block == 3 ? rot_even(n) - 1 : rot_odd(n);
}

static inline FMM_HD int rot_block_in(int n, int block)
{
    return block == 0 ? 0 : block == 1 ? rot_even(n) : block == 2 ? n + 1 : n + 1 + rot_odd(n);
}

static inline FMM_HD int rot_block_out(int n, int block)
{
    /* odd degrees change real parts of even and odd m, even degrees imaginary parts */
    return block < 2 ? rot_block_in(n, n & 1 ? 1 - block : block) : rot_block_in(n, n & 1 ? block : 5 - block);
}

/* Elements of all four, and of those of the degrees below n. */
static inline FMM_HD int rot_flip_size(int n)
{
    const int e = rot_even(n), o = rot_odd(n);
    return e * e + 2 * o * o + (e - 1) * (e - 1);
}

static inline FMM_HD int rot_flip_offset(int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
    {
        sum += rot_flip_size(i);
    }
    return sum;
}

/* The order of translations that are truncated to their mean error, where it is enough (tree_truncation.c). Of 189
 * translations of a cell 135 need no more at p = 8, where it is 6; a third order would do less work and take a third
 * pass of the kernel. */
static inline FMM_HD int rot_reduced_order(int p)
{
    return 3 * p / 4;
}

/* B_n^{ml} of degree n >= 1, 0 <= m, l <= n, row by row, from that of degree n - 1 (degree 0: 1). By the derivatives of
 * both sides of the definition, THEORY (3), and B^{m,-l} = (-1)^{n+m} B^{ml}, B^{-m,l} = (-1)^{n+l} B^{ml}:
 *   B_n^{ml} = (B_{n-1}^{m-1,l} - B_{n-1}^{m+1,l})/2, l < n,
 *   B_n^{mn} = B_{n-1}^{m,n-1} + (B_{n-1}^{m-1,n-1} + B_{n-1}^{m+1,n-1})/2. */
static inline FMM_HD void rot_next_flip(int n, const double* below, double* b)
{
    for (int m = 0; m <= n; m++)
    {
        for (int l = 0; l < n; l++)
        {
            const double up    = m + 1 < n ? below[(m + 1) * n + l] : 0;
            const double same  = m < n ? below[m * n + l] : 0;
            const double down  = m > 0 ? below[(m - 1) * n + l] : n > 1 ? ((n - 1 + l) & 1 ? -1 : 1) * below[n + l] : 0;
            b[m * (n + 1) + l] = 0.5 * (down - up);
            if (l == n - 1)
            {
                b[m * (n + 1) + n] = same + 0.5 * (down + up);
            }
        }
    }
}

typedef enum
{
    ROT_FLIP = 0,    /* B */
    ROT_FLIP_TURNED, /* (-1)^m conj B: what the translation along z wants */
    ROT_FLIP_LOCAL   /* B^T */
} rot_flip_kind;

/* Element (i, j) of a block of the flip of degree n, m and -m folded into m >= 0; b as rot_next_flip leaves it. */
static inline FMM_HD double rot_flip_element(int n, const double* b, rot_flip_kind kind, int block, int i, int j)
{
    const int    odd_in = block == 1 || block == 2, im = block >= 2;
    const int    odd_out = (n & 1) ^ (block == 1 || block == 3);
    const int    in      = 2 * j + (odd_in ? 1 : im ? 2 : 0);
    const int    out     = 2 * i + (odd_out ? 1 : im ? 2 : 0);
    const double e       = kind == ROT_FLIP_LOCAL ? b[in * (n + 1) + out] : b[out * (n + 1) + in];
    const int    sign    = kind == ROT_FLIP_TURNED ? (out & 1 ? -1 : 1) * (im ? -1 : 1) : 1;
    return sign * (in > 0 ? 2 : 1) * e;
}

/* All elements of the flip of degree n, block by block and row by row: element[rot_flip_size(n)]. */
static inline FMM_HD void rot_flip_elements(int n, const double* b, rot_flip_kind kind, double* element)
{
    for (int block = 0, at = 0; block < 4; block++)
    {
        const int size = rot_block_size(n, block);
        for (int i = 0; i < size * size; i++, at++)
        {
            element[at] = rot_flip_element(n, b, kind, block, i / size, i % size);
        }
    }
}

/* (n+k)!/(n! k!) for n <= top: of the translation along z. */
static inline FMM_HD void rot_binomials(int k, int top, double* binomial)
{
    binomial[0] = 1;
    for (int n = 0; n < top; n++)
    {
        binomial[n + 1] = binomial[n] * (n + 1 + k) / (n + 1);
    }
}

#endif
