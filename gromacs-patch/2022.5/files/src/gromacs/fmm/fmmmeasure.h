/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Declares the measurement of FMM force errors on the simulated system
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMMEASURE_H
#define GMX_FMM_FMMMEASURE_H

#include <gmxfmm.h>

#include <string>

#include "gromacs/math/vectypes.h"
#include "gromacs/utility/arrayref.h"

struct gmx_mtop_t;

namespace gmx
{

//! What parameters were measured to reach
struct FmmMeasuredError
{
    //! Whether there is a measurement
    bool isValid = false;
    //! Relative RMS force error
    double error = 0;
    //! What was tried, for the log
    std::string table;
    //! What the user has to know, empty if nothing
    std::string warning;
};

/*! \brief
 * Measures force errors at these coordinates and chooses by them what \p options leave automatic
 *
 * What the library chooses by itself is on the safe side in liquids; in
 * crystals it can be off by orders of magnitude. When that is so and
 * parameters are left automatic, the accuracy in \p options is replaced by the
 * one to ask of the library so that the one asked for is reached. Coordinates
 * that errors cannot be measured at leave \p options as they are.
 *
 * \param[in]     mtop     Charges and exclusions
 * \param[in]     x        Coordinates of all atoms
 * \param[in]     box      9 numbers, nullptr with open boundary
 * \param[in,out] options  What was asked for
 */
FmmMeasuredError measureFmmError(const gmx_mtop_t&    mtop,
                                 ArrayRef<const RVec> x,
                                 const double*        box,
                                 gmxfmm_options*      options);

} // namespace gmx

#endif
