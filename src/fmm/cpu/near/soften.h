/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * 1/r made finite within a distance d: (1 + v/2 + 3 v^2 / 8) / d, v = 1 - r^2 / d^2. These are the first terms of 1/r
 * in powers of v, so that forces and their derivatives have no step at d. P2P computes it in plans with widths, where
 * widths.c adds the rest.
 */
#ifndef FMM_SOFTEN_H
#define FMM_SOFTEN_H

#include "fmm/math/portable.h"

/* Factors of 1/d in the potential, and of 1/d^3 in the force over r. */
static inline vreal fmm_soften_potential(vreal v)
{
    return v * (v * (real)0.375 + (real)0.5) + 1;
}

static inline vreal fmm_soften_force(vreal v)
{
    return v * (real)1.5 + 1;
}

#endif
