/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The functions of the treecode's rows for several ranks, which the CPU and CUDA (cuda/treecode/ranks/backend.c) have
 * in common: see fmm/backend.h. */
#ifndef TREECODE_RANKS_BACKEND_H
#define TREECODE_RANKS_BACKEND_H

#include "fmm/backend.h"

#define TREECODE_RANKS_NO_STREAM "several ranks take no steps on a stream: use gmxfmm_assign and gmxfmm_execute"

gmxfmm_status fmm_treecode_ranks_create(gmxfmm_plan* plan);
void          fmm_treecode_ranks_destroy(gmxfmm_plan* plan);
gmxfmm_status fmm_treecode_ranks_set_charges(gmxfmm_plan* plan);
gmxfmm_status fmm_treecode_ranks_assign(gmxfmm_plan* plan, const void* x);
gmxfmm_status fmm_treecode_ranks_execute(gmxfmm_plan* plan, const void* x, gmxfmm_output* output);
void          fmm_treecode_ranks_get_info(const gmxfmm_plan* plan, gmxfmm_info* info);
void          fmm_treecode_ranks_info(const gmxfmm_plan* plan, struct gmxfmm_ranks_info* info);
void          fmm_treecode_ranks_reset_times(gmxfmm_plan* plan);
unsigned      fmm_treecode_ranks_capabilities(const gmxfmm_plan* plan);

#endif
