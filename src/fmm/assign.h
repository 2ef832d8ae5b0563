/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FMM_ASSIGN_H
#define FMM_ASSIGN_H

#include "plan.h"

/* plan.c: makes cells, their arrays and the convolution fit plan->box and plan->inner, if they do not already. */
gmxfmm_status fmm_update_geometry(gmxfmm_plan* plan);

/* tune.c: open systems, for particles between low and high: grid, at the first call also edge, order and ws. */
gmxfmm_status fmm_tune_open(gmxfmm_plan* plan, const double* low, const double* high);

/* Bins the particles at x, finds the pairs left out. Errors: POSITION, MEMORY. */
gmxfmm_status fmm_assign_particles(gmxfmm_plan* plan, const void* x);

#endif
