/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Life cycle and memory of the device part of a treecode. */
#include "cuda/treecode/device.h"

#include <cstdlib>

#include "cuda/device.h"

gmxfmm_status treecode_cuda_failed(treecode* t, cudaError_t error, const char* call, const char* file, int line)
{
    return treecode_fail(t, GMXFMM_ERROR_DEVICE, "%s: %s (%s:%d)", cudaGetErrorString(error), call, file, line);
}

gmxfmm_status treecode_grow(treecode* t, TreecodeBuffer* buffer, size_t bytes)
{
    if (bytes <= buffer->capacity && buffer->memory != nullptr)
    {
        return GMXFMM_OK;
    }
    TREECODE_CUDA(t, cudaFree(buffer->memory));
    buffer->memory   = nullptr;
    buffer->capacity = 0;
    if (cudaMalloc(&buffer->memory, bytes + 16) != cudaSuccess)
    {
        (void)cudaGetLastError();
        buffer->memory = nullptr;
        return treecode_fail(t, GMXFMM_ERROR_MEMORY, "out of memory on the device: %zu bytes", bytes);
    }
    buffer->capacity = bytes;
    return GMXFMM_OK;
}

gmxfmm_status treecode_upload(treecode* t, TreecodeBuffer* buffer, const void* from, size_t bytes)
{
    const gmxfmm_status status = treecode_grow(t, buffer, bytes);
    if (status != GMXFMM_OK || bytes == 0)
    {
        return status;
    }
    TREECODE_CUDA(t, cudaMemcpyAsync(buffer->memory, from, bytes, cudaMemcpyHostToDevice, t->device->stream));
    return GMXFMM_OK;
}

gmxfmm_status treecode_device_create(treecode* t)
{
    gmxfmm_status status = fmm_device_check(t->options.device_id, t->message, sizeof(t->message));
    if (status != GMXFMM_OK)
    {
        return status;
    }
    t->device = static_cast<treecode_device*>(calloc(1, sizeof(treecode_device)));
    if (t->device == nullptr)
    {
        return treecode_fail(t, GMXFMM_ERROR_MEMORY, "out of memory");
    }
    TREECODE_CUDA(t, cudaSetDevice(t->options.device_id));
    TREECODE_CUDA(t, cudaStreamCreateWithFlags(&t->device->stream, cudaStreamNonBlocking));
    return GMXFMM_OK;
}

void treecode_device_destroy(treecode* t)
{
    treecode_device* d = t->device;
    if (d == nullptr)
    {
        return;
    }
    (void)cudaSetDevice(t->options.device_id);
    if (d->stream != nullptr)
    {
        (void)cudaStreamSynchronize(d->stream);
        (void)cudaStreamDestroy(d->stream);
    }
    TreecodeBuffer* const buffers[] = {&d->x[0],         &d->x[1],         &d->x[2],        &d->q,
                                       &d->low,          &d->high,         &d->begin,       &d->end,
                                       &d->child,        &d->num_children, &d->leaf,        &d->charge,
                                       &d->target_x[0],  &d->target_x[1],  &d->target_x[2], &d->target_low,
                                       &d->target_high,  &d->cluster,      &d->direct,      &d->approximated_start,
                                       &d->direct_start, &d->approximated, &d->tile,        &d->phi,
                                       &d->slope[0],     &d->slope[1],     &d->slope[2]};
    for (TreecodeBuffer* buffer : buffers)
    {
        (void)cudaFree(buffer->memory);
    }
    free(d->tiles);
    free(d);
    t->device = nullptr;
}

gmxfmm_status treecode_device_reserve(treecode* t)
{
    treecode_device*         d = t->device;
    const treecode_clusters* s = &t->sources;
    const treecode_lists*    l = &t->lists;
    const size_t             n = (size_t)t->n, m = (size_t)t->num_targets, num = (size_t)s->num;
    const size_t             batches  = (size_t)l->num + 1;
    const size_t             listed[] = {l->num > 0 ? (size_t)l->approximated_start[l->num] : 0,
                             l->num > 0 ? (size_t)l->direct_start[l->num] : 0};
    const struct
    {
        TreecodeBuffer* buffer;
        size_t          bytes;
    } wanted[] = {
        {&d->x[0], n * sizeof(double)},
        {&d->x[1], n * sizeof(double)},
        {&d->x[2], n * sizeof(double)},
        {&d->q, n * sizeof(double)},
        {&d->low, 3 * num * sizeof(double)},
        {&d->high, 3 * num * sizeof(double)},
        {&d->begin, num * sizeof(int64_t)},
        {&d->end, num * sizeof(int64_t)},
        {&d->child, num * sizeof(int)},
        {&d->num_children, num * sizeof(int)},
        {&d->leaf, (size_t)s->num_leaves * sizeof(int)},
        {&d->charge, t->charge_bytes},
        {&d->target_x[0], t->separate ? m * sizeof(double) : 0},
        {&d->target_x[1], t->separate ? m * sizeof(double) : 0},
        {&d->target_x[2], t->separate ? m * sizeof(double) : 0},
        {&d->target_low, t->separate ? 3 * (size_t)t->own_targets.num * sizeof(double) : 0},
        {&d->target_high, t->separate ? 3 * (size_t)t->own_targets.num * sizeof(double) : 0},
        {&d->cluster, batches * sizeof(int)},
        {&d->approximated_start, batches * sizeof(int64_t)},
        {&d->direct_start, batches * sizeof(int64_t)},
        {&d->approximated, listed[0] * sizeof(int)},
        {&d->direct, listed[1] * sizeof(int)},
        {&d->phi, m * sizeof(double)},
        {&d->slope[0], m * sizeof(double)},
        {&d->slope[1], m * sizeof(double)},
        {&d->slope[2], m * sizeof(double)},
    };
    TREECODE_CUDA(t, cudaSetDevice(t->options.device_id));
    for (const auto& one : wanted)
    {
        const gmxfmm_status status = treecode_grow(t, one.buffer, one.bytes);
        if (status != GMXFMM_OK)
        {
            return status;
        }
    }
    return GMXFMM_OK;
}
