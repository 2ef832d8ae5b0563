/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The FMM's row for several ranks: cells of one level in boxes that are periodic along all vectors, on the CPU.
 *
 * Each rank has a plan of all particles, in the order of their numbers. Positions of all go to all, and each rank
 * computes the results of its layers of cells (cpu/ranks.h), which go back to those that gave the particles. So these
 * have the bits of a plan of one rank.
 */
#include <stdlib.h>
#include <string.h>

#include "fmm/backend.h"
#include "fmm/cpu/ranks.h"
#include "fmm/gmxfmm_parallel.h"
#include "fmm/parallel/ranks.h"
#include "fmm/particles.h"
#include "fmm/plan.h"
#include "fmm/state.h"
#include "fmm/status.h"

/* An array that grows. */
typedef struct
{
    void*  at;
    size_t room;
} array;

/* What a step gives of each particle. */
enum
{
    c_force,
    c_field,
    c_potential,
    c_results
};

static const size_t c_numbers[c_results] = {3, 3, 1};

struct fmm_divided
{
    gmxfmm_plan* whole;  /* of all particles */
    int64_t      total;  /* of these */
    int64_t*     start;  /* size + 1: particles of each rank in the order of ranks */
    int64_t*     sorted; /* size + 1: those whose results each rank computes, in the order of cells */
    int*         id;     /* as set, num_ids; NULL: in the order of ranks */
    int64_t      num_ids;
    int *        excl_start, *excl_list; /* as set, or NULL */
    int          rows_are_new;           /* exclusions, or whose rows they are */
    int *        rows, *list;            /* exclusions that the whole plan has, total + 1 rows; NULL: it has none */
    int64_t      charges_version, box_version; /* that the whole plan has */
    array        ids, x, gathered, result[c_results];
};

/* Makes *a hold num items of `bytes`, contents lost; 0 if there is no memory. */
static int renew(array* a, size_t num, size_t bytes)
{
    if (a->at == NULL || num * bytes > a->room)
    {
        free(a->at);
        a->at   = malloc(num * bytes + 1);
        a->room = a->at != NULL ? num * bytes : 0;
    }
    return a->at != NULL;
}

/* Bytes of a number in the caller's arrays. */
static size_t word_of(const gmxfmm_plan* plan)
{
    return plan->options.array_type == GMXFMM_DOUBLE ? sizeof(double) : sizeof(float);
}

static gmxfmm_status no_memory(gmxfmm_plan* plan)
{
    return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for the particles of %d ranks", plan->ranks->comm.size);
}

/* The status of the whole plan, with its message, as all ranks have it. */
static gmxfmm_status agree_on_whole(gmxfmm_plan* plan, gmxfmm_status status)
{
    return fmm_agree(plan, status == GMXFMM_OK || status == GMXFMM_ERROR_COMM
                               ? status
                               : fmm_fail(plan, status, "%s", gmxfmm_message(plan->divided->whole)));
}

static gmxfmm_status create(gmxfmm_plan* plan)
{
    const size_t        num = (size_t)plan->ranks->comm.size + 1;
    struct fmm_divided* d   = calloc(1, sizeof(*d));
    plan->divided           = d;
    if (d != NULL)
    {
        d->start  = calloc(num, sizeof(*d->start));
        d->sorted = calloc(num, sizeof(*d->sorted));
    }
    if (d == NULL || d->start == NULL || d->sorted == NULL)
    {
        return no_memory(plan);
    }
    if (!fmm_is_bulk(plan) || (plan->options.m2l != GMXFMM_M2L_AUTO && plan->options.m2l != GMXFMM_M2L_FFT))
    {
        return fmm_fail(
            plan, GMXFMM_ERROR_UNSUPPORTED,
            "several ranks share the FMM with m2l = fft or auto in a box that is periodic along all vectors, or a "
            "treecode. Choose one of these, or make the plan on one rank (gmxfmm_create)");
    }
    return GMXFMM_OK;
}

static void free_exclusions(gmxfmm_plan* plan)
{
    struct fmm_divided* d = plan->divided;
    if (d != NULL)
    {
        free(d->excl_start);
        free(d->excl_list);
        d->excl_start = d->excl_list = NULL;
    }
}

/* The whole plan has no exclusions, or other ones. */
static void forget_rows(struct fmm_divided* d)
{
    free(d->rows);
    free(d->list);
    d->rows = d->list = NULL;
}

