/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory of the device part of a treecode, and copies between host and device. */
#include "cuda/treecode/memory.h"

#include "cuda/treecode/copy.h"

gmxfmm_status fmm_cuda_failed(treecode* t, cudaError_t error, const char* call, const char* file, int line)
{
    return fmm_describe_failure(error, call, file, line, t->message, sizeof(t->message));
}

gmxfmm_status treecode_grow(treecode* t, DeviceBuffer* buffer, size_t bytes)
{
    FMM_CUDA(t, buffer->reserve(bytes > 0 ? bytes : 1)); /* an address even for nothing */
    return GMXFMM_OK;
}

gmxfmm_status treecode_grow_keep(treecode* t, DeviceBuffer* buffer, size_t bytes)
{
    if (bytes <= buffer->capacity)
    {
        return GMXFMM_OK;
    }
    void* memory = nullptr;
    FMM_CUDA(t, cudaMalloc(&memory, bytes));
    const cudaError_t copied =
        cudaMemcpyAsync(memory, buffer->memory, buffer->capacity, cudaMemcpyDeviceToDevice, t->device->stream);
    FMM_CUDA(t, cudaFree(buffer->memory)); /* waits */
    buffer->memory   = memory;
    buffer->capacity = bytes;
    FMM_CUDA(t, copied);
    return GMXFMM_OK;
}

/* Whether a copy is by way of staging: pageable memory of the host goes at an eighth of the bandwidth otherwise. */
static bool is_staged(const void* host, size_t bytes)
{
    cudaPointerAttributes attributes;
    if (bytes <= c_staging / 8)
    {
        return false;
    }
    const cudaError_t error = cudaPointerGetAttributes(&attributes, host);
    (void)cudaGetLastError();
    return error != cudaSuccess || attributes.type == cudaMemoryTypeUnregistered;
}

static size_t piece_of(size_t bytes, size_t begin)
{
    return bytes - begin < (size_t)c_staging ? bytes - begin : (size_t)c_staging;
}

static gmxfmm_status upload_staged(treecode* t, void* to, const void* from, size_t bytes)
{
    treecode_device* d = t->device;
    for (size_t begin = 0, k = 0; begin < bytes; begin += c_staging, k ^= 1)
    {
        const size_t piece = piece_of(bytes, begin);
        FMM_CUDA(t, cudaEventSynchronize(d->staged[k]));
        treecode_copy(d->staging[k], static_cast<const char*>(from) + begin, piece, t->options.num_threads);
        FMM_CUDA(t, cudaMemcpyAsync(static_cast<char*>(to) + begin, d->staging[k], piece, cudaMemcpyHostToDevice,
                                    d->stream));
        FMM_CUDA(t, cudaEventRecord(d->staged[k], d->stream));
    }
    return GMXFMM_OK;
}

static gmxfmm_status download_staged(treecode* t, void* to, const void* from, size_t bytes)
{
    treecode_device* d = t->device;
    for (size_t begin = 0, k = 0; begin < bytes + c_staging; begin += c_staging, k ^= 1)
    {
        if (begin < bytes)
        {
            FMM_CUDA(t, cudaMemcpyAsync(d->staging[k], static_cast<const char*>(from) + begin, piece_of(bytes, begin),
                                        cudaMemcpyDeviceToHost, d->stream));
            FMM_CUDA(t, cudaEventRecord(d->staged[k], d->stream));
        }
        if (begin >= c_staging) /* the one before, while this one is on its way */
        {
            const size_t before = begin - c_staging;
            FMM_CUDA(t, cudaEventSynchronize(d->staged[k ^ 1]));
            treecode_copy(static_cast<char*>(to) + before, d->staging[k ^ 1], piece_of(bytes, before),
                          t->options.num_threads);
        }
    }
    return GMXFMM_OK;
}

gmxfmm_status treecode_upload(treecode* t, DeviceBuffer* buffer, const void* from, size_t bytes)
{
    FMM_TRY(treecode_grow(t, buffer, bytes));
    if (is_staged(from, bytes))
    {
        return upload_staged(t, buffer->memory, from, bytes);
    }
    if (bytes > 0)
    {
        FMM_CUDA(t, cudaMemcpyAsync(buffer->memory, from, bytes, cudaMemcpyDefault, t->device->stream));
    }
    return GMXFMM_OK;
}

gmxfmm_status treecode_download(treecode* t, void* to, const void* from, size_t bytes)
{
    if (is_staged(to, bytes))
    {
        FMM_TRY(download_staged(t, to, from, bytes));
    }
    else if (bytes > 0)
    {
        FMM_CUDA(t, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, t->device->stream));
    }
    FMM_CUDA(t, cudaStreamSynchronize(t->device->stream));
    return GMXFMM_OK;
}

/* Whether that is memory of this plan's device, or of no device in particular. */
static bool is_there(const treecode* t, const void* x)
{
    cudaPointerAttributes attributes;
    if (cudaPointerGetAttributes(&attributes, x) != cudaSuccess)
    {
        (void)cudaGetLastError();
        return false;
    }
    return attributes.type == cudaMemoryTypeManaged ||
           (attributes.type == cudaMemoryTypeDevice && attributes.device == t->options.device_id);
}

gmxfmm_status treecode_on_device(treecode* t, const void** x, DeviceBuffer* copy, size_t bytes)
{
    if (bytes > 0 && !is_there(t, *x))
    {
        FMM_TRY(treecode_upload(t, copy, *x, bytes));
        *x = copy->memory;
    }
    return GMXFMM_OK;
}
