/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pairs left out (search steps): masked when near, listed when far. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>

#include "fmm/cpu/assign.h"

static const fmm_particles* charges_of(const gmxfmm_plan* plan)
{
    return &plan->cpu->charges;
}

static int cell_of(const gmxfmm_plan* plan, int s)
{
    return charges_of(plan)->cell_of[charges_of(plan)->sorted[s]];
}

/* Cell of particle si minus cell of the nearest image of particle sj, in cells. */
static void nearest_offset(const gmxfmm_plan* plan, int si, int sj, int* offset)
{
    const fmm_cells* c = &plan->cells;
    int              ci[3], cj[3];
    double           t[3];
    fmm_cell_place(plan, cell_of(plan, si), ci);
    fmm_cell_place(plan, cell_of(plan, sj), cj);
    for (int d = 0; d < 3; d++)
    {
        t[d] =
            (ci[d] - cj[d]) + (double)charges_of(plan)->reference[si][d] - (double)charges_of(plan)->reference[sj][d];
        offset[d] = ci[d] - cj[d];
    }
    if (c->periodic)
    {
        fmm_nearest_image(c->n, c->cell, c->rectangular ? NULL : c->box_voronoi, c->box_voronoi_int, t, offset);
    }
}

/* prefix[o]: place of the first particle of near cell o in the list that p2p gathers. Returns the list's length. */
static int near_prefix(const gmxfmm_plan* plan, int cell, int* prefix)
{
    int c[3], num = 0;
    fmm_cell_place(plan, cell, c);
    for (int o = 0; o < plan->cells.num_near; o++)
    {
        const int at = fmm_near_of(plan, cell, c, o);
        prefix[o]    = num;
        num += charges_of(plan)->cell_start[at + 1] - charges_of(plan)->cell_start[at];
    }
    return num;
}

static int num_excluded(const gmxfmm_plan* plan, int i)
{
    return plan->excl_start != NULL ? plan->excl_start[i + 1] - plan->excl_start[i] : 0;
}

/* Place of particle s among those of its cell, which p2p gathers first. */
static int own_place(const gmxfmm_plan* plan, int s)
{
    return s - charges_of(plan)->cell_start[cell_of(plan, s)];
}

/* Pairs left out of the near field of particle s, into its part of the mask; that has room for all exclusions: the rest
 * is the particle itself once more. */
static void mask_near(const gmxfmm_plan* plan, int s, const int* prefix)
{
    const int i    = charges_of(plan)->sorted[s];
    int *     mask = plan->cpu->mask + plan->cpu->mask_start[s], *end = plan->cpu->mask + plan->cpu->mask_start[s + 1];
    *mask++ = own_place(plan, s);
    for (int e = 0; e < num_excluded(plan, i); e++)
    {
        const int j = plan->excl_list[plan->excl_start[i] + e];
        if (j == i)
        {
            continue;
        }
        const int sj = charges_of(plan)->position[j];
        int       offset[3];
        nearest_offset(plan, s, sj, offset);
        const int source[3] = {-offset[0], -offset[1], -offset[2]};
        const int o         = fmm_near_index(&plan->cells, source);
        if (o >= 0)
        {
            *mask++ = prefix[o] + own_place(plan, sj);
        }
    }
    while (mask < end)
    {
        *mask++ = own_place(plan, s);
    }
}

/* Those of its far field, each pair once, to far_pairs. */
static void list_far(gmxfmm_plan* plan, int s)
{
    const int i = charges_of(plan)->sorted[s];
    for (int e = 0; e < num_excluded(plan, i); e++)
    {
        const int j = plan->excl_list[plan->excl_start[i] + e], sj = charges_of(plan)->position[j];
        if (i >= j)
        {
            continue;
        }
        fmm_far_pair pair = {s, sj, {0, 0, 0}};
        nearest_offset(plan, s, sj, pair.offset);
        const int source[3] = {-pair.offset[0], -pair.offset[1], -pair.offset[2]};
        if (fmm_near_index(&plan->cells, source) < 0)
        {
            plan->cpu->far_pairs[plan->cpu->num_far_pairs++] = pair;
        }
    }
}

gmxfmm_status fmm_left_out(gmxfmm_plan* plan)
{
    const fmm_cells*     cells    = &plan->cells;
    const fmm_particles* targets  = fmm_targets(plan);
    const size_t         num_near = (size_t)cells->num_near;
    int*                 prefixes = malloc((size_t)plan->num_threads * num_near * sizeof(int));
    int                  capacity = 0;
    double               sum      = 0; /* over targets, of the particles near them */
    if (prefixes == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory");
    }
    plan->cpu->mask_start[0] = 0;
    for (int64_t s = 0; s < plan->num_charges; s++)
    {
        plan->cpu->mask_start[s + 1] = plan->cpu->mask_start[s] + 1 + num_excluded(plan, charges_of(plan)->sorted[s]);
    }
#pragma omp parallel for schedule(dynamic, 64) num_threads(plan->num_threads) reduction(max : capacity)            \
    reduction(+ : sum)
    for (int cell = 0; cell < plan->num_cells; cell++)
    {
        if (targets->cell_start[cell] == targets->cell_start[cell + 1])
        {
            continue;
        }
        int*      prefix = prefixes + (size_t)omp_get_thread_num() * num_near;
        const int num    = near_prefix(plan, cell, prefix);
        capacity         = num > capacity ? num : capacity;
        sum += (double)num * (targets->cell_start[cell + 1] - targets->cell_start[cell]);
        for (int s = charges_of(plan)->cell_start[cell]; s < charges_of(plan)->cell_start[cell + 1]; s++)
        {
            mask_near(plan, s, prefix);
        }
    }
    free(prefixes);
    plan->cpu->near_capacity = capacity;
    plan->near_particles     = targets->n > 0 ? sum / (double)targets->n : 0;
    plan->cpu->num_far_pairs = 0;
    for (int s = 0; s < plan->num_charges && plan->excl_start != NULL && plan->num_receivers == 0; s++)
    {
        /* a mask that ends with the particle itself is not full: some pairs are far, or it is on its own list */
        const int end = plan->cpu->mask_start[s + 1];
        if (end - plan->cpu->mask_start[s] > 1 && plan->cpu->mask[end - 1] == own_place(plan, s))
        {
            list_far(plan, s);
        }
    }
    return GMXFMM_OK;
}
