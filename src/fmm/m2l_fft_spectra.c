/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Spectra of the lattice sums over the grid of cells, whenever the box has another shape. */
#include "m2l_fft.h"

#include <stdlib.h>
#include <string.h>

#include "harmonics.h"

typedef struct FN(fmm_convolution) convolution;

/* Truncation of the lattice sums, relative to their largest terms: below the rounding of the step. */
#ifdef FMM_DOUBLE
static const double c_latticeTolerance = 1e-16;
#else
static const double c_latticeTolerance = 1e-8;
#endif

/* Real part of i^n X, which is what the phase (-i)^n leaves of a spectrum of parity (-1)^n. */
static real unphased(int n, const real* x)
{
    switch (n & 3)
    {
    case 0:
        return x[0];
    case 1:
        return -x[1];
    case 2:
        return -x[0];
    default:
        return x[1];
    }
}

/* Spectrum of the real-space part of one coefficient, its values at the lattice vectors, into out[chunk][coef][lane].
 * slot: a coefficient whose field and spectrum serve as buffers. */
static void transform(const convolution* conv,
                      const double*      values,
                      size_t             stride,
                      int                n,
                      int                slot,
                      size_t             coef,
                      size_t             num_coef,
                      real*              out)
{
    real* field    = conv->field + (size_t)slot * conv->cell_stride;
    real* spectrum = conv->spectrum + 2 * (size_t)slot * conv->freq_stride;
    memset(field, 0, conv->cell_stride * sizeof(real));
    for (int i = 0; i < conv->num_vectors; i++)
    {
        const real value = (real)values[(size_t)i * stride];
        field[conv->vector_cell[i][0]] += value;
        field[conv->vector_cell[i][1]] += n & 1 ? -value : value;
    }
    FFTW(execute_dft_r2c)(conv->forward, field, (FFTW(complex)*)spectrum);
    for (int f = 0; f < conv->num_freq; f++)
    {
        out[((size_t)(f / VLEN) * num_coef + coef) * VLEN + (size_t)(f % VLEN)] = unphased(n, spectrum + 2 * f);
    }
}

/* Doubles per lattice vector in conv->table. */
static size_t table_stride(int degree)
{
    return 3 * (size_t)(degree + 1);
}

gmxfmm_status FN(fmm_conv_set_shape)(gmxfmm_plan* plan)
{
    convolution* conv   = plan->FN(conv);
    const int    degree = 2 * conv->order + 2;
    free(conv->lattice_vectors);
    conv->lattice_vectors = NULL;
    conv->ewald           = fmm_ewald_choose(conv->cells, degree, c_latticeTolerance);
    if (fmm_real_vectors(conv->cells, &conv->ewald, &conv->lattice_vectors, &conv->num_vectors) != GMXFMM_OK)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for lattice sums");
    }
    const size_t size = (size_t)conv->num_vectors * table_stride(degree);
    free(conv->vector_cell);
    conv->vector_cell = malloc(((size_t)conv->num_vectors + 1) * sizeof(*conv->vector_cell));
    if (conv->table == NULL || size > conv->table_size)
    {
        free(conv->table);
        conv->table      = malloc((size + 1) * sizeof(double)); /* an open system of one cell has no vectors */
        conv->table_size = conv->table == NULL ? 0 : size;
    }
    if (conv->table == NULL || conv->vector_cell == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for lattice sums");
    }
    const size_t bytes = conv->table_size * sizeof(double) +
                         (size_t)conv->num_vectors * (sizeof(*conv->vector_cell) + sizeof(*conv->lattice_vectors));
    plan->bytes += bytes - conv->lattice_bytes;
    plan->grid_bytes += bytes - conv->lattice_bytes;
    conv->lattice_bytes = bytes;
    const int* n        = conv->cells->n;
    for (int i = 0; i < conv->num_vectors; i++)
    {
        for (int mirror = 0; mirror < 2; mirror++)
        {
            int at[3];
            for (int d = 0; d < 3; d++)
            {
                const int k = mirror ? -conv->lattice_vectors[i][d] : conv->lattice_vectors[i][d];
                at[d]       = (k % n[d] + n[d]) % n[d];
            }
            conv->vector_cell[i][mirror] = (at[0] * n[1] + at[1]) * n[2] + at[2];
        }
    }
    return GMXFMM_OK;
}

