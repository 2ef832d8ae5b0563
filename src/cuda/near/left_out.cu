/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pairs left out (search steps): specials of P2P when near, listed when far. */
#include "cuda/geometry.h"

enum
{
    c_threads = 128,
    c_lanes   = 4 /* of a warp, for the pairs left out of a particle */
};

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
    double       t[3];
    for (int d = 0; d < 3; d++)
    {
        offset[d] = ci[d] - cj[d];
        t[d] =
            offset[d] + static_cast<double>(e.anchor[si].reference[d]) - static_cast<double>(e.anchor[sj].reference[d]);
    }
    if (g.periodic)
    {
        fmm_nearest_image(g.n, g.cell, g.rectangular ? NULL : e.box.vectors, e.box.coordinates, t, offset);
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

/* Number of particles in near cells before near vector o: the place of its first in the list of P2P. The lanes of a
 * group add up some of them each. */
static __device__ int near_prefix(const Geometry& g, const Exclusions& e, int cell, int o, int lane, unsigned group)
{
    int c[3], num = 0;
    cell_place(g, cell, c);
    for (int i = lane; i < o; i += c_lanes)
    {
        const int4 k = e.near_vectors[i];
        const int  at =
            cell_at(g, wrapped(c[0] + k.x, g.n[0]), wrapped(c[1] + k.y, g.n[1]), wrapped(c[2] + k.z, g.n[2]));
        num += e.cell_start[at + 1] - e.cell_start[at];
    }
    for (int step = c_lanes / 2; step > 0; step /= 2)
    {
        num += __shfl_xor_sync(group, num, step);
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

/* One pair left out, as particle s has it: what it is, and where. */
struct LeftOut
{
    bool     special, far;
    int      source, offset[3], near; /* near: index of the near vector, or -1 */
    unsigned mask;
};

/* Entry f of the list of particle s; begin - 1: the particle itself, listed or not. A source that several targets of a
 * tile leave out is one special, made for the first of them. */
static __device__ LeftOut left_out(const Geometry& g, const Exclusions& e, const Tile& tile, int s, int f, int begin)
{
    const int bit = s - tile.x;
    LeftOut   out = {false, false, f < begin ? s : e.position[e.list[f]], {0, 0, 0}, -1, 0};
    if (f >= begin && out.source == s)
    {
        return out;
    }
    if (f >= begin)
    {
        nearest_offset(g, e, s, out.source, out.offset);
    }
    out.near = near_index(e, out.offset);
    out.far  = out.near < 0;
    if (!out.far)
    {
        out.mask    = e.start != NULL ? tile_mask(g, e, tile, out.source, out.near) : 1u << bit;
        out.special = __ffs(static_cast<int>(out.mask)) - 1 == bit;
    }
    return out;
}

/*
 * Pairs left out of all particles, c_lanes lanes to a particle: lists of molecules are long, and each entry leads to a
 * list of its own. Without FILL they are counted, special_at and far_at being what is written; with it these say where
 * those of a particle begin.
 */
template <bool FILL>
__global__ void __launch_bounds__(c_threads) left_out_pairs(
    Geometry g, Exclusions e, int* special_at, int* far_at, Special* specials, FarPair* far, AssignResults* r)
{
    const int      s    = static_cast<int>((blockIdx.x * c_threads + threadIdx.x) / c_lanes);
    const int      lane = static_cast<int>(threadIdx.x % c_lanes), first = static_cast<int>(threadIdx.x % 32) - lane;
    const unsigned group = ((1u << c_lanes) - 1) << first, before = (1u << (first + lane)) - (1u << first);
    if (s >= e.n)
    {
        if (s == e.n && lane == 0)
        {
            FILL ? r->num_far = far_at[s] : special_at[s] = far_at[s] = 0;
        }
        return;
    }
    const Tile tile  = tile_of(e, s);
    const int  i     = e.sorted[s];
    const int  begin = e.start != NULL ? e.start[i] : 0, end = e.start != NULL ? e.start[i + 1] : 0;
    int        num_special = FILL ? special_at[s] : 0, num_far = FILL ? far_at[s] : 0;
    for (int f = begin - 1 + lane; f - lane < end; f += c_lanes)
    {
        LeftOut pair = {false, false, 0, {0, 0, 0}, -1, 0};
        if (f < end)
        {
            pair = left_out(g, e, tile, s, f, begin);
        }
        const unsigned are_special = __ballot_sync(group, pair.special), are_far = __ballot_sync(group, pair.far);
        int            prefix = 0;
        for (unsigned todo = FILL ? __ballot_sync(group, pair.special && pair.near > 0) : 0; todo != 0;
             todo &= todo - 1)
        {
            const int of = __ffs(static_cast<int>(todo)) - 1, o = __shfl_sync(group, pair.near, of);
            const int sum = near_prefix(g, e, e.cell_of[s], o, lane, group);
            prefix        = of == first + lane ? sum : prefix;
        }
        if (FILL && pair.special)
        {
            Special* to = specials + num_special + __popc(are_special & before);
            to->place   = prefix + pair.source - e.cell_start[e.cell_of[pair.source]];
            to->mask    = pair.mask;
        }
        if (FILL && pair.far)
        {
            far[num_far + __popc(are_far & before)] = {pair.source, {pair.offset[0], pair.offset[1], pair.offset[2]}};
        }
        num_special += __popc(are_special);
        num_far += __popc(are_far);
    }
    if (!FILL && lane == 0)
    {
        special_at[s] = num_special;
        far_at[s]     = num_far;
    }
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

gmxfmm_status fmm_cuda_left_out(gmxfmm_plan* plan, cudaStream_t stream)
{
    fmm_device*  d     = plan->device;
    const int    n     = d->charges.n;
    const size_t words = static_cast<size_t>(n) + 1;
    if (d->receivers.n > 0)
    {
        const size_t bytes = (static_cast<size_t>(d->receivers.n) + 1) * sizeof(int);
        FMM_CUDA(plan, cudaMemsetAsync(d->special_start.memory, 0, bytes, stream));
        return GMXFMM_OK;
    }
    const Geometry   g      = make_geometry(plan);
    const int        blocks = blocks_for(static_cast<int64_t>(n) + 1, c_threads / c_lanes);
    const Exclusions e      = make_exclusions(plan, n);
    int *            near = d->counts.as<int>(), *far = near + words;
    left_out_pairs<false><<<blocks, c_threads, 0, stream>>>(g, e, near, far, NULL, NULL, NULL);
    FMM_CUDA(plan, cudaGetLastError());
    FMM_TRY(fmm_cuda_scan(plan, near, d->special_start.as<int>(), n + 1, stream));
    FMM_TRY(fmm_cuda_scan(plan, far, d->far_start.as<int>(), n + 1, stream));
    left_out_pairs<true><<<blocks, c_threads, 0, stream>>>(g, e, d->special_start.as<int>(), d->far_start.as<int>(),
                                                           d->specials.as<Special>(), d->far_pairs.as<FarPair>(),
                                                           d->assign_results.as<AssignResults>());
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}
