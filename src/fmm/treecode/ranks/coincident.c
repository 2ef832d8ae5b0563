/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pair of particles behind sums that are not finite: the place of the target goes to all ranks, which look for it
 * among what they were given, so that numbers are those of the callers. */
#include "fmm/treecode/ranks/coincident.h"

#include <math.h>
#include <stdio.h>

#include "fmm/treecode/pair.h"

/* One of a rank's particles, or targets. */
typedef struct
{
    double square; /* of the distance, in the unit; INFINITY: there is none */
    double number;
    double rank;
} found;

static double place(const treecode_given* g, int64_t i)
{
    return g->type == GMXFMM_DOUBLE ? ((const double*)g->x)[i] : (double)((const float*)g->x)[i];
}

static void keep(found best[2], double square, int64_t number)
{
    const found this = {square, (double)number, best[0].rank};
    if (square < best[0].square)
    {
        best[1] = best[0];
        best[0] = this;
    }
    else if (square < best[1].square)
    {
        best[1] = this;
    }
}

/* The two nearest charges to a place; of targets the nearest one takes the place of the first, the nearest charge that
 * of the second. */
static void look(const treecode* t, const treecode_given* g, const double at[3], found best[2])
{
    found target[2] = {best[0], best[1]};
    for (int64_t i = 0; i < g->n; i++)
    {
        double square = 0;
        for (int d = 0; d < 3; d++)
        {
            square += pow((place(g, 3 * i + d) - at[d]) / t->unit, 2);
        }
        keep(best, g->q[i] != 0 ? square : INFINITY, i);
    }
    for (int64_t i = 0; i < g->num_targets; i++)
    {
        double square = 0;
        for (int d = 0; d < 3; d++)
        {
            square += pow((g->target_x[3 * i + d] - at[d]) / t->unit, 2);
        }
        keep(target, square, i);
    }
    if (t->separate)
    {
        best[1] = best[0];
        best[0] = target[0];
    }
}

/* The pair of all ranks, of what each found. */
static void join(const treecode* t, int num_ranks, const found* all, found pair[2])
{
    pair[0].square = pair[1].square = INFINITY;
    for (int i = 0; i < 2 * num_ranks; i++)
    {
        if (t->separate)
        {
            pair[i % 2] = all[i].square < pair[i % 2].square ? all[i] : pair[i % 2];
        }
        else if (all[i].square < pair[0].square)
        {
            pair[1] = pair[0];
            pair[0] = all[i];
        }
        else if (all[i].square < pair[1].square)
        {
            pair[1] = all[i];
        }
    }
}

gmxfmm_status
treecode_ranks_coincident(treecode* t, int who, const treecode_given* given, double* room, char* message, size_t size)
{
    const gmxfmm_comm* comm    = &t->ranks->ranks->comm;
    double             at[3]   = {0};
    const double       rank    = comm->rank;
    found              best[2] = {{INFINITY, -1, rank}, {INFINITY, -1, rank}}, pair[2], *all = (found*)room;
    if (comm->rank == who)
    {
        for (int d = 0; d < 3; d++)
        {
            at[d] = t->ranks->bad_place[d] * t->unit;
        }
    }
    gmxfmm_status status = fmm_ranks_broadcast(comm, who, at, sizeof(at));
    if (status == GMXFMM_OK)
    {
        look(t, given, at, best);
        status = fmm_ranks_all_gather(comm, best, sizeof(best), all);
    }
    if (status != GMXFMM_OK)
    {
        return status;
    }
    double g, slope;
    join(t, comm->size, all, pair);
    const int       first = (int)pair[0].rank, second = (int)pair[1].rank;
    const long long i = (long long)pair[0].number, j = (long long)pair[1].number;
    const double    square = fmax(pair[0].square, pair[1].square);
    if (!isfinite(square) || treecode_pair(t, square, &g, &slope))
    {
        snprintf(message, size, "%s are at one place, or so near that 1/r is not finite%s",
                 t->separate ? "a target and a charge" : "two charges",
                 t->options.precision == GMXFMM_SINGLE ? " in single precision" : "");
    }
    else if (t->separate)
    {
        snprintf(message, size, "target %lld of rank %d stands where particle %lld of rank %d does", i, first, j,
                 second);
    }
    else
    {
        snprintf(message, size,
                 "particle %lld of rank %d and particle %lld of rank %d are at one place, and both have a charge", i,
                 first, j, second);
    }
    return GMXFMM_ERROR_COINCIDENT;
}
