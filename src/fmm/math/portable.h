/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Arithmetic type of a translation unit. Files of the step path are compiled once per precision: `real` is float with
 * FMM_SINGLE defined and double with FMM_DOUBLE, and names.h makes two names of one; there is neither in other files.
 * `vreal` is a vector of VLEN reals, which gcc and clang lower to whatever the target has; one lane is one cell, one
 * frequency or one wave vector.
 */
#ifndef FMM_PORTABLE_H
#define FMM_PORTABLE_H

#include <stddef.h>

#if defined(__AVX512F__)
#    define FMM_VBYTES 64
#elif defined(__AVX__)
#    define FMM_VBYTES 32
#else
#    define FMM_VBYTES 16
#endif

/* For functions whose arguments are constants that the code is made for. */
#define INLINE static inline __attribute__((always_inline))

/* Bytes that every array of the step path is aligned to, and a multiple of every vector. */
enum
{
    FMM_ALIGN = 64
};

#if defined(FMM_SINGLE) || defined(FMM_DOUBLE)
#    include "fmm/math/names.h"

#    ifdef FMM_DOUBLE
typedef double real;
#    else
typedef float real;
#    endif

typedef real  vreal __attribute__((vector_size(FMM_VBYTES), may_alias));
typedef vreal vreal_unaligned __attribute__((aligned(sizeof(real)))); /* at any address */
enum
{
    VLEN = (int)(FMM_VBYTES / sizeof(real))
};

/* As many integers of the same size, which comparisons of vreal give: all bits set or none. */
#    ifdef FMM_DOUBLE
typedef long long lane_integer;
#    else
typedef int   lane_integer;
#    endif
typedef lane_integer vinteger __attribute__((vector_size(FMM_VBYTES), may_alias));
#endif

#endif
