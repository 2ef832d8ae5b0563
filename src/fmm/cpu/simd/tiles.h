/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sums of Hankel matrices of scalars times columns of lanes, with the results in registers (m2l_symmetric.c). */
#ifndef FMM_TILES_H
#define FMM_TILES_H

#include "fmm/math/portable.h"

enum
{
    c_tile = FMM_VBYTES == 64 ? 8 : 4, /* outputs in registers, twice */
};

/* A column of the input: it adds sum_i h[i + k] w(i + k)[i] to output k, w of even or odd i + k. */
typedef struct
{
    const real*  h;
    const vreal *even, *odd;
    int          count;
} segment;

/* `size` outputs of one column of the output from all segments: out += scale * sums. half: elements with odd i + k are
 * zero. Two sums for each output, so that additions do not wait for each other. */
static inline __attribute__((always_inline)) void
tile(int size, int half, const segment* segments, int num, int at, real scale, vreal* out)
{
    vreal sum[2][c_tile];
#pragma GCC unroll 8
    for (int k = 0; k < size; k++)
    {
        sum[0][k] = sum[1][k] = (vreal){0};
    }
    for (int s = 0; s < num; s++)
    {
        const real*  h    = segments[s].h + at;
        const vreal* even = at & 1 ? segments[s].odd : segments[s].even;
        const vreal* odd  = at & 1 ? segments[s].even : segments[s].odd;
        int          i    = 0;
        for (; i + 1 < segments[s].count; i += 2)
        {
#pragma GCC unroll 8
            for (int k = 0; k < size; k++)
            {
                if (!half || !(k & 1))
                {
                    sum[0][k] += h[i + k] * (k & 1 ? odd : even)[i];
                }
                if (!half || (k & 1))
                {
                    sum[1][k] += h[i + 1 + k] * (k & 1 ? even : odd)[i + 1];
                }
            }
        }
        if (i < segments[s].count)
        {
#pragma GCC unroll 8
            for (int k = 0; k < size; k++)
            {
                if (!half || !(k & 1))
                {
                    sum[0][k] += h[i + k] * (k & 1 ? odd : even)[i];
                }
            }
        }
    }
#pragma GCC unroll 8
    for (int k = 0; k < size; k++)
    {
        out[k] += scale * (sum[0][k] + sum[1][k]);
    }
}

typedef void tile_function(const segment* segments, int num, int at, real scale, vreal* out);
#define DEFINE(size)                                                                                                   \
    static void tile_##size(const segment* segments, int num, int at, real scale, vreal* out)                          \
    {                                                                                                                  \
        tile(size, 0, segments, num, at, scale, out);                                                                  \
    }                                                                                                                  \
    static void half_tile_##size(const segment* segments, int num, int at, real scale, vreal* out)                     \
    {                                                                                                                  \
        tile(size, 1, segments, num, at, scale, out);                                                                  \
    }
DEFINE(1)
DEFINE(2)
DEFINE(3)
DEFINE(4)
#if FMM_VBYTES == 64
DEFINE(5)
DEFINE(6)
DEFINE(7)
DEFINE(8)
#endif
static tile_function* const c_tiles[2][c_tile + 1] = {
#if FMM_VBYTES == 64
    {NULL, tile_1, tile_2, tile_3, tile_4, tile_5, tile_6, tile_7, tile_8},
    {NULL, half_tile_1, half_tile_2, half_tile_3, half_tile_4, half_tile_5, half_tile_6, half_tile_7, half_tile_8}
#else
    {NULL, tile_1, tile_2, tile_3, tile_4}, {NULL, half_tile_1, half_tile_2, half_tile_3, half_tile_4}
#endif
};

#endif
