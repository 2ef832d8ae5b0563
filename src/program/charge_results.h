/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is written of a solve: potential and field at particles, or at other points. */
#ifndef GMXFMM_CHARGE_RESULTS_H
#define GMXFMM_CHARGE_RESULTS_H

#include "charge_file.h"

typedef struct
{
    const charge_file*    system;    /* box and comments */
    const charge_file*    at;        /* where the values are: the system, or other points */
    const gmxfmm_options* options;   /* computed with */
    const double*         potential; /* n of `at` */
    const double*         field;     /* 3 n */
    double                energy;
} charge_results;

#endif
