/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A plan that was measured, in one call: reference, choice, plan, measurement. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/measure/measure.h"
#include "fmm/measured.h"
#include "fmm/measure/sample.h"
#include "fmm/measure/sampled.h"
#include "fmm/measure/targets.h"
#include "fmm/numbers.h"
#include "fmm/options.h"
#include "fmm/plan.h"
#include "fmm/sizes.h"
#include "fmm/status.h"

/* Of settings for which no accuracy was asked the error is to be known to this share of itself. */
static const double c_known = 0.3;

/* Each time that it is not, the reference is made for an accuracy lower by this factor, from the one that the model
 * predicts on, within the range of accuracies. */
static const double c_finer    = 0.01;
static const double c_finest   = 1e-12;
static const double c_coarsest = 0.1;

/* The treecode, which has no virial and excludes no pairs, is taken if a call takes at most c_faster of the FMM's. If
 * its error is below c_direct of what was asked, it sums all pairs itself, and nothing was measured of its settings:
 * the FMM stays. */
static const double c_faster = 0.9;
static const double c_direct = 1e-6;

/* Of a large open system on a CPU it is tried only where particles of the FMM have more near ones than this, as where
 * leaves cannot be divided further: elsewhere the FMM is 1.7 to 6 times as fast (benchmarks/results/amd-epyc-2-cores/
 * open.json), and trying would take several times as long as all else. */
static const double c_manyNear = 10000;

/* A treecode that reaches the accuracy at the charges and misses it at the targets, or the other way round, chooses for
 * what it missed by, and this share of it. */
static const double c_finerChoice = 0.5;

enum
{
    c_calls   = 3, /* of which the fastest is compared */
    c_choices = 5  /* at the charges and the targets by turns */
};

typedef struct
{
    const gmxfmm_system* system;
    gmxfmm_options       options;
    double               accuracy; /* asked for; INFINITY: none */
    gmxfmm_reference*    reference;
    void*                force;    /* from fmm_measure_room, in the type of the options */
    int                  compares; /* whether the method is the faster of two */
    int                  listed;   /* whether tried[0..*num_tried-1] is filled */
    gmxfmm_measurement   m;        /* of the plan, or of what came nearest */
    gmxfmm_plan*         plan;
    char*                message;
    size_t               size;
} creation;

/* Whether settings are given that decide about the error. */
static int is_given(const gmxfmm_options* o)
{
    return o->method == GMXFMM_TREECODE ? !fmm_is_auto(o->theta) && !fmm_is_auto(o->degree)
                                        : !fmm_is_auto(o->order) || !fmm_is_auto(o->grid[0]) || !fmm_is_auto(o->depth);
}

/* Whether the FMM's settings leave anything to choose. */
static int has_choice(const gmxfmm_options* o)
{
    return fmm_is_auto(o->order) || (fmm_is_auto(o->grid[0]) && fmm_is_auto(o->depth)) || fmm_is_auto(o->separation);
}

/* The method that `auto` means where only one will do: that of the options that are set, the treecode for its kernels,
 * the FMM in a box, with excluded pairs or dipoles, and where errors are wanted of particles that have moved; or
 * `auto`.
 */
static gmxfmm_method possible_method(const gmxfmm_options* o, const gmxfmm_system* system)
{
    return fmm_option_of(GMXFMM_FMM, o) != NULL        ? GMXFMM_FMM
           : fmm_option_of(GMXFMM_TREECODE, o) != NULL ? GMXFMM_TREECODE
           : o->boundary != GMXFMM_OPEN || system->excl_start != NULL || system->x_before != NULL || system->mu != NULL
               ? GMXFMM_FMM
               : GMXFMM_METHOD_AUTO;
}

