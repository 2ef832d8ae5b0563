/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares what is different with pbc = xy: slabs, which are periodic in the xy plane and open along z
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMSLAB_H
#define GMX_FMM_FMMSLAB_H

#include <functional>
#include <string>

#include "gmxfmmoptions.h"

enum class PbcType : int;
struct t_inputrec;

namespace gmx
{

/*! \brief Returns whether nothing bounds the system along z, as do two walls
 *
 * With one wall or none a slab is a film, with vacuum on one side or both. GROMACS gives it a box
 * whose height is zero, and a pressure of zero.
 */
bool isFilm(PbcType pbcType, int numWalls);

//! Returns the volume in nm^3 of so many atoms of water, of which the pressure of a film is said to be
double volumeOfFilm(int numAtoms);

//! Returns along which box vectors a system has images, unless it has none
FmmPeriodicity fmmPeriodicity(const t_inputrec& inputrec);

//! Returns what GROMACS calls the periodicity
PbcType fmmPbcType(const FmmParameters& parameters);

/*! \brief Checks what goes with pbc = xy, and that what is for slabs goes with nothing else
 *
 * \param[in] inputrec    Input record
 * \param[in] parameters  Its parameters of the FMM
 * \param[in] refuse      Gives an error with the text if the condition holds
 * \param[in] wi          Gets notes
 */
void checkFmmSlab(const t_inputrec&                                    inputrec,
                  const FmmParameters&                                 parameters,
                  const std::function<void(bool, const std::string&)>& refuse,
                  FmmWarningHandler*                                   wi);

} // namespace gmx

#endif
