/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The octree's operators, one by one, against the formulas as they stand in docs/theory.md, in double precision. */
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "support/paths.h"
#include "support/plan.h"

extern "C"
{
#define HARM_T double
#define HARM_R double
#include "fmm/math/harmonics.h"
#include "fmm/math/rotation.h"
#include "fmm/cpu/state.h"

/* fmm/cpu/octree/operators.h, as the linker has it (fmm/math/names.h) */
#define DECLARE_OPERATORS(suffix)                                                                                      \
    void fmm_operators_set_shape_##suffix(gmxfmm_plan* plan);                                                          \
    void fmm_m2m_##suffix(const gmxfmm_plan* plan, int level);                                                         \
    void fmm_m2l_##suffix(gmxfmm_plan* plan, int level, double* strain);                                               \
    void fmm_l2l_##suffix(gmxfmm_plan* plan, int level, double* strain);
    DECLARE_OPERATORS(f)
    DECLARE_OPERATORS(d)
}

using namespace fmmtest;
using Complex = std::complex<double>;

namespace
{

/* ---- reference ---- */

/* Upsilon_n^m(r), 0 <= m <= n <= p, in the order of harmonics.h. */
std::vector<double> upsilon(int p, const Vec3& r)
{
    const auto          size = static_cast<std::size_t>(harm_size(p));
    std::vector<double> inverse(size), out(size, 0);
    harm_fill_inverse(p, inverse.data());
    harm_add_upsilon(p, r[0], r[1], r[2], 1.0, inverse.data(), out.data());
    return out;
}

Complex element(int p, const std::vector<double>& x, int n, int m)
{
    const int a = std::abs(m);
    if (a > n)
    {
        return 0;
    }
    const Complex c(x[static_cast<std::size_t>(harm_re(p, n, a))],
                    a > 0 ? x[static_cast<std::size_t>(harm_im(p, n, a))] : 0);
    return m >= 0 ? c : (a & 1 ? -1.0 : 1.0) * std::conj(c);
}

void set(int p, std::vector<double>& x, int n, int m, Complex c)
{
    x[static_cast<std::size_t>(harm_re(p, n, m))] = c.real();
    if (m > 0)
    {
        x[static_cast<std::size_t>(harm_im(p, n, m))] = c.imag();
    }
}

/* Theta by (2), r^(n+1) taken in logarithms: degrees reach 80 */
std::vector<double> theta(int p, const Vec3& r)
{
    const double length = std::sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
    auto         out    = upsilon(p, {r[0] / length, r[1] / length, r[2] / length});
    for (int n = 0; n <= p; n++)
    {
        for (int m = 0; m <= n; m++)
        {
            const double factor =
                std::exp(std::lgamma(n - m + 1) + std::lgamma(n + m + 1) - (n + 1) * std::log(length));
            set(p, out, n, m, element(p, out, n, m) * factor);
        }
    }
    return out;
}

/* (5) */
void addM2l(int p, const std::vector<double>& multipole, const Vec3& r, std::vector<double>& local)
{
    const auto t = theta(2 * p, r);
    for (int k = 0; k <= p; k++)
    {
        for (int l = 0; l <= k; l++)
        {
            Complex sum = element(p, local, k, l);
            for (int n = 0; n <= p; n++)
            {
                for (int m = -n; m <= n; m++)
                {
                    sum += element(p, multipole, n, m) * element(2 * p, t, n + k, m + l);
                }
            }
            set(p, local, k, l, sum);
        }
    }
}

/* Norm of degree n that rotations leave alone: |M_n^m|^2 (n-m)!(n+m)! (power 1) or |L_k^l|^2 / ((k-l)!(k+l)!) (-1). */
double degreeNorm(int p, const std::vector<double>& x, int n, int power)
{
    double sum = 0;
    for (int m = -n; m <= n; m++)
    {
        sum += std::norm(element(p, x, n, m)) * std::exp(power * (std::lgamma(n - m + 1) + std::lgamma(n + m + 1)));
    }
    return std::sqrt(sum);
}

/* Adds to bound[k] the largest norm of degree k that a multipole of these norms can give at distance r: the norm of the
 * translation along z, (n+k)!/(n! k!) r^-(n+k+1). Rounding errors are relative to it. */
void addBound(int p, const std::vector<double>& multipole, double r, std::vector<double>& bound)
{
    for (int n = 0; n <= p; n++)
    {
        const double norm = degreeNorm(p, multipole, n, 1);
        for (int k = 0; k <= p; k++)
        {
            bound[static_cast<std::size_t>(k)] += norm * std::exp(std::lgamma(n + k + 1) - std::lgamma(n + 1) -
                                                                  std::lgamma(k + 1) - (n + k + 1) * std::log(r));
        }
    }
}

double potential(int p, const std::vector<double>& local, const Vec3& y)
{
    const auto u   = upsilon(p, y);
    Complex    sum = 0;
    for (int k = 0; k <= p; k++)
    {
        for (int l = -k; l <= k; l++)
        {
            sum += (k & 1 ? -1.0 : 1.0) * std::conj(element(p, u, k, l)) * element(p, local, k, l);
        }
    }
    return sum.real();
}

/* ---- the library in either precision ---- */

struct Tree
{
    gmxfmm_plan* plan;
    bool         single;

