/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares how domains follow the pair list of times of steps
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMDOMAINS_H
#define GMX_FMM_FMMDOMAINS_H

#include "gromacs/utility/arrayref.h"
#include "gromacs/utility/real.h"

#include "fmmversion.h"

struct gmx_domdec_t;
struct gmx_mtop_t;
struct t_commrec;
struct t_inputrec;

namespace gmx
{

/*! \libinternal \brief
 * The domains of several ranks, while nstlist changes
 *
 * A longer list needs atoms from farther away, and atoms that move for longer need larger domains.
 * Domains stay as they are while lists are timed: dynamic load balancing begins afterwards, unless
 * it is on from the start.
 *
 * \inlibraryapi
 */
class FmmDomains
{
public:
    /*! \brief Keeps how domains were set up
     *
     * \param[in] cr          The ranks, which have domains and last as long
     * \param[in] mtop        The system, likewise
     * \param[in] nstlist     That of the domains
     * \param[in] dlbScaling  By how much it may make a domain smaller, mdrun -dds
     */
    FmmDomains(t_commrec* cr, const gmx_mtop_t& mtop, int nstlist, real dlbScaling);

    //! Holds back dynamic load balancing
    void begin();
    /*! \brief Makes domains such as nstlist and rlist need, before a pair search
     *
     * All ranks have to call it, and get the same answer. A list for fewer steps fits if one for
     * more did.
     *
     * \param[in] inputrec  The input record with the new values
     * \param[in] box       The box
     * \param[in] x         Coordinates, those at home first
     * \returns whether domains are large enough; otherwise nothing has changed
     */
    bool makeRoom(const t_inputrec& inputrec, const matrix box, ArrayRef<const RVec> x);
    //! Returns how far from a domain its neighbours' atoms are sent
    real cutoff() const;
    //! Lets dynamic load balancing begin where it is worth it
    void end();

private:
    //! Returns the smallest size that a domain may have
    real smallestSize(const t_inputrec& inputrec) const;
    //! Returns whether all domains are at least that large
    bool areLargeEnough(real size, const t_inputrec& inputrec, const matrix box, ArrayRef<const RVec> x) const;

    t_commrec*        cr_;
    gmx_domdec_t*     dd_;
    const gmx_mtop_t& mtop_;
    int               nstlist_;
    const real        dlbScaling_;
    //! As domains were set up
    const real firstCutoff_;
    const real firstSize_;
    const RVec firstSizeOfAxes_;
};

} // namespace gmx

#endif
