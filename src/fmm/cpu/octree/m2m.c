/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* M2M, multipoles of children to those of parents: one lane is one parent, all eight children at once (shift.h). */
#include "fmm/cpu/octree/octree.h"
#include "fmm/cpu/octree/operators.h"

#include <math.h>
#include <string.h>
#include <omp.h>

#define HARM_T double
#define HARM_R double
#include "fmm/math/fold.h"
#include "fmm/cpu/octree/shift.h"

/* Folded blocks of both shifts between columns `out` and `in`; conj Upsilon(s) is Upsilon(x, -y, z). */
static void fill_blocks(int p, const double* upsilon, int out, int in, int up, real* table)
{
    for (int j = 0; j <= p; j++)
    {
        double re[2] = {0, 0}, im[2] = {0, 0}; /* of a, and of (-1)^in b */
        for (int i = 0; i < (in > 0 ? 2 : 1); i++)
        {
            const int m = up ? (i == 0 ? out - in : out + in) : (i == 0 ? in - out : -in - out);
            const int a = m < 0 ? -m : m;
            if (a <= j)
            {
                const int sign = (m < 0 && (a & 1) ? -1 : 1) * (i == 1 && (in & 1) ? -1 : 1);
                re[i]          = sign * upsilon[harm_re(p, j, a)];
                im[i]          = a > 0 ? (m < 0 ? -sign : sign) * upsilon[harm_im(p, j, a)] : 0;
            }
        }
        real* block        = table + ((out * (p + 1) + in) * 4) * (p + 1) + j;
        block[0]           = (real)(re[0] + re[1]);
        block[p + 1]       = (real)(im[1] - im[0]);
        block[2 * (p + 1)] = (real)(im[0] + im[1]);
        block[3 * (p + 1)] = (real)(re[0] - re[1]);
    }
}

void fmm_shift_tables(int p, const double* s, real* up, real* down)
{
    enum
    {
        c_maxCoef = (GMXFMM_MAX_ORDER + 1) * (GMXFMM_MAX_ORDER + 1)
    };
    double inverse[c_maxCoef] = {0}, upsilon[c_maxCoef];
    harm_fill_inverse(p, inverse);
    for (int is_up = 0; is_up < 2; is_up++)
    {
        const double sign = is_up ? 1 : -1;
        memset(upsilon, 0, sizeof(upsilon));
        harm_add_upsilon(p, sign * s[0], -sign * s[1], sign * s[2], 1.0, inverse, upsilon);
        for (int out = 0; out <= p; out++)
        {
            for (int in = 0; in <= p; in++)
            {
                fill_blocks(p, upsilon, out, in, is_up, is_up ? up : down);
            }
        }
    }
}

/* Sums of the children's multipoles with the signs of character c: w[c * num_coef + coefficient]. */
static void signed_sums(const fmm_level* upper, const fmm_level* lower, int num_coef, int first, int lanes, vreal* w)
{
    const real* multipole = lower->multipole;
    int         index[8][VLEN], contiguous[8];
    for (int i = 0; i < 8; i++) /* mirror image i of child 7 */
    {
        contiguous[i] = shift_children(upper->child, first, lanes, 7 ^ i, lower->num, index[i]);
    }
    for (int f = 0; f < num_coef; f++)
    {
        vreal v[8];
        for (int i = 0; i < 8; i++)
        {
            v[i] = shift_gather(multipole + (size_t)f * lower->stride, index[i], contiguous[i]);
        }
        shift_hadamard(v);
        for (int c = 0; c < 8; c++)
        {
            w[(size_t)c * (size_t)num_coef + (size_t)f] = v[c];
        }
    }
}

/* Adds to out[n], n = m..p, what columns m_in of the sums give: t holds T[n - n'], and the character of the sum that an
 * element belongs to alternates with n - n'. */
static inline void add_column(int p, int m, int m_in, const real* t, const vreal* even, const vreal* odd, vreal* out)
{
    const int from = m > m_in ? m - m_in : m_in - m;
    for (int n = m; n <= p; n++)
    {
        vreal sum = out[n - m];
        for (int j = from; j <= n - m_in; j++)
        {
            sum += t[j] * ((j & 1) ? odd : even)[n - j - m_in];
        }
        out[n - m] = sum;
    }
}

static void block_parents(int p, const real* table, const vreal* w, vreal* out)
{
    const size_t num_coef = (size_t)harm_size(p);
    for (int i = 0; i < harm_size(p); i++)
    {
        out[i] = (vreal){0};
    }
    for (int m = 0; m <= p; m++)
    {
        for (int im_out = 0; im_out <= (m > 0); im_out++)
        {
            vreal* column = out + (im_out ? harm_im(p, m, m) : harm_re(p, m, m));
            for (int m_in = 0; m_in <= p; m_in++)
            {
                for (int im_in = 0; im_in <= (m_in > 0); im_in++)
                {
                    /* of output and input degrees m and m; +1 for odd differences */
                    const int    c    = fold_character(m, m, im_out) ^ fold_character(m_in, m_in, im_in);
                    const int    z    = (m + m_in) & 1;
                    const size_t at   = (size_t)(im_in ? harm_im(p, m_in, m_in) : harm_re(p, m_in, m_in));
                    const vreal* even = w + (size_t)((c & 6) | z) * num_coef + at;
                    const vreal* odd  = w + (size_t)((c & 6) | !z) * num_coef + at;
                    add_column(p, m, m_in, shift_block(p, table, m, m_in, im_out, im_in), even, odd, column);
                }
            }
        }
    }
}

void fmm_m2m(const gmxfmm_plan* plan, int level)
{
    const struct fmm_operators* ops   = plan->cpu->ops;
    const fmm_level *           upper = &plan->cpu->level[level], *lower = &plan->cpu->level[level + 1];
    const int                   p = ops->order;
#pragma omp parallel num_threads(plan->num_threads)
    {
        const int         thread = omp_get_thread_num();
        const fmm_scratch s      = fmm_scratch_of(ops, thread);
#pragma omp for schedule(dynamic, 1)
        for (int first = 0; first < upper->num; first += VLEN)
        {
            const int lanes = upper->num - first < VLEN ? upper->num - first : VLEN;
            if (plan->options.vertical_rotation)
            {
                fmm_m2m_rotation(plan, upper, lower, first, lanes, s.work, s.in);
            }
            else
            {
                signed_sums(upper, lower, ops->num_coef, first, lanes, s.work);
                block_parents(p, ops->up, s.work, s.in);
            }
            for (int m = 0; m <= p; m++)
            {
                for (int i = harm_column(p, m); i < harm_column(p, m + 1); i++)
                {
                    /* degree n, in units of the parent: half as many */
                    const int   n   = m + (i - harm_column(p, m)) % (p + 1 - m);
                    const vreal v   = s.in[i] * (real)ldexp(1.0, -n);
                    real*       out = (real*)upper->multipole + (size_t)i * upper->stride + first;
                    for (int lane = 0; lane < lanes; lane++)
                    {
                        out[lane] = v[lane];
                    }
                }
            }
        }
    }
}
