/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Images of a wire: those that are not far away one by one, all others as a series. */
#include "fmm/geometry/lattice_wire.h"

#include <math.h>
#include <string.h>

#define HARM_T double
#define HARM_R double
#include "fmm/geometry/lattice.h"
#include "fmm/math/harmonics.h"
#include "fmm/math/theta.h"

/* The first image of the series is at least this many times as far away as the displacement is long, and as the nearest
 * far vector is: its terms fall by the first ratio, and are small from the start by the second. */
static const double c_farther = 2, c_farAway = 4;

enum
{
    c_more   = 60, /* degrees of the series above that of the sums: 2^-60 */
    c_degree = FMM_MAX_SUM_DEGREE + c_more,
    c_size   = (FMM_MAX_SUM_DEGREE + 1) * (FMM_MAX_SUM_DEGREE + 1),
    c_series = (c_degree + 1) * (c_degree + 1),
    c_terms  = 260, /* of a zeta function one by one: above its largest argument, so that the rest is a short series */
    c_rest   = 8,
    c_mostZeta = FMM_MAX_SUM_DEGREE + c_degree + 1
};
_Static_assert(FMM_WIRE_WORK == 2 * c_series + 2 * c_size, "room for two series, sums of degrees and terms");

static const double c_euler = 0.57721566490153286061;

/* zeta[j], j even: a^(j+1) sum_{i >= 0} (a + i)^-(j+1), Euler-Maclaurin; zeta[0], which is infinite, without ln of the
 * last i: -a psi(a). a is a whole number. */
static void fill_zeta(int a, int last, double* zeta)
{
    /* B_2q / (2q)! */
    static const double c_bernoulli[c_rest] = {1.0 / 12,          -1.0 / 720,
                                               1.0 / 30240,       -1.0 / 1209600,
                                               1.0 / 47900160,    -691.0 / 1307674368000,
                                               1.0 / 74724249600, -3617.0 / 10670622842880000};
    double              harmonic            = -c_euler;
    for (int i = 1; i < a; i++)
    {
        harmonic += 1.0 / i;
    }
    memset(zeta, 0, (size_t)(last + 1) * sizeof(*zeta));
    for (int i = 0; i < c_terms; i++)
    {
        const double ratio = (double)a / (a + i), square = ratio * ratio;
        double       power = ratio * square;
        for (int j = 2; j <= last; j += 2)
        {
            zeta[j] += power;
            power *= square;
        }
    }
    const double from = a + c_terms, ratio = a / from;
    double       power = ratio * ratio * ratio; /* (a / from)^s */
    for (int j = 2; j <= last; j += 2)
    {
        const double s    = j + 1;
        double       rest = from / (s - 1) + 0.5, term = s / from;
        for (int q = 0; q < c_rest; q++)
        {
            rest += c_bernoulli[q] * term;
            term *= (s + 2 * q + 1) * (s + 2 * q + 2) / (from * from);
        }
        zeta[j] += power * rest;
        power *= ratio * ratio;
    }
    zeta[0] = -a * harmonic;
}

/* Adds images -last .. last that are not near, one by one. */
static void add_images(
    const fmm_cells* c, int degree, const int* k, const double* r, double period, int last, double* theta, double* out)
{
    for (int t = -last; t <= last; t++)
    {
        const int    place[3] = {k[0], k[1], k[2] + t * c->n[2]};
        const double at[3]    = {r[0], r[1], r[2] + t * period};
        if (fmm_near_index(c, place) < 0)
        {
            theta_fill(degree, at, theta);
            for (int i = 0; i < harm_size(degree); i++)
            {
                out[i] += theta[i];
            }
        }
    }
}

/* Adds all images beyond `last`: THEORY (47), with lengths in units of the first one's distance, so that all factors
 * are numbers. */
