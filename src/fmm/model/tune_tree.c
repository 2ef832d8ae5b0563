/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Choice of depth, order and ws of the octree: the cheapest whose predicted error is below the one asked for. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/geometry/fftsize.h"
#include "fmm/geometry/tree.h"
#include "fmm/geometry/tree_sort.h"
#include "fmm/math/harmonics.h"
#include "fmm/math/threads.h"
#include "fmm/model/layouts.h"
#include "fmm/model/tune.h"
#include "fmm/numbers.h"
#include "fmm/options.h"

/* Each level adds the error of its own translations, whose mean square is half that of the level below. The error of
 * all levels is at most this many times that of the leaves. */
static const double c_levels = 1.41421356;

/* Most pairs of a leaf above the last level that are tried, where leaves may be of several levels. */
static const int c_most[] = {25000, 50000, 100000, 200000, 400000, 800000, 1600000};

/* Such leaves are chosen over those of one level if their cost is less by this factor. */
static const double c_unevenness = 1.2;

enum
{
    c_numMost = sizeof(c_most) / sizeof(c_most[0])
};

/* Occupancy of the leaves of a tree, by its depth; and of leaves of several levels. */
typedef struct
{
    double leaves[FMM_MAX_DEPTH + 1];  /* leaves that hold particles */
    double squares[FMM_MAX_DEPTH + 1]; /* sum over leaves of n (n - 1) */
    int    divided;                    /* whether there is what follows, by c_most */
    struct
    {
        double leaves, squares, cells; /* cells of all levels */
        double near[2];                /* pairs of near particles, each twice, by ws */
        int    depth;
    } most[c_numMost];
} occupancy;

typedef struct
{
    double cost, error;
    int    good, order, ws, depth, most;
} choice;

/* An octree over some roots: the best of its depths and orders, and what is in it. */
typedef struct
{
    fmm_layout roots;
    choice     best;
    occupancy  o;
} octree;

/* Time of one translation in tune.c's unit, by method (benchmarks/operators, one thread, AVX-512, single precision). */
static double translation_cost(gmxfmm_m2l m2l, int p)
{
    const double q = p + 1.0;
    switch (m2l)
    {
    case GMXFMM_M2L_NAIVE:
        return 35 + 1.6 * q * q + 0.13 * q * q * q * q;
    case GMXFMM_M2L_SYMMETRIC:
        return 15 + 1.65 * q * q + 0.023 * q * q * q * q;
    default:
        return 25 + 0.55 * q * q + 0.21 * q * q * q;
    }
}

/* The method of M2L. Where an octree is chosen automatically, most of the box is empty. Rotation is best then, as it
 * translates to one occupied cell at a time; symmetric translates to a vector of neighbouring cells at once, empty ones
 * included. */
static gmxfmm_m2l method(const fmm_problem* problem)
{
    return problem->options->m2l != GMXFMM_M2L_AUTO ? problem->options->m2l : GMXFMM_M2L_ROTATION;
}

/* Cost of one pair of near particles. */
static double pair_cost(const fmm_problem* problem)
{
    return problem->costs->pair * (problem->options->precision == GMXFMM_DOUBLE ? problem->costs->pair_double : 1);
}

/* Cost of pairs, gathering, P2M and L2P, as in tune.c but with the occupancy of the cells. */
static double cost_of_leaves(const fmm_problem* problem, const occupancy* o, double n, int depth, int ws, int p)
{
    const fmm_costs* c    = problem->costs;
    const double     near = (2 * ws + 1) * (2 * ws + 1) * (2 * ws + 1), coef = (p + 1) * (p + 1);
    const int        more = problem->options->precision == GMXFMM_DOUBLE ? 2 : 1;
    return near * (o->squares[depth] + n) * pair_cost(problem) +
           (o->leaves[depth] * c->cell + n * coef * c->coefficient) * more + o->leaves[depth] * near * c->gather;
}

