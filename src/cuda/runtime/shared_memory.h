/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Permission for kernels to use much shared memory. A kernel has 48 KiB of dynamic shared memory unless a call for that
 * kernel told the driver that it may have more. Kernels that need more are allowed all that the device has before they
 * are launched. */
#ifndef FMM_CUDA_SHARED_MEMORY_H
#define FMM_CUDA_SHARED_MEMORY_H

#include "cuda/runtime/device_limits.h"

enum
{
    c_mostAllowed = 20 /* kernels that a plan remembers; for any others the driver is called in each step */
};

/* Kernels that were allowed it, so that a plan calls the driver once, when a kernel is first launched, and not in each
 * step. */
struct AllowedKernels
{
    const void* kernel[c_mostAllowed];
    int         num;
};

/* Allows a kernel all shared memory of the device. This is a limit and not a reservation, and all plans of a process
 * share it: if each launch set only what it needs itself, plans in several threads would lower each other's limits. */
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
