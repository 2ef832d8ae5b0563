/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fmm/cpu/particles/particles.h"

int fmm_locate(const fmm_cells* cells, const double* x, int* at, double* rest)
{
    const int skewed = fmm_has_images(cells->periodic) && !cells->rectangular;
    double    t[3];
    fmm_in_cells(cells->origin, cells->to_cells, x, t);
    return fmm_nearest_point(cells->cell, skewed ? cells->voronoi : NULL, cells->voronoi_int, t, at, rest);
}
