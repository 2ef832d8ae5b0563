/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The treecode on ranks that are threads, and particles for it. */
#ifndef GMXFMM_TESTS_ON_RANKS_H
#define GMXFMM_TESTS_ON_RANKS_H

#include <array>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "gmxfmm_parallel.h"

namespace fmmtest
{

/* Of an open system, on one thread. */
inline gmxfmm_options treecodeOptions(double theta, int degree, int leaf, bool dual = false)
{
    gmxfmm_options o;
    gmxfmm_default_options(&o);
    o.method      = GMXFMM_TREECODE;
    o.boundary    = GMXFMM_OPEN;
    o.traversal   = dual ? GMXFMM_DUAL : GMXFMM_PARTICLE;
    o.theta       = theta;
    o.degree      = degree;
    o.leaf        = leaf;
    o.num_threads = 1;
    return o;
}

inline gmxfmm_options withKernel(gmxfmm_options options, gmxfmm_kernel kernel, gmxfmm_precision precision)
{
    options.kernel    = kernel;
    options.kappa     = kernel == GMXFMM_YUKAWA ? 0.5 : 0;
    options.precision = precision;
    return options;
}

/* One of num_ranks threads runs each call. */
inline void onRanks(int num_ranks, const std::function<void(const gmxfmm_comm&)>& run)
{
    gmxfmm_threads* threads = nullptr;
    ASSERT_EQ(gmxfmm_threads_create(&threads, num_ranks), GMXFMM_OK);
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < num_ranks; rank++)
    {
        ranks.emplace_back([&, rank] { run(gmxfmm_threads_comm(threads, rank)); });
    }
    for (std::thread& rank : ranks)
    {
        rank.join();
    }
    gmxfmm_threads_destroy(threads);
}

inline double uniform(std::mt19937_64& random, double low, double high)
{
    return std::uniform_real_distribution<double>(low, high)(random);
}

inline std::array<double, 3> inCube(std::mt19937_64& random)
{
    return {uniform(random, -1, 1), uniform(random, -1, 1), uniform(random, -1, 1)};
}

inline std::array<double, 3> inPlane(std::mt19937_64& random)
{
    return {uniform(random, -1, 1), 0.25, uniform(random, -1, 1)};
}

} // namespace fmmtest

#endif