static double cost(const fmm_problem* problem, const occupancy* o, const int* roots, double n, int depth, int ws, int p)
{
    const fmm_costs* c    = problem->costs;
    const double     near = (2 * ws + 1) * (2 * ws + 1) * (2 * ws + 1), list = 7 * near;
    const int        more = problem->options->precision == GMXFMM_DOUBLE ? 2 : 1;
    double           far  = o->leaves[depth] * 8 / 7 * list * translation_cost(method(problem), p);
    far                   = far * c->translation[method(problem)] + depth * c->level;
    if (fmm_has_images(problem->periodic))
    {
        far += fmm_fft_cost(problem, (double)roots[0] * roots[1] * roots[2], p);
    }
    return cost_of_leaves(problem, o, n, depth, ws, p) + far * more;
}

/* Depth of the deepest tree over these roots whose grid of leaves is not too large. */
static int last_depth_of(const fmm_problem* problem, const int* roots)
{
    int    depth  = fmm_deepest(roots);
    double places = (double)roots[0] * roots[1] * roots[2] * pow(8, depth);
    for (; depth > 1 && places > problem->costs->most_places; depth--)
    {
        places /= 8;
    }
    return depth;
}

/* Cost with leaves of several levels. */
static double cost_divided(const fmm_problem* problem, const occupancy* o, double n, int which, int ws, int p)
{
    const fmm_costs* c    = problem->costs;
    const double     near = (2 * ws + 1) * (2 * ws + 1) * (2 * ws + 1), list = 7 * near;
    const int        more = problem->options->precision == GMXFMM_DOUBLE ? 2 : 1;
    const double     far =
        o->most[which].cells * list * translation_cost(method(problem), p) * c->translation[method(problem)] +
        o->most[which].depth * c->level;
    const double pairs = o->most[which].near[ws - 1] * pair_cost(problem);
    return c_unevenness *
           (pairs + (o->most[which].leaves * c->cell + n * (p + 1) * (p + 1) * c->coefficient + far) * more +
            o->most[which].leaves * near * c->gather);
}

/* As tune_depth, of leaves of several levels. error: by order. */
static void tune_divided(
    const fmm_problem* problem, int ws, double n, const occupancy* o, const double* error, int last, choice* best)
{
    const int fixed = problem->options->order;
    for (int which = 0; which < c_numMost; which++)
    {
        const double density = fmm_density_factor(o->most[which].squares / fmax(n, 1));
        for (int p = fixed >= 0 ? fixed : 1; p <= last; p++)
        {
            const double predicted = c_levels * error[p] * density;
            const double c         = cost_divided(problem, o, n, which, ws, p);
            if (predicted <= fmm_target_error(problem))
            {
                if (!best->good || c < best->cost)
                {
                    const choice found = {c, predicted, 1, p, ws, o->most[which].depth, c_most[which]};
                    *best              = found;
                }
                break;
            }
        }
    }
}

/* Highest order to be tried. */
static int last_order(const fmm_problem* problem, int ws)
{
    const int model = fmm_last_order(problem, ws), most = problem->costs->last_order[problem->options->precision];
    return !problem->is_sampled || most < FMM_LAST_SAMPLED || model > FMM_LAST_SAMPLED ? model : FMM_LAST_SAMPLED;
}

