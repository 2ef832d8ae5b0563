/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What ranks that compute a step together have in common. */
#ifndef FMM_CPU_RANKS_H
#define FMM_CPU_RANKS_H

#include "fmm/cpu/state.h"
#include "fmm/parallel/ranks.h"

/* Makes the plan, of cells of one level and periodic along all vectors, compute a step together with those of the other
 * ranks, all of which have the same options and particles: each the results of its own particles, and all sums.
 * Execute is collective then, and returns COMM where an exchange failed. */
void fmm_cpu_share(gmxfmm_plan* plan, const fmm_ranks* ranks);

/* First sorted place of the particles of a rank; of the one behind the last: their number. */
int64_t fmm_cpu_first_of_rank(const gmxfmm_plan* plan, int rank);

/* Items that other ranks have made, each its share of num (fmm_own_of), from these. Collective; nothing on one rank. */
void fmm_gather_shares(gmxfmm_plan* plan, void* items, size_t bytes, int num);
/* The same of rows of plan->cpu->partial that other ranks have made. */
void fmm_gather_rows(gmxfmm_plan* plan);

#endif
