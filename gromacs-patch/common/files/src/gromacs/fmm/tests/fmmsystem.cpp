/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Tests for what the FMM is told of a system before its first step
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "gromacs/fmm/fmmsystem.h"

#include <cmath>

#include <array>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gromacs/pbcutil/pbc.h"
#include "gromacs/topology/ifunc.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/smalloc.h"

#include "interactionnames.h"

namespace gmx
{
namespace
{

//! Two molecules of three atoms, of which the last is a virtual site in the middle of the others
class FmmSystemTest : public ::testing::Test
{
protected:
    FmmSystemTest()
    {
        mtop_.moltype.resize(1);
        gmx_moltype_t& moltype = mtop_.moltype[0];
        snew(moltype.atoms.atom, 3);
        moltype.atoms.nr = 3;
        for (int a = 0; a < 3; a++)
        {
            moltype.atoms.atom[a].q = a - 1;
            moltype.excls.pushBack(std::vector<int>{ a });
        }
        // Interaction 0 is the bond by which a molecule is made whole, 1 has the site's place
        mtop_.ffparams.functype = { c_bond, c_vsite2 };
        mtop_.ffparams.iparams.resize(2);
        mtop_.ffparams.iparams[1].vsite.a = 0.5;
        moltype.ilist[c_bond].push_back(0, std::array<int, 2>{ { 0, 1 } });
        moltype.ilist[c_vsite2].push_back(1, std::array<int, 3>{ { 2, 0, 1 } });
        mtop_.molblock.resize(1);
        mtop_.molblock[0].type = 0;
        mtop_.molblock[0].nmol = 2;
        mtop_.natoms           = 6;
        mtop_.finalize();
    }

    gmx_mtop_t mtop_;
    //! The second molecule is broken
    const std::vector<RVec> x_   = { { 1, 1, 1 },   { 1, 2, 1 },   { 0, 0, 0 },
                                     { 4, 9.5, 4 }, { 4, 0.5, 4 }, { 0, 0, 0 } };
    const matrix            box_ = { { 10, 0, 0 }, { 0, 10, 0 }, { 0, 0, 10 } };
};

TEST_F(FmmSystemTest, HasChargesOfAllMolecules)
{
    EXPECT_THAT(fmmCharges(mtop_, 0), ::testing::ElementsAre(-1, 0, 1, -1, 0, 1));
}

TEST_F(FmmSystemTest, HasKindsOfAtoms)
{
    mtop_.intermolecularExclusionGroup = { 1, 4 };
    std::vector<real> charges          = fmmCharges(mtop_, 0);
    charges.push_back(2); // of an atom without exclusions
    const ListOfLists<int> exclusions = fmmExclusions(mtop_);
    const FmmAtomKinds     kinds(charges, exclusions);
    EXPECT_EQ(5, kinds.numKinds())
            << "of the first molecule, of the other's second atom, and the last one";
    for (int a = 0; a < gmx::ssize(charges); a++)
    {
        EXPECT_EQ(charges[a], kinds.charge(kinds.kind(a)));
        std::vector<int> expected;
        for (int k = 0; a < exclusions.ssize() && k < gmx::ssize(exclusions[a]); k++)
        {
            expected.push_back(exclusions[a][k] - a);
        }
        EXPECT_THAT(kinds.excluded(kinds.kind(a)), ::testing::ElementsAreArray(expected)) << "atom " << a;
    }
}

TEST_F(FmmSystemTest, HasExclusionsBetweenMolecules)
{
    mtop_.intermolecularExclusionGroup = { 1, 4 };
    const ListOfLists<int> exclusions  = fmmExclusions(mtop_);
    ASSERT_EQ(6, exclusions.ssize());
    for (int a = 0; a < 6; a++)
    {
        const std::vector<int> found(exclusions[a].begin(), exclusions[a].end());
        const bool             isInGroup = (a == 1 || a == 4);
        EXPECT_THAT(found,
                    ::testing::UnorderedElementsAreArray(isInGroup ? std::vector<int>{ 1, 4 }
                                                                   : std::vector<int>{ a }));
    }
}

TEST_F(FmmSystemTest, BuildsVirtualSitesOfWholeMolecules)
{
    const std::vector<RVec> built = fmmCoordinates(mtop_, PbcType::Xyz, false, box_, x_);
    ASSERT_EQ(6, built.size());
    EXPECT_FLOAT_EQ(1.5, built[2][YY]);
    EXPECT_FLOAT_EQ(4, built[5][XX]);
    // In the middle of the nearest images, in whichever image of the box
    EXPECT_FLOAT_EQ(0, std::remainder(built[5][YY], 10));
}

TEST_F(FmmSystemTest, LeavesPeriodicMoleculesAsTheyAre)
{
    const std::vector<RVec> same = fmmCoordinates(mtop_, PbcType::Xyz, true, box_, x_);
    for (int a = 0; a < 6; a++)
    {
        EXPECT_EQ(x_[a][YY], same[a][YY]);
    }
}

} // namespace
} // namespace gmx
