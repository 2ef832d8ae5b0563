/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The assignment of particles to the cells of several ranks: which rank has which cells, and who needs which particles.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/charges.h"
#include "fmm/cpu/particles/particles.h"
#include "fmm/cpu/ranks.h"
#include "fmm/math/threads.h"
#include "fmm/numbers.h"
#include "fmm/parallel/ranks.h"
#include "fmm/particles.h"
#include "fmm/plan.h"
#include "fmm/ranks/state.h"
#include "fmm/state.h"
#include "fmm/status.h"

/* A particle on its way to a rank. */
typedef struct
{
    double x[3], q;
    int    id;
    int    num_excluded; /* -1: another rank computes its results */
} traveller;

/* What an assignment needs for itself. */
typedef struct
{
    int *    first, *ranks;   /* of each cell, where the ranks that need its particles begin, the owner first */
    int      num, room;       /* of ranks */
    int64_t *counts, *others; /* size + 1 */
    int64_t* of_chunk;        /* what chunks of a loop count, each from a multiple of chunk_room on */
    int      num_chunks, chunk_room;
    int64_t *list_start, *list_comes;
    int*     missing; /* numbers that own particles exclude and this rank does not meet */
    int64_t  num_missing;

    /* Kept for the next one */
    int*       cell; /* n: of each given particle */
    traveller *sent, *received;
    int *      list, *list_received; /* exclusions on their way */
    int *      rows, *partners;      /* of the own plan */
    void*      charges;
} scratch;

/* Room for so many items, or NULL. */
static void* keep(struct fmm_divided* d, fmm_kept which, size_t num, size_t bytes)
{
    return fmm_room_renew(&d->kept[which], num, bytes) ? d->kept[which].at : NULL;
}

static void free_scratch(scratch* s)
{
    void* const all[] = {s->first,      s->ranks,      s->counts,  s->others,
                         s->list_start, s->list_comes, s->missing, s->of_chunk};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
    {
        free(all[i]);
    }
}

static int size_of(const gmxfmm_plan* plan)
{
    return plan->ranks->comm.size;
}

/* Threads that share a loop over so many items: a chunk each, in their order. */
static int chunks_for(const scratch* s, int64_t num)
{
    return num > FMM_FEW_PARTICLES ? s->num_chunks : 1;
}

/* Where chunk c of num begins, of items begin .. end - 1; that of c = num: where the last one ends. */
static int64_t chunk_begin(int64_t begin, int64_t end, int c, int num)
{
    return begin + (end - begin) * c / num;
}

/* What chunks have counted at this place becomes where each begins, from `at` on. Returns where the last one ends. */
static int64_t chunks_follow(scratch* s, int num, int place, int64_t at)
{
    for (int c = 0; c < num; c++)
    {
        int64_t* const count = &s->of_chunk[c * s->chunk_room + place];
        const int64_t  next  = at + *count;
        *count               = at;
        at                   = next;
    }
    return at;
}

/* Adds up counts: start[r + 1] becomes the end of what rank r has. */
static void add_up(int64_t* start, int size)
{
    start[0] = 0;
    for (int r = 0; r < size; r++)
    {
        start[r + 1] += start[r];
    }
}

/* How many particles ranks were given; whether any of them has new numbers or exclusions. Errors: OPTION. */
static gmxfmm_status count_given(gmxfmm_plan* plan)
{
    struct fmm_divided* d      = plan->divided;
    const int64_t       own[2] = {plan->particles.n, d->checks};
    int64_t* const      all    = malloc(2 * (size_t)size_of(plan) * sizeof(int64_t));
    gmxfmm_status       status = fmm_agree(plan, all != NULL ? GMXFMM_OK : fmm_no_memory(plan));
    status = status == GMXFMM_OK ? fmm_ranks_all_gather(&plan->ranks->comm, own, sizeof(own), all) : status;
    for (int r = 0; r < size_of(plan) && status == GMXFMM_OK; r++)
    {
        d->before[r + 1] = all[2 * r];
        d->checks |= all[2 * r + 1] != 0;
    }
    free(all);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    add_up(d->before, size_of(plan));
    d->total = d->before[size_of(plan)];
    return d->total <= INT32_MAX / 4
               ? GMXFMM_OK
               : fmm_agree(plan, fmm_fail(plan, GMXFMM_ERROR_OPTION, "all ranks have %lld particles, allowed are %d",
                                          (long long)d->total, INT32_MAX / 4));
}

/* The own plan, chosen for as many particles as there are first, with cells for the box as it is. */
static gmxfmm_status make_own(gmxfmm_plan* plan)
{
    struct fmm_divided* d       = plan->divided;
    gmxfmm_options      options = plan->options;
    gmxfmm_status       status  = GMXFMM_OK;
    options.m2l                 = GMXFMM_M2L_FFT;
    if (d->own == NULL)
    {
        status         = fmm_create_shared(&d->own, &options, d->total, plan->domain.given, plan->ranks, plan->message,
                                           sizeof(plan->message));
        d->box_version = plan->domain.version;
        status         = fmm_agree(plan, status);
        if (status != GMXFMM_OK) /* all ranks have one, or none */
        {
            gmxfmm_destroy(d->own);
            d->own = NULL;
        }
    }
    else
    {
        status = fmm_follow_box(plan);
    }
    return status == GMXFMM_OK ? fmm_agree_on_own(plan, fmm_make_cells(d->own)) : status;
}

