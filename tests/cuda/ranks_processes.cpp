/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The treecode on ranks that are processes of one machine, which read from each other's devices (CUDA IPC) where they
 * can: the same bits as by way of the host. Machines and containers that refuse that are seldom at hand, so calls of
 * the CUDA runtime are made to fail here: the linker (--wrap) calls these functions in the place of the runtime's.
 *
 * A process that has used CUDA must not fork: here only children do.
 */
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <csignal>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "support/cuda.h"
#include "support/device_arrays.h"
#include "support/on_ranks.h"

using namespace fmmtest;

namespace
{

enum
{
    c_mostRanks = 3,
    c_arena     = 16 << 20, /* bytes that a rank shows others at once */
    c_first     = 8000,     /* particles of the first assignment of each plan */
    c_second    = 160000,   /* and of the second, which sends more than 2 MB: memory has to grow */
    c_skip      = 77
};

/* What fails on this rank. */
struct Failures
{
    bool handle = false, open = false;
    bool elsewhere = false; /* handles are of other memory */
};

Failures failures; /* functions of C have nothing else to read */

} // namespace

extern "C"
{
    cudaError_t __real_cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* memory);
    cudaError_t __real_cudaIpcOpenMemHandle(void** memory, cudaIpcMemHandle_t handle, unsigned flags);

    cudaError_t __wrap_cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* memory)
    {
        if (failures.elsewhere)
        {
            cudaMalloc(&memory, c_arena);
            cudaMemset(memory, 0, c_arena);
        }
        return failures.handle ? cudaErrorNotSupported : __real_cudaIpcGetMemHandle(handle, memory);
    }

    cudaError_t __wrap_cudaIpcOpenMemHandle(void** memory, cudaIpcMemHandle_t handle, unsigned flags)
    {
        return failures.open ? cudaErrorMapBufferObjectFailed : __real_cudaIpcOpenMemHandle(memory, handle, flags);
    }
}

