/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Open systems in any proportion: distances from 1e-12 of the extent on, against sums over all pairs in long double. */
#include <cmath>
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
    const Vec3           place = {3, 4 + 1e-11, 5};
    const double         r     = place[1] - 4;
    std::vector<double>  e(3);
    gmxfmm_output        output = sized<gmxfmm_output>();
    const gmxfmm_options o      = asked(1e-9);
    Plan                 plan(s, o);
    output.field = e.data();
    ASSERT_EQ(gmxfmm_set_targets(plan.get(), 1, place.data()), GMXFMM_OK);
    ASSERT_EQ(gmxfmm_assign(plan.get(), s.x.data()), GMXFMM_OK) << gmxfmm_message(plan.get());
    ASSERT_EQ(gmxfmm_execute(plan.get(), s.x.data(), &output), GMXFMM_OK) << gmxfmm_message(plan.get());
    EXPECT_NEAR(e[1], 1 / (r * r), 1e-14 / (r * r)); /* all others: below 1e-8 of it, squared */
}
INSTANTIATE_TEST_SUITE_P(,
                         Proportions,
                         testing::Values(GMXFMM_M2L_AUTO, GMXFMM_M2L_FFT, GMXFMM_M2L_ROTATION),
                         methodName);

/* Floats in single precision, whose differences are exact as well: 1e-5 is what rounding leaves of such forces. */
TEST(ProportionsInSingle, FloatsOfAnySize)
{
    System s = scales(100, 4);
    for (double& x : s.x)
    {
        x = static_cast<float>(x);
    }
    const Solution     exact = exactSum(s);
    std::vector<float> x(s.x.begin(), s.x.end()), q(s.q.begin(), s.q.end()), f(x.size());
    gmxfmm_options     o      = open(1e-5, GMXFMM_SINGLE);
    gmxfmm_output      output = sized<gmxfmm_output>();
    gmxfmm_plan*       plan   = nullptr;
    char               text[512];
    o.array_type = GMXFMM_SINGLE;
    output.force = f.data();
    ASSERT_EQ(gmxfmm_create(&plan, &o, static_cast<int64_t>(s.size()), nullptr, text, sizeof(text)), GMXFMM_OK) << text;
    EXPECT_EQ(gmxfmm_set_charges(plan, static_cast<int64_t>(s.size()), q.data()), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_assign(plan, x.data()), GMXFMM_OK) << gmxfmm_message(plan);
    EXPECT_EQ(gmxfmm_execute(plan, x.data(), &output), GMXFMM_OK) << gmxfmm_message(plan);
    gmxfmm_destroy(plan);
    const std::vector<double> force(f.begin(), f.end());
    for (std::size_t cube = 0; cube < 3; cube++)
    {
        EXPECT_LE(errorOf(force, exact.force, 100 * cube, 100), 1e-5) << cube;
    }
}
