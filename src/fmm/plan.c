/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The life cycle of a plan: create, boxes, assignments, steps, destroy; what changes in what order. */
#include "fmm/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/backend.h"
#include "fmm/charges.h"
#include "fmm/clock.h"
#include "fmm/domain.h"
#include "fmm/far_field.h"
#include "fmm/frame.h"
#include "fmm/left.h"
#include "fmm/measured.h"
#include "fmm/model/problem.h"
#include "fmm/numbers.h"
#include "fmm/options.h"
#include "fmm/parallel/ranks.h"
#include "fmm/particles.h"
#include "fmm/process.h"
#include "fmm/simd_level.h"
#include "fmm/sizes.h"
#include "fmm/state.h"
#include "fmm/status.h"
#include "fmm/tune_plan.h"

void gmxfmm_destroy(gmxfmm_plan* plan)
{
    if (plan != NULL)
    {
        fmm_charges_free(plan);
        fmm_particles_free(plan);
        fmm_far_free(plan);
        plan->backend->destroy(plan);
        fmm_domain_free(plan);
        fmm_frame_free(plan);
        fmm_ranks_destroy(plan->ranks);
        free(plan->cache_dir);
        free(plan);
    }
}

/* Cells, near set and what the far field needs for them, where these are not those of the domain as it is. Errors:
 * MEMORY, OPTION, UNSUPPORTED, DEVICE. */
static gmxfmm_status follow_domain(gmxfmm_plan* plan)
{
    if (plan->backend->set_grid == NULL)
    {
        fmm_domain_without_cells(plan);
        return GMXFMM_OK;
    }
    const gmxfmm_status status = fmm_domain_make_cells(plan, plan->far.order);
    return status == GMXFMM_OK ? fmm_far_follow(plan) : status;
}

/* Options as the plan has them, and the box of a periodic system. */
static gmxfmm_status check(gmxfmm_options*       own,
                           const gmxfmm_options* asked,
                           int64_t               num_particles,
                           const double*         box,
                           char*                 message,
                           size_t                size)
{
    int           periodic[3];
    gmxfmm_status status = fmm_take_options(own, asked, message, size);
    status               = status == GMXFMM_OK ? fmm_check_options(own, message, size) : status;
    if (status != GMXFMM_OK)
    {
        return status;
    }
    if (num_particles < 0)
    {
        snprintf(message, size, "number of particles is %lld, it must not be negative", (long long)num_particles);
        return GMXFMM_ERROR_OPTION;
    }
    if (own->boundary == GMXFMM_OPEN)
    {
        return GMXFMM_OK;
    }
    if (box == NULL)
    {
        snprintf(message, size, "a periodic system needs a box");
        return GMXFMM_ERROR_NULL;
    }
    fmm_periodic_of(own, periodic);
    return fmm_check_box(box, periodic, message, size);
}

void fmm_box_of_cells(const gmxfmm_options* options, const double* given, double* box)
{
    fmm_domain_reduced_box(options, given, box);
}

/* Axes and domain; grids are along the domain's vectors from here on. */
static gmxfmm_status set_domain(gmxfmm_plan* p, const double* box)
{
    static const double c_none[9] = {0};
    int                 given[3], periodic[3];
    double              own[9];
    fmm_periodic_of(&p->options, given);
    const fmm_frame     frame  = fmm_frame_of(given, fmm_has_images(given) ? box : c_none, own);
    const gmxfmm_status status = fmm_frame_take(p, &frame);
    memcpy(periodic, given, sizeof(periodic));
    fmm_frame_order(p, periodic);
    fmm_frame_order(p, p->options.grid);
    fmm_domain_create(p, periodic, fmm_has_images(given) ? own : NULL);
    return status;
}

/* What follows from the options, and the backend's part; a plan that is periodic along all vectors is ready for
 * particles then. */
