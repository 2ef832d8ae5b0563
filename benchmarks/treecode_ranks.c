/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whole calls of the treecode on ranks that are threads of this process, on random charges in [-1, 1] in a cube, each
 * rank with a device of its own if there are enough:
 *   treecode_ranks [--ranks N,N,...] [--points N | --per-rank N] [--device cuda|cpu] [--threads N] [--kappa K]
 * [--single]
 * [--dual] [--field] [--samples N] [--calls N] [--seconds S] THETA,DEGREE,LEAF...
 * --points: of all ranks; --per-rank: of each, for weak scaling. --threads: of each rank; without it the processors are
 * shared out. Point k is the same however many ranks there are; each rank makes its own. A call is charges, assignment
 * and sums with arrays of the host; of two, or of --calls, the one is told whose slowest rank took least. Errors are
 * relative to direct sums in double precision at some of the points, which all ranks share. --seconds: no case begins
 * that would end later, by the time of the one before. One line of JSON a case, as soon as it is done.
 */
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#include "gmxfmm_parallel.h"

enum
{
    c_mostRanks = 1024
};

typedef struct
{
    int64_t         n; /* of all ranks */
    int             samples, calls, num_ranks, num_devices, threads;
    gmxfmm_options  options;
    int             field;
    gmxfmm_threads* ranks;
} problem;

/* What a rank tells of its fastest call. */
typedef struct
{
    double            seconds, assign, made, created;
    gmxfmm_info       info;
    gmxfmm_ranks_info ranks;
    double            error, pairs;
} record;

typedef struct
{
    const problem* p;
    int            rank;
    record*        records; /* of all ranks */
} task;

static void fail(const char* text)
{
    fprintf(stderr, "treecode_ranks: %s\n", text);
    exit(2);
}

/* Number d of point k, in [-1, 1] (splitmix64: Steele, Lea & Flood 2014). */
static double number(int64_t k, int d)
{
    uint64_t z = ((uint64_t)k * 4 + (uint64_t)d + 1) * 0x9e3779b97f4a7c15U;
    z          = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z          = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-52 - 1;
}

static int64_t first_of(const problem* p, int rank)
{
    return (int64_t)((double)p->n * rank / p->num_ranks);
}

static int64_t sample(const problem* p, int s)
{
    return p->n / p->samples * s;
}

/* Sums over this rank's points at the samples: a point at a time, so that each is read once. */
static void direct(const problem* p, int64_t n, const double* x, const double* q, double* sum)
{
    const double kappa = p->options.kernel == GMXFMM_YUKAWA ? p->options.kappa : 0;
    const int    num   = p->samples;
    double*      place = bench_numbers(3 * (size_t)num);
    for (int s = 0; s < 3 * num; s++)
    {
        place[s] = number(sample(p, s / 3), s % 3);
    }
    memset(sum, 0, (size_t)num * sizeof(*sum));
#pragma omp parallel num_threads(p->threads)
    {
        double* own = bench_numbers((size_t)num);
        memset(own, 0, (size_t)num * sizeof(*own));
#pragma omp for schedule(static)
        for (int64_t i = 0; i < n; i++)
        {
            for (int s = 0; s < num; s++)
            {
                const double dx = place[3 * s] - x[3 * i], dy = place[3 * s + 1] - x[3 * i + 1],
                             dz = place[3 * s + 2] - x[3 * i + 2];
                const double r2 = dx * dx + dy * dy + dz * dz, y = r2 > 0 ? 1 / sqrt(r2) : 0;
                own[s] += q[i] * y * (kappa > 0 ? exp(-kappa * r2 * y) : 1);
            }
        }
#pragma omp critical
        for (int s = 0; s < num; s++)
        {
            sum[s] += own[s];
        }
        free(own);
    }

    free(place);
}

