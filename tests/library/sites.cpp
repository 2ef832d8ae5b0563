/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lennard-Jones between sites against sums over all pairs and images, and what these sums promise. */
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gmxfmm_sites.h"
#include "support/norms.h"
#include "support/sized.h"
#include "support/sites.h"
#include "support/systems.h"
#ifdef GMXFMM_TESTS_CUDA
#    include "support/device_arrays.h"
#endif

using namespace fmmtest;

namespace
{

struct Where
{
    gmxfmm_device    device;
    gmxfmm_precision precision;
};

void PrintTo(const Where& where, std::ostream* out)
{
    *out << (where.device == GMXFMM_CUDA ? "GPU" : "CPU") << (where.precision == GMXFMM_DOUBLE ? "Double" : "Single");
}

/* Sites of one system; x is given in their precision, on their device. */
class Sites
{
  public:
    Sites(const Groups& g, const Where& where, int threads = 1) : where_(where)
    {
        const gmxfmm_sites_system system = g.system(where.precision, where.device, threads);
        char                      text[256];
        EXPECT_EQ(gmxfmm_sites_create(&sites_, &system, text, sizeof(text)), GMXFMM_OK) << text;
    }
    ~Sites()
    {
        gmxfmm_sites_destroy(sites_);
    }
    Sites(const Sites&)                   = delete;
    Sites&        operator=(const Sites&) = delete;
    gmxfmm_sites* get() const
    {
        return sites_;
    }
    void search(const Groups& g, double reach)
    {
        where_.precision == GMXFMM_DOUBLE ? searchAs<double>(g, reach) : searchAs<float>(g, reach);
    }
    SiteSums execute(const Groups& g, double before = 0)
    {
        return where_.precision == GMXFMM_DOUBLE ? executeAs<double>(g, before) : executeAs<float>(g, before);
    }
    /* without energy and virial */
    std::vector<double> forces(const Groups& g)
    {
        withSums_                     = false;
        const std::vector<double> all = execute(g).force;
        withSums_                     = true;
        return all;
    }
    gmxfmm_sites_info info() const
    {
        gmxfmm_sites_info all = sized<gmxfmm_sites_info>();
        EXPECT_EQ(gmxfmm_sites_get_info(sites_, &all), GMXFMM_OK);
        return all;
    }

  private:
    template <class T>
    void searchAs(const Groups& g, double reach)
    {
        const std::vector<T> x(g.x.begin(), g.x.end());
#ifdef GMXFMM_TESTS_CUDA
        if (where_.device == GMXFMM_CUDA)
        {
            const DeviceArray<T> there(x);
            ASSERT_EQ(gmxfmm_sites_search(sites_, g.boxOrNull(), there.data(), reach, nullptr), GMXFMM_OK)
                << gmxfmm_sites_message(sites_);
            return;
        }
#endif
        ASSERT_EQ(gmxfmm_sites_search(sites_, g.boxOrNull(), x.data(), reach, nullptr), GMXFMM_OK)
            << gmxfmm_sites_message(sites_);
    }
    template <class T>
    SiteSums executeAs(const Groups& g, double before)
    {
        const std::vector<T> x(g.x.begin(), g.x.end());
        std::vector<T>       f(g.x.size(), static_cast<T>(before));
        SiteSums             sums;
#ifdef GMXFMM_TESTS_CUDA
        if (where_.device == GMXFMM_CUDA)
        {
            const DeviceArray<T>      there(x), forces(f);
            const DeviceArray<double> all(10);
            EXPECT_EQ(gmxfmm_sites_enqueue_box(sites_, g.boxOrNull(), nullptr), GMXFMM_OK);
            EXPECT_EQ(gmxfmm_sites_enqueue(sites_, there.data(), withSums_ ? all.data() : nullptr, nullptr), GMXFMM_OK)
                << gmxfmm_sites_message(sites_);
            EXPECT_EQ(gmxfmm_sites_enqueue_forces(sites_, forces.data(), nullptr), GMXFMM_OK);
            f                                = forces.get();
            const std::vector<double> values = all.get();
            sums.energy                      = values[0];
            std::copy(values.begin() + 1, values.end(), sums.virial.begin());
            sums.force.assign(f.begin(), f.end());
            return sums;
        }
#endif
        EXPECT_EQ(gmxfmm_sites_execute(sites_, g.boxOrNull(), x.data(), f.data(), withSums_ ? &sums.energy : nullptr,
                                       withSums_ ? sums.virial.data() : nullptr),
                  GMXFMM_OK)
            << gmxfmm_sites_message(sites_);
        sums.force.assign(f.begin(), f.end());
        return sums;
    }

    Where         where_;
    gmxfmm_sites* sites_    = nullptr;
    bool          withSums_ = true;
};

/* All modifiers of the outer range. */
std::vector<gmxfmm_lj_range> outerRanges()
{
    return {{GMXFMM_LJ_CUT, 0, 1.2},
            {GMXFMM_LJ_POTENTIAL_SHIFT, 0, 1.2},
            {GMXFMM_LJ_FORCE_SWITCH, 1, 1.2},
            {GMXFMM_LJ_POTENTIAL_SWITCH, 1, 1.2},
            {GMXFMM_LJ_FORCE_SWITCH, 0.5, 1.2},      /* before the inner switch begins, */
            {GMXFMM_LJ_POTENTIAL_SWITCH, 0.7, 1.2}}; /* and while it lasts */
}

/* Of forces: single precision has coordinates up to 4 with an error of 1.2e-7, and the force of a pair grows with r^-7
 * to r^-13, that is by 1e-5 of itself at 0.8 for an error of 6e-7; sums over some hundred pairs average it. Double
 * precision is the same by 1e9. */
double tolerance(gmxfmm_precision precision)
{
    return precision == GMXFMM_DOUBLE ? 2e-14 : 5e-6;
}

/* The force of a pair near the cut-off is small, and its relative error large: errors are relative to what one pair has
 * at least where the inner potential ends. */
const double c_onePair = 0.02;

void expectClose(const SiteSums& sums, const SiteSums& expected, double limit)
{
    EXPECT_LE(rmsDifference(sums.force, expected.force), limit * (rms(expected.force) + c_onePair));
    EXPECT_NEAR(sums.energy, expected.energy, limit * (std::fabs(expected.energy) + c_onePair));
    double most = c_onePair;
    for (double v : expected.virial)
    {
        most = std::max(most, std::fabs(v));
    }
    for (std::size_t i = 0; i < 9; i++)
    {
        EXPECT_NEAR(sums.virial[i], expected.virial[i], limit * most) << i;
    }
}

/* x (1 + strain), and so the box. */
Groups strained(const Groups& g, int a, int b, double strain)
{
    Groups s = g;
    for (std::size_t i = 0; i < s.x.size() / 3; i++)
    {
        s.x[3 * i + static_cast<std::size_t>(b)] += strain * g.x[3 * i + static_cast<std::size_t>(a)];
    }
    for (std::size_t i = 0; i < 3; i++)
    {
        s.box[3 * i + static_cast<std::size_t>(b)] += strain * g.box[3 * i + static_cast<std::size_t>(a)];
    }
    return s;
}

/* The pair of sites of two types at a distance. */
Groups pairAt(double r)
{
    Groups g = randomGroups({9, 0, 0, 0, 9, 0, 0, 0, 9}, 3, 0, 2, 5);
    g.add({8.9, 1, 1}, 0);
    g.add({8.9 + r - 9, 1, 1}, 1);
    return g;
}

class SitesOn : public testing::TestWithParam<Where>
{
  protected:
    void SetUp() override
    {
        char text[256];
        if (where().device == GMXFMM_CUDA)
        {
#ifdef GMXFMM_TESTS_CUDA
            if (gmxfmm_check_device(GMXFMM_CUDA, 0, text, sizeof(text)) != GMXFMM_OK)
            {
                GTEST_SKIP() << text;
            }
#else
            (void)text;
            GTEST_SKIP() << "this build has no CUDA";
#endif
        }
    }
    static Where where()
    {
        return GetParam();
    }
    static double limit()
    {
        return tolerance(where().precision);
    }
    static bool isDouble()
    {
        return where().precision == GMXFMM_DOUBLE;
    }
};

class SitesOnCpu : public SitesOn
{
};

} // namespace