static gmxfmm_status set_up(gmxfmm_plan* p, const double* box)
{
    const gmxfmm_m2l m2l       = p->options.m2l == GMXFMM_M2L_AUTO ? GMXFMM_M2L_FFT : p->options.m2l;
    const char*      cache_dir = p->options.cache_dir;
    gmxfmm_status    status    = set_domain(p, box);
    fmm_far_set(p, m2l, 0, 0);
    if (cache_dir != NULL)
    {
        p->options.cache_dir = p->cache_dir = strdup(cache_dir);
        if (p->cache_dir == NULL)
        {
            return fmm_fail(p, GMXFMM_ERROR_MEMORY, "out of memory");
        }
    }
    status = status == GMXFMM_OK ? p->backend->create(p) : status;
    if (p->backend->set_grid == NULL || status != GMXFMM_OK)
    {
        return status;
    }
    status = m2l != GMXFMM_M2L_FFT ? fmm_domain_add_tree(p) : status;
    status = status == GMXFMM_OK && fmm_is_bulk(p) ? fmm_tune_periodic(p) : status;
    return status == GMXFMM_OK && fmm_is_bulk(p) ? follow_domain(p) : status;
}

/* NULL: several ranks cannot share such a plan. */
static const fmm_backend* find_backend(const gmxfmm_options* o, const struct fmm_ranks* ranks)
{
    const fmm_backend* found = fmm_find_backend(o->method, o->device, o->precision, o->m2l);
    return ranks != NULL ? found->on_ranks : found;
}

const struct fmm_costs* fmm_costs_of(const gmxfmm_options* options)
{
    return find_backend(options, NULL)->costs;
}

static gmxfmm_status create(gmxfmm_plan**            plan,
                            const gmxfmm_options*    asked,
                            int64_t                  num_particles,
                            const double*            box,
                            int                      measures,
                            struct fmm_known_errors* known,
                            struct fmm_ranks*        ranks,
                            const struct fmm_ranks*  shared,
                            char*                    message,
                            size_t                   message_size)
{
    char           unread[256];
    char*          text = message != NULL && message_size > 0 ? message : unread;
    const size_t   size = text == unread ? sizeof(unread) : message_size;
    gmxfmm_options own;
    text[0] = '\0';
    if (plan == NULL || asked == NULL)
    {
        snprintf(text, size, "plan and options must not be NULL");
        return GMXFMM_ERROR_NULL;
    }
    *plan                = NULL;
    gmxfmm_status status = check(&own, asked, num_particles, box, text, size);
    if (status == GMXFMM_OK && own.num_threads > 1 && fmm_threads_are_lost())
    {
        snprintf(text, size, "%s", fmm_threads_lost);
        status = GMXFMM_ERROR_OPTION;
    }
    if (status != GMXFMM_OK)
    {
        return status;
    }
    const fmm_backend* backend = find_backend(&own, ranks);
    if (backend == NULL)
    {
        snprintf(text, size,
                 "several ranks share the FMM on CPUs alone, or a treecode: choose device = cpu or method = treecode, "
                 "or make the plan on one rank (gmxfmm_create)");
        return GMXFMM_ERROR_UNSUPPORTED;
    }
    gmxfmm_plan* p = calloc(1, sizeof(*p));
    if (p == NULL)
    {
        snprintf(text, size, "out of memory");
        return GMXFMM_ERROR_MEMORY;
    }
    p->options      = own;
    p->backend      = backend;
    p->ranks        = ranks;
    p->shared       = shared;
    p->level        = fmm_simd_level();
    p->most_threads = fmm_num_threads(own.num_threads);
    p->num_threads  = fmm_useful_threads(&own, p->most_threads, num_particles);
    p->expected     = num_particles;
    p->known_errors = known;
    p->measures     = measures;
    p->bytes        = sizeof(*p);
    status          = set_up(p, box);
    if (status != GMXFMM_OK)
    {
        snprintf(text, size, "%s", p->message);
        p->ranks = NULL; /* the caller's still */
        gmxfmm_destroy(p);
        return status;
    }
    *plan = p;
    return GMXFMM_OK;
}

