/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What m2l = auto takes at the first assign, and when an open system spreads: the octree where particles leave much of
 * their box empty, by the costs of a CPU or of a GPU; the fft path elsewhere. */
#include <algorithm>
#include <cmath>
#include <memory>
#include <tuple>

#include <gtest/gtest.h>

#include "support/cuda.h"
#include "support/direct.h"
#include "support/norms.h"
#include "support/partly_periodic.h"
#include "support/suites.h"
#include "support/systems.h"

extern "C"
{
#include "fmm/cpu/costs.h"
#include "fmm/model/tune.h"
#include "fmm/plan.h"
#include "fmm/simd_level.h"
#ifdef GMXFMM_TESTS_CUDA
#    include "cuda/costs.h"
#endif
}

using namespace fmmtest;

namespace
{

/* Charges in balls of radius r, at places of a cubic grid in a cube. */
System balls(int along, int n, double r, double edge)
{
    System s;
    Random random(3);
    s.box = {edge, 0, 0, 0, edge, 0, 0, 0, edge};
    for (int ball = 0; ball < along * along * along; ball++)
    {
        const Vec3 centre = {(ball % along + 0.5) * edge / along, (ball / along % along + 0.5) * edge / along,
                             (ball / along / along + 0.5) * edge / along};
        for (int i = 0; i < n; i++)
        {
            const Vec3   d      = random.direction();
            const double radius = r * std::cbrt(random.uniform());
            s.add({centre[0] + radius * d[0], centre[1] + radius * d[1], centre[2] + radius * d[2]}, i % 2 ? 1 : -1);
        }
    }
    return s;
}

/* Everywhere in the box. */
System full(int n, const Mat3& box)
{
    System s;
    Random random(3);
    s.box = box;
    scatter(&s, n, {0, 0, 0}, {box[0], box[4], box[8]}, &random);
    return s;
}

/* 100,000 charges in a cube of which they fill 1e-4. */
System sparse()
{
    return balls(3, 3704, 1, 100);
}

gmxfmm_options automaticOptions(gmxfmm_device device, gmxfmm_precision precision)
{
    gmxfmm_options options;
    gmxfmm_default_options(&options);
    options.device    = device;
    options.precision = precision;
    return options;
}

/* Those of a GPU, in pairs of its near field (H200), which builds for the CPU alone do not have. */
fmm_costs costsOfGpu()
{
    fmm_costs c                 = {};
    c.pair                      = 1;
    c.pair_double               = 2;
    c.cell                      = 2500;
    c.coefficient               = 1;
    c.fft_two_steps             = 14;
    c.fft_other                 = 24;
    c.point                     = 0.14;
    c.level                     = 7.2e7;
    c.most_places               = 1 << 27;
    c.adapts                    = 1;
    c.last_order[GMXFMM_SINGLE] = c.last_order[GMXFMM_DOUBLE] = 20;
    for (const gmxfmm_m2l m2l : {GMXFMM_M2L_AUTO, GMXFMM_M2L_FFT, GMXFMM_M2L_ROTATION})
    {
        c.translation[m2l] = 0.94 / 0.8;
    }
    c.translation[GMXFMM_M2L_SYMMETRIC] = 2.9 / 0.8;
    c.translation[GMXFMM_M2L_DYNAMIC]   = 68 / 0.8;
    c.translation[GMXFMM_M2L_NAIVE]     = 13 / 0.8;
    return c;
}

/* The choice itself, which needs no device. */
class Choice
{
  public:
    Choice(const System& s, const Mat3& box, gmxfmm_device device, gmxfmm_precision precision)
        : options_(automaticOptions(device, precision)), costs_(device == GMXFMM_CPU ? fmm_costs_cpu : costsOfGpu()),
          x_(s.x), box_(box)
    {
        problem_.options = &options_;
        problem_.costs   = &costs_;
        std::fill(problem_.periodic, problem_.periodic + 3, 1);
        problem_.num_threads  = 1;
        problem_.level        = fmm_simd_level();
        problem_.n            = static_cast<std::int64_t>(s.size());
        problem_.box          = box_.data();
        problem_.message      = message_;
        problem_.message_size = sizeof(message_);
    }
    Choice(const Choice&)            = delete;
    Choice& operator=(const Choice&) = delete;

