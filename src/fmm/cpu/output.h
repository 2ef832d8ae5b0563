/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a step returns: energies, the virial, and arrays in the caller's order. */
#ifndef FMM_CPU_OUTPUT_H
#define FMM_CPU_OUTPUT_H

#include "fmm/cpu/particles/particles.h"
#include "fmm/cpu/step.h"

/* What the stages of a step leave for its output, beside the arrays of particles. */
typedef struct
{
    fmm_moments    moments; /* of the charges */
    fmm_background background;
    int            apart;      /* whether the near field is to be told from the far one: for a virial, and for energies
                                * of dipoles, in the fields */
    double first[FMM_PARTIAL]; /* where it is: fmm_particle_sums of the one field that comes first */
    double near_virial[6];     /* P2P's, symmetric part */
    double strain[6];          /* of the far field, where a virial is wanted */
} fmm_step_sums;

/* Sums over sorted particles into sum[FMM_PARTIAL]: 0..5 sym y (x) F, 6 q phi near, 7 q phi far; of dipoles 8 mu . E,
 * 9..11 mu x E. */
void fmm_particle_sums(gmxfmm_plan* plan, double* sum);

/* Fills output. Errors, of results that are not finite: CHARGE, COINCIDENT, POSITION. */
gmxfmm_status
fmm_output(gmxfmm_plan* plan, fmm_wanted wanted, const void* x, const fmm_step_sums* sums, gmxfmm_output* output);

#endif
