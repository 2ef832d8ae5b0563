/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Boxes by any vectors of their lattice, and particles in any of their images: what was asked is reached, a choice of
 * settings does no more work than in the reduced box, and only sum q x knows which image was passed. */
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include <gtest/gtest.h>

#include "gmxfmm_measure.h"
#include "support/ewald.h"
#include "support/norms.h"
#include "support/paths.h"
#include "support/plan.h"
#include "support/suites.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

/* A number that leaves room for 2^20 boxes in a double: with vectors and positions of these, images are exact. */
double dyadic(double x)
{
    return std::ldexp(std::rint(std::ldexp(x, 24)), -24);
}

int integer(Random* random, int most)
{
    return static_cast<int>(std::floor((2 * most + 1) * random->uniform())) - most;
}

Mat3 dyadicBox(Random* random, bool rectangular)
{
    Mat3 box = {0, 0, 0, 0, 0, 0, 0, 0, 0};
    for (std::size_t i = 0; i < 9; i++)
    {
        box[i] = i % 4 == 0       ? dyadic(1.4 + 0.8 * random->uniform())
                 : rectangular    ? 0
                 : i % 3 < i / 3u ? dyadic(0.6 * random->centred())
                                  : 0;
    }
    return box;
}

/* n charges, neutral, in places of the grid of dyadic(), not too close to each other. */
System dyadicIons(const Mat3& box, int n, std::uint64_t seed)
{
    System s = ions(box, n, seed);
    std::transform(s.x.begin(), s.x.end(), s.x.begin(), dyadic);
    return s;
}

/* The same lattice by vectors of up to about `longest`. */
Mat3 otherVectors(Mat3 box, Random* random, double longest)
{
    double now = 0;
    while (now < longest)
    {
        const int i = static_cast<int>(3 * random->uniform()), j = (i + 1 + (random->uniform() < 0.5)) % 3;
        const int times = integer(random, 5);
        now             = 0;
        for (int d = 0; d < 3; d++)
        {
            box[static_cast<std::size_t>(3 * i + d)] += times * box[static_cast<std::size_t>(3 * j + d)];
        }
        for (std::size_t k = 0; k < 3; k++)
        {
            now = std::max(now, std::hypot(box[3 * k], box[3 * k + 1], box[3 * k + 2]));
        }
    }
    return box;
}

/* Each particle in an image up to `most` boxes away along each vector. */
std::vector<double> inImages(const System& s, Random* random, int most)
{
    std::vector<double> x = s.x;
    for (std::size_t i = 0; i < s.size(); i++)
    {
        for (std::size_t v = 0; v < 3; v++)
        {
            const double k = integer(random, most);
            for (std::size_t d = 0; d < 3; d++)
            {
                x[3 * i + d] += k * s.box[3 * v + d];
            }
        }
    }
    return x;
}

struct Made
{
    Made(const System& s, const gmxfmm_options& options)
    {
        const SystemView    system(s, Boundary::Tinfoil);
        const gmxfmm_system view      = system.get();
        char                text[512] = "";
        tried.fill(sized<gmxfmm_measurement>());
        status  = gmxfmm_create_measured(&made, &options, &view, &chosen, tried.data(), &num, text, sizeof(text));
        message = text;
        plan    = made != nullptr ? std::make_unique<Plan>(s, made) : nullptr;
    }
    /* Of the most expensive settings that were tried: products of the convolution, and pairs. */
    double mostWork(double n) const
    {
        double most = 0;
        for (int i = 0; i < num; i++)
        {
            const gmxfmm_measurement& m     = tried[static_cast<std::size_t>(i)];
            const double              cells = static_cast<double>(m.grid[0]) * m.grid[1] * m.grid[2];
            most = std::max(most, cells * std::pow(m.order + 1, 4) + 27 * m.separation * n * n / cells);
        }
        return most;
    }

    gmxfmm_plan*                       made = nullptr;
    std::unique_ptr<Plan>              plan;
    gmxfmm_status                      status;
    std::string                        message;
    gmxfmm_measurement                 chosen = sized<gmxfmm_measurement>();
    std::array<gmxfmm_measurement, 32> tried;
    int                                num = 32;
};

