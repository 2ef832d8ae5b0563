/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A regular grid of targets: that of --grid-targets. */
#ifndef GMXFMM_TARGET_GRID_H
#define GMXFMM_TARGET_GRID_H

#include "charge_file.h"

/* A point of the grid where a charge stands: there the library computes nothing. */
typedef struct
{
    int64_t point, charge;
} target_grid_charge;

/* Point (i, j, k) stands at origin + i step[0..2] + j step[3..5] + k step[6..8]; k is the fastest. */
typedef struct
{
    int64_t             n; /* points; 0: no grid */
    int64_t             count[3];
    double              origin[3], step[9];
    target_grid_charge* at_charge; /* in the order of points */
    int64_t             num_at_charge;
} target_grid;

/* The grid whose points are at most `step` apart along each axis. Along periodic vectors it has the box, from the
 * origin on and without the far faces, whose points are those of the near ones; along other axes the charges and a
 * margin. *targets has its points but those where charges stand, `name` in messages. 0, or -1 after a complaint; both
 * can be freed in any case. */
int target_grid_make(
    target_grid* grid, const charge_file* charges, double step, const char* name, charge_file* targets);

void target_grid_free(target_grid* grid);

#endif
