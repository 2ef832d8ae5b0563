/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The treecode's row for several ranks: particles go from the ranks that give them to those that own them, which
 * compute as one rank does with what others send them (state.h), and results go back.
 *
 * Sources and targets that are not sources are dealt each for themselves: so all ranks have as many of both, and as
 * much to do, wherever the ones and the others are.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/clock.h"
#include "fmm/geometry/extent.h"
#include "fmm/particles.h"
#include "fmm/state.h"
#include "fmm/status.h"
#include "fmm/treecode/backend.h"
#include "fmm/treecode/ranks/backend.h"
#include "fmm/treecode/ranks/bisection.h"
#include "fmm/treecode/ranks/coincident.h"
#include "fmm/treecode/ranks/route.h"
#include "fmm/treecode/ranks/state.h"
#include "fmm/treecode/treecode.h"

/* What ranks say behind a step. */
typedef struct
{
    int    status;
    double energy;
} outcome;

struct fmm_treecode_ranks
{
    treecode_route sources, targets;
    int            separate;      /* some rank has targets */
    int64_t        num_clusters;  /* of all ranks */
    int64_t        charges;       /* version of those that the owners have; -1: none */
    double *       given, *owned; /* 4 numbers of each particle, on their way */
    size_t         given_room, owned_room;
    outcome*       outcomes; /* of the ranks */
    double*        room;     /* 6 a rank */
    size_t         bytes;    /* of routes, arrays and sums */

    gmxfmm_ranks_info info;
};

enum
{
    c_numbers = 4 /* that travel of a particle at once, at most: place and charge; potential and field */
};

gmxfmm_status fmm_treecode_ranks_create(gmxfmm_plan* plan)
{
    const size_t               num = (size_t)plan->ranks->comm.size;
    struct fmm_treecode_ranks* r   = calloc(1, sizeof(*r));
    plan->treecode_ranks           = r;
    if (r != NULL)
    {
        r->outcomes = calloc(num, sizeof(*r->outcomes));
        r->room     = calloc(6 * num, sizeof(*r->room));
    }
    return r == NULL || r->outcomes == NULL || r->room == NULL
               ? fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %d ranks", plan->ranks->comm.size)
               : fmm_treecode_create(plan);
}

/* Counts the memory of routes and of what travels, and of no sums. */
static void count_bytes(gmxfmm_plan* plan)
{
    struct fmm_treecode_ranks* r = plan->treecode_ranks;
    plan->bytes -= r->bytes;
    r->bytes = r->sources.bytes + r->targets.bytes + (r->given_room + r->owned_room) * sizeof(double);
    plan->bytes += r->bytes;
}

/* Particles of no rank; memory stays for the next ones. */
static void forget_assigned(gmxfmm_plan* plan)
{
    struct fmm_treecode_ranks* r = plan->treecode_ranks;
    r->sources.given = r->sources.owned = 0;
    r->targets.given = r->targets.owned = 0;
    r->charges                          = -1;
    count_bytes(plan);
}

void fmm_treecode_ranks_destroy(gmxfmm_plan* plan)
{
    if (plan->treecode_ranks != NULL)
    {
        plan->bytes -= plan->treecode_ranks->bytes;
        treecode_route_free(&plan->treecode_ranks->sources);
        treecode_route_free(&plan->treecode_ranks->targets);
        free(plan->treecode_ranks->given);
        free(plan->treecode_ranks->owned);
        free(plan->treecode_ranks->outcomes);
        free(plan->treecode_ranks->room);
        free(plan->treecode_ranks);
        plan->treecode_ranks = NULL;
    }
    fmm_treecode_destroy(plan);
}

/* Charges travel with the particles, in the next assignment or step. */
gmxfmm_status fmm_treecode_ranks_set_charges(gmxfmm_plan* plan)
{
    (void)plan;
    return GMXFMM_OK;
}

/* Seconds since *begin, which becomes now. */
static double lap(double* begin)
{
    const double now = fmm_time(), seconds = now - *begin;
    *begin = now;
    return seconds;
}

