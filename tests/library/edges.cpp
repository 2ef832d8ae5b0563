/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where things go wrong: nothing at all, one particle, faces and corners, tiny grids, particles that have left their
 * cell, boxes that change between assigns. */
#include <utility>

#include <omp.h>

#include <gtest/gtest.h>

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

/* Order 14 with two layers truncates below 1e-7 when particles are all over their cells, */
const double truncation = 1e-7;
/* and by a factor of at worst a / (3 - a) = 0.41 an order, 2e-6 in all, when they are all as far from centres as can
 * be: a = sqrt(3)/2 of the edge. */
const double worstTruncation = 1e-5;

int fewCells(const Path& path)
{
    return isSlow(path.m2l) ? 2 : 4;
}

gmxfmm_options fine(const Path& path, int n)
{
    return pathOptions(path, 14, n, 2);
}

gmxfmm_options fine(const Path& path)
{
    return fine(path, fewCells(path));
}

void expectEwald(const Result& r, const System& s, double tolerance)
{
    const Solution reference = ewald(s);
    EXPECT_LT(relativeRms(r.potential, reference.potential), tolerance);
    EXPECT_LT(relativeRms(r.force, reference.force), tolerance);
    EXPECT_NEAR(r.energy, reference.energy, tolerance * std::fabs(reference.energy));
    EXPECT_LT(maxDifference(r.virial, reference.virial), tolerance * std::fabs(reference.energy));
}

bool allZero(const std::vector<double>& values)
{
    for (double v : values)
    {
        if (v != 0) /* true for NaN too */
        {
            return false;
        }
    }
    return true;
}

class Edges : public testing::TestWithParam<Path>
{
  protected:
    Mat3 box() const
    {
        return boxOfVolume(GetParam().box, 64);
    }
    static gmxfmm_options defaults()
    {
        return automatic(GetParam().m2l);
    }
};

} // namespace

TEST_P(Edges, NoParticles)
{
    System s;
    s.box = box();
    for (Boundary boundary : {Boundary::Tinfoil, Boundary::Vacuum, Boundary::Open})
    {
        const Result r = solve(s, withBoundary(defaults(), boundary));
        EXPECT_EQ(r.energy, 0);
        EXPECT_TRUE(allZero(std::vector<double>(r.virial.begin(), r.virial.end())));
        EXPECT_EQ(r.info.num_particles, 0);
    }
}

TEST_P(Edges, OneParticle)
{
    System s;
    s.box = box();
    s.add({0.3, 0.2, 0.1}, 2);
    const Solution reference = ewald(s);
    const Result   r         = solve(s, fine(GetParam()));
    EXPECT_NEAR(r.potential[0], reference.potential[0], truncation);
    EXPECT_NEAR(r.energy, reference.energy, truncation);
    EXPECT_LT(rms(r.force), truncation); /* by symmetry 0 */
    EXPECT_LT(maxDifference(r.virial, reference.virial), truncation);

    const Result open = solve(s, withBoundary(defaults(), Boundary::Open));
    EXPECT_EQ(open.energy, 0);
    EXPECT_TRUE(allZero(open.potential));
    EXPECT_TRUE(allZero(open.force));
}

/* With the defaults, in an otherwise empty box: no particles to choose parameters by. */
TEST_P(Edges, TwoParticles)
{
    System s;
    s.box = box();
    s.add({0.3, 0.2, 0.1}, 1);
    s.add({0.8, 1.2, 2.1}, -1);
    const Solution reference = ewald(s);
    /* on an octree twice as much: what is asked is a mean over many pairs, and this may be one of the worse */
    const double asked = GetParam().m2l == GMXFMM_M2L_FFT ? 4e-4 : 8e-4;
    EXPECT_LT(relativeRms(solve(s, defaults()).force, reference.force), asked);
    EXPECT_LT(relativeRms(solve(s, fine(GetParam())).force, reference.force), truncation);
}

