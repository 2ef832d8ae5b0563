/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Costs on a GPU, in pairs of its near field: 1.2e12 a second on an H200 (benchmarks/water_cuda). */
#include "cuda/costs.h"

const fmm_costs fmm_costs_cuda = {
    .pair          = 1,
    .pair_double   = 2,
    .cell          = 2500,
    .coefficient   = 1,
    .fft_two_steps = 14,
    .fft_other     = 24,
    .point         = 0.14,
    /* Fitted at orders 4 to 12: rotation to the whole far field (benchmarks/results/nvidia-h200/far.json, to a third at
     * worst), the others in proportion to M2L alone at depths 5 and 6 (m2l.json). */
    .translation     = {[GMXFMM_M2L_AUTO]      = 0.94 / 0.8,
                        [GMXFMM_M2L_FFT]       = 0.94 / 0.8,
                        [GMXFMM_M2L_ROTATION]  = 0.94 / 0.8,
                        [GMXFMM_M2L_SYMMETRIC] = 2.9 / 0.8,
                        [GMXFMM_M2L_DYNAMIC]   = 68 / 0.8,
                        [GMXFMM_M2L_NAIVE]     = 13 / 0.8},
    .level           = 7.2e7,   /* 0.06 ms */
    .most_places     = 1 << 27, /* of 20 bytes each (docs/gpu.md) */
    .last_order      = {GMXFMM_MAX_ORDER_SINGLE, GMXFMM_MAX_ORDER_SINGLE},
    .choice_seconds  = 0.2,
    .choice_particle = 3e-7,
    .adapts          = 1,
    .compiles_orders = 1,
};
