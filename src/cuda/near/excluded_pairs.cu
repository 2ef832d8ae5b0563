/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Excluded pairs (search steps): near ones become specials of P2P, far ones a list. */
#include <algorithm>

#include "cuda/device.h"
#include "cuda/near/near.h"
#include "cuda/particles/particles.h"

enum
{
    c_threads = 128,
    c_lanes   = 4, /* of a warp, for the excluded pairs of one particle */
    /* special values for a place in near_lookup */
    c_far    = -1,
    c_itself = -2
};

static const unsigned c_warp   = 0xffffffff;
static const uint64_t c_oneFar = uint64_t(1) << 32; /* both counts are added up in one number */

/* What these kernels need of the assignment. */
struct Exclusions
{
    const int*       start; /* NULL: none */
    const int*       list;
    const int *      sorted, *position, *cell_of, *cell_start, *tile_start;
    const Tile*      tiles;
    const int*       cell; /* cell, and reference, the position in it: caller's order */
    const float*     reference;
    const int4*      near_vectors;
    const short*     near_lookup;
    const int*       place; /* written by find_places for each entry of list */
    const BoxValues* box;
    const int*       run_start; /* of leaves of several levels, as in P2pArgs; NULL: others */
    const int2*      runs;
    int              near_reach, num_places, n;
};

/* Cell of particle i minus cell of the nearest image of particle j, in cells. */
static __device__ void nearest_offset(const Geometry& g, const Exclusions& e, int i, int j, int* offset)
{
    const float *ri = e.reference + 3 * static_cast<size_t>(i), *rj = e.reference + 3 * static_cast<size_t>(j);
    int          ci[3], cj[3];
    double       t[3];
    cell_place(g, e.cell[i], ci);
    cell_place(g, e.cell[j], cj);
    for (int d = 0; d < 3; d++)
    {
        offset[d] = ci[d] - cj[d];
        t[d]      = offset[d] + static_cast<double>(ri[d]) - static_cast<double>(rj[d]);
    }
    if (has_images(g))
    {
        const VoronoiVectors& v = e.box->box_voronoi;
        fmm_nearest_image(g.period, e.box->cell, g.rectangular ? NULL : v.vectors, v.coordinates, t, offset);
    }
}

/* The same, computed for the particle of lower number and with the opposite sign for the other, so that both agree
 * where two images are equally near. */
static __device__ void pair_offset(const Geometry& g, const Exclusions& e, int i, int j, int* offset)
{
    const bool lower = i < j;
    nearest_offset(g, e, lower ? i : j, lower ? j : i, offset);
    for (int d = 0; d < 3 && !lower; d++)
    {
        offset[d] = -offset[d];
    }
}

/* Place in near_lookup of the vector from a target's cell to its source's, or c_far. */
static __device__ int near_place(const Exclusions& e, const int* offset)
{
    const int r = e.near_reach, w = 2 * r + 1;
    for (int d = 0; d < 3; d++)
    {
        if (abs(offset[d]) > r)
        {
            return c_far;
        }
    }
    const int place = ((r - offset[0]) * w + r - offset[1]) * w + r - offset[2];
    return e.near_lookup[place] >= 0 ? place : c_far;
}

/* Number of particles in the near cells before near vector o of cell c: the place of that vector's first particle in
 * P2P's list of sources. wanted: the lane asks for it. Most lanes of a warp ask for the same few places, their own cell
 * for one, so that the warp counts them one after another, all lanes together. All lanes must call. */
static __device__ int near_prefix(const Geometry& g, const Exclusions& e, const int* c, int o, bool wanted)
{
    const int lane   = static_cast<int>(threadIdx.x % 32);
    const int at     = cell_at(g, c[0], c[1], c[2]);
    int       prefix = 0;
    for (unsigned left = __ballot_sync(c_warp, wanted); left != 0;)
    {
        const int first = __ffs(static_cast<int>(left)) - 1, end = __shfl_sync(c_warp, o, first);
        int       of[3], num                                     = 0;
        for (int d = 0; d < 3; d++)
        {
            of[d] = __shfl_sync(c_warp, c[d], first);
        }
        for (int i = lane; i < end; i += 32)
        {
            const int4 k = e.near_vectors[i];
            const int  cell =
                cell_at(g, wrapped(of[0] + k.x, g.n[0]), wrapped(of[1] + k.y, g.n[1]), wrapped(of[2] + k.z, g.n[2]));
            num += e.cell_start[cell + 1] - e.cell_start[cell];
        }
        for (int step = 16; step > 0; step /= 2)
        {
            num += __shfl_xor_sync(c_warp, num, step);
        }
        const bool same = wanted && o == end && at == cell_at(g, of[0], of[1], of[2]);
        prefix          = same ? num : prefix;
        left &= ~__ballot_sync(c_warp, same);
    }
    return prefix;
}

