/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Particles into cells, and targets into tiles (search steps). */
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "cuda/particles/particles.h"

enum
{
    c_threads = 128,
    /* P2P is launched with warps for a 16th more tiles than were counted; with more tiles, some warps have several */
    c_moreTiles = 16
};

/* So far beyond the cells of an open direction, in cells, a particle has left them: the error of its expansions is that
 * of one in the corner of a cell which has moved as far, 2 times as large at order 9 by the power of its distance.
 * Beyond the other no order serves. */
static constexpr double c_beyond = 0.0625, c_lost = 1;

/* The cell nearest to each particle, and the particle's position in it, in cells. left: set if one has left them. */
template <class X>
__global__ void find_cells(const __grid_constant__ Geometry g,
                           const BoxValues*                 box,
                           const X*                         x,
                           int                              n,
                           int*                             keys,
                           int*                             values,
                           float*                           reference,
                           int*                             left,
                           AssignResults*                   r)
{
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n)
    {
        return;
    }
    const X*     place   = x + 3 * static_cast<size_t>(i);
    const double from[3] = {static_cast<double>(place[0]), static_cast<double>(place[1]),
                            static_cast<double>(place[2])};
    const bool   skewed  = has_images(g) && !g.rectangular;
    double       t[3], rest[3] = {0, 0, 0};
    int          at[3] = {0, 0, 0};
    fmm_in_cells(box->origin, box->to_cells, from, t);
    if (!fmm_nearest_point(box->cell, skewed ? box->cell_voronoi.vectors : NULL, box->cell_voronoi.coordinates, t, at,
                           rest))
    {
        atomicMin(&r->bad, i);
        at[0] = at[1] = at[2] = 0;
    }
    const int nearest[3] = {at[0], at[1], at[2]};
    fmm_into_grid(g.periodic, g.inner, at);
    for (int d = 0; d < 3; d++)
    {
        rest[d] += g.periodic[d] ? 0 : nearest[d] - at[d];
        if (!g.periodic[d] && fabs(rest[d]) > 0.5 + c_beyond)
        {
            *left = 1;
        }
        if (!g.periodic[d] && fabs(rest[d]) > 0.5 + c_lost)
        {
            atomicMin(&r->bad, i);
        }
    }
    keys[i]   = cell_at(g, at[0], at[1], at[2]);
    values[i] = i;
    for (int d = 0; d < 3; d++)
    {
        reference[3 * static_cast<size_t>(i) + d] = static_cast<float>(rest[d]);
    }
}

/* The position of each particle of a sorted set in its leaf of several levels, in cells of the last one. */
template <class X>
__global__ void find_in_leaves(const BoxValues*      box,
                               const X*              x,
                               int                   n,
                               const int*            sorted,
                               const int*            cell_of,
                               const fmm_leaf_place* leaves,
                               float*                reference)
{
    const int s = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (s >= n)
    {
        return;
    }
    const size_t         i       = static_cast<size_t>(sorted[s]);
    const fmm_leaf_place leaf    = leaves[cell_of[s]];
    const double         from[3] = {static_cast<double>(x[3 * i]), static_cast<double>(x[3 * i + 1]),
                                    static_cast<double>(x[3 * i + 2])};
    for (int d = 0; d < 3; d++)
    {
        reference[3 * i + static_cast<size_t>(d)] =
            static_cast<float>((from[d] - leaf.centre[d]) * box->to_cells[4 * d]);
    }
}

/* Counts and findings of an assignment, before it begins. */
__global__ void begin_assign(AssignResults* r)
{
    r->bad       = c_none;
    r->num_tiles = r->num_far = 0;
}

/* Writes the anchors: where each particle was in its cell, from which permute finds its nearest image, and its charge,
 * if it has one. */
__global__ void set_anchors(Geometry      g,
                            int           n,
                            const float*  reference,
                            const double* charge,
                            const int*    sorted,
                            const int*    cell_of,
                            int*          position,
                            Anchor*       anchor)
{
    const int s = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (s >= n)
    {
        return;
    }
    const int i = sorted[s];
    int       c[3];
    Anchor    a;
    cell_place(g, cell_of[s], c);
    for (int d = 0; d < 3; d++)
    {
        a.reference[d] = reference[3 * static_cast<size_t>(i) + d];
        a.place[d]     = static_cast<short>(c[d]);
    }
    a.charge    = charge != NULL ? charge[i] : 0;
    anchor[s]   = a;
    position[i] = s;
}

