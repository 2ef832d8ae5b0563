/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A step of a plan on a GPU as a host program with its own stream has it, and its times. */
#ifndef BENCH_DEVICE_STEP_H
#define BENCH_DEVICE_STEP_H

#include <cuda_runtime_api.h>

#include "bench.h"

typedef struct
{
    gmxfmm_plan* plan;
    float *      x, *force, *field, *potential; /* of the device; NULL: not wanted */
    float *      torque, *gradient;             /* the same, of plans with dipoles */
    double*      virial;                        /* the same */
    cudaStream_t stream;
} device_step;

/* Exits with what failed unless error is success. */
void bench_cuda(cudaError_t error, const char* what);

#define CUDA(call) bench_cuda((call), #call)

/* n floats of the device, and a copy of those of the host if there are any. */
float* bench_device_floats(size_t n, const float* host);

/* Puts the stages (0: all) of a step on the stream. */
void device_step_enqueue(const device_step* s, unsigned stages);

/* A step, and its forces on n particles on the host. */
void device_step_fetch(const device_step* s, size_t n, float* force);

/* Median time of the stages as one graph by events, ms: of 100 launches, of less where they would take more than two
 * seconds, of five at the least. */
double device_step_ms(const device_step* s, unsigned stages);

/* Time of a step when 100 are in flight, ms: what a host program that never waits sees. */
double device_step_ms_in_flight(const device_step* s);

/* The same with a box of another shape set before each step, box[9] stretched by up to 0.1 % along z and narrowed
 * across, which is what semi-isotropic pressure coupling does; the plan has `box` again afterwards. */
double device_step_ms_with_boxes(const device_step* s, const double* box);

/* A step between cudaProfilerStart and cudaProfilerStop, after one that makes what only the first has to. box: NULL, or
 * the box, which has another shape in the second step. */
void device_step_profile(const device_step* s, const double* box);

/* Mean time of an assign, ms, after one that gets its memory. */
double device_assign_ms(const device_step* s);

/* Time of one that is put on the stream, as device_step_ms. */
double device_enqueued_assign_ms(const device_step* s);

#endif
