/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Plans that are measured when they are made, against independent sums: what was asked is reached, or refused with one
 * message that says so. In crystals the error that the model of liquids predicts is wrong by a thousand times. */
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <sstream>

#include <gtest/gtest.h>
#include <zlib.h>

#include "support/direct.h"
#include "support/ewald.h"
#include "support/measured.h"
#include "support/norms.h"
#include "support/plan.h"
#include "support/suites.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

/* On the CPU wherever other suites run: double precision beyond order 20 is offered there alone. Of a single step no
 * transforms are worth timing. */
gmxfmm_options
optionsFor(double asked, Boundary boundary = Boundary::Tinfoil, gmxfmm_precision precision = GMXFMM_DOUBLE)
{
    gmxfmm_options options = withBoundary(askedOptions(asked, precision), boundary);
    options.device         = GMXFMM_CPU;
    options.reproducible   = 1;
    return options;
}

void setGrid(gmxfmm_options* options, int nx, int ny, int nz)
{
    options->grid[0] = nx;
    options->grid[1] = ny;
    options->grid[2] = nz;
}

/* Rock salt of 512 ions at distance 1 of which one has moved: forces are those of a dipole, a hundredth of those
 * between neighbours, times `part`. */
System oneMoved(double part = 1)
{
    System       s     = sodiumChloride(4);
    const double by[3] = {0.07, -0.04, 0.11};
    for (std::size_t d = 0; d < 3; d++)
    {
        s.x[3 * 100 + d] += part * by[d];
    }
    return s;
}

class OneIonMoved : public testing::Test
{
  protected:
    System   system_ = oneMoved();
    Solution sum_    = ewald(system_);
};

/* A measured error is uncertain by a tenth of what was asked. Where nothing was asked (0) it is known to 30 %; 3 % is
 * what is seen here. 1e-11: the digits of the sum, whose forces are a hundredth of the terms. */
void expectMeasured(double measured, double truth, double asked)
{
    EXPECT_NEAR(measured, truth, (asked > 0 ? 0.1 * asked : 0.03 * truth) + 1e-11);
}

} // namespace

TEST_F(OneIonMoved, WhatIsAskedIsReached)
{
    for (double asked : {1e-2, 1e-3, 4e-4, 1e-5, 1e-6, 1e-8, 1e-10})
    {
        SCOPED_TRACE(asked);
        Made made(system_, optionsFor(asked));
        ASSERT_EQ(made.status, GMXFMM_OK) << made.message;
        EXPECT_EQ(made.message, "");
        const double truth = made.trueError(system_, sum_);
        EXPECT_LE(truth, asked);
        expectMeasured(made.chosen.error, truth, asked);
        EXPECT_EQ(made.plan->info().measured_error, made.chosen.error);
        EXPECT_GT(made.num, 1);
    }
}

/* The model alone is wrong by a thousand times here, and a plan of it says that it was not measured. */
TEST_F(OneIonMoved, TheModelIsNamedAsSuch)
{
    const Result result = solve(system_, optionsFor(1e-3));
    EXPECT_LE(result.info.predicted_error, 1e-3);
    EXPECT_GT(relativeRms(result.force, sum_.force), 0.1);
    EXPECT_TRUE(std::isnan(result.info.measured_error));
}

TEST_F(OneIonMoved, SettingsGivenAreMeasured)
{
    gmxfmm_options order = optionsFor(GMXFMM_AUTO), grid = order, depth = order, all = order;
    order.order = 12;
    setGrid(&grid, 4, 4, 4);
    depth.m2l   = GMXFMM_M2L_ROTATION;
    depth.depth = 2;
    setGrid(&all, 2, 3, 4);
    all.order      = 9;
    all.separation = 2;
    for (const gmxfmm_options& options : {order, grid, depth, all})
    {
        Made made(system_, options);
        ASSERT_EQ(made.status, GMXFMM_OK) << made.message;
        expectMeasured(made.plan->info().measured_error, made.trueError(system_, sum_), 0);
    }
    /* the first two are what the model takes, in cells commensurate with the lattice */
    EXPECT_GT(Made(system_, order).chosen.error, 0.1);
    EXPECT_GT(Made(system_, grid).chosen.error, 0.03);
}

TEST_F(OneIonMoved, SettingsGivenReachWhatIsAskedOrAreRefused)
{
    gmxfmm_options order = optionsFor(1e-3), grid = order, high = optionsFor(1e-10), all = optionsFor(1e-3);
    order.order = 12;
    high.order  = 26;
    setGrid(&grid, 4, 4, 4);
    for (const gmxfmm_options& options : {order, grid, high})
    {
        Made made(system_, options);
        ASSERT_EQ(made.status, GMXFMM_OK) << made.message;
        EXPECT_LE(made.trueError(system_, sum_), options.accuracy);
    }
    all.order      = 12;
    all.separation = 1;
    setGrid(&all, 4, 4, 4);
    Made refused(system_, all);
    expectRefused(refused);
    EXPECT_GT(refused.chosen.error, 1e-3); /* what they reach */
    EXPECT_EQ(refused.num, 1);
    order.accuracy = 1e-7;
    order.order    = 2;
    expectRefused(Made(system_, order));
}

/* Beyond what two evaluations in double precision agree to. */
TEST_F(OneIonMoved, WhatCannotBeMeasuredIsRefused)
{
    const System s = oneMoved(0.1);
    Made         made(s, optionsFor(1e-12));
    expectRefused(made);
    EXPECT_NE(made.message.find("cannot be measured"), std::string::npos) << made.message;
    EXPECT_EQ(made.num, 0);
    /* what the message says is enough, is */
    const double least = std::stod(made.message.substr(made.message.find("accuracy of ") + 12));
    EXPECT_LT(least, 1e-10);
    Made again(s, optionsFor(least));
    ASSERT_EQ(again.status, GMXFMM_OK) << again.message;
    EXPECT_LE(again.trueError(s, ewald(s)), least + 1e-10); /* the digits of a sum whose terms are 1e3 times it */
    expectRefused(Made(system_, optionsFor(2e-6, Boundary::Tinfoil, GMXFMM_SINGLE)));
}

