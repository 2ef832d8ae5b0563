/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Particles that have left the cells that they were assigned to: what is allowed, and the error (math/left.h). */
#ifndef FMM_LEFT_H
#define FMM_LEFT_H

#include <stdint.h>

#include "fmm/gmxfmm.h"
#include "fmm/math/left.h"

/* Whether steps look for such particles. */
int fmm_left_is_checked(const gmxfmm_plan* plan);

/* Once particles are assigned: what evenly spread ones would have, if cells or order are new. */
void fmm_left_follow(gmxfmm_plan* plan);

/* Of a step of the plan as it is. */
fmm_left_limits fmm_left_limits_of(const gmxfmm_plan* plan);

/* Whether a step may give what it has found, particle being the worst one. Errors: LEFT, if options.check wants it. */
gmxfmm_status fmm_left_check(gmxfmm_plan* plan, const fmm_left* left, int64_t particle);

/* The error of a particle that has no expansion any more. Returns LEFT. */
gmxfmm_status fmm_left_lost(gmxfmm_plan* plan, int64_t particle);

#endif
