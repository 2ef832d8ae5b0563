/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The stages of a step in order, and what goes in and comes out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "m2l_fft.h"
#include "step.h"

static const double c_pi = 3.14159265358979323846;

/* Sums over particles that the stages need. */
typedef struct
{
    double dipole[3];     /* sum q y, y from the cells' centres, unit u */
    double quadrupole[6]; /* sum q y y^T: xx, yy, zz, xy, xz, yz */
    double surface[3];    /* sum q x, caller's unit */
    int    bad;           /* positions that are not finite */
} moments;

gmxfmm_status FN(fmm_step_reserve)(gmxfmm_plan* plan)
{
    const size_t bytes = (FN(fmm_p2p_scratch)(plan) + 2 * FMM_ALIGN - 1) / FMM_ALIGN * FMM_ALIGN;
    if (bytes > plan->scratch_bytes)
    {
        free(plan->scratch);
        plan->bytes -= plan->scratch_bytes * (size_t)plan->num_threads;
        const size_t before = plan->bytes, wanted = bytes + bytes / 8; /* density fluctuates from search to search */
        plan->scratch_bytes = wanted / FMM_ALIGN * FMM_ALIGN;
        plan->scratch       = fmm_alloc(plan, plan->scratch_bytes * (size_t)plan->num_threads);
        plan->bytes         = before + plan->scratch_bytes * (size_t)plan->num_threads;
        if (plan->scratch == NULL)
        {
            plan->scratch_bytes = 0;
            return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for near lists");
        }
    }
    return GMXFMM_OK;
}

static double caller_value(const gmxfmm_plan* plan, const void* x, size_t i)
{
    return plan->options.array_type == GMXFMM_DOUBLE ? ((const double*)x)[i] : (double)((const float*)x)[i];
}

/* First item of a slab when num items are shared out to the rows of plan->partial. */
static size_t slab(const gmxfmm_plan* plan, size_t num, int row)
{
    return num * (size_t)row / (size_t)plan->partial_rows;
}

/* Positions of one cell relative to its centre, the image being the one nearest to where it stood at assign. */
static void permute_cell(const gmxfmm_plan* plan, const void* x, int cell, int want_surface, double* sum)
{
    const fmm_cells* c     = &plan->cells;
    const FN(fmm_arrays) a = FN(fmm_arrays_of)(plan);
    const double centre[3] = {cell / (c->n[1] * c->n[2]) + 0.5, cell / c->n[2] % c->n[1] + 0.5, cell % c->n[2] + 0.5};
    for (int s = plan->cell_start[cell]; s < plan->cell_start[cell + 1]; s++)
    {
        const size_t i = (size_t)plan->sorted[s];
        const double q = plan->charge[i];
        double       xi[3], t[3], y[3];
        for (int d = 0; d < 3; d++)
        {
            xi[d] = caller_value(plan, x, 3 * i + (size_t)d) - c->origin[d];
        }
        for (int d = 0; d < 3; d++)
        {
            t[d] = xi[0] * c->to_cells[d] + xi[1] * c->to_cells[3 + d] + xi[2] * c->to_cells[6 + d] - centre[d];
            if (c->periodic)
            {
                t[d] -= c->n[d] * rint((t[d] - (double)plan->p.reference[s][d]) / c->n[d]);
            }
        }
        for (int d = 0; d < 3; d++)
        {
            y[d] = t[0] * c->cell[d] + t[1] * c->cell[3 + d] + t[2] * c->cell[6 + d];
            sum[d] += q * y[d];
            sum[3 + d] += q * y[d] * y[d];
            sum[9 + d] += want_surface ? q * (xi[d] + c->origin[d]) : 0;
            /* a particle 100 cells from its own has no expansion; NaN fails the comparison too */
            sum[12] += fabs(y[d]) < 100 * c->lambda ? 0 : 1;
        }
        sum[6] += q * y[0] * y[1];
        sum[7] += q * y[0] * y[2];
        sum[8] += q * y[1] * y[2];
        a.x[s] = (real)y[0];
        a.y[s] = (real)y[1];
        a.z[s] = (real)y[2];
        a.q[s] = (real)q;
    }
}

