/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sums of a batch of targets over its lists: vectors of targets interact with one source after the other, a
 * particle of a direct cluster or a Chebyshev point of an approximated one (Vaughn, Wilson & Krasny 2020, eqs. 9 and
 * 11). Positions are relative to the batch's centre; in single precision each cluster's sum is added in double.
 * Particles nearer than 1/64 of the batch's radius would lose digits by that: they are taken one by one, in double
 * precision.
 *
 * A particle without charge may stand where others do. As a source it is moved away; where the sums of a target without
 * charge are not finite, its block is gone through again without the pairs that are not.
 */
#include "fmm/treecode/state.h"

#include <omp.h>
#include <string.h>

#include "fmm/treecode/chebyshev.h"
#include "fmm/treecode/pair.h"
#include "fmm/cpu/simd/vector_math.h"

typedef vreal number;
#define TREECODE_FUNCTION static inline
#include "fmm/treecode/kernels.h"

enum
{
    c_vectors = 2,                            /* of targets that go through a cluster together */
    c_block   = c_vectors * VLEN,             /* targets */
    c_chunk   = 1024,                         /* sources of a direct cluster that are gathered at a time */
    c_group   = 8,                            /* sources after which it is asked whether one was too close */
    c_rounds  = sizeof(real) < sizeof(double) /* places, so that close pairs need care */
};

/* x of sources without charge: no target is there, as the system is no longer than 1 at assign. */
static const double c_away = 1e6;

/* Scratch of a thread. */
typedef struct
{
    real*   x[3];   /* targets, padded to blocks */
    double* sum[4]; /* their potentials and fields */
    real*   y[3];   /* sources, or Chebyshev points along each dimension */
    real*   q;      /* charges of the sources or points */
} batch_memory;

/* What a block of targets has summed up. */
typedef struct
{
    vreal phi[c_vectors], field[3][c_vectors];
} block_sums;

static size_t num_points(const treecode* t)
{
    const size_t edge = (size_t)t->options.degree + 1;
    return edge * edge * edge;
}

/* Room for the targets of any batch. */
static size_t padded_targets(const treecode* t)
{
    const treecode_clusters* targets = treecode_targets(t);
    int64_t                  most    = t->options.dual ? (int64_t)num_points(t) : 0;
    for (int i = 0; i < targets->num_leaves; i++)
    {
        const int64_t num = targets->end[targets->leaf[i]] - targets->begin[targets->leaf[i]];
        most              = num > most ? num : most;
    }
    return ((size_t)most + c_block - 1) / c_block * c_block;
}

static size_t source_room(const treecode* t)
{
    const size_t points = num_points(t);
    return ((points > c_chunk ? points : c_chunk) + FMM_ALIGN - 1) / FMM_ALIGN * FMM_ALIGN;
}

size_t treecode_sums_scratch(const treecode* t)
{
    const size_t bytes =
        padded_targets(t) * (3 * sizeof(real) + 4 * sizeof(double)) + 4 * source_room(t) * sizeof(real);
    return (bytes + FMM_ALIGN - 1) / FMM_ALIGN * FMM_ALIGN;
}

static batch_memory divide(const treecode* t, void* memory)
{
    const size_t targets = padded_targets(t), sources = source_room(t);
    batch_memory m;
    double*      next = memory;
    for (int i = 0; i < 4; i++, next += targets)
    {
        m.sum[i] = next;
    }
    real* after = (real*)next;
    for (int d = 0; d < 3; d++, after += targets)
    {
        m.x[d] = after;
    }
    for (int d = 0; d < 3; d++, after += sources)
    {
        m.y[d] = after;
    }
    m.q = after;
    return m;
}

/* One source, at d from the targets of vector v; `own` has zeros in lanes of targets that it is itself. */
INLINE void interact(treecode_kernel   kernel,
                     kernel_parameters k,
                     int               with_field,
                     vreal             r2,
                     real              q,
                     const vinteger*   others,
                     vreal*            phi,
                     vreal*            slope)
{
    vreal g, s;
    kernel_evaluate(kernel, r2, k, &g, &s);
    if (others != NULL)
    {
        g = (vreal)((vinteger)g & *others);
        s = (vreal)((vinteger)s & *others);
    }
    *phi += g * q;
    if (with_field)
    {
        *slope = s * q;
    }
}

