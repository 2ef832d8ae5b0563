/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gmxfmm solve on several ranks: the first one reads, gives the library all particles and prints; the others share the
 * sums. */
#ifndef GMXFMM_MAIN_RANKS_H
#define GMXFMM_MAIN_RANKS_H

#include "gmxfmm_parallel.h"

typedef struct main_ranks
{
    gmxfmm_comm comm;
    int         told; /* the first rank has told the others what to do */
} main_ranks;

/* What the first rank tells: whether there is anything to solve, and which calls follow. */
typedef struct
{
    int            solves, measures, excludes, has_targets;
    gmxfmm_options options;
    int            has_box;
    double         box[9];
} main_task;

/* On the first rank, once: main_solve.c or main_measure.c before it makes a plan, or else the program's end. */
gmxfmm_status main_ranks_tell(main_ranks* ranks, const main_task* task);

/* On the others: hears the task and makes the same calls as the first rank, without particles. */
void main_ranks_follow(main_ranks* ranks);

#endif
