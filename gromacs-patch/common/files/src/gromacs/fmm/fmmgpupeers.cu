/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements device memory and events that ranks share, where they see each other's
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmgpupeers.h"

#include "config.h"

#include <cstdlib>

#include <atomic>
#include <new>
#include <thread>
#include <vector>

#include "gromacs/gpu_utils/cudautils.cuh"
#include "gromacs/utility/basedefinitions.h"

namespace gmx
{

namespace
{

//! The number of the last signal of a rank, where others see it, in a cache line of its own
struct alignas(64) FmmSignal
{
    std::atomic<int64_t> number{ 0 };
};
// Of several processes only such an atomic is one
static_assert(std::atomic<int64_t>::is_always_lock_free, "Signals of processes need atomic numbers");

#if GMX_THREAD_MPI
//! Threads use the same addresses and events
using FmmMemoryHandle = void*;
using FmmEventHandle  = cudaEvent_t;
#else
using FmmMemoryHandle = cudaIpcMemHandle_t;
using FmmEventHandle  = cudaIpcEventHandle_t;

//! Returns whether a call of CUDA went well; an error is forgotten, and this rank is no peer
bool isDone(const cudaError_t status)
{
    if (status != cudaSuccess)
    {
        cudaGetLastError();
    }
    return status == cudaSuccess;
}
#endif

//! What a rank tells others of itself
struct FmmPeerHandles
{
    //! Whether what follows is valid
    int             isPeer = 0;
    FmmEventHandle  event  = {};
    FmmMemoryHandle memory = {};
};

} // namespace

class FmmGpuPeers::Impl
{
public:
    Impl(MPI_Comm comm, void* memory) : comm_(comm), memory_(memory)
    {
        int size = 0;
        MPI_Comm_rank(comm_, &rank_);
        MPI_Comm_size(comm_, &size);
        events_.resize(size, nullptr);
        isPeer_.resize(size, 0);

        shareSignals();
        FmmPeerHandles own  = makeHandles();
        FmmPeerHandles main = own;
        MPI_Bcast(&main, sizeof(main), MPI_BYTE, 0, comm_);
        if (rank_ != 0)
        {
            own.isPeer = own.isPeer && main.isPeer && open(main.event, &events_[0])
                         && openMemory(main.memory);
        }
        std::vector<FmmPeerHandles> all(size);
        MPI_Gather(&own, sizeof(own), MPI_BYTE, all.data(), sizeof(own), MPI_BYTE, 0, comm_);
        if (rank_ == 0)
        {
            isPeer_[0] = 1;
            for (int rank = 1; rank < size; rank++)
            {
                isPeer_[rank] = all[rank].isPeer && open(all[rank].event, &events_[rank]);
            }
        }
        MPI_Bcast(isPeer_.data(), size, MPI_INT, 0, comm_);
        if (!isPeer_[rank_])
        {
            closeMemory();
            memory_ = nullptr;
        }
    }

    ~Impl()
    {
        for (size_t rank = 0; rank < events_.size(); rank++)
        {
            // Those of other threads are theirs
            if (events_[rank] != nullptr && (!GMX_THREAD_MPI || static_cast<int>(rank) == rank_))
            {
                cudaEventDestroy(events_[rank]);
            }
        }
        closeMemory();
        // The first rank frees the memory, and threads see signals that it has
        MPI_Barrier(comm_);
#if GMX_LIB_MPI
        if (window_ != MPI_WIN_NULL)
        {
            MPI_Win_free(&window_);
        }
        if (hostComm_ != MPI_COMM_NULL)
        {
            MPI_Comm_free(&hostComm_);
        }
#endif
    }

    //! Finds signals of the first rank and of this one, on the first of all that see its host's memory
    void shareSignals()
    {
        const int size = isPeer_.size();
        signals_.resize(size, nullptr);
#if GMX_THREAD_MPI
        if (rank_ == 0)
        {
            ofThreads_ = std::vector<FmmSignal>(size);
        }
        FmmSignal* first = ofThreads_.data();
        MPI_Bcast(&first, sizeof(first), MPI_BYTE, 0, comm_);
        for (int rank = 0; rank < size; rank++)
        {
            signals_[rank] = first + rank;
        }
        isOnHost_ = true;
#else
        MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &hostComm_);
        int numOnHost = 0;
        MPI_Comm_size(hostComm_, &numOnHost);
        std::vector<int> ranksOfHost(numOnHost);
        MPI_Allgather(&rank_, 1, MPI_INT, ranksOfHost.data(), 1, MPI_INT, hostComm_);
        // Ranks are in order: that of the first host is the first there
        isOnHost_ = ranksOfHost[0] == 0;
        if (!isOnHost_)
        {
            return;
        }
        FmmSignal* own = nullptr;
        // Memory of a rank may begin anywhere, so there is room to begin at a cache line
        MPI_Win_allocate_shared(2 * sizeof(FmmSignal), 1, MPI_INFO_NULL, hostComm_, &own, &window_);
        for (int i = 0; i < numOnHost; i++)
        {
            MPI_Aint bytes = 0;
            int      unit  = 0;
            void*    begin = nullptr;
            MPI_Win_shared_query(window_, i, &bytes, &unit, &begin);
            const auto misplaced     = reinterpret_cast<std::uintptr_t>(begin) % alignof(FmmSignal);
            const auto shift         = misplaced == 0 ? 0 : alignof(FmmSignal) - misplaced;
            signals_[ranksOfHost[i]] = reinterpret_cast<FmmSignal*>(static_cast<char*>(begin) + shift);
        }
        new (signals_[rank_]) FmmSignal;
        MPI_Barrier(hostComm_);
#endif
    }