static void destroy(gmxfmm_plan* plan)
{
    struct fmm_divided* d = plan->divided;
    if (d == NULL)
    {
        return;
    }
    free_exclusions(plan);
    forget_rows(d);
    gmxfmm_destroy(d->whole);
    free(d->start);
    free(d->sorted);
    free(d->id);
    free(d->ids.at);
    free(d->x.at);
    free(d->gathered.at);
    for (int r = 0; r < c_results; r++)
    {
        free(d->result[r].at);
    }
    free(d);
    plan->divided = NULL;
}

/* They go to all in the next assignment or step. Numbers of another number of particles are none of these. */
static gmxfmm_status set_charges(gmxfmm_plan* plan)
{
    struct fmm_divided* d = plan->divided;
    if (d->num_ids != plan->particles.n)
    {
        free(d->id);
        d->id           = NULL;
        d->num_ids      = 0;
        d->rows_are_new = 1;
    }
    return GMXFMM_OK;
}

static gmxfmm_status set_targets(gmxfmm_plan* plan, const void* x)
{
    (void)x;
    return plan->particles.num_targets == 0
               ? GMXFMM_OK
               : fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED, "with the FMM several ranks take no targets: use one rank");
}

/* Rows of the own particles, which name partners by their numbers; checked when all rows are together. */
static gmxfmm_status set_exclusions(gmxfmm_plan* plan, const int* start, const int* list, int64_t n)
{
    struct fmm_divided* d = plan->divided;
    free_exclusions(plan);
    d->rows_are_new = 1;
    if (start == NULL)
    {
        return GMXFMM_OK;
    }
    int64_t good = 0; /* rows that ascend */
    while (start[0] == 0 && good < n && start[good + 1] >= start[good])
    {
        good++;
    }
    if (start[0] != 0 || good < n)
    {
        return fmm_fail(plan, GMXFMM_ERROR_EXCLUSION,
                        "exclusions must start at 0 and ascend: those of particle %lld here do not", (long long)good);
    }
    d->excl_start = malloc(((size_t)n + 1) * sizeof(int));
    d->excl_list  = malloc((size_t)start[n] * sizeof(int) + 1);
    if (d->excl_start == NULL || d->excl_list == NULL)
    {
        free_exclusions(plan);
        return no_memory(plan);
    }
    memcpy(d->excl_start, start, ((size_t)n + 1) * sizeof(int));
    memcpy(d->excl_list, list != NULL ? list : start, (size_t)start[n] * sizeof(int));
    return GMXFMM_OK;
}

static gmxfmm_status on_host(gmxfmm_plan* plan, const void** x, size_t num)
{
    (void)plan; /* it is there */
    (void)x;
    (void)num;
    return GMXFMM_OK;
}

/* Items of `bytes` of all ranks, in their order, from the n own ones. Collective. */
static gmxfmm_status gather(const gmxfmm_plan* plan, size_t bytes, const void* own, const int64_t* start, void* all)
{
    const int     rank = plan->ranks->comm.rank;
    const int64_t n    = start[rank + 1] - start[rank];
    if (n > 0)
    {
        memcpy((char*)all + (size_t)start[rank] * bytes, own, (size_t)n * bytes);
    }
    return fmm_ranks_same_to_all(plan->ranks, bytes, own, n, all, start);
}

/* start[size + 1] of as many items as each rank has. Collective. */
static gmxfmm_status gather_counts(gmxfmm_plan* plan, int64_t own, int64_t* start)
{
    const gmxfmm_status status = fmm_ranks_all_gather(&plan->ranks->comm, &own, sizeof(own), start + 1);
    start[0]                   = 0;
    for (int r = 0; r < plan->ranks->comm.size; r++)
    {
        start[r + 1] += start[r];
    }
    return status;
}

