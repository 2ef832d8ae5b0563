/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Times of steps and their stages. */
#include "cuda/timing.h"

#include <cmath>
#include <cstring>

#include "cuda/device.h"
#include "cuda/devices/devices.h"
#include "cuda/execute.h"
#include "cuda/near/range.h"
#include "cuda/runtime/recording.h"
#include "cuda/synchronous.h"

/* Streams differ in priority, which a graph without this would lose. */
#if CUDART_VERSION >= 11070
static const unsigned long long c_graphFlags = cudaGraphInstantiateFlagUseNodePriority;
#else
static const unsigned long long c_graphFlags = 0;
#endif

/* Records a step, or some of its stages, as a graph. */
static gmxfmm_status
record_graph(gmxfmm_plan* plan, const void* x, const gmxfmm_device_output* output, cudaGraphExec_t* graph)
{
    const cudaStream_t stream   = plan->device->schedule.own;
    cudaGraph_t        recorded = NULL;
    gmxfmm_status      status   = GMXFMM_OK;
    cudaError_t        error    = cudaSuccess;
    {
        Recording recording;
        FMM_CUDA(plan, cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        status = fmm_cuda_enqueue(plan, x, output, stream);
        error  = cudaStreamEndCapture(stream, &recorded);
    }
    if (status == GMXFMM_OK && error == cudaSuccess)
    {
        error = cudaGraphInstantiateWithFlags(graph, recorded, c_graphFlags);
    }
    if (recorded != NULL)
    {
        cudaGraphDestroy(recorded);
    }
    FMM_TRY(status);
    FMM_CUDA(plan, error);
    return GMXFMM_OK;
}

/* Time of one of num steps, or of some of its stages, in s, each a graph, as simulations have them: calls of single
 * kernels would take the host longer than a short step takes the device. */
static gmxfmm_status
time_graph(gmxfmm_plan* plan, const void* x, const gmxfmm_device_output* output, int num, double* seconds)
{
    const DeviceSchedule& s     = plan->device->schedule;
    cudaGraphExec_t       graph = NULL;
    cudaError_t           error = cudaSuccess;
    float                 ms    = 0;
    FMM_TRY(record_graph(plan, x, output, &graph));
    /* the first launch uploads the graph */
    for (int i = 0; i <= num && error == cudaSuccess; i++)
    {
        error = i == 1 ? cudaEventRecord(s.begin, s.own) : cudaSuccess;
        error = error == cudaSuccess ? cudaGraphLaunch(graph, s.own) : error;
    }
    error = error == cudaSuccess ? cudaEventRecord(s.end, s.own) : error;
    error = error == cudaSuccess ? cudaEventSynchronize(s.end) : error;
    error = error == cudaSuccess ? cudaEventElapsedTime(&ms, s.begin, s.end) : error;
    cudaGraphExecDestroy(graph);
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
    if (has_others(plan->device))
    {
        plan->device->group->pairs_beside = true;
        const gmxfmm_status status        = time_graph(plan, x, output, num, seconds);
        plan->device->group->pairs_beside = false;
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
        FMM_TRY(fmm_cuda_enqueue(plan, x, output, stream));
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
    return fmm_cuda_arrays(plan, &forces, NULL);
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
    return fmm_cuda_check_results(plan, &host);
}

gmxfmm_status fmm_device_time_stages(
    gmxfmm_plan* plan, const void* x, unsigned stages, int repeats, void* caller_stream, double* seconds)
{
    const cudaStream_t   stream = static_cast<cudaStream_t>(caller_stream);
    DeviceScope          scope(plan->device->id);
    gmxfmm_device_output out = timed_output(plan);
    /* kernels are loaded by their first launch, lattice sums made by the first step: neither is to be timed */
    FMM_TRY(fmm_cuda_enqueue(plan, x, &out, stream));
    FMM_CUDA(plan, cudaStreamSynchronize(stream));
    out.stages = stages;
    return time_enqueued(plan, x, &out, repeats, stream, seconds);
}

gmxfmm_status fmm_cuda_measure_shares(gmxfmm_plan* plan, const void* x)
{
    return fmm_cuda_find_shares(plan, x, {fmm_cuda_fields, time_graph});
}
