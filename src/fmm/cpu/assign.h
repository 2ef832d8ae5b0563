/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Particles into cells, as the files of this folder see it. */
#ifndef FMM_ASSIGN_H
#define FMM_ASSIGN_H

#include "fmm/plan.h"

/* Lattice point nearest to x: at[3], and what is left, in cells. Returns 0 if x is not finite. */
int fmm_locate(const fmm_cells* cells, const double* x, int* at, double* rest);

/* Moves a place into the grid: by periods, or open, where only rounding puts a particle outside, to its edge. */
static inline void fmm_into_grid(const fmm_cells* cells, int* at)
{
    for (int d = 0; d < 3; d++)
    {
        const int n = cells->periodic ? cells->n[d] : cells->inner[d];
        if (cells->periodic)
        {
            const int m = at[d] % n;
            at[d]       = m < 0 ? m + n : m;
        }
        else
        {
            at[d] = at[d] < 0 ? 0 : at[d] >= n ? n - 1 : at[d];
        }
    }
}

/* tree.c: levels, lists and leaves for the particles at x and the receivers. Errors: POSITION, MEMORY. */
gmxfmm_status fmm_tree_assign(gmxfmm_plan* plan, const void* x);

/* left_out.c: of the particles that were sorted, mask, far_pairs and the largest near set. Errors: MEMORY. */
gmxfmm_status fmm_left_out(gmxfmm_plan* plan);

/* Of backend.h, the same in both precisions. */
gmxfmm_status fmm_cpu_extent(gmxfmm_plan* plan, const void** x, double* low, double* high);
gmxfmm_status fmm_cpu_assign(gmxfmm_plan* plan, const void* x);

#endif
