/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The stages of a step in order, on streams: the only file that forks and joins those of one device. */
#include <algorithm>
#include <cmath>
#include <cstring>

#include "cuda/charge_gradient.h"
#include "cuda/convolution/convolution.h"
#include "cuda/expansions/expansions.h"
#include "cuda/device.h"
#include "cuda/execute.h"
#include "cuda/devices/leaf_parts.h"
#include "cuda/near/near.h"
#include "cuda/devices/parts.h"
#include "cuda/tree/leaves.h"
#include "cuda/output.h"
#include "cuda/particles/particles.h"
#include "cuda/runtime/event.h"
#include "cuda/devices/slabs.h"

extern "C"
{
#include "fmm/left.h"
}

enum
{
    c_fewCells      = 8000,
    c_timedSteps    = 3, /* in a row, of which the last is timed */
    c_triedShares   = 4, /* shares of several devices that are tried, one after the other */
    c_comparedSteps = 10 /* with the far field on one device and on all */
};

/* A far field on several devices has to be faster by more than times differ by chance. */
static const double c_leastGain = 0.98;

/* Shares of the first device that are tried, over equal ones: others have to fetch positions first. Of an octree it has
 * all but M2L of the leaves in any case; and where there are pair kernels of others these are on the first. */
static const double c_firstFarShares[] = {1, 1.2}, c_firstSmallShares[] = {1, 0.5};

/* Streams differ in priority, which a graph without this would lose. */
#if CUDART_VERSION >= 11070
static const unsigned long long c_graphFlags = cudaGraphInstantiateFlagUseNodePriority;
#else
static const unsigned long long c_graphFlags = 0;
#endif

/* What a step computes while P2M and transforms run on the stream `far`. */
struct SideWork
{
    bool         spectra; /* lattice sums of a new box */
    bool         moments; /* dipole and quadrupole, where P2M does not compute them */
    cudaStream_t stream;  /* `side`, or the caller's if nothing else would run in it at that time */
};

/* Enqueues the lattice sums that are wanted, after those still being computed on the stream `prefetch`. In a captured
 * graph both the wait and the kernels run at each launch. Until the graph is launched there are no spectra, so the
 * plan's versions stay as they were. */
static gmxfmm_status make_spectra(gmxfmm_plan* plan, bool virial, const SideWork& wanted)
{
    fmm_device*   d         = plan->device;
    const int64_t s_version = d->far.cells.s_version, z_version = d->far.cells.z_version;
    bool          capturing = false;
    FMM_TRY(fmm_cuda_is_capturing(plan, wanted.stream, &capturing));
    if (d->schedule.s_pending || (d->schedule.z_pending && (virial || wanted.spectra)))
    {
        FMM_CUDA(plan,
                 cudaStreamWaitEvent(wanted.stream, d->schedule.prefetch_done, capturing ? cudaEventWaitExternal : 0));
        d->schedule.s_pending = d->schedule.s_pending && capturing;
        d->schedule.z_pending = d->schedule.z_pending && capturing;
    }
    if (wanted.spectra)
    {
        FMM_TRY(fmm_cuda_spectra(plan, virial, wanted.stream));
        if (d->far.cells.s_version != s_version)
        {
            FMM_TRY(fmm_cuda_share_spectra(plan, wanted.stream));
        }
        const bool made           = d->far.cells.s_version != s_version || d->far.cells.z_version != z_version;
        d->schedule.sums_in_graph = d->schedule.sums_in_graph || (capturing && made);
        d->far.cells.s_version    = capturing ? s_version : d->far.cells.s_version;
        d->far.cells.z_version    = capturing ? z_version : d->far.cells.z_version;
    }
    return GMXFMM_OK;
}

/* Whether the background's moments have a kernel of their own beside P2M: with few cells a step is a chain of short
 * kernels, which sums over all blocks at the end of P2M make longer. */
static bool moments_beside(const gmxfmm_plan* plan)
{
    return fmm_is_bulk(plan) && plan->domain.tree == NULL && plan->domain.cells.num_cells < c_fewCells;
}

/* P2M, on several devices transforms of planes, too; and spectra of a new box. */
static gmxfmm_status begin_far_field(gmxfmm_plan* plan, bool virial, const SideWork& wanted)
{
    fmm_device* d    = plan->device;
    const bool  sums = fmm_is_bulk(plan) && !wanted.moments;
    FMM_CUDA(plan, cudaStreamWaitEvent(d->schedule.far, d->schedule.fork, 0));
    if (has_slabs(plan))
    {
        FMM_TRY(fmm_cuda_begin_slabs(plan, sums ? Moments::Rows : Moments::None));
    }
    else
    {
        FMM_TRY(fmm_cuda_p2m(plan, whole_far_field(plan), sums ? Moments::Whole : Moments::None, d->schedule.far));
    }
    if (!wanted.spectra && !wanted.moments)
    {
        return GMXFMM_OK;
    }
    if (wanted.stream == d->schedule.side)
    {
        FMM_CUDA(plan, cudaStreamWaitEvent(d->schedule.side, d->schedule.fork, 0));
    }
    return make_spectra(plan, virial, wanted);
}

