/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Tests that checkpoints keep what was chosen by times
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
    const FmmChoice choice = { 2.4e-4, 1.0 / 3, 1, 11, -1, 2, { { 7, 8, 9 } } };
    const FmmChoice read   = readFmmChoice(dataWith(choice));
    EXPECT_EQ(read.asked, choice.asked);
    EXPECT_EQ(read.accuracy, choice.accuracy);
    EXPECT_EQ(read.m2l, choice.m2l);
    EXPECT_EQ(read.order, choice.order);
    EXPECT_EQ(read.depth, choice.depth);
    EXPECT_EQ(read.separation, choice.separation);
    EXPECT_EQ(read.grid, choice.grid);
}

TEST(FmmChoiceTest, IsNotWrittenIfThereIsNone)
{
    const KeyValueTreeObject data = dataWith(FmmChoice());
    EXPECT_TRUE(data.properties().empty());
    EXPECT_EQ(readFmmChoice(data).asked, 0);
}

} // namespace
} // namespace gmx