/* Numbers of all ranks, added up. */
static void add_up(const gmxfmm_comm* comm, int num, double* v)
{
    double* all = bench_numbers((size_t)num * (size_t)comm->size);
    if (comm->all_gather(comm->context, v, (size_t)num * sizeof(*v), all) != 0)
    {
        fail("the communicator failed");
    }
    memset(v, 0, (size_t)num * sizeof(*v));
    for (int i = 0; i < num * comm->size; i++)
    {
        v[i % num] += all[i];
    }
    free(all);
}

static double error_of(
    const problem* p, const gmxfmm_comm* comm, int64_t n, const double* x, const double* q, const double* potential)
{
    const int64_t begin = first_of(p, comm->rank);
    double *      exact = bench_numbers((size_t)p->samples), *value = bench_numbers((size_t)p->samples);
    double        difference = 0, norm = 0;
    direct(p, n, x, q, exact);
    for (int s = 0; s < p->samples; s++)
    {
        const int64_t k = sample(p, s) - begin;
        value[s]        = k >= 0 && k < n ? potential[k] : 0;
    }
    add_up(comm, p->samples, exact);
    add_up(comm, p->samples, value);
    for (int s = 0; s < p->samples; s++)
    {
        difference += pow(value[s] - exact[s], 2);
        norm += exact[s] * exact[s];
    }
    free(exact);
    free(value);
    return sqrt(difference / norm);
}

static void meet(const gmxfmm_comm* comm)
{
    double here = 0;
    add_up(comm, 1, &here);
}

/* One call; the slowest rank decides which is kept. */
static void call(gmxfmm_plan*         plan,
                 const gmxfmm_comm*   comm,
                 int64_t              n,
                 const double*        x,
                 const double*        q,
                 const gmxfmm_output* asked,
                 record*              best)
{
    gmxfmm_output out = *asked;
    double        slowest[c_mostRanks], most = 0;
    record        now = *best;
    gmxfmm_reset_times(plan);
    gmxfmm_reset_ranks_times(plan);
    meet(comm);
    const double begin = bench_seconds();
    bench_check(gmxfmm_set_charges(plan, n, q), gmxfmm_message(plan));
    bench_check(gmxfmm_assign(plan, x), gmxfmm_message(plan));
    now.assign = bench_seconds() - begin;
    bench_check(gmxfmm_execute(plan, x, &out), gmxfmm_message(plan));
    const double seconds = bench_seconds() - begin;
    if (comm->all_gather(comm->context, &seconds, sizeof(seconds), slowest) != 0)
    {
        fail("the communicator failed");
    }
    for (int i = 0; i < comm->size; i++)
    {
        most = fmax(most, slowest[i]);
    }
    if (most < best->seconds)
    {
        now.seconds   = most;
        now.info.size = sizeof(now.info);
        gmxfmm_get_info(plan, &now.info);
        gmxfmm_get_ranks_info(plan, &now.ranks);
        *best = now;
    }
}

static void* run_rank(void* argument)
{
    const task*       t     = argument;
    const problem*    p     = t->p;
    const gmxfmm_comm comm  = gmxfmm_threads_comm(p->ranks, t->rank);
    const int64_t     begin = first_of(p, t->rank), n = first_of(p, t->rank + 1) - begin;
    double *          x = bench_numbers(3 * (size_t)n), *q = bench_numbers((size_t)n);
    double *          potential = bench_numbers((size_t)n), *field = p->field ? bench_numbers(3 * (size_t)n) : NULL;
    gmxfmm_output     out     = {.size = sizeof(out), .potential = potential, .field = field};
    gmxfmm_options    options = p->options;
    gmxfmm_plan*      plan;
    char              message[512];
    record*           own  = &t->records[t->rank];
    double            then = bench_seconds();
#pragma omp parallel for schedule(static) num_threads(p->threads)
    for (int64_t k = 0; k < n; k++)
    {
        for (int d = 0; d < 3; d++)
        {
            x[3 * k + d] = number(begin + k, d);
        }
        q[k] = number(begin + k, 3);
    }
    own->seconds        = 1e300;
    own->made           = bench_seconds() - then;
    then                = bench_seconds();
    options.num_threads = p->threads;
    options.device_id   = p->num_devices > 0 ? t->rank % p->num_devices : 0;
    bench_check(gmxfmm_create_parallel(&plan, &options, &comm, n, NULL, message, sizeof(message)), message);
    own->created = bench_seconds() - then;
    for (int i = 0; i < p->calls; i++)
    {
        call(plan, &comm, n, x, q, &out, own);
    }
    gmxfmm_destroy(plan);
    own->error = error_of(p, &comm, n, x, q, potential);
    free(x);
    free(q);
    free(potential);
    free(field);
    return NULL;
}

