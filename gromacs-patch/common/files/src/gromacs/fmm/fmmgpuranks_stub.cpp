/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Stands for several ranks with an FMM on GPUs in builds without CUDA or MPI, where there are none
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "gromacs/utility/gmxassert.h"

#include "fmmgpuranks.h"

namespace gmx
{

class FmmGpuRanks::Impl
{
};

static const std::vector<int> c_noDevices;

FmmGpuRanks::FmmGpuRanks(const t_commrec& /*cr*/, int /*numAtoms*/, const DeviceStreamManager& /*streams*/)
{
    GMX_RELEASE_ASSERT(false, "Ranks with an FMM on GPUs need a build with CUDA and MPI");
}

FmmGpuRanks::~FmmGpuRanks() = default;

bool FmmGpuRanks::isMain() const
{
    return true;
}

int FmmGpuRanks::size() const
{
    return 1;
}

int FmmGpuRanks::numByHost() const
{
    return 0;
}

const std::vector<int>& FmmGpuRanks::devices() const
{
    return c_noDevices;
}

void FmmGpuRanks::setHomeAtoms(ArrayRef<const int> /*home*/) {}

void FmmGpuRanks::sendCoordinates(DeviceBuffer<RVec> /*x*/, GpuEventSynchronizer* /*xReady*/) {}

const void* FmmGpuRanks::gatherCoordinates()
{
    return nullptr;
}

void FmmGpuRanks::sendForces(const void* /*force*/) {}

void FmmGpuRanks::receiveForces(bool /*toHost*/) {}

DeviceBuffer<RVec> FmmGpuRanks::forces() const
{
    return {};
}

GpuEventSynchronizer* FmmGpuRanks::forcesReady()
{
    return nullptr;
}

ArrayRef<const RVec> FmmGpuRanks::waitForHostForces() const
{
    return {};
}

} // namespace gmx
