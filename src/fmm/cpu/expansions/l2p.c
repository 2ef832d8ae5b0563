/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* L2P, the local expansions at the targets: one lane is one cell, as in P2M. */
#include "fmm/math/portable.h"

#define HARM_T vreal
#define HARM_R real
#include "fmm/math/harmonics.h"

#include "fmm/cpu/expansions/expansions.h"
#include "fmm/cpu/simd/walk.h"

enum
{
    c_maxCoef = (GMXFMM_MAX_ORDER + 1) * (GMXFMM_MAX_ORDER + 1)
};

/* Columns of the first table of weights. */
enum
{
    c_phi,
    c_x,
    c_y,
    c_z,
    c_first
};

/* Columns of the second one; the other second derivatives follow, phi being harmonic. */
enum
{
    c_xx, /* and xy, xz, yz, zz */
    c_xy,
    c_xz,
    c_yz,
    c_zz,
    c_second,
    c_unused = c_second, /* xz once more */
    c_secondRow
};

/* What multiplies Re and Im Upsilon_n^m in phi and its derivatives: a row for each of these. */
typedef struct
{
    vreal* first;
    vreal* second; /* of plans with dipoles */
} weights;

/* In scratch. */
static weights weights_in(vreal* scratch, int p)
{
    const weights w = {scratch, scratch + c_first * harm_size(p)};
    return w;
}

/* Adds the weights of the derivatives of a function whose weights are a column of rows of `of_row` columns, those that
 * x, y, z point to of rows of `row`, by d_z U_n^m = U_(n-1)^m, d_x U_n^m = (U_(n-1)^(m-1) - U_(n-1)^(m+1))/2, d_y U_n^m
 * = i (U_(n-1)^(m-1) + U_(n-1)^(m+1))/2. */
INLINE void add_derivatives(int p, const vreal* of, int of_row, vreal* x, vreal* y, vreal* z, int row)
{
    for (int m = 0; m <= p; m++)
    {
        for (int n = m > 1 ? m : 1; n <= p; n++)
        {
            const vreal re = of[of_row * harm_re(p, n, m)];
            if (n > m)
            {
                z[row * harm_re(p, n - 1, m)] += re;
            }
            if (m == 0)
            {
                /* U^-1 = -conj U^1: d_x U_n^0 = -Re U_(n-1)^1, d_y U_n^0 = -Im U_(n-1)^1 */
                if (n >= 2)
                {
                    x[row * harm_re(p, n - 1, 1)] -= re;
                    y[row * harm_im(p, n - 1, 1)] -= re;
                }
                continue;
            }
            const vreal im = of[of_row * harm_im(p, n, m)];
            const real  h  = (real)0.5;
            if (n > m)
            {
                z[row * harm_im(p, n - 1, m)] += im;
            }
            /* from U^(m-1) */
            x[row * harm_re(p, n - 1, m - 1)] += h * re;
            y[row * harm_re(p, n - 1, m - 1)] += h * im; /* Im(i U) = Re U */
            if (m > 1)
            {
                x[row * harm_im(p, n - 1, m - 1)] += h * im;
                y[row * harm_im(p, n - 1, m - 1)] -= h * re; /* Re(i U) = -Im U */
            }
            /* from U^(m+1) */
            if (n - 1 >= m + 1)
            {
                x[row * harm_re(p, n - 1, m + 1)] -= h * re;
                x[row * harm_im(p, n - 1, m + 1)] -= h * im;
                y[row * harm_re(p, n - 1, m + 1)] += h * im;
                y[row * harm_im(p, n - 1, m + 1)] -= h * re;
            }
        }
    }
}

/* phi = sum_n (-1)^n [L_n^0 U_n^0 + 2 sum_{m>0} (Re L Re U + Im L Im U)], and its derivatives. */
static void make_weights(int p, const real* field, size_t stride, int first, const weights* w)
{
    vreal* const to = w->first;
    for (int m = 0; m <= p; m++)
    {
        for (int n = m; n <= p; n++)
        {
            const real s = (real)((n & 1 ? -1 : 1) * (m > 0 ? 2 : 1));
            for (int k = 0; k < (m > 0 ? 2 : 1); k++)
            {
                const int    at  = k ? harm_im(p, n, m) : harm_re(p, n, m);
                vreal* const row = to + c_first * at;
                row[c_phi]       = *(const vreal*)(field + (size_t)at * stride + first) * s;
                row[c_x] = row[c_y] = row[c_z] = (vreal){0};
            }
        }
    }
    add_derivatives(p, to + c_phi, c_first, to + c_x, to + c_y, to + c_z, c_first);
}

