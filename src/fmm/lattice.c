/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lattice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HARM_T double
#define HARM_R double
#include "harmonics.h"

static const double c_pi = 3.14159265358979323846;

enum
{
    c_maxDegree = 2 * GMXFMM_MAX_ORDER + 2
};

/* Q(n + 1/2, x), n = 0..top: upward, all terms positive. */
static void gamma_upper(int top, double x, double* q)
{
    double term = exp(-x) * sqrt(x / c_pi) * 2; /* x^(1/2) e^-x / Gamma(3/2) */
    q[0]        = erfc(sqrt(x));
    for (int n = 1; n <= top; n++)
    {
        q[n] = q[n - 1] + term;
        term *= x / (n + 0.5);
    }
}

/* P(n + 1/2, x), n = 0..top: series at the top, then downward; no cancellation however small x is. */
static void gamma_lower(int top, double x, double* p)
{
    double lead = exp(-x) * sqrt(x / c_pi) * 2; /* x^a e^-x / Gamma(a + 1) at a = 1/2 */
    for (int n = 1; n <= top; n++)
    {
        lead *= x / (n + 0.5);
    }
    double series = 1, term = 1;
    for (int i = 1; term > 1e-17 * series; i++)
    {
        term *= x / (top + 0.5 + i);
        series += term;
    }
    p[top] = lead * series;
    for (int n = top - 1; n >= 0; n--)
    {
        lead *= (n + 1.5) / x;
        p[n] = p[n + 1] + lead;
    }
}

/* Splitting in units of 1/edge: small, so that few wave vectors are needed; the price, a longer real-space sum, does
 * not grow with the number of cells. */
static const double c_alpha = 0.6;

fmm_ewald fmm_ewald_choose(const fmm_cells* cells, int degree, double tolerance)
{
    fmm_ewald    e = {0, 0, 0};
    const double d = cells->far_distance * cells->lambda;
    if (!cells->periodic)
    {
        return e;
    }
    e.alpha = c_alpha / cells->lambda;
    double q[c_maxDegree + 1];
    /* Sizes relative to the largest term (2n-1)!!/d^(n+1) of each degree, times the number of vectors in a shell. */
    for (e.r_max = d;; e.r_max += 0.25 * cells->lambda)
    {
        double worst = 0;
        gamma_upper(degree, e.alpha * e.alpha * e.r_max * e.r_max, q);
        for (int n = 0; n <= degree; n++)
        {
            worst = fmax(worst, q[n] * pow(d / e.r_max, n + 1) * e.r_max * e.r_max / (d * d));
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
        double       power = 4 * c_pi * d / (cells->cell_volume * k * k) * exp(-k * k / (4 * e.alpha * e.alpha));
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

/* Bounds of the components of lattice vectors within r_max (unit u); open: of the displacements that the padded grid
 * holds. */
static void real_range(const fmm_cells* cells, double r_max, int* range)
{
    double inverse[9];
    fmm_inverse(cells->cell, fmm_determinant(cells->cell), inverse);
    for (int d = 0; d < 3; d++)
    {
        const double g =
            sqrt(inverse[d] * inverse[d] + inverse[3 + d] * inverse[3 + d] + inverse[6 + d] * inverse[6 + d]);
        /* open: whatever cells of the padded grid hold particles, they may do so after another assign */
        range[d] = cells->periodic ? (int)floor(r_max * g) : (cells->n[d] - 1) / 2;
    }
}

static void cartesian(const fmm_cells* cells, const int* k, double* r)
{
    for (int d = 0; d < 3; d++)
    {
        r[d] = k[0] * cells->cell[d] + k[1] * cells->cell[3 + d] + k[2] * cells->cell[6 + d];
    }
}

/* THEORY (12), (13) */
void fmm_real_weights(
    const fmm_cells* cells, const fmm_ewald* ewald, fmm_sum sum, int degree, const int* k, double* weight)
{
    const int back = sum == FMM_SUM_Z ? 1 : 0; /* Z_n goes with B_(n-1) */
    const int near = fmm_near_index(cells, k) >= 0;
    double    r[3];
    memset(weight, 0, (size_t)(degree + 1) * sizeof(double));
    if (k[0] == 0 && k[1] == 0 && k[2] == 0)
    {
        weight[0] = sum == FMM_SUM_S ? -ewald->alpha / sqrt(c_pi) : 0; /* half: fmm_real_vectors */
        return;
    }
    cartesian(cells, k, r);
    const double r2    = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
    double       power = 1 / sqrt(r2);
    if (ewald->alpha == 0)
    {
        power *= back ? r2 : 1;
        for (int n = 0; n <= degree && !near; n++)
        {
            weight[n] = power;
            power /= r2;
        }
        return;
    }
    double       b[c_maxDegree + 1];
    const double x = ewald->alpha * ewald->alpha * r2;
    near ? gamma_lower(degree, x, b) : gamma_upper(degree, x, b);
    for (int n = back; n <= degree; n++)
    {
        /* r^-(2n+1) for S, r^-(2n-1) for Z */
        weight[n] = (near ? -b[n - back] : b[n - back]) * power;
        power /= r2;
    }
}

void fmm_real_column(
    const fmm_cells* cells, int degree, int m, const int* k, const double* weight, double* re, double* im)
{
    double r[3], inverse[c_maxDegree + 1], re0 = 1, im0 = 0, factor = 1;
    cartesian(cells, k, r);
    for (int i = 1; i <= m; i++)
    {
        harm_next_diagonal(i, r[0], r[1], &re0, &im0);
        factor *= 2.0 * i * (2 * i - 1); /* (2m)! */
    }
    for (int n = m; n <= degree; n++)
    {
        inverse[n - m] = n > m ? harm_inverse(n, m) : 0;
        re[n - m]      = 0;
        im[n - m]      = 0;
    }
    harm_add_column(degree, m, r[2], r[0] * r[0] + r[1] * r[1] + r[2] * r[2], re0, im0, inverse, re, im);
    for (int n = m; n <= degree; n++)
    {
        re[n - m] *= weight[n] * factor;
        im[n - m] *= weight[n] * factor;
        factor *= (double)(n + 1 - m) * (n + 1 + m);
    }
}

gmxfmm_status fmm_real_vectors(const fmm_cells* cells, const fmm_ewald* ewald, int (**k)[3], int* count)
{
    int range[3];
    real_range(cells, ewald->r_max, range);
    for (int d = 0; d < 3; d++)
    {
        range[d] = cells->periodic && range[d] < cells->near_reach ? cells->near_reach : range[d];
    }
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
                if (!other && (cells->periodic ? (near || r2 <= ewald->r_max * ewald->r_max) : !near))
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