/* The status, with a message of those that have none. */
static gmxfmm_status told(gmxfmm_plan* plan, gmxfmm_status status)
{
    return status == GMXFMM_ERROR_COMM ? fmm_agree(plan, status) : status;
}

static gmxfmm_status failed(gmxfmm_plan* plan, gmxfmm_status status)
{
    return status == GMXFMM_ERROR_COMM ? status
                                       : fmm_fail(plan, status, "%s", treecode_message(fmm_treecode_sums(plan)));
}

static gmxfmm_status no_memory(gmxfmm_plan* plan)
{
    return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %lld particles",
                    (long long)(plan->particles.n + plan->particles.num_targets));
}

/* Makes *x an address of the host. Whether the positions given on this rank are finite. */
static gmxfmm_status check_places(gmxfmm_plan* plan, const void** given, const double* targets)
{
    const gmxfmm_status status = plan->backend->on_host(plan, given, 3 * (size_t)plan->particles.n);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    const void* x      = *given;
    double      low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY};
    const int   threads = plan->num_threads;
    int64_t     bad     = fmm_widen_extent(x, plan->options.array_type, plan->particles.n, threads, low, high);
    if (bad >= 0)
    {
        return fmm_fail(plan, GMXFMM_ERROR_POSITION, "the position of particle %lld is not finite", (long long)bad);
    }
    bad = targets != NULL ? fmm_widen_extent(targets, GMXFMM_DOUBLE, plan->particles.num_targets, threads, low, high)
                          : -1;
    return bad < 0 ? GMXFMM_OK
                   : fmm_fail(plan, GMXFMM_ERROR_POSITION, "the position of target %lld is not finite", (long long)bad);
}

/* Numbers of results, and their products with a charge each where q is not NULL, to the caller. */
static void deliver(
    const gmxfmm_plan* plan, const treecode_route* route, const double* owned, int numbers, const double* q, void* to)
{
    const double* const    travel = plan->treecode_ranks->given;
    const gmxfmm_precision type   = plan->options.array_type;
    if (to == NULL)
    {
        return;
    }
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (int64_t k = 0; k < route->given; k++)
    {
        const double* from = treecode_route_item(route, numbers, owned, travel, k);
        for (int d = 0; d < numbers; d++)
        {
            const int64_t i     = route->index[k] * numbers + d;
            const double  value = q != NULL ? from[d] * q[route->index[k]] : from[d];
            if (type == GMXFMM_DOUBLE)
            {
                ((double*)to)[i] = value;
            }
            else
            {
                ((float*)to)[i] = (float)value;
            }
        }
    }
}

/* The route of n places to their owners. Collective. Errors: POSITION, MEMORY. */
static gmxfmm_status deal(gmxfmm_plan* plan, treecode_route* route, int64_t n, const void* x, gmxfmm_precision type)
{
    const int     threads = plan->num_threads;
    double*       copy    = type == GMXFMM_SINGLE ? malloc((3 * (size_t)n + 1) * sizeof(*copy)) : NULL;
    int* const    owner   = (int*)plan->treecode_ranks->given; /* which nothing travels in yet */
    const int     made    = copy != NULL || type == GMXFMM_DOUBLE;
    const double* places  = type == GMXFMM_SINGLE ? copy : x;
    double        begin   = fmm_time();
    gmxfmm_status status  = fmm_agree(plan, made ? GMXFMM_OK : no_memory(plan));
    if (status == GMXFMM_OK && type == GMXFMM_SINGLE)
    {
#pragma omp parallel for schedule(static) num_threads(threads)
        for (int64_t i = 0; i < 3 * n; i++)
        {
            copy[i] = (double)((const float*)x)[i];
        }
    }
    status = status == GMXFMM_OK
                 ? treecode_bisect(plan->ranks, n, places, owner, threads, plan->message, sizeof(plan->message))
                 : status;
    free(copy);
    plan->treecode_ranks->info.time_bisection += lap(&begin);
    status = status == GMXFMM_OK
                 ? treecode_route_make(route, plan->ranks, n, owner, threads, plan->message, sizeof(plan->message))
                 : status;
    plan->treecode_ranks->info.time_travel += lap(&begin);
    return status;
}

