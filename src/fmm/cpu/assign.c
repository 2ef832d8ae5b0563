/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Assignment of the particles to cells: cells, excluded pairs, and what a step needs for them (search steps). */
#include "fmm/cpu/assign.h"

#include <stdlib.h>

#include "fmm/cpu/near/excluded_pairs.h"
#include "fmm/cpu/near/p2p.h"
#include "fmm/cpu/near/widths.h"
#include "fmm/cpu/particles/particles.h"

static gmxfmm_status assign_particles(gmxfmm_plan* plan, const void* x)
{
    const gmxfmm_status status = plan->cpu->path->assign(plan, x);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    fmm_set_references(plan, x);
    return fmm_excluded_pairs(plan);
}

static gmxfmm_status reserve_scratch(gmxfmm_plan* plan)
{
    const size_t near = fmm_p2p_scratch(plan), far = fmm_block_scratch(plan->far.order);
    const size_t wide = fmm_widths_scratch(plan), most = near > far ? near : far;
    const size_t bytes = ((most > wide ? most : wide) + 2 * FMM_ALIGN - 1) / FMM_ALIGN * FMM_ALIGN;
    if (bytes > plan->cpu->scratch_bytes)
    {
        free(plan->cpu->scratch);
        plan->bytes -= plan->cpu->scratch_bytes * (size_t)plan->most_threads;
        const size_t before = plan->bytes, wanted = bytes + bytes / 8; /* density fluctuates from search to search */
        plan->cpu->scratch_bytes = wanted / FMM_ALIGN * FMM_ALIGN;
        plan->cpu->scratch       = fmm_alloc(plan, plan->cpu->scratch_bytes * (size_t)plan->most_threads);
        plan->bytes              = before + plan->cpu->scratch_bytes * (size_t)plan->most_threads;
        if (plan->cpu->scratch == NULL)
        {
            plan->cpu->scratch_bytes = 0;
            return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for near lists");
        }
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cpu_assign(gmxfmm_plan* plan, const void* x)
{
    if (plan->cpu->mask_start == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "there was no memory for exclusions: set them again");
    }
    gmxfmm_status status = assign_particles(plan, x);
    status               = status == GMXFMM_OK ? fmm_widths_assign(plan) : status;
    status               = status == GMXFMM_OK ? reserve_scratch(plan) : status;
    return status == GMXFMM_OK && plan->cpu->path->reserve != NULL ? plan->cpu->path->reserve(plan) : status;
}
