/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * P2P: the particles of all near cells of a cell are gathered into one list, relative to the cell's centre; then each
 * target of the cell interacts with the whole list. Excluded pairs, among them the target with itself, have their 1/r
 * set to zero by a mask of bits, one for each place in the list. (Zero charges in the list would be slower: a vector
 * could not be loaded before these zeros are in the cache.)
 *
 * A particle with neither charge nor dipole may stand where another one does, as virtual sites do. As a source it is
 * moved away, and as a target it has the sources at its place masked.
 *
 * Plans with dipoles have kernels of their own, and so have derivatives along a way (plan->along). In plans with widths
 * close pairs are softened, and widths.c adds the rest.
 *
 * In an open system positions are the caller's own numbers, if the step has all their digits (fmm_has_given), in a
 * unit that is a power of two; sums are brought into units of u for each target.
 */
#include "fmm/cpu/near/p2p.h"

#include <omp.h>
#include <string.h>

#include "fmm/cpu/near/soften.h"
#include "fmm/cpu/ranks.h"
#include "fmm/cpu/simd/rsqrt.h"

#define DIPOLE_T vreal
#define DIPOLE_R real
#include "fmm/math/dipoles.h"

typedef struct
{
    real *     x, *y, *z, *q;
    fmm_lanes* kept;  /* a mask for each vector */
    real*      mu[3]; /* NULL without dipoles */
    real*      along; /* charges that go along a way; else NULL */
} near_list;

/* Coordinate of the list's padding and of other sources that have nothing: 1/r is finite there. */
static const real c_away = (real)1e4;

/* Where particles are for this file. */
typedef struct
{
    const real *x, *y, *z;
    int         shifted;   /* relative to the centres of their cells */
    real        away;      /* x of the padding: no particle is there */
    real        unit;      /* of these positions over u */
    real        least;     /* square of the distance below which pairs are not 1/r; 0: all are */
    int         softened;  /* whether they are softened there (soften.h), or have no force (min_distance) */
    int         uncharged; /* whether any source has neither charge nor dipole */
} near_positions;

/* No particle is more than 100 cells away from its own (fmm_permute). */
static const double c_farthest = 200;

static near_positions places_of(const gmxfmm_plan* plan, const fmm_particle_set* p)
{
    const fmm_cells* c        = &plan->domain.cells;
    const int        softened = plan->cpu->widths.soften > 0;
    const double     least    = (softened ? plan->cpu->widths.soften : plan->options.min_distance) / c->u;
    if (!fmm_has_given(plan))
    {
        const near_positions own = {
            p->x, p->y, p->z, 1, c_away, 1, (real)(least * least), softened, plan->cpu->uncharged};
        return own;
    }
    const double         scale = fmm_given_scale(plan), end = c->origin[0] + (c->n[0] + c_farthest) * c->edge;
    const double         unit = scale * c->u;
    const near_positions all  = {p->given[0],
                                 p->given[1],
                                 p->given[2],
                                 0,
                                 (real)(end * scale),
                                 (real)(1 / unit),
                                 (real)(least * unit * least * unit),
                                 softened,
                                 plan->cpu->uncharged};
    return all;
}

static size_t capacity(const gmxfmm_plan* plan)
{
    /* every cell is copied in whole vectors: the last one may spill */
    return ((size_t)plan->cpu->near_capacity + 2 * VLEN + FMM_ALIGN - 1) / FMM_ALIGN * FMM_ALIGN;
}

size_t fmm_p2p_scratch(const gmxfmm_plan* plan)
{
    const size_t arrays = plan->along != NULL ? 8 : fmm_has_dipoles(plan) ? 7 : 4;
    return arrays * capacity(plan) * sizeof(real) + capacity(plan) / VLEN * sizeof(fmm_lanes);
}

/* A list in this memory. */
static near_list list_in(const gmxfmm_plan* plan, real* memory)
{
    const size_t stride = capacity(plan);
    near_list    list   = {memory, memory + stride, memory + 2 * stride, memory + 3 * stride, NULL, {NULL, NULL, NULL},
                           NULL};
    real*        end    = memory + 4 * stride;
    for (int d = 0; d < 3 && fmm_has_dipoles(plan); d++)
    {
        list.mu[d] = end;
        end += stride;
    }
    if (plan->along != NULL)
    {
        list.along = end;
        end += stride;
    }
    list.kept = (fmm_lanes*)end;
    return list;
}

/* Copies count reals plus shift, in whole vectors. */
static inline void copy_shifted(real* to, const real* from, int count, real shift)
{
    for (int i = 0; i < count; i += VLEN)
    {
        *(vreal_unaligned*)(to + i) = *(const vreal_unaligned*)(from + i) + shift;
    }
}

/* The same; `elsewhere` where there is no charge. */
static inline void copy_charged(real* to, const real* from, const real* q, int count, real shift, real elsewhere)
{
    const vreal zero = {0}, away = zero + elsewhere;
    for (int i = 0; i < count; i += VLEN)
    {
        const vinteger charged      = *(const vreal_unaligned*)(q + i) != zero;
        const vreal    x            = *(const vreal_unaligned*)(from + i) + shift;
        *(vreal_unaligned*)(to + i) = (vreal)(((vinteger)x & charged) | ((vinteger)away & ~charged));
    }
}

