/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The charges of a plan's particles; set by gmxfmm_set_charges and gmxfmm_enqueue_charges (charges.c). */
#ifndef FMM_CHARGES_H
#define FMM_CHARGES_H

#include "fmm/gmxfmm.h"

void fmm_charges_free(gmxfmm_plan* plan);

/* Makes the total of charges the sum of these 2 num numbers, such as total and rest of the charges of several ranks. */
void fmm_charges_set_total(gmxfmm_plan* plan, const double* sums, int num);

/* Whether n particles can have dipoles, and what is in the way. Errors: those of gmxfmm_set_dipoles. */
gmxfmm_status fmm_charges_check_dipoles(gmxfmm_plan* plan, int64_t n);

#endif
