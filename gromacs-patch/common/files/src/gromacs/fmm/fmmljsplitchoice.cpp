/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements how Lennard-Jones is split into two lists, and the errors of that
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmljsplitchoice.h"

#include <cmath>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "gromacs/math/units.h"
#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/mdtypes/interaction_const.h"
#include "gromacs/pbcutil/pbc.h"
#include "gromacs/selection/nbsearch.h"
#include "gromacs/topology/mtop_util.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/exceptions.h"
#include "gromacs/utility/logger.h"
#include "gromacs/utility/stringutil.h"

#include "fmmslab.h"
#include "fmmsystem.h"

namespace gmx
{

namespace
{

//! Force over distance and energy of a pair
struct PairTerm
{
    double force  = 0;
    double energy = 0;
};

//! Lennard-Jones with one of GROMACS's modifiers, as in its reference manual
class LennardJones
{
public:
    LennardJones(InteractionModifiers modifier, double cutoff, double start) :
        modifier_(modifier),
        cutoff_(cutoff),
        start_(modifier == InteractionModifiers::ForceSwitch || modifier == InteractionModifiers::PotSwitch
                       ? start
                       : 0),
        dispersion_(6, start_, cutoff),
        repulsion_(12, start_, cutoff)
    {
    }

    PairTerm operator()(double r, double c6, double c12) const
    {
        if (r >= cutoff_ || (c6 == 0 && c12 == 0))
        {
            return {};
        }
        const double   plain      = 1 / (r * r * r * r * r * r);
        const PairTerm repulsion  = modified(r, 12, plain * plain, repulsion_);
        const PairTerm dispersion = modified(r, 6, plain, dispersion_);
        return { c12 * repulsion.force - c6 * dispersion.force,
                 c12 * repulsion.energy - c6 * dispersion.energy };
    }

private:
    //! The modified potential \p plain = r^-p
    PairTerm modified(double r, double p, double plain, const FmmForceSwitch& constants) const
    {
        const double t = std::max(0.0, r - start_), plainForce = p * plain / r;
        switch (modifier_)
        {
            case InteractionModifiers::ForceSwitch:
                return { (plainForce + p * t * t * (constants.c2 + constants.c3 * t)) / r,
                         plain - p * t * t * t * (constants.c2 / 3 + constants.c3 / 4 * t)
                                 + constants.shift };
            case InteractionModifiers::PotSwitch:
            {
                const double range = cutoff_ - start_;
                const double s     = t / range;
                const double value = 1 - s * s * s * (10 - 15 * s + 6 * s * s);
                const double slope = -30 * s * s * (1 - s) * (1 - s) / range;
                return { (plainForce * value - plain * slope) / r, plain * value };
            }
            case InteractionModifiers::PotShift:
                return { plainForce / r, plain - std::pow(cutoff_, -p) };
            default: return { plainForce / r, plain };
        }
    }

