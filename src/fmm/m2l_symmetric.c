/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * M2L by presorted operators, O(p^4) (Kohnke et al. 2020): one lane is one target, and translations along mirror images
 * of one displacement share its operator. With A the operator of one of them and S_i their mirror images, diagonal
 * matrices of signs,
 *   sum_i S_i A S_i M_i = sum_f A_ef W_{c(e) c(f)}[f],   W_c = sum_i c(i) M_i,
 * c(e) being the character of coefficient e in the mirror group (fold.h): up to eight translations are one product.
 * R_a L_i, for strain, has the character of the axis a beside that. Elements of A that have the wrong character for a
 * component 0 of R are zero and left out.
 */
#include <string.h>

#include "operators.h"

#define FOLD_T real
#define FOLD_R real
#include "fold.h"
#include "lanes.h"

enum
{
    c_tile     = FMM_VBYTES == 64 ? 8 : 4, /* outputs in registers, twice */
    c_segments = 2 * (GMXFMM_MAX_ORDER + 1)
};

/* Axes as the bits of characters. */
static int axis_bit(int d)
{
    return 4 >> d;
}

/* The translations of a group: their operator, the axes along which they are mirrored, those along which R is 0. */
typedef struct
{
    int vector, mirrored, zero, order;
} operator_group;

/* A column of the input: it adds sum_i h[i + k] w(i + k)[i] to output k, w of even or odd i + k. */
typedef struct
{
    const real*  h;
    const vreal *even, *odd;
    int          count;
} segment;

static operator_group describe(const FN(fmm_m2l_job) * job, const fmm_operator_group* group, int images[8])
{
    const fmm_tree* tree     = job->plan->tree;
    const int(*table)[3]     = (const int(*)[3])(job->to_parent ? tree->parent_vector : tree->vector);
    const int*     reference = table[group->reference];
    operator_group g         = {0, 0, 0, 0};
    int            positive = 0, negative = 0;
    for (int i = 0; i < group->count; i++)
    {
        const int* k = table[job->list[group->first + i].vector];
        images[i]    = (k[0] < 0 ? 4 : 0) + (k[1] < 0 ? 2 : 0) + (k[2] < 0 ? 1 : 0);
        negative |= images[i];
        positive |= 7 ^ images[i];
    }
    g.mirrored = positive & negative;
    for (int d = 0; d < 3; d++)
    {
        g.zero |= reference[d] == 0 ? axis_bit(d) : 0;
    }
    const int v = job->first_vector + group->reference;
    g.vector    = job->ops->mirror[8 * v + (negative & ~positive)];
    g.order     = FN(fmm_truncation)(job, v);
    for (int i = 0; i < group->count; i++)
    {
        images[i] &= g.mirrored;
    }
    return g;
}

/* Multipoles of one image's sources, lane by lane, to w; returns 0 if there is none. */
static int load_image(const FN(fmm_m2l_job) * job, const fmm_translation* t, int first, int lanes, vreal* w)
{
    const struct FN(fmm_operators)* ops = job->ops;
    const real* row[VLEN];
    int         any = 0;
    for (int lane = 0; lane < VLEN; lane++)
    {
        const int source = lane < lanes ? FN(fmm_m2l_source)(job, first + lane, t) : job->empty;
        row[lane]        = ops->rows + (size_t)source * (size_t)ops->row;
        any |= source != job->empty;
    }
    if (any)
    {
        lanes_load_rows(row, ops->num_coef, w);
    }
    return any;
}