/* A new box whose spectra are interpolated between those of the line's nodes. Z is interpolated, too, if any step so
 * far wanted a virial: a graph of such a step reads Z at each launch without asking for it. */
static gmxfmm_status follow_line(gmxfmm_plan* plan, cudaStream_t stream)
{
    fmm_device* d = plan->device;
    if (d->schedule.s_pending || d->schedule.z_pending)
    {
        FMM_CUDA(plan, cudaStreamWaitEvent(stream, d->schedule.prefetch_done, 0));
        d->schedule.s_pending = d->schedule.z_pending = 0;
    }
    d->domain.stored = make_box(plan);
    FMM_TRY(fmm_cuda_interpolate(plan, d->schedule.virial_version != 0, &d->domain.stored,
                                 d->domain.box.as<BoxValues>(), stream));
    return fmm_cuda_share_spectra(plan, stream);
}

/* Begins the spectra of a new box at once: they take as long as a step, and what is enqueued before they are needed
 * runs at the same time. */
static gmxfmm_status begin_spectra(gmxfmm_plan* plan, cudaStream_t stream)
{
    fmm_device* d = plan->device;
    FMM_CUDA(plan, cudaEventRecord(d->schedule.fork, stream));
    FMM_CUDA(plan, cudaStreamWaitEvent(d->schedule.side, d->schedule.fork, 0));
    FMM_TRY(make_spectra(plan, false, {true, false, d->schedule.side}));
    FMM_CUDA(plan, cudaEventRecord(d->schedule.prefetch_done, d->schedule.side));
    d->schedule.s_pending = 1;
    return GMXFMM_OK;
}

gmxfmm_status fmm_device_enqueue_box(gmxfmm_plan* plan, void* caller_stream, int* graphs_follow)
{
    fmm_device*  d         = plan->device;
    cudaStream_t stream    = static_cast<cudaStream_t>(caller_stream);
    bool         capturing = false;
    DeviceScope  scope(d->id);
    FMM_TRY(fmm_cuda_is_capturing(plan, stream, &capturing));
    if (capturing)
    {
        return GMXFMM_OK;
    }
    *graphs_follow = plan->domain.tree == NULL && (has_s(plan) || plan->far.line.active) && !d->domain.box_in_graph &&
                     !d->schedule.sums_in_graph;
    if (!*graphs_follow)
    {
        d->domain.box_in_graph = d->schedule.sums_in_graph = 0; /* such graphs cannot be launched any more */
    }
    if (plan->far.line.active && !has_s(plan))
    {
        return follow_line(plan, stream);
    }
    FMM_TRY(fmm_cuda_store_box(plan, stream));
    return has_s(plan) || !fmm_has_lattice_sums(plan) ? GMXFMM_OK : begin_spectra(plan, stream);
}

/* Computes the spectra for the virial of a new box in advance, if a step with the last box wanted a virial: after the
 * new box's first step, on a stream of the lowest priority, so that a later step need not wait for them. Not in a
 * graph, where every stream must be joined. */
static gmxfmm_status prefetch_z(gmxfmm_plan* plan)
{
    fmm_device* d         = plan->device;
    bool        capturing = false;
    const bool  expected  = d->schedule.virial_version == plan->far.version - 1;
    if (!expected || has_z(plan) || !fmm_has_lattice_sums(plan))
    {
        return GMXFMM_OK;
    }
    FMM_TRY(fmm_cuda_is_capturing(plan, d->schedule.far, &capturing));
    if (!capturing)
    {
        FMM_CUDA(plan, cudaStreamWaitEvent(d->schedule.prefetch, d->schedule.far_done, 0));
        FMM_TRY(fmm_cuda_spectra(plan, true, d->schedule.prefetch));
        FMM_CUDA(plan, cudaEventRecord(d->schedule.prefetch_done, d->schedule.prefetch));
        d->schedule.z_pending = 1;
    }
    return GMXFMM_OK;
}

