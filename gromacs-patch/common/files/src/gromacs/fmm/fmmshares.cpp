/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements the choice of the first GPU's share of the near field by times of whole steps
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmshares.h"

#include <algorithm>

namespace gmx
{

namespace
{

//! Below this change of the share a step's time changes less than it varies
constexpr double c_leastStep = 0.02;
//! The other GPUs keep some of the near field
constexpr double c_mostShare = 0.95;
//! Time that is gained by less is noise
constexpr double c_leastGain = 0.998;
//! However times vary, it ends
constexpr int c_mostTimes = 16;

} // namespace

FmmShareTuner::FmmShareTuner(const double share) :
    share_(std::min(share, c_mostShare)), best_(share_)
{
}

void FmmShareTuner::add(const double time)
{
    if (isDone_)
    {
        return;
    }
    const bool isFirst  = bestTime_ < 0;
    const bool isBetter = isFirst || time < c_leastGain * bestTime_;
    bool       isSlower = !isBetter;
    if (isBetter)
    {
        best_     = share_;
        bestTime_ = time;
        // Where it comes from is slower
        hasReversed_ = !isFirst;
    }
    do
    {
        if (isSlower && hasReversed_)
        {
            step_ *= 0.5;
            hasReversed_ = false;
        }
        else if (isSlower)
        {
            direction_   = -direction_;
            hasReversed_ = true;
        }
        share_   = std::clamp(best_ + direction_ * step_, 0.0, c_mostShare);
        isSlower = true; // If this is the best one again, at the end of the range
    } while (share_ == best_ && step_ >= c_leastStep);
    isDone_ = step_ < c_leastStep || ++numTimes_ >= c_mostTimes;
    share_  = isDone_ ? best_ : share_;
}

} // namespace gmx
