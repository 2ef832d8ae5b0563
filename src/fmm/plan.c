/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fmm/plan.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/backend.h"
#include "fmm/simd_level.h"
#include "fmm/fit.h"
#include "fmm/math/threads.h"
#include "fmm/options.h"
#include "fmm/measure/measure.h"

/* Everything that belongs to the charges. */
static void free_charges(gmxfmm_plan* plan)
{
    free(plan->charge);
    plan->bytes -= plan->charge_bytes;
    plan->charge       = NULL;
    plan->charge_bytes = 0;
    plan->num_charges  = 0;
    plan->assigned     = 0;
}

static void free_targets(gmxfmm_plan* plan)
{
    free(plan->target_x);
    plan->bytes -= plan->target_bytes;
    plan->target_x     = NULL;
    plan->target_bytes = 0;
    plan->num_targets  = 0;
    plan->assigned     = 0;
}

void gmxfmm_destroy(gmxfmm_plan* plan)
{
    if (plan != NULL)
    {
        free_charges(plan);
        free_targets(plan);
        fmm_free_exclusions(plan);
        fmm_free_grid(plan);
        fmm_tree_free(plan);
        plan->backend->destroy(plan);
        fmm_cells_free(&plan->cells);
        fmm_cells_free(&plan->root_cells);
        free(plan->cache_dir);
        free(plan);
    }
}

static double row_length(const double* row)
{
    return sqrt(row[0] * row[0] + row[1] * row[1] + row[2] * row[2]);
}

static gmxfmm_status check_box(const double* box, char* message, size_t size)
{
    double longest = 0;
    for (int i = 0; i < 9; i++)
    {
        if (!isfinite(box[i]))
        {
            snprintf(message, size, "box element %d is %g: not finite", i, box[i]);
            return GMXFMM_ERROR_BOX;
        }
        longest = fmax(longest, fabs(box[i]));
    }
    if (longest > 0 && !fmm_in_range(longest))
    {
        snprintf(message, size, "the box is %g long: choose another unit of length", longest);
        return GMXFMM_ERROR_BOX;
    }
    const double det = fmm_determinant(box);
    if (!(det > 1e-9 * row_length(box) * row_length(box + 3) * row_length(box + 6)))
    {
        snprintf(message, size, "box (%g %g %g) (%g %g %g) (%g %g %g) has volume %g: it must be positive", box[0],
                 box[1], box[2], box[3], box[4], box[5], box[6], box[7], box[8], det);
        return GMXFMM_ERROR_BOX;
    }
    return GMXFMM_OK;
}

gmxfmm_status gmxfmm_create(gmxfmm_plan**         plan,
                            const gmxfmm_options* asked,
                            int64_t               num_particles,
                            const double*         box,
                            char*                 message,
                            size_t                message_size)
{
    return fmm_create_knowing(plan, asked, num_particles, box, NULL, message, message_size);
}

