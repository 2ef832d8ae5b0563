/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the stages of a step share: particles' arrays in their type, what is wanted, and times. */
#ifndef FMM_STEP_H
#define FMM_STEP_H

#include <omp.h>

#include "fmm/cpu/state.h"
#include "fmm/math/portable.h"

/* Sorted arrays in their type. */
typedef struct
{
    real *x, *y, *z, *q;
    real *near_phi, *far_phi;
    real *ex, *ey, *ez;
} fmm_arrays;

/* Those of dipoles. */
typedef struct
{
    real *mu[3], *gradient[6];
} fmm_dipole_arrays;

static inline fmm_dipole_arrays fmm_dipole_arrays_of(const fmm_particle_set* p)
{
    const fmm_dipole_arrays a = {
        {p->mu[0], p->mu[1], p->mu[2]},
        {p->gradient[0], p->gradient[1], p->gradient[2], p->gradient[3], p->gradient[4], p->gradient[5]}};
    return a;
}

static inline fmm_arrays fmm_arrays_of(const fmm_particle_set* p)
{
    fmm_arrays a = {p->x, p->y, p->z, p->q, p->near_phi, p->far_phi, p->ex, p->ey, p->ez};
    return a;
}

/* Bytes of a thread's scratch that expansions of a block of cells or frequencies take, with the order p at most: not
 * the stack, of which a caller's thread may have little. */
static inline size_t fmm_block_scratch(int order)
{
    const size_t coef = (size_t)(order + 1) * (size_t)(order + 1) + VLEN, twice = 4 * coef; /* twice: of order 2p */
    return (twice + 6 * coef) * sizeof(vreal);
}

/* The scratch of the calling thread, for one stage at a time. */
static inline void* fmm_thread_scratch(const gmxfmm_plan* plan)
{
    return (char*)plan->cpu->scratch + (size_t)omp_get_thread_num() * plan->cpu->scratch_bytes;
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
    FMM_VIRIAL,  /* and both; with dipoles the gradient, too */
    FMM_GRADIENT /* of the field, and both; with dipoles alone */
} fmm_wanted;

/* Whether the gradient of the field is: forces on dipoles are made of it. */
static inline int fmm_wants_gradient(const gmxfmm_plan* plan, fmm_wanted wanted)
{
    return wanted == FMM_GRADIENT || (wanted == FMM_VIRIAL && fmm_has_dipoles(plan));
}

/* Whether the far field comes before the near one. A virial needs the forces of the far field alone, and beside those
 * of a close pair of an open system, which may be any number of times as large, their digits would be lost. */
static inline int fmm_far_is_first(const gmxfmm_plan* plan, fmm_wanted wanted)
{
    return wanted == FMM_VIRIAL && fmm_has_given(plan);
}

/* Adds the time since *from to *sum and starts anew. */
static inline void fmm_lap(double* from, double* sum)
{
    const double now = fmm_time();
    *sum += now - *from;
    *from = now;
}

#endif
