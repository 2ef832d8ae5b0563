/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements how the split of Lennard-Jones is chosen
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmljsplitchoice.h"

#include <cmath>

#include <algorithm>
#include <utility>
#include <vector>

#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/pbcutil/pbc.h"
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

/*! \brief Radii that grompp tries, nm
 *
 * With 0.5 nm, which is accurate enough in water, what is added to the pressure depends on the
 * structure: it is -1.7 bar in one of SPC water, and 0.6 bar in CHARMM's own. With 0.55 nm it is
 * -0.2 and -0.6 bar.
 */
constexpr double c_leastRadius = 0.55, c_largestRadius = 1, c_step = 0.05;
//! What a split must save to be worth it
constexpr double c_worthIt = 0.8;
//! The part of the allowed error that grompp leaves for coordinates of later steps
constexpr double c_part = 0.75;
//! By how much atoms that exclude each other may be further apart later, nm
constexpr double c_margin = 0.02;
//! What pair lists of groups may reach beyond rvdw in mdrun, nm
constexpr real c_largestBuffer = 0.25_real;
//! By how much mdrun may exceed what grompp may
constexpr double c_laterCoordinates = 1.25;

/*! \brief Returns pairs that lists of clusters compute, per volume
 *
 * The volume around a cube, which holds the places of a cluster, that is within reach of it.
 */
double numPairsInLists(double density, double ofCluster, double radius)
{
    if (density <= 0)
    {
        return 0;
    }
    const double s = std::cbrt(ofCluster / density);
    return 0.5 * density * density
           * (s * s * s + 6 * s * s * radius + 3 * M_PI * s * radius * radius
              + 4.0 / 3 * M_PI * radius * radius * radius);
}

//! Returns why no system with these settings can have a split, or nothing
std::string whyNoSplit(const t_inputrec& inputrec, const gmx_mtop_t& mtop, const matrix box)
{
    if (inputrec.vdwtype != VanDerWaalsType::Cut || !usesLennardJones(mtop.ffparams))
    {
        return "it needs vdwtype = Cut-off";
    }
    if (inputrec.efep != FreeEnergyPerturbationType::No && haveFepPerturbedNBInteractions(mtop))
    {
        return "there are perturbed atoms";
    }
    if (inputrec.useMts)
    {
        return "with multiple time stepping its parts would be computed at different steps";
    }
    if (mtop.bIntermolecularInteractions)
    {
        return "there are intermolecular interactions";
    }
    const real reach = inputrec.rvdw + c_largestBuffer;
    if (inputrec.pbcType != PbcType::No && max_cutoff2(inputrec.pbcType, box) < reach * reach)
    {
        return formatString("the box is too small: pair lists of groups reach up to %.2f nm", reach);
    }
    return mtop.intermolecularExclusionGroup.empty() ? "" : "atoms exclude those of other molecules";
}

//! Returns why groups of this system have none, or nothing
std::string whyNoSplit(const FmmLJSplit& split)
{
    if (!split.haveHydrogens())
    {
        return "no atom with Lennard-Jones interactions has hydrogens";
    }
    return split.haveFarExclusions() ? "atoms more than three bonds apart exclude each other" : "";
}

//! Returns radii with which the constants of groups that exclude each other are such
std::vector<double> possibleRadii(const t_inputrec& inputrec,
                                  double            farthestExclusion,
                                  double            radius,
                                  std::string*      whyNot)
{
    constexpr double c_rounding = 1e-6;
    const bool       isGiven    = radius > 0;
    const bool       isSwitched = inputrec.vdw_modifier == InteractionModifiers::ForceSwitch
                            || inputrec.vdw_modifier == InteractionModifiers::PotSwitch;
    const double        switchRange = FmmLJSplit::c_switchRange;
    std::vector<double> tried       = { radius };
    if (!isGiven)
    {
        tried.clear();
        const double largest = std::min(c_largestRadius, inputrec.rvdw - c_step);
        for (int k = 0; c_leastRadius + k * c_step < largest + c_rounding; k++)
        {
            tried.push_back(c_leastRadius + k * c_step);
        }
    }
    *whyNot = formatString(
            "groups that exclude each other are up to %.2f nm apart, and pairs of "
            "atoms need a cut-off %.1f nm beyond that",
            farthestExclusion,
            switchRange);
    std::vector<double> possible;
    for (const double r : tried)
    {
        if (isSwitched && r - switchRange > inputrec.rvdw_switch + c_rounding)
        {
            *whyNot = formatString(
                    "with rvdw-switch = %g pairs of atoms can have a cut-off of %g nm at most",
                    inputrec.rvdw_switch,
                    inputrec.rvdw_switch + switchRange);
        }
        else if (r - switchRange >= farthestExclusion + (isGiven ? 0 : c_margin))
        {
            possible.push_back(r);
        }
    }
    return possible;
}

