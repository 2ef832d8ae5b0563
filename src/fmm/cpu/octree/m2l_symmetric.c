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

#include "fmm/cpu/octree/m2l_job.h"

#define FOLD_T real
#define FOLD_R real
#include "fmm/math/fold.h"
#include "fmm/cpu/simd/lanes.h"
#include "fmm/cpu/simd/tiles.h"

enum
{
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

static operator_group describe(const fmm_m2l_job* job, const fmm_operator_group* group, int images[8])
{
    const fmm_tree* tree     = job->plan->domain.tree;
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
    g.order     = fmm_job_order(job, v);
    for (int i = 0; i < group->count; i++)
    {
        images[i] &= g.mirrored;
    }
    return g;
}

/* Multipoles of one image's sources, lane by lane, to w; returns 0 if there is none. */
static int load_image(const fmm_m2l_job* job, const fmm_translation* t, int first, int lanes, vreal* w)
{
    const struct fmm_operators* ops = job->ops;
    const real*                 row[VLEN];
    int                         any = 0;
    for (int lane = 0; lane < VLEN; lane++)
    {
        const int source = lane < lanes ? fmm_m2l_source(job, first + lane, t) : job->empty;
        row[lane]        = ops->rows + (size_t)source * (size_t)job->layout->row;
        any |= source != job->empty;
    }
    if (any)
    {
        lanes_load_rows(row, job->layout->num, w);
    }
    return any;
}

/* W_c for all characters of the mirrored axes, w[c * row + coefficient]. Returns 0 if all sources are empty. */
static int signed_sums(const fmm_m2l_job*        job,
                       const fmm_operator_group* group,
                       const operator_group*     g,
                       const int*                images,
                       int                       first,
                       int                       lanes,
                       vreal*                    w)
{
    const size_t row    = (size_t)job->layout->row;
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

/* Segments of the columns of the output with the parity of l, real or imaginary parts; blocks are those of any l.
 * `axis`: character of the axis of R_a, or 0. Returns their number. */
static int make_segments(const fmm_m2l_job*    job,
                         const operator_group* g,
                         int                   l,
                         int                   im,
                         int                   axis,
                         const real*           blocks,
                         const vreal*          w,
                         segment*              segments)
{
    const int    p   = job->layout->order;
    const size_t row = (size_t)job->layout->row;
    int          num = 0;
    for (int m = 0; m <= g->order; m++)
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
            s->h            = blocks + (size_t)((4 * m + 2 * im + im_in) * (2 * p + 2));
            s->even         = w + e * row + at;
            s->odd          = w + o * row + at;
            s->count        = g->order - m + 1;
        }
    }
    return num;
}

/* The products of a group, scale times added to sum; `axis` as above. */
static void add_products(
    const fmm_m2l_job* job, const operator_group* g, int axis, real scale, const vreal* w, real* blocks, vreal* sum)
{
    /* forces take one degree more; locals, which may have it, are to be without */
    const int   more = job->strain && (axis != 0 || g->order == job->ops->order);
    const int   p = job->layout->order, last = g->order + more, top = 2 * job->ops->order + 1;
    const int   half  = (g->zero & axis_bit(2)) != 0;
    const real* theta = job->ops->theta + (size_t)g->vector * job->ops->theta_row;
    segment     segments[2][2][c_segments];
    int         num[2][2];
    for (int i = 0; i < 4; i++)
    {
        num[i / 2][i % 2] = make_segments(job, g, i / 2, i % 2, axis, blocks, w, segments[i / 2][i % 2]);
    }
    for (int l = 0; l <= last; l++)
    {
        for (int m = 0; m <= g->order; m++)
        {
            real* block[4];
            for (int i = 0; i < 4; i++)
            {
                block[i] = blocks + (4 * m + i) * (2 * p + 2);
            }
            fold_m2l(top, m, l, g->order - m + last - l + 1, theta, block);
        }
        for (int im = 0; im <= (l > 0); im++)
        {
            vreal* out = sum + (im ? harm_im(p, l, l) : harm_re(p, l, l));
            for (int k = 0; k <= last - l; k += c_tile)
            {
                const int size = last - l + 1 - k < c_tile ? last - l + 1 - k : c_tile;
                c_tiles[half][size](segments[l & 1][im], num[l & 1][im], k, scale, out + k);
            }
        }
    }
}

void fmm_m2l_symmetric(const fmm_m2l_job* job, int first, int lanes, const fmm_scratch* scratch)
{
    vreal* w      = scratch->work;
    real*  blocks = (real*)(w + 8 * (size_t)job->layout->row);
    for (int t = 0; t < (job->strain ? 4 : 1); t++)
    {
        memset(scratch->sum[t], 0, (size_t)job->layout->row * sizeof(vreal));
    }
    for (int i = 0; i < job->num_groups; i++)
    {
        int                  images[8];
        const operator_group g = describe(job, &job->group[i], images);
        if (signed_sums(job, &job->group[i], &g, images, first, lanes, w))
        {
            add_products(job, &g, 0, 1, w, blocks, scratch->sum[0]);
            for (int d = 0; d < 3 && job->strain; d++)
            {
                const real r = job->ops->displacement[g.vector][d];
                add_products(job, &g, axis_bit(d), r, w, blocks, scratch->sum[1 + d]);
            }
        }
    }
}