/* Column by column: coefficients at all lattice vectors, then one transform for each, in buffers of the step. */
static void real_part(const gmxfmm_plan* plan, const convolution* conv, fmm_sum sum, int degree, real* out)
{
    const size_t stride = table_stride(degree), weights = 2 * (size_t)(degree + 1), size = (size_t)harm_size(degree);
    const int    slots = conv->num_coef < plan->num_threads ? conv->num_coef : plan->num_threads;
#pragma omp          parallel for schedule(static) num_threads(plan->num_threads)
    for (int i = 0; i < conv->num_vectors; i++)
    {
                 fmm_real_weights(conv->cells, &conv->ewald, sum, degree, conv->lattice_vectors[i],
                                  conv->table + (size_t)i * stride + weights);
    }
    for (int m = 0; m <= degree; m++)
    {
         #pragma omp parallel num_threads(plan->num_threads)
        {
         #pragma omp for schedule(static)
            for (int i = 0; i < conv->num_vectors; i++)
            {
                         double* value = conv->table + (size_t)i * stride;
                         fmm_real_column(conv->cells, degree, m, conv->lattice_vectors[i], value + weights, value,
                                         value + degree + 1);
            }
            const int tasks = (m > 0 ? 2 : 1) * (degree - m + 1);
#pragma omp for schedule(static)
            for (int slot = 0; slot < slots; slot++)
            {
                for (int task = slot; task < tasks; task += slots)
                {
                    const int n = m + task % (degree - m + 1), imaginary = task > degree - m;
                    transform(conv, conv->table + (imaginary ? degree + 1 : 0) + n - m, stride, n, slot,
                              (size_t)(imaginary ? harm_im(degree, n, m) : harm_re(degree, n, m)), size, out);
                }
            }
        }
    }
}

static void reciprocal_part(const gmxfmm_plan* plan, const convolution* conv, fmm_sum sum, int degree, real* out)
{
    const int lanes = fmm_reciprocal_lanes(), size = harm_size(degree);
    double    inverse[(2 * GMXFMM_MAX_ORDER + 3) * (2 * GMXFMM_MAX_ORDER + 3)];
    double    factor[(2 * GMXFMM_MAX_ORDER + 3) * (2 * GMXFMM_MAX_ORDER + 3)];
    fmm_reciprocal_tables(sum, degree, inverse, factor);
#pragma omp parallel for schedule(dynamic) num_threads(plan->num_threads)
    for (int chunk = 0; chunk < conv->num_chunks; chunk++)
    {
        _Alignas(FMM_ALIGN) double part[(2 * GMXFMM_MAX_ORDER + 3) * (2 * GMXFMM_MAX_ORDER + 3) * (FMM_VBYTES / 8)];
        real*                      to = out + (size_t)chunk * (size_t)size * VLEN;
        for (int first = 0; first < VLEN; first += lanes)
        {
            fmm_reciprocal_block(conv->cells, &conv->ewald, sum, degree, inverse, factor, chunk * VLEN + first, part);
            for (int i = 0; i < size; i++)
            {
                for (int l = 0; l < lanes; l++)
                {
                    to[i * VLEN + first + l] = (real)(to[i * VLEN + first + l] + part[i * lanes + l]);
                }
            }
        }
    }
}

static void make_spectrum(const gmxfmm_plan* plan, const convolution* conv, fmm_sum sum, int degree, real* out)
{
    const size_t size = (size_t)conv->num_chunks * (size_t)harm_size(degree) * VLEN;
    memset(out, 0, size * sizeof(real));
    real_part(plan, conv, sum, degree, out);
    if (plan->periodic)
    {
        reciprocal_part(plan, conv, sum, degree, out);
        if (sum == FMM_SUM_S)
        {
            /* neutralising background: -pi / (alpha^2 V) for every pair, all of it at frequency 0 */
            out[0] -=
                (real)(3.14159265358979323846 / (conv->ewald.alpha * conv->ewald.alpha * conv->cells->cell_volume));
        }
    }
    const real scale = (real)(1.0 / conv->cells->num_cells); /* of the unnormalised transforms */
    for (size_t i = 0; i < size; i++)
    {
        /* What vanishes by symmetry is left as powers of rounding errors; subnormal numbers among them would make the
         * products ten times slower. */
        out[i] = out[i] < (real)1e-30 && out[i] > (real)-1e-30 ? 0 : out[i] * scale;
    }
}

void FN(fmm_conv_spectra)(gmxfmm_plan* plan, int with_virial)
{
    const convolution* conv = plan->FN(conv);
    if (!plan->spectra_valid)
    {
        make_spectrum(plan, conv, FMM_SUM_S, 2 * conv->order, conv->s);
        plan->spectra_valid        = 1;
        plan->virial_spectra_valid = 0;
        plan->info.num_spectra++;
    }
    if (with_virial && !plan->virial_spectra_valid)
    {
        make_spectrum(plan, conv, FMM_SUM_Z, 2 * conv->order + 2, conv->z);
        plan->virial_spectra_valid = 1;
    }
}
