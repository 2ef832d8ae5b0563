/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The error of the lists of several ranks: what a step gives at some targets, against sums over all pairs. Each rank
 * sums its own sources for all of these targets, as a treecode of one rank to which nothing is far, in double precision
 * and by the stages of its device; ranks add that up.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/treecode/error.h"
#include "fmm/treecode/pair.h"
#include "fmm/treecode/ranks/sample.h"
#include "fmm/treecode/ranks/state.h"
#include "fmm/treecode/treecode.h"

/* Targets in the sample. A few particles may have most of the norm and of the error, so the more the better; of more
 * than c_few as many as cost, with thousands of pairs a target in a step, a small part of one. */
static const double c_few = 250000, c_ofFew = 2048, c_ofMany = 1024;

static const double c_nearTheta = 1e-9; /* nothing is far */

enum
{
    c_values = 4,       /* potential and field */
    c_piece  = 1 << 20, /* sources that are summed at once: bounds the memory for it */
    c_leaf   = 1000
};

/* Arrays of all targets in the sample are zeros but for what this rank knows, until ranks have added them up. */
typedef struct
{
    double   share;  /* of the targets */
    int64_t  own;    /* targets of this rank, */
    int64_t* index;  /* own: their numbers on it, */
    int64_t  first;  /* and that of the first of them in the sample */
    int64_t  num;    /* of all ranks */
    double*  step;   /* c_values of each target of this rank */
    double*  place;  /* 3 num */
    double*  values; /* c_values num, and behind them as many exact ones */
    double*  room;   /* 2 c_values num */
} sample;

static double* exact(const sample* s)
{
    return s->values + c_values * s->num;
}

static void free_sample(sample* s)
{
    free(s->index);
    free(s->step);
    free(s->place);
    free(s->values);
    free(s->room);
}

/* Which of the m targets y are in the sample, and how many each rank has. */
static gmxfmm_status pick(treecode* t, int64_t m, const double* y, sample* s)
{
    const gmxfmm_comm* comm   = &t->ranks->ranks->comm;
    double             all    = (double)m, room;
    gmxfmm_status      status = fmm_ranks_reduce(comm, FMM_RANKS_SUM, &all, &room, 1);
    int64_t*           each   = calloc((size_t)comm->size, sizeof(*each));
    int64_t            k      = 0;
    s->share                  = (all <= c_few ? c_ofFew : c_ofMany) / all;
    for (int64_t i = 0; i < m; i++)
    {
        s->own += treecode_draw(y + 3 * i) < s->share;
    }
    s->index       = malloc(((size_t)s->own + 1) * sizeof(*s->index));
    const int made = each != NULL && s->index != NULL;
    status         = status == GMXFMM_OK ? treecode_ranks_agree(t, made ? GMXFMM_OK : treecode_no_memory(t)) : status;
    status         = status == GMXFMM_OK ? fmm_ranks_all_gather(comm, &s->own, sizeof(s->own), each) : status;
    for (int64_t i = 0; i < m && status == GMXFMM_OK; i++)
    {
        if (treecode_draw(y + 3 * i) < s->share)
        {
            s->index[k++] = i;
        }
    }
    for (int r = 0; r < comm->size && status == GMXFMM_OK; r++)
    {
        s->first += r < comm->rank ? each[r] : 0;
        s->num += each[r];
    }
    free(each);
    return status;
}

/* The places of all of the sample; memory for the rest. */
static gmxfmm_status share_places(treecode* t, int64_t m, const double* y, sample* s)
{
    const size_t num     = (size_t)s->num + 1;
    s->step              = malloc((c_values * (size_t)m + 1) * sizeof(*s->step));
    s->place             = calloc(3 * num, sizeof(*s->place));
    s->values            = calloc(2 * c_values * num, sizeof(*s->values));
    s->room              = calloc(2 * c_values * num, sizeof(*s->room));
    const int     made   = s->step != NULL && s->place != NULL && s->values != NULL && s->room != NULL;
    gmxfmm_status status = treecode_ranks_agree(t, made ? GMXFMM_OK : treecode_no_memory(t));
    for (int64_t k = 0; k < s->own && status == GMXFMM_OK; k++)
    {
        memcpy(s->place + 3 * (s->first + k), y + 3 * s->index[k], 3 * sizeof(*s->place));
    }
    return status == GMXFMM_OK
               ? fmm_ranks_reduce(&t->ranks->ranks->comm, FMM_RANKS_SUM, s->place, s->room, 3 * (size_t)s->num)
               : status;
}

/* What a step gives at this rank's targets in the sample. Errors: as treecode_execute. */
static gmxfmm_status step(treecode* t, const double* x, int64_t m, sample* s)
{
    const double *      potential = s->step, *field = s->step + m;
    treecode_output     out    = {.potential = s->step, .field = s->step + m};
    const gmxfmm_status status = treecode_execute(t, x, &out);
    for (int64_t k = 0; k < s->own && status == GMXFMM_OK; k++)
    {
        double* to = s->values + c_values * (s->first + k);
        to[0]      = potential[s->index[k]];
        memcpy(to + 1, field + 3 * s->index[k], 3 * sizeof(*to));
    }
    return status;
}

/* A source in the sample for the targets there but itself, which is number `itself` of them. A pair whose kernel is not
 * finite has no part where the source has no charge, as in a step. */
