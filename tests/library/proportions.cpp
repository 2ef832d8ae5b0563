/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Open systems in any proportion: distances from 1e-12 of the extent on, against sums over all pairs in long double. */
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "support/norms.h"
#include "support/paths.h"
#include "support/plan.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

/* Sums over all pairs, excluded ones left out, in long double: of numbers that are as they were given. */
Solution exactSum(const System& s)
{
    using Long       = long double;
    Solution   out   = emptySolution(s.size());
    Long       w[9]  = {0};
    const auto which = [&s](std::size_t i, std::size_t j)
    {
        if (s.excluded.empty())
        {
            return true;
        }
        for (int k : s.excluded[i])
        {
            if (static_cast<std::size_t>(k) == j)
            {
                return false;
            }
        }
        return true;
    };
    for (std::size_t i = 0; i < s.size(); i++)
    {
        Long sum[4] = {0};
        for (std::size_t j = 0; j < s.size(); j++)
        {
            if (j == i || !which(i, j))
            {
                continue;
            }
            Long d[3], square = 0;
            for (std::size_t a = 0; a < 3; a++)
            {
                d[a] = static_cast<Long>(s.x[3 * i + a]) - static_cast<Long>(s.x[3 * j + a]);
                square += d[a] * d[a];
            }
            const Long phi = s.q[j] / std::sqrt(square);
            sum[3] += phi;
            for (std::size_t a = 0; a < 3; a++)
            {
                sum[a] += phi / square * d[a];
                for (std::size_t b = 0; b < 3; b++)
                {
                    w[3 * a + b] -= s.q[i] * phi / square * d[a] * d[b] / 4;
                }
            }
        }
        out.potential[i] = static_cast<double>(sum[3]);
        for (std::size_t a = 0; a < 3; a++)
        {
            out.field[3 * i + a] = static_cast<double>(sum[a]);
        }
    }
    for (std::size_t k = 0; k < 9; k++)
    {
        out.virial[k] = static_cast<double>(w[k]);
    }
    finishSolution(s, &out);
    return out;
}

/* n charges +1 and -1 in a cube of that edge around centre. */
void addCube(System* s, int n, double edge, const Vec3& centre, Random* random)
{
    for (int i = 0; i < n; i++)
    {
        Vec3 x;
        for (std::size_t d = 0; d < 3; d++)
        {
            x[d] = centre[d] + 0.5 * edge * random->centred();
        }
        s->add(x, i % 2 == 0 ? 1 : -1);
    }
}

/* Cubes of 1e-6, 1 and 1e6, each of n charges, the smaller ones around the origin. */
System scales(int n, std::uint64_t seed)
{
    System s;
    Random random(seed);
    for (double edge : {1e-6, 1.0, 1e6})
    {
        addCube(&s, n, edge, {0, 0, 0}, &random);
    }
    return s;
}

/* Of the particles first .. first + n - 1. */
double errorOf(const std::vector<double>& v, const std::vector<double>& exact, std::size_t first, std::size_t n)
{
    const auto part = [=](const std::vector<double>& all)
    {
        return std::vector<double>(all.begin() + static_cast<long>(3 * first),
                                   all.begin() + static_cast<long>(3 * (first + n)));
    };
    return relativeRms(part(v), part(exact));
}

gmxfmm_options open(double accuracy, gmxfmm_precision precision = GMXFMM_DOUBLE)
{
    return withBoundary(askedOptions(accuracy, precision), Boundary::Open);
}

enum Kind
{
    c_cubes,
    c_outlier,
    c_cluster,
    c_clusters,
    c_plummer,
    c_sphere,
    c_walk,
    c_numKinds
};