/* Tries the depths and orders that the options allow, and updates *best. */
static gmxfmm_status tune_depth(
    const fmm_problem* problem, const double* box, const int* roots, int ws, double n, const occupancy* o, choice* best)
{
    const gmxfmm_options* options = problem->options;
    double                error[GMXFMM_MAX_ORDER + 1];
    fmm_cells             cells  = {0};
    const gmxfmm_status   status = fmm_cells_set_octree(&cells, box, roots, problem->periodic, ws, 0);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    const int    fixed  = options->order;
    const double enough = fixed < 0 ? fmm_target_error(problem) / c_levels : 0; /* density only makes errors less */
    const int    last =
        fmm_predict_enough(problem, &cells, ws, fixed >= 0 ? fixed : last_order(problem, ws), enough, error);
    fmm_cells_free(&cells);
    const int given       = fmm_given_depth(options);
    const int first_depth = given > 0 ? given : 1;
    const int last_depth  = given > 0 ? given : last_depth_of(problem, roots);
    for (int depth = first_depth; depth <= last_depth; depth++)
    {
        const double density = fmm_density_factor(o->squares[depth] / fmax(n, 1));
        for (int p = fixed >= 0 ? fixed : 1; p <= last; p++)
        {
            const double predicted = c_levels * error[p] * density;
            const double c         = cost(problem, o, roots, n, depth, ws, p);
            const int    good      = predicted <= fmm_target_error(problem);
            if (good ? (!best->good || c < best->cost) : (!best->good && predicted < best->error))
            {
                const choice found = {c, predicted, good, p, ws, depth, 0};
                *best              = found;
            }
            if (good)
            {
                break; /* a higher order costs more */
            }
        }
        if (o->leaves[depth] > n)
        {
            break; /* emptier leaves only cost more */
        }
    }
    if (o->divided)
    {
        tune_divided(problem, ws, n, o, error, last, best);
    }
    return GMXFMM_OK;
}

/* The best octree over its roots, which what is in it is counted for. */
static gmxfmm_status tune(const fmm_problem* problem, octree* t)
{
    const gmxfmm_options* options = problem->options;
    const choice          none    = {INFINITY, INFINITY, 0, 0, 0, 0, 0};
    const int             first   = options->separation > 0 ? options->separation : 1;
    const int             last    = options->separation > 0 ? options->separation : 2;
    t->best                       = none;
    for (int ws = first; ws <= last; ws++)
    {
        const gmxfmm_status status =
            tune_depth(problem, t->roots.box, t->roots.grid, ws, (double)problem->n, &t->o, &t->best);
        if (status != GMXFMM_OK)
        {
            return fmm_not_chosen(problem, status, "out of memory");
        }
    }
    return GMXFMM_OK;
}

static void take(const fmm_problem* problem, const octree* t, fmm_choice* chosen)
{
    const int* roots   = t->roots.grid;
    chosen->m2l        = method(problem);
    chosen->order      = t->best.order;
    chosen->separation = t->best.ws;
    chosen->error      = t->best.error;
    chosen->depth      = t->best.depth;
    chosen->most       = t->best.most;
    chosen->edge       = t->roots.box[8] / roots[2] / (1 << t->best.depth);
    for (int d = 0; d < 3; d++)
    {
        chosen->roots[d] = roots[d];
        chosen->grid[d]  = roots[d] << t->best.depth;
    }
}

/* What leaves of all depths have of particles that are spread evenly. */
static void spread_evenly(double n, const int* roots, occupancy* o)
{
    o->divided = 0;
    for (int d = 0; d <= FMM_MAX_DEPTH; d++)
    {
        const double cells = (double)roots[0] * roots[1] * roots[2] * pow(8, d), per_cell = n / cells;
        o->leaves[d]  = fmax(1, cells * (1 - exp(-per_cell)));
        o->squares[d] = n * per_cell;
    }
}

/* Morton key of a particle at x among cells of the deepest level. */
static fmm_key
morton_key(const fmm_problem* problem, const double* x, const double* origin, const double* box, const int* cells)
{
    int at[3];
    for (int d = 0; d < 3; d++)
    {
        const double f    = (x[d] - origin[d]) / box[4 * d]; /* if this is not finite, assign reports it */
        const double part = problem->periodic[d] ? f - floor(f) : fmin(fmax(f, 0), 1);
        const int    k    = part >= 0 ? (int)(part * cells[d]) : 0;
        at[d]             = k < cells[d] ? k : cells[d] - 1;
    }
    return fmm_morton_key(at);
}

