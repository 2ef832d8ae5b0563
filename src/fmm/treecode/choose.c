/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * theta, degree and leaf for an accuracy. A model of the error proposes a degree for each theta; of these the one is
 * taken with the fewest evaluations of the kernel, as lists of a sample of batches count them. Its error is then
 * measured at a sample of targets against direct sums, the model is scaled by that, and so on until a proposal is one
 * that was measured.
 */
#include <math.h>
#include <stdlib.h>

#include "fmm/treecode/chebyshev.h"
#include "fmm/treecode/error.h"
#include "fmm/treecode/state.h"

static const double  c_theta[] = {0.5, 0.6, 0.7, 0.8, 0.9};
static const int64_t c_leaf[]  = {125, 250, 500, 1000, 2000, 4000};

/* A sample misses the error of all targets by as much, now and then (tests/library/treecode.cpp). */
static const double c_safety = 0.5;

/* Of an accuracy: a smaller error is that of direct sums, and tells no degree for particles that move apart. */
static const double c_direct = 1e-6;

enum
{
    c_numThetas  = sizeof(c_theta) / sizeof(c_theta[0]),
    c_numLeaves  = sizeof(c_leaf) / sizeof(c_leaf[0]),
    c_groups     = 256, /* of targets that are measured, or many, where direct sums are cheap */
    c_manyGroups = 1024,
    c_many       = 250000, /* sources that are few enough */
    c_groupSize  = 16,
    c_mostTrials = 10
};

typedef struct
{
    double theta;
    int    degree;
    double cost; /* evaluations of the kernel, and products for modified charges */
} proposal;

/* A few particles may have most of the norm, and of the error: the more are measured, the better. */
static int num_groups(const treecode* t)
{
    return t->n <= c_many ? c_manyGroups : c_groups;
}

/* Error of potentials of random charges in a cube: a(theta) b(theta)^n, fitted to n = 1 .. 13 and theta = 0.5, 0.7,
 * 0.9. */
double treecode_predicted_error(double theta, int degree)
{
    return (0.03 + 0.21 * (theta - 0.5)) * exp(degree * (-2.03 + 2.44 * (theta - 0.5)));
}

/* The smallest degree whose error is at most that, or the largest there is. */
static int degree_for(double theta, double error)
{
    int degree = 1;
    while (degree < TREECODE_MAX_DEGREE && treecode_predicted_error(theta, degree) > error)
    {
        degree++;
    }
    return degree;
}

/* Evaluations of the kernel for all targets; negative: no memory. */
static double count_pairs(treecode* t)
{
    treecode_lists           lists = {0};
    const treecode_criterion c     = treecode_criterion_of(t);
    if (t->options.dual) /* its lists are of the whole */
    {
        return t->options.stages->lists(t) == GMXFMM_OK ? t->info.pairs_per_target * (double)t->num_targets : -1;
    }
    const int    failed = treecode_lists_sample(&lists, &c, c_groups, 1);
    const double pairs  = failed ? -1 : lists.pairs * (double)t->num_targets / fmax(1, (double)lists.targets);
    treecode_lists_free(&lists);
    return pairs;
}

/* Cost of options as they are, on the trees as they are; negative: no memory. */
static double cost(treecode* t)
{
    const double pairs = count_pairs(t), edge = t->options.degree + 1;
    /* a product for a modified charge costs about as much as a quarter of an evaluation, those of a downward pass as
     * well */
    const double ways = t->options.dual ? 2 : 1;
    return pairs < 0 ? -1 : pairs + 0.25 * ways * edge * edge * edge * (double)t->n;
}

/* The cheapest theta and degree whose error should be at most that; cost < 0: no memory. */
static proposal propose(treecode* t, const treecode_options* asked, double error)
{
    proposal best = {0, 0, INFINITY};
    for (int i = 0; i < (asked->theta > 0 ? 1 : c_numThetas); i++)
    {
        t->options.theta     = asked->theta > 0 ? asked->theta : c_theta[i];
        t->options.degree    = asked->degree > 0 ? asked->degree : degree_for(t->options.theta, error);
        const int    reached = i == 0 || treecode_predicted_error(t->options.theta, t->options.degree) <= error;
        const double now     = reached ? cost(t) : INFINITY;
        if (now < best.cost)
        {
            const proposal p = {t->options.theta, t->options.degree, now};
            best             = p;
        }
    }
    return best;
}

static gmxfmm_status make_trees(treecode* t)
{
    const treecode_stages* stages = t->options.stages;
    const gmxfmm_status    status = stages->trees(t);
    return status == GMXFMM_OK && stages->mirror != NULL ? stages->mirror(t, 0) : status;
}

/* Trees of the leaf size that is cheapest by the model. */
static gmxfmm_status choose_leaf(treecode* t, const treecode_options* asked)
{
    double  least     = INFINITY;
    int64_t best_leaf = asked->leaf;
    for (int i = 0; i < c_numLeaves && asked->leaf == 0; i++)
    {
        t->options.leaf            = c_leaf[i];
        const gmxfmm_status status = make_trees(t);
        if (status != GMXFMM_OK)
        {
            return status;
        }
        const proposal p = propose(t, asked, c_safety * asked->accuracy);
        if (p.cost < 0)
        {
            return treecode_no_memory(t);
        }
        if (p.cost < least)
        {
            least     = p.cost;
            best_leaf = c_leaf[i];
        }
        else if (p.cost > 1.5 * least)
        {
            break;
        }
    }
    t->options.leaf = best_leaf;
    return make_trees(t);
}

