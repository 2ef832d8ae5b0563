/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whole calls of the treecode, and of the FMM, on random charges in [-1, 1]:
 *   treecode [--points N] [--distribution cube|plummer|sphere|outlier|cluster] [--kappa K] [--single] [--dual]
 * [--device cuda]
 * [--field]
 *            [--threads N] [--samples N] [--calls N] SETTING...
 * SETTING: THETA,DEGREE,LEAF or treecode,ACCURACY or fmm,ACCURACY; or auto,ACCURACY: method and settings by measuring,
 * as Python and the program have it. --kappa: Yukawa. A call is one assignment and one execute with arrays of the host;
 * of two, or of --calls, the one that took least is told, with the processor time of its threads. Errors: relative
 * 2-norm (Vaughn, Wilson & Krasny 2020, eq. 16) against direct sums in double precision at some of the points. One line
 * of JSON a setting.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

#include "gmxfmm_measure.h"

typedef struct
{
    size_t           n, samples;
    const char*      distribution;
    double           kappa; /* negative: Coulomb */
    gmxfmm_precision precision;
    gmxfmm_device    device;
    int              field, threads, dual, calls;
    double *         x, *q, *exact; /* exact: 4 a sample */
} problem;

static void fail(const char* text)
{
    fprintf(stderr, "treecode: %s\n", text);
    exit(2);
}

/* Point k of n. The cube is [-1, 1]^3 as in the paper; Plummer's model has the scale 1 and is cut at 99.9 % of its
 * mass. outlier: the cube, and one point 1000 edges away; cluster: half of the points in a cube of 1e-5 of the edge. */
static void place(const char* distribution, size_t k, size_t n, unsigned long long* state, double* x)
{
    const int outlier = strcmp(distribution, "outlier") == 0, cluster = strcmp(distribution, "cluster") == 0;
    if (strcmp(distribution, "cube") == 0 || outlier || cluster)
    {
        const double half = cluster && k % 2 == 0 ? 1e-5 : 1, away = outlier && k == n - 1 ? 2000 : 0;
        for (int d = 0; d < 3; d++)
        {
            x[d] = half * (2 * bench_random(state) - 1) + away;
        }
        return;
    }
    const double r =
        strcmp(distribution, "plummer") == 0 ? 1 / sqrt(pow(0.999 * bench_random(state), -2.0 / 3) - 1) : 1;
    const double z = 2 * bench_random(state) - 1, phi = 6.283185307179586 * bench_random(state), s = sqrt(1 - z * z);
    x[0] = r * s * cos(phi);
    x[1] = r * s * sin(phi);
    x[2] = r * z;
}

static size_t sample(const problem* p, size_t s)
{
    return s * (p->n / p->samples);
}

static void direct(problem* p)
{
    const double kappa = p->kappa > 0 ? p->kappa : 0;
#pragma omp parallel for schedule(dynamic)
    for (int64_t s = 0; s < (int64_t)p->samples; s++)
    {
        const double* x   = p->x + 3 * sample(p, (size_t)s);
        double        phi = 0, field[3] = {0};
        for (size_t j = 0; j < p->n; j++)
        {
            const double dx = x[0] - p->x[3 * j], dy = x[1] - p->x[3 * j + 1], dz = x[2] - p->x[3 * j + 2];
            const double r2 = dx * dx + dy * dy + dz * dz;
            if (r2 > 0)
            {
                const double r = sqrt(r2), g = p->q[j] * exp(-kappa * r) / r, f = g * (1 + kappa * r) / r2;
                phi += g;
                field[0] += f * dx;
                field[1] += f * dy;
                field[2] += f * dz;
            }
        }
        p->exact[4 * s] = phi;
        memcpy(p->exact + 4 * s + 1, field, sizeof(field));
    }
}

static double error(const problem* p, const double* value, size_t components, size_t first)
{
    double difference = 0, norm = 0;
    for (size_t s = 0; s < p->samples; s++)
    {
        for (size_t d = 0; d < components; d++)
        {
            const double exact = p->exact[4 * s + first + d];
            difference += pow(value[components * sample(p, s) + d] - exact, 2);
            norm += exact * exact;
        }
    }
    return sqrt(difference / norm);
}

static gmxfmm_options read_setting(const problem* p, const char* setting)
{
    gmxfmm_options o;
    double         accuracy;
    gmxfmm_default_options(&o);
    o.boundary     = GMXFMM_OPEN;
    o.precision    = p->precision;
    o.device       = p->device;
    o.num_threads  = p->threads;
    o.reproducible = 1;
    o.method       = GMXFMM_TREECODE;
    if (sscanf(setting, "fmm,%lf", &accuracy) == 1)
    {
        o.method   = GMXFMM_FMM;
        o.accuracy = accuracy;
    }
    else if (sscanf(setting, "treecode,%lf", &accuracy) == 1)
    {
        o.accuracy = accuracy;
    }
    else if (sscanf(setting, "auto,%lf", &accuracy) == 1)
    {
        o.method       = GMXFMM_METHOD_AUTO;
        o.reproducible = 0; /* times decide */
        o.accuracy     = accuracy;
    }
    else if (sscanf(setting, "%lf,%d,%d", &o.theta, &o.degree, &o.leaf) != 3)
    {
        fail("a setting is THETA,DEGREE,LEAF or treecode,ACCURACY or fmm,ACCURACY or auto,ACCURACY");
    }
    o.traversal = p->dual && o.method == GMXFMM_TREECODE ? GMXFMM_DUAL : GMXFMM_PARTICLE;
    if (p->kappa >= 0)
    {
        o.kernel = GMXFMM_YUKAWA;
        o.kappa  = p->kappa;
    }
    return o;
}