/* A measured error is of charges, pairs and cells as they were. */
TEST_F(OneIonMoved, ItLapsesWithWhatItWasMeasuredOf)
{
    Made         made(system_, optionsFor(1e-3));
    gmxfmm_plan* plan = made.plan->get();
    made.plan->assign(system_.x);
    made.plan->setBox(system_.box);
    EXPECT_EQ(made.plan->info().measured_error, made.chosen.error);
    ASSERT_EQ(gmxfmm_set_exclusions(plan, nullptr, nullptr), GMXFMM_OK);
    EXPECT_TRUE(std::isnan(made.plan->info().measured_error));
    Made other(system_, optionsFor(1e-3));
    ASSERT_EQ(gmxfmm_set_charges(other.plan->get(), 512, system_.q.data()), GMXFMM_OK);
    EXPECT_TRUE(std::isnan(other.plan->info().measured_error));
}

/* Ready for the first step, with times and counts that begin there. */
TEST(MeasuredPlan, HasChargesExclusionsAndAssignment)
{
    const System   s      = water({2.2, 0, 0, 0, 2.4, 0, 0, 0, 2.6}, 5);
    const Solution sum    = ewald(s);
    const double   asked  = 1e-5;
    System         before = s;
    Random         random(3);
    for (double& x : before.x)
    {
        x += 0.02 * random.centred();
    }
    for (bool moves : {false, true})
    {
        const SystemView view(s, Boundary::Tinfoil);
        gmxfmm_system    system = view.get();
        system.x_before         = moves ? before.x.data() : nullptr;
        Made made(s, system, optionsFor(asked));
        ASSERT_EQ(made.status, GMXFMM_OK) << made.message;
        EXPECT_EQ(made.plan->info().num_executes, 0);
        EXPECT_EQ(made.plan->info().num_particles, static_cast<std::int64_t>(s.size()));
        const double truth = made.trueError(s, sum);
        EXPECT_LE(truth, asked);
        expectMeasured(made.chosen.error, truth, asked);
        EXPECT_LE(made.chosen.error_moved, asked);
        made.plan->assign(before.x);
        if (moves)
        {
            EXPECT_LE(made.trueError(s, sum), asked);
        }
    }
}

TEST(MeasuredPlan, SaysWhatIsWrong)
{
    const System         s = ions({7, 0, 0, 0, 7, 0, 0, 0, 7}, 40, 5);
    const SystemView     view(s, Boundary::Tinfoil);
    const gmxfmm_options options = optionsFor(1e-3);
    gmxfmm_system        system  = view.get();
    gmxfmm_plan*         plan    = nullptr;
    char                 text[512];
    const auto           create = [&](gmxfmm_measurement* chosen)
    { return gmxfmm_create_measured(&plan, &options, &system, chosen, nullptr, nullptr, text, sizeof(text)); };
    EXPECT_EQ(gmxfmm_create_measured(nullptr, &options, &system, nullptr, nullptr, nullptr, nullptr, 0),
              GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_create_measured(&plan, nullptr, &system, nullptr, nullptr, nullptr, nullptr, 0),
              GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_create_measured(&plan, &options, nullptr, nullptr, nullptr, nullptr, nullptr, 0),
              GMXFMM_ERROR_NULL);
    gmxfmm_measurement chosen = {};
    EXPECT_EQ(create(&chosen), GMXFMM_ERROR_OPTION);
    EXPECT_NE(std::string(text).find("sizeof(gmxfmm_measurement)"), std::string::npos) << text;
    system.size = 1;
    EXPECT_EQ(create(nullptr), GMXFMM_ERROR_OPTION);
    EXPECT_NE(std::string(text).find("sizeof(gmxfmm_system)"), std::string::npos) << text;
    system   = view.get();
    system.x = nullptr;
    EXPECT_EQ(create(nullptr), GMXFMM_ERROR_NULL);
    system   = view.get();
    system.q = nullptr;
    EXPECT_EQ(create(nullptr), GMXFMM_ERROR_NULL);
    system     = view.get();
    system.box = nullptr;
    EXPECT_EQ(create(nullptr), GMXFMM_ERROR_NULL);
    System close = s;
    std::copy(close.x.begin(), close.x.begin() + 3, close.x.begin() + 3);
    system.box = close.box.data();
    system.x   = close.x.data();
    EXPECT_EQ(create(nullptr), GMXFMM_ERROR_COINCIDENT) << text;
    EXPECT_EQ(plan, nullptr);
    system = view.get();
    EXPECT_EQ(create(nullptr), GMXFMM_OK) << text;
    gmxfmm_destroy(plan);
}

TEST(MeasuredPlan, OfNothing)
{
    System none;
    none.box = {3, 0, 0, 0, 3, 0, 0, 0, 3};
    Made made(none, optionsFor(1e-6));
    EXPECT_EQ(made.status, GMXFMM_OK) << made.message;
    System zero = ions(none.box, 10, 2);
    std::fill(zero.q.begin(), zero.q.end(), 0.0);
    Made uncharged(zero, optionsFor(1e-6));
    EXPECT_EQ(uncharged.status, GMXFMM_OK) << uncharged.message;
    EXPECT_LE(uncharged.chosen.error, 1e-6);
}

/* Positions in single precision are rounded, and with them forces that are zero by symmetry: errors are relative to
 * those between neighbours then, or no settings would be enough. */
