/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One step in SPC water on a GPU, as a host program with its own streams has it:
 *   water_cuda SPC216.GRO COPIES [--once|--once-virial|--dipoles] [ORDER CELLS WS]...
 * For each choice of order, cells and separation (0 0 0: the library's) one line of JSON on stdout. Times are by events
 * around graph launches, the median of 100; far is P2M to L2P, near P2P, each alone; total a whole step with both
 * overlapped; in_flight: 100 steps in a row without waiting, new_box: a box of another shape before each of them. The
 * force error is that of all atoms against order 16 in double precision on the same device.
 * --once: two steps of each and nothing else, the second for profilers (device_step_profile); --once-virial: with
 * virial, the second in a box of another shape.
 * --dipoles: a line of times with a dipole on each atom: forces, torques and field gradients, and these with the
 * virial, beside forces, and forces and virial, of the charges alone; factor: of the first over charges with virial.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_step.h"
#include "water.h"

/* Useful pairs: ordered pairs of atoms in near cells, excluded ones included. */
static void report(device_step* s, const water* w, const float* reference, float* force, double* virial)
{
    const double assign = device_assign_ms(s);
    device_step_fetch(s, (size_t)w->n, force);
    const double error   = bench_error(3 * (size_t)w->n, force, reference);
    const double permute = device_step_ms(s, GMXFMM_STAGE_PERMUTE), near = device_step_ms(s, GMXFMM_STAGE_NEAR);
    const double far = device_step_ms(s, GMXFMM_STAGE_FAR), output = device_step_ms(s, GMXFMM_STAGE_OUTPUT);
    const double both  = device_step_ms(s, GMXFMM_STAGE_NEAR | GMXFMM_STAGE_FAR);
    const double total = device_step_ms(s, 0), many = device_step_ms_in_flight(s);
    const double assign_enqueued = device_enqueued_assign_ms(s);
    const double boxes           = device_step_ms_with_boxes(s, w->box);
    device_step  t               = *s;
    t.virial                     = virial;
    /* the first makes what only steps with virial need */
    device_step_enqueue(&t, 0);
    const double with_virial = device_step_ms_in_flight(&t), virial_boxes = device_step_ms_with_boxes(&t, w->box);
    gmxfmm_info  info = {.size = sizeof(info)};
    bench_check(gmxfmm_get_info(s->plan, &info), gmxfmm_message(s->plan));
    printf("{\"atoms\": %d, \"order\": %d, \"cells\": [%d, %d, %d], \"separation\": %d, \"near_neighbours\": %.1f, "
           "\"far_ms\": %.4f, \"near_ms\": %.4f, \"both_ms\": %.4f, \"total_ms\": %.4f, \"total_in_flight_ms\": %.4f, "
           "\"new_box_in_flight_ms\": %.4f, \"virial_in_flight_ms\": %.4f, \"virial_new_box_in_flight_ms\": %.4f, "
           "\"permute_ms\": %.4f, \"output_ms\": %.4f, \"assign_ms\": %.3f, \"assign_enqueued_ms\": %.4f, "
           "\"useful_pairs_per_s\": %.4g, "
           "\"bytes_per_atom\": %.0f, \"relative_force_error\": %.3e}\n",
           w->n, info.order, info.grid[0], info.grid[1], info.grid[2], info.separation, info.near_particles, far, near,
           both, total, many, boxes, with_virial, virial_boxes, permute, output, assign, assign_enqueued,
           w->n * info.near_particles / (near * 1e-3), (double)info.bytes / w->n, error);
    fflush(stdout);
}

/* Times of forces, torques and field gradients of charges and dipoles, beside those of charges. */
static void report_dipoles(device_step* s, const water* w, double* virial)
{
    const size_t n  = (size_t)w->n;
    float*       mu = bench_floats(3 * n, NULL);
    device_step  t  = *s;
    for (size_t k = 0; k < 3 * n; k++)
    {
        mu[k] = (float)(0.02 * sin((double)k)); /* e nm: some debyes */
    }
    bench_check(gmxfmm_assign(s->plan, s->x), gmxfmm_message(s->plan));
    device_step_enqueue(s, 0);
    const double charges = device_step_ms(s, 0);
    t.virial             = virial;
    device_step_enqueue(&t, 0); /* makes what only steps with virial need */
    const double charges_virial = device_step_ms(&t, 0);
    bench_check(gmxfmm_set_dipoles(s->plan, w->n, mu), gmxfmm_message(s->plan));
    bench_check(gmxfmm_assign(s->plan, s->x), gmxfmm_message(s->plan));
    t.torque   = bench_device_floats(3 * n, NULL);
    t.gradient = bench_device_floats(6 * n, NULL);
    device_step_enqueue(&t, 0);
    const double dipoles_virial = device_step_ms(&t, 0);
    t.virial                    = NULL;
    const double dipoles = device_step_ms(&t, 0), near = device_step_ms(&t, GMXFMM_STAGE_NEAR);
    const double far = device_step_ms(&t, GMXFMM_STAGE_FAR), output = device_step_ms(&t, GMXFMM_STAGE_OUTPUT);
    gmxfmm_info  info = {.size = sizeof(info)};
    bench_check(gmxfmm_get_info(s->plan, &info), gmxfmm_message(s->plan));
    printf("{\"atoms\": %d, \"order\": %d, \"cells\": [%d, %d, %d], \"separation\": %d, \"charges_ms\": %.4f, "
           "\"charges_virial_ms\": %.4f, \"dipoles_ms\": %.4f, \"dipoles_virial_ms\": %.4f, \"dipoles_near_ms\": %.4f, "
           "\"dipoles_far_ms\": %.4f, \"dipoles_output_ms\": %.4f, \"factor\": %.3f}\n",
           w->n, info.order, info.grid[0], info.grid[1], info.grid[2], info.separation, charges, charges_virial,
           dipoles, dipoles_virial, near, far, output, dipoles / charges_virial);
    fflush(stdout);
    CUDA(cudaFree(t.torque));
    CUDA(cudaFree(t.gradient));
    free(mu);
}

/* Order, cells along an edge and ws from three words; 0 cells: all three as the library chooses. */
static void set_cells(gmxfmm_options* options, char** words)
{
    const int cells  = bench_or_auto(words[1]);
    options->order   = cells > 0 ? atoi(words[0]) : GMXFMM_AUTO;
    options->grid[0] = options->grid[1] = options->grid[2] = cells;
    options->separation                                    = cells > 0 ? bench_or_auto(words[2]) : GMXFMM_AUTO;
}

int main(int argc, char** argv)
{
    if (argc < 3)
    {
        fprintf(stderr, "usage: %s SPC216.GRO COPIES [ORDER CELLS WS]...\n", argv[0]);
        return 2;
    }
    water          w = water_read(argv[1], atoi(argv[2]));
    const size_t   n = (size_t)w.n;
    gmxfmm_options options;
    gmxfmm_default_options(&options);
    options.device     = GMXFMM_CUDA;
    options.array_type = GMXFMM_SINGLE;
    device_step s      = {0};
    float *x = bench_floats(3 * n, w.x), *force = bench_floats(3 * n, NULL), *reference = bench_floats(3 * n, NULL);
    CUDA(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking));
    s.x            = bench_device_floats(3 * n, x);
    s.force        = bench_device_floats(3 * n, NULL);
    s.potential    = bench_device_floats(n, NULL);
    double* virial = NULL;
    CUDA(cudaMalloc((void**)&virial, 9 * sizeof(double)));

    const int once_virial = argc > 3 && strcmp(argv[3], "--once-virial") == 0;
    const int once        = once_virial || (argc > 3 && strcmp(argv[3], "--once") == 0);
    const int dipoles     = argc > 3 && strcmp(argv[3], "--dipoles") == 0;
    for (int i = 4; dipoles && (i == 4 || i + 2 < argc); i += 3)
    {
        if (i + 2 < argc)
        {
            set_cells(&options, argv + i);
        }
        s.plan      = water_plan(&w, &options, w.box);
        float* phi  = s.potential;
        s.potential = NULL; /* forces alone */
        report_dipoles(&s, &w, virial);
        s.potential = phi;
        gmxfmm_destroy(s.plan);
    }
    for (int i = 4; once && i + 2 < argc; i += 3)
    {
        set_cells(&options, argv + i);
        s.plan = water_plan(&w, &options, w.box);
        bench_check(gmxfmm_assign(s.plan, s.x), gmxfmm_message(s.plan));
        s.virial = once_virial ? virial : NULL;
        device_step_profile(&s, once_virial ? w.box : NULL);
        gmxfmm_destroy(s.plan);
    }
    if (once || dipoles)
    {
        return 0;
    }
    gmxfmm_options exact = options;
    exact.precision      = GMXFMM_DOUBLE;
    exact.order          = 16;
    exact.separation     = 1;
    exact.grid[0] = exact.grid[1] = exact.grid[2] = (int)(w.box[0] / 0.93);
    s.plan                                        = water_plan(&w, &exact, w.box);
    bench_check(gmxfmm_assign(s.plan, s.x), gmxfmm_message(s.plan));
    device_step_fetch(&s, n, reference);
    gmxfmm_destroy(s.plan);
    for (int i = 3; i == 3 || i + 2 < argc; i += 3)
    {
        if (i + 2 < argc)
        {
            set_cells(&options, argv + i);
        }
        s.plan = water_plan(&w, &options, w.box);
        report(&s, &w, reference, force, virial);
        gmxfmm_destroy(s.plan);
    }
    CUDA(cudaFree(s.x));
    CUDA(cudaFree(s.force));
    CUDA(cudaFree(s.potential));
    CUDA(cudaFree(virial));
    free(x);
    free(force);
    free(reference);
    water_free(&w);
    return 0;
}
