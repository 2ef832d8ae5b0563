/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements the decision whether the FMM runs on a GPU
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmtaskassignment.h"

#include "config.h"

#include <string>

#include "gromacs/applied_forces/awh/read_params.h"
#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/mdtypes/md_enums.h"
#include "gromacs/taskassignment/decidegpuusage.h"
#include "gromacs/utility/exceptions.h"
#include "gromacs/utility/logger.h"

#include "fmmsolver.h"
#include "fmmsystem.h"

namespace gmx
{

namespace
{

//! Returns why the FMM cannot run on a GPU, empty if it can
std::string whyNotOnGpu(bool                useGpuForNonbonded,
                        ArrayRef<const int> availableDevices,
                        const t_inputrec&   inputrec,
                        const gmx_mtop_t&   mtop)
{
    if (inputrec.coulombtype != CoulombInteractionType::Fmm)
    {
        return "coulombtype is not FMM";
    }
    if (!GMX_GPU_CUDA)
    {
        return "this build of GROMACS has no CUDA support";
    }
    if (!useGpuForNonbonded)
    {
        return "nonbonded interactions do not run on the GPU (see -nb)";
    }
    if (fmmPerturbedAtomsAreCharged(mtop) && inputrec.bDoAwh && awhHasFepLambdaDimension(*inputrec.awhParams))
    {
        return "AWH along lambda needs the derivative of the energy before a GPU has it";
    }
    // Which of them will be used is not known yet
    for (const int deviceId : availableDevices)
    {
        const std::string reason = whyNoFmmOnDevice(deviceId);
        if (!reason.empty())
        {
            return reason;
        }
    }
    return {};
}

} // namespace

bool decideWhetherToUseGpuForFmm(const bool          useGpuForNonbonded,
                                 const TaskTarget    fmmTarget,
                                 ArrayRef<const int> availableDevices,
                                 const t_inputrec&   inputrec,
                                 const gmx_mtop_t&   mtop,
                                 const MDLogger&     mdlog)
{
    if (fmmTarget == TaskTarget::Cpu)
    {
        return false;
    }
    const std::string reason = whyNotOnGpu(useGpuForNonbonded, availableDevices, inputrec, mtop);
    if (reason.empty())
    {
        return true;
    }
    if (fmmTarget == TaskTarget::Gpu)
    {
        GMX_THROW(InconsistentInputError("FMM on the GPU was required (-fmm gpu), but " + reason + "."));
    }
    if (inputrec.coulombtype == CoulombInteractionType::Fmm && useGpuForNonbonded)
    {
        GMX_LOG(mdlog.warning)
                .asParagraph()
                .appendText("NOTE: the FMM runs on the CPU: " + reason + ".");
    }
    return false;
}

} // namespace gmx
