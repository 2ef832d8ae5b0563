/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Particles into cells (search steps), targets into tiles, and the pairs left out: specials when near, listed when far.
 */
#include <climits>
#include <cstring>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "geometry.h"

enum
{
    c_threads = 128
};

/* Lattice point nearest to a particle: at[3], and what is left, in cells. False if x is not finite or too far away. */
static __device__ bool locate(const Geometry& g, const VoronoiVectors& v, const double* t, int* at, double* rest)
{
    for (int d = 0; d < 3; d++)
    {
        if (!(fabs(t[d]) < 1e9))
        {
            return false;
        }
        at[d]   = static_cast<int>(floor(t[d] + 0.5));
        rest[d] = t[d] - at[d];
    }
    if (g.periodic && !g.rectangular)
    {
        double y[3];
        cartesian(g, rest, y);
        reduce_vector(v, y, at);
        for (int d = 0; d < 3; d++)
        {
            rest[d] = t[d] - at[d];
        }
    }
    return true;
}

static __device__ int modulo(int k, int n)
{
    const int m = k % n;
    return m < 0 ? m + n : m;
}

template <class X>
__global__ void find_cells(Geometry g, VoronoiVectors v, const X* x, int n, int* keys, int* values, AssignResults* r)
{
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n)
    {
        return;
    }
    double t[3], rest[3];
    int    at[3] = {0, 0, 0};
    in_cells(g, x, i, t);
    if (!locate(g, v, t, at, rest))
    {
        atomicMin(&r->bad, i);
        at[0] = at[1] = at[2] = 0;
    }
    for (int d = 0; d < 3; d++)
    {
        at[d] = g.periodic ? modulo(at[d], g.n[d]) : min(max(at[d], 0), g.inner[d] - 1);
    }
    keys[i]   = cell_at(g, at[0], at[1], at[2]);
    values[i] = i;
}

/* Where each particle stands in its cell: permute recognises the image of a particle by it. */
template <class X>
__global__ void set_anchors(Geometry       g,
                            VoronoiVectors v,
                            const X*       x,
                            int            n,
                            const int*     sorted,
                            const int*     cell_of,
                            int*           position,
                            Anchor*        anchor)
{
    const int s = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (s >= n)
    {
        return;
    }
    const int i = sorted[s];
    double    t[3], rest[3] = {0, 0, 0};
    int       at[3], c[3];
    in_cells(g, x, i, t);
    locate(g, v, t, at, rest);
    position[i] = s;
    cell_place(g, cell_of[s], c);
    for (int d = 0; d < 3; d++)
    {
        anchor[s].reference[d] = static_cast<float>(rest[d]);
        anchor[s].place[d]     = static_cast<short>(c[d]);
    }
}

__global__ void set_charges(const double* charge, const int* sorted, int n, Anchor* anchor)
{
    const int s = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (s < n)
    {
        anchor[s].charge = charge != NULL ? charge[sorted[s]] : 0;
    }
}

/* First particle of each cell, by bisection in the sorted cells. */
__global__ void find_starts(const int* cell_of, int n, int num_cells, int* cell_start)
{
    const int cell = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (cell > num_cells)
    {
        return;
    }
    int low = 0, high = n;
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
    cell_start[cell] = low;
}

__global__ void count_tiles(const int* cell_start, int num_cells, int* count)
{
    const int cell = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (cell <= num_cells)
    {
        count[cell] = cell < num_cells ? (cell_start[cell + 1] - cell_start[cell] + c_tileSize - 1) / c_tileSize : 0;
    }
}

/* Particles of a cell in tiles of nearly equal size. */
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

/* What left_out needs of the assignment. */
struct Exclusions
{
    const int*     start; /* NULL: none */
    const int*     list;
    const int *    sorted, *position, *cell_of, *cell_start, *tile_start;
    const Tile*    tiles;
    const Anchor*  anchor;
    const int4*    near_vectors;
    const short*   near_lookup;
    int            near_reach, n;
    VoronoiVectors box;
};