/* The rest of the far field: from the multipoles to the targets. */
static gmxfmm_status end_far_field(gmxfmm_plan* plan, const void* x, bool virial, const SideWork& wanted)
{
    fmm_device* d     = plan->device;
    cudaEvent_t ready = NULL;
    if (wanted.moments)
    {
        FMM_TRY(fmm_cuda_moments(plan, x, wanted.stream));
    }
    if (has_slabs(plan))
    {
        if (wanted.stream == d->schedule.side)
        {
            FMM_CUDA(plan, cudaStreamWaitEvent(d->schedule.side, d->schedule.fork, 0));
        }
        FMM_TRY(fmm_cuda_slab_moments(plan, fmm_is_bulk(plan) && !wanted.moments, wanted.stream));
    }
    if (wanted.spectra || wanted.moments || has_slabs(plan))
    {
        FMM_CUDA(plan, cudaEventRecord(d->schedule.side_done, wanted.stream));
        ready = d->schedule.side_done;
    }
    if (has_slabs(plan))
    {
        FMM_TRY(fmm_cuda_end_slabs(plan, virial, ready, wanted.spectra));
    }
    else
    {
        FMM_TRY(d->far.path->far(plan, virial, ready, d->schedule.far));
        FMM_TRY(fmm_cuda_l2p(plan, whole_far_field(plan), d->schedule.far));
        FMM_TRY(fmm_is_adaptive(plan) ? fmm_cuda_from_leaf_units(plan, d->schedule.far) : GMXFMM_OK);
    }
    FMM_CUDA(plan, cudaEventRecord(d->schedule.far_done, d->schedule.far));
    d->schedule.virial_version = virial ? plan->far.version : d->schedule.virial_version;
    return prefetch_z(plan);
}

/* Tiles of P2P for a multiprocessor. */
static int tiles_each(const fmm_device* d)
{
    return own_warps(d) / d->limits.processors;
}

/* P2P after `fork` in the stream, or after another event, and before what follows in the stream. If it cannot fill the
 * device it runs in the stream itself: with few particles a step without a graph takes as long as its calls. Otherwise
 * its blocks have to give way to those of the far field, on a stream of lower priority. */
static gmxfmm_status near_field(gmxfmm_plan* plan, const StepWanted& wanted, cudaEvent_t after, cudaStream_t stream)
{
    fmm_device* d = plan->device;
    if (after == d->schedule.fork && tiles_each(d) < c_fillingTiles)
    {
        return fmm_cuda_p2p(plan, wanted, stream);
    }
    FMM_CUDA(plan, cudaStreamWaitEvent(d->schedule.near, after, 0));
    FMM_TRY(fmm_cuda_p2p(plan, wanted, d->schedule.near));
    FMM_CUDA(plan, cudaEventRecord(d->schedule.near_done, d->schedule.near));
    FMM_CUDA(plan, cudaStreamWaitEvent(stream, d->schedule.near_done, 0));
    return GMXFMM_OK;
}

/* Whether P2P on the first device begins behind the transform of the multipoles. */
static bool near_follows_transform(const gmxfmm_plan* plan)
{
    return plan->domain.tree == NULL && follows_transform(tiles_each(plan->device));
}

/* Near and far field, each on its stream if it is wanted, after the positions and before the output. What takes longest
 * is launched early, unless it follows the transform: a device that has finished the step before waits for the host at
 * each launch. */
static gmxfmm_status
near_and_far(gmxfmm_plan* plan, const void* x, unsigned stages, const StepWanted& wanted, cudaStream_t stream)
{
    const bool  virial = wanted.virial != 0;
    fmm_device* d      = plan->device;
    const bool  any = (stages & GMXFMM_STAGE_NEAR) != 0, far = (stages & GMXFMM_STAGE_FAR) != 0;
    const bool  near = any && has_own_part(d), slabs = far && has_slabs(plan), parts = (any || slabs) && has_parts(d);
    const bool  follows = near && far && near_follows_transform(plan);
    const bool  spectra =
        fmm_has_lattice_sums(plan) && (!has_s(plan) || d->schedule.s_pending || (virial && !has_z(plan)));
    const bool     loaded = has_parts(d) && d->parts->loaded;
    const SideWork side   = {spectra, virial || plan->options.boundary == GMXFMM_VACUUM || moments_beside(plan),
                           spectra || !follows ? d->schedule.side : stream};
    FMM_CUDA(plan, cudaEventRecord(d->schedule.fork, stream));
    if (parts)
    {
        FMM_TRY(fmm_cuda_begin_parts(plan, wanted, any, slabs));
    }
    if (loaded)
    {
        FMM_CUDA(plan, cudaStreamWaitEvent(d->schedule.sums, d->schedule.fork, 0));
        FMM_TRY(fmm_cuda_p2p_all(plan, d->schedule.sums));
        FMM_CUDA(plan, cudaEventRecord(d->schedule.sums_done, d->schedule.sums));
    }
    if (far)
    {
        FMM_TRY(begin_far_field(plan, virial, side));
    }
    if (near && !follows)
    {
        FMM_TRY(near_field(plan, wanted, d->schedule.fork, stream));
    }
    if (far)
    {
        FMM_TRY(end_far_field(plan, x, virial, side));
        FMM_CUDA(plan, cudaStreamWaitEvent(stream, d->schedule.far_done, 0));
    }
    if (follows)
    {
        FMM_TRY(near_field(plan, wanted, d->schedule.spectrum_done, stream));
    }
    if (loaded)
    {
        FMM_CUDA(plan, cudaStreamWaitEvent(stream, d->schedule.sums_done, 0));
    }
    if (has_parts(d) && d->parts->timed)
    {
        FMM_CUDA(plan, cudaEventRecord(d->schedule.end, stream));
    }
    if (parts)
    {
        FMM_TRY(fmm_cuda_end_parts(plan, wanted, any, slabs));
        FMM_TRY(fmm_cuda_join_parts(plan, any, slabs, stream));
    }
    return GMXFMM_OK;
}

