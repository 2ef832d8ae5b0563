/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The stages of a step in order, on streams: the only file that forks and joins those of one device. */
#include "cuda/execute.h"

#include "cuda/charge_gradient.h"
#include "cuda/convolution/convolution.h"
#include "cuda/device.h"
#include "cuda/devices/devices.h"
#include "cuda/expansions/expansions.h"
#include "cuda/near/near.h"
#include "cuda/output.h"
#include "cuda/particles/particles.h"
#include "cuda/runtime/event.h"
#include "cuda/schedule.h"
#include "cuda/tree/leaves.h"

/* What a step computes while P2M and transforms run on the stream `far`. */
struct SideWork
{
    bool         spectra; /* lattice sums of a new box */
    bool         moments; /* dipole and quadrupole, where P2M does not compute them */
    bool         looks;   /* for particles that have left their cells; with moments */
    bool         any;     /* one of these, or moments for other devices */
    cudaStream_t stream;  /* `side`, or the caller's if nothing else would run in it at that time */
};

/* P2M, and spectra of a new box. */
static gmxfmm_status begin_far_field(gmxfmm_plan* plan, bool virial, const SideWork& wanted)
{
    const DeviceSchedule& s = plan->device->schedule;
    FMM_CUDA(plan, cudaStreamWaitEvent(s.far, s.fork, 0));
    FMM_TRY(fmm_cuda_p2m(plan, fmm_is_bulk(plan) && !wanted.moments));
    if (!wanted.any)
    {
        return GMXFMM_OK;
    }
    FMM_CUDA(plan, wanted.stream == s.side ? cudaStreamWaitEvent(s.side, s.fork, 0) : cudaSuccess);
    return fmm_cuda_make_spectra(plan, virial, wanted.spectra, wanted.stream);
}

/* The rest of the far field: from the multipoles to the targets. Moments that are sums of P2M's blocks are waited for
 * as late as can be, all else before the product. */
static gmxfmm_status end_far_field(gmxfmm_plan* plan, const void* x, bool virial, bool gradient, const SideWork& wanted)
{
    const DeviceSchedule& s     = plan->device->schedule;
    const bool            early = wanted.spectra || wanted.moments;
    if (wanted.moments)
    {
        FMM_TRY(fmm_cuda_moments(plan, x, wanted.stream));
        FMM_TRY(wanted.looks ? fmm_cuda_look(plan, x, wanted.stream) : GMXFMM_OK);
    }
    FMM_TRY(fmm_cuda_send_moments(plan, fmm_is_bulk(plan) && !wanted.moments, wanted.stream));
    FMM_CUDA(plan, wanted.any ? cudaEventRecord(s.side_done, wanted.stream) : cudaSuccess);
    FMM_TRY(plan->device->far.path->far(plan, virial, early ? s.side_done : NULL));
    FMM_TRY(fmm_cuda_l2p(plan, gradient, wanted.any && !early ? s.side_done : NULL));
    FMM_TRY(fmm_is_adaptive(plan) ? fmm_cuda_from_leaf_units(plan, gradient, s.far) : GMXFMM_OK);
    FMM_TRY(fmm_cuda_end_far(plan, virial));
    FMM_CUDA(plan, cudaEventRecord(s.far_done, s.far));
    return fmm_cuda_prefetch_spectra(plan, virial);
}

/* P2P after `fork` in the stream, or after another event, and before what follows in the stream. If it cannot fill the
 * device it runs in the stream itself: with few particles a step without a graph takes as long as its calls. Otherwise
 * its blocks have to give way to those of the far field, on a stream of lower priority. */
static gmxfmm_status near_field(gmxfmm_plan* plan, const StepWanted& wanted, cudaEvent_t after, cudaStream_t stream)
{
    const DeviceSchedule& s = plan->device->schedule;
    if (after == s.fork && tiles_each(plan->device) < c_fillingTiles)
    {
        return fmm_cuda_p2p(plan, plan->device, wanted, stream);
    }
    FMM_CUDA(plan, cudaStreamWaitEvent(s.near, after, 0));
    FMM_TRY(fmm_cuda_p2p(plan, plan->device, wanted, s.near));
    FMM_CUDA(plan, cudaEventRecord(s.near_done, s.near));
    FMM_CUDA(plan, cudaStreamWaitEvent(stream, s.near_done, 0));
    return GMXFMM_OK;
}

/* What takes longest is launched early, unless it follows the transform of the multipoles: a device that has finished
 * the step before waits for the host at each launch. */
