/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements when errors are measured again during a run, where cells follow the atoms
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmremeasure.h"

#include <cmath>

#include <algorithm>

#include "gromacs/pbcutil/pbc.h"

#include "fmmsystem.h"
#include "gmxfmmoptions.h"

namespace gmx
{

bool fmmIsMeasuredAgain(const FmmParameters& parameters)
{
    const bool doCellsFollow = parameters.boundary == FmmBoundary::Open
                               || parameters.periodicity == FmmPeriodicity::Film;
    return doCellsFollow && parameters.measure && parameters.atomsMoveInCells
           && !fmmParametersAreFixed(parameters);
}

double fmmSpread(const PbcType pbcType, ArrayRef<const RVec> x)
{
    const int first = pbcType == PbcType::XY ? ZZ : XX;
    double    sum   = 0;
    for (int d = first; d < DIM && !x.empty(); d++)
    {
        // From the first atom on, as far from the origin squares of coordinates would leave no digits
        const double from = x[0][d];
        double       mean = 0, square = 0;
        for (const RVec& xi : x)
        {
            mean += xi[d] - from;
            square += (xi[d] - from) * (xi[d] - from);
        }
        mean /= x.size();
        sum += square / x.size() - mean * mean;
    }
    const double distance = std::sqrt(std::max(sum, 0.0));
    return first == ZZ ? distance : power3(distance);
}

FmmMeasurementSchedule firstFmmMeasurement(const double spread)
{
    FmmMeasurementSchedule schedule;
    schedule.spreadAtChoice = spread;
    noteFmmMeasurement(&schedule, spread, c_fmmCostOfMeasurement, true);
    return schedule;
}

bool fmmMeasurementIsDue(const FmmMeasurementSchedule& schedule, const double spread)
{
    constexpr double c_changed = 0.05;
    return schedule.since >= schedule.least
           && (schedule.since >= schedule.most
               || std::abs(spread - schedule.spread) > c_changed * schedule.spread);
}

bool fmmSpreadIsOther(const FmmMeasurementSchedule& schedule, const double spread)
{
    return spread > 0 && schedule.spreadAtChoice > 0 && fmmIsOther(spread / schedule.spreadAtChoice);
}

void noteFmmMeasurement(FmmMeasurementSchedule* schedule, const double spread, const double cost, const bool isChosen)
{
    schedule->since  = 0;
    schedule->spread = spread;
    schedule->least  = static_cast<int64_t>(std::ceil(cost / c_fmmShareOfMeasurements));
    schedule->most   = isChosen ? schedule->least : std::max(2 * schedule->most, schedule->least);
    if (isChosen)
    {
        schedule->spreadAtChoice = spread;
    }
}

} // namespace gmx