/* n charges in [-1, 1), distributed as in a kind; length: that of the system, or of most of it. */
System distribution(Kind kind, int n, double length, std::uint64_t seed)
{
    System s;
    Random random(seed);
    Vec3   at = {0, 0, 0};
    Vec3   around[5];
    for (Vec3& centre : around)
    {
        centre = {random.centred(), random.centred(), random.centred()};
    }
    for (int i = 0; i < n; i++)
    {
        const double u = random.uniform();
        const Vec3   c = {random.centred(), random.centred(), random.centred()}, d = random.direction();
        double       r = 1;
        Vec3         x = {0, 0, 0}, centre = {0, 0, 0};
        switch (kind)
        {
        case c_cubes:
            r = i % 3 == 0 ? 1e-6 : i % 3 == 1 ? 1e-3 : 1;
            x = c;
            break;
        case c_outlier:
            centre = {i == n - 1 ? 2000.0 : 0.0, 0, 0};
            x      = c;
            break;
        case c_cluster:
            r = i % 2 == 0 ? 1e-5 : 1;
            x = c;
            break;
        case c_clusters:
            r      = 1e-3;
            centre = around[i % 5];
            x      = c;
            break;
        case c_plummer:
            r = 1 / std::sqrt(std::pow(0.999 * u + 1e-9, -2.0 / 3) - 1);
            x = d;
            break;
        case c_walk: /* Levy's: steps whose lengths have a tail of power -1.5 */
            for (std::size_t k = 0; k < 3; k++)
            {
                at[k] += 1e-3 * std::pow(1 - u, -1 / 1.5) * d[k];
            }
            centre = at;
            break;
        default:
            x = d;
        }
        s.add({length * (centre[0] + r * x[0]), length * (centre[1] + r * x[1]), length * (centre[2] + r * x[2])},
              random.centred());
    }
    return s;
}

class Proportions : public testing::TestWithParam<gmxfmm_m2l>
{
  protected:
    static gmxfmm_options asked(double accuracy)
    {
        gmxfmm_options o = open(accuracy);
        o.m2l            = GetParam();
        return o;
    }
};

} // namespace

/* The forces of each cube, as those of the smallest are 1e24 times those of the largest; 1e-9 was asked for. */
TEST_P(Proportions, CubesInCubes)
{
    const System   s     = scales(200, 1);
    const Solution exact = exactSum(s);
    const Result   r     = solve(s, asked(1e-9));
    for (std::size_t cube = 0; cube < 3; cube++)
    {
        EXPECT_LE(errorOf(r.force, exact.force, 200 * cube, 200), 1e-9) << cube;
    }
}

/* The virial of a droplet of many cells in which two charges are 1e-9 apart: theirs is 1e9 times that of the others,
 * and the forces of the pair times its place 1e18 times. Rounding of a sum of so many terms: 1e-12. */
TEST_P(Proportions, VirialBesideAClosePair)
{
    System s             = droplet(1500, 10, 2);
    s.x[0]               = s.x[3] + 1e-9;
    s.x[1]               = s.x[4];
    s.x[2]               = s.x[5];
    const Solution exact = exactSum(s);
    const Result   r     = solve(s, asked(1e-6));
    EXPECT_LE(maxDifference(r.virial, exact.virial), 1e-12 * std::fabs(exact.virial[0]));
    EXPECT_LE(std::fabs(r.energy - exact.energy), 1e-12 * std::fabs(exact.energy));
}

/* The pair excluded, as an atom and its shell are: what is left is that of the droplet, to the accuracy asked for. */
TEST_P(Proportions, ExcludedClosePair)
{
    System s = droplet(1500, 10, 2);
    s.x[0]   = s.x[3] + 1e-9;
    s.x[1]   = s.x[4];
    s.x[2]   = s.x[5];
    s.exclude(0, 1);
    const Solution exact = exactSum(s);
    const Result   r     = solve(s, asked(1e-6));
    EXPECT_LE(relativeRms(r.force, exact.force), 1e-6);
    EXPECT_LE(maxDifference(r.virial, exact.virial), 1e-6 * std::fabs(exact.energy));
}

/* A place 1e-11 from a charge of a system 1e6 long. */
TEST_P(Proportions, TargetBesideACharge)
{
    System s = scales(100, 3);
    s.add({3, 4, 5}, 1);
    const std::vector<double> place = {3, 4 + 1e-11, 5};
    const double              r     = place[1] - 4;
    Plan                      plan(s, asked(1e-9));
    /* all others: below 1e-8 of it, squared */
    EXPECT_NEAR(valuesAt(plan.get(), s.x, place).field[1], 1 / (r * r), 1e-14 / (r * r));
}
INSTANTIATE_TEST_SUITE_P(,
                         Proportions,
                         testing::Values(GMXFMM_M2L_AUTO, GMXFMM_M2L_FFT, GMXFMM_M2L_ROTATION),
                         methodName);

namespace
{

class Uneven : public testing::TestWithParam<std::tuple<Kind, gmxfmm_m2l>>
{
  protected:
    static gmxfmm_options asked(double accuracy)
    {
        gmxfmm_options o = open(accuracy);
        o.m2l            = std::get<1>(GetParam());
        o.order          = 6;
        o.separation     = 1;
        return o;
    }
    static System system(int n, std::uint64_t seed)
    {
        return distribution(std::get<0>(GetParam()), n, 3, seed);
    }
};

} // namespace