/* What is done about pairs whose distance has a square below limit. */
typedef struct
{
    const treecode* t;
    real            limit;
    int64_t         first_target, num_targets, first_source; /* of the batch and of the gathered ones, in their trees */
    int             same;                                    /* both trees are one */
} close_pairs;

/* Sources begin .. end - 1 of the gathered ones; own >= 0: source j is target j - own of the block, and excluded there.
 * close: lanes get a sign where a square is below limit; NULL: nobody asks.
 */
INLINE void direct(treecode_kernel     kernel,
                   kernel_parameters   k,
                   int                 with_field,
                   const batch_memory* m,
                   size_t              target,
                   int64_t             begin,
                   int64_t             end,
                   int                 has_own,
                   int64_t             own,
                   real                limit,
                   vinteger*           close,
                   block_sums*         sums)
{
    vreal    x[3][c_vectors];
    vinteger lane[c_vectors];
    for (int v = 0; v < c_vectors; v++)
    {
        for (int d = 0; d < 3; d++)
        {
            x[d][v] = *(const vreal*)(m->x[d] + target + v * VLEN);
        }
        for (int l = 0; l < VLEN; l++)
        {
            lane[v][l] = v * VLEN + l;
        }
    }
    for (int64_t j = begin; j < end; j++)
    {
        for (int v = 0; v < c_vectors; v++)
        {
            const vreal    dx = x[0][v] - m->y[0][j], dy = x[1][v] - m->y[1][j], dz = x[2][v] - m->y[2][j];
            const vreal    r2     = dx * dx + dy * dy + dz * dz;
            const vinteger others = lane[v] != (lane_integer)(j - own);
            vreal          f;
            if (close != NULL)
            {
                *close |= (vinteger)(r2 - limit);
            }
            interact(kernel, k, with_field, r2, m->q[j], has_own ? &others : NULL, &sums->phi[v], &f);
            if (with_field)
            {
                sums->field[0][v] -= f * dx;
                sums->field[1][v] -= f * dy;
                sums->field[2][v] -= f * dz;
            }
        }
    }
}

/* Source j, whose close targets of the block get its share in double precision, at once. */
INLINE void meet_closely(treecode_kernel     kernel,
                         kernel_parameters   k,
                         int                 with_field,
                         const batch_memory* m,
                         size_t              target,
                         int64_t             j,
                         const close_pairs*  c,
                         block_sums*         sums)
{
    const treecode_clusters *targets = treecode_targets(c->t), *sources = &c->t->sources;
    const int64_t            s = c->first_source + j;
    for (int v = 0; v < c_vectors; v++)
    {
        const size_t   first  = target + (size_t)v * VLEN;
        const vreal    dx     = *(const vreal*)(m->x[0] + first) - m->y[0][j];
        const vreal    dy     = *(const vreal*)(m->x[1] + first) - m->y[1][j];
        const vreal    dz     = *(const vreal*)(m->x[2] + first) - m->y[2][j];
        const vreal    r2     = dx * dx + dy * dy + dz * dz;
        const vinteger others = r2 >= c->limit;
        vreal          f;
        interact(kernel, k, with_field, r2, m->q[j], &others, &sums->phi[v], &f);
        if (with_field)
        {
            sums->field[0][v] -= f * dx;
            sums->field[1][v] -= f * dy;
            sums->field[2][v] -= f * dz;
        }
        for (size_t l = 0; l < VLEN; l++)
        {
            const int64_t i = c->first_target + (int64_t)(first + l);
            if (!others[l] && (int64_t)(first + l) < c->num_targets && !(c->same && i == s))
            {
                double d[3], square = 0, g, slope;
                for (int a = 0; a < 3; a++)
                {
                    d[a] = targets->x[a][i] - sources->x[a][s];
                    square += d[a] * d[a];
                }
                if (!treecode_pair(c->t, square, &g, &slope) && c->same && c->t->sorted_q[i] == 0)
                {
                    continue;
                }
                m->sum[0][first + l] += g * c->t->sorted_q[s];
                for (int a = 0; a < 3 && with_field; a++)
                {
                    m->sum[1 + a][first + l] -= slope * c->t->sorted_q[s] * d[a];
                }
            }
        }
    }
}