/* The same of particles with charges q and dipoles mu, and charges `along` if these are not NULL. */
static inline void copy_with_dipoles(real*              to,
                                     const real*        from,
                                     const real*        q,
                                     const real* const* mu,
                                     const real*        along,
                                     int                count,
                                     real               shift,
                                     real               elsewhere)
{
    const vreal zero = {0}, away = zero + elsewhere;
    for (int i = 0; i < count; i += VLEN)
    {
        vinteger has = *(const vreal_unaligned*)(q + i) != zero;
        for (int d = 0; d < 3; d++)
        {
            has |= *(const vreal_unaligned*)(mu[d] + i) != zero;
        }
        if (along != NULL)
        {
            has |= *(const vreal_unaligned*)(along + i) != zero;
        }
        const vreal x               = *(const vreal_unaligned*)(from + i) + shift;
        *(vreal_unaligned*)(to + i) = (vreal)(((vinteger)x & has) | ((vinteger)away & ~has));
    }
}

static inline void copy_scaled(real* to, const real* from, int count, real scale)
{
    for (int i = 0; i < count; i += VLEN)
    {
        *(vreal_unaligned*)(to + i) = *(const vreal_unaligned*)(from + i) * scale;
    }
}

/* Adds count particles from `begin` on to a list of num. */
static inline void append(
    const near_positions* at, const real* q, int begin, int count, const double* shift, const near_list* list, int num)
{
    if (at->uncharged)
    {
        copy_charged(list->x + num, at->x + begin, q + begin, count, (real)shift[0], at->away);
    }
    else
    {
        copy_shifted(list->x + num, at->x + begin, count, (real)shift[0]);
    }
    copy_shifted(list->y + num, at->y + begin, count, (real)shift[1]);
    copy_shifted(list->z + num, at->z + begin, count, (real)shift[2]);
    copy_scaled(list->q + num, q + begin, count, (real)-0.5);
}

/* The same with dipoles, in the unit of the positions; charges are not scaled. */
static inline void append_dipoles(const near_positions* at,
                                  const real*           q,
                                  const real* const*    mu,
                                  const real*           along,
                                  int                   begin,
                                  int                   count,
                                  const double*         shift,
                                  const near_list*      list,
                                  int                   num)
{
    const real* const from[3] = {mu[0] + begin, mu[1] + begin, mu[2] + begin};
    if (at->uncharged)
    {
        copy_with_dipoles(list->x + num, at->x + begin, q + begin, from, along != NULL ? along + begin : NULL, count,
                          (real)shift[0], at->away);
    }
    else
    {
        copy_shifted(list->x + num, at->x + begin, count, (real)shift[0]);
    }
    copy_shifted(list->y + num, at->y + begin, count, (real)shift[1]);
    copy_shifted(list->z + num, at->z + begin, count, (real)shift[2]);
    copy_shifted(list->q + num, q + begin, count, 0);
    if (along != NULL)
    {
        copy_shifted(list->along + num, along + begin, count, 0);
    }
    for (int d = 0; d < 3; d++)
    {
        copy_scaled(list->mu[d] + num, from[d], count, 1 / at->unit);
    }
}

/* The runs of leaves near to a leaf. */
INLINE int gather_leaves(const gmxfmm_plan*    plan,
                         const near_positions* at,
                         const real*           q,
                         const real* const*    mu,
                         const real*           along,
                         int                   leaf,
                         const near_list*      list)
{
    static const double c_none[3] = {0, 0, 0};
    const fmm_leaves*   leaves    = &plan->cpu->leaves;
    const int*          start     = plan->cpu->sources.cell_start;
    int                 num       = 0;
    for (int k = leaves->near_start[leaf]; k < leaves->near_start[leaf + 1]; k++)
    {
        const int begin = start[leaves->near[k][0]], count = start[leaves->near[k][1]] - begin;
        if (mu != NULL)
        {
            append_dipoles(at, q, mu, along, begin, count, c_none, list, num);
        }
        else
        {
            append(at, q, begin, count, c_none, list, num);
        }
        num += count;
    }
    return num;
}

/* Gathers the near particles of cell c[3]; returns their number, the list padded to whole vectors. mu: NULL without
 * dipoles; along: of the list, or NULL. */
