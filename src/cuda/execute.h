/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A step of a plan whose particles are sorted. The device of the plan is the current one. */
#ifndef FMM_CUDA_EXECUTE_H
#define FMM_CUDA_EXECUTE_H

#include "cuda/resources.h"

/* Enqueues a step with arrays of the device; and near and far field alone, each on its streams if it is wanted, after
 * the positions and before the output. */
gmxfmm_status
fmm_cuda_enqueue(gmxfmm_plan* plan, const void* x, const gmxfmm_device_output* output, cudaStream_t stream);
gmxfmm_status
fmm_cuda_fields(gmxfmm_plan* plan, const void* x, unsigned stages, const StepWanted& wanted, cudaStream_t stream);

#endif
