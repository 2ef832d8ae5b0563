/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Particles: how many, which pairs are excluded, where targets are, and which cells hold them. */
#include "fmm/particles.h"

#include <stdlib.h>
#include <string.h>

#include "fmm/backend.h"
#include "fmm/exclusions.h"
#include "fmm/frame.h"
#include "fmm/memory.h"
#include "fmm/numbers.h"
#include "fmm/process.h"
#include "fmm/state.h"
#include "fmm/status.h"

void fmm_particles_unassign(gmxfmm_plan* plan)
{
    plan->particles.assign_begun  = 0;
    plan->particles.cells_version = 0;
    plan->particles.version++;
    plan->particles.graph_version++;
}

static void free_exclusions(gmxfmm_plan* plan)
{
    fmm_particles* p = &plan->particles;
    if (plan->backend->free_exclusions != NULL)
    {
        plan->backend->free_exclusions(plan);
    }
    free(p->excl_start);
    free(p->excl_list);
    p->excl_start = p->excl_list = NULL;
    plan->bytes -= p->exclusion_bytes;
    p->exclusion_bytes = 0;
    p->pairs_version++;
    fmm_particles_unassign(plan);
}

static void free_targets(gmxfmm_plan* plan)
{
    fmm_particles* p = &plan->particles;
    free(p->target_x);
    plan->bytes -= p->target_bytes;
    p->target_x     = NULL;
    p->target_bytes = 0;
    p->num_targets  = 0;
    p->pairs_version++;
    fmm_particles_unassign(plan);
}

void fmm_particles_free(gmxfmm_plan* plan)
{
    free_exclusions(plan);
    free_targets(plan);
}

void fmm_particles_set_number(gmxfmm_plan* plan, int64_t n)
{
    free_exclusions(plan);
    plan->particles.n = n;
}

gmxfmm_status fmm_particles_exclude_none(gmxfmm_plan* plan)
{
    return plan->backend->set_exclusions == NULL ? GMXFMM_OK
                                                 : plan->backend->set_exclusions(plan, NULL, NULL, plan->particles.n);
}

/* Copies the list, each partner of a particle once and itself not: a backend takes every entry for a pair. */
static gmxfmm_status keep_exclusions(gmxfmm_plan* plan, const int* start, const int* list)
{
    fmm_particles* p      = &plan->particles;
    const size_t   before = plan->bytes, num = (size_t)start[p->n];
    int*           met = calloc((size_t)p->n + 1, sizeof(*met)); /* 1 + the last particle that has it as a partner */
    p->excl_start      = fmm_alloc(plan, ((size_t)p->n + 1) * sizeof(int));
    p->excl_list       = fmm_alloc(plan, num * sizeof(int));
    p->exclusion_bytes = plan->bytes - before;
    if (met == NULL || p->excl_start == NULL || p->excl_list == NULL)
    {
        free(met);
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %zu exclusions", num);
    }
    int kept = 0;
    for (int i = 0; i < (int)p->n; i++)
    {
        met[i] = i + 1;
        for (int e = start[i]; e < start[i + 1]; e++)
        {
            const int j        = list[e];
            p->excl_list[kept] = j;
            kept += met[j] != i + 1;
            met[j] = i + 1;
        }
        p->excl_start[i + 1] = kept;
    }
    free(met);
    return GMXFMM_OK;
}

static gmxfmm_status take_exclusions(gmxfmm_plan* plan, const int* start, const int* list)
{
    free_exclusions(plan);
    gmxfmm_status status = start != NULL ? keep_exclusions(plan, start, list) : GMXFMM_OK;
    status               = status == GMXFMM_OK ? plan->backend->set_exclusions(plan, plan->particles.excl_start,
                                                                               plan->particles.excl_list, plan->particles.n)
                                               : status;
    if (status != GMXFMM_OK)
    {
        free_exclusions(plan);
    }
    return status;
}

gmxfmm_status fmm_particles_take(gmxfmm_plan* plan, const int* names, const int* start, const int* list)
{
    plan->particles.names = names;
    return take_exclusions(plan, start, list);
}

static gmxfmm_status set_exclusions(gmxfmm_plan* plan, const int* start, const int* list)
{
    if (plan->charges.q == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_ORDER, "set_charges must come before set_exclusions");
    }
    if (plan->backend->set_exclusions == NULL)
    {
        return start == NULL ? GMXFMM_OK : fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED, "%s", plan->backend->no_exclusions);
    }
    if (start != NULL && list == NULL && start[plan->particles.n] > 0)
    {
        return fmm_fail(plan, GMXFMM_ERROR_NULL, "list of exclusions is NULL");
    }
    gmxfmm_status status = fmm_check_threads(plan);
    if (status == GMXFMM_OK && plan->ranks != NULL) /* partners are on any rank: all rows are checked together */
    {
        free_exclusions(plan);
        return plan->backend->set_exclusions(plan, start, list, plan->particles.n);
    }
    status =
        status == GMXFMM_OK && start != NULL ? fmm_check_exclusions(plan, (int)plan->particles.n, start, list) : status;
    return status == GMXFMM_OK ? take_exclusions(plan, start, list) : status;
}