/* Numbers of the particles of all ranks, in the order of these. Collective. Errors: OPTION, MEMORY. */
static gmxfmm_status gather_ids(gmxfmm_plan* plan)
{
    struct fmm_divided* d      = plan->divided;
    const int           rank   = plan->ranks->comm.rank;
    const int64_t       n      = plan->particles.n;
    gmxfmm_status       status = gather_counts(plan, n, d->start);
    d->total                   = d->start[plan->ranks->comm.size];
    if (status == GMXFMM_OK && d->total > INT32_MAX / 4)
    {
        status = fmm_fail(plan, GMXFMM_ERROR_OPTION, "all ranks have %lld particles, allowed are %d",
                          (long long)d->total, INT32_MAX / 4);
    }
    const int made = renew(&d->ids, (size_t)d->total, sizeof(int));
    status         = fmm_agree(plan, status != GMXFMM_OK || made ? status : no_memory(plan));
    if (status != GMXFMM_OK)
    {
        return status;
    }
    int* const ids = d->ids.at;
    for (int64_t i = 0; i < n; i++)
    {
        ids[d->start[rank] + i] = d->id != NULL ? d->id[i] : (int)(d->start[rank] + i);
    }
    status       = fmm_ranks_same_to_all(plan->ranks, sizeof(int), ids + d->start[rank], n, ids, d->start);
    char*   seen = calloc((size_t)d->total + 1, 1);
    int64_t at   = seen != NULL ? 0 : d->total;
    while (at < d->total && ids[at] >= 0 && ids[at] < d->total && !seen[ids[at]])
    {
        seen[ids[at++]] = 1;
    }
    free(seen);
    if (seen == NULL)
    {
        status = no_memory(plan);
    }
    else if (status == GMXFMM_OK && at < d->total)
    {
        status =
            fmm_fail(plan, GMXFMM_ERROR_OPTION, "%lld particles must have the numbers 0 to %lld, each once: %d is %s",
                     (long long)d->total, (long long)d->total - 1, ids[at],
                     ids[at] >= 0 && ids[at] < d->total ? "there twice" : "not among these");
    }
    return fmm_agree(plan, status);
}

/* The charges of all ranks, to the whole plan. Collective. */
static gmxfmm_status gather_charges(gmxfmm_plan* plan)
{
    struct fmm_divided* d     = plan->divided;
    const size_t        total = (size_t)d->total, word = word_of(plan);
    const int*          ids = d->ids.at;
    const int     made      = renew(&d->gathered, total, 3 * sizeof(double)) && renew(&d->x, total, 3 * sizeof(double));
    gmxfmm_status status    = fmm_agree(plan, made ? GMXFMM_OK : no_memory(plan));
    status = status == GMXFMM_OK ? gather(plan, sizeof(double), plan->charges.q, d->start, d->gathered.at) : status;
    if (status != GMXFMM_OK)
    {
        return status;
    }
    for (size_t k = 0; k < total; k++)
    {
        const double q = ((const double*)d->gathered.at)[k];
        if (word == sizeof(double))
        {
            ((double*)d->x.at)[ids[k]] = q;
        }
        else
        {
            ((float*)d->x.at)[ids[k]] = (float)q;
        }
    }
    d->charges_version = plan->charges.version;
    return agree_on_whole(plan, gmxfmm_set_charges(d->whole, d->total, d->x.at));
}

/* Exclusions of all particles to the whole plan, which keeps them as long as they are the same, whoever has which
 * particles. Takes rows and list. */
static gmxfmm_status set_rows(gmxfmm_plan* plan, int* rows, int* list)
{
    struct fmm_divided* d     = plan->divided;
    const size_t        total = (size_t)d->total, num = (size_t)rows[total];
    const int           same = d->rows != NULL && memcmp(d->rows, rows, (total + 1) * sizeof(int)) == 0 &&
                     memcmp(d->list, list, num * sizeof(int)) == 0;
    gmxfmm_status status = GMXFMM_OK;
    if (!same)
    {
        status = num > 0 ? gmxfmm_set_exclusions(d->whole, rows, list) : gmxfmm_set_exclusions(d->whole, NULL, NULL);
    }
    forget_rows(d);
    if (status == GMXFMM_OK)
    {
        d->rows = rows;
        d->list = list;
    }
    else
    {
        free(rows);
        free(list);
    }
    return agree_on_whole(plan, status);
}

