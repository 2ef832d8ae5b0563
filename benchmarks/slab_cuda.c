/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A film of SPC water in a slab on a GPU, beside the same atoms in a box, in the same cells:
 *   slab_cuda SPC216.GRO COPIES [ORDER CELLS LAYERS WS]...
 * CELLS along both edges of the plane, LAYERS across; 0 0 0 0: the slab as the library chooses it, and the box in the
 * same cells. A line of JSON for each choice: far is P2M to L2P, near P2P, each alone, total a whole step, the median
 * of 100 graph launches by events, in turns of slab and box; the least of the turns. spectra: lattice sums of a new
 * shape, from 100 of them in a row, of the slab, the box, and a box of the slab's padded size. The force error of the
 * slab is that against order 16 in double precision on the same device.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_step.h"
#include "water.h"

enum
{
    c_turns   = 3,
    c_spectra = 100
};

typedef struct
{
    double far, near, total, spectra; /* ms */
} times;

static gmxfmm_plan* make_plan(const water* w, const gmxfmm_options* options, const double* box, const float* x)
{
    gmxfmm_plan* plan = water_plan(w, options, box);
    bench_check(gmxfmm_assign(plan, x), gmxfmm_message(plan));
    return plan;
}

/* Time of the lattice sums of one shape, ms: new boxes in a row, none of them in a line that is interpolated, and a far
 * field, which waits for the last. */
static double spectra_ms(const device_step* s, const double* box, double far)
{
    cudaEvent_t begin, end;
    float       ms;
    CUDA(cudaEventCreate(&begin));
    CUDA(cudaEventCreate(&end));
    device_step_enqueue(s, 0);
    CUDA(cudaStreamSynchronize(s->stream));
    CUDA(cudaEventRecord(begin, s->stream));
    for (int i = 0; i < c_spectra; i++)
    {
        double       other[9];
        const double strain = 1e-3 * ((i % 8) - 3.5) / 3.5;
        for (int k = 0; k < 9; k++)
        {
            other[k] = box[k] * (k % 3 == 0 ? 1 + strain : k % 3 == 1 ? 1 - strain : 1);
        }
        bench_check(gmxfmm_enqueue_box(s->plan, other, s->stream), gmxfmm_message(s->plan));
    }
    device_step_enqueue(s, GMXFMM_STAGE_PERMUTE | GMXFMM_STAGE_FAR);
    CUDA(cudaEventRecord(end, s->stream));
    CUDA(cudaStreamSynchronize(s->stream));
    CUDA(cudaEventElapsedTime(&ms, begin, end));
    CUDA(cudaEventDestroy(begin));
    CUDA(cudaEventDestroy(end));
    bench_check(gmxfmm_set_box(s->plan, box), gmxfmm_message(s->plan));
    return ((double)ms - far) / c_spectra;
}

static void take_less(double* least, double ms)
{
    *least = *least > 0 && *least < ms ? *least : ms;
}

static void measure(device_step* s, gmxfmm_plan* plan, const double* box, times* t)
{
    s->plan = plan;
    device_step_enqueue(s, 0);
    CUDA(cudaStreamSynchronize(s->stream));
    take_less(&t->far, device_step_ms(s, GMXFMM_STAGE_FAR));
    take_less(&t->near, device_step_ms(s, GMXFMM_STAGE_NEAR));
    take_less(&t->total, device_step_ms(s, 0));
    take_less(&t->spectra, spectra_ms(s, box, t->far));
}

/* Cells that a ring of so many layers has: lengths of transforms have no prime factor above 7. */
static int ring_of(int layers, int ws)
{
    for (int ring = layers + (layers - 1 > ws ? layers - 1 : ws);; ring++)
    {
        int n = ring;
        for (int f = 2; f <= 7; f++)
        {
            while (n % f == 0)
            {
                n /= f;
            }
        }
        if (n == 1)
        {
            return ring;
        }
    }
}

static void print_times(const char* name, const times* t)
{
    printf("\"%s\": {\"far_ms\": %.4f, \"near_ms\": %.4f, \"total_ms\": %.4f, \"spectra_ms\": %.4f}, ", name, t->far,
           t->near, t->total, t->spectra);
}

