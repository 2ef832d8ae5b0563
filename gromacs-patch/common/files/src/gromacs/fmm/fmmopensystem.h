/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares what takes the place of the box where there is no periodicity: along all axes (pbc = no), or along z
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMOPENSYSTEM_H
#define GMX_FMM_FMMOPENSYSTEM_H

#include "gromacs/utility/arrayref.h"
#include "gromacs/utility/real.h"

#include "fmmversion.h"

enum class PbcType : int;

namespace gmx
{

//! Lowest and highest corner of a rectangular region along the axes
struct GridCorners
{
    RVec lower;
    RVec upper;
};

/*! \brief Returns the region that the pair search has to divide into cells
 *
 * With periodicity, or between two walls, this is the box. Along axes without, it is the
 * smallest region with all atoms, of at least c_openMinimumExtent, which keeps the
 * density finite for a flat molecule.
 *
 * \throws SimulationInstabilityError where an axis has no bounds when a coordinate is
 *         not finite, which would become the number of a cell outside the grid
 */
GridCorners gridCorners(PbcType pbcType, int numWalls, const matrix box, ArrayRef<const RVec> x);

/*! \brief Sets how far atoms of a domain extend along z, where nothing bounds them, at least c_openMinimumExtent
 *
 * \param[in]     x      Coordinates of the atoms
 * \param[in,out] lower  Lowest corner of the domain
 * \param[in,out] upper  Highest corner
 */
void setExtentAlongZ(ArrayRef<const RVec> x, RVec* lower, RVec* upper);

//! Least extent of the grid for the pair search, in nm: the diameter of an atom
constexpr real c_openMinimumExtent = 0.3;

/*! \brief Returns the volume that the atoms of an open system take at their own density
 *
 * The density around an atom is taken from the number of atoms in its cell of
 * a cubic grid, and is averaged over atoms. Where a box is much larger than
 * the molecules, this is the density that matters for missing pairs, which
 * are missing around atoms. Each atom counts itself, so the volume rather
 * errs on the low side, and a buffer estimated with it on the high side.
 */
real openSystemVolume(ArrayRef<const RVec> x);

//! Edge of the cells, in nm, in which openSystemVolume() counts atoms
constexpr real c_openDensityCellEdge = 0.5;

/*! \brief Gives \p densityBox the volume that number densities are to be computed with
 *
 * This is \p box where it has a volume. A film has its two periodic vectors, and the height
 * that makes it openSystemVolume(); without periodicity this is that of a cube.
 */
void setDensityBox(PbcType pbcType, int numWalls, const matrix box, ArrayRef<const RVec> x, matrix densityBox);

} // namespace gmx

#endif
