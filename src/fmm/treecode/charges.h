/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Modified charges of clusters (Vaughn, Wilson & Krasny 2020, eq. 12), always in double precision. */
#ifndef TREECODE_CHARGES_H
#define TREECODE_CHARGES_H

#include "fmm/treecode/clusters.h"

/* charge[num (n + 1)^3], point (k1, k2, k3) of a cluster at k1 (n + 1)^2 + k2 (n + 1) + k3: at leaves from the
 * particles' charges q[n] in sorted order, then from children to parents by interpolation. No allocation. work: room
 * for 2 (n + 1)^3 for each thread, `stride` apart. */
void treecode_charges(const treecode_clusters* c,
                      const double*            q,
                      int                      degree,
                      double*                  charge,
                      double*                  work,
                      size_t                   stride,
                      int                      num_threads);

/* The same of one cluster, from its particles at any level. */
void treecode_charges_of(const treecode_clusters* c, int cluster, const double* q, int degree, double* charge);

#endif
