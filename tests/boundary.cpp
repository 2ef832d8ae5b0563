/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What surrounds the system: tin foil, vacuum, nothing; and a net charge. */
#include <gtest/gtest.h>

#include "support/charge_reader.h"
#include "support/direct.h"
#include "support/ewald.h"
#include "support/norms.h"
#include "support/plan.h"
#include "support/suites.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

const double pi = 3.14159265358979323846;

/* Order 18 with two layers truncates below 1e-9. */
const double truncation = 1e-9;

gmxfmm_options fine(const BoxType& type, Boundary boundary)
{
    return withBoundary(explicitOptions(18, evenGrid(type, 4), 2), boundary);
}

/* A large dipole: without the correction for it errors of order 1. */
System polarised(const BoxType& type)
{
    System s = ions(boxOfVolume(type, 150), 150, 41);
    for (std::size_t i = 0; i < s.size(); i++)
    {
        s.q[i] = s.x[3 * i] > 0.5 * s.box[0] ? 1 : -1;
    }
    s.q[0] -= [&]
    {
        double net = 0;
        for (double q : s.q)
        {
            net += q;
        }
        return net;
    }();
    return s;
}

System charged(const BoxType& type)
{
    System s = ions(boxOfVolume(type, 150), 150, 42);
    Random random(1);
    for (double& q : s.q)
    {
        q = 1 + random.centred();
    }
    return s;
}

void expectEwald(const System& s, const BoxType& type, Boundary boundary)
{
    const Solution reference = ewald(s, boundary);
    const Result   r         = solve(s, fine(type, boundary));
    EXPECT_LT(relativeRms(r.potential, reference.potential), truncation);
    EXPECT_LT(relativeRms(r.field, reference.field), truncation);
    EXPECT_NEAR(r.energy, reference.energy, truncation * std::fabs(reference.energy));
    EXPECT_LT(maxDifference(r.virial, reference.virial), truncation * rms(reference.virial) * 3);
}

class BoundaryOfBox : public testing::TestWithParam<BoxType>
{
};

} // namespace

TEST_P(BoundaryOfBox, TinfoilWithALargeDipole)
{
    expectEwald(polarised(GetParam()), GetParam(), Boundary::Tinfoil);
}

TEST_P(BoundaryOfBox, VacuumWithALargeDipole)
{
    expectEwald(polarised(GetParam()), GetParam(), Boundary::Vacuum);
}

TEST_P(BoundaryOfBox, NetCharge)
{
    expectEwald(charged(GetParam()), GetParam(), Boundary::Tinfoil);
}

TEST_P(BoundaryOfBox, NetChargeInVacuum)
{
    expectEwald(charged(GetParam()), GetParam(), Boundary::Vacuum);
}

/* At low order the two differ by the surface term, to rounding, whatever the truncation. */
TEST_P(BoundaryOfBox, DifferenceIsTheSurfaceTerm)
{
    const System s       = polarised(GetParam());
    const Result vacuum  = solve(s, withBoundary(explicitOptions(2, 4, 4, 4, 1), Boundary::Vacuum));
    const Result tinfoil = solve(s, withBoundary(explicitOptions(2, 4, 4, 4, 1), Boundary::Tinfoil));
    Vec3         dipole  = {0, 0, 0};
    for (std::size_t k = 0; k < s.x.size(); k++)
    {
        dipole[k % 3] += s.q[k / 3] * s.x[k];
    }
    const double square = dipole[0] * dipole[0] + dipole[1] * dipole[1] + dipole[2] * dipole[2];
    const double v      = volume(s.box);
    EXPECT_NEAR(vacuum.energy - tinfoil.energy, 2 * pi / (3 * v) * square, 1e-11 * std::fabs(vacuum.energy));
    for (std::size_t k = 0; k < s.x.size(); k++)
    {
        ASSERT_NEAR(vacuum.field[k] - tinfoil.field[k], -4 * pi / (3 * v) * dipole[k % 3], 1e-11 * rms(vacuum.field));
    }
}

INSTANTIATE_TEST_SUITE_P(Boxes, BoundaryOfBox, testing::ValuesIn(boxTypes()), boxName);

