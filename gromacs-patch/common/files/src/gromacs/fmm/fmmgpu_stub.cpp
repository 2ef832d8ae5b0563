/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Stands for the FMM on a GPU in builds without CUDA, where nothing asks for it
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "gromacs/utility/gmxassert.h"

#include "fmmgpu.h"

namespace gmx
{

class FmmGpu::Impl
{
};

static const FmmStepSums c_noSums = {};

FmmGpu::FmmGpu(const DeviceStreamManager& /*streams*/)
{
    GMX_RELEASE_ASSERT(false, "FMM on a GPU needs a build with CUDA");
}

FmmGpu::~FmmGpu() = default;

int FmmGpu::deviceId() const
{
    return -1;
}

void* FmmGpu::stream() const
{
    return nullptr;
}

void FmmGpu::setNumAtoms(int /*numAtoms*/) {}

void FmmGpu::setPerturbedCharges(ArrayRef<const int> /*atoms*/,
                                 ArrayRef<const real> /*chargesA*/,
                                 ArrayRef<const real> /*difference*/)
{
}

void FmmGpu::computePerturbedCharges(real /*lambda*/) {}

const int* FmmGpu::perturbedAtomsAddress() const
{
    return nullptr;
}

const void* FmmGpu::perturbedChargesAddress() const
{
    return nullptr;
}

void FmmGpu::waitInStream(GpuEventSynchronizer* /*event*/) const {}

const void* FmmGpu::address(DeviceBuffer<RVec> /*x*/)
{
    return nullptr;
}

const void* FmmGpu::upload(ArrayRef<const RVec> /*x*/)
{
    return nullptr;
}

DeviceBuffer<RVec> FmmGpu::forces() const
{
    return {};
}

void* FmmGpu::forceAddress() const
{
    return nullptr;
}

FmmStepSums* FmmGpu::sumsAddress() const
{
    return nullptr;
}

void* FmmGpu::forcesWritten() const
{
    return nullptr;
}

void FmmGpu::markForcesReady(bool /*byEvent*/) {}

GpuEventSynchronizer* FmmGpu::forcesReady()
{
    return nullptr;
}

void FmmGpu::launchTransfer(bool /*withForces*/, bool /*withSums*/) {}

void FmmGpu::waitForTransfer() const {}

ArrayRef<const RVec> FmmGpu::hostForces() const
{
    return {};
}

const FmmStepSums& FmmGpu::hostSums() const
{
    return c_noSums;
}

void FmmGpu::launchShortRangeVirial(const void* /*xq*/,
                                    DeviceBuffer<RVec> /*f*/,
                                    int /*numAtoms*/,
                                    DeviceBuffer<RVec> /*shiftForces*/,
                                    ArrayRef<const RVec> /*shiftVectors*/)
{
}

ArrayRef<const double> FmmGpu::waitForShortRangeVirial() const
{
    return {};
}

std::array<void*, 2> FmmGpu::beginSites()
{
    return { { nullptr, nullptr } };
}

void FmmGpu::joinSites() {}

void* FmmGpu::endSites()
{
    return nullptr;
}

void FmmGpu::enqueueRepeated(bool /*withEnergy*/,
                             bool /*withVirial*/,
                             const std::function<void(bool, bool)>& /*enqueue*/)
{
}

bool FmmGpu::isRepeating() const
{
    return false;
}

bool FmmGpu::isInGraph() const
{
    return false;
}

void FmmGpu::markAssignmentBegun() {}

void FmmGpu::enqueueAssignment(const std::function<void()>& /*enqueue*/) {}

void* FmmGpu::assignmentStream() const
{
    return nullptr;
}

void FmmGpu::waitForAssignment() {}

void FmmGpu::waitForGraph() {}

void FmmGpu::letGraphWait() {}

void FmmGpu::forgetRepeated() {}

double FmmGpu::timeOf(const std::function<void()>& /*enqueue*/) const
{
    return 0;
}

void FmmGpu::beginBesideNonbonded() {}

void FmmGpu::endBesideNonbonded() {}

} // namespace gmx