gmxfmm_status fmm_create_knowing(gmxfmm_plan**            plan,
                                 const gmxfmm_options*    asked,
                                 int64_t                  num_particles,
                                 const double*            box,
                                 struct fmm_known_errors* known,
                                 char*                    message,
                                 size_t                   message_size)
{
    char  unread[256];
    char* text = message != NULL && message_size > 0 ? message : unread;
    if (text == unread)
    {
        message_size = sizeof(unread);
    }
    text[0] = '\0';
    if (plan == NULL || asked == NULL)
    {
        snprintf(text, message_size, "plan and options must not be NULL");
        return GMXFMM_ERROR_NULL;
    }
    *plan = NULL;
    gmxfmm_options        own;
    const gmxfmm_options* options = &own;
    gmxfmm_status         status  = fmm_take_options(&own, asked, text, message_size);
    status                        = status == GMXFMM_OK ? fmm_check_options(options, text, message_size) : status;
    if (status == GMXFMM_OK && num_particles < 0)
    {
        snprintf(text, message_size, "number of particles is %lld, it must not be negative", (long long)num_particles);
        status = GMXFMM_ERROR_OPTION;
    }
    if (status == GMXFMM_OK && box == NULL && options->boundary != GMXFMM_OPEN)
    {
        snprintf(text, message_size, "a periodic system needs a box");
        status = GMXFMM_ERROR_NULL;
    }
    if (status == GMXFMM_OK && options->boundary != GMXFMM_OPEN)
    {
        status = check_box(box, text, message_size);
    }
    if (status != GMXFMM_OK)
    {
        return status;
    }
    gmxfmm_plan* p = calloc(1, sizeof(*p));
    if (p == NULL)
    {
        snprintf(text, message_size, "out of memory");
        return GMXFMM_ERROR_MEMORY;
    }
    p->options           = *options;
    p->backend           = fmm_find_backend(options->method, options->device, options->precision, options->m2l);
    p->level             = fmm_simd_level();
    p->bytes             = sizeof(*p);
    p->convolved         = &p->cells;
    p->periodic          = options->boundary != GMXFMM_OPEN;
    p->expected          = num_particles;
    p->known_errors      = known;
    p->m2l               = options->m2l == GMXFMM_M2L_AUTO ? GMXFMM_M2L_FFT : options->m2l;
    p->num_threads       = options->num_threads > 0 ? options->num_threads : omp_get_max_threads();
    p->options.cache_dir = NULL;
    if (options->cache_dir != NULL)
    {
        p->options.cache_dir = p->cache_dir = strdup(options->cache_dir);
        status = p->cache_dir != NULL ? GMXFMM_OK : fmm_fail(p, GMXFMM_ERROR_MEMORY, "out of memory");
    }
    status = status == GMXFMM_OK ? p->backend->create(p) : status;
    if (status == GMXFMM_OK && p->m2l != GMXFMM_M2L_FFT)
    {
        status = fmm_add_tree(p);
    }
    if (p->periodic && status == GMXFMM_OK)
    {
        memcpy(p->box, box, sizeof(p->box));
        status = fmm_choose_periodic(p);
        status = status == GMXFMM_OK ? fmm_update_geometry(p) : status;
    }
    if (status != GMXFMM_OK)
    {
        snprintf(text, message_size, "%s", p->message);
        gmxfmm_destroy(p);
        return status;
    }
    *plan = p;
    return GMXFMM_OK;
}

gmxfmm_status gmxfmm_set_box(gmxfmm_plan* plan, const double* box)
{
    if (plan == NULL || box == NULL)
    {
        return plan == NULL ? GMXFMM_ERROR_NULL : fmm_fail(plan, GMXFMM_ERROR_NULL, "box is NULL");
    }
    gmxfmm_status status = check_box(box, plan->message, sizeof(plan->message));
    if (status == GMXFMM_OK && plan->tree != NULL && plan->periodic)
    {
        status = fmm_tree_check_box(plan, box);
    }
    if (status == GMXFMM_OK && plan->periodic && memcmp(plan->box, box, sizeof(plan->box)) != 0)
    {
        memcpy(plan->box, box, sizeof(plan->box));
        plan->graph_version++;
        plan->geometry_valid = 0; /* for the next assign, which may choose another near set */
        plan->near_valid     = 0;
        if (plan->assigned)
        {
            double before[9], change = 0;
            memcpy(before, plan->cells.cell, sizeof(before));
            fmm_cells_deform(&plan->cells, box);
            if (plan->convolved != &plan->cells)
            {
                fmm_cells_deform(&plan->root_cells, box);
            }
            for (int i = 0; i < 9; i++)
            {
                change = fmax(change, fabs(plan->cells.cell[i] - before[i]) / plan->cells.lambda);
            }
            /* other vectors of the same lattice, say: particles and near vectors no longer belong to these cells */
            plan->assigned = change < 0.2;
            return fmm_shape_changed(plan);
        }
    }
    return status;
}

enum
{
    c_chargeParts = 256
};

static double get_charge(const void* q, gmxfmm_precision type, int64_t i)
{
    return type == GMXFMM_DOUBLE ? ((const double*)q)[i] : (double)((const float*)q)[i];
}

