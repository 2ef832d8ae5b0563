/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares the checks that grompp does for coulombtype = FMM
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMPREPROCESS_H
#define GMX_FMM_FMMPREPROCESS_H

#include "gromacs/utility/arrayref.h"

#include "fmmversion.h"

struct gmx_mtop_t;
struct t_inputrec;

namespace gmx
{

class KeyValueTreeObjectBuilder;
class MDLogger;

/*! \brief Checks the input record and sets what a user need not care about with FMM
 *
 * Sets rcoulomb to rvdw and the Coulomb modifier to none, since no cut-off
 * acts on Coulomb interactions, while the pair search requires equal cut-offs.
 */
void checkFmmInputrec(t_inputrec* inputrec, FmmWarningHandler* wi);

//! Checks what needs the topology, the groups, the box or, without one, coordinates, and logs the parameters chosen
void checkFmmSystem(const gmx_mtop_t&    mtop,
                    const t_inputrec&    inputrec,
                    const matrix         box,
                    ArrayRef<const RVec> x,
                    const MDLogger&      logger,
                    FmmWarningHandler*   wi);

/*! \brief Settles how Lennard-Jones is split and stores it, or notes what a split would save
 *
 * \param[in]  mtop      The system
 * \param[in]  inputrec  The options
 * \param[in]  box       The box
 * \param[in]  x         Coordinates at which errors are measured
 * \param[in]  wi        Gets the note
 * \param[out] builder   Internal parameters of modules, which the .tpr file stores
 */
void settleFmmLJSplit(const gmx_mtop_t&          mtop,
                      const t_inputrec&          inputrec,
                      const matrix               box,
                      ArrayRef<const RVec>       x,
                      FmmWarningHandler*         wi,
                      KeyValueTreeObjectBuilder* builder);

} // namespace gmx

#endif
