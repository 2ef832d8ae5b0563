/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Tests when errors are measured again during a run
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "gromacs/fmm/fmmremeasure.h"

#include <cmath>

#include <vector>

#include <gtest/gtest.h>

#include "gromacs/fmm/gmxfmmoptions.h"
#include "gromacs/pbcutil/pbc.h"

namespace gmx
{
namespace
{

//! Returns whether it is time after so many evaluations
bool isDue(FmmMeasurementSchedule schedule, int64_t since, double spread)
{
    schedule.since = since;
    return fmmMeasurementIsDue(schedule, spread);
}

TEST(FmmRemeasureTest, SpreadIsAVolumeOrAThickness)
{
    // Wherever they are; two nm apart along each axis
    const std::vector<RVec> x = { { 1001, -1, 5 }, { 1003, 1, 7 } };
    EXPECT_NEAR(fmmSpread(PbcType::No, x), std::pow(3, 1.5), 1e-6);
    EXPECT_NEAR(fmmSpread(PbcType::XY, x), 1, 1e-6);
    EXPECT_EQ(fmmSpread(PbcType::No, {}), 0);
}

TEST(FmmRemeasureTest, MeasurementsCostTwoPercent)
{
    FmmMeasurementSchedule schedule = firstFmmMeasurement(1);
    EXPECT_EQ(schedule.least, 1500);
    EXPECT_FALSE(isDue(schedule, 1499, 2));
    EXPECT_TRUE(isDue(schedule, 1500, 1));
    // Nothing was chosen: when atoms are where they were the next one is seldomer
    noteFmmMeasurement(&schedule, 1, c_fmmCostOfMeasurement, false);
    EXPECT_FALSE(isDue(schedule, 2999, 1));
    EXPECT_TRUE(isDue(schedule, 3000, 1));
    EXPECT_TRUE(isDue(schedule, 1500, 1.1));
    EXPECT_TRUE(isDue(schedule, 1500, 0.9));
    noteFmmMeasurement(&schedule, 1, c_fmmCostOfMeasurement, false);
    EXPECT_FALSE(isDue(schedule, 5999, 1));
    noteFmmMeasurement(&schedule, 3, c_fmmCostOfMeasurement + c_fmmCostOfChoice, true);
    EXPECT_FALSE(isDue(schedule, 6499, 30));
    EXPECT_TRUE(isDue(schedule, 6500, 3));
}

TEST(FmmRemeasureTest, ParametersAreOfTheDensityOfTheirChoice)
{
    FmmMeasurementSchedule schedule = firstFmmMeasurement(1);
    EXPECT_FALSE(fmmSpreadIsOther(schedule, 1.9));
    EXPECT_TRUE(fmmSpreadIsOther(schedule, 2.1));
    EXPECT_TRUE(fmmSpreadIsOther(schedule, 0.4));
    noteFmmMeasurement(&schedule, 2.1, c_fmmCostOfMeasurement, false);
    EXPECT_TRUE(fmmSpreadIsOther(schedule, 2.1));
    noteFmmMeasurement(&schedule, 2.1, c_fmmCostOfMeasurement, true);
    EXPECT_FALSE(fmmSpreadIsOther(schedule, 2.1));
    // One atom has no spread
    EXPECT_FALSE(fmmSpreadIsOther(firstFmmMeasurement(0), 0));
}

TEST(FmmRemeasureTest, IsForDynamicsWhereCellsFollowTheAtoms)
{
    FmmParameters parameters;
    parameters.atomsMoveInCells = true;
    EXPECT_FALSE(fmmIsMeasuredAgain(parameters));
    parameters.periodicity = FmmPeriodicity::Film;
    EXPECT_TRUE(fmmIsMeasuredAgain(parameters));
    parameters.periodicity = FmmPeriodicity::Box;
    parameters.boundary    = FmmBoundary::Open;
    EXPECT_TRUE(fmmIsMeasuredAgain(parameters));
    parameters.measure = false;
    EXPECT_FALSE(fmmIsMeasuredAgain(parameters));
    parameters.measure = true;
    parameters.order   = 8;
    EXPECT_TRUE(fmmIsMeasuredAgain(parameters));
    parameters.grid = { { 4, 4, 4 } };
    EXPECT_FALSE(fmmIsMeasuredAgain(parameters));
    parameters.grid             = { { 0, 0, 0 } };
    parameters.atomsMoveInCells = false;
    EXPECT_FALSE(fmmIsMeasuredAgain(parameters));
}

} // namespace
} // namespace gmx
