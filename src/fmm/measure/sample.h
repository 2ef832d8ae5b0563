/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The reference of large open systems: direct sums at a sample of the charges and of the targets. */
#ifndef FMM_SAMPLE_H
#define FMM_SAMPLE_H

#include "fmm/measure/reference.h"

/* Systems of fewer charges have a reference at all of them (measure.c). */
enum
{
    FMM_SAMPLED_FROM = 5000
};

/* Some of the charges, or of the targets. */
typedef struct
{
    int      num, are_all; /* all of them: nothing is left to chance */
    int64_t* index;
    double*  weight; /* of a square: the mean of squares times weights is that of the squares of all */
    double*  exact;  /* 4 num: potential and field without the prefactor */
} fmm_places;

typedef struct
{
    fmm_places charges, targets;
} fmm_samples;

/* Whether errors of a system are measured at a sample: open, on a CPU, without particles that have moved, and without
 * targets that pairs nearer than min_distance give a potential of their own. */
int fmm_is_sampled(const gmxfmm_system* system, const gmxfmm_options* options);

/* Draws a sample by values that are nearly right, r->force, and sums at it. Sets the units of errors of r by these
 * values. Equal shares of the draws are by chance and by the squares of each kind of value: few particles may have most
 * of an error. As many as are drawn, or fewer, are all taken. Errors: MEMORY. */
gmxfmm_status fmm_sample_make(fmm_samples* sample, gmxfmm_reference* r, const gmxfmm_options* options);

/* Sets error, error_limited, error_anywhere and error_targets of *m for values in room (fmm_measure_room). Each is the
 * mean of the sample and c_deviations of its standard deviations more. */
void fmm_sample_errors(const fmm_samples*      sample,
                       const gmxfmm_reference* r,
                       const gmxfmm_options*   options,
                       const void*             room,
                       gmxfmm_measurement*     m);

void fmm_sample_free(fmm_samples* sample);

#endif
