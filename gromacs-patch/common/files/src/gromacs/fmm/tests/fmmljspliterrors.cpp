/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Tests what the split of Lennard-Jones changes, and decisions by that
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "gromacs/fmm/fmmljspliterrors.h"

#include <cmath>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "gromacs/fmm/fmmljsplitchoice.h"
#include "gromacs/math/units.h"
#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/exceptions.h"
#include "gromacs/utility/logger.h"
#include "gromacs/utility/smalloc.h"

#include "interactionnames.h"

namespace gmx
{
namespace
{

/*! \brief Rigid water, and molecules of two heavy atoms with one and two hydrogens, which are not rigid
 *
 * They are at places of a lattice, turned and shifted by chance, and not so close that rounding matters.
 */
class FmmLJSplitErrorsTest : public ::testing::Test
{
protected:
    FmmLJSplitErrorsTest()
    {
        mtop_.moltype.reserve(2);
        addMolecule({ 0, 1, 1 }, c_numWater);
        mtop_.moltype[0].ilist[c_settle].push_back(0, std::array<int, 3>{ 0, 1, 2 });
        addMolecule({ 2, 1, 2, 1, 1 }, c_number - c_numWater);
        for (const auto& pair : { std::array<int, 2>{ 0, 1 }, { 0, 2 }, { 2, 3 }, { 2, 4 } })
        {
            mtop_.moltype[1].ilist[c_bond].push_back(0, pair);
        }
        mtop_.ffparams.atnr = c_numTypes;
        for (const real c6 : c_c6)
        {
            t_iparams parameters = {};
            parameters.lj.c6     = c6;
            parameters.lj.c12    = 1e-3_real * c6;
            mtop_.ffparams.iparams.push_back(parameters);
            mtop_.ffparams.functype.push_back(c_lennardJones);
        }
        mtop_.ffparams.reppow  = 12;
        inputrec_.coulombtype  = CoulombInteractionType::Fmm;
        inputrec_.pbcType      = PbcType::Xyz;
        inputrec_.vdwtype      = VanDerWaalsType::Cut;
        inputrec_.vdw_modifier = InteractionModifiers::ForceSwitch;
        inputrec_.rvdw         = 1;
        inputrec_.rvdw_switch  = 0.8_real;
        inputrec_.epsilon_r    = 1;

        std::uniform_real_distribution<double> uniform(-1, 1);
        for (int k = 0; k < c_number; k++)
        {
            const std::array<int, DIM> place = { { k % c_edge, k / c_edge % c_edge, k / c_edge / c_edge } };
            for (int d = 0; d < DIM; d++)
            {
                centres_[k][d] = c_spacing * (place[d] + 0.1 * uniform(random_));
            }
            // In the plane of two vectors
            DVec u(uniform(random_), uniform(random_), uniform(random_));
            DVec v(uniform(random_), uniform(random_), uniform(random_));
            u *= 1 / u.norm();
            v -= u * u.dot(v);
            v *= 1 / v.norm();
            bonds_[k] = { u * 0.06 + v * 0.08, u * 0.06 - v * 0.08 };
        }
    }

    //! Adds molecules all of whose atoms exclude one another
    void addMolecule(const std::vector<int>& types, int number)
    {
        gmx_moltype_t& moltype = mtop_.moltype.emplace_back();
        moltype.atoms.nr       = static_cast<int>(types.size());
        snew(moltype.atoms.atom, types.size());
        std::vector<int> all;
        for (size_t a = 0; a < types.size(); a++)
        {
            t_atom& atom = moltype.atoms.atom[a];
            atom.type = atom.typeB = static_cast<unsigned short>(types[a]);
            atom.ptype             = ParticleType::Atom;
            atom.m                 = types[a] == 1 ? 1 : 16;
            atom.q = types[a] == 1 ? 0.4_real : types[a] == 0 ? -0.8_real : -0.6_real;
            all.push_back(static_cast<int>(a));
        }
        for (size_t a = 0; a < types.size(); a++)
        {
            moltype.excls.pushBack(all);
        }
        gmx_molblock_t block;
        block.type = static_cast<int>(mtop_.moltype.size()) - 1;
        block.nmol = number;
        mtop_.molblock.push_back(block);
        mtop_.natoms += number * moltype.atoms.nr;
    }

