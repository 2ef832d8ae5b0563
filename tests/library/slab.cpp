/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Slabs: periodic along two vectors, open along the normal of their plane, without a background. */
#include <gtest/gtest.h>

#include "support/derivatives.h"
#include "support/direct.h"
#include "support/norms.h"
#include "support/partly_periodic.h"
#include "support/paths.h"
#include "support/plan.h"
#include "support/suites.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

/* Truncation at order 20 with two layers of near cells: 5e-11 of the field in cells of one particle, and less in larger
 * ones. */
const double truncation = 1e-10;

/* A lattice in the plane and the thickness of what is in it. */
struct Plane
{
    std::string        name;
    Mat3               box;
    double             thickness;
    std::array<int, 3> cells;
};

const std::vector<Plane>& planes()
{
    static const std::vector<Plane> c_planes = {
        {"Square", {4, 0, 0, 0, 4, 0, 0, 0, 4}, 3, {3, 3, 2}},
        {"Oblique", {4, 0.3, 0, 1.1, 3.7, 0, 0, 0, 4}, 3, {3, 3, 2}},
        {"Hexagonal", {4, 0, 0, -2, 3.4641016151377544, 0, 0, 0, 4}, 3, {3, 3, 2}},
        {"Flat", {6, 0, 0, 0, 6, 0, 0, 0, 4}, 0, {4, 4, 1}},
        {"OneLayer", {5, 0, 0, 0, 5, 0, 0, 0, 4}, 1, {4, 4, 1}},
        {"Tall", {2, 0, 0, 0, 2, 0, 0, 0, 4}, 12, {1, 1, 6}},
        {"Long", {12, 0, 0, 0, 2, 0, 0, 0, 4}, 2, {6, 1, 1}},
    };
    return c_planes;
}

void PrintTo(const Plane& plane, std::ostream* out)
{
    *out << plane.name;
}

/* n charges in it, with a net charge, near pairs and far pairs of them excluded. */
System chargesIn(const Plane& p, int n = 60, double net = 2.5)
{
    System s;
    Random random(17);
    s.box = p.box;
    for (int i = 0; i < n; i++)
    {
        const double a = random.uniform(), b = random.uniform(), c = random.uniform();
        s.add({a * p.box[0] + b * p.box[3], a * p.box[1] + b * p.box[4], 0.7 + p.thickness * (c - 0.5)},
              i % 2 == 0 ? 1 : -1);
    }
    s.q[3] += net;
    s.exclude(0, 1);
    s.exclude(5, 20);
    s.exclude(7, 45);
    return s;
}

gmxfmm_options slab(const gmxfmm_options& options)
{
    return periodicAlong(options, {1, 1, 0});
}

gmxfmm_options fine(const Plane& p, gmxfmm_precision precision = GMXFMM_DOUBLE)
{
    return slab(explicitOptions(20, p.cells, 2, precision));
}

class Slab : public testing::TestWithParam<Plane>
{
};

Vec3 turned(const Vec3& r, const std::array<std::size_t, 3>& axes)
{
    Vec3 out = {0, 0, 0};
    for (std::size_t d = 0; d < 3; d++)
    {
        out[axes[d]] = r[d];
    }
    return out;
}

} // namespace

TEST_P(Slab, ReferenceDoesNotDependOnTheSplitting)
{
    const System   s = chargesIn(GetParam(), 50);
    const Solution a = slabSum(s), b = slabSum(s, 3 / std::sqrt(GetParam().box[0] * GetParam().box[4]));
    expectAgreement(a, b, 1e-12); /* rounding, of terms some times larger than the sum */
}

TEST_P(Slab, IsTheSumOverImages)
{
    const System s = chargesIn(GetParam());
    expectAgreement(solve(s, fine(GetParam())), slabSum(s), truncation);
    /* rounding of single precision, of sums of some ten terms as large */
    expectAgreement(solve(s, fine(GetParam(), GMXFMM_SINGLE)), slabSum(s), 1e-5);
}

TEST_P(Slab, IsTheSumOverImagesByAnOctree)
{
    const Plane& p = GetParam();
    if (p.box[1] != 0 || p.box[3] != 0)
    {
        GTEST_SKIP() << "an octree needs right angles";
    }
    const System   s         = chargesIn(p);
    const Solution reference = slabSum(s);
    for (const gmxfmm_m2l m2l : octreeMethods())
    {
        gmxfmm_options options = slab(depthOptions(m2l, isSlow(m2l) ? 14 : 20, 1, 2));
        options.m2l_truncate   = 0;
        expectAgreement(solve(s, options), reference, isSlow(m2l) ? 1e-7 : truncation);
    }
}