/* Order 6 has errors of 1e-4 in forces with a third of all pairs in the near field, as there are here. */
static const double c_tolerance = 1e-3;

/* Energy and virial by the same share of the largest of them. */
TEST_P(Uneven, ForcesEnergyAndVirial)
{
    const System   s     = system(3000, 5);
    const Solution exact = exactSum(s);
    const Result   r     = solve(s, asked(1e-2));
    EXPECT_LE(relativeRms(r.force, exact.force), c_tolerance) << "depth " << r.info.depth << " order " << r.info.order;
    EXPECT_LE(relativeRms(r.potential, exact.potential), c_tolerance);
    double most = std::fabs(exact.energy);
    for (double w : exact.virial)
    {
        most = std::fmax(most, std::fabs(w));
    }
    EXPECT_LE(std::fabs(r.energy - exact.energy), c_tolerance * most);
    EXPECT_LE(maxDifference(r.virial, exact.virial), c_tolerance * most);
}

/* The near set of a particle: not the whole of a cluster, but for those that are beside it. */
TEST_P(Uneven, NearListsStayShort)
{
    const int      n = 40000;
    const System   s = system(n, 6);
    gmxfmm_options o = asked(1e-2);
    o.device         = GMXFMM_CPU; /* they are counted there */
    Plan plan(s, o);
    EXPECT_LT(plan.info().near_particles, 0.2 * n) << "depth " << plan.info().depth;
}

/* Every tenth particle excludes three others, of which some are in another leaf, near or far. */
TEST_P(Uneven, ExcludedPairs)
{
    System s = system(3000, 7);
    for (std::size_t i = 0; i < s.size(); i += 10)
    {
        for (std::size_t step : {1, 2, 437})
        {
            const std::size_t j = (i + step) % s.size();
            if (j % 10 != 0)
            {
                s.exclude(i, j);
            }
        }
    }
    const Solution exact = exactSum(s);
    const Result   r     = solve(s, asked(1e-2));
    EXPECT_LE(relativeRms(r.force, exact.force), c_tolerance);
}

/* Targets at some of the places of the same distribution: those of other charges, which are left out. */
TEST_P(Uneven, Targets)
{
    const System all = system(3000, 8);
    System       s, rest;
    for (std::size_t i = 0; i < all.size(); i++)
    {
        (i % 5 == 4 ? rest : s).add(all.position(i), all.q[i]);
    }
    System with = s;
    for (std::size_t i = 0; i < rest.size(); i++)
    {
        with.add(rest.position(i), 0);
    }
    const Solution            exact = exactSum(with);
    Plan                      plan(s, asked(1e-2));
    const std::vector<double> last(exact.field.begin() + static_cast<long>(3 * s.size()), exact.field.end());
    EXPECT_LE(relativeRms(valuesAt(plan.get(), s.x, rest.x).field, last), c_tolerance);
}

/* Particles that have moved by assignments to come: the leaves follow them. */
TEST_P(Uneven, AssignedAgain)
{
    const System s = system(2000, 9);
    Plan         plan(s, asked(1e-2));
    for (double scale : {0.2, 10.0})
    {
        System moved = s;
        for (double& x : moved.x)
        {
            x *= scale;
        }
        plan.assign(moved.x);
        EXPECT_LE(relativeRms(plan.execute(moved.x).force, exactSum(moved).force), c_tolerance) << scale;
    }
}

INSTANTIATE_TEST_SUITE_P(,
                         Uneven,
                         testing::Values(std::make_tuple(c_outlier, GMXFMM_M2L_AUTO),
                                         std::make_tuple(c_cluster, GMXFMM_M2L_SYMMETRIC),
                                         std::make_tuple(c_plummer, GMXFMM_M2L_AUTO),
                                         std::make_tuple(c_walk, GMXFMM_M2L_NAIVE)));

