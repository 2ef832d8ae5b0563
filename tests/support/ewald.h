/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The reference for periodic systems: a plain Ewald sum in double precision, for boxes of any shape. */
#ifndef GMXFMM_TESTS_EWALD_H
#define GMXFMM_TESTS_EWALD_H

#include "support/system.h"

namespace fmmtest
{

/* Potential, field, force, energy and virial, to about 1e-13 of the largest; with a neutralising background, without
 * the excluded pairs at their nearest image, and with the surface term 2 pi / (3 V) |sum q x|^2 if boundary is Vacuum.
 * cutoffScale changes the real-space cutoff, and the splitting with it; the result must not depend on it. */
Solution ewald(const System& system, Boundary boundary = Boundary::Tinfoil, double cutoffScale = 1);

} // namespace fmmtest

#endif
