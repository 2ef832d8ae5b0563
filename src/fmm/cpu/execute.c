/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The stages of a step in order, and what goes in and comes out. */
#include "fmm/cpu/execute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/math/harmonics.h"
#include "fmm/cpu/convolution/m2l_fft.h"
#include "fmm/cpu/octree/operators.h"
#include "fmm/cpu/step.h"

/* Sums over charges that the stages need. y is the position from the centre of the cell, or on an octree of its root, s
 * the way there from the centre of the leaf; unit u. */
typedef struct
{
    double dipole[3];     /* sum q y */
    double quadrupole[6]; /* sum q y y^T: xx, yy, zz, xy, xz, yz */
    double offset[3];     /* sum q s */
    double offset2[6];    /* sum q sym(s y^T) */
    double surface[3];    /* sum q x, caller's unit */
    double bad;           /* positions that are not finite */
} moments;

static const int c_row[6] = {0, 1, 2, 0, 0, 1}, c_column[6] = {0, 1, 2, 1, 2, 2};

gmxfmm_status fmm_step_reserve(gmxfmm_plan* plan)
{
    const size_t bytes = (fmm_p2p_scratch(plan) + 2 * FMM_ALIGN - 1) / FMM_ALIGN * FMM_ALIGN;
    if (bytes > plan->cpu->scratch_bytes)
    {
        free(plan->cpu->scratch);
        plan->bytes -= plan->cpu->scratch_bytes * (size_t)plan->num_threads;
        const size_t before = plan->bytes, wanted = bytes + bytes / 8; /* density fluctuates from search to search */
        plan->cpu->scratch_bytes = wanted / FMM_ALIGN * FMM_ALIGN;
        plan->cpu->scratch       = fmm_alloc(plan, plan->cpu->scratch_bytes * (size_t)plan->num_threads);
        plan->bytes              = before + plan->cpu->scratch_bytes * (size_t)plan->num_threads;
        if (plan->cpu->scratch == NULL)
        {
            plan->cpu->scratch_bytes = 0;
            return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for near lists");
        }
    }
    return GMXFMM_OK;
}

void fmm_sort_charges(gmxfmm_plan* plan)
{
    const fmm_particle_set* p = &plan->cpu->sources;
    real*                   q = p->q;
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (int64_t s = 0; s < p->n; s++)
    {
        p->charge[s] = plan->charges.q[p->sorted[s]];
        q[s]         = (real)p->charge[s];
    }
}

static double value_at(const void* x, gmxfmm_precision type, size_t i)
{
    return type == GMXFMM_DOUBLE ? ((const double*)x)[i] : (double)((const float*)x)[i];
}

/* First item of a slab when num items are shared out to the rows of plan->cpu->partial. */
static size_t slab(const gmxfmm_plan* plan, size_t num, int row)
{
    return num * (size_t)row / (size_t)plan->cpu->partial_rows;
}

/* Moments about the root from the charge, dipole and quadrupole of a leaf about its own centre, s away. */
static void shift_moments(double q, const double* s, const moments* leaf, moments* m)
{
    for (int d = 0; d < 3; d++)
    {
        m->dipole[d] += leaf->dipole[d] + q * s[d];
        m->offset[d] += q * s[d];
        m->surface[d] += leaf->surface[d];
    }
    for (int i = 0; i < 6; i++)
    {
        const int    a = c_row[i], b = c_column[i];
        const double cross = 0.5 * (s[a] * leaf->dipole[b] + s[b] * leaf->dipole[a]), square = q * s[a] * s[b];
        m->quadrupole[i] += leaf->quadrupole[i] + 2 * cross + square;
        m->offset2[i] += cross + square;
    }
    m->bad += leaf->bad;
}

enum
{
    c_block = 64 /* particles that permute does at once, in whole vectors */
};

/* Asks for the position of particle s, which may stand anywhere in the caller's array. */
static inline void prefetch(const fmm_particle_set* p, const void* x, gmxfmm_precision type, int64_t s)
{
    if (s < p->n)
    {
        const size_t size = type == GMXFMM_DOUBLE ? sizeof(double) : sizeof(float);
        __builtin_prefetch((const char*)x + 3 * (size_t)p->sorted[s] * size);
    }
}

