/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Time of one evaluation in SPC water, stage by stage:
 *   solve SPC216.GRO COPIES [ACCURACY [ORDER CELLS WS]] [double]
 * One line of JSON on stdout.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "water.h"

int main(int argc, char** argv)
{
    if (argc < 3)
    {
        fprintf(stderr, "usage: %s SPC216.GRO COPIES [ACCURACY [ORDER CELLS WS]] [double]\n", argv[0]);
        return 2;
    }
    const int      in_double = strcmp(argv[argc - 1], "double") == 0;
    const int      given     = argc - in_double;
    water          w         = water_read(argv[1], atoi(argv[2]));
    gmxfmm_options options;
    gmxfmm_default_options(&options);
    options.precision = in_double ? GMXFMM_DOUBLE : GMXFMM_SINGLE;
    options.accuracy  = given > 3 ? atof(argv[3]) : options.accuracy;
    if (given > 6)
    {
        options.order   = atoi(argv[4]);
        options.grid[0] = options.grid[1] = options.grid[2] = atoi(argv[5]);
        options.separation                                  = atoi(argv[6]);
    }
    gmxfmm_plan*  plan  = water_plan(&w, &options, w.box);
    gmxfmm_info   info  = {.size = sizeof(info)};
    double*       force = bench_numbers(3 * (size_t)w.n);
    gmxfmm_output out   = {.size = sizeof(out), .force = force};
    bench_check(gmxfmm_assign(plan, w.x), gmxfmm_message(plan));
    bench_check(gmxfmm_execute(plan, w.x, &out), gmxfmm_message(plan)); /* spectra, first touch */
    gmxfmm_get_info(plan, &info);
    const double spectra = info.time_spectra, assign = info.time_assign;
    gmxfmm_reset_times(plan);
    const int repeats = w.n > 500000 ? 10 : w.n > 50000 ? 40 : 100;
    for (int i = 0; i < repeats; i++)
    {
        bench_check(gmxfmm_execute(plan, w.x, &out), gmxfmm_message(plan));
    }
    gmxfmm_get_info(plan, &info);
    const double ms = 1e3 / repeats;
    printf("{\"atoms\": %d, \"precision\": \"%s\", \"order\": %d, \"cells\": [%d, %d, %d], \"separation\": %d, "
           "\"near_neighbours\": %.0f, \"predicted_error\": %.3g, \"threads\": %d, \"bytes_per_atom\": %.0f, "
           "\"assign_ms\": %.2f, \"spectra_ms\": %.1f, \"permute_ms\": %.3f, \"near_ms\": %.3f, \"p2m_ms\": %.3f, "
           "\"m2l_ms\": %.3f, \"l2p_ms\": %.3f, \"output_ms\": %.3f, \"total_ms\": %.3f}\n",
           w.n, in_double ? "double" : "single", info.order, info.grid[0], info.grid[1], info.grid[2], info.separation,
           info.near_particles, info.predicted_error, info.num_threads, (double)info.bytes / w.n, 1e3 * assign,
           1e3 * spectra, ms * info.time_permute, ms * info.time_near, ms * info.time_p2m, ms * info.time_m2l,
           ms * info.time_l2p, ms * info.time_output,
           ms *
               (info.time_permute + info.time_near + info.time_p2m + info.time_m2l + info.time_l2p + info.time_output));
    gmxfmm_destroy(plan);
    free(force);
    water_free(&w);
    return 0;
}
