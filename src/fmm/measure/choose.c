/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Choice of settings by measurement: the cheapest of those that reach the accuracy asked for. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/clock.h"
#include "fmm/measure/measure.h"
#include "fmm/model/tune.h"
#include "fmm/options.h"
#include "fmm/plan.h"
#include "fmm/simd_level.h"
#include "fmm/sizes.h"

/* Measured errors must not exceed this share of the allowed ones. */
static const double c_margin = 0.9;

/* The search asks the model for various accuracies. It begins with c_start times the accuracy asked for (in liquids the
 * model is four to ten times too careful), changes it by factors from c_step (one order makes a factor of 2 to 4) to
 * c_leap, and ends at c_last times the accuracy asked for. */
static const double c_start    = 4;
static const double c_step     = 2;
static const double c_leap     = 16;
static const double c_last     = 1e-6;
static const double c_finest   = 1e-12; /* limits of the accuracies asked of the model */
static const double c_coarsest = 0.1;

/* If an open system's error is below this share of the allowed one, it has nearly no far field yet. The order that it
 * will need when it has spread cannot be measured now, so that the model's choice is kept. */
static const double c_noFarField = 0.01;

/* An order whose expected error exceeds the allowed one by less than this factor is tried, as expected errors are
 * uncertain by as much. */
static const double c_doubtful = 1.4;

/* By how much an order more lowers an error, at least, where the order is raised. */
static const double c_gainOfOrder = 2;

/* Settings expected to be more expensive than the best so far by a factor of c_worth are not pursued; it allows for the
 * uncertainty of timing a single step. Settings replace the best if their time is less than c_gain of its time; of
 * nearly equal times the model's costs decide. */
static const double c_worth = 1.15;
static const double c_gain  = 0.98;

/* Settings that cost the model so many times as much as the cheapest that reach the accuracy are not even tried: a
 * single evaluation in them could take longer than all others. The model's costs are right to a factor of 2 or so. */
static const double c_hopeless = 8;

/* Convolution and octree are both timed if their costs by the model differ by less than this factor. */
static const double c_near = 2;

/* Most roots of an octree that is tried in place of the model's choice. */
static const double c_mostRoots = 4096;

enum
{
    c_mostTried     = 32,
    c_mostCompared  = 17, /* no comparisons begin after so many settings */
    c_candidates    = 10,
    c_ordersOfCells = 4, /* orders tried in the same cells */
    c_raises        = 6, /* the same where the model's finest settings are not enough, */
    c_mostRaised    = 6, /* each higher by so much at most */
    c_repeats       = 10 /* evaluations for the measurement of a time */
};

typedef struct
{
    const gmxfmm_reference* reference;
    gmxfmm_options          asked;
    const fmm_costs*        costs; /* of the backend */
    double                  error_moved, virial_error;
    gmxfmm_measurement      best; /* cheapest that reaches what was asked, or else that with the least excess */
    gmxfmm_options          best_options;
    double                  best_accuracy; /* asked of the model: largest that is enough */
    double                  coarsest;      /* largest to be asked of the model */
    double                  best_cost;     /* of best: time in s or, if times are not measured, by the model */
    double                  best_model_cost;
    double                  known_cost; /* by the model, of the first cells of one level that reach the accuracy */
    int                     any;        /* whether any settings reached the accuracy */
    gmxfmm_measurement      tried[c_mostTried];
    int                     num;
    void*                   force; /* from fmm_measure_room */
    fmm_known_errors        known;
    double                  begin;     /* time at which comparisons began */
    double                  tree_gain; /* of the last plan that compared octree and convolution; 0: none */
    char*                   message;
    size_t                  size;
} search;

/* Cells of which the order is to be found, with errors and costs by order. */
typedef struct
{
    gmxfmm_options options;
    int            order;                       /* the first one to be tried */
    double         error[GMXFMM_MAX_ORDER + 1]; /* predicted; only ratios are used */
    double         cost[GMXFMM_MAX_ORDER + 1];  /* by the model; only ratios are used */
} cells_choice;

