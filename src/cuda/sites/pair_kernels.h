/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pairs of sites: a thread block has a tile of targets, its warps divide the tile's list. A lane has a source, and goes
 * through the targets: forces on both are in its registers. Those on the source go to memory behind each round of 32
 * sources, those on the targets at the end, when lanes and warps have added them up. So each pair is computed once.
 *
 * With smaller tiles lists fit them better, but additions to memory bound the kernel. A group of targets is left out
 * where none of 32 sources is within reach of it.
 *
 * Sums in memory are of integers, in units of which the largest force of a pair in a liquid has 2^c_pairBits: they are
 * the same in any order. What is beyond 2^c_partBits, or not finite, goes to sums of floats.
 *
 * The parameters of the targets with all types are in shared memory, unless there are too many types. A type more has
 * none: it is that of a site that fills lists up, and of a target that is not there.
 *
 * What a block needs of the search it loads at once, before it waits for the positions: lists are short, so that loads
 * that wait for each other would take as long as the pairs.
 */
#ifndef CUDA_SITES_PAIR_KERNELS_H
#define CUDA_SITES_PAIR_KERNELS_H

#include "cuda/runtime/chain.h"
#include "cuda/sites/stages.h"

enum
{
    c_mostWarps    = 4, /* of a thread block */
    c_blocks       = 7, /* of so many, on a multiprocessor: registers are then 72 */
    c_blocksEnergy = 4,
    c_row          = c_tile + 2, /* of parameters: other banks for other types */
    c_fewTiles     = 3000,
    c_manyTiles    = 5000,
    c_mostShared   = 24576 /* bytes for parameters: with more, fewer blocks would fit */
};

struct PairArguments
{
    lj_constants    constants;
    SitesSorted     s;
    const SitesBox* box;
    const float2*   table; /* [num_types + 1][num_types + 1] */
    int             num_types;
    float           units; /* of sums, in the unit of forces */
    double*         rows;  /* [num_tiles][c_sitesSums] */
};

/* A lane's sums. The compiler leaves out those without energy. */
struct PairSums
{
    float force[3 * c_tile], energy, virial[c_sitesSums - 1];
};

/* A warp's part of a tile. target: relative to the centre, in shared memory; w: its row of the table. row: parameters
 * of the targets in shared memory, [num_types + 1][c_row]. */
struct PairPart
{
    int               tile, warp, warps, lane, count; /* count: of the list */
    const SitesEntry* list;                           /* from this lane's first entry on */
    SitesEntry        entry[2];                       /* the lane's first two */
    float4            centre;
    const float4*     target;
    const float2*     row;
};

/* The parameters of target t and a source of this type. */
template <bool SHARED>
static __device__ __forceinline__ float2 parameter(const PairArguments& a, const PairPart& p, int t, int type)
{
    return SHARED ? p.row[c_row * type + t] : __ldg(a.table + __float_as_int(p.target[t].w) + type);
}

/* Those of targets t and t + 1. */
template <bool SHARED>
static __device__ __forceinline__ float4 two_parameters(const PairArguments& a, const PairPart& p, int t, int type)
{
    if (SHARED)
    {
        return *reinterpret_cast<const float4*>(p.row + c_row * type + t);
    }
    const float2 one = parameter<false>(a, p, t, type), other = parameter<false>(a, p, t + 1, type);
    return make_float4(one.x, one.y, other.x, other.y);
}

/* Adds the force of a source on a target to `on`, and to `all`. */
template <lj_kind KIND, bool ENERGY, bool ONE_IMAGE>
static __device__ __forceinline__ void add_pair(const lj_constants& c,
                                                const SitesBox&     box,
                                                float4              target,
                                                float4              source,
                                                float2              of_pair,
                                                bool                excluded,
                                                float*              on,
                                                float*              all,
                                                PairSums*           sums)
{
    float x = target.x - source.x, y = target.y - source.y, z = target.z - source.z;
    if (!ONE_IMAGE)
    {
        shortest_image(box, &x, &y, &z);
    }
    const float     distance2 = x * x + y * y + z * z;
    const float     r2        = excluded ? c.outer_cutoff2 : distance2;
    const lj_values v         = lj_force(&c, KIND, ENERGY, r2, of_pair.x, of_pair.y);
    on[0]                     = fmaf(v.force, x, on[0]);
    on[1]                     = fmaf(v.force, y, on[1]);
    on[2]                     = fmaf(v.force, z, on[2]);
    all[0]                    = fmaf(v.force, x, all[0]);
    all[1]                    = fmaf(v.force, y, all[1]);
    all[2]                    = fmaf(v.force, z, all[2]);
    if (ENERGY)
    {
        const float fx = v.force * x, fy = v.force * y, fz = v.force * z;
        sums->energy += v.potential;
        sums->virial[0] += x * fx;
        sums->virial[1] += y * fy;
        sums->virial[2] += z * fz;
        sums->virial[3] += x * fy;
        sums->virial[4] += x * fz;
        sums->virial[5] += y * fz;
    }
}

