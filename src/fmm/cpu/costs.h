/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the stages of a step cost on the CPU, for the choice of order and cells. */
#ifndef FMM_CPU_COSTS_H
#define FMM_CPU_COSTS_H

#include "fmm/model/costs.h"

extern const fmm_costs fmm_costs_cpu;

#endif