/* The slab, the box, and the box of the padded size with the same options but for the grid. */
static void compare(
    device_step* s, const water* w, const gmxfmm_options* slab, const float* x, const float* reference, float* force)
{
    gmxfmm_plan*   plan[3];
    times          t[3] = {{0}};
    double         box[3][9];
    gmxfmm_info    info   = {.size = sizeof(info)};
    gmxfmm_options others = *slab;
    for (int i = 0; i < 3; i++)
    {
        memcpy(box[i], w->box, sizeof(box[i]));
    }
    plan[0] = make_plan(w, slab, box[0], x);
    bench_check(gmxfmm_get_info(plan[0], &info), gmxfmm_message(plan[0]));
    others.order      = info.order;
    others.separation = info.separation;
    others.m2l        = GMXFMM_M2L_FFT;
    memcpy(others.grid, info.grid, sizeof(others.grid));
    memset(others.periodic, 0, sizeof(others.periodic));
    const int ring = ring_of(info.grid[2], info.separation);
    plan[1]        = make_plan(w, &others, box[1], x);
    others.grid[2] = ring;
    box[2][8] *= (double)ring / info.grid[2];
    plan[2] = make_plan(w, &others, box[2], x);
    for (int turn = 0; turn < c_turns; turn++)
    {
        for (int i = 0; i < 3; i++)
        {
            measure(s, plan[i], box[i], &t[i]);
        }
    }
    s->plan = plan[0];
    device_step_fetch(s, (size_t)w->n, force);
    printf(
        "{\"atoms\": %d, \"order\": %d, \"cells\": [%d, %d, %d], \"ring\": %d, \"separation\": %d, \"m2l\": \"%s\", ",
        w->n, info.order, info.grid[0], info.grid[1], info.grid[2], ring, info.separation, gmxfmm_m2l_name(info.m2l));
    print_times("slab", &t[0]);
    print_times("box", &t[1]);
    print_times("padded_box", &t[2]);
    printf("\"far_over_box\": %.3f, \"total_over_box\": %.3f, \"spectra_over_padded_box\": %.3f, "
           "\"relative_force_error\": %.3e}\n",
           t[0].far / t[1].far, t[0].total / t[1].total, t[0].spectra / t[2].spectra,
           bench_error(3 * (size_t)w->n, force, reference));
    fflush(stdout);
    for (int i = 0; i < 3; i++)
    {
        gmxfmm_destroy(plan[i]);
    }
}

int main(int argc, char** argv)
{
    if (argc < 3)
    {
        fprintf(stderr, "usage: %s SPC216.GRO COPIES [ORDER CELLS LAYERS WS]...\n", argv[0]);
        return 2;
    }
    water          w = water_read(argv[1], atoi(argv[2]));
    const size_t   n = (size_t)w.n;
    gmxfmm_options options;
    gmxfmm_default_options(&options);
    options.device      = GMXFMM_CUDA;
    options.array_type  = GMXFMM_SINGLE;
    options.periodic[0] = options.periodic[1] = 1;
    device_step s                             = {0};
    float *x = bench_floats(3 * n, w.x), *force = bench_floats(3 * n, NULL), *reference = bench_floats(3 * n, NULL);
    CUDA(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking));
    s.x                  = bench_device_floats(3 * n, x);
    s.force              = bench_device_floats(3 * n, NULL);
    gmxfmm_options exact = options;
    exact.precision      = GMXFMM_DOUBLE;
    exact.order          = 16;
    exact.separation     = 1;
    exact.grid[0] = exact.grid[1] = exact.grid[2] = (int)(w.box[0] / 0.93);
    s.plan                                        = make_plan(&w, &exact, w.box, s.x);
    device_step_fetch(&s, n, reference);
    gmxfmm_destroy(s.plan);
    for (int i = 3; i + 3 < argc; i += 4)
    {
        const int      cells = bench_or_auto(argv[i + 1]);
        gmxfmm_options given = options;
        given.order          = cells > 0 ? atoi(argv[i]) : GMXFMM_AUTO;
        given.grid[0] = given.grid[1] = cells;
        given.grid[2]                 = bench_or_auto(argv[i + 2]);
        given.separation              = cells > 0 ? bench_or_auto(argv[i + 3]) : GMXFMM_AUTO;
        compare(&s, &w, &given, s.x, reference, force);
    }
    CUDA(cudaFree(s.x));
    CUDA(cudaFree(s.force));
    free(x);
    free(force);
    free(reference);
    water_free(&w);
    return 0;
}
