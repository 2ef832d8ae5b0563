/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * theta, degree and leaf for an accuracy, as one rank chooses them (treecode/choose.c), by rank 0 for all. It does so
 * for all particles if they are few enough, otherwise for a sample of them: the error of a treecode hardly depends on
 * the number of particles (Vaughn, Wilson & Krasny 2020, figure 5). It does depend on how many particles the smallest
 * clusters that are approximated have, and so on where trees are cut. So the error of the lists that follow is measured
 * on all ranks (measure.c), and where it is too large degree or theta become more exact.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/treecode/chebyshev.h"
#include "fmm/treecode/ranks/route.h"
#include "fmm/treecode/ranks/sample.h"
#include "fmm/treecode/ranks/state.h"
#include "fmm/treecode/treecode.h"

static const double c_sample = 131072; /* sources and targets, each: seconds of one thread */

/* Of an accuracy: the error of all targets may be 1.2 times that of the sample (tests/library/ranks.cpp). */
static const double c_enough = 0.8;

/* The most exact theta that is chosen, and by how much one differs from the next. */
static const double c_leastTheta = 0.5, c_stepOfTheta = 0.1;

/* Where nothing can be measured, as charges are at one place, which the step will tell. */
static const double  c_theta  = 0.7;
static const int     c_degree = 8;
static const int64_t c_leaf   = 1000;

enum
{
    c_numbers    = 4, /* of a particle: place and charge */
    c_mostTrials = 4  /* beside what rank 0 has chosen */
};

static int compare(const void* a, const void* b)
{
    const double *x = a, *y = b;
    int           k = 0;
    while (k < c_numbers - 1 && x[k] == y[k])
    {
        k++;
    }
    return (x[k] > y[k]) - (x[k] < y[k]);
}

/* The sample of the n places x of each rank, with their charges (NULL: 0), on rank 0: sorted, *num of them at *sample.
 * Errors: MEMORY. */
static gmxfmm_status
take_sample(treecode* t, int64_t n, const double* x, const double* q, double** sample, int64_t* num)
{
    const fmm_ranks* ranks  = t->ranks->ranks;
    double           all    = (double)n, room;
    gmxfmm_status    status = fmm_ranks_reduce(&ranks->comm, FMM_RANKS_SUM, &all, &room, 1);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    const double   share = c_sample / all;
    treecode_route route = {0};
    int64_t        taken = 0;
    for (int64_t i = 0; i < n; i++)
    {
        taken += treecode_draw(x + 3 * i) < share;
    }
    double* own   = malloc(((size_t)taken * c_numbers + 1) * sizeof(*own));
    int*    owner = calloc((size_t)taken + 1, sizeof(*owner));
    status        = treecode_ranks_agree(t, own != NULL && owner != NULL ? GMXFMM_OK : treecode_no_memory(t));
    if (status == GMXFMM_OK)
    {
        double* to = own;
        for (int64_t i = 0; i < n; i++)
        {
            if (treecode_draw(x + 3 * i) < share)
            {
                memcpy(to, x + 3 * i, 3 * sizeof(*to));
                to[3] = q != NULL ? q[i] : 0;
                to += c_numbers;
            }
        }
        status = treecode_route_make(&route, ranks, taken, owner, 1, t->message, sizeof(t->message));
    }
    free(owner);
    if (status == GMXFMM_OK)
    {
        *num    = route.owned;
        *sample = malloc(((size_t)*num * c_numbers + 1) * sizeof(**sample));
        status  = treecode_ranks_agree(t, *sample != NULL ? GMXFMM_OK : treecode_no_memory(t));
    }
    /* all to one rank: they travel in their order, from where they are */
    status = status == GMXFMM_OK ? treecode_route_there(&route, ranks, c_numbers, own, GMXFMM_DOUBLE, own, *sample, 1)
                                 : status;
    if (status == GMXFMM_OK)
    {
        qsort(*sample, (size_t)*num, c_numbers * sizeof(**sample), compare);
    }
    free(own);
    treecode_route_free(&route);
    return status;
}

/* The places of a sample in x[3 num], their charges in q[num] unless that is NULL. */
static void divide(int64_t num, const double* sample, double* x, double* q)
{
    for (int64_t i = 0; i < num; i++)
    {
        memcpy(x + 3 * i, sample + c_numbers * i, 3 * sizeof(*x));
        if (q != NULL)
        {
            q[i] = sample[c_numbers * i + 3];
        }
    }
}

/* The choice of one rank for n sources and m targets of a sample; targets NULL: the sources. Errors: MEMORY, those of
 * its device. */