    //! Coordinates with the box, centres of mass of water and other atoms stretched along an axis
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
            const auto& [u, v] = bonds_[k];
            if (k < c_numWater)
            {
                DVec oxygen = centres_[k] - (u + v) * (1.0 / 18);
                oxygen[axis] += (stretch - 1) * centres_[k][axis];
                for (const DVec& at : { oxygen, oxygen + u, oxygen + v })
                {
                    x.push_back(at.toRVec());
                }
                continue;
            }
            const DVec one = centres_[k] - (u - v) * 0.5, other = centres_[k] + (u - v) * 0.5;
            for (DVec at : { one, one - u, other, other + u * 0.9, other - v * 0.8 })
            {
                at[axis] *= stretch;
                x.push_back(at.toRVec());
            }
        }
        return x;
    }

    FmmLJSplit split() const { return FmmLJSplit(settings_, inputrec_, mtop_); }

    //! The errors of all atoms
    FmmLJSplitErrors errors(double radius, const matrix box, const std::vector<RVec>& x) const
    {
        const FmmLJSplit ofAll = split();
        return FmmLJSplitMeasurement(ofAll, inputrec_, mtop_, box, x)
                .errors({ &radius, &radius + 1 }, mtop_.natoms)[0];
    }

    //! The pressure by differences of the energy, bar
    double pressureByDifferences(double radius, int axis) const
    {
        constexpr double      c_by   = 3e-4;
        std::array<double, 2> energy = {};
        double                volume = 0;
        for (const int side : { 0, 1 })
        {
            matrix                  box;
            const std::vector<RVec> x = coordinates(box, axis, 1 + (side == 0 ? -c_by : c_by));
            energy[side]              = errors(radius, box, x).energy;
            volume += 0.5 * box[XX][XX] * box[YY][YY] * box[ZZ][ZZ];
        }
        return -(energy[1] - energy[0]) / (2 * c_by) / volume * c_presfac;
    }

    static constexpr int    c_edge = 7, c_number = c_edge * c_edge * c_edge, c_numWater = 280;
    static constexpr double c_spacing  = 0.45;
    static constexpr int    c_numTypes = 3;
    //! Of oxygen, hydrogen and the heavy atoms of the other molecule
    static constexpr std::array<real, c_numTypes* c_numTypes> c_c6 = {
        { 2.5e-3_real, 3e-4_real, 3e-3_real, 3e-4_real, 5e-5_real, 4e-4_real, 3e-3_real, 4e-4_real, 4e-3_real }
    };

    gmx_mtop_t                                mtop_;
    t_inputrec                                inputrec_;
    FmmLJSplitSettings                        settings_;
    std::mt19937                              random_{ 63 };
    std::array<DVec, c_number>                centres_;
    std::array<std::array<DVec, 2>, c_number> bonds_;
};

//! r^-p with a cut-off, by the formulas of the reference manual
double cutPotential(double r, int p, double start, double cutoff, bool isSwitched)
{
    if (r >= cutoff)
    {
        return 0;
    }
    const double d = cutoff - start, t = std::max(0.0, r - start);
    const double a = -p * ((p + 4) * cutoff - (p + 1) * start) / (std::pow(cutoff, p + 2) * d * d);
    const double b = p * ((p + 3) * cutoff - (p + 1) * start) / (std::pow(cutoff, p + 2) * d * d * d);
    const auto   changed = [&](double s) { return s * s * s * (a / 3 + b / 4 * s); };
    return std::pow(r, -p) - std::pow(cutoff, -p) + (isSwitched ? changed(d) - changed(t) : 0);
}

