/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory of several ranks: what one lacks all tell; none is allocated in execute; all of it is given back. */
#include <array>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gmxfmm_parallel.h"
#include "support/heap.h"
#include "support/on_ranks.h"
#include "support/sized.h"

using namespace fmmtest;

namespace
{

const int c_num = 3; /* ranks */

struct Share
{
    std::vector<double> x, q, targets;
};

/* Of one rank, of a cube with 3 n particles. */
Share share(std::size_t n, int rank)
{
    std::mt19937_64                        random(static_cast<unsigned>(rank + 1));
    std::uniform_real_distribution<double> number(-1, 1);
    Share                                  s;
    for (std::size_t i = 0; i < n; i++)
    {
        s.x.insert(s.x.end(), {number(random), number(random), number(random)});
        s.q.push_back(number(random));
        s.targets.insert(s.targets.end(), {number(random), number(random), 2 * number(random)});
    }
    return s;
}

/* With two threads: for a team of one the OpenMP runtime allocates every time, and ends the program if it cannot. */
gmxfmm_options settings(bool dual, bool automatic)
{
    gmxfmm_options o =
        automatic ? treecodeOptions(GMXFMM_AUTO, GMXFMM_AUTO, GMXFMM_AUTO, dual) : treecodeOptions(0.7, 2, 40, dual);
    o.accuracy    = 1e-2;
    o.num_threads = 2;
    return o;
}

/* The FMM by cells. */
gmxfmm_options cellSettings()
{
    gmxfmm_options o = sized<gmxfmm_options>();
    gmxfmm_default_options(&o);
    o.order   = 5;
    o.grid[0] = o.grid[1] = o.grid[2] = 4;
    o.separation                      = 1;
    o.num_threads                     = 2;
    return o;
}

const double c_box[9] = {2, 0, 0, 0, 2, 0, 0, 0, 2};

/* The calls between create and the first step. */
gmxfmm_status give(gmxfmm_plan* plan, const Share& s, bool targets)
{
    const auto    n      = static_cast<std::int64_t>(s.q.size());
    gmxfmm_status status = gmxfmm_set_charges(plan, n, s.q.data());
    status               = status == GMXFMM_OK && targets ? gmxfmm_set_targets(plan, n, s.targets.data()) : status;
    return status == GMXFMM_OK ? gmxfmm_assign(plan, s.x.data()) : status;
}

/* The calls up to an assign; the last message goes to text. */
gmxfmm_status prepare(gmxfmm_plan**         plan,
                      const gmxfmm_options& o,
                      const gmxfmm_comm&    comm,
                      const Share&          s,
                      bool                  targets,
                      char*                 text,
                      std::size_t           size)
{
    const auto    n      = static_cast<std::int64_t>(s.q.size());
    gmxfmm_status status = gmxfmm_create_parallel(plan, &o, &comm, n, c_box, text, size);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    status = give(*plan, s, targets);
    snprintf(text, size, "%s", gmxfmm_message(*plan));
    return status;
}

/* A rank lacks memory in its call number k, for each k there is: all ranks return, tell the same, and then work.
 * not_needed: allocations that a plan goes on without. */
void expectAllTell(const gmxfmm_options& o, bool targets, int who, int not_needed = 0)
{
    bool failed  = true;
    int  lacking = 0;
    for (long k = 0; failed; k++)
    {
        std::array<gmxfmm_status, c_num> status = {};
        std::array<std::string, c_num>   message;
        onRanks(c_num,
                [&](const gmxfmm_comm& comm)
                {
                    const Share  s    = share(200, comm.rank);
                    const auto   rank = static_cast<std::size_t>(comm.rank);
                    gmxfmm_plan *plan = nullptr, *warm = nullptr;
                    char         text[512] = "";
                    EXPECT_EQ(prepare(&warm, o, comm, s, targets, text, sizeof(text)), GMXFMM_OK)
                        << text; /* OpenMP's own */
                    gmxfmm_destroy(warm);
                    heapFailAfter(comm.rank == who ? k : -1);
                    status[rank] = prepare(&plan, o, comm, s, targets, text, sizeof(text));
                    if (comm.rank == who)
                    {
                        failed = heapHasFailed();
                    }
                    heapFailAfter(-1);
                    message[rank] = text;
                    if (plan != nullptr) /* and then works */
                    {
                        EXPECT_EQ(give(plan, s, targets), GMXFMM_OK) << "call " << k << ": " << gmxfmm_message(plan);
                    }
                    gmxfmm_destroy(plan);
                });
        for (std::size_t rank = 0; rank < c_num; rank++)
        {
            EXPECT_EQ(status[rank], status[0]) << "call " << k << ": " << message[rank];
            EXPECT_EQ(message[rank], message[0]);
        }
        if (failed && not_needed > 0 && status[0] == GMXFMM_OK)
        {
            not_needed--;
        }
        else if (failed)
        {
            EXPECT_EQ(status[0], GMXFMM_ERROR_MEMORY) << "call " << k << ": " << message[0];
            EXPECT_EQ(message[0].find("rank " + std::to_string(who) + ": out of memory"), 0U) << message[0];
            lacking++;
        }
        else
        {
            EXPECT_EQ(status[0], GMXFMM_OK) << message[0];
        }
    }
    EXPECT_GT(lacking, 50); /* the library allocates at all */
}

} // namespace

