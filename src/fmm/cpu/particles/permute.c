/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The positions of a step: sorted, relative to the centres of their cells; and the moments of the charges. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "fmm/cpu/particles/particles.h"
#include "fmm/cpu/ranks.h"
#include "fmm/cpu/step.h"
#include "fmm/math/images.h"
#include "fmm/math/left.h"
#include "fmm/math/strain.h"
#include "fmm/numbers.h"

/* Moments about the root from the charge, dipole and quadrupole of a leaf about its own centre, s away. */
static void shift_moments(double q, const double* s, const fmm_moments* leaf, fmm_moments* m)
{
    for (int d = 0; d < 3; d++)
    {
        m->dipole[d] += leaf->dipole[d] + q * s[d];
        m->offset[d] += q * s[d];
        m->surface[d] += leaf->surface[d];
        m->mu[d] += leaf->mu[d];
    }
    for (int i = 0; i < 6; i++)
    {
        const int    a = fmm_tensor_row(i), b = fmm_tensor_column(i);
        const double cross = 0.5 * (s[a] * leaf->dipole[b] + s[b] * leaf->dipole[a]), square = q * s[a] * s[b];
        m->quadrupole[i] += leaf->quadrupole[i] + 2 * cross + square;
        m->offset2[i] += cross + square;
    }
    m->bad += leaf->bad;
}

enum
{
    c_block    = 64, /* particles that permute does at once, in whole vectors */
    c_numFaces = 7   /* pairs of faces that a cell has at most */
};

/* What a step needs to find particles that have left their cells. */
typedef struct
{
    int    exponent; /* of |y|^2; 0: nobody looks */
    double scale;    /* 1 / a^2, units u */
    int    num_faces;
    real   face[c_numFaces][3]; /* its product with y is 1/2 on a face of a cell */
} cell_faces;

static cell_faces faces_of(const gmxfmm_plan* plan)
{
    const fmm_cells* c = &plan->domain.cells;
    cell_faces       f;
    f.exponent  = plan->options.check != GMXFMM_CHECK_OFF ? plan->far.order + 1 : 0;
    f.scale     = 1 / (FMM_LEFT_A2 * c->lambda * c->lambda);
    f.num_faces = 0;
    for (int v = 0; v < (c->rectangular ? 3 : FMM_VORONOI); v++)
    {
        /* of the vectors that are each other's negatives one */
        const double* a    = c->rectangular ? c->cell + 3 * v : c->voronoi[v];
        int           seen = 0;
        for (int w = 0; w < v && !c->rectangular; w++)
        {
            const int *k = c->voronoi_int[v], *l = c->voronoi_int[w];
            seen = seen || (k[0] == -l[0] && k[1] == -l[1] && k[2] == -l[2]);
        }
        for (int d = 0; d < 3 && !seen; d++)
        {
            f.face[f.num_faces][d] = (real)(a[d] / (a[0] * a[0] + a[1] * a[1] + a[2] * a[2]));
        }
        f.num_faces += !seen;
    }
    return f;
}

/* The larger and the smaller of two numbers in each lane; b where one of them is NaN. */
static inline vreal larger(vreal a, vreal b)
{
    const vinteger first = a > b;
    return (vreal)((first & (vinteger)a) | (~first & (vinteger)b));
}

static inline vreal smaller(vreal a, vreal b)
{
    const vinteger first = a < b;
    return (vreal)((first & (vinteger)a) | (~first & (vinteger)b));
}

/* What the block of particles s .. s + num - 1 adds to left_now, largest and farthest, from y and q. edge: of their
 * leaf, in cells. */
static void add_left(const gmxfmm_plan*      plan,
                     const cell_faces*       f,
                     const fmm_particle_set* p,
                     int                     s,
                     int                     num,
                     double                  edge,
                     const real*             x,
                     const real*             y,
                     const real*             z,
                     const double*           q,
                     fmm_moments*            m)
{
    const real scale = (real)(f->scale / (edge * edge));
    real       at2[c_block], weight[c_block], largest2 = 0;
    vreal      most2 = {0};
    double     sum   = 0;
    for (int l = 0; l < num; l += VLEN)
    {
        const vreal y0 = *(const vreal_unaligned*)(x + l), y1 = *(const vreal_unaligned*)(y + l),
                    y2 = *(const vreal_unaligned*)(z + l), none = {0};
        vreal outermost2 = none, base = smaller((y0 * y0 + y1 * y1 + y2 * y2) * scale, none + (real)FMM_LEFT_MOST);
        for (int k = 0; k < f->num_faces; k++)
        {
            /* NaN is larger than nothing: such a particle counts as bad elsewhere */
            const real* a = f->face[k];
            const vreal t = y0 * a[0] + y1 * a[1] + y2 * a[2];
            outermost2    = larger(t * t, outermost2);
        }
        vreal w = none + 1; /* as fmm_left_weight, of a vector at once */
        for (int bits = f->exponent; bits > 0; bits >>= 1)
        {
            if (bits & 1)
            {
                w *= base;
            }
            base *= base;
        }
        most2                           = larger(outermost2, most2);
        *(vreal_unaligned*)(at2 + l)    = outermost2;
        *(vreal_unaligned*)(weight + l) = w;
    }
#pragma omp simd reduction(+ : sum)
    for (int l = 0; l < num; l++)
    {
        sum += q[l] * q[l] * (double)weight[l];
    }
    for (int k = 0; k < VLEN; k++)
    {
        largest2 = most2[k] > largest2 ? most2[k] : largest2;
    }
    m->left_now += sum;
    const double largest = sqrt((double)largest2) / edge;
    if (largest > m->largest)
    {
        int l = 0;
        while (!(at2[l] >= largest2))
        {
            l++;
        }
        m->largest  = largest;
        m->farthest = (double)fmm_particle_name(plan, p->sorted[l < p->n - s ? s + l : s]);
    }
}

