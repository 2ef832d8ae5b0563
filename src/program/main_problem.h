/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* All that the files of a command line say. */
#ifndef GMXFMM_MAIN_PROBLEM_H
#define GMXFMM_MAIN_PROBLEM_H

#include "charge_file.h"
#include "exclusions.h"
#include "gmxfmm_measure.h"
#include "main_options.h"
#include "target_grid.h"

typedef struct
{
    charge_file charges;
    charge_file targets;  /* n = 0: none */
    target_grid grid;     /* n = 0: none; its points are the targets */
    exclusions  excluded; /* start NULL: none */
} problem;

/* Reads the files that the options name, checks them, and settles in the options what a file says and no option does.
 * *rows: as charge_read. 0, or -1 after one line on stderr; *all can be given to problem_free in any case. */
int problem_read(problem* all, main_options* options, atomic_llong* rows);

/* The charges as the library takes them. */
gmxfmm_system problem_system(const problem* all);

/* What a user should know beside the results; only after success, for a failure has one line on stderr. */
void problem_print_notes(const problem* all, const main_options* options);

double problem_net_charge(const charge_file* file);

/* Mean of |q|. */
double problem_mean_charge(const charge_file* file);

const char* problem_boundary_name(const charge_file* file, gmxfmm_boundary boundary);

void problem_free(problem* all);

#endif
