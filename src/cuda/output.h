/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Results of a step on the device. */
#ifndef FMM_CUDA_OUTPUT_H
#define FMM_CUDA_OUTPUT_H

#include "cuda/geometry.h"
#include "cuda/resources.h"

/* Whether a step with this output computes the gradient of the field: forces on dipoles are made of it. */
static inline bool fmm_cuda_wants_gradient(const gmxfmm_plan* plan, const gmxfmm_device_output* output)
{
    return fmm_has_dipoles(plan) && (output->force != NULL || output->field_gradient != NULL || output->virial != NULL);
}

/* Enqueue the arrays; energy and virial; the status, from errors found while writing the arrays. second: of a second
 * step, which keeps an error of the first. */
gmxfmm_status
fmm_cuda_output(gmxfmm_plan* plan, const void* x, const gmxfmm_device_output* output, cudaStream_t stream);
gmxfmm_status fmm_cuda_sums(gmxfmm_plan* plan, const gmxfmm_device_output* output, cudaStream_t stream);
gmxfmm_status fmm_cuda_status(gmxfmm_plan* plan, bool second, int* status, cudaStream_t stream);

#endif
