/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Time of each operator of the octree, in nanoseconds: P2M and L2P a particle, M2M and L2L a child, M2L a translation,
 * P2P a pair, in an open cube with as many particles in every leaf:
 *   operators [--orders LIST] [--depths LIST] [--separation WS] [--methods NAMES] [--precision single|double]
 *             [--per-leaf N] [--threads T] [--limit SECONDS] [--shortened]
 * LIST is 0,4,8 or 0..20; NAMES is rotation,symmetric,naive or part of it. A case that would take longer than the limit
 * by what the order before took is left out. --shortened: also with m2l_to_parent, m2l_truncate and both, the time
 * being given a translation of the full list all the same. One line of JSON a case.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

typedef struct
{
    int              orders[64], num_orders, depths[16], num_depths, separation, per_leaf, threads, shortened;
    gmxfmm_m2l       methods[3];
    int              num_methods;
    double           limit;
    gmxfmm_precision precision;
} settings;

typedef struct
{
    size_t  n;
    double *x, *q, *field, *potential;
} cloud;

/* Cells of a row of n that are within reach of each other, in order. */
static double row_pairs(int n, int reach)
{
    double pairs = n;
    for (int k = 1; k <= reach && k < n; k++)
    {
        pairs += 2.0 * (n - k);
    }
    return pairs;
}

static double near_pairs(int level, int ws)
{
    const double row = row_pairs(1 << level, ws);
    return row * row * row;
}

/* Children of near parents that are not near, over all levels. */
static double translations(int depth, int ws)
{
    double sum = 0;
    for (int level = 1; level <= depth; level++)
    {
        sum += 64 * near_pairs(level - 1, ws) - near_pairs(level, ws);
    }
    return sum;
}

/* The same number of points in every leaf, and two in corners without charge that hold the cube open. */
static cloud make_cloud(int depth, int per_leaf)
{
    const int          edge  = 1 << depth;
    unsigned long long state = 1;
    size_t             k     = 2;
    cloud              c;
    c.n         = (size_t)edge * (size_t)edge * (size_t)edge * (size_t)per_leaf + 2;
    c.x         = bench_numbers(3 * c.n);
    c.q         = bench_numbers(c.n);
    c.field     = bench_numbers(3 * c.n);
    c.potential = bench_numbers(c.n);
    for (int d = 0; d < 6; d++)
    {
        c.x[d] = d < 3 ? 0 : 1;
    }
    c.q[0] = c.q[1] = 0;
    for (int leaf = 0; leaf < edge * edge * edge; leaf++)
    {
        const int at[3] = {leaf / (edge * edge), leaf / edge % edge, leaf % edge};
        for (int i = 0; i < per_leaf; i++, k++)
        {
            for (size_t d = 0; d < 3; d++)
            {
                c.x[3 * k + d] = (at[d] + 0.001 + 0.998 * bench_random(&state)) / edge;
            }
            c.q[k] = 2 * bench_random(&state) - 1;
        }
    }
    return c;
}

static void free_cloud(cloud* c)
{
    free(c->x);
    free(c->q);
    free(c->field);
    free(c->potential);
}

static void take_least(double* least, double value)
{
    *least = fmin(*least, value);
}

/* Least time of each stage over some executes. */
static gmxfmm_info time_stages(const cloud* c, const gmxfmm_options* options, double* seconds)
{
    char          message[256];
    gmxfmm_plan*  plan;
    gmxfmm_info   least = {.size = sizeof(least)}, info = least;
    gmxfmm_output out   = {.size = sizeof(out), .field = c->field, .potential = c->potential};
    const double  begin = bench_seconds();
    bench_check(gmxfmm_create(&plan, options, (int64_t)c->n, NULL, message, sizeof(message)), message);
    bench_check(gmxfmm_set_charges(plan, (int64_t)c->n, c->q), gmxfmm_message(plan));
    bench_check(gmxfmm_assign(plan, c->x), gmxfmm_message(plan));
    bench_check(gmxfmm_execute(plan, c->x, &out), gmxfmm_message(plan));
    gmxfmm_get_info(plan, &least);
    *seconds = bench_seconds() - begin;
    for (int repeat = 0; repeat < 3 || (bench_seconds() - begin < 0.3 && repeat < 1000); repeat++)
    {
        gmxfmm_reset_times(plan);
        bench_check(gmxfmm_execute(plan, c->x, &out), gmxfmm_message(plan));
        gmxfmm_get_info(plan, &info);
        take_least(&least.time_near, info.time_near);
        take_least(&least.time_p2m, info.time_p2m);
        take_least(&least.time_m2m, info.time_m2m);
        take_least(&least.time_m2l, info.time_m2l);
        take_least(&least.time_l2l, info.time_l2l);
        take_least(&least.time_l2p, info.time_l2p);
    }
    gmxfmm_destroy(plan);
    return least;
}

