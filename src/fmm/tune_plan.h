/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Automatic settings of a plan, by the model: method, order, cells and ws. */
#ifndef FMM_TUNE_PLAN_H
#define FMM_TUNE_PLAN_H

#include "fmm/gmxfmm.h"

/* Those of a periodic system, for the expected number of particles, spread evenly. Errors: OPTION, UNSUPPORTED, MEMORY.
 */
gmxfmm_status fmm_tune_periodic(gmxfmm_plan* plan);

/* Those that depend on where particles are, at *x: an octree in place of cells of one level where much is empty, its
 * depth, the grid of an open system. *x becomes an address that the backend need not copy. Errors: POSITION, MEMORY,
 * DEVICE, UNSUPPORTED. */
gmxfmm_status fmm_tune_particles(gmxfmm_plan* plan, const void** x);

#endif
