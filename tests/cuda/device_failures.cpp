/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Several devices of which one has no memory left, cannot be reached, or is too old: an error that names it, or fewer
 * devices. A machine seldom shows that, so calls of the CUDA runtime are made to fail here: the linker (--wrap) calls
 * these functions in the place of the runtime's. */
#include <algorithm>
#include <array>
#include <string>
#include <thread>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "gmxfmm_parallel.h"
#include "support/cuda.h"
#include "support/device_arrays.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

struct Failures
{
    int         allocation = -1; /* this one from now on fails, counted from 0; negative: none */
    int         made       = 0;  /* allocations since */
    int         device     = -1; /* of this device alone; negative: of any */
    bool        peers      = true;
    cudaError_t enabling   = cudaSuccess;
    int         old        = -1;    /* this device has compute capability 5.0 */
    bool        ofOne      = false; /* allocations of the guilty thread alone count and fail */
};

Failures          failures; /* functions of C have nothing else to read */
thread_local bool guilty = false;

} // namespace

extern "C"
{
    cudaError_t __real_cudaMalloc(void** memory, std::size_t bytes);
    cudaError_t __real_cudaDeviceCanAccessPeer(int* can, int device, int peer);
    cudaError_t __real_cudaDeviceEnablePeerAccess(int peer, unsigned flags);
    cudaError_t __real_cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);

    cudaError_t __wrap_cudaMalloc(void** memory, std::size_t bytes)
    {
        int device = 0;
        cudaGetDevice(&device);
        if ((failures.device >= 0 && device != failures.device) || (failures.ofOne && !guilty))
        {
            return __real_cudaMalloc(memory, bytes);
        }
        return failures.made++ == failures.allocation ? cudaErrorMemoryAllocation : __real_cudaMalloc(memory, bytes);
    }

    cudaError_t __wrap_cudaDeviceCanAccessPeer(int* can, int device, int peer)
    {
        const cudaError_t error = __real_cudaDeviceCanAccessPeer(can, device, peer);
        *can                    = *can && failures.peers;
        return error;
    }

    cudaError_t __wrap_cudaDeviceEnablePeerAccess(int peer, unsigned flags)
    {
        return failures.enabling != cudaSuccess ? failures.enabling : __real_cudaDeviceEnablePeerAccess(peer, flags);
    }

    cudaError_t __wrap_cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device)
    {
        const cudaError_t error = __real_cudaDeviceGetAttribute(value, attribute, device);
        if (device == failures.old && attribute == cudaDevAttrComputeCapabilityMajor)
        {
            *value = 5;
        }
        return error;
    }
}

namespace
{

class DeviceFailures : public testing::Test
{
  protected:
    void SetUp() override
    {
        failures = Failures();
        if (!haveCuda())
        {
            GTEST_SKIP() << "no CUDA device";
        }
        ASSERT_EQ(cudaGetDeviceCount(&count_), cudaSuccess);
        for (const std::vector<int>& excluded : system_.excluded)
        {
            list_.insert(list_.end(), excluded.begin(), excluded.end());
            start_.push_back(static_cast<int>(list_.size()));
        }
    }
    void TearDown() override
    {
        failures = Failures();
    }
    gmxfmm_options on(const std::vector<int>& devices) const
    {
        gmxfmm_options options = onDevice(explicitOptions(6, 12, 4, 4, 1));
        options.num_devices    = static_cast<int>(devices.size());
        std::copy(devices.begin(), devices.end(), options.devices);
        return options;
    }
    gmxfmm_status create(gmxfmm_plan** plan, const gmxfmm_options& options)
    {
        return gmxfmm_create(plan, &options, static_cast<std::int64_t>(system_.size()), system_.box.data(), message_,
                             sizeof(message_));
    }
    /* set_charges, set_exclusions, assign, execute, until one fails; and the forces. */
    gmxfmm_status compute(gmxfmm_plan* plan, std::vector<double>* force) const
    {
        const std::int64_t n = static_cast<std::int64_t>(system_.size());
        force->assign(3 * system_.size(), 0);
        gmxfmm_output output = sized<gmxfmm_output>();
        output.force         = force->data();
        gmxfmm_status status = gmxfmm_set_charges(plan, n, system_.q.data());
        status               = status != GMXFMM_OK ? status : gmxfmm_set_exclusions(plan, start_.data(), list_.data());
        status               = status != GMXFMM_OK ? status : gmxfmm_assign(plan, system_.x.data());
        return status != GMXFMM_OK ? status : gmxfmm_execute(plan, system_.x.data(), &output);
    }

