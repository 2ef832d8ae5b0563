/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The charges of a plan's particles; set by gmxfmm_set_charges and gmxfmm_enqueue_charges (charges.c). */
#ifndef FMM_CHARGES_H
#define FMM_CHARGES_H

#include "fmm/gmxfmm.h"

void fmm_charges_free(gmxfmm_plan* plan);

#endif