/* Settles `auto`; where it takes times the options are those of the FMM. */
static gmxfmm_status settle_method(creation* c, char* text, size_t size)
{
    if (c->options.method != GMXFMM_METHOD_AUTO)
    {
        return GMXFMM_OK;
    }
    c->options.method = possible_method(&c->options, c->system);
    c->compares       = c->options.method == GMXFMM_METHOD_AUTO;
    if (c->compares && c->options.reproducible)
    {
        snprintf(text, size,
                 "method = auto is decided by times, and reproducible asks for the same in every run: use "
                 "method = fmm or treecode");
        return GMXFMM_ERROR_OPTION;
    }
    c->options.method = c->compares ? GMXFMM_FMM : c->options.method;
    return GMXFMM_OK;
}

/* The options as they are for the plan, and the accuracy that was asked for. */
static gmxfmm_status take_options(creation* c, const gmxfmm_options* given, char* text, size_t size)
{
    gmxfmm_options standard;
    gmxfmm_status  status = fmm_take_options(&c->options, given, text, size);
    status                = status == GMXFMM_OK ? settle_method(c, text, size) : status;
    if (status != GMXFMM_OK)
    {
        return status;
    }
    const int asks_none = fmm_is_auto(c->options.accuracy);
    if (asks_none)
    {
        gmxfmm_default_options(&standard);
        c->options.accuracy = standard.accuracy;
    }
    c->accuracy = asks_none && is_given(&c->options) ? INFINITY : c->options.accuracy;
    return fmm_check_options(&c->options, text, size);
}

static gmxfmm_status say_of_plan(creation* c, gmxfmm_status status)
{
    return status == GMXFMM_OK ? status : fmm_say(c->message, c->size, status, gmxfmm_message(c->plan));
}

static gmxfmm_status make_plan(creation* c)
{
    return fmm_measure_plan(c->system, &c->options, NULL, &c->plan, c->message, c->size);
}

/* The settings that are given were measured, and miss what was asked. */
static gmxfmm_status is_missed(creation* c, double error)
{
    const int at_targets = c->m.error_targets >= error;
    char      text[256], known[32] = ""; /* of a sample the error is a bound */
    if (c->reference != NULL)
    {
        snprintf(known, sizeof(known), ", to %.1g", at_targets ? c->reference->uncertainty_targets : c->m.uncertainty);
    }
    snprintf(text, sizeof(text),
             "accuracy %g is missed with the settings given: %.2g was measured%s at order %d%s; leave order, cells or "
             "separation automatic, or ask for less",
             c->accuracy, error, at_targets ? " at the targets" : "", c->m.order, known);
    return fmm_say(c->message, c->size, GMXFMM_ERROR_OPTION, text);
}

/* A large open system, by errors at a sample. */
static gmxfmm_status create_sampled(creation* c, gmxfmm_measurement* tried, int* num_tried)
{
    const int     asks = isfinite(c->accuracy), chooses = asks && has_choice(&c->options);
    const int     most = tried != NULL && num_tried != NULL ? *num_tried : 0;
    fmm_tried     list = {tried, most > 0 ? tried->size : 0, 0, most};
    gmxfmm_status status =
        fmm_create_sampled(&c->plan, &c->options, c->system, chooses, &c->m, &list, c->message, c->size);
    c->listed = status != GMXFMM_ERROR_COINCIDENT; /* else all is done anew with a reference */
    if (num_tried != NULL && c->listed)
    {
        *num_tried = list.num;
    }
    const double error = fmm_larger_error(&c->m);
    return status == GMXFMM_OK && error > c->accuracy ? is_missed(c, error) : status;
}

typedef gmxfmm_status reference_maker(gmxfmm_reference**, const gmxfmm_options*, const gmxfmm_system*, char*, size_t);

/* A reference, in place of the one before, for the accuracy of these options. */
static gmxfmm_status set_reference(creation* c, reference_maker* make, const gmxfmm_options* options)
{
    gmxfmm_reference_destroy(c->reference);
    free(c->force);
    c->force             = NULL;
    gmxfmm_status status = make(&c->reference, options, c->system, c->message, c->size);
    if (status == GMXFMM_OK && (c->force = fmm_measure_room(c->reference)) == NULL)
    {
        status = fmm_say(c->message, c->size, GMXFMM_ERROR_MEMORY, "out of memory for forces");
    }
    return status;
}

