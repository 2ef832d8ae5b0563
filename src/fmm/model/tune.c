/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Choice of order, cells and ws, for cells of one level: the cheapest whose predicted error is below the one asked for.
 *
 * Error model (THEORY section 7): charges are taken as uncorrelated and uniform in their cells. A source at y' in a
 * cell at distance vector R then gives a target at y a field error whose mean square, over orientations, is
 *
 *   multipole truncated at p:  sum_{n>p} (n+1) |y'|^2n / d^(2n+4),     d = |R + y|
 *   local truncated at p:      sum_{n>p} n |y|^(2n-2) / D^(2n+2),      D = |R - y'|
 *
 * The relative RMS force error is the root of the sum over far cells, times the number of particles in each, divided by
 * the RMS force of a liquid, c q^2 rho^(2/3). The one constant is fitted to water (benchmarks/accuracy).
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/geometry/fftsize.h"
#include "fmm/model/layouts.h"
#include "fmm/model/tails.h"
#include "fmm/model/tune.h"
#include "fmm/options.h"

enum
{
    c_parts      = 16, /* of the far cells, divided among threads */
    c_usualOrder = 20, /* enough for most accuracies */
    c_maxOrder   = GMXFMM_MAX_ORDER
};

/* Fitted: predicted / measured error in SPC water lies within 0.9 and 2.1 for ws = 1, 2, p = 4..12, 4 to 40 atoms a
 * cell. */
static const double c_errorScale = 0.47;

/* Safety factor on the error asked for. Relative errors are up to four times as large where charges are less ordered
 * than in a liquid and forces are therefore weaker (molecules rotated at random, tests/library/model_accuracy.cpp). It
 * costs two more orders, a few per cent of an MD step. */
static const double c_margin = 0.25;

/* The error of two charges in facing corners of cells can be this much larger than the mean of the model (swap_z at
 * 1e-6). */
static const double c_worstPair = 15;

/* Largest covering radius over shortest far vector of cells that count as even: it is 0.433 for cubes, 0.41 for the
 * face-centred lattice. Where it is larger, expansions converge slowly in corners, and such cells are chosen only if
 * there are no others. */
static const double c_evenCells = 0.5;

/* With ws = 1 and orders above this, the remaining error is that of single pairs in facing corners. Then ws = 2 is
 * chosen, unless ws is given. */
enum
{
    c_lastOrderWs1 = 14
};

/* Skewed cells have sharper corners, where too few of the samples are: with 8192 samples the error is up to this much
 * larger. */
static const double c_skewedScale = 1.6;

static double radical_inverse(int i, int base)
{
    double f = 1, r = 0;
    for (; i > 0; i /= base)
    {
        f /= base;
        r += f * (i % base);
    }
    return r;
}

static void sample_cell(const fmm_cells* cells, fmm_cell_samples* samples)
{
    double voronoi[FMM_VORONOI][3];
    for (int v = 0; v < FMM_VORONOI; v++)
    {
        for (int d = 0; d < 3; d++)
        {
            voronoi[v][d] = cells->voronoi[v][d] / cells->lambda;
        }
    }
    for (int i = 0; i < FMM_SAMPLES; i++)
    {
        const double f[3]     = {radical_inverse(i + 1, 2) - 0.5, radical_inverse(i + 1, 3) - 0.5,
                                 radical_inverse(i + 1, 5) - 0.5};
        int          shift[3] = {0, 0, 0};
        double       y[3];
        for (int d = 0; d < 3; d++)
        {
            y[d] = (f[0] * cells->cell[d] + f[1] * cells->cell[3 + d] + f[2] * cells->cell[6 + d]) / cells->lambda;
        }
        fmm_reduce(voronoi, cells->voronoi_int, y, shift);
        for (int d = 0; d < 3; d++)
        {
            samples->target[d][i] = y[d];
        }
        samples->target2[i] = y[0] * y[0] + y[1] * y[1] + y[2] * y[2];
    }
    for (int i = 0; i < FMM_SAMPLES; i++)
    {
        const int other = (37 * i + 11) % FMM_SAMPLES;
        for (int d = 0; d < 3; d++)
        {
            samples->source[d][i] = samples->target[d][other];
        }
        samples->source2[i] = samples->target2[other];
    }
}

static double square(double x)
{
    return x * x;
}