TEST_P(SitesOn, SumAllPairsInAllBoxes)
{
    for (const SitesBox& box : sitesBoxes())
    {
        SCOPED_TRACE(box.name);
        const Groups   g        = randomGroups(scaled(box.shape, 3), box.numPeriodic, 300, 5, 7);
        const SiteSums expected = sumOfSites(g);
        Sites          sites(g, where());
        sites.search(g, 1.3);
        expectClose(sites.execute(g), expected, limit());
        /* a pair may be at the very cut-off, of 24,000 in single precision */
        EXPECT_NEAR(static_cast<double>(sites.info().num_within), static_cast<double>(expected.within),
                    isDouble() ? 0 : 4);
        EXPECT_GE(sites.info().num_pairs, sites.info().num_within);
        EXPECT_LT(relativeRms(sites.forces(g), expected.force), limit());
    }
}

/* The smallest that there may be. Most blocks of sites then are near to several images of others. */
TEST_P(SitesOn, SumAllPairsInSmallBoxes)
{
    for (const SitesBox& box : sitesBoxes())
    {
        SCOPED_TRACE(box.name);
        for (int num : {2, 9, 40, 150})
        {
            const Groups g = randomGroups(scaled(box.shape, 2.42), box.numPeriodic, num, 3, 8);
            Sites        sites(g, where());
            sites.search(g, 1.2);
            expectClose(sites.execute(g), sumOfSites(g), limit());
        }
    }
}

TEST_P(SitesOn, SumAllPairsInLargeBoxes)
{
    for (const SitesBox& box : sitesBoxes())
    {
        SCOPED_TRACE(box.name);
        Groups g = randomGroups(scaled(box.shape, 8), box.numPeriodic, 1200, 4, 9);
        g.outer  = {GMXFMM_LJ_FORCE_SWITCH, 0.9, 1.2};
        Sites sites(g, where());
        sites.search(g, 1.25);
        /* coordinates in single precision are rounded by a few times as much */
        expectClose(sites.execute(g), sumOfSites(g), (isDouble() ? 1 : 4) * limit());
    }
}

TEST_P(SitesOn, SumAllPairsWithAllModifiers)
{
    Groups g = randomGroups(scaled(sitesBoxes()[2].shape, 3), 3, 300, 5, 7);
    for (const gmxfmm_lj_range& outer : outerRanges())
    {
        SCOPED_TRACE(testing::Message() << outer.modifier << " from " << outer.start);
        g.outer = outer;
        Sites sites(g, where());
        sites.search(g, 1.3);
        expectClose(sites.execute(g), sumOfSites(g), limit());
    }
    for (const double same : {0.8, 1.2})
    {
        g.outer        = {GMXFMM_LJ_POTENTIAL_SHIFT, 0, same}; /* at the inner cut-off */
        g.inner.cutoff = same;
        Sites sites(g, where());
        sites.search(g, 1.3);
        expectClose(sites.execute(g), sumOfSites(g), limit());
    }
}

TEST_P(SitesOn, HaveOneTypeOrMany)
{
    for (int types : {1, 60})
    {
        const Groups g = randomGroups(scaled(sitesBoxes()[1].shape, 3), 3, 300, types, 10);
        Sites        sites(g, where());
        sites.search(g, 1.3);
        expectClose(sites.execute(g), sumOfSites(g), limit());
    }
}

TEST_P(SitesOn, AddToForces)
{
    const Groups g = randomGroups(scaled(sitesBoxes()[0].shape, 3), 3, 100, 2, 11);
    Sites        sites(g, where());
    sites.search(g, 1.3);
    const std::vector<double> alone = sites.forces(g), added = sites.execute(g, 2).force;
    for (std::size_t i = 0; i < alone.size(); i++)
    {
        /* numbers near 2 are rounded */
        EXPECT_NEAR(added[i], 2 + alone[i], isDouble() ? 1e-15 : 5e-7);
    }
}

TEST_P(SitesOn, TakeAtomsInAnyImage)
{
    const Groups   g        = randomGroups(scaled(sitesBoxes()[3].shape, 3), 3, 200, 5, 12);
    Groups         moved    = g;
    const SiteSums expected = sumOfSites(g);
    Random         random(3);
    for (std::size_t i = 0; i < g.x.size() / 3; i++)
    {
        for (std::size_t v = 0; v < 3; v++)
        {
            const double k = std::floor(5 * random.uniform()) - 2;
            for (std::size_t d = 0; d < 3; d++)
            {
                moved.x[3 * i + d] += k * g.box[3 * v + d];
            }
        }
    }
    /* coordinates are rounded up to five boxes away */
    const double more = isDouble() ? 100 : 8;
    Sites        sites(g, where());
    sites.search(g, 1.3);
    expectClose(sites.execute(moved), expected, more * limit());
    sites.search(moved, 1.3);
    expectClose(sites.execute(moved), expected, more * limit());
    expectClose(sites.execute(g), expected, more * limit());
}

