/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements stream, event and buffers for an FMM solver with CUDA
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmgpu.h"

#include <array>

#include "gromacs/gpu_utils/cudautils.cuh"
#include "gromacs/gpu_utils/device_context.h"
#include "gromacs/gpu_utils/device_stream.h"
#include "gromacs/gpu_utils/device_stream_manager.h"
#include "gromacs/gpu_utils/devicebuffer.h"
#include "gromacs/gpu_utils/gpueventsynchronizer.h"
#include "gromacs/gpu_utils/hostallocator.h"
#include "gromacs/hardware/device_information.h"

#include "fmmcharges.cuh"
#include "fmmvirial.cuh"

namespace gmx
{

namespace
{

/*! \internal
 * \brief Work that is put into a stream as a graph
 */
class RepeatedWork
{
public:
    RepeatedWork() = default;
    ~RepeatedWork() { destroy(); }
    RepeatedWork(const RepeatedWork&)            = delete;
    RepeatedWork& operator=(const RepeatedWork&) = delete;

    //! Puts the work into the stream, numRepeated being the number of steps since it changed
    void enqueue(const std::function<void()>& work, int numRepeated, const DeviceStream& stream)
    {
        // To make a graph costs what some ten steps save. To bring one up to date costs less than
        // two steps without it.
        constexpr int c_numBeforeMaking = 15;
        numCalls_++;
        if (graph_ == nullptr && numCalls_ > c_numBeforeMaking
            && numRepeated > (canUpdate() ? c_numBeforeUpdate : c_numBeforeMaking))
        {
            record(work, stream);
        }
        update(work, numRepeated, stream);
        if (graph_ != nullptr && !isOutdated_)
        {
            checkDeviceError(cudaGraphLaunch(graph_, stream.stream()),
                             "The FMM step could not be launched.");
        }
        else
        {
            work();
        }
    }

    //! Brings the graph up to date, if there is one
    void update(const std::function<void()>& work, int numRepeated, const DeviceStream& stream)
    {
        if (graph_ != nullptr && isOutdated_ && numRepeated > c_numBeforeUpdate)
        {
            record(work, stream);
        }
    }

    //! The first step after a change has work that the others do not have
    static constexpr int c_numBeforeUpdate = 1;

    //! Says that the work has changed
    void outdate()
    {
        isOutdated_ = true;
        if (!canUpdate())
        {
            destroy();
        }
    }

private:
    void destroy()
    {
        if (graph_ != nullptr)
        {
            cudaGraphExecDestroy(graph_);
            graph_ = nullptr;
        }
    }

    //! Whether a graph follows when the work changes; not while it has to be made again more than
    //! once in 100 steps, a tenth of which is what making one costs
    bool canUpdate() const { return numFailed_ < 3 + numCalls_ / 100; }

    //! Gives the executable graph the arguments of the kernels in \p recorded, returns whether that could be done
    bool updateFrom(cudaGraph_t recorded) const
    {
#if CUDART_VERSION >= 12000
        cudaGraphExecUpdateResultInfo result;
        const cudaError_t             status = cudaGraphExecUpdate(graph_, recorded, &result);
#else
        cudaGraphNode_t           node;
        cudaGraphExecUpdateResult result;
        const cudaError_t         status = cudaGraphExecUpdate(graph_, recorded, &node, &result);
#endif
        if (status != cudaSuccess)
        {
            cudaGetLastError();
        }
        return status == cudaSuccess;
    }

    //! Makes the graph of what \p work puts into the stream, or brings it up to date
    void record(const std::function<void()>& work, const DeviceStream& stream)
    {
        cudaGraph_t recorded = nullptr;
        checkDeviceError(cudaStreamBeginCapture(stream.stream(), cudaStreamCaptureModeThreadLocal),
                         "Recording of the FMM step could not be started.");
        work();
        checkDeviceError(cudaStreamEndCapture(stream.stream(), &recorded),
                         "The FMM step could not be recorded.");
        if (graph_ != nullptr && !updateFrom(recorded))
        {
            numFailed_++;
            destroy();
        }
        if (graph_ == nullptr)
        {
            // With a name of its own since CUDA 11.4, where the other one takes more arguments
            const cudaError_t status = cudaGraphInstantiateWithFlags(&graph_, recorded, c_graphFlags);
            checkDeviceError(status, "The graph of the FMM step could not be made.");
        }
        cudaGraphDestroy(recorded);
        isOutdated_ = false;
    }