/* The cell of each given particle. Errors: POSITION. */
static gmxfmm_status find_cells(gmxfmm_plan* plan, const void* x, scratch* s)
{
    const int64_t n = plan->particles.n;
    s->cell         = keep(plan->divided, FMM_KEPT_CELLS, (size_t)n, sizeof(int));
    if (s->cell == NULL)
    {
        return fmm_no_memory(plan);
    }
    const int64_t bad = fmm_find_cells(plan->divided->own, x, plan->options.array_type, n, s->cell);
    double        xi[3];
    for (size_t e = 0; e < 3 && bad < n; e++)
    {
        xi[e] = fmm_number_of(x, plan->options.array_type, 3 * bad + (int64_t)e);
    }
    return bad == n ? GMXFMM_OK
                    : fmm_fail(plan, GMXFMM_ERROR_POSITION,
                               "position of particle %d is (%g, %g, %g): not finite, or too far away",
                               fmm_given_id(plan, bad), xi[0], xi[1], xi[2]);
}

/* Work of a particle beside that of its pairs, in pairs: expansions, and sorting. */
static const double c_pairsOfParticle = 60;

/* work[num_cells + 1]: that of all cells before each, from the particles of rows of cells along z, which cells of a row
 * have as many of. in_row[n0 n1]: these of all ranks. */
static void add_up_work(const fmm_cells* cells, const double* in_row, double* work)
{
    const int *n = cells->n, r = cells->near_reach;
    work[0] = 0;
    for (int row = 0; row < n[0] * n[1]; row++)
    {
        double near = c_pairsOfParticle * n[2];
        for (int o = 0; o < cells->num_near && in_row[row] > 0; o++)
        {
            const int* k = cells->near[o];
            near += in_row[cells->wrap[0][row / n[1] + k[0] + r] * n[1] + cells->wrap[1][row % n[1] + k[1] + r]];
        }
        for (int z = 0; z < n[2]; z++)
        {
            const int cell = row * n[2] + z;
            work[cell + 1] = work[cell] + in_row[row] / n[2] * near / n[2];
        }
    }
}

/* What is known of a rank. */
typedef struct
{
    double speed, extra, learned;
} rank_speed;

/* What the steps since the last assignment took goes into what is known of this rank's speed: into a mean over some ten
 * assignments, as what else a core does comes and goes. */
static void learn_speed(struct fmm_divided* d)
{
    enum
    {
        c_leastSteps = 2,
        c_most       = 10 /* assignments */
    };
    if (d->steps >= c_leastSteps && d->work > 0 && d->time_cells > 0)
    {
        d->learned += d->learned < c_most;
        d->speed += (d->work / d->time_cells - d->speed) / d->learned;
        d->extra += (d->time_rest - d->extra) / d->learned;
    }
    d->steps = 0;
}

/* Speeds of all ranks: at first, or where that of one is not known, they are much the same, and none is ever far from
 * the mean. */
static void even_out(int size, const rank_speed* known, double* speed, double* extra)
{
    const double c_doubt = 3; /* assignments after which half of what was measured counts */
    double       sum = 0, mean_extra = 0, least = INFINITY;
    for (int r = 0; r < size; r++)
    {
        sum += known[r].speed / size;
        mean_extra += known[r].extra / size;
        least = fmin(least, known[r].learned);
    }
    for (int r = 0; r < size; r++)
    {
        const double mean = least > 0 ? sum : 1, trust = least / (least + c_doubt);
        const double own = mean + trust * (known[r].speed - mean);
        speed[r]         = least > 0 ? fmin(fmax(own, 0.8 * mean), 1.25 * mean) : 1;
        extra[r]         = least > 0 ? mean_extra + trust * (known[r].extra - mean_extra) : 0;
    }
}

/* Ranges of cells, by the work in them and the speed of ranks. Collective. */
static gmxfmm_status divide_cells(gmxfmm_plan* plan, const scratch* s)
{
    struct fmm_divided* d     = plan->divided;
    gmxfmm_plan*        own   = d->own;
    const fmm_cells*    cells = &own->domain.cells;
    const int           size = size_of(plan), num = cells->n[0] * cells->n[1], rows = own->cpu->partial_rows;
    double* const       memory =
        malloc((2 * (size_t)num + (size_t)cells->num_cells + 1 + (size_t)rows + 2 * (size_t)size) * sizeof(double));
    rank_speed* const all    = malloc((size_t)size * sizeof(*all));
    gmxfmm_status     status = fmm_agree(plan, memory != NULL && all != NULL ? GMXFMM_OK : fmm_no_memory(plan));
    if (status != GMXFMM_OK)
    {
        free(memory);
        free(all);
        return status;
    }
    double *const in_row = memory, *const work = memory + 2 * num, *const of_row = work + cells->num_cells + 1;
    double *const speed = of_row + rows, *const extra = speed + size;
    learn_speed(d);
    const rank_speed known = {d->speed, d->extra, d->learned};
    memset(in_row, 0, (size_t)num * sizeof(*in_row));
    for (int64_t i = 0; i < plan->particles.n; i++)
    {
        in_row[s->cell[i] / cells->n[2]]++;
    }
    status = fmm_ranks_reduce(&plan->ranks->comm, FMM_RANKS_SUM, in_row, in_row + num, (size_t)num);
    status = status == GMXFMM_OK ? fmm_ranks_all_gather(&plan->ranks->comm, &known, sizeof(known), all) : status;
    if (status == GMXFMM_OK)
    {
        add_up_work(cells, in_row, work);
        for (int row = 0; row < rows; row++)
        {
            of_row[row] = work[fmm_row_cell(own, row + 1)] - work[fmm_row_cell(own, row)];
        }
        even_out(size, all, speed, extra);
        fmm_shares_by_work(own, of_row, speed, extra);
        const fmm_range mine_now = fmm_own_cells(own);
        d->work                  = work[mine_now.end] - work[mine_now.begin];
    }
    free(memory);
    free(all);
    return status;
}