class OpenSystem : public testing::TestWithParam<gmxfmm_precision>
{
  protected:
    /* at high order to truncation or rounding, and as asked */
    void expectDirect(const System& s, const std::array<int, 3>& cells = {5, 5, 5})
    {
        const bool     exact     = GetParam() == GMXFMM_DOUBLE;
        const Solution reference = directSum(s);
        const Result   r         = solve(s, withBoundary(explicitOptions(18, cells, 2, GetParam()), Boundary::Open));
        const double   tolerance = exact ? truncation : 1e-5;
        EXPECT_LT(relativeRms(r.potential, reference.potential), tolerance);
        EXPECT_LT(relativeRms(r.field, reference.field), tolerance);
        EXPECT_NEAR(r.energy, reference.energy, tolerance * std::fabs(reference.energy));
        EXPECT_LT(maxDifference(r.virial, reference.virial), tolerance * std::fabs(reference.energy));
        const double asked = 4e-4;
        EXPECT_LE(
            relativeRms(solve(s, withBoundary(askedOptions(asked, GetParam()), Boundary::Open)).force, reference.force),
            asked);
    }
    void expectFile(const std::string& name)
    {
        const std::optional<ReferenceSystem> file = referenceSystem(name);
        if (!file)
        {
            GTEST_SKIP() << "no reference data";
        }
        const double asked = 4e-4;
        const Result r     = solve(file->system, withBoundary(askedOptions(asked, GetParam()), Boundary::Open));
        EXPECT_LE(relativeRms(r.force, file->reference.force), asked);
    }
};

TEST_P(OpenSystem, Droplet)
{
    expectDirect(droplet(400, 5, 1));
}

TEST_P(OpenSystem, ChargedDroplet)
{
    System s = droplet(400, 5, 1);
    for (double& q : s.q)
    {
        q = std::fabs(q);
    }
    expectDirect(s);
}

/* far from the origin, and ten times as long as wide */
TEST_P(OpenSystem, RodFarAway)
{
    System s = ions({20, 0, 0, 0, 2, 0, 0, 0, 2}, 300, 7);
    for (std::size_t k = 0; k < s.x.size(); k++)
    {
        s.x[k] += k % 3 == 0 ? 64 : -32;
    }
    expectDirect(s, {20, 2, 2});
}

/* Nothing to expand in one direction. */
TEST_P(OpenSystem, Plane)
{
    System s = ions({10, 0, 0, 0, 10, 0, 0, 0, 1}, 200, 7);
    for (std::size_t i = 0; i < s.size(); i++)
    {
        s.x[3 * i + 2] = 0.25;
    }
    const Solution reference = directSum(s);
    for (double asked : {1e-2, 4e-4, 1e-5})
    {
        const Result r = solve(s, withBoundary(askedOptions(asked, GetParam()), Boundary::Open));
        EXPECT_LE(relativeRms(r.force, reference.force), asked);
        for (std::size_t i = 0; i < s.size(); i++)
        {
            ASSERT_LT(std::fabs(r.force[3 * i + 2]), asked * rms(reference.force)); /* by symmetry 0 */
        }
    }
}

TEST_P(OpenSystem, TwoClustersFarApart)
{
    System s = droplet(100, 2, 1);
    for (std::size_t i = 0; i < 50; i++)
    {
        s.x[3 * i] += 200;
    }
    const Solution reference = directSum(s);
    const double   asked     = 4e-4;
    EXPECT_LE(
        relativeRms(solve(s, withBoundary(askedOptions(asked, GetParam()), Boundary::Open)).force, reference.force),
        asked);
}

TEST_P(OpenSystem, ReferenceCloudAndWall)
{
    expectFile("open-noncubic-cloud_wall_3600");
}

TEST_P(OpenSystem, ReferenceBallOfOneSign)
{
    expectFile("open-hammersley_ball_pos");
}

/* An open system is fitted to its particles at every assign. */
TEST_P(OpenSystem, GrowsBetweenAssigns)
{
    const System s = droplet(200, 4, 1), grown = strained(s, {1.5, 0, 0, 0, 0.2, 0, 0, 0, -0.3});
    Plan         plan(s, withBoundary(explicitOptions(18, 5, 5, 5, 2, GetParam()), Boundary::Open));
    plan.execute(s.x);
    plan.assign(grown.x);
    EXPECT_LT(relativeRms(plan.execute(grown.x).force, directSum(grown).force),
              GetParam() == GMXFMM_DOUBLE ? truncation : 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Precisions, OpenSystem, testing::Values(GMXFMM_DOUBLE, GMXFMM_SINGLE), precisionName);
