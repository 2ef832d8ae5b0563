/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The treecode on several ranks of which each has a device, the same one or others, against the same ranks on the CPU:
 * owners, trees and lists are the same, so that rounding is all that differs. (The suites ranks and, with
 * GMXFMM_TESTS_RANKS, treecode run on a device, too, with GMXFMM_TESTS_DEVICE=cuda.)
 */
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "support/cuda.h"
#include "support/device_arrays.h"
#include "support/norms.h"
#include "support/on_ranks.h"

using namespace fmmtest;

namespace
{

using Numbers = std::vector<double>;

/* How numbers travel between devices. */
enum class Way
{
    Threads, /* ranks read each other's devices */
    Host,    /* by a communicator that knows no devices */
    Device   /* by one that takes their addresses */
};

/* A communicator of threads that hides what it is, or copies memory of devices. */
struct Hidden
{
    gmxfmm_comm threads;
    bool        device;
};

int gatherHidden(void* context, const void* send, std::size_t bytes, void* receive)
{
    const auto* h = static_cast<const Hidden*>(context);
    return h->threads.all_gather(h->threads.context, send, bytes, receive);
}

/* Addresses of devices are shown as messages of a pointer, and what is there is copied by the receiver. */
int exchangeHidden(void* context, int n, const gmxfmm_parcel* m)
{
    const auto* h = static_cast<const Hidden*>(context);
    if (!h->device)
    {
        return h->threads.exchange(h->threads.context, n, m);
    }
    std::vector<const void*>   own(static_cast<std::size_t>(n)), theirs(own);
    std::vector<gmxfmm_parcel> pointers(m, m + n);
    for (std::size_t i = 0; i < own.size(); i++)
    {
        own[i]      = m[i].send;
        pointers[i] = {m[i].peer, &own[i], sizeof(own[i]), &theirs[i], sizeof(theirs[i])};
    }
    int     failed = h->threads.exchange(h->threads.context, n, pointers.data());
    char    here   = 0;
    Numbers all(static_cast<std::size_t>(h->threads.size));
    for (std::size_t i = 0; i < own.size(); i++)
    {
        if (m[i].receive_bytes > 0)
        {
            failed += cudaMemcpy(m[i].receive, theirs[i], m[i].receive_bytes, cudaMemcpyDefault) != cudaSuccess;
        }
    }
    failed += cudaDeviceSynchronize() != cudaSuccess;
    /* what was sent may be overwritten when all have it */
    failed += h->threads.all_gather(h->threads.context, &here, sizeof(here), all.data());
    return failed;
}

struct Charges
{
    Numbers x, q, targets;
};

/* Denser in the middle, so that leaves are of many sizes; some without charge. */
Charges chargesOf(std::size_t n, bool targets, unsigned seed = 3)
{
    std::mt19937_64 random(seed);
    Charges         s;
    for (std::size_t i = 0; i < n; i++)
    {
        for (int d = 0; d < 3; d++)
        {
            s.x.push_back(std::pow(uniform(random, -1, 1), 3));
        }
        s.q.push_back(i % 11 == 0 ? 0 : uniform(random, -1, 1));
    }
    for (std::size_t i = 0; i < (targets ? n / 3 : 0); i++)
    {
        for (int d = 0; d < 3; d++)
        {
            s.targets.push_back(1.5 * uniform(random, -1, 1));
        }
    }
    return s;
}

gmxfmm_options settings(gmxfmm_device device, gmxfmm_kernel kernel, gmxfmm_precision precision, bool dual)
{
    gmxfmm_options o = withKernel(treecodeOptions(0.8, 4, 150, dual), kernel, precision);
    o.device         = device;
    return o;
}

void onRanks(int num_ranks, Way way, const std::function<void(const gmxfmm_comm&)>& run)
{
    fmmtest::onRanks(num_ranks,
                     [&](gmxfmm_comm comm)
                     {
                         Hidden hidden = {comm, way == Way::Device};
                         if (way != Way::Threads)
                         {
                             comm = {comm.rank, num_ranks, &hidden, gatherHidden, exchangeHidden, way == Way::Device};
                         }
                         run(comm);
                     });
}

struct Sums
{
    Numbers       potential, field;
    double        energy = 0;
    gmxfmm_info   info   = sized<gmxfmm_info>();
    gmxfmm_status status = GMXFMM_OK;
    std::string   message;
};

/* Numbers of every num_ranks-th place from the rank's on. */
Numbers shareOf(const Numbers& all, std::size_t components, const gmxfmm_comm& comm)
{
    Numbers share;
    for (std::size_t i = static_cast<std::size_t>(comm.rank); i < all.size() / components;
         i += static_cast<std::size_t>(comm.size))
    {
        const auto first = all.begin() + static_cast<std::ptrdiff_t>(components * i);
        share.insert(share.end(), first, first + static_cast<std::ptrdiff_t>(components));
    }
    return share;
}

void deliver(const Numbers& share, std::size_t components, const gmxfmm_comm& comm, Numbers* all)
{
    for (std::size_t k = 0; k < share.size() / components; k++)
    {
        for (std::size_t d = 0; d < components; d++)
        {
            (*all)[components * (static_cast<std::size_t>(comm.rank) + k * static_cast<std::size_t>(comm.size)) + d] =
                share[components * k + d];
        }
    }
}

/* The second step of a plan, with particles a little elsewhere than at its assignment, for good measure. device: that
 * of a rank. */
Sums solve(
    gmxfmm_options o, const Charges& s, int num_ranks, Way way, bool withField, const std::function<int(int)>& device)
{
    const bool        own = s.targets.empty();
    const std::size_t m   = (own ? s.x : s.targets).size() / 3;
    Sums              all;
    all.potential.resize(m);
    all.field.resize(3 * m);
    onRanks(num_ranks, way,
            [&](const gmxfmm_comm& comm)
            {
                const Numbers  x = shareOf(s.x, 3, comm), q = shareOf(s.q, 1, comm), y = shareOf(s.targets, 3, comm);
                const auto     n            = static_cast<std::int64_t>(q.size());
                gmxfmm_plan*   plan         = nullptr;
                char           message[512] = "";
                gmxfmm_options mine         = o;
                mine.device_id              = device(comm.rank);
                ASSERT_EQ(gmxfmm_create_parallel(&plan, &mine, &comm, n, nullptr, message, sizeof(message)), GMXFMM_OK)
                    << message;
                const std::size_t num = own ? q.size() : y.size() / 3;
                Numbers           potential(num), field(3 * num), before = x;
                gmxfmm_output     out = sized<gmxfmm_output>();
                out.potential         = potential.data();
                out.field             = withField ? field.data() : nullptr;
                out.want_energy       = own;
                for (double& place : before)
                {
                    place += 1e-4;
                }
                EXPECT_EQ(gmxfmm_set_charges(plan, n, q.data()), GMXFMM_OK) << gmxfmm_message(plan);
                EXPECT_EQ(gmxfmm_set_targets(plan, static_cast<std::int64_t>(y.size() / 3), y.data()), GMXFMM_OK)
                    << gmxfmm_message(plan);
                EXPECT_EQ(gmxfmm_assign(plan, before.data()), GMXFMM_OK) << gmxfmm_message(plan);
                EXPECT_EQ(gmxfmm_execute(plan, before.data(), &out), GMXFMM_OK) << gmxfmm_message(plan);
                EXPECT_EQ(gmxfmm_execute(plan, x.data(), &out), GMXFMM_OK) << gmxfmm_message(plan);
                deliver(potential, 1, comm, &all.potential);
                deliver(field, 3, comm, &all.field);
                if (comm.rank == 0)
                {
                    all.energy = out.energy_near + out.energy_far;
                    gmxfmm_get_info(plan, &all.info);
                }
                gmxfmm_destroy(plan);
            });
    return all;
}

int onFirst(int)
{
    return 0;
}

/* Ranks over all devices in turn. */
int onAll(int rank)
{
    int count = 1;
    cudaGetDeviceCount(&count);
    return rank % count;
}

using Case = std::tuple<gmxfmm_kernel, gmxfmm_precision, bool, int>;

std::string nameOf(const testing::TestParamInfo<Case>& info)
{
    return std::string(std::get<0>(info.param) == GMXFMM_YUKAWA ? "Yukawa" : "Coulomb") +
           (std::get<1>(info.param) == GMXFMM_SINGLE ? "Single" : "Double") + (std::get<2>(info.param) ? "Dual" : "") +
           std::to_string(std::get<3>(info.param));
}

class CudaRanks : public WithCuda<testing::TestWithParam<Case>>
{
  protected:
    /* On the CPU in double precision: in single, batches lose digits of pairs that are near. */
    static gmxfmm_options options(gmxfmm_device device)
    {
        return settings(device, std::get<0>(GetParam()), device == GMXFMM_CPU ? GMXFMM_DOUBLE : std::get<1>(GetParam()),
                        std::get<2>(GetParam()));
    }
    static int num()
    {
        return std::get<3>(GetParam());
    }
};

using CudaRanksArrays = WithCuda<>;
using CudaRanksErrors = WithCuda<>;

} // namespace

