/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Tests for what mdrun's options of PME mean with an FMM
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "gromacs/fmm/fmmtaskassignment.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/mdtypes/md_enums.h"
#include "gromacs/taskassignment/decidegpuusage.h"
#include "gromacs/utility/exceptions.h"

#include "testutils/loggertest.h"

namespace gmx
{
namespace
{

//! What the user gave with -pme, -pmefft and -fmm
class FmmTaskAssignmentTest : public ::testing::Test
{
protected:
    FmmTaskAssignmentTest() { inputrec_.coulombtype = CoulombInteractionType::Fmm; }

    void take() { takePmeTargetsForFmm(inputrec_, &pme_, &pmeFft_, &fmm_, log_.logger()); }
    void expectNote(const char* regex)
    {
        log_.expectEntryMatchingRegex(MDLogger::LogLevel::Warning, regex);
    }

    t_inputrec             inputrec_;
    TaskTarget             pme_    = TaskTarget::Auto;
    TaskTarget             pmeFft_ = TaskTarget::Auto;
    TaskTarget             fmm_    = TaskTarget::Auto;
    test::LoggerTestHelper log_;
};

TEST_F(FmmTaskAssignmentTest, TakesPmeForFmmWithANote)
{
    pme_ = TaskTarget::Gpu;
    expectNote("NOTE: .*-pme gpu means -fmm gpu");
    take();
    EXPECT_EQ(TaskTarget::Gpu, fmm_);
    EXPECT_EQ(TaskTarget::Auto, pme_);
}

TEST_F(FmmTaskAssignmentTest, TakesTheSameFromBoth)
{
    pme_ = fmm_ = TaskTarget::Cpu;
    expectNote("-pme cpu means -fmm cpu");
    take();
    EXPECT_EQ(TaskTarget::Cpu, fmm_);
    EXPECT_EQ(TaskTarget::Auto, pme_);
}

TEST_F(FmmTaskAssignmentTest, LeavesOutTheFftsWithANote)
{
    pmeFft_ = TaskTarget::Gpu;
    expectNote("-pmefft gpu has no effect");
    take();
    EXPECT_EQ(TaskTarget::Auto, fmm_);
    EXPECT_EQ(TaskTarget::Auto, pmeFft_);
}

TEST_F(FmmTaskAssignmentTest, SaysNothingWhereNothingWasGiven)
{
    log_.expectNoEntries(MDLogger::LogLevel::Warning);
    fmm_ = TaskTarget::Gpu;
    take();
    EXPECT_EQ(TaskTarget::Gpu, fmm_);
}

TEST_F(FmmTaskAssignmentTest, LeavesPmeItsOptions)
{
    log_.expectNoEntries(MDLogger::LogLevel::Warning);
    inputrec_.coulombtype = CoulombInteractionType::Pme;
    pme_ = pmeFft_ = TaskTarget::Gpu;
    take();
    EXPECT_EQ(TaskTarget::Gpu, pme_);
    EXPECT_EQ(TaskTarget::Gpu, pmeFft_);
    EXPECT_EQ(TaskTarget::Auto, fmm_);
}

TEST_F(FmmTaskAssignmentTest, RefusesAContradiction)
{
    pme_ = TaskTarget::Gpu;
    fmm_ = TaskTarget::Cpu;
    try
    {
        take();
        FAIL() << "nothing was thrown";
    }
    catch (const InconsistentInputError& error)
    {
        EXPECT_THAT(error.what(), ::testing::HasSubstr("-pme gpu contradicts -fmm cpu"));
    }
}

TEST(FmmDevicesOfRanksTest, HasEachDeviceOnce)
{
    const std::vector<int> ofRanks = { 2, 0, 2, 1, 0 };
    FmmDevices             devices = fmmDevicesOfRanks(ofRanks, false);
    EXPECT_THAT(devices.available, ::testing::ElementsAre(2, 0, 1));
    EXPECT_EQ(0, devices.num); // One or all, as is faster
    EXPECT_EQ(1, fmmDevicesOfRanks(ofRanks, true).num);
}

} // namespace
} // namespace gmx
