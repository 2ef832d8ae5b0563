/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Declares the measurement of FMM force errors on the simulated system
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMMEASURE_H
#define GMX_FMM_FMMMEASURE_H

#include <gmxfmm_measure.h>

#include <string>

#include "gromacs/utility/arrayref.h"

#include "fmmversion.h"

struct gmx_mtop_t;

namespace gmx
{

//! How a measurement ended
enum class FmmMeasurementStatus
{
    //! There was none
    None,
    //! With a result
    Measured,
    //! Errors cannot be measured at these coordinates
    NotMeasured,
    //! Nothing can be computed at these coordinates: charges are at one place, say
    NotComputable,
    //! No parameters reach what was asked for
    OutOfReach
};

//! What parameters were measured to reach
struct FmmMeasuredError
{
    FmmMeasurementStatus status = FmmMeasurementStatus::None;
    //! Relative RMS force error when atoms are assigned to cells, and when they have moved since
    double error = 0, errorMoved = 0;
    //! What is exceeded in less than one of a thousand places that all atoms together may have in their cells
    double errorAnywhere = 0;
    //! Largest error of an element of the virial, kJ/mol
    double errorVirial = 0;
    //! What was tried, for the log
    std::string table;
    //! Why there is no result
    std::string message;
};

/*! \brief
 * Measures force errors at these coordinates
 *
 * A model of errors in liquids, by which the library chooses, is too careful
 * there, and in crystals off by orders of magnitude. With \p choose, the
 * accuracy in \p options is replaced by the one to ask of the library so that
 * the one asked for is just reached, with a pressure that is as good.
 *
 * \param[in]     mtop     Charges and exclusions
 * \param[in]     x        Coordinates of all atoms
 * \param[in]     box      9 numbers, nullptr with open boundary
 * \param[in]     lambda   Lambda of perturbed charges
 * \param[in]     choose   Whether to choose what is left automatic, or to measure what is given
 * \param[in,out] options  What was asked for
 * \param[in]     inUse    A plan to measure as it is, in place of one for the options; or nullptr
 */
FmmMeasuredError measureFmmError(const gmx_mtop_t&    mtop,
                                 ArrayRef<const RVec> x,
                                 const double*        box,
                                 double               lambda,
                                 bool                 choose,
                                 gmxfmm_options*      options,
                                 gmxfmm_plan*         inUse = nullptr);

//! Returns the error of an element of the virial that goes with an accuracy, infinity where there is no pressure
double fmmAllowedVirialError(const double* box, int numAtoms, double accuracy);

} // namespace gmx

#endif
