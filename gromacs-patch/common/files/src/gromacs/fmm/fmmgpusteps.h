/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Declares the steps of the FMM on a GPU
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMGPUSTEPS_H
#define GMX_FMM_FMMGPUSTEPS_H

#include <cstdint>

#include <chrono>
#include <optional>
#include <utility>

#include "gromacs/utility/arrayref.h"

#include "fmmljsplit.h"
#include "fmmplan.h"
#include "fmmshares.h"
#include "fmmversion.h"

struct gmx_enerdata_t;
struct gmx_wallcycle;

namespace gmx
{

class FmmGpu;
class FmmSites;
enum class FmmAssignment : int;
class ForceWithVirial;
class StepWorkload;
struct FmmStepSums;

//! Time of each stage of a step on a GPU, in ms
struct FmmGpuTimes
{
    double near, far, sortAndOutput;
    //! Of these together, which overlap
    double all;
    //! Of an assignment of atoms to cells
    double assign;
};

/*! \internal \brief
 * Steps that a plan computes on a GPU, and what they give
 *
 * Steps are repeated as graphs as long as nothing but numbers in memory changes.
 *
 * \ingroup module_fmm
 */
class FmmGpuSteps
{
public:
    //! \p plan and \p gpu have to exist as long as this does; \p wcycle can be nullptr
    FmmGpuSteps(const FmmPlan& plan, FmmGpu* gpu, gmx_wallcycle* wcycle) :
        plan_(plan), gpu_(gpu), wcycle_(wcycle)
    {
    }

    //! Makes room for forces after the plan was given other atoms, of which some have perturbed charges or none
    void setAtoms(int numAtoms, bool havePerturbedCharges);
    //! Sets what has Lennard-Jones interactions at sites, beside those of the plan, and the box that the plan has
    void setSites(FmmSites* sites, const FmmSiteLists& lists, const FmmBox& box);
    //! Passes on a box that is not the one the plan has
    void setBox(const FmmBox& box);

    /*! \brief Puts all of a step into the stream
     *
     * Between pair searches atoms are assigned to cells beside some steps, and
     * the next one has the new cells.
     *
     * \param[in] x           Address of the coordinates on the device
     * \param[in] assignment  Whether atoms are to be assigned to cells
     * \param[in] stepWork    What is wanted
     * \param[in] step        Number of the step
     */
    void enqueue(const void* x, FmmAssignment assignment, const StepWorkload& stepWork, int64_t step);
    /*! \brief Returns whether this step is one that mdrun's graphs of whole steps may have in them
     *
     * Not where pairs of sites are searched, nor where the host waits while
     * atoms are assigned to cells. When something changes that a recorded step
     * has in it, no step is until the next one with a pair search or a virial:
     * there mdrun forgets its graphs.
     *
     * \param[in] step        Number of the step
     * \param[in] isToAssign  Whether atoms are to be assigned to cells at this step
     */
    bool mayBeInGraph(int64_t step, bool isToAssign) const;
    //! See FmmSolver::enqueueBeforeGraph(); \p isToAssign as above
    bool enqueueBeforeGraph(int64_t step, bool isToAssign);
    //! See FmmSolver::waitAndReduceGpu()
    void waitAndReduce(const StepWorkload& stepWork, ForceWithVirial* forceWithVirial, gmx_enerdata_t* enerd);
    //! See FmmSolver::waitAndAddVirial()
    void waitAndAddVirial(const StepWorkload& stepWork, tensor virial);

