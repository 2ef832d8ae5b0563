/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Systems that fill little of their box, and those that fill one leaf too much: what the octree is for. */
#include <algorithm>

#include <gtest/gtest.h>

#include "support/direct.h"
#include "support/ewald.h"
#include "support/norms.h"
#include "support/paths.h"
#include "support/plan.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

/* Drops of n ions each, of radius r, at random places of a cube, apart from each other. */
System drops(int number, int n, double r, double edge, std::uint64_t seed)
{
    System            s;
    Random            random(seed);
    std::vector<Vec3> centres;
    s.box = {edge, 0, 0, 0, edge, 0, 0, 0, edge};
    const Lattice lattice(s.box);
    while (static_cast<int>(centres.size()) < number)
    {
        const double x = edge * random.uniform(), y = edge * random.uniform(), z = edge * random.uniform();
        bool         apart = true;
        for (const Vec3& c : centres)
        {
            const Vec3 d = lattice.nearest({x - c[0], y - c[1], z - c[2]});
            apart        = apart && d[0] * d[0] + d[1] * d[1] + d[2] * d[2] > 5 * r * r;
        }
        if (!apart)
        {
            continue;
        }
        const System drop = droplet(n, r, seed + centres.size());
        for (std::size_t i = 0; i < drop.size(); i++)
        {
            s.add({drop.x[3 * i] + x, drop.x[3 * i + 1] + y, drop.x[3 * i + 2] + z}, drop.q[i]);
        }
        centres.push_back({x, y, z});
    }
    return s;
}

class Sparse : public testing::TestWithParam<gmxfmm_m2l>
{
  protected:
    /* with everything automatic, periodic and open, for every accuracy */
    void expectAsked(const System& s, const std::vector<double>& accuracies = {1e-2, 4e-4, 1e-6})
    {
        const Solution periodic = s.box[0] > 0 ? ewald(s) : Solution(), open = directSum(s);
        for (double asked : accuracies)
        {
            SCOPED_TRACE(asked);
            const Result r = solve(s, withBoundary(automatic(GetParam(), asked), Boundary::Open));
            EXPECT_LE(relativeRms(r.force, open.force), asked)
                << "depth " << r.info.depth << ", order " << r.info.order;
            if (s.box[0] > 0)
            {
                const Result p = solve(s, automatic(GetParam(), asked));
                EXPECT_LE(relativeRms(p.force, periodic.force), asked)
                    << "depth " << p.info.depth << ", order " << p.info.order;
            }
        }
    }
};

} // namespace

/* 1 % of the box: eight drops of radius 1 in a cube of 15. */
TEST_P(Sparse, Droplets)
{
    expectAsked(drops(8, 100, 1, 15, 3));
}

TEST_P(Sparse, ClustersOfOppositeSign)
{
    System s = drops(4, 150, 1, 30, 3);
    for (std::size_t i = 0; i < s.size(); i++)
    {
        s.q[i] = i < s.size() / 2 ? 1 : -1;
    }
    expectAsked(s);
}

TEST_P(Sparse, Line)
{
    System s;
    Random random(2);
    for (int i = 0; i < 400; i++)
    {
        s.add({i + 0.4 * random.centred(), 0.3, -0.2}, i % 2 ? -1 : 1);
    }
    s.box = {}; /* open alone */
    expectAsked(s);
}

/* Particles of very unequal density: half of them within a thousandth of the box's edge. */
TEST_P(Sparse, DenseCore)
{
    System s = ions({20, 0, 0, 0, 20, 0, 0, 0, 20}, 300, 6);
    for (std::size_t i = 0; i < 150; i++)
    {
        for (std::size_t d = 0; d < 3; d++)
        {
            s.x[3 * i + d] = 7 + 1e-3 * s.x[3 * i + d];
        }
    }
    expectAsked(s, {1e-2, 4e-4});
}

/* Far off from everything: one root's distance, where a tree has one level after another of single cells. */
TEST_P(Sparse, TwoParticles)
{
    System s;
    s.add({0, 0, 0}, 1);
    s.add({1e3, -2e3, 1.5e3}, -1);
    const Solution reference = directSum(s);
    for (int depth : {1, 5, 9})
    {
        const Result r = solve(s, withBoundary(depthOptions(GetParam(), 30, depth, 2), Boundary::Open));
        /* at the corners of their leaves: 0.41^30 = 2e-12 */
        EXPECT_LT(relativeRms(r.force, reference.force), 1e-10);
        EXPECT_NEAR(r.energy, reference.energy, 1e-10 * std::fabs(reference.energy));
        EXPECT_LE(r.info.num_cells, 2);
    }
    EXPECT_LT(relativeRms(solve(s, withBoundary(automatic(GetParam()), Boundary::Open)).force, reference.force), 4e-4);
}

TEST_P(Sparse, OneParticleAtAnyDepth)
{
    System s;
    s.box = {5, 0, 0, 0, 5, 0, 0, 0, 5};
    s.add({1.1, 4.9, 2.5}, 2);
    const Solution reference = ewald(s);
    for (int depth : {1, 4, 9})
    {
        const Result r = solve(s, depthOptions(GetParam(), 14, depth, 1));
        EXPECT_EQ(r.info.num_cells, 1);
        /* the root has no near images but its own: order 14 with one layer, 0.76^14 = 2 % at worst, 1e-4 measured */
        EXPECT_NEAR(r.potential[0], reference.potential[0], 1e-3 * std::fabs(reference.potential[0]));
        const Result open = solve(s, withBoundary(depthOptions(GetParam(), 14, depth, 1), Boundary::Open));
        EXPECT_EQ(open.energy, 0);
        EXPECT_EQ(open.potential[0], 0);
    }
}

