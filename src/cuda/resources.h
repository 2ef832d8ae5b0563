/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory and streams of a plan's device: failures, room, copies, graphs that are being captured. */
#ifndef FMM_CUDA_RESOURCES_H
#define FMM_CUDA_RESOURCES_H

#include "cuda/state.h"

/* What FMM_CUDA of runtime/call.h needs for a plan: sets the plan's message. */
gmxfmm_status fmm_cuda_failed(gmxfmm_plan* plan, cudaError_t error, const char* call, const char* file, int line);

/* Makes *buffer hold at least `bytes`; what it held is lost if it grows. Errors: MEMORY. */
gmxfmm_status fmm_device_reserve(gmxfmm_plan* plan, DeviceBuffer* buffer, size_t bytes);

/* The same on a device, for as many bytes as another array. */
gmxfmm_status
fmm_cuda_reserve_like(gmxfmm_plan* plan, const fmm_device* device, DeviceBuffer* buffer, const DeviceBuffer& other);

/* Gives its memory back. Nothing that uses it may be enqueued. */
void fmm_device_release(gmxfmm_plan* plan, DeviceBuffer* buffer);

/* Copies from the host, and waits: cudaMemcpy may return before the last of pageable memory has arrived, and streams of
 * the library do not wait for the default one. Not for steps. */
gmxfmm_status fmm_cuda_upload(gmxfmm_plan* plan, void* to, const void* from, size_t bytes);

/* Waits for an assignment on the stream and copies what the device counted in it. */
gmxfmm_status fmm_cuda_assign_results(gmxfmm_plan* plan, AssignResults* results, cudaStream_t stream);

/* Whether what is enqueued on the stream becomes part of a graph. */
gmxfmm_status fmm_cuda_is_capturing(gmxfmm_plan* plan, cudaStream_t stream, bool* capturing);

/* Priority of the near field's stream on the current device: one above the lowest. */
gmxfmm_status fmm_cuda_near_priority(gmxfmm_plan* plan, int* priority);

#endif