/* Second derivatives, after the first. */
static void make_second_weights(int p, const weights* w)
{
    const vreal* const of = w->first;
    vreal* const       to = w->second;
    for (int i = 0; i < c_secondRow * harm_size(p); i++)
    {
        to[i] = (vreal){0};
    }
    add_derivatives(p, of + c_x, c_first, to + c_xx, to + c_xy, to + c_xz, c_secondRow);
    add_derivatives(p, of + c_z, c_first, to + c_unused, to + c_yz, to + c_zz, c_secondRow);
}

/* phi, its gradient and its second derivatives. */
typedef struct
{
    vreal phi, x, y, z, second[c_second];
} sums;

/* Adds the degrees m to `top` of column m, whose first element is (re, im). inverse: the same column of
 * harm_fill_inverse. */
INLINE void add_column(int            p,
                       int            m,
                       int            top,
                       vreal          z,
                       vreal          r2,
                       vreal          re,
                       vreal          im,
                       const real*    inverse,
                       const weights* w,
                       fmm_wanted     wanted,
                       sums*          s)
{
    const int with_phi = wanted != FMM_FIELD, with_field = wanted != FMM_POTENTIAL,
              with_second    = wanted == FMM_GRADIENT;
    const int         column = harm_column(p, m), half = p + 1 - m;
    const real* const inv      = inverse + column;
    vreal             re_below = {0}, im_below = {0};
    for (int i = 0; i <= top - m; i++)
    {
        if (i > 0)
        {
            const vreal a = z * (m > 0 ? inv[half + i] : (real)(2 * i - 1) * inv[i]), b = r2 * inv[i];
            const vreal t = a * re - b * re_below;
            re_below      = re;
            re            = t;
            if (m > 0)
            {
                const vreal u = a * im - b * im_below;
                im_below      = im;
                im            = u;
            }
        }
        const vreal *first = w->first + c_first * (column + i), *first_im = first + c_first * half;
        if (with_phi)
        {
            s->phi += first[c_phi] * re;
        }
        if (with_field)
        {
            s->x += first[c_x] * re;
            s->y += first[c_y] * re;
            s->z += first[c_z] * re;
        }
        if (with_second)
        {
            const vreal *of_re = w->second + c_secondRow * (column + i), *of_im = of_re + c_secondRow * half;
            for (int k = 0; k < c_second; k++)
            {
                s->second[k] += of_re[k] * re;
            }
            for (int k = 0; k < c_second && m > 0; k++)
            {
                s->second[k] += of_im[k] * im;
            }
        }
        if (m > 0 && with_phi)
        {
            s->phi += first_im[c_phi] * im;
        }
        if (m > 0 && with_field)
        {
            s->x += first_im[c_x] * im;
            s->y += first_im[c_y] * im;
            s->z += first_im[c_z] * im;
        }
    }
}

/* Sums of weights times Upsilon at one position a lane: out = phi, d_x phi, d_y phi, d_z phi, with FMM_GRADIENT the
 * second derivatives, as far as wanted. */
static inline void evaluate(int            p,
                            vreal          x,
                            vreal          y,
                            vreal          z,
                            const real*    inverse,
                            const weights* w,
                            fmm_wanted     wanted,
                            vreal          out[c_first + c_second])
{
    const int   top = wanted != FMM_FIELD ? p : p - 1; /* degree p has no gradient of its own */
    const vreal r2  = x * x + y * y + z * z;
    vreal       re = {0}, im = {0};
    sums        s = {0};
    re += 1;
    add_column(p, 0, top, z, r2, re, im, inverse, w, wanted, &s);
    for (int m = 1; m <= top; m++)
    {
        harm_next_diagonal(m, x, y, &re, &im);
        add_column(p, m, top, z, r2, re, im, inverse, w, wanted, &s);
    }
    out[c_phi] = s.phi;
    out[c_x]   = s.x;
    out[c_y]   = s.y;
    out[c_z]   = s.z;
    for (int k = 0; k < c_second && wanted == FMM_GRADIENT; k++)
    {
        out[c_first + k] = s.second[k];
    }
}

/* Adds these second derivatives to the gradient of the field, yy by its trace. apart: cells do not follow each other.
 */
static inline void
store_gradient(const gmxfmm_plan* plan, const walk* cells, int k, int apart, real trace, vreal (*second)[VLEN])
{
    static const int        c_from[6] = {c_xx, -1, c_zz, c_xy, c_xz, c_yz};
    const fmm_dipole_arrays of        = fmm_dipole_arrays_of(fmm_targets(plan));
    vreal                   yy[VLEN];
    for (int i = 0; i < VLEN; i++)
    {
        yy[i] = trace - second[c_xx][i] - second[c_zz][i];
    }
    for (int i = 0; i < 6; i++)
    {
        vreal* const value = c_from[i] < 0 ? yy : second[c_from[i]];
        if (apart)
        {
            walk_store_apart(cells, value, k, 1, of.gradient[i]);
        }
        else
        {
            walk_store(cells, value, k, 1, of.gradient[i]);
        }
    }
}