gmxfmm_status fmm_create_with_errors(gmxfmm_plan**            plan,
                                     const gmxfmm_options*    asked,
                                     int64_t                  num_particles,
                                     const double*            box,
                                     int                      measures,
                                     struct fmm_known_errors* known,
                                     struct fmm_ranks*        ranks,
                                     char*                    message,
                                     size_t                   message_size)
{
    return create(plan, asked, num_particles, box, measures, known, ranks, NULL, message, message_size);
}

gmxfmm_status fmm_create_shared(gmxfmm_plan**           plan,
                                const gmxfmm_options*   options,
                                int64_t                 num_particles,
                                const double*           box,
                                const struct fmm_ranks* shared,
                                char*                   message,
                                size_t                  message_size)
{
    return create(plan, options, num_particles, box, FMM_NOT_MEASURED, NULL, NULL, shared, message, message_size);
}

gmxfmm_status fmm_make_cells(gmxfmm_plan* plan)
{
    return follow_domain(plan);
}

int fmm_plan_has_dipoles(const gmxfmm_plan* plan)
{
    return fmm_has_dipoles(plan);
}

int fmm_plan_has_widths(const gmxfmm_plan* plan)
{
    return fmm_has_widths(plan);
}

void fmm_forget_known_errors(gmxfmm_plan* plan)
{
    plan->known_errors = NULL;
}

gmxfmm_status gmxfmm_create(gmxfmm_plan**         plan,
                            const gmxfmm_options* options,
                            int64_t               num_particles,
                            const double*         box,
                            char*                 message,
                            size_t                message_size)
{
    return fmm_create_with_errors(plan, options, num_particles, box, FMM_NOT_MEASURED, NULL, NULL, message,
                                  message_size);
}

/* Along which of the caller's vectors a box is checked: all of an open system's, which has no use for it. */
static void periodic_of_box(const gmxfmm_plan* plan, int* periodic)
{
    for (int d = 0; d < 3; d++)
    {
        periodic[d] = fmm_is_periodic(plan) ? plan->domain.periodic[d] : 1;
    }
    fmm_frame_order_back(plan, periodic);
}

/* *is_other: becomes 1 if graphs have another box, or other axes. */
static gmxfmm_status set_box(gmxfmm_plan* plan, const double* box, int* is_other)
{
    if (box == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_NULL, "box is NULL");
    }
    const int64_t version = plan->domain.version;
    double        own[9];
    int           periodic[3];
    gmxfmm_status status = fmm_check_threads(plan);
    periodic_of_box(plan, periodic);
    status = status == GMXFMM_OK ? fmm_check_box(box, periodic, plan->message, sizeof(plan->message)) : status;
    if (status != GMXFMM_OK || !fmm_is_periodic(plan))
    {
        return status;
    }
    const fmm_frame frame = fmm_frame_of(periodic, box, own), before = plan->frame;
    const double    known = before.height * frame.height;
    const int       same  = memcmp(frame.axes, before.axes, sizeof(frame.axes)) == 0;
    status                = fmm_domain_set_box(plan, own, known > 0 ? frame.height / before.height : 1);
    if (status == GMXFMM_OK)
    {
        status = fmm_frame_take(plan, &frame);
        fmm_particles_turn_targets(plan, before.axes);
    }
    if (status != GMXFMM_OK || (plan->domain.version == version && same))
    {
        return status;
    }
    *is_other           = 1;
    const int has_shape = plan->backend->set_grid != NULL && fmm_is_assigned(plan);
    return plan->domain.version != version && has_shape ? fmm_far_set_shape(plan) : GMXFMM_OK;
}

gmxfmm_status gmxfmm_set_box(gmxfmm_plan* plan, const double* box)
{
    if (plan == NULL)
    {
        return GMXFMM_ERROR_NULL;
    }
    int                 is_other = 0;
    const gmxfmm_status status   = fmm_agree(plan, set_box(plan, box, &is_other));
    plan->graph_version += is_other;
    return status;
}

