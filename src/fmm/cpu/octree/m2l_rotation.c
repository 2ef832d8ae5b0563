/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* M2L by rotations, O(p^3) (rotation.h); one lane is one source of a target, with a direction of its own. */
#include "fmm/cpu/octree/m2l_job.h"

#include "fmm/math/harmonics.h"
#include "fmm/cpu/simd/rotations.h"

/* VLEN translations on their way: angles, factors n!/r^n, columns of the expansions with R along z, and where column m
 * of a degree n begins there, less n (harmonics.h, of the order of the translation). */
typedef struct
{
    angle       a, theta;
    vreal       factor[c_maxOrder + 1];
    int         re[c_maxOrder + 1], im[c_maxOrder + 1];
    const real *first, *second, *local; /* flips of degree 0 */
    vreal *     before, *after;         /* columns */
} frame;

/* Degree n of the multipoles: rotated, and times n!/r^n to its columns. `at`: offset of its flips. */
INLINE void forward(int n, int unrolled, const frame* f, int at, const vreal* in)
{
    vreal t[c_maxDegree], u[c_maxDegree];
    rotate(n, &f->a, in, t);
    flip(n, unrolled, f->first + at, t, u);
    rotate(n, &f->theta, u, u);
    flip(n, unrolled, f->second + at, u, t);
#pragma GCC unroll 16
    for (int m = 0; m <= n; m++)
    {
        f->before[f->re[m] + n] = f->factor[n] * t[rot_re(n, m) - n * n];
        if (m > 0)
        {
            f->before[f->im[m] + n] = f->factor[n] * t[rot_im(n, m) - n * n];
        }
    }
}

/* Degree n of the locals: from its columns, rotated back, and times n!/r^{n+1} to out. */
INLINE void backward(int n, int unrolled, const frame* f, int at, vreal scale, vreal* out)
{
    vreal t[c_maxDegree], u[c_maxDegree];
#pragma GCC unroll 16
    for (int m = 0; m <= n; m++)
    {
        t[rot_re(n, m) - n * n] = f->after[f->re[m] + n];
        if (m > 0)
        {
            t[rot_im(n, m) - n * n] = f->after[f->im[m] + n];
        }
    }
    flip(n, unrolled, f->local + at, t, u);
    rotate(n, &f->theta, u, u);
    flip(n, unrolled, f->local + at, u, t);
    out[0] += scale * t[0];
#pragma GCC unroll 16
    for (int m = 1; m <= n; m++)
    {
        const int   re = rot_re(n, m) - n * n, im = rot_im(n, m) - n * n;
        const vreal x = scale * t[re], y = scale * t[im], c = f->a.cos[m & 1][m / 2], s = f->a.sin[m & 1][m / 2];
        out[re] += x * c - y * s;
        out[im] += x * s + y * c;
    }
}

/* The same for given degrees, unrolled; higher degrees spend their time in long products anyway. */
#define DEGREES(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
enum
{
    c_unrolled = 12
};

/* Not inlined: both have much on the stack. */
static __attribute__((noinline)) void long_forward(int n, const frame* f, int at, const vreal* in)
{
    forward(n, 0, f, at, in);
}

static __attribute__((noinline)) void long_backward(int n, const frame* f, int at, vreal scale, vreal* out)
{
    backward(n, 0, f, at, scale, out);
}

typedef void forward_function(const frame* f, int at, const vreal* in);
typedef void backward_function(const frame* f, int at, vreal scale, vreal* out);
typedef void column_function(const real* g, int stride, const vreal* in, vreal* out);
#define DEFINE(n)                                                                                                      \
    static void forward_##n(const frame* f, int at, const vreal* in)                                                   \
    {                                                                                                                  \
        forward(n, 1, f, at, in);                                                                                      \
    }                                                                                                                  \
    static void backward_##n(const frame* f, int at, vreal scale, vreal* out)                                          \
    {                                                                                                                  \
        backward(n, 1, f, at, scale, out);                                                                             \
    }                                                                                                                  \
    static void column_##n(const real* g, int stride, const vreal* in, vreal* out)                                     \
    {                                                                                                                  \
        product(n + 1, n + 1, g, stride, in, out);                                                                     \
    }
DEGREES(DEFINE)
#define FORWARD(n) forward_##n,
#define BACKWARD(n) backward_##n,
#define COLUMN(n) column_##n,
static forward_function* const  c_forward[]  = {DEGREES(FORWARD)};
static backward_function* const c_backward[] = {DEGREES(BACKWARD)};
static column_function* const   c_column[]   = {DEGREES(COLUMN)};

