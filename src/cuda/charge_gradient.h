/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Derivatives of the energy by parameters of charges, from the potentials that the output keeps. */
#ifndef FMM_CUDA_CHARGE_GRADIENT_H
#define FMM_CUDA_CHARGE_GRADIENT_H

#include "cuda/resources.h"

/* Enqueues the sums of dq phi of each parameter to gradient, on the device, behind fmm_cuda_output. */
gmxfmm_status fmm_cuda_charge_gradient(gmxfmm_plan* plan, double* gradient, cudaStream_t stream);

#endif
