/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Particles into cells (search steps), and the pairs left out: masked when near, listed when far. */
#include "fmm/cpu/assign.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/device.h"
#include "fmm/geometry/fftsize.h"

#ifdef _OPENMP
#    include <omp.h>
#endif

static void get_position(const void* x, gmxfmm_precision type, int64_t i, double* xi)
{
    for (int d = 0; d < 3; d++)
    {
        xi[d] = type == GMXFMM_DOUBLE ? ((const double*)x)[3 * i + d] : (double)((const float*)x)[3 * i + d];
    }
}

/* Widens low..high by the particles at x. Errors: POSITION. */
static gmxfmm_status
widen(gmxfmm_plan* plan, const void* x, gmxfmm_precision type, int64_t n, const char* what, double* low, double* high)
{
    for (int64_t i = 0; i < n; i++)
    {
        double xi[3];
        get_position(x, type, i, xi);
        for (int d = 0; d < 3; d++)
        {
            if (!isfinite(xi[d]))
            {
                return fmm_fail(plan, GMXFMM_ERROR_POSITION, "position of %s %lld is %g: not finite", what,
                                (long long)i, xi[d]);
            }
            low[d]  = fmin(low[d], xi[d]);
            high[d] = fmax(high[d], xi[d]);
        }
    }
    return GMXFMM_OK;
}

/* Lattice point nearest to a particle: at[3], and what is left, in cells. Returns 0 if x is not finite. */
int fmm_locate(const fmm_cells* cells, const double* x, int* at, double* rest)
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

/* The corners of what particles, at *x, and receivers fill; infinities without any. *x: see fmm_device_extent. */
static gmxfmm_status extent(gmxfmm_plan* plan, const void** x, double* low, double* high)
{
    for (int d = 0; d < 3; d++)
    {
        low[d]  = INFINITY;
        high[d] = -INFINITY;
    }
    if (plan->device != NULL)
    {
        return fmm_device_extent(plan, x, low, high);
    }
    const gmxfmm_status status = widen(plan, *x, plan->options.array_type, plan->p.n, "particle", low, high);
    return status == GMXFMM_OK ? widen(plan, plan->receiver_x, GMXFMM_DOUBLE, plan->receivers.n, "receiver", low, high)
                               : status;
}

/* Fits the grid of an open system to its particles: cubes of one edge from the lowest corner. host: x on the host, for
 * what counts there. */
static gmxfmm_status fit_open(gmxfmm_plan* plan, const void** x, const void* host)
{
    double        low[3], high[3], box[9] = {0};
    gmxfmm_status status = extent(plan, x, low, high);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    for (int d = 0; d < 3 && !(low[d] <= high[d]); d++)
    {
        low[d] = high[d] = 0; /* no particles */
    }
    const double longest = fmax(high[0] - low[0], fmax(high[1] - low[1], high[2] - low[2]));
    if (longest > 0 && !fmm_in_range(longest))
    {
        return fmm_fail(plan, GMXFMM_ERROR_POSITION, "the particles are up to %g apart: choose another unit of length",
                        longest);
    }
    status = fmm_consider_tree(plan, host, low, high);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    status = plan->tree != NULL ? fmm_tune_tree_open(plan, host, low, high) : fmm_tune_open(plan, low, high);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    for (int d = 0; d < 3; d++)
    {
        const double width    = plan->inner[d] * plan->target_edge;
        box[4 * d]            = width;
        plan->cells.origin[d] = 0.5 * (low[d] + high[d] - width);
    }
    /* shape_changed's comparison of shapes decides whether the convolution is made anew */
    memcpy(plan->box, box, sizeof(box));
    plan->geometry_valid = 0;
    return GMXFMM_OK;
}

