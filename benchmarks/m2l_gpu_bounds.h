/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Bounds of M2L: the microkernels of Kohnke et al. 2020, which have the operations and accesses of all translations
 * without their dependences, and the operations that each variant needs. */
#ifndef M2L_GPU_BOUNDS_H
#define M2L_GPU_BOUNDS_H

#include "octree_level.h"

#include "fmm/math/fold.h"
#include "fmm/math/rotation.h"

namespace fmmtest
{

/* One complex product and one sum for each three accesses of global memory: two loads, one addition. */
template <class R2>
__global__ void memory_bound(const R2* a, const R2* b, R2* c, long size, long products)
{
    const long stride = static_cast<long>(gridDim.x) * blockDim.x;
    for (long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x; i < products; i += stride)
    {
        const long at = i % size;
        const R2   x = a[at], y = b[at];
        R2         z = c[at];
        z.x += x.x * y.x - x.y * y.y;
        z.y += x.x * y.y + x.y * y.x;
        c[at] = z;
    }
}

/* O(p^2) loads for each translation, all products of it from registers: 4 FMA for each complex one. */
template <class R>
__global__ void
compute_bound(const R* multipole, const R* theta, R* out, int num, int num_coef, int list, int share, int fma)
{
    const int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= num)
    {
        return;
    }
    R sum[16];
#pragma unroll
    for (int i = 0; i < 16; i++)
    {
        sum[i] = R(i);
    }
    const int first = blockIdx.y * share, last = first + share < list ? first + share : list;
    for (int t = first; t < last; t++)
    {
        for (int f = 0; f < num_coef; f++)
        {
            const R x = multipole[static_cast<size_t>(f) * num + cell], y = theta[f];
            for (int i = 0; i < fma; i += 16)
            {
#pragma unroll
                for (int j = 0; j < 16; j++)
                {
                    sum[j] = sum[j] * x + y;
                }
            }
        }
    }
    R total = 0;
#pragma unroll
    for (int i = 0; i < 16; i++)
    {
        total += sum[i];
    }
    out[static_cast<size_t>(blockIdx.y) * num + cell] = total;
}

inline double pairs_of(int p)
{
    return 0.5 * p * (p + 1);
}

inline double rotation_fma(const Level& level, double translations, int planes)
{
    const int p    = level.order;
    double    flip = 0, columns = 0;
    for (int n = 0; n <= p; n++)
    {
        flip += rot_flip_size(n);
        columns += (n == p ? 1.0 : 2.0) * (n + 1) * (n + 1);
    }
    const double turn = flip + 4 * pairs_of(p);
    double       sum  = static_cast<double>(planes) * level.lower.num * turn; /* sources */
    sum += static_cast<double>(planes) * level.lower.num * turn;              /* sums of targets */
    return sum + translations * (2 * turn + columns + 2.0 * (p + 1) * (p + 1));
}

/* Products with the elements of a reference operator that are not zero by symmetry. */
inline double symmetric_products(int p, int zero)
{
    double sum = 0;
    for (int l = 0; l <= p; l++)
    {
        for (int m = 0; m <= p; m++)
        {
            for (int im = 0; im < 4; im++)
            {
                if ((l == 0 && im >= 2) || (m == 0 && (im & 1)))
                {
                    continue;
                }
                const int c = fold_character(l, l, im / 2) ^ fold_character(m, m, im & 1);
                if (c & zero & 6)
                {
                    continue;
                }
                sum += (p + 1 - l) * (p + 1 - m) * (zero & 1 ? 0.5 : 1.0);
            }
        }
    }
    return sum;
}

inline double symmetric_fma(const Level& level)
{
    double products[8], sum = 0;
    for (int zero = 0; zero < 8; zero++)
    {
        products[zero] = symmetric_products(level.order, zero);
    }
    for (int c = 0; c < 8; c++)
    {
        const double targets = level.lower.slab[c + 1] - level.lower.slab[c];
        for (int g = 0; g < level.tree.num_groups[c]; g++)
        {
            const int* r    = level.tree.vector[level.tree.group[c][g].reference];
            const int  zero = (r[0] == 0 ? 4 : 0) + (r[1] == 0 ? 2 : 0) + (r[2] == 0 ? 1 : 0);
            sum += targets * (products[zero] + 24.0 * (level.order + 1) * (level.order + 1)); /* and signed sums */
        }
    }
    return sum;
}

inline double complex_products(int p)
{
    return 0.5 * (p + 1.0) * (p + 2.0) * (p + 1.0) * (p + 1.0);
}

} // namespace fmmtest

#endif
