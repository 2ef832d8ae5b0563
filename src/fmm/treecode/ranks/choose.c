/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * theta, degree and leaf for an accuracy, as one rank chooses them (treecode/choose.c), by rank 0 for all. It does so
 * for all particles if they are few enough, otherwise for a sample of them: the error of a treecode hardly depends on
 * the number of particles (Vaughn, Wilson & Krasny 2020, figure 5). Which particles are in the sample depends on where
 * they are, not on who has them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/treecode/ranks/route.h"
#include "fmm/treecode/ranks/state.h"
#include "fmm/treecode/treecode.h"

static const double c_sample = 131072; /* sources and targets, each: seconds of one thread */

/* Where nothing can be measured, as charges are at one place, which the step will tell. */
static const double  c_theta  = 0.7;
static const int     c_degree = 8;
static const int64_t c_leaf   = 1000;

enum
{
    c_numbers = 4 /* of a particle: place and charge */
};

/* A number in [0, 1) that looks random, of a place (splitmix64: Steele, Lea & Flood 2014). */
static double draw(const double x[3])
{
    uint64_t z = 0;
    for (int d = 0; d < 3; d++)
    {
        uint64_t bits;
        memcpy(&bits, &x[d], sizeof(bits));
        z = (z ^ bits) + 0x9e3779b97f4a7c15U;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
        z ^= z >> 31;
    }
    return (double)(z >> 11) * 0x1p-53;
}

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
        taken += draw(x + 3 * i) < share;
    }
    double* own   = malloc(((size_t)taken * c_numbers + 1) * sizeof(*own));
    int*    owner = calloc((size_t)taken + 1, sizeof(*owner));
    status        = treecode_ranks_agree(t, own != NULL && owner != NULL ? GMXFMM_OK : treecode_no_memory(t));
    if (status == GMXFMM_OK)
    {
        double* to = own;
        for (int64_t i = 0; i < n; i++)
        {
            if (draw(x + 3 * i) < share)
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
    status = status == GMXFMM_OK ? treecode_route_there(&route, ranks, c_numbers, own, *sample) : status;
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
        info->theta          = o.theta > 0 ? o.theta : c_theta;
        info->degree         = o.degree > 0 ? o.degree : c_degree;
        info->leaf           = o.leaf > 0 ? o.leaf : c_leaf;
        info->measured_error = NAN;
        status               = GMXFMM_OK;
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

gmxfmm_status treecode_ranks_choose(treecode* t, const double* x, const double* q, int64_t m, const double* y)
{
    const gmxfmm_comm* comm    = &t->ranks->ranks->comm;
    treecode_options*  o       = &t->options;
    double *           sources = NULL, *targets = NULL;
    int64_t            n = 0, num_targets = 0;
    treecode_info      info   = {0};
    gmxfmm_status      status = GMXFMM_OK;
    if (o->theta > 0 && o->degree > 0 && o->leaf > 0)
    {
        return GMXFMM_OK;
    }
    status = take_sample(t, t->n, x, q, &sources, &n);
    status = status == GMXFMM_OK && y != NULL ? take_sample(t, m, y, NULL, &targets, &num_targets) : status;
    if (status == GMXFMM_OK)
    {
        status = comm->rank == 0 ? choose_alone(t, n, sources, num_targets, targets, &info) : GMXFMM_OK;
        status = treecode_ranks_agree(t, status);
    }
    status = status == GMXFMM_OK ? fmm_ranks_broadcast(comm, 0, &info, sizeof(info)) : status;
    if (status == GMXFMM_OK)
    {
        o->theta               = info.theta;
        o->degree              = info.degree;
        o->leaf                = info.leaf;
        t->info.measured_error = info.measured_error;
    }
    free(sources);
    free(targets);
    return status;
}
