/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The transforms of fft.h: stages of short transforms along one direction, and the order of the three directions. */
#include "fmm/cpu/convolution/fft.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/cpu/simd/lanes.h"

typedef fmm_complex cvec;
typedef const real (*root_table)[2];

enum
{
    c_mostRadix = 10 /* that has code of its own */
};

/* (c + i s) v */
INLINE cvec times(cvec v, real c, real s)
{
    return (cvec){c * v.re - s * v.im, c * v.im + s * v.re};
}

/*
 * Short transforms, v_k = sum_j v_j w^(jk), w = root[step] a primitive root of unity of their length. Those of odd
 * length by definition, with what v_k and v_(r-k) have in common; those of even length from two of half.
 */
INLINE void dft_odd(int r, root_table root, int step, cvec* v)
{
    cvec       sum[c_mostRadix / 2], difference[c_mostRadix / 2];
    const cvec first = v[0];
#pragma GCC unroll 8
    for (int j = 1; j <= r / 2; j++)
    {
        sum[j - 1]        = (cvec){v[j].re + v[r - j].re, v[j].im + v[r - j].im};
        difference[j - 1] = (cvec){v[j].re - v[r - j].re, v[j].im - v[r - j].im};
        v[0].re += sum[j - 1].re;
        v[0].im += sum[j - 1].im;
    }
#pragma GCC unroll 8
    for (int k = 1; k <= r / 2; k++)
    {
        cvec a = first, b = {{0}, {0}};
#pragma GCC unroll 8
        for (int j = 1; j <= r / 2; j++)
        {
            const real *w = root[j * k % r * step], c = w[0], s = w[1];
            a.re += c * sum[j - 1].re;
            a.im += c * sum[j - 1].im;
            b.re -= s * difference[j - 1].im;
            b.im += s * difference[j - 1].re;
        }
        v[k]     = (cvec){a.re + b.re, a.im + b.im};
        v[r - k] = (cvec){a.re - b.re, a.im - b.im};
    }
}

INLINE void dft_1(root_table root, int step, cvec* v)
{
    (void)root;
    (void)step;
    (void)v;
}

#define ODD(r)                                                                                                         \
    INLINE void dft_##r(root_table root, int step, cvec* v)                                                            \
    {                                                                                                                  \
        dft_odd(r, root, step, v);                                                                                     \
    }

#define EVEN(r, half)                                                                                                  \
    INLINE void dft_##r(root_table root, int step, cvec* v)                                                            \
    {                                                                                                                  \
        cvec even[half], odd[half];                                                                                    \
        _Pragma("GCC unroll 8") for (int k = 0; k < half; k++)                                                         \
        {                                                                                                              \
            even[k] = v[2 * k];                                                                                        \
            odd[k]  = v[2 * k + 1];                                                                                    \
        }                                                                                                              \
        dft_##half(root, 2 * step, even);                                                                              \
        dft_##half(root, 2 * step, odd);                                                                               \
        _Pragma("GCC unroll 8") for (int k = 0; k < half; k++)                                                         \
        {                                                                                                              \
            const real* w = root[k * step];                                                                            \
            const cvec  t = k == 0       ? odd[k]                                                                      \
                            : 4 * k == r ? (cvec){-w[1] * odd[k].im, w[1] * odd[k].re}                                 \
                                         : times(odd[k], w[0], w[1]);                                                  \
            v[k]          = (cvec){even[k].re + t.re, even[k].im + t.im};                                              \
            v[k + half]   = (cvec){even[k].re - t.re, even[k].im - t.im};                                              \
        }                                                                                                              \
    }

EVEN(2, 1)
ODD(3)
EVEN(4, 2)
ODD(5)
EVEN(6, 3)
ODD(7)
EVEN(8, 4)
ODD(9)
EVEN(10, 5)

/* What one stage of a line is about: m groups of s transforms of length r, m r s = n. Between elements of the input and
 * of the output there are other lines' elements. */
typedef struct
{
    int         n, r, m, s;
    root_table  root;
    const cvec* in;
    cvec*       out;
    size_t      in_stride, out_stride;
} stage;

