/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Potential and field at places where no charges are: as those of charges that are zero. */
#include <gtest/gtest.h>

#include "support/direct.h"
#include "support/ewald.h"
#include "support/norms.h"
#include "support/paths.h"
#include "support/plan.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

/* The charges with targets as charges of zero, for references that know no targets. */
Values lastOf(const Solution& all, std::size_t first)
{
    const std::ptrdiff_t n = static_cast<std::ptrdiff_t>(first);
    return {{all.potential.begin() + n, all.potential.end()}, {all.field.begin() + 3 * n, all.field.end()}};
}

Values reference(const System& s, const std::vector<double>& places, Boundary boundary)
{
    System all = s;
    for (std::size_t i = 0; i < places.size() / 3; i++)
    {
        all.add({places[3 * i], places[3 * i + 1], places[3 * i + 2]}, 0);
    }
    return lastOf(boundary == Boundary::Open ? directSum(all) : ewald(all, boundary), s.size());
}

void expectClose(const Values& v, const Values& expected, double tolerance)
{
    EXPECT_LT(relativeRms(v.potential, expected.potential), tolerance);
    EXPECT_LT(relativeRms(v.field, expected.field), tolerance);
}

/* n places in a brick about the origin of `box`, which may be larger than the system. */
std::vector<double> placesIn(const Mat3& box, int n, std::uint64_t seed)
{
    return ions(box, n, seed).x;
}

/* Order 14 with two layers truncates below 1e-7. */
const double truncation = 1e-7;

double tolerance(gmxfmm_precision precision)
{
    return precision == GMXFMM_DOUBLE ? truncation : 1e-5;
}

class Targets : public testing::TestWithParam<MethodAndPrecision>
{
  protected:
    static gmxfmm_options options(Boundary boundary)
    {
        return withBoundary(
            methodOptions(std::get<0>(GetParam()), 14, isSlow(std::get<0>(GetParam())) ? 2 : 4, 2, precision()),
            boundary);
    }
    static gmxfmm_precision precision()
    {
        return std::get<1>(GetParam());
    }
};

const Mat3 cube = {4, 0, 0, 0, 4, 0, 0, 0, 4};

} // namespace

TEST_P(Targets, InAPeriodicBox)
{
    for (Boundary boundary : {Boundary::Tinfoil, Boundary::Vacuum})
    {
        const System              s      = ions(cube, 64, 3);
        const std::vector<double> places = placesIn(cube, 40, 9);
        Plan                      plan(s, options(boundary));
        expectClose(valuesAt(plan.get(), s.x, places), reference(s, places, boundary), tolerance(precision()));
    }
}

TEST_P(Targets, InABoxWithANetCharge)
{
    System s = ions(cube, 64, 3);
    s.q[7]   = 9;
    Plan                      plan(s, options(Boundary::Tinfoil));
    const std::vector<double> places = placesIn(cube, 40, 9);
    const Values              v = valuesAt(plan.get(), s.x, places), expected = reference(s, places, Boundary::Tinfoil);
    EXPECT_LT(relativeRms(v.field, expected.field), tolerance(precision()));
    /* on an octree images of the charge within two roots are taken off the lattice sum and added by the levels: sums of
     * 124 / 1.8 edges, hundred times what is left, so that hundred times as much rounding is seen */
    const bool cancels = std::get<0>(GetParam()) != GMXFMM_M2L_FFT && precision() == GMXFMM_SINGLE;
    EXPECT_LT(relativeRms(v.potential, expected.potential), cancels ? 3e-4 : tolerance(precision()));
}

/* Inside and far outside of what the charges fill, and where no charge is near. */
TEST_P(Targets, InAnOpenSystem)
{
    const System        s      = droplet(200, 3, 4);
    std::vector<double> places = placesIn({16, 0, 0, 0, 16, 0, 0, 0, 16}, 60, 9);
    for (double& x : places)
    {
        x -= 8;
    }
    Plan plan(s, options(Boundary::Open));
    expectClose(valuesAt(plan.get(), s.x, places), reference(s, places, Boundary::Open), 10 * tolerance(precision()));
}

/* More of them than charges, fewer, none, and the plan computes what it did without them. */
TEST_P(Targets, ComeAndGo)
{
    const System s = ions(cube, 64, 3);
    Plan         plan(s, options(Boundary::Tinfoil));
    const Result before = plan.execute(s.x);
    for (int n : {1, 300, 5, 64})
    {
        const std::vector<double> places = placesIn(cube, n, 9);
        expectClose(valuesAt(plan.get(), s.x, places), reference(s, places, Boundary::Tinfoil), tolerance(precision()));
    }
    ASSERT_EQ(gmxfmm_set_targets(plan.get(), 0, nullptr), GMXFMM_OK);
    plan.assign(s.x);
    const Result after = plan.execute(s.x);
    EXPECT_LT(relativeRms(after.force, before.force), 1e-12);
    EXPECT_NEAR(after.energy, before.energy, 1e-12 * std::fabs(before.energy));
}

TEST_P(Targets, MayAskForThePotentialAlone)
{
    const System              s      = ions(cube, 64, 3);
    const std::vector<double> places = placesIn(cube, 40, 9);
    Plan                      plan(s, options(Boundary::Tinfoil));
    const Values              both = valuesAt(plan.get(), s.x, places);
    std::vector<double>       potential(40), field(120);
    gmxfmm_output             output = sized<gmxfmm_output>();
    output.potential                 = potential.data();
    ASSERT_EQ(gmxfmm_execute(plan.get(), s.x.data(), &output), GMXFMM_OK);
    output       = sized<gmxfmm_output>();
    output.field = field.data();
    ASSERT_EQ(gmxfmm_execute(plan.get(), s.x.data(), &output), GMXFMM_OK);
    const double rounding = precision() == GMXFMM_DOUBLE ? 1e-13 : 1e-6;
    EXPECT_LT(relativeRms(potential, both.potential), rounding);
    EXPECT_LT(relativeRms(field, both.field), rounding);
}

/* Charges that have moved since assign, targets that have not. */
TEST_P(Targets, StayWhileChargesMove)
{
    System                    s      = ions(cube, 64, 3);
    const std::vector<double> places = placesIn(cube, 40, 9);
    Plan                      plan(s, options(Boundary::Tinfoil));
    valuesAt(plan.get(), s.x, places);
    Random random(3);
    for (double& x : s.x)
    {
        x += 0.02 * random.centred();
    }
    expectClose(valuesOf(plan.get(), s.x, 40), reference(s, places, Boundary::Tinfoil), tolerance(precision()));
}

/* There may be no charges at all. */
TEST_P(Targets, OfNothing)
{
    System s;
    s.box = cube;
    for (Boundary boundary : {Boundary::Tinfoil, Boundary::Open})
    {
        Plan         plan(s, options(boundary));
        const Values v = valuesAt(plan.get(), s.x, placesIn(cube, 10, 9));
        EXPECT_EQ(maxDifference(v.potential, std::vector<double>(10, 0.0)), 0);
        EXPECT_EQ(maxDifference(v.field, std::vector<double>(30, 0.0)), 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Paths,
                         Targets,
                         testing::Combine(testing::ValuesIn(methods()), testing::Values(GMXFMM_DOUBLE, GMXFMM_SINGLE)),
                         methodAndPrecisionName);
