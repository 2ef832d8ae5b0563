/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Stands for the solver behind coulombtype = FMM in builds without the gmxfmm library
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "gromacs/utility/exceptions.h"
#include "gromacs/utility/gmxassert.h"

#include "fmmdomains.h"
#include "fmmgpuranks.h"
#include "fmmranks.h"
#include "fmmsolver.h"

namespace gmx
{

std::string whyNoFmmOnDevice(int /*deviceId*/, bool /*isSlab*/)
{
    return "this build has no gmxfmm library";
}

class FmmSolver::Impl
{
};

FmmSolver::FmmSolver(const FmmParameters& /*parameters*/,
                     const gmx_mtop_t& /*mtop*/,
                     const matrix /*box*/,
                     ArrayRef<const RVec> /*x*/,
                     real /*epsfac*/,
                     bool /*reproducible*/,
                     int /*numThreads*/,
                     gmx_wallcycle* /*wcycle*/,
                     const DeviceStreamManager* /*gpuStreams*/)
{
    GMX_THROW(NotImplementedError(
            "This build of GROMACS does not offer coulombtype = FMM; configure it with "
            "-DGMX_GMXFMM=ON and the gmxfmm library, or use coulombtype = PME"));
}

FmmSolver::FmmSolver(const FmmParameters& /*parameters*/,
                     const gmx_mtop_t& /*mtop*/,
                     gmx_wallcycle* /*wcycle*/,
                     const DeviceStreamManager& /*gpuStreams*/)
{
}

FmmSolver::~FmmSolver() = default;

std::string FmmSolver::description() const
{
    return {};
}

void FmmSolver::keepChoice(FmmChoice* /*choice*/) {}

void FmmSolver::choosePairList(const t_inputrec& /*inputrec*/,
                               int /*multipleOf*/,
                               FmmListChanger /*change*/,
                               std::unique_ptr<FmmDomains> /*domains*/,
                               const MDLogger& /*mdlog*/)
{
}

void FmmSolver::tunePairList(int64_t /*step*/, const matrix /*box*/, ArrayRef<const RVec> /*x*/) {}

void FmmSolver::splitLennardJones(const t_inputrec& /*inputrec*/,
                                  const FmmSiteLists& /*lists*/,
                                  const matrix /*box*/,
                                  ArrayRef<const RVec> /*x*/,
                                  const MDLogger& /*mdlog*/)
{
}

bool FmmSolver::hasAllPairs() const
{
    return false;
}

double FmmSolver::expectedError() const
{
    return 0;
}

void FmmSolver::logSetup(const MDLogger& /*mdlog*/, FILE* /*fplog*/) {}

void FmmSolver::logTimes(const MDLogger& /*mdlog*/) const {}

void FmmSolver::measureAtEnd(const MDLogger& /*mdlog*/,
                             const gmx_mtop_t& /*mtop*/,
                             ArrayRef<const RVec> /*x*/,
                             const matrix /*box*/) const
{
}

real FmmSolver::pairSearchDensity(const GridCorners& /*region*/, ArrayRef<const AtomInfo> /*atomInfo*/)
{
    return -1;
}

real FmmSolver::homeDensity(real atomDensity, ArrayRef<const AtomInfo> /*atomInfo*/) const
{
    return atomDensity;
}

void FmmSolver::setAtoms(ArrayRef<const real> /*charges*/,
                         ArrayRef<const real> /*chargesB*/,
                         const ListOfLists<int>& /*exclusions*/,
                         ArrayRef<const unsigned short> /*groups*/)
{
}

void FmmSolver::setRanks(std::unique_ptr<FmmRanks> /*ranks*/, bool /*isDivided*/) {}

void FmmSolver::setGpuRanks(std::unique_ptr<FmmGpuRanks> /*gpuRanks*/, std::unique_ptr<FmmRanks> /*ranks*/)
{
}

bool FmmSolver::canBeDivided() const
{
    return false;
}

void FmmSolver::setHomeAtoms(ArrayRef<const int> /*home*/) {}

FmmChoice FmmSolver::choiceForOtherRanks() const
{
    return {};
}

void FmmSolver::setLambda(real /*lambda*/) {}

void FmmSolver::calculate(ArrayRef<const RVec> /*x*/,
                          const matrix /*box*/,
                          const StepWorkload& /*stepWork*/,
                          int64_t /*step*/,
                          ForceWithVirial* /*forceWithVirial*/,
                          gmx_enerdata_t* /*enerd*/)
{
    GMX_RELEASE_ASSERT(false, "The constructor does not return");
}

void FmmSolver::followAtoms(ArrayRef<const RVec> /*x*/, const matrix /*box*/, int64_t /*step*/) {}

void FmmSolver::setBox(const matrix /*box*/) {}

void FmmSolver::launchGpu(DeviceBuffer<RVec> /*x*/,
                          GpuEventSynchronizer* /*xReady*/,
                          const matrix /*box*/,
                          const StepWorkload& /*stepWork*/,
                          int64_t /*step*/)
{
}

void FmmSolver::launchGpuWithHostCoordinates(ArrayRef<const RVec> /*x*/,
                                             const matrix /*box*/,
                                             const StepWorkload& /*stepWork*/,
                                             int64_t /*step*/)
{
}

bool FmmSolver::mayBeInGraph(int64_t /*step*/)
{
    return false;
}

bool FmmSolver::enqueueBeforeGraph(int64_t /*step*/)
{
    return false;
}

DeviceBuffer<RVec> FmmSolver::gpuForces() const
{
    return {};
}

GpuEventSynchronizer* FmmSolver::gpuForcesReady() const
{
    return nullptr;
}

void FmmSolver::waitAndReduceGpu(const StepWorkload& /*stepWork*/,
                                 ForceWithVirial* /*forceWithVirial*/,
                                 gmx_enerdata_t* /*enerd*/)
{
}

void FmmSolver::waitAndAddVirial(const StepWorkload& /*stepWork*/, tensor /*virial*/) {}

void FmmSolver::launchShortRangeVirial(const void* /*xq*/,
                                       DeviceBuffer<RVec> /*f*/,
                                       int /*numAtoms*/,
                                       DeviceBuffer<RVec> /*shiftForces*/,
                                       ArrayRef<const RVec> /*shiftVectors*/)
{
}

void FmmSolver::beginBesideNonbonded() {}

void FmmSolver::endBesideNonbonded() {}

} // namespace gmx
