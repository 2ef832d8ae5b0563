/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Potential and field at targets of plans that were measured, against independent sums: what was asked is reached
 * there, too, or refused with one message that says so. */
#include <algorithm>
#include <cmath>
#include <memory>

#include <gtest/gtest.h>

#include "support/direct.h"
#include "support/ewald.h"
#include "support/measured.h"
#include "support/norms.h"
#include "support/partly_periodic.h"
#include "support/plan.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

enum class Images
{
    Bulk,
    Slab,
    Wire,
    None
};

/* Charges and places, which the reference takes for charges of zero. */
struct Probed
{
    Images              images = Images::Bulk;
    System              charges;
    std::vector<double> places;

    std::size_t num() const
    {
        return places.size() / 3;
    }
    void probe(const Vec3& r)
    {
        places.insert(places.end(), r.begin(), r.end());
    }
    gmxfmm_system view() const
    {
        gmxfmm_system view = SystemView(charges, images == Images::None ? Boundary::Open : Boundary::Tinfoil).get();
        view.num_targets   = static_cast<std::int64_t>(num());
        view.targets       = places.data();
        return view;
    }
};

Solution sumOf(Images images, const System& s)
{
    return images == Images::Bulk   ? ewald(s)
           : images == Images::Slab ? slabSum(s)
           : images == Images::Wire ? wireSum(s)
                                    : directSum(s);
}

/* What the charges give at the places, and the forces on them. */
Values exactAt(const Probed& p, std::vector<double>* force)
{
    System all = p.charges;
    for (std::size_t i = 0; i < p.num(); i++)
    {
        all.add({p.places[3 * i], p.places[3 * i + 1], p.places[3 * i + 2]}, 0);
    }
    const Solution       sum = sumOf(p.images, all);
    const std::ptrdiff_t n   = static_cast<std::ptrdiff_t>(p.charges.size());
    force->assign(sum.force.begin(), sum.force.begin() + 3 * n);
    return {{sum.potential.begin() + n, sum.potential.end()}, {sum.field.begin() + 3 * n, sum.field.end()}};
}

gmxfmm_options optionsFor(Images images, double asked, gmxfmm_precision precision = GMXFMM_DOUBLE)
{
    gmxfmm_options options =
        withBoundary(askedOptions(asked, precision), images == Images::None ? Boundary::Open : Boundary::Tinfoil);
    options.device       = GMXFMM_CPU;
    options.reproducible = 1;
    options.num_threads  = 1; /* for so few charges */
    if (images == Images::Slab || images == Images::Wire)
    {
        options.periodic[0] = options.periodic[1] = images == Images::Slab;
        options.periodic[2]                       = images == Images::Wire;
    }
    return options;
}

/* As it was made: the targets are set, and it is assigned. */
Values valuesOf(const Made& made, const Probed& p)
{
    return fmmtest::valuesOf(made.made, p.charges.x, p.num());
}

std::vector<double> forcesOf(const Made& made, const Probed& p)
{
    EXPECT_EQ(gmxfmm_set_targets(made.made, 0, nullptr), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_assign(made.made, p.charges.x.data()), GMXFMM_OK);
    return fmmtest::forcesOf(made.made, p.charges.x);
}

/* The RMS error of the half of targets whose values are smallest, over the RMS of these: what a target close to a
 * charge hides in the RMS of all. */
double errorOfSmaller(const std::vector<double>& v, const std::vector<double>& exact, std::size_t components)
{
    std::vector<std::pair<double, double>> squares; /* of value and difference */
    for (std::size_t i = 0; i < exact.size(); i += components)
    {
        double value = 0, difference = 0;
        for (std::size_t k = i; k < i + components; k++)
        {
            value += exact[k] * exact[k];
            difference += (v[k] - exact[k]) * (v[k] - exact[k]);
        }
        squares.emplace_back(value, difference);
    }
    std::sort(squares.begin(), squares.end());
    double value = 0, difference = 0;
    for (std::size_t i = 0; i < (squares.size() + 1) / 2; i++)
    {
        value += squares[i].first;
        difference += squares[i].second;
    }
    return std::sqrt(difference / value);
}

