/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Interpolation between the Chebyshev points of a cluster and those of a part of it, one dimension after the other, by
 * the threads of a block. */
#ifndef CUDA_TREECODE_CONTRACT_H
#define CUDA_TREECODE_CONTRACT_H

#include "cuda/treecode/state.h"

/* out[k, ab] = sum_j l[k][j] in[ab, j]: after three times, all dimensions are done and in their places again. */
template <int THREADS>
__device__ void contract(int edge, const double* sm_l, const double* in, double* out)
{
    const int plane = edge * edge;
    for (int o = (int)threadIdx.x; o < plane * edge; o += THREADS)
    {
        const int k = o / plane, ab = o % plane;
        double    sum = 0;
        for (int j = 0; j < edge; j++)
        {
            sum += sm_l[k * edge + j] * in[ab * edge + j];
        }
        out[o] = sum;
    }
}

/* All three with the matrices sm_l[3][edge][edge]: from `in` to sm_one, each thread the elements threadIdx.x + i
 * THREADS.
 */
template <int THREADS>
__device__ void contractAll(int edge, const double* sm_l, const double* in, double* sm_one, double* sm_other)
{
    const int plane = edge * edge;
    contract<THREADS>(edge, sm_l + 2 * plane, in, sm_one);
    __syncthreads();
    contract<THREADS>(edge, sm_l + plane, sm_one, sm_other);
    __syncthreads();
    contract<THREADS>(edge, sm_l, sm_other, sm_one);
}

/* sm_l[d][k][j] = L_k of the parent at point j of the child, or, transposed, L_j at point k. */
template <int THREADS>
__device__ void lagrangeAtChild(const TreecodeTree&   tree,
                                int                   parent,
                                int                   child,
                                int                   degree,
                                const TreecodePoints& points,
                                bool                  transposed,
                                double*               sm_l)
{
    const int edge = degree + 1;
    for (int task = (int)threadIdx.x; task < 3 * edge; task += THREADS)
    {
        const int d = task / edge, j = task % edge;
        double    centre, half, part_centre, part_half, l[TREECODE_MAX_EDGE];
        tree.box(parent, d, &centre, &half);
        tree.box(child, d, &part_centre, &part_half);
        chebyshev_lagrange(degree, points.s, chebyshev_place(part_centre + part_half * points.s[j], centre, half), l);
        for (int k = 0; k < edge; k++)
        {
            sm_l[d * edge * edge + (transposed ? j * edge + k : k * edge + j)] = l[k];
        }
    }
}

#endif