namespace
{

/* What a rank has found. */
struct Found
{
    int    reached[2]; /* of both assignments */
    char   note[256], message[512];
    double potential[c_second];
};

/* Memory that all processes share. */
struct Shared
{
    pthread_barrier_t barrier;
    int               size;
    struct
    {
        int         n;
        int         peer[c_mostRanks];
        std::size_t begin[c_mostRanks], bytes[c_mostRanks];
    } parcels[c_mostRanks];
    Found found[c_mostRanks];
    char  arena[c_mostRanks][c_arena];
};

struct Context
{
    Shared* shared;
    int     rank;
};

int gather(void* context, const void* send, std::size_t bytes, void* receive)
{
    const auto* c = static_cast<Context*>(context);
    if (bytes > c_arena)
    {
        return 1;
    }
    std::memcpy(c->shared->arena[c->rank], send, bytes);
    pthread_barrier_wait(&c->shared->barrier);
    for (int i = 0; i < c->shared->size; i++)
    {
        std::memcpy(static_cast<char*>(receive) + static_cast<std::size_t>(i) * bytes, c->shared->arena[i], bytes);
    }
    pthread_barrier_wait(&c->shared->barrier);
    return 0;
}

int exchange(void* context, int n, const gmxfmm_parcel* m)
{
    const auto* c   = static_cast<Context*>(context);
    auto&       own = c->shared->parcels[c->rank];
    std::size_t at  = 0;
    int         bad = 0;
    own.n           = n;
    for (int k = 0; k < n; k++)
    {
        own.peer[k]  = m[k].peer;
        own.begin[k] = at;
        own.bytes[k] = m[k].send_bytes;
        bad += at + m[k].send_bytes > c_arena;
        if (bad == 0 && m[k].send_bytes > 0)
        {
            std::memcpy(c->shared->arena[c->rank] + at, m[k].send, m[k].send_bytes);
        }
        at += m[k].send_bytes;
    }
    pthread_barrier_wait(&c->shared->barrier);
    for (int k = 0; k < n; k++)
    {
        const auto& other = c->shared->parcels[m[k].peer];
        for (int j = 0; j < other.n; j++)
        {
            if (other.peer[j] == c->rank && m[k].receive_bytes > 0)
            {
                bad += other.bytes[j] != m[k].receive_bytes;
                std::memcpy(m[k].receive, c->shared->arena[m[k].peer] + other.begin[j], m[k].receive_bytes);
            }
        }
    }
    pthread_barrier_wait(&c->shared->barrier);
    return bad;
}

/* Numbers in [-1, 1] that all processes agree about (Knuth, MMIX): three of a place and a charge. */
std::vector<double> particle(int i)
{
    std::uint64_t       state = 1 + static_cast<std::uint64_t>(i);
    std::vector<double> all(4);
    for (int k = 0; k < 8; k++)
    {
        state                                = state * 6364136223846793005ULL + 1442695040888963407ULL;
        all[static_cast<std::size_t>(k % 4)] = static_cast<double>(state >> 40) / 8388608 - 1;
    }
    return all;
}

/* Every size-th of n particles on this rank. */
gmxfmm_status step(gmxfmm_plan* plan, const gmxfmm_comm& comm, int n, double* potential)
{
    std::vector<double> x, q;
    for (int i = comm.rank; i < n; i += comm.size)
    {
        const std::vector<double> p = particle(i);
        x.insert(x.end(), p.begin(), p.begin() + 3);
        q.push_back(p[3]);
    }
    gmxfmm_output out    = sized<gmxfmm_output>();
    out.potential        = potential;
    gmxfmm_status status = gmxfmm_set_charges(plan, static_cast<std::int64_t>(q.size()), q.data());
    status               = status == GMXFMM_OK ? gmxfmm_assign(plan, x.data()) : status;
    return status == GMXFMM_OK ? gmxfmm_execute(plan, x.data(), &out) : status;
}

/* A rank, in its process; the status to end with. */
int run(Shared* shared, int rank, bool oneDevice)
{
    int            count   = 0;
    Found*         found   = &shared->found[rank];
    Context        context = {shared, rank};
    gmxfmm_options o       = onDevice(withKernel(treecodeOptions(0.7, 7, 400), GMXFMM_COULOMB, GMXFMM_DOUBLE));
    gmxfmm_plan*   plan    = nullptr;
    gmxfmm_comm    comm    = {rank, shared->size, &context, gather, exchange, 0};
    if (!haveCuda() || cudaGetDeviceCount(&count) != cudaSuccess)
    {
        return c_skip;
    }
    o.device_id          = oneDevice ? 0 : rank % count;
    gmxfmm_status status = gmxfmm_create_parallel(&plan, &o, &comm, c_first / shared->size, nullptr, found->message,
                                                  sizeof(found->message));
    if (status != GMXFMM_OK)
    {
        return 1;
    }
    for (int k = 0; k < 2; k++)
    {
        gmxfmm_ranks_info info;
        status = step(plan, comm, k == 0 ? c_first : c_second, found->potential);
        if (status != GMXFMM_OK || gmxfmm_get_ranks_info(plan, &info) != GMXFMM_OK)
        {
            std::snprintf(found->message, sizeof(found->message), "%s", gmxfmm_message(plan));
            return 1;
        }
        found->reached[k] = info.num_reached;
        std::snprintf(found->note, sizeof(found->note), "%s", info.reached_note);
    }
    /* once more, with the same memory */
    std::vector<double> again(c_second);
    status          = step(plan, comm, c_second, again.data());
    const auto num  = static_cast<std::size_t>((c_second - rank + shared->size - 1) / shared->size);
    const bool same = status == GMXFMM_OK && std::memcmp(again.data(), found->potential, num * sizeof(double)) == 0;
    gmxfmm_destroy(plan);
    if (!same)
    {
        std::snprintf(found->message, sizeof(found->message), "a third step gives other numbers");
    }
    return same ? 0 : 1;
}

class RanksInProcesses : public testing::TestWithParam<bool>
{
  protected:
    void SetUp() override
    {
        void* memory =
            mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        ASSERT_NE(memory, MAP_FAILED);
        shared_ = static_cast<Shared*>(memory);
    }
    void TearDown() override
    {
        munmap(shared_, sizeof(Shared));
    }

    /* Runs as many ranks, each with what fails there. False: skipped or failed. */
    bool runOn(int size, const std::function<Failures(int)>& failing)
    {
        pthread_barrierattr_t attributes;
        pthread_barrierattr_init(&attributes);
        pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
        pthread_barrier_init(&shared_->barrier, &attributes, static_cast<unsigned>(size));
        pthread_barrierattr_destroy(&attributes);
        shared_->size = size;
        std::memset(shared_->found, 0, sizeof(shared_->found));
        std::vector<pid_t> ranks;
        for (int rank = 0; rank < size; rank++)
        {
            const pid_t child = fork();
            if (child == 0)
            {
                failures = failing(rank);
                _exit(run(shared_, rank, GetParam()));
            }
            EXPECT_GT(child, 0);
            ranks.push_back(child);
        }
        return waitFor(&ranks);
    }

    /* The first that fails ends the others, which may wait for it. */
    bool waitFor(std::vector<pid_t>* ranks)
    {
        bool skipped = false, failed = false;
        for (std::size_t left = ranks->size(); left > 0; left--)
        {
            int         status = 0;
            const pid_t ended  = waitpid(-1, &status, 0);
            const auto  which  = std::find(ranks->begin(), ranks->end(), ended);
            if (which == ranks->end())
            {
                ADD_FAILURE() << "waitpid gives " << ended;
                return false;
            }
            *which = 0;
            if (WIFEXITED(status) && WEXITSTATUS(status) == c_skip)
            {
                skipped = true;
            }
            else if ((!WIFEXITED(status) || WEXITSTATUS(status) != 0) && !skipped && !failed)
            {
                failed = true;
                ADD_FAILURE() << "rank " << which - ranks->begin() << ": "
                              << shared_->found[which - ranks->begin()].message;
            }
            for (const pid_t other : *ranks)
            {
                if ((failed || skipped) && other > 0)
                {
                    kill(other, SIGKILL);
                }
            }
        }
        return !skipped && !failed;
    }

