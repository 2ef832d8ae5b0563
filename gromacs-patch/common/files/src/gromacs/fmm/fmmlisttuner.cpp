/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements the choice of nstlist by times of steps
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmlisttuner.h"

#include <algorithm>
#include <array>
#include <string>

#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/mdtypes/multipletimestepping.h"
#include "gromacs/nbnxm/pairlist_tuning.h"
#include "gromacs/utility/logger.h"
#include "gromacs/utility/stringutil.h"

#include "fmmchoice.h"

namespace gmx
{

namespace
{

//! Values to try, those beyond the first, each as the next multiple of what all have to be multiples of
constexpr std::array<int, 9> c_values = { { 20, 40, 50, 80, 100, 150, 200, 300, 400 } };
//! In its first lists, and for so long, a run starts up, and times other things
constexpr int    c_listsOfStart   = 3;
constexpr double c_secondsOfStart = 0.5;
//! A round has so many lists, so much time, and so many steps unless it takes long
constexpr int    c_listsOfRound     = 2;
constexpr double c_secondsOfRound   = 0.1;
constexpr int    c_stepsOfRound     = 200;
constexpr double c_longRoundSeconds = 0.5;
constexpr int    c_numRounds        = 2;
//! One that seems slower may have been disturbed, and is timed more often
constexpr int c_roundsOfSlower = 4;
//! One round is enough if it takes so long
constexpr double c_oneRoundSeconds = 5;
//! A value is slower than the best by more than times vary
constexpr double c_slower = 1.02;
//! So many slower values in a row are enough: what slows down one may be something else
constexpr int c_timesSlower = 2;
//! A smaller value has shorter lists, in less memory, so it is taken where it is as fast
constexpr double c_asFast = 1.005;
//! However times vary, it ends: after so many steps, or so long a time in which several values were timed
constexpr int    c_mostSteps     = 40000;
constexpr double c_mostSeconds   = 60;
constexpr int    c_trialsForTime = 3;

} // namespace

FmmListTuner::FmmListTuner(const int nstlist, const int multipleOf) :
    nstlist_(nstlist), numToSkip_(c_listsOfStart)
{
    for (const int value : c_values)
    {
        const int next = (value + multipleOf - 1) / multipleOf * multipleOf;
        if (next > (later_.empty() ? nstlist : later_.back()))
        {
            later_.push_back(next);
        }
    }
    isDone_ = later_.empty();
}

void FmmListTuner::begin(const int nstlist)
{
    nstlist_   = nstlist;
    numToSkip_ = 1; // It is short, and what the change itself takes is in it
    numLists_  = 0;
    numSteps_  = 0;
    seconds_   = 0;
    numRounds_ = 0;
}

void FmmListTuner::end()
{
    isDone_ = true;
    later_.clear();
    if (!trials_.empty())
    {
        const auto least =
                std::min_element(trials_.begin(),
                                 trials_.end(),
                                 [](const Trial& a, const Trial& b) { return a.time < b.time; });
        const auto asFast = std::find_if(trials_.begin(),
                                         trials_.end(),
                                         [&](const Trial& trial)
                                         { return trial.time <= c_asFast * least->time; });
        nstlist_          = asFast->nstlist;
    }
}

void FmmListTuner::add(const int64_t numSteps, const double seconds)
{
    if (isDone_)
    {
        return;
    }
    stepsOfAll_ += numSteps;
    secondsOfAll_ += seconds;
    if (stepsOfAll_ >= c_mostSteps)
    {
        end();
        return;
    }
    if (numToSkip_ > 0 || secondsOfAll_ < c_secondsOfStart)
    {
        numToSkip_ -= numToSkip_ > 0 ? 1 : 0;
        return;
    }
    if (numSteps != nstlist_)
    {
        return; // An exchange of positions had a pair search of its own
    }
    numLists_++;
    numSteps_ += numSteps;
    seconds_ += seconds;
    const bool isLong = numSteps_ >= c_stepsOfRound || seconds_ >= c_longRoundSeconds;
    if (numLists_ < c_listsOfRound || seconds_ < c_secondsOfRound || !isLong)
    {
        return;
    }
    const double time = seconds_ / numSteps_;
    leastTime_        = numRounds_ == 0 ? time : std::min(leastTime_, time);
    numRounds_ += seconds_ < c_oneRoundSeconds ? 1 : c_numRounds;
    numLists_ = 0;
    numSteps_ = 0;
    seconds_  = 0;

    double best = leastTime_;
    for (const Trial& trial : trials_)
    {
        best = std::min(best, trial.time);
    }
    const bool isSlower = leastTime_ > c_slower * best;
    if (numRounds_ < (isSlower ? c_roundsOfSlower : c_numRounds))
    {
        return;
    }
    trials_.push_back({ nstlist_, leastTime_ });
    numSlower_ = isSlower ? numSlower_ + 1 : 0;
    const bool isLongEnough =
            secondsOfAll_ >= c_mostSeconds && static_cast<int>(trials_.size()) >= c_trialsForTime;
    if (later_.empty() || numSlower_ >= c_timesSlower || isLongEnough)
    {
        end();
    }
    else
    {
        begin(later_.front());
        later_.erase(later_.begin());
    }
}

void FmmListTuner::refuse()
{
    end();
}

void logFmmListChoice(const int                               before,
                      const real                              rlistBefore,
                      const t_inputrec&                       inputrec,
                      const std::vector<FmmListTuner::Trial>& trials,
                      const MDLogger&                         mdlog)
{
    std::string text = formatString("FMM: nstlist stays %d, rlist %.3f nm", before, rlistBefore);
    if (inputrec.nstlist != before)
    {
        text = formatString("FMM: changing nstlist from %d to %d, rlist from %.3f to %.3f nm",
                            before,
                            inputrec.nstlist,
                            rlistBefore,
                            inputrec.rlist);
    }
    const char* separator = ", by times of steps in ms:";
    for (const auto& trial : trials)
    {
        text += formatString("%s %.4g with %d", separator, 1e3 * trial.time, trial.nstlist);
        separator = ",";
    }
    GMX_LOG(mdlog.info).asParagraph().appendText(text + "\n");
}

int fmmKeptNstlist(const FmmChoice& choice, const t_inputrec& inputrec, const bool useGpuForFmm, const int numRanks)
{
    const bool canBeUsed = supportsDynamicPairlistGenerationInterval(inputrec)
                           && choice.isNstlistForGpu == useGpuForFmm && choice.nstlistRanks == numRanks
                           && choice.nstlist % nonbondedMtsFactor(inputrec) == 0;
    return canBeUsed ? choice.nstlist : 0;
}

void logFmmKeptNstlist(const t_inputrec& inputrec, const MDLogger& mdlog)
{
    GMX_LOG(mdlog.info)
            .asParagraph()
            .appendTextFormatted(
                    "FMM: nstlist %d, rlist %.3f nm, is what an earlier part of this run has "
                    "chosen by times of steps",
                    inputrec.nstlist,
                    inputrec.rlist);
}

} // namespace gmx