/* Translation along z of columns of M' n!/r^n, for `order`, to L' r^{k+1}/k!. */
static void translate_columns(int order, const real* binomial, int stride, const frame* f)
{
    for (int m = 0; m <= order; m++)
    {
        const int   last = order - m;
        const real* g    = binomial + m * stride + m;
        for (int im = 0; im <= (m > 0); im++)
        {
            const int at = (im ? f->im[m] : f->re[m]) + m;
            if (last <= c_unrolled)
            {
                c_column[last](g, stride, f->before + at, f->after + at);
            }
            else
            {
                long_product(last + 1, last + 1, g, stride, f->before + at, f->after + at);
            }
        }
    }
}

/* e^{ia} = e^{i phi}/i, e^{i theta} and n!/r^n, lane by lane; returns 1/r. */
static vreal fill_frame(const struct fmm_operators* ops, const int* vector, int order, frame* f)
{
    _Alignas(FMM_ALIGN) real d[5][VLEN];
    for (int i = 0; i < VLEN; i++)
    {
        const fmm_direction* direction = &ops->direction[vector[i]];
        d[0][i]                        = direction->sin_phi;
        d[1][i]                        = -direction->cos_phi;
        d[2][i]                        = direction->cos_theta;
        d[3][i]                        = direction->sin_theta;
        d[4][i]                        = direction->inverse;
    }
    const vreal inverse = *(const vreal*)d[4];
    fill_angle(order, *(const vreal*)d[0], *(const vreal*)d[1], &f->a);
    fill_angle(order, *(const vreal*)d[2], *(const vreal*)d[3], &f->theta);
    f->factor[0] = inverse - inverse + 1;
    for (int n = 0; n <= order; n++)
    {
        if (n > 0)
        {
            f->factor[n] = f->factor[n - 1] * inverse * (real)n;
        }
        f->re[n] = harm_re(order, n, n) - n;
        f->im[n] = harm_im(order, n, n) - n;
    }
    f->first  = ops->flips;
    f->second = f->first + ops->flip_size;
    f->local  = f->second + ops->flip_size;
    return inverse;
}

static void translate(const fmm_m2l_job* job, const fmm_scratch* scratch, const int* vector, int order, vreal* out)
{
    const struct fmm_operators* ops  = job->ops;
    const int                   last = order + job->strain; /* degree of out */
    frame                       f;
    const vreal                 inverse = fill_frame(ops, vector, last, &f);
    f.before                            = scratch->work;
    f.after                             = f.before + ops->layout[1].row;
    for (int n = 0, at = 0; n <= order; at += rot_flip_size(n), n++)
    {
        n <= c_unrolled ? c_forward[n](&f, at, scratch->in + n * n) : long_forward(n, &f, at, scratch->in + n * n);
    }
    for (int m = 0; m <= last && last > order; m++)
    {
        f.before[f.re[m] + last] = (vreal){0};
        if (m > 0)
        {
            f.before[f.im[m] + last] = (vreal){0};
        }
    }
    translate_columns(last, ops->binomial, ops->order + 2, &f);
    for (int n = 0, at = 0; n <= last; at += rot_flip_size(n), n++)
    {
        const vreal scale = f.factor[n] * inverse;
        n <= c_unrolled ? c_backward[n](&f, at, scale, out + n * n) : long_backward(n, &f, at, scale, out + n * n);
    }
}

void fmm_m2l_rotation(const fmm_m2l_job* job, int first, int lanes, const fmm_scratch* scratch)
{
    fmm_m2l_by_target(job, first, lanes, scratch, translate);
}

void fmm_rotation_tables(struct fmm_operators* ops, double* room)
{
    const size_t size  = (size_t)(ops->order + 2) * (size_t)(ops->order + 3);
    double*      below = room;
    double *     b = below + size, *element = b + size, binomial[GMXFMM_MAX_ORDER + 2];
    real*        out = ops->flips;
    __builtin_memset(below, 0, 2 * size * sizeof(double));
    below[0] = b[0] = 1;
    for (int n = 0; n <= ops->order + 1; n++)
    {
        const int num = rot_flip_size(n);
        if (n > 0)
        {
            rot_next_flip(n, below, b);
        }
        for (int kind = 0; kind < 3; kind++)
        {
            rot_flip_elements(n, b, (rot_flip_kind)kind, element);
            for (int i = 0; i < num; i++)
            {
                out[kind * ops->flip_size + i] = (real)element[i];
            }
        }
        out += num;
        __builtin_memcpy(below, b, (size_t)((n + 1) * (n + 1)) * sizeof(double));
    }
    for (int k = 0; k <= ops->order + 1; k++)
    {
        rot_binomials(k, ops->order + 1, binomial);
        for (int n = 0; n <= ops->order + 1; n++)
        {
            ops->binomial[k * (ops->order + 2) + n] = (real)binomial[n];
        }
    }
}
