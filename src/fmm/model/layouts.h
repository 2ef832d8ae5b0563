/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Candidates for the cells of a problem: one row a kind of cells and periodicity. What they cost is tune.c's and
 * tune_tree.c's; a periodicity more is a row more here. */
#ifndef FMM_LAYOUTS_H
#define FMM_LAYOUTS_H

#include "fmm/model/problem.h"

/* What cells are to be around. */
typedef struct
{
    const fmm_problem* problem;
    double             n;               /* of cells of one level: particles, at least one */
    double             low[3], high[3]; /* corners of the particles, along open directions */
    double             box[9];          /* periodic vectors; along open directions what particles fill */
    int                roots[3];        /* the first to be tried in a periodic box; 0: as few as are cubes, or nearly */
} fmm_region;

/* Cells of one level, or the roots of an octree. */
typedef struct
{
    int    grid[3];
    double box[9], origin[3]; /* that they fill; its corner, of an octree */
    double edge;              /* open: of a cell; of a slab: its height */
} fmm_layout;

typedef struct
{
    /* The i-th candidate: 1; 0: there is none of this number, but there may be more; -1: there are no more. */
    int (*layout)(const fmm_region* region, int i, fmm_layout* layout);
    /* Of an octree: the first of its candidates that are compared with cells of one level, those that are tried where
     * it is better then, and whether, where none is predicted to reach the accuracy, the first is taken in place of
     * the one that comes nearest. */
    int compared, tried, first;
} fmm_layouts;

enum
{
    FMM_ENOUGH_ROOTS = 7,       /* candidates for roots; there may be more, which are tried if none of these can be */
    FMM_MOST_ROOTS   = 10000000 /* a more elongated box would have an octree of little but roots */
};

/* The region of a problem; low, high: NULL without open directions. */
fmm_region fmm_region_of(const fmm_problem* problem, const double* low, const double* high);

/* The row for its periodicity, of cells of one level or an octree; NULL: an octree is not offered. */
const fmm_layouts* fmm_layouts_of(const fmm_problem* problem, int octree);

/* The depth of the deepest octree over these roots; -1: not even roots alone are possible. */
int fmm_deepest(const int* roots);

/* Layers of that height in a slab of that thickness. */
int fmm_slab_layers_of(double thickness, double height);

/* The grid of cubes of that edge that contains n particles between low and high. The edge is enlarged if there would be
 * too many cubes. */
void fmm_open_grid(int64_t n, const double* low, const double* high, double* edge, int* grid);

/* The depth, up to `deepest`, of an octree that contains all between low and high and whose smallest leaves have that
 * edge. If a depth is given, it is returned, and *edge becomes the edge of its leaves. */
int fmm_open_depth(const double* low, const double* high, int given_depth, int deepest, double* edge);

/* Depth of an octree by the options depth and grid, 0 if both are automatic. */
int fmm_given_depth(const gmxfmm_options* options);

#endif
