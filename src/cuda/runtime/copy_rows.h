/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copies the same part of each row of an array to the same places of another one, which may be on another device. */
#ifndef FMM_CUDA_COPY_ROWS_H
#define FMM_CUDA_COPY_ROWS_H

#include <stddef.h>

#include <cuda_runtime.h>

enum
{
    c_copyThreads = 256,
    c_copyBlocks  = 8 /* on a multiprocessor: loads from another device take long */
};

struct RowsPart
{
    size_t rows, stride, first, num; /* num elements of each row, from `first` on */
};

template <class T>
__global__ void __launch_bounds__(c_copyThreads) copy_rows(RowsPart a, const T* from, T* to)
{
    const size_t all = a.rows * a.num, step = gridDim.x * static_cast<size_t>(c_copyThreads);
    for (size_t i = blockIdx.x * static_cast<size_t>(c_copyThreads) + threadIdx.x; i < all; i += step)
    {
        const size_t row = i / a.num, at = row * a.stride + a.first + i - row * a.num;
        to[at] = from[at];
    }
}

/* By the current device. */
template <class T>
static inline cudaError_t
launch_copy_rows(const RowsPart& a, const void* from, void* to, int processors, cudaStream_t stream)
{
    copy_rows<<<c_copyBlocks * processors, c_copyThreads, 0, stream>>>(a, static_cast<const T*>(from),
                                                                       static_cast<T*>(to));
    return cudaGetLastError();
}

#endif
