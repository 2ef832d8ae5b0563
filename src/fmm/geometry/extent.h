/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The range of positions along each axis. */
#ifndef FMM_EXTENT_H
#define FMM_EXTENT_H

#include <stdint.h>

#include "fmm/gmxfmm.h"

/* Widens low..high by the n places x, of three numbers of that type each. The first that is not finite, or
 * -1. */
int64_t
fmm_widen_extent(const void* x, gmxfmm_precision type, int64_t n, int num_threads, double low[3], double high[3]);

#endif
