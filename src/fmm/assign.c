/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Particles into cells (search steps), and the pairs left out: masked when near, listed when far. */
#include "assign.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fftsize.h"

static double coordinate(const gmxfmm_plan* plan, const void* x, int64_t i)
{
    return plan->options.array_type == GMXFMM_DOUBLE ? ((const double*)x)[i] : (double)((const float*)x)[i];
}

/* Lattice point nearest to a particle: at[3], and what is left, in cells. Returns 0 if x is not finite. */
static int locate(const fmm_cells* cells, const double* x, int* at, double* rest)
{
    double t[3], y[3];
    for (int d = 0; d < 3; d++)
    {
        t[d] = -0.5;
        for (int e = 0; e < 3; e++)
        {
            t[d] += (x[e] - cells->origin[e]) * cells->to_cells[3 * e + d];
        }
        if (!(fabs(t[d]) < 1e9)) /* also NaN; and cell numbers must fit an int */
        {
            return 0;
        }
        at[d]   = (int)floor(t[d] + 0.5);
        rest[d] = t[d] - at[d];
    }
    if (cells->periodic && !cells->rectangular)
    {
        for (int d = 0; d < 3; d++)
        {
            y[d] = rest[0] * cells->cell[d] + rest[1] * cells->cell[3 + d] + rest[2] * cells->cell[6 + d];
        }
        fmm_reduce(cells->voronoi, cells->voronoi_int, y, at);
        for (int d = 0; d < 3; d++)
        {
            rest[d] = t[d] - at[d];
        }
    }
    return 1;
}

static int wrapped(int k, int n)
{
    const int m = k % n;
    return m < 0 ? m + n : m;
}

/* Fits the grid of an open system to its particles: cubes of one edge from the lowest corner. */
static gmxfmm_status fit_open(gmxfmm_plan* plan, const void* x)
{
    double low[3] = {0, 0, 0}, high[3] = {0, 0, 0}, box[9] = {0};
    for (int64_t i = 0; i < 3 * plan->n; i++)
    {
        const double v = coordinate(plan, x, i);
        const int    d = (int)(i % 3);
        low[d]         = i < 3 || v < low[d] ? v : low[d];
        high[d]        = i < 3 || v > high[d] ? v : high[d];
        if (!isfinite(v))
        {
            return fmm_fail(plan, GMXFMM_ERROR_POSITION, "position of particle %lld is %g: not finite",
                            (long long)(i / 3), v);
        }
    }
    const gmxfmm_status tuned = fmm_tune_open(plan, low, high);
    if (tuned != GMXFMM_OK)
    {
        return tuned;
    }
    for (int d = 0; d < 3; d++)
    {
        const double width    = plan->inner[d] * plan->target_edge;
        box[4 * d]            = width;
        plan->cells.origin[d] = 0.5 * (low[d] + high[d] - width);
    }
    /* set_box's comparison of shapes decides whether the convolution is made anew */
    memcpy(plan->box, box, sizeof(box));
    plan->geometry_valid = 0;
    return GMXFMM_OK;
}

static gmxfmm_status bin(gmxfmm_plan* plan, const void* x)
{
    const fmm_cells* cells = &plan->cells;
    int64_t          bad   = -1;
    memset(plan->cell_start, 0, (size_t)(cells->num_cells + 1) * sizeof(int));
    for (int64_t i = 0; i < plan->n; i++)
    {
        const double xi[3] = {coordinate(plan, x, 3 * i), coordinate(plan, x, 3 * i + 1),
                              coordinate(plan, x, 3 * i + 2)};
        int          at[3];
        double       rest[3];
        if (!locate(cells, xi, at, rest))
        {
            bad = i;
            break;
        }
        for (int d = 0; d < 3; d++)
        {
            if (cells->periodic)
            {
                at[d] = wrapped(at[d], cells->n[d]);
            }
            else
            {
                at[d] = at[d] < 0 ? 0 : at[d] >= cells->inner[d] ? cells->inner[d] - 1 : at[d];
            }
        }
        plan->cell_of[i] = (at[0] * cells->n[1] + at[1]) * cells->n[2] + at[2];
        plan->cell_start[plan->cell_of[i] + 1]++;
    }
    if (bad >= 0)
    {
        return fmm_fail(plan, GMXFMM_ERROR_POSITION,
                        "position of particle %lld is (%g, %g, %g): not finite, or too far away", (long long)bad,
                        coordinate(plan, x, 3 * bad), coordinate(plan, x, 3 * bad + 1),
                        coordinate(plan, x, 3 * bad + 2));
    }
    for (int c = 0; c < cells->num_cells; c++)
    {
        plan->cell_start[c + 1] += plan->cell_start[c];
    }
    for (int64_t i = 0; i < plan->n; i++)
    {
        const int s       = plan->cell_start[plan->cell_of[i]]++;
        plan->sorted[s]   = (int)i;
        plan->position[i] = s;
    }
    for (int c = cells->num_cells; c > 0; c--)
    {
        plan->cell_start[c] = plan->cell_start[c - 1];
    }
    plan->cell_start[0] = 0;
    return GMXFMM_OK;
}

/* Where each particle stands in its cell: execute recognises the image of a particle by it. */
static void set_reference(gmxfmm_plan* plan, const void* x)
{
    const fmm_cells* cells = &plan->cells;
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (int64_t s = 0; s < plan->n; s++)
    {
        const int64_t i     = plan->sorted[s];
        const double  xi[3] = {coordinate(plan, x, 3 * i), coordinate(plan, x, 3 * i + 1),
                               coordinate(plan, x, 3 * i + 2)};
        int           at[3];
        double        rest[3];
        locate(cells, xi, at, rest);
        for (int d = 0; d < 3; d++)
        {
            plan->p.reference[s][d] = (float)rest[d];
        }
    }
}