TEST_P(Edges, ChargesThatAreZero)
{
    System s = ions(box(), 60, 1);
    for (std::size_t i = 0; i < s.size(); i += 2)
    {
        s.q[i] = 0;
    }
    const Result r = solve(s, fine(GetParam()));
    expectEwald(r, s, truncation);
    EXPECT_EQ(r.force[0], 0);
    EXPECT_NE(r.potential[0], 0); /* a potential is there without a charge that feels it */

    s.q.assign(s.size(), 0.0);
    const Result nothing = solve(s, fine(GetParam()));
    EXPECT_EQ(nothing.energy, 0);
    EXPECT_TRUE(allZero(nothing.potential));
    EXPECT_TRUE(allZero(nothing.force));
}

/* Particles on corners, edges and faces of the box and of cells, in both kinds of grid: cells centred on the faces of
 * others, and one at every rational place that could be a centre or a corner. */
TEST_P(Edges, ParticlesOnFacesAndCorners)
{
    System s;
    s.box = box();
    Random random(6); /* charges without symmetry, so that there are forces */
    for (int i = 0; i < 64; i++)
    {
        const double a = i % 4 / 4.0, b = i / 4 % 4 / 4.0, c = i / 16 / 4.0;
        s.add(rowTimes({a, b, c}, s.box), random.centred());
    }
    for (int n : {2, 3, 4, 8})
    {
        if (n == 8 && isSlow(GetParam().m2l))
        {
            continue;
        }
        expectEwald(solve(s, fine(GetParam(), n)), s, worstTruncation);
    }
}

TEST_P(Edges, PositionsSeveralImagesAway)
{
    System s = ions(box(), 60, 1);
    Random random(2);
    for (std::size_t i = 0; i < s.size(); i++)
    {
        const double h = std::floor(9 * random.centred()), k = std::floor(9 * random.centred()),
                     l = std::floor(9 * random.centred());
        const Vec3 t   = rowTimes({h, k, l}, s.box);
        for (std::size_t d = 0; d < 3; d++)
        {
            s.x[3 * i + d] += t[d];
        }
    }
    expectEwald(solve(s, fine(GetParam())), s, truncation);
}

/* Just below a face: the fractional coordinate rounds up to 1. */
TEST_P(Edges, PositionsThatRoundOntoTheFarFace)
{
    System s = ions(box(), 60, 1);
    for (std::size_t d = 0; d < 3; d++)
    {
        s.x[d]     = -1e-17;
        s.x[3 + d] = d == 0 ? -1e-300 : 0.7;
    }
    expectEwald(solve(s, fine(GetParam())), s, truncation);
    expectEwald(solve(s, pathOptions(GetParam(), 14, fewCells(GetParam()), 2, GMXFMM_SINGLE)), s, 1e-5);
}

/* A grid of one or two cells has nothing but images of its own in the near set. Such cells are as uneven as the box. */
TEST_P(Edges, TinyGrids)
{
    const System s = ions(box(), 60, 1);
    for (int n : {1, 2})
    {
        SCOPED_TRACE(std::to_string(n));
        expectEwald(solve(s, fine(GetParam(), n)), s, worstTruncation);
    }
}

/* The near list stays complete: at high order the result is exact although particles have moved by 0.15 nm, 0.3 of the
 * edge of a cell, out of the cells they were assigned to, in all directions and through the faces of the box.
 * Expansions reach 1.2 instead of 0.87 edges, so that order 20 truncates below 1e-7 instead of 1e-11. */
TEST_P(Edges, DriftedParticlesAtHighOrder)
{
    System         s       = water(boxOfVolume(GetParam().box, 8), 3);
    gmxfmm_options options = pathOptions(GetParam(), 20, fewCells(GetParam()), 2);
    options.check          = GMXFMM_CHECK_REPORT; /* it is, without one, an error */
    Plan   plan(s, options);
    Random random(5);
    System moved = s;
    for (std::size_t i = 0; i < s.size(); i += 3)
    {
        const Vec3 u = random.direction(); /* whole molecules, so that exclusions keep their images */
        for (std::size_t d = 0; d < 9; d++)
        {
            moved.x[3 * i + d] += 0.15 * u[d % 3];
        }
    }
    const Solution reference = ewald(moved);
    EXPECT_LT(relativeRms(plan.execute(moved.x).force, reference.force), 1e-7);
}

