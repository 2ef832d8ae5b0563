/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Geometry of the grid of cells (fft path): a lattice of cell centres, the Voronoi regions of which are the cells, and
 * the near set, a set of lattice vectors closed under inversion (THEORY section 3).
 *
 * Step arithmetic uses lengths in units of u = cell edge / lambda. The cell edge is the cube root of the cell volume,
 * so that isotropic scaling of the box changes nothing but u; lambda grows with the order so that r^n/n! and n!/r^(n+1)
 * stay in the range of a float up to order 20.
 */
#ifndef FMM_CELLS_H
#define FMM_CELLS_H

#include "fmm/gmxfmm.h"
#include "fmm/math/locate.h"

enum
{
    FMM_NEAR_REACH = 24 /* near vectors have components in -24..24; more is a box of no use */
};

typedef struct
{
    int periodic[3];  /* along each box vector: all, none, the first two of a slab, whose third is along z, or the third
                       * of a wire, which is along z, too */
    int    n[3];      /* grid of the convolution; where it is not periodic: padded with empty cells */
    int    inner[3];  /* cells that hold particles; periodic: n */
    int    period[3]; /* cells to the next image: n; where there are none: more than there ever are cells */
    int    num_cells; /* n[0] n[1] n[2]; octree: 0 if that is no int */
    int    octree;    /* grid of an octree's level: near set the block of (2 ws + 1)^3 */
    int    padded;    /* whether n is; a level of an octree is not, but for the roots of a slab */
    int    rectangular; /* right angles: bricks and blocks */
    double edge;        /* cube root of the cell volume, caller's unit */
    double lambda;      /* edge / u */
    double u;           /* unit of length, in the caller's unit */
    double origin[3];   /* corner of cell 0, caller's unit (periodic: 0) */
    double cell[9];     /* rows: lattice vectors of the centres, unit u */
    double to_cells[9]; /* (x - origin)[d] to_cells[3*d+e]: coordinates in cells, from the caller's unit */
    double cell_volume; /* unit u^3 */
    double box_volume;  /* unit u^3 */
    double voronoi[FMM_VORONOI][3];
    int    voronoi_int[FMM_VORONOI][3];
    double box_voronoi[FMM_VORONOI][3]; /* the same of the box: nearest images */
    int    box_voronoi_int[FMM_VORONOI][3];
    int    num_near;
    int (*near)[3];          /* num_near vectors, in cells; near[0] is zero */
    double (*near_shift)[3]; /* the same in units of u */
    short* near_lookup;      /* (2 near_reach + 1)^3: index into near, or -1 */
    int    near_reach;       /* largest component of a near vector */
    int*   wrap[3];      /* wrap[d][k + near_reach] = k modulo n[d], k = -near_reach .. n[d] - 1 + near_reach; not of
                          * an octree */
    double far_distance; /* shortest far vector, in edges */
    double near_range;   /* fmm_near_range of the near set, or -1: to be computed where it is wanted */
} fmm_cells;

/* Whether there are images along any direction. */
static inline int fmm_has_images(const int* periodic)
{
    return periodic[0] || periodic[1] || periodic[2];
}

/* Whether it is so along two. */
static inline int fmm_is_slab(const int* periodic)
{
    return (periodic[0] != 0) + (periodic[1] != 0) + (periodic[2] != 0) == 2;
}

/* Whether it is so along one. */
static inline int fmm_is_wire(const int* periodic)
{
    return (periodic[0] != 0) + (periodic[1] != 0) + (periodic[2] != 0) == 1;
}

/* Volume of the box, or its determinant's sign: <= 0 is an error of the caller. */
double fmm_determinant(const double* m);

/* Whether volumes of this edge, and their reciprocals, are numbers that double precision has. */
static inline int fmm_in_range(double edge)
{
    return edge > 1e-100 && edge < 1e100;
}

/* inverse[9] of m[9] (row-major), det given. */
void fmm_inverse(const double* m, double det, double* inverse);

/* Largest |cos| of the angles between rows below rounding: a rectangular box in any orientation. */
int fmm_is_rectangular(const double* box);

/* Whether the vectors of the box are along x, y and z. */
int fmm_is_aligned(const double* box);

/* Voronoi vectors of the lattice with rows basis[9], by Selling reduction to an obtuse superbase. */
void fmm_voronoi(const double* basis, double vectors[FMM_VORONOI][3], int coordinates[FMM_VORONOI][3]);

/* Fills all of *cells but origin from box and grid; memory of the near set is reused. ws selects the near set:
 * right angles: the block of (2 ws + 1)^3, and if bricks are far from cubes what is closer than (ws + 1)/2 diagonals;
 * otherwise every vector shorter than the shortest far one, which is at least 0.96 (ws + 1) edges. Returns GMXFMM_OK or
 * MEMORY, UNSUPPORTED (near set too wide: cells far too long or skewed). */
gmxfmm_status
fmm_cells_set(fmm_cells* cells, const double* box, const int* inner, const int* periodic, int ws, int order);

/* The same for a level of an octree in a rectangular box: cells are the boxes of the grid, the near set is the block;
 * and for its roots, over which there is a convolution. */
gmxfmm_status
fmm_cells_set_octree(fmm_cells* cells, const double* box, const int* inner, const int* periodic, int ws, int order);
gmxfmm_status
fmm_cells_set_roots(fmm_cells* cells, const double* box, const int* inner, const int* periodic, int ws, int order);

/* The same for another box with the grid and the near vectors that *cells has: what was assigned stays valid. */
void fmm_cells_deform(fmm_cells* cells, const double* box);

/* Whether fmm_cells_set would choose the near set that *cells has after fmm_cells_deform, in whatever order. With
 * keep_near, if so, far_distance is brought up to date, near_range not. */
int fmm_cells_near_holds(const fmm_cells* cells, int ws);
int fmm_cells_keep_near(fmm_cells* cells, int ws);

/* Farthest that a particle can be from the centre of its cell, in edges. Skewed cells are searched, which takes some
 * 0.1 ms: not for steps. */
double fmm_covering_radius(const fmm_cells* cells);

/* Every pair closer than this is in near cells, in edges. Takes as long. */
double fmm_near_range(const fmm_cells* cells, int ws);

/* Cell at near vector o from cell c[3]. */
static inline int fmm_near_cell(const fmm_cells* cells, const int* c, int o)
{
    const int* k = cells->near[o];
    const int  r = cells->near_reach;
    return (cells->wrap[0][c[0] + k[0] + r] * cells->n[1] + cells->wrap[1][c[1] + k[1] + r]) * cells->n[2] +
           cells->wrap[2][c[2] + k[2] + r];
}

/* Index of the vector k[3] in the near set, or -1. */
static inline int fmm_near_index(const fmm_cells* cells, const int* k)
{
    const int r = cells->near_reach, w = 2 * r + 1, x = k[0] + r, y = k[1] + r, z = k[2] + r;
    const int within = (x >= 0) & (x < w) & (y >= 0) & (y < w) & (z >= 0) & (z < w);
    const int o = cells->near_lookup[within ? (x * w + y) * w + z : 0]; /* no branch, which would be mispredicted */
    return within ? o : -1;
}

/* lambda of the unit of length for an order. */
double fmm_lambda(int order);

void fmm_cells_free(fmm_cells* cells);

#endif
