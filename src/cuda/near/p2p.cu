/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * P2P: one warp computes the interactions of a tile, at most 32 targets of one cell, with all particles of its near
 * cells.
 *
 * The sources are gathered into a list in shared memory, relative to the centre of the tile's cell. The lanes are then
 * divided into groups: a group has all targets of the tile, T = 2 or 3 in each lane, whichever leaves fewer lanes idle,
 * and every G-th source. So lanes are busy whatever the number of particles in a cell, a source read from shared memory
 * serves T pairs, and the sum over the G groups is the only exchange between lanes.
 *
 * Sources that some target excludes (itself, bonded neighbours) are the specials; assign determines their places in the
 * list. They are taken off the list and treated separately, with a bit for each target, so that the inner loop has no
 * masks.
 *
 * In a grid of one level no virial of single pairs is computed. With all positions x in one frame, the sum over pairs
 * of (x_i - x_j - s) (x) f_ij, s the vector of the lattice to the image of j, is the sum of x_i (x) F_i over particles,
 * which output.cu adds up, less the sum of s (x) f_ij over pairs (Bekker et al. 1995, as in GROMACS). The latter has
 * terms only for sources across a face of the box and needs each pair once. A kernel of its own, near_faces, computes
 * these pairs again, for targets at three faces; only the virial waits for it. On an octree, whose clusters may be far
 * apart, x_i (x) F_i would lose digits: there P2P adds up the virial of each pair.
 *
 * A target without a charge may stand where a source does. Its sums are not finite then; output.cu computes them again
 * (uncharged.h).
 *
 * In an open system positions are the caller's own numbers, if the step has all their digits (fmm_has_given), in a
 * unit that is a power of two, and there are no shifts between cells. The sums are in that unit, too; output.cu brings
 * them into units of u.
 */
#include "cuda/near/near.h"
#include "cuda/near/p2p_list.h"
#include "cuda/particles/particles.h"
#include "fmm/math/strain.h"

enum
{
    c_warps        = 1,  /* of a block; with one, no warp waits for the slowest of its block */
    c_rounds       = 4,  /* gathers of 32 sources in flight at once */
    c_unrolled     = 4,  /* sources that the inner loop reads at once */
    c_blocks       = 24, /* on a multiprocessor, in single precision: as many as shared memory has room for */
    c_blocksVirial = 20  /* the same for registers, with sums for a virial */
};

/* What is computed of each pair: most steps of a simulation need forces alone. */
enum P2pWanted
{
    c_fieldOnly,
    c_potentialToo,
    c_virialToo /* of each pair, and the potential */
};

/* What a kernel computes. LIMITED: pairs nearer than min_distance have the potential of that distance and no force.
 * LEAVES: cells are leaves of several levels, with lists of what is near. */
template <P2pWanted WANTED, bool LIMITED, bool LEAVES>
struct P2pKind
{
    static constexpr bool potential = WANTED != c_fieldOnly, virial = WANTED == c_virialToo, limited = LIMITED,
                          leaves = LEAVES;
};

/* Sources in a warp's list: enough for all near sources at some 300 neighbours, and so little memory that 6 warps fit
 * on each scheduler. More sources are treated in several lists. */
template <class R>
struct ListSize
{
    enum
    {
        value = sizeof(R) == 4 ? 416 : 320
    };
};

template <class R>
struct WarpMemory
{
    Vec4<R>    list[ListSize<R>::value + 32];
    Vec4<R>    special[32];
    Segment<R> segment[32];
    unsigned   mask[32];
};

/* One pair: adds the source's field, and potential, at the target. least: min_distance squared. */
template <class Kind, class R>
static __device__ inline void interact(R dx, R dy, R dz, R r2, R q, R least, Vec4<R>* sum, R* w)
{
    const bool inside = Kind::limited && r2 < least;
    const R    inv    = inverse_root(inside ? least : r2);
    const R    p      = q * inv;
    const R    f      = inside ? R(0) : p * (inv * inv);
    if (Kind::potential)
    {
        sum->w += p;
    }
    if (Kind::virial)
    {
        const R fx = f * dx, fy = f * dy;
        sum->x += fx;
        sum->y += fy;
        w[0] += fx * dx;
        w[1] += fy * dy;
        w[2] += fx * dy;
        w[3] += fx * dz;
        w[4] += fy * dz;
        if (Kind::limited)
        {
            w[5] += f * dz * dz;
        }
    }
    else
    {
        sum->x += f * dx;
        sum->y += f * dy;
    }
    sum->z = fma(f, dz, sum->z); /* as the compiler has it where f dz is not wanted for w, too */
}

