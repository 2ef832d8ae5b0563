/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Code common to the kernels of M2M and L2L (shift.h). A lane has the same parent in all warps, with all eight children
 * at once; each warp computes one coefficient of the output at a time.
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
    const R*   table; /* for the shift of child 7, made by fmm_shift_tables */
    const int* child;
    int        num, empty; /* number of parents; index of the empty child */
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

/* Products of an output with the input are in eight classes: by a, the parity of the sum of both columns, b, whether
 * exactly one of both is an imaginary part, and odd, the parity of the degree j. These classes are the characters of
 * fold_character: character 4 (a ^ b) + 2 b + (a ^ odd). So the eight sums of an output stay in registers, as their
 * numbers are compile-time constants. */
static __host__ __device__ constexpr int shift_character(int a, int b, int odd)
{
    return 4 * (a ^ b) + 2 * b + (a ^ odd);
}

/* First column of parity a ^ (column & 1) that has real (im = 0) or imaginary parts (im = 1). */
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

/* Number of blocks among which the coefficients of the same parents are divided, more than one if there are too few
 * parents to occupy all multiprocessors. */
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