/* Potential and field, 4 a target, of the sample's targets. Returns one whose sums are not finite, or -1. */
static int64_t take(const treecode* t, const treecode_lists* sample, double* values)
{
    int64_t bad = -1;
    for (int b = 0; b < sample->num; b++)
    {
        for (int64_t s = sample->begin[b]; s < sample->end[b]; s++, values += 4)
        {
            values[0] = t->phi[s];
            values[1] = t->slope[0][s];
            values[2] = t->slope[1][s];
            values[3] = t->slope[2][s];
            bad = isfinite(values[0]) && isfinite(values[1]) && isfinite(values[2]) && isfinite(values[3]) ? bad : s;
        }
    }
    return bad;
}

/* Sums of a sample into values: direct sums in double precision, or as options are. */
static gmxfmm_status sums_of_sample(treecode* t, int direct, double* values, int64_t* num)
{
    treecode_lists     sample = {0};
    treecode_criterion c      = treecode_criterion_of(t);
    const int          all    = t->options.dual && !direct; /* its lists are of the whole */
    c.theta                   = direct ? 0 : c.theta;
    if (treecode_lists_sample(&sample, &c, num_groups(t), c_groupSize))
    {
        return treecode_no_memory(t);
    }
    const treecode_stages* stages = t->options.stages;
    gmxfmm_status          status =
        all ? stages->all_sums(t, 1) : stages->sums(t, &sample, direct ? GMXFMM_DOUBLE : t->options.precision, 1);
    status = status == GMXFMM_OK && stages->fetch != NULL ? stages->fetch(t, &sample) : status;
    if (status == GMXFMM_OK)
    {
        const int64_t bad = take(t, &sample, values);
        status            = bad >= 0 ? treecode_coincident(t, bad) : GMXFMM_OK;
    }
    *num = sample.targets;
    treecode_lists_free(&sample);
    return status;
}

/* Modified charges for options as they are, of all sources. */
static gmxfmm_status make_charges(treecode* t)
{
    const treecode_stages* stages = t->options.stages;
    gmxfmm_status          status = stages->reserve(t);
    status                        = status == GMXFMM_OK ? stages->gather(t, t->x) : status;
    return status == GMXFMM_OK ? stages->charges(t) : status;
}

static gmxfmm_status measure(treecode* t, const double* exact, double* values, double* error)
{
    int64_t       num;
    gmxfmm_status status = t->options.dual ? t->options.stages->lists(t) : GMXFMM_OK;
    status               = status == GMXFMM_OK ? make_charges(t) : status;
    status               = status == GMXFMM_OK ? sums_of_sample(t, 0, values, &num) : status;
    if (status != GMXFMM_OK)
    {
        return status;
    }
    double* room = malloc((size_t)num * sizeof(*room) + 1);
    if (room == NULL)
    {
        return treecode_no_memory(t);
    }
    *error = treecode_error_of(num, values, exact, room);
    free(room);
    if (!isfinite(*error))
    {
        return treecode_coincident(t, -1);
    }
    return GMXFMM_OK;
}

/* Proposals until one comes back; values and exact: what is measured. */
static gmxfmm_status search(treecode* t, const treecode_options* asked, const double* exact, double* values)
{
    proposal tried[c_mostTrials];
    double   error[c_mostTrials], scale = 1;
    int      num = 0, best = 0, known = 0;
    while (num < c_mostTrials && !known)
    {
        const proposal p = propose(t, asked, c_safety * asked->accuracy / scale);
        if (p.cost < 0)
        {
            return treecode_no_memory(t);
        }
        for (int i = 0; i < num; i++)
        {
            known |= tried[i].theta == p.theta && tried[i].degree == p.degree;
        }
        if (known)
        {
            break;
        }
        t->options.theta           = p.theta;
        t->options.degree          = p.degree;
        const gmxfmm_status status = measure(t, exact, values, &error[num]);
        if (status != GMXFMM_OK)
        {
            return status;
        }
        tried[num]        = p;
        const int reached = error[num] <= c_safety * asked->accuracy;
        const int before  = num > 0 && error[best] <= c_safety * asked->accuracy;
        if (num == 0 || (reached ? !before || p.cost < tried[best].cost : !before && error[num] < error[best]))
        {
            best = num;
        }
        scale = fmax(1e-3, error[num] / treecode_predicted_error(p.theta, p.degree));
        num++;
    }
    t->options.theta       = tried[best].theta;
    t->options.degree      = tried[best].degree;
    t->info.measured_error = error[best];
    if (error[best] < c_direct * asked->accuracy && asked->degree == 0)
    {
        const int modelled = degree_for(tried[best].theta, c_safety * asked->accuracy);
        t->options.degree  = modelled > tried[best].degree ? modelled : tried[best].degree;
    }
    return GMXFMM_OK;
}

gmxfmm_status treecode_choose(treecode* t)
{
    const treecode_options asked  = t->options;
    gmxfmm_status          status = choose_leaf(t, &asked);
    const size_t           room   = 4 * c_manyGroups * c_groupSize * sizeof(double);
    double *               exact = malloc(room), *values = malloc(room);
    int64_t                num;
    if (exact == NULL || values == NULL)
    {
        status = treecode_no_memory(t);
    }
    t->options.degree = 1;
    status            = status == GMXFMM_OK ? make_charges(t) : status; /* gathers the sources, too */
    status            = status == GMXFMM_OK ? sums_of_sample(t, 1, exact, &num) : status;
    status            = status == GMXFMM_OK ? search(t, &asked, exact, values) : status;
    free(exact);
    free(values);
    if (status != GMXFMM_OK)
    {
        t->options = asked;
    }
    return status;
}