/* Counts runs of keys that differ in their last `shift` bits only: the particles of a cell. */
static void count_runs(const fmm_keyed* sorted, size_t n, int shift, double* leaves, double* squares)
{
    size_t num = 0, pairs = 0, in_run = 0;
    for (size_t i = 0; i < n; i++)
    {
        const int starts = i == 0 || (fmm_key_of(&sorted[i]) ^ fmm_key_of(&sorted[i - 1])) >> shift != 0;
        in_run           = starts ? 0 : in_run + 1;
        num += (size_t)starts;
        pairs += in_run;
    }
    *leaves  = (double)num;
    *squares = 2 * (double)pairs;
}

/* Whether leaves may be of several levels: cpu/octree/adaptive.c, and octree/leaves.cu on one GPU. Translations to
 * parents would be of leaves, too. */
static int may_divide(const fmm_problem* problem)
{
    const gmxfmm_options* o = problem->options;
    return problem->costs->adapts && !fmm_has_images(problem->periodic) && o->depth <= 0 && !o->m2l_to_parent &&
           o->num_devices < 2 && (o->precision == GMXFMM_DOUBLE || o->array_type == GMXFMM_SINGLE);
}

/* What is being divided: particles in the order of their keys. In rooms[level] the children of a cell are found: as
 * many levels as there may be are not to be on the stack. */
typedef struct
{
    const fmm_keyed* sorted;
    int              which;
    occupancy*       o;
    struct
    {
        size_t        split[27][9];
        fmm_key_block child;
    } rooms[FMM_KEY_BITS];
} division;

/* Particles near to those of a leaf, child `octant` of the cell that `above` is about. A cell that is divided is
 * counted twice, for the leaves in it have this one on their lists; so one that is part of a larger leaf is not. Cells
 * side by side have about as many near particles: the leaf's are taken for theirs. */
static double count_near(const fmm_key_block* block, const fmm_key_block* above, int octant, int level, int most)
{
    const size_t near = fmm_in_block(block), near_above = fmm_in_block(above);
    double       sum = 0;
    for (int k = 0; k < 27; k++)
    {
        int          child;
        const int    parent = fmm_block_above(octant, k, &child);
        const size_t here = block->end[k] - block->begin[k], all = above->end[parent] - above->begin[parent];
        if (k != FMM_BLOCK_MIDDLE && level < FMM_KEY_BITS && fmm_is_divided(here, near, most))
        {
            sum += 2 * (double)here;
        }
        else if (k == FMM_BLOCK_MIDDLE || level == 1 || fmm_is_divided(all, near_above, most))
        {
            sum += (double)here;
        }
    }
    return sum;
}

/* Particles in the 125 cells about child `octant` of the cell that `above` is about, taken to be spread evenly over the
 * children of each cell there. */
static double count_wide(const fmm_key_block* above, int octant)
{
    double sum = 0;
    for (int k = 0; k < 27; k++)
    {
        const int step[3] = {k / 9 - 1, k / 3 % 3 - 1, k % 3 - 1};
        double    share   = 1;
        for (int d = 0; d < 3; d++)
        {
            /* of the two children along an edge, one is too far on the side that the child is not at */
            const int side = (octant >> (2 - d) & 1) ? -1 : 1;
            share *= step[d] == side ? 0.5 : 1;
        }
        sum += share * (double)(above->end[k] - above->begin[k]);
    }
    return sum;
}

