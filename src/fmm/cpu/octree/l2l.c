/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* L2L, locals of parents to those of children: one lane is one parent, all eight children at once (shift.h). */
#include "fmm/cpu/octree/octree.h"
#include "fmm/cpu/octree/operators.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "fmm/math/fold.h"
#include "fmm/cpu/octree/shift.h"

/* Adds to even[k] and odd[k], k = l..p, what column l_in of the parent's locals gives: t holds T[k' - k], and the
 * character that a product belongs to alternates with k' - k. */
static inline void add_column(int p, int l, int l_in, const real* t, const vreal* in, vreal* even, vreal* odd)
{
    const int from = l > l_in ? l - l_in : l_in - l;
    for (int k = l; k <= p - from; k++)
    {
        vreal sum[2] = {even[k - l], odd[k - l]};
        for (int j = from > l_in - k ? from : l_in - k; j <= p - k; j++)
        {
            sum[j & 1] += t[j] * in[k + j - l_in];
        }
        even[k - l] = sum[0];
        odd[k - l]  = sum[1];
    }
}

/* Sums of products by character, v[c * num_coef + coefficient]. */
static void block_sums(int p, const real* table, const vreal* in, vreal* v)
{
    const size_t num_coef = (size_t)harm_size(p);
    for (size_t i = 0; i < 8 * num_coef; i++)
    {
        v[i] = (vreal){0};
    }
    for (int l = 0; l <= p; l++)
    {
        for (int im = 0; im <= (l > 0); im++)
        {
            const size_t out = (size_t)(im ? harm_im(p, l, l) : harm_re(p, l, l));
            for (int l_in = 0; l_in <= p; l_in++)
            {
                for (int im_in = 0; im_in <= (l_in > 0); im_in++)
                {
                    const int    c      = fold_character(l, l, im) ^ fold_character(l_in, l_in, im_in);
                    const int    z      = (l + l_in) & 1;
                    const vreal* column = in + (im_in ? harm_im(p, l_in, l_in) : harm_re(p, l_in, l_in));
                    vreal*       even   = v + (size_t)((c & 6) | z) * num_coef + out;
                    vreal*       odd    = v + (size_t)((c & 6) | !z) * num_coef + out;
                    add_column(p, l, l_in, shift_block(p, table, l, l_in, im, im_in), column, even, odd);
                }
            }
        }
    }
}

/* Parents' locals in units of the children. */
static void load_parents(int p, const fmm_level* upper, int first, int lanes, vreal* in)
{
    for (int l = 0; l <= p; l++)
    {
        for (int i = harm_column(p, l); i < harm_column(p, l + 1); i++)
        {
            const int   k     = l + (i - harm_column(p, l)) % (p + 1 - l);
            const real* local = (const real*)upper->local + (size_t)i * upper->stride + first;
            vreal       value = {0};
            for (int lane = 0; lane < lanes; lane++)
            {
                value[lane] = local[lane];
            }
            in[i] = value * (real)ldexp(1.0, -(k + 1));
        }
    }
}

static void
add_to_children(const fmm_level* lower, int num_coef, int lanes, const int* index, int contiguous, const vreal* v)
{
    for (int f = 0; f < num_coef; f++)
    {
        real* local = (real*)lower->local + (size_t)f * lower->stride;
        if (contiguous)
        {
            vreal sum;
            memcpy(&sum, local + index[0], sizeof(sum));
            sum += v[f];
            memcpy(local + index[0], &sum, sizeof(sum));
            continue;
        }
        for (int lane = 0; lane < lanes; lane++)
        {
            if (index[lane] != lower->num)
            {
                local[index[lane]] += v[f][lane];
            }
        }
    }
}

/* Parents' locals in to their children's v, mirror image i of child 7 at v[i * num_coef + coefficient]. */
static void shift_to_children(const gmxfmm_plan* plan, const vreal* in, vreal* v)
{
    const struct fmm_operators* ops      = plan->cpu->ops;
    const size_t                num_coef = (size_t)ops->num_coef;
    if (plan->options.vertical_rotation)
    {
        fmm_l2l_rotation(plan, in, v);
        return;
    }
    block_sums(ops->order, ops->down, in, v);
    for (size_t f = 0; f < num_coef; f++)
    {
        vreal t[8];
        for (size_t c = 0; c < 8; c++)
        {
            t[c] = v[c * num_coef + f];
        }
        shift_hadamard(t);
        for (size_t i = 0; i < 8; i++)
        {
            v[i * num_coef + f] = t[i];
        }
    }
}

