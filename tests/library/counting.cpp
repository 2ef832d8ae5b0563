/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Every pair of particles and images is met exactly once: near, by one translation of one level, or in the lattice sum.
 *
 * At order 0 a translation turns into q / |R|, R from the centre of the source's cell to that of the target's. What FMM
 * computes is then a sum over pairs that can be written down pair by pair, each at the level where it must be met, and
 * must be the same to rounding. Charges are random numbers of one sign, so that no miss can hide another. */
#include <gtest/gtest.h>

#include "support/ewald.h"
#include "support/norms.h"
#include "support/paths.h"
#include "support/plan.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

const double pi = 3.14159265358979323846;

using Index3 = std::array<int, 3>;

/* A grid of cells over a brick, and its refinements. */
struct Tree
{
    Vec3   origin, edge; /* corner; edges of a root */
    Index3 roots;
    int    depth, separation;
    bool   periodic, toParent;

    Index3 cell(const Vec3& r, int level) const
    {
        Index3 c;
        for (std::size_t d = 0; d < 3; d++)
        {
            c[d] = static_cast<int>(std::floor((r[d] - origin[d]) / edge[d] * (1 << level)));
        }
        return c;
    }
    /* centre of a cell of a level, image t of the box */
    Vec3 centre(const Index3& c, int level, const Index3& t = {0, 0, 0}) const
    {
        Vec3 r;
        for (std::size_t d = 0; d < 3; d++)
        {
            r[d] = origin[d] + edge[d] * ((c[d] + 0.5) / (1 << level) + t[d] * roots[d]);
        }
        return r;
    }
    bool near(const Index3& a, const Index3& b, int level, const Index3& t) const
    {
        bool all = true;
        for (std::size_t d = 0; d < 3; d++)
        {
            all = all && std::abs(a[d] - b[d] - t[d] * (roots[d] << level)) <= separation;
        }
        return all;
    }
};

double distance(const Vec3& a, const Vec3& b)
{
    return std::sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) + (a[2] - b[2]) * (a[2] - b[2]));
}

/* Whether the child goes straight to its target's parent, whose near cell's child it is: 80 of the 152 outer boxes of
 * ws = 1 (Gumerov & Duraiswami 2008, eq. 23), those with two components of 5 or (5, 3, 3) half cells from the centre.
 */
bool goesToParent(const Tree& tree, const Index3& target, const Index3& source, int level, const Index3& t)
{
    int square = 0, largest = 0;
    for (std::size_t d = 0; d < 3; d++)
    {
        const int parent = target[d] >> 1, child = source[d] + t[d] * (tree.roots[d] << level);
        const int k = 4 * parent + 1 - 2 * child; /* half cells */
        square += k * k;
        largest = std::max(largest, std::abs(k));
    }
    return largest == 5 && square >= 43;
}

/* Potential at r of a unit charge in image t of s; 0 if the pair belongs to the lattice sum. */
double pairPotential(const Tree& tree, const Vec3& r, const Vec3& s, const Index3& t)
{
    for (int level = 0; level <= tree.depth; level++)
    {
        const Index3 a = tree.cell(r, level), b = tree.cell(s, level);
        if (tree.near(a, b, level, t))
        {
            continue;
        }
        if (level == 0)
        {
            return 0;
        }
        if (tree.toParent && goesToParent(tree, a, b, level, t))
        {
            return 1 / distance(tree.centre(tree.cell(r, level - 1), level - 1), tree.centre(b, level, t));
        }
        return 1 / distance(tree.centre(a, level), tree.centre(b, level, t));
    }
    Vec3 image = s;
    for (std::size_t d = 0; d < 3; d++)
    {
        image[d] += t[d] * tree.roots[d] * tree.edge[d];
    }
    return 1 / distance(r, image);
}

/* What was added up, with the sum of the terms' absolute values: rounding is relative to that. */
struct Sums
{
    std::vector<double> potential, absolute;

    explicit Sums(std::size_t n) : potential(n), absolute(n)
    {
    }
    void add(std::size_t i, double term)
    {
        potential[i] += term;
        absolute[i] += std::fabs(term);
    }
};

/* Potential of the lattice sum at the centres of the roots, one a particle: all images of the charges, moved to the
 * centres of their roots, but not the near ones. */