static void print_case(const settings* s, const gmxfmm_options* o, const cloud* c, const gmxfmm_info* t)
{
    const double leaves = pow(8, o->depth), children = (pow(8, o->depth + 1) - 8) / 7, n = (double)c->n;
    const double pairs = near_pairs(o->depth, o->separation) * s->per_leaf * s->per_leaf;
    const double m2l   = translations(o->depth, o->separation);
    printf("{\"method\": \"%s\", \"precision\": \"%s\", \"order\": %d, \"depth\": %d, \"separation\": %d, "
           "\"to_parent\": %d, \"truncate\": %d, \"threads\": %d, \"leaves\": %.0f, \"translations\": %.0f, "
           "\"p2m_ns\": %.4g, \"m2m_ns\": %.4g, \"m2l_ns\": %.4g, \"l2l_ns\": %.4g, \"l2p_ns\": %.4g, "
           "\"p2p_ns\": %.4g, \"m2l_ms\": %.4g}\n",
           gmxfmm_m2l_name(o->m2l), o->precision == GMXFMM_DOUBLE ? "double" : "single", o->order, o->depth,
           o->separation, o->m2l_to_parent, o->m2l_truncate, t->num_threads, leaves, m2l, 1e9 * t->time_p2m / n,
           1e9 * t->time_m2m / children, 1e9 * t->time_m2l / m2l, 1e9 * t->time_l2l / children, 1e9 * t->time_l2p / n,
           1e9 * t->time_near / pairs, 1e3 * t->time_m2l);
    fflush(stdout);
}

/* All orders of one method at one depth, until they take too long. */
static void run_orders(const settings* s, const cloud* c, gmxfmm_options options)
{
    double before = 0, seconds = 0;
    for (int i = 0; i < s->num_orders; i++)
    {
        const double p = s->orders[i];
        if (i > 0 && before * pow((p + 1) / (s->orders[i - 1] + 1.0), 3.5) > s->limit)
        {
            fprintf(stderr, "left out: %s, depth %d, from order %d on\n", gmxfmm_m2l_name(options.m2l), options.depth,
                    s->orders[i]);
            return;
        }
        options.order       = s->orders[i];
        const gmxfmm_info t = time_stages(c, &options, &seconds);
        before              = seconds;
        print_case(s, &options, c, &t);
    }
}

static void run(const settings* s)
{
    gmxfmm_options options;
    gmxfmm_default_options(&options);
    options.boundary    = GMXFMM_OPEN;
    options.precision   = s->precision;
    options.separation  = s->separation;
    options.num_threads = s->threads;
    for (int d = 0; d < s->num_depths; d++)
    {
        cloud c       = make_cloud(s->depths[d], s->per_leaf);
        options.depth = s->depths[d];
        for (int m = 0; m < s->num_methods; m++)
        {
            options.m2l = s->methods[m];
            for (int kind = 0; kind < (s->shortened ? 4 : 1); kind++)
            {
                options.m2l_to_parent = kind & 1;
                options.m2l_truncate  = kind >> 1; /* by the mean square */
                run_orders(s, &c, options);
            }
        }
        free_cloud(&c);
    }
}

static void read_methods(const char* text, settings* s)
{
    char        name[16];
    const char* at = text;
    for (s->num_methods = 0; s->num_methods < 3 && *at != '\0'; s->num_methods++)
    {
        const size_t length = strcspn(at, ",");
        snprintf(name, sizeof(name), "%.*s", (int)length, at);
        s->methods[s->num_methods] = bench_method(name);
        at += length + (at[length] == ',');
    }
}

int main(int argc, char** argv)
{
    settings           s      = {.separation = 1, .per_leaf = 16, .threads = 1, .limit = 20};
    const char *       orders = "0..20", *depths = "4", *methods = "rotation,symmetric,naive", *precision = "single";
    const bench_option options[] = {{"--shortened", .flag = &s.shortened},
                                    {"--orders", .text = &orders},
                                    {"--depths", .text = &depths},
                                    {"--methods", .text = &methods},
                                    {"--precision", .text = &precision},
                                    {"--limit", .number = &s.limit},
                                    {"--separation", .integer = &s.separation},
                                    {"--per-leaf", .integer = &s.per_leaf},
                                    {"--threads", .integer = &s.threads}};
    if (bench_read(argc, argv, sizeof(options) / sizeof(*options), options, "see the head of operators.c") < argc)
    {
        fprintf(stderr, "operators: takes options alone\n");
        return 2;
    }
    s.num_orders = bench_list(orders, s.orders, 64);
    s.num_depths = bench_list(depths, s.depths, 16);
    s.precision  = strcmp(precision, "double") == 0 ? GMXFMM_DOUBLE : GMXFMM_SINGLE;
    read_methods(methods, &s);
    run(&s);
    return 0;
}
