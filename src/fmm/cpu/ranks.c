/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sums of a step that several ranks compute together. */
#include "fmm/cpu/ranks.h"

#include <string.h>

void fmm_cpu_share(gmxfmm_plan* plan, const fmm_ranks* ranks)
{
    plan->cpu->ranks     = ranks;
    plan->cpu->rank      = ranks->comm.rank;
    plan->cpu->num_ranks = ranks->comm.size;
}

int64_t fmm_cpu_first_of_rank(const gmxfmm_plan* plan, int rank)
{
    const int* n = plan->domain.cells.n;
    return plan->cpu->sources.cell_start[fmm_share_begin(plan, n[0], rank) * n[1] * n[2]];
}

void fmm_gather_shares(gmxfmm_plan* plan, void* items, size_t bytes, int num)
{
    fmm_cpu*  cpu     = plan->cpu;
    int       parcels = 0;
    fmm_range own     = fmm_own_of(plan, num);
    for (int r = 0; r < (cpu->ranks != NULL ? cpu->num_ranks : 0); r++)
    {
        const fmm_range its  = fmm_share_of(plan, num, r);
        const size_t    sent = (size_t)(own.end - own.begin) * bytes, received = (size_t)(its.end - its.begin) * bytes;
        if (r != cpu->rank && sent + received > 0)
        {
            cpu->ranks->parcels[parcels++] = (gmxfmm_parcel){r, (char*)items + (size_t)own.begin * bytes, sent,
                                                             (char*)items + (size_t)its.begin * bytes, received};
        }
    }
    if (cpu->ranks != NULL)
    {
        cpu->comm_failed |= fmm_ranks_send_parcels(cpu->ranks, parcels) != GMXFMM_OK;
    }
}

void fmm_gather_rows(gmxfmm_plan* plan)
{
    const int    layers = plan->domain.cells.n[0];
    const size_t row    = FMM_PARTIAL * sizeof(double);
    if (plan->cpu->ranks != NULL)
    {
        fmm_gather_shares(plan, plan->cpu->partial, row * (size_t)(plan->cpu->partial_rows / layers), layers);
    }
}