void addLattice(const Tree& tree, const System& s, Sums* sums)
{
    System roots;
    roots.box = s.box;
    std::vector<std::size_t> rootOf(s.size());
    std::vector<Index3>      place;
    for (std::size_t i = 0; i < s.size(); i++)
    {
        const Index3 c    = tree.cell(s.position(i), 0);
        std::size_t  root = 0;
        while (root < place.size() && place[root] != c)
        {
            root++;
        }
        if (root == place.size())
        {
            place.push_back(c);
            roots.add(tree.centre(c, 0), 0);
        }
        roots.q[root] += s.q[i];
        rootOf[i] = root;
    }
    const std::vector<double> ewaldPotential = ewald(roots).potential;
    Sums                      all(place.size());
    for (std::size_t a = 0; a < place.size(); a++)
    {
        all.add(a, ewaldPotential[a]);
        for (std::size_t b = 0; b < place.size(); b++)
        {
            for (int k = 0; k < 125; k++)
            {
                const Index3 t = {k % 5 - 2, k / 5 % 5 - 2, k / 25 - 2};
                if (tree.near(place[a], place[b], 0, t) && !(a == b && k == 62))
                {
                    all.add(a, -roots.q[b] / distance(roots.position(a), tree.centre(place[b], 0, t)));
                }
            }
        }
    }
    for (std::size_t i = 0; i < s.size(); i++)
    {
        sums->potential[i] += all.potential[rootOf[i]];
        sums->absolute[i] += all.absolute[rootOf[i]];
    }
}

/* THEORY (16): what the uniform background adds, positions from the centres of the roots. */
void addBackground(const Tree& tree, const System& s, Sums* sums)
{
    double              net = 0, second = 0;
    Vec3                dipole = {0, 0, 0};
    std::vector<double> y(s.x);
    for (std::size_t i = 0; i < s.size(); i++)
    {
        const Vec3 centre = tree.centre(tree.cell(s.position(i), 0), 0);
        net += s.q[i];
        for (std::size_t d = 0; d < 3; d++)
        {
            y[3 * i + d] -= centre[d];
            dipole[d] += s.q[i] * y[3 * i + d];
            second += s.q[i] * y[3 * i + d] * y[3 * i + d];
        }
    }
    for (std::size_t i = 0; i < s.size(); i++)
    {
        double sum = second;
        for (std::size_t d = 0; d < 3; d++)
        {
            sum += net * y[3 * i + d] * y[3 * i + d] - 2 * y[3 * i + d] * dipole[d];
        }
        sums->add(i, 2 * pi / (3 * volume(s.box)) * sum);
    }
}

Sums pairByPair(const Tree& tree, const System& s)
{
    Sums      sums(s.size());
    const int images = tree.periodic ? 125 : 1;
    for (std::size_t i = 0; i < s.size(); i++)
    {
        for (std::size_t j = 0; j < s.size(); j++)
        {
            for (int k = 0; k < images; k++)
            {
                const Index3 t    = tree.periodic ? Index3{k % 5 - 2, k / 5 % 5 - 2, k / 25 - 2} : Index3{0, 0, 0};
                const bool   self = i == j && t == Index3{0, 0, 0};
                sums.add(i, self ? 0 : s.q[j] * pairPotential(tree, s.position(i), s.position(j), t));
            }
        }
    }
    if (tree.periodic)
    {
        addLattice(tree, s, &sums);
        addBackground(tree, s, &sums);
    }
    return sums;
}

System withRandomCharges(System s)
{
    Random random(77);
    for (double& q : s.q)
    {
        q = 0.1 + random.uniform();
    }
    return s;
}

void expectPairByPair(const Tree& tree, const System& s, const gmxfmm_options& options)
{
    const Result r = solve(s, options);
    for (std::size_t d = 0; d < 3; d++)
    {
        ASSERT_EQ(r.info.grid[d], tree.roots[d] << tree.depth);
    }
    const Sums expected = pairByPair(tree, s);
    for (std::size_t i = 0; i < s.size(); i++)
    {
        /* rounding; one of up to 60000 pairs, with the smallest charge and ten times the mean distance, is 1e-7 */
        ASSERT_NEAR(r.potential[i], expected.potential[i], 1e-13 * expected.absolute[i]) << "particle " << i;
    }
}

/* The brick that an octree puts about an open system: a cube about its middle. */
Tree openTree(const System& s, int depth, int separation, bool toParent)
{
    Vec3   low = s.position(0), high = low;
    double longest = 0;
    for (std::size_t k = 0; k < s.x.size(); k++)
    {
        low[k % 3]  = std::fmin(low[k % 3], s.x[k]);
        high[k % 3] = std::fmax(high[k % 3], s.x[k]);
    }
    for (std::size_t d = 0; d < 3; d++)
    {
        longest = std::fmax(longest, high[d] - low[d]);
    }
    longest *= 1 + 1e-9; /* as the library, so that the outermost particles are inside */
    Tree tree = {{}, {longest, longest, longest}, {1, 1, 1}, depth, separation, false, toParent};
    for (std::size_t d = 0; d < 3; d++)
    {
        tree.origin[d] = 0.5 * (low[d] + high[d] - longest);
    }
    return tree;
}