/* Particles s .. s + count - 1: position less the origin, charge, and position in the cell at assign; up to the next
 * whole vector the last one once more, without charge. Returns their number with these. */
INLINE int load_block(const gmxfmm_plan*      plan,
                      const fmm_particle_set* p,
                      const void*             x,
                      gmxfmm_precision        type,
                      int                     s,
                      int                     count,
                      double                  xi[3][c_block],
                      double*                 q,
                      double                  reference[3][c_block])
{
    const int whole = FMM_VBYTES / (int)sizeof(double), num = (count + whole - 1) / whole * whole;
    for (int l = 0; l < num; l++)
    {
        const int    from = s + (l < count ? l : count - 1);
        const size_t i    = (size_t)p->sorted[from];
        prefetch(p, x, type, (int64_t)from + c_block);
        q[l] = p->charge != NULL && l < count ? p->charge[from] : 0;
        for (int d = 0; d < 3; d++)
        {
            xi[d][l]        = value_at(x, type, 3 * i + (size_t)d) - plan->domain.cells.origin[d];
            reference[d][l] = (double)p->reference[from][d];
        }
    }
    return num;
}

/* Positions of particles s .. s + count - 1 relative to the centres of their cells, the image being the one nearest to
 * where it stood at assign; adds their moments. On an octree they are of one leaf, `leaf`. Blocks come in their order,
 * up to particle end. */
static void permute_block(const gmxfmm_plan*      plan,
                          const fmm_particle_set* p,
                          const void*             x,
                          gmxfmm_precision        type,
                          int                     s,
                          int                     count,
                          int                     end,
                          int                     leaf,
                          double                  centre[3][c_block],
                          moments*                m)
{
    const fmm_cells* c          = &plan->domain.cells;
    const fmm_arrays a          = fmm_arrays_of(p);
    const double*    to         = c->to_cells;
    const double*    v          = c->cell;
    moments          sum        = {{0}, {0}, {0}, {0}, {0}, 0};
    int              bad        = 0;
    double           charge_sum = 0, offset[3], n[3], inverse[3];
    double           dx = 0, dy = 0, dz = 0, xx = 0, yy = 0, zz = 0, xy = 0, xz = 0, yz = 0, sx = 0, sy = 0, sz = 0;
    double           xi[3][c_block], reference[3][c_block], q[c_block];
    real             beyond[3][c_block];
    /* a particle 100 cells from its own has no expansion; NaN fails the comparison too */
    const double limit = 100 * c->lambda;
    const int    num   = type == GMXFMM_DOUBLE ? load_block(plan, p, x, GMXFMM_DOUBLE, s, count, xi, q, reference)
                                               : load_block(plan, p, x, GMXFMM_SINGLE, s, count, xi, q, reference);
    for (int d = 0; d < 3; d++)
    {
        n[d]       = c->n[d];
        inverse[d] = c->periodic ? 1.0 / c->n[d] : 0;
        for (int l = count; l < num; l++)
        {
            centre[d][l] = centre[d][count - 1];
        }
    }
    /* whole vectors: what is written beyond the block is the next one's, and written again */
    const int direct = s + num <= end;
    real *    x_to = direct ? a.x + s : beyond[0], *y_to = direct ? a.y + s : beyond[1],
         *z_to = direct ? a.z + s : beyond[2];
#pragma omp simd reduction(+ : charge_sum, dx, dy, dz, xx, yy, zz, xy, xz, yz, sx, sy, sz, bad)
    for (int l = 0; l < num; l++)
    {
        double t0 = xi[0][l] * to[0] + xi[1][l] * to[3] + xi[2][l] * to[6] - centre[0][l];
        double t1 = xi[0][l] * to[1] + xi[1][l] * to[4] + xi[2][l] * to[7] - centre[1][l];
        double t2 = xi[0][l] * to[2] + xi[1][l] * to[5] + xi[2][l] * to[8] - centre[2][l];
        t0 -= n[0] * rint((t0 - reference[0][l]) * inverse[0]);
        t1 -= n[1] * rint((t1 - reference[1][l]) * inverse[1]);
        t2 -= n[2] * rint((t2 - reference[2][l]) * inverse[2]);
        const double y0 = t0 * v[0] + t1 * v[3] + t2 * v[6];
        const double y1 = t0 * v[1] + t1 * v[4] + t2 * v[7];
        const double y2 = t0 * v[2] + t1 * v[5] + t2 * v[8];
        bad += !(fabs(y0) < limit) | !(fabs(y1) < limit) | !(fabs(y2) < limit);
        charge_sum += q[l];
        dx += q[l] * y0;
        dy += q[l] * y1;
        dz += q[l] * y2;
        xx += q[l] * y0 * y0;
        yy += q[l] * y1 * y1;
        zz += q[l] * y2 * y2;
        xy += q[l] * y0 * y1;
        xz += q[l] * y0 * y2;
        yz += q[l] * y1 * y2;
        sx += q[l] * xi[0][l];
        sy += q[l] * xi[1][l];
        sz += q[l] * xi[2][l];
        x_to[l] = (real)y0;
        y_to[l] = (real)y1;
        z_to[l] = (real)y2;
    }
    for (int l = 0; l < count && !direct; l++)
    {
        a.x[s + l] = x_to[l];
        a.y[s + l] = y_to[l];
        a.z[s + l] = z_to[l];
    }
    const double dipole[3] = {dx, dy, dz}, quadrupole[6] = {xx, yy, zz, xy, xz, yz}, surface[3] = {sx, sy, sz};
    for (int d = 0; d < 3; d++)
    {
        sum.dipole[d]  = dipole[d];
        sum.surface[d] = surface[d] + charge_sum * c->origin[d];
    }
    memcpy(sum.quadrupole, quadrupole, sizeof(quadrupole));
    sum.bad = bad;
    fmm_moments_offset(plan, leaf, offset);
    shift_moments(charge_sum, offset, &sum, m);
}

