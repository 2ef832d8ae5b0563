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
    const double pairs = n * n / used_cells * cells->num_near * c->pair * (is_double ? c->pair_double : 1);
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
    c_edges      = 22, /* number of edges of cells that are tried in a periodic box */
    c_likelyEdge = 7,  /* the one that is tried first: 13 particles a cell */
    c_mostTried  = 256
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
static gmxfmm_status tune_grid(
    const fmm_problem* problem, fmm_cells* cells, const double* box, const int* grid, int ws, double n, choices* found)
{
    choice*      best = &found->best;
    double       error[c_maxOrder + 1];
    const int    fixed  = problem->options->order;
    const double target = fmm_target_error(problem);
    if (was_tried(found, grid, ws))
    {
        return GMXFMM_OK;
    }
    const gmxfmm_status status = fmm_cells_set(cells, box, grid, problem->periodic, ws, 0);
    if (status != GMXFMM_OK)
    {
        return status == GMXFMM_ERROR_UNSUPPORTED ? GMXFMM_OK : status;
    }
    const int used  = grid[0] * grid[1] * grid[2];
    const int first = fixed >= 0 ? fixed : 1;
    int       last  = fixed >= 0 ? fixed : fmm_last_order(problem, ws);
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
        const choice this = {c, error[p], cells->edge, good, p, ws, {grid[0], grid[1], grid[2]}};
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

static int size_below(int n)
{
    while (n > 1 && !fmm_is_fft_size(n))
    {
        n--;
    }
    return n;
}

/* Tries all grids of cells with nearly that edge: along each vector the FFT sizes just below and above. */
static gmxfmm_status tune_edge(
    const fmm_problem* problem, fmm_cells* cells, const double* box, double edge, int ws, double n, choices* found)
{
    int option[3][2];
    for (int d = 0; d < 3; d++)
    {
        const double* a       = box + 3 * d;
        const double  wanted  = sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2]) / edge;
        const int     floored = wanted < 1 ? 1 : wanted > 1000 ? 1000 : (int)wanted;
        option[d][0]          = size_below(floored);
        option[d][1]          = fmm_fft_size(floored + 1);
    }
    for (int i = 0; i < 8; i++)
    {
        const int           grid[3] = {option[0][i & 1], option[1][i >> 1 & 1], option[2][i >> 2 & 1]};
        const gmxfmm_status status  = tune_grid(problem, cells, box, grid, ws, n, found);
        if (status != GMXFMM_OK)
        {
            return status;
        }
    }
    return GMXFMM_OK;
}

/* Open systems: tries cubes of one edge, as many as the given grid has or as fill the box. */
static gmxfmm_status tune_cubes(
    const fmm_problem* problem, fmm_cells* cells, const double* box, double edge, int ws, double n, choices* found)
{
    double cubes[9] = {0};
    int    grid[3];
    for (int d = 0; d < 3; d++)
    {
        const double k = ceil(box[4 * d] / edge - 1e-6);
        grid[d]        = problem->options->grid[d] > 0 ? problem->options->grid[d] : k < 1 ? 1 : (int)k;
        cubes[4 * d]   = grid[d] * edge;
    }
    return tune_grid(problem, cells, cubes, grid, ws, n, found);
}