INLINE void stage_group(const stage* g, int r, void (*dft)(root_table, int, cvec*), int p, int twiddled)
{
    const int m = g->m, s = g->s;
    for (int q = 0; q < s; q++)
    {
        cvec v[c_mostRadix];
#pragma GCC unroll 16
        for (int i = 0; i < r; i++)
        {
            v[i] = g->in[(size_t)(q + s * (p + m * i)) * g->in_stride];
        }
        dft(g->root, g->n / r, v);
#pragma GCC unroll 16
        for (int i = 0; i < r; i++)
        {
            const real* w                                         = g->root[p * i * s];
            g->out[(size_t)(q + s * (r * p + i)) * g->out_stride] = twiddled && i > 0 ? times(v[i], w[0], w[1]) : v[i];
        }
    }
}

#define STAGE(r)                                                                                                       \
    static void stage_##r(const stage* g)                                                                              \
    {                                                                                                                  \
        stage_group(g, r, dft_##r, 0, 0);                                                                              \
        for (int p = 1; p < g->m; p++)                                                                                 \
        {                                                                                                              \
            stage_group(g, r, dft_##r, p, 1);                                                                          \
        }                                                                                                              \
    }

STAGE(1)
STAGE(2)
STAGE(3)
STAGE(4)
STAGE(5)
STAGE(6)
STAGE(7)
STAGE(8)
STAGE(9)
STAGE(10)

/* A stage of any odd radix, by definition. v: room for r. */
static void stage_any(const stage* g, cvec* v)
{
    const int r = g->r, half = r / 2, step = g->n / r;
    for (int pq = 0; pq < g->m * g->s; pq++)
    {
        const int    p = pq / g->s, q = pq % g->s;
        const cvec*  in      = g->in + (size_t)(q + g->s * p) * g->in_stride;
        cvec*        out     = g->out + (size_t)(q + g->s * r * p) * g->out_stride;
        const size_t in_step = (size_t)(g->s * g->m) * g->in_stride, out_step = (size_t)g->s * g->out_stride;
        const cvec   first = in[0];
        cvec         all = first, *sum = v, *difference = v + half;
        for (int j = 1; j <= half; j++)
        {
            const cvec a = in[(size_t)j * in_step], b = in[(size_t)(r - j) * in_step];
            sum[j - 1]        = (cvec){a.re + b.re, a.im + b.im};
            difference[j - 1] = (cvec){a.re - b.re, a.im - b.im};
            all.re += sum[j - 1].re;
            all.im += sum[j - 1].im;
        }
        out[0] = all;
        for (int k = 1; k <= half; k++)
        {
            cvec a = first, b = {{0}, {0}};
            for (int j = 1, jk = k; j <= half; j++, jk = jk + k < r ? jk + k : jk + k - r)
            {
                const real c = g->root[jk * step][0], s = g->root[jk * step][1];
                a.re += c * sum[j - 1].re;
                a.im += c * sum[j - 1].im;
                b.re -= s * difference[j - 1].im;
                b.im += s * difference[j - 1].re;
            }
            const cvec  up = {a.re + b.re, a.im + b.im}, down = {a.re - b.re, a.im - b.im};
            const real *w = g->root[p * k * g->s], *z = g->root[p * (r - k) * g->s];
            out[(size_t)k * out_step]       = times(up, w[0], w[1]);
            out[(size_t)(r - k) * out_step] = times(down, z[0], z[1]);
        }
    }
}

/* One line, in place or not. scratch: room for 3 n. */
static void transform_line(
    const fmm_fft_line* line, int back, const cvec* in, size_t in_stride, cvec* out, size_t out_stride, cvec* scratch)
{
    stage g = {line->n, 0, 0, 1, (root_table)line->roots[back], in, NULL, in_stride, 0};
    for (int t = 0; t < line->num_stages; t++)
    {
        const int last = t == line->num_stages - 1;
        g.r            = line->radix[t];
        g.m            = line->n / (g.r * g.s);
        g.out          = last ? out : scratch + (t & 1) * line->n;
        g.out_stride   = last ? out_stride : 1;
        switch (g.r)
        {
        case 1:
            stage_1(&g);
            break;
        case 2:
            stage_2(&g);
            break;
        case 3:
            stage_3(&g);
            break;
        case 4:
            stage_4(&g);
            break;
        case 5:
            stage_5(&g);
            break;
        case 6:
            stage_6(&g);
            break;
        case 7:
            stage_7(&g);
            break;
        case 8:
            stage_8(&g);
            break;
        case 9:
            stage_9(&g);
            break;
        case 10:
            stage_10(&g);
            break;
        default:
            stage_any(&g, scratch + 2 * line->n);
        }
        g.s *= g.r;
        g.in        = g.out;
        g.in_stride = g.out_stride;
    }
}

/* Few stages, large radices first. */
static void choose_radices(fmm_fft_line* line)
{
    int rest         = line->n;
    line->num_stages = 0;
    while (rest > c_mostRadix)
    {
        int radix = 0;
        for (int r = c_mostRadix; r > 1 && radix == 0; r--)
        {
            radix = rest % r == 0 ? r : 0;
        }
        for (int r = c_mostRadix + 1; radix == 0; r++)
        {
            radix = rest % r == 0 ? r : 0;
        }
        line->radix[line->num_stages++] = radix;
        rest /= radix;
    }
    if (rest > 1 || line->num_stages == 0)
    {
        line->radix[line->num_stages++] = rest;
    }
}

gmxfmm_status fmm_fft_create(gmxfmm_plan* plan, const int* n, int num_fields, fmm_fft* fft)
{
    const int nz = n[2] / 2 + 1, pairs = (n[1] + 1) / 2;
    int       longest = 0;
    *fft              = (fmm_fft){.num_points = n[0] * n[1] * n[2],
                                  .num_freq   = n[0] * n[1] * nz,
                                  .num_fields = num_fields,
                                  .num_groups = (num_fields + VLEN - 1) / VLEN};
    /* An odd number of vectors: fields a power of two apart would share a few cache sets. */
    fft->field_stride    = ((size_t)(fft->num_points + VLEN - 1) / VLEN | 1) * VLEN;
    fft->spectrum_stride = (size_t)(fft->num_freq + VLEN - 1) / VLEN * VLEN;
    for (int d = 0; d < 3; d++)
    {
        fmm_fft_line* line = &fft->direction[d];
        line->n            = n[d];
        longest            = n[d] > longest ? n[d] : longest;
        choose_radices(line);
        for (int back = 0; back < 2; back++)
        {
            line->roots[back] = fmm_alloc(plan, 2 * (size_t)n[d] * sizeof(real));
            for (int k = 0; k < n[d] && line->roots[back] != NULL; k++)
            {
                const double angle           = 2 * FMM_PI * k / n[d];
                line->roots[back][2 * k]     = (real)cos(angle);
                line->roots[back][2 * k + 1] = (real)(back ? sin(angle) : -sin(angle));
            }
            if (line->roots[back] == NULL)
            {
                return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory");
            }
        }
    }
    /* a plane of rows in pairs, and three lines */
    fft->thread_size = (size_t)(pairs * n[2]) + 3 * (size_t)longest;
    fft->scratch     = fmm_alloc(plan, (size_t)plan->most_threads * fft->thread_size * sizeof(cvec));
    return fft->scratch != NULL ? GMXFMM_OK : fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory");
}

void fmm_fft_destroy(fmm_fft* fft)
{
    for (int d = 0; d < 3; d++)
    {
        free(fft->direction[d].roots[0]);
        free(fft->direction[d].roots[1]);
    }
    free(fft->scratch);
}

/* Where a point of a plane is among rows in pairs, of which one is the real part and the other the imaginary one. */
typedef struct
{
    cvec* pair; /* of rows */
    int   n, odd, x;
} point_place;

/* That of the present point; goes on to the next. */
static inline vreal* next_point(point_place* at)
{
    vreal* point = at->odd ? &at->pair[at->x].im : &at->pair[at->x].re;
    if (++at->x == at->n)
    {
        at->pair += at->odd ? at->n : 0;
        at->odd = !at->odd;
        at->x   = 0;
    }
    return point;
}

/* Rows of the plane at x of a group's fields that are used, in pairs. */
static void load_plane(const fmm_fft* fft, int group, int rows, const real* field, cvec* pairs)
{
    const int   n2 = fft->direction[2].n, size = rows * n2;
    point_place at = {pairs, n2, 0, 0};
    const real* row[VLEN];
    for (int l = 0; l < VLEN; l++)
    {
        const int f = group * VLEN + l < fft->num_fields ? group * VLEN + l : fft->num_fields - 1;
        row[l]      = field + (size_t)f * fft->field_stride;
    }
    for (int first = 0; first < size; first += VLEN)
    {
        vreal v[VLEN];
        for (int l = 0; l < VLEN; l++)
        {
            v[l] = *(const vreal_unaligned*)(row[l] + first);
        }
        lanes_transpose(v);
        for (int i = 0; i < VLEN && first + i < size; i++)
        {
            *next_point(&at) = v[i];
        }
    }
    while (at.odd)
    {
        *next_point(&at) = (vreal){0};
    }
}

static void store_plane(const fmm_fft* fft, int group, int rows, cvec* pairs, real* field)
{
    const int   n2 = fft->direction[2].n, size = rows * n2, left = fft->num_fields - group * VLEN;
    point_place at = {pairs, n2, 0, 0};
    field += (size_t)(group * VLEN) * fft->field_stride;
    for (int first = 0; first < size; first += VLEN)
    {
        const vreal zero = {0};
        vreal       v[VLEN];
        for (int i = 0; i < VLEN; i++)
        {
            v[i] = first + i < size ? *next_point(&at) : zero;
        }
        lanes_transpose(v);
        for (int l = 0; l < VLEN && l < left; l++)
        {
            real* to = field + (size_t)l * fft->field_stride + first;
            if (first + VLEN <= size)
            {
                *(vreal_unaligned*)to = v[l];
                continue;
            }
            for (int i = 0; first + i < size; i++) /* the next plane may be another thread's */
            {
                to[i] = v[l][i];
            }
        }
    }
}

/* Spectra a and b of two real rows from that of a + ib. */
static void separate(int n, const cvec* both, cvec* a, cvec* b)
{
    const real half = (real)0.5;
    for (int k = 0; k <= n / 2; k++)
    {
        const cvec u = both[k], v = both[k > 0 ? n - k : 0];
        a[k] = (cvec){half * (u.re + v.re), half * (u.im - v.im)};
        if (b != NULL)
        {
            b[k] = (cvec){half * (u.im + v.im), half * (v.re - u.re)};
        }
    }
}

static void unite(int n, const cvec* a, const cvec* b, cvec* both)
{
    for (int k = 0; k <= n / 2; k++)
    {
        const cvec u = a[k], v = b != NULL ? b[k] : (cvec){{0}, {0}};
        if (k == 0 || 2 * k == n)
        {
            both[k] = (cvec){u.re, v.re};
            continue;
        }
        both[k]     = (cvec){u.re - v.im, u.im + v.re};
        both[n - k] = (cvec){u.re + v.im, v.re - u.im};
    }
}

/* The last two directions at one x. */
static void forward_plane(const fmm_fft* fft, int group, int rows, const real* field, cvec* spectrum, cvec* scratch)
{
    const fmm_fft_line *y = &fft->direction[1], *z = &fft->direction[2];
    const int           nz    = z->n / 2 + 1;
    cvec*               lines = scratch + (rows + 1) / 2 * z->n;
    load_plane(fft, group, rows, field, scratch);
    for (int row = 0; row < rows; row += 2)
    {
        cvec* pair = scratch + row / 2 * z->n;
        transform_line(z, 0, pair, 1, pair, 1, lines);
        separate(z->n, pair, spectrum + row * nz, row + 1 < rows ? spectrum + (row + 1) * nz : NULL);
    }
    memset(spectrum + rows * nz, 0, (size_t)((y->n - rows) * nz) * sizeof(*spectrum));
    for (int f = 0; f < nz; f++)
    {
        transform_line(y, 0, spectrum + f, (size_t)nz, spectrum + f, (size_t)nz, lines);
    }
}

static void backward_plane(const fmm_fft* fft, int group, int rows, cvec* spectrum, real* field, cvec* scratch)
{
    const fmm_fft_line *y = &fft->direction[1], *z = &fft->direction[2];
    const int           nz    = z->n / 2 + 1;
    cvec*               lines = scratch + (rows + 1) / 2 * z->n;
    for (int f = 0; f < nz; f++)
    {
        transform_line(y, 1, spectrum + f, (size_t)nz, spectrum + f, (size_t)nz, lines);
    }
    for (int row = 0; row < rows; row += 2)
    {
        cvec* pair = scratch + row / 2 * z->n;
        unite(z->n, spectrum + row * nz, row + 1 < rows ? spectrum + (row + 1) * nz : NULL, pair);
        transform_line(z, 1, pair, 1, pair, 1, lines);
    }
    store_plane(fft, group, rows, scratch, field);
}

/* A group's plane at x, whose spectra are at `plane`. */
static void transform_plane(
    const fmm_fft* fft, int back, const int* used, int group, int x, real* field, cvec* plane, cvec* scratch)
{
    const int   n1 = fft->direction[1].n, n2 = fft->direction[2].n, nz = n2 / 2 + 1;
    real* const at = field + (size_t)x * (size_t)(n1 * n2);
    if (back && x < used[0])
    {
        backward_plane(fft, group, used[1], plane, at, scratch);
    }
    else if (!back && x < used[0])
    {
        forward_plane(fft, group, used[1], at, plane, scratch);
    }
    else if (!back)
    {
        memset(plane, 0, (size_t)(n1 * nz) * sizeof(*plane));
    }
}

/* Complex vectors of a plane's spectra. */
static size_t plane_size(const fmm_fft* fft)
{
    return (size_t)(fft->direction[1].n * (fft->direction[2].n / 2 + 1));
}

static cvec* scratch_of_thread(const fmm_fft* fft)
{
    return fft->scratch + (size_t)omp_get_thread_num() * fft->thread_size;
}

void fmm_fft_planes(const fmm_fft* fft, int num_threads, int back, const int* used, real* field, fmm_complex* spectrum)
{
    const size_t size = plane_size(fft);
#pragma omp parallel for collapse(2) schedule(static) num_threads(num_threads)
    for (int group = 0; group < fft->num_groups; group++)
    {
        for (int x = 0; x < fft->direction[0].n; x++)
        {
            transform_plane(fft, back, used, group, x, field,
                            spectrum + (size_t)group * fft->spectrum_stride + (size_t)x * size, scratch_of_thread(fft));
        }
    }
}

void fmm_fft_units(const fmm_fft* fft,
                   int            num_threads,
                   int            back,
                   const int*     used,
                   int            begin,
                   int            end,
                   real*          field,
                   fmm_complex*   spectrum)
{
    const size_t size = plane_size(fft);
#pragma omp parallel for schedule(static) num_threads(num_threads)
    for (int unit = begin; unit < end; unit++)
    {
        transform_plane(fft, back, used, unit % fft->num_groups, unit / fft->num_groups, field,
                        spectrum + (size_t)(unit - begin) * size, scratch_of_thread(fft));
    }
}

void fmm_fft_columns(const fmm_fft* fft, int num_threads, int back, const fmm_columns* columns)
{
    const int nz = fft->direction[2].n / 2 + 1, blocks = (columns->num + nz - 1) / nz;
#pragma omp parallel for collapse(2) schedule(static) num_threads(num_threads)
    for (int group = 0; group < fft->num_groups; group++)
    {
        for (int block = 0; block < blocks; block++)
        {
            const int   end = (block + 1) * nz < columns->num ? (block + 1) * nz : columns->num;
            cvec* const at  = columns->at + (size_t)group * columns->group_stride;
            for (int c = block * nz; c < end; c++)
            {
                transform_line(&fft->direction[0], back, at + c, columns->x_stride, at + c, columns->x_stride,
                               scratch_of_thread(fft));
            }
        }
    }
}
