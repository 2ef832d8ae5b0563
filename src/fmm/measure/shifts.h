/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Errors of a periodic system wherever its cells are. A translation of all particles changes no force, but it changes
 * which particles are near the corners of cells, where expansions converge slowest: the error of few particles, or of
 * those on a lattice, varies with it by a hundred times. */
#ifndef FMM_SHIFTS_H
#define FMM_SHIFTS_H

#include "fmm/measure/reference.h"

enum
{
    FMM_MOST_SHIFTS = 24 /* of cells that errors are measured with, the first where they are */
};

/* How many shifts are needed, and what is found. Logarithms of errors are normally distributed over shifts, nearly. */
typedef struct
{
    int    most;      /* shifts to be measured, at least 1 */
    double deviation; /* standard deviation of the logarithms, as expected of so many particles */
    int    num;
    double error[FMM_MOST_SHIFTS]; /* measured so far */
} fmm_shifts;

/* Nothing measured so far, of an assigned plan with this system. */
fmm_shifts fmm_shifts_of(const gmxfmm_plan* plan, const gmxfmm_reference* reference);

/* The k-th shift, k > 0, shift[3] in cells along each vector. */
void fmm_shift_of(const gmxfmm_plan* plan, const gmxfmm_reference* reference, int k, double* shift);

/* The error that is exceeded in one of a thousand places, about, by those measured so far: at least one. */
double fmm_error_anywhere(const fmm_shifts* shifts);

#endif
