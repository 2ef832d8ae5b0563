/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pairs left out: the list as given, checked; the backend finds out which are near and which far. */
#include <stdlib.h>
#include <string.h>

#include "fmm/backend.h"
#include "fmm/math/threads.h"
#include "fmm/plan.h"

void fmm_free_exclusions(gmxfmm_plan* plan)
{
    if (plan->backend->free_exclusions != NULL)
    {
        plan->backend->free_exclusions(plan);
    }
    free(plan->excl_start);
    free(plan->excl_list);
    plan->excl_start = plan->excl_list = NULL;
    plan->bytes -= plan->exclusion_bytes;
    plan->exclusion_bytes = 0;
    plan->exclusions_set  = 0;
    plan->assigned        = 0;
}

static int has_partner(const int* start, const int* list, int i, int j)
{
    for (int e = start[i]; e < start[i + 1]; e++)
    {
        if (list[e] == j)
        {
            return 1;
        }
    }
    return 0;
}

/* The first element in the list of particle i that is no particle, or start[i + 1]. */
static int find_stranger(const int* start, const int* list, int n, int i)
{
    int e = start[i];
    while (e < start[i + 1] && list[e] >= 0 && list[e] < n)
    {
        e++;
    }
    return e;
}

/* The first that does not have particle i in its own list, or start[i + 1]. */
static int find_one_sided(const int* start, const int* list, int i)
{
    int e = start[i];
    while (e < start[i + 1] && has_partner(start, list, list[e], i))
    {
        e++;
    }
    return e;
}

/* Each loop relies on what those before it have seen, and finds the first particle whose list is wrong. */
static gmxfmm_status check_exclusions(gmxfmm_plan* plan, const int* start, const int* list)
{
    const int n = (int)plan->num_charges, threads = n > FMM_FEW_PARTICLES ? plan->num_threads : 1;
    int       bad = n;
    if (start[0] != 0)
    {
        return fmm_fail(plan, GMXFMM_ERROR_EXCLUSION, "exclusions of particle 0 start at %d, not at 0", start[0]);
    }
#pragma omp parallel for schedule(static) num_threads(threads) reduction(min : bad)
    for (int i = 0; i < n; i++)
    {
        bad = start[i + 1] < start[i] && i < bad ? i : bad;
    }
    if (bad < n)
    {
        return fmm_fail(plan, GMXFMM_ERROR_EXCLUSION, "exclusions of particle %d end at %d, before they start at %d",
                        bad, start[bad + 1], start[bad]);
    }
#pragma omp parallel for schedule(static) num_threads(threads) reduction(min : bad)
    for (int i = 0; i < n; i++)
    {
        bad = find_stranger(start, list, n, i) < start[i + 1] && i < bad ? i : bad;
    }
    if (bad < n)
    {
        return fmm_fail(plan, GMXFMM_ERROR_EXCLUSION, "particle %d excludes particle %d, which is not among 0 to %d",
                        bad, list[find_stranger(start, list, n, bad)], n - 1);
    }
#pragma omp parallel for schedule(static) num_threads(threads) reduction(min : bad)
    for (int i = 0; i < n; i++)
    {
        bad = find_one_sided(start, list, i) < start[i + 1] && i < bad ? i : bad;
    }
    return bad == n
               ? GMXFMM_OK
               : fmm_fail(plan, GMXFMM_ERROR_EXCLUSION, "particle %d excludes particle %d, but not the other way round",
                          bad, list[find_one_sided(start, list, bad)]);
}

gmxfmm_status gmxfmm_set_exclusions(gmxfmm_plan* plan, const int* start, const int* list)
{
    if (plan == NULL)
    {
        return GMXFMM_ERROR_NULL;
    }
    if (plan->charge == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_ORDER, "set_charges must come before set_exclusions");
    }
    if (plan->backend->set_exclusions == NULL)
    {
        return start == NULL
                   ? GMXFMM_OK
                   : fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED, "the treecode leaves out no pairs: use method = fmm");
    }
    plan->graph_version++;
    const size_t n   = (size_t)plan->num_charges;
    const int    num = start != NULL ? start[n] : 0;
    if (start != NULL && list == NULL && num > 0)
    {
        return fmm_fail(plan, GMXFMM_ERROR_NULL, "list of exclusions is NULL");
    }
    if (start != NULL)
    {
        const gmxfmm_status status = check_exclusions(plan, start, list);
        if (status != GMXFMM_OK)
        {
            return status;
        }
    }
    fmm_free_exclusions(plan);
    const size_t before = plan->bytes;
    if (start != NULL)
    {
        plan->excl_start      = fmm_alloc(plan, (n + 1) * sizeof(int));
        plan->excl_list       = fmm_alloc(plan, (size_t)num * sizeof(int));
        plan->exclusion_bytes = plan->bytes - before;
        if (!plan->excl_start || !plan->excl_list)
        {
            fmm_free_exclusions(plan);
            return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %d exclusions", num);
        }
        memcpy(plan->excl_start, start, (n + 1) * sizeof(int));
        memcpy(plan->excl_list, list, (size_t)num * sizeof(int));
    }
    const gmxfmm_status status = plan->backend->set_exclusions(plan, start, list, plan->num_charges);
    plan->exclusions_set       = status == GMXFMM_OK;
    if (status != GMXFMM_OK)
    {
        fmm_free_exclusions(plan);
    }
    return status;
}
