/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Errors at targets: of the potential and of the field, each over its own RMS at all targets. As of forces (norm.c) it
 * is taken twice, once with targets whose value is more than ten times the median as if they had that: a target close
 * to a charge hides nothing. Where all values are zero by symmetry errors are over their natural unit.
 */
#include "fmm/measure/targets.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "fmm/numbers.h"
#include "fmm/plan.h"

/* As of forces: values below this share of their natural unit are zero but for rounding, or below so many times what
 * places are rounded by, over the distance of charges. */
static const double c_zero       = 1e-10;
static const double c_ofRounding = 10;

/* Values larger than this times the median count as the median. */
static const double c_limit = 10;

enum
{
    c_sample = 1024 /* targets of which medians are taken: twice that is on the stack */
};

typedef enum
{
    c_potential,
    c_field,
    c_quantities
} quantity;

/* What charges are and where, for natural units. */
typedef struct
{
    double charge, distance;  /* mean |q|; of charges from each other */
    double low[3], high[3];   /* the brick around those of an open system; otherwise from -INFINITY to INFINITY */
    double farthest, epsilon; /* the largest coordinate, and what it is rounded by, relative to it */
} extent;

gmxfmm_status fmm_targets_check(const gmxfmm_system* s, char* message, size_t size)
{
    if (s->num_targets < 0)
    {
        return fmm_say(message, size, GMXFMM_ERROR_OPTION, "num_targets is negative");
    }
    if (s->num_targets > 0 && s->targets == NULL)
    {
        return fmm_say(message, size, GMXFMM_ERROR_NULL, "targets is NULL");
    }
    return s->num_targets > 0 && s->excl_start != NULL
               ? fmm_say(message, size, GMXFMM_ERROR_OPTION,
                         "exclusions are of no use with targets: set one or the other")
               : GMXFMM_OK;
}

gmxfmm_status fmm_targets_set(gmxfmm_plan* plan, const gmxfmm_system* s)
{
    int                 any;
    const gmxfmm_status status = fmm_any_rank(plan, s->num_targets > 0, &any);
    return status == GMXFMM_OK && any ? gmxfmm_set_targets(plan, s->num_targets, s->targets) : status;
}

gmxfmm_status fmm_targets_leave(gmxfmm_plan* plan, const gmxfmm_system* s)
{
    int           any;
    gmxfmm_status status = fmm_any_rank(plan, s->num_targets > 0, &any);
    status               = status == GMXFMM_OK && any ? gmxfmm_set_targets(plan, 0, NULL) : status;
    return status == GMXFMM_OK && any ? gmxfmm_assign(plan, s->x) : status;
}

/* The values at targets in an array of fmm_measure_room: potentials, and fields behind them. */
static void* values_in(const gmxfmm_system* s, gmxfmm_precision type, const void* room)
{
    return (char*)room + 3 * (size_t)s->n * fmm_word_of(type);
}

gmxfmm_status
fmm_targets_evaluate(gmxfmm_plan* plan, const gmxfmm_system* s, gmxfmm_precision type, const void* x, void* room)
{
    char* const   potential = values_in(s, type, room);
    gmxfmm_output output    = {.size      = sizeof(output),
                               .potential = potential,
                               .field     = potential + (size_t)s->num_targets * fmm_word_of(type)};
    return s->num_targets > 0 ? gmxfmm_execute(plan, x, &output) : GMXFMM_OK;
}

/* The square of a quantity at a target, of values as from values_in, or (exact not NULL) of their difference from
 * others. */
static double square_of(const gmxfmm_reference* r, quantity what, const void* values, const void* exact, int64_t target)
{
    const int64_t first = what == c_potential ? target : r->system.num_targets + 3 * target;
    double        sum   = 0;
    for (int64_t i = first; i < first + (what == c_potential ? 1 : 3); i++)
    {
        const double other = exact != NULL ? fmm_number_of(exact, r->array_type, i) : 0;
        const double d     = fmm_number_of(values, r->array_type, i) - other;
        sum += d * d;
    }
    return sum;
}

/* The RMS of a quantity, or of its difference from the exact one, and in *limited with the share of targets whose
 * exact value is above the limit as if that were the median. */
static double rms(const gmxfmm_reference* r, quantity what, const void* other, double limit, double* limited)
{
    const void* exact  = values_in(&r->system, r->array_type, r->force);
    double      sum[2] = {0, 0};
    for (int64_t i = 0; i < r->system.num_targets; i++)
    {
        const double square = square_of(r, what, exact, NULL, i);
        const double term   = other != NULL ? square_of(r, what, other, exact, i) : square;
        const double usual  = limit / c_limit;
        sum[0] += term;
        sum[1] += square > limit * limit ? term * (usual * usual / square) : term;
    }
    *limited = sqrt(sum[1] / (double)r->system.num_targets);
    return sqrt(sum[0] / (double)r->system.num_targets);
}

