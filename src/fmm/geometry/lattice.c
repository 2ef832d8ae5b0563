/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What Ewald sums are made of: the splitting, the cut-offs, and the lattice vectors of the real-space part. */
#include "fmm/geometry/lattice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Splitting alpha in units of 1/edge. The work of the real-space sum goes with alpha^-3 and does not grow with the
 * number of cells N, that of the reciprocal one goes with N alpha^3: both are alike at an alpha that goes with
 * N^(-1/6). The factor is fitted to times of cubes of 1 to 16^3 cells, orders 8 to 20, in both precisions. Smaller
 * values than that of 16^3 cells gain nothing, since a wave vector for each frequency is needed in any case. */
static const double c_alpha      = 2.4;
static const double c_leastAlpha = 0.6;
static const double c_mostAlpha  = 1.1;

static double splitting(const fmm_cells* cells)
{
    const double num = (double)cells->n[0] * cells->n[1] * cells->n[2];
    return fmin(fmax(c_alpha * pow(num, -1.0 / 6), c_leastAlpha), c_mostAlpha);
}

fmm_ewald fmm_ewald_choose(const fmm_cells* cells, int degree, double tolerance)
{
    fmm_ewald    e = {0, 0, 0};
    const double d = cells->far_distance * cells->lambda;
    if (!fmm_has_images(cells->periodic) || fmm_is_wire(cells->periodic))
    {
        return e; /* all in real space */
    }
    e.alpha = splitting(cells) / cells->lambda;
    double q[FMM_MAX_SUM_DEGREE + 1];
    /* Sizes relative to the largest term (2n-1)!!/d^(n+1) of each degree, times the number of vectors in a shell. */
    for (e.r_max = d;; e.r_max += 0.25 * cells->lambda)
    {
        const double ratio = d / e.r_max;
        double       worst = 0, power = 1 / ratio; /* ratio^(n + 1) times the vectors in a shell, ratio^-2 */
        fmm_gamma_upper(degree, e.alpha * e.alpha * e.r_max * e.r_max, q);
        for (int n = 0; n <= degree; n++)
        {
            worst = fmax(worst, q[n] * power);
            power *= ratio;
        }
        if (worst < tolerance)
        {
            break;
        }
    }
    for (e.k_max = 2 / cells->lambda;; e.k_max += 0.1 / cells->lambda)
    {
        double       worst = 0;
        const double k     = e.k_max;
        double       power = 4 * FMM_PI * d / (cells->cell_volume * k * k) * exp(-k * k / (4 * e.alpha * e.alpha));
        for (int n = 0; n <= degree; n++)
        {
            worst = fmax(worst, power);
            power *= k * d / (2 * n + 1);
        }
        if (worst * (1 + k * d) < tolerance && k * d > degree / 2.0)
        {
            break;
        }
    }
    return e;
}

void fmm_real_range(const fmm_cells* cells, const fmm_ewald* ewald, int* range)
{
    double inverse[9];
    fmm_inverse(cells->cell, fmm_determinant(cells->cell), inverse);
    for (int d = 0; d < 3; d++)
    {
        const double g =
            sqrt(inverse[d] * inverse[d] + inverse[3 + d] * inverse[3 + d] + inverse[6 + d] * inverse[6 + d]);
        const int within = (int)floor(ewald->r_max * g);
        /* open: all displacements that the padded grid holds, for whatever cells of it hold particles, they may do so
         * after another assign; a slab's sums are those of its padded grid */
        range[d] = !fmm_has_images(cells->periodic) ? (cells->n[d] - 1) / 2
                   : fmm_is_wire(cells->periodic)   ? (cells->n[d] - (d < 2)) / 2
                   : within < cells->near_reach     ? cells->near_reach
                                                    : within;
    }
}

void fmm_reciprocal_range(const fmm_cells* cells, const fmm_ewald* ewald, int* range)
{
    for (int d = 0; d < 3; d++)
    {
        const double* a = cells->cell + 3 * d;
        range[d]        = (int)floor(ewald->k_max * sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2]) / (2 * FMM_PI) + 0.5);
    }
}

static void cartesian(const fmm_cells* cells, const int* k, double* r)
{
    for (int d = 0; d < 3; d++)
    {
        r[d] = k[0] * cells->cell[d] + k[1] * cells->cell[3 + d] + k[2] * cells->cell[6 + d];
    }
}

void fmm_real_weights(
    const fmm_cells* cells, const fmm_ewald* ewald, fmm_sum sum, int degree, const int* k, double* weight)
{
    double r[3];
    cartesian(cells, k, r);
    fmm_vector_weights(sum, ewald->alpha, degree, fmm_near_index(cells, k) >= 0,
                       r[0] * r[0] + r[1] * r[1] + r[2] * r[2], weight);
}

gmxfmm_status fmm_real_vectors(const fmm_cells* cells, const fmm_ewald* ewald, int (**k)[3], int* count)
{
    int range[3];
    fmm_real_range(cells, ewald, range);
    const size_t total = (size_t)(range[0] + 1) * (size_t)(2 * range[1] + 1) * (size_t)(2 * range[2] + 1);
    int(*list)[3]      = malloc(total * sizeof(*list));
    if (list == NULL)
    {
        return GMXFMM_ERROR_MEMORY;
    }
    int num = 0;
    for (int a = 0; a <= range[0]; a++)
    {
        for (int b = -range[1]; b <= range[1]; b++)
        {
            for (int c = -range[2]; c <= range[2]; c++)
            {
                const int v[3] = {a, b, c};
                double    r2   = 0;
                for (int d = 0; d < 3; d++)
                {
                    const double r = a * cells->cell[d] + b * cells->cell[3 + d] + c * cells->cell[6 + d];
                    r2 += r * r;
                }
                const int near  = fmm_near_index(cells, v) >= 0;
                const int other = a == 0 && (b < 0 || (b == 0 && c < 0)); /* its mirror image is taken */
                if (!other && (fmm_is_wire(cells->periodic) ||
                               (fmm_has_images(cells->periodic) ? (near || r2 <= ewald->r_max * ewald->r_max) : !near)))
                {
                    memcpy(list[num++], v, sizeof(v));
                }
            }
        }
    }
    *k     = list;
    *count = num;
    return GMXFMM_OK;
}
