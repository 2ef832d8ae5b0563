/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The plan of gmxfmm solve, measured on the system itself. */
#ifndef GMXFMM_MAIN_MEASURE_H
#define GMXFMM_MAIN_MEASURE_H

#include "main_problem.h"
#include "main_progress.h"

/* Whether errors are to be measured with these options. */
int main_measure_is_wanted(const main_options* options);

/* Makes a plan for the system of a file, ready for execute, that is measured to reach what was asked; *chosen: what it
 * reaches. *plan, NULL on failure, is to be destroyed. Returns the library's status, with message[size]. */
gmxfmm_status main_measure(const problem*      all,
                           const main_options* options,
                           progress*           p,
                           gmxfmm_plan**       plan,
                           gmxfmm_measurement* chosen,
                           char*               message,
                           size_t              size);

#endif
