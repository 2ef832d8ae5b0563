/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Tests what Lennard-Jones in two pair lists changes, and decisions by that
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "gromacs/fmm/fmmljspliterrors.h"

#include <cmath>

#include <algorithm>
#include <array>
#include <random>

#include <gtest/gtest.h>

#include "gromacs/math/units.h"
#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/smalloc.h"

#include "interactionnames.h"

namespace gmx
{
namespace
{

//! Rigid water whose hydrogens have Lennard-Jones interactions, turned and shifted by chance from places of a lattice
class FmmLJSplitErrorsTest : public ::testing::Test
{
protected:
    FmmLJSplitErrorsTest()
    {
        gmx_moltype_t& water = mtop_.moltype.emplace_back();
        snew(water.atoms.atom, 3);
        water.atoms.nr = 3;
        for (int a = 0; a < 3; a++)
        {
            t_atom& atom = water.atoms.atom[a];
            atom.type = atom.typeB = (a == 0 ? 0 : 1);
            atom.ptype             = ParticleType::Atom;
            atom.m                 = (a == 0 ? 16 : 1);
            atom.q                 = (a == 0 ? -0.8_real : 0.4_real);
        }
        for (const std::vector<int>& others : { std::vector<int>{ 1, 2 }, { 0, 2 }, { 0, 1 } })
        {
            water.excls.pushBack(others);
        }
        water.ilist[c_settle].push_back(0, std::array<int, 3>{ 0, 1, 2 });
        gmx_molblock_t block;
        block.type = 0;
        block.nmol = c_number;
        mtop_.molblock.push_back(block);
        mtop_.natoms        = 3 * c_number;
        mtop_.ffparams.atnr = 2;
        // Hydrogens have none with one another, as they come near here, and such pairs are on no list
        for (const real c6 : { 2.5e-3_real, 3e-4_real, 3e-4_real, 0.0_real })
        {
            t_iparams parameters = {};
            parameters.lj.c6     = c6;
            parameters.lj.c12    = 1e-3_real * c6;
            mtop_.ffparams.iparams.push_back(parameters);
        }
        inputrec_.coulombtype  = CoulombInteractionType::Fmm;
        inputrec_.pbcType      = PbcType::Xyz;
        inputrec_.vdwtype      = VanDerWaalsType::Cut;
        inputrec_.vdw_modifier = InteractionModifiers::ForceSwitch;
        inputrec_.rvdw         = 1;
        inputrec_.rvdw_switch  = 0.8_real;
        inputrec_.epsilon_r    = 1;
        settings_.radius       = 0.6;
        settings_.lightTypes   = { 1 };

        std::uniform_real_distribution<double> uniform(-1, 1);
        for (int k = 0; k < c_number; k++)
        {
            const std::array<int, DIM> place = { { k % c_edge, k / c_edge % c_edge, k / c_edge / c_edge } };
            for (int d = 0; d < DIM; d++)
            {
                centres_[k][d] = c_spacing * (place[d] + 0.3 * uniform(random_));
            }
            // A triangle of two bonds, in the plane of two vectors
            DVec u(uniform(random_), uniform(random_), uniform(random_));
            DVec v(uniform(random_), uniform(random_), uniform(random_));
            u *= 1 / u.norm();
            v -= u * u.dot(v);
            v *= 1 / v.norm();
            bonds_[k] = { u * 0.06 + v * 0.08, u * 0.06 - v * 0.08 };
        }
    }

    //! Coordinates with box and centres of mass stretched along an axis
    std::vector<RVec> coordinates(matrix box, int axis = XX, double stretch = 1) const
    {
        std::vector<RVec> x;
        for (int d = 0; d < DIM; d++)
        {
            for (int e = 0; e < DIM; e++)
            {
                box[d][e] = d == e ? static_cast<real>(c_edge * c_spacing * (d == axis ? stretch : 1)) : 0;
            }
        }
        for (int k = 0; k < c_number; k++)
        {
            DVec oxygen = centres_[k] - (bonds_[k][0] + bonds_[k][1]) * (1.0 / 18);
            oxygen[axis] += (stretch - 1) * centres_[k][axis];
            for (const DVec& at : { oxygen, oxygen + bonds_[k][0], oxygen + bonds_[k][1] })
            {
                x.push_back(at.toRVec());
            }
        }
        return x;
    }

    //! The pressure by differences of the energy, bar
    double pressureByDifferences(int axis) const
    {
        constexpr double      c_by   = 1e-4;
        std::array<double, 2> energy = {};
        double                volume = 0;
        for (const int side : { 0, 1 })
        {
            matrix                      box;
            const std::vector<RVec>     x = coordinates(box, axis, 1 + (side == 0 ? -c_by : c_by));
            const FmmLJSplitMeasurement measurement(inputrec_, mtop_, box, x);
            const FmmLJSplit            split(settings_, inputrec_, mtop_);
            energy[side] =
                    measurement
                            .errors(split, { &settings_.radius, &settings_.radius + 1 }, mtop_.natoms)[0]
                            .energy;
            volume += 0.5 * box[XX][XX] * box[YY][YY] * box[ZZ][ZZ];
        }
        return -(energy[1] - energy[0]) / (2 * c_by) / volume * c_presfac;
    }

    static constexpr int    c_edge = 7, c_number = c_edge * c_edge * c_edge;
    static constexpr double c_spacing = 0.31;

