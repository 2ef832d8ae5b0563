/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The operators between cells by their formulas, in double precision, term by term: THEORY (5), (30) and (31). */
#ifndef GMXFMM_TESTS_OCTREE_FORMULAS_H
#define GMXFMM_TESTS_OCTREE_FORMULAS_H

#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include "octree_level.h"
#include "fmm/math/theta.h"

namespace fmmtest
{

/* Coefficients of all n <= p, |m| <= n as complex numbers. */
class Expansion
{
  public:
    Expansion(int p, const double* x) : width_(2 * p + 1), c_(static_cast<std::size_t>((p + 1) * width_))
    {
        for (int n = 0; n <= p; n++)
        {
            for (int m = 0; m <= n; m++)
            {
                const std::complex<double> c(x[harm_re(p, n, m)], m > 0 ? x[harm_im(p, n, m)] : 0);
                *at(n, m)  = c;
                *at(n, -m) = m > 0 ? (m & 1 ? -1.0 : 1.0) * std::conj(c) : c;
            }
        }
    }
    /* Those of degree n from m on. */
    const std::complex<double>* row(int n, int m) const
    {
        return &c_[place(n, m)];
    }
    /* 0 where there is none. */
    std::complex<double> operator()(int n, int m) const
    {
        return n < 0 || std::abs(m) > n ? 0 : *row(n, m);
    }

  private:
    std::size_t place(int n, int m) const
    {
        return static_cast<std::size_t>(n * width_ + width_ / 2 + m);
    }
    std::complex<double>* at(int n, int m)
    {
        return &c_[place(n, m)];
    }
    int                               width_;
    std::vector<std::complex<double>> c_;
};

/* Relative errors, over some of the cells, of what an operator gave for a Level; `got` is [cell][coefficient]. Each
 * coefficient counts as what it contributes at the edge of its cell. */
class Formulas
{
  public:
    explicit Formulas(const Level& level) : level_(level)
    {
    }

    /* Locals after M2L, from zero. */
    template <class R>
    double m2l_error(const std::vector<R>& got)
    {
        if (m2l_.empty())
        {
            for (int target : sample(level_.lower.num))
            {
                m2l_.push_back(m2l(target));
            }
        }
        return error(sample(level_.lower.num), m2l_, got, true);
    }

    /* Multipoles of parents after M2M. */
    template <class R>
    double m2m_error(const std::vector<R>& got)
    {
        std::vector<std::vector<double>> expected;
        for (int parent : sample(level_.upper.num))
        {
            expected.push_back(m2m(parent));
        }
        return error(sample(level_.upper.num), expected, got, false);
    }

    /* Locals after L2L, from zero. */
    template <class R>
    double l2l_error(const std::vector<R>& got)
    {
        std::vector<std::vector<double>> expected;
        for (int target : sample(level_.lower.num))
        {
            expected.push_back(l2l(target));
        }
        return error(sample(level_.lower.num), expected, got, true);
    }

  private:
    typedef std::complex<double> complex;

    const Level&                     level_;
    std::vector<std::vector<double>> m2l_;

    /* Cells all over the level, of every child index: a term takes O(p^4) here. */
    std::vector<int> sample(int cells) const
    {
        std::vector<int> some;
        const int        num = std::min(cells, level_.order > 12 ? 8 : 24);
        for (int i = 0; i < num; i++)
        {
            some.push_back(static_cast<int>((static_cast<long>(cells) - 1) * i / std::max(num - 1, 1)));
        }
        return some;
    }

    template <class R>
    double error(const std::vector<int>&                 cells,
                 const std::vector<std::vector<double>>& expected,
                 const std::vector<R>&                   got,
                 bool                                    is_local) const
    {
        const int num        = level_.num_coef();
        double    difference = 0, norm = 0;
        for (std::size_t i = 0; i < cells.size(); i++)
        {
            for (int f = 0; f < num; f++)
            {
                const double w     = is_local ? level_.weight(f) : 1 / level_.weight(f);
                const double exact = expected[i][static_cast<std::size_t>(f)];
                const double is =
                    static_cast<double>(got[static_cast<std::size_t>(cells[i]) * static_cast<std::size_t>(num) +
                                            static_cast<std::size_t>(f)]);
                difference += w * (is - exact) * w * (is - exact);
                norm += w * exact * w * exact;
            }
        }
        return std::sqrt(difference / norm);
    }

    void put(int n, int m, complex value, std::vector<double>* x) const
    {
        (*x)[static_cast<std::size_t>(harm_re(level_.order, n, m))] += value.real();
        if (m > 0)
        {
            (*x)[static_cast<std::size_t>(harm_im(level_.order, n, m))] += value.imag();
        }
    }

    const double* of(const std::vector<double>& expansions, int cell) const
    {
        return &expansions[static_cast<std::size_t>(cell) * static_cast<std::size_t>(level_.num_coef())];
    }