/* Whether particles can be assigned. */
static gmxfmm_status check_assign(gmxfmm_plan* plan, const void* x)
{
    if (x == NULL && plan->particles.n > 0)
    {
        return fmm_fail(plan, GMXFMM_ERROR_NULL, "positions are NULL");
    }
    if (plan->charges.q == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_ORDER, "set_charges must come before assign");
    }
    if (plan->particles.num_targets > 0 && plan->particles.excl_start != NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_OPTION, "exclusions are of no use with targets: set one or the other");
    }
    return GMXFMM_OK;
}

/* Positions in the axes in which the backend takes them. */
static gmxfmm_status turn_positions(gmxfmm_plan* plan, const void** x)
{
    return plan->backend->turns_axes ? GMXFMM_OK : fmm_frame_positions(plan, x, (size_t)plan->particles.n);
}

gmxfmm_status gmxfmm_assign(gmxfmm_plan* plan, const void* x)
{
    const double begin = fmm_time();
    if (plan == NULL)
    {
        return GMXFMM_ERROR_NULL;
    }
    gmxfmm_status status = fmm_agree(plan, check_assign(plan, x));
    if (status != GMXFMM_OK)
    {
        return status;
    }
    fmm_particles_unassign(plan); /* whatever fails, old cells are not to be used with a new domain */
    const int64_t n   = plan->particles.n + plan->particles.num_targets;
    plan->num_threads = fmm_useful_threads(&plan->options, plan->most_threads, n);
    status            = fmm_agree(plan, fmm_check_threads(plan));
    status            = status == GMXFMM_OK ? turn_positions(plan, &x) : status;
    status            = status == GMXFMM_OK ? fmm_tune_particles(plan, &x) : status;
    status            = status == GMXFMM_OK ? follow_domain(plan) : status;
    status            = status == GMXFMM_OK ? fmm_particles_assign(plan, x) : status;
    if (status == GMXFMM_OK && plan->backend->set_grid != NULL)
    {
        fmm_left_follow(plan);
    }
    plan->info.time_assign += fmm_time() - begin;
    return status;
}

gmxfmm_status gmxfmm_enqueue_box(gmxfmm_plan* plan, const double* box, void* stream)
{
    if (plan == NULL)
    {
        return GMXFMM_ERROR_NULL;
    }
    int           is_other = 0, follow = 0;
    gmxfmm_status status   = fmm_agree(plan, set_box(plan, box, &is_other));
    const int     enqueues = status == GMXFMM_OK && fmm_is_assigned(plan) && plan->backend->enqueue_box != NULL;
    if (enqueues)
    {
        status = plan->backend->graphs_follow(plan, stream, &follow);
    }
    plan->graph_version += is_other && !follow;
    if (enqueues && status == GMXFMM_OK)
    {
        status = plan->backend->enqueue_box(plan, stream);
    }
    return status;
}

/* Whether an assignment can be put on a stream. */
static gmxfmm_status check_enqueue_assign(gmxfmm_plan* plan, const void* x)
{
    if (x == NULL && plan->particles.n > 0)
    {
        return fmm_fail(plan, GMXFMM_ERROR_NULL, "positions are NULL");
    }
    if (plan->backend->enqueue_assign == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED, "%s", plan->backend->no_enqueue_assign);
    }
    if (!(plan->backend->capabilities(plan) & GMXFMM_CAN_ENQUEUE_ASSIGN))
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED, "enqueue_assign does not take %s: call gmxfmm_assign",
                        plan->particles.num_targets > 0 ? "targets"
                        : fmm_is_periodic(plan)         ? "the cells of an octree"
                                                        : "an open system");
    }
    if (!fmm_is_assigned(plan))
    {
        return fmm_fail(plan, GMXFMM_ERROR_ORDER,
                        "gmxfmm_assign must come before enqueue_assign, and after another number of particles, new "
                        "exclusions or a box of quite another shape");
    }
    if (!fmm_domain_keep_near(plan))
    {
        return fmm_fail(plan, GMXFMM_ERROR_ORDER,
                        "other cells are near each other in the box as it is now: call gmxfmm_assign");
    }
    return GMXFMM_OK;
}