/* Enough particles for octrees of more levels than the option depth takes: references and choices have the same. */
TEST(ProportionsMeasured, OctreesOfAnyDepth)
{
    for (int kind = 0; kind < c_numKinds; kind++)
    {
        for (gmxfmm_m2l m2l : {GMXFMM_M2L_AUTO, GMXFMM_M2L_ROTATION})
        {
            SCOPED_TRACE(kind);
            const System   s       = distribution(static_cast<Kind>(kind), 2500, 1, 11);
            gmxfmm_options options = open(1e-5);
            options.m2l            = m2l;
            char             text[512];
            gmxfmm_plan*     made = nullptr;
            const SystemView view(s, Boundary::Open);
            gmxfmm_system    system = view.get();
            ASSERT_EQ(gmxfmm_create_measured(&made, &options, &system, nullptr, nullptr, nullptr, text, sizeof(text)),
                      GMXFMM_OK)
                << text;
            Plan plan(s, made);
            EXPECT_LE(relativeRms(plan.execute(s.x).force, exactSum(s).force), 1e-5);
            EXPECT_LE(plan.info().measured_error, 1e-5);
        }
    }
}

/* A hundred systems of all kinds and sizes, with accuracies from 1e-3 to 1e-9: one may fall short, and none by a factor
 * of ten. The same with settings chosen by the model alone. */
TEST(ProportionsAtRandom, AHundredSystems)
{
    Random random(10);
    int    missed = 0;
    for (int i = 0; i < 100; i++)
    {
        const Kind     kind   = static_cast<Kind>(i % c_numKinds);
        const int      n      = 20 + static_cast<int>(400 * random.uniform() * random.uniform());
        const double   length = std::pow(10, 8 * random.centred()), accuracy = std::pow(10, -3 - 6 * random.uniform());
        const System   s     = distribution(kind, n, length, 100 + static_cast<std::uint64_t>(i));
        const Solution exact = exactSum(s);
        const double   error = relativeRms(solve(s, open(accuracy)).force, exact.force);
        missed += error > accuracy;
        EXPECT_LE(error, 10 * accuracy) << "system " << i << " of " << n;
    }
    EXPECT_LE(missed, 1);
}

/* The same with plans that are measured, of cubes of 1e-6, 1 and 1e6 in one another and of the other kinds: all of them
 * reach what is asked for, but one that may be refused. The RMS is that of the smallest cube; half of all forces have
 * the accuracy for themselves, too. */
TEST(ProportionsAtRandom, AHundredSystemsMeasured)
{
    Random random(12);
    int    refused = 0;
    for (int i = 0; i < 100; i++)
    {
        const int    n        = 20 + static_cast<int>(250 * random.uniform() * random.uniform());
        const double accuracy = std::pow(10, -3 - 3 * random.uniform());
        const auto   seed     = 300 + static_cast<std::uint64_t>(i);
        const System s = i % 2 == 0 ? scales(n, seed) : distribution(static_cast<Kind>(i / 2 % c_numKinds), n, 1, seed);
        SCOPED_TRACE(testing::Message() << "system " << i << " of " << s.size() << ", accuracy " << accuracy);
        char             text[512];
        gmxfmm_plan*     made    = nullptr;
        gmxfmm_options   options = open(accuracy);
        const SystemView view(s, Boundary::Open);
        gmxfmm_system    system = view.get();
        options.reproducible    = 1;
        const gmxfmm_status status =
            gmxfmm_create_measured(&made, &options, &system, nullptr, nullptr, nullptr, text, sizeof(text));
        if (status != GMXFMM_OK)
        {
            EXPECT_EQ(status, GMXFMM_ERROR_OPTION) << text;
            refused++;
            continue;
        }
        Plan                plan(s, made);
        const Solution      exact = exactSum(s);
        const Result        r     = plan.execute(s.x);
        std::vector<double> errors;
        EXPECT_LE(relativeRms(r.force, exact.force), accuracy);
        for (std::size_t k = 0; k < s.size(); k++)
        {
            errors.push_back(errorOf(r.force, exact.force, k, 1));
        }
        std::nth_element(errors.begin(), errors.begin() + static_cast<long>(errors.size() / 2), errors.end());
        EXPECT_LE(errors[errors.size() / 2], accuracy);
    }
    EXPECT_LE(refused, 1);
}

/* Screened by so much that no force is a number that double precision has, exp(-3000) and less: no noise, but zero. */
TEST(ProportionsInSingle, StronglyScreened)
{
    System s = distribution(c_sphere, 300, 0.1, 11);
    for (std::size_t i = 0; i < 300; i++)
    {
        s.x[3 * i] += static_cast<double>(i) / 2; /* 0.3 apart, or more */
    }
    gmxfmm_options o = open(1e-3, GMXFMM_SINGLE);
    o.method         = GMXFMM_TREECODE;
    o.kernel         = GMXFMM_YUKAWA;
    o.kappa          = 1e4;
    o.theta          = 0.7;
    o.degree         = 4;
    o.leaf           = 50;
    Plan plan(s, o);
    for (double e : valuesOf(plan.get(), s.x, s.size()).field)
    {
        EXPECT_EQ(e, 0);
    }
}

