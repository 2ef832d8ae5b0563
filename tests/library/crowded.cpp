/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How many threads measure while other processes want the processors, too. */
#include <gtest/gtest.h>

extern "C"
{
#include "fmm/process.h"
}

namespace
{

/* Threads of eight for n particles, when this process lost a processor so often in so many seconds on one. */
int threadsAfter(long switches, double seconds, std::int64_t n)
{
    gmxfmm_options options;
    fmm_watch      watch = fmm_watch_begin();
    gmxfmm_default_options(&options);
    options.accuracy = 1e-5;
    watch.seconds -= seconds;
    watch.switches -= switches;
    return fmm_crowded_threads(&watch, &options, 8, n);
}

} // namespace

/* A time slice is some milliseconds. On a machine of one's own the system takes a processor a few times a second. */
TEST(CrowdedThreads, AreFewWhereParticlesAre)
{
    EXPECT_EQ(threadsAfter(100, 0.5, 5000), 1) << "every 5 ms";
    EXPECT_EQ(threadsAfter(100, 0.5, 100 * 1000 * 1000), 8) << "work for all";
    EXPECT_EQ(threadsAfter(4, 1, 5000), 8) << "four times a second";
}

TEST(CrowdedThreads, AreAllWhereNobodyElseIs)
{
    EXPECT_EQ(threadsAfter(0, 10, 5000), 8);
}
