/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Several devices of which one has no memory left, cannot be reached, or is too old: an error that names it, or fewer
 * devices. A machine seldom shows that, so calls of the CUDA runtime are made to fail here: the linker (--wrap) calls
 * these functions in the place of the runtime's. */
#include <algorithm>
#include <array>
#include <string>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "support/cuda.h"
#include "support/device_arrays.h"
#include "support/on_ranks.h"
#include "support/on_stream.h"
#include "support/paths.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

struct Failures
{
    int         allocation = -1;    /* this one from now on fails, counted from 0; negative: none */
    bool        all        = false; /* and all after it */
    int         made       = 0;     /* allocations since */
    int         device     = -1;    /* of this device alone; negative: of any */
    bool        peers      = true;
    cudaError_t enabling   = cudaSuccess; /* what access to another device's memory ends with */
    int         from = -1, peer = -1;     /* of this device alone, and to this one; negative: of and to any */
    int         old   = -1;               /* this device has compute capability 5.0 */
    bool        ofOne = false;            /* allocations of the guilty thread alone count and fail */
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
        const int  number = failures.made++;
        const bool fails  = number == failures.allocation || (failures.all && number > failures.allocation);
        return fails ? cudaErrorMemoryAllocation : __real_cudaMalloc(memory, bytes);
    }

    cudaError_t __wrap_cudaDeviceCanAccessPeer(int* can, int device, int peer)
    {
        const cudaError_t error = __real_cudaDeviceCanAccessPeer(can, device, peer);
        *can                    = *can && failures.peers;
        return error;
    }

    cudaError_t __wrap_cudaDeviceEnablePeerAccess(int peer, unsigned flags)
    {
        int device = 0;
        cudaGetDevice(&device);
        const bool fails = failures.enabling != cudaSuccess && (failures.from < 0 || device == failures.from) &&
                           (failures.peer < 0 || peer == failures.peer);
        return fails ? failures.enabling : __real_cudaDeviceEnablePeerAccess(peer, flags);
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
        use(water({4.8, 0, 0, 0, 1.6, 0, 0, 0, 1.7}, 5), onDevice(explicitOptions(6, 12, 4, 4, 1)));
    }
    void use(const System& system, const gmxfmm_options& options)
    {
        system_  = system;
        options_ = options;
        start_   = {0};
        list_.clear();
        for (std::size_t i = 0; i < system_.size(); i++)
        {
            if (i < system_.excluded.size())
            {
                list_.insert(list_.end(), system_.excluded[i].begin(), system_.excluded[i].end());
            }
            start_.push_back(static_cast<int>(list_.size()));
        }
    }
    void TearDown() override
    {
        failures = Failures();
    }
    gmxfmm_options on(const std::vector<int>& devices) const
    {
        gmxfmm_options options = options_;
        options.num_devices    = static_cast<int>(devices.size());
        std::copy(devices.begin(), devices.end(), options.devices);
        return options;
    }
    /* The same with the near and far field in equal shares. */
    gmxfmm_options shared(const std::vector<int>& devices) const
    {
        gmxfmm_options options = on(devices);
        std::fill_n(options.shares, devices.size(), 1.0);
        std::fill_n(options.far_shares, devices.size(), 1.0);
        return options;
    }
    static gmxfmm_info infoOf(const gmxfmm_plan* plan)
    {
        gmxfmm_info info = sized<gmxfmm_info>();
        EXPECT_EQ(gmxfmm_get_info(plan, &info), GMXFMM_OK);
        return info;
    }
    static void expectNote(const gmxfmm_plan* plan, const std::string& part)
    {
        EXPECT_NE(std::string(infoOf(plan).devices_note).find(part), std::string::npos) << infoOf(plan).devices_note;
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

    void expectNearFieldOnly();

    System           system_;
    gmxfmm_options   options_;
    std::vector<int> start_, list_;
    char             message_[512];
    int              count_ = 0;
};

} // namespace

/* Each allocation in turn, until none is left to fail: an error, after which the plan computes what it would have; or,
 * of a part of the far field, none, and all of it is on the first device. */
