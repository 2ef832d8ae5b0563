/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What derivatives of the energy by parameters of charges cost, as lambda dynamics and constant pH want them, in SPC
 * water:
 *   charge_gradient SPC216.GRO COPIES GROUPS ATOMS [cuda]
 * GROUPS parameters, each of the charges of ATOMS atoms in a row, spread evenly. One line of JSON on stdout with times
 * of a step in ms, the medians over rounds in turns: for forces; with the gradient beside them; that and new charges of
 * these atoms before it. On a GPU each is one graph, all arrays there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "water.h"
#ifdef BENCH_ON_DEVICE
#    include "device_step.h"
#endif

enum
{
    c_rounds = 21,
    c_ways   = 3 /* forces; with the gradient; with new charges, too */
};

/* Parameters over groups of atoms, and charges of these atoms. */
typedef struct
{
    int     num, all;
    int *   start, *index;
    double* dq;
    float*  q; /* of the atoms index[all] */
} groups;

static groups make_groups(const water* w, int num, int atoms)
{
    groups             g    = {.num = num, .all = num * atoms};
    unsigned long long seed = 1;
    g.start                 = bench_memory(((size_t)num + 1) * sizeof(int));
    g.index                 = bench_memory((size_t)g.all * sizeof(int));
    g.dq                    = bench_memory((size_t)g.all * sizeof(double));
    g.q                     = bench_memory((size_t)g.all * sizeof(float));
    for (int k = 0; k <= num; k++)
    {
        g.start[k] = k * atoms;
    }
    for (int j = 0; j < g.all; j++)
    {
        g.index[j] = (int)((double)(j / atoms) / num * (w->n - atoms)) + j % atoms;
        g.dq[j]    = bench_random(&seed) - 0.5;
        g.q[j]     = (float)w->q[g.index[j]];
    }
    return g;
}

#ifdef BENCH_ON_DEVICE
static void* to_device(const void* from, size_t bytes)
{
    void* memory = NULL;
    CUDA(cudaMalloc(&memory, bytes));
    CUDA(cudaMemcpy(memory, from, bytes, cudaMemcpyHostToDevice));
    CUDA(cudaDeviceSynchronize()); /* the step's stream does not wait for the default one */
    return memory;
}

/* ms[way][round], of graphs. */
static void time_there(gmxfmm_plan* plan, const water* w, const groups* g, const float* x, double ms[c_ways][c_rounds])
{
    cudaGraphExec_t      exec[c_ways];
    cudaStream_t         stream;
    cudaEvent_t          begin, end;
    gmxfmm_device_output out[2] = {{.size = sizeof(*out)}, {.size = sizeof(*out)}};
    const size_t         floats = 3 * (size_t)w->n * sizeof(float);
    void *               there = to_device(x, floats), *force = to_device(x, floats);
    int*                 index = to_device(g->index, (size_t)g->all * sizeof(int));
    void*                q     = to_device(g->q, (size_t)g->all * sizeof(float));
    out[0].force = out[1].force = force;
    CUDA(cudaMalloc((void**)&out[1].charge_gradient, (size_t)g->num * sizeof(double)));
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaEventCreate(&begin));
    CUDA(cudaEventCreate(&end));
    bench_check(gmxfmm_enqueue(plan, there, &out[1], stream), gmxfmm_message(plan));
    CUDA(cudaStreamSynchronize(stream));
    for (int way = 0; way < c_ways; way++)
    {
        cudaGraph_t graph;
        CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        if (way == 2)
        {
            bench_check(gmxfmm_enqueue_charges(plan, g->all, index, q, stream), gmxfmm_message(plan));
        }
        bench_check(gmxfmm_enqueue(plan, there, &out[way > 0], stream), gmxfmm_message(plan));
        CUDA(cudaStreamEndCapture(stream, &graph));
        CUDA(cudaGraphInstantiate(&exec[way], graph, cudaGraphInstantiateFlagUseNodePriority));
        CUDA(cudaGraphDestroy(graph));
    }
    for (int round = -2; round < c_rounds; round++)
    {
        for (int way = 0; way < c_ways; way++)
        {
            float time;
            CUDA(cudaEventRecord(begin, stream));
            for (int i = 0; i < 20; i++)
            {
                CUDA(cudaGraphLaunch(exec[way], stream));
            }
            CUDA(cudaEventRecord(end, stream));
            CUDA(cudaStreamSynchronize(stream));
            CUDA(cudaEventElapsedTime(&time, begin, end));
            ms[way][round < 0 ? 0 : round] = (double)time / 20;
        }
    }
    for (int way = 0; way < c_ways; way++)
    {
        CUDA(cudaGraphExecDestroy(exec[way]));
    }
    CUDA(cudaEventDestroy(begin));
    CUDA(cudaEventDestroy(end));
    CUDA(cudaStreamDestroy(stream));
    CUDA(cudaFree(there));
    CUDA(cudaFree(force));
    CUDA(cudaFree(index));
    CUDA(cudaFree(q));
    CUDA(cudaFree(out[1].charge_gradient));
}
#endif

