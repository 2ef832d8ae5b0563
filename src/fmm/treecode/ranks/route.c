/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The way of particles to their owners and back. */
#include "fmm/treecode/ranks/route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/numbers.h"

enum
{
    c_few = 100000 /* particles that one thread sorts: fewer are not worth a team */
};

void treecode_route_free(treecode_route* route)
{
    free(route->index);
    free(route->send_start);
    free(route->receive_start);
    memset(route, 0, sizeof(*route));
}

/* Memory for n particles and their numbers of each rank. */
static int reserve(treecode_route* route, int64_t n, int num_ranks)
{
    const size_t starts = (size_t)num_ranks + 1;
    if (route->index == NULL || n > route->room)
    {
        treecode_route_free(route);
        route->index         = malloc(((size_t)n + 1) * sizeof(*route->index));
        route->send_start    = malloc(starts * sizeof(*route->send_start));
        route->receive_start = malloc(starts * sizeof(*route->receive_start));
        route->room          = n;
        route->bytes         = ((size_t)n + 1 + 2 * starts) * sizeof(int64_t);
    }
    route->given = n;
    return route->index != NULL && route->send_start != NULL && route->receive_start != NULL;
}

/* The particles sorted by owner, in their order, by parts of them; next[parts][size] is overwritten. */
static void sort(treecode_route* route, int size, const int* owner, int parts, int64_t* next)
{
    const int64_t n = route->given;
    memset(next, 0, (size_t)parts * (size_t)size * sizeof(*next));
#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int part = 0; part < parts; part++)
    {
        int64_t* count = next + (size_t)part * (size_t)size;
        for (int64_t i = n * part / parts; i < n * (part + 1) / parts; i++)
        {
            count[owner[i]]++;
        }
    }
    int64_t sum = 0;
    for (int r = 0; r < size; r++)
    {
        route->send_start[r] = sum;
        for (int part = 0; part < parts; part++)
        {
            int64_t*      count = next + (size_t)part * (size_t)size + r;
            const int64_t num   = *count;
            *count              = sum;
            sum += num;
        }
    }
    route->send_start[size] = sum;
#pragma omp parallel for schedule(static, 1) num_threads(parts)
    for (int part = 0; part < parts; part++)
    {
        int64_t* to = next + (size_t)part * (size_t)size;
        for (int64_t i = n * part / parts; i < n * (part + 1) / parts; i++)
        {
            route->index[to[owner[i]]++] = i;
        }
    }
}

gmxfmm_status treecode_route_make(treecode_route*  route,
                                  const fmm_ranks* ranks,
                                  int64_t          n,
                                  const int*       owner,
                                  int              num_threads,
                                  char*            message,
                                  size_t           size)
{
    const int     num_ranks = ranks->comm.size;
    const size_t  starts    = (size_t)num_ranks + 1;
    const int     parts     = num_threads > 1 && n > c_few ? num_threads : 1;
    int64_t *     sent = malloc(starts * (size_t)parts * sizeof(*sent)), *received = malloc(starts * sizeof(*received));
    gmxfmm_status status = GMXFMM_OK;
    if (!reserve(route, n, num_ranks) || sent == NULL || received == NULL)
    {
        snprintf(message, size, "out of memory for %lld particles", (long long)n);
        status = GMXFMM_ERROR_MEMORY;
    }
    status = fmm_ranks_agree(&ranks->comm, status, message, size);
    if (status == GMXFMM_OK)
    {
        route->receive_start[0] = 0;
        sort(route, num_ranks, owner, parts, sent);
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
    route->owned     = route->receive_start[num_ranks];
    route->own_begin = route->send_start[ranks->comm.rank];
    route->own_end   = route->send_start[ranks->comm.rank + 1];
    route->own_shift = route->receive_start[ranks->comm.rank] - route->own_begin;
    return GMXFMM_OK;
}

gmxfmm_status treecode_route_there(const treecode_route* route,
                                   const fmm_ranks*      ranks,
                                   int                   numbers,
                                   const void*           given,
                                   gmxfmm_precision      type,
                                   double*               travel,
                                   double*               owned,
                                   int                   num_threads)
{
#pragma omp parallel for schedule(static) num_threads(num_threads)
    for (int64_t k = 0; k < route->given; k++)
    {
        const int64_t i = route->index[k] * numbers;
        double* to = treecode_route_stays(route, k) ? owned + numbers * (k + route->own_shift) : travel + numbers * k;
        for (int d = 0; d < numbers; d++)
        {
            to[d] = fmm_number_of(given, type, i + d);
        }
    }
    return fmm_ranks_some_each(ranks, (size_t)numbers * sizeof(double), travel, route->send_start, owned,
                               route->receive_start);
}

gmxfmm_status treecode_route_back(
    const treecode_route* route, const fmm_ranks* ranks, int numbers, const double* owned, double* travel)
{
    return fmm_ranks_some_each(ranks, (size_t)numbers * sizeof(double), owned, route->receive_start, travel,
                               route->send_start);
}
