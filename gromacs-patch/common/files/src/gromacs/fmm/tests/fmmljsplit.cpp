/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Tests groups of atoms that act from their centres in Lennard-Jones interactions
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "gromacs/fmm/fmmljsplit.h"

#include <array>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gromacs/math/units.h"
#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/mdtypes/interaction_const.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/keyvaluetree.h"
#include "gromacs/utility/keyvaluetreebuilder.h"
#include "gromacs/utility/smalloc.h"

#include "interactionnames.h"

namespace gmx
{
namespace
{

using ::testing::ElementsAre;

//! Types of atoms: two heavy ones, hydrogen, one without Lennard-Jones, and one that repels alone
enum Type : int
{
    Oxygen,
    Hydrogen,
    Ion,
    None,
    Repelling,
    NumTypes
};

//! Two molecules of water, whose hydrogens have Lennard-Jones interactions, and an ion
class FmmLJSplitTest : public ::testing::Test
{
protected:
    FmmLJSplitTest()
    {
        mtop_.moltype.reserve(3);
        exclude(&addMolecule({ Oxygen, Hydrogen, Hydrogen }, 2), { { 1, 2 }, { 0, 2 }, { 0, 1 } });
        addMolecule({ Ion }, 1);
        const std::array<int, 3> settle = { { 0, 1, 2 } };
        mtop_.moltype[0].ilist[c_settle].push_back(0, settle);
        mtop_.ffparams.atnr = NumTypes;
        for (int a = 0; a < NumTypes; a++)
        {
            for (int b = 0; b < NumTypes; b++)
            {
                t_iparams parameters = {};
                parameters.lj.c6     = c6(a, b);
                parameters.lj.c12    = c12(a, b);
                mtop_.ffparams.iparams.push_back(parameters);
            }
        }
        inputrec_.coulombtype = CoulombInteractionType::Fmm;
        settings_.radius      = 0.7;
    }