/* The background from the lanes' centres, which in an octree are at s from those of their roots:
 * c (q |s + y|^2 - 2 d.(s + y) + t) = t' + c q |y|^2 - 2 c d'.y. */
static void
shift_background(const gmxfmm_plan* plan, int first, int lanes, const fmm_background* bg, vreal* t, vreal d[3])
{
    *t   = (vreal){0};
    d[0] = d[1] = d[2] = *t;
    for (int l = 0; l < lanes; l++)
    {
        double s[3], sum = bg->t;
        fmm_moments_offset(plan, first + l, s);
        for (int e = 0; e < 3; e++)
        {
            sum += s[e] * (bg->q * s[e] - 2 * bg->d[e]);
            d[e][l] = (real)(bg->d[e] - bg->q * s[e]);
        }
        (*t)[l] = (real)(bg->c * sum);
    }
}

static inline void block_targets(const gmxfmm_plan*    plan,
                                 int                   first,
                                 int                   lanes,
                                 const real*           inverse,
                                 const weights*        w,
                                 const fmm_background* bg,
                                 fmm_wanted            wanted)
{
    const fmm_particle_set* targets = fmm_targets(plan);
    const fmm_arrays        a       = fmm_arrays_of(targets);
    const walk              cells   = walk_of(targets->cell_start, first, lanes);
    const real              cq = (real)(bg->c * bg->q), c2 = (real)(2 * bg->c);
    vreal                   t, d[3];
    shift_background(plan, first, lanes, bg, &t, d);
    for (int k = 0; k < cells.most; k += VLEN)
    {
        /* positions, and then the field there */
        vreal lx[VLEN], ly[VLEN], lz[VLEN], phi[VLEN] = {{0}}, second[c_second][VLEN];
        walk_load(&cells, a.x, k, lx);
        walk_load(&cells, a.y, k, ly);
        walk_load(&cells, a.z, k, lz);
        for (int i = 0; i < VLEN && k + i < cells.most; i++)
        {
            const vreal x = lx[i], y = ly[i], z = lz[i];
            vreal       out[c_first + c_second];
            evaluate(plan->far.order, x, y, z, inverse, w, wanted, out);
            phi[i] = out[0] + t + cq * (x * x + y * y + z * z) - c2 * (d[0] * x + d[1] * y + d[2] * z);
            lx[i]  = c2 * d[0] - 2 * cq * x - out[1];
            ly[i]  = c2 * d[1] - 2 * cq * y - out[2];
            lz[i]  = c2 * d[2] - 2 * cq * z - out[3];
            for (int e = 0; e < c_second && wanted == FMM_GRADIENT; e++)
            {
                second[e][i] = (e == c_xx || e == c_zz ? -2 * cq : 0) - out[c_first + e];
            }
        }
        if (wanted != FMM_FIELD)
        {
            walk_store(&cells, phi, k, 0, a.far_phi);
        }
        if (wanted != FMM_POTENTIAL)
        {
            walk_store(&cells, lx, k, 1, a.ex);
            walk_store(&cells, ly, k, 1, a.ey);
            walk_store(&cells, lz, k, 1, a.ez);
        }
        if (wanted == FMM_GRADIENT)
        {
            store_gradient(plan, &cells, k, 0, -6 * cq, second);
        }
    }
}

void fmm_l2p(
    const gmxfmm_plan* plan, const real* field, size_t stride, const fmm_background* background, fmm_wanted wanted)
{
    real            inverse[c_maxCoef];
    const int       num   = fmm_num_cells(plan);
    const fmm_range own   = fmm_own_cells(plan);
    const int*      start = fmm_targets(plan)->cell_start;
    harm_fill_inverse(plan->far.order, inverse);
#pragma omp parallel for schedule(dynamic, 4) num_threads(plan->num_threads)
    for (int first = own.begin / VLEN * VLEN; first < own.end; first += VLEN)
    {
        const int lanes = num - first < VLEN ? num - first : VLEN;
        if (start[first + lanes] == start[first])
        {
            continue;
        }
        const weights w = weights_in(fmm_thread_scratch(plan), plan->far.order);
        make_weights(plan->far.order, field, stride, first, &w);
        if (fmm_wants_gradient(plan, wanted))
        {
            make_second_weights(plan->far.order, &w);
            block_targets(plan, first, lanes, inverse, &w, background, FMM_GRADIENT);
            continue;
        }
        switch (wanted)
        {
        case FMM_POTENTIAL:
            block_targets(plan, first, lanes, inverse, &w, background, FMM_POTENTIAL);
            break;
        case FMM_FIELD:
            block_targets(plan, first, lanes, inverse, &w, background, FMM_FIELD);
            break;
        default:
            block_targets(plan, first, lanes, inverse, &w, background, FMM_BOTH);
        }
    }
}