/* What dipoles of particles s .. s + count - 1 at x, y, z add to moments about the centres of their cells; and to
 * left_now, where anyone looks. Sets their components in the unit and axes of the step. */
static void add_dipoles(const gmxfmm_plan*      plan,
                        const cell_faces*       f,
                        const fmm_particle_set* p,
                        int                     s,
                        int                     count,
                        double                  edge,
                        const real*             x,
                        const real*             y,
                        const real*             z,
                        fmm_moments*            m)
{
    const fmm_dipole_arrays a    = fmm_dipole_arrays_of(p);
    const double *          axes = plan->frame.axes, one = 1 / plan->domain.cells.u;
    const double            scale = f->scale / (edge * edge);
    for (int l = 0; l < count; l++)
    {
        const double *given = p->dipole + 3 * (size_t)(s + l), at[3] = {(double)x[l], (double)y[l], (double)z[l]};
        double        mu[3], unit[3];
        for (int d = 0; d < 3; d++)
        {
            mu[d]   = plan->frame.turned
                          ? axes[3 * d] * given[0] + axes[3 * d + 1] * given[1] + axes[3 * d + 2] * given[2]
                          : given[d];
            unit[d] = mu[d] * one;
            m->mu[d] += mu[d];
            m->surface[d] += mu[d];
            m->dipole[d] += unit[d];
            a.mu[d][s + l] = (real)unit[d];
        }
        fmm_add_symmetric(2, unit, at, m->quadrupole);
        if (f->exponent > 0)
        {
            const double y2 = at[0] * at[0] + at[1] * at[1] + at[2] * at[2];
            m->left_now += fmm_left_dipole(plan, given, edge) * fmm_left_weight(y2 * scale, f->exponent);
        }
    }
}

/* Prefetches the positions of particles s .. s + count - 1, if there are any, from anywhere in the caller's array. */
static inline void
prefetch_block(const fmm_particle_set* p, const void* x, gmxfmm_precision type, int64_t s, int64_t count)
{
    const size_t  size = 3 * fmm_word_of(type);
    const int64_t end  = s + count < p->n ? s + count : p->n;
    for (; s < end; s++)
    {
        __builtin_prefetch((const char*)x + (size_t)p->sorted[s] * size);
    }
}

/* Those of the positions xi[.][0..num-1] that are beyond reach[3] into the box; one that no cell can hold becomes NaN.
 * What is taken off is part of sum q x, which is of the positions as passed. */
static void bring_into_box(
    const gmxfmm_plan* plan, const double* reach, int num, double xi[3][c_block], const double* q, fmm_moments* m)
{
    const fmm_domain* domain = &plan->domain;
    const fmm_cells*  c      = &domain->cells;
    for (int l = 0; l < num; l++)
    {
        double t[3], x[3] = {xi[0][l], xi[1][l], xi[2][l]};
        if (!(fabs(x[0]) > reach[0] || fabs(x[1]) > reach[1] || fabs(x[2]) > reach[2]))
        {
            continue;
        }
        fmm_in_cells(c->origin, c->to_cells, x, t);
        fmm_into_box(domain->given, domain->in_basis, c->periodic, c->n, t, x);
        for (int d = 0; d < 3; d++)
        {
            m->surface[d] += q[l] * (xi[d][l] - x[d]);
            xi[d][l] = fmm_has_cell(t) ? x[d] : NAN;
        }
    }
}

/* The caller's numbers in sorted order, for P2P. */
static void keep_places(const gmxfmm_plan* plan, const fmm_particle_set* p, int s, int count, double xi[3][c_block])
{
    const double scale = fmm_given_scale(plan);
    for (int d = 0; d < 3; d++)
    {
        real* given = (real*)p->given[d] + s;
        for (int l = 0; l < count; l++)
        {
            given[l] = (real)(xi[d][l] * scale);
        }
    }
}