/* The errors of the plan by the reference, and the time of a step; particles are assigned where they are. An error
 * below the uncertainty of the reference is known to be below that and no better. */
static gmxfmm_status measure_plan(creation* c)
{
    const int              moves  = c->system->x_before != NULL;
    const fmm_error_limits limits = {c->accuracy, moves ? c->accuracy : INFINITY, INFINITY, 0};
    gmxfmm_status          status =
        fmm_measure_errors(c->plan, c->reference, isfinite(c->accuracy) ? &limits : NULL, 1, c->force, &c->m);
    if (status == GMXFMM_OK)
    {
        c->m.error         = fmax(c->m.error, c->m.uncertainty);
        c->m.error_moved   = fmax(c->m.error_moved, c->m.uncertainty);
        c->m.error_limited = fmax(c->m.error_limited, c->reference->uncertainty_limited);
        c->m.error_targets = fmax(c->m.error_targets, c->reference->uncertainty_targets);
        status             = c->system->x_before != NULL ? gmxfmm_assign(c->plan, c->system->x) : status;
    }
    return say_of_plan(c, status);
}

/* The cheapest settings that reach the accuracy, or those given if they do. Measured errors may be wrong by the
 * uncertainty of the reference, which a choice has allowed for. */
static gmxfmm_status create_for_accuracy(creation* c, gmxfmm_measurement* tried, int* num_tried)
{
    const int     chooses = has_choice(&c->options), moves = c->system->x_before != NULL;
    gmxfmm_status status = set_reference(c, gmxfmm_reference_create, &c->options);
    if (status == GMXFMM_OK && chooses)
    {
        c->listed = 1;
        status    = gmxfmm_choose(c->reference, &c->options, moves ? c->accuracy : INFINITY, INFINITY, &c->m, tried,
                                  num_tried, c->message, c->size);
    }
    status = status == GMXFMM_OK ? make_plan(c) : status;
    status = status == GMXFMM_OK ? measure_plan(c) : status;
    if (status != GMXFMM_OK)
    {
        return status;
    }
    const double here     = fmax(fmm_larger_error(&c->m), moves ? c->m.error_moved : 0);
    const double error    = fmax(here, c->m.error_anywhere);
    const double doubtful = fmax(c->m.uncertainty, c->reference->uncertainty_targets);
    return error + (chooses ? 0 : doubtful) <= c->accuracy ? GMXFMM_OK : is_missed(c, error);
}

/* Whether errors are known to c_known of themselves, or the reference for this accuracy cannot tell them. */
static int is_known(const creation* c, double accuracy)
{
    const double forces = c->m.uncertainty, targets = c->reference->uncertainty_targets;
    return (forces <= c_known * c->m.error && targets <= c_known * c->m.error_targets) ||
           fmax(forces, targets) > 0.1 * accuracy;
}

/* The settings given, completed by the model, and their error: to c_known of itself or, where double precision does not
 * tell it, a bound. */
static gmxfmm_status create_as_given(creation* c)
{
    gmxfmm_options exact  = c->options;
    gmxfmm_status  status = make_plan(c);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    fmm_measure_settings(c->plan, &c->m);
    exact.accuracy = fmin(fmax(c->m.predicted_error, c_finest), c_coarsest);
    for (int known = 0; status == GMXFMM_OK && !known; exact.accuracy = fmax(c_finer * exact.accuracy, c_finest))
    {
        status = set_reference(c, fmm_reference_best, &exact);
        status = status == GMXFMM_OK ? measure_plan(c) : status;
        known  = is_known(c, exact.accuracy) || exact.accuracy <= c_finest;
    }
    return status;
}

/* Where places that double precision holds apart may be one in single precision, a reference tells. */
static gmxfmm_status create_fmm(creation* c, gmxfmm_measurement* tried, int* num_tried)
{
    gmxfmm_status status = GMXFMM_ERROR_COINCIDENT;
    if (fmm_is_sampled(c->system, &c->options))
    {
        status = create_sampled(c, tried, num_tried);
    }
    if (status != GMXFMM_ERROR_COINCIDENT)
    {
        return status;
    }
    return isfinite(c->accuracy) ? create_for_accuracy(c, tried, num_tried) : create_as_given(c);
}