static void time_here(
    gmxfmm_plan* plan, const water* w, const groups* g, const float* x, const float* q, double ms[c_ways][c_rounds])
{
    float*        force = bench_memory(3 * (size_t)w->n * sizeof(float));
    double*       slope = bench_memory((size_t)g->num * sizeof(double));
    gmxfmm_output out   = {.size = sizeof(out), .force = force};
    for (int round = -1; round < c_rounds; round++)
    {
        for (int way = 0; way < c_ways; way++)
        {
            const double begin  = bench_seconds();
            out.charge_gradient = way > 0 ? slope : NULL;
            if (way == 2)
            {
                bench_check(gmxfmm_set_charges(plan, w->n, q), gmxfmm_message(plan));
            }
            bench_check(gmxfmm_execute(plan, x, &out), gmxfmm_message(plan));
            ms[way][round < 0 ? 0 : round] = 1e3 * (bench_seconds() - begin);
        }
    }
    free(force);
    free(slope);
}

int main(int argc, char** argv)
{
    if (argc < 5)
    {
        fprintf(stderr, "usage: %s SPC216.GRO COPIES GROUPS ATOMS [cuda]\n", argv[0]);
        return 2;
    }
    const int      there = argc > 5 && strcmp(argv[5], "cuda") == 0;
    water          w     = water_read(argv[1], atoi(argv[2]));
    groups         g     = make_groups(&w, atoi(argv[3]), atoi(argv[4]));
    float*         x     = bench_floats(3 * (size_t)w.n, w.x);
    gmxfmm_plan*   plan;
    gmxfmm_info    info = {.size = sizeof(info)};
    gmxfmm_options options;
    double         ms[c_ways][c_rounds];
    gmxfmm_default_options(&options);
    options.device     = there ? GMXFMM_CUDA : GMXFMM_CPU;
    options.array_type = GMXFMM_SINGLE;
    float* q           = bench_floats((size_t)w.n, w.q);
    plan               = water_plan(&w, &options, w.box);
    bench_check(gmxfmm_set_charge_derivatives(plan, g.num, g.start, g.index, g.dq), gmxfmm_message(plan));
    bench_check(gmxfmm_assign(plan, x), gmxfmm_message(plan));
#ifdef BENCH_ON_DEVICE
    there ? time_there(plan, &w, &g, x, ms) : time_here(plan, &w, &g, x, q, ms);
#else
    time_here(plan, &w, &g, x, q, ms);
#endif
    bench_check(gmxfmm_get_info(plan, &info), gmxfmm_message(plan));
    const double forces = bench_median(ms[0], c_rounds), gradient = bench_median(ms[1], c_rounds),
                 charges = bench_median(ms[2], c_rounds);
    printf("{\"atoms\": %d, \"groups\": %d, \"atoms_of_a_group\": %d, \"order\": %d, \"cells\": [%d, %d, %d], "
           "\"threads\": %d, \"forces_ms\": %.4f, \"with_gradient_ms\": %.4f, \"with_gradient_and_charges_ms\": %.4f, "
           "\"gradient_costs\": %.4f, \"both_cost\": %.4f}\n",
           w.n, g.num, atoi(argv[4]), info.order, info.grid[0], info.grid[1], info.grid[2], info.num_threads, forces,
           gradient, charges, gradient / forces - 1, charges / forces - 1);
    gmxfmm_destroy(plan);
    free(x);
    free(q);
    free(g.start);
    free(g.index);
    free(g.dq);
    free(g.q);
    water_free(&w);
    return 0;
}
