/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Symmetric tensors as six numbers xx, yy, zz, xy, xz, yz: virials, and derivatives by strain. */
#ifndef FMM_STRAIN_H
#define FMM_STRAIN_H

#include "fmm/math/host_device.h"

/* Row and column of number i. */
static inline FMM_HD int fmm_tensor_row(int i)
{
    return i < 3 ? i : i == 5 ? 1 : 0;
}

static inline FMM_HD int fmm_tensor_column(int i)
{
    return i < 3 ? i : i == 3 ? 1 : 2;
}

/* Adds scale times the symmetric part of a (x) b to t. */
static inline FMM_HD void fmm_add_symmetric(double scale, const double* a, const double* b, double* t)
{
    t[0] += scale * a[0] * b[0];
    t[1] += scale * a[1] * b[1];
    t[2] += scale * a[2] * b[2];
    t[3] += scale * 0.5 * (a[0] * b[1] + a[1] * b[0]);
    t[4] += scale * 0.5 * (a[0] * b[2] + a[2] * b[0]);
    t[5] += scale * 0.5 * (a[1] * b[2] + a[2] * b[1]);
}

/* Twice element i of the traceless tensor whose derivative the convolution gives as w[5], THEORY (21): by xx - yy, 2
 * xy, 2 xz, 2 yz and zz. */
static inline FMM_HD double fmm_twice_traceless(const double* w, int i)
{
    return i == 2 ? 2 * w[4] : i > 2 ? w[i - 2] : (i == 0 ? w[0] : -w[0]) - w[4];
}

/* What lattice sums without k = 0 lack of the derivative of the far energy by strain, THEORY (22): sums q, q y_a,
 * q y_b and q y_a y_b over all particles; factor: 4 pi / (5 V). */
static inline FMM_HD double
fmm_missing_strain(double factor, double charge, double dipole_a, double dipole_b, double quadrupole_ab)
{
    return -factor * (charge * quadrupole_ab - dipole_a * dipole_b);
}

/* What is added to each element of the trace of t to make it `trace`: lattice sums and their strain derivative give
 * traceless parts alone. */
static inline FMM_HD double fmm_trace_shift(const double* t, double trace)
{
    return (trace - t[0] - t[1] - t[2]) / 3;
}

#endif
