/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What stages cost on the CPU, in 0.31 ns: one thread, single precision, AVX-512 (benchmarks/solve,
 * benchmarks/operators). */
#include "fmm/cpu/costs.h"

#include <math.h>

const fmm_costs fmm_costs_cpu = {
    .pair         = 0.8,
    .pair_double  = 4,
    .gather       = 30,
    .coefficient  = 1.5,
    .fft_log2     = 0.5,
    .point        = 0.1,
    .translation  = {1, 1, 1, 1, 1, 1},
    .most_places  = INFINITY,
    .last_order   = {GMXFMM_MAX_ORDER_SINGLE, GMXFMM_MAX_ORDER},
    .choice_steps = 15,
    .adapts       = 1,
    .skips_far    = 1,
};
