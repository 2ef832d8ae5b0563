/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements how domains follow the pair list of times of steps
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmdomains.h"

#include <algorithm>

#include "gromacs/domdec/box.h"
#include "gromacs/domdec/dlb.h"
#include "gromacs/domdec/domdec_internal.h"
#include "gromacs/domdec/domdec_struct.h"
#include "gromacs/domdec/utility.h"
#include "gromacs/mdlib/calc_verletbuf.h"
#include "gromacs/mdtypes/commrec.h"
#include "gromacs/mdtypes/inputrec.h"

namespace gmx
{

FmmDomains::FmmDomains(t_commrec* cr, const gmx_mtop_t& mtop, const int nstlist, const real dlbScaling) :
    cr_(cr),
    dd_(cr->dd),
    mtop_(mtop),
    nstlist_(nstlist),
    dlbScaling_(dlbScaling),
    firstCutoff_(dd_->comm->systemInfo.cutoff),
    firstSize_(dd_->comm->cellsize_limit),
    firstSizeOfAxes_(dd_->comm->cellsize_min_dlb)
{
}

void FmmDomains::begin()
{
    dd_dlb_lock(dd_);
}

void FmmDomains::end()
{
    dd_dlb_unlock(dd_);
}

real FmmDomains::cutoff() const
{
    return dd_->comm->systemInfo.cutoff;
}

real FmmDomains::smallestSize(const t_inputrec& inputrec) const
{
    constexpr real c_chanceThatAtomMovesBeyondDomain = 1e-12; // as GROMACS sets up domains
    return minCellSizeForAtomDisplacement(mtop_,
                                          inputrec,
                                          dd_->comm->systemInfo.updateGroupingsPerMoleculeType,
                                          c_chanceThatAtomMovesBeyondDomain,
                                          ChanceTarget::System);
}

bool FmmDomains::areLargeEnough(const real           size,
                                const t_inputrec&    inputrec,
                                const matrix         box,
                                ArrayRef<const RVec> x) const
{
    constexpr real           c_marginOfPressure = 1.05; // as GROMACS sets up domains
    const gmx_domdec_comm_t& comm               = *dd_->comm;
    const DlbState           state              = comm.ddSettings.initialDlbState;
    const bool               isFixed = state == DlbState::offUser || state == DlbState::offForever;
    const real               wanted  = !isFixed                        ? size / dlbScaling_
                                       : hasPressureCoupling(inputrec) ? c_marginOfPressure * size
                                                                       : size;
    gmx_ddbox_t              ddbox;
    set_ddbox(*dd_, false, box, true, x, &ddbox);
    real isSmall = 0;
    for (int d = 0; d < dd_->ndim; d++)
    {
        const int  dim     = dd_->dim[d];
        const real average = ddbox.box_size[dim] / dd_->numCells[dim];
        const real own     = comm.cell_x1[dim] - comm.cell_x0[dim];
        // A continued run divides the box evenly; here load balancing may have made domains smaller
        if (average * ddbox.skew_fac[dim] < wanted || own * ddbox.skew_fac[dim] < size)
        {
            isSmall = 1;
        }
    }
    sumOverRanks(*cr_, arrayRefFromArray(&isSmall, 1));
    return isSmall == 0;
}

bool FmmDomains::makeRoom(const t_inputrec& inputrec, const matrix box, ArrayRef<const RVec> x)
{
    gmx_domdec_comm_t& comm   = *dd_->comm;
    const real         cutoff = std::max(
            firstCutoff_, atomToAtomIntoDomainToDomainCutoff(comm.systemInfo, inputrec.rlist));
    const bool isBalanced = dd_dlb_is_on(dd_);
    const bool isLonger   = inputrec.nstlist > nstlist_;
    const real size       = smallestSize(inputrec);
    if (isLonger && !areLargeEnough(size, inputrec, box, x))
    {
        return false;
    }
    // The check of the cut-off reads this one
    const real before   = comm.cellsize_limit;
    comm.cellsize_limit = std::max({ size, firstSize_, isBalanced ? before : real(0) });
    // For a shorter list it may stay as long as it is
    if (!changeDomainCutoff(cr_, box, x, cutoff) && isLonger)
    {
        comm.cellsize_limit = before;
        return false;
    }
    for (int d = 0; d < dd_->ndim; d++)
    {
        // Load balancing that is on checks with it how far atoms have moved with the list before
        const int dim              = dd_->dim[d];
        comm.cellsize_min_dlb[dim] = std::max(
                { size, firstSizeOfAxes_[dim], isBalanced ? comm.cellsize_min_dlb[dim] : real(0) });
        if (isBalanced)
        {
            comm.cellsize_min[dim] = comm.cellsize_min_dlb[dim];
        }
    }
    nstlist_ = inputrec.nstlist;
    return true;
}

} // namespace gmx