/* Targets of leaves of one level, whose unit of length is 1/unit times u; there is no background. */
static inline void leaf_targets(
    const gmxfmm_plan* plan, const walk* cells, real unit, const real* inverse, const weights* w, fmm_wanted wanted)
{
    const fmm_arrays a     = fmm_arrays_of(fmm_targets(plan));
    const real       field = -unit * unit, gradient = field * unit;
    for (int k = 0; k < cells->most; k += VLEN)
    {
        vreal lx[VLEN], ly[VLEN], lz[VLEN], phi[VLEN] = {{0}}, second[c_second][VLEN];
        walk_load(cells, a.x, k, lx);
        walk_load(cells, a.y, k, ly);
        walk_load(cells, a.z, k, lz);
        for (int i = 0; i < VLEN && k + i < cells->most; i++)
        {
            vreal out[c_first + c_second];
            evaluate(plan->far.order, lx[i] * unit, ly[i] * unit, lz[i] * unit, inverse, w, wanted, out);
            phi[i] = out[0] * unit;
            lx[i]  = out[1] * field;
            ly[i]  = out[2] * field;
            lz[i]  = out[3] * field;
            for (int e = 0; e < c_second && wanted == FMM_GRADIENT; e++)
            {
                second[e][i] = out[c_first + e] * gradient;
            }
        }
        if (wanted != FMM_FIELD)
        {
            walk_store_apart(cells, phi, k, 0, a.far_phi);
        }
        if (wanted != FMM_POTENTIAL)
        {
            walk_store_apart(cells, lx, k, 1, a.ex);
            walk_store_apart(cells, ly, k, 1, a.ey);
            walk_store_apart(cells, lz, k, 1, a.ez);
        }
        if (wanted == FMM_GRADIENT)
        {
            store_gradient(plan, cells, k, 1, 0, second);
        }
    }
}

/* Leaves first .. of leaves->by_level, all of one level. */
static void
block_leaves(const gmxfmm_plan* plan, int level, int first, int lanes, const real* inverse, fmm_wanted wanted)
{
    const weights    w     = weights_in(fmm_thread_scratch(plan), plan->far.order);
    real* const      local = (real*)w.second;
    const fmm_level* from  = &plan->cpu->level[level];
    const int*       leaf  = plan->cpu->leaves.by_level + first;
    const walk       at    = walk_of_leaves(fmm_targets(plan)->cell_start, leaf, lanes);
    const real       unit  = (real)(1 / fmm_leaf_edge(plan, *leaf));
    for (int i = 0; i < harm_size(plan->far.order); i++)
    {
        for (int l = 0; l < VLEN; l++)
        {
            const size_t cell   = (size_t)plan->cpu->leaves.cell[leaf[l < lanes ? l : 0]];
            local[i * VLEN + l] = ((const real*)from->local)[(size_t)i * from->stride + cell];
        }
    }
    make_weights(plan->far.order, local, VLEN, 0, &w);
    if (fmm_wants_gradient(plan, wanted))
    {
        make_second_weights(plan->far.order, &w); /* in the place of the locals */
        leaf_targets(plan, &at, unit, inverse, &w, FMM_GRADIENT);
        return;
    }
    switch (wanted)
    {
    case FMM_POTENTIAL:
        leaf_targets(plan, &at, unit, inverse, &w, FMM_POTENTIAL);
        break;
    case FMM_FIELD:
        leaf_targets(plan, &at, unit, inverse, &w, FMM_FIELD);
        break;
    default:
        leaf_targets(plan, &at, unit, inverse, &w, FMM_BOTH);
    }
}

void fmm_l2p_leaves(const gmxfmm_plan* plan, fmm_wanted wanted)
{
    real              inverse[c_maxCoef];
    const fmm_leaves* leaves = &plan->cpu->leaves;
    harm_fill_inverse(plan->far.order, inverse);
    for (int level = 0; level <= plan->domain.tree->depth; level++)
    {
        const int begin = leaves->start[level], end = leaves->start[level + 1];
#pragma omp parallel for schedule(dynamic, 4) num_threads(plan->num_threads)
        for (int first = begin; first < end; first += VLEN)
        {
            block_leaves(plan, level, first, end - first < VLEN ? end - first : VLEN, inverse, wanted);
        }
    }
}
