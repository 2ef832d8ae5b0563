/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Errors of forces, and of potential and field at targets, by direct sums at a sample of them. */
#include "fmm/measure/sample.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/math/portable.h"
#include "fmm/measure/direct.h"
#include "fmm/measure/targets.h"
#include "fmm/numbers.h"
#include "fmm/simd_level.h"

/* What is measured at a sample is exceeded by the error of all in one of a thousand samples, about. */
static const double c_deviations = 3;

/* As of the norms in norm.c and targets.c: values larger than this times the usual one count as usual ones. */
static const double c_limit = 10;

enum
{
    c_forces,
    c_potentials, /* at targets */
    c_fields,
    c_tables
};

enum
{
    c_draws = 2048, /* of charges, and of targets */
    c_block = 16    /* places that one thread sums at */
};

/* Columns of an array: forces, or of targets potential or field. */
typedef struct
{
    const void*      values;
    gmxfmm_precision type;
    int              columns;
} table;

static double square_at(const table* t, int64_t i)
{
    double sum = 0;
    for (int64_t k = t->columns * i; k < t->columns * (i + 1); k++)
    {
        const double v = fmm_number_of(t->values, t->type, k);
        sum += v * v;
    }
    return sum;
}

/* Of an array of fmm_measure_room. */
static table table_of(const gmxfmm_reference* r, const void* room, int which)
{
    const size_t word    = fmm_word_of(r->array_type);
    const size_t forces  = 3 * (size_t)r->system.n;
    const size_t numbers = which == c_forces       ? 0
                           : which == c_potentials ? forces
                                                   : forces + (size_t)r->system.num_targets;
    const table  t       = {(const char*)room + numbers * word, r->array_type, which == c_potentials ? 1 : 3};
    return t;
}

int fmm_is_sampled(const gmxfmm_system* s, const gmxfmm_options* o)
{
    return o->boundary == GMXFMM_OPEN && o->device == GMXFMM_CPU && s->n >= FMM_SAMPLED_FROM && s->x_before == NULL &&
           s->mu == NULL && !(o->min_distance > 0 && s->num_targets > 0);
}

/* The share of draws that item i should have. norm: of each table, sums of its squares over all. */
static double share_of(const table* tables, const double* norm, int num_tables, int64_t n, int64_t i)
{
    double share = 1.0 / (double)n;
    for (int t = 0; t < num_tables; t++)
    {
        share += norm[t] > 0 ? square_at(&tables[t], i) / norm[t] : 1.0 / (double)n;
    }
    return share / (num_tables + 1);
}

/* Draws of n items by their shares: one in each of c_draws intervals of their sum, at a place that has nothing to do
 * with that in the next interval. */
static void draw(fmm_places* p, const table* tables, int num_tables, int64_t n)
{
    double norm[2] = {0, 0}, sum = 0;
    p->are_all = n <= c_draws;
    for (int64_t i = 0; i < n && p->are_all; i++)
    {
        p->index[i]  = i;
        p->weight[i] = 1;
    }
    if (p->are_all)
    {
        p->num = (int)n;
        return;
    }
    for (int t = 0; t < num_tables; t++)
    {
        for (int64_t i = 0; i < n; i++)
        {
            norm[t] += square_at(&tables[t], i);
        }
    }
    int k = 0;
    for (int64_t i = 0; i < n && k < c_draws; i++)
    {
        const double share = share_of(tables, norm, num_tables, n, i);
        sum += share;
        for (; k < c_draws; k++)
        {
            const double golden = k * 0.61803398874989485;
            if ((k + golden - floor(golden)) / c_draws > sum && i < n - 1)
            {
                break;
            }
            p->index[k]  = i;
            p->weight[k] = 1 / (share * (double)n);
        }
    }
    p->num = k;
}

static int get_room(fmm_places* p)
{
    p->index  = malloc(c_draws * sizeof(*p->index));
    p->weight = malloc(c_draws * sizeof(*p->weight));
    p->exact  = calloc(4 * c_draws, sizeof(*p->exact));
    return p->index != NULL && p->weight != NULL && p->exact != NULL;
}

static void free_room(fmm_places* p)
{
    free(p->index);
    free(p->weight);
    free(p->exact);
}

void fmm_sample_free(fmm_samples* sample)
{
    free_room(&sample->charges);
    free_room(&sample->targets);
}

