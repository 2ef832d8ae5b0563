/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Excluded pairs of far cells: the row of each particle is summed up and taken off. A pair is in the rows of both of
 * its particles, so that threads write to their own particles alone, and sums have the same bits whatever their number.
 * Positions are in double precision in either: what is taken off is most of what is there.
 */
#include "fmm/cpu/near/far_pairs.h"

#include <math.h>
#include <string.h>

#include "fmm/cpu/ranks.h"

#define DIPOLE_T double
#define DIPOLE_R double
#include "fmm/math/dipoles.h"

enum
{
    c_virial = 9, /* of a row: virial, energy */
    c_energy = c_virial,
    c_taken  = c_energy + 1
};

/* Of one particle over its row: phi, field, q r r^T / r^3 (xx, yy, zz, xy, xz, yz). */
enum
{
    c_phi,
    c_field,
    c_square = 4,
    c_sums   = 10
};

/* In an open system these are the caller's own numbers where the step has all their digits (fmm_has_given), in a unit
 * of their own, which is returned in u. */
static double set_places(const gmxfmm_plan* plan, double (*at)[4])
{
    const fmm_particle_set* p     = &plan->cpu->sources;
    const fmm_arrays        a     = fmm_arrays_of(p);
    const real*             x[3]  = {a.x, a.y, a.z};
    const int               given = fmm_has_given(plan);
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (int s = 0; s < plan->particles.n; s++)
    {
        double centre[3], y[3] = {0, 0, 0};
        if (!given)
        {
            fmm_cell_centre(plan, p->cell_of[p->sorted[s]], centre);
            fmm_cartesian(plan->domain.cells.cell, centre, y);
        }
        for (int d = 0; d < 3; d++)
        {
            at[s][d] = given ? (double)((const real*)p->given[d])[s] : y[d] + (double)x[d][s];
        }
        at[s][3] = (double)a.q[s];
    }
    return given ? 1 / (fmm_given_scale(plan) * plan->domain.cells.u) : 1;
}

/* Sums over the row begin .. end - 1 of the particle at here[3]. */
static inline void
sum_row(const fmm_cpu* cpu, const double (*box)[3], const double* here, int begin, int end, int virial, double* out)
{
    const double(*const at)[4]   = (const double(*)[4])cpu->far_places;
    const int* const      mask   = cpu->mask;
    const unsigned* const images = cpu->images;
    double                phi = 0, ex = 0, ey = 0, ez = 0, xx = 0, yy = 0, zz = 0, xy = 0, xz = 0, yz = 0;
#pragma omp simd reduction(+ : phi, ex, ey, ez, xx, yy, zz, xy, xz, yz)
    for (int e = begin; e < end; e++)
    {
        const double* other = at[mask[e]];
        const double  k = fmm_image(images[e], 0), l = fmm_image(images[e], 1), m = fmm_image(images[e], 2);
        const double  x    = here[0] - other[0] - (k * box[0][0] + l * box[1][0] + m * box[2][0]);
        const double  y    = here[1] - other[1] - (k * box[0][1] + l * box[1][1] + m * box[2][1]);
        const double  z    = here[2] - other[2] - (k * box[0][2] + l * box[1][2] + m * box[2][2]);
        const double  r2   = x * x + y * y + z * z;
        const double  qinv = other[3] / sqrt(r2), f = qinv / r2;
        phi += qinv;
        ex += f * x;
        ey += f * y;
        ez += f * z;
        if (virial)
        {
            xx += f * x * x;
            yy += f * y * y;
            zz += f * z * z;
            xy += f * x * y;
            xz += f * x * z;
            yz += f * y * z;
        }
    }
    const double sums[c_sums] = {phi, ex, ey, ez, xx, yy, zz, xy, xz, yz};
    memcpy(out, sums, sizeof(sums));
}