gmxfmm_status gmxfmm_set_exclusions(gmxfmm_plan* plan, const int* start, const int* list)
{
    return plan == NULL ? GMXFMM_ERROR_NULL : fmm_agree(plan, set_exclusions(plan, start, list));
}

static gmxfmm_status set_targets(gmxfmm_plan* plan, int64_t n, const void* x)
{
    if (x == NULL && n > 0)
    {
        return fmm_fail(plan, GMXFMM_ERROR_NULL, "positions are NULL");
    }
    if (n < 0 || n > INT32_MAX / 4)
    {
        return fmm_fail(plan, GMXFMM_ERROR_OPTION, "number of targets is %lld, allowed is 0 to %d", (long long)n,
                        INT32_MAX / 4);
    }
    gmxfmm_status status = fmm_check_threads(plan);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    fmm_particles_unassign(plan);
    /* what was measured is not of these; of several ranks all know that, whichever of them has some */
    plan->particles.pairs_version += n > 0 || plan->particles.num_targets > 0 || plan->ranks != NULL;
    if (n != plan->particles.num_targets)
    {
        free_targets(plan);
        plan->particles.num_targets = n;
    }
    status = plan->backend->set_targets(plan, x);
    if (status != GMXFMM_OK)
    {
        free_targets(plan);
    }
    return status;
}

gmxfmm_status gmxfmm_set_targets(gmxfmm_plan* plan, int64_t n, const void* x)
{
    if (plan == NULL)
    {
        return GMXFMM_ERROR_NULL;
    }
    const gmxfmm_status status = fmm_agree(plan, set_targets(plan, n, x));
    if (status != GMXFMM_OK && plan->ranks != NULL)
    {
        free_targets(plan); /* no rank goes on with targets that others do not have */
    }
    return status;
}

gmxfmm_status fmm_particles_keep_targets(gmxfmm_plan* plan, const void* x)
{
    fmm_particles* p   = &plan->particles;
    const size_t   num = 3 * (size_t)p->num_targets;
    if (p->target_x == NULL)
    {
        const size_t before = plan->bytes;
        p->target_x         = fmm_alloc(plan, num * sizeof(double));
        p->target_bytes     = plan->bytes - before;
    }
    if (p->target_x == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %lld targets", (long long)p->num_targets);
    }
    for (size_t i = 0; i < num; i++)
    {
        p->target_x[i] = fmm_number_of(x, plan->options.array_type, (int64_t)i);
    }
    fmm_frame_targets(plan, NULL, p->target_x, (size_t)p->num_targets);
    return GMXFMM_OK;
}

void fmm_particles_turn_targets(gmxfmm_plan* plan, const double* before)
{
    if (plan->particles.target_x != NULL && memcmp(before, plan->frame.axes, sizeof(plan->frame.axes)) != 0)
    {
        fmm_frame_targets(plan, before, plan->particles.target_x, (size_t)plan->particles.num_targets);
    }
}

/* Pairs of far cells are at least so far apart that min_distance does not reach them. */
static gmxfmm_status check_min_distance(gmxfmm_plan* plan)
{
    const fmm_cells* cells = &plan->domain.cells;
    const double     least = plan->options.min_distance;
    return least > 0 && least > cells->edge * fmm_near_range(cells, plan->domain.separation)
               ? fmm_fail(plan, GMXFMM_ERROR_OPTION,
                          "min_distance is %g, more than cells of edge %g hold: use larger ones", least, cells->edge)
               : GMXFMM_OK;
}

gmxfmm_status fmm_particles_check_assigned(gmxfmm_plan* plan)
{
    return fmm_is_assigned(plan)
               ? GMXFMM_OK
               : fmm_fail(plan, GMXFMM_ERROR_ORDER,
                          "assign must come before execute, and after another number of particles, new exclusions or a "
                          "box of quite another shape");
}

gmxfmm_status fmm_particles_assign(gmxfmm_plan* plan, const void* x)
{
    gmxfmm_status status = plan->backend->assign(plan, x);
    status               = status == GMXFMM_OK && plan->backend->set_grid != NULL ? check_min_distance(plan) : status;
    plan->particles.cells_version  = status == GMXFMM_OK ? plan->domain.cells_version : 0;
    plan->particles.origin_version = plan->domain.origin_version;
    return status;
}

gmxfmm_status fmm_particles_enqueue_assign(gmxfmm_plan* plan, const void* x, void* stream)
{
    plan->particles.version++;
    plan->particles.assign_begun = 0;
    return plan->backend->enqueue_assign(plan, x, stream);
}

gmxfmm_status fmm_particles_enqueue_assign_part(gmxfmm_plan* plan, gmxfmm_assign_part part, const void* x, void* stream)
{
    const gmxfmm_status status   = plan->backend->enqueue_assign_part(plan, part, x, stream);
    plan->particles.assign_begun = status == GMXFMM_OK && part != GMXFMM_ASSIGN_END;
    plan->particles.version += part == GMXFMM_ASSIGN_END;
    return status;
}
