/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Particles into the leaves of the octree, at search steps: they are sorted by the places of their cells. */
#include <stdlib.h>

#include "fmm/cpu/octree/octree.h"
#include "fmm/cpu/particles/particles.h"
#include "fmm/geometry/tree_sort.h"
#include "fmm/numbers.h"

/* Leaf of each of the particles, as keys in items. Returns the first without one (not finite), or -1. */
static int64_t particle_keys(const gmxfmm_plan* plan, const void* x, gmxfmm_precision type, int64_t n, fmm_keyed* items)
{
    int64_t bad = INT64_MAX;
#pragma omp parallel for schedule(static) num_threads(plan->num_threads) reduction(min : bad)
    for (int64_t i = 0; i < n; i++)
    {
        double rest[3];
        int    at[3] = {0, 0, 0};
        double xi[3];
        for (int d = 0; d < 3; d++)
        {
            xi[d] = fmm_number_of(x, type, 3 * i + d);
        }
        if (fmm_locate(&plan->domain.cells, xi, at, rest))
        {
            fmm_into_grid(plan->domain.cells.periodic, plan->domain.cells.inner, at);
        }
        else
        {
            bad = i < bad ? i : bad;
        }
        items[i] = fmm_with_key(fmm_is_adaptive(plan) ? fmm_morton_key(at) : fmm_cell_key(at), (int)i);
    }
    return bad == INT64_MAX ? -1 : bad;
}

gmxfmm_status fmm_tree_assign(gmxfmm_plan* plan, const void* x)
{
    const size_t  na = (size_t)plan->particles.n, nb = (size_t)plan->particles.num_targets;
    fmm_keyed*    memory = malloc((2 * (na + nb) + 1) * sizeof(*memory));
    fmm_keyed *   a = memory, *b = memory + na, *buffer = memory + na + nb;
    gmxfmm_status status = GMXFMM_OK;
    if (memory == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory to sort particles");
    }
    int64_t     bad  = particle_keys(plan, x, plan->options.array_type, plan->particles.n, a);
    const char* what = "particle";
    if (bad < 0)
    {
        bad  = particle_keys(plan, plan->particles.target_x, GMXFMM_DOUBLE, plan->particles.num_targets, b);
        what = "target";
    }
    if (bad >= 0)
    {
        status = fmm_fail(plan, GMXFMM_ERROR_POSITION, "position of %s %lld is not finite, or too far away", what,
                          (long long)bad);
    }
    else
    {
        fmm_sort_keys(a, buffer, na, plan->num_threads);
        fmm_sort_keys(b, buffer, nb, plan->num_threads);
        status = fmm_is_adaptive(plan) ? fmm_adaptive_levels(plan, a, b) : fmm_even_levels(plan, a, b, buffer);
    }
    free(memory);
    return status;
}