/* Cell of particle si minus cell of the nearest image of particle sj, in cells. */
static __device__ void nearest_offset(const Geometry& g, const Exclusions& e, int si, int sj, int* offset)
{
    const short *ci = e.anchor[si].place, *cj = e.anchor[sj].place;
    int          k[3] = {0, 0, 0};
    double       t[3], y[3];
    for (int d = 0; d < 3; d++)
    {
        offset[d] = ci[d] - cj[d];
        t[d] =
            offset[d] + static_cast<double>(e.anchor[si].reference[d]) - static_cast<double>(e.anchor[sj].reference[d]);
        if (g.periodic)
        {
            k[d] = static_cast<int>(floor(t[d] / g.n[d] + 0.5));
            t[d] -= k[d] * g.n[d];
        }
    }
    if (!g.periodic)
    {
        return;
    }
    if (!g.rectangular)
    {
        cartesian(g, t, y);
        reduce_vector(e.box, y, k);
    }
    for (int d = 0; d < 3; d++)
    {
        offset[d] -= k[d] * g.n[d];
    }
}

/* Index of the near vector from a target's cell to its source's, or -1. */
static __device__ int near_index(const Exclusions& e, const int* offset)
{
    const int r = e.near_reach, w = 2 * r + 1;
    for (int d = 0; d < 3; d++)
    {
        if (abs(offset[d]) > r)
        {
            return -1;
        }
    }
    return e.near_lookup[((r - offset[0]) * w + r - offset[1]) * w + r - offset[2]];
}

/* Number of particles in near cells before near vector o: the place of its first in the list of P2P. */
static __device__ int near_prefix(const Geometry& g, const Exclusions& e, int cell, int o)
{
    int c[3], num = 0;
    cell_place(g, cell, c);
    for (int i = 0; i < o; i++)
    {
        const int4 k = e.near_vectors[i];
        const int  at =
            cell_at(g, wrapped(c[0] + k.x, g.n[0]), wrapped(c[1] + k.y, g.n[1]), wrapped(c[2] + k.z, g.n[2]));
        num += e.cell_start[at + 1] - e.cell_start[at];
    }
    return num;
}

static __device__ Tile tile_of(const Exclusions& e, int s)
{
    const int cell = e.cell_of[s];
    int       tile = e.tile_start[cell];
    while (e.tiles[tile].x + e.tiles[tile].y <= s)
    {
        tile++;
    }
    return e.tiles[tile];
}

/* Targets of a tile that leave out source sj at near vector o, by the list of sj, which is symmetric. */
static __device__ unsigned tile_mask(const Geometry& g, const Exclusions& e, const Tile& tile, int sj, int o)
{
    unsigned  mask = 0;
    const int j    = e.sorted[sj];
    for (int f = e.start[j]; f < e.start[j + 1]; f++)
    {
        const int s = e.position[e.list[f]];
        if (s != sj && s >= tile.x && s < tile.x + tile.y)
        {
            int offset[3];
            nearest_offset(g, e, s, sj, offset);
            if (near_index(e, offset) == o)
            {
                mask |= 1u << (s - tile.x);
            }
        }
    }
    if (o == 0 && sj >= tile.x && sj < tile.x + tile.y)
    {
        mask |= 1u << (sj - tile.x); /* itself */
    }
    return mask;
}

/*
 * Pairs left out of particle s. A source that several targets of a tile leave out is one special, made for the first of
 * them. With specials and far given they are stored, otherwise only counted.
 */
