/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whether each particle of all ranks has a number of its own, and is excluded by those that it excludes. What is right
 * is seen from sums over all ranks; only to tell what is wrong do numbers and exclusions of all go to all.
 */
#include <stdlib.h>
#include <string.h>

#include "fmm/exclusions.h"
#include "fmm/math/threads.h"
#include "fmm/parallel/ranks.h"
#include "fmm/ranks/state.h"
#include "fmm/state.h"
#include "fmm/status.h"

/* Mixes the bits of a number (Steele et al. 2014, splitmix64). */
static uint64_t mixed(uint64_t v)
{
    v += 0x9e3779b97f4a7c15U;
    v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9U;
    v = (v ^ (v >> 27)) * 0x94d049bb133111ebU;
    return v ^ (v >> 31);
}

/* What this rank sees; summed over ranks, ids and pairs are zero. */
typedef struct
{
    uint64_t ids, pairs, outside;
} seen;

static void see_ids(const gmxfmm_plan* plan, seen* s)
{
    const struct fmm_divided* d    = plan->divided;
    const int                 rank = plan->ranks->comm.rank, size = plan->ranks->comm.size;
    uint64_t                  ids = 0, outside = 0;
#pragma omp parallel num_threads(plan->num_threads) reduction(+ : ids, outside) if (plan->particles.n > FMM_FEW_PARTICLES)
    {
#pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < plan->particles.n; i++)
        {
            const int id = fmm_given_id(plan, i);
            outside += id < 0 || id >= d->total;
            ids += mixed((uint64_t)id);
        }
#pragma omp for schedule(static)
        for (int64_t i = d->total * rank / size; i < d->total * (rank + 1) / size; i++)
        {
            ids -= mixed((uint64_t)i);
        }
    }
    s->ids     = ids;
    s->outside = outside;
}

static void see_pairs(const gmxfmm_plan* plan, seen* s)
{
    const struct fmm_divided* d     = plan->divided;
    const int64_t             n     = d->excl_start != NULL ? plan->particles.n : 0;
    uint64_t                  pairs = 0, outside = 0;
#pragma omp parallel for schedule(static) num_threads(plan->num_threads) reduction(+ : pairs, outside) if (n > FMM_FEW_PARTICLES)
    for (int64_t i = 0; i < n; i++)
    {
        const int a = fmm_given_id(plan, i);
        for (int e = d->excl_start[i]; e < d->excl_start[i + 1]; e++)
        {
            const int      b = d->excl_list[e];
            const uint64_t pair =
                a < b ? mixed((uint64_t)a << 32 | (uint32_t)b) : mixed((uint64_t)b << 32 | (uint32_t)a);
            outside += b < 0 || b >= d->total;
            pairs += a < b ? pair : a > b ? 0 - pair : 0;
        }
    }
    s->pairs = pairs;
    s->outside += outside;
}

/* Items of `bytes` of all ranks, in their order. Collective. */
static gmxfmm_status
gather(const gmxfmm_plan* plan, size_t bytes, const void* own, int64_t num, void* all, const int64_t* start)
{
    if (num > 0)
    {
        memcpy((char*)all + (size_t)start[plan->ranks->comm.rank] * bytes, own, (size_t)num * bytes);
    }
    return fmm_ranks_same_to_all(plan->ranks, bytes, own, num, all, start);
}

static gmxfmm_status gather_starts(const gmxfmm_plan* plan, int64_t num, int64_t* start)
{
    const gmxfmm_status status = fmm_ranks_all_gather(&plan->ranks->comm, &num, sizeof(num), start + 1);
    start[0]                   = 0;
    for (int r = 0; r < plan->ranks->comm.size; r++)
    {
        start[r + 1] += start[r];
    }
    return status;
}

/* What is wrong with the numbers of all particles. */
static gmxfmm_status tell_ids(gmxfmm_plan* plan, const int* ids, char* met)
{
    const int64_t total = plan->divided->total;
    for (int64_t i = 0; i < total; i++)
    {
        const int is_number = ids[i] >= 0 && ids[i] < total;
        if (!is_number || met[ids[i]])
        {
            return fmm_fail(
                plan, GMXFMM_ERROR_OPTION, "the numbers of particles of %lld are to be 0 to %lld, each once: %d is %s",
                (long long)total, (long long)total - 1, ids[i], is_number ? "there twice" : "not among these");
        }
        met[ids[i]] = 1;
    }
    return GMXFMM_OK;
}