TEST_F(DeviceFailures, NoMemoryIsAnErrorAndNoMore)
{
    std::vector<double> expected, force;
    gmxfmm_plan*        plan = nullptr;
    ASSERT_EQ(create(&plan, on({0, count_ > 1 ? 1 : 0})), GMXFMM_OK) << message_;
    ASSERT_EQ(compute(plan, &expected), GMXFMM_OK) << gmxfmm_message(plan);
    gmxfmm_destroy(plan);
    const int most = 1000;
    int       made = 0, notes = 0;
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
        if (!all && status == GMXFMM_OK)
        {
            expectNote(plan, "has no memory for a part of it");
            EXPECT_EQ(infoOf(plan).far_shares[0], 1);
            notes++;
        }
        else
        {
            EXPECT_EQ(status, all ? GMXFMM_OK : GMXFMM_ERROR_MEMORY) << gmxfmm_message(plan);
        }
        if (!all && status != GMXFMM_OK)
        {
            expectMessage(plan, "memory");
            EXPECT_EQ(compute(plan, &force), GMXFMM_OK) << gmxfmm_message(plan);
        }
        EXPECT_EQ(force, expected);
        gmxfmm_destroy(plan);
    }
    EXPECT_GT(made, 10);
    EXPECT_LT(made, most);
    EXPECT_EQ(notes, 7); /* field, two spectra, S, twiddles, work items, background */
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
    expectMessage(plan, "device 1 has no memory");
    expectMessage(plan, "leave it out of devices");
    gmxfmm_destroy(plan);
}

/* Room for its particles that the second device has, but none for its part of the far field: the near field is shared,
 * at this assignment and at the next one. */
void DeviceFailures::expectNearFieldOnly()
{
    std::vector<double> expected, force;
    gmxfmm_plan *       near = nullptr, *plan = nullptr;
    gmxfmm_options      options = shared({0, 1});
    options.far_shares[1]       = 0;
    failures.device             = 1;
    failures.made               = 0;
    ASSERT_EQ(create(&near, options), GMXFMM_OK) << message_;
    ASSERT_EQ(compute(near, &expected), GMXFMM_OK) << gmxfmm_message(near);
    failures.allocation = failures.made; /* those of the near field are made */
    failures.made       = 0;
    failures.all        = true;
    ASSERT_GT(failures.allocation, 0);
    ASSERT_EQ(create(&plan, shared({0, 1})), GMXFMM_OK) << message_;
    for (int again = 0; again < 2; again++)
    {
        ASSERT_EQ(compute(plan, &force), GMXFMM_OK) << gmxfmm_message(plan);
        EXPECT_EQ(force, expected);
        EXPECT_EQ(infoOf(plan).num_devices, 2);
        EXPECT_EQ(infoOf(plan).shares[1], 0.5);
        EXPECT_EQ(infoOf(plan).far_shares[0], 1);
        expectNote(plan, "the far field is on device 0 alone: device 1 has no memory for a part of it");
        EXPECT_EQ(infoOf(plan).bytes, infoOf(near).bytes);
    }
    gmxfmm_destroy(near);
    gmxfmm_destroy(plan);
}

