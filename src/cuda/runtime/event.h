/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Events of the caller. */
#ifndef FMM_CUDA_EVENT_H
#define FMM_CUDA_EVENT_H

#include <cuda_runtime.h>

/* Records the event if it is not NULL. In a stream that captures a graph, the event is recorded at each launch of the
 * graph. */
static inline cudaError_t record_for_caller(void* event, cudaStream_t stream)
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaError_t       error  = event != NULL ? cudaStreamIsCapturing(stream, &status) : cudaSuccess;
    if (event == NULL || error != cudaSuccess)
    {
        return error;
    }
    return cudaEventRecordWithFlags(static_cast<cudaEvent_t>(event), stream,
                                    status != cudaStreamCaptureStatusNone ? cudaEventRecordExternal
                                                                          : cudaEventRecordDefault);
}

#endif
