/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Errors that the library measures on a system itself, against independent sums: in liquids, which its model of errors
 * was fitted to, and in crystals, melts, droplets and clusters, where that may be wrong by a hundred times. */
#include <algorithm>
#include <array>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "gmxfmm_measure.h"
#include "support/direct.h"
#include "support/ewald.h"
#include "support/measured.h"
#include "support/norms.h"
#include "support/partly_periodic.h"
#include "support/plan.h"
#include "support/suites.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

/* Nearest neighbours at distance 1. Cells of crystals are often commensurate with the lattice, and so are errors. */
System moved(System s, double by)
{
    Random random(11);
    for (double& x : s.x)
    {
        x += by * random.centred();
    }
    return s;
}

const Vec3 nowhere = {0.123, 0.456, -0.789};

/* Ca at the corners of a face-centred cubic lattice, F in its tetrahedral holes. */
System fluorite(int cells)
{
    System       s;
    const double a = 4 / std::sqrt(3.0);
    s.box          = {a * cells, 0, 0, 0, a * cells, 0, 0, 0, a * cells};
    for (int c = 0; c < cells * cells * cells; c++)
    {
        const Vec3 at = {a * (c % cells), a * (c / cells % cells), a * (c / cells / cells)};
        for (const Vec3& r : {Vec3{0, 0, 0}, Vec3{0, .5, .5}, Vec3{.5, 0, .5}, Vec3{.5, .5, 0}})
        {
            s.add({at[0] + a * r[0], at[1] + a * r[1], at[2] + a * r[2]}, 2);
        }
        for (int i = 0; i < 8; i++)
        {
            s.add(
                {at[0] + a * (i % 2 ? .75 : .25), at[1] + a * (i / 2 % 2 ? .75 : .25), at[2] + a * (i / 4 ? .75 : .25)},
                -1);
        }
    }
    return s;
}

/* A B O3 with charges 2, 4, -2. */
System perovskite(int cells)
{
    System s;
    s.box = {2.0 * cells, 0, 0, 0, 2.0 * cells, 0, 0, 0, 2.0 * cells};
    for (int c = 0; c < cells * cells * cells; c++)
    {
        const double x = 2 * (c % cells), y = 2 * (c / cells % cells), z = 2 * (c / cells / cells);
        s.add({x + 1, y + 1, z + 1}, 2);
        s.add({x, y, z}, 4);
        s.add({x + 1, y, z}, -2);
        s.add({x, y + 1, z}, -2);
        s.add({x, y, z + 1}, -2);
    }
    return s;
}

/* Copies of a cell with these vectors as rows: a box of the same shape, skewed where the cell is. */
System
copies(const Mat3& cell, const std::array<int, 3>& num, const std::vector<Vec3>& at, const std::vector<double>& q)
{
    System s;
    for (std::size_t i = 0; i < 9; i++)
    {
        s.box[i] = cell[i] * num[i / 3];
    }
    for (int c = 0; c < num[0] * num[1] * num[2]; c++)
    {
        const double k[3] = {double(c % num[0]), double(c / num[0] % num[1]), double(c / num[0] / num[1])};
        for (std::size_t i = 0; i < q.size(); i++)
        {
            Vec3 r = at[i];
            for (std::size_t d = 0; d < 3; d++)
            {
                r[d] += k[0] * cell[d] + k[1] * cell[3 + d] + k[2] * cell[6 + d];
            }
            s.add(r, q[i]);
        }
    }
    return s;
}

/* Layers A X2 as in brucite: cations in a triangular lattice between two of anions, and gaps; a hexagonal box. */
System layers()
{
    const double a = 1.4247, h = a * std::sqrt(3.0) / 2;
    return copies({a, 0, 0, -a / 2, h, 0, 0, 0, 2.2}, {8, 8, 5},
                  {{0, 0, 0}, {0, 2 * h / 3, 0.57}, {a / 2, h / 3, -0.57}}, {2, -1, -1});
}

/* Rock salt in the rhombohedral cell of one pair. */
System primitiveRockSalt()
{
    return copies({0, 1, 1, 1, 0, 1, 1, 1, 0}, {7, 7, 7}, {{0, 0, 0}, {1, 0, 0}}, {1, -1});
}

/* Ice Ih, SPC/E charges: oxygens as in lonsdaleite; each of the four bonds of an oxygen has one proton, and each oxygen
 * two near it: bonds point along walks through the crystal that use each once. A hexagonal box. */
