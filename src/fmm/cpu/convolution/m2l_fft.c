/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* M2L by FFT: the arrays of the convolution, and the product of the spectra of multipoles and lattice sums. */
#include "fmm/cpu/convolution/convolution.h"

#include <stdlib.h>
#include <string.h>

#include "fmm/cpu/convolution/exchange.h"
#include "fmm/cpu/simd/lanes.h"
#include "fmm/cpu/step.h"
#include "fmm/math/fold.h"
#include "fmm/math/harmonics.h"

typedef struct fmm_convolution convolution;

gmxfmm_status fmm_conv_create(gmxfmm_plan* plan)
{
    const fmm_cells* c    = fmm_convolved(plan);
    convolution*     conv = calloc(1, sizeof(*conv));
    if (conv == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory");
    }
    plan->cpu->conv            = conv;
    conv->cells                = c;
    conv->order                = plan->far.order;
    const gmxfmm_status status = fmm_fft_create(plan, c->n, harm_size(plan->far.order), &conv->fft);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    const int layer = c->n[1] * (c->n[2] / 2 + 1), units = c->n[0] * conv->fft.num_groups;
    const int several = plan->cpu->shares.ranks != NULL;
    fmm_conv_share(plan, units, layer);
    const fmm_range own   = fmm_own_of(plan, plan->cpu->shares.columns, layer);
    const fmm_range owned = fmm_own_of(plan, plan->cpu->shares.units, units);
    conv->num_own         = c->n[0] * (own.end - own.begin);
    conv->num_chunks      = (conv->num_own + VLEN - 1) / VLEN;
    const size_t fields   = ((size_t)conv->fft.num_fields * conv->fft.field_stride + VLEN) * sizeof(real);
    const size_t whole    = (size_t)conv->fft.num_groups * conv->fft.spectrum_stride;
    const size_t spectra  = (several ? (size_t)(owned.end - owned.begin) * (size_t)layer : whole) * sizeof(fmm_complex);
    const size_t strain   = 5 * ((size_t)conv->num_chunks * VLEN + (size_t)layer) * sizeof(double);
    /* The largest come first: a memory that lacks one of them is not filled with the others */
    if (!(conv->field = fmm_alloc(plan, fields)) || !(conv->spectrum = fmm_alloc(plan, spectra)) ||
        !(conv->s = fmm_alloc(plan, fmm_conv_spectrum_size(conv, FMM_SUM_S) * sizeof(real))) ||
        !(conv->z = fmm_alloc(plan, fmm_conv_spectrum_size(conv, FMM_SUM_Z) * sizeof(real))) ||
        !(conv->strain = fmm_alloc(plan, strain)) || !fmm_conv_reserve(plan))
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY,
                        "out of memory for %d cells of order %d: fewer cells, or a lower order", c->num_cells,
                        plan->far.order);
    }
    memset(conv->field, 0, fields); /* padding must stay finite */
    memset(conv->spectrum, 0, spectra);
    conv->columns = several ? fmm_conv_own_columns(plan) : fmm_fft_all_columns(&conv->fft, conv->spectrum);
    return GMXFMM_OK;
}

