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

#include <cstdlib>

#include <algorithm>
#include <string>

#include "gromacs/applied_forces/awh/read_params.h"
#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/mdtypes/md_enums.h"
#include "gromacs/pbcutil/pbc.h"
#include "gromacs/taskassignment/decidegpuusage.h"
#include "gromacs/utility/exceptions.h"
#include "gromacs/utility/logger.h"
#include "gromacs/utility/stringutil.h"

#include "fmmsolver.h"
#include "fmmsystem.h"
#include "gmxfmmoptions.h"

namespace gmx
{

namespace
{

//! Returns why the FMM cannot run on a GPU, empty if it can
std::string whyNotOnGpu(bool                useGpuForNonbonded,
                        ArrayRef<const int> availableDevices,
                        bool                isParallel,
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
    if (isParallel && fmmPerturbedAtomsAreCharged(mtop))
    {
        return "with perturbed charges it runs on the CPU of several ranks; with one rank a "
               "GPU does it";
    }
    if (fmmPerturbedAtomsAreCharged(mtop) && inputrec.bDoAwh && awhHasFepLambdaDimension(*inputrec.awhParams))
    {
        return "AWH along lambda needs the derivative of the energy before a GPU has it";
    }
    // Which of them will be used is not known yet
    for (const int deviceId : availableDevices)
    {
        const std::string reason = whyNoFmmOnDevice(deviceId, inputrec.pbcType == PbcType::XY);
        if (!reason.empty())
        {
            return reason;
        }
    }
    return {};
}

//! Returns the word of an option of mdrun
const char* nameOf(const TaskTarget target)
{
    return target == TaskTarget::Gpu ? "gpu" : target == TaskTarget::Cpu ? "cpu" : "auto";
}

//! Returns why the FMM cannot run on so many GPUs, empty if it can
std::string whyNotOnGpus(const bool useGpuForFmm, const int numAsked, const int numAvailable, const bool isMultiSim)
{
    constexpr auto c_most = static_cast<int>(fmmlibrary::num_devices.highest);
    if (numAsked < 0 || numAsked > c_most)
    {
        return formatString("ask for 1 to %d, or for 0, which leaves the number to mdrun", c_most);
    }
    if (numAsked > 0 && !useGpuForFmm)
    {
        return "the FMM does not run on a GPU: that needs coulombtype = FMM, nonbonded "
               "interactions on the GPU and no -fmm cpu; or leave -fmmgpus out";
    }
    if (numAsked > 1 && isMultiSim)
    {
        return "with -multidir each simulation has one GPU: leave -fmmgpus out";
    }
    if (numAsked > numAvailable)
    {
        return formatString(
                "mdrun may use %d (see -gpu_id and, where it is set, CUDA_VISIBLE_DEVICES): ask "
                "for fewer, or leave -fmmgpus out",
                numAvailable);
    }
    return {};
}

} // namespace

void takePmeTargetsForFmm(const t_inputrec& inputrec,
                          TaskTarget*       pmeTarget,
                          TaskTarget*       pmeFftTarget,
                          TaskTarget*       fmmTarget,
                          const MDLogger&   mdlog)
{
    if (inputrec.coulombtype != CoulombInteractionType::Fmm)
    {
        return;
    }
    std::string text;
    if (*pmeTarget != TaskTarget::Auto)
    {
        if (*fmmTarget != TaskTarget::Auto && *fmmTarget != *pmeTarget)
        {
            GMX_THROW(InconsistentInputError(formatString(
                    "mdrun -pme %s contradicts -fmm %s: with coulombtype = FMM both say "
                    "where the FMM runs. Leave one of them out.",
                    nameOf(*pmeTarget),
                    nameOf(*fmmTarget))));
        }
        text = formatString(" -pme %s means -fmm %s.", nameOf(*pmeTarget), nameOf(*pmeTarget));
        *fmmTarget = *pmeTarget;
        *pmeTarget = TaskTarget::Auto;
    }
    if (*pmeFftTarget != TaskTarget::Auto)
    {
        text += formatString(" -pmefft %s has no effect.", nameOf(*pmeFftTarget));
        *pmeFftTarget = TaskTarget::Auto;
    }
    if (!text.empty())
    {
        GMX_LOG(mdlog.warning)
                .asParagraph()
                .appendText("NOTE: with coulombtype = FMM there is no PME:" + text);
    }
}

bool decideWhetherToUseGpuForFmm(const bool          useGpuForNonbonded,
                                 const TaskTarget    fmmTarget,
                                 ArrayRef<const int> availableDevices,
                                 const bool          isParallel,
                                 const t_inputrec&   inputrec,
                                 const gmx_mtop_t&   mtop,
                                 const MDLogger&     mdlog)
{
    if (fmmTarget == TaskTarget::Cpu)
    {
        return false;
    }
    const std::string reason =
            whyNotOnGpu(useGpuForNonbonded, availableDevices, isParallel, inputrec, mtop);
    if (reason.empty())
    {
        return true;
    }
    if (fmmTarget == TaskTarget::Gpu)
    {
        GMX_THROW(InconsistentInputError(withFmmPage("FMM on the GPU was required (-fmm gpu), but "
                                                     + reason + ". Leave -fmm gpu out")));
    }
    if (inputrec.coulombtype == CoulombInteractionType::Fmm && useGpuForNonbonded)
    {
        GMX_LOG(mdlog.warning)
                .asParagraph()
                .appendText("NOTE: the FMM runs on the CPU: " + reason + ".");
    }
    return false;
}

FmmDevices decideDevicesForFmm(const bool          useGpuForFmm,
                               const int           numAsked,
                               ArrayRef<const int> availableDevices,
                               const bool          isReproducible,
                               const bool          isMultiSim,
                               const bool          isTaskGiven)
{
    FmmDevices devices;
    devices.available.assign(availableDevices.begin(), availableDevices.end());
    const size_t numDevices = devices.available.size();
    if (useGpuForFmm && std::getenv("GMX_FMM_SHARE_GPUS") != nullptr)
    {
        while (static_cast<int>(devices.available.size()) < numAsked)
        {
            devices.available.push_back(devices.available[devices.available.size() - numDevices]);
        }
    }
    const std::string reason = whyNotOnGpus(useGpuForFmm, numAsked, devices.available.size(), isMultiSim);
    if (!reason.empty())
    {
        GMX_THROW(InconsistentInputError(
                withFmmPage(formatString("mdrun -fmmgpus %d cannot be done: ", numAsked) + reason)));
    }
    // Times differ from run to run; another simulation and another task may need the other GPUs
    const bool isOne = isReproducible || isMultiSim || isTaskGiven;
    devices.num      = numAsked == 0 && isOne ? 1 : numAsked;
    return devices;
}

FmmDevices fmmDevicesOfRanks(ArrayRef<const int> devicesOfRanks, const bool isReproducible)
{
    FmmDevices devices;
    const bool areShared = std::getenv("GMX_FMM_SHARE_GPUS") != nullptr;
    for (const int device : devicesOfRanks)
    {
        const auto& known = devices.available;
        if (areShared || std::find(known.begin(), known.end(), device) == known.end())
        {
            devices.available.push_back(device);
        }
    }
    const auto     numDevices = static_cast<int>(devices.available.size());
    constexpr auto c_most     = static_cast<int>(fmmlibrary::num_devices.highest);
    devices.num               = areShared ? std::min(numDevices, c_most) : (isReproducible ? 1 : 0);
    return devices;
}

} // namespace gmx
