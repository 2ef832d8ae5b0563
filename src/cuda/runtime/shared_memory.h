/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FMM_CUDA_SHARED_MEMORY_H
#define FMM_CUDA_SHARED_MEMORY_H

#include <cuda_runtime.h>

enum
{
    c_staticShared = 1024, /* bytes left for __shared__ variables, of which no kernel that is allowed this has more */
    c_mostAllowed  = 16
};

/* Kernels that the driver was told of, so that it is asked once a plan and not in every step. */
struct AllowedKernels
{
    const void* kernel[c_mostAllowed];
    int         num;
};

/* Dynamic shared memory that any kernel may have on the current device. */
static inline cudaError_t most_shared(int* bytes)
{
    int               device = 0;
    const cudaError_t error  = cudaGetDevice(&device);
    *bytes                   = 0;
    if (error != cudaSuccess)
    {
        return error;
    }
    const cudaError_t asked = cudaDeviceGetAttribute(bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    *bytes -= c_staticShared;
    return asked;
}

/* Allows a kernel as much, which is a limit and not a reservation. The limit is one for all plans of a process: were
 * each launch to set what it needs itself, plans of several threads would lower each other's. */
template <class Kernel>
static inline cudaError_t allow_shared(AllowedKernels* allowed, Kernel* kernel)
{
    const void* const address = reinterpret_cast<const void*>(kernel);
    int               bytes   = 0;
    for (int i = 0; i < allowed->num; i++)
    {
        if (allowed->kernel[i] == address)
        {
            return cudaSuccess;
        }
    }
    cudaError_t error = most_shared(&bytes);
    error =
        error == cudaSuccess ? cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) : error;
    if (error == cudaSuccess && allowed->num < c_mostAllowed)
    {
        allowed->kernel[allowed->num++] = address;
    }
    return error;
}

#endif
