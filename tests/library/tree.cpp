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
#include "support/suites.h"
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
    const auto&     leaves = p.cpu->level[tree.depth];
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
        const fmm_level& level = p.cpu->level[l];
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
        const fmm_level& level = p.cpu->level[l];
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
                const fmm_level& upper = p.cpu->level[l - 1];
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
        weight.emplace_back(p.cpu->level[l].num + 1, 0);
        received.emplace_back(p.cpu->level[l].num + 1, 0);
    }
    for (int c = 0; c < p.cpu->level[tree.depth].num; c++)
    {
        weight[static_cast<std::size_t>(tree.depth)][static_cast<std::size_t>(c)] = random();
    }
    const auto at = [](std::vector<std::vector<std::uint64_t>>& v, int l, int c) -> std::uint64_t&
    { return v[static_cast<std::size_t>(l)][static_cast<std::size_t>(c)]; };
    for (int l = tree.depth; l > 0; l--)
    {
        for (int c = 0; c < p.cpu->level[l].num; c++)
        {
            at(weight, l - 1, p.cpu->level[l].parent[c]) += at(weight, l, c);
        }
    }
    for (int l = 1; l <= tree.depth; l++)
    {
        const fmm_level &level = p.cpu->level[l], &upper = p.cpu->level[l - 1];
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
        for (int c = 0; c < p.cpu->level[l].num; c++)
        {
            at(received, l, c) += at(received, l - 1, p.cpu->level[l].parent[c]);
        }
    }
    const fmm_level& leaves = p.cpu->level[tree.depth];
    for (int c = 0; c < leaves.num; c++)
    {
        int root = c;
        for (int l = tree.depth; l > 0; l--)
        {
            root = p.cpu->level[l].parent[root];
        }
        std::uint64_t expected = 0, near = 0;
        for (int o = 0; o < tree.num_near; o++)
        {
            expected += at(weight, 0, p.cpu->level[0].near[root * tree.num_near + o]);
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
                         parameterName<Case>);

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
    const fmm_leaves& leaves = p.cpu->leaves;
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
        for (int c = 0; c < p.cpu->level[l].num; c++)
        {
            const Place at     = placeOf(p.cpu->level[l], c);
            const int   first  = p.cpu->level[l].leaves[c][0];
            const bool  isLeaf = p.cpu->level[l].leaves[c][1] == first + 1 && leaves.level[first] == l;
            EXPECT_EQ(pairs(l, at) <= tree.most, isLeaf) << "level " << l << ", cell " << c;
            few += !isLeaf &&
                   held[static_cast<std::size_t>(l)][at] * held[static_cast<std::size_t>(l)][at] < 0.1 * tree.most;
        }
    }
    EXPECT_GT(few, 10) << "cells beside those with many particles";
}

namespace
{

/* What a GPU's threads find, one after the other: the cells of src/cuda/tree/leaves.cu by the functions of
 * tree_leaves.h. */
struct ByItems
{
    struct Cell
    {
        int     level, item;
        fmm_key key;
        int     order, number;
    };
    using Runs = std::vector<std::pair<int, int>>; /* first particle, and one past the last */

    ByItems(const std::vector<fmm_key>& particles,
            const std::vector<fmm_key>& targets,
            const fmm_tree&             tree,
            const fmm_cells&            cells)
        : numNear(static_cast<std::size_t>(cells.num_near))
    {
        std::merge(particles.begin(), particles.end(), targets.begin(), targets.end(), std::back_inserter(items));
        items.resize(std::max<std::size_t>(items.size(), 1));
        keys = {{particles.data(), targets.data()},
                items.data(),
                {static_cast<int>(particles.size()), static_cast<int>(targets.size())},
                static_cast<int>(items.size()),
                tree.depth,
                tree.most};
        for (int i = 0; i < keys.num_items; i++)
        {
            leafLevel.push_back(leafLevelOf(i));
            before.push_back(total);
            total += fmm_count_cells(&keys, i, leafLevel.back());
        }
        found = {leafLevel.data(), before.data()};
        listCells();
        link(cells);
    }

