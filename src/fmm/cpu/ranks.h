/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What ranks that compute a step together have in common. */
#ifndef FMM_CPU_RANKS_H
#define FMM_CPU_RANKS_H

#include "fmm/cpu/state.h"
#include "fmm/parallel/ranks.h"

/* Memory for what the ranks have of each step, where there are several (plan->shared). Execute is collective then, and
 * returns COMM where an exchange failed. Errors: MEMORY. */
gmxfmm_status fmm_shares_create(gmxfmm_plan* plan);
void          fmm_shares_free(gmxfmm_plan* plan);

/* Gives each rank as many rows of cells, in whole blocks. */
void fmm_shares_even(gmxfmm_plan* plan);
/* The same by the work in each rank's part: of_row, that of each row; speed, work a rank does in a unit of time; extra,
 * time that it needs for what is not in rows. The same on all ranks. */
void fmm_shares_by_work(gmxfmm_plan* plan, const double* of_row, const double* speed, const double* extra);

/* The first num of the ranks' parcels, which the caller has filled; counts bytes, and time to *seconds. Collective. */
void fmm_shares_send(gmxfmm_plan* plan, int num, double* seconds);

/* Items that other ranks have made, each its part (starts), from these. Collective; nothing on one rank. */
void fmm_gather_parts(gmxfmm_plan* plan, void* items, size_t bytes, const int* starts);
/* The same of rows of plan->cpu->partial that other ranks have made. */
void fmm_gather_rows(gmxfmm_plan* plan);

/* v[num] becomes the sums of all ranks, in their order. num: at most FMM_PARTIAL. Collective; nothing on one rank. */
void fmm_sum_over_ranks(gmxfmm_plan* plan, double* v, int num);

/* Adds the time since *from, but for exchanges, to *sum and starts anew. */
static inline void fmm_lap_alone(gmxfmm_plan* plan, double* from, double* sum)
{
    const double now = fmm_time();
    *sum += now - *from - plan->cpu->shares.waited;
    *from                    = now;
    plan->cpu->shares.waited = 0;
}

#endif