    //! The streams of near and far field differ in priority, which without this would be lost
#if CUDART_VERSION >= 11070
    static constexpr unsigned long long c_graphFlags = cudaGraphInstantiateFlagUseNodePriority;
#else
    static constexpr unsigned long long c_graphFlags = 0;
#endif

    cudaGraphExec_t graph_ = nullptr;
    //! Whether the work has changed since the graph was recorded
    bool isOutdated_ = false;
    //! Calls of enqueue(), and times that the graph could not follow what had changed
    int numCalls_ = 0, numFailed_ = 0;
};

} // namespace

class FmmGpu::Impl
{
public:
    explicit Impl(const DeviceStreamManager& streams) :
        streams_(streams),
        context_(streams.context()),
        stream_(streams.stream(DeviceStreamType::Fmm)),
        forcesStream_(context_, DeviceStreamPriority::High, false),
        nonbondedStream_(streams.stream(DeviceStreamType::NonBondedLocal)),
        besideStream_(streams.stream(DeviceStreamType::BesideNonBondedLocal)),
        assignmentStream_(context_, DeviceStreamPriority::Normal, false),
        sitesStream_(context_, DeviceStreamPriority::Normal, false),
        atomsStream_(context_, DeviceStreamPriority::Normal, false),
        deviceId_(streams.deviceInfo().id)
    {
        for (cudaEvent_t* event : { &forcesWritten_, &sitesMayBegin_, &atomsDone_, &sitesDone_ })
        {
            checkDeviceError(cudaEventCreateWithFlags(event, cudaEventDisableTiming),
                             "An event of the FMM could not be made.");
        }
        allocateDeviceBuffer(&d_sums_, 1, context_);
        changePinningPolicy(&h_force_, PinningPolicy::PinnedIfSupported);
        changePinningPolicy(&h_sums_, PinningPolicy::PinnedIfSupported);
        h_sums_.resize(1);
        allocateDeviceBuffer(&d_virial_, 1, context_);
        clearDeviceBufferAsync(&d_virial_, 0, 1, nonbondedStream_);
        changePinningPolicy(&h_virial_, PinningPolicy::PinnedIfSupported);
        h_virial_.resize(DIM * DIM);
    }

    ~Impl()
    {
        freeDeviceBuffer(&d_force_);
        freeDeviceBuffer(&d_x_);
        freeDeviceBuffer(&d_sums_);
        freeDeviceBuffer(&d_virial_);
        freeDeviceBuffer(&d_perturbedAtoms_);
        freeDeviceBuffer(&d_chargesA_);
        freeDeviceBuffer(&d_chargeDifference_);
        freeDeviceBuffer(&d_charges_);
        for (cudaEvent_t event : { forcesWritten_, sitesMayBegin_, atomsDone_, sitesDone_ })
        {
            cudaEventDestroy(event);
        }
    }

