/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The error model's sums over points of cells (THEORY section 7), which take most of the time of a choice. */
#ifndef FMM_TAILS_H
#define FMM_TAILS_H

#include "fmm/math/level.h"
#include "fmm/math/portable.h"

enum
{
    FMM_SAMPLES = 256 /* errors come from the corners of cells, where some samples must be: with 24 the error falls too
                         fast with p */
};

/* Points of a cell, as targets and, in another order, as sources, and the squares of their distances from its centre.
 */
typedef struct
{
    _Alignas(FMM_ALIGN) double target[3][FMM_SAMPLES];
    _Alignas(FMM_ALIGN) double source[3][FMM_SAMPLES];
    _Alignas(FMM_ALIGN) double target2[FMM_SAMPLES];
    _Alignas(FMM_ALIGN) double source2[FMM_SAMPLES];
} fmm_cell_samples;

/* Adds the mean square field errors of cells r[3] apart to tail[0..last], by order. */
typedef void fmm_tails(const double* r, const fmm_cell_samples* samples, int last, double* tail);

/* Versions for the levels of x86-64 (simd_level.h), or the one for the processor that is compiled for. */
#ifdef FMM_LEVELS
fmm_tails fmm_add_tails_v2, fmm_add_tails_v3, fmm_add_tails_v4;
#else
fmm_tails LEVEL(fmm_add_tails);
#endif

#endif
