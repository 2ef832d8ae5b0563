/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The near field on several devices: their streams and memory, what they copy, their shares. */
#include "cuda/devices/parts.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "cuda/near/near.h"
#include "cuda/near/p2p_args.h"

enum
{
    c_threads    = 256,
    c_blocks     = 8, /* of a kernel that copies, on a multiprocessor: loads from another device take long */
    c_sameTiles  = 8, /* shares stay while the number of tiles changes by less than an eighth */
    c_boxNumbers = sizeof(BoxValues) / sizeof(double)
};

/* Of a part: what it is made of on the first device, and where it is on its own; copies are NULL for the first part. */
struct AssignArgs
{
    const int *    num_tiles, *cell_start, *special_start;
    const Tile*    tiles;
    const Special* specials;
    const int4*    near_vectors;
    PartRange*     range;
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
    PartRange r  = {};
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
    const PartRange r = *a.range;
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
    const PartRange* range;
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
    const PartRange r = *a.range;
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

static gmxfmm_status make_events(gmxfmm_plan* plan, DeviceSlab* far)
{
    for (cudaEvent_t* event : {&far->sent, &far->spectrum_done, &far->returned, &far->far_done, &far->gathered})
    {
        FMM_CUDA(plan, cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    }
    return GMXFMM_OK;
}

static gmxfmm_status make_part(gmxfmm_plan* plan, DevicePart* part)
{
    const fmm_device* d = plan->device;
    DeviceScope       scope(part->id);
    DeviceLimits      limits;
    int               near = 0, low = 0, high = 0;
    FMM_CUDA(plan, device_limits(part->id, &limits));
    FMM_CUDA(plan, cudaDeviceGetStreamPriorityRange(&low, &high));
    part->processors = limits.processors;
    part->has_chains = d->has_chains && limits.capability == d->limits.capability;
    FMM_TRY(fmm_cuda_near_priority(plan, &near));
    FMM_CUDA(plan, cudaStreamCreateWithPriority(&part->stream, cudaStreamNonBlocking, near));
    FMM_CUDA(plan, cudaStreamCreateWithPriority(&part->far.stream, cudaStreamNonBlocking, high));
    FMM_CUDA(plan, cudaEventCreateWithFlags(&part->done, cudaEventDisableTiming));
    FMM_CUDA(plan, cudaEventCreate(&part->begin));
    FMM_CUDA(plan, cudaEventCreate(&part->end));
    return make_events(plan, &part->far);
}

void fmm_cuda_add_note(DeviceParts* parts, const char* format, ...)
{
    char    text[sizeof(parts->note)];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (std::strstr(parts->note, text) == NULL)
    {
        const size_t length = std::strlen(parts->note);
        std::snprintf(parts->note + length, sizeof(parts->note) - length, "%s%s", length > 0 ? "; " : "", text);
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

/* The same between all parts, as far as there are ways. */
static gmxfmm_status connect_all(gmxfmm_plan* plan, DeviceParts* parts)
{
    parts->connected = true;
    for (int i = 0; i < parts->num; i++)
    {
        for (int k = 0; k < parts->num; k++)
        {
            const char* why = NULL;
            const int   id = parts->part[i].id, other = parts->part[k].id;
            FMM_TRY(enable_access(plan, id, other, &why));
            if (why != NULL && parts->connected)
            {
                fmm_cuda_add_note(
                    parts, "the far field is on device %d alone: device %d cannot reach memory of device %d (%s)",
                    parts->part[0].id, id, other, why);
            }
            parts->connected = parts->connected && why == NULL;
        }
    }
    return GMXFMM_OK;
}

/* Shares asked for, of the devices that are used: part k is device used[k] of the options. False, and *share as it is:
 * none. */
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

/* Those asked for, or equal shares of the near field, and all of the far field on the first. */
static void set_first_shares(const gmxfmm_options* o, DeviceParts* parts, const int* used)
{
    std::fill_n(parts->share, parts->num, 1.0 / parts->num);
    parts->far_share[0] = 1;
    parts->given        = take_shares(o->shares, used, parts->num, parts->share);
    parts->far_given    = take_shares(o->far_shares, used, parts->num, parts->far_share) || parts->given;
}

gmxfmm_status fmm_cuda_create_parts(gmxfmm_plan* plan)
{
    const gmxfmm_options* o = &plan->options;
    fmm_device*           d = plan->device;
    if (o->num_devices < 2)
    {
        return GMXFMM_OK;
    }
    DeviceParts* parts = new (std::nothrow) DeviceParts();
    if (parts == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory");
    }
    int used[GMXFMM_MAX_DEVICES] = {0};
    d->parts                     = parts;
    parts->part[0].id            = d->id;
    parts->num                   = 1;
    FMM_CUDA(plan, cudaEventCreateWithFlags(&parts->fork, cudaEventDisableTiming));
    FMM_TRY(make_events(plan, &parts->part[0].far));
    for (int i = 1; i < o->num_devices; i++)
    {
        const char* why = NULL;
        FMM_TRY(enable_access(plan, o->devices[i], d->id, &why));
        if (why != NULL)
        {
            fmm_cuda_add_note(parts, "device %d is not used: it cannot reach memory of device %d (%s)", o->devices[i],
                              d->id, why);
            continue;
        }
        used[parts->num]           = i;
        parts->part[parts->num].id = o->devices[i];
        FMM_TRY(make_part(plan, &parts->part[parts->num++]));
    }
    set_first_shares(o, parts, used);
    return connect_all(plan, parts);
}

static void destroy_events(const DeviceSlab& far)
{
    for (cudaEvent_t event : {far.sent, far.spectrum_done, far.returned, far.far_done, far.gathered})
    {
        cudaEventDestroy(event);
    }
}

void fmm_cuda_destroy_parts(gmxfmm_plan* plan)
{
    DeviceParts* parts = plan->device->parts;
    if (parts == NULL)
    {
        return;
    }
    for (int k = 0; k < parts->num; k++)
    {
        const DevicePart& part = parts->part[k];
        DeviceScope       scope(part.id);
        if (k > 0)
        {
            cudaStreamSynchronize(part.stream);
            cudaStreamSynchronize(part.far.stream);
            cudaStreamDestroy(part.stream);
            cudaStreamDestroy(part.far.stream);
            cudaEventDestroy(part.done);
            cudaEventDestroy(part.begin);
            cudaEventDestroy(part.end);
        }
        destroy_events(part.far);
        fmm_octree_destroy(part.leaves.operators);
        fmm_rotation_destroy(part.leaves.rotation);
    }
    cudaEventDestroy(parts->fork);
    delete parts; /* and its memory, which is freed from whatever device is current */
    plan->device->parts = NULL;
}

/* Room for copies as large as the first device's arrays. The part's device is the current one. */
static gmxfmm_status reserve_copies(gmxfmm_plan* plan, DevicePart* part)
{
    const fmm_device*  d       = plan->device;
    const ParticleSet* targets = targets_of(d);
    FMM_CUDA(plan, cudaStreamSynchronize(part->stream)); /* what a step that failed may have left */
    FMM_CUDA(plan, cudaStreamSynchronize(part->far.stream));
    FMM_TRY(fmm_device_reserve(plan, &part->range, sizeof(PartRange)));
    FMM_TRY(fmm_device_reserve(plan, &part->box, sizeof(BoxValues)));
    FMM_TRY(fmm_device_reserve(plan, &part->near_vectors, d->near.vectors.capacity));
    FMM_TRY(fmm_device_reserve(plan, &part->cell_start, d->particles.sources.cell_start.capacity));
    FMM_TRY(fmm_device_reserve(plan, &part->tiles, targets->tiles.capacity));
    FMM_TRY(fmm_device_reserve(plan, &part->special_start, d->near.special_start.capacity));
    FMM_TRY(fmm_device_reserve(plan, &part->specials, d->near.specials.capacity));
    FMM_TRY(fmm_device_reserve(plan, &part->sources, d->particles.sources.xq.capacity));
    return targets != &d->particles.sources ? fmm_device_reserve(plan, &part->targets, targets->xq.capacity)
                                            : GMXFMM_OK;
}

gmxfmm_status fmm_cuda_reserve_parts(gmxfmm_plan* plan)
{
    DeviceParts* parts = plan->device->parts;
    FMM_TRY(fmm_device_reserve(plan, &parts->part[0].range, sizeof(PartRange)));
    for (int k = 1; k < parts->num; k++)
    {
        DevicePart*         part = &parts->part[k];
        DeviceScope         scope(part->id);
        const gmxfmm_status status = reserve_copies(plan, part);
        if (status == GMXFMM_ERROR_MEMORY)
        {
            return fmm_fail(plan, status,
                            "device %d has no memory for a copy of the particles: leave it out of devices", part->id);
        }
        FMM_TRY(status);
    }
    return GMXFMM_OK;
}

void fmm_cuda_set_warps(fmm_device* device)
{
    DeviceParts* parts    = device->parts;
    const int    launched = targets_of(device)->launched_tiles;
    double       sum      = 0;
    for (int k = 0; k < parts->num; k++)
    {
        DevicePart* part = &parts->part[k];
        sum += parts->share[k];
        part->begin_share = k > 0 ? parts->part[k - 1].end_share : 0;
        part->end_share   = k < parts->num - 1 ? static_cast<int>(std::min(sum, 1.0) * c_allTiles + 0.5) : c_allTiles;
        const int tiles   = tiles_before(launched, part->end_share) - tiles_before(launched, part->begin_share);
        /* one more than may be counted now: the range moves with the number of tiles */
        part->warps = part->end_share > part->begin_share ? std::min(tiles + 1, launched) : 0;
    }
}

static AssignArgs assign_args(const gmxfmm_plan* plan, const DevicePart* part)
{
    const fmm_device* d = plan->device;
    const Geometry    g = make_geometry(plan);
    AssignArgs        a;
    a.num_tiles          = &d->particles.assign_results.as<AssignResults>()->num_tiles;
    a.cell_start         = d->particles.sources.cell_start.as<int>();
    a.special_start      = d->near.special_start.as<int>();
    a.tiles              = targets_of(d)->tiles.as<Tile>();
    a.specials           = d->near.specials.as<Special>();
    a.near_vectors       = d->near.vectors.as<int4>();
    a.range              = part->range.as<PartRange>();
    a.cell_start_copy    = part->cell_start.as<int>();
    a.special_start_copy = part->special_start.as<int>();
    a.tiles_copy         = part->tiles.as<Tile>();
    a.specials_copy      = part->specials.as<Special>();
    a.near_vectors_copy  = part->near_vectors.as<int4>();
    a.begin_share        = part->begin_share;
    a.end_share          = part->end_share;
    a.layers             = g.n[0];
    a.area               = g.n[1] * g.n[2];
    a.num_near           = g.num_near;
    a.extent             = d->near.extent[0];
    a.far_first          = has_slabs(plan) ? part->far.first_layer : 0;
    a.far_end            = has_slabs(plan) ? part->far.end_layer : 0;
    return a;
}

/* What devices wait for before what follows in the stream. */
static gmxfmm_status join(gmxfmm_plan* plan, bool near, bool far, cudaStream_t stream)
{
    const DeviceParts* parts = plan->device->parts;
    for (int k = 1; k < parts->num; k++)
    {
        if (has_work(&parts->part[k], near, far))
        {
            FMM_CUDA(plan, cudaStreamWaitEvent(stream, parts->part[k].done, 0));
        }
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_assign_parts(gmxfmm_plan* plan, cudaStream_t stream)
{
    DeviceParts* parts = plan->device->parts;
    find_range<<<1, 1, 0, stream>>>(assign_args(plan, &parts->part[0]));
    FMM_CUDA(plan, cudaGetLastError());
    FMM_CUDA(plan, cudaEventRecord(parts->fork, stream));
    for (int k = 1; k < parts->num; k++)
    {
        const DevicePart& part = parts->part[k];
        const AssignArgs  a    = assign_args(plan, &part);
        DeviceScope       scope(part.id);
        if (!has_work(&part, true, has_slabs(plan)))
        {
            continue;
        }
        FMM_CUDA(plan, cudaStreamWaitEvent(part.stream, parts->fork, 0));
        find_range<<<1, 1, 0, part.stream>>>(a);
        copy_cells<<<c_blocks * part.processors, c_threads, 0, part.stream>>>(a);
        FMM_CUDA(plan, cudaGetLastError());
        FMM_CUDA(plan, cudaEventRecord(part.done, part.stream));
    }
    return join(plan, true, has_slabs(plan), stream);
}

template <class R>
static FetchArgs fetch_args(const gmxfmm_plan* plan, const DevicePart* part)
{
    const P2pArgs<R> from = fmm_cuda_p2p_args<R>(plan);
    const Geometry   g    = from.g;
    FetchArgs        a;
    a.range        = part->range.as<PartRange>();
    a.cell_start   = part->cell_start.as<int>();
    a.begin_sent   = has_slabs(plan) ? part->far.first_layer * g.n[1] * g.n[2] : 0;
    a.end_sent     = has_slabs(plan) ? part->far.end_layer * g.n[1] * g.n[2] : 0;
    a.sources      = reinterpret_cast<const uint4*>(from.xq);
    a.targets      = reinterpret_cast<const uint4*>(from.target);
    a.sources_copy = part->sources.as<uint4>();
    a.targets_copy = from.self ? NULL : part->targets.as<uint4>();
    a.words        = sizeof(Vec4<R>) / sizeof(uint4);
    a.box          = reinterpret_cast<const double*>(from.box);
    a.box_copy     = part->box.as<double>();
    return a;
}

/* Whether the near field of a part waits for the transform of its far field. */
static bool follows(const DevicePart* part, bool far)
{
    return far && part->far.active && follows_transform(part->warps / part->processors);
}

/* Positions, which the far field has already, and the near field of a part whose device is the current one. */
static gmxfmm_status begin_part(gmxfmm_plan* plan, DevicePart* part, const StepWanted& wanted, bool near, bool far)
{
    const FetchArgs a = is_double(plan) ? fetch_args<double>(plan, part) : fetch_args<float>(plan, part);
    FMM_CUDA(plan, cudaStreamWaitEvent(part->stream, plan->device->schedule.fork, 0));
    if (plan->device->parts->timed)
    {
        FMM_CUDA(plan, cudaEventRecord(part->begin, part->stream));
    }
    if (far && part->far.active)
    {
        FMM_CUDA(plan, cudaStreamWaitEvent(part->far.stream, plan->device->schedule.fork, 0));
    }
    if (near && part->warps > 0)
    {
        fetch_particles<<<c_blocks * part->processors, c_threads, 0, part->stream>>>(a);
        FMM_CUDA(plan, cudaGetLastError());
    }
    return near && !follows(part, far) ? fmm_cuda_p2p_part(plan, part, wanted) : GMXFMM_OK;
}

/* The rest; the part's device is the current one. */
static gmxfmm_status end_part(gmxfmm_plan* plan, DevicePart* part, const StepWanted& wanted, bool near, bool far)
{
    if (near && follows(part, far))
    {
        FMM_CUDA(plan, cudaStreamWaitEvent(part->stream, part->far.spectrum_done, 0));
        FMM_TRY(fmm_cuda_p2p_part(plan, part, wanted));
    }
    if (far && part->far.active)
    {
        FMM_CUDA(plan, cudaStreamWaitEvent(part->stream, part->far.far_done, 0));
    }
    if (plan->device->parts->timed)
    {
        FMM_CUDA(plan, cudaEventRecord(part->end, part->stream));
    }
    FMM_CUDA(plan, cudaEventRecord(part->done, part->stream));
    return GMXFMM_OK;
}

/* One of the two for all parts that have work. */
static gmxfmm_status for_parts(gmxfmm_plan* plan,
                               gmxfmm_status (*run)(gmxfmm_plan*, DevicePart*, const StepWanted&, bool, bool),
                               const StepWanted& wanted,
                               bool              near,
                               bool              far)
{
    DeviceParts* parts = plan->device->parts;
    for (int k = 1; k < parts->num; k++)
    {
        if (has_work(&parts->part[k], near, far))
        {
            DeviceScope scope(parts->part[k].id);
            FMM_TRY(run(plan, &parts->part[k], wanted, near, far));
        }
    }
    return GMXFMM_OK;
}

/* Whether stages of a step are shared. */
static bool has_near(unsigned stages)
{
    return (stages & GMXFMM_STAGE_NEAR) != 0;
}

static bool has_far(const gmxfmm_plan* plan, unsigned stages)
{
    return (stages & GMXFMM_STAGE_FAR) != 0 && has_slabs(plan);
}

gmxfmm_status fmm_cuda_begin_parts(gmxfmm_plan* plan, const StepWanted& wanted, unsigned stages)
{
    const fmm_device*     d = plan->device;
    const DeviceSchedule& s = d->schedule;
    if (!has_parts(d))
    {
        return GMXFMM_OK;
    }
    FMM_TRY(for_parts(plan, begin_part, wanted, has_near(stages), has_far(plan, stages)));
    if (d->parts->loaded)
    {
        FMM_CUDA(plan, cudaStreamWaitEvent(s.sums, s.fork, 0));
        FMM_TRY(fmm_cuda_p2p_all(plan, s.sums));
        FMM_CUDA(plan, cudaEventRecord(s.sums_done, s.sums));
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_end_parts(gmxfmm_plan* plan, const StepWanted& wanted, unsigned stages, cudaStream_t stream)
{
    const fmm_device*     d = plan->device;
    const DeviceSchedule& s = d->schedule;
    if (!has_parts(d))
    {
        return GMXFMM_OK;
    }
    FMM_CUDA(plan, d->parts->loaded ? cudaStreamWaitEvent(stream, s.sums_done, 0) : cudaSuccess);
    FMM_CUDA(plan, d->parts->timed ? cudaEventRecord(s.end, stream) : cudaSuccess);
    FMM_TRY(for_parts(plan, end_part, wanted, has_near(stages), has_far(plan, stages)));
    return join(plan, has_near(stages), has_far(plan, stages), stream);
}

bool fmm_cuda_shares_are_old(const gmxfmm_plan* plan)
{
    const fmm_device*  d     = plan->device;
    const DeviceParts* parts = d->parts;
    const int          tiles = targets_of(d)->launched_tiles;
    const bool         same  = parts->measured_n == d->particles.sources.n &&
                      parts->measured_targets == d->particles.targets.n && parts->measured_order == plan->far.order &&
                      parts->measured_near == plan->domain.cells.num_near &&
                      std::abs(tiles - parts->measured_tiles) < tiles / c_sameTiles + 1;
    return !parts->given && !same && tiles > 0;
}

bool fmm_cuda_may_share_far(const gmxfmm_plan* plan)
{
    const DeviceParts* parts = plan->device->parts;
    return parts->far_share[0] < 1 || (!parts->far_given && fmm_cuda_shares_are_old(plan));
}

void fmm_cuda_has_no_room(gmxfmm_plan* plan, int device)
{
    DeviceParts* parts = plan->device->parts;
    parts->no_room     = plan->far.arrays;
    plan->message[0]   = '\0';
    fmm_cuda_add_note(parts, "the far field is on device %d alone: device %d has no memory for a part of it",
                      parts->part[0].id, device);
}
