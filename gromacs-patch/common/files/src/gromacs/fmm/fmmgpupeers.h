/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Declares device memory and events that ranks share, where they see each other's
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMGPUPEERS_H
#define GMX_FMM_FMMGPUPEERS_H

#include <cuda_runtime.h>

#include <cstdint>

#include <memory>

#include "gromacs/utility/gmxmpi.h"

namespace gmx
{

/*! \internal \brief
 * Device memory of the first rank that other ranks see, and signals between it and them
 *
 * A rank that sees it is a peer. Threads of one process are peers. Processes are peers where they
 * run on one host, whose GPUs see each other, and CUDA lets them have the memory of another process
 * (CUDA IPC). Where GMX_DISABLE_DIRECT_GPU_COMM is set a process is none. The first rank is a peer.
 *
 * A signal says that the work which a rank put into a stream before is one that others may put
 * their own behind. A signal has a number, which grows.
 *
 * \ingroup module_fmm
 */
class FmmGpuPeers
{
public:
    /*! \brief Shares the memory; all ranks have to call it
     *
     * \param[in] comm    The ranks
     * \param[in] memory  On the first rank the begin of memory that cudaMalloc() returned
     */
    FmmGpuPeers(MPI_Comm comm, void* memory);
    //! Lets go of the memory, which then may be freed; all ranks have to call it, with no work in their streams that uses it
    ~FmmGpuPeers();

    //! Returns whether a rank is a peer
    bool isPeer(int rank) const;
    //! Returns the address of the memory on this rank, null where it is no peer
    void* memory() const;
    //! Gives a signal of this rank, which is a peer, behind what is in the stream
    void signal(int64_t number, cudaStream_t stream);
    //! Waits for another peer to have given that signal, and puts the stream behind it; this or the other is the first rank
    void waitFor(int rank, int64_t number, cudaStream_t stream) const;

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace gmx

#endif
