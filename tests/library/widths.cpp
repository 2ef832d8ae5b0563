/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Gaussian charges: against sums in extended precision, point charges, and derivatives of the energy. */
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <numeric>

#include <gtest/gtest.h>

#include "support/derivatives.h"
#include "support/direct.h"
#include "support/ewald.h"
#include "support/norms.h"
#include "support/partly_periodic.h"
#include "support/paths.h"
#include "support/suites.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

using Real = long double;

const Real pi = 3.14159265358979323846264338327950288L;

/* Truncation at order 20 with two layers of near cells. */
const double truncation = 2e-9;

/* Roundings of sums of some hundred terms that are ten times as large, in single precision. */
const double single = 3e-5;

struct WideSystem : System
{
    std::vector<double> width;
    std::array<int, 3>  periodic = {1, 1, 1};
};

/* Every third one is a point, the others up to `widest` wide. */
WideSystem withWidths(const System& s, double widest, const std::array<int, 3>& periodic = {1, 1, 1})
{
    WideSystem wide;
    Random     random(7);
    static_cast<System&>(wide) = s;
    wide.periodic              = periodic;
    for (std::size_t i = 0; i < s.size(); i++)
    {
        wide.width.push_back(i % 3 == 0 ? 0 : widest * (0.2 + 0.8 * random.uniform()));
    }
    wide.width.back() = widest;
    return wide;
}

/* 24 charges with pairs excluded next to each other and as far apart as can be. */
WideSystem mixtureIn(const BoxType& type, double widest, double net = 0)
{
    System s = ions(boxOfVolume(type, 24), 24, 9);
    s.q[1] += net;
    s.exclude(0, 1);
    s.exclude(5, 20);
    s.exclude(8, farthestFrom(s, 8));
    s.exclude(10, farthestFrom(s, 10));
    return withWidths(s, widest);
}

/* The vector from a particle to the image of another that an excluded pair is of. */
Vec3 nearestOf(const WideSystem& s, const Vec3& d)
{
    Mat3 box = s.box;
    if (!s.periodic[0] && !s.periodic[1] && !s.periodic[2])
    {
        return d;
    }
    for (std::size_t v = 0; v < 3; v++)
    {
        for (std::size_t k = 0; k < 3 && !s.periodic[v]; k++)
        {
            box[3 * v + k] = v == k ? 1e4 : 0;
        }
    }
    return Lattice(box).nearest(d);
}

/* Adds what a pair of Gaussians has less than two points, over all images that it reaches, and without a background the
 * mean of that: k = 0 of the sum over images is 2 pi (s_i^2 + s_j^2) / V. */
