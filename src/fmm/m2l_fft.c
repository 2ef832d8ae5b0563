/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "m2l_fft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harmonics.h"

typedef struct FN(fmm_convolution) convolution;

enum
{
    c_maxCoef = (GMXFMM_MAX_ORDER + 1) * (GMXFMM_MAX_ORDER + 1)
};

/* Truncation of the lattice sums, relative to their largest terms: below the rounding of the step. */
#ifdef FMM_DOUBLE
static const double c_latticeTolerance = 1e-16;
#else
static const double c_latticeTolerance = 1e-8;
#endif

static size_t padded(size_t count)
{
    /* An odd number of vectors: columns of a power-of-two stride would share a few cache sets. */
    return ((count + VLEN - 1) / VLEN | 1) * VLEN;
}

static gmxfmm_status make_plans(gmxfmm_plan* plan, convolution* conv)
{
    const int*     n        = plan->cells.n;
    const unsigned flags    = plan->options.reproducible ? FFTW_ESTIMATE : FFTW_MEASURE;
    FFTW(complex)* spectrum = (FFTW(complex)*)conv->spectrum;
    conv->forward           = FFTW(plan_dft_r2c_3d)(n[0], n[1], n[2], conv->field, spectrum, flags);
    conv->backward          = FFTW(plan_dft_c2r_3d)(n[0], n[1], n[2], spectrum, conv->field, flags);
    if (conv->forward == NULL || conv->backward == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "no FFT plan for a grid of %d x %d x %d cells", n[0], n[1], n[2]);
    }
    return GMXFMM_OK;
}

gmxfmm_status FN(fmm_conv_create)(gmxfmm_plan* plan)
{
    const fmm_cells* c    = &plan->cells;
    convolution*     conv = calloc(1, sizeof(*conv));
    if (conv == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory");
    }
    plan->FN(conv)       = conv;
    conv->order          = plan->order;
    conv->num_coef       = harm_size(plan->order);
    conv->num_freq       = c->n[0] * c->n[1] * (c->n[2] / 2 + 1);
    conv->num_chunks     = (conv->num_freq + VLEN - 1) / VLEN;
    conv->cell_stride    = padded((size_t)c->num_cells);
    conv->freq_stride    = padded((size_t)conv->num_freq);
    const size_t fields  = (size_t)conv->num_coef * conv->cell_stride * sizeof(real);
    const size_t spectra = (size_t)conv->num_coef * conv->freq_stride * 2 * sizeof(real);
    conv->field          = fmm_alloc(plan, fields);
    conv->spectrum       = fmm_alloc(plan, spectra);
    conv->s = fmm_alloc(plan, (size_t)conv->num_chunks * (size_t)harm_size(2 * plan->order) * sizeof(vreal));
    conv->z = fmm_alloc(plan, (size_t)conv->num_chunks * (size_t)harm_size(2 * plan->order + 2) * sizeof(vreal));
    if (!conv->field || !conv->spectrum || !conv->s || !conv->z)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %d cells of order %d", c->num_cells, plan->order);
    }
    const gmxfmm_status status = make_plans(plan, conv);
    memset(conv->field, 0, fields); /* planning may have written there, and padding must stay finite */
    memset(conv->spectrum, 0, spectra);
    return status;
}

void FN(fmm_conv_destroy)(convolution* conv)
{
    if (conv == NULL)
    {
        return;
    }
    FFTW(destroy_plan)(conv->forward);
    FFTW(destroy_plan)(conv->backward);
    free(conv->field);
    free(conv->spectrum);
    free(conv->s);
    free(conv->z);
    free(conv->lattice_vectors);
    free(conv->vector_cell);
    free(conv->table);
    free(conv);
}

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
    conv->ewald           = fmm_ewald_choose(&plan->cells, degree, c_latticeTolerance);
    if (fmm_real_vectors(&plan->cells, &conv->ewald, &conv->lattice_vectors, &conv->num_vectors) != GMXFMM_OK)
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
    const int* n        = plan->cells.n;
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
                 fmm_real_weights(&plan->cells, &conv->ewald, sum, degree, conv->lattice_vectors[i],
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
                         fmm_real_column(&plan->cells, degree, m, conv->lattice_vectors[i], value + weights, value,
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
            fmm_reciprocal_block(&plan->cells, &conv->ewald, sum, degree, inverse, factor, chunk * VLEN + first, part);
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
                (real)(3.14159265358979323846 / (conv->ewald.alpha * conv->ewald.alpha * plan->cells.cell_volume));
        }
    }
    const real scale = (real)(1.0 / plan->cells.num_cells); /* of the unnormalised transforms */
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

