/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Costs of the method's parts on a GPU, for the choice of settings. */
#ifndef FMM_CUDA_COSTS_H
#define FMM_CUDA_COSTS_H

#include "fmm/model/costs.h"

extern const fmm_costs fmm_costs_cuda;

#endif