static fmm_direct_sums* direct_sums(void)
{
#ifdef FMM_LEVELS
    const int level = fmm_simd_level();
    return level == 4 ? fmm_add_direct_v4 : level == 3 ? fmm_add_direct_v3 : fmm_add_direct_v2;
#else
    return fmm_add_direct;
#endif
}

/* The square below which pairs give nothing: those of a charge with itself, and pairs nearer than min_distance. */
static double least_square(const gmxfmm_options* o)
{
    return fmax(o->min_distance * o->min_distance, DBL_MIN);
}

static int compare(const void* a, const void* b)
{
    const int x = *(const int*)a, y = *(const int*)b;
    return (x > y) - (x < y);
}

/* Takes the field of the charges of a row off, which is sorted here: a pair may be listed twice. */
static void take_off(const gmxfmm_reference* r, double least, int* row, size_t num, const double* place, double* sum)
{
    qsort(row, num, sizeof(*row), compare);
    for (size_t k = 0; k < num; k++)
    {
        double d[3], square = 0;
        for (int e = 0; e < 3; e++)
        {
            d[e] = place[e] - fmm_number_of(r->system.x, r->array_type, 3 * (int64_t)row[k] + e);
            square += d[e] * d[e];
        }
        if (square >= least && (k == 0 || row[k] != row[k - 1]))
        {
            const double u = fmm_number_of(r->system.q, r->array_type, row[k]) / sqrt(square);
            for (int e = 0; e < 3; e++)
            {
                sum[1 + e] -= u / square * d[e];
            }
        }
    }
}

static void place_of(const gmxfmm_reference* r, const void* x, int64_t i, double* place)
{
    for (int d = 0; d < 3; d++)
    {
        place[d] = fmm_number_of(x, r->array_type, 3 * i + d);
    }
}

/* Takes excluded pairs off the sums at charges. */
static gmxfmm_status take_off_excluded(const gmxfmm_reference* r, const gmxfmm_options* o, fmm_places* p)
{
    const int *start = r->system.excl_start, *list = r->system.excl_list;
    size_t     most = 0;
    for (int k = 0; k < p->num && start != NULL; k++)
    {
        const size_t num = (size_t)(start[p->index[k] + 1] - start[p->index[k]]);
        most             = num > most ? num : most;
    }
    int* row = malloc((most + 1) * sizeof(*row));
    if (row == NULL)
    {
        return GMXFMM_ERROR_MEMORY;
    }
    for (int k = 0; k < p->num && most > 0; k++)
    {
        const int64_t i   = p->index[k];
        const size_t  num = (size_t)(start[i + 1] - start[i]);
        double        place[3];
        memcpy(row, list + start[i], num * sizeof(*row));
        place_of(r, r->system.x, i, place);
        take_off(r, least_square(o), row, num, place, p->exact + 4 * k);
    }
    free(row);
    return GMXFMM_OK;
}

/* Direct sums at the places of a sample, of charges or of targets at x. */
static void
sum_at(const gmxfmm_reference* r, const gmxfmm_options* o, const fmm_sources* sources, const void* x, fmm_places* p)
{
    fmm_direct_sums* const add    = direct_sums();
    const double           least  = least_square(o);
    const int              blocks = (p->num + c_block - 1) / c_block;
#pragma omp parallel for schedule(dynamic, 1) num_threads(r->num_threads)
    for (int b = 0; b < blocks; b++)
    {
        const int first = b * c_block, num = p->num - first < c_block ? p->num - first : c_block;
        double    place[3 * c_block];
        for (int k = 0; k < num; k++)
        {
            place_of(r, x, p->index[first + k], place + 3 * k);
        }
        add(sources, least, num, place, p->exact + 4 * first);
    }
}

