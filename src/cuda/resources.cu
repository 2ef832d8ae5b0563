/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory and streams of a plan's device. */
#include "cuda/resources.h"

gmxfmm_status fmm_cuda_failed(gmxfmm_plan* plan, cudaError_t error, const char* call, const char* file, int line)
{
    return fmm_describe_failure(error, call, file, line, plan->message, sizeof(plan->message));
}

gmxfmm_status fmm_device_reserve(gmxfmm_plan* plan, DeviceBuffer* buffer, size_t bytes)
{
    if (bytes <= buffer->capacity && buffer->memory != NULL)
    {
        return GMXFMM_OK;
    }
    plan->bytes -= buffer->capacity;
    const cudaError_t error = buffer->reserve((bytes + 511) / 256 * 256);
    plan->bytes += buffer->capacity;
    FMM_CUDA(plan, error);
    return GMXFMM_OK;
}

gmxfmm_status
fmm_cuda_reserve_like(gmxfmm_plan* plan, const fmm_device* device, DeviceBuffer* buffer, const DeviceBuffer& other)
{
    DeviceScope scope(device->id);
    return fmm_device_reserve(plan, buffer, other.capacity);
}

void fmm_device_release(gmxfmm_plan* plan, DeviceBuffer* buffer)
{
    plan->bytes -= buffer->capacity;
    buffer->release();
}

gmxfmm_status fmm_cuda_upload(gmxfmm_plan* plan, void* to, const void* from, size_t bytes)
{
    if (bytes > 0)
    {
        FMM_CUDA(plan, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, plan->device->schedule.own));
        FMM_CUDA(plan, cudaStreamSynchronize(plan->device->schedule.own));
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_assign_results(gmxfmm_plan* plan, AssignResults* results, cudaStream_t stream)
{
    const void* found = plan->device->particles.assign_results.memory;
    FMM_CUDA(plan, cudaMemcpyAsync(results, found, sizeof(*results), cudaMemcpyDeviceToHost, stream));
    FMM_CUDA(plan, cudaStreamSynchronize(stream));
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_is_capturing(gmxfmm_plan* plan, cudaStream_t stream, bool* capturing)
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    FMM_CUDA(plan, cudaStreamIsCapturing(stream, &status));
    *capturing = status != cudaStreamCaptureStatusNone;
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_near_priority(gmxfmm_plan* plan, int* priority)
{
    int low = 0, high = 0; /* smaller numbers are higher priorities */
    FMM_CUDA(plan, cudaDeviceGetStreamPriorityRange(&low, &high));
    *priority = low - high > 1 ? low - 1 : low;
    return GMXFMM_OK;
}
