/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares the decision whether the FMM runs on a GPU
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMTASKASSIGNMENT_H
#define GMX_FMM_FMMTASKASSIGNMENT_H

#include "gromacs/utility/arrayref.h"

#include "gmxfmmoptions.h"

struct gmx_mtop_t;
struct t_inputrec;

namespace gmx
{

class MDLogger;
enum class TaskTarget : int;

/*! \brief Takes what the user asked of PME for the FMM, which is in its place with coulombtype = FMM
 *
 * Job scripts have mdrun -pme gpu, whatever the .tpr file has. Where its FFTs are computed does not
 * concern the FMM. Of both the log tells.
 *
 * \param[in]     inputrec      The input record
 * \param[in,out] pmeTarget     The user's choice with mdrun -pme, then automatic
 * \param[in,out] pmeFftTarget  The user's choice with mdrun -pmefft, then automatic
 * \param[in,out] fmmTarget     The user's choice with mdrun -fmm, then that of both
 * \param[in]     mdlog         Gets the note
 *
 * \throws InconsistentInputError  when -pme and -fmm are different devices
 */
void takePmeTargetsForFmm(const t_inputrec& inputrec,
                          TaskTarget*       pmeTarget,
                          TaskTarget*       pmeFftTarget,
                          TaskTarget*       fmmTarget,
                          const MDLogger&   mdlog);

/*! \brief Decides whether the FMM runs on the GPU
 *
 * Near and far field run beside the nonbonded interactions on the same device,
 * so there is no GPU task of its own to assign.
 *
 * \param[in] useGpuForNonbonded  Whether nonbonded interactions run on a GPU
 * \param[in] fmmTarget           The user's choice with mdrun -fmm
 * \param[in] availableDevices    Numbers of the devices that may be used
 * \param[in] isParallel          Whether there are several ranks
 * \param[in] inputrec            The input record
 * \param[in] mtop                The system
 * \param[in] mdlog               Gets a line when a GPU could have been used but for the reason it gives
 *
 * \throws InconsistentInputError  when the user asked for a GPU and it cannot be used
 */
bool decideWhetherToUseGpuForFmm(bool                useGpuForNonbonded,
                                 TaskTarget          fmmTarget,
                                 ArrayRef<const int> availableDevices,
                                 bool                isParallel,
                                 const t_inputrec&   inputrec,
                                 const gmx_mtop_t&   mtop,
                                 const MDLogger&     mdlog);

/*! \brief Decides on which GPUs the FMM may run
 *
 * GMX_FMM_SHARE_GPUS lets a GPU stand for several, so that tests need only one.
 *
 * \param[in] useGpuForFmm      Whether the FMM runs on a GPU
 * \param[in] numAsked          The user's number with mdrun -fmmgpus, 0: automatic
 * \param[in] availableDevices  Numbers of the devices that may be used
 * \param[in] isReproducible    Whether nothing may depend on times
 * \param[in] isMultiSim        Whether other simulations run beside this one
 * \param[in] isTaskGiven       Whether the user said which GPU has which task (-gputasks)
 *
 * \throws InconsistentInputError  when the number is not to be had
 */
FmmDevices decideDevicesForFmm(bool                useGpuForFmm,
                               int                 numAsked,
                               ArrayRef<const int> availableDevices,
                               bool                isReproducible,
                               bool                isMultiSim,
                               bool                isTaskGiven);

/*! \brief Returns on which GPUs the FMM may run where several ranks have these, that of the main rank first
 *
 * With the environment variable GMX_FMM_SHARE_GPUS, for tests, a GPU of several ranks stands for several.
 */
FmmDevices fmmDevicesOfRanks(ArrayRef<const int> devicesOfRanks, bool isReproducible);

} // namespace gmx

#endif
