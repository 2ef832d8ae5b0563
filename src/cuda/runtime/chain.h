/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Launches of short kernels in a row, each of which reads what the one before it wrote. Blocks of the next kernel are
 * placed on the multiprocessors as soon as all blocks of this one have left, and wait there for its end (CUDA
 * Programming Guide, Programmatic Dependent Launch). They are not placed earlier by a trigger: they would then go
 * wherever there is room, unevenly, which costs small systems more than it gains. Devices before compute capability 9.0
 * launch the kernels one after the other. */
#ifndef FMM_CUDA_CHAIN_H
#define FMM_CUDA_CHAIN_H

#include <utility>

#include <cuda_runtime.h>

/* Every thread of a kernel launched by launch_next must call this before it reads what the kernel before may have
 * written, or writes what that one may read. Since each kernel of a chain ends only after this call has returned, all
 * earlier ones have ended then, too. */
static __device__ __forceinline__ void wait_for_previous()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

/* Launches a kernel that calls wait_for_previous, after whatever is in the stream. */
template <class... Parameters, class... Arguments>
static inline cudaError_t launch_next(bool has_chains,
                                      void (*kernel)(Parameters...),
                                      dim3         grid,
                                      unsigned     threads,
                                      size_t       shared,
                                      cudaStream_t stream,
                                      const Arguments&... arguments)
{
    cudaLaunchAttribute early                        = {};
    early.id                                         = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config                        = {};
    config.gridDim                                   = grid;
    config.blockDim                                  = dim3(threads);
    config.dynamicSmemBytes                          = shared;
    config.stream                                    = stream;
    config.attrs                                     = &early;
    config.numAttrs                                  = has_chains ? 1 : 0;
    return cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
}

#endif
