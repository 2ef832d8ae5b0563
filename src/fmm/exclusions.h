/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The list of excluded pairs, as a caller gives it. */
#ifndef FMM_EXCLUSIONS_H
#define FMM_EXCLUSIONS_H

#include "fmm/gmxfmm.h"

/* Whether start[n + 1] and list are rows of partners of n particles, each pair in both rows. Errors:
 * EXCLUSION. */
gmxfmm_status fmm_check_exclusions(gmxfmm_plan* plan, int n, const int* start, const int* list);

#endif
