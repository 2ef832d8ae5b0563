/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel for one pair of particles, in double precision. */
#ifndef TREECODE_PAIR_H
#define TREECODE_PAIR_H

#include "fmm/treecode/state.h"

/* G and G'/r at the square of a distance, in the unit; whether they are finite. */
int treecode_pair(const treecode* t, double r2, double* g, double* slope);

#endif
