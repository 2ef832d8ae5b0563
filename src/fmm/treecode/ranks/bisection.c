/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Recursive coordinate bisection (Berger & Bokhari, IEEE Trans. Comput. C-36, 570, 1987; Vaughn, Wilson & Krasny 2020,
 * section 3.2): ranks are halved, and so are their particles, by a plane across the longest edge of the box around
 * them, until each rank is alone. Parts have as many particles as their share of the ranks.
 *
 * All groups of a level are cut at once. A cut is found by counting: bins of a histogram along the edge are added up
 * over ranks, and the bin that it is in becomes the next histogram. Counts are whole numbers, so that cuts do not
 * depend on who has which particle. Particles at a cut stay together: on a lattice parts differ by a plane.
 */
#include "fmm/treecode/ranks/bisection.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "fmm/geometry/cells.h"

enum
{
    c_bins     = 1024,
    c_fewBins  = 64, /* with more ranks than c_fewRanks: histograms of all groups travel */
    c_fewRanks = 64,
    c_rounds   = 16,  /* of 6 bits each, or more: more than a number has */
    c_chunk    = 8192 /* particles of a thread at a time */
};

/* A part may have so many of a group's particles too many or too few. */
static const double c_tolerance = 1.0 / 1024;

/* Ranks first .. last - 1, the upper ones from `middle` on. */
typedef struct
{
    int    first, middle, last;
    int    axis;        /* of the cut */
    double low, high;   /* of the bins; particles of the last are below `upper` */
    double per_length;  /* bins */
    double per_bin;     /* of the range: one over the number of bins, a power of two */
    double upper;       /* INFINITY in the first histogram, which has all */
    double below;       /* particles below `low` */
    double goal, total; /* that are to be below the cut, and all */
    double cut, missed; /* the best so far, and by how many it misses the goal */
    int    found;
} group;

typedef struct
{
    const fmm_ranks* ranks;
    int64_t          n;
    const double*    x;
    int*             owner;     /* n: first rank of the group that a particle is in */
    group*           groups;    /* of several ranks */
    int*             group_of;  /* of a first rank; -1: it is alone */
    int              num, bins; /* groups; bins of each */
    int              num_threads;
    double *         values, *room; /* bins of each group */
    double*          own;           /* the same of each thread */
} bisection;

/* Ranks first .. last - 1 are a group, if they are several. */
static void add_group(bisection* b, group* to, int first, int last)
{
    if (last - first > 1)
    {
        to[b->num].first   = first;
        to[b->num].middle  = first + (last - first) / 2;
        to[b->num].last    = last;
        b->group_of[first] = b->num++;
    }
    else
    {
        b->group_of[first] = -1;
    }
}

static void set_bins(group* g, double low, double high, int bins)
{
    g->low        = low;
    g->high       = high;
    g->per_length = bins / (high - low);
    g->per_bin    = 1.0 / bins;
}

/* Where bin i begins. */
static inline double edge_of(const group* g, int bins, int i)
{
    return i < bins ? g->low + (g->high - g->low) * i * g->per_bin : g->high;
}

/* Numbers of a thread of a pass over the particles, `size` a group, set to `value`. */
static double* begin_pass(const bisection* b, int size, double value)
{
    double* own = b->own + (size_t)omp_get_thread_num() * (size_t)b->ranks->comm.size * (size_t)b->bins;
    for (int i = 0; i < size * b->num; i++)
    {
        own[i] = value;
    }
    return own;
}

