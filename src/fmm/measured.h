/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The error that was measured of a plan. */
#ifndef FMM_MEASURED_H
#define FMM_MEASURED_H

#include "fmm/gmxfmm.h"

/* Keeps the error that was measured of the plan as it is, what it is where cells are elsewhere, the accuracy that was
 * asked for, INFINITY if none was, and whether the error is relative to the natural unit of forces. */
void fmm_set_measured_error(gmxfmm_plan* plan, double error, double anywhere, double asked, int zero_forces);

/* That error as long as it is of the plan as it is; NAN: there is none. */
double fmm_measured_error(const gmxfmm_plan* plan);

/* The larger of that and what it is where cells are elsewhere. */
double fmm_measured_anywhere(const gmxfmm_plan* plan);

#endif
