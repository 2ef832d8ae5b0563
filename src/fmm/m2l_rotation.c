/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* M2L by rotations, O(p^3) (rotation.h); one lane is one source of a target, with a direction of its own. */
#include "operators.h"

#include "harmonics.h"
#include "rotation.h"

enum
{
    c_maxColumn = GMXFMM_MAX_ORDER / 2 + 1,
    c_maxDegree = 2 * GMXFMM_MAX_ORDER + 1
};

#if defined(__GNUC__)
#    define INLINE static inline __attribute__((always_inline))
#else
#    define INLINE static inline
#endif

/* e^{ima} by parity of m. */
typedef struct
{
    vreal cos[2][c_maxColumn], sin[2][c_maxColumn];
} angle;

static void fill_angle(int p, vreal c, vreal s, angle* a)
{
    vreal re = {0}, im = {0};
    re += 1;
    for (int m = 0; m <= p; m++)
    {
        a->cos[m & 1][m / 2] = re;
        a->sin[m & 1][m / 2] = im;
        const vreal t        = re * c - im * s;
        im                   = re * s + im * c;
        re                   = t;
    }
}

/* out[i] = sum_j g[i * stride + j] in[j]; in and out apart. */
INLINE void product(int rows, int columns, const real* g, int stride, const vreal* in, vreal* out)
{
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
    {
        vreal sum = g[i * stride] * in[0];
#pragma GCC unroll 16
        for (int j = 1; j < columns; j++)
        {
            sum += g[i * stride + j] * in[j];
        }
        out[i] = sum;
    }
}

INLINE void flip(int n, const real* g, const vreal* in, vreal* out)
{
#pragma GCC unroll 4
    for (int block = 0; block < 4; block++)
    {
        const int size = rot_block_size(n, block);
        if (size > 0)
        {
            product(size, size, g, size, in + rot_block_in(n, block), out + rot_block_out(n, block));
        }
        g += size * size;
    }
}

/* Multiplies degree n by e^{ima}; in may be out. */
INLINE void rotate(int n, const angle* a, const vreal* in, vreal* out)
{
    out[0] = in[0];
#pragma GCC unroll 2
    for (int odd = 0; odd < 2; odd++)
    {
        const int from = 1 - odd, count = odd ? rot_odd(n) : rot_even(n);
        const int at_re = odd ? rot_even(n) : 0, at_im = n + 1 + (odd ? 0 : rot_odd(n) - 1);
#pragma GCC unroll 16
        for (int i = from; i < count; i++)
        {
            const vreal re = in[at_re + i], im = in[at_im + i], c = a->cos[odd][i], s = a->sin[odd][i];
            out[at_re + i] = re * c - im * s;
            out[at_im + i] = re * s + im * c;
        }
    }
}

INLINE void turn(int n, const angle* a, const real* g, const vreal* in, vreal* out)
{
    vreal t[c_maxDegree];
    rotate(n, a, in, t);
    flip(n, g, t, out);
}

/* The same for given degrees, unrolled, and for any. Higher degrees spend their time in products anyway. */
#define DEGREES(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
enum
{
    c_unrolled = 12
};

typedef void flip_function(const real* g, const vreal* in, vreal* out);
typedef void turn_function(const angle* a, const real* g, const vreal* in, vreal* out);
#define DEFINE(n)                                                                                                      \
    static void flip_##n(const real* g, const vreal* in, vreal* out)                                                   \
    {                                                                                                                  \
        flip(n, g, in, out);                                                                                           \
    }                                                                                                                  \
    static void turn_##n(const angle* a, const real* g, const vreal* in, vreal* out)                                   \
    {                                                                                                                  \
        turn(n, a, g, in, out);                                                                                        \
    }
DEGREES(DEFINE)
#define FLIP(n) flip_##n,
#define TURN(n) turn_##n,
static flip_function* const c_flip[] = {DEGREES(FLIP)};
static turn_function* const c_turn[] = {DEGREES(TURN)};

static void flip_degree(int n, const real* g, const vreal* in, vreal* out)
{
    if (n <= c_unrolled)
    {
        c_flip[n](g, in, out);
    }
    else
    {
        flip(n, g, in, out);
    }
}

static void turn_degree(int n, const angle* a, const real* g, const vreal* in, vreal* out)
{
    if (n <= c_unrolled)
    {
        c_turn[n](a, g, in, out);
    }
    else
    {
        turn(n, a, g, in, out);
    }
}

/* Products of a column with binomials, unrolled to the same size. */
typedef void column_function(const real* g, int stride, const vreal* in, vreal* out);
#define DEFINE_COLUMN(n)                                                                                               \
    static void column_##n(const real* g, int stride, const vreal* in, vreal* out)                                     \
    {                                                                                                                  \
        product(n + 1, n + 1, g, stride, in, out);                                                                     \
    }
DEGREES(DEFINE_COLUMN)
#define COLUMN(n) column_##n,
static column_function* const c_column[] = {DEGREES(COLUMN)};

