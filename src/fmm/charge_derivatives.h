/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What charges depend on: set by gmxfmm_set_charge_derivatives (charge_derivatives.c). */
#ifndef FMM_CHARGE_DERIVATIVES_H
#define FMM_CHARGE_DERIVATIVES_H

#include "fmm/gmxfmm.h"

void fmm_charge_derivatives_free(gmxfmm_plan* plan);

#endif