/* Particles s .. s + count - 1: position, charge, and position in the cell at assign; up to the next whole vector the
 * last one once more, without charge. Returns their number with these. */
INLINE int load_block(const gmxfmm_plan*      plan,
                      const fmm_particle_set* p,
                      const void*             x,
                      gmxfmm_precision        type,
                      int                     s,
                      int                     count,
                      double                  xi[3][c_block],
                      double*                 q,
                      double                  reference[3][c_block],
                      fmm_moments*            m)
{
    const int num = (count + VLEN - 1) / VLEN * VLEN;
    double    reach[3], most[3] = {0, 0, 0};
    fmm_few_images(plan->domain.box, plan->domain.periodic, reach);
    prefetch_block(p, x, type, (int64_t)s + c_block, count);
    for (int l = 0; l < count; l++)
    {
        const int64_t i = 3 * (int64_t)p->sorted[s + l];
        q[l]            = p->charge != NULL ? p->charge[s + l] : 0;
        for (int d = 0; d < 3; d++)
        {
            const double at = fmm_number_of(x, type, i + d);
            most[d]         = fabs(at) > most[d] ? fabs(at) : most[d];
            xi[d][l]        = at;
            reference[d][l] = (double)p->reference[s + l][d];
        }
    }
    if (fmm_has_given(plan))
    {
        keep_places(plan, p, s, count, xi);
    }
    for (int l = count; l < num; l++)
    {
        q[l] = 0;
        for (int d = 0; d < 3; d++)
        {
            xi[d][l]        = xi[d][count - 1];
            reference[d][l] = reference[d][count - 1];
        }
    }
    if (most[0] > reach[0] || most[1] > reach[1] || most[2] > reach[2])
    {
        bring_into_box(plan, reach, num, xi, q, m);
    }
    return num;
}

/* Positions of particles s .. s + count - 1 relative to the centres of their cells, the image being the one nearest to
 * where it was at assign; adds their moments. centre: in cells from the origin; of leaves of several levels zero, as
 * positions are taken from their own places. In an octree they are of one leaf, `leaf`. Blocks come in their order, up
 * to particle end. */
static void permute_block(const gmxfmm_plan*      plan,
                          const fmm_particle_set* p,
                          const void*             x,
                          gmxfmm_precision        type,
                          int                     s,
                          int                     count,
                          int                     end,
                          int                     leaf,
                          const cell_faces*       faces,
                          double                  centre[3][c_block],
                          fmm_moments*            m)
{
    const fmm_cells* c          = &plan->domain.cells;
    const fmm_arrays a          = fmm_arrays_of(p);
    const double*    to         = c->to_cells;
    const double*    v          = c->cell;
    fmm_moments      sum        = {{0}, {0}, {0}, {0}, {0}, {0}, 0, 0, 0, 0};
    int              bad        = 0;
    double           charge_sum = 0, offset[3], n[3], inverse[3];
    double           dx = 0, dy = 0, dz = 0, xx = 0, yy = 0, zz = 0, xy = 0, xz = 0, yz = 0, sx = 0, sy = 0, sz = 0;
    double           xi[3][c_block], reference[3][c_block], q[c_block];
    real             spill[3][c_block];
    /* a particle 100 cells from its own has no expansion; NaN fails the comparison too */
    const double edge  = fmm_is_adaptive(plan) ? fmm_leaf_edge(plan, leaf) : 1;
    const double limit = 100 * c->lambda * edge;
    double       from[3];
    memcpy(from, c->origin, sizeof(from));
    if (fmm_is_adaptive(plan))
    {
        fmm_leaf_centre(plan, leaf, from);
    }
    const int num = type == GMXFMM_DOUBLE ? load_block(plan, p, x, GMXFMM_DOUBLE, s, count, xi, q, reference, m)
                                          : load_block(plan, p, x, GMXFMM_SINGLE, s, count, xi, q, reference, m);
    for (int d = 0; d < 3; d++)
    {
        n[d]       = c->n[d];
        inverse[d] = c->periodic[d] ? 1.0 / c->n[d] : 0;
        for (int l = count; l < num; l++)
        {
            centre[d][l] = centre[d][count - 1];
        }
    }
    /* whole vectors are written: the next block overwrites what is past the end of this one; the last block is copied
     */
    const int direct = s + num <= end;
    real *x_to = direct ? a.x + s : spill[0], *y_to = direct ? a.y + s : spill[1], *z_to = direct ? a.z + s : spill[2];
#pragma omp simd reduction(+ : charge_sum, dx, dy, dz, xx, yy, zz, xy, xz, yz, sx, sy, sz, bad)
    for (int l = 0; l < num; l++)
    {
        /* from its place, whose digits a position far away has not: it was brought into the box before */
        const double x0 = xi[0][l] - from[0], x1 = xi[1][l] - from[1], x2 = xi[2][l] - from[2];
        double       t0 = x0 * to[0] + x1 * to[3] + x2 * to[6] - centre[0][l];
        double       t1 = x0 * to[1] + x1 * to[4] + x2 * to[7] - centre[1][l];
        double       t2 = x0 * to[2] + x1 * to[5] + x2 * to[8] - centre[2][l];
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
        sx += q[l] * x0;
        sy += q[l] * x1;
        sz += q[l] * x2;
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
        sum.surface[d] = surface[d] + charge_sum * from[d];
    }
    memcpy(sum.quadrupole, quadrupole, sizeof(quadrupole));
    sum.bad = bad;
    if (p->dipole != NULL && fmm_has_dipoles(plan))
    {
        add_dipoles(plan, faces, p, s, count, edge, x_to, y_to, z_to, &sum);
        m->left_now += sum.left_now;
    }
    fmm_moments_offset(plan, leaf, offset);
    shift_moments(charge_sum, offset, &sum, m);
    if (faces->exponent > 0)
    {
        add_left(plan, faces, p, s, num, edge, x_to, y_to, z_to, q, m);
    }
}