/* Adds a rank to those of the last cell. Returns 0 without memory. */
static int add_rank(scratch* s, int rank)
{
    if (s->num == s->room)
    {
        const int  room  = 2 * s->room + 64;
        int* const ranks = realloc(s->ranks, (size_t)room * sizeof(int));
        if (ranks == NULL)
        {
            return 0;
        }
        s->ranks = ranks;
        s->room  = room;
    }
    s->ranks[s->num++] = rank;
    return 1;
}

/* The ranks that need the particles of each cell in which there are given ones, -1 behind them. */
static gmxfmm_status find_needs(gmxfmm_plan* plan, scratch* s)
{
    const gmxfmm_plan* own   = plan->divided->own;
    const fmm_cells*   cells = &own->domain.cells;
    int* const         owner = malloc((size_t)cells->num_cells * sizeof(int));
    int                there = owner != NULL;
    s->first                 = malloc((size_t)cells->num_cells * sizeof(int));
    there                    = there && s->first != NULL;
    for (int r = 0; r < size_of(plan) && there; r++)
    {
        const fmm_range range = fmm_cells_of_rank(own, r);
        for (int cell = range.begin; cell < range.end; cell++)
        {
            owner[cell]    = r;
            s->first[cell] = -1;
        }
    }
    for (int64_t i = 0; i < plan->particles.n && there; i++)
    {
        const int cell = s->cell[i];
        int       at[3];
        if (s->first[cell] >= 0)
        {
            continue;
        }
        s->first[cell] = s->num;
        fmm_cell_place(own, cell, at);
        there = add_rank(s, owner[cell]);
        for (int o = 0; o < cells->num_near && there; o++)
        {
            const int rank = owner[fmm_near_cell(cells, at, o)];
            int       k    = s->first[cell];
            while (k < s->num && s->ranks[k] != rank)
            {
                k++;
            }
            there = k < s->num || add_rank(s, rank);
        }
        there = there && add_rank(s, -1);
    }
    free(owner);
    return there ? GMXFMM_OK : fmm_no_memory(plan);
}

/* A number that a rank needs beside those of its near cells. */
typedef struct
{
    int rank, given;
} wish;

/* Which given particles go to each rank: those of cells that it needs, and wishes, which ascend by rank. */
static gmxfmm_status list_given(gmxfmm_plan* plan, scratch* s, const wish* wishes, int64_t num_wishes)
{
    struct fmm_divided* d     = plan->divided;
    const int           size  = size_of(plan);
    const int64_t       n     = plan->particles.n;
    const int           num   = chunks_for(s, n);
    int64_t* const      start = d->gives.start;
    memset(start, 0, ((size_t)size + 1) * sizeof(*start));
    for (int64_t k = 0; k < num_wishes; k++)
    {
        start[wishes[k].rank + 1]++;
    }
#pragma omp parallel for schedule(static, 1) num_threads(num)
    for (int c = 0; c < num; c++)
    {
        int64_t* const count = &s->of_chunk[c * s->chunk_room];
        memset(count, 0, (size_t)size * sizeof(*count));
        for (int64_t i = chunk_begin(0, n, c, num); i < chunk_begin(0, n, c + 1, num); i++)
        {
            for (const int* r = s->ranks + s->first[s->cell[i]]; *r >= 0; r++)
            {
                count[*r]++;
            }
        }
    }
    for (int r = 0; r < size; r++) /* wishes behind those of cells */
    {
        s->counts[r] = chunks_follow(s, num, r, start[r]);
        start[r + 1] += s->counts[r];
    }
    if (!fmm_room_renew(&d->gives.list, (size_t)start[size], sizeof(int)))
    {
        return fmm_no_memory(plan);
    }
    int* const list = d->gives.list.at;
#pragma omp parallel for schedule(static, 1) num_threads(num)
    for (int c = 0; c < num; c++)
    {
        int64_t* const at = &s->of_chunk[c * s->chunk_room];
        for (int64_t i = chunk_begin(0, n, c, num); i < chunk_begin(0, n, c + 1, num); i++)
        {
            for (const int* r = s->ranks + s->first[s->cell[i]]; *r >= 0; r++)
            {
                list[at[*r]++] = (int)i;
            }
        }
    }
    for (int64_t k = 0; k < num_wishes; k++)
    {
        list[s->counts[wishes[k].rank]++] = wishes[k].given;
    }
    return GMXFMM_OK;
}

