/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares how the split of Lennard-Jones is chosen
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMLJSPLITCHOICE_H
#define GMX_FMM_FMMLJSPLITCHOICE_H

#include <optional>
#include <string>

#include "gromacs/utility/arrayref.h"

#include "fmmljsplit.h"
#include "fmmljspliterrors.h"

namespace gmx
{

class MDLogger;

//! Returns the error of forces that the split may have, for a relative error \p accuracy of Coulomb forces
double allowedLJSplitForceError(double accuracy);
//! What the pressure may be off, before it is corrected, bar
constexpr double c_allowedLJSplitPressure = 5;
//! How well grompp knows that, by three standard errors, bar
constexpr double c_ljSplitPressureUncertainty = 0.25;
//! What it may be off with the correction, as much as pair lists may miss, bar
constexpr double c_allowedLJSplitPressureError = 0.5;
//! Atoms at which errors are measured at first
constexpr int c_ljSplitAtoms = 4000;

//! A choice, its errors, and what it computes over what one list does
struct FmmLJSplitChoice
{
    FmmLJSplitSettings settings;
    FmmLJSplitErrors   errors;
    double             cost = 1;
};

/*! \brief Returns the cost of pair interactions with a split, over that of one list
 *
 * \param[in] split   The split
 * \param[in] radius  Cut-off of the pair list of atoms
 * \param[in] rvdw    Cut-off that was asked for
 * \param[in] volume  Volume of the system
 */
double costOfLJSplit(const FmmLJSplit& split, double radius, double rvdw, double volume);

/*! \brief Chooses the shortest pair list of atoms with which forces differ by three quarters of what is allowed at most
 *
 * Whether they do is known by three standard errors: it looks at as many atoms as that needs, and
 * as the pressure needs. Returns none where that would save less than a fifth of the pairs, or for
 * another reason in \p whyNot. With a radius that was given forces may differ by as much as is allowed.
 *
 * \param[in]  inputrec  Cut-off and modifier
 * \param[in]  mtop      The system
 * \param[in]  box       The box
 * \param[in]  x         Coordinates
 * \param[in]  accuracy  Relative error of Coulomb forces that was asked for
 * \param[in]  radius    Radius that was asked for, 0: automatic
 * \param[out] whyNot    Why there is no split
 */
std::optional<FmmLJSplitChoice> chooseLJSplit(const t_inputrec&    inputrec,
                                              const gmx_mtop_t&    mtop,
                                              const matrix         box,
                                              ArrayRef<const RVec> x,
                                              double               accuracy,
                                              double               radius,
                                              std::string*         whyNot);

/*! \brief Measures errors of the split and writes it to the log
 *
 * Throws InconsistentInputError where forces or the pressure with its correction are beyond what is allowed.
 *
 * \param[in] split     The split
 * \param[in] inputrec  Options
 * \param[in] mtop      The system
 * \param[in] box       The box
 * \param[in] x         Coordinates
 * \param[in] accuracy  Relative error of Coulomb forces that was asked for
 * \param[in] mdlog     The log
 */
void checkLJSplit(const FmmLJSplit&    split,
                  const t_inputrec&    inputrec,
                  const gmx_mtop_t&    mtop,
                  const matrix         box,
                  ArrayRef<const RVec> x,
                  double               accuracy,
                  const MDLogger&      mdlog);

//! Writes to the log how often pairs are listed on a GPU and how far, where pairs of atoms are left to it; \p reach is that of sites
void logFmmSiteLists(const FmmSiteLists& lists, double reach, const MDLogger& mdlog);

} // namespace gmx

#endif