namespace
{

/* Charges in [-1, 1) in a cube of edge 1; and so many edges away one alone, or half of them
 * in a cube that is 1e-5 of this distance long. All are floats, and no two at one place. */
System remote(int n, double ratio, bool cluster, std::uint64_t seed)
{
    System                         s;
    Random                         random(seed);
    std::set<std::array<float, 3>> taken;
    while (static_cast<int>(s.size()) < n)
    {
        const bool           away = cluster ? static_cast<int>(s.size()) >= n / 2 : static_cast<int>(s.size()) == n - 1;
        const double         edge = away ? 1e-5 * ratio : 1;
        const Vec3           from = away ? Vec3{ratio, -0.3 * ratio, 0.1 * ratio} : Vec3{0, 0, 0};
        std::array<float, 3> x;
        for (std::size_t d = 0; d < 3; d++)
        {
            x[d] = static_cast<float>(from[d] + 0.5 * edge * random.centred());
        }
        if (taken.insert(x).second)
        {
            const double q = static_cast<float>(random.centred());
            s.add({static_cast<double>(x[0]), static_cast<double>(x[1]), static_cast<double>(x[2])}, q);
        }
    }
    return s;
}

/* Forces by a plan with arrays of floats. */
std::vector<double> forcesOfFloats(const System& s, gmxfmm_options o)
{
    std::vector<float> x(s.x.begin(), s.x.end()), q(s.q.begin(), s.q.end()), f(x.size());
    gmxfmm_output      output = sized<gmxfmm_output>();
    o.array_type              = GMXFMM_SINGLE;
    output.force              = f.data();
    gmxfmm_plan* plan         = createOrSkip(o, static_cast<std::int64_t>(s.size()), nullptr);
    EXPECT_EQ(gmxfmm_set_charges(plan, static_cast<std::int64_t>(s.size()), q.data()), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_assign(plan, x.data()), GMXFMM_OK) << gmxfmm_message(plan);
    EXPECT_EQ(gmxfmm_execute(plan, x.data(), &output), GMXFMM_OK) << gmxfmm_message(plan);
    gmxfmm_destroy(plan);
    return std::vector<double>(f.begin(), f.end());
}

/* Octrees of systems a part of which is so many edges of the rest away. */
class Remote : public testing::TestWithParam<double>
{
  protected:
    static gmxfmm_options asked(double accuracy, gmxfmm_precision precision = GMXFMM_DOUBLE)
    {
        gmxfmm_options o = open(accuracy, precision);
        o.m2l            = GMXFMM_M2L_ROTATION;
        return o;
    }
    /* Of both parts, relative to their own RMS. */
    static void
    expectBoth(const std::vector<double>& force, const std::vector<double>& exact, std::size_t near, double accuracy)
    {
        EXPECT_LE(errorOf(force, exact, 0, near), accuracy);
        EXPECT_LE(errorOf(force, exact, near, exact.size() / 3 - near), accuracy);
    }
    /* In both precisions, of a system whose first `near` charges are in the cube. */
    static void expectForces(const System& s, std::size_t near)
    {
        const Solution exact = exactSum(s);
        const double   most  = std::fmax(std::fabs(exact.energy), maxDifference(exact.virial, Mat3{}));
        for (double accuracy : {1e-3, 1e-6, 1e-9})
        {
            SCOPED_TRACE(accuracy);
            const Result r = solve(s, asked(accuracy));
            expectBoth(r.force, exact.force, near, accuracy);
            EXPECT_LE(std::fabs(r.energy - exact.energy), accuracy * most);
            EXPECT_LE(maxDifference(r.virial, exact.virial), accuracy * most);
        }
        expectBoth(forcesOfFloats(s, asked(1e-5, GMXFMM_SINGLE)), exact.force, near, 1e-5);
    }
};

} // namespace

TEST_P(Remote, OneParticle)
{
    expectForces(remote(2000, GetParam(), false, 13), 1999);
}

TEST_P(Remote, ClusterOfAnotherSize)
{
    expectForces(remote(2000, GetParam(), true, 14), 1000);
}

