/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The way of particles from the ranks that give them to those that own them, and of results back. */
#ifndef TREECODE_RANKS_ROUTE_H
#define TREECODE_RANKS_ROUTE_H

#include "fmm/parallel/ranks.h"

typedef struct
{
    int64_t  given, owned;  /* on this rank */
    int64_t* index;         /* given: numbers in the caller's order, those for rank 0 first, and so on */
    int64_t* send_start;    /* size + 1: which of these are for which rank */
    int64_t* receive_start; /* size + 1: which of the owned ones are of which rank */
    size_t   bytes;
} treecode_route;

/* For particles that belong to ranks owner[n]. *route is zeros or from an earlier call. Collective. Errors: MEMORY. */
gmxfmm_status treecode_route_make(treecode_route*  route,
                                  const fmm_ranks* ranks,
                                  int64_t          n,
                                  const int*       owner,
                                  int              num_threads,
                                  char*            message,
                                  size_t           size);

/* Items of so many numbers each: given[...] in the order of index to the owners, and the other way round. */
gmxfmm_status treecode_route_there(
    const treecode_route* route, const fmm_ranks* ranks, int numbers, const double* given, double* owned);
gmxfmm_status treecode_route_back(
    const treecode_route* route, const fmm_ranks* ranks, int numbers, const double* owned, double* given);

void treecode_route_free(treecode_route* route);

#endif