    InteractionModifiers modifier_;
    double               cutoff_;
    double               start_;
    FmmForceSwitch       dispersion_, repulsion_;
};

//! Returns how many atoms are of each type
std::vector<double> numbersOfTypes(const gmx_mtop_t& mtop)
{
    std::vector<double> numbers(mtop.ffparams.atnr, 0);
    for (const gmx_molblock_t& molblock : mtop.molblock)
    {
        const t_atoms& atoms = mtop.moltype[molblock.type].atoms;
        for (int a = 0; a < atoms.nr; a++)
        {
            numbers[atoms.atom[a].type] += molblock.nmol;
        }
    }
    return numbers;
}

//! Returns the volume of the box; without one, and of films, that of so many atoms in water
double volumeOfAtoms(const t_inputrec& inputrec, const gmx_mtop_t& mtop, const matrix box)
{
    return inputrec.pbcType == PbcType::No || isFilm(inputrec.pbcType, inputrec.nwall)
                   ? volumeOfFilm(mtop.natoms)
                   : static_cast<double>(box[XX][XX]) * box[YY][YY] * box[ZZ][ZZ];
}

/*! \brief Returns pairs that lists of clusters compute, per volume
 *
 * The volume around a cube of side s, which holds the atoms of a cluster, that is within reach of it.
 */
double numPairsInLists(double densityI, double densityJ, double radius)
{
    if (densityI <= 0 || densityJ <= 0)
    {
        return 0;
    }
    constexpr double c_atoms = 8; // of a cluster
    const double     s = 0.5 * (std::cbrt(c_atoms / densityI) + std::cbrt(c_atoms / densityJ));
    return densityI * densityJ
           * (s * s * s + 6 * s * s * radius + 3 * M_PI * s * radius * radius
              + 4.0 / 3 * M_PI * radius * radius * radius);
}

//! Returns the cost of the split over that of one list
double costOfSplit(const FmmLJSplit& split, double rvdw, double volume)
{
    constexpr double                           c_buffer = 0.05;
    std::array<double, FmmLJSplit::c_numGrids> density;
    for (int g = 0; g < FmmLJSplit::c_numGrids; g++)
    {
        density[g] = split.numAtomsOnGrid(static_cast<FmmLJSplit::Grid>(g)) / volume;
    }
    const auto cost = [&density](const std::vector<std::pair<int, int>>& pairs, double radius)
    {
        double sum = 0;
        for (const auto& [i, j] : pairs)
        {
            sum += numPairsInLists(density[i], density[j], radius + c_buffer) * (i == j ? 0.5 : 1);
        }
        return sum;
    };
    const double all = std::accumulate(density.begin(), density.end(), 0.0);
    return (cost(FmmLJSplit::gridPairs(), rvdw) + cost(split.shortGridPairs(), split.shortRadius()))
           / (0.5 * numPairsInLists(all, all, rvdw + c_buffer));
}

/*! \brief Returns the estimated RMS force error, from the dispersion of light atoms beyond \p radius in a liquid
 *
 * Forces there are taken as independent: the mean square is an integral over
 * the square of the force. The half of the switch counts as not computed.
 */
double estimatedForceError(const gmx_mtop_t&          mtop,
                           const FmmLJSplit&          split,
                           const std::vector<double>& numbers,
                           double                     volume)
{
    const int    numTypes = mtop.ffparams.atnr;
    const double r        = split.settings().radius - 0.5 * FmmLJSplit::c_switchRange;
    double       sum      = 0;
    for (const int l : split.settings().lightTypes)
    {
        double square = 0;
        for (int b = 0; b < numTypes; b++)
        {
            const double c6 = mtop.ffparams.iparams[l * numTypes + b].lj.c6;
            square += numbers[b] / volume * 36 * c6 * c6 * 4 * M_PI / (11 * std::pow(r, 11));
        }
        // The light atom, and the heavy one that has its dispersion instead
        sum += 2.5 * numbers[l] * square;
    }
    return std::sqrt(sum / mtop.natoms);
}

//! What the measurement needs of all atoms
struct AllAtoms
{
    explicit AllAtoms(const gmx_mtop_t& mtop)
    {
        for (const gmx_molblock_t& molblock : mtop.molblock)
        {
            const gmx_moltype_t& moltype = mtop.moltype[molblock.type];
            for (int m = 0; m < molblock.nmol; m++)
            {
                const int first = static_cast<int>(charge.size());
                for (int a = 0; a < moltype.atoms.nr; a++)
                {
                    type.push_back(moltype.atoms.atom[a].type);
                    charge.push_back(moltype.atoms.atom[a].q);
                    firstOfMolecule.push_back(first);
                    molecule.push_back(&moltype);
                }
            }
        }
    }
    bool areExcluded(int i, int j) const
    {
        if (firstOfMolecule[i] != firstOfMolecule[j])
        {
            return false;
        }
        const auto excluded = molecule[i]->excls[i - firstOfMolecule[i]];
        return std::find(excluded.begin(), excluded.end(), j - firstOfMolecule[i]) != excluded.end();
    }

