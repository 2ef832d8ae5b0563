/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The pairs of blocks with their lists: a site of the block a lane, one site of the list at a time. Forces on sites of
 * lists are sums over lanes, which are added up for each domain, and then those of all domains.
 */
#include <omp.h>
#include <string.h>

#include "fmm/cpu/simd/lanes.h"
#include "fmm/cpu/simd/rsqrt.h"
#include "fmm/sites/cpu.h"

#define LJ_T vreal
#define LJ_R real
#define LJ_MASK vinteger
#define LJ_WHERE(mask, x) ((vreal)((mask) & (vinteger)(x)))
#define LJ_UNLESS(mask, x) ((vreal)(~(mask) & (vinteger)(x)))
#define LJ_AT_LEAST(x, least) at_least(x, least)
#define LJ_RSQRT(x) root(x)

static inline vreal at_least(vreal x, real least)
{
    const vreal zero = {0}, all = zero + least;
#if defined(__AVX512F__) && defined(FMM_SINGLE)
    return _mm512_max_ps(x, all); /* compilers do not make the last one into it */
#elif defined(__AVX__) && defined(FMM_SINGLE)
    return _mm256_max_ps(x, all);
#else
    const vinteger less = x < all;
    return (vreal)((less & (vinteger)all) | (~less & (vinteger)x));
#endif
}

/* 1 / sqrt(x) with all digits: a step of Newton's method after the estimate. */
static inline vreal root(vreal x)
{
    const vreal y = fmm_rsqrt_estimate(x, (fmm_lanes)~0U);
    return y * ((real)1.5 - (real)0.5 * x * y * y);
}

#include "fmm/math/lj_force.h"

/* Forces of lanes, and in double precision, so that those of any targets add up to the same sums, the potential and the
 * symmetric part of r (x) force. */
typedef double vdouble __attribute__((vector_size(FMM_VBYTES), may_alias));
enum
{
    c_forces    = 3,
    c_potential = 0,
    c_lever     = 1,
    c_energies  = 7
};

typedef struct
{
    vreal   force[c_forces];
    vdouble energy[c_energies];
} lane_sums;

/* Sites of a list that are summed up before they are added to the sum: its rounding grows with the number of terms. */
enum
{
    c_some = 64
};

typedef struct
{
    lj_constants       lj;
    const sites_place* place; /* of sites in the list */
    real*              force; /* on them */
    const real*        table;
    vreal              x[3]; /* of the block's sites */
    vinteger           bit;  /* of a lane in masks */
} block_state;

/* The pairs with one site. Those of lanes in the mask are taken as pairs at the cut-off. */
INLINE lj_values with_site(const block_state* b, enum lj_kind kind, int all, int site, int mask, vreal* restrict d)
{
    const sites_place* at  = b->place + site;
    const real*        row = b->table + at->row;
    d[0]                   = b->x[0] - at->x[0];
    d[1]                   = b->x[1] - at->x[1];
    d[2]                   = b->x[2] - at->x[2];
    vreal r2               = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
    if (mask != 0)
    {
        const vreal    zero     = {0};
        const vinteger excluded = (b->bit & (lane_integer)mask) != 0;
        r2                      = LJ_UNLESS(excluded, r2) + LJ_WHERE(excluded, zero + b->lj.outer_cutoff2);
    }
    return lj_force(&b->lj, kind, all, r2, *(const vreal*)row, *(const vreal*)(row + VLEN));
}

/* Adds forces; is_halo: to the site, too. */
INLINE void add_force(const block_state* b, int is_halo, int site, vreal force, const vreal* d, vreal* restrict sum)
{
    const vreal f0 = force * d[0], f1 = force * d[1], f2 = force * d[2];
    sum[0] += f0;
    sum[1] += f1;
    sum[2] += f2;
    if (is_halo)
    {
        lanes_subtract(f0, f1, f2, b->force + SITES_STRIDE * (size_t)site);
    }
}