void fmm_conv_destroy(convolution* conv)
{
    if (conv == NULL)
    {
        return;
    }
    fmm_fft_destroy(&conv->fft);
    free(conv->field);
    free(conv->spectrum);
    free(conv->strain);
    free(conv->packed);
    free(conv->own_columns);
    free(conv->cells_packed);
    free(conv->s);
    free(conv->z);
    for (int i = 0; i < FMM_LINE_NODES; i++)
    {
        free(conv->node_s[i]);
        free(conv->node_z[i]);
    }
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

/* Multiplies each coefficient by (-i)^n, n its degree: with that before and after the product, S has real spectra. */
static void turn_phases(int p, vreal* re, vreal* im)
{
    for (int m = 0; m <= p; m++)
    {
        for (int n = m; n <= p; n++)
        {
            phase(n, &re[harm_re(p, n, m)], &im[harm_re(p, n, m)]);
            if (m > 0)
            {
                phase(n, &re[harm_im(p, n, m)], &im[harm_im(p, n, m)]);
            }
        }
    }
}

/* Where the frequencies of a chunk are in the spectra of the first group; of the padding behind the last, that one. */
static void places_of_chunk(const convolution* conv, int chunk, size_t at[VLEN])
{
    const fmm_columns* c = &conv->columns;
    for (int l = 0; l < VLEN; l++)
    {
        const size_t f = (size_t)(chunk * VLEN + l), last = (size_t)conv->num_own - 1, num = (size_t)c->num;
        const size_t own = f < last ? f : last;
        at[l]            = c->x_stride == num ? own : own / num * c->x_stride + own % num;
    }
}

void fmm_conv_load(const convolution* conv, int chunk, vreal* re, vreal* im)
{
    size_t at[VLEN];
    places_of_chunk(conv, chunk, at);
    for (int group = 0; group < conv->fft.num_groups; group++)
    {
        const fmm_complex* from = conv->columns.at + (size_t)group * conv->columns.group_stride;
        for (int l = 0; l < VLEN; l++)
        {
            re[group * VLEN + l] = from[at[l]].re;
            im[group * VLEN + l] = from[at[l]].im;
        }
        lanes_transpose(re + group * VLEN);
        lanes_transpose(im + group * VLEN);
    }
    turn_phases(conv->order, re, im);
}

static void store_chunk(const convolution* conv, int chunk, vreal* re, vreal* im)
{
    const int left = conv->num_own - chunk * VLEN, lanes = left < VLEN ? left : VLEN;
    size_t    at[VLEN];
    places_of_chunk(conv, chunk, at);
    turn_phases(conv->order, re, im);
    for (int group = 0; group < conv->fft.num_groups; group++)
    {
        fmm_complex* to = conv->columns.at + (size_t)group * conv->columns.group_stride;
        lanes_transpose(re + group * VLEN);
        lanes_transpose(im + group * VLEN);
        for (int l = 0; l < lanes; l++)
        {
            to[at[l]] = (fmm_complex){re[group * VLEN + l], im[group * VLEN + l]};
        }
    }
}

/* One pair of columns: for j = n + k, out_k += c_j in_n, the four real products of (A + iB)(c) with m and -m folded. */
typedef struct
{
    vreal rr, ri, ir, ii; /* out re <- in re, out re <- in im, out im <- in re, out im <- in im */
} folded;

/* Factors of columns m of the input and l >= m of the output by degree (fold_spectrum_signs). Those of columns l of the
 * input and m of the output are the same with -ir for ri and -ri for ir, all doubled for m = 0. */
static void fold(int top, int m, int l, const vreal* x, folded* c)
{
    int re_sign, im_sign;
    fold_spectrum_signs(m, l, &re_sign, &im_sign);
    const real   s = (real)re_sign, t = (real)im_sign;
    const vreal *p = x + harm_re(top, l + m, l + m) - (l + m), *q = x + harm_im(top, l + m, l + m) - (l + m);
    const vreal *u = x + harm_re(top, l - m, l - m) - (l - m), *v = x + harm_im(top, l - m, l - m) - (l - m);
    if (m == 0)
    {
        for (int j = l; j <= top; j++)
        {
            c[j].rr = p[j];
            c[j].ir = l > 0 ? q[j] : (vreal){0};
        }
        return;
    }
    if (m == l)
    {
        for (int j = 2 * m; j <= top; j++)
        {
            c[j] = (folded){p[j] + s * u[j], -q[j], q[j], p[j] - s * u[j]};
        }
        return;
    }
    for (int j = l + m; j <= top; j++)
    {
        c[j] = (folded){p[j] + s * u[j], t * v[j] - q[j], t * v[j] + q[j], p[j] - s * u[j]};
    }
}

/* Spectra of the coefficients of one column, indexed by degree; b is its imaginary part. */
typedef struct
{
    const vreal *a_re, *a_im, *b_re, *b_im;
} column;

typedef struct
{
    vreal *a_re, *a_im, *b_re, *b_im;
} out_column;

/* What is known of a pair of columns when the code for it is compiled. */
typedef struct
{
    int in_b, out_b; /* whether they have imaginary parts: orders above 0 */
    int swapped;     /* factors are of columns l and m (fold) */
} pair_kind;

/*
 * out_k += sum_{n=m..p} c_(n+k) in_n for `rows` k, one or two. With two, c_(n+k+1) serves k+1 now and k at the next n,
 * so that there are two multiplications for each load.
 */
INLINE void hankel_rows(int p, int m, int k, int rows, pair_kind kind, const folded* c, column in, out_column out)
{
    vreal s[2][4];
#pragma GCC unroll 2
    for (int i = 0; i < rows; i++)
    {
        s[i][0] = out.a_re[k + i];
        s[i][1] = out.a_im[k + i];
        if (kind.out_b)
        {
            s[i][2] = out.b_re[k + i];
            s[i][3] = out.b_im[k + i];
        }
    }
    folded c0 = c[k + m];
    for (int n = m; n <= p; n++)
    {
        const folded c1 = c[n + k + 1];
        const vreal  ar = in.a_re[n], ai = in.a_im[n];
#pragma GCC unroll 2
        for (int i = 0; i < rows; i++)
        {
            const folded f = i == 0 ? c0 : c1;
            s[i][0] += f.rr * ar;
            s[i][1] += f.rr * ai;
            if (kind.out_b)
            {
                s[i][2] += (kind.swapped ? -f.ri : f.ir) * ar;
                s[i][3] += (kind.swapped ? -f.ri : f.ir) * ai;
            }
            if (kind.in_b)
            {
                const vreal br = in.b_re[n], bi = in.b_im[n];
                s[i][0] += (kind.swapped ? -f.ir : f.ri) * br;
                s[i][1] += (kind.swapped ? -f.ir : f.ri) * bi;
                if (kind.out_b)
                {
                    s[i][2] += f.ii * br;
                    s[i][3] += f.ii * bi;
                }
            }
        }
        c0 = c1;
    }
#pragma GCC unroll 2
    for (int i = 0; i < rows; i++)
    {
        out.a_re[k + i] = s[i][0];
        out.a_im[k + i] = s[i][1];
        if (kind.out_b)
        {
            out.b_re[k + i] = s[i][2];
            out.b_im[k + i] = s[i][3];
        }
    }
}

INLINE void hankel(int p, int m, int l, pair_kind kind, const folded* c, column in, out_column out)
{
    int k = l;
    for (; k < p; k += 2)
    {
        hankel_rows(p, m, k, 2, kind, c, in, out);
    }
    if (k == p)
    {
        hankel_rows(p, m, k, 1, kind, c, in, out);
    }
}

/* out_k^l = sum_{n,m} in_n^m X_(n+k)^(m+l) for VLEN frequencies: real operators on complex coefficients. c: room for
 * 2p + 2. */
static void
product(int p, const vreal* x, const vreal* in_re, const vreal* in_im, vreal* out_re, vreal* out_im, folded* c)
{
    const int  top = 2 * p;
    column     in[GMXFMM_MAX_ORDER + 1];
    out_column out[GMXFMM_MAX_ORDER + 1];
    memset(c, 0, (size_t)(top + 2) * sizeof(*c)); /* hankel_rows reads one past 2p */
    for (int i = 0; i < harm_size(p) + VLEN; i++)
    {
        out_re[i] = (vreal){0};
        out_im[i] = (vreal){0};
    }
    for (int m = 0; m <= p; m++)
    {
        const int a = harm_re(p, m, m) - m, b = harm_im(p, m, m) - m;
        in[m]  = (column){in_re + a, in_im + a, in_re + b, in_im + b};
        out[m] = (out_column){out_re + a, out_im + a, out_re + b, out_im + b};
    }
    for (int l = 0; l <= p; l++)
    {
        fold(top, 0, l, x, c);
        if (l == 0)
        {
            hankel(p, 0, 0, (pair_kind){0, 0, 0}, c, in[0], out[0]);
            continue;
        }
        hankel(p, 0, l, (pair_kind){0, 1, 0}, c, in[0], out[l]);
        for (int j = l; j <= top; j++)
        {
            c[j].rr *= 2;
            c[j].ir *= 2;
        }
        hankel(p, l, 0, (pair_kind){1, 0, 1}, c, in[l], out[0]);
        for (int m = 1; m < l; m++)
        {
            fold(top, m, l, x, c);
            hankel(p, m, l, (pair_kind){1, 1, 0}, c, in[m], out[l]);
            hankel(p, l, m, (pair_kind){1, 1, 1}, c, in[l], out[m]);
        }
        fold(top, l, l, x, c);
        hankel(p, l, l, (pair_kind){1, 1, 0}, c, in[l], out[l]);
    }
}

void fmm_conv_product(const gmxfmm_plan* plan, const convolution* conv)
{
    const size_t size = (size_t)harm_size(2 * conv->order), room = fmm_conv_coef(conv->order);
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (int chunk = 0; chunk < conv->num_chunks; chunk++)
    {
        vreal* const in_re  = fmm_thread_scratch(plan);
        vreal* const in_im  = in_re + room;
        vreal* const out_re = in_im + room;
        vreal* const out_im = out_re + room;
        fmm_conv_load(conv, chunk, in_re, in_im);
        product(conv->order, (const vreal*)(conv->s + (size_t)chunk * size * VLEN), in_re, in_im, out_re, out_im,
                (folded*)(out_im + room));
        store_chunk(conv, chunk, out_re, out_im);
    }
}

void fmm_conv_forward(gmxfmm_plan* plan, convolution* conv)
{
    const int* used = conv->cells->inner;
    if (plan->cpu->shares.ranks != NULL)
    {
        const fmm_range units = fmm_range_of(plan->cpu->shares.units, plan->cpu->shares.rank);
        fmm_conv_multipoles_to_units(plan);
        fmm_fft_units(&conv->fft, plan->num_threads, 0, used, units.begin, units.end, conv->field, conv->spectrum);
        fmm_conv_to_columns(plan);
    }
    else
    {
        fmm_fft_planes(&conv->fft, plan->num_threads, 0, used, conv->field, conv->spectrum);
    }
    fmm_fft_columns(&conv->fft, plan->num_threads, 0, &conv->columns);
}

void fmm_conv_backward(gmxfmm_plan* plan, convolution* conv)
{
    const int* used = conv->cells->inner;
    fmm_fft_columns(&conv->fft, plan->num_threads, 1, &conv->columns);
    if (plan->cpu->shares.ranks != NULL)
    {
        const fmm_range units = fmm_range_of(plan->cpu->shares.units, plan->cpu->shares.rank);
        fmm_conv_to_planes(plan);
        fmm_fft_units(&conv->fft, plan->num_threads, 1, used, units.begin, units.end, conv->field, conv->spectrum);
        fmm_conv_locals_to_cells(plan);
        return;
    }
    fmm_fft_planes(&conv->fft, plan->num_threads, 1, used, conv->field, conv->spectrum);
}

void fmm_m2l_fft(gmxfmm_plan* plan, convolution* conv)
{
    fmm_conv_forward(plan, conv);
    fmm_conv_product(plan, conv);
    fmm_conv_backward(plan, conv);
}