    /* Cells as for a box that is full, or the octree compared with them. */
    fmm_choice made() const
    {
        fmm_choice cells = {}, tree = {};
        double     gain   = 0;
        int        better = 0;
        EXPECT_EQ(fmm_tune(&problem_, nullptr, nullptr, &cells), GMXFMM_OK) << message_;
        EXPECT_EQ(fmm_compare_tree(&problem_, x_.data(), nullptr, nullptr, &cells, &gain, &better, &tree), GMXFMM_OK)
            << message_;
        return better ? tree : cells;
    }
    /* The same of a slab. */
    fmm_choice madeOfSlab()
    {
        double     low[3] = {0, 0, INFINITY}, high[3] = {0, 0, -INFINITY}, gain = 0;
        fmm_choice cells = {}, tree = {};
        int        better    = 0;
        problem_.periodic[2] = 0;
        for (std::size_t i = 2; i < x_.size(); i += 3)
        {
            low[2]  = std::min(low[2], x_[i]);
            high[2] = std::max(high[2], x_[i]);
        }
        EXPECT_EQ(fmm_tune(&problem_, low, high, &cells), GMXFMM_OK) << message_;
        EXPECT_EQ(fmm_compare_tree(&problem_, x_.data(), low, high, &cells, &gain, &better, &tree), GMXFMM_OK)
            << message_;
        return better ? tree : cells;
    }
    /* Cells or leaves of it. */
    double places() const
    {
        const fmm_choice choice = made();
        return static_cast<double>(choice.grid[0]) * choice.grid[1] * choice.grid[2];
    }
    void withoutLimit()
    {
        costs_.most_places = INFINITY;
    }

  private:
    gmxfmm_options      options_;
    fmm_costs           costs_;
    std::vector<double> x_;
    Mat3                box_;
    char                message_[256] = "";
    fmm_problem         problem_      = {};
};

/* What a plan on the CPU takes is that choice. */
gmxfmm_m2l chosen(const System& s, gmxfmm_device device, gmxfmm_precision precision)
{
    const fmm_choice choice = Choice(s, s.box, device, precision).made();
    if (device == GMXFMM_CPU)
    {
        Plan              plan(withoutExclusions(s), automaticOptions(device, precision));
        const gmxfmm_info info = plan.info();
        EXPECT_EQ(info.m2l, choice.m2l);
        EXPECT_EQ(info.order, choice.order);
        EXPECT_TRUE(std::equal(info.grid, info.grid + 3, choice.grid));
    }
    return choice.m2l;
}

class AutomaticMethod : public testing::TestWithParam<gmxfmm_precision>
{
};

} // namespace

TEST_P(AutomaticMethod, OctreeForDropsInALargeBox)
{
    EXPECT_EQ(chosen(sparse(), GMXFMM_CUDA, GetParam()), GMXFMM_M2L_ROTATION);
    EXPECT_EQ(chosen(sparse(), GMXFMM_CPU, GetParam()), GMXFMM_M2L_ROTATION);
    /* a million that fill 2 % of the box, where a grid chosen as for a full one is 2.5 times as slow
     * (benchmarks/results/nvidia-h200/mdrun.json, droplets) */
    EXPECT_EQ(chosen(balls(2, 125001, 6.7, 80), GMXFMM_CUDA, GetParam()), GMXFMM_M2L_ROTATION);
}

TEST_P(AutomaticMethod, FftForFullBoxes)
{
    const System liquid = water({3, 0, 0, 0, 3, 0, 0, 0, 2.5}, 5);
    for (gmxfmm_device device : {GMXFMM_CUDA, GMXFMM_CPU})
    {
        for (int n : {1, 300, 20000, 100000})
        {
            EXPECT_EQ(chosen(full(n, {5, 0, 0, 0, 5, 0, 0, 0, 5}), device, GetParam()), GMXFMM_M2L_FFT) << n;
        }
        EXPECT_EQ(chosen(full(20000, {5, 0, 0, 0, 7, 0, 0, 0, 17}), device, GetParam()), GMXFMM_M2L_FFT);
        EXPECT_EQ(chosen(liquid, device, GetParam()), GMXFMM_M2L_FFT);
    }
}

