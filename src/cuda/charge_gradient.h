/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Derivatives of the energy by parameters of charges, from the potentials that the output keeps. */
#ifndef FMM_CUDA_CHARGE_GRADIENT_H
#define FMM_CUDA_CHARGE_GRADIENT_H

#include "cuda/resources.h"

/* Enqueues what P2P has to know of the tiles of an assignment: which have particles with derivatives. Where it may
 * allocate, room for them. */
gmxfmm_status fmm_cuda_reserve_kept_tiles(gmxfmm_plan* plan);
gmxfmm_status fmm_cuda_mark_kept_tiles(gmxfmm_plan* plan, cudaStream_t stream);

/* Enqueues the sums of dq phi of each parameter to gradient, on the device, behind fmm_cuda_output. */
gmxfmm_status fmm_cuda_charge_gradient(gmxfmm_plan* plan, double* gradient, cudaStream_t stream);

#endif
