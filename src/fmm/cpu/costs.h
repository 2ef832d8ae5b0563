/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Costs on the CPU. */
#ifndef FMM_CPU_COSTS_H
#define FMM_CPU_COSTS_H

#include "fmm/model/costs.h"

extern const fmm_costs fmm_costs_cpu;

#endif
