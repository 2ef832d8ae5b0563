/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A regular grid of targets. */
#include "target_grid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Each point takes 180 bytes, here and in the library: 12 GB. */
#define MOST_POINTS 67108864.0

/* A charge this near to a point, in steps, is meant to stand there: more than what decimals lose. */
#define SAME_PLACE 1e-6

/* Steps around charges at least, so that a single one has a grid, too. */
#define LEAST_MARGIN 5

/* Along one axis: where the grid begins, its length, and whether that is a box's. */
typedef struct
{
    double low, length;
    int    is_periodic;
} axis_extent;

/* Unit vectors in place of those without images: normal to the others, or x, y and z. */
static void axes_of(const charge_file* charges, double axes[9])
{
    static const double c_axes[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};

    memcpy(axes, c_axes, sizeof(c_axes));
    if (charges->periodic)
    {
        charge_file_lattice(charges, axes);
    }
}

/* Rows that give the coordinates along the axes. */
static void invert(const double a[9], double inverse[9])
{
    double volume = 0;

    for (int d = 0; d < 3; d++)
    {
        const double *b = a + 3 * ((d + 1) % 3), *c = a + 3 * ((d + 2) % 3);
        for (int e = 0; e < 3; e++)
        {
            inverse[3 * d + e] = b[(e + 1) % 3] * c[(e + 2) % 3] - b[(e + 2) % 3] * c[(e + 1) % 3];
        }
    }
    for (int e = 0; e < 3; e++)
    {
        volume += a[e] * inverse[e];
    }
    for (int i = 0; i < 9; i++)
    {
        inverse[i] /= volume;
    }
}

static double along(const double inverse[9], int d, const double* x)
{
    return inverse[3 * d] * x[0] + inverse[3 * d + 1] * x[1] + inverse[3 * d + 2] * x[2];
}

static void
find_extent(const charge_file* charges, const double axes[9], const double inverse[9], axis_extent extent[3])
{
    for (int d = 0; d < 3; d++)
    {
        const double* v    = axes + 3 * d;
        double        high = -INFINITY;
        extent[d]          = (axis_extent){0, sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]), charges->along[d]};
        if (extent[d].is_periodic)
        {
            continue;
        }
        extent[d].low = INFINITY;
        for (int64_t i = 0; i < charges->n; i++)
        {
            const double s = along(inverse, d, charges->x + 3 * i);
            extent[d].low  = fmin(extent[d].low, s);
            high           = fmax(high, s);
        }
        extent[d].length = high - extent[d].low;
    }
}

/* Points along each axis, and all of them. */
static double count_points(const axis_extent extent[3], double step, double count[3])
{
    const double longest = fmax(extent[0].length, fmax(extent[1].length, extent[2].length));
    const double margin  = fmax(longest / 4, LEAST_MARGIN * step);

    for (int d = 0; d < 3; d++)
    {
        /* less what decimals lose: 4 / 0.1 are 40 steps */
        count[d] = extent[d].is_periodic ? fmax(1, ceil(extent[d].length / step * (1 - 1e-12)))
                                         : ceil((extent[d].length + 2 * margin) / step * (1 - 1e-12)) + 1;
    }
    return count[0] * count[1] * count[2];
}

/* Shape and place of the grid. 0, or -1 after a complaint. */
static int lay_out(target_grid* grid, const axis_extent extent[3], const double axes[9], double step, const char* name)
{
    double       count[3], possible = step;
    const double n = count_points(extent, step, count);

    if (!(n <= MOST_POINTS)) /* NaN fails, too */
    {
        while (!(count_points(extent, possible, count) <= MOST_POINTS) && isfinite(possible))
        {
            possible *= 1.05;
        }
        complain(name, 0, "%g points are too many for a grid, of at most %.0f: a step of %.3g is possible", n,
                 MOST_POINTS, possible * 1.01);
        return -1;
    }
    grid->n = (int64_t)n;
    for (int d = 0; d < 3; d++)
    {
        grid->count[d]     = (int64_t)count[d];
        const double begin = extent[d].low + (extent[d].length - (count[d] - 1) * step) / 2;
        for (int e = 0; e < 3; e++)
        {
            grid->step[3 * d + e] = extent[d].is_periodic ? axes[3 * d + e] / count[d] : axes[3 * d + e] * step;
            grid->origin[e] += extent[d].is_periodic ? 0 : begin * axes[3 * d + e];
        }
    }
    return 0;
}

