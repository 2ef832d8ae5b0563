/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a step returns: sums over particles, the virial, and arrays in the caller's order. */
#include "fmm/cpu/output.h"

#include <math.h>
#include <string.h>

#include "fmm/cpu/near/far_pairs.h"
#include "fmm/cpu/particles/particles.h"
#include "fmm/cpu/ranks.h"
#include "fmm/math/strain.h"
#include "fmm/numbers.h"

/* The force (unit u) on particle s with a dipole, given the field there. */
static void force_on_dipole(const fmm_arrays* a, const fmm_dipole_arrays* of, int s, double* force)
{
    const double mu[3] = {(double)of->mu[0][s], (double)of->mu[1][s], (double)of->mu[2][s]};
    const double e[3]  = {(double)a->ex[s], (double)a->ey[s], (double)a->ez[s]};
    for (int d = 0; d < 3; d++)
    {
        force[d] = (double)a->q[s] * e[d];
    }
    for (int i = 0; i < 6; i++)
    {
        const int    r = fmm_tensor_row(i), c = fmm_tensor_column(i);
        const double g = (double)of->gradient[i][s];
        force[r] += g * mu[c];
        force[c] += r != c ? g * mu[r] : 0;
    }
}

/* What particle s adds to the sums, with a dipole. */
static void add_sums_of_dipole(const fmm_arrays* a, const fmm_dipole_arrays* of, int s, double* t)
{
    const double mu[3] = {(double)of->mu[0][s], (double)of->mu[1][s], (double)of->mu[2][s]};
    const double e[3]  = {(double)a->ex[s], (double)a->ey[s], (double)a->ez[s]};
    const double y[3]  = {(double)a->x[s], (double)a->y[s], (double)a->z[s]};
    double       force[3];
    force_on_dipole(a, of, s, force);
    fmm_add_symmetric(1, y, force, t);
    t[6] += (double)a->q[s] * (double)a->near_phi[s];
    t[7] += (double)a->q[s] * (double)a->far_phi[s];
    t[8] += mu[0] * e[0] + mu[1] * e[1] + mu[2] * e[2];
    t[9] += mu[1] * e[2] - mu[2] * e[1];
    t[10] += mu[2] * e[0] - mu[0] * e[2];
    t[11] += mu[0] * e[1] - mu[1] * e[0];
}

void fmm_particle_sums(gmxfmm_plan* plan, double* sum)
{
    const fmm_dipole_arrays of      = fmm_dipole_arrays_of(&plan->cpu->sources);
    const int               dipoles = fmm_has_dipoles(plan);
    const fmm_arrays        a       = fmm_arrays_of(&plan->cpu->sources);
    const int*              start   = plan->cpu->sources.cell_start;
    const fmm_range         own     = fmm_own_rows(plan);
    memset(plan->cpu->partial, 0, (size_t)plan->cpu->partial_rows * FMM_PARTIAL * sizeof(double));
#pragma omp parallel for schedule(dynamic, 4) num_threads(plan->num_threads)
    for (int row = own.begin; row < own.end; row++)
    {
        double    t[FMM_PARTIAL] = {0};
        const int begin = start[fmm_row_cell(plan, row)], end = start[fmm_row_cell(plan, row + 1)];
        for (int s = begin; s < end && dipoles; s++)
        {
            add_sums_of_dipole(&a, &of, s, t);
        }
        for (int s = begin; s < end && !dipoles; s++)
        {
            const double q  = (double)a.q[s];
            const double fx = q * (double)a.ex[s], fy = q * (double)a.ey[s], fz = q * (double)a.ez[s];
            const double x = (double)a.x[s], y = (double)a.y[s], z = (double)a.z[s];
            t[0] += x * fx;
            t[1] += y * fy;
            t[2] += z * fz;
            t[3] += 0.5 * (x * fy + y * fx);
            t[4] += 0.5 * (x * fz + z * fx);
            t[5] += 0.5 * (y * fz + z * fy);
            t[6] += q * (double)a.near_phi[s];
            t[7] += q * (double)a.far_phi[s];
        }
        memcpy(plan->cpu->partial + (size_t)row * FMM_PARTIAL, t, sizeof(t));
    }
    fmm_gather_rows(plan);
    memset(sum, 0, FMM_PARTIAL * sizeof(double));
    for (int row = 0; row < plan->cpu->partial_rows; row++)
    {
        for (int i = 0; i < FMM_PARTIAL; i++)
        {
            sum[i] += plan->cpu->partial[row * FMM_PARTIAL + i];
        }
    }
}

