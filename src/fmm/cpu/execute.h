/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FMM_EXECUTE_H
#define FMM_EXECUTE_H

#include "fmm/math/portable.h"
#include "fmm/cpu/state.h"

/* A step, and the scratch that it needs for the present particles. Errors of reserve: MEMORY; of the step:
 * POSITION, CHARGE, COINCIDENT. */
gmxfmm_status fmm_step_reserve(gmxfmm_plan* plan);
/* Charges into sorted order, after an assign and when they are new. */
void fmm_sort_charges(gmxfmm_plan* plan);
/* The far field by cells of one level, and by an octree; see fmm_cpu_path. */
void        fmm_far_by_cells(gmxfmm_plan* plan, double* strain);
void        fmm_far_by_octree(gmxfmm_plan* plan, double* strain);
const void* fmm_locals_of_cells(const gmxfmm_plan* plan, size_t* stride);
const void* fmm_locals_of_leaves(const gmxfmm_plan* plan, size_t* stride);

gmxfmm_status fmm_step(gmxfmm_plan* plan, const void* x, gmxfmm_output* output);

#endif