template <class Kind, class R, int T>
static __device__ inline void interact_source(const Vec4<R>& source, R least, Lane<R, T>& lane)
{
#pragma unroll
    for (int t = 0; t < T; t++)
    {
        const Vec4<R>& a  = lane.target[t];
        const R        dx = a.x - source.x, dy = a.y - source.y, dz = a.z - source.z;
        interact<Kind>(dx, dy, dz, dx * dx + dy * dy + dz * dz, source.w, least, &lane.sum[t], lane.w[t]);
    }
}

/* The same for a source that is excluded by the targets with a bit in mask. */
template <class Kind, class R, int T>
static __device__ inline void interact_special(const Vec4<R>& source, unsigned mask, R least, Lane<R, T>& lane)
{
#pragma unroll
    for (int t = 0; t < T; t++)
    {
        const Vec4<R>& a    = lane.target[t];
        const bool     skip = mask >> lane.index[t] & 1u;
        const R        dx = a.x - source.x, dy = a.y - source.y, dz = a.z - source.z;
        const R        r2 = skip ? R(1) : dx * dx + dy * dy + dz * dz;
        interact<Kind>(dx, dy, dz, r2, skip ? R(0) : source.w, least, &lane.sum[t], lane.w[t]);
    }
}

/* Interactions with the specials at places first .. first + num - 1, which are taken off the list. */
template <class Kind, class R, int T>
static __device__ void specials(const P2pArgs<R>& a, WarpMemory<R>* memory, int first, int num, Lane<R, T>& lane)
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
        const Vec4<R> away  = {a.away, 0, 0, 0};
        memory->special[me] = inside ? memory->list[place] : away;
        memory->mask[me]    = inside ? special.mask : 0xffffffffu;
        if (inside)
        {
            memory->list[place] = away;
        }
        __syncwarp();
        for (int k = lane.group; k < batch; k += lane.groups)
        {
            interact_special<Kind>(memory->special[k], memory->mask[k], a.least, lane);
        }
        __syncwarp();
    }
}

/* Interactions with the num sources in the list, which begins at place `first`; the first `skip` of them are all
 * specials. */
template <class Kind, class R, int T>
static __device__ void
interact_list(const P2pArgs<R>& a, WarpMemory<R>* memory, int first, int num, int skip, Lane<R, T>& lane)
{
    const int     me       = static_cast<int>(threadIdx.x % 32);
    const Vec4<R> away     = {a.away, 0, 0, 0};
    memory->list[num + me] = away;
    __syncwarp();
    specials<Kind>(a, memory, first, num, lane);
    __syncwarp();
    const int      step  = lane.groups;
    const Vec4<R>* list  = memory->list + lane.group + skip;
    int            steps = quotient(num - skip + step - 1, reciprocal(step));
    for (; steps >= c_unrolled; steps -= c_unrolled)
    {
        Vec4<R> source[c_unrolled];
#pragma unroll
        for (int i = 0; i < c_unrolled; i++)
        {
            source[i] = list[i * step];
        }
#pragma unroll
        for (int i = 0; i < c_unrolled; i++)
        {
            interact_source<Kind>(source[i], a.least, lane);
        }
        list += c_unrolled * step;
    }
    for (; steps > 0; steps--)
    {
        interact_source<Kind>(*list, a.least, lane);
        list += step;
    }
    __syncwarp();
}

/* Appends sources k .. k + 32 c_rounds - 1 of the segments to the list, which has room for those past the last one,
 * too. *before: number of segments that began before k. */