/*! \brief Returns the first of some radii with good forces and a pressure that can be corrected, and its errors
 *
 * The pressure needs more atoms than forces do, so it is looked at with one radius at a time.
 */
std::optional<std::pair<double, FmmLJSplitErrors>> firstGoodRadius(const FmmLJSplitMeasurement& measurement,
                                                                   std::vector<double> radii,
                                                                   const double        allowedForce)
{
    const auto haveGoodForces = [allowedForce](const FmmLJSplitErrors& errors)
    { return errors.forcesAreWithin(allowedForce); };
    const auto isKnown = [](const FmmLJSplitErrors& errors)
    {
        return bothHold(errors.pressureIsWithin({}, c_allowedLJSplitPressure),
                        errors.pressureUncertainty() <= c_ljSplitPressureUncertainty
                                ? std::make_optional(true)
                                : std::nullopt);
    };
    while (!radii.empty())
    {
        const size_t bad = measurement.firstRadius(radii, haveGoodForces, c_ljSplitAtoms).first;
        radii.erase(radii.begin(), radii.begin() + bad);
        if (!radii.empty())
        {
            const auto [isBad, errors] = measurement.firstRadius(
                    { radii.data(), radii.data() + 1 }, isKnown, c_ljSplitAtoms);
            if (!isBad)
            {
                return std::make_pair(radii[0], errors);
            }
            radii.erase(radii.begin());
        }
    }
    return std::nullopt;
}

} // namespace

double allowedLJSplitForceError(const double accuracy)
{
    return 0.25 * accuracy;
}

double costOfLJSplit(const FmmLJSplit& split, const double radius, const double rvdw, const double volume)
{
    // Sites are in larger clusters, whose pairs cost half of those of atoms
    constexpr double c_buffer = 0.05, c_atoms = 8, c_sites = 32, c_costOfSites = 0.5;
    const double     atoms = split.numAtomsInPairList() / volume;
    const double     sites = split.numGroups() / volume;
    const double     all   = numPairsInLists(atoms, c_atoms, rvdw + c_buffer);
    return all > 0 ? (numPairsInLists(atoms, c_atoms, radius + c_buffer)
                      + c_costOfSites * numPairsInLists(sites, c_sites, rvdw + c_buffer))
                             / all
                   : 1;
}

std::optional<FmmLJSplitChoice> chooseLJSplit(const t_inputrec&    inputrec,
                                              const gmx_mtop_t&    mtop,
                                              const matrix         box,
                                              ArrayRef<const RVec> x,
                                              const double         accuracy,
                                              const double         radius,
                                              std::string*         whyNot)
{
    *whyNot = whyNoSplit(inputrec, mtop, box);
    if (!whyNot->empty())
    {
        return std::nullopt;
    }
    FmmLJSplitSettings settings;
    settings.whole = FmmLJRange::of(inputrec);
    const FmmLJSplit split(settings, inputrec, mtop);
    *whyNot = whyNoSplit(split);
    if (!whyNot->empty())
    {
        return std::nullopt;
    }
    const bool                  isGiven = radius > 0;
    const double                volume  = fmmVolumeOfAtoms(inputrec, mtop, box);
    const FmmLJSplitMeasurement measurement(split, inputrec, mtop, box, x);
    std::vector<double> radii = possibleRadii(inputrec, measurement.farthestExclusion(), radius, whyNot);
    if (radii.empty())
    {
        return std::nullopt;
    }
    const auto isTooDear = [&](double r)
    { return costOfLJSplit(split, r, inputrec.rvdw, volume) > c_worthIt; };
    if (!isGiven)
    {
        radii.erase(std::find_if(radii.begin(), radii.end(), isTooDear), radii.end());
    }
    const auto chosen = firstGoodRadius(
            measurement, radii, (isGiven ? 1 : c_part) * allowedLJSplitForceError(accuracy));
    if (!chosen)
    {
        *whyNot = isGiven ? "that radius would change more than is allowed: "
                                    + measurement.errors(radii, c_ljSplitAtoms)[0].description()
                          : "no radius that is accurate enough saves a fifth of the pairs";
        return std::nullopt;
    }
    const auto& [chosenRadius, errors] = *chosen;
    settings.radius                    = chosenRadius;
    settings.pressure                  = errors.pressure;
    settings.volume                    = volume;
    return FmmLJSplitChoice{ settings, errors, costOfLJSplit(split, chosenRadius, inputrec.rvdw, volume) };
}

