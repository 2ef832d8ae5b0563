/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One step on one GPU and on several of the same process, in turns:
 *   devices_cuda SPC216.GRO ROUNDS SYSTEM [--sweep]
 * SYSTEM: a number N, SPC water, N copies of the box along each vector; "droplets", 1,000,008 atoms of it in an octree;
 * or pN, N million points with charges of both signs, uniform in an open cube, in an octree.
 * In each of ROUNDS rounds every number of devices, 1, 2, 4 and 8 as far as there are that many, has a line of JSON on
 * stdout: times as of water_cuda (graphs, by events), the shares of near and far field as the library measured them,
 * and whether the forces have the bits of one device. Several devices have a second line, but of points, which take
 * long: with the far field on the first, if the library shared it, or else in equal shares. On a machine with one GPU
 * two parts of it take the place of two. --sweep: after that lines for two devices with given shares of the first, 0 to
 * 0.5, its share of the far field all, 0.6, 0.5 and 0.4.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cloud.h"
#include "device_step.h"
#include "water.h"

enum
{
    c_sweep  = 10, /* steps of 0.05 */
    c_points = 2023
};

typedef struct
{
    const char*    name;
    int64_t        n;
    double         box[9];
    gmxfmm_options options;                   /* but for the devices */
    float *        x, *q, *reference, *force; /* reference: forces of one device, the last round's */
    int *          excl_start, *excl_list;    /* NULL: no exclusions */
    device_step    step;
    int            count; /* devices of the machine */
    double*        virial;
} bench;

static void set_octree(gmxfmm_options* o, int order, int depth)
{
    o->m2l        = GMXFMM_M2L_ROTATION;
    o->order      = order;
    o->depth      = depth;
    o->separation = 1;
}

static void set_water(bench* b, water w)
{
    b->n          = w.n;
    b->x          = bench_floats(3 * (size_t)w.n, w.x);
    b->q          = bench_floats((size_t)w.n, w.q);
    b->excl_start = w.excl_start;
    b->excl_list  = w.excl_list;
    memcpy(b->box, w.box, sizeof(b->box));
    free(w.x);
    free(w.q);
}

static bench make_bench(const char* gro_file, const char* system)
{
    bench b = {.name = system};
    gmxfmm_default_options(&b.options);
    b.options.device     = GMXFMM_CUDA;
    b.options.array_type = GMXFMM_SINGLE;
    b.options.cache_dir  = getenv("GMXFMM_CACHE");
    if (strcmp(system, "droplets") == 0)
    {
        /* as mdrun_gpu.py has them, with what is fastest there */
        set_water(&b, water_droplets(gro_file, 2, 125001, 40));
        set_octree(&b.options, 8, 5);
        b.options.grid[0] = b.options.grid[1] = b.options.grid[2] = 96;
    }
    else if (system[0] == 'p')
    {
        cloud c            = cloud_make((size_t)(1e6 * atof(system + 1)), GMXFMM_SINGLE, -1, c_points);
        b.n                = (int64_t)c.n;
        b.x                = c.x;
        b.q                = c.q;
        b.options.boundary = GMXFMM_OPEN;
        set_octree(&b.options, 6, c.n > 20000000 ? 7 : c.n > 2500000 ? 6 : 5); /* 10 to 76 in a leaf */
    }
    else
    {
        set_water(&b, water_read(gro_file, atoi(system)));
    }
    b.reference = bench_floats(3 * (size_t)b.n, NULL);
    b.force     = bench_floats(3 * (size_t)b.n, NULL);
    CUDA(cudaGetDeviceCount(&b.count));
    CUDA(cudaStreamCreateWithFlags(&b.step.stream, cudaStreamNonBlocking));
    b.step.x     = bench_device_floats(3 * (size_t)b.n, b.x);
    b.step.force = bench_device_floats(3 * (size_t)b.n, NULL);
    CUDA(cudaMalloc((void**)&b.virial, 9 * sizeof(double)));
    return b;
}

static void free_bench(bench* b)
{
    CUDA(cudaFree(b->step.x));
    CUDA(cudaFree(b->step.force));
    CUDA(cudaFree(b->virial));
    CUDA(cudaStreamDestroy(b->step.stream));
    free(b->x);
    free(b->q);
    free(b->excl_start);
    free(b->excl_list);
    free(b->reference);
    free(b->force);
}

/* The share of part i of several, that of the first being given; negative: none is given. */
static double part_of(double share, int i, int parts)
{
    return share < 0 ? 0 : i == 0 ? share : (1 - share) / (parts - 1);
}

/* A plan with particles; shares of the first device; negative: as measured. */
static gmxfmm_plan* make_plan(const bench* b, int parts, double share, double far_share)
{
    gmxfmm_options options = b->options;
    gmxfmm_plan*   plan;
    char           message[512];
    options.num_devices = parts;
    for (int i = 0; i < parts; i++)
    {
        options.devices[i]    = i % b->count;
        options.shares[i]     = part_of(share, i, parts);
        options.far_shares[i] = part_of(far_share, i, parts);
    }
    const double* box = options.boundary == GMXFMM_OPEN ? NULL : b->box;
    bench_check(gmxfmm_create(&plan, &options, b->n, box, message, sizeof(message)), message);
    bench_check(gmxfmm_set_charges(plan, b->n, b->q), gmxfmm_message(plan));
    if (b->excl_start != NULL)
    {
        bench_check(gmxfmm_set_exclusions(plan, b->excl_start, b->excl_list), gmxfmm_message(plan));
    }
    bench_check(gmxfmm_assign(plan, b->step.x), gmxfmm_message(plan));
    return plan;
}

