/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Particles into cells, as the files of this folder see it. */
#ifndef FMM_ASSIGN_H
#define FMM_ASSIGN_H

#include "fmm/cpu/state.h"

/* locate.c: lattice point nearest to x, and what is left, as fmm_nearest_point. */
int fmm_locate(const fmm_cells* cells, const double* x, int* at, double* rest);

/* particles.c: arrays for n particles, replacing those that *p has, and for their cells. Errors: MEMORY. */
gmxfmm_status fmm_particle_set_alloc(gmxfmm_plan* plan, fmm_particle_set* p, int64_t n);
gmxfmm_status fmm_particle_set_reserve_cells(gmxfmm_plan* plan, fmm_particle_set* p, int num_cells);
void          fmm_particle_set_free(gmxfmm_plan* plan, fmm_particle_set* p);

/* Particles at x and the targets into cells of one level. Errors: POSITION, MEMORY. */
gmxfmm_status fmm_bin(gmxfmm_plan* plan, const void* x);

/* tree.c: levels, lists and leaves for the particles at x and the targets. Errors: POSITION, MEMORY. */
gmxfmm_status fmm_tree_assign(gmxfmm_plan* plan, const void* x);

/* excluded_pairs.c: of the particles that were sorted, mask, far_pairs and the largest near set. Errors: MEMORY. */
gmxfmm_status fmm_excluded_pairs(gmxfmm_plan* plan);

/* Of backend.h, the same in both precisions. */
gmxfmm_status fmm_cpu_extent(gmxfmm_plan* plan, const void** x, double* low, double* high);
gmxfmm_status fmm_cpu_assign(gmxfmm_plan* plan, const void* x);

#endif
