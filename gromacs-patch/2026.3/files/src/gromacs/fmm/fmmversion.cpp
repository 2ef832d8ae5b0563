/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements what the FMM needs and GROMACS versions offer in different ways
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmversion.h"

#include "gromacs/fileio/warninp.h"
#include "gromacs/mdlib/calc_verletbuf.h"
#include "gromacs/mdtypes/enerdata.h"
#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/options/options.h"
#include "gromacs/options/treesupport.h"
#include "gromacs/pbcutil/pbc.h"
#include "gromacs/timing/wallcycle.h"
#include "gromacs/utility/keyvaluetree.h"

#include "fmm_mdmodule.h"
#include "fmm_mdpoptions.h"
#include "fmmopensystem.h"
#include "gmxfmmoptions.h"

namespace gmx
{

void addFmmError(FmmWarningHandler* wi, const std::string& text)
{
    wi->addError(text);
}

void addFmmWarning(FmmWarningHandler* wi, const std::string& text)
{
    wi->addWarning(text);
}

void addFmmNote(FmmWarningHandler* wi, const std::string& text)
{
    wi->addNote(text);
}

bool gmxfmmOptionsAreStored(const KeyValueTreeObject& params)
{
    if (!params.keyExists(FmmOptions::c_scope))
    {
        return false;
    }
    const KeyValueTreeObject& scope = params[FmmOptions::c_scope].asObject();
    const std::string         section(FmmModuleInfo::sc_name);
    return scope.keyExists(section) && FmmOptions::areIn(scope[section].asObject());
}

//! Reads the options of the module stored in an input record
static void readModuleOptions(const t_inputrec& inputrec, FmmMdpOptions* mdpOptions)
{
    mdpOptions->declareGmxfmmOptions();
    if (inputrec.params->keyExists(FmmOptions::c_scope))
    {
        Options options;
        mdpOptions->initMdpOptions(&options);
        assignOptionsFromKeyValueTree(&options, (*inputrec.params)[FmmOptions::c_scope].asObject(), nullptr);
    }
}

bool usesGmxfmm(const t_inputrec& inputrec)
{
    if (inputrec.coulombtype != CoulombInteractionType::Fmm || !gmxfmmOptionsAreStored(*inputrec.params))
    {
        return false;
    }
    FmmMdpOptions mdpOptions;
    readModuleOptions(inputrec, &mdpOptions);
    const ActiveFmmBackend backend = mdpOptions.activeFmmBackend();
    return backend != ActiveFmmBackend::ExaFmm && backend != ActiveFmmBackend::FMSolvr;
}

FmmOptions fmmOptions(const t_inputrec& inputrec)
{
    FmmMdpOptions mdpOptions;
    readModuleOptions(inputrec, &mdpOptions);
    FmmOptions options = mdpOptions.gmxfmmOptions();
    options.setBackend(fmmBackendName(mdpOptions.activeFmmBackend()));
    return options;
}

bool hasPressureCoupling(const t_inputrec& inputrec)
{
    return inputrec.pressureCouplingOptions.epc != PressureCoupling::No;
}

bool hasBoxDeformation(const t_inputrec& inputrec)
{
    return ir_haveBoxDeformation(inputrec);
}

real effectiveAtomDensity(const PbcType              pbcType,
                          const ArrayRef<const RVec> x,
                          const matrix               box,
                          const real                 cutoff,
                          const MPI_Comm             communicator)
{
    // Without periodicity there is one rank
    return pbcType == PbcType::No ? static_cast<real>(x.size()) / openSystemVolume(x)
                                  : computeEffectiveAtomDensity(x, box, cutoff, communicator);
}

real& coulombReciprocalTerm(gmx_enerdata_t* enerd)
{
    return enerd->term[InteractionFunction::CoulombReciprocalSpace];
}

void startLaunchCounter(gmx_wallcycle* wcycle)
{
    wallcycle_start_nocount(wcycle, WallCycleCounter::LaunchGpuPp);
}

void stopLaunchCounter(gmx_wallcycle* wcycle)
{
    wallcycle_stop(wcycle, WallCycleCounter::LaunchGpuPp);
}

} // namespace gmx