/* Sites move by 0.04 at most, and distances by twice that and 0.2 % of them. */
TEST_P(SitesOn, FollowSitesAndTheBoxSinceTheSearch)
{
    for (const SitesBox& box : sitesBoxes())
    {
        SCOPED_TRACE(box.name);
        const Groups g     = randomGroups(scaled(box.shape, 3), box.numPeriodic, 300, 5, 13);
        Groups       moved = strained(strained(strained(g, 0, 0, 1e-3), 2, 0, 1e-3), 2, 2, -1e-3);
        Random       random(4);
        for (int i = 0; i < g.numGroups(); i++)
        {
            const Vec3 to = random.direction();
            for (std::size_t k = static_cast<std::size_t>(g.start[static_cast<std::size_t>(i)]);
                 k < static_cast<std::size_t>(g.start[static_cast<std::size_t>(i) + 1]); k++)
            {
                for (std::size_t d = 0; d < 3; d++)
                {
                    moved.x[3 * static_cast<std::size_t>(g.atom[k]) + d] += 0.04 * to[d];
                }
            }
        }
        Sites sites(g, where());
        sites.search(g, 1.3);
        expectClose(sites.execute(moved), sumOfSites(moved), limit());
        expectClose(sites.execute(g), sumOfSites(g), limit());
    }
}

TEST_P(SitesOn, ConserveMomentum)
{
    const Groups g = randomGroups(scaled(sitesBoxes()[4].shape, 3), 3, 300, 5, 14);
    Sites        sites(g, where());
    sites.search(g, 1.3);
    const std::vector<double> force = sites.forces(g);
    for (std::size_t d = 0; d < 3; d++)
    {
        double sum = 0;
        for (std::size_t i = d; i < force.size(); i += 3)
        {
            sum += force[i];
        }
        EXPECT_NEAR(sum, 0, limit() * rms(force) * std::sqrt(static_cast<double>(force.size()))) << d;
    }
}

TEST_P(SitesOn, AreConstantBeforeBothSwitches)
{
    for (const double r : {0., 1e-4, 0.2, 0.549})
    {
        for (const gmxfmm_lj_range& outer : outerRanges())
        {
            Groups g = pairAt(r);
            g.outer  = outer;
            if (outer.modifier != GMXFMM_LJ_CUT && outer.start > 0 && outer.start < r)
            {
                continue;
            }
            Sites sites(g, where());
            sites.search(g, 1.3);
            const SiteSums sums     = sites.execute(g);
            const double   constant = gmxfmm_sites_constant(sites.get(), 0, 1);
            EXPECT_EQ(gmxfmm_sites_constant(sites.get(), 1, 0), constant);
            EXPECT_NEAR(sums.energy, constant, (isDouble() ? 1e-15 : 2e-7) * (g.c6[1] * 10 + g.c12[1] * 100));
            EXPECT_NE(constant, 0);
            EXPECT_EQ(rms(sums.force), 0);
            EXPECT_EQ(sums.virial, (std::array<double, 9>{}));
        }
    }
}

namespace
{

/* Forces of atoms that are near have terms of r^-13 at 0.22 and more: errors of coordinates count four times as much.
 */
const double c_near = 4;

/* Chains of atoms, and rows of exclusions that one may change. */
struct Chains
{
    std::vector<std::vector<int>> rows = chainExclusions(30, 7);
    Groups                        g    = randomChains(scaled(sitesBoxes()[2].shape, 2), 3, 30, 7, 5, 31);

    /* An atom more, which excludes these, and they exclude it. */
    void add(const Vec3& at, const std::vector<int>& excluded)
    {
        const int i = g.numGroups();
        g.add(at, i % 2);
        rows.push_back(excluded);
        for (int j : excluded)
        {
            if (j != i)
            {
                rows[static_cast<std::size_t>(j)].push_back(i);
            }
        }
        g.exclude(rows);
    }
    Vec3 at(std::size_t i) const
    {
        return {g.x[3 * i], g.x[3 * i + 1], g.x[3 * i + 2]};
    }
};

} // namespace

TEST_P(SitesOn, SumAtomsInAllBoxes)
{
    for (const SitesBox& box : sitesBoxes())
    {
        SCOPED_TRACE(box.name);
        const Groups   g        = randomChains(scaled(box.shape, 2), box.numPeriodic, 40, 6, 5, 30);
        const SiteSums expected = sumOfSites(g);
        Sites          sites(g, where());
        sites.search(g, 0.85);
        expectClose(sites.execute(g), expected, c_near * limit());
        EXPECT_NEAR(static_cast<double>(sites.info().num_within), static_cast<double>(expected.within),
                    isDouble() ? 0 : 4);
        EXPECT_LT(relativeRms(sites.forces(g), expected.force), c_near * limit());
        Groups all = g;
        all.exclude({});
        all.exclusionStart.clear();
        EXPECT_GT(rmsDifference(sumOfSites(all).force, expected.force), rms(expected.force));
    }
}

/* Water has molecules of three. */
TEST_P(SitesOn, SumAtomsInSmallBoxes)
{
    for (const SitesBox& box : sitesBoxes())
    {
        SCOPED_TRACE(box.name);
        for (int num : {1, 3, 20, 33})
        {
            const Groups g = randomChains(scaled(box.shape, 1.52), box.numPeriodic, num, 3, 2, 32);
            Sites        sites(g, where());
            sites.search(g, 0.75);
            expectClose(sites.execute(g), sumOfSites(g), c_near * limit());
        }
    }
}

TEST_P(SitesOn, SumAtomsWithAllModifiers)
{
    Chains chains;
    for (const gmxfmm_lj_range& outer :
         {gmxfmm_lj_range{GMXFMM_LJ_CUT, 0, 0.8}, gmxfmm_lj_range{GMXFMM_LJ_POTENTIAL_SHIFT, 0, 0.8},
          gmxfmm_lj_range{GMXFMM_LJ_FORCE_SWITCH, 0.5, 0.8}, gmxfmm_lj_range{GMXFMM_LJ_POTENTIAL_SWITCH, 0.5, 0.8}})
    {
        SCOPED_TRACE(outer.modifier);
        for (const bool excludes : {true, false})
        {
            chains.g.outer = outer;
            if (!excludes)
            {
                chains.g.exclusionStart.clear();
            }
            const SiteSums expected = sumOfSites(chains.g);
            Sites          sites(chains.g, where());
            sites.search(chains.g, 0.9);
            expectClose(sites.execute(chains.g), expected, c_near * limit());
            EXPECT_LT(relativeRms(sites.forces(chains.g), expected.force), c_near * limit());
            chains.g.exclude(chains.rows);
        }
    }
}

