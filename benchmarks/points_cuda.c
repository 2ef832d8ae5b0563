/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Potential and gradient at random targets of as many random charges, uniform in the unit cube, open boundary, on a
 * GPU: the problem of Gumerov & Duraiswami 2008, section 4.4.
 *   points_cuda N [OPTION]... [METHOD ORDER SIZE WS]...
 * SIZE is the depth of an octree, or the cells along an edge with fft; ORDER 0: the library's choice for the accuracy
 * SIZE. One line of JSON for each setting on stdout, then their table beside ours on stderr. Times are by events around
 * graph launches (device_step.h); far is P2M to L2P, near P2P, each alone; both, overlapped; total a whole step.
 * Errors are relative L2 errors at 1000 targets against direct sums in double precision.
 *   --signed         charges in [-1, 1), not [0, 1)
 *   --no-targets     potential and gradient at the charges themselves
 *   --periodic       periodic box; no errors are computed
 *   --double         arithmetic in double precision (arrays are single)
 *   --far            time the far field only
 *   --once           two steps of each and nothing else, the second for profilers
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cloud.h"
#include "device_step.h"

enum
{
    c_samples = 1000,
    c_rows    = 64
};

typedef struct
{
    size_t  n;
    int     is_signed, no_targets, is_periodic, is_double, far_only, once;
    cloud   charges, targets; /* targets.n = 0: at the charges */
    size_t  samples, stride;  /* every stride-th target is a sample */
    double* exact;            /* potential and field there */
    int     num_rows;
    char    row[c_rows][160]; /* of the table */
} problem;

/* Reads N and the options; returns where the settings begin. */
static int read_problem(int argc, char** argv, problem* p)
{
    const struct
    {
        const char* name;
        int*        flag;
    } option[]    = {{"--signed", &p->is_signed}, {"--no-targets", &p->no_targets}, {"--periodic", &p->is_periodic},
                     {"--double", &p->is_double}, {"--far", &p->far_only},          {"--once", &p->once}};
    const int num = (int)(sizeof(option) / sizeof(option[0]));
    int       i   = 2;
    p->n          = argc > 1 ? (size_t)atof(argv[1]) : 0;
    for (; i < argc && argv[i][0] == '-'; i++)
    {
        int k = 0;
        while (k < num && strcmp(argv[i], option[k].name) != 0)
        {
            k++;
        }
        if (k == num)
        {
            fprintf(stderr, "unknown option '%s'\n", argv[i]);
            exit(2);
        }
        *option[k].flag = 1;
    }
    if (p->n == 0 || i >= argc || (argc - i) % 4 != 0)
    {
        fprintf(stderr, "usage: %s N [OPTION]... [METHOD ORDER SIZE WS]...\n", argv[0]);
        exit(2);
    }
    return i;
}

/* Points, and what is exact at the samples. */
static void make_problem(problem* p)
{
    p->charges = cloud_make(p->n, GMXFMM_SINGLE, p->is_signed ? -1 : 0, 1);
    p->targets = cloud_make(p->no_targets ? 0 : p->n, GMXFMM_SINGLE, 0, 2);
    if (p->is_periodic || p->far_only || p->once)
    {
        return;
    }
    const cloud* at     = p->no_targets ? &p->charges : &p->targets;
    p->samples          = p->n < c_samples ? p->n : c_samples;
    p->stride           = p->n / p->samples;
    p->exact            = bench_numbers(4 * p->samples);
    double* const place = bench_numbers(3 * p->samples);
    for (size_t i = 0; i < 3 * p->samples; i++)
    {
        place[i] = cloud_number(at, at->x, i / 3 * p->stride * 3 + i % 3);
    }
    cloud_direct(&p->charges, p->samples, place, p->exact);
    free(place);
}

