/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Measured errors of settings on a given system: its forces are compared with those of a reference, two evaluations
 * that are far more exact. */
#include "fmm/measure/measure.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/clock.h"
#include "fmm/measure/shifts.h"
#include "fmm/measure/targets.h"
#include "fmm/memory.h"
#include "fmm/numbers.h"
#include "fmm/options.h"
#include "fmm/plan.h"
#include "fmm/process.h"
#include "fmm/sizes.h"

/* Accuracy asked of the evaluations of a reference, relative to the errors to be measured: at first, and again each
 * time that the two differ by too much. In liquids the error of the model's settings is a quarter of the accuracy asked
 * for; in some crystals it is 60 times as large as predicted. */
static const double c_finer  = 0.03;
static const double c_finest = 1e-12;

/* For this accuracy or lower ones the first evaluation is in single precision, whose rounding errors, a few 1e-6, are
 * then small compared with the allowed difference. If the two differ by more, both are done again in double precision.
 */
static const double c_roundedFirst = 1e-4;

enum
{
    c_inFlight = 5, /* steps timed together on a GPU, as a single step waits for its launches */
    c_compared = 20 /* the same for times by which settings are compared */
};

/* On an octree, the second evaluation has an order higher by this; and so do both, where the finest that the model can
 * be asked for is not enough: with two layers of near cells that makes errors 30 times smaller at the least. */
static const int c_higher = 4;

/* Allowed difference of the two evaluations, relative to the errors to be measured. */
static const double c_agreement = 0.1;

/* How far particles move that have no forces, in their spacing: along each direction, as standard deviation. In rock
 * salt forces are 7 times that, of (q / d)^2, and rounding is some 4e-16 or 3e-7 of that: with c_aboveRounding less
 * than a tenth of what is asked. What cannot be measured so is tried c_moreMoved times farther off, up to c_mostMoved:
 * atoms of crystals at room temperature are 0.03 away. */
static const double c_moved = 7e-4, c_aboveRounding = 5, c_moreMoved = 4, c_mostMoved = 0.1;

static double largest_difference(const double* virial, const double* reference)
{
    double largest = 0;
    for (int i = 0; i < 9; i++)
    {
        largest = fmax(largest, fabs(virial[i] - reference[i]));
    }
    return largest;
}

/* Copies the plan's message of an error. */
static void text_of(gmxfmm_plan* plan, gmxfmm_status status, char* message, size_t size)
{
    if (status != GMXFMM_OK)
    {
        const char* text = gmxfmm_message(plan);
        fmm_say(message, size, status, text[0] != '\0' ? text : gmxfmm_status_text(status));
    }
}

gmxfmm_status fmm_measure_assign(gmxfmm_plan* plan, const gmxfmm_system* s, char* message, size_t size)
{
    gmxfmm_status status = gmxfmm_set_charges(plan, s->n, s->q);
    status               = status == GMXFMM_OK ? gmxfmm_set_dipoles(plan, s->n, s->mu) : status;
    status               = status == GMXFMM_OK ? gmxfmm_set_exclusions(plan, s->excl_start, s->excl_list) : status;
    status               = status == GMXFMM_OK ? fmm_targets_set(plan, s) : status;
    status               = status == GMXFMM_OK ? gmxfmm_assign(plan, s->x) : status;
    text_of(plan, status, message, size);
    return status;
}

gmxfmm_status fmm_measure_plan(const gmxfmm_system*  s,
                               const gmxfmm_options* options,
                               fmm_known_errors*     known,
                               gmxfmm_plan**         plan,
                               char*                 message,
                               size_t                size)
{
    const gmxfmm_status status =
        fmm_create_with_errors(plan, options, s->n, s->box, FMM_MEASURED, known, NULL, message, size);
    return status == GMXFMM_OK ? fmm_measure_assign(*plan, s, message, size) : status;
}

/* Forces, force[3 n], torques behind them, and virial[9] (NULL: none) of the reference's system, with the present
 * assignment to cells. */
