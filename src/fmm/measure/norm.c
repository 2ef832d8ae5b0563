/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The norm of errors: the RMS error of the forces over their RMS. A few forces may be so large that nothing else is
 * seen in it, as where two charges almost touch. So it is taken twice, once with the share in both sums of particles
 * whose force is more than ten times what is usual as if it were what is usual: at the limit itself, six of thirty
 * would still make the RMS 4.5 times what is usual. Without such forces the two are the same.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "fmm/math/threads.h"
#include "fmm/measure/reference.h"
#include "fmm/numbers.h"

/* Forces whose RMS is below this share of their natural unit are zero but for rounding, or below so many times what
 * positions are rounded by, over the spacing: those of a perfect crystal in single precision are. */
static const double c_zeroForce  = 1e-10;
static const double c_ofRounding = 10;

/* Forces larger than this times the usual one count as usual ones. In liquids there are none. */
static const double c_limit = 10;

enum
{
    c_parts  = 64,  /* parts of a sum, whose bits are the same with any number of threads */
    c_sample = 4096 /* particles of which the median of the forces is taken */
};

/* Area of a slab times its thickness or, if all particles are in a plane, what is as wide. */
static double slab_volume(const gmxfmm_system* s, const int* periodic, gmxfmm_precision type)
{
    const int     open = !periodic[0] ? 0 : !periodic[1] ? 1 : 2;
    const double *a = s->box + 3 * ((open + 1) % 3), *b = s->box + 3 * ((open + 2) % 3);
    const double  n[3] = {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
    const double  area = sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
    double        low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < s->n; i++)
    {
        double z = 0;
        for (int d = 0; d < 3; d++)
        {
            z += n[d] / area * fmm_number_of(s->x, type, 3 * i + d);
        }
        low  = z < low ? z : low;
        high = z > high ? z : high;
    }
    return area * (high > low ? high - low : sqrt(area));
}

/* Mean distance of particles: from the volume of the box, or of a slab, or of the brick around an open system. */
static double spacing(const gmxfmm_system* s, const int* periodic, gmxfmm_precision type)
{
    double    volume = 1, longest = 0;
    const int along = periodic[0] + periodic[1] + periodic[2];
    if (s->box != NULL && along == 2)
    {
        volume = slab_volume(s, periodic, type);
    }
    else if (s->box != NULL && along != 1)
    {
        const double* b = s->box;
        volume          = fabs(b[0] * (b[4] * b[8] - b[5] * b[7]) - b[1] * (b[3] * b[8] - b[5] * b[6]) +
                               b[2] * (b[3] * b[7] - b[4] * b[6]));
    }
    for (int d = 0; d < 3 && (s->box == NULL || along == 1); d++)
    {
        double low = INFINITY, high = -INFINITY;
        for (int64_t i = 0; i < s->n; i++)
        {
            /* not fmin and fmax, which gcc 12 for aarch64 fails to vectorise here (internal error) */
            const double at = fmm_number_of(s->x, type, 3 * i + d);
            low             = at < low ? at : low;
            high            = at > high ? at : high;
        }
        volume *= high - low;
        longest = fmax(longest, high - low);
    }
    volume = volume > 0 ? volume : longest * longest * longest; /* particles in a plane or on a line */
    return volume > 0 ? cbrt(volume / (double)s->n) : 1;
}

/* The square of vector i of array[3 n], in this type. */
static double square_of(const void* array, gmxfmm_precision type, int64_t i)
{
    double sum = 0;
    for (int d = 0; d < 3; d++)
    {
        const double f = fmm_number_of(array, type, 3 * i + d);
        sum += f * f;
    }
    return sum;
}

/* Numbers from the first one on. */
static const void* part_of(const gmxfmm_reference* r, const void* numbers, int64_t first)
{
    const size_t word = fmm_word_of(r->array_type);
    return numbers != NULL ? (const char*)numbers + (size_t)first * word : NULL;
}

/* The RMS of the reference's forces, or of the differences of others from them (NULL: the former), as it is and, in
 * *limited, with the share of particles whose force is above `limit` as if that were the usual force. first: 0, or
 * where torques begin. */
static double rms(const gmxfmm_reference* r, const void* others, int64_t first, double limit, double* limited)
{
    const void *const own = part_of(r, r->force, first), *const other = part_of(r, others, first);
    const int64_t n     = r->system.n;
    const double  usual = limit / c_limit;
    double        part[2][c_parts];
#pragma omp parallel for schedule(static) num_threads(r->num_threads) if (n > FMM_FEW_PARTICLES)
    for (int p = 0; p < c_parts; p++)
    {
        part[0][p] = part[1][p] = 0;
        for (int64_t i = n * p / c_parts; i < n * (p + 1) / c_parts; i++)
        {
            const double square = square_of(own, r->array_type, i);
            double       term   = other == NULL ? square : 0;
            for (int64_t k = 3 * i; k < 3 * i + 3 && other != NULL; k++)
            {
                const double d = fmm_number_of(other, r->array_type, k) - fmm_number_of(own, r->array_type, k);
                term += d * d;
            }
            part[0][p] += term;
            part[1][p] += square > limit * limit ? term * (usual * usual / square) : term;
        }
    }
    double sum[2] = {0, 0};
    for (int p = 0; p < c_parts; p++)
    {
        sum[0] += part[0][p];
        sum[1] += part[1][p];
    }
    const double particles = (double)(n > 0 ? n : 1);
    *limited               = sqrt(sum[1] / particles);
    return sqrt(sum[0] / particles);
}