/* The targets' route. */
static const treecode_route* targets_of(const struct fmm_treecode_ranks* r)
{
    return r->separate ? &r->targets : &r->sources;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* *array gets room for num numbers, contents lost; 0 if there is none. Memory that is there already costs nothing. */
static int renew(double** array, size_t* room, size_t num)
{
    if (*array == NULL || num > *room)
    {
        free(*array);
        *array = malloc((num + 1) * sizeof(**array));
        *room  = *array != NULL ? num : 0;
    }
    return *array != NULL;
}

/* Memory for what the given particles travel in. */
static gmxfmm_status reserve_given(gmxfmm_plan* plan)
{
    struct fmm_treecode_ranks* r     = plan->treecode_ranks;
    const size_t               given = c_numbers * (size_t)larger(plan->particles.n, plan->particles.num_targets);
    return renew(&r->given, &r->given_room, given) ? GMXFMM_OK : no_memory(plan);
}

/* Memory for what comes to their owners. */
static gmxfmm_status reserve_owned(gmxfmm_plan* plan)
{
    struct fmm_treecode_ranks* r       = plan->treecode_ranks;
    const treecode_route*      targets = targets_of(r);
    const size_t               owned   = c_numbers * (size_t)larger(r->sources.owned, targets->owned);
    const int                  made    = renew(&r->owned, &r->owned_room, owned);
    count_bytes(plan);
    return fmm_agree(plan, made ? GMXFMM_OK : no_memory(plan));
}

/* The sources' places, 3 n, at the owners, and their charges at q; NULL: without these. */
static gmxfmm_status send_sources(gmxfmm_plan* plan, const void* x, double* q)
{
    struct fmm_treecode_ranks* r     = plan->treecode_ranks;
    double                     begin = fmm_time();
    gmxfmm_status status = treecode_route_there(&r->sources, plan->ranks, 3, x, plan->options.array_type, r->given,
                                                r->owned, plan->num_threads);
    if (q != NULL && status == GMXFMM_OK)
    {
        status = treecode_route_there(&r->sources, plan->ranks, 1, plan->charges.q, GMXFMM_DOUBLE, r->given, q,
                                      plan->num_threads);
    }
    plan->treecode_ranks->info.time_travel += lap(&begin);
    return status;
}

/* Trees and lists of what this rank owns; y: targets, or NULL. */
static gmxfmm_status assign_owned(gmxfmm_plan* plan, const double* y)
{
    struct fmm_treecode_ranks* r = plan->treecode_ranks;
    treecode*                  t = fmm_treecode_sums(plan);
    const double*              q = r->owned + 3 * r->sources.owned;
    const int64_t              m = y != NULL ? r->targets.owned : 0;
    gmxfmm_status              status;
    treecode_set_threads(t, plan->num_threads);
    status = treecode_set_charges(t, r->sources.owned, q);
    status = fmm_agree(plan, status == GMXFMM_OK ? status : failed(plan, status));
    if (status != GMXFMM_OK)
    {
        return status;
    }
    const int measures = fmm_treecode_measures(plan);
    r->charges         = plan->charges.version;
    status             = treecode_ranks_assign(t, r->owned, q, m, y);
    if (status != GMXFMM_OK)
    {
        return failed(plan, status);
    }
    if (measures)
    {
        fmm_treecode_was_measured(plan);
    }
    treecode_info info;
    treecode_get_info(t, &info);
    plan->treecode_ranks->info.time_tree += info.time_tree;
    plan->treecode_ranks->info.time_lists += info.time_lists;
    return GMXFMM_OK;
}

/* Clusters of all ranks, for those who ask. */
static gmxfmm_status count_clusters(gmxfmm_plan* plan)
{
    treecode_info info;
    treecode_get_info(fmm_treecode_sums(plan), &info);
    double              num            = info.num_clusters, room;
    const gmxfmm_status status         = fmm_ranks_reduce(&plan->ranks->comm, FMM_RANKS_SUM, &num, &room, 1);
    plan->treecode_ranks->num_clusters = (int64_t)num;
    plan->treecode_ranks->bytes += info.bytes;
    plan->bytes += info.bytes;
    return status;
}

static gmxfmm_status assign_all(gmxfmm_plan* plan, const void* x)
{
    struct fmm_treecode_ranks* r        = plan->treecode_ranks;
    const int64_t              m        = plan->particles.num_targets;
    double                     separate = m > 0, room;
    double*                    y        = NULL;
    gmxfmm_status              status   = check_places(plan, &x, plan->particles.target_x);
    forget_assigned(plan);
    status = fmm_agree(plan, status == GMXFMM_OK ? reserve_given(plan) : status);
    status = status == GMXFMM_OK ? fmm_ranks_reduce(&plan->ranks->comm, FMM_RANKS_MAX, &separate, &room, 1) : status;
    r->separate = separate > 0;
    status = status == GMXFMM_OK ? deal(plan, &r->sources, plan->particles.n, x, plan->options.array_type) : status;
    status = status == GMXFMM_OK && r->separate ? deal(plan, &r->targets, m, plan->particles.target_x, GMXFMM_DOUBLE)
                                                : status;
    status = status == GMXFMM_OK ? reserve_owned(plan) : status;
    if (status == GMXFMM_OK && r->separate)
    {
        y      = malloc((3 * (size_t)r->targets.owned + 1) * sizeof(*y));
        status = fmm_agree(plan, y != NULL ? GMXFMM_OK : no_memory(plan));
        if (status == GMXFMM_OK)
        {
            status = treecode_route_there(&r->targets, plan->ranks, 3, plan->particles.target_x, GMXFMM_DOUBLE,
                                          r->given, y, plan->num_threads);
        }
    }
    status = status == GMXFMM_OK ? send_sources(plan, x, r->owned + 3 * r->sources.owned) : status;
    status = status == GMXFMM_OK ? assign_owned(plan, y) : status;
    free(y);
    return status == GMXFMM_OK ? count_clusters(plan) : status;
}

gmxfmm_status fmm_treecode_ranks_assign(gmxfmm_plan* plan, const void* x)
{
    const gmxfmm_status status = assign_all(plan, x);
    if (status != GMXFMM_OK)
    {
        forget_assigned(plan);
    }
    return told(plan, status);
}

/* The first error of the step on any rank, and the energy of all. */
static gmxfmm_status conclude(gmxfmm_plan* plan, const void* x, gmxfmm_status status, double* energy)
{
    struct fmm_treecode_ranks* r    = plan->treecode_ranks;
    treecode*                  t    = fmm_treecode_sums(plan);
    const gmxfmm_comm*         comm = &plan->ranks->comm;
    const outcome              own  = {status, *energy};
    int                        who  = 0;
    if (status == GMXFMM_ERROR_COMM)
    {
        return status;
    }
    status = fmm_ranks_all_gather(comm, &own, sizeof(own), r->outcomes);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    *energy = 0;
    for (int i = 0; i < comm->size; i++)
    {
        *energy += r->outcomes[i].energy;
    }
    /* what a rank whose device failed has sent may make sums of others infinite: they say the least */
    for (int pass = 0; pass < 2 && (pass == 0 || who == comm->size); pass++)
    {
        who = 0;
        while (who < comm->size && (r->outcomes[who].status == GMXFMM_OK ||
                                    (pass == 0 && r->outcomes[who].status == GMXFMM_ERROR_COINCIDENT)))
        {
            who++;
        }
    }
    if (who == comm->size)
    {
        return GMXFMM_OK;
    }
    const treecode_given given = {plan->particles.n, plan->particles.num_targets, x, plan->options.array_type,
                                  plan->charges.q,   plan->particles.target_x};
    if (r->outcomes[who].status == GMXFMM_ERROR_COINCIDENT)
    {
        return treecode_ranks_coincident(t, who, &given, r->room, plan->message, sizeof(plan->message));
    }
    return fmm_agree(plan, comm->rank == who ? failed(plan, (gmxfmm_status)own.status) : GMXFMM_OK);
}

/* Results to the ranks that gave the particles. potential and field: some rank wants them. */
static gmxfmm_status bring_back(gmxfmm_plan* plan, gmxfmm_output* output, int potential, int field)
{
    struct fmm_treecode_ranks* r      = plan->treecode_ranks;
    const treecode_route*      route  = targets_of(r);
    gmxfmm_status              status = GMXFMM_OK;
    double                     begin  = fmm_time();
    if (potential)
    {
        status = treecode_route_back(route, plan->ranks, 1, r->owned, r->given);
        if (status == GMXFMM_OK)
        {
            deliver(plan, route, r->owned, 1, NULL, output->potential);
        }
    }
    if (status == GMXFMM_OK && field)
    {
        const double* field_owned = r->owned + route->owned;
        status                    = treecode_route_back(route, plan->ranks, 3, field_owned, r->given);
        if (status == GMXFMM_OK)
        {
            deliver(plan, route, field_owned, 3, NULL, output->field);
            deliver(plan, route, field_owned, 3, plan->charges.q, output->force);
        }
    }
    plan->treecode_ranks->info.time_travel += lap(&begin);
    return status;
}

static gmxfmm_status check_step(gmxfmm_plan* plan, const void** x, const gmxfmm_output* output)
{
    const treecode*              t          = fmm_treecode_sums(plan);
    const treecode_ranks_device* device     = t->ranks->on_device;
    const void* const            results[3] = {output->potential, output->field, output->force};
    for (int i = 0; i < 3 && device != NULL; i++)
    {
        if (results[i] != NULL && !device->is_on_host(t, results[i]))
        {
            return fmm_fail(plan, GMXFMM_ERROR_OPTION, "several ranks give results to arrays of the host alone");
        }
    }
    if (plan->treecode_ranks->separate && (output->force != NULL || output->want_energy))
    {
        return fmm_fail(
            plan, GMXFMM_ERROR_OPTION,
            "with targets, on whatever rank, there are a potential and a field, no forces or energies of the "
            "charges");
    }
    return output->want_virial ? fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED,
                                          "the treecode has no virial: leave it out, or use method = fmm")
                               : check_places(plan, x, NULL);
}