void widen(const WideSystem& s, Solution* to)
{
    const bool bulk = s.periodic[0] && s.periodic[1] && s.periodic[2];
    const Real v    = volume(s.box);
    const Real most = 2 * 6.3L * *std::max_element(s.width.begin(), s.width.end());
    int        reach[3];
    for (std::size_t d = 0; d < 3; d++)
    {
        const Mat3 star = bulk ? reciprocal(s.box) : Mat3{};
        Real       k2 = 0, a2 = 0;
        for (std::size_t e = 0; e < 3; e++)
        {
            k2 += star[3 * d + e] * star[3 * d + e];
            a2 += s.box[3 * d + e] * s.box[3 * d + e];
        }
        /* vectors of a slab are nearly at right angles here */
        reach[d] = s.periodic[d]
                       ? static_cast<int>(std::ceil(bulk ? most * std::sqrt(k2) : 1.2L * most / std::sqrt(a2))) + 1
                       : 0;
    }
    Real energy = 0, virial[9] = {};
    for (std::size_t i = 0; i < s.size(); i++)
    {
        Real phi = 0, field[3] = {0, 0, 0};
        for (std::size_t j = 0; j < s.size(); j++)
        {
            const bool excludes = !s.excluded.empty() && std::count(s.excluded[i].begin(), s.excluded[i].end(), j) > 0;
            const Real g2 =
                2 * (static_cast<Real>(s.width[i]) * s.width[i] + static_cast<Real>(s.width[j]) * s.width[j]);
            const Vec3 d = {s.x[3 * i] - s.x[3 * j], s.x[3 * i + 1] - s.x[3 * j + 1], s.x[3 * i + 2] - s.x[3 * j + 2]};
            const Vec3 nearest = nearestOf(s, d);
            phi += bulk ? pi * g2 / v * s.q[j] : 0;
            for (int a = -reach[0]; a <= reach[0] && g2 > 0; a++)
            {
                for (int b = -reach[1]; b <= reach[1]; b++)
                {
                    for (int c = -reach[2]; c <= reach[2]; c++)
                    {
                        Real r[3], r2 = 0, apart = 0;
                        for (std::size_t e = 0; e < 3; e++)
                        {
                            r[e] = static_cast<Real>(s.x[3 * i + e]) - s.x[3 * j + e] +
                                   a * static_cast<Real>(s.box[e]) + b * static_cast<Real>(s.box[3 + e]) +
                                   c * static_cast<Real>(s.box[6 + e]);
                            r2 += r[e] * r[e];
                            apart = std::max(apart, std::fabs(r[e] - nearest[e]));
                        }
                        if (r2 == 0 || r2 > 42 * g2 || (excludes && apart < 1e-9L)) /* exp(-42) is 6e-19 */
                        {
                            continue;
                        }
                        const Real distance = std::sqrt(r2), left = -std::erfc(std::sqrt(r2 / g2)) / distance;
                        const Real slope = (left - 2 / std::sqrt(pi * g2) * std::exp(-r2 / g2)) / r2;
                        phi += s.q[j] * left;
                        for (std::size_t e = 0; e < 3; e++)
                        {
                            field[e] += s.q[j] * slope * r[e];
                            for (std::size_t f = 0; f < 3; f++)
                            {
                                virial[3 * e + f] -= s.q[i] * s.q[j] * slope * r[e] * r[f] / 4;
                            }
                        }
                    }
                }
            }
        }
        energy += s.q[i] * phi / 2;
        to->potential[i] += static_cast<double>(phi);
        for (std::size_t e = 0; e < 3; e++)
        {
            to->field[3 * i + e] += static_cast<double>(field[e]);
            to->force[3 * i + e] += static_cast<double>(s.q[i] * field[e]);
        }
    }
    to->energy += static_cast<double>(energy);
    Real mean = 0;
    for (std::size_t i = 0; i < s.size() && bulk; i++)
    {
        for (std::size_t j = 0; j < s.size(); j++)
        {
            mean += pi / v * s.q[i] * s.q[j] * (s.width[i] * s.width[i] + s.width[j] * s.width[j]);
        }
    }
    for (std::size_t k = 0; k < 9; k++)
    {
        to->virial[k] += static_cast<double>(virial[k] - (k % 4 == 0 ? mean / 2 : 0));
    }
}

Solution referenceOf(const WideSystem& s, Boundary boundary = Boundary::Tinfoil)
{
    const int num = s.periodic[0] + s.periodic[1] + s.periodic[2];
    Solution  r   = num == 3 ? ewald(s, boundary) : num == 2 ? slabSum(s) : num == 1 ? wireSum(s) : directSum(s);
    widen(s, &r);
    return r;
}

/* The sum over wave vectors alone, of charges all of which have a width, without excluded pairs. */
Solution reciprocalSum(const WideSystem& s)
{
    Solution   r    = emptySolution(s.size());
    const Mat3 star = reciprocal(s.box);
    const Real v = volume(s.box), narrow = *std::min_element(s.width.begin(), s.width.end());
    int        most[3];
    for (std::size_t d = 0; d < 3; d++)
    {
        const double* a = &s.box[3 * d];
        most[d] =
            static_cast<int>(std::ceil(6.4L / narrow / (2 * pi) * std::sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])));
    }
    std::vector<Real> phi(s.size()), field(3 * s.size());
    for (int a = -most[0]; a <= most[0]; a++)
    {
        for (int b = -most[1]; b <= most[1]; b++)
        {
            for (int c = -most[2]; c <= most[2]; c++)
            {
                Real k[3], k2 = 0;
                for (std::size_t d = 0; d < 3; d++)
                {
                    k[d] = 2 * pi *
                           (a * static_cast<Real>(star[d]) + b * static_cast<Real>(star[3 + d]) +
                            c * static_cast<Real>(star[6 + d]));
                    k2 += k[d] * k[d];
                }
                if (k2 == 0 || k2 * narrow * narrow > 6.4L * 6.4L)
                {
                    continue;
                }
                std::vector<std::complex<Real>> wave;
                std::complex<Real>              sum = 0;
                for (std::size_t i = 0; i < s.size(); i++)
                {
                    const Real phase = k[0] * s.x[3 * i] + k[1] * s.x[3 * i + 1] + k[2] * s.x[3 * i + 2];
                    wave.push_back(std::polar(std::exp(-k2 * s.width[i] * s.width[i] / 2), phase));
                    sum += static_cast<Real>(s.q[i]) * wave[i];
                }
                for (std::size_t i = 0; i < s.size(); i++)
                {
                    const std::complex<Real> term = 4 * pi / (k2 * v) * std::conj(wave[i]) * sum;
                    phi[i] += term.real();
                    for (std::size_t d = 0; d < 3; d++)
                    {
                        field[3 * i + d] -= k[d] * term.imag();
                    }
                }
            }
        }
    }
    for (std::size_t i = 0; i < s.size(); i++)
    {
        phi[i] -= s.q[i] / (std::sqrt(pi) * s.width[i]); /* a Gaussian with itself */
        r.potential[i] = static_cast<double>(phi[i]);
        for (std::size_t d = 0; d < 3; d++)
        {
            r.field[3 * i + d] = static_cast<double>(field[3 * i + d]);
        }
    }
    finishSolution(s, &r);
    return r;
}