/* Given particle i on its way to a rank. Returns how many exclusions go along. */
static int pack(const gmxfmm_plan* plan, const scratch* s, const void* x, int i, int rank, traveller* to)
{
    const struct fmm_divided* d    = plan->divided;
    const int                 mine = s->ranks[s->first[s->cell[i]]] == rank, some = mine && d->excl_start != NULL;
    to->id           = fmm_given_id(plan, i);
    to->q            = plan->charges.q[i];
    to->num_excluded = !mine ? -1 : some ? d->excl_start[i + 1] - d->excl_start[i] : 0;
    for (size_t e = 0; e < 3; e++)
    {
        to->x[e] = fmm_number_of(x, plan->options.array_type, 3 * (int64_t)i + (int64_t)e);
    }
    return mine ? to->num_excluded : 0;
}

/* Given particles with what goes along, and entries of exclusions, from `at` on, that go to rank r. Returns where these
 * end. */
static int64_t pack_for(gmxfmm_plan* plan, scratch* s, const void* x, int r, int64_t at)
{
    const struct fmm_divided* d     = plan->divided;
    const int*                given = d->gives.list.at;
    const int64_t             begin = d->gives.start[r], end = d->gives.start[r + 1];
    const int                 num = chunks_for(s, end - begin);
#pragma omp parallel for schedule(static, 1) num_threads(num)
    for (int c = 0; c < num; c++)
    {
        int64_t count = 0;
        for (int64_t k = chunk_begin(begin, end, c, num); k < chunk_begin(begin, end, c + 1, num); k++)
        {
            count += pack(plan, s, x, given[k], r, &s->sent[k]);
        }
        s->of_chunk[c * s->chunk_room] = count;
    }
    const int64_t next = chunks_follow(s, num, 0, at);
#pragma omp parallel for schedule(static, 1) num_threads(num) if (next > at)
    for (int c = 0; c < (next > at ? num : 0); c++)
    {
        int* to = s->list + s->of_chunk[c * s->chunk_room];
        for (int64_t k = chunk_begin(begin, end, c, num); k < chunk_begin(begin, end, c + 1, num); k++)
        {
            const int* const from = d->excl_list + d->excl_start[given[k]];
            for (int e = 0; e < s->sent[k].num_excluded; e++)
            {
                *to++ = from[e];
            }
        }
    }
    return next;
}

/* The same for all ranks. */
static gmxfmm_status pack_given(gmxfmm_plan* plan, scratch* s, const void* x)
{
    struct fmm_divided* d    = plan->divided;
    const int           size = size_of(plan);
    const int64_t num = d->gives.start[size], entries = d->excl_start != NULL ? d->excl_start[plan->particles.n] : 0;
    s->sent = keep(d, FMM_KEPT_SENT, (size_t)num, sizeof(*s->sent));
    s->list = keep(d, FMM_KEPT_LIST, (size_t)entries, sizeof(int));
    if (s->sent == NULL || s->list == NULL)
    {
        return fmm_no_memory(plan);
    }
    s->list_start[0] = 0;
    for (int r = 0; r < size; r++)
    {
        s->list_start[r + 1] = pack_for(plan, s, x, r, s->list_start[r]);
    }
    return GMXFMM_OK;
}

/* Numbers of items that come, from those that go. Collective. */
static gmxfmm_status count_coming(gmxfmm_plan* plan, scratch* s, const int64_t* start, int64_t* comes)
{
    const int size = size_of(plan);
    for (int r = 0; r < size; r++)
    {
        s->counts[r] = start[r + 1] - start[r];
    }
    const gmxfmm_status status = fmm_ranks_one_each(plan->ranks, sizeof(int64_t), s->counts, comes + 1);
    add_up(comes, size);
    return status;
}

/* Particles and exclusions to those that meet them. Collective. */
static gmxfmm_status send_given(gmxfmm_plan* plan, scratch* s)
{
    struct fmm_divided* d    = plan->divided;
    const int           size = size_of(plan);
    double* const       time = &d->info.time_travel;
    const size_t        sent = d->info.bytes_sent, received = d->info.bytes_received;
    const int64_t       messages = d->info.messages; /* of the last step */
    gmxfmm_status       status   = count_coming(plan, s, d->gives.start, d->meets.start);
    status                       = status == GMXFMM_OK ? count_coming(plan, s, s->list_start, s->list_comes) : status;
    if (status != GMXFMM_OK)
    {
        return status;
    }
    s->received            = keep(d, FMM_KEPT_RECEIVED, (size_t)d->meets.start[size], sizeof(*s->received));
    s->list_received       = keep(d, FMM_KEPT_LIST_RECEIVED, (size_t)s->list_comes[size], sizeof(int));
    status                 = fmm_agree(plan, s->received && s->list_received ? GMXFMM_OK : fmm_no_memory(plan));
    status                 = status == GMXFMM_OK
                                 ? fmm_travel(plan, sizeof(traveller), s->sent, d->gives.start, s->received, d->meets.start, time)
                                 : status;
    status                 = status == GMXFMM_OK
                                 ? fmm_travel(plan, sizeof(int), s->list, s->list_start, s->list_received, s->list_comes, time)
                                 : status;
    d->info.bytes_sent     = sent;
    d->info.bytes_received = received;
    d->info.messages       = messages;
    return status;
}