static int compare(const void* a, const void* b)
{
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

int64_t fmm_sample(int64_t n, int most, int64_t k)
{
    const double golden = (double)k * 0.61803398874989485;
    return n <= most ? k : (int64_t)((golden - floor(golden)) * (double)n);
}

double fmm_median(double* value, size_t num)
{
    qsort(value, num, sizeof(*value), compare);
    return value[num / 2];
}

/* The median of the forces, or torques, on particles with a charge or a dipole, of a sample; 0 if none has any. */
static double usual_force(const gmxfmm_reference* r, int64_t first, gmxfmm_precision type)
{
    const gmxfmm_system* s     = &r->system;
    const void* const    own   = part_of(r, r->force, first);
    double*              found = malloc(c_sample * sizeof(*found));
    const int64_t        n     = s->n;
    size_t               num   = 0;
    for (int64_t k = 0; k < (n < c_sample ? n : c_sample) && found != NULL; k++)
    {
        const int64_t i          = fmm_sample(n, c_sample, k);
        const int     is_charged = first == 0 && fmm_number_of(s->q, type, i) != 0;
        if (is_charged || (s->mu != NULL && square_of(s->mu, type, i) > 0))
        {
            found[num++] = sqrt(square_of(own, r->array_type, i));
        }
    }
    const double middle = num > 0 ? fmm_median(found, num) : 0;
    free(found);
    return middle;
}

double fmm_strength_of(const gmxfmm_reference* r, int64_t i)
{
    const double q = fmm_number_of(r->system.q, r->array_type, i);
    return r->system.mu == NULL ? q : fabs(q) + sqrt(square_of(r->system.mu, r->array_type, i)) / r->unit.spacing;
}

static double mean_dipole(const gmxfmm_system* s, gmxfmm_precision type)
{
    double sum = 0;
    for (int64_t i = 0; i < s->n && s->mu != NULL; i++)
    {
        sum += sqrt(square_of(s->mu, type, i));
    }
    return sum / (double)(s->n > 0 ? s->n : 1);
}

void fmm_scales_of(const gmxfmm_system* s, const gmxfmm_options* options, double* charge, double* distance)
{
    *charge = 0;
    for (int64_t i = 0; i < s->n; i++)
    {
        *charge += fabs(fmm_number_of(s->q, options->array_type, i));
    }
    *charge /= (double)(s->n > 0 ? s->n : 1);
    *distance = spacing(s, options->periodic, options->array_type);
    *charge += mean_dipole(s, options->array_type) / *distance;
}

/* The unit of forces, or of torques that begin at `first`, whose natural unit is this. */
static fmm_error_unit
unit_of(const gmxfmm_reference* r, const gmxfmm_options* options, int64_t first, double natural, double d)
{
    const gmxfmm_system* s        = &r->system;
    double               farthest = 0, all;
    for (int64_t i = 0; i < 3 * s->n; i++)
    {
        const double at = fabs(fmm_number_of(s->x, options->array_type, i));
        farthest        = at > farthest ? at : farthest;
    }
    const double   round = farthest * (options->array_type == GMXFMM_DOUBLE ? DBL_EPSILON : (double)FLT_EPSILON);
    const double   least = fmax(c_zeroForce, c_ofRounding * round / d) * natural;
    fmm_error_unit unit  = {.limit = c_limit * fmax(usual_force(r, first, options->array_type), natural), .spacing = d};
    all                  = rms(r, NULL, first, unit.limit, &unit.limited);
    unit.all             = all > least ? all : natural > 0 ? natural : 1;
    unit.natural         = all > least ? 0 : unit.all;
    unit.limited         = all > least ? unit.limited : unit.all;
    return unit;
}

fmm_error_unit fmm_unit_of_errors(const gmxfmm_reference* r, const gmxfmm_options* options)
{
    double charge, d;
    fmm_scales_of(&r->system, options, &charge, &d);
    return unit_of(r, options, 0, fabs(options->prefactor) * (charge / d) * (charge / d), d);
}

fmm_error_unit fmm_unit_of_torques(const gmxfmm_reference* r, const gmxfmm_options* options)
{
    double       charge, d;
    const double mu = mean_dipole(&r->system, options->array_type);
    fmm_scales_of(&r->system, options, &charge, &d);
    return unit_of(r, options, fmm_torques_begin(&r->system), fabs(options->prefactor) * mu * charge / (d * d), d);
}

double fmm_error_of(const gmxfmm_reference* r, const void* force, double* limited)
{
    double error = rms(r, force, 0, r->unit.limit, limited) / r->unit.all;
    *limited /= r->unit.limited;
    if (r->system.mu != NULL)
    {
        double       of_torques;
        const double all = rms(r, force, fmm_torques_begin(&r->system), r->unit_torques.limit, &of_torques);
        error            = fmax(error, all / r->unit_torques.all);
        *limited         = fmax(*limited, of_torques / r->unit_torques.limited);
    }
    return error;
}

double fmm_larger_error(const gmxfmm_measurement* m)
{
    return fmax(fmax(m->error, m->error_limited), m->error_targets);
}
