/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What naming has made on the host (fmm/treecode/ranks/essential.c) goes to the device: the named clusters behind the
 * own ones, room for their particles, and lists of the own batches with them. */
#include <climits>
#include <new>
#include <vector>

#include "cuda/treecode/memory.h"
#include "cuda/treecode/ranks/state.h"
#include "cuda/treecode/stages.h"

namespace
{

/* Kernels count particles by int, some beyond the last one. */
const int64_t c_mostParticles = INT_MAX - 65536;

template <class T>
gmxfmm_status put(treecode* t, T* to, const T* from, size_t num)
{
    if (num > 0)
    {
        FMM_CUDA(t, cudaMemcpyAsync(to, from, num * sizeof(T), cudaMemcpyHostToDevice, t->device->stream));
    }
    return GMXFMM_OK;
}

/* Numbers first .. first + num - 1 of clusters. */
gmxfmm_status putClusters(treecode* t, int first, int num)
{
    const treecode_clusters* s    = &t->sources;
    DeviceClusters*          tree = &t->device->sources;
    const size_t             at = (size_t)first, more = (size_t)num;
    std::vector<int>         begin(more), end(more);
    for (size_t i = 0; i < more; i++)
    {
        begin[i] = (int)s->begin[at + i];
        end[i]   = (int)s->end[at + i];
    }
    FMM_TRY(put(t, tree->low.as<double>() + 3 * at, s->low + 3 * at, 3 * more));
    FMM_TRY(put(t, tree->high.as<double>() + 3 * at, s->high + 3 * at, 3 * more));
    FMM_TRY(put(t, tree->begin.as<int>() + at, begin.data(), more));
    FMM_TRY(put(t, tree->end.as<int>() + at, end.data(), more));
    FMM_CUDA(t, cudaStreamSynchronize(t->device->stream)); /* the host's arrays may go */
    return GMXFMM_OK;
}

/* Lists on the device; on the host remain the numbers of pairs of the own lists and these. */
gmxfmm_status putLists(treecode* t, DeviceLists* to, treecode_lists* lists, const DeviceLists* own)
{
    FMM_TRY(treecode_device_upload_lists(t, to, lists));
    treecode_lists_free(lists);
    lists->pairs = own->pairs + to->pairs;
    return GMXFMM_OK;
}

gmxfmm_status take(treecode* t)
{
    treecode_device*       d   = t->device;
    treecode_ranks*        r   = t->ranks;
    const int              own = d->sources.num, num_ranks = r->ranks->comm.size;
    treecode_ranks_memory* m         = r->memory;
    const int64_t          particles = t->n + t->imported;
    int64_t                named     = 0;
    for (int i = 0; i < num_ranks; i++)
    {
        named += r->take[i].points + r->take[i].others;
    }
    if (particles > c_mostParticles)
    {
        return treecode_fail(t, GMXFMM_ERROR_MEMORY,
                             "%lld particles are near those of this rank or its own: use more ranks",
                             (long long)particles);
    }
    FMM_TRY(treecode_device_reserve_clusters(t, &d->sources, own + (int)named));
    for (DeviceBuffer& x : d->sources.x)
    {
        FMM_TRY(treecode_grow_keep(t, &x, (size_t)particles * sizeof(double)));
    }
    FMM_TRY(putClusters(t, own, (int)named));
    FMM_TRY(putLists(t, &m->lists, &t->lists, &d->lists));
    return t->options.dual ? putLists(t, &m->point_lists, &t->point_lists, &d->point_lists) : GMXFMM_OK;
}

} // namespace

gmxfmm_status treecode_device_take_named(treecode* t)
{
    DeviceScope scope(t->options.device_id);
    try
    {
        return take(t);
    }
    catch (const std::bad_alloc&)
    {
        return treecode_no_memory(t);
    }
}