/* Multiplies by (-i)^n. */
static inline void phase(int n, vreal* re, vreal* im)
{
    const vreal r = *re, i = *im;
    switch (n & 3)
    {
    case 0:
        break;
    case 1:
        *re = i;
        *im = -r;
        break;
    case 2:
        *re = -r;
        *im = -i;
        break;
    default:
        *re = -i;
        *im = r;
        break;
    }
}

/* Coefficients of one chunk of frequencies with the phases of their degrees taken off, or put on and stored. */
static void load_chunk(const convolution* conv, int chunk, vreal* re, vreal* im)
{
    const int p = conv->order;
    for (int m = 0; m <= p; m++)
    {
        for (int n = m; n <= p; n++)
        {
            for (int i = harm_re(p, n, m); i <= (m > 0 ? harm_im(p, n, m) : harm_re(p, n, m)); i += p + 1 - m)
            {
                const real* from = conv->spectrum + 2 * ((size_t)i * conv->freq_stride + (size_t)chunk * VLEN);
                _Alignas(FMM_ALIGN) real r[VLEN], c[VLEN];
                for (int l = 0; l < VLEN; l++)
                {
                    r[l] = from[2 * l];
                    c[l] = from[2 * l + 1];
                }
                re[i] = *(vreal*)r;
                im[i] = *(vreal*)c;
                phase(n, &re[i], &im[i]);
            }
        }
    }
}

static void store_chunk(const convolution* conv, int chunk, vreal* re, vreal* im)
{
    const int p = conv->order;
    for (int m = 0; m <= p; m++)
    {
        for (int n = m; n <= p; n++)
        {
            for (int i = harm_re(p, n, m); i <= (m > 0 ? harm_im(p, n, m) : harm_re(p, n, m)); i += p + 1 - m)
            {
                real*       to = conv->spectrum + 2 * ((size_t)i * conv->freq_stride + (size_t)chunk * VLEN);
                const real *r = (const real*)&re[i], *c = (const real*)&im[i];
                phase(n, &re[i], &im[i]);
                for (int l = 0; l < VLEN; l++)
                {
                    to[2 * l]     = r[l];
                    to[2 * l + 1] = c[l];
                }
            }
        }
    }
}

/* One pair of columns: for j = n + k, out_k += c_j in_n, the four real products of (A + iB)(c) with m and -m folded. */
typedef struct
{
    vreal rr, ri, ir, ii; /* out re <- in re, out re <- in im, out im <- in re, out im <- in im */
} folded;

/*
 * Folds the terms m and -m of sum_m M^m X^(m+l) for m, l >= 0, X = P + iQ, X^-mu = (-1)^mu conj X^mu:
 *   re = A (P+ + s P-) - B (Q+ - s Q-),  im = A (Q+ + s Q-) + B (P+ - s P-),
 * with P+ = P^(l+m), P- = P^(l-m), s = (-1)^m; m = 0 has one term only.
 */
static void fold(int top, int m, int l, const vreal* x, folded* c)
{
    const int   mu   = l > m ? l - m : m - l;
    const real  s    = m & 1 ? -1 : 1;
    const real  sp   = l < m && (mu & 1) ? -s : s;    /* s P-: sign of X^-mu */
    const real  sq   = l < m ? (mu & 1 ? s : -s) : s; /* s Q- */
    const vreal zero = x[0] - x[0];
    for (int j = l + m; j <= top; j++)
    {
        const vreal pp = x[harm_re(top, j, l + m)];
        vreal       qp = zero;
        if (l + m > 0)
        {
            qp = x[harm_im(top, j, l + m)];
        }
        if (m == 0)
        {
            c[j].rr = pp;
            c[j].ir = qp;
            continue;
        }
        const vreal pm = x[harm_re(top, j, mu)] * sp;
        vreal       qm = zero;
        if (mu > 0)
        {
            qm = x[harm_im(top, j, mu)] * sq;
        }
        c[j].rr = pp + pm;
        c[j].ri = qm - qp;
        c[j].ir = qp + qm;
        c[j].ii = pp - pm;
    }
}