/* As direct; a group with pairs that are too close is gone through again. */
INLINE void direct_closely(treecode_kernel     kernel,
                           kernel_parameters   k,
                           int                 with_field,
                           const batch_memory* m,
                           size_t              target,
                           int64_t             num,
                           const close_pairs*  c,
                           block_sums*         sums)
{
    for (int64_t begin = 0; begin < num; begin += c_group)
    {
        const int64_t    end    = begin + c_group < num ? begin + c_group : num;
        const block_sums before = *sums;
        vinteger         close  = {0};
        lane_integer     any    = 0;
        direct(kernel, k, with_field, m, target, begin, end, 0, 0, c->limit, &close, sums);
        for (int l = 0; l < VLEN; l++)
        {
            any |= close[l];
        }
        if (any < 0)
        {
            *sums = before;
            for (int64_t j = begin; j < end; j++)
            {
                meet_closely(kernel, k, with_field, m, target, j, c, sums);
            }
        }
    }
}

/* All bits set in lanes that are finite. This file is compiled as if all numbers were: the compiler must not know where
 * x comes from. */
INLINE vinteger finite_lanes(vreal x)
{
    const vinteger exponent =
        (vinteger){0} + (lane_integer)(sizeof(real) == sizeof(double) ? 0x7ff0000000000000LL : 0x7f800000LL);
    __asm__("" : VECTOR_REGISTER(x));
    return ((vinteger)x & exponent) != exponent;
}

/* Whether the sums of all lanes but those in `charged` are finite. */
INLINE int are_finite(int with_field, const block_sums* sums, const vinteger charged[c_vectors])
{
    vinteger     finite = ~(vinteger){0};
    lane_integer all    = -1;
    for (int v = 0; v < c_vectors; v++)
    {
        vreal all_sums = sums->phi[v];
        for (int d = 0; d < 3 && with_field; d++)
        {
            all_sums += sums->field[d][v];
        }
        finite &= finite_lanes(all_sums) | charged[v];
    }
    for (int l = 0; l < VLEN; l++)
    {
        all &= finite[l];
    }
    return all != 0;
}

/* All bits set in lanes that are no targets without charge: targets first .. end - 1, and padding. */
static void charged_lanes(const treecode* t, int64_t first, int64_t end, vinteger charged[c_vectors])
{
    for (int i = 0; i < c_block; i++)
    {
        charged[i / VLEN][i % VLEN] = first + i >= end || t->sorted_q[first + i] != 0 ? -1 : 0;
    }
}

/* All gathered sources, of which j is target j - own of the block; targets without charge have no pairs that are not
 * finite. */
INLINE void direct_apart(treecode_kernel     kernel,
                         kernel_parameters   k,
                         int                 with_field,
                         const batch_memory* m,
                         size_t              target,
                         int64_t             num,
                         int64_t             own,
                         const vinteger      charged[c_vectors],
                         block_sums*         sums)
{
    for (int v = 0; v < c_vectors; v++)
    {
        const size_t first = target + (size_t)v * VLEN;
        vinteger     lane  = {0};
        for (int l = 0; l < VLEN; l++)
        {
            lane[l] = v * VLEN + l;
        }
        for (int64_t j = 0; j < num; j++)
        {
            const vreal dx = *(const vreal*)(m->x[0] + first) - m->y[0][j];
            const vreal dy = *(const vreal*)(m->x[1] + first) - m->y[1][j];
            const vreal dz = *(const vreal*)(m->x[2] + first) - m->y[2][j];
            const vreal r2 = dx * dx + dy * dy + dz * dz;
            vreal       g, s, f;
            kernel_evaluate(kernel, r2, k, &g, &s);
            const vinteger met = (lane != (lane_integer)(j - own)) & (charged[v] | (finite_lanes(g) & finite_lanes(s)));
            interact(kernel, k, with_field, r2, m->q[j], &met, &sums->phi[v], &f);
            if (with_field)
            {
                sums->field[0][v] -= f * dx;
                sums->field[1][v] -= f * dy;
                sums->field[2][v] -= f * dz;
            }
        }
    }
}