/* The sources for a step, and their charges where these are new. */
static gmxfmm_status send_charged(gmxfmm_plan* plan, const void* x, int with_charges)
{
    struct fmm_treecode_ranks* r = plan->treecode_ranks;
    treecode*                  t = fmm_treecode_sums(plan);
    /* on their way to a device */
    double* const q      = t->q != NULL ? t->q : r->owned + 3 * r->sources.owned;
    gmxfmm_status status = send_sources(plan, x, with_charges ? q : NULL);
    if (status == GMXFMM_OK && with_charges && t->q == NULL)
    {
        status = t->options.stages->take_charges(t, q);
        status = fmm_agree(plan, status == GMXFMM_OK ? status : failed(plan, status));
    }
    if (with_charges)
    {
        r->charges = status == GMXFMM_OK ? plan->charges.version : -1;
    }
    return status;
}

static gmxfmm_status execute_all(gmxfmm_plan* plan, const void* x, gmxfmm_output* output)
{
    struct fmm_treecode_ranks* r        = plan->treecode_ranks;
    treecode*                  t        = fmm_treecode_sums(plan);
    const int64_t              m        = targets_of(r)->owned;
    double                     wants[4] = {output->potential != NULL, output->field != NULL || output->force != NULL,
                                           output->want_energy != 0, r->charges != plan->charges.version},
           room[4];
    double          begin = fmm_time();
    treecode_output out   = {0};
    treecode_info   info;
    gmxfmm_status   status = fmm_agree(plan, check_step(plan, &x, output));
    status = status == GMXFMM_OK ? fmm_ranks_reduce(&plan->ranks->comm, FMM_RANKS_MAX, wants, room, 4) : status;
    status = status == GMXFMM_OK ? send_charged(plan, x, wants[3] > 0) : status;
    if (status != GMXFMM_OK)
    {
        return status;
    }
    const double sent = fmm_time() - begin;
    out.potential     = wants[0] > 0 ? r->owned : NULL;
    out.field         = wants[1] > 0 ? r->owned + m : NULL;
    out.want_energy   = wants[2] > 0;
    status            = treecode_execute(t, r->owned, &out);
    begin             = fmm_time();
    status            = conclude(plan, x, status, &out.energy);
    status            = status == GMXFMM_OK ? bring_back(plan, output, wants[0] > 0, wants[1] > 0) : status;
    if (status != GMXFMM_OK)
    {
        return status;
    }
    output->energy_near = 0;
    output->energy_far  = output->want_energy ? out.energy : 0;
    treecode_get_info(t, &info);
    plan->info.time_charges += info.time_charges;
    plan->info.time_sums += info.time_sums;
    plan->treecode_ranks->info.time_exchange += t->ranks->time_exchange;
    plan->info.time_output += sent + info.time_output + fmm_time() - begin;
    return GMXFMM_OK;
}

