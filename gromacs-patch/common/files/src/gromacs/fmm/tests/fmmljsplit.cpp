/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Tests Lennard-Jones in two pair lists
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "gromacs/fmm/fmmljsplit.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gromacs/fmm/fmmshortlist.h"
#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/mdtypes/interaction_const.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/exceptions.h"
#include "gromacs/utility/keyvaluetree.h"
#include "gromacs/utility/keyvaluetreebuilder.h"
#include "gromacs/utility/smalloc.h"

#include "interactionnames.h"

namespace gmx
{
namespace
{

using ::testing::ElementsAre;

//! Two molecules of water with Lennard-Jones on hydrogen, types 0, 1, 1, and an ion of type 2
class FmmLJSplitTest : public ::testing::Test
{
protected:
    FmmLJSplitTest()
    {
        mtop_.moltype.reserve(3);
        exclude(&addMolecule({ 0, 1, 1 }, 2), { { 1, 2 }, { 0, 2 }, { 0, 1 } });
        addMolecule({ 2 }, 1);
        const std::array<int, 3> settle = { { 0, 1, 2 } };
        mtop_.moltype[0].ilist[c_settle].push_back(0, settle);
        mtop_.ffparams.atnr = c_numTypes;
        for (int a = 0; a < c_numTypes; a++)
        {
            for (int b = 0; b < c_numTypes; b++)
            {
                t_iparams parameters = {};
                parameters.lj.c6     = c6(a, b);
                parameters.lj.c12    = c12(a, b);
                mtop_.ffparams.iparams.push_back(parameters);
            }
        }
        inputrec_.coulombtype = CoulombInteractionType::Fmm;
        settings_.radius      = 0.7;
        settings_.lightTypes  = { 1 };
    }

    gmx_moltype_t& addMolecule(const std::vector<int>& types, int number)
    {
        // In place, as copies of it would share and free its atoms
        gmx_moltype_t& moltype = mtop_.moltype.emplace_back();
        snew(moltype.atoms.atom, types.size());
        moltype.atoms.nr = static_cast<int>(types.size());
        for (size_t a = 0; a < types.size(); a++)
        {
            moltype.atoms.atom[a].type  = types[a];
            moltype.atoms.atom[a].typeB = types[a];
            moltype.atoms.atom[a].ptype = ParticleType::Atom;
        }
        gmx_molblock_t block;
        block.type = static_cast<int>(mtop_.moltype.size()) - 1;
        block.nmol = number;
        mtop_.molblock.push_back(block);
        mtop_.natoms += number * moltype.atoms.nr;
        exclude(&moltype, std::vector<std::vector<int>>(types.size()));
        return moltype;
    }

    static void exclude(gmx_moltype_t* moltype, const std::vector<std::vector<int>>& atoms)
    {
        moltype->excls.clear();
        for (const std::vector<int>& ofAtom : atoms)
        {
            moltype->excls.pushBack(ofAtom);
        }
    }

    //! No combination rule has these
    static real c6(int a, int b)
    {
        return 1e-3_real
                       * (a == 0   ? 2
                          : a == 1 ? 0.03_real
                                   : 3)
                       * (b == 0   ? 2
                          : b == 1 ? 0.03_real
                                   : 3)
               + 1e-5_real;
    }
    static real c12(int a, int b) { return 1e-3_real * c6(a, b); }

