/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The FMM by cells of one level on several ranks, which are threads: results have the bits of one rank, however the
 * particles were dealt. */
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "gmxfmm_parallel.h"
#include "support/ewald.h"
#include "support/norms.h"
#include "support/on_ranks.h"
#include "support/plan.h"
#include "support/suites.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

const int c_numRanks[] = {2, 3, 4, 8, 20};

/* Which particles a rank has, in the order in which it gives them. */
using Dealt = std::vector<std::vector<int>>;

enum class Deal
{
    AtRandom,
    AllToOne,
    InOrder
};

Dealt deal(std::size_t n, int ranks, Deal how, std::uint64_t seed = 3)
{
    Random random(seed);
    Dealt  dealt(static_cast<std::size_t>(ranks));
    for (std::size_t i = 0; i < n; i++)
    {
        const int rank = how == Deal::AllToOne   ? ranks - 1
                         : how == Deal::AtRandom ? static_cast<int>(ranks * random.uniform())
                                                 : static_cast<int>(i * static_cast<std::size_t>(ranks) / n);
        dealt[static_cast<std::size_t>(rank)].push_back(static_cast<int>(i));
    }
    for (std::vector<int>& own : dealt)
    {
        for (std::size_t i = own.size(); how == Deal::AtRandom && i > 1; i--)
        {
            std::swap(own[i - 1], own[static_cast<std::size_t>(static_cast<double>(i) * random.uniform())]);
        }
    }
    return dealt;
}

/* Results of all particles, in the order of their numbers, and what each rank has as sums. */
struct Together
{
    std::vector<double>                 force, field, potential;
    std::vector<std::array<double, 11>> sums;
    std::vector<std::string>            message;
    std::vector<gmxfmm_status>          status;
};

template <class Number>
std::vector<Number> of(const std::vector<int>& own, const std::vector<double>& all, std::size_t each)
{
    std::vector<Number> mine;
    for (int i : own)
    {
        for (std::size_t d = 0; d < each; d++)
        {
            mine.push_back(static_cast<Number>(all[each * static_cast<std::size_t>(i) + d]));
        }
    }
    return mine;
}

/* What one rank's calls return, in turn, until one is an error. */
class Calls
{
  public:
    explicit Calls(gmxfmm_plan** plan) : plan_(plan)
    {
    }
    template <class Call>
    Calls& then(const Call& call)
    {
        if (status == GMXFMM_OK)
        {
            status  = call();
            message = status != GMXFMM_OK && *plan_ != nullptr ? gmxfmm_message(*plan_) : message;
        }
        return *this;
    }
    gmxfmm_status status = GMXFMM_OK;
    std::string   message;

  private:
    gmxfmm_plan** plan_;
};

/* Before a step particles may be dealt anew, with the exclusions of that system. */
struct Step
{
    std::vector<double> x;
    Mat3                box;
    bool                assigns;
    const Dealt*        dealt = nullptr;
    const System*       given = nullptr;
};

/* Rows of these particles, which name partners by their numbers. */
struct Rows
{
    Rows(const System& s, const std::vector<int>& own)
    {
        for (int i : own)
        {
            if (!s.excluded.empty())
            {
                const std::vector<int>& of_i = s.excluded[static_cast<std::size_t>(i)];
                list.insert(list.end(), of_i.begin(), of_i.end());
            }
            start.push_back(static_cast<int>(list.size()));
        }
    }
    std::vector<int> start = {0}, list;
};