/* Adds all lanes of x to lanes of the sum. */
static inline void add_lanes(vdouble* sum, vreal x)
{
#ifdef FMM_DOUBLE
    *sum += x;
#else
    typedef float half __attribute__((vector_size(FMM_VBYTES / 2), may_alias));
    const union
    {
        vreal all;
        half  half[2];
    } lanes = {x};
#    if defined(__AVX512F__) /* compilers make it of smaller ones */
    *sum += _mm512_cvtps_pd((__m256)lanes.half[0]) + _mm512_cvtps_pd((__m256)lanes.half[1]);
#    elif defined(__AVX__)
    *sum += _mm256_cvtps_pd((__m128)lanes.half[0]) + _mm256_cvtps_pd((__m128)lanes.half[1]);
#    else
    *sum += __builtin_convertvector(lanes.half[0], vdouble) + __builtin_convertvector(lanes.half[1], vdouble);
#    endif
#endif
}

/* Adds half of the energy and virial of pairs, as many times as they count. */
INLINE void add_energy(lj_values pair, vreal counts, const vreal* d, vdouble* restrict energy)
{
    const vreal force = counts * pair.force, f0 = force * d[0], f1 = force * d[1], f2 = force * d[2];
    add_lanes(&energy[c_potential], counts * pair.potential);
    add_lanes(&energy[c_lever], f0 * d[0]);
    add_lanes(&energy[c_lever + 1], f1 * d[1]);
    add_lanes(&energy[c_lever + 2], f2 * d[2]);
    add_lanes(&energy[c_lever + 3], f0 * d[1]);
    add_lanes(&energy[c_lever + 4], f0 * d[2]);
    add_lanes(&energy[c_lever + 5], f1 * d[2]);
}

/* Adds the pairs with one site. */
INLINE void add_site(
    const block_state* b, enum lj_kind kind, int all, int is_halo, int site, int mask, vreal counts, lane_sums* sum)
{
    vreal           d[3];
    const lj_values pair = with_site(b, kind, all, site, mask, d);
    add_force(b, is_halo, site, pair.force, d, sum->force);
    if (all)
    {
        add_energy(pair, counts, d, sum->energy);
    }
}

/* How often a pair of the block's lanes, which count `own`, and this site of the halo counts. */
static inline vreal
counts_with(const struct sites_cpu_memory* m, const struct sites_domain* domain, vreal own, int site)
{
    return own + (real)(m->is_target[domain->halo[site].site] == SITES_COUNTED);
}

/* Adds the pairs with num sites of a list, in two loops: what each waits for is shorter. */
INLINE void add_list(const struct sites_cpu_memory* m,
                     const struct sites_domain*     domain,
                     const block_state*             b,
                     enum lj_kind                   kind,
                     int                            all,
                     const int*                     list,
                     int                            num,
                     vreal                          own,
                     lane_sums*                     sum)
{
    const vreal zero = {0};
    for (int begin = 0; begin < num; begin += c_some)
    {
        const int count = num - begin < c_some ? num - begin : c_some;
        vreal     force[c_some], some[c_forces] = {zero, zero, zero};
        for (int j = 0; j < count; j++)
        {
            vreal           d[3];
            const int       site = list[begin + j];
            const lj_values pair = with_site(b, kind, all, site, 0, d);
            force[j]             = pair.force;
            if (all)
            {
                add_energy(pair, counts_with(m, domain, own, site), d, sum->energy);
            }
        }
        for (int j = 0; j < count; j++)
        {
            const sites_place* at   = b->place + list[begin + j];
            const vreal        d[3] = {b->x[0] - at->x[0], b->x[1] - at->x[1], b->x[2] - at->x[2]};
            add_force(b, 1, list[begin + j], force[j], d, some);
        }
        for (int d = 0; d < c_forces; d++)
        {
            sum->force[d] += some[d];
        }
    }
}

/* Sets the forces on block b's sites from its own lanes, and its sums. */
static void take_sums(const struct sites_cpu_memory* m, int b, int all, const lane_sums* sum)
{
    static const int c_of[9] = {0, 3, 4, 3, 1, 5, 4, 5, 2};
    double*          out     = m->sums + (size_t)b * SITES_SUMS;
    double           own[c_energies];
    for (int l = 0; l < VLEN; l++)
    {
        real* force = m->force + SITES_STRIDE * (size_t)(b * VLEN + l);
        for (int d = 0; d < c_forces; d++)
        {
            force[d] = sum->force[d][l];
        }
    }
    for (int i = 0; i < c_energies && all; i++)
    {
        own[i] = 0;
        for (size_t l = 0; l < sizeof(vdouble) / sizeof(double); l++)
        {
            own[i] += sum->energy[i][l];
        }
    }
    if (all)
    {
        out[0] = 0.5 * own[c_potential];
        for (int i = 0; i < 9; i++)
        {
            out[1 + i] = -0.25 * own[c_lever + c_of[i]];
        }
    }
}