    gmx_mtop_t                                mtop_;
    t_inputrec                                inputrec_;
    FmmLJSplitSettings                        settings_;
    std::mt19937                              random_{ 63 };
    std::array<DVec, c_number>                centres_;
    std::array<std::array<DVec, 2>, c_number> bonds_;
};

//! Constraints keep atoms of a group together, so that what a change of the box does is of the centres of groups
TEST_F(FmmLJSplitErrorsTest, PressureIsTheDerivativeOfTheEnergyOfRigidGroups)
{
    matrix                  box;
    const std::vector<RVec> x        = coordinates(box);
    const auto              pressure = FmmLJSplitMeasurement(inputrec_, mtop_, box, x)
                                  .errors(FmmLJSplit(settings_, inputrec_, mtop_),
                                          { &settings_.radius, &settings_.radius + 1 },
                                          mtop_.natoms)[0]
                                  .pressure;
    for (int d = 0; d < DIM; d++)
    {
        // Coordinates are rounded to 1e-7 nm, a thousandth of what they differ by
        EXPECT_NEAR(pressureByDifferences(d), pressure[d], 0.02 * std::abs(pressure[d]) + 0.02);
    }
    // Without constraints it is that of atoms, which is another one
    mtop_.moltype[0].ilist[c_settle].clear();
    mtop_.moltype[0].ilist[c_bond].push_back(0, std::array<int, 2>{ 0, 1 });
    mtop_.moltype[0].ilist[c_bond].push_back(0, std::array<int, 2>{ 0, 2 });
    const auto ofAtoms = FmmLJSplitMeasurement(inputrec_, mtop_, box, x)
                                 .errors(FmmLJSplit(settings_, inputrec_, mtop_),
                                         { &settings_.radius, &settings_.radius + 1 },
                                         mtop_.natoms)[0]
                                 .pressure;
    EXPECT_GT(std::abs(ofAtoms[XX] - pressure[XX]), 0.1 * std::abs(pressure[XX]));
}

//! Other orders of the molecules are other samples of the same system
TEST_F(FmmLJSplitErrorsTest, DecisionsAreThoseOfAllAtoms)
{
    const std::vector<double> radii = { 0.5, 0.6, 0.7, 0.8 };
    matrix                    box;
    std::vector<RVec>         x = coordinates(box);
    const FmmLJSplit          split(settings_, inputrec_, mtop_);
    const auto ofAll = FmmLJSplitMeasurement(inputrec_, mtop_, box, x).errors(split, radii, mtop_.natoms);
    const auto largest = [](const FmmLJSplitErrors& errors)
    {
        const auto& [a, b, c] = errors.pressure;
        return std::max({ std::abs(a), std::abs(b), std::abs(c) });
    };
    EXPECT_EQ(0, ofAll[0].forceDeviation);
    EXPECT_EQ(0, ofAll[0].pressureDeviation[XX]);
    ASSERT_GT(ofAll[0].force, ofAll[1].force);
    ASSERT_GT(ofAll[1].force, ofAll[2].force);
    for (int order = 0; order < 10; order++)
    {
        const FmmLJSplitMeasurement measurement(inputrec_, mtop_, box, x);
        const auto                  sample = measurement.errors(split, radii, 150);
        EXPECT_GT(sample[1].forceDeviation, 0);
        EXPECT_NEAR(ofAll[1].force, sample[1].force, 4.5 * sample[1].forceDeviation)
                << "standard errors";
        for (int d = 0; d < DIM; d++)
        {
            EXPECT_NEAR(ofAll[1].pressure[d], sample[1].pressure[d], 4.5 * sample[1].pressureDeviation[d]);
        }
        // Bounds so near to the errors with a radius that a sample does not know on which side they are
        EXPECT_EQ(1U, measurement.leastRadius(split, radii, 1.01 * ofAll[1].force, 1e6, 150).first);
        EXPECT_EQ(2U, measurement.leastRadius(split, radii, 0.99 * ofAll[1].force, 1e6, 150).first);
        EXPECT_EQ(0U, measurement.leastRadius(split, radii, 1, 1.01 * largest(ofAll[0]), 150).first);
        EXPECT_EQ(radii.size(), measurement.leastRadius(split, radii, 0, 0, 150).first);

        std::array<int, c_number> places;
        for (int k = 0; k < c_number; k++)
        {
            places[k] = k;
        }
        std::shuffle(places.begin(), places.end(), random_);
        const std::vector<RVec> before = x;
        for (int k = 0; k < c_number; k++)
        {
            std::copy_n(before.begin() + 3 * places[k], 3, x.begin() + 3 * k);
        }
    }
}

TEST_F(FmmLJSplitErrorsTest, WhatIsNotCertainIsNotDecided)
{
    FmmLJSplitErrors errors;
    errors.force             = 1e-4;
    errors.forceDeviation    = 1e-5;
    errors.pressure          = { 0.1, -0.3, 0 };
    errors.pressureDeviation = { 0.1, 0.05, 0 };
    EXPECT_EQ(std::make_optional(true), errors.areWithin(1.4e-4, 0.5));
    EXPECT_EQ(std::nullopt, errors.areWithin(1.2e-4, 0.5));
    EXPECT_EQ(std::nullopt, errors.areWithin(1.4e-4, 0.35));
    EXPECT_EQ(std::make_optional(false), errors.areWithin(0.6e-4, 0.5));
    EXPECT_EQ(std::make_optional(false), errors.areWithin(1.4e-4, 0.1));
}

} // namespace
} // namespace gmx