template <class R>
static __device__ inline void
gather(const P2pArgs<R>& a, WarpMemory<R>* memory, int k, int total, int start, Vec4<R>* to, int* before)
{
    const int      me    = static_cast<int>(threadIdx.x % 32);
    const unsigned below = 0xffffffffu >> (31 - me);
    Vec4<R>        source[c_rounds];
    Segment<R>     segment[c_rounds];
#pragma unroll
    for (int r = 0; r < c_rounds; r++)
    {
        const int      from = k + 32 * r;
        const unsigned bits = __reduce_or_sync(0xffffffffu, bit_at(start - from));
        segment[r]          = memory->segment[*before + __popc(bits & below) - 1];
        source[r]           = a.xq[segment[r].base + min(from + me, total - 1)];
        *before += __popc(bits);
    }
#pragma unroll
    for (int r = 0; r < c_rounds; r++)
    {
        source[r].x = source[r].w != 0 ? source[r].x + segment[r].x : a.away;
        source[r].y += segment[r].y;
        source[r].z += segment[r].z;
        to[32 * r + me] = source[r];
    }
}

/* Adds up the groups' sums through shared memory and writes them, one target for each lane. Each list has a sum of its
 * own, so that the lengths of sums, and their rounding errors, do not grow with the number of neighbours. The first
 * list's is written, those of others are added. */
template <class R, int T>
static __device__ void write_sums(const P2pArgs<R>& a, WarpMemory<R>* memory, bool add, Lane<R, T>& lane)
{
    const int me = static_cast<int>(threadIdx.x % 32);
#pragma unroll
    for (int t = 0; t < T; t++)
    {
        memory->list[32 * t + me] = lane.sum[t];
        lane.sum[t]               = {0, 0, 0, 0};
    }
    __syncwarp();
    if (me < lane.count)
    {
        int from = me;
#pragma unroll
        for (int t = 1; t < T; t++)
        {
            from += me >= t * lane.lanes ? 32 - lane.lanes : 0;
        }
        const Vec4<R>* part = memory->list + from;
        Vec4<R>*       out  = a.out + lane.first + me;
        Vec4<R>        sum  = {0, 0, 0, 0};
#pragma unroll 4
        for (int group = 0; group < lane.groups; group++, part += lane.lanes)
        {
            sum.x += part->x;
            sum.y += part->y;
            sum.z += part->z;
            sum.w += part->w;
        }
        if (add)
        {
            const Vec4<R> before = *out;
            sum.x += before.x;
            sum.y += before.y;
            sum.z += before.z;
            sum.w += before.w;
        }
        *out = sum;
    }
    __syncwarp();
}

/* Every pair is computed twice, each time with half of its virial. zz follows from xx, yy and the potential, 1/r,
 * unless there are pairs that have a potential and no force. */
template <class Kind, class R, int T>
static __device__ void write_virial(const P2pArgs<R>& a, bool add, Lane<R, T>& lane)
{
    R w[6] = {0};
#pragma unroll
    for (int t = 0; t < T; t++)
    {
        const R q = lane.target[t].w;
        if (q != 0) /* without a charge the sums may be infinite */
        {
            w[0] += q * lane.w[t][0];
            w[1] += q * lane.w[t][1];
            w[2] += q * (Kind::limited ? lane.w[t][5] : lane.sum[t].w - lane.w[t][0] - lane.w[t][1]);
            w[3] += q * lane.w[t][2];
            w[4] += q * lane.w[t][3];
            w[5] += q * lane.w[t][4];
        }
        for (R& part : lane.w[t])
        {
            part = 0;
        }
    }
#pragma unroll
    for (int i = 0; i < 6; i++)
    {
        R sum = w[i];
        for (int step = 16; step > 0; step /= 2)
        {
            sum += __shfl_down_sync(0xffffffffu, sum, step);
        }
        if (threadIdx.x % 32 == 0)
        {
            R* out = a.virial + 6 * static_cast<size_t>(lane.tile) + i;
            *out   = R(-0.25) * sum + (add ? *out : R(0));
        }
    }
}

