/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The level of x86-64 (x86-64-v2, v3, v4 of the System V ABI) whose copy of the step computes. Which of them there are
 * is up to the build: FMM_LEVELS is defined where there are all, otherwise the level is 0 throughout and there is one
 * copy.
 */
#ifndef FMM_SIMD_LEVEL_H
#define FMM_SIMD_LEVEL_H

#include "fmm/gmxfmm.h"

/* The highest level that this processor has, or what GMXFMM_SIMD in the environment names. The one place where the
 * library reads the environment: a plan keeps the level that it was made with. */
int fmm_simd_level(void);

/* Whether there is such a level. Errors: OPTION (GMXFMM_SIMD is none, or there are none in this build), UNSUPPORTED
 * (the processor does not have it). */
gmxfmm_status fmm_check_simd_level(char* message, size_t size);

/* "v2", "v3", "v4"; "" for 0. */
const char* fmm_simd_level_name(int level);

#endif