TEST_P(CudaRanks, AgreeWithTheCpu)
{
    /* rounding of sums in another order; in single precision, of numbers and 1/r, and of exp: as cuda/treecode.cpp has
     * for one rank */
    const bool   isDouble  = std::get<1>(GetParam()) == GMXFMM_DOUBLE;
    const double potential = isDouble ? 1e-13 : 2e-6, field = isDouble ? 1e-12 : 3e-5;
    for (bool targets : {false, true})
    {
        const Charges s   = chargesOf(6000, targets);
        const Sums    cpu = solve(options(GMXFMM_CPU), s, num(), Way::Threads, true, onFirst);
        for (bool withField : {false, true})
        {
            for (Way way : {Way::Threads, Way::Host, Way::Device})
            {
                if (way != Way::Threads && !withField)
                {
                    continue; /* what travels is the same */
                }
                const Sums gpu = solve(options(GMXFMM_CUDA), s, num(), way, withField, onAll);
                EXPECT_LT(relativeRms(gpu.potential, cpu.potential), potential) << static_cast<int>(way);
                if (withField)
                {
                    EXPECT_LT(relativeRms(gpu.field, cpu.field), field) << static_cast<int>(way);
                }
                EXPECT_NEAR(gpu.energy, cpu.energy, 10 * potential * std::abs(cpu.energy));
                EXPECT_EQ(gpu.info.num_clusters, cpu.info.num_clusters);
                EXPECT_DOUBLE_EQ(gpu.info.pairs_per_target, cpu.info.pairs_per_target);
            }
        }
    }
}