/* Bit n - 1: a tile of n targets has no more idle lanes with three targets in a lane than with two. */
static constexpr unsigned sizes_for_three()
{
    unsigned bits = 0;
    for (int n = 1; n <= c_tileSize; n++)
    {
        const int two = 32 / ((n + 1) / 2), three = 32 / ((n + 2) / 3);
        bits |= 3 * two <= 2 * three ? 1u << (n - 1) : 0u;
    }
    return bits;
}

static constexpr unsigned c_sizesForThree = sizes_for_three();

/* Adds the forces on the targets of a lane. */
template <class R, int T>
static __device__ void add_force(const Lane<R, T>& lane, R* force)
{
#pragma unroll
    for (int t = 0; t < T; t++)
    {
        if (lane.target[t].w != 0) /* without a charge the sums may be infinite */
        {
            force[0] += lane.target[t].w * lane.sum[t].x;
            force[1] += lane.target[t].w * lane.sum[t].y;
            force[2] += lane.target[t].w * lane.sum[t].z;
        }
    }
}

/* All interactions of one tile, with T targets in a lane. With face, only those with sources on that side of it, and
 * only the force on each lane's targets is computed, which is added to force[3]. */
template <class R, class Kind, int T>
static __device__ inline void
interact_tile(const P2pArgs<R>& a, WarpMemory<R>* memory, int number, const Tile& tile, const FaceSide* face, R* force)
{
    const int  place[3] = {tile.z & 0xffff, tile.z >> 16, tile.w};
    const int  cell     = cell_at(a.g, place[0], place[1], place[2]);
    Lane<R, T> lane     = make_lane<R, T>(a, number, tile);
    /* if the tile is a whole cell, its own particles come first in the list and are all specials */
    const bool whole = a.self && a.cell_start[cell + 1] - a.cell_start[cell] == tile.y;
    int        first = 0, skip = whole ? tile.y : 0, next = 0, k = 0, total = 0, start = -1, before = 0;
    NearRuns   runs = {NULL, 0};
    if constexpr (Kind::leaves)
    {
        runs.run = a.runs + a.run_start[cell];
        runs.num = a.run_start[cell + 1] - a.run_start[cell];
    }
    /* where nothing is near a list without sources gives sums of zero */
    const int num_near = Kind::leaves ? max(runs.num, 1) : a.g.num_near;
    while (k < total || next < num_near)
    {
        int fill = 0;
        while ((k < total || next < num_near) && fill + 32 * c_rounds <= ListSize<R>::value)
        {
            if (k >= total)
            {
                make_segments<Kind::leaves>(a, memory->segment, place, runs, face, next, &start, &total);
                next += 32;
                k = before = 0;
                continue;
            }
            gather(a, memory, k, total, start, memory->list + fill, &before);
            fill += min(total - k, 32 * c_rounds);
            k += 32 * c_rounds;
            __syncwarp();
        }
        interact_list<Kind>(a, memory, first, fill, skip, lane);
        if (Kind::virial)
        {
            write_virial<Kind>(a, first > 0, lane);
        }
        if (face == NULL)
        {
            write_sums(a, memory, first > 0, lane);
        }
        first += fill;
        skip = 0;
    }
    if (face != NULL)
    {
        add_force(lane, force);
    }
}

/* The part of the virial, -1/2 the sum of (x_i - x_j - s) (x) f_ij over pairs, that s contributes: 1/2 the vector of
 * the box in a direction (x) the force through its face. A warp has the targets of one cell; rows are those of
 * write_virial. */
