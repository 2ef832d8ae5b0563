/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks of the list of excluded pairs. */
#include "fmm/exclusions.h"

#include <stdlib.h>
#include <string.h>

#include "fmm/math/threads.h"
#include "fmm/state.h"
#include "fmm/status.h"

/* Partners of a particle that are looked through one by one; longer lists are halved until they are as short. */
enum
{
    c_few = 16
};

/* Whether particle j is in the list of particle i, which ascends if it is long. */
static int has_partner(const int* start, const int* list, int i, int j)
{
    int from = start[i], to = start[i + 1];
    while (to - from > c_few)
    {
        const int middle = from + (to - from) / 2;
        if (list[middle] > j)
        {
            to = middle;
        }
        else
        {
            from = middle;
        }
    }
    for (int e = from; e < to; e++)
    {
        if (list[e] == j)
        {
            return 1;
        }
    }
    return 0;
}

/* The first of values[from..to-1], which ascend, that is not below a value; `to` if there is none. */
static int lower_bound(const int* values, int from, int to, int value)
{
    while (from < to)
    {
        const int middle = from + (to - from) / 2;
        if (values[middle] < value)
        {
            from = middle + 1;
        }
        else
        {
            to = middle;
        }
    }
    return from;
}

/* Whether each pair of particles begin .. end - 1 is seen to be in both lists by going through all of them once, as it
 * is if they ascend. next[n]: memory. */
static int pass_rows(const int* start, const int* list, int n, int begin, int end, int* next)
{
    int good = 1;
    for (int j = 0; j < n; j++)
    {
        /* the first in the list of each that has not been met */
        next[j] = lower_bound(list, start[j], start[j + 1], begin);
    }
    for (int i = begin; i < end && good; i++)
    {
        for (int e = start[i]; e < start[i + 1] && good; e++)
        {
            const int j = list[e];
            good        = next[j] < start[j + 1] && list[next[j]] == i;
            next[j] += good;
        }
    }
    return good;
}

/* The same of all pairs, each thread with as many entries: it begins with the first particle whose list does behind
 * those of the threads before. */
static int pass_once(const int* start, const int* list, int n, int threads)
{
    int* next = malloc((size_t)threads * (size_t)n * sizeof(*next));
    int  good = next != NULL;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(& : good)
    for (int t = 0; t < threads; t++)
    {
        const int64_t all   = start[n];
        const int     begin = t == 0 ? 0 : lower_bound(start, 0, n, (int)(all * t / threads));
        const int     end   = t == threads - 1 ? n : lower_bound(start, 0, n, (int)(all * (t + 1) / threads));
        good &= next != NULL && pass_rows(start, list, n, begin, end, next + (size_t)t * (size_t)n);
    }
    free(next);
    return good;
}

/* Whether the list of particle i is a long one that does not ascend. */
static int is_mixed(const int* start, const int* list, int i)
{
    int mixed = 0;
    for (int e = start[i] + 1; e < start[i + 1] && start[i + 1] - start[i] > c_few; e++)
    {
        mixed |= list[e - 1] > list[e];
    }
    return mixed;
}

static int earlier(const void* a, const void* b)
{
    const int i = *(const int*)a, j = *(const int*)b;
    return (i > j) - (i < j);
}

/* A copy of the lists in which long ones ascend; NULL without memory. */
static int* ascending(int n, const int* start, const int* list, int threads)
{
    int* copy = malloc((size_t)start[n] * sizeof(*copy));
#pragma omp parallel for schedule(dynamic, 64) num_threads(threads) if (copy != NULL)
    for (int i = 0; i < n; i++)
    {
        const size_t num = (size_t)(start[i + 1] - start[i]);
        if (copy != NULL && num > 0)
        {
            memcpy(copy + start[i], list + start[i], num * sizeof(*copy));
            if (is_mixed(start, list, i))
            {
                qsort(copy + start[i], num, sizeof(*copy), earlier);
            }
        }
    }
    return copy;
}

/* The first element in the list of particle i that is no particle, or start[i + 1]. */
static int find_outsider(const int* start, const int* list, int n, int i)
{
    int e = start[i];
    while (e < start[i + 1] && list[e] >= 0 && list[e] < n)
    {
        e++;
    }
    return e;
}

/* The first that does not have particle i in its own list, or start[i + 1]; rows as list, long ones ascending. */
static int find_one_sided(const int* start, const int* list, const int* rows, int i)
{
    int e = start[i];
    while (e < start[i + 1] && has_partner(start, rows, list[e], i))
    {
        e++;
    }
    return e;
}

/* Each pair has to be in both lists. A molecule may exclude thousands of atoms from one another: long lists are not
 * looked through for each of their pairs. */
static gmxfmm_status check_both_ways(gmxfmm_plan* plan, int n, const int* start, const int* list, int threads)
{
    int bad = n, mixed = 0;
    if (start[n] / c_few > n && pass_once(start, list, n, plan->num_threads))
    {
        return GMXFMM_OK;
    }
#pragma omp parallel for schedule(static) num_threads(threads) reduction(| : mixed)
    for (int i = 0; i < n; i++)
    {
        mixed |= is_mixed(start, list, i);
    }
    int* copy = mixed ? ascending(n, start, list, threads) : NULL;
    if (mixed && copy == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for exclusions");
    }
    const int* rows = mixed ? copy : list;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(min : bad)
    for (int i = 0; i < n; i++)
    {
        bad = find_one_sided(start, list, rows, i) < start[i + 1] && i < bad ? i : bad;
    }
    const int partner = bad < n ? list[find_one_sided(start, list, rows, bad)] : 0;
    free(copy);
    return bad == n ? GMXFMM_OK
                    : fmm_fail(plan, GMXFMM_ERROR_EXCLUSION,
                               "particle %d excludes particle %d, but not the other way round", bad, partner);
}

/* Each loop relies on what those before it have seen, and finds the first particle whose list is wrong. */
gmxfmm_status fmm_check_exclusions(gmxfmm_plan* plan, int n, const int* start, const int* list)
{
    const int threads = n > FMM_FEW_PARTICLES ? plan->num_threads : 1;
    int       bad     = n;
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
        bad = find_outsider(start, list, n, i) < start[i + 1] && i < bad ? i : bad;
    }
    if (bad < n)
    {
        return fmm_fail(plan, GMXFMM_ERROR_EXCLUSION, "particle %d excludes particle %d, which is not among 0 to %d",
                        bad, list[find_outsider(start, list, n, bad)], n - 1);
    }
    return check_both_ways(plan, n, start, list, threads);
}
