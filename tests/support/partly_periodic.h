/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Slabs and wires: references in double precision, term by term, and how results are compared with them. */
#ifndef GMXFMM_TESTS_PARTLY_PERIODIC_H
#define GMXFMM_TESTS_PARTLY_PERIODIC_H

#include <cmath>

#include <gtest/gtest.h>

#include "support/norms.h"
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

/* Energies of excluded pairs cancel some of the sum; fields are compared by their RMS. */
inline void expectAgreement(const Solution& r, const Solution& reference, double tolerance)
{
    EXPECT_LT(relativeRms(r.field, reference.field), tolerance);
    EXPECT_LT(relativeRms(r.potential, reference.potential), tolerance);
    EXPECT_NEAR(r.energy, reference.energy,
                tolerance * std::sqrt(static_cast<double>(r.force.size())) * std::fabs(reference.energy));
}

/* Slope of a smooth function by a five-point rule: h^4 / 30 of the fifth derivative, and 1e-14 / h of rounding. */
template <typename Function>
double slope(const Function& f, double h)
{
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h);
}

} // namespace fmmtest

#endif
