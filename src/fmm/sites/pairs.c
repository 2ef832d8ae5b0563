/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pairs of blocks with their lists: a target a lane, one site of the list at a time. */
#include <omp.h>
#include <string.h>

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
    const vreal    zero = {0}, all = zero + least;
    const vinteger less = x < all;
    return (vreal)((less & (vinteger)all) | (~less & (vinteger)x));
}

/* 1 / sqrt(x) with all digits: a step of Newton's method after the estimate. */
static inline vreal root(vreal x)
{
    const vreal y = fmm_rsqrt_estimate(x, (fmm_lanes)~0U);
    return y * ((real)1.5 - (real)0.5 * x * y * y);
}

#include "fmm/math/lj_force.h"

/* Sums of a lane: force, potential, and the symmetric part of r (x) force. */
enum
{
    c_potential = 3,
    c_lever     = 4,
    c_allSums   = 10,
    c_forces    = 3
};

/* Sites of a list that are summed up before they are added to the sum: its rounding grows with the number of terms. */
enum
{
    c_some = 64
};

typedef struct
{
    lj_constants       lj;
    const sites_place* place;
    const real*        table;
    vreal              x[3]; /* of the targets */
    vinteger           bit;  /* of a lane in masks */
} block_state;

/* Adds the pairs with one site. Those of lanes in the mask are taken as pairs at the cut-off. */
INLINE void
add_site(const block_state* b, enum lj_kind kind, int all, const vreal* x, int site, int mask, vreal* restrict sum)
{
    const sites_place* at  = b->place + site;
    const real*        row = b->table + at->row;
    const vreal        d0 = x[0] - at->x[0], d1 = x[1] - at->x[1], d2 = x[2] - at->x[2];
    vreal              r2 = d0 * d0 + d1 * d1 + d2 * d2;
    if (mask != 0)
    {
        const vreal    zero     = {0};
        const vinteger excluded = (b->bit & (lane_integer)mask) != 0;
        r2                      = LJ_UNLESS(excluded, r2) + LJ_WHERE(excluded, zero + b->lj.outer_cutoff2);
    }
    const lj_values pair = lj_force(&b->lj, kind, all, r2, *(const vreal*)row, *(const vreal*)(row + VLEN));
    const vreal     f0 = pair.force * d0, f1 = pair.force * d1, f2 = pair.force * d2;
    sum[0] += f0;
    sum[1] += f1;
    sum[2] += f2;
    if (all)
    {
        sum[c_potential] += pair.potential;
        sum[c_lever] += f0 * d0;
        sum[c_lever + 1] += f1 * d1;
        sum[c_lever + 2] += f2 * d2;
        sum[c_lever + 3] += f0 * d1;
        sum[c_lever + 4] += f0 * d2;
        sum[c_lever + 5] += f1 * d2;
    }
}

/* Adds the pairs with the sites of a run's list, which are moved by shift. */
INLINE void add_list(const block_state*      b,
                     enum lj_kind            kind,
                     int                     all,
                     const real*             shift,
                     const int*              list,
                     const struct sites_run* run,
                     vreal*                  sum)
{
    const int   num  = run->num;
    const int   sums = all ? c_allSums : c_forces;
    const vreal zero = {0}, x[3] = {b->x[0] - shift[0], b->x[1] - shift[1], b->x[2] - shift[2]};
    for (int begin = 0; begin < num; begin += c_some)
    {
        const int end = begin + c_some < num ? begin + c_some : num;
        vreal     part[c_allSums];
        for (int i = 0; i < sums; i++)
        {
            part[i] = zero;
        }
        for (int j = begin; j < end; j++)
        {
            add_site(b, kind, all, x, list[j], 0, part);
        }
        for (int i = 0; i < sums; i++)
        {
            sum[i] += part[i];
        }
    }
    for (int j = 0; j < run->num_masked; j++)
    {
        add_site(b, kind, all, x, list[num + 2 * j], list[num + 2 * j + 1], sum);
    }
}

