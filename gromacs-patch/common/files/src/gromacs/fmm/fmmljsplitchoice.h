/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares how Lennard-Jones is split into two lists, and the errors of that
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMLJSPLITCHOICE_H
#define GMX_FMM_FMMLJSPLITCHOICE_H

#include <array>
#include <optional>
#include <string>

#include "gromacs/utility/arrayref.h"

#include "fmmljsplit.h"

namespace gmx
{

class MDLogger;

//! What Lennard-Jones in two lists changes, against one list of all pairs
struct FmmLJSplitErrors
{
    //! RMS of the difference of forces, over the RMS of Coulomb forces
    double force = 0;
    //! RMS of Coulomb forces, kJ/mol/nm
    double coulombForce = 0;
    //! Difference of the pressure along x, y and z, bar, and its standard deviation from the sample
    std::array<double, 3> pressure          = {};
    std::array<double, 3> pressureDeviation = {};
    //! Difference of the Lennard-Jones energy, kJ/mol
    double energy = 0;

    //! Returns the largest difference of the pressure, with as many standard deviations taken off
    double largestPressure(double numDeviations) const;
    //! Returns the errors in words
    std::string description() const;
};

/*! \brief Errors that the split may have, for a relative error \p accuracy of Coulomb forces
 *
 * A quarter of that for forces, and as much of the pressure as pair lists may miss.
 */
double           allowedLJSplitForceError(double accuracy);
constexpr double c_allowedLJSplitPressureError = 0.5; // bar
//! Atoms at which errors are measured, and those that are enough for a note of what a split would save
constexpr int c_ljSplitAtoms = 4000, c_ljSplitAtomsForNote = 500;

/*! \brief Measures errors of the split at some of the atoms, in double precision
 *
 * \param[in] split     The split
 * \param[in] inputrec  Cut-off and modifier of the long list
 * \param[in] mtop      The system
 * \param[in] box       The box
 * \param[in] x         Coordinates
 * \param[in] mostAtoms About how many atoms
 */
FmmLJSplitErrors measureLJSplit(const FmmLJSplit&    split,
                                const t_inputrec&    inputrec,
                                const gmx_mtop_t&    mtop,
                                const matrix         box,
                                ArrayRef<const RVec> x,
                                int                  mostAtoms);

//! A choice, its errors, and pairs of clusters with it over those of one list
struct FmmLJSplitChoice
{
    FmmLJSplitSettings settings;
    FmmLJSplitErrors   errors;
    double             cost = 1;
};

/*! \brief Chooses light atoms and the shortest radius whose errors are half of those allowed at most
 *
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
 * \param[in]  mostAtoms About how many atoms to measure at
 * \param[out] whyNot    Why there is no split
 */
std::optional<FmmLJSplitChoice> chooseLJSplit(const t_inputrec&    inputrec,
                                              const gmx_mtop_t&    mtop,
                                              const matrix         box,
                                              ArrayRef<const RVec> x,
                                              double               accuracy,
                                              double               radius,
                                              int                  mostAtoms,
                                              std::string*         whyNot);

/*! \brief Measures errors of the split and writes it to the log
 *
 * Throws InconsistentInputError where an error is beyond what is allowed by more than chance may be.
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