static fmm_tails* tails_of(int level)
{
#ifdef FMM_LEVELS
    return level == 4 ? fmm_add_tails_v4 : level == 3 ? fmm_add_tails_v3 : fmm_add_tails_v2;
#else
    (void)level;
    return fmm_add_tails;
#endif
}

/* Computes error[0..last] by the model. */
static void apply_model(const fmm_problem* problem, const fmm_cells* cells, int last, double* error)
{
    fmm_cell_samples samples;
    double           tail[c_parts][c_maxOrder + 1] = {{0}};
    const int        reach = cells->near_reach + 2, width = 2 * reach + 1, num = width * width * (reach + 1);
    fmm_tails* const add_tails = tails_of(problem->level);
    sample_cell(cells, &samples);
#pragma omp parallel for schedule(dynamic, 1) num_threads(problem->num_threads)
    for (int part = 0; part < c_parts; part++)
    {
        for (int i = part; i < num; i += c_parts)
        {
            const int k[3] = {i % width - reach, i / width % width - reach, i / width / width};
            double    r[3], r2 = 0;
            for (int d = 0; d < 3; d++)
            {
                r[d] = (k[0] * cells->cell[d] + k[1] * cells->cell[3 + d] + k[2] * cells->cell[6 + d]) / cells->lambda;
                r2 += r[d] * r[d];
            }
            /* half of the vectors, by inversion symmetry; farther shells add nothing to the errors */
            const int half = k[2] > 0 || k[1] > 0 || (k[1] == 0 && k[0] > 0);
            if (half && fmm_near_index(cells, k) < 0 && r2 < square(cells->far_distance + 1.2))
            {
                add_tails(r, &samples, last, tail[part]);
            }
        }
    }
    for (int p = 0; p <= last; p++)
    {
        double sum = 0; /* in the same order with any number of threads */
        for (int part = 0; part < c_parts; part++)
        {
            sum += tail[part][p];
        }
        error[p] = c_errorScale * (cells->rectangular ? 1 : c_skewedScale) * sqrt(2 * sum);
    }
}

/* Shapes of cells that differ by less than this, in the cells' unit, use the same predicted errors. */
static const double c_sameShape = 1e-6;

/* The cell in its own unit; the edges of a rectangular one are sorted by length, since their order makes no difference.
 */
static void shape_of(const fmm_cells* cells, double* shape)
{
    for (int i = 0; i < 9; i++)
    {
        shape[i] = cells->cell[i] / cells->lambda;
    }
    for (int i = 0; i < 3 && cells->rectangular; i++)
    {
        static const int pairs[3][2] = {{0, 4}, {4, 8}, {0, 4}};
        const int        a = pairs[i][0], b = pairs[i][1];
        const double     low = fmin(shape[a], shape[b]), high = fmax(shape[a], shape[b]);
        shape[a] = low;
        shape[b] = high;
    }
}

static int is_alike(const double* a, const double* b)
{
    double difference = 0;
    for (int i = 0; i < 9; i++)
    {
        difference = fmax(difference, fabs(a[i] - b[i]));
    }
    return difference < c_sameShape;
}

void fmm_predict_error(const fmm_problem* problem, const fmm_cells* cells, int ws, int last, double* error)
{
    fmm_known_errors* known = problem->known;
    double            shape[9];
    int               i = 0;
    if (known == NULL)
    {
        apply_model(problem, cells, last, error);
        return;
    }
    shape_of(cells, shape);
    while (i < known->num && !(known->shapes[i].ws == ws && known->shapes[i].num_near == cells->num_near &&
                               known->shapes[i].last >= last && is_alike(known->shapes[i].shape, shape)))
    {
        i++;
    }
    if (i == known->num)
    {
        known->num += known->num < FMM_KNOWN_SHAPES;
        i                         = known->num - 1;
        known->shapes[i].ws       = ws;
        known->shapes[i].num_near = cells->num_near;
        known->shapes[i].last     = last;
        memcpy(known->shapes[i].shape, shape, sizeof(shape));
        apply_model(problem, cells, last, known->shapes[i].error);
    }
    memcpy(error, known->shapes[i].error, ((size_t)last + 1) * sizeof(double));
}

int fmm_predict_enough(
    const fmm_problem* problem, const fmm_cells* cells, int ws, int last, double enough, double* error)
{
    const int usual = last < c_usualOrder ? last : c_usualOrder;
    fmm_predict_error(problem, cells, ws, enough > 0 ? usual : last, error);
    if (enough > 0 && error[usual] <= enough)
    {
        return usual;
    }
    if (enough > 0 && usual < last)
    {
        fmm_predict_error(problem, cells, ws, last, error);
    }
    return last;
}

