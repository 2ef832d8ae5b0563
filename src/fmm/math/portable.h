/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Arithmetic type of a translation unit. Files of the step path are compiled once per precision: with FMM_DOUBLE
 * defined `real` is double and FN(x) is x_d, without it float and x_f, of which there may be one for each level of
 * processors (level.h); TN(x) are the same for members and tags of structures, which have no level. `vreal` is a vector
 * of VLEN reals, which gcc and clang lower to whatever the target has; one lane is one cell, one frequency or one wave
 * vector.
 */
#ifndef FMM_PORTABLE_H
#define FMM_PORTABLE_H

#include <stddef.h>

#include "fmm/math/level.h"

#ifdef FMM_DOUBLE
typedef double real;
#    define FN(name) LEVEL(name##_d)
#    define TN(name) name##_d
#    define FFTW(name) fftw_##name
#else
typedef float real;
#    define FN(name) LEVEL(name##_f)
#    define TN(name) name##_f
#    define FFTW(name) fftwf_##name
#endif

#if defined(__AVX512F__)
#    define FMM_VBYTES 64
#elif defined(__AVX__)
#    define FMM_VBYTES 32
#else
#    define FMM_VBYTES 16
#endif

typedef real vreal __attribute__((vector_size(FMM_VBYTES), may_alias));
enum
{
    VLEN = (int)(FMM_VBYTES / sizeof(real))
};

/* Bytes that every array of the step path is aligned to, and a multiple of every vector. */
enum
{
    FMM_ALIGN = 64
};

#endif