template <class R, bool LIMITED>
__global__ void __launch_bounds__(32, sizeof(R) == 8 ? 1 : at_most_blocks(c_blocks))
    near_faces(const __grid_constant__ P2pArgs<R> a)
{
    extern __shared__ char shared[];
    WarpMemory<R>*         memory = reinterpret_cast<WarpMemory<R>*>(shared);
    const int              number = static_cast<int>(blockIdx.x);

    int            place[3] = {0, 0, 0};
    const FaceSide face     = find_face(a.g.inner, a.extent, number, place);
    const int      cell     = cell_at(a.g, place[0], place[1], place[2]);
    R              force[3] = {0, 0, 0};
    for (int tile = a.tile_start[cell]; tile < a.tile_start[cell + 1]; tile++)
    {
        interact_tile<R, P2pKind<c_fieldOnly, LIMITED, false>, 2>(a, memory, tile, a.tiles[tile], &face, force);
    }
    for (R& part : force)
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
        fmm_add_symmetric(0.5 * a.g.n[face.direction], a.box->cell + 3 * face.direction, f, part);
        for (int i = 0; i < 6; i++)
        {
            a.virial[6 * static_cast<size_t>(number) + i] = static_cast<R>(part[i]);
        }
    }
}

template <class R, class Kind>
__global__ void __launch_bounds__(32 * c_warps,
                                  sizeof(R) == 8 ? 1
                                  : Kind::virial ? at_most_blocks(c_blocksVirial)
                                                 : at_most_blocks(c_blocks)) p2p(const __grid_constant__ P2pArgs<R> a)
{
    extern __shared__ char shared[];
    const int              warp   = static_cast<int>(threadIdx.x / 32);
    WarpMemory<R>*         memory = reinterpret_cast<WarpMemory<R>*>(shared) + warp;
    int                    number = static_cast<int>(blockIdx.x) * c_warps + warp;
    const int              others = static_cast<int>(gridDim.x) * c_warps;
    /* A warp has more than one tile only if there are more than the host counted when it last waited. The first is
     * loaded without waiting for their number. */
    const int num_tiles = *a.num_tiles;
    Tile      tile      = a.tiles[number];
    while (number < num_tiles)
    {
        /* in double precision a third target takes so many registers that fewer warps fit */
        if (sizeof(R) == 4 && (c_sizesForThree >> (tile.y - 1) & 1u))
        {
            interact_tile<R, Kind, 3>(a, memory, number, tile, NULL, NULL);
        }
        else
        {
            interact_tile<R, Kind, 2>(a, memory, number, tile, NULL, NULL);
        }
        number += others;
        if (number < num_tiles)
        {
            tile = a.tiles[number];
        }
    }
}

/* How far near vectors lead out of the box in a direction; not at all where it has no face. */
static int face_extent(const gmxfmm_plan* plan, int direction)
{
    return plan->domain.periodic[direction] ? plan->device->near.extent[direction] : 0;
}

/* Number of blocks of near_faces: in each direction, the cells of all layers from which near vectors leave the box at
 * its upper end. */
static int num_faces(const gmxfmm_plan* plan)
{
    const int* n = plan->domain.cells.inner;
    return face_extent(plan, 0) * n[1] * n[2] + face_extent(plan, 1) * n[0] * n[2] + face_extent(plan, 2) * n[0] * n[1];
}

/* Whether P2P adds up the virial of each pair. */
static bool adds_virial(const gmxfmm_plan* plan)
{
    return plan->domain.tree != NULL || fmm_has_given(plan);
}

int fmm_cuda_near_virial_rows(const gmxfmm_plan* plan, int tiles)
{
    return adds_virial(plan) ? tiles : num_faces(plan);
}

gmxfmm_status fmm_cuda_reserve_near_virial(gmxfmm_plan* plan)
{
    fmm_device*        d       = plan->device;
    const ParticleSet* targets = targets_of(d);
    const int          tiles   = enqueues_assign(plan) ? fmm_cuda_most_tiles(plan, targets) : targets->launched_tiles;
    const size_t       rows    = static_cast<size_t>(fmm_cuda_near_virial_rows(plan, tiles));
    return fmm_device_reserve(plan, &d->near.virial, (rows + 1) * 6 * real_size(plan));
}

static double square(double x)
{
    return x * x;
}

