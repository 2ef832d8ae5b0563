/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The way of particles from the ranks that give them to those that own them, and of results back. */
#ifndef TREECODE_RANKS_ROUTE_H
#define TREECODE_RANKS_ROUTE_H

#include "fmm/parallel/ranks.h"
#include "gmxfmm.h"

typedef struct
{
    int64_t  given, owned;       /* on this rank */
    int64_t* index;              /* given: numbers in the caller's order, those for rank 0 first, and so on */
    int64_t* send_start;         /* size + 1: which of these are for which rank */
    int64_t* receive_start;      /* size + 1: which of the owned ones are of which rank */
    int64_t  own_begin, own_end; /* those of index that stay: number k of these is */
    int64_t  own_shift;          /* number k + own_shift of the owned ones */
    int64_t  room;               /* of index */
    size_t   bytes;
} treecode_route;

/* For particles that belong to ranks owner[n]. *route is zeros or from an earlier call, whose memory it takes where
 * that is enough, as pages of new memory cost time. Collective. Errors: MEMORY. */
gmxfmm_status treecode_route_make(treecode_route*  route,
                                  const fmm_ranks* ranks,
                                  int64_t          n,
                                  const int*       owner,
                                  int              num_threads,
                                  char*            message,
                                  size_t           size);

/* Items of so many numbers each, given[numbers * n] in the caller's order, to owned[] at their owners.
 * travel[numbers * n] is overwritten. */
gmxfmm_status treecode_route_there(const treecode_route* route,
                                   const fmm_ranks*      ranks,
                                   int                   numbers,
                                   const void*           given,
                                   gmxfmm_precision      type,
                                   double*               travel,
                                   double*               owned,
                                   int                   num_threads);

/* The other way round. Item k of index is then at treecode_route_item. */
gmxfmm_status treecode_route_back(
    const treecode_route* route, const fmm_ranks* ranks, int numbers, const double* owned, double* travel);

/* Whether item k of index belongs to the rank that gives it: it does not travel, but is copied from one array to the
 * other. */
static inline int treecode_route_stays(const treecode_route* route, int64_t k)
{
    return k >= route->own_begin && k < route->own_end;
}

static inline const double*
treecode_route_item(const treecode_route* route, int numbers, const double* owned, const double* travel, int64_t k)
{
    return treecode_route_stays(route, k) ? owned + numbers * (k + route->own_shift) : travel + numbers * k;
}

void treecode_route_free(treecode_route* route);

#endif