System ice()
{
    const double a = 0.4497, h = a * std::sqrt(3.0) / 2, c = a * std::sqrt(8.0 / 3), z = c / 16;
    const System oxygens =
        copies({a, 0, 0, -a / 2, h, 0, 0, 0, c}, {6, 6, 3},
               {{0, 2 * h / 3, z}, {a / 2, h / 3, -z}, {a / 2, h / 3, c / 2 + z}, {0, 2 * h / 3, c / 2 - z}},
               {-0.8476, -0.8476, -0.8476, -0.8476});
    const std::size_t n = oxygens.size();
    const Lattice     lattice(oxygens.box);
    const auto        nearest = [&](std::size_t i, std::size_t j)
    {
        const Vec3 from = oxygens.position(i), to = oxygens.position(j);
        return lattice.nearest({to[0] - from[0], to[1] - from[1], to[2] - from[2]});
    };
    std::vector<std::vector<std::size_t>> bonds(n);
    for (std::size_t i = 0; i < n; i++)
    {
        for (std::size_t j = 0; j < n; j++)
        {
            const Vec3 r = nearest(i, j);
            if (i != j && r[0] * r[0] + r[1] * r[1] + r[2] * r[2] < 0.09)
            {
                bonds[i].push_back(j);
            }
        }
    }
    System s;
    s.box = oxygens.box;
    std::vector<std::vector<Vec3>> protons(n);
    for (std::size_t start = 0; start < n; start++)
    {
        for (std::size_t i = start; !bonds[i].empty();)
        {
            const std::size_t j      = bonds[i].back();
            const Vec3        r      = nearest(i, j);
            const double      length = std::sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
            protons[i].push_back({0.1 * r[0] / length, 0.1 * r[1] / length, 0.1 * r[2] / length});
            bonds[i].pop_back();
            bonds[j].erase(std::find(bonds[j].begin(), bonds[j].end(), i));
            i = j;
        }
    }
    for (std::size_t i = 0; i < n; i++)
    {
        const Vec3        o     = oxygens.position(i);
        const std::size_t first = s.size();
        s.add(o, oxygens.q[i]);
        for (const Vec3& r : protons[i])
        {
            s.add({o[0] + r[0], o[1] + r[1], o[2] + r[2]}, 0.4238);
        }
        s.exclude(first, first + 1);
        s.exclude(first, first + 2);
        s.exclude(first + 1, first + 2);
    }
    return s;
}

/* Sheets of alternating charges, an empty half of the box above them. */
System surface()
{
    System s = sodiumChloride(3, nowhere);
    s.box[8] *= 2;
    return s;
}

System small(int n)
{
    return ions({7, 0, 0, 0, 7, 0, 0, 0, 7}, n, 5);
}

/* Charges next to the corners of the leaves of a needle of 16 x 1 x 1, where expansions converge slowest. */
System needle()
{
    System s;
    Random random(7);
    s.box = {16, 0, 0, 0, 1, 0, 0, 0, 1};
    for (int i = 0; i < 40; i++)
    {
        const double corner[3] = {std::floor(32 * random.uniform()) / 2, std::floor(2 * random.uniform()) / 2,
                                  std::floor(2 * random.uniform()) / 2};
        s.add({corner[0] + 0.02 * random.centred(), corner[1] + 0.02 * random.centred(),
               corner[2] + 0.02 * random.centred()},
              i % 2 ? 1 : -1);
    }
    return s;
}

/* Charges next to the corners of cells of any grid of 2, 4 or 8. */
System corners()
{
    System s;
    Random random(17);
    s.box = {8, 0, 0, 0, 8, 0, 0, 0, 8};
    for (int i = 0; i < 30; i++)
    {
        const double x = std::floor(8 * random.uniform()), y = std::floor(8 * random.uniform()),
                     z = std::floor(8 * random.uniform());
        s.add({x + 0.02 * random.centred(), y + 0.02 * random.centred(), z + 0.02 * random.centred()}, i % 2 ? 1 : -1);
    }
    return s;
}

/* Charges +1 below -1, with as many again of +1 anywhere: a net charge and the largest dipole that a box may have. */
System chargedWithDipole()
{
    System s = ions({9, 0, 0, 0, 8, 0, 0, 0, 10}, 900, 8);
    for (std::size_t i = 0; i < s.size(); i++)
    {
        s.q[i] = i % 3 == 0 || s.x[3 * i + 2] < 5 ? 1 : -1;
    }
    return s;
}

