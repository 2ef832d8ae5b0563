/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares forces of walls by several threads
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMWALLS_H
#define GMX_FMM_FMMWALLS_H

#include "gromacs/utility/arrayref.h"
#include "gromacs/utility/real.h"

#include "fmmversion.h"

struct t_forcerec;
struct t_inputrec;
struct t_nrnb;

namespace gmx
{

class ForceWithVirial;

/*! \brief Calls do_walls(), with coulombtype = FMM for a part of the atoms on each thread
 *
 * With near and far field on a GPU, and the update there too, the walls are most of what the host
 * has to do, and the device waits for it. Forces do not depend on the number of threads, energies
 * and virial do by rounding.
 *
 * Parameters and returned value are those of do_walls().
 */
real fmmWalls(const t_inputrec&              ir,
              const t_forcerec&              fr,
              const matrix                   box,
              ArrayRef<const int>            typeA,
              ArrayRef<const int>            typeB,
              ArrayRef<const unsigned short> cENER,
              int                            homenr,
              int                            numPerturbedAtoms,
              ArrayRef<const RVec>           x,
              ForceWithVirial*               forceWithVirial,
              real                           lambda,
              ArrayRef<real>                 Vlj,
              t_nrnb*                        nrnb);

} // namespace gmx

#endif
