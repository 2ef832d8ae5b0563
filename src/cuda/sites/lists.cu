/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lists of tiles: a warp goes through clusters, blocks of those that are near, and their sites, always in the order of
 * the curve, and writes the sites within reach of any of its own, but for those of tiles that have this one in their
 * lists. So lists are the same in each run.
 *
 * Lists are sorted. With exclusions a warp then looks for those of each target in the tile's list, and sets their
 * masks.
 */
#include "cuda/sites/stages.h"

enum
{
    c_warps = 4 /* of a thread block */
};

struct ListArguments
{
    SitesSorted     s;
    const SitesBox* box;
    SitesFound*     found;
    float           reach, cutoff2;
};

/* A warp's tile. */
struct ListTile
{
    float4        centre, half;
    bool          has_one_image;
    int           index, num; /* sites of its own */
    const float4* target;     /* of the tile, by its centre */
    int           length;     /* of the list */
    int           within;     /* pairs within the cut-off, of this lane */
};

/* Whether boxes may have sites within reach of the tile, one in each lane. */
static __device__ __forceinline__ unsigned near_boxes(
    const ListArguments& a, const SitesBox& box, const ListTile& tile, const SitesBounds& bounds, int first, int end)
{
    const int i    = first + static_cast<int>(threadIdx.x % 32);
    bool      near = false;
    if (i < end)
    {
        const float4 centre = bounds.centre[i], half = bounds.half[i];
        const float4 both = {half.x + tile.half.x, half.y + tile.half.y, half.z + tile.half.z, 0.f};
        float        x = centre.x - tile.centre.x, y = centre.y - tile.centre.y, z = centre.z - tile.centre.z;
        nearest_image(box, &x, &y, &z);
        near = gap_squared(box, x, y, z, both, a.reach) <= a.reach * a.reach;
    }
    return __ballot_sync(0xffffffffu, near);
}

/* The groups of targets, a bit for each, that have a place relative to the tile's centre within reach of a target. */
template <bool ONE_IMAGE>
static __device__ __forceinline__ unsigned
groups_near(const ListArguments& a, const SitesBox& box, ListTile* tile, float x, float y, float z)
{
    const float reach2 = a.reach * a.reach;
    unsigned    near   = 0;
#pragma unroll
    for (int t = 0; t < c_tile; t++)
    {
        const float4 target = tile->target[t];
        float        dx = x - target.x, dy = y - target.y, dz = z - target.z;
        if (!ONE_IMAGE)
        {
            shortest_image(box, &dx, &dy, &dz);
        }
        const float r2 = t < tile->num ? dx * dx + dy * dy + dz * dz : 2.f * reach2;
        near |= r2 <= reach2 ? 1u << t / c_group : 0u;
        tile->within += r2 < a.cutoff2 ? 1 : 0;
    }
    return near;
}

/* Whether the list of a tile, not that of the other one, has their pairs. */
static __device__ __forceinline__ bool has_pairs(int tile, int other)
{
    return ((tile ^ other) & 1) == 0 ? tile < other : tile > other;
}

/* Adds a block's sites to the list. Those of the tile itself are counted, but not listed. */
template <bool ONE_IMAGE>
static __device__ __forceinline__ void add_block(const ListArguments& a, const SitesBox& box, ListTile* tile, int block)
{
    const int lane = static_cast<int>(threadIdx.x % 32), j = block * c_block + lane;
    float     x = 0.f, y = 0.f, z = 0.f;
    bool      maybe = j < a.s.n;
    if (maybe)
    {
        const float4 site = a.s.site[j];
        x                 = site.x - tile->centre.x;
        y                 = site.y - tile->centre.y;
        z                 = site.z - tile->centre.z;
        nearest_image(box, &x, &y, &z);
        maybe = !ONE_IMAGE || gap_squared(box, x, y, z, tile->half, a.reach) <= a.reach * a.reach;
    }
    if (!__any_sync(0xffffffffu, maybe))
    {
        return;
    }
    const bool     is_own = j / c_tile == tile->index;
    const unsigned near   = maybe ? groups_near<ONE_IMAGE>(a, box, tile, x, y, z) : 0u;
    const bool     listed = near != 0 && has_pairs(tile->index, j / c_tile);
    const unsigned all    = __ballot_sync(0xffffffffu, listed);
    const int      place  = tile->length + __popc(all & ((1u << lane) - 1u));
    if (listed && place < a.s.stride)
    {
        a.s.list[static_cast<size_t>(tile->index) * a.s.stride + place] = {j, near << c_tile};
    }
    tile->length += __popc(all);
    tile->within -= is_own && maybe ? 1 : 0; /* itself */
}

static __device__ __forceinline__ void search_tile(const ListArguments& a, const SitesBox& box, ListTile* tile)
{
    const int clusters = (a.s.n + c_cluster - 1) / c_cluster, blocks = (a.s.n + c_block - 1) / c_block;
    for (int first = 0; first < clusters; first += 32)
    {
        unsigned near = near_boxes(a, box, *tile, a.s.cluster, first, clusters);
        for (; near != 0; near &= near - 1)
        {
            const int first_block = 32 * (first + __ffs(static_cast<int>(near)) - 1);
            unsigned  these       = near_boxes(a, box, *tile, a.s.block, first_block, blocks);
            for (; these != 0; these &= these - 1)
            {
                const int block = first_block + __ffs(static_cast<int>(these)) - 1;
                if (tile->has_one_image)
                {
                    add_block<true>(a, box, tile, block);
                }
                else
                {
                    add_block<false>(a, box, tile, block);
                }
            }
        }
    }
}

