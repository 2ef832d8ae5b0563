/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What ranks send each other. */
#include "fmm/parallel/ranks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fmm_ranks* fmm_ranks_create(const gmxfmm_comm* comm)
{
    fmm_ranks* ranks = calloc(1, sizeof(*ranks));
    if (ranks != NULL)
    {
        ranks->comm    = *comm;
        ranks->parcels = calloc((size_t)comm->size, sizeof(*ranks->parcels));
        if (ranks->parcels == NULL)
        {
            fmm_ranks_destroy(ranks);
            ranks = NULL;
        }
    }
    return ranks;
}

void fmm_ranks_destroy(fmm_ranks* ranks)
{
    if (ranks != NULL)
    {
        free(ranks->parcels);
        free(ranks);
    }
}

static gmxfmm_status exchange(const gmxfmm_comm* comm, int n, const gmxfmm_parcel* m)
{
    return comm->exchange(comm->context, n, m) == 0 ? GMXFMM_OK : GMXFMM_ERROR_COMM;
}

gmxfmm_status fmm_ranks_all_gather(const gmxfmm_comm* comm, const void* send, size_t bytes, void* receive)
{
    return comm->all_gather(comm->context, send, bytes, receive) == 0 ? GMXFMM_OK : GMXFMM_ERROR_COMM;
}

gmxfmm_status fmm_ranks_agree(const gmxfmm_comm* comm, gmxfmm_status status, char* message, size_t size)
{
    enum
    {
        c_text = 512
    };
    int       of[FMM_MOST_RANKS] = {0};
    const int own                = (int)status;
    char      text[c_text]       = "";
    int       first              = 0;
    if (status != GMXFMM_ERROR_COMM)
    {
        status = fmm_ranks_all_gather(comm, &own, sizeof(own), of);
        while (status == GMXFMM_OK && first < comm->size && of[first] == GMXFMM_OK)
        {
            first++;
        }
        if (status == GMXFMM_OK && first < comm->size)
        {
            snprintf(text, sizeof(text), "%s", message);
            status = fmm_ranks_broadcast(comm, first, text, sizeof(text));
            if (status == GMXFMM_OK)
            {
                snprintf(message, size, "rank %d: %s", first, text);
                return (gmxfmm_status)of[first];
            }
        }
    }
    if (status == GMXFMM_ERROR_COMM)
    {
        snprintf(message, size, "the communicator failed on rank %d: no other call of this plan will work", comm->rank);
    }
    return status;
}

/* The tree of broadcasts and reductions: number r (counted from the root) has r + step as its child, if r < step. */
static int relative(const gmxfmm_comm* comm, int root)
{
    return (comm->rank - root + comm->size) % comm->size;
}

gmxfmm_status fmm_ranks_broadcast(const gmxfmm_comm* comm, int root, void* data, size_t bytes)
{
    const int     own    = relative(comm, root);
    gmxfmm_status status = GMXFMM_OK;
    for (int step = 1; step < comm->size && status == GMXFMM_OK; step *= 2)
    {
        gmxfmm_parcel m    = {0};
        int           some = 0;
        if (own < step && own + step < comm->size)
        {
            m    = (gmxfmm_parcel){(own + step + root) % comm->size, data, bytes, NULL, 0};
            some = 1;
        }
        else if (own >= step && own < 2 * step)
        {
            m    = (gmxfmm_parcel){(own - step + root) % comm->size, NULL, 0, data, bytes};
            some = 1;
        }
        status = exchange(comm, some, &m);
    }
    return status;
}

gmxfmm_status
fmm_ranks_reduce(const gmxfmm_comm* comm, fmm_ranks_reduction reduction, double* v, double* room, size_t num)
{
    const size_t  bytes  = num * sizeof(*v);
    gmxfmm_status status = GMXFMM_OK;
    int           step   = 1;
    while (step < comm->size)
    {
        step *= 2;
    }
    for (step /= 2; step >= 1 && status == GMXFMM_OK; step /= 2)
    {
        const int     takes = comm->rank < step && comm->rank + step < comm->size;
        const int     gives = comm->rank >= step && comm->rank < 2 * step;
        gmxfmm_parcel m     = {0};
        if (takes)
        {
            m = (gmxfmm_parcel){comm->rank + step, NULL, 0, room, bytes};
        }
        else if (gives)
        {
            m = (gmxfmm_parcel){comm->rank - step, v, bytes, NULL, 0};
        }
        status = exchange(comm, takes || gives, &m);
        for (size_t i = 0; i < num && takes && status == GMXFMM_OK; i++)
        {
            v[i] = reduction == FMM_RANKS_SUM ? v[i] + room[i] : fmax(v[i], room[i]);
        }
    }
    return status == GMXFMM_OK ? fmm_ranks_broadcast(comm, 0, v, bytes) : status;
}

gmxfmm_status fmm_ranks_send_parcels(const fmm_ranks* ranks, int num)
{
    return exchange(&ranks->comm, num, ranks->parcels);
}

gmxfmm_status fmm_ranks_one_each(const fmm_ranks* ranks, size_t bytes, const void* send, void* receive)
{
    const gmxfmm_comm* comm = &ranks->comm;
    int                num  = 0;
    for (int r = 0; r < comm->size; r++)
    {
        const char* from = (const char*)send + (size_t)r * bytes;
        char*       to   = (char*)receive + (size_t)r * bytes;
        if (r == comm->rank)
        {
            memcpy(to, from, bytes);
        }
        else
        {
            ranks->parcels[num++] = (gmxfmm_parcel){r, from, bytes, to, bytes};
        }
    }
    return exchange(comm, num, ranks->parcels);
}

gmxfmm_status fmm_ranks_some_each(const fmm_ranks* ranks,
                                  size_t           bytes,
                                  const void*      send,
                                  const int64_t*   send_start,
                                  void*            receive,
                                  const int64_t*   receive_start)
{
    const gmxfmm_comm* comm = &ranks->comm;
    int                num  = 0;
    for (int r = 0; r < comm->size; r++)
    {
        const size_t sent     = (size_t)(send_start[r + 1] - send_start[r]) * bytes;
        const size_t received = (size_t)(receive_start[r + 1] - receive_start[r]) * bytes;
        if (r == comm->rank || sent + received == 0)
        {
            continue;
        }
        const char* from      = sent > 0 ? (const char*)send + (size_t)send_start[r] * bytes : NULL;
        char*       to        = received > 0 ? (char*)receive + (size_t)receive_start[r] * bytes : NULL;
        ranks->parcels[num++] = (gmxfmm_parcel){r, from, sent, to, received};
    }
    return exchange(comm, num, ranks->parcels);
}

gmxfmm_status fmm_ranks_same_to_all(const fmm_ranks* ranks,
                                    size_t           bytes,
                                    const void*      send,
                                    int64_t          num_items,
                                    void*            receive,
                                    const int64_t*   receive_start)
{
    const gmxfmm_comm* comm = &ranks->comm;
    int                num  = 0;
    for (int r = 0; r < comm->size; r++)
    {
        const size_t sent     = (size_t)num_items * bytes;
        const size_t received = (size_t)(receive_start[r + 1] - receive_start[r]) * bytes;
        if (r != comm->rank && sent + received > 0)
        {
            char* to              = received > 0 ? (char*)receive + (size_t)receive_start[r] * bytes : NULL;
            ranks->parcels[num++] = (gmxfmm_parcel){r, send, sent, to, received};
        }
    }
    return exchange(comm, num, ranks->parcels);
}