double fmm_density_factor(double per_cell)
{
    /* errors of sources add up as the root of their number; forces of a liquid grow as its density to the power of 2/3
     */
    return per_cell > 1 ? pow(per_cell, 0.5 - 2.0 / 3.0) : 1;
}

/* Cost of the transforms per cell and coefficient; slowness: of the grid's lengths, relative to powers of 2. */
static double transforms(const fmm_costs* c, double cells, double slowness, int two_steps)
{
    return c->fft_log2 * log2(cells + 1) * slowness + (two_steps ? c->fft_two_steps : c->fft_other);
}

/* Cost of a step with n particles in used_cells of these cells. */
static double cost(const fmm_problem* problem, const fmm_cells* cells, double n, int used_cells, int order)
{
    const fmm_costs* c         = problem->costs;
    const int        is_double = problem->options->precision == GMXFMM_DOUBLE;
    const double     coef = (order + 1.0) * (order + 1.0), all = cells->num_cells;
    double           slowness  = 1;
    int              two_steps = 1;
    for (int d = 0; d < 3; d++)
    {
        slowness *= cbrt(fmm_fft_slowness(cells->n[d]));
        two_steps = two_steps && fmm_two_step_radix(cells->n[d]);
    }
    const double all_pairs = n * n * c->pair * (is_double ? c->pair_double : 1);
    if (c->skips_far && is_double && used_cells == 1 && !fmm_has_images(problem->periodic))
    {
        return all_pairs + c->gather;
    }
    const double pairs = all_pairs / used_cells * cells->num_near;
    const double near =
        pairs + (double)used_cells * cells->num_near * c->gather + used_cells * c->cell * (is_double ? 2 : 1);
    const double far =
        n * coef * c->coefficient + all * coef * (transforms(c, all, slowness, two_steps) + coef * c->point);
    return near + far * (is_double ? 2 : 1);
}

typedef struct
{
    double cost, error, edge;
    int    good; /* reaches the target, with even cells */
    int    order, ws, grid[3];
} choice;

enum
{
    c_mostTried = 256
};

/* The best choice so far and, if list is not NULL, the cheapest of the good ones, in any order. */
typedef struct
{
    choice         best;
    fmm_candidate* list;
    int            num, room;
    int            tried[c_mostTried][4]; /* grids tried, and ws: trying them again would cost a third more time */
    int            num_tried;
} choices;

/* Whether these cells were tried before; records them. */
static int was_tried(choices* found, const int* grid, int ws)
{
    const int these[4] = {grid[0], grid[1], grid[2], ws};
    for (int i = 0; i < found->num_tried; i++)
    {
        if (memcmp(found->tried[i], these, sizeof(these)) == 0)
        {
            return 1;
        }
    }
    if (found->num_tried < c_mostTried)
    {
        memcpy(found->tried[found->num_tried++], these, sizeof(these));
    }
    return 0;
}

/* Of grids whose numbers of cells differ by less than this factor one is listed: 15 x 15 x 16 or 15 x 16 x 15, say. */
static const double c_alike = 1.1;

/* Cells that cost this many times as much as the best are not listed. */
static const double c_listed = 2;

static double num_cells_of(const int* grid)
{
    return (double)grid[0] * grid[1] * grid[2];
}

/* Index of the listed choice that a new one replaces if it is cheaper: one that is much like it, or the most expensive
 * one of a full list; -1: it is to be appended. */
static int place_in_list(const choices* found, const choice* c)
{
    int worst = 0;
    for (int i = 0; i < found->num; i++)
    {
        const double ratio = num_cells_of(found->list[i].grid) / num_cells_of(c->grid);
        if (found->list[i].ws == c->ws && ratio < c_alike && ratio * c_alike > 1)
        {
            return i;
        }
        worst = found->list[i].cost > found->list[worst].cost ? i : worst;
    }
    return found->num < found->room ? -1 : worst;
}

static void list_choice(choices* found, const choice* c)
{
    const fmm_candidate candidate = {c->cost, c->order, c->ws, {c->grid[0], c->grid[1], c->grid[2]}};
    const int           at        = place_in_list(found, c);
    if (at < 0)
    {
        found->list[found->num++] = candidate;
    }
    else if (c->cost < found->list[at].cost)
    {
        found->list[at] = candidate;
    }
}