static void add_source(const treecode* t, const double* x, double q, int64_t itself, sample* s)
{
    const double value = q * treecode_value_factor(t, 0), gradient = q * treecode_value_factor(t, 1);
    for (int64_t k = 0; k < s->num; k++)
    {
        double *to = exact(s) + c_values * k, d[3], square = 0, g, slope;
        for (int i = 0; i < 3; i++)
        {
            d[i] = (s->place[3 * k + i] - x[i]) / t->unit;
            square += d[i] * d[i];
        }
        if (k == itself || (!treecode_pair(t, square, &g, &slope) && q == 0))
        {
            continue;
        }
        to[0] += value * g;
        for (int i = 0; i < 3; i++)
        {
            to[1 + i] -= gradient * slope * d[i];
        }
    }
}

/* A treecode of one rank that sums all pairs. Errors: as treecode_create. */
static gmxfmm_status create_direct(treecode* t, treecode** direct)
{
    treecode_options o = t->options;
    o.stages           = t->ranks->local;
    o.ranks            = NULL;
    o.theta            = c_nearTheta;
    o.degree           = 1;
    o.leaf             = c_leaf;
    o.dual             = 0;
    o.measures         = 0;
    o.precision        = GMXFMM_DOUBLE;
    return treecode_create(direct, &o, t->message, sizeof(t->message));
}

/* n sources for all targets in the sample. values: room for c_values of each. Errors: as treecode_execute. */
static gmxfmm_status
add_piece(treecode* t, treecode* direct, int64_t n, const double* x, const double* q, double* values, sample* s)
{
    treecode_output out    = {.potential = values, .field = values + s->num};
    gmxfmm_status   status = treecode_set_charges(direct, n, q);
    status                 = status == GMXFMM_OK ? treecode_assign(direct, x, s->num, s->place) : status;
    status                 = status == GMXFMM_OK ? treecode_execute(direct, x, &out) : status;
    for (int64_t k = 0; k < s->num && status == GMXFMM_OK; k++)
    {
        double* to = exact(s) + c_values * k;
        to[0] += values[k];
        for (int i = 0; i < 3; i++)
        {
            to[1 + i] += values[s->num + 3 * k + i];
        }
    }
    if (status != GMXFMM_OK)
    {
        snprintf(t->message, sizeof(t->message), "%s", treecode_message(direct));
    }
    return status;
}

/* This rank's sources for all targets in the sample. Where sources are targets, those in the sample have themselves
 * among these, and are summed one by one. Errors: MEMORY, COINCIDENT, DEVICE. */
static gmxfmm_status add_sources(treecode* t, const double* x, const double* q, int are_targets, sample* s)
{
    const int64_t piece  = t->n < c_piece ? t->n : c_piece;
    double*       places = malloc((4 * (size_t)piece + 1) * sizeof(*places));
    double*       values = malloc((c_values * (size_t)s->num + 1) * sizeof(*values));
    double*       q_of   = places + 3 * piece;
    treecode*     direct = NULL;
    int64_t       num = 0, sampled = 0;
    gmxfmm_status status = places != NULL && values != NULL ? create_direct(t, &direct) : GMXFMM_ERROR_MEMORY;
    for (int64_t i = 0; i < t->n && status == GMXFMM_OK; i++)
    {
        if (are_targets && treecode_draw(x + 3 * i) < s->share)
        {
            add_source(t, x + 3 * i, q[i], s->first + sampled++, s);
        }
        else
        {
            memcpy(places + 3 * num, x + 3 * i, 3 * sizeof(*places));
            q_of[num++] = q[i];
        }
        if (num > 0 && (num == piece || i == t->n - 1))
        {
            status = add_piece(t, direct, num, places, q_of, values, s);
            num    = 0;
        }
    }
    treecode_destroy(direct);
    free(places);
    free(values);
    return status == GMXFMM_ERROR_MEMORY ? treecode_no_memory(t) : status;
}

/* Agreement, but that charges at one place are told in *apart = 0. */
static gmxfmm_status agree(treecode* t, gmxfmm_status status, int* apart)
{
    double coincident = status == GMXFMM_ERROR_COINCIDENT, room;
    status            = treecode_ranks_agree(t, status == GMXFMM_ERROR_COINCIDENT ? GMXFMM_OK : status);
    status =
        status == GMXFMM_OK ? fmm_ranks_reduce(&t->ranks->ranks->comm, FMM_RANKS_MAX, &coincident, &room, 1) : status;
    *apart = status == GMXFMM_OK && coincident == 0;
    return status;
}

/* The sample's values and exact values, in the caller's units without the prefactor. */
static gmxfmm_status
compare(treecode* t, const double* x, const double* q, int64_t m, const double* y, sample* s, int* apart)
{
    const double* places = y != NULL ? y : x;
    gmxfmm_status status = pick(t, m, places, s);
    status               = status == GMXFMM_OK ? share_places(t, m, places, s) : status;
    status               = status == GMXFMM_OK ? agree(t, step(t, x, m, s), apart) : status;
    status               = status == GMXFMM_OK && *apart ? agree(t, add_sources(t, x, q, y == NULL, s), apart) : status;
    return status == GMXFMM_OK && *apart ? fmm_ranks_reduce(&t->ranks->ranks->comm, FMM_RANKS_SUM, s->values, s->room,
                                                            2 * c_values * (size_t)s->num)
                                         : status;
}

gmxfmm_status
treecode_ranks_measure(treecode* t, const double* x, const double* q, int64_t m, const double* y, double* error)
{
    const double prefactor     = t->options.prefactor; /* which may be zero */
    int          apart         = 1;
    sample       s             = {0};
    t->options.prefactor       = 1;
    const gmxfmm_status status = compare(t, x, q, y != NULL ? m : t->n, y, &s, &apart);
    t->options.prefactor       = prefactor;
    *error = status == GMXFMM_OK && apart ? treecode_error_of(s.num, s.values, exact(&s), s.room) : NAN;
    free_sample(&s);
    return status;
}