/* The Chebyshev points of a cluster, along each dimension at m->y. */
INLINE void points(treecode_kernel     kernel,
                   kernel_parameters   k,
                   int                 with_field,
                   const batch_memory* m,
                   size_t              target,
                   int                 edge,
                   block_sums*         sums)
{
    const real* q = m->q;
    for (int k1 = 0; k1 < edge; k1++)
    {
        for (int k2 = 0; k2 < edge; k2++, q += edge)
        {
            vreal dx[c_vectors], dy[c_vectors], z[c_vectors], plane[c_vectors], slopes[c_vectors];
            for (int v = 0; v < c_vectors; v++)
            {
                dx[v]     = *(const vreal*)(m->x[0] + target + v * VLEN) - m->y[0][k1];
                dy[v]     = *(const vreal*)(m->x[1] + target + v * VLEN) - m->y[1][k2];
                z[v]      = *(const vreal*)(m->x[2] + target + v * VLEN);
                plane[v]  = dx[v] * dx[v] + dy[v] * dy[v];
                slopes[v] = (vreal){0};
            }
            for (int k3 = 0; k3 < edge; k3++)
            {
                for (int v = 0; v < c_vectors; v++)
                {
                    const vreal dz = z[v] - m->y[2][k3];
                    vreal       f;
                    interact(kernel, k, with_field, plane[v] + dz * dz, q[k3], NULL, &sums->phi[v], &f);
                    if (with_field)
                    {
                        slopes[v] += f;
                        sums->field[2][v] -= f * dz;
                    }
                }
            }
            for (int v = 0; v < c_vectors && with_field; v++)
            {
                sums->field[0][v] -= slopes[v] * dx[v];
                sums->field[1][v] -= slopes[v] * dy[v];
            }
        }
    }
}

INLINE void add(const batch_memory* m, size_t target, int with_field, const block_sums* sums)
{
    for (int v = 0; v < c_vectors; v++)
    {
        for (int l = 0; l < VLEN; l++)
        {
            m->sum[0][target + (size_t)(v * VLEN + l)] += (double)sums->phi[v][l];
            for (int d = 0; d < 3 && with_field; d++)
            {
                m->sum[1 + d][target + (size_t)(v * VLEN + l)] += (double)sums->field[d][v][l];
            }
        }
    }
}

static void to_centre(const double* x, int64_t begin, int64_t end, double centre, real* out)
{
    for (int64_t s = begin; s < end; s++)
    {
        out[s - begin] = (real)(x[s] - centre);
    }
}

/* The same of x[3] of sources, those without charge moved away. */
static void sources_to_centre(const treecode* t, int64_t begin, int64_t end, const double* centre, real* const* out)
{
    if (!t->uncharged)
    {
        to_centre(t->sources.x[0], begin, end, centre[0], out[0]);
    }
    else
    {
        for (int64_t s = begin; s < end; s++)
        {
            out[0][s - begin] = (real)(t->sorted_q[s] != 0 ? t->sources.x[0][s] - centre[0] : c_away);
        }
    }
    to_centre(t->sources.x[1], begin, end, centre[1], out[1]);
    to_centre(t->sources.x[2], begin, end, centre[2], out[2]);
}

/* The square of the distance below which pairs of a batch are too close for single precision; not so small that it
 * would be lost there. */
static double close_limit(const double half[3])
{
    const double limit = (half[0] * half[0] + half[1] * half[1] + half[2] * half[2]) / 4096;
    return limit > 1e-37 ? limit : 1e-37;
}

/* Whether a particle of the cluster may be as close as that to one of the batch with that box. */
static int has_close_pairs(const treecode* t, int cluster, const double centre[3], const double half[3], double limit)
{
    double other[3], other_half[3], square = 0;
    treecode_box(&t->sources, cluster, other, other_half);
    for (int d = 0; d < 3; d++)
    {
        /* rounding must not lose one, nor of a batch without extent one at its place */
        const double rounding = 1e-15 * (fabs(other[d]) + fabs(centre[d]));
        const double gap      = fabs(other[d] - centre[d]) - half[d] - other_half[d] - rounding;
        square += gap > 0 ? gap * gap : 0;
    }
    return square <= 2 * limit;
}