/* Two droplets, so far from each other that single precision does not hold a position in both. */
System clusters()
{
    System s = droplet(300, 4, 4);
    s.add(droplet(300, 4, 9), {1e6, -3e5, 7e5});
    return s;
}

/* A fibre of length 1000 and radius 1. */
System fibre()
{
    System s;
    Random random(21);
    for (int i = 0; i < 1500; i++)
    {
        const double z = (i + 0.3 * random.centred()) * 1000 / 1500, turn = 2.4 * i;
        s.add({std::cos(turn), std::sin(turn), z}, random.uniform() < 0.5 ? 1 : -1);
    }
    return s;
}

/* Liquid water, or what the tests have of it, in the box of a truncated octahedron. */
System octahedron()
{
    for (const BoxType& type : boxTypes())
    {
        if (type.name.find("ctahedron") != std::string::npos)
        {
            return water(boxOfVolume(type, 14), 5);
        }
    }
    throw std::runtime_error("no truncated octahedron among the boxes");
}

/* Far apart in a large box, which is the octree's case. */
System drops()
{
    System s;
    s.box = {90, 0, 0, 0, 100, 0, 0, 0, 110};
    for (int k = 0; k < 3; k++)
    {
        s.add(droplet(400, 5, static_cast<std::uint64_t>(k) + 1), {20.0 + 21 * k, 70.0 - 23 * k, 30.0 * k});
    }
    return s;
}

struct Case
{
    const char*             name;
    std::function<System()> make;
    Boundary                boundary;
    gmxfmm_m2l              m2l      = GMXFMM_M2L_AUTO;
    int                     truncate = 0; /* m2l_truncate */
};

const std::vector<Case>& cases()
{
    static const std::vector<Case> all = {
        {"Water",
         [] {
             return water({2.2, 0, 0, 0, 2.4, 0, 0, 0, 2.6}, 5);
         },
         Boundary::Tinfoil},
        {"Ions",
         [] {
             return ions({9, 0, 0, 0, 9, 0, 0, 0, 9}, 800, 3);
         },
         Boundary::Tinfoil},
        {"RockSalt", [] { return moved(sodiumChloride(5), 0.05); }, Boundary::Tinfoil},
        {"SmallRockSalt", [] { return moved(sodiumChloride(2), 0.05); }, Boundary::Tinfoil},
        {"StillRockSalt", [] { return moved(sodiumChloride(4, nowhere), 1e-4); }, Boundary::Tinfoil},
        {"CaesiumChloride", [] { return moved(caesiumChloride(7), 0.05); }, Boundary::Tinfoil},
        {"Zincblende", [] { return moved(zincblende(4), 0.05); }, Boundary::Tinfoil},
        {"Fluorite", [] { return moved(fluorite(4), 0.05); }, Boundary::Tinfoil},
        {"Perovskite", [] { return moved(perovskite(6), 0.05); }, Boundary::Tinfoil},
        {"Layers", [] { return moved(layers(), 0.05); }, Boundary::Tinfoil},
        {"PrimitiveRockSalt", [] { return moved(primitiveRockSalt(), 0.05); }, Boundary::Tinfoil},
        {"Ice", [] { return moved(ice(), 0.01); }, Boundary::Tinfoil},
        {"Surface", [] { return moved(surface(), 0.05); }, Boundary::Tinfoil},
        {"FewIons", [] { return small(12); }, Boundary::Tinfoil},
        {"Corners", corners, Boundary::Tinfoil},
        {"ChargedWithDipole", chargedWithDipole, Boundary::Tinfoil},
        {"ChargedWithDipoleInVacuum", chargedWithDipole, Boundary::Vacuum},
        {"WaterInAnOctahedron", octahedron, Boundary::Tinfoil},
        {"Clusters", clusters, Boundary::Open},
        {"Fibre", fibre, Boundary::Open},
        {"Droplet", [] { return droplet(700, 6, 4); }, Boundary::Open},
        {"Drops", drops, Boundary::Tinfoil},
        {"DropsByRotation", drops, Boundary::Tinfoil, GMXFMM_M2L_ROTATION},
        {"IonsByRotation",
         [] {
             return ions({9, 0, 0, 0, 9, 0, 0, 0, 9}, 800, 3);
         },
         Boundary::Tinfoil, GMXFMM_M2L_ROTATION},
        {"NeedleByRotation", needle, Boundary::Tinfoil, GMXFMM_M2L_ROTATION},
        /* the model knows nothing of translations cut short */
        {"IonsTruncated",
         [] {
             return ions({9, 0, 0, 0, 9, 0, 0, 0, 9}, 800, 3);
         },
         Boundary::Tinfoil, GMXFMM_M2L_ROTATION, 2},
    };
    return all;
}

