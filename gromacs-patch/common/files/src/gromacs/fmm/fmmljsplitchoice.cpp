/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements how Lennard-Jones is split into two lists
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmljsplitchoice.h"

#include <cmath>

#include <algorithm>
#include <limits>
#include <numeric>

#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/topology/mtop_util.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/exceptions.h"
#include "gromacs/utility/logger.h"
#include "gromacs/utility/stringutil.h"

#include "fmmsystem.h"

namespace gmx
{

namespace
{

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
                           const std::vector<int>&    lightTypes,
                           double                     radius,
                           const std::vector<double>& numbers,
                           double                     volume)
{
    const int    numTypes = mtop.ffparams.atnr;
    const double r        = radius - 0.5 * FmmLJSplit::c_switchRange;
    double       sum      = 0;
    for (const int l : lightTypes)
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

double allowedLJSplitForceError(const double accuracy)
{
    return 0.25 * accuracy;
}

std::optional<FmmLJSplitChoice> chooseLJSplit(const t_inputrec&    inputrec,
                                              const gmx_mtop_t&    mtop,
                                              const matrix         box,
                                              ArrayRef<const RVec> x,
                                              const double         accuracy,
                                              const double         radius,
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
    const double volume     = fmmVolumeOfAtoms(inputrec, mtop, box);
    const auto   candidates = lightTypes(inputrec, mtop, numbers, least);

    const double                allowedForce = part * allowedLJSplitForceError(accuracy);
    const FmmLJSplitMeasurement measurement(inputrec, mtop, box, x);

    std::optional<FmmLJSplitChoice> best;
    FmmLJSplitSettings              settings;
    settings.radius                = least;
    settings.havePairsOfLightAtoms = isGiven;
    for (const auto& candidate : candidates)
    {
        settings.lightTypes.push_back(candidate.second);
        // More light atoms need no smaller radius
        std::vector<double> radii;
        for (double tried = settings.radius; tried < most + 1e-6; tried += c_step)
        {
            constexpr double c_margin = 3; // The estimate is above the error by half in water
            if (estimatedForceError(mtop, settings.lightTypes, tried, numbers, volume)
                <= c_margin * allowedForce * measurement.coulombForce())
            {
                radii.push_back(tried);
            }
        }
        if (radii.empty())
        {
            break;
        }
        settings.radius            = radii[0];
        const auto [index, errors] = measurement.leastRadius(FmmLJSplit(settings, inputrec, mtop),
                                                             radii,
                                                             allowedForce,
                                                             part * c_allowedLJSplitPressureError,
                                                             c_ljSplitAtoms);
        if (index == radii.size())
        {
            break;
        }
        settings.radius   = radii[index];
        const double cost = costOfSplit(FmmLJSplit(settings, inputrec, mtop), inputrec.rvdw, volume);
        if (cost < (best ? best->cost : worthIt))
        {
            best = FmmLJSplitChoice{ settings, errors, cost };
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
    const double allowed   = allowedLJSplitForceError(accuracy);
    const auto coordinates = fmmCoordinates(mtop, inputrec.pbcType, inputrec.bPeriodicMols, box, x);
    const FmmLJSplitMeasurement measurement(inputrec, mtop, box, coordinates);
    const double                radius = split.settings().radius;
    const auto [index, errors]         = measurement.leastRadius(
            split, { &radius, &radius + 1 }, allowed, c_allowedLJSplitPressureError, c_ljSplitAtoms);
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
    if (index > 0)
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
