/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Particles on the CPU: their arrays, their assignment to cells, and what a step makes of positions and charges first.
 */
#ifndef FMM_CPU_PARTICLES_H
#define FMM_CPU_PARTICLES_H

#include "fmm/cpu/state.h"
#include "fmm/math/portable.h"

/* Arrays for n particles. They replace those that *p has, with its cells, but where the plan is one of several ranks
 * and those have room. Errors: MEMORY. */
gmxfmm_status fmm_particle_set_alloc(gmxfmm_plan* plan, fmm_particle_set* p, int64_t n);
gmxfmm_status fmm_particle_set_reserve_cells(gmxfmm_plan* plan, fmm_particle_set* p, int num_cells);
void          fmm_particle_set_free(gmxfmm_plan* plan, fmm_particle_set* p);

/* Makes room for dipoles of the set, where it is of charges, and for the gradient of the field; or frees it, if the
 * plan has no dipoles. Errors: MEMORY. */
gmxfmm_status fmm_particle_set_dipoles(gmxfmm_plan* plan, fmm_particle_set* p, int of_charges);

/* Lattice point nearest to x, and what is left, as fmm_nearest_point. */
int fmm_locate(const fmm_cells* cells, const double* x, int* at, double* rest);

/* The cell of each of n positions in a plan of cells of one level, 0 where there is none. Returns the first that has
 * none, or n. */
int64_t fmm_find_cells(const gmxfmm_plan* plan, const void* x, gmxfmm_precision type, int64_t n, int* cell);

/* Of backend.h. */
gmxfmm_status fmm_cpu_extent(gmxfmm_plan* plan, const void** x, double* low, double* high);

/* Particles at x and the targets into cells of one level. Errors: POSITION, MEMORY. */
gmxfmm_status fmm_bin(gmxfmm_plan* plan, const void* x);

/* Where these particles and targets, in cells or leaves, are in their cells: reference of both sets. */
void fmm_set_references(gmxfmm_plan* plan, const void* x);

/* Charges and dipoles into sorted order, after an assign and when they are new, and what these say of fmm_left. */
void fmm_sort_charges(gmxfmm_plan* plan);

/* Sums over charges and dipoles. y is the position from the centre of the cell, or in an octree of its root, s the
 * vector from there to the centre of the leaf; unit u. */
typedef struct
{
    double dipole[3];     /* sum q y + mu */
    double quadrupole[6]; /* sum q y y^T + 2 sym(mu y^T): xx, yy, zz, xy, xz, yz */
    double offset[3];     /* sum q s */
    double offset2[6];    /* sum sym(s (q y + mu)^T) */
    double surface[3];    /* sum q x + mu, caller's unit */
    double mu[3];         /* sum mu, the same */
    double bad;           /* positions that are not finite, or 100 cells away */
    double left_now;      /* of fmm_left */
    /* Of the particle farthest from its cell, not sums: its largest coordinate there, in cells, and its number. */
    double largest, farthest;
} fmm_moments;

/* Positions x[3n] of a set relative to the centres of their cells, to p->x, y and z, dipoles in their unit, and their
 * moments; the places for P2P, too, where the set has them. */
fmm_moments fmm_permute(gmxfmm_plan* plan, const fmm_particle_set* p, const void* x, gmxfmm_precision type);

#endif
