/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Settings of a large open system. Its errors are measured at a sample (sample.c) of one evaluation of each plan that
 * is made. The model is asked for a new accuracy by what the plan before has reached, so that two plans are enough, as
 * a rule, and the last one is kept.
 */
#include "fmm/measure/sampled.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/clock.h"
#include "fmm/measure/sample.h"
#include "fmm/measure/targets.h"
#include "fmm/options.h"
#include "fmm/plan.h"
#include "fmm/process.h"

/* As in choose.c: measured errors must not exceed this share of the accuracy. */
static const double c_margin = 0.9;

/* A choice is good enough where more than this share of the allowed error is reached; else the next one aims at c_aim
 * of it at most. An order makes a factor of 2 to 4. */
static const double c_enough = 1.0 / 3, c_aim = 0.8;

/* Predicted errors are below this share of the accuracy that the model is asked for (c_margin in tune.c). */
static const double c_predicted = 0.25;

/* The model is asked for c_start times the accuracy first: in liquids it is four to ten times too careful, in clusters
 * a hundred times. Then for another one, by factors from c_step to c_leap, down to c_last times the accuracy. */
static const double c_start = 16, c_step = 2, c_leap = 300, c_last = 1e-6;
/* In clusters errors grow faster towards coarser plans than the model predicts: this share of the way in logarithms, as
 * a plan that misses costs a third one. */
static const double c_towards = 1 / 1.5;
/* Where an order with ws = 1 has missed and one with ws = 2 has not, by this factor at least: two orders with ws = 1.
 */
static const double c_orders = 4;
static const double c_finest = 1e-12, c_coarsest = 0.1; /* limits of what it is asked for */

enum
{
    c_plans     = 3, /* no better settings are looked for after so many plans */
    c_mostPlans = 12 /* nor any that reach the accuracy */
};

/* A plan of the model's choice for an accuracy (0: none was made), the error that the model predicted for it, and the
 * measured one over what is allowed. */
typedef struct
{
    double accuracy, predicted, excess;
    int    order, ws, asked; /* asked: what it was made with, ws or GMXFMM_AUTO */
} trial;

typedef struct
{
    const gmxfmm_system* system;
    gmxfmm_options       asked;
    gmxfmm_reference     like; /* what norms are made of, with the values of the first plan */
    fmm_samples          sample;
    void*                room; /* from fmm_measure_room */
    int                  ws;   /* given, or that of plans to come; GMXFMM_AUTO */
    fmm_known_errors*    known;
    fmm_tried*           tried;
    gmxfmm_plan*         plan;            /* the last one made */
    gmxfmm_measurement   last, best;      /* of that; the cheapest that reaches the accuracy, or what came nearest */
    trial                reached, missed; /* the cheapest that reaches the accuracy, the dearest that does not */
    int                  num;             /* plans made */
    char*                message;
    size_t               size;
} search;

static gmxfmm_status no_memory(search* s)
{
    return fmm_say(s->message, s->size, GMXFMM_ERROR_MEMORY, "out of memory for errors");
}

/* Values of the plan, in room; it is assigned for the charges then. */
static gmxfmm_status evaluate(search* s)
{
    const gmxfmm_system* system = s->system;
    const double         begin  = fmm_time();
    gmxfmm_status        status = fmm_targets_evaluate(s->plan, system, s->like.array_type, system->x, s->room);
    const double         time   = fmm_time() - begin;
    status                      = status == GMXFMM_OK ? fmm_targets_leave(s->plan, system) : status;
    status       = status == GMXFMM_OK ? fmm_measure_step(s->plan, system->x, s->room, &s->last.time) : status;
    s->last.time = system->num_targets > 0 ? time : s->last.time;
    return status == GMXFMM_OK ? status : fmm_say(s->message, s->size, status, gmxfmm_message(s->plan));
}

static void note(search* s)
{
    fmm_tried* t = s->tried;
    if (t->num < t->most)
    {
        fmm_measure_give((char*)t->item + (size_t)t->num++ * t->size, &s->last, t->size);
    }
}