/* Whether some of the targets have no charge. */
static int has_sites(const treecode* t, int64_t begin, int64_t end)
{
    int64_t s = begin;
    while (s < end && t->sorted_q[s] != 0)
    {
        s++;
    }
    return s < end;
}

/* The batch's targets with the particles begin .. end - 1. c: NULL: none are too close, or they are told apart. sites:
 * some targets are sources without charge. */
INLINE void direct_particles(treecode_kernel     kernel,
                             int                 with_field,
                             const treecode*     t,
                             kernel_parameters   k,
                             const batch_memory* m,
                             const double*       centre,
                             int64_t             first_target,
                             int64_t             num_targets,
                             int64_t             begin,
                             int64_t             end,
                             int                 sites,
                             const close_pairs*  c)
{
    static const vinteger none[c_vectors] = {{0}};
    sources_to_centre(t, begin, end, centre, m->y);
    to_centre(t->sorted_q, begin, end, 0, m->q);
    for (int64_t target = 0; target < num_targets; target += c_block)
    {
        block_sums sums = {0};
        if (c != NULL)
        {
            direct_closely(kernel, k, with_field, m, (size_t)target, end - begin, c, &sums);
            add(m, (size_t)target, with_field, &sums);
            continue;
        }
        /* sources own .. own_end - 1 are among these targets */
        const int64_t first = first_target + target, own = first < begin ? begin : first > end ? end : first;
        const int64_t last =
            first + c_block < first_target + num_targets ? first + c_block : first_target + num_targets;
        const int64_t own_end = first_target < 0 ? own : last > end ? end : last < own ? own : last;
        direct(kernel, k, with_field, m, (size_t)target, 0, own - begin, 0, 0, 0, NULL, &sums);
        direct(kernel, k, with_field, m, (size_t)target, own - begin, own_end - begin, 1, first - begin, 0, NULL,
               &sums);
        direct(kernel, k, with_field, m, (size_t)target, own_end - begin, end - begin, 0, 0, 0, NULL, &sums);
        if (!c_rounds && sites && !are_finite(with_field, &sums, none))
        {
            vinteger charged[c_vectors];
            charged_lanes(t, first, first_target + num_targets, charged);
            if (!are_finite(with_field, &sums, charged))
            {
                sums = (block_sums){0};
                direct_apart(kernel, k, with_field, m, (size_t)target, end - begin, first - begin, charged, &sums);
            }
        }
        add(m, (size_t)target, with_field, &sums);
    }
}

INLINE void approximated_cluster(treecode_kernel     kernel,
                                 int                 with_field,
                                 const treecode*     t,
                                 kernel_parameters   k,
                                 const batch_memory* m,
                                 const double*       centre,
                                 int64_t             num_targets,
                                 const double*       s,
                                 int                 cluster)
{
    const int     edge   = t->options.degree + 1;
    const int64_t size   = (int64_t)edge * edge * edge;
    const double* charge = t->charge + (size_t)cluster * (size_t)size;
    double        cluster_centre[3], half[3];
    treecode_box(&t->sources, cluster, cluster_centre, half);
    for (int d = 0; d < 3; d++)
    {
        for (int j = 0; j < edge; j++)
        {
            m->y[d][j] = (real)(cluster_centre[d] - centre[d] + half[d] * s[j]);
        }
    }
    to_centre(charge, 0, size, 0, m->q);
    for (int64_t target = 0; target < num_targets; target += c_block)
    {
        block_sums sums = {0};
        points(kernel, k, with_field, m, (size_t)target, edge, &sums);
        add(m, (size_t)target, with_field, &sums);
    }
}

/* Chebyshev points relative to the centre, as targets. */
static void point_targets(int edge, const double* s, const double* half, const batch_memory* m)
{
    for (int k = 0; k < edge * edge * edge; k++)
    {
        m->x[0][k] = (real)(half[0] * s[k / (edge * edge)]);
        m->x[1][k] = (real)(half[1] * s[k / edge % edge]);
        m->x[2][k] = (real)(half[2] * s[k % edge]);
    }
}