class WidePlan : public Plan
{
  public:
    WidePlan(const WideSystem& s, const gmxfmm_options& options) : Plan(s, options)
    {
        setWidths(s);
        assign(s.x);
    }
    void setWidths(const WideSystem& s)
    {
        const gmxfmm_status status = gmxfmm_set_widths(get(), static_cast<std::int64_t>(s.size()), s.width.data());
        EXPECT_EQ(status, GMXFMM_OK) << gmxfmm_message(get());
    }
};

Result solveWide(const WideSystem& s, const gmxfmm_options& options)
{
    return WidePlan(s, options).execute(s.x);
}

void expectSame(const Solution& r, const Solution& reference, double tolerance, bool virial = true)
{
    const double root = std::sqrt(static_cast<double>(r.potential.size()));
    EXPECT_LT(relativeRms(r.potential, reference.potential), tolerance);
    EXPECT_LT(relativeRms(r.field, reference.field), tolerance);
    EXPECT_LT(relativeRms(r.force, reference.force), tolerance);
    EXPECT_NEAR(r.energy, reference.energy, tolerance * root * rms(reference.potential));
    if (virial)
    {
        EXPECT_LT(maxDifference(r.virial, reference.virial), 10 * tolerance * root * rms(reference.force));
    }
}

gmxfmm_options fine(const BoxType& type, gmxfmm_precision precision = GMXFMM_DOUBLE)
{
    return explicitOptions(20, evenGrid(type, 4), 2, precision);
}

/* Of the boxes: one with right angles, a dodecahedron, and one in general orientation. */
std::vector<BoxType> someBoxes()
{
    return {boxTypes()[1], boxTypes()[3], boxTypes().back()};
}

class WidthsInBox : public testing::TestWithParam<BoxType>
{
};

/* Forces and virials are derivatives of the energy of the plan itself. */
void expectDerivatives(const WideSystem& s, gmxfmm_options options, const std::vector<std::size_t>& strains)
{
    options.reproducible = 1;
    options.accuracy     = 1e-12; /* pairs that enter the cut-off would be steps */
    WidePlan     plan(s, options);
    const Result r = plan.execute(s.x);
    for (const std::size_t k : {std::size_t{0}, std::size_t{4}, std::size_t{17}, std::size_t{26}, std::size_t{33}})
    {
        expectGradient(&plan, s, r, k, 1e-3, 1e-8);
    }
    expectStrainDerivativesOf(&plan, s, r, strains, 1e-8);
}

const std::vector<std::size_t> allStrains = {0, 1, 2, 3, 4, 5, 6, 7, 8};

} // namespace

TEST(WidthsReference, IsTheReciprocalSum)
{
    for (const BoxType& type : someBoxes())
    {
        WideSystem s = mixtureIn(type, 0.5, 2.5);
        s.excluded.clear();
        for (double& w : s.width)
        {
            w = std::max(w, 0.25);
        }
        expectSame(referenceOf(s), reciprocalSum(s), 1e-13, false); /* of ewald() */
    }
}

TEST_P(WidthsInBox, AreTheEwaldSum)
{
    for (const double widest : {0.1, 0.5, 1.5}) /* of a mean distance of 1 in a box of some 3 */
    {
        SCOPED_TRACE(widest);
        const WideSystem s         = mixtureIn(GetParam(), widest);
        const Solution   reference = referenceOf(s);
        expectSame(solveWide(s, fine(GetParam())), reference, truncation);
        expectSame(solveWide(s, fine(GetParam(), GMXFMM_SINGLE)), reference, single);
    }
}