/* Makes a plan in place of the one before. */
static gmxfmm_status make_plan(search* s, double accuracy)
{
    gmxfmm_options options = s->asked;
    options.accuracy       = accuracy;
    options.separation     = s->ws;
    gmxfmm_destroy(s->plan);
    s->plan                    = NULL;
    const gmxfmm_status status = fmm_create_with_errors(&s->plan, &options, s->system->n, s->system->box, FMM_SAMPLED,
                                                        s->known, NULL, s->message, s->size);
    return status == GMXFMM_OK ? fmm_measure_assign(s->plan, s->system, s->message, s->size) : status;
}

/* Makes a plan and measures it, unless it has the settings of the one before. *again: whether it has. */
static gmxfmm_status try_accuracy(search* s, double accuracy, int* again)
{
    const gmxfmm_measurement before = s->last;
    gmxfmm_status            status = make_plan(s, accuracy);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    fmm_measure_settings(s->plan, &s->last);
    *again = s->num > 0 && fmm_same_settings(&before, &s->last);
    if (*again)
    {
        return GMXFMM_OK;
    }
    status = evaluate(s);
    if (status == GMXFMM_OK && s->num == 0)
    {
        s->like.force = s->room;
        status        = fmm_sample_make(&s->sample, &s->like, &s->asked) == GMXFMM_OK ? status : no_memory(s);
    }
    if (status == GMXFMM_OK)
    {
        fmm_sample_errors(&s->sample, &s->like, &s->asked, s->room, &s->last);
        note(s);
        s->num++;
    }
    return status;
}

/* Whether ws = 1, which is cheaper than ws = 2, has missed the accuracy for lack of an order that can be had. */
static int may_raise_order(const search* s)
{
    const trial *r = &s->reached, *m = &s->missed;
    return r->accuracy > 0 && m->accuracy > 0 && m->ws < r->ws && m->order < FMM_LAST_SAMPLED;
}

/* The accuracy to be asked of the model next: what it predicts is taken to be wrong by as much as it was, or, between
 * two with the same ws, by a power of what it predicts. */
static double next_accuracy(const search* s)
{
    const trial *r = &s->reached, *m = &s->missed;
    if (r->accuracy > 0 && m->accuracy > 0 && r->ws == m->ws)
    {
        const double between = log(c_aim / r->excess) / log(m->excess / r->excess);
        return r->predicted * pow(m->predicted / r->predicted, between) / c_predicted;
    }
    if (may_raise_order(s))
    {
        return m->predicted / c_predicted / fmax(m->excess / c_aim, c_orders);
    }
    if (r->accuracy > 0)
    {
        const double coarser = pow(c_aim / r->excess, c_towards);
        return fmin(r->predicted / c_predicted * coarser, fmin(c_leap * r->accuracy, c_coarsest));
    }
    return fmin(m->predicted / c_predicted, m->accuracy) / fmm_within(m->excess / c_aim, c_step, c_leap);
}

/* Whether the plan that reaches the accuracy is good enough, or the model has no other for the next one. */
static int is_found(const search* s, double next)
{
    const trial* r = &s->reached;
    return r->accuracy > 0 && (r->excess >= c_enough || s->num >= c_plans || next <= r->accuracy);
}

/* Takes what the last plan has reached with this accuracy. */
static void take(search* s, double accuracy)
{
    const double error = fmm_larger_error(&s->last);
    const trial  made  = {accuracy,      s->last.predicted_error, error / (c_margin * s->asked.accuracy),
                          s->last.order, s->last.separation,      s->ws};
    const int    good  = made.excess <= 1;
    if (good || (s->reached.accuracy <= 0 && !(error >= fmm_larger_error(&s->best))))
    {
        s->best = s->last;
    }
    *(good ? &s->reached : &s->missed) = made;
    /* errors with ws = 1 tell nothing of those with ws = 2, and the model would take the cheaper one that missed */
    const int stays = s->reached.accuracy > 0 && s->missed.accuracy > 0 && !may_raise_order(s);
    s->ws           = stays ? s->reached.ws : s->asked.separation;
}

/* Plans until one is found. *at: the accuracy that the last one was made with. */
static gmxfmm_status find(search* s, double* at)
{
    const double  last   = fmax(c_finest, c_last * s->asked.accuracy);
    gmxfmm_status status = GMXFMM_OK;
    double        next   = fmin(c_start * s->asked.accuracy, c_coarsest);
    int           again  = 0;
    while (next >= last && s->num < c_mostPlans && !is_found(s, next) && !(again && s->reached.accuracy > 0))
    {
        status = try_accuracy(s, next, &again);
        if (status != GMXFMM_OK)
        {
            break;
        }
        *at = next;
        take(s, next);
        next = next_accuracy(s);
    }
    const int searched = s->num > 0 && (status == GMXFMM_ERROR_OPTION || status == GMXFMM_OK);
    return searched ? GMXFMM_OK : status; /* OPTION: too fine for the model */
}