static void add_series(int degree, const double* r, double period, int last, double* work, double* out)
{
    const int    top     = degree + c_more;
    const double x       = period * (last + 1);
    double *     inverse = work, *upsilon = work + c_series, zeta[c_mostZeta + 1], factorial = 1;
    harm_fill_inverse(top, inverse);
    memset(upsilon, 0, (size_t)harm_size(top) * sizeof(double));
    harm_add_upsilon(top, r[0] / x, r[1] / x, r[2] / x, 1.0, inverse, upsilon);
    fill_zeta(last + 1, degree + top, zeta);
    for (int k = 1; k <= top; k++)
    {
        factorial *= k;
        for (int m = 0; m <= k; m++)
        {
            upsilon[harm_re(top, k, m)] *= factorial;
            upsilon[harm_im(top, k, m > 0 ? m : 1)] *= m > 0 ? factorial : 1;
        }
    }
    for (int n = 0; n <= degree; n++)
    {
        double of[c_degree + 1]; /* by k, all but the harmonic times k! */
        for (int k = n & 1; k <= top; k += 2)
        {
            double rising = 2 / x; /* (n + k)! / k! */
            for (int i = 1; i <= n; i++)
            {
                rising *= (k + i) / x;
            }
            of[k] = rising * zeta[n + k];
        }
        for (int m = 0; m <= n; m++)
        {
            double re = 0, im = 0;
            for (int k = m + ((n + m) & 1); k <= top; k += 2)
            {
                re += of[k] * upsilon[harm_re(top, k, m)];
                im += m > 0 ? of[k] * upsilon[harm_im(top, k, m)] : 0;
            }
            const int sign = (n + m) & 1 ? -1 : 1; /* (-1)^(k + m) */
            out[harm_re(degree, n, m)] += sign * re;
            if (m > 0)
            {
                out[harm_im(degree, n, m)] += sign * im;
            }
        }
    }
}

/* Z from S: THEORY (48). */
static void make_z(int degree, const double* r, const double* s, double* z)
{
    const int top = degree - 1;
    memset(z, 0, (size_t)harm_size(degree) * sizeof(double));
    for (int n = 2; n <= degree; n++)
    {
        const int f              = 2 * n - 1;
        z[harm_re(degree, n, 0)] = n * (n - 1) * s[harm_re(top, n - 2, 0)] -
                                   f * (r[0] * s[harm_re(top, n - 1, 1)] + r[1] * s[harm_im(top, n - 1, 1)]);
        for (int m = 1; m <= n; m++)
        {
            const double re = s[harm_re(top, n - 1, m - 1)], im = m > 1 ? s[harm_im(top, n - 1, m - 1)] : 0;
            const int    below = m <= n - 2 ? (n - m) * (n - m - 1) : 0;
            z[harm_re(degree, n, m)] =
                f * (r[0] * re - r[1] * im) + (below > 0 ? below * s[harm_re(top, n - 2, m)] : 0);
            z[harm_im(degree, n, m)] =
                f * (r[0] * im + r[1] * re) + (below > 0 ? below * s[harm_im(top, n - 2, m)] : 0);
        }
    }
}

void fmm_wire_sums(const fmm_cells* c, fmm_sum sum, int degree, const int* k, double* work, double* out)
{
    const double  period = c->n[2] * c->cell[8], r[3] = {k[0] * c->cell[0], k[1] * c->cell[4], k[2] * c->cell[8]};
    const double  length = sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
    const double  first  = fmax(c_farther * length, c_farAway * c->far_distance * c->lambda);
    const int     last = (int)ceil(first / period), top = sum == FMM_SUM_S ? degree : degree - 1;
    double* const own = work + 2 * c_series;
    double* const s   = sum == FMM_SUM_S ? out : own;
    memset(s, 0, (size_t)harm_size(top) * sizeof(double));
    add_images(c, top, k, r, period, last, own + c_size, s);
    add_series(top, r, period, last, work, s);
    if (sum == FMM_SUM_Z)
    {
        make_z(degree, r, own, out);
    }
}