/* The results of the last of these steps on so many ranks. */
template <class Number = double>
Together solve(const System&            s,
               const gmxfmm_options&    options_of_all,
               const Dealt&             first,
               const std::vector<Step>& steps,
               bool                     with_ids = true)
{
    const int ranks = static_cast<int>(first.size());
    Together  all;
    all.force.resize(3 * s.size());
    all.field.resize(3 * s.size());
    all.potential.resize(s.size());
    all.sums.resize(first.size());
    all.message.resize(first.size());
    all.status.resize(first.size(), GMXFMM_OK);
    onRanks(ranks,
            [&](const gmxfmm_comm& comm)
            {
                const std::size_t   rank = static_cast<std::size_t>(comm.rank);
                std::vector<int>    own  = first[rank];
                std::vector<Number> force, field, potential;
                gmxfmm_options      options   = options_of_all;
                gmxfmm_plan*        plan      = nullptr;
                char                text[512] = "";
                gmxfmm_output       output    = {};
                Calls               calls(&plan);
                options.num_threads = 1 + comm.rank % 2;
                output.size         = sizeof(output);
                output.want_energy = output.want_virial = 1;
                calls.then(
                    [&]
                    {
                        return gmxfmm_create_parallel(&plan, &options, &comm, static_cast<std::int64_t>(own.size()),
                                                      s.box.data(), text, sizeof(text));
                    });
                calls.message   = calls.status != GMXFMM_OK ? text : "";
                const auto give = [&](const System& given)
                {
                    const std::vector<Number> q = of<Number>(own, s.q, 1);
                    const Rows                rows(given, own);
                    calls.then([&]
                               { return gmxfmm_set_charges(plan, static_cast<std::int64_t>(own.size()), q.data()); });
                    if (with_ids)
                    {
                        calls.then([&] { return gmxfmm_set_ids(plan, own.data()); });
                    }
                    calls.then([&] { return gmxfmm_set_exclusions(plan, rows.start.data(), rows.list.data()); });
                    force.resize(3 * own.size() + 1);
                    field.resize(3 * own.size() + 1);
                    potential.resize(own.size() + 1);
                    output.force     = force.data();
                    output.field     = field.data();
                    output.potential = potential.data();
                };
                give(s);
                for (const Step& step : steps)
                {
                    if (step.dealt != nullptr)
                    {
                        own = (*step.dealt)[rank];
                        give(*step.given);
                    }
                    const std::vector<Number> x = of<Number>(own, step.x, 3);
                    calls.then([&] { return gmxfmm_set_box(plan, step.box.data()); });
                    if (step.assigns)
                    {
                        calls.then([&] { return gmxfmm_assign(plan, x.data()); });
                    }
                    calls.then([&] { return gmxfmm_execute(plan, x.data(), &output); });
                }
                gmxfmm_destroy(plan);
                all.status[rank]  = calls.status;
                all.message[rank] = calls.message;
                all.sums[rank][0] = output.energy_near;
                all.sums[rank][1] = output.energy_far;
                std::copy(output.virial, output.virial + 9, all.sums[rank].begin() + 2);
                if (calls.status != GMXFMM_OK)
                {
                    return; /* two ranks may have been given one particle */
                }
                for (std::size_t k = 0; k < own.size(); k++)
                {
                    const std::size_t i = static_cast<std::size_t>(own[k]);
                    all.potential[i]    = static_cast<double>(potential[k]);
                    for (std::size_t d = 0; d < 3; d++)
                    {
                        all.force[3 * i + d] = static_cast<double>(force[3 * k + d]);
                        all.field[3 * i + d] = static_cast<double>(field[3 * k + d]);
                    }
                }
            });
    return all;
}