/* The exclusions of all ranks, to the whole plan. Collective. */
static gmxfmm_status gather_exclusions(gmxfmm_plan* plan)
{
    struct fmm_divided* d       = plan->divided;
    const int*          ids     = d->ids.at;
    const int64_t       entries = d->excl_start != NULL ? d->excl_start[plan->particles.n] : 0;
    const size_t        total   = (size_t)d->total;
    int64_t* const      start   = d->sorted; /* which is of the next assignment */
    int *               length = malloc((total + 1) * sizeof(int)), *rows = calloc(total + 2, sizeof(int));
    int *               own = malloc(((size_t)plan->particles.n + 1) * sizeof(int)), *list = NULL, *by_id = NULL;
    gmxfmm_status       status = gather_counts(plan, entries, start);
    const size_t        num    = (size_t)start[plan->ranks->comm.size];
    list                       = malloc(num * sizeof(int) + 1);
    by_id                      = malloc(num * sizeof(int) + 1);
    const int made             = length != NULL && rows != NULL && own != NULL && list != NULL && by_id != NULL;
    status = fmm_agree(plan, status != GMXFMM_OK || (made && num <= INT32_MAX) ? status : no_memory(plan));
    for (int64_t i = 0; i < plan->particles.n && status == GMXFMM_OK; i++)
    {
        own[i] = d->excl_start != NULL ? d->excl_start[i + 1] - d->excl_start[i] : 0;
    }
    status = status == GMXFMM_OK ? gather(plan, sizeof(int), own, d->start, length) : status;
    status = status == GMXFMM_OK ? gather(plan, sizeof(int), d->excl_list, start, list) : status;
    if (status == GMXFMM_OK)
    {
        size_t from = 0;
        for (size_t k = 0; k < total; k++)
        {
            rows[ids[k] + 1] = length[k];
        }
        for (size_t i = 0; i < total; i++)
        {
            rows[i + 1] += rows[i];
        }
        for (size_t k = 0; k < total; k++)
        {
            memcpy(by_id + rows[ids[k]], list + from, (size_t)length[k] * sizeof(int));
            from += (size_t)length[k];
        }
        d->rows_are_new = 0;
        status          = set_rows(plan, rows, by_id);
        rows = by_id = NULL;
    }
    free(length);
    free(rows);
    free(own);
    free(list);
    free(by_id);
    return status;
}

/* Positions of all particles, in the order of their numbers, at d->x. Collective. */
static gmxfmm_status gather_positions(gmxfmm_plan* plan, const void* x)
{
    struct fmm_divided* d      = plan->divided;
    const size_t        bytes  = 3 * word_of(plan);
    const int*          ids    = d->ids.at;
    const gmxfmm_status status = gather(plan, bytes, x, d->start, d->gathered.at);
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (int64_t k = 0; k < d->total; k++)
    {
        memcpy((char*)d->x.at + (size_t)ids[k] * bytes, (const char*)d->gathered.at + (size_t)k * bytes, bytes);
    }
    return status;
}

/* The plan of all particles, made for as many as there are first. The same on all ranks. */
static gmxfmm_status make_whole(gmxfmm_plan* plan)
{
    struct fmm_divided* d       = plan->divided;
    gmxfmm_options      options = plan->options;
    options.m2l                 = GMXFMM_M2L_FFT;
    gmxfmm_status status        = GMXFMM_OK;
    if (d->whole == NULL)
    {
        status = fmm_create_with_errors(&d->whole, &options, d->total, plan->domain.given, 0, NULL, NULL, plan->message,
                                        sizeof(plan->message));
        if (status == GMXFMM_OK)
        {
            fmm_cpu_share(d->whole, plan->ranks);
        }
        d->box_version = plan->domain.version;
    }
    return fmm_agree(plan, status);
}

/* Passes on the box, which is the same on all ranks. */
static gmxfmm_status follow_box(gmxfmm_plan* plan)
{
    struct fmm_divided* d = plan->divided;
    if (d->box_version == plan->domain.version)
    {
        return GMXFMM_OK;
    }
    d->box_version = plan->domain.version;
    return agree_on_whole(plan, gmxfmm_set_box(d->whole, plan->domain.given));
}

/* The status, with a message of those that have none. */
static gmxfmm_status told(gmxfmm_plan* plan, gmxfmm_status status)
{
    return status == GMXFMM_ERROR_COMM ? fmm_agree(plan, status) : status;
}

static gmxfmm_status assign_all(gmxfmm_plan* plan, const void* x)
{
    struct fmm_divided* d      = plan->divided;
    double              rows   = 0, room;
    gmxfmm_status       status = gather_ids(plan);
    status                     = status == GMXFMM_OK ? make_whole(plan) : status;
    const int64_t before       = status == GMXFMM_OK ? d->whole->particles.n : 0;
    status                     = status == GMXFMM_OK ? follow_box(plan) : status;
    status                     = status == GMXFMM_OK ? gather_charges(plan) : status;
    if (before != d->total)
    {
        forget_rows(d);
    }
    rows   = d->rows_are_new || before != d->total;
    status = status == GMXFMM_OK ? fmm_ranks_reduce(&plan->ranks->comm, FMM_RANKS_MAX, &rows, &room, 1) : status;
    status = status == GMXFMM_OK && rows > 0 ? gather_exclusions(plan) : status;
    status = status == GMXFMM_OK ? gather_positions(plan, x) : status;
    status = status == GMXFMM_OK ? agree_on_whole(plan, gmxfmm_assign(d->whole, d->x.at)) : status;
    for (int r = 0; r <= plan->ranks->comm.size && status == GMXFMM_OK; r++)
    {
        d->sorted[r] = fmm_cpu_first_of_rank(d->whole, r);
    }
    return status;
}

