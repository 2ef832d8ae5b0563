/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The force is the gradient of the energy: of the truncated energy, at any order, as long as particles are not assigned
 * anew. This is what conserves energy in a simulation. */
#include <gtest/gtest.h>

#include "support/norms.h"
#include "support/plan.h"
#include "support/suites.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

/* Five-point differences over h: h^4 / 30 of the fifth derivative, below 1e-9 for charges 0.6 apart at h = 1e-3, and
 * 1e-14 / h = 1e-11 of rounding. */
const double h         = 1e-3;
const double tolerance = 1e-8;

System ionsIn(const BoxType& type)
{
    System s = ions(boxOfVolume(type, 64), 64, 9);
    s.q[3]   = 1.7; /* a net charge */
    s.exclude(0, 1);
    s.exclude(5, 20);
    s.exclude(5, farthestFrom(s, 5));
    return s;
}

void expectGradient(const System& s, const gmxfmm_options& options)
{
    Plan         plan(s, options);
    const Result r = plan.execute(s.x);
    for (std::size_t k = 0; k < 3 * s.size(); k += 7) /* 7: all directions in turn */
    {
        std::vector<double> x      = s.x;
        const auto          energy = [&](double step)
        {
            x[k] = s.x[k] + step;
            return plan.energy(x);
        };
        const double slope = (8 * (energy(h) - energy(-h)) - (energy(2 * h) - energy(-2 * h))) / (12 * h);
        ASSERT_NEAR(r.force[k], -slope, tolerance * rms(r.force)) << "component " << k;
    }
}

class Gradient : public testing::TestWithParam<BoxType>
{
};

} // namespace

TEST_P(Gradient, IsTheForceAtLowOrder)
{
    expectGradient(ionsIn(GetParam()), explicitOptions(3, evenGrid(GetParam(), 6), 1));
}

TEST_P(Gradient, IsTheForceAtHighOrderWithVacuum)
{
    expectGradient(ionsIn(GetParam()), withBoundary(explicitOptions(10, evenGrid(GetParam(), 5), 2), Boundary::Vacuum));
}

INSTANTIATE_TEST_SUITE_P(Boxes, Gradient, testing::ValuesIn(boxTypes()), boxName);

TEST(GradientOfOpenSystem, IsTheForce)
{
    System s = droplet(64, 2.5, 2);
    s.exclude(0, 1);
    s.exclude(5, 20);
    expectGradient(s, withBoundary(explicitOptions(3, 6, 6, 6, 1), Boundary::Open));
}

/* q E = F, and the energy is half the sum of q phi. */
TEST(Outputs, AgreeWithEachOther)
{
    const System s = ionsIn(boxTypes()[3]);
    for (gmxfmm_precision precision : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
    {
        const double        rounding = precision == GMXFMM_DOUBLE ? 1e-13 : 1e-5;
        const Result        r        = solve(s, explicitOptions(5, 4, 4, 4, 1, precision));
        double              energy   = 0;
        std::vector<double> force(r.force.size());
        for (std::size_t i = 0; i < s.size(); i++)
        {
            energy += 0.5 * s.q[i] * r.potential[i];
            for (std::size_t d = 0; d < 3; d++)
            {
                force[3 * i + d] = s.q[i] * r.field[3 * i + d];
            }
        }
        EXPECT_NEAR(r.energy, energy, rounding * std::fabs(energy));
        EXPECT_LT(relativeRms(r.force, force), rounding);
    }
}

/* Every output alone is what it is together with the others. */
TEST(Outputs, CanBeAskedForOneByOne)
{
    const System        s = ionsIn(boxTypes()[2]);
    Plan                plan(s, explicitOptions(5, 4, 4, 4, 1));
    const Result        r = plan.execute(s.x);
    std::vector<double> potential(s.size()), field(3 * s.size()), force(3 * s.size());
    gmxfmm_output       output;
    const auto          run = [&](gmxfmm_output wanted)
    {
        output = wanted;
        ASSERT_EQ(gmxfmm_execute(plan.get(), s.x.data(), &output), GMXFMM_OK) << gmxfmm_message(plan.get());
    };
    gmxfmm_output wanted = {};
    wanted.potential     = potential.data();
    run(wanted);
    wanted       = {};
    wanted.field = field.data();
    run(wanted);
    wanted       = {};
    wanted.force = force.data();
    run(wanted);
    const double rounding = 1e-12; /* sums may be taken in another order */
    EXPECT_LT(relativeRms(potential, r.potential), rounding);
    EXPECT_LT(relativeRms(field, r.field), rounding);
    EXPECT_LT(relativeRms(force, r.force), rounding);
    wanted             = {};
    wanted.want_virial = 1;
    run(wanted);
    EXPECT_LT(maxDifference(std::vector<double>(output.virial, output.virial + 9),
                            std::vector<double>(r.virial.begin(), r.virial.end())),
              rounding * std::fabs(r.energy));
    wanted             = {};
    wanted.want_energy = 1;
    run(wanted);
    EXPECT_NEAR(output.energy_near, r.energyNear, rounding * std::fabs(r.energy));
    EXPECT_NEAR(output.energy_far, r.energyFar, rounding * std::fabs(r.energy));
}