/* W_c for all characters of the mirrored axes, w[c * row + coefficient]. Returns 0 if all sources are empty. */
static int signed_sums(const FN(fmm_m2l_job) * job,
                       const fmm_operator_group* group,
                       const operator_group*     g,
                       const int*                images,
                       int                       first,
                       int                       lanes,
                       vreal*                    w)
{
    const size_t row    = (size_t)job->ops->row;
    int          loaded = 0;
    for (int i = 0; i < group->count; i++)
    {
        if (load_image(job, &job->list[group->first + i], first, lanes, w + (size_t)images[i] * row))
        {
            loaded |= 1 << images[i];
        }
    }
    if (loaded == 0)
    {
        return 0;
    }
    for (int c = 0; c < 8; c++)
    {
        if ((c & ~g->mirrored) == 0 && !(loaded >> c & 1))
        {
            memset(w + (size_t)c * row, 0, row * sizeof(vreal));
        }
    }
    for (int axis = 1; axis < 8; axis *= 2)
    {
        for (int c = 0; c < 8 && (g->mirrored & axis); c++)
        {
            if ((c & ~g->mirrored) != 0 || (c & axis))
            {
                continue;
            }
            vreal *a = w + (size_t)c * row, *b = a + (size_t)axis * row;
            for (size_t f = 0; f < row; f++)
            {
                const vreal sum = a[f] + b[f];
                b[f]            = a[f] - b[f];
                a[f]            = sum;
            }
        }
    }
    return 1;
}

/* `size` outputs of one column of the output from all segments: out += scale * sums. half: elements with odd i + k are
 * zero. Two sums for each output, so that additions do not wait for each other. */
static inline __attribute__((always_inline)) void
tile(int size, int half, const segment* segments, int num, int at, real scale, vreal* out)
{
    vreal sum[2][c_tile];
#pragma GCC unroll 8
    for (int k = 0; k < size; k++)
    {
        sum[0][k] = sum[1][k] = (vreal){0};
    }
    for (int s = 0; s < num; s++)
    {
        const real*  h    = segments[s].h + at;
        const vreal* even = at & 1 ? segments[s].odd : segments[s].even;
        const vreal* odd  = at & 1 ? segments[s].even : segments[s].odd;
        int          i    = 0;
        for (; i + 1 < segments[s].count; i += 2)
        {
#pragma GCC unroll 8
            for (int k = 0; k < size; k++)
            {
                if (!half || !(k & 1))
                {
                    sum[0][k] += h[i + k] * (k & 1 ? odd : even)[i];
                }
                if (!half || (k & 1))
                {
                    sum[1][k] += h[i + 1 + k] * (k & 1 ? even : odd)[i + 1];
                }
            }
        }
        if (i < segments[s].count)
        {
#pragma GCC unroll 8
            for (int k = 0; k < size; k++)
            {
                if (!half || !(k & 1))
                {
                    sum[0][k] += h[i + k] * (k & 1 ? odd : even)[i];
                }
            }
        }
    }
#pragma GCC unroll 8
    for (int k = 0; k < size; k++)
    {
        out[k] += scale * (sum[0][k] + sum[1][k]);
    }
}

typedef void tile_function(const segment* segments, int num, int at, real scale, vreal* out);
#define DEFINE(size)                                                                                                   \
    static void tile_##size(const segment* segments, int num, int at, real scale, vreal* out)                          \
    {                                                                                                                  \
        tile(size, 0, segments, num, at, scale, out);                                                                  \
    }                                                                                                                  \
    static void half_tile_##size(const segment* segments, int num, int at, real scale, vreal* out)                     \
    {                                                                                                                  \
        tile(size, 1, segments, num, at, scale, out);                                                                  \
    }
DEFINE(1)
DEFINE(2)
DEFINE(3)
DEFINE(4)
#if FMM_VBYTES == 64
DEFINE(5)
DEFINE(6)
DEFINE(7)
DEFINE(8)
#endif
static tile_function* const c_tiles[2][c_tile + 1] = {
#if FMM_VBYTES == 64
    {NULL, tile_1, tile_2, tile_3, tile_4, tile_5, tile_6, tile_7, tile_8},
    {NULL, half_tile_1, half_tile_2, half_tile_3, half_tile_4, half_tile_5, half_tile_6, half_tile_7, half_tile_8}
#else
    {NULL, tile_1, tile_2, tile_3, tile_4}, {NULL, half_tile_1, half_tile_2, half_tile_3, half_tile_4}
#endif
};