/* The sum is that of parts which do not depend on the number of threads, so that it has the same bits with any. */
static void take_charges(gmxfmm_plan* plan, int64_t n, const void* q)
{
    double sum[c_chargeParts];
#pragma omp parallel for schedule(static) num_threads(plan->num_threads) if (n > FMM_FEW_PARTICLES)
    for (int part = 0; part < c_chargeParts; part++)
    {
        sum[part] = 0;
        for (int64_t i = n * part / c_chargeParts; i < n * (part + 1) / c_chargeParts; i++)
        {
            plan->charge[i] = get_charge(q, plan->options.array_type, i);
            sum[part] += plan->charge[i];
        }
    }
    plan->total_charge = 0;
    for (int part = 0; part < c_chargeParts; part++)
    {
        plan->total_charge += sum[part];
    }
}

gmxfmm_status gmxfmm_set_charges(gmxfmm_plan* plan, int64_t n, const void* q)
{
    if (plan == NULL || (q == NULL && n > 0))
    {
        return plan == NULL ? GMXFMM_ERROR_NULL : fmm_fail(plan, GMXFMM_ERROR_NULL, "charges are NULL");
    }
    if (n < 0 || n > INT32_MAX / 4)
    {
        return fmm_fail(plan, GMXFMM_ERROR_OPTION, "number of particles is %lld, allowed is 0 to %d", (long long)n,
                        INT32_MAX / 4);
    }
    plan->graph_version++;
    gmxfmm_status status = plan->backend->on_host(plan, &q, (size_t)n);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    const gmxfmm_precision type = plan->options.array_type;
    int64_t                bad  = n; /* first charge that is not finite */
#pragma omp parallel for schedule(static) num_threads(plan->num_threads) reduction(min : bad) if (n > FMM_FEW_PARTICLES)
    for (int64_t i = 0; i < n; i++)
    {
        bad = !isfinite(get_charge(q, type, i)) && i < bad ? i : bad;
    }
    if (bad < n)
    {
        return fmm_fail(plan, GMXFMM_ERROR_CHARGE, "charge of particle %lld is %g: not finite", (long long)bad,
                        get_charge(q, type, bad));
    }
    if (n != plan->num_charges || plan->charge == NULL)
    {
        free_charges(plan);
        fmm_free_exclusions(plan);
        plan->near_particles = 0;
        const size_t before  = plan->bytes;
        plan->charge         = fmm_alloc(plan, (size_t)n * sizeof(double));
        plan->charge_bytes   = plan->bytes - before;
        if (plan->charge == NULL)
        {
            free_charges(plan);
            return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %lld particles", (long long)n);
        }
        plan->num_charges = n;
    }
    take_charges(plan, n, q);
    status         = plan->backend->set_charges(plan);
    const int none = !plan->exclusions_set && plan->backend->set_exclusions != NULL;
    if (status != GMXFMM_OK)
    {
        free_charges(plan);
        return status;
    }
    return none ? gmxfmm_set_exclusions(plan, NULL, NULL) : GMXFMM_OK;
}

gmxfmm_status gmxfmm_set_targets(gmxfmm_plan* plan, int64_t n, const void* x)
{
    if (plan == NULL || (x == NULL && n > 0))
    {
        return plan == NULL ? GMXFMM_ERROR_NULL : fmm_fail(plan, GMXFMM_ERROR_NULL, "positions are NULL");
    }
    if (n < 0 || n > INT32_MAX / 4)
    {
        return fmm_fail(plan, GMXFMM_ERROR_OPTION, "number of targets is %lld, allowed is 0 to %d", (long long)n,
                        INT32_MAX / 4);
    }
    plan->assigned = 0;
    plan->graph_version++;
    if (n != plan->num_targets)
    {
        free_targets(plan);
        plan->num_targets = n;
    }
    const gmxfmm_status status = plan->backend->set_targets(plan, x);
    if (status != GMXFMM_OK)
    {
        free_targets(plan);
    }
    return status;
}

