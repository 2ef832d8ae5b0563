/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The octree itself, on the library's own structures: who is whose neighbour, and that every pair is met once. */
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "support/plan.h"
#include "support/systems.h"

extern "C"
{
#define restrict __restrict
#include "fmm/cpu/state.h"
}

using namespace fmmtest;

namespace
{

struct Case
{
    const char* name;
    Vec3        box; /* 0: open */
    int         depth, separation, toParent;
    double      filling; /* edge of the corner that holds all particles, in box edges */
};

std::string caseName(const testing::TestParamInfo<Case>& info)
{
    return info.param.name;
}

class Tree : public testing::TestWithParam<Case>
{
};

System particles(const Case& c, int n)
{
    std::mt19937                           random(7);
    std::uniform_real_distribution<double> uniform(0, c.filling);
    System                                 s;
    for (int d = 0; d < 3; d++)
    {
        s.box[static_cast<std::size_t>(4 * d)] = c.box[static_cast<std::size_t>(d)];
    }
    for (int i = 0; i < n; i++)
    {
        Vec3 r;
        for (std::size_t d = 0; d < 3; d++)
        {
            r[d] = uniform(random) * (c.box[d] > 0 ? c.box[d] : 1);
        }
        s.add(r, i % 2 == 0 ? 1 : -1);
    }
    return s;
}

gmxfmm_options treeOptions(const Case& c)
{
    gmxfmm_options o = defaultOptions();
    o.m2l            = GMXFMM_M2L_NAIVE;
    o.order          = 1;
    o.depth          = c.depth;
    o.separation     = c.separation;
    o.m2l_to_parent  = c.toParent;
    o.boundary       = c.box[0] > 0 ? GMXFMM_TINFOIL : GMXFMM_OPEN;
    return o;
}

using Place = std::array<int, 3>;

Place placeOf(const fmm_level& level, int cell)
{
    return {level.at[cell][0], level.at[cell][1], level.at[cell][2]};
}

std::map<Place, int> cellsByPlace(const fmm_level& level)
{
    std::map<Place, int> cells;
    for (int c = 0; c < level.num; c++)
    {
        cells[placeOf(level, c)] = c;
    }
    return cells;
}

} // namespace

TEST_P(Tree, ParticlesAreInTheirLeavesAndLeavesInSlabs)
{
    const System    s = particles(GetParam(), 500);
    Plan            plan(s, treeOptions(GetParam()));
    const auto&     p      = *plan.get();
    const auto&     placed = p.cpu->sources;
    const fmm_tree& tree   = *p.domain.tree;
    const auto&     leaves = tree.level[tree.depth];
    ASSERT_EQ(tree.depth, GetParam().depth);
    std::vector<int> seen(s.size(), 0);
    for (int c = 0; c < leaves.num; c++)
    {
        EXPECT_LT(placed.cell_start[c], placed.cell_start[c + 1]) << "a leaf without particles";
        for (int k = placed.cell_start[c]; k < placed.cell_start[c + 1]; k++)
        {
            const int i = placed.sorted[k];
            seen[static_cast<std::size_t>(i)]++;
            for (std::size_t d = 0; d < 3; d++)
            {
                const double at = (s.x[3 * static_cast<std::size_t>(i) + d] - p.domain.cells.origin[d]) /
                                  p.domain.box[4 * d] * p.domain.cells.n[d];
                EXPECT_NEAR(at, placeOf(leaves, c)[d] + 0.5, 0.5 + 1e-9);
            }
        }
    }
    EXPECT_EQ(seen, std::vector<int>(s.size(), 1));
    for (int l = 1; l <= tree.depth; l++)
    {
        const fmm_level& level = tree.level[l];
        EXPECT_EQ(level.slab[0], 0);
        EXPECT_EQ(level.slab[8], level.num);
        for (int o = 0; o < 8; o++)
        {
            for (int c = level.slab[o]; c < level.slab[o + 1]; c++)
            {
                const Place at = placeOf(level, c);
                EXPECT_EQ(4 * (at[0] & 1) + 2 * (at[1] & 1) + (at[2] & 1), o);
                if (c > level.slab[o])
                {
                    EXPECT_LT(placeOf(level, c - 1), at) << "cells of a slab stand row by row";
                }
            }
        }
    }
}

