/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which devices share steps, and the near field on them: room, what they copy, the order in which they wait. */
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "cuda/devices/devices.h"
#include "cuda/near/near.h"

enum
{
    c_threads    = 256,
    c_blocks     = 8, /* of a kernel that copies, on a multiprocessor: loads from another device take long */
    c_sameTiles  = 8, /* shares stay while the number of tiles changes by less than an eighth */
    c_boxNumbers = sizeof(BoxValues) / sizeof(double)
};

/* Of a device: what its range is made of on the first, and where copies are on its own; the first needs none. */
struct AssignArgs
{
    const int *    num_tiles, *cell_start, *special_start;
    const Tile*    tiles;
    const Special* specials;
    const int4*    near_vectors;
    TileRange*     range;
    int *          cell_start_copy, *special_start_copy;
    Tile*          tiles_copy;
    Special*       specials_copy;
    int4*          near_vectors_copy;
    int            begin_share, end_share;
    int            layers, area, num_near, extent; /* of cells; extent of near vectors across layers */
    int            far_first, far_end;             /* layers that the far field needs */
};

/* Whether sources of a layer are near the layers from `from` to `to`, which may go on at the other end of the box. */
static __device__ inline bool is_between(int layer, int layers, int from, int to)
{
    return (layer >= from && layer < to) || (layer - layers >= from && layer - layers < to) ||
           (layer + layers >= from && layer + layers < to);
}

/* One thread. */
__global__ void find_range(AssignArgs a)
{
    const int all = *a.num_tiles, end = tiles_before(all, a.end_share);
    TileRange r  = {};
    r.first_tile = tiles_before(all, a.begin_share);
    r.num_tiles  = end - r.first_tile;
    int from = 0, to = 0, runs = 0;
    if (r.num_tiles > 0)
    {
        const Tile low = a.tiles[r.first_tile], high = a.tiles[end - 1];
        from            = (low.z & 0xffff) - a.extent;
        to              = (high.z & 0xffff) + 1 + a.extent;
        r.first_target  = low.x;
        r.end_target    = high.x + high.y;
        r.first_special = a.special_start[r.first_target];
        r.end_special   = a.special_start[r.end_target];
    }
    bool before = false;
    for (int layer = 0; layer <= a.layers; layer++)
    {
        const bool needed =
            layer < a.layers && (is_between(layer, a.layers, from, to) || (layer >= a.far_first && layer < a.far_end));
        if (needed && !before)
        {
            r.first[runs] = a.cell_start[layer * a.area];
        }
        if (before && !needed)
        {
            r.end[runs++] = a.cell_start[layer * a.area];
        }
        before = needed;
    }
    *a.range = r;
}

template <class T>
static __device__ void copy(const T* from, T* to, size_t num)
{
    for (size_t i = blockIdx.x * static_cast<size_t>(c_threads) + threadIdx.x; i < num;
         i += gridDim.x * static_cast<size_t>(c_threads))
    {
        to[i] = from[i];
    }
}

__global__ void __launch_bounds__(c_threads) copy_cells(AssignArgs a)
{
    const TileRange r = *a.range;
    copy(a.cell_start, a.cell_start_copy, static_cast<size_t>(a.layers) * a.area + 1);
    if (r.num_tiles > 0)
    {
        const size_t targets = static_cast<size_t>(r.end_target - r.first_target);
        copy(a.near_vectors, a.near_vectors_copy, static_cast<size_t>(a.num_near));
        copy(a.tiles + r.first_tile, a.tiles_copy, static_cast<size_t>(r.num_tiles));
        copy(a.special_start + r.first_target, a.special_start_copy + r.first_target, targets + 1);
        copy(a.specials + r.first_special, a.specials_copy + r.first_special,
             static_cast<size_t>(r.end_special - r.first_special));
    }
}

/* What changes from step to step. Particles are copied as words of 16 bytes. Those of some cells are there already. */
struct FetchArgs
{
    const TileRange* range;
    const int*       cell_start;
    int              begin_sent, end_sent; /* cells */
    const uint4 *    sources, *targets;
    uint4 *          sources_copy, *targets_copy; /* the latter NULL: targets are the sources */
    int              words;                       /* of a particle */
    const double*    box;
    double*          box_copy;
};