/* The particles of cells first .. last - 1, in blocks; on an octree leaf by leaf. */
static void permute_row(const gmxfmm_plan*      plan,
                        const fmm_particle_set* p,
                        const void*             x,
                        gmxfmm_precision        type,
                        int                     first,
                        int                     last,
                        moments*                m)
{
    double    centre[3][c_block];
    const int end = p->cell_start[last];
    int       s = p->cell_start[first], count = 0; /* of the block */
    for (int cell = first; cell < last; cell++)
    {
        int place[3];
        fmm_cell_place(plan, cell, place);
        while (s + count < p->cell_start[cell + 1])
        {
            const int left = p->cell_start[cell + 1] - s, now = left < c_block ? left : c_block;
            for (; count < now; count++)
            {
                for (int d = 0; d < 3; d++)
                {
                    centre[d][count] = place[d] + 0.5;
                }
            }
            if (count == c_block || s + count == end || plan->domain.tree != NULL)
            {
                permute_block(plan, p, x, type, s, count, end, cell, centre, m);
                s += count;
                count = 0;
            }
        }
    }
}

/* Positions of a set of particles, and their moments. */
static moments permute(gmxfmm_plan* plan, const fmm_particle_set* p, const void* x, gmxfmm_precision type)
{
    enum
    {
        c_num = sizeof(moments) / sizeof(double)
    };
    _Static_assert(c_num <= (int)FMM_PARTIAL, "a row of partial sums holds the moments");
    double       sum[c_num] = {0};
    const size_t cells      = (size_t)fmm_num_cells(plan);
#pragma omp parallel for schedule(dynamic, 4) num_threads(plan->num_threads)
    for (int row = 0; row < plan->cpu->partial_rows; row++)
    {
        moments mine;
        memset(&mine, 0, sizeof(mine));
        permute_row(plan, p, x, type, (int)slab(plan, cells, row), (int)slab(plan, cells, row + 1), &mine);
        memcpy(plan->cpu->partial + (size_t)row * FMM_PARTIAL, &mine, sizeof(mine));
    }
    for (int row = 0; row < plan->cpu->partial_rows; row++)
    {
        for (int i = 0; i < c_num; i++)
        {
            sum[i] += plan->cpu->partial[row * FMM_PARTIAL + i];
        }
    }
    moments m;
    memcpy(&m, sum, sizeof(m));
    return m;
}