    explicit Tree(Plan& p) : plan(p.get()), single(p.get()->options.precision == GMXFMM_SINGLE)
    {
    }

    const fmm_level& level(int l) const
    {
        return plan->cpu->level[l];
    }
    int depth() const
    {
        return plan->domain.tree->depth;
    }
    double epsilon() const
    {
        return single ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
    }
    std::vector<double> get(const void* field, int l, int cell) const
    {
        std::vector<double> x(static_cast<std::size_t>(harm_size(plan->far.order)));
        for (std::size_t i = 0; i < x.size(); i++)
        {
            const std::size_t at = i * level(l).stride + static_cast<std::size_t>(cell);
            x[i]                 = single ? static_cast<double>(static_cast<const float*>(field)[at])
                                          : static_cast<const double*>(field)[at];
        }
        return x;
    }
    void put(void* field, int l, int cell, const std::vector<double>& x) const
    {
        for (std::size_t i = 0; i < x.size(); i++)
        {
            const std::size_t at = i * level(l).stride + static_cast<std::size_t>(cell);
            if (single)
            {
                static_cast<float*>(field)[at] = static_cast<float>(x[i]);
            }
            else
            {
                static_cast<double*>(field)[at] = x[i];
            }
        }
    }
    std::vector<double> multipole(int l, int cell) const
    {
        return get(level(l).multipole, l, cell);
    }
    std::vector<double> local(int l, int cell) const
    {
        return get(level(l).local, l, cell);
    }
    void clearLocals() const
    {
        const std::vector<double> zero(static_cast<std::size_t>(harm_size(plan->far.order)), 0);
        for (int l = 0; l <= depth(); l++)
        {
            for (int c = 0; c <= level(l).num; c++)
            {
                put(level(l).local, l, c, zero);
            }
        }
    }
    void m2m(int l) const
    {
        single ? fmm_m2m_f(plan, l) : fmm_m2m_d(plan, l);
    }
    void m2l(int l, double* strain = nullptr) const
    {
        single ? fmm_m2l_f(plan, l, strain) : fmm_m2l_d(plan, l, strain);
    }
    void l2l(int l, double* strain = nullptr) const
    {
        single ? fmm_l2l_f(plan, l, strain) : fmm_l2l_d(plan, l, strain);
    }
    void setShape() const
    {
        single ? fmm_operators_set_shape_f(plan) : fmm_operators_set_shape_d(plan);
    }
    /* displacement k, in cells */
    Vec3 vector(const std::array<double, 3>& k) const
    {
        Vec3 r{};
        for (std::size_t d = 0; d < 3; d++)
        {
            for (std::size_t e = 0; e < 3; e++)
            {
                r[d] += k[e] * plan->domain.cells.cell[3 * e + d];
            }
        }
        return r;
    }
    /* sum M L of all cells of a level: twice the energy */
    double product(int l) const
    {
        const int p   = plan->far.order;
        double    sum = 0;
        for (int c = 0; c < level(l).num; c++)
        {
            const auto m = multipole(l, c), x = local(l, c);
            for (int k = 0; k <= p; k++)
            {
                for (int j = -k; j <= k; j++)
                {
                    sum += (k & 1 ? -1.0 : 1.0) * (element(p, m, k, j) * element(p, x, k, j)).real();
                }
            }
        }
        return sum;
    }
};

double length(const Vec3& r)
{
    return std::sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
}

/* n charges in a corner of the box (edges 0: open) that takes `filling` of each edge. */
System charges(const Vec3& box, int n, double filling)
{
    Random random(5);
    System s;
    for (std::size_t d = 0; d < 3; d++)
    {
        s.box[4 * d] = box[d];
    }
    for (int i = 0; i < n; i++)
    {
        for (std::size_t d = 0; d < 3; d++)
        {
            s.x.push_back(filling * random.uniform() * (box[d] > 0 ? box[d] : 1));
        }
        s.q.push_back(i & 1 ? -1 : 1.5);
    }
    return s;
}

gmxfmm_options options(gmxfmm_m2l m2l, int order, int depth, int ws, gmxfmm_precision precision, const Vec3& box)
{
    gmxfmm_options o = depthOptions(m2l, order, depth, ws, precision);
    o.boundary       = box[0] > 0 ? GMXFMM_TINFOIL : GMXFMM_OPEN;
    return o;
}

const Vec3 c_cube{3, 3, 3}, c_brick{3, 3.6, 2.5}, c_open{0, 0, 0};

struct Case
{
    const char*      name;
    Vec3             box;
    int              order, depth, separation, particles;
    double           filling;
    gmxfmm_precision precision;
};

using Parameter = std::tuple<gmxfmm_m2l, Case>;

std::string name(const testing::TestParamInfo<Parameter>& info)
{
    return methodWord(std::get<0>(info.param)) + std::get<1>(info.param).name;
}

class Operators : public testing::TestWithParam<Parameter>
{
  protected:
    const Case& c() const
    {
        return std::get<1>(GetParam());
    }
    /* A plan that has executed, so that all levels have multipoles. */
    std::unique_ptr<Plan> makePlan() const
    {
        const System s    = charges(c().box, c().particles, c().filling);
        auto         plan = std::make_unique<Plan>(
            s, options(std::get<0>(GetParam()), c().order, c().depth, c().separation, c().precision, c().box));
        plan->execute(s.x);
        return plan;
    }
};

int floorHalf(int k)
{
    return k >= 0 ? k / 2 : -((1 - k) / 2);
}

} // namespace