/* The same by a plan of one rank, which has all. */
template <class Number = double>
Together alone(const System& s, const gmxfmm_options& options, const std::vector<Step>& steps)
{
    std::vector<int> all(s.size());
    std::iota(all.begin(), all.end(), 0);
    const Rows   rows(s, all);
    char         text[512] = "";
    gmxfmm_plan* plan      = nullptr;
    Together     r;
    EXPECT_EQ(gmxfmm_create(&plan, &options, static_cast<std::int64_t>(s.size()), s.box.data(), text, sizeof(text)),
              GMXFMM_OK)
        << text;
    const std::vector<Number> q = of<Number>(all, s.q, 1);
    std::vector<Number>       force(3 * s.size()), field(3 * s.size()), potential(s.size());
    gmxfmm_output             output = {};
    output.size                      = sizeof(output);
    output.force                     = force.data();
    output.field                     = field.data();
    output.potential                 = potential.data();
    output.want_energy = output.want_virial = 1;
    EXPECT_EQ(gmxfmm_set_charges(plan, static_cast<std::int64_t>(s.size()), q.data()), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_set_exclusions(plan, rows.start.data(), rows.list.data()), GMXFMM_OK);
    for (const Step& step : steps)
    {
        const std::vector<Number> x = of<Number>(all, step.x, 3);
        EXPECT_EQ(gmxfmm_set_box(plan, step.box.data()), GMXFMM_OK);
        if (step.assigns)
        {
            EXPECT_EQ(gmxfmm_assign(plan, x.data()), GMXFMM_OK) << gmxfmm_message(plan);
        }
        EXPECT_EQ(gmxfmm_execute(plan, x.data(), &output), GMXFMM_OK) << gmxfmm_message(plan);
    }
    gmxfmm_destroy(plan);
    r.force.assign(force.begin(), force.end());
    r.field.assign(field.begin(), field.end());
    r.potential.assign(potential.begin(), potential.end());
    r.sums.resize(1);
    r.sums[0] = {output.energy_near, output.energy_far};
    std::copy(output.virial, output.virial + 9, r.sums[0].begin() + 2);
    return r;
}

void expectSameBits(const Together& several, const Together& one)
{
    for (std::size_t r = 0; r < several.status.size(); r++)
    {
        ASSERT_EQ(several.status[r], GMXFMM_OK) << several.message[r];
        EXPECT_EQ(several.sums[r], one.sums[0]) << "rank " << r;
    }
    EXPECT_TRUE(several.force == one.force);
    EXPECT_TRUE(several.field == one.field);
    EXPECT_TRUE(several.potential == one.potential);
}

std::vector<Step> oneStep(const System& s)
{
    Step step;
    step.x       = s.x;
    step.box     = s.box;
    step.assigns = true;
    return {step};
}

} // namespace

class RanksOfCells : public testing::TestWithParam<std::tuple<BoxType, gmxfmm_precision>>
{
};

TEST_P(RanksOfCells, HaveTheBitsOfOne)
{
    const auto [box, precision]  = GetParam();
    const System         s       = water(boxOfVolume(box, 12), 5);
    const gmxfmm_options options = explicitOptions(precision == GMXFMM_DOUBLE ? 9 : 6, evenGrid(box, 5), 1, precision);
    const Together       one     = alone(s, options, oneStep(s));
    for (int ranks : c_numRanks)
    {
        SCOPED_TRACE(ranks);
        expectSameBits(solve(s, options, deal(s.size(), ranks, Deal::AtRandom), oneStep(s)), one);
    }
    expectSameBits(solve(s, options, deal(s.size(), 3, Deal::AllToOne), oneStep(s)), one);
    expectSameBits(solve(s, options, deal(s.size(), 3, Deal::InOrder), oneStep(s), false), one);
}

INSTANTIATE_TEST_SUITE_P(Boxes,
                         RanksOfCells,
                         testing::Combine(testing::ValuesIn(boxTypes()), testing::Values(GMXFMM_DOUBLE, GMXFMM_SINGLE)),
                         boxAndPrecisionName);