/*
 * The virial of the far field, excluded pairs still in it, unit 1/u (THEORY (23)): half of dE/dstrain, which is minus
 * sum y (x) F for the strain of positions within cells plus `strain` for that of displacements between cells; the trace
 * is -E/2, where a dipole's energy counts three times (THEORY (51)). Of dipoles it is the symmetric part.
 */
static void far_virial(const gmxfmm_plan*    plan,
                       const double*         y_force,
                       const double*         strain,
                       const fmm_moments*    m,
                       const fmm_background* bg,
                       double                energy,
                       double*               virial)
{
    for (int i = 0; i < 6; i++)
    {
        const int    a = fmm_tensor_row(i), b = fmm_tensor_column(i);
        const double k0_missing =
            fmm_is_bulk(plan) ? fmm_missing_strain(4 * FMM_PI / (5 * plan->domain.cells.box_volume),
                                                   plan->charges.total[0], m->dipole[a], m->dipole[b], m->quadrupole[i])
                              : 0;
        /* the background's forces act on positions from the root: - sum s (x) F beside - sum y (x) F from the leaf */
        const double lever =
            -2 * bg->c * (0.5 * (m->offset[a] * bg->d[b] + m->offset[b] * bg->d[a]) - bg->q * m->offset2[i]);
        virial[i] = 0.5 * (strain[i] + k0_missing + lever - y_force[i]);
    }
    const double shift = fmm_trace_shift(virial, -0.5 * energy);
    for (int d = 0; d < 3; d++)
    {
        virial[d] += shift;
    }
}

/* THEORY (51): of a turn of all positions dipoles lack the turn of their own, which is the work of their torques.
 * Quarters of their sums are the rest of the virial. */
static void turn_virial(const double* torques, double* virial)
{
    for (int d = 0; d < 3; d++)
    {
        virial[6 + d] = 0.25 * torques[d];
    }
}

static void store(const gmxfmm_plan* plan, void* array, size_t i, double value)
{
    if (plan->options.array_type == GMXFMM_DOUBLE)
    {
        ((double*)array)[i] = value;
    }
    else
    {
        ((float*)array)[i] = (float)value;
    }
}

/* Arrays in the caller's order and units; surface_field (caller's unit, without f) is added to all fields. Returns the
 * number of results that are not finite. */
static int write_arrays(
    const gmxfmm_plan* plan, fmm_wanted wanted, const void* x, const double* surface_field, gmxfmm_output* output)
{
    const fmm_particle_set* targets = fmm_targets(plan);
    const fmm_arrays        a       = fmm_arrays_of(targets);
    const int               field = wanted != FMM_POTENTIAL, potential = wanted != FMM_FIELD;
    const void*             place = plan->particles.num_targets == 0 ? x : plan->particles.target_x;
    const gmxfmm_precision  type  = plan->particles.num_targets == 0 ? plan->options.array_type : GMXFMM_DOUBLE;
    const double            f = plan->options.prefactor, f1 = 1 / plan->domain.cells.u, f2 = f1 * f1;
    const fmm_range         own = fmm_own_particles(plan, targets);
    int                     bad = 0;
#pragma omp parallel for schedule(static) num_threads(plan->num_threads) reduction(+ : bad)
    for (int s = own.begin; s < own.end; s++)
    {
        const size_t i   = (size_t)targets->sorted[s];
        double       phi = potential ? ((double)a.near_phi[s] + (double)a.far_phi[s]) * f1 : 0;
        bad += !(fabs(phi) < INFINITY);
        const double e[3] = {(double)a.ex[s] * f2 + surface_field[0], (double)a.ey[s] * f2 + surface_field[1],
                             (double)a.ez[s] * f2 + surface_field[2]};
        bad += field && !(fabs(e[0]) + fabs(e[1]) + fabs(e[2]) < INFINITY);
        for (int d = 0; d < 3 && output->force != NULL; d++)
        {
            store(plan, output->force, 3 * i + (size_t)d, f * (double)a.q[s] * e[d]);
        }
        for (int d = 0; d < 3 && output->field != NULL; d++)
        {
            store(plan, output->field, 3 * i + (size_t)d, f * e[d]);
        }
        double* const kept = output->charge_gradient != NULL ? fmm_kept_potential(&plan->derivatives, i) : NULL;
        for (int d = 0; d < 3 && (output->potential != NULL || kept != NULL); d++)
        {
            phi -= surface_field[d] != 0 ? surface_field[d] * fmm_number_of(place, type, (int64_t)(3 * i) + d) : 0;
        }
        if (output->potential != NULL)
        {
            store(plan, output->potential, i, f * phi);
        }
        if (kept != NULL)
        {
            *kept = f * phi;
        }
    }
    return bad;
}