/* At default accuracy: expansions reach 0.15 nm further than half the diagonal of a cell, which costs up to the ratio
 * of the two to the power of order + 1 when every particle drifts as far as this: 15 at order 8 in cells of 0.5 nm. */
TEST_P(Edges, DriftedParticlesAtDefaultAccuracy)
{
    System         s       = water(boxOfVolume(GetParam().box, 12), 3);
    gmxfmm_options options = defaults();
    options.check          = GMXFMM_CHECK_REPORT; /* it is, without one, an error */
    Plan   plan(s, options);
    Random random(5);
    System moved = s;
    for (std::size_t i = 0; i < s.size(); i += 3)
    {
        const Vec3 u = random.direction();
        for (std::size_t d = 0; d < 9; d++)
        {
            moved.x[3 * i + d] += 0.15 * u[d % 3];
        }
    }
    const double      before = relativeRms(plan.execute(s.x).force, ewald(s).force);
    const gmxfmm_info info   = plan.info();
    double            edge   = std::cbrt(12.0 / (info.grid[0] * info.grid[1] * info.grid[2]));
    for (std::size_t d = 0; d < 3; d++) /* the shortest */
    {
        const double* row = &s.box[3 * d];
        edge = std::fmin(edge, std::sqrt(row[0] * row[0] + row[1] * row[1] + row[2] * row[2]) / info.grid[d]);
    }
    const double growth = std::pow(1 + 0.15 / (0.5 * std::sqrt(3.0) * edge), info.order + 1);
    EXPECT_LT(relativeRms(plan.execute(moved.x).force, ewald(moved).force), growth * before);
}

/* The box is scaled, particles with it, without a new assign: free, so no spectra are computed again. */
TEST_P(Edges, BoxScaledBetweenAssigns)
{
    const System s = ions(box(), 60, 1);
    Plan         plan(s, fine(GetParam()));
    plan.execute(s.x);
    const std::int64_t spectra = plan.info().num_spectra;
    for (double scale : {1.02, 0.97, 2.0})
    {
        const System scaled = strained(s, {scale - 1, 0, 0, 0, scale - 1, 0, 0, 0, scale - 1});
        plan.setBox(scaled.box);
        expectEwald(plan.execute(scaled.x), scaled, truncation);
    }
    EXPECT_EQ(plan.info().num_spectra, spectra);
}

TEST_P(Edges, BoxOfAnotherShapeBetweenAssigns)
{
    const System s = ions(box(), 60, 1);
    Plan         plan(s, fine(GetParam()));
    plan.execute(s.x);
    const std::int64_t spectra = plan.info().num_spectra;
    const bool         octree  = GetParam().m2l != GMXFMM_M2L_FFT; /* takes right angles only */
    for (const Mat3& strain :
         {Mat3{0.02, 0, 0, 0, -0.01, 0, 0, 0, 0.03},
          octree ? Mat3{-0.01, 0, 0, 0, 0.02, 0, 0, 0, 0} : Mat3{0.01, 0, 0, 0.02, -0.01, 0, -0.01, 0.02, 0}})
    {
        const System deformed = strained(s, strain);
        plan.setBox(deformed.box);
        expectEwald(plan.execute(deformed.x), deformed, truncation);
    }
    EXPECT_EQ(plan.info().num_spectra, spectra + 2);
    /* and back, with a new assign */
    plan.setBox(s.box);
    plan.assign(s.x);
    expectEwald(plan.execute(s.x), s, truncation);
}

INSTANTIATE_TEST_SUITE_P(Paths, Edges, testing::ValuesIn(paths()), pathName);

