/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Excluded pairs: skipped when near, subtracted when far, always at their nearest image. */
#include <algorithm>
#include <tuple>

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

const int cells = 6;

System ionsIn(const BoxType& type)
{
    return ions(boxOfVolume(type, 216), 216, 33);
}

/* Where only rounding can differ: 1e-16 times some thousand terms. */
double rounding(gmxfmm_precision precision)
{
    return precision == GMXFMM_DOUBLE ? 1e-12 : 1e-5;
}

/* What the pairs in the list of left contribute, by hand. */
Solution pairsAlone(const System& s)
{
    Solution      out = emptySolution(s.size());
    const Lattice lattice(s.box);
    for (std::size_t i = 0; i < s.excluded.size(); i++)
    {
        for (int other : s.excluded[i])
        {
            const std::size_t j = static_cast<std::size_t>(other);
            const Vec3        a = s.position(i), b = s.position(j);
            const Vec3        d = lattice.nearest({a[0] - b[0], a[1] - b[1], a[2] - b[2]});
            const double      r = std::sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
            out.potential[i] += s.q[j] / r;
            for (std::size_t k = 0; k < 3; k++)
            {
                out.field[3 * i + k] += s.q[j] * d[k] / (r * r * r);
                for (std::size_t l = 0; l < 3; l++)
                {
                    out.virial[3 * k + l] -= 0.25 * s.q[i] * s.q[j] * d[k] * d[l] / (r * r * r);
                }
            }
        }
    }
    finishSolution(s, &out);
    return out;
}

/* The result with exclusions is the one without less the pairs, at any order and to rounding: a near pair is never
 * computed and a far one is subtracted exactly. */
void expectPairsMissing(const System& s, const Path& path, gmxfmm_precision precision)
{
    const gmxfmm_options options = pathOptions(path, 4, cells, 1, precision);
    const Result         with = solve(s, options), without = solve(withoutExclusions(s), options);
    Solution             expected = without;
    const Solution       pairs    = pairsAlone(s);
    for (std::size_t k = 0; k < s.x.size(); k++)
    {
        expected.field[k] -= pairs.field[k];
        expected.potential[k / 3] -= k % 3 == 0 ? pairs.potential[k / 3] : 0;
    }
    for (std::size_t k = 0; k < 9; k++)
    {
        expected.virial[k] -= pairs.virial[k];
    }
    const double tolerance = rounding(precision), energy = std::fabs(without.energy);
    EXPECT_LT(rmsDifference(with.potential, expected.potential), tolerance * rms(without.potential));
    EXPECT_LT(rmsDifference(with.field, expected.field), tolerance * rms(without.field));
    EXPECT_NEAR(with.energy, without.energy - pairs.energy, tolerance * energy);
    EXPECT_LT(maxDifference(with.virial, expected.virial), tolerance * energy);
}

class Exclusions : public testing::TestWithParam<std::tuple<Path, gmxfmm_precision>>
{
  protected:
    const Path& path() const
    {
        return std::get<0>(GetParam());
    }
    System box() const
    {
        return ionsIn(path().box);
    }
    gmxfmm_precision precision() const
    {
        return std::get<1>(GetParam());
    }
};

} // namespace

TEST_P(Exclusions, OfTheNearestPairs)
{
    System s = box();
    for (std::size_t i = 0; i < s.size(); i += 3)
    {
        std::size_t nearest = i == 0 ? 1 : 0;
        for (std::size_t j = 0; j < s.size(); j++)
        {
            nearest = j != i && nearestDistance(s, i, j) < nearestDistance(s, i, nearest) ? j : nearest;
        }
        if (s.excluded.empty() ||
            std::count(s.excluded[i].begin(), s.excluded[i].end(), static_cast<int>(nearest)) == 0)
        {
            s.exclude(i, nearest);
        }
    }
    expectPairsMissing(s, path(), precision());
}

