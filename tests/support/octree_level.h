/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Two neighbouring levels of an octree with random multipoles, for tests and measurements of the operators between
 * cells. octree_formulas.h has what the operators should give. */
#ifndef GMXFMM_TESTS_OCTREE_LEVEL_H
#define GMXFMM_TESTS_OCTREE_LEVEL_H

#include <array>
#include <random>
#include <stdexcept>
#include <vector>

extern "C"
{
#include "fmm/geometry/cells.h"
#include "fmm/geometry/tree.h"
}

#define HARM_T double
#define HARM_R double
#include "fmm/math/harmonics.h"

namespace fmmtest
{

struct HostLevel
{
    int                             num = 0, slab[9] = {0}, n = 0;
    std::vector<std::array<int, 3>> at;
    std::vector<int>                parent, child, near, index; /* index: by place, num where empty */
    int                             place(int x, int y, int z) const
    {
        return (x * n + y) * n + z;
    }
};

class Level
{
  public:
    int                 depth, order, ws;
    bool                periodic;
    double              fill;
    fmm_cells           cells{};
    fmm_tree            tree{};
    HostLevel           upper, lower;
    std::vector<double> multipole, upper_local; /* [cell][coefficient] */

    /* truncate: as the option m2l_truncate */
    Level(int depth_, int order_, int ws_, bool periodic_, double fill_, double stretch, int truncate = 0)
        : depth(depth_), order(order_), ws(ws_), periodic(periodic_), fill(fill_)
    {
        const int    n = 1 << depth, inner[3] = {n, n, n};
        const double box[9]   = {1, 0, 0, 0, stretch, 0, 0, 0, 1 / stretch};
        const int    along[3] = {periodic, periodic, periodic};
        if (fmm_cells_set_octree(&cells, box, inner, along, ws, order) != GMXFMM_OK)
        {
            throw std::runtime_error("no memory for cells");
        }
        if (fmm_tree_lists(&tree, &cells, 0, truncate, order) != GMXFMM_OK)
        {
            throw std::runtime_error("no memory for lists");
        }
        make_cells(n);
        make_expansions();
    }

    ~Level()
    {
        fmm_tree_lists_free(&tree);
        fmm_cells_free(&cells);
    }
    Level(const Level&)            = delete;
    Level& operator=(const Level&) = delete;

    int num_coef() const
    {
        return harm_size(order);
    }

    /* Of translations along this displacement. */
    int order_of(int vector) const
    {
        return tree.truncation != nullptr ? tree.truncation[vector] : order;
    }

    /* Degree of coefficient f. */
    int degree(int f) const
    {
        int m = 0;
        while (f >= harm_column(order, m + 1))
        {
            m++;
        }
        return m + (f - harm_column(order, m)) % (order + 1 - m);
    }

    /* What coefficient f of a local contributes at the edge of its cell: |y|^k/k!. */
    double weight(int f) const
    {
        double    w = 1;
        const int k = degree(f);
        for (int i = 1; i <= k; i++)
        {
            w *= 0.87 * cells.lambda / i;
        }
        return w;
    }

  private:
    /* Occupied cells in slabs, each row by row by the place of the parents (tree.h). */
    static void number(const std::vector<char>& occupied, int n, HostLevel* level)
    {
        level->n = n;
        level->index.assign(occupied.size(), 0);
        level->num = 0;
        for (int c = 0; c < 8; c++)
        {
            level->slab[c] = level->num;
            for (int i = 0; i < n / 2 * (n / 2) * (n / 2); i++)
            {
                const int x = 2 * (i / (n / 2 * (n / 2))) + (c >> 2), y = 2 * (i / (n / 2) % (n / 2)) + (c >> 1 & 1),
                          z = 2 * (i % (n / 2)) + (c & 1);
                if (occupied[static_cast<size_t>(level->place(x, y, z))])
                {
                    level->index[static_cast<size_t>(level->place(x, y, z))] = level->num++;
                    level->at.push_back({x, y, z});
                }
            }
        }
        level->slab[8] = level->num;
        for (size_t i = 0; i < occupied.size(); i++)
        {
            level->index[i] = occupied[i] ? level->index[i] : level->num;
        }
        level->at.push_back({0, 0, 0});
    }

