/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Compute capability and memory limits of a device. No other file queries them. */
#ifndef FMM_CUDA_DEVICE_LIMITS_H
#define FMM_CUDA_DEVICE_LIMITS_H

#include <cuda_runtime.h>

enum
{
    c_leastCapability = 80,  /* for asynchronous copies to shared memory (cp.async) and reductions in a warp */
    c_staticShared    = 1024 /* bytes kept for __shared__ variables of kernels with much dynamic memory */
};

struct DeviceLimits
{
    int capability; /* 10 major + minor */
    int max_shared; /* dynamic shared memory that a block may have, bytes */
    int processors; /* multiprocessors */
};

static inline cudaError_t device_limits(int id, DeviceLimits* limits)
{
    int         major = 0, minor = 0, shared = 0;
    cudaError_t error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, id);
    error = error == cudaSuccess ? cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, id) : error;
    error = error == cudaSuccess ? cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, id) : error;
    error =
        error == cudaSuccess ? cudaDeviceGetAttribute(&limits->processors, cudaDevAttrMultiProcessorCount, id) : error;
    limits->capability = 10 * major + minor;
    limits->max_shared = shared - c_staticShared;
    return error;
}

/* Of the current device. */
static inline cudaError_t current_device_limits(DeviceLimits* limits)
{
    int               id    = 0;
    const cudaError_t error = cudaGetDevice(&id);
    return error == cudaSuccess ? device_limits(id, limits) : error;
}

#endif
