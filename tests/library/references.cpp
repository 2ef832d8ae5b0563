/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The references themselves: nothing here touches the library. */
#include <gtest/gtest.h>

#include "support/charge_reader.h"
#include "support/direct.h"
#include "support/ewald.h"
#include "support/norms.h"
#include "support/suites.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

/* Rounding of sums of some thousand terms, a few of them larger than the result. */
const double rounding = 1e-12;

/* Differences over a step h of smooth functions with a five-point rule: h^4 / 30 of the fifth derivative, which for
 * charges at distances of order 1 is below 1e-9 at h = 1e-3, plus 1e-14 / h of rounding. */
const double step              = 1e-3;
const double differenceQuality = 1e-8;

template <typename Function>
double derivative(const Function& f)
{
    return (8 * (f(step) - f(-step)) - (f(2 * step) - f(-2 * step))) / (12 * step);
}

/* Charged, with a near and a far excluded pair: everything that the sum can do. */
System everything(const BoxType& type)
{
    System s = ions(boxOfVolume(type, 40), 40, 11);
    s.q[3]   = 1.7;
    s.exclude(0, 1);
    s.exclude(5, 20);
    s.exclude(5, 21);
    return s;
}

} // namespace

class Ewald : public testing::TestWithParam<BoxType>
{
};

TEST_P(Ewald, DoesNotDependOnTheSplitting)
{
    const System   s = everything(GetParam());
    const Solution a = ewald(s, Boundary::Vacuum, 1.0), b = ewald(s, Boundary::Vacuum, 1.4);
    EXPECT_LT(relativeRms(a.potential, b.potential), rounding);
    EXPECT_LT(relativeRms(a.field, b.field), rounding);
    EXPECT_LT(relativeRms(a.virial, b.virial), rounding);
    EXPECT_NEAR(a.energy, b.energy, rounding * std::fabs(b.energy));
}

TEST_P(Ewald, ForceIsTheGradientOfTheEnergy)
{
    const System   s = everything(GetParam());
    const Solution a = ewald(s, Boundary::Vacuum);
    for (std::size_t k : {std::size_t{0}, std::size_t{16}, std::size_t{61}}) /* particles 0, 5 and 20 */
    {
        const double slope = derivative(
            [&](double h)
            {
                System moved = s;
                moved.x[k] += h;
                return ewald(moved, Boundary::Vacuum).energy;
            });
        EXPECT_NEAR(a.force[k], -slope, differenceQuality * rms(a.force)) << "component " << k;
    }
}

TEST_P(Ewald, VirialIsHalfTheStrainDerivativeOfTheEnergy)
{
    const System   s = everything(GetParam());
    const Solution a = ewald(s, Boundary::Vacuum);
    for (std::size_t k = 0; k < 9; k++)
    {
        const double slope = derivative(
            [&](double h)
            {
                Mat3 strain = {};
                strain[k]   = h;
                return ewald(strained(s, strain), Boundary::Vacuum).energy;
            });
        EXPECT_NEAR(a.virial[k], 0.5 * slope, differenceQuality * std::fabs(a.energy)) << "component " << k;
    }
    EXPECT_NEAR(trace(a.virial), -0.5 * a.energy, rounding * std::fabs(a.energy));
}

INSTANTIATE_TEST_SUITE_P(Boxes, Ewald, testing::ValuesIn(boxTypes()), boxName);

/* The one conditionally convergent sum that can be done by hand: whole cells within a growing sphere, with a dipole
 * that the vacuum around the sphere sees. */
TEST(EwaldSum, VacuumBoundaryIsTheSumOverGrowingSpheres)
{
    System s;
    s.box = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    s.add({0.1, 0.2, 0.3}, 1);
    s.add({0.4, 0.3, 0.1}, -1);
    const Solution a      = ewald(s, Boundary::Vacuum);
    const int      radius = 60;
    double         energy = 0;
    for (int h = -radius; h <= radius; h++)
    {
        for (int k = -radius; k <= radius; k++)
        {
            for (int l = -radius; l <= radius; l++)
            {
                if (h * h + k * k + l * l > radius * radius)
                {
                    continue;
                }
                const bool   home = h == 0 && k == 0 && l == 0;
                const Vec3   d    = {0.3 + h, 0.1 + k, -0.2 + l};
                const double pair = 1 / std::sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
                const double self = home ? 0 : 1 / std::sqrt(static_cast<double>(h * h + k * k + l * l));
                energy += self - pair; /* 1/2 (2 self terms - 2 pairs) */
            }
        }
    }
    /* The rough surface of the sphere leaves an error of order dipole^2 / radius, and 3 % of that by averaging over its
     * roughness; the surface term itself is 2 pi / 3 * 0.14 = 0.29. */
    EXPECT_NEAR(a.energy, energy, 3e-3);
}