gmxfmm_options onTheCpu(double asked, gmxfmm_precision precision)
{
    gmxfmm_options options = askedOptions(asked, precision);
    options.device         = GMXFMM_CPU; /* references of high orders */
    return options;
}

} // namespace

/* Settings that were tried are counted, not seconds. Before, cells 1 x 10 x 56 at order 40 were tried for 250 charges,
 * whose sums took 80 s. */
TEST(UnreducedBoxes, HaveTheChoiceOfTheReducedOne)
{
    int refused = 0;
    for (std::uint64_t seed = 0; seed < 100; seed++)
    {
        SCOPED_TRACE(seed);
        Random         random(9000 + seed);
        const int      n       = 30 + 2 * static_cast<int>(60 * random.uniform());
        const double   asked   = std::pow(10, -3 - 4 * random.uniform());
        System         reduced = dyadicIons(dyadicBox(&random, seed % 4 == 0), n, seed);
        System         given   = reduced;
        gmxfmm_options options = onTheCpu(asked, GMXFMM_DOUBLE);
        options.reproducible   = seed % 2 == 0;
        given.box              = otherVectors(reduced.box, &random, 10 + 90 * random.uniform());
        const Made by_long(given, options), by_short(reduced, options);
        refused += by_long.status != GMXFMM_OK;
        if (by_long.status != GMXFMM_OK)
        {
            EXPECT_EQ(by_long.status, GMXFMM_ERROR_OPTION) << by_long.message;
            continue;
        }
        const Solution sum = ewald(reduced);
        EXPECT_LE(relativeRms(by_long.plan->execute(given.x).force, sum.force), asked);
        /* other vectors of the same length lead to other cells, times to others of them */
        EXPECT_LE(by_long.mostWork(n), 10 * by_short.mostWork(n));
    }
    EXPECT_LE(refused, 1);
}

struct Images : testing::TestWithParam<std::tuple<gmxfmm_m2l, gmxfmm_precision>>
{
};

/* Up to a million boxes away; auto, too. */
TEST_P(Images, ReachWhatWasAsked)
{
    const auto [m2l, precision] = GetParam();
    const bool slow             = m2l == GMXFMM_M2L_SYMMETRIC || m2l == GMXFMM_M2L_NAIVE;
    int        refused          = 0;
    for (std::uint64_t seed = 0; seed < 10; seed++)
    {
        SCOPED_TRACE(seed);
        Random     random(100 * static_cast<std::uint64_t>(m2l) + seed);
        const bool tree = m2l != GMXFMM_M2L_AUTO && m2l != GMXFMM_M2L_FFT;
        /* the slow methods take a minute for eight digits in ten systems */
        const double asked     = precision == GMXFMM_SINGLE ? 1e-4 : !slow ? 1e-10 : seed < 2 ? 1e-8 : 1e-5;
        System       s         = dyadicIons(dyadicBox(&random, tree), slow ? 40 : 60, seed);
        const Mat3   box       = s.box;
        s.box                  = seed % 2 == 0 ? s.box : otherVectors(s.box, &random, tree ? 12 : 30);
        const Solution sum     = ewald({box, s.x, s.q, {}});
        s.x                    = inImages(s, &random, 1 << (seed % 3 == 0 ? 10 : 20));
        gmxfmm_options options = onTheCpu(asked, precision);
        options.m2l            = m2l;
        const Made made(s, options);
        refused += made.status != GMXFMM_OK;
        if (made.status != GMXFMM_OK)
        {
            EXPECT_EQ(made.status, GMXFMM_ERROR_OPTION) << made.message;
            continue;
        }
        const Result r = made.plan->execute(s.x);
        EXPECT_LE(relativeRms(r.force, sum.force), asked);
        EXPECT_NEAR(r.energy, sum.energy, 10 * asked * std::fabs(sum.energy));
        /* not what was asked, nor far from it */
        EXPECT_LE(maxDifference(r.virial, sum.virial), 100 * asked * std::fabs(sum.energy));
    }
    EXPECT_EQ(refused, 0);
}

