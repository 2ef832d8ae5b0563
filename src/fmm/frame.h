/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The axes of a plan. They are the caller's but in slabs, open along z, and in wires, periodic along z: particles, box
 * and results are turned on the way in and out. Nothing else writes fmm_frame of state.h. */
#ifndef FMM_FRAME_H
#define FMM_FRAME_H

#include "fmm/gmxfmm.h"
#include "fmm/state.h"

/* Axes for periodicity along the vectors periodic[d] of the caller's box[9], and own[9], that box in them: of a slab
 * its two vectors in the plane, right-handed, and (0, 0, own[8]), own[8] being the root of their area: its third vector
 * is of no use but for the height; of a wire its length, three times. Along the caller's axes numbers stay as they
 * are. */
fmm_frame fmm_frame_of(const int* periodic, const double* box, double* own);

/* Takes axes in place of those that the plan has; memory for positions stays. Errors: MEMORY. */
gmxfmm_status fmm_frame_take(gmxfmm_plan* plan, const fmm_frame* frame);

/* Numbers of each box vector in the plan's order from those in the caller's, and back; in place. */
void fmm_frame_order(const gmxfmm_plan* plan, int* numbers);
void fmm_frame_order_back(const gmxfmm_plan* plan, int* numbers);

/* Makes *x, num places in the type of the caller's arrays, on the host, those places in the plan's axes. Memory grows
 * at an assignment and with a box that turns the axes for the first time; a step finds it there. Errors: MEMORY. */
gmxfmm_status fmm_frame_positions(gmxfmm_plan* plan, const void** x, size_t num);

/* Turns targets, in place, from axes that the plan had before, or with NULL from the caller's. */
void fmm_frame_targets(const gmxfmm_plan* plan, const double* before, double* x, size_t num);

/* Turns results for num particles or targets into the caller's axes, in place. */
void fmm_frame_results(const gmxfmm_plan* plan, gmxfmm_output* output, size_t num);

void fmm_frame_free(gmxfmm_plan* plan);

#endif
