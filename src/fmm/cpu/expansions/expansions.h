/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* P2M and L2P, between particles and the expansions of their cells. */
#ifndef FMM_EXPANSIONS_H
#define FMM_EXPANSIONS_H

#include "fmm/cpu/step.h"

/* Multipoles of all cells, field[coef][cell] = sum q conj Upsilon (THEORY (4)). */
void fmm_p2m(const gmxfmm_plan* plan, real* field, size_t stride);

/* Potential and field, what is wanted of them, of the local expansions at the targets: sets far_phi, adds to ex, ey, ez
 * (THEORY (6)). */
void fmm_l2p(
    const gmxfmm_plan* plan, const real* field, size_t stride, const fmm_background* background, fmm_wanted wanted);

/* The same of leaves of several levels: multipoles of those of one level, and targets of all. Expansions are in the
 * unit of their level, 2^(depth - level) u. */
void fmm_p2m_leaves(const gmxfmm_plan* plan, int level);
void fmm_l2p_leaves(const gmxfmm_plan* plan, fmm_wanted wanted);

#endif
