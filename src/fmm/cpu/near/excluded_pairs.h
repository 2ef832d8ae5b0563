/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The excluded pairs of particles, found after their assignment to cells. */
#ifndef FMM_EXCLUDED_PAIRS_H
#define FMM_EXCLUDED_PAIRS_H

#include "fmm/cpu/state.h"

/* Sets mask and all that goes with it, and the largest near set. Errors: MEMORY; UNSUPPORTED: an image out of reach. */
gmxfmm_status fmm_excluded_pairs(gmxfmm_plan* plan);

#endif
