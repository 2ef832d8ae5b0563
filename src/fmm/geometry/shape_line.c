/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The nodes between which lattice sums are interpolated, as the box changes its shape along a line. */
#include "fmm/geometry/shape_line.h"

#include <math.h>
#include <string.h>

/* Nodes from the middle one that the shape may be away before another is the middle: so far that a box which fluctuates
 * does not have nodes computed again and again, and no farther than parabolas are as good, s (s^2 - 1) being largest at
 * s = 0.58 within the nodes and as large again at 1.15. */
static const double c_reach = 1.15;

/* Nodes from the reference to which shapes are followed: far more strain than any system bears. */
static const double c_farthest = 1e6;

void fmm_line_begin(fmm_shape_line* line, const fmm_cells* cells, double spacing)
{
    memcpy(line->reference, cells->cell, sizeof(line->reference));
    line->spacing = spacing;
    line->number++;
    line->followed = 0;
    line->active   = 0;
}

int fmm_line_follow(fmm_shape_line* line, const fmm_cells* cells, double tolerance)
{
    double inverse[9], strain[9] = {0};
    if (line->spacing == 0)
    {
        return 0;
    }
    fmm_inverse(line->reference, fmm_determinant(line->reference), inverse);
    for (int i = 0; i < 9; i++)
    {
        for (int d = 0; d < 3; d++)
        {
            strain[i] += inverse[i / 3 * 3 + d] * cells->cell[3 * d + i % 3];
        }
    }
    const double along = strain[8], across = along > 0 ? 1 / sqrt(along) : 0;
    for (int i = 0; i < 8; i++)
    {
        if (!(fabs(strain[i] - (i % 4 == 0 ? across : 0)) <= tolerance))
        {
            return 0;
        }
    }
    const double t = along > 0 ? log(along) / line->spacing : c_farthest;
    if (!(fabs(t) < c_farthest))
    {
        return 0;
    }
    if (!line->active || fabs(t - line->first - 1) > c_reach)
    {
        line->first = (int)lround(t) - 1;
    }
    const double s  = t - line->first - 1;
    line->weight[0] = 0.5 * s * (s - 1);
    line->weight[1] = (1 - s) * (1 + s);
    line->weight[2] = 0.5 * s * (s + 1);
    line->active    = line->followed;
    line->followed  = 1;
    return 1;
}

fmm_cells fmm_line_cells(const fmm_shape_line* line, const fmm_cells* cells, int node)
{
    const double along = exp(node * line->spacing), across = 1 / sqrt(along);
    fmm_cells    strained = *cells;
    for (int i = 0; i < 9; i++)
    {
        strained.cell[i] = line->reference[i] * (i % 3 == 2 ? along : across);
    }
    return strained;
}
