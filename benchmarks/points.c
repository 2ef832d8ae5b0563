/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Potential and gradient of points with random charges, uniform in the unit cube, open boundary:
 *   points N METHOD ORDER SIZE WS single|double [THREADS [REPEATS]]
 * SIZE is the depth of an octree, or the cells along an edge with fft, or 0: the library's choice; ORDER, SIZE and WS
 * may be "auto ACCURACY -" instead. Errors are relative L2 errors against direct sums in double precision at 1000 of
 * the points. One line of JSON.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cloud.h"

enum
{
    c_samples = 1000
};

/* Relative L2 errors of potential and gradient at some of the points. */
static void errors(const cloud* c, const double* potential, const double* field, double* result)
{
    const size_t samples = c->n < c_samples ? c->n : c_samples;
    double *     places = bench_numbers(3 * samples), *values = bench_numbers(4 * samples),
           *exact = bench_numbers(4 * samples);
    for (size_t s = 0; s < samples; s++)
    {
        const size_t i = s * (c->n / samples);
        values[4 * s]  = potential[i];
        for (size_t d = 0; d < 3; d++)
        {
            places[3 * s + d]     = cloud_number(c, c->x, 3 * i + d);
            values[4 * s + 1 + d] = field[3 * i + d];
        }
    }
    cloud_direct(c, samples, places, exact);
    cloud_errors(samples, values, exact, result, result + 1);
    free(places);
    free(values);
    free(exact);
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
        o.separation = bench_or_auto(argv[5]);
        if (atoi(argv[4]) == 0)
        {
            o.accuracy = 0.1; /* any order will do: size is chosen by time alone */
        }
        else if (o.m2l == GMXFMM_M2L_FFT)
        {
            o.grid[0] = o.grid[1] = o.grid[2] = atoi(argv[4]);
        }
        else
        {
            o.depth = atoi(argv[4]);
        }
    }
    o.num_threads = argc > 7 ? bench_or_auto(argv[7]) : GMXFMM_AUTO;
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
    cloud                c       = cloud_make((size_t)atof(argv[1]), GMXFMM_DOUBLE, -1, 1);
    const int            repeats = argc > 8 ? atoi(argv[8]) : 3;
    gmxfmm_plan*         plan;
    gmxfmm_info          info = {.size = sizeof(info)}, total = info;
    char                 message[256];
    double *             potential = bench_numbers(c.n), *field = bench_numbers(3 * c.n);
    gmxfmm_output        out    = {.size = sizeof(out), .potential = potential, .field = field};
    double               assign = INFINITY, least = INFINITY, error[2];
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
    errors(&c, potential, field, error);
    printf("{\"points\": %zu, \"method\": \"%s\", \"precision\": \"%s\", \"order\": %d, \"depth\": %d, \"grid\": %d, "
           "\"separation\": %d, \"threads\": %d, \"automatic\": %s, \"cells\": %d, \"bytes_per_point\": %.0f, "
           "\"assign_s\": %.4g, \"execute_s\": %.4g, \"points_per_second\": %.4g, "
           "\"points_per_second_with_assign\": %.4g, \"potential_error\": %.3g, "
           "\"gradient_error\": %.3g, \"near_s\": %.4g, \"p2m_s\": %.4g, \"m2m_s\": %.4g, \"m2l_s\": %.4g, "
           "\"l2l_s\": %.4g, \"l2p_s\": %.4g, \"permute_s\": %.4g, \"output_s\": %.4g}\n",
           c.n, gmxfmm_m2l_name(total.m2l), total.precision == GMXFMM_DOUBLE ? "double" : "single", total.order,
           total.depth, total.grid[0], total.separation, total.num_threads,
           strcmp(argv[3], "auto") == 0 ? "true" : "false", total.num_cells, (double)total.bytes / (double)c.n, assign,
           least, (double)c.n / least, (double)c.n / (least + assign), error[0], error[1], total.time_near,
           total.time_p2m, total.time_m2m, total.time_m2l, total.time_l2l, total.time_l2p, total.time_permute,
           total.time_output);
    gmxfmm_destroy(plan);
    cloud_free(&c);
    free(potential);
    free(field);
    return 0;
}
