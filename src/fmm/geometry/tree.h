/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The octree: levels of occupied cells over a forest of roots (THEORY section 8).
 *
 * Level 0 has the roots, level `depth` the leaves; level l is a grid of roots[d] << l cells along axis d, of which
 * those that hold particles exist. The cells of a level are sorted into slabs of equal child index, 0..7 = 4 x + 2 y +
 * z, each row by row (z fastest) by the place of their parents (child-centric slabs, Lengvenis et al.): where cells are
 * dense, targets in a run have their sources at any displacement in a run, too. The index `num` of a level, one past
 * its last cell, is the empty cell: lists use it where a cell has no particles, and its expansions are zero.
 *
 * Leaves of an open system may be of several levels, so that their number does not grow with the ratio of lengths: a
 * cell is divided while its particles have more than `most` pairs with those near to them. A leaf above the last level
 * has no children, so that nothing is translated to or from parts of it: all pairs of its particles with those of cells
 * near to it are near pairs. Leaves are then sorted along Morton's curve, and the leaves of a cell of any level are a
 * run of them.
 *
 * Expansions of a level are in units of that level: lengths in edge_l / lambda, so that operators are the same for all
 * levels; going up or down one changes units by 2 (m2m.c, l2l.c).
 */
#ifndef FMM_TREE_H
#define FMM_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "fmm/geometry/cells.h"

enum
{
    FMM_MAX_DEPTH   = 9,       /* of leaves that are all of one level */
    FMM_MAX_LEVEL   = 30,      /* of others: FMM_KEY_BITS of tree_sort.h */
    FMM_MAX_EDGE    = 1 << 20, /* most cells of a level along an edge where leaves are of one level */
    FMM_MAX_NEAR    = 5 * 5 * 5,
    FMM_MAX_VECTORS = 11 * 11 * 11 /* displacements within 2 ws + 1 cells */
};

/* A translation of the interaction list of cells with a given child index: from child `octant` of the cell at near
 * vector `near` of the target's parent, along displacement `vector`. */
typedef struct
{
    short near, octant, vector;
} fmm_translation;

/* Symmetric form: displacements that are mirror images of one with components >= 0, the reference operator. */
typedef struct
{
    int first, count; /* a run of translations in the list, which is sorted by operator */
    int reference;    /* displacement with the same components without signs */
} fmm_operator_group;

/* Its shape and its lists; the occupied cells, which follow the particles, are a backend's. */
typedef struct
{
    int depth;
    int most; /* pairs of a leaf above level `depth` (fmm_is_divided); 0: all leaves are of that level */
    int roots[3];
    int num_near; /* of fmm_cells: near[0] is zero */

    /* M2L: displacements target minus source, in cells, the same for all levels */
    int                 num_vectors; /* 316 for ws = 1, 1206 for ws = 2 */
    int                 vector[FMM_MAX_VECTORS][3];
    int                 num_list[8]; /* 189 or 875; less what is sent to the parent */
    fmm_translation*    list[8];     /* sorted by reference operator */
    int                 num_groups[8];
    fmm_operator_group* group[8];
    /* translations straight to the parent of a target (Gumerov & Duraiswami 2008): displacement from the source's
     * centre to the parent's in half cells, hence odd */
    int              num_to_parent;
    fmm_translation* to_parent; /* near: of the parent; octant; vector: index into parent_vector */
    int              num_parent_vectors;
    int (*parent_vector)[3];
    int                 num_parent_groups;
    fmm_operator_group* parent_group;
    signed char*        truncation; /* order to translate with, by vector and then by parent vector; NULL: all */
} fmm_tree;

/* Whether a cell is divided into leaves of several levels: `here` particles are in it, `near` in all 27 about it. It is
 * the product that counts: few particles beside very many are as much work as many among themselves, and there it is
 * those that a division keeps apart. */
static inline FMM_HD int fmm_is_divided(size_t here, size_t near, int most)
{
    return (double)here * (double)near > most;
}

/* Where the cell at near vector `vector` of child `octant` is among what is near to its parent: above[3], a near
 * vector, and which child it is there, which is returned. */
static inline FMM_HD int fmm_near_above(int octant, const int* vector, int* above)
{
    int child = 0;
    for (int d = 0; d < 3; d++)
    {
        const int k = (octant >> (2 - d) & 1) + vector[d] + 8; /* 8: shift of a positive number */
        above[d]    = (k >> 1) - 4;
        child       = 2 * child + (k & 1);
    }
    return child;
}

/* tree_lists.c: fills num_near, vector, list, group and what the options ask beside them. Errors: MEMORY. */
gmxfmm_status fmm_tree_lists(fmm_tree* tree, const fmm_cells* cells, int to_parent, int truncate, int order);
void          fmm_tree_lists_free(fmm_tree* tree);

/* How translations are truncated: to the same error as the worst displacement's, by bounds or in the mean square. */
typedef struct
{
    int    by_bound;
    double worst; /* ratio of the bound, or mean square error at the full order */
} fmm_truncation;

/* tree_truncation.c. Of a translation over displacement k (to_parent: in half cells, to a parent): the ratio that its
 * error's bound falls by per order (Gumerov & Duraiswami 2008, eq. 20), and the order that it needs; the mean square
 * error of the worst displacement at order p. */
double fmm_bound_ratio(const fmm_cells* cells, const int* k, int to_parent);
int    fmm_truncated_order(const fmm_cells* cells, const int* k, int to_parent, int p, const fmm_truncation* rule);
double fmm_worst_error(const fmm_tree* tree, const fmm_cells* cells, int p);

#endif