void checkLJSplit(const FmmLJSplit&    split,
                  const t_inputrec&    inputrec,
                  const gmx_mtop_t&    mtop,
                  const matrix         box,
                  ArrayRef<const RVec> x,
                  const double         accuracy,
                  const MDLogger&      mdlog)
{
    const FmmLJSplitSettings& settings = split.settings();
    const double              allowed  = c_laterCoordinates * allowedLJSplitForceError(accuracy);
    const auto                expected = settings.pressureAt(fmmVolumeOfAtoms(inputrec, mtop, box));
    const auto coordinates = fmmCoordinates(mtop, inputrec.pbcType, inputrec.bPeriodicMols, box, x);
    const FmmLJSplitMeasurement measurement(split, inputrec, mtop, box, coordinates);
    const auto                  isGood = [&](const FmmLJSplitErrors& errors)
    {
        return bothHold(errors.forcesAreWithin(allowed),
                        errors.pressureIsWithin(expected, c_allowedLJSplitPressureError));
    };
    const auto [isBad, errors] =
            measurement.firstRadius({ &settings.radius, &settings.radius + 1 }, isGood, c_ljSplitAtoms);
    const bool hasPressure = inputrec.pbcType != PbcType::No && !isFilm(inputrec.pbcType, inputrec.nwall);
    const std::string corrected = formatString(
            "\nThe pressure is corrected by %.2f %.2f %.2f bar along x, y, z, as grompp measured "
            "it.",
            -expected[0],
            -expected[1],
            -expected[2]);
    GMX_LOG(mdlog.info)
            .asParagraph()
            .appendTextFormatted(
                    "Lennard-Jones interactions are split: those of atoms up to %.2f nm, and "
                    "beyond that up to %.2f nm\n"
                    "those of %d groups, each a heavy atom and its hydrogens, which act from their "
                    "centres.\n"
                    "Measured at the start, against one list of all pairs: %s.%s",
                    settings.radius,
                    settings.whole.cutoff,
                    split.numGroups(),
                    errors.description().c_str(),
                    hasPressure ? corrected.c_str() : "");
    if (isBad)
    {
        GMX_THROW(InconsistentInputError(formatString(
                "The split of Lennard-Jones interactions (fmm-lj = split) changes %s. For forces "
                "%.1e is allowed, and for the pressure %.1f bar around %.2f %.2f %.2f bar, as "
                "grompp measured it. Run grompp with these coordinates, or use fmm-lj = full.",
                errors.description().c_str(),
                allowed,
                c_allowedLJSplitPressureError,
                expected[0],
                expected[1],
                expected[2])));
    }
}

void logFmmSiteLists(const FmmSiteLists& lists, const double reach, const MDLogger& mdlog)
{
    if (lists.interval > 0)
    {
        GMX_LOG(mdlog.info)
                .asParagraph()
                .appendTextFormatted(
                        "Pairs of atoms and of groups are listed on the GPU, every %d steps and at "
                        "pair "
                        "searches, up to %.3f and %.3f nm.\n"
                        "The pair list of mdrun has no pairs within its cut-off.",
                        lists.interval,
                        lists.radius,
                        reach);
    }
}

} // namespace gmx
