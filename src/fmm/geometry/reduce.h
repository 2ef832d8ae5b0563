/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Short vectors of a lattice: a box may be given by any vectors that span it, and cells want short ones. */
#ifndef FMM_REDUCE_H
#define FMM_REDUCE_H

/* Product of the lengths of the rows of box[9] over its volume: 1 for right angles, at most 1.42 for the shortest
 * vectors of a lattice, INFINITY where the rows are left-handed. */
double fmm_orthogonality_defect(const double* box);

/* Integers t[9] with which the rows of t box are shortest vectors of the same lattice, right-handed, each along the
 * axis that it is nearest to where that can be. Lagrange's reduction by pairs (Nguyen & Stehle 2009, ACM Trans.
 * Algorithms 5, 46, section 3), then the shortest of the vectors that are normal to the faces of the lattice's Voronoi
 * region. */
void fmm_reduce_basis(const double* box, double* t);

/* The same of the plane z = 0 that the first two rows span: the third row of t box is that of box. */
void fmm_reduce_plane(const double* box, double* t);

/* The rows of t box; box itself, to the bit, where t is the unit matrix. */
void fmm_in_basis(const double* t, const double* box, double* out);

#endif
