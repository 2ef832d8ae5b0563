/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Potential and gradient of points with random charges, uniform in the unit cube, open boundary:
 *   points N METHOD ORDER SIZE WS single|double [THREADS [REPEATS]]
 * SIZE is the depth of an octree, or the cells along an edge with fft; ORDER, SIZE and WS may be "auto ACCURACY -"
 * instead. Errors are relative L2 errors against direct sums in double precision at 1000 of the points. One line of
 * JSON.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum
{
    c_samples = 1000
};

typedef struct
{
    size_t  n;
    double *x, *q, *potential, *field;
} cloud;

static cloud make_cloud(size_t n)
{
    unsigned long long state = 1;
    cloud              c     = {n, bench_numbers(3 * n), bench_numbers(n), bench_numbers(n), bench_numbers(3 * n)};
    for (size_t i = 0; i < n; i++)
    {
        for (size_t d = 0; d < 3; d++)
        {
            c.x[3 * i + d] = bench_random(&state);
        }
        c.q[i] = 2 * bench_random(&state) - 1;
    }
    return c;
}

/* Potential and field of all others at point i. */
static void direct(const cloud* c, size_t i, double* out)
{
    double phi = 0, ex = 0, ey = 0, ez = 0;
    for (size_t j = 0; j < c->n; j++)
    {
        const double x = c->x[3 * i] - c->x[3 * j], y = c->x[3 * i + 1] - c->x[3 * j + 1],
                     z = c->x[3 * i + 2] - c->x[3 * j + 2], r2 = x * x + y * y + z * z;
        const double u = j == i ? 0 : c->q[j] / sqrt(r2), e = j == i ? 0 : u / r2;
        phi += u;
        ex += e * x;
        ey += e * y;
        ez += e * z;
    }
    out[0] = phi;
    out[1] = ex;
    out[2] = ey;
    out[3] = ez;
}

/* Relative L2 errors of potential and gradient at the samples. */
static void errors(const cloud* c, double* potential, double* gradient)
{
    double       difference[2] = {0, 0}, norm[2] = {0, 0};
    const size_t samples = c->n < c_samples ? c->n : c_samples;
#pragma omp parallel for schedule(static)
    for (size_t s = 0; s < samples; s++)
    {
        const size_t i = s * (c->n / samples);
        double       exact[4], d[2] = {0, 0}, n[2] = {0, 0};
        direct(c, i, exact);
        for (size_t k = 0; k < 4; k++)
        {
            const double value = k == 0 ? c->potential[i] : c->field[3 * i + k - 1];
            d[k > 0] += (value - exact[k]) * (value - exact[k]);
            n[k > 0] += exact[k] * exact[k];
        }
#pragma omp critical
        for (int k = 0; k < 2; k++)
        {
            difference[k] += d[k];
            norm[k] += n[k];
        }
    }
    *potential = sqrt(difference[0] / norm[0]);
    *gradient  = sqrt(difference[1] / norm[1]);
}

static gmxfmm_options read_options(int argc, char** argv)
{
    gmxfmm_options o;
    gmxfmm_default_options(&o);
    o.boundary  = GMXFMM_OPEN;
    o.m2l       = bench_method(argv[2]);
    o.precision = strcmp(argv[6], "double") == 0 ? GMXFMM_DOUBLE : GMXFMM_SINGLE;
    if (strcmp(argv[3], "auto") == 0)
    {
        o.accuracy = atof(argv[4]);
    }
    else
    {
        o.order      = atoi(argv[3]);
        o.separation = atoi(argv[5]);
        if (o.m2l == GMXFMM_M2L_FFT)
        {
            o.grid[0] = o.grid[1] = o.grid[2] = atoi(argv[4]);
        }
        else
        {
            o.depth = atoi(argv[4]);
        }
    }
    o.num_threads = argc > 7 ? atoi(argv[7]) : 0;
    return o;
}

int main(int argc, char** argv)
{
    if (argc < 7)
    {
        fprintf(stderr, "usage: %s N METHOD ORDER SIZE WS single|double [THREADS [REPEATS]]\n", argv[0]);
        return 2;
    }
    const gmxfmm_options options = read_options(argc, argv);
    cloud                c       = make_cloud((size_t)atof(argv[1]));
    const int            repeats = argc > 8 ? atoi(argv[8]) : 3;
    gmxfmm_plan*         plan;
    gmxfmm_info          info, total = {0};
    char                 message[256];
    gmxfmm_output        out    = {.potential = c.potential, .field = c.field};
    double               assign = INFINITY, least = INFINITY, potential, gradient;
    bench_check(gmxfmm_create(&plan, &options, (int64_t)c.n, NULL, message, sizeof(message)), message);
    bench_check(gmxfmm_set_charges(plan, (int64_t)c.n, c.q), gmxfmm_message(plan));
    for (int i = 0; i < 2; i++) /* the second has its memory */
    {
        const double begin = bench_seconds();
        bench_check(gmxfmm_assign(plan, c.x), gmxfmm_message(plan));
        assign = fmin(assign, bench_seconds() - begin);
    }
    bench_check(gmxfmm_execute(plan, c.x, &out), gmxfmm_message(plan));
    for (int i = 0; i < repeats; i++)
    {
        gmxfmm_reset_times(plan);
        const double begin = bench_seconds();
        bench_check(gmxfmm_execute(plan, c.x, &out), gmxfmm_message(plan));
        const double seconds = bench_seconds() - begin;
        gmxfmm_get_info(plan, &info);
        if (seconds < least)
        {
            least = seconds;
            total = info;
        }
    }
    errors(&c, &potential, &gradient);
    printf("{\"points\": %zu, \"method\": \"%s\", \"precision\": \"%s\", \"order\": %d, \"depth\": %d, \"grid\": %d, "
           "\"separation\": %d, \"threads\": %d, \"automatic\": %s, \"cells\": %d, \"bytes_per_point\": %.0f, "
           "\"assign_s\": %.4g, \"execute_s\": %.4g, \"points_per_second\": %.4g, "
           "\"points_per_second_with_assign\": %.4g, \"potential_error\": %.3g, "
           "\"gradient_error\": %.3g, \"near_s\": %.4g, \"p2m_s\": %.4g, \"m2m_s\": %.4g, \"m2l_s\": %.4g, "
           "\"l2l_s\": %.4g, \"l2p_s\": %.4g, \"permute_s\": %.4g, \"output_s\": %.4g}\n",
           c.n, gmxfmm_m2l_name(total.m2l), total.precision == GMXFMM_DOUBLE ? "double" : "single", total.order,
           total.depth, total.grid[0], total.separation, total.num_threads,
           strcmp(argv[3], "auto") == 0 ? "true" : "false", total.num_cells, (double)total.bytes / (double)c.n, assign,
           least, (double)c.n / least, (double)c.n / (least + assign), potential, gradient, total.time_near,
           total.time_p2m, total.time_m2m, total.time_m2l, total.time_l2l, total.time_l2p, total.time_permute,
           total.time_output);
    gmxfmm_destroy(plan);
    free(c.x);
    free(c.q);
    free(c.potential);
    free(c.field);
    return 0;
}
