/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks of the list of excluded pairs. */
#include "fmm/exclusions.h"

#include "fmm/math/threads.h"
#include "fmm/state.h"
#include "fmm/status.h"

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
static int find_outsider(const int* start, const int* list, int n, int i)
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
gmxfmm_status fmm_check_exclusions(gmxfmm_plan* plan, const int* start, const int* list)
{
    const int n = (int)plan->particles.n, threads = n > FMM_FEW_PARTICLES ? plan->num_threads : 1;
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
        bad = find_outsider(start, list, n, i) < start[i + 1] && i < bad ? i : bad;
    }
    if (bad < n)
    {
        return fmm_fail(plan, GMXFMM_ERROR_EXCLUSION, "particle %d excludes particle %d, which is not among 0 to %d",
                        bad, list[find_outsider(start, list, n, bad)], n - 1);
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