/* First particle of each cell, by bisection in the sorted cells, and the tiles that the cell is to have. The last
 * thread of a block finds only where the cell before its own ends. */
__global__ void __launch_bounds__(c_threads)
    find_starts(const int* cell_of, int n, int num_cells, int* cell_start, int* count)
{
    __shared__ int start[c_threads];
    const int      thread = static_cast<int>(threadIdx.x);
    const int      cell   = static_cast<int>(blockIdx.x) * (c_threads - 1) + thread;
    int            low = 0, high = n;
    while (low < high)
    {
        const int middle = (low + high) / 2;
        if (cell_of[middle] < cell)
        {
            low = middle + 1;
        }
        else
        {
            high = middle;
        }
    }
    start[thread] = low;
    __syncthreads();
    if (thread < c_threads - 1 && cell <= num_cells)
    {
        cell_start[cell] = low;
        count[cell]      = cell < num_cells ? (start[thread + 1] - low + c_tileSize - 1) / c_tileSize : 0;
    }
}

/* Divides the particles of each cell into tiles of nearly equal size. */
__global__ void make_tiles(Geometry g, const int* cell_start, const int* tile_start, Tile* tiles, AssignResults* r)
{
    const int cell = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (cell >= g.num_cells)
    {
        return;
    }
    const int begin = cell_start[cell], count = cell_start[cell + 1] - begin;
    const int first = tile_start[cell], num = tile_start[cell + 1] - first;
    int       c[3];
    cell_place(g, cell, c);
    for (int t = 0; t < num; t++)
    {
        const int a      = static_cast<int>(static_cast<int64_t>(count) * t / num);
        const int b      = static_cast<int>(static_cast<int64_t>(count) * (t + 1) / num);
        tiles[first + t] = make_int4(begin + a, b - a, c[0] | c[1] << 16, c[2]);
    }
    if (cell == g.num_cells - 1)
    {
        r->num_tiles = tile_start[g.num_cells];
    }
}

