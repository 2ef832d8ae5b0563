/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the choice by measurement gains over that of the model alone, and what it costs, in SPC water:
 *   choice SPC216.GRO COPIES [ACCURACY [PAIRS]] [double] [cuda] [costs]
 * costs: cells are compared by their costs in the model, as in mdrun, not by times.
 * Steps of both are timed in turns, PAIRS rounds of some steps each, on a GPU 100 in flight with all arrays there. One
 * line of JSON on stdout: settings, errors against a reference that is a hundred times as exact as those that the
 * choice measures with, ms a step, the median over rounds of the ratio of times, the seconds that the choice took, and
 * all that it tried.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "gmxfmm_measure.h"
#include "water.h"
#ifdef BENCH_ON_DEVICE
#    include "device_step.h"
#endif

enum
{
    c_most  = 99, /* rounds */
    c_tried = 32
};

/* Steps of a round: enough that a clock tick or an interrupt is little of them. */
static const double c_secondsPerRound = 0.1;

typedef struct
{
    gmxfmm_measurement m; /* against the exact reference */
    gmxfmm_plan*       plan;
    gmxfmm_device      device;
    double             seconds[c_most]; /* a step, by round */
} setting;

static void prepare(setting* s, const water* w, const gmxfmm_reference* exact, const gmxfmm_options* options)
{
    char message[512];
    s->device = options->device;
    s->m.size = sizeof(s->m);
    bench_check(gmxfmm_measure(exact, options, 0, &s->m, message, sizeof(message)), message);
    s->plan = water_plan(w, options, w->box);
    bench_check(gmxfmm_assign(s->plan, w->x), gmxfmm_message(s->plan));
}

#ifdef BENCH_ON_DEVICE
/* Seconds a step with positions and forces in the device's memory, as a host program like mdrun has them. */
static double time_steps_there(const setting* s, const water* w)
{
    const size_t bytes = 3 * (size_t)w->n * sizeof(double);
    device_step  step  = {.plan = s->plan};
    CUDA(cudaMalloc((void**)&step.x, bytes));
    CUDA(cudaMalloc((void**)&step.force, bytes));
    CUDA(cudaStreamCreateWithFlags(&step.stream, cudaStreamNonBlocking));
    CUDA(cudaMemcpy(step.x, w->x, bytes, cudaMemcpyHostToDevice));
    CUDA(cudaDeviceSynchronize()); /* the step's stream does not wait for the default one */
    const double ms = device_step_ms_in_flight(&step);
    CUDA(cudaStreamDestroy(step.stream));
    CUDA(cudaFree(step.x));
    CUDA(cudaFree(step.force));
    return 1e-3 * ms;
}
#endif

static double time_steps(const setting* s, const water* w, double* force, int num)
{
#ifdef BENCH_ON_DEVICE
    if (s->device == GMXFMM_CUDA)
    {
        return time_steps_there(s, w);
    }
#endif
    gmxfmm_output output = {.size = sizeof(output), .force = force};
    const double  begin  = bench_seconds();
    for (int i = 0; i < num; i++)
    {
        bench_check(gmxfmm_execute(s->plan, w->x, &output), gmxfmm_message(s->plan));
    }
    return (bench_seconds() - begin) / num;
}

static void print_measurement(const char* name, const gmxfmm_measurement* m, double seconds)
{
    printf("%s{\"method\": \"%s\", \"order\": %d, \"cells\": [%d, %d, %d], \"separation\": %d, \"predicted\": %.3g, "
           "\"measured\": %.3g, \"ms\": %.4g}",
           name, gmxfmm_m2l_name(m->m2l), m->order, m->grid[0], m->grid[1], m->grid[2], m->separation,
           m->predicted_error, m->error, 1e3 * seconds);
}

static gmxfmm_reference* make_reference(const gmxfmm_options* options, double accuracy, const gmxfmm_system* system)
{
    gmxfmm_reference* reference;
    gmxfmm_options    o = *options;
    char              message[512];
    o.accuracy = accuracy;
    bench_check(gmxfmm_reference_create(&reference, &o, system, message, sizeof(message)), message);
    return reference;
}

