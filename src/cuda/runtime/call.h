/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls that may fail: a failure becomes a status, and a message with the call's text and place. */
#ifndef FMM_CUDA_CALL_H
#define FMM_CUDA_CALL_H

#include <stdio.h>
#include <string.h>

#include <cuda_runtime.h>

extern "C"
{
#include "fmm/gmxfmm.h"
}

/* Returns from the caller with the status of a failed call of CUDA. owner: whose message it is; for its type there is
 * fmm_cuda_failed(owner, error, call, file, line). */
#define FMM_CUDA(owner, call)                                                                                          \
    do                                                                                                                 \
    {                                                                                                                  \
        const cudaError_t error_ = (call);                                                                             \
        if (error_ != cudaSuccess)                                                                                     \
        {                                                                                                              \
            return fmm_cuda_failed(owner, error_, #call, __FILE__, __LINE__);                                          \
        }                                                                                                              \
    } while (0)

/* Passes a status other than OK on. */
#define FMM_TRY(expression)                                                                                            \
    do                                                                                                                 \
    {                                                                                                                  \
        const gmxfmm_status status_ = (expression);                                                                    \
        if (status_ != GMXFMM_OK)                                                                                      \
        {                                                                                                              \
            return status_;                                                                                            \
        }                                                                                                              \
    } while (0)

/* Status of a failed call, and the message[size]. */
static inline gmxfmm_status
fmm_describe_failure(cudaError_t error, const char* call, const char* file, int line, char* message, size_t size)
{
    const char* name = strrchr(file, '/');
    cudaGetLastError(); /* so that the next call does not report it again */
    snprintf(message, size, "%s (%s in %s:%d)", cudaGetErrorString(error), call, name != NULL ? name + 1 : file, line);
    return error == cudaErrorMemoryAllocation ? GMXFMM_ERROR_MEMORY : GMXFMM_ERROR_DEVICE;
}

#endif
