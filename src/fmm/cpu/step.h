/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The operators with particles, as execute.c calls them; one file each. Arrays are in sorted order (fmm_particle_set).
 */
#ifndef FMM_STEP_H
#define FMM_STEP_H

#include "fmm/cpu/state.h"
#include "fmm/math/portable.h"

/* Sorted arrays in their type. */
typedef struct
{
    real *x, *y, *z, *q;
    real *near_phi, *far_phi;
    real *ex, *ey, *ez;
} fmm_arrays;

static inline fmm_arrays fmm_arrays_of(const fmm_particle_set* p)
{
    fmm_arrays a = {p->x, p->y, p->z, p->q, p->near_phi, p->far_phi, p->ex, p->ey, p->ez};
    return a;
}

/* Additions to the potentials of all cells: phi += c (q |y|^2 - 2 d.y + t), y from the centre of the cell (fft path) or
 * of its root (octree): tin-foil, THEORY (16). */
typedef struct
{
    double c, q, d[3], t;
} fmm_background;

/* What the targets are to get. */
typedef enum
{
    FMM_POTENTIAL = 0,
    FMM_FIELD,
    FMM_BOTH,
    FMM_VIRIAL /* and both */
} fmm_wanted;

/* Multipoles of all cells, field[coef][cell] = sum q conj Upsilon (THEORY (4)). */
void fmm_p2m(const gmxfmm_plan* plan, real* field, size_t stride);

/* Potential and field, what is wanted of them, of the local expansions at the targets: sets far_phi, adds to ex, ey, ez
 * (THEORY (6)). */
void fmm_l2p(
    const gmxfmm_plan* plan, const real* field, size_t stride, const fmm_background* background, fmm_wanted wanted);

/* Pairs in near cells, less those left out: sets what is wanted of near_phi, ex, ey, ez of the targets. FMM_VIRIAL adds
 * -1/2 sum r (x) F of the near pairs to virial[6] (xx, yy, zz, xy, xz, yz), unit 1/u. */
void fmm_p2p(gmxfmm_plan* plan, fmm_wanted wanted, double* virial);

/* Bytes of scratch that p2p needs for each thread. */
size_t fmm_p2p_scratch(const gmxfmm_plan* plan);

#endif
