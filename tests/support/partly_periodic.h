/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Slabs and wires: references in double precision, term by term, and how results are compared with them. */
#ifndef GMXFMM_TESTS_PARTLY_PERIODIC_H
#define GMXFMM_TESTS_PARTLY_PERIODIC_H

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/norms.h"
#include "support/plan.h"
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

/* Periodic along these vectors of the box. */
inline gmxfmm_options periodicAlong(gmxfmm_options options, const std::array<int, 3>& periodic)
{
    std::copy(periodic.begin(), periodic.end(), options.periodic);
    return options;
}

/* At places without a charge a plan gives the potential and the field of this sum. */
void expectTargets(const System&              s,
                   const gmxfmm_options&      options,
                   const std::vector<double>& places,
                   Solution (*sum)(const System&),
                   double tolerance);

/* Field and potential of a file of reference data, if it is there. */
void expectReference(const std::string& name, const gmxfmm_options& options);

} // namespace fmmtest

#endif