/* Sums over sorted particles into sum[FMM_PARTIAL]: 0..5 sym y (x) q E, 6 q phi near, 7 q phi far, 8 not finite. */
static void particle_sums(gmxfmm_plan* plan, double* sum)
{
    const fmm_arrays a = fmm_arrays_of(&plan->cpu->sources);
    memset(plan->cpu->partial, 0, (size_t)plan->cpu->partial_rows * FMM_PARTIAL * sizeof(double));
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (int row = 0; row < plan->cpu->partial_rows; row++)
    {
        double t[FMM_PARTIAL] = {0};
        for (size_t s = slab(plan, (size_t)plan->particles.n, row); s < slab(plan, (size_t)plan->particles.n, row + 1);
             s++)
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
    memset(sum, 0, FMM_PARTIAL * sizeof(double));
    for (int row = 0; row < plan->cpu->partial_rows; row++)
    {
        for (int i = 0; i < FMM_PARTIAL; i++)
        {
            sum[i] += plan->cpu->partial[row * FMM_PARTIAL + i];
        }
    }
}

/* Adds the strain derivative of the lattice part to strain (xx, yy, zz, xy, xz, yz; traceless) from w of the
 * convolution, times scale. */
static void unpack_strain(const double* w, double scale, double* strain)
{
    for (int i = 0; i < 6; i++)
    {
        strain[i] += scale * 0.5 * fmm_twice_traceless(w, i);
    }
}

/*
 * Far virial without pairs left out, unit 1/u (THEORY (23)): half of dE/dstrain, which is minus sum y (x) F for the
 * strain of positions within cells plus `strain` for that of displacements between cells; the trace is -E/2.
 */
static void far_virial(const gmxfmm_plan*    plan,
                       const double*         y_force,
                       const double*         strain,
                       const moments*        m,
                       const fmm_background* bg,
                       double                energy,
                       double*               virial)
{
    for (int i = 0; i < 6; i++)
    {
        const int    a = c_row[i], b = c_column[i];
        const double k0_missing =
            fmm_is_periodic(plan)
                ? fmm_missing_strain(4 * FMM_PI / (5 * plan->domain.cells.box_volume), plan->charges.total[0],
                                     m->dipole[a], m->dipole[b], m->quadrupole[i])
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

/* Takes pairs left out whose cells are far off potentials, fields, energy and virial (xx, yy, zz, xy, xz, yz). */
static void take_far_pairs(gmxfmm_plan* plan, double* energy, double* virial)
{
    const fmm_arrays a = fmm_arrays_of(&plan->cpu->sources);
    const double*    b = plan->domain.cells.cell;
    for (int e = 0; e < plan->cpu->num_far_pairs; e++)
    {
        const fmm_far_pair* pair = plan->cpu->far_pairs + e;
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
static int write_output(
    const gmxfmm_plan* plan, fmm_wanted wanted, const void* x, const double* surface_field, gmxfmm_output* output)
{
    const fmm_particle_set* targets = fmm_targets(plan);
    const fmm_arrays        a       = fmm_arrays_of(targets);
    const int               field = wanted != FMM_POTENTIAL, potential = wanted != FMM_FIELD;
    const void*             place = plan->particles.num_targets == 0 ? x : plan->particles.target_x;
    const gmxfmm_precision  type  = plan->particles.num_targets == 0 ? plan->options.array_type : GMXFMM_DOUBLE;
    const double            f = plan->options.prefactor, f1 = 1 / plan->domain.cells.u, f2 = f1 * f1;
    int                     bad = 0;
#pragma omp parallel for schedule(static) num_threads(plan->num_threads) reduction(+ : bad)
    for (int64_t s = 0; s < targets->n; s++)
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
        if (output->potential != NULL)
        {
            for (int d = 0; d < 3; d++)
            {
                phi -= surface_field[d] != 0 ? surface_field[d] * value_at(place, type, 3 * i + (size_t)d) : 0;
            }
            store(plan, output->potential, i, f * phi);
        }
    }
    return bad;
}

/* Charges beyond which fields at ordinary distances leave the range of the step's precision. */
static const double c_hugeCharge = sizeof(real) == sizeof(double) ? 1e150 : 1e30;

/* Why a result is not finite: a charge that is too large, or two particles at one place. */
static gmxfmm_status not_finite(gmxfmm_plan* plan, fmm_wanted wanted)
{
    for (int64_t i = 0; i < plan->particles.n; i++)
    {
        if (fabs(plan->charges.q[i]) > c_hugeCharge)
        {
            return fmm_fail(plan, GMXFMM_ERROR_CHARGE, "charge of particle %lld is %g: choose another unit of charge",
                            (long long)i, plan->charges.q[i]);
        }
    }
    const fmm_particle_set* targets = fmm_targets(plan);
    const fmm_arrays        a       = fmm_arrays_of(targets);
    for (int64_t s = 0; s < targets->n; s++)
    {
        if ((wanted != FMM_POTENTIAL && !isfinite(a.ex[s])) || (wanted != FMM_FIELD && !isfinite(a.near_phi[s])))
        {
            return plan->particles.num_targets == 0
                       ? fmm_fail(plan, GMXFMM_ERROR_COINCIDENT,
                                  "particle %d stands where another one does, and they do not exclude each other",
                                  targets->sorted[s])
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
                       const double*      surface,
                       gmxfmm_output*     output)
{
    const double     f = plan->options.prefactor, f1 = 1 / plan->domain.cells.u;
    const double     volume     = fmm_determinant(plan->domain.box);
    const double     d2         = surface[0] * surface[0] + surface[1] * surface[1] + surface[2] * surface[2];
    const double     e_surface  = plan->options.boundary == GMXFMM_VACUUM ? 2 * FMM_PI / (3 * volume) * d2 : 0;
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
                f * 0.5 * (4 * FMM_PI / (3 * volume) * surface[i / 3] * surface[i % 3] - (i % 4 == 0 ? e_surface : 0));
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

/* Multipoles of the cells to locals, by one convolution over the grid. Adds to strain, for a virial. */
void fmm_far_by_cells(gmxfmm_plan* plan, double* strain)
{
    struct fmm_convolution* conv  = plan->cpu->conv;
    gmxfmm_info*            info  = &plan->info;
    double                  clock = fmm_time(), w[5] = {0};
    fmm_p2m(plan, conv->field, conv->fft.field_stride);
    lap(&clock, &info->time_p2m);
    if (strain != NULL)
    {
        fmm_m2l_fft_virial(plan, conv, w);
        unpack_strain(w, 1, strain);
    }
    else
    {
        fmm_m2l_fft(plan, conv);
    }
    lap(&clock, &info->time_m2l);
}

/* M2L between roots and all their images: the convolution over the grid of roots. */
static void root_m2l(gmxfmm_plan* plan, double* strain)
{
    struct fmm_convolution* conv  = plan->cpu->conv;
    const fmm_level*        roots = &plan->domain.tree->level[0];
    const int*              n     = plan->domain.tree->roots;
    double                  w[5]  = {0};
    for (int dir = 0; dir < 2; dir++)
    {
        if (dir == 0)
        {
            memset(conv->field, 0, (size_t)conv->fft.num_fields * conv->fft.field_stride * sizeof(real));
        }
        for (int i = 0; i < conv->fft.num_fields; i++)
        {
            for (int c = 0; c < roots->num; c++)
            {
                const int* at = roots->at[c];
                real* grid = conv->field + (size_t)i * conv->fft.field_stride + (at[0] * n[1] + at[1]) * n[2] + at[2];
                const size_t k = (size_t)i * roots->stride + (size_t)c;
                if (dir == 0)
                {
                    *grid = ((const real*)roots->multipole)[k];
                }
                else
                {
                    ((real*)roots->local)[k] += *grid;
                }
            }
        }
        if (dir == 0 && strain != NULL)
        {
            fmm_m2l_fft_virial(plan, conv, w);
            unpack_strain(w, 1.0 / (1 << plan->domain.tree->depth), strain);
        }
        else if (dir == 0)
        {
            fmm_m2l_fft(plan, conv);
        }
    }
}

static void zero_locals(const gmxfmm_plan* plan)
{
    for (int l = 0; l <= plan->domain.tree->depth; l++)
    {
        const fmm_level* level = &plan->domain.tree->level[l];
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
        for (int i = 0; i < plan->domain.tree->num_coef; i++)
        {
            memset((real*)level->local + (size_t)i * level->stride, 0, level->stride * sizeof(real));
        }
    }
}

/* The same by an octree: up, across, down. */
void fmm_far_by_octree(gmxfmm_plan* plan, double* strain)
{
    const fmm_tree*  tree   = plan->domain.tree;
    const fmm_level* leaves = &tree->level[tree->depth];
    gmxfmm_info*     info   = &plan->info;
    double           clock  = fmm_time();
    fmm_p2m(plan, leaves->multipole, leaves->stride);
    lap(&clock, &info->time_p2m);
    for (int l = tree->depth - 1; l >= 0; l--)
    {
        fmm_m2m(plan, l);
    }
    lap(&clock, &info->time_m2m);
    zero_locals(plan);
    if (fmm_is_periodic(plan))
    {
        root_m2l(plan, strain);
    }
    for (int l = 1; l <= tree->depth; l++)
    {
        fmm_m2l(plan, l, strain);
    }
    lap(&clock, &info->time_m2l);
    for (int l = 0; l < tree->depth; l++)
    {
        fmm_l2l(plan, l, strain);
    }
    lap(&clock, &info->time_l2l);
}

const void* fmm_locals_of_cells(const gmxfmm_plan* plan, size_t* stride)
{
    *stride = plan->cpu->conv->fft.field_stride;
    return plan->cpu->conv->field;
}

const void* fmm_locals_of_leaves(const gmxfmm_plan* plan, size_t* stride)
{
    const fmm_level* leaves = &plan->domain.tree->level[plan->domain.tree->depth];
    *stride                 = leaves->stride;
    return leaves->local;
}

/* Locals to potentials and fields of the targets. */
static void local_expansions(const gmxfmm_plan* plan, const fmm_background* background, fmm_wanted wanted)
{
    size_t            stride;
    const void* const locals = plan->cpu->path->locals(plan, &stride);
    fmm_l2p(plan, locals, stride, background, wanted);
}

gmxfmm_status fmm_step(gmxfmm_plan* plan, const void* x, gmxfmm_output* output)
{
    gmxfmm_info*     info   = &plan->info;
    const int        field  = output->force != NULL || output->field != NULL;
    const int        phi    = output->potential != NULL || output->want_energy || !field;
    const fmm_wanted wanted = output->want_virial ? FMM_VIRIAL
                              : field && phi      ? FMM_BOTH
                              : field             ? FMM_FIELD
                                                  : FMM_POTENTIAL;
    double near_virial[6] = {0}, virial[6] = {0}, strain[6] = {0}, before[FMM_PARTIAL] = {0}, after[FMM_PARTIAL] = {0};
    double clock = fmm_time();

    moments m = permute(plan, &plan->cpu->sources, x, plan->options.array_type);
    if (plan->particles.num_targets > 0)
    {
        m.bad += permute(plan, &plan->cpu->targets, plan->particles.target_x, GMXFMM_DOUBLE).bad;
    }
    if (m.bad > 0)
    {
        return fmm_fail(plan, GMXFMM_ERROR_POSITION, "a position is not finite, or has moved 100 cells since assign");
    }
    lap(&clock, &info->time_permute);

    fmm_p2p(plan, wanted, near_virial);
    if (output->want_virial)
    {
        particle_sums(plan, before);
    }
    lap(&clock, &info->time_near);

    plan->cpu->path->far(plan, output->want_virial ? strain : NULL);
    clock = fmm_time();

    const fmm_background background = {fmm_is_periodic(plan) ? 2 * FMM_PI / (3 * plan->domain.cells.box_volume) : 0,
                                       plan->charges.total[0],
                                       {m.dipole[0], m.dipole[1], m.dipole[2]},
                                       m.quadrupole[0] + m.quadrupole[1] + m.quadrupole[2]};
    local_expansions(plan, &background, wanted);
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
        far_virial(plan, after, strain, &m, &background, far, virial);
    }
    take_far_pairs(plan, &far, virial);
    double surface_field[3] = {0};
    for (int d = 0; d < 3; d++)
    {
        virial[d] += near_virial[d];
        virial[3 + d] += near_virial[3 + d];
        surface_field[d] = plan->options.boundary == GMXFMM_VACUUM
                               ? -4 * FMM_PI / (3 * fmm_determinant(plan->domain.box)) * m.surface[d]
                               : 0;
    }
    write_sums(plan, 0.5 * after[6], far, virial, m.surface, output);
    const int bad = write_output(plan, wanted, x, surface_field, output);
    lap(&clock, &info->time_output);
    return bad ? not_finite(plan, wanted) : GMXFMM_OK;
}