/* More types than tables in shared memory may have. */
TEST_P(SitesOn, SumAtomsOfManyTypes)
{
    const Groups g = randomChains(scaled(sitesBoxes()[0].shape, 2), 3, 30, 6, 400, 33);
    Sites        sites(g, where());
    sites.search(g, 0.85);
    expectClose(sites.execute(g), sumOfSites(g), c_near * limit());
}

/* Lists of most tiles are longer than those of a box that is full. */
TEST_P(SitesOn, SumAtomsOfADrop)
{
    Groups g = randomChains(scaled(sitesBoxes()[0].shape, 2), 3, 40, 6, 5, 34);
    g.box    = scaled(g.box, 4);
    Sites sites(g, where());
    sites.search(g, 0.85);
    expectClose(sites.execute(g), sumOfSites(g), c_near * limit());
}

TEST_P(SitesOn, FollowAtomsInAnyImage)
{
    const Groups g     = randomChains(scaled(sitesBoxes()[4].shape, 2), 3, 40, 6, 5, 35);
    Groups       moved = strained(strained(g, 0, 0, 1e-3), 2, 0, 1e-3), images = moved;
    Random       random(5);
    for (std::size_t i = 0; i < g.x.size() / 3; i++)
    {
        const double k  = std::floor(3 * random.uniform()) - 1;
        const Vec3   to = random.direction();
        for (std::size_t d = 0; d < 3; d++)
        {
            moved.x[3 * i + d] += 0.005 * to[d];
            images.x[3 * i + d] = moved.x[3 * i + d] + k * moved.box[6 + d];
        }
    }
    Sites sites(g, where());
    sites.search(g, 0.85);
    expectClose(sites.execute(images), sumOfSites(moved), 4 * c_near * limit());
}

/* In a tile and in a list, as many are near the same place. */
TEST_P(SitesOn, ExcludePairsAtAnyDistance)
{
    Chains chains;
    for (const double r : {0., 1e-6, 0.02, 0.1})
    {
        for (int k = 0; k < 10; k++)
        {
            const std::size_t i        = static_cast<std::size_t>(20 * k);
            std::vector<int>  excluded = chains.rows[i];
            Vec3              at       = chains.at(i);
            at[static_cast<std::size_t>(k % 3)] += r;
            excluded.push_back(static_cast<int>(i));
            chains.add(at, excluded);
        }
    }
    /* what is not excluded may be close, too: errors are relative to the largest forces */
    const SiteSums expected = sumOfSites(chains.g);
    Sites          sites(chains.g, where());
    sites.search(chains.g, 0.85);
    const SiteSums sums = sites.execute(chains.g);
    for (double f : sums.force)
    {
        ASSERT_TRUE(std::isfinite(f));
    }
    expectClose(sums, expected, (isDouble() ? 1e4 : 100) * limit());

    for (const double r : {0., 1e-6, 0.02, 0.1, 0.5})
    {
        Groups pair = pairAt(r);
        pair.inner  = {};
        pair.exclude({{1, 0}, {0}});
        Sites one(pair, where());
        one.search(pair, 1.3);
        const SiteSums none = one.execute(pair);
        EXPECT_EQ(none.energy, 0);
        EXPECT_EQ(none.virial, (std::array<double, 9>{}));
        EXPECT_EQ(rms(none.force), 0);
    }
}

TEST_P(SitesOn, HaveNoForceWithoutParameters)
{
    for (const double r : {0., 1e-6, 0.02, 0.1})
    {
        Groups pair = pairAt(r);
        pair.inner  = {};
        pair.c6     = std::vector<double>(4, 0.);
        pair.c12    = pair.c6;
        Sites sites(pair, where());
        sites.search(pair, 1.3);
        const SiteSums none = sites.execute(pair);
        EXPECT_EQ(none.energy, 0);
        EXPECT_EQ(rms(none.force), 0);
    }
}

/* Rings of 12 atoms that all exclude each other, in rows that have some twice, and themselves. */
TEST_P(SitesOn, ExcludeManyPairs)
{
    Chains chains;
    for (int ring = 0; ring < 8; ring++)
    {
        std::vector<int> before;
        const Vec3       centre = {0.25 * ring, 0.9, 0.2 * ring};
        for (int k = 0; k < 12; k++)
        {
            std::vector<int> excluded(before.rbegin(), before.rend());
            excluded.push_back(chains.g.numGroups());
            const double angle = 2 * 3.14159265358979 * k / 12;
            chains.add({centre[0] + 0.2 * std::cos(angle), centre[1] + 0.2 * std::sin(angle), centre[2]}, excluded);
            before.push_back(chains.g.numGroups() - 1);
        }
        chains.rows[static_cast<std::size_t>(before[3])].push_back(before[5]);
    }
    chains.g.exclude(chains.rows);
    Sites sites(chains.g, where());
    sites.search(chains.g, 0.85);
    expectClose(sites.execute(chains.g), sumOfSites(chains.g), (isDouble() ? 1e4 : 100) * limit());
}

TEST_P(SitesOn, ExcludePairsBeyondReach)
{
    Chains chains;
    Random random(6);
    for (std::size_t i = 0; i + 110 < chains.rows.size(); i++)
    {
        chains.rows[i].push_back(static_cast<int>(i + 110));
        chains.rows[i + 110].push_back(static_cast<int>(i));
    }
    chains.g.exclude(chains.rows);
    Sites sites(chains.g, where());
    sites.search(chains.g, 0.85);
    expectClose(sites.execute(chains.g), sumOfSites(chains.g), c_near * limit());
}

TEST_P(SitesOn, ExcludePairsOfGroups)
{
    for (const SitesBox& box : sitesBoxes())
    {
        Groups g = randomGroups(scaled(box.shape, 3), box.numPeriodic, 300, 5, 36);
        g.exclude(chainExclusions(30, 10));
        Sites sites(g, where());
        sites.search(g, 1.3);
        expectClose(sites.execute(g), sumOfSites(g), limit());
    }
}

TEST_P(SitesOn, MayExcludeNothing)
{
    Groups g = randomGroups(scaled(sitesBoxes()[0].shape, 3), 3, 100, 3, 37);
    Sites  sites(g, where());
    sites.search(g, 1.3);
    const SiteSums expected = sites.execute(g);
    for (const bool self : {false, true})
    {
        std::vector<std::vector<int>> rows(100);
        for (int i = 0; i < 100 && self; i++)
        {
            rows[static_cast<std::size_t>(i)] = {i};
        }
        g.exclude(rows);
        Sites others(g, where());
        others.search(g, 1.3);
        const SiteSums sums = others.execute(g);
        EXPECT_EQ(sums.force, expected.force);
        EXPECT_EQ(sums.energy, expected.energy);
    }
}