/* On the CPU wherever other suites run: double precision beyond order 20 is offered there alone. */
gmxfmm_options optionsFor(const Case& c, double asked, gmxfmm_precision precision = GMXFMM_DOUBLE)
{
    gmxfmm_options options = withBoundary(askedOptions(asked, precision), c.boundary);
    options.device         = GMXFMM_CPU;
    options.m2l            = c.m2l;
    options.m2l_truncate   = c.truncate;
    return options;
}

class Reference
{
  public:
    Reference(const System& s, const Case& c, const gmxfmm_options& options, const System* before = nullptr)
        : view_(s, c.boundary)
    {
        char          message[512] = "";
        gmxfmm_system system       = view_.get();
        system.x_before            = before != nullptr ? before->x.data() : nullptr;
        if (gmxfmm_reference_create(&reference_, &options, &system, message, sizeof(message)) != GMXFMM_OK)
        {
            throw std::runtime_error(message);
        }
    }
    ~Reference()
    {
        gmxfmm_reference_destroy(reference_);
    }
    Reference(const Reference&)            = delete;
    Reference& operator=(const Reference&) = delete;

    const gmxfmm_reference* get() const
    {
        return reference_;
    }
    double uncertainty() const
    {
        return gmxfmm_reference_uncertainty(reference_);
    }

  private:
    SystemView        view_;
    gmxfmm_reference* reference_ = nullptr;
};

const double any = std::numeric_limits<double>::infinity();

/* What gmxfmm_choose gives, and what it has tried. */
struct Choice
{
    Choice(const Reference& reference, gmxfmm_options* options, double errorMoved = any, double virialError = any)
    {
        char text[512] = "";
        tried.fill(sized<gmxfmm_measurement>());
        status  = gmxfmm_choose(reference.get(), options, errorMoved, virialError, &chosen, tried.data(), &num, text,
                                sizeof(text));
        message = text;
    }
    gmxfmm_status                      status;
    std::string                        message;
    gmxfmm_measurement                 chosen = sized<gmxfmm_measurement>();
    std::array<gmxfmm_measurement, 32> tried;
    int                                num = 32;
};

class MeasuredChoice : public testing::TestWithParam<Case>
{
  protected:
    void SetUp() override
    {
        system_ = GetParam().make();
        sum_    = GetParam().boundary == Boundary::Open ? directSum(system_) : ewald(system_, GetParam().boundary);
    }
    double trueError(const gmxfmm_options& options) const
    {
        return relativeRms(solve(system_, options).force, sum_.force);
    }
    System   system_;
    Solution sum_;
};

/* Of the independent sums in double precision: 2e-15 is seen where all pairs of clusters are near ones. */
const double roundingOfSums = 1e-14;

/* With the cells of a choice one order less misses what was asked: less the margin of a tenth at the places given, or
 * where cells are elsewhere. */
void expectNoLowerOrder(const gmxfmm_reference*   reference,
                        gmxfmm_options            options,
                        double                    asked,
                        const gmxfmm_measurement& chosen)
{
    gmxfmm_measurement lower = sized<gmxfmm_measurement>();
    if (options.boundary == GMXFMM_OPEN || chosen.order <= 1)
    {
        return;
    }
    options.order      = chosen.order - 1;
    options.m2l        = chosen.m2l;
    options.separation = chosen.separation;
    options.depth      = chosen.depth;
    std::copy(chosen.grid, chosen.grid + 3, options.grid);
    ASSERT_EQ(gmxfmm_measure(reference, &options, 0, &lower, nullptr, 0), GMXFMM_OK);
    EXPECT_GT(std::max({lower.error / 0.9, lower.error_limited / 0.9, lower.error_anywhere}), asked);
}

