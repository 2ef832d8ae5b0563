/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Interaction lists: the source clusters that a target batch interacts with through their Chebyshev points, and those
 * whose particles it interacts with, by the multipole acceptance criterion with its size check (Vaughn, Wilson & Krasny
 * 2020, eq. 13).
 */
#ifndef TREECODE_LISTS_H
#define TREECODE_LISTS_H

#include "fmm/treecode/clusters.h"

typedef struct
{
    int      num;     /* batches */
    int      points;  /* 1: targets are Chebyshev points, begin and end count those of all clusters (dual.h) */
    int*     cluster; /* num: the leaf of the targets' tree that a batch is in */
    int64_t* begin;   /* num: its targets, in sorted order: all of the leaf's, or a sample */
    int64_t* end;     /* num */
    int64_t* approximated_start; /* num + 1 */
    int64_t* direct_start;       /* num + 1 */
    int*     approximated;       /* approximated_start[num]: clusters of batch b from approximated_start[b] */
    int*     direct;             /* direct_start[num] */
    double   pairs;              /* evaluations of the kernel that they ask for */
    int64_t  targets;            /* in all batches */
} treecode_lists;

/* What lists follow from. */
typedef struct
{
    const treecode_clusters* targets;
    const treecode_clusters* sources;
    double                   theta;
    int                      degree;
    int                      num_threads;
    int                      widened; /* of ranks: treecode_radius */
} treecode_criterion;

/* Lists of all batches. *lists is zeros or from an earlier call. 0, or -1 if there is no memory: then it is empty. */
int treecode_lists_build(treecode_lists* lists, const treecode_criterion* c);

/* The same of a sample: num groups of at most `size` neighbouring targets, evenly among all. */
int treecode_lists_sample(treecode_lists* lists, const treecode_criterion* c, int num, int64_t size);

/* Room for so many batches, all empty. 0, or -1 if there is no memory. */
int treecode_lists_begin(treecode_lists* lists, int num);

size_t treecode_lists_bytes(const treecode_lists* lists);

void treecode_lists_free(treecode_lists* lists);

#endif
