/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a choice by measurement needs of the measuring. */
#ifndef FMM_MEASURE_H
#define FMM_MEASURE_H

#include "fmm/gmxfmm_measure.h"
#include "fmm/model/tune.h"

struct gmxfmm_reference
{
    gmxfmm_system    system;
    gmxfmm_precision array_type; /* of its arrays */
    int              num_threads;
    void*            force; /* 3 n, in that type */
    double           virial[9];
    double           scale; /* RMS force, or what stands for it where that is zero */
    double           uncertainty;
};

/* Copies text to message[size], if there is one. Returns status. */
gmxfmm_status fmm_say(char* message, size_t size, gmxfmm_status status, const char* text);

/* Makes a plan for the system and assigns its particles, so that gmxfmm_get_info has all that is chosen. known: as in
 * fmm_problem, to outlive the plan. *plan, NULL at first, is to be destroyed in any case. Errors: as create,
 * set_charges, set_exclusions and assign. */
gmxfmm_status fmm_measure_plan(const gmxfmm_system*  system,
                               const gmxfmm_options* options,
                               fmm_known_errors*     known,
                               gmxfmm_plan**         plan,
                               char*                 message,
                               size_t                message_size);

/* What a plan's settings are. */
void fmm_measure_settings(const gmxfmm_plan* plan, gmxfmm_measurement* m);

/* Compares what that plan computes with the reference; the time is that of the fastest of some more evaluations of
 * forces. force: room as by fmm_measure_room. Errors: as assign and execute, said by the plan. */
gmxfmm_status fmm_measure_errors(
    gmxfmm_plan* plan, const gmxfmm_reference* reference, int repeats, void* force, gmxfmm_measurement* measurement);

/* Time of a step of that plan, s: of many together, lattice sums made before, where they can be timed so; else the
 * fastest of some evaluations of forces, no more than two if these take longer than `most`, of which the first is
 * slowed by lattice sums if the plan has evaluated nothing so far. */
gmxfmm_status fmm_measure_time(
    gmxfmm_plan* plan, const gmxfmm_reference* reference, int repeats, double most, void* force, double* time);

/* Whether a structure of a caller that begins with its size has room for what this version fills in. Errors: OPTION,
 * with the message. */
gmxfmm_status fmm_measure_size(const void* given, size_t least, const char* type, char* message, size_t size);

/* Room for forces in the type of the reference; NULL if there is none. */
void* fmm_measure_room(const gmxfmm_reference* reference);

#endif