/* Place of a source in P2P's list of the particles near to a leaf of several levels, or c_far. */
static __device__ int place_in_runs(const Exclusions& e, int leaf, int source)
{
    int before = 0;
    for (int k = e.run_start[leaf]; k < e.run_start[leaf + 1]; k++)
    {
        const int2 run = e.runs[k];
        if (source >= run.x && source < run.x + run.y)
        {
            return before + source - run.x;
        }
        before += run.y;
    }
    return c_far;
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

/* Where the source of each entry of the lists lies: the place in near_lookup of the vector from the target's cell to
 * the source's image, or c_far. Leaves of several levels have one place, 0, for all that is near. c_lanes lanes to a
 * particle: lists of molecules are long. */
__global__ void __launch_bounds__(c_threads)
    find_places(const __grid_constant__ Geometry g, const __grid_constant__ Exclusions e, int* place)
{
    const int i    = static_cast<int>((blockIdx.x * c_threads + threadIdx.x) / c_lanes);
    const int lane = static_cast<int>(threadIdx.x % c_lanes);
    if (i >= e.n)
    {
        return;
    }
    for (int f = e.start[i] + lane; f < e.start[i + 1]; f += c_lanes)
    {
        const int j         = e.list[f];
        int       offset[3] = {0, 0, 0};
        if (e.runs != NULL)
        {
            const bool near = j != i && place_in_runs(e, e.cell_of[e.position[i]], e.position[j]) != c_far;
            place[f]        = j == i ? c_itself : near ? 0 : c_far;
            continue;
        }
        if (j != i)
        {
            pair_offset(g, e, i, j, offset);
        }
        place[f] = j == i ? c_itself : near_place(e, offset);
    }
}

/* A bit for each target of a tile that excludes the image of particle j at this place; sj is the sorted index of j.
 * They are found in the list of j, as lists are symmetric. */
static __device__ unsigned tile_mask(const Exclusions& e, const Tile& tile, int j, int sj, int place)
{
    unsigned  mask     = 0;
    const int opposite = e.num_places - 1 - place, end = e.start != NULL ? e.start[j + 1] : 0;
    for (int f = e.start != NULL ? e.start[j] : 0; f < end; f++)
    {
        if (e.place[f] == opposite)
        {
            const int s = e.position[e.list[f]] - tile.x;
            mask |= s >= 0 && s < tile.y ? 1u << s : 0;
        }
    }
    if (place == opposite && sj >= tile.x && sj < tile.x + tile.y)
    {
        mask |= 1u << (sj - tile.x); /* itself */
    }
    return mask;
}

/* Number of excluded pairs of each sorted particle, specials in the lower half of a count and far ones in the upper
 * half; and the masks of the specials. A particle has c_lanes lanes, since each of its entries leads to another list. A
 * particle excludes itself, listed or not. A source excluded by several targets of a tile is one special, counted for
 * the first of them. */
__global__ void __launch_bounds__(c_threads)
    count_excluded(const __grid_constant__ Exclusions e, unsigned* mask, uint64_t* count)
{
    const int      s    = static_cast<int>((blockIdx.x * c_threads + threadIdx.x) / c_lanes);
    const int      lane = static_cast<int>(threadIdx.x % c_lanes), first = static_cast<int>(threadIdx.x % 32) - lane;
    const unsigned group = ((1u << c_lanes) - 1) << first;
    if (s >= e.n)
    {
        if (s == e.n && lane == 0)
        {
            count[s] = 0;
        }
        return;
    }
    const Tile tile  = tile_of(e, s);
    const int  i     = e.sorted[s];
    const int  begin = e.start != NULL ? e.start[i] : 0, end = e.start != NULL ? e.start[i + 1] : 0;
    uint64_t   num = 0;
    for (int f = begin - 1 + lane; f < end; f += c_lanes)
    {
        const bool itself = f < begin;
        const int  place = itself ? e.num_places / 2 : e.place[f], j = itself ? i : e.list[f];
        unsigned   found           = place >= 0 ? tile_mask(e, tile, j, e.position[j], place) : 0;
        found                      = __ffs(static_cast<int>(found)) - 1 == s - tile.x ? found : 0;
        mask[itself ? s : e.n + f] = found;
        num += place == c_far ? c_oneFar : found != 0;
    }
    for (int step = c_lanes / 2; step > 0; step /= 2)
    {
        num += __shfl_xor_sync(group, num, step);
    }
    if (lane == 0)
    {
        count[s] = num;
    }
}

/* Writes the specials and the far pairs. before: prefix sums of the counts. All lanes of a warp run the loop equally
 * often, since they count near particles together. */
__global__ void __launch_bounds__(c_threads) list_excluded(const __grid_constant__ Geometry   g,
                                                           const __grid_constant__ Exclusions e,
                                                           const unsigned*                    mask,
                                                           const uint64_t*                    before,
                                                           int*                               special_start,
                                                           int*                               far_start,
                                                           Special*                           specials,
                                                           FarPair*                           far,
                                                           AssignResults*                     r)
{
    const int      s  = static_cast<int>((blockIdx.x * c_threads + threadIdx.x) / c_lanes);
    const int      me = static_cast<int>(threadIdx.x % 32), lane = me % c_lanes;
    const unsigned group = ((1u << c_lanes) - 1) << (me - lane), lower = ((1u << me) - 1) & group;
    const int      i = s < e.n ? e.sorted[s] : 0, center = e.num_places / 2;
    const int      begin       = e.start != NULL ? e.start[i] : 0;
    const int      end         = s >= e.n ? begin - 1 : e.start != NULL ? e.start[i + 1] : 0;
    const uint64_t at          = s <= e.n ? before[s] : 0;
    int            num_special = static_cast<int>(at % c_oneFar), num_far = static_cast<int>(at / c_oneFar);
    int            cell[3];
    cell_place(g, s < e.n ? e.cell_of[s] : 0, cell);
    if (s <= e.n && lane == 0)
    {
        special_start[s] = num_special;
        far_start[s]     = num_far;
        if (s == e.n)
        {
            r->num_far = num_far;
        }
    }
    for (int f = begin - 1 + lane; __any_sync(c_warp, f - lane < end); f += c_lanes)
    {
        const bool     itself = f < begin, is = f < end;
        const int      place = itself || !is ? center : e.place[f], j = itself || !is ? i : e.list[f];
        const unsigned found       = is ? mask[itself ? s : e.n + f] : 0;
        const unsigned are_special = __ballot_sync(c_warp, found != 0) & group;
        const unsigned are_far     = __ballot_sync(c_warp, place == c_far) & group;
        const int      source      = e.position[j];
        int            in_list     = 0;
        if (e.runs == NULL)
        {
            const int prefix = near_prefix(g, e, cell, found != 0 ? e.near_lookup[place] : 0, found != 0);
            in_list          = prefix + source - e.cell_start[e.cell_of[source]];
        }
        else if (found != 0)
        {
            in_list = place_in_runs(e, e.cell_of[s], source);
        }
        if (found != 0)
        {
            specials[num_special + __popc(are_special & lower)] = {in_list, found};
        }
        if (place == c_far)
        {
            int offset[3] = {0, 0, 0};
            if (e.runs == NULL)
            {
                pair_offset(g, e, i, j, offset);
            }
            far[num_far + __popc(are_far & lower)] = {source, {offset[0], offset[1], offset[2]}};
        }
        num_special += __popc(are_special);
        num_far += __popc(are_far);
    }
}

static Exclusions make_exclusions(const gmxfmm_plan* plan, int n)
{
    const fmm_device* d = plan->device;
    Exclusions        e;
    e.start        = plan->particles.excl_start != NULL ? d->near.excl_start.as<int>() : NULL;
    e.list         = d->near.excl_list.as<int>();
    e.sorted       = d->particles.sources.sorted.as<int>();
    e.position     = d->particles.sources.position.as<int>();
    e.cell_of      = d->particles.sources.cell_of.as<int>();
    e.cell_start   = d->particles.sources.cell_start.as<int>();
    e.tile_start   = d->particles.sources.tile_start.as<int>();
    e.tiles        = d->particles.sources.tiles.as<Tile>();
    e.cell         = d->particles.keys.as<int>();
    e.reference    = d->particles.references.as<float>();
    e.near_vectors = d->near.vectors.as<int4>();
    e.near_lookup  = d->near.lookup.as<short>();
    e.place        = d->near.excl_place.as<int>();
    e.near_reach   = d->near.reach;
    e.num_places   = (2 * d->near.reach + 1) * (2 * d->near.reach + 1) * (2 * d->near.reach + 1);
    e.n            = n;
    e.box          = d->domain.box.as<BoxValues>();
    e.run_start    = NULL;
    e.runs         = NULL;
    if (fmm_is_adaptive(plan))
    {
        e.run_start  = d->far.tree.leaves.run_start.as<int>();
        e.runs       = d->far.tree.leaves.runs.as<int2>();
        e.num_places = 1;
    }
    return e;
}

gmxfmm_status fmm_cuda_reserve_excluded_pairs(gmxfmm_plan* plan)
{
    fmm_device*  d     = plan->device;
    const size_t n     = static_cast<size_t>(d->particles.sources.n);
    const size_t most  = std::max(n, static_cast<size_t>(d->particles.targets.n)) + 1;
    const int*   start = plan->particles.excl_start;
    FMM_TRY(fmm_device_reserve(plan, &d->near.special_start, most * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &d->near.far_start, most * sizeof(int)));
    if (d->particles.targets.n == 0)
    {
        const size_t entries = start != NULL ? static_cast<size_t>(start[n]) : 0;
        FMM_TRY(fmm_device_reserve(plan, &d->near.excl_place, (entries + 1) * sizeof(int)));
        FMM_TRY(fmm_device_reserve(plan, &d->near.excl_mask, (n + entries + 1) * sizeof(unsigned)));
        FMM_TRY(fmm_device_reserve(plan, &d->near.specials, (n + entries + 1) * sizeof(Special)));
        FMM_TRY(fmm_device_reserve(plan, &d->near.far_pairs, (entries + 1) * sizeof(FarPair)));
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_reserve_near_copies(gmxfmm_plan* plan, fmm_device* to)
{
    const DeviceNearField& first = plan->device->near;
    FMM_TRY(fmm_device_reserve(plan, &to->near.vectors, first.vectors.capacity));
    FMM_TRY(fmm_device_reserve(plan, &to->near.special_start, first.special_start.capacity));
    return fmm_device_reserve(plan, &to->near.specials, first.specials.capacity);
}

DeviceBuffer* fmm_cuda_assigned_pairs(fmm_device* device, int i)
{
    DeviceNearField* near  = &device->near;
    DeviceBuffer*    all[] = {&near->special_start, &near->far_start, &near->specials, &near->far_pairs};
    static_assert(sizeof(all) / sizeof(all[0]) == static_cast<size_t>(c_nextPairs), "next has room for each of them");
    return all[i];
}

gmxfmm_status fmm_cuda_reserve_next_pairs(gmxfmm_plan* plan)
{
    fmm_device* d = plan->device;
    for (int i = 0; i < c_nextPairs; i++)
    {
        FMM_TRY(fmm_device_reserve(plan, &d->near.next[i], fmm_cuda_assigned_pairs(d, i)->capacity));
    }
    return GMXFMM_OK;
}

void fmm_cuda_swap_pairs(fmm_device* device)
{
    for (int i = 0; i < c_nextPairs; i++)
    {
        fmm_cuda_assigned_pairs(device, i)->swap(&device->near.next[i]);
    }
}

gmxfmm_status fmm_cuda_excluded_pairs(gmxfmm_plan* plan, cudaStream_t stream)
{
    fmm_device* d = plan->device;
    const int   n = d->particles.sources.n;
    if (d->particles.targets.n > 0)
    {
        const size_t bytes = (static_cast<size_t>(d->particles.targets.n) + 1) * sizeof(int);
        FMM_CUDA(plan, cudaMemsetAsync(d->near.special_start.memory, 0, bytes, stream));
        return GMXFMM_OK;
    }
    const Geometry   g       = make_geometry(plan);
    const int        blocks  = blocks_for(static_cast<int64_t>(n) + 1, c_threads / c_lanes);
    const Exclusions e       = make_exclusions(plan, n);
    uint64_t*        count   = d->particles.counts.as<uint64_t>();
    unsigned*        mask    = d->near.excl_mask.as<unsigned>();
    int *            special = d->near.special_start.as<int>(), *far = d->near.far_start.as<int>();
    if (e.start != NULL)
    {
        find_places<<<blocks, c_threads, 0, stream>>>(g, e, d->near.excl_place.as<int>());
    }
    count_excluded<<<blocks, c_threads, 0, stream>>>(e, mask, count);
    FMM_CUDA(plan, cudaGetLastError());
    FMM_TRY(fmm_cuda_scan(plan, count, count, n + 1, stream));
    list_excluded<<<blocks, c_threads, 0, stream>>>(g, e, mask, count, special, far, d->near.specials.as<Special>(),
                                                    d->near.far_pairs.as<FarPair>(),
                                                    d->particles.assign_results.as<AssignResults>());
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

gmxfmm_status fmm_device_set_exclusions(gmxfmm_plan* plan, const int* start, const int* list, int64_t n)
{
    fmm_device* d = plan->device;
    DeviceScope scope(d->id);
    if (start != NULL)
    {
        const size_t starts = (static_cast<size_t>(n) + 1) * sizeof(int);
        const size_t words  = static_cast<size_t>(start[n]) * sizeof(int);
        FMM_TRY(fmm_device_reserve(plan, &d->near.excl_start, starts));
        FMM_TRY(fmm_device_reserve(plan, &d->near.excl_list, words));
        FMM_TRY(fmm_cuda_upload(plan, d->near.excl_start.memory, start, starts));
        FMM_TRY(fmm_cuda_upload(plan, d->near.excl_list.memory, list, words));
    }
    return GMXFMM_OK;
}