/* Boxes around groups: their axes and first histograms. */
static gmxfmm_status start(bisection* b)
{
    const int size = 6 * b->num;
    for (int i = 0; i < size; i++)
    {
        b->values[i] = -INFINITY;
    }
#pragma omp parallel num_threads(b->num_threads)
    {
        double* own = begin_pass(b, 6, -INFINITY);
#pragma omp for schedule(dynamic, c_chunk)
        for (int64_t i = 0; i < b->n; i++)
        {
            const int g = b->group_of[b->owner[i]];
            for (int d = 0; d < 3 && g >= 0; d++)
            {
                double*      range = own + 6 * g;
                const double x     = b->x[3 * i + d];
                range[d]           = range[d] > -x ? range[d] : -x;
                range[3 + d]       = range[3 + d] > x ? range[3 + d] : x;
            }
        }
#pragma omp critical(treecode_bisection)
        for (int i = 0; i < size; i++)
        {
            b->values[i] = fmax(b->values[i], own[i]);
        }
    }
    const gmxfmm_status status = fmm_ranks_reduce(&b->ranks->comm, FMM_RANKS_MAX, b->values, b->room, (size_t)size);
    for (int i = 0; i < b->num; i++)
    {
        group*        g     = &b->groups[i];
        const double *range = b->values + 6 * i, *high = range + 3;
        double        longest = -INFINITY;
        g->axis               = 0;
        for (int d = 0; d < 3; d++)
        {
            if (high[d] + range[d] > longest)
            {
                longest = high[d] + range[d];
                g->axis = d;
            }
        }
        g->found = !(longest > 0);
        g->cut   = INFINITY;
        g->total = -1;
        g->below = 0;
        g->upper = INFINITY;
        set_bins(g, -range[g->axis], high[g->axis], b->bins);
    }
    return status;
}

/* The bin of a place from `low` on. */
static int bin_of(const group* g, int bins, double x)
{
    int bin = (int)fmin(bins - 1, (x - g->low) * g->per_length);
    while (bin > 0 && x < edge_of(g, bins, bin))
    {
        bin--;
    }
    while (bin + 1 < bins && x >= edge_of(g, bins, bin + 1))
    {
        bin++;
    }
    return bin;
}

static gmxfmm_status count(bisection* b)
{
    const int size = b->bins * b->num;
    for (int i = 0; i < size; i++)
    {
        b->values[i] = 0;
    }
#pragma omp parallel num_threads(b->num_threads)
    {
        double* own = begin_pass(b, b->bins, 0);
#pragma omp for schedule(dynamic, c_chunk)
        for (int64_t i = 0; i < b->n; i++)
        {
            const int    k = b->group_of[b->owner[i]];
            const group* g = k >= 0 ? &b->groups[k] : NULL;
            if (g != NULL && !g->found && b->x[3 * i + g->axis] >= g->low && b->x[3 * i + g->axis] < g->upper)
            {
                own[b->bins * k + bin_of(g, b->bins, b->x[3 * i + g->axis])]++;
            }
        }
#pragma omp critical(treecode_bisection)
        for (int i = 0; i < size; i++)
        {
            b->values[i] += own[i]; /* whole numbers: in any order */
        }
    }
    return fmm_ranks_reduce(&b->ranks->comm, FMM_RANKS_SUM, b->values, b->room, (size_t)size);
}

/* The best cut at an edge between bins, and the histogram of the bin that a better one is in. */
static void look(group* g, const double* bin, int bins)
{
    int    next  = 0;
    double below = g->below, below_next = g->below;
    if (g->total < 0) /* the first histogram */
    {
        g->total = 0;
        for (int i = 0; i < bins; i++)
        {
            g->total += bin[i];
        }
        g->goal   = floor(g->total * (g->middle - g->first) / (g->last - g->first) + 0.5);
        g->missed = g->total - g->goal;
    }
    for (int i = 0; i < bins; i++)
    {
        if (fabs(below - g->goal) < g->missed)
        {
            g->missed = fabs(below - g->goal);
            g->cut    = edge_of(g, bins, i);
        }
        if (below <= g->goal)
        {
            next       = i;
            below_next = below;
        }
        below += bin[i];
    }
    const double low = edge_of(g, bins, next), high = edge_of(g, bins, next + 1);
    g->found = g->missed <= c_tolerance * g->total || !(low + (high - low) / bins > low);
    g->upper = next + 1 < bins ? high : g->upper;
    g->below = below_next;
    set_bins(g, low, high, bins);
}

static int has_more(const bisection* b)
{
    int more = 0;
    for (int i = 0; i < b->num; i++)
    {
        more |= !b->groups[i].found;
    }
    return more;
}

