/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What M2M and L2L share (shift.h): a column of lanes is one parent, with all eight children at once, a warp has a
 * coefficient of the output.
 */
#ifndef FMM_CUDA_SHIFT_KERNELS_H
#define FMM_CUDA_SHIFT_KERNELS_H

#include "fmm/math/fold.h"
#include "cuda/octree/hadamard.h"
#include "cuda/octree/state.h"
#include "cuda/runtime/shared_memory.h"

template <class R>
struct ShiftArguments
{
    int        p, num_coef;
    const R*   table; /* of child 7, as fmm_shift_tables makes it */
    const int* child;
    int        num, empty; /* parents; the empty child */
    size_t     upper_stride, lower_stride;
    R *        upper, *lower; /* multipoles or locals */
};

/* Block 2 im_out + im_in between column `out` and column `in`. */
template <class R>
static __device__ __forceinline__ const R*
shift_block(const ShiftArguments<R>& a, int out, int in, int im_out, int im_in)
{
    return a.table + ((out * (a.p + 1) + in) * 4 + 2 * im_out + im_in) * (a.p + 1);
}

/* Degree and order of coefficient i, and whether it is an imaginary part. */
static __device__ __forceinline__ void coefficient(int p, int i, int* n, int* m, int* im)
{
    *m = 0;
    while (i >= harm_column(p, *m + 1))
    {
        ++*m;
    }
    const int at = i - harm_column(p, *m), size = p + 1 - *m;
    *im = at >= size;
    *n  = *m + (*im ? at - size : at);
}

/* Input columns of one parity, real or imaginary parts, meet an output in products of two classes, j even and odd, and
 * the eight classes are the characters: bits a (parity of the sum of both columns), b (whether one of both is
 * imaginary) and odd (j) make character 4 (a ^ b) + 2 b + (a ^ odd), as fold_character has it. So an output's eight
 * sums stay in registers, whose numbers are known at compile time. */
static __host__ __device__ constexpr int shift_character(int a, int b, int odd)
{
    return 4 * (a ^ b) + 2 * b + (a ^ odd);
}

/* First column of parity a ^ (column & 1) that has parts `im`. */
static __device__ __forceinline__ int first_column(int column, int a, int im)
{
    const int odd = a ^ (column & 1);
    return im && !odd ? 2 : odd;
}

/* The sum over j = first, first + 2, .. last of t[j] x[j step]. */
template <class R>
static __device__ __forceinline__ R shift_sum(const R* t, const R* x, int first, int last, int step)
{
    R sum = 0;
    for (int j = first; j <= last; j += 2)
    {
        sum += __ldg(t + j) * x[j * step];
    }
    return sum;
}

/* Blocks along y share the coefficients of the same parents where these alone would leave multiprocessors idle. */
static inline unsigned shift_splits(unsigned tiles, unsigned blocks, unsigned most)
{
    const unsigned splits = blocks / tiles;
    return splits < 1 ? 1 : splits < most ? splits : most;
}

template <class R>
static ShiftArguments<R> shift_arguments(const fmm_octree_operators* ops,
                                         const fmm_octree_level*     upper,
                                         const fmm_octree_level*     lower,
                                         size_t                      table_at)
{
    ShiftArguments<R> a;
    a.p            = ops->order;
    a.num_coef     = ops->num_coef;
    a.table        = octree_table<R>(ops, table_at);
    a.child        = upper->child;
    a.num          = upper->num;
    a.empty        = lower->num;
    a.upper_stride = upper->stride;
    a.lower_stride = lower->stride;
    a.upper = a.lower = nullptr;
    return a;
}

#endif
