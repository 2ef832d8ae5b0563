/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A kernel has 48 KiB of dynamic shared memory unless the driver was told, by a call for that kernel, that it may have
 * more. Kernels that take more are allowed all that the device has before they are launched.
 */
#ifndef FMM_CUDA_SHARED_MEMORY_H
#define FMM_CUDA_SHARED_MEMORY_H

#include "cuda/runtime/device_limits.h"

enum
{
    c_mostAllowed = 16 /* kernels of a plan that are remembered; any others are allowed again in each step */
};

/* Kernels that were allowed it: a plan tells the driver once, when a kernel is first launched, and not in each step. */
struct AllowedKernels
{
    const void* kernel[c_mostAllowed];
    int         num;
};

/* Allows a kernel all that the device has, which is a limit and not a reservation. The limit is one for all plans of a
 * process: were each launch to set what it needs itself, plans of several threads would lower each other's. */
template <class Kernel>
static inline cudaError_t allow_shared(AllowedKernels* allowed, Kernel* kernel)
{
    const void* const address = reinterpret_cast<const void*>(kernel);
    for (int i = 0; i < allowed->num; i++)
    {
        if (allowed->kernel[i] == address)
        {
            return cudaSuccess;
        }
    }
    DeviceLimits limits;
    cudaError_t  error = current_device_limits(&limits);
    if (error == cudaSuccess)
    {
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, limits.max_shared);
    }
    if (error == cudaSuccess && allowed->num < c_mostAllowed)
    {
        allowed->kernel[allowed->num++] = address;
    }
    return error;
}

#endif
