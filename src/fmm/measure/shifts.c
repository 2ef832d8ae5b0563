/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How many shifts of cells errors are measured with, which, and what follows from the errors found. */
#include "fmm/measure/shifts.h"

#include <math.h>
#include <stddef.h>

#include "fmm/math/host_device.h"
#include "fmm/numbers.h"
#include "fmm/plan.h"

/* The logarithm of the error varies by this times the order, over the root of the number of charges. Fitted to water,
 * salt and gases of 3 to 1536 charges at orders 6 to 14, in boxes of 3^3 and 4^3 cells
 * (tests/library/translations.cpp). */
static const double c_deviation = 0.39;

/* How many deviations above their mean an error is that is exceeded in less than one of a thousand places. */
static const double c_deviations = 3.5;

/* The expected deviation counts as so many measured ones where few are measured, and as none where many are. */
static const double c_expected = 4;

/* What deviations would give is no more than this times the largest error of c_capped places, one of which has a
 * particle in the very corner of a cell. Of lattices, whose errors vary by a thousand times, deviations give nothing of
 * use. */
static const double c_mostAbove = 4;

/* Shifts are enough where the mean of their logarithms is known to this. */
static const double c_enough = 0.07;

/* Few shifts of many particles: so many evaluations of a particle in all, but at least c_ofLattice shifts where they
 * are on a lattice. */
static const double c_evaluations = 4000;

enum
{
    c_sample    = 2048, /* particles that are looked at for a lattice */
    c_capped    = 6,
    c_ofLattice = 8,
    c_waves     = 3 /* of a lattice: up to so many waves in a cell along each direction */
};

/* The largest of the 171 structure factors of a sample is below this in liquids, whose own are up to 2: of random
 * particles the mean is 1, and the largest of so many 5 to 9. */
static const double c_random = 20;

/* The k-th number of a sequence that fills an interval evenly: of generalised golden ratios (Roberts 2018). */
static double golden(int64_t k, int d)
{
    static const double c_ratio[3] = {0.81917251339616444, 0.67104360670378920, 0.54970047790197026};
    const double        x          = (double)k * c_ratio[d];
    return x - floor(x);
}

/* Number of charges that an error is a mean over: of equal charges all of them. */
static double number_of_charges(const gmxfmm_reference* r)
{
    double squares = 0, fourth = 0;
    for (int64_t i = 0; i < r->system.n; i++)
    {
        const double q = fmm_strength_of(r, i);
        squares += q * q;
        fourth += q * q * q * q;
    }
    return fourth > 0 ? squares * squares / fourth : 1;
}

static void position_of(const gmxfmm_reference* r, int64_t i, double* x)
{
    for (int d = 0; d < 3; d++)
    {
        x[d] = fmm_number_of(r->system.x, r->array_type, 3 * i + d);
    }
}

typedef struct
{
    double re, im;
} phase;