gmxfmm_status gmxfmm_enqueue_assign(gmxfmm_plan* plan, const void* x, void* stream)
{
    const gmxfmm_status status = plan != NULL ? check_enqueue_assign(plan, x) : GMXFMM_ERROR_NULL;
    return status == GMXFMM_OK ? fmm_particles_enqueue_assign(plan, x, stream) : status;
}

gmxfmm_status gmxfmm_enqueue_assign_part(gmxfmm_plan* plan, gmxfmm_assign_part part, const void* x, void* stream)
{
    if (plan == NULL)
    {
        return GMXFMM_ERROR_NULL;
    }
    if ((unsigned)part > GMXFMM_ASSIGN_END)
    {
        return fmm_fail(plan, GMXFMM_ERROR_OPTION, "there is no part %d of an assignment", (int)part);
    }
    if (part == GMXFMM_ASSIGN_BEGIN)
    {
        const gmxfmm_status status = check_enqueue_assign(plan, x);
        return status == GMXFMM_OK ? fmm_particles_enqueue_assign_part(plan, part, x, stream) : status;
    }
    return plan->particles.assign_begun
               ? fmm_particles_enqueue_assign_part(plan, part, x, stream)
               : fmm_fail(plan, GMXFMM_ERROR_ORDER,
                          "GMXFMM_ASSIGN_BEGIN must come first, and again after another assignment");
}

/* Whether a step can be made, and what is wanted of it. */
static gmxfmm_status check_step(gmxfmm_plan* plan, const void* force, int energy, int virial)
{
    gmxfmm_status status = fmm_check_threads(plan);
    status               = status == GMXFMM_OK ? fmm_particles_check_assigned(plan) : status;
    if (status != GMXFMM_OK)
    {
        return status;
    }
    if (plan->particles.num_targets > 0 && (force != NULL || energy || virial))
    {
        return fmm_fail(plan, GMXFMM_ERROR_OPTION,
                        "with targets there are a potential and a field, no forces, torques, energies or virial of the "
                        "charges");
    }
    return GMXFMM_OK;
}

/* Results that only plans with dipoles have. */
static gmxfmm_status check_dipole_output(gmxfmm_plan* plan, const void* torque, const void* field_gradient)
{
    if ((torque != NULL || field_gradient != NULL) && !fmm_has_dipoles(plan))
    {
        return fmm_fail(plan, GMXFMM_ERROR_ORDER,
                        "set_dipoles must come before a step that gives torques or field gradients: with charges alone "
                        "set dipoles of zero");
    }
    return GMXFMM_OK;
}

static gmxfmm_status check_gradient(gmxfmm_plan* plan)
{
    if (plan->derivatives.num == 0)
    {
        return fmm_fail(plan, GMXFMM_ERROR_ORDER,
                        "set_charge_derivatives must come before a step that gives a charge gradient");
    }
    return plan->particles.num_targets == 0
               ? GMXFMM_OK
               : fmm_fail(plan, GMXFMM_ERROR_OPTION, "with targets there is no charge gradient");
}

/* Places that results are for. */
static size_t num_targets(const gmxfmm_plan* plan)
{
    return (size_t)(plan->particles.num_targets > 0 ? plan->particles.num_targets : plan->particles.n);
}

