/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares how several ranks share an FMM on GPUs
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMGPURANKS_H
#define GMX_FMM_FMMGPURANKS_H

#include <memory>
#include <vector>

#include "gromacs/gpu_utils/devicebuffer_datatype.h"
#include "gromacs/utility/arrayref.h"

#include "fmmversion.h"

class GpuEventSynchronizer;
struct t_commrec;

namespace gmx
{

class DeviceStreamManager;

/*! \libinternal \brief
 * Coordinates of all ranks on the GPU of the main rank, which computes the FMM, and forces back on theirs
 *
 * In a step a rank that sees the memory of that GPU (FmmGpuPeers) copies the coordinates of its home
 * atoms there and tells the main rank that this is in a stream. The main rank puts the step behind
 * all copies and tells the others, which copy their forces. No host waits for a GPU, but ranks wait
 * for each other to have come that far. With another rank the host exchanges them, by messages.
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
class FmmGpuRanks
{
public:
    /*! \brief Makes room for coordinates and forces of all atoms on the GPU of the main rank
     *
     * All ranks have to call it.
     *
     * \param[in] cr        The ranks
     * \param[in] numAtoms  Number of atoms on all ranks
     * \param[in] streams   Streams of the GPU of this rank
     */
    FmmGpuRanks(const t_commrec& cr, int numAtoms, const DeviceStreamManager& streams);
    ~FmmGpuRanks();

    //! Whether this is the main rank
    bool isMain() const;
    //! Number of ranks
    int size() const;
    //! Number of ranks whose coordinates and forces go by the host
    int numByHost() const;
    //! Numbers of the GPUs of all ranks that are threads, that of the main rank first; with processes that of the main rank
    const std::vector<int>& devices() const;

    /*! \brief Sets which atoms of the topology are at home, in the order that they have there
     *
     * All ranks have to call it. Buffers may become others.
     */
    void setHomeAtoms(ArrayRef<const int> home);

    /*! \brief Enqueues the copy of the coordinates of home atoms, and tells the main rank
     *
     * \param[in] x       Coordinates on the device, of the atoms at home first
     * \param[in] xReady  Event that marks that \p x is complete
     */
    void sendCoordinates(DeviceBuffer<RVec> x, GpuEventSynchronizer* xReady);
    /*! \brief Enqueues what puts the coordinates of all ranks into the order of the topology
     *
     * On the main rank, in its stream for FMM. Returns their address.
     */
    const void* gatherCoordinates();
    //! Enqueues what puts forces in the order of the topology into that of the ranks, and tells these; on the main rank
    void sendForces(const void* force);
    /*! \brief Waits for the main rank to have enqueued these, and enqueues the copy of those on home atoms
     *
     * \param[in] toHost  Whether they are to go on to the host
     */
    void receiveForces(bool toHost);

    //! Forces on home atoms, in the order that they have at home
    DeviceBuffer<RVec> forces() const;
    //! The event that marks that these are complete
    GpuEventSynchronizer* forcesReady();
    //! Waits for those that go to the host, and returns them
    ArrayRef<const RVec> waitForHostForces() const;

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace gmx

#endif
