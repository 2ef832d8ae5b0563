/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Excluded pairs, at search steps: those of near cells are masked in P2P, others are listed. */
#include "fmm/cpu/near/excluded_pairs.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>

static const fmm_particle_set* charges_of(const gmxfmm_plan* plan)
{
    return &plan->cpu->sources;
}

/* Cell at place[3], in which sorted particle s is, minus cell of the nearest image of particle j, in cells. */
static void nearest_offset(const gmxfmm_plan* plan, int s, const int* place, int j, int* offset)
{
    const fmm_cells*        c  = &plan->domain.cells;
    const fmm_particle_set* p  = charges_of(plan);
    const float *           ri = p->reference[s], *rj = p->reference[p->position[j]];
    int                     other[3];
    double                  t[3];
    fmm_cell_place(plan, p->cell_of[j], other);
    for (int d = 0; d < 3; d++)
    {
        offset[d] = place[d] - other[d];
        t[d]      = offset[d] + (double)ri[d] - (double)rj[d];
    }
    if (fmm_has_images(c->periodic))
    {
        fmm_nearest_image(c->n, c->cell, c->rectangular ? NULL : c->box_voronoi, c->box_voronoi_int, t, offset);
    }
}

/* prefix[o]: place of the first particle of near cell o in the list that p2p gathers. Returns the list's length. */
static int near_prefix(const gmxfmm_plan* plan, int cell, const int* place, int* prefix)
{
    int num = 0;
    for (int o = 0; o < plan->domain.cells.num_near; o++)
    {
        const int at = fmm_near_of(plan, cell, place, o);
        prefix[o]    = num;
        num += charges_of(plan)->cell_start[at + 1] - charges_of(plan)->cell_start[at];
    }
    return num;
}

static int num_excluded(const gmxfmm_plan* plan, int i)
{
    return plan->particles.excl_start != NULL ? plan->particles.excl_start[i + 1] - plan->particles.excl_start[i] : 0;
}

/* Place of particle i among those of its cell, which p2p gathers first. */
static int own_place(const gmxfmm_plan* plan, int i)
{
    const fmm_particle_set* p = charges_of(plan);
    return p->position[i] - p->cell_start[p->cell_of[i]];
}

/* Whether of two particles of a cell these images are the nearest ones. */
static int near_in_cell(const fmm_cells* c)
{
    return !fmm_has_images(c->periodic) || (c->rectangular && c->n[0] > 2 && c->n[1] > 2 && c->n[2] > 2);
}

/* Particles in the list of a leaf, which is of runs of leaves. */
static int near_of_leaf(const gmxfmm_plan* plan, int leaf)
{
    const fmm_leaves* leaves = &plan->domain.tree->leaves;
    const int*        start  = charges_of(plan)->cell_start;
    int               num    = 0;
    for (int k = leaves->near_start[leaf]; k < leaves->near_start[leaf + 1]; k++)
    {
        num += start[leaves->near[k][1]] - start[leaves->near[k][0]];
    }
    return num;
}

/* Place of particle j in the list of a leaf, or -1. */
static int place_in_runs(const gmxfmm_plan* plan, int leaf, int j)
{
    const fmm_leaves* leaves = &plan->domain.tree->leaves;
    const int*        start  = charges_of(plan)->cell_start;
    const int         other  = charges_of(plan)->cell_of[j];
    int               num    = 0;
    for (int k = leaves->near_start[leaf]; k < leaves->near_start[leaf + 1]; k++)
    {
        if (other >= leaves->near[k][0] && other < leaves->near[k][1])
        {
            return num + charges_of(plan)->position[j] - start[leaves->near[k][0]];
        }
        num += start[leaves->near[k][1]] - start[leaves->near[k][0]];
    }
    return -1;
}

/* mask_near of a particle of a leaf. */
static void mask_in_runs(const gmxfmm_plan* plan, int s, int leaf)
{
    const int i    = charges_of(plan)->sorted[s];
    int *     mask = plan->cpu->mask + plan->cpu->mask_start[s], *end = plan->cpu->mask + plan->cpu->mask_start[s + 1];
    *mask++ = own_place(plan, i);
    for (int e = 0; e < num_excluded(plan, i); e++)
    {
        const int j     = plan->particles.excl_list[plan->particles.excl_start[i] + e];
        const int place = j == i ? -1 : place_in_runs(plan, leaf, j);
        if (place >= 0)
        {
            *mask++ = place;
        }
    }
    while (mask < end)
    {
        *mask++ = own_place(plan, i);
    }
}

/* The near excluded pairs of particle s, in the cell at place[3], to its part of the mask. That has room for all its
 * excluded pairs: the rest is filled with the particle itself. */