/* Spectra of the coefficients of one column, indexed by degree; b is its imaginary part. */
typedef struct
{
    const vreal *a_re, *a_im, *b_re, *b_im;
} column;

/*
 * out_k += sum_{n=m..p} c_(n+k) in_n for k = l..p. Two k at a time: c_(n+k+1) serves k+1 now and k at the next n, so
 * that there are two multiplications for each load. has_b: m > 0; has_i: l > 0 (compile-time constants).
 */
static inline void hankel(int           p,
                          int           m,
                          int           l,
                          const folded* c,
                          column        in,
                          int           has_b,
                          int           has_i,
                          vreal*        r_re,
                          vreal*        r_im,
                          vreal*        i_re,
                          vreal*        i_im)
{
    for (int k = l; k <= p; k += 2)
    {
        const vreal zero = {0};
        vreal       s[2][4], t[2][4]; /* from a, from b: two chains of additions each */
        for (int i = 0; i < 4; i++)
        {
            s[0][i] = s[1][i] = t[0][i] = t[1][i] = zero;
        }
        folded c0 = c[k + m];
        for (int n = m; n <= p; n++)
        {
            const folded c1 = c[n + k + 1];
            const vreal  ar = in.a_re[n], ai = in.a_im[n];
            s[0][0] += c0.rr * ar;
            s[0][1] += c0.rr * ai;
            s[1][0] += c1.rr * ar;
            s[1][1] += c1.rr * ai;
            if (has_i)
            {
                s[0][2] += c0.ir * ar;
                s[0][3] += c0.ir * ai;
                s[1][2] += c1.ir * ar;
                s[1][3] += c1.ir * ai;
            }
            if (has_b)
            {
                const vreal br = in.b_re[n], bi = in.b_im[n];
                t[0][0] += c0.ri * br;
                t[0][1] += c0.ri * bi;
                t[1][0] += c1.ri * br;
                t[1][1] += c1.ri * bi;
                if (has_i)
                {
                    t[0][2] += c0.ii * br;
                    t[0][3] += c0.ii * bi;
                    t[1][2] += c1.ii * br;
                    t[1][3] += c1.ii * bi;
                }
            }
            c0 = c1;
        }
        for (int i = 0; i < 2 && k + i <= p; i++)
        {
            r_re[k + i] += s[i][0] + t[i][0];
            r_im[k + i] += s[i][1] + t[i][1];
            if (has_i)
            {
                i_re[k + i] += s[i][2] + t[i][2];
                i_im[k + i] += s[i][3] + t[i][3];
            }
        }
    }
}

/* out_k^l = sum_{n,m} in_n^m X_(n+k)^(m+l) for VLEN frequencies: real operators on complex coefficients. */
static void product(int p, const vreal* x, const vreal* in_re, const vreal* in_im, vreal* out_re, vreal* out_im)
{
    const int top = 2 * p;
    folded    c[2 * GMXFMM_MAX_ORDER + 2];
    memset(c, 0, sizeof(c)); /* hankel reads one past 2p */
    for (int i = 0; i < harm_size(p); i++)
    {
        out_re[i] = (vreal){0};
        out_im[i] = (vreal){0};
    }
    for (int l = 0; l <= p; l++)
    {
        const int re = harm_re(p, l, l) - l, im = harm_im(p, l, l) - l;
        for (int m = 0; m <= p; m++)
        {
            const int    a = harm_re(p, m, m) - m, b = harm_im(p, m, m) - m;
            const column in = {in_re + a, in_im + a, in_re + b, in_im + b};
            fold(top, m, l, x, c);
            if (m == 0 && l == 0)
            {
                hankel(p, m, l, c, in, 0, 0, out_re + re, out_im + re, NULL, NULL);
            }
            else if (m == 0)
            {
                hankel(p, m, l, c, in, 0, 1, out_re + re, out_im + re, out_re + im, out_im + im);
            }
            else if (l == 0)
            {
                hankel(p, m, l, c, in, 1, 0, out_re + re, out_im + re, NULL, NULL);
            }
            else
            {
                hankel(p, m, l, c, in, 1, 1, out_re + re, out_im + re, out_re + im, out_im + im);
            }
        }
    }
}