INLINE int gather_with(const gmxfmm_plan*    plan,
                       const near_positions* at,
                       const real*           q,
                       const real* const*    mu,
                       const real*           along,
                       int                   target,
                       const int*            c,
                       const near_list*      list)
{
    static const double  c_none[3] = {0, 0, 0};
    const fmm_cells*     cells     = &plan->domain.cells;
    const int*           start     = plan->cpu->sources.cell_start;
    const near_positions from      = *at; /* copies, which stores to the list cannot change */
    const near_list      to        = *list;
    const int            adaptive = fmm_is_adaptive(plan), num_near = adaptive ? 0 : cells->num_near;
    int                  num = adaptive ? gather_leaves(plan, at, q, mu, along, target, list) : 0;
    for (int o = 0; o < num_near; o++)
    {
        const int cell  = fmm_near_of(plan, target, c, o);
        const int begin = start[cell], count = start[cell + 1] - begin;
        if (mu != NULL)
        {
            append_dipoles(&from, q, mu, along, begin, count, from.shifted ? cells->near_shift[o] : c_none, &to, num);
        }
        else
        {
            append(&from, q, begin, count, from.shifted ? cells->near_shift[o] : c_none, &to, num);
        }
        num += count;
    }
    for (int i = 0; i < VLEN; i++)
    {
        list->x[num + i] = at->away;
        list->y[num + i] = 0;
        list->z[num + i] = 0;
        list->q[num + i] = 0;
        for (int d = 0; d < 3 && mu != NULL; d++)
        {
            list->mu[d][num + i] = 0;
        }
        if (along != NULL)
        {
            list->along[num + i] = 0;
        }
    }
    memset(list->kept, 0xff, (size_t)((num + VLEN - 1) / VLEN) * sizeof(fmm_lanes));
    return (num + VLEN - 1) / VLEN * VLEN;
}

static int gather(
    const gmxfmm_plan* plan, const near_positions* at, const real* q, int target, const int* c, const near_list* list)
{
    return gather_with(plan, at, q, NULL, NULL, target, c, list);
}

static int gather_dipoles(const gmxfmm_plan*    plan,
                          const near_positions* at,
                          const real*           q,
                          const real* const*    mu,
                          int                   target,
                          const int*            c,
                          const near_list*      list)
{
    return gather_with(plan, at, q, mu, NULL, target, c, list);
}

static inline real lane_sum(vreal v)
{
    real sum = 0;
    for (int l = 0; l < VLEN; l++)
    {
        sum += v[l];
    }
    return sum;
}

/* Sums of one target over the list: phi, field, and for a virial q r r^T / r^3 (xx, yy, zz, xy, xz, yz). */
enum
{
    c_phi,
    c_field,
    c_square   = 4,
    c_mostSums = 10
};

/* 1/r and 1/r^3 by the steps of rsqrt.h, with common factors taken out: (e - 3) and (e - 5/3). */
static const real c_fiveThirds = (real)(5.0 / 3.0);

/* What pairs are below the distance whose square is `least`. */
typedef enum
{
    NOT_LIMITED,
    WITHOUT_FORCE,
    SOFTENED
} limit_kind;

static inline void interact_vector(const near_list* list,
                                   int              j,
                                   vreal            x,
                                   vreal            y,
                                   vreal            z,
                                   limit_kind       limited,
                                   real             least,
                                   fmm_wanted       wanted,
                                   vreal            sum[c_mostSums])
{
    const vreal dx     = x - *(const vreal*)(list->x + j);
    const vreal dy     = y - *(const vreal*)(list->y + j);
    const vreal dz     = z - *(const vreal*)(list->z + j);
    vreal       r2     = dx * dx + dy * dy + dz * dz;
    vinteger    inside = {0};
    vreal       v      = {0};
    if (limited != NOT_LIMITED)
    {
        const vreal zero = {0}, limit = zero + least;
        inside = r2 < limit;
        v      = (vreal)((vinteger)(1 - r2 / least) & inside);
        r2     = (vreal)(((vinteger)r2 & ~inside) | ((vinteger)limit & inside));
    }
    const vreal t = fmm_rsqrt_estimate(r2, list->kept[j / VLEN]), t2 = t * t, qt = *(const vreal*)(list->q + j) * t;
    if (wanted != FMM_FIELD)
    {
        if (limited == SOFTENED)
        {
            sum[c_phi] += qt * (r2 * t2 - 3) * fmm_soften_potential(v);
        }
        else
        {
            sum[c_phi] += qt * (r2 * t2 - 3);
        }
    }
    if (wanted == FMM_POTENTIAL)
    {
        return;
    }
    vreal f = (qt * t2) * (r2 * t2 - c_fiveThirds);
    if (limited == WITHOUT_FORCE)
    {
        f = (vreal)((vinteger)f & ~inside);
    }
    if (limited == SOFTENED)
    {
        f *= fmm_soften_force(v);
    }
    sum[c_field] += f * dx;
    sum[c_field + 1] += f * dy;
    sum[c_field + 2] += f * dz;
    if (wanted == FMM_VIRIAL)
    {
        const vreal fx = f * dx, fy = f * dy;
        sum[c_square] += fx * dx;
        sum[c_square + 1] += fy * dy;
        sum[c_square + 2] += f * dz * dz;
        sum[c_square + 3] += fx * dy;
        sum[c_square + 4] += fx * dz;
        sum[c_square + 5] += fy * dz;
    }
}

/* Places of a list that are summed up before they are added to the sum: a sum's rounding grows with the number of its
 * terms, and a list has some thousand. */