bool sameSettings(const gmxfmm_measurement& a, const gmxfmm_measurement& b)
{
    return a.m2l == b.m2l && a.order == b.order && a.separation == b.separation && a.depth == b.depth &&
           std::equal(a.grid, a.grid + 3, b.grid);
}

/* The options are those of what was chosen; of an open system, whose cells follow the particles, only m2l and ws at
 * most.
 */
void expectChosen(const gmxfmm_options& options, const gmxfmm_measurement& chosen)
{
    EXPECT_TRUE(options.m2l == chosen.m2l || (options.boundary == GMXFMM_OPEN && options.m2l == GMXFMM_M2L_AUTO));
    EXPECT_TRUE(options.separation == chosen.separation ||
                (options.boundary == GMXFMM_OPEN && options.separation == GMXFMM_AUTO));
    if (options.boundary != GMXFMM_OPEN)
    {
        EXPECT_EQ(options.order, chosen.order);
        EXPECT_TRUE(std::equal(chosen.grid, chosen.grid + 3, options.grid));
    }
}

void expectNoneTwice(const gmxfmm_measurement* tried, int num)
{
    for (int i = 0; i < num; i++)
    {
        EXPECT_GT(tried[i].time, 0);
        for (int j = 0; j < i; j++)
        {
            EXPECT_FALSE(sameSettings(tried[i], tried[j])) << i << " and " << j;
        }
    }
}

const double accuracies[] = {1e-2, 1e-3, 4e-4, 1e-5, 1e-6, 1e-8};

} // namespace

/* Whatever is asked for and whether it is reached or not. */
TEST_P(MeasuredChoice, MeasuredErrorsAreTrue)
{
    for (double asked : accuracies)
    {
        SCOPED_TRACE(asked);
        const gmxfmm_options options = optionsFor(GetParam(), asked);
        const Reference      reference(system_, GetParam(), options);
        EXPECT_LE(reference.uncertainty(), 0.1 * asked);
        gmxfmm_measurement m = sized<gmxfmm_measurement>();
        ASSERT_EQ(gmxfmm_measure(reference.get(), &options, 0, &m, nullptr, 0), GMXFMM_OK);
        /* 30 % are asked for, 5 % is the worst seen; settings that reach far more than was asked are known to be below
         * the uncertainty and no better */
        const double truth = trueError(options);
        EXPECT_NEAR(m.error, truth, std::max(0.1 * truth, reference.uncertainty()) + roundingOfSums);
    }
}

TEST_P(MeasuredChoice, ChosenSettingsReachWhatIsAsked)
{
    for (double asked : accuracies)
    {
        SCOPED_TRACE(asked);
        gmxfmm_options  options = optionsFor(GetParam(), asked);
        const Reference reference(system_, GetParam(), options);
        const Choice    choice(reference, &options);
        ASSERT_EQ(choice.status, GMXFMM_OK) << choice.message;
        EXPECT_LE(trueError(options), asked);
        EXPECT_LE(std::max(choice.chosen.error, choice.chosen.error_limited), asked);
        EXPECT_LT(choice.num, 20); /* each is a plan */
        expectChosen(options, choice.chosen);
        expectNoneTwice(choice.tried.data(), choice.num);
        expectNoLowerOrder(reference.get(), options, asked, choice.chosen);
        /* the choice is one of those tried */
        EXPECT_TRUE(std::any_of(choice.tried.begin(), choice.tried.begin() + choice.num,
                                [&](const gmxfmm_measurement& m)
                                { return sameSettings(m, choice.chosen) && m.error == choice.chosen.error; }));
    }
}

