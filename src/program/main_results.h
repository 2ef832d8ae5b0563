/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Results of gmxfmm solve, for people and for programs. */
#ifndef GMXFMM_MAIN_RESULTS_H
#define GMXFMM_MAIN_RESULTS_H

#include "main_solve.h"

/* Lines key: value on stdout. */
void main_results_print(const problem* all, const main_options* options, const solution* s);

/* What errors of forces are relative to where these are zero by symmetry. */
const char* main_results_unit(double prefactor);

/* One object of JSON in the file options->json, or on stdout if that is "-". 0, or -1 after one line on stderr. */
int main_results_write_json(const problem* all, const main_options* options, const solution* s, const progress* p);

#endif
