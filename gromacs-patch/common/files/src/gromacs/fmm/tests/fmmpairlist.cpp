/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Tests what the pair search leaves out with coulombtype = FMM
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "gromacs/fmm/fmmpairlist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gromacs/fmm/fmmopensystem.h"
#include "gromacs/mdtypes/atominfo.h"
#include "gromacs/mdtypes/md_enums.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/smalloc.h"

#include "interactionnames.h"

namespace gmx
{
namespace
{

//! Four atoms of types 0, 1, 1, 1, of which type 0 alone has Van der Waals interactions
class FmmPairListTest : public ::testing::Test
{
protected:
    FmmPairListTest()
    {
        snew(moltype_.atoms.atom, 4);
        moltype_.atoms.nr = 4;
        for (int a = 0; a < 4; a++)
        {
            moltype_.atoms.atom[a].type = moltype_.atoms.atom[a].typeB = (a == 0 ? 0 : 1);
        }
    }

    std::vector<bool> offGrid(CoulombInteractionType type) const
    {
        return fmmAtomsOffPairSearchGrid(type, mtop_, moltype_, { true, false });
    }

    gmx_mtop_t    mtop_;
    gmx_moltype_t moltype_;
};

TEST_F(FmmPairListTest, LeavesAtomsWithoutVanDerWaalsOut)
{
    EXPECT_THAT(offGrid(CoulombInteractionType::Fmm), ::testing::ElementsAre(false, true, true, true));
    EXPECT_THAT(offGrid(CoulombInteractionType::Pme), ::testing::Each(false));
}

TEST_F(FmmPairListTest, KeepsAtomsThatGpuBondedInteractionsLookUp)
{
    const std::array<int, 3> settle = { { 0, 1, 2 } };
    moltype_.ilist[c_settle].push_back(0, settle);
    const std::array<int, 2> bond = { { 0, 3 } };
    moltype_.ilist[c_bond].push_back(0, bond);
    EXPECT_THAT(offGrid(CoulombInteractionType::Fmm), ::testing::ElementsAre(false, true, true, false));
}

TEST_F(FmmPairListTest, KeepsAllWithInteractionsBetweenMolecules)
{
    mtop_.bIntermolecularInteractions = true;
    EXPECT_THAT(offGrid(CoulombInteractionType::Fmm), ::testing::Each(false));
}

TEST_F(FmmPairListTest, FindsAtomsOffTheGridThatStayHome)
{
    constexpr AtomInfo          on = sc_atomInfo_HasVdw, off = sc_atomInfo_NotOnPairSearchGrid;
    const std::vector<AtomInfo> atomInfo = { on, off, off, on, off };
    // The last one has come from another domain
    const std::vector<int> globalIndices = { 14, 11, 17, 12, 3 };
    EXPECT_THAT(fmmHomeAtomsOffPairSearchGrid(atomInfo, {}, globalIndices),
                ::testing::ElementsAre(4, 1, 2));
    const std::vector<int> moved = { -1, 0, -1, 3, 4 };
    EXPECT_THAT(fmmHomeAtomsOffPairSearchGrid(atomInfo, moved, globalIndices),
                ::testing::ElementsAre(4, 1));
    EXPECT_FLOAT_EQ(0.4, fmmShareOnPairSearchGrid(atomInfo));
    EXPECT_FLOAT_EQ(1, fmmShareOnPairSearchGrid({}));
}

TEST_F(FmmPairListTest, DensityIsThatOfTheAtomsOnTheGridWhereTheyAre)
{
    // A cube of 10^3 places, 10 a nm, of which every second holds an atom on the grid
    std::vector<RVec>     x;
    std::vector<AtomInfo> atomInfo;
    for (int i = 0; i < 1000; i++)
    {
        x.push_back({ 0.1_real * (i / 100), 0.1_real * (i / 10 % 10), 0.1_real * (i % 10) });
        atomInfo.push_back(i % 2 == 0 ? sc_atomInfo_HasVdw : sc_atomInfo_NotOnPairSearchGrid);
    }
    const Index numOnGrid = fmmNumAtomsOnPairSearchGrid(atomInfo);
    EXPECT_EQ(500, numOnGrid);
    const real occupied = openSystemVolume(x);
    EXPECT_NEAR(500, fmmPairSearchDensity({ { 0, 0, 0 }, { 1, 1, 1 } }, numOnGrid, occupied), 1);
    // With nothing around it the density stays; cells of 0.5 nm divide the cube evenly
    EXPECT_NEAR(500, fmmPairSearchDensity({ { 0, 0, 0 }, { 10, 10, 10 } }, numOnGrid, occupied), 1);
}

TEST_F(FmmPairListTest, AMoleculeFarOffDoesNotMakeColumnsWithoutNumber)
{
    // A droplet of 300 atoms and what is left of it 3 micrometers away: columns of cubes with four atoms
    const GridCorners corners = { { 0, 0, 0 }, { 3000, 3000, 10 } };
    const real        density = fmmPairSearchDensity(corners, 300, 3);
    const real        perEdge = std::cbrt(density / 4);
    EXPECT_NEAR(1e6, 3000 * perEdge * 3000 * perEdge, 1e3);
    // Where all are together it is the density of the atoms
    EXPECT_NEAR(300 / 4.5, fmmPairSearchDensity({ { 0, 0, 0 }, { 1.5, 1.5, 2 } }, 300, 3), 1e-3);
}

} // namespace
} // namespace gmx