enum
{
    c_block = 16 * VLEN
};

static inline void interact(const near_list* list,
                            int              num,
                            real             x,
                            real             y,
                            real             z,
                            limit_kind       limited,
                            real             least,
                            fmm_wanted       wanted,
                            real*            out)
{
    const int   first = wanted == FMM_FIELD ? c_field : c_phi;
    const int   sums  = wanted == FMM_POTENTIAL ? c_field : wanted == FMM_VIRIAL ? c_mostSums : c_square;
    const vreal zero  = {0};
    const vreal vx = zero + x, vy = zero + y, vz = zero + z;
    vreal       sum[c_mostSums], block[c_mostSums];
    for (int i = first; i < sums; i++)
    {
        sum[i] = zero;
    }
    for (int begin = 0; begin < num; begin += c_block)
    {
        const int end = begin + c_block < num ? begin + c_block : num;
        for (int i = first; i < sums; i++)
        {
            block[i] = zero;
        }
        for (int j = begin; j < end; j += VLEN)
        {
            interact_vector(list, j, vx, vy, vz, limited, least, wanted, block);
        }
        for (int i = first; i < sums; i++)
        {
            sum[i] += block[i];
        }
    }
    /* phi: the list's charges have the factor -1/2; f: -3/2 in place of that, but so that what is exact at e = 1 stays
     * exact though 5/3 is rounded */
    const real scale = 2 / (c_fiveThirds - 1);
    for (int i = first; i < sums; i++)
    {
        out[i] = lane_sum(sum[i]) * (i == c_phi ? 1 : scale);
    }
}

/* Sums in units of u: 1/r for potential and virial, 1/r^2 for the field. */
static inline void to_unit(real unit, fmm_wanted wanted, real* out)
{
    const int  first = wanted == FMM_FIELD ? c_field : c_phi;
    const int  sums  = wanted == FMM_POTENTIAL ? c_field : wanted == FMM_VIRIAL ? c_mostSums : c_square;
    const real one   = 1 / unit;
    for (int i = first; i < sums; i++)
    {
        out[i] *= i >= c_field && i < c_square ? one * one : one;
    }
}

/* Masks the sources at this place; returns whether there are any. */
static int mask_place(const near_list* list, int num, real x, real y, real z)
{
    const vreal    zero = {0}, vx = zero + x, vy = zero + y, vz = zero + z;
    const vinteger none = {0};
    vinteger       any  = none;
    lane_integer   met  = 0;
    for (int j = 0; j < num; j += VLEN)
    {
        any |= (*(const vreal*)(list->x + j) == vx) & (*(const vreal*)(list->y + j) == vy) &
               (*(const vreal*)(list->z + j) == vz);
    }
    for (int l = 0; l < VLEN; l++)
    {
        met |= any[l];
    }
    for (int j = 0; j < num && met != 0; j++)
    {
        if (list->x[j] == x && list->y[j] == y && list->z[j] == z)
        {
            list->kept[j / VLEN] &= (fmm_lanes) ~(1U << (j % VLEN));
        }
    }
    return met != 0;
}

/* Sums of one target over the list with dipoles: phi, field, its gradient, and for a virial sym(r F^T). */
enum
{
    c_gradient   = 4,
    c_lever      = 10,
    c_dipoleSums = 16
};

/* How many of these are wanted. */
static inline int dipole_sums(fmm_wanted wanted)
{
    return wanted == FMM_VIRIAL ? c_dipoleSums : wanted == FMM_GRADIENT ? c_lever : c_gradient;
}

/* x, q, mu: the target's, the last two for a virial. */
static inline void interact_dipoles(const near_list* list,
                                    int              j,
                                    dipole_vector    x,
                                    vreal            q,
                                    dipole_vector    mu,
                                    fmm_wanted       wanted,
                                    vreal            sum[c_dipoleSums])
{
    const dipole_vector r  = {x.x - *(const vreal*)(list->x + j), x.y - *(const vreal*)(list->y + j),
                              x.z - *(const vreal*)(list->z + j)};
    const dipole_vector of = {*(const vreal*)(list->mu[0] + j), *(const vreal*)(list->mu[1] + j),
                              *(const vreal*)(list->mu[2] + j)};
    const vreal         r2 = dipole_dot(r, r), t = fmm_rsqrt_estimate(r2, list->kept[j / VLEN]);
    const vreal         w = t * ((real)1.5 - (real)0.5 * r2 * t * t), w2 = w * w;
    const dipole_source s     = dipole_see(*(const vreal*)(list->q + j), of, r, w);
    const dipole_vector field = dipole_field(&s);
    sum[c_phi] += s.potential * w;
    sum[c_field] += field.x * w2;
    sum[c_field + 1] += field.y * w2;
    sum[c_field + 2] += field.z * w2;
    if (wanted >= FMM_VIRIAL)
    {
        dipole_add_gradient(&s, w2 * w, sum + c_gradient);
    }
    if (wanted == FMM_VIRIAL)
    {
        dipole_add_lever(&s, dipole_force(&s, q, dipole_times(mu, w)), w, sum + c_lever);
    }
}

