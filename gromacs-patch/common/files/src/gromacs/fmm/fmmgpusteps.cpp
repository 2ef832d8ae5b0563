/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements the steps of the FMM on a GPU
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmgpusteps.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <gmxfmm.h>

#include "gromacs/mdtypes/enerdata.h"
#include "gromacs/mdtypes/simulation_workload.h"
#include "gromacs/timing/wallcycle.h"

#include "fmmgpu.h"
#include "fmmsites.h"
#include "fmmstep.h"
#include "gmxfmmoptions.h"

namespace gmx
{

namespace
{

//! Returns whether nothing of the step is wanted on the host before the update, and the virial after it
bool virialComesLater(const StepWorkload& stepWork)
{
    return stepWork.computeVirialOnGpu && !stepWork.computeEnergy;
}

} // namespace

void FmmGpuSteps::setAtoms(int numAtoms, bool havePerturbedCharges)
{
    gpu_->setNumAtoms(numAtoms);
    forgetRepeated();
    numDevices_           = plan_.info().num_devices;
    haveAtomsChanged_     = true;
    isAssigning_          = false; // The plan forgets it, too
    havePerturbedCharges_ = havePerturbedCharges;
}

bool FmmGpuSteps::needEnergy(const StepWorkload& stepWork) const
{
    return stepWork.computeEnergy || (stepWork.computeDhdl && havePerturbedCharges_);
}

bool FmmGpuSteps::needSums(const StepWorkload& stepWork) const
{
    return needEnergy(stepWork) || stepWork.computeVirial;
}

void FmmGpuSteps::setSites(FmmSites* sites, const FmmSiteLists& lists, const FmmBox& box)
{
    sites_     = sites;
    siteLists_ = lists;
    box_       = box;
}

bool FmmGpuSteps::isSitesSearchDue(const int64_t step) const
{
    return sites_ != nullptr && siteLists_.interval > 0 && step - sitesSearchStep_ >= siteLists_.interval;
}

bool FmmGpuSteps::mayBeInGraph(const int64_t step, const bool isToAssign) const
{
    const bool isAsRecorded = numChangesInGraph_ < 0 || numChangesInGraph_ == numChanges_;
    return isAsRecorded && gpu_->isRepeating() && numDevices_ == 1 && !haveAtomsLeft_
           && !isSitesSearchDue(step) && !(isToAssign && !canEnqueueAssignment());
}

bool FmmGpuSteps::isAssignmentToEnd(const int64_t step, const bool isToAssign) const
{
    return isAssigning_ && (isToAssign || step - assignmentStep_ >= c_fmmStepsOfAssignmentOnGpu);
}

bool FmmGpuSteps::enqueueBeforeGraph(const int64_t step, const bool isToAssign)
{
    const bool isToEnd = isAssignmentToEnd(step, isToAssign);
    if (!isToAssign && !isToEnd)
    {
        return false;
    }
    gpu_->waitForGraph();
    if (isToEnd)
    {
        endAssignment();
    }
    if (isToAssign)
    {
        beginAssignment(repeatedX_, step);
        sortAssignment();
    }
    gpu_->letGraphWait();
    return true;
}

void FmmGpuSteps::searchSites(const void* x, const int64_t step)
{
    sites_->search(x, box_, gpu_->stream());
    sitesSearchStep_ = step;
    if (sites_->graphVersion() != sitesVersion_)
    {
        sitesVersion_ = sites_->graphVersion();
        forgetRepeated();
    }
}

void FmmGpuSteps::setBox(const FmmBox& box)
{
    box_ = box;
    plan_.check(gmxfmm_enqueue_box(plan_.get(), box.data(), gpu_->stream()));
    if (sites_ != nullptr && sitesVersion_ > 0) // otherwise a search comes first
    {
        sites_->setBox(box, gpu_->stream());
    }
    if (gmxfmm_graph_version(plan_.get()) != graphVersion_)
    {
        forgetRepeated();
    }
}

void FmmGpuSteps::forgetRepeated()
{
    repeatedX_    = nullptr;
    graphVersion_ = gmxfmm_graph_version(plan_.get());
    numChanges_++;
    gpu_->forgetRepeated();
}

void FmmGpuSteps::setAddress(const void* x)
{
    if (x != repeatedX_)
    {
        forgetRepeated();
        repeatedX_ = x;
    }
}

bool FmmGpuSteps::canEnqueueAssignment() const
{
    return (gmxfmm_capabilities(plan_.get()) & GMXFMM_CAN_ENQUEUE_ASSIGN) != 0;
}

void FmmGpuSteps::assign(const void* x)
{
    if (!haveAtomsChanged_ && canEnqueueAssignment())
    {
        plan_.check(gmxfmm_enqueue_assign(plan_.get(), x, gpu_->stream()));
    }
    else
    {
        assignAndWait(x);
    }
}

void FmmGpuSteps::assignAndWait(const void* x)
{
    plan_.check(gmxfmm_assign(plan_.get(), x));
    forgetRepeated();
    haveAtomsChanged_ = false;
}

void FmmGpuSteps::beginAssignment(const void* x, const int64_t step)
{
    if (!canEnqueueAssignment())
    {
        assign(x);
        return;
    }
    plan_.check(gmxfmm_enqueue_assign_part(plan_.get(), GMXFMM_ASSIGN_BEGIN, x, gpu_->stream()));
    gpu_->markAssignmentBegun();
    isAssigning_    = true;
    assignmentStep_ = step;
}

void FmmGpuSteps::sortAssignment()
{
    gpu_->enqueueAssignment(
            [&]
            {
                plan_.check(gmxfmm_enqueue_assign_part(
                        plan_.get(), GMXFMM_ASSIGN_SORT, nullptr, gpu_->assignmentStream()));
            });
}

void FmmGpuSteps::endAssignment()
{
    gpu_->waitForAssignment();
    plan_.check(gmxfmm_enqueue_assign_part(plan_.get(), GMXFMM_ASSIGN_END, nullptr, gpu_->stream()));
    isAssigning_ = false;
}

void FmmGpuSteps::tuneShares()
{
    // Until the second pair search the program starts up, and times its kernels
    constexpr int c_searchOfTuner = 2;
    const auto    now             = std::chrono::steady_clock::now();
    const double  seconds         = std::chrono::duration<double>(now - lastSearch_).count();
    const int     numSteps        = std::exchange(numSinceSearch_, 0);
    lastSearch_                   = now;
    if (numSearches_ < c_searchOfTuner)
    {
        numSearches_++;
        if (numSearches_ == c_searchOfTuner && plan_.info().num_devices > 1)
        {
            shareTuner_.emplace(plan_.info().shares[0]);
        }
    }
    else if (shareTuner_ && !shareTuner_->isDone() && numSteps > 0)
    {
        shareTuner_->add(seconds / numSteps);
    }
    else
    {
        return;
    }
    if (shareTuner_)
    {
        // At first it is the same, so that all that is compared has graphs made anew
        plan_.check(gmxfmm_set_first_share(plan_.get(), shareTuner_->share()));
        forgetRepeated();
    }
}

void FmmGpuSteps::enqueueEvaluation(const void* x, bool wantEnergy, bool wantVirial)
{
    setAddress(x);
    gpu_->enqueueRepeated(wantEnergy,
                          wantVirial,
                          [&](bool withEnergy, bool withVirial)
                          {
                              FmmStepSums*         sums   = gpu_->sumsAddress();
                              gmxfmm_device_output output = {};
                              output.size                 = sizeof(output);
                              output.force                = gpu_->forceAddress();
                              output.energy               = withEnergy ? sums->energy : nullptr;
                              output.virial               = withVirial ? sums->virial : nullptr;
                              output.charge_gradient      = withEnergy && havePerturbedCharges_
                                                                    ? &sums->chargeGradient
                                                                    : nullptr;
                              const bool withSums         = withEnergy || withVirial;
                              output.status               = withSums ? &sums->status : nullptr;
                              output.outside              = withSums ? &sums->outside : nullptr;
                              output.arrays_done = withSums ? gpu_->forcesWritten() : nullptr;
                              if (sites_ != nullptr)
                              {
                                  // Their forces are written first, so that those of the FMM are complete last
                                  const auto streams = gpu_->beginSites();
                                  sites_->enqueue(x, withSums ? sums->sites[0] : nullptr, streams);
                                  gpu_->joinSites();
                                  sites_->enqueueForces(gpu_->forceAddress(), streams[0]);
                                  output.add_forces   = 1;
                                  output.arrays_after = gpu_->endSites();
                              }
                              plan_.check(gmxfmm_enqueue(plan_.get(), x, &output, gpu_->stream()));
                          });
}

void FmmGpuSteps::measureTimes(const void* x)
{
    const auto timeOf = [&](unsigned stages)
    {
        constexpr int c_numRepeats = 5;
        double        seconds      = 0;
        plan_.check(gmxfmm_time_stages(plan_.get(), x, stages, c_numRepeats, gpu_->stream(), &seconds));
        return 1e3 * seconds;
    };
    FmmGpuTimes times;
    times.near          = timeOf(GMXFMM_STAGE_NEAR);
    times.far           = timeOf(GMXFMM_STAGE_FAR);
    times.sortAndOutput = timeOf(GMXFMM_STAGE_PERMUTE | GMXFMM_STAGE_OUTPUT);
    times.all           = timeOf(0);
    times.assign        = gpu_->timeOf([&] { assign(x); });
    times_              = times;
}

void FmmGpuSteps::enqueue(const void* x, FmmAssignment assignment, const StepWorkload& stepWork, const int64_t step)
{
    const bool isFirst = haveAtomsChanged_;
    if (stepWork.doNeighborSearch || stepWork.computeVirial)
    {
        numChangesInGraph_ = -1;
    }
    const bool isInGraph = gpu_->isInGraph(); // Assignments are not: enqueueBeforeGraph()
    if (!isInGraph && isAssignmentToEnd(step, assignment != FmmAssignment::No))
    {
        endAssignment();
    }
    if (assignment == FmmAssignment::AtSearch)
    {
        if (!isFirst)
        {
            tuneShares();
        }
        // Without a period along z the number of cells follows the atoms
        plan_.periodicity() == FmmPeriodicity::Box ? assign(x) : assignAndWait(x);
    }
    else if (assignment == FmmAssignment::BetweenSearches)
    {
        beginAssignment(x, step);
    }
    numSinceSearch_++;
    if (sites_ != nullptr && (assignment == FmmAssignment::AtSearch || isSitesSearchDue(step)))
    {
        searchSites(x, step);
    }
    enqueueEvaluation(x, needEnergy(stepWork), stepWork.computeVirial);
    if (isInGraph)
    {
        numChangesInGraph_ = numChanges_;
    }
    else if (isAssigning_ && assignment == FmmAssignment::BetweenSearches)
    {
        sortAssignment();
    }
    gpu_->markForcesReady(needSums(stepWork));
    gpu_->launchTransfer(!stepWork.useGpuFBufferOps, needSums(stepWork));
    if (isFirst && !times_.has_value())
    {
        measureTimes(x);
    }
}

FmmStepSums FmmGpuSteps::waitForSums(const StepWorkload& stepWork)
{
    wallcycle_start(wcycle_, WallCycleCounter::WaitGpuFmm);
    gpu_->waitForTransfer();
    FmmStepSums sums = gpu_->hostSums();
    if (stepWork.computeVirialOnGpu)
    {
        const ArrayRef<const double> shortRange = gpu_->waitForShortRangeVirial();
        for (int i = 0; i < DIM * DIM; i++)
        {
            sums.virial[i] -= 0.5 * shortRange[i];
        }
    }
    wallcycle_stop(wcycle_, WallCycleCounter::WaitGpuFmm);
    if (sites_ != nullptr && needSums(stepWork))
    {
        FmmSiteSums ofSites = {};
        for (size_t i = 0; i < ofSites.size(); i++)
        {
            ofSites[i] = sums.sites[0][i] + (siteLists_.interval > 0 ? sums.sites[1][i] : 0);
        }
        ofSites        = sites_->withConstants(ofSites, box_);
        energyOfSites_ = ofSites[0];
        for (int i = 0; i < DIM * DIM; i++)
        {
            sums.virial[i] += ofSites[1 + i];
        }
    }
    if (needSums(stepWork))
    {
        haveAtomsLeft_ = plan_.checkStep(sums.status, sums.outside) || haveAtomsLeft_;
    }
    return sums;
}

void FmmGpuSteps::waitAndReduce(const StepWorkload& stepWork,
                                ForceWithVirial*    forceWithVirial,
                                gmx_enerdata_t*     enerd)
{
    const bool needForces = !stepWork.useGpuFBufferOps;
    if (virialComesLater(stepWork) || (!needForces && !needSums(stepWork)))
    {
        return;
    }
    const FmmStepSums sums = waitForSums(stepWork);
    if (needSums(stepWork))
    {
        addFmmSums(sums.energy[0], sums.energy[1], sums.virial, stepWork, forceWithVirial, enerd);
        if (sites_ != nullptr && stepWork.computeEnergy)
        {
            enerd->grpp.energyGroupPairTerms[NonBondedEnergyTerms::LJSR][0] += energyOfSites_;
        }
    }
    if (havePerturbedCharges_ && stepWork.computeDhdl)
    {
        enerd->dvdl_lin[FreeEnergyPerturbationCouplingType::Coul] += sums.chargeGradient;
    }
    if (needForces)
    {
        addFmmForces(gpu_->hostForces(), stepWork, forceWithVirial);
    }
}

void FmmGpuSteps::waitAndAddVirial(const StepWorkload& stepWork, tensor virial)
{
    if (!virialComesLater(stepWork))
    {
        return;
    }
    const FmmStepSums sums = waitForSums(stepWork);
    for (int i = 0; i < DIM; i++)
    {
        for (int j = 0; j < DIM; j++)
        {
            virial[i][j] += sums.virial[DIM * i + j];
        }
    }
}

} // namespace gmx