gmxfmm_status gmxfmm_set_targets(gmxfmm_plan* plan, int64_t n, const void* x)
{
    return gmxfmm_set_targets(plan, n, x);
}

gmxfmm_status gmxfmm_assign(gmxfmm_plan* plan, const void* x)
{
    const double begin = fmm_time();
    if (plan == NULL || (x == NULL && plan->num_charges > 0))
    {
        return plan == NULL ? GMXFMM_ERROR_NULL : fmm_fail(plan, GMXFMM_ERROR_NULL, "positions are NULL");
    }
    if (plan->charge == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_ORDER, "set_charges must come before assign");
    }
    if (plan->num_targets > 0 && plan->excl_start != NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_OPTION, "exclusions are of no use with targets: set one or the other");
    }
    plan->graph_version++;
    gmxfmm_status status = fmm_fit_particles(plan, &x);
    status               = status == GMXFMM_OK ? plan->backend->assign(plan, x) : status;
    plan->assigned       = status == GMXFMM_OK;
    plan->info.time_assign += fmm_time() - begin;
    return status;
}

static gmxfmm_status not_assigned(gmxfmm_plan* plan)
{
    return fmm_fail(plan, GMXFMM_ERROR_ORDER,
                    "assign must come before execute, and after another number of particles, new exclusions or a "
                    "box of quite another shape");
}

gmxfmm_status gmxfmm_enqueue_box(gmxfmm_plan* plan, const double* box, void* stream)
{
    const int64_t version       = plan != NULL ? plan->graph_version : 0;
    int           graphs_follow = 0;
    gmxfmm_status status        = gmxfmm_set_box(plan, box);
    if (status == GMXFMM_OK && plan->assigned && plan->backend->enqueue_box != NULL)
    {
        status              = plan->backend->enqueue_box(plan, stream, &graphs_follow);
        plan->graph_version = graphs_follow ? version : plan->graph_version;
    }
    return status;
}

static gmxfmm_status not_enqueued(gmxfmm_plan* plan, const char* instead)
{
    return plan->options.device == GMXFMM_CUDA
               ? fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED,
                          "the treecode takes no new positions for its clusters on a stream: call gmxfmm_%s", instead)
               : fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED, "steps on a stream need a plan with device = cuda");
}

gmxfmm_status gmxfmm_enqueue_assign(gmxfmm_plan* plan, const void* x, void* stream)
{
    if (plan == NULL || (x == NULL && plan->num_charges > 0))
    {
        return plan == NULL ? GMXFMM_ERROR_NULL : fmm_fail(plan, GMXFMM_ERROR_NULL, "positions are NULL");
    }
    if (plan->backend->enqueue_assign == NULL)
    {
        return not_enqueued(plan, "assign");
    }
    if (!fmm_enqueues_assign(plan))
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED, "enqueue_assign does not take %s: call gmxfmm_assign",
                        plan->num_targets > 0 ? "targets"
                        : plan->periodic      ? "the cells of an octree"
                                              : "an open system");
    }
    if (!plan->assigned)
    {
        return fmm_fail(plan, GMXFMM_ERROR_ORDER,
                        "gmxfmm_assign must come before enqueue_assign, and after another number of particles, new "
                        "exclusions or a box of quite another shape");
    }
    if (!plan->geometry_valid && !plan->near_valid)
    {
        if (!fmm_cells_keep_near(&plan->cells, plan->separation))
        {
            return fmm_fail(plan, GMXFMM_ERROR_ORDER,
                            "other cells are near each other in the box as it is now: call gmxfmm_assign");
        }
        plan->near_valid = 1;
    }
    return plan->backend->enqueue_assign(plan, x, stream);
}

static gmxfmm_status check_wanted(gmxfmm_plan* plan, const void* force, int energy, int virial)
{
    if (plan->num_targets > 0 && (force != NULL || energy || virial))
    {
        return fmm_fail(plan, GMXFMM_ERROR_OPTION,
                        "with targets there are a potential and a field, no forces, energies or virial of the charges");
    }
    return GMXFMM_OK;
}

