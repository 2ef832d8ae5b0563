/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The particles of a plan, without their charges: number, excluded pairs, targets, assignment to cells. Nothing else
 * writes them. */
#ifndef FMM_PARTICLES_H
#define FMM_PARTICLES_H

#include "fmm/gmxfmm.h"

/* Another number of particles, in no cells and without excluded pairs. */
void fmm_particles_set_number(gmxfmm_plan* plan, int64_t n);

/* Tells the backend that none of them are excluded from each other. Errors: MEMORY. */
gmxfmm_status fmm_particles_exclude_none(gmxfmm_plan* plan);

/* Exclusions that were checked, both NULL: none, of a backend that takes them; and what messages call particles, which
 * the caller keeps. Errors: MEMORY. */
gmxfmm_status fmm_particles_take(gmxfmm_plan* plan, const int* names, const int* start, const int* list);

/* They are in no cells, and graphs of steps are void. */
void fmm_particles_unassign(gmxfmm_plan* plan);

/* Whether they are in cells, as a step needs. Errors: ORDER. */
gmxfmm_status fmm_particles_check_assigned(gmxfmm_plan* plan);

/* Assigns the particles at x to the cells of the domain. Errors: POSITION, MEMORY, DEVICE. */
gmxfmm_status fmm_particles_assign(gmxfmm_plan* plan, const void* x);

/* The same on a stream, to the cells that there are. Errors: DEVICE, UNSUPPORTED. */
gmxfmm_status fmm_particles_enqueue_assign(gmxfmm_plan* plan, const void* x, void* stream);
gmxfmm_status
fmm_particles_enqueue_assign_part(gmxfmm_plan* plan, gmxfmm_assign_part part, const void* x, void* stream);

/* Targets at x copied as double precision, for a backend of the host. Errors: MEMORY. */
gmxfmm_status fmm_particles_keep_targets(gmxfmm_plan* plan, const void* x);

/* Turns them into the plan's axes, which were these before. */
void fmm_particles_turn_targets(gmxfmm_plan* plan, const double* before);

void fmm_particles_free(gmxfmm_plan* plan);

#endif