Tree periodicTree(const BoxType& type, const System& s, int depth, int separation, bool toParent)
{
    Tree tree = {{0, 0, 0}, {}, type.roots, depth, separation, true, toParent};
    for (std::size_t d = 0; d < 3; d++)
    {
        tree.edge[d] = s.box[4 * d] / type.roots[d];
    }
    return tree;
}

class Counting : public testing::TestWithParam<gmxfmm_m2l>
{
  protected:
    void expectOpen(const System& s, int depth, int separation, bool toParent = false)
    {
        SCOPED_TRACE("depth " + std::to_string(depth) + ", ws " + std::to_string(separation));
        gmxfmm_options options = withBoundary(depthOptions(GetParam(), 0, depth, separation), Boundary::Open);
        options.m2l_to_parent  = toParent;
        expectPairByPair(openTree(s, depth, separation, toParent), withRandomCharges(s), options);
    }
    void expectPeriodic(const BoxType& type, const System& s, int depth, int separation, bool toParent = false)
    {
        SCOPED_TRACE(type.name + ", depth " + std::to_string(depth) + ", ws " + std::to_string(separation));
        gmxfmm_options options = depthOptions(GetParam(), 0, depth, separation);
        options.m2l_to_parent  = toParent;
        expectPairByPair(periodicTree(type, s, depth, separation, toParent), withRandomCharges(s), options);
    }
};

} // namespace

TEST_P(Counting, InAnOpenDroplet)
{
    for (int depth = 1; depth <= 4; depth++)
    {
        expectOpen(droplet(500, 5, 3), depth, 1);
        expectOpen(droplet(500, 5, 3), depth, 2);
    }
}

/* Most cells are empty, at every level. */
TEST_P(Counting, InClustersFarApart)
{
    System s = droplet(300, 1, 3);
    for (std::size_t i = 0; i < s.size(); i++)
    {
        s.x[3 * i] += i % 3 == 0 ? 20 : 0;
        s.x[3 * i + 2] -= i % 5 == 0 ? 30 : 0;
    }
    for (int depth : {1, 3, 5, 7})
    {
        expectOpen(s, depth, 1);
        expectOpen(s, depth, 2);
    }
}

TEST_P(Counting, InPeriodicBoxes)
{
    for (const BoxType& type : octreeBoxTypes())
    {
        const System s = ions(boxOfVolume(type, 200), 200, 8);
        for (int depth = 1; depth <= 3; depth++)
        {
            expectPeriodic(type, s, depth, 1);
        }
        expectPeriodic(type, s, 2, 2);
    }
}

/* A few particles in a corner of a periodic box. */
TEST_P(Counting, InASparsePeriodicBox)
{
    System s = ions(boxOfVolume(boxTypes()[0], 1), 60, 8);
    s.box    = boxOfVolume(boxTypes()[0], 1000);
    for (int depth : {1, 4, 6})
    {
        expectPeriodic(boxTypes()[0], s, depth, 1);
        expectPeriodic(boxTypes()[0], s, depth, 2);
    }
}

TEST_P(Counting, WithTranslationsToParents)
{
    for (int depth = 1; depth <= 4; depth++)
    {
        expectOpen(droplet(500, 5, 3), depth, 1, true);
    }
    expectPeriodic(boxTypes()[0], ions(boxOfVolume(boxTypes()[0], 200), 200, 8), 2, 1, true);
    expectPeriodic(boxTypes()[0], ions(boxOfVolume(boxTypes()[0], 200), 200, 8), 3, 1, true);
}

INSTANTIATE_TEST_SUITE_P(Methods, Counting, testing::ValuesIn(octreeMethods()), methodName);

/* The same on the one level of the fft path. */
TEST(CountingOnTheGrid, InPeriodicBoxes)
{
    for (const Index3& cells : {Index3{4, 4, 4}, Index3{5, 3, 4}, Index3{1, 1, 1}, Index3{2, 2, 2}})
    {
        for (int separation : {1, 2})
        {
            BoxType type   = boxTypes()[0];
            type.shape     = {0.25 * cells[0], 0, 0, 0, 0.25 * cells[1], 0, 0, 0, 0.25 * cells[2]};
            type.roots     = cells;
            const System s = withRandomCharges(ions(boxOfVolume(type, 200), 200, 8));
            expectPairByPair(periodicTree(type, s, 0, separation, false), s, explicitOptions(0, cells, separation));
        }
    }
}
