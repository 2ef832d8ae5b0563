/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The treecode's row of the table of backends: arrays of the caller's type and in the caller's units. */
#include "fmm/treecode/backend.h"

#include <math.h>
#include <stdlib.h>

#include "fmm/clock.h"
#include "fmm/particles.h"
#include "fmm/state.h"
#include "fmm/status.h"
#include "fmm/treecode/state.h"
#include "fmm/treecode/treecode.h"

struct fmm_treecode
{
    treecode* sums;
    double*   x;                /* 3 n, positions of the caller's, where the sums want doubles */
    double*   result;           /* 7 targets: potential, field and force, likewise */
    size_t    bytes;            /* of these, and of the sums' */
    int64_t   measured_version; /* of the pairs that the measured error is of */
};

static gmxfmm_status check(int id, char* message, size_t size)
{
    (void)id;
    (void)message;
    (void)size;
    return GMXFMM_OK;
}

gmxfmm_status fmm_treecode_create(gmxfmm_plan* plan)
{
    const gmxfmm_options*  o       = &plan->options;
    const treecode_options options = {
        .kernel      = o->kernel == GMXFMM_YUKAWA ? treecode_yukawa : treecode_coulomb,
        .parameter   = {o->kappa},
        .accuracy    = o->accuracy,
        .theta       = o->theta > 0 ? o->theta : 0,
        .degree      = o->degree > 0 ? o->degree : 0,
        .leaf        = o->leaf > 0 ? o->leaf : 0,
        .dual        = o->traversal == GMXFMM_DUAL,
        .precision   = o->precision,
        .num_threads = plan->num_threads,
        .device_id   = o->device_id,
        .floats      = plan->backend->treecode->takes_any && o->array_type == GMXFMM_SINGLE,
        .prefactor   = o->prefactor,
        .measures    = plan->measures,
        .stages      = plan->backend->treecode,
        .ranks       = plan->ranks,
    };
    plan->treecode = calloc(1, sizeof(*plan->treecode));
    if (plan->treecode == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory");
    }
    return treecode_create(&plan->treecode->sums, &options, plan->message, sizeof(plan->message));
}

static void free_arrays(gmxfmm_plan* plan)
{
    struct fmm_treecode* t = plan->treecode;
    free(t->x);
    free(t->result);
    t->x = t->result = NULL;
    plan->bytes -= t->bytes;
    t->bytes = 0;
}

void fmm_treecode_destroy(gmxfmm_plan* plan)
{
    if (plan->treecode != NULL)
    {
        free_arrays(plan);
        treecode_destroy(plan->treecode->sums);
        free(plan->treecode);
        plan->treecode = NULL;
    }
}

treecode* fmm_treecode_sums(const gmxfmm_plan* plan)
{
    return plan->treecode->sums;
}

static gmxfmm_status failed(gmxfmm_plan* plan, gmxfmm_status status)
{
    return fmm_fail(plan, status, "%s", treecode_message(plan->treecode->sums));
}

gmxfmm_status fmm_treecode_set_charges(gmxfmm_plan* plan)
{
    const gmxfmm_status status = treecode_set_charges(plan->treecode->sums, plan->particles.n, plan->charges.q);
    return status == GMXFMM_OK ? GMXFMM_OK : failed(plan, status);
}

void fmm_treecode_measure_again(gmxfmm_plan* plan, double accuracy)
{
    const gmxfmm_options* o = &plan->options;
    treecode*             t = plan->treecode->sums;
    t->info.measured_error  = NAN;
    t->options.measures     = 1;
    if (accuracy > 0)
    {
        t->options.accuracy = accuracy;
        t->options.theta    = o->theta > 0 ? o->theta : 0;
        t->options.degree   = o->degree > 0 ? o->degree : 0;
        t->options.leaf     = o->leaf > 0 ? o->leaf : 0;
    }
}

int fmm_treecode_measures(const gmxfmm_plan* plan)
{
    return treecode_measures(plan->treecode->sums);
}

void fmm_treecode_was_measured(gmxfmm_plan* plan)
{
    plan->treecode->measured_version = plan->particles.pairs_version;
}

gmxfmm_status fmm_treecode_on_host(gmxfmm_plan* plan, const void** x, size_t num)
{
    (void)plan; /* it is there */
    (void)x;
    (void)num;
    return GMXFMM_OK;
}

/* Whether arrays have to be converted for the sums. */
static int converts(const gmxfmm_plan* plan)
{
    return !plan->backend->treecode->takes_any && plan->options.array_type == GMXFMM_SINGLE;
}

static const void* positions(const gmxfmm_plan* plan, const void* x)
{
    const int64_t num = 3 * plan->particles.n;
    double*       to  = plan->treecode->x;
    if (!converts(plan))
    {
        return x;
    }
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (int64_t i = 0; i < num; i++)
    {
        to[i] = (double)((const float*)x)[i];
    }
    return to;
}

