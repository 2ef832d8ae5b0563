/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The commands of gmxfmm. */
#ifndef GMXFMM_MAIN_RUN_H
#define GMXFMM_MAIN_RUN_H

/* Exit status of every failure. */
#define MAIN_FAILURE 2

struct main_ranks;

/* Runs a command line; ranks: those that share the sums of solve (main_ranks.h), or NULL. Returns the exit status: 0,
 * or MAIN_FAILURE after one line on stderr. */
int main_run(int count, char* const* arguments, struct main_ranks* ranks);

#endif
