/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements stream, event and buffers for an FMM solver with CUDA
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmgpu.h"

#include "gromacs/gpu_utils/cudautils.cuh"
#include "gromacs/gpu_utils/device_context.h"
#include "gromacs/gpu_utils/device_stream.h"
#include "gromacs/gpu_utils/device_stream_manager.h"
#include "gromacs/gpu_utils/devicebuffer.h"
#include "gromacs/gpu_utils/gpueventsynchronizer.h"
#include "gromacs/gpu_utils/hostallocator.h"
#include "gromacs/hardware/device_information.h"

namespace gmx
{

class FmmGpu::Impl
{
public:
    explicit Impl(const DeviceStreamManager& streams) :
        context_(streams.context()),
        stream_(streams.stream(DeviceStreamType::Fmm)),
        deviceId_(streams.deviceInfo().id)
    {
        allocateDeviceBuffer(&d_sums_, 1, context_);
        changePinningPolicy(&h_force_, PinningPolicy::PinnedIfSupported);
        changePinningPolicy(&h_sums_, PinningPolicy::PinnedIfSupported);
        h_sums_.resize(1);
    }

    ~Impl()
    {
        forgetGraph();
        freeDeviceBuffer(&d_force_);
        freeDeviceBuffer(&d_x_);
        freeDeviceBuffer(&d_sums_);
    }

    void forgetGraph()
    {
        if (graph_ != nullptr)
        {
            cudaGraphExecDestroy(graph_);
            graph_ = nullptr;
        }
    }

    const DeviceContext& context_;
    const DeviceStream&  stream_;
    const int            deviceId_;
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
    //! The work that is repeated, and how often it was without having been recorded
    cudaGraphExec_t graph_       = nullptr;
    int             numRepeated_ = 0;
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

void FmmGpu::markForcesReady()
{
    impl_->forcesReady_.markEvent(impl_->stream_);
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

void FmmGpu::enqueueRepeated(const std::function<void()>& enqueue)
{
    // To record costs what some ten steps save; with pressure coupling the work changes that often
    constexpr int      c_numBeforeRecording = 15;
    const cudaStream_t stream               = impl_->stream_.stream();
    if (impl_->graph_ == nullptr && ++impl_->numRepeated_ > c_numBeforeRecording)
    {
        cudaGraph_t graph = nullptr;
        checkDeviceError(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
                         "Recording of the FMM step could not be started.");
        enqueue();
        checkDeviceError(cudaStreamEndCapture(stream, &graph),
                         "The FMM step could not be recorded.");
        // With a name of its own since CUDA 11.4, where the other one takes more arguments
        const cudaError_t status = cudaGraphInstantiateWithFlags(&impl_->graph_, graph, 0);
        cudaGraphDestroy(graph);
        checkDeviceError(status, "The graph of the FMM step could not be made.");
    }
    if (impl_->graph_ != nullptr)
    {
        checkDeviceError(cudaGraphLaunch(impl_->graph_, stream),
                         "The FMM step could not be launched.");
    }
    else
    {
        enqueue();
    }
}

void FmmGpu::forgetRepeated()
{
    impl_->forgetGraph();
    impl_->numRepeated_ = 0;
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
