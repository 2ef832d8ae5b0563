/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* M2L by the loops of THEORY (5) as they stand, O(p^4) for each translation; one lane is one source of a target. */
#include "fmm/cpu/octree/m2l_job.h"

#define FOLD_T vreal
#define FOLD_R real
#include "fmm/math/fold.h"
#include "fmm/cpu/simd/lanes.h"

static void translate(const fmm_m2l_job* job, const fmm_scratch* s, const int* vector, int order, vreal* out)
{
    const struct fmm_operators* ops = job->ops;
    const int                   p = job->layout->order, top = 2 * ops->order + 1;
    const int                   last   = order + job->strain; /* degree of out */
    vreal*                      theta  = s->work;
    vreal*                      memory = theta + ops->theta_row;
    vreal*                      block[4];
    const real*                 row[VLEN];
    for (int i = 0; i < VLEN; i++)
    {
        row[i] = ops->theta + (size_t)vector[i] * ops->theta_row;
    }
    for (int i = 0; i < 4; i++)
    {
        block[i] = memory + i * (top + 1);
    }
    lanes_load_rows(row, harm_size(top), theta);
    for (int m = 0; m <= order; m++)
    {
        const vreal *re = s->in + harm_re(p, m, m), *im = m > 0 ? s->in + harm_im(p, m, m) : re;
        for (int l = 0; l <= last; l++)
        {
            vreal *out_re = out + harm_re(p, l, l), *out_im = l > 0 ? out + harm_im(p, l, l) : out_re;
            fold_m2l(top, m, l, order - m + last - l + 1, theta, block);
            for (int k = 0; k <= last - l; k++)
            {
                vreal sum_re = {0}, sum_im = {0};
                for (int n = 0; n <= order - m; n++)
                {
                    sum_re += block[0][n + k] * re[n];
                    if (m > 0)
                    {
                        sum_re += block[1][n + k] * im[n];
                    }
                    if (l > 0)
                    {
                        sum_im += block[2][n + k] * re[n];
                        if (m > 0)
                        {
                            sum_im += block[3][n + k] * im[n];
                        }
                    }
                }
                out_re[k] += sum_re;
                if (l > 0)
                {
                    out_im[k] += sum_im;
                }
            }
        }
    }
}

void fmm_m2l_naive(const fmm_m2l_job* job, int first, int lanes, const fmm_scratch* scratch)
{
    fmm_m2l_by_target(job, first, lanes, scratch, translate);
}
