/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Direct sums in double precision, for one level of instructions (fmm/math/level.h). */
#include "fmm/measure/direct.h"

#include <string.h>

enum
{
    c_chunk = 2048 /* sources that stay in the second cache while all places are gone through */
};

/* 1/sqrt(x) to rounding, of normal x > 0: halving the exponent gives 3 % (Lomont 2003), and each of Newton's steps
 * squares what is left. Without it a root and a division would take most of the time. */
static inline double reciprocal_root(double x)
{
    uint64_t bits;
    double   y;
    memcpy(&bits, &x, sizeof(bits));
    bits = 0x5fe6eb50c7b537a9u - (bits >> 1);
    memcpy(&y, &bits, sizeof(y));
    for (int i = 0; i < 4; i++)
    {
        y *= 1.5 - 0.5 * x * y * y;
    }
    return y;
}

static void add_chunk(const fmm_sources* s, int64_t begin, int64_t end, double least, const double* place, double* sum)
{
    double phi = 0, ex = 0, ey = 0, ez = 0;
#pragma omp simd reduction(+ : phi, ex, ey, ez)
    for (int64_t j = begin; j < end; j++)
    {
        const double dx = place[0] - s->x[j], dy = place[1] - s->y[j], dz = place[2] - s->z[j];
        const double square = dx * dx + dy * dy + dz * dz;
        const double root   = reciprocal_root(square < least ? 1 : square);
        const double u      = square < least ? 0 : s->q[j] * root;
        const double e      = u * root * root;
        phi += u;
        ex += e * dx;
        ey += e * dy;
        ez += e * dz;
    }
    sum[0] += phi;
    sum[1] += ex;
    sum[2] += ey;
    sum[3] += ez;
}

void LEVEL(fmm_add_direct)(const fmm_sources* s, double least, int64_t num, const double* place, double* sum)
{
    for (int64_t begin = 0; begin < s->n; begin += c_chunk)
    {
        const int64_t end = begin + c_chunk < s->n ? begin + c_chunk : s->n;
        for (int64_t k = 0; k < num; k++)
        {
            add_chunk(s, begin, end, least, place + 3 * k, sum + 4 * k);
        }
    }
}
