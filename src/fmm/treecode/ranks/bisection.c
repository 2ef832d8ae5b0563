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
#include <stdio.h>
#include <stdlib.h>

#include "fmm/geometry/cells.h"

enum
{
    c_bins   = 64,
    c_rounds = 16 /* of 6 bits each: more than a number has */
};

/* A part may have so many of a group's particles too many or too few. */
static const double c_tolerance = 1.0 / 1024;

/* Ranks first .. last - 1, the upper ones from `middle` on. */
typedef struct
{
    int    first, middle, last;
    int    axis;             /* of the cut */
    double edge[c_bins + 1]; /* of the bins; particles of the last are below `upper` */
    double upper;            /* INFINITY in the first histogram, which has all */
    double below;            /* particles below edge[0] */
    double goal, total;      /* that are to be below the cut, and all */
    double cut, missed;      /* the best so far, and by how many it misses the goal */
    int    found;
} group;

typedef struct
{
    const fmm_ranks* ranks;
    int64_t          n;
    const double*    x;
    int*             owner;         /* n: first rank of the group that a particle is in */
    group*           groups;        /* of several ranks */
    int*             group_of;      /* of a first rank; -1: it is alone */
    int              num;           /* groups */
    double *         values, *room; /* c_bins of each group */
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

static void set_bins(group* g, double low, double high)
{
    for (int i = 0; i < c_bins; i++)
    {
        g->edge[i] = low + (high - low) * i / c_bins;
    }
    g->edge[c_bins] = high;
}

/* Boxes around groups: their axes and first histograms. */
static gmxfmm_status start(bisection* b)
{
    for (int i = 0; i < 6 * b->num; i++)
    {
        b->values[i] = -INFINITY;
    }
    for (int64_t i = 0; i < b->n; i++)
    {
        const int g = b->group_of[b->owner[i]];
        for (int d = 0; d < 3 && g >= 0; d++)
        {
            double* range = b->values + 6 * g;
            range[d]      = fmax(range[d], -b->x[3 * i + d]);
            range[3 + d]  = fmax(range[3 + d], b->x[3 * i + d]);
        }
    }
    const gmxfmm_status status =
        fmm_ranks_reduce(&b->ranks->comm, FMM_RANKS_MAX, b->values, b->room, 6 * (size_t)b->num);
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
        set_bins(g, -range[g->axis], high[g->axis]);
    }
    return status;
}

/* The bin of a place from edge[0] on. */
static int bin_of(const group* g, double x)
{
    const double low = g->edge[0], width = g->edge[c_bins] - low;
    int          bin = (int)fmin(c_bins - 1, (x - low) / width * c_bins);
    while (bin > 0 && x < g->edge[bin])
    {
        bin--;
    }
    while (bin + 1 < c_bins && x >= g->edge[bin + 1])
    {
        bin++;
    }
    return bin;
}

static gmxfmm_status count(bisection* b)
{
    for (int i = 0; i < c_bins * b->num; i++)
    {
        b->values[i] = 0;
    }
    for (int64_t i = 0; i < b->n; i++)
    {
        const int    k = b->group_of[b->owner[i]];
        const group* g = k >= 0 ? &b->groups[k] : NULL;
        if (g != NULL && !g->found && b->x[3 * i + g->axis] >= g->edge[0] && b->x[3 * i + g->axis] < g->upper)
        {
            b->values[c_bins * k + bin_of(g, b->x[3 * i + g->axis])]++;
        }
    }
    return fmm_ranks_reduce(&b->ranks->comm, FMM_RANKS_SUM, b->values, b->room, (size_t)c_bins * (size_t)b->num);
}

/* The best cut at an edge between bins, and the histogram of the bin that a better one is in. */
static void look(group* g, const double* bin)
{
    int    next  = 0;
    double below = g->below, below_next = g->below;
    if (g->total < 0) /* the first histogram */
    {
        g->total = 0;
        for (int i = 0; i < c_bins; i++)
        {
            g->total += bin[i];
        }
        g->goal   = floor(g->total * (g->middle - g->first) / (g->last - g->first) + 0.5);
        g->missed = g->total - g->goal;
    }
    for (int i = 0; i < c_bins; i++)
    {
        if (fabs(below - g->goal) < g->missed)
        {
            g->missed = fabs(below - g->goal);
            g->cut    = g->edge[i];
        }
        if (below <= g->goal)
        {
            next       = i;
            below_next = below;
        }
        below += bin[i];
    }
    const double low = g->edge[next], high = g->edge[next + 1];
    g->found = g->missed <= c_tolerance * g->total || !(low + (high - low) / c_bins > low);
    g->upper = next + 1 < c_bins ? high : g->upper;
    g->below = below_next;
    set_bins(g, low, high);
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
    for (int64_t i = 0; i < b->n; i++)
    {
        const int k = b->group_of[b->owner[i]];
        if (k >= 0 && !(b->x[3 * i + b->groups[k].axis] < b->groups[k].cut))
        {
            b->owner[i] = b->groups[k].middle;
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
                    look(&b->groups[i], b->values + c_bins * i);
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

gmxfmm_status
treecode_bisect(const fmm_ranks* ranks, int64_t n, const double* x, int* owner, char* message, size_t size)
{
    const size_t  num    = (size_t)ranks->comm.size;
    group *       groups = malloc(num * sizeof(*groups)), *other = malloc(num * sizeof(*other));
    bisection     b      = {.ranks    = ranks,
                            .n        = n,
                            .x        = x,
                            .owner    = owner,
                            .groups   = groups,
                            .group_of = malloc(num * sizeof(int)),
                            .values   = malloc(num * c_bins * sizeof(double)),
                            .room     = malloc(num * c_bins * sizeof(double))};
    gmxfmm_status status = GMXFMM_OK;
    if (groups == NULL || other == NULL || b.group_of == NULL || b.values == NULL || b.room == NULL)
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
    return status;
}