gmxfmm_status fmm_treecode_assign(gmxfmm_plan* plan, const void* x)
{
    struct fmm_treecode* t       = plan->treecode;
    const int64_t        targets = plan->particles.num_targets > 0 ? plan->particles.num_targets : plan->particles.n;
    const size_t         xs      = converts(plan) ? 3 * (size_t)plan->particles.n : 0,
                 results         = converts(plan) ? 7 * (size_t)targets : 0;
    free_arrays(plan);
    t->x      = malloc((xs + 1) * sizeof(double));
    t->result = malloc((results + 1) * sizeof(double));
    if (t->x == NULL || t->result == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %lld particles", (long long)plan->particles.n);
    }
    treecode_set_threads(t->sums, plan->num_threads);
    const int           measures = fmm_treecode_measures(plan);
    const gmxfmm_status status   = treecode_assign(t->sums, positions(plan, x), plan->particles.num_targets,
                                                 plan->particles.num_targets > 0 ? plan->particles.target_x : NULL);
    if (status != GMXFMM_OK)
    {
        return failed(plan, status);
    }
    if (measures)
    {
        fmm_treecode_was_measured(plan);
    }
    treecode_info info;
    treecode_get_info(t->sums, &info);
    t->bytes = info.bytes + (xs + results) * sizeof(double);
    plan->bytes += t->bytes;
    return GMXFMM_OK;
}

static void to_floats(int64_t num, const double* from, float* to, int num_threads)
{
    if (to == NULL)
    {
        return;
    }
#pragma omp parallel for schedule(static) num_threads(num_threads)
    for (int64_t i = 0; i < num; i++)
    {
        to[i] = (float)from[i];
    }
}

gmxfmm_status fmm_treecode_execute(gmxfmm_plan* plan, const void* x, gmxfmm_output* output)
{
    struct fmm_treecode* t       = plan->treecode;
    const int64_t        targets = plan->particles.num_targets > 0 ? plan->particles.num_targets : plan->particles.n;
    treecode_output      out     = {output->potential, output->field, output->want_energy, 0, output->force};
    if (output->want_virial)
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED,
                        "the treecode has no virial: leave it out, or use method = fmm");
    }
    if (converts(plan))
    {
        out.potential = out.potential != NULL ? t->result : NULL;
        out.field     = out.field != NULL ? t->result + targets : NULL;
        out.force     = out.force != NULL ? t->result + 4 * targets : NULL;
    }
    const gmxfmm_status status = treecode_execute(t->sums, positions(plan, x), &out);
    if (status != GMXFMM_OK)
    {
        return failed(plan, status);
    }
    const double begin = fmm_time();
    if (converts(plan))
    {
        to_floats(targets, out.potential, output->potential, plan->num_threads);
        to_floats(3 * targets, out.field, output->field, plan->num_threads);
        to_floats(3 * targets, out.force, output->force, plan->num_threads);
    }
    output->energy_near = 0;
    output->energy_far  = out.energy;
    treecode_info info;
    treecode_get_info(t->sums, &info);
    plan->info.time_charges += info.time_charges;
    plan->info.time_sums += info.time_sums;
    plan->info.time_output += info.time_output + fmm_time() - begin;
    return GMXFMM_OK;
}

void fmm_treecode_get_info(const gmxfmm_plan* plan, gmxfmm_info* info)
{
    treecode_info own;
    treecode_get_info(plan->treecode->sums, &own);
    info->theta            = own.theta;
    info->degree           = own.degree;
    info->leaf             = (int)own.leaf;
    info->num_clusters     = own.num_clusters;
    info->pairs_per_target = own.pairs_per_target;
    info->predicted_error  = own.predicted_error;
    if (plan->treecode->measured_version == plan->particles.pairs_version)
    {
        info->measured_error = own.measured_error;
    }
}

static unsigned capabilities(const gmxfmm_plan* plan)
{
    (void)plan;
    return GMXFMM_CAN_TARGETS;
}

#define NEEDS_CUDA "steps on a stream need a plan with device = cuda"

extern const fmm_backend fmm_backend_treecode_ranks; /* ranks/backend.c */
extern const fmm_backend fmm_backend_treecode;
const fmm_backend        fmm_backend_treecode = {
           .method     = GMXFMM_TREECODE,
           .device     = GMXFMM_CPU,
           .precisions = 1U << GMXFMM_SINGLE | 1U << GMXFMM_DOUBLE,
           .treecode   = &treecode_on_cpu,

           .no_exclusions      = "the treecode excludes no pairs: use method = fmm",
           .no_enqueue         = NEEDS_CUDA,
           .no_enqueue_assign  = NEEDS_CUDA,
           .no_enqueue_charges = NEEDS_CUDA,
           .no_time_stages     = NEEDS_CUDA,

           .capabilities  = capabilities,
           .check         = check,
           .create        = fmm_treecode_create,
           .destroy       = fmm_treecode_destroy,
           .set_charges   = fmm_treecode_set_charges,
           .set_targets   = fmm_particles_keep_targets,
           .on_host       = fmm_treecode_on_host,
           .assign        = fmm_treecode_assign,
           .execute       = fmm_treecode_execute,
           .measure_again = fmm_treecode_measure_again,
           .get_info      = fmm_treecode_get_info,

           .on_ranks = &fmm_backend_treecode_ranks,
};