/* Assigns the plan of a treecode for the targets, or for the charges, and measures its error there. accuracy: for which
 * it chooses first; 0: its settings stay. */
static gmxfmm_status assign_treecode(creation* c, int at_targets, double accuracy, double* error)
{
    gmxfmm_info   info   = {.size = sizeof(info)};
    gmxfmm_status status = GMXFMM_OK;
    fmm_measure_again(c->plan, accuracy);
    if (at_targets)
    {
        status = fmm_targets_set(c->plan, c->system);
        status = status == GMXFMM_OK ? gmxfmm_assign(c->plan, c->system->x) : status;
    }
    else
    {
        status = fmm_targets_leave(c->plan, c->system);
    }
    gmxfmm_get_info(c->plan, &info);
    *error = info.measured_error;
    return say_of_plan(c, status);
}

/* Of a treecode that was assigned for the targets, with that error there: measures it at the charges, too, and chooses
 * where the accuracy is missed until it is reached at both. It is assigned for the targets then. */
static gmxfmm_status settle_at_both(creation* c, double at_targets)
{
    double        error[2] = {NAN, at_targets}, accuracy = c->options.accuracy;
    int           where  = 1; /* of the last choice: targets */
    gmxfmm_status status = assign_treecode(c, 0, 0, &error[0]);
    for (int i = 0; i < c_choices && status == GMXFMM_OK && error[!where] > c->accuracy && error[where] <= c->accuracy;
         i++)
    {
        where    = !where;
        accuracy = i > 0 ? c_finerChoice * accuracy * c->accuracy / error[where] : accuracy;
        status   = assign_treecode(c, where, accuracy, &error[where]);
        status   = status == GMXFMM_OK ? assign_treecode(c, !where, 0, &error[!where]) : status;
    }
    c->m.error         = error[0];
    c->m.error_targets = error[1];
    status             = status == GMXFMM_OK ? fmm_targets_set(c->plan, c->system) : status;
    status             = status == GMXFMM_OK ? gmxfmm_assign(c->plan, c->system->x) : status;
    return say_of_plan(c, status);
}

/* What the plan of a treecode, which measures its error itself when it is assigned, reaches on the system. Of several
 * ranks all call it. */
static gmxfmm_status measure_treecode(creation* c)
{
    gmxfmm_info   info = {.size = sizeof(info)};
    int           at_targets;
    gmxfmm_status status = fmm_measure_assign(c->plan, c->system, c->message, c->size);
    gmxfmm_get_info(c->plan, &info);
    c->m.error = info.measured_error;
    if (status == GMXFMM_OK)
    {
        status = say_of_plan(c, fmm_any_rank(c->plan, c->system->num_targets > 0, &at_targets));
        status = status == GMXFMM_OK && at_targets ? settle_at_both(c, info.measured_error) : status;
    }
    if (status != GMXFMM_OK)
    {
        return status;
    }
    gmxfmm_get_info(c->plan, &info);
    c->m.predicted_error = info.predicted_error;
    c->m.error_moved = c->m.error_limited = c->m.error;
    c->m.uncertainty                      = 0;
    const size_t  word                    = fmm_word_of(c->options.array_type);
    const int64_t most = c->system->n > c->system->num_targets ? c->system->n : c->system->num_targets;
    c->force           = malloc((4 * (size_t)most + 1) * word);
    status = c->force != NULL ? GMXFMM_OK : fmm_fail(c->plan, GMXFMM_ERROR_MEMORY, "out of memory for forces");
    status = say_of_plan(c, fmm_agree(c->plan, status));
    for (int i = 0; i < 2 && status == GMXFMM_OK; i++) /* the first wakes threads */
    {
        status = say_of_plan(c, fmm_measure_step(c->plan, c->system->x, c->force, &c->m.time));
    }
    const double error = fmm_larger_error(&c->m);
    if (status == GMXFMM_OK && error > c->accuracy)
    {
        char text[256];
        snprintf(
            text, sizeof(text),
            "accuracy %g is out of reach: the best that was measured is %.2g%s, with theta %g and degree %d; %sleave "
            "more options automatic, or ask for less",
            c->accuracy, fmm_error_said(error), c->m.error_targets >= error ? " at the targets" : "", info.theta,
            info.degree, c->options.precision == GMXFMM_SINGLE ? "use double precision, " : "");
        status = fmm_say(c->message, c->size, GMXFMM_ERROR_OPTION, text);
    }
    return status;
}

