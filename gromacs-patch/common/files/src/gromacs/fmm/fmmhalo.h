/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares which atoms domains do not send each other with coulombtype = FMM
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMHALO_H
#define GMX_FMM_FMMHALO_H

#include "gromacs/utility/arrayref.h"

struct gmx_mtop_t;
struct t_commrec;

namespace gmx
{

struct AtomInfoWithinMoleculeBlock;

/*! \brief Marks atoms that no other domain needs
 *
 * Those have no place on the pair-search grid, and are in molecules that domains never divide: none
 * of their bonded interactions is with an atom of another domain. In water that moves as a whole
 * that is all but the oxygen. The FMM sends its coordinates itself.
 *
 * \param[in]     cr        The ranks, with domains or without
 * \param[in]     mtop      The topology
 * \param[in,out] atomInfo  Of its blocks of molecules
 */
void markAtomsOutOfHalo(const t_commrec&                      cr,
                        const gmx_mtop_t&                     mtop,
                        ArrayRef<AtomInfoWithinMoleculeBlock> atomInfo);

} // namespace gmx

#endif