static moments permute(gmxfmm_plan* plan, const void* x)
{
    moments      m       = {{0}, {0}, {0}, 0};
    const size_t cells   = (size_t)plan->cells.num_cells;
    const int    surface = plan->options.boundary == GMXFMM_VACUUM;
    memset(plan->partial, 0, (size_t)plan->partial_rows * FMM_PARTIAL * sizeof(double));
#pragma omp parallel for schedule(dynamic, 4) num_threads(plan->num_threads)
    for (int row = 0; row < plan->partial_rows; row++)
    {
        for (size_t cell = slab(plan, cells, row); cell < slab(plan, cells, row + 1); cell++)
        {
            permute_cell(plan, x, (int)cell, surface, plan->partial + (size_t)row * FMM_PARTIAL);
        }
    }
    for (int row = 0; row < plan->partial_rows; row++)
    {
        const double* sum = plan->partial + (size_t)row * FMM_PARTIAL;
        for (int d = 0; d < 3; d++)
        {
            m.dipole[d] += sum[d];
            m.quadrupole[d] += sum[3 + d];
            m.quadrupole[3 + d] += sum[6 + d];
            m.surface[d] += sum[9 + d];
        }
        m.bad += sum[12] > 0;
    }
    return m;
}

/* Sums over sorted particles into sum[FMM_PARTIAL]: 0..5 sym y (x) q E, 6 q phi near, 7 q phi far, 8 not finite. */
static void particle_sums(gmxfmm_plan* plan, double* sum)
{
    const FN(fmm_arrays) a = FN(fmm_arrays_of)(plan);
    memset(plan->partial, 0, (size_t)plan->partial_rows * FMM_PARTIAL * sizeof(double));
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (int row = 0; row < plan->partial_rows; row++)
    {
        double t[FMM_PARTIAL] = {0};
        for (size_t s = slab(plan, (size_t)plan->n, row); s < slab(plan, (size_t)plan->n, row + 1); s++)
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
        memcpy(plan->partial + (size_t)row * FMM_PARTIAL, t, sizeof(t));
    }
    memset(sum, 0, FMM_PARTIAL * sizeof(double));
    for (int row = 0; row < plan->partial_rows; row++)
    {
        for (int i = 0; i < FMM_PARTIAL; i++)
        {
            sum[i] += plan->partial[row * FMM_PARTIAL + i];
        }
    }
}

/* Strain derivative of the lattice part in the form xx, yy, zz, xy, xz, yz (traceless) from w of the convolution. */
static void unpack_strain(const double* w, double* strain)
{
    strain[0] = 0.5 * (w[0] - w[4]);
    strain[1] = 0.5 * (-w[0] - w[4]);
    strain[2] = w[4];
    strain[3] = 0.5 * w[1];
    strain[4] = 0.5 * w[2];
    strain[5] = 0.5 * w[3];
}

/* Takes the trace off and sets it to `trace`. */
static void set_trace(double* t, double trace)
{
    const double shift = (trace - t[0] - t[1] - t[2]) / 3;
    for (int d = 0; d < 3; d++)
    {
        t[d] += shift;
    }
}

/*
 * Far virial without pairs left out, unit 1/u (THEORY (23)): half of dE/dstrain, which is minus sum y (x) F for the
 * strain of positions within cells plus the strain derivative of the lattice sums; the trace is -E/2.
 */
static void far_virial(
    const gmxfmm_plan* plan, const double* y_force, const double* w, const moments* m, double energy, double* virial)
{
    static const int c_row[6] = {0, 1, 2, 0, 0, 1}, c_column[6] = {0, 1, 2, 1, 2, 2};
    double           strain[6];
    unpack_strain(w, strain);
    for (int i = 0; i < 6; i++)
    {
        const double background =
            plan->periodic ? -4 * c_pi / (5 * plan->cells.cell_volume * plan->cells.num_cells) *
                                 (plan->total_charge * m->quadrupole[i] - m->dipole[c_row[i]] * m->dipole[c_column[i]])
                           : 0;
        virial[i] = 0.5 * (strain[i] + background - y_force[i]);
    }
    set_trace(virial, -0.5 * energy);
}

