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
#include "gromacs/mdtypes/enerdata.h"
#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/options/options.h"
#include "gromacs/options/treesupport.h"
#include "gromacs/timing/wallcycle.h"
#include "gromacs/utility/keyvaluetree.h"

#include "gmxfmmoptions.h"

namespace gmx
{

void addFmmError(FmmWarningHandler* wi, const std::string& text)
{
    warning_error(wi, text);
}

void addFmmWarning(FmmWarningHandler* wi, const std::string& text)
{
    warning(wi, text);
}

void addFmmNote(FmmWarningHandler* wi, const std::string& text)
{
    warning_note(wi, text);
}

bool usesGmxfmm(const t_inputrec& inputrec)
{
    return inputrec.coulombtype == CoulombInteractionType::Fmm;
}

bool gmxfmmOptionsAreStored(const KeyValueTreeObject& params)
{
    return params.keyExists(FmmOptions::c_scope);
}

FmmOptions fmmOptions(const t_inputrec& inputrec)
{
    FmmOptions fmmOptions;
    if (gmxfmmOptionsAreStored(*inputrec.params))
    {
        Options options;
        fmmOptions.initMdpOptions(&options);
        assignOptionsFromKeyValueTree(&options, (*inputrec.params)[FmmOptions::c_scope].asObject(), nullptr);
    }
    return fmmOptions;
}

bool hasPressureCoupling(const t_inputrec& inputrec)
{
    return inputrec.epc != PressureCoupling::No;
}

bool hasBoxDeformation(const t_inputrec& inputrec)
{
    return inputrecDeform(&inputrec);
}

real& coulombReciprocalTerm(gmx_enerdata_t* enerd)
{
    return enerd->term[F_COUL_RECIP];
}

void startLaunchCounter(gmx_wallcycle* wcycle)
{
    wallcycle_start_nocount(wcycle, WallCycleCounter::LaunchGpu);
}

void stopLaunchCounter(gmx_wallcycle* wcycle)
{
    wallcycle_stop(wcycle, WallCycleCounter::LaunchGpu);
}

} // namespace gmx
