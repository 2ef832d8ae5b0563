/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares what the pair search leaves out when the FMM computes all Coulomb interactions
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMPAIRLIST_H
#define GMX_FMM_FMMPAIRLIST_H

#include <cstdint>

#include <string>
#include <vector>

#include "gromacs/utility/arrayref.h"
#include "gromacs/utility/basedefinitions.h"
#include "gromacs/utility/real.h"

#include "fmmversion.h"

enum class CoulombInteractionType : int;
struct gmx_moltype_t;
struct gmx_mtop_t;

namespace gmx
{

struct AtomInfoWithinMoleculeBlock;
struct GridCorners;

/*! \brief Returns for each atom of a molecule whether it has no place on the pair-search grid
 *
 * With coulombtype = FMM the pair kernels compute Van der Waals interactions
 * only, so atoms without these have no pairs: in most water models two atoms
 * of three. Atoms with interactions that a GPU can do as bonded ones stay on
 * the grid, as it finds their coordinates and forces by their place there.
 *
 * With the environment variable GMX_FMM_FULL_PAIRLIST set, or with another
 * \p coulombType, all atoms are on the grid.
 *
 * \param[in] coulombType  The type of Coulomb treatment
 * \param[in] mtop         The topology that \p moltype belongs to
 * \param[in] moltype      The molecule
 * \param[in] atomUsesVdw  For each atom type whether it has Van der Waals interactions with any type
 */
std::vector<bool> fmmAtomsOffPairSearchGrid(CoulombInteractionType   coulombType,
                                            const gmx_mtop_t&        mtop,
                                            const gmx_moltype_t&     moltype,
                                            const std::vector<bool>& atomUsesVdw);

//! Returns a line for the log that says how many atoms are on the pair-search grid
std::string fmmPairListDescription(ArrayRef<const AtomInfoWithinMoleculeBlock> atomInfo);

//! Returns how many atoms are on the pair-search grid
Index fmmNumAtomsOnPairSearchGrid(ArrayRef<const AtomInfo> atomInfo);

//! Returns the share of these atoms that are on the pair-search grid, 1 without atoms
real fmmShareOnPairSearchGrid(ArrayRef<const AtomInfo> atomInfo);

/*! \brief Returns the atoms at home that are not on the pair-search grid, in the order of the topology
 *
 * So a continued run has them in the same order, and adds them up as a run that was not interrupted.
 *
 * \param[in] atomInfo       Of all atoms that were at home
 * \param[in] moved          Less than 0 for those that have moved to another rank; empty: none has
 * \param[in] globalIndices  Numbers of the atoms in the topology
 */
std::vector<int> fmmHomeAtomsOffPairSearchGrid(ArrayRef<const AtomInfo> atomInfo,
                                               ArrayRef<const int>      moved,
                                               ArrayRef<const int>      globalIndices);

/*! \brief Returns the number density that columns of the pair-search grid should be made for
 *
 * This is the density of the atoms on the grid where they are: with much empty
 * space in the box, as around droplets, that is not the one in \p region, by
 * which clusters of pairs would become long and thin.
 *
 * \param[in] region          What the grid covers
 * \param[in] numAtomsOnGrid  How many atoms are on it
 * \param[in] occupiedVolume  Volume that the atoms fill, see openSystemVolume()
 */
real fmmPairSearchDensity(const GridCorners& region, Index numAtomsOnGrid, real occupiedVolume);

} // namespace gmx

#endif
