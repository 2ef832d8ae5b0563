/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fmm/treecode/treecode.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/geometry/extent.h"
#include "fmm/simd_level.h"
#include "fmm/treecode/charges.h"
#include "fmm/treecode/chebyshev.h"
#include "fmm/state.h"
#include "fmm/math/portable.h"
#include "fmm/clock.h"
#include "fmm/treecode/state.h"

/* Powers of a length in the kernels' table. */
#define POWERS_ROW(name, value, first, second, third) {value, {first, second, third}},
static const struct
{
    int value, parameter[TREECODE_PARAMETERS];
} c_powers[TREECODE_NUM_KERNELS] = {TREECODE_KERNELS(POWERS_ROW)};

gmxfmm_status treecode_fail(treecode* t, gmxfmm_status status, const char* format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(t->message, sizeof(t->message), format, arguments);
    va_end(arguments);
    return status;
}

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

/* What depends on where particles are. */
static void free_assigned(treecode* t)
{
    treecode_clusters_free(&t->sources);
    treecode_clusters_free(&t->own_targets);
    treecode_lists_free(&t->lists);
    treecode_lists_free(&t->point_lists);
    free(t->sorted_q);
    free(t->charge);
    free(t->point);
    free(t->phi);
    free(t->scratch);
    for (int d = 0; d < 3; d++)
    {
        free(t->slope[d]);
        t->slope[d] = NULL;
    }
    t->sorted_q = t->charge = t->point = t->phi = NULL;
    t->scratch                                  = NULL;
    t->assigned                                 = 0;
}