static gmxfmm_status create_treecode(creation* c)
{
    const gmxfmm_status status = fmm_create_with_errors(&c->plan, &c->options, c->system->n, c->system->box,
                                                        FMM_MEASURED, NULL, NULL, c->message, c->size);
    return status == GMXFMM_OK ? measure_treecode(c) : status;
}

/* The time of a call that gives forces to the host, which all plans have in common; INFINITY if it fails. */
static double time_of_call(creation* c)
{
    double fastest = INFINITY, time;
    for (int i = 0; i < c_calls; i++)
    {
        if (fmm_measure_step(c->plan, c->system->x, c->force, &time) != GMXFMM_OK)
        {
            return INFINITY;
        }
        fastest = fmin(fastest, time);
    }
    return fastest;
}

/* What a creation holds but the message. */
static void free_creation(creation* c)
{
    gmxfmm_reference_destroy(c->reference);
    gmxfmm_destroy(c->plan);
    free(c->force);
    c->reference = NULL;
    c->plan      = NULL;
    c->force     = NULL;
}

/* Whether the treecode may be faster than the FMM's plan. */
static int may_be_faster(const creation* c)
{
    gmxfmm_info info = {.size = sizeof(info)};
    gmxfmm_get_info(c->plan, &info);
    return !fmm_is_sampled(c->system, &c->options) || info.near_particles > c_manyNear;
}

/* The FMM's plan, or the treecode's if that is faster or the only one that can be made. */
static gmxfmm_status create_faster(creation* c, gmxfmm_measurement* tried, int* num_tried)
{
    char     text[512];
    creation tree              = *c;
    tree.options.method        = GMXFMM_TREECODE;
    tree.message               = text;
    tree.size                  = sizeof(text);
    const gmxfmm_status status = create_fmm(c, tried, num_tried);
    if (status != GMXFMM_OK)
    {
        free_creation(c); /* it may have failed for lack of memory */
    }
    if (status == GMXFMM_OK && !may_be_faster(c))
    {
        return GMXFMM_OK;
    }
    const int made   = create_treecode(&tree) == GMXFMM_OK;
    const int faster = made && status == GMXFMM_OK && fmm_larger_error(&tree.m) > c_direct * c->accuracy &&
                       time_of_call(&tree) < c_faster * time_of_call(c);
    if (!made || (status == GMXFMM_OK && !faster))
    {
        free_creation(&tree);
        return status;
    }
    free_creation(c);
    c->plan   = tree.plan;
    c->force  = tree.force;
    c->m      = tree.m;
    c->listed = c->listed && status == GMXFMM_OK; /* what the FMM tried */
    return GMXFMM_OK;
}

static gmxfmm_status check_structures(const gmxfmm_system*      system,
                                      const gmxfmm_measurement* chosen,
                                      const gmxfmm_measurement* tried,
                                      const int*                num_tried,
                                      char*                     text,
                                      size_t                    size)
{
    gmxfmm_status status = fmm_check_system(system, text, size);
    status               = status == GMXFMM_OK ? fmm_targets_check(system, text, size) : status;
    if (status == GMXFMM_OK && chosen != NULL)
    {
        status = fmm_check_room(chosen, sizeof(*chosen), "gmxfmm_measurement", text, size);
    }
    if (status == GMXFMM_OK && tried != NULL && num_tried != NULL && *num_tried > 0)
    {
        status = fmm_check_room(tried, sizeof(*tried), "gmxfmm_measurement", text, size);
    }
    return status;
}

