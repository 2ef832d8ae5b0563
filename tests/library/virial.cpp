/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The virial is half the strain derivative of the energy: of the truncated energy, at any order, cells straining with
 * the box. Its trace is -E/2 because every term of the energy goes as 1 / length. */
#include <gtest/gtest.h>

#include "support/derivatives.h"
#include "support/direct.h"
#include "support/ewald.h"
#include "support/norms.h"
#include "support/paths.h"
#include "support/plan.h"
#include "support/suites.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

System ionsIn(const BoxType& type)
{
    System s = ions(boxOfVolume(type, 64), 64, 9);
    s.exclude(0, 1);
    s.exclude(5, 20);
    s.exclude(30, farthestFrom(s, 30));
    s.exclude(31, farthestFrom(s, 31));
    return s;
}

/* The octree takes no sheared box: its components off the diagonal are compared with those of other paths and of all
 * pairs at high order, below and in paths_agree.cpp. */
void expectStrainDerivative(const System& s, const gmxfmm_options& options)
{
    const bool any = options.m2l == GMXFMM_M2L_FFT;
    expectStrainDerivatives(
        s, options, any ? std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7, 8} : std::vector<std::size_t>{0, 4, 8});
}

class Virial : public testing::TestWithParam<Path>
{
};

} // namespace

TEST_P(Virial, IsTheStrainDerivativeAtLowOrder)
{
    expectStrainDerivative(ionsIn(GetParam().box), pathOptions(GetParam(), 3, 6, 1));
}

TEST_P(Virial, IsTheStrainDerivativeWithVacuum)
{
    expectStrainDerivative(ionsIn(GetParam().box), withBoundary(pathOptions(GetParam(), 6, 5, 1), Boundary::Vacuum));
}

TEST_P(Virial, IsTheStrainDerivativeWithNetCharge)
{
    System s = ionsIn(GetParam().box);
    s.q[3]   = 2.5;
    expectStrainDerivative(s, pathOptions(GetParam(), 4, 3, 2));
}

/* Molecules in a crystal of few cells: excluded pairs next to each other, everywhere. */
TEST_P(Virial, OfWaterIsThatOfEwald)
{
    const System   s         = water(boxOfVolume(GetParam().box, 4), 6);
    const Solution reference = ewald(s);
    const Result   fine = solve(s, pathOptions(GetParam(), 18, 4, 2)), coarse = solve(s, automatic(GetParam().m2l));
    /* order 18 with two layers truncates below 1e-9 */
    EXPECT_LT(maxDifference(fine.virial, reference.virial), 1e-9 * std::fabs(reference.energy));
    /* errors of the forces, 4e-4 of their RMS and random, over about the length of a cell, 0.6 nm */
    const double n        = static_cast<double>(s.size());
    const double expected = 0.5 * std::sqrt(n) * 4e-4 * std::sqrt(3.0) * rms(reference.force) * 0.6;
    EXPECT_LT(maxDifference(coarse.virial, reference.virial), 2 * expected); /* largest of nine */
    /* in single precision: pairs of the near field are 1e4 times the energy by absolute values, and roundings of their
     * sums, 6e-8, are random over 402 particles and ten to fifty blocks of sources each; 4.3e-6 is the largest seen */
    EXPECT_NEAR(trace(coarse.virial), -0.5 * coarse.energy, 1e-5 * std::fabs(coarse.energy));
}

INSTANTIATE_TEST_SUITE_P(Paths, Virial, testing::ValuesIn(paths()), pathName);

/* So that the tests above do test excluded pairs in the far field: in a grid of 6 cells of edge 0.67, ws = 1, two
 * particles farther apart than 2 sqrt(3) edges are in cells that are not neighbours. */
TEST(FarExclusions, AreInTheVirialTests)
{
    const System s = ionsIn(boxTypes()[0]);
    EXPECT_GT(nearestDistance(s, 30, farthestFrom(s, 30)), 2 * std::sqrt(3.0) * 4 / 6);
}

/* Without a box nothing can be strained; the tensor is compared with that of all pairs. */
class VirialOfOpenSystem : public testing::TestWithParam<gmxfmm_m2l>
{
};

TEST_P(VirialOfOpenSystem, IsThatOfTheDirectSum)
{
    System s = droplet(300, 4, 2);
    s.exclude(0, 1);
    s.exclude(5, 20);
    const Solution reference = directSum(s);
    const Result   r         = solve(s, withBoundary(methodOptions(GetParam(), 16, 5, 2), Boundary::Open));
    EXPECT_LT(maxDifference(r.virial, reference.virial), 1e-9 * std::fabs(reference.energy));
    EXPECT_NEAR(trace(r.virial), -0.5 * r.energy, 1e-9 * std::fabs(r.energy));
}

INSTANTIATE_TEST_SUITE_P(Methods, VirialOfOpenSystem, testing::ValuesIn(methods()), methodName);
