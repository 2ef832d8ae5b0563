/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Declares what FMM steps on the CPU and on a GPU have in common
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMSTEP_H
#define GMX_FMM_FMMSTEP_H

#include <cstdint>

#include "gromacs/utility/arrayref.h"

#include "fmmversion.h"

struct gmx_enerdata_t;

namespace gmx
{

class ForceWithVirial;
class StepWorkload;

//! Adds the forces of a step, if they are wanted
void addFmmForces(ArrayRef<const RVec> force, const StepWorkload& stepWork, ForceWithVirial* forceWithVirial);

/*! \brief Adds energies and virial of a step, those that are wanted
 *
 * \param[in]     energyNear       Energy of pairs in neighboring cells
 * \param[in]     energyFar        Energy of all the rest
 * \param[in]     virial           9 numbers, row-major
 * \param[in]     stepWork         What is wanted
 * \param[in,out] forceWithVirial  Gets the virial
 * \param[in,out] enerd            Gets the energies
 */
void addFmmSums(double              energyNear,
                double              energyFar,
                const double*       virial,
                const StepWorkload& stepWork,
                ForceWithVirial*    forceWithVirial,
                gmx_enerdata_t*     enerd);

//! Whether atoms are to be assigned to cells at a step
enum class FmmAssignment : int
{
    No,
    //! So that the next steps have the new cells
    BetweenSearches,
    //! Before forces are computed
    AtSearch
};

/*! \internal \brief
 * The steps at which atoms are assigned to cells
 *
 * \ingroup module_fmm
 */
class FmmAssignments
{
public:
    //! \param[in] maxStepsInCells  Steps between pair searches after which atoms are assigned again, 0: never
    explicit FmmAssignments(int maxStepsInCells) : maxStepsInCells_(maxStepsInCells) {}

    //! Steps between pair searches after which atoms are assigned to cells again, 0: never
    int maxStepsInCells() const { return maxStepsInCells_; }
    //! Sets these, before the assignment at a pair search
    void setMaxStepsInCells(int maxStepsInCells) { maxStepsInCells_ = maxStepsInCells; }
    //! Says that the atoms have been changed since they were assigned to cells
    void atomsHaveChanged() { haveAtomsChanged_ = true; }
    //! Says that atoms have left their cells, so that they are to be assigned again as soon as possible
    void atomsHaveLeft() { haveAtomsLeft_ = true; }
    //! Returns whether atoms are to be assigned to cells at a step without pair search
    bool isDueBetweenSearches(int64_t step) const;
    //! Returns whether atoms are to be assigned to cells now, and takes note of it
    FmmAssignment due(const StepWorkload& stepWork, int64_t step);

private:
    int  maxStepsInCells_;
    bool haveAtomsChanged_ = true;
    bool haveAtomsLeft_    = false;
    //! Steps of the last pair search and the last assignment
    int64_t searchStep_ = 0, assignStep_ = 0;
};

} // namespace gmx

#endif
