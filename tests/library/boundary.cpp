/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What surrounds the system: tin foil, vacuum, nothing; and a net charge. */
#include <gtest/gtest.h>

#include "support/charge_reader.h"
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

const double pi = 3.14159265358979323846;

/* Order 18 with two layers truncates below 1e-9. */
const double truncation = 1e-9;

gmxfmm_options fine(const Path& path, Boundary boundary)
{
    return withBoundary(pathOptions(path, 18, isSlow(path.m2l) ? 2 : 4, 2), boundary);
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

void expectEwald(const System& s, const Path& path, Boundary boundary)
{
    const Solution reference = ewald(s, boundary);
    const Result   r         = solve(s, fine(path, boundary));
    EXPECT_LT(relativeRms(r.potential, reference.potential), truncation);
    EXPECT_LT(relativeRms(r.field, reference.field), truncation);
    EXPECT_NEAR(r.energy, reference.energy, truncation * std::fabs(reference.energy));
    EXPECT_LT(maxDifference(r.virial, reference.virial), truncation * rms(reference.virial) * 3);
}

class BoundaryOfPath : public testing::TestWithParam<Path>
{
};

} // namespace

TEST_P(BoundaryOfPath, TinfoilWithALargeDipole)
{
    expectEwald(polarised(GetParam().box), GetParam(), Boundary::Tinfoil);
}

TEST_P(BoundaryOfPath, VacuumWithALargeDipole)
{
    expectEwald(polarised(GetParam().box), GetParam(), Boundary::Vacuum);
}

TEST_P(BoundaryOfPath, NetCharge)
{
    expectEwald(charged(GetParam().box), GetParam(), Boundary::Tinfoil);
}

TEST_P(BoundaryOfPath, NetChargeInVacuum)
{
    expectEwald(charged(GetParam().box), GetParam(), Boundary::Vacuum);
}

/* At low order the two differ by the surface term, to rounding, whatever the truncation. */
TEST_P(BoundaryOfPath, DifferenceIsTheSurfaceTerm)
{
    const System s       = polarised(GetParam().box);
    const Result vacuum  = solve(s, withBoundary(pathOptions(GetParam(), 2, 4, 1), Boundary::Vacuum));
    const Result tinfoil = solve(s, withBoundary(pathOptions(GetParam(), 2, 4, 1), Boundary::Tinfoil));
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

INSTANTIATE_TEST_SUITE_P(Paths, BoundaryOfPath, testing::ValuesIn(paths()), pathName);

class OpenSystem : public testing::TestWithParam<MethodAndPrecision>
{
  protected:
    static gmxfmm_m2l method()
    {
        return std::get<0>(GetParam());
    }
    static gmxfmm_precision precision()
    {
        return std::get<1>(GetParam());
    }
    static gmxfmm_options asked(double accuracy)
    {
        return withBoundary(automatic(method(), accuracy, precision()), Boundary::Open);
    }
    /* at high order to truncation or rounding, and as asked */
    void expectDirect(const System& s, int longest = 5)
    {
        const bool     exact     = precision() == GMXFMM_DOUBLE;
        const Solution reference = directSum(s);
        const Result   r = solve(s, withBoundary(methodOptions(method(), 18, longest, 2, precision()), Boundary::Open));
        const double   tolerance = exact ? truncation : 1e-5;
        EXPECT_LT(relativeRms(r.potential, reference.potential), tolerance);
        EXPECT_LT(relativeRms(r.field, reference.field), tolerance);
        EXPECT_NEAR(r.energy, reference.energy, tolerance * std::fabs(reference.energy));
        EXPECT_LT(maxDifference(r.virial, reference.virial), tolerance * std::fabs(reference.energy));
        EXPECT_LE(relativeRms(solve(s, asked(4e-4)).force, reference.force), 4e-4);
    }
    void expectFiles(const std::vector<std::string>& names)
    {
        for (const std::string& name : presentOf(names))
        {
            const ReferenceSystem file = referenceSystem(name);
            EXPECT_LE(relativeRms(solve(file.system, asked(4e-4)).force, file.reference.force), 4e-4) << name;
        }
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
    expectDirect(s, 20);
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
    for (double accuracy : {1e-2, 4e-4, 1e-5})
    {
        const Result r = solve(s, asked(accuracy));
        EXPECT_LE(relativeRms(r.force, reference.force), accuracy);
        for (std::size_t i = 0; i < s.size(); i++)
        {
            ASSERT_LT(std::fabs(r.force[3 * i + 2]), accuracy * rms(reference.force)); /* by symmetry 0 */
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
    EXPECT_LE(relativeRms(solve(s, asked(4e-4)).force, reference.force), 4e-4);
}

TEST_P(OpenSystem, ReferenceCloudAndWall)
{
    expectFiles({"own-walls_800", "open-noncubic-cloud_wall_3600"});
}

TEST_P(OpenSystem, ReferenceBallOfOneSign)
{
    expectFiles({"own-ball_500", "open-hammersley_ball_pos"});
}

/* An open system is fitted to its particles at every assign. */
TEST_P(OpenSystem, GrowsBetweenAssigns)
{
    const System s = droplet(200, 4, 1), grown = strained(s, {1.5, 0, 0, 0, 0.2, 0, 0, 0, -0.3});
    Plan         plan(s, withBoundary(methodOptions(method(), 18, 5, 2, precision()), Boundary::Open));
    plan.execute(s.x);
    plan.assign(grown.x);
    EXPECT_LT(relativeRms(plan.execute(grown.x).force, directSum(grown).force),
              precision() == GMXFMM_DOUBLE ? truncation : 1e-5);
}

/* In small steps, as ions that fly off: grids that are padded to the same size have the same spectra, or new ones. */
TEST_P(OpenSystem, GrowsByAndBy)
{
    const System s = droplet(300, 5, 1);
    Plan         plan(s, asked(4e-4));
    for (int step = 0; step < 25; step++)
    {
        const System grown = strained(s, {0.06 * step, 0, 0, 0, 0.01 * step, 0, 0, 0, 0.003 * step});
        plan.assign(grown.x);
        EXPECT_LE(relativeRms(plan.execute(grown.x).force, directSum(grown).force), 4e-4) << "step " << step;
    }
}

INSTANTIATE_TEST_SUITE_P(Paths,
                         OpenSystem,
                         testing::Combine(testing::ValuesIn(methods()), testing::Values(GMXFMM_DOUBLE, GMXFMM_SINGLE)),
                         methodAndPrecisionName);