static gmxfmm_status assign(gmxfmm_plan* plan, const void* x)
{
    return told(plan, assign_all(plan, x));
}

/* Results of the particles of the own cells to the ranks that gave them, and those of the own particles to the caller.
 * Collective. */
static gmxfmm_status deliver(gmxfmm_plan* plan, int result, void* to)
{
    struct fmm_divided*     d     = plan->divided;
    const fmm_particle_set* p     = &d->whole->cpu->sources;
    const int               rank  = plan->ranks->comm.rank;
    const size_t            bytes = c_numbers[result] * word_of(plan);
    const char* const       from  = d->result[result].at;
    char* const             all   = d->gathered.at;
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (int64_t s = d->sorted[rank]; s < d->sorted[rank + 1]; s++)
    {
        memcpy(all + (size_t)s * bytes, from + (size_t)p->sorted[s] * bytes, bytes);
    }
    const gmxfmm_status status = fmm_ranks_same_to_all(plan->ranks, bytes, all + (size_t)d->sorted[rank] * bytes,
                                                       d->sorted[rank + 1] - d->sorted[rank], all, d->sorted);
    const int* const    own    = (const int*)d->ids.at + d->start[rank];
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (int64_t i = 0; i < (to != NULL ? plan->particles.n : 0); i++)
    {
        memcpy((char*)to + (size_t)i * bytes, all + (size_t)p->position[own[i]] * bytes, bytes);
    }
    return status;
}

/* Adds the times of a step of the whole plan to those of this one. */
static void take_times(gmxfmm_plan* plan)
{
    const gmxfmm_info* from = &plan->divided->whole->info;
    gmxfmm_info*       to   = &plan->info;
    to->time_spectra += from->time_spectra;
    to->time_permute += from->time_permute;
    to->time_near += from->time_near;
    to->time_p2m += from->time_p2m;
    to->time_m2l += from->time_m2l;
    to->time_l2p += from->time_l2p;
    to->time_output += from->time_output;
    to->num_spectra += from->num_spectra;
    gmxfmm_reset_times(plan->divided->whole);
}

static gmxfmm_status execute_all(gmxfmm_plan* plan, const void* x, gmxfmm_output* output)
{
    struct fmm_divided* d                    = plan->divided;
    void* const         to[c_results]        = {output->force, output->field, output->potential};
    const size_t        word                 = word_of(plan);
    double              wants[c_results + 3] = {0}, room[c_results + 3];
    gmxfmm_output       all                  = {.size = sizeof(all)};
    int                 made                 = 1;
    for (int r = 0; r < c_results; r++)
    {
        wants[r] = to[r] != NULL;
    }
    wants[c_results]     = output->want_energy != 0;
    wants[c_results + 1] = output->want_virial != 0;
    wants[c_results + 2] = d->charges_version != plan->charges.version;
    gmxfmm_status status = fmm_ranks_reduce(&plan->ranks->comm, FMM_RANKS_MAX, wants, room, c_results + 3);
    for (int r = 0; r < c_results && status == GMXFMM_OK; r++)
    {
        made = made && (wants[r] == 0 || renew(&d->result[r], (size_t)d->total, c_numbers[r] * word));
    }
    status = status == GMXFMM_OK ? fmm_agree(plan, made ? GMXFMM_OK : no_memory(plan)) : status;
    status = status == GMXFMM_OK ? follow_box(plan) : status;
    status = status == GMXFMM_OK && wants[c_results + 2] > 0 ? gather_charges(plan) : status;
    status = status == GMXFMM_OK ? gather_positions(plan, x) : status;
    if (status != GMXFMM_OK)
    {
        return status;
    }
    all.force       = wants[c_force] > 0 ? d->result[c_force].at : NULL;
    all.field       = wants[c_field] > 0 ? d->result[c_field].at : NULL;
    all.potential   = wants[c_potential] > 0 ? d->result[c_potential].at : NULL;
    all.want_energy = wants[c_results] > 0;
    all.want_virial = wants[c_results + 1] > 0;
    status          = agree_on_whole(plan, gmxfmm_execute(d->whole, d->x.at, &all));
    take_times(plan);
    output->outside = all.outside;
    for (int r = 0; r < c_results && status == GMXFMM_OK; r++)
    {
        status = wants[r] > 0 ? deliver(plan, r, to[r]) : GMXFMM_OK;
    }
    if (status == GMXFMM_OK && output->want_energy)
    {
        output->energy_near = all.energy_near;
        output->energy_far  = all.energy_far;
    }
    if (status == GMXFMM_OK && output->want_virial)
    {
        memcpy(output->virial, all.virial, sizeof(output->virial));
    }
    return status;
}