double largerError(const Values& v, const Values& exact)
{
    return std::max(relativeRms(v.potential, exact.potential), relativeRms(v.field, exact.field));
}

/* At least low, and below high. */
int below(Random* random, int low, int high)
{
    return low + static_cast<int>((high - low) * random->uniform());
}

const Mat3 c_cube = {4, 0, 0, 0, 4, 0, 0, 0, 4};

Mat3 cubeOf(double edge)
{
    return {edge, 0, 0, 0, edge, 0, 0, 0, edge};
}

/* n charges of both signs, in a cube with a corner at `corner`. */
System chargesIn(Random* random, int n, const Vec3& corner, double edge)
{
    System s;
    for (int i = 0; i < n; i++)
    {
        s.add({corner[0] + edge * random->uniform(), corner[1] + edge * random->uniform(),
               corner[2] + edge * random->uniform()},
              i % 2 == 0 ? 1 : -1);
    }
    return s;
}

void probeBox(Probed* p, Random* random, int n)
{
    for (int i = 0; i < n; i++)
    {
        p->probe(rowTimes({random->uniform(), random->uniform(), random->uniform()}, p->charges.box));
    }
}

/* Charges in a twentieth to a third of the box, targets anywhere: most of them are far from all charges. */
Probed clusterInABox(Random* random)
{
    Probed       p;
    const double part = std::exp(std::log(0.05) + std::log(0.33 / 0.05) * random->uniform());
    p.charges =
        chargesIn(random, below(random, 10, 120), {random->uniform(), random->uniform(), random->uniform()}, 3 * part);
    p.charges.box = cubeOf(3);
    probeBox(&p, random, below(random, 5, 60));
    return p;
}

/* Charges everywhere in a box of any shape. */
Probed melt(Random* random)
{
    Probed      p;
    const auto& types = boxTypes();
    const int   n     = below(random, 30, 160);
    p.charges =
        ions(boxOfVolume(types[static_cast<std::size_t>(random->uniform() * static_cast<double>(types.size()))], n), n,
             static_cast<std::uint64_t>(1e6 * random->uniform()));
    probeBox(&p, random, below(random, 5, 60));
    return p;
}

/* A cluster with targets inside and as far away as a thousand times its size. */
Probed openClusterOf(Random* random, int n)
{
    Probed       p;
    const double edge = 0.01 + random->uniform(), farthest = 3 * random->uniform();
    const int    m = below(random, 5, 60);
    p.images       = Images::None;
    p.charges      = chargesIn(random, n, {0, 0, 0}, edge);
    for (int i = 0; i < m; i++)
    {
        const double r   = edge * std::pow(10, -0.5 + (0.5 + farthest) * random->uniform());
        const Vec3   way = random->direction();
        p.probe({0.5 * edge + r * way[0], 0.5 * edge + r * way[1], 0.5 * edge + r * way[2]});
    }
    return p;
}

Probed openCluster(Random* random)
{
    return openClusterOf(random, below(random, 20, 200));
}

/* As many as a treecode does not sum one by one. */
Probed largeCluster(Random* random)
{
    return openClusterOf(random, below(random, 300, 900));
}

/* Targets inside and up to half an edge of the box above and below. */
Probed slab(Random* random)
{
    Probed       p;
    const double thickness = 4 * random->uniform();
    const int    n = below(random, 20, 100), m = below(random, 5, 40);
    p.images      = Images::Slab;
    p.charges.box = c_cube;
    for (int i = 0; i < n; i++)
    {
        p.charges.add({4 * random->uniform(), 4 * random->uniform(), thickness * random->uniform()},
                      i % 2 == 0 ? 1 : -1);
    }
    for (int i = 0; i < m; i++)
    {
        p.probe({4 * random->uniform(), 4 * random->uniform(), -2 + (thickness + 4) * random->uniform()});
    }
    return p;
}