TEST_P(Slab, ForceIsTheGradientOfTheEnergy)
{
    const System s = chargesIn(GetParam());
    Plan         plan(s, slab(explicitOptions(4, GetParam().cells, 1)));
    const Result r = plan.execute(s.x);
    for (const std::size_t k : {0U, 1U, 2U, 9U, 11U, 61U})
    {
        expectGradient(&plan, s, r, k, 1e-4, 1e-7); /* of close pairs */
    }
}

/* The lattice of a slab has no vector that could be sheared along the normal: these components at high order. */
TEST_P(Slab, VirialIsTheStrainDerivative)
{
    const System s = chargesIn(GetParam());
    expectStrainDerivatives(s, slab(explicitOptions(4, GetParam().cells, 1)), {0, 1, 3, 4, 8});
    expectStrainDerivatives(s, slab(explicitOptions(20, GetParam().cells, 2)), {0, 1, 2, 3, 4, 5, 6, 7, 8});
}

/* Any vectors of the lattice, and any third one: the same charges, and so the same energy. */
TEST_P(Slab, DoesNotDependOnTheVectors)
{
    const System   s         = chargesIn(GetParam());
    const Solution reference = solve(s, fine(GetParam()));
    const Mat3&    b         = s.box;
    for (const Mat3& tilt :
         {Mat3{1, 0, 0, 3, 1, 0, 0, 0, 1}, Mat3{1, 2, 0, 0, 1, 0, 5, -3, 1}, Mat3{0, 1, 0, 1, 0, 0, 0, 0, 0},
          Mat3{-1, 0, 0, 0, 1, 0, 0, 0, -7}, Mat3{4, -3, 0, 7, -5, 0, 1, 0, 0}})
    {
        System other = s;
        for (std::size_t i = 0; i < 9; i++)
        {
            const std::size_t row = 3 * (i / 3), d = i % 3;
            other.box[i] = tilt[row] * b[d] + tilt[row + 1] * b[3 + d] + tilt[row + 2] * b[6 + d];
        }
        gmxfmm_options options = slab(askedOptions(1e-9));
        expectAgreement(solve(other, options), reference, 1e-8);
    }
}

/* The open direction along any axis of the box, or none. */
TEST_P(Slab, IsTheSameAlongOtherAxes)
{
    const System s = chargesIn(GetParam());
    const Result a = solve(s, fine(GetParam()));
    for (const std::array<std::size_t, 3>& axes :
         {std::array<std::size_t, 3>{1, 2, 0}, std::array<std::size_t, 3>{2, 0, 1},
          std::array<std::size_t, 3>{1, 0, 2}})
    {
        System             other    = s;
        std::array<int, 3> periodic = {1, 1, 1}, cells = {0, 0, 0};
        for (std::size_t row = 0; row < 3; row++)
        {
            const Vec3 v = turned({s.box[3 * row], s.box[3 * row + 1], s.box[3 * row + 2]}, axes);
            std::copy(v.begin(), v.end(), other.box.begin() + static_cast<std::ptrdiff_t>(3 * axes[row]));
            cells[axes[row]] = GetParam().cells[row];
        }
        periodic[axes[2]] = 0;
        for (std::size_t i = 0; i < s.size(); i++)
        {
            const Vec3 x = turned(s.position(i), axes);
            std::copy(x.begin(), x.end(), other.x.begin() + static_cast<std::ptrdiff_t>(3 * i));
        }
        const Result r = solve(other, periodicAlong(explicitOptions(20, cells, 2), periodic));
        EXPECT_NEAR(r.energy, a.energy, 1e-12 * std::fabs(a.energy) * 60);
        EXPECT_EQ(r.info.grid[axes[2]], GetParam().cells[2]);
        for (std::size_t i = 0; i < s.size(); i++)
        {
            const Vec3 f = turned({a.force[3 * i], a.force[3 * i + 1], a.force[3 * i + 2]}, axes);
            for (std::size_t d = 0; d < 3; d++)
            {
                EXPECT_NEAR(r.force[3 * i + d], f[d], 1e-10 * rms(a.force)); /* planes mirrored: truncation */
            }
        }
        for (std::size_t i = 0; i < 3; i++)
        {
            for (std::size_t j = 0; j < 3; j++)
            {
                EXPECT_NEAR(r.virial[3 * axes[i] + axes[j]], a.virial[3 * i + j], 1e-9 * std::fabs(a.energy));
            }
        }
    }
    const System tilted = rotated(s, {1, 2, 3}, 0.7);
    const Result r      = solve(tilted, fine(GetParam()));
    EXPECT_NEAR(r.energy, a.energy, 1e-10 * std::fabs(a.energy));
    EXPECT_NEAR(rms(r.force), rms(a.force), 1e-10 * rms(a.force));
}