static gmxfmm_status
time_graph(gmxfmm_plan* plan, const void* x, const gmxfmm_device_output* output, int num, double* seconds);

/* Times of the parts in ms. */
static gmxfmm_status time_parts(gmxfmm_plan* plan, const void* x, unsigned stages, double* ms)
{
    const fmm_device*  d     = plan->device;
    const DeviceParts* parts = d->parts;
    for (int i = 0; i < c_timedSteps; i++)
    {
        FMM_CUDA(plan, cudaEventRecord(d->schedule.begin, d->schedule.own));
        FMM_TRY(near_and_far(plan, x, stages, {0, 0, 0}, d->schedule.own));
    }
    FMM_CUDA(plan, cudaStreamSynchronize(d->schedule.own));
    for (int k = 0; k < parts->num; k++)
    {
        const DevicePart& part  = parts->part[k];
        float             taken = 0;
        DeviceScope       scope(part.id);
        if (k == 0 || has_work(&part, (stages & GMXFMM_STAGE_NEAR) != 0, has_slabs(plan)))
        {
            FMM_CUDA(plan, cudaEventElapsedTime(&taken, k == 0 ? d->schedule.begin : part.begin,
                                                k == 0 ? d->schedule.end : part.end));
        }
        ms[k] = static_cast<double>(taken);
    }
    return GMXFMM_OK;
}

/* Tries shares of the near field, each from the times with those before, and keeps those with which the slowest part
 * took least. */
static gmxfmm_status balance_near(gmxfmm_plan* plan, const void* x)
{
    fmm_device*  d     = plan->device;
    DeviceParts* parts = d->parts;
    double       base[GMXFMM_MAX_DEVICES], ms[GMXFMM_MAX_DEVICES], best[GMXFMM_MAX_DEVICES], least = 0;
    FMM_TRY(fmm_cuda_permute(plan, x, fmm_cuda_position_copies(plan), d->schedule.own));
    FMM_TRY(fmm_cuda_assign_parts(plan, d->schedule.own));
    FMM_TRY(time_parts(plan, x, GMXFMM_STAGE_FAR, base));
    for (int round = 0; round < c_triedShares; round++)
    {
        FMM_TRY(fmm_cuda_assign_parts(plan, d->schedule.own));
        FMM_TRY(time_parts(plan, x, GMXFMM_STAGE_NEAR | GMXFMM_STAGE_FAR, ms));
        const double slowest = *std::max_element(ms, ms + parts->num);
        if (round == 0 || slowest < least)
        {
            least = slowest;
            std::copy(parts->share, parts->share + parts->num, best);
        }
        fmm_cuda_balance(parts, ms, base);
        fmm_cuda_set_warps(d);
    }
    std::copy(best, best + parts->num, parts->share);
    fmm_cuda_set_warps(d);
    return fmm_cuda_assign_parts(plan, d->schedule.own);
}

/* Near and far field of a step, in s, and what sends positions to the devices. */
static gmxfmm_status time_fields(gmxfmm_plan* plan, const void* x, double* seconds)
{
    gmxfmm_device_output fields;
    std::memset(&fields, 0, sizeof(fields));
    fields.stages              = GMXFMM_STAGE_PERMUTE | GMXFMM_STAGE_NEAR | GMXFMM_STAGE_FAR;
    plan->device->parts->timed = false;
    FMM_TRY(time_graph(plan, x, &fields, c_comparedSteps, seconds));
    plan->device->parts->timed = true;
    return GMXFMM_OK;
}

/* Shares of both fields. */
struct BothShares
{
    double near[GMXFMM_MAX_DEVICES], far[GMXFMM_MAX_DEVICES];
};

static BothShares shares_of(const DeviceParts* parts)
{
    BothShares s;
    std::copy(parts->share, parts->share + parts->num, s.near);
    std::copy(parts->far_share, parts->far_share + parts->num, s.far);
    return s;
}

