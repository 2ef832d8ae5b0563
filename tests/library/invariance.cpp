/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What must not change the result: where the origin is, how the axes lie, how particles are numbered. */
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "support/norms.h"
#include "support/paths.h"
#include "support/plan.h"
#include "support/suites.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

/* Where the truncated result itself must be the same, only rounding differs: 1e-16 times some thousand terms. */
const double rounding = 1e-11;

/* Where cells fall differently the results differ by their truncation: order 18 with two layers is below this. */
const double truncation = 1e-9;

gmxfmm_options fine(const Path& path)
{
    return pathOptions(path, 18, 4, 2);
}

gmxfmm_options coarse(const Path& path)
{
    return pathOptions(path, 4, 6, 1);
}

System ionsIn(const BoxType& type)
{
    System s = ions(boxOfVolume(type, 200), 200, 21);
    s.exclude(0, 1);
    s.exclude(17, farthestFrom(s, 17));
    return s;
}

void expectSame(const Solution& a, const Solution& b, double tolerance)
{
    EXPECT_LT(relativeRms(a.potential, b.potential), tolerance);
    EXPECT_LT(relativeRms(a.field, b.field), tolerance);
    EXPECT_LT(relativeRms(a.force, b.force), tolerance);
    EXPECT_NEAR(a.energy, b.energy, tolerance * std::fabs(b.energy));
    EXPECT_LT(maxDifference(a.virial, b.virial), tolerance * std::fabs(b.energy));
}

class Invariance : public testing::TestWithParam<Path>
{
};

/* What only the fft path can be asked: the octree's boxes have their vectors along x, y and z. */
class InvarianceOfTheGrid : public testing::TestWithParam<Path>
{
};

std::vector<Path> gridPaths()
{
    std::vector<Path> all;
    for (const BoxType& box : boxTypes())
    {
        all.push_back({GMXFMM_M2L_FFT, box});
    }
    return all;
}

} // namespace

TEST_P(Invariance, Translation)
{
    const System s     = ionsIn(GetParam().box);
    System       moved = s;
    for (std::size_t k = 0; k < s.x.size(); k++)
    {
        moved.x[k] += k % 3 == 0 ? 0.731 : k % 3 == 1 ? -1.234 : 3.21;
    }
    expectSame(solve(moved, fine(GetParam())), solve(s, fine(GetParam())), truncation);
}

/* By other amounts for every particle: nothing but rounding may depend on which image is given. */
TEST_P(Invariance, LatticeTranslationOfEachParticle)
{
    const System s     = ionsIn(GetParam().box);
    System       moved = s;
    for (std::size_t i = 0; i < s.size(); i++)
    {
        const double h = static_cast<double>(i % 5) - 2, k = static_cast<double>(i % 7) - 3,
                     l = static_cast<double>(i % 3) - 1;
        const Vec3 t   = rowTimes({h, k, l}, s.box);
        for (std::size_t d = 0; d < 3; d++)
        {
            moved.x[3 * i + d] += t[d];
        }
    }
    expectSame(solve(moved, coarse(GetParam())), solve(s, coarse(GetParam())), rounding);
}

/* Any vectors that span the lattice are its box, also left-handed ones and such as are far longer than the shortest; a
 * plan takes them at create, and in place of others. */
TEST_P(Invariance, VectorsOfTheLattice)
{
    const System s = ionsIn(GetParam().box);
    /* the box of an octree is the same one again, other boxes may have other short vectors, thus cells */
    const bool           byCells   = GetParam().m2l == GMXFMM_M2L_FFT;
    const gmxfmm_options options   = byCells ? fine(GetParam()) : coarse(GetParam());
    const double         tolerance = byCells ? truncation : 10 * rounding;
    const Solution       expected  = solve(s, options);
    std::mt19937         random(2027);
    Plan                 plan(s, options);
    int                  leftHanded = 0;
    for (int trial = 0; trial < 25; trial++)
    {
        SCOPED_TRACE(trial);
        System other = s;
        for (int k = 0; k < 2 + trial % 5; k++)
        {
            const std::size_t i = random() % 3, j = (i + 1 + random() % 2) % 3;
            const double      times = static_cast<double>(random() % 13) - 6;
            for (std::size_t d = 0; d < 3; d++)
            {
                other.box[3 * i + d] += times * other.box[3 * j + d];
            }
        }
        if (random() % 2 == 0)
        {
            for (std::size_t d = 0; d < 3; d++)
            {
                std::swap(other.box[d], other.box[3 + d]);
            }
            leftHanded++;
        }
        expectSame(solve(other, options), expected, tolerance);
        plan.setBox(other.box);
        plan.assign(s.x);
        expectSame(plan.execute(s.x), expected, tolerance);
    }
    EXPECT_GT(leftHanded, 5);
    EXPECT_LT(leftHanded, 20);
}

