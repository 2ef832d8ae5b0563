/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The stages of the treecode on the CPU. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/geometry/extent.h"
#include "fmm/math/portable.h"
#include "fmm/treecode/charges.h"
#include "fmm/treecode/state.h"

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
    const size_t edge   = (size_t)t->options.degree + 1;
    const size_t points = (size_t)(t->sources.num + t->num_points) * edge * edge * edge;
    const size_t num = (size_t)t->num_targets, single = treecode_sums_scratch_f(t), twice = treecode_sums_scratch_d(t);
    t->charge_bytes    = points * sizeof(double);
    t->scratch_bytes   = single > twice ? single : twice;         /* choose.c needs both */
    const size_t cubes = 3 * edge * edge * edge * sizeof(double); /* of treecode_charges and treecode_downward */
    t->scratch_bytes = ((cubes > t->scratch_bytes ? cubes : t->scratch_bytes) + FMM_ALIGN - 1) / FMM_ALIGN * FMM_ALIGN;
    free(t->scratch);
    t->scratch = aligned_alloc(FMM_ALIGN, (t->scratch_bytes + FMM_ALIGN) * (size_t)t->options.num_threads);
    if (t->scratch == NULL || !renew(&t->sorted_q, (size_t)(t->n + t->imported)) || !renew(&t->charge, points) ||
        (t->options.dual && !renew(&t->point, (size_t)treecode_targets(t)->num * edge * edge * edge)) ||
        !renew(&t->phi, num) || !renew(&t->slope[0], num) || !renew(&t->slope[1], num) || !renew(&t->slope[2], num))
    {
        return treecode_no_memory(t);
    }
    t->info.bytes = treecode_clusters_bytes(&t->sources) + treecode_clusters_bytes(&t->own_targets) +
                    treecode_lists_bytes(&t->lists) + treecode_lists_bytes(&t->point_lists) + t->charge_bytes +
                    t->scratch_bytes * (size_t)t->options.num_threads +
                    ((size_t)t->n * 2 + (size_t)t->imported + 4 * num) * sizeof(double);
    return GMXFMM_OK;
}

static gmxfmm_status cpu_gather(treecode* t, const void* from)
{
    const double* x        = from;
    const double  one_over = 1 / t->unit;
    int           bad = 0, uncharged = 0;
#pragma omp parallel for num_threads(t->options.num_threads) reduction(+ : bad) reduction(| : uncharged)
    for (int64_t s = 0; s < t->n; s++)
    {
        const int64_t i = t->sources.order[s];
        for (int d = 0; d < 3; d++)
        {
            bad += !isfinite(x[3 * i + d]);
            t->sources.x[d][s] = x[3 * i + d] * one_over;
        }
        t->sorted_q[s] = t->q[i];
        uncharged |= t->q[i] == 0;
    }
    t->uncharged = uncharged;
    if (bad > 0)
    {
        return treecode_fail(t, GMXFMM_ERROR_POSITION, "a position is not finite");
    }
    treecode_clusters_update(&t->sources, t->options.num_threads);
    return GMXFMM_OK;
}

static gmxfmm_status cpu_charges(treecode* t)
{
    treecode_charges(&t->sources, t->sorted_q, t->options.degree, t->charge, t->scratch,
                     t->scratch_bytes / sizeof(double), t->options.num_threads);
    return GMXFMM_OK;
}

/* Above this many times 1 / kappa between neighbours, exp(-kappa r) of many pairs is too small a number for single
 * precision (below e^-87), and what is larger is too little of the sums. */
static const double c_fewLengths = 20;

static int needs_double(const treecode* t)
{
    return t->options.kernel == treecode_yukawa && t->parameter[0] > c_fewLengths * cbrt((double)t->all);
}

static gmxfmm_status cpu_sums(treecode* t, const treecode_lists* lists, gmxfmm_precision precision, int with_field)
{
    precision == GMXFMM_DOUBLE || needs_double(t) ? treecode_sums_d(t, lists, with_field)
                                                  : treecode_sums_f(t, lists, with_field);
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
        treecode_downward(targets, t->options.degree, t->point, t->phi, with_field ? t->slope : NULL, t->scratch,
                          t->scratch_bytes / sizeof(double), t->options.num_threads);
    }
    return GMXFMM_OK;
}

static gmxfmm_status cpu_output(treecode* t, treecode_output* output)
{
    const treecode_clusters* targets = treecode_targets(t);
    const double             value = treecode_value_factor(t, 0), gradient = treecode_value_factor(t, 1);
    double *                 potential = output->potential, *field = output->field, *force = output->force, energy = 0;
    int64_t                  bad = -1; /* a target whose sums are not finite */
#pragma omp parallel for num_threads(t->options.num_threads) reduction(max : bad)
    for (int64_t s = 0; s < targets->n; s++)
    {
        const int64_t i = targets->order[s];
        bad             = isfinite(t->phi[s]) ? bad : s;
        if (potential != NULL)
        {
            potential[i] = t->phi[s] * value;
        }
        for (int d = 0; d < 3 && (field != NULL || force != NULL); d++)
        {
            const double one = t->slope[d][s] * gradient;
            bad              = isfinite(one) ? bad : s;
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
    return bad >= 0 ? treecode_coincident(t, bad) : GMXFMM_OK;
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