/* The point where a charge stands; -1: it stands at none. */
static int64_t point_of(const target_grid* grid, const axis_extent extent[3], const double inverse[9], const double* x)
{
    const double from[3] = {x[0] - grid->origin[0], x[1] - grid->origin[1], x[2] - grid->origin[2]};
    int64_t      point   = 0;

    for (int d = 0; d < 3; d++)
    {
        const double n    = (double)grid->count[d];
        const double s    = along(inverse, d, from);
        const double near = round(s);
        if (fabs(s - near) > SAME_PLACE)
        {
            return -1;
        }
        const double wrapped = extent[d].is_periodic ? near - n * floor(near / n) : near;
        point                = point * grid->count[d] + (int64_t)fmin(wrapped, n - 1);
    }
    return point;
}

static int by_point(const void* a, const void* b)
{
    const int64_t one = ((const target_grid_charge*)a)->point, two = ((const target_grid_charge*)b)->point;

    return (one > two) - (one < two);
}

/* The points where charges stand, each once: charges at one place, which exclude each other, have one point. 0, or -1
 * without memory. */
static int find_charges(target_grid* grid, const charge_file* charges, const axis_extent extent[3])
{
    double  inverse[9];
    int64_t found = 0;

    grid->at_charge = (target_grid_charge*)malloc((size_t)charges->n * sizeof(target_grid_charge));
    if (!grid->at_charge)
    {
        return -1;
    }
    invert(grid->step, inverse);
    for (int64_t i = 0; i < charges->n; i++)
    {
        const int64_t point = point_of(grid, extent, inverse, charges->x + 3 * i);
        if (point >= 0)
        {
            grid->at_charge[found++] = (target_grid_charge){point, i};
        }
    }
    qsort(grid->at_charge, (size_t)found, sizeof(target_grid_charge), by_point);
    for (int64_t k = 0; k < found; k++)
    {
        if (k == 0 || grid->at_charge[k].point != grid->at_charge[k - 1].point)
        {
            grid->at_charge[grid->num_at_charge++] = grid->at_charge[k];
        }
    }
    return 0;
}

/* All points without those where charges stand. 0, or -1 without memory. */
static int fill(const target_grid* grid, const char* name, charge_file* targets)
{
    int64_t next = 0;

    targets->name      = name;
    targets->is_places = 1;
    if (charge_file_reserve(targets, grid->n, 0, 0))
    {
        return -1;
    }
    for (int64_t p = 0; p < grid->n; p++)
    {
        const double at[3] = {(double)(p / grid->count[2] / grid->count[1]),
                              (double)(p / grid->count[2] % grid->count[1]), (double)(p % grid->count[2])};
        if (next < grid->num_at_charge && grid->at_charge[next].point == p)
        {
            next++;
            continue;
        }
        for (int e = 0; e < 3; e++)
        {
            targets->x[3 * targets->n + e] =
                grid->origin[e] + at[0] * grid->step[e] + at[1] * grid->step[3 + e] + at[2] * grid->step[6 + e];
        }
        targets->n++;
    }
    return 0;
}

int target_grid_make(target_grid* grid, const charge_file* charges, double step, const char* name, charge_file* targets)
{
    double      axes[9], inverse[9];
    axis_extent extent[3];

    axes_of(charges, axes);
    invert(axes, inverse);
    find_extent(charges, axes, inverse, extent);
    if (lay_out(grid, extent, axes, step, name))
    {
        return -1;
    }
    if (find_charges(grid, charges, extent) || fill(grid, name, targets))
    {
        complain(name, 0, "out of memory for %lld points: a larger step has fewer", (long long)grid->n);
        return -1;
    }
    return 0;
}

void target_grid_free(target_grid* grid)
{
    free(grid->at_charge);
    memset(grid, 0, sizeof(*grid));
}