/* Every displacement of the lists, found by places: sources whose parents are near and that are not near themselves. */
TEST_P(Operators, M2lIsTheSumOverTheInteractionList)
{
    const auto                        plan = makePlan();
    const Tree                        t(*plan);
    const int                         p = c().order, ws = c().separation, l = t.depth(), reach = 2 * ws + 1;
    const fmm_level&                  level = t.level(l);
    std::map<std::array<int, 3>, int> cells;
    for (int cell = 0; cell < level.num; cell++)
    {
        cells[{level.at[cell][0], level.at[cell][1], level.at[cell][2]}] = cell;
    }
    t.clearLocals();
    t.m2l(l);
    for (int sample = 0; sample < 3; sample++)
    {
        const int           target = sample * (level.num - 1) / 2;
        const int*          at     = level.at[target];
        std::vector<double> expected(static_cast<std::size_t>(harm_size(p)), 0),
            bound(static_cast<std::size_t>(p + 1), 0);
        for (int i = 0; i < (2 * reach + 1) * (2 * reach + 1) * (2 * reach + 1); i++)
        {
            const std::array<int, 3> k{i / (2 * reach + 1) / (2 * reach + 1) - reach,
                                       i / (2 * reach + 1) % (2 * reach + 1) - reach, i % (2 * reach + 1) - reach};
            std::array<int, 3>       place{};
            int                      near = 1, far = 0;
            for (std::size_t d = 0; d < 3; d++)
            {
                const int n = t.plan->domain.tree->roots[d] << l, from = at[d] - k[d];
                near &= std::abs(k[d]) <= ws;
                far |= std::abs(floorHalf(at[d]) - floorHalf(from)) > ws;
                place[d] = fmm_is_periodic(t.plan) ? (from % n + n) % n : from;
            }
            const auto found = cells.find(place);
            if (near || far || found == cells.end())
            {
                continue;
            }
            const Vec3 r = t.vector({static_cast<double>(k[0]), static_cast<double>(k[1]), static_cast<double>(k[2])});
            const auto m = t.multipole(l, found->second);
            addM2l(p, m, r, expected);
            addBound(p, m, length(r), bound);
        }
        auto difference = t.local(l, target);
        for (std::size_t i = 0; i < difference.size(); i++)
        {
            difference[i] -= expected[i];
        }
        for (int k = 0; k <= p; k++)
        {
            /* the library: sums of p products follow one upon the other in five steps at most (rotations); the
             * reference: logarithms of some tens */
            EXPECT_LE(degreeNorm(p, difference, k, -1), (10 + p) * t.epsilon() * bound[static_cast<std::size_t>(k)])
                << "degree " << k << " of cell " << target;
        }
    }
}