/* One column of the output: its segments, and the sums. `axis`: character of the axis of R_a, or 0. */
static void add_column(const FN(fmm_m2l_job) * job,
                       const operator_group* g,
                       int                   l,
                       int                   im,
                       int                   axis,
                       const real*           blocks,
                       const vreal*          w,
                       real                  scale,
                       vreal*                out)
{
    const int    p = job->ops->order, order = g->order, stride = 2 * p + 2;
    const size_t row  = (size_t)job->ops->row;
    const int    half = (g->zero & axis_bit(2)) != 0;
    segment      segments[c_segments];
    int          num = 0;
    for (int m = 0; m <= order; m++)
    {
        for (int im_in = 0; im_in <= (m > 0); im_in++)
        {
            /* of degrees m and l; the axis z follows n + k */
            const int c = fold_character(l, l, im) ^ fold_character(m, m, im_in);
            if (c & g->zero & ~axis_bit(2))
            {
                continue;
            }
            const int    at = im_in ? harm_im(p, m, m) : harm_re(p, m, m);
            segment*     s  = &segments[num++];
            const size_t e  = (size_t)(((c ^ axis) & 6 & g->mirrored) | (axis & 1 & g->mirrored));
            const size_t o  = (size_t)(((c ^ axis) & 6 & g->mirrored) | (~axis & 1 & g->mirrored));
            s->h            = blocks + (size_t)((4 * m + 2 * im + im_in) * stride);
            s->even         = w + e * row + at;
            s->odd          = w + o * row + at;
            s->count        = order - m + 1;
        }
    }
    for (int k = 0; k <= order - l; k += c_tile)
    {
        const int size = order - l + 1 - k < c_tile ? order - l + 1 - k : c_tile;
        c_tiles[half][size](segments, num, k, scale, out + k);
    }
}

static void
add_group(const FN(fmm_m2l_job) * job, const operator_group* g, const FN(fmm_scratch) * s, const vreal* w, real* blocks)
{
    const struct FN(fmm_operators)* ops = job->ops;
    const int   p = ops->order, stride = 2 * p + 2;
    const real* theta = ops->theta + (size_t)g->vector * ops->theta_row;
    for (int l = 0; l <= g->order; l++)
    {
        for (int m = 0; m <= g->order; m++)
        {
            real* block[4];
            for (int i = 0; i < 4; i++)
            {
                block[i] = blocks + (4 * m + i) * stride;
            }
            fold_m2l(2 * p, m, l, 2 * g->order - m - l + 1, theta, block);
        }
        for (int im = 0; im <= (l > 0); im++)
        {
            const int at = im ? harm_im(p, l, l) : harm_re(p, l, l);
            add_column(job, g, l, im, 0, blocks, w, 1, s->sum[0] + at);
            for (int d = 0; d < 3 && job->strain; d++)
            {
                const real r = ops->displacement[g->vector][d];
                add_column(job, g, l, im, axis_bit(d), blocks, w, r, s->sum[1 + d] + at);
            }
        }
    }
}

void FN(fmm_m2l_symmetric)(const FN(fmm_m2l_job) * job, int first, int lanes, const FN(fmm_scratch) * scratch)
{
    const struct FN(fmm_operators)* ops = job->ops;
    vreal* w                            = scratch->work;
    real*  blocks                       = (real*)(w + 8 * (size_t)ops->row);
    for (int t = 0; t < (job->strain ? 4 : 1); t++)
    {
        memset(scratch->sum[t], 0, (size_t)ops->num_coef * sizeof(vreal));
    }
    for (int i = 0; i < job->num_groups; i++)
    {
        int                  images[8];
        const operator_group g = describe(job, &job->group[i], images);
        if (signed_sums(job, &job->group[i], &g, images, first, lanes, w))
        {
            add_group(job, &g, scratch, w, blocks);
        }
    }
}
