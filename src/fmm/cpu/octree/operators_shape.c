/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tables of the octree's operators that depend on the shape of a cell. */
#include "fmm/cpu/octree/octree.h"
#include "fmm/cpu/octree/operators.h"

#include <math.h>
#include <string.h>

#include "fmm/math/harmonics.h"
#include "fmm/cpu/octree/shift.h"
#include "fmm/math/theta.h"

/* Theta(r) of degrees <= top, rounded; exact: room for them. */
static void fill_theta(int top, const double* r, double* exact, real* theta)
{
    theta_fill(top, r, exact);
    for (int i = 0; i < harm_size(top); i++)
    {
        theta[i] = (real)exact[i];
    }
}

static fmm_direction direction_of(const double* r)
{
    fmm_direction d;
    const double  rho = hypot(r[0], r[1]), length = hypot(rho, r[2]);
    memset(&d, 0, sizeof(d));
    d.cos_phi   = (real)(rho > 0 ? r[0] / rho : 1);
    d.sin_phi   = (real)(rho > 0 ? r[1] / rho : 0);
    d.cos_theta = (real)(r[2] / length);
    d.sin_theta = (real)(rho / length);
    d.inverse   = (real)(1 / length);
    return d;
}

void fmm_operators_set_shape(gmxfmm_plan* plan)
{
    struct fmm_operators* ops  = plan->cpu->ops;
    const fmm_tree*       tree = plan->domain.tree;
    const double*         cell = plan->domain.cells.cell;
    double* const         room = (double*)(void*)fmm_scratch_of(ops, 0).sum[0];
    double                s[3];
    for (int v = 0; v < ops->num_vectors; v++)
    {
        const int    parent = v >= tree->num_vectors;
        const int*   k      = parent ? tree->parent_vector[v - tree->num_vectors] : tree->vector[v];
        const double scale  = parent ? 0.5 : 1;
        double       r[3];
        for (int d = 0; d < 3; d++)
        {
            r[d]                    = scale * (k[0] * cell[d] + k[1] * cell[3 + d] + k[2] * cell[6 + d]);
            ops->displacement[v][d] = (real)r[d];
        }
        if (ops->theta != NULL)
        {
            fill_theta(2 * ops->order + 1, r, room, ops->theta + (size_t)v * ops->theta_row);
        }
        if (ops->direction != NULL)
        {
            ops->direction[v] = direction_of(r);
        }
    }
    for (int d = 0; d < 3; d++)
    {
        s[d] = 0.5 * (cell[d] + cell[3 + d] + cell[6 + d]);
    }
    fmm_shift_tables(ops->order, s, ops->up, ops->down);
}