/* Particle s of a plan with dipoles; sum: energy and virial of its row. */
static void
take_dipoles(const gmxfmm_plan* plan, const double (*box)[3], double unit, int s, fmm_wanted wanted, double* sum)
{
    const fmm_cpu*          cpu = plan->cpu;
    const fmm_arrays        a   = fmm_arrays_of(&cpu->sources);
    const fmm_dipole_arrays of  = fmm_dipole_arrays_of(&cpu->sources);
    const double            q = (double)a.q[s], *here = cpu->far_places[s];
    const dipole_vector     mu  = {(double)of.mu[0][s], (double)of.mu[1][s], (double)of.mu[2][s]};
    dipole_vector           e   = {0, 0, 0};
    double                  phi = 0, gradient[6] = {0, 0, 0, 0, 0, 0}, lever[6] = {0, 0, 0, 0, 0, 0};
    for (int k = cpu->mask_far[s]; k < cpu->mask_start[s + 1]; k++)
    {
        const int    j        = cpu->mask[k];
        const double image[3] = {fmm_image(cpu->images[k], 0), fmm_image(cpu->images[k], 1),
                                 fmm_image(cpu->images[k], 2)};
        double       r[3];
        for (int d = 0; d < 3; d++)
        {
            const double shift = image[0] * box[0][d] + image[1] * box[1][d] + image[2] * box[2][d];
            r[d]               = (here[d] - cpu->far_places[j][d] - shift) * unit;
        }
        const dipole_vector at    = {r[0], r[1], r[2]},
                            other = {(double)of.mu[0][j], (double)of.mu[1][j], (double)of.mu[2][j]};
        const double        w = 1 / sqrt(dipole_dot(at, at)), w2 = w * w;
        const dipole_source from  = dipole_see(cpu->far_places[j][3], other, at, w);
        const dipole_vector field = dipole_field(&from);
        phi += from.potential * w;
        e.x += field.x * w2;
        e.y += field.y * w2;
        e.z += field.z * w2;
        dipole_add_gradient(&from, w2 * w, gradient);
        dipole_add_lever(&from, dipole_force(&from, q, dipole_times(mu, w)), w, lever);
    }
    dipole_end_gradient(gradient);
    a.far_phi[s] -= (real)phi;
    a.ex[s] -= (real)e.x;
    a.ey[s] -= (real)e.y;
    a.ez[s] -= (real)e.z;
    for (int i = 0; i < 6 && fmm_wants_gradient(plan, wanted); i++)
    {
        of.gradient[i][s] -= (real)gradient[i];
        sum[i] += 0.25 * lever[i]; /* every pair is counted twice */
    }
    sum[6] -= 0.25 * (mu.y * e.z - mu.z * e.y);
    sum[7] -= 0.25 * (mu.z * e.x - mu.x * e.z);
    sum[8] -= 0.25 * (mu.x * e.y - mu.y * e.x);
    sum[c_energy] -= 0.5 * (q * phi - dipole_dot(mu, e));
}

/* Particle s; sum: energy and virial of its row. */
static inline void
take_row(const gmxfmm_plan* plan, const double (*box)[3], double unit, int s, fmm_wanted wanted, double* sum)
{
    const fmm_cpu*   cpu = plan->cpu;
    const fmm_arrays a   = fmm_arrays_of(&cpu->sources);
    const double     one = 1 / unit, two = one * one;
    double           out[c_sums];
    if (wanted == FMM_VIRIAL)
    {
        sum_row(cpu, box, cpu->far_places[s], cpu->mask_far[s], cpu->mask_start[s + 1], 1, out);
    }
    else
    {
        sum_row(cpu, box, cpu->far_places[s], cpu->mask_far[s], cpu->mask_start[s + 1], 0, out);
    }
    if (wanted != FMM_FIELD)
    {
        a.far_phi[s] -= (real)(out[c_phi] * one);
    }
    if (wanted != FMM_POTENTIAL)
    {
        a.ex[s] -= (real)(out[c_field] * two);
        a.ey[s] -= (real)(out[c_field + 1] * two);
        a.ez[s] -= (real)(out[c_field + 2] * two);
    }
    /* every pair is counted twice */
    sum[c_energy] -= 0.5 * (double)a.q[s] * out[c_phi] * one;
    for (int i = 0; i < 6; i++)
    {
        sum[i] += 0.25 * (double)a.q[s] * out[c_square + i] * one;
    }
}

void fmm_far_pairs(gmxfmm_plan* plan, fmm_wanted wanted, double* energy, double* virial)
{
    const fmm_cells* c     = &plan->domain.cells;
    const int*       start = plan->cpu->sources.cell_start;
    const int        rows = plan->cpu->partial_rows, dipoles = fmm_has_dipoles(plan);
    const fmm_range  own = fmm_own_rows(plan);
    double           box[3][3];
    if (!plan->cpu->any_far && !plan->cpu->shares.any_far)
    {
        return;
    }
    for (int i = 0; i < 9; i++)
    {
        box[i / 3][i % 3] = c->n[i / 3] * c->cell[i];
    }
    const double unit = plan->cpu->any_far ? set_places(plan, plan->cpu->far_places) : 1;
#pragma omp parallel for schedule(dynamic) num_threads(plan->num_threads)
    for (int row = own.begin; row < own.end; row++)
    {
        double    t[c_taken] = {0};
        const int begin = start[fmm_row_cell(plan, row)], end = start[fmm_row_cell(plan, row + 1)];
        for (int s = begin; s < end && plan->cpu->any_far; s++)
        {
            if (plan->cpu->mask_far[s] >= plan->cpu->mask_start[s + 1])
            {
                continue;
            }
            if (dipoles)
            {
                take_dipoles(plan, (const double(*)[3])box, unit, s, wanted, t);
            }
            else
            {
                take_row(plan, (const double(*)[3])box, unit, s, wanted, t);
            }
        }
        memcpy(plan->cpu->partial + (size_t)row * FMM_PARTIAL, t, sizeof(t));
    }
    fmm_gather_rows(plan);
    for (int row = 0; row < rows; row++)
    {
        const double* t = plan->cpu->partial + (size_t)row * FMM_PARTIAL;
        *energy += t[c_energy];
        for (int i = 0; i < c_virial && wanted == FMM_VIRIAL; i++)
        {
            virial[i] += t[i];
        }
    }
}