/* The particles of cells first .. last - 1, in blocks; in an octree leaf by leaf. */
static void permute_row(const gmxfmm_plan*      plan,
                        const fmm_particle_set* p,
                        const void*             x,
                        gmxfmm_precision        type,
                        int                     first,
                        int                     last,
                        const cell_faces*       faces,
                        fmm_moments*            m)
{
    double    centre[3][c_block];
    const int end = p->cell_start[last];
    int       s = p->cell_start[first], count = 0; /* of the block */
    for (int cell = first; cell < last; cell++)
    {
        double place[3] = {0, 0, 0};
        if (!fmm_is_adaptive(plan))
        {
            fmm_cell_centre(plan, cell, place);
        }
        while (s + count < p->cell_start[cell + 1])
        {
            const int left = p->cell_start[cell + 1] - s, now = left < c_block ? left : c_block;
            for (; count < now; count++)
            {
                for (int d = 0; d < 3; d++)
                {
                    centre[d][count] = place[d];
                }
            }
            if (count == c_block || s + count == end || plan->domain.tree != NULL)
            {
                permute_block(plan, p, x, type, s, count, end, cell, faces, centre, m);
                s += count;
                count = 0;
            }
        }
    }
}

/* Rows of all ranks; whether positions are bad on others alone. */
static void gather_moments(gmxfmm_plan* plan)
{
    enum
    {
        c_bad = offsetof(fmm_moments, bad) / sizeof(double)
    };
    const double*   partial = plan->cpu->partial;
    const fmm_range own     = fmm_own_rows(plan);
    double          here    = 0;
    for (int row = own.begin; row < own.end; row++)
    {
        here += partial[(size_t)row * FMM_PARTIAL + c_bad];
    }
    plan->cpu->shares.bad_elsewhere = plan->cpu->shares.ranks != NULL && !(here > 0);
    fmm_gather_rows(plan);
}

fmm_moments fmm_permute(gmxfmm_plan* plan, const fmm_particle_set* p, const void* x, gmxfmm_precision type)
{
    enum
    {
        c_num     = sizeof(fmm_moments) / sizeof(double),
        c_largest = offsetof(fmm_moments, largest) / sizeof(double) /* and what follows: of one particle */
    };
    _Static_assert(c_num <= (int)FMM_PARTIAL, "a row of partial sums holds the moments");
    double     sum[c_num] = {0};
    cell_faces faces      = faces_of(plan);
    faces.exponent        = p->charge != NULL ? faces.exponent : 0; /* targets stay where they are */
#pragma omp parallel for schedule(dynamic, 4) num_threads(plan->num_threads)
    for (int row = 0; row < plan->cpu->partial_rows; row++)
    {
        fmm_moments mine;
        memset(&mine, 0, sizeof(mine));
        permute_row(plan, p, x, type, fmm_row_cell(plan, row), fmm_row_cell(plan, row + 1), &faces, &mine);
        memcpy(plan->cpu->partial + (size_t)row * FMM_PARTIAL, &mine, sizeof(mine));
    }
    gather_moments(plan);
    for (int row = 0; row < plan->cpu->partial_rows; row++)
    {
        const double* of = plan->cpu->partial + (size_t)row * FMM_PARTIAL;
        for (int i = 0; i < c_largest; i++)
        {
            sum[i] += of[i];
        }
        if (of[c_largest] > sum[c_largest])
        {
            memcpy(sum + c_largest, of + c_largest, (c_num - c_largest) * sizeof(double));
        }
    }
    fmm_moments m;
    memcpy(&m, sum, sizeof(m));
    return m;
}
