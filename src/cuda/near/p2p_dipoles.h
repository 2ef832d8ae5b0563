/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * P2P with dipoles, in one precision: p2p_dipoles_single.cu and p2p_dipoles_double.cu define DIPOLE_T and include this.
 * Warps, lists and specials are those of p2p.cu. A source has a dipole beside its charge, and a target gets the
 * gradient of the field, too, if it is wanted. Pairs are those of fmm/math/dipoles.h.
 *
 * In a grid of one level the virial is that of p2p.cu: positions times forces, and near_faces. On an octree, and where
 * positions are the caller's, P2P adds up the symmetric part of r (x) F of each pair.
 */
#include "cuda/near/p2p_list.h"
#include "fmm/math/dipoles.h"
#include "fmm/math/strain.h"

/* names of one precision alone */
namespace
{

typedef DIPOLE_R Real;

enum
{
    c_rounds       = 2, /* gathers of 32 sources in flight at once */
    c_unrolled     = 2, /* sources that the inner loop reads at once */
    c_targets      = 2, /* of a lane */
    c_listSize     = sizeof(Real) == 4 ? 256 : 192,
    c_blocks       = 16, /* on a multiprocessor, in single precision, as registers and shared memory allow */
    c_blocksVirial = 12
};

/* What is computed of each pair beside potential and field. */
enum DipolesWanted
{
    c_noGradient,
    c_gradientToo,
    c_leverToo /* and the gradient: a virial of each pair */
};

struct DipoleMemory
{
    Vec4<Real>    list[c_listSize + 32], mu[c_listSize + 32];
    Vec4<Real>    special[32], special_mu[32];
    Segment<Real> segment[32];
    unsigned      mask[32];
};

struct DipoleLane : Lane<Real, c_targets>
{
    dipole_vector mu[c_targets]; /* of the targets; zero of lanes and places that are not used */
    Real          gradient[c_targets][6];
};

struct DipoleKernelArgs
{
    P2pArgs<Real>    pairs;
    DipoleArgs<Real> dipoles;
};

static __device__ inline dipole_vector vector_of(const Vec4<Real>& v)
{
    return {v.x, v.y, v.z};
}

/* One pair; of one that is excluded nothing is added. */
template <DipolesWanted WANTED>
static __device__ inline void
interact(const Vec4<Real>& source, const Vec4<Real>& of, bool excluded, int t, DipoleLane& lane)
{
    const Vec4<Real>&   a    = lane.target[t];
    const dipole_vector none = {0, 0, 0}, r = {a.x - source.x, a.y - source.y, a.z - source.z};
    const Real          w = inverse_root(excluded ? Real(1) : dipole_dot(r, r)), w2 = w * w;
    const dipole_source s     = dipole_see(excluded ? Real(0) : source.w, excluded ? none : vector_of(of), r, w);
    const dipole_vector field = dipole_field(&s);
    lane.sum[t].x += field.x * w2;
    lane.sum[t].y += field.y * w2;
    lane.sum[t].z += field.z * w2;
    lane.sum[t].w += s.potential * w;
    if (WANTED != c_noGradient)
    {
        dipole_add_gradient(&s, w2 * w, lane.gradient[t]);
    }
    if (WANTED == c_leverToo)
    {
        dipole_add_lever(&s, dipole_force(&s, a.w, dipole_times(lane.mu[t], w)), w, lane.w[t]);
    }
}

template <DipolesWanted WANTED>
static __device__ inline void interact_source(const Vec4<Real>& source, const Vec4<Real>& of, DipoleLane& lane)
{
#pragma unroll
    for (int t = 0; t < c_targets; t++)
    {
        interact<WANTED>(source, of, false, t, lane);
    }
}

/* Interactions with the specials at places first .. first + num - 1, which are taken off the list. */
template <DipolesWanted WANTED>
static __device__ void specials(const P2pArgs<Real>& a, DipoleMemory* memory, int first, int num, DipoleLane& lane)
{
    const int me      = static_cast<int>(threadIdx.x % 32);
    Special   special = lane.special;
    for (int e = lane.special_begin; e < lane.special_end; e += 32)
    {
        const int batch = min(lane.special_end - e, 32);
        if (e > lane.special_begin && me < batch)
        {
            special = a.specials[e + me];
        }
        const int  place  = special.place - first;
        const bool inside = me < batch && place >= 0 && place < num;
        if (!__any_sync(0xffffffffu, inside))
        {
            continue;
        }
        const Vec4<Real> away = {a.away, 0, 0, 0}, none = {0, 0, 0, 0};
        memory->special[me]    = inside ? memory->list[place] : away;
        memory->special_mu[me] = inside ? memory->mu[place] : none;
        memory->mask[me]       = inside ? special.mask : 0xffffffffu;
        if (inside)
        {
            memory->list[place] = away;
            memory->mu[place]   = none;
        }
        __syncwarp();
        for (int k = lane.group; k < batch; k += lane.groups)
        {
#pragma unroll
            for (int t = 0; t < c_targets; t++)
            {
                interact<WANTED>(memory->special[k], memory->special_mu[k], memory->mask[k] >> lane.index[t] & 1u, t,
                                 lane);
            }
        }
        __syncwarp();
    }
}

/* Interactions with the num sources in the list, which begins at place `first`; the first `skip` of them are all
 * specials. */
template <DipolesWanted WANTED>
static __device__ void
interact_list(const P2pArgs<Real>& a, DipoleMemory* memory, int first, int num, int skip, DipoleLane& lane)
{
    const int me           = static_cast<int>(threadIdx.x % 32);
    memory->list[num + me] = {a.away, 0, 0, 0};
    memory->mu[num + me]   = {0, 0, 0, 0};
    __syncwarp();
    specials<WANTED>(a, memory, first, num, lane);
    __syncwarp();
    const int         step  = lane.groups;
    const Vec4<Real>* list  = memory->list + lane.group + skip;
    const Vec4<Real>* mu    = memory->mu + lane.group + skip;
    int               steps = quotient(num - skip + step - 1, reciprocal(step));
    for (; steps >= c_unrolled; steps -= c_unrolled)
    {
        Vec4<Real> source[c_unrolled], of[c_unrolled];
#pragma unroll
        for (int i = 0; i < c_unrolled; i++)
        {
            source[i] = list[i * step];
            of[i]     = mu[i * step];
        }
#pragma unroll
        for (int i = 0; i < c_unrolled; i++)
        {
            interact_source<WANTED>(source[i], of[i], lane);
        }
        list += c_unrolled * step;
        mu += c_unrolled * step;
    }
    for (; steps > 0; steps--)
    {
        interact_source<WANTED>(*list, *mu, lane);
        list += step;
        mu += step;
    }
    __syncwarp();
}

/* As gather of p2p.cu. A source with neither charge nor dipole is moved away. */
static __device__ inline void
gather(const DipoleKernelArgs& a, DipoleMemory* memory, int k, int total, int start, int fill, int* before)
{
    const int      me    = static_cast<int>(threadIdx.x % 32);
    const unsigned below = 0xffffffffu >> (31 - me);
    Vec4<Real>     source[c_rounds], mu[c_rounds];
    Segment<Real>  segment[c_rounds];
#pragma unroll
    for (int r = 0; r < c_rounds; r++)
    {
        const int      from = k + 32 * r;
        const unsigned bits = __reduce_or_sync(0xffffffffu, bit_at(start - from));
        segment[r]          = memory->segment[*before + __popc(bits & below) - 1];
        const int at        = segment[r].base + min(from + me, total - 1);
        source[r]           = a.pairs.xq[at];
        mu[r]               = a.dipoles.mu[at];
        *before += __popc(bits);
    }
#pragma unroll
    for (int r = 0; r < c_rounds; r++)
    {
        const bool has = source[r].w != 0 || mu[r].x != 0 || mu[r].y != 0 || mu[r].z != 0;
        source[r].x    = has ? source[r].x + segment[r].x : a.pairs.away;
        source[r].y += segment[r].y;
        source[r].z += segment[r].z;
        mu[r].x *= a.dipoles.unit;
        mu[r].y *= a.dipoles.unit;
        mu[r].z *= a.dipoles.unit;
        memory->list[fill + 32 * r + me] = source[r];
        memory->mu[fill + 32 * r + me]   = mu[r];
    }
}

static __device__ inline void add(const Vec4<Real>& v, Vec4<Real>* sum)
{
    sum->x += v.x;
    sum->y += v.y;
    sum->z += v.z;
    sum->w += v.w;
}

/* Adds up the groups' sums and writes them, as write_sums of p2p.cu. */
template <DipolesWanted WANTED>
static __device__ void write_sums(const DipoleKernelArgs& a, DipoleMemory* memory, bool adds, DipoleLane& lane)
{
    static_assert(2 * 32 * static_cast<int>(c_targets) <= static_cast<int>(c_listSize), "the list has room for sums");
    const int   me     = static_cast<int>(threadIdx.x % 32);
    Vec4<Real>* second = memory->list + 32 * c_targets;
#pragma unroll
    for (int t = 0; t < c_targets; t++)
    {
        Real* g                   = lane.gradient[t];
        memory->list[32 * t + me] = lane.sum[t];
        lane.sum[t]               = {0, 0, 0, 0};
        if (WANTED != c_noGradient)
        {
            memory->mu[32 * t + me] = {g[0], g[1], g[2], g[3]};
            second[32 * t + me]     = {g[4], g[5], 0, 0};
        }
        for (int i = 0; i < 6; i++)
        {
            g[i] = 0;
        }
    }
    __syncwarp();
    if (me < lane.count)
    {
        int from = me;
#pragma unroll
        for (int t = 1; t < c_targets; t++)
        {
            from += me >= t * lane.lanes ? 32 - lane.lanes : 0;
        }
        Vec4<Real>*      out = a.pairs.out + lane.first + me;
        Symmetric<Real>* to  = a.dipoles.gradient + lane.first + me;
        Vec4<Real>       sum = {0, 0, 0, 0}, four = {0, 0, 0, 0}, two = {0, 0, 0, 0};
        for (int group = 0; group < lane.groups; group++, from += lane.lanes)
        {
            add(memory->list[from], &sum);
            if (WANTED != c_noGradient)
            {
                add(memory->mu[from], &four);
                add(second[from], &two);
            }
        }
        if (adds)
        {
            add(*out, &sum);
        }
        *out = sum;
        if (WANTED != c_noGradient)
        {
            Symmetric<Real> g = {{four.x, four.y, four.z, four.w, two.x, two.y}};
            dipole_end_gradient(g.t);
            for (int i = 0; i < 6 && adds; i++)
            {
                g.t[i] += to->t[i];
            }
            *to = g;
        }
    }
    __syncwarp();
}

/* Without charge and dipole sums may be infinite. */
static __device__ inline bool has_force(const DipoleLane& lane, int t)
{
    return lane.target[t].w != 0 || lane.mu[t].x != 0 || lane.mu[t].y != 0 || lane.mu[t].z != 0;
}

/* Every pair is computed twice, each time with half of its virial. */
static __device__ void write_virial(const P2pArgs<Real>& a, bool adds, DipoleLane& lane)
{
#pragma unroll
    for (int i = 0; i < 6; i++)
    {
        Real sum = 0;
#pragma unroll
        for (int t = 0; t < c_targets; t++)
        {
            sum += has_force(lane, t) ? lane.w[t][i] : Real(0);
            lane.w[t][i] = 0;
        }
        for (int step = 16; step > 0; step /= 2)
        {
            sum += __shfl_down_sync(0xffffffffu, sum, step);
        }
        if (threadIdx.x % 32 == 0)
        {
            Real* out = a.virial + 6 * static_cast<size_t>(lane.tile) + i;
            *out      = Real(-0.25) * sum + (adds ? *out : Real(0));
        }
    }
}

static __device__ inline DipoleLane make_dipole_lane(const DipoleKernelArgs& a, int number, const Tile& tile)
{
    DipoleLane lane;
    static_cast<Lane<Real, c_targets>&>(lane) = make_lane<Real, c_targets>(a.pairs, number, tile);
    const bool idle                           = static_cast<int>(threadIdx.x % 32) >= lane.lanes * lane.groups;
#pragma unroll
    for (int t = 0; t < c_targets; t++)
    {
        lane.mu[t] = {0, 0, 0};
        if (a.dipoles.target_mu != NULL && !idle && lane.l + t * lane.lanes < lane.count)
        {
            lane.mu[t] = dipole_times(vector_of(a.dipoles.target_mu[lane.first + lane.index[t]]), a.dipoles.unit);
        }
        for (Real& g : lane.gradient[t])
        {
            g = 0;
        }
    }
    return lane;
}

/* Adds the forces on the targets of a lane. */
static __device__ void add_force(const DipoleLane& lane, Real* force)
{
#pragma unroll
    for (int t = 0; t < c_targets; t++)
    {
        if (has_force(lane, t))
        {
            const Real          q = lane.target[t].w;
            const dipole_vector m = lane.mu[t];
            Real                g[6];
            for (int i = 0; i < 6; i++)
            {
                g[i] = lane.gradient[t][i];
            }
            dipole_end_gradient(g);
            force[0] += q * lane.sum[t].x + g[0] * m.x + g[3] * m.y + g[4] * m.z;
            force[1] += q * lane.sum[t].y + g[3] * m.x + g[1] * m.y + g[5] * m.z;
            force[2] += q * lane.sum[t].z + g[4] * m.x + g[5] * m.y + g[2] * m.z;
        }
    }
}

/* All interactions of one tile, as interact_tile of p2p.cu. */
template <DipolesWanted WANTED, bool LEAVES>
static __device__ inline void interact_tile(
    const DipoleKernelArgs& all, DipoleMemory* memory, int number, const Tile& tile, const FaceSide* face, Real* force)
{
    const P2pArgs<Real>& a        = all.pairs;
    const int            place[3] = {tile.z & 0xffff, tile.z >> 16, tile.w};
    const int            cell     = cell_at(a.g, place[0], place[1], place[2]);
    DipoleLane           lane     = make_dipole_lane(all, number, tile);
    /* if the tile is a whole cell, its own particles come first in the list and are all specials */
    const bool whole = a.self && a.cell_start[cell + 1] - a.cell_start[cell] == tile.y;
    int        first = 0, skip = whole ? tile.y : 0, next = 0, k = 0, total = 0, start = -1, before = 0;
    NearRuns   runs = {NULL, 0};
    if constexpr (LEAVES)
    {
        runs.run = a.runs + a.run_start[cell];
        runs.num = a.run_start[cell + 1] - a.run_start[cell];
    }
    /* where nothing is near a list without sources gives sums of zero */
    const int num_near = LEAVES ? max(runs.num, 1) : a.g.num_near;
    while (k < total || next < num_near)
    {
        int fill = 0;
        while ((k < total || next < num_near) && fill + 32 * c_rounds <= c_listSize)
        {
            if (k >= total)
            {
                make_segments<LEAVES>(a, memory->segment, place, runs, face, next, &start, &total);
                next += 32;
                k = before = 0;
                continue;
            }
            gather(all, memory, k, total, start, fill, &before);
            fill += min(total - k, 32 * c_rounds);
            k += 32 * c_rounds;
            __syncwarp();
        }
        interact_list<WANTED>(a, memory, first, fill, skip, lane);
        if (WANTED == c_leverToo)
        {
            write_virial(a, first > 0, lane);
        }
        if (face == NULL)
        {
            write_sums<WANTED>(all, memory, first > 0, lane);
        }
        first += fill;
        skip = 0;
    }
    if (face != NULL)
    {
        add_force(lane, force);
    }
}

/* As near_faces of p2p.cu. */
__global__ void __launch_bounds__(32, sizeof(Real) == 8 ? 1 : at_most_blocks(c_blocks))
    near_faces_dipoles(const __grid_constant__ DipoleKernelArgs a)
{
    extern __shared__ char shared[];
    DipoleMemory*          memory   = reinterpret_cast<DipoleMemory*>(shared);
    const int              number   = static_cast<int>(blockIdx.x);
    int                    place[3] = {0, 0, 0};
    const FaceSide         face     = find_face(a.pairs.g.inner, a.pairs.extent, number, place);
    const int              cell     = cell_at(a.pairs.g, place[0], place[1], place[2]);
    Real                   force[3] = {0, 0, 0};
    for (int tile = a.pairs.tile_start[cell]; tile < a.pairs.tile_start[cell + 1]; tile++)
    {
        interact_tile<c_gradientToo, false>(a, memory, tile, a.pairs.tiles[tile], &face, force);
    }
    for (Real& part : force)
    {
        for (int step = 16; step > 0; step /= 2)
        {
            part += __shfl_down_sync(0xffffffffu, part, step);
        }
    }
    if (threadIdx.x % 32 == 0)
    {
        const double f[3]    = {static_cast<double>(force[0]), static_cast<double>(force[1]),
                                static_cast<double>(force[2])};
        double       part[6] = {0};
        fmm_add_symmetric(0.5 * a.pairs.g.n[face.direction], a.pairs.box->cell + 3 * face.direction, f, part);
        for (int i = 0; i < 6; i++)
        {
            a.pairs.virial[6 * static_cast<size_t>(number) + i] = static_cast<Real>(part[i]);
        }
    }
}

template <DipolesWanted WANTED, bool LEAVES>
__global__ void __launch_bounds__(32,
                                  sizeof(Real) == 8      ? 1
                                  : WANTED == c_leverToo ? at_most_blocks(c_blocksVirial)
                                                         : at_most_blocks(c_blocks))
    p2p_dipoles(const __grid_constant__ DipoleKernelArgs a)
{
    extern __shared__ char shared[];
    DipoleMemory*          memory    = reinterpret_cast<DipoleMemory*>(shared);
    int                    number    = static_cast<int>(blockIdx.x);
    const int              num_tiles = *a.pairs.num_tiles;
    Tile                   tile      = a.pairs.tiles[number];
    while (number < num_tiles)
    {
        interact_tile<WANTED, LEAVES>(a, memory, number, tile, NULL, NULL);
        number += static_cast<int>(gridDim.x);
        if (number < num_tiles)
        {
            tile = a.pairs.tiles[number];
        }
    }
}

static DipoleKernelArgs kernel_args(const gmxfmm_plan* plan)
{
    return {fmm_cuda_p2p_args<Real>(plan, plan->device), fmm_cuda_dipole_args<Real>(plan)};
}

template <DipolesWanted WANTED, bool LEAVES>
static gmxfmm_status launch(gmxfmm_plan* plan, int warps, cudaStream_t stream)
{
    if (warps > 0)
    {
        FMM_CUDA(plan, (allow_shared(&plan->device->allowed, p2p_dipoles<WANTED, LEAVES>)));
        p2p_dipoles<WANTED, LEAVES><<<warps, 32, sizeof(DipoleMemory), stream>>>(kernel_args(plan));
        FMM_CUDA(plan, cudaGetLastError());
    }
    return GMXFMM_OK;
}

template <DipolesWanted WANTED>
static gmxfmm_status launch_wanted(gmxfmm_plan* plan, int warps, cudaStream_t stream)
{
    return fmm_is_adaptive(plan) ? launch<WANTED, true>(plan, warps, stream)
                                 : launch<WANTED, false>(plan, warps, stream);
}

} // namespace

template <>
gmxfmm_status fmm_cuda_p2p_dipoles<Real>(
    gmxfmm_plan* plan, const StepWanted& wanted, bool adds_virial, int warps, cudaStream_t stream)
{
    return wanted.virial && adds_virial ? launch_wanted<c_leverToo>(plan, warps, stream)
           : wanted.gradient            ? launch_wanted<c_gradientToo>(plan, warps, stream)
                                        : launch_wanted<c_noGradient>(plan, warps, stream);
}

template <>
gmxfmm_status fmm_cuda_near_faces_dipoles<Real>(gmxfmm_plan* plan, int faces, cudaStream_t stream)
{
    FMM_CUDA(plan, (allow_shared(&plan->device->allowed, near_faces_dipoles)));
    near_faces_dipoles<<<faces, 32, sizeof(DipoleMemory), stream>>>(kernel_args(plan));
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}