//! What the split changes in the energy, by a loop over all pairs
class FmmLJSplitReference
{
public:
    FmmLJSplitReference(const t_inputrec&        inputrec,
                        const gmx_mtop_t&        mtop,
                        const matrix             box,
                        double                   radius,
                        const std::vector<RVec>& x) :
        inputrec_(inputrec), mtop_(mtop), radius_(radius)
    {
        for (int d = 0; d < DIM; d++)
        {
            box_[d] = box[d][d];
        }
        std::vector<double> numbers(mtop.ffparams.atnr, 0);
        int                 molecule = 0;
        for (const gmx_molblock_t& block : mtop.molblock)
        {
            const t_atoms& atoms = mtop.moltype[block.type].atoms;
            for (int m = 0; m < block.nmol; m++, molecule++)
            {
                for (int a = 0; a < atoms.nr; a++)
                {
                    const int type = atoms.atom[a].type;
                    if (type != 1)
                    {
                        groups_.emplace_back();
                        moleculeOfGroup_.push_back(molecule);
                    }
                    groups_.back().push_back(static_cast<int>(types_.size()));
                    types_.push_back(type);
                    numbers[type]++;
                }
            }
        }
        for (int a = 0; a < mtop.ffparams.atnr; a++)
        {
            double& strength = strengths_.emplace_back(0);
            for (int b = 0; b < mtop.ffparams.atnr; b++)
            {
                strength += numbers[b] * parameters(a, b).c6;
            }
        }
        for (const RVec& at : x)
        {
            x_.emplace_back(at[XX], at[YY], at[ZZ]);
        }
    }

    //! The energy of a group with all others
    double energy(size_t g) const
    {
        double sum = 0;
        for (size_t h = 0; h < groups_.size(); h++)
        {
            if (moleculeOfGroup_[h] != moleculeOfGroup_[g])
            {
                double c6 = 0, c12 = 0;
                for (const int i : groups_[g])
                {
                    for (const int j : groups_[h])
                    {
                        const auto& lj = parameters(types_[i], types_[j]);
                        sum -= difference(distance(x_[i], x_[j]), lj.c6, lj.c12);
                        c6 += lj.c6;
                        c12 += lj.c12;
                    }
                }
                sum += difference(distance(site(g), site(h)), c6, c12);
            }
        }
        return sum;
    }

    std::vector<std::vector<int>> groups_;
    std::vector<DVec>             x_;

private:
    const decltype(t_iparams::lj)& parameters(int a, int b) const
    {
        return mtop_.ffparams.iparams[a * mtop_.ffparams.atnr + b].lj;
    }
    //! The potential that was asked for minus the one of the pair list
    double difference(double r, double c6, double c12) const
    {
        const bool isSwitched = inputrec_.vdw_modifier == InteractionModifiers::ForceSwitch;
        const auto of         = [&](int p)
        {
            return cutPotential(r, p, inputrec_.rvdw_switch, inputrec_.rvdw, isSwitched)
                   - cutPotential(r, p, radius_ - 0.2, radius_, true);
        };
        return r < inputrec_.rvdw ? c12 * of(12) - c6 * of(6) : 0;
    }
    DVec site(size_t g) const
    {
        DVec   sum(0, 0, 0);
        double weight = 0;
        for (const int i : groups_[g])
        {
            sum += x_[i] * strengths_[types_[i]];
            weight += strengths_[types_[i]];
        }
        return sum * (1 / weight);
    }
    double distance(const DVec& a, const DVec& b) const
    {
        double sum = 0;
        for (int d = 0; d < DIM; d++)
        {
            const double dx = a[d] - b[d], nearest = dx - box_[d] * std::rint(dx / box_[d]);
            sum += nearest * nearest;
        }
        return std::sqrt(sum);
    }

    const t_inputrec&   inputrec_;
    const gmx_mtop_t&   mtop_;
    double              radius_;
    DVec                box_;
    std::vector<int>    types_, moleculeOfGroup_;
    std::vector<double> strengths_;
};

