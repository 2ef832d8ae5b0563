/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads of a process as ranks: each shows what it sends, all wait for each other, copy what is theirs, and wait
 * again before anything may be overwritten. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/gmxfmm_parallel.h"
#include "fmm/parallel/copy.h"
#include "fmm/parallel/threads.h"

/* What a rank shows. */
typedef struct
{
    const void*          data; /* of all_gather */
    int                  n;    /* of exchange, and so is the next line */
    const gmxfmm_parcel* parcels;
} shown;

/* The context of a rank's communicator. */
typedef struct
{
    gmxfmm_threads* all;
    int             rank;
} member;

struct gmxfmm_threads
{
    int             size;
    pthread_mutex_t mutex;
    pthread_cond_t  moved;
    int             waiting;
    unsigned        turn; /* of waiting: those of the turn before may go */
    shown*          shown;
    member*         members;
};

static void wait_for_all(gmxfmm_threads* t)
{
    pthread_mutex_lock(&t->mutex);
    const unsigned turn = t->turn;
    if (++t->waiting == t->size)
    {
        t->waiting = 0;
        t->turn++;
        pthread_cond_broadcast(&t->moved);
    }
    while (turn == t->turn)
    {
        pthread_cond_wait(&t->moved, &t->mutex);
    }
    pthread_mutex_unlock(&t->mutex);
}

static int all_gather(void* context, const void* send, size_t bytes, void* receive)
{
    const member*   p      = context;
    gmxfmm_threads* t      = p->all;
    t->shown[p->rank].data = send;
    wait_for_all(t);
    for (int r = 0; r < t->size; r++)
    {
        memcpy((char*)receive + (size_t)r * bytes, t->shown[r].data, bytes);
    }
    wait_for_all(t);
    return 0;
}

/* What a peer has for this rank; NULL: nothing. */
static const gmxfmm_parcel* parcel_for(const shown* peer, int rank)
{
    for (int i = 0; i < peer->n; i++)
    {
        if (peer->parcels[i].peer == rank)
        {
            return &peer->parcels[i];
        }
    }
    return NULL;
}

static int exchange(void* context, int n, const gmxfmm_parcel* m)
{
    const member*   p         = context;
    gmxfmm_threads* t         = p->all;
    int             failed    = 0;
    t->shown[p->rank].n       = n;
    t->shown[p->rank].parcels = m;
    wait_for_all(t);
    for (int i = 0; i < n; i++)
    {
        const gmxfmm_parcel* sent =
            m[i].peer >= 0 && m[i].peer < t->size ? parcel_for(&t->shown[m[i].peer], p->rank) : NULL;
        if (sent == NULL || sent->send_bytes != m[i].receive_bytes)
        {
            failed = 1;
        }
        else if (sent->send_bytes > 0)
        {
            fmm_ranks_copy(m[i].receive, sent->send, sent->send_bytes, t->size);
        }
    }
    wait_for_all(t);
    return failed;
}

int fmm_ranks_are_threads(const gmxfmm_comm* comm)
{
    return comm->all_gather == all_gather;
}

gmxfmm_status gmxfmm_threads_create(gmxfmm_threads** threads, int size)
{
    if (threads == NULL)
    {
        return GMXFMM_ERROR_NULL;
    }
    *threads = NULL;
    if (size < 1)
    {
        return GMXFMM_ERROR_OPTION;
    }
    gmxfmm_threads* made = calloc(1, sizeof(*made));
    if (made == NULL)
    {
        return GMXFMM_ERROR_MEMORY;
    }
    made->size    = size;
    made->shown   = calloc((size_t)size, sizeof(*made->shown));
    made->members = calloc((size_t)size, sizeof(*made->members));
    if (made->shown == NULL || made->members == NULL || pthread_mutex_init(&made->mutex, NULL) != 0)
    {
        free(made->shown);
        free(made->members);
        free(made);
        return GMXFMM_ERROR_MEMORY;
    }
    if (pthread_cond_init(&made->moved, NULL) != 0)
    {
        pthread_mutex_destroy(&made->mutex);
        free(made->shown);
        free(made->members);
        free(made);
        return GMXFMM_ERROR_MEMORY;
    }
    for (int r = 0; r < size; r++)
    {
        made->members[r] = (member){made, r};
    }
    *threads = made;
    return GMXFMM_OK;
}

gmxfmm_comm gmxfmm_threads_comm(gmxfmm_threads* threads, int rank)
{
    gmxfmm_comm comm = {0};
    if (threads != NULL && rank >= 0 && rank < threads->size)
    {
        comm = (gmxfmm_comm){rank, threads->size, &threads->members[rank], all_gather, exchange, 0};
    }
    return comm;
}

void gmxfmm_threads_destroy(gmxfmm_threads* threads)
{
    if (threads != NULL)
    {
        pthread_cond_destroy(&threads->moved);
        pthread_mutex_destroy(&threads->mutex);
        free(threads->shown);
        free(threads->members);
        free(threads);
    }
}