static gmxfmm_status
tune_grids(const fmm_problem* problem, fmm_cells* cells, const double* box, int ws, double n, choices* found)
{
    const int*    given  = problem->options->grid;
    gmxfmm_status status = GMXFMM_OK;
    if (given[0] > 0)
    {
        const double edge = fmax(box[0] / given[0], fmax(box[4] / given[1], box[8] / given[2]));
        return fmm_has_images(problem->periodic) ? tune_grid(problem, cells, box, given, ws, n, found)
                                                 : tune_cubes(problem, cells, box, edge, ws, n, found);
    }
    if (fmm_has_images(problem->periodic))
    {
        /* From about 2 to about 400 particles a cell, in steps of a tenth of the edge. Those that are often chosen come
         * first, so that most of the others are found too expensive before their errors are predicted. */
        const double volume = fmm_determinant(box);
        for (int i = 0; i < 2 * c_edges && status == GMXFMM_OK; i++)
        {
            const int    step     = c_likelyEdge + (i % 2 ? -(i + 1) / 2 : i / 2);
            const double per_cell = 2 * pow(1.3, step);
            if (step >= 0 && step < c_edges && !(step > 0 && per_cell > 1.3 * n)) /* a single cell is tried once */
            {
                status = tune_edge(problem, cells, box, cbrt(volume * per_cell / n), ws, n, found);
            }
        }
        return status;
    }
    double longest = fmax(box[0], fmax(box[4], box[8])), edge = longest;
    for (double num = 1; num < 2 * n + 2 && status == GMXFMM_OK; edge /= 1.1)
    {
        status = tune_cubes(problem, cells, box, edge, ws, n, found);
        num    = ceil(box[0] / edge) * ceil(box[4] / edge) * ceil(box[8] / edge);
    }
    return status;
}

int fmm_slab_layers_of(double thickness, double height)
{
    /* 1e-6, as of open systems */
    const double layers = ceil(thickness / height - 1e-6);
    return layers < 1 ? 1 : layers > 1e6 ? 1000000 : (int)layers;
}

/* Layers of a slab are higher than it takes, by so much, that others are not needed as soon as its thickness changes.
 */
static const double c_slack = 1.01;

/* Most cells of a wire for n particles: this many times as many, and some. */
static const double c_mostOfWire = 2, c_fewOfWire = 4096;

/* Of a wire that is wide cells may be so many times as wide as its period: more images would be near than can be. */
static const double c_widest = 15;

/* Lowest layer, relative to a cell's width in the plane: the sums of a slab reach the farther in wave vectors the
 * thinner its layers are. */
static const double c_lowest = 0.3;

double fmm_slab_height(const fmm_problem* problem, double thickness, const int* grid)
{
    const double* box   = problem->box;
    const double  width = sqrt(fabs(box[0] * box[4] - box[1] * box[3]) / grid[0] / grid[1]);
    const double  slack = problem->options->grid[0] > 0 ? 1 + 1e-9 : c_slack;
    return fmax(slack * thickness / grid[2], grid[2] == 1 ? width : c_lowest * width);
}

/* Tries one grid of a slab, box[9] with its thickness. */
static gmxfmm_status tune_layers(
    const fmm_problem* problem, fmm_cells* cells, const double* box, const int* grid, int ws, double n, choices* found)
{
    const double height = fmm_slab_height(problem, box[8], grid);
    const choice before = found->best;
    double       slab[9];
    memcpy(slab, box, sizeof(slab));
    slab[8]                    = height * grid[2];
    const gmxfmm_status status = tune_grid(problem, cells, slab, grid, ws, n, found);
    if (memcmp(&before, &found->best, sizeof(before)) != 0)
    {
        found->best.edge = height;
    }
    return status;
}

/* All grids of a slab with cells of nearly that edge: the FFT sizes just below and above in the plane, and layers. */
static gmxfmm_status tune_slab_edge(
    const fmm_problem* problem, fmm_cells* cells, const double* box, double edge, int ws, double n, choices* found)
{
    int           option[3][2];
    gmxfmm_status status = GMXFMM_OK;
    for (int d = 0; d < 3; d++)
    {
        const double* a       = box + 3 * d;
        const double  wanted  = sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2]) / edge;
        const int     floored = wanted < 1 ? 1 : wanted > 1000 ? 1000 : (int)wanted;
        option[d][0]          = d < 2 ? size_below(floored) : floored;
        option[d][1]          = d < 2 ? fmm_fft_size(floored + 1) : floored + 1;
    }
    for (int i = 0; i < 8 && status == GMXFMM_OK; i++)
    {
        const int grid[3] = {option[0][i & 1], option[1][i >> 1 & 1], option[2][i >> 2 & 1]};
        status            = tune_layers(problem, cells, box, grid, ws, n, found);
    }
    return status;
}