/* Counting sort of a set of particles by cells (fft path). */
static gmxfmm_status bin(gmxfmm_plan* plan, const void* x, gmxfmm_precision type, fmm_particles* p, const char* what)
{
    const fmm_cells*    cells  = &plan->cells;
    const gmxfmm_status status = fmm_particles_reserve_cells(plan, p, cells->num_cells);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    int64_t bad = p->n; /* first particle that has no cell */
#pragma omp parallel for schedule(static) num_threads(plan->num_threads) reduction(min : bad)
    for (int64_t i = 0; i < p->n; i++)
    {
        double xi[3], rest[3];
        int    at[3];
        get_position(x, type, i, xi);
        if (!fmm_locate(cells, xi, at, rest))
        {
            bad = i < bad ? i : bad;
            continue;
        }
        fmm_into_grid(cells, at);
        p->cell_of[i] = (at[0] * cells->n[1] + at[1]) * cells->n[2] + at[2];
    }
    if (bad < p->n)
    {
        double xi[3];
        get_position(x, type, bad, xi);
        return fmm_fail(plan, GMXFMM_ERROR_POSITION, "position of %s %lld is (%g, %g, %g): not finite, or too far away",
                        what, (long long)bad, xi[0], xi[1], xi[2]);
    }
    memset(p->cell_start, 0, (size_t)(cells->num_cells + 2) * sizeof(int));
    for (int64_t i = 0; i < p->n; i++)
    {
        p->cell_start[p->cell_of[i] + 2]++;
    }
    /* one place ahead: cell_start[c + 1] is where cell c goes on, and ends up as its end */
    for (int c = 0; c < cells->num_cells; c++)
    {
        p->cell_start[c + 2] += p->cell_start[c + 1];
    }
    for (int64_t i = 0; i < p->n; i++)
    {
        const int s    = p->cell_start[p->cell_of[i] + 1]++;
        p->sorted[s]   = (int)i;
        p->position[i] = s;
    }
    return GMXFMM_OK;
}

/* Where each particle stands in its cell: execute recognises the image of a particle by it. */
static void set_reference(gmxfmm_plan* plan, const void* x, gmxfmm_precision type, fmm_particles* p)
{
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (int64_t s = 0; s < p->n; s++)
    {
        int    at[3];
        double xi[3], rest[3];
        get_position(x, type, p->sorted[s], xi);
        fmm_locate(&plan->cells, xi, at, rest);
        for (int d = 0; d < 3; d++)
        {
            p->reference[s][d] = (float)rest[d];
        }
    }
}