/* Also whatever way numbers travel, and whether ranks share a device. */
TEST_P(CudaRanks, GiveTheSameBitsInEveryRun)
{
    const Charges s     = chargesOf(5000, false);
    const Sums    first = solve(options(GMXFMM_CUDA), s, num(), Way::Threads, true, onFirst);
    for (Way way : {Way::Threads, Way::Host, Way::Device})
    {
        const Sums other = solve(options(GMXFMM_CUDA), s, num(), way, true, onAll);
        EXPECT_EQ(first.potential, other.potential);
        EXPECT_EQ(first.field, other.field);
        EXPECT_EQ(first.energy, other.energy);
    }
}

INSTANTIATE_TEST_SUITE_P(,
                         CudaRanks,
                         testing::Combine(testing::Values(GMXFMM_COULOMB, GMXFMM_YUKAWA),
                                          testing::Values(GMXFMM_SINGLE, GMXFMM_DOUBLE),
                                          testing::Bool(),
                                          testing::Values(2, 3, 4, 8)),
                         nameOf);

/* Positions and charges may be on the device, results may not. */
TEST_F(CudaRanksArrays, OfTheDevice)
{
    const int            num = 2;
    const Charges        s   = chargesOf(2000, false);
    const gmxfmm_options o   = settings(GMXFMM_CUDA, GMXFMM_COULOMB, GMXFMM_DOUBLE, false);
    Sums                 all = solve(o, s, num, Way::Threads, false, onFirst);
    Numbers              found(all.potential.size());
    onRanks(num, Way::Threads,
            [&](const gmxfmm_comm& comm)
            {
                const Numbers             share = shareOf(s.q, 1, comm);
                const DeviceArray<double> x(shareOf(s.x, 3, comm)), q(share), refused(share.size());
                const auto                n    = static_cast<std::int64_t>(share.size());
                gmxfmm_plan*              plan = nullptr;
                Numbers                   potential(share.size());
                gmxfmm_output             out          = sized<gmxfmm_output>();
                char                      message[512] = "";
                ASSERT_EQ(gmxfmm_create_parallel(&plan, &o, &comm, n, nullptr, message, sizeof(message)), GMXFMM_OK)
                    << message;
                EXPECT_EQ(gmxfmm_set_charges(plan, n, q.data()), GMXFMM_OK) << gmxfmm_message(plan);
                EXPECT_EQ(gmxfmm_assign(plan, x.data()), GMXFMM_OK) << gmxfmm_message(plan);
                out.potential = comm.rank == 1 ? refused.data() : potential.data();
                EXPECT_EQ(gmxfmm_execute(plan, x.data(), &out), GMXFMM_ERROR_OPTION);
                expectMessage(plan, "rank 1: several ranks give results to arrays");
                out.potential = potential.data();
                EXPECT_EQ(gmxfmm_execute(plan, x.data(), &out), GMXFMM_OK) << gmxfmm_message(plan);
                deliver(potential, 1, comm, &found);
                gmxfmm_destroy(plan);
            });
    EXPECT_LT(relativeRms(found, all.potential), 1e-12); /* clusters of an assignment at other places */
}

/* A rank whose device is none: all are told. */
TEST_F(CudaRanksErrors, OfADeviceAreThoseOfAll)
{
    std::array<std::string, 3> messages;
    onRanks(3, Way::Threads,
            [&](const gmxfmm_comm& comm)
            {
                gmxfmm_options o            = settings(GMXFMM_CUDA, GMXFMM_COULOMB, GMXFMM_DOUBLE, false);
                gmxfmm_plan*   plan         = nullptr;
                char           message[512] = "";
                o.device_id                 = comm.rank == 1 ? 255 : 0;
                EXPECT_EQ(gmxfmm_create_parallel(&plan, &o, &comm, 10, nullptr, message, sizeof(message)),
                          GMXFMM_ERROR_DEVICE);
                EXPECT_EQ(plan, nullptr);
                messages[static_cast<std::size_t>(comm.rank)] = message;
            });
    EXPECT_NE(messages[0].find("rank 1: "), std::string::npos) << messages[0];
    EXPECT_EQ(messages[0], messages[1]);
    EXPECT_EQ(messages[0], messages[2]);
}
