/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FMM_ASSIGN_H
#define FMM_ASSIGN_H

#include "fmm/plan.h"

/* plan.c: makes cells, their arrays and the convolution fit plan->box and plan->inner, if they do not already. */
gmxfmm_status fmm_update_geometry(gmxfmm_plan* plan);

/* tune.c: open systems, for particles between low and high: grid, at the first call also edge, order and ws. */
gmxfmm_status fmm_tune_open(gmxfmm_plan* plan, const double* low, const double* high);

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

/* tree.c: whether an octree can take the box. Errors: UNSUPPORTED. */
gmxfmm_status fmm_tree_check_box(gmxfmm_plan* plan, const double* box);

/* tree.c: levels, lists and leaves for the particles at x and the receivers. Errors: POSITION, MEMORY. */
gmxfmm_status fmm_tree_assign(gmxfmm_plan* plan, const void* x);
void          fmm_tree_free(gmxfmm_plan* plan);

/* tune_tree.c: the same for the octree, with the occupancy of cells at the first assign; and periodic. */
gmxfmm_status fmm_tune_tree_open(gmxfmm_plan* plan, const void* x, const double* low, const double* high);
gmxfmm_status fmm_tune_tree_particles(gmxfmm_plan* plan, const void* x);

/* Depth of an octree by options depth and grid, 0 if they leave it open. */
int fmm_given_depth(const gmxfmm_options* options);

/* Where the method is automatic: an octree in place of the fft path if the particles leave much of their box (open:
 * of low..high) empty. Once a plan, which fmm_considers_tree asks for; x is on the host. */
int           fmm_considers_tree(const gmxfmm_plan* plan);
gmxfmm_status fmm_consider_tree(gmxfmm_plan* plan, const void* x, const double* low, const double* high);

/* Bins the particles at x, finds the pairs left out. Errors: POSITION, MEMORY. */
gmxfmm_status fmm_assign_particles(gmxfmm_plan* plan, const void* x);

#endif