template <bool ONE_IMAGE>
static __device__ __forceinline__ float4 relative(const SitesBox& box, float4 centre, float4 site)
{
    site.x -= centre.x;
    site.y -= centre.y;
    site.z -= centre.z;
    if (ONE_IMAGE)
    {
        nearest_image(box, &site.x, &site.y, &site.z);
    }
    return site;
}

/* Adds a part of a force to the sum in memory. */
static __device__ __forceinline__ void add_force(const PairArguments& a, int d, int i, float force)
{
    const size_t at   = static_cast<size_t>(d) * a.s.n + i;
    const float  part = a.units * force;
    if (fabsf(part) <= static_cast<float>(1ll << c_partBits))
    {
        atomicAdd(reinterpret_cast<unsigned long long*>(a.s.force) + at,
                  static_cast<unsigned long long>(__float2ll_rn(part)));
    }
    else
    {
        atomicAdd(a.s.beyond + at, force);
    }
}

/* Pairs with the sites of the list, which is filled up to whole rounds of a warp. Positions are loaded one round before
 * they are used, entries two. */
template <lj_kind KIND, bool ENERGY, bool SHARED, bool EXCLUSIONS, bool ONE_IMAGE>
static __device__ __forceinline__ void
add_list(const PairArguments& a, const SitesBox& box, const PairPart& p, PairSums* sums)
{
    const SitesEntry  none  = {a.s.n, 0u};
    const int         step  = 32 * p.warps;
    const SitesEntry* list  = p.list + 2 * step;
    int               first = 32 * p.warp;
    SitesEntry        now   = first < p.count ? p.entry[0] : none;
    float4            next  = a.s.site[now.site];
    SitesEntry        after = first + step < p.count ? p.entry[1] : none;
    for (; first < p.count; first += step, list += step)
    {
        const SitesEntry entry  = now;
        const float4     source = relative<ONE_IMAGE>(box, p.centre, next);
        const int        type   = __float_as_int(source.w);
        now                     = after;
        next                    = a.s.site[now.site];
        after                   = first + 2 * step < p.count ? *list : none;
        float force[3]          = {0.f, 0.f, 0.f};
#pragma unroll
        for (int g = 0; g < c_groups; g++)
        {
            if (!__any_sync(0xffffffffu, entry.mask >> (c_tile + g) & 1u))
            {
                continue;
            }
#pragma unroll
            for (int t = c_group * g; t < c_group * (g + 1); t += 2)
            {
                const float4 two = two_parameters<SHARED>(a, p, t, type);
                add_pair<KIND, ENERGY, ONE_IMAGE>(a.constants, box, p.target[t], source, make_float2(two.x, two.y),
                                                  EXCLUSIONS && (entry.mask & 1u << t) != 0, sums->force + 3 * t, force,
                                                  sums);
                add_pair<KIND, ENERGY, ONE_IMAGE>(a.constants, box, p.target[t + 1], source, make_float2(two.z, two.w),
                                                  EXCLUSIONS && (entry.mask & 2u << t) != 0, sums->force + 3 * (t + 1),
                                                  force, sums);
            }
        }
        if (entry.site != none.site)
        {
#pragma unroll
            for (int d = 0; d < 3; d++)
            {
                add_force(a, d, entry.site, -force[d]);
            }
        }
    }
}

/* Pairs within the tile, each twice: a lane has a source, and a part of the targets. */
template <lj_kind KIND, bool ENERGY, bool SHARED, bool EXCLUSIONS>
static __device__ __forceinline__ void
add_tile(const PairArguments& a, const SitesBox& box, const PairPart& p, PairSums* sums)
{
    const int      own = p.lane % c_tile, i = c_tile * p.tile + own, at = min(i, a.s.n - 1);
    const unsigned mask     = EXCLUSIONS ? a.s.excluded[at] : 0u;
    const int      type     = i < a.s.n ? a.s.type[at] : a.num_types;
    const float4   source   = p.target[own];
    PairSums       pairs    = {};
    float          force[3] = {0.f, 0.f, 0.f};
    for (int t = p.lane / c_tile; t < c_tile; t += 32 / c_tile)
    {
        const bool excluded = t == own || (EXCLUSIONS && (mask >> t & 1u) != 0);
        add_pair<KIND, ENERGY, false>(a.constants, box, p.target[t], source, parameter<SHARED>(a, p, t, type), excluded,
                                      pairs.force, force, &pairs);
    }
    if (ENERGY)
    {
        sums->energy += 0.5f * pairs.energy;
#pragma unroll
        for (int k = 0; k < c_sitesSums - 1; k++)
        {
            sums->virial[k] += 0.5f * pairs.virial[k];
        }
    }
#pragma unroll
    for (int d = 0; d < 3; d++)
    {
#pragma unroll
        for (int step = c_tile; step < 32; step *= 2)
        {
            force[d] += __shfl_xor_sync(0xffffffffu, force[d], step);
        }
        if (p.lane < c_tile && i < a.s.n)
        {
            add_force(a, d, i, -force[d]);
        }
    }
}

