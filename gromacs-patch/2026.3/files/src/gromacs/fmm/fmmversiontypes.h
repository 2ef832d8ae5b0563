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

#include "gromacs/utility/arrayref.h"
#include "gromacs/utility/basedefinitions.h"
#include "gromacs/utility/gmxmpi.h"
#include "gromacs/utility/real.h"
#include "gromacs/utility/vec.h"
#include "gromacs/utility/vectypes.h"

enum class PbcType : int;
struct t_inputrec;
class WarningHandler;

namespace gmx
{

//! Elements of t_forcerec::atomInfo
using AtomInfo = int32_t;
//! Collects what grompp has to say
using FmmWarningHandler = ::WarningHandler;

/*! \brief Returns the density around atoms, by which the pair list is buffered
 *
 * Without periodicity there may be no box, and a film has no height: then it is that of the
 * molecules, see openSystemVolume().
 */
real effectiveAtomDensity(const t_inputrec&    inputrec,
                          ArrayRef<const RVec> x,
                          const matrix         box,
                          real                 cutoff,
                          MPI_Comm             communicator);

} // namespace gmx

#endif