static fmm_error_limits limits_of(const search* s)
{
    const fmm_error_limits limits = {s->asked.accuracy, s->error_moved, s->virial_error, 0};
    return limits;
}

/* The largest ratio of an error of forces to the allowed one (with c_margin, where it is of one place). */
static double excess_of_forces(const search* s, const gmxfmm_measurement* m)
{
    const double here = fmax(fmm_larger_error(m) / s->asked.accuracy, m->error_moved / s->error_moved) / c_margin;
    return fmax(here, m->error_anywhere / s->asked.accuracy);
}

static double excess_of_virial(const search* s, const gmxfmm_measurement* m)
{
    return m->virial_error / s->virial_error / c_margin;
}

/* The largest ratio of a measured error to the allowed one (with c_margin); at most 1 if all accuracies are reached. */
static double excess(const search* s, const gmxfmm_measurement* m)
{
    return fmax(excess_of_forces(s, m), excess_of_virial(s, m));
}

/* Measures the settings of a plan, unless they were measured before. */
static gmxfmm_status measure_plan(search* s, gmxfmm_plan* plan, gmxfmm_measurement* m)
{
    gmxfmm_measurement settings;
    fmm_measure_settings(plan, &settings);
    for (int i = 0; i < s->num; i++)
    {
        if (fmm_same_settings(&settings, &s->tried[i]))
        {
            *m = s->tried[i];
            return GMXFMM_OK;
        }
    }
    const fmm_error_limits limits = limits_of(s);
    const gmxfmm_status    status = fmm_measure_errors(plan, s->reference, &limits, 1, s->force, m);
    if (status == GMXFMM_OK && s->num < c_mostTried)
    {
        s->tried[s->num++] = *m;
    }
    return status;
}

/* Makes a plan with these options and measures it. Returns whether it reaches the accuracy. *plan: the plan, to be
 * destroyed, or NULL. */
static int
try_plan(search* s, const gmxfmm_options* options, gmxfmm_measurement* m, gmxfmm_status* status, gmxfmm_plan** plan)
{
    gmxfmm_options own = *options;
    own.num_threads    = s->asked.reproducible ? fmm_measure_threads(s->reference, options) : own.num_threads;
    *plan              = NULL;
    *status            = fmm_measure_plan(&s->reference->system, &own, &s->known, plan, s->message, s->size);
    if (*status == GMXFMM_OK)
    {
        const double gain = fmm_tree_gain(*plan);
        s->tree_gain      = gain > 0 ? gain : s->tree_gain;
        *status           = measure_plan(s, *plan, m);
        if (*status != GMXFMM_OK)
        {
            fmm_say(s->message, s->size, *status, gmxfmm_message(*plan));
        }
    }
    return *status == GMXFMM_OK && excess(s, m) <= 1;
}

static int try_options(search* s, const gmxfmm_options* options, gmxfmm_measurement* m, gmxfmm_status* status)
{
    gmxfmm_plan* plan;
    const int    reached = try_plan(s, options, m, status, &plan);
    gmxfmm_destroy(plan);
    return reached;
}

/* Measures the settings that the model chooses for an accuracy. Returns their excess. */
static double excess_at(search* s, double accuracy, gmxfmm_status* status)
{
    gmxfmm_measurement m;
    gmxfmm_options     options = s->asked;
    options.accuracy           = accuracy;
    if (options.boundary != GMXFMM_OPEN && s->tree_gain > 0 && s->tree_gain < 1 / c_near)
    {
        options.m2l = GMXFMM_M2L_FFT; /* an octree was found much slower before: no need to count particles again */
    }
    const int reached = try_options(s, &options, &m, status);
    if (*status != GMXFMM_OK)
    {
        return INFINITY;
    }
    if (reached ? (!s->any || accuracy > s->best_accuracy) : (!s->any && !(excess(s, &m) >= excess(s, &s->best))))
    {
        s->best          = m;
        s->best_accuracy = accuracy;
        s->best_options  = options;
    }
    s->any = s->any || reached;
    return excess(s, &m);
}

