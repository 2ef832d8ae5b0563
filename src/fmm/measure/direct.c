/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Direct sums in double precision, for one level of instructions (fmm/math/level.h). */
#include "fmm/measure/direct.h"

#include "fmm/math/portable.h"

enum
{
    c_chunk = 2048 /* sources that stay in the second cache while all places are gone through */
};

static vreal at(const double* x, int64_t i)
{
    return *(const vreal*)(x + i);
}

/* 1/sqrt(x) to rounding, of normal x > 0: halving the exponent gives 3 % (Lomont 2003), and each of Newton's steps
 * squares what is left. Roots and divisions would take most of the time. */
static vreal reciprocal_root(vreal x)
{
    vreal y = (vreal)(0x5fe6eb50c7b537a9 - ((vinteger)x >> 1));
    for (int i = 0; i < 4; i++)
    {
        y *= 1.5 - 0.5 * x * y * y;
    }
    return y;
}

/* x where that is at least `least`, where it is less `other`. */
static vreal unless_less(vreal x, vreal square, double least, double other)
{
    const vinteger less = square < least;
    return (vreal)((less & (vinteger)((vreal){0} + other)) | (~less & (vinteger)x));
}

static void add_chunk(const fmm_sources* s, int64_t begin, int64_t end, double least, const double* place, double* sum)
{
    vreal all[4] = {{0}};
    for (int64_t j = begin; j < end; j += VLEN)
    {
        const vreal dx = place[0] - at(s->x, j), dy = place[1] - at(s->y, j), dz = place[2] - at(s->z, j);
        const vreal square = dx * dx + dy * dy + dz * dz;
        const vreal root   = reciprocal_root(unless_less(square, square, least, 1));
        const vreal u      = unless_less(at(s->q, j) * root, square, least, 0);
        const vreal e      = u * root * root;
        all[0] += u;
        all[1] += e * dx;
        all[2] += e * dy;
        all[3] += e * dz;
    }
    for (int c = 0; c < 4; c++)
    {
        for (int k = 0; k < VLEN; k++)
        {
            sum[c] += all[c][k];
        }
    }
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