static void print_list(const char* name, const double* values, int num)
{
    printf(", \"%s\": [", name);
    for (int k = 0; k < num; k++)
    {
        printf("%s%.3f", k > 0 ? ", " : "", values[k]);
    }
    printf("]");
}

/* Memory in use on each device, with what the benchmark has itself, GB. */
static void print_memory(const bench* b)
{
    double used[GMXFMM_MAX_DEVICES];
    int    num = b->count < GMXFMM_MAX_DEVICES ? b->count : GMXFMM_MAX_DEVICES;
    for (int k = 0; k < num; k++)
    {
        size_t left, all;
        CUDA(cudaSetDevice(k));
        CUDA(cudaMemGetInfo(&left, &all));
        used[k] = 1e-9 * (double)(all - left);
    }
    CUDA(cudaSetDevice(0));
    print_list("gb_in_use", used, num);
}

/* A line; returns the first device's share of the far field. */
static double report(bench* b, int round, int parts, double share, double far_share)
{
    const size_t bytes = 3 * (size_t)b->n * sizeof(float);
    device_step  s     = b->step;
    s.plan             = make_plan(b, parts, share, far_share);
    device_step_fetch(&s, (size_t)b->n, parts == 1 ? b->reference : b->force);
    const int    same  = parts == 1 || memcmp(b->force, b->reference, bytes) == 0;
    const double total = device_step_ms(&s, 0), many = device_step_ms_in_flight(&s);
    const double far = device_step_ms(&s, GMXFMM_STAGE_FAR), near = device_step_ms(&s, GMXFMM_STAGE_NEAR);
    const double both   = device_step_ms(&s, GMXFMM_STAGE_NEAR | GMXFMM_STAGE_FAR);
    const double rest   = device_step_ms(&s, GMXFMM_STAGE_PERMUTE | GMXFMM_STAGE_OUTPUT);
    const double assign = device_assign_ms(&s);
    gmxfmm_info  info   = {.size = sizeof(info)};
    bench_check(gmxfmm_get_info(s.plan, &info), gmxfmm_message(s.plan));
    printf("{\"system\": \"%s\", \"round\": %d, \"atoms\": %lld, \"gpus\": %d, \"parts\": %d, \"given_share\": %g, "
           "\"given_far_share\": %g, \"method\": \"%s\", \"order\": %d, \"depth\": %d, \"cells\": [%d, %d, %d], "
           "\"total_ms\": %.4f, \"total_in_flight_ms\": %.4f, \"near_ms\": %.4f, \"far_ms\": %.4f, \"both_ms\": %.4f, "
           "\"permute_and_output_ms\": %.4f, \"assign_ms\": %.3f, \"same_bits\": %s, \"bytes_per_atom\": %.0f, "
           "\"note\": \"%s\"",
           b->name, round, (long long)b->n, parts < b->count ? parts : b->count, info.num_devices, share, far_share,
           gmxfmm_m2l_name(info.m2l), info.order, info.depth, info.grid[0], info.grid[1], info.grid[2], total, many,
           near, far, both, rest, assign, same ? "true" : "false", (double)info.bytes / (double)b->n,
           info.devices_note);
    if (b->options.depth <= 0) /* what an octree does not offer */
    {
        const double enqueued = device_enqueued_assign_ms(&s);
        s.virial              = b->virial;
        device_step_enqueue(&s, 0);
        printf(", \"assign_enqueued_ms\": %.4f, \"virial_in_flight_ms\": %.4f", enqueued, device_step_ms_in_flight(&s));
    }
    print_list("shares", info.shares, info.num_devices);
    print_list("far_shares", info.far_shares, info.num_devices);
    print_memory(b);
    printf("}\n");
    fflush(stdout);
    gmxfmm_destroy(s.plan);
    return info.far_shares[0];
}

static void compare(bench* b, int rounds, int sweep)
{
    for (int round = 0; round < rounds; round++)
    {
        for (int parts = 1; parts <= GMXFMM_MAX_DEVICES && (parts <= b->count || parts == 2); parts *= 2)
        {
            const double first = report(b, round, parts, -1, -1);
            if (parts > 1 && b->name[0] != 'p')
            {
                report(b, round, parts, -1, first < 1 ? 1 : 1.0 / parts);
            }
        }
    }
    for (int k = 0; k < 4 * (c_sweep + 1) && sweep; k++)
    {
        const double far[] = {1, 0.6, 0.5, 0.4};
        report(b, 0, 2, 0.05 * (k % (c_sweep + 1)), far[k / (c_sweep + 1)]);
    }
}

int main(int argc, char** argv)
{
    if (argc < 4)
    {
        fprintf(stderr, "usage: %s SPC216.GRO ROUNDS SYSTEM [--sweep]\n", argv[0]);
        return 2;
    }
    bench b = make_bench(argv[1], argv[3]);
    compare(&b, atoi(argv[2]), argc > 4 && strcmp(argv[4], "--sweep") == 0);
    free_bench(&b);
    return 0;
}