/* Finds the largest accuracy to be asked of the model: it is raised or lowered by the measured excess, until one
 * accuracy is enough and another one, at most c_step times as large, is not. It does not go below what the model can
 * choose settings for within precision and memory. */
static gmxfmm_status find_accuracy(search* s)
{
    double        accuracy = fmin(c_start * s->asked.accuracy, s->coarsest), reached = 0, missed = INFINITY;
    double        last   = fmax(c_finest, c_last * s->asked.accuracy);
    gmxfmm_status status = GMXFMM_OK;
    while (accuracy >= last && !(reached >= s->coarsest || missed < 1.01 * c_step * reached))
    {
        const double measured = excess_at(s, accuracy, &status);
        if (status == GMXFMM_ERROR_OPTION && isfinite(missed) && reached <= 0)
        {
            last     = c_step * accuracy;
            accuracy = sqrt(missed * accuracy);
            continue;
        }
        if (status != GMXFMM_OK)
        {
            break;
        }
        reached = measured <= 1 ? accuracy : reached;
        missed  = measured <= 1 ? missed : accuracy;
        if (s->asked.boundary == GMXFMM_OPEN && measured < c_noFarField)
        {
            s->coarsest = reached;
        }
        accuracy = isinf(missed)  ? fmin(reached * fmm_within(0.5 / measured, c_step, c_leap), s->coarsest)
                   : reached <= 0 ? missed / fmm_within(measured, c_step, c_leap)
                                  : sqrt(reached * missed);
    }
    return status;
}

/* If even the model's finest settings miss the accuracy, tries higher orders in their cells, as many higher as would
 * make up for what is missing if each gained a factor of c_gainOfOrder. Orders below the one that is enough come after
 * it (lower_order). */
static void raise_order(search* s)
{
    const gmxfmm_measurement* info    = &s->best;
    const int                 most    = fmm_most_order(s->asked.precision);
    gmxfmm_options            options = s->best_options;
    gmxfmm_measurement        m;
    gmxfmm_status             status = GMXFMM_OK;
    options.m2l                      = info->m2l;
    options.separation               = info->separation;
    options.depth                    = info->depth;
    options.order                    = info->order;
    memcpy(options.grid, info->grid, sizeof(options.grid));
    for (int i = 0; i < c_raises && !s->any && status == GMXFMM_OK && options.order < most; i++)
    {
        const double more = log(excess(s, &s->best)) / log(c_gainOfOrder);
        options.order     = (int)fmin(options.order + fmm_within(ceil(more), 1, c_mostRaised), most);
        s->any            = try_options(s, &options, &m, &status);
        if (status == GMXFMM_OK && (s->any || excess(s, &m) < excess(s, &s->best)))
        {
            s->best         = m;
            s->best_options = options;
        }
    }
}

static int is_timed(const search* s)
{
    return !s->asked.reproducible;
}

/* Whether there is time, and room in the list, to compare with more settings. */
static int may_compare(const search* s)
{
    const double allowed = s->costs->choice_steps * s->best.time + s->costs->choice_seconds +
                           s->costs->choice_particle * (double)s->reference->system.n;
    return s->num < c_mostCompared && (!is_timed(s) || fmm_time() - s->begin < allowed);
}

/* Stores the time of settings in the list of those measured. */
static void note_time(search* s, const gmxfmm_measurement* m)
{
    for (int i = 0; i < s->num; i++)
    {
        if (fmm_same_settings(m, &s->tried[i]))
        {
            s->tried[i].time = m->time;
        }
    }
}

/* Whether this is cheaper than the best so far; of nearly equal times the model's costs decide. */
static int is_cheaper(const search* s, double cost, double model_cost)
{
    if (!is_timed(s))
    {
        return cost < s->best_cost;
    }
    return cost < c_gain * s->best_cost || (c_gain * cost < s->best_cost && model_cost < s->best_model_cost);
}