enum
{
    c_digitBits = 11,
    c_digits    = 1 << c_digitBits
};

/* Sorts items from[n] to to[n] by a digit of the numbers of their particles, equal ones as they are. */
static void sort_by_digit(scratch* s, int64_t n, int shift, const int* from, int* to)
{
    const traveller* const t   = s->received;
    const int              num = chunks_for(s, n);
#pragma omp parallel for schedule(static, 1) num_threads(num)
    for (int c = 0; c < num; c++)
    {
        int64_t* const count = &s->of_chunk[c * s->chunk_room];
        memset(count, 0, c_digits * sizeof(*count));
        for (int64_t k = chunk_begin(0, n, c, num); k < chunk_begin(0, n, c + 1, num); k++)
        {
            count[t[from[k]].id >> shift & (c_digits - 1)]++;
        }
    }
    int64_t at = 0;
    for (int digit = 0; digit < c_digits; digit++)
    {
        at = chunks_follow(s, num, digit, at);
    }
#pragma omp parallel for schedule(static, 1) num_threads(num)
    for (int c = 0; c < num; c++)
    {
        int64_t* const place = &s->of_chunk[c * s->chunk_room];
        for (int64_t k = chunk_begin(0, n, c, num); k < chunk_begin(0, n, c + 1, num); k++)
        {
            to[place[t[from[k]].id >> shift & (c_digits - 1)]++] = from[k];
        }
    }
}

/* Places of the n particles received, by their numbers; room[2 n], in half of which they are. */
static const int* sort_by_id(scratch* s, int64_t n, int* room)
{
    const traveller* const t    = s->received;
    const int              num  = chunks_for(s, n);
    int                    most = 0;
#pragma omp parallel for schedule(static) num_threads(num) reduction(max : most)
    for (int64_t k = 0; k < n; k++)
    {
        room[k] = (int)k;
        most    = t[k].id > most ? t[k].id : most;
    }
    int *from = room, *to = room + n;
    for (int shift = 0; shift < 31 && most >> shift > 0; shift += c_digitBits)
    {
        sort_by_digit(s, n, shift, from, to);
        int* const other = from;
        from             = to;
        to               = other;
    }
    return from;
}

/* Places in the own plan of the particles received: in the order of their numbers. */
static gmxfmm_status place_received(gmxfmm_plan* plan, scratch* s)
{
    struct fmm_divided* d    = plan->divided;
    const int64_t       num  = d->meets.start[size_of(plan)];
    int* const          room = keep(d, FMM_KEPT_ORDER, 2 * (size_t)num, sizeof(int));
    /* one that was not set may be anything: what is at its place has another number */
    if (d->index_of.bytes < (size_t)d->total * sizeof(int))
    {
        free(d->index_of.at);
        d->index_of.at    = calloc((size_t)d->total + 1, sizeof(int));
        d->index_of.bytes = d->index_of.at != NULL ? (size_t)d->total * sizeof(int) : 0;
    }
    if (room == NULL || d->index_of.at == NULL || !fmm_room_renew(&d->ids, (size_t)num, sizeof(int)) ||
        !fmm_room_renew(&d->meets.list, (size_t)num, sizeof(int)))
    {
        return fmm_no_memory(plan);
    }
    const int* const order = sort_by_id(s, num, room);
    int *const ids = d->ids.at, *const index_of = d->index_of.at, *const list = d->meets.list.at;
#pragma omp parallel for schedule(static) num_threads(chunks_for(s, num))
    for (int64_t i = 0; i < num; i++)
    {
        const int id   = s->received[order[i]].id;
        ids[i]         = id;
        index_of[id]   = (int)i;
        list[order[i]] = (int)i;
    }
    return GMXFMM_OK;
}

/* Where the particle of this number is in the own plan, or -1. */
static int index_in_own(const struct fmm_divided* d, int64_t num, int id)
{
    const int at = ((const int*)d->index_of.at)[id];
    return at < num && ((const int*)d->ids.at)[at] == id ? at : -1;
}

static int earlier(const void* a, const void* b)
{
    const int i = *(const int*)a, j = *(const int*)b;
    return (i > j) - (i < j);
}