    const System     system_ = water({4.8, 0, 0, 0, 1.6, 0, 0, 0, 1.7}, 5);
    std::vector<int> start_  = {0}, list_;
    char             message_[512];
    int              count_ = 0;
};

} // namespace

/* Each allocation in turn, until none is left to fail: an error, after which the plan computes what it would have. */
TEST_F(DeviceFailures, NoMemoryIsAnErrorAndNoMore)
{
    std::vector<double> expected, force;
    gmxfmm_plan*        plan = nullptr;
    ASSERT_EQ(create(&plan, on({0, count_ > 1 ? 1 : 0})), GMXFMM_OK) << message_;
    ASSERT_EQ(compute(plan, &expected), GMXFMM_OK) << gmxfmm_message(plan);
    gmxfmm_destroy(plan);
    const int most = 1000;
    int       made = 0;
    for (bool all = false; !all && made < most; made++)
    {
        SCOPED_TRACE(made);
        failures                    = Failures();
        failures.allocation         = made;
        plan                        = nullptr;
        const bool          created = create(&plan, on({0, count_ > 1 ? 1 : 0})) == GMXFMM_OK;
        const gmxfmm_status status  = created ? compute(plan, &force) : GMXFMM_ERROR_MEMORY;
        if (!created)
        {
            EXPECT_EQ(plan, nullptr);
            EXPECT_NE(std::string(message_).find("memory"), std::string::npos) << message_;
            continue;
        }
        all = failures.made <= made;
        EXPECT_EQ(status, all ? GMXFMM_OK : GMXFMM_ERROR_MEMORY) << gmxfmm_message(plan);
        if (!all)
        {
            EXPECT_NE(std::string(gmxfmm_message(plan)).find("memory"), std::string::npos) << gmxfmm_message(plan);
            EXPECT_EQ(compute(plan, &force), GMXFMM_OK) << gmxfmm_message(plan);
        }
        EXPECT_EQ(force, expected);
        gmxfmm_destroy(plan);
    }
    EXPECT_GT(made, 10);
    EXPECT_LT(made, most);
}

/* Room that the second device has not: it is the one that is named. */
TEST_F(DeviceFailures, AFullDeviceIsNamed)
{
    if (count_ < 2)
    {
        GTEST_SKIP() << "one device";
    }
    std::vector<double> force;
    gmxfmm_plan*        plan = nullptr;
    ASSERT_EQ(create(&plan, on({0, 1})), GMXFMM_OK) << message_;
    failures.device     = 1;
    failures.allocation = 0;
    failures.made       = 0;
    EXPECT_EQ(compute(plan, &force), GMXFMM_ERROR_MEMORY);
    EXPECT_NE(std::string(gmxfmm_message(plan)).find("device 1 has no memory"), std::string::npos)
        << gmxfmm_message(plan);
    EXPECT_NE(std::string(gmxfmm_message(plan)).find("leave it out of devices"), std::string::npos)
        << gmxfmm_message(plan);
    gmxfmm_destroy(plan);
}

TEST_F(DeviceFailures, ADeviceOutOfReachIsLeftOut)
{
    if (count_ < 2)
    {
        GTEST_SKIP() << "one device";
    }
    std::vector<double> expected, force;
    gmxfmm_plan *       alone = nullptr, *plan = nullptr;
    gmxfmm_info         info = sized<gmxfmm_info>();
    ASSERT_EQ(create(&alone, on({0})), GMXFMM_OK) << message_;
    ASSERT_EQ(compute(alone, &expected), GMXFMM_OK);
    failures.peers = false;
    ASSERT_EQ(create(&plan, on({0, 1})), GMXFMM_OK) << message_;
    ASSERT_EQ(compute(plan, &force), GMXFMM_OK) << gmxfmm_message(plan);
    EXPECT_EQ(force, expected);
    ASSERT_EQ(gmxfmm_get_info(plan, &info), GMXFMM_OK);
    EXPECT_EQ(info.num_devices, 1);
    EXPECT_NE(std::string(info.devices_note).find("device 1 is not used"), std::string::npos) << info.devices_note;
    gmxfmm_destroy(alone);
    gmxfmm_destroy(plan);
}