template <int HALF>
static __device__ __forceinline__ void fold(float (&value)[3 * c_tile], int lane)
{
    const int  mask  = HALF * (32 / c_tile);
    const bool upper = (lane & mask) != 0;
#pragma unroll
    for (int k = 0; k < 3 * HALF; k++)
    {
        const float low = value[k], high = value[k + 3 * HALF];
        value[k] = (upper ? high : low) + __shfl_xor_sync(0xffffffffu, upper ? low : high, mask);
    }
    if constexpr (HALF > 1)
    {
        fold<HALF / 2>(value, lane);
    }
}

/* The sums over lanes, then over warps, of the forces on targets. With each step lanes have half of the targets, until
 * each has one. part: [warps][3 c_tile]. */
static __device__ __forceinline__ void
add_targets(const PairArguments& a, const PairPart& p, PairSums* sums, float (*part)[3 * c_tile])
{
    const int width           = 32 / c_tile; /* lanes of a target in the end */
    float(&value)[3 * c_tile] = sums->force;
    fold<c_tile / 2>(value, p.lane);
#pragma unroll
    for (int d = 0; d < 3; d++)
    {
#pragma unroll
        for (int mask = width / 2; mask > 0; mask /= 2)
        {
            value[d] += __shfl_xor_sync(0xffffffffu, value[d], mask);
        }
        if (p.lane % width == 0)
        {
            part[p.warp][3 * (p.lane / width) + d] = value[d];
        }
    }
    __syncthreads();
    for (int k = static_cast<int>(threadIdx.x); k < 3 * c_tile; k += 32 * p.warps)
    {
        const int i   = c_tile * p.tile + k / 3;
        float     sum = 0.f;
        for (int w = 0; w < p.warps; w++)
        {
            sum += part[w][k];
        }
        if (i < a.s.n)
        {
            add_force(a, k % 3, i, sum);
        }
    }
}

/* Writes the tile's row of energy and virial. */
static __device__ __forceinline__ void
write_row(const PairArguments& a, const PairPart& p, const PairSums& sums, double (*part)[c_sitesSums])
{
#pragma unroll
    for (int k = 0; k < c_sitesSums; k++)
    {
        double sum = static_cast<double>(k == 0 ? sums.energy : sums.virial[k > 0 ? k - 1 : 0]);
        for (int step = 16; step > 0; step /= 2)
        {
            sum += __shfl_xor_sync(0xffffffffu, sum, step);
        }
        if (p.lane == 0)
        {
            part[p.warp][k] = sum;
        }
    }
    __syncthreads();
    const int k = static_cast<int>(threadIdx.x);
    if (k < c_sitesSums)
    {
        double sum = 0;
        for (int w = 0; w < p.warps; w++)
        {
            sum += part[w][k];
        }
        a.rows[static_cast<size_t>(p.tile) * c_sitesSums + k] = sum;
    }
}

/* Types of targets; one that is not there has none. */
static __device__ __forceinline__ int target_type(const PairArguments& a, int i)
{
    return i < a.s.n ? a.s.type[i] : a.num_types;
}

/* Copies the rows of the targets' types. Neighbouring threads have different targets. */
static __device__ __forceinline__ void copy_rows(const PairArguments& a, int tile, float2* row)
{
    const int     t = static_cast<int>(threadIdx.x) % c_tile, width = a.num_types + 1;
    const float2* from = a.table + static_cast<size_t>(target_type(a, c_tile * tile + t)) * width;
#pragma unroll 4
    for (int k = static_cast<int>(threadIdx.x) / c_tile; k < width; k += static_cast<int>(blockDim.x) / c_tile)
    {
        row[c_row * k + t] = from[k];
    }
}