/* The block's columns of p6 and p12, which the last block of this thread may have had, too. */
static const real* table_of(const gmxfmm_sites* sites, const int* type)
{
    const struct sites_cpu_memory* m   = sites->memory;
    const size_t                   num = (size_t)sites->system.num_types, thread = (size_t)omp_get_thread_num();
    real*                          to   = m->table + thread * m->table_stride;
    int*                           last = m->table_type + thread * VLEN;
    if (memcmp(last, type, VLEN * sizeof(int)) != 0)
    {
        for (size_t l = 0; l < VLEN; l++)
        {
            const real *p6 = m->p6 + (size_t)type[l] * num, *p12 = m->p12 + (size_t)type[l] * num;
            for (size_t t = 0; t < num && type[l] != last[l]; t++)
            {
                to[2 * t * VLEN + l]       = p6[t];
                to[(2 * t + 1) * VLEN + l] = p12[t];
            }
            last[l] = type[l];
        }
    }
    return to;
}

/* What a thread has in hand. */
typedef struct
{
    const gmxfmm_sites*        sites;
    const struct sites_domain* domain;
    const sites_place*         place; /* of the halo */
    real*                      force;
    lj_constants               lj;
} domain_state;

/* Coordinate of lanes without a site, in cut-offs: farther than any, and its powers in kernels are finite. */
static const real c_away = (real)1e9;

INLINE void compute_block(const domain_state* p, enum lj_kind kind, int all, int b)
{
    const gmxfmm_sites*            sites = p->sites;
    const struct sites_cpu_memory* m     = sites->memory;
    const struct sites_block*      block = m->block + b;
    const int*                     list  = p->domain->list + block->list;
    const int                      first = b * VLEN, count = m->num - first < VLEN ? m->num - first : VLEN;
    const enum lj_kind             far_kind = kind < LJ_SHIFTED_ALONE ? kind + LJ_SHIFTED_ALONE : kind;
    const vreal                    zero     = {0};
    const vdouble                  none     = {0};
    lane_sums                      sum      = {{zero, zero, zero}, {none, none, none, none, none, none, none}};
    vreal                          own      = zero;
    int                            type[VLEN];
    block_state                    state = {.lj = p->lj, .place = m->place + first};
    for (int l = 0; l < VLEN; l++)
    {
        const int s  = first + (l < count ? l : count - 1);
        type[l]      = sites->type[m->order[s]];
        own[l]       = l < count && m->is_target[s] == SITES_COUNTED;
        state.bit[l] = (lane_integer)1 << l;
        for (int d = 0; d < 3; d++)
        {
            state.x[d][l] = l < count ? m->place[s].x[d] : c_away * (real)sites->system.outer.cutoff;
        }
    }
    state.table = table_of(sites, type);
    for (int l = 0; l < count; l++)
    {
        const int mask = 1 << l | (m->excluded != NULL ? m->excluded[first + l] : 0); /* itself, too */
        add_site(&state, kind, all, 0, l, mask, own, &sum);
    }
    state.place = p->place;
    state.force = p->force;
    add_list(m, p->domain, &state, kind, all, list, block->num_near, own, &sum);
    add_list(m, p->domain, &state, far_kind, all, list + block->num_near, block->num_far, own, &sum);
    list += block->num_near + block->num_far;
    for (int j = 0; j < block->num_masked; j++)
    {
        const int site = list[2 * j];
        add_site(&state, kind, all, 1, site, list[2 * j + 1], all ? counts_with(m, p->domain, own, site) : zero, &sum);
    }
    take_sums(m, b, all, &sum);
}

/* The same by the kernel for what is wanted. */
INLINE void one_kind(const domain_state* p, enum lj_kind kind, int all, int b)
{
    all ? compute_block(p, kind, 1, b) : compute_block(p, kind, 0, b);
}