static gmxfmm_status check_execute(gmxfmm_plan* plan, const void* x, gmxfmm_output* output)
{
    if (output == NULL || (x == NULL && plan->particles.n > 0))
    {
        return fmm_fail(plan, GMXFMM_ERROR_NULL, "%s is NULL", output == NULL ? "output" : "x");
    }
    gmxfmm_status status = fmm_check_size(plan, output, sizeof(*output), "gmxfmm_output");
    if (status == GMXFMM_OK)
    {
        status = check_step(plan, output->force != NULL ? output->force : output->torque, output->want_energy,
                            output->want_virial);
    }
    status = status == GMXFMM_OK ? check_dipole_output(plan, output->torque, output->field_gradient) : status;
    if (status == GMXFMM_OK && output->charge_gradient != NULL)
    {
        status = check_gradient(plan);
    }
    return status;
}

gmxfmm_status gmxfmm_execute(gmxfmm_plan* plan, const void* x, gmxfmm_output* output)
{
    if (plan == NULL)
    {
        return GMXFMM_ERROR_NULL;
    }
    gmxfmm_status status = fmm_agree(plan, check_execute(plan, x, output));
    if (status != GMXFMM_OK)
    {
        return status;
    }
    status = turn_positions(plan, &x);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    plan->info.num_executes++;
    output->outside = 0;
    status          = plan->backend->execute(plan, x, output);
    if (!plan->backend->turns_axes)
    {
        fmm_frame_results(plan, output, num_targets(plan));
    }
    return status;
}

/* Makes what a step finds no error, until the check that it was is set again. */
static gmxfmm_check only_report(gmxfmm_plan* plan)
{
    const gmxfmm_check before = plan->options.check;
    plan->options.check       = before == GMXFMM_CHECK_ERROR ? GMXFMM_CHECK_REPORT : before;
    return before;
}

gmxfmm_status fmm_execute_anyway(gmxfmm_plan* plan, const void* x, gmxfmm_output* output)
{
    const gmxfmm_check  check  = only_report(plan);
    const gmxfmm_status status = gmxfmm_execute(plan, x, output);
    plan->options.check        = check;
    return status;
}

void fmm_measure_again(gmxfmm_plan* plan, double accuracy)
{
    plan->backend->measure_again(plan, accuracy);
}

gmxfmm_status fmm_any_rank(gmxfmm_plan* plan, int here, int* any)
{
    double              most = here, room;
    const gmxfmm_status status =
        plan->ranks != NULL ? fmm_ranks_reduce(&plan->ranks->comm, FMM_RANKS_MAX, &most, &room, 1) : GMXFMM_OK;
    *any = most > 0;
    return fmm_agree(plan, status);
}

gmxfmm_output fmm_output_in(const gmxfmm_plan* plan, void* room)
{
    gmxfmm_output output = {.size = sizeof(output)};
    const size_t  word   = fmm_word_of(plan->options.array_type);
    if (plan->particles.num_targets == 0 && plan->ranks == NULL)
    {
        output.force = room;
        return output;
    }
    output.potential = room;
    output.field     = (char*)room + num_targets(plan) * word;
    return output;
}

int fmm_can_time_steps(const gmxfmm_plan* plan)
{
    return plan->backend->time_steps != NULL;
}

gmxfmm_status fmm_time_steps(gmxfmm_plan* plan, const void* x, int num, double* seconds)
{
    const gmxfmm_check  check  = only_report(plan);
    const gmxfmm_status status = plan->backend->time_steps(plan, x, num, seconds);
    plan->options.check        = check;
    return status;
}

int fmm_can_shift_cells(const gmxfmm_plan* plan)
{
    return plan->backend->set_grid != NULL && fmm_is_periodic(plan);
}

void fmm_shift_cells(gmxfmm_plan* plan, const double* shift)
{
    fmm_domain_shift_cells(plan, shift);
}

void fmm_cell_coordinates(const gmxfmm_plan* plan, const double* x, double* t)
{
    static const double c_nowhere[3] = {0, 0, 0};
    const double*       axes         = plan->frame.axes;
    double              own[3];
    for (int d = 0; d < 3; d++)
    {
        own[d] = plan->frame.turned ? axes[3 * d] * x[0] + axes[3 * d + 1] * x[1] + axes[3 * d + 2] * x[2] : x[d];
    }
    fmm_in_cells(c_nowhere, plan->domain.cells.to_cells, own, t);
}

