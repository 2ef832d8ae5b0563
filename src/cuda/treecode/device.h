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
#include "cuda/runtime/buffer.h"
#include "cuda/runtime/call.h"
#include "cuda/runtime/device_scope.h"
#include "cuda/runtime/shared_memory.h"

/* A part of a batch: the targets of one block. */
struct TreecodeTile
{
    int     batch, count;
    int64_t first;
};

struct treecode_device
{
    DeviceLimits   limits;
    AllowedKernels allowed; /* shared memory */
    cudaStream_t   stream;
    DeviceBuffer   x[3], q, low, high, begin, end, child, num_children, leaf;             /* sources */
    DeviceBuffer   charge;                                                                /* modified charges */
    DeviceBuffer   target_x[3], target_low, target_high;                                  /* of separate targets */
    DeviceBuffer   cluster, approximated_start, direct_start, approximated, direct, tile; /* lists */
    DeviceBuffer   phi, slope[3];
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

/* Of call.h. */
gmxfmm_status fmm_cuda_failed(treecode* t, cudaError_t error, const char* call, const char* file, int line);

/* The stages: see fmm/treecode/state.h. */
gmxfmm_status treecode_device_charges(treecode* t);
gmxfmm_status
treecode_device_sums(treecode* t, const treecode_lists* lists, gmxfmm_precision precision, int with_field);

/* Bytes of shared memory that kernels of modified charges need at this degree, at most. */
size_t treecode_device_charges_shared(int degree);

/* Room for that many bytes, contents lost if it grows. Errors: MEMORY. */
gmxfmm_status treecode_grow(treecode* t, DeviceBuffer* buffer, size_t bytes);

/* Room, and a copy of the host's, on the stream. Errors: MEMORY, DEVICE. */
gmxfmm_status treecode_upload(treecode* t, DeviceBuffer* buffer, const void* from, size_t bytes);

#endif