    //! The one of updates is there if these are on the GPU
    const DeviceStreamManager& streams_;
    const DeviceContext&       context_;
    const DeviceStream&        stream_;
    //! Has nothing but a wait for forces where the stream of the FMM goes on with sums
    const DeviceStream   forcesStream_;
    const DeviceStream&  nonbondedStream_;
    const DeviceStream&  besideStream_;
    GpuEventSynchronizer besideMayBegin_, besideDone_;
    //! Has assignments of atoms to cells, which take longer than a step and are not waited for by it
    const DeviceStream   assignmentStream_;
    GpuEventSynchronizer assignmentBegun_, assignmentDone_;
    //! Around what comes between two graphs of whole steps
    GpuEventSynchronizer graphDone_, graphMayBegin_;
    //! Have Lennard-Jones at sites and of atoms, with events that a graph may have
    const DeviceStream sitesStream_, atomsStream_;
    cudaEvent_t        sitesMayBegin_ = nullptr, atomsDone_ = nullptr, sitesDone_ = nullptr;
    const int          deviceId_;
    //! Forces in the order of atoms
    DeviceBuffer<RVec> d_force_  = nullptr;
    int                numAtoms_ = 0, capacity_ = -1;
    //! Coordinates that come from the host
    DeviceBuffer<RVec>        d_x_  = nullptr;
    int                       numX_ = 0, capacityX_ = -1;
    DeviceBuffer<FmmStepSums> d_sums_ = nullptr;
    HostVector<RVec>          h_force_;
    HostVector<FmmStepSums>   h_sums_;
    GpuEventSynchronizer      forcesReady_;
    //! Recorded by the library, see forcesWritten()
    cudaEvent_t forcesWritten_ = nullptr;
    //! Of the atoms whose charges are perturbed
    DeviceBuffer<int>   d_perturbedAtoms_   = nullptr;
    DeviceBuffer<float> d_chargesA_         = nullptr;
    DeviceBuffer<float> d_chargeDifference_ = nullptr;
    DeviceBuffer<float> d_charges_          = nullptr;
    int                 numPerturbedAtoms_  = 0;
    //! Of the short-range forces
    DeviceBuffer<FmmVirialSums> d_virial_ = nullptr;
    HostVector<double>          h_virial_;
    //! Without and with energy, without and with virial
    std::array<std::array<RepeatedWork, 2>, 2> repeated_;
    RepeatedWork                               repeatedAssignment_;
    //! Calls of enqueueRepeated() and enqueueAssignment() since the work changed
    int numRepeated_ = 0, numRepeatedAssignments_ = 0;
};

FmmGpu::FmmGpu(const DeviceStreamManager& streams) : impl_(std::make_unique<Impl>(streams)) {}

FmmGpu::~FmmGpu() = default;

int FmmGpu::deviceId() const
{
    return impl_->deviceId_;
}

void* FmmGpu::stream() const
{
    return impl_->stream_.stream();
}

void FmmGpu::setNumAtoms(int numAtoms)
{
    reallocateDeviceBuffer(&impl_->d_force_, numAtoms, &impl_->numAtoms_, &impl_->capacity_, impl_->context_);
    reallocateDeviceBuffer(&impl_->d_x_, numAtoms, &impl_->numX_, &impl_->capacityX_, impl_->context_);
    impl_->h_force_.resize(numAtoms);
}

template<typename T>
static void replaceDeviceBuffer(DeviceBuffer<T>*     buffer,
                                ArrayRef<const T>    values,
                                const DeviceContext& context,
                                const DeviceStream&  stream)
{
    freeDeviceBuffer(buffer);
    allocateDeviceBuffer(buffer, values.size(), context);
    copyToDeviceBuffer(buffer, values.data(), 0, values.size(), stream, GpuApiCallBehavior::Sync, nullptr);
}

void FmmGpu::setPerturbedCharges(ArrayRef<const int>  atoms,
                                 ArrayRef<const real> chargesA,
                                 ArrayRef<const real> difference)
{
    const DeviceContext& context = impl_->context_;
    const DeviceStream&  stream  = impl_->stream_;
    replaceDeviceBuffer(&impl_->d_perturbedAtoms_, atoms, context, stream);
    replaceDeviceBuffer(&impl_->d_chargesA_, chargesA, context, stream);
    replaceDeviceBuffer(&impl_->d_charges_, chargesA, context, stream);
    replaceDeviceBuffer(&impl_->d_chargeDifference_, difference, context, stream);
    impl_->numPerturbedAtoms_ = atoms.ssize();
}

void FmmGpu::computePerturbedCharges(real lambda)
{
    launchPerturbedChargesKernel(impl_->d_chargesA_,
                                 impl_->d_chargeDifference_,
                                 impl_->numPerturbedAtoms_,
                                 lambda,
                                 impl_->d_charges_,
                                 impl_->stream_);
}

const int* FmmGpu::perturbedAtomsAddress() const
{
    return impl_->d_perturbedAtoms_;
}

const void* FmmGpu::perturbedChargesAddress() const
{
    return impl_->d_charges_;
}

void FmmGpu::waitInStream(GpuEventSynchronizer* event) const
{
    event->enqueueWaitEvent(impl_->stream_);
}

const void* FmmGpu::address(DeviceBuffer<RVec> x)
{
    return x;
}

const void* FmmGpu::upload(ArrayRef<const RVec> x)
{
    copyToDeviceBuffer(
            &impl_->d_x_, x.data(), 0, x.size(), impl_->stream_, GpuApiCallBehavior::Sync, nullptr);
    return impl_->d_x_;
}

DeviceBuffer<RVec> FmmGpu::forces() const
{
    return impl_->d_force_;
}

void* FmmGpu::forceAddress() const
{
    return impl_->d_force_;
}

FmmStepSums* FmmGpu::sumsAddress() const
{
    return impl_->d_sums_;
}

void* FmmGpu::forcesWritten() const
{
    return impl_->forcesWritten_;
}

void FmmGpu::markForcesReady(bool byEvent)
{
    if (byEvent)
    {
        checkDeviceError(cudaStreamWaitEvent(impl_->forcesStream_.stream(), impl_->forcesWritten_, 0),
                         "The forces of the FMM could not be waited for.");
    }
    impl_->forcesReady_.markEvent(byEvent ? impl_->forcesStream_ : impl_->stream_);
}

GpuEventSynchronizer* FmmGpu::forcesReady()
{
    return &impl_->forcesReady_;
}

void FmmGpu::launchTransfer(bool withForces, bool withSums)
{
    if (withForces)
    {
        copyFromDeviceBuffer(impl_->h_force_.data(),
                             &impl_->d_force_,
                             0,
                             impl_->numAtoms_,
                             impl_->stream_,
                             GpuApiCallBehavior::Async,
                             nullptr);
    }
    if (withSums)
    {
        copyFromDeviceBuffer(
                impl_->h_sums_.data(), &impl_->d_sums_, 0, 1, impl_->stream_, GpuApiCallBehavior::Async, nullptr);
    }
}

void FmmGpu::waitForTransfer() const
{
    impl_->stream_.synchronize();
}

ArrayRef<const RVec> FmmGpu::hostForces() const
{
    return impl_->h_force_;
}

const FmmStepSums& FmmGpu::hostSums() const
{
    return impl_->h_sums_[0];
}

void FmmGpu::launchShortRangeVirial(const void*          xq,
                                    DeviceBuffer<RVec>   f,
                                    int                  numAtoms,
                                    DeviceBuffer<RVec>   shiftForces,
                                    ArrayRef<const RVec> shiftVectors)
{
    const DeviceStream& stream = impl_->nonbondedStream_;
    launchShortRangeVirialKernel(xq, f, numAtoms, shiftForces, shiftVectors, impl_->d_virial_, stream);
    checkDeviceError(cudaMemcpyAsync(impl_->h_virial_.data(),
                                     impl_->d_virial_->total,
                                     sizeof(impl_->d_virial_->total),
                                     cudaMemcpyDeviceToHost,
                                     stream.stream()),
                     "The sums for the virial could not be copied from the GPU.");
}

ArrayRef<const double> FmmGpu::waitForShortRangeVirial() const
{
    impl_->nonbondedStream_.synchronize();
    return impl_->h_virial_;
}

void FmmGpu::beginBesideNonbonded()
{
    impl_->besideMayBegin_.markEvent(impl_->nonbondedStream_);
    impl_->besideMayBegin_.enqueueWaitEvent(impl_->besideStream_);
}

void FmmGpu::endBesideNonbonded()
{
    impl_->besideDone_.markEvent(impl_->besideStream_);
    impl_->besideDone_.enqueueWaitEvent(impl_->nonbondedStream_);
}

std::array<void*, 2> FmmGpu::beginSites()
{
    const std::array<cudaStream_t, 2> streams = { impl_->sitesStream_.stream(),
                                                  impl_->atomsStream_.stream() };
    cudaEventRecord(impl_->sitesMayBegin_, impl_->stream_.stream());
    for (const cudaStream_t stream : streams)
    {
        checkDeviceError(cudaStreamWaitEvent(stream, impl_->sitesMayBegin_, 0),
                         "The streams of sites could not be started.");
    }
    clearDeviceBufferAsync(&impl_->d_force_, 0, impl_->numAtoms_, impl_->sitesStream_);
    return { { streams[0], streams[1] } };
}

void FmmGpu::joinSites()
{
    cudaEventRecord(impl_->atomsDone_, impl_->atomsStream_.stream());
    checkDeviceError(cudaStreamWaitEvent(impl_->sitesStream_.stream(), impl_->atomsDone_, 0),
                     "The streams of sites could not be joined.");
}

void* FmmGpu::endSites()
{
    checkDeviceError(cudaEventRecord(impl_->sitesDone_, impl_->sitesStream_.stream()),
                     "The end of the stream of sites could not be marked.");
    return impl_->sitesDone_;
}

void FmmGpu::enqueueRepeated(bool withEnergy, bool withVirial, const std::function<void(bool, bool)>& enqueue)
{
    if (isInGraph())
    {
        enqueue(withEnergy, withVirial);
        return;
    }
    impl_->numRepeated_++;
    for (int energy = 0; energy < 2; energy++)
    {
        for (int virial = 0; virial < 2; virial++)
        {
            const auto work = [&] { enqueue(energy != 0, virial != 0); };
            if (withEnergy == (energy != 0) && withVirial == (virial != 0))
            {
                impl_->repeated_[energy][virial].enqueue(work, impl_->numRepeated_, impl_->stream_);
            }
            else if (!withEnergy && !withVirial)
            {
                // Not when they are due: the host is ahead of the device now and will not be then
                impl_->repeated_[energy][virial].update(work, impl_->numRepeated_, impl_->stream_);
            }
        }
    }
}

bool FmmGpu::isRepeating() const
{
    return impl_->numRepeated_ >= RepeatedWork::c_numBeforeUpdate;
}

bool FmmGpu::isInGraph() const
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    checkDeviceError(cudaStreamIsCapturing(impl_->stream_.stream(), &status),
                     "Whether a graph is recorded could not be asked.");
    return status != cudaStreamCaptureStatusNone;
}

