/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The solve of gmxfmm solve. */
#ifndef GMXFMM_MAIN_SOLVE_H
#define GMXFMM_MAIN_SOLVE_H

#include "main_problem.h"
#include "main_progress.h"

/* An error against reference values: RMS over the RMS of the reference, or over a unit where that is zero. */
typedef struct
{
    double value;
    double unit; /* 0: the reference's own RMS */
} reference_error;

typedef struct
{
    double*       potential;
    double*       field;
    double*       target_potential; /* NULL without targets */
    double*       target_field;
    gmxfmm_output output;
    gmxfmm_info   info;

    gmxfmm_measurement measured;                                  /* of the plan; time 0: nothing was measured */
    reference_error    potential_error, field_error, force_error; /* where the file has reference values */
} solution;

/* Makes a plan and evaluates it, at the targets too if there are any. 0, or -1 after one line on stderr; *s can be
 * given to solution_free in any case. */
int solve_problem(const problem* all, const main_options* options, progress* p, solution* s);

void solution_free(solution* s);

#endif