TEST_P(Tree, RelationsAreThoseOfPlaces)
{
    Plan            plan(particles(GetParam(), 300), treeOptions(GetParam()));
    const auto&     p    = *plan.get();
    const fmm_tree& tree = *p.domain.tree;
    for (int l = 0; l <= tree.depth; l++)
    {
        const fmm_level& level = tree.level[l];
        const auto       cells = cellsByPlace(level);
        ASSERT_EQ(static_cast<int>(cells.size()), level.num) << "a cell stands twice";
        for (int c = 0; c < level.num; c++)
        {
            const Place at = placeOf(level, c);
            for (int o = 0; o < tree.num_near; o++)
            {
                Place k;
                for (std::size_t d = 0; d < 3; d++)
                {
                    const int n = tree.roots[d] << l;
                    k[d]        = at[d] + p.domain.cells.near[o][d];
                    k[d]        = fmm_is_periodic(&p) ? (k[d] % n + n) % n : k[d];
                }
                const auto found = cells.find(k);
                ASSERT_EQ(level.near[c * tree.num_near + o], found == cells.end() ? level.num : found->second);
            }
            if (l > 0)
            {
                const fmm_level& upper = tree.level[l - 1];
                EXPECT_EQ(placeOf(upper, level.parent[c]), (Place{at[0] >> 1, at[1] >> 1, at[2] >> 1}));
                EXPECT_EQ(upper.child[8 * level.parent[c] + 4 * (at[0] & 1) + 2 * (at[1] & 1) + (at[2] & 1)], c);
            }
        }
        for (int o = 0; o < tree.num_near; o++)
        {
            EXPECT_EQ(level.near[level.num * tree.num_near + o], level.num) << "the empty cell has no neighbours";
        }
    }
}

/* Expansions replaced by sums of random 64-bit integers (unsigned: they wrap, so that no miss hides in rounding): a
 * leaf must receive every particle of the near roots' images once, by near pairs or by the lists of one of its
 * ancestors. What is further than that is the convolution's between roots. */
TEST_P(Tree, EveryPairIsMetOnce)
{
    const System                            s = particles(GetParam(), 400);
    Plan                                    plan(s, treeOptions(GetParam()));
    const auto&                             p    = *plan.get();
    const fmm_tree&                         tree = *p.domain.tree;
    std::mt19937_64                         random(11);
    std::vector<std::vector<std::uint64_t>> weight, received;
    for (int l = 0; l <= tree.depth; l++)
    {
        weight.emplace_back(tree.level[l].num + 1, 0);
        received.emplace_back(tree.level[l].num + 1, 0);
    }
    for (int c = 0; c < tree.level[tree.depth].num; c++)
    {
        weight[static_cast<std::size_t>(tree.depth)][static_cast<std::size_t>(c)] = random();
    }
    const auto at = [](std::vector<std::vector<std::uint64_t>>& v, int l, int c) -> std::uint64_t&
    { return v[static_cast<std::size_t>(l)][static_cast<std::size_t>(c)]; };
    for (int l = tree.depth; l > 0; l--)
    {
        for (int c = 0; c < tree.level[l].num; c++)
        {
            at(weight, l - 1, tree.level[l].parent[c]) += at(weight, l, c);
        }
    }
    for (int l = 1; l <= tree.depth; l++)
    {
        const fmm_level &level = tree.level[l], &upper = tree.level[l - 1];
        for (int c = 0; c < level.num; c++)
        {
            const int octant = 4 * (level.at[c][0] & 1) + 2 * (level.at[c][1] & 1) + (level.at[c][2] & 1);
            for (int t = 0; t < tree.num_list[octant]; t++)
            {
                const fmm_translation& e = tree.list[octant][t];
                const int              q = upper.near[level.parent[c] * tree.num_near + e.near];
                at(received, l, c) += at(weight, l, upper.child[8 * q + e.octant]);
            }
        }
        for (int c = 0; c < upper.num && tree.num_to_parent > 0; c++)
        {
            for (int t = 0; t < tree.num_to_parent; t++)
            {
                const fmm_translation& e = tree.to_parent[t];
                const int              q = upper.near[c * tree.num_near + e.near];
                at(received, l - 1, c) += at(weight, l, upper.child[8 * q + e.octant]);
            }
        }
    }
    for (int l = 1; l <= tree.depth; l++)
    {
        for (int c = 0; c < tree.level[l].num; c++)
        {
            at(received, l, c) += at(received, l - 1, tree.level[l].parent[c]);
        }
    }
    const fmm_level& leaves = tree.level[tree.depth];
    for (int c = 0; c < leaves.num; c++)
    {
        int root = c;
        for (int l = tree.depth; l > 0; l--)
        {
            root = tree.level[l].parent[root];
        }
        std::uint64_t expected = 0, near = 0;
        for (int o = 0; o < tree.num_near; o++)
        {
            expected += at(weight, 0, tree.level[0].near[root * tree.num_near + o]);
            near += at(weight, tree.depth, leaves.near[c * tree.num_near + o]);
        }
        ASSERT_EQ(at(received, tree.depth, c) + near, expected) << "leaf " << c;
    }
}

