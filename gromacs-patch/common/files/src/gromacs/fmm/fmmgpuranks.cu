/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements how several ranks share an FMM on GPUs
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmgpuranks.h"

#include "config.h"

#include <cstdint>

#include <exception>
#include <numeric>

#include "gromacs/gpu_utils/cudautils.cuh"
#include "gromacs/gpu_utils/device_context.h"
#include "gromacs/gpu_utils/device_stream.h"
#include "gromacs/gpu_utils/device_stream_manager.h"
#include "gromacs/gpu_utils/devicebuffer.h"
#include "gromacs/gpu_utils/hostallocator.h"
#include "gromacs/utility/gmxassert.h"
#include "gromacs/utility/gmxmpi.h"

#include "fmmgpu.h"
#include "fmmgpupeers.h"

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

} // namespace

class FmmGpuRanks::Impl
{
public:
    Impl(const t_commrec& cr, const int numAtoms, const DeviceStreamManager& streams) :
        isMain_(isMainRank(cr)),
        rank_(rankWithDomain(cr)),
        numRanks_(numRanksWithDomains(cr)),
        numAtoms_(numAtoms),
        context_(streams.context()),
        stream_(streams.stream(DeviceStreamType::Fmm)),
        home_(streams),
        begin_(numRanks_ + 1)
    {
        MPI_Comm_dup(communicatorOfRanks(cr), &comm_);
        for (HostVector<RVec>* const ofHost : { &h_home_, &h_ofRanks_ })
        {
            changePinningPolicy(ofHost, PinningPolicy::PinnedIfSupported);
        }
        if (isMain_)
        {
            allocateDeviceBuffer(&d_shared_, 2 * numAtoms, context_);
            allocateDeviceBuffer(&d_xOfAll_, numAtoms, context_);
            allocateDeviceBuffer(&d_atoms_, numAtoms, context_);
            changePinningPolicy(&h_atoms_, PinningPolicy::PinnedIfSupported);
            h_atoms_.resize(numAtoms);
        }
        peers_ = std::make_unique<FmmGpuPeers>(comm_, isMain_ ? static_cast<void*>(d_shared_) : nullptr);
        for (int rank = 0; rank < numRanks_; rank++)
        {
            if (!peers_->isPeer(rank))
            {
                byHost_.push_back(rank);
            }
        }
        if (isMain_ && !byHost_.empty())
        {
            h_ofRanks_.resize(numAtoms);
            checkDeviceError(cudaEventCreateWithFlags(&onHost_, cudaEventDisableTiming),
                             "An event of the FMM could not be made.");
        }
        std::vector<int> devices(numRanks_);
        int              device = home_.deviceId();
        MPI_Gather(&device, 1, MPI_INT, devices.data(), 1, MPI_INT, 0, comm_);
        MPI_Bcast(devices.data(), numRanks_, MPI_INT, 0, comm_);
        // Another process may count its devices in another way
        devices_.assign(devices.begin(), GMX_THREAD_MPI ? devices.end() : devices.begin() + 1);
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
        waitForMessages();
        MPI_Barrier(comm_);
        peers_.reset();
        if (isMain_)
        {
            freeDeviceBuffer(&d_shared_);
            freeDeviceBuffer(&d_xOfAll_);
            freeDeviceBuffer(&d_atoms_);
        }
        if (onHost_ != nullptr)
        {
            cudaEventDestroy(onHost_);
        }
        MPI_Comm_free(&comm_);
    }

    //! Index of the first atom of a rank, of all atoms in the order of ranks
    int begin(const int rank) const { return begin_[rank]; }
    //! Number of atoms at home on a rank
    int numHome(const int rank) const { return begin_[rank + 1] - begin_[rank]; }
    //! Coordinates in the order of ranks, on the GPU of the main rank
    float3* x() const { return static_cast<float3*>(peers_->memory()); }
    //! Forces in the order of ranks, on the GPU of the main rank
    float3* force() const { return x() + numAtoms_; }

    //! Enqueues a copy from one address to another, which may be on any device or the host
    void copy(void* to, const void* from, const int numAtoms, const char* const error) const
    {
        if (numAtoms > 0)
        {
            checkDeviceError(
                    cudaMemcpyAsync(to, from, numAtoms * sizeof(float3), cudaMemcpyDefault, stream_.stream()),
                    error);
        }
    }