/* Numbers that own particles exclude and that have not come, each once. */
static gmxfmm_status find_missing(gmxfmm_plan* plan, scratch* s)
{
    const struct fmm_divided* d   = plan->divided;
    const int64_t             num = d->meets.start[size_of(plan)], entries = s->list_comes[size_of(plan)];
    int64_t                   missing = 0;
#pragma omp parallel for schedule(static) num_threads(chunks_for(s, entries)) reduction(+ : missing)
    for (int64_t e = 0; e < entries; e++)
    {
        missing += index_in_own(d, num, s->list_received[e]) < 0;
    }
    s->num_missing = 0;
    s->missing     = malloc((size_t)missing * sizeof(int) + 1);
    if (s->missing == NULL)
    {
        return fmm_no_memory(plan);
    }
    for (int64_t e = 0, k = 0; e < entries && k < missing; e++)
    {
        if (index_in_own(d, num, s->list_received[e]) < 0)
        {
            s->missing[k++] = s->list_received[e];
        }
    }
    qsort(s->missing, (size_t)missing, sizeof(int), earlier);
    for (int64_t k = 0; k < missing; k++)
    {
        if (k == 0 || s->missing[k] != s->missing[s->num_missing - 1])
        {
            s->missing[s->num_missing++] = s->missing[k];
        }
    }
    return GMXFMM_OK;
}

/* Of the numbers that ranks miss, those of given particles. Errors: MEMORY. */
static gmxfmm_status
find_wishes(gmxfmm_plan* plan, const int* all, const int64_t* start, wish** wishes, int64_t* num_wishes)
{
    const struct fmm_divided* d     = plan->divided;
    const int                 size  = size_of(plan);
    int* const                given = calloc((size_t)d->total + 1, sizeof(int)); /* 1 + which one */
    *num_wishes                     = 0;
    *wishes                         = malloc((size_t)start[size] * sizeof(**wishes) + 1);
    if (given == NULL || *wishes == NULL)
    {
        free(given);
        return fmm_no_memory(plan);
    }
    for (int64_t i = 0; i < plan->particles.n; i++)
    {
        given[fmm_given_id(plan, i)] = (int)i + 1;
    }
    for (int r = 0; r < size; r++)
    {
        for (int64_t k = start[r]; k < start[r + 1]; k++)
        {
            if (given[all[k]] > 0)
            {
                (*wishes)[(*num_wishes)++] = (wish){r, given[all[k]] - 1};
            }
        }
    }
    free(given);
    return GMXFMM_OK;
}

/* Sends all once more, with what ranks miss, where any does. Collective. */
static gmxfmm_status send_missing(gmxfmm_plan* plan, scratch* s, const void* x)
{
    const int     size   = size_of(plan);
    int*          all    = NULL;
    wish*         wishes = NULL;
    int64_t       num    = 0;
    gmxfmm_status status = fmm_ranks_all_gather(&plan->ranks->comm, &s->num_missing, sizeof(int64_t), s->others + 1);
    add_up(s->others, size);
    if (status != GMXFMM_OK || s->others[size] == 0)
    {
        return status;
    }
    all    = malloc((size_t)s->others[size] * sizeof(int));
    status = fmm_agree(plan, all != NULL ? GMXFMM_OK : fmm_no_memory(plan));
    if (status == GMXFMM_OK)
    {
        memcpy(all + s->others[plan->ranks->comm.rank], s->missing, (size_t)s->num_missing * sizeof(int));
        status = fmm_ranks_same_to_all(plan->ranks, sizeof(int), s->missing, s->num_missing, all, s->others);
    }
    if (status == GMXFMM_OK)
    {
        status = find_wishes(plan, all, s->others, &wishes, &num);
        status = status == GMXFMM_OK ? list_given(plan, s, wishes, num) : status;
        status = status == GMXFMM_OK ? pack_given(plan, s, x) : status;
        status = fmm_agree(plan, status);
        status = status == GMXFMM_OK ? send_given(plan, s) : status;
        status = status == GMXFMM_OK ? fmm_agree(plan, place_received(plan, s)) : status;
    }
    free(all);
    free(wishes);
    return status;
}

/* Of items begin .. end - 1 of a list those whose particles' results go back: to `to`, from `at` on. Returns where they
 * end. */
static int64_t
select_own(scratch* s, const traveller* t, const int* list, int64_t begin, int64_t end, int* to, int64_t at)
{
    const int num = chunks_for(s, end - begin);
#pragma omp parallel for schedule(static, 1) num_threads(num)
    for (int c = 0; c < num; c++)
    {
        int64_t count = 0;
        for (int64_t k = chunk_begin(begin, end, c, num); k < chunk_begin(begin, end, c + 1, num); k++)
        {
            count += t[k].num_excluded >= 0;
        }
        s->of_chunk[c * s->chunk_room] = count;
    }
    const int64_t next = chunks_follow(s, num, 0, at);
#pragma omp parallel for schedule(static, 1) num_threads(num)
    for (int c = 0; c < num; c++)
    {
        int64_t place = s->of_chunk[c * s->chunk_room];
        for (int64_t k = chunk_begin(begin, end, c, num); k < chunk_begin(begin, end, c + 1, num); k++)
        {
            if (t[k].num_excluded >= 0)
            {
                to[place++] = list[k];
            }
        }
    }
    return next;
}