static __global__ void __launch_bounds__(32 * c_warps) make_lists(ListArguments a)
{
    __shared__ SitesBox box;
    __shared__ float4   target[c_warps][c_tile];
    const int           lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    ListTile            tile;
    tile.index = static_cast<int>(blockIdx.x) * c_warps + warp;
    if (threadIdx.x == 0)
    {
        box = *a.box;
    }
    __syncthreads();
    if (tile.index >= a.s.num_tiles)
    {
        return;
    }
    tile.centre        = a.s.tile.centre[tile.index];
    tile.half          = a.s.tile.half[tile.index];
    tile.has_one_image = tile.centre.w > 0.f;
    tile.num           = min(c_tile, a.s.n - c_tile * tile.index);
    tile.target        = target[warp];
    tile.length        = 0;
    tile.within        = 0;
    if (lane < c_tile)
    {
        const float4 site  = a.s.site[c_tile * tile.index + min(lane, tile.num - 1)];
        target[warp][lane] = make_float4(site.x - tile.centre.x, site.y - tile.centre.y, site.z - tile.centre.z, 0.f);
    }
    __syncwarp();
    search_tile(a, box, &tile);
    const int rounded = (tile.length + 31) / 32 * 32, place = tile.length + lane;
    if (place < rounded && rounded <= a.s.stride)
    {
        a.s.list[static_cast<size_t>(tile.index) * a.s.stride + place] = {a.s.n, 0u}; /* whole rounds of a warp */
    }
    const int within = __reduce_add_sync(0xffffffffu, tile.within);
    if (lane == 0)
    {
        a.s.count[tile.index] = tile.length;
        atomicMax(&a.found->lists.most, tile.length);
        atomicAdd(&a.found->lists.pairs, static_cast<unsigned long long>(tile.num) * (2 * tile.length + tile.num - 1));
        atomicAdd(&a.found->lists.within, static_cast<unsigned long long>(within));
    }
}

/* The place of a site in a list that is sorted, or -1. */
static __device__ __forceinline__ int find_entry(const SitesEntry* list, int length, int site)
{
    int low = 0, high = length; /* the site is in [low, high) */
    while (high - low > 1)
    {
        const int middle                         = (low + high) / 2;
        (list[middle].site <= site ? low : high) = middle;
    }
    return low < high && list[low].site == site ? low : -1;
}

/* The exclusions of a warp's tile: four lanes have a target. A mask is a sum of bits, in any order. */
static __global__ void __launch_bounds__(32 * c_warps) mask_lists(SitesSorted s, SitesExclusions excluded)
{
    const int lane = static_cast<int>(threadIdx.x % 32),
              tile = static_cast<int>(blockIdx.x * c_warps + threadIdx.x / 32);
    const int step = 32 / c_tile, target = lane / step, i = c_tile * tile + target;
    if (tile >= s.num_tiles)
    {
        return;
    }
    SitesEntry* list   = s.list + static_cast<size_t>(tile) * s.stride;
    const int   length = min(s.count[tile], s.stride);
    const int   group = s.order[min(i, s.n - 1)], end = i < s.n ? excluded.start[group + 1] : 0;
    unsigned    own = 0;
    for (int k = excluded.start[group] + lane % step; k < end; k += step)
    {
        const int site = s.rank[excluded.group[k]];
        if (site / c_tile == tile)
        {
            own |= 1u << site % c_tile;
            continue;
        }
        const int place = find_entry(list, length, site);
        if (place >= 0)
        {
            atomicOr(&list[place].mask, 1u << target);
        }
    }
    for (int other = step / 2; other > 0; other /= 2)
    {
        own |= __shfl_xor_sync(0xffffffffu, own, other);
    }
    if (lane % step == 0 && i < s.n)
    {
        s.excluded[i] = own;
    }
}

gmxfmm_status sites_make_lists(gmxfmm_sites* sites, double reach, cudaStream_t stream)
{
    sites_device* d      = sites_device_of(sites);
    const double  cutoff = sites->system.outer.cutoff;
    ListArguments a;
    a.s       = sites_sorted(sites);
    a.box     = d->box.as<SitesBox>();
    a.found   = d->found.as<SitesFound>();
    a.reach   = static_cast<float>(reach);
    a.cutoff2 = static_cast<float>(cutoff * cutoff);
    FMM_CUDA(sites, cudaMemsetAsync(&a.found->lists, 0, sizeof(a.found->lists), stream));
    make_lists<<<sites_quotient(a.s.num_tiles, c_warps), 32 * c_warps, 0, stream>>>(a);
    FMM_CUDA(sites, cudaGetLastError());
    if (sites_have_exclusions(sites))
    {
        mask_lists<<<sites_quotient(a.s.num_tiles, c_warps), 32 * c_warps, 0, stream>>>(a.s, sites_exclusions(sites));
        FMM_CUDA(sites, cudaGetLastError());
    }
    return GMXFMM_OK;
}