double fmm_fft_cost(const fmm_problem* problem, double cells, int order)
{
    const double coef = (order + 1.0) * (order + 1.0);
    return cells * coef * (transforms(problem->costs, cells, 1, 1) + coef * problem->costs->point);
}

int fmm_last_order(const fmm_problem* problem, int ws)
{
    return fmm_is_auto(problem->options->separation) && ws == 1
               ? c_lastOrderWs1
               : problem->costs->last_order[problem->options->precision];
}

double fmm_target_error(const fmm_problem* problem)
{
    /* the mean over few pairs may be far above the model's, if these are in facing corners; n = 0: no number is given
     */
    const double n = (double)problem->n, pairs = n > 2 ? n * (n - 1) / 2 : 1;
    return c_margin * problem->options->accuracy / (n > 0 ? 1 + c_worstPair / sqrt(pairs) : 1);
}

/* Whether cells can become the best, or one of those listed, given a lower bound of their cost. */
static int may_be_chosen(const choices* found, double least_cost)
{
    return !found->best.good || least_cost <= (found->list != NULL ? c_listed : 1) * found->best.cost;
}

/* Tries one grid: updates *found if an order within range reaches the target error at less cost or, as long as none
 * reaches it, comes closer to it. */
static gmxfmm_status
tune_grid(const fmm_problem* problem, fmm_cells* cells, const fmm_layout* layout, int ws, double n, choices* found)
{
    const int*   grid = layout->grid;
    choice*      best = &found->best;
    double       error[c_maxOrder + 1];
    const int    fixed  = problem->options->order;
    const double target = fmm_target_error(problem);
    if (was_tried(found, grid, ws))
    {
        return GMXFMM_OK;
    }
    const gmxfmm_status status = fmm_cells_set(cells, layout->box, grid, problem->periodic, ws, 0);
    if (status != GMXFMM_OK)
    {
        return status == GMXFMM_ERROR_UNSUPPORTED ? GMXFMM_OK : status;
    }
    const double edge  = layout->edge > 0 ? layout->edge : cells->edge;
    const int    used  = grid[0] * grid[1] * grid[2];
    const int    first = fixed >= 0 ? fixed : 1;
    int          last  = fixed >= 0 ? fixed : fmm_last_order(problem, ws);
    while (last >= first && !may_be_chosen(found, cost(problem, cells, n, used, last)))
    {
        last--; /* too expensive, whatever its error is */
    }
    if (last < first)
    {
        return GMXFMM_OK;
    }
    const int even = problem->options->grid[0] > 0 || fmm_covering_radius(cells) <= c_evenCells * cells->far_distance;
    last = fmm_predict_enough(problem, cells, ws, last, fixed < 0 && even ? target / fmm_density_factor(n / used) : 0,
                              error);
    for (int p = first; p <= last; p++)
    {
        error[p] *= fmm_density_factor(n / used);
        const double c    = cost(problem, cells, n, used, p);
        const int    good = even && error[p] <= target, best_good = best->good;
        const choice this = {c, error[p], edge, good, p, ws, {grid[0], grid[1], grid[2]}};
        if (good ? (!best_good || c < best->cost) : (!best_good && error[p] < best->error))
        {
            *best = this;
        }
        if (good && found->list != NULL)
        {
            list_choice(found, &this);
        }
        if (good && fixed < 0)
        {
            break; /* a higher order costs more */
        }
    }
    return GMXFMM_OK;
}

/* Tries all cells that the options allow. */
static gmxfmm_status tune_all(const fmm_problem* given, const double* low, const double* high, choices* found)
{
    const gmxfmm_options* o      = given->options;
    fmm_cells             cells  = {0};
    gmxfmm_status         status = GMXFMM_OK;
    fmm_known_errors*     here   = given->known == NULL ? calloc(1, sizeof(*here)) : NULL; /* NULL: predicted again */
    fmm_problem           own    = *given;
    own.known                    = given->known != NULL ? given->known : here;
    const fmm_region   region    = fmm_region_of(&own, low, high);
    const fmm_layouts* layouts   = fmm_layouts_of(&own, 0);
    const int    first_ws = o->separation > 0 ? o->separation : 1, last_ws = o->separation > 0 ? o->separation : 2;
    const choice none = {INFINITY, INFINITY, 0, 0, 0, 0, {1, 1, 1}};
    found->best       = none;
    for (int ws = first_ws; ws <= last_ws; ws++)
    {
        for (int i = 0, there = 0; there >= 0 && status == GMXFMM_OK; i++)
        {
            fmm_layout layout = {.edge = 0};
            there             = layouts->layout(&region, i, &layout);
            status            = there > 0 ? tune_grid(&own, &cells, &layout, ws, region.n, found) : GMXFMM_OK;
        }
    }
    fmm_cells_free(&cells);
    free(here);
    return status;
}

