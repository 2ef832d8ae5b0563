/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Kernels of the treecode: a row of the table and a function each, in the common subset of C11 and CUDA C++. A kernel G
 * is a function of the distance alone and smooth away from zero. Another one is a row, a function, and, if users are to
 * have it, a word in options.
 *
 * A row: name, power of a length that values have (1/r: -1), and powers of a length that make the parameters numbers of
 * a unit of length: positions are in units of L, so parameter p becomes p L^power.
 */
#ifndef TREECODE_KERNELS_H
#define TREECODE_KERNELS_H

/* clang-format off */
#define TREECODE_KERNELS(row)                                                                                          \
    row(coulomb,    -1, 0, 0, 0) /* 1 / r */                                                                           \
    row(yukawa,     -1, 1, 0, 0) /* exp(-kappa r) / r; kappa */                                                        \
    row(regularised, -1, -2, 0, 0) /* 1 / sqrt(r^2 + epsilon^2); epsilon^2 */                                          \
    row(polynomial,  0, 0, 2, 4) /* a + b r^2 + c r^4; a, b, c: for tests, exact at degrees of 4 and more */
/* clang-format on */

#define TREECODE_KERNEL_NAME(name, value, first, second, third) treecode_##name,
typedef enum
{
    TREECODE_KERNELS(TREECODE_KERNEL_NAME) TREECODE_NUM_KERNELS
} treecode_kernel;
#undef TREECODE_KERNEL_NAME

enum
{
    TREECODE_PARAMETERS = 3
};

#endif

/* What the functions are made of: `number` is a vector of the CPU or a number of a thread, `real` its type,
 * kernel_rsqrt and kernel_exp are functions of it. A file that wants the functions defines TREECODE_FUNCTION and these,
 * and includes this header after others. */
#if defined(TREECODE_FUNCTION) && !defined(TREECODE_KERNEL_FUNCTIONS)
#define TREECODE_KERNEL_FUNCTIONS

typedef struct
{
    real p[TREECODE_PARAMETERS];
} kernel_parameters;

/* G and G'/r at the square of the distance. */
TREECODE_FUNCTION void kernel_coulomb(number r2, kernel_parameters k, number* g, number* slope)
{
    const number y = kernel_rsqrt(r2);
    (void)k;
    *g     = y;
    *slope = -(y * y * y);
}

TREECODE_FUNCTION void kernel_yukawa(number r2, kernel_parameters k, number* g, number* slope)
{
    const number y = kernel_rsqrt(r2), kr = k.p[0] * (r2 * y);
    *g     = kernel_exp(-kr) * y;
    *slope = -(*g * (kr + (real)1) * (y * y));
}

TREECODE_FUNCTION void kernel_regularised(number r2, kernel_parameters k, number* g, number* slope)
{
    const number y = kernel_rsqrt(r2 + k.p[0]);
    *g             = y;
    *slope         = -(y * y * y);
}

TREECODE_FUNCTION void kernel_polynomial(number r2, kernel_parameters k, number* g, number* slope)
{
    *g     = (r2 * k.p[2] + k.p[1]) * r2 + k.p[0];
    *slope = (r2 * (4 * k.p[2]) + 2 * k.p[1]);
}

/* The kernel of that number, which is a constant of the caller's. */
TREECODE_FUNCTION void kernel_evaluate(treecode_kernel kernel, number r2, kernel_parameters k, number* g, number* slope)
{
#define TREECODE_KERNEL_CASE(name, value, first, second, third)                                                        \
case treecode_##name:                                                                                                  \
    kernel_##name(r2, k, g, slope);                                                                                    \
    break;
    switch (kernel)
    {
        TREECODE_KERNELS(TREECODE_KERNEL_CASE)
    case TREECODE_NUM_KERNELS:
        break;
    }
#undef TREECODE_KERNEL_CASE
}

#endif
