/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Dual traversal (Wilson, Vaughn & Krasny 2021): clusters of targets interact with clusters of sources. Where both
 * are large, by the Chebyshev points of both; where only the targets are, by their points and the particles of the
 * sources. A downward pass interpolates from points to those of children and to particles. O(N).
 */
#ifndef TREECODE_DUAL_H
#define TREECODE_DUAL_H

#include "fmm/treecode/lists.h"

/* Lists of particles, whose batches are the leaves of the targets' tree, and of points: cluster[b] with its Chebyshev
 * points as targets. Both are zeros or from an earlier call. 0, or -1 if there is no memory: then they are empty. */
int treecode_dual_build(treecode_lists* particles, treecode_lists* points, const treecode_criterion* c);

/* Adds to the potentials phi of targets, in sorted order, what the clusters' points have, and to slope[3] (NULL: no
 * field) its negative gradient. point: (n + 1)^3 a cluster as modified charges; those of children are added to. No
 * allocation. work: room for 3 (n + 1)^3 for each thread, `stride` apart. */
void treecode_downward(const treecode_clusters* targets,
                       int                      degree,
                       double*                  point,
                       double*                  phi,
                       double* const*           slope,
                       double*                  work,
                       size_t                   stride,
                       int                      num_threads);

#endif