TEST_P(SitesOn, OfAtomsHaveTheSameBitsInEachRun)
{
    const Groups g = randomChains(scaled(sitesBoxes()[2].shape, 2), 3, 40, 6, 5, 38);
    Sites        sites(g, where()), others(g, where());
    sites.search(g, 0.85);
    others.search(strained(g, 0, 0, 1e-3), 0.9);
    others.search(g, 0.85);
    const SiteSums one = sites.execute(g);
    EXPECT_TRUE(std::isnan(gmxfmm_sites_constant(sites.get(), 0, 1)));
    for (Sites* again : {&sites, &others})
    {
        const SiteSums other = again->execute(g);
        EXPECT_EQ(one.force, other.force);
        EXPECT_EQ(one.energy, other.energy);
        EXPECT_EQ(one.virial, other.virial);
    }
}

#ifdef GMXFMM_TESTS_CUDA
/* Atoms, and sites of the same ones, on streams of their own; forces are added after both. */
TEST(SitesOnStreams, ComputeAtTheSameTime)
{
    char text[256];
    if (gmxfmm_check_device(GMXFMM_CUDA, 0, text, sizeof(text)) != GMXFMM_OK)
    {
        GTEST_SKIP() << text;
    }
    const Groups atoms = randomChains(scaled(sitesBoxes()[2].shape, 2), 3, 60, 6, 5, 40);
    Groups       other = atoms;
    other.outer        = {GMXFMM_LJ_FORCE_SWITCH, 0.7, 0.9};
    other.inner        = {GMXFMM_LJ_FORCE_SWITCH, 0.35, 0.5};
    other.exclusionStart.clear();
    Sites near(atoms, {GMXFMM_CUDA, GMXFMM_SINGLE}), far(other, {GMXFMM_CUDA, GMXFMM_SINGLE});
    near.search(atoms, 0.85);
    far.search(other, 0.95);
    const std::vector<float> x(atoms.x.begin(), atoms.x.end());
    const DeviceArray<float> there(x);
    std::vector<float>       forces[2];
    cudaStream_t             streams[2];
    for (int same = 0; same < 2; same++)
    {
        const DeviceArray<float> f(std::vector<float>(x.size(), 0.F));
        for (cudaStream_t& stream : streams)
        {
            ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
        }
        EXPECT_EQ(gmxfmm_sites_enqueue(near.get(), there.data(), nullptr, streams[0]), GMXFMM_OK);
        EXPECT_EQ(gmxfmm_sites_enqueue(far.get(), there.data(), nullptr, streams[1 - same]), GMXFMM_OK);
        EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
        EXPECT_EQ(gmxfmm_sites_enqueue_forces(near.get(), f.data(), streams[0]), GMXFMM_OK);
        EXPECT_EQ(gmxfmm_sites_enqueue_forces(far.get(), f.data(), streams[0]), GMXFMM_OK);
        EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
        forces[same] = f.get();
        for (cudaStream_t stream : streams)
        {
            EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
        }
    }
    EXPECT_EQ(forces[0], forces[1]);
    const std::vector<double> one = sumOfSites(atoms).force, two                = sumOfSites(other).force;
    std::vector<double>       all(forces[0].begin(), forces[0].end()), expected = one;
    for (std::size_t i = 0; i < two.size(); i++)
    {
        expected[i] += two[i];
    }
    EXPECT_LT(relativeRms(all, expected), c_near * tolerance(GMXFMM_SINGLE));
}
#endif

TEST_P(SitesOnCpu, OfAtomsAreTheSameOfAnyTargetsAndThreads)
{
    const Groups     g = randomChains(scaled(sitesBoxes()[2].shape, 2), 3, 60, 6, 5, 39);
    Sites            all(g, where()), sites(g, where(), 3);
    std::vector<int> mine[2];
    for (int i = 0; i < g.numGroups(); i++)
    {
        mine[i % 3 == 0].push_back(i);
    }
    all.search(g, 0.85);
    const SiteSums      expected = all.execute(g);
    double              energy   = 0;
    std::vector<double> force(g.x.size(), 0.);
    for (const std::vector<int>& some : mine)
    {
        const int num = static_cast<int>(some.size());
        ASSERT_EQ(gmxfmm_sites_set_targets(sites.get(), num, num, some.data()), GMXFMM_OK);
        sites.search(g, 0.85);
        const SiteSums part = sites.execute(g);
        energy += part.energy;
        for (std::size_t i = 0; i < force.size(); i++)
        {
            force[i] += part.force[i];
        }
    }
    EXPECT_EQ(force, expected.force);
    EXPECT_NEAR(energy, expected.energy, 1e-12 * std::fabs(expected.energy));
}

TEST_P(SitesOn, EndAtTheCutoff)
{
    for (const gmxfmm_lj_range& outer : outerRanges())
    {
        Groups g = pairAt(1.201);
        g.outer  = outer;
        Sites sites(g, where());
        sites.search(g, 1.3);
        EXPECT_EQ(sites.execute(g).energy, 0);
        EXPECT_EQ(rms(sites.execute(g).force), 0);
        EXPECT_EQ(sites.info().num_within, 0);
    }
}

TEST_P(SitesOn, MayBeFew)
{
    for (int num : {0, 1})
    {
        Groups g = randomGroups(scaled(sitesBoxes()[0].shape, 3), 3, num, 1, 15);
        g.x.resize(30);
        Sites sites(g, where());
        sites.search(g, 1.3);
        const SiteSums sums = sites.execute(g);
        EXPECT_EQ(sums.energy, 0);
        EXPECT_EQ(sums.virial, (std::array<double, 9>{}));
        EXPECT_EQ(rms(sums.force), 0);
        EXPECT_EQ(sites.info().num_within, 0);
    }
}

TEST_P(SitesOn, HaveTheSameBitsInEachRun)
{
    const Groups g = randomGroups(scaled(sitesBoxes()[2].shape, 4), 3, 500, 5, 16);
    Sites        sites(g, where()), others(g, where());
    sites.search(g, 1.3);
    others.search(strained(g, 0, 0, 1e-3), 1.4);
    others.search(g, 1.3);
    const SiteSums one = sites.execute(g);
    for (Sites* again : {&sites, &others})
    {
        const SiteSums other = again->execute(g);
        EXPECT_EQ(one.force, other.force);
        EXPECT_EQ(one.energy, other.energy);
        EXPECT_EQ(one.virial, other.virial);
    }
}