double fmm_tree_gain(const gmxfmm_plan* plan)
{
    return plan->tuning.tree_gain;
}

gmxfmm_status gmxfmm_enqueue(gmxfmm_plan* plan, const void* x, const gmxfmm_device_output* output, void* stream)
{
    if (plan == NULL || output == NULL || (x == NULL && plan->particles.n > 0))
    {
        return plan == NULL ? GMXFMM_ERROR_NULL
                            : fmm_fail(plan, GMXFMM_ERROR_NULL, "%s is NULL", output == NULL ? "output" : "x");
    }
    if (plan->backend->enqueue == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED, "%s", plan->backend->no_enqueue);
    }
    gmxfmm_status status = fmm_check_size(plan, output, sizeof(*output), "gmxfmm_device_output");
    if (status == GMXFMM_OK)
    {
        status = check_step(plan, output->force != NULL ? output->force : output->torque, output->energy != NULL,
                            output->virial != NULL);
    }
    status = status == GMXFMM_OK ? check_dipole_output(plan, output->torque, output->field_gradient) : status;
    if (status == GMXFMM_OK && output->charge_gradient != NULL)
    {
        status = check_gradient(plan);
    }
    if (status != GMXFMM_OK)
    {
        return status;
    }
    plan->info.num_executes++;
    return plan->backend->enqueue(plan, x, output, stream);
}

gmxfmm_status
gmxfmm_time_stages(gmxfmm_plan* plan, const void* x, unsigned stages, int repeats, void* stream, double* seconds)
{
    if (plan == NULL || seconds == NULL || (x == NULL && plan->particles.n > 0))
    {
        return plan == NULL ? GMXFMM_ERROR_NULL
                            : fmm_fail(plan, GMXFMM_ERROR_NULL, "%s is NULL", seconds == NULL ? "seconds" : "x");
    }
    if (plan->backend->time_stages == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED, "%s", plan->backend->no_time_stages);
    }
    if (repeats < 1)
    {
        return fmm_fail(plan, GMXFMM_ERROR_OPTION, "repeats is %d, it must be at least 1", repeats);
    }
    const gmxfmm_status status = fmm_particles_check_assigned(plan);
    return status == GMXFMM_OK ? plan->backend->time_stages(plan, x, stages, repeats, stream, seconds) : status;
}

gmxfmm_status gmxfmm_set_first_share(gmxfmm_plan* plan, double share)
{
    if (plan == NULL)
    {
        return GMXFMM_ERROR_NULL;
    }
    if (!(share >= 0 && share < 1))
    {
        return fmm_fail(plan, GMXFMM_ERROR_OPTION, "the first device's share is %g, it must be 0 or more and below 1",
                        share);
    }
    if (plan->backend->set_first_share == NULL || plan->options.num_devices < 2)
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED, "shares are those of several devices: set num_devices");
    }
    gmxfmm_status status = fmm_particles_check_assigned(plan);
    status               = status == GMXFMM_OK ? plan->backend->set_first_share(plan, share) : status;
    plan->graph_version += status == GMXFMM_OK;
    return status;
}

unsigned gmxfmm_capabilities(const gmxfmm_plan* plan)
{
    const unsigned all  = plan != NULL ? plan->backend->capabilities(plan) : 0;
    const int      asks = all & GMXFMM_CAN_ENQUEUE_ASSIGN && fmm_is_assigned(plan);
    const int      lost = asks && (!fmm_domain_near_holds(plan) || !plan->backend->cells_hold(plan));
    return lost ? all & ~(unsigned)GMXFMM_CAN_ENQUEUE_ASSIGN : all;
}

int64_t gmxfmm_graph_version(const gmxfmm_plan* plan)
{
    /* none of them ever falls, so that the sum is another one whenever one of them is */
    return plan == NULL ? 0
                        : plan->graph_version + plan->particles.graph_version + plan->charges.graph_version +
                              plan->derivatives.graph_version;
}