/* The gradient where all dipoles are zero: the list has charges alone, times -1/2. Sums are those of interact_dipoles,
 * but for bare_factor. */
static inline void interact_bare(const near_list* list, int j, dipole_vector x, vreal sum[c_dipoleSums])
{
    const dipole_vector r  = {x.x - *(const vreal*)(list->x + j), x.y - *(const vreal*)(list->y + j),
                              x.z - *(const vreal*)(list->z + j)};
    const vreal         r2 = dipole_dot(r, r), t = fmm_rsqrt_estimate(r2, list->kept[j / VLEN]);
    const vreal         w = t * ((real)1.5 - (real)0.5 * r2 * t * t), phi = *(const vreal*)(list->q + j) * w;
    const dipole_vector n = dipole_times(r, w), f = dipole_times(n, phi * w), g = dipole_times(f, w);
    sum[c_phi] += phi;
    sum[c_field] += f.x;
    sum[c_field + 1] += f.y;
    sum[c_field + 2] += f.z;
    sum[c_gradient] += g.x * n.x;
    sum[c_gradient + 1] += g.y * n.y;
    sum[c_gradient + 2] += g.z * n.z;
    sum[c_gradient + 3] += g.x * n.y;
    sum[c_gradient + 4] += g.x * n.z;
    sum[c_gradient + 5] += g.y * n.z;
}

static inline real bare_factor(int i)
{
    return (real)(i < c_gradient ? -2 : i < c_gradient + 3 ? 3 : 6);
}

/* Sums of target s, in units of u, in `out`. bare: all dipoles are zero, and the gradient is wanted. */
static inline void target_dipoles(const near_list*      list,
                                  int                   num,
                                  const near_positions* to,
                                  const real*           own_q,
                                  const real* const*    own_mu,
                                  int                   s,
                                  fmm_wanted            wanted,
                                  int                   bare,
                                  real*                 out)
{
    const int           sums = dipole_sums(wanted);
    const real          one  = 1 / to->unit;
    const vreal         zero = {0};
    vreal               q    = zero, sum[c_dipoleSums], block[c_dipoleSums];
    const dipole_vector x    = {zero + to->x[s], zero + to->y[s], zero + to->z[s]};
    dipole_vector       mu   = {zero, zero, zero};
    for (int i = 0; i < sums; i++)
    {
        sum[i] = zero;
    }
    if (wanted == FMM_VIRIAL)
    {
        q += own_q[s];
        mu.x += own_mu[0][s] * one;
        mu.y += own_mu[1][s] * one;
        mu.z += own_mu[2][s] * one;
    }
    for (int begin = 0; begin < num; begin += c_block)
    {
        const int end = begin + c_block < num ? begin + c_block : num;
        for (int i = 0; i < sums; i++)
        {
            block[i] = zero;
        }
        for (int j = begin; j < end; j += VLEN)
        {
            if (bare)
            {
                interact_bare(list, j, x, block);
            }
            else
            {
                interact_dipoles(list, j, x, q, mu, wanted, block);
            }
        }
        for (int i = 0; i < sums; i++)
        {
            sum[i] += block[i];
        }
    }
    for (int i = 0; i < sums; i++)
    {
        const real unit = i == c_phi || i >= c_lever ? one : i < c_gradient ? one * one : one * one * one;
        out[i]          = lane_sum(sum[i]) * (bare ? unit * bare_factor(i) : unit);
    }
    if (sums > c_gradient)
    {
        dipole_end_gradient(out + c_gradient);
    }
}

