/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Time of a step and of a whole call, from create to destroy, on one thread, on all and as the library chooses:
 *   busy fmm|open|treecode ACCURACY SECONDS PARTICLES[,...]
 * The three take turns for that many seconds. Random charges in a cube, periodic with fmm; forces in single precision
 * where that is enough. One line of JSON for each number of particles.
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cloud.h"

enum
{
    c_ways  = 3,
    c_steps = 4, /* in a turn; the first is not counted: threads of the turn before may still be awake */
    c_most  = 4000,
    c_sizes = 16
};

typedef struct
{
    int    num;
    double seconds[c_most];
} times;

static void add(times* t, double seconds)
{
    t->seconds[t->num < c_most ? t->num++ : c_most - 1] = seconds;
}

static int compare(const void* a, const void* b)
{
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static void print(const char* name, times* t)
{
    double sum = 0;
    for (int i = 0; i < t->num; i++)
    {
        sum += t->seconds[i];
    }
    qsort(t->seconds, (size_t)t->num, sizeof(*t->seconds), compare);
    printf(", \"%s_median_us\": %.1f, \"%s_mean_us\": %.1f", name, 1e6 * t->seconds[t->num / 2], name,
           1e6 * sum / t->num);
}

static gmxfmm_plan* make(const gmxfmm_options* options, const cloud* c)
{
    static const double box[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    gmxfmm_plan*        plan;
    char                message[256];
    bench_check(gmxfmm_create(&plan, options, (int64_t)c->n, box, message, sizeof(message)), message);
    bench_check(gmxfmm_set_charges(plan, (int64_t)c->n, c->q), gmxfmm_message(plan));
    bench_check(gmxfmm_assign(plan, c->x), gmxfmm_message(plan));
    return plan;
}

static void step(gmxfmm_plan* plan, const cloud* c, void* force)
{
    gmxfmm_output output = {.size = sizeof(output), .force = force};
    bench_check(gmxfmm_execute(plan, c->x, &output), gmxfmm_message(plan));
}

static void compare_ways(const char* method, double accuracy, double limit, int n)
{
    static const char* const name[c_ways] = {"one", "all", "auto"};
    static times             of_steps[c_ways], of_calls[c_ways];
    gmxfmm_options           options[c_ways];
    gmxfmm_plan*             plan[c_ways];
    gmxfmm_info              info  = {.size = sizeof(info)};
    cloud                    c     = cloud_make((size_t)n, GMXFMM_DOUBLE, -1, 1);
    double*                  force = bench_numbers(3 * (size_t)n);
    memset(of_steps, 0, sizeof(of_steps));
    memset(of_calls, 0, sizeof(of_calls));
    for (int way = 0; way < c_ways; way++)
    {
        gmxfmm_options* o = &options[way];
        gmxfmm_default_options(o);
        o->accuracy    = accuracy;
        o->method      = strcmp(method, "treecode") == 0 ? GMXFMM_TREECODE : GMXFMM_FMM;
        o->boundary    = strcmp(method, "fmm") == 0 ? GMXFMM_TINFOIL : GMXFMM_OPEN;
        o->precision   = accuracy < 1e-5 ? GMXFMM_DOUBLE : GMXFMM_SINGLE;
        o->num_threads = way == 0 ? 1 : way == 1 ? omp_get_max_threads() : GMXFMM_AUTO;
        plan[way]      = make(o, &c);
        step(plan[way], &c, force); /* lattice sums, first touch */
    }
    const double begin = bench_seconds();
    for (int turn = 0; turn < 2 || bench_seconds() < begin + limit; turn++)
    {
        for (int way = 0; way < c_ways; way++)
        {
            for (int i = 0; i < c_steps; i++)
            {
                const double before = bench_seconds();
                step(plan[way], &c, force);
                if (i > 0)
                {
                    add(&of_steps[way], bench_seconds() - before);
                }
            }
        }
    }
    for (int turn = 0; turn < 2 || bench_seconds() < begin + 2 * limit; turn++)
    {
        for (int way = 0; way < c_ways; way++)
        {
            const double before = bench_seconds();
            gmxfmm_plan* whole  = make(&options[way], &c);
            step(whole, &c, force);
            gmxfmm_destroy(whole);
            add(&of_calls[way], bench_seconds() - before);
        }
    }
    gmxfmm_get_info(plan[c_ways - 1], &info);
    printf("{\"method\": \"%s\", \"accuracy\": %g, \"particles\": %d, \"all\": %d, \"auto\": %d, \"steps\": %d", method,
           accuracy, n, omp_get_max_threads(), info.num_threads, of_steps[0].num);
    for (int way = 0; way < c_ways; way++)
    {
        char of_call[16];
        snprintf(of_call, sizeof(of_call), "%s_call", name[way]);
        print(name[way], &of_steps[way]);
        print(of_call, &of_calls[way]);
        gmxfmm_destroy(plan[way]);
    }
    printf("}\n");
    fflush(stdout);
    free(force);
    cloud_free(&c);
}

int main(int argc, char** argv)
{
    int sizes[c_sizes];
    if (argc != 5)
    {
        fprintf(stderr, "usage: %s fmm|open|treecode ACCURACY SECONDS PARTICLES[,...]\n", argv[0]);
        return 2;
    }
    const int num = bench_list(argv[4], sizes, c_sizes);
    for (int i = 0; i < num; i++)
    {
        compare_ways(argv[1], atof(argv[2]), atof(argv[3]), sizes[i]);
    }
    return 0;
}