static extent extent_of(const gmxfmm_reference* r, const gmxfmm_options* options)
{
    const gmxfmm_system* s = &r->system;
    extent               e = {.epsilon = r->array_type == GMXFMM_DOUBLE ? DBL_EPSILON : (double)FLT_EPSILON};
    fmm_scales_of(s, options, &e.charge, &e.distance);
    for (int d = 0; d < 3; d++)
    {
        e.low[d]  = options->boundary == GMXFMM_OPEN ? INFINITY : -INFINITY;
        e.high[d] = -e.low[d];
    }
    for (int64_t i = 0; i < 3 * s->n; i++)
    {
        const double at = fmm_number_of(s->x, r->array_type, i);
        e.low[i % 3]    = at < e.low[i % 3] ? at : e.low[i % 3];
        e.high[i % 3]   = at > e.high[i % 3] ? at : e.high[i % 3];
        e.farthest      = fabs(at) > e.farthest ? fabs(at) : e.farthest;
    }
    return e;
}

/* The natural unit of a quantity at a target, that of charges at their usual distance or, far from all of them, of all
 * their |q| at one place; and in *least the values that are zero but for rounding. */
static double natural_unit(const gmxfmm_reference* r, const extent* e, quantity what, int64_t target, double* least)
{
    double square = 0, farthest = e->farthest;
    for (int d = 0; d < 3; d++)
    {
        const double at      = fmm_number_of(r->system.targets, r->array_type, 3 * target + d);
        const double outside = fmax(fmax(e->low[d] - at, at - e->high[d]), 0);
        farthest             = fmax(farthest, fabs(at));
        square += outside * outside;
    }
    const double far = sqrt(square), power = what == c_potential ? 1 : 2;
    const double near    = e->charge / pow(e->distance, power);
    const double natural = far > 0 ? fmin(near, (double)r->system.n * e->charge / pow(far, power)) : near;
    const double round   = farthest * e->epsilon / fmax(e->distance, far);
    *least               = natural * fmax(c_zero, c_ofRounding * round);
    return natural;
}

/* Whether the median of a quantity, which becomes *usual, is more than rounding. Of a sample of the targets. */
static int has_median(const gmxfmm_reference* r, const extent* e, quantity what, double prefactor, double* usual)
{
    double        value[c_sample], least[c_sample];
    const void*   exact = values_in(&r->system, r->array_type, r->force);
    const int64_t m     = r->system.num_targets;
    const size_t  num   = m < c_sample ? (size_t)m : c_sample;
    for (size_t k = 0; k < num; k++)
    {
        const int64_t i = fmm_sample(m, c_sample, (int64_t)k);
        value[k]        = sqrt(square_of(r, what, exact, NULL, i));
        natural_unit(r, e, what, i, &least[k]);
    }
    *usual = fmm_median(value, num);
    return *usual > prefactor * fmm_median(least, num);
}

static fmm_error_unit unit_of(const gmxfmm_reference* r, const extent* e, quantity what, double prefactor)
{
    double       usual, sum[2] = {0, 0};
    const int    limits = has_median(r, e, what, prefactor, &usual);
    const double m      = (double)r->system.num_targets;
    for (int64_t i = 0; i < r->system.num_targets; i++)
    {
        double       least;
        const double natural = natural_unit(r, e, what, i, &least);
        sum[0] += natural * natural;
        sum[1] += least * least;
    }
    fmm_error_unit unit    = {.limit = limits ? c_limit * usual : INFINITY};
    const double   natural = prefactor * sqrt(sum[0] / m), least = prefactor * sqrt(sum[1] / m);
    unit.all = rms(r, what, NULL, unit.limit, &unit.limited);
    if (!(unit.all > least))
    {
        unit.all = unit.limited = natural > 0 ? natural : 1;
    }
    return unit;
}

void fmm_targets_unit(gmxfmm_reference* r, const gmxfmm_options* options)
{
    const int    there = r->system.num_targets > 0;
    const extent e     = there ? extent_of(r, options) : (extent){0};
    for (quantity what = c_potential; there && what < c_quantities; what++)
    {
        r->unit_targets[what] = unit_of(r, &e, what, fabs(options->prefactor));
    }
}

double fmm_targets_error_of(const gmxfmm_reference* r, const void* room)
{
    const int   there  = r->system.num_targets > 0;
    const void* values = values_in(&r->system, r->array_type, room);
    double      error  = 0;
    for (quantity what = c_potential; there && what < c_quantities; what++)
    {
        const fmm_error_unit* unit = &r->unit_targets[what];
        double                limited;
        const double          all = rms(r, what, values, unit->limit, &limited) / unit->all;
        error                     = isfinite(all) ? fmax(error, fmax(all, limited / unit->limited)) : INFINITY;
    }
    return error;
}

gmxfmm_status fmm_targets_measure(
    gmxfmm_plan* plan, const gmxfmm_reference* r, const void* x, const void* targets, void* room, double* error)
{
    const gmxfmm_system* s = &r->system;
    *error                 = 0;
    if (s->num_targets == 0)
    {
        return GMXFMM_OK;
    }
    gmxfmm_status status = gmxfmm_set_targets(plan, s->num_targets, targets);
    status               = status == GMXFMM_OK ? gmxfmm_assign(plan, x) : status;
    status               = status == GMXFMM_OK ? fmm_targets_evaluate(plan, s, r->array_type, x, room) : status;
    *error               = status == GMXFMM_OK ? fmm_targets_error_of(r, room) : INFINITY;
    return status;
}