/* Targets of one cell with its near particles, of a plan with dipoles. */
static inline void target_cell_dipoles(
    const gmxfmm_plan* plan, int cell, const near_list* list, fmm_wanted wanted, int bare, double* virial)
{
    const fmm_particle_set* targets = fmm_targets(plan);
    const fmm_arrays        sources = fmm_arrays_of(&plan->cpu->sources), a = fmm_arrays_of(targets);
    const fmm_dipole_arrays of = fmm_dipole_arrays_of(&plan->cpu->sources), at = fmm_dipole_arrays_of(targets);
    const real* const       mu[3] = {of.mu[0], of.mu[1], of.mu[2]};
    const near_positions    from = places_of(plan, &plan->cpu->sources), to = places_of(plan, targets);
    const int               with_masks = plan->particles.num_targets == 0;
    const int               after_far  = fmm_far_is_first(plan, wanted);
    const int *all_masks = plan->cpu->mask, *mask_start = plan->cpu->mask_start, *mask_far = plan->cpu->mask_far;
    int        c[3] = {0, 0, 0};
    if (!fmm_is_adaptive(plan))
    {
        fmm_cell_place(plan, cell, c);
    }
    const int num = bare ? gather(plan, &from, sources.q, cell, c, list)
                         : gather_dipoles(plan, &from, sources.q, mu, cell, c, list);
    for (int s = targets->cell_start[cell]; s < targets->cell_start[cell + 1]; s++)
    {
        const int* mask  = all_masks + (with_masks ? mask_start[s] : 0);
        const int  masks = with_masks ? mask_far[s] - mask_start[s] : 0;
        real       out[c_dipoleSums];
        for (int i = 0; i < masks; i++)
        {
            list->kept[mask[i] / VLEN] &= (fmm_lanes) ~(1U << (mask[i] % VLEN));
        }
        const int nothing = with_masks && a.q[s] == 0 && mu[0][s] == 0 && mu[1][s] == 0 && mu[2][s] == 0;
        const int all     = nothing && mask_place(list, num, to.x[s], to.y[s], to.z[s]);
        target_dipoles(list, num, &to, sources.q, mu, s, wanted, bare, out);
        for (int i = 0; i < masks; i++)
        {
            list->kept[mask[i] / VLEN] = (fmm_lanes)~0U;
        }
        if (all)
        {
            memset(list->kept, 0xff, (size_t)num / VLEN * sizeof(fmm_lanes));
        }
        a.near_phi[s] = out[c_phi];
        a.ex[s]       = out[c_field] + (after_far ? a.ex[s] : 0);
        a.ey[s]       = out[c_field + 1] + (after_far ? a.ey[s] : 0);
        a.ez[s]       = out[c_field + 2] + (after_far ? a.ez[s] : 0);
        for (int i = 0; i < 6 && wanted >= FMM_VIRIAL; i++)
        {
            at.gradient[i][s] = out[c_gradient + i] + (after_far ? at.gradient[i][s] : 0);
        }
        for (int i = 0; i < 6 && wanted == FMM_VIRIAL; i++)
        {
            virial[i] -= 0.25 * (double)out[c_lever + i]; /* every pair is counted twice */
        }
    }
}

/* Sums of one target over the list, of ways: potential and field of the sources, less (d.r)/r^3 and with the
 * derivative of the charges' field along d, the way of the target less that of the source; and potential and field of
 * the charges. */
enum
{
    c_ofCharges = 4,
    c_alongSums = 8
};

/* u: the target's way. In the list dipoles are charges times their ways. */
static inline void
interact_along(const near_list* list, int j, dipole_vector x, dipole_vector u, vreal sum[c_alongSums])
{
    const dipole_vector r  = {x.x - *(const vreal*)(list->x + j), x.y - *(const vreal*)(list->y + j),
                              x.z - *(const vreal*)(list->z + j)};
    const vreal         q  = *(const vreal*)(list->along + j);
    const dipole_vector d  = {q * u.x - *(const vreal*)(list->mu[0] + j), q * u.y - *(const vreal*)(list->mu[1] + j),
                              q * u.z - *(const vreal*)(list->mu[2] + j)};
    const vreal         r2 = dipole_dot(r, r), t = fmm_rsqrt_estimate(r2, list->kept[j / VLEN]);
    const vreal         v = t * ((real)1.5 - (real)0.5 * r2 * t * t), v2 = v * v, v3 = v2 * v, own = q * v3;
    const vreal         stretch = dipole_dot(d, r) * v2, other = *(const vreal*)(list->q + j);
    const vreal         length = (other - stretch * (real)3) * v3;
    sum[0] += (other - stretch) * v;
    sum[1] += length * r.x + d.x * v3;
    sum[2] += length * r.y + d.y * v3;
    sum[3] += length * r.z + d.z * v3;
    sum[c_ofCharges] += q * v;
    sum[c_ofCharges + 1] += own * r.x;
    sum[c_ofCharges + 2] += own * r.y;
    sum[c_ofCharges + 3] += own * r.z;
}

/* Charges and ways of the particles in sorted order, ways in unit u. */
typedef struct
{
    real *q, *u[3];
} along_arrays;

static along_arrays along_arrays_of(const gmxfmm_plan* plan)
{
    const size_t       stride = (size_t)plan->particles.n + FMM_ALONG_PADDING;
    real* const        room   = plan->along->room;
    const along_arrays a      = {room, {room + stride, room + 2 * stride, room + 3 * stride}};
    return a;
}

static void sort_along(const gmxfmm_plan* plan)
{
    const fmm_particle_set* p   = &plan->cpu->sources;
    const along_arrays      a   = along_arrays_of(plan);
    const double            one = 1 / plan->domain.cells.u;
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (int64_t s = 0; s < p->n; s++)
    {
        const size_t i = (size_t)p->sorted[s];
        a.q[s]         = (real)plan->along->q[i];
        for (size_t d = 0; d < 3; d++)
        {
            a.u[d][s] = (real)(plan->along->u[3 * i + d] * one);
        }
    }
}

