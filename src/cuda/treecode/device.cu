/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Life cycle and memory of the device part of a treecode. */
#include "cuda/treecode/device.h"

#include <cstdlib>
#include <new>

#include "cuda/device.h"

gmxfmm_status fmm_cuda_failed(treecode* t, cudaError_t error, const char* call, const char* file, int line)
{
    return fmm_describe_failure(error, call, file, line, t->message, sizeof(t->message));
}

gmxfmm_status treecode_grow(treecode* t, DeviceBuffer* buffer, size_t bytes)
{
    FMM_CUDA(t, buffer->reserve(bytes > 0 ? bytes : 1)); /* an address even for nothing */
    return GMXFMM_OK;
}

gmxfmm_status treecode_upload(treecode* t, DeviceBuffer* buffer, const void* from, size_t bytes)
{
    FMM_TRY(treecode_grow(t, buffer, bytes));
    if (bytes > 0)
    {
        FMM_CUDA(t, cudaMemcpyAsync(buffer->memory, from, bytes, cudaMemcpyHostToDevice, t->device->stream));
    }
    return GMXFMM_OK;
}

static gmxfmm_status create(treecode* t)
{
    const int id = t->options.device_id;
    FMM_TRY(fmm_device_check(id, t->message, sizeof(t->message)));
    t->device = new (std::nothrow) treecode_device();
    if (t->device == nullptr)
    {
        return treecode_fail(t, GMXFMM_ERROR_MEMORY, "out of memory");
    }
    DeviceScope scope(id);
    FMM_CUDA(t, device_limits(id, &t->device->limits));
    FMM_CUDA(t, cudaStreamCreateWithFlags(&t->device->stream, cudaStreamNonBlocking));
    return GMXFMM_OK;
}

static void destroy(treecode* t)
{
    treecode_device* d = t->device;
    if (d == nullptr)
    {
        return;
    }
    DeviceScope scope(t->options.device_id);
    if (d->stream != nullptr)
    {
        (void)cudaStreamSynchronize(d->stream);
        (void)cudaStreamDestroy(d->stream);
    }
    free(d->tiles);
    delete d;
    t->device = nullptr;
}

static gmxfmm_status reserve(treecode* t)
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
        DeviceBuffer* buffer;
        size_t        bytes;
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
    const size_t shared = treecode_device_charges_shared(t->options.degree);
    if (shared > (size_t)d->limits.max_shared)
    {
        return treecode_fail(t, GMXFMM_ERROR_UNSUPPORTED,
                             "degree %d needs %zu bytes of shared memory, the device has %d: choose a smaller degree",
                             t->options.degree, shared, d->limits.max_shared);
    }
    DeviceScope scope(t->options.device_id);
    for (const auto& one : wanted)
    {
        FMM_TRY(treecode_grow(t, one.buffer, one.bytes));
    }
    return GMXFMM_OK;
}

extern "C" const treecode_stages treecode_on_cuda;
const treecode_stages treecode_on_cuda = {0 /* no dual traversal */, create, destroy, reserve, treecode_device_charges,
                                          treecode_device_sums};
