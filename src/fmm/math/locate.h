/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where particles are in the lattice of cells (THEORY section 3): positions and lattice vectors as coordinates t in
 * cells, 0 at the centre of the first one, or Cartesian y. cell[9]: rows are lattice vectors. vectors, coordinates: the
 * Voronoi vectors of a lattice, Cartesian and in cells; NULL where they are not needed, since angles are right.
 */
#ifndef FMM_LOCATE_H
#define FMM_LOCATE_H

#include <math.h>

#include "fmm/math/host_device.h"

enum
{
    FMM_VORONOI = 14 /* Voronoi-relevant vectors of a 3D lattice are among these (Conway & Sloane 1992) */
};

/* Coordinates t of a position; to_cells[9]: rows are what t gains along x, y and z. */
static inline FMM_HD void fmm_in_cells(const double* origin, const double* to_cells, const double* x, double* t)
{
    for (int d = 0; d < 3; d++)
    {
        t[d] = -0.5;
        for (int e = 0; e < 3; e++)
        {
            t[d] += (x[e] - origin[e]) * to_cells[3 * e + d];
        }
    }
}

/* The caller's coordinates of a place c, in cells from the origin, in a lattice along x, y and z. It is rounded once,
 * so that what is near to a particle is as exact as that, however far away the origin is. */
static inline FMM_HD void fmm_from_cells(const double* origin, const double* to_cells, const double* c, double* x)
{
    for (int d = 0; d < 3; d++)
    {
        x[d] = fma(c[d], 1 / to_cells[4 * d], origin[d]);
    }
}

/* Cartesian vector of t. */
static inline FMM_HD void fmm_cartesian(const double* cell, const double* t, double* y)
{
    for (int d = 0; d < 3; d++)
    {
        y[d] = t[0] * cell[d] + t[1] * cell[3 + d] + t[2] * cell[6 + d];
    }
}

/* Moves y to the nearest lattice point's cell; shift[3] collects the lattice vector taken off. */
static inline FMM_HD void fmm_reduce(const double (*vectors)[3], const int (*coordinates)[3], double* y, int* shift)
{
    for (int changed = 1; changed;)
    {
        changed = 0;
        for (int v = 0; v < FMM_VORONOI; v++)
        {
            const double* a = vectors[v];
            if (2 * (y[0] * a[0] + y[1] * a[1] + y[2] * a[2]) > (a[0] * a[0] + a[1] * a[1] + a[2] * a[2]) * (1 + 1e-9))
            {
                for (int d = 0; d < 3; d++)
                {
                    y[d] -= a[d];
                    shift[d] += coordinates[v][d];
                }
                changed = 1;
            }
        }
    }
}

/* Whether t is finite, and so near that an int counts cells: of an octree of an open system 2^30. */
static inline FMM_HD int fmm_has_cell(const double* t)
{
    return fabs(t[0]) < 1.1e9 && fabs(t[1]) < 1.1e9 && fabs(t[2]) < 1.1e9;
}

/* Lattice point nearest to t: at[3], and what is left, rest[3]. Returns 0 if there is none (fmm_has_cell). */
static inline FMM_HD int fmm_nearest_point(
    const double* cell, const double (*vectors)[3], const int (*coordinates)[3], const double* t, int* at, double* rest)
{
    if (!fmm_has_cell(t))
    {
        return 0;
    }
    for (int d = 0; d < 3; d++)
    {
        at[d]   = (int)floor(t[d] + 0.5);
        rest[d] = t[d] - at[d];
    }
    if (vectors != 0)
    {
        double y[3];
        fmm_cartesian(cell, rest, y);
        fmm_reduce(vectors, coordinates, y, at);
        for (int d = 0; d < 3; d++)
        {
            rest[d] = t[d] - at[d];
        }
    }
    return 1;
}

/* Moves a place into the grid: n[3], by periods; along a direction that is not periodic, where only rounding puts a
 * particle outside, to its edge. */
static inline FMM_HD void fmm_into_grid(const int* periodic, const int* n, int* at)
{
    for (int d = 0; d < 3; d++)
    {
        const int m = at[d] % n[d];
        at[d]       = !periodic[d] ? (at[d] < 0 ? 0 : at[d] >= n[d] ? n[d] - 1 : at[d]) : m < 0 ? m + n[d] : m;
    }
}

/* The period, in cells, along a direction without images: more than there ever are cells. */
#define FMM_NO_PERIOD (1 << 30)

/* Moves t, one particle minus another in cells of a grid of n, by a share of the box that rounding of positions does
 * not reach: where two images are just as near, as in files with three decimals a million pairs may be, all take the
 * same. It is another share along each vector, so that it leaves every plane between two images. */
static inline FMM_HD double fmm_untie(double t, int n, int d)
{
    return n < FMM_NO_PERIOD ? t + 1e-6 * (1 - 0.3 * d) * n : t;
}

/* Takes the periods off offset[3], cell of one particle minus cell of another, that lead to the nearest image of the
 * other; t[3]: one minus the other in cells. n: of the grid, vectors of the box. */
static inline FMM_HD void fmm_nearest_image(
    const int* n, const double* cell, const double (*vectors)[3], const int (*coordinates)[3], double* t, int* offset)
{
    int k[3];
    for (int d = 0; d < 3; d++)
    {
        t[d] = fmm_untie(t[d], n[d], d);
        /* most are this near; a division takes long */
        k[d] = fabs(t[d]) < 0.499 * n[d] ? 0 : (int)floor(t[d] / n[d] + 0.5);
        t[d] -= k[d] * n[d];
    }
    if (vectors != 0)
    {
        double y[3];
        fmm_cartesian(cell, t, y);
        fmm_reduce(vectors, coordinates, y, k);
    }
    for (int d = 0; d < 3; d++)
    {
        offset[d] -= k[d] * n[d];
    }
}

/* Along one axis, centre of the leaf at place `at` minus that of its root, which is `edge` leaves of this width long.
 */
static inline FMM_HD double fmm_root_offset(int at, int edge, double width)
{
    return (at % edge + 0.5 - 0.5 * edge) * width;
}

#endif