/* Edge of cells that hold `per_cell` of n particles in a slab, box[9] with its thickness. */
static double slab_edge(const double* box, double per_cell, double n)
{
    const double area = fabs(box[0] * box[4] - box[1] * box[3]), edge = cbrt(area * box[8] * per_cell / n);
    return edge < box[8] ? edge : sqrt(area * per_cell / n); /* one layer */
}

/* As tune_grids, of a slab. */
static gmxfmm_status
tune_slab(const fmm_problem* problem, fmm_cells* cells, const double* box, int ws, double n, choices* found)
{
    gmxfmm_status status = GMXFMM_OK;
    if (problem->options->grid[0] > 0)
    {
        return tune_layers(problem, cells, box, problem->options->grid, ws, n, found);
    }
    for (int i = 0; i < 2 * c_edges && status == GMXFMM_OK; i++)
    {
        const int    step     = c_likelyEdge + (i % 2 ? -(i + 1) / 2 : i / 2);
        const double per_cell = 2 * pow(1.3, step);
        if (step >= 0 && step < c_edges && !(step > 0 && per_cell > 1.3 * n))
        {
            status = tune_slab_edge(problem, cells, box, slab_edge(box, per_cell, n), ws, n, found);
        }
    }
    return status;
}

/* Tries cells of a wire, box[9] with its widths: num along the period, `times` as wide as that makes them high, and as
 * many across as it takes; or a grid. */
static gmxfmm_status tune_wire_grid(const fmm_problem* problem,
                                    fmm_cells*         cells,
                                    const double*      box,
                                    int                num,
                                    double             times,
                                    int                ws,
                                    double             n,
                                    choices*           found)
{
    const int*   given   = problem->options->grid;
    const double edge    = box[8] / num;
    double       wire[9] = {0}, width = times * edge;
    int          grid[3] = {0, 0, num};
    const choice before  = found->best;
    if (given[0] > 0)
    {
        const double least = given[0] == 1 && given[1] == 1 ? edge : c_lowest * edge;
        width              = fmax(least, (1 + 1e-9) * fmax(box[0] / given[0], box[4] / given[1]));
    }
    for (int d = 0; d < 2; d++)
    {
        grid[d]     = given[0] > 0 ? given[d] : fmm_slab_layers_of(c_slack * box[4 * d], width);
        wire[4 * d] = grid[d] * width;
    }
    wire[8] = box[8];
    if (given[0] <= 0 && (double)grid[0] * grid[1] * num > c_mostOfWire * n + c_fewOfWire)
    {
        return GMXFMM_OK;
    }
    const gmxfmm_status status = tune_grid(problem, cells, wire, grid, ws, n, found);
    if (memcmp(&before, &found->best, sizeof(before)) != 0)
    {
        found->best.edge = width;
    }
    return status;
}

/* As tune_grids, of a wire. */
static gmxfmm_status
tune_wire(const fmm_problem* problem, fmm_cells* cells, const double* box, int ws, double n, choices* found)
{
    gmxfmm_status status = GMXFMM_OK;
    if (problem->options->grid[0] > 0)
    {
        return tune_wire_grid(problem, cells, box, problem->options->grid[2], 1, ws, n, found);
    }
    for (double times = 1.5; times < c_widest && status == GMXFMM_OK; times *= 1.5)
    {
        status = tune_wire_grid(problem, cells, box, 1, times, ws, n, found);
    }
    for (int num = 1; num <= 1000 && status == GMXFMM_OK; num = fmm_fft_size(num + 1))
    {
        status = tune_wire_grid(problem, cells, box, num, 1, ws, n, found);
    }
    return status;
}