/* Very unequal cells need larger near sets than even ones or are refused; what is computed converges in any case. */
class UnequalGrids : public testing::TestWithParam<BoxType>
{
};

TEST_P(UnequalGrids, ConvergeOrAreRefused)
{
    const System   s         = ions(boxOfVolume(GetParam(), 64), 60, 1);
    const Solution reference = ewald(s);
    for (const std::array<int, 3>& cells :
         {std::array<int, 3>{2, 1, 3}, std::array<int, 3>{1, 1, 4}, std::array<int, 3>{7, 3, 5}})
    {
        SCOPED_TRACE(std::to_string(cells[0]) + " " + std::to_string(cells[1]) + " " + std::to_string(cells[2]));
        const gmxfmm_options options = explicitOptions(4, cells, 1);
        gmxfmm_plan*         plan    = nullptr;
        const gmxfmm_status  status  = gmxfmm_create(&plan, &options, 60, s.box.data(), nullptr, 0);
        gmxfmm_destroy(plan);
        if (status == GMXFMM_ERROR_OPTION)
        {
            continue;
        }
        const double low  = relativeRms(solve(s, options).force, reference.force);
        const double high = relativeRms(solve(s, explicitOptions(20, cells, 1)).force, reference.force);
        EXPECT_LT(high, 0.3 * low);
        EXPECT_LT(high, 0.1);
    }
}

INSTANTIATE_TEST_SUITE_P(Boxes, UnequalGrids, testing::ValuesIn(boxTypes()), boxName);

class EdgesOfMethod : public testing::TestWithParam<gmxfmm_m2l>
{
  protected:
    Path path() const
    {
        return {GetParam(), boxTypes()[GetParam() == GMXFMM_M2L_FFT ? 2 : 0]};
    }
};

/* Box and particles change their number and place in one plan. */
TEST_P(EdgesOfMethod, PlanTakesAnotherNumberOfParticles)
{
    const System first = ions(boxOfVolume(path().box, 64), 60, 1);
    Plan         plan(first, fine(path()));
    plan.execute(first.x);
    for (int n : {90, 10, 1, 0, 60})
    {
        const System        s = ions(first.box, n, 1);
        std::vector<double> force(3 * s.size() + 3);
        gmxfmm_output       output = sized<gmxfmm_output>();
        output.force               = force.data();
        ASSERT_EQ(gmxfmm_set_charges(plan.get(), n, s.q.data()), GMXFMM_OK);
        ASSERT_EQ(gmxfmm_assign(plan.get(), s.x.data()), GMXFMM_OK);
        ASSERT_EQ(gmxfmm_execute(plan.get(), s.x.data(), &output), GMXFMM_OK) << gmxfmm_message(plan.get());
        EXPECT_LT(rmsDifference(force,
                                [&]
                                {
                                    std::vector<double> f = ewald(s).force;
                                    f.resize(force.size());
                                    return f;
                                }()),
                  truncation);
    }
}

/* Charges of the same number come to particles where they are, and pairs stay excluded; a net charge may come, too. */
TEST_P(EdgesOfMethod, OtherChargesNeedNoAssign)
{
    System       s    = ions(boxOfVolume(path().box, 64), 60, 1);
    const auto   some = pathOptions(path(), 5, 4, 1);
    const System was  = (s.exclude(3, 7), s.exclude(11, farthestFrom(s, 11)), s);
    Plan         plan(was, some);
    const Result before = plan.execute(s.x);
    for (std::size_t i = 0; i < s.size(); i++)
    {
        s.q[i] = 0.5 + std::sin(static_cast<double>(i));
    }
    ASSERT_EQ(gmxfmm_set_charges(plan.get(), static_cast<std::int64_t>(s.size()), s.q.data()), GMXFMM_OK);
    const Result r = plan.execute(s.x), expected = solve(s, some);
    EXPECT_LT(relativeRms(r.potential, expected.potential), 1e-13);
    EXPECT_LT(relativeRms(r.force, expected.force), 1e-13);
    EXPECT_NEAR(r.energy, expected.energy, 1e-13 * std::fabs(expected.energyNear));
    EXPECT_GT(relativeRms(r.force, before.force), 0.1);
}