static gmxfmm_status set_shares(gmxfmm_plan* plan, const BothShares& s)
{
    DeviceParts* parts = plan->device->parts;
    std::copy(s.near, s.near + parts->num, parts->share);
    fmm_cuda_set_warps(plan->device);
    fmm_cuda_set_leaf_parts(plan, s.far);
    return fmm_cuda_set_slabs(plan, s.far, plan->device->schedule.own);
}

/* Makes the present shares the best if with them the fields take less than *least. */
static gmxfmm_status compare_shares(gmxfmm_plan* plan, const void* x, double* least, BothShares* best)
{
    double seconds = 0;
    FMM_TRY(time_fields(plan, x, &seconds));
    if (seconds < *least)
    {
        *least = seconds;
        *best  = shares_of(plan->device->parts);
    }
    return GMXFMM_OK;
}

/* The far field on all devices, if that is faster than on the first alone; equal shares of the near field, or balanced
 * ones: where steps are shorter than the host takes to launch them, times of parts tell little. */
static gmxfmm_status try_far_shares(gmxfmm_plan* plan, const void* x)
{
    const DeviceParts* parts = plan->device->parts;
    BothShares         best  = shares_of(parts), s;
    double             least = 0;
    FMM_TRY(time_fields(plan, x, &least));
    least *= c_leastGain;
    for (const double times_equal : plan->domain.tree != NULL || parts->loaded ? c_firstSmallShares : c_firstFarShares)
    {
        std::fill_n(s.near, parts->num, 1.0 / parts->num);
        s.far[0] = times_equal / parts->num;
        std::fill_n(s.far + 1, parts->num - 1, (1 - s.far[0]) / (parts->num - 1));
        FMM_TRY(set_shares(plan, s));
        FMM_TRY(balance_near(plan, x)); /* before graphs, which cannot load kernels */
        FMM_TRY(compare_shares(plan, x, &least, &best));
        FMM_TRY(set_shares(plan, s));
        FMM_TRY(fmm_cuda_assign_parts(plan, plan->device->schedule.own));
        FMM_TRY(compare_shares(plan, x, &least, &best));
    }
    return set_shares(plan, best);
}

