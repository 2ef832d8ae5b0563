/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The functions of the treecode's rows, which the CPU and CUDA (cuda/treecode/backend.c) have in common: see
 * fmm/backend.h. */
#ifndef TREECODE_BACKEND_H
#define TREECODE_BACKEND_H

#include "fmm/backend.h"

gmxfmm_status fmm_treecode_create(gmxfmm_plan* plan);
void          fmm_treecode_destroy(gmxfmm_plan* plan);
gmxfmm_status fmm_treecode_set_charges(gmxfmm_plan* plan);
gmxfmm_status fmm_treecode_on_host(gmxfmm_plan* plan, const void** x, size_t num);
gmxfmm_status fmm_treecode_assign(gmxfmm_plan* plan, const void* x);
gmxfmm_status fmm_treecode_execute(gmxfmm_plan* plan, const void* x, gmxfmm_output* output);

void fmm_treecode_measure_again(gmxfmm_plan* plan, double accuracy);

/* Whether the next assign measures it; what was measured is of the targets, or charges, that the plan has then. */
int  fmm_treecode_measures(const gmxfmm_plan* plan);
void fmm_treecode_was_measured(gmxfmm_plan* plan);

struct treecode;
struct treecode* fmm_treecode_sums(const gmxfmm_plan* plan);
void             fmm_treecode_get_info(const gmxfmm_plan* plan, gmxfmm_info* info);

#endif
