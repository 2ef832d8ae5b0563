/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The octree itself, on the library's own structures: who is whose neighbour, and that every pair is met once. */
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/plan.h"
#include "support/systems.h"

extern "C"
{
#define restrict __restrict
#include "fmm/cpu/state.h"
#include "fmm/geometry/tree_leaves.h"
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

namespace
{

/* Half of n ions stand in a cube of a ten-thousandth. */
System halfInACluster(int n)
{
    Random random(3);
    System s;
    for (int i = 0; i < n; i++)
    {
        const double edge = i % 2 == 0 ? 1 : 1e-4;
        s.add({edge * random.centred(), edge * random.centred(), edge * random.centred()}, i % 4 < 2 ? 1 : -1);
    }
    return s;
}

gmxfmm_options openTree(int separation)
{
    gmxfmm_options o = defaultOptions();
    o.boundary       = GMXFMM_OPEN;
    o.device         = GMXFMM_CPU;
    o.precision      = GMXFMM_DOUBLE;
    o.accuracy       = 1e-3;
    o.m2l            = GMXFMM_M2L_ROTATION;
    o.separation     = separation;
    return o;
}

} // namespace

/* Leaves of several levels: a cell is one where its particles have few pairs with all that is near to it, and is
 * divided where they have many, however few they are themselves. */
TEST(LeavesOfSeveralLevels, AreDividedWherePairsAreMany)
{
    const System      s = halfInACluster(20000);
    Plan              plan(s, openTree(1));
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

namespace
{

/* What a GPU's threads find, one after the other: the levels of src/cuda/octree/leaves.cu by the functions of
 * tree_leaves.h. */
struct ByLevels
{
    struct Level
    {
        std::vector<std::uint64_t> cell;
        std::vector<fmm_key_range> range;
        std::vector<int>           divided, parent, child, near;
    };
    using Runs = std::vector<std::pair<int, int>>; /* first particle, and one past the last */

    ByLevels(const fmm_sorted_keys& sorted, const fmm_cells& cells) : keys(sorted), near(cells)
    {
        level.push_back({{0}, {{{0, 0}, {keys.num[0], keys.num[1]}}}, {}, {0}, {}, {}});
        findNear(0);
        while (divide())
        {
            findNear(level.size() - 1);
        }
        for (std::size_t l = 0; l < level.size(); l++)
        {
            for (std::size_t c = 0; c < level[l].cell.size(); c++)
            {
                if (!level[l].divided[c])
                {
                    leaves[fmm_leaf_mark(&level[l].range[c])] = {l, c};
                }
            }
        }
    }

    /* Whether there are cells below the last level so far, which are added. */
    bool divide()
    {
        const std::size_t l = level.size() - 1, num = level[l].cell.size();
        const int         number = static_cast<int>(l);
        Level             lower;
        level[l].child.assign(8 * (num + 1), -1);
        for (std::size_t c = 0; c < num; c++)
        {
            int count = 0;
            for (int k = 0; k < 27; k++)
            {
                count += fmm_count_near_keys(&keys, number, level[l].cell[c], k);
            }
            level[l].divided.push_back(fmm_divides(&keys, number, &level[l].range[c], count));
        }
        for (std::size_t i = 0; i < 8 * num; i++)
        {
            const std::size_t   c = i % num, octant = i / num;
            const int           o = static_cast<int>(octant);
            const fmm_key_range child =
                fmm_range_of_child(&keys, std::min(number, keys.depth - 1), level[l].cell[c], &level[l].range[c], o);
            if (level[l].divided[c] && fmm_has_child(&keys, &child, number, o))
            {
                level[l].child[8 * c + octant] = static_cast<int>(lower.cell.size());
                lower.cell.push_back(level[l].cell[c] << 3 | octant);
                lower.range.push_back(child);
                lower.parent.push_back(static_cast<int>(c));
            }
        }
        for (int& child : level[l].child)
        {
            child = child < 0 ? static_cast<int>(lower.cell.size()) : child;
        }
        if (!lower.cell.empty())
        {
            level.push_back(lower);
        }
        return !lower.cell.empty();
    }

    void findNear(std::size_t l)
    {
        Level&            here = level[l];
        const std::size_t num = here.cell.size(), vectors = static_cast<std::size_t>(near.num_near);
        here.near.assign((num + 1) * vectors, static_cast<int>(num));
        for (std::size_t i = 0; i < num * vectors; i++)
        {
            const std::size_t c = i / vectors, o = i % vectors;
            if (l == 0)
            {
                here.near[i] = o == 0 ? 0 : 1;
                continue;
            }
            const Level& upper = level[l - 1];
            int          above[3];
            const int    child = fmm_near_above(static_cast<int>(here.cell[c] & 7), near.near[o], above);
            const auto   q     = static_cast<std::size_t>(fmm_near_index(&near, above));
            const int    cell  = upper.near[static_cast<std::size_t>(here.parent[c]) * vectors + q];
            here.near[i]       = upper.child[8 * static_cast<std::size_t>(cell) + static_cast<std::size_t>(child)];
        }
    }

    fmm_leaf_level viewOf(std::size_t l) const
    {
        const Level& v = level[l];
        return {static_cast<int>(v.cell.size()),
                v.range.data(),
                v.divided.data(),
                v.parent.data(),
                v.child.data(),
                v.near.data()};
    }

    /* Whether a cell of a level >= 1 has an interaction list. */
    bool hasList(std::size_t l, std::size_t c) const
    {
        const fmm_leaf_level upper = viewOf(l - 1), view = viewOf(l);
        return fmm_has_list(&upper, &view, near.num_near, static_cast<int>(c)) != 0;
    }

    Runs runs(std::size_t leafLevel, std::size_t cell) const
    {
        const auto vectors = static_cast<std::size_t>(near.num_near);
        Runs       found;
        for (std::size_t l = leafLevel; l > 0; l--)
        {
            const fmm_leaf_level view = viewOf(l);
            for (std::size_t o = 0; o < vectors; o++)
            {
                const int other = view.near[cell * vectors + o];
                if (fmm_is_on_list(&view, l == leafLevel, other))
                {
                    found.emplace_back(view.range[other].begin[0], view.range[other].end[0]);
                }
            }
            cell = static_cast<std::size_t>(view.parent[cell]);
        }
        return found;
    }

    fmm_sorted_keys                                    keys;
    const fmm_cells&                                   near;
    std::vector<Level>                                 level;
    std::map<int, std::pair<std::size_t, std::size_t>> leaves; /* level and cell, along Morton's curve */
};

/* Cells between two of a level, by their keys, in the direction in which these are most. */
int apart(std::uint64_t a, std::uint64_t b)
{
    int most = 0;
    int at[3], to[3];
    fmm_morton_place(a, at);
    fmm_morton_place(b, to);
    for (int d = 0; d < 3; d++)
    {
        most = std::max(most, std::abs(at[d] - to[d]));
    }
    return most;
}

std::vector<std::uint64_t> sortedKeys(const gmxfmm_plan& p, const std::vector<double>& x)
{
    std::vector<std::uint64_t> keys;
    for (std::size_t i = 0; i < x.size(); i += 3)
    {
        int at[3];
        for (std::size_t d = 0; d < 3; d++)
        {
            const double in = (x[i + d] - p.domain.cells.origin[d]) / p.domain.cells.edge;
            at[d]           = std::min(std::max(static_cast<int>(in), 0), p.domain.cells.inner[d] - 1);
        }
        int back[3];
        keys.push_back(fmm_morton_key(at));
        fmm_morton_place(keys.back(), back);
        EXPECT_TRUE(at[0] == back[0] && at[1] == back[1] && at[2] == back[2]);
    }
    std::sort(keys.begin(), keys.end());
    return keys;
}

void expectTheSameByLevels(const gmxfmm_plan& p, const std::vector<double>& x, const std::vector<double>& places)
{
    const fmm_tree&                  tree    = *p.domain.tree;
    const std::vector<std::uint64_t> keys[2] = {sortedKeys(p, x), sortedKeys(p, places)};
    const ByLevels                   found({{keys[0].data(), keys[1].data()},
                                            {static_cast<int>(keys[0].size()), static_cast<int>(keys[1].size())},
                                            tree.depth,
                                            tree.most},
                                           p.domain.cells);
    for (int l = 0; l <= tree.depth; l++)
    {
        std::set<Place> cells, expected;
        for (int c = 0; c < tree.level[l].num; c++)
        {
            expected.insert(placeOf(tree.level[l], c));
        }
        for (std::size_t c = 0; static_cast<std::size_t>(l) < found.level.size() &&
                                c < found.level[static_cast<std::size_t>(l)].cell.size();
             c++)
        {
            Place at;
            fmm_morton_place(found.level[static_cast<std::size_t>(l)].cell[c], at.data());
            cells.insert(at);
        }
        EXPECT_EQ(cells, expected) << "level " << l;
    }
    for (std::size_t l = 1; l < found.level.size(); l++)
    {
        const ByLevels::Level& level = found.level[l];
        for (std::size_t c = 0; c < level.cell.size(); c += 7)
        {
            bool has = false;
            for (std::size_t k = 0; k < level.cell.size() && !has; k++)
            {
                has = apart(level.cell[c], level.cell[k]) > p.domain.separation &&
                      apart(level.cell[c] >> 3, level.cell[k] >> 3) <= p.domain.separation;
            }
            EXPECT_EQ(found.hasList(l, c), has) << "level " << l << ", cell " << c;
        }
    }
    ASSERT_EQ(found.leaves.size(), static_cast<std::size_t>(tree.leaves.num));
    std::vector<fmm_key_range> held;
    std::size_t                leaf = 0;
    for (const auto& [mark, at] : found.leaves)
    {
        const auto& [l, c]         = at;
        const fmm_key_range  range = found.level[l].range[c];
        const fmm_leaf_place place = fmm_place_of_leaf(found.level[l].cell[c], static_cast<int>(l), tree.depth);
        double               centre[3];
        fmm_cell_centre(&p, static_cast<int>(leaf), centre);
        for (std::size_t d = 0; d < 3; d++)
        {
            EXPECT_EQ(place.centre[d], centre[d] - 0.5); /* as fmm_in_cells counts */
        }
        EXPECT_EQ(place.edge, fmm_leaf_edge(&p, static_cast<int>(leaf)));
        EXPECT_EQ(range.begin[0], p.cpu->sources.cell_start[leaf]);
        EXPECT_EQ(range.end[0], p.cpu->sources.cell_start[leaf + 1]);
        if (!places.empty())
        {
            EXPECT_EQ(range.begin[1], p.cpu->targets.cell_start[leaf]);
            EXPECT_EQ(range.end[1], p.cpu->targets.cell_start[leaf + 1]);
        }
        ByLevels::Runs runs;
        for (int k = tree.leaves.near_start[leaf]; k < tree.leaves.near_start[leaf + 1]; k++)
        {
            const int begin = p.cpu->sources.cell_start[tree.leaves.near[k][0]],
                      end   = p.cpu->sources.cell_start[tree.leaves.near[k][1]];
            if (end > begin)
            {
                runs.emplace_back(begin, end);
            }
        }
        EXPECT_EQ(found.runs(l, c), runs) << "leaf " << leaf;
        held.push_back(range);
        leaf++;
    }
    for (int set = 0; set < 2; set++)
    {
        for (int s = 0; s < found.keys.num[set]; s++)
        {
            const int c = fmm_leaf_of(held.data(), tree.leaves.num, set, s);
            EXPECT_TRUE(held[static_cast<std::size_t>(c)].begin[set] <= s &&
                        s < held[static_cast<std::size_t>(c)].end[set]);
        }
    }
}

} // namespace

/* Level by level the functions that a GPU's kernels are made of find the tree that the CPU makes from the root down:
 * cells, leaves, what they hold, and what is near to them, in its order. */
TEST(LeavesOfSeveralLevels, AreFoundLevelByLevel)
{
    System far = halfInACluster(3000), droplets = droplet(2000, 1, 5);
    far.add({300, -200, 100}, 1);
    for (std::size_t i = 0; i < droplets.x.size(); i++) /* denser towards the middle */
    {
        droplets.x[i] *= std::fabs(droplets.x[i]) * std::fabs(droplets.x[i]);
    }
    for (const System& s : {far, droplets})
    {
        for (int separation : {1, 2})
        {
            SCOPED_TRACE(separation);
            Plan  plan(s, openTree(separation));
            auto& p = *plan.get();
            ASSERT_NE(p.domain.tree, nullptr);
            p.domain.tree->most  = 3000;
            p.tuning.target_edge = 1e-5; /* so many levels as there can be */
            plan.assign(s.x);
            ASSERT_GT(p.domain.tree->leaves.num, 20);
            expectTheSameByLevels(p, s.x, {});
            const System targets = droplet(500, 2, 9);
            ASSERT_EQ(gmxfmm_set_targets(&p, static_cast<std::int64_t>(targets.size()), targets.x.data()), GMXFMM_OK);
            plan.assign(s.x);
            expectTheSameByLevels(p, s.x, targets.x);
        }
    }
}