TEST_P(SitesOnCpu, HaveTheSameBitsOnAnyNumberOfThreads)
{
    const Groups g = randomGroups(scaled(sitesBoxes()[2].shape, 4), 3, 3000, 5, 17);
    Sites        alone(g, where());
    alone.search(g, 1.3);
    const SiteSums expected = alone.execute(g);
    for (int threads : {2, 5})
    {
        Sites sites(g, where(), threads);
        sites.search(g, 1.3);
        const SiteSums sums = sites.execute(g);
        EXPECT_EQ(sums.force, expected.force);
        EXPECT_EQ(sums.energy, expected.energy);
        EXPECT_EQ(sums.virial, expected.virial);
        EXPECT_EQ(sites.info().num_pairs, alone.info().num_pairs);
        EXPECT_EQ(sites.info().num_within, alone.info().num_within);
    }
}

/* Ranks that divide the groups in any way. */
TEST_P(SitesOnCpu, OfRanksAddUpToTheWhole)
{
    const Groups g = randomGroups(scaled(sitesBoxes()[2].shape, 4), 3, 1500, 5, 18);
    Sites        all(g, where());
    all.search(g, 1.3);
    const SiteSums      expected = all.execute(g);
    SiteSums            sum;
    std::vector<double> force(g.x.size(), 0.);
    std::int64_t        pairs = 0;
    Sites               sites(g, where());
    for (int rank = 0; rank < 3; rank++)
    {
        std::vector<int> mine;
        for (int i = g.numGroups() - 1; i >= 0; i--)
        {
            if ((g.x[3 *
                     static_cast<std::size_t>(g.atom[static_cast<std::size_t>(g.start[static_cast<std::size_t>(i)])])] <
                 2) == (rank == 0) &&
                (rank == 0 || i % 2 == rank - 1))
            {
                mine.push_back(i);
            }
        }
        ASSERT_EQ(gmxfmm_sites_set_targets(sites.get(), static_cast<int>(mine.size()), static_cast<int>(mine.size()),
                                           mine.data()),
                  GMXFMM_OK);
        sites.search(g, 1.3);
        const SiteSums part = sites.execute(g);
        sum.energy += part.energy;
        pairs += sites.info().num_within;
        for (std::size_t i = 0; i < 9; i++)
        {
            sum.virial[i] += part.virial[i];
        }
        for (std::size_t i = 0; i < force.size(); i++)
        {
            EXPECT_TRUE(force[i] == 0 || part.force[i] == 0); /* each atom from one rank */
            force[i] += part.force[i];
        }
    }
    EXPECT_EQ(force, expected.force);
    sum.force = force;
    expectClose(sum, expected, 1e-13);
    EXPECT_EQ(pairs, all.info().num_within);
    ASSERT_EQ(gmxfmm_sites_set_targets(sites.get(), 0, 0, nullptr), GMXFMM_OK);
    sites.search(g, 1.3);
    EXPECT_EQ(sites.execute(g).force, expected.force);
    const int none = 0;
    ASSERT_EQ(gmxfmm_sites_set_targets(sites.get(), 0, 0, &none), GMXFMM_OK);
    sites.search(g, 1.3);
    EXPECT_EQ(rms(sites.execute(g).force), 0);
}

/* A central difference with a step of 1e-5 has an error of 1e-10 f''; energies near 1 are rounded by 1e-16. */
TEST(SitesDerivatives, AreForces)
{
    for (const gmxfmm_lj_range& outer : outerRanges())
    {
        if (outer.modifier == GMXFMM_LJ_CUT || outer.modifier == GMXFMM_LJ_POTENTIAL_SHIFT)
        {
            continue; /* a force that ends where it is not zero has no difference there */
        }
        Groups g = randomGroups(scaled(sitesBoxes()[3].shape, 2.7), 3, 100, 5, 19);
        g.outer  = outer;
        Sites sites(g, {GMXFMM_CPU, GMXFMM_DOUBLE});
        sites.search(g, 1.3);
        const std::vector<double> force = sites.forces(g);
        const double              step = 1e-5, scale = rms(force);
        for (std::size_t i = 0; i < 60; i++)
        {
            Groups up = g, down = g;
            up.x[i] += step;
            down.x[i] -= step;
            EXPECT_NEAR((sites.execute(down).energy - sites.execute(up).energy) / (2 * step), force[i], 1e-7 * scale);
        }
    }
}

/* dE = 2 tr(Xi^T strain), where positions and the box are multiplied by 1 + strain. */
TEST(SitesDerivatives, AreVirials)
{
    for (const SitesBox& box : sitesBoxes())
    {
        SCOPED_TRACE(box.name);
        const Groups g = randomGroups(scaled(box.shape, 2.7), box.numPeriodic, 200, 5, 20);
        Sites        sites(g, {GMXFMM_CPU, GMXFMM_DOUBLE});
        sites.search(g, 1.3);
        const SiteSums sums = sites.execute(g);
        const double   step = 1e-6, scale = std::fabs(trace(sums.virial));
        for (int a = 0; a < 3; a++)
        {
            for (int b = 0; b <= a; b++) /* the box stays a lower triangle */
            {
                const double difference =
                    sites.execute(strained(g, a, b, step)).energy - sites.execute(strained(g, a, b, -step)).energy;
                const std::size_t ab = static_cast<std::size_t>(3 * a + b), ba = static_cast<std::size_t>(3 * b + a);
                EXPECT_NEAR(difference / (4 * step), sums.virial[ab], 1e-7 * scale) << a << b;
                EXPECT_EQ(sums.virial[ab], sums.virial[ba]);
            }
        }
    }
}

namespace
{

/* What is wrong, and a word of its message. */
struct Mistake
{
    std::function<void(gmxfmm_sites_system&, Groups&)> make;
    std::string                                        word;
    gmxfmm_status                                      status = GMXFMM_ERROR_OPTION;
};

/* What is none of an enumeration. */
template <class Enumeration>
void setTo(int number, Enumeration& e)
{
    static_assert(sizeof(e) == sizeof(number), "enumerations of a C interface");
    std::memcpy(&e, &number, sizeof(e));
}

const double c_nan = std::numeric_limits<double>::quiet_NaN();

} // namespace