/* Mean number of particles near one that are spread evenly; near sets reach beyond an open system. */
static double near_particles(const gmxfmm_plan* plan, int leaves)
{
    const fmm_domain* d     = &plan->domain;
    const int         found = d->tree != NULL && fmm_is_assigned(plan);
    const double      cells = found ? leaves : (double)d->grid[0] * d->grid[1] * d->grid[2];
    const double      n     = (double)(plan->charges.q != NULL ? plan->particles.n : plan->expected);
    const double      near  = cells > 0 ? n / cells * d->cells.num_near : 0;
    return fmm_is_periodic(plan) ? near : fmin(near, n);
}

static double near_range(const gmxfmm_plan* plan)
{
    const fmm_cells* cells = &plan->domain.cells;
    return cells->edge * (cells->near_range >= 0 ? cells->near_range : fmm_near_range(cells, plan->domain.separation));
}

void fmm_limit_threads(gmxfmm_plan* plan, int most)
{
    plan->num_threads = plan->num_threads < most ? plan->num_threads : most;
}

gmxfmm_status gmxfmm_get_info(const gmxfmm_plan* plan, gmxfmm_info* info)
{
    if (plan == NULL || info == NULL)
    {
        return GMXFMM_ERROR_NULL;
    }
    if (!fmm_is_size(info->size, sizeof(*info)))
    {
        return GMXFMM_ERROR_OPTION;
    }
    const size_t      size = info->size;
    const fmm_domain* d    = &plan->domain;
    *info                  = plan->info;
    info->size             = size;
    info->num_particles    = plan->particles.n;
    info->method           = plan->options.method;
    info->precision        = plan->options.precision;
    info->m2l              = plan->far.m2l;
    info->order            = plan->far.order;
    info->depth            = fmm_depth(plan);
    info->num_cells        = d->cells.num_cells;
    info->separation       = d->separation;
    info->num_near_cells   = d->cells.num_near;
    info->near_range       = near_range(plan);
    info->predicted_error  = plan->far.predicted_error;
    info->measured_error   = fmm_measured_error(plan);
    info->num_threads      = plan->num_threads;
    info->simd             = plan->backend->device == GMXFMM_CPU ? fmm_simd_level_name(plan->level) : "";
    info->num_devices      = plan->backend->device == GMXFMM_CPU ? 0 : 1;
    info->devices[0]       = plan->options.device_id;
    info->devices_note     = "";
    info->bytes            = plan->bytes;
    info->zero_forces      = isfinite(info->measured_error) && plan->measured.zero_forces;
    memcpy(info->extent, plan->tuning.extent, sizeof(info->extent));
    memcpy(info->grid, d->grid, sizeof(info->grid));
    fmm_frame_order_back(plan, info->grid);
    if (plan->backend->get_info != NULL)
    {
        plan->backend->get_info(plan, info);
    }
    if (info->near_particles == 0)
    {
        info->near_particles = near_particles(plan, info->num_cells);
    }
    if (d->tree != NULL && plan->particles.n + plan->particles.num_targets == 0)
    {
        info->num_cells = 0;
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

gmxfmm_status gmxfmm_get_ranks_info(const gmxfmm_plan* plan, gmxfmm_ranks_info* info)
{
    if (plan == NULL || info == NULL)
    {
        return GMXFMM_ERROR_NULL;
    }
    memset(info, 0, sizeof(*info));
    info->reached_note = "";
    if (plan->backend->get_ranks_info != NULL)
    {
        plan->backend->get_ranks_info(plan, info);
    }
    return GMXFMM_OK;
}

void gmxfmm_reset_ranks_times(gmxfmm_plan* plan)
{
    if (plan != NULL && plan->backend->reset_ranks_times != NULL)
    {
        plan->backend->reset_ranks_times(plan);
    }
}
