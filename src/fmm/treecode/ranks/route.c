/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The way of particles to their owners and back. */
#include "fmm/treecode/ranks/route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void treecode_route_free(treecode_route* route)
{
    free(route->index);
    free(route->send_start);
    free(route->receive_start);
    memset(route, 0, sizeof(*route));
}

/* The particles sorted by owner; next[size] is overwritten. */
static void sort(treecode_route* route, int size, const int* owner, int64_t* next)
{
    for (int64_t i = 0; i < route->given; i++)
    {
        route->send_start[owner[i] + 1]++;
    }
    for (int r = 0; r < size; r++)
    {
        route->send_start[r + 1] += route->send_start[r];
        next[r] = route->send_start[r];
    }
    for (int64_t i = 0; i < route->given; i++)
    {
        route->index[next[owner[i]]++] = i;
    }
}

gmxfmm_status treecode_route_make(
    treecode_route* route, const fmm_ranks* ranks, int64_t n, const int* owner, char* message, size_t size)
{
    const int     num_ranks = ranks->comm.size;
    const size_t  starts    = (size_t)num_ranks + 1;
    int64_t *     sent = malloc(starts * sizeof(*sent)), *received = malloc(starts * sizeof(*received));
    gmxfmm_status status = GMXFMM_OK;
    treecode_route_free(route);
    route->given         = n;
    route->index         = malloc(((size_t)n + 1) * sizeof(*route->index));
    route->send_start    = calloc(starts, sizeof(*route->send_start));
    route->receive_start = calloc(starts, sizeof(*route->receive_start));
    route->bytes         = ((size_t)n + 1 + 2 * starts) * sizeof(int64_t);
    if (sent == NULL || received == NULL || route->index == NULL || route->send_start == NULL ||
        route->receive_start == NULL)
    {
        snprintf(message, size, "out of memory for %lld particles", (long long)n);
        status = GMXFMM_ERROR_MEMORY;
    }
    status = fmm_ranks_agree(&ranks->comm, status, message, size);
    if (status == GMXFMM_OK)
    {
        sort(route, num_ranks, owner, sent);
        for (int r = 0; r < num_ranks; r++)
        {
            sent[r] = route->send_start[r + 1] - route->send_start[r];
        }
        status = fmm_ranks_one_each(ranks, sizeof(*sent), sent, received);
    }
    for (int r = 0; r < num_ranks && status == GMXFMM_OK; r++)
    {
        route->receive_start[r + 1] = route->receive_start[r] + received[r];
    }
    free(sent);
    free(received);
    if (status != GMXFMM_OK)
    {
        treecode_route_free(route);
        return status;
    }
    route->owned = route->receive_start[num_ranks];
    return GMXFMM_OK;
}

gmxfmm_status treecode_route_there(
    const treecode_route* route, const fmm_ranks* ranks, int numbers, const double* given, double* owned)
{
    return fmm_ranks_some_each(ranks, (size_t)numbers * sizeof(double), given, route->send_start, owned,
                               route->receive_start);
}

gmxfmm_status treecode_route_back(
    const treecode_route* route, const fmm_ranks* ranks, int numbers, const double* owned, double* given)
{
    return fmm_ranks_some_each(ranks, (size_t)numbers * sizeof(double), owned, route->receive_start, given,
                               route->send_start);
}
