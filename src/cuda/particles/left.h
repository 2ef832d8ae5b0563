/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Particles that have left their cells, on the device (fmm/math/left.h). */
#ifndef FMM_CUDA_LEFT_H
#define FMM_CUDA_LEFT_H

#include "cuda/state.h"

enum
{
    c_leftThreads  = 256, /* of a block, in permute and where sums at assign are made: they take the same particles */
    c_manyLeft     = 32768,
    c_leftFraction = 4
};

/* How they are found. */
struct LeftArgs
{
    int    exponent; /* of |y|^2; 0: nobody looks */
    double scale;    /* 1 / a^2, units u */
    bool   skewed;   /* cells have no right angles */
};

/* Whether the particles of a block are in the sums. Of many particles those of a fourth of the blocks are enough:
 * blocks are in cells' order, and the ratio of sums is that of all. All blocks tell their worst particle. */
static __device__ inline bool is_in_left_sums(int n, int block)
{
    return n < c_manyLeft || block % c_leftFraction == 0;
}

/* w of a vector y from the centre of a cell; inverse_edge: of the cell, in cells of the last level. */
static __device__ inline double left_weight(const LeftArgs& a, const double* y, double inverse_edge)
{
    const double scale = a.scale * inverse_edge * inverse_edge;
    return fmm_left_weight((y[0] * y[0] + y[1] * y[1] + y[2] * y[2]) * scale, a.exponent);
}

/* Of steps of the plan. */
LeftArgs fmm_cuda_left_args(const gmxfmm_plan* plan);

/* left.cu: sums over the sources as they were assigned, for later steps; after an assignment, and where charges are
 * new. */
gmxfmm_status fmm_cuda_sum_left(gmxfmm_plan* plan, cudaStream_t stream);

#endif