static gmxfmm_status out_of_reach(search* s)
{
    const gmxfmm_options* o         = &s->asked;
    const double          error     = fmm_larger_error(&s->best);
    const int             given     = !(fmm_is_auto(o->order) && fmm_is_auto(o->grid[0]) && fmm_is_auto(o->depth) &&
                        fmm_is_auto(o->separation) && o->m2l == GMXFMM_M2L_AUTO && fmm_is_auto(o->m2l_truncate));
    const int             is_single = o->precision == GMXFMM_SINGLE;
    char                  text[320];
    snprintf(
        text, sizeof(text),
        "accuracy %g is out of reach: the best that was measured is %.2g%s with a margin, at order %d; %s%sask for "
        "less",
        o->accuracy, fmm_error_said(error / c_margin), s->best.error_targets >= error ? " at the targets" : "",
        s->best.order, is_single ? "use double precision, " : "",
        given       ? "leave more options automatic, or "
        : is_single ? "or "
                    : "");
    return fmm_say(s->message, s->size, GMXFMM_ERROR_OPTION, text);
}

/* The cheapest settings that were found, in a plan. */
static gmxfmm_status choose(search* s)
{
    double        at     = 0;
    gmxfmm_status status = find(s, &at);
    if (status == GMXFMM_OK && s->reached.accuracy <= 0)
    {
        status = out_of_reach(s);
    }
    if (status == GMXFMM_OK && at != s->reached.accuracy)
    {
        s->ws  = s->reached.asked;
        status = make_plan(s, s->reached.accuracy);
    }
    return status;
}

static gmxfmm_status as_given(search* s)
{
    int           again;
    gmxfmm_status status = try_accuracy(s, s->asked.accuracy, &again);
    s->best              = s->last;
    return status;
}

/* The plan is as fmm_measure_plan makes it. */
static gmxfmm_status settle(search* s)
{
    fmm_forget_known_errors(s->plan);
    if (s->system->num_targets == 0)
    {
        return GMXFMM_OK;
    }
    gmxfmm_status status = fmm_targets_set(s->plan, s->system);
    status               = status == GMXFMM_OK ? gmxfmm_assign(s->plan, s->system->x) : status;
    return status == GMXFMM_OK ? status : fmm_say(s->message, s->size, status, gmxfmm_message(s->plan));
}

gmxfmm_status fmm_create_sampled(gmxfmm_plan**         plan,
                                 const gmxfmm_options* options,
                                 const gmxfmm_system*  system,
                                 int                   chooses,
                                 gmxfmm_measurement*   m,
                                 fmm_tried*            tried,
                                 char*                 message,
                                 size_t                size)
{
    search* s = calloc(1, sizeof(*s));
    *plan     = NULL;
    if (s == NULL)
    {
        return fmm_say(message, size, GMXFMM_ERROR_MEMORY, "out of memory for errors");
    }
    s->system            = system;
    s->asked             = *options;
    s->ws                = options->separation;
    s->tried             = tried;
    s->message           = message;
    s->size              = size;
    s->best              = *m;
    s->best.error        = INFINITY; /* nothing was measured */
    s->last              = *m;
    s->like.system       = *system;
    s->like.array_type   = options->array_type;
    s->like.num_threads  = fmm_useful_threads(options, fmm_num_threads(options->num_threads), system->n);
    s->known             = calloc(1, sizeof(*s->known)); /* NULL: predicted again */
    s->room              = fmm_measure_room(&s->like);
    gmxfmm_status status = s->room != NULL ? (chooses ? choose(s) : as_given(s)) : no_memory(s);
    status               = status == GMXFMM_OK ? settle(s) : status;
    *m                   = s->best;
    if (status == GMXFMM_OK)
    {
        *plan   = s->plan;
        s->plan = NULL;
    }
    gmxfmm_destroy(s->plan);
    fmm_sample_free(&s->sample);
    free(s->known);
    free(s->room);
    free(s);
    return status;
}