static gmxfmm_status evaluate(gmxfmm_plan* plan, const gmxfmm_reference* r, void* force, double* virial)
{
    const gmxfmm_system* s      = &r->system;
    const size_t         word   = fmm_word_of(r->array_type);
    gmxfmm_output        output = {.size = sizeof(output), .force = force, .want_virial = virial != NULL};
    if (s->mu != NULL)
    {
        output.torque = (char*)force + (size_t)fmm_torques_begin(s) * word;
    }
    const gmxfmm_status status = fmm_execute_anyway(plan, s->x, &output);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    if (virial != NULL)
    {
        memcpy(virial, output.virial, sizeof(output.virial));
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_measure_step(gmxfmm_plan* plan, const void* x, void* force, double* time)
{
    gmxfmm_output       output = fmm_output_in(plan, force);
    const double        begin  = fmm_time();
    const gmxfmm_status status = fmm_execute_anyway(plan, x, &output);
    *time                      = fmm_time() - begin;
    return status;
}

gmxfmm_status fmm_measure_time(
    gmxfmm_plan* plan, const gmxfmm_reference* reference, int repeats, double most, void* force, double* time)
{
    double this          = 0;
    gmxfmm_info   info   = {.size = sizeof(info)};
    gmxfmm_status status = gmxfmm_get_info(plan, &info);
    *time                = repeats > 0 ? INFINITY : 0;
    if (repeats > 0 && fmm_can_time_steps(plan) && reference->system.num_targets == 0)
    {
        /* lattice sums of a new plan are not to be timed */
        status        = info.num_executes == 0 ? fmm_measure_step(plan, reference->system.x, force, &this) : status;
        const int num = repeats > 1 ? c_compared : c_inFlight;
        return status == GMXFMM_OK ? fmm_time_steps(plan, reference->system.x, num, time) : status;
    }
    for (int i = 0; i < repeats && status == GMXFMM_OK && !(i >= 2 && *time > most); i++)
    {
        status = fmm_measure_step(plan, reference->system.x, force, &this);
        *time  = fmin(*time, this);
    }
    return status;
}

int fmm_measure_threads(const gmxfmm_reference* r, const gmxfmm_options* options)
{
    const int most = fmm_useful_threads(options, fmm_num_threads(options->num_threads), r->system.n);
    const int num  = fmm_crowded_threads(&r->watch, options, most, r->system.n);
    return options->device == GMXFMM_CPU && num < most ? num : options->num_threads;
}

void* fmm_measure_room(const gmxfmm_reference* r)
{
    const size_t word  = fmm_word_of(r->array_type);
    const size_t more  = r->system.mu != NULL ? 3 * (size_t)r->system.n : 0; /* torques */
    const size_t bytes = ((size_t)fmm_torques_begin(&r->system) + more + 1) * word;
    void*        room  = malloc(bytes);
    if (room != NULL)
    {
        fmm_clear(room, bytes, r->num_threads); /* first touch by all threads; copies from a device would use one */
    }
    return room;
}

/* Options of an evaluation with this accuracy. It has two layers of near cells: with one, pairs in corners of cells
 * converge too slowly. */
static gmxfmm_options exact(const gmxfmm_options* o, double accuracy, gmxfmm_precision precision)
{
    gmxfmm_options e;
    gmxfmm_default_options(&e);
    e.accuracy     = accuracy;
    e.separation   = 2;
    e.m2l          = o->m2l == GMXFMM_M2L_AUTO || o->m2l == GMXFMM_M2L_FFT ? o->m2l : GMXFMM_M2L_ROTATION;
    e.boundary     = o->boundary;
    e.precision    = precision;
    e.array_type   = o->array_type;
    e.device       = o->device;
    e.device_id    = o->device_id;
    e.num_threads  = o->num_threads;
    e.reproducible = 1; /* else FFT plans would be timed, which costs more than it gains */
    e.prefactor    = o->prefactor;
    e.min_distance = o->min_distance;
    e.cache_dir    = o->cache_dir;
    memcpy(e.periodic, o->periodic, sizeof(e.periodic));
    return e;
}

/* Fixes the cells of *e to those of a plan, or to `more` cells along each edge than a plan of one level has. Those of a
 * needle may be more than the option takes: then their depth alone is fixed. An open octree follows the particles, and
 * may have more levels than the option takes: it stays automatic. */
static void fix_cells(gmxfmm_options* e, const gmxfmm_info* info, int more)
{
    const int* n = info->grid;
    const int  m = n[0] > n[1] ? n[0] : n[1], most = m > n[2] ? m : n[2];
    const int  along = e->periodic[0] + e->periodic[1] + e->periodic[2];
    const int  fits  = most <= gmxfmm_find_option("grid")->highest;
    e->m2l           = info->m2l;
    if (info->depth >= 0 && e->boundary == GMXFMM_OPEN)
    {
        return;
    }
    if (info->depth >= 0)
    {
        e->depth = info->depth;
    }
    for (int d = 0; d < 3 && (info->depth < 0 || fits); d++)
    {
        const int wide = n[d] == 1 && along == 1 && e->periodic[d]; /* flatter cells would have too many images near */
        e->grid[d]     = n[d] + (info->depth < 0 && !wide ? more : 0);
    }
}

static int higher_order(int order)
{
    return order + c_higher < GMXFMM_MAX_ORDER ? order + c_higher : GMXFMM_MAX_ORDER;
}

/* Options of the second evaluation: in double precision, and with other cells than the first. On an octree it has a
 * higher order instead, in a box in the same leaves, since those that suit the particles less are more expensive. */
static gmxfmm_options otherwise(const gmxfmm_options* first, const gmxfmm_info* info)
{
    gmxfmm_options e = *first;
    e.precision      = GMXFMM_DOUBLE;
    e.order          = info->depth >= 0 ? higher_order(info->order) : e.order;
    fix_cells(&e, info, 1);
    return e;
}

/* Forces and virial (NULL: none) by an evaluation with these options, and values at targets behind the forces. *info:
 * the settings used. */
static gmxfmm_status evaluate_exactly(const gmxfmm_reference* r,
                                      const gmxfmm_options*   options,
                                      fmm_known_errors*       known,
                                      void*                   force,
                                      double*                 virial,
                                      gmxfmm_info*            info,
                                      char*                   message,
                                      size_t                  size)
{
    const gmxfmm_system* s    = &r->system;
    gmxfmm_plan*         plan = NULL;
    gmxfmm_options       own  = *options;
    own.num_threads           = fmm_measure_threads(r, options);
    gmxfmm_status status      = fmm_measure_plan(s, &own, known, &plan, message, size);
    if (status == GMXFMM_OK)
    {
        const int threads = fmm_measure_threads(r, &own); /* what has happened meanwhile counts, too */
        fmm_limit_threads(plan, threads > 0 ? threads : INT_MAX);
        status = fmm_targets_evaluate(plan, s, options->array_type, s->x, force);
        status = status == GMXFMM_OK ? fmm_targets_leave(plan, s) : status;
        status = status == GMXFMM_OK ? evaluate(plan, r, force, virial) : status;
        status = status == GMXFMM_OK ? gmxfmm_get_info(plan, info) : status;
        text_of(plan, status, message, size);
    }
    gmxfmm_destroy(plan);
    return status;
}

/* Makes two evaluations, the first with these options. Sets the reference's forces and virial, those of the second, its
 * uncertainty, the difference of the forces, and the settings of the first. force: memory for forces. */
static gmxfmm_status evaluate_twice(gmxfmm_reference*     r,
                                    const gmxfmm_options* options,
                                    const gmxfmm_options* first,
                                    void*                 force,
                                    gmxfmm_info*          used,
                                    char*                 message,
                                    size_t                size)
{
    fmm_known_errors* known  = calloc(1, sizeof(*known)); /* if NULL, errors are predicted again */
    gmxfmm_info       info   = {.size = sizeof(info)};
    gmxfmm_status     status = evaluate_exactly(r, first, known, force, NULL, used, message, size);
    if (status == GMXFMM_OK)
    {
        const gmxfmm_options second = otherwise(first, used);
        status                      = evaluate_exactly(r, &second, known, r->force, r->virial, &info, message, size);
    }
    free(known);
    if (status == GMXFMM_OK)
    {
        r->unit         = fmm_unit_of_errors(r, options);
        r->unit_torques = r->system.mu != NULL ? fmm_unit_of_torques(r, options) : r->unit_torques;
        r->uncertainty  = fmm_error_of(r, force, &r->uncertainty_limited);
        fmm_targets_unit(r, options);
        r->uncertainty_targets = fmm_targets_error_of(r, force);
    }
    return status;
}

static double larger_uncertainty(const gmxfmm_reference* r)
{
    return fmax(fmax(r->uncertainty, r->uncertainty_limited), r->uncertainty_targets);
}

static int agrees(const gmxfmm_reference* r, const gmxfmm_options* options)
{
    return larger_uncertainty(r) <= c_agreement * options->accuracy;
}

/* Higher orders in the cells of the last evaluations, as long as these come nearer to each other: in crystals even the
 * finest accuracy that the model can be asked for may be missed by a thousand times. The forces that differ least stay.
 */
static void raise_reference(gmxfmm_reference* r, const gmxfmm_options* options, const gmxfmm_info* info, void* force)
{
    gmxfmm_options   first = exact(options, c_finest, GMXFMM_DOUBLE);
    gmxfmm_info      used  = {.size = sizeof(used)};
    gmxfmm_reference next  = *r;
    next.force             = fmm_measure_room(r);
    fix_cells(&first, info, 0);
    for (first.order = info->order; next.force != NULL && !agrees(r, options) && first.order < GMXFMM_MAX_ORDER;)
    {
        first.order = higher_order(first.order);
        if (evaluate_twice(&next, options, &first, force, &used, NULL, 0) != GMXFMM_OK ||
            !(larger_uncertainty(&next) < larger_uncertainty(r)))
        {
            break;
        }
        const gmxfmm_reference better = next;
        next.force                    = r->force;
        *r                            = better;
    }
    free(next.force);
}

/* The two evaluations, until they agree or double precision has no more to give. */
static gmxfmm_status
evaluate_reference(gmxfmm_reference* r, const gmxfmm_options* options, void* force, char* message, size_t size)
{
    gmxfmm_info   info   = {.size = sizeof(info)};
    gmxfmm_status status = GMXFMM_OK;
    double        asked  = options->accuracy;
    while (status == GMXFMM_OK && !agrees(r, options) && (asked > c_finest || !isfinite(r->uncertainty)))
    {
        asked                      = fmax(asked * c_finer, c_finest);
        const gmxfmm_options rough = exact(options, asked, GMXFMM_SINGLE), fine = exact(options, asked, GMXFMM_DOUBLE);
        if (asked >= c_finer * c_roundedFirst &&
            evaluate_twice(r, options, &rough, force, &info, NULL, 0) == GMXFMM_OK && agrees(r, options))
        {
            return GMXFMM_OK;
        }
        status = evaluate_twice(r, options, &fine, force, &info, message, size);
    }
    if (status == GMXFMM_ERROR_OPTION && isfinite(r->uncertainty)) /* too fine for the model */
    {
        status = GMXFMM_OK;
    }
    if (status == GMXFMM_OK && !agrees(r, options))
    {
        raise_reference(r, options, &info, force);
    }
    return status;
}

gmxfmm_status fmm_check_system(const gmxfmm_system* system, char* message, size_t size)
{
    char                text[128];
    const gmxfmm_status status = fmm_check_members(system, sizeof(*system), "gmxfmm_system", message, size);
    if (status != GMXFMM_OK || (system->n >= 0 && system->n <= INT32_MAX / 4))
    {
        return status;
    }
    snprintf(text, sizeof(text), "number of particles is %lld, allowed is 0 to %d", (long long)system->n,
             INT32_MAX / 4);
    return fmm_say(message, size, GMXFMM_ERROR_OPTION, text);
}

/* As fmm_reference_best, without particles that are moved. */
static gmxfmm_status make_reference(gmxfmm_reference**    reference,
                                    const gmxfmm_options* options,
                                    const gmxfmm_system*  system,
                                    char*                 message,
                                    size_t                size)
{
    gmxfmm_reference* r = calloc(1, sizeof(*r));
    *reference          = NULL;
    if (r == NULL)
    {
        return fmm_say(message, size, GMXFMM_ERROR_MEMORY, "out of memory");
    }
    r->system     = *system;
    r->array_type = options->array_type;
    r->watch      = fmm_watch_begin();
    r->num_threads =
        fmm_useful_threads(options, fmm_num_threads(options->num_threads), system->n + system->num_targets);
    r->uncertainty       = INFINITY;
    r->force             = fmm_measure_room(r);
    void*         force  = fmm_measure_room(r);
    gmxfmm_status status = r->force != NULL && force != NULL
                               ? evaluate_reference(r, options, force, message, size)
                               : fmm_say(message, size, GMXFMM_ERROR_MEMORY, "out of memory for forces");
    free(force);
    if (status != GMXFMM_OK)
    {
        gmxfmm_reference_destroy(r);
        return status;
    }
    *reference = r;
    return GMXFMM_OK;
}

/* A number in -1/2..1/2 that has nothing to do with the one before, nor with a lattice (splitmix64, Steele et al.
 * 2014). */
static double random_of(uint64_t i)
{
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
    z          = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z          = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53 - 0.5;
}

/* Writes positions with each coordinate moved at random by `by`, its standard deviation, to x. */
static void move_particles(const gmxfmm_reference* r, double by, void* x)
{
    for (int64_t k = 0; k < 3 * r->system.n; k++)
    {
        const double to = sqrt(12) * by * random_of((uint64_t)k);
        if (r->array_type == GMXFMM_DOUBLE)
        {
            ((double*)x)[k] = ((const double*)r->system.x)[k] + to;
        }
        else
        {
            ((float*)x)[k] = (float)((double)((const float*)r->system.x)[k] + to);
        }
    }
}

/* The reference of particles that have moved, where forces are zero by symmetry: a crystal that is a plan's first
 * system has forces in the next step, and these are what the error is relative to then. They move as little as c_moved,
 * or as much as is needed for forces that are above rounding. If nothing is known of them, as of a single charge,
 * errors stay relative to the natural unit. */
static gmxfmm_status add_moved(gmxfmm_reference* r, const gmxfmm_options* options)
{
    const double rounding = options->precision == GMXFMM_DOUBLE ? DBL_EPSILON : (double)FLT_EPSILON;
    double       by       = fmax(c_moved, fmin(c_aboveRounding * rounding / options->accuracy, c_mostMoved));
    r->moved_x            = fmm_measure_room(r);
    if (r->moved_x == NULL)
    {
        return GMXFMM_ERROR_MEMORY;
    }
    gmxfmm_system system = r->system;
    system.x             = r->moved_x;
    system.x_before      = NULL;
    for (; by < c_moreMoved * c_mostMoved; by *= c_moreMoved)
    {
        move_particles(r, by * r->unit.spacing, r->moved_x);
        const gmxfmm_status status = make_reference(&r->moved, options, &system, NULL, 0);
        if (status == GMXFMM_ERROR_MEMORY ||
            (status == GMXFMM_OK && r->moved->unit.natural == 0 && agrees(r->moved, options)))
        {
            return status;
        }
        gmxfmm_reference_destroy(r->moved);
        r->moved = NULL;
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_reference_best(gmxfmm_reference**    reference,
                                 const gmxfmm_options* options,
                                 const gmxfmm_system*  system,
                                 char*                 message,
                                 size_t                size)
{
    gmxfmm_status status = make_reference(reference, options, system, message, size);
    if (status == GMXFMM_OK && (*reference)->unit.natural > 0 && system->n > 1 &&
        add_moved(*reference, options) != GMXFMM_OK)
    {
        gmxfmm_reference_destroy(*reference);
        *reference = NULL;
        status     = fmm_say(message, size, GMXFMM_ERROR_MEMORY, "out of memory for particles that have moved");
    }
    return status;
}

/* The least accuracy that this reference is good for, with one digit. */
static double least_accuracy(const gmxfmm_reference* r)
{
    const double least = larger_uncertainty(r) / c_agreement, digit = pow(10, floor(log10(least)));
    return ceil(least / digit) * digit;
}

gmxfmm_status gmxfmm_reference_create(gmxfmm_reference**    reference,
                                      const gmxfmm_options* options,
                                      const gmxfmm_system*  system,
                                      char*                 message,
                                      size_t                message_size)
{
    if (reference == NULL || options == NULL || system == NULL)
    {
        return fmm_say(message, message_size, GMXFMM_ERROR_NULL, "reference, options or system is NULL");
    }
    *reference = NULL;
    char           text[256];
    gmxfmm_options own;
    gmxfmm_status  status = fmm_check_system(system, text, sizeof(text));
    status                = status == GMXFMM_OK ? fmm_targets_check(system, text, sizeof(text)) : status;
    status                = status == GMXFMM_OK ? fmm_take_options(&own, options, text, sizeof(text)) : status;
    if (status != GMXFMM_OK)
    {
        return fmm_say(message, message_size, status, text);
    }
    status = fmm_reference_best(reference, &own, system, message, message_size);
    if (status == GMXFMM_OK && !agrees(*reference, &own))
    {
        const double least = least_accuracy(*reference);
        const int    num =
            snprintf(text, sizeof(text),
                     "errors of %.2g cannot be measured on this system: its most exact evaluations in "
                     "double precision differ by %.2g%s",
                     own.accuracy, larger_uncertainty(*reference),
                     (*reference)->uncertainty_targets >= larger_uncertainty(*reference) ? " at the targets" : "");
        if (least <= gmxfmm_find_option("accuracy")->highest)
        {
            snprintf(text + num, sizeof(text) - (size_t)num, "; ask for an accuracy of %.0e or more", least);
        }
        else
        {
            snprintf(text + num, sizeof(text) - (size_t)num,
                     " of the forces, so that there is no accuracy to ask for: take settings without a measurement");
        }
        status = fmm_say(message, message_size, GMXFMM_ERROR_OPTION, text);
        gmxfmm_reference_destroy(*reference);
        *reference = NULL;
    }
    return status;
}

double gmxfmm_reference_uncertainty(const gmxfmm_reference* reference)
{
    return reference != NULL ? reference->uncertainty : NAN;
}

void fmm_measure_give(void* to, const gmxfmm_measurement* from, size_t size)
{
    gmxfmm_measurement own = *from;
    own.size               = size;
    memcpy(to, &own, sizeof(own));
}

void fmm_measure_settings(const gmxfmm_plan* plan, gmxfmm_measurement* m)
{
    gmxfmm_info info = {.size = sizeof(info)};
    gmxfmm_get_info(plan, &info);
    m->m2l             = info.m2l;
    m->order           = info.order;
    m->depth           = info.depth;
    m->separation      = info.separation;
    m->predicted_error = info.predicted_error;
    memcpy(m->grid, info.grid, sizeof(m->grid));
}

/* Errors of the plan's forces on the reference's system after an assignment at x: error[0], and with limited forces
 * error[1]. *virial_error: the largest so far; NULL: the virial is not wanted. */
static gmxfmm_status errors_after(
    gmxfmm_plan* plan, const gmxfmm_reference* r, const void* x, void* force, double* error, double* virial_error)
{
    double        virial[9];
    gmxfmm_status status = gmxfmm_assign(plan, x);
    status = status == GMXFMM_OK ? evaluate(plan, r, force, virial_error != NULL ? virial : NULL) : status;
    if (status == GMXFMM_OK)
    {
        error[0] = fmm_error_of(r, force, &error[1]);
    }
    if (status == GMXFMM_OK && virial_error != NULL)
    {
        *virial_error = fmax(*virial_error, largest_difference(virial, r->virial));
    }
    return status;
}

/* Whether a limit is missed by what was measured last, so that no more needs to be. */
static int is_missed(const gmxfmm_measurement* m, const fmm_shifts* shifts, const fmm_error_limits* limits)
{
    return limits != NULL && !limits->measures_all &&
           (fmm_larger_error(m) > limits->error || m->error_moved > limits->error_moved ||
            m->virial_error > limits->virial_error || shifts->error[shifts->num - 1] > limits->error);
}

/* Whether more shifts would change nothing. The first half may be a lattice's best places. */
static int is_reached(const fmm_shifts* shifts, const fmm_error_limits* limits)
{
    return limits != NULL && !limits->measures_all && 2 * shifts->num >= shifts->most &&
           fmm_error_anywhere(shifts) <= limits->error;
}

/* The largest error of forces and at targets, with the cells as they are and after an assignment at x. Errors of the
 * virial change their sign from place to place. */
static gmxfmm_status error_here(gmxfmm_plan* plan, const gmxfmm_reference* r, const void* x, void* force, double* error)
{
    const gmxfmm_system* s        = &r->system;
    double               three[3] = {0, 0, 0};
    gmxfmm_status        status   = fmm_targets_leave(plan, s);
    status                        = status == GMXFMM_OK ? errors_after(plan, r, x, force, three, NULL) : status;
    status = status == GMXFMM_OK ? fmm_targets_measure(plan, r, s->x, s->targets, force, &three[2]) : status;
    *error = fmax(fmax(three[0], three[1]), three[2]);
    return status;
}

/* Errors with cells shifted. Where particles that have moved have to reach as much, they are assigned as these are. */
static gmxfmm_status measure_shifted(
    gmxfmm_plan* plan, const gmxfmm_reference* r, const fmm_error_limits* limits, void* force, gmxfmm_measurement* m)
{
    static const double     c_back[3] = {0, 0, 0};
    const gmxfmm_reference* of        = r->moved != NULL ? r->moved : r;
    const gmxfmm_system*    s         = &of->system;
    const int               is_moved  = fmm_shifts_are_moved(limits, s);
    fmm_shifts              shifts    = fmm_shifts_of(plan, of);
    double                  shift[3];
    gmxfmm_status           status = GMXFMM_OK;
    shifts.error[0]                = fmax(fmm_larger_error(m), is_moved ? m->error_moved : 0);
    shifts.num                     = 1;
    if (r->moved != NULL)
    {
        status = error_here(plan, of, s->x, force, &shifts.error[0]);
    }
    int missed = is_missed(m, &shifts, limits);
    while (status == GMXFMM_OK && shifts.num < shifts.most && !missed && !is_reached(&shifts, limits))
    {
        fmm_shift_of(plan, of, shifts.num, shift);
        fmm_shift_cells(plan, shift);
        status = error_here(plan, of, is_moved ? s->x_before : s->x, force, &shifts.error[shifts.num]);
        shifts.num++;
        missed = is_missed(m, &shifts, limits);
    }
    if (status == GMXFMM_OK)
    {
        m->error_anywhere = missed ? shifts.error[shifts.num - 1] : fmm_error_anywhere(&shifts);
    }
    if (status == GMXFMM_OK && (shifts.num > 1 || r->moved != NULL))
    {
        fmm_shift_cells(plan, c_back);
        status = fmm_targets_set(plan, &r->system);
        status = status == GMXFMM_OK ? gmxfmm_assign(plan, r->system.x) : status;
    }
    return status;
}

gmxfmm_status fmm_measure_errors(gmxfmm_plan*            plan,
                                 const gmxfmm_reference* reference,
                                 const fmm_error_limits* limits,
                                 int                     repeats,
                                 void*                   force,
                                 gmxfmm_measurement*     m)
{
    const gmxfmm_system* s = &reference->system;
    double               virial[9], moved[2];
    gmxfmm_status        status = fmm_targets_leave(plan, s);
    status                      = status == GMXFMM_OK ? evaluate(plan, reference, force, virial) : status;
    if (status != GMXFMM_OK)
    {
        return status;
    }
    fmm_measure_settings(plan, m);
    m->error        = fmm_error_of(reference, force, &m->error_limited);
    m->uncertainty  = reference->uncertainty;
    m->error_unit   = reference->unit.natural;
    m->virial_error = largest_difference(virial, reference->virial);
    moved[0]        = m->error;
    status =
        s->x_before != NULL ? errors_after(plan, reference, s->x_before, force, moved, &m->virial_error) : GMXFMM_OK;
    m->error_moved = moved[0];
    status =
        status == GMXFMM_OK ? fmm_targets_measure(plan, reference, s->x, s->targets, force, &m->error_targets) : status;
    status = status == GMXFMM_OK ? measure_shifted(plan, reference, limits, force, m) : status;
    status = status == GMXFMM_OK ? fmm_measure_time(plan, reference, repeats, INFINITY, force, &m->time) : status;
    return status;
}

gmxfmm_status gmxfmm_measure(const gmxfmm_reference* reference,
                             const gmxfmm_options*   options,
                             int                     repeats,
                             gmxfmm_measurement*     measurement,
                             char*                   message,
                             size_t                  message_size)
{
    if (reference == NULL || options == NULL || measurement == NULL)
    {
        return fmm_say(message, message_size, GMXFMM_ERROR_NULL, "reference, options or measurement is NULL");
    }
    if (options->array_type != reference->array_type)
    {
        return fmm_say(message, message_size, GMXFMM_ERROR_OPTION, "array_type is not that of the reference");
    }
    gmxfmm_status status =
        fmm_check_room(measurement, sizeof(*measurement), "gmxfmm_measurement", message, message_size);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    const gmxfmm_system* s     = &reference->system;
    void*                force = fmm_measure_room(reference);
    gmxfmm_plan*         plan  = NULL;
    gmxfmm_options       own;
    if (force == NULL)
    {
        return fmm_say(message, message_size, GMXFMM_ERROR_MEMORY, "out of memory for forces");
    }
    status = fmm_take_options(&own, options, message, message_size);
    if (status == GMXFMM_OK)
    {
        own.num_threads = repeats > 0 ? own.num_threads : fmm_measure_threads(reference, &own);
        status          = fmm_measure_plan(s, &own, NULL, &plan, message, message_size);
    }
    if (status == GMXFMM_OK)
    {
        status = fmm_measure_errors(plan, reference, NULL, repeats, force, measurement);
        text_of(plan, status, message, message_size);
    }
    gmxfmm_destroy(plan);
    free(force);
    return status;
}

gmxfmm_status gmxfmm_measure_plan(const gmxfmm_reference* reference,
                                  gmxfmm_plan*            plan,
                                  gmxfmm_measurement*     measurement,
                                  char*                   message,
                                  size_t                  message_size)
{
    if (reference == NULL || plan == NULL || measurement == NULL)
    {
        return fmm_say(message, message_size, GMXFMM_ERROR_NULL, "reference, plan or measurement is NULL");
    }
    gmxfmm_status status =
        fmm_check_room(measurement, sizeof(*measurement), "gmxfmm_measurement", message, message_size);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    if (fmm_plan_has_dipoles(plan) != (reference->system.mu != NULL))
    {
        return fmm_say(message, message_size, GMXFMM_ERROR_OPTION,
                       "dipoles are those of the plan or of the reference alone: give the same ones to both");
    }
    if (fmm_plan_has_widths(plan))
    {
        return fmm_say(message, message_size, GMXFMM_ERROR_UNSUPPORTED,
                       "a reference is of point charges, and the plan has widths: set them to NULL first");
    }
    void* force = fmm_measure_room(reference);
    if (force == NULL)
    {
        return fmm_say(message, message_size, GMXFMM_ERROR_MEMORY, "out of memory for forces");
    }
    status = gmxfmm_assign(plan, reference->system.x);
    status = status == GMXFMM_OK ? fmm_measure_errors(plan, reference, NULL, 0, force, measurement) : status;
    status = status == GMXFMM_OK ? gmxfmm_assign(plan, reference->system.x) : status;
    text_of(plan, status, message, message_size);
    free(force);
    return status;
}

void gmxfmm_reference_destroy(gmxfmm_reference* reference)
{
    if (reference != NULL)
    {
        gmxfmm_reference_destroy(reference->moved);
        free(reference->moved_x);
        free(reference->force);
        free(reference);
    }
}
