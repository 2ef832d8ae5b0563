/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements the checks that grompp does for coulombtype = FMM
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmpreprocess.h"

#include <cmath>

#include <functional>
#include <string>

#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/mdtypes/md_enums.h"
#include "gromacs/pbcutil/pbc.h"
#include "gromacs/topology/mtop_util.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/exceptions.h"
#include "gromacs/utility/logger.h"
#include "gromacs/utility/stringutil.h"

#include "fmmljsplitchoice.h"
#include "fmmslab.h"
#include "fmmsolver.h"
#include "fmmsystem.h"
#include "gmxfmmoptions.h"

namespace gmx
{

namespace
{

//! Checks what goes with pbc = no, and only with that; upstream allows it for no other pair interactions
void checkOpenSystem(const t_inputrec&                                    ir,
                     const FmmParameters&                                 parameters,
                     const std::function<void(bool, const std::string&)>& refuse)
{
    if (ir.pbcType != PbcType::No)
    {
        refuse(parameters.boundary == FmmBoundary::Open,
               "with fmm-boundary = open has no periodicity; use pbc = no");
        return;
    }
    refuse(parameters.boundary == FmmBoundary::Vacuum,
           "with pbc = no has no periodic system that vacuum could surround; use fmm-boundary = "
           "open");
    refuse(usesOctree(parameters.m2l) && parameters.grid[XX] > 0,
           "with pbc = no fits the leaves of an octree to the atoms; use fmm-tree-depth, not "
           "fmm-grid");
    refuse(ir.bPeriodicMols, "with pbc = no does not work with periodic-molecules");
    refuse(hasPressureCoupling(ir),
           "with pbc = no has no volume and thus no pressure; use pcoupl = no");
    refuse(hasBoxDeformation(ir), "with pbc = no has no box to deform; use deform = 0 0 0 0 0 0");
}

/*! \brief Notes what errors of the forces do without a thermostat
 *
 * The energy does a random walk of a variance D t, and drifts by about D / (2 kT);
 * D goes with the square of the error. docs/measured-errors.md has what was measured.
 */
void noteDrift(const t_inputrec& ir, double expectedError, FmmWarningHandler* wi)
{
    constexpr double c_drift = 3.5e3; // kJ/mol/ps per squared relative error, within a factor of 3
    constexpr double c_worthIt  = 1e-5; // what PME stays below
    constexpr double c_accuracy = 5e-5; // with it 0.3e-5 to 2e-5 were measured
    const double     drift      = c_drift * expectedError * expectedError;
    const bool       isMD = ir.eI == IntegrationAlgorithm::MD || ir.eI == IntegrationAlgorithm::VV
                      || ir.eI == IntegrationAlgorithm::VVAK;
    if (isMD && ir.etc == TemperatureCoupling::No && drift > c_worthIt)
    {
        addFmmNote(wi,
                   formatString("Without temperature coupling, errors of the FMM forces of %.1e "
                                "let the energy of water drift by some %.0e kJ/mol/ps per atom. "
                                "For long runs use fmm-accuracy = %g.",
                                expectedError,
                                drift,
                                c_accuracy));
    }
}

//! Tells of a net charge; returns the name of a kind of molecule that has one, or nullptr
const char* noteNetCharge(const gmx_mtop_t& mtop, const t_inputrec& ir, FmmWarningHandler* wi)
{
    double      netCharge = 0, netChargeB = 0;
    const char* charged = nullptr;
    for (const gmx_molblock_t& molblock : mtop.molblock)
    {
        const gmx_moltype_t& moltype = mtop.moltype[molblock.type];
        double               ofOne = 0, ofOneB = 0;
        for (int a = 0; a < moltype.atoms.nr; a++)
        {
            ofOne += static_cast<double>(moltype.atoms.atom[a].q);
            ofOneB += static_cast<double>(moltype.atoms.atom[a].qB);
        }
        netCharge += molblock.nmol * ofOne;
        netChargeB += molblock.nmol * ofOneB;
        if (std::fabs(ofOne) > 1e-4)
        {
            charged = *moltype.name;
        }
    }
    if (ir.efep != FreeEnergyPerturbationType::No && std::fabs(netChargeB) > std::fabs(netCharge))
    {
        netCharge = netChargeB; // the state in which there is more of it
    }
    if (std::fabs(netCharge) > 1e-4 && ir.pbcType == PbcType::XY)
    {
        addFmmNote(wi,
                   formatString("The system has a net charge of %g e. With pbc = xy there is no "
                                "background charge. Outside, the field is that of a charged sheet. "
                                "The energy has a constant of choice, the same for all coordinates "
                                "in the same box.",
                                netCharge));
    }
    else if (std::fabs(netCharge) > 1e-4 && ir.pbcType != PbcType::No)
    {
        addFmmWarning(
                wi,
                formatString(
                        "The system has a net charge of %g e. coulombtype = FMM neutralizes it "
                        "with "
                        "a uniform background charge, as PME does. This can lead to artifacts, "
                        "such as ions moving into regions with low dielectric. We suggest to "
                        "neutralize the system with counter ions.",
                        netCharge));
    }
    return charged;
}

} // namespace

void checkFmmInputrec(t_inputrec* ir, FmmWarningHandler* wi)
{
    if (!usesGmxfmm(*ir))
    {
        return;
    }
    const FmmOptions options = fmmOptions(*ir);
    for (const std::string& message : options.errors())
    {
        addFmmError(wi, withFmmPage(message));
    }
    const FmmParameters parameters = options.errors().empty() ? options.parameters() : FmmParameters{};

    const auto refuse = [wi](bool isRefused, const std::string& message)
    {
        if (isRefused)
        {
            addFmmError(wi, withFmmPage("coulombtype = FMM " + message));
        }
    };
    refuse(ir->vdwtype == VanDerWaalsType::Pme, "does not work with LJ-PME; use vdwtype = Cut-off");
    refuse(ir->epsilon_surface != 0,
           "does not use epsilon-surface; use epsilon-surface = 0 and choose the surroundings with "
           "fmm-boundary");
    refuse(parameters.ljRadius > ir->rvdw,
           "with fmm-lj-radius beyond rvdw has no use for a split; use a smaller "
           "fmm-lj-radius, or 0 for automatic");
    refuse(ir->pbcType != PbcType::Xyz && ir->pbcType != PbcType::XY && ir->pbcType != PbcType::No,
           formatString("does not work with pbc = %s; use pbc = xyz, xy or no",
                        c_pbcTypeNames[ir->pbcType].c_str()));
    checkFmmSlab(*ir, parameters, refuse, wi);
    checkOpenSystem(*ir, parameters, refuse);
    refuse(usesOctree(parameters.m2l) && ir->pbcType != PbcType::No && boxMayTilt(*ir),
           "with an octree needs a rectangular box, and deform or a compressibility off the "
           "diagonal may tilt it; use fmm-m2l = fft or auto, or set these to 0");
    refuse(hasNeuralNetworkPotential(*ir),
           "does not work with neural-network potentials. They need all pairs of atoms, and the "
           "pair list has only atoms with Van der Waals interactions. Use nnpot-active = no, or "
           "coulombtype = PME");
    refuse(ir->eI == IntegrationAlgorithm::Mimic,
           "does not work with integrator = mimic; use coulombtype = PME");
    refuse(!GMX_DOUBLE && ir->eI == IntegrationAlgorithm::NM,
           "is too noisy for normal modes in mixed precision; use GROMACS in double precision with "
           "a "
           "small fmm-accuracy, or coulombtype = PME");
    refuse(parameters.boundary == FmmBoundary::Vacuum && ir->bPeriodicMols,
           "with fmm-boundary = vacuum does not work with periodic-molecules, as these have no "
           "defined dipole; use fmm-boundary = tinfoil");

    // The default is the first, which at this point has not yet been translated
    switch (ir->coulomb_modifier)
    {
        case InteractionModifiers::PotShiftVerletUnsupported:
        case InteractionModifiers::None: break;
        case InteractionModifiers::PotShift:
            addFmmNote(
                    wi,
                    "coulombtype = FMM has no Coulomb cut-off, so coulomb-modifier is ignored and "
                    "set to None");
            break;
        default: refuse(true, "has no Coulomb cut-off to modify; use coulomb-modifier = None");
    }
    ir->coulomb_modifier = InteractionModifiers::None;

    if (ir->rcoulomb != ir->rvdw)
    {
        addFmmNote(
                wi,
                formatString("coulombtype = FMM has no Coulomb cut-off, so rcoulomb is ignored and "
                             "set to rvdw (%g nm)",
                             ir->rvdw));
        ir->rcoulomb = ir->rvdw;
    }
}

void checkFmmSystem(const gmx_mtop_t&    mtop,
                    const t_inputrec&    ir,
                    const matrix         box,
                    ArrayRef<const RVec> x,
                    const MDLogger&      logger,
                    FmmWarningHandler*   wi)
{
    if (!usesGmxfmm(ir))
    {
        return;
    }
    // Walls, which are the last groups, have no charge
    const int numGroups = ir.opts.ngener - ir.nwall;
    bool      havePairs = false;
    for (int pair = 0; pair < numGroups * numGroups; pair++)
    {
        const int i = pair / numGroups, j = pair % numGroups;
        havePairs = havePairs || (ir.opts.egp_flags[i * ir.opts.ngener + j] & EGP_EXCL) != 0;
    }
    if (havePairs)
    {
        addFmmError(
                wi,
                withFmmPage(
                        "coulombtype = FMM computes Coulomb interactions of all groups with one "
                        "another; remove energygrp-excl"));
    }

    const char* charged = noteNetCharge(mtop, ir, wi);
    try
    {
        FmmParameters parameters = fmmParameters(ir);
        if (parameters.m2l == FmmM2L::Dynamic)
        {
            // Offered on GPUs only, of which grompp knows nothing; the same but for the way of doing it
            parameters.m2l = FmmM2L::Symmetric;
        }
        if (charged != nullptr && parameters.boundary == FmmBoundary::Vacuum)
        {
            addFmmWarning(
                    wi,
                    formatString("With fmm-boundary = vacuum all molecules should be neutral. The "
                                 "energy depends on the dipole of the box, which jumps when a "
                                 "molecule with a charge (%s) leaves it. Use fmm-boundary = "
                                 "tinfoil.",
                                 charged));
        }
        // mdrun measures, with its threads. But options that limit what it can choose may leave it
        // nothing to reach the accuracy with: measuring is then done here, too, for mdrun's message.
        const bool isToChoose = !fmmParametersAreFixed(parameters);
        parameters.measure    = parameters.measure && fmmParametersAreLimited(parameters);
        const FmmSolver solver(parameters, mtop, box, x, 1, true, 1, nullptr);
        GMX_LOG(logger.info)
                .asParagraph()
                .appendText(solver.description()
                            + "\n     on a CPU; on a GPU mdrun may choose others");
        const bool isMeasured = parameters.measure && isToChoose; // and good, or it had thrown
        if (!isMeasured && solver.expectedError() > 1.1 * parameters.accuracy)
        {
            addFmmNote(wi,
                       formatString(
                               "With these parameters the expected relative RMS error of the FMM "
                               "forces is %.1e, while fmm-accuracy = %.1e. Use a larger fmm-order "
                               "or fmm-separation, or leave them automatic.",
                               solver.expectedError(),
                               parameters.accuracy));
        }
        noteDrift(ir, solver.expectedError(), wi);
    }
    catch (const GromacsException& ex)
    {
        addFmmError(wi, ex.what());
    }
}

void settleFmmLJSplit(const gmx_mtop_t&          mtop,
                      const t_inputrec&          ir,
                      const matrix               box,
                      ArrayRef<const RVec>       x,
                      FmmWarningHandler*         wi,
                      KeyValueTreeObjectBuilder* builder)
{
    if (!usesGmxfmm(ir) || !fmmOptions(ir).errors().empty())
    {
        return;
    }
    const FmmParameters parameters = fmmParameters(ir);
    const bool          isAsked    = parameters.lj == FmmLJ::Split;
    std::string         whyNot;
    const auto          choice = chooseLJSplit(ir,
                                      mtop,
                                      box,
                                      fmmCoordinates(mtop, ir.pbcType, ir.bPeriodicMols, box, x),
                                      parameters.accuracy,
                                      isAsked ? parameters.ljRadius : 0,
                                      &whyNot);
    if (!choice)
    {
        if (isAsked)
        {
            addFmmNote(wi,
                       "fmm-lj = split changes nothing here. Lennard-Jones interactions of all "
                       "pairs of atoms are in one list: "
                               + whyNot + ".");
        }
        return;
    }
    const bool        hasPressure = ir.pbcType != PbcType::No && !isFilm(ir.pbcType, ir.nwall);
    const std::string what        = formatString(
            "%.0f %% of the pairs that the pair list has now. Atoms have Lennard-Jones "
                   "interactions "
                   "up to %.2f nm. Beyond that groups of a heavy atom and its hydrogens have them, from "
                   "their centres. At these coordinates this changes %s.%s",
            100 * choice->cost,
            choice->settings.radius,
            choice->errors.description().c_str(),
            hasPressure ? " The pressure is corrected for that." : "");
    if (isAsked)
    {
        choice->settings.store(builder);
        addFmmNote(wi, "Lennard-Jones interactions are split: mdrun computes " + what);
    }
    else
    {
        addFmmNote(wi, "fmm-lj = split would compute " + what);
    }
}

} // namespace gmx