gmxfmm_status
fmm_cuda_fields(gmxfmm_plan* plan, const void* x, unsigned stages, const StepWanted& wanted, cudaStream_t stream)
{
    const fmm_device*     d      = plan->device;
    const DeviceSchedule& s      = d->schedule;
    const bool            virial = wanted.virial != 0, far = (stages & GMXFMM_STAGE_FAR) != 0;
    const bool            near    = (stages & GMXFMM_STAGE_NEAR) != 0 && d->range.end_share > 0;
    const bool            follows = near && far && plan->domain.tree == NULL && follows_transform(d);
    const bool            spectra = fmm_cuda_wants_spectra(plan, virial);
    const bool            moments = virial || plan->options.boundary == GMXFMM_VACUUM || fmm_cuda_moments_beside(plan);
    const SideWork        side    = {spectra, moments, fmm_cuda_looks_beside(plan, stages),
                                     spectra || moments || shares_cells(plan), spectra || !follows ? s.side : stream};
    FMM_CUDA(plan, cudaEventRecord(s.fork, stream));
    FMM_TRY(fmm_cuda_begin_others(plan, wanted, stages));
    if (far)
    {
        FMM_TRY(begin_far_field(plan, virial, side));
    }
    if (near && !follows)
    {
        FMM_TRY(near_field(plan, wanted, s.fork, stream));
    }
    if (far)
    {
        FMM_TRY(end_far_field(plan, x, virial, wanted.gradient != 0, side));
        FMM_CUDA(plan, cudaStreamWaitEvent(stream, s.far_done, 0));
    }
    if (follows)
    {
        FMM_TRY(near_field(plan, wanted, s.spectrum_done, stream));
    }
    return fmm_cuda_end_others(plan, wanted, stages, stream);
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
        const DeviceSchedule& s = plan->device->schedule;
        FMM_CUDA(plan, cudaStreamWaitEvent(stream, s.spectrum_done, 0));
        FMM_CUDA(plan, cudaStreamWaitEvent(stream, s.side_done, 0)); /* of Z; a virial needs moments, too */
        FMM_TRY(fmm_cuda_wait_gathered(plan, stream));
        FMM_TRY(fmm_cuda_m2l_virial(plan, stream));
    }
    return GMXFMM_OK;
}

/* Energy and virial, after the arrays. The kernels that only the virial needs run at the same time as near and far
 * field or, if the caller waits for the arrays, after them. */
static gmxfmm_status
end_sums(gmxfmm_plan* plan, unsigned stages, const gmxfmm_device_output* output, cudaStream_t stream)
{
    const DeviceSchedule& s = plan->device->schedule;
    FMM_CUDA(plan, cudaEventRecord(s.output_done, stream));
    if (output->virial != NULL)
    {
        FMM_CUDA(plan, cudaStreamWaitEvent(s.sums, output->arrays_done != NULL ? s.output_done : s.fork, 0));
        FMM_TRY(virial_parts(plan, stages, s.sums));
    }
    if (stages & GMXFMM_STAGE_OUTPUT)
    {
        FMM_CUDA(plan, cudaStreamWaitEvent(s.sums, s.output_done, 0));
        FMM_TRY(fmm_cuda_sums(plan, output, s.sums));
    }
    FMM_CUDA(plan, cudaEventRecord(s.sums_done, s.sums));
    FMM_CUDA(plan, cudaStreamWaitEvent(stream, s.sums_done, 0));
    return GMXFMM_OK;
}

gmxfmm_status
fmm_cuda_enqueue(gmxfmm_plan* plan, const void* x, const gmxfmm_device_output* output, cudaStream_t stream)
{
    const unsigned   stages = output->stages != 0 ? output->stages : ~0u;
    const StepWanted wanted = {output->energy != NULL, output->virial != NULL,
                               output->energy != NULL || output->virial != NULL || output->potential != NULL ||
                                   output->charge_gradient != NULL,
                               fmm_cuda_wants_gradient(plan, output)};
    FMM_TRY(fmm_cuda_store_box(plan, stream));
    if (stages & GMXFMM_STAGE_PERMUTE)
    {
        FMM_TRY(
            fmm_cuda_permute(plan, x, fmm_cuda_position_copies(plan), !fmm_cuda_looks_beside(plan, stages), stream));
    }
    FMM_TRY(fmm_cuda_fields(plan, x, stages, wanted, stream));
    if (output->arrays_after != NULL)
    {
        FMM_CUDA(plan, cudaStreamWaitEvent(stream, static_cast<cudaEvent_t>(output->arrays_after), 0));
    }
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
    return output->status != NULL && (stages & GMXFMM_STAGE_OUTPUT)
               ? fmm_cuda_status(plan, false, output->status, stream)
               : GMXFMM_OK;
}

gmxfmm_status fmm_device_enqueue(gmxfmm_plan* plan, const void* x, const gmxfmm_device_output* output, void* stream)
{
    DeviceScope scope(plan->device->id);
    return fmm_cuda_enqueue(plan, x, output, static_cast<cudaStream_t>(stream));
}
