/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Recursive coordinate bisection of places over ranks. */
#ifndef TREECODE_RANKS_BISECTION_H
#define TREECODE_RANKS_BISECTION_H

#include "fmm/parallel/ranks.h"

/* owner[n] becomes the ranks that places x[3n], finite ones, belong to: those of one rank are in a box, and there are
 * about as many on each. Who gave a place does not matter to who owns it. Collective; the message goes to
 * message[size]. Errors: POSITION (the system is too long), MEMORY. */
gmxfmm_status treecode_bisect(
    const fmm_ranks* ranks, int64_t n, const double* x, int* owner, int num_threads, char* message, size_t size);

#endif