static __device__ void fetch_sources(const FetchArgs& a, int first, int end)
{
    const size_t at = static_cast<size_t>(first) * a.words;
    copy(a.sources + at, a.sources_copy + at, end > first ? static_cast<size_t>(end - first) * a.words : 0);
}

__global__ void __launch_bounds__(c_threads) fetch_particles(FetchArgs a)
{
    const TileRange r = *a.range;
    if (blockIdx.x == 0 && threadIdx.x < c_boxNumbers)
    {
        a.box_copy[threadIdx.x] = a.box[threadIdx.x];
    }
    const int begin_sent = a.cell_start[a.begin_sent], end_sent = a.cell_start[a.end_sent];
    for (int i = 0; i < c_runs; i++)
    {
        const int before = min(r.end[i], begin_sent), after = max(r.first[i], end_sent);
        fetch_sources(a, r.first[i], end_sent > begin_sent ? before : r.end[i]);
        fetch_sources(a, after, end_sent > begin_sent ? r.end[i] : after);
    }
    if (a.targets_copy != NULL)
    {
        const size_t first = static_cast<size_t>(r.first_target) * a.words;
        copy(a.targets + first, a.targets_copy + first, static_cast<size_t>(r.end_target - r.first_target) * a.words);
    }
}

void fmm_cuda_add_note(DeviceGroup* group, const char* format, ...)
{
    char    text[sizeof(group->note)];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (std::strstr(group->note, text) == NULL)
    {
        const size_t length = std::strlen(group->note);
        std::snprintf(group->note + length, sizeof(group->note) - length, "%s%s", length > 0 ? "; " : "", text);
    }
}

/* Lets kernels on a device reach the memory of another. It stays so, since other plans may use it. *why: NULL, or why
 * they cannot: the machine has no way between the two, or a device is connected with as many as it can be. */
static gmxfmm_status enable_access(gmxfmm_plan* plan, int id, int other, const char** why)
{
    int can = 1;
    *why    = NULL;
    if (id == other)
    {
        return GMXFMM_OK;
    }
    FMM_CUDA(plan, cudaDeviceCanAccessPeer(&can, id, other));
    if (!can)
    {
        *why = "no peer access";
        return GMXFMM_OK;
    }
    DeviceScope       scope(id);
    const cudaError_t error = cudaDeviceEnablePeerAccess(other, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled || error == cudaErrorTooManyPeers)
    {
        *why = error == cudaErrorTooManyPeers ? "too many peers" : NULL;
        cudaGetLastError(); /* so that the next call does not report it again */
        return GMXFMM_OK;
    }
    return error == cudaSuccess
               ? GMXFMM_OK
               : fmm_fail(plan, GMXFMM_ERROR_DEVICE, "device %d cannot be given access to memory of device %d: %s", id,
                          other, cudaGetErrorString(error));
}

/* The same between all devices, as far as there are ways. */
static gmxfmm_status connect_all(gmxfmm_plan* plan, DeviceGroup* group)
{
    group->connected = true;
    for (int i = 0; i < group->num; i++)
    {
        for (int k = 0; k < group->num; k++)
        {
            const char* why = NULL;
            const int   id = plan->device[i].id, other = plan->device[k].id;
            FMM_TRY(enable_access(plan, id, other, &why));
            if (why != NULL && group->connected)
            {
                fmm_cuda_add_note(
                    group, "the far field is on device %d alone: device %d cannot reach memory of device %d (%s)",
                    plan->device->id, id, other, why);
            }
            group->connected = group->connected && why == NULL;
        }
    }
    return GMXFMM_OK;
}

/* Shares asked for, of the devices that are used: the k-th is device used[k] of the options. False, and *share as it
 * is: none. */
static bool take_shares(const double* asked, const int* used, int num, double* share)
{
    double sum = 0;
    for (int k = 0; k < num; k++)
    {
        sum += asked[used[k]];
    }
    for (int k = 0; k < num && sum > 0; k++)
    {
        share[k] = asked[used[k]] / sum;
    }
    return sum > 0;
}

