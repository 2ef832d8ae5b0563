/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The search of the shares that several devices have of a step, by times of steps. */
#ifndef FMM_CUDA_SHARES_H
#define FMM_CUDA_SHARES_H

#include "cuda/resources.h"

/* What is timed: near and far field of a step on a stream, and how long one of num steps takes, in s. */
struct TimedStep
{
    gmxfmm_status (*fields)(
        gmxfmm_plan* plan, const void* x, unsigned stages, const StepWanted& wanted, cudaStream_t stream);
    gmxfmm_status (*time)(
        gmxfmm_plan* plan, const void* x, const gmxfmm_device_output* output, int num, double* seconds);
};

/* Shares with which all devices are done at once, from the times of a few steps; x on the device. The other devices
 * then need the assignment anew. Errors: DEVICE. */
gmxfmm_status fmm_cuda_find_shares(gmxfmm_plan* plan, const void* x, const TimedStep& step);

#endif