    /* One term of (5), to order p. */
    void translate(int p, const Expansion& m, const Expansion& theta, std::vector<double>* out) const
    {
        for (int k = 0; k <= p; k++)
        {
            for (int l = 0; l <= k; l++)
            {
                double re = 0, im = 0;
                for (int n = 0; n <= p; n++)
                {
                    const complex *a = m.row(n, -n), *b = theta.row(n + k, l - n);
                    for (int j = 0; j <= 2 * n; j++)
                    {
                        re += a[j].real() * b[j].real() - a[j].imag() * b[j].imag();
                        im += a[j].real() * b[j].imag() + a[j].imag() * b[j].real();
                    }
                }
                put(k, l, complex(re, im), out);
            }
        }
    }

    std::vector<double> m2l(int target) const
    {
        const int           p = level_.order;
        std::vector<double> out(static_cast<std::size_t>(level_.num_coef()), 0);
        std::vector<double> theta(static_cast<std::size_t>(harm_size(2 * p)));
        const HostLevel &   lower = level_.lower, &upper = level_.upper;
        int                 slab = 0;
        while (target >= lower.slab[slab + 1])
        {
            slab++;
        }
        const std::size_t parent = static_cast<std::size_t>(lower.parent[static_cast<std::size_t>(target)]);
        for (int i = 0; i < level_.tree.num_list[slab]; i++)
        {
            const fmm_translation& t = level_.tree.list[slab][i];
            const int              near =
                upper.near[parent * static_cast<std::size_t>(level_.cells.num_near) + static_cast<std::size_t>(t.near)];
            const int source = upper.child[8 * static_cast<std::size_t>(near) + static_cast<std::size_t>(t.octant)];
            if (source >= lower.num)
            {
                continue;
            }
            double r[3];
            for (int d = 0; d < 3; d++)
            {
                r[d] = level_.tree.vector[t.vector][d] * level_.cells.cell[4 * d];
            }
            theta_fill(2 * p, r, theta.data());
            translate(level_.order_of(t.vector), Expansion(p, of(level_.multipole, source)),
                      Expansion(2 * p, theta.data()), &out);
        }
        return out;
    }

    /* Upsilon of the centre of child c minus its parent's. */
    Expansion child_upsilon(int c) const
    {
        std::vector<double> upsilon(static_cast<std::size_t>(level_.num_coef()), 0), inverse(upsilon.size());
        harm_fill_inverse(level_.order, inverse.data());
        double s[3];
        for (int d = 0; d < 3; d++)
        {
            s[d] = (c >> (2 - d) & 1 ? 0.5 : -0.5) * level_.cells.cell[4 * d];
        }
        harm_add_upsilon(level_.order, s[0], s[1], s[2], 1.0, inverse.data(), upsilon.data());
        return Expansion(level_.order, upsilon.data());
    }

    std::vector<double> m2m(int parent) const
    {
        const int           p = level_.order;
        std::vector<double> out(static_cast<std::size_t>(level_.num_coef()), 0);
        for (int c = 0; c < 8; c++)
        {
            const int child = level_.upper.child[8 * static_cast<std::size_t>(parent) + static_cast<std::size_t>(c)];
            if (child >= level_.lower.num)
            {
                continue;
            }
            const Expansion upsilon = child_upsilon(c), multipole(p, of(level_.multipole, child));
            for (int n = 0; n <= p; n++)
            {
                for (int m = 0; m <= n; m++)
                {
                    complex sum = 0;
                    for (int k = 0; k <= n; k++)
                    {
                        for (int l = -k; l <= k; l++)
                        {
                            sum += std::conj(upsilon(n - k, m - l)) * multipole(k, l);
                        }
                    }
                    put(n, m, sum * std::ldexp(1.0, -n), &out);
                }
            }
        }
        return out;
    }

    std::vector<double> l2l(int target) const
    {
        const int           p       = level_.order;
        const int           parent  = level_.lower.parent[static_cast<std::size_t>(target)];
        const auto&         at      = level_.lower.at[static_cast<std::size_t>(target)];
        const Expansion     upsilon = child_upsilon(4 * (at[0] & 1) + 2 * (at[1] & 1) + (at[2] & 1));
        const Expansion     local(p, of(level_.upper_local, parent));
        std::vector<double> out(static_cast<std::size_t>(level_.num_coef()), 0);
        for (int k = 0; k <= p; k++)
        {
            for (int l = 0; l <= k; l++)
            {
                complex sum = 0;
                for (int n = k; n <= p; n++)
                {
                    for (int m = -n; m <= n; m++)
                    {
                        sum += ((n - k) & 1 ? -1.0 : 1.0) * std::conj(upsilon(n - k, m - l)) * std::ldexp(1.0, -n - 1) *
                               local(n, m);
                    }
                }
                put(k, l, sum, &out);
            }
        }
        return out;
    }
};

} // namespace fmmtest

#endif
