/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A step with arrays of the host. */
#include "cuda/synchronous.h"

#include <cmath>
#include <cstring>

#include "cuda/device.h"
#include "cuda/execute.h"

extern "C"
{
#include "fmm/left.h"
}

gmxfmm_device_output fmm_cuda_arrays(const gmxfmm_plan* plan, const gmxfmm_output* output, double* sums)
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
    on_device.torque          = output->torque != NULL ? out + 7 * n * word : NULL;
    on_device.field_gradient  = output->field_gradient != NULL ? out + 10 * n * word : NULL;
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

gmxfmm_status fmm_cuda_check_results(gmxfmm_plan* plan, const StepResults* results)
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
    const gmxfmm_device_output out = fmm_cuda_arrays(plan, output, results->energy);
    FMM_TRY(fmm_cuda_enqueue(plan, d->particles.x_copy.memory, &out, d->schedule.own));
    FMM_TRY(fetch(plan, output->force, out.force, 3 * n, d->schedule.own));
    FMM_TRY(fetch(plan, output->field, out.field, 3 * n, d->schedule.own));
    FMM_TRY(fetch(plan, output->potential, out.potential, n, d->schedule.own));
    FMM_TRY(fetch(plan, output->torque, out.torque, 3 * n, d->schedule.own));
    FMM_TRY(fetch(plan, output->field_gradient, out.field_gradient, 6 * n, d->schedule.own));
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
    return fmm_cuda_check_results(plan, &host);
}