/* Steps in which particles move, the box changes, cells are made anew; floats; a net charge, and a vacuum around. */
TEST(RanksOfCellsInSteps, HaveTheBitsOfOne)
{
    const BoxType& type = boxTypes()[2];
    System         s    = water(boxOfVolume(type, 12), 9);
    Random         random(4);
    s.q[0] += 1;
    for (const gmxfmm_boundary boundary : {GMXFMM_TINFOIL, GMXFMM_VACUUM})
    {
        for (const gmxfmm_precision array : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
        {
            gmxfmm_options    options = explicitOptions(7, evenGrid(type, 4), 1, array);
            std::vector<Step> steps;
            options.boundary   = boundary;
            options.array_type = array;
            Step step          = oneStep(s)[0];
            for (int k = 0; k < 5; k++)
            {
                step.assigns = k == 0 || k == 3;
                steps.push_back(step);
                for (double& x : step.x)
                {
                    x = static_cast<double>(static_cast<float>(x + 0.01 * random.centred()));
                }
                for (double& b : step.box)
                {
                    b *= 1.004;
                }
            }
            if (array == GMXFMM_DOUBLE)
            {
                expectSameBits(solve(s, options, deal(s.size(), 4, Deal::AtRandom), steps), alone(s, options, steps));
            }
            else
            {
                expectSameBits(solve<float>(s, options, deal(s.size(), 4, Deal::AtRandom), steps),
                               alone<float>(s, options, steps));
            }
        }
    }
}

/* Excluded pairs of molecules that are larger than cells, half a box long, on other ranks than their partners. */
TEST(RanksOfCells, HaveExcludedPairsAtAnyDistance)
{
    const BoxType& type = boxTypes()[0];
    System         s    = ions(boxOfVolume(type, 8), 400, 11);
    for (std::size_t i = 0; i + 7 < s.size(); i += 5)
    {
        s.exclude(i, i + 3);
        s.exclude(i, i + 7);
    }
    const gmxfmm_options options = explicitOptions(8, 6, 6, 6, 1);
    const Together       one     = alone(s, options, oneStep(s));
    EXPECT_LE(relativeRms(one.force, ewald(s).force), 1e-3);
    for (int ranks : c_numRanks)
    {
        SCOPED_TRACE(ranks);
        expectSameBits(solve(s, options, deal(s.size(), ranks, Deal::AtRandom), oneStep(s)), one);
    }
}

/* Particles that go to other ranks in between, with the same exclusions and with others. */
TEST(RanksOfCells, MayBeDealtAnew)
{
    System s     = ions(boxOfVolume(boxTypes()[0], 8), 300, 11);
    System other = s;
    for (std::size_t i = 0; i + 7 < s.size(); i += 5)
    {
        s.exclude(i, i + 3);
        other.exclude(i, i + 7);
    }
    const gmxfmm_options options = explicitOptions(8, 6, 6, 6, 1);
    const Dealt          dealt = deal(s.size(), 4, Deal::AtRandom, 1), anew = deal(s.size(), 4, Deal::AtRandom, 2);
    std::vector<Step>    steps = {oneStep(s)[0], oneStep(s)[0]};
    steps[1].dealt             = &anew;
    steps[1].given             = &s;
    expectSameBits(solve(s, options, dealt, steps), alone(s, options, oneStep(s)));
    steps[1].given = &other;
    expectSameBits(solve(s, options, dealt, steps), alone(other, options, oneStep(s)));
    other.excluded.clear();
    expectSameBits(solve(s, options, dealt, steps), alone(other, options, oneStep(s)));
}

/* Grids of few layers; most particles in a corner, so that ranges are of quite another length than those of planes and
 * columns; ranges that follow the work of the steps before. */
TEST(RanksOfCells, MayHavePartsOfLayers)
{
    const BoxType& type = boxTypes()[2];
    System         s    = ions(boxOfVolume(type, 12), 200, 3);
    Random         random(8);
    scatter(&s, 1500, {0.1, 0.1, 0.1}, {0.7, 0.9, 0.8}, &random);
    std::vector<Step> steps(9, oneStep(s)[0]);
    for (std::size_t k = 0; k < steps.size(); k++)
    {
        steps[k].assigns = k % 4 == 0;
    }
    for (const std::array<int, 3>& grid : {std::array<int, 3>{4, 9, 7}, {3, 4, 11}, {12, 3, 5}})
    {
        const gmxfmm_options options = explicitOptions(7, grid, 1, GMXFMM_SINGLE);
        const Together       one     = alone(s, options, steps);
        for (int ranks : c_numRanks)
        {
            SCOPED_TRACE(ranks);
            expectSameBits(solve(s, options, deal(s.size(), ranks, Deal::AtRandom), steps), one);
        }
    }
}

/* What a rank has and sends: cells and particles of all are those of the system, and what is sent arrives. */
TEST(RanksOfCells, TellWhatTheyHave)
{
    const int                      num   = 4;
    const System                   s     = water(boxOfVolume(boxTypes()[0], 12), 5);
    const gmxfmm_options           o     = explicitOptions(6, 8, 8, 8, 1);
    const Dealt                    dealt = deal(s.size(), num, Deal::AtRandom);
    std::vector<gmxfmm_ranks_info> found(num), later(num);
    onRanks(num,
            [&](const gmxfmm_comm& comm)
            {
                const std::size_t         rank = static_cast<std::size_t>(comm.rank);
                const std::vector<double> q = of<double>(dealt[rank], s.q, 1), x = of<double>(dealt[rank], s.x, 3);
                const std::int64_t        n = static_cast<std::int64_t>(q.size());
                std::vector<double>       force(x.size() + 1);
                gmxfmm_output             output = {};
                gmxfmm_plan*              plan   = nullptr;
                output.size                      = sizeof(output);
                output.force                     = force.data();
                ASSERT_EQ(gmxfmm_create_parallel(&plan, &o, &comm, n, s.box.data(), nullptr, 0), GMXFMM_OK);
                EXPECT_EQ(gmxfmm_get_ranks_info(plan, &found[rank]), GMXFMM_OK); /* before there is anything */
                EXPECT_EQ(found[rank].num_cells, 0);
                ASSERT_EQ(gmxfmm_set_charges(plan, n, q.data()), GMXFMM_OK);
                ASSERT_EQ(gmxfmm_assign(plan, x.data()), GMXFMM_OK);
                ASSERT_EQ(gmxfmm_execute(plan, x.data(), &output), GMXFMM_OK);
                EXPECT_EQ(gmxfmm_get_ranks_info(plan, &found[rank]), GMXFMM_OK);
                gmxfmm_reset_ranks_times(plan);
                EXPECT_EQ(gmxfmm_get_ranks_info(plan, &later[rank]), GMXFMM_OK);
                gmxfmm_destroy(plan);
            });
    std::int64_t cells = 0, particles = 0;
    std::size_t  sent = 0, received = 0;
    for (std::size_t rank = 0; rank < num; rank++)
    {
        const gmxfmm_ranks_info& info = found[rank];
        EXPECT_GT(info.num_imported, 0);
        EXPECT_LT(info.num_imported, static_cast<std::int64_t>(s.size()) - info.num_particles);
        EXPECT_EQ(info.num_cells % 16, 0);       /* whole vectors of cells */
        EXPECT_GE(info.messages, 3 * (num - 1)); /* spectra there and back, and forces or positions */
        for (double time : {info.time_work, info.time_positions, info.time_spectra, info.time_results, info.time_sums})
        {
            EXPECT_GT(time, 0);
        }
        EXPECT_EQ(later[rank].num_particles, info.num_particles);
        EXPECT_EQ(later[rank].time_work, 0);
        cells += info.num_cells;
        particles += info.num_particles;
        sent += info.bytes_sent;
        received += info.bytes_received;
    }
    EXPECT_EQ(cells, 512);
    EXPECT_EQ(particles, static_cast<std::int64_t>(s.size()));
    EXPECT_EQ(sent, received);
}

/* Few particles, most of the ranks without any. */
TEST(RanksOfCells, MayHaveNoParticles)
{
    for (int n : {1, 2, 7})
    {
        System s                     = ions(boxOfVolume(boxTypes()[1], 1), n, 2);
        s.q.back()                   = n % 2 == 0 ? s.q.back() : 0;
        const gmxfmm_options options = askedOptions(1e-4);
        expectSameBits(solve(s, options, deal(s.size(), 5, Deal::AtRandom), oneStep(s)), alone(s, options, oneStep(s)));
    }
}

/* So many that the threads of a rank share loops, among them over exclusions that go from rank to rank. */
TEST(RanksOfCells, ShareLoopsAmongThreads)
{
    const System         s       = liquidCube(4);
    const gmxfmm_options options = explicitOptions(3, 10, 10, 10, 1, GMXFMM_SINGLE);
    const Together       one     = alone(s, options, oneStep(s));
    ASSERT_GT(s.size(), 2U * 10000); /* each loop of the second rank, which has two threads */
    expectSameBits(solve(s, options, deal(s.size(), 2, Deal::AtRandom), oneStep(s)), one);
}

/* What is automatic is chosen for all particles, as by one rank. */
TEST(RanksOfCells, ChooseAsOne)
{
    const System         s       = liquidCube(2);
    const gmxfmm_options options = askedOptions(1e-4, GMXFMM_SINGLE);
    expectSameBits(solve(s, options, deal(s.size(), 3, Deal::AtRandom), oneStep(s)), alone(s, options, oneStep(s)));
}

namespace
{

/* All ranks return this, with one text that has these words. */
void expectAll(const Together& r, gmxfmm_status status, const std::string& words)
{
    for (std::size_t k = 0; k < r.status.size(); k++)
    {
        EXPECT_EQ(r.status[k], status) << r.message[k];
        EXPECT_EQ(r.message[k], r.message[0]);
    }
    EXPECT_NE(r.message[0].find(words), std::string::npos) << r.message[0];
}

} // namespace

TEST(RanksOfCellsErrors, NameParticlesByTheirNumbers)
{
    const System         good    = ions(boxOfVolume(boxTypes()[0], 8), 100, 1);
    const gmxfmm_options options = explicitOptions(6, 4, 4, 4, 1);
    const Dealt          dealt   = deal(good.size(), 3, Deal::AtRandom);
    System               bad     = good;
    std::copy(&bad.x[3 * 20], &bad.x[3 * 21], &bad.x[3 * 70]);
    const Together coincident = solve(bad, options, dealt, oneStep(bad));
    expectAll(coincident, GMXFMM_ERROR_COINCIDENT, "stands where another one does");
    EXPECT_TRUE(coincident.message[0].find("particle 20 ") != std::string::npos ||
                coincident.message[0].find("particle 70 ") != std::string::npos)
        << coincident.message[0];

    bad           = good;
    bad.x[3 * 42] = NAN;
    expectAll(solve(bad, options, dealt, oneStep(bad)), GMXFMM_ERROR_POSITION, "position of particle 42 is (nan");

    bad = good;
    bad.excluded.resize(bad.size());
    bad.excluded[5] = {6};
    expectAll(solve(bad, options, dealt, oneStep(bad)), GMXFMM_ERROR_EXCLUSION,
              "particle 5 excludes particle 6, but not the other way round");

    Dealt twice = dealt;
    for (std::vector<int>& own : twice)
    {
        std::replace(own.begin(), own.end(), 33, 34);
    }
    expectAll(solve(good, options, twice, oneStep(good)), GMXFMM_ERROR_OPTION, "34 is there twice");
}

TEST(RanksOfCellsErrors, NameExclusionsThatDoNotStartAtZero)
{
    const System         s     = ions(boxOfVolume(boxTypes()[0], 8), 50, 1);
    const gmxfmm_options asked = explicitOptions(6, 4, 4, 4, 1);
    onRanks(2,
            [&](const gmxfmm_comm& comm)
            {
                const std::vector<int>    start(s.size() + 1, 3), list(3, 0); /* the second rank has no particles */
                const std::vector<double> q(s.q.begin(), s.q.end());
                const std::int64_t        n         = comm.rank == 0 ? static_cast<std::int64_t>(s.size()) : 0;
                gmxfmm_plan*              plan      = nullptr;
                char                      text[512] = "";
                ASSERT_EQ(gmxfmm_create_parallel(&plan, &asked, &comm, n, s.box.data(), text, sizeof(text)), GMXFMM_OK)
                    << text;
                ASSERT_EQ(gmxfmm_set_charges(plan, n, q.data()), GMXFMM_OK);
                EXPECT_EQ(gmxfmm_set_exclusions(plan, start.data(), list.data()), GMXFMM_ERROR_EXCLUSION);
                EXPECT_NE(std::string(gmxfmm_message(plan)).find("must start at 0"), std::string::npos)
                    << gmxfmm_message(plan);
                gmxfmm_destroy(plan);
            });
}

TEST(RanksOfCellsErrors, AreThoseOfTheirCells)
{
    System         s     = ions(boxOfVolume(boxTypes()[0], 8), 100, 1);
    const Dealt    dealt = deal(s.size(), 3, Deal::AtRandom);
    gmxfmm_options near  = explicitOptions(6, 4, 4, 4, 1);
    near.min_distance    = 0.1;
    std::copy(&s.x[3 * 20], &s.x[3 * 21], &s.x[3 * 70]);
    expectSameBits(solve(s, near, dealt, oneStep(s)), alone(s, near, oneStep(s)));
    near.min_distance = 0.6;
    expectAll(solve(s, near, dealt, oneStep(s)), GMXFMM_ERROR_OPTION,
              "min_distance is 0.6, more than cells of edge 0.5 hold");
}

TEST(RanksOfCellsErrors, SayWhatIsNotOffered)
{
    const System   s     = ions(boxOfVolume(boxTypes()[0], 8), 50, 1);
    const Dealt    dealt = deal(s.size(), 2, Deal::AtRandom);
    gmxfmm_options tree  = askedOptions(1e-4);
    tree.m2l             = GMXFMM_M2L_ROTATION;
    expectAll(solve(s, tree, dealt, oneStep(s)), GMXFMM_ERROR_UNSUPPORTED, "m2l = fft or auto");
    gmxfmm_options slab = askedOptions(1e-4);
    slab.periodic[0] = slab.periodic[1] = 1;
    expectAll(solve(s, slab, dealt, oneStep(s)), GMXFMM_ERROR_UNSUPPORTED, "periodic along all vectors");

    onRanks(2,
            [&](const gmxfmm_comm& comm)
            {
                const SystemView     view(s, Boundary::Tinfoil);
                const gmxfmm_system  system    = view.get();
                const gmxfmm_options asked     = askedOptions(1e-4);
                gmxfmm_plan*         measured  = nullptr;
                char                 text[512] = "";
                EXPECT_EQ(
                    gmxfmm_create_parallel_measured(&measured, &asked, &comm, &system, nullptr, text, sizeof(text)),
                    GMXFMM_ERROR_UNSUPPORTED);
                EXPECT_NE(std::string(text).find("measure on one rank"), std::string::npos) << text;
            });

    gmxfmm_plan*         plan    = nullptr;
    const gmxfmm_options options = askedOptions(1e-4);
    const double         q       = 1;
    const int            id      = 0;
    ASSERT_EQ(gmxfmm_create(&plan, &options, 1, s.box.data(), nullptr, 0), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_set_charges(plan, 1, &q), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_set_ids(plan, &id), GMXFMM_ERROR_UNSUPPORTED);
    EXPECT_EQ(gmxfmm_set_ids(nullptr, &id), GMXFMM_ERROR_NULL);
    gmxfmm_destroy(plan);
}