/* A plan that has followed the box by steps, in which the lengths of its near vectors change places, and is assigned
 * anew has the result of a new plan. */
TEST_P(Invariance, HistoryOfTheBox)
{
    System s = ionsIn(GetParam().box);
    Plan   plan(s, coarse(GetParam()));
    for (const double stretch : {1.004, 0.99, 1.001})
    {
        const Vec3 factors = {stretch, 1 / stretch, 2 - stretch};
        for (std::size_t k = 0; k < 9; k++)
        {
            s.box[k] *= factors[k % 3];
        }
        for (std::size_t k = 0; k < s.x.size(); k++)
        {
            s.x[k] *= factors[k % 3];
        }
        plan.setBox(s.box);
        plan.execute(s.x); /* with the cells of the box before */
        plan.assign(s.x);
        expectSame(plan.execute(s.x), solve(s, coarse(GetParam())), rounding);
    }
}

/* With "reproducible" also in every bit, after steps that lattice sums would not be made anew for, and after such as
 * change the ranges of these sums. */
TEST_P(Invariance, HistoryOfTheBoxToTheLastBit)
{
    gmxfmm_options options = coarse(GetParam());
    options.precision      = GMXFMM_SINGLE;
    options.reproducible   = 1;
    System s               = ionsIn(GetParam().box);
    Plan   plan(s, options);
    for (const double stretch : {1 + 6e-7, 1 + 6e-7, 1.004, 0.99})
    {
        for (std::size_t k = 2; k < 9; k += 3)
        {
            s.box[k] *= stretch;
        }
        for (std::size_t k = 2; k < s.x.size(); k += 3)
        {
            s.x[k] *= stretch;
        }
        plan.setBox(s.box);
        plan.execute(s.x); /* with the cells of the box before */
        plan.assign(s.x);
        const Result followed = plan.execute(s.x);
        const Result anew     = solve(s, options);
        EXPECT_EQ(followed.force, anew.force);
        EXPECT_EQ(followed.energy, anew.energy);
    }
}

/* Expansions, cells and near sets turn with the box, so a result of any order turns with it. */
TEST_P(InvarianceOfTheGrid, Rotation)
{
    const System s        = ionsIn(GetParam().box);
    const Vec3   axis     = {0.3, -1, 0.6};
    const double angle    = 1.1;
    const Result r        = solve(rotated(s, axis, angle), coarse(GetParam()));
    Solution     expected = solve(s, coarse(GetParam()));
    /* turn the vectors of the unturned result by letting them pass as positions */
    System carrier = s;
    carrier.x      = expected.field;
    expected.field = rotated(carrier, axis, angle).x;
    carrier.x      = expected.force;
    expected.force = rotated(carrier, axis, angle).x;
    EXPECT_LT(relativeRms(r.potential, expected.potential), rounding);
    EXPECT_LT(relativeRms(r.field, expected.field), rounding);
    EXPECT_LT(relativeRms(r.force, expected.force), rounding);
    EXPECT_NEAR(r.energy, expected.energy, rounding * std::fabs(expected.energy));
    EXPECT_NEAR(trace(r.virial), trace(expected.virial), rounding * std::fabs(expected.energy));
}

TEST_P(Invariance, OrderOfParticles)
{
    const System             s = ionsIn(GetParam().box);
    std::vector<std::size_t> place(s.size()); /* where particle i goes */
    std::iota(place.begin(), place.end(), std::size_t{0});
    Random random(8);
    for (std::size_t i = s.size() - 1; i > 0; i--)
    {
        std::swap(place[i], place[static_cast<std::size_t>(random.uniform() * static_cast<double>(i + 1))]);
    }
    System mixed = s;
    mixed.excluded.assign(s.size(), {});
    for (std::size_t i = 0; i < s.size(); i++)
    {
        std::copy(&s.x[3 * i], &s.x[3 * i] + 3, &mixed.x[3 * place[i]]);
        mixed.q[place[i]] = s.q[i];
        for (int j : s.excluded[i])
        {
            mixed.excluded[place[i]].push_back(static_cast<int>(place[static_cast<std::size_t>(j)]));
        }
    }
    const Result a = solve(s, coarse(GetParam())), b = solve(mixed, coarse(GetParam()));
    Result       sorted = b;
    for (std::size_t i = 0; i < s.size(); i++)
    {
        sorted.potential[i] = b.potential[place[i]];
        std::copy(&b.field[3 * place[i]], &b.field[3 * place[i]] + 3, &sorted.field[3 * i]);
        std::copy(&b.force[3 * place[i]], &b.force[3 * place[i]] + 3, &sorted.force[3 * i]);
    }
    expectSame(sorted, a, rounding);
}