TEST(MeasuredPlan, OfAPerfectCrystalInSinglePrecision)
{
    const System       exact   = sodiumChloride(4);
    gmxfmm_options     options = optionsFor(4e-4);
    std::vector<float> x, q(exact.q.begin(), exact.q.end());
    double             box[9];
    const double       distance = 0.282; /* not a float, and neither are its multiples */
    for (const double at : exact.x)
    {
        x.push_back(static_cast<float>(distance * at));
    }
    for (std::size_t i = 0; i < 9; i++)
    {
        box[i] = distance * exact.box[i];
    }
    options.precision = options.array_type = GMXFMM_SINGLE;
    gmxfmm_system system                   = sized<gmxfmm_system>();
    system.n                               = static_cast<int64_t>(q.size());
    system.box                             = box;
    system.x                               = x.data();
    system.q                               = q.data();
    gmxfmm_plan* plan                      = nullptr;
    char         message[512];
    ASSERT_EQ(gmxfmm_create_measured(&plan, &options, &system, nullptr, nullptr, nullptr, message, sizeof(message)),
              GMXFMM_OK)
        << message;
    std::vector<float> force(x.size());
    gmxfmm_output      output = sized<gmxfmm_output>();
    output.force              = force.data();
    EXPECT_EQ(gmxfmm_execute(plan, x.data(), &output), GMXFMM_OK);
    gmxfmm_destroy(plan);
    double sum = 0;
    for (const float f : force)
    {
        sum += static_cast<double>(f) * static_cast<double>(f);
    }
    /* of the force between neighbours */
    EXPECT_LE(std::sqrt(sum / static_cast<double>(q.size())), 4e-4 / (distance * distance));
}

/* Its error is that of potential or field, at a sample, which is here all of the particles. */
TEST(MeasuredPlan, OfATreecode)
{
    const System   s       = droplet(3000, 15, 3);
    const Solution sum     = directSum(s);
    const auto     errorOf = [&](Made& made)
    {
        const Values v = valuesOf(made.made, s.x, s.size());
        return std::max(relativeRms(v.potential, sum.potential), relativeRms(v.field, sum.field));
    };
    gmxfmm_options options = optionsFor(1e-4, Boundary::Open);
    options.method         = GMXFMM_TREECODE;
    options.leaf           = 40;
    Made made(s, options);
    ASSERT_EQ(made.status, GMXFMM_OK) << made.message;
    EXPECT_LE(errorOf(made), 1e-4);
    EXPECT_NEAR(made.chosen.error, errorOf(made), 0.01 * errorOf(made));
    EXPECT_GT(made.chosen.time, 0);

    options.theta    = 0.8;
    options.degree   = 3;
    options.accuracy = GMXFMM_AUTO;
    Made given(s, options);
    ASSERT_EQ(given.status, GMXFMM_OK) << given.message;
    EXPECT_NEAR(given.plan->info().measured_error, errorOf(given), 0.01 * errorOf(given));
    options.accuracy = 0.1 * given.chosen.error;
    expectRefused(Made(s, options));
}

/* Where no cluster is far from another nothing is measured of the degree: the model's holds when they move apart. */
TEST(MeasuredPlan, OfATreecodeWithoutAFarField)
{
    System s = droplet(500, 8, 3);
    for (double& q : s.q)
    {
        q = 1;
    }
    gmxfmm_options options = optionsFor(1e-3, Boundary::Open);
    options.method         = GMXFMM_TREECODE;
    Made made(s, options);
    ASSERT_EQ(made.status, GMXFMM_OK) << made.message;
    EXPECT_LT(made.chosen.error, 1e-12);
    System moved = s;
    for (std::size_t i = 0; i < s.size(); i++)
    {
        moved.x[3 * i] *= 8;
        moved.x[3 * i + 1] *= 0.4;
        moved.x[3 * i + 2] *= 0.4;
    }
    ASSERT_EQ(gmxfmm_assign(made.made, moved.x.data()), GMXFMM_OK);
    const double error = relativeRms(forcesOf(made.made, moved.x), directSum(moved).force);
    EXPECT_LT(error, 1e-3);
    EXPECT_GT(error, 1e-12) << "there is a far field now";
}

/* What is no matter of time. */
TEST(MeasuredPlan, TheMethodThatIsPossible)
{
    const System   box = withoutExclusions(ions({7, 0, 0, 0, 7, 0, 0, 0, 7}, 40, 5)), open = droplet(300, 7, 3);
    gmxfmm_options automatic = optionsFor(1e-3);
    automatic.method         = GMXFMM_METHOD_AUTO;
    const auto methodOf      = [&](const System& s, const gmxfmm_options& options)
    {
        const Made made(s, options);
        EXPECT_EQ(made.status, GMXFMM_OK) << made.message;
        return made.plan->info().method;
    };
    EXPECT_EQ(methodOf(box, automatic), GMXFMM_FMM);
    automatic.boundary = GMXFMM_OPEN;
    System excluded    = open;
    excluded.excluded.resize(excluded.size());
    excluded.excluded[0] = {1};
    excluded.excluded[1] = {0};
    EXPECT_EQ(methodOf(excluded, automatic), GMXFMM_FMM);
    gmxfmm_options order = automatic, theta = automatic, yukawa = automatic;
    order.order   = 8;
    theta.theta   = 0.5;
    yukawa.kernel = GMXFMM_YUKAWA;
    yukawa.kappa  = 0.3;
    EXPECT_EQ(methodOf(open, order), GMXFMM_FMM);
    EXPECT_EQ(methodOf(open, theta), GMXFMM_TREECODE);
    EXPECT_EQ(methodOf(open, yukawa), GMXFMM_TREECODE);
    gmxfmm_options both = order;
    both.theta          = 0.5;
    EXPECT_NE(Made(open, both).message.find("theta belongs to the treecode"), std::string::npos);
    EXPECT_NE(Made(excluded, yukawa).status, GMXFMM_OK);
    EXPECT_NE(Made(open, automatic).message.find("reproducible"), std::string::npos);
    expectRefused(automatic, static_cast<int64_t>(open.size()), nullptr, GMXFMM_ERROR_OPTION, "gmxfmm_create_measured");
}

/* In an even distribution the FMM takes a small part of the treecode's time. */
TEST(MeasuredPlan, TheMethodThatIsFaster)
{
    const System   s       = droplet(20000, 30, 3);
    gmxfmm_options options = optionsFor(1e-4, Boundary::Open);
    options.method         = GMXFMM_METHOD_AUTO;
    options.reproducible   = 0;
    Made made(s, options);
    ASSERT_EQ(made.status, GMXFMM_OK) << made.message;
    EXPECT_EQ(made.plan->info().method, GMXFMM_FMM);
    EXPECT_TRUE(gmxfmm_capabilities(made.plan->get()) & GMXFMM_CAN_VIRIAL);
    EXPECT_GT(made.chosen.time, 0);
    EXPECT_LE(made.plan->info().measured_error, 1e-4);
}