static void transform_all(const gmxfmm_plan* plan, const convolution* conv, int forward)
{
#pragma omp parallel for schedule(dynamic) num_threads(plan->num_threads)
    for (int i = 0; i < conv->num_coef; i++)
    {
        real* field             = conv->field + (size_t)i * conv->cell_stride;
        FFTW(complex)* spectrum = (FFTW(complex)*)(conv->spectrum + 2 * (size_t)i * conv->freq_stride);
        if (forward)
        {
            FFTW(execute_dft_r2c)(conv->forward, field, spectrum);
        }
        else
        {
            FFTW(execute_dft_c2r)(conv->backward, spectrum, field);
        }
    }
}

static void product_all(const gmxfmm_plan* plan, const convolution* conv)
{
    const size_t size = (size_t)harm_size(2 * conv->order);
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (int chunk = 0; chunk < conv->num_chunks; chunk++)
    {
        vreal in_re[c_maxCoef], in_im[c_maxCoef], out_re[c_maxCoef], out_im[c_maxCoef];
        load_chunk(conv, chunk, in_re, in_im);
        product(conv->order, (const vreal*)(conv->s + (size_t)chunk * size * VLEN), in_re, in_im, out_re, out_im);
        store_chunk(conv, chunk, out_re, out_im);
    }
}

void FN(fmm_m2l_fft)(const gmxfmm_plan* plan, convolution* conv)
{
    transform_all(plan, conv, 1);
    product_all(plan, conv);
    transform_all(plan, conv, 0);
}

/*
 * Moment products of one chunk, THEORY (20): G_j^mu = sum over n + k = j, m + l = mu of conj_f(M_k^l) M_n^m, mu >= 0,
 * real part over frequencies, times weight; complex in the sense of harmonics, g[harm(2p)].
 */
static void moment_products(int p, const vreal* re, const vreal* im, vreal weight, vreal* g)
{
    const int   top  = 2 * p;
    const vreal zero = {0};
    for (int i = 0; i < harm_size(top); i++)
    {
        g[i] = zero;
    }
    for (int m = 0; m <= p; m++)
    {
        for (int n = m; n <= p; n++)
        {
            const int a = harm_re(p, n, m), b = harm_im(p, n, m);
            vreal     bre = zero, bim = zero;
            if (m > 0)
            {
                bre = re[b] * weight;
                bim = im[b] * weight;
            }
            const vreal are = re[a] * weight, aim = im[a] * weight;
            for (int l = m; l <= p; l++) /* l < m: by symmetry */
            {
                const real twice = l > m ? 2 : 1;
                const real s     = (m & 1 ? -1 : 1) * twice;
                for (int k = l; k <= p; k++)
                {
                    const int   c = harm_re(p, k, l), d = harm_im(p, k, l), j = n + k;
                    const vreal ac = are * re[c] + aim * im[c];
                    g[harm_re(top, j, m + l)] += ac * twice;
                    if (l == 0)
                    {
                        continue;
                    }
                    const vreal ad = are * re[d] + aim * im[d];
                    const vreal bc = bre * re[c] + bim * im[c];
                    const vreal bd = bre * re[d] + bim * im[d];
                    /* M^m M^l at mu = m + l; M^-m M^l at l - m, for l = m together with M^m M^-l */
                    g[harm_re(top, j, m + l)] -= bd * twice;
                    g[harm_im(top, j, m + l)] += (ad + bc) * twice;
                    if (m > 0)
                    {
                        g[harm_re(top, j, l - m)] += (ac + bd) * (l > m ? s : 2 * s);
                        if (l > m)
                        {
                            g[harm_im(top, j, l - m)] += (ad - bc) * s;
                        }
                    }
                }
            }
        }
    }
}

typedef struct
{
    vreal re, im;
} cplx;

/* X_n^m for any |m| <= n <= top from stored columns, 0 elsewhere. */
static inline cplx element(int top, const vreal* x, int n, int m)
{
    const int a = m < 0 ? -m : m;
    cplx      c = {{0}, {0}};
    if (a <= n && n <= top)
    {
        const real s = m < 0 && (a & 1) ? -1 : 1;
        c.re         = x[harm_re(top, n, a)] * s;
        if (a > 0)
        {
            c.im = x[harm_im(top, n, a)] * (m < 0 ? -s : s);
        }
    }
    return c;
}

