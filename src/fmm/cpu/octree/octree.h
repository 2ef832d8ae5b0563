/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The octree on the CPU: levels of the assigned particles, and the operators between cells. */
#ifndef FMM_CPU_OCTREE_H
#define FMM_CPU_OCTREE_H

#include "fmm/cpu/state.h"
#include "fmm/math/portable.h"

/* The far field by an octree. */
extern const fmm_cpu_path fmm_octree_path;

/* Levels, lists and leaves for the particles at x and the targets. Errors: POSITION, MEMORY. */
gmxfmm_status fmm_tree_assign(gmxfmm_plan* plan, const void* x);

/* All levels of the particles and targets, sorted by their keys: with leaves of one level by fmm_cell_key of these
 * (levels.c), where targets follow particles in one array, which is scratch with the buffer; otherwise by
 * fmm_morton_key of the last one, and runs of near leaves (adaptive.c). Errors: MEMORY. */
struct fmm_keyed;
gmxfmm_status
fmm_even_levels(gmxfmm_plan* plan, struct fmm_keyed* particles, struct fmm_keyed* targets, struct fmm_keyed* buffer);
gmxfmm_status
fmm_adaptive_levels(gmxfmm_plan* plan, const struct fmm_keyed* particles, const struct fmm_keyed* targets);

/* A cell as adaptive.c finds it. */
typedef struct
{
    int at[3], parent; /* in the order in which they are found */
    int leaves[2];     /* first, and one past the last */
} fmm_node;

/* Of levels.c: level l from its num nodes, with `below` cells in the next level. items and buffer: scratch for num;
 * place[k] becomes the index of node k, above[] is that of the level above. And near cells of all levels from their
 * places, parents and children. Errors: MEMORY. */
gmxfmm_status fmm_level_make(gmxfmm_plan*      plan,
                             int               l,
                             int               num,
                             const fmm_node*   nodes,
                             int               below,
                             struct fmm_keyed* items,
                             struct fmm_keyed* buffer,
                             const int*        above,
                             int*              place);
gmxfmm_status fmm_level_neighbours(gmxfmm_plan* plan);

void fmm_levels_free(gmxfmm_plan* plan);
void fmm_leaves_free(gmxfmm_plan* plan);

/*
 * create: memory for the order and the lists of the plan's tree; set_shape: tables that depend on the shape of a cell;
 * reserve: room for the present numbers of cells. Errors: MEMORY.
 * m2m: multipoles of `level` from those of level + 1; m2l: adds the interaction lists to the locals of `level` >= 1
 * and, if some translations go to parents, of level - 1; l2l: adds locals of `level` to those of level + 1. strain[6]
 * (xx, yy, zz, xy, xz, yz; NULL: not wanted): the derivative of the far energy with respect to a strain of the
 * displacements of these translations is added, unit 1/u of the leaves.
 */
gmxfmm_status fmm_operators_create(gmxfmm_plan* plan);
void          fmm_operators_destroy(struct fmm_operators* ops);
void          fmm_operators_set_shape(gmxfmm_plan* plan);
gmxfmm_status fmm_operators_reserve(gmxfmm_plan* plan);
void          fmm_m2m(const gmxfmm_plan* plan, int level);
void          fmm_m2l(gmxfmm_plan* plan, int level, double* strain);
void          fmm_l2l(gmxfmm_plan* plan, int level, double* strain);

#endif
