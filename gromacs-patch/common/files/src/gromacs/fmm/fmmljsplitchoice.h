/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares how Lennard-Jones is split into two lists
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

/*! \brief Errors that the split may have, for a relative error \p accuracy of Coulomb forces
 *
 * A quarter of that for forces, and as much of the pressure as pair lists may miss.
 */
double           allowedLJSplitForceError(double accuracy);
constexpr double c_allowedLJSplitPressureError = 0.5; // bar
//! Atoms at which errors are measured at first
constexpr int c_ljSplitAtoms = 4000;

//! A choice, its errors, and pairs of clusters with it over those of one list
struct FmmLJSplitChoice
{
    FmmLJSplitSettings settings;
    FmmLJSplitErrors   errors;
    double             cost = 1;
};

/*! \brief Chooses light atoms and the shortest radius whose errors are half of those allowed at most
 *
 * Whether they are is known by three standard errors: it looks at as many atoms as that needs.
 * Returns none where that would save less than a fifth of the pairs, or for another reason in \p whyNot.
 * With a radius that was given errors may be as large as allowed, and light atoms have
 * Lennard-Jones interactions with one another, too.
 *
 * \param[in]  inputrec  Cut-off and modifier
 * \param[in]  mtop      The system
 * \param[in]  box       The box
 * \param[in]  x         Coordinates
 * \param[in]  accuracy  Relative error of Coulomb forces that was asked for
 * \param[in]  radius    Radius of the short list that was asked for, 0: automatic
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
 * Throws InconsistentInputError where an error is beyond what is allowed.
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

} // namespace gmx

#endif
