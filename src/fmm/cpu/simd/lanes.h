/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rows to lanes: transposes of VLEN x VLEN blocks in registers, by halves, quarters, ... (Eklundh 1972). */
#ifndef FMM_LANES_H
#define FMM_LANES_H

#include "fmm/math/portable.h"

#ifdef FMM_DOUBLE
#    define LANES (FMM_VBYTES / 8)
#else
#    define LANES (FMM_VBYTES / 4)
#endif

#if LANES == 16
#    define LANES_ALL(f, b)                                                                                            \
        f(0, b), f(1, b), f(2, b), f(3, b), f(4, b), f(5, b), f(6, b), f(7, b), f(8, b), f(9, b), f(10, b), f(11, b),  \
            f(12, b), f(13, b), f(14, b), f(15, b)
#elif LANES == 8
#    define LANES_ALL(f, b) f(0, b), f(1, b), f(2, b), f(3, b), f(4, b), f(5, b), f(6, b), f(7, b)
#elif LANES == 4
#    define LANES_ALL(f, b) f(0, b), f(1, b), f(2, b), f(3, b)
#else
#    define LANES_ALL(f, b) f(0, b), f(1, b)
#endif

/* Lane j of a row and of the row b below it after their off-diagonal blocks of b x b have changed places. */
#define LANES_UPPER(j, b) (((j) & (b)) ? LANES + (j) - (b) : (j))
#define LANES_LOWER(j, b) (((j) & (b)) ? LANES + (j) : (j) + (b))

#define LANES_STAGE(v, b)                                                                                              \
    for (int i_ = 0; i_ < LANES; i_++)                                                                                 \
    {                                                                                                                  \
        if (!(i_ & (b)))                                                                                               \
        {                                                                                                              \
            const vreal upper_ = (v)[i_], lower_ = (v)[i_ + (b)];                                                      \
            (v)[i_]       = __builtin_shufflevector(upper_, lower_, LANES_ALL(LANES_UPPER, b));                        \
            (v)[i_ + (b)] = __builtin_shufflevector(upper_, lower_, LANES_ALL(LANES_LOWER, b));                        \
        }                                                                                                              \
    }

/* v[i] lane j and v[j] lane i change places. */
static inline void lanes_transpose(vreal v[VLEN])
{
#if LANES >= 16
    LANES_STAGE(v, 8)
#endif
#if LANES >= 8
    LANES_STAGE(v, 4)
#endif
#if LANES >= 4
    LANES_STAGE(v, 2)
#endif
    LANES_STAGE(v, 1)
}

/* Loads count (rounded up to vectors) reals from each of the rows row[VLEN]: lane i of out[j] is row[i][j]. */
static inline void lanes_load_rows(const real* const* row, int count, vreal* out)
{
    for (int first = 0; first < count; first += VLEN)
    {
        vreal v[VLEN];
        for (int i = 0; i < VLEN; i++)
        {
            v[i] = *(const vreal*)(row[i] + first);
        }
        lanes_transpose(v);
        for (int i = 0; i < VLEN; i++)
        {
            out[first + i] = v[i];
        }
    }
}

/* Sums over lanes of in[count], which has room for whole vectors: row[j] = sum over i of lane i of in[j]. */
static inline void lanes_sum(const vreal* in, int count, real* row)
{
    for (int first = 0; first < count; first += VLEN)
    {
        vreal v[VLEN];
        for (int i = 0; i < VLEN; i++)
        {
            v[i] = in[first + i];
        }
        lanes_transpose(v);
        for (int step = VLEN / 2; step > 0; step /= 2)
        {
            for (int i = 0; i < step; i++)
            {
                v[i] += v[i + step];
            }
        }
        *(vreal*)(row + first) = v[0];
    }
}

/* Lanes of two rows, of four next to each other: those with even numbers (b = 0) or odd ones. */
#define LANES_STRIDED(j, b) (((j)&2 ? LANES : 0) + ((j) & ~3) + 2 * ((j)&1) + (b))
#define LANES_ROTATED(j, b) (((j) + (b)) % LANES)

/* to[0..2] less the sums over lanes of x, y and z; to[4] is aligned. */
static inline void lanes_subtract(vreal x, vreal y, vreal z, real* to)
{
#if LANES >= 4
    typedef real four __attribute__((vector_size(4 * sizeof(real)), may_alias));
    const vreal  xy = __builtin_shufflevector(x, y, LANES_ALL(LANES_UPPER, 2)) +
                     __builtin_shufflevector(x, y, LANES_ALL(LANES_LOWER, 2));
    const vreal zz = z + __builtin_shufflevector(z, z, LANES_ALL(LANES_LOWER, 2));
    vreal       v  = __builtin_shufflevector(xy, zz, LANES_ALL(LANES_STRIDED, 0)) +
              __builtin_shufflevector(xy, zz, LANES_ALL(LANES_STRIDED, 1));
#    if LANES >= 16
    v += __builtin_shufflevector(v, v, LANES_ALL(LANES_ROTATED, 8));
#    endif
#    if LANES >= 8
    v += __builtin_shufflevector(v, v, LANES_ALL(LANES_ROTATED, 4));
#    endif
    *(four*)to -= *(const four*)&v;
#else
    to[0] -= x[0] + x[1];
    to[1] -= y[0] + y[1];
    to[2] -= z[0] + z[1];
#endif
}

#endif