/* Particles are counted, and charges and excluded pairs looked at, by all threads. */
TEST_P(AutomaticMethod, IsTheSameWithAnyNumberOfThreads)
{
    auto         options = automaticOptions(GMXFMM_CPU, GetParam());
    const System s       = balls(2, 2000, 2, 10);
    double       gain[2];
    for (int i = 0; i < 2; i++)
    {
        options.num_threads = i == 0 ? 1 : 3;
        Plan plan(s, options);
        plan.assign(s.x);
        gain[i] = fmm_tree_gain(plan.get());
    }
    EXPECT_GT(gain[0], 0);
    EXPECT_EQ(gain[0], gain[1]);
}

/* Errors that the model has predicted for cells of the same shape are not asked for again: by an octree as by cells of
 * one level, which have other near sets in long bricks. */
TEST_P(AutomaticMethod, IsTheSameWithErrorsThatAreKnown)
{
    const auto known   = std::make_unique<fmm_known_errors>();
    const Mat3 boxes[] = {{5, 0, 0, 0, 5, 0, 0, 0, 5}, {3, 0, 0, 0, 4, 0, 0, 0, 9}, {5, 0, 0, 1, 5, 0, 1, 2, 5}};
    int        made    = 0;
    auto       options = automaticOptions(GMXFMM_CPU, GetParam());
    for (const Mat3& box : boxes)
    {
        for (const auto& [accuracy, ws, grid, m2l] :
             {std::tuple{4e-4, 1, GMXFMM_AUTO, GMXFMM_M2L_FFT}, std::tuple{4e-4, 1, GMXFMM_AUTO, GMXFMM_M2L_ROTATION},
              std::tuple{1e-2, 1, 4, GMXFMM_M2L_FFT}, std::tuple{1e-2, 1, 4, GMXFMM_M2L_ROTATION},
              std::tuple{1e-2, 2, GMXFMM_AUTO, GMXFMM_M2L_FFT}, std::tuple{1e-5, 2, GMXFMM_AUTO, GMXFMM_M2L_FFT}})
        {
            gmxfmm_plan *alone = nullptr, *knowing = nullptr;
            options.accuracy   = accuracy;
            options.separation = ws;
            options.m2l        = m2l;
            options.grid[0] = options.grid[1] = grid;
            options.grid[2]                   = grid > 0 ? grid / 2 : grid; /* in a cube bricks of 1 : 1 : 2 */
            const auto status                 = gmxfmm_create(&alone, &options, 3000, box.data(), nullptr, 0);
            ASSERT_EQ(fmm_create_with_errors(&knowing, &options, 3000, box.data(), 0, known.get(), nullptr, nullptr, 0),
                      status);
            if (status == GMXFMM_OK)
            {
                gmxfmm_info a = sized<gmxfmm_info>(), b = sized<gmxfmm_info>();
                gmxfmm_get_info(alone, &a);
                gmxfmm_get_info(knowing, &b);
                EXPECT_EQ(a.order, b.order);
                EXPECT_TRUE(std::equal(a.grid, a.grid + 3, b.grid));
                /* points that the model samples bricks with: 3 % between those whose edges are interchanged */
                EXPECT_NEAR(a.predicted_error, b.predicted_error, 0.05 * a.predicted_error);
                made++;
            }
            gmxfmm_destroy(alone);
            gmxfmm_destroy(knowing);
        }
    }
    EXPECT_GT(known->num, 3);
    EXPECT_GE(made, 12);
}

/* A few hundred charges have all pairs met in less time than an octree's levels take. */
TEST_P(AutomaticMethod, FftForFewChargesOnADevice)
{
    EXPECT_EQ(chosen(balls(2, 100, 1, 15), GMXFMM_CUDA, GetParam()), GMXFMM_M2L_FFT);
}

