/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements the communicator by which the gmxfmm library knows mdrun's ranks
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmcommunicator.h"

#include "config.h"

#include <cstring>

#include <algorithm>

#include "fmmversion.h"

namespace gmx
{

FmmCommunicator::FmmCommunicator(const t_commrec& cr)
{
    comm_.rank       = rankWithDomain(cr);
    comm_.size       = numRanksWithDomains(cr);
    comm_.context    = this;
    comm_.all_gather = allGather;
    comm_.exchange   = exchange;
#if GMX_MPI
    MPI_Comm_dup(communicatorOfRanks(cr), &mpiComm_);
#endif
}

FmmCommunicator::~FmmCommunicator()
{
#if GMX_MPI
    MPI_Comm_free(&mpiComm_);
#endif
}

int FmmCommunicator::allGather(void* context, const void* send, std::size_t bytes, void* receive)
{
    // In thread-MPI there is no MPI_Allgather
    auto* communicator = static_cast<FmmCommunicator*>(context);
    auto* all          = static_cast<char*>(receive);
    communicator->toAll_.clear();
    for (int rank = 0; rank < communicator->comm_.size; rank++)
    {
        char* of = all + static_cast<std::size_t>(rank) * bytes;
        if (rank == communicator->comm_.rank)
        {
            std::memcpy(of, send, bytes);
        }
        else
        {
            communicator->toAll_.push_back({ rank, send, bytes, of, bytes });
        }
    }
    return communicator->exchange(communicator->toAll_.size(), communicator->toAll_.data());
}

int FmmCommunicator::exchange(void* context, int n, const gmxfmm_parcel* parcels)
{
    return static_cast<FmmCommunicator*>(context)->exchange(n, parcels);
}

int FmmCommunicator::exchange(const int n, const gmxfmm_parcel* parcels)
{
    int status = 0;
#if GMX_MPI
    // MPI counts bytes by an int
    constexpr std::size_t c_most = 1U << 30;
    requests_.clear();
    for (int i = 0; i < n; i++)
    {
        for (std::size_t at = 0; at < parcels[i].receive_bytes && status == 0; at += c_most)
        {
            const int bytes = std::min(c_most, parcels[i].receive_bytes - at);
            requests_.emplace_back();
            status = MPI_Irecv(static_cast<char*>(parcels[i].receive) + at,
                               bytes,
                               MPI_BYTE,
                               parcels[i].peer,
                               0,
                               mpiComm_,
                               &requests_.back());
        }
    }
    for (int i = 0; i < n; i++)
    {
        for (std::size_t at = 0; at < parcels[i].send_bytes && status == 0; at += c_most)
        {
            const int bytes = std::min(c_most, parcels[i].send_bytes - at);
            requests_.emplace_back();
            status = MPI_Isend(const_cast<char*>(static_cast<const char*>(parcels[i].send)) + at,
                               bytes,
                               MPI_BYTE,
                               parcels[i].peer,
                               0,
                               mpiComm_,
                               &requests_.back());
        }
    }
    if (status == 0)
    {
        status = MPI_Waitall(requests_.size(), requests_.data(), MPI_STATUSES_IGNORE);
    }
#else
    GMX_UNUSED_VALUE(n);
    GMX_UNUSED_VALUE(parcels);
#endif
    return status;
}

} // namespace gmx