static void mask_near(const gmxfmm_plan* plan, int s, const int* place, const int* prefix)
{
    const fmm_particle_set* p = charges_of(plan);
    const int               i = p->sorted[s];
    int *     mask = plan->cpu->mask + plan->cpu->mask_start[s], *end = plan->cpu->mask + plan->cpu->mask_start[s + 1];
    const int in_cell = near_in_cell(&plan->domain.cells);
    *mask++           = own_place(plan, i);
    for (int e = 0; e < num_excluded(plan, i); e++)
    {
        const int j = plan->particles.excl_list[plan->particles.excl_start[i] + e];
        if (j == i)
        {
            continue;
        }
        if (in_cell && p->cell_of[j] == p->cell_of[i])
        {
            *mask++ = own_place(plan, j);
            continue;
        }
        int offset[3];
        nearest_offset(plan, s, place, j, offset);
        const int source[3] = {-offset[0], -offset[1], -offset[2]};
        const int o         = fmm_near_index(&plan->domain.cells, source);
        if (o >= 0)
        {
            *mask++ = prefix[o] + own_place(plan, j);
        }
    }
    while (mask < end)
    {
        *mask++ = own_place(plan, i);
    }
}

/* Those of its far field, each pair once, to far_pairs. */
static void list_far(gmxfmm_plan* plan, int s)
{
    const int i        = charges_of(plan)->sorted[s];
    const int leaf     = charges_of(plan)->cell_of[i];
    int       place[3] = {0, 0, 0};
    if (!fmm_is_adaptive(plan))
    {
        fmm_cell_place(plan, leaf, place);
    }
    for (int e = 0; e < num_excluded(plan, i); e++)
    {
        const int j = plan->particles.excl_list[plan->particles.excl_start[i] + e];
        if (i >= j)
        {
            continue;
        }
        fmm_far_pair pair = {s, charges_of(plan)->position[j], {0, 0, 0}};
        if (fmm_is_adaptive(plan))
        {
            if (place_in_runs(plan, leaf, j) < 0)
            {
                plan->cpu->far_pairs[plan->cpu->num_far_pairs++] = pair;
            }
            continue;
        }
        nearest_offset(plan, s, place, j, pair.offset);
        const int source[3] = {-pair.offset[0], -pair.offset[1], -pair.offset[2]};
        if (fmm_near_index(&plan->domain.cells, source) < 0)
        {
            plan->cpu->far_pairs[plan->cpu->num_far_pairs++] = pair;
        }
    }
}

gmxfmm_status fmm_excluded_pairs(gmxfmm_plan* plan)
{
    const fmm_cells*        cells    = &plan->domain.cells;
    const fmm_particle_set* targets  = fmm_targets(plan);
    const size_t            num_near = (size_t)cells->num_near;
    int*                    prefixes = malloc((size_t)plan->num_threads * num_near * sizeof(int));
    int                     capacity = 0;
    double                  sum      = 0; /* over targets, of the particles near them */
    if (prefixes == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory");
    }
    plan->cpu->mask_start[0] = 0;
    for (int64_t s = 0; s < plan->particles.n; s++)
    {
        plan->cpu->mask_start[s + 1] = plan->cpu->mask_start[s] + 1 + num_excluded(plan, charges_of(plan)->sorted[s]);
    }
#pragma omp parallel for schedule(dynamic, 64) num_threads(plan->num_threads) reduction(max : capacity)            \
    reduction(+ : sum)
    for (int cell = 0; cell < fmm_num_cells(plan); cell++)
    {
        if (targets->cell_start[cell] == targets->cell_start[cell + 1])
        {
            continue;
        }
        int place[3] = {0, 0, 0}, *prefix = prefixes + (size_t)omp_get_thread_num() * num_near, num;
        if (fmm_is_adaptive(plan))
        {
            num = near_of_leaf(plan, cell);
        }
        else
        {
            fmm_cell_place(plan, cell, place);
            num = near_prefix(plan, cell, place, prefix);
        }
        capacity = num > capacity ? num : capacity;
        sum += (double)num * (targets->cell_start[cell + 1] - targets->cell_start[cell]);
        for (int s = charges_of(plan)->cell_start[cell]; s < charges_of(plan)->cell_start[cell + 1]; s++)
        {
            fmm_is_adaptive(plan) ? mask_in_runs(plan, s, cell) : mask_near(plan, s, place, prefix);
        }
    }
    free(prefixes);
    plan->cpu->near_capacity  = capacity;
    plan->cpu->near_particles = targets->n > 0 ? sum / (double)targets->n : 0;
    plan->cpu->num_far_pairs  = 0;
    for (int s = 0; s < plan->particles.n && plan->particles.excl_start != NULL && plan->particles.num_targets == 0;
         s++)
    {
        /* a mask that ends with the particle itself is not full: some pairs are far, or it is on its own list */
        const int end = plan->cpu->mask_start[s + 1];
        if (end - plan->cpu->mask_start[s] > 1 &&
            plan->cpu->mask[end - 1] == own_place(plan, charges_of(plan)->sorted[s]))
        {
            list_far(plan, s);
        }
    }
    return GMXFMM_OK;
}