    static constexpr int c_numTypes = 3;
    gmx_mtop_t           mtop_;
    t_inputrec           inputrec_;
    FmmLJSplitSettings   settings_;
};

TEST_F(FmmLJSplitTest, AtomsHaveGridsByWhatTheyAre)
{
    const FmmLJSplit split(settings_, inputrec_, mtop_);
    EXPECT_EQ(FmmLJSplit::HeavyWithLight, split.localGrid(0, 0));
    EXPECT_EQ(FmmLJSplit::Light, split.localGrid(0, 1));
    EXPECT_EQ(FmmLJSplit::Light, split.localGrid(0, 2));
    EXPECT_EQ(FmmLJSplit::Heavy, split.localGrid(1, 0));
    EXPECT_EQ(1, split.numAtomsOnGrid(FmmLJSplit::Heavy));
    EXPECT_EQ(2, split.numAtomsOnGrid(FmmLJSplit::HeavyWithLight));
    EXPECT_EQ(4, split.numAtomsOnGrid(FmmLJSplit::Light));
    // The ion keeps its type, oxygen with two hydrogens and hydrogen of it have new ones
    const ArrayRef<const int> types = split.atomTypes();
    EXPECT_THAT(std::vector<int>(types.begin(), types.end()), ElementsAre(3, 4, 4, 3, 4, 4, 2));
}

TEST_F(FmmLJSplitTest, DispersionOfAllPairsIsInTheLongList)
{
    const FmmLJSplit split(settings_, inputrec_, mtop_);
    const int        n      = split.numTypes();
    const auto       far    = [&](int a, int b) { return split.nbfp()[2 * (a * n + b)] / 6; };
    const auto       near   = [&](int a, int b) { return split.shortNbfp()[2 * (a * n + b)] / 6; };
    constexpr int    oxygen = 3, hydrogen = 4, ion = 2;
    EXPECT_FLOAT_EQ(c6(0, 0) + 4 * c6(0, 1) + 4 * c6(1, 1), far(oxygen, oxygen));
    EXPECT_FLOAT_EQ(c6(0, 2) + 2 * c6(1, 2), far(oxygen, ion));
    EXPECT_FLOAT_EQ(far(oxygen, ion), far(ion, oxygen));
    EXPECT_FLOAT_EQ(c6(2, 2), far(ion, ion));
    EXPECT_EQ(0, far(hydrogen, oxygen));
    EXPECT_EQ(0, far(hydrogen, hydrogen));
    // Where both lists are, a pair of heavy atoms has its own parameters
    EXPECT_FLOAT_EQ(c6(0, 0), far(oxygen, oxygen) + near(oxygen, oxygen));
    EXPECT_FLOAT_EQ(c6(0, 2), far(oxygen, ion) + near(oxygen, ion));
    EXPECT_EQ(0, near(ion, ion));
    EXPECT_FLOAT_EQ(c6(0, 1), near(hydrogen, oxygen));
    EXPECT_EQ(0, near(hydrogen, hydrogen));
    // Repulsion is as ever
    EXPECT_FLOAT_EQ(c12(0, 0), split.nbfp()[2 * (oxygen * n + oxygen) + 1] / 12);
    EXPECT_EQ(0, split.shortNbfp()[2 * (oxygen * n + oxygen) + 1]);
    EXPECT_FLOAT_EQ(c12(1, 2), split.shortNbfp()[2 * (hydrogen * n + ion) + 1] / 12);
}

TEST_F(FmmLJSplitTest, BuffersAreThoseOfTheAtomsOfAList)
{
    const FmmLJSplit split(settings_, inputrec_, mtop_);
    const auto       largest = [](const gmx_ffparams_t& ffparams, int a, int b)
    { return ffparams.iparams[a * c_numTypes + b].lj; };
    constexpr int oxygen = 0, hydrogen = 1, ion = 2;
    EXPECT_FLOAT_EQ(c6(0, 0) + 4 * c6(0, 1) + 4 * c6(1, 1),
                    largest(split.largestLongParameters(), oxygen, oxygen).c6);
    EXPECT_FLOAT_EQ(c12(2, 2), largest(split.largestLongParameters(), ion, ion).c12);
    EXPECT_EQ(0, largest(split.largestLongParameters(), hydrogen, oxygen).c12);
    EXPECT_FLOAT_EQ(c12(1, 0), largest(split.largestShortParameters(), hydrogen, oxygen).c12);
    EXPECT_EQ(0, largest(split.largestShortParameters(), ion, ion).c6);
}

TEST_F(FmmLJSplitTest, PairsOfLightAtomsAreThereWhenAskedFor)
{
    EXPECT_EQ(4U, FmmLJSplit(settings_, inputrec_, mtop_).shortGridPairs().size());
    settings_.havePairsOfLightAtoms = true;
    const FmmLJSplit split(settings_, inputrec_, mtop_);
    EXPECT_EQ(5U, split.shortGridPairs().size());
    EXPECT_FLOAT_EQ(c6(1, 1), split.shortNbfp()[2 * (4 * split.numTypes() + 4)] / 6);
}

TEST_F(FmmLJSplitTest, AtomsThatAreBoundOtherwiseAreHeavy)
{
    // A hydrogen between two heavy atoms, and one that is bound to nothing
    mtop_.moltype[0].ilist[c_settle].clear();
    const FmmLJSplit split(settings_, inputrec_, mtop_);
    EXPECT_EQ(7, split.numAtomsOnGrid(FmmLJSplit::Heavy));
    EXPECT_FLOAT_EQ(c12(1, 2), split.largestLongParameters().iparams[1 * c_numTypes + 2].lj.c12);
}

TEST_F(FmmLJSplitTest, HeavyAtomsWithMoreLightOnesThanKernelsAreForKeepThem)
{
    gmx_moltype_t& moltype = addMolecule({ 0, 1, 1, 1, 1 }, 1);
    for (const int light : { 1, 2, 3, 4 })
    {
        moltype.ilist[c_bond].push_back(0, std::array<int, 2>{ 0, light });
    }
    const FmmLJSplit split(settings_, inputrec_, mtop_);
    EXPECT_EQ(FmmLJSplit::Heavy, split.localGrid(2, 0));
    EXPECT_EQ(FmmLJSplit::Heavy, split.localGrid(2, 4));
}

TEST_F(FmmLJSplitTest, ListsOnDevicesHaveAllPairsOfBondedHeavyAtoms)
{
    // A chain of three atoms with a light one at each end
    gmx_moltype_t& moltype = addMolecule({ 0, 2, 0, 1, 1 }, 2);
    moltype.ilist[c_bond].push_back(0, std::array<int, 2>{ 0, 3 });
    moltype.ilist[c_bond].push_back(0, std::array<int, 2>{ 2, 4 });
    exclude(&moltype, { { 1, 2, 3 }, { 0, 2, 3, 4 }, { 0, 1, 4 }, { 0, 1 }, { 1, 2 } });

    const FmmShortListTopology topology(FmmLJSplit(settings_, inputrec_, mtop_), mtop_);
    EXPECT_EQ(2, topology.maxNumLight);
    // Two molecules of water and an ion come first
    EXPECT_THAT(topology.lightAtoms,
                ElementsAre(1,
                            2,
                            -1,
                            -1,
                            -1,
                            -1,
                            4,
                            5,
                            -1,
                            -1,
                            -1,
                            -1,
                            -1,
                            -1,
                            10,
                            -1,
                            -1,
                            -1,
                            11,
                            -1,
                            -1,
                            -1,
                            -1,
                            -1,
                            15,
                            -1,
                            -1,
                            -1,
                            16,
                            -1,
                            -1,
                            -1,
                            -1,
                            -1));
    EXPECT_THAT(topology.bondedPairs,
                ElementsAre(std::pair(7, 11), std::pair(10, 9), std::pair(12, 16), std::pair(15, 14)));

    // Light atoms of excluded heavy atoms exclude each other, too, unless pairs of light atoms have interactions
    settings_.havePairsOfLightAtoms = true;
    EXPECT_EQ(6U, FmmShortListTopology(FmmLJSplit(settings_, inputrec_, mtop_), mtop_).bondedPairs.size());

    // Exclusions between all atoms of a group leave nothing of these pairs
    mtop_.intermolecularExclusionGroup = { 7, 8, 9, 10, 11 };
    EXPECT_EQ(3U, FmmShortListTopology(FmmLJSplit(settings_, inputrec_, mtop_), mtop_).bondedPairs.size());
    mtop_.intermolecularExclusionGroup = { 7, 8, 9 };
    EXPECT_THROW(FmmShortListTopology(FmmLJSplit(settings_, inputrec_, mtop_), mtop_), NotImplementedError);
}

TEST_F(FmmLJSplitTest, ListsOnDevicesRefuseExclusionsOfLightAtomsAlone)
{
    gmx_moltype_t& moltype = addMolecule({ 0, 2, 1 }, 1);
    moltype.ilist[c_bond].push_back(0, std::array<int, 2>{ 0, 2 });
    exclude(&moltype, { { 2 }, { 2 }, { 0, 1 } });
    const FmmLJSplit split(settings_, inputrec_, mtop_);
    EXPECT_THROW(FmmShortListTopology(split, mtop_), NotImplementedError);
}

TEST_F(FmmLJSplitTest, SettingsAreStored)
{
    EXPECT_FALSE(FmmLJSplitSettings::stored(inputrec_).has_value());
    settings_.lightTypes            = { 1, 2 };
    settings_.havePairsOfLightAtoms = true;
    KeyValueTreeBuilder       builder;
    KeyValueTreeObjectBuilder root = builder.rootObject();
    settings_.store(&root);
    inputrec_.internalParameters = std::make_unique<KeyValueTreeObject>(builder.build());
    const auto stored            = FmmLJSplitSettings::stored(inputrec_);
    ASSERT_TRUE(stored.has_value());
    EXPECT_EQ(0.7, stored->radius);
    EXPECT_THAT(stored->lightTypes, ElementsAre(1, 2));
    EXPECT_TRUE(stored->havePairsOfLightAtoms);
}

} // namespace
} // namespace gmx
