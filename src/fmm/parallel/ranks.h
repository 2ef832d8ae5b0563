/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ranks of a plan: what they send each other, on the functions of a gmxfmm_comm. All are collective, and may return
 * COMM without a message. */
#ifndef FMM_PARALLEL_RANKS_H
#define FMM_PARALLEL_RANKS_H

#include "fmm/gmxfmm.h"
#include "fmm/gmxfmm_parallel.h"

enum
{
    FMM_MOST_RANKS =
        4096 /* statuses of so many are kept on the stack: agreeing takes no memory that might be lacking */
};

typedef struct fmm_ranks
{
    gmxfmm_comm    comm;
    gmxfmm_parcel* parcels; /* comm.size */
} fmm_ranks;

typedef enum
{
    FMM_RANKS_SUM,
    FMM_RANKS_MAX
} fmm_ranks_reduction;

/* Not collective; NULL: no memory. */
fmm_ranks* fmm_ranks_create(const gmxfmm_comm* comm);
void       fmm_ranks_destroy(fmm_ranks* ranks);

/* The status and message[size] of the lowest rank whose status is an error, which the message then names; OK: all are.
 * Of COMM others cannot be told. */
gmxfmm_status fmm_ranks_agree(const gmxfmm_comm* comm, gmxfmm_status status, char* message, size_t size);

/* data[bytes] becomes that of rank `root`. No memory. */
gmxfmm_status fmm_ranks_broadcast(const gmxfmm_comm* comm, int root, void* data, size_t bytes);

/* v[num] becomes the sums or largest numbers of all ranks, the same bits on all; room[num] is overwritten. */
gmxfmm_status
fmm_ranks_reduce(const gmxfmm_comm* comm, fmm_ranks_reduction reduction, double* v, double* room, size_t num);

/* receive[size * bytes] becomes what all send, in the order of ranks. */
gmxfmm_status fmm_ranks_all_gather(const gmxfmm_comm* comm, const void* send, size_t bytes, void* receive);

/* The first num of ranks->parcels, which the caller has filled. */
gmxfmm_status fmm_ranks_send_parcels(const fmm_ranks* ranks, int num);

/* Items of `bytes`: send[r * bytes] for rank r, receive[r * bytes] of it. */
gmxfmm_status fmm_ranks_one_each(const fmm_ranks* ranks, size_t bytes, const void* send, void* receive);

/* Items of `bytes`: send_start[r] .. send_start[r + 1] - 1 for rank r, receive_start[r] .. receive_start[r + 1] - 1 of
 * it. Those of a rank for itself stay where they are. */
gmxfmm_status fmm_ranks_some_each(const fmm_ranks* ranks,
                                  size_t           bytes,
                                  const void*      send,
                                  const int64_t*   send_start,
                                  void*            receive,
                                  const int64_t*   receive_start);

/* The same num items for all others. */
gmxfmm_status fmm_ranks_same_to_all(
    const fmm_ranks* ranks, size_t bytes, const void* send, int64_t num, void* receive, const int64_t* receive_start);

#endif
