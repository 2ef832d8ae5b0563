/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares the solver behind coulombtype = FMM
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMSOLVER_H
#define GMX_FMM_FMMSOLVER_H

#include <cstdint>
#include <cstdio>

#include <memory>
#include <string>

#include "gromacs/gpu_utils/devicebuffer_datatype.h"
#include "gromacs/utility/arrayref.h"
#include "gromacs/utility/listoflists.h"
#include "gromacs/utility/real.h"

#include "fmmchoice.h"
#include "fmmlisttuner.h"
#include "fmmversion.h"

class GpuEventSynchronizer;
struct gmx_enerdata_t;
struct gmx_mtop_t;
struct gmx_wallcycle;
struct t_inputrec;

namespace gmx
{

class DeviceStreamManager;
class FmmDomains;
class FmmGpuRanks;
class FmmRanks;
class ForceWithVirial;
class MDLogger;
class StepWorkload;
struct FmmParameters;
struct FmmSiteLists;
struct GridCorners;

//! Returns why the FMM cannot run on the device with this number, for a slab if \p isSlab; empty if it can
std::string whyNoFmmOnDevice(int deviceId, bool isSlab);

/*! \libinternal \brief
 * Computes all Coulomb interactions by the fast multipole method, except those of listed pairs
 *
 * The near field takes the place of the Coulomb part of the non-bonded
 * kernels, the far field that of the PME mesh.
 *
 * Errors of the library become exceptions with its message.
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
class FmmSolver
{
public:
    /*! \brief Chooses the parameters that were left automatic and sets up the computation
     *
     * \param[in] parameters    What the user asked for
     * \param[in] mtop          The system, which has to last as long as there are steps
     * \param[in] box           Box for which parameters are chosen; not used with open boundary
     * \param[in] x             Coordinates for which parameters and the pair-search grid are chosen
     * \param[in] epsfac        Coulomb constant over the relative permittivity
     * \param[in] reproducible  Whether the same input has to give the same bits in each run
     * \param[in] numThreads    Number of OpenMP threads
     * \param[in] wcycle        Cycle counters, can be nullptr
     * \param[in] gpuStreams    Streams of the GPU to compute on, nullptr on the CPU
     */
    FmmSolver(const FmmParameters&       parameters,
              const gmx_mtop_t&          mtop,
              const matrix               box,
              ArrayRef<const RVec>       x,
              real                       epsfac,
              bool                       reproducible,
              int                        numThreads,
              gmx_wallcycle*             wcycle,
              const DeviceStreamManager* gpuStreams = nullptr);
    /*! \brief Makes the solver of a rank for which the main rank computes on its GPU, as setGpuRanks() says
     *
     * It has no parameters: nothing that tells of them may be called.
     */
    FmmSolver(const FmmParameters&       parameters,
              const gmx_mtop_t&          mtop,
              gmx_wallcycle*             wcycle,
              const DeviceStreamManager& gpuStreams);
    ~FmmSolver();

    /*! \brief Has Lennard-Jones interactions of groups computed, too, where the input record splits them
     *
     * Throws where these coordinates are not those that it can be split for.
     *
     * \param[in] inputrec  The input record, with the shorter cut-off of the pair list
     * \param[in] lists     Of what pairs of atoms are left to the GPU
     * \param[in] box       Box of the .tpr file, on the main rank
     * \param[in] x         Its coordinates, on the main rank
     * \param[in] mdlog     The log
     */
    void splitLennardJones(const t_inputrec&    inputrec,
                           const FmmSiteLists&  lists,
                           const matrix         box,
                           ArrayRef<const RVec> x,
                           const MDLogger&      mdlog);
    //! Returns whether all Lennard-Jones pairs were left to the GPU, and pair kernels would find none
    bool hasAllPairs() const;

    //! Returns the parameters in use, as text
    std::string description() const;
    /*! \brief Keeps what another run may not choose in \p choice, for checkpoints
     *
     * What was chosen by times, or during the run, and when errors are measured again. It has to last as long as there are steps.
     */
    void keepChoice(FmmChoice* choice);
    /*! \brief Has times of steps choose nstlist, which checkpoints then keep
     *
     * Does nothing where mdrun may not change nstlist. What is passed has to last as long as there are steps.
     *
     * \param[in] inputrec    The input record, in which \p change changes nstlist and rlist
     * \param[in] multipleOf  What nstlist has to be a multiple of, as it is
     * \param[in] change      Changes nstlist
     * \param[in] domains     The domains of several ranks, empty on one
     * \param[in] mdlog       The log
     */
    void choosePairList(const t_inputrec&           inputrec,
                        int                         multipleOf,
                        FmmListChanger              change,
                        std::unique_ptr<FmmDomains> domains,
                        const MDLogger&             mdlog);
    /*! \brief Takes the time at a pair search, and may change nstlist before it, where choosePairList() says so
     *
     * Steps before have to be complete, so that the time is that of steps. All ranks take the main rank's.
     *
     * \param[in] step  The step
     * \param[in] box   The box
     * \param[in] x     Coordinates, on several ranks those at home first
     */
    void tunePairList(int64_t step, const matrix box, ArrayRef<const RVec> x);
    //! Returns the expected relative RMS force error
    double expectedError() const;