Probed wire(Random* random)
{
    Probed       p;
    const double width = 3 * random->uniform();
    const int    n = below(random, 10, 60), m = below(random, 5, 40);
    p.images      = Images::Wire;
    p.charges.box = c_cube;
    for (int i = 0; i < n; i++)
    {
        p.charges.add({width * random->centred(), width * random->centred(), 4 * random->uniform()},
                      i % 2 == 0 ? 1 : -1);
    }
    for (int i = 0; i < m; i++)
    {
        p.probe({(width + 1) * random->centred(), (width + 1) * random->centred(), 4 * random->uniform()});
    }
    return p;
}

/* One target so close to a charge that its own potential and field are nearly all of their RMS. */
Probed withACloseTarget(Random* random)
{
    Probed       p   = random->uniform() < 0.5 ? melt(random) : openCluster(random);
    const double r   = std::pow(10, -4 + 2 * random->uniform());
    const Vec3   way = random->direction(), at = p.charges.position(0);
    p.probe({at[0] + r * way[0], at[1] + r * way[1], at[2] + r * way[2]});
    return p;
}

struct Kind
{
    const char* name;
    Probed (*make)(Random*);
    int           num    = 16;
    gmxfmm_method method = GMXFMM_FMM;
};

void PrintTo(const Kind& kind, std::ostream* out)
{
    *out << kind.name;
}

class OfAKind : public testing::TestWithParam<Kind>
{
};

} // namespace

/* A hundred altogether, every third in single precision. What is refused there may be had in double precision, as the
 * message says; of those nothing is refused. Nothing falls short without a word, at most targets, at the charges, or in
 * what is told; 0.1: a measured error is uncertain by a tenth of what was asked. */
