/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel for one pair of particles, in double precision. */
#include "fmm/treecode/pair.h"

#include <math.h>
#include <string.h>

typedef double real;
typedef double number;

static inline double kernel_rsqrt(double x)
{
    return 1 / sqrt(x);
}

static inline double kernel_exp(double x)
{
    return exp(x);
}

#define TREECODE_FUNCTION static inline
#include "fmm/treecode/kernels.h"

void treecode_pair(const treecode* t, double r2, double* g, double* slope)
{
    kernel_parameters k;
    memcpy(k.p, t->parameter, sizeof(k.p));
    kernel_evaluate(t->options.kernel, r2, k, g, slope);
}