static gmxfmm_status sum_sample(fmm_samples* sample, const gmxfmm_reference* r, const gmxfmm_options* o)
{
    const int64_t n = r->system.n, all = (n + FMM_SOURCES_ROUND - 1) / FMM_SOURCES_ROUND * FMM_SOURCES_ROUND;
    double*       memory = aligned_alloc(FMM_ALIGN, 4 * (size_t)all * sizeof(*memory));
    if (memory == NULL)
    {
        return GMXFMM_ERROR_MEMORY;
    }
#pragma omp parallel for schedule(static) num_threads(r->num_threads)
    for (int64_t i = 0; i < all; i++)
    {
        const int64_t k = i < n ? i : n - 1; /* the last ones have no charge */
        for (int64_t d = 0; d < 3; d++)
        {
            memory[d * all + i] = fmm_number_of(r->system.x, r->array_type, 3 * k + d);
        }
        memory[3 * all + i] = i < n ? fmm_number_of(r->system.q, r->array_type, i) : 0;
    }
    const fmm_sources sources = {all, memory, memory + all, memory + 2 * all, memory + 3 * all};
    sum_at(r, o, &sources, r->system.x, &sample->charges);
    if (r->system.num_targets > 0)
    {
        sum_at(r, o, &sources, r->system.targets, &sample->targets);
    }
    free(memory);
    return take_off_excluded(r, o, &sample->charges);
}

gmxfmm_status fmm_sample_make(fmm_samples* sample, gmxfmm_reference* r, const gmxfmm_options* options)
{
    const table forces    = table_of(r, r->force, c_forces);
    const table values[2] = {table_of(r, r->force, c_potentials), table_of(r, r->force, c_fields)};
    if (!get_room(&sample->charges) || !get_room(&sample->targets))
    {
        return GMXFMM_ERROR_MEMORY;
    }
    r->unit = fmm_unit_of_errors(r, options);
    fmm_targets_unit(r, options);
    draw(&sample->charges, &forces, 1, r->system.n);
    if (r->system.num_targets > 0)
    {
        draw(&sample->targets, values, 2, r->system.num_targets);
    }
    return sum_sample(sample, r, options);
}

/* A mean square and a bound of it, of terms that are added one by one. */
typedef struct
{
    double sum, squares;
} mean;

static void add(mean* m, double term)
{
    m->sum += term;
    m->squares += term * term;
}

static double root_of_bound(const mean* m, const fmm_places* p)
{
    const double num = p->num, middle = m->sum / num;
    const double variance = p->are_all ? 0 : fmax(0, m->squares / num - middle * middle) / num;
    return sqrt(middle + c_deviations * sqrt(variance));
}

/* The error of one of the tables, and that with limited values. */
static double error_of(const fmm_samples*      sample,
                       const gmxfmm_reference* r,
                       double                  prefactor,
                       const void*             room,
                       int                     which,
                       double*                 limited)
{
    const fmm_places*     p     = which == c_forces ? &sample->charges : &sample->targets;
    const fmm_error_unit* unit  = which == c_forces ? &r->unit : &r->unit_targets[which - 1];
    const table           found = table_of(r, room, which);
    const double          usual = unit->limit / c_limit;
    mean                  all = {0, 0}, others = {0, 0};
    for (int k = 0; k < p->num; k++)
    {
        const int64_t i      = p->index[k];
        const double  factor = prefactor * (which == c_forces ? fmm_number_of(r->system.q, r->array_type, i) : 1);
        const double* exact  = p->exact + 4 * k + (which == c_potentials ? 0 : 1);
        double        term = 0, square = 0;
        for (int c = 0; c < found.columns; c++)
        {
            const double right = factor * exact[c];
            const double apart = fmm_number_of(found.values, found.type, found.columns * i + c) - right;
            term += apart * apart;
            square += right * right;
        }
        add(&all, p->weight[k] * term);
        add(&others, p->weight[k] * (square > unit->limit * unit->limit ? term * (usual * usual / square) : term));
    }
    const double error = root_of_bound(&all, p) / unit->all;
    *limited           = root_of_bound(&others, p) / unit->limited;
    *limited           = isfinite(*limited) ? *limited : INFINITY;
    return isfinite(error) ? error : INFINITY;
}

void fmm_sample_errors(const fmm_samples*      sample,
                       const gmxfmm_reference* r,
                       const gmxfmm_options*   options,
                       const void*             room,
                       gmxfmm_measurement*     m)
{
    m->error         = error_of(sample, r, options->prefactor, room, c_forces, &m->error_limited);
    m->error_moved   = m->error;
    m->virial_error  = NAN; /* of all particles, not of a sample */
    m->error_targets = 0;
    for (int which = c_potentials; which < c_tables && r->system.num_targets > 0; which++)
    {
        double       limited;
        const double error = error_of(sample, r, options->prefactor, room, which, &limited);
        m->error_targets   = fmax(m->error_targets, fmax(error, limited));
    }
    m->error_anywhere = fmm_larger_error(m);
    m->error_unit     = r->unit.natural;
}
