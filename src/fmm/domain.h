/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The domain of a plan: its box, cells and near cells. Nothing else writes it; fmm_domain says what it is. */
#ifndef FMM_DOMAIN_H
#define FMM_DOMAIN_H

#include "fmm/gmxfmm.h"

/* Whether a box[9] is one: finite, its vectors not in one plane; or, periodic along two, these not on one line, and the
 * third whatever it is. Errors: BOX, with the message. */
gmxfmm_status fmm_check_box(const double* box, const int* periodic, char* message, size_t size);

/* The vectors that cells of a new plan with these options lie along, periodic along all: the caller's box[9] if they
 * are short enough, or else the shortest of the same lattice. */
void fmm_domain_reduced_box(const gmxfmm_options* options, const double* box, double* reduced);

/* At create: along which box vectors it is periodic, and the box in the plan's axes (frame.h), NULL if along none. */
void fmm_domain_create(gmxfmm_plan* plan, const int* periodic, const double* box);
void fmm_domain_free(gmxfmm_plan* plan);

/* Another box of a periodic domain, checked, in the plan's axes; of a slab its two vectors, and by how much
 * it is stretched along z. Cells move with it,
 * and hold the particles that they have unless their shape is quite another one. The domain takes the same lattice by
 * short, right-handed vectors: the caller's if they are short enough, or else the same combinations of them as before
 * while these are. The version stays where that is the box as it was. Errors: UNSUPPORTED (an octree cannot take it;
 * the domain stays as it is). */
gmxfmm_status fmm_domain_set_box(gmxfmm_plan* plan, const double* box, double stretch);

/* Cells along each box vector, and ws; of an octree also depth and roots[3]. They exist after fmm_domain_make_cells. */
void fmm_domain_set_grid(gmxfmm_plan* plan, const int* grid, int separation);
void fmm_domain_set_depth(gmxfmm_plan* plan, int depth, int most, const int* roots); /* most: of fmm_tree */

/* The domain of a slab or a wire from low to high along its open directions: cells of that edge there, as many as the
 * grid has. */
void fmm_domain_set_open(gmxfmm_plan* plan, const double* low, const double* high, double edge);

/* An open domain over what is between low and high: cubes of that edge, as many as the grid has. */
void fmm_domain_set_extent(gmxfmm_plan* plan, const double* low, const double* high, double edge);

/* Shifts the corner of the first cell from where it is at first, by shift[3] in cells along each vector that is
 * periodic. No force changes with that. Particles are to be assigned then. */
void fmm_domain_shift_cells(gmxfmm_plan* plan, const double* shift);

/* An octree without levels, for a domain that has none. Errors: MEMORY. */
gmxfmm_status fmm_domain_add_tree(gmxfmm_plan* plan);

/* Whether an octree can take the box. Errors: UNSUPPORTED. */
gmxfmm_status fmm_domain_check_tree(gmxfmm_plan* plan, const double* box);

/* Makes cells and near set from scratch, if they were made for another box or grid; lengths are in the unit of that
 * order. Errors: MEMORY, UNSUPPORTED. */
gmxfmm_status fmm_domain_make_cells(gmxfmm_plan* plan, int order);

/* The octree's interaction lists for these cells and that order; to_parent, truncate: as the options. Errors: MEMORY.
 */
gmxfmm_status fmm_domain_make_lists(gmxfmm_plan* plan, int to_parent, int truncate, int order);

/* For a method that has none: particles are assigned to the domain as it is. */
void fmm_domain_without_cells(gmxfmm_plan* plan);

/* Whether cells that were moved with the box have the near set that would be chosen for it; keep_near brings the
 * shortest far vector up to date besides. */
int fmm_domain_near_holds(const gmxfmm_plan* plan);
int fmm_domain_keep_near(gmxfmm_plan* plan);

#endif
