/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares when errors are measured again during a run, where cells follow the atoms
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMREMEASURE_H
#define GMX_FMM_FMMREMEASURE_H

#include <cstdint>

#include "gromacs/utility/arrayref.h"

#include "fmmversion.h"

enum class PbcType : int;

namespace gmx
{

struct FmmParameters;

/*! \libinternal \brief
 * When errors are measured again, in evaluations of the FMM
 *
 * Times would be others in a continued run, which is to measure at the same steps.
 */
struct FmmMeasurementSchedule
{
    //! Evaluations since the last measurement, before the last pair search; -1: nothing is measured again
    int64_t since = -1;
    //! So many keep the cost of measurements at c_fmmShareOfMeasurements
    int64_t least = 0;
    //! After so many it is time even if atoms seem to be where they were
    int64_t most = 0;
    //! fmmSpread() at the last measurement, and when parameters were chosen
    double spread = 0, spreadAtChoice = 0;
};

//! Share of the evaluations of a run that measurements may cost
constexpr double c_fmmShareOfMeasurements = 0.02;

/*! \brief What a measurement of the parameters in use takes, and a choice, in evaluations of the FMM
 *
 * In droplets of 200 to 1,700 atoms on a CPU they took 29 and 50 to 80.
 */
constexpr double c_fmmCostOfMeasurement = 30, c_fmmCostOfChoice = 100;

/*! \brief Returns whether errors are measured again during a run
 *
 * In dynamics, where cells follow the atoms and are left to mdrun, and with mdrun's measurement at the start.
 */
bool fmmIsMeasuredAgain(const FmmParameters& parameters);

/*! \brief Returns a measure of the volume that atoms take
 *
 * The cube of their root mean square distance from their middle, in nm^3; with pbc = xy this distance along z, in nm.
 */
double fmmSpread(PbcType pbcType, ArrayRef<const RVec> x);

//! Returns the schedule at the start of a run
FmmMeasurementSchedule firstFmmMeasurement(double spread);

//! Returns whether it is time to measure
bool fmmMeasurementIsDue(const FmmMeasurementSchedule& schedule, double spread);

//! Returns whether atoms are so much denser, or less dense, than at the choice that other parameters may be faster
bool fmmSpreadIsOther(const FmmMeasurementSchedule& schedule, double spread);

/*! \brief Takes note of a measurement
 *
 * \param[in,out] schedule   Becomes that of the next one
 * \param[in]     spread     Of the atoms at the measurement
 * \param[in]     cost       Of the measurement, in evaluations
 * \param[in]     isChosen   Whether parameters were chosen anew
 */
void noteFmmMeasurement(FmmMeasurementSchedule* schedule, double spread, double cost, bool isChosen);

} // namespace gmx

#endif
