/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Orders of single translations (after Gumerov & Duraiswami 2008, section 3.4): a translation over a larger distance
 * needs a lower order for the same error. Their eq. 24 compares bounds, for charges in the corners of cells, and lets
 * the error of charges throughout the cells grow by 5 at p = 4 and 100 at p = 12 (tests/library/translations.cpp); the
 * mean square error of THEORY section 7 for one displacement keeps it within 1.5.
 */
#include <math.h>

#include "fmm/gmxfmm.h"
#include "fmm/geometry/tree.h"
#include "fmm/math/rotation.h"

enum
{
    c_points = 8, /* a side of the cell, midpoint rule */
    c_terms  = 8, /* of the sum over the degrees above the order; each is less than 0.6 of the one before */
    c_top    = GMXFMM_MAX_ORDER + c_terms + 3
};

/* A translation may have this part of the mean square error of the worst one: there are some ten times as many of those
 * that can be truncated as of the worst, and together they must not add more than these have. */
static const double c_part = 0.1;

/* Means over a cell, `scale` times the leaves', about the origin and about r: of |y|^(2 n) and |r + y|^(-2 n), n <
 * count. */
static void cell_means(const fmm_cells* cells, double scale, const double* r, int count, double* inner, double* outer)
{
    const double weight = 1.0 / (c_points * c_points * c_points);
    for (int n = 0; n < count; n++)
    {
        inner[n] = outer[n] = 0;
    }
    for (int i = 0; i < c_points * c_points * c_points; i++)
    {
        const int at[3] = {i % c_points, i / c_points % c_points, i / (c_points * c_points)};
        double    y2 = 0, s2 = 0;
        for (int d = 0; d < 3; d++)
        {
            double y = 0;
            for (int e = 0; e < 3; e++)
            {
                y += scale * ((at[e] + 0.5) / c_points - 0.5) * cells->cell[3 * e + d] / cells->lambda;
            }
            y2 += y * y;
            s2 += (r[d] + y) * (r[d] + y);
        }
        double a = weight, b = weight;
        for (int n = 0; n < count; n++, a *= y2, b /= s2)
        {
            inner[n] += a;
            outer[n] += b;
        }
    }
}

/* Mean square errors error[q] of translations to order q = 0..p along k (in cells times `unit`), from a cell to one
 * that is `scale` times as large; unit of length: an edge. */
static void errors(const fmm_cells* cells, const int* k, double unit, double scale, int p, double* error)
{
    double    r[3], back[3];
    double    source_inner[c_top], source_outer[c_top], target_inner[c_top], target_outer[c_top];
    const int top = p + c_terms;
    for (int d = 0; d < 3; d++)
    {
        r[d] = unit * (k[0] * cells->cell[d] + k[1] * cells->cell[3 + d] + k[2] * cells->cell[6 + d]) / cells->lambda;
        back[d] = -r[d];
    }
    cell_means(cells, 1, back, top + 3, source_inner, source_outer);
    cell_means(cells, scale, r, top + 3, target_inner, target_outer);
    double sum = 0;
    for (int n = top; n > 0; n--)
    {
        sum += (n + 1) * source_inner[n] * target_outer[n + 2] + n * target_inner[n - 1] * source_outer[n + 1];
        if (n <= p + 1)
        {
            error[n - 1] = sum;
        }
    }
}

double fmm_worst_error(const fmm_tree* tree, const fmm_cells* cells, int p)
{
    double worst = 0, error[GMXFMM_MAX_ORDER + 1];
    for (int v = 0; v < tree->num_vectors; v++)
    {
        const int* k = tree->vector[v];
        if (k[0] >= 0 && k[1] >= 0 && k[2] >= 0)
        {
            errors(cells, k, 1, 1, p, error);
            worst = fmax(worst, error[p]);
        }
    }
    return worst;
}

double fmm_bound_ratio(const fmm_cells* cells, const int* k, int to_parent)
{
    double r2 = 0, diagonal2 = 0;
    for (int d = 0; d < 3; d++)
    {
        const double r = k[0] * cells->cell[d] + k[1] * cells->cell[3 + d] + k[2] * cells->cell[6 + d];
        r2 += r * r;
        for (int e = 0; e < 3; e++)
        {
            diagonal2 += cells->cell[3 * e + d] * cells->cell[3 * e + d]; /* right angles */
        }
    }
    const double small = 0.5 * sqrt(diagonal2), large = to_parent ? 2 * small : small;
    const double distance = (to_parent ? 0.5 : 1) * sqrt(r2);
    return distance > small ? large / (distance - small) : INFINITY;
}

int fmm_truncated_order(const fmm_cells* cells, const int* k, int to_parent, int p, const fmm_truncation* rule)
{
    double error[GMXFMM_MAX_ORDER + 1];
    int    q = p;
    if (rule->by_bound)
    {
        /* eq. 24 */
        const double eta = fmm_bound_ratio(cells, k, to_parent);
        return rule->worst < 1 && eta < rule->worst ? (int)ceil(p * log(rule->worst) / log(eta) - 1e-9) : p;
    }
    errors(cells, k, to_parent ? 0.5 : 1, to_parent ? 2 : 1, p, error);
    while (q > 0 && error[q - 1] <= c_part * rule->worst)
    {
        q--;
    }
    return q <= rot_reduced_order(p) ? rot_reduced_order(p) : p;
}
