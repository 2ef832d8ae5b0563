/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FMM_EXECUTE_H
#define FMM_EXECUTE_H

#include "fmm/math/portable.h"
#include "fmm/plan.h"

/* A step, and the scratch that it needs for the present particles. Errors of reserve: MEMORY; of the step:
 * POSITION, CHARGE, COINCIDENT. */
gmxfmm_status FN(fmm_step_reserve)(gmxfmm_plan* plan);
gmxfmm_status FN(fmm_step)(gmxfmm_plan* plan, const void* x, gmxfmm_output* output);

#endif