gmxfmm_status fmm_cuda_create_group(gmxfmm_plan* plan)
{
    const gmxfmm_options* o                        = &plan->options;
    int                   used[GMXFMM_MAX_DEVICES] = {0};
    DeviceGroup*          group                    = new (std::nothrow) DeviceGroup();
    plan->device->group                            = group;
    if (group == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory");
    }
    group->num                     = 1;
    plan->device->range.end_octant = c_octants;
    FMM_CUDA(plan, cudaEventCreateWithFlags(&group->fork, cudaEventDisableTiming));
    for (int i = 1; i < o->num_devices; i++)
    {
        const char* why = NULL;
        FMM_TRY(enable_access(plan, o->devices[i], plan->device->id, &why));
        if (why != NULL)
        {
            fmm_cuda_add_note(group, "device %d is not used: it cannot reach memory of device %d (%s)", o->devices[i],
                              plan->device->id, why);
            continue;
        }
        used[group->num]              = i;
        plan->device[group->num++].id = o->devices[i];
    }
    /* equal shares of the near field, all of the far field on the first, or those asked for */
    std::fill_n(group->share.near, group->num, 1.0 / group->num);
    group->share.far[0] = 1;
    group->given        = take_shares(o->shares, used, group->num, group->share.near);
    group->far_given    = take_shares(o->far_shares, used, group->num, group->share.far) || group->given;
    return connect_all(plan, group);
}

void fmm_cuda_destroy_group(gmxfmm_plan* plan)
{
    DeviceGroup* group = plan->device->group;
    if (group != NULL)
    {
        cudaEventDestroy(group->fork);
        delete group;
    }
}

/* Room for copies as large as the first device's arrays. The device is the current one. */
static gmxfmm_status reserve_copies(gmxfmm_plan* plan, fmm_device* d)
{
    FMM_CUDA(plan, cudaStreamSynchronize(d->schedule.near)); /* what a step that failed may have left */
    FMM_CUDA(plan, cudaStreamSynchronize(d->schedule.far));
    FMM_TRY(fmm_device_reserve(plan, &d->range.tiles, sizeof(TileRange)));
    FMM_TRY(fmm_cuda_reserve_box_copy(plan, d));
    FMM_TRY(fmm_cuda_reserve_near_copies(plan, d));
    return fmm_cuda_reserve_particle_copies(plan, d);
}

gmxfmm_status fmm_cuda_reserve_copies(gmxfmm_plan* plan)
{
    FMM_TRY(has_others(plan->device) ? fmm_device_reserve(plan, &plan->device->range.tiles, sizeof(TileRange))
                                     : GMXFMM_OK);
    for (int k = 1; k < num_devices(plan->device); k++)
    {
        fmm_device*         d = &plan->device[k];
        DeviceScope         scope(d->id);
        const gmxfmm_status status = reserve_copies(plan, d);
        if (status == GMXFMM_ERROR_MEMORY)
        {
            return fmm_fail(plan, status,
                            "device %d has no memory for a copy of the particles: leave it out of devices", d->id);
        }
        FMM_TRY(status);
    }
    return GMXFMM_OK;
}

void fmm_cuda_set_warps(fmm_device* first)
{
    const DeviceGroup* group    = first->group;
    const int          launched = targets_of(first)->launched_tiles;
    double             sum      = 0;
    for (int k = 0; k < group->num; k++)
    {
        DeviceRange* range = &first[k].range;
        sum += group->share.near[k];
        range->begin_share = k > 0 ? first[k - 1].range.end_share : 0;
        range->end_share   = k < group->num - 1 ? static_cast<int>(std::min(sum, 1.0) * c_allTiles + 0.5) : c_allTiles;
        const int tiles    = tiles_before(launched, range->end_share) - tiles_before(launched, range->begin_share);
        /* one more than may be counted now: the range moves with the number of tiles */
        range->warps = range->end_share > range->begin_share ? std::min(tiles + 1, launched) : 0;
    }
}