/* Makes settings that reach the accuracy the best if they are the cheapest so far, by the time of a step of their plan
 * (NULL: of a new one) or by their cost in the model. */
static void
compare_cost(search* s, gmxfmm_plan* plan, const gmxfmm_options* options, double model_cost, gmxfmm_measurement* m)
{
    double        cost   = model_cost;
    gmxfmm_plan*  own    = NULL;
    gmxfmm_status status = is_timed(s) && plan == NULL
                               ? fmm_measure_plan(&s->reference->system, options, &s->known, &own, NULL, 0)
                               : GMXFMM_OK;
    if (status == GMXFMM_OK && is_timed(s))
    {
        status = fmm_measure_time(plan != NULL ? plan : own, s->reference, c_repeats, s->best_cost, s->force, &m->time);
        note_time(s, m);
        cost = m->time;
    }
    gmxfmm_destroy(own);
    if (status == GMXFMM_OK && is_cheaper(s, cost, model_cost))
    {
        s->best            = *m;
        s->best_options    = *options;
        s->best_cost       = cost;
        s->best_model_cost = model_cost;
    }
}

/* Whether an order in these cells may be cheaper than the best so far; m: a measurement of the same cells, or NULL. */
static int is_worth(const search* s, const cells_choice* c, int order, const gmxfmm_measurement* m)
{
    if (c->cost[order] > c_hopeless * s->known_cost)
    {
        return 0;
    }
    if (!isfinite(s->best_cost))
    {
        return 1;
    }
    if (is_timed(s))
    {
        return m == NULL || m->time * c->cost[order] <= c_worth * s->best_cost * c->cost[m->order];
    }
    return c->cost[order] <= s->best_cost;
}

/* Lowest order with at most that error, in the unit of c->error. */
static int least_order(const cells_choice* c, double error)
{
    const int most = fmm_most_order(c->options.precision);
    int       p    = 1;
    while (p < most && c->error[p] > error)
    {
        p++;
    }
    return p;
}

/* The lowest order whose excess is expected to be at most `allowed`, given the measured one of an order: that order or
 * a lower one if its measured excess is at most 1, else a higher one. */
static int expected_order(const cells_choice* c, int order, double measured, double allowed)
{
    const int most = fmm_most_order(c->options.precision);
    int       p    = order;
    if (measured <= 1)
    {
        while (p > 1 && measured * c->error[p - 1] <= allowed * c->error[order])
        {
            p--;
        }
        return p;
    }
    do
    {
        p++;
    } while (p < most && measured * c->error[p] > allowed * c->error[order]);
    return p <= most ? p : -1;
}

/* The order to be tried after `order` in these cells, between one that missed the accuracy and one that reached it; an
 * order that is `missed` or below or `reached` or above ends the search. */
static int next_order(const cells_choice* c, int order, double measured, int missed, int reached)
{
    int p = expected_order(c, order, measured, 1);
    if (measured <= 1 && p == order && expected_order(c, order, measured, c_doubtful) < order)
    {
        p--;
    }
    p = p > missed ? p : missed + 1;
    return p < reached || measured <= 1 ? p : reached - 1;
}

/* Finds the lowest order that reaches the accuracy in these cells, and makes it the best if it is the cheapest so far.
 */