    //! Makes the event of this rank, and what others open it and the memory by
    FmmPeerHandles makeHandles()
    {
        FmmPeerHandles handles;
        handles.isPeer = isOnHost_;
#if GMX_THREAD_MPI
        checkDeviceError(cudaEventCreateWithFlags(&events_[rank_], cudaEventDisableTiming),
                         "An event of the FMM could not be made.");
        handles.event  = events_[rank_];
        handles.memory = memory_;
#else
        handles.isPeer = handles.isPeer && std::getenv("GMX_DISABLE_DIRECT_GPU_COMM") == nullptr
                         && isDone(cudaEventCreateWithFlags(
                                 &events_[rank_], cudaEventDisableTiming | cudaEventInterprocess))
                         && isDone(cudaIpcGetEventHandle(&handles.event, events_[rank_]))
                         && (rank_ != 0 || isDone(cudaIpcGetMemHandle(&handles.memory, memory_)));
#endif
        return handles;
    }

    //! Makes the event of another rank one of this; returns whether that can be done
    static bool open(const FmmEventHandle& handle, cudaEvent_t* event)
    {
#if GMX_THREAD_MPI
        *event = handle;
        return true;
#else
        return isDone(cudaIpcOpenEventHandle(event, handle));
#endif
    }

    //! Makes the memory of the first rank visible; returns whether that can be done
    bool openMemory(const FmmMemoryHandle& handle)
    {
#if GMX_THREAD_MPI
        memory_ = handle;
        return true;
#else
        isOpen_ = isDone(cudaIpcOpenMemHandle(&memory_, handle, cudaIpcMemLazyEnablePeerAccess));
        return isOpen_;
#endif
    }

    //! Ends that
    void closeMemory()
    {
        if (isOpen_)
        {
            cudaIpcCloseMemHandle(memory_);
            isOpen_ = false;
        }
    }

    const MPI_Comm comm_;
    int            rank_ = 0;
    //! Address of the memory on this rank
    void* memory_ = nullptr;
    //! Whether it is that of another process
    bool isOpen_ = false;
    //! Whether this rank sees the host's memory of the first
    bool isOnHost_ = false;
    //! Events of the first rank and of this one, on the first of all peers
    std::vector<cudaEvent_t> events_;
    //! Signals by rank, null where they are on another host
    std::vector<FmmSignal*> signals_;
    //! Whether each rank is a peer
    std::vector<int> isPeer_;
#if GMX_THREAD_MPI
    //! On the first rank
    std::vector<FmmSignal> ofThreads_;
#else
    //! Ranks of this host, and their signals
    MPI_Comm hostComm_ = MPI_COMM_NULL;
    MPI_Win  window_   = MPI_WIN_NULL;
#endif
};

FmmGpuPeers::FmmGpuPeers(MPI_Comm comm, void* memory) : impl_(std::make_unique<Impl>(comm, memory))
{
}

FmmGpuPeers::~FmmGpuPeers() = default;

bool FmmGpuPeers::isPeer(const int rank) const
{
    return impl_->isPeer_[rank] != 0;
}

void* FmmGpuPeers::memory() const
{
    return impl_->memory_;
}

void FmmGpuPeers::signal(const int64_t number, cudaStream_t stream)
{
    checkDeviceError(cudaEventRecord(impl_->events_[impl_->rank_], stream),
                     "An event of the FMM could not be recorded.");
    impl_->signals_[impl_->rank_]->number.store(number, std::memory_order_release);
}

void FmmGpuPeers::waitFor(const int rank, const int64_t number, cudaStream_t stream) const
{
    while (impl_->signals_[rank]->number.load(std::memory_order_acquire) < number)
    {
        std::this_thread::yield();
    }
    checkDeviceError(cudaStreamWaitEvent(stream, impl_->events_[rank], 0),
                     "Another rank of the FMM could not be waited for.");
}

} // namespace gmx
