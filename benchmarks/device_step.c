/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "device_step.h"

#include <stdio.h>
#include <stdlib.h>

#include <cuda_profiler_api.h>

enum
{
    c_repeats = 100,
    c_least   = 5,
    c_assigns = 5
};

void bench_cuda(cudaError_t error, const char* what)
{
    if (error != cudaSuccess)
    {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
        exit(1);
    }
}

float* bench_device_floats(size_t n, const float* host)
{
    float* memory = NULL;
    CUDA(cudaMalloc((void**)&memory, n * sizeof(float)));
    if (host != NULL)
    {
        CUDA(cudaMemcpy(memory, host, n * sizeof(float), cudaMemcpyHostToDevice));
        CUDA(cudaDeviceSynchronize()); /* the step's stream does not wait for the default one */
    }
    return memory;
}

void device_step_enqueue(const device_step* s, unsigned stages)
{
    gmxfmm_device_output out = {.size           = sizeof(out),
                                .force          = s->force,
                                .field          = s->field,
                                .potential      = s->potential,
                                .virial         = s->virial,
                                .stages         = stages,
                                .torque         = s->torque,
                                .field_gradient = s->gradient};
    bench_check(gmxfmm_enqueue(s->plan, s->x, &out, s->stream), gmxfmm_message(s->plan));
}

void device_step_fetch(const device_step* s, size_t n, float* force)
{
    CUDA(cudaMemsetAsync(s->force, 0xff, 3 * n * sizeof(float), s->stream));
    device_step_enqueue(s, 0);
    CUDA(cudaStreamSynchronize(s->stream));
    CUDA(cudaMemcpy(force, s->force, 3 * n * sizeof(float), cudaMemcpyDeviceToHost));
}

static int ascending(const void* a, const void* b)
{
    const float x = *(const float*)a, y = *(const float*)b;
    return (x > y) - (x < y);
}

/* One launch, ms. */
static float launch_ms(cudaGraphExec_t exec, cudaStream_t stream, cudaEvent_t begin, cudaEvent_t end)
{
    float ms;
    CUDA(cudaEventRecord(begin, stream));
    CUDA(cudaGraphLaunch(exec, stream));
    CUDA(cudaEventRecord(end, stream));
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaEventElapsedTime(&ms, begin, end));
    return ms;
}

static void enqueue_assign(const device_step* s)
{
    bench_check(gmxfmm_enqueue_assign(s->plan, s->x, s->stream), gmxfmm_message(s->plan));
}

/* Median time of the stages of a step, or of an assignment, as one graph. */
static double graph_ms(const device_step* s, int assign, unsigned stages)
{
    cudaGraph_t     graph;
    cudaGraphExec_t exec;
    cudaEvent_t     begin, end;
    float           ms[c_repeats];
    CUDA(cudaEventCreate(&begin));
    CUDA(cudaEventCreate(&end));
    CUDA(cudaStreamBeginCapture(s->stream, cudaStreamCaptureModeThreadLocal));
    assign ? enqueue_assign(s) : device_step_enqueue(s, stages);
    CUDA(cudaStreamEndCapture(s->stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagUseNodePriority));
    for (int i = 0; i < c_least; i++)
    {
        ms[0] = launch_ms(exec, s->stream, begin, end);
    }
    const double most    = 2e3 / (double)ms[0];
    const int    repeats = most > c_repeats ? c_repeats : most < c_least ? c_least : (int)most;
    for (int i = 0; i < repeats; i++)
    {
        ms[i] = launch_ms(exec, s->stream, begin, end);
    }
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaEventDestroy(begin));
    CUDA(cudaEventDestroy(end));
    qsort(ms, (size_t)repeats, sizeof(float), ascending);
    return (double)ms[repeats / 2];
}

double device_step_ms(const device_step* s, unsigned stages)
{
    return graph_ms(s, 0, stages);
}

double device_enqueued_assign_ms(const device_step* s)
{
    return graph_ms(s, 1, 0);
}

static void set_stretched_box(const device_step* s, const double* box, double stretch)
{
    double stretched[9];
    for (int i = 0; i < 9; i++)
    {
        stretched[i] = box[i] * (i % 3 == 2 ? 1 + stretch : 1 - 0.5 * stretch);
    }
    bench_check(gmxfmm_set_box(s->plan, stretched), gmxfmm_message(s->plan));
}

/* box: NULL, or what is changed from step to step. */
static double ms_in_flight(const device_step* s, const double* box)
{
    cudaEvent_t begin, end;
    float       ms;
    CUDA(cudaEventCreate(&begin));
    CUDA(cudaEventCreate(&end));
    CUDA(cudaEventRecord(begin, s->stream));
    for (int i = 0; i < c_repeats; i++)
    {
        if (box != NULL)
        {
            set_stretched_box(s, box, 1e-3 * ((i % 8) - 3.5) / 3.5);
        }
        device_step_enqueue(s, 0);
    }
    CUDA(cudaEventRecord(end, s->stream));
    CUDA(cudaStreamSynchronize(s->stream));
    CUDA(cudaEventElapsedTime(&ms, begin, end));
    CUDA(cudaEventDestroy(begin));
    CUDA(cudaEventDestroy(end));
    return (double)ms / c_repeats;
}

double device_step_ms_in_flight(const device_step* s)
{
    return ms_in_flight(s, NULL);
}

double device_step_ms_with_boxes(const device_step* s, const double* box)
{
    set_stretched_box(s, box, 1e-4); /* what only the first step has to do */
    device_step_enqueue(s, 0);
    CUDA(cudaStreamSynchronize(s->stream));
    const double ms = ms_in_flight(s, box);
    set_stretched_box(s, box, 0);
    device_step_enqueue(s, 0);
    CUDA(cudaStreamSynchronize(s->stream));
    return ms;
}

void device_step_profile(const device_step* s, const double* box)
{
    device_step_enqueue(s, 0);
    CUDA(cudaDeviceSynchronize());
    if (box != NULL)
    {
        set_stretched_box(s, box, 1e-3);
    }
    CUDA(cudaProfilerStart());
    device_step_enqueue(s, 0);
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaProfilerStop());
}

double device_assign_ms(const device_step* s)
{
    gmxfmm_info info = {.size = sizeof(info)};
    bench_check(gmxfmm_assign(s->plan, s->x), gmxfmm_message(s->plan));
    gmxfmm_reset_times(s->plan);
    for (int i = 0; i < c_assigns; i++)
    {
        bench_check(gmxfmm_assign(s->plan, s->x), gmxfmm_message(s->plan));
    }
    bench_check(gmxfmm_get_info(s->plan, &info), gmxfmm_message(s->plan));
    return info.time_assign / c_assigns * 1e3;
}
