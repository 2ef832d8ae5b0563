/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Types that the FMM needs and GROMACS versions name in different ways
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMVERSIONTYPES_H
#define GMX_FMM_FMMVERSIONTYPES_H

#include <cstdint>

#include "gromacs/math/vec.h"
#include "gromacs/math/vectypes.h"
#include "gromacs/utility/basedefinitions.h"

struct warninp;

namespace gmx
{

//! Signed integers that count atoms
using Index = index;
//! Elements of t_forcerec::atomInfo
using AtomInfo = int64_t;
//! Collects what grompp has to say
using FmmWarningHandler = ::warninp;

} // namespace gmx

#endif
