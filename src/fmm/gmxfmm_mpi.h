/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes a communicator of gmxfmm_parallel.h from one of MPI. The library itself is not linked with MPI. These functions
 * are compiled in the program, for the MPI that it uses.
 *
 * gmxfmm_mpi_create(&comm, MPI_COMM_WORLD) makes one for gmxfmm_create_parallel. Destroy its plans, and then call
 * gmxfmm_mpi_destroy(&comm), before MPI_Finalize.
 */
#ifndef GMXFMM_MPI_H
#define GMXFMM_MPI_H

#include <limits.h>
#include <stdlib.h>

#include <mpi.h>

#include "gmxfmm_parallel.h"

/* The context of the communicator. */
typedef struct
{
    MPI_Comm     comm;     /* a copy of the program's, so that messages do not meet */
    MPI_Request* requests; /* of an exchange */
    size_t       room;
} gmxfmm_mpi_context;

static inline int gmxfmm_mpi_all_gather(void* context, const void* send, size_t bytes, void* receive)
{
    const gmxfmm_mpi_context* c = (const gmxfmm_mpi_context*)context;
    return bytes > INT_MAX ? MPI_ERR_COUNT
                           : MPI_Allgather(send, (int)bytes, MPI_BYTE, receive, (int)bytes, MPI_BYTE, c->comm);
}

/* Messages of a parcel's direction: MPI counts bytes by an int. */
static inline size_t gmxfmm_mpi_messages(size_t bytes)
{
    return bytes / INT_MAX + (bytes % INT_MAX > 0);
}

static inline int gmxfmm_mpi_exchange(void* context, int n, const gmxfmm_parcel* m)
{
    gmxfmm_mpi_context* c      = (gmxfmm_mpi_context*)context;
    size_t              needed = 0, num = 0;
    int                 status = MPI_SUCCESS;
    for (int i = 0; i < n; i++)
    {
        needed += gmxfmm_mpi_messages(m[i].send_bytes) + gmxfmm_mpi_messages(m[i].receive_bytes);
    }
    if (needed > INT_MAX)
    {
        return MPI_ERR_COUNT;
    }
    if (needed > c->room)
    {
        MPI_Request* more = (MPI_Request*)realloc(c->requests, needed * sizeof(*more));
        if (more == NULL)
        {
            return MPI_ERR_NO_MEM;
        }
        c->requests = more;
        c->room     = needed;
    }
    for (int way = 0; way < 2; way++) /* what is received first: it has a place when it comes */
    {
        for (int i = 0; i < n; i++)
        {
            const size_t bytes = way == 0 ? m[i].receive_bytes : m[i].send_bytes;
            for (size_t at = 0; at < bytes && status == MPI_SUCCESS; at += INT_MAX)
            {
                const int count = bytes - at > INT_MAX ? INT_MAX : (int)(bytes - at);
                status          = way == 0 ? MPI_Irecv((char*)m[i].receive + at, count, MPI_BYTE, m[i].peer, 0, c->comm,
                                                       &c->requests[num])
                                           : MPI_Isend((const char*)m[i].send + at, count, MPI_BYTE, m[i].peer, 0, c->comm,
                                                       &c->requests[num]);
                num += status == MPI_SUCCESS;
            }
        }
    }
    for (size_t i = 0; i < num; i++)
    {
        const int waited = MPI_Wait(&c->requests[i], MPI_STATUS_IGNORE);
        status           = status == MPI_SUCCESS ? waited : status;
    }
    return status;
}

/* Fills *comm for the ranks of mpi. Collective: it succeeds on all of them or on none. Returns MPI_SUCCESS or an error
 * of MPI. MPI must have been initialised with MPI_THREAD_FUNNELED or more if plans have several threads. */
static inline int gmxfmm_mpi_create(gmxfmm_comm* comm, MPI_Comm mpi)
{
    gmxfmm_mpi_context* c    = (gmxfmm_mpi_context*)calloc(1, sizeof(*c));
    int                 rank = 0, size = 0, good = 0, all_good = 0;
    MPI_Comm_rank(mpi, &rank);
    MPI_Comm_size(mpi, &size);
    if (c != NULL)
    {
        c->room     = 2 * (size_t)size; /* enough for parcels of less than 2 GB */
        c->requests = (MPI_Request*)malloc(c->room * sizeof(*c->requests));
        good        = c->requests != NULL;
    }
    int status = MPI_Allreduce(&good, &all_good, 1, MPI_INT, MPI_MIN, mpi);
    status     = status == MPI_SUCCESS && !all_good ? MPI_ERR_NO_MEM : status;
    status     = status == MPI_SUCCESS ? MPI_Comm_dup(mpi, &c->comm) : status;
    if (status != MPI_SUCCESS)
    {
        free(c != NULL ? c->requests : NULL);
        free(c);
        return status;
    }
    MPI_Comm_set_errhandler(c->comm, MPI_ERRORS_RETURN); /* the library tells them */
    comm->rank          = rank;
    comm->size          = size;
    comm->context       = c;
    comm->all_gather    = gmxfmm_mpi_all_gather;
    comm->exchange      = gmxfmm_mpi_exchange;
    comm->device_memory = 0;
    return MPI_SUCCESS;
}

/* When all plans of it were destroyed. Collective. */
static inline void gmxfmm_mpi_destroy(gmxfmm_comm* comm)
{
    gmxfmm_mpi_context* c = (gmxfmm_mpi_context*)comm->context;
    if (c != NULL)
    {
        MPI_Comm_free(&c->comm);
        free(c->requests);
        free(c);
        comm->context = NULL;
    }
}

#endif