static __device__ void
left_out(const Geometry& g, const Exclusions& e, int s, int* num_special, int* num_far, Special* specials, FarPair* far)
{
    const Tile tile = tile_of(e, s);
    const int  cell = e.cell_of[s], bit = s - tile.x, i = e.sorted[s];
    const int  begin = e.start != NULL ? e.start[i] : 0, end = e.start != NULL ? e.start[i + 1] : 0;
    for (int f = begin - 1; f < end; f++) /* begin - 1: the particle itself, listed or not */
    {
        const int sj        = f < begin ? s : e.position[e.list[f]];
        int       offset[3] = {0, 0, 0};
        if (f >= begin)
        {
            if (sj == s)
            {
                continue;
            }
            nearest_offset(g, e, s, sj, offset);
        }
        const int o = near_index(e, offset);
        if (o >= 0)
        {
            const unsigned mask = e.start != NULL ? tile_mask(g, e, tile, sj, o) : 1u << bit;
            if (__ffs(static_cast<int>(mask)) - 1 == bit)
            {
                if (specials != NULL)
                {
                    specials[*num_special].place = near_prefix(g, e, cell, o) + sj - e.cell_start[e.cell_of[sj]];
                    specials[*num_special].mask  = mask;
                }
                (*num_special)++;
            }
            continue;
        }
        if (far != NULL)
        {
            far[*num_far].source = sj;
            for (int d = 0; d < 3; d++)
            {
                far[*num_far].offset[d] = offset[d];
            }
        }
        (*num_far)++;
    }
}

__global__ void count_left_out(Geometry g, Exclusions e, int* special_count, int* far_count)
{
    const int s = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (s > e.n)
    {
        return;
    }
    int specials = 0, far = 0;
    if (s < e.n)
    {
        left_out(g, e, s, &specials, &far, NULL, NULL);
    }
    special_count[s] = specials;
    far_count[s]     = far;
}

__global__ void
fill_left_out(Geometry g, Exclusions e, const int* special_start, const int* far_start, Special* specials, FarPair* far)
{
    const int s = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (s < e.n)
    {
        int a = special_start[s], b = far_start[s];
        left_out(g, e, s, &a, &b, specials, far);
    }
}

__global__ void gather_counts(const int* special_start, const int* far_start, int n, AssignResults* r)
{
    r->num_specials = special_start[n];
    r->num_far      = far_start[n];
}

gmxfmm_status fmm_cuda_scan(gmxfmm_plan* plan, const int* in, int* out, int num, cudaStream_t stream)
{
    fmm_device* d     = plan->device;
    size_t      bytes = 0;
    FMM_CUDA(plan, cub::DeviceScan::ExclusiveSum(NULL, bytes, in, out, num, stream));
    FMM_TRY(fmm_device_reserve(plan, &d->sort_scratch, bytes));
    FMM_CUDA(plan, cub::DeviceScan::ExclusiveSum(d->sort_scratch.memory, bytes, in, out, num, stream));
    return GMXFMM_OK;
}

static gmxfmm_status sort_by_cell(gmxfmm_plan* plan, const ParticleSet* set, int num_cells, cudaStream_t stream)
{
    fmm_device* d     = plan->device;
    size_t      bytes = 0;
    int         bits  = 1;
    while (bits < 31 && (num_cells - 1) >> bits > 0)
    {
        bits++;
    }
    int *keys = d->keys.as<int>(), *cell_of = set->cell_of.as<int>();
    int *values = d->values.as<int>(), *sorted = set->sorted.as<int>();
    FMM_CUDA(plan,
             cub::DeviceRadixSort::SortPairs(NULL, bytes, keys, cell_of, values, sorted, set->n, 0, bits, stream));
    FMM_TRY(fmm_device_reserve(plan, &d->sort_scratch, bytes));
    FMM_CUDA(plan, cub::DeviceRadixSort::SortPairs(d->sort_scratch.memory, bytes, keys, cell_of, values, sorted, set->n,
                                                   0, bits, stream));
    return GMXFMM_OK;
}

