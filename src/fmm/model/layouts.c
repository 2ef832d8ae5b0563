/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Candidates for the cells of a problem: grids of cells of one level, and roots of an octree. */
#include "fmm/model/layouts.h"

#include <math.h>
#include <string.h>

#include "fmm/geometry/fftsize.h"
#include "fmm/geometry/tree.h"
#include "fmm/options.h"

/* ---- what cells are around */

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

fmm_region fmm_region_of(const fmm_problem* problem, const double* low, const double* high)
{
    const int* periodic = problem->periodic;
    fmm_region r        = {.problem = problem, .n = problem->n > 0 ? (double)problem->n : 1.0};
    double     width[3] = {0, 0, 0};
    if (low != NULL)
    {
        memcpy(r.low, low, sizeof(r.low));
        memcpy(r.high, high, sizeof(r.high));
        fill(low, high, width);
    }
    if (fmm_has_images(periodic))
    {
        memcpy(r.box, problem->box, sizeof(r.box));
    }
    for (int d = 0; d < 3; d++)
    {
        /* layers of a slab, and cells of a wire, are as wide as they are high, however thin it is */
        r.box[4 * d] = periodic[d] ? r.box[4 * d] : fmm_has_images(periodic) ? r.high[d] - r.low[d] : width[d];
    }
    return r;
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

/* ---- cells of one level */

enum
{
    c_edges      = 22, /* number of edges of cells that are tried in a periodic box */
    c_likelyEdge = 7,  /* the one that is tried first: 13 particles a cell */
    c_grids      = 8   /* of one edge */
};

/* Particles in a cell of the i-th edge in a box with images, from about 2 to about 400 in steps of a tenth of the edge.
 * Those that are often chosen come first, so that most of the others are found too expensive before their errors are
 * predicted. 0: there is no such edge. */
static double per_cell(const fmm_region* r, int i)
{
    const int    step = c_likelyEdge + (i % 2 ? -(i + 1) / 2 : i / 2);
    const double num  = 2 * pow(1.3, step);
    return step >= 0 && step < c_edges && !(step > 0 && num > 1.3 * r->n) ? num : 0; /* a single cell is tried once */
}

static int size_below(int n)
{
    while (n > 1 && !fmm_is_fft_size(n))
    {
        n--;
    }
    return n;
}

/* Grid i of the eight of cells with nearly that edge: along each periodic vector the FFT sizes just below and above. */
static void grid_of_edge(const fmm_region* r, double edge, int i, int* grid)
{
    for (int d = 0; d < 3; d++)
    {
        const double* a       = r->box + 3 * d;
        const double  wanted  = sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2]) / edge;
        const int     floored = wanted < 1 ? 1 : wanted > 1000 ? 1000 : (int)wanted, above = i >> d & 1;
        grid[d] = !r->problem->periodic[d] ? floored + above : above ? fmm_fft_size(floored + 1) : size_below(floored);
    }
}

/* Grid i, the one given or of cells of all edges that are tried, in a box with images; as fmm_layouts.layout. */
static int grid_in_box(const fmm_region* r, int i, double (*edge_of)(const fmm_region* r, double num), int* grid)
{
    const int* given = r->problem->options->grid;
    if (given[0] > 0)
    {
        memcpy(grid, given, 3 * sizeof(*grid));
        return i == 0 ? 1 : -1;
    }
    const double num = per_cell(r, i / c_grids);
    if (num > 0)
    {
        grid_of_edge(r, edge_of(r, num), i % c_grids, grid);
    }
    return i >= 2 * c_edges * c_grids ? -1 : num > 0;
}

/* Edge of cells that hold `num` particles each. */
static double edge_in_bulk(const fmm_region* r, double num)
{
    return cbrt(fmm_determinant(r->box) * num / r->n);
}

static int cells_of_bulk(const fmm_region* r, int i, fmm_layout* l)
{
    memcpy(l->box, r->box, sizeof(l->box));
    return grid_in_box(r, i, edge_in_bulk, l->grid);
}