TEST_F(FmmLJSplitErrorsTest, ErrorsAreThoseOfALoopOverAllPairs)
{
    matrix                  box;
    const std::vector<RVec> x = coordinates(box);
    for (const auto modifier : { InteractionModifiers::ForceSwitch, InteractionModifiers::PotShift })
    {
        inputrec_.vdw_modifier = modifier;
        for (const double radius : { 0.55, 0.7 })
        {
            FmmLJSplitReference reference(inputrec_, mtop_, box, radius, x);
            double              energy = 0, square = 0;
            for (size_t g = 0; g < reference.groups_.size(); g++)
            {
                energy += 0.5 * reference.energy(g);
                for (const int a : reference.groups_[g])
                {
                    for (int d = 0; d < DIM; d++)
                    {
                        constexpr double c_by  = 1e-5;
                        double&          place = reference.x_[a][d];
                        const double     there = place;
                        place                  = there + c_by;
                        const double after     = reference.energy(g);
                        place                  = there - c_by;
                        const double before    = reference.energy(g);
                        place                  = there;
                        square += std::pow((after - before) / (2 * c_by), 2);
                    }
                }
            }
            const FmmLJSplit            ofAll = split();
            const FmmLJSplitMeasurement measurement(ofAll, inputrec_, mtop_, box, x);
            const auto measured = measurement.errors({ &radius, &radius + 1 }, mtop_.natoms)[0];
            EXPECT_NEAR(energy, measured.energy, 1e-4 * std::abs(energy) + 1e-5) << radius;
            const double force = std::sqrt(square / mtop_.natoms) / measurement.coulombForce();
            EXPECT_NEAR(force, measured.force, 1e-3 * force) << radius;
            EXPECT_EQ(0, measured.forceDeviation);
        }
    }
}

//! Constraints keep atoms of a group together, so that what a change of the box does is of the centres of groups
TEST_F(FmmLJSplitErrorsTest, PressureIsTheDerivativeOfTheEnergyOfRigidGroups)
{
    constexpr double c_radius = 0.6;
    for (t_iparams& parameters : mtop_.ffparams.iparams)
    {
        parameters.lj.c6 *= 100; // so that rounding of coordinates to 1e-7 nm does not matter
        parameters.lj.c12 *= 100;
    }
    matrix                  box;
    const std::vector<RVec> x        = coordinates(box);
    const auto              pressure = errors(c_radius, box, x).pressure;
    std::array<double, 3>   allowed;
    for (int d = 0; d < DIM; d++)
    {
        allowed[d] = 0.01 * std::abs(pressure[d]);
        EXPECT_NEAR(pressureByDifferences(c_radius, d), pressure[d], allowed[d]);
    }
    // Without constraints it is that of atoms, which is another one
    mtop_.moltype[0].ilist[c_settle].clear();
    mtop_.moltype[0].ilist[c_bond].push_back(0, std::array<int, 2>{ 0, 1 });
    mtop_.moltype[0].ilist[c_bond].push_back(0, std::array<int, 2>{ 0, 2 });
    const auto ofAtoms = errors(c_radius, box, x).pressure;
    double     most    = 0;
    for (int d = 0; d < DIM; d++)
    {
        most = std::max(most, std::abs(ofAtoms[d] - pressure[d]) / allowed[d]);
    }
    EXPECT_GT(most, 5);
}

TEST_F(FmmLJSplitErrorsTest, NothingChangesWithThePotentialThatWasAskedFor)
{
    matrix                  box;
    const std::vector<RVec> x    = coordinates(box);
    const FmmLJSplitErrors  same = errors(inputrec_.rvdw, box, x);
    EXPECT_NEAR(0, same.force, 1e-9);
    EXPECT_NEAR(0, same.energy, 1e-6);
}

TEST_F(FmmLJSplitErrorsTest, FarthestExclusionIsThatOfSites)
{
    matrix                      box;
    const std::vector<RVec>     x     = coordinates(box);
    const FmmLJSplit            ofAll = split();
    const FmmLJSplitMeasurement measurement(ofAll, inputrec_, mtop_, box, x);
    // Heavy atoms are 0.16 nm apart, and sites of their groups more
    EXPECT_GT(measurement.farthestExclusion(), 0.16);
    EXPECT_LT(measurement.farthestExclusion(), 0.2);
}