TEST_P(Slab, HasTargets)
{
    const System        s = chargesIn(GetParam());
    std::vector<double> places;
    for (const double t : {0.1, 0.35, 0.6, 0.85})
    {
        places.insert(places.end(),
                      {t * s.box[0] + 0.3 * s.box[3], t * s.box[1] + 0.3 * s.box[4], 0.7 + 1.3 * (t - 0.5)});
    }
    expectTargets(
        s, fine(GetParam()), places, [](const System& all) { return slabSum(all); }, truncation);
}

INSTANTIATE_TEST_SUITE_P(Planes, Slab, testing::ValuesIn(planes()), parameterName<Plane>);

/* Between grids with other paddings the energy of a charged slab differs by truncation alone, wherever a charge is. */
TEST(ChargedSlab, DoesNotDependOnItsPadding)
{
    System s = chargesIn(planes()[0], 50, 5);
    for (double z = -6; z <= 6; z += 0.75)
    {
        s.x[2]              = z;
        const double thick  = solve(s, slab(explicitOptions(20, 3, 3, 2, 2))).energy;
        const double thin   = solve(s, slab(explicitOptions(20, 3, 3, 9, 2))).energy;
        const double direct = slabSum(s).energy;
        EXPECT_NEAR(thick, direct, 1e-8 * std::fabs(direct)) << z;
        EXPECT_NEAR(thin, direct, 1e-8 * std::fabs(direct)) << z;
    }
}

/* In the plane there is the field of a sheet alone, far away from it: 2 pi Q / A. */
TEST(ChargedSlab, HasTheFieldOfASheetFarAway)
{
    System s;
    s.box = {2, 0, 0, 0, 3, 0, 0, 0, 1};
    s.add({0.3, 0.4, 0}, 2);
    s.add({1.3, 1.4, 30}, 1);
    const Result r    = solve(s, slab(askedOptions(1e-9)));
    const double unit = 2 * 3.14159265358979323846 / 6;
    EXPECT_NEAR(r.field[5], 2 * unit, 1e-8);
    EXPECT_NEAR(r.field[2], -unit, 1e-8);
}

/* Two unlike charges across: a capacitor's field and no force in the plane. */
TEST(SlabOfTwoCharges, IsTheSumOverImages)
{
    System s;
    s.box = {3, 0, 0, 0, 3, 0, 0, 0, 3};
    s.add({1, 1, 1.5}, 1);
    s.add({1, 1, -1.5}, -1);
    for (const double accuracy : {1e-3, 1e-6, 1e-9})
    {
        const Result r = solve(s, slab(askedOptions(accuracy)));
        EXPECT_LT(relativeRms(r.force, slabSum(s).force), accuracy);
    }
    const Result one = solve(s, slab(explicitOptions(30, 1, 1, 2, 2)));
    EXPECT_NEAR(one.energy, slabSum(s).energy, 1e-11);
}

/* A surface of rock salt by its cells of four ions, or by 25 of them, and with more layers of cells than of ions. */
TEST(CrystalSlab, IsThatOfItsCell)
{
    const auto surface = [](int cells)
    {
        System s;
        s.box = {2.0 * cells, 0, 0, 0, 2.0 * cells, 0, 0, 0, 1};
        for (int i = 0; i < 2 * cells; i++)
        {
            for (int j = 0; j < 2 * cells; j++)
            {
                for (int k = 0; k < 4; k++)
                {
                    s.add({1.0 * i, 1.0 * j, 1.0 * k}, (i + j + k) % 2 == 0 ? 1 : -1);
                }
            }
        }
        return s;
    };
    const double ion = slabSum(surface(1)).energy / 16;
    for (const int layers : {1, 4, 7})
    {
        const System s = surface(5);
        EXPECT_NEAR(solve(s, slab(explicitOptions(24, 5, 5, layers, 2))).energy / 400, ion, 1e-9) << layers;
    }
}

/* Layers come and go with the particles, and come back with the same result. */
TEST(SlabPlan, FollowsItsParticles)
{
    const System   s       = chargesIn(planes()[0]);
    gmxfmm_options options = slab(askedOptions(1e-8));
    Plan           plan(s, options);
    const Result   first = plan.execute(s.x);
    for (const double stretch : {3.0, 0.1, 1.0})
    {
        System other = s;
        for (std::size_t i = 0; i < s.size(); i++)
        {
            other.x[3 * i + 2] = stretch * s.x[3 * i + 2] + 10 * (stretch - 1);
        }
        plan.assign(other.x);
        expectAgreement(plan.execute(other.x), slabSum(other), 1e-7);
    }
    plan.assign(s.x);
    EXPECT_NEAR(plan.execute(s.x).energy, first.energy, 1e-13 * std::fabs(first.energy));
}