/* The groups cut; *next gets the halves that are several ranks. */
static void halve(bisection* b, group* next)
{
    const int num = b->num;
#pragma omp parallel for schedule(static) num_threads(b->num_threads)
    for (int64_t i = 0; i < b->n; i++)
    {
        const int k = b->group_of[b->owner[i]];
        if (k >= 0)
        {
            const group* g     = &b->groups[k];
            const int    lower = b->x[3 * i + g->axis] < g->cut; /* half of them: no branch could be foreseen */
            b->owner[i]        = lower * b->owner[i] + (1 - lower) * g->middle;
        }
    }
    b->num = 0;
    for (int i = 0; i < num; i++)
    {
        add_group(b, next, b->groups[i].first, b->groups[i].middle);
        add_group(b, next, b->groups[i].middle, b->groups[i].last);
    }
}

/* Whether numbers in the box are fit to compute with. */
static gmxfmm_status check_length(const bisection* b, char* message, size_t size)
{
    double longest = 0;
    for (int d = 0; d < 3; d++)
    {
        longest = fmax(longest, b->values[d] + b->values[3 + d]);
    }
    if (longest > 0 && !fmm_in_range(longest))
    {
        snprintf(message, size, "the system is %g long: choose another unit of length", longest);
        return GMXFMM_ERROR_POSITION;
    }
    return GMXFMM_OK;
}

static gmxfmm_status bisect(bisection* b, group* other, char* message, size_t size)
{
    gmxfmm_status status = GMXFMM_OK;
    int           level  = 0;
#pragma omp parallel for schedule(static) num_threads(b->num_threads)
    for (int64_t i = 0; i < b->n; i++)
    {
        b->owner[i] = 0;
    }
    add_group(b, b->groups, 0, b->ranks->comm.size);
    while (b->num > 0 && status == GMXFMM_OK)
    {
        status = start(b);
        status = status == GMXFMM_OK && level++ == 0 ? check_length(b, message, size) : status;
        for (int round = 0; round < c_rounds && status == GMXFMM_OK && has_more(b); round++)
        {
            status = count(b);
            for (int i = 0; i < b->num && status == GMXFMM_OK; i++)
            {
                if (!b->groups[i].found)
                {
                    look(&b->groups[i], b->values + b->bins * i, b->bins);
                }
            }
        }
        halve(b, other);
        group* const done = b->groups;
        b->groups         = other;
        other             = done;
    }
    return status;
}

gmxfmm_status treecode_bisect(
    const fmm_ranks* ranks, int64_t n, const double* x, int* owner, int num_threads, char* message, size_t size)
{
    const int     bins = ranks->comm.size > c_fewRanks ? c_fewBins : c_bins;
    const size_t  num = (size_t)ranks->comm.size, all = num * (size_t)bins;
    group *       groups = malloc(num * sizeof(*groups)), *other = malloc(num * sizeof(*other));
    bisection     b      = {.ranks       = ranks,
                            .n           = n,
                            .x           = x,
                            .owner       = owner,
                            .groups      = groups,
                            .group_of    = malloc(num * sizeof(int)),
                            .bins        = bins,
                            .num_threads = num_threads,
                            .values      = malloc(all * sizeof(double)),
                            .room        = malloc(all * sizeof(double)),
                            .own         = malloc((size_t)num_threads * all * sizeof(double))};
    gmxfmm_status status = GMXFMM_OK;
    if (groups == NULL || other == NULL || b.group_of == NULL || b.values == NULL || b.room == NULL || b.own == NULL)
    {
        snprintf(message, size, "out of memory for %d ranks", ranks->comm.size);
        status = GMXFMM_ERROR_MEMORY;
    }
    status = fmm_ranks_agree(&ranks->comm, status, message, size);
    status = status == GMXFMM_OK ? bisect(&b, other, message, size) : status;
    free(groups);
    free(other);
    free(b.group_of);
    free(b.values);
    free(b.room);
    free(b.own);
    return status;
}
