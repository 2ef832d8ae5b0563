/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One step in SPC water on one GPU and on several of the same process, in turns:
 *   devices_cuda SPC216.GRO COPIES ROUNDS [--sweep]
 * In each of ROUNDS rounds every number of devices, 1, 2, 4 and 8 as far as there are that many, has a line of JSON on
 * stdout: times as of water_cuda (graphs, by events), the shares of near and far field as the library measured them,
 * and whether the forces have the bits of one device. For several devices there is a second line, with the far field on
 * the first. On a machine with one GPU two parts of it take the place of two. --sweep: after that lines for two devices
 * with given shares of the first, 0 to 0.5, its share of the far field all, 0.6, 0.5 and 0.4.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_step.h"
#include "water.h"

enum
{
    c_sweep = 10 /* steps of 0.05 */
};

typedef struct
{
    water       w;
    float *     q, *reference, *force; /* reference: forces of one device, the last round's */
    device_step step;
    int         count; /* devices of the machine */
    double*     virial;
} bench;

/* The share of part i of several, that of the first being given; negative: none is given. */
static double part_of(double share, int i, int parts)
{
    return share < 0 ? 0 : i == 0 ? share : (1 - share) / (parts - 1);
}

/* share, far_share: of the first device; negative: as measured. */
static void report(bench* b, int round, int parts, double share, double far_share)
{
    const water*   w = &b->w;
    const size_t   n = (size_t)w->n;
    gmxfmm_options options;
    device_step    s = b->step;
    char           message[512];
    gmxfmm_default_options(&options);
    options.device      = GMXFMM_CUDA;
    options.array_type  = GMXFMM_SINGLE;
    options.num_devices = parts;
    for (int i = 0; i < parts; i++)
    {
        options.devices[i]    = i % b->count;
        options.shares[i]     = part_of(share, i, parts);
        options.far_shares[i] = part_of(far_share, i, parts);
    }
    bench_check(gmxfmm_create(&s.plan, &options, w->n, w->box, message, sizeof(message)), message);
    bench_check(gmxfmm_set_charges(s.plan, w->n, b->q), gmxfmm_message(s.plan));
    bench_check(gmxfmm_set_exclusions(s.plan, w->excl_start, w->excl_list), gmxfmm_message(s.plan));
    bench_check(gmxfmm_assign(s.plan, s.x), gmxfmm_message(s.plan));
    CUDA(cudaMemsetAsync(s.force, 0xff, 3 * n * sizeof(float), s.stream));
    device_step_enqueue(&s, 0);
    CUDA(cudaStreamSynchronize(s.stream));
    CUDA(cudaMemcpy(parts == 1 ? b->reference : b->force, s.force, 3 * n * sizeof(float), cudaMemcpyDeviceToHost));
    const int    same  = parts == 1 || memcmp(b->force, b->reference, 3 * n * sizeof(float)) == 0;
    const double total = device_step_ms(&s, 0), many = device_step_ms_in_flight(&s);
    const double far = device_step_ms(&s, GMXFMM_STAGE_FAR), near = device_step_ms(&s, GMXFMM_STAGE_NEAR);
    const double both   = device_step_ms(&s, GMXFMM_STAGE_NEAR | GMXFMM_STAGE_FAR);
    const double rest   = device_step_ms(&s, GMXFMM_STAGE_PERMUTE | GMXFMM_STAGE_OUTPUT);
    const double assign = device_enqueued_assign_ms(&s), waiting = device_assign_ms(&s);
    s.virial = b->virial;
    device_step_enqueue(&s, 0);
    const double virial = device_step_ms_in_flight(&s);
    gmxfmm_info  info   = {.size = sizeof(info)};
    bench_check(gmxfmm_get_info(s.plan, &info), gmxfmm_message(s.plan));
    printf(
        "{\"round\": %d, \"atoms\": %d, \"gpus\": %d, \"parts\": %d, \"given_share\": %g, \"given_far_share\": %g, "
        "\"order\": %d, \"cells\": "
        "[%d, "
        "%d, %d], \"total_ms\": %.4f, \"total_in_flight_ms\": %.4f, \"virial_in_flight_ms\": %.4f, \"near_ms\": %.4f, "
        "\"far_ms\": %.4f, \"both_ms\": %.4f, \"permute_and_output_ms\": %.4f, \"assign_enqueued_ms\": %.4f, "
        "\"assign_ms\": %.3f, \"same_bits\": %s, \"bytes_per_atom\": %.0f, \"note\": \"%s\", \"shares\": [",
        round, w->n, parts < b->count ? parts : b->count, info.num_devices, share, far_share, info.order, info.grid[0],
        info.grid[1], info.grid[2], total, many, virial, near, far, both, rest, assign, waiting,
        same ? "true" : "false", (double)info.bytes / w->n, info.devices_note);
    for (int k = 0; k < info.num_devices; k++)
    {
        printf("%s%.3f", k > 0 ? ", " : "", info.shares[k]);
    }
    printf("], \"far_shares\": [");
    for (int k = 0; k < info.num_devices; k++)
    {
        printf("%s%.3f", k > 0 ? ", " : "", info.far_shares[k]);
    }
    printf("]}\n");
    fflush(stdout);
    gmxfmm_destroy(s.plan);
}

int main(int argc, char** argv)
{
    if (argc < 4)
    {
        fprintf(stderr, "usage: %s SPC216.GRO COPIES ROUNDS [--sweep]\n", argv[0]);
        return 2;
    }
    bench        b = {.w = water_read(argv[1], atoi(argv[2]))};
    const size_t n = (size_t)b.w.n;
    float*       x = malloc(3 * n * sizeof(float));
    b.q            = malloc(n * sizeof(float));
    b.reference    = malloc(3 * n * sizeof(float));
    b.force        = malloc(3 * n * sizeof(float));
    for (size_t i = 0; i < 3 * n; i++)
    {
        x[i] = (float)b.w.x[i];
    }
    for (size_t i = 0; i < n; i++)
    {
        b.q[i] = (float)b.w.q[i];
    }
    CUDA(cudaGetDeviceCount(&b.count));
    CUDA(cudaStreamCreateWithFlags(&b.step.stream, cudaStreamNonBlocking));
    b.step.x     = bench_device_floats(3 * n, x);
    b.step.force = bench_device_floats(3 * n, NULL);
    CUDA(cudaMalloc((void**)&b.virial, 9 * sizeof(double)));
    for (int round = 0; round < atoi(argv[3]); round++)
    {
        for (int parts = 1; parts <= GMXFMM_MAX_DEVICES && (parts <= b.count || parts == 2); parts *= 2)
        {
            report(&b, round, parts, -1, -1);
            if (parts > 1)
            {
                report(&b, round, parts, -1, 1);
            }
        }
    }
    for (int k = 0; k < 4 * (c_sweep + 1) && argc > 4 && strcmp(argv[4], "--sweep") == 0; k++)
    {
        const double far[] = {1, 0.6, 0.5, 0.4};
        report(&b, 0, 2, 0.05 * (k % (c_sweep + 1)), far[k / (c_sweep + 1)]);
    }
    CUDA(cudaFree(b.step.x));
    CUDA(cudaFree(b.step.force));
    CUDA(cudaFree(b.virial));
    free(x);
    free(b.q);
    free(b.reference);
    free(b.force);
    water_free(&b.w);
    return 0;
}