/* Assigned in one image, evaluated in another one: the same but for rounding. */
TEST_P(Images, MayBeOthersInEachStep)
{
    const auto [m2l, precision] = GetParam();
    const double   tolerance    = precision == GMXFMM_SINGLE ? 1e-5 : 1e-12;
    Random         random(77);
    System         s       = dyadicIons(dyadicBox(&random, m2l != GMXFMM_M2L_AUTO && m2l != GMXFMM_M2L_FFT), 200, 77);
    gmxfmm_options options = defaultOptions();
    options.precision      = precision;
    options.m2l            = m2l;
    options.order          = 6;
    Plan         plan(s, options);
    const Result at = plan.execute(s.x);
    for (const int most : {1, 20, 1 << 20})
    {
        const Result away = plan.execute(inImages(s, &random, most));
        EXPECT_LE(relativeRms(away.force, at.force), tolerance) << most;
        EXPECT_NEAR(away.energy, at.energy, tolerance * std::fabs(at.energy)) << most;
        EXPECT_LE(maxDifference(away.virial, at.virial), tolerance * std::fabs(at.energy)) << most;
    }
    plan.assign(inImages(s, &random, 1 << 20));
    EXPECT_LE(relativeRms(plan.execute(s.x).force, at.force), tolerance);
}

INSTANTIATE_TEST_SUITE_P(
    Paths,
    Images,
    testing::Combine(
        testing::Values(GMXFMM_M2L_AUTO, GMXFMM_M2L_FFT, GMXFMM_M2L_ROTATION, GMXFMM_M2L_SYMMETRIC, GMXFMM_M2L_NAIVE),
        testing::Values(GMXFMM_DOUBLE, GMXFMM_SINGLE)),
    [](const auto& test)
    {
        return std::string(gmxfmm_m2l_name(std::get<0>(test.param))) +
               (std::get<1>(test.param) == GMXFMM_DOUBLE ? "Double" : "Single");
    });

/* The surface term is of the positions as they were passed. */
TEST(ImagesInVacuum, AreInTheDipole)
{
    Random         random(5);
    System         s       = dyadicIons(dyadicBox(&random, false), 100, 5);
    gmxfmm_options tinfoil = explicitOptions(8, 3, 3, 3, 1), vacuum = tinfoil;
    vacuum.boundary = GMXFMM_VACUUM;
    for (const int most : {1, 1000})
    {
        s.x              = inImages(s, &random, most);
        double dipole[3] = {0, 0, 0};
        for (std::size_t i = 0; i < s.size(); i++)
        {
            for (std::size_t d = 0; d < 3; d++)
            {
                dipole[d] += s.q[i] * s.x[3 * i + d];
            }
        }
        const double pi = std::acos(-1.0);
        const double surface =
            2 * pi / (3 * volume(s.box)) * (dipole[0] * dipole[0] + dipole[1] * dipole[1] + dipole[2] * dipole[2]);
        EXPECT_NEAR(solve(s, vacuum).energy - solve(s, tinfoil).energy, surface, 1e-11 * surface + 1e-9) << most;
    }
}

/* Targets, and the two periodic vectors of slabs. */
TEST(Images, OfTargetsAndInSlabs)
{
    Random random(6);
    System s = dyadicIons(dyadicBox(&random, true), 60, 6);
    for (const int periodic : {3, 2, 1})
    {
        SCOPED_TRACE(periodic);
        gmxfmm_options options = defaultOptions();
        options.precision      = GMXFMM_DOUBLE;
        options.order          = 8;
        for (int d = 0; d < 3 && periodic < 3; d++)
        {
            options.periodic[d] = periodic == 2 ? d < 2 : d == 2;
        }
        std::vector<double> x = s.x, targets = {0.25, 0.5, 0.125, 1, 0.75, 0.5}, far = targets;
        for (std::size_t d = 0; d < 3; d++)
        {
            const bool along = periodic == 3 || options.periodic[d] != 0;
            far[d] += along ? 1000000 * s.box[4 * d] : 0;
            far[3 + d] -= along ? 999999 * s.box[4 * d] : 0;
            for (std::size_t i = d; i < x.size(); i += 3)
            {
                x[i] += along ? integer(&random, 1 << 20) * s.box[4 * d] : 0;
            }
        }
        Plan         plan(s, options);
        const Result at = plan.execute(s.x);
        EXPECT_LE(relativeRms(plan.execute(x).force, at.force), 1e-12);
        EXPECT_LE(relativeRms(valuesAt(plan.get(), s.x, far).field, valuesAt(plan.get(), s.x, targets).field), 1e-12);
    }
}
