/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The FMM's row for several ranks: cells of one level in boxes that are periodic along all vectors, on the CPU. Who
 * computes a cell or a frequency changes nothing of it, so that results have the bits of a plan of one rank.
 */
#include <stdlib.h>
#include <string.h>

#include "fmm/backend.h"
#include "fmm/clock.h"
#include "fmm/cpu/ranks.h"
#include "fmm/gmxfmm_parallel.h"
#include "fmm/numbers.h"
#include "fmm/parallel/ranks.h"
#include "fmm/particles.h"
#include "fmm/ranks/state.h"
#include "fmm/state.h"
#include "fmm/status.h"

static const size_t c_numbers[FMM_RESULTS] = {3, 3, 1};

static int64_t* starts(const gmxfmm_plan* plan)
{
    return calloc((size_t)plan->ranks->comm.size + 1, sizeof(int64_t));
}

static gmxfmm_status create(gmxfmm_plan* plan)
{
    struct fmm_divided* d = calloc(1, sizeof(*d));
    plan->divided         = d;
    if (d == NULL)
    {
        return fmm_no_memory(plan);
    }
    d->before        = starts(plan);
    d->gives.start   = starts(plan);
    d->meets.start   = starts(plan);
    d->waits.start   = starts(plan);
    d->returns.start = starts(plan);
    d->asked         = calloc((size_t)plan->ranks->comm.size, sizeof(*d->asked));
    if (!d->before || !d->gives.start || !d->meets.start || !d->waits.start || !d->returns.start || !d->asked)
    {
        return fmm_no_memory(plan);
    }
    if (!fmm_is_bulk(plan) || (plan->options.m2l != GMXFMM_M2L_AUTO && plan->options.m2l != GMXFMM_M2L_FFT))
    {
        return fmm_fail(
            plan, GMXFMM_ERROR_UNSUPPORTED,
            "several ranks share the FMM with m2l = fft or auto in a box that is periodic along all vectors. Choose "
            "these, or method = treecode, or make the plan on one rank (gmxfmm_create)");
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

static void free_lists(fmm_lists* lists)
{
    free(lists->start);
    free(lists->list.at);
}

static void destroy(gmxfmm_plan* plan)
{
    struct fmm_divided* d = plan->divided;
    if (d == NULL)
    {
        return;
    }
    free_exclusions(plan);
    gmxfmm_destroy(d->own);
    free(d->before);
    free(d->asked);
    free(d->id);
    free_lists(&d->gives);
    free_lists(&d->meets);
    free_lists(&d->waits);
    free_lists(&d->returns);
    for (int i = 0; i < FMM_KEPT; i++)
    {
        free(d->kept[i].at);
    }
    free(d->ids.at);
    free(d->index_of.at);
    free(d->x.at);
    free(d->packed.at);
    free(d->received.at);
    for (int r = 0; r < FMM_RESULTS; r++)
    {
        free(d->result[r].at);
    }
    free(d);
    plan->divided = NULL;
}

/* They go to those that meet them in the next assignment or step. Numbers of another number of particles are none of
 * these. */
static gmxfmm_status set_charges(gmxfmm_plan* plan)
{
    struct fmm_divided* d = plan->divided;
    if (d->num_ids != plan->particles.n)
    {
        free(d->id);
        d->id      = NULL;
        d->num_ids = 0;
        d->checks  = 1;
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
    d->checks = 1;
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
        return fmm_no_memory(plan);
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

/* The status, with a message of those that have none. */
static gmxfmm_status told(gmxfmm_plan* plan, gmxfmm_status status)
{
    return status == GMXFMM_ERROR_COMM ? fmm_agree(plan, status) : status;
}

static gmxfmm_status assign(gmxfmm_plan* plan, const void* x)
{
    return told(plan, fmm_ranks_assign(plan, x));
}

/* Items of an array, all or those that a list names. */
typedef struct
{
    void*      array;
    const int* list; /* NULL: all, in order */
} items;

/* Item k of `to` becomes that of `from`. With a constant for bytes a copy is a load and a store. */
static inline void copy_some(items to, items from, int64_t begin, int64_t end, size_t bytes)
{
    for (int64_t k = begin; k < end; k++)
    {
        memcpy((char*)to.array + (size_t)(to.list != NULL ? to.list[k] : k) * bytes,
               (const char*)from.array + (size_t)(from.list != NULL ? from.list[k] : k) * bytes, bytes);
    }
}

/* The same by several threads. Items are of three numbers, or of one. */
static void copy_items(int num_threads, items to, items from, int64_t begin, int64_t end, size_t bytes)
{
    const int64_t c_piece = 4096;
#pragma omp parallel for schedule(static) num_threads(num_threads)
    for (int64_t k = begin; k < end; k += c_piece)
    {
        const int64_t last = k + c_piece < end ? k + c_piece : end;
        switch (bytes)
        {
        case 3 * sizeof(float):
            copy_some(to, from, k, last, 3 * sizeof(float));
            break;
        case 3 * sizeof(double):
            copy_some(to, from, k, last, 3 * sizeof(double));
            break;
        default:
            copy_some(to, from, k, last, bytes);
            break;
        }
    }
}

/* Items that `gives` names to where `takes` has them, on all ranks; into NULL none. Collective. */
static gmxfmm_status exchange(gmxfmm_plan*     plan,
                              size_t           bytes,
                              const fmm_lists* gives,
                              void*            from,
                              const fmm_lists* takes,
                              void*            to,
                              double*          seconds)
{
    struct fmm_divided* d    = plan->divided;
    const int           rank = plan->ranks->comm.rank, size = plan->ranks->comm.size, threads = plan->num_threads;
    const int64_t *     sent = gives->start, *comes = takes->start;
    const items         here = {from, gives->list.at}, there = {to, takes->list.at};
    const items         packed = {d->packed.at, NULL}, received = {d->received.at, NULL};
    copy_items(threads, packed, here, 0, sent[rank], bytes);
    copy_items(threads, packed, here, sent[rank + 1], sent[size], bytes);
    const gmxfmm_status status = fmm_travel_to_others(plan, bytes, packed.array, sent, received.array, comes, seconds);
    if (to != NULL)
    {
        const items own = {from, here.list + sent[rank]}, own_there = {to, there.list + comes[rank]};
        copy_items(threads, own_there, own, 0, sent[rank + 1] - sent[rank], bytes);
        copy_items(threads, there, received, 0, comes[rank], bytes);
        copy_items(threads, there, received, comes[rank + 1], comes[size], bytes);
    }
    return status;
}

/* Positions of given particles to those that meet them. Collective. */
static gmxfmm_status send_positions(gmxfmm_plan* plan, const void* x)
{
    struct fmm_divided* d     = plan->divided;
    const size_t        bytes = 3 * fmm_word_of(plan->options.array_type);
    return exchange(plan, bytes, &d->gives, (void*)(uintptr_t)x, &d->meets, d->x.at, &d->info.time_positions);
}

/* Results of own particles to the ranks that gave them, and those of given particles to the caller. Collective. */
static gmxfmm_status deliver(gmxfmm_plan* plan, int result, void* to)
{
    struct fmm_divided* d     = plan->divided;
    const size_t        bytes = c_numbers[result] * fmm_word_of(plan->options.array_type);
    return exchange(plan, bytes, &d->returns, d->result[result].at, &d->waits, to, &d->info.time_results);
}

/* Adds the times of a step of the own plan, without exchanges, to those of this one, and to what is known of its speed.
 */
static void take_times(gmxfmm_plan* plan)
{
    struct fmm_divided* d      = plan->divided;
    const gmxfmm_info*  from   = &d->own->info;
    gmxfmm_info*        to     = &plan->info;
    fmm_shares*         shares = &d->own->cpu->shares;
    const double cells = from->time_permute + from->time_near + from->time_p2m + from->time_l2p + from->time_output;
    to->time_spectra += from->time_spectra;
    to->time_permute += from->time_permute;
    to->time_near += from->time_near;
    to->time_p2m += from->time_p2m;
    to->time_m2l += from->time_m2l;
    to->time_l2p += from->time_l2p;
    to->time_output += from->time_output;
    to->num_spectra += from->num_spectra;
    d->time_cells = d->steps == 0 || cells < d->time_cells ? cells : d->time_cells;
    d->time_rest  = d->steps == 0 || from->time_m2l < d->time_rest ? from->time_m2l : d->time_rest;
    d->steps++;
    d->info.time_work += cells + from->time_m2l;
    d->info.time_expansions += shares->time_expansions;
    d->info.time_spectra += shares->time_spectra;
    d->info.time_sums += shares->time_sums;
    d->info.bytes_sent += shares->sent;
    d->info.bytes_received += shares->received;
    d->info.messages += shares->messages;
    shares->time_expansions = shares->time_spectra = shares->time_sums = 0;
    shares->sent = shares->received = 0;
    shares->messages                = 0;
    gmxfmm_reset_times(d->own);
}

enum
{
    c_energy  = 1 << FMM_RESULTS,
    c_virial  = c_energy << 1,
    c_charges = c_energy << 2 /* they are new */
};

/* What any rank wants of a step. Collective. */
static gmxfmm_status ask(gmxfmm_plan* plan, const gmxfmm_output* output, uint64_t* wanted)
{
    struct fmm_divided* d               = plan->divided;
    void* const         to[FMM_RESULTS] = {output->force, output->field, output->potential};
    uint64_t            own             = 0;
    const double        begin           = fmm_time();
    for (int r = 0; r < FMM_RESULTS; r++)
    {
        own |= to[r] != NULL ? 1U << r : 0;
    }
    own |= output->want_energy ? c_energy : 0;
    own |= output->want_virial ? c_virial : 0;
    own |= d->charges_version != plan->charges.version ? c_charges : 0;
    const gmxfmm_status status = fmm_ranks_all_gather(&plan->ranks->comm, &own, sizeof(own), d->asked);
    *wanted                    = 0;
    for (int r = 0; r < plan->ranks->comm.size; r++)
    {
        *wanted |= d->asked[r];
    }
    d->info.time_sums += fmm_time() - begin;
    return status;
}

static gmxfmm_status execute_all(gmxfmm_plan* plan, const void* x, gmxfmm_output* output)
{
    struct fmm_divided* d               = plan->divided;
    void* const         to[FMM_RESULTS] = {output->force, output->field, output->potential};
    gmxfmm_output       all             = {.size = sizeof(all)};
    uint64_t            wanted;
    d->info.bytes_sent = d->info.bytes_received = 0; /* of a step */
    d->info.messages                            = 0;
    gmxfmm_status status                        = ask(plan, output, &wanted);
    status                                      = status == GMXFMM_OK ? fmm_follow_box(plan) : status;
    status = status == GMXFMM_OK && (wanted & c_charges) ? fmm_ranks_charges(plan) : status;
    status = status == GMXFMM_OK ? send_positions(plan, x) : status;
    if (status != GMXFMM_OK)
    {
        return status;
    }
    void** const into[FMM_RESULTS] = {&all.force, &all.field, &all.potential};
    for (int r = 0; r < FMM_RESULTS; r++)
    {
        *into[r] = wanted >> r & 1 ? d->result[r].at : NULL;
    }
    all.want_energy = (wanted & c_energy) != 0;
    all.want_virial = (wanted & c_virial) != 0;
    status          = gmxfmm_execute(d->own, d->x.at, &all);
    take_times(plan);
    const double begin = fmm_time();
    status             = fmm_agree_on_own(plan, status);
    d->info.time_results += fmm_time() - begin;
    output->outside = all.outside;
    for (int r = 0; r < FMM_RESULTS && status == GMXFMM_OK; r++)
    {
        status = wanted >> r & 1 ? deliver(plan, r, to[r]) : GMXFMM_OK;
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

/* What the own plan knows, with the particles and times of this one. */
static void get_info(const gmxfmm_plan* plan, gmxfmm_info* info)
{
    const gmxfmm_info own   = *info;
    gmxfmm_info       whole = {.size = sizeof(whole)};
    if (plan->divided->own == NULL || gmxfmm_get_info(plan->divided->own, &whole) != GMXFMM_OK)
    {
        return;
    }
    *info                = whole;
    info->near_particles = plan->divided->near_particles > 0 ? plan->divided->near_particles : whole.near_particles;
    info->num_particles  = own.num_particles;
    info->num_executes   = own.num_executes;
    info->num_spectra    = own.num_spectra;
    info->time_assign    = own.time_assign;
    info->time_spectra   = own.time_spectra;
    info->time_permute   = own.time_permute;
    info->time_near      = own.time_near;
    info->time_p2m       = own.time_p2m;
    info->time_m2l       = own.time_m2l;
    info->time_l2p       = own.time_l2p;
    info->time_output    = own.time_output;
    info->bytes += own.bytes;
}

static void get_ranks_info(const gmxfmm_plan* plan, gmxfmm_ranks_info* info)
{
    const struct fmm_divided* d = plan->divided;
    *info                       = d->info;
    info->reached_note          = "";
    if (d->own == NULL || d->own->cpu == NULL)
    {
        return;
    }
    const fmm_range cells = fmm_own_cells(d->own);
    const int64_t   meets = d->meets.start[plan->ranks->comm.size];
    info->num_cells       = cells.end - cells.begin;
    info->num_particles   = d->num_own;
    info->num_imported    = meets - d->num_own;
}

static void reset_ranks_times(gmxfmm_plan* plan)
{
    memset(&plan->divided->info, 0, sizeof(plan->divided->info));
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

           .get_ranks_info    = get_ranks_info,
           .reset_ranks_times = reset_ranks_times,
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
        status = fmm_no_memory(plan);
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
    plan->divided->id      = copy;
    plan->divided->num_ids = n;
    plan->divided->checks  = 1;
    fmm_particles_unassign(plan);
    return GMXFMM_OK;
}