static gmxfmm_status execute(gmxfmm_plan* plan, const void* x, gmxfmm_output* output)
{
    return told(plan, execute_all(plan, x, output));
}

/* What the whole plan knows, with the particles and times of this one. */
static void get_info(const gmxfmm_plan* plan, gmxfmm_info* info)
{
    const gmxfmm_info own   = *info;
    gmxfmm_info       whole = {.size = sizeof(whole)};
    if (plan->divided->whole == NULL || gmxfmm_get_info(plan->divided->whole, &whole) != GMXFMM_OK)
    {
        return;
    }
    *info               = whole;
    info->num_particles = own.num_particles;
    info->num_executes  = own.num_executes;
    info->num_spectra   = own.num_spectra;
    info->time_assign   = own.time_assign;
    info->time_spectra  = own.time_spectra;
    info->time_permute  = own.time_permute;
    info->time_near     = own.time_near;
    info->time_p2m      = own.time_p2m;
    info->time_m2l      = own.time_m2l;
    info->time_l2p      = own.time_l2p;
    info->time_output   = own.time_output;
    info->bytes += own.bytes;
}

static unsigned capabilities(const gmxfmm_plan* plan)
{
    (void)plan;
    return GMXFMM_CAN_VIRIAL | GMXFMM_CAN_EXCLUDE;
}

#define NO_STREAM "several ranks take no steps on a stream: use gmxfmm_assign and gmxfmm_execute"

extern const fmm_backend fmm_backend_divided;
const fmm_backend        fmm_backend_divided = {
           .method     = GMXFMM_FMM,
           .device     = GMXFMM_CPU,
           .precisions = 1U << GMXFMM_SINGLE | 1U << GMXFMM_DOUBLE,
           .m2l        = 1U << GMXFMM_M2L_FFT,

           .no_enqueue         = NO_STREAM,
           .no_enqueue_assign  = NO_STREAM,
           .no_enqueue_charges = NO_STREAM,
           .no_time_stages     = NO_STREAM,

           .capabilities   = capabilities,
           .create         = create,
           .destroy        = destroy,
           .set_charges    = set_charges,
           .set_targets    = set_targets,
           .set_exclusions = set_exclusions,
           .on_host        = on_host,
           .assign         = assign,
           .execute        = execute,
           .get_info       = get_info,
};

gmxfmm_status gmxfmm_set_ids(gmxfmm_plan* plan, const int* id)
{
    if (plan == NULL)
    {
        return GMXFMM_ERROR_NULL;
    }
    const int64_t n      = plan->particles.n;
    gmxfmm_status status = GMXFMM_OK;
    if (plan->divided == NULL)
    {
        status = fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED,
                          "particles have numbers of their own where several ranks share an FMM: leave them out");
    }
    else if (plan->charges.q == NULL)
    {
        status = fmm_fail(plan, GMXFMM_ERROR_ORDER, "set_charges must come before set_ids");
    }
    else if (id == NULL && n > 0)
    {
        status = fmm_fail(plan, GMXFMM_ERROR_NULL, "numbers of particles are NULL");
    }
    int* const copy = status == GMXFMM_OK ? malloc((size_t)n * sizeof(int) + 1) : NULL;
    if (status == GMXFMM_OK && copy == NULL)
    {
        status = no_memory(plan);
    }
    status = fmm_agree(plan, status);
    if (status != GMXFMM_OK)
    {
        free(copy);
        return status;
    }
    if (n > 0)
    {
        memcpy(copy, id, (size_t)n * sizeof(int));
    }
    free(plan->divided->id);
    plan->divided->id           = copy;
    plan->divided->num_ids      = n;
    plan->divided->rows_are_new = 1;
    fmm_particles_unassign(plan);
    return GMXFMM_OK;
}
