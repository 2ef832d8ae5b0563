/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Direct sums of an open system at some places, O(n) each. */
#ifndef FMM_DIRECT_H
#define FMM_DIRECT_H

#include <stdint.h>

#include "fmm/math/level.h"

/* Charges, each coordinate in an array of its own, aligned to FMM_ALIGN bytes; n is a multiple of FMM_SOURCES_ROUND. */
enum
{
    FMM_SOURCES_ROUND = 8 /* a vector of doubles at most */
};

typedef struct
{
    int64_t       n;
    const double *x, *y, *z, *q;
} fmm_sources;

/* Adds potential and field of the sources to sum[4 num] at place[3 num], of one thread. Pairs whose squared distance is
 * below least, which is more than zero, give nothing. */
typedef void fmm_direct_sums(const fmm_sources* sources, double least, int64_t num, const double* place, double* sum);

/* Versions for the levels of x86-64 (simd_level.h), or the one for the processor that is compiled for. */
#ifdef FMM_LEVELS
fmm_direct_sums fmm_add_direct_v2, fmm_add_direct_v3, fmm_add_direct_v4;
#else
fmm_direct_sums LEVEL(fmm_add_direct);
#endif

#endif