int main(int argc, char** argv)
{
    gmxfmm_options options;
    gmxfmm_default_options(&options);
    options.precision = GMXFMM_SINGLE;
    for (int is_word = 1; argc > 3 && is_word; argc -= is_word)
    {
        const char* word      = argv[argc - 1];
        const int   in_double = strcmp(word, "double") == 0, on_device = strcmp(word, "cuda") == 0;
        const int   by_costs = strcmp(word, "costs") == 0;
        options.precision    = in_double ? GMXFMM_DOUBLE : options.precision;
        options.device       = on_device ? GMXFMM_CUDA : options.device;
        options.reproducible = by_costs ? 1 : options.reproducible;
        is_word              = in_double || on_device || by_costs;
    }
    if (argc < 3)
    {
        fprintf(stderr, "usage: %s SPC216.GRO COPIES [ACCURACY [PAIRS]] [double] [cuda] [costs]\n", argv[0]);
        return 2;
    }
    water w                    = water_read(argv[1], atoi(argv[2]));
    options.accuracy           = argc > 3 ? atof(argv[3]) : options.accuracy;
    const int           pairs  = argc > 4 && atoi(argv[4]) < c_most ? atoi(argv[4]) : 11;
    const gmxfmm_system system = {.size       = sizeof(system),
                                  .n          = w.n,
                                  .box        = w.box,
                                  .x          = w.x,
                                  .q          = w.q,
                                  .excl_start = w.excl_start,
                                  .excl_list  = w.excl_list};
    double*             force  = bench_numbers(3 * (size_t)w.n);
    gmxfmm_reference*   exact  = make_reference(&options, 0.01 * options.accuracy, &system);

    /* as a host program has it: reference and choice */
    gmxfmm_measurement chosen   = {.size = sizeof(chosen)}, tried[c_tried];
    gmxfmm_options     measured = options;
    int                num      = c_tried;
    char               message[512];
    for (int i = 0; i < c_tried; i++)
    {
        tried[i].size = sizeof(tried[i]);
    }
    const double      begin     = bench_seconds();
    gmxfmm_reference* reference = make_reference(&options, options.accuracy, &system);
    const double      made      = bench_seconds();
    bench_check(gmxfmm_choose(reference, &measured, INFINITY, INFINITY, &chosen, tried, &num, message, sizeof(message)),
                message);
    const double end = bench_seconds();

    setting both[2];
    double  ratio[c_most];
    prepare(&both[0], &w, exact, &options);
    prepare(&both[1], &w, exact, &measured);
    const double first = fmax(time_steps(&both[0], &w, force, 2), time_steps(&both[1], &w, force, 2));
    const int    steps = (int)fmax(1, c_secondsPerRound / first);
    for (int i = 0; i < pairs; i++)
    {
        for (int k = 0; k < 2; k++)
        {
            setting* s    = &both[(i + k) % 2];
            s->seconds[i] = time_steps(s, &w, force, steps);
        }
        ratio[i] = both[1].seconds[i] / both[0].seconds[i];
    }
    const double step = bench_median(both[1].seconds, pairs);
    gmxfmm_info  info = {.size = sizeof(info)};
    bench_check(gmxfmm_get_info(both[1].plan, &info), gmxfmm_message(both[1].plan));
    printf("{\"atoms\": %d, \"precision\": \"%s\", \"device\": \"%s\", \"compared_by\": \"%s\", \"threads\": %d, "
           "\"asked\": %g, ",
           w.n, options.precision == GMXFMM_DOUBLE ? "double" : "single",
           options.device == GMXFMM_CUDA ? "cuda" : "cpu", options.reproducible ? "costs" : "times", info.num_threads,
           options.accuracy);
    print_measurement("\"model\": ", &both[0].m, bench_median(both[0].seconds, pairs));
    print_measurement(", \"chosen\": ", &both[1].m, step);
    printf(", \"time_chosen_over_model\": %.3f, \"pairs\": %d, \"reference_s\": %.3f, \"choice_s\": %.3f, "
           "\"cost_in_steps\": %.0f, \"tried\": [",
           bench_median(ratio, pairs), pairs, made - begin, end - made, (end - begin) / step);
    for (int i = 0; i < num; i++)
    {
        print_measurement(i > 0 ? ", " : "", &tried[i], tried[i].time);
    }
    printf("]}\n");
    gmxfmm_destroy(both[0].plan);
    gmxfmm_destroy(both[1].plan);
    gmxfmm_reference_destroy(reference);
    gmxfmm_reference_destroy(exact);
    free(force);
    water_free(&w);
    return 0;
}
