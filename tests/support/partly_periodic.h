/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The references for slabs and wires, in double precision, term by term. */
#ifndef GMXFMM_TESTS_PARTLY_PERIODIC_H
#define GMXFMM_TESTS_PARTLY_PERIODIC_H

#include "support/system.h"

namespace fmmtest
{

/* Potential, field, force and energy of charges that are periodic along the first two vectors of the box, which are in
 * the plane z = 0, to about 1e-13 of the largest; without the excluded pairs at their nearest image; no virial. alpha:
 * the splitting, on which nothing must depend; 0: a good one. Takes n^2 times some thousand terms. */
Solution slabSum(const System& system, double alpha = 0);

/* The same of charges that are periodic along the third vector, which is along z: images one by one, and two terms of a
 * series for those that are far away. */
Solution wireSum(const System& system);

} // namespace fmmtest

#endif
