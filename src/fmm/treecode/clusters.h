/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The adaptive tree: each cluster has the minimal box around its particles and is split at the box's midpoint, along
 * the dimensions in which it is long (Vaughn, Wilson & Krasny 2020, sections 2.4 and 3.1). Flat arrays, so that trees
 * can be sent; level by level, the children of a cluster one after the other, and so are the particles of a cluster.
 */
#ifndef TREECODE_CLUSTERS_H
#define TREECODE_CLUSTERS_H

#include <stddef.h>
#include <stdint.h>

typedef struct
{
    int64_t  n;   /* particles */
    int      num; /* clusters; 0 is the root; none without particles */
    int      num_levels;
    int      num_leaves;
    int*     level;        /* num_levels + 1: first cluster of each level */
    int*     leaf;         /* num_leaves: clusters without children */
    int64_t* begin;        /* num: particles begin .. end - 1 of the sorted order */
    int64_t* end;          /* num */
    int*     child;        /* num: first child */
    int*     num_children; /* num: 0, 2, 4 or 8, less those without particles */
    double*  low;          /* 3 num: minimal box */
    double*  high;         /* 3 num */
    int64_t* order;        /* n: order[s] = i, i in the caller's order */
    double*  x[3];         /* n each: sorted positions */
    int      capacity;     /* clusters that there is room for */
} treecode_clusters;

/* Centre and half edges of a cluster's box: returns half its diagonal, which is the radius in (13). */
double treecode_box(const treecode_clusters* c, int cluster, double centre[3], double half[3]);

/* Clusters of at most `leaf` particles at places x[3n], finite ones; at one place there may be more. *c is zeros or
 * from an earlier call. 0, or -1 if there is no memory: then *c is empty. */
int treecode_clusters_build(treecode_clusters* c, int64_t n, const double* x, int64_t leaf, int num_threads);

/* Room for a tree that is made elsewhere. 0, or -1 if there is no memory: then *c is empty. */
int treecode_clusters_reserve(treecode_clusters* c, int64_t n, int num, int num_levels, int num_leaves);

/* The boxes around particles that have moved, at c->x, in the same clusters. No allocation. */
void treecode_clusters_update(treecode_clusters* c, int num_threads);

size_t treecode_clusters_bytes(const treecode_clusters* c);

void treecode_clusters_free(treecode_clusters* c);

#endif