/* Forces on charges and dipoles, torques and gradients of the field, the same. Returns the number that is not finite.
 */
static int write_dipoles(const gmxfmm_plan* plan, fmm_wanted wanted, const double* surface_field, gmxfmm_output* output)
{
    const fmm_particle_set* targets = fmm_targets(plan);
    const fmm_arrays        a       = fmm_arrays_of(targets);
    const fmm_dipole_arrays of      = fmm_dipole_arrays_of(targets);
    const double            f = plan->options.prefactor, f1 = 1 / plan->domain.cells.u, f2 = f1 * f1, f3 = f2 * f1;
    const int               gradient = fmm_wants_gradient(plan, wanted);
    int                     bad      = 0;
#pragma omp parallel for schedule(static) num_threads(plan->num_threads) reduction(+ : bad)
    for (int64_t s = 0; s < targets->n; s++)
    {
        const size_t i = (size_t)targets->sorted[s];
        double       force[3];
        for (size_t k = 0; k < 6 && gradient; k++)
        {
            const double g = (double)of.gradient[k][s];
            bad += !(fabs(g) < INFINITY);
            if (output->field_gradient != NULL)
            {
                store(plan, output->field_gradient, 6 * i + k, f * g * f3);
            }
        }
        if (output->force != NULL)
        {
            force_on_dipole(&a, &of, (int)s, force);
        }
        for (size_t d = 0; d < 3 && output->force != NULL; d++)
        {
            store(plan, output->force, 3 * i + d, f * (force[d] * f2 + (double)a.q[s] * surface_field[d]));
        }
        if (output->torque != NULL)
        {
            const double mu[3] = {(double)of.mu[0][s], (double)of.mu[1][s], (double)of.mu[2][s]};
            const double e[3]  = {(double)a.ex[s] * f2 + surface_field[0], (double)a.ey[s] * f2 + surface_field[1],
                                  (double)a.ez[s] * f2 + surface_field[2]};
            for (int d = 0; d < 3; d++)
            {
                const int next = (d + 1) % 3, last = (d + 2) % 3;
                store(plan, output->torque, 3 * i + (size_t)d, f * (mu[next] * e[last] - mu[last] * e[next]) / f1);
            }
        }
    }
    return bad;
}

/* Larger charges have fields that overflow in the step's precision at ordinary distances. */
static const double c_hugeCharge = sizeof(real) == sizeof(double) ? 1e150 : 1e30;

/* Why a result is not finite: a charge that is too large, or two particles at one place. */
static gmxfmm_status not_finite(gmxfmm_plan* plan, fmm_wanted wanted)
{
    for (int64_t i = 0; i < plan->particles.n; i++)
    {
        if (fabs(plan->charges.q[i]) > c_hugeCharge)
        {
            return fmm_fail(plan, GMXFMM_ERROR_CHARGE, "charge of particle %lld is %g: choose another unit of charge",
                            fmm_particle_name(plan, i), plan->charges.q[i]);
        }
    }
    for (int64_t i = 0; i < 3 * plan->particles.n && fmm_has_dipoles(plan); i++)
    {
        if (fabs(plan->charges.mu[i]) > c_hugeCharge)
        {
            return fmm_fail(plan, GMXFMM_ERROR_CHARGE, "dipole of particle %lld has %g: choose another unit of charge",
                            fmm_particle_name(plan, i / 3), plan->charges.mu[i]);
        }
    }
    const fmm_particle_set* targets = fmm_targets(plan);
    const fmm_arrays        a       = fmm_arrays_of(targets);
    const fmm_range         own     = fmm_own_particles(plan, targets);
    for (int s = own.begin; s < own.end; s++)
    {
        if ((wanted != FMM_POTENTIAL && !isfinite(a.ex[s])) || (wanted != FMM_FIELD && !isfinite(a.near_phi[s])))
        {
            return plan->particles.num_targets == 0
                       ? fmm_fail(plan, GMXFMM_ERROR_COINCIDENT,
                                  "particle %lld stands where another one does, and they do not exclude each other",
                                  fmm_particle_name(plan, targets->sorted[s]))
                       : fmm_fail(plan, GMXFMM_ERROR_COINCIDENT, "target %d stands where a particle does",
                                  targets->sorted[s]);
        }
    }
    return fmm_fail(plan, GMXFMM_ERROR_POSITION, "forces are not finite");
}