static gmxfmm_options read_setting(const problem* p, char** argv)
{
    gmxfmm_options o;
    const int      order = atoi(argv[1]);
    gmxfmm_default_options(&o);
    o.device     = GMXFMM_CUDA;
    o.cache_dir  = getenv("GMXFMM_CACHE"); /* kernels that are compiled when they are first used */
    o.array_type = GMXFMM_SINGLE;
    o.precision  = p->is_double ? GMXFMM_DOUBLE : GMXFMM_SINGLE;
    o.boundary   = p->is_periodic ? GMXFMM_TINFOIL : GMXFMM_OPEN;
    o.m2l        = bench_method(argv[0]);
    o.separation = bench_or_auto(argv[3]);
    if (order == 0)
    {
        o.accuracy = atof(argv[2]);
        return o;
    }
    o.order = order;
    if (o.m2l == GMXFMM_M2L_FFT)
    {
        o.grid[0] = o.grid[1] = o.grid[2] = atoi(argv[2]);
    }
    else
    {
        o.depth = atoi(argv[2]);
    }
    return o;
}

static gmxfmm_plan* make_plan(const problem* p, const gmxfmm_options* options)
{
    const double box[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    gmxfmm_plan* plan;
    char         message[512];
    bench_check(gmxfmm_create(&plan, options, (int64_t)p->n, p->is_periodic ? box : NULL, message, sizeof(message)),
                message);
    bench_check(gmxfmm_set_charges(plan, (int64_t)p->n, p->charges.q), gmxfmm_message(plan));
    if (p->targets.n > 0)
    {
        bench_check(gmxfmm_set_targets(plan, (int64_t)p->n, p->targets.x), gmxfmm_message(plan));
    }
    return plan;
}

/* Relative L2 errors of a step; without exact values not a number. */
static void errors(const problem* p, const device_step* s, double* potential, double* gradient)
{
    *potential = *gradient = NAN;
    if (p->samples == 0)
    {
        return;
    }
    const size_t four    = sizeof(float);
    float*       fetched = malloc(4 * p->samples * four);
    double*      values  = bench_numbers(4 * p->samples);
    device_step_enqueue(s, 0);
    CUDA(cudaStreamSynchronize(s->stream));
    CUDA(cudaMemcpy2D(fetched, four, s->potential, p->stride * four, four, p->samples, cudaMemcpyDeviceToHost));
    CUDA(cudaMemcpy2D(fetched + p->samples, 3 * four, s->field, 3 * p->stride * four, 3 * four, p->samples,
                      cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < 4 * p->samples; i++)
    {
        values[i] = (double)fetched[i % 4 == 0 ? i / 4 : p->samples + 3 * (i / 4) + i % 4 - 1];
    }
    cloud_errors(p->samples, values, p->exact, potential, gradient);
    free(values);
    free(fetched);
}

static size_t device_bytes_free(void)
{
    size_t free_bytes, all;
    CUDA(cudaMemGetInfo(&free_bytes, &all));
    return free_bytes;
}

/* A number of JSON. */
static const char* number(char* text, size_t size, const char* format, double value)
{
    snprintf(text, size, isnan(value) ? "null" : format, value);
    return text;
}

static void report(problem* p, device_step* s, int is_automatic, double assign, size_t held)
{
    gmxfmm_info  info = {.size = sizeof(info)};
    char         text[8][32];
    double       potential, gradient;
    const double all = (double)(p->n + p->targets.n);
    errors(p, s, &potential, &gradient);
    const double far     = device_step_ms(s, GMXFMM_STAGE_FAR);
    const double near    = p->far_only ? NAN : device_step_ms(s, GMXFMM_STAGE_NEAR);
    const double permute = p->far_only ? NAN : device_step_ms(s, GMXFMM_STAGE_PERMUTE);
    const double both    = p->far_only ? NAN : device_step_ms(s, GMXFMM_STAGE_NEAR | GMXFMM_STAGE_FAR);
    const double total   = p->far_only ? NAN : device_step_ms(s, 0);
    bench_check(gmxfmm_get_info(s->plan, &info), gmxfmm_message(s->plan));
    printf("{\"points\": %zu, \"targets\": %zu, \"charges\": \"%s\", \"boundary\": \"%s\", \"method\": \"%s\", "
           "\"precision\": \"%s\", \"order\": %d, \"depth\": %d, \"grid\": %d, \"cells\": %d, \"separation\": %d, "
           "\"automatic\": %s, \"near_neighbours\": %.1f, \"permute_ms\": %s, \"far_ms\": %.4f, \"near_ms\": %s, "
           "\"both_ms\": %s, \"total_ms\": %s, \"assign_ms\": %.3f, \"bytes_per_particle\": %.0f, "
           "\"device_bytes_per_particle\": %.0f, \"potential_error\": %s, \"gradient_error\": %s}\n",
           p->n, p->targets.n, p->is_signed ? "-1 to 1" : "0 to 1", p->is_periodic ? "tinfoil" : "open",
           gmxfmm_m2l_name(info.m2l), info.precision == GMXFMM_DOUBLE ? "double" : "single", info.order, info.depth,
           info.grid[0], info.num_cells, info.separation, is_automatic ? "true" : "false", info.near_particles,
           number(text[0], sizeof(text[0]), "%.4f", permute), far, number(text[1], sizeof(text[1]), "%.4f", near),
           number(text[2], sizeof(text[2]), "%.4f", both), number(text[3], sizeof(text[3]), "%.4f", total), assign,
           (double)info.bytes / all, (double)held / all, number(text[4], sizeof(text[4]), "%.3e", potential),
           number(text[5], sizeof(text[5]), "%.3e", gradient));
    fflush(stdout);
    if (p->num_rows < c_rows)
    {
        snprintf(p->row[p->num_rows++], sizeof(p->row[0]), "%-34s %9zu %3d %10.3f %10.3f   %.1e   %.1e\n",
                 gmxfmm_m2l_name(info.m2l), p->n, info.order, total, assign, potential, gradient);
    }
}

/* One setting from its four words. */
static void measure(problem* p, device_step* s, char** words)
{
    const gmxfmm_options options = read_setting(p, words);
    const size_t         before  = device_bytes_free();
    s->plan                      = make_plan(p, &options);
    bench_check(gmxfmm_assign(s->plan, s->x), gmxfmm_message(s->plan));
    if (p->once)
    {
        device_step_profile(s, NULL);
    }
    else
    {
        device_step_enqueue(s, 0);
        CUDA(cudaStreamSynchronize(s->stream));
        const double assign = device_assign_ms(s);
        report(p, s, options.order < 0, assign, before - device_bytes_free());
    }
    gmxfmm_destroy(s->plan);
}

/* The table. Theirs: times of table 11, errors of the potential of table 8, octree of 4 levels; p counts from 1. */
static void compare(const problem* p)
{
    fprintf(stderr, "%-34s %9s %3s %10s %10s   %s\n", "", "charges", "p", "step/ms", "assign/ms", "relative L2 errors");
    fprintf(stderr, "%-34s %9d %3d %10.3f %10s   %.1e\n", "Gumerov & Duraiswami, 8800 GTX", 1 << 20, 4, 979.0, "",
            2.3e-4);
    fprintf(stderr, "%-34s %9d %3d %10.3f %10s   %.1e\n", "  (2008, degrees up to p - 1)", 1 << 20, 8, 1227.0, "",
            8.3e-6);
    fprintf(stderr, "%-34s %9d %3d %10.3f %10s   %.1e\n", "", 1 << 20, 12, 1761.0, "", 9.5e-7);
    fprintf(stderr, "here (degrees up to p):\n");
    for (int i = 0; i < p->num_rows; i++)
    {
        fputs(p->row[i], stderr);
    }
}

int main(int argc, char** argv)
{
    static problem p; /* zero */
    device_step    s     = {0};
    const int      first = read_problem(argc, argv, &p);
    make_problem(&p);
    CUDA(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking));
    s.x         = bench_device_floats(3 * p.n, p.charges.x);
    s.field     = bench_device_floats(3 * p.n, NULL);
    s.potential = bench_device_floats(p.n, NULL);
    for (int i = first; i + 3 < argc; i += 4)
    {
        measure(&p, &s, argv + i);
    }
    if (!p.once && !p.far_only && !p.is_periodic)
    {
        compare(&p);
    }
    CUDA(cudaFree(s.x));
    CUDA(cudaFree(s.field));
    CUDA(cudaFree(s.potential));
    CUDA(cudaStreamDestroy(s.stream));
    cloud_free(&p.charges);
    cloud_free(&p.targets);
    free(p.exact);
    return 0;
}
