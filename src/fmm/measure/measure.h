/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Measurement of errors and times of a plan, for the choice of settings by measurement (choose.c). */
#ifndef FMM_MEASURE_H
#define FMM_MEASURE_H

#include <math.h>
#include <string.h>

#include "fmm/measure/reference.h"
#include "fmm/model/tune.h"

/* What errors have to reach; INFINITY: any. */
typedef struct
{
    double error, error_moved, virial_error;
    int    measures_all; /* 1: all shifts are measured, whatever is missed or reached */
} fmm_error_limits;

/* Whether errors with cells shifted are those of particles that have moved since they were assigned: these have to
 * reach as much as others. */
static inline int fmm_shifts_are_moved(const fmm_error_limits* limits, const gmxfmm_system* system)
{
    return limits != NULL && system->x_before != NULL && limits->error_moved <= limits->error;
}

static inline int fmm_same_settings(const gmxfmm_measurement* a, const gmxfmm_measurement* b)
{
    return a->m2l == b->m2l && a->order == b->order && a->depth == b->depth && a->separation == b->separation &&
           memcmp(a->grid, b->grid, sizeof(a->grid)) == 0;
}

static inline double fmm_within(double x, double low, double high)
{
    return fmin(fmax(x, low), high);
}

/* Whether a system is of this version and has a number of particles that is one. Errors: OPTION. */
gmxfmm_status fmm_check_system(const gmxfmm_system* system, char* message, size_t size);

/* As gmxfmm_reference_create, of options and a system that were checked; but where double precision is not enough for
 * the two evaluations to agree, these are what it gives, and the uncertainty says so. */
gmxfmm_status fmm_reference_best(gmxfmm_reference**    reference,
                                 const gmxfmm_options* options,
                                 const gmxfmm_system*  system,
                                 char*                 message,
                                 size_t                message_size);

/* Makes a plan for the system and assigns its particles, so that all settings are chosen and gmxfmm_get_info has them;
 * its results are for the targets, if there are any.
 * known: as in fmm_problem; must outlive the plan. *plan, NULL at first, is to be destroyed in any case. Errors: as
 * create, set_charges, set_exclusions, set_targets and assign. */
gmxfmm_status fmm_measure_plan(const gmxfmm_system*  system,
                               const gmxfmm_options* options,
                               fmm_known_errors*     known,
                               gmxfmm_plan**         plan,
                               char*                 message,
                               size_t                message_size);

/* The second half of that. */
gmxfmm_status fmm_measure_assign(gmxfmm_plan* plan, const gmxfmm_system* system, char* message, size_t size);

/* For gmxfmm_create_parallel_measured. What gmxfmm_create_measured makes of options for a treecode, and the accuracy
 * asked for, INFINITY: none; checks system and chosen, which may be NULL. Errors: OPTION. */
gmxfmm_status fmm_measured_treecode_options(gmxfmm_options*           own,
                                            double*                   accuracy,
                                            const gmxfmm_options*     given,
                                            const gmxfmm_system*      system,
                                            const gmxfmm_measurement* chosen,
                                            char*                     message,
                                            size_t                    size);

/* The same of all that follows when such a plan, with measures = 1, is made with these options. Collective, if the plan
 * is. Errors: as fmm_measure_assign and execute; OPTION: the accuracy is missed. */
gmxfmm_status fmm_measure_treecode(gmxfmm_plan*          plan,
                                   const gmxfmm_options* options,
                                   double                accuracy,
                                   const gmxfmm_system*  system,
                                   gmxfmm_measurement*   chosen,
                                   char*                 message,
                                   size_t                size);

/* Copies a measurement to a caller's structure of that size. */
void fmm_measure_give(void* to, const gmxfmm_measurement* from, size_t size);

/* Copies a plan's settings to *m. */
void fmm_measure_settings(const gmxfmm_plan* plan, gmxfmm_measurement* m);

/* Measures the errors of a plan's forces and virial against the reference, with cells where they are and shifted, and
 * those at the targets, for which the plan stays assigned, and the time as fmm_measure_time. limits: measuring ends
 * where one is missed, or reached with certainty; NULL: all shifts are measured. force: memory as from
 * fmm_measure_room. Errors: as assign and execute, with the message in the plan. */
gmxfmm_status fmm_measure_errors(gmxfmm_plan*            plan,
                                 const gmxfmm_reference* reference,
                                 const fmm_error_limits* limits,
                                 int                     repeats,
                                 void*                   force,
                                 gmxfmm_measurement*     measurement);

/* Evaluates forces at x, or potential and field at targets, into force (fmm_measure_room), which takes *time, s. */
gmxfmm_status fmm_measure_step(gmxfmm_plan* plan, const void* x, void* force, double* time);

/* Time of a step of the plan, s. If steps can be enqueued, as on a GPU without targets, several are timed together,
 * after the lattice sums. Else it is the time of the fastest of `repeats` evaluations of forces, or of the first two if
 * both take longer than `most`. If the plan has evaluated nothing before, the first of these includes the lattice sums.
 */
gmxfmm_status fmm_measure_time(
    gmxfmm_plan* plan, const gmxfmm_reference* reference, int repeats, double most, void* force, double* time);

/* options->num_threads of plans that are not timed: fewer, where other processes share the processors. */
int fmm_measure_threads(const gmxfmm_reference* reference, const gmxfmm_options* options);

/* Allocates an array in the type of the reference for forces, 3 n, and for potential and field at targets behind them;
 * NULL if out of memory. */
void* fmm_measure_room(const gmxfmm_reference* reference);

#endif