/* Tries all cells that the options allow. */
static gmxfmm_status tune_all(const fmm_problem* given, const double* box, choices* found)
{
    const gmxfmm_options* o       = given->options;
    fmm_cells             cells   = {0};
    gmxfmm_status         status  = GMXFMM_OK;
    fmm_known_errors*     here    = given->known == NULL ? calloc(1, sizeof(*here)) : NULL; /* NULL: predicted again */
    fmm_problem           own     = *given;
    const fmm_problem*    problem = &own;
    own.known                     = given->known != NULL ? given->known : here;
    const int    first_ws = o->separation > 0 ? o->separation : 1, last_ws = o->separation > 0 ? o->separation : 2;
    const choice none = {INFINITY, INFINITY, 0, 0, 0, 0, {1, 1, 1}};
    found->best       = none;
    for (int ws = first_ws; ws <= last_ws && status == GMXFMM_OK; ws++)
    {
        const double n = problem->n > 0 ? (double)problem->n : 1.0;
        status         = fmm_is_slab(problem->periodic)   ? tune_slab(problem, &cells, box, ws, n, found)
                         : fmm_is_wire(problem->periodic) ? tune_wire(problem, &cells, box, ws, n, found)
                                                          : tune_grids(problem, &cells, box, ws, n, found);
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

static gmxfmm_status tune(const fmm_problem* problem, const double* box, fmm_choice* chosen)
{
    choices             found  = {.list = NULL};
    const gmxfmm_status status = tune_all(problem, box, &found);
    const choice*       best   = &found.best;
    if (status == GMXFMM_OK && best->ws == 0)
    {
        return fmm_not_chosen(problem, GMXFMM_ERROR_UNSUPPORTED,
                              "the cells would be too long or too skewed in this box with m2l = fft: choose %s",
                              fmm_has_images(problem->periodic) && !fmm_is_wire(problem->periodic) &&
                                      fmm_is_aligned(box)
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
    if (tune_all(problem, problem->box, &found) != GMXFMM_OK)
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

gmxfmm_status fmm_tune(const fmm_problem* problem, fmm_choice* chosen)
{
    return tune(problem, problem->box, chosen);
}

/* Width of the box for particles between low and high, at least a little in each direction, as particles on a line or
 * in a plane need a box, too; 1 for a single particle. */
static void fill(const double* low, const double* high, double* width)
{
    double longest = 0;
    for (int d = 0; d < 3; d++)
    {
        width[d] = high[d] - low[d];
        longest  = fmax(longest, width[d]);
    }
    for (int d = 0; d < 3; d++)
    {
        width[d] = longest > 0 ? fmax(width[d], 0.01 * longest) : 1.0;
    }
}

gmxfmm_status fmm_tune_open(const fmm_problem* problem, const double* low, const double* high, fmm_choice* chosen)
{
    double width[3];
    fill(low, high, width);
    const double box[9] = {width[0], 0, 0, 0, width[1], 0, 0, 0, width[2]};
    return tune(problem, box, chosen);
}

gmxfmm_status fmm_tune_slab(const fmm_problem* problem, double thickness, fmm_choice* chosen)
{
    double box[9];
    memcpy(box, problem->box, sizeof(box));
    box[8] = thickness;
    return tune(problem, box, chosen);
}

gmxfmm_status fmm_tune_wire(const fmm_problem* problem, const double* width, fmm_choice* chosen)
{
    const double box[9] = {width[0], 0, 0, 0, width[1], 0, 0, 0, problem->box[8]};
    return tune(problem, box, chosen);
}

void fmm_open_grid(int64_t n, const double* low, const double* high, double* edge, int* grid)
{
    const double most = 8.0 * (double)n + 64;
    double       width[3];
    fill(low, high, width);
    for (;; *edge *= 1.25)
    {
        double cells = 1;
        for (int d = 0; d < 3; d++)
        {
            /* 1e-6, so that rounding of the outermost particles does not add a layer of cells */
            const double k = ceil(width[d] / *edge - 1e-6);
            cells *= fmax(k, 1);
            grid[d] = k < 1 ? 1 : k > 1e6 ? 1000000 : (int)k;
        }
        if (cells <= most)
        {
            break;
        }
    }
}
