/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Tests that checkpoints keep what was chosen by times, or during the run
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "gromacs/fmm/fmmchoice.h"

#include <gtest/gtest.h>

#include "gromacs/utility/keyvaluetree.h"
#include "gromacs/utility/keyvaluetreebuilder.h"

namespace gmx
{
namespace
{

//! Returns the data of modules of a checkpoint that has this choice
KeyValueTreeObject dataWith(const FmmChoice& choice)
{
    KeyValueTreeBuilder builder;
    writeFmmChoice(choice, builder.rootObject());
    return builder.build();
}

TEST(FmmChoiceTest, IsReadAsItWasWritten)
{
    FmmChoice choice;
    choice.asked         = 2.4e-4;
    choice.accuracy      = 1.0 / 3;
    choice.m2l           = 1;
    choice.order         = 11;
    choice.depth         = -1;
    choice.separation    = 2;
    choice.grid          = { { 7, 8, 9 } };
    const FmmChoice read = readFmmChoice(dataWith(choice));
    EXPECT_EQ(read.asked, choice.asked);
    EXPECT_EQ(read.accuracy, choice.accuracy);
    EXPECT_EQ(read.m2l, choice.m2l);
    EXPECT_EQ(read.order, choice.order);
    EXPECT_EQ(read.depth, choice.depth);
    EXPECT_EQ(read.separation, choice.separation);
    EXPECT_EQ(read.grid, choice.grid);
    EXPECT_TRUE(read.x.empty());
    EXPECT_LT(read.schedule.since, 0);
    EXPECT_EQ(read.nstlist, 0);
}

TEST(FmmChoiceTest, IsReadWithNstlistAlone)
{
    FmmChoice choice;
    choice.nstlist         = 150;
    choice.isNstlistForGpu = true;
    choice.nstlistRanks    = 4;
    const FmmChoice read   = readFmmChoice(dataWith(choice));
    EXPECT_EQ(read.nstlist, 150);
    EXPECT_TRUE(read.isNstlistForGpu);
    EXPECT_EQ(read.nstlistRanks, 4);
    EXPECT_EQ(read.asked, 0);
    EXPECT_LT(read.schedule.since, 0);
}

TEST(FmmChoiceTest, IsReadWithCoordinatesAndSchedule)
{
    FmmChoice choice;
    choice.x                       = { 0.1, -1.0 / 3, 1e30, 4, 5, 6 };
    choice.box                     = { { 1, 2, 3, 4, 5, 6, 7, 8, 1.0 / 9 } };
    choice.schedule.since          = 0;
    choice.schedule.least          = 1500;
    choice.schedule.most           = 3000;
    choice.schedule.spread         = 1.0 / 7;
    choice.schedule.spreadAtChoice = 1.0 / 11;
    const FmmChoice read           = readFmmChoice(dataWith(choice));
    EXPECT_EQ(read.asked, 0);
    EXPECT_EQ(read.x, choice.x);
    EXPECT_EQ(read.box, choice.box);
    EXPECT_EQ(read.schedule.since, choice.schedule.since);
    EXPECT_EQ(read.schedule.least, choice.schedule.least);
    EXPECT_EQ(read.schedule.most, choice.schedule.most);
    EXPECT_EQ(read.schedule.spread, choice.schedule.spread);
    EXPECT_EQ(read.schedule.spreadAtChoice, choice.schedule.spreadAtChoice);
}

TEST(FmmChoiceTest, IsNotWrittenIfThereIsNone)
{
    const KeyValueTreeObject data = dataWith(FmmChoice());
    EXPECT_TRUE(data.properties().empty());
    EXPECT_EQ(readFmmChoice(data).asked, 0);
}

} // namespace
} // namespace gmx