    void make_cells(int n)
    {
        std::mt19937      random(7);
        std::vector<char> low(static_cast<size_t>(n) * n * n), high(low.size() / 8);
        for (int i = 0; i < n * n * n; i++)
        {
            const bool is_occupied      = fill >= 1 || static_cast<double>(random()) < fill * 4294967296.0;
            low[static_cast<size_t>(i)] = is_occupied;
            if (is_occupied)
            {
                const int x = i / (n * n) / 2, y = i / n % n / 2, z = i % n / 2;
                high[static_cast<size_t>((x * (n / 2) + y) * (n / 2) + z)] = 1;
            }
        }
        number(low, n, &lower);
        number(high, n / 2, &upper);
        lower.parent.resize(static_cast<size_t>(lower.num));
        for (int i = 0; i < lower.num; i++)
        {
            const auto& at = lower.at[static_cast<size_t>(i)];
            lower.parent[static_cast<size_t>(i)] =
                upper.index[static_cast<size_t>(upper.place(at[0] / 2, at[1] / 2, at[2] / 2))];
        }
        upper.child.assign(8 * static_cast<size_t>(upper.num + 1), lower.num);
        upper.near.assign(static_cast<size_t>(upper.num + 1) * cells.num_near, upper.num);
        for (int i = 0; i < upper.num; i++)
        {
            const auto& at = upper.at[static_cast<size_t>(i)];
            for (int c = 0; c < 8; c++)
            {
                upper.child[8 * static_cast<size_t>(i) + c] = lower.index[static_cast<size_t>(
                    lower.place(2 * at[0] + (c >> 2), 2 * at[1] + (c >> 1 & 1), 2 * at[2] + (c & 1)))];
            }
            for (int o = 0; o < cells.num_near; o++)
            {
                int  k[3];
                bool is_inside = true;
                for (int d = 0; d < 3; d++)
                {
                    k[d]      = at[d] + cells.near[o][d];
                    is_inside = is_inside && k[d] >= 0 && k[d] < upper.n;
                    k[d]      = (k[d] + 4 * upper.n) % upper.n;
                }
                if (is_inside || periodic)
                {
                    upper.near[static_cast<size_t>(i) * cells.num_near + o] =
                        upper.index[static_cast<size_t>(upper.place(k[0], k[1], k[2]))];
                }
            }
        }
    }

    void make_expansions()
    {
        std::mt19937                           random(11);
        std::uniform_real_distribution<double> uniform(-1, 1);
        std::vector<double>                    inverse(num_coef());
        harm_fill_inverse(order, inverse.data());
        multipole.assign(static_cast<size_t>(lower.num + 1) * num_coef(), 0);
        for (int i = 0; i < lower.num; i++)
        {
            for (int q = 0; q < 3; q++)
            {
                double y[3] = {0, 0, 0};
                for (int d = 0; d < 3; d++)
                {
                    y[d] = 0.5 * uniform(random) * cells.cell[4 * d];
                }
                harm_add_upsilon(order, y[0], -y[1], y[2], uniform(random), inverse.data(),
                                 &multipole[static_cast<size_t>(i) * num_coef()]);
            }
        }
        /* locals of parents: coefficients that give potentials of one size */
        upper_local.assign(static_cast<size_t>(upper.num + 1) * num_coef(), 0);
        for (int i = 0; i < upper.num; i++)
        {
            for (int f = 0; f < num_coef(); f++)
            {
                upper_local[static_cast<size_t>(i) * num_coef() + f] = uniform(random) / weight(f);
            }
        }
    }
};

} // namespace fmmtest

#endif