/* Single-precision arrays hold what double arrays hold, rounded: with an arithmetic that is exact at this scale. */
TEST_P(EdgesOfMethod, FloatArraysHoldTheSame)
{
    System             s = ions(boxOfVolume(path().box, 64), 60, 1);
    std::vector<float> x(s.x.begin(), s.x.end()), q(s.q.begin(), s.q.end());
    s.x.assign(x.begin(), x.end());
    const Solution reference = ewald(s);
    for (gmxfmm_precision precision : {GMXFMM_SINGLE, GMXFMM_DOUBLE})
    {
        gmxfmm_options options  = pathOptions(path(), 14, 4, 2, precision);
        options.array_type      = GMXFMM_SINGLE;
        gmxfmm_plan*       plan = nullptr;
        std::vector<float> potential(s.size()), field(3 * s.size()), force(3 * s.size());
        gmxfmm_output      output = sized<gmxfmm_output>();
        output.potential          = potential.data();
        output.field              = field.data();
        output.force              = force.data();
        ASSERT_EQ(gmxfmm_create(&plan, &options, static_cast<std::int64_t>(s.size()), s.box.data(), nullptr, 0),
                  GMXFMM_OK);
        EXPECT_EQ(gmxfmm_set_charges(plan, static_cast<std::int64_t>(s.size()), q.data()), GMXFMM_OK);
        EXPECT_EQ(gmxfmm_assign(plan, x.data()), GMXFMM_OK);
        EXPECT_EQ(gmxfmm_execute(plan, x.data(), &output), GMXFMM_OK);
        gmxfmm_destroy(plan);
        /* rounding of single precision; the outputs alone when the arithmetic is double */
        const double tolerance = precision == GMXFMM_DOUBLE ? 2e-7 : 1e-5;
        EXPECT_LT(relativeRms(std::vector<double>(potential.begin(), potential.end()), reference.potential), tolerance);
        EXPECT_LT(relativeRms(std::vector<double>(field.begin(), field.end()), reference.field), tolerance);
        EXPECT_LT(relativeRms(std::vector<double>(force.begin(), force.end()), reference.force), tolerance);
    }
}

/* Coordinates far from the origin lose digits in single precision only through the input, not through the library: the
 * difference to the cell centre is taken before rounding. */
TEST_P(EdgesOfMethod, LargeBoxInSinglePrecision)
{
    System s = ions({40, 0, 0, 0, 40, 0, 0, 0, 40}, 500, 1);
    for (std::size_t i = 0; i < 250; i++) /* pairs 0.01 apart somewhere in a box of 40 */
    {
        std::copy(&s.x[3 * i], &s.x[3 * i] + 3, &s.x[3 * (i + 250)]);
        s.x[3 * (i + 250)] += 0.01;
        s.q[i]       = 1;
        s.q[i + 250] = -1;
    }
    const Solution reference = ewald(s);
    /* positions within cells of 8 have an ulp of 5e-7, of a distance of 0.01: 5e-5, twice in a force */
    EXPECT_LT(relativeRms(solve(s, methodOptions(GetParam(), 10, 5, 2, GMXFMM_SINGLE)).force, reference.force), 2e-4);
}

/* The same bits in every run, on demand. */
TEST_P(EdgesOfMethod, ReproducibleGivesTheSameBits)
{
    const System   s       = ions(boxOfVolume(path().box, 200), 200, 1);
    gmxfmm_options options = pathOptions(path(), 6, 5, 1, GMXFMM_SINGLE);
    options.reproducible   = 1;
    const Result a = solve(s, options), b = solve(s, options);
    EXPECT_EQ(a.force, b.force);
    EXPECT_EQ(a.potential, b.potential);
    EXPECT_EQ(a.energy, b.energy);
    EXPECT_EQ(a.virial, b.virial);
}

