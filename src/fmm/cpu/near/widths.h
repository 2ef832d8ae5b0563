/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Charges with widths: what their pairs differ by from pairs of point charges. */
#ifndef FMM_WIDTHS_H
#define FMM_WIDTHS_H

#include "fmm/cpu/step.h"

/* The distance within which P2P softens pairs, the cut-off, and memory for steps, of particles that were assigned.
 * Errors: MEMORY; OPTION: widths too wide for the box. */
gmxfmm_status fmm_widths_assign(gmxfmm_plan* plan);

/* Bytes of scratch that a step needs for each thread. */
size_t fmm_widths_scratch(const gmxfmm_plan* plan);

/* Adds what P2P's sums lack of pairs with widths, THEORY (53), to what is wanted of near_phi, ex, ey and ez of the
 * targets; FMM_VIRIAL: and to virial[6], as fmm_p2p. */
void fmm_widths(gmxfmm_plan* plan, fmm_wanted wanted, double* virial);

#endif
