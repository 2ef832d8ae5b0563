/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares what grompp says of mdp options that other implementations of the FMM have
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMOTHERNAMES_H
#define GMX_FMM_FMMOTHERNAMES_H

#include <string>

#include "gromacs/utility/arrayref.h"

#include "fmmversion.h"

struct t_inpfile;

namespace gmx
{

/*! \brief Returns what to use in the place of an mdp option of another GROMACS with an FMM, empty for other names
 *
 * These are options of the fork of the Max Planck Institute in Goettingen, and of its first versions.
 */
std::string fmmOptionInPlaceOf(const std::string& name);

//! Adds a note for each of these among the options of a file, which grompp warns of as unknown
void noteOtherFmmNames(ArrayRef<const t_inpfile> options, FmmWarningHandler* wi);

} // namespace gmx

#endif
