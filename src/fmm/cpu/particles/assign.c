/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The assignment of particles to cells of one level, at search steps. */
#include "fmm/cpu/particles/particles.h"

#include <stdlib.h>
#include <string.h>

#include "fmm/geometry/extent.h"
#include "fmm/math/threads.h"
#include "fmm/numbers.h"

static void get_position(const void* x, gmxfmm_precision type, int64_t i, double* xi)
{
    for (int d = 0; d < 3; d++)
    {
        xi[d] = fmm_number_of(x, type, 3 * i + d);
    }
}

/* Widens low..high by the particles at x. Errors: POSITION. */
static gmxfmm_status
widen(gmxfmm_plan* plan, const void* x, gmxfmm_precision type, int64_t n, const char* what, double* low, double* high)
{
    const int64_t bad = fmm_widen_extent(x, type, n, plan->num_threads, low, high);
    if (bad < 0)
    {
        return GMXFMM_OK;
    }
    double at[3];
    get_position(x, type, bad, at);
    return fmm_fail(plan, GMXFMM_ERROR_POSITION, "position of %s %lld is (%g, %g, %g): not finite", what,
                    (long long)bad, at[0], at[1], at[2]);
}

/* What messages call particle i of a set. */
static long long name_of(const gmxfmm_plan* plan, const fmm_particle_set* p, int64_t i)
{
    return p == &plan->cpu->sources ? fmm_particle_name(plan, i) : i;
}

int64_t fmm_find_cells(const gmxfmm_plan* plan, const void* x, gmxfmm_precision type, int64_t n, int* cell)
{
    const fmm_cells* cells = &plan->domain.cells;
    int64_t          bad   = n;
#pragma omp parallel for schedule(static) num_threads(plan->num_threads) reduction(min : bad)
    for (int64_t i = 0; i < n; i++)
    {
        double xi[3], rest[3];
        int    at[3];
        get_position(x, type, i, xi);
        if (!fmm_locate(cells, xi, at, rest))
        {
            bad     = i < bad ? i : bad;
            cell[i] = 0;
            continue;
        }
        fmm_into_grid(cells->periodic, cells->inner, at);
        cell[i] = (at[0] * cells->n[1] + at[1]) * cells->n[2] + at[2];
    }
    return bad;
}

/* Counting sort by cells of particles whose cells are known. */
static void sort_by_cells(fmm_particle_set* p, int num_cells)
{
    memset(p->cell_start, 0, (size_t)(num_cells + 2) * sizeof(int));
    for (int64_t i = 0; i < p->n; i++)
    {
        p->cell_start[p->cell_of[i] + 2]++;
    }
    /* one place ahead: cell_start[c + 1] is where cell c goes on, and ends up as its end */
    for (int c = 0; c < num_cells; c++)
    {
        p->cell_start[c + 2] += p->cell_start[c + 1];
    }
    for (int64_t i = 0; i < p->n; i++)
    {
        const int s    = p->cell_start[p->cell_of[i] + 1]++;
        p->sorted[s]   = (int)i;
        p->position[i] = s;
    }
}

/* Where those of the cells begin .. end - 1 go that each of num chunks of particles has, from place `at` on. There are
 * counts in place[num][num_cells]. */
static void place_chunks(int num, int num_cells, int begin, int end, int at, int* start, int* place)
{
    for (int cell = begin; cell < end; cell++)
    {
        start[cell] = at;
        for (int c = 0; c < num; c++)
        {
            int* const here = &place[(size_t)c * (size_t)num_cells + (size_t)cell];
            const int  next = at + *here;
            *here           = at;
            at              = next;
        }
    }
}

/* The same by num threads: each has a chunk of the particles, and counts cells for itself, in memory for references,
 * which come later. */
static void sort_together(fmm_particle_set* p, int num_cells, int num)
{
    int* const    place = (int*)p->reference;
    int* const    start = p->cell_start;
    const int64_t n     = p->n;
    int           at    = 0;
#pragma omp parallel num_threads(num)
    {
#pragma omp for schedule(static, 1)
        for (int c = 0; c < num; c++)
        {
            int* const count = place + (size_t)c * (size_t)num_cells;
            memset(count, 0, (size_t)num_cells * sizeof(int));
            for (int64_t i = n * c / num; i < n * (c + 1) / num; i++)
            {
                count[p->cell_of[i]]++;
            }
        }
        /* particles of a range of cells for each thread, for now where the range begins */
#pragma omp for schedule(static, 1)
        for (int r = 0; r < num; r++)
        {
            const int begin = (int)((int64_t)num_cells * r / num), end = (int)((int64_t)num_cells * (r + 1) / num);
            int       sum = 0;
            for (int c = 0; c < num; c++)
            {
                for (int cell = begin; cell < end; cell++)
                {
                    sum += place[(size_t)c * (size_t)num_cells + (size_t)cell];
                }
            }
            start[begin] = sum;
        }
#pragma omp single
        for (int r = 0; r < num; r++)
        {
            int* const begin = &start[(int64_t)num_cells * r / num];
            const int  next  = at + *begin;
            *begin           = at;
            at               = next;
        }
#pragma omp for schedule(static, 1)
        for (int r = 0; r < num; r++)
        {
            const int begin = (int)((int64_t)num_cells * r / num), end = (int)((int64_t)num_cells * (r + 1) / num);
            place_chunks(num, num_cells, begin, end, start[begin], start, place);
        }
#pragma omp for schedule(static, 1)
        for (int c = 0; c < num; c++)
        {
            int* const here = place + (size_t)c * (size_t)num_cells;
            for (int64_t i = n * c / num; i < n * (c + 1) / num; i++)
            {
                const int s    = here[p->cell_of[i]]++;
                p->sorted[s]   = (int)i;
                p->position[i] = s;
            }
        }
    }
    start[num_cells] = start[num_cells + 1] = (int)n;
}

