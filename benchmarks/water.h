/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SPC water for the benchmarks: GROMACS's spc216.gro, replicated or as droplets, with charges and exclusions. */
#ifndef BENCH_WATER_H
#define BENCH_WATER_H

#include "gmxfmm.h"

typedef struct
{
    int     n;
    double *x, *q;
    double  box[9];
    int *   excl_start, *excl_list;
} water;

/* Reads the .gro file and copies its box `copies` times along each vector; exits with a message on failure. */
water water_read(const char* gro_file, int copies);

/* Equal droplets of `atoms` atoms each, in a cube of `along` times `edge` (nm) along each vector, one in each cube of
 * that edge, off its middle and mirrored by chance, the same on every machine; exits with a message on failure. */
water water_droplets(const char* gro_file, int along, int atoms, double edge);

/* A plan with charges, in the type of its arrays, and excluded pairs, but for the assignment; or exit. */
gmxfmm_plan* water_plan(const water* w, const gmxfmm_options* options, const double* box);

void water_free(water* w);

#endif