static void print_rank(const record* r)
{
    printf("{\"particles\": %lld, \"imported\": %lld, \"bytes_sent\": %zu, \"bytes_received\": %zu, \"make_s\": %.4g, "
           "\"create_s\": %.4g, \"bisection_s\": %.4g, \"travel_s\": %.4g, \"tree_s\": %.4g, \"lists_s\": %.4g, "
           "\"assign_s\": %.4g, \"charges_s\": %.4g, \"exchange_s\": %.4g, \"sums_s\": %.4g, \"output_s\": %.4g, "
           "\"plan_bytes\": %zu}",
           (long long)r->ranks.num_particles, (long long)r->ranks.num_imported, r->ranks.bytes_sent,
           r->ranks.bytes_received, r->made, r->created, r->ranks.time_bisection, r->ranks.time_travel,
           r->ranks.time_tree, r->ranks.time_lists, r->assign, r->info.time_charges, r->ranks.time_exchange,
           r->info.time_sums, r->info.time_output, r->info.bytes);
}

static void print_case(const problem* p, const record* records, double whole)
{
    const gmxfmm_info* info = &records[0].info;
    printf("{\"particles\": %lld, \"ranks\": %d, \"device\": \"%s\", \"devices\": %d, \"threads\": %d, "
           "\"kernel\": \"%s\", \"kappa\": %g, \"theta\": %g, \"degree\": %d, \"leaf\": %d, \"traversal\": \"%s\", "
           "\"precision\": \"%s\", \"field\": %d, \"calls\": %d, \"seconds\": %.4g, \"whole_s\": %.4g, "
           "\"clusters\": %d, \"pairs_per_target\": %.6g, \"ns_per_pair\": %.4g, \"potential_error\": %.3g, "
           "\"of_ranks\": [",
           (long long)p->n, p->num_ranks, p->options.device == GMXFMM_CUDA ? "cuda" : "cpu",
           p->options.device != GMXFMM_CUDA ? 0
           : p->num_ranks < p->num_devices  ? p->num_ranks
                                            : p->num_devices,
           p->threads, p->options.kernel == GMXFMM_YUKAWA ? "yukawa" : "coulomb", p->options.kappa, info->theta,
           info->degree, info->leaf, p->options.traversal == GMXFMM_DUAL ? "dual" : "particle",
           p->options.precision == GMXFMM_DOUBLE ? "double" : "single", p->field, p->calls, records[0].seconds, whole,
           info->num_clusters, info->pairs_per_target,
           1e9 * records[0].seconds * p->num_ranks / (info->pairs_per_target * (double)p->n), records[0].error);
    for (int i = 0; i < p->num_ranks; i++)
    {
        printf("%s", i > 0 ? ", " : "");
        print_rank(&records[i]);
    }
    printf("]}\n");
    fflush(stdout);
}

/* Returns its seconds, everything included. */
static double run_case(problem* p)
{
    task         tasks[c_mostRanks];
    pthread_t    threads[c_mostRanks];
    record*      records = calloc((size_t)p->num_ranks, sizeof(*records));
    const double begin   = bench_seconds();
    if (records == NULL || gmxfmm_threads_create(&p->ranks, p->num_ranks) != GMXFMM_OK)
    {
        fail("out of memory");
    }
    for (int rank = 0; rank < p->num_ranks; rank++)
    {
        tasks[rank] = (task){p, rank, records};
        if (pthread_create(&threads[rank], NULL, run_rank, &tasks[rank]) != 0)
        {
            fail("a thread cannot be made");
        }
    }
    for (int rank = 0; rank < p->num_ranks; rank++)
    {
        pthread_join(threads[rank], NULL);
    }
    gmxfmm_threads_destroy(p->ranks);
    const double seconds = bench_seconds() - begin;
    print_case(p, records, seconds);
    free(records);
    return seconds;
}