gmxfmm_status fmm_not_chosen(const fmm_problem* problem, gmxfmm_status status, const char* format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(problem->message, problem->message_size, format, arguments);
    va_end(arguments);
    return status;
}

gmxfmm_status fmm_tune(const fmm_problem* problem, const double* low, const double* high, fmm_choice* chosen)
{
    choices             found  = {.list = NULL};
    const gmxfmm_status status = tune_all(problem, low, high, &found);
    const choice*       best   = &found.best;
    if (status == GMXFMM_OK && best->ws == 0)
    {
        return fmm_not_chosen(problem, GMXFMM_ERROR_UNSUPPORTED,
                              "the cells would be too long or too skewed in this box with m2l = fft: choose %s",
                              fmm_layouts_of(problem, 1) != NULL && fmm_has_images(problem->periodic) &&
                                      fmm_is_aligned(problem->box)
                                  ? "m2l = rotation, or a more even grid"
                                  : "a more even grid");
    }
    if (status != GMXFMM_OK)
    {
        return fmm_not_chosen(problem, status, "out of memory");
    }
    chosen->m2l        = GMXFMM_M2L_FFT;
    chosen->order      = best->order;
    chosen->separation = best->ws;
    chosen->error      = best->error;
    chosen->edge       = best->edge;
    memcpy(chosen->grid, best->grid, sizeof(chosen->grid));
    return GMXFMM_OK;
}

static int compare_costs(const void* a, const void* b)
{
    const double difference = ((const fmm_candidate*)a)->cost - ((const fmm_candidate*)b)->cost;
    return difference > 0 ? 1 : difference < 0 ? -1 : 0;
}

int fmm_tune_candidates(const fmm_problem* problem, fmm_candidate* list, int room)
{
    choices found = {.list = list, .room = room};
    if (tune_all(problem, NULL, NULL, &found) != GMXFMM_OK)
    {
        return 0;
    }
    qsort(list, (size_t)found.num, sizeof(*list), compare_costs);
    return found.num;
}

int fmm_tune_cells(const fmm_problem* problem, const int* grid, int ws, double* error, double* costs)
{
    const int           last   = fmm_most_order(problem->options->precision);
    const double        num    = problem->n > 0 ? (double)problem->n : 1.0;
    const int           used   = grid[0] * grid[1] * grid[2];
    fmm_cells           cells  = {0};
    const gmxfmm_status status = fmm_cells_set(&cells, problem->box, grid, problem->periodic, ws, 0);
    if (status == GMXFMM_OK)
    {
        fmm_predict_error(problem, &cells, ws, last, error);
        for (int p = 0; p <= last; p++)
        {
            error[p] *= fmm_density_factor(num / used);
            costs[p] = cost(problem, &cells, num, used, p);
        }
    }
    fmm_cells_free(&cells);
    return status == GMXFMM_OK;
}

double fmm_error_said(double error)
{
    if (!(error > 0 && isfinite(error)))
    {
        return error;
    }
    const double unit = pow(10, floor(log10(error)) - 1);
    return ceil(error / unit - 1e-9) * unit; /* what has two digits keeps them */
}

gmxfmm_status fmm_check_reach(const fmm_problem* problem, const fmm_choice* chosen)
{
    const gmxfmm_options* o     = problem->options;
    const int             given = o->grid[0] > 0 || o->depth >= 0 || o->separation > 0;
    if (o->order >= 0 || !(chosen->error > o->accuracy))
    {
        return GMXFMM_OK;
    }
    return fmm_not_chosen(problem, GMXFMM_ERROR_OPTION,
                          "accuracy %g is out of reach %s: predicted is %.2g at order %d; %s, or ask for less",
                          o->accuracy, given ? "with the grid, depth or separation given" : "for this system",
                          fmm_error_said(chosen->error), chosen->order,
                          given ? "leave them automatic" : "choose another m2l");
}
