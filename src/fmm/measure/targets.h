/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Errors of potential and field at a system's targets, beside those of forces at its charges. Functions do nothing for
 * a system without targets. */
#ifndef FMM_MEASURE_TARGETS_H
#define FMM_MEASURE_TARGETS_H

#include "fmm/measure/reference.h"

/* Errors: NULL, OPTION: no such number; excluded pairs, which targets have none of. */
gmxfmm_status fmm_targets_check(const gmxfmm_system* system, char* message, size_t size);

/* The plan's results are for the targets, from its next assign on. Errors: as set_targets. */
gmxfmm_status fmm_targets_set(gmxfmm_plan* plan, const gmxfmm_system* system);

/* They are for the charges again, and the plan is assigned for these. Errors: as set_targets and assign. */
gmxfmm_status fmm_targets_leave(gmxfmm_plan* plan, const gmxfmm_system* system);

/* Potential and field at the targets behind the forces of an array of fmm_measure_room, by a plan that is assigned to
 * them. Errors: as execute. */
gmxfmm_status
fmm_targets_evaluate(gmxfmm_plan* plan, const gmxfmm_system* system, gmxfmm_precision type, const void* x, void* room);

/* The units of errors, for a reference that has its values: of the potential and of the field. */
void fmm_targets_unit(gmxfmm_reference* reference, const gmxfmm_options* options);

/* The largest of the errors of potential and field in such an array, as they are and with limited values; 0 without
 * targets. */
double fmm_targets_error_of(const gmxfmm_reference* reference, const void* room);

/* That error of the plan with charges at x and targets at `targets`, both as in the reference or moved alike; it is
 * assigned for these here, and stays so. room: as from fmm_measure_room. Errors: as set_targets, assign and execute. */
gmxfmm_status fmm_targets_measure(gmxfmm_plan*            plan,
                                  const gmxfmm_reference* reference,
                                  const void*             x,
                                  const void*             targets,
                                  void*                   room,
                                  double*                 error);

#endif