static void compare_cells(search* s, cells_choice* c)
{
    gmxfmm_measurement m;
    gmxfmm_status      status;
    gmxfmm_plan*       plan;
    int                missed = 0, reached = GMXFMM_MAX_ORDER + 1, timed = 0;
    for (int i = 0, p = c->order; i < c_ordersOfCells && p > missed && p < reached && !timed; i++)
    {
        c->options.order    = p;
        const int is_enough = try_plan(s, &c->options, &m, &status, &plan);
        reached             = is_enough ? p : reached;
        missed              = is_enough ? missed : p;
        p                   = status == GMXFMM_OK ? next_order(c, p, excess(s, &m), missed, reached) : 0;
        const int is_last   = s->asked.order >= 0 || p <= missed || p >= reached || !is_worth(s, c, p, &m);
        if (is_enough && is_last && is_worth(s, c, reached, &m))
        {
            compare_cost(s, plan, &c->options, c->cost[reached], &m);
            timed = 1;
        }
        gmxfmm_destroy(plan);
        if (is_last)
        {
            break;
        }
    }
    c->options.order = reached;
    if (!timed && reached <= GMXFMM_MAX_ORDER && try_options(s, &c->options, &m, &status) &&
        is_worth(s, c, reached, &m))
    {
        compare_cost(s, NULL, &c->options, c->cost[reached], &m);
    }
}

/* Cells of one level of a periodic box: the model's choice, then those that the model finds next cheapest for the same
 * accuracy, with other numbers along an edge, or another ws. */
static void compare_grids(search* s)
{
    const gmxfmm_reference*   r      = s->reference;
    const gmxfmm_system*      system = &r->system;
    const gmxfmm_measurement* info   = &s->best;
    fmm_candidate             list[c_candidates + 1];
    gmxfmm_options            options = s->asked;
    options.accuracy                  = s->best_accuracy;
    options.m2l                       = GMXFMM_M2L_FFT;
    double box[9]; /* that cells are along: of long vectors they would be flat, and their orders as high as can be */
    fmm_box_of_cells(&options, system->box, box);
    list[0] = (fmm_candidate){0, info->order, info->separation, {0, 0, 0}};
    memcpy(list[0].grid, info->grid, sizeof(list[0].grid));
    const fmm_problem problem = {.options     = &options,
                                 .costs       = s->costs,
                                 .periodic    = {1, 1, 1},
                                 .num_threads = fmm_crowded_threads(&r->watch, &s->asked, r->num_threads, system->n),
                                 .level       = fmm_simd_level(),
                                 .n           = system->n,
                                 .box         = box,
                                 .known       = &s->known};
    const int         num     = fmm_tune_candidates(&problem, list + 1, c_candidates);
    double            scale   = 0; /* excess over predicted error, in the cells of the model's choice */
    for (int i = 0; i <= num && (i == 0 || may_compare(s)); i++)
    {
        cells_choice c       = {.options = options, .order = list[i].order};
        c.options.separation = list[i].ws;
        memcpy(c.options.grid, list[i].grid, sizeof(c.options.grid));
        if (!fmm_tune_cells(&problem, list[i].grid, list[i].ws, c.error, c.cost))
        {
            continue;
        }
        if (i == 0)
        {
            scale         = excess(s, &s->best) / c.error[c.order];
            s->known_cost = c.cost[c.order];
        }
        else if (fmm_is_auto(s->asked.order))
        {
            c.order = least_order(&c, 1 / scale);
        }
        if (is_worth(s, &c, c.order, NULL))
        {
            compare_cells(s, &c);
        }
    }
}

/* Sets errors that fall with the order as on an octree, and equal costs, as nothing is known of these. */
static void set_tree_errors(cells_choice* c)
{
    const double an_order = c->options.separation == 2 ? 0.25 : 0.45;
    for (int p = 0; p <= GMXFMM_MAX_ORDER; p++)
    {
        c->error[p] = pow(an_order, p);
        c->cost[p]  = 1;
    }
}

/* Leaves of a periodic octree: those of the model's choice, then, if times are measured, those with 3 or 5 roots in
 * place of 4, or 3 in place of 2. */
