/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Strain derivative of the lattice part of the far energy (THEORY section 6). */
#include "fmm/cpu/convolution/convolution.h"

#include <string.h>

#include "fmm/cpu/ranks.h"
#include "fmm/cpu/step.h"
#include "fmm/math/harmonics.h"

typedef struct fmm_convolution convolution;

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
 * phase (-i)^n taken off, which changes the sign of Z_(j+2).
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
        const int fz = fmm_conv_frequency(conv, f) % nz;
        w[l]         = f >= conv->num_own ? 0 : fz == 0 || 2 * fz == c->n[2] ? 1 : 2;
    }
    return w;
}

enum
{
    c_sums  = 5,
    c_block = 64 /* columns that a thread adds up together */
};

/* The sums at each frequency of a chunk: they are added up in an order that knows nothing of chunks, threads or ranks.
 */
static void virial_chunk(const convolution* conv, int chunk, vreal* scratch)
{
    const int    p = conv->order, top = 2 * p;
    vreal* const re = scratch;
    vreal* const im = re + fmm_conv_coef(p);
    vreal* const g  = im + fmm_conv_coef(p);
    cplx         w[3];
    const vreal* s = (const vreal*)conv->s + (size_t)chunk * (size_t)harm_size(top);
    const vreal* z = (const vreal*)conv->z + (size_t)chunk * (size_t)harm_size(top + 2);
    memset(w, 0, sizeof(w));
    fmm_conv_load(conv, chunk, re, im);
    moment_products(p, re, im, mirror_weight(conv->cells, conv, chunk), g);
    contract(p, g, s, z, w);
    for (int l = 0; l < VLEN; l++)
    {
        const double sums[c_sums] = {(double)w[2].re[l], (double)w[2].im[l], (double)w[1].re[l], (double)w[1].im[l],
                                     (double)w[0].re[l]};
        memcpy(conv->strain + (size_t)(chunk * VLEN + l) * c_sums, sums, sizeof(sums));
    }
}

/* Sums over the frequencies of own columns first to end - 1. */
static void add_columns(const convolution* conv, int first, int end, double* sums)
{
    memset(sums + first * c_sums, 0, (size_t)(end - first) * c_sums * sizeof(*sums));
    for (int x = 0; x < conv->cells->n[0]; x++)
    {
        const double* of = conv->strain + (size_t)x * (size_t)conv->columns.num * c_sums;
        for (int i = first * c_sums; i < end * c_sums; i++)
        {
            sums[i] += of[i];
        }
    }
}

void fmm_m2l_fft_virial(gmxfmm_plan* plan, convolution* conv, double* w)
{
    const int     num  = conv->cells->n[1] * (conv->cells->n[2] / 2 + 1);
    double* const sums = conv->strain + (size_t)(conv->num_chunks * VLEN) * c_sums; /* of each column */
    fmm_conv_forward(plan, conv);
#pragma omp parallel for schedule(dynamic) num_threads(plan->num_threads)
    for (int chunk = 0; chunk < conv->num_chunks; chunk++)
    {
        virial_chunk(conv, chunk, fmm_thread_scratch(plan));
    }
    const int own = conv->columns.num;
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (int first = 0; first < own; first += c_block)
    {
        add_columns(conv, first, first + c_block < own ? first + c_block : own,
                    sums + (size_t)conv->columns.first * c_sums);
    }
    fmm_gather_parts(plan, sums, c_sums * sizeof(*sums), plan->cpu->shares.columns);
    for (int c = 0; c < num; c++)
    {
        for (int i = 0; i < c_sums; i++)
        {
            w[i] += 0.5 * sums[(size_t)c * c_sums + (size_t)i];
        }
    }
    fmm_conv_product(plan, conv);
    fmm_conv_backward(plan, conv);
}
