/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* No global state: plans in several threads at once, created and destroyed there too, give what they give one by one.
 */
#include <limits>
#include <thread>

#include <gtest/gtest.h>

#include "support/measured.h"
#include "support/paths.h"
#include "support/plan.h"
#include "support/suites.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

/* Each task is another system with other options; methods take turns. */
Path taskPath(std::size_t task)
{
    const gmxfmm_m2l m2l = methods()[task % methods().size()];
    return {m2l, m2l == GMXFMM_M2L_FFT ? boxTypes()[task % boxTypes().size()]
                                       : octreeBoxTypes()[task % octreeBoxTypes().size()]};
}

System taskSystem(std::size_t task)
{
    const Path path = taskPath(task);
    return ions(boxOfVolume(path.box, 150), 150, 100 + task);
}

gmxfmm_options taskOptions(std::size_t task)
{
    const int      cells = 4 + static_cast<int>(task % 3);
    gmxfmm_options options =
        pathOptions(taskPath(task), 3 + static_cast<int>(task), cells, 1, task % 3 ? GMXFMM_SINGLE : GMXFMM_DOUBLE);
    options.num_threads  = 1 + static_cast<int>(task % 2);
    options.reproducible = 1; /* so that results can be compared bit by bit */
    return options;
}

const std::size_t tasks  = 8;
const int         rounds = 5;

void expectSameBits(const Result& a, const Result& b)
{
    EXPECT_EQ(a.force, b.force);
    EXPECT_EQ(a.potential, b.potential);
    EXPECT_EQ(a.energy, b.energy);
    EXPECT_EQ(a.virial, b.virial);
}

} // namespace

TEST(PlansInThreads, GiveWhatTheyGiveAlone)
{
    std::vector<System>      systems;
    std::vector<Result>      alone, together(tasks);
    std::vector<std::string> failures(tasks);
    for (std::size_t task = 0; task < tasks; task++)
    {
        systems.push_back(taskSystem(task));
        alone.push_back(solve(systems[task], taskOptions(task)));
    }
    for (int round = 0; round < rounds; round++)
    {
        std::vector<std::thread> threads;
        for (std::size_t task = 0; task < tasks; task++)
        {
            threads.emplace_back(
                [&, task]
                {
                    try
                    {
                        together[task] = solve(systems[task], taskOptions(task));
                    }
                    catch (const std::exception& error)
                    {
                        failures[task] = error.what();
                    }
                });
        }
        for (std::thread& thread : threads)
        {
            thread.join();
        }
        for (std::size_t task = 0; task < tasks; task++)
        {
            SCOPED_TRACE("task " + std::to_string(task));
            ASSERT_EQ(failures[task], "");
            expectSameBits(together[task], alone[task]);
        }
    }
}

/* Times of steps on a GPU are those of recorded graphs. A thread that waits for the GPU while another records has to
 * let it, in assignments and where plans are made and destroyed. */
TEST(PlansInThreads, AreMeasuredTogether)
{
    std::vector<std::string> failures(tasks);
    std::vector<std::thread> threads;
    for (std::size_t task = 0; task < tasks; task++)
    {
        threads.emplace_back(
            [&, task]
            {
                const System s = taskSystem(0);
                for (int round = 0; round < rounds && failures[task].empty(); round++)
                {
                    const Made made(s, askedOptions(1e-3, GMXFMM_SINGLE));
                    failures[task] = made.status == GMXFMM_OK ? "" : made.message;
                }
            });
    }
    for (std::thread& thread : threads)
    {
        thread.join();
    }
    for (std::size_t task = 0; task < tasks; task++)
    {
        EXPECT_EQ(failures[task], "") << "task " << task;
    }
}

/* Errors are kept in the plan in which they occurred. */
TEST(PlansInThreads, KeepTheirOwnMessages)
{
    std::vector<std::thread> threads;
    std::vector<std::string> messages(tasks);
    for (std::size_t task = 0; task < tasks; task++)
    {
        threads.emplace_back(
            [&, task]
            {
                const System        s = taskSystem(0);
                Plan                plan(s, taskOptions(0));
                std::vector<double> x = s.x;
                x[3 * (50 + task)]    = std::numeric_limits<double>::quiet_NaN();
                for (int round = 0; round < 100; round++)
                {
                    gmxfmm_assign(plan.get(), x.data());
                }
                messages[task] = gmxfmm_message(plan.get());
            });
    }
    for (std::thread& thread : threads)
    {
        thread.join();
    }
    for (std::size_t task = 0; task < tasks; task++)
    {
        EXPECT_NE(messages[task].find(std::to_string(50 + task)), std::string::npos) << messages[task];
    }
}
