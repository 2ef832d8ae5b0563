/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Tests for what grompp says of mdp options that other implementations of the FMM have
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "gromacs/fmm/fmmothernames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gmx
{
namespace
{

using ::testing::HasSubstr;

TEST(FmmOtherNamesTest, NamesTheOptionsHere)
{
    EXPECT_THAT(fmmOptionInPlaceOf("fmm-override-multipole-order"), HasSubstr("fmm-order"));
    EXPECT_THAT(fmmOptionInPlaceOf("fmm-override-tree-depth"), HasSubstr("fmm-tree-depth"));
    EXPECT_THAT(fmmOptionInPlaceOf("fmm-sparse"), HasSubstr("fmm-m2l"));
    EXPECT_THAT(fmmOptionInPlaceOf("fmm-precision"), HasSubstr("fmm-accuracy"));
}

TEST(FmmOtherNamesTest, KnowsThemInAnySpelling)
{
    EXPECT_THAT(fmmOptionInPlaceOf("FMM_override_Tree_depth"), HasSubstr("fmm-tree-depth"));
}

TEST(FmmOtherNamesTest, SaysNothingOfOtherOptions)
{
    EXPECT_EQ("", fmmOptionInPlaceOf("fmm-order"));
    EXPECT_EQ("", fmmOptionInPlaceOf("fmm-tree-depth"));
    EXPECT_EQ("", fmmOptionInPlaceOf("rcoulomb"));
}

} // namespace
} // namespace gmx