static gmxfmm_status upload_near_set(gmxfmm_plan* plan)
{
    fmm_device*      d = plan->device;
    const fmm_cells* c = &plan->cells;
    const size_t     w = static_cast<size_t>(2 * c->near_reach + 1),
                 bytes = static_cast<size_t>(c->num_near) * sizeof(int4);
    FMM_TRY(fmm_device_reserve(plan, &d->near_vectors, bytes));
    FMM_TRY(fmm_device_reserve(plan, &d->near_lookup, w * w * w * sizeof(short)));
    int4* vectors = static_cast<int4*>(malloc(bytes));
    if (vectors == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory");
    }
    for (int o = 0; o < c->num_near; o++)
    {
        vectors[o] = make_int4(c->near[o][0], c->near[o][1], c->near[o][2], 0);
    }
    const cudaError_t error = cudaMemcpy(d->near_vectors.memory, vectors, bytes, cudaMemcpyHostToDevice);
    free(vectors);
    FMM_CUDA(plan, error);
    FMM_CUDA(plan,
             cudaMemcpy(d->near_lookup.memory, c->near_lookup, w * w * w * sizeof(short), cudaMemcpyHostToDevice));
    d->near_reach = c->near_reach;
    return GMXFMM_OK;
}

/* The device's counters of this assign, waited for. */
static gmxfmm_status fetch_results(gmxfmm_plan* plan, AssignResults* results, cudaStream_t stream)
{
    fmm_device* d = plan->device;
    void*       h = static_cast<StepResults*>(d->host_results) + 1;
    FMM_CUDA(plan, cudaMemcpyAsync(h, d->assign_results.memory, sizeof(AssignResults), cudaMemcpyDeviceToHost, stream));
    FMM_CUDA(plan, cudaStreamSynchronize(stream));
    std::memcpy(results, h, sizeof(AssignResults));
    return GMXFMM_OK;
}