static void measure(const problem* p, const char* setting)
{
    const gmxfmm_options options   = read_setting(p, setting);
    double *             potential = bench_numbers(p->n), *field = bench_numbers(3 * p->n);
    double               least = HUGE_VAL, assign = 0, processor = 0;
    gmxfmm_output        out = {.size = sizeof(out), .potential = potential, .field = p->field ? field : NULL};
    gmxfmm_plan*         plan;
    gmxfmm_info          info = {.size = sizeof(info)};
    char                 message[512], field_error[32] = "null";
    if (options.method == GMXFMM_METHOD_AUTO)
    {
        const gmxfmm_system system = {.size = sizeof(system), .n = (int64_t)p->n, .x = p->x, .q = p->q};
        bench_check(gmxfmm_create_measured(&plan, &options, &system, NULL, NULL, NULL, message, sizeof(message)),
                    message);
    }
    else
    {
        bench_check(gmxfmm_create(&plan, &options, (int64_t)p->n, NULL, message, sizeof(message)), message);
    }
    for (int i = 0; i < p->calls; i++)
    {
        gmxfmm_reset_times(plan);
        const double  begin           = bench_seconds();
        const clock_t processor_begin = clock();
        bench_check(gmxfmm_set_charges(plan, (int64_t)p->n, p->q), gmxfmm_message(plan));
        bench_check(gmxfmm_assign(plan, p->x), gmxfmm_message(plan));
        const double assigned = bench_seconds();
        bench_check(gmxfmm_execute(plan, p->x, &out), gmxfmm_message(plan));
        if (bench_seconds() - begin < least)
        {
            least     = bench_seconds() - begin;
            assign    = assigned - begin;
            processor = (double)(clock() - processor_begin) / CLOCKS_PER_SEC;
            gmxfmm_get_info(plan, &info);
        }
    }
    if (p->field)
    {
        snprintf(field_error, sizeof(field_error), "%.3g", error(p, field, 3, 1));
    }
    const int fmm = info.method == GMXFMM_FMM;
    printf("{\"particles\": %zu, \"distribution\": \"%s\", \"method\": \"%s\", \"kernel\": \"%s\", \"kappa\": %g, "
           "\"theta\": %g, \"degree\": %d, \"leaf\": %d, \"traversal\": \"%s\", \"precision\": \"%s\", "
           "\"device\": \"%s\", \"threads\": %d, \"setting\": \"%s\", \"seconds\": %.4g, \"processor_s\": %.4g, "
           "\"assign_s\": %.4g, "
           "\"charges_s\": %.4g, \"sums_s\": %.4g, \"output_s\": %.4g, \"pairs_per_target\": %.6g, "
           "\"potential_error\": %.3g, \"field_error\": %s, \"bytes_per_particle\": %.0f}\n",
           p->n, p->distribution, fmm ? gmxfmm_m2l_name(info.m2l) : "treecode", p->kappa >= 0 ? "yukawa" : "coulomb",
           p->kappa >= 0 ? p->kappa : 0, info.theta, fmm ? info.order : info.degree, info.leaf,
           p->dual ? "dual" : "particle", p->precision == GMXFMM_DOUBLE ? "double" : "single",
           p->device == GMXFMM_CUDA ? "cuda" : "cpu", info.num_threads, setting, least, processor, assign,
           info.time_charges, info.time_sums, info.time_output, info.pairs_per_target, error(p, potential, 1, 0),
           field_error, (double)info.bytes / (double)p->n);
    fflush(stdout);
    gmxfmm_destroy(plan);
    free(potential);
    free(field);
}

int main(int argc, char** argv)
{
    problem            p      = {.distribution = "cube", .kappa = -1, .threads = GMXFMM_AUTO, .calls = 2};
    double             points = 1000000, samples = 1000;
    const char*        device = "cpu";
    int                single = 0;
    unsigned long long state  = 1;
    const char*        usage =
        "treecode [--points N] [--distribution cube|plummer|sphere|outlier|cluster] [--kappa K] [--single] [--dual] "
        "[--device cuda] [--field] [--threads N] [--samples N] [--calls N] SETTING...";
    const bench_option options[] = {{"--single", .flag = &single},     {"--field", .flag = &p.field},
                                    {"--dual", .flag = &p.dual},       {"--points", .number = &points},
                                    {"--samples", .number = &samples}, {"--distribution", .text = &p.distribution},
                                    {"--kappa", .number = &p.kappa},   {"--threads", .integer = &p.threads},
                                    {"--calls", .integer = &p.calls},  {"--device", .text = &device}};
    int                i         = bench_read(argc, argv, sizeof(options) / sizeof(*options), options, usage);
    p.n                          = (size_t)points;
    p.samples                    = (size_t)samples;
    p.threads                    = p.threads == 0 ? GMXFMM_AUTO : p.threads;
    p.device                     = strcmp(device, "cuda") == 0 ? GMXFMM_CUDA : GMXFMM_CPU;
    p.precision                  = single ? GMXFMM_SINGLE : GMXFMM_DOUBLE;
    if (i >= argc || p.n == 0 || p.calls < 1)
    {
        fail("no points or no settings");
    }
    p.samples = p.samples < p.n ? p.samples : p.n;
    p.x       = bench_numbers(3 * p.n);
    p.q       = bench_numbers(p.n);
    p.exact   = bench_numbers(4 * p.samples);
    for (size_t k = 0; k < p.n; k++)
    {
        place(p.distribution, k, p.n, &state, p.x + 3 * k);
        p.q[k] = 2 * bench_random(&state) - 1;
    }
    direct(&p);
    for (; i < argc; i++)
    {
        measure(&p, argv[i]);
    }
    free(p.x);
    free(p.q);
    free(p.exact);
    return 0;
}
