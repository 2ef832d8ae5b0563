/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tables of the octree's operators that follow the shape of a cell. */
#include "operators.h"

#include <math.h>
#include <string.h>

#include "harmonics.h"
#include "shift.h"

/* Theta_n^m(r), n <= top, by recurrences that stay in range where (2) does not: those of THEORY (1) for Theta. */
static void fill_theta(int top, const double* r, real* theta)
{
    const double inverse2 = 1 / (r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
    const double x = r[0] * inverse2, y = r[1] * inverse2, z = r[2] * inverse2;
    double       re0 = sqrt(inverse2), im0 = 0;
    for (int m = 0; m <= top; m++)
    {
        if (m > 0)
        {
            const double t = (2 * m - 1) * (re0 * x - im0 * y);
            im0            = (2 * m - 1) * (re0 * y + im0 * x);
            re0            = t;
        }
        double re = re0, im = im0, re_below = 0, im_below = 0;
        for (int n = m; n <= top; n++)
        {
            if (n > m)
            {
                const double a = (2 * n - 1) * z, b = ((n - 1) * (n - 1) - m * m) * inverse2;
                const double re_next = a * re - b * re_below, im_next = a * im - b * im_below;
                re_below = re;
                im_below = im;
                re       = re_next;
                im       = im_next;
            }
            theta[harm_re(top, n, m)] = (real)re;
            if (m > 0)
            {
                theta[harm_im(top, n, m)] = (real)im;
            }
        }
    }
}

static FN(fmm_direction) direction_of(const double* r)
{
    FN(fmm_direction) d;
    const double rho = hypot(r[0], r[1]), length = hypot(rho, r[2]);
    memset(&d, 0, sizeof(d));
    d.cos_phi   = (real)(rho > 0 ? r[0] / rho : 1);
    d.sin_phi   = (real)(rho > 0 ? r[1] / rho : 0);
    d.cos_theta = (real)(r[2] / length);
    d.sin_theta = (real)(rho / length);
    d.inverse   = (real)(1 / length);
    return d;
}

void FN(fmm_operators_set_shape)(gmxfmm_plan* plan)
{
    struct FN(fmm_operators)* ops = plan->FN(ops);
    const fmm_tree* tree          = plan->tree;
    const double*   cell          = plan->cells.cell;
    double          s[3];
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
            fill_theta(2 * ops->order + 1, r, ops->theta + (size_t)v * ops->theta_row);
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
    FN(fmm_shift_tables)(ops->order, s, ops->up, ops->down);
}
