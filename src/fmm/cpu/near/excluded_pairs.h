/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The excluded pairs of the particles that were assigned. */
#ifndef FMM_EXCLUDED_PAIRS_H
#define FMM_EXCLUDED_PAIRS_H

#include "fmm/cpu/state.h"

/* Sets mask, far_pairs and the largest near set. Errors: MEMORY. */
gmxfmm_status fmm_excluded_pairs(gmxfmm_plan* plan);

#endif
