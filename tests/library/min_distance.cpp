/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* min_distance: pairs that are nearer have the potential of that distance and no force. */
#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string>
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

const int    cells = 6;
const double least = 0.05; /* cells have edges of about 1 */

/* Of the pairs that are put on or beside each other, from one place to just beyond the limit. */
const std::array<double, 6> distances = {0, 1e-7, 1e-3, 0.5 * least, 0.9 * least, 1.5 * least};

/* Ions, the first pairs of which are at these distances. */
System withClosePairs(const BoxType& type)
{
    System s = ions(boxOfVolume(type, 216), 216, 33);
    for (std::size_t k = 0; k < distances.size(); k++)
    {
        for (std::size_t d = 0; d < 3; d++)
        {
            s.x[3 * (2 * k + 1) + d] = s.x[3 * 2 * k + d] + (d == k % 3 ? distances[k] : 0);
        }
    }
    return s;
}

/* The same without these pairs, which a plain plan computes, and they by hand. */
Result byHand(System s, const gmxfmm_options& options)
{
    for (std::size_t k = 0; k < distances.size(); k++)
    {
        s.exclude(2 * k, 2 * k + 1);
    }
    Result r = solve(s, options);
    for (std::size_t k = 0; k < distances.size(); k++)
    {
        const std::size_t i = 2 * k, j = i + 1, axis = k % 3;
        const double      inverse = 1 / std::max(distances[k], least);
        r.potential[i] += s.q[j] * inverse;
        r.potential[j] += s.q[i] * inverse;
        r.energy += s.q[i] * s.q[j] * inverse;
        if (distances[k] > least)
        {
            const double field = inverse * inverse;
            r.field[3 * i + axis] -= s.q[j] * field;
            r.field[3 * j + axis] += s.q[i] * field;
            r.virial[4 * axis] -= 0.5 * s.q[i] * s.q[j] * inverse;
        }
    }
    return r;
}

/* The plan with min_distance gives what is computed by hand. */
void expectLimited(const System& s, gmxfmm_options options)
{
    const Result expected = byHand(s, options);
    options.min_distance  = least;
    const Result found    = solve(s, options);
    /* 1e-16 or 1e-7 times some thousand terms; a distance of 0.075 between cells has the rounding of 1 */
    const double tolerance = options.precision == GMXFMM_DOUBLE ? 1e-12 : 1e-4;
    EXPECT_LT(rmsDifference(found.potential, expected.potential), tolerance * rms(expected.potential));
    EXPECT_LT(rmsDifference(found.field, expected.field), tolerance * rms(expected.field));
    EXPECT_NEAR(found.energy, expected.energy, tolerance * std::fabs(expected.energy));
    EXPECT_LT(maxDifference(found.virial, expected.virial), tolerance * std::fabs(expected.energy));
}

/* Without box: what a sum of all pairs gives. */
void expectSumOfPairs(const System& s, const Result& found)
{
    Solution exact = emptySolution(s.size());
    for (std::size_t i = 0; i < s.size(); i++)
    {
        for (std::size_t j = 0; j < s.size(); j++)
        {
            const Vec3   a = s.position(i), b = s.position(j), r = {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
            const double distance = std::sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
            exact.potential[i] += j == i ? 0 : s.q[j] / std::max(distance, least);
            for (std::size_t d = 0; d < 3 && distance > least; d++)
            {
                exact.field[3 * i + d] += s.q[j] * r[d] / (distance * distance * distance);
            }
        }
    }
    /* the order of the expansions, where there are any; fields of particles at one place are zero */
    const double tolerance = 1e-4, strongest = 1 / least / least;
    EXPECT_LT(rmsDifference(found.potential, exact.potential), tolerance * rms(exact.potential));
    EXPECT_LT(rmsDifference(found.field, exact.field), tolerance * std::max(rms(exact.field), 1e-6 * strongest));
}

class MinDistance : public testing::TestWithParam<std::tuple<Path, gmxfmm_precision>>
{
};

} // namespace

TEST_P(MinDistance, LimitsPairs)
{
    const Path& path = std::get<0>(GetParam());
    expectLimited(withClosePairs(path.box), pathOptions(path, 4, cells, 1, std::get<1>(GetParam())));
}

/* Nothing else is another: the same bits. */
TEST_P(MinDistance, LeavesOtherPairsAlone)
{
    const Path&    path    = std::get<0>(GetParam());
    const System   s       = ions(boxOfVolume(path.box, 216), 216, 33);
    gmxfmm_options options = pathOptions(path, 4, cells, 1, std::get<1>(GetParam()));
    const Result   plain   = solve(s, options);
    options.min_distance   = 1e-3;
    const Result limited   = solve(s, options);
    EXPECT_EQ(plain.potential, limited.potential);
    EXPECT_EQ(plain.field, limited.field);
}

