/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* P2P, the near field: direct sums over the particles of near cells. */
#ifndef FMM_P2P_H
#define FMM_P2P_H

#include "fmm/cpu/step.h"

/* Pairs in near cells, less excluded ones: sets what is wanted of near_phi, ex, ey, ez, and gradient of the targets, or
 * adds to field and gradient where fmm_far_is_first. FMM_VIRIAL adds the symmetric part of
 * -1/2 sum r (x) F of the near pairs to virial[6] (xx, yy, zz, xy, xz, yz), unit 1/u. */
void fmm_p2p(gmxfmm_plan* plan, fmm_wanted wanted, double* virial);

/* Bytes of scratch that it needs for each thread. */
size_t fmm_p2p_scratch(const gmxfmm_plan* plan);

#endif