/* The cells of a set of particles, and its sort by them (fft path). */
static gmxfmm_status bin(gmxfmm_plan* plan, const void* x, gmxfmm_precision type, fmm_particle_set* p, const char* what)
{
    const fmm_cells*    cells  = &plan->domain.cells;
    const gmxfmm_status status = fmm_particle_set_reserve_cells(plan, p, cells->num_cells);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    const int64_t bad = fmm_find_cells(plan, x, type, p->n, p->cell_of);
    if (bad < p->n)
    {
        double xi[3];
        get_position(x, type, bad, xi);
        return fmm_fail(plan, GMXFMM_ERROR_POSITION, "position of %s %lld is (%g, %g, %g): not finite, or too far away",
                        what, name_of(plan, p, bad), xi[0], xi[1], xi[2]);
    }
    /* as many as there is memory for, and at most one for each cell */
    const int64_t most = cells->num_cells > 0 ? 3 * p->n / cells->num_cells : 0;
    const int     num  = (int)(most < plan->num_threads ? most : plan->num_threads);
    if (num > 1 && num <= cells->num_cells && p->n > FMM_FEW_PARTICLES)
    {
        sort_together(p, cells->num_cells, num);
    }
    else
    {
        sort_by_cells(p, cells->num_cells);
    }
    return GMXFMM_OK;
}

/* The position of each particle in its leaf of several levels. */
static void set_reference_in_leaves(gmxfmm_plan* plan, const void* x, gmxfmm_precision type, fmm_particle_set* p)
{
    const fmm_cells* cells = &plan->domain.cells;
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (int leaf = 0; leaf < (p->n > 0 ? plan->cpu->leaves.num : 0); leaf++)
    {
        double centre[3];
        fmm_leaf_centre(plan, leaf, centre);
        for (int s = p->cell_start[leaf]; s < p->cell_start[leaf + 1]; s++)
        {
            double xi[3];
            get_position(x, type, p->sorted[s], xi);
            for (int d = 0; d < 3; d++)
            {
                p->reference[s][d] = (float)((xi[d] - centre[d]) * cells->to_cells[4 * d]);
            }
        }
    }
}

/* The position of each particle in its cell: a step takes the image of a particle that is nearest to it, and finds
 * those that have left it. */
static void set_reference(gmxfmm_plan* plan, const void* x, gmxfmm_precision type, fmm_particle_set* p)
{
    enum
    {
        c_ahead = 16 /* particles: those of a cell are anywhere in memory */
    };
    if (fmm_is_adaptive(plan))
    {
        set_reference_in_leaves(plan, x, type, p);
        return;
    }
    const int64_t fetched = p->n > FMM_FEW_PARTICLES ? p->n - c_ahead : 0; /* few are in the cache */
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (int64_t s = 0; s < p->n; s++)
    {
        int    at[3];
        double xi[3], rest[3];
        if (s < fetched)
        {
            __builtin_prefetch((const char*)x + 3 * fmm_word_of(type) * (size_t)p->sorted[s + c_ahead]);
        }
        get_position(x, type, p->sorted[s], xi);
        fmm_locate(&plan->domain.cells, xi, at, rest);
        for (int d = 0; d < 3; d++)
        {
            p->reference[s][d] = (float)rest[d];
        }
    }
}

gmxfmm_status fmm_cpu_extent(gmxfmm_plan* plan, const void** x, double* low, double* high)
{
    const gmxfmm_status status = widen(plan, *x, plan->options.array_type, plan->particles.n, "particle", low, high);
    return status == GMXFMM_OK
               ? widen(plan, plan->particles.target_x, GMXFMM_DOUBLE, plan->particles.num_targets, "target", low, high)
               : status;
}

gmxfmm_status fmm_bin(gmxfmm_plan* plan, const void* x)
{
    const gmxfmm_status status = bin(plan, x, plan->options.array_type, &plan->cpu->sources, "particle");
    return status == GMXFMM_OK && plan->particles.num_targets > 0
               ? bin(plan, plan->particles.target_x, GMXFMM_DOUBLE, &plan->cpu->targets, "target")
               : status;
}

void fmm_set_references(gmxfmm_plan* plan, const void* x)
{
    set_reference(plan, x, plan->options.array_type, &plan->cpu->sources);
    set_reference(plan, plan->particles.target_x, GMXFMM_DOUBLE, &plan->cpu->targets);
}