/* Particles of a set into tiles. */
static gmxfmm_status set_tiles(gmxfmm_plan* plan, const Geometry& g, ParticleSet* set, cudaStream_t stream)
{
    fmm_device*  d     = plan->device;
    const int    cells = blocks_for(g.num_cells + 1, c_threads);
    const size_t words = static_cast<size_t>(g.num_cells) + 1;
    const size_t most =
        static_cast<size_t>(set->n < g.num_cells ? set->n : g.num_cells) + static_cast<size_t>(set->n) / c_tileSize + 1;
    FMM_TRY(fmm_device_reserve(plan, &set->cell_start, words * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &set->tile_start, words * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &d->counts, words * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &set->tiles, most * sizeof(Tile)));
    find_starts<<<cells, c_threads, 0, stream>>>(set->cell_of.as<int>(), set->n, g.num_cells,
                                                 set->cell_start.as<int>());
    count_tiles<<<cells, c_threads, 0, stream>>>(set->cell_start.as<int>(), g.num_cells, d->counts.as<int>());
    FMM_CUDA(plan, cudaGetLastError());
    FMM_TRY(fmm_cuda_scan(plan, d->counts.as<int>(), set->tile_start.as<int>(), g.num_cells + 1, stream));
    make_tiles<<<cells, c_threads, 0, stream>>>(g, set->cell_start.as<int>(), set->tile_start.as<int>(),
                                                set->tiles.as<Tile>(), d->assign_results.as<AssignResults>());
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

/* charge: caller's order, or NULL for receivers, which have none. */
template <class X>
static gmxfmm_status bin(gmxfmm_plan* plan, ParticleSet* set, const X* x, const double* charge, cudaStream_t stream)
{
    fmm_device*          d      = plan->device;
    const Geometry       g      = make_geometry(plan);
    const VoronoiVectors cell   = make_voronoi(plan->cells.voronoi, plan->cells.voronoi_int);
    const int            blocks = blocks_for(set->n, c_threads);
    if (set->n > 0)
    {
        find_cells<<<blocks, c_threads, 0, stream>>>(g, cell, x, set->n, d->keys.as<int>(), d->values.as<int>(),
                                                     d->assign_results.as<AssignResults>());
        FMM_CUDA(plan, cudaGetLastError());
        FMM_TRY(sort_by_cell(plan, set, g.num_cells, stream));
        set_anchors<<<blocks, c_threads, 0, stream>>>(g, cell, x, set->n, set->sorted.as<int>(), set->cell_of.as<int>(),
                                                      set->position.as<int>(), set->anchor.as<Anchor>());
        set_charges<<<blocks, c_threads, 0, stream>>>(charge, set->sorted.as<int>(), set->n, set->anchor.as<Anchor>());
        FMM_CUDA(plan, cudaGetLastError());
    }
    return set_tiles(plan, g, set, stream);
}

static Exclusions make_exclusions(const gmxfmm_plan* plan, int n)
{
    const fmm_device* d = plan->device;
    Exclusions        e;
    e.start        = d->has_exclusions ? d->excl_start.as<int>() : NULL;
    e.list         = d->excl_list.as<int>();
    e.sorted       = d->charges.sorted.as<int>();
    e.position     = d->charges.position.as<int>();
    e.cell_of      = d->charges.cell_of.as<int>();
    e.cell_start   = d->charges.cell_start.as<int>();
    e.tile_start   = d->charges.tile_start.as<int>();
    e.tiles        = d->charges.tiles.as<Tile>();
    e.anchor       = d->charges.anchor.as<Anchor>();
    e.near_vectors = d->near_vectors.as<int4>();
    e.near_lookup  = d->near_lookup.as<short>();
    e.near_reach   = d->near_reach;
    e.n            = n;
    e.box          = make_voronoi(plan->cells.box_voronoi, plan->cells.box_voronoi_int);
    return e;
}

static gmxfmm_status set_left_out(gmxfmm_plan* plan, int n, AssignResults* results, cudaStream_t stream)
{
    fmm_device*    d      = plan->device;
    const Geometry g      = make_geometry(plan);
    const int      blocks = blocks_for(n + 1, c_threads);
    const size_t   words  = static_cast<size_t>(n) + 1;
    FMM_TRY(fmm_device_reserve(plan, &d->counts, 2 * words * sizeof(int)));
    const Exclusions e    = make_exclusions(plan, n);
    int*             near = d->counts.as<int>();
    int*             far  = near + words;
    count_left_out<<<blocks, c_threads, 0, stream>>>(g, e, near, far);
    FMM_CUDA(plan, cudaGetLastError());
    FMM_TRY(fmm_cuda_scan(plan, near, d->special_start.as<int>(), n + 1, stream));
    FMM_TRY(fmm_cuda_scan(plan, far, d->far_start.as<int>(), n + 1, stream));
    gather_counts<<<1, 1, 0, stream>>>(d->special_start.as<int>(), d->far_start.as<int>(), n,
                                       d->assign_results.as<AssignResults>());
    FMM_TRY(fetch_results(plan, results, stream));
    const size_t specials = static_cast<size_t>(results->num_specials) + 1,
                 pairs    = static_cast<size_t>(results->num_far) + 1;
    FMM_TRY(fmm_device_reserve(plan, &d->specials, specials * sizeof(Special)));
    FMM_TRY(fmm_device_reserve(plan, &d->far_pairs, pairs * sizeof(FarPair)));
    fill_left_out<<<blocks, c_threads, 0, stream>>>(g, e, d->special_start.as<int>(), d->far_start.as<int>(),
                                                    d->specials.as<Special>(), d->far_pairs.as<FarPair>());
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_sort_charges(gmxfmm_plan* plan)
{
    fmm_device* d = plan->device;
    const int   n = static_cast<int>(plan->p.n);
    if (n > 0)
    {
        set_charges<<<blocks_for(n, c_threads), c_threads, 0, d->own>>>(
            d->charge.as<double>(), d->charges.sorted.as<int>(), n, d->charges.anchor.as<Anchor>());
        FMM_CUDA(plan, cudaGetLastError());
        FMM_CUDA(plan, cudaStreamSynchronize(d->own));
    }
    return GMXFMM_OK;
}

/* x on the device: x itself, or a copy. */
static gmxfmm_status on_device(gmxfmm_plan* plan, const void** x, cudaStream_t stream)
{
    fmm_device*           d = plan->device;
    cudaPointerAttributes attributes;
    if (plan->p.n == 0 || (cudaPointerGetAttributes(&attributes, *x) == cudaSuccess &&
                           (attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged)))
    {
        return GMXFMM_OK;
    }
    cudaGetLastError();
    const size_t word = plan->options.array_type == GMXFMM_DOUBLE ? sizeof(double) : sizeof(float);
    FMM_CUDA(plan, cudaMemcpyAsync(d->x_copy.memory, *x, 3 * static_cast<size_t>(plan->p.n) * word,
                                   cudaMemcpyHostToDevice, stream));
    *x = d->x_copy.memory;
    return GMXFMM_OK;
}

/* Sorts a set, whose positions are on the device, and waits. */
static gmxfmm_status assign_set(gmxfmm_plan* plan, ParticleSet* set, const void* x, const double* charge)
{
    fmm_device*         d    = plan->device;
    const AssignResults none = {INT_MAX, 0, 0, 0};
    AssignResults       results;
    FMM_CUDA(plan, cudaMemcpyAsync(d->assign_results.memory, &none, sizeof(none), cudaMemcpyHostToDevice, d->own));
    FMM_TRY(plan->options.array_type == GMXFMM_DOUBLE ? bin(plan, set, static_cast<const double*>(x), charge, d->own)
                                                      : bin(plan, set, static_cast<const float*>(x), charge, d->own));
    FMM_TRY(fetch_results(plan, &results, d->own));
    if (results.bad != INT_MAX)
    {
        return fmm_fail(plan, GMXFMM_ERROR_POSITION, "position of %s %d: not finite, or too far away",
                        charge != NULL ? "particle" : "receiver", results.bad);
    }
    set->num_tiles = results.num_tiles;
    return GMXFMM_OK;
}

/* Pairs left out, itself among them; receivers leave nothing out. */
static gmxfmm_status assign_left_out(gmxfmm_plan* plan)
{
    fmm_device*   d = plan->device;
    AssignResults results;
    d->num_far = 0;
    if (d->receivers.n > 0)
    {
        const size_t bytes = (static_cast<size_t>(d->receivers.n) + 1) * sizeof(int);
        FMM_CUDA(plan, cudaMemsetAsync(d->special_start.memory, 0, bytes, d->own));
        return GMXFMM_OK;
    }
    FMM_TRY(set_left_out(plan, d->charges.n, &results, d->own));
    d->num_far = results.num_far;
    return GMXFMM_OK;
}

gmxfmm_status fmm_device_assign(gmxfmm_plan* plan, const void* x)
{
    fmm_device* d = plan->device;
    DeviceScope scope(d->id);
    plan->assigned = 0;
    if (make_geometry(plan).num_cells <= 0 || (plan->tree != NULL && plan->cells.num_cells == 0))
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED, "%d x %d x %d cells are too many for a GPU: use less depth",
                        plan->inner[0], plan->inner[1], plan->inner[2]);
    }
    FMM_CUDA(plan, cudaDeviceSynchronize()); /* steps that are under way use what is replaced here */
    FMM_TRY(upload_near_set(plan));
    FMM_TRY(on_device(plan, &x, d->own));
    FMM_TRY(assign_set(plan, &d->charges, x, d->charge.as<double>()));
    if (d->receivers.n > 0)
    {
        FMM_TRY(assign_set(plan, &d->receivers, d->receiver_x.memory, NULL));
    }
    FMM_TRY(assign_left_out(plan));
    if (plan->tree != NULL)
    {
        FMM_TRY(fmm_cuda_tree_assign(plan, d->own));
    }
    const size_t tiles = static_cast<size_t>(targets_of(d)->num_tiles) + 1;
    FMM_TRY(fmm_device_reserve(plan, &d->near_virial, tiles * 6 * real_size(plan)));
    FMM_CUDA(plan, cudaStreamSynchronize(d->own));
    plan->assigned = 1;
    return GMXFMM_OK;
}
