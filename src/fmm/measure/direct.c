/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Direct sums in double precision, for one level of instructions (fmm/math/level.h). */
#include "fmm/measure/direct.h"

#include <math.h>

enum
{
    c_chunk = 2048 /* sources that stay in the second cache while all places are gone through */
};

static void add_chunk(const fmm_sources* s, int64_t begin, int64_t end, double least, const double* place, double* sum)
{
    double phi = 0, ex = 0, ey = 0, ez = 0;
#pragma omp simd reduction(+ : phi, ex, ey, ez)
    for (int64_t j = begin; j < end; j++)
    {
        const double dx = place[0] - s->x[j], dy = place[1] - s->y[j], dz = place[2] - s->z[j];
        const double square = dx * dx + dy * dy + dz * dz;
        const double root   = 1 / sqrt(square < least ? 1 : square);
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