/* Energies and virial in the caller's units. */
static void write_sums(const gmxfmm_plan* plan,
                       double             near,
                       double             far,
                       const double*      virial,
                       const fmm_moments* moments,
                       gmxfmm_output*     output)
{
    const double*    surface = moments->surface;
    const double     f = plan->options.prefactor, f1 = 1 / plan->domain.cells.u;
    const double     volume     = fmm_determinant(plan->domain.box);
    const double     d2         = surface[0] * surface[0] + surface[1] * surface[1] + surface[2] * surface[2];
    const double     e_surface  = plan->options.boundary == GMXFMM_VACUUM ? 2 * FMM_PI / (3 * volume) * d2 : 0;
    static const int c_place[9] = {0, 3, 4, 3, 1, 5, 4, 5, 2};
    static const int c_turn[9] = {-1, 8, 7, 8, -1, 6, 7, 6, -1}, c_sign[9] = {0, 1, -1, -1, 0, 1, 1, -1, 0};
    if (output->want_energy)
    {
        output->energy_near = f * near * f1;
        output->energy_far  = f * (far * f1 + e_surface);
    }
    for (int i = 0; i < 9 && output->want_virial; i++)
    {
        output->virial[i] = f * virial[c_place[i]] * f1;
        if (fmm_has_dipoles(plan) && c_sign[i] != 0)
        {
            output->virial[i] += f * c_sign[i] * virial[c_turn[i]] * f1;
        }
        if (e_surface != 0)
        {
            const double strained = surface[i / 3] - moments->mu[i / 3]; /* of the charges alone */
            output->virial[i] +=
                f * 0.5 * (4 * FMM_PI / (3 * volume) * strained * surface[i % 3] - (i % 4 == 0 ? e_surface : 0));
        }
    }
}

/* The sums of dq phi of each parameter, from the potentials that were kept. */
static void write_gradient(const gmxfmm_plan* plan, double* gradient)
{
    const fmm_charge_derivatives* d = &plan->derivatives;
#pragma omp parallel for schedule(static) num_threads(plan->num_threads) if (d->num > 1000)
    for (int k = 0; k < d->num; k++)
    {
        double sum = 0;
        for (int j = d->start[k]; j < d->start[k + 1]; j++)
        {
            sum += d->dq[j] * d->phi[d->entry[j]];
        }
        gradient[k] = sum;
    }
}

gmxfmm_status
fmm_output(gmxfmm_plan* plan, fmm_wanted wanted, const void* x, const fmm_step_sums* sums, gmxfmm_output* output)
{
    double    after[FMM_PARTIAL] = {0}, virial[9] = {0}, near = 0, far = 0, surface_field[3] = {0};
    const int far_first = fmm_far_is_first(plan, wanted);
    if (output->want_energy || output->want_virial)
    {
        fmm_particle_sums(plan, after);
        const double of_dipoles = far_first ? sums->first[8] : after[8] - sums->first[8];
        near                    = 0.5 * (after[6] - (after[8] - of_dipoles));
        far                     = 0.5 * (after[7] - of_dipoles);
    }
    if (output->want_virial)
    {
        for (int i = 0; i < 6; i++)
        {
            after[i] = far_first ? sums->first[i] : after[i] - sums->first[i];
        }
        const double degree = far + (2 * far - after[7]); /* energies times what they are of 1 / length */
        far_virial(plan, after, sums->strain, &sums->moments, &sums->background, degree, virial);
        turn_virial(after + 9, virial);
    }
    fmm_far_pairs(plan, wanted, &far, virial);
    for (int d = 0; d < 3; d++)
    {
        virial[d] += sums->near_virial[d];
        virial[3 + d] += sums->near_virial[3 + d];
        surface_field[d] = plan->options.boundary == GMXFMM_VACUUM
                               ? -4 * FMM_PI / (3 * fmm_determinant(plan->domain.box)) * sums->moments.surface[d]
                               : 0;
    }
    write_sums(plan, near, far, virial, &sums->moments, output);
    int bad = write_arrays(plan, wanted, x, surface_field, output);
    bad += fmm_has_dipoles(plan) ? write_dipoles(plan, wanted, surface_field, output) : 0;
    if (bad > 0)
    {
        return not_finite(plan, wanted);
    }
    if (output->charge_gradient != NULL)
    {
        write_gradient(plan, output->charge_gradient);
    }
    return GMXFMM_OK;
}