template <class R>
P2pArgs<R> fmm_cuda_p2p_args(const gmxfmm_plan* plan, const fmm_device* d)
{
    const fmm_device*  first = plan->device;
    const ParticleSet *all = targets_of(first), *sources = &d->particles.sources;
    const bool         self    = all == &first->particles.sources;
    const ParticleSet* targets = self ? sources : &d->particles.targets;
    P2pArgs<R>         a;
    a.g             = make_geometry(plan);
    a.num_tiles     = &first->particles.assign_results.as<AssignResults>()->num_tiles;
    a.self          = self;
    a.tiles         = targets->tiles.as<Tile>();
    a.cell_start    = sources->cell_start.as<int>();
    a.special_start = d->near.special_start.as<int>();
    a.specials      = d->near.specials.as<Special>();
    a.near_vectors  = d->near.vectors.as<int4>();
    a.xq            = pair_positions(plan, *sources).as<Vec4<R>>();
    a.target        = pair_positions(plan, *targets).as<Vec4<R>>();
    a.out           = first->output.near.as<Vec4<R>>();
    a.virial        = first->near.virial.as<R>();
    a.box           = pair_box(plan, d->domain).as<BoxValues>();
    a.tile_start    = all->tile_start.as<int>();
    a.away          = static_cast<R>(c_away);
    a.least         = static_cast<R>(square(plan->options.min_distance / plan->domain.cells.u));
    a.small         = 0;
    a.run_start     = fmm_is_adaptive(plan) ? first->far.tree.leaves.run_start.as<int>() : NULL;
    a.runs          = fmm_is_adaptive(plan) ? first->far.tree.leaves.runs.as<int2>() : NULL;
    if (fmm_has_given(plan))
    {
        const fmm_cells* c = &plan->domain.cells;
        a.least            = static_cast<R>(square(plan->options.min_distance * fmm_given_scale(plan)));
        a.away             = static_cast<R>((c->origin[0] + (c->n[0] + c_farthest) * c->edge) * fmm_given_scale(plan));
    }
    for (int i = 0; i < 3; i++)
    {
        a.small |= a.g.n[i] < first->near.reach;
        a.extent[i] = face_extent(plan, i);
    }
    return a;
}

template P2pArgs<float>  fmm_cuda_p2p_args<float>(const gmxfmm_plan* plan, const fmm_device* device);
template P2pArgs<double> fmm_cuda_p2p_args<double>(const gmxfmm_plan* plan, const fmm_device* device);

template <class R>
DipoleArgs<R> fmm_cuda_dipole_args(const gmxfmm_plan* plan)
{
    const fmm_device* d    = plan->device;
    const bool        self = targets_of(d) == &d->particles.sources;
    DipoleArgs<R>     a;
    a.mu        = d->particles.sources.mu.as<Vec4<R>>();
    a.target_mu = self ? a.mu : NULL;
    a.gradient  = d->output.near_gradient.as<Symmetric<R>>();
    a.unit      = static_cast<R>(fmm_has_given(plan) ? plan->domain.cells.u * fmm_given_scale(plan) : 1);
    return a;
}

template DipoleArgs<float>  fmm_cuda_dipole_args<float>(const gmxfmm_plan* plan);
template DipoleArgs<double> fmm_cuda_dipole_args<double>(const gmxfmm_plan* plan);

/* P2P of the tiles of args, by so many warps. */
template <class R>
struct P2pLaunch
{
    P2pArgs<R>      args;
    int             warps;
    AllowedKernels* allowed; /* of the current device */
    cudaStream_t    stream;
};

template <class R, class Kind>
static gmxfmm_status launch(gmxfmm_plan* plan, const P2pLaunch<R>& l)
{
    if (l.warps > 0)
    {
        const size_t shared = c_warps * sizeof(WarpMemory<R>);
        FMM_CUDA(plan, (allow_shared(l.allowed, p2p<R, Kind>)));
        p2p<R, Kind><<<blocks_for(l.warps, c_warps), 32 * c_warps, shared, l.stream>>>(l.args);
        FMM_CUDA(plan, cudaGetLastError());
    }
    return GMXFMM_OK;
}

