/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Points with random charges, uniform in the unit cube, and direct sums over them. */
#ifndef BENCH_CLOUD_H
#define BENCH_CLOUD_H

#include "bench.h"

/* Arrays are float or double, as the library is to have them. */
typedef struct
{
    size_t           n;
    gmxfmm_precision type;
    void *           x, *q;
} cloud;

/* n points from a seed, the same on every machine; charges in [low, 1). */
cloud cloud_make(size_t n, gmxfmm_precision type, double low, unsigned long long seed);

void cloud_free(cloud* c);

/* Number i of an array of the cloud's. */
static inline double cloud_number(const cloud* c, const void* array, size_t i)
{
    return c->type == GMXFMM_DOUBLE ? ((const double*)array)[i] : (double)((const float*)array)[i];
}

/* Potential and field at places[3 num] by direct sums in double precision, with all threads: out[4 num]. A charge at
 * the very place is left out. */
void cloud_direct(const cloud* c, size_t num, const double* places, double* out);

/* Relative L2 errors of potential and field at num places, four values each. */
void cloud_errors(size_t num, const double* values, const double* exact, double* potential, double* field);

#endif
