/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sites along Hilbert's curve, and bounding boxes of those that follow each other. */
#include <climits>

#include <cub/device/device_radix_sort.cuh>

#include "cuda/sites/hilbert.h"
#include "cuda/sites/place.h"
#include "cuda/sites/stages.h"

enum
{
    c_threads = 128
};

/* Numbers whose order is that of floats, for minima by atomics: these have the same result in any order. */
static __device__ __forceinline__ unsigned ordered(float value)
{
    const unsigned bits = __float_as_uint(value);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static __device__ __forceinline__ float from_ordered(unsigned bits)
{
    return __uint_as_float(bits & 0x80000000u ? bits & 0x7fffffffu : ~bits);
}

static __global__ void start_search(SitesBox box, SitesBox* to, SitesFound* found)
{
    *to               = box;
    SitesFound result = {};
    result.bad        = INT_MAX;
    for (int d = 0; d < 3; d++)
    {
        result.low[d] = UINT_MAX;
    }
    *found = result;
}

/* Sites in the order of groups, in the box, and their extent. */
static __global__ void __launch_bounds__(c_threads)
    place_groups(SitesGroups a, SitesBox box, const float* x, float4* placed, SitesFound* found)
{
    const int g        = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    float4    site     = {0.f, 0.f, 0.f, 0.f};
    bool      is_there = g < a.n;
    if (is_there)
    {
        const int first = a.start[g];
        site            = place_site(a, box, x, first, a.start[g + 1] - first, a.type[g]);
        if (!isfinite(site.x) || !isfinite(site.y) || !isfinite(site.z))
        {
            atomicMin(&found->bad, g);
            site.x = site.y = site.z = 0.f;
        }
        wrap(box, &site.x, &site.y, &site.z);
        placed[g] = site;
    }
    const float at[3] = {site.x, site.y, site.z};
#pragma unroll
    for (int d = 0; d < 3; d++)
    {
        const unsigned low  = __reduce_min_sync(0xffffffffu, is_there ? ordered(at[d]) : UINT_MAX);
        const unsigned high = __reduce_max_sync(0xffffffffu, is_there ? ordered(at[d]) : 0u);
        if (threadIdx.x % 32 == 0)
        {
            /* most warps change nothing, and would wait for each other */
            if (low < __ldcg(&found->low[d]))
            {
                atomicMin(&found->low[d], low);
            }
            if (high > __ldcg(&found->high[d]))
            {
                atomicMax(&found->high[d], high);
            }
        }
    }
}

/* Cells are cubes, so that blocks are compact in long boxes, too. */
static __global__ void __launch_bounds__(c_threads)
    make_keys(int n, int bits, const float4* placed, const SitesFound* found, unsigned* key, int* value)
{
    const int g = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    if (g >= n)
    {
        return;
    }
    float low[3], edge = 0.f;
#pragma unroll
    for (int d = 0; d < 3; d++)
    {
        low[d] = from_ordered(found->low[d]);
        edge   = fmaxf(edge, from_ordered(found->high[d]) - low[d]);
    }
    const float scale   = edge > 0.f ? static_cast<float>(1 << bits) / edge : 0.f,
                last    = static_cast<float>((1 << bits) - 1);
    const float4   site = placed[g];
    const unsigned x    = static_cast<unsigned>(fminf((site.x - low[0]) * scale, last));
    const unsigned y    = static_cast<unsigned>(fminf((site.y - low[1]) * scale, last));
    const unsigned z    = static_cast<unsigned>(fminf((site.z - low[2]) * scale, last));
    key[g]              = hilbert_key(x, y, z, bits);
    value[g]            = g;
}

/* Corners of a bounding box, of lanes that are `width` neighbours, in all of them. */
template <int WIDTH>
static __device__ __forceinline__ void join(float (&low)[3], float (&high)[3])
{
#pragma unroll
    for (int step = WIDTH / 2; step > 0; step /= 2)
    {
#pragma unroll
        for (int d = 0; d < 3; d++)
        {
            low[d]  = fminf(low[d], __shfl_xor_sync(0xffffffffu, low[d], step));
            high[d] = fmaxf(high[d], __shfl_xor_sync(0xffffffffu, high[d], step));
        }
    }
}

/* A box without sites is far from everything: its number is not used. */
static __device__ __forceinline__ void
set_bounds(SitesBounds bounds, int i, const float (&low)[3], const float (&high)[3], float mark)
{
    bounds.centre[i] =
        make_float4(0.5f * (low[0] + high[0]), 0.5f * (low[1] + high[1]), 0.5f * (low[2] + high[2]), mark);
    bounds.half[i] = make_float4(0.5f * (high[0] - low[0]), 0.5f * (high[1] - low[1]), 0.5f * (high[2] - low[2]), 0.f);
}

/* A thread block has a cluster, a warp a block. atom: NULL unless groups are single atoms. */
static __global__ void __launch_bounds__(c_cluster) make_bounds(
    SitesSorted s, const int* start, const int* atom, const float4* placed, SitesBox box, float reach, int no_type)
{
    __shared__ float corner[2][3][c_cluster / c_block];
    const int        i = static_cast<int>(blockIdx.x * c_cluster + threadIdx.x), lane = i % 32, warp = threadIdx.x / 32;
    const int        g    = s.order[min(i, s.n - 1)]; /* the last one again does not change bounds */
    const float4     site = placed[g];
    if (i < s.n)
    {
        const int first = start[g];
        s.site[i]       = site;
        s.type[i]       = __float_as_int(site.w);
        s.range[i]      = atom != nullptr ? make_int2(atom[first], s.type[i]) : make_int2(first, start[g + 1] - first);
        s.rank[g]       = i;
    }
    if (i == 0)
    {
        s.site[s.n] = make_float4(0.f, 0.f, 0.f, __int_as_float(no_type));
    }
    float low[3] = {site.x, site.y, site.z}, high[3] = {site.x, site.y, site.z};
    join<c_tile>(low, high);
    if (lane % c_tile == 0 && i < s.n)
    {
        const float4 half = {0.5f * (high[0] - low[0]), 0.5f * (high[1] - low[1]), 0.5f * (high[2] - low[2]), 0.f};
        set_bounds(s.tile, i / c_tile, low, high, has_one_image(box, half, reach) ? 1.f : 0.f);
    }
    join<c_block>(low, high);
    if (lane == 0)
    {
        for (int d = 0; d < 3; d++)
        {
            corner[0][d][warp] = low[d];
            corner[1][d][warp] = high[d];
        }
        if (i < s.n)
        {
            set_bounds(s.block, i / c_block, low, high, 0.f);
        }
    }
    __syncthreads();
    if (warp == 0)
    {
        for (int d = 0; d < 3; d++)
        {
            low[d]  = corner[0][d][lane];
            high[d] = corner[1][d][lane];
        }
        join<32>(low, high);
        if (lane == 0)
        {
            set_bounds(s.cluster, blockIdx.x, low, high, 0.f);
        }
    }
}

static cudaError_t sort_pairs(void* scratch, size_t* bytes, sites_device* d, int n, int bits, cudaStream_t stream)
{
    return cub::DeviceRadixSort::SortPairs(scratch, *bytes, d->key[0].as<unsigned>(), d->key[1].as<unsigned>(),
                                           d->value[0].as<int>(), d->value[1].as<int>(), n, 0, 3 * bits, stream);
}

gmxfmm_status sites_sort_memory(gmxfmm_sites* sites)
{
    sites_device* d     = sites_device_of(sites);
    const int     n     = sites->system.num_groups;
    size_t        bytes = 0;
    FMM_CUDA(sites, sort_pairs(nullptr, &bytes, d, n, d->bits, nullptr));
    FMM_CUDA(sites, d->scratch.reserve(bytes));
    return GMXFMM_OK;
}

gmxfmm_status sites_sort(gmxfmm_sites* sites, const float* x, double reach, cudaStream_t stream)
{
    sites_device*  d = sites_device_of(sites);
    const int      n = sites->system.num_groups, blocks = sites_quotient(n, c_threads);
    const SitesBox box    = sites_box(sites);
    SitesFound*    found  = d->found.as<SitesFound>();
    float4*        placed = d->placed.as<float4>();
    size_t         bytes  = d->scratch.capacity;
    start_search<<<1, 1, 0, stream>>>(box, d->box.as<SitesBox>(), found);
    FMM_CUDA(sites, cudaGetLastError());
    place_groups<<<blocks, c_threads, 0, stream>>>(sites_groups(sites), box, x, placed, found);
    FMM_CUDA(sites, cudaGetLastError());
    make_keys<<<blocks, c_threads, 0, stream>>>(n, d->bits, placed, found, d->key[0].as<unsigned>(),
                                                d->value[0].as<int>());
    FMM_CUDA(sites, cudaGetLastError());
    FMM_CUDA(sites, sort_pairs(d->scratch.memory, &bytes, d, n, d->bits, stream));
    make_bounds<<<sites_quotient(n, c_cluster), c_cluster, 0, stream>>>(
        sites_sorted(sites), d->start.as<int>(), d->is_single ? d->atom.as<int>() : nullptr, placed, box,
        static_cast<float>(reach), sites->system.num_types);
    FMM_CUDA(sites, cudaGetLastError());
    return GMXFMM_OK;
}