template <class T>
static gmxfmm_status scan(gmxfmm_plan* plan, const T* in, T* out, int num, cudaStream_t stream)
{
    fmm_device* d     = plan->device;
    size_t      bytes = d->particles.sort_scratch.capacity;
    FMM_CUDA(plan, cub::DeviceScan::ExclusiveSum(d->particles.sort_scratch.memory, bytes, in, out, num, stream));
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_scan(gmxfmm_plan* plan, const int* in, int* out, int num, cudaStream_t stream)
{
    return scan(plan, in, out, num, stream);
}

gmxfmm_status fmm_cuda_scan(gmxfmm_plan* plan, const uint64_t* in, uint64_t* out, int num, cudaStream_t stream)
{
    return scan(plan, in, out, num, stream);
}

/* If scratch is NULL, only sets *bytes to the size of scratch that is needed. */
static cudaError_t sort_by_cell(
    const fmm_device* d, const ParticleSet* set, int num_cells, void* scratch, size_t* bytes, cudaStream_t stream)
{
    int bits = 1;
    while (bits < 31 && (num_cells - 1) >> bits > 0)
    {
        bits++;
    }
    return cub::DeviceRadixSort::SortPairs(scratch, *bytes, d->particles.keys.as<int>(), set->cell_of.as<int>(),
                                           d->particles.values.as<int>(), set->sorted.as<int>(), set->n, 0, bits,
                                           stream);
}

/* The most tiles that a set can have: each cell with particles may have one tile that is not full. */
static int most_tiles_in(const ParticleSet* set, int num_cells)
{
    return (set->n < num_cells ? set->n : num_cells) + set->n / c_tileSize + 1;
}

int fmm_cuda_most_tiles(const gmxfmm_plan* plan, const ParticleSet* set)
{
    return most_tiles_in(set, make_geometry(plan).num_cells);
}

static gmxfmm_status reserve_tiles(gmxfmm_plan* plan, ParticleSet* set, int num_cells)
{
    const size_t words = static_cast<size_t>(num_cells) + 1, most = static_cast<size_t>(most_tiles_in(set, num_cells));
    FMM_TRY(fmm_device_reserve(plan, &set->cell_start, words * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &set->tile_start, words * sizeof(int)));
    return fmm_device_reserve(plan, &set->tiles, most * sizeof(Tile));
}

/* Scratch memory for the largest sort and the largest prefix sum, over cells or particles; it is large enough for the
 * octree's levels, too. */
static gmxfmm_status reserve_scratch(gmxfmm_plan* plan, int num_cells)
{
    fmm_device*  d = plan->device;
    const int    n = d->particles.sources.n > d->particles.targets.n ? d->particles.sources.n : d->particles.targets.n;
    const int    most  = (num_cells > n ? num_cells : n) + 1;
    size_t       bytes = 0, sum = 0;
    const size_t words = static_cast<size_t>(num_cells) + 1, counts = 2 * (static_cast<size_t>(n) + 1);
    FMM_TRY(fmm_device_reserve(plan, &d->particles.counts, (words > counts ? words : counts) * sizeof(int)));
    FMM_CUDA(plan, cub::DeviceScan::ExclusiveSum(NULL, bytes, d->particles.counts.as<int>(),
                                                 d->particles.counts.as<int>(), most, d->schedule.own));
    FMM_CUDA(plan, cub::DeviceScan::ExclusiveSum(NULL, sum, d->particles.counts.as<uint64_t>(),
                                                 d->particles.counts.as<uint64_t>(), n + 1, d->schedule.own));
    sum = bytes > sum ? bytes : sum;
    for (const ParticleSet* set : {&d->particles.sources, &d->particles.targets})
    {
        if (set->n > 0)
        {
            FMM_CUDA(plan, sort_by_cell(d, set, num_cells, NULL, &bytes, d->schedule.own));
            sum = bytes > sum ? bytes : sum;
        }
    }
    return fmm_device_reserve(plan, &d->particles.sort_scratch, sum);
}

gmxfmm_status fmm_cuda_reserve_sort(gmxfmm_plan* plan)
{
    fmm_device* d         = plan->device;
    const int   num_cells = make_geometry(plan).num_cells;
    FMM_TRY(reserve_tiles(plan, &d->particles.sources, num_cells));
    if (d->particles.targets.n > 0)
    {
        FMM_TRY(reserve_tiles(plan, &d->particles.targets, num_cells));
    }
    return reserve_scratch(plan, num_cells);
}

gmxfmm_status fmm_cuda_reserve_counts(gmxfmm_plan* plan, size_t num)
{
    return fmm_device_reserve(plan, &plan->device->particles.counts, num * sizeof(int));
}

/* Divides the sorted particles of a set into tiles. */
static gmxfmm_status set_tiles(gmxfmm_plan* plan, const Geometry& g, const ParticleSet* set, cudaStream_t stream)
{
    fmm_device* d      = plan->device;
    const int   starts = blocks_for(static_cast<int64_t>(g.num_cells) + 1, c_threads - 1);
    find_starts<<<starts, c_threads, 0, stream>>>(set->cell_of.as<int>(), set->n, g.num_cells,
                                                  set->cell_start.as<int>(), d->particles.counts.as<int>());
    FMM_CUDA(plan, cudaGetLastError());
    FMM_TRY(fmm_cuda_scan(plan, d->particles.counts.as<int>(), set->tile_start.as<int>(), g.num_cells + 1, stream));
    make_tiles<<<blocks_for(g.num_cells, c_threads), c_threads, 0, stream>>>(
        g, set->cell_start.as<int>(), set->tile_start.as<int>(), set->tiles.as<Tile>(),
        d->particles.assign_results.as<AssignResults>());
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_begin_assign(gmxfmm_plan* plan, cudaStream_t stream)
{
    begin_assign<<<1, 1, 0, stream>>>(plan->device->particles.assign_results.as<AssignResults>());
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

template <class X>
static gmxfmm_status find(gmxfmm_plan* plan, const ParticleSet* set, const X* x, cudaStream_t stream)
{
    fmm_device*    d     = plan->device;
    AssignResults* found = d->particles.assign_results.as<AssignResults>();
    FMM_TRY(fmm_cuda_begin_assign(plan, stream));
    if (set->n > 0)
    {
        find_cells<<<blocks_for(set->n, c_threads), c_threads, 0, stream>>>(
            make_geometry(plan), d->domain.box.as<BoxValues>(), x, set->n, d->particles.keys.as<int>(),
            d->particles.values.as<int>(), d->particles.references.as<float>(), d->particles.beyond, found);
    }
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

/* Finds the cells of a set, whose positions are on the device. */
static gmxfmm_status find_set(gmxfmm_plan* plan, const ParticleSet* set, const void* x, cudaStream_t stream)
{
    return plan->options.array_type == GMXFMM_DOUBLE ? find(plan, set, static_cast<const double*>(x), stream)
                                                     : find(plan, set, static_cast<const float*>(x), stream);
}

/* Anchors and tiles of a sorted set. charge: caller's order, or NULL for targets, which have none. */
static gmxfmm_status finish_set(gmxfmm_plan* plan, const ParticleSet* set, const double* charge, cudaStream_t stream)
{
    fmm_device*    d = plan->device;
    const Geometry g = make_geometry(plan);
    if (set->n > 0)
    {
        set_anchors<<<blocks_for(set->n, c_threads), c_threads, 0, stream>>>(
            g, set->n, d->particles.references.as<float>(), charge, set->sorted.as<int>(), set->cell_of.as<int>(),
            set->position.as<int>(), set->anchor.as<Anchor>());
        FMM_CUDA(plan, cudaGetLastError());
    }
    return set_tiles(plan, g, set, stream);
}

/* Sorts a set by the cells that were found. */
static gmxfmm_status sort_set(gmxfmm_plan* plan, const ParticleSet* set, const double* charge, cudaStream_t stream)
{
    const fmm_device* d     = plan->device;
    size_t            bytes = d->particles.sort_scratch.capacity;
    if (set->n > 0)
    {
        const int num_cells = make_geometry(plan).num_cells;
        FMM_CUDA(plan, sort_by_cell(d, set, num_cells, d->particles.sort_scratch.memory, &bytes, stream));
    }
    return finish_set(plan, set, charge, stream);
}

/* Where particles are in their leaves: there are no images to tell, but steps find those that have left them. */
template <class X>
static gmxfmm_status find_set_in_leaves(gmxfmm_plan* plan, const ParticleSet* set, const X* x)
{
    const fmm_device* d = plan->device;
    if (set->n > 0)
    {
        find_in_leaves<<<blocks_for(set->n, c_threads), c_threads, 0, d->schedule.own>>>(
            d->domain.box.as<BoxValues>(), x, set->n, set->sorted.as<int>(), set->cell_of.as<int>(),
            d->far.tree.leaves.place.as<fmm_leaf_place>(), d->particles.references.as<float>());
        FMM_CUDA(plan, cudaGetLastError());
    }
    return GMXFMM_OK;
}

/* Sorts a set, unless it is sorted already, and waits for the number of tiles. */
static gmxfmm_status assign_set(gmxfmm_plan* plan, ParticleSet* set, const void* x, const double* charge)
{
    fmm_device*   d = plan->device;
    AssignResults results;
    if (fmm_is_adaptive(plan))
    {
        FMM_TRY(fmm_cuda_begin_assign(plan, d->schedule.own));
        FMM_TRY(plan->options.array_type == GMXFMM_DOUBLE
                    ? find_set_in_leaves(plan, set, static_cast<const double*>(x))
                    : find_set_in_leaves(plan, set, static_cast<const float*>(x)));
        FMM_TRY(finish_set(plan, set, charge, d->schedule.own));
    }
    else
    {
        FMM_TRY(find_set(plan, set, x, d->schedule.own));
        FMM_TRY(sort_set(plan, set, charge, d->schedule.own));
    }
    FMM_TRY(fmm_cuda_assign_results(plan, &results, d->schedule.own));
    if (results.bad != c_none)
    {
        return fmm_fail(plan, GMXFMM_ERROR_POSITION, "position of %s %d: not finite, or too far away",
                        charge != NULL ? "particle" : "target", results.bad);
    }
    const int more      = enqueues_assign(plan) ? results.num_tiles / c_moreTiles + 1 : 0;
    const int most      = fmm_cuda_most_tiles(plan, set);
    set->launched_tiles = most - results.num_tiles < more ? most : results.num_tiles + more;
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_find_cells(gmxfmm_plan* plan, const void* x, cudaStream_t stream)
{
    return find_set(plan, &plan->device->particles.sources, x, stream);
}

gmxfmm_status fmm_cuda_sort_sources(gmxfmm_plan* plan, cudaStream_t stream)
{
    const fmm_device* d = plan->device;
    return sort_set(plan, &d->particles.sources, d->charges.value.as<double>(), stream);
}

gmxfmm_status fmm_cuda_sort_and_wait(gmxfmm_plan* plan, const void* x)
{
    fmm_device* d = plan->device;
    FMM_TRY(assign_set(plan, &d->particles.sources, x, d->charges.value.as<double>()));
    return d->particles.targets.n > 0 ? assign_set(plan, &d->particles.targets, d->particles.target_x.memory, NULL)
                                      : GMXFMM_OK;
}
