/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rotations about z and flips x <-> z of expansions, degree by degree as in math/rotation.h; one lane is one expansion.
 */
#ifndef FMM_ROTATIONS_H
#define FMM_ROTATIONS_H

#include "fmm/gmxfmm.h"
#include "fmm/cpu/simd/products.h"
#include "fmm/math/rotation.h"

enum
{
    c_maxOrder  = GMXFMM_MAX_ORDER + 1, /* locals have one degree more with strain */
    c_maxColumn = c_maxOrder / 2 + 1,
    c_maxDegree = 2 * c_maxOrder + 1
};

/* e^{ima} by parity of m. */
typedef struct
{
    vreal cos[2][c_maxColumn], sin[2][c_maxColumn];
} angle;

static void fill_angle(int p, vreal c, vreal s, angle* a)
{
    vreal re = {0}, im = {0};
    re += 1;
    for (int m = 0; m <= p; m++)
    {
        a->cos[m & 1][m / 2] = re;
        a->sin[m & 1][m / 2] = im;
        const vreal t        = re * c - im * s;
        im                   = re * s + im * c;
        re                   = t;
    }
}

/* The flip of degree n, four blocks; `unrolled`: n is a constant. */
INLINE void flip(int n, int unrolled, const real* g, const vreal* in, vreal* out)
{
#pragma GCC unroll 4
    for (int block = 0; block < 4; block++)
    {
        const int size = rot_block_size(n, block);
        if (size > 0)
        {
            const vreal* from = in + rot_block_in(n, block);
            vreal*       to   = out + rot_block_out(n, block);
            unrolled ? product(size, size, g, size, from, to) : long_product(size, size, g, size, from, to);
        }
        g += size * size;
    }
}

/* Multiplies degree n by e^{ima}; in may be out. */
INLINE void rotate(int n, const angle* a, const vreal* in, vreal* out)
{
    out[0] = in[0];
#pragma GCC unroll 2
    for (int odd = 0; odd < 2; odd++)
    {
        const int from = 1 - odd, count = odd ? rot_odd(n) : rot_even(n);
        const int at_re = odd ? rot_even(n) : 0, at_im = n + 1 + (odd ? 0 : rot_odd(n) - 1);
#pragma GCC unroll 16
        for (int i = from; i < count; i++)
        {
            const vreal re = in[at_re + i], im = in[at_im + i], c = a->cos[odd][i], s = a->sin[odd][i];
            out[at_re + i] = re * c - im * s;
            out[at_im + i] = re * s + im * c;
        }
    }
}

#endif
