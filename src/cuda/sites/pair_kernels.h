/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pairs of sites: a thread block computes the forces on a tile of 8 targets. Its warps divide the tile's list; a lane
 * has one target and each fourth site of the list. 32 sites at a time go to shared memory, relative to the tile's
 * centre, while the next ones are on their way. Sums are added in the same order in each run.
 *
 * Small tiles have lists that fit them: of 32 pairs of a warp more are within the cut-off than with 32 targets. What
 * then bounds the kernel is the number of instructions of a pair.
 *
 * The parameters of the targets with all types are in shared memory, unless there are too many types. A type more has
 * none: it is that of a site that fills lists up.
 *
 * With exclusions a source in shared memory has the mask of the targets that exclude it next to its type. A pair with
 * its bit set is taken as one at the cut-off.
 */
#ifndef CUDA_SITES_PAIR_KERNELS_H
#define CUDA_SITES_PAIR_KERNELS_H

#include "cuda/runtime/chain.h"
#include "cuda/sites/stages.h"

enum
{
    c_blocks       = 5, /* on a multiprocessor, of c_mostWarps: registers are then 48 */
    c_blocksEnergy = 4,
    c_mostWarps    = 8,
    c_lanes        = 32 / c_tile,       /* that share a target */
    c_rounds       = c_block / c_lanes, /* of a lane through 32 sites */
    c_fewTiles     = 1500,
    c_manyTiles    = 6000,
    c_mostShared   = 20000 /* bytes for parameters: with more, fewer warps would fit */
};

struct PairArguments
{
    lj_constants    constants;
    SitesSorted     s;
    const SitesBox* box;
    const float2*   table; /* [num_types][num_types + 1] */
    int             num_types;
    float4*         force; /* by group */
    double*         rows;  /* [num_tiles][c_sitesSums] */
};

/* A lane's sums. The compiler leaves out those without energy. */
struct PairSums
{
    float force[3], energy, virial[c_sitesSums - 1];
};

/* A warp's part of a tile. row: the parameters of the lane's target, by the type of the other site. */
struct PairPart
{
    int           tile, warp, warps, lane;
    unsigned      bit;            /* of the target in masks */
    float4        centre, target; /* the target is relative to the centre */
    const float2* row;
    float4*       staged; /* [32] */
};

/* The site of an entry of a list, and the mask of it. */
template <bool EXCLUSIONS>
static __device__ __forceinline__ int site_of(int entry)
{
    return EXCLUSIONS ? entry & ((1 << c_siteBits) - 1) : entry;
}

static __device__ __forceinline__ unsigned mask_of(int entry)
{
    return static_cast<unsigned>(entry) >> c_siteBits;
}

/* What of a target's row a source of this type has, in the upper half of a word: its place, in shared memory in bytes,
 * so that one instruction adds it. */
template <bool SHARED>
static __device__ __forceinline__ float with_mask(float type, unsigned mask)
{
    const unsigned number = static_cast<unsigned>(__float_as_int(type));
    return __uint_as_float((SHARED ? number * static_cast<unsigned>(sizeof(float2)) : number) << 16 | mask);
}

template <bool SHARED>
static __device__ __forceinline__ float2 parameters(const float2* row, float4 source)
{
    const int type = __float_as_int(source.w);
    return SHARED ? row[type] : __ldg(row + type);
}

/* The same, of a source with a mask. */
template <bool SHARED>
static __device__ __forceinline__ float2 masked_parameters(const float2* row, float4 source)
{
    const unsigned place = __float_as_uint(source.w) >> 16;
    return SHARED ? *reinterpret_cast<const float2*>(reinterpret_cast<const char*>(row) + place) : __ldg(row + place);
}