gmxfmm_status fmm_treecode_ranks_execute(gmxfmm_plan* plan, const void* x, gmxfmm_output* output)
{
    return told(plan, execute_all(plan, x, output));
}

void fmm_treecode_ranks_get_info(const gmxfmm_plan* plan, gmxfmm_info* info)
{
    fmm_treecode_get_info(plan, info);
    info->num_clusters = (int)plan->treecode_ranks->num_clusters;
}

void fmm_treecode_ranks_info(const gmxfmm_plan* plan, gmxfmm_ranks_info* info)
{
    const struct fmm_treecode_ranks* r    = plan->treecode_ranks;
    const treecode*                  t    = fmm_treecode_sums(plan);
    const int                        last = plan->ranks->comm.size;
    *info                                 = r->info;
    info->num_reached                     = t->ranks->num_reached;
    info->reached_note                    = t->ranks->note;
    info->num_particles                   = r->sources.owned;
    info->num_targets                     = targets_of(r)->owned;
    info->num_imported                    = t->imported;
    info->bytes_sent                      = (size_t)t->ranks->send_start[last] * sizeof(double);
    info->bytes_received                  = (size_t)t->ranks->receive_start[last] * sizeof(double);
}

void fmm_treecode_ranks_reset_times(gmxfmm_plan* plan)
{
    memset(&plan->treecode_ranks->info, 0, sizeof(plan->treecode_ranks->info));
}