/* Who gets which results, and what gives memory to a step. */
static gmxfmm_status list_results(gmxfmm_plan* plan, scratch* s)
{
    struct fmm_divided* d    = plan->divided;
    const int           size = size_of(plan);
    const int64_t       sent = d->gives.start[size], met = d->meets.start[size];
    const size_t        word = fmm_word_of(plan->options.array_type), most = (size_t)(sent > met ? sent : met);
    int                 there = fmm_room_renew(&d->waits.list, (size_t)sent, sizeof(int)) &&
                fmm_room_renew(&d->returns.list, (size_t)met, sizeof(int)) &&
                fmm_room_renew(&d->x, (size_t)met, 3 * word) && fmm_room_renew(&d->packed, most, 3 * sizeof(double)) &&
                fmm_room_renew(&d->received, most, 3 * sizeof(double));
    for (int i = 0; i < FMM_RESULTS; i++)
    {
        there = there && fmm_room_renew(&d->result[i], (size_t)met, 3 * word);
    }
    if (!there)
    {
        return fmm_no_memory(plan);
    }
    d->waits.start[0] = d->returns.start[0] = 0;
    for (int r = 0; r < size; r++)
    {
        d->waits.start[r + 1]   = select_own(s, s->sent, d->gives.list.at, d->gives.start[r], d->gives.start[r + 1],
                                             d->waits.list.at, d->waits.start[r]);
        d->returns.start[r + 1] = select_own(s, s->received, d->meets.list.at, d->meets.start[r], d->meets.start[r + 1],
                                             d->returns.list.at, d->returns.start[r]);
    }
    d->num_own = d->returns.start[size];
    return GMXFMM_OK;
}

/* Exclusions of own particles, as rows of the own plan: rows[num + 1], partners. */
static gmxfmm_status make_rows(gmxfmm_plan* plan, scratch* s)
{
    struct fmm_divided* d   = plan->divided;
    const int64_t       num = d->meets.start[size_of(plan)], entries = s->list_comes[size_of(plan)];
    const int           chunks = chunks_for(s, num);
    const int*          place  = d->meets.list.at;
    s->rows                    = keep(d, FMM_KEPT_ROWS, (size_t)num + 1, sizeof(int));
    s->partners                = keep(d, FMM_KEPT_PARTNERS, (size_t)entries, sizeof(int));
    if (s->rows == NULL || s->partners == NULL || entries > INT32_MAX)
    {
        return fmm_no_memory(plan);
    }
    s->rows[0] = 0;
#pragma omp parallel for schedule(static, 1) num_threads(chunks)
    for (int c = 0; c < chunks; c++)
    {
        int64_t count = 0;
        for (int64_t k = chunk_begin(0, num, c, chunks); k < chunk_begin(0, num, c + 1, chunks); k++)
        {
            const int some        = s->received[k].num_excluded > 0 ? s->received[k].num_excluded : 0;
            s->rows[place[k] + 1] = some; /* each place is one's */
            count += some;
        }
        s->of_chunk[c * s->chunk_room] = count;
    }
    chunks_follow(s, chunks, 0, 0);
    for (int64_t i = 0; i < num; i++)
    {
        s->rows[i + 1] += s->rows[i];
    }
#pragma omp parallel for schedule(static, 1) num_threads(chunks)
    for (int c = 0; c < chunks; c++)
    {
        const int* from = s->list_received + s->of_chunk[c * s->chunk_room];
        for (int64_t k = chunk_begin(0, num, c, chunks); k < chunk_begin(0, num, c + 1, chunks); k++)
        {
            for (int i = 0; i < s->received[k].num_excluded; i++)
            {
                s->partners[s->rows[place[k]] + i] = index_in_own(d, num, *from++);
            }
        }
    }
    return GMXFMM_OK;
}

static void store(gmxfmm_precision type, void* array, size_t i, double value)
{
    if (type == GMXFMM_DOUBLE)
    {
        ((double*)array)[i] = value;
    }
    else
    {
        ((float*)array)[i] = (float)value;
    }
}

/* The total of the charges of all ranks, to the own plan. Collective. */
static gmxfmm_status set_total(gmxfmm_plan* plan)
{
    const double        own[2] = {plan->charges.total[0], plan->charges.rest[0]};
    double* const       all    = plan->divided->own->cpu->shares.room;
    const gmxfmm_status status = fmm_ranks_all_gather(&plan->ranks->comm, own, sizeof(own), all);
    fmm_charges_set_total(plan->divided->own, all, size_of(plan));
    plan->divided->charges_version = plan->charges.version;
    return status;
}

/* Particles received to the own plan, and their assignment there. */
static gmxfmm_status take_received(gmxfmm_plan* plan, scratch* s)
{
    struct fmm_divided*    d    = plan->divided;
    const int64_t          num  = d->meets.start[size_of(plan)];
    const gmxfmm_precision type = plan->options.array_type;
    s->charges                  = keep(d, FMM_KEPT_CHARGES, (size_t)num, sizeof(double));
    gmxfmm_status status        = s->charges != NULL ? make_rows(plan, s) : fmm_no_memory(plan);
#pragma omp parallel for schedule(static) num_threads(chunks_for(s, num))
    for (int64_t k = 0; k < (status == GMXFMM_OK ? num : 0); k++)
    {
        const size_t at = (size_t)((const int*)d->meets.list.at)[k];
        store(type, s->charges, at, s->received[k].q);
        for (size_t e = 0; e < 3; e++)
        {
            store(type, d->x.at, 3 * at + e, s->received[k].x[e]);
        }
    }
    status = fmm_agree(plan, status);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    const int some = s->rows[num] > 0;
    status         = gmxfmm_set_charges(d->own, num, s->charges);
    status         = status == GMXFMM_OK
                         ? fmm_particles_take(d->own, d->ids.at, some ? s->rows : NULL, some ? s->partners : NULL)
                         : status;
    status         = fmm_agree_on_own(plan, status);
    status         = status == GMXFMM_OK ? set_total(plan) : status;
    return status == GMXFMM_OK ? fmm_agree_on_own(plan, gmxfmm_assign(d->own, d->x.at)) : status;
}