/* The grid of leaves has a place for every leaf there might be: beyond some 1e8 there is no room for it. */
TEST_P(AutomaticMethod, OctreesOfADeviceHaveRoom)
{
    for (const auto& [radius, height] : {std::pair{0.3, 100.0}, std::pair{0.5, 700.0}})
    {
        Choice choice(balls(3, 3704, radius, 100), {100, 0, 0, 0, 100, 0, 0, 0, height}, GMXFMM_CUDA, GetParam());
        EXPECT_EQ(choice.made().m2l, GMXFMM_M2L_ROTATION);
        EXPECT_LE(choice.places(), 1.4e8);
        choice.withoutLimit();
        EXPECT_GT(choice.places(), 1.4e8) << "there would be room for all of them";
    }
}

/* The same of a slab: a film, two films far apart, and an ion that flies off. */
TEST_P(AutomaticMethod, OctreeForASlabThatSpreads)
{
    auto options        = automaticOptions(GMXFMM_CPU, GetParam());
    options.periodic[0] = options.periodic[1] = 1;
    System     film                           = withoutExclusions(ions({4, 0, 0, 0, 4, 0, 0, 0, 2}, 250, 4));
    System     films                          = ions({8, 0, 0, 0, 8, 0, 0, 0, 2}, 3000, 4);
    Plan       plan(film, options);
    const auto first = plan.execute(film.x).info;
    EXPECT_EQ(first.m2l, GMXFMM_M2L_FFT);
    for (std::size_t i = 0; i < films.size(); i++)
    {
        films.x[3 * i + 2] += films.x[3 * i + 2] > 1 ? 90 : 0;
    }
    EXPECT_EQ(solve(films, options).info.m2l, GMXFMM_M2L_ROTATION);
    for (const double way : {2.1, 80.0, 81.0, 95.0})
    {
        SCOPED_TRACE(way);
        film.x[2] = way;
        plan.assign(film.x);
        const Result r = plan.execute(film.x);
        EXPECT_EQ(r.info.m2l, way < 3 ? GMXFMM_M2L_FFT : GMXFMM_M2L_ROTATION);
        EXPECT_LE(relativeRms(r.force, slabSum(film).force), options.accuracy);
    }
}

TEST_P(AutomaticMethod, OctreeForFilmsFarApart)
{
    const Mat3 box   = {40, 0, 0, 0, 40, 0, 0, 0, 40};
    System     films = full(400000, {40, 0, 0, 0, 40, 0, 0, 0, 4});
    for (const gmxfmm_device device : {GMXFMM_CUDA, GMXFMM_CPU})
    {
        EXPECT_EQ(Choice(films, box, device, GetParam()).madeOfSlab().m2l, GMXFMM_M2L_FFT);
    }
    for (std::size_t i = 0; i < films.size(); i++)
    {
        films.x[3 * i + 2] += films.x[3 * i + 2] > 2 ? 400 : 0;
    }
    for (const gmxfmm_device device : {GMXFMM_CUDA, GMXFMM_CPU})
    {
        EXPECT_EQ(Choice(films, box, device, GetParam()).madeOfSlab().m2l, GMXFMM_M2L_ROTATION);
    }
}

/* Ions that fly off leave cells empty, until an octree is cheaper; charges that only move do not change the choice. */
TEST_P(AutomaticMethod, OctreeForAnOpenSystemThatSpreads)
{
    auto options     = automaticOptions(GMXFMM_CPU, GetParam());
    options.boundary = GMXFMM_OPEN;
    System s         = droplet(1000, 1, 4);
    Plan   plan(s, options);
    EXPECT_EQ(plan.execute(s.x).info.m2l, GMXFMM_M2L_FFT);
    gmxfmm_info info = plan.info();
    for (double way : {1.1, 30.0, 31.0, 60.0})
    {
        SCOPED_TRACE(way);
        s.x[0] = way;
        s.x[4] = -way;
        plan.assign(s.x);
        const Result r = plan.execute(s.x);
        EXPECT_EQ(r.info.m2l, way < 2 ? GMXFMM_M2L_FFT : GMXFMM_M2L_ROTATION);
        EXPECT_LE(relativeRms(r.force, directSum(s).force), options.accuracy);
        EXPECT_LT(r.info.bytes, way < 2 ? INFINITY : 4.0 * static_cast<double>(info.bytes));
    }
}