/* Nothing is far: exact to rounding. */
TEST_P(Sparse, AllParticlesInOneLeaf)
{
    System s = droplet(200, 0.05, 3);
    for (double& x : s.x)
    {
        x += 2.6;
    }
    const Solution open = directSum(s);
    s.add({9.99, 9.99, 9.99}, 0); /* without charge, it only holds the tree's brick open */
    s.add({0, 0, 0}, 0);
    const Result r = solve(s, withBoundary(depthOptions(GetParam(), 3, 4, 1), Boundary::Open));
    EXPECT_EQ(r.info.num_cells, 3);
    EXPECT_NEAR(r.energy, open.energy, 1e-12 * std::fabs(open.energy));
    EXPECT_LT(rmsDifference(std::vector<double>(r.force.begin(), r.force.begin() + 600), open.force),
              1e-12 * rms(open.force));
}

TEST_P(Sparse, ThousandsInOneLeaf)
{
    System s;
    Random random(5);
    scatter(&s, 5000, {3, 3, 3}, {0.4, 0.4, 0.4}, &random); /* a crowd, where ions() would look for places for long */
    scatter(&s, 200, {0, 0, 0}, {8, 8, 8}, &random);
    const Solution reference = directSum(s);
    const Result   r         = solve(s, withBoundary(depthOptions(GetParam(), 12, 3, 2), Boundary::Open));
    EXPECT_LT(relativeRms(r.force, reference.force), 1e-6); /* order 12 with two layers truncates below this */
    EXPECT_LE(relativeRms(solve(s, withBoundary(automatic(GetParam()), Boundary::Open)).force, reference.force), 4e-4);
}

/* Leaves that come and go as particles move, in one plan. */
TEST_P(Sparse, DropsThatMove)
{
    const System s = drops(5, 40, 1, 15, 3);
    Plan         plan(s, depthOptions(GetParam(), 16, 3, 2));
    for (int step = 0; step < 5; step++)
    {
        System moved = s;
        for (std::size_t i = 0; i < s.size(); i++)
        {
            moved.x[3 * i] += 1.7 * step * static_cast<double>(i / 40);
            moved.x[3 * i + 2] -= 2.9 * step;
        }
        plan.assign(moved.x);
        /* order 16 with two layers truncates below 1e-8 of forces within drops, and between drops nothing else is */
        EXPECT_LT(relativeRms(plan.execute(moved.x).force, ewald(moved).force), 1e-8);
    }
}

/* All in one corner, and near each other: the mean over the box would be fewer than one. */
TEST(SparseSystems, NearParticlesAreCountedWhereTheyAre)
{
    Random random(9);
    System s;
    s.box = {100, 0, 0, 0, 100, 0, 0, 0, 100};
    scatter(&s, 300, {40, 50, 60}, {1, 1, 1}, &random);
    for (const gmxfmm_options& options :
         {explicitOptions(4, 20, 20, 20, 1), depthOptions(GMXFMM_M2L_ROTATION, 4, 4, 1)})
    {
        gmxfmm_options onCpu = options; /* counted there */
        onCpu.device         = GMXFMM_CPU;
        EXPECT_EQ(Plan(s, onCpu).info().near_particles, 300);
    }
}

/* Most over least particles in a leaf, on average over the leaves, as their number grows; as a CPU's costs choose them:
 * on a device a level takes its time however few its cells, and these systems are too small to have another. */
static double spreadOfOccupancy(gmxfmm_options options, const Mat3& box)
{
    options.device = GMXFMM_CPU;
    double least = 1e9, most = 0;
    for (int n = static_cast<int>(std::lround(4000 * box[8])); n < 60000; n = n * 13 / 10)
    {
        Random random(7);
        System s;
        s.box = box;
        scatter(&s, n, {0, 0, 0}, {box[0], box[4], box[8]}, &random);
        const double each = static_cast<double>(n) / Plan(s, options).info().num_cells;
        least             = std::min(least, each);
        most              = std::max(most, each);
    }
    return most / least;
}

/* Edges of 5, 6, 7 or 8 leaves about an open system, and their doubles, change the number in a leaf by 1.7 at most; the
 * cheapest is one of two neighbours. Depth alone would change it by 8. */
TEST_P(Sparse, LeavesHoldAboutAsManyWhateverTheNumber)
{
    EXPECT_LT(spreadOfOccupancy(withBoundary(automatic(GetParam(), 1e-2), Boundary::Open), {1, 0, 0, 0, 1, 0, 0, 0, 1}),
              1.7 * 1.7);
}

/* With 1, 3, 5 or 7 roots an edge, a cube can have 4, 6, 8, 10, 12, 14, 16, 20, ... leaves along it; the first step is
 * the largest and changes the number in a leaf by 3.4, about as much up as down where both cost the same. */
TEST_P(Sparse, LeavesOfAPeriodicBoxHoldAboutAsManyWhateverTheNumber)
{
    for (const Mat3& box : {Mat3{1, 0, 0, 0, 1, 0, 0, 0, 1}, Mat3{1, 0, 0, 0, 1, 0, 0, 0, 3}})
    {
        EXPECT_LT(spreadOfOccupancy(automatic(GetParam(), 1e-2), box), 3.4);
    }
}

INSTANTIATE_TEST_SUITE_P(Methods, Sparse, testing::ValuesIn(octreeMethods()), methodName);