/* Translation along z of columns of M' n!/r^n, in the order of harmonics.h for `order`, to L' r^{k+1}/k!. */
static void translate_columns(int order, const real* binomial, int stride, const vreal* in, vreal* out)
{
    for (int m = 0; m <= order; m++)
    {
        const int   last = order - m;
        const real* g    = binomial + m * stride + m;
        for (int im = 0; im <= (m > 0); im++)
        {
            const int at = im ? harm_im(order, m, m) : harm_re(order, m, m);
            if (last <= c_unrolled)
            {
                c_column[last](g, stride, in + at, out + at);
            }
            else
            {
                product(last + 1, last + 1, g, stride, in + at, out + at);
            }
        }
    }
}

/* Degree n from a row to columns, or from columns to a row, times w. */
static void row_to_columns(int order, int n, vreal w, const vreal* row, vreal* columns)
{
    for (int m = 0; m <= n; m++)
    {
        columns[harm_re(order, n, m)] = w * row[rot_re(n, m) - n * n];
        if (m > 0)
        {
            columns[harm_im(order, n, m)] = w * row[rot_im(n, m) - n * n];
        }
    }
}

static void columns_to_row(int order, int n, vreal w, const vreal* columns, vreal* row)
{
    for (int m = 0; m <= n; m++)
    {
        row[rot_re(n, m) - n * n] = w * columns[harm_re(order, n, m)];
        if (m > 0)
        {
            row[rot_im(n, m) - n * n] = w * columns[harm_im(order, n, m)];
        }
    }
}

/* e^{ia} = e^{i phi}/i, e^{i theta}, and 1/r, lane by lane. */
static void
fill_angles(const struct FN(fmm_operators) * ops, const int* vector, int order, angle* a, angle* theta, vreal* inverse)
{
    vreal c, s, ct, st;
    for (int i = 0; i < VLEN; i++)
    {
        const FN(fmm_direction)* d = &ops->direction[vector[i]];
        c[i]                       = d->sin_phi;
        s[i]                       = -d->cos_phi;
        ct[i]                      = d->cos_theta;
        st[i]                      = d->sin_theta;
        (*inverse)[i]              = d->inverse;
    }
    fill_angle(order, c, s, a);
    fill_angle(order, ct, st, theta);
}

static void
translate(const FN(fmm_m2l_job) * job, const FN(fmm_scratch) * scratch, const int* vector, int order, vreal* out)
{
    const struct FN(fmm_operators)* ops = job->ops;
    vreal *     columns = scratch->work, *moved = columns + ops->row;
    vreal       t[c_maxDegree], u[c_maxDegree], inverse, w = {0};
    angle       a, theta;
    const real *first = ops->flips, *second = first + ops->flip_size, *local = second + ops->flip_size;
    fill_angles(ops, vector, order, &a, &theta, &inverse);
    w += 1;
    for (int n = 0, at = 0; n <= order; at += rot_flip_size(n), n++)
    {
        turn_degree(n, &a, first + at, scratch->in + n * n, t);
        turn_degree(n, &theta, second + at, t, u);
        row_to_columns(order, n, w, u, columns);
        w *= inverse * (real)(n + 1);
    }
    translate_columns(order, ops->binomial, ops->order + 1, columns, moved);
    w = inverse;
    for (int k = 0, at = 0; k <= order; at += rot_flip_size(k), k++)
    {
        columns_to_row(order, k, w, moved, t);
        flip_degree(k, local + at, t, u);
        turn_degree(k, &theta, local + at, u, t);
        rotate(k, &a, t, t);
        for (int i = 0; i < 2 * k + 1; i++)
        {
            out[k * k + i] += t[i];
        }
        w *= inverse * (real)(k + 1);
    }
}

void FN(fmm_m2l_rotation)(const FN(fmm_m2l_job) * job, int first, int lanes, const FN(fmm_scratch) * scratch)
{
    FN(fmm_m2l_by_target)(job, first, lanes, scratch, translate);
}

void FN(fmm_rotation_tables)(struct FN(fmm_operators) * ops)
{
    double below[(GMXFMM_MAX_ORDER + 1) * (GMXFMM_MAX_ORDER + 1)] = {1};
    double b[(GMXFMM_MAX_ORDER + 1) * (GMXFMM_MAX_ORDER + 1)]     = {1};
    real*  out                                                    = ops->flips;
    for (int n = 0; n <= ops->order; n++)
    {
        if (n > 0)
        {
            rot_next_flip(n, below, b);
        }
        for (int block = 0; block < 4; block++)
        {
            const int size = rot_block_size(n, block);
            for (int i = 0; i < size * size; i++, out++)
            {
                for (int kind = 0; kind < 3; kind++)
                {
                    out[kind * ops->flip_size] =
                        (real)rot_flip_element(n, b, (rot_flip_kind)kind, block, i / size, i % size);
                }
            }
        }
        __builtin_memcpy(below, b, (size_t)((n + 1) * (n + 1)) * sizeof(double));
    }
    for (int k = 0; k <= ops->order; k++)
    {
        double binomial = 1;
        for (int n = 0; n <= ops->order; n++)
        {
            ops->binomial[k * (ops->order + 1) + n] = (real)binomial;
            binomial                                = binomial * (n + 1 + k) / (n + 1);
        }
    }
}