    /*! \brief Writes the parameters to the log, with requests to cite
     *
     * Later, when the box has become another than the one for which they were
     * chosen, that is told there, too: \p mdlog has to last as long as there are steps.
     */
    void logSetup(const MDLogger& mdlog, FILE* fplog);
    //! Writes the time spent in each stage to the log
    void logTimes(const MDLogger& mdlog) const;
    /*! \brief Measures force errors at the last coordinates of a run, when it was done at the start
     *
     * With a warning when they are far above what was asked for: a crystal has
     * melted, a droplet has spread.
     */
    void measureAtEnd(const MDLogger& mdlog, const gmx_mtop_t& mtop, ArrayRef<const RVec> x, const matrix box) const;

    /*! \brief Returns fmmPairSearchDensity() of these atoms
     *
     * The volume that they fill is that of the coordinates given to the
     * constructor, so that a continued run has the same grid.
     */
    real pairSearchDensity(const GridCorners& region, ArrayRef<const AtomInfo> atomInfo);

    /*! \brief Returns the number density for which columns of the pair-search grid of a domain are made
     *
     * It is that of the atoms on the grid. In a film with vacuum between its atoms it is that where atoms are.
     *
     * \param[in] atomDensity  Number density of all atoms at home
     * \param[in] atomInfo     Of the atoms at home
     */
    real homeDensity(real atomDensity, ArrayRef<const AtomInfo> atomInfo) const;

    /*! \brief Sets charges and exclusions, at each change of the order of atoms
     *
     * \param[in] charges     Charges, those of lambda = 0 where they are perturbed
     * \param[in] chargesB    Charges of lambda = 1, empty where none is perturbed
     * \param[in] exclusions  Excluded pairs
     * \param[in] groups      Energy group of each atom; empty or all 0: there is one
     */
    void setAtoms(ArrayRef<const real>           charges,
                  ArrayRef<const real>           chargesB,
                  const ListOfLists<int>&        exclusions,
                  ArrayRef<const unsigned short> groups);

    /*! \brief Makes the solver one of several ranks, with forces on the atoms at home
     *
     * setHomeAtoms() then takes the place of setAtoms().
     *
     * \param[in] ranks      The ranks
     * \param[in] isDivided  Whether the library divides the FMM over them; otherwise each computes all of it
     */
    void setRanks(std::unique_ptr<FmmRanks> ranks, bool isDivided);
    /*! \brief Makes the solver one of several ranks of which the main one computes all on its GPU
     *
     * setHomeAtoms() then takes the place of setAtoms().
     *
     * \param[in] gpuRanks  The ranks
     * \param[in] ranks     Charges and groups of all atoms, on the main rank
     */
    void setGpuRanks(std::unique_ptr<FmmGpuRanks> gpuRanks, std::unique_ptr<FmmRanks> ranks);
    //! Returns whether the library can divide the FMM over ranks: with cells of one level in a periodic box
    bool canBeDivided() const;
    //! Sets which atoms of the topology are at home, at each partition of atoms over ranks
    void setHomeAtoms(ArrayRef<const int> home);
    //! Returns what was chosen, for the solvers of other ranks
    FmmChoice choiceForOtherRanks() const;

    //! Passes on lambda of Coulomb interactions in this step, by which perturbed charges are those of this lambda
    void setLambda(real lambda);

    /*! \brief Adds what is computed on the CPU: forces, energies and virial of the atoms passed to setAtoms()
     *
     * On several ranks all of them have to call it; \p x and the forces begin with the atoms at home, and the main rank
     * alone adds energies and virial.
     *
     * With the FMM on a GPU only what perturbed charges add to launchGpu() in the same step, after which it is called.
     *
     * Atoms are assigned to cells at pair-search steps, and in between after
     * FmmParameters::maxStepsInCellsOnCpu steps; they stay in their cells until the
     * next time, so that energy is conserved meanwhile. No pair is lost, as
     * the near field is all pairs in neighboring cells, but expansions
     * converge more slowly for atoms that left their cell.
     *
     * The derivative of the energy by lambda is added, too, when wanted.
     */
    void calculate(ArrayRef<const RVec> x,
                   const matrix         box,
                   const StepWorkload&  stepWork,
                   int64_t              step,
                   ForceWithVirial*     forceWithVirial,
                   gmx_enerdata_t*      enerd);

