/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What M2M and L2L share (shift.h): a column of lanes is one parent, all eight children at once, their sums with the
 * signs of the mirror group's characters in shared memory, [character][coefficient][lane].
 */
#ifndef FMM_CUDA_SHIFT_KERNELS_H
#define FMM_CUDA_SHIFT_KERNELS_H

#include "fold.h"
#include "hadamard.h"
#include "octree_state.h"
#include "shared_memory.h"

enum
{
    c_shiftThreads = 256
};

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

/* Lanes (parents) of a block for which eight expansions fit into shared memory. */
static inline int shift_lanes(int num_coef, size_t real)
{
    int lanes = 32;
    while (lanes > 1 && 8 * static_cast<size_t>(num_coef) * real * static_cast<size_t>(lanes) > 200 * 1024)
    {
        lanes /= 2;
    }
    return lanes;
}

template <class R>
static gmxfmm_status launch_shift(fmm_octree_operators*    ops,
                                  const ShiftArguments<R>& a,
                                  void (*kernel)(ShiftArguments<R>, int),
                                  cudaStream_t stream)
{
    const int lanes = shift_lanes(a.num_coef, sizeof(R));
    const int bytes = 8 * a.num_coef * lanes * static_cast<int>(sizeof(R));
    if (a.num > 0)
    {
        FMM_OCTREE_CUDA(ops, allow_shared(&ops->allowed, kernel));
        kernel<<<static_cast<unsigned>((a.num + lanes - 1) / lanes), c_shiftThreads, static_cast<size_t>(bytes),
                 stream>>>(a, lanes);
        FMM_OCTREE_CUDA(ops, cudaGetLastError());
    }
    return GMXFMM_OK;
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