/* Chooses shares, by times of near and far field at these positions. */
static gmxfmm_status try_shares(gmxfmm_plan* plan, const void* x)
{
    fmm_device*  d                         = plan->device;
    DeviceParts* parts                     = d->parts;
    const double first[GMXFMM_MAX_DEVICES] = {1};
    FMM_TRY(fmm_cuda_store_box(plan, d->schedule.own));
    if (!parts->far_given)
    {
        FMM_TRY(fmm_cuda_set_slabs(plan, first, d->schedule.own));
        fmm_cuda_set_leaf_parts(plan, first);
    }
    FMM_TRY(balance_near(plan, x));
    if (!parts->far_given && (fmm_cuda_can_have_slabs(plan) || fmm_cuda_can_share_leaves(plan)))
    {
        FMM_TRY(try_far_shares(plan, x));
        if (!has_slabs(plan))
        {
            FMM_TRY(fmm_cuda_release_slabs(plan));
        }
        if (!has_leaf_parts(plan))
        {
            FMM_TRY(fmm_cuda_release_leaf_parts(plan));
        }
    }
    parts->measured_n       = d->particles.sources.n;
    parts->measured_targets = d->particles.targets.n;
    parts->measured_order   = plan->far.order;
    parts->measured_near    = plan->domain.cells.num_near;
    parts->measured_tiles   = targets_of(d)->launched_tiles;
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_measure_shares(gmxfmm_plan* plan, const void* x)
{
    DeviceParts* parts         = plan->device->parts;
    parts->timed               = true;
    parts->loaded              = plan->options.pairs_beside != 0;
    const gmxfmm_status status = try_shares(plan, x);
    parts->timed = parts->loaded = false;
    return status;
}

/* What a virial needs in addition to forces, for the fields that were computed. It reads the spectrum of the multipoles
 * and the positions, which stay as they are until the next step. */
static gmxfmm_status virial_parts(gmxfmm_plan* plan, unsigned stages, cudaStream_t stream)
{
    if ((stages & GMXFMM_STAGE_NEAR) && plan->domain.tree == NULL)
    {
        FMM_TRY(fmm_cuda_near_faces(plan, stream));
    }
    if ((stages & GMXFMM_STAGE_FAR) && fmm_has_lattice_sums(plan))
    {
        FMM_CUDA(plan, cudaStreamWaitEvent(stream, plan->device->schedule.spectrum_done, 0));
        FMM_CUDA(plan, cudaStreamWaitEvent(stream, plan->device->schedule.side_done,
                                           0)); /* of Z; a virial needs moments, too */
        if (has_slabs(plan))
        {
            FMM_TRY(fmm_cuda_wait_gathered(plan, stream));
        }
        FMM_TRY(fmm_cuda_m2l_virial(plan, stream));
    }
    return GMXFMM_OK;
}

/* Energy and virial, after the arrays. The kernels that only the virial needs run at the same time as near and far
 * field or, if the caller waits for the arrays, after them. */
static gmxfmm_status
end_sums(gmxfmm_plan* plan, unsigned stages, const gmxfmm_device_output* output, cudaStream_t stream)
{
    fmm_device* d = plan->device;
    FMM_CUDA(plan, cudaEventRecord(d->schedule.output_done, stream));
    if (output->virial != NULL)
    {
        FMM_CUDA(plan,
                 cudaStreamWaitEvent(d->schedule.sums,
                                     output->arrays_done != NULL ? d->schedule.output_done : d->schedule.fork, 0));
        FMM_TRY(virial_parts(plan, stages, d->schedule.sums));
    }
    if (stages & GMXFMM_STAGE_OUTPUT)
    {
        FMM_CUDA(plan, cudaStreamWaitEvent(d->schedule.sums, d->schedule.output_done, 0));
        FMM_TRY(fmm_cuda_sums(plan, output, d->schedule.sums));
    }
    FMM_CUDA(plan, cudaEventRecord(d->schedule.sums_done, d->schedule.sums));
    FMM_CUDA(plan, cudaStreamWaitEvent(stream, d->schedule.sums_done, 0));
    return GMXFMM_OK;
}

static gmxfmm_status enqueue(gmxfmm_plan* plan, const void* x, const gmxfmm_device_output* output, cudaStream_t stream)
{
    const unsigned   stages = output->stages != 0 ? output->stages : ~0u;
    const StepWanted wanted = {output->energy != NULL, output->virial != NULL,
                               output->energy != NULL || output->virial != NULL || output->potential != NULL ||
                                   output->charge_gradient != NULL};
    FMM_TRY(fmm_cuda_store_box(plan, stream));
    if (stages & GMXFMM_STAGE_PERMUTE)
    {
        FMM_TRY(fmm_cuda_permute(plan, x, fmm_cuda_position_copies(plan), stream));
    }
    FMM_TRY(near_and_far(plan, x, stages, wanted, stream));
    if (stages & GMXFMM_STAGE_OUTPUT)
    {
        FMM_TRY(fmm_cuda_output(plan, x, output, stream));
    }
    FMM_CUDA(plan, record_for_caller(output->arrays_done, stream));
    if (output->charge_gradient != NULL && (stages & GMXFMM_STAGE_OUTPUT))
    {
        FMM_TRY(fmm_cuda_charge_gradient(plan, output->charge_gradient, stream));
    }
    if (wanted.energy || wanted.virial)
    {
        FMM_TRY(end_sums(plan, stages, output, stream));
    }
    return output->status != NULL && (stages & GMXFMM_STAGE_OUTPUT) ? fmm_cuda_status(plan, output->status, stream)
                                                                    : GMXFMM_OK;
}

gmxfmm_status fmm_device_enqueue(gmxfmm_plan* plan, const void* x, const gmxfmm_device_output* output, void* stream)
{
    DeviceScope scope(plan->device->id);
    return enqueue(plan, x, output, static_cast<cudaStream_t>(stream));
}

/* Memory of the device for what a synchronous execute is asked for. */
static gmxfmm_device_output device_arrays(const gmxfmm_plan* plan, const gmxfmm_output* output, double* sums)
{
    const fmm_device*    d    = plan->device;
    const size_t         word = array_word(plan);
    const size_t         n    = static_cast<size_t>(targets_of(d)->n);
    char*                out  = d->output.copy.as<char>();
    gmxfmm_device_output on_device;
    std::memset(&on_device, 0, sizeof(on_device));
    on_device.force           = output->force != NULL ? out : NULL;
    on_device.field           = output->field != NULL ? out + 3 * n * word : NULL;
    on_device.potential       = output->potential != NULL ? out + 6 * n * word : NULL;
    on_device.energy          = output->want_energy ? sums : NULL;
    on_device.virial          = output->want_virial ? sums + 2 : NULL;
    on_device.charge_gradient = output->charge_gradient != NULL ? d->derivatives.gradient.as<double>() : NULL;
    return on_device;
}

static gmxfmm_status fetch(gmxfmm_plan* plan, void* to, const void* from, size_t words, cudaStream_t stream)
{
    const size_t word = array_word(plan);
    if (from != NULL && words > 0)
    {
        FMM_CUDA(plan, cudaMemcpyAsync(to, from, words * word, cudaMemcpyDeviceToHost, stream));
    }
    return GMXFMM_OK;
}

/* The status of a finished step, from what it left in *results. */
static gmxfmm_status check_results(gmxfmm_plan* plan, const StepResults* results)
{
    if (results->bad_charge < 0)
    {
        return fmm_fail(plan, GMXFMM_ERROR_CHARGE, "index of charge %d of enqueue_charges is not 0 to %lld",
                        -results->bad_charge - 1, static_cast<long long>(plan->particles.n - 1));
    }
    if (results->bad_charge != c_none)
    {
        return fmm_fail(plan, GMXFMM_ERROR_CHARGE, "charge of particle %d is not finite", results->bad_charge);
    }
    if (results->unplaced != c_none)
    {
        return fmm_fail(plan, GMXFMM_ERROR_POSITION,
                        "position of particle %d at the last enqueued assignment: not finite, or too far away",
                        results->unplaced);
    }
    if (results->bad_positions != c_none)
    {
        return results->left.outside == INFINITY
                   ? fmm_left_lost(plan, results->farthest)
                   : fmm_fail(plan, GMXFMM_ERROR_POSITION, "a position is not finite, or too far away");
    }
    FMM_TRY(fmm_left_check(plan, &results->left, results->farthest));
    if (results->not_finite != c_none)
    {
        return plan->particles.num_targets == 0
                   ? fmm_fail(plan, GMXFMM_ERROR_COINCIDENT,
                              "particle %d stands where another one does, and they do not exclude each other",
                              results->not_finite)
                   : fmm_fail(plan, GMXFMM_ERROR_COINCIDENT, "target %d stands where a particle does",
                              results->not_finite);
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_device_execute(gmxfmm_plan* plan, const void* x, gmxfmm_output* output)
{
    fmm_device*  d       = plan->device;
    StepResults* results = d->output.results.as<StepResults>();
    StepResults  host; /* not pinned, which would take each plan a millisecond */
    const size_t n = static_cast<size_t>(targets_of(d)->n), word = array_word(plan);
    const size_t charges = static_cast<size_t>(plan->particles.n);
    DeviceScope  scope(d->id);
    const double begin = fmm_time();
    FMM_CUDA(plan, cudaMemcpyAsync(d->particles.x_copy.memory, x, 3 * charges * word, cudaMemcpyHostToDevice,
                                   d->schedule.own));
    const gmxfmm_device_output out = device_arrays(plan, output, results->energy);
    FMM_TRY(enqueue(plan, d->particles.x_copy.memory, &out, d->schedule.own));
    FMM_TRY(fetch(plan, output->force, out.force, 3 * n, d->schedule.own));
    FMM_TRY(fetch(plan, output->field, out.field, 3 * n, d->schedule.own));
    FMM_TRY(fetch(plan, output->potential, out.potential, n, d->schedule.own));
    if (output->charge_gradient != NULL)
    {
        const size_t bytes = static_cast<size_t>(plan->derivatives.num) * sizeof(double);
        FMM_CUDA(plan, cudaMemcpyAsync(output->charge_gradient, out.charge_gradient, bytes, cudaMemcpyDeviceToHost,
                                       d->schedule.own));
    }
    FMM_CUDA(plan, cudaMemcpyAsync(&host, results, sizeof(host), cudaMemcpyDeviceToHost, d->schedule.own));
    FMM_CUDA(plan, cudaStreamSynchronize(d->schedule.own));
    if (output->want_energy)
    {
        output->energy_near = host.energy[0];
        output->energy_far  = host.energy[1];
    }
    if (output->want_virial)
    {
        std::memcpy(output->virial, host.virial, sizeof(host.virial));
    }
    output->outside = host.left.outside;
    plan->info.time_output += fmm_time() - begin; /* stages overlap: one time for all */
    return check_results(plan, &host);
}

/* Time of one of num steps, or of some of its stages, in s, each a graph, as simulations have them: calls of single
 * kernels would take the host longer than a short step takes the device. */
static gmxfmm_status
time_graph(gmxfmm_plan* plan, const void* x, const gmxfmm_device_output* output, int num, double* seconds)
{
    fmm_device*     d        = plan->device;
    cudaGraph_t     recorded = NULL;
    cudaGraphExec_t graph    = NULL;
    float           ms       = 0;
    FMM_CUDA(plan, cudaStreamBeginCapture(d->schedule.own, cudaStreamCaptureModeThreadLocal));
    gmxfmm_status     status = enqueue(plan, x, output, d->schedule.own);
    const cudaError_t ended  = cudaStreamEndCapture(d->schedule.own, &recorded);
    cudaError_t       error  = status != GMXFMM_OK || ended != cudaSuccess
                                   ? ended
                                   : cudaGraphInstantiateWithFlags(&graph, recorded, c_graphFlags);
    if (graph != NULL)
    {
        /* the first launch uploads the graph */
        for (int i = 0; i <= num && error == cudaSuccess; i++)
        {
            error = i == 1 ? cudaEventRecord(d->schedule.begin, d->schedule.own) : cudaSuccess;
            error = error == cudaSuccess ? cudaGraphLaunch(graph, d->schedule.own) : error;
        }
        error = error == cudaSuccess ? cudaEventRecord(d->schedule.end, d->schedule.own) : error;
        error = error == cudaSuccess ? cudaEventSynchronize(d->schedule.end) : error;
        error = error == cudaSuccess ? cudaEventElapsedTime(&ms, d->schedule.begin, d->schedule.end) : error;
        cudaGraphExecDestroy(graph);
    }
    if (recorded != NULL)
    {
        cudaGraphDestroy(recorded);
    }
    FMM_TRY(status);
    FMM_CUDA(plan, error);
    *seconds = 1e-3 * static_cast<double>(ms) / num;
    return GMXFMM_OK;
}

/* Adds what a step takes longer if near field and as much again run beside the far field, all else being as it is. On
 * several devices, of which only the first has as much again, that is timed in its place. */
static gmxfmm_status
add_pairs_beside(gmxfmm_plan* plan, const void* x, const gmxfmm_device_output* output, int num, double* seconds)
{
    gmxfmm_device_output part = *output;
    double               near = 0, far = 0;
    if (has_parts(plan->device))
    {
        plan->device->parts->loaded = true;
        const gmxfmm_status status  = time_graph(plan, x, output, num, seconds);
        plan->device->parts->loaded = false;
        return status;
    }
    part.stages = GMXFMM_STAGE_NEAR;
    FMM_TRY(time_graph(plan, x, &part, num, &near));
    part.stages = GMXFMM_STAGE_FAR;
    FMM_TRY(time_graph(plan, x, &part, num, &far));
    *seconds += std::fmax(0, 2 * near - std::fmax(near, far));
    return GMXFMM_OK;
}

/* Time of one of num steps, in s, enqueued one after the other without any wait for the host. */
static gmxfmm_status time_enqueued(
    gmxfmm_plan* plan, const void* x, const gmxfmm_device_output* output, int num, cudaStream_t stream, double* seconds)
{
    fmm_device* d  = plan->device;
    float       ms = 0;
    FMM_CUDA(plan, cudaEventRecord(d->schedule.begin, stream));
    for (int i = 0; i < num; i++)
    {
        FMM_TRY(enqueue(plan, x, output, stream));
    }
    FMM_CUDA(plan, cudaEventRecord(d->schedule.end, stream));
    FMM_CUDA(plan, cudaEventSynchronize(d->schedule.end));
    FMM_CUDA(plan, cudaEventElapsedTime(&ms, d->schedule.begin, d->schedule.end));
    *seconds = 1e-3 * static_cast<double>(ms) / num;
    return GMXFMM_OK;
}

/* The output of a step that is timed: forces, to the plan's own memory. */
static gmxfmm_device_output timed_output(const gmxfmm_plan* plan)
{
    gmxfmm_output forces;
    std::memset(&forces, 0, sizeof(forces));
    forces.force = plan->device->output.copy.memory;
    return device_arrays(plan, &forces, NULL);
}

gmxfmm_status fmm_device_time_steps(gmxfmm_plan* plan, const void* x, int num, double* seconds)
{
    fmm_device*                d = plan->device;
    StepResults                host;
    const size_t               bytes = 3 * static_cast<size_t>(plan->particles.n) * array_word(plan);
    DeviceScope                scope(d->id);
    const gmxfmm_device_output out = timed_output(plan);
    FMM_CUDA(plan, cudaMemcpyAsync(d->particles.x_copy.memory, x, bytes, cudaMemcpyHostToDevice, d->schedule.own));
    FMM_TRY(time_graph(plan, d->particles.x_copy.memory, &out, num, seconds));
    if (plan->options.pairs_beside)
    {
        FMM_TRY(add_pairs_beside(plan, d->particles.x_copy.memory, &out, num, seconds));
    }
    FMM_CUDA(plan,
             cudaMemcpyAsync(&host, d->output.results.memory, sizeof(host), cudaMemcpyDeviceToHost, d->schedule.own));
    FMM_CUDA(plan, cudaStreamSynchronize(d->schedule.own));
    return check_results(plan, &host);
}

gmxfmm_status fmm_device_time_stages(
    gmxfmm_plan* plan, const void* x, unsigned stages, int repeats, void* caller_stream, double* seconds)
{
    const cudaStream_t   stream = static_cast<cudaStream_t>(caller_stream);
    DeviceScope          scope(plan->device->id);
    gmxfmm_device_output out = timed_output(plan);
    /* kernels are loaded by their first launch, lattice sums made by the first step: neither is to be timed */
    FMM_TRY(enqueue(plan, x, &out, stream));
    FMM_CUDA(plan, cudaStreamSynchronize(stream));
    out.stages = stages;
    return time_enqueued(plan, x, &out, repeats, stream, seconds);
}