/* Threads change nothing but the order of sums. */
TEST_P(EdgesOfMethod, ThreadsDoNotChangeTheResult)
{
    const System   s       = ions(boxOfVolume(path().box, 200), 200, 1);
    gmxfmm_options options = pathOptions(path(), 6, 5, 1);
    options.num_threads    = 1;
    const Result one       = solve(s, options);
    for (int threads : {2, 3, 7})
    {
        options.num_threads = threads;
        const Result r      = solve(s, options);
        EXPECT_EQ(r.info.num_threads, threads);
        EXPECT_LT(relativeRms(r.force, one.force), 1e-13);
        EXPECT_NEAR(r.energy, one.energy, 1e-13 * std::fabs(one.energy));
        EXPECT_LT(maxDifference(r.virial, one.virial), 1e-12 * std::fabs(one.energy));
    }
}

namespace
{

/* Threads of a plan that may have eight, for n ions: as created for so many, and as assigned. */
std::pair<int, int> automaticThreads(gmxfmm_options options, std::int64_t expected, const System& s)
{
    const int before = omp_get_max_threads();
    omp_set_num_threads(8);
    char         text[256] = "";
    gmxfmm_plan* plan      = nullptr;
    gmxfmm_info  info      = sized<gmxfmm_info>();
    EXPECT_EQ(gmxfmm_create(&plan, &options, expected, s.box.data(), text, sizeof(text)), GMXFMM_OK) << text;
    omp_set_num_threads(before);
    gmxfmm_get_info(plan, &info);
    const int created = info.num_threads;
    EXPECT_EQ(gmxfmm_set_charges(plan, static_cast<std::int64_t>(s.size()), s.q.data()), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_assign(plan, s.x.data()), GMXFMM_OK) << gmxfmm_message(plan);
    std::vector<double> force(s.x.size());
    gmxfmm_output       output = sized<gmxfmm_output>();
    output.force               = force.data();
    EXPECT_EQ(gmxfmm_execute(plan, s.x.data(), &output), GMXFMM_OK) << gmxfmm_message(plan);
    gmxfmm_get_info(plan, &info);
    gmxfmm_destroy(plan);
    return {created, info.num_threads};
}

} // namespace

/* A thread that has less to do in a step than waking it takes is left out, unless it was asked for. The numbers of
 * particles are far from where that changes. */
TEST(AutomaticThreads, AreAsManyAsHaveSomethingToDo)
{
    const System small = ions(boxOfVolume(boxTypes()[0], 20), 20, 1);
    const System large = ions(boxOfVolume(boxTypes()[0], 3000), 3000, 1);
    for (gmxfmm_method method : {GMXFMM_FMM, GMXFMM_TREECODE})
    {
        gmxfmm_options options =
            method == GMXFMM_FMM ? defaultOptions() : withBoundary(defaultOptions(), Boundary::Open);
        options.method      = method;
        options.num_threads = GMXFMM_AUTO;
        const auto pair     = [](int created, int assigned) { return std::make_pair(created, assigned); };
        EXPECT_EQ(automaticThreads(options, 20, small), pair(1, 1));
        EXPECT_EQ(automaticThreads(options, 3000, large), pair(8, 8));
        EXPECT_EQ(automaticThreads(options, 20, large), pair(1, 8)) << "more than were expected";
        EXPECT_EQ(automaticThreads(options, 3000, small), pair(8, 1)) << "fewer than were expected";
        EXPECT_EQ(automaticThreads(options, 0, small), pair(8, 1)) << "nothing was said";
        options.num_threads = 3;
        EXPECT_EQ(automaticThreads(options, 20, small), pair(3, 3)) << "asked for";
    }
}

INSTANTIATE_TEST_SUITE_P(Methods, EdgesOfMethod, testing::ValuesIn(methods()), methodName);
