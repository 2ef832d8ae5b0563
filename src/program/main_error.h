/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A table of errors and times over orders and cells (gmxfmm error). */
#ifndef GMXFMM_MAIN_ERROR_H
#define GMXFMM_MAIN_ERROR_H

#include "main_problem.h"

/* Measures errors and times on the system of a file, over orders and cells about the cheapest choice
 * that reaches options->solve.accuracy, prints them and names the best. 0, or -1 after one line on stderr. */
int main_error(const problem* all, const main_options* options);

#endif
