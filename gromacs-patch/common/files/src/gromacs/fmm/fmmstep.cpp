/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements what FMM steps on the CPU and on a GPU have in common
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmstep.h"

#include "gromacs/mdlib/gmx_omp_nthreads.h"
#include "gromacs/mdtypes/enerdata.h"
#include "gromacs/mdtypes/forceoutput.h"
#include "gromacs/mdtypes/simulation_workload.h"

namespace gmx
{

void addFmmForces(ArrayRef<const RVec> force, const StepWorkload& stepWork, ForceWithVirial* forceWithVirial)
{
    if (!stepWork.computeForces)
    {
        return;
    }
    const int gmx_unused numThreads = gmx_omp_nthreads_get(ModuleMultiThread::Default);
#pragma omp parallel for num_threads(numThreads) schedule(static)
    for (Index i = 0; i < force.ssize(); i++)
    {
        forceWithVirial->force_[i] += force[i];
    }
}

void addFmmSums(double              energyNear,
                double              energyFar,
                const double*       virial,
                const StepWorkload& stepWork,
                ForceWithVirial*    forceWithVirial,
                gmx_enerdata_t*     enerd)
{
    if (stepWork.computeEnergy)
    {
        enerd->grpp.energyGroupPairTerms[NonBondedEnergyTerms::CoulombSR][0] += energyNear;
        coulombReciprocalTerm(enerd) += energyFar;
    }
    if (stepWork.computeVirial)
    {
        matrix virialMatrix;
        for (int d = 0; d < DIM; d++)
        {
            for (int e = 0; e < DIM; e++)
            {
                virialMatrix[d][e] = virial[d * DIM + e];
            }
        }
        forceWithVirial->addVirialContribution(virialMatrix);
    }
}

bool FmmAssignments::isDueBetweenSearches(int64_t step) const
{
    // Counted from the last pair search, at which checkpoints are written, so that a continued
    // run assigns at the same steps. With multiple time stepping not all steps come here.
    return haveAtomsLeft_
           || (maxStepsInCells_ > 0
               && (step - searchStep_) / maxStepsInCells_ != (assignStep_ - searchStep_) / maxStepsInCells_);
}

FmmAssignment FmmAssignments::due(const StepWorkload& stepWork, int64_t step)
{
    const bool isNew = stepWork.doNeighborSearch || haveAtomsChanged_;
    const bool isDue = isNew || isDueBetweenSearches(step);
    if (isNew)
    {
        searchStep_ = step;
    }
    if (isDue)
    {
        assignStep_ = step;
    }
    haveAtomsChanged_ = false;
    haveAtomsLeft_    = false;
    return isNew   ? FmmAssignment::AtSearch
           : isDue ? FmmAssignment::BetweenSearches
                   : FmmAssignment::No;
}

} // namespace gmx
