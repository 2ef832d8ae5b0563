/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The life cycle of a treecode: options and charges, an assign and a step as stages in their order. */
#include "fmm/treecode/treecode.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "fmm/clock.h"
#include "fmm/geometry/cells.h"
#include "fmm/simd_level.h"
#include "fmm/treecode/chebyshev.h"
#include "fmm/treecode/state.h"

const char* treecode_message(const treecode* t)
{
    return t->message;
}

static gmxfmm_status check_options(const treecode_options* o, char* message, size_t size)
{
    if (o->stages == NULL)
    {
        snprintf(message, size, "stages is NULL: this build computes no treecode on that device");
        return GMXFMM_ERROR_UNSUPPORTED;
    }
    if ((unsigned)o->kernel >= TREECODE_NUM_KERNELS)
    {
        snprintf(message, size, "kernel %d is not known", (int)o->kernel);
        return GMXFMM_ERROR_OPTION;
    }
    for (int i = 0; i < TREECODE_PARAMETERS; i++)
    {
        if (!isfinite(o->parameter[i]))
        {
            snprintf(message, size, "parameter %d of the kernel is %g: not finite", i, o->parameter[i]);
            return GMXFMM_ERROR_OPTION;
        }
    }
    if (o->kernel == treecode_yukawa && o->parameter[0] < 0)
    {
        snprintf(message, size, "kappa is %g, it must not be negative", o->parameter[0]);
        return GMXFMM_ERROR_OPTION;
    }
    if (!(o->theta >= 0 && o->theta < 1))
    {
        snprintf(message, size, "theta is %g, it must be above 0 and below 1, or 0 for automatic", o->theta);
        return GMXFMM_ERROR_OPTION;
    }
    if (o->degree < 0 || o->degree > TREECODE_MAX_DEGREE)
    {
        snprintf(message, size, "degree is %d, allowed is 1 to %d, or 0 for automatic", o->degree, TREECODE_MAX_DEGREE);
        return GMXFMM_ERROR_OPTION;
    }
    if (o->leaf < 0)
    {
        snprintf(message, size, "leaf is %lld, it must be 1 or more, or 0 for automatic", (long long)o->leaf);
        return GMXFMM_ERROR_OPTION;
    }
    return GMXFMM_OK;
}

gmxfmm_status treecode_create(treecode** t, const treecode_options* options, char* message, size_t size)
{
    *t                   = NULL;
    gmxfmm_status status = check_options(options, message, size);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    treecode* made = calloc(1, sizeof(*made));
    if (made == NULL)
    {
        snprintf(message, size, "out of memory");
        return GMXFMM_ERROR_MEMORY;
    }
    made->options             = *options;
    made->level               = fmm_simd_level();
    made->info.measured_error = NAN;
    status                    = options->stages->create != NULL ? options->stages->create(made) : GMXFMM_OK;
    if (status != GMXFMM_OK)
    {
        snprintf(message, size, "%s", made->message);
        treecode_destroy(made);
        return status;
    }
    *t = made;
    return GMXFMM_OK;
}

void treecode_destroy(treecode* t)
{
    if (t != NULL)
    {
        treecode_free_assigned(t);
        if (t->options.stages->destroy != NULL)
        {
            t->options.stages->destroy(t);
        }
        free(t->q);
        free(t);
    }
}

gmxfmm_status treecode_set_charges(treecode* t, int64_t n, const double* q)
{
    if (n < 0)
    {
        return treecode_fail(t, GMXFMM_ERROR_OPTION, "number of particles is %lld, it must not be negative",
                             (long long)n);
    }
    int64_t bad = n;
#pragma omp parallel for num_threads(t->options.num_threads) reduction(min : bad)
    for (int64_t i = 0; i < n; i++)
    {
        bad = !isfinite(q[i]) && i < bad ? i : bad;
    }
    if (bad < n)
    {
        return treecode_fail(t, GMXFMM_ERROR_CHARGE, "charge of particle %lld is %g: not finite", (long long)bad,
                             q[bad]);
    }
    t->assigned                = t->assigned && t->has_charges && n == t->n;
    t->n                       = n;
    t->all                     = n;
    const gmxfmm_status status = t->options.stages->take_charges(t, q);
    t->has_charges             = status == GMXFMM_OK;
    return status;
}