    int leafLevelOf(int item) const
    {
        int  level   = 0;
        bool divided = true;
        while (divided)
        {
            level++;
            int here = 0, around = 0;
            for (int k = 0; k < 27; k++)
            {
                const int count = fmm_count_near_keys(&keys, level, fmm_cell_of_item(&keys, level, item), k);
                here            = k == FMM_BLOCK_MIDDLE ? count : here;
                around += count;
            }
            divided = fmm_divides(&keys, level, here, around) != 0;
        }
        return level;
    }

    void listCells()
    {
        for (int i = 0; i < keys.num_items; i++)
        {
            const int last = leafLevel[static_cast<std::size_t>(i)];
            for (int l = fmm_first_level(&keys, i); l <= last; l++)
            {
                const fmm_key key = fmm_cell_of_item(&keys, l, i);
                cell.push_back({l, i, key, fmm_order_of_cell(l, key, last), static_cast<int>(cell.size())});
            }
        }
        ASSERT_EQ(static_cast<int>(cell.size()), fmm_cells_of(total));
        std::stable_sort(cell.begin(), cell.end(), [](const Cell& a, const Cell& b) { return a.order < b.order; });
    }

    void link(const fmm_cells& cells)
    {
        const int        num = static_cast<int>(cell.size());
        std::vector<int> indexOf(cell.size());
        for (int c = 0; c < num; c++)
        {
            indexOf[static_cast<std::size_t>(cell[static_cast<std::size_t>(c)].number)] = c;
        }
        child.assign(8 * (cell.size() + 1), num);
        near.assign(numNear * (cell.size() + 1), num);
        leaves.resize(static_cast<std::size_t>(fmm_leaves_of(total)), -1);
        for (std::size_t c = 0; c < cell.size(); c++)
        {
            const auto& [level, item, key, order, number] = cell[c];
            parent.push_back(num);
            leaf.push_back(-1);
            range.push_back(fmm_range_of_cell(&keys, level, key));
            if (level > 0)
            {
                const int above = fmm_find_cell(&keys, &found, level - 1, key >> 3);
                ASSERT_GE(above, 0);
                parent[c]                                                  = indexOf[static_cast<std::size_t>(above)];
                child[8 * static_cast<std::size_t>(parent[c]) + (key & 7)] = static_cast<int>(c);
            }
            if (leafLevel[static_cast<std::size_t>(item)] == level)
            {
                leaf[c]                                   = fmm_leaves_of(before[static_cast<std::size_t>(item)]);
                leaves[static_cast<std::size_t>(leaf[c])] = static_cast<int>(c);
            }
            for (std::size_t o = 0; o < numNear; o++)
            {
                const int at          = fmm_find_near_cell(&keys, &found, level, key, cells.near[o]);
                near[numNear * c + o] = at >= 0 ? indexOf[static_cast<std::size_t>(at)] : num;
            }
        }
    }

    Runs runs(int own) const
    {
        const fmm_leaf_cells view = {static_cast<int>(cell.size()), range.data(), leaf.data(), parent.data(),
                                     near.data()};
        Runs                 listed;
        for (int c = own; c > 0; c = parent[static_cast<std::size_t>(c)])
        {
            for (std::size_t o = 0; o < numNear; o++)
            {
                const int other = near[numNear * static_cast<std::size_t>(c) + o];
                if (fmm_is_on_list(&view, c == own, other))
                {
                    const fmm_key_range& held = range[static_cast<std::size_t>(other)];
                    listed.emplace_back(held.begin[0], held.end[0]);
                }
            }
        }
        return listed;
    }