TEST_F(DeviceFailures, AFullDeviceHasNearFieldOnly)
{
    if (count_ < 2)
    {
        GTEST_SKIP() << "one device";
    }
    expectNearFieldOnly();
    failures = Failures();
    use(sodiumChloride(10, {0.1, 0.1, 0.1}), onDevice(depthOptions(GMXFMM_M2L_ROTATION, 5, 5, 1)));
    expectNearFieldOnly();
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

/* Connected with as many as can be: the second device is left out, or where it reaches the first but not the other way
 * round, computes near field only. */
TEST_F(DeviceFailures, TooManyPeersAreFewerDevices)
{
    if (count_ < 2)
    {
        GTEST_SKIP() << "one device";
    }
    std::vector<double> expected, force;
    gmxfmm_plan *       alone = nullptr, *plan = nullptr;
    ASSERT_EQ(create(&alone, on({0})), GMXFMM_OK) << message_;
    ASSERT_EQ(compute(alone, &expected), GMXFMM_OK);
    gmxfmm_destroy(alone);
    for (const int from : {1, 0})
    {
        SCOPED_TRACE(from);
        failures.enabling = cudaErrorTooManyPeers;
        failures.from     = from;
        ASSERT_EQ(create(&plan, shared({0, 1})), GMXFMM_OK) << message_;
        ASSERT_EQ(compute(plan, &force), GMXFMM_OK) << gmxfmm_message(plan);
        EXPECT_EQ(force, expected);
        EXPECT_EQ(infoOf(plan).num_devices, from == 1 ? 1 : 2);
        EXPECT_EQ(infoOf(plan).far_shares[0], 1);
        expectNote(plan, from == 1 ? "device 1 is not used: it cannot reach memory of device 0 (too many peers)"
                                   : "device 0 cannot reach memory of device 1 (too many peers)");
        gmxfmm_destroy(plan);
    }
}

/* The same between two further devices. */
TEST_F(DeviceFailures, DevicesThatCannotReachEachOtherHaveNearFieldOnly)
{
    if (count_ < 3)
    {
        GTEST_SKIP() << "fewer than three devices";
    }
    std::vector<double> expected, force;
    gmxfmm_plan *       alone = nullptr, *plan = nullptr;
    ASSERT_EQ(create(&alone, on({0})), GMXFMM_OK) << message_;
    ASSERT_EQ(compute(alone, &expected), GMXFMM_OK);
    failures.enabling = cudaErrorTooManyPeers;
    failures.from     = 1;
    failures.peer     = 2;
    ASSERT_EQ(create(&plan, shared({0, 1, 2})), GMXFMM_OK) << message_;
    ASSERT_EQ(compute(plan, &force), GMXFMM_OK) << gmxfmm_message(plan);
    EXPECT_EQ(force, expected);
    EXPECT_EQ(infoOf(plan).num_devices, 3);
    EXPECT_EQ(infoOf(plan).far_shares[0], 1);
    expectNote(plan, "the far field is on device 0 alone: device 1 cannot reach memory of device 2 (too many peers)");
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
    failures.enabling = cudaErrorInvalidDevice;
    EXPECT_EQ(create(&plan, on({0, 1})), GMXFMM_ERROR_DEVICE);
    EXPECT_EQ(plan, nullptr);
    EXPECT_NE(std::string(message_).find("cannot be given access"), std::string::npos) << message_;
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
            failures            = Failures();
            failures.allocation = made;
            failures.ofOne      = true;
            onRanks(2,
                    [&](const gmxfmm_comm& comm)
                    {
                        const auto           rank = static_cast<std::size_t>(comm.rank);
                        const auto           num  = static_cast<std::int64_t>(n);
                        std::vector<double>  x, potential(n);
                        const gmxfmm_options o            = onDevice(treecodeOptions(0.7, 2, 30, dual));
                        gmxfmm_plan*         plan         = nullptr;
                        gmxfmm_output        out          = sized<gmxfmm_output>();
                        char                 message[512] = "";
                        guilty                            = rank == 1;
                        for (std::size_t i = 0; i < 3 * n; i++)
                        {
                            x.push_back(static_cast<double>(i * 7919 % 1009) + 0.5 * static_cast<double>(rank));
                        }
                        out.potential = potential.data();
                        status[rank] = gmxfmm_create_parallel(&plan, &o, &comm, num, nullptr, message, sizeof(message));
                        text[rank]   = message;
                        if (status[rank] == GMXFMM_OK)
                        {
                            const std::vector<double> q(n, 1);
                            status[rank] = gmxfmm_set_charges(plan, num, q.data());
                            status[rank] = status[rank] == GMXFMM_OK ? gmxfmm_assign(plan, x.data()) : status[rank];
                            status[rank] =
                                status[rank] == GMXFMM_OK ? gmxfmm_execute(plan, x.data(), &out) : status[rank];
                            text[rank] = gmxfmm_message(plan);
                        }
                        gmxfmm_destroy(plan);
                    });
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