/* Takes pairs left out whose cells are far off potentials, fields, energy and virial (xx, yy, zz, xy, xz, yz). */
static void take_far_pairs(gmxfmm_plan* plan, double* energy, double* virial)
{
    const FN(fmm_arrays) a = FN(fmm_arrays_of)(plan);
    const double* b        = plan->cells.cell;
    for (int e = 0; e < plan->num_far_pairs; e++)
    {
        const fmm_far_pair* pair = plan->far_pairs + e;
        const int           i = pair->i, j = pair->j;
        double              r[3] = {(double)a.x[i] - (double)a.x[j], (double)a.y[i] - (double)a.y[j],
                                    (double)a.z[i] - (double)a.z[j]};
        for (int d = 0; d < 3; d++)
        {
            r[d] += pair->offset[0] * b[d] + pair->offset[1] * b[3 + d] + pair->offset[2] * b[6 + d];
        }
        const double inv = 1 / sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]), inv3 = inv * inv * inv;
        const double qi = (double)a.q[i], qj = (double)a.q[j];
        a.far_phi[i] -= (real)(qj * inv);
        a.far_phi[j] -= (real)(qi * inv);
        a.ex[i] -= (real)(qj * inv3 * r[0]);
        a.ey[i] -= (real)(qj * inv3 * r[1]);
        a.ez[i] -= (real)(qj * inv3 * r[2]);
        a.ex[j] += (real)(qi * inv3 * r[0]);
        a.ey[j] += (real)(qi * inv3 * r[1]);
        a.ez[j] += (real)(qi * inv3 * r[2]);
        *energy -= qi * qj * inv;
        const double f = 0.5 * qi * qj * inv3;
        virial[0] += f * r[0] * r[0];
        virial[1] += f * r[1] * r[1];
        virial[2] += f * r[2] * r[2];
        virial[3] += f * r[0] * r[1];
        virial[4] += f * r[0] * r[2];
        virial[5] += f * r[1] * r[2];
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

/* Results in the caller's order and units; surface_field (caller's unit, without f) is added to all. */
static int write_output(const gmxfmm_plan* plan, const void* x, const double* surface_field, gmxfmm_output* output)
{
    const FN(fmm_arrays) a = FN(fmm_arrays_of)(plan);
    const double f = plan->options.prefactor, f1 = 1 / plan->cells.u, f2 = f1 * f1;
    int          bad = 0;
#pragma omp parallel for schedule(static) num_threads(plan->num_threads) reduction(+ : bad)
    for (int64_t s = 0; s < plan->n; s++)
    {
        const size_t i    = (size_t)plan->sorted[s];
        const double e[3] = {(double)a.ex[s] * f2 + surface_field[0], (double)a.ey[s] * f2 + surface_field[1],
                             (double)a.ez[s] * f2 + surface_field[2]};
        bad += !(fabs(e[0]) + fabs(e[1]) + fabs(e[2]) < INFINITY);
        for (int d = 0; d < 3; d++)
        {
            if (output->force != NULL)
            {
                store(plan, output->force, 3 * i + (size_t)d, f * (double)a.q[s] * e[d]);
            }
            if (output->field != NULL)
            {
                store(plan, output->field, 3 * i + (size_t)d, f * e[d]);
            }
        }
        if (output->potential != NULL)
        {
            double phi = ((double)a.near_phi[s] + (double)a.far_phi[s]) * f1;
            for (int d = 0; d < 3; d++)
            {
                phi -= surface_field[d] != 0 ? surface_field[d] * caller_value(plan, x, 3 * i + (size_t)d) : 0;
            }
            store(plan, output->potential, i, f * phi);
        }
    }
    return bad;
}

static gmxfmm_status coincident(gmxfmm_plan* plan)
{
    const FN(fmm_arrays) a = FN(fmm_arrays_of)(plan);
    for (int64_t s = 0; s < plan->n; s++)
    {
        if (!isfinite(a.ex[s]) || !isfinite(a.near_phi[s]))
        {
            return fmm_fail(plan, GMXFMM_ERROR_COINCIDENT,
                            "particle %d stands where another one does, and they do not exclude each other",
                            plan->sorted[s]);
        }
    }
    return fmm_fail(plan, GMXFMM_ERROR_POSITION, "forces are not finite");
}

