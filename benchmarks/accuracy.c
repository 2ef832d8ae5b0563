/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Relative RMS force error in SPC water over method, order, cells and ws, beside the error that the library predicts:
 *   accuracy SPC216.GRO [COPIES] > table
 * fft with grids of 5 to 14 cells along an edge; the octree methods with 4 and 8, their orders going up to 30 in double
 * precision. The reference is the library at order 20 with two layers (fft) in double precision, error below 1e-11,
 * which the tests compare with Ewald sums.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "water.h"

static gmxfmm_info forces(const water* w, const gmxfmm_options* options, double* force)
{
    gmxfmm_plan*  plan = water_plan(w, options, w->box);
    gmxfmm_info   info = {.size = sizeof(info)};
    gmxfmm_output out  = {.size = sizeof(out), .force = force};
    bench_check(gmxfmm_assign(plan, w->x), gmxfmm_message(plan));
    bench_check(gmxfmm_execute(plan, w->x, &out), gmxfmm_message(plan));
    gmxfmm_get_info(plan, &info);
    gmxfmm_destroy(plan);
    return info;
}

static double relative_error(int n, const double* force, const double* reference)
{
    double error = 0, norm = 0;
    for (int i = 0; i < 3 * n; i++)
    {
        error += (force[i] - reference[i]) * (force[i] - reference[i]);
        norm += reference[i] * reference[i];
    }
    return sqrt(error / norm);
}

typedef struct
{
    water          w;
    double *       reference, *force;
    gmxfmm_options options;
} tables;

/* One row: both precisions, or double alone above the order that single has. */
static void run_order(tables* b, int cells, int order)
{
    b->options.order = order;
    for (int precision = order > GMXFMM_MAX_ORDER_SINGLE; precision < 2; precision++)
    {
        b->options.precision   = precision ? GMXFMM_DOUBLE : GMXFMM_SINGLE;
        const gmxfmm_info info = forces(&b->w, &b->options, b->force);
        printf("%s %d %d %d %s %.3g %.3g %.0f\n", gmxfmm_m2l_name(info.m2l), b->options.separation, cells, order,
               precision ? "double" : "single", relative_error(b->w.n, b->force, b->reference), info.predicted_error,
               info.near_particles);
        fflush(stdout);
    }
}

static void run_fft(tables* b, int ws)
{
    b->options.m2l        = GMXFMM_M2L_FFT;
    b->options.separation = ws;
    for (int cells = ws == 1 ? 5 : 8; cells <= (ws == 1 ? 9 : 14); cells++)
    {
        b->options.grid[0] = b->options.grid[1] = b->options.grid[2] = cells;
        for (int order = 2; order <= 16; order += order < 10 ? 1 : 2)
        {
            run_order(b, cells, order);
        }
    }
    b->options.grid[0] = b->options.grid[1] = b->options.grid[2] = GMXFMM_AUTO;
}

static void run_octree(tables* b, gmxfmm_m2l m2l, int ws)
{
    b->options.m2l        = m2l;
    b->options.separation = ws;
    for (int depth = 2; depth <= 3; depth++)
    {
        b->options.depth = depth;
        for (int order = 2; order <= 30; order += order < 10 ? 1 : order < 20 ? 2 : 5)
        {
            run_order(b, 1 << depth, order);
        }
    }
    b->options.depth = GMXFMM_AUTO;
}

int main(int argc, char** argv)
{
    if (argc < 2)
    {
        fprintf(stderr, "usage: %s SPC216.GRO [COPIES]\n", argv[0]);
        return 2;
    }
    tables b;
    b.w         = water_read(argv[1], argc > 2 ? atoi(argv[2]) : 2);
    b.reference = bench_numbers(3 * (size_t)b.w.n);
    b.force     = bench_numbers(3 * (size_t)b.w.n);

    gmxfmm_default_options(&b.options);
    b.options.precision  = GMXFMM_DOUBLE;
    b.options.order      = 30;
    b.options.separation = 2;
    b.options.grid[0] = b.options.grid[1] = b.options.grid[2] = 5;
    forces(&b.w, &b.options, b.reference);
    b.options.grid[0] = b.options.grid[1] = b.options.grid[2] = GMXFMM_AUTO;
    printf("# method ws cells order precision error predicted near_particles\n");
    for (int ws = 1; ws <= 2; ws++)
    {
        run_fft(&b, ws);
        run_octree(&b, GMXFMM_M2L_ROTATION, ws);
        run_octree(&b, GMXFMM_M2L_SYMMETRIC, ws);
    }
    free(b.reference);
    free(b.force);
    water_free(&b.w);
    return 0;
}
