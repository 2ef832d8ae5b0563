/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares the choice of nstlist by times of steps
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMLISTTUNER_H
#define GMX_FMM_FMMLISTTUNER_H

#include <cstdint>

#include <functional>
#include <vector>

#include "gromacs/utility/real.h"

#include "fmmversion.h"

struct t_inputrec;

namespace gmx
{

class MDLogger;
struct FmmChoice;

//! Changes nstlist, with rlist and all of GROMACS that depends on them, and tells of the list
using FmmListChanger = std::function<void(int nstlist, const MDLogger& mdlog)>;

/*! \libinternal \brief
 * Finds the nstlist with which steps take least, pair searches included
 *
 * mdrun's rule for nstlist looks at the volume of the pair list. With FMM the
 * list is of Lennard-Jones interactions alone, so that a longer one costs
 * little, and the search is a large part of a step. Larger values are tried
 * one after the other from the first on, as long as they are not slower.
 *
 * A value is timed in rounds of some lists, of which the fastest
 * counts. What disturbs a run makes it slower, and a round is long enough
 * to have its share of steps with energies.
 */
class FmmListTuner
{
public:
    //! What was timed
    struct Trial
    {
        int nstlist;
        //! Seconds a step
        double time;
    };

    /*! \brief Begins with a value
     *
     * \param[in] nstlist     The value in use
     * \param[in] multipleOf  What all values are multiples of, as the first one is
     */
    FmmListTuner(int nstlist, int multipleOf);

    //! Returns the value to use next, the best one when nothing more is tried
    int nstlist() const { return nstlist_; }
    //! Returns whether nothing more is tried, as from the beginning where there is no larger value
    bool isDone() const { return isDone_; }
    /*! \brief Takes the time of a list, and chooses the next value
     *
     * A list counts if it had its full age, and none was disturbed or changed just before it.
     *
     * \param[in] numSteps  Steps with the list
     * \param[in] seconds   What they took, with the search before them
     */
    void add(int64_t numSteps, double seconds);
    //! Says that nstlist() cannot be used, so that the best one is the last
    void refuse();
    //! Returns what was timed, in the order of nstlist
    const std::vector<Trial>& trials() const { return trials_; }

private:
    //! Begins to time the next value
    void begin(int nstlist);
    //! Ends with the best value
    void end();

    //! Values to try after nstlist_
    std::vector<int>   later_;
    int                nstlist_;
    std::vector<Trial> trials_;
    bool               isDone_ = false;
    //! Lists that do not count before the next that does
    int numToSkip_;
    //! Of this round
    int     numLists_     = 0;
    int64_t numSteps_     = 0;
    double  seconds_      = 0;
    int     numRounds_    = 0;
    double  leastTime_    = 0;
    int     numSlower_    = 0;
    int64_t stepsOfAll_   = 0;
    double  secondsOfAll_ = 0;
};

/*! \brief Tells which nstlist times of steps have chosen
 *
 * \param[in] before       nstlist before
 * \param[in] rlistBefore  The radius of the pair list with it
 * \param[in] inputrec     The input record, with the chosen ones
 * \param[in] trials       What was timed
 * \param[in] mdlog        Logger
 */
void logFmmListChoice(int                                     before,
                      real                                    rlistBefore,
                      const t_inputrec&                       inputrec,
                      const std::vector<FmmListTuner::Trial>& trials,
                      const MDLogger&                         mdlog);

/*! \brief Returns the nstlist that an earlier part of the run has chosen by times, or 0
 *
 * 0 also where the input record does not allow it any more, or the FMM was not where it is now, or
 * on another number of ranks, whose domains may be too small for it.
 */
int fmmKeptNstlist(const FmmChoice& choice, const t_inputrec& inputrec, bool useGpuForFmm, int numRanks);
//! Tells that this is in use
void logFmmKeptNstlist(const t_inputrec& inputrec, const MDLogger& mdlog);

} // namespace gmx

#endif
