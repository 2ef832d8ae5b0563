/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Positions in images that are far from the box. In cells they lose as many digits as they are boxes away, and so would
 * forces; less the box vectors, multiplied and added without rounding (Dekker 1971, Numer. Math. 18, 224), they keep
 * all of the caller's.
 */
#ifndef FMM_IMAGES_H
#define FMM_IMAGES_H

#include <math.h>

#include "fmm/math/locate.h"

/* Positions are taken as they are up to so many times the sum of the box vectors: a few digits of double precision. */
#define FMM_FEW_IMAGES 8

/* How far along x, y and z that is; along what no vector reaches, for ever. box[9]; periodic: along its vectors. */
static inline FMM_HD void fmm_few_images(const double* box, const int* periodic, double* reach)
{
    for (int d = 0; d < 3; d++)
    {
        double sum = 0;
        for (int i = 0; i < 3; i++)
        {
            sum += periodic[i] ? fabs(box[3 * i + d]) : 0;
        }
        reach[d] = sum > 0 ? FMM_FEW_IMAGES * sum : INFINITY;
    }
}

/* x less k times the rows of box[9], rounded once; k: integers. */
static inline FMM_HD void fmm_less_images(const double* box, const double* k, double* x)
{
    for (int d = 0; d < 3; d++)
    {
        double rest = 0;
        for (int i = 0; i < 3; i++)
        {
            const double product = -k[i] * box[3 * i + d], sum = x[d] + product, back = sum - x[d];
            rest += (x[d] - (sum - back)) + (product - back) + fma(-k[i], box[3 * i + d], -product);
            x[d] = sum;
        }
        x[d] += rest;
    }
}

/* The image of x in the box, or near to it. t[3]: x in cells, n of which are along the vectors of the box, t[i]
 * < 1.1e9. These vectors are in_basis[9] times the caller's, given[9], which alone have all digits. */
static inline FMM_HD void
fmm_into_box(const double* given, const double* in_basis, const int* periodic, const int* n, const double* t, double* x)
{
    double k[3] = {0, 0, 0};
    for (int i = 0; i < 3; i++)
    {
        const double own = periodic[i] ? rint(t[i] / n[i]) : 0;
        for (int j = 0; j < 3; j++)
        {
            k[j] += own * in_basis[3 * i + j];
        }
    }
    fmm_less_images(given, k, x);
}

#endif