/* Adds forces of block b's targets to their atoms, and sets its sums: half of each pair. */
static void spread(const gmxfmm_sites* sites, int b, int all, const vreal* sum, real* f)
{
    struct sites_cpu_memory* m              = sites->memory;
    const int                first          = b * VLEN;
    double                   own[c_allSums] = {0};
    for (int l = 0; l < VLEN && first + l < m->num; l++)
    {
        const int g = m->order[first + l];
        if (!m->is_target[first + l])
        {
            continue;
        }
        for (int k = sites->start[g]; k < sites->start[g + 1]; k++)
        {
            real* to = f + 3 * (size_t)sites->atom[k];
            for (int d = 0; d < 3; d++)
            {
                to[d] += (real)(sites->weight[k] * (double)sum[d][l]);
            }
        }
        for (int i = c_potential; i < c_allSums && all && m->is_target[first + l] == SITES_COUNTED; i++)
        {
            own[i] += (double)sum[i][l];
        }
    }
    if (all)
    {
        static const int c_of[9] = {0, 3, 4, 3, 1, 5, 4, 5, 2};
        double*          out     = m->sums + (size_t)b * SITES_SUMS;
        out[0]                   = 0.5 * own[c_potential];
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

INLINE void compute_block(const gmxfmm_sites* sites, const lj_constants* lj, enum lj_kind kind, int all, int b, real* f)
{
    const struct sites_cpu_memory* m     = sites->memory;
    const struct sites_block*      block = m->block + b;
    const struct sites_part*       part  = m->lists + block->lists;
    const int                      first = b * VLEN, count = m->num - first < VLEN ? m->num - first : VLEN;
    const vreal                    zero = {0};
    vreal                          sum[c_allSums], own[3];
    int                            type[VLEN];
    block_state                    state = {.lj = *lj, .place = m->place};
    for (int l = 0; l < VLEN; l++)
    {
        const int s  = first + (l < count ? l : count - 1);
        type[l]      = sites->type[m->order[s]];
        state.bit[l] = (lane_integer)1 << l;
        for (int d = 0; d < 3; d++)
        {
            state.x[d][l] = m->place[s].x[d];
        }
    }
    state.table = table_of(sites, type);
    for (int i = 0; i < c_allSums; i++)
    {
        sum[i] = zero;
    }
    memcpy(own, state.x, sizeof(own));
    for (int l = 0; l < count; l++)
    {
        const int mask = 1 << l | (m->excluded != NULL ? m->excluded[first + l] : 0); /* itself, too */
        add_site(&state, kind, all, own, first + l, mask, sum);
    }
    for (int i = 0; i < block->num_runs; i++)
    {
        const struct sites_run* run = part->run + block->run + i;
        real                    shift[3];
        for (int d = 0; d < 3; d++)
        {
            const double* box = sites->box + d;
            shift[d]          = (real)(run->k[0] * box[0] + run->k[1] * box[3] + run->k[2] * box[6]);
        }
        add_list(&state, kind, all, shift, part->list + run->place, run, sum);
    }
    spread(sites, b, all, sum, f);
}

/* The same by the kernel for what is wanted. */
INLINE void one_kind(const gmxfmm_sites* sites, const lj_constants* lj, enum lj_kind kind, int all, int b, real* f)
{
    all ? compute_block(sites, lj, kind, 1, b, f) : compute_block(sites, lj, kind, 0, b, f);
}

static void one_block(const gmxfmm_sites* sites, const lj_constants* lj, int all, int b, real* f)
{
    switch (sites->lj.kind)
    {
    case LJ_FORCE_SWITCH:
        one_kind(sites, lj, LJ_FORCE_SWITCH, all, b, f);
        break;
    case LJ_POTENTIAL_SWITCH:
        one_kind(sites, lj, LJ_POTENTIAL_SWITCH, all, b, f);
        break;
    case LJ_SHIFTED_ALONE:
        one_kind(sites, lj, LJ_SHIFTED_ALONE, all, b, f);
        break;
    case LJ_FORCE_SWITCH_ALONE:
        one_kind(sites, lj, LJ_FORCE_SWITCH_ALONE, all, b, f);
        break;
    case LJ_POTENTIAL_SWITCH_ALONE:
        one_kind(sites, lj, LJ_POTENTIAL_SWITCH_ALONE, all, b, f);
        break;
    default:
        one_kind(sites, lj, LJ_SHIFTED, all, b, f);
    }
}

void sites_cpu_pairs(gmxfmm_sites* sites, real* f, int with_sums)
{
    const struct sites_cpu_memory* m  = sites->memory;
    const lj_constants             lj = lj_constants_of(&sites->lj);
#pragma omp parallel for num_threads(sites->system.num_threads) schedule(dynamic, 4)
    for (int b = 0; b < m->num_blocks; b++)
    {
        if (m->block[b].num_targets > 0)
        {
            one_block(sites, &lj, with_sums, b, f);
        }
    }
}
