/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a step returns: sums over particles, the virial, and arrays in the caller's order. */
#ifndef FMM_CPU_OUTPUT_H
#define FMM_CPU_OUTPUT_H

#include "fmm/cpu/particles/particles.h"
#include "fmm/cpu/step.h"

/* Sums over sorted particles into sum[FMM_PARTIAL]: 0..5 sym y (x) q E, 6 q phi near, 7 q phi far. */
void fmm_particle_sums(gmxfmm_plan* plan, double* sum);

/* The virial of the far field (xx, yy, zz, xy, xz, yz) with excluded pairs still in it, unit 1/u. y_force: sums 0..5
 * above of the far field; strain: what the far field gave; energy: of the far field. */
void fmm_far_virial(const gmxfmm_plan*    plan,
                    const double*         y_force,
                    const double*         strain,
                    const fmm_moments*    m,
                    const fmm_background* bg,
                    double                energy,
                    double*               virial);

/* Takes excluded pairs whose cells are far from each other off potentials, fields, energy and virial[6]. */
void fmm_take_far_pairs(gmxfmm_plan* plan, double* energy, double* virial);

/* Energies and virial in the caller's units. near, far: energies, unit 1/u; surface: sum q x. */
void fmm_write_sums(const gmxfmm_plan* plan,
                    double             near,
                    double             far,
                    const double*      virial,
                    const double*      surface,
                    gmxfmm_output*     output);

/* Arrays in the caller's order and units; surface_field (caller's unit, without f) is added to all fields. Returns the
 * number of results that are not finite. */
int fmm_write_output(
    const gmxfmm_plan* plan, fmm_wanted wanted, const void* x, const double* surface_field, gmxfmm_output* output);

/* Why a result is not finite: CHARGE, one is too large; COINCIDENT, two particles are at one place; POSITION. */
gmxfmm_status fmm_not_finite(gmxfmm_plan* plan, fmm_wanted wanted);

#endif
