/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Short kernels in a row, each of which needs what the one before it wrote: blocks of the next one are brought to the
 * multiprocessors as soon as all of this one have left, and wait for its end there (CUDA Programming Guide,
 * Programmatic Dependent Launch). Not earlier, by a trigger: blocks would then stand wherever there is room, and not
 * evenly, which costs small systems more than it gains. Devices before 9.0 launch them one after the other.
 */
#ifndef FMM_CUDA_CHAIN_H
#define FMM_CUDA_CHAIN_H

#include <utility>

#include <cuda_runtime.h>

/* In all threads of a kernel that launch_next launches, before anything that the kernel before it may have written is
 * read, or what it may read is written. A kernel ends only after it has been here: all earlier ones have ended, too. */
static __device__ __forceinline__ void wait_for_previous()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

/* Launches a kernel that calls wait_for_previous behind whatever the stream has. */
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