template <lj_kind KIND, bool ENERGY, bool ONE_IMAGE>
static __device__ __forceinline__ void add_pair(const lj_constants& c,
                                                const SitesBox&     box,
                                                float4              target,
                                                float4              source,
                                                float2              parameter,
                                                bool                excluded,
                                                PairSums*           sums)
{
    float x = target.x - source.x, y = target.y - source.y, z = target.z - source.z;
    if (!ONE_IMAGE)
    {
        shortest_image(box, &x, &y, &z);
    }
    const float     distance2 = x * x + y * y + z * z;
    const float     r2        = excluded ? c.outer_cutoff2 : distance2;
    const lj_values v         = lj_force(&c, KIND, ENERGY, r2, parameter.x, parameter.y);
    const float     fx = v.force * x, fy = v.force * y, fz = v.force * z;
    sums->force[0] += fx;
    sums->force[1] += fy;
    sums->force[2] += fz;
    if (ENERGY)
    {
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

/* Pairs with the sites of the list, which is filled up to whole rounds of a warp. Positions are loaded one round before
 * they are used, entries two. */
template <lj_kind KIND, bool ENERGY, bool SHARED, bool EXCLUSIONS, bool ONE_IMAGE>
static __device__ __forceinline__ void
add_list(const PairArguments& a, const SitesBox& box, const PairPart& p, PairSums* sums)
{
    const int  count = a.s.count[p.tile], step = c_block * p.warps, none = a.s.n;
    int        first = c_block * p.warp;
    const int* list  = a.s.list + static_cast<size_t>(p.tile) * a.s.stride + first + p.lane;
    int        now   = first < count ? list[0] : none;
    float4     next  = a.s.site[site_of<EXCLUSIONS>(now)];
    int        entry = first + step < count ? list[step] : none;
    for (list += 2 * step; first < count; first += step, list += step)
    {
        float4 site = relative<ONE_IMAGE>(box, p.centre, next);
        if (EXCLUSIONS)
        {
            site.w = with_mask<SHARED>(site.w, mask_of(now));
        }
        p.staged[p.lane] = site;
        __syncwarp();
        now   = entry;
        next  = a.s.site[site_of<EXCLUSIONS>(now)];
        entry = first + 2 * step < count ? *list : none;
#pragma unroll 4
        for (int k = 0; k < c_rounds; k++)
        {
            const float4 source   = p.staged[c_lanes * k + p.lane / c_tile];
            const bool   excluded = EXCLUSIONS && (__float_as_uint(source.w) & p.bit) != 0;
            const float2 parameter =
                EXCLUSIONS ? masked_parameters<SHARED>(p.row, source) : parameters<SHARED>(p.row, source);
            add_pair<KIND, ENERGY, ONE_IMAGE>(a.constants, box, p.target, source, parameter, excluded, sums);
        }
        __syncwarp();
    }
}

/* Pairs within the tile, whose targets lanes 0 to 7 have. */
template <lj_kind KIND, bool ENERGY, bool SHARED, bool EXCLUSIONS, bool ONE_IMAGE>
static __device__ __forceinline__ void
add_tile(const PairArguments& a, const SitesBox& box, const PairPart& p, PairSums* sums)
{
    const int      own = p.lane % c_tile, first = c_tile * p.tile;
    const unsigned mask = EXCLUSIONS ? a.s.excluded[min(first + own, a.s.n - 1)] : 0u;
    for (int k = p.lane / c_tile; k < c_tile; k += c_lanes)
    {
        float4 source;
        source.x = __shfl_sync(0xffffffffu, p.target.x, k);
        source.y = __shfl_sync(0xffffffffu, p.target.y, k);
        source.z = __shfl_sync(0xffffffffu, p.target.z, k);
        source.w = __shfl_sync(0xffffffffu, p.target.w, k);
        if (k == own || first + k >= a.s.n || (EXCLUSIONS && (mask >> k & 1u) != 0))
        {
            source.w = __int_as_float(a.num_types);
        }
        add_pair<KIND, ENERGY, ONE_IMAGE>(a.constants, box, p.target, source, parameters<SHARED>(p.row, source), false,
                                          sums);
    }
}

/* Writes the forces on targets: first over lanes, then over warps. part: [warps][3 c_tile]. */
static __device__ __forceinline__ void
write_forces(const PairArguments& a, const PairPart& p, const PairSums& sums, float (*part)[3 * c_tile])
{
#pragma unroll
    for (int d = 0; d < 3; d++)
    {
        float sum = sums.force[d];
#pragma unroll
        for (int step = c_tile; step < 32; step *= 2)
        {
            sum += __shfl_xor_sync(0xffffffffu, sum, step);
        }
        if (p.lane < c_tile)
        {
            part[p.warp][3 * p.lane + d] = sum;
        }
    }
    __syncthreads();
    const int thread = static_cast<int>(threadIdx.x), i = c_tile * p.tile + thread;
    if (thread < c_tile && i < a.s.n)
    {
        float4 force = {0.f, 0.f, 0.f, 0.f};
        for (int w = 0; w < p.warps; w++)
        {
            force.x += part[w][3 * thread];
            force.y += part[w][3 * thread + 1];
            force.z += part[w][3 * thread + 2];
        }
        a.force[a.s.order[i]] = force;
    }
}

/* Writes the tile's row of energy and virial. */
static __device__ __forceinline__ void
write_row(const PairArguments& a, const PairPart& p, const PairSums& sums, double (*part)[c_sitesSums])
{
    const bool is_there = c_tile * p.tile + p.lane % c_tile < a.s.n;
#pragma unroll
    for (int k = 0; k < c_sitesSums; k++)
    {
        double sum = is_there ? static_cast<double>(k == 0 ? sums.energy : sums.virial[k > 0 ? k - 1 : 0]) : 0.;
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

/* The parameters of a target: in shared memory a copy of its row of the table. */
template <bool SHARED>
static __device__ __forceinline__ const float2* target_row(const PairArguments& a, const PairPart& p, float2* sm_row)
{
    const int first = c_tile * p.tile, last = a.s.n - 1, own = p.lane % c_tile, width = a.num_types + 1;
    if (!SHARED)
    {
        return a.table + static_cast<size_t>(a.s.type[min(first + own, last)]) * width;
    }
    const int stride = width | 1; /* other banks for other targets */
    for (int t = p.warp; t < c_tile; t += p.warps)
    {
        const float2* from = a.table + static_cast<size_t>(a.s.type[min(first + t, last)]) * width;
        for (int k = p.lane; k < width; k += 32)
        {
            sm_row[t * stride + k] = from[k];
        }
    }
    return sm_row + own * stride;
}

template <lj_kind KIND, bool ENERGY, bool SHARED, bool EXCLUSIONS>
static __global__ void __launch_bounds__(32 * c_mostWarps, ENERGY ? c_blocksEnergy : c_blocks)
    pair_forces(const __grid_constant__ PairArguments a)
{
    extern __shared__ float2 sm_row[];
    __shared__ SitesBox      sm_box;
    __shared__ float4        sm_staged[c_mostWarps][c_block];
    __shared__ float         sm_part[c_mostWarps][3 * c_tile];
    __shared__ double        sm_sums[ENERGY ? c_mostWarps : 1][c_sitesSums];
    PairPart                 p;
    p.tile   = static_cast<int>(blockIdx.x);
    p.lane   = static_cast<int>(threadIdx.x % 32);
    p.warp   = static_cast<int>(threadIdx.x / 32);
    p.warps  = static_cast<int>(blockDim.x / 32);
    p.bit    = 1u << p.lane % c_tile;
    p.staged = sm_staged[p.warp];
    p.row    = target_row<SHARED>(a, p, sm_row);
    p.centre = a.s.tile.centre[p.tile];
    wait_for_previous();
    if (threadIdx.x == 0)
    {
        sm_box = *a.box;
    }
    __syncthreads();
    const float4 site = a.s.site[min(c_tile * p.tile + p.lane % c_tile, a.s.n - 1)];
    p.target          = relative<true>(sm_box, p.centre, site);
    PairSums sums     = {};
    if (p.centre.w > 0.f)
    {
        add_list<KIND, ENERGY, SHARED, EXCLUSIONS, true>(a, sm_box, p, &sums);
    }
    else
    {
        add_list<KIND, ENERGY, SHARED, EXCLUSIONS, false>(a, sm_box, p, &sums);
    }
    if (p.warp == p.warps - 1) /* which has the shortest part of the list */
    {
        add_tile<KIND, ENERGY, SHARED, EXCLUSIONS, false>(a, sm_box, p, &sums);
    }
    write_forces(a, p, sums, sm_part);
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
