/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fmm/cpu/assign.h"

int fmm_locate(const fmm_cells* cells, const double* x, int* at, double* rest)
{
    const int skewed = cells->periodic && !cells->rectangular;
    double    t[3];
    for (int d = 0; d < 3; d++)
    {
        t[d] = -0.5;
        for (int e = 0; e < 3; e++)
        {
            t[d] += (x[e] - cells->origin[e]) * cells->to_cells[3 * e + d];
        }
    }
    return fmm_nearest_point(cells->cell, skewed ? cells->voronoi : NULL, cells->voronoi_int, t, at, rest);
}