unsigned fmm_treecode_ranks_capabilities(const gmxfmm_plan* plan)
{
    (void)plan;
    return GMXFMM_CAN_TARGETS;
}

extern const fmm_backend fmm_backend_treecode_ranks;
const fmm_backend        fmm_backend_treecode_ranks = {
           .method     = GMXFMM_TREECODE,
           .device     = GMXFMM_CPU,
           .precisions = 1U << GMXFMM_SINGLE | 1U << GMXFMM_DOUBLE,
           .treecode   = &treecode_on_ranks,

           .no_exclusions      = "the treecode excludes no pairs: use method = fmm",
           .no_enqueue         = TREECODE_RANKS_NO_STREAM,
           .no_enqueue_assign  = TREECODE_RANKS_NO_STREAM,
           .no_enqueue_charges = TREECODE_RANKS_NO_STREAM,
           .no_time_stages     = TREECODE_RANKS_NO_STREAM,

           .capabilities  = fmm_treecode_ranks_capabilities,
           .create        = fmm_treecode_ranks_create,
           .destroy       = fmm_treecode_ranks_destroy,
           .set_charges   = fmm_treecode_ranks_set_charges,
           .set_targets   = fmm_particles_keep_targets,
           .on_host       = fmm_treecode_on_host,
           .assign        = fmm_treecode_ranks_assign,
           .execute       = fmm_treecode_ranks_execute,
           .measure_again = fmm_treecode_measure_again,
           .get_info      = fmm_treecode_ranks_get_info,

           .get_ranks_info    = fmm_treecode_ranks_info,
           .reset_ranks_times = fmm_treecode_ranks_reset_times,
};