    //! On the main rank: receives the coordinates of ranks that are no peers, and enqueues their copies to the device
    void receiveByHost()
    {
        // Forces of the last step are in the same memory
        waitForMessages();
        for (const int rank : byHost_)
        {
            requests_.emplace_back();
            MPI_Irecv(h_ofRanks_.data() + begin(rank),
                      DIM * numHome(rank),
                      MPI_FLOAT,
                      rank,
                      0,
                      comm_,
                      &requests_.back());
        }
        waitForMessages();
        for (const int rank : byHost_)
        {
            copy(x() + begin(rank), h_ofRanks_.data() + begin(rank), numHome(rank), c_errorOfCoordinates);
        }
    }

    //! On the main rank: enqueues the copies of forces on atoms of ranks that are no peers to the host
    void copyForcesToHost()
    {
        for (const int rank : byHost_)
        {
            copy(h_ofRanks_.data() + begin(rank), force() + begin(rank), numHome(rank), c_errorOfForces);
        }
        checkDeviceError(cudaEventRecord(onHost_, stream_.stream()),
                         "An event of the FMM could not be recorded.");
    }

    //! On the main rank: waits for these copies, and sends them
    void sendByHost()
    {
        checkDeviceError(cudaEventSynchronize(onHost_), c_errorOfForces);
        for (const int rank : byHost_)
        {
            requests_.emplace_back();
            MPI_Isend(h_ofRanks_.data() + begin(rank),
                      DIM * numHome(rank),
                      MPI_FLOAT,
                      rank,
                      0,
                      comm_,
                      &requests_.back());
        }
    }

    //! Waits for messages of the main rank
    void waitForMessages()
    {
        MPI_Waitall(requests_.size(), requests_.data(), MPI_STATUSES_IGNORE);
        requests_.clear();
    }

    static constexpr const char* c_errorOfCoordinates =
            "Coordinates could not be copied to the GPU that computes the FMM.";
    static constexpr const char* c_errorOfForces =
            "Forces could not be copied from the GPU that computes the FMM.";

    const bool isMain_;
    //! Of the ranks; one of its own, as mdrun may destroy its communicators before this
    MPI_Comm             comm_ = MPI_COMM_NULL;
    const int            rank_;
    const int            numRanks_;
    const int            numAtoms_;
    const DeviceContext& context_;
    const DeviceStream&  stream_;
    //! Forces on home atoms
    FmmGpu home_;
    //! Which ranks see the coordinates and forces on the GPU of the main rank
    std::unique_ptr<FmmGpuPeers> peers_;
    //! Those that do not
    std::vector<int> byHost_;
    //! Index of the first atom of each rank, and the number of all
    std::vector<int> begin_;
    //! Numbers of GPUs that the main rank may use
    std::vector<int> devices_;
    //! Steps so far
    int64_t numSteps_ = 0;
    //! On the main rank: coordinates and then forces in the order of ranks, and coordinates in that of the topology
    DeviceBuffer<RVec> d_shared_ = nullptr, d_xOfAll_ = nullptr;
    //! On the main rank: the atom of the topology for each in the order of ranks
    DeviceBuffer<int> d_atoms_ = nullptr;
    HostVector<int>   h_atoms_;
    //! Of a rank that is no peer: coordinates, then forces; on the main rank of all such, in the order of ranks
    HostVector<RVec> h_home_, h_ofRanks_;
    //! On the main rank: messages under way, and what marks that forces are on the host
    std::vector<MPI_Request> requests_;
    cudaEvent_t              onHost_ = nullptr;
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
    return impl_->numRanks_;
}

int FmmGpuRanks::numByHost() const
{
    return impl_->byHost_.size();
}

const std::vector<int>& FmmGpuRanks::devices() const
{
    return impl_->devices_;
}