gmxfmm_status gmxfmm_execute(gmxfmm_plan* plan, const void* x, gmxfmm_output* output)
{
    if (plan == NULL || output == NULL || (x == NULL && plan->num_charges > 0))
    {
        return plan == NULL ? GMXFMM_ERROR_NULL
                            : fmm_fail(plan, GMXFMM_ERROR_NULL, "%s is NULL", output == NULL ? "output" : "x");
    }
    if (!plan->assigned)
    {
        return not_assigned(plan);
    }
    const gmxfmm_status status = check_wanted(plan, output->force, output->want_energy, output->want_virial);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    plan->info.num_executes++;
    return plan->backend->execute(plan, x, output);
}

int fmm_can_time_steps(const gmxfmm_plan* plan)
{
    return plan->backend->time_steps != NULL;
}

gmxfmm_status fmm_time_steps(gmxfmm_plan* plan, const void* x, int num, double* seconds)
{
    return plan->backend->time_steps(plan, x, num, seconds);
}

gmxfmm_status gmxfmm_enqueue(gmxfmm_plan* plan, const void* x, const gmxfmm_device_output* output, void* stream)
{
    if (plan == NULL || output == NULL || (x == NULL && plan->num_charges > 0))
    {
        return plan == NULL ? GMXFMM_ERROR_NULL
                            : fmm_fail(plan, GMXFMM_ERROR_NULL, "%s is NULL", output == NULL ? "output" : "x");
    }
    if (plan->backend->enqueue == NULL)
    {
        return not_enqueued(plan, "execute");
    }
    if (!plan->assigned)
    {
        return not_assigned(plan);
    }
    const gmxfmm_status status = check_wanted(plan, output->force, output->energy != NULL, output->virial != NULL);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    plan->info.num_executes++;
    return plan->backend->enqueue(plan, x, output, stream);
}

gmxfmm_status gmxfmm_get_info(const gmxfmm_plan* plan, gmxfmm_info* info)
{
    if (plan == NULL || info == NULL)
    {
        return GMXFMM_ERROR_NULL;
    }
    *info                = plan->info;
    info->num_particles  = plan->num_charges;
    info->m2l            = plan->m2l;
    info->precision      = plan->options.precision;
    info->simd           = plan->options.device == GMXFMM_CPU ? fmm_simd_level_name(plan->level) : "";
    info->order          = plan->order;
    info->depth          = plan->tree != NULL ? plan->tree->depth : -1;
    info->num_cells      = plan->num_cells;
    info->separation     = plan->separation;
    info->num_near_cells = plan->cells.num_near;
    info->num_threads    = plan->num_threads;
    info->bytes          = plan->bytes;
    double used          = plan->tree != NULL && plan->assigned ? plan->num_cells : 1;
    for (int d = 0; d < 3; d++)
    {
        info->grid[d] = plan->inner[d];
        used *= plan->tree != NULL && plan->assigned ? 1 : plan->inner[d];
    }
    const int64_t n       = plan->charge != NULL ? plan->num_charges : plan->expected;
    const double  near    = used > 0 ? (double)n / used * plan->cells.num_near : 0;
    info->near_particles  = plan->near_particles > 0 ? plan->near_particles
                            : plan->periodic         ? near
                                             : fmin(near, (double)n); /* near sets reach beyond an open system */
    info->predicted_error = plan->predicted_error;
    info->graph_version   = plan->graph_version;
    info->measured_error  = plan->options.measured_error;
    info->measured_time   = plan->options.measured_time;
    info->near_range      = plan->cells.near_range * plan->cells.edge;
    info->method          = plan->options.method;
    if (plan->backend->get_info != NULL)
    {
        plan->backend->get_info(plan, info);
    }
    return GMXFMM_OK;
}

void gmxfmm_reset_times(gmxfmm_plan* plan)
{
    if (plan != NULL)
    {
        memset(&plan->info, 0, sizeof(plan->info));
    }
}
