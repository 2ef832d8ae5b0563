/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shapes of a box that is scaled along z by one factor and across by another, as semi-isotropic pressure coupling does.
 * Isotropic scaling changes the unit of length alone, so that they are a line: a reference stretched by e^t along z and
 * e^(-t/2) across. Lattice sums are smooth functions of t. They are computed at nodes, t = 0, +-h, +-2h, ..., and in
 * between interpolated by a parabola through the three nearest, with an error of h^3 (THEORY section 4).
 */
#ifndef FMM_SHAPE_LINE_H
#define FMM_SHAPE_LINE_H

#include "fmm/geometry/cells.h"

enum
{
    FMM_LINE_NODES = 3
};

typedef struct
{
    double reference[9];           /* fmm_cells.cell at t = 0 */
    double spacing;                /* h; 0: there is no line */
    int    number;                 /* of the line, that nodes of an earlier one may be known */
    int    followed;               /* whether a shape was on it, but for the reference */
    int    active;                 /* whether the present shape is interpolated: */
    int    first;                  /* from nodes first, first + 1, first + 2, */
    double weight[FMM_LINE_NODES]; /* with these weights */
} fmm_shape_line;

/* A node whose sums are in memory. */
typedef struct
{
    int line, node; /* fmm_shape_line.number, 0 for none */
} fmm_line_node;

/* Begins a line with *cells as its reference. Spacing 0 for none. */
void fmm_line_begin(fmm_shape_line* line, const fmm_cells* cells, double spacing);

/* Whether *cells is on the line, by relative deviations below tolerance; then makes it the line's present shape. The
 * first change along a line is not interpolated (active): it may be the only one. */
int fmm_line_follow(fmm_shape_line* line, const fmm_cells* cells, double tolerance);

/* Cells of the shape of a node of the line that *cells is on. What does not follow from `cell` alone, the near set and
 * its distances, is that of *cells, with its memory. */
fmm_cells fmm_line_cells(const fmm_shape_line* line, const fmm_cells* cells, int node);

/* Which of FMM_LINE_NODES places is the node's: neighbours have different ones. */
static inline int fmm_line_place(int node)
{
    const int place = node % FMM_LINE_NODES;
    return place < 0 ? place + FMM_LINE_NODES : place;
}

/* Whether *held is that node of the line; if not, it is from now on. */
static inline int fmm_line_holds(fmm_line_node* held, const fmm_shape_line* line, int node)
{
    const int holds = held->line == line->number && held->node == node;
    held->line      = line->number;
    held->node      = node;
    return holds;
}

#endif
