/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Products of small matrices of scalars with columns of lanes. */
#ifndef FMM_PRODUCTS_H
#define FMM_PRODUCTS_H

#include "fmm/math/portable.h"

/* out[i] = sum_j g[i * stride + j] in[j]; in and out do not overlap. */
INLINE void product(int rows, int columns, const real* g, int stride, const vreal* in, vreal* out)
{
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
    {
        vreal sum = g[i * stride] * in[0];
#pragma GCC unroll 32
        for (int j = 1; j < columns; j++)
        {
            sum += g[i * stride + j] * in[j];
        }
        out[i] = sum;
    }
}

/* The same for the sizes of high degrees, with rows unrolled. */
typedef void rows_function(int rows, const real* g, int stride, const vreal* in, vreal* out);
#define SIZES(X) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20) X(21)
enum
{
    c_firstSize = 7,
    c_lastSize  = 21
};
#define DEFINE_ROWS(columns)                                                                                           \
    static void rows_##columns(int rows, const real* g, int stride, const vreal* in, vreal* out)                       \
    {                                                                                                                  \
        vreal v[columns];                                                                                              \
        __builtin_memcpy(v, in, sizeof(v));                                                                            \
        for (int i = 0; i < rows; i++)                                                                                 \
        {                                                                                                              \
            product(1, columns, g + i * stride, stride, v, out + i);                                                   \
        }                                                                                                              \
    }
SIZES(DEFINE_ROWS)
#define ROWS(columns) rows_##columns,
static rows_function* const c_rows[] = {SIZES(ROWS)};

static inline void long_product(int rows, int columns, const real* g, int stride, const vreal* in, vreal* out)
{
    if (columns >= c_firstSize && columns <= c_lastSize)
    {
        c_rows[columns - c_firstSize](rows, g, stride, in, out);
    }
    else
    {
        product(rows, columns, g, stride, in, out);
    }
}

#endif