static void compare_leaves(search* s)
{
    static const struct
    {
        int times, levels; /* this many times the roots, this many levels fewer */
    } sizes[]                     = {{1, 0}, {3, 2}, {5, 2}, {3, 1}};
    const gmxfmm_measurement info = s->best;
    const int                num  = is_timed(s) && fmm_is_auto(s->asked.grid[0]) && fmm_is_auto(s->asked.depth) ? 4 : 1;
    const double             roots = (double)info.grid[0] * info.grid[1] * info.grid[2] / pow(8, info.depth);
    for (int i = 0; i < num && (i == 0 || may_compare(s)); i++)
    {
        cells_choice c       = {.options = s->asked, .order = info.order};
        c.options.accuracy   = s->best_accuracy;
        c.options.m2l        = info.m2l;
        c.options.separation = info.separation;
        c.options.depth      = info.depth - sizes[i].levels;
        for (int d = 0; d < 3; d++)
        {
            c.options.grid[d] = (info.grid[d] >> sizes[i].levels) * sizes[i].times;
        }
        if (i == 0 || (c.options.depth > 0 && roots * pow(sizes[i].times, 3) <= c_mostRoots))
        {
            set_tree_errors(&c);
            compare_cells(s, &c);
        }
    }
}

/* Measures the model's choice with other options, which becomes the best if its time is less. */
static void compare_options(search* s, const gmxfmm_options* options)
{
    gmxfmm_measurement m;
    gmxfmm_status      status;
    if (may_compare(s) && try_options(s, options, &m, &status) && m.time <= c_worth * s->best_cost)
    {
        compare_cost(s, NULL, options, 0, &m);
    }
}

/* Compares with the other method of the far field, octree or convolution, if it is not much more expensive by the
 * model. */
static void compare_method(search* s)
{
    const int      is_tree = s->best.depth >= 0;
    gmxfmm_options other   = s->best_options;
    other.m2l              = is_tree ? GMXFMM_M2L_FFT : GMXFMM_M2L_ROTATION;
    if (is_timed(s) && s->asked.m2l == GMXFMM_M2L_AUTO && fmm_is_auto(s->asked.depth) &&
        fmm_is_auto(s->asked.grid[0]) && (is_tree || !s->costs->compiles_orders) && s->tree_gain > 1 / c_near &&
        s->tree_gain < c_near)
    {
        if (!isfinite(s->best_cost))
        {
            compare_cost(s, NULL, &s->best_options, 0, &s->best);
        }
        compare_options(s, &other);
    }
}

/* Whether cells do: of open systems and of slabs. */
static int follows_particles(const gmxfmm_options* o)
{
    int periodic[3];
    fmm_periodic_of(o, periodic);
    return !(periodic[0] && periodic[1] && periodic[2]);
}

/* Systems whose cells change with their extent and are therefore chosen by the model. Tries an accuracy between
 * the best and the next one; then, if times are measured, another ws and the other method of the far field. */
static void compare_open(search* s)
{
    gmxfmm_status status;
    if (s->best_accuracy < s->coarsest)
    {
        excess_at(s, fmin(sqrt(c_step) * s->best_accuracy, s->coarsest), &status);
    }
    if (!is_timed(s))
    {
        return;
    }
    compare_cost(s, NULL, &s->best_options, 0, &s->best);
    if (fmm_is_auto(s->asked.separation))
    {
        gmxfmm_options other = s->best_options;
        other.separation     = 3 - s->best.separation;
        compare_options(s, &other);
    }
    compare_method(s);
}

/* Lowers the order in the same cells as long as the accuracy is reached, which may be further than expected. */
static void lower_order(search* s)
{
    gmxfmm_options     options = s->best_options;
    gmxfmm_measurement m;
    gmxfmm_status      status;
    while (fmm_is_auto(s->asked.order) && --options.order > 0 && try_options(s, &options, &m, &status))
    {
        s->best         = m;
        s->best_options = options;
    }
}

/* Compares the best so far with settings that may be cheaper. */
static void compare_all(search* s)
{
    s->begin      = fmm_time();
    s->best_cost  = INFINITY;
    s->known_cost = INFINITY;
    if (follows_particles(&s->asked))
    {
        compare_open(s);
    }
    else
    {
        compare_method(s);
        s->best_cost = INFINITY; /* to be measured again with the cells given */
        s->best.depth < 0 ? compare_grids(s) : compare_leaves(s);
        lower_order(s);
    }
}

