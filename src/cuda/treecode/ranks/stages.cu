/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The stages of the treecode on several ranks, each with a device. An assign is that of one rank and what ranks tell
 * each other about it. In a step a rank whose device fails goes on to send and receive what others expect, and tells
 * the failure behind the sums.
 */
#include <cmath>
#include <cstdlib>
#include <new>

#include "cuda/treecode/memory.h"
#include "cuda/treecode/ranks/state.h"
#include "cuda/treecode/stages.h"
extern "C"
{
#include "fmm/clock.h"
#include "fmm/parallel/threads.h"
    extern const treecode_stages treecode_on_cuda; /* cuda/treecode/device.cu */
}

namespace
{

int isOnHost(const treecode* t, const void* array)
{
    DeviceScope           scope(t->options.device_id);
    cudaPointerAttributes attributes;
    const cudaError_t     error = cudaPointerGetAttributes(&attributes, array);
    (void)cudaGetLastError();
    return error != cudaSuccess || attributes.type != cudaMemoryTypeDevice;
}

const treecode_ranks_device c_device = {treecode_device_take_named, isOnHost};

gmxfmm_status makeMemory(treecode* t)
{
    const gmxfmm_comm*     comm = &t->ranks->ranks->comm;
    const size_t           num  = (size_t)comm->size;
    treecode_ranks_memory* m    = new (std::nothrow) treecode_ranks_memory();
    t->ranks->memory            = m;
    if (m == nullptr)
    {
        return treecode_no_memory(t);
    }
    m->shown        = static_cast<TreecodeShown*>(calloc(num, sizeof(*m->shown)));
    m->peers        = static_cast<TreecodePeer*>(calloc(num, sizeof(*m->peers)));
    m->offsets      = static_cast<int64_t*>(calloc(num, sizeof(*m->offsets)));
    m->peer_offsets = static_cast<int64_t*>(calloc(num, sizeof(*m->peer_offsets)));
    m->words        = static_cast<char*>(calloc(num, 1));
    if (m->shown == nullptr || m->peers == nullptr || m->offsets == nullptr || m->peer_offsets == nullptr ||
        m->words == nullptr)
    {
        return treecode_no_memory(t);
    }
    m->threads = fmm_ranks_are_threads(comm) != 0;
    FMM_CUDA(t, cudaStreamCreateWithFlags(&m->stream, cudaStreamNonBlocking));
    FMM_CUDA(t, cudaEventCreateWithFlags(&m->come, cudaEventDisableTiming));
    return GMXFMM_OK;
}

gmxfmm_status create(treecode* t)
{
    FMM_TRY(treecode_ranks_create(t, &treecode_on_cuda, &c_device));
    DeviceScope scope(t->options.device_id);
    return makeMemory(t);
}

void destroy(treecode* t)
{
    treecode_ranks_memory* m = t->ranks != nullptr ? t->ranks->memory : nullptr;
    if (m != nullptr)
    {
        DeviceScope scope(t->options.device_id);
        if (m->stream != nullptr)
        {
            (void)cudaStreamSynchronize(m->stream);
            (void)cudaStreamDestroy(m->stream);
        }
        if (m->come != nullptr)
        {
            (void)cudaEventDestroy(m->come);
        }
        if (m->peers != nullptr)
        {
            treecode_device_forget_peers(t);
        }
        (void)cudaFreeHost(m->host[0]);
        (void)cudaFreeHost(m->host[1]);
        free(m->shown);
        free(m->peers);
        free(m->offsets);
        free(m->peer_offsets);
        free(m->words);
        delete m;
        t->ranks->memory = nullptr;
    }
    treecode_ranks_destroy(t);
}

gmxfmm_status reserve(treecode* t)
{
    FMM_TRY(treecode_ranks_agree(t, treecode_on_cuda.reserve(t)));
    treecode_ranks_count(t);
    FMM_TRY(treecode_device_leave_peers(t));
    FMM_TRY(treecode_ranks_agree(t, treecode_device_reserve_parcels(t)));
    FMM_TRY(treecode_device_meet_peers(t));
    FMM_TRY(treecode_ranks_agree(t, treecode_device_reserve_staging(t)));
    t->info.bytes += t->ranks->bytes;
    return GMXFMM_OK;
}

gmxfmm_status gather(treecode* t, const void* x)
{
    t->ranks->memory->failed = treecode_on_cuda.gather(t, x);
    return GMXFMM_OK;
}

gmxfmm_status charges(treecode* t)
{
    treecode_ranks_memory* m = t->ranks->memory;
    m->failed                = m->failed == GMXFMM_OK ? treecode_on_cuda.charges(t) : m->failed;
    m->failed                = m->failed == GMXFMM_OK ? treecode_device_pack(t) : m->failed;
    return GMXFMM_OK;
}

gmxfmm_status wait(treecode* t)
{
    treecode_ranks_memory* m = t->ranks->memory;
    m->failed                = m->failed == GMXFMM_OK ? treecode_on_cuda.wait(t) : m->failed;
    return GMXFMM_OK;
}

/* Sums of the lists with what came, behind those of the own ones. */
gmxfmm_status addRemote(treecode* t, int with_field)
{
    treecode_device*             d = t->device;
    const treecode_ranks_memory* m = t->ranks->memory;
    DeviceScope                  scope(t->options.device_id);
    FMM_TRY(treecode_device_unpack(t));
    FMM_CUDA(t, cudaStreamWaitEvent(d->stream, m->come, 0));
    FMM_TRY(treecode_device_add_sums(t, &d->lists, &m->lists, t->options.precision, with_field, d->stream));
    if (t->options.dual)
    {
        FMM_TRY(treecode_device_add_sums(t, &d->point_lists, &m->point_lists, t->options.precision, 0, d->stream));
    }
    return treecode_device_end_sums(t, with_field, d->stream);
}

gmxfmm_status beginLocal(treecode* t, int with_field)
{
    DeviceScope scope(t->options.device_id);
    return treecode_device_begin_sums(t, with_field, t->device->stream);
}

/* The exchange of the host goes on beside local sums on the device. */
gmxfmm_status all_sums(treecode* t, int with_field)
{
    treecode_ranks*        r      = t->ranks;
    treecode_ranks_memory* m      = r->memory;
    m->failed                     = m->failed == GMXFMM_OK ? beginLocal(t, with_field) : m->failed;
    const double        begin     = fmm_time();
    const gmxfmm_status exchanged = treecode_device_exchange(t);
    r->time_exchange              = fmm_time() - begin;
    if (exchanged != GMXFMM_OK)
    {
        return exchanged;
    }
    m->failed = m->failed == GMXFMM_OK ? addRemote(t, with_field) : m->failed;
    return GMXFMM_OK;
}

/* Where the target stands whose sums are not finite. */
gmxfmm_status findBad(treecode* t)
{
    const DeviceClusters* targets = treecode_device_targets(t);
    for (int k = 0; k < 3; k++)
    {
        t->ranks->bad_place[k] = NAN;
        if (t->bad_target >= 0)
        {
            FMM_TRY(treecode_download(t, &t->ranks->bad_place[k], targets->x[k].as<double>() + t->bad_target,
                                      sizeof(double)));
        }
    }
    return GMXFMM_OK;
}

gmxfmm_status output(treecode* t, treecode_output* o)
{
    treecode_ranks_memory* m = t->ranks->memory;
    DeviceScope            scope(t->options.device_id);
    if (m->failed != GMXFMM_OK)
    {
        (void)cudaStreamSynchronize(m->stream); /* others may overwrite what this rank was about to read */
        return m->failed;
    }
    const gmxfmm_status status = treecode_on_cuda.output(t, o);
    if (status == GMXFMM_ERROR_COINCIDENT)
    {
        FMM_TRY(findBad(t));
    }
    return status;
}

} // namespace

extern "C" const treecode_stages treecode_on_cuda_ranks;
const treecode_stages            treecode_on_cuda_ranks = {
               0,
               create,
               destroy,
               treecode_ranks_take_charges,
               treecode_ranks_extent,
               treecode_ranks_trees,
               nullptr,
               treecode_ranks_lists,
               reserve,
               gather,
               charges,
               all_sums,
               output,
               wait,
               nullptr,
               nullptr,
};
