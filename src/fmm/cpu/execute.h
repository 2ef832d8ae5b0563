/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A step on the CPU. */
#ifndef FMM_EXECUTE_H
#define FMM_EXECUTE_H

#include "fmm/cpu/state.h"
#include "fmm/math/portable.h"

/* Errors: POSITION, CHARGE, COINCIDENT. */
gmxfmm_status fmm_step(gmxfmm_plan* plan, const void* x, gmxfmm_output* output);

#endif
