/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Declares the communicator by which the gmxfmm library knows mdrun's ranks
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMCOMMUNICATOR_H
#define GMX_FMM_FMMCOMMUNICATOR_H

#include <gmxfmm_parallel.h>

#include <cstddef>

#include <vector>

#include "gromacs/utility/gmxmpi.h"

struct t_commrec;

namespace gmx
{

/*! \internal \brief
 * The ranks that have domains, threads or processes, as the library wants them
 *
 * It has messages of its own. Making one is collective.
 *
 * \ingroup module_fmm
 */
class FmmCommunicator
{
public:
    //! For the ranks of \p cr
    explicit FmmCommunicator(const t_commrec& cr);
    ~FmmCommunicator();
    // The library has its address
    FmmCommunicator(const FmmCommunicator&)            = delete;
    FmmCommunicator& operator=(const FmmCommunicator&) = delete;

    //! What the library is given; it is valid as long as this object
    const gmxfmm_comm& get() const { return comm_; }

private:
    //! See gmxfmm_comm
    static int allGather(void* context, const void* send, std::size_t bytes, void* receive);
    static int exchange(void* context, int n, const gmxfmm_parcel* parcels);

    //! Sends and receives parcels; returns 0, or an error of MPI
    int exchange(int n, const gmxfmm_parcel* parcels);

    MPI_Comm                   mpiComm_ = MPI_COMM_NULL;
    std::vector<MPI_Request>   requests_;
    std::vector<gmxfmm_parcel> toAll_;
    gmxfmm_comm                comm_ = {};
};

} // namespace gmx

#endif