TEST_P(Tree, ListsAreAsLongAsInTheLiterature)
{
    Plan            plan(particles(GetParam(), 50), treeOptions(GetParam()));
    const fmm_tree& tree = *plan.get()->domain.tree;
    const bool      one  = GetParam().separation == 1;
    EXPECT_EQ(tree.num_vectors, one ? 316 : 1206);
    for (int octant = 0; octant < 8; octant++)
    {
        /* 56 operators without signs for ws = 1 (Kohnke et al. 2020) */
        EXPECT_LE(tree.num_groups[octant], one ? 56 : 189);
        if (GetParam().toParent == 0)
        {
            EXPECT_EQ(tree.num_list[octant], one ? 189 : 875);
        }
        else if (one && GetParam().box[0] == GetParam().box[1] && GetParam().box[1] == GetParam().box[2])
        {
            EXPECT_EQ(tree.num_list[octant], 109); /* + 80 / 8 = 119, Gumerov & Duraiswami 2008 */
            EXPECT_EQ(tree.num_to_parent, 80);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Systems,
                         Tree,
                         testing::Values(Case{"Cube", {3, 3, 3}, 3, 1, 0, 1},
                                         Case{"CubeToParents", {3, 3, 3}, 3, 1, 1, 1},
                                         Case{"CubeTwoLayers", {3, 3, 3}, 2, 2, 0, 1},
                                         Case{"CubeTwoLayersToParents", {3, 3, 3}, 3, 2, 1, 1},
                                         Case{"CubeOneLevel", {3, 3, 3}, 1, 1, 0, 1},
                                         Case{"Rod", {2, 2, 14}, 2, 1, 0, 1},
                                         Case{"Brick", {3, 7.8, 4.5}, 2, 1, 0, 1},
                                         Case{"BrickTwoLayersToParents", {3, 7.8, 4.5}, 2, 2, 1, 1},
                                         Case{"DropletInTheCorner", {3, 3, 3}, 6, 1, 0, 0.1},
                                         Case{"SparseRod", {2, 2, 14}, 4, 1, 0, 0.3},
                                         Case{"Open", {0, 0, 0}, 3, 1, 0, 1},
                                         Case{"OpenTwoLayersToParents", {0, 0, 0}, 4, 2, 1, 1}),
                         caseName);

/* Leaves of several levels: a cell is one where its particles have few pairs with all that is near to it, and is
 * divided where they have many, however few they are themselves. Half of these stand in a cube of a ten-thousandth. */
TEST(LeavesOfSeveralLevels, AreDividedWherePairsAreMany)
{
    Random    random(3);
    const int n = 20000;
    System    s;
    for (int i = 0; i < n; i++)
    {
        const double edge = i % 2 == 0 ? 1 : 1e-4;
        s.add({edge * random.centred(), edge * random.centred(), edge * random.centred()}, i % 4 < 2 ? 1 : -1);
    }
    gmxfmm_options o = defaultOptions();
    o.boundary       = GMXFMM_OPEN;
    o.device         = GMXFMM_CPU;
    o.precision      = GMXFMM_DOUBLE;
    o.accuracy       = 1e-3;
    o.m2l            = GMXFMM_M2L_ROTATION;
    o.separation     = 1;
    Plan              plan(s, o);
    const auto&       p      = *plan.get();
    const fmm_tree&   tree   = *p.domain.tree;
    const fmm_leaves& leaves = tree.leaves;
    ASSERT_GT(tree.most, 0);
    std::vector<std::map<Place, double>> held(static_cast<std::size_t>(tree.depth) + 1); /* by cells of each level */
    for (std::size_t i = 0; i < s.size(); i++)
    {
        for (int l = 0; l <= tree.depth; l++)
        {
            Place at;
            for (std::size_t d = 0; d < 3; d++)
            {
                const double leaf = (s.x[3 * i + d] - p.domain.cells.origin[d]) / p.domain.cells.edge;
                at[d]             = static_cast<int>(leaf) >> (tree.depth - l);
            }
            held[static_cast<std::size_t>(l)][at]++;
        }
    }
    const auto pairs = [&](int l, const Place& at)
    {
        const auto& level = held[static_cast<std::size_t>(l)];
        double      near  = 0;
        for (int k = 0; k < 27; k++)
        {
            const auto found = level.find({at[0] + k / 9 - 1, at[1] + k / 3 % 3 - 1, at[2] + k % 3 - 1});
            near += found != level.end() ? found->second : 0;
        }
        return near * level.at(at);
    };
    int few = 0;
    for (int l = 1; l < tree.depth; l++)
    {
        for (int c = 0; c < tree.level[l].num; c++)
        {
            const Place at     = placeOf(tree.level[l], c);
            const int   first  = tree.level[l].leaves[c][0];
            const bool  isLeaf = tree.level[l].leaves[c][1] == first + 1 && leaves.level[first] == l;
            EXPECT_EQ(pairs(l, at) <= tree.most, isLeaf) << "level " << l << ", cell " << c;
            few += !isLeaf &&
                   held[static_cast<std::size_t>(l)][at] * held[static_cast<std::size_t>(l)][at] < 0.1 * tree.most;
        }
    }
    EXPECT_GT(few, 10) << "cells beside those with many particles";
}