/* 17 and 18 layers have a ring of 35 cells, the arrays and the lattice sums of which stay. */
TEST(SlabPlan, MayHaveMoreLayersInTheSameRing)
{
    System s = chargesIn({"Thick", {4, 0, 0, 0, 4, 0, 0, 0, 4}, 20.4, {3, 3, 17}});
    Plan   plan(s, slab(explicitOptions(20, 3, 3, 17, 2)));
    for (const int layers : {17, 18, 17})
    {
        System other = s;
        for (std::size_t i = 0; i < s.size(); i++)
        {
            other.x[3 * i + 2] *= layers / 17.0;
        }
        plan.assign(other.x);
        const Result r = plan.execute(other.x);
        EXPECT_EQ(r.info.grid[2], layers);
        expectAgreement(r, slabSum(other), truncation);
    }
}

class SlabAccuracy : public testing::TestWithParam<MethodAndPrecision>
{
};

/* As asked, by the model. */
TEST_P(SlabAccuracy, IsReached)
{
    const gmxfmm_m2l       m2l       = std::get<0>(GetParam());
    const gmxfmm_precision precision = std::get<1>(GetParam());
    const System           s         = chargesIn({"Wide", {6, 0, 0, 0, 8, 0, 0, 0, 1}, 4, {0, 0, 0}}, 200, 0);
    const Solution         reference = slabSum(s);
    for (const double accuracy : {1e-3, 1e-5, 1e-7, 1e-9})
    {
        if ((precision == GMXFMM_DOUBLE || accuracy >= 1e-5) && !(isSlow(m2l) && accuracy < 1e-7))
        {
            const Result r = solve(s, slab(automatic(m2l, accuracy, precision)));
            EXPECT_LT(relativeRms(r.force, reference.force), accuracy);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Methods,
                         SlabAccuracy,
                         testing::Combine(testing::ValuesIn(methods()), testing::Values(GMXFMM_SINGLE, GMXFMM_DOUBLE)),
                         methodAndPrecisionName);

/* The file's open direction is x; it is good to 2e-11. */
TEST(ReferenceSlab, IsThatOfTheFile)
{
    expectReference("2d-cloud_wall_2400", periodicAlong(explicitOptions(20, 6, 6, 6, 2), {0, 1, 1}));
}

struct Refusal
{
    std::string name;
    void (*set)(gmxfmm_options* options, Mat3* box);
    gmxfmm_status status;
    std::string   words;
};

class RefusedSlab : public testing::TestWithParam<Refusal>
{
};

TEST_P(RefusedSlab, SaysWhy)
{
    gmxfmm_options options;
    gmxfmm_default_options(&options);
    Mat3 box = {4, 0, 0, 0, 4, 0, 0, 0, 4};
    options  = slab(options);
    GetParam().set(&options, &box);
    expectRefused(options, 10, box.data(), GetParam().status, GetParam().words);
}

INSTANTIATE_TEST_SUITE_P(
    All,
    RefusedSlab,
    testing::Values(Refusal{"Vacuum", [](gmxfmm_options* o, Mat3*) { o->boundary = GMXFMM_VACUUM; },
                            GMXFMM_ERROR_OPTION, "leave boundary out"},
                    Refusal{"Open", [](gmxfmm_options* o, Mat3*) { o->boundary = GMXFMM_OPEN; }, GMXFMM_ERROR_OPTION,
                            "leave one of them out"},
                    Refusal{"Number", [](gmxfmm_options* o, Mat3*) { o->periodic[1] = 2; }, GMXFMM_ERROR_OPTION,
                            "periodic[1] is 2"},
                    Refusal{"Treecode", [](gmxfmm_options* o, Mat3*) { o->method = GMXFMM_TREECODE; },
                            GMXFMM_ERROR_OPTION, "use method = fmm"},
                    Refusal{"Parallel", [](gmxfmm_options*, Mat3* b) { (*b)[3] = 8, (*b)[4] = 0; }, GMXFMM_ERROR_BOX,
                            "on one line"},
                    Refusal{"NotFinite", [](gmxfmm_options*, Mat3* b) { (*b)[4] = NAN; }, GMXFMM_ERROR_BOX,
                            "not finite"}),
    parameterName<Refusal>);
