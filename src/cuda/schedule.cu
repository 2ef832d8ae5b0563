/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Streams and events of a device's steps; lattice sums beside them, and graphs that have them. */
#include "cuda/schedule.h"

#include "cuda/convolution/convolution.h"
#include "cuda/device.h"
#include "cuda/devices/devices.h"
#include "cuda/particles/particles.h"

enum
{
    c_fewCells = 8000
};

/* With few cells a step is a chain of short kernels. */
static bool has_few_cells(const gmxfmm_plan* plan)
{
    return plan->domain.tree == NULL && plan->domain.cells.num_cells < c_fewCells;
}

bool fmm_cuda_moments_beside(const gmxfmm_plan* plan)
{
    return fmm_is_bulk(plan) && (has_few_cells(plan) || fmm_has_dipoles(plan));
}

bool fmm_cuda_looks_beside(const gmxfmm_plan* plan, unsigned stages)
{
    const unsigned all = GMXFMM_STAGE_PERMUTE | GMXFMM_STAGE_FAR | GMXFMM_STAGE_OUTPUT;
    return fmm_is_bulk(plan) && has_few_cells(plan) && !fmm_has_dipoles(plan) && !has_others(plan->device) &&
           (stages & all) == all;
}

/* Events of a step; those of timed steps are begin and end. */
static gmxfmm_status make_events(gmxfmm_plan* plan, DeviceSchedule* s)
{
    for (cudaEvent_t* event :
         {&s->fork, &s->near_done, &s->far_done, &s->side_done, &s->prefetch_done, &s->spectrum_done, &s->output_done,
          &s->sums_done, &s->p2m_done, &s->sent, &s->returned, &s->gathered, &s->cells_found})
    {
        FMM_CUDA(plan, cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    }
    FMM_CUDA(plan, cudaEventCreate(&s->begin));
    FMM_CUDA(plan, cudaEventCreate(&s->end));
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_create_schedule(gmxfmm_plan* plan, fmm_device* device)
{
    DeviceSchedule* s   = &device->schedule;
    int             low = 0, high = 0, near = 0;
    FMM_CUDA(plan, cudaDeviceGetStreamPriorityRange(&low, &high));
    /* The far field is a chain of short kernels, which must not queue behind the blocks of the near field. The near
     * field in turn must not queue behind kernels that a host program runs at the lowest priority at the same time;
     * these then fill the multiprocessors that the last blocks of the near field leave idle. */
    FMM_TRY(fmm_cuda_near_priority(plan, &near));
    FMM_CUDA(plan, cudaStreamCreateWithPriority(&s->far, cudaStreamNonBlocking, high));
    FMM_CUDA(plan, cudaStreamCreateWithPriority(&s->side, cudaStreamNonBlocking, high));
    FMM_CUDA(plan, cudaStreamCreateWithPriority(&s->near, cudaStreamNonBlocking, near));
    FMM_CUDA(plan, cudaStreamCreateWithPriority(&s->prefetch, cudaStreamNonBlocking, low));
    FMM_CUDA(plan, cudaStreamCreateWithPriority(&s->sums, cudaStreamNonBlocking, low));
    FMM_CUDA(plan, cudaStreamCreateWithPriority(&s->own, cudaStreamNonBlocking, high));
    return make_events(plan, s);
}

void fmm_cuda_destroy_schedule(fmm_device* device)
{
    const DeviceSchedule& s = device->schedule;
    for (cudaStream_t stream : {s.near, s.far, s.side, s.prefetch, s.sums, s.own})
    {
        if (stream != NULL)
        {
            cudaStreamDestroy(stream);
        }
    }
    for (cudaEvent_t event :
         {s.fork, s.near_done, s.far_done, s.side_done, s.prefetch_done, s.spectrum_done, s.output_done, s.sums_done,
          s.p2m_done, s.sent, s.returned, s.gathered, s.cells_found, s.begin, s.end})
    {
        if (event != NULL)
        {
            cudaEventDestroy(event);
        }
    }
}

/* Whether spectra of S, or of Z, are there that no step has waited for. */
static bool awaits_s(const fmm_device* d)
{
    return d->schedule.s_joined != d->far.cells.s_version;
}

static bool awaits_z(const fmm_device* d)
{
    return d->schedule.z_joined != d->far.cells.z_version;
}

static void join(fmm_device* d)
{
    d->schedule.s_joined = d->far.cells.s_version;
    d->schedule.z_joined = d->far.cells.z_version;
}

bool fmm_cuda_wants_spectra(const gmxfmm_plan* plan, bool virial)
{
    return fmm_has_lattice_sums(plan) && (!has_s(plan) || awaits_s(plan->device) || (virial && !has_z(plan)));
}

/* Waits for those that are being computed, of Z alone if z_too. */
static gmxfmm_status wait_for_spectra(gmxfmm_plan* plan, bool z_too, bool capturing, cudaStream_t stream)
{
    fmm_device* d = plan->device;
    if (awaits_s(d) || (z_too && awaits_z(d)))
    {
        FMM_CUDA(plan, cudaStreamWaitEvent(stream, d->schedule.prefetch_done, capturing ? cudaEventWaitExternal : 0));
        if (!capturing)
        {
            join(d);
        }
    }
    return GMXFMM_OK;
}

/* Enqueues those that are missing, and what other devices need of them. */
static gmxfmm_status compute_spectra(gmxfmm_plan* plan, bool virial, bool capturing, cudaStream_t stream)
{
    const bool s = !has_s(plan), z = virial && !has_z(plan);
    FMM_TRY(fmm_cuda_spectra(plan, virial, stream));
    FMM_TRY(s ? fmm_cuda_share_spectra(plan, stream) : GMXFMM_OK);
    if (capturing && (s || z))
    {
        plan->device->schedule.sums_graphs = plan->graph_version;
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_make_spectra(gmxfmm_plan* plan, bool virial, bool spectra, cudaStream_t stream)
{
    bool capturing = false;
    FMM_TRY(fmm_cuda_is_capturing(plan, stream, &capturing));
    FMM_TRY(wait_for_spectra(plan, virial || spectra, capturing, stream));
    if (spectra)
    {
        FMM_TRY(compute_spectra(plan, virial, capturing, stream));
        if (!capturing)
        {
            join(plan->device);
        }
    }
    return GMXFMM_OK;
}

/* A new box whose spectra are interpolated between those of the line's nodes. Z is interpolated, too, if any step so
 * far wanted a virial: a graph of such a step reads Z at each launch without asking for it. */
static gmxfmm_status follow_line(gmxfmm_plan* plan, cudaStream_t stream)
{
    fmm_device* d = plan->device;
    FMM_TRY(wait_for_spectra(plan, true, false, stream));
    const BoxValues box = fmm_cuda_take_box(plan);
    FMM_TRY(fmm_cuda_interpolate(plan, d->schedule.virial_version != 0, &box, d->domain.box.as<BoxValues>(), stream));
    join(d);
    return fmm_cuda_share_spectra(plan, stream);
}

/* Begins the spectra of a new box at once: they take as long as a step, and what is enqueued before they are needed
 * runs at the same time. */
static gmxfmm_status begin_spectra(gmxfmm_plan* plan, cudaStream_t stream)
{
    const DeviceSchedule* s = &plan->device->schedule;
    FMM_CUDA(plan, cudaEventRecord(s->fork, stream));
    FMM_CUDA(plan, cudaStreamWaitEvent(s->side, s->fork, 0));
    FMM_TRY(wait_for_spectra(plan, true, false, s->side));
    FMM_TRY(compute_spectra(plan, false, false, s->side));
    FMM_CUDA(plan, cudaEventRecord(s->prefetch_done, s->side));
    return GMXFMM_OK;
}

/* Whether graphs captured as a version can be launched. */
static bool can_be_launched(const gmxfmm_plan* plan, int64_t version)
{
    return version == plan->graph_version;
}

gmxfmm_status fmm_device_graphs_follow(gmxfmm_plan* plan, void* stream, int* follow)
{
    const fmm_device* d         = plan->device;
    bool              capturing = false;
    DeviceScope       scope(d->id);
    FMM_TRY(fmm_cuda_is_capturing(plan, static_cast<cudaStream_t>(stream), &capturing));
    *follow = !capturing && plan->domain.tree == NULL && (has_s(plan) || plan->far.line.active) &&
              !can_be_launched(plan, d->domain.box_graphs) && !can_be_launched(plan, d->schedule.sums_graphs);
    return GMXFMM_OK;
}

gmxfmm_status fmm_device_enqueue_box(gmxfmm_plan* plan, void* caller_stream)
{
    cudaStream_t stream    = static_cast<cudaStream_t>(caller_stream);
    bool         capturing = false;
    DeviceScope  scope(plan->device->id);
    FMM_TRY(fmm_cuda_is_capturing(plan, stream, &capturing));
    if (capturing)
    {
        return GMXFMM_OK;
    }
    if (plan->far.line.active && !has_s(plan))
    {
        return follow_line(plan, stream);
    }
    FMM_TRY(fmm_cuda_store_box(plan, stream));
    return has_s(plan) || !fmm_has_lattice_sums(plan) ? GMXFMM_OK : begin_spectra(plan, stream);
}

/* They are computed after the new box's first step, on a stream of the lowest priority, so that a later step need not
 * wait for them. Not in a graph, where every stream must be joined. */
static gmxfmm_status prefetch_z(gmxfmm_plan* plan)
{
    const DeviceSchedule* s         = &plan->device->schedule;
    bool                  capturing = false;
    FMM_TRY(fmm_cuda_is_capturing(plan, s->far, &capturing));
    if (!capturing)
    {
        FMM_CUDA(plan, cudaStreamWaitEvent(s->prefetch, s->far_done, 0));
        FMM_TRY(fmm_cuda_spectra(plan, true, s->prefetch));
        FMM_CUDA(plan, cudaEventRecord(s->prefetch_done, s->prefetch));
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_prefetch_spectra(gmxfmm_plan* plan, bool virial)
{
    DeviceSchedule* s = &plan->device->schedule;
    s->virial_version = virial ? plan->far.version : s->virial_version;
    return s->virial_version == plan->far.version - 1 && !has_z(plan) && fmm_has_lattice_sums(plan) ? prefetch_z(plan)
                                                                                                    : GMXFMM_OK;
}
