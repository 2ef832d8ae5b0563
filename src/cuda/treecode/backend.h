/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The functions of CUDA's rows that those for one rank and for several (ranks/backend.c) have in common: see
 * fmm/backend.h. */
#ifndef CUDA_TREECODE_BACKEND_H
#define CUDA_TREECODE_BACKEND_H

#include "fmm/gmxfmm.h"

/* A copy, if need be, that is the plan's until the next one. */
gmxfmm_status treecode_cuda_on_host(gmxfmm_plan* plan, const void** x, size_t num);
gmxfmm_status treecode_cuda_set_targets(gmxfmm_plan* plan, const void* x);

#endif
