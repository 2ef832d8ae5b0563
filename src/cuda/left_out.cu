/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pairs left out (search steps): specials of P2P when near, listed when far. */
#include "geometry.h"

enum
{
    c_threads = 128
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

__global__ void fill_left_out(Geometry       g,
                              Exclusions     e,
                              const int*     special_start,
                              const int*     far_start,
                              Special*       specials,
                              FarPair*       far,
                              AssignResults* r)
{
    const int s = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (s < e.n)
    {
        int a = special_start[s], b = far_start[s];
        left_out(g, e, s, &a, &b, specials, far);
    }
    if (s == e.n)
    {
        r->num_far = far_start[e.n];
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
    const int        blocks = blocks_for(static_cast<int64_t>(n) + 1, c_threads);
    const Exclusions e      = make_exclusions(plan, n);
    int *            near = d->counts.as<int>(), *far = near + words;
    count_left_out<<<blocks, c_threads, 0, stream>>>(g, e, near, far);
    FMM_CUDA(plan, cudaGetLastError());
    FMM_TRY(fmm_cuda_scan(plan, near, d->special_start.as<int>(), n + 1, stream));
    FMM_TRY(fmm_cuda_scan(plan, far, d->far_start.as<int>(), n + 1, stream));
    fill_left_out<<<blocks, c_threads, 0, stream>>>(g, e, d->special_start.as<int>(), d->far_start.as<int>(),
                                                    d->specials.as<Special>(), d->far_pairs.as<FarPair>(),
                                                    d->assign_results.as<AssignResults>());
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}