/* The targets relative to the centre, which a warp alone reads. */
static __device__ __forceinline__ void
place_targets(const PairArguments& a, const SitesBox& box, const PairPart& p, float4* target)
{
    if (p.lane < c_tile)
    {
        const int i    = c_tile * p.tile + p.lane;
        float4    site = relative<true>(box, p.centre, a.s.site[min(i, a.s.n - 1)]);
        site.w         = __int_as_float(target_type(a, i) * (a.num_types + 1));
        target[p.lane] = site;
    }
    __syncwarp();
}

template <lj_kind KIND, bool ENERGY, bool SHARED, bool EXCLUSIONS>
static __global__ void __launch_bounds__(32 * c_mostWarps, ENERGY ? c_blocksEnergy : c_blocks)
    pair_forces(const __grid_constant__ PairArguments a)
{
    extern __shared__ float4 sm_rows[];
    __shared__ SitesBox      sm_box;
    __shared__ float4        sm_target[c_mostWarps][c_tile];
    __shared__ float         sm_part[c_mostWarps][3 * c_tile];
    __shared__ double        sm_sums[ENERGY ? c_mostWarps : 1][c_sitesSums];
    PairPart                 p;
    PairSums                 sums = {};
    p.tile                        = static_cast<int>(blockIdx.x);
    p.lane                        = static_cast<int>(threadIdx.x % 32);
    p.warp                        = static_cast<int>(threadIdx.x / 32);
    p.warps                       = static_cast<int>(blockDim.x / 32);
    p.target                      = sm_target[p.warp];
    p.row                         = reinterpret_cast<const float2*>(sm_rows);
    p.centre                      = a.s.tile.centre[p.tile];
    p.count                       = a.s.count[p.tile];
    p.list                        = a.s.list + static_cast<size_t>(p.tile) * a.s.stride + 32 * p.warp + p.lane;
    p.entry[0]                    = p.list[0]; /* of no meaning beyond the list's end */
    p.entry[1]                    = p.list[32 * p.warps];
    if (threadIdx.x == 0)
    {
        sm_box = *a.box;
    }
    if (SHARED)
    {
        copy_rows(a, p.tile, reinterpret_cast<float2*>(sm_rows));
    }
    __syncthreads();
    wait_for_previous();
    place_targets(a, sm_box, p, sm_target[p.warp]);
    if (p.centre.w > 0.f)
    {
        add_list<KIND, ENERGY, SHARED, EXCLUSIONS, true>(a, sm_box, p, &sums);
    }
    else
    {
        add_list<KIND, ENERGY, SHARED, EXCLUSIONS, false>(a, sm_box, p, &sums);
    }
    add_targets(a, p, &sums, sm_part);
    if (p.warp == p.warps - 1) /* which has the shortest part of the list */
    {
        add_tile<KIND, ENERGY, SHARED, EXCLUSIONS>(a, sm_box, p, &sums);
    }
    if (ENERGY)
    {
        write_row(a, p, sums, sm_sums);
    }
}

using PairKernel = void (*)(PairArguments);

template <bool ENERGY, bool SHARED, bool EXCLUSIONS>
static PairKernel kernel_of(lj_kind kind)
{
    switch (kind)
    {
    case LJ_FORCE_SWITCH:
        return pair_forces<LJ_FORCE_SWITCH, ENERGY, SHARED, EXCLUSIONS>;
    case LJ_POTENTIAL_SWITCH:
        return pair_forces<LJ_POTENTIAL_SWITCH, ENERGY, SHARED, EXCLUSIONS>;
    case LJ_SHIFTED_ALONE:
        return pair_forces<LJ_SHIFTED_ALONE, ENERGY, SHARED, EXCLUSIONS>;
    case LJ_FORCE_SWITCH_ALONE:
        return pair_forces<LJ_FORCE_SWITCH_ALONE, ENERGY, SHARED, EXCLUSIONS>;
    case LJ_POTENTIAL_SWITCH_ALONE:
        return pair_forces<LJ_POTENTIAL_SWITCH_ALONE, ENERGY, SHARED, EXCLUSIONS>;
    default:
        return pair_forces<LJ_SHIFTED, ENERGY, SHARED, EXCLUSIONS>;
    }
}

template <bool EXCLUSIONS>
static PairKernel kernel_for(lj_kind kind, bool with_energy, bool shared)
{
    return with_energy
               ? (shared ? kernel_of<true, true, EXCLUSIONS>(kind) : kernel_of<true, false, EXCLUSIONS>(kind))
               : (shared ? kernel_of<false, true, EXCLUSIONS>(kind) : kernel_of<false, false, EXCLUSIONS>(kind));
}

/* The kernel for systems with exclusions. (pairs_excluded.cu) */
PairKernel sites_kernel_with_exclusions(lj_kind kind, bool with_energy, bool shared);

#endif
