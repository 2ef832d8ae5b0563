/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Excluded pairs of far cells, which are taken off what all pairs give. */
#ifndef FMM_FAR_PAIRS_H
#define FMM_FAR_PAIRS_H

#include "fmm/cpu/step.h"

/* Takes them off what is wanted of far_phi, ex, ey, ez and gradient of the particles, and off their energy and, where
 * FMM_VIRIAL is wanted, virial[9]: the six symmetric elements, and a quarter of the sum of torques, unit 1/u. */
void fmm_far_pairs(gmxfmm_plan* plan, fmm_wanted wanted, double* energy, double* virial);

#endif