/* What all ranks know of their assignments together. Collective. */
static gmxfmm_status sum_up(gmxfmm_plan* plan)
{
    struct fmm_divided* d      = plan->divided;
    fmm_cpu*            cpu    = d->own->cpu;
    double              v[2]   = {cpu->near_particles * (double)d->num_own, cpu->any_far != 0}, room[2];
    const gmxfmm_status status = fmm_ranks_reduce(&plan->ranks->comm, FMM_RANKS_SUM, v, room, 2);
    cpu->shares.any_far        = v[1] > 0;
    d->near_particles          = d->total > 0 ? v[0] / (double)d->total : 0;
    return status;
}

/* Whether there is memory for what is counted of each rank. */
static int reserve_scratch(const gmxfmm_plan* plan, scratch* s)
{
    const size_t size = (size_t)size_of(plan) + 1;
    s->counts         = calloc(size, sizeof(int64_t));
    s->others         = calloc(size, sizeof(int64_t));
    s->list_start     = calloc(size, sizeof(int64_t));
    s->list_comes     = calloc(size, sizeof(int64_t));
    s->num_chunks     = plan->num_threads;
    s->chunk_room     = (size_of(plan) > c_digits ? size_of(plan) : c_digits) + 8; /* chunks share no cache line */
    s->of_chunk       = malloc((size_t)s->num_chunks * (size_t)s->chunk_room * sizeof(int64_t));
    return s->counts && s->others && s->list_start && s->list_comes && s->of_chunk;
}

static gmxfmm_status assign(gmxfmm_plan* plan, const void* x, scratch* s)
{
    const int     there  = reserve_scratch(plan, s);
    gmxfmm_status status = fmm_agree(plan, there ? GMXFMM_OK : fmm_no_memory(plan));
    status               = status == GMXFMM_OK ? count_given(plan) : status;
    status               = status == GMXFMM_OK && plan->divided->checks ? fmm_ranks_check(plan) : status;
    status               = status == GMXFMM_OK ? make_own(plan) : status;
    status               = status == GMXFMM_OK ? fmm_agree(plan, find_cells(plan, x, s)) : status;
    status               = status == GMXFMM_OK ? divide_cells(plan, s) : status;
    if (status == GMXFMM_OK)
    {
        status = find_needs(plan, s);
        status = status == GMXFMM_OK ? list_given(plan, s, NULL, 0) : status;
        status = status == GMXFMM_OK ? pack_given(plan, s, x) : status;
        status = fmm_agree(plan, status);
    }
    status = status == GMXFMM_OK ? send_given(plan, s) : status;
    if (status == GMXFMM_OK)
    {
        status = place_received(plan, s);
        status = status == GMXFMM_OK ? find_missing(plan, s) : status;
        status = fmm_agree(plan, status);
    }
    status = status == GMXFMM_OK ? send_missing(plan, s, x) : status;
    status = status == GMXFMM_OK ? fmm_agree(plan, list_results(plan, s)) : status;
    status = status == GMXFMM_OK ? take_received(plan, s) : status;
    return status == GMXFMM_OK ? sum_up(plan) : status;
}

gmxfmm_status fmm_ranks_assign(gmxfmm_plan* plan, const void* x)
{
    scratch             s      = {0};
    const gmxfmm_status status = assign(plan, x, &s);
    free_scratch(&s);
    return status;
}

gmxfmm_status fmm_ranks_charges(gmxfmm_plan* plan)
{
    struct fmm_divided* d     = plan->divided;
    const int           size  = size_of(plan);
    double* const       sent  = d->packed.at;
    const int64_t       num   = d->meets.start[size];
    void* const         there = d->result[FMM_RESULT_FORCE].at; /* which the step overwrites */
    for (int64_t k = 0; k < d->gives.start[size]; k++)
    {
        sent[k] = plan->charges.q[((const int*)d->gives.list.at)[k]];
    }
    gmxfmm_status status =
        fmm_travel(plan, sizeof(double), sent, d->gives.start, d->received.at, d->meets.start, &d->info.time_positions);
    for (int64_t k = 0; k < num && status == GMXFMM_OK; k++)
    {
        store(plan->options.array_type, there, (size_t)((const int*)d->meets.list.at)[k],
              ((const double*)d->received.at)[k]);
    }
    status = status == GMXFMM_OK ? fmm_agree_on_own(plan, gmxfmm_set_charges(d->own, num, there)) : status;
    return status == GMXFMM_OK ? set_total(plan) : status;
}