TEST(SitesErrors, OfSystems)
{
    using S                        = gmxfmm_sites_system;
    const std::vector<Mistake> all = {
        {[](S& s, Groups&) { s.size = 8; }, "size is 8"},
        {[](S& s, Groups&) { setTo(7, s.precision); }, "precision is 7"},
        {[](S& s, Groups&) { s.num_threads = -1; }, "num_threads"},
        {[](S& s, Groups&) { s.num_periodic = 1; }, "num_periodic"},
        {[](S& s, Groups&) { s.num_atoms = -1; }, "num_atoms"},
        {[](S& s, Groups&) { s.num_groups = s.num_atoms + 1; }, "num_groups"},
        {[](S& s, Groups&) { s.num_groups = -1; }, "num_groups"},
        {[](S& s, Groups&) { s.num_types = 0; }, "num_types"},
        {[](S& s, Groups&) { s.start = nullptr; }, "start is NULL", GMXFMM_ERROR_NULL},
        {[](S& s, Groups&) { s.c12 = nullptr; }, "c12 is NULL", GMXFMM_ERROR_NULL},
        {[](S&, Groups& g) { g.start[0] = 1; }, "start[0] is 1"},
        {[](S&, Groups& g) { g.start[3] = g.start[2]; }, "start[3]"},
        {[](S&, Groups& g) { g.start.back() = 1000; }, "start[20] is 1000"},
        {[](S&, Groups& g) { g.atom[2] = -1; }, "atom[2] is -1"},
        {[](S& s, Groups& g) { g.atom[2] = s.num_atoms; }, "atom[2]"},
        {[](S&, Groups& g) { g.atom[4] = g.atom[1]; }, "second time"},
        {[](S&, Groups& g) { g.weight[1] = c_nan; }, "weight[1]"},
        {[](S&, Groups& g) { g.weight[1] += 2e-6; }, "sum to"},
        {[](S&, Groups& g) { g.type[5] = 3; }, "type[5] is 3"},
        {[](S&, Groups& g) { g.type[5] = -1; }, "type[5] is -1"},
        {[](S&, Groups& g) { g.c6[1] = c_nan; }, "c6 of types"},
        {[](S&, Groups& g) { g.c12[1] *= 1.1; }, "c12 of types"},
        {[](S& s, Groups&) { setTo(9, s.outer.modifier); }, "outer.modifier is 9"},
        {[](S& s, Groups&) { s.outer.cutoff = c_nan; }, "outer.cutoff"},
        {[](S& s, Groups&) { s.outer.start = 1.2; }, "outer.start"},
        {[](S& s, Groups&) { s.inner.start = 0; }, "inner.start"},
        {[](S& s, Groups&) { s.inner.cutoff = 1.3; }, "inner.cutoff"},
        {[](S& s, Groups&) { s.inner.modifier = GMXFMM_LJ_CUT; }, "inner.modifier"},
        {[](S& s, Groups&) { s.inner.cutoff = 0; }, "inner.cutoff is 0"},
        {[](S& s, Groups&)
         {
             s.precision    = GMXFMM_SINGLE;
             s.inner        = {};
             s.outer.start  = 0.1;
             s.outer.cutoff = 0.2;
         },
         "single precision"},
        {[](S& s, Groups&) { s.exclusion = nullptr; }, "exclusion is NULL", GMXFMM_ERROR_NULL},
        {[](S&, Groups& g) { g.exclusionStart[0] = 1; }, "exclusion_start[0] is 1"},
        {[](S&, Groups& g) { g.exclusionStart[3] = 2; }, "exclusion_start[3] is 2"},
        {[](S&, Groups& g) { g.exclusion[3] = 20; }, "exclusion[3] is 20"},
        {[](S&, Groups& g) { g.exclusion[3] = -1; }, "exclusion[3] is -1"},
        {[](S&, Groups& g) { g.exclusion[0] = 9; }, "group 1 excludes group 0"},
        {[](S&, Groups& g) { g.exclusion.back() = 3; }, "group 19 excludes group 3"},
        {[](S& s, Groups&)
         {
             s.precision   = GMXFMM_SINGLE;
             s.inner.start = 0.001;
         },
         "single precision"},
        {[](S& s, Groups&)
         {
             s.device    = GMXFMM_CUDA;
             s.precision = GMXFMM_DOUBLE;
         },
         "single precision", GMXFMM_ERROR_UNSUPPORTED},
        {[](S& s, Groups&)
         {
             s.device    = GMXFMM_CUDA;
             s.device_id = 1000;
             s.precision = GMXFMM_SINGLE;
         },
         "", gmxfmm_check_device(GMXFMM_CUDA, 1000, nullptr, 0)},
    };
    for (const Mistake& mistake : all)
    {
        SCOPED_TRACE(mistake.word);
        Groups g = randomGroups(scaled(sitesBoxes()[0].shape, 3), 3, 20, 3, 21);
        g.exclude(chainExclusions(4, 5));
        gmxfmm_sites_system system = g.system(GMXFMM_DOUBLE);
        mistake.make(system, g);
        char          text[256] = "";
        gmxfmm_sites* sites     = nullptr;
        EXPECT_EQ(gmxfmm_sites_create(&sites, &system, text, sizeof(text)), mistake.status) << text;
        EXPECT_EQ(sites, nullptr);
        EXPECT_NE(std::string(text).find(mistake.word), std::string::npos) << text;
        EXPECT_NE(std::string(text), "");
        EXPECT_EQ(gmxfmm_sites_create(&sites, &system, nullptr, 0), mistake.status);
    }
    gmxfmm_sites* sites = nullptr;
    EXPECT_EQ(gmxfmm_sites_create(&sites, nullptr, nullptr, 0), GMXFMM_ERROR_NULL);
}

namespace
{

class SitesCalls : public testing::Test
{
  protected:
    void expect(gmxfmm_status status, gmxfmm_status expected, const std::string& word)
    {
        EXPECT_EQ(status, expected) << gmxfmm_sites_message(sites_.get());
        EXPECT_NE(std::string(gmxfmm_sites_message(sites_.get())).find(word), std::string::npos)
            << gmxfmm_sites_message(sites_.get());
    }
    gmxfmm_status search(const Mat3& box, double reach)
    {
        return gmxfmm_sites_search(sites_.get(), box.data(), g_.x.data(), reach, nullptr);
    }
    gmxfmm_status execute(const double* box)
    {
        return gmxfmm_sites_execute(sites_.get(), box, g_.x.data(), f_.data(), nullptr, nullptr);
    }

    Groups              g_ = randomGroups(scaled(sitesBoxes()[0].shape, 3), 3, 20, 3, 22);
    std::vector<double> f_ = g_.x;
    Sites               sites_{g_, {GMXFMM_CPU, GMXFMM_DOUBLE}};
};

} // namespace