/* Measures what came nearest with all shifts of cells: where a limit is missed measuring ends before that. */
static void measure_best(search* s)
{
    gmxfmm_plan*       plan;
    gmxfmm_measurement m      = s->best;
    fmm_error_limits   limits = limits_of(s);
    limits.measures_all       = 1;
    if (fmm_measure_plan(&s->reference->system, &s->best_options, &s->known, &plan, NULL, 0) == GMXFMM_OK &&
        fmm_measure_errors(plan, s->reference, &limits, 0, s->force, &m) == GMXFMM_OK)
    {
        s->best = m;
    }
    gmxfmm_destroy(plan);
}

/* What can be asked for of the forces, at the places given or where particles have moved. */
static double reached_error(const search* s, int moved)
{
    const fmm_error_limits    limits = limits_of(s);
    const gmxfmm_measurement* m      = &s->best;
    const double              here   = (moved ? m->error_moved : fmm_larger_error(m)) / c_margin;
    return moved == fmm_shifts_are_moved(&limits, &s->reference->system) ? fmax(here, m->error_anywhere) : here;
}

/* Says of the error that exceeds its limit by most, at the places given, at the targets, where particles have moved or
 * of the virial, what came nearest. */
static gmxfmm_status out_of_reach(search* s)
{
    measure_best(s);
    const gmxfmm_options*     o     = &s->asked;
    const int                 given = !(fmm_is_auto(o->order) && fmm_is_auto(o->grid[0]) && fmm_is_auto(o->depth) &&
                        fmm_is_auto(o->separation) && o->m2l == GMXFMM_M2L_AUTO && fmm_is_auto(o->m2l_truncate));
    const gmxfmm_measurement* best  = &s->best;
    const int                 moved = reached_error(s, 1) / s->error_moved > reached_error(s, 0) / o->accuracy;
    const int there = !moved && best->error_targets > 0 && best->error_targets >= fmm_larger_error(best);
    char      what[128], text[320];
    if (excess_of_virial(s, best) > excess_of_forces(s, best))
    {
        snprintf(what, sizeof(what), "an error of %g in the virial is out of reach: the best that was measured is %.2g",
                 s->virial_error, fmm_error_said(best->virial_error / c_margin));
    }
    else
    {
        snprintf(what, sizeof(what), "accuracy %g is out of reach: the best that was measured is %.2g%s",
                 moved ? s->error_moved : o->accuracy, fmm_error_said(reached_error(s, moved)),
                 moved   ? ", where particles have moved,"
                 : there ? " at the targets"
                         : "");
    }
    snprintf(text, sizeof(text), "%s with a margin, at order %d; %s%sask for less", what, best->order,
             o->precision == GMXFMM_SINGLE ? "use double precision, " : "",
             given                           ? "leave more options automatic, or "
             : o->precision == GMXFMM_SINGLE ? "or "
                                             : "");
    return fmm_say(s->message, s->size, GMXFMM_ERROR_OPTION, text);
}

/* Places that the reference, in double precision, has held apart, and plans in single precision do not. */
static gmxfmm_status not_apart(const search* s)
{
    char text[320];
    snprintf(text, sizeof(text), "%s in single precision: use double precision",
             s->message != NULL && s->size > 0 ? s->message : "");
    return fmm_say(s->message, s->size, GMXFMM_ERROR_OPTION, text);
}

static gmxfmm_status choose(search* s, gmxfmm_options* options)
{
    s->best.error        = INFINITY;
    s->coarsest          = c_coarsest;
    gmxfmm_status status = find_accuracy(s);
    if (status == GMXFMM_ERROR_OPTION && !isfinite(s->best.error))
    {
        excess_at(s, s->asked.accuracy, &status); /* for a message about the accuracy asked for, not one tried */
    }
    if (!s->any && isfinite(s->best.error) && fmm_is_auto(s->asked.order) && s->asked.boundary != GMXFMM_OPEN)
    {
        raise_order(s);
    }
    if (s->any)
    {
        compare_all(s);
        fmm_give_options(options, &s->best_options);
        return fmm_say(s->message, s->size, GMXFMM_OK, "");
    }
    if (status == GMXFMM_ERROR_COINCIDENT && s->asked.precision == GMXFMM_SINGLE)
    {
        return not_apart(s);
    }
    return isfinite(s->best.error) && (status == GMXFMM_OK || status == GMXFMM_ERROR_OPTION) ? out_of_reach(s) : status;
}