    gmx_moltype_t& addMolecule(const std::vector<int>& types, int number)
    {
        // In place, as copies of it would share and free its atoms
        gmx_moltype_t& moltype = mtop_.moltype.emplace_back();
        snew(moltype.atoms.atom, types.size());
        moltype.atoms.nr = static_cast<int>(types.size());
        for (size_t a = 0; a < types.size(); a++)
        {
            t_atom& atom = moltype.atoms.atom[a];
            atom.type = atom.typeB = static_cast<unsigned short>(types[a]);
            atom.ptype             = ParticleType::Atom;
            atom.atomnumber        = types[a] == Hydrogen ? 1 : 8;
            atom.m                 = types[a] == Hydrogen ? 1 : 16;
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

    static void bind(gmx_moltype_t* moltype, const std::vector<std::array<int, 2>>& pairs)
    {
        for (const std::array<int, 2>& pair : pairs)
        {
            moltype->ilist[c_bond].push_back(0, pair);
        }
    }

    //! No combination rule has these
    static real c6(int a, int b)
    {
        constexpr std::array<real, NumTypes> c_strength = { { 2, 0.03_real, 3, 0, 0 } };
        return c_strength[a] * c_strength[b] == 0 ? 0 : 1e-3_real * c_strength[a] * c_strength[b] + 1e-5_real;
    }
    static real c12(int a, int b)
    {
        return a == None || b == None ? 0 : 1e-3_real * c6(a, b) + 1e-7_real;
    }

    FmmLJSplit split() const { return FmmLJSplit(settings_, inputrec_, mtop_); }
    //! The atoms of groups of the last kind of molecule
    std::vector<std::vector<int>> lastGroups() const
    {
        return split().groupsOf(static_cast<int>(mtop_.moltype.size()) - 1).atoms;
    }

    gmx_mtop_t         mtop_;
    t_inputrec         inputrec_;
    FmmLJSplitSettings settings_;
};

template<typename T>
std::vector<T> copied(ArrayRef<const T> values)
{
    return { values.begin(), values.end() };
}

TEST_F(FmmLJSplitTest, GroupsAreHeavyAtomsWithTheirHydrogens)
{
    const FmmLJSplit water = split();
    EXPECT_THAT(copied(water.start()), ElementsAre(0, 3, 6, 7));
    EXPECT_THAT(copied(water.atoms()), ElementsAre(0, 1, 2, 3, 4, 5, 6));
    EXPECT_THAT(copied(water.types()), ElementsAre(0, 0, 1));
    EXPECT_EQ(3, water.numGroups());
    EXPECT_EQ(2, water.numTypes());
    EXPECT_EQ(7, water.numAtomsInPairList());
    EXPECT_TRUE(water.haveHydrogens());
}

TEST_F(FmmLJSplitTest, SitesAreCentresOfDispersion)
{
    const FmmLJSplit water  = split();
    const auto       strong = [](int type) // with two oxygens, four hydrogens, an ion
    { return 2.0 * c6(type, Oxygen) + 4.0 * c6(type, Hydrogen) + c6(type, Ion); };
    const double oxygen = strong(Oxygen), hydrogen = strong(Hydrogen), sum = oxygen + 2 * hydrogen;
    for (const int first : { 0, 3 })
    {
        EXPECT_NEAR(oxygen / sum, water.weights()[first], 1e-12);
        EXPECT_NEAR(hydrogen / sum, water.weights()[first + 1], 1e-12);
        EXPECT_NEAR(hydrogen / sum, water.weights()[first + 2], 1e-12);
    }
    EXPECT_EQ(1, water.weights()[6]);
}

TEST_F(FmmLJSplitTest, ParametersAreSumsOverPairsOfAtoms)
{
    const FmmLJSplit water = split();
    const auto       check = [&](auto of, ArrayRef<const double> values)
    {
        constexpr int molecule = 0, ion = 1, number = 2;
        EXPECT_NEAR(of(Oxygen, Oxygen) + 4.0 * of(Oxygen, Hydrogen) + 4.0 * of(Hydrogen, Hydrogen),
                    values[molecule * number + molecule],
                    1e-9);
        EXPECT_NEAR(of(Oxygen, Ion) + 2.0 * of(Hydrogen, Ion), values[molecule * number + ion], 1e-9);
        EXPECT_EQ(values[molecule * number + ion], values[ion * number + molecule]);
        EXPECT_EQ(of(Ion, Ion), values[ion * number + ion]);
    };
    check(&c6, water.c6());
    check(&c12, water.c12());
}

TEST_F(FmmLJSplitTest, HeavyAtomsMayHaveUpToFourHydrogens)
{
    for (int number = 0; number <= 5; number++)
    {
        mtop_.moltype.resize(2);
        mtop_.molblock.resize(2);
        mtop_.natoms = 7;
        // Their order does not matter: the last atom is the heavy one
        std::vector<int> types(number, Hydrogen), all(number + 1);
        types.push_back(Ion);
        std::iota(all.begin(), all.end(), 0);
        gmx_moltype_t& moltype = addMolecule(types, 1);
        for (int a = 0; a < number; a++)
        {
            bind(&moltype, { { { a, number } } });
        }
        const auto groups = lastGroups();
        if (number > FmmLJGroups::c_maxNumHydrogens)
        {
            EXPECT_EQ(all.size(), groups.size());
            continue;
        }
        ASSERT_EQ(1U, groups.size());
        EXPECT_EQ(number, groups[0][0]);
        EXPECT_EQ(all.size(), groups[0].size());
    }
}

TEST_F(FmmLJSplitTest, HydrogensOfNoOneHeavyAtomAreGroups)
{
    // A bridge, hydrogen molecule, and a hydrogen bound to none
    gmx_moltype_t& moltype = addMolecule({ Ion, Hydrogen, Ion, Hydrogen, Hydrogen, Hydrogen }, 1);
    bind(&moltype, { { { 0, 1 } }, { { 1, 2 } }, { { 3, 4 } } });
    EXPECT_EQ(6U, lastGroups().size());
    // A shell on a hydrogen does not count, as a heavy atom it cannot serve
    moltype.atoms.atom[2].ptype = ParticleType::Shell;
    EXPECT_THAT(lastGroups()[0], ElementsAre(0, 1));
    moltype.atoms.atom[0].ptype = ParticleType::VSite;
    EXPECT_EQ(6U, lastGroups().size());
}

TEST_F(FmmLJSplitTest, MassesTellHydrogensWhoseNumberIsNotKnown)
{
    gmx_moltype_t& moltype = addMolecule({ Ion, Hydrogen }, 1);
    bind(&moltype, { { { 0, 1 } } });
    t_atom *heavy = &moltype.atoms.atom[0], *light = &moltype.atoms.atom[1];
    for (const int unknown : { 0, -1 })
    {
        heavy->atomnumber = light->atomnumber = unknown;
        light->m                              = 4;
        EXPECT_THAT(lastGroups(), ElementsAre(ElementsAre(0, 1)));
        light->m = 5;
        EXPECT_EQ(2U, lastGroups().size());
        light->m = 1;
        heavy->m = 1;
        EXPECT_EQ(2U, lastGroups().size());
        heavy->m = 16;
    }
    light->atomnumber = 6;
    EXPECT_EQ(2U, lastGroups().size());
}

TEST_F(FmmLJSplitTest, WhatHasNoLennardJonesIsLeftOut)
{
    // An atom without any, one that repels alone with such a hydrogen, and one that has a hydrogen with some
    gmx_moltype_t& moltype           = addMolecule({ None, Repelling, None, None, Hydrogen }, 1);
    moltype.atoms.atom[2].atomnumber = 1;
    bind(&moltype, { { { 1, 2 } }, { { 3, 4 } } });
    EXPECT_THAT(lastGroups(), ElementsAre(ElementsAre(1, 2), ElementsAre(3, 4)));
    const FmmLJSplit all  = split();
    const int        last = static_cast<int>(all.weights().size());
    EXPECT_EQ(1, all.weights()[last - 4]);
    EXPECT_EQ(0, all.weights()[last - 3]);
    EXPECT_EQ(0, all.weights()[last - 2]);
    EXPECT_EQ(1, all.weights()[last - 1]);
}

//! A chain of five heavy atoms, the ends of which have a hydrogen
class FmmLJSplitChainTest : public FmmLJSplitTest
{
protected:
    FmmLJSplitChainTest() :
        chain_(addMolecule({ Ion, Oxygen, Oxygen, Oxygen, Ion, Hydrogen, Hydrogen }, 10))
    {
        bind(&chain_, bonds_);
        excludeWithin(3);
    }
    //! Excludes atoms up to so many bonds apart
    void excludeWithin(int numBonds)
    {
        std::vector<std::vector<int>> atoms(7);
        constexpr std::array<int, 7>  c_place = { { 0, 1, 2, 3, 4, -1, 5 } };
        for (int a = 0; a < 7; a++)
        {
            for (int b = 0; b < 7; b++)
            {
                if (std::abs(c_place[a] - c_place[b]) <= numBonds)
                {
                    atoms[a].push_back(b);
                }
            }
        }
        exclude(&chain_, atoms);
    }

    //! By a loop over all pairs of atoms of molecules: excluded ones of two groups, less others of one group
    void expectExcludedSums(const FmmLJSplit& all) const
    {
        double sumC6 = 0, sumC12 = 0;
        for (const gmx_molblock_t& block : mtop_.molblock)
        {
            const gmx_moltype_t& moltype = mtop_.moltype[block.type];
            std::vector<int>     groupOf(moltype.atoms.nr, -1);
            for (const std::vector<int>& group : all.groupsOf(block.type).atoms)
            {
                for (const int a : group)
                {
                    groupOf[a] = group[0];
                }
            }
            for (int a = 0; a < moltype.atoms.nr; a++)
            {
                for (int b = 0; b < a; b++)
                {
                    const auto excluded = moltype.excls[a];
                    const bool isExcluded =
                            std::find(excluded.begin(), excluded.end(), b) != excluded.end();
                    if (groupOf[a] < 0 || groupOf[b] < 0 || isExcluded == (groupOf[a] == groupOf[b]))
                    {
                        continue;
                    }
                    const int typeA = moltype.atoms.atom[a].type, typeB = moltype.atoms.atom[b].type;
                    const int sign = isExcluded ? block.nmol : -block.nmol;
                    sumC6 += sign * c6(typeA, typeB);
                    sumC12 += sign * c12(typeA, typeB);
                }
            }
        }
        ASSERT_NE(0, sumC6);
        EXPECT_NEAR(sumC6, all.excludedSums()[0], 1e-6 * std::abs(sumC6));
        EXPECT_NEAR(sumC12, all.excludedSums()[1], 1e-6 * std::abs(sumC12));
    }

    const std::vector<std::array<int, 2>> bonds_ = { { { 0, 1 } }, { { 1, 2 } }, { { 2, 3 } },
                                                     { { 3, 4 } }, { { 0, 5 } }, { { 4, 6 } } };
    gmx_moltype_t&                        chain_;
};

TEST_F(FmmLJSplitChainTest, PairsThatExcludeEachOtherAreAddedUp)
{
    const FmmLJSplit all = split();
    EXPECT_FALSE(all.haveFarExclusions());
    expectExcludedSums(all);
    EXPECT_THAT(all.groupsOf(2).excluding,
                ElementsAre(std::array<int, 2>{ { 0, 1 } },
                            std::array<int, 2>{ { 0, 2 } },
                            std::array<int, 2>{ { 0, 3 } },
                            std::array<int, 2>{ { 1, 2 } },
                            std::array<int, 2>{ { 1, 3 } },
                            std::array<int, 2>{ { 1, 4 } },
                            std::array<int, 2>{ { 2, 3 } },
                            std::array<int, 2>{ { 2, 4 } },
                            std::array<int, 2>{ { 3, 4 } }));
}

TEST_F(FmmLJSplitChainTest, ExclusionsOfHydrogensAloneAreAddedUp)
{
    exclude(&chain_, { {}, { 5 }, {}, {}, {}, { 1 }, {} });
    expectExcludedSums(split());
    EXPECT_THAT(split().groupsOf(2).excluding, ElementsAre(std::array<int, 2>{ { 0, 1 } }));
}

TEST_F(FmmLJSplitChainTest, EnergiesOfExcludedPairsAreThoseOfEnergyGroups)
{
    // Of the chains each second has its hydrogens in group 2, and all else in group 1
    std::vector<unsigned short> energyGroups(mtop_.natoms, 0);
    for (int chain = 0; chain < 10; chain++)
    {
        for (int a = 0; a < 7; a++)
        {
            energyGroups[7 + 7 * chain + a] = chain % 2 == 0 ? 0 : a < 5 ? 1 : 2;
        }
    }
    const auto near = [](double expected, double found)
    { EXPECT_NEAR(expected, found, 1e-9 * std::abs(expected)); };
    const auto energies = [&]() { return split().excludedEnergies(mtop_, energyGroups, 3); };
    const auto all      = [&]() { return split().excludedEnergy(settings_.radius); };
    // Those of two groups count for heavy atoms
    std::vector<double> of = energies();
    ASSERT_EQ(9U, of.size());
    EXPECT_NE(0, of[0]);
    near(all() / 2, of[0]);
    near(all() / 2, of[4]);
    EXPECT_EQ(0, std::accumulate(of.begin(), of.end(), 0.0) - of[0] - of[4]);
    // A hydrogen and its heavy atom, which do not exclude each other, have their own
    exclude(&chain_, { {}, {}, {}, {}, {}, {}, {} });
    of = energies();
    near(all() / 2, of[0]);
    near(all() / 2, of[5]);
    EXPECT_EQ(0, of[4]);
}

TEST_F(FmmLJSplitChainTest, FarExclusionsAreFound)
{
    EXPECT_FALSE(split().haveFarExclusions());
    excludeWithin(4);
    EXPECT_TRUE(split().haveFarExclusions());
    // Of hydrogens, too, and not those of atoms without Lennard-Jones
    exclude(&chain_, { {}, {}, {}, {}, {}, { 6 }, { 5 } });
    EXPECT_TRUE(split().haveFarExclusions());
    chain_.atoms.atom[6].type = None;
    EXPECT_FALSE(split().haveFarExclusions());
    // A virtual site is near the atoms that it is put in its place by
    exclude(&chain_, { {}, {}, {}, {}, { 3 }, {}, {} });
    exclude(&chain_, { {}, {}, {}, { 4 }, { 3 }, {}, {} });
    chain_.ilist[c_bond].clear();
    EXPECT_TRUE(split().haveFarExclusions());
    chain_.ilist[c_vsite2].push_back(0, std::array<int, 3>{ 4, 3, 2 });
    EXPECT_FALSE(split().haveFarExclusions());
}

TEST_F(FmmLJSplitTest, PairListHasTheShorterCutoff)
{
    inputrec_.vdw_modifier = InteractionModifiers::PotShift;
    inputrec_.rvdw         = 1.2_real;
    inputrec_.rcoulomb     = 1.2_real;
    inputrec_.rvdw_switch  = 1.0_real;
    inputrec_.rlist        = 1.35_real;
    settings_.whole        = FmmLJRange::of(inputrec_);
    FmmLJSplit::shortenCutoff(&inputrec_); // without a split it does nothing
    EXPECT_EQ(1.2_real, inputrec_.rvdw);
    EXPECT_EQ(nullptr, FmmLJSplit::constantsOfWholeCutoff(inputrec_, mtop_));
    KeyValueTreeBuilder       builder;
    KeyValueTreeObjectBuilder root = builder.rootObject();
    settings_.store(&root);
    inputrec_.internalParameters = std::make_unique<KeyValueTreeObject>(builder.build());
    FmmLJSplit::shortenCutoff(&inputrec_);
    EXPECT_EQ(InteractionModifiers::ForceSwitch, inputrec_.vdw_modifier);
    EXPECT_FLOAT_EQ(0.7, inputrec_.rvdw);
    EXPECT_FLOAT_EQ(0.7, inputrec_.rcoulomb);
    EXPECT_FLOAT_EQ(0.5, inputrec_.rvdw_switch);
    EXPECT_FLOAT_EQ(0.85, inputrec_.rlist); // with the buffer that it had
    // What the cut-off that was asked for is known by
    const auto whole = FmmLJSplit::make(inputrec_, mtop_)->settings().whole;
    EXPECT_EQ(InteractionModifiers::PotShift, whole.modifier);
    EXPECT_FLOAT_EQ(1.2, whole.cutoff);
    EXPECT_FLOAT_EQ(1.0, whole.start);
}

TEST_F(FmmLJSplitTest, ListsOfSitesHaveABufferWhereForcesJump)
{
    inputrec_.rvdw    = 0.7_real;
    inputrec_.rlist   = 0.71_real;
    inputrec_.nstlist = 21;
    inputrec_.delta_t = 0.002;
    inputrec_.eI      = IntegrationAlgorithm::MD;
    settings_.whole   = { InteractionModifiers::ForceSwitch, 0.8, 1 };
    const auto buffer = [this]() { return split().buffer(inputrec_, mtop_, {}); };
    EXPECT_NEAR(0.01, buffer(), 1e-6);
    settings_.whole.modifier = InteractionModifiers::PotShift;
    const double ofIons      = 1.5 * std::sqrt(2 * c_boltz * 300 / 16) * 0.04;
    EXPECT_NEAR(ofIons, buffer(), 1e-6);
    std::array<real, 1> temperature = { { 600 } };
    inputrec_.opts.ngtc             = 1;
    inputrec_.opts.ref_t            = temperature.data();
    EXPECT_NEAR(std::sqrt(2.0) * ofIons, buffer(), 1e-6);
    inputrec_.opts.ngtc  = 0;
    inputrec_.opts.ref_t = nullptr;
    inputrec_.rlist      = 0.9_real;
    EXPECT_NEAR(0.2, buffer(), 1e-6);
    inputrec_.rlist = 0.71_real;
    inputrec_.eI    = IntegrationAlgorithm::Steep;
    EXPECT_NEAR(0.01, buffer(), 1e-6);
}

TEST_F(FmmLJSplitTest, SettingsAreStored)
{
    EXPECT_FALSE(FmmLJSplitSettings::stored(inputrec_).has_value());
    EXPECT_EQ(nullptr, FmmLJSplit::make(inputrec_, mtop_));
    settings_.pressure = { { 1.5, -0.25, 3 } };
    settings_.volume   = 100;
    KeyValueTreeBuilder       builder;
    KeyValueTreeObjectBuilder root = builder.rootObject();
    settings_.store(&root);
    inputrec_.internalParameters = std::make_unique<KeyValueTreeObject>(builder.build());
    const auto stored            = FmmLJSplitSettings::stored(inputrec_);
    ASSERT_TRUE(stored.has_value());
    EXPECT_EQ(0.7, stored->radius);
    EXPECT_THAT(stored->pressure, ElementsAre(1.5, -0.25, 3));
    EXPECT_EQ(100, stored->volume);
    EXPECT_EQ(0.7_real, FmmLJSplit::make(inputrec_, mtop_)->radius());
}

TEST_F(FmmLJSplitTest, PressureGoesWithTheSquareOfTheDensity)
{
    settings_.pressure = { { 1.5, -0.25, 3 } };
    settings_.volume   = 100;
    EXPECT_THAT(settings_.pressureAt(100), ElementsAre(1.5, -0.25, 3));
    EXPECT_THAT(settings_.pressureAt(200), ElementsAre(0.375, -0.0625, 0.75));
    EXPECT_THAT(settings_.pressureAt(0), ElementsAre(0, 0, 0));
}

} // namespace
} // namespace gmx