TEST(RanksMemory, LackingOnOneRankIsToldByAll)
{
    expectAllTell(settings(false, false), false, 1);
    expectAllTell(settings(true, false), true, 2);
}

TEST(RanksMemory, LackingWhileOneRankChoosesIsToldByAll)
{
    expectAllTell(settings(false, true), false, 0);
    expectAllTell(settings(true, true), true, 1); /* while all measure */
}

TEST(RanksMemory, LackingForCellsIsToldByAll)
{
    expectAllTell(cellSettings(), false, 1, 1); /* what the model keeps of errors */
}

TEST(RanksMemory, IsNotAllocatedInExecute)
{
    for (const gmxfmm_options& o : {settings(false, false), settings(true, false), cellSettings()})
    {
        std::array<std::size_t, c_num> before = {}, after = {};
        onRanks(c_num,
                [&](const gmxfmm_comm& comm)
                {
                    const Share         s    = share(3000, comm.rank);
                    const auto          rank = static_cast<std::size_t>(comm.rank);
                    gmxfmm_plan*        plan = nullptr;
                    char                text[512];
                    int                 own = 0, all[c_num];
                    std::vector<double> potential(s.q.size()), force(s.x.size());
                    gmxfmm_output       out = sized<gmxfmm_output>();
                    out.potential           = potential.data();
                    out.force               = force.data();
                    out.want_energy         = 1;
                    EXPECT_EQ(prepare(&plan, o, comm, s, false, text, sizeof(text)), GMXFMM_OK) << text;
                    gmxfmm_execute(plan, s.x.data(), &out); /* starts threads, which allocate their stacks */
                    comm.all_gather(comm.context, &own, sizeof(own), all); /* all are here */
                    before[rank] = heapCalls();
                    comm.all_gather(comm.context, &own, sizeof(own), all);
                    for (int step = 0; step < 3; step++)
                    {
                        own += gmxfmm_execute(plan, s.x.data(), &out) != GMXFMM_OK;
                    }
                    comm.all_gather(comm.context, &own, sizeof(own), all);
                    after[rank] = heapCalls();
                    comm.all_gather(comm.context, &own, sizeof(own), all);
                    EXPECT_EQ(own, 0);
                    gmxfmm_destroy(plan);
                });
        EXPECT_EQ(before, after);
    }
}

TEST(RanksMemory, IsGivenBack)
{
    const auto live = []
    {
        onRanks(c_num,
                [&](const gmxfmm_comm& comm)
                {
                    const Share s = share(500, comm.rank);
                    for (const bool cells : {false, true})
                    {
                        gmxfmm_plan*         plan = nullptr;
                        char                 text[512];
                        const gmxfmm_options o = cells ? cellSettings() : settings(true, false);
                        EXPECT_EQ(prepare(&plan, o, comm, s, !cells, text, sizeof(text)), GMXFMM_OK) << text;
                        EXPECT_EQ(gmxfmm_assign(plan, s.x.data()), GMXFMM_OK);
                        gmxfmm_destroy(plan);
                    }
                });
    };
    for (int life = 0; life < 3; life++)
    {
        live();
    }
    const std::size_t before = heapBytes();
    const int         lives  = 20;
    for (int life = 0; life < lives; life++)
    {
        live();
    }
    EXPECT_LT(heapBytes(), before + 100 * lives); /* one array of anything is larger than 100 bytes a life */
}