static inline void add_product(cplx* w, cplx g, real fx, cplx x, real fy, cplx y)
{
    const vreal re = fx * x.re + fy * y.re, im = fx * x.im + fy * y.im;
    w->re += g.re * re - g.im * im;
    w->im += g.re * im + g.im * re;
}

/*
 * Contracts moment products with the strain derivative of S, THEORY (21), its traceless part; spectra here have the
 * phase (-i)^n taken off, which turns Z_(j+2) into -Z_(j+2).
 */
static void contract(int p, const vreal* g, const vreal* s, const vreal* z, cplx w[3])
{
    const int top = 2 * p;
    for (int j = 0; j <= top; j++)
    {
        const real inv = (real)1 / (real)(2 * j + 3);
        for (int mu = -j; mu <= j; mu++)
        {
            const cplx gj = element(top, g, j, mu);
            const real c0 = (real)(j + 1) / 3 - inv * (real)((j + 1) * (j + 1) - mu * mu);
            add_product(&w[0], gj, inv, element(top + 2, z, j + 2, mu), c0, element(top, s, j, mu));
            const real c1 = -inv * (real)((j - mu) * (2 * mu + 1));
            add_product(&w[1], gj, 2 * inv, element(top + 2, z, j + 2, mu + 1), c1, element(top, s, j, mu + 1));
            const real c2 = inv * (real)((j - mu) * (j - mu - 1));
            add_product(&w[2], gj, inv, element(top + 2, z, j + 2, mu + 2), c2, element(top, s, j, mu + 2));
        }
    }
}

/* Weight of a half-spectrum frequency: 2 where its mirror image is not stored. */
static vreal mirror_weight(const fmm_cells* c, const convolution* conv, int chunk)
{
    const int nz = c->n[2] / 2 + 1;
    vreal     w;
    for (int l = 0; l < VLEN; l++)
    {
        const int f  = chunk * VLEN + l;
        const int fz = f % nz;
        w[l]         = f >= conv->num_freq ? 0 : fz == 0 || 2 * fz == c->n[2] ? 1 : 2;
    }
    return w;
}

static double lane_sum(vreal v)
{
    double sum = 0;
    for (int l = 0; l < VLEN; l++)
    {
        sum += (double)v[l];
    }
    return sum;
}

static void virial_chunk(const gmxfmm_plan* plan, const convolution* conv, int chunk, double* row)
{
    const int    p = conv->order, top = 2 * p;
    vreal        re[c_maxCoef], im[c_maxCoef];
    vreal        g[(2 * GMXFMM_MAX_ORDER + 1) * (2 * GMXFMM_MAX_ORDER + 1)];
    cplx         w[3];
    const vreal* s = (const vreal*)conv->s + (size_t)chunk * (size_t)harm_size(top);
    const vreal* z = (const vreal*)conv->z + (size_t)chunk * (size_t)harm_size(top + 2);
    memset(w, 0, sizeof(w));
    load_chunk(conv, chunk, re, im);
    moment_products(p, re, im, mirror_weight(&plan->cells, conv, chunk), g);
    contract(p, g, s, z, w);
    row[0] += 0.5 * lane_sum(w[2].re);
    row[1] += 0.5 * lane_sum(w[2].im);
    row[2] += 0.5 * lane_sum(w[1].re);
    row[3] += 0.5 * lane_sum(w[1].im);
    row[4] += 0.5 * lane_sum(w[0].re);
}

void FN(fmm_m2l_fft_virial)(gmxfmm_plan* plan, convolution* conv, double* w)
{
    transform_all(plan, conv, 1);
    memset(plan->partial, 0, (size_t)plan->partial_rows * FMM_PARTIAL * sizeof(double));
    /* rows, not threads, own the partial sums: the result does not depend on scheduling */
    const int rows = plan->partial_rows;
#pragma omp parallel for schedule(dynamic) num_threads(plan->num_threads)
    for (int row = 0; row < rows; row++)
    {
        for (int chunk = row; chunk < conv->num_chunks; chunk += rows)
        {
            virial_chunk(plan, conv, chunk, plan->partial + (size_t)row * FMM_PARTIAL);
        }
    }
    for (int row = 0; row < rows; row++)
    {
        for (int i = 0; i < 5; i++)
        {
            w[i] += plan->partial[row * FMM_PARTIAL + i];
        }
    }
    product_all(plan, conv);
    transform_all(plan, conv, 0);
}
