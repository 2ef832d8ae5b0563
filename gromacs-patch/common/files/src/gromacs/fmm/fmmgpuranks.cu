/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements how several ranks of one process share an FMM on GPUs
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmgpuranks.h"

#include "config.h"

#include <cstdint>

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

#include "gromacs/gpu_utils/cudautils.cuh"
#include "gromacs/gpu_utils/device_context.h"
#include "gromacs/gpu_utils/device_stream.h"
#include "gromacs/gpu_utils/device_stream_manager.h"
#include "gromacs/gpu_utils/devicebuffer.h"
#include "gromacs/gpu_utils/hostallocator.h"
#include "gromacs/utility/gmxassert.h"
#include "gromacs/utility/gmxmpi.h"

#include "fmmgpu.h"

namespace gmx
{

namespace
{

constexpr int c_numThreads = 128;

//! Puts coordinates in the order of ranks into that of the topology
__global__ void toTopologyOrder(const float3* __restrict__ x,
                                const int* __restrict__ atoms,
                                const int numAtoms,
                                float3* __restrict__ xOfAll)
{
    const int i = blockIdx.x * c_numThreads + threadIdx.x;
    if (i < numAtoms)
    {
        xOfAll[atoms[i]] = x[i];
    }
}

//! Puts forces in the order of the topology into that of ranks
__global__ void toRankOrder(const float3* __restrict__ forceOfAll,
                            const int* __restrict__ atoms,
                            const int numAtoms,
                            float3* __restrict__ force)
{
    const int i = blockIdx.x * c_numThreads + threadIdx.x;
    if (i < numAtoms)
    {
        force[i] = forceOfAll[atoms[i]];
    }
}

//! Number of blocks for so many atoms
int numBlocks(const int numAtoms)
{
    return (numAtoms + c_numThreads - 1) / c_numThreads;
}

//! What a rank tells the main rank
struct FmmRankOnGpu
{
    //! Number of its GPU
    int device = -1;
    //! Marks that its coordinates are on the GPU of the main rank
    cudaEvent_t coordinatesSent = nullptr;
    //! Atoms of the topology that are at home, while all ranks set theirs
    ArrayRef<const int> home;
    //! Number of steps whose coordinates it has put into a stream
    alignas(64) std::atomic<int64_t> numSteps{ 0 };
};

//! What ranks, which are threads, have in common
struct FmmSharedByRanks
{
    explicit FmmSharedByRanks(const int numRanks) : ranks(numRanks), begin(numRanks + 1) {}

    std::vector<FmmRankOnGpu> ranks;
    //! Coordinates and forces in the order of ranks, on the GPU of the main rank
    float3* x     = nullptr;
    float3* force = nullptr;
    //! Index of the first atom of each rank in these
    std::vector<int> begin;
    //! Marks that these forces are complete
    cudaEvent_t forcesSent = nullptr;
    //! Number of steps whose forces the main rank has put into its stream
    alignas(64) std::atomic<int64_t> numSteps{ 0 };
};

//! Waits until a rank has come to this step
void waitForRank(const std::atomic<int64_t>& numSteps, const int64_t step)
{
    while (numSteps.load(std::memory_order_acquire) < step)
    {
        std::this_thread::yield();
    }
}

//! Lets all ranks come here
void waitForAllRanks(MPI_Comm comm)
{
#if GMX_MPI
    MPI_Barrier(comm);
#else
    GMX_UNUSED_VALUE(comm);
#endif
}

} // namespace

class FmmGpuRanks::Impl
{
public:
    Impl(const t_commrec& cr, const int numAtoms, const DeviceStreamManager& streams) :
        isMain_(isMainRank(cr)),
        rank_(rankWithDomain(cr)),
        numAtoms_(numAtoms),
        context_(streams.context()),
        stream_(streams.stream(DeviceStreamType::Fmm)),
        home_(streams)
    {
        const int numRanks = numRanksWithDomains(cr);
#if GMX_MPI
        MPI_Comm_dup(communicatorOfRanks(cr), &comm_);
#endif
        if (isMain_)
        {
            shared_ = std::make_shared<FmmSharedByRanks>(numRanks);
            allocateDeviceBuffer(&d_x_, numAtoms, context_);
            allocateDeviceBuffer(&d_force_, numAtoms, context_);
            allocateDeviceBuffer(&d_xOfAll_, numAtoms, context_);
            allocateDeviceBuffer(&d_atoms_, numAtoms, context_);
            changePinningPolicy(&h_atoms_, PinningPolicy::PinnedIfSupported);
            h_atoms_.resize(numAtoms);
            shared_->x     = reinterpret_cast<float3*>(d_x_);
            shared_->force = reinterpret_cast<float3*>(d_force_);
        }
        // Threads see the object of the main rank
        const std::shared_ptr<FmmSharedByRanks>* ofMain = &shared_;
        broadcastToRanks(cr, sizeof(ofMain), &ofMain);
        if (!isMain_)
        {
            shared_ = *ofMain;
        }
        checkDeviceError(cudaEventCreateWithFlags(&sent_, cudaEventDisableTiming),
                         "An event of the FMM could not be made.");
        shared_->ranks[rank_].device          = home_.deviceId();
        shared_->ranks[rank_].coordinatesSent = sent_;
        if (isMain_)
        {
            checkDeviceError(cudaEventCreateWithFlags(&forcesSent_, cudaEventDisableTiming),
                             "An event of the FMM could not be made.");
            shared_->forcesSent = forcesSent_;
        }
        waitForAllRanks(comm_);
        for (int r = 0; r < numRanks; r++)
        {
            const int device = shared_->ranks[r].device;
            devices_.insert(isMain_ && r == rank_ ? devices_.begin() : devices_.end(), device);
        }
    }