    std::vector<int>                  type;
    std::vector<double>               charge;
    std::vector<int>                  firstOfMolecule;
    std::vector<const gmx_moltype_t*> molecule;
};

//! Returns groups of one atom and the light atoms that it has
std::vector<std::vector<int>> groupsOfLightAtoms(const FmmLJSplit& split, const gmx_mtop_t& mtop)
{
    std::vector<std::vector<int>> groups;
    int                           first = 0;
    for (const gmx_molblock_t& molblock : mtop.molblock)
    {
        const int numAtoms = mtop.moltype[molblock.type].atoms.nr;
        for (int m = 0; m < molblock.nmol; m++, first += numAtoms)
        {
            std::vector<std::vector<int>> ofMolecule(numAtoms);
            for (int a = 0; a < numAtoms; a++)
            {
                ofMolecule[split.heavyAtom(molblock.type, a)].push_back(first + a);
            }
            std::copy_if(ofMolecule.begin(),
                         ofMolecule.end(),
                         std::back_inserter(groups),
                         [](const std::vector<int>& group) { return !group.empty(); });
        }
    }
    return groups;
}

/*! \brief Damped Coulomb force between unit charges, by 1/(4 pi eps0)
 *
 * Cut off and shifted, its RMS is that of an Ewald sum within some percent:
 * C. Fennell, J. Gezelter, J. Chem. Phys. 124, 234104 (2006).
 */
double dampedCoulombForce(double r)
{
    constexpr double c_damping = 2; // 1/nm
    return std::erfc(c_damping * r) / (r * r)
           + 2 * c_damping / std::sqrt(M_PI) * std::exp(-c_damping * c_damping * r * r) / r;
}

//! Leaves groups of about \p mostAtoms atoms, by chance; returns how many atoms they have
int takeSample(std::vector<std::vector<int>>* groups, const int mostAtoms)
{
    std::mt19937 random(2015);
    int          numAtoms = 0;
    for (size_t g = 0; g < groups->size(); g++)
    {
        if (numAtoms >= mostAtoms)
        {
            groups->resize(g);
            break;
        }
        std::swap((*groups)[g], (*groups)[g + random() % (groups->size() - g)]);
        numAtoms += static_cast<int>((*groups)[g].size());
    }
    return numAtoms;
}

//! Returns why no system with these settings can have Lennard-Jones interactions in two lists, or nothing
std::string whyNoSplit(const t_inputrec& inputrec, const gmx_mtop_t& mtop)
{
    if (inputrec.vdwtype != VanDerWaalsType::Cut || !usesLennardJones(mtop.ffparams))
    {
        return "it needs vdwtype = Cut-off";
    }
    if (inputrec.efep != FreeEnergyPerturbationType::No && haveFepPerturbedNBInteractions(mtop))
    {
        return "there are perturbed atoms";
    }
    return mtop.bIntermolecularInteractions ? "there are intermolecular interactions" : "";
}

//! Returns types of atoms that are bound to one heavy atom, by what they have of Lennard-Jones
std::vector<std::pair<double, int>> lightTypes(const t_inputrec&          inputrec,
                                               const gmx_mtop_t&          mtop,
                                               const std::vector<double>& numbers,
                                               const double               radius)
{
    const int                           numTypes = mtop.ffparams.atnr;
    std::vector<std::pair<double, int>> types;
    for (int t = 0; t < numTypes; t++)
    {
        double sum = 0;
        for (int b = 0; b < numTypes; b++)
        {
            sum += numbers[b] * mtop.ffparams.iparams[t * numTypes + b].lj.c6;
        }
        FmmLJSplitSettings alone;
        alone.radius     = radius;
        alone.lightTypes = { t };
        if (sum > 0 && FmmLJSplit(alone, inputrec, mtop).numAtomsOnGrid(FmmLJSplit::HeavyWithLight) > 0)
        {
            types.emplace_back(sum, t);
        }
    }
    std::sort(types.begin(), types.end());
    return types;
}

} // namespace

double FmmLJSplitErrors::largestPressure(const double numDeviations) const
{
    double largest = 0;
    for (int d = 0; d < DIM; d++)
    {
        largest = std::max(largest, std::abs(pressure[d]) - numDeviations * pressureDeviation[d]);
    }
    return largest;
}

std::string FmmLJSplitErrors::description() const
{
    return formatString(
            "forces %.1e of the RMS Coulomb force, pressure %.2f %.2f %.2f bar (+- %.2f) along x, "
            "y, z, "
            "energy %.3g kJ/mol",
            force,
            pressure[XX],
            pressure[YY],
            pressure[ZZ],
            *std::max_element(pressureDeviation.begin(), pressureDeviation.end()),
            energy);
}

double allowedLJSplitForceError(const double accuracy)
{
    return 0.25 * accuracy;
}

FmmLJSplitErrors measureLJSplit(const FmmLJSplit&    split,
                                const t_inputrec&    inputrec,
                                const gmx_mtop_t&    mtop,
                                const matrix         box,
                                ArrayRef<const RVec> x,
                                const int            mostAtoms)
{
    const int      numTypes      = split.numTypes();
    const double   cutoff        = inputrec.rvdw;
    const double   epsfac        = c_one4PiEps0 / inputrec.epsilon_r;
    const double   forceAtCutoff = dampedCoulombForce(cutoff);
    const AllAtoms atoms(mtop);

    const LennardJones longLJ(inputrec.vdw_modifier, cutoff, inputrec.rvdw_switch);
    const LennardJones shortLJ(InteractionModifiers::ForceSwitch,
                               split.shortRadius(),
                               split.shortRadius() - FmmLJSplit::c_switchRange);
    // Both are linear in their parameters
    const auto changeOfPair = [&](int i, int j, double r)
    {
        const auto& lj = mtop.ffparams.iparams[atoms.type[i] * mtop.ffparams.atnr + atoms.type[j]].lj;
        const int   entry = 2 * (split.atomTypes()[i] * numTypes + split.atomTypes()[j]);
        const PairTerm far =
                longLJ(r, split.nbfp()[entry] / 6 - lj.c6, split.nbfp()[entry + 1] / 12 - lj.c12);
        const PairTerm near = shortLJ(r, split.shortNbfp()[entry] / 6, split.shortNbfp()[entry + 1] / 12);
        return PairTerm{ far.force + near.force, far.energy + near.energy };
    };

    // What a light atom loses its heavy atom has, so that the two are taken together
    std::vector<std::vector<int>> groups    = groupsOfLightAtoms(split, mtop);
    const double                  numGroups = static_cast<double>(groups.size());
    const int                     numAtoms  = takeSample(&groups, mostAtoms);

    t_pbc pbc;
    set_pbc(&pbc, inputrec.pbcType, box);
    AnalysisNeighborhood neighborhood;
    neighborhood.setCutoff(static_cast<real>(cutoff));
    AnalysisNeighborhoodSearch search = neighborhood.initSearch(
            &pbc, AnalysisNeighborhoodPositions(as_rvec_array(x.data()), static_cast<int>(x.size())));

    double                  sumDifference = 0, sumCoulomb = 0, sumEnergy = 0;
    std::array<double, DIM> sumVirial = {}, sumVirialSquare = {};
    for (const std::vector<int>& group : groups)
    {
        std::array<double, DIM> virial = {};
        for (const int i : group)
        {
            std::array<double, DIM> difference = {}, coulomb = {};
            auto pairSearch = search.startPairSearch(AnalysisNeighborhoodPositions(x[i]));
            AnalysisNeighborhoodPair pair;
            while (pairSearch.findNextPair(&pair))
            {
                const int j = pair.refIndex();
                if (j == i)
                {
                    continue;
                }
                const double r          = std::sqrt(pair.distance2());
                const bool   isExcluded = atoms.areExcluded(i, j);
                const double coulombForce =
                        atoms.charge[i] * atoms.charge[j]
                        * (dampedCoulombForce(r) - forceAtCutoff - (isExcluded ? 1 / (r * r) : 0)) / r;
                const PairTerm change = isExcluded ? PairTerm{} : changeOfPair(i, j, r);
                sumEnergy += 0.5 * change.energy;
                for (int d = 0; d < DIM; d++)
                {
                    difference[d] += change.force * pair.dx()[d];
                    coulomb[d] += coulombForce * pair.dx()[d];
                    virial[d] += 0.5 * change.force * pair.dx()[d] * pair.dx()[d];
                }
            }
            for (int d = 0; d < DIM; d++)
            {
                sumDifference += difference[d] * difference[d];
                sumCoulomb += coulomb[d] * coulomb[d];
            }
        }
        for (int d = 0; d < DIM; d++)
        {
            sumVirial[d] += virial[d];
            sumVirialSquare[d] += virial[d] * virial[d];
        }
    }

    FmmLJSplitErrors errors;
    const double     numSampled = static_cast<double>(groups.size());
    errors.coulombForce         = epsfac * std::sqrt(sumCoulomb / numAtoms);
    errors.force = (sumCoulomb > 0) ? std::sqrt(sumDifference / numAtoms) / errors.coulombForce : 0;
    errors.energy = numGroups / numSampled * sumEnergy;
    if (inputrec.pbcType != PbcType::No)
    {
        const double toBar = numGroups * c_presfac / volumeOfAtoms(inputrec, mtop, box);
        for (int d = 0; d < DIM; d++)
        {
            const double mean     = sumVirial[d] / numSampled;
            const double variance = std::max(0.0, sumVirialSquare[d] / numSampled - mean * mean);
            errors.pressure[d]    = toBar * mean;
            errors.pressureDeviation[d] = toBar * std::sqrt(variance / numSampled);
        }
    }
    return errors;
}

std::optional<FmmLJSplitChoice> chooseLJSplit(const t_inputrec&    inputrec,
                                              const gmx_mtop_t&    mtop,
                                              const matrix         box,
                                              ArrayRef<const RVec> x,
                                              const double         accuracy,
                                              const double         radius,
                                              const int            mostAtoms,
                                              std::string*         whyNot)
{
    *whyNot = whyNoSplit(inputrec, mtop);
    if (!whyNot->empty())
    {
        return std::nullopt;
    }
    const bool       isGiven = radius > 0;
    constexpr double c_step  = 0.05;
    const double     least   = isGiven ? radius : 0.5;
    const double     most =
            isGiven ? radius : std::min(0.9, inputrec.rvdw - double(FmmLJSplit::c_switchRange));
    const double worthIt = isGiven ? std::numeric_limits<double>::infinity() : 0.8;
    // Half of what is allowed is for what coordinates of later steps have more
    const double part       = isGiven ? 1 : 0.5;
    const auto   numbers    = numbersOfTypes(mtop);
    const double volume     = volumeOfAtoms(inputrec, mtop, box);
    const auto   candidates = lightTypes(inputrec, mtop, numbers, least);

    const double allowedForce    = part * allowedLJSplitForceError(accuracy);
    const double allowedPressure = part * c_allowedLJSplitPressureError;
    double       rmsCoulomb      = 0;
    // Returns the errors of a choice where they are small enough
    const auto errorsIfAllowed = [&](const FmmLJSplit& split) -> std::optional<FmmLJSplitErrors>
    {
        constexpr double c_margin = 3; // The estimate is above the error by half in water
        if (rmsCoulomb > 0
            && estimatedForceError(mtop, split, numbers, volume) > c_margin * allowedForce * rmsCoulomb)
        {
            return std::nullopt;
        }
        const FmmLJSplitErrors errors = measureLJSplit(split, inputrec, mtop, box, x, mostAtoms);
        rmsCoulomb                    = errors.coulombForce;
        const bool isAllowed = errors.force <= allowedForce && errors.largestPressure(0) <= allowedPressure;
        return isAllowed ? std::make_optional(errors) : std::nullopt;
    };

    std::optional<FmmLJSplitChoice> best;
    FmmLJSplitSettings              settings;
    settings.radius                = least;
    settings.havePairsOfLightAtoms = isGiven;
    for (const auto& candidate : candidates)
    {
        settings.lightTypes.push_back(candidate.second);
        std::optional<FmmLJSplitErrors> errors;
        // More light atoms need no smaller radius
        while (settings.radius < most + 1e-6 && !errors)
        {
            const FmmLJSplit split(settings, inputrec, mtop);
            errors = errorsIfAllowed(split);
            if (!errors)
            {
                settings.radius += c_step;
            }
            else if (const double cost = costOfSplit(split, inputrec.rvdw, volume);
                     cost < (best ? best->cost : worthIt))
            {
                best = FmmLJSplitChoice{ settings, *errors, cost };
            }
        }
        if (!errors)
        {
            break;
        }
    }
    if (!best)
    {
        *whyNot =
                candidates.empty()
                        ? "no atom with Lennard-Jones interactions is bound to one heavy atom"
                : isGiven
                        ? "with that radius forces or pressure would differ by more than is allowed"
                        : "no choice of light atoms that is accurate enough saves a fifth of the "
                          "pairs";
    }
    return best;
}

void checkLJSplit(const FmmLJSplit&    split,
                  const t_inputrec&    inputrec,
                  const gmx_mtop_t&    mtop,
                  const matrix         box,
                  ArrayRef<const RVec> x,
                  const double         accuracy,
                  const MDLogger&      mdlog)
{
    const FmmLJSplitErrors errors =
            measureLJSplit(split,
                           inputrec,
                           mtop,
                           box,
                           fmmCoordinates(mtop, inputrec.pbcType, inputrec.bPeriodicMols, box, x),
                           c_ljSplitAtoms);
    GMX_LOG(mdlog.info)
            .asParagraph()
            .appendTextFormatted(
                    "Lennard-Jones interactions are in two pair lists: %d light atoms have them up "
                    "to %.2f nm%s,\n"
                    "%d heavy atoms with these and %d others up to %.2f nm, with the dispersion of "
                    "light ones.\n"
                    "Measured at the start, against one list of all pairs: %s",
                    split.numAtomsOnGrid(FmmLJSplit::Light),
                    split.settings().radius,
                    split.settings().havePairsOfLightAtoms ? "" : ", not with one another",
                    split.numAtomsOnGrid(FmmLJSplit::HeavyWithLight),
                    split.numAtomsOnGrid(FmmLJSplit::Heavy),
                    inputrec.rvdw,
                    errors.description().c_str());
    constexpr double c_byChance = 3; // standard deviations
    const double     allowed    = allowedLJSplitForceError(accuracy);
    if (errors.force > allowed || errors.largestPressure(c_byChance) > c_allowedLJSplitPressureError)
    {
        GMX_THROW(InconsistentInputError(formatString(
                "Lennard-Jones interactions in two lists (fmm-lj = split) change %s. Allowed are "
                "%.1e "
                "and %.1f bar. Run grompp with these coordinates, or use fmm-lj = full.",
                errors.description().c_str(),
                allowed,
                c_allowedLJSplitPressureError)));
    }
}

} // namespace gmx