/* From neighbours to opposite corners: one row with every other particle. */
TEST_P(Exclusions, OfOneWithAllOthers)
{
    System s = box();
    for (std::size_t j = 1; j < s.size(); j++)
    {
        s.exclude(0, j);
    }
    /* both kinds are there: the cells have edges of about 1 */
    EXPECT_GT(nearestDistance(s, 0, farthestFrom(s, 0)), 2 * std::sqrt(3.0) - 0.3);
    expectPairsMissing(s, path(), precision());
}

TEST_P(Exclusions, OfAllPairs)
{
    System s = ions(boxOfVolume(path().box, 216), 40, 3);
    for (std::size_t i = 0; i < s.size(); i++)
    {
        for (std::size_t j = 0; j < i; j++)
        {
            s.exclude(i, j);
        }
    }
    expectPairsMissing(s, path(), precision());
}

/* A molecule that excludes all its atoms from one another, across the box and among others. */
TEST_P(Exclusions, OfALongMolecule)
{
    System s = box();
    for (std::size_t i = 0; i < s.size(); i++)
    {
        for (std::size_t j = 0; j < i && i % 4 != 0; j++)
        {
            if (j % 4 != 0)
            {
                s.exclude(i, j);
            }
        }
    }
    expectPairsMissing(s, path(), precision());
}

TEST_P(Exclusions, OfMolecules)
{
    const System   s         = water(boxOfVolume(path().box, 4), 7);
    const Solution reference = ewald(s);
    const int      fewCells  = isSlow(path().m2l) && precision() == GMXFMM_DOUBLE ? 2 : 4;
    const Result   r         = solve(s, pathOptions(path(), 18, fewCells, 2, precision()));
    /* order 18 with two layers truncates below 1e-9 */
    const double tolerance = precision() == GMXFMM_DOUBLE ? 1e-9 : 1e-5;
    EXPECT_LT(relativeRms(r.force, reference.force), tolerance);
    EXPECT_LT(relativeRms(r.potential, reference.potential), tolerance);
    /* The energy is half the sum of charge times potential, over terms of both signs that nearly cancel: independent
     * errors of the potentials, each of the size tolerated above, add up to this, whatever the sum itself is. */
    const double allowed =
        tolerance * rms(s.q) * rms(reference.potential) * std::sqrt(static_cast<double>(s.size())) / 2;
    EXPECT_NEAR(r.energy, reference.energy, allowed);
}

/* Without a charge there is nothing to interact with: as if the pairs at one place were excluded. */
TEST_P(Exclusions, AreNotNeededByParticlesWithoutCharge)
{
    System            s = box();
    const std::size_t n = s.size();
    for (std::size_t i = 0; i < n; i += 3)
    {
        s.add(s.position(i), 0);
    }
    s.add(s.position(0), 0);
    System excluding = s;
    for (std::size_t i = 0; i < n; i += 3)
    {
        excluding.exclude(i, n + i / 3);
    }
    excluding.exclude(0, s.size() - 1);
    excluding.exclude(n, s.size() - 1);
    const gmxfmm_options options = pathOptions(path(), 4, cells, 1, precision());
    const Result         found = solve(s, options), expected = solve(excluding, options);
    const double         tolerance = rounding(precision());
    EXPECT_LT(relativeRms(found.potential, expected.potential), tolerance);
    EXPECT_LT(relativeRms(found.field, expected.field), tolerance);
    EXPECT_LT(relativeRms(found.force, expected.force), tolerance);
    EXPECT_NEAR(found.energy, expected.energy, tolerance * std::fabs(expected.energy));
    EXPECT_LT(maxDifference(found.virial, expected.virial), tolerance * std::fabs(expected.energy));
    /* and where forces alone are wanted, as in most steps of a simulation */
    Plan                plan(s, options);
    std::vector<double> force(s.x.size());
    gmxfmm_output       output = {};
    output.size                = sizeof(output);
    output.force               = force.data();
    ASSERT_EQ(gmxfmm_execute(plan.get(), s.x.data(), &output), GMXFMM_OK) << gmxfmm_message(plan.get());
    EXPECT_LT(relativeRms(force, expected.force), tolerance);
}

