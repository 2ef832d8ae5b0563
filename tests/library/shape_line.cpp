/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Boxes that are scaled along z by one factor and across by another, again and again, as semi-isotropic pressure
 * coupling does: lattice sums are interpolated between a few shapes, which no result shows beyond 5e-3 of its error. */
#include <tuple>

#include <gtest/gtest.h>

#include "support/norms.h"
#include "support/paths.h"
#include "support/plan.h"
#include "support/suites.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

/* All edges by e^s, then by e^t along z and e^(-t/2) across. */
System scaled(const System& system, double t, double s = 0)
{
    const double across = std::exp(s - t / 2) - 1, along = std::exp(s + t) - 1;
    return strained(system, {across, 0, 0, 0, across, 0, 0, 0, along});
}

System waterIn(const BoxType& type)
{
    return water(boxOfVolume(type, 4), 6);
}

/* With a net charge, and the dipole moment of what stands at random. */
System saltIn(const BoxType& type)
{
    System s = ions(boxOfVolume(type, 64), 64, 9);
    s.q[3]   = 2.5;
    return s;
}

/* With the sums of each box itself. */
gmxfmm_options exact(gmxfmm_options options)
{
    options.reproducible = 1;
    return options;
}

/* 5e-3 of the error, for which node_spacing of fit.c chooses the nodes, and rounding. Energy and virial, sums of what
 * has either sign, are compared with the two parts of the energy. */
void expectClose(const Result& r, const Result& expected, double error, double rounding)
{
    const double energy = std::fabs(expected.energyNear) + std::fabs(expected.energyFar);
    EXPECT_LE(relativeRms(r.force, expected.force), 5e-3 * error + rounding);
    EXPECT_NEAR(r.energy, expected.energy, (5e-3 * error + rounding) * energy);
    EXPECT_LE(maxDifference(r.virial, expected.virial), (5e-3 * error + rounding) * energy);
}

class ShapeLine : public testing::TestWithParam<Path>
{
};

/* There and back over several nodes, to either side; every third step wants no virial. */
void expectNotSeen(const System& s, const gmxfmm_options& options)
{
    Plan         plan(s, options), each(s, exact(options));
    const double error = std::min(options.accuracy, plan.info().predicted_error);
    int          step  = 0;
    for (const double t : {0.0, 0.001, 0.004, 0.0114, 0.0116, 0.03, 0.02, 0.008, -0.003, -0.018, -0.05, -0.001})
    {
        const System deformed = scaled(s, t, 0.3 * t);
        plan.setBox(deformed.box);
        each.setBox(deformed.box);
        const Result expected = each.execute(deformed.x);
        if (step++ % 3 == 2)
        {
            const double energy = std::fabs(expected.energyNear) + std::fabs(expected.energyFar);
            EXPECT_NEAR(plan.energy(deformed.x), expected.energy, (5e-3 * error + 1e-11) * energy);
        }
        else
        {
            expectClose(plan.execute(deformed.x), expected, error, 1e-11);
        }
    }
}

} // namespace

TEST_P(ShapeLine, IsNotSeenInWater)
{
    for (const int order : {8, 14})
    {
        expectNotSeen(waterIn(GetParam().box), pathOptions(GetParam(), order, 5, 1));
    }
}

TEST_P(ShapeLine, IsNotSeenInASaltWithNetCharge)
{
    expectNotSeen(saltIn(GetParam().box), pathOptions(GetParam(), 8, 5, 1));
}

/* Others have their own sums, before, after and between those of a line. */
TEST_P(ShapeLine, OtherShapesHaveTheirOwnSums)
{
    const System         s       = waterIn(GetParam().box);
    const gmxfmm_options options = pathOptions(GetParam(), 6, 5, 1);
    Plan                 plan(s, options), each(s, exact(options));
    for (const double t : {0.002, 0.005, 0.003})
    {
        plan.setBox(scaled(s, t).box);
        plan.execute(scaled(s, t).x);
        const System other = strained(s, {2 * t, 0, 0, 0, -t, 0, 0, 0, 0.5 * t});
        plan.setBox(other.box);
        each.setBox(other.box);
        const Result r = plan.execute(other.x), expected = each.execute(other.x);
        expectClose(r, expected, 0, 1e-11);
    }
}

INSTANTIATE_TEST_SUITE_P(Paths, ShapeLine, testing::ValuesIn(paths()), pathName);

/* What it is for: one set of sums for the first shape, one for the first change, three nodes for all others. */
TEST(ShapeLineSums, AreFew)
{
    const System s = waterIn(boxTypes()[1]);
    for (const gmxfmm_precision precision : {GMXFMM_SINGLE, GMXFMM_DOUBLE})
    {
        Plan plan(s, explicitOptions(8, evenGrid(boxTypes()[1], 5), 1, precision));
        plan.execute(s.x);
        for (int i = 1; i <= 40; i++)
        {
            const System deformed = scaled(s, 0.001 + 0.003 * std::sin(0.7 * i));
            plan.setBox(deformed.box);
            plan.execute(deformed.x);
        }
        EXPECT_EQ(plan.info().num_spectra, 1 + 1 + 3);
        /* beyond 1.15 of their distance: one node more */
        plan.setBox(scaled(s, 0.012).box);
        plan.execute(scaled(s, 0.012).x);
        EXPECT_EQ(plan.info().num_spectra, 1 + 1 + 3 + 1);
    }
}

/* A plan that is to be reproducible has one set a shape. */
TEST(ShapeLineSums, OfAReproduciblePlanAreOfEachShape)
{
    const System s = waterIn(boxTypes()[0]);
    Plan         plan(s, exact(explicitOptions(6, 5, 5, 5, 1)));
    plan.execute(s.x);
    for (int i = 1; i <= 5; i++)
    {
        plan.setBox(scaled(s, 0.001 * i).box);
        plan.execute(scaled(s, 0.001 * i).x);
    }
    EXPECT_EQ(plan.info().num_spectra, 1 + 5);
}
