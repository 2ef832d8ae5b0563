/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One step in SPC water on a GPU, as a host program with its own streams has it:
 *   water_cuda SPC216.GRO COPIES [--once] [ORDER CELLS WS]...
 * For each choice of order, cells and separation (0 0 0: the library's) one line of JSON on stdout. Times are by events
 * around graph launches, the median of 100; far is P2M to L2P, near P2P, each alone; total a whole step with both
 * overlapped. The force error is that of all atoms against order 16 in double precision on the same device.
 * --once: one step of each and nothing else, for profilers.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "gmxfmm.h"
#include "water.h"

enum
{
    c_repeats = 100
};

static void check(gmxfmm_status status, const char* message)
{
    if (status != GMXFMM_OK)
    {
        fprintf(stderr, "%s: %s\n", gmxfmm_status_text(status), message);
        exit(1);
    }
}

static void cuda(cudaError_t error, const char* what)
{
    if (error != cudaSuccess)
    {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
        exit(1);
    }
}

#define CUDA(call) cuda((call), #call)

static int ascending(const void* a, const void* b)
{
    const float x = *(const float*)a, y = *(const float*)b;
    return (x > y) - (x < y);
}

typedef struct
{
    gmxfmm_plan* plan;
    float *      x, *force, *potential; /* of the device */
    cudaStream_t stream;
} step;

static gmxfmm_plan* make_plan(const water* w, const gmxfmm_options* options)
{
    gmxfmm_plan* plan;
    char         message[512];
    check(gmxfmm_create(&plan, options, w->n, w->box, message, sizeof(message)), message);
    float* q = malloc((size_t)w->n * sizeof(float));
    for (int i = 0; i < w->n; i++)
    {
        q[i] = (float)w->q[i];
    }
    check(gmxfmm_set_charges(plan, w->n, q), gmxfmm_message(plan));
    check(gmxfmm_set_exclusions(plan, w->excl_start, w->excl_list), gmxfmm_message(plan));
    free(q);
    return plan;
}

static void enqueue(const step* s, unsigned stages)
{
    gmxfmm_device_output out = {.force = s->force, .potential = s->potential, .stages = stages};
    check(gmxfmm_enqueue(s->plan, s->x, &out, s->stream), gmxfmm_message(s->plan));
}

/* Median time of the stages as one graph, ms. */
static double time_stages(const step* s, unsigned stages)
{
    cudaGraph_t     graph;
    cudaGraphExec_t exec;
    cudaEvent_t     begin, end;
    float           ms[c_repeats];
    CUDA(cudaEventCreate(&begin));
    CUDA(cudaEventCreate(&end));
    CUDA(cudaStreamBeginCapture(s->stream, cudaStreamCaptureModeThreadLocal));
    enqueue(s, stages);
    CUDA(cudaStreamEndCapture(s->stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = -5; i < c_repeats; i++)
    {
        CUDA(cudaEventRecord(begin, s->stream));
        CUDA(cudaGraphLaunch(exec, s->stream));
        CUDA(cudaEventRecord(end, s->stream));
        CUDA(cudaStreamSynchronize(s->stream));
        if (i >= 0)
        {
            CUDA(cudaEventElapsedTime(ms + i, begin, end));
        }
    }
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaEventDestroy(begin));
    CUDA(cudaEventDestroy(end));
    qsort(ms, c_repeats, sizeof(float), ascending);
    return (double)ms[c_repeats / 2];
}

/* Time of a step when many are in flight, ms: what a host program that never waits sees. */
static double time_many(const step* s)
{
    cudaEvent_t begin, end;
    float       ms;
    CUDA(cudaEventCreate(&begin));
    CUDA(cudaEventCreate(&end));
    CUDA(cudaEventRecord(begin, s->stream));
    for (int i = 0; i < c_repeats; i++)
    {
        enqueue(s, 0);
    }
    CUDA(cudaEventRecord(end, s->stream));
    CUDA(cudaStreamSynchronize(s->stream));
    CUDA(cudaEventElapsedTime(&ms, begin, end));
    CUDA(cudaEventDestroy(begin));
    CUDA(cudaEventDestroy(end));
    return (double)ms / c_repeats;
}

static double relative_error(const float* force, const float* reference, int n)
{
    double difference = 0, norm = 0;
    for (int i = 0; i < 3 * n; i++)
    {
        const double d = (double)force[i] - (double)reference[i];
        difference += d * d;
        norm += (double)reference[i] * (double)reference[i];
    }
    return sqrt(difference / norm);
}

static void fetch_forces(const step* s, int n, float* force)
{
    gmxfmm_device_output out = {.force = s->force, .potential = s->potential};
    CUDA(cudaMemset(s->force, 0xff, 3 * (size_t)n * sizeof(float)));
    check(gmxfmm_enqueue(s->plan, s->x, &out, s->stream), gmxfmm_message(s->plan));
    CUDA(cudaStreamSynchronize(s->stream));
    CUDA(cudaMemcpy(force, s->force, 3 * (size_t)n * sizeof(float), cudaMemcpyDeviceToHost));
}

/* Useful pairs: ordered pairs of atoms in near cells, those left out included. */
static void report(step* s, const water* w, const float* reference, float* force)
{
    gmxfmm_info info;
    check(gmxfmm_assign(s->plan, s->x), gmxfmm_message(s->plan));
    fetch_forces(s, w->n, force);
    const double error = relative_error(force, reference, w->n);
    gmxfmm_get_info(s->plan, &info);
    gmxfmm_reset_times(s->plan);
    for (int i = 0; i < 5; i++)
    {
        check(gmxfmm_assign(s->plan, s->x), gmxfmm_message(s->plan));
    }
    gmxfmm_info after;
    gmxfmm_get_info(s->plan, &after);
    const double permute = time_stages(s, GMXFMM_STAGE_PERMUTE), near = time_stages(s, GMXFMM_STAGE_NEAR);
    const double far = time_stages(s, GMXFMM_STAGE_FAR), output = time_stages(s, GMXFMM_STAGE_OUTPUT);
    const double both  = time_stages(s, GMXFMM_STAGE_NEAR | GMXFMM_STAGE_FAR);
    const double total = time_stages(s, 0), many = time_many(s);
    printf("{\"atoms\": %d, \"order\": %d, \"cells\": [%d, %d, %d], \"separation\": %d, \"near_neighbours\": %.1f, "
           "\"far_ms\": %.4f, \"near_ms\": %.4f, \"both_ms\": %.4f, \"total_ms\": %.4f, \"total_in_flight_ms\": %.4f, "
           "\"permute_ms\": %.4f, \"output_ms\": %.4f, \"assign_ms\": %.3f, \"useful_pairs_per_s\": %.4g, "
           "\"bytes_per_atom\": %.0f, \"relative_force_error\": %.3e}\n",
           w->n, info.order, info.grid[0], info.grid[1], info.grid[2], info.separation, info.near_particles, far, near,
           both, total, many, permute, output, after.time_assign / 5 * 1e3, w->n * info.near_particles / (near * 1e-3),
           (double)info.bytes / w->n, error);
    fflush(stdout);
}

int main(int argc, char** argv)
{
    if (argc < 3)
    {
        fprintf(stderr, "usage: %s SPC216.GRO COPIES [ORDER CELLS WS]...\n", argv[0]);
        return 2;
    }
    water          w = water_read(argv[1], atoi(argv[2]));
    const size_t   n = (size_t)w.n;
    gmxfmm_options options;
    gmxfmm_default_options(&options);
    options.device     = GMXFMM_CUDA;
    options.array_type = GMXFMM_SINGLE;
    step   s           = {0};
    float *x = malloc(3 * n * sizeof(float)), *force = malloc(3 * n * sizeof(float)),
          *reference = malloc(3 * n * sizeof(float));
    for (size_t i = 0; i < 3 * n; i++)
    {
        x[i] = (float)w.x[i];
    }
    CUDA(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking));
    CUDA(cudaMalloc((void**)&s.x, 3 * n * sizeof(float)));
    CUDA(cudaMalloc((void**)&s.force, 3 * n * sizeof(float)));
    CUDA(cudaMalloc((void**)&s.potential, n * sizeof(float)));
    CUDA(cudaMemcpy(s.x, x, 3 * n * sizeof(float), cudaMemcpyHostToDevice));

    const int once = argc > 3 && strcmp(argv[3], "--once") == 0;
    for (int i = 4; once && i + 2 < argc; i += 3)
    {
        options.order   = atoi(argv[i]);
        options.grid[0] = options.grid[1] = options.grid[2] = atoi(argv[i + 1]);
        options.separation                                  = atoi(argv[i + 2]);
        s.plan                                              = make_plan(&w, &options);
        check(gmxfmm_assign(s.plan, s.x), gmxfmm_message(s.plan));
        fetch_forces(&s, w.n, force);
        gmxfmm_destroy(s.plan);
    }
    if (once)
    {
        return 0;
    }
    gmxfmm_options exact = options;
    exact.precision      = GMXFMM_DOUBLE;
    exact.order          = 16;
    exact.separation     = 1;
    exact.grid[0] = exact.grid[1] = exact.grid[2] = (int)(w.box[0] / 0.93);
    s.plan                                        = make_plan(&w, &exact);
    check(gmxfmm_assign(s.plan, s.x), gmxfmm_message(s.plan));
    fetch_forces(&s, w.n, reference);
    gmxfmm_destroy(s.plan);
    for (int i = 3; i == 3 || i + 2 < argc; i += 3)
    {
        if (i + 2 < argc && atoi(argv[i + 1]) > 0)
        {
            options.order   = atoi(argv[i]);
            options.grid[0] = options.grid[1] = options.grid[2] = atoi(argv[i + 1]);
            options.separation                                  = atoi(argv[i + 2]);
        }
        s.plan = make_plan(&w, &options);
        report(&s, &w, reference, force);
        gmxfmm_destroy(s.plan);
    }
    CUDA(cudaFree(s.x));
    CUDA(cudaFree(s.force));
    CUDA(cudaFree(s.potential));
    free(x);
    free(force);
    free(reference);
    water_free(&w);
    return 0;
}