/* Cubes of one edge, as many as the given grid has or as fill the box. */
static int cells_of_open(const fmm_region* r, int i, fmm_layout* l)
{
    const double *box = r->box, longest = fmax(box[0], fmax(box[4], box[8]));
    const int*    given = r->problem->options->grid;
    double        edge = longest, num = 1;
    for (int k = 0; k < i; k++)
    {
        num = ceil(box[0] / edge) * ceil(box[4] / edge) * ceil(box[8] / edge);
        edge /= 1.1;
    }
    if (given[0] > 0 ? i > 0 : !(num < 2 * r->n + 2))
    {
        return -1;
    }
    edge = given[0] > 0 ? fmax(box[0] / given[0], fmax(box[4] / given[1], box[8] / given[2])) : edge;
    for (int d = 0; d < 3; d++)
    {
        const double k = ceil(box[4 * d] / edge - 1e-6);
        l->grid[d]     = given[d] > 0 ? given[d] : k < 1 ? 1 : (int)k;
        l->box[4 * d]  = l->grid[d] * edge;
    }
    return 1;
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

/* The height of the layers of a grid, or of roots: one is as high as cells are wide, if that is enough. */
static double slab_height(const fmm_region* r, const int* grid)
{
    const double* box   = r->problem->box;
    const double  width = sqrt(fabs(box[0] * box[4] - box[1] * box[3]) / grid[0] / grid[1]);
    const double  slack = r->problem->options->grid[0] > 0 ? 1 + 1e-9 : c_slack;
    return fmax(slack * r->box[8] / grid[2], grid[2] == 1 ? width : c_lowest * width);
}

static double edge_in_slab(const fmm_region* r, double num)
{
    const double* box  = r->box;
    const double  area = fabs(box[0] * box[4] - box[1] * box[3]), edge = cbrt(area * box[8] * num / r->n);
    return edge < box[8] ? edge : sqrt(area * num / r->n); /* one layer */
}

static int cells_of_slab(const fmm_region* r, int i, fmm_layout* l)
{
    const int there = grid_in_box(r, i, edge_in_slab, l->grid);
    if (there > 0)
    {
        memcpy(l->box, r->box, sizeof(l->box));
        l->edge   = slab_height(r, l->grid);
        l->box[8] = l->edge * l->grid[2];
    }
    return there;
}

/* Cells of a wire: `num` along the period, `times` as wide as that makes them high, and as many across as it takes. */
static int cells_of_wire(const fmm_region* r, int i, fmm_layout* l)
{
    const int* given = r->problem->options->grid;
    double     times = 1;
    int        num = 1, left = i;
    for (double wide = 1.5; wide < c_widest; wide *= 1.5, left--) /* at first a single one */
    {
        times = left == 0 && given[0] <= 0 ? wide : times;
    }
    for (; left > 0 && num <= 1000; left--)
    {
        num = fmm_fft_size(num + 1);
    }
    if (num > 1000 || (given[0] > 0 && i > 0))
    {
        return -1;
    }
    num               = given[0] > 0 ? given[2] : num;
    const double edge = r->box[8] / num;
    l->edge           = times * edge;
    if (given[0] > 0)
    {
        const double least = given[0] == 1 && given[1] == 1 ? edge : c_lowest * edge;
        l->edge            = fmax(least, (1 + 1e-9) * fmax(r->box[0] / given[0], r->box[4] / given[1]));
    }
    for (int d = 0; d < 2; d++)
    {
        l->grid[d]    = given[0] > 0 ? given[d] : fmm_slab_layers_of(c_slack * r->box[4 * d], l->edge);
        l->box[4 * d] = l->grid[d] * l->edge;
    }
    l->grid[2] = num;
    l->box[8]  = r->box[8];
    return given[0] > 0 || (double)l->grid[0] * l->grid[1] * num <= c_mostOfWire * r->n + c_fewOfWire;
}

/* ---- roots of an octree */

/* Largest ratio of the longest to the shortest edge of a leaf: expansions converge fastest in cubes, but most boxes
 * cannot be divided into cubes. */
static const double c_longestCell = 1.3;

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

enum
{
    c_mostRoots = 64 /* along the shortest edge, less than these */
};

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

int fmm_deepest(const int* roots)
{
    const int longest = roots[0] > roots[1] ? roots[0] : roots[1], most = longest > roots[2] ? longest : roots[2];
    int       depth = -1;
    while (depth < FMM_MAX_DEPTH && (int64_t)most << (depth + 1) <= FMM_MAX_EDGE)
    {
        depth++;
    }
    return depth;
}

/* Whether an octree over these roots can be as deep as is wanted. */
static int serve(const fmm_problem* problem, const int* roots)
{
    const int depth = fmm_given_depth(problem->options);
    return (double)roots[0] * roots[1] * roots[2] <= FMM_MOST_ROOTS && fmm_deepest(roots) >= (depth > 0 ? depth : 1);
}

/* Roots of the grid of leaves that is given; returns whether one is. */
static int given_roots(const gmxfmm_options* options, int* roots)
{
    for (int d = 0; d < 3 && options->grid[0] > 0; d++)
    {
        roots[d] = options->grid[d] >> fmm_given_depth(options);
    }
    return options->grid[0] > 0;
}

/* The fewest roots that are cubes, or nearly: one along the shortest edge if possible, else two, ...; then more: depth
 * alone changes the occupancy of leaves by a factor of 8, but with 3, 5 or 7 roots in place of 1, 2 or 4 leaves can be
 * of nearly any size. */
static int octree_of_bulk(const fmm_region* r, int i, fmm_layout* l)
{
    int first[3] = {r->roots[0], r->roots[1], r->roots[2]}, even = 1;
    if (first[0] == 0 && !given_roots(r->problem->options, first))
    {
        for (int k = 1; k < c_mostRoots && !divide_into_roots(r->box, k, first); k++)
        {
        }
    }
    memcpy(l->box, r->box, sizeof(l->box));
    memcpy(l->grid, first, sizeof(first));
    if (i > 0)
    {
        even = divide_into_roots(r->box, i + 1, l->grid) && memcmp(l->grid, first, sizeof(first)) != 0 &&
               ((l->grid[0] | l->grid[1] | l->grid[2]) & 1) == 1; /* half as many roots have the same leaves */
    }
    return i >= FMM_ENOUGH_ROOTS ? -1 : even && serve(r->problem, l->grid);
}

/* Roots i + 1 along the shorter edge of the plane, in layers of cubes or nearly. */
static int octree_of_slab(const fmm_region* r, int i, fmm_layout* l)
{
    double plane[9];
    memcpy(plane, r->box, sizeof(plane));
    plane[8]          = fmin(plane[0], plane[4]);
    const int    even = divide_into_roots(plane, i + 1, l->grid), given = given_roots(r->problem->options, l->grid);
    const double width = sqrt(plane[0] / l->grid[0] * plane[4] / l->grid[1]);
    l->grid[2]         = given ? l->grid[2] : fmm_slab_layers_of(r->box[8], width);
    memcpy(l->box, r->box, sizeof(l->box));
    l->box[8]    = (given ? slab_height(r, l->grid) : width) * l->grid[2];
    l->origin[2] = 0.5 * (r->low[2] + r->high[2] - l->box[8]);
    return i >= (given ? 1 : c_mostRoots - 1) ? -1 : (even || given) && serve(r->problem, l->grid);
}

/* One root, at first around the particles, then larger, since empty leaves cost nothing: along an edge of 8 leaves the
 * system takes about 8, 7, 6 or 5, and likewise of 16, ..., so that leaves can be of nearly any size. */
static int octree_of_open(const fmm_region* r, int i, fmm_layout* l)
{
    const double width = longest_edge(r->low, r->high) * 8 / (8 - i);
    if (i >= (r->problem->options->depth > 0 ? 1 : 4))
    {
        return -1;
    }
    for (int d = 0; d < 3; d++)
    {
        l->grid[d]    = 1;
        l->box[4 * d] = width;
        l->origin[d]  = 0.5 * (r->low[d] + r->high[d] - width);
    }
    return 1;
}

/* ---- the table */

const fmm_layouts* fmm_layouts_of(const fmm_problem* problem, int octree)
{
    static const fmm_layouts c_cells[] = {
        {.layout = cells_of_open}, {.layout = cells_of_wire}, {.layout = cells_of_slab}, {.layout = cells_of_bulk}};
    static const fmm_layouts c_octree[] = {{.layout = octree_of_open, .compared = 1, .tried = 1, .first = 1},
                                           {.layout = NULL},
                                           {.layout = octree_of_slab, .compared = c_mostRoots, .tried = c_mostRoots},
                                           {.layout = octree_of_bulk, .compared = 1, .tried = FMM_ENOUGH_ROOTS}};
    const int          images = (problem->periodic[0] != 0) + (problem->periodic[1] != 0) + (problem->periodic[2] != 0);
    const fmm_layouts* found  = octree ? &c_octree[images] : &c_cells[images];
    return found->layout != NULL ? found : NULL;
}

/* ---- cells that follow particles */

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