    std::size_t                numNear;
    std::vector<fmm_key>       items;
    std::vector<std::uint64_t> before;
    fmm_sorted_keys            keys  = {};
    std::uint64_t              total = 0;
    std::vector<int>           leafLevel;
    fmm_found_items            found = {};
    std::vector<Cell>          cell; /* of all levels, in the order of their index */
    std::vector<int>           parent, child, near, leaf;
    std::vector<fmm_key_range> range;
    std::vector<int>           leaves; /* cell of each, along Morton's curve */
};

/* The root comes first; cells are in the slabs of their child index and there, those with children first, by level. */
void expectOrder(const ByItems& found)
{
    std::vector<int> order;
    for (std::size_t c = 0; c < found.cell.size(); c++)
    {
        const ByItems::Cell& cell   = found.cell[c];
        const int            octant = c > 0 ? static_cast<int>(cell.key & 7) : 0;
        EXPECT_EQ(cell.level == 0, c == 0);
        order.push_back(fmm_cell_order(octant, found.leaf[c] >= 0, cell.level));
    }
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
    EXPECT_LT(order.back(), FMM_CELL_ORDERS);
}

/* Each cell is the child that its key tells of its parent; what is near to it is what places tell. */
void expectLinks(const ByItems& found, const fmm_cells& cells)
{
    const int                              num = static_cast<int>(found.cell.size());
    std::map<std::pair<int, fmm_key>, int> at;
    int                                    children = 0;
    for (int c = 0; c < num; c++)
    {
        const ByItems::Cell& cell  = found.cell[static_cast<std::size_t>(c)];
        at[{cell.level, cell.key}] = c;
    }
    for (std::size_t i = 0; i < found.child.size(); i++)
    {
        const std::size_t parent = i / 8;
        if (found.child[i] < num)
        {
            const ByItems::Cell& lower = found.cell[static_cast<std::size_t>(found.child[i])];
            ASSERT_LT(parent, found.cell.size());
            EXPECT_TRUE(lower.key == (found.cell[parent].key << 3 | i % 8));
            EXPECT_EQ(lower.level, found.cell[parent].level + 1);
            EXPECT_EQ(found.parent[static_cast<std::size_t>(found.child[i])], static_cast<int>(parent));
            children++;
        }
    }
    EXPECT_EQ(children, num - 1);
    EXPECT_EQ(found.parent[0], num);
    for (std::size_t c = 0; c < found.cell.size(); c++)
    {
        const ByItems::Cell& cell = found.cell[c];
        for (std::size_t o = 0; o < found.numNear; o++)
        {
            int  to[3];
            bool inside = true;
            fmm_morton_place(cell.key, to);
            for (int d = 0; d < 3; d++)
            {
                to[d] += cells.near[o][d];
                inside = inside && to[d] >= 0 && to[d] < 1 << cell.level;
            }
            const auto other = inside ? at.find({cell.level, fmm_morton_key(to)}) : at.end();
            EXPECT_EQ(found.near[found.numNear * c + o], other != at.end() ? other->second : num);
        }
    }
}

std::vector<fmm_key> sortedKeys(const gmxfmm_plan& p, const std::vector<double>& x)
{
    std::vector<fmm_key> keys;
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

void expectTheSameByItems(const gmxfmm_plan& p, const std::vector<double>& x, const std::vector<double>& places)
{
    const fmm_tree& tree = *p.domain.tree;
    const auto      keys = sortedKeys(p, x), targetKeys = sortedKeys(p, places);
    const ByItems   found(keys, targetKeys, tree, p.domain.cells);
    for (int l = 0; l <= tree.depth; l++)
    {
        std::set<Place> cells, expected;
        for (int c = 0; c < p.cpu->level[l].num; c++)
        {
            expected.insert(placeOf(p.cpu->level[l], c));
        }
        for (const ByItems::Cell& cell : found.cell)
        {
            Place at;
            fmm_morton_place(cell.key, at.data());
            if (cell.level == l)
            {
                cells.insert(at);
            }
        }
        EXPECT_EQ(cells, expected) << "level " << l;
    }
    expectOrder(found);
    expectLinks(found, p.domain.cells);
    ASSERT_EQ(found.leaves.size(), static_cast<std::size_t>(p.cpu->leaves.num));
    std::vector<fmm_key_range> held;
    std::size_t                leaf = 0;
    for (const int c : found.leaves)
    {
        ASSERT_GE(c, 0);
        const ByItems::Cell& cell  = found.cell[static_cast<std::size_t>(c)];
        const fmm_key_range  range = found.range[static_cast<std::size_t>(c)];
        const fmm_leaf_place place =
            fmm_place_of_leaf(cell.key, cell.level, tree.depth, p.domain.cells.origin, p.domain.cells.to_cells);
        double centre[3];
        fmm_leaf_centre(&p, static_cast<int>(leaf), centre);
        for (std::size_t d = 0; d < 3; d++)
        {
            EXPECT_EQ(place.centre[d], centre[d]);
        }
        EXPECT_EQ(place.edge, fmm_leaf_edge(&p, static_cast<int>(leaf)));
        EXPECT_EQ(range.begin[0], p.cpu->sources.cell_start[leaf]);
        EXPECT_EQ(range.end[0], p.cpu->sources.cell_start[leaf + 1]);
        if (!places.empty())
        {
            EXPECT_EQ(range.begin[1], p.cpu->targets.cell_start[leaf]);
            EXPECT_EQ(range.end[1], p.cpu->targets.cell_start[leaf + 1]);
        }
        ByItems::Runs runs;
        for (int k = p.cpu->leaves.near_start[leaf]; k < p.cpu->leaves.near_start[leaf + 1]; k++)
        {
            const int begin = p.cpu->sources.cell_start[p.cpu->leaves.near[k][0]],
                      end   = p.cpu->sources.cell_start[p.cpu->leaves.near[k][1]];
            if (end > begin)
            {
                runs.emplace_back(begin, end);
            }
        }
        EXPECT_EQ(found.runs(c), runs) << "leaf " << leaf;
        held.push_back(range);
        leaf++;
    }
    for (int set = 0; set < 2; set++)
    {
        for (int s = 0; s < found.keys.num[set]; s++)
        {
            const int c = fmm_leaf_of(held.data(), p.cpu->leaves.num, set, s);
            EXPECT_TRUE(held[static_cast<std::size_t>(c)].begin[set] <= s &&
                        s < held[static_cast<std::size_t>(c)].end[set]);
        }
    }
}

} // namespace

/* All levels at once the functions that a GPU's kernels are made of find the tree that the CPU makes from the root
 * down: cells, leaves, what they hold, and what is near to them, in its order. */
TEST(LeavesOfSeveralLevels, AreFoundFromItems)
{
    System far = halfInACluster(3000), farther = far, droplets = droplet(2000, 1, 5);
    far.add({300, -200, 100}, 1);
    farther.add({3e6, -2e6, 1e6}, 1);
    for (std::size_t i = 0; i < droplets.x.size(); i++) /* denser towards the middle */
    {
        droplets.x[i] *= std::fabs(droplets.x[i]) * std::fabs(droplets.x[i]);
    }
    for (const System& s : {far, farther, droplets})
    {
        for (int separation : {1, 2})
        {
            SCOPED_TRACE(separation);
            Plan  plan(s, openTree(separation));
            auto& p = *plan.get();
            ASSERT_NE(p.domain.tree, nullptr);
            p.domain.tree->most  = 3000;
            p.tuning.target_edge = 1e-9; /* so many levels as there can be */
            plan.assign(s.x);
            ASSERT_EQ(p.domain.tree->depth, FMM_MAX_LEVEL);
            ASSERT_GT(p.cpu->leaves.num, 20);
            expectTheSameByItems(p, s.x, {});
            const System targets = droplet(500, 2, 9);
            ASSERT_EQ(gmxfmm_set_targets(&p, static_cast<std::int64_t>(targets.size()), targets.x.data()), GMXFMM_OK);
            plan.assign(s.x);
            expectTheSameByItems(p, s.x, targets.x);
        }
    }
}

/* Of nothing there is a root, and a leaf in it. */
TEST(LeavesOfSeveralLevels, AreFoundWithoutItems)
{
    Plan          plan(halfInACluster(20000), openTree(1));
    const auto&   p = *plan.get();
    const ByItems found({}, {}, *p.domain.tree, p.domain.cells);
    ASSERT_EQ(found.cell.size(), 2u);
    EXPECT_EQ(found.leaves, std::vector<int>(1, 1));
    EXPECT_EQ(found.child[0], 1);
    EXPECT_EQ(found.range[1].end[0] - found.range[1].begin[0], 0);
    EXPECT_TRUE(found.runs(1).empty());
}
