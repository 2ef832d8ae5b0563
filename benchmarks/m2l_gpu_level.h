/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Two levels of an octree with random multipoles, and the operators' formulas in double
 * precision (THEORY (5), (30), (31)) for some of its cells. */
#ifndef M2L_GPU_LEVEL_H
#define M2L_GPU_LEVEL_H

#include <array>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

extern "C"
{
#include "cells.h"
#include "tree.h"
}

#define HARM_T double
#define HARM_R double
#include "fold.h"
#include "rotation.h"
#include "theta.h"

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

    Level(int depth_, int order_, int ws_, bool periodic_, double fill_, double stretch)
        : depth(depth_), order(order_), ws(ws_), periodic(periodic_), fill(fill_)
    {
        const int    n = 1 << depth, inner[3] = {n, n, n};
        const double box[9] = {1, 0, 0, 0, stretch, 0, 0, 0, 1 / stretch};
        if (fmm_cells_set_octree(&cells, box, inner, periodic, ws, order) != GMXFMM_OK)
        {
            std::abort();
        }
        tree.num_near = cells.num_near;
        if (fmm_tree_lists(&tree, &cells, ws, 0, 0, order) != GMXFMM_OK)
        {
            std::abort();
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

    /* Locals after M2L of some cells against (5); `got` is [cell][coefficient]. */
    template <class R>
    double m2l_error(const std::vector<R>& got) const
    {
        double difference = 0, norm = 0;
        for (int target : sample())
        {
            compare(m2l(target), &got[static_cast<size_t>(target) * num_coef()], &difference, &norm);
        }
        return std::sqrt(difference / norm);
    }

    template <class R>
    double m2m_error(const std::vector<R>& got) const
    {
        double difference = 0, norm = 0;
        for (int parent = 0; parent < upper.num; parent += 1 + upper.num / 20)
        {
            compare(m2m(parent), &got[static_cast<size_t>(parent) * num_coef()], &difference, &norm, false);
        }
        return std::sqrt(difference / norm);
    }

    template <class R>
    double l2l_error(const std::vector<R>& got) const
    {
        double difference = 0, norm = 0;
        for (int target : sample())
        {
            compare(l2l(target), &got[static_cast<size_t>(target) * num_coef()], &difference, &norm);
        }
        return std::sqrt(difference / norm);
    }

  private:
    typedef std::complex<double> complex;

    std::vector<int> sample() const
    {
        std::vector<int> cells_;
        const int        num = order > 12 ? 6 : 24; /* the formulas take p^4 */
        for (int i = 0; i < num && lower.num > 0; i++)
        {
            cells_.push_back(static_cast<int>((static_cast<long>(lower.num) - 1) * i / (num - 1)));
        }
        return cells_;
    }

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
            const bool is_occupied      = fill >= 1 || random() < fill * 4294967296.0;
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
                upper_local[static_cast<size_t>(i) * num_coef() + f] = uniform(random) / weight(f, 1);
            }
        }
    }

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
    double weight(int f, double scale) const
    {
        double    w = 1;
        const int k = degree(f);
        for (int i = 1; i <= k; i++)
        {
            w *= 0.87 * scale * cells.lambda / i;
        }
        return w;
    }

    template <class R>
    void compare(
        const std::vector<double>& expected, const R* got, double* difference, double* norm, bool is_local = true) const
    {
        for (int f = 0; f < num_coef(); f++)
        {
            const double w = is_local ? weight(f, 1) : 1 / weight(f, 1);
            const double d = w * (static_cast<double>(got[f]) - expected[static_cast<size_t>(f)]);
            *difference += d * d;
            *norm += w * w * expected[static_cast<size_t>(f)] * expected[static_cast<size_t>(f)];
        }
    }

    static complex element(int p, const double* x, int n, int m)
    {
        const int a = m < 0 ? -m : m;
        if (n < 0 || a > n)
        {
            return 0;
        }
        const complex c(x[harm_re(p, n, a)], a > 0 ? x[harm_im(p, n, a)] : 0);
        return m < 0 ? (a & 1 ? -1.0 : 1.0) * std::conj(c) : c;
    }

    void put(int n, int m, complex value, std::vector<double>* x) const
    {
        (*x)[static_cast<size_t>(harm_re(order, n, m))] = value.real();
        if (m > 0)
        {
            (*x)[static_cast<size_t>(harm_im(order, n, m))] = value.imag();
        }
    }

    std::vector<double> m2l(int target) const
    {
        const int           p = order;
        std::vector<double> out(static_cast<size_t>(num_coef()), 0), theta(static_cast<size_t>(harm_size(2 * p)));
        int                 slab = 0;
        while (target >= lower.slab[slab + 1])
        {
            slab++;
        }
        for (int i = 0; i < tree.num_list[slab]; i++)
        {
            const fmm_translation& t = tree.list[slab][i];
            const int              near =
                upper.near[static_cast<size_t>(lower.parent[static_cast<size_t>(target)]) * cells.num_near +
                           static_cast<size_t>(t.near)];
            const int source = upper.child[8 * static_cast<size_t>(near) + static_cast<size_t>(t.octant)];
            double    r[3];
            for (int d = 0; d < 3; d++)
            {
                r[d] = tree.vector[t.vector][d] * cells.cell[4 * d];
            }
            theta_fill(2 * p, r, theta.data());
            const double* m = &multipole[static_cast<size_t>(source) * num_coef()];
            for (int k = 0; k <= p && source < lower.num; k++)
            {
                for (int l = 0; l <= k; l++)
                {
                    complex sum = 0;
                    for (int n = 0; n <= p; n++)
                    {
                        for (int j = -n; j <= n; j++)
                        {
                            sum += element(p, m, n, j) * element(2 * p, theta.data(), n + k, j + l);
                        }
                    }
                    out[static_cast<size_t>(harm_re(p, k, l))] += sum.real();
                    if (l > 0)
                    {
                        out[static_cast<size_t>(harm_im(p, k, l))] += sum.imag();
                    }
                }
            }
        }
        return out;
    }

    /* Upsilon of the centre of child c minus its parent's. */
    std::vector<double> child_upsilon(int c) const
    {
        std::vector<double> upsilon(static_cast<size_t>(num_coef()), 0), inverse(upsilon.size());
        harm_fill_inverse(order, inverse.data());
        double s[3];
        for (int d = 0; d < 3; d++)
        {
            s[d] = (c >> (2 - d) & 1 ? 0.5 : -0.5) * cells.cell[4 * d];
        }
        harm_add_upsilon(order, s[0], s[1], s[2], 1.0, inverse.data(), upsilon.data());
        return upsilon;
    }

    std::vector<double> m2m(int parent) const
    {
        const int           p = order;
        std::vector<double> out(static_cast<size_t>(num_coef()), 0);
        for (int n = 0; n <= p; n++)
        {
            for (int m = 0; m <= n; m++)
            {
                complex sum = 0;
                for (int c = 0; c < 8; c++)
                {
                    const int                 child   = upper.child[8 * static_cast<size_t>(parent) + c];
                    const std::vector<double> upsilon = child_upsilon(c);
                    for (int k = 0; k <= n && child < lower.num; k++)
                    {
                        for (int l = -k; l <= k; l++)
                        {
                            sum += std::conj(element(p, upsilon.data(), n - k, m - l)) *
                                   element(p, &multipole[static_cast<size_t>(child) * num_coef()], k, l);
                        }
                    }
                }
                put(n, m, sum * std::ldexp(1.0, -n), &out);
            }
        }
        return out;
    }

    std::vector<double> l2l(int target) const
    {
        const int                 p       = order;
        const int                 parent  = lower.parent[static_cast<size_t>(target)];
        const auto&               at      = lower.at[static_cast<size_t>(target)];
        const std::vector<double> upsilon = child_upsilon(4 * (at[0] & 1) + 2 * (at[1] & 1) + (at[2] & 1));
        const double*             local   = &upper_local[static_cast<size_t>(parent) * num_coef()];
        std::vector<double>       out(static_cast<size_t>(num_coef()), 0);
        for (int k = 0; k <= p; k++)
        {
            for (int l = 0; l <= k; l++)
            {
                complex sum = 0;
                for (int n = k; n <= p; n++)
                {
                    for (int m = -n; m <= n; m++)
                    {
                        sum += ((n - k) & 1 ? -1.0 : 1.0) * std::conj(element(p, upsilon.data(), n - k, m - l)) *
                               std::ldexp(1.0, -n - 1) * element(p, local, n, m);
                    }
                }
                put(k, l, sum, &out);
            }
        }
        return out;
    }
};

#endif