TEST_P(OfAKind, WhatIsAskedIsReachedOrRefused)
{
    int refused = 0;
    for (int seed = 0; seed < GetParam().num; seed++)
    {
        SCOPED_TRACE(testing::Message() << "seed " << seed);
        Random                 random(static_cast<std::uint64_t>(9100 + seed));
        const gmxfmm_precision precision = seed % 3 == 2 ? GMXFMM_SINGLE : GMXFMM_DOUBLE;
        const double           asked     = std::pow(10, -2.5 - (precision == GMXFMM_SINGLE ? 3 : 6) * random.uniform());
        const Probed           p         = GetParam().make(&random);
        gmxfmm_options         options   = optionsFor(p.images, asked, precision);
        options.method                   = GetParam().method;
        options.reproducible             = options.method == GMXFMM_FMM; /* auto is decided by times */
        Made made(p.charges, p.view(), options);
        if (made.status != GMXFMM_OK)
        {
            SCOPED_TRACE(made.message);
            expectRefused(made);
            refused += precision == GMXFMM_DOUBLE;
            EXPECT_TRUE(precision == GMXFMM_DOUBLE || made.message.find("use double precision") != std::string::npos);
            continue;
        }
        std::vector<double> force;
        const Values        exact = exactAt(p, &force), v = valuesOf(made, p);
        const double        error = largerError(v, exact);
        EXPECT_LE(error, asked);
        EXPECT_LE(error, made.chosen.error_targets + 0.1 * asked);
        EXPECT_EQ(made.measured(), std::max(made.chosen.error, made.chosen.error_targets));
        EXPECT_LE(relativeRms(forcesOf(made, p), force), asked);
        EXPECT_TRUE(std::isnan(made.measured())); /* it was not of these places alone */
        if (std::string(GetParam().name) == "WithACloseTarget")
        {
            EXPECT_LE(errorOfSmaller(v.potential, exact.potential, 1), 3 * asked);
            EXPECT_LE(errorOfSmaller(v.field, exact.field, 3), 3 * asked);
        }
    }
    RecordProperty("refused", refused);
    EXPECT_EQ(refused, 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds,
                         OfAKind,
                         testing::Values(Kind{"ClusterInABox", clusterInABox, 20},
                                         Kind{"Melt", melt},
                                         Kind{"OpenCluster", openCluster},
                                         Kind{"ByTheTreecode", largeCluster, 10, GMXFMM_TREECODE},
                                         Kind{"ByTheFasterMethod", largeCluster, 6, GMXFMM_METHOD_AUTO},
                                         Kind{"Slab", slab},
                                         Kind{"Wire", wire},
                                         Kind{"WithACloseTarget", withACloseTarget}),
                         [](const testing::TestParamInfo<Kind>& kind) { return std::string(kind.param.name); });

namespace
{

/* Charges in a tenth of a box, and targets anywhere: where the model chooses order 1, for forces. */
Probed smallCluster()
{
    Random random(1);
    Probed p;
    p.charges     = chargesIn(&random, 100, {0, 0, 0}, 0.3);
    p.charges.box = cubeOf(3);
    probeBox(&p, &random, 50);
    return p;
}

/* A hundred charges in a box of 0.01, and targets at a distance of a thousand, but for a few that are inside. */
Probed farTargets()
{
    Random random(3);
    Probed p;
    p.images  = Images::None;
    p.charges = chargesIn(&random, 100, {0, 0, 0}, 0.01);
    for (int i = 0; i < 40; i++)
    {
        const Vec3   way = random.direction();
        const double r   = i % 10 == 0 ? 0.005 : 1000;
        p.probe({0.005 + r * way[0], 0.005 + r * way[1], 0.005 + r * way[2]});
    }
    return p;
}

} // namespace

/* The cells of single precision hold no place in such a cluster. */
TEST(MeasuredTargets, SinglePrecisionIsRefusedWhereItDoesNotHoldTheirPlaces)
{
    const Probed p = farTargets();
    const Made   single(p.charges, p.view(), optionsFor(Images::None, 1e-5, GMXFMM_SINGLE));
    expectRefused(single);
    EXPECT_NE(single.message.find("at the targets"), std::string::npos) << single.message;
    EXPECT_NE(single.message.find("use double precision"), std::string::npos) << single.message;
    std::vector<double> force;
    Made                made(p.charges, p.view(), optionsFor(Images::None, 1e-5));
    ASSERT_EQ(made.status, GMXFMM_OK) << made.message;
    EXPECT_LE(largerError(valuesOf(made, p), exactAt(p, &force)), 1e-5);
}

/* A target that rounding puts on a charge. */
TEST(MeasuredTargets, SinglePrecisionIsRefusedWhereItPutsOneOnACharge)
{
    Probed     p  = farTargets();
    const Vec3 at = p.charges.position(0);
    p.probe({at[0] + 1e-8, at[1], at[2]});
    const Made single(p.charges, p.view(), optionsFor(Images::None, 1e-3, GMXFMM_SINGLE));
    EXPECT_EQ(single.status, GMXFMM_ERROR_OPTION);
    EXPECT_NE(single.message.find("target 40 stands where"), std::string::npos) << single.message;
    EXPECT_NE(single.message.find("use double precision"), std::string::npos) << single.message;
    EXPECT_EQ(Made(p.charges, p.view(), optionsFor(Images::None, 1e-3)).status, GMXFMM_OK);
}

/* Without an accuracy errors are told to 30 %, and what is told of the plan is the larger one. */
TEST(MeasuredTargets, SettingsGivenAreMeasured)
{
    const Probed        p = smallCluster();
    std::vector<double> force;
    const Values        exact = exactAt(p, &force);
    for (int order : {1, 4, 9})
    {
        gmxfmm_options options = optionsFor(p.images, GMXFMM_AUTO);
        options.order          = order;
        Made made(p.charges, p.view(), options);
        ASSERT_EQ(made.status, GMXFMM_OK) << made.message;
        const double error = largerError(valuesOf(made, p), exact);
        EXPECT_LE(error, 1.3 * made.chosen.error_targets);
        EXPECT_GT(made.chosen.error_targets, made.chosen.error);
        EXPECT_EQ(made.measured(), made.chosen.error_targets);
    }
}

TEST(MeasuredTargets, SettingsGivenThatMissTheAccuracyAreRefused)
{
    const Probed   p       = smallCluster();
    gmxfmm_options options = optionsFor(p.images, 1e-5);
    options.order          = 1;
    options.separation     = 1;
    options.grid[0] = options.grid[1] = options.grid[2] = 6;
    const Made made(p.charges, p.view(), options);
    expectRefused(made);
    EXPECT_NE(made.message.find("was measured at the targets at order 1"), std::string::npos) << made.message;
}

/* The parts of what create_measured does, and arrays of float. */
TEST(MeasuredTargets, ReferencesMeasureAndChoose)
{
    const Probed             p = smallCluster();
    std::vector<double>      force;
    const Values             exact = exactAt(p, &force);
    const std::vector<float> x(p.charges.x.begin(), p.charges.x.end()), q(p.charges.q.begin(), p.charges.q.end()),
        targets(p.places.begin(), p.places.end());
    for (const gmxfmm_precision type : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
    {
        const bool         floats = type == GMXFMM_SINGLE;
        gmxfmm_system      system = p.view();
        gmxfmm_options     asked = optionsFor(p.images, 1e-4), rough = asked;
        gmxfmm_measurement given = sized<gmxfmm_measurement>(), chosen = given, again = given;
        gmxfmm_reference*  reference = nullptr;
        char               text[512] = "";
        asked.array_type = rough.array_type = type;
        system.x                            = floats ? static_cast<const void*>(x.data()) : system.x;
        system.q                            = floats ? static_cast<const void*>(q.data()) : system.q;
        system.targets                      = floats ? static_cast<const void*>(targets.data()) : system.targets;
        rough.order                         = 2;
        ASSERT_EQ(gmxfmm_reference_create(&reference, &asked, &system, text, sizeof(text)), GMXFMM_OK) << text;
        EXPECT_EQ(gmxfmm_measure(reference, &rough, 1, &given, text, sizeof(text)), GMXFMM_OK) << text;
        EXPECT_GT(given.error_targets, 1e-3);
        EXPECT_EQ(gmxfmm_choose(reference, &asked, INFINITY, INFINITY, &chosen, nullptr, nullptr, text, sizeof(text)),
                  GMXFMM_OK)
            << text;
        EXPECT_LE(chosen.error_targets, 1e-4);
        EXPECT_GT(chosen.order, 2);
        EXPECT_EQ(gmxfmm_measure(reference, &asked, 1, &again, text, sizeof(text)), GMXFMM_OK) << text;
        EXPECT_NEAR(again.error_targets, chosen.error_targets, 1e-6 * chosen.error_targets);
        gmxfmm_reference_destroy(reference);
        asked.accuracy = 1e-4; /* a choice has put what the model was asked for there */
        const Made made(p.charges, system, asked);
        ASSERT_EQ(made.status, GMXFMM_OK) << made.message;
        std::vector<float>  potential(p.num()), field(3 * p.num());
        std::vector<double> wide(p.num());
        gmxfmm_output       output = sized<gmxfmm_output>();
        output.potential           = floats ? static_cast<void*>(potential.data()) : wide.data();
        EXPECT_EQ(gmxfmm_execute(made.made, system.x, &output), GMXFMM_OK);
        wide = floats ? std::vector<double>(potential.begin(), potential.end()) : wide;
        EXPECT_LE(relativeRms(wide, exact.potential), 1.1e-4); /* places are rounded */
    }
}

/* What was measured is of the targets then: of as many others, or of none, it is not known. */
TEST(MeasuredTargets, OthersAreNotMeasured)
{
    for (const gmxfmm_method method : {GMXFMM_FMM, GMXFMM_TREECODE})
    {
        Probed         p       = smallCluster();
        gmxfmm_options options = optionsFor(Images::None, 1e-4);
        options.method         = method;
        p.images               = Images::None;
        const Made with(p.charges, p.view(), options);
        ASSERT_EQ(with.status, GMXFMM_OK) << with.message;
        EXPECT_EQ(with.measured(), std::max(with.chosen.error, with.chosen.error_targets));
        EXPECT_TRUE(method == GMXFMM_TREECODE || with.chosen.error_targets > 0); /* it sums a hundred one by one */
        gmxfmm_system none = p.view();
        none.num_targets   = 0;
        const Made without(p.charges, none, options);
        ASSERT_EQ(without.status, GMXFMM_OK) << without.message;
        EXPECT_EQ(without.measured(), without.chosen.error);
        EXPECT_EQ(without.chosen.error_targets, 0);
        EXPECT_EQ(gmxfmm_set_targets(without.made, 0, nullptr), GMXFMM_OK);
        EXPECT_EQ(without.measured(), without.chosen.error); /* as before */
        for (gmxfmm_plan* plan : {with.made, without.made})
        {
            gmxfmm_info info = sized<gmxfmm_info>();
            EXPECT_EQ(gmxfmm_set_targets(plan, static_cast<std::int64_t>(p.num()), p.places.data()), GMXFMM_OK);
            EXPECT_EQ(gmxfmm_get_info(plan, &info), GMXFMM_OK);
            EXPECT_TRUE(std::isnan(info.measured_error)) << info.measured_error;
            EXPECT_EQ(gmxfmm_assign(plan, p.charges.x.data()), GMXFMM_OK);
            EXPECT_EQ(gmxfmm_get_info(plan, &info), GMXFMM_OK);
            EXPECT_TRUE(std::isnan(info.measured_error)) << info.measured_error;
        }
    }
}

TEST(MeasuredTargets, ThatCannotBeAreRefused)
{
    const Probed         p       = smallCluster();
    const gmxfmm_options options = optionsFor(p.images, 1e-4);
    gmxfmm_system        system  = p.view();
    system.num_targets           = -1;
    EXPECT_EQ(Made(p.charges, system, options).status, GMXFMM_ERROR_OPTION);
    EXPECT_EQ(Made(p.charges, system, options).message, "num_targets is negative");
    system         = p.view();
    system.targets = nullptr;
    EXPECT_EQ(Made(p.charges, system, options).status, GMXFMM_ERROR_NULL);
    EXPECT_EQ(Made(p.charges, system, options).message, "targets is NULL");
    System with = p.charges;
    with.exclude(0, 1);
    const SystemView excluded(with, Boundary::Tinfoil);
    system             = excluded.get();
    system.num_targets = 1;
    system.targets     = p.places.data();
    EXPECT_EQ(Made(p.charges, system, options).status, GMXFMM_ERROR_OPTION);
    EXPECT_NE(Made(p.charges, system, options).message.find("exclusions are of no use with targets"),
              std::string::npos);
    Probed on = p;
    on.probe(on.charges.position(3));
    const Made coincident(on.charges, on.view(), options);
    EXPECT_EQ(coincident.status, GMXFMM_ERROR_COINCIDENT);
    EXPECT_NE(coincident.message.find("target 50 stands where"), std::string::npos) << coincident.message;
}

/* Between the ions of a perfect crystal potential and field are zero: errors are over their natural unit there. So are
 * those at places where a few are not. */
TEST(MeasuredTargets, ThatFeelNothingByTheirSymmetryAreMeasured)
{
    Probed p;
    p.charges = sodiumChloride(2);
    for (int i = 0; i < 8; i++)
    {
        p.probe({0.5 + (i & 1), 0.5 + (i >> 1 & 1), 0.5 + (i >> 2 & 1)});
    }
    for (int some : {0, 2})
    {
        for (int i = 0; i < some; i++)
        {
            p.probe({0.3 + i, 0.2, 0.1});
        }
        for (double asked : {1e-3, 1e-6, 1e-9})
        {
            Made made(p.charges, p.view(), optionsFor(p.images, asked));
            ASSERT_EQ(made.status, GMXFMM_OK) << made.message;
            const std::vector<double> field = valuesOf(made, p).field;
            for (std::size_t i = 0; i < 24; i++)
            {
                EXPECT_LE(std::fabs(field[i]), 10 * asked); /* an RMS of 24 is held, over 1 */
            }
        }
    }
}