void treecode_destroy(treecode* t)
{
    if (t != NULL)
    {
        free_assigned(t);
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
    const gmxfmm_status status = t->options.stages->take_charges(t, q);
    t->has_charges             = status == GMXFMM_OK;
    return status;
}

gmxfmm_status treecode_not_finite(treecode* t, const char* what, int64_t which)
{
    return treecode_fail(t, GMXFMM_ERROR_POSITION, "the position of %s %lld is not finite", what, (long long)which);
}

gmxfmm_status treecode_coincident(treecode* t)
{
    return treecode_fail(t, GMXFMM_ERROR_COINCIDENT,
                         "two particles are at one place, or so near that 1/r is not finite%s",
                         t->options.precision == GMXFMM_SINGLE ? " in single precision" : "");
}

gmxfmm_status treecode_no_memory(treecode* t)
{
    free_assigned(t);
    return treecode_fail(t, GMXFMM_ERROR_MEMORY, "out of memory for %lld particles", (long long)t->n);
}

treecode_criterion treecode_criterion_of(const treecode* t)
{
    const treecode_criterion c = {treecode_targets(t), &t->sources, t->options.theta, t->options.degree,
                                  t->options.num_threads};
    return c;
}

double treecode_value_factor(const treecode* t, int field)
{
    const double unit = pow(t->unit, c_powers[t->options.kernel].value);
    return t->options.prefactor * (field ? unit / t->unit : unit);
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
    for (int d = 0; d < 3 && t->n + t->num_targets > 0; d++)
    {
        longest = fmax(longest, high[d] - low[d]);
    }
    if (longest > 0 && !fmm_in_range(longest))
    {
        return treecode_fail(t, GMXFMM_ERROR_POSITION, "the system is %g long: choose another unit of length", longest);
    }
    int exponent = 0;
    frexp(longest, &exponent);
    t->unit = ldexp(1, longest > 0 ? exponent : 0);
    for (int i = 0; i < TREECODE_PARAMETERS; i++)
    {
        t->parameter[i] = t->options.parameter[i] * pow(t->unit, c_powers[t->options.kernel].parameter[i]);
    }
    return GMXFMM_OK;
}

static gmxfmm_status choose_if_automatic(treecode* t)
{
    const treecode_options* o = &t->options;
    return o->theta > 0 && o->degree > 0 && o->leaf > 0 ? GMXFMM_OK : treecode_choose(t);
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
    status                        = status == GMXFMM_OK ? choose_if_automatic(t) : status;
    t->info.time_choose           = lap(&begin);
    status                        = status == GMXFMM_OK ? stages->trees(t) : status;
    t->info.time_tree             = lap(&begin);
    status                        = status == GMXFMM_OK ? stages->lists(t) : status;
    status                        = status == GMXFMM_OK ? stages->reserve(t) : status;
    t->info.time_lists            = lap(&begin);
    return status;
}

gmxfmm_status treecode_assign(treecode* t, const void* x, int64_t m, const double* y)
{
    if (!t->has_charges)
    {
        return treecode_fail(t, GMXFMM_ERROR_ORDER, "set_charges must come before assign");
    }
    free_assigned(t);
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

/* ----------------------------------------------------------------------------------------------- stages on the CPU */

static gmxfmm_status cpu_take_charges(treecode* t, const double* q)
{
    double* memory = malloc(((size_t)t->n + 1) * sizeof(double));
    if (memory == NULL)
    {
        return treecode_fail(t, GMXFMM_ERROR_MEMORY, "out of memory for %lld particles", (long long)t->n);
    }
    free(t->q);
    t->q = memory;
    memcpy(t->q, q, (size_t)t->n * sizeof(double));
    return GMXFMM_OK;
}

static gmxfmm_status cpu_extent(treecode* t, double low[3], double high[3])
{
    const int threads = t->options.num_threads;
    int64_t   bad     = fmm_widen_extent(t->x, GMXFMM_DOUBLE, t->n, threads, low, high);
    if (bad >= 0)
    {
        return treecode_not_finite(t, "particle", bad);
    }
    bad = t->separate ? fmm_widen_extent(t->y, GMXFMM_DOUBLE, t->num_targets, threads, low, high) : -1;
    return bad >= 0 ? treecode_not_finite(t, "target", bad) : GMXFMM_OK;
}

/* The tree over places in the caller's unit. 0 or -1. */
static int build_tree(const treecode* t, treecode_clusters* clusters, int64_t n, const double* x)
{
    double* scaled = malloc((3 * (size_t)n + 1) * sizeof(double));
    if (scaled == NULL)
    {
        return -1;
    }
#pragma omp parallel for num_threads(t->options.num_threads)
    for (int64_t i = 0; i < 3 * n; i++)
    {
        scaled[i] = x[i] / t->unit;
    }
    const int made = treecode_clusters_build(clusters, n, scaled, t->options.leaf, t->options.num_threads) == 0;
    free(scaled);
    return made ? 0 : -1;
}

static gmxfmm_status cpu_trees(treecode* t)
{
    const int failed =
        build_tree(t, &t->sources, t->n, t->x) || (t->separate && build_tree(t, &t->own_targets, t->num_targets, t->y));
    return failed ? treecode_no_memory(t) : GMXFMM_OK;
}

static gmxfmm_status cpu_lists(treecode* t)
{
    const treecode_criterion c = treecode_criterion_of(t);
    const int                failed =
        t->options.dual ? treecode_dual_build(&t->lists, &t->point_lists, &c) : treecode_lists_build(&t->lists, &c);
    t->info.num_batches = t->lists.num;
    t->info.pairs_per_target =
        t->num_targets > 0 ? (t->lists.pairs + t->point_lists.pairs) / (double)t->num_targets : 0;
    return failed ? treecode_no_memory(t) : GMXFMM_OK;
}

/* *array gets room for num numbers, contents lost; 0 if there is none. */
static int renew(double** array, size_t num)
{
    free(*array);
    *array = malloc((num + 1) * sizeof(double));
    return *array != NULL;
}

static gmxfmm_status cpu_reserve(treecode* t)
{
    const size_t edge = (size_t)t->options.degree + 1, points = (size_t)t->sources.num * edge * edge * edge;
    const size_t num = (size_t)t->num_targets, single = treecode_sums_scratch_f(t), twice = treecode_sums_scratch_d(t);
    t->charge_bytes  = points * sizeof(double);
    t->scratch_bytes = single > twice ? single : twice; /* choose.c needs both */
    free(t->scratch);
    t->scratch = aligned_alloc(FMM_ALIGN, (t->scratch_bytes + FMM_ALIGN) * (size_t)t->options.num_threads);
    if (t->scratch == NULL || !renew(&t->sorted_q, (size_t)t->n) || !renew(&t->charge, points) ||
        (t->options.dual && !renew(&t->point, (size_t)treecode_targets(t)->num * edge * edge * edge)) ||
        !renew(&t->phi, num) || !renew(&t->slope[0], num) || !renew(&t->slope[1], num) || !renew(&t->slope[2], num))
    {
        return treecode_no_memory(t);
    }
    t->info.bytes = treecode_clusters_bytes(&t->sources) + treecode_clusters_bytes(&t->own_targets) +
                    treecode_lists_bytes(&t->lists) + treecode_lists_bytes(&t->point_lists) + t->charge_bytes +
                    t->scratch_bytes * (size_t)t->options.num_threads + ((size_t)t->n * 2 + 4 * num) * sizeof(double);
    return GMXFMM_OK;
}

static gmxfmm_status cpu_gather(treecode* t, const void* from)
{
    const double* x        = from;
    const double  one_over = 1 / t->unit;
    int           bad      = 0;
#pragma omp parallel for num_threads(t->options.num_threads) reduction(+ : bad)
    for (int64_t s = 0; s < t->n; s++)
    {
        const int64_t i = t->sources.order[s];
        for (int d = 0; d < 3; d++)
        {
            bad += !isfinite(x[3 * i + d]);
            t->sources.x[d][s] = x[3 * i + d] * one_over;
        }
        t->sorted_q[s] = t->q[i];
    }
    if (bad > 0)
    {
        return treecode_fail(t, GMXFMM_ERROR_POSITION, "a position is not finite");
    }
    treecode_clusters_update(&t->sources, t->options.num_threads);
    return GMXFMM_OK;
}

static gmxfmm_status cpu_charges(treecode* t)
{
    treecode_charges(&t->sources, t->sorted_q, t->options.degree, t->charge, t->options.num_threads);
    return GMXFMM_OK;
}

static gmxfmm_status cpu_sums(treecode* t, const treecode_lists* lists, gmxfmm_precision precision, int with_field)
{
    precision == GMXFMM_DOUBLE ? treecode_sums_d(t, lists, with_field) : treecode_sums_f(t, lists, with_field);
    return GMXFMM_OK;
}

static gmxfmm_status cpu_all_sums(treecode* t, int with_field)
{
    const treecode_clusters* targets = treecode_targets(t);
    const size_t             edge    = (size_t)t->options.degree + 1;
    cpu_sums(t, &t->lists, t->options.precision, with_field);
    if (t->options.dual)
    {
        memset(t->point, 0, (size_t)targets->num * edge * edge * edge * sizeof(double));
        cpu_sums(t, &t->point_lists, t->options.precision, 0);
        treecode_downward(targets, t->options.degree, t->point, t->phi, with_field ? t->slope : NULL,
                          t->options.num_threads);
    }
    return GMXFMM_OK;
}

static gmxfmm_status cpu_output(treecode* t, treecode_output* output)
{
    const treecode_clusters* targets = treecode_targets(t);
    const double             value = treecode_value_factor(t, 0), gradient = treecode_value_factor(t, 1);
    double *                 potential = output->potential, *field = output->field, *force = output->force, energy = 0;
    int64_t                  bad = 0;
#pragma omp parallel for num_threads(t->options.num_threads) reduction(+ : bad)
    for (int64_t s = 0; s < targets->n; s++)
    {
        const int64_t i = targets->order[s];
        bad += !isfinite(t->phi[s]);
        if (potential != NULL)
        {
            potential[i] = t->phi[s] * value;
        }
        for (int d = 0; d < 3 && (field != NULL || force != NULL); d++)
        {
            const double one = t->slope[d][s] * gradient;
            bad += !isfinite(one);
            if (field != NULL)
            {
                field[3 * i + d] = one;
            }
            if (force != NULL)
            {
                force[3 * i + d] = one * t->q[i];
            }
        }
    }
    for (int64_t s = 0; s < targets->n && output->want_energy && !t->separate; s++)
    {
        energy += t->sorted_q[s] * t->phi[s];
    }
    output->energy = 0.5 * energy * value;
    return bad > 0 ? treecode_coincident(t) : GMXFMM_OK;
}

const treecode_stages treecode_on_cpu = {
    .take_charges = cpu_take_charges,
    .extent       = cpu_extent,
    .trees        = cpu_trees,
    .lists        = cpu_lists,
    .reserve      = cpu_reserve,
    .gather       = cpu_gather,
    .charges      = cpu_charges,
    .all_sums     = cpu_all_sums,
    .output       = cpu_output,
    .sums         = cpu_sums,
};