/* Sums of target s, in units of u, in `out`. */
static inline void
target_along(const near_list* list, int num, const near_positions* to, const along_arrays* of, int s, real* out)
{
    const real          one  = 1 / to->unit;
    const vreal         zero = {0};
    vreal               sum[c_alongSums], block[c_alongSums];
    const dipole_vector x = {zero + to->x[s], zero + to->y[s], zero + to->z[s]};
    const dipole_vector u = {zero + of->u[0][s] * one, zero + of->u[1][s] * one, zero + of->u[2][s] * one};
    for (int i = 0; i < c_alongSums; i++)
    {
        sum[i] = zero;
    }
    for (int begin = 0; begin < num; begin += c_block)
    {
        const int end = begin + c_block < num ? begin + c_block : num;
        for (int i = 0; i < c_alongSums; i++)
        {
            block[i] = zero;
        }
        for (int j = begin; j < end; j += VLEN)
        {
            interact_along(list, j, x, u, block);
        }
        for (int i = 0; i < c_alongSums; i++)
        {
            sum[i] += block[i];
        }
    }
    for (int i = 0; i < c_alongSums; i++)
    {
        out[i] = lane_sum(sum[i]) * (i % c_ofCharges == 0 ? one : one * one);
    }
}

/* Targets of one cell with its near particles, along a way. */
static void target_cell_along(const gmxfmm_plan* plan, int cell, const near_list* list)
{
    const fmm_particle_set* p     = &plan->cpu->sources;
    const fmm_arrays        a     = fmm_arrays_of(p);
    const fmm_dipole_arrays of    = fmm_dipole_arrays_of(p);
    const along_arrays      way   = along_arrays_of(plan);
    const real* const       mu[3] = {of.mu[0], of.mu[1], of.mu[2]};
    const near_positions    at    = places_of(plan, p);
    const fmm_along*        along = plan->along;
    const int *  all_masks = plan->cpu->mask, *mask_start = plan->cpu->mask_start, *mask_far = plan->cpu->mask_far;
    const double f1   = 1 / plan->domain.cells.u;
    int          c[3] = {0, 0, 0};
    if (!fmm_is_adaptive(plan))
    {
        fmm_cell_place(plan, cell, c);
    }
    const int num = gather_with(plan, &at, a.q, mu, way.q, cell, c, list);
    for (int s = p->cell_start[cell]; s < p->cell_start[cell + 1]; s++)
    {
        const int* mask    = all_masks + mask_start[s];
        const int  masks   = mask_far[s] - mask_start[s];
        const int  nothing = a.q[s] == 0 && way.q[s] == 0; /* and no dipole */
        const int  i       = p->sorted[s];
        real       out[c_alongSums];
        for (int k = 0; k < masks; k++)
        {
            list->kept[mask[k] / VLEN] &= (fmm_lanes) ~(1U << (mask[k] % VLEN));
        }
        const int all = nothing && mask_place(list, num, at.x[s], at.y[s], at.z[s]);
        target_along(list, num, &at, &way, s, out);
        for (int k = 0; k < masks; k++)
        {
            list->kept[mask[k] / VLEN] = (fmm_lanes)~0U;
        }
        if (all)
        {
            memset(list->kept, 0xff, (size_t)num / VLEN * sizeof(fmm_lanes));
        }
        a.near_phi[s] = out[0];
        a.ex[s]       = out[1];
        a.ey[s]       = out[2];
        a.ez[s]       = out[3];
        along->phi[i] = (double)out[c_ofCharges] * f1;
        for (int d = 0; d < 3; d++)
        {
            along->field[3 * (size_t)i + (size_t)d] = (double)out[c_ofCharges + 1 + d] * f1 * f1;
        }
    }
}

/* The near field of the first step along a way. */
static void clear_near(const gmxfmm_plan* plan)
{
    const fmm_particle_set* p     = &plan->cpu->sources;
    const fmm_arrays        a     = fmm_arrays_of(p);
    const size_t            bytes = (size_t)p->n * sizeof(real);
    memset(a.near_phi, 0, bytes);
    memset(a.ex, 0, bytes);
    memset(a.ey, 0, bytes);
    memset(a.ez, 0, bytes);
    for (int i = 0; i < 6; i++)
    {
        memset(p->gradient[i], 0, bytes);
    }
}

