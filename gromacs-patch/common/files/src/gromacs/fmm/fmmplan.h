/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Declares the plan by which the gmxfmm library computes
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMPLAN_H
#define GMX_FMM_FMMPLAN_H

#include <gmxfmm.h>
#include <gmxfmm_parallel.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "gromacs/utility/arrayref.h"
#include "gromacs/utility/listoflists.h"
#include "gromacs/utility/real.h"

#include "fmmchoice.h"
#include "fmmmeasure.h"
#include "fmmsystem.h"
#include "fmmversion.h"

struct gmx_mtop_t;

namespace gmx
{

struct FmmParameters;
enum class FmmPeriodicity : int;

//! A box in the form the library wants: row vectors
using FmmBox = std::array<double, 9>;

//! Returns the box in that form; of slabs the third vector is what bounds them along z, zero if nothing does
FmmBox fmmBox(FmmPeriodicity periodicity, const matrix box);
//! Returns whether the box has a volume, and the system a pressure
bool hasVolume(const double* box);

//! Time spent on the near field and its lists, in seconds
double fmmNearTime(const gmxfmm_info& info);
//! Time spent on all the rest, in seconds
double fmmFarTime(const gmxfmm_info& info);

/*! \internal \brief
 * A plan of the library for all atoms of a system
 *
 * Errors of the library become exceptions with its message.
 *
 * \ingroup module_fmm
 */
class FmmPlan
{
public:
    /*! \brief Chooses the parameters that were left automatic and makes the plan
     *
     * \param[in] parameters    What the user asked for
     * \param[in] mtop          The system
     * \param[in] box           Box for which parameters are chosen; not used with open boundary
     * \param[in] x             Coordinates for which parameters are chosen
     * \param[in] epsfac        Coulomb constant over the relative permittivity
     * \param[in] reproducible  Whether the same input has to give the same bits in each run; if not, times
     *                          on a GPU count for the choice
     * \param[in] numThreads    Number of OpenMP threads
     * \param[in] devices       Numbers of the GPUs that share a step, the first of which has the atoms; empty: the CPU
     */
    FmmPlan(const FmmParameters& parameters,
            const gmx_mtop_t&    mtop,
            const matrix         box,
            ArrayRef<const RVec> x,
            real                 epsfac,
            bool                 reproducible,
            int                  numThreads,
            ArrayRef<const int>  devices);
    /*! \brief Makes a plan for these atoms, which computes on the CPU in double precision
     *
     * With parameters by the library's model. The choice is the same in each run. Others as above.
     *
     * \param[in] charges     Charges
     * \param[in] exclusions  Excluded pairs
     * \param[in] x           Coordinates
     */
    FmmPlan(const FmmParameters&    parameters,
            ArrayRef<const real>    charges,
            const ListOfLists<int>& exclusions,
            ArrayRef<const RVec>    x,
            const FmmBox&           box,
            real                    epsfac,
            int                     numThreads);
    // The library's options have the address of a string of this object
    FmmPlan(const FmmPlan&)            = delete;
    FmmPlan& operator=(const FmmPlan&) = delete;

    //! The plan, for calls of the library
    gmxfmm_plan* get() const { return plan_.get(); }
    //! Throws with the message of the plan when a call of the library has failed
    void check(gmxfmm_status status) const;
    //! The same, with a message that says more
    void check(gmxfmm_status status, const std::string& message) const;
    //! Computes a step on the CPU, where atoms have left their cells in new ones; returns how it ended
    gmxfmm_status execute(const void* x, gmxfmm_output* output) const;
    /*! \brief Throws when a step on the GPU has failed, as \p status in its results says
     *
     * \param[in] status   A gmxfmm_status
     * \param[in] outside  How far an atom is outside its cell, in cells
     * \returns whether atoms have left their cells, but by so little that new ones can wait for the next step
     */
    bool checkStep(int status, double outside) const;