/* Multipoles of every level are those of its particles, and translations of locals leave the potential as it is. */
TEST_P(Operators, M2mIsTheMultipoleAboutTheOtherCentre)
{
    const auto  plan = makePlan();
    const Tree  t(*plan);
    const int   p         = c().order;
    const auto& particles = t.plan->cpu->sources;
    for (int l = t.depth() - 1; l >= 0; l--)
    {
        const int           cell = t.level(l).num / 2;
        const double        unit = std::ldexp(1.0, t.depth() - l); /* of this level in those of the leaves */
        std::vector<double> expected(static_cast<std::size_t>(harm_size(p)), 0),
            bound(static_cast<std::size_t>(p + 1), 0);
        const fmm_level& leaves = t.level(t.depth());
        for (int leaf = 0; leaf < leaves.num; leaf++)
        {
            int up = leaf;
            for (int k = t.depth(); k > l; k--)
            {
                up = t.level(k).parent[up];
            }
            for (int s = particles.cell_start[leaf]; up == cell && s < particles.cell_start[leaf + 1]; s++)
            {
                std::array<double, 3> k{};
                for (std::size_t d = 0; d < 3; d++)
                {
                    k[d] = leaves.at[leaf][d] + 0.5 - unit * (t.level(l).at[cell][d] + 0.5);
                }
                Vec3       y        = t.vector(k);
                const auto position = [&](const void* x) {
                    return t.single ? static_cast<double>(static_cast<const float*>(x)[s])
                                    : static_cast<const double*>(x)[s];
                };
                y[0]           = (y[0] + position(particles.x)) / unit;
                y[1]           = -(y[1] + position(particles.y)) / unit; /* conj Upsilon */
                y[2]           = (y[2] + position(particles.z)) / unit;
                const double q = position(particles.q);
                const auto   u = upsilon(p, y);
                for (std::size_t i = 0; i < u.size(); i++)
                {
                    expected[i] += q * u[i];
                }
                /* the norm of degree n of Upsilon(y) is |y|^n; shifts may cancel each other, and rounding errors then
                 * are those of the sum of their lengths, half a diagonal a level and what the particle is off */
                const double off  = length({position(particles.x), position(particles.y), position(particles.z)});
                const double path = (off + length(t.vector({0.5, 0.5, 0.5})) * (unit - 1)) / unit;
                for (int n = 0; n <= p; n++)
                {
                    bound[static_cast<std::size_t>(n)] += std::fabs(q) * std::pow(path, n);
                }
            }
        }
        auto difference = t.multipole(l, cell);
        for (std::size_t i = 0; i < difference.size(); i++)
        {
            difference[i] -= expected[i];
        }
        for (int n = 0; n <= p; n++)
        {
            EXPECT_LE(degreeNorm(p, difference, n, 1), (10 + p) * t.epsilon() * bound[static_cast<std::size_t>(n)])
                << "degree " << n << " of level " << l;
        }
    }
}