/* Targets of one cell with its near particles. Targets that are not the charges exclude no pairs. */
static inline void
target_cell(const gmxfmm_plan* plan, int cell, const near_list* list, fmm_wanted wanted, double* virial)
{
    const fmm_particle_set* targets = fmm_targets(plan);
    const fmm_arrays        sources = fmm_arrays_of(&plan->cpu->sources), a = fmm_arrays_of(targets);
    const near_positions    from = places_of(plan, &plan->cpu->sources), to = places_of(plan, targets);
    const int               with_masks = plan->particles.num_targets == 0;
    const int               after_far  = fmm_far_is_first(plan, wanted);
    const int *all_masks = plan->cpu->mask, *mask_start = plan->cpu->mask_start, *mask_far = plan->cpu->mask_far;
    int        c[3] = {0, 0, 0};
    if (!fmm_is_adaptive(plan))
    {
        fmm_cell_place(plan, cell, c);
    }
    const int num = gather(plan, &from, sources.q, cell, c, list);
    for (int s = targets->cell_start[cell]; s < targets->cell_start[cell + 1]; s++)
    {
        const int* mask  = all_masks + (with_masks ? mask_start[s] : 0);
        const int  masks = with_masks ? mask_far[s] - mask_start[s] : 0;
        real       out[c_mostSums];
        for (int i = 0; i < masks; i++)
        {
            list->kept[mask[i] / VLEN] &= (fmm_lanes) ~(1U << (mask[i] % VLEN));
        }
        /* with a limit what is at the same place has a finite potential */
        const int all = with_masks && a.q[s] == 0 && to.least == 0 && mask_place(list, num, to.x[s], to.y[s], to.z[s]);
        if (to.least > 0 && to.softened)
        {
            interact(list, num, to.x[s], to.y[s], to.z[s], SOFTENED, to.least, wanted, out);
        }
        else if (to.least > 0)
        {
            interact(list, num, to.x[s], to.y[s], to.z[s], WITHOUT_FORCE, to.least, wanted, out);
        }
        else
        {
            interact(list, num, to.x[s], to.y[s], to.z[s], NOT_LIMITED, 0, wanted, out);
        }
        if (!to.shifted)
        {
            to_unit(to.unit, wanted, out);
        }
        for (int i = 0; i < masks; i++)
        {
            list->kept[mask[i] / VLEN] = (fmm_lanes)~0U;
        }
        if (all)
        {
            memset(list->kept, 0xff, (size_t)num / VLEN * sizeof(fmm_lanes));
        }
        if (wanted != FMM_FIELD)
        {
            a.near_phi[s] = out[c_phi];
        }
        if (wanted != FMM_POTENTIAL)
        {
            a.ex[s] = out[c_field] + (after_far ? a.ex[s] : 0);
            a.ey[s] = out[c_field + 1] + (after_far ? a.ey[s] : 0);
            a.ez[s] = out[c_field + 2] + (after_far ? a.ez[s] : 0);
        }
        for (int i = 0; i < 6 && wanted == FMM_VIRIAL; i++)
        {
            /* every pair is counted twice */
            virial[i] -= 0.25 * (double)a.q[s] * (double)out[c_square + i];
        }
    }
}

/* The same by the kernel for what is wanted of a plan with dipoles. */
static void
cell_with_dipoles(const gmxfmm_plan* plan, int cell, const near_list* list, fmm_wanted wanted, double* virial)
{
    switch (wanted)
    {
    case FMM_VIRIAL:
        target_cell_dipoles(plan, cell, list, FMM_VIRIAL, 0, virial);
        break;
    case FMM_GRADIENT:
        if (plan->cpu->no_dipoles)
        {
            target_cell_dipoles(plan, cell, list, FMM_GRADIENT, 1, virial);
        }
        else
        {
            target_cell_dipoles(plan, cell, list, FMM_GRADIENT, 0, virial);
        }
        break;
    default: /* potential and field go together */
        target_cell_dipoles(plan, cell, list, FMM_BOTH, 0, virial);
    }
}

void fmm_p2p(gmxfmm_plan* plan, fmm_wanted wanted, double* virial)
{
    const int       rows = plan->cpu->partial_rows, dipoles = fmm_has_dipoles(plan);
    const fmm_range own   = fmm_own_rows(plan);
    const int*      start = fmm_targets(plan)->cell_start;
    memset(plan->cpu->partial, 0, (size_t)rows * FMM_PARTIAL * sizeof(double));
    if (plan->along != NULL && !plan->along->second)
    {
        clear_near(plan);
        return;
    }
    if (plan->along != NULL)
    {
        sort_along(plan);
    }
#pragma omp parallel for schedule(dynamic) num_threads(plan->num_threads)
    for (int row = own.begin; row < own.end; row++)
    {
        const near_list list  = list_in(plan, fmm_thread_scratch(plan));
        double*         sum   = plan->cpu->partial + (size_t)row * FMM_PARTIAL;
        const int       begin = fmm_row_cell(plan, row), end = fmm_row_cell(plan, row + 1);
        for (int cell = begin; cell < end; cell++)
        {
            if (start[cell] == start[cell + 1])
            {
                continue;
            }
            if (plan->along != NULL)
            {
                target_cell_along(plan, cell, &list);
                continue;
            }
            if (dipoles)
            {
                cell_with_dipoles(plan, cell, &list, wanted, sum);
                continue;
            }
            switch (wanted)
            {
            case FMM_POTENTIAL:
                target_cell(plan, cell, &list, FMM_POTENTIAL, sum);
                break;
            case FMM_FIELD:
                target_cell(plan, cell, &list, FMM_FIELD, sum);
                break;
            case FMM_BOTH:
                target_cell(plan, cell, &list, FMM_BOTH, sum);
                break;
            default:
                target_cell(plan, cell, &list, FMM_VIRIAL, sum);
            }
        }
    }
    if (wanted == FMM_VIRIAL)
    {
        fmm_gather_rows(plan);
    }
    for (int row = 0; row < rows && wanted == FMM_VIRIAL; row++)
    {
        for (int i = 0; i < 6; i++)
        {
            virial[i] += plan->cpu->partial[row * FMM_PARTIAL + i];
        }
    }
}