static int count_devices(void)
{
    int num = 0;
    while (num < c_mostRanks && gmxfmm_check_device(GMXFMM_CUDA, num, NULL, 0) == GMXFMM_OK)
    {
        num++;
    }
    return num;
}

int main(int argc, char** argv)
{
    problem      p      = {.samples = 100, .calls = 2};
    double       points = 1e6, per_rank = 0, seconds = 1e300, last = 0, last_size = 0;
    int          ranks[c_mostRanks], threads = 0, single = 0, dual = 0;
    const char * list = "1", *device = "cpu";
    const double begin = bench_seconds();
    gmxfmm_default_options(&p.options);
    const char* usage =
        "treecode_ranks [--ranks N,N,...] [--points N | --per-rank N] [--device cuda|cpu] [--threads N] [--kappa K] "
        "[--single] [--dual] [--field] [--samples N] [--calls N] [--seconds S] THETA,DEGREE,LEAF...";
    const bench_option options[]  = {{"--single", .flag = &single},           {"--dual", .flag = &dual},
                                     {"--field", .flag = &p.field},           {"--ranks", .text = &list},
                                     {"--points", .number = &points},         {"--per-rank", .number = &per_rank},
                                     {"--device", .text = &device},           {"--threads", .integer = &threads},
                                     {"--kappa", .number = &p.options.kappa}, {"--samples", .integer = &p.samples},
                                     {"--calls", .integer = &p.calls},        {"--seconds", .number = &seconds}};
    int                i          = bench_read(argc, argv, sizeof(options) / sizeof(*options), options, usage);
    const int          num_counts = bench_list(list, ranks, c_mostRanks);
    p.options.method              = GMXFMM_TREECODE;
    p.options.boundary            = GMXFMM_OPEN;
    p.options.kernel              = p.options.kappa != 0 ? GMXFMM_YUKAWA : GMXFMM_COULOMB;
    p.options.precision           = single ? GMXFMM_SINGLE : GMXFMM_DOUBLE;
    p.options.traversal           = dual ? GMXFMM_DUAL : p.options.traversal;
    p.options.device              = strcmp(device, "cuda") == 0 ? GMXFMM_CUDA : GMXFMM_CPU;
    p.num_devices                 = p.options.device == GMXFMM_CUDA ? count_devices() : 0;
    if (i >= argc || p.calls < 1 || p.samples < 1 || (p.options.device == GMXFMM_CUDA && p.num_devices == 0))
    {
        fail(i >= argc ? "no settings" : "no device, no calls or no samples");
    }
    for (; i < argc; i++)
    {
        if (sscanf(argv[i], "%lf,%d,%d", &p.options.theta, &p.options.degree, &p.options.leaf) != 3)
        {
            fail("a setting is THETA,DEGREE,LEAF");
        }
        for (int k = 0; k < num_counts; k++)
        {
            if (ranks[k] < 1 || ranks[k] > c_mostRanks)
            {
                fail("there are 1 to 1024 ranks");
            }
            p.num_ranks       = ranks[k];
            p.n               = (int64_t)(per_rank > 0 ? per_rank * ranks[k] : points);
            p.threads         = threads > 0 ? threads : omp_get_num_procs() / ranks[k];
            p.threads         = p.threads > 0 ? p.threads : 1;
            const double size = (double)p.n / ranks[k], expected = last_size > 0 ? last * size / last_size : 0;
            if (bench_seconds() - begin + expected > seconds)
            {
                fprintf(stderr, "treecode_ranks: left out: %lld points on %d ranks, some %.0f s\n", (long long)p.n,
                        p.num_ranks, expected);
                continue;
            }
            last      = run_case(&p);
            last_size = size;
        }
    }
    return 0;
}