TEST(EwaldSum, PotentialOfOneIonInACube)
{
    System s;
    s.box = {2, 0, 0, 0, 2, 0, 0, 0, 2};
    s.add({0.3, 0.1, 1.4}, 1);
    /* -2.8372974794806 / L: the Wigner potential, Nijboer and Ruijgrok 1988 */
    EXPECT_NEAR(ewald(s).potential[0], -2.837297479480620 / 2, 1e-13);
}

TEST(EwaldSum, MadelungConstants)
{
    EXPECT_NEAR(ewald(sodiumChloride(1)).potential[0], -1.747564594633182, 1e-12);
    EXPECT_NEAR(ewald(caesiumChloride(1)).potential[0], -1.762674773070988, 1e-12);
    EXPECT_NEAR(ewald(zincblende(1)).potential[0], -1.638055053388789, 1e-12);
}

struct ReferenceFile
{
    const char* name;
    Boundary    boundary;
    double      field; /* relative RMS to which the file is good */
};

std::vector<ReferenceFile> present(const std::vector<ReferenceFile>& all)
{
    std::vector<ReferenceFile> found;
    for (const ReferenceFile& file : all)
    {
        if (!presentOf({file.name}).empty())
        {
            found.push_back(file);
        }
    }
    return found;
}

std::string fileName(const testing::TestParamInfo<ReferenceFile>& info)
{
    std::string name = info.param.name;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

class ReferenceFiles : public testing::TestWithParam<ReferenceFile>
{
};

TEST_P(ReferenceFiles, AgreeWithTheSums)
{
    const ReferenceSystem file = referenceSystem(GetParam().name);
    const Solution        s =
        GetParam().boundary == Boundary::Open ? directSum(file.system) : ewald(file.system, GetParam().boundary);
    const double unit = rms(file.reference.field) > 1e-10 ? rms(file.reference.field) : 1; /* zero in a crystal */
    EXPECT_LT(rmsDifference(s.field, file.reference.field) / unit, GetParam().field);
    EXPECT_LT(relativeRms(s.potential, file.reference.potential), GetParam().field);
}

/* Those that are there: the project's own always. As stated with the data, times three, and not below the rounding of
 * either sum. */
INSTANTIATE_TEST_SUITE_P(
    Systems,
    ReferenceFiles,
    testing::ValuesIn(present({ReferenceFile{"3d-triclinic-neutral_tricl_228-own", Boundary::Tinfoil, 1e-12},
                               ReferenceFile{"3d-triclinic-neutral_228-oblique-own", Boundary::Tinfoil, 1e-12},
                               ReferenceFile{"3d-generic-generate_grid_posneq_10x10x10total", Boundary::Tinfoil, 1e-12},
                               ReferenceFile{"3d-silica_melt_12960-vacuum", Boundary::Vacuum, 6e-9},
                               ReferenceFile{"open-noncubic-cloud_wall_3600", Boundary::Open, 1e-12},
                               ReferenceFile{"open-hammersley_ball_pos", Boundary::Open, 1e-12},
                               ReferenceFile{"own-melt_1331", Boundary::Tinfoil, 1e-12},
                               ReferenceFile{"own-melt_1331-vacuum", Boundary::Vacuum, 1e-12},
                               ReferenceFile{"own-skewed_228", Boundary::Tinfoil, 1e-12},
                               ReferenceFile{"own-turned_228", Boundary::Tinfoil, 1e-12},
                               ReferenceFile{"own-crystal_1000", Boundary::Tinfoil, 1e-12},
                               ReferenceFile{"own-crystal_displaced_1000", Boundary::Tinfoil, 1e-12},
                               ReferenceFile{"own-walls_800", Boundary::Open, 1e-12},
                               ReferenceFile{"own-ball_500", Boundary::Open, 1e-12}})),
    fileName);