template <class R, P2pWanted WANTED>
static gmxfmm_status launch_kind(gmxfmm_plan* plan, const P2pLaunch<R>& l)
{
    const bool limited = plan->options.min_distance > 0;
    if (fmm_is_adaptive(plan))
    {
        return limited ? launch<R, P2pKind<WANTED, true, true>>(plan, l)
                       : launch<R, P2pKind<WANTED, false, true>>(plan, l);
    }
    return limited ? launch<R, P2pKind<WANTED, true, false>>(plan, l)
                   : launch<R, P2pKind<WANTED, false, false>>(plan, l);
}

template <class R>
static gmxfmm_status launch_wanted(gmxfmm_plan* plan, const StepWanted& wanted, const P2pLaunch<R>& l)
{
    if (wanted.virial && adds_virial(plan))
    {
        return launch_kind<R, c_virialToo>(plan, l);
    }
    return wanted.potential ? launch_kind<R, c_potentialToo>(plan, l) : launch_kind<R, c_fieldOnly>(plan, l);
}

template <class R>
static gmxfmm_status launch_own(gmxfmm_plan* plan, fmm_device* d, const StepWanted& wanted, cudaStream_t stream)
{
    P2pLaunch<R> l = {fmm_cuda_p2p_args<R>(plan, d), d->range.warps, &d->allowed, stream};
    if (has_others(plan->device))
    {
        l.args.num_tiles = &d->range.tiles.as<TileRange>()->num_tiles;
    }
    /* where every tile has a row, the host knows their number: no assignments come on a stream then */
    l.args.virial +=
        6 * static_cast<size_t>(tiles_before(targets_of(plan->device)->launched_tiles, d->range.begin_share));
    return launch_wanted<R>(plan, wanted, l);
}

gmxfmm_status fmm_cuda_p2p(gmxfmm_plan* plan, fmm_device* device, const StepWanted& wanted, cudaStream_t stream)
{
    if (fmm_has_dipoles(plan))
    {
        const int warps = device->range.warps;
        return is_double(plan) ? fmm_cuda_p2p_dipoles<double>(plan, wanted, adds_virial(plan), warps, stream)
                               : fmm_cuda_p2p_dipoles<float>(plan, wanted, adds_virial(plan), warps, stream);
    }
    return is_double(plan) ? launch_own<double>(plan, device, wanted, stream)
                           : launch_own<float>(plan, device, wanted, stream);
}

template <class R>
static gmxfmm_status launch_all(gmxfmm_plan* plan, cudaStream_t stream)
{
    fmm_device* d = plan->device;
    return launch_wanted<R>(plan, {0, 0, 0, 0},
                            {fmm_cuda_p2p_args<R>(plan, d), targets_of(d)->launched_tiles, &d->allowed, stream});
}

gmxfmm_status fmm_cuda_p2p_all(gmxfmm_plan* plan, cudaStream_t stream)
{
    return is_double(plan) ? launch_all<double>(plan, stream) : launch_all<float>(plan, stream);
}

template <class R, bool LIMITED>
static gmxfmm_status launch_faces(gmxfmm_plan* plan, cudaStream_t stream)
{
    const int faces = fmm_cuda_near_virial_rows(plan, 0);
    if (faces > 0)
    {
        FMM_CUDA(plan, (allow_shared(&plan->device->allowed, near_faces<R, LIMITED>)));
        near_faces<R, LIMITED><<<faces, 32, sizeof(WarpMemory<R>), stream>>>(fmm_cuda_p2p_args<R>(plan, plan->device));
        FMM_CUDA(plan, cudaGetLastError());
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_near_faces(gmxfmm_plan* plan, cudaStream_t stream)
{
    const int faces = fmm_cuda_near_virial_rows(plan, 0);
    if (fmm_has_dipoles(plan))
    {
        return faces == 0        ? GMXFMM_OK
               : is_double(plan) ? fmm_cuda_near_faces_dipoles<double>(plan, faces, stream)
                                 : fmm_cuda_near_faces_dipoles<float>(plan, faces, stream);
    }
    if (plan->options.min_distance > 0)
    {
        return is_double(plan) ? launch_faces<double, true>(plan, stream) : launch_faces<float, true>(plan, stream);
    }
    return is_double(plan) ? launch_faces<double, false>(plan, stream) : launch_faces<float, false>(plan, stream);
}