//! Other orders of the molecules are other samples of the same system
TEST_F(FmmLJSplitErrorsTest, DecisionsAreThoseOfAllAtoms)
{
    const std::vector<double> radii = { 0.5, 0.6, 0.7, 0.8 };
    matrix                    box;
    std::vector<RVec>         x      = coordinates(box);
    const FmmLJSplit          ofSome = split();
    const auto ofAll = FmmLJSplitMeasurement(ofSome, inputrec_, mtop_, box, x).errors(radii, mtop_.natoms);
    const auto largest = [](const FmmLJSplitErrors& errors)
    {
        const auto& [a, b, c] = errors.pressure;
        return std::max({ std::abs(a), std::abs(b), std::abs(c) });
    };
    const auto forces = [](double allowed)
    { return [allowed](const FmmLJSplitErrors& errors) { return errors.forcesAreWithin(allowed); }; };
    const auto pressure = [](double allowed)
    {
        return [allowed](const FmmLJSplitErrors& errors)
        { return errors.pressureIsWithin({}, allowed); };
    };
    EXPECT_EQ(0, ofAll[0].pressureUncertainty());
    ASSERT_GT(ofAll[0].force, ofAll[1].force);
    ASSERT_GT(ofAll[1].force, ofAll[2].force);
    for (int order = 0; order < 10; order++)
    {
        const FmmLJSplitMeasurement measurement(ofSome, inputrec_, mtop_, box, x);
        const auto                  sample = measurement.errors(radii, 150);
        EXPECT_GT(sample[1].forceDeviation, 0);
        EXPECT_NEAR(ofAll[1].force, sample[1].force, 4.5 * sample[1].forceDeviation)
                << "standard errors";
        for (int d = 0; d < DIM; d++)
        {
            EXPECT_NEAR(ofAll[1].pressure[d], sample[1].pressure[d], 4.5 * sample[1].pressureDeviation[d]);
        }
        // Bounds so near to the errors with a radius that a sample does not know on which side they are
        EXPECT_EQ(1U, measurement.firstRadius(radii, forces(1.01 * ofAll[1].force), 150).first);
        EXPECT_EQ(2U, measurement.firstRadius(radii, forces(0.99 * ofAll[1].force), 150).first);
        EXPECT_EQ(0U, measurement.firstRadius(radii, pressure(1.01 * largest(ofAll[0])), 150).first);
        EXPECT_EQ(radii.size(), measurement.firstRadius(radii, forces(0), 150).first);

        std::array<int, c_numWater> places;
        std::iota(places.begin(), places.end(), 0);
        std::shuffle(places.begin(), places.end(), random_);
        const std::vector<RVec> before = x;
        for (int k = 0; k < c_numWater; k++)
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
    EXPECT_EQ(std::make_optional(true), errors.forcesAreWithin(1.4e-4));
    EXPECT_EQ(std::nullopt, errors.forcesAreWithin(1.2e-4));
    EXPECT_EQ(std::make_optional(false), errors.forcesAreWithin(0.6e-4));
    EXPECT_EQ(std::make_optional(true), errors.pressureIsWithin({}, 0.5));
    EXPECT_EQ(std::nullopt, errors.pressureIsWithin({}, 0.35));
    EXPECT_EQ(std::make_optional(false), errors.pressureIsWithin({}, 0.1));
    EXPECT_EQ(std::make_optional(true), errors.pressureIsWithin({ { 0.1, -0.3, 0 } }, 0.31));
    EXPECT_DOUBLE_EQ(0.3, errors.pressureUncertainty());
    EXPECT_EQ(std::make_optional(true), bothHold(true, true));
    EXPECT_EQ(std::make_optional(false), bothHold(std::nullopt, false));
    EXPECT_EQ(std::nullopt, bothHold(std::nullopt, true));
}

//! Choices of the same system
class FmmLJSplitChoiceTest : public FmmLJSplitErrorsTest
{
protected:
    FmmLJSplitChoiceTest() : x_(coordinates(box_)) {}

    std::optional<FmmLJSplitChoice> choice(double accuracy, double radius = 0)
    {
        return chooseLJSplit(inputrec_, mtop_, box_, x_, accuracy, radius, &whyNot_);
    }

    matrix            box_;
    std::vector<RVec> x_;
    std::string       whyNot_;
};

TEST_F(FmmLJSplitChoiceTest, ShortestAccurateRadiusIsChosen)
{
    const double allowed = errors(0.6, box_, x_).force;
    const auto   chosen  = choice(1.01 * allowed / 0.75 * 4);
    ASSERT_TRUE(chosen.has_value()) << whyNot_;
    EXPECT_NEAR(0.6, chosen->settings.radius, 1e-9);
    EXPECT_LT(chosen->cost, 0.8);
    EXPECT_EQ(chosen->errors.pressure, chosen->settings.pressure);
    EXPECT_NEAR(std::pow(c_edge * c_spacing, 3), chosen->settings.volume, 1e-5);
    EXPECT_FALSE(choice(1e-7).has_value());
    EXPECT_NE(std::string::npos, whyNot_.find("no radius"));
    // A radius that is given may have more
    EXPECT_FALSE(choice(0.99 * allowed * 4, 0.6).has_value());
    EXPECT_TRUE(choice(1.01 * allowed * 4, 0.6).has_value());
}

TEST_F(FmmLJSplitChoiceTest, SystemsWithoutSplitAreToldWhy)
{
    const auto isNone = [this](const std::string& why)
    { return !choice(1e-2).has_value() && whyNot_.find(why) != std::string::npos; };
    ASSERT_TRUE(choice(1e-2).has_value()) << whyNot_;
    inputrec_.useMts = true;
    EXPECT_TRUE(isNone("multiple time stepping")) << whyNot_;
    inputrec_.useMts = false;
    const real edge  = box_[YY][YY];
    box_[YY][YY]     = 2 * (inputrec_.rvdw + 0.24_real);
    EXPECT_TRUE(isNone("box is too small")) << whyNot_;
    box_[YY][YY] = edge;
    // Pairs of atoms that exclude each other would have forces
    inputrec_.rvdw_switch = 0;
    EXPECT_TRUE(isNone("rvdw-switch")) << whyNot_;
    inputrec_.rvdw_switch = 0.8_real;
    mtop_.intermolecularExclusionGroup.push_back(0);
    EXPECT_TRUE(isNone("other molecules")) << whyNot_;
    mtop_.intermolecularExclusionGroup.clear();
    inputrec_.vdwtype = VanDerWaalsType::Pme;
    EXPECT_TRUE(isNone("vdwtype")) << whyNot_;
    inputrec_.vdwtype = VanDerWaalsType::Cut;
    x_[3 * c_numWater + 2][XX] += 1.2_real;
    EXPECT_TRUE(isNone("apart")) << whyNot_;
    mtop_.moltype[1].ilist[c_bond].clear();
    EXPECT_TRUE(isNone("three bonds")) << whyNot_;
}

TEST_F(FmmLJSplitChoiceTest, StartOfARunIsChecked)
{
    const double accuracy = 4 * errors(0.6, box_, x_).force;
    const auto   chosen   = choice(1.01 * accuracy, 0.6);
    ASSERT_TRUE(chosen.has_value());
    const auto check = [&](const FmmLJSplitSettings& settings, double ofForces)
    {
        checkLJSplit(FmmLJSplit(settings, inputrec_, mtop_), inputrec_, mtop_, box_, x_, ofForces, MDLogger());
    };
    EXPECT_NO_THROW(check(chosen->settings, accuracy));
    EXPECT_NO_THROW(check(chosen->settings, accuracy / 1.24));
    EXPECT_THROW(check(chosen->settings, accuracy / 1.26), InconsistentInputError);
    FmmLJSplitSettings other = chosen->settings;
    other.pressure[YY] += 0.4;
    EXPECT_NO_THROW(check(other, accuracy));
    other.pressure[YY] += 0.2;
    EXPECT_THROW(check(other, accuracy), InconsistentInputError);
}

} // namespace
} // namespace gmx