/* Rows of all particles in the order of their numbers, from those in the order of ranks, and what is wrong with them.
 */
static gmxfmm_status
tell_pairs(gmxfmm_plan* plan, const int* ids, const int* length, const int* list, int* rows, int* by_id)
{
    const int64_t total = plan->divided->total;
    size_t        from  = 0;
    memset(rows, 0, ((size_t)total + 1) * sizeof(*rows));
    for (int64_t k = 0; k < total; k++)
    {
        rows[ids[k] + 1] = length[k];
    }
    for (int64_t i = 0; i < total; i++)
    {
        rows[i + 1] += rows[i];
    }
    for (int64_t k = 0; k < total; k++)
    {
        memcpy(by_id + rows[ids[k]], list + from, (size_t)length[k] * sizeof(int));
        from += (size_t)length[k];
    }
    return fmm_check_exclusions(plan, (int)total, rows, by_id);
}

/* Looks at the numbers and exclusions of all, one by one. Collective. */
static gmxfmm_status look_closely(gmxfmm_plan* plan)
{
    const struct fmm_divided* d     = plan->divided;
    const size_t              total = (size_t)d->total, size = (size_t)plan->ranks->comm.size;
    const int64_t             n = plan->particles.n, entries = d->excl_start != NULL ? d->excl_start[n] : 0;
    int* const                own = malloc((2 * (size_t)n + 1) * sizeof(int));
    int *const                ids = malloc((total + 1) * sizeof(int)), *length = malloc((total + 1) * sizeof(int));
    int* const                rows  = malloc((total + 1) * sizeof(int));
    char* const               met   = calloc(total + 1, 1);
    int64_t* const            start = malloc((size + 1) * sizeof(int64_t));
    int *                     list = NULL, *by_id = NULL;
    int                       made   = own && ids && length && rows && met && start;
    gmxfmm_status             status = fmm_agree(plan, made ? GMXFMM_OK : fmm_no_memory(plan));
    for (int64_t i = 0; i < n && status == GMXFMM_OK; i++)
    {
        own[i]     = fmm_given_id(plan, i);
        own[n + i] = d->excl_start != NULL ? d->excl_start[i + 1] - d->excl_start[i] : 0;
    }
    status = status == GMXFMM_OK ? gather(plan, sizeof(int), own, n, ids, d->before) : status;
    status = status == GMXFMM_OK ? gather(plan, sizeof(int), own + n, n, length, d->before) : status;
    status = status == GMXFMM_OK ? gather_starts(plan, entries, start) : status;
    if (status == GMXFMM_OK)
    {
        list   = malloc((size_t)start[size] * sizeof(int) + 1);
        by_id  = malloc((size_t)start[size] * sizeof(int) + 1);
        made   = list && by_id;
        status = fmm_agree(plan, made ? GMXFMM_OK : fmm_no_memory(plan));
    }
    status = status == GMXFMM_OK ? gather(plan, sizeof(int), d->excl_list, entries, list, start) : status;
    if (status == GMXFMM_OK)
    {
        status = tell_ids(plan, ids, met);
        status = fmm_agree(plan, status == GMXFMM_OK ? tell_pairs(plan, ids, length, list, rows, by_id) : status);
    }
    free(own);
    free(ids);
    free(length);
    free(rows);
    free(met);
    free(start);
    free(list);
    free(by_id);
    return status;
}

gmxfmm_status fmm_ranks_check(gmxfmm_plan* plan)
{
    const int     size = plan->ranks->comm.size;
    seen          s = {0, 0, 0}, sum = {0, 0, 0};
    seen* const   all    = calloc((size_t)size, sizeof(*all));
    gmxfmm_status status = fmm_agree(plan, all != NULL ? GMXFMM_OK : fmm_no_memory(plan));
    if (status == GMXFMM_OK)
    {
        see_ids(plan, &s);
        see_pairs(plan, &s);
        status = fmm_ranks_all_gather(&plan->ranks->comm, &s, sizeof(s), all);
    }
    for (int r = 0; r < size && status == GMXFMM_OK; r++)
    {
        sum.ids += all[r].ids;
        sum.pairs += all[r].pairs;
        sum.outside += all[r].outside;
    }
    free(all);
    if (status == GMXFMM_OK && (sum.ids != 0 || sum.pairs != 0 || sum.outside != 0))
    {
        status = look_closely(plan);
    }
    plan->divided->checks = plan->divided->checks && status != GMXFMM_OK;
    return status;
}