static void cell_coordinates(const fmm_cells* cells, int cell, int* c)
{
    c[0] = cell / (cells->n[1] * cells->n[2]);
    c[1] = cell / cells->n[2] % cells->n[1];
    c[2] = cell % cells->n[2];
}

/* Cell of particle si minus cell of the nearest image of particle sj, in cells. */
static void nearest_offset(const gmxfmm_plan* plan, int si, int sj, int* offset)
{
    const fmm_cells* cells = &plan->cells;
    int              ci[3], cj[3], k[3] = {0, 0, 0};
    double           t[3], y[3];
    cell_coordinates(cells, plan->cell_of[plan->sorted[si]], ci);
    cell_coordinates(cells, plan->cell_of[plan->sorted[sj]], cj);
    for (int d = 0; d < 3; d++)
    {
        t[d]      = (ci[d] - cj[d]) + (double)plan->p.reference[si][d] - (double)plan->p.reference[sj][d];
        offset[d] = ci[d] - cj[d];
        if (cells->periodic)
        {
            k[d] = (int)floor(t[d] / cells->n[d] + 0.5);
            t[d] -= k[d] * cells->n[d];
        }
    }
    if (!cells->periodic)
    {
        return;
    }
    for (int d = 0; d < 3; d++)
    {
        y[d] = t[0] * cells->cell[d] + t[1] * cells->cell[3 + d] + t[2] * cells->cell[6 + d];
    }
    fmm_reduce(cells->box_voronoi, cells->box_voronoi_int, y, k);
    for (int d = 0; d < 3; d++)
    {
        offset[d] -= k[d] * cells->n[d];
    }
}

/* prefix[o]: place of the first particle of near cell o in the list that p2p gathers. Returns the list's length. */
static int near_prefix(const gmxfmm_plan* plan, int cell, int* prefix)
{
    const fmm_cells* cells = &plan->cells;
    int              c[3], num = 0;
    cell_coordinates(cells, cell, c);
    for (int o = 0; o < cells->num_near; o++)
    {
        const int at = fmm_near_cell(cells, c, o);
        prefix[o]    = num;
        num += plan->cell_start[at + 1] - plan->cell_start[at];
    }
    return num;
}

/* Pairs left out of particle s: into mask (near), or counted and, if far_pairs is given, stored (far, once a pair). */
static void
left_out(gmxfmm_plan* plan, int s, const int* prefix, fmm_far_pair* far_pairs, int* num_far, int* mask, int* num_mask)
{
    const int i         = plan->sorted[s];
    mask[(*num_mask)++] = prefix[0] + s - plan->cell_start[plan->cell_of[i]]; /* near[0] is the cell itself */
    for (int e = plan->excl_start ? plan->excl_start[i] : 0; e < (plan->excl_start ? plan->excl_start[i + 1] : 0); e++)
    {
        const int j = plan->excl_list[e];
        if (j == i)
        {
            continue;
        }
        const int sj = plan->position[j];
        int       offset[3];
        nearest_offset(plan, s, sj, offset);
        const int source[3] = {-offset[0], -offset[1], -offset[2]};
        const int o         = fmm_near_index(&plan->cells, source);
        if (o >= 0)
        {
            mask[(*num_mask)++] = prefix[o] + sj - plan->cell_start[plan->cell_of[j]];
        }
        else if (i < j)
        {
            if (far_pairs != NULL)
            {
                far_pairs[*num_far].i = s;
                far_pairs[*num_far].j = sj;
                memcpy(far_pairs[*num_far].offset, offset, sizeof(offset));
            }
            (*num_far)++;
        }
    }
}

static gmxfmm_status set_left_out(gmxfmm_plan* plan)
{
    const fmm_cells* cells    = &plan->cells;
    int*             prefix   = malloc((size_t)cells->num_near * sizeof(int));
    int              num_mask = 0, num_far = 0;
    if (prefix == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory");
    }
    plan->near_capacity = 0;
    for (int cell = 0; cell < cells->num_cells; cell++)
    {
        if (plan->cell_start[cell] == plan->cell_start[cell + 1])
        {
            continue;
        }
        const int num       = near_prefix(plan, cell, prefix);
        plan->near_capacity = num > plan->near_capacity ? num : plan->near_capacity;
        for (int s = plan->cell_start[cell]; s < plan->cell_start[cell + 1]; s++)
        {
            plan->mask_start[s] = num_mask;
            /* far_pairs holds as many as there are exclusions: no second pass */
            left_out(plan, s, prefix, plan->far_pairs, &num_far, plan->mask, &num_mask);
        }
    }
    plan->mask_start[plan->n] = num_mask;
    plan->num_far_pairs       = num_far;
    free(prefix);
    return GMXFMM_OK;
}

gmxfmm_status fmm_assign_particles(gmxfmm_plan* plan, const void* x)
{
    gmxfmm_status status = GMXFMM_OK;
    plan->assigned       = 0;
    if (!plan->periodic)
    {
        status = fit_open(plan, x);
    }
    status = status == GMXFMM_OK ? fmm_update_geometry(plan) : status;
    status = status == GMXFMM_OK ? bin(plan, x) : status;
    if (status != GMXFMM_OK)
    {
        return status;
    }
    set_reference(plan, x);
    status         = set_left_out(plan);
    plan->assigned = status == GMXFMM_OK;
    return status;
}