static gmxfmm_status
choose_alone(treecode* t, int64_t n, const double* sources, int64_t m, const double* targets, treecode_info* info)
{
    treecode_options o   = t->options;
    treecode*        one = NULL;
    double *         x = malloc(3 * ((size_t)n + 1) * sizeof(*x)), *q = malloc(((size_t)n + 1) * sizeof(*q));
    double*          y   = malloc(3 * ((size_t)m + 1) * sizeof(*y));
    o.stages             = t->ranks->local;
    o.ranks              = NULL;
    gmxfmm_status status = GMXFMM_ERROR_MEMORY;
    if (x != NULL && q != NULL && y != NULL)
    {
        divide(n, sources, x, q);
        divide(targets != NULL ? m : 0, targets, y, NULL);
        status = treecode_create(&one, &o, t->message, sizeof(t->message));
        status = status == GMXFMM_OK ? treecode_set_charges(one, n, q) : status;
        status = status == GMXFMM_OK ? treecode_assign(one, x, m, targets != NULL ? y : NULL) : status;
    }
    if (status == GMXFMM_OK)
    {
        treecode_get_info(one, info);
    }
    else if (status == GMXFMM_ERROR_COINCIDENT)
    {
        info->theta  = o.theta > 0 ? o.theta : c_theta;
        info->degree = o.degree > 0 ? o.degree : c_degree;
        info->leaf   = o.leaf > 0 ? o.leaf : c_leaf;
        status       = GMXFMM_OK;
    }
    else if (one != NULL)
    {
        snprintf(t->message, sizeof(t->message), "%s", treecode_message(one));
    }
    treecode_destroy(one);
    free(x);
    free(q);
    free(y);
    return status == GMXFMM_ERROR_MEMORY ? treecode_no_memory(t) : status;
}

/* The choice of rank 0, for all. */
static gmxfmm_status choose(treecode* t, const double* x, const double* q, int64_t m, const double* y)
{
    const gmxfmm_comm* comm    = &t->ranks->ranks->comm;
    treecode_options*  o       = &t->options;
    double *           sources = NULL, *targets = NULL;
    int64_t            n = 0, num_targets = 0;
    treecode_info      info   = {0};
    gmxfmm_status      status = take_sample(t, t->n, x, q, &sources, &n);
    status = status == GMXFMM_OK && y != NULL ? take_sample(t, m, y, NULL, &targets, &num_targets) : status;
    if (status == GMXFMM_OK)
    {
        status = comm->rank == 0 ? choose_alone(t, n, sources, num_targets, targets, &info) : GMXFMM_OK;
        status = treecode_ranks_agree(t, status);
    }
    status = status == GMXFMM_OK ? fmm_ranks_broadcast(comm, 0, &info, sizeof(info)) : status;
    if (status == GMXFMM_OK)
    {
        o->theta  = info.theta;
        o->degree = info.degree;
        o->leaf   = info.leaf;
    }
    free(sources);
    free(targets);
    return status;
}

/* Makes options more exact, if what was asked leaves that open. */
static int refine(treecode_options* o, const treecode_options* asked)
{
    if (asked->degree == 0 && o->degree < TREECODE_MAX_DEGREE)
    {
        o->degree++;
        return 1;
    }
    if (asked->theta == 0 && o->theta > c_leastTheta + 0.5 * c_stepOfTheta)
    {
        o->theta -= c_stepOfTheta;
        return 1;
    }
    return 0;
}

/* Measures the error, with more exact settings while it is too large. */
static gmxfmm_status
improve(treecode* t, const treecode_options* asked, const double* x, const double* q, int64_t m, const double* y)
{
    double*       error  = &t->info.measured_error; /* NAN where charges are at one place */
    gmxfmm_status status = treecode_ranks_measure(t, x, q, m, y, error);
    for (int i = 0;
         i < c_mostTrials && status == GMXFMM_OK && *error > c_enough * asked->accuracy && refine(&t->options, asked);
         i++)
    {
        status = treecode_assign(t, x, m, y);
        status = status == GMXFMM_OK ? treecode_ranks_measure(t, x, q, m, y, error) : status;
    }
    return status;
}

gmxfmm_status treecode_ranks_assign(treecode* t, const double* x, const double* q, int64_t m, const double* y)
{
    const treecode_options asked    = t->options;
    const int              measures = treecode_measures(t);
    gmxfmm_status          status   = treecode_is_automatic(t) ? choose(t, x, q, m, y) : GMXFMM_OK;
    status                          = status == GMXFMM_OK ? treecode_assign(t, x, m, y) : status;
    status                          = status == GMXFMM_OK && measures ? improve(t, &asked, x, q, m, y) : status;
    if (status != GMXFMM_OK)
    {
        t->options = asked;
    }
    return status;
}