/* The unit of length: with it no square over- or underflows, and as a power of two it rounds nothing. */
static gmxfmm_status choose_unit(treecode* t)
{
    double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY}, longest = 0;
    const gmxfmm_status status = t->options.stages->extent(t, low, high);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    for (int d = 0; d < 3 && low[d] <= high[d]; d++) /* there is something */
    {
        longest = fmax(longest, high[d] - low[d]);
    }
    if (longest > 0 && !fmm_in_range(longest))
    {
        return treecode_fail(t, GMXFMM_ERROR_POSITION, "the system is %g long: choose another unit of length", longest);
    }
    int exponent = 0;
    frexp(longest, &exponent);
    treecode_set_unit(t, ldexp(1, longest > 0 ? exponent : 0));
    return GMXFMM_OK;
}

int treecode_is_automatic(const treecode* t)
{
    const treecode_options* o = &t->options;
    return !(o->theta > 0 && o->degree > 0 && o->leaf > 0);
}

int treecode_measures(const treecode* t)
{
    return treecode_is_automatic(t) || (t->options.measures && !isfinite(t->info.measured_error));
}

/* Several ranks have chosen before, and measure behind an assign (ranks/choose.c). */
static gmxfmm_status choose_if_wanted(treecode* t)
{
    return t->options.ranks == NULL && treecode_measures(t) ? treecode_choose(t) : GMXFMM_OK;
}

/* Seconds since *begin, which becomes now. */
static double lap(double* begin)
{
    const double now = fmm_time(), seconds = now - *begin;
    *begin = now;
    return seconds;
}

static gmxfmm_status assign_in_stages(treecode* t)
{
    const treecode_stages* stages = t->options.stages;
    double                 begin  = fmm_time();
    gmxfmm_status          status = choose_unit(t);
    status                        = status == GMXFMM_OK ? choose_if_wanted(t) : status;
    t->info.time_choose           = lap(&begin);
    status                        = status == GMXFMM_OK ? stages->trees(t) : status;
    t->info.time_tree             = lap(&begin);
    status                        = status == GMXFMM_OK ? stages->lists(t) : status;
    status                        = status == GMXFMM_OK ? stages->reserve(t) : status;
    t->info.time_lists            = lap(&begin);
    return status;
}

void treecode_set_threads(treecode* t, int num_threads)
{
    treecode_free_assigned(t);
    t->options.num_threads = num_threads;
}

gmxfmm_status treecode_assign(treecode* t, const void* x, int64_t m, const double* y)
{
    if (!t->has_charges)
    {
        return treecode_fail(t, GMXFMM_ERROR_ORDER, "set_charges must come before assign");
    }
    treecode_free_assigned(t);
    t->separate                = y != NULL;
    t->num_targets             = y != NULL ? m : t->n;
    t->x                       = x;
    t->y                       = y;
    const gmxfmm_status status = assign_in_stages(t);
    t->x = t->y = NULL;
    t->assigned = status == GMXFMM_OK;
    return status;
}

gmxfmm_status treecode_execute(treecode* t, const void* x, treecode_output* output)
{
    if (!t->assigned)
    {
        return treecode_fail(t, GMXFMM_ERROR_ORDER,
                             "assign must come before execute, and after another number of particles");
    }
    const treecode_stages* stages = t->options.stages;
    double                 begin  = fmm_time();
    gmxfmm_status          status = stages->gather(t, x);
    status                        = status == GMXFMM_OK ? stages->charges(t) : status;
    status                        = status == GMXFMM_OK && stages->wait != NULL ? stages->wait(t) : status;
    t->info.time_charges          = lap(&begin);
    status = status == GMXFMM_OK ? stages->all_sums(t, output->field != NULL || output->force != NULL) : status;
    status = status == GMXFMM_OK && stages->wait != NULL ? stages->wait(t) : status;
    t->info.time_sums   = lap(&begin);
    status              = status == GMXFMM_OK ? stages->output(t, output) : status;
    t->info.time_output = lap(&begin);
    return status;
}

void treecode_get_info(const treecode* t, treecode_info* info)
{
    *info                 = t->info;
    info->theta           = t->options.theta;
    info->degree          = t->options.degree;
    info->leaf            = t->options.leaf;
    info->predicted_error = t->options.theta > 0 && t->options.degree > 0
                                ? treecode_predicted_error(t->options.theta, t->options.degree)
                                : NAN;
    info->num_clusters    = t->sources.num;
    info->num_levels      = t->sources.num_levels;
}