void FmmGpuRanks::setHomeAtoms(ArrayRef<const int> home)
{
    std::vector<int>& begin = impl_->begin_;
    std::vector<int>  numbers(size());
    int               number = home.ssize();
    MPI_Gather(&number, 1, MPI_INT, numbers.data(), 1, MPI_INT, 0, impl_->comm_);
    std::partial_sum(numbers.begin(), numbers.end(), begin.begin() + 1);
    GMX_RELEASE_ASSERT(!isMain() || begin[size()] == impl_->numAtoms_,
                       "Each atom should be at home on one rank");
    MPI_Bcast(begin.data(), begin.size(), MPI_INT, 0, impl_->comm_);
    MPI_Gatherv(const_cast<int*>(home.data()),
                number,
                MPI_INT,
                impl_->h_atoms_.data(),
                numbers.data(),
                begin.data(),
                MPI_INT,
                0,
                impl_->comm_);
    if (isMain())
    {
        copyToDeviceBuffer(&impl_->d_atoms_,
                           impl_->h_atoms_.data(),
                           0,
                           impl_->numAtoms_,
                           impl_->stream_,
                           GpuApiCallBehavior::Sync,
                           nullptr);
    }
    if (!impl_->peers_->isPeer(impl_->rank_))
    {
        // No copy of the last step may be under way when its memory becomes another
        impl_->stream_.synchronize();
        impl_->h_home_.resize(number);
    }
    impl_->home_.setNumAtoms(number);
}

void FmmGpuRanks::sendCoordinates(DeviceBuffer<RVec> x, GpuEventSynchronizer* xReady)
{
    const int rank = impl_->rank_;
    impl_->numSteps_++;
    impl_->home_.waitInStream(xReady);
    if (!impl_->peers_->isPeer(rank))
    {
        RVec* const ofHost = impl_->h_home_.data();
        impl_->copy(ofHost, FmmGpu::address(x), impl_->numHome(rank), Impl::c_errorOfCoordinates);
        impl_->stream_.synchronize();
        MPI_Send(ofHost, DIM * impl_->numHome(rank), MPI_FLOAT, 0, 0, impl_->comm_);
        return;
    }
    // Between any two devices, or on one
    impl_->copy(impl_->x() + impl_->begin(rank), FmmGpu::address(x), impl_->numHome(rank), Impl::c_errorOfCoordinates);
    if (!isMain())
    {
        impl_->peers_->signal(impl_->numSteps_, impl_->stream_.stream());
    }
}

const void* FmmGpuRanks::gatherCoordinates()
{
    const cudaStream_t stream = impl_->stream_.stream();
    if (numByHost() > 0)
    {
        impl_->receiveByHost();
    }
    for (int rank = 1; rank < size(); rank++)
    {
        if (impl_->peers_->isPeer(rank))
        {
            impl_->peers_->waitFor(rank, impl_->numSteps_, stream);
        }
    }
    toTopologyOrder<<<numBlocks(impl_->numAtoms_), c_numThreads, 0, stream>>>(
            impl_->x(), impl_->d_atoms_, impl_->numAtoms_, reinterpret_cast<float3*>(impl_->d_xOfAll_));
    checkDeviceError(cudaGetLastError(), "Coordinates of ranks could not be put in order.");
    return impl_->d_xOfAll_;
}

void FmmGpuRanks::sendForces(const void* force)
{
    const cudaStream_t stream = impl_->stream_.stream();
    toRankOrder<<<numBlocks(impl_->numAtoms_), c_numThreads, 0, stream>>>(
            static_cast<const float3*>(force), impl_->d_atoms_, impl_->numAtoms_, impl_->force());
    checkDeviceError(cudaGetLastError(), "Forces could not be put in the order of ranks.");
    if (numByHost() < size() - 1)
    {
        impl_->peers_->signal(impl_->numSteps_, stream);
    }
    if (numByHost() > 0)
    {
        impl_->copyForcesToHost();
    }
}

void FmmGpuRanks::receiveForces(const bool toHost)
{
    const int   rank = impl_->rank_;
    const void* from = nullptr;
    if (!impl_->peers_->isPeer(rank))
    {
        from = impl_->h_home_.data();
        MPI_Recv(impl_->h_home_.data(), DIM * impl_->numHome(rank), MPI_FLOAT, 0, 0, impl_->comm_, MPI_STATUS_IGNORE);
    }
    else
    {
        from = impl_->force() + impl_->begin(rank);
        if (!isMain())
        {
            impl_->peers_->waitFor(0, impl_->numSteps_, impl_->stream_.stream());
        }
    }
    if (isMain() && numByHost() > 0)
    {
        impl_->sendByHost();
    }
    impl_->copy(impl_->home_.forceAddress(), from, impl_->numHome(rank), Impl::c_errorOfForces);
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