void FmmGpu::markAssignmentBegun()
{
    impl_->assignmentBegun_.markEvent(impl_->stream_);
}

void FmmGpu::enqueueAssignment(const std::function<void()>& enqueue)
{
    impl_->assignmentBegun_.enqueueWaitEvent(impl_->assignmentStream_);
    impl_->repeatedAssignment_.enqueue(enqueue, ++impl_->numRepeatedAssignments_, impl_->assignmentStream_);
    impl_->assignmentDone_.markEvent(impl_->assignmentStream_);
}

void* FmmGpu::assignmentStream() const
{
    return impl_->assignmentStream_.stream();
}

void FmmGpu::waitForAssignment()
{
    impl_->assignmentDone_.enqueueWaitEvent(impl_->stream_);
}

void FmmGpu::waitForGraph()
{
    impl_->graphDone_.markEvent(impl_->streams_.stream(DeviceStreamType::UpdateAndConstraints));
    impl_->graphDone_.enqueueWaitEvent(impl_->stream_);
}

void FmmGpu::letGraphWait()
{
    impl_->graphMayBegin_.markEvent(impl_->stream_);
    impl_->graphMayBegin_.enqueueWaitEvent(impl_->streams_.stream(DeviceStreamType::UpdateAndConstraints));
}

void FmmGpu::forgetRepeated()
{
    impl_->numRepeated_            = 0;
    impl_->numRepeatedAssignments_ = 0;
    impl_->repeatedAssignment_.outdate();
    for (auto& works : impl_->repeated_)
    {
        for (RepeatedWork& work : works)
        {
            work.outdate();
        }
    }
}

double FmmGpu::timeOf(const std::function<void()>& enqueue) const
{
    cudaEvent_t begin, end;
    float       time = 0;
    checkDeviceError(cudaEventCreate(&begin), "An event for timing the FMM could not be made.");
    checkDeviceError(cudaEventCreate(&end), "An event for timing the FMM could not be made.");
    cudaEventRecord(begin, impl_->stream_.stream());
    enqueue();
    cudaEventRecord(end, impl_->stream_.stream());
    checkDeviceError(cudaEventSynchronize(end), "The FMM failed while it was timed.");
    cudaEventElapsedTime(&time, begin, end);
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return time;
}

} // namespace gmx