INSTANTIATE_TEST_SUITE_P(Paths,
                         Exclusions,
                         testing::Combine(testing::ValuesIn(paths()), testing::Values(GMXFMM_DOUBLE, GMXFMM_SINGLE)),
                         pathAndPrecisionName);

class ExclusionList : public testing::TestWithParam<gmxfmm_m2l>
{
};

/* Molecules whose atoms are given in different images. */
TEST_P(ExclusionList, FindsTheNearestImage)
{
    const System whole  = water(boxOfVolume(boxTypes()[GetParam() == GMXFMM_M2L_FFT ? 2 : 0], 4), 7);
    System       broken = whole;
    for (std::size_t i = 0; i < whole.size(); i += 2)
    {
        for (std::size_t d = 0; d < 3; d++)
        {
            broken.x[3 * i + d] += whole.box[d] - 2 * whole.box[3 + d] + whole.box[6 + d];
        }
    }
    const gmxfmm_options options = methodOptions(GetParam(), 5, 4, 1);
    EXPECT_LT(relativeRms(solve(broken, options).force, solve(whole, options).force), 1e-12);
}

TEST_P(ExclusionList, MayNameTheParticleItself)
{
    System s = ionsIn(boxTypes()[0]);
    s.exclude(0, 1);
    System self = s;
    for (std::size_t i = 0; i < s.size(); i++)
    {
        self.excluded[i].push_back(static_cast<int>(i));
    }
    const gmxfmm_options options = methodOptions(GetParam(), 5, cells, 1);
    const Result         a = solve(s, options), b = solve(self, options);
    EXPECT_LT(relativeRms(b.force, a.force), 1e-13);
    EXPECT_NEAR(b.energy, a.energy, 1e-13 * std::fabs(a.energy));
}

/* As if it were there once, also where the cells are far from each other, and in the list of one of the two alone. */
TEST_P(ExclusionList, MayNameAPairTwice)
{
    System s = ionsIn(boxTypes()[0]);
    for (std::size_t j = 1; j < s.size(); j++)
    {
        s.exclude(0, j);
    }
    System twice = s;
    for (std::size_t j = 1; j < s.size(); j++)
    {
        twice.excluded[0].push_back(static_cast<int>(j));
    }
    const gmxfmm_options options = methodOptions(GetParam(), 5, cells, 1);
    const Result         a = solve(s, options), b = solve(twice, options);
    EXPECT_LT(relativeRms(b.force, a.force), 1e-13);
    EXPECT_NEAR(b.energy, a.energy, 1e-13 * std::fabs(a.energy));
}

/* Of two images as near both particles take the same one: the forces that are taken off are opposite. */
TEST_P(ExclusionList, MeansOneImageOfTwoAsNear)
{
    for (std::size_t d = 0; d < 3; d++)
    {
        System s;
        s.box      = {6, 0, 0, 0, 6, 0, 0, 0, 6};
        Vec3 place = {0.5, 0.5, 0.5};
        s.add(place, -1);
        place[d] += 3;
        s.add(place, 1);
        s.exclude(0, 1);
        const gmxfmm_options options = methodOptions(GetParam(), 5, cells, 1);
        const Result         with = solve(s, options), without = solve(withoutExclusions(s), options);
        Vec3                 taken[2];
        for (std::size_t k = 0; k < 6; k++)
        {
            taken[k / 3][k % 3] = without.force[k] - with.force[k];
        }
        EXPECT_NEAR(std::fabs(taken[0][d]), 1.0 / 9, 1e-13);
        for (std::size_t k = 0; k < 3; k++)
        {
            EXPECT_NEAR(taken[0][k] + taken[1][k], 0, 1e-13);
        }
    }
}

TEST_P(ExclusionList, IsReplacedByTheNextOne)
{
    System first = ionsIn(boxTypes()[0]), second = first;
    for (std::size_t j = 1; j < 100; j++)
    {
        first.exclude(0, j);
    }
    second.exclude(3, 9);
    const gmxfmm_options options = methodOptions(GetParam(), 5, cells, 1);
    Plan                 plan(first, options);
    plan.execute(first.x);
    plan.setExclusions(second);
    plan.assign(second.x);
    EXPECT_LT(relativeRms(plan.execute(second.x).force, solve(second, options).force), 1e-13);
}