TEST_P(MeasuredChoice, ChosenSettingsReachWhatIsAskedInSinglePrecision)
{
    for (double asked : {1e-2, 4e-4, 1e-5, 2e-6})
    {
        SCOPED_TRACE(asked);
        gmxfmm_options     options = optionsFor(GetParam(), asked, GMXFMM_SINGLE);
        const Choice       choice(Reference(system_, GetParam(), options), &options);
        const std::string& message = choice.message;
        if (choice.status == GMXFMM_OK)
        {
            EXPECT_LE(trueError(options), asked);
        }
        else
        {
            /* Forces that are 1e-3 of those between neighbours: rounding is 1e-3 of them; and positions that single
             * precision does not hold. In other crystals forces are some hundredth of the sum of those between ions, by
             * absolute values, and rounding 3e-6 to 4e-6 of them. */
            const std::string name = GetParam().name;
            EXPECT_TRUE(name == "StillRockSalt" || name == "Clusters" || (asked < 5e-6 && choice.chosen.error < 5e-6))
                << name << message;
            EXPECT_NE(message.find("use double precision"), std::string::npos) << message;
            EXPECT_EQ(choice.status, GMXFMM_ERROR_OPTION);
            EXPECT_NE(message.find("out of reach"), std::string::npos) << message;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Systems, MeasuredChoice, testing::ValuesIn(cases()), parameterName<Case>);

/* In water the choice is not much better than what was asked, as the model's is. */
TEST(MeasuredChoiceInWater, TheChoiceIsNotOverpaid)
{
    const Case     c       = {"", nullptr, Boundary::Tinfoil};
    const System   s       = water({3, 0, 0, 0, 3.1, 0, 0, 0, 3.2}, 5);
    gmxfmm_options options = optionsFor(c, 4e-4);
    const Result   model   = solve(s, options);
    const Choice   choice(Reference(s, c, options), &options);
    ASSERT_EQ(choice.status, GMXFMM_OK) << choice.message;
    EXPECT_GT(choice.chosen.error, 1.5e-4);
    EXPECT_LT(choice.chosen.order, model.info.order);
}

/* A small open system may have no far field to measure at the start; the order is then not the least that is enough,
 * but one for when the system has spread. */
TEST(MeasuredChoiceInAnOpenSystem, OrdersAreKeptForWhenItSpreads)
{
    const Case     c       = {"", nullptr, Boundary::Open};
    const System   s       = droplet(60, 2, 4);
    gmxfmm_options options = optionsFor(c, 4e-4);
    const Choice   choice(Reference(s, c, options), &options);
    ASSERT_EQ(choice.status, GMXFMM_OK) << choice.message;
    ASSERT_LT(choice.chosen.error, 1e-10); /* no far field */
    /* four times what was asked is where the search begins */
    EXPECT_LE(choice.chosen.predicted_error, 4 * 4e-4);
    EXPECT_EQ(solve(s, options).info.order, choice.chosen.order);
}

/* A film by cells of one level, two films far apart by an octree; each reaches what was asked. */
TEST(MeasuredChoiceInASlab, TakesCellsOrAnOctree)
{
    for (const double apart : {0.0, 90.0})
    {
        SCOPED_TRACE(apart);
        System s = apart > 0 ? ions({8, 0, 0, 0, 8, 0, 0, 0, 2}, 3000, 4) : ions({4, 0, 0, 0, 4, 0, 0, 0, 2}, 200, 4);
        for (std::size_t i = 0; i < s.size(); i++)
        {
            s.x[3 * i + 2] += s.x[3 * i + 2] > 1 ? apart : 0;
        }
        gmxfmm_options options = askedOptions(1e-4);
        options.periodic[0] = options.periodic[1] = 1;
        options.reproducible = 1; /* by costs, as times of a step so short differ from run to run */
        gmxfmm_options fine  = options;
        fine.accuracy        = 1e-7;
        const Made made(s, options);
        ASSERT_EQ(made.status, GMXFMM_OK) << made.message;
        const Result r = made.plan->execute(s.x);
        EXPECT_LE(relativeRms(r.force, apart > 0 ? solve(s, fine).force : slabSum(s).force), 1e-4);
        if (options.device == GMXFMM_CPU)
        {
            EXPECT_EQ(r.info.m2l, apart > 0 ? GMXFMM_M2L_ROTATION : GMXFMM_M2L_FFT);
        }
    }
}

/* Other cells and another ws are measured beside those of the model, and compared: by times, unless the same input has
 * to give the same choice, which is then made by the costs of the model. */
TEST(MeasuredChoiceInWater, CellsAreCompared)
{
    const Case   c          = {"", nullptr, Boundary::Tinfoil};
    const System s          = water({3, 0, 0, 0, 3.1, 0, 0, 0, 3.2}, 5);
    bool         otherCells = false; /* than those of the choice */
    for (double asked : {4e-4, 1e-6})
    {
        const Reference reference(s, c, optionsFor(c, asked));
        for (int reproducible : {0, 1})
        {
            SCOPED_TRACE(testing::Message() << asked << ", reproducible " << reproducible);
            gmxfmm_options options = optionsFor(c, asked);
            options.reproducible   = reproducible;
            const Choice              first(reference, &options);
            const gmxfmm_measurement& chosen = first.chosen;
            ASSERT_EQ(first.status, GMXFMM_OK) << first.message;
            for (int i = 0; i < first.num; i++)
            {
                const gmxfmm_measurement& m = first.tried[static_cast<std::size_t>(i)];
                otherCells =
                    otherCells || !std::equal(m.grid, m.grid + 3, chosen.grid) || m.separation != chosen.separation;
            }
            EXPECT_LE(chosen.error, 0.9 * asked);
            gmxfmm_options anew = optionsFor(c, asked);
            anew.reproducible   = reproducible;
            const Choice again(reference, &anew);
            ASSERT_EQ(again.status, GMXFMM_OK) << again.message;
            if (reproducible) /* otherwise a clock decides how much there is time for */
            {
                EXPECT_EQ(first.num, again.num);
                EXPECT_EQ(options.order, anew.order);
                EXPECT_EQ(options.separation, anew.separation);
                EXPECT_TRUE(std::equal(options.grid, options.grid + 3, anew.grid));
                EXPECT_EQ(chosen.error, again.chosen.error);
            }
        }
    }
    EXPECT_TRUE(otherCells);
}

/* Particles that have left their cells, by up to 0.05 of an edge of 0.6 or so. */
TEST(MeasuredChoiceInWater, AssignmentsOfLateAreMeasuredToo)
{
    const Case                c       = {"", nullptr, Boundary::Tinfoil};
    const System              s       = water({3, 0, 0, 0, 3.1, 0, 0, 0, 3.2}, 5);
    const System              before  = moved(s, 0.1);
    gmxfmm_options            options = optionsFor(c, 4e-4);
    const Choice              choice(Reference(s, c, options, &before), &options, 4e-4);
    const gmxfmm_measurement& chosen = choice.chosen;
    ASSERT_EQ(choice.status, GMXFMM_OK) << choice.message;

    options.check      = GMXFMM_CHECK_REPORT; /* that they move so far was measured, which this plan does not know */
    const Solution sum = ewald(s);
    Plan           plan(s, options);
    EXPECT_NEAR(chosen.error, relativeRms(plan.execute(s.x).force, sum.force), 0.1 * chosen.error);
    plan.assign(before.x);
    const double truth = relativeRms(plan.execute(s.x).force, sum.force);
    EXPECT_NEAR(chosen.error_moved, truth, 0.1 * truth);
    EXPECT_GT(truth, 1.1 * chosen.error);
    EXPECT_LE(truth, 4e-4);
}

/* In few cells forces are good enough before pressures are. */
TEST(MeasuredChoiceInWater, TheVirialIsLimitedToo)
{
    const Case      c       = {"", nullptr, Boundary::Tinfoil};
    const System    s       = water({3, 0, 0, 0, 3.1, 0, 0, 0, 3.2}, 5);
    gmxfmm_options  options = optionsFor(c, 4e-4);
    const Reference reference(s, c, options);
    const Choice    forces(reference, &options);
    ASSERT_EQ(forces.status, GMXFMM_OK) << forces.message;
    const Mat3   exact = ewald(s).virial;
    const double truth = maxDifference(solve(s, options).virial, exact);
    EXPECT_NEAR(forces.chosen.virial_error, truth, 0.1 * truth);

    const double limit = 0.3 * truth;
    options            = optionsFor(c, 4e-4);
    const Choice both(reference, &options, any, limit);
    ASSERT_EQ(both.status, GMXFMM_OK) << both.message;
    EXPECT_LE(both.chosen.virial_error, limit);
    EXPECT_LE(maxDifference(solve(s, options).virial, exact), limit);
    EXPECT_LT(both.chosen.error, forces.chosen.error);
}

/* The number that a message has after this text. */
double numberAfter(const std::string& message, const std::string& text)
{
    const auto at = message.find(text);
    EXPECT_NE(at, std::string::npos) << message;
    return at == std::string::npos ? 0 : std::stod(message.substr(at + text.size()));
}

/* Errors are larger where particles have left their cells, and those of the virial are not in units of forces. What is
 * said to be the best can be asked for. */
TEST(MeasuredChoiceInWater, WhatIsOutOfReachIsWhatIsSaid)
{
    const Case      c      = {"", nullptr, Boundary::Tinfoil};
    const System    s      = water({2, 0, 0, 0, 2.1, 0, 0, 0, 2.2}, 5);
    const System    before = moved(s, 0.1);
    const Reference reference(s, c, optionsFor(c, 1e-5), &before);
    std::string     message;
    const auto      choose = [&](double accuracy, double errorMoved, double virialError)
    {
        gmxfmm_options options = optionsFor(c, accuracy);
        options.order          = 4;
        const Choice choice(reference, &options, errorMoved, virialError);
        message = choice.message;
        return choice.status;
    };
    const std::string best = "out of reach: the best that was measured is ";
    ASSERT_EQ(choose(1e-5, any, any), GMXFMM_ERROR_OPTION);
    const double here = numberAfter(message, best);
    EXPECT_EQ(std::string(message).find("moved"), std::string::npos) << message;
    ASSERT_EQ(choose(1e-5, 1e-5, any), GMXFMM_ERROR_OPTION);
    const double whereMoved = numberAfter(message, best);
    EXPECT_NE(std::string(message).find(", where particles have moved, with a margin"), std::string::npos) << message;
    EXPECT_GT(whereMoved, here);
    EXPECT_EQ(choose(here, here, any), GMXFMM_ERROR_OPTION);
    EXPECT_EQ(choose(here, any, any), GMXFMM_OK) << message;
    EXPECT_EQ(choose(whereMoved, whereMoved, any), GMXFMM_OK) << message;
    ASSERT_EQ(choose(1e-2, 1e-5, any), GMXFMM_ERROR_OPTION);
    EXPECT_EQ(std::string(message).rfind("accuracy 1e-05 is out of reach", 0), 0U) << message;
    EXPECT_EQ(choose(1e-2, numberAfter(message, best), any), GMXFMM_OK) << message;

    ASSERT_EQ(choose(1e-2, any, 1e-6), GMXFMM_ERROR_OPTION);
    EXPECT_EQ(std::string(message).rfind("an error of 1e-06 in the virial is out of reach", 0), 0U) << message;
    EXPECT_EQ(choose(1e-2, any, numberAfter(message, best)), GMXFMM_OK) << message;
}

TEST(Measure, SaysWhatIsWrong)
{
    const Case         c       = cases()[1];
    const System       s       = c.make();
    gmxfmm_options     options = optionsFor(c, 1e-3);
    gmxfmm_reference*  none    = nullptr;
    gmxfmm_measurement m       = sized<gmxfmm_measurement>();
    char               message[512];
    EXPECT_EQ(gmxfmm_reference_create(&none, &options, nullptr, message, sizeof(message)), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_measure(nullptr, &options, 0, &m, message, sizeof(message)), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_choose(nullptr, &options, any, any, &m, nullptr, nullptr, message, sizeof(message)),
              GMXFMM_ERROR_NULL);
    gmxfmm_reference_destroy(nullptr);

    gmxfmm_system two = SystemView(s, c.boundary).get();
    const double  x[] = {1, 1, 1, 1, 1, 1}, q[] = {1, -1};
    two.n = 2;
    two.x = x;
    two.q = q;
    EXPECT_EQ(gmxfmm_reference_create(&none, &options, &two, message, sizeof(message)), GMXFMM_ERROR_COINCIDENT);
    EXPECT_EQ(none, nullptr);

    const Reference reference(s, c, options);
    options.array_type = GMXFMM_SINGLE;
    EXPECT_EQ(gmxfmm_measure(reference.get(), &options, 0, &m, message, sizeof(message)), GMXFMM_ERROR_OPTION);

    gmxfmm_options tree = withBoundary(askedOptions(1e-3, GMXFMM_DOUBLE), Boundary::Open);
    tree.method         = GMXFMM_TREECODE;
    tree.device         = GMXFMM_CPU;
    EXPECT_EQ(gmxfmm_choose(reference.get(), &tree, any, any, &m, nullptr, nullptr, message, sizeof(message)),
              GMXFMM_ERROR_UNSUPPORTED)
        << message;
    EXPECT_NE(std::string(message).find("treecode"), std::string::npos) << message;

    /* order 2 in cells of two layers at most: no choice of cells makes that exact */
    options       = optionsFor(c, 1e-6);
    options.order = 2;
    EXPECT_EQ(gmxfmm_choose(reference.get(), &options, any, any, &m, nullptr, nullptr, message, sizeof(message)),
              GMXFMM_ERROR_OPTION);
}