gmxfmm_status gmxfmm_create_measured(gmxfmm_plan**         plan,
                                     const gmxfmm_options* options,
                                     const gmxfmm_system*  system,
                                     gmxfmm_measurement*   chosen,
                                     gmxfmm_measurement*   tried,
                                     int*                  num_tried,
                                     char*                 message,
                                     size_t                message_size)
{
    char     text[256];
    creation c = {.system = system, .message = message, .size = message_size, .m = {.size = sizeof(c.m), .error = NAN}};
    if (plan == NULL || options == NULL || system == NULL)
    {
        return fmm_say(message, message_size, GMXFMM_ERROR_NULL, "plan, options or system is NULL");
    }
    *plan                = NULL;
    gmxfmm_status status = check_structures(system, chosen, tried, num_tried, text, sizeof(text));
    status               = status == GMXFMM_OK ? take_options(&c, options, text, sizeof(text)) : status;
    if (status != GMXFMM_OK)
    {
        return fmm_say(message, message_size, status, text);
    }
    status = c.compares                            ? create_faster(&c, tried, num_tried)
             : c.options.method == GMXFMM_TREECODE ? create_treecode(&c)
                                                   : create_fmm(&c, tried, num_tried);
    if (status == GMXFMM_OK)
    {
        fmm_set_measured_error(c.plan, fmax(c.m.error, c.m.error_targets), c.m.error_anywhere, c.accuracy,
                               c.m.error_unit > 0);
        gmxfmm_reset_times(c.plan); /* of measurements */
        fmm_say(message, message_size, status, "");
        *plan  = c.plan;
        c.plan = NULL;
    }
    if (chosen != NULL)
    {
        fmm_measure_give(chosen, &c.m, chosen->size);
    }
    if (!c.listed && num_tried != NULL)
    {
        *num_tried = tried != NULL && *num_tried > 0 && isfinite(c.m.error);
        if (*num_tried > 0)
        {
            fmm_measure_give(tried, &c.m, tried->size);
        }
    }
    free_creation(&c);
    return status;
}

gmxfmm_status fmm_measured_treecode_options(gmxfmm_options*           own,
                                            double*                   accuracy,
                                            const gmxfmm_options*     given,
                                            const gmxfmm_system*      system,
                                            const gmxfmm_measurement* chosen,
                                            char*                     message,
                                            size_t                    size)
{
    creation      c      = {.system = system};
    gmxfmm_status status = check_structures(system, chosen, NULL, NULL, message, size);
    status               = status == GMXFMM_OK ? fmm_take_options(own, given, message, size) : status;
    if (status == GMXFMM_OK)
    {
        own->method = own->method == GMXFMM_METHOD_AUTO ? GMXFMM_TREECODE : own->method;
        status      = take_options(&c, own, message, size);
        *own        = c.options;
        *accuracy   = c.accuracy;
    }
    return status;
}

gmxfmm_status fmm_measure_treecode(gmxfmm_plan*          plan,
                                   const gmxfmm_options* options,
                                   double                accuracy,
                                   const gmxfmm_system*  system,
                                   gmxfmm_measurement*   chosen,
                                   char*                 message,
                                   size_t                size)
{
    creation            c      = {.system   = system,
                                  .options  = *options,
                                  .accuracy = accuracy,
                                  .plan     = plan,
                                  .message  = message,
                                  .size     = size,
                                  .m        = {.size = sizeof(c.m), .error = NAN}};
    const gmxfmm_status status = measure_treecode(&c);
    if (status == GMXFMM_OK)
    {
        const double error = fmax(c.m.error, c.m.error_targets);
        fmm_set_measured_error(plan, error, error, accuracy, 0);
        gmxfmm_reset_times(plan); /* of measurements */
    }
    if (chosen != NULL)
    {
        fmm_measure_give(chosen, &c.m, chosen->size);
    }
    free(c.force);
    return status;
}
