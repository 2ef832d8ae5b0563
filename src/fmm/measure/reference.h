/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The reference that errors of settings are measured against, and the norms of errors (norm.c). */
#ifndef FMM_REFERENCE_H
#define FMM_REFERENCE_H

#include <stdio.h>

#include "fmm/gmxfmm_measure.h"
#include "fmm/process.h"

/* What errors of forces are divided by: their RMS or, where that is zero, their natural unit; and the same with no
 * force larger than the limit. natural: that unit where it is taken, else 0. */
typedef struct
{
    double all, limited, limit, natural;
    double spacing; /* mean distance of particles */
} fmm_error_unit;

struct gmxfmm_reference
{
    gmxfmm_system    system;
    gmxfmm_precision array_type; /* of its arrays */
    int              num_threads;
    fmm_watch        watch; /* since it was begun */
    void*            force; /* from fmm_measure_room, in that type */
    double           virial[9];
    fmm_error_unit   unit;
    fmm_error_unit   unit_torques;                     /* where there are dipoles */
    double           uncertainty, uncertainty_limited; /* of both errors */
    fmm_error_unit   unit_targets[2];                  /* of the potential and the field at targets */
    double           uncertainty_targets;
    /* Of a system whose forces are zero by symmetry: the reference of the same one with particles moved a little, which
     * has forces; else NULL. moved_x: its positions. */
    struct gmxfmm_reference* moved;
    void*                    moved_x;
};

/* Copies text to message[size], if there is one. Returns status. */
static inline gmxfmm_status fmm_say(char* message, size_t size, gmxfmm_status status, const char* text)
{
    if (message != NULL && size > 0)
    {
        snprintf(message, size, "%s", text);
    }
    return status;
}

/* Item k of a sample of `most` of n items that is spread over all of them, or of fewer all: by the golden ratio, so
 * that no period of the items, like molecules of three atoms, is met again. */
int64_t fmm_sample(int64_t n, int most, int64_t k);

/* The median of num values, which are sorted here. */
double fmm_median(double* value, size_t num);

/* Mean |q|, with dipoles |mu| over the distance added, and mean distance of the charges from each other. */
void fmm_scales_of(const gmxfmm_system* system, const gmxfmm_options* options, double* charge, double* distance);

/* Where torques begin in memory from fmm_measure_room, in numbers. */
static inline int64_t fmm_torques_begin(const gmxfmm_system* system)
{
    return 3 * system->n + 4 * system->num_targets;
}

/* The charge of particle i, with a dipole |q| and |mu| over the mean distance. */
double fmm_strength_of(const gmxfmm_reference* reference, int64_t i);

/* The unit of errors for a reference that has its forces, and that of torques. */
fmm_error_unit fmm_unit_of_errors(const gmxfmm_reference* reference, const gmxfmm_options* options);
fmm_error_unit fmm_unit_of_torques(const gmxfmm_reference* reference, const gmxfmm_options* options);

/* The error of force[3 n], in the reference's type, and that with limited forces; with dipoles those of the torques
 * there, if they are larger. */
double fmm_error_of(const gmxfmm_reference* reference, const void* force, double* limited);

/* The largest of a measurement's errors at the places given, all of which have to reach what is asked. */
double fmm_larger_error(const gmxfmm_measurement* measurement);

#endif
