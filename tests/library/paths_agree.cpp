/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* All ways through the far field give the same: to rounding where they do the same sums, else to truncation. */
#include <gtest/gtest.h>

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
    System s = ions(boxOfVolume(type, 216), 216, 4);
    s.q[3]   = 2.5; /* a net charge */
    s.exclude(0, 1);
    s.exclude(17, farthestFrom(s, 17));
    return s;
}

void expectSame(const Result& a, const Result& b, double tolerance)
{
    EXPECT_LT(relativeRms(a.potential, b.potential), tolerance);
    EXPECT_LT(relativeRms(a.field, b.field), tolerance);
    EXPECT_LT(relativeRms(a.force, b.force), tolerance);
    EXPECT_NEAR(a.energyNear, b.energyNear, tolerance * std::fabs(b.energy));
    EXPECT_NEAR(a.energyFar, b.energyFar, tolerance * std::fabs(b.energy));
    EXPECT_LT(maxDifference(a.virial, b.virial), tolerance * std::fabs(b.energy));
}

struct Setting
{
    int  order, depth, separation;
    bool toParent = false;
    int  truncate = 0, vertical = 0;
};

/* All that the octree's methods have in common but the way in which they multiply. */
const Setting settings[] = {
    {0, 2, 1},       {1, 3, 1},       {4, 3, 1},          {7, 2, 2},           {12, 2, 1},
    {5, 3, 1, true}, {7, 2, 2, true}, {6, 3, 1, true, 1}, {9, 2, 1, false, 2}, {8, 3, 1, false, 0, 1},
    {20, 1, 1}};

gmxfmm_options optionsOf(gmxfmm_m2l m2l, const Setting& setting, gmxfmm_precision precision)
{
    gmxfmm_options options = depthOptions(m2l, setting.order, setting.depth, setting.separation, precision);
    options.m2l_to_parent  = setting.toParent;
    options.m2l_truncate   = setting.truncate;
    /* not with naive, which the others are compared with */
    options.vertical_rotation = m2l != GMXFMM_M2L_NAIVE && setting.vertical;
    return options;
}

class PathsAgree : public testing::TestWithParam<BoxType>
{
};

} // namespace

/* With the tolerances of rounding: 1e-16 or 6e-8 times some thousand terms. */
TEST_P(PathsAgree, MethodsOfTheOctreeToRounding)
{
    const System s = ionsIn(GetParam());
    for (const Setting& setting : settings)
    {
        if (setting.depth > 2 && GetParam().roots[0] * GetParam().roots[1] * GetParam().roots[2] > 1)
        {
            continue; /* nothing but empty cells */
        }
        for (gmxfmm_precision precision : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
        {
            const Result naive    = solve(s, optionsOf(GMXFMM_M2L_NAIVE, setting, precision));
            const double rounding = precision == GMXFMM_DOUBLE ? 1e-12 : 1e-5;
            for (gmxfmm_m2l m2l : {GMXFMM_M2L_ROTATION, GMXFMM_M2L_SYMMETRIC})
            {
                SCOPED_TRACE(methodWord(m2l) + ", order " + std::to_string(setting.order) + ", depth " +
                             std::to_string(setting.depth) + ", ws " + std::to_string(setting.separation));
                expectSame(solve(s, optionsOf(m2l, setting, precision)), naive, rounding);
            }
        }
    }
}

/* Order 20 with two layers: 0.41 an order at worst, 1e-9 measured. */
TEST_P(PathsAgree, OctreeAndFftToTruncation)
{
    const System s   = ionsIn(GetParam());
    const Result fft = solve(s, pathOptions({GMXFMM_M2L_FFT, GetParam()}, 20, 4, 2));
    for (gmxfmm_m2l m2l : octreeMethods())
    {
        SCOPED_TRACE(methodWord(m2l));
        const Result r = solve(s, pathOptions({m2l, GetParam()}, 20, 4, 2));
        EXPECT_LT(relativeRms(r.potential, fft.potential), 1e-9);
        EXPECT_LT(relativeRms(r.force, fft.force), 1e-9);
        EXPECT_NEAR(r.energy, fft.energy, 1e-9 * std::fabs(fft.energy));
        EXPECT_LT(maxDifference(r.virial, fft.virial), 1e-9 * std::fabs(fft.energy));
    }
}

INSTANTIATE_TEST_SUITE_P(Boxes, PathsAgree, testing::ValuesIn(octreeBoxTypes()), boxName);

/* The same plan again and again, and single precision in any number of threads. */
TEST(EveryPath, GivesTheSameBitsInEveryExecute)
{
    const System s = ionsIn(boxTypes()[0]);
    for (gmxfmm_m2l m2l : methods())
    {
        SCOPED_TRACE(methodWord(m2l));
        gmxfmm_options options = methodOptions(m2l, 6, 6, 1, GMXFMM_SINGLE);
        options.num_threads    = 2;
        Plan         plan(s, options);
        const Result first = plan.execute(s.x);
        for (int repeat = 0; repeat < 10; repeat++)
        {
            const Result again = plan.execute(s.x);
            EXPECT_EQ(again.force, first.force);
            EXPECT_EQ(again.potential, first.potential);
            EXPECT_EQ(again.energy, first.energy);
            EXPECT_EQ(again.virial, first.virial);
        }
    }
}