/* Adds a cell, child `octant` of the one that `above` is about, and all below it. */
static void divide(division* v, const fmm_key_block* block, const fmm_key_block* above, int octant, int level)
{
    const size_t here = fmm_in_middle(block);
    const int    most = c_most[v->which];
    v->o->most[v->which].cells++;
    if (level > 0 && (level == FMM_KEY_BITS || !fmm_is_divided(here, fmm_in_block(block), most)))
    {
        /* with ws = 2 as many times what is in the cells about it are near as with ws = 1 */
        const double n = (double)here, near = count_near(block, above, octant, level, most);
        v->o->most[v->which].leaves++;
        v->o->most[v->which].squares += n * (n - 1);
        v->o->most[v->which].depth = level > v->o->most[v->which].depth ? level : v->o->most[v->which].depth;
        v->o->most[v->which].near[0] += n * near;
        v->o->most[v->which].near[1] += n * count_wide(above, octant) * near / (double)fmm_in_block(block);
        return;
    }
    fmm_split_block(v->sorted, block, 3 * (FMM_KEY_BITS - level - 1), v->rooms[level].split);
    for (int c = 0; c < 8; c++)
    {
        v->rooms[level].child = fmm_child_block(v->rooms[level].split, c);
        if (fmm_in_middle(&v->rooms[level].child) > 0)
        {
            divide(v, &v->rooms[level].child, block, c, level + 1);
        }
    }
}

/* Counts particles in the cells of all depths. In the order of Morton keys of the deepest level, the particles of a
 * cell of any level are consecutive, as their keys begin with the same bits. */
static gmxfmm_status count_cells(const fmm_problem* problem, const void* x, const fmm_layout* layout, occupancy* o)
{
    const int*    roots    = layout->grid;
    const int64_t n        = problem->n;
    const int     divided  = may_divide(problem) && n > 0 && roots[0] * roots[1] * roots[2] == 1;
    const int     bottom   = divided ? FMM_KEY_BITS : fmm_deepest(roots);
    const int     cells[3] = {roots[0] << bottom, roots[1] << bottom, roots[2] << bottom};
    fmm_keyed*    memory   = malloc((2 * (size_t)n + 1) * sizeof(*memory));
    division*     v        = malloc(sizeof(*v));
    if (memory == NULL || v == NULL)
    {
        free(memory);
        free(v);
        return fmm_not_chosen(problem, GMXFMM_ERROR_MEMORY, "out of memory to sort particles");
    }
#pragma omp parallel for schedule(static) num_threads(problem->num_threads) if (n > FMM_FEW_PARTICLES)
    for (int64_t i = 0; i < n; i++)
    {
        double at[3];
        for (int64_t d = 0; d < 3; d++)
        {
            at[d] = fmm_number_of(x, problem->options->array_type, 3 * i + d);
        }
        memory[i] = fmm_with_key(morton_key(problem, at, layout->origin, layout->box, cells), 0);
    }
    fmm_sort_keys(memory, memory + n, (size_t)n, problem->num_threads);
#pragma omp parallel for schedule(dynamic, 1) num_threads(problem->num_threads) if (n > FMM_FEW_PARTICLES)
    for (int depth = 0; depth <= FMM_MAX_DEPTH; depth++)
    {
        const int shift = depth < bottom ? 3 * (bottom - depth) : 0;
        count_runs(memory, (size_t)n, shift, &o->leaves[depth], &o->squares[depth]);
    }
    memset(o->most, 0, sizeof(o->most));
    o->divided = divided;
    for (int which = 0; which < c_numMost && divided; which++)
    {
        fmm_key_block root         = {{0}, {0}};
        v->sorted                  = memory;
        v->which                   = which;
        v->o                       = o;
        root.end[FMM_BLOCK_MIDDLE] = (size_t)n;
        divide(v, &root, &root, 0, 0);
    }
    free(memory);
    free(v);
    return GMXFMM_OK;
}

static int is_better(const choice* found, const choice* best, int nearest)
{
    return found->good ? !best->good || found->cost < best->cost
                       : !isfinite(best->cost) || (nearest && !best->good && found->error < best->error);
}

/* Whether particles are taken to be spread evenly over a box: nobody knows yet where they are. */
static int are_even(const fmm_problem* problem, const void* x)
{
    return x == NULL && problem->periodic[0] && problem->periodic[1] && problem->periodic[2];
}

/* The best of the candidates from `first` to before `last`, and of *best, whose cost is infinite if there is none yet;
 * for particles at x. */
