/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Choice of depth, order and ws of the octree: the cheapest whose predicted error is below the one asked for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/geometry/fftsize.h"
#include "fmm/geometry/tree.h"
#include "fmm/geometry/tree_sort.h"
#include "fmm/math/harmonics.h"
#include "fmm/math/threads.h"
#include "fmm/model/tune.h"
#include "fmm/options.h"

/* Largest ratio of the longest to the shortest edge of a leaf: expansions converge fastest in cubes, but most boxes
 * cannot be divided into cubes. */
static const double c_longestCell = 1.3;

/* Each level adds the error of its own translations, whose mean square is half that of the level below. The error of
 * all levels is at most this many times that of the leaves. */
static const double c_levels = 1.41421356;

/* Most roots: a more elongated box would have an octree of little but roots. */
static const double c_manyRoots = 1e7;

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
        double near;                   /* pairs of near particles with ws = 1, each twice */
        int    depth;
    } most[c_numMost];
} occupancy;

typedef struct
{
    double cost, error;
    int    good, order, ws, depth, most;
} choice;

int fmm_given_depth(const gmxfmm_options* options)
{
    if (options->depth > 0 || fmm_is_auto(options->grid[0]))
    {
        return options->depth > 0 ? options->depth : 0;
    }
    const int bits  = options->grid[0] | options->grid[1] | options->grid[2];
    int       depth = 0;
    for (; depth < FMM_MAX_DEPTH && (bits & ((2 << depth) - 1)) == 0; depth++)
    {
    }
    return depth;
}

/* Divides the box into roots: k along its shortest edge, and along the others as many as make them cubes, or nearly.
 * Returns whether their edges differ by no more than c_longestCell. */
static int divide_into_roots(const double* box, int k, int* roots)
{
    const double shortest = fmin(box[0], fmin(box[4], box[8]));
    double       low = INFINITY, high = 0;
    for (int d = 0; d < 3; d++)
    {
        roots[d]          = (int)fmin(floor(box[4 * d] / shortest * k + 0.5), FMM_MAX_EDGE);
        const double edge = box[4 * d] / roots[d];
        low               = fmin(low, edge);
        high              = fmax(high, edge);
    }
    return high <= c_longestCell * low;
}

/* The depth of the deepest octree over these roots; -1: not even roots alone are possible. */
static int deepest(const int* roots)
{
    const int longest = roots[0] > roots[1] ? roots[0] : roots[1], most = longest > roots[2] ? longest : roots[2];
    int       depth = -1;
    while (depth < FMM_MAX_DEPTH && (int64_t)most << (depth + 1) <= FMM_MAX_EDGE)
    {
        depth++;
    }
    return depth;
}

/* The fewest roots that are cubes, or nearly: one along the shortest edge if possible, else two, ... */
static void find_roots(const double* box, int* roots)
{
    for (int k = 1; k < 64 && !divide_into_roots(box, k, roots); k++)
    {
    }
}

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

