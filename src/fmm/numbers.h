/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A caller's arrays, of doubles or of floats. */
#ifndef FMM_NUMBERS_H
#define FMM_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

#include "fmm/gmxfmm.h"

/* Bytes of a number. */
static inline size_t fmm_word_of(gmxfmm_precision type)
{
    return type == GMXFMM_DOUBLE ? sizeof(double) : sizeof(float);
}

/* Number i. */
static inline double fmm_number_of(const void* array, gmxfmm_precision type, int64_t i)
{
    return type == GMXFMM_DOUBLE ? ((const double*)array)[i] : (double)((const float*)array)[i];
}

#endif