/* Energies and virial in the caller's units. */
static void write_sums(const gmxfmm_plan* plan,
                       double             near,
                       double             far,
                       const double*      virial,
                       const double*      surface,
                       gmxfmm_output*     output)
{
    const double     f = plan->options.prefactor, f1 = 1 / plan->cells.u;
    const double     volume     = fmm_determinant(plan->box);
    const double     d2         = surface[0] * surface[0] + surface[1] * surface[1] + surface[2] * surface[2];
    const double     e_surface  = plan->options.boundary == GMXFMM_VACUUM ? 2 * c_pi / (3 * volume) * d2 : 0;
    static const int c_place[9] = {0, 3, 4, 3, 1, 5, 4, 5, 2};
    if (output->want_energy)
    {
        output->energy_near = f * near * f1;
        output->energy_far  = f * (far * f1 + e_surface);
    }
    for (int i = 0; i < 9 && output->want_virial; i++)
    {
        output->virial[i] = f * virial[c_place[i]] * f1;
        if (e_surface != 0)
        {
            output->virial[i] +=
                f * 0.5 * (4 * c_pi / (3 * volume) * surface[i / 3] * surface[i % 3] - (i % 4 == 0 ? e_surface : 0));
        }
    }
}

/* Adds the time since *from to *sum and starts anew. */
static void lap(double* from, double* sum)
{
    const double now = fmm_time();
    *sum += now - *from;
    *from = now;
}

gmxfmm_status FN(fmm_step)(gmxfmm_plan* plan, const void* x, gmxfmm_output* output)
{
    struct FN(fmm_convolution)* conv = plan->FN(conv);
    gmxfmm_info* info                = &plan->info;
    double       near_virial[6] = {0}, virial[6] = {0}, w[5] = {0}, before[FMM_PARTIAL] = {0}, after[FMM_PARTIAL] = {0};
    double       clock = fmm_time();

    const moments m = permute(plan, x);
    if (m.bad)
    {
        return fmm_fail(plan, GMXFMM_ERROR_POSITION, "a position is not finite, or has moved 100 cells since assign");
    }
    lap(&clock, &info->time_permute);

    FN(fmm_p2p)(plan, output->want_virial ? near_virial : NULL);
    if (output->want_virial)
    {
        particle_sums(plan, before);
    }
    lap(&clock, &info->time_near);

    FN(fmm_p2m)(plan, conv->field, conv->cell_stride);
    lap(&clock, &info->time_p2m);
    if (output->want_virial)
    {
        FN(fmm_m2l_fft_virial)(plan, conv, w);
    }
    else
    {
        FN(fmm_m2l_fft)(plan, conv);
    }
    lap(&clock, &info->time_m2l);

    fmm_background background = {0,
                                 plan->total_charge,
                                 {m.dipole[0], m.dipole[1], m.dipole[2]},
                                 m.quadrupole[0] + m.quadrupole[1] + m.quadrupole[2]};
    if (plan->periodic)
    {
        background.c = 2 * c_pi / (3 * plan->cells.cell_volume * plan->cells.num_cells);
    }
    FN(fmm_l2p)(plan, conv->field, conv->cell_stride, &background);
    lap(&clock, &info->time_l2p);

    double far = 0;
    if (output->want_energy || output->want_virial)
    {
        particle_sums(plan, after);
        far = 0.5 * after[7];
    }
    if (output->want_virial)
    {
        for (int i = 0; i < 6; i++)
        {
            after[i] -= before[i];
        }
        far_virial(plan, after, w, &m, far, virial);
    }
    take_far_pairs(plan, &far, virial);
    double surface_field[3] = {0};
    for (int d = 0; d < 3; d++)
    {
        virial[d] += near_virial[d];
        virial[3 + d] += near_virial[3 + d];
        surface_field[d] =
            plan->options.boundary == GMXFMM_VACUUM ? -4 * c_pi / (3 * fmm_determinant(plan->box)) * m.surface[d] : 0;
    }
    write_sums(plan, 0.5 * after[6], far, virial, m.surface, output);
    const int bad = write_output(plan, x, surface_field, output);
    lap(&clock, &info->time_output);
    return bad ? coincident(plan) : GMXFMM_OK;
}