    //! Returns whether a step since the last call has found that atoms have left their cells
    bool haveAtomsLeft() { return std::exchange(haveAtomsLeft_, false); }
    //! Returns the times of stages, measured at the first step, without a value before
    const std::optional<FmmGpuTimes>& times() const { return times_; }
    //! Returns whether shares of several GPUs were tried, and the best are in use
    bool haveTunedShares() const { return shareTuner_ && shareTuner_->isDone(); }

private:
    //! Whether energies, the derivative by lambda or the virial are wanted on the host
    bool needSums(const StepWorkload& stepWork) const;
    //! The same for energies, with which the derivative comes
    bool needEnergy(const StepWorkload& stepWork) const;
    //! A graph of the step has the buffers in it that it was recorded with, and often the box
    void forgetRepeated();
    //! A graph has the address of the coordinates in it, too
    void setAddress(const void* x);
    //! Returns whether atoms can be assigned to cells in a stream, in the box as it is
    bool canEnqueueAssignment() const;
    //! Assigns atoms with these coordinates to cells, without the host's waiting where that is possible
    void assign(const void* x);
    //! The same, waiting; cells that follow the atoms do so here
    void assignAndWait(const void* x);
    //! Begins to do so for one of the next steps, where that is possible
    void beginAssignment(const void* x, int64_t step);
    //! Puts the longest part of what was begun into its own stream
    void sortAssignment();
    //! Returns whether an assignment was begun that is to be ended at this step
    bool isAssignmentToEnd(int64_t step, bool isToAssign) const;
    //! Lets what follows in the stream have the new cells
    void endAssignment();
    /*! \brief Where several GPUs share steps, tries another share of the near field until the next pair search
     *
     * To be called before the assignment at a pair search, which waits for
     * the steps before it.
     */
    void tuneShares();
    //! Puts an evaluation into the stream: forces, and energy or virial or both if they are wanted
    void enqueueEvaluation(const void* x, bool wantEnergy, bool wantVirial);
    /*! \brief Measures the stages of a step one after the other, which in a step overlap
     *
     * Once, after the first evaluation: events in each step would cost more than they tell.
     */
    void measureTimes(const void* x);
    //! Waits for what was sent to the host at this step, and returns the sums in it; throws when the step has failed
    FmmStepSums waitForSums(const StepWorkload& stepWork);

    //! Returns whether pairs of sites are to be listed at a step without pair search
    bool isSitesSearchDue(int64_t step) const;
    //! Lists pairs of sites
    void searchSites(const void* x, int64_t step);

    const FmmPlan& plan_;
    FmmGpu*        gpu_;
    //! nullptr without sites
    FmmSites*    sites_ = nullptr;
    FmmSiteLists siteLists_;
    FmmBox       box_ = {};
    //! The step at which their pairs were listed
    int64_t sitesSearchStep_ = 0;
    //! Of the last step with sums
    double energyOfSites_ = 0;
    //! FmmSites::graphVersion() of the graphs of steps
    int            sitesVersion_ = 0;
    gmx_wallcycle* wcycle_;
    //! GPUs of the plan
    int numDevices_ = 1;
    //! Whether atoms have been changed since they were assigned to cells
    bool haveAtomsChanged_ = true;
    //! Whether a step has found that atoms have left their cells
    bool haveAtomsLeft_ = false;
    //! Whether an assignment was begun, and not ended, and at which step
    bool    isAssigning_    = false;
    int64_t assignmentStep_ = 0;
    //! Whether the plan has derivatives of charges by lambda
    bool havePerturbedCharges_ = false;
    //! Address of the coordinates that was last given to setAddress()
    const void* repeatedX_ = nullptr;
    //! gmxfmm_graph_version() of the graphs of steps
    int64_t graphVersion_ = 0;
    //! Times that something in a recorded step changed, and how many there were when mdrun recorded one, -1: it has none
    int64_t                    numChanges_ = 0, numChangesInGraph_ = -1;
    std::optional<FmmGpuTimes> times_;
    //! Of the first GPU's share, from the third pair search on, if there are several
    std::optional<FmmShareTuner> shareTuner_;
    //! Steps since the last pair search, and when that was
    int                                   numSinceSearch_ = 0;
    std::chrono::steady_clock::time_point lastSearch_;
    int                                   numSearches_ = 0;
};

} // namespace gmx

#endif
