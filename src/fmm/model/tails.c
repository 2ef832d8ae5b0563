/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sums of the error model over points of cells, for one level of instructions (fmm/math/level.h). */
#include "fmm/model/tails.h"

#include "fmm/gmxfmm.h"

enum
{
    c_vectors = 2 /* vectors of points at once, as independent chains of products */
};

static vreal square(vreal x)
{
    return x * x;
}

static vreal lesser(vreal a, vreal b)
{
    const vinteger less = a < b;
    return (vreal)((less & (vinteger)a) | (~less & (vinteger)b));
}

static vreal at(const double* x, int i)
{
    return *(const vreal*)(x + i);
}

/* The rest of a sum above order p, for a vector of points, is power times next:
 *
 *   sum_{n>p} (n+1) x^n = x^(p+1) (p+2 - (p+1) x)/(1-x)^2,     sum_{n>p} n x^(n-1) = x^p (p+1 - p x)/(1-x)^2.
 *
 * From p to p + 1, power is multiplied by x, the ratio, and next grows by 1 - x. */
typedef struct
{
    vreal ratio, power, next;
} chain;

void LEVEL(fmm_add_tails)(const double* r, const fmm_cell_samples* samples, int last, double* tail)
{
    const fmm_cell_samples* s   = samples;
    const vreal             one = (vreal){0} + 1, most = (vreal){0} + 0.9;
    vreal                   sum[GMXFMM_MAX_ORDER + 1] = {{0}};
    for (int i = 0; i < FMM_SAMPLES; i += c_vectors * VLEN)
    {
        chain m[c_vectors], l[c_vectors]; /* multipoles, locals */
        for (int v = 0; v < c_vectors; v++)
        {
            const int   k  = i + v * VLEN;
            const vreal d2 = square(r[0] + at(s->target[0], k)) + square(r[1] + at(s->target[1], k)) +
                             square(r[2] + at(s->target[2], k));
            const vreal e2 = square(r[0] - at(s->source[0], k)) + square(r[1] - at(s->source[1], k)) +
                             square(r[2] - at(s->source[2], k));
            m[v].ratio = lesser(at(s->source2, k) / d2, most);
            l[v].ratio = lesser(at(s->target2, k) / e2, most);
            m[v].power = m[v].ratio / square(d2 * (1 - m[v].ratio));
            l[v].power = 1 / square(e2 * (1 - l[v].ratio));
            m[v].next  = 2 - m[v].ratio;
            l[v].next  = one;
        }
        for (int p = 0; p <= last; p++)
        {
            for (int v = 0; v < c_vectors; v++)
            {
                sum[p] += m[v].power * m[v].next + l[v].power * l[v].next;
                m[v].power *= m[v].ratio;
                l[v].power *= l[v].ratio;
                m[v].next += 1 - m[v].ratio;
                l[v].next += 1 - l[v].ratio;
            }
        }
    }
    for (int p = 0; p <= last; p++)
    {
        double all = 0;
        for (int k = 0; k < VLEN; k++)
        {
            all += sum[p][k];
        }
        tail[p] += all / FMM_SAMPLES;
    }
}