TEST_F(SitesCalls, InTheWrongOrder)
{
    expect(execute(g_.box.data()), GMXFMM_ERROR_ORDER, "search");
    expect(search(g_.box, 1.3), GMXFMM_OK, "");
    expect(execute(g_.box.data()), GMXFMM_OK, "");
    expect(gmxfmm_sites_set_targets(sites_.get(), 0, 0, nullptr), GMXFMM_OK, "");
    expect(execute(g_.box.data()), GMXFMM_ERROR_ORDER, "search");
}

TEST_F(SitesCalls, WithoutArrays)
{
    expect(gmxfmm_sites_search(sites_.get(), g_.box.data(), nullptr, 1.3, nullptr), GMXFMM_ERROR_NULL, "x is NULL");
    expect(gmxfmm_sites_search(sites_.get(), nullptr, g_.x.data(), 1.3, nullptr), GMXFMM_ERROR_NULL, "box is NULL");
    expect(search(g_.box, 1.3), GMXFMM_OK, "");
    expect(execute(nullptr), GMXFMM_ERROR_NULL, "box is NULL");
    expect(gmxfmm_sites_execute(sites_.get(), g_.box.data(), g_.x.data(), nullptr, nullptr, nullptr), GMXFMM_ERROR_NULL,
           "f is NULL");
    EXPECT_EQ(gmxfmm_sites_search(nullptr, nullptr, nullptr, 1, nullptr), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_sites_execute(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_sites_set_targets(nullptr, 0, 0, nullptr), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_sites_enqueue_box(nullptr, nullptr, nullptr), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_sites_enqueue(nullptr, nullptr, nullptr, nullptr), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_sites_enqueue_forces(nullptr, nullptr, nullptr), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_sites_get_info(sites_.get(), nullptr), GMXFMM_ERROR_NULL);
    EXPECT_STREQ(gmxfmm_sites_message(nullptr), "");
    gmxfmm_sites_info info = {};
    EXPECT_EQ(gmxfmm_sites_get_info(sites_.get(), &info), GMXFMM_ERROR_OPTION);
    gmxfmm_sites_destroy(nullptr);
}

TEST_F(SitesCalls, WithBadBoxes)
{
    const std::vector<std::pair<Mat3, std::string>> boxes = {
        {{3, 0, 0, 0, 3, 0, 0, 0, c_nan}, "box[8]"},      {{3, 0, 0, 0, -3, 0, 0, 0, 3}, "box[4]"},
        {{3, 0, 0, 0, 3, 1, 0, 0, 3}, "box[5]"},          {{3, 0, 0, 1.6, 3, 0, 0, 0, 3}, "box[3]"},
        {{3, 0, 0, 0, 3, 0, 0, 0, 2.5}, "too small"},     {{3, 0, 0, 1.4, 2.1, 0, 0, 0, 3}, "too small"},
        {{3, 0, 0, 0, 3, 0, 1.5, 1.5, 1.4}, "too small"},
    };
    for (const auto& [box, word] : boxes)
    {
        expect(search(box, 1.3), GMXFMM_ERROR_BOX, word);
    }
    expect(search(g_.box, 1.3), GMXFMM_OK, "");
    expect(execute(boxes[0].first.data()), GMXFMM_ERROR_BOX, "box[8]");
    expect(execute(scaled(g_.box, 0.7).data()), GMXFMM_ERROR_BOX, "too small");
    expect(execute(g_.box.data()), GMXFMM_OK, "");
}

TEST_F(SitesCalls, WithBadReach)
{
    for (double reach : {1.19, -1., c_nan, std::numeric_limits<double>::infinity()})
    {
        expect(search(g_.box, reach), GMXFMM_ERROR_OPTION, "reach");
    }
}

TEST_F(SitesCalls, WithSitesThatAreNotFinite)
{
    expect(search(g_.box, 1.3), GMXFMM_OK, "");
    const std::size_t atom = static_cast<std::size_t>(g_.atom[static_cast<std::size_t>(g_.start[3])]);
    g_.x[3 * atom + 1]     = c_nan;
    expect(execute(g_.box.data()), GMXFMM_ERROR_POSITION, "group 3");
    expect(search(g_.box, 1.3), GMXFMM_ERROR_POSITION, "group 3");
    g_.x[3 * atom + 1] = 1;
    expect(execute(g_.box.data()), GMXFMM_ERROR_ORDER, "search");
}

TEST_F(SitesCalls, WithBadTargets)
{
    const std::vector<int> far = {3, 20}, twice = {3, 4, 3}, many(21, 0);
    expect(gmxfmm_sites_set_targets(sites_.get(), 2, 2, far.data()), GMXFMM_ERROR_OPTION, "groups[1] is 20");
    expect(gmxfmm_sites_set_targets(sites_.get(), 3, 3, twice.data()), GMXFMM_ERROR_OPTION, "groups[2]");
    expect(gmxfmm_sites_set_targets(sites_.get(), 21, 21, many.data()), GMXFMM_ERROR_OPTION, "num is 21");
    expect(gmxfmm_sites_set_targets(sites_.get(), -1, -1, many.data()), GMXFMM_ERROR_OPTION, "num is -1");
}

TEST_F(SitesCalls, ForAGpu)
{
    expect(search(g_.box, 1.3), GMXFMM_OK, "");
    expect(gmxfmm_sites_enqueue_box(sites_.get(), g_.box.data(), nullptr), GMXFMM_ERROR_UNSUPPORTED, "CPU");
    expect(gmxfmm_sites_enqueue(sites_.get(), g_.x.data(), nullptr, nullptr), GMXFMM_ERROR_UNSUPPORTED, "CPU");
    expect(gmxfmm_sites_enqueue_forces(sites_.get(), f_.data(), nullptr), GMXFMM_ERROR_UNSUPPORTED, "CPU");
    EXPECT_TRUE(std::isnan(gmxfmm_sites_constant(sites_.get(), 0, 3)));
    EXPECT_TRUE(std::isnan(gmxfmm_sites_constant(nullptr, 0, 0)));
}

INSTANTIATE_TEST_SUITE_P(Devices,
                         SitesOn,
                         testing::Values(Where{GMXFMM_CPU, GMXFMM_DOUBLE},
                                         Where{GMXFMM_CPU, GMXFMM_SINGLE},
                                         Where{GMXFMM_CUDA, GMXFMM_SINGLE}),
                         testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Precisions,
                         SitesOnCpu,
                         testing::Values(Where{GMXFMM_CPU, GMXFMM_DOUBLE}, Where{GMXFMM_CPU, GMXFMM_SINGLE}),
                         testing::PrintToStringParamName());