    /* All of them, in the order of the particles. */
    std::vector<double> potentials() const
    {
        std::vector<double> all(c_second);
        for (int i = 0; i < c_second; i++)
        {
            all[static_cast<std::size_t>(i)] = shared_->found[i % shared_->size].potential[i / shared_->size];
        }
        return all;
    }

    Shared* shared_ = nullptr;
};

/* Of one in so many particles, the relative RMS difference from sums over all pairs. */
double errorOf(const std::vector<double>& potential)
{
    const int           every      = 400;
    double              difference = 0, norm = 0;
    std::vector<double> all;
    for (int i = 0; i < c_second; i++)
    {
        const std::vector<double> p = particle(i);
        all.insert(all.end(), p.begin(), p.end());
    }
    for (std::size_t i = 0; i < c_second; i += every)
    {
        double exact = 0;
        for (std::size_t j = 0; j < c_second; j++)
        {
            double square = 0;
            for (std::size_t d = 0; d < 3; d++)
            {
                square += std::pow(all[4 * i + d] - all[4 * j + d], 2);
            }
            exact += i != j ? all[4 * j + 3] / std::sqrt(square) : 0;
        }
        difference += std::pow(potential[i] - exact, 2);
        norm += exact * exact;
    }
    return std::sqrt(difference / norm);
}

Failures none(int)
{
    return {};
}

} // namespace

TEST_P(RanksInProcesses, GiveTheSameBitsAsByWayOfTheHost)
{
    for (int size = 2; size <= c_mostRanks; size++)
    {
        if (!runOn(size, none))
        {
            GTEST_SKIP() << "no CUDA device";
        }
        const std::vector<double> direct = potentials();
        /* what the model expects of this theta and degree; one rank has 1e-7 to 1.3e-6 with 60,000 to 280,000 charges,
         * as clusters are cut here or there */
        EXPECT_LT(errorOf(direct), 1.5e-6);
        const Found first = shared_->found[0];
        ASSERT_TRUE(runOn(size,
                          [](int)
                          {
                              Failures f;
                              f.open = true;
                              return f;
                          }));
        EXPECT_EQ(potentials(), direct);
        if (first.reached[1] == 0)
        {
            GTEST_SKIP() << "this machine refuses CUDA IPC: " << first.note;
        }
        EXPECT_EQ(shared_->found[0].reached[1], 0);
        EXPECT_NE(std::string(shared_->found[0].note).find("memory of rank 1 is out of reach"), std::string::npos)
            << shared_->found[0].note;
        EXPECT_EQ(first.reached[0], size - 1);
        EXPECT_EQ(first.reached[1], size - 1);
        EXPECT_STREQ(first.note, "");
    }
}

/* A rank without a handle, or with one of other memory, and one that opens none: all else goes on. */
TEST_P(RanksInProcesses, ThatCannotReachOneStillReachTheOthers)
{
    if (!runOn(c_mostRanks, none))
    {
        GTEST_SKIP() << "no CUDA device";
    }
    const std::vector<double> direct = potentials();
    if (shared_->found[0].reached[1] == 0)
    {
        GTEST_SKIP() << "this machine refuses CUDA IPC: " << shared_->found[0].note;
    }
    for (int kind = 0; kind < 3; kind++)
    {
        SCOPED_TRACE(kind);
        ASSERT_TRUE(runOn(c_mostRanks,
                          [kind](int rank)
                          {
                              Failures f;
                              f.handle    = kind == 0 && rank == 2;
                              f.open      = kind == 1 && rank == 2;
                              f.elsewhere = kind == 2 && rank == 2;
                              return f;
                          }));
        const char* expected[3] = {"rank 2 shows no memory", "this rank's memory is out of reach for rank 2",
                                   "memory of rank 2 is out of reach: other numbers are there"};
        EXPECT_EQ(potentials(), direct);
        EXPECT_EQ(shared_->found[0].reached[1], 1);
        EXPECT_EQ(shared_->found[1].reached[1], 1);
        EXPECT_EQ(shared_->found[2].reached[1], 0);
        EXPECT_STREQ(shared_->found[0].note, expected[kind]);
        EXPECT_STRNE(shared_->found[2].note, "");
    }
}

INSTANTIATE_TEST_SUITE_P(,
                         RanksInProcesses,
                         testing::Bool(),
                         [](const auto& device)
                         { return device.param ? std::string("OnOneDevice") : std::string("OnAllDevices"); });