static gmxfmm_status try_roots(const fmm_region* region, const void* x, int first, int last, octree* best)
{
    const fmm_problem* problem = region->problem;
    const fmm_layouts* roots   = fmm_layouts_of(problem, 1);
    for (int i = first; i < last && (i < FMM_ENOUGH_ROOTS || best->best.order == 0); i++)
    {
        octree    t     = {.roots = {.edge = 0}};
        const int there = roots->layout(region, i, &t.roots);
        if (there < 0)
        {
            break;
        }
        if (there == 0)
        {
            continue;
        }
        gmxfmm_status status = GMXFMM_OK;
        if (are_even(problem, x))
        {
            spread_evenly((double)problem->n, t.roots.grid, &t.o);
        }
        else
        {
            status = count_cells(problem, x, &t.roots, &t.o);
        }
        status = status == GMXFMM_OK ? tune(problem, &t) : status;
        if (status != GMXFMM_OK)
        {
            return status;
        }
        if (is_better(&t.best, &best->best, !roots->first))
        {
            *best = t;
        }
    }
    return GMXFMM_OK;
}

static octree no_octree(void)
{
    const octree t = {.best = {.cost = INFINITY, .error = INFINITY}};
    return t;
}

gmxfmm_status fmm_tune_tree(const fmm_problem* problem,
                            const void*        x,
                            const double*      low,
                            const double*      high,
                            const int*         roots,
                            fmm_choice*        chosen)
{
    fmm_region region = fmm_region_of(problem, low, high);
    octree     t      = no_octree();
    if (roots != NULL)
    {
        memcpy(region.roots, roots, sizeof(region.roots));
    }
    const gmxfmm_status status = try_roots(&region, x, 0, are_even(problem, x) ? 1 : INT_MAX, &t);
    if (status == GMXFMM_OK && isfinite(t.best.cost))
    {
        take(problem, &t, chosen);
        return status;
    }
    const int     depth = fmm_given_depth(problem->options);
    const double* box   = problem->box;
    return status != GMXFMM_OK ? status
           : fmm_is_slab(problem->periodic)
               ? fmm_not_chosen(problem, GMXFMM_ERROR_UNSUPPORTED,
                                "a slab of %g x %g is too uneven for an octree: choose m2l = fft", box[0], box[4])
               : fmm_not_chosen(problem, GMXFMM_ERROR_UNSUPPORTED,
                                "a box of %g x %g x %g is too uneven for an octree of depth %d: at most %d cells along "
                                "an edge and %g roots are possible. Choose less depth, or m2l = fft",
                                box[0], box[4], box[8], depth > 0 ? depth : 1, FMM_MAX_EDGE, (double)FMM_MOST_ROOTS);
}

static double num_cells(const fmm_choice* cells)
{
    return (double)cells->grid[0] * cells->grid[1] * cells->grid[2];
}

/* Cost of the fft path with cells as large as those of an octree at depth `exact`, with the particles as they are.
 * Occupancies were counted for cells of whole depths; between these their logarithm is interpolated, being nearly
 * linear. padded: cells of the convolution. */
static double
fft_cost(const fmm_problem* problem, const fmm_choice* fft, double exact, double padded, double n, const occupancy* o)
{
    const double depth = fmin(fmax(exact, 0), FMM_MAX_DEPTH - 1e-9);
    const int    above = (int)depth;
    const double t     = depth - above;
    occupancy    here;
    here.leaves[0]  = pow(o->leaves[above], 1 - t) * pow(o->leaves[above + 1], t);
    here.squares[0] = pow(o->squares[above] + 1, 1 - t) * pow(o->squares[above + 1] + 1, t);
    return cost_of_leaves(problem, &here, n, 0, fft->separation, fft->order) +
           fmm_fft_cost(problem, padded, fft->order) * (problem->options->precision == GMXFMM_DOUBLE ? 2 : 1);
}

