/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The device part of a treecode. Trees and lists are made on the host; modified charges and sums here. */
#ifndef CUDA_TREECODE_DEVICE_H
#define CUDA_TREECODE_DEVICE_H

#include <cuda_runtime.h>

extern "C"
{
#include "fmm/treecode/chebyshev.h"
#include "fmm/treecode/state.h"
}

/* Device memory that only grows. */
struct TreecodeBuffer
{
    void*  memory;
    size_t capacity;

    template <class T>
    T* as() const
    {
        return static_cast<T*>(memory);
    }
};

/* A part of a batch: the targets of one block. */
struct TreecodeTile
{
    int     batch, count;
    int64_t first;
};

struct treecode_device
{
    cudaStream_t   stream;
    TreecodeBuffer x[3], q, low, high, begin, end, child, num_children, leaf;             /* sources */
    TreecodeBuffer charge;                                                                /* modified charges */
    TreecodeBuffer target_x[3], target_low, target_high;                                  /* of separate targets */
    TreecodeBuffer cluster, approximated_start, direct_start, approximated, direct, tile; /* lists */
    TreecodeBuffer phi, slope[3];
    TreecodeTile*  tiles; /* on the host */
    size_t         tile_capacity;
};

/* Chebyshev points (6), by value to kernels. */
struct TreecodePoints
{
    double s[TREECODE_MAX_EDGE];
};

static inline TreecodePoints treecode_points(int degree)
{
    TreecodePoints points;
    chebyshev_points(degree, points.s);
    return points;
}

/* Clusters as kernels see them. */
struct TreecodeTree
{
    const double * x[3], *low, *high;
    const int64_t *begin, *end;

    __device__ void box(int cluster, int d, double* centre, double* half) const
    {
        const double bottom = low[3 * (size_t)cluster + d];
        *half               = 0.5 * (high[3 * (size_t)cluster + d] - bottom);
        *centre             = bottom + *half;
    }
};

gmxfmm_status treecode_cuda_failed(treecode* t, cudaError_t error, const char* call, const char* file, int line);

#define TREECODE_CUDA(t, call)                                                                                         \
    do                                                                                                                 \
    {                                                                                                                  \
        const cudaError_t error_ = (call);                                                                             \
        if (error_ != cudaSuccess)                                                                                     \
        {                                                                                                              \
            return treecode_cuda_failed(t, error_, #call, __FILE__, __LINE__);                                         \
        }                                                                                                              \
    } while (0)

/* Room for that many bytes, contents lost. Errors: MEMORY. */
gmxfmm_status treecode_grow(treecode* t, TreecodeBuffer* buffer, size_t bytes);

/* Room, and a copy of the host's, on the stream. Errors: MEMORY, DEVICE. */
gmxfmm_status treecode_upload(treecode* t, TreecodeBuffer* buffer, const void* from, size_t bytes);

#endif