static void one_block(const domain_state* p, int all, int b)
{
    switch (p->sites->lj.kind)
    {
    case LJ_FORCE_SWITCH:
        one_kind(p, LJ_FORCE_SWITCH, all, b);
        break;
    case LJ_POTENTIAL_SWITCH:
        one_kind(p, LJ_POTENTIAL_SWITCH, all, b);
        break;
    case LJ_SHIFTED_ALONE:
        one_kind(p, LJ_SHIFTED_ALONE, all, b);
        break;
    case LJ_FORCE_SWITCH_ALONE:
        one_kind(p, LJ_FORCE_SWITCH_ALONE, all, b);
        break;
    case LJ_POTENTIAL_SWITCH_ALONE:
        one_kind(p, LJ_POTENTIAL_SWITCH_ALONE, all, b);
        break;
    default:
        one_kind(p, LJ_SHIFTED, all, b);
    }
}

/* Sets the places of the domain's halo. */
static void place_halo(const gmxfmm_sites* sites, const struct sites_domain* domain, sites_place* place)
{
    const struct sites_cpu_memory* m   = sites->memory;
    const double*                  box = sites->box;
    for (int i = 0; i < domain->num_images; i++)
    {
        const int* k = domain->image[i].k;
        for (int d = 0; d < 3; d++)
        {
            domain->image[i].shift[d] = (real)(k[0] * box[d] + k[1] * box[3 + d] + k[2] * box[6 + d]);
        }
    }
    for (int i = 0; i < domain->num_halo; i++)
    {
        const sites_place* from  = m->place + domain->halo[i].site;
        const real*        shift = domain->image[domain->halo[i].image].shift;
        place[i].x[0]            = from->x[0] + shift[0];
        place[i].x[1]            = from->x[1] + shift[1];
        place[i].x[2]            = from->x[2] + shift[2];
        place[i].row             = from->row;
    }
}

/* Forces on all sites from their own blocks, and on the halo of the domain. */
static void compute_domain(const gmxfmm_sites* sites, const lj_constants* lj, int all, int p)
{
    const struct sites_cpu_memory* m      = sites->memory;
    const struct sites_domain*     domain = m->domain + p;
    sites_place*                   place  = m->halo_place + (size_t)omp_get_thread_num() * m->longest_halo;
    real*                          force  = m->halo_force + SITES_STRIDE * domain->first;
    const domain_state             state  = {sites, domain, place, force, *lj};
    place_halo(sites, domain, place);
    if (domain->num_halo > 0)
    {
        memset(force, 0, SITES_STRIDE * (size_t)domain->num_halo * sizeof(real));
    }
    for (int b = domain->begin; b < domain->end; b++)
    {
        if (m->block[b].is_computed)
        {
            one_block(&state, all, b);
        }
    }
}

/* Adds the forces on site s from all halos to that from its own block. */
static inline void add_halos(const struct sites_cpu_memory* m, int s)
{
    real* sum = m->force + SITES_STRIDE * (size_t)s;
    for (int i = m->halo_start[s]; i < m->halo_start[s + 1]; i++)
    {
        const real* more = m->halo_force + SITES_STRIDE * (size_t)m->halo_of[i];
        sum[0] += more[0];
        sum[1] += more[1];
        sum[2] += more[2];
    }
}

/* Adds the force on the site of a group to its atoms. */
static inline void spread(const gmxfmm_sites* sites, int group, real* f)
{
    const struct sites_cpu_memory* m   = sites->memory;
    const real*                    sum = m->force + SITES_STRIDE * (size_t)m->site[group];
    for (int k = sites->start[group]; k < sites->start[group + 1]; k++)
    {
        real* to = f + 3 * (size_t)sites->atom[k];
        for (int d = 0; d < 3; d++)
        {
            to[d] += (real)(sites->weight[k] * (double)sum[d]);
        }
    }
}

void sites_cpu_pairs(gmxfmm_sites* sites, real* f, int with_sums)
{
    const struct sites_cpu_memory* m  = sites->memory;
    const lj_constants             lj = lj_constants_of(&sites->lj);
#pragma omp parallel num_threads(sites->system.num_threads)
    {
#pragma omp for schedule(dynamic)
        for (int p = 0; p < m->num_domains; p++)
        {
            compute_domain(sites, &lj, with_sums, p);
        }
#pragma omp for schedule(static)
        for (int s = 0; s < m->num; s++)
        {
            if (m->is_target[s])
            {
                add_halos(m, s);
            }
        }
#pragma omp for schedule(static)
        for (int g = 0; g < m->num; g++)
        {
            if (m->is_target[m->site[g]])
            {
                spread(sites, g, f);
            }
        }
    }
}
