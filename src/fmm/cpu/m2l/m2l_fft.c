/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fmm/cpu/m2l/m2l_fft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/math/fold.h"
#include "fmm/math/harmonics.h"

typedef struct fmm_convolution convolution;

enum
{
    c_maxCoef = (GMXFMM_MAX_ORDER + 1) * (GMXFMM_MAX_ORDER + 1)
};

static size_t padded(size_t count)
{
    /* An odd number of vectors: columns of a power-of-two stride would share a few cache sets. */
    return ((count + VLEN - 1) / VLEN | 1) * VLEN;
}

static gmxfmm_status make_plans(gmxfmm_plan* plan, convolution* conv)
{
    const int*     n        = conv->cells->n;
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

gmxfmm_status fmm_conv_create(gmxfmm_plan* plan)
{
    const fmm_cells* c    = plan->convolved;
    convolution*     conv = calloc(1, sizeof(*conv));
    if (conv == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory");
    }
    plan->cpu->conv      = conv;
    conv->cells          = c;
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

void fmm_conv_destroy(convolution* conv)
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
    fmm_lattice_free(conv->lattice);
    free(conv);
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
void fmm_conv_load(const convolution* conv, int chunk, vreal* re, vreal* im)
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

/* Factors of columns m and l by degree (fold_spectrum_signs). */
static void fold(int top, int m, int l, const vreal* x, folded* c)
{
    const int   mu   = l > m ? l - m : m - l;
    const vreal zero = x[0] - x[0];
    int         p_sign, q_sign;
    fold_spectrum_signs(m, l, &p_sign, &q_sign);
    const real sp = (real)p_sign, sq = (real)q_sign;
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

void fmm_conv_transform(const gmxfmm_plan* plan, const convolution* conv, int forward)
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

void fmm_conv_product(const gmxfmm_plan* plan, const convolution* conv)
{
    const size_t size = (size_t)harm_size(2 * conv->order);
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (int chunk = 0; chunk < conv->num_chunks; chunk++)
    {
        vreal in_re[c_maxCoef], in_im[c_maxCoef], out_re[c_maxCoef], out_im[c_maxCoef];
        fmm_conv_load(conv, chunk, in_re, in_im);
        product(conv->order, (const vreal*)(conv->s + (size_t)chunk * size * VLEN), in_re, in_im, out_re, out_im);
        store_chunk(conv, chunk, out_re, out_im);
    }
}

void fmm_m2l_fft(const gmxfmm_plan* plan, convolution* conv)
{
    fmm_conv_transform(plan, conv, 1);
    fmm_conv_product(plan, conv);
    fmm_conv_transform(plan, conv, 0);
}