/* Doubles alone have places for both. */
TEST_P(Remote, ClusterOfTheSameSize)
{
    System s;
    Random random(15);
    for (int i = 0; i < 2000; i++)
    {
        s.add({(i < 1000 ? 0 : GetParam()) + random.uniform(), random.uniform(), random.uniform()}, random.centred());
    }
    expectBoth(solve(s, asked(1e-7)).force, exactSum(s).force, 1000, 1e-7);
}

/* Targets far away, among the charges, and between. What is exact: charges that are zero there. */
TEST_P(Remote, Targets)
{
    const System        s   = remote(2000, GetParam(), false, 16);
    System              all = s;
    Random              random(17);
    std::vector<double> places;
    for (int i = 0; i < 103; i++)
    {
        const double far = i == 100 ? 1.1 * GetParam() : i == 101 ? 0.4 * GetParam() : i == 102 ? -30 : 0;
        const Vec3   x   = {far + 0.5 * random.centred(), 0.5 * random.centred(), 0.5 * random.centred()};
        places.insert(places.end(), x.begin(), x.end());
        all.add(x, 0);
    }
    /* The model predicts the RMS over many places: one alone may have a few times that, by its own field. */
    const double        accuracy = 1e-6;
    Plan                plan(s, asked(0.1 * accuracy));
    std::vector<double> field(places.size());
    gmxfmm_output       output = sized<gmxfmm_output>();
    output.field               = field.data();
    ASSERT_EQ(gmxfmm_set_targets(plan.get(), 103, places.data()), GMXFMM_OK);
    ASSERT_EQ(gmxfmm_assign(plan.get(), s.x.data()), GMXFMM_OK) << gmxfmm_message(plan.get());
    ASSERT_EQ(gmxfmm_execute(plan.get(), s.x.data(), &output), GMXFMM_OK) << gmxfmm_message(plan.get());
    const std::vector<double> fields = exactSum(all).field, exact(fields.end() - 309, fields.end());
    EXPECT_LE(errorOf(field, exact, 0, 100), accuracy);
    for (std::size_t i = 100; i < 103; i++)
    {
        EXPECT_LE(errorOf(field, exact, i, 1), accuracy) << i;
    }
}

/* Near pairs are those of a compact system, and not all of them. */
TEST_P(Remote, NearListsStayShort)
{
    const int n = 40000;
    for (bool cluster : {false, true})
    {
        const System   s = remote(n, GetParam(), cluster, 18);
        gmxfmm_options o = asked(1e-2);
        o.order          = 6;
        o.separation     = 1;
        o.device         = GMXFMM_CPU; /* they are counted there */
        Plan plan(s, o);
        EXPECT_LT(plan.info().near_particles, 0.1 * n) << "depth " << plan.info().depth;
        EXPECT_GT(plan.info().num_cells, 200);
        EXPECT_LT(plan.info().num_cells, n);
    }
}

INSTANTIATE_TEST_SUITE_P(,
                         Remote,
                         testing::Values(1e3, 1e6, 1e7, 1e8),
                         [](const testing::TestParamInfo<double>& ratio)
                         { return "Ratio1e" + std::to_string(std::lround(std::log10(ratio.param))); });

/* Farther away than levels go the rest is one leaf, and its pairs are near ones: slow, and exact. */
TEST(RemoteBeyondLevels, IsRight)
{
    for (double ratio : {1e10, 1e12, 1e30, 1e60})
    {
        SCOPED_TRACE(ratio);
        System s                        = remote(1000, 1, false, 19);
        s.x[2997]                       = ratio;
        const std::vector<double> exact = exactSum(s).force;
        for (gmxfmm_m2l m2l : {GMXFMM_M2L_ROTATION, GMXFMM_M2L_AUTO})
        {
            gmxfmm_options o = open(1e-9);
            o.m2l            = m2l;
            EXPECT_LE(errorOf(solve(s, o).force, exact, 0, 999), 1e-9);
        }
    }
}

/* Floats in single precision, whose differences are exact as well: 1e-5 is what rounding leaves of such forces. */
TEST(ProportionsInSingle, FloatsOfAnySize)
{
    System s = scales(100, 4);
    for (double& x : s.x)
    {
        x = static_cast<float>(x);
    }
    const Solution            exact = exactSum(s);
    const std::vector<double> force = forcesOfFloats(s, open(1e-5, GMXFMM_SINGLE));
    for (std::size_t cube = 0; cube < 3; cube++)
    {
        EXPECT_LE(errorOf(force, exact.force, 100 * cube, 100), 1e-5) << cube;
    }
}