TEST_F(DeviceFailures, AccessThatCannotBeEnabledIsAnError)
{
    if (count_ < 2)
    {
        GTEST_SKIP() << "one device";
    }
    gmxfmm_plan* plan = nullptr;
    failures.enabling = cudaErrorTooManyPeers;
    EXPECT_EQ(create(&plan, on({0, 1})), GMXFMM_ERROR_DEVICE);
    EXPECT_EQ(plan, nullptr);
    EXPECT_NE(std::string(message_).find("peer"), std::string::npos) << message_;
}

TEST_F(DeviceFailures, AnOldDeviceIsNamed)
{
    gmxfmm_plan* plan = nullptr;
    failures.old      = count_ - 1;
    EXPECT_EQ(create(&plan, on({0, count_ - 1})), GMXFMM_ERROR_DEVICE);
    EXPECT_NE(std::string(message_).find("CUDA device " + std::to_string(count_ - 1)), std::string::npos) << message_;
    EXPECT_NE(std::string(message_).find("5."), std::string::npos) << message_;
}

/* Each allocation of one rank of a treecode in turn: all ranks return, with one status and text that names it. */
TEST_F(DeviceFailures, NoMemoryOnOneRankIsToldByAll)
{
    const std::size_t n = 300;
    for (bool dual : {false, true})
    {
        bool failed = true;
        int  made   = 0;
        for (; failed && made < 1000; made++)
        {
            SCOPED_TRACE(made);
            std::array<gmxfmm_status, 2> status = {};
            std::array<std::string, 2>   text;
            std::array<std::thread, 2>   threads;
            gmxfmm_threads*              ranks = nullptr;
            failures                           = Failures();
            failures.allocation                = made;
            failures.ofOne                     = true;
            ASSERT_EQ(gmxfmm_threads_create(&ranks, 2), GMXFMM_OK);
            for (std::size_t rank = 0; rank < threads.size(); rank++)
            {
                threads[rank] = std::thread(
                    [&, rank]
                    {
                        const gmxfmm_comm   comm = gmxfmm_threads_comm(ranks, static_cast<int>(rank));
                        std::vector<double> x, potential(n);
                        gmxfmm_options      o            = onDevice(defaultOptions());
                        gmxfmm_plan*        plan         = nullptr;
                        gmxfmm_output       out          = sized<gmxfmm_output>();
                        char                message[512] = "";
                        guilty                           = rank == 1;
                        for (std::size_t i = 0; i < 3 * n; i++)
                        {
                            x.push_back(static_cast<double>(i * 7919 % 1009) + 0.5 * static_cast<double>(rank));
                        }
                        out.potential = potential.data();
                        o.method      = GMXFMM_TREECODE;
                        o.boundary    = GMXFMM_OPEN;
                        o.traversal   = dual ? GMXFMM_DUAL : GMXFMM_PARTICLE;
                        o.theta       = 0.7;
                        o.degree      = 2;
                        o.leaf        = 30;
                        o.num_threads = 1;
                        status[rank]  = gmxfmm_create_parallel(&plan, &o, &comm, static_cast<std::int64_t>(n), nullptr,
                                                               message, sizeof(message));
                        text[rank]    = message;
                        if (status[rank] == GMXFMM_OK)
                        {
                            const std::vector<double> q(n, 1);
                            status[rank] = gmxfmm_set_charges(plan, static_cast<std::int64_t>(n), q.data());
                            status[rank] = status[rank] == GMXFMM_OK ? gmxfmm_assign(plan, x.data()) : status[rank];
                            status[rank] =
                                status[rank] == GMXFMM_OK ? gmxfmm_execute(plan, x.data(), &out) : status[rank];
                            text[rank] = gmxfmm_message(plan);
                        }
                        gmxfmm_destroy(plan);
                    });
            }
            for (std::thread& thread : threads)
            {
                thread.join();
            }
            gmxfmm_threads_destroy(ranks);
            failed = failures.made > made;
            EXPECT_EQ(status[0], status[1]) << text[0] << text[1];
            EXPECT_EQ(status[0], failed ? GMXFMM_ERROR_MEMORY : GMXFMM_OK) << text[0];
            if (failed)
            {
                EXPECT_EQ(text[0], text[1]);
                EXPECT_NE(text[0].find("rank 1: "), std::string::npos) << text[0];
            }
        }
        EXPECT_GT(made, 30); /* the library allocates at all */
    }
}