TEST_P(WidthsInBox, AreTheEwaldSumWithNetChargeInVacuum)
{
    const WideSystem s = mixtureIn(GetParam(), 0.8, 2.5);
    expectSame(solveWide(s, withBoundary(fine(GetParam()), Boundary::Vacuum)), referenceOf(s, Boundary::Vacuum),
               truncation);
}

TEST_P(WidthsInBox, DerivativesAtLowOrder)
{
    expectDerivatives(mixtureIn(GetParam(), 0.6, 2.5), explicitOptions(4, evenGrid(GetParam(), 6), 1), allStrains);
}

INSTANTIATE_TEST_SUITE_P(Boxes, WidthsInBox, testing::ValuesIn(someBoxes()), boxName);

/* Without a box. */
class WidthsInOpenSystem : public testing::TestWithParam<gmxfmm_m2l>
{
};

static WideSystem dropOf(int n, double widest)
{
    System s = droplet(n, 4, 2);
    s.exclude(0, 1);
    s.exclude(5, 20);
    return withWidths(s, widest, {0, 0, 0});
}

TEST_P(WidthsInOpenSystem, AreTheDirectSum)
{
    for (const double widest : {0.05, 0.5, 3.0})
    {
        SCOPED_TRACE(widest);
        const WideSystem s         = dropOf(200, widest);
        const Solution   reference = referenceOf(s);
        for (const gmxfmm_precision precision : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
        {
            const auto options = withBoundary(methodOptions(GetParam(), 20, 4, 2, precision), Boundary::Open);
            expectSame(solveWide(s, options), reference, precision == GMXFMM_DOUBLE ? truncation : single);
        }
    }
}

TEST_P(WidthsInOpenSystem, DerivativesAtLowOrder)
{
    expectDerivatives(dropOf(60, 0.6), withBoundary(methodOptions(GetParam(), 4, 5, 1), Boundary::Open), {});
}

INSTANTIATE_TEST_SUITE_P(Methods, WidthsInOpenSystem, testing::ValuesIn(methods()), methodName);

/* Leaves of several levels: a cloud that is dense in its middle, where Gaussians overlap. */
TEST(Widths, InLeavesOfSeveralLevels)
{
    System s = dropOf(900, 1);
    for (std::size_t i = 0; i < s.size(); i++)
    {
        const Vec3   r  = s.position(i);
        const double r2 = (r[0] * r[0] + r[1] * r[1] + r[2] * r[2]) / 16;
        for (std::size_t d = 0; d < 3; d++)
        {
            s.x[3 * i + d] *= r2 * r2;
        }
    }
    for (const double widest : {1e-3, 0.3})
    {
        SCOPED_TRACE(widest);
        WideSystem wide = withWidths(s, widest, {0, 0, 0});
        for (double& width : wide.width)
        {
            width = std::max(width, 0.1 * widest); /* points so close would have all of the norms */
        }
        const Solution reference = referenceOf(wide);
        gmxfmm_options options   = withBoundary(automatic(GMXFMM_M2L_ROTATION, 1e-5), Boundary::Open);
        options.order            = 18;
        for (const gmxfmm_precision precision : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
        {
            options.precision = precision;
            const Result r    = solveWide(wide, options);
            /* order 18 with one layer of near cells; in single precision close pairs have few digits of their places */
            const double tolerance = precision == GMXFMM_DOUBLE ? 1e-6 : 3e-4;
            EXPECT_LT(relativeRms(r.force, reference.force), tolerance);
            EXPECT_LT(relativeRms(r.potential, reference.potential), tolerance);
            EXPECT_NEAR(r.energy, reference.energy, 10 * tolerance * std::fabs(reference.energy));
        }
    }
}

TEST(Widths, BitsDoNotDependOnThreads)
{
    const WideSystem s       = dropOf(300, 0.5);
    gmxfmm_options   options = withBoundary(explicitOptions(6, 4, 4, 4, 1), Boundary::Open);
    options.reproducible     = 1;
    options.num_threads      = 1;
    const Result one         = solveWide(s, options);
    options.num_threads      = 3;
    const Result three       = solveWide(s, options);
    EXPECT_EQ(one.force, three.force);
    EXPECT_EQ(one.virial, three.virial);
    EXPECT_EQ(one.energy, three.energy);
}

/* Octrees in periodic boxes. */
class WidthsInOctree : public testing::TestWithParam<gmxfmm_m2l>
{
};

TEST_P(WidthsInOctree, AreTheEwaldSum)
{
    const Path       path = {GetParam(), octreeBoxTypes().back()};
    const WideSystem s    = mixtureIn(path.box, 0.5, 2.5);
    expectSame(solveWide(s, pathOptions(path, 20, 4, 2)), referenceOf(s), truncation);
}

INSTANTIATE_TEST_SUITE_P(Methods, WidthsInOctree, testing::ValuesIn(octreeMethods()), methodName);

TEST(Widths, InSlabsAndWires)
{
    Random random(17);
    for (const std::array<int, 3>& periodic : {std::array<int, 3>{1, 1, 0}, std::array<int, 3>{0, 0, 1}})
    {
        System s;
        s.box = {4, 0.3, 0, 1.1, 3.7, 0, 0, 0, 4};
        if (!periodic[0])
        {
            s.box = {1, 0, 0, 0, 1, 0, 0, 0, 4};
        }
        for (int i = 0; i < 60; i++)
        {
            /* none so close to another that single precision does not tell the distance */
            s.add(
                {4 * random.uniform(), 3.7 * random.uniform(), 0.7 + 4 * ((17 * i % 60 + 0.5 * random.uniform()) / 60)},
                i % 2 == 0 ? 1 : -1);
        }
        s.q[3] += 2.5;
        s.exclude(0, 1);
        s.exclude(7, 45);
        for (const double widest : {0.3, 1.5})
        {
            SCOPED_TRACE(widest);
            const WideSystem wide      = withWidths(s, widest, periodic);
            const Solution   reference = referenceOf(wide);
            for (const gmxfmm_precision precision : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
            {
                const auto options = periodicAlong(explicitOptions(20, {3, 3, 3}, 2, precision), periodic);
                expectSame(solveWide(wide, options), reference, precision == GMXFMM_DOUBLE ? truncation : single,
                           false);
            }
            expectDerivatives(wide, periodicAlong(explicitOptions(4, {3, 3, 3}, 1), periodic), {});
        }
    }
}

/* What is asked is kept: of liquid water with widths as models have them. */
TEST(Widths, KeepTheAccuracyAsked)
{
    const System     water     = liquidCube(1);
    const WideSystem s         = withWidths(water, 0.1);
    const Solution   ofPoints  = ewald(water);
    Solution         reference = ofPoints;
    widen(s, &reference);
    for (const double accuracy : {1e-2, 4e-4, 1e-5})
    {
        for (const gmxfmm_precision precision : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
        {
            const gmxfmm_options options = askedOptions(accuracy, precision);
            const Result         wide = solveWide(s, options), points = solve(s, options);
            /* errors of the point charges, and what the cut-off leaves out */
            EXPECT_LT(rmsDifference(wide.force, reference.force), 1.05 * rmsDifference(points.force, ofPoints.force));
            EXPECT_LT(relativeRms(wide.force, reference.force), accuracy);
        }
    }
}

TEST(Widths, OfZeroAreThePointsBits)
{
    const BoxType&       type    = boxTypes()[3];
    const gmxfmm_options options = explicitOptions(6, evenGrid(type, 4), 1, GMXFMM_SINGLE);
    WideSystem           s       = mixtureIn(type, 0.4);
    const Result         points  = solve(s, options);
    WidePlan             plan(s, options);
    EXPECT_GT(relativeRms(plan.execute(s.x).force, points.force), 1e-3); /* they matter */
    const auto expectPoints = [&]()
    {
        plan.assign(s.x);
        const Result r = plan.execute(s.x);
        EXPECT_EQ(r.force, points.force);
        EXPECT_EQ(r.potential, points.potential);
        EXPECT_EQ(r.virial, points.virial);
        EXPECT_EQ(r.energy, points.energy);
    };
    std::fill(s.width.begin(), s.width.end(), 0);
    plan.setWidths(s);
    expectPoints();
    ASSERT_EQ(gmxfmm_set_widths(plan.get(), static_cast<std::int64_t>(s.size()), nullptr), GMXFMM_OK);
    expectPoints();
}

TEST(Widths, OfNextToNothingArePoints)
{
    const BoxType& type   = boxTypes().back();
    WideSystem     s      = mixtureIn(type, 1);
    const Result   points = solve(s, fine(type));
    for (const double width : {1e-200, 1e-12, 1e-6, 1e-3})
    {
        std::fill(s.width.begin(), s.width.end(), width);
        /* rounding, and the mean of the widths' potential */
        expectSame(solveWide(s, fine(type)), points, 1e-15 + width * width);
    }
}

/* Targets are points: q erf(r / sqrt(2) s) / r, which is q sqrt(2 / pi) / s at r = 0. */
TEST(Widths, AtTargets)
{
    const double width = 0.3;
    System       one;
    one.add({0.1, 0.2, 0.3}, 1.7);
    one.add({30, 0, 0}, 0);
    WideSystem s = withWidths(one, width, {0, 0, 0});
    s.width      = {width, 0};
    for (const gmxfmm_precision precision : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
    {
        gmxfmm_options options = withBoundary(explicitOptions(10, 1, 1, 1, 1, precision), Boundary::Open);
        options.accuracy       = 1e-12;
        WidePlan            plan(s, options);
        std::vector<double> places, expected;
        for (const double r : {0.0, 1e-9, 1e-3, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0})
        {
            places.insert(places.end(), {0.1 + r, 0.2, 0.3});
            expected.push_back(1.7 * (r > 0 ? std::erf(r / std::sqrt(2) / width) / r : std::sqrt(2 / M_PI) / width));
        }
        const Values v = valuesAt(plan.get(), s.x, places);
        for (std::size_t i = 0; i < expected.size(); i++)
        {
            const double tolerance = precision == GMXFMM_DOUBLE ? 1e-14 : 3e-6; /* rounding, of places too */
            EXPECT_NEAR(v.potential[i], expected[i], tolerance * expected[i]) << places[3 * i];
        }
        EXPECT_EQ(v.field[0], 0);
    }
}

TEST(Widths, AtTargetsInABox)
{
    const BoxType& type = boxTypes().back();
    WideSystem     s    = mixtureIn(type, 0.7, 2.5);
    s.excluded.clear();
    WidePlan            plan(s, fine(type));
    std::vector<double> places;
    WideSystem          probed = s;
    Random              random(3);
    for (int i = 0; i < 10; i++)
    {
        const Vec3 at = {4 * random.centred(), 4 * random.centred(), 4 * random.centred()};
        probed.add(at, 0);
        probed.width.push_back(0);
        places.insert(places.end(), at.begin(), at.end());
    }
    const Values   v         = valuesAt(plan.get(), s.x, places);
    const Solution reference = referenceOf(probed);
    for (std::size_t i = 0; i < places.size(); i++)
    {
        EXPECT_NEAR(v.field[i], reference.field[3 * s.size() + i], truncation * rms(reference.field));
        EXPECT_NEAR(v.potential[i / 3], reference.potential[s.size() + i / 3], truncation * rms(reference.potential));
    }
}

/* At one place Gaussians have no force on each other, and the potential q / (sqrt(pi) s) of equal ones. */
TEST(Widths, AtOnePlace)
{
    WideSystem s;
    s.periodic = {0, 0, 0};
    s.add({0, 0, 0}, 1);
    s.add({0, 0, 0}, -2);
    s.add({5, 0, 0}, 0); /* points without charge, where another one is */
    s.add({5, 0, 0}, 1);
    s.width              = {0.5, 0.5, 0, 0};
    const auto   options = withBoundary(explicitOptions(10, 2, 1, 1, 1), Boundary::Open);
    const Result r       = solveWide(s, options);
    EXPECT_NEAR(r.potential[0], -2 / (std::sqrt(M_PI) * 0.5) + std::erf(5 / std::sqrt(0.5)) / 5, 1e-12);
    EXPECT_NEAR(r.potential[2], -1.0 / 5, 1e-12);
    EXPECT_NEAR(r.force[0], -1.0 / 25, 1e-12); /* of the charge, 10 of these widths away */

    s.q[2] = 1;
    WidePlan      plan(s, options);
    gmxfmm_output output = sized<gmxfmm_output>();
    output.want_energy   = 1;
    EXPECT_EQ(gmxfmm_execute(plan.get(), s.x.data(), &output), GMXFMM_ERROR_COINCIDENT);
    s.exclude(2, 3);
    EXPECT_NEAR(solveWide(s, options).potential[2], -1.0 / 5, 1e-12);
}

/* Steps after the assignment, in other images and in another box. */
TEST(Widths, FollowParticlesAndTheBox)
{
    const BoxType& type    = boxTypes()[3];
    WideSystem     s       = mixtureIn(type, 0.9);
    const auto     options = fine(type);
    WidePlan       plan(s, options);
    s.x = moved(s.x, 0.05);
    for (std::size_t d = 0; d < 3; d++)
    {
        s.x[3 * 5 + d] += 2 * s.box[d] - s.box[6 + d];
    }
    static_cast<System&>(s) = strained(s, {-0.05, 0, 0, 0, -0.04, 0, 0, 0, -0.06});
    plan.setBox(s.box);
    expectSame(plan.execute(s.x), referenceOf(s), truncation);
}

TEST(Widths, HaveChargeGradients)
{
    WideSystem   s = mixtureIn(boxTypes().back(), 0.5, 1);
    WidePlan     plan(s, explicitOptions(5, evenGrid(boxTypes().back(), 4), 1));
    const int    start[] = {0, 2}, index[] = {4, 8};
    const double dq[] = {0.7, -0.2};
    ASSERT_EQ(gmxfmm_set_charge_derivatives(plan.get(), 1, start, index, dq), GMXFMM_OK);
    double        gradient = 0;
    gmxfmm_output output   = sized<gmxfmm_output>();
    output.charge_gradient = &gradient;
    ASSERT_EQ(gmxfmm_execute(plan.get(), s.x.data(), &output), GMXFMM_OK) << gmxfmm_message(plan.get());
    const auto energy = [&](double step)
    {
        std::vector<double> q = s.q;
        q[4] += 0.7 * step;
        q[8] -= 0.2 * step;
        EXPECT_EQ(gmxfmm_set_charges(plan.get(), static_cast<std::int64_t>(q.size()), q.data()), GMXFMM_OK);
        return plan.energy(s.x); /* widths are kept */
    };
    EXPECT_NEAR(gradient, slope(energy, 1e-2), 1e-10 * std::fabs(gradient));
}

TEST(WidthErrors, AreTold)
{
    const WideSystem   s    = mixtureIn(boxTypes()[0], 0.5);
    const std::int64_t n    = static_cast<std::int64_t>(s.size());
    gmxfmm_plan*       plan = createOrSkip(explicitOptions(6, 4, 4, 4, 1), n, s.box.data());
    EXPECT_EQ(gmxfmm_set_widths(nullptr, n, s.width.data()), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_set_widths(plan, n, s.width.data()), GMXFMM_ERROR_ORDER);
    expectMessage(plan, "set_charges");
    EXPECT_EQ(gmxfmm_set_widths(plan, n, nullptr), GMXFMM_OK); /* there are none */
    ASSERT_EQ(gmxfmm_set_charges(plan, n, s.q.data()), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_set_widths(plan, n - 1, s.width.data()), GMXFMM_ERROR_OPTION);
    expectMessage(plan, "widths");
    for (const double bad : {static_cast<double>(NAN), -0.1, static_cast<double>(INFINITY)})
    {
        std::vector<double> width = s.width;
        width[7]                  = bad;
        EXPECT_EQ(gmxfmm_set_widths(plan, n, width.data()), GMXFMM_ERROR_CHARGE);
        expectMessage(plan, "width of particle 7");
    }
    EXPECT_NE(gmxfmm_capabilities(plan) & GMXFMM_CAN_WIDTHS, 0U);
    ASSERT_EQ(gmxfmm_set_widths(plan, n, s.width.data()), GMXFMM_OK);
    gmxfmm_output output = sized<gmxfmm_output>();
    output.want_energy   = 1;
    EXPECT_EQ(gmxfmm_execute(plan, s.x.data(), &output), GMXFMM_ERROR_ORDER);
    EXPECT_EQ(gmxfmm_set_dipoles(plan, n, s.x.data()), GMXFMM_ERROR_UNSUPPORTED);
    expectMessage(plan, "widths");
    std::vector<double> room(4 * s.size());
    gmxfmm_along        along = sized<gmxfmm_along>();
    along.u                   = s.x.data();
    along.w                   = s.q.data();
    along.force               = room.data();
    along.potential           = room.data() + 3 * s.size();
    EXPECT_EQ(gmxfmm_execute_along(plan, s.x.data(), &along), GMXFMM_ERROR_UNSUPPORTED);
    expectMessage(plan, "second derivatives");

    const std::vector<double> wide(s.size(), 100.0);
    ASSERT_EQ(gmxfmm_set_widths(plan, n, wide.data()), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_assign(plan, s.x.data()), GMXFMM_ERROR_OPTION);
    expectMessage(plan, "widths");

    ASSERT_EQ(gmxfmm_set_widths(plan, n, nullptr), GMXFMM_OK);
    ASSERT_EQ(gmxfmm_set_dipoles(plan, n, s.x.data()), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_set_widths(plan, n, s.width.data()), GMXFMM_ERROR_UNSUPPORTED);
    expectMessage(plan, "dipoles");
    gmxfmm_destroy(plan);
}

TEST(WidthErrors, OfWhatIsNotOffered)
{
    const WideSystem   s       = mixtureIn(boxTypes()[0], 0.5);
    const std::int64_t n       = static_cast<std::int64_t>(s.size());
    gmxfmm_options     options = withBoundary(defaultOptions(), Boundary::Open);
    options.method             = GMXFMM_TREECODE;
    gmxfmm_plan* plan          = createOrSkip(options, n, nullptr);
    ASSERT_EQ(gmxfmm_set_charges(plan, n, s.q.data()), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_set_widths(plan, n, s.width.data()), GMXFMM_ERROR_UNSUPPORTED);
    expectMessage(plan, "method = fmm");
    EXPECT_EQ(gmxfmm_capabilities(plan) & GMXFMM_CAN_WIDTHS, 0U);
    gmxfmm_destroy(plan);

    options              = explicitOptions(6, 4, 4, 4, 1);
    options.min_distance = 0.01;
    plan                 = createOrSkip(options, n, s.box.data());
    ASSERT_EQ(gmxfmm_set_charges(plan, n, s.q.data()), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_set_widths(plan, n, s.width.data()), GMXFMM_ERROR_OPTION);
    expectMessage(plan, "min_distance");
    gmxfmm_destroy(plan);
}

/* A plan with widths is not measured by a reference, which is of point charges. */
TEST(WidthErrors, OfMeasuring)
{
    const WideSystem     s       = withWidths(ions(boxOfVolume(boxTypes()[1], 64), 64, 9), 0.5);
    const gmxfmm_options options = explicitOptions(6, 4, 4, 4, 1);
    const SystemView     view(s, Boundary::Tinfoil);
    const gmxfmm_system  system    = view.get();
    gmxfmm_reference*    reference = nullptr;
    char                 message[256];
    ASSERT_EQ(gmxfmm_reference_create(&reference, &options, &system, message, sizeof(message)), GMXFMM_OK) << message;
    WidePlan           plan(s, options);
    gmxfmm_measurement measured = sized<gmxfmm_measurement>();
    EXPECT_EQ(gmxfmm_measure_plan(reference, plan.get(), &measured, message, sizeof(message)),
              GMXFMM_ERROR_UNSUPPORTED);
    EXPECT_NE(std::string(message).find("widths"), std::string::npos) << message;
    gmxfmm_reference_destroy(reference);
}

/* Widths are of particles by their numbers: systems of other numbers would lose them. */
TEST(WidthSystems, KeepThePlansWidths)
{
    const WideSystem   s = mixtureIn(boxTypes()[1], 0.5);
    const std::int64_t n = static_cast<std::int64_t>(s.size()), one[] = {0, n}, two[] = {0, n / 2, n};
    WidePlan           plan(s, explicitOptions(6, 4, 4, 4, 1));
    ASSERT_EQ(gmxfmm_set_exclusions(plan.get(), nullptr, nullptr), GMXFMM_OK);
    double         energy[2] = {0, 0};
    gmxfmm_systems systems   = sized<gmxfmm_systems>();
    systems.num              = 2;
    systems.start            = two;
    systems.x                = s.x.data();
    systems.q                = s.q.data();
    systems.energy           = energy;
    EXPECT_EQ(gmxfmm_execute_systems(plan.get(), &systems), GMXFMM_ERROR_OPTION);
    expectMessage(plan.get(), "widths");
    systems.num   = 1;
    systems.start = one;
    ASSERT_EQ(gmxfmm_execute_systems(plan.get(), &systems), GMXFMM_OK) << gmxfmm_message(plan.get());
    EXPECT_NEAR(plan.energy(s.x), energy[0], 1e-13 * std::fabs(energy[0]));
}