/* What has no charge has a potential at the place of another, too: as the limit of distances, and as its charge may
 * change. */
TEST_P(MinDistance, HoldsForWhatHasNoCharge)
{
    const Path&    path    = std::get<0>(GetParam());
    System         s       = ions(boxOfVolume(path.box, 216), 216, 33);
    gmxfmm_options options = pathOptions(path, 4, cells, 1, std::get<1>(GetParam()));
    options.min_distance   = least;
    s.q[0]                 = 0;
    std::array<double, 2> potential;
    for (std::size_t k = 0; k < 2; k++)
    {
        for (std::size_t d = 0; d < 3; d++)
        {
            s.x[d] = s.x[3 + d] + (d == 0 && k == 1 ? 1e-3 * least : 0);
        }
        potential[k] = solve(s, options).potential[0];
    }
    EXPECT_NEAR(potential[0], potential[1], 1e-4 * std::fabs(s.q[1]) / least);
    s.exclude(0, 1);
    EXPECT_NEAR(potential[0] - solve(s, options).potential[0], s.q[1] / least, 1e-4 * std::fabs(s.q[1]) / least);
}

/* Positions there are the caller's own numbers, in a unit of their own. */
TEST(MinDistanceOpen, LimitsPairs)
{
    for (const gmxfmm_precision precision : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
    {
        expectLimited(withClosePairs(boxTypes()[0]),
                      withBoundary(depthOptions(GMXFMM_M2L_ROTATION, 4, 2, 1, precision), Boundary::Open));
    }
}

/* All particles are nearer to one another than that, or some are: cells are larger than they would be. */
TEST(MinDistanceOpen, CellsHoldParticlesThatNearlyCoincide)
{
    const std::array<gmxfmm_options, 4> all = {askedOptions(1e-9), depthOptions(GMXFMM_M2L_ROTATION, 8, 2, 1),
                                               explicitOptions(8, 3, 3, 3, 1), explicitOptions(8, 3, 3, 3, 2)};
    const System                        s   = droplet(20, 1, 5);
    for (gmxfmm_options options : all)
    {
        options              = withBoundary(options, Boundary::Open);
        options.min_distance = least;
        Plan plan(s, options);
        for (const double scale : {1.0, 0.05, 1e-3, 1e-9, 0.0, 1.0})
        {
            System near = s;
            for (double& x : near.x)
            {
                x *= scale;
            }
            plan.assign(near.x);
            EXPECT_GE(plan.info().near_range, least) << "scale " << scale;
            const Result found = plan.execute(near.x);
            expectSumOfPairs(near, found);
        }
    }
}

/* A choice by measurement tries cells that would be smaller, too. */
TEST(MinDistanceOpen, IsMeasured)
{
    gmxfmm_options options = withBoundary(askedOptions(1e-6), Boundary::Open);
    options.min_distance   = least;
    options.reproducible   = 1;
    for (const double scale : {0.05, 1e-3})
    {
        System s = droplet(300, 1, 5);
        for (double& x : s.x)
        {
            x *= scale;
        }
        std::array<char, 512> message = {};
        gmxfmm_plan*          made    = nullptr;
        const SystemView      view(s, Boundary::Open);
        const gmxfmm_system   system = view.get();
        ASSERT_EQ(
            gmxfmm_create_measured(&made, &options, &system, nullptr, nullptr, nullptr, message.data(), message.size()),
            GMXFMM_OK)
            << message.data();
        Plan plan(s, made);
        expectSumOfPairs(s, plan.execute(s.x));
    }
}

TEST(MinDistanceErrors, CellsHaveToBeLarger)
{
    const System   s       = ions(boxOfVolume(boxTypes()[0], 216), 216, 33);
    gmxfmm_options options = methodOptions(GMXFMM_M2L_FFT, 4, cells, 1);
    options.min_distance   = 3;
    try
    {
        solve(s, options);
        ADD_FAILURE() << "3 is more than cells of edge 1 hold";
    }
    catch (const std::runtime_error& error)
    {
        EXPECT_NE(std::string(error.what()).find("min_distance"), std::string::npos);
    }
}

INSTANTIATE_TEST_SUITE_P(Paths,
                         MinDistance,
                         testing::Combine(testing::ValuesIn(paths()), testing::Values(GMXFMM_DOUBLE, GMXFMM_SINGLE)),
                         pathAndPrecisionName);