/* The same lattice with another basis is the same system. */
TEST_P(InvarianceOfTheGrid, ChoiceOfBoxVectors)
{
    const System s     = ionsIn(GetParam().box);
    System       other = s;
    for (std::size_t d = 0; d < 3; d++)
    {
        other.box[3 + d] += s.box[d];
        other.box[6 + d] += s.box[d] - s.box[3 + d];
    }
    expectSame(solve(other, fine(GetParam())), solve(s, fine(GetParam())), truncation);
}

/* Lengths in other units: potentials go as 1 / length at any order. */
TEST_P(Invariance, UnitOfLength)
{
    const System s      = ionsIn(GetParam().box);
    const double factor = 37;
    Result       r = solve(strained(s, {factor - 1, 0, 0, 0, factor - 1, 0, 0, 0, factor - 1}), coarse(GetParam()));
    for (double& v : r.potential)
    {
        v *= factor;
    }
    for (double& v : r.field)
    {
        v *= factor * factor;
    }
    const Result a = solve(s, coarse(GetParam()));
    EXPECT_LT(relativeRms(r.potential, a.potential), rounding);
    EXPECT_LT(relativeRms(r.field, a.field), rounding);
    EXPECT_NEAR(factor * r.energy, a.energy, rounding * std::fabs(a.energy));
}

INSTANTIATE_TEST_SUITE_P(Paths, Invariance, testing::ValuesIn(paths()), pathName);
INSTANTIATE_TEST_SUITE_P(Paths, InvarianceOfTheGrid, testing::ValuesIn(gridPaths()), pathName);

class Linearity : public testing::TestWithParam<gmxfmm_m2l>
{
  protected:
    Path path() const
    {
        return {GetParam(), boxTypes()[GetParam() == GMXFMM_M2L_FFT ? 2 : 0]};
    }
};

/* Potentials are linear in the charges, also for charges changed in an existing plan. */
TEST_P(Linearity, OfPotentialsInCharges)
{
    const System s = ionsIn(path().box);
    Random       random(4);
    System       first = s, second = s, both = s;
    for (std::size_t i = 0; i < s.size(); i++)
    {
        first.q[i]  = random.centred();
        second.q[i] = random.centred();
        both.q[i]   = 2 * first.q[i] - 3 * second.q[i];
    }
    const Result a = solve(first, coarse(path())), b = solve(second, coarse(path()));
    Plan         plan(first, coarse(path()));
    ASSERT_EQ(gmxfmm_set_charges(plan.get(), static_cast<std::int64_t>(both.size()), both.q.data()), GMXFMM_OK);
    const Result        c = plan.execute(s.x);
    std::vector<double> combined(s.size());
    for (std::size_t i = 0; i < s.size(); i++)
    {
        combined[i] = 2 * a.potential[i] - 3 * b.potential[i];
    }
    EXPECT_LT(relativeRms(c.potential, combined), rounding);
}

TEST_P(Linearity, OfEverythingInThePrefactor)
{
    const System   s       = ionsIn(path().box);
    gmxfmm_options options = coarse(path());
    const Result   one     = solve(s, options);
    options.prefactor      = -138.935458;
    Result scaled          = solve(s, options);
    for (std::vector<double>* values : {&scaled.potential, &scaled.field, &scaled.force})
    {
        for (double& v : *values)
        {
            v /= options.prefactor;
        }
    }
    for (double& v : scaled.virial)
    {
        v /= options.prefactor;
    }
    scaled.energy /= options.prefactor;
    expectSame(scaled, one, 1e-14);
    EXPECT_NEAR(scaled.energyNear / options.prefactor, one.energyNear, 1e-14 * std::fabs(one.energyNear));
}

INSTANTIATE_TEST_SUITE_P(Methods, Linearity, testing::ValuesIn(methods()), methodName);