TEST_P(Operators, L2lLeavesThePotentialAsItIs)
{
    const auto plan = makePlan();
    const Tree t(*plan);
    const int  p = c().order, l = t.depth() - 1;
    Random     random(3);
    t.clearLocals();
    for (int cell = 0; cell < t.level(l).num; cell++)
    {
        /* of a charge two cells away */
        const Vec3   r        = random.direction();
        const double distance = 2 * t.plan->domain.cells.lambda;
        t.put(t.level(l).local, l, cell, theta(p, {distance * r[0], distance * r[1], distance * r[2]}));
    }
    t.l2l(l);
    const fmm_level& children = t.level(l + 1);
    for (int sample = 0; sample < 9; sample++)
    {
        const int  child = sample * (children.num - 1) / 8;
        const int  cell  = children.parent[child];
        const auto at    = children.at[child];
        Vec3       y     = random.direction();
        Vec3       s     = t.vector({(at[0] & 1) - 0.5, (at[1] & 1) - 0.5, (at[2] & 1) - 0.5});
        for (std::size_t d = 0; d < 3; d++)
        {
            y[d] *= 0.5 * t.plan->domain.cells.lambda;
            s[d] = 0.5 * (s[d] + y[d]); /* in the parent's unit */
        }
        const double expected = 0.5 * potential(p, t.local(l, cell), s);
        EXPECT_NEAR(potential(p, t.local(l + 1, child), y), expected,
                    (10 + p) * t.epsilon() / t.plan->domain.cells.lambda);
    }
}

/* Without the multipoles of degree p, the energy of one level of M2L is exactly that of what F acts on. */
TEST_P(Operators, StrainOfM2lIsTheDerivativeOfItsEnergy)
{
    const auto plan = makePlan();
    const Tree t(*plan);
    const int  p = c().order, l = t.depth();
    if (t.single || p == 0)
    {
        GTEST_SKIP() << "finite differences want double precision, forces want a dipole";
    }
    for (int cell = 0; cell < t.level(l).num; cell++)
    {
        auto m = t.multipole(l, cell);
        for (int j = 0; j <= p; j++)
        {
            set(p, m, p, j, 0);
        }
        t.put(t.level(l).multipole, l, cell, m);
    }
    double strain[6] = {0}, scale = 0;
    t.clearLocals();
    t.m2l(l, strain);
    scale = std::fabs(strain[0]) + std::fabs(strain[1]) + std::fabs(strain[2]);
    std::array<double, 9> cell{};
    std::copy_n(t.plan->domain.cells.cell, 9, cell.begin());
    const int  axis[6][2] = {{0, 0}, {1, 1}, {2, 2}, {0, 1}, {0, 2}, {1, 2}};
    const bool mirrored   = t.plan->far.m2l == GMXFMM_M2L_SYMMETRIC; /* needs right angles */
    for (int e = 0; e < (mirrored ? 3 : 6); e++)
    {
        const double step = 1e-5;
        double       energy[2];
        for (int side = 0; side < 2; side++)
        {
            for (int row = 0; row < 3; row++)
            {
                const double d = side ? step : -step, a = cell[static_cast<std::size_t>(3 * row + axis[e][0])],
                             b = cell[static_cast<std::size_t>(3 * row + axis[e][1])];
                std::copy_n(&cell[static_cast<std::size_t>(3 * row)], 3, t.plan->domain.cells.cell + 3 * row);
                t.plan->domain.cells.cell[3 * row + axis[e][0]] += 0.5 * d * b;
                t.plan->domain.cells.cell[3 * row + axis[e][1]] += 0.5 * d * a;
            }
            t.setShape();
            t.clearLocals();
            t.m2l(l);
            energy[side] = 0.5 * t.product(l);
        }
        /* differences: step^2 times the third derivative, (p+1)^3 at most */
        EXPECT_NEAR(strain[e], (energy[1] - energy[0]) / (2 * step), 1e-7 * (1 + p) * scale) << "component " << e;
    }
}

