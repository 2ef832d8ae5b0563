/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Decisions about clusters and pairs of them, the same on the CPU and on a GPU (Vaughn, Wilson & Krasny 2020). */
#ifndef TREECODE_BOXES_H
#define TREECODE_BOXES_H

#include <math.h>

#include "fmm/math/host_device.h"

/* Whether balls of those centres and radii are far from each other: the criterion (13) without its size check. */
static inline FMM_HD int treecode_is_far(double theta, const double* x, double rx, const double* y, double ry)
{
    const double dx = x[0] - y[0], dy = x[1] - y[1], dz = x[2] - y[2];
    return rx + ry < theta * sqrt(dx * dx + dy * dy + dz * dz);
}

/* The radius in (13) of a cluster with these half edges: half its diagonal. Or, widened: the geometric mean of that and
 * of half the diagonal of the cube, square or line around it, by how many of its edges are longer than the longest over
 * sqrt(2), as those that are split. At the same diagonal Chebyshev interpolation converges the slower the longer a
 * cluster's longest edge is. Trees of one system have clusters near to cubes; ranks' parts of it have edges like 1/3,
 * 1/2, 1/2, which never become cubes by halves. The mean makes their errors equal, measured over ranks (tests/library/
 * ranks.cpp); the larger radius alone makes those of ranks a third smaller, for a sixth more evaluations. */
static inline FMM_HD double treecode_radius(const double half[3], int widened)
{
    double square = 0, longest = 0;
    int    long_edges = 0;
    for (int d = 0; d < 3; d++)
    {
        square += half[d] * half[d];
        longest = fmax(longest, half[d]);
    }
    for (int d = 0; d < 3; d++)
    {
        long_edges += half[d] > 0.70710678118654752 * longest;
    }
    const double cube = long_edges * (longest * longest);
    return widened && cube > square ? sqrt(sqrt(square) * sqrt(cube)) : sqrt(square);
}

/* What becomes of a pair of clusters in dual traversal: it goes into one of the first four lists, or one of the two is
 * opened. */
typedef enum
{
    TREECODE_DIRECT,           /* particles of both */
    TREECODE_PARTICLE_CLUSTER, /* particles of the targets, points of the sources */
    TREECODE_CLUSTER_PARTICLE, /* points of the targets, particles of the sources */
    TREECODE_CLUSTER_CLUSTER,
    TREECODE_NUM_LISTS,
    TREECODE_OPEN_TARGETS = TREECODE_NUM_LISTS,
    TREECODE_OPEN_SOURCES
} treecode_decision;

/* few: no more particles than points, so that the particles themselves interact; can_open: has children; larger: the
 * targets' box is not the smaller one. */
static inline FMM_HD treecode_decision
treecode_decide(int is_far, int larger, int few_targets, int few_sources, int can_open_targets, int can_open_sources)
{
    if (is_far)
    {
        return few_targets ? (few_sources ? TREECODE_DIRECT : TREECODE_PARTICLE_CLUSTER)
                           : (few_sources ? TREECODE_CLUSTER_PARTICLE : TREECODE_CLUSTER_CLUSTER);
    }
    if ((few_targets && few_sources) || (!can_open_targets && !can_open_sources))
    {
        return TREECODE_DIRECT;
    }
    return can_open_targets && (!can_open_sources || few_sources || (!few_targets && larger)) ? TREECODE_OPEN_TARGETS
                                                                                              : TREECODE_OPEN_SOURCES;
}

/* Where a dimension of a box is split, particles above it in the upper part: at its middle if it is longer than the
 * longest one over sqrt(2), so that parts are no longer than that times their width; otherwise all are below. Between
 * two neighbouring numbers there is no middle: the lower one will do. */
static inline FMM_HD double treecode_split_at(double low, double high, double longest)
{
    const double edge = high - low, middle = low + 0.5 * edge;
    return edge < longest && edge <= 0.70710678118654752 * longest ? high : middle < high ? middle : low;
}

#endif
