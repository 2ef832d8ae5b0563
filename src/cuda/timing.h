/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Times of steps. */
#ifndef FMM_CUDA_TIMING_H
#define FMM_CUDA_TIMING_H

#include "cuda/resources.h"

/* As fmm_cuda_find_shares (devices/shares.h). */
gmxfmm_status fmm_cuda_measure_shares(gmxfmm_plan* plan, const void* x);

#endif
