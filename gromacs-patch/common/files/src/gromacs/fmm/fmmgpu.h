/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares what the FMM solver needs of a GPU in terms of GROMACS: stream, event and buffers
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMGPU_H
#define GMX_FMM_FMMGPU_H

#include <array>
#include <functional>
#include <memory>

#include "gromacs/gpu_utils/devicebuffer_datatype.h"
#include "gromacs/utility/arrayref.h"

#include "fmmversion.h"

class GpuEventSynchronizer;

namespace gmx
{

class DeviceStreamManager;

//! Energies, virial and status of a step, as the library writes them on the device
struct FmmStepSums
{
    //! Near and far field
    double energy[2];
    //! Row-major
    double virial[DIM * DIM];
    //! Of the charges that lambda changes, see FmmPerturbation
    double chargeGradient;
    //! How far an atom is outside its cell, in cells
    double outside;
    //! A gmxfmm_status
    int status;
    //! Energies and virials of Lennard-Jones at sites and of atoms, see FmmSites
    double sites[2][1 + DIM * DIM];
};

/*! \libinternal \brief
 * Stream, event and buffers for an FMM solver on a GPU
 *
 * Addresses of device memory and the stream are passed to the library as the
 * pointers to void that it takes.
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
class FmmGpu
{
public:
    //! Uses the stream for FMM of \p streams
    explicit FmmGpu(const DeviceStreamManager& streams);
    /*! \brief Frees the buffers
     *
     * The streams may have been destroyed before, but not the GPU context.
     */
    ~FmmGpu();

    //! Number of the device as the CUDA runtime counts
    int deviceId() const;
    //! The stream, a cudaStream_t
    void* stream() const;
    //! Makes room for the forces of \p numAtoms atoms
    void setNumAtoms(int numAtoms);
    //! Sets the atoms whose charges change with lambda: their charges at lambda = 0, and those at 1 less these
    void setPerturbedCharges(ArrayRef<const int>  atoms,
                             ArrayRef<const real> chargesA,
                             ArrayRef<const real> difference);
    //! Enqueues the charges of these atoms at lambda
    void computePerturbedCharges(real lambda);
    //! Address of the numbers of these atoms
    const int* perturbedAtomsAddress() const;
    //! Address of their charges
    const void* perturbedChargesAddress() const;
    //! Lets the stream wait for \p event
    void waitInStream(GpuEventSynchronizer* event) const;

    //! Address of the coordinates in \p x
    static const void* address(DeviceBuffer<RVec> x);
    //! Copies coordinates to the device, and returns their address there
    const void* upload(ArrayRef<const RVec> x);
    //! The forces, in the order of atoms
    DeviceBuffer<RVec> forces() const;
    //! Address of the forces
    void* forceAddress() const;
    //! Address of the sums
    FmmStepSums* sumsAddress() const;

    //! An event, a cudaEvent_t, for the library to record when forces are complete and sums are not
    void* forcesWritten() const;
    //! Marks that the stream has computed forces, or that this event says so
    void markForcesReady(bool byEvent);
    //! The event that marks this
    GpuEventSynchronizer* forcesReady();
    //! Enqueues the transfer of forces, if \p withForces, and sums, if \p withSums, to the host
    void launchTransfer(bool withForces, bool withSums);
    //! Waits for the transfer, and all else in the stream
    void waitForTransfer() const;
    //! Forces transferred last
    ArrayRef<const RVec> hostForces() const;
    //! Sums transferred last
    const FmmStepSums& hostSums() const;

    /*! \brief Enqueues what the virial of the pair kernels' and bonded forces is made of, and its transfer to the host
     *
     * The stream is that of the local pair kernels.
     *
     * \param[in] xq            Coordinates and charges in the order of the pair kernels
     * \param[in] f             Forces in the same order
     * \param[in] numAtoms      Number of atoms in this order
     * \param[in] shiftForces   Shift forces
     * \param[in] shiftVectors  Shift vectors
     */
    void launchShortRangeVirial(const void*          xq,
                                DeviceBuffer<RVec>   f,
                                int                  numAtoms,
                                DeviceBuffer<RVec>   shiftForces,
                                ArrayRef<const RVec> shiftVectors);
    //! Waits for that, and returns the sum of coordinates, or shift vectors, times these forces, row-major
    ArrayRef<const double> waitForShortRangeVirial() const;

    //! Lets the stream beside that of the local pair kernels begin, when coordinates are ready there
    void beginBesideNonbonded();
    //! Lets the stream of the local pair kernels go on when all in the stream beside it is complete
    void endBesideNonbonded();

    //! Returns two streams, cudaStream_t each, beside stream(), which begin when what is there is complete; forces become zero in the first
    std::array<void*, 2> beginSites();
    //! Lets the first go on when all in the second is complete
    void joinSites();
    //! Returns an event, a cudaEvent_t, that marks that all in the first is complete
    void* endSites();

    /*! \brief Puts the same work into the stream as in the last steps of its kind
     *
     * After some steps the work is recorded as a graph, which takes the host a
     * fraction of the time. Then it must be the same at each call, with the
     * same addresses, until forgetRepeated() is called. While a graph of
     * mdrun's is recorded the work becomes part of that.
     *
     * \param[in] withEnergy  Whether the step gives the energy
     * \param[in] withVirial  Whether the step gives the virial
     * \param[in] enqueue     Puts the work into the stream, without waiting for the device or
     *                        allocating memory; its arguments are whether with energy and virial
     */
    void enqueueRepeated(bool withEnergy, bool withVirial, const std::function<void(bool, bool)>& enqueue);
    //! Returns whether the next such work has nothing in it that is there once after a change
    bool isRepeating() const;
    //! Returns whether what comes into the stream is recorded for a graph of mdrun's
    bool isInGraph() const;
    //! Says that what an assignment of atoms to cells begins with is in stream()
    void markAssignmentBegun();
    //! Puts the rest of it into a stream of its own, behind that; it is repeated as with enqueueRepeated()
    void enqueueAssignment(const std::function<void()>& enqueue);
    //! The cudaStream_t for that
    void* assignmentStream() const;
    //! Lets stream() go on when the assignment is complete
    void waitForAssignment();
    //! Lets stream() go on when the last graph of a whole step is complete
    void waitForGraph();
    //! Lets the stream of updates, behind which the next such graph comes, go on when stream() is
    void letGraphWait();
    //! Ends the repetition of the same work
    void forgetRepeated();

    //! Returns the time in ms that the device takes for what \p enqueue puts into the stream, which has to be empty
    double timeOf(const std::function<void()>& enqueue) const;

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace gmx

#endif
