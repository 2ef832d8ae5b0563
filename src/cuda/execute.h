/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A step of a plan whose particles are sorted, before it is told so. */
#ifndef FMM_CUDA_EXECUTE_H
#define FMM_CUDA_EXECUTE_H

#include "cuda/resources.h"

/* Shares of the near field with which all devices are done at once, from the times of a few steps; x on the device. The
 * other devices then need the assignment anew. Errors: DEVICE. */
gmxfmm_status fmm_cuda_measure_shares(gmxfmm_plan* plan, const void* x);

#endif