TEST_P(Operators, StrainOfL2lIsTheDerivativeOfItsEnergy)
{
    const auto plan = makePlan();
    const Tree t(*plan);
    const int  p = c().order, l = t.depth() - 1;
    if (t.single || p == 0)
    {
        GTEST_SKIP() << "finite differences want double precision, forces want a dipole";
    }
    const auto clearChildren = [&]
    {
        for (int cell = 0; cell < t.level(l + 1).num; cell++)
        {
            t.put(t.level(l + 1).local, l + 1, cell, std::vector<double>(static_cast<std::size_t>(harm_size(p)), 0));
        }
    };
    double strain[6] = {0};
    clearChildren();
    t.l2l(l, strain);
    const double          scale = std::fabs(strain[0]) + std::fabs(strain[1]) + std::fabs(strain[2]);
    std::array<double, 9> cell{};
    std::copy_n(t.plan->domain.cells.cell, 9, cell.begin());
    for (int e = 0; e < 3; e++) /* shifts are for right angles */
    {
        const double step = 1e-5;
        double       energy[2];
        for (int side = 0; side < 2; side++)
        {
            std::copy_n(cell.begin(), 9, t.plan->domain.cells.cell);
            for (int row = 0; row < 3; row++)
            {
                t.plan->domain.cells.cell[3 * row + e] *= 1 + (side ? step : -step);
            }
            t.setShape();
            clearChildren();
            t.l2l(l);
            energy[side] = t.product(l + 1);
        }
        EXPECT_NEAR(strain[e], (energy[1] - energy[0]) / (2 * step), 1e-7 * (1 + p) * scale) << "component " << e;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Cells,
    Operators,
    testing::Combine(testing::ValuesIn(octreeMethods()),
                     testing::Values(Case{"Order0", c_cube, 0, 1, 1, 60, 1, GMXFMM_SINGLE},
                                     Case{"Order1", c_cube, 1, 2, 1, 200, 1, GMXFMM_DOUBLE},
                                     Case{"Order4Single", c_cube, 4, 2, 1, 200, 1, GMXFMM_SINGLE},
                                     Case{"Order4TwoLayers", c_cube, 4, 2, 2, 100, 1, GMXFMM_DOUBLE},
                                     Case{"Order5", c_brick, 5, 2, 1, 200, 1, GMXFMM_DOUBLE},
                                     Case{"Order9Single", c_brick, 9, 2, 1, 100, 1, GMXFMM_SINGLE},
                                     Case{"Order9Sparse", c_open, 9, 4, 1, 60, 0.4, GMXFMM_DOUBLE},
                                     Case{"Order13", c_cube, 13, 1, 1, 20, 1, GMXFMM_DOUBLE},
                                     Case{"Order14TwoLayers", c_open, 14, 2, 2, 40, 1, GMXFMM_SINGLE},
                                     Case{"Order20Single", c_open, 20, 2, 1, 20, 1, GMXFMM_SINGLE},
                                     Case{"Order40", c_open, 40, 2, 1, 8, 1, GMXFMM_DOUBLE})),
    name);

/* The flip by its definition, Upsilon(z, y, x) = B Upsilon(x, y, z), in the blocks that M2L by rotation uses. */
TEST(Flip, ChangesXAndZ)
{
    const int           p = GMXFMM_MAX_ORDER;
    const Vec3          r{0.3, -0.5, 0.7};
    const auto          u = upsilon(p, r), expected = upsilon(p, {r[2], r[1], r[0]});
    std::vector<double> below((p + 1) * (p + 1), 1), b((p + 1) * (p + 1), 1);
    for (int n = 0; n <= p; n++)
    {
        if (n > 0)
        {
            rot_next_flip(n, below.data(), b.data());
        }
        std::vector<double> row(static_cast<std::size_t>(2 * n + 1)), flipped(row);
        for (int m = 0; m <= n; m++)
        {
            row[static_cast<std::size_t>(rot_re(n, m) - n * n)] = element(p, u, n, m).real();
            if (m > 0)
            {
                row[static_cast<std::size_t>(rot_im(n, m) - n * n)] = element(p, u, n, m).imag();
            }
        }
        for (int block = 0; block < 4; block++)
        {
            for (int i = 0; i < rot_block_size(n, block); i++)
            {
                double& out = flipped[static_cast<std::size_t>(rot_block_out(n, block) + i)];
                for (int j = 0; j < rot_block_size(n, block); j++)
                {
                    out += rot_flip_element(n, b.data(), ROT_FLIP, block, i, j) *
                           row[static_cast<std::size_t>(rot_block_in(n, block) + j)];
                }
            }
        }
        for (int m = 0; m <= n; m++)
        {
            /* relative to the largest of its degree, n! Upsilon_n^m being of size 1 */
            const double  tolerance = 1e-14 * (1 + n) / std::tgamma(n + 1);
            const Complex e         = element(p, expected, n, m);
            EXPECT_NEAR(flipped[static_cast<std::size_t>(rot_re(n, m) - n * n)], e.real(), tolerance) << n << " " << m;
            if (m > 0)
            {
                EXPECT_NEAR(flipped[static_cast<std::size_t>(rot_im(n, m) - n * n)], e.imag(), tolerance)
                    << n << " " << m;
            }
        }
        std::copy_n(b.begin(), (n + 1) * (n + 1), below.begin());
    }
}

/* Orders of truncated translations: all of it for the nearest displacements, three quarters from some distance on,
 * the same for mirror images, and worth the while. What it does to forces is in translations.cpp. */
TEST(Truncation, FollowsTheDistance)
{
    for (const int ws : {1, 2})
    {
        const System   s = charges(c_cube, 50, 1);
        gmxfmm_options o = options(GMXFMM_M2L_ROTATION, 12, 2, ws, GMXFMM_DOUBLE, c_cube);
        o.m2l_truncate   = 1;
        Plan                              plan(s, o);
        const fmm_tree&                   tree = *plan.get()->domain.tree;
        std::map<int, std::map<int, int>> orders; /* by length squared */
        double                            sum = 0;
        for (int v = 0; v < tree.num_vectors; v++)
        {
            const int* k = tree.vector[v];
            orders[k[0] * k[0] + k[1] * k[1] + k[2] * k[2]][tree.truncation[v]]++;
            sum += tree.truncation[v];
        }
        EXPECT_EQ(orders.begin()->second, (std::map<int, int>{{12, 6}}));
        EXPECT_EQ(orders.rbegin()->second, (std::map<int, int>{{9, 8}}));
        int previous = 12;
        for (const auto& [length2, found] : orders)
        {
            const int order = found.begin()->first;
            EXPECT_EQ(found.size(), 1u) << "displacements of length^2 " << length2;
            EXPECT_TRUE(order == 9 || order == previous) << order << ", displacements of length^2 " << length2;
            previous = order;
        }
        EXPECT_LT(sum / tree.num_vectors, 10);
    }
}

/* Of a list most translations are of the reduced order. */
TEST(Truncation, IsOfMostTranslations)
{
    gmxfmm_options o = options(GMXFMM_M2L_ROTATION, 8, 2, 1, GMXFMM_DOUBLE, c_cube);
    o.m2l_truncate   = 1;
    Plan            plan(charges(c_cube, 50, 1), o);
    const fmm_tree& tree = *plan.get()->domain.tree;
    for (int c = 0; c < 8; c++)
    {
        std::map<int, int> count;
        for (int i = 0; i < tree.num_list[c]; i++)
        {
            count[tree.truncation[tree.list[c][i].vector]]++;
        }
        EXPECT_EQ(count, (std::map<int, int>{{6, 135}, {8, 54}}));
    }
}
