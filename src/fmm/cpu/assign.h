/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Assignment of the particles to cells on the CPU. */
#ifndef FMM_CPU_ASSIGN_H
#define FMM_CPU_ASSIGN_H

#include "fmm/cpu/state.h"
#include "fmm/math/portable.h"

/* Of backend.h. Errors: POSITION, MEMORY. */
gmxfmm_status fmm_cpu_assign(gmxfmm_plan* plan, const void* x);

#endif