/* Adds factor * sum s (x) F over the children at s, F the force on their multipoles in v; m is for multipoles. */
static void add_strain(const gmxfmm_plan* plan,
                       const fmm_level*   lower,
                       int                octant,
                       const int*         index,
                       int                contiguous,
                       double             factor,
                       const vreal*       v,
                       vreal*             m,
                       double*            strain)
{
    const double* cell = plan->domain.cells.cell;
    double        s[3], f[3] = {0, 0, 0};
    vreal         force[3];
    for (int i = 0; i < plan->cpu->ops->num_coef; i++)
    {
        m[i] = shift_gather((const real*)lower->multipole + (size_t)i * lower->stride, index, contiguous);
    }
    fmm_expansion_force(plan->far.order, m, plan->far.order, v, force);
    for (int d = 0; d < 3; d++)
    {
        s[d] = 0;
        for (int e = 0; e < 3; e++)
        {
            s[d] += (octant >> (2 - e) & 1 ? 0.5 : -0.5) * cell[3 * e + d];
        }
        for (int lane = 0; lane < VLEN; lane++)
        {
            f[d] += (double)force[d][lane];
        }
    }
    fmm_add_symmetric(factor, s, f, strain);
}

void fmm_l2l_strain(const gmxfmm_plan* plan,
                    int                level,
                    int                first,
                    int                lanes,
                    int                q,
                    const vreal*       local,
                    double             factor,
                    const fmm_scratch* s,
                    double*            strain)
{
    const struct fmm_operators* ops   = plan->cpu->ops;
    const fmm_level *           upper = &plan->cpu->level[level], *lower = &plan->cpu->level[level + 1];
    const int                   p = ops->order;
    for (int l = 0; l <= p; l++)
    {
        for (int k = l; k <= p; k++)
        {
            const real scale        = (real)ldexp(1.0, -(k + 1));
            s->in[harm_re(p, k, l)] = local[harm_re(q, k, l)] * scale;
            if (l > 0)
            {
                s->in[harm_im(p, k, l)] = local[harm_im(q, k, l)] * scale;
            }
        }
    }
    shift_to_children(plan, s->in, s->work);
    for (int i = 0; i < 8; i++)
    {
        int       index[VLEN];
        const int contiguous = shift_children(upper->child, first, lanes, 7 ^ i, lower->num, index);
        add_strain(plan, lower, 7 ^ i, index, contiguous, factor, s->work + (size_t)i * (size_t)ops->num_coef, s->in,
                   strain);
    }
}

static void block_children(const gmxfmm_plan* plan, int level, int first, const fmm_scratch* s, double* strain)
{
    const struct fmm_operators* ops   = plan->cpu->ops;
    const fmm_level *           upper = &plan->cpu->level[level], *lower = &plan->cpu->level[level + 1];
    const int                   lanes = upper->num - first < VLEN ? upper->num - first : VLEN;
    load_parents(ops->order, upper, first, lanes, s->in);
    shift_to_children(plan, s->in, s->work);
    for (int i = 0; i < 8; i++) /* mirror image i of child 7 */
    {
        const vreal* mine = s->work + (size_t)i * (size_t)ops->num_coef;
        int          index[VLEN];
        const int    contiguous = shift_children(upper->child, first, lanes, 7 ^ i, lower->num, index);
        add_to_children(lower, ops->num_coef, lanes, index, contiguous, mine);
        if (strain != NULL)
        {
            add_strain(plan, lower, 7 ^ i, index, contiguous, -1, mine, s->in, strain);
        }
    }
}

void fmm_l2l(gmxfmm_plan* plan, int level, double* strain)
{
    struct fmm_operators* ops    = plan->cpu->ops;
    const size_t          blocks = ((size_t)plan->cpu->level[level].num + VLEN - 1) / VLEN;
    memset(ops->partial, 0, FMM_SHARES * sizeof(*ops->partial));
#pragma omp parallel num_threads(plan->num_threads)
    {
        const int         thread = omp_get_thread_num();
        const fmm_scratch s      = fmm_scratch_of(ops, thread);
#pragma omp for schedule(dynamic, 1)
        for (size_t share = 0; share < FMM_SHARES; share++)
        {
            for (size_t b = blocks * share / FMM_SHARES; b < blocks * (share + 1) / FMM_SHARES; b++)
            {
                block_children(plan, level, (int)b * VLEN, &s, strain != NULL ? ops->partial[share] : NULL);
            }
        }
    }
    if (strain != NULL)
    {
        /* child's unit of energy to the leaves' */
        fmm_sum_strain(ops, ldexp(1.0, level + 1 - plan->domain.tree->depth), strain);
    }
}
