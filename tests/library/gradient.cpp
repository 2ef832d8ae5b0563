/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The force is the gradient of the energy: of the truncated energy, at any order, as long as particles are not assigned
 * anew. This is what conserves energy in a simulation. */
#include <gtest/gtest.h>

#include "support/derivatives.h"
#include "support/norms.h"
#include "support/paths.h"
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
    /* all directions in turn; fewer where an energy takes long */
    const std::size_t stride = isSlow(options.m2l) ? 31 : 7;
    for (std::size_t k = 0; k < 3 * s.size(); k += stride)
    {
        expectGradient(&plan, s, r, k, h, tolerance);
    }
}

class Gradient : public testing::TestWithParam<Path>
{
};

} // namespace

TEST_P(Gradient, IsTheForceAtLowOrder)
{
    expectGradient(ionsIn(GetParam().box), pathOptions(GetParam(), 3, 6, 1));
}

TEST_P(Gradient, IsTheForceAtHighOrderWithVacuum)
{
    expectGradient(ionsIn(GetParam().box), withBoundary(pathOptions(GetParam(), 10, 5, 2), Boundary::Vacuum));
}

INSTANTIATE_TEST_SUITE_P(Paths, Gradient, testing::ValuesIn(paths()), pathName);

class OfMethod : public testing::TestWithParam<gmxfmm_m2l>
{
  protected:
    const BoxType& box() const
    {
        return boxTypes()[GetParam() == GMXFMM_M2L_FFT ? 3 : 0];
    }
};

TEST_P(OfMethod, GradientOfAnOpenSystemIsTheForce)
{
    System s = droplet(64, 2.5, 2);
    s.exclude(0, 1);
    s.exclude(5, 20);
    expectGradient(s, withBoundary(methodOptions(GetParam(), 3, 6, 1), Boundary::Open));
}

/* q E = F, and the energy is half the sum of q phi. */
TEST_P(OfMethod, OutputsAgreeWithEachOther)
{
    const System s = ionsIn(box());
    for (gmxfmm_precision precision : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
    {
        const double        rounding = precision == GMXFMM_DOUBLE ? 1e-13 : 1e-5;
        const Result        r        = solve(s, methodOptions(GetParam(), 5, 4, 1, precision));
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
TEST_P(OfMethod, OutputsCanBeAskedForOneByOne)
{
    const System        s = ionsIn(box());
    Plan                plan(s, methodOptions(GetParam(), 5, 4, 1));
    const Result        r = plan.execute(s.x);
    std::vector<double> potential(s.size()), field(3 * s.size()), force(3 * s.size());
    gmxfmm_output       output = sized<gmxfmm_output>();
    const auto          run    = [&](gmxfmm_output wanted)
    {
        output = wanted;
        ASSERT_EQ(gmxfmm_execute(plan.get(), s.x.data(), &output), GMXFMM_OK) << gmxfmm_message(plan.get());
    };
    gmxfmm_output wanted = sized<gmxfmm_output>();
    wanted.potential     = potential.data();
    run(wanted);
    wanted       = sized<gmxfmm_output>();
    wanted.field = field.data();
    run(wanted);
    wanted       = sized<gmxfmm_output>();
    wanted.force = force.data();
    run(wanted);
    const double rounding = 1e-12; /* sums may be taken in another order */
    EXPECT_LT(relativeRms(potential, r.potential), rounding);
    EXPECT_LT(relativeRms(field, r.field), rounding);
    EXPECT_LT(relativeRms(force, r.force), rounding);
    wanted             = sized<gmxfmm_output>();
    wanted.want_virial = 1;
    run(wanted);
    EXPECT_LT(maxDifference(std::vector<double>(output.virial, output.virial + 9),
                            std::vector<double>(r.virial.begin(), r.virial.end())),
              rounding * std::fabs(r.energy));
    wanted             = sized<gmxfmm_output>();
    wanted.want_energy = 1;
    run(wanted);
    EXPECT_NEAR(output.energy_near, r.energyNear, rounding * std::fabs(r.energy));
    EXPECT_NEAR(output.energy_far, r.energyFar, rounding * std::fabs(r.energy));
}

INSTANTIATE_TEST_SUITE_P(Methods, OfMethod, testing::ValuesIn(methods()), methodName);
