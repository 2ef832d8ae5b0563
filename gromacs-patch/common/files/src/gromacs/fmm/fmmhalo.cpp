/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements which atoms domains do not send each other with coulombtype = FMM
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmhalo.h"

#include "gromacs/domdec/domdec_internal.h"
#include "gromacs/domdec/domdec_struct.h"
#include "gromacs/mdtypes/atominfo.h"
#include "gromacs/mdtypes/commrec.h"
#include "gromacs/topology/topology.h"

#include "fmmversion.h"

namespace gmx
{

void markAtomsOutOfHalo(const t_commrec& cr, const gmx_mtop_t& mtop, ArrayRef<AtomInfoWithinMoleculeBlock> atomInfo)
{
    if (numRanksWithDomains(cr) == 1)
    {
        return;
    }
    const DDSystemInfo& systemInfo = cr.dd->comm->systemInfo;
    for (Index block = 0; block < atomInfo.ssize(); block++)
    {
        const int  type     = mtop.molblock[block].type;
        const bool isSingle = mtop.moltype[type].atoms.nr == 1;
        const bool isWhole  = isSingle
                             || (systemInfo.useUpdateGroups
                                 && systemInfo.updateGroupingsPerMoleculeType[type].numBlocks() == 1);
        for (AtomInfo& info : atomInfo[block].atomInfo)
        {
            // With interactions between molecules all atoms are on the grid
            if (isWhole && (info & sc_atomInfo_NotOnPairSearchGrid) != 0)
            {
                info |= sc_atomInfo_NotInHalo;
            }
        }
    }
}

} // namespace gmx