    //! Whether it computes on a GPU
    bool isOnGpu() const { return options_.device != GMXFMM_CPU; }
    //! Whether there is no periodicity and so no box
    bool isOpen() const { return options_.boundary == GMXFMM_OPEN; }
    //! Along which box vectors there are images, unless it is open
    FmmPeriodicity periodicity() const { return periodicity_; }
    //! The force error that was asked for
    double accuracy() const { return accuracy_; }
    //! Whether atoms move between their assignments to cells
    bool atomsMoveInCells() const { return atomsMoveInCells_; }
    //! Returns parameters in use and times
    gmxfmm_info info() const;
    //! Returns what a rank has of a plan of several, and times
    gmxfmm_ranks_info ranksInfo() const;
    //! What the parameters were measured to reach, empty if they were not
    const FmmMeasuredError& measured() const { return measured_; }
    //! Values of lambda of Coulomb interactions at whose charges the parameters reach what was asked for
    ArrayRef<const double> lambdas() const { return lambdas_; }
    //! What was chosen and is in use, if anything was; another run may choose something else if isChosenByTimes()
    const FmmChoice& choice() const { return choice_; }
    //! Returns what the library was asked for, by the user or by a choice
    FmmChoice asked() const;
    //! Whether times decide about choices
    bool isChosenByTimes() const { return isOnGpu() && options_.reproducible == 0; }
    //! Measures what the parameters in use reach at these coordinates and this lambda of Coulomb interactions
    FmmMeasuredError measureAt(const gmx_mtop_t& mtop, ArrayRef<const RVec> x, const matrix box, double lambda) const;

    /*! \brief Returns the time in s that a GPU takes for a step of this system
     *
     * \param[in] mtop         Charges and exclusions, which the plan then has
     * \param[in] x            Coordinates
     * \param[in] xOnDevice    Address of the same on the device
     * \param[in] stream       A cudaStream_t
     */
    double timeOfStep(const gmx_mtop_t& mtop, ArrayRef<const RVec> x, const void* xOnDevice, void* stream);

    /*! \brief Makes this the plan of several ranks, each of which then has its home atoms alone
     *
     * setHomeAtoms() takes the place of setAtoms() then, and info() knows the parameters after the first assignment.
     * All ranks have to call it, with the same choice of parameters, which has no octree.
     *
     * \param[in] comm      The ranks, which have to last as long as the plan
     * \param[in] numAtoms  Number of atoms on all ranks
     * \param[in] box       The box
     */
    void divide(const gmxfmm_comm& comm, int numAtoms, const FmmBox& box);
    /*! \brief Sets charges and exclusions of home atoms
     *
     * \param[in] home   Their numbers in the whole system, in the order that they have here
     * \param[in] kinds  Of all atoms
     */
    void setHomeAtoms(ArrayRef<const int> home, const FmmAtomKinds& kinds);

    //! Sets charges and exclusions
    void setAtoms(ArrayRef<const real> charges, const ListOfLists<int>& exclusions);

private:
    //! Frees a plan
    struct Deleter
    {
        void operator()(gmxfmm_plan* plan) const { gmxfmm_destroy(plan); }
    };

    //! Makes the plan, for about this number of atoms
    void create(int numAtoms, const double* box);
    //! Chooses by measured errors, or takes what an earlier part of the run has chosen, and measures that
    void measure(const FmmParameters& parameters,
                 const gmx_mtop_t&    mtop,
                 ArrayRef<const RVec> x,
                 const double*        box);
    /*! \brief Measures at other charges that the run will have, and chooses by these where they need more
     *
     * \param[in] given  Options of which a choice is made, nullptr if there is nothing to choose
     */
    void measureLater(const FmmParameters&  parameters,
                      const gmx_mtop_t&     mtop,
                      ArrayRef<const RVec>  x,
                      const double*         box,
                      const gmxfmm_options* given);
    //! Throws when what was measured misses what was asked for, or is of no use, or nothing could be measured
    void checkMeasured(bool isFixed, bool areCellsGiven) const;

    FmmPeriodicity periodicity_;
    double         accuracy_;
    bool           atomsMoveInCells_;
    double         startLambda_;
    //! Of lambdas()
    std::vector<double> lambdas_;
    //! Where the library keeps compiled kernels
    std::string cacheFolder_;
    //! What the plan was made with; its accuracy is what the library was asked for
    gmxfmm_options                        options_;
    FmmMeasuredError                      measured_;
    FmmChoice                             choice_;
    std::unique_ptr<gmxfmm_plan, Deleter> plan_;
    //! Kinds, charges and exclusions of home atoms, kept for their memory
    std::vector<int>  homeKinds_;
    std::vector<real> homeCharges_;
    FmmExclusionLists homeExclusions_;
};

} // namespace gmx

#endif