    /*! \brief Measures errors again at a pair search, where cells follow the atoms, and chooses order and cells anew
     *
     * Errors are measured now and then, and seldom enough to take c_fmmShareOfMeasurements of the evaluations. Order
     * and cells are chosen anew where they miss the accuracy, or where atoms have become twice or half as dense.
     * To be called before anything of a step is computed, with the coordinates of all atoms on the host.
     */
    void followAtoms(ArrayRef<const RVec> x, const matrix box, int64_t step);

    //! Passes on the box of the next step, so that a GPU begins with what depends on that alone
    void setBox(const matrix box);

    /*! \brief Enqueues the computation of forces on the GPU, and of energies and virial when the step needs them
     *
     * The host waits for the device only when atoms were set or the box took
     * another shape than the cells can follow. What is wrong with coordinates
     * is found at the next step with energies or virial.
     *
     * \param[in] x                 Coordinates on the device
     * \param[in] xReady            Event that marks that \p x is complete
     * \param[in] box               Box
     * \param[in] stepWork          What is needed
     * \param[in] step              Number of the step
     */
    void launchGpu(DeviceBuffer<RVec>    x,
                   GpuEventSynchronizer* xReady,
                   const matrix          box,
                   const StepWorkload&   stepWork,
                   int64_t               step);

    //! As above, with coordinates on the host, for molecules that the host has made whole
    void launchGpuWithHostCoordinates(ArrayRef<const RVec> x,
                                      const matrix         box,
                                      const StepWorkload&  stepWork,
                                      int64_t              step);

    /*! \brief Returns whether mdrun may record this step as a graph, or launch one that was recorded instead of it
     *
     * With the FMM on a GPU, at a step without pair search and virial, before
     * launchGpu(), which is not called for a step that a graph does.
     */
    bool mayBeInGraph(int64_t step);

    /*! \brief Puts what is due between graphs of whole steps into the stream of the GPU
     *
     * Before a graph is launched. Returns whether there was something, which
     * the graph has to wait for by the stream of updates.
     */
    bool enqueueBeforeGraph(int64_t step);

    //! Returns the forces on the device, in the order of atoms, which launchGpu() overwrites
    DeviceBuffer<RVec> gpuForces() const;
    //! Returns the event that marks that these are complete
    GpuEventSynchronizer* gpuForcesReady() const;

    /*! \brief Waits for what launchGpu() sent to the host at this step, if anything, and adds it
     *
     * These are energies and virial, and forces unless they are reduced on the device. A virial
     * without energies, with the update on the GPU, is left to waitAndAddVirial().
     */
    void waitAndReduceGpu(const StepWorkload& stepWork, ForceWithVirial* forceWithVirial, gmx_enerdata_t* enerd);
    //! Waits for the virial that waitAndReduceGpu() left, if it did, and adds it: after the update was launched
    void waitAndAddVirial(const StepWorkload& stepWork, tensor virial);

    /*! \brief Enqueues the virial of all forces on the GPU but those of the FMM, which comes with that of the FMM
     *
     * In a step with StepWorkload::computeVirialOnGpu. Forces are complete in the stream of the local pair kernels.
     *
     * \param[in] xq            Coordinates and charges on the device in the order of the pair kernels
     * \param[in] f             Forces on the device in the same order
     * \param[in] numAtoms      Number of atoms in this order
     * \param[in] shiftForces   Shift forces on the device
     * \param[in] shiftVectors  Shift vectors
     */
    void launchShortRangeVirial(const void*          xq,
                                DeviceBuffer<RVec>   f,
                                int                  numAtoms,
                                DeviceBuffer<RVec>   shiftForces,
                                ArrayRef<const RVec> shiftVectors);

    /*! \brief Lets the stream beside that of the local pair kernels begin, when coordinates are ready there
     *
     * Bonded interactions take long and little of the device, and a second pair list has kernels of its own: they run
     * beside the pair kernels.
     */
    void beginBesideNonbonded();
    //! Lets the stream of the local pair kernels go on when all in the stream beside it is complete
    void endBesideNonbonded();

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace gmx

#endif
