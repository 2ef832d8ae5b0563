/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A table of errors and times over orders and cells (gmxfmm error). */
#ifndef GMXFMM_MAIN_ERROR_H
#define GMXFMM_MAIN_ERROR_H

#include "charge_file.h"
#include "main_options.h"

/* Measures errors and times on the system of a file, over orders and cells about the cheapest choice
 * that reaches options->solve.accuracy, prints them and names the best. 0, or -1 after one line on stderr. */
int main_error(const charge_file* file, const main_options* options);

#endif