/* Cost of pairs, gathering, P2M and L2P, as in tune.c but with the occupancy of the cells. */
static double cost_of_leaves(const fmm_problem* problem, const occupancy* o, double n, int depth, int ws, int p)
{
    const fmm_costs* c    = problem->costs;
    const double     near = (2 * ws + 1) * (2 * ws + 1) * (2 * ws + 1), coef = (p + 1) * (p + 1);
    const int        more = problem->options->precision == GMXFMM_DOUBLE ? 2 : 1;
    return (near * (o->squares[depth] + n) * c->pair + o->leaves[depth] * c->cell + n * coef * c->coefficient) * more +
           o->leaves[depth] * near * c->gather;
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
    int    depth  = deepest(roots);
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
    return c_unevenness * ((o->most[which].near * near / 27 * c->pair + o->most[which].leaves * c->cell +
                            n * (p + 1) * (p + 1) * c->coefficient + far) *
                               more +
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
        fmm_predict_enough(problem, &cells, ws, fixed >= 0 ? fixed : fmm_last_order(problem, ws), enough, error);
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

static gmxfmm_status
tune(const fmm_problem* problem, const double* box, const int* roots, double n, const occupancy* o, choice* best)
{
    const gmxfmm_options* options = problem->options;
    const choice          none    = {INFINITY, INFINITY, 0, 0, 0, 0, 0};
    const int             first   = options->separation > 0 ? options->separation : 1;
    const int             last    = options->separation > 0 ? options->separation : 2;
    *best                         = none;
    for (int ws = first; ws <= last; ws++)
    {
        const gmxfmm_status status = tune_depth(problem, box, roots, ws, n, o, best);
        if (status != GMXFMM_OK)
        {
            return fmm_not_chosen(problem, status, "out of memory");
        }
    }
    return GMXFMM_OK;
}

static void take(const fmm_problem* problem, const int* roots, const choice* best, fmm_choice* chosen)
{
    chosen->m2l        = method(problem);
    chosen->order      = best->order;
    chosen->separation = best->ws;
    chosen->error      = best->error;
    chosen->depth      = best->depth;
    chosen->most       = best->most;
    for (int d = 0; d < 3; d++)
    {
        chosen->roots[d] = roots[d];
        chosen->grid[d]  = roots[d] << best->depth;
    }
}

gmxfmm_status fmm_tune_tree(const fmm_problem* problem, fmm_choice* chosen)
{
    const double n = (double)problem->n, *box = problem->box;
    int          roots[3];
    occupancy    o;
    choice       best;
    if (problem->options->grid[0] > 0)
    {
        for (int d = 0; d < 3; d++)
        {
            roots[d] = problem->options->grid[d] >> fmm_given_depth(problem->options);
        }
    }
    else
    {
        find_roots(box, roots);
    }
    const int depth = fmm_given_depth(problem->options);
    if ((double)roots[0] * roots[1] * roots[2] > c_manyRoots || deepest(roots) < (depth > 0 ? depth : 1))
    {
        return fmm_not_chosen(
            problem, GMXFMM_ERROR_UNSUPPORTED,
            "a box of %g x %g x %g is too uneven for an octree of depth %d: a level may have %d cells along "
            "an edge, and there may be %g roots",
            box[0], box[4], box[8], depth > 0 ? depth : 1, FMM_MAX_EDGE, c_manyRoots);
    }
    o.divided = 0;
    for (int d = 0; d <= FMM_MAX_DEPTH; d++)
    {
        const double cells = (double)roots[0] * roots[1] * roots[2] * pow(8, d), per_cell = n / cells;
        o.leaves[d]  = fmax(1, cells * (1 - exp(-per_cell)));
        o.squares[d] = n * per_cell;
    }
    const gmxfmm_status status = tune(problem, box, roots, n, &o, &best);
    if (status == GMXFMM_OK)
    {
        take(problem, roots, &best, chosen);
    }
    return status;
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

/* Adds a cell, child `octant` of the one that `above` is about, and all below it. */
static void divide(division* v, const fmm_key_block* block, const fmm_key_block* above, int octant, int level)
{
    const size_t here = fmm_in_middle(block);
    const int    most = c_most[v->which];
    v->o->most[v->which].cells++;
    if (level > 0 && (level == FMM_KEY_BITS || !fmm_is_divided(here, fmm_in_block(block), most)))
    {
        const double n = (double)here;
        v->o->most[v->which].leaves++;
        v->o->most[v->which].squares += n * (n - 1);
        v->o->most[v->which].depth = level > v->o->most[v->which].depth ? level : v->o->most[v->which].depth;
        v->o->most[v->which].near += n * count_near(block, above, octant, level, most);
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
static gmxfmm_status count_cells(
    const fmm_problem* problem, const void* x, const double* origin, const double* box, const int* roots, occupancy* o)
{
    const int64_t n        = problem->n;
    const int     divided  = may_divide(problem) && n > 0 && roots[0] * roots[1] * roots[2] == 1;
    const int     bottom   = divided ? FMM_KEY_BITS : deepest(roots);
    const int     cells[3] = {roots[0] << bottom, roots[1] << bottom, roots[2] << bottom};
    const int     dbl      = problem->options->array_type == GMXFMM_DOUBLE;
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
            at[d] = dbl ? ((const double*)x)[3 * i + d] : (double)((const float*)x)[3 * i + d];
        }
        memory[i] = fmm_with_key(morton_key(problem, at, origin, box, cells), 0);
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

static gmxfmm_status tune_for_particles(const fmm_problem* problem,
                                        const void*        x,
                                        const double*      origin,
                                        const double*      box,
                                        const int*         roots,
                                        occupancy*         o,
                                        choice*            best)
{
    const gmxfmm_status status = count_cells(problem, x, origin, box, roots, o);
    return status == GMXFMM_OK ? tune(problem, box, roots, (double)problem->n, o, best) : status;
}

/* Most roots that are tried along the shortest edge of a periodic box. */
static const int c_mostRoots = 7;

/* Tries more roots than the fewest, which *best has: depth alone changes the occupancy of leaves by a factor of 8, but
 * with 3, 5 or 7 roots in place of 1, 2 or 4 leaves can be of nearly any size. Updates roots and *best. */
static gmxfmm_status try_more_roots(const fmm_problem* problem, const void* x, int* roots, choice* best)
{
    const double origin[3] = {0, 0, 0};
    for (int k = 2; k <= c_mostRoots; k++)
    {
        int       more[3];
        occupancy o;
        choice    found;
        if (!divide_into_roots(problem->box, k, more) || memcmp(more, roots, sizeof(more)) == 0 ||
            (double)more[0] * more[1] * more[2] > c_manyRoots || deepest(more) < 1 ||
            ((more[0] | more[1] | more[2]) & 1) == 0) /* half as many roots have the same leaves */
        {
            continue;
        }
        const gmxfmm_status status = tune_for_particles(problem, x, origin, problem->box, more, &o, &found);
        if (status != GMXFMM_OK)
        {
            return status;
        }
        if (found.good ? (!best->good || found.cost < best->cost) : (!best->good && found.error < best->error))
        {
            *best = found;
            memcpy(roots, more, sizeof(more));
        }
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_tune_tree_particles(const fmm_problem* problem, const void* x, fmm_choice* chosen)
{
    const double origin[3] = {0, 0, 0};
    int          roots[3];
    occupancy    o;
    choice       best;
    memcpy(roots, chosen->roots, sizeof(roots));
    gmxfmm_status status = tune_for_particles(problem, x, origin, problem->box, roots, &o, &best);
    status               = status == GMXFMM_OK ? try_more_roots(problem, x, roots, &best) : status;
    if (status == GMXFMM_OK)
    {
        take(problem, roots, &best, chosen);
    }
    return status;
}

/* Roots of a slab, k along the shorter edge of its plane, in layers of cubes or nearly; box[9]: all of them. Returns
 * whether they are even, and an octree is possible. */
static int divide_slab(const fmm_problem* problem, double thickness, int k, int* roots, double* box)
{
    const int given = problem->options->grid[0] > 0, depth = fmm_given_depth(problem->options);
    double    plane[9];
    memcpy(plane, problem->box, sizeof(plane));
    plane[8]       = fmin(plane[0], plane[4]);
    const int even = divide_into_roots(plane, k, roots);
    for (int d = 0; d < 3 && given; d++)
    {
        roots[d] = problem->options->grid[d] >> depth;
    }
    if (!given)
    {
        roots[2] = fmm_slab_layers_of(thickness, sqrt(plane[0] / roots[0] * plane[4] / roots[1]));
    }
    const double height =
        given ? fmm_slab_height(problem, thickness, roots) : sqrt(plane[0] / roots[0] * plane[4] / roots[1]);
    memcpy(box, problem->box, sizeof(plane));
    box[8] = height * roots[2];
    return (even || given) && (double)roots[0] * roots[1] * roots[2] <= c_manyRoots &&
           deepest(roots) >= (depth > 0 ? depth : 1);
}

/* An octree of a slab: its roots and the box that they fill, and what is in it. */
typedef struct
{
    choice    best;
    int       roots[3];
    double    box[9];
    occupancy o;
} slab_tree;

/* The best for particles at x; without one its cost is infinite. */
static gmxfmm_status
find_slab_tree(const fmm_problem* problem, const void* x, const double* low, const double* high, slab_tree* t)
{
    const int last = problem->options->grid[0] > 0 ? 1 : 63;
    t->best        = (choice){INFINITY, INFINITY, 0, 0, 0, 0, 0};
    for (int k = 1; k <= last && (k <= c_mostRoots || t->best.order == 0); k++)
    {
        slab_tree other;
        double    origin[3] = {0, 0, 0};
        choice*   found     = &other.best;
        if (!divide_slab(problem, high[2] - low[2], k, other.roots, other.box))
        {
            continue;
        }
        origin[2]                  = 0.5 * (low[2] + high[2] - other.box[8]);
        const gmxfmm_status status = tune_for_particles(problem, x, origin, other.box, other.roots, &other.o, found);
        if (status != GMXFMM_OK)
        {
            return status;
        }
        if (found->good ? (!t->best.good || found->cost < t->best.cost)
                        : (!t->best.good && found->error < t->best.error))
        {
            *t = other;
        }
    }
    return GMXFMM_OK;
}

static void take_slab_tree(const fmm_problem* problem, const slab_tree* t, fmm_choice* chosen)
{
    take(problem, t->roots, &t->best, chosen);
    chosen->edge = t->box[8] / t->roots[2] / (1 << t->best.depth);
}

gmxfmm_status
fmm_tune_tree_slab(const fmm_problem* problem, const void* x, const double* low, const double* high, fmm_choice* chosen)
{
    slab_tree           t;
    const gmxfmm_status status = find_slab_tree(problem, x, low, high, &t);
    if (status != GMXFMM_OK || !isfinite(t.best.cost))
    {
        return status != GMXFMM_OK ? status
                                   : fmm_not_chosen(problem, GMXFMM_ERROR_UNSUPPORTED,
                                                    "a slab of %g x %g is too uneven for an octree: choose m2l = fft",
                                                    problem->box[0], problem->box[4]);
    }
    take_slab_tree(problem, &t, chosen);
    return GMXFMM_OK;
}

/* The longest edge of the box between low and high. */
static double longest_edge(const double* low, const double* high)
{
    double longest = 0;
    for (int d = 0; d < 3; d++)
    {
        longest = fmax(longest, high[d] - low[d]);
    }
    return longest > 0 ? longest * (1 + 1e-9) : 1;
}

/* Also tries roots larger than the system, since empty leaves cost nothing: along an edge of 8 leaves the system takes
 * about 8, 7, 6 or 5, and likewise of 16, ..., so that leaves can be of nearly any size. */
gmxfmm_status
fmm_tune_tree_open(const fmm_problem* problem, const void* x, const double* low, const double* high, fmm_choice* chosen)
{
    static const int roots[3] = {1, 1, 1};
    const double     longest  = longest_edge(low, high);
    choice           best     = {INFINITY, INFINITY, 0, 0, 0, 0, 0};
    double           edge     = longest;
    for (int filled = 8; filled >= (problem->options->depth > 0 ? 8 : 5); filled--)
    {
        const double width = longest * 8 / filled, box[9] = {width, 0, 0, 0, width, 0, 0, 0, width};
        double       origin[3];
        occupancy    o;
        choice       found;
        for (int d = 0; d < 3; d++)
        {
            origin[d] = 0.5 * (low[d] + high[d] - width);
        }
        const gmxfmm_status status = tune_for_particles(problem, x, origin, box, roots, &o, &found);
        if (status != GMXFMM_OK)
        {
            return status;
        }
        if (filled == 8 || (found.good && (!best.good || found.cost < best.cost)))
        {
            best = found;
            edge = width;
        }
    }
    take(problem, roots, &best, chosen);
    chosen->edge = edge / (1 << best.depth);
    return GMXFMM_OK;
}

int fmm_open_depth(const double* low, const double* high, int given_depth, int deepest, double* edge)
{
    const double longest = longest_edge(low, high);
    int          depth   = 1;
    if (given_depth > 0)
    {
        *edge = longest / (1 << given_depth);
        return given_depth;
    }
    /* leaves keep the size that was chosen, and the depth changes with the extent of the particles */
    for (; depth < deepest && *edge * (1 << depth) < longest; depth++)
    {
    }
    *edge = fmax(*edge, longest / (1 << depth));
    return depth;
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
static double fft_cost_slab(const fmm_problem* problem, const fmm_choice* fft, double n, const slab_tree* t)
{
    const int    layers = fft->grid[2], margin = layers - 1 > fft->separation ? layers - 1 : fft->separation;
    const double area = problem->box[0] * problem->box[4], plane = (double)fft->grid[0] * fft->grid[1];
    const double cell = area / plane * fft->edge, root = area * t->box[8] / t->roots[0] / t->roots[1] / t->roots[2];
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

gmxfmm_status fmm_compare_tree(const fmm_problem* problem,
                               const void*        x,
                               const double*      low,
                               const double*      high,
                               const fmm_choice*  cells,
                               double*            gain,
                               int*               better,
                               fmm_choice*        tree)
{
    const double longest = longest_edge(low, high), n = (double)problem->n;
    double       origin[3] = {0, 0, 0}, box[9] = {0};
    int          roots[3] = {1, 1, 1};
    choice       best;
    occupancy    o;
    *gain   = 0;
    *better = 0;
    for (int d = 0; d < 3; d++)
    {
        box[4 * d] = fmm_has_images(problem->periodic) ? problem->box[4 * d] : longest;
        origin[d]  = fmm_has_images(problem->periodic) ? 0 : 0.5 * (low[d] + high[d] - box[4 * d]);
    }
    find_roots(box, roots);
    if (deepest(roots) < 1)
    {
        return GMXFMM_OK;
    }
    gmxfmm_status status = tune_for_particles(problem, x, origin, box, roots, &o, &best);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    const double fft = fmm_has_images(problem->periodic) ? fft_cost_periodic(problem, cells, roots, n, &o)
                       : cells->grid[0] > 0 ? convolution_cost_open(problem, num_cells(cells), cells->order)
                                            : fft_cost_open(problem, &best, roots, n, &o);
    *gain            = fft / best.cost;
    if (c_gain * best.cost > fft)
    {
        return GMXFMM_OK;
    }
    status = fmm_has_images(problem->periodic) ? try_more_roots(problem, x, roots, &best) : GMXFMM_OK;
    if (status == GMXFMM_OK)
    {
        *better = 1;
        take(problem, roots, &best, tree);
        tree->edge = longest / (1 << best.depth);
    }
    return status;
}

gmxfmm_status fmm_compare_tree_slab(const fmm_problem* problem,
                                    const void*        x,
                                    const double*      low,
                                    const double*      high,
                                    const fmm_choice*  cells,
                                    double*            gain,
                                    int*               better,
                                    fmm_choice*        tree)
{
    slab_tree           t;
    const gmxfmm_status status = find_slab_tree(problem, x, low, high, &t);
    *gain                      = 0;
    *better                    = 0;
    if (status != GMXFMM_OK || !t.best.good)
    {
        return status;
    }
    *gain   = cells != NULL ? fft_cost_slab(problem, cells, (double)problem->n, &t) / t.best.cost : c_gain;
    *better = *gain >= c_gain;
    take_slab_tree(problem, &t, tree);
    return GMXFMM_OK;
}