/* Cell of particle si minus cell of the nearest image of particle sj, in cells. */
static void nearest_offset(const gmxfmm_plan* plan, int si, int sj, int* offset)
{
    const fmm_cells* cells = &plan->cells;
    int              ci[3], cj[3], k[3] = {0, 0, 0};
    double           t[3], y[3];
    fmm_cell_place(plan, plan->p.cell_of[plan->p.sorted[si]], ci);
    fmm_cell_place(plan, plan->p.cell_of[plan->p.sorted[sj]], cj);
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
    int c[3], num = 0;
    fmm_cell_place(plan, cell, c);
    for (int o = 0; o < plan->cells.num_near; o++)
    {
        const int at = fmm_near_of(plan, cell, c, o);
        prefix[o]    = num;
        num += plan->p.cell_start[at + 1] - plan->p.cell_start[at];
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
    return s - plan->p.cell_start[plan->p.cell_of[plan->p.sorted[s]]];
}

/* Pairs left out of the near field of particle s, into its part of the mask; that has room for all exclusions: the rest
 * is the particle itself once more. */
static void mask_near(const gmxfmm_plan* plan, int s, const int* prefix)
{
    const int i    = plan->p.sorted[s];
    int *     mask = plan->mask + plan->mask_start[s], *end = plan->mask + plan->mask_start[s + 1];
    *mask++ = own_place(plan, s);
    for (int e = 0; e < num_excluded(plan, i); e++)
    {
        const int j = plan->excl_list[plan->excl_start[i] + e];
        if (j == i)
        {
            continue;
        }
        const int sj = plan->p.position[j];
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
    const int i = plan->p.sorted[s];
    for (int e = 0; e < num_excluded(plan, i); e++)
    {
        const int j = plan->excl_list[plan->excl_start[i] + e], sj = plan->p.position[j];
        if (i >= j)
        {
            continue;
        }
        fmm_far_pair pair = {s, sj, {0, 0, 0}};
        nearest_offset(plan, s, sj, pair.offset);
        const int source[3] = {-pair.offset[0], -pair.offset[1], -pair.offset[2]};
        if (fmm_near_index(&plan->cells, source) < 0)
        {
            plan->far_pairs[plan->num_far_pairs++] = pair;
        }
    }
}

static gmxfmm_status set_left_out(gmxfmm_plan* plan)
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
    plan->mask_start[0] = 0;
    for (int64_t s = 0; s < plan->p.n; s++)
    {
        plan->mask_start[s + 1] = plan->mask_start[s] + 1 + num_excluded(plan, plan->p.sorted[s]);
    }
#pragma omp parallel for schedule(dynamic, 64) num_threads(plan->num_threads) reduction(max : capacity)            \
    reduction(+ : sum)
    for (int cell = 0; cell < plan->num_cells; cell++)
    {
        if (targets->cell_start[cell] == targets->cell_start[cell + 1])
        {
            continue;
        }
#ifdef _OPENMP
        int* prefix = prefixes + (size_t)omp_get_thread_num() * num_near;
#else
        int* prefix = prefixes;
#endif
        const int num = near_prefix(plan, cell, prefix);
        capacity      = num > capacity ? num : capacity;
        sum += (double)num * (targets->cell_start[cell + 1] - targets->cell_start[cell]);
        for (int s = plan->p.cell_start[cell]; s < plan->p.cell_start[cell + 1]; s++)
        {
            mask_near(plan, s, prefix);
        }
    }
    free(prefixes);
    plan->near_capacity  = capacity;
    plan->near_particles = targets->n > 0 ? sum / (double)targets->n : 0;
    plan->num_far_pairs  = 0;
    for (int s = 0; s < plan->p.n && plan->excl_start != NULL && targets == &plan->p; s++)
    {
        /* a mask that ends with the particle itself is not full: some pairs are far, or it is on its own list */
        const int end = plan->mask_start[s + 1];
        if (end - plan->mask_start[s] > 1 && plan->mask[end - 1] == own_place(plan, s))
        {
            list_far(plan, s);
        }
    }
    return GMXFMM_OK;
}

/* Whether method or depth are yet to be chosen by counts of particles in the cells of every depth, once a plan. */
static int counts_particles(const gmxfmm_plan* plan)
{
    return fmm_considers_tree(plan) ||
           (plan->tree != NULL && !plan->tuned && !(plan->periodic && fmm_given_depth(&plan->options) > 0));
}

gmxfmm_status fmm_assign_particles(gmxfmm_plan* plan, const void* x)
{
    const gmxfmm_precision type   = plan->options.array_type;
    gmxfmm_status          status = GMXFMM_OK;
    plan->assigned                = 0;
    const void* host              = x;
    if (plan->device != NULL && counts_particles(plan))
    {
        status = fmm_device_on_host(plan, &host, 3 * (size_t)plan->p.n);
    }
    if (status == GMXFMM_OK && !plan->periodic)
    {
        status = fit_open(plan, &x, host);
    }
    else if (status == GMXFMM_OK)
    {
        const double low[3] = {0, 0, 0};
        status              = fmm_consider_tree(plan, host, low, low);
        status              = status == GMXFMM_OK && plan->tree != NULL ? fmm_tune_tree_particles(plan, host) : status;
    }
    status = status == GMXFMM_OK ? fmm_update_geometry(plan) : status;
    if (plan->device != NULL)
    {
        plan->num_cells = plan->cells.num_cells;
        return status == GMXFMM_OK ? fmm_device_assign(plan, x) : status;
    }
    if (status == GMXFMM_OK && plan->tree != NULL)
    {
        status = fmm_tree_assign(plan, x);
    }
    else if (status == GMXFMM_OK)
    {
        plan->num_cells = plan->cells.num_cells;
        status          = bin(plan, x, type, &plan->p, "particle");
        if (status == GMXFMM_OK && plan->receivers.n > 0)
        {
            status = bin(plan, plan->receiver_x, GMXFMM_DOUBLE, &plan->receivers, "receiver");
        }
    }
    if (status != GMXFMM_OK)
    {
        return status;
    }
    set_reference(plan, x, type, &plan->p);
    set_reference(plan, plan->receiver_x, GMXFMM_DOUBLE, &plan->receivers);
    status         = set_left_out(plan);
    plan->assigned = status == GMXFMM_OK;
    return status;
}
