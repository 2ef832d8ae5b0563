/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares what is said of atoms that stand at one place
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMCOINCIDENCE_H
#define GMX_FMM_FMMCOINCIDENCE_H

#include <string>

#include "gromacs/utility/arrayref.h"

#include "fmmversion.h"

struct gmx_mtop_t;

namespace gmx
{

/*! \brief Returns the message for two charges at one place, with the names of both atoms
 *
 * \param[in] message  What the library says; it names one of them as "particle" with a number from 0
 * \param[in] mtop     The system
 * \param[in] x        Coordinates of all atoms
 * \param[in] box      Row vectors of the box, those without images may be zero; nullptr without periodicity
 *
 * \returns \p message where the other one is not found
 */
std::string fmmAtomsAtOnePlace(const std::string&   message,
                               const gmx_mtop_t&    mtop,
                               ArrayRef<const RVec> x,
                               const double*        box);

} // namespace gmx

#endif
