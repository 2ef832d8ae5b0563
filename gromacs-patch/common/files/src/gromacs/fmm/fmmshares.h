/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares the choice of the first GPU's share of the near field by times of whole steps
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMSHARES_H
#define GMX_FMM_FMMSHARES_H

namespace gmx
{

/*! \libinternal \brief
 * Finds the share of the near field with which steps take least
 *
 * The library balances the GPUs that share a step by times of its own
 * kernels. In mdrun the first GPU has Lennard-Jones, bonded interactions and
 * the update, too, which differ from system to system. So shares near the
 * library's are tried, each between two pair searches: larger ones as long as
 * they are faster, else smaller ones, then both ways by half as much. Forces
 * do not depend on shares, not in a bit.
 */
class FmmShareTuner
{
public:
    //! Begins with the library's share
    explicit FmmShareTuner(double share);

    //! Returns the share to use next, the best one when nothing more is tried
    double share() const { return share_; }
    //! Returns whether nothing more is tried
    bool isDone() const { return isDone_; }
    //! Takes the time of a step with share(), in any unit, and chooses the next one
    void add(double time);

private:
    double share_, best_;
    //! Time with the best; -1: none is known
    double bestTime_ = -1;
    //! Change of the share that is tried, and its sign
    double step_      = 0.1;
    int    direction_ = 1;
    //! Whether shares on the other side of the best are slower
    bool hasReversed_ = false;
    bool isDone_      = false;
    int  numTimes_    = 0;
};

} // namespace gmx

#endif