    ~Impl()
    {
        // With an error other ranks do not come here, and the program ends
        if (std::uncaught_exceptions() > 0)
        {
            return;
        }
        // What is in a stream of any rank may use buffers and events of another
        cudaDeviceSynchronize();
        waitForAllRanks(comm_);
        cudaEventDestroy(sent_);
        if (isMain_)
        {
            cudaEventDestroy(forcesSent_);
            freeDeviceBuffer(&d_x_);
            freeDeviceBuffer(&d_force_);
            freeDeviceBuffer(&d_xOfAll_);
            freeDeviceBuffer(&d_atoms_);
        }
#if GMX_MPI
        MPI_Comm_free(&comm_);
#endif
    }

    //! Number of atoms at home
    int numHome() const
    {
        return shared_->begin[rank_ + 1] - shared_->begin[rank_];
    }

    const bool isMain_;
    //! Of the ranks; one of its own, as mdrun may destroy its communicators before this
    MPI_Comm             comm_ = MPI_COMM_NULL;
    const int            rank_;
    const int            numAtoms_;
    const DeviceContext& context_;
    const DeviceStream&  stream_;
    //! Forces on home atoms
    FmmGpu home_;
    //! The same object on all ranks
    std::shared_ptr<FmmSharedByRanks> shared_;
    std::vector<int>                  devices_;
    //! Marks that coordinates of this rank were copied
    cudaEvent_t sent_ = nullptr;
    //! Steps so far
    int64_t numSteps_ = 0;
    //! On the main rank: coordinates and forces in the order of ranks, and coordinates in that of the topology
    DeviceBuffer<RVec> d_x_ = nullptr, d_force_ = nullptr, d_xOfAll_ = nullptr;
    //! On the main rank: the atom of the topology for each in the order of ranks
    DeviceBuffer<int> d_atoms_ = nullptr;
    HostVector<int>   h_atoms_;
    //! On the main rank: marks that forces are in the order of ranks
    cudaEvent_t forcesSent_ = nullptr;
};

FmmGpuRanks::FmmGpuRanks(const t_commrec& cr, const int numAtoms, const DeviceStreamManager& streams) :
    impl_(std::make_unique<Impl>(cr, numAtoms, streams))
{
}

FmmGpuRanks::~FmmGpuRanks() = default;

bool FmmGpuRanks::isMain() const
{
    return impl_->isMain_;
}

int FmmGpuRanks::size() const
{
    return impl_->devices_.size();
}

const std::vector<int>& FmmGpuRanks::devices() const
{
    return impl_->devices_;
}

void FmmGpuRanks::setHomeAtoms(ArrayRef<const int> home)
{
    FmmSharedByRanks& shared        = *impl_->shared_;
    shared.ranks[impl_->rank_].home = home;
    waitForAllRanks(impl_->comm_);
    if (isMain())
    {
        int numAtoms = 0;
        for (int rank = 0; rank < size(); rank++)
        {
            const ArrayRef<const int> ofRank = shared.ranks[rank].home;
            GMX_RELEASE_ASSERT(numAtoms + ofRank.ssize() <= impl_->numAtoms_,
                               "An atom should be at home on one rank");
            std::copy(ofRank.begin(), ofRank.end(), impl_->h_atoms_.begin() + numAtoms);
            shared.begin[rank] = numAtoms;
            numAtoms += ofRank.ssize();
        }
        shared.begin[size()] = numAtoms;
        GMX_RELEASE_ASSERT(numAtoms == impl_->numAtoms_, "Each atom should be at home on a rank");
        copyToDeviceBuffer(
                &impl_->d_atoms_, impl_->h_atoms_.data(), 0, numAtoms, impl_->stream_, GpuApiCallBehavior::Sync, nullptr);
    }
    waitForAllRanks(impl_->comm_);
    impl_->home_.setNumAtoms(home.ssize());
}

void FmmGpuRanks::sendCoordinates(DeviceBuffer<RVec> x, GpuEventSynchronizer* xReady)
{
    FmmSharedByRanks&  shared = *impl_->shared_;
    const cudaStream_t stream = impl_->stream_.stream();
    impl_->home_.waitInStream(xReady);
    if (impl_->numHome() > 0)
    {
        // Between any two devices, or on one
        checkDeviceError(cudaMemcpyAsync(shared.x + shared.begin[impl_->rank_],
                                         FmmGpu::address(x),
                                         impl_->numHome() * sizeof(float3),
                                         cudaMemcpyDefault,
                                         stream),
                         "Coordinates could not be copied to the GPU that computes the FMM.");
    }
    checkDeviceError(cudaEventRecord(impl_->sent_, stream),
                     "An event of the FMM could not be recorded.");
    impl_->numSteps_++;
    shared.ranks[impl_->rank_].numSteps.store(impl_->numSteps_, std::memory_order_release);
}

const void* FmmGpuRanks::gatherCoordinates()
{
    const FmmSharedByRanks& shared = *impl_->shared_;
    const cudaStream_t      stream = impl_->stream_.stream();
    for (int rank = 0; rank < size(); rank++)
    {
        waitForRank(shared.ranks[rank].numSteps, impl_->numSteps_);
        if (rank != impl_->rank_)
        {
            checkDeviceError(cudaStreamWaitEvent(stream, shared.ranks[rank].coordinatesSent, 0),
                             "Coordinates of other ranks could not be waited for.");
        }
    }
    toTopologyOrder<<<numBlocks(impl_->numAtoms_), c_numThreads, 0, stream>>>(
            shared.x, impl_->d_atoms_, impl_->numAtoms_, reinterpret_cast<float3*>(impl_->d_xOfAll_));
    checkDeviceError(cudaGetLastError(), "Coordinates of ranks could not be put in order.");
    return impl_->d_xOfAll_;
}

void FmmGpuRanks::sendForces(const void* force)
{
    FmmSharedByRanks&  shared = *impl_->shared_;
    const cudaStream_t stream = impl_->stream_.stream();
    toRankOrder<<<numBlocks(impl_->numAtoms_), c_numThreads, 0, stream>>>(
            static_cast<const float3*>(force), impl_->d_atoms_, impl_->numAtoms_, shared.force);
    checkDeviceError(cudaGetLastError(), "Forces could not be put in the order of ranks.");
    checkDeviceError(cudaEventRecord(impl_->forcesSent_, stream),
                     "An event of the FMM could not be recorded.");
    shared.numSteps.store(impl_->numSteps_, std::memory_order_release);
}

void FmmGpuRanks::receiveForces(const bool toHost)
{
    const FmmSharedByRanks& shared = *impl_->shared_;
    const cudaStream_t      stream = impl_->stream_.stream();
    waitForRank(shared.numSteps, impl_->numSteps_);
    if (!isMain())
    {
        checkDeviceError(cudaStreamWaitEvent(stream, shared.forcesSent, 0),
                         "The forces of the FMM could not be waited for.");
    }
    if (impl_->numHome() > 0)
    {
        checkDeviceError(cudaMemcpyAsync(impl_->home_.forceAddress(),
                                         shared.force + shared.begin[impl_->rank_],
                                         impl_->numHome() * sizeof(float3),
                                         cudaMemcpyDefault,
                                         stream),
                         "Forces could not be copied from the GPU that computes the FMM.");
    }
    impl_->home_.markForcesReady(false);
    impl_->home_.launchTransfer(toHost, false);
}

DeviceBuffer<RVec> FmmGpuRanks::forces() const
{
    return impl_->home_.forces();
}

GpuEventSynchronizer* FmmGpuRanks::forcesReady()
{
    return impl_->home_.forcesReady();
}

ArrayRef<const RVec> FmmGpuRanks::waitForHostForces() const
{
    impl_->home_.waitForTransfer();
    return impl_->home_.hostForces();
}

} // namespace gmx