/* As a continued run needs it, which does not know where the particles have been. */
TEST_P(AutomaticMethod, ReproducibleForgetsWhereAnOpenSystemWas)
{
    auto options         = automaticOptions(GMXFMM_CPU, GetParam());
    options.boundary     = GMXFMM_OPEN;
    options.reproducible = 1;
    const System start   = droplet(300, 1, 4);
    /* as far as each no longer has cells of the size that it began with */
    for (const auto& [m2l, way] :
         {std::pair{GMXFMM_M2L_AUTO, 100.0}, std::pair{GMXFMM_M2L_FFT, 100.0}, std::pair{GMXFMM_M2L_ROTATION, 2000.0}})
    {
        SCOPED_TRACE(gmxfmm_m2l_name(m2l));
        options.m2l = m2l;
        System end  = start;
        end.x[0]    = 1.2;
        Plan   first(start, options), continued(start, options);
        System far = start;
        far.x[0]   = way;
        far.x[4]   = -way;
        first.assign(far.x);
        first.execute(far.x);
        first.assign(end.x);
        continued.assign(end.x);
        const Result one = first.execute(end.x), other = continued.execute(end.x);
        EXPECT_EQ(one.energy, other.energy);
        EXPECT_EQ(one.force, other.force);
    }
}

INSTANTIATE_TEST_SUITE_P(Precisions, AutomaticMethod, testing::Values(GMXFMM_SINGLE, GMXFMM_DOUBLE), precisionName);

#ifdef GMXFMM_TESTS_CUDA
TEST(CostsOfAGpu, AreThoseOfTheTest)
{
    const fmm_costs &test = costsOfGpu(), &library = fmm_costs_cuda;
    EXPECT_EQ(test.pair, library.pair);
    EXPECT_EQ(test.pair_double, library.pair_double);
    EXPECT_EQ(test.gather, library.gather);
    EXPECT_EQ(test.cell, library.cell);
    EXPECT_EQ(test.coefficient, library.coefficient);
    EXPECT_EQ(test.fft_log2, library.fft_log2);
    EXPECT_EQ(test.fft_two_steps, library.fft_two_steps);
    EXPECT_EQ(test.fft_other, library.fft_other);
    EXPECT_EQ(test.point, library.point);
    EXPECT_TRUE(std::equal(test.translation, test.translation + 6, library.translation));
    EXPECT_EQ(test.level, library.level);
    EXPECT_EQ(test.most_places, library.most_places);
    EXPECT_EQ(test.adapts, library.adapts);
    EXPECT_TRUE(std::equal(test.last_order, test.last_order + 2, library.last_order));
}
#endif

/* And on a device itself: chosen once a plan. */
TEST(AutomaticMethodOnADevice, IsMadeAtTheFirstAssign)
{
    if (!haveCuda())
    {
        GTEST_SKIP() << "no CUDA device";
    }
    auto options     = automaticOptions(GMXFMM_CUDA, GMXFMM_SINGLE);
    options.accuracy = 4e-3; /* order 7: builds for tests have rotation to order 8 */
    for (const auto& [s, m2l] :
         {std::pair{sparse(), GMXFMM_M2L_ROTATION}, std::pair{water({4, 0, 0, 0, 4, 0, 0, 0, 3}, 5), GMXFMM_M2L_FFT}})
    {
        gmxfmm_options reference = options;
        reference.device         = GMXFMM_CPU;
        reference.precision      = GMXFMM_DOUBLE;
        reference.accuracy       = 1e-5;
        Plan         plan(s, options);
        const Result r = plan.execute(s.x), expected = solve(s, reference);
        EXPECT_EQ(r.info.m2l, m2l);
        EXPECT_LE(relativeRms(r.force, expected.force), options.accuracy);
        plan.assign(s.x);
        EXPECT_EQ(plan.info().m2l, m2l);
    }
}