/* The same of a periodic system, whose grid was chosen at create for evenly spread particles. */
static double
fft_cost_periodic(const fmm_problem* problem, const fmm_choice* fft, const int* roots, double n, const occupancy* o)
{
    const double exact = log2(num_cells(fft) / ((double)roots[0] * roots[1] * roots[2])) / 3;
    return fft_cost(problem, fft, exact, num_cells(fft), n, o);
}

/* The same of a slab. */
static double fft_cost_slab(const fmm_problem* problem, const fmm_choice* fft, double n, const octree* t)
{
    const int    layers = fft->grid[2], margin = layers - 1 > fft->separation ? layers - 1 : fft->separation;
    const int*   roots = t->roots.grid;
    const double area = problem->box[0] * problem->box[4], plane = (double)fft->grid[0] * fft->grid[1];
    const double cell = area / plane * fft->edge, root = area * t->roots.box[8] / roots[0] / roots[1] / roots[2];
    return fft_cost(problem, fft, log2(root / cell) / 3, plane * fmm_fft_size(layers + margin), n, &t->o);
}

/* Cost of the convolution in an open system, whose grid is padded to twice the cells along each edge. */
static double convolution_cost_open(const fmm_problem* problem, double cells, int order)
{
    return fmm_fft_cost(problem, 8 * cells, order) * (problem->options->precision == GMXFMM_DOUBLE ? 2 : 1);
}

/* Cost of the fft path of an open system with the cheapest of the grids that trees of all depths have as leaves; cells
 * chosen for the system itself would cost nearly the same. */
static double
fft_cost_open(const fmm_problem* problem, const choice* tree, const int* roots, double n, const occupancy* o)
{
    double best = INFINITY;
    for (int depth = 0; depth <= FMM_MAX_DEPTH; depth++)
    {
        const double cells = (double)roots[0] * roots[1] * roots[2] * pow(8, depth);
        best               = fmin(best, cost_of_leaves(problem, o, n, depth, tree->ws, tree->order) +
                                            convolution_cost_open(problem, cells, tree->order));
    }
    return best;
}

/* An octree is chosen over a convolution, which spends as much on empty cells as on others, if it is this many times as
 * fast. */
static const double c_gain = 1.3;

/* Cost with cells of one level. */
static double cost_of_cells(const fmm_problem* problem, const fmm_choice* cells, const octree* t)
{
    const double n = (double)problem->n;
    return fmm_is_slab(problem->periodic)      ? fft_cost_slab(problem, cells, n, t)
           : fmm_has_images(problem->periodic) ? fft_cost_periodic(problem, cells, t->roots.grid, n, &t->o)
           : cells->grid[0] > 0                ? convolution_cost_open(problem, num_cells(cells), cells->order)
                                               : fft_cost_open(problem, &t->best, t->roots.grid, n, &t->o);
}

gmxfmm_status fmm_compare_tree(const fmm_problem* problem,
                               const void*        x,
                               const double*      low,
                               const double*      high,
                               const fmm_choice*  cells,
                               double*            gain,
                               int*               better,
                               fmm_choice*        tree)
{
    const fmm_region   region = fmm_region_of(problem, low, high);
    const fmm_layouts* roots  = fmm_layouts_of(problem, 1);
    octree             t      = no_octree();
    gmxfmm_status      status = try_roots(&region, x, 0, roots->compared, &t);
    *gain                     = 0;
    *better                   = 0;
    if (status != GMXFMM_OK || !isfinite(t.best.cost) || (!t.best.good && fmm_is_slab(problem->periodic)))
    {
        return status;
    }
    *gain   = cells != NULL ? cost_of_cells(problem, cells, &t) / t.best.cost : c_gain;
    *better = *gain >= c_gain;
    if (*better)
    {
        status = try_roots(&region, x, roots->compared, roots->tried, &t);
        take(problem, &t, tree);
    }
    return status;
}