/* A bound of an error may be infinite, not less than zero. */
static gmxfmm_status check_bound(const char* name, double bound, char* message, size_t size)
{
    char text[128];
    if (bound >= 0)
    {
        return GMXFMM_OK;
    }
    snprintf(text, sizeof(text), "%s is %g, it must be 0 or more (INFINITY: any)", name, bound);
    return fmm_say(message, size, GMXFMM_ERROR_OPTION, text);
}

gmxfmm_status gmxfmm_choose(const gmxfmm_reference* reference,
                            gmxfmm_options*         options,
                            double                  error_moved,
                            double                  virial_error,
                            gmxfmm_measurement*     chosen,
                            gmxfmm_measurement*     tried,
                            int*                    num_tried,
                            char*                   message,
                            size_t                  message_size)
{
    if (reference == NULL || options == NULL || chosen == NULL)
    {
        return fmm_say(message, message_size, GMXFMM_ERROR_NULL, "reference, options or chosen is NULL");
    }
    if (options->array_type != reference->array_type)
    {
        return fmm_say(message, message_size, GMXFMM_ERROR_OPTION, "array_type is not that of the reference");
    }
    char          text[256];
    gmxfmm_status status = fmm_check_room(chosen, sizeof(*chosen), "gmxfmm_measurement", message, message_size);
    if (status == GMXFMM_OK && tried != NULL && num_tried != NULL && *num_tried > 0)
    {
        status = fmm_check_room(tried, sizeof(*tried), "gmxfmm_measurement", message, message_size);
    }
    status = status == GMXFMM_OK ? check_bound("error_moved", error_moved, message, message_size) : status;
    status = status == GMXFMM_OK ? check_bound("virial_error", virial_error, message, message_size) : status;
    if (status != GMXFMM_OK)
    {
        return status;
    }
    search* s = calloc(1, sizeof(*s));
    if (s == NULL || (s->force = fmm_measure_room(reference)) == NULL)
    {
        free(s);
        return fmm_say(message, message_size, GMXFMM_ERROR_MEMORY, "out of memory for forces");
    }
    s->reference    = reference;
    s->error_moved  = error_moved;
    s->virial_error = virial_error;
    s->message      = message;
    s->size         = message_size;
    status          = fmm_take_options(&s->asked, options, text, sizeof(text));
    status          = status == GMXFMM_OK ? fmm_check_options(&s->asked, text, sizeof(text)) : status;
    if (status == GMXFMM_OK && s->asked.method == GMXFMM_TREECODE)
    {
        status = GMXFMM_ERROR_UNSUPPORTED;
        snprintf(text, sizeof(text), "choose measures settings of the FMM: a plan of the treecode measures its own");
    }
    if (status == GMXFMM_OK)
    {
        const gmxfmm_options* o = &s->asked;
        s->costs                = fmm_costs_of(o);
    }
    status = status == GMXFMM_OK ? choose(s, options) : fmm_say(message, message_size, status, text);
    fmm_measure_give(chosen, &s->best, chosen->size);
    if (num_tried != NULL)
    {
        const size_t size_of_tried = tried != NULL && *num_tried > 0 ? tried->size : 0;
        *num_tried                 = tried == NULL ? 0 : s->num < *num_tried ? s->num : *num_tried;
        for (int i = 0; i < *num_tried; i++)
        {
            fmm_measure_give((char*)tried + (size_t)i * size_of_tried, &s->tried[i], size_of_tried);
        }
    }
    free(s->force);
    free(s);
    return status;
}