INLINE void batch(treecode_kernel       kernel,
                  int                   with_field,
                  treecode*             t,
                  const treecode_lists* lists,
                  kernel_parameters     k,
                  const batch_memory*   m,
                  const double*         s,
                  int                   b)
{
    const treecode_clusters* targets = treecode_targets(t);
    const int64_t            begin = lists->begin[b], num = lists->end[b] - begin;
    const size_t             padded = ((size_t)num + c_block - 1) / c_block * c_block;
    double                   centre[3], half[3];
    treecode_box(targets, lists->cluster[b], centre, half);
    if (lists->points)
    {
        point_targets(t->options.degree + 1, s, half, m);
    }
    for (int d = 0; d < 3; d++)
    {
        if (!lists->points)
        {
            to_centre(targets->x[d], begin, begin + num, centre[d], m->x[d]);
        }
        for (size_t i = (size_t)num; i < padded; i++)
        {
            m->x[d][i] = m->x[d][0];
        }
    }
    for (int i = 0; i < (with_field ? 4 : 1); i++)
    {
        memset(m->sum[i], 0, padded * sizeof(double));
    }
    const int    same  = !t->separate && !lists->points;
    const int    sites = !c_rounds && same && t->uncharged && has_sites(t, begin, begin + num);
    const double limit = close_limit(half);
    for (int64_t i = lists->direct_start[b]; i < lists->direct_start[b + 1]; i++)
    {
        const int64_t last  = t->sources.end[lists->direct[i]];
        const int has_close = c_rounds && !lists->points && has_close_pairs(t, lists->direct[i], centre, half, limit);
        for (int64_t from = t->sources.begin[lists->direct[i]]; from < last; from += c_chunk)
        {
            const int64_t     to    = from + c_chunk < last ? from + c_chunk : last;
            const close_pairs close = {t, (real)limit, begin, num, from, same};
            direct_particles(kernel, with_field, t, k, m, centre, same ? begin : -num, num, from, to, sites,
                             has_close ? &close : NULL);
        }
    }
    for (int64_t i = lists->approximated_start[b]; i < lists->approximated_start[b + 1]; i++)
    {
        approximated_cluster(kernel, with_field, t, k, m, centre, num, s, lists->approximated[i]);
    }
    memcpy((lists->points ? t->point : t->phi) + begin, m->sum[0], (size_t)num * sizeof(double));
    for (int d = 0; d < 3 && with_field; d++)
    {
        memcpy(t->slope[d] + begin, m->sum[1 + d], (size_t)num * sizeof(double));
    }
}

/* A batch by each kernel, with and without a field. */
typedef void (*batch_function)(
    treecode*, const treecode_lists*, kernel_parameters, const batch_memory*, const double*, int);

#define BATCH_FUNCTION(name, value, first, second, third)                                                              \
    static void potential_##name(treecode* t, const treecode_lists* l, kernel_parameters k, const batch_memory* m,     \
                                 const double* s, int b)                                                               \
    {                                                                                                                  \
        batch(treecode_##name, 0, t, l, k, m, s, b);                                                                   \
    }                                                                                                                  \
    static void field_##name(treecode* t, const treecode_lists* l, kernel_parameters k, const batch_memory* m,         \
                             const double* s, int b)                                                                   \
    {                                                                                                                  \
        batch(treecode_##name, 1, t, l, k, m, s, b);                                                                   \
    }
TREECODE_KERNELS(BATCH_FUNCTION)

#define BATCH_ROW(name, value, first, second, third) {potential_##name, field_##name},
static const batch_function c_batch[TREECODE_NUM_KERNELS][2] = {TREECODE_KERNELS(BATCH_ROW)};

void treecode_sums(treecode* t, const treecode_lists* lists, int with_field)
{
    const batch_function sums = c_batch[t->options.kernel][with_field];
    kernel_parameters    k;
    double               s[TREECODE_MAX_EDGE];
    chebyshev_points(t->options.degree, s);
    for (int i = 0; i < TREECODE_PARAMETERS; i++)
    {
        k.p[i] = (real)t->parameter[i];
    }
#pragma omp parallel for schedule(dynamic) num_threads(t->options.num_threads)
    for (int b = 0; b < lists->num; b++)
    {
        const size_t       thread = (size_t)omp_get_thread_num();
        const batch_memory m      = divide(t, (char*)t->scratch + thread * t->scratch_bytes);
        sums(t, lists, k, &m, s, b);
    }
}