namespace
{

/* The time of a step of the plan that a method makes, the fastest of ten. */
double timeOf(const System& s, gmxfmm_options options, gmxfmm_method method)
{
    options.method = method;
    Made made(s, options);
    EXPECT_EQ(made.status, GMXFMM_OK) << made.message;
    double fastest = INFINITY;
    for (int i = 0; i < 10 && made.status == GMXFMM_OK; i++)
    {
        const auto begin = std::chrono::steady_clock::now();
        forcesOf(made.plan->get(), s.x);
        fastest = std::min(fastest, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    return fastest;
}

} // namespace

/* Along a thin line the treecode, whose clusters are as thin, may take less time than the FMM, whose cells are cubes:
 * by how much depends on the processor. So the choice is compared with times that the test takes. Between 0.6 and 1.35,
 * half as much below and above the library's 0.9, times are too uncertain to tell. Other programs may disturb all times
 * of a plan, but not again and again. */
TEST(MeasuredPlan, TheTreecodeWhereItIsFaster)
{
    System s;
    Random random(17);
    scatter(&s, 3000, {0, 0, 0}, {3000, 1e-3, 1e-3}, &random);
    gmxfmm_options options = optionsFor(1e-4, Boundary::Open);
    options.reproducible   = 0;
    options.num_threads    = 1;
    bool   agrees          = false;
    double ratio           = 0;
    for (int i = 0; i < 5 && !agrees; i++)
    {
        ratio          = timeOf(s, options, GMXFMM_TREECODE) / timeOf(s, options, GMXFMM_FMM);
        options.method = GMXFMM_METHOD_AUTO;
        Made made(s, options);
        ASSERT_EQ(made.status, GMXFMM_OK) << made.message;
        EXPECT_LE(made.plan->info().measured_error, 1e-4);
        agrees = made.plan->info().method == GMXFMM_TREECODE ? ratio < 1.35 : ratio > 0.6;
    }
    EXPECT_TRUE(agrees) << "treecode / FMM: " << ratio;
}

namespace
{

double median(std::vector<double> v)
{
    std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
    return v[v.size() / 2];
}

/* The median of the error of a force over that force. */
double usualError(const std::vector<double>& force, const std::vector<double>& reference)
{
    std::vector<double> errors;
    for (std::size_t i = 0; i < force.size(); i += 3)
    {
        double error = 0, sum = 0;
        for (std::size_t d = i; d < i + 3; d++)
        {
            error += (force[d] - reference[d]) * (force[d] - reference[d]);
            sum += reference[d] * reference[d];
        }
        errors.push_back(std::sqrt(error / sum));
    }
    return median(errors);
}

System randomIons(int n, double edge)
{
    System s;
    Random random(8);
    s.box = {edge, 0, 0, 0, edge, 0, 0, 0, edge};
    scatter(&s, n, {0, 0, 0}, {edge, edge, edge}, &random);
    return s;
}

/* Puts the second particle next to the first, at a distance that makes its force 1e6 times the others'. */
System withClosePair(System s, double step = 5e-4)
{
    for (std::size_t d = 0; d < 3; d++)
    {
        s.x[3 + d] = s.x[d] + step * (1 + static_cast<double>(d));
    }
    return s;
}

/* Steps of which the longest are a thousand times the shortest: clusters in clusters. */
System levyWalk(int n)
{
    System s;
    Random random(4);
    Vec3   at = {0, 0, 0};
    for (int i = 0; i < n; i++)
    {
        const double step = 0.02 / std::pow(0.001 + random.uniform(), 1 / 1.5);
        for (double& x : at)
        {
            x += step * random.centred();
        }
        s.add(at, i % 2 ? 1 : -1);
    }
    return s;
}

System withVacancy()
{
    System       s   = sodiumChloride(3);
    const System all = s;
    s.x.erase(s.x.begin() + 60, s.x.begin() + 63);
    s.q.erase(s.q.begin() + 20);
    return withClosePair(s);
}

struct Uneven
{
    const char* name;
    System      system;
    Boundary    boundary;
};

void PrintTo(const Uneven& uneven, std::ostream* out)
{
    *out << uneven.name;
}

class UnevenForces : public testing::TestWithParam<Uneven>
{
};

} // namespace

/* A few forces that are far larger than the others do not decide alone: most have the accuracy asked for, too. */
TEST_P(UnevenForces, DoNotHideTheOthersErrors)
{
    const System&  s   = GetParam().system;
    const Solution sum = GetParam().boundary == Boundary::Open ? directSum(s) : ewald(s);
    for (double asked : {1e-2, 1e-3, 1e-5})
    {
        SCOPED_TRACE(asked);
        Made made(s, optionsFor(asked, GetParam().boundary));
        ASSERT_EQ(made.status, GMXFMM_OK) << made.message;
        const Result r = made.plan->execute(s.x);
        EXPECT_LE(relativeRms(r.force, sum.force), asked);
        /* the RMS of limited forces is up to three times their median in these systems */
        EXPECT_LE(usualError(r.force, sum.force), 3 * asked);
        EXPECT_LE(made.chosen.error_limited, asked);
        EXPECT_GE(made.chosen.error_limited, 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Systems,
                         UnevenForces,
                         testing::Values(Uneven{"GasWithClosePair", withClosePair(randomIons(500, 9)),
                                                Boundary::Tinfoil},
                                         Uneven{"Gas", randomIons(500, 9), Boundary::Tinfoil},
                                         Uneven{"LevyWalk", levyWalk(400), Boundary::Open},
                                         Uneven{"CrystalWithVacancyAndClosePair", withVacancy(), Boundary::Tinfoil}),
                         parameterName<Uneven>);

/* The same of the treecode, and of whichever method is taken: in open systems that are large enough for clusters. */
TEST(MeasuredPlan, UnevenForcesDoNotHideErrorsOfATreecode)
{
    const std::pair<const char*, System> systems[] = {
        {"levy walk", levyWalk(3000)}, {"gas with a close pair", withClosePair(randomIons(3000, 20), 2e-3)}};
    for (const auto& [name, s] : systems)
    {
        const Solution sum = directSum(s);
        for (const gmxfmm_method method : {GMXFMM_TREECODE, GMXFMM_METHOD_AUTO})
        {
            for (const double asked : {1e-2, 1e-3, 1e-5})
            {
                SCOPED_TRACE(testing::Message()
                             << name << ", " << (method == GMXFMM_TREECODE ? "treecode" : "auto") << ", " << asked);
                gmxfmm_options options = optionsFor(asked, Boundary::Open);
                options.method         = method;
                options.reproducible   = method == GMXFMM_TREECODE ? 1 : 0;
                options.leaf           = 40; /* of few particles: more of them are far */
                Made made(s, options);
                ASSERT_EQ(made.status, GMXFMM_OK) << made.message;
                const std::vector<double> force = forcesOf(made.made, s.x);
                EXPECT_LE(relativeRms(force, sum.force), asked);
                EXPECT_LE(usualError(force, sum.force), 3 * asked);
                EXPECT_LE(made.chosen.error_limited, asked);
            }
        }
    }
}

/* Where no force is ten times the median the two errors are one. */
TEST(MeasuredPlan, OfALiquidHasOneError)
{
    const System s = ions(boxOfVolume(boxTypes()[0], 216), 216, 33);
    const Made   made(s, optionsFor(1e-4));
    ASSERT_EQ(made.status, GMXFMM_OK) << made.message;
    EXPECT_DOUBLE_EQ(made.chosen.error_limited, made.chosen.error);
}

namespace
{

/* A file of the folder with inputs that have shown faults, as text or gzipped: rows of x y z q, and a comment with the
 * box. False, and the test is skipped, if it is not there. */
bool readInput(const std::string& name, System* s)
{
    const char*  folder = std::getenv("GMXFMM_INPUTS");
    const gzFile file =
        gzopen((std::string(folder != nullptr ? folder : GMXFMM_TESTS_INPUTS) + "/" + name).c_str(), "rb");
    if (file == nullptr)
    {
        [&] { GTEST_SKIP() << "there is no " << name << ": name its folder in GMXFMM_INPUTS"; }();
        return false;
    }
    char line[512];
    while (gzgets(file, line, sizeof(line)) != nullptr)
    {
        const std::string  text = line, box = "# box:";
        Vec3               r;
        double             q;
        std::istringstream row(text);
        if (text.compare(0, box.size(), box) == 0)
        {
            row.ignore(static_cast<std::streamsize>(box.size()));
            for (double& v : s->box)
            {
                row >> v;
            }
        }
        else if (row >> r[0] >> r[1] >> r[2] >> q)
        {
            s->add(r, q);
        }
    }
    gzclose(file);
    return true;
}

} // namespace

/* The files of faults, where they are. */
TEST(MeasuredPlan, OfRockSaltWithOneIonMoved)
{
    System s;
    if (!readInput("nacl-one-ion-moved.txt", &s))
    {
        return;
    }
    ASSERT_EQ(s.size(), 512U);
    s.box              = {8, 0, 0, 0, 8, 0, 0, 0, 8};
    const Solution sum = ewald(s);
    for (double asked : {1e-3, 1e-10})
    {
        Made made(s, optionsFor(asked));
        ASSERT_EQ(made.status, GMXFMM_OK) << made.message;
        EXPECT_LE(made.trueError(s, sum), asked);
    }
    gmxfmm_options order = optionsFor(GMXFMM_AUTO), grid = order;
    order.order = 12;
    setGrid(&grid, 4, 4, 4);
    EXPECT_NEAR(Made(s, order).chosen.error, 0.263, 0.005);
    EXPECT_NEAR(Made(s, grid).chosen.error, 0.0837, 0.001);
}

/* Nearly a cube, whose vectors are given as others of its lattice: one digit may be lost. */
TEST(MeasuredPlan, OfABoxInSkewVectors)
{
    System s;
    if (!readInput("D7-unreduced-skew.txt", &s))
    {
        return;
    }
    Made skew(s, optionsFor(1e-9));
    ASSERT_EQ(skew.status, GMXFMM_OK) << skew.message;
    System reduced     = s;
    reduced.box        = {5, 0, 0, 0, 5, 0, -1, -1, 5};
    const Solution sum = ewald(reduced);
    const Result   r   = skew.plan->execute(s.x);
    EXPECT_LE(relativeRms(r.force, sum.force), 1e-8);
    EXPECT_NEAR(r.energyNear + r.energyFar, sum.energy, 1e-8 * std::fabs(sum.energy));
}

/* A pair at 1e-3 of the spacing, and coordinates far from the box at 0. */
TEST(MeasuredPlan, OfAGasWithAPairThatHidesErrors)
{
    System s;
    if (!readInput("D10-close-pair-hides-errors.txt.gz", &s))
    {
        return;
    }
    Made made(s, optionsFor(1e-5));
    ASSERT_EQ(made.status, GMXFMM_OK) << made.message;
    const Solution sum = ewald(s);
    const Result   r   = made.plan->execute(s.x);
    EXPECT_LE(relativeRms(r.force, sum.force), 1e-5);
    EXPECT_LE(usualError(r.force, sum.force), 1e-5);
    EXPECT_NEAR(r.energyNear + r.energyFar, sum.energy, 1e-5 * std::fabs(sum.energy));
}

/* Distances that are 1e-17 to 1e-12 of the system: each force is that of the sum, also the smallest. */
TEST(MeasuredPlan, OfFewChargesInExtremeProportions)
{
    for (const char* name : {"D13-scales.txt", "D13-pair.txt", "D13-refused.txt"})
    {
        SCOPED_TRACE(name);
        System s;
        if (!readInput(name, &s))
        {
            return;
        }
        Made made(s, optionsFor(1e-9, Boundary::Open));
        ASSERT_EQ(made.status, GMXFMM_OK) << made.message;
        const Solution            sum   = directSum(s);
        const std::vector<double> force = made.plan->execute(s.x).force;
        for (std::size_t i = 0; i < s.size(); i++)
        {
            const auto                first = static_cast<std::ptrdiff_t>(3 * i);
            const std::vector<double> of(force.begin() + first, force.begin() + first + 3);
            const std::vector<double> exact(sum.force.begin() + first, sum.force.begin() + first + 3);
            /* the second is of two terms of 1e-12 that cancel in all their digits */
            EXPECT_LE(rmsDifference(of, exact), 1e-9 * rms(exact) + 1e-9 * 1e-12) << i;
        }
    }
}

namespace
{

/* A kind of system, from a seed. */
struct Kind
{
    const char*                         name;
    Boundary                            boundary;
    std::function<System(Random*, int)> make; /* with a seed for those who want one */
};

void PrintTo(const Kind& kind, std::ostream* out)
{
    *out << kind.name;
}

/* Ions off their places, or one of them, or missing, or of another charge. */
System crystal(Random* random, int seed)
{
    const Vec3        shift = {random->uniform(), random->uniform(), random->uniform()};
    System            s     = seed % 3 == 0   ? sodiumChloride(between(random, 2, 4), shift)
                              : seed % 3 == 1 ? caesiumChloride(between(random, 3, 6), shift)
                                              : zincblende(between(random, 2, 3), shift);
    const double      by    = std::pow(10, -2.5 + 1.7 * random->uniform());
    const std::size_t i     = static_cast<std::size_t>(between(random, 0, static_cast<int>(s.size()) - 1));
    switch (seed / 3 % 4)
    {
    case 0:
        s.q[i] = 0;
        break;
    case 1:
        s.q[i] *= 2;
        break;
    case 2:
        for (std::size_t d = 0; d < 3; d++)
        {
            s.x[3 * i + d] += by * random->centred();
        }
        break;
    default:
        for (double& x : s.x)
        {
            x += by * random->centred();
        }
    }
    return s;
}

/* Charges anywhere, close pairs too. */
System gas(Random* random, int /*seed*/)
{
    System    s;
    const int n = between(random, 10, 200);
    s.box       = {3 + 4 * random->uniform(), 0, 0, 0, 3 + 4 * random->uniform(), 0, 0, 0, 3 + 4 * random->uniform()};
    for (int i = 0; i < n; i++)
    {
        s.add({s.box[0] * random->uniform(), s.box[4] * random->uniform(), s.box[8] * random->uniform()},
              i % 2 ? random->centred() : 1);
    }
    return s;
}

System melt(Random* random, int seed)
{
    const BoxType& type = boxTypes()[static_cast<std::size_t>(seed) % boxTypes().size()];
    const int      n    = between(random, 30, 250);
    return ions(boxOfVolume(type, n * (0.5 + random->uniform())), n, static_cast<std::uint64_t>(seed));
}

/* One to four droplets, near each other or far. */
System clusters(Random* random, int seed)
{
    System       s;
    const int    num  = between(random, 1, 4);
    const double away = std::pow(10, 1 + 2 * random->uniform());
    for (int k = 0; k < num; k++)
    {
        const int  n  = between(random, 20, 120);
        const Vec3 at = {k * (away + 12), away * random->centred(), away * random->centred()};
        s.add(droplet(n, 1.1 * std::cbrt(n), static_cast<std::uint64_t>(10 * seed + k)), at);
    }
    return s;
}

/* An accuracy from 1e-9 to 1e-2, in single precision from 1e-4 on; in two of five cases nothing is given, in the others
 * order, cells or both, for an accuracy or for none. */
gmxfmm_options drawn(Random* random, int seed, Boundary boundary)
{
    const bool     single = seed % 7 == 0;
    const double   asked  = std::pow(10, single ? -4 + 2 * random->uniform() : -9 + 7 * random->uniform());
    gmxfmm_options options =
        optionsFor(seed % 5 > 1 && seed % 2 ? GMXFMM_AUTO : asked, boundary, single ? GMXFMM_SINGLE : GMXFMM_DOUBLE);
    if (seed % 5 == 2 || seed % 5 == 4)
    {
        options.order = between(random, 2, single ? 14 : 24);
    }
    if (seed % 5 == 3 || seed % 5 == 4)
    {
        options.m2l = GMXFMM_M2L_FFT;
        setGrid(&options, between(random, 2, 5), between(random, 2, 5), between(random, 2, 5));
    }
    if (seed % 10 == 4)
    {
        options.separation = between(random, 1, 2);
    }
    options.reproducible = seed % 10 != 0;
    return options;
}

class Generated : public testing::TestWithParam<Kind>
{
};

} // namespace

/* A hundred of each kind. Where nothing is given one in a hundred may be refused; nothing falls short without a word,
 * and what is measured is true. */
TEST_P(Generated, ReachesWhatIsAskedOrSaysThatItDoesNot)
{
    const Kind& kind    = GetParam();
    int         refused = 0, made = 0;
    for (int seed = 0; seed < 100; seed++)
    {
        SCOPED_TRACE(testing::Message() << kind.name << ", seed " << seed);
        Random               random(static_cast<std::uint64_t>(1000 + seed));
        const System         s       = kind.make(&random, seed);
        const gmxfmm_options options = drawn(&random, seed, kind.boundary);
        const bool           given   = options.order >= 0 || options.grid[0] > 0;
        Made                 plan(s, options);
        if (plan.status != GMXFMM_OK)
        {
            SCOPED_TRACE(plan.message);
            expectRefused(plan);
            EXPECT_GT(options.accuracy, 0) << "none was asked for";
            refused += !given;
            continue;
        }
        made++;
        const Solution sum   = kind.boundary == Boundary::Open ? directSum(s) : ewald(s, kind.boundary);
        const double   truth = plan.trueError(s, sum), asked = options.accuracy;
        EXPECT_TRUE(asked < 0 || truth <= asked) << truth << " instead of " << asked;
        EXPECT_NEAR(plan.chosen.error, truth, (asked > 0 ? 0.1 * asked : 0.3 * truth) + 1e-11); /* as above */
        EXPECT_EQ(plan.plan->info().measured_error, plan.chosen.error);
    }
    RecordProperty("refused", refused);
    RecordProperty("made", made);
    EXPECT_LE(refused, 1);
    EXPECT_GE(made, 60); /* orders and cells are drawn, and may be too few */
}

INSTANTIATE_TEST_SUITE_P(Kinds,
                         Generated,
                         testing::Values(Kind{"Crystals", Boundary::Tinfoil, crystal},
                                         Kind{"Gases", Boundary::Tinfoil, gas},
                                         Kind{"MeltsInTriclinicBoxes", Boundary::Tinfoil, melt},
                                         Kind{"Clusters", Boundary::Open, clusters}),
                         parameterName<Kind>);

namespace
{

/* A molecule that excludes all pairs of its atoms, alone in its box: the forces are those of its images. As in files
 * with three decimals many pairs are just half a box apart, where rounding chose the image that is excluded. */
System molecule(Random* random)
{
    System    s;
    const int along  = between(random, 3, 5);
    const int jitter = between(random, 0, 90), edge = 300 * along + 2 * between(random, 0, 300);
    s.box = {1e-3 * edge, 0, 0, 0, 1e-3 * edge, 0, 0, 0, 1e-3 * edge};
    for (int i = 0; i < along * along * along; i++)
    {
        const int place[3] = {i % along, i / along % along, i / along / along};
        Vec3      x;
        for (std::size_t d = 0; d < 3; d++)
        {
            x[d] = 1e-3 * (300 * place[d] + between(random, 0, jitter));
        }
        s.add(x, random->uniform() < 0.5 ? -0.5 : 0.5);
        for (int j = 0; j < i; j++)
        {
            s.exclude(static_cast<std::size_t>(i), static_cast<std::size_t>(j));
        }
    }
    return s;
}

/* The sum of all images but one of each pair: the nearest, and of two as near that of the particle with the higher
 * number that is on the upper side. */
Solution imagesOf(const System& s)
{
    System free = s;
    free.excluded.clear();
    Solution     sum  = ewald(free);
    const double edge = s.box[0];
    for (std::size_t i = 0; i < s.size(); i++)
    {
        for (std::size_t j = i + 1; j < s.size(); j++)
        {
            Vec3   apart;
            double square = 0;
            for (std::size_t d = 0; d < 3; d++)
            {
                apart[d] = s.x[3 * i + d] - s.x[3 * j + d];
                apart[d] -= edge * std::floor(apart[d] / edge + 0.5 + 1e-9);
                square += apart[d] * apart[d];
            }
            for (std::size_t d = 0; d < 3; d++)
            {
                const double f = s.q[i] * s.q[j] * apart[d] / (square * std::sqrt(square));
                sum.force[3 * i + d] -= f;
                sum.force[3 * j + d] += f;
            }
        }
    }
    return sum;
}

} // namespace

TEST(MoleculeOfExcludedAtoms, IsMeasuredWhereImagesAreAsNear)
{
    for (int seed = 0; seed < 100; seed++)
    {
        SCOPED_TRACE(seed);
        Random         random(static_cast<std::uint64_t>(5000 + seed));
        const System   s      = molecule(&random);
        const bool     single = seed % 2 == 0;
        const double   asked  = single ? 4e-4 : 1e-6;
        const Solution sum    = imagesOf(s);
        Made           plan(s, optionsFor(asked, Boundary::Tinfoil, single ? GMXFMM_SINGLE : GMXFMM_DOUBLE));
        ASSERT_EQ(plan.status, GMXFMM_OK) << plan.message;
        EXPECT_EQ(plan.chosen.error_unit, 0);
        EXPECT_LE(plan.trueError(s, sum), asked);
    }
}

/* A droplet that has grown after its plan was made: the error of the plan with the cells that it has now. */
TEST(MeasuredPlan, IsMeasuredAsItIs)
{
    System s = ions({8, 0, 0, 0, 8, 0, 0, 0, 8}, 400, 17);
    Made   made(s, optionsFor(1e-4, Boundary::Open));
    ASSERT_EQ(made.status, GMXFMM_OK) << made.message;
    for (std::size_t i = 0; i < s.size(); i++)
    {
        const double by = i % 2 == 0 ? 1.3 : 2.1;
        for (std::size_t d = 0; d < 3; d++)
        {
            s.x[3 * i + d] *= by;
        }
    }
    const SystemView     view(s, Boundary::Open);
    const gmxfmm_system  system  = view.get();
    const gmxfmm_options options = optionsFor(1e-4, Boundary::Open);
    gmxfmm_reference*    reference;
    gmxfmm_measurement   m = sized<gmxfmm_measurement>();
    char                 text[512];
    ASSERT_EQ(gmxfmm_reference_create(&reference, &options, &system, text, sizeof(text)), GMXFMM_OK) << text;
    EXPECT_EQ(gmxfmm_measure_plan(reference, made.made, &m, text, sizeof(text)), GMXFMM_OK) << text;
    expectMeasured(m.error, made.trueError(s, directSum(s)), 1e-4); /* at the same assignment */
    EXPECT_EQ(gmxfmm_measure_plan(reference, nullptr, &m, text, sizeof(text)), GMXFMM_ERROR_NULL);
    m.size = 8;
    EXPECT_EQ(gmxfmm_measure_plan(reference, made.made, &m, text, sizeof(text)), GMXFMM_ERROR_OPTION);
    gmxfmm_reference_destroy(reference);
}

/* One particle, and eight charges around a corner of a large box, whose images' forces are below the rounding of single
 * precision: errors are said to be relative to another force. No message names an accuracy that cannot be had. */
TEST(MeasuredPlan, SaysWhatErrorsAreRelativeTo)
{
    System one;
    one.box = {2, 0, 0, 0, 2, 0, 0, 0, 2};
    one.add({0.3, 0.4, 0.5}, 3);
    Made alone(one, optionsFor(1e-6));
    ASSERT_EQ(alone.status, GMXFMM_OK) << alone.message;
    EXPECT_DOUBLE_EQ(alone.chosen.error_unit, 9.0 / 4); /* the square of the charge over that of the box */
    EXPECT_LE(alone.chosen.error, 1e-6);

    System cube;
    cube.box = {400, 0, 0, 0, 400, 0, 0, 0, 400};
    for (int i = 0; i < 8; i++)
    {
        cube.add({1.5 * (i % 2), 1.5 * (i / 2 % 2), 1.5 * (i / 4)}, (i % 2 + i / 2 % 2 + i / 4) % 2 == 0 ? 0.5 : -0.5);
        for (int j = 0; j < i; j++)
        {
            cube.exclude(static_cast<std::size_t>(i), static_cast<std::size_t>(j));
        }
    }
    const std::vector<float> x(cube.x.begin(), cube.x.end()), q(cube.q.begin(), cube.q.end());
    const SystemView         view(cube, Boundary::Tinfoil);
    gmxfmm_system            system  = view.get();
    gmxfmm_options           options = optionsFor(4e-4, Boundary::Tinfoil, GMXFMM_SINGLE);
    options.array_type               = GMXFMM_SINGLE;
    system.x                         = x.data();
    system.q                         = q.data();
    gmxfmm_plan*       plan          = nullptr;
    gmxfmm_measurement chosen        = sized<gmxfmm_measurement>();
    char               text[512];
    ASSERT_EQ(gmxfmm_create_measured(&plan, &options, &system, &chosen, nullptr, nullptr, text, sizeof(text)),
              GMXFMM_OK)
        << text;
    gmxfmm_destroy(plan);
    EXPECT_DOUBLE_EQ(chosen.error_unit, 0.5 * 0.5 / (200 * 200));

    EXPECT_EQ(Made(oneMoved(), optionsFor(1e-3)).chosen.error_unit, 0);
}

namespace
{

double length(const std::vector<double>& v, std::size_t i)
{
    return std::sqrt(v[3 * i] * v[3 * i] + v[3 * i + 1] * v[3 * i + 1] + v[3 * i + 2] * v[3 * i + 2]);
}

/* The median error of a force over the usual force: the median, or that of mean charges at mean distance, 1 here or
 * less, which is what counts in crystals. */
double medianError(const System& s, const std::vector<double>& force, const std::vector<double>& reference)
{
    std::vector<double> change(force.size()), errors, forces;
    std::transform(force.begin(), force.end(), reference.begin(), change.begin(), std::minus<double>());
    double charge = 0;
    for (std::size_t i = 0; i < s.size(); i++)
    {
        errors.push_back(length(change, i));
        forces.push_back(length(reference, i));
        charge += std::fabs(s.q[i]) / static_cast<double>(s.size());
    }
    return median(errors) / std::max(median(forces), charge * charge);
}

/* One to three pairs at 1e-2 to 1e-5 of the spacing, which is about 1. */
System withClosePairs(System s, Random* random)
{
    const int pairs = between(random, 1, 3);
    for (std::size_t k = 0; k < static_cast<std::size_t>(pairs); k++)
    {
        const double away      = std::pow(10, -2 - 3 * random->uniform());
        const Vec3   direction = random->direction();
        for (std::size_t d = 0; d < 3; d++)
        {
            s.x[6 * k + 3 + d] = s.x[6 * k + d] + away * direction[d];
        }
    }
    return s;
}

System thermalCrystal(Random* random, int seed)
{
    System s = seed % 2 == 0 ? sodiumChloride(between(random, 2, 3)) : caesiumChloride(between(random, 3, 5));
    for (double& x : s.x)
    {
        x += 0.05 * random->centred();
    }
    return s;
}

/* Droplets in the middle of a box that is mostly empty. */
System clustersInABox(Random* random, int seed)
{
    System       s    = droplet(between(random, 20, 120), 6, static_cast<std::uint64_t>(seed));
    const double edge = 14 + 10 * random->uniform();
    s.box             = {edge, 0, 0, 0, edge, 0, 0, 0, edge};
    return s;
}

class WithClosePairs : public testing::TestWithParam<Kind>
{
};

} // namespace

/* A hundred of each kind, a third of them without box. One in a hundred may be refused; nothing falls short without a
 * word in the RMS, which the pairs decide. For most of the others one in a hundred may, and not by a factor of two:
 * what is measured is an RMS, and forces of a gas that are nine times the median are in it. */
TEST_P(WithClosePairs, MostForcesHaveTheAccuracy)
{
    const Kind& kind    = GetParam();
    int         refused = 0, missed = 0;
    for (int seed = 0; seed < 100; seed++)
    {
        SCOPED_TRACE(testing::Message() << kind.name << ", seed " << seed);
        Random         random(static_cast<std::uint64_t>(5000 + seed));
        const Boundary boundary = seed % 3 == 0 ? Boundary::Open : kind.boundary;
        const System   s        = withClosePairs(kind.make(&random, seed), &random);
        const double   asked    = std::pow(10, -3 - 3 * random.uniform());
        Made           made(s, optionsFor(asked, boundary));
        if (made.status != GMXFMM_OK)
        {
            SCOPED_TRACE(made.message);
            expectRefused(made);
            refused++;
            continue;
        }
        const Solution            sum   = boundary == Boundary::Open ? directSum(s) : ewald(s);
        const std::vector<double> force = made.plan->execute(s.x).force;
        EXPECT_LE(relativeRms(force, sum.force), asked);
        const double ofMost = medianError(s, force, sum.force);
        missed += ofMost > asked;
        EXPECT_LE(ofMost, 2 * asked);
    }
    RecordProperty("refused", refused);
    EXPECT_LE(refused, 1);
    EXPECT_LE(missed, 1);
}

INSTANTIATE_TEST_SUITE_P(Kinds,
                         WithClosePairs,
                         testing::Values(Kind{"Crystals", Boundary::Tinfoil, thermalCrystal},
                                         Kind{"Gases", Boundary::Tinfoil, gas},
                                         Kind{"Melts", Boundary::Tinfoil, melt},
                                         Kind{"Clusters", Boundary::Open, clusters},
                                         Kind{"ClustersInABox", Boundary::Tinfoil, clustersInABox}),
                         parameterName<Kind>);