static AssignArgs assign_args(const gmxfmm_plan* plan, const fmm_device* d)
{
    const fmm_device* first   = plan->device;
    const bool        targets = targets_of(first) != &first->particles.sources;
    const Geometry    g       = make_geometry(plan);
    AssignArgs        a;
    a.num_tiles          = &first->particles.assign_results.as<AssignResults>()->num_tiles;
    a.cell_start         = first->particles.sources.cell_start.as<int>();
    a.special_start      = first->near.special_start.as<int>();
    a.tiles              = targets_of(first)->tiles.as<Tile>();
    a.specials           = first->near.specials.as<Special>();
    a.near_vectors       = first->near.vectors.as<int4>();
    a.range              = d->range.tiles.as<TileRange>();
    a.cell_start_copy    = d->particles.sources.cell_start.as<int>();
    a.special_start_copy = d->near.special_start.as<int>();
    a.tiles_copy         = (targets ? d->particles.targets : d->particles.sources).tiles.as<Tile>();
    a.specials_copy      = d->near.specials.as<Special>();
    a.near_vectors_copy  = d->near.vectors.as<int4>();
    a.begin_share        = d->range.begin_share;
    a.end_share          = d->range.end_share;
    a.layers             = g.n[0];
    a.area               = g.n[1] * g.n[2];
    a.num_near           = g.num_near;
    a.extent             = first->near.extent[0];
    a.far_first          = d->range.first_layer;
    a.far_end            = d->range.end_layer;
    return a;
}