static phase times(phase a, phase b)
{
    const phase product = {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    return product;
}

/* Adds exp(2 pi i k t) of one particle for all k, c_waves at most along each direction. */
static void add_waves(const double* t, phase sum[c_waves + 1][2 * c_waves + 1][2 * c_waves + 1])
{
    phase wave[3][2 * c_waves + 1];
    for (int d = 0; d < 3; d++)
    {
        const phase one = {cos(2 * FMM_PI * t[d]), sin(2 * FMM_PI * t[d])};
        phase       p   = {1, 0};
        for (int k = 0; k <= c_waves; k++)
        {
            const phase conjugate = {p.re, -p.im};
            wave[d][c_waves + k]  = p;
            wave[d][c_waves - k]  = conjugate;
            p                     = times(p, one);
        }
    }
    for (int a = 0; a <= c_waves; a++) /* the others are their conjugates */
    {
        for (int b = 0; b < 2 * c_waves + 1; b++)
        {
            const phase ab = times(wave[0][c_waves + a], wave[1][b]);
            for (int c = 0; c < 2 * c_waves + 1; c++)
            {
                const phase abc = times(ab, wave[2][c]);
                sum[a][b][c].re += abc.re;
                sum[a][b][c].im += abc.im;
            }
        }
    }
}

/* The share of particles that a shift moves to the corners of cells together: of random ones 0, of a lattice with whole
 * numbers of particles in a cell 1. By the largest structure factor of places in cells. */
static double share_of_lattice(const gmxfmm_plan* plan, const gmxfmm_reference* r)
{
    phase         sum[c_waves + 1][2 * c_waves + 1][2 * c_waves + 1] = {{{{0}}}};
    const int64_t n                                                  = r->system.n;
    double        num = 0, largest = 0;
    for (int i = 0; i < (n <= c_sample ? (int)n : c_sample); i++)
    {
        const int64_t at = fmm_sample(n, c_sample, i);
        if (fmm_strength_of(r, at) != 0)
        {
            double x[3], t[3];
            position_of(r, at, x);
            fmm_cell_coordinates(plan, x, t);
            add_waves(t, sum);
            num++;
        }
    }
    sum[0][c_waves][c_waves] = (phase){0, 0}; /* no wave */
    const phase* all         = &sum[0][0][0];
    for (size_t k = 0; k < sizeof(sum) / sizeof(*all); k++)
    {
        largest = fmax(largest, all[k].re * all[k].re + all[k].im * all[k].im);
    }
    return num > 0 ? fmax(0, largest / num - c_random) / num : 0;
}

fmm_shifts fmm_shifts_of(const gmxfmm_plan* plan, const gmxfmm_reference* r)
{
    fmm_shifts shifts = {.most = 1};
    if (r->system.n == 0 || !fmm_can_shift_cells(plan))
    {
        return shifts;
    }
    gmxfmm_info info = {.size = sizeof(info)};
    gmxfmm_get_info(plan, &info);
    const double lattice     = share_of_lattice(plan, r);
    const double independent = 1 / (1 / number_of_charges(r) + lattice);
    shifts.deviation         = c_deviation * info.order / sqrt(independent);
    const double wanted      = pow(shifts.deviation / c_enough, 2);
    const double affordable  = fmax(c_evaluations / (double)r->system.n, lattice > 0 ? c_ofLattice : 1);
    shifts.most              = (int)fmin(fmin(ceil(wanted), ceil(affordable)), FMM_MOST_SHIFTS);
    shifts.most              = shifts.most > 1 ? shifts.most : 1;
    return shifts;
}

void fmm_shift_of(const gmxfmm_plan* plan, const gmxfmm_reference* r, int k, double* shift)
{
    gmxfmm_info info = {.size = sizeof(info)};
    double      x[3], t[3] = {0, 0, 0};
    gmxfmm_get_info(plan, &info);
    if (k == 1) /* the first particle with a charge to a corner, just inside */
    {
        int64_t i = 0;
        while (i < r->system.n - 1 && fmm_strength_of(r, i) == 0)
        {
            i++;
        }
        position_of(r, i, x);
        fmm_cell_coordinates(plan, x, t);
    }
    for (int d = 0; d < 3; d++)
    {
        const int across = info.depth >= 0 ? info.grid[d] : 1; /* leaves: through the cells of all levels */
        shift[d]         = k == 1 ? t[d] - floor(t[d]) - 0.499 : golden(k, d) * across;
    }
}

double fmm_error_anywhere(const fmm_shifts* s)
{
    double mean = 0, squares = 0, largest = 0;
    for (int k = 0; k < s->num; k++)
    {
        largest = fmax(largest, s->error[k]);
        mean += log(fmax(s->error[k], 1e-300)) / s->num;
    }
    for (int k = 0; k < s->num; k++)
    {
        squares += pow(log(fmax(s->error[k], 1e-300)) - mean, 2);
    }
    const double expected = c_expected * (1 - (double)s->num / fmax(s->most, c_ofLattice));
    const double freedom  = expected + s->num - 1;
    const double variance = (squares + expected * s->deviation * s->deviation) / freedom;
    const double above    = c_deviations * sqrt(variance * (1 + 1.0 / s->num));
    const double bound    = exp(mean + above);
    return fmax(largest, s->num >= c_capped ? fmin(bound, c_mostAbove * largest) : bound);
}