/* A pair that is near when assigned and moves afterwards stays excluded, with its image. */
TEST_P(ExclusionList, HoldsBetweenAssigns)
{
    System s = ionsIn(boxTypes()[0]);
    for (std::size_t j = 1; j < s.size(); j++)
    {
        /* far pairs too, but none so far, half a box edge of 6, that its nearest image could change in what follows */
        if (nearestDistance(s, 0, j) < 2.7)
        {
            s.exclude(0, j);
        }
    }
    gmxfmm_options options = methodOptions(GetParam(), 18, isSlow(GetParam()) ? 4 : cells, 2);
    options.check          = GMXFMM_CHECK_REPORT; /* it is, without one, an error */
    Plan   plan(s, options);
    System moved = s;
    Random random(12);
    for (double& x : moved.x)
    {
        x += 0.1 * random.centred();
    }
    /* order 18 truncates below 1e-9, also for particles a little out of their cells */
    EXPECT_LT(relativeRms(plan.execute(moved.x).force, ewald(moved).force), 1e-9);
}

TEST_P(ExclusionList, WorksInOpenSystems)
{
    System s = droplet(200, 4, 5);
    for (std::size_t j = 1; j < s.size(); j += 2)
    {
        s.exclude(0, j);
    }
    const Solution reference = directSum(s);
    const Result   r         = solve(s, withBoundary(methodOptions(GetParam(), 18, 6, 2), Boundary::Open));
    EXPECT_LT(relativeRms(r.force, reference.force), 1e-9); /* truncation */
    EXPECT_NEAR(r.energy, reference.energy, 1e-9 * std::fabs(reference.energy));
}

/* In both precisions, and a molecule that is wider than cells are near. */
TEST_P(ExclusionList, IsLongInOpenSystems)
{
    System s = droplet(200, 4, 5);
    for (std::size_t i = 0; i < s.size(); i += 2)
    {
        for (std::size_t j = 0; j < i; j += 2)
        {
            s.exclude(i, j);
        }
    }
    const Solution reference = directSum(s);
    for (const gmxfmm_precision precision : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
    {
        gmxfmm_options options = withBoundary(methodOptions(GetParam(), 18, 6, 2), Boundary::Open);
        options.precision      = precision;
        const Result r         = solve(s, options);
        /* truncation; rounding of what is taken off */
        EXPECT_LT(relativeRms(r.force, reference.force), precision == GMXFMM_DOUBLE ? 1e-9 : 1e-5);
    }
}

INSTANTIATE_TEST_SUITE_P(Methods, ExclusionList, testing::ValuesIn(methods()), methodName);

/* Memory, and so the work of all that goes through it, is as the number of entries, however long the lists are: on the
 * CPU the copy, a place in the near field or a far particle, and its image. */
TEST(LongExclusions, TakeMemoryByTheEntry)
{
    if (defaultOptions().device != GMXFMM_CPU)
    {
        GTEST_SKIP() << "a GPU has other tables";
    }
    const double perEntry = 3 * sizeof(int), perParticle = 64, more = 1e5;
    for (const std::size_t length : {std::size_t{8}, std::size_t{64}, std::size_t{512}})
    {
        System s       = ions(boxOfVolume(boxTypes()[0], 512), 512, 33);
        double entries = 0;
        for (std::size_t i = 0; i < s.size(); i++)
        {
            for (std::size_t j = i / length * length; j < i; j++)
            {
                s.exclude(i, j);
                entries += 2;
            }
        }
        const gmxfmm_options options = methodOptions(GMXFMM_M2L_FFT, 5, cells, 1);
        const Plan           with(s, options), without(withoutExclusions(s), options);
        EXPECT_LT(static_cast<double>(with.info().bytes) - static_cast<double>(without.info().bytes),
                  perEntry * entries + perParticle * static_cast<double>(s.size()) + more)
            << length;
    }
}