/* What other devices have done, before what follows in the stream. */
static gmxfmm_status join(gmxfmm_plan* plan, bool near, bool far, cudaStream_t stream)
{
    for (int k = 1; k < num_devices(plan->device); k++)
    {
        if (has_work(&plan->device[k], near, far))
        {
            FMM_CUDA(plan, cudaStreamWaitEvent(stream, plan->device[k].schedule.near_done, 0));
        }
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_copy_assignment(gmxfmm_plan* plan, cudaStream_t stream)
{
    const cudaEvent_t fork = plan->device->group->fork;
    if (!has_others(plan->device))
    {
        return GMXFMM_OK;
    }
    find_range<<<1, 1, 0, stream>>>(assign_args(plan, plan->device));
    FMM_CUDA(plan, cudaGetLastError());
    FMM_CUDA(plan, cudaEventRecord(fork, stream));
    for (int k = 1; k < num_devices(plan->device); k++)
    {
        const fmm_device*  d  = &plan->device[k];
        const AssignArgs   a  = assign_args(plan, d);
        const cudaStream_t on = d->schedule.near;
        DeviceScope        scope(d->id);
        if (!has_work(d, true, true))
        {
            continue;
        }
        FMM_CUDA(plan, cudaStreamWaitEvent(on, fork, 0));
        find_range<<<1, 1, 0, on>>>(a);
        copy_cells<<<c_blocks * d->limits.processors, c_threads, 0, on>>>(a);
        FMM_CUDA(plan, cudaGetLastError());
        FMM_CUDA(plan, cudaEventRecord(d->schedule.near_done, on));
    }
    return join(plan, true, true, stream);
}

static FetchArgs fetch_args(const gmxfmm_plan* plan, const fmm_device* d)
{
    const fmm_device*  first   = plan->device;
    const ParticleSet* targets = targets_of(first);
    const Geometry     g       = make_geometry(plan);
    FetchArgs          a;
    a.range        = d->range.tiles.as<TileRange>();
    a.cell_start   = d->particles.sources.cell_start.as<int>();
    a.begin_sent   = d->range.first_layer * g.n[1] * g.n[2];
    a.end_sent     = d->range.end_layer * g.n[1] * g.n[2];
    a.sources      = pair_positions(plan, first->particles.sources).as<uint4>();
    a.targets      = pair_positions(plan, *targets).as<uint4>();
    a.sources_copy = pair_positions(plan, d->particles.sources).as<uint4>();
    a.targets_copy =
        targets == &first->particles.sources ? NULL : pair_positions(plan, d->particles.targets).as<uint4>();
    a.words    = static_cast<int>(4 * real_size(plan) / sizeof(uint4));
    a.box      = pair_box(plan, first->domain).as<double>();
    a.box_copy = pair_box(plan, d->domain).as<double>();
    return a;
}

/* Whether the near field of a device waits for the transform of its far field. */
static bool follows(const fmm_device* d, bool far)
{
    return has_work(d, false, far) && follows_transform(d);
}

/* Positions, which the far field has already, and the near field of a device, which is the current one. */
static gmxfmm_status begin_other(gmxfmm_plan* plan, fmm_device* d, const StepWanted& wanted, bool near, bool far)
{
    const DeviceSchedule &s = d->schedule, &first = plan->device->schedule;
    FMM_CUDA(plan, cudaStreamWaitEvent(s.near, first.fork, 0));
    if (plan->device->group->timed)
    {
        FMM_CUDA(plan, cudaEventRecord(s.begin, s.near));
    }
    if (has_work(d, false, far))
    {
        FMM_CUDA(plan, cudaStreamWaitEvent(s.far, first.fork, 0));
    }
    if (near && d->range.warps > 0)
    {
        fetch_particles<<<c_blocks * d->limits.processors, c_threads, 0, s.near>>>(fetch_args(plan, d));
        FMM_CUDA(plan, cudaGetLastError());
    }
    return near && !follows(d, far) ? fmm_cuda_p2p(plan, d, wanted, s.near) : GMXFMM_OK;
}

/* The rest; the device is the current one. */
static gmxfmm_status end_other(gmxfmm_plan* plan, fmm_device* d, const StepWanted& wanted, bool near, bool far)
{
    const DeviceSchedule& s = d->schedule;
    if (near && follows(d, far))
    {
        FMM_CUDA(plan, cudaStreamWaitEvent(s.near, s.spectrum_done, 0));
        FMM_TRY(fmm_cuda_p2p(plan, d, wanted, s.near));
    }
    if (has_work(d, false, far))
    {
        FMM_CUDA(plan, cudaStreamWaitEvent(s.near, s.far_done, 0));
    }
    if (plan->device->group->timed)
    {
        FMM_CUDA(plan, cudaEventRecord(s.end, s.near));
    }
    FMM_CUDA(plan, cudaEventRecord(s.near_done, s.near));
    return GMXFMM_OK;
}

/* One of the two for all devices but the first that have work. */
static gmxfmm_status for_others(gmxfmm_plan* plan,
                                gmxfmm_status (*run)(gmxfmm_plan*, fmm_device*, const StepWanted&, bool, bool),
                                const StepWanted& wanted,
                                unsigned          stages)
{
    const bool near = (stages & GMXFMM_STAGE_NEAR) != 0, far = (stages & GMXFMM_STAGE_FAR) != 0;
    for (int k = 1; k < num_devices(plan->device); k++)
    {
        fmm_device* d = &plan->device[k];
        if (has_work(d, near, far))
        {
            DeviceScope scope(d->id);
            FMM_TRY(run(plan, d, wanted, near, far));
        }
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_begin_others(gmxfmm_plan* plan, const StepWanted& wanted, unsigned stages)
{
    const fmm_device*     d = plan->device;
    const DeviceSchedule& s = d->schedule;
    FMM_TRY(for_others(plan, begin_other, wanted, stages));
    if (d->group->pairs_beside)
    {
        FMM_CUDA(plan, cudaStreamWaitEvent(s.sums, s.fork, 0));
        FMM_TRY(fmm_cuda_p2p_all(plan, s.sums));
        FMM_CUDA(plan, cudaEventRecord(s.sums_done, s.sums));
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_end_others(gmxfmm_plan* plan, const StepWanted& wanted, unsigned stages, cudaStream_t stream)
{
    const fmm_device*     d = plan->device;
    const DeviceSchedule& s = d->schedule;
    FMM_CUDA(plan, d->group->pairs_beside ? cudaStreamWaitEvent(stream, s.sums_done, 0) : cudaSuccess);
    FMM_CUDA(plan, d->group->timed ? cudaEventRecord(s.end, stream) : cudaSuccess);
    FMM_TRY(for_others(plan, end_other, wanted, stages));
    return join(plan, (stages & GMXFMM_STAGE_NEAR) != 0, (stages & GMXFMM_STAGE_FAR) != 0, stream);
}

bool fmm_cuda_shares_are_old(const gmxfmm_plan* plan)
{
    const fmm_device*  d     = plan->device;
    const DeviceGroup* group = d->group;
    const int          tiles = targets_of(d)->launched_tiles;
    const bool         same  = group->measured_n == d->particles.sources.n &&
                      group->measured_targets == d->particles.targets.n && group->measured_order == plan->far.order &&
                      group->measured_near == plan->domain.cells.num_near &&
                      std::abs(tiles - group->measured_tiles) < tiles / c_sameTiles + 1;
    return has_others(d) && !group->given && !same && tiles > 0;
}
