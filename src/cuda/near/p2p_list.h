/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What kernels of P2P have in common (p2p.cu, p2p_dipoles.h): near cells to a list of sources, lanes to targets, faces
 * of the box. */
#ifndef FMM_CUDA_P2P_LIST_H
#define FMM_CUDA_P2P_LIST_H

#include "cuda/geometry.h"
#include "cuda/near/near.h"
#include "cuda/near/p2p_args.h"

enum
{
    c_strains = 6
};

/* A multiprocessor of 8.6 or 8.7 has no more than 16 blocks at a time. */
static constexpr int at_most_blocks(int wanted)
{
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 870)
    return wanted < 16 ? wanted : 16;
#else
    return wanted;
#endif
}

/* A particle this far away has a finite 1/r, and no charge. */
static const double c_away = 1e4;

/* The same where positions are the caller's: no particle is more than 100 cells away from its own (permute.cu). */
static const double c_farthest = 200;

/* At this distance 1/r is zero, its square being infinite, and so is the force of any charge. */
static __device__ inline float out_of_reach(float)
{
    return 1e30f;
}

static __device__ inline double out_of_reach(double)
{
    return 1e200;
}

/* Sources across a face of the box: those in near cells `layer` or more cells up in a direction. */
struct FaceSide
{
    int direction, layer;
};

/* A near cell's part of the list: source k of the list is particle base + k. */
template <class R>
struct alignas(4 * sizeof(R)) Segment
{
    int base;
    R   x, y, z;
};

/* State of a lane: T targets of the tile, and their sums over sources. */
template <class R, int T>
struct Lane
{
    int     tile, first, count;      /* of the tile */
    int     lanes, groups, group, l; /* lanes in a group, groups, this lane's */
    Vec4<R> target[T];
    int     index[T];
    Vec4<R> sum[T];
    R       w[T][c_strains];            /* sums over sources of q d_a d_b / r^3: xx yy xy xz yz zz, for a virial */
    int     special_begin, special_end; /* of the tile's */
    Special special;                    /* this lane's of the first 32, loaded in advance */
};

/* 1 / b within an ulp or two; with half a unit of room (a + 1/2) / b then gives quotients of small integers exactly */
static __device__ inline float reciprocal(int b)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(static_cast<float>(b)));
    return y;
}

static __device__ inline int quotient(int a, float inverse)
{
    return static_cast<int>((static_cast<float>(a) + 0.5f) * inverse);
}

static __device__ inline float inverse_root(float x)
{
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

static __device__ inline double inverse_root(double x)
{
    return rsqrt(x);
}

/* A neighbour's coordinate k modulo n. In a grid at least as long as the near vectors, adding or subtracting n once is
 * enough. */
template <class R>
static __device__ inline int neighbour(const P2pArgs<R>& a, int k, int n)
{
    if (a.small)
    {
        k %= n;
    }
    k += k < 0 ? n : 0;
    return k >= n ? k - n : k;
}

/* What is near to a leaf of several levels. */
struct NearRuns
{
    const int2* run;
    int         num;
};

/* Makes segments of the near cells or, of a leaf, the runs o .. o + 31, skipping empty cells. *start is the place of a
 * lane's own cell in the part of the list made of these cells, -1 for an empty cell, and *total is the length of that
 * part. With face, sources not on that side of it are moved out of reach, not removed, so that the places of the others
 * in the list stay the same. */
template <bool LEAVES, class R>
static __device__ inline void make_segments(const P2pArgs<R>& a,
                                            Segment<R>*       segment,
                                            const int*        place,
                                            const NearRuns&   runs,
                                            const FaceSide*   face,
                                            int               o,
                                            int*              start,
                                            int*              total)
{
    const int me    = static_cast<int>(threadIdx.x % 32);
    int       begin = 0, count = 0;
    int4      k = make_int4(0, 0, 0, 0);
    R         cell[9];
#pragma unroll
    for (int i = 0; i < 9; i++)
    {
        cell[i] = static_cast<R>(a.box->cell[i]);
    }
    if constexpr (LEAVES)
    {
        if (o + me < runs.num)
        {
            const int2 run = runs.run[o + me];
            begin          = run.x;
            count          = run.y;
        }
    }
    else if (o + me < a.g.num_near)
    {
        k            = a.near_vectors[o + me];
        const int at = cell_at(a.g, neighbour(a, place[0] + k.x, a.g.n[0]), neighbour(a, place[1] + k.y, a.g.n[1]),
                               neighbour(a, place[2] + k.z, a.g.n[2]));
        begin        = a.cell_start[at];
        count        = a.cell_start[at + 1] - begin;
    }
    int sum = count;
#pragma unroll
    for (int step = 1; step < 32; step *= 2)
    {
        const int below = __shfl_up_sync(0xffffffffu, sum, step);
        sum += me >= step ? below : 0;
    }
    *total                = __shfl_sync(0xffffffffu, sum, 31);
    *start                = count > 0 ? sum - count : -1;
    const unsigned filled = __ballot_sync(0xffffffffu, count > 0);
    if (count > 0)
    {
        Segment<R> s;
        const R    kx = static_cast<R>(k.x), ky = static_cast<R>(k.y), kz = static_cast<R>(k.z);
        s.base = begin - (sum - count);
        s.x    = kx * cell[0] + ky * cell[3] + kz * cell[6];
        s.y    = kx * cell[1] + ky * cell[4] + kz * cell[7];
        s.z    = kx * cell[2] + ky * cell[5] + kz * cell[8];
        if (face != NULL && (face->direction == 0 ? k.x : face->direction == 1 ? k.y : k.z) < face->layer)
        {
            s.x = out_of_reach(R(0));
        }
        segment[__popc(filled & ((1u << me) - 1))] = s;
    }
    __syncwarp();
}

/* 1 << place, 0 if place is not in 0..31. */
static __device__ inline unsigned bit_at(int place)
{
    unsigned bit;
    asm("shl.b32 %0, 1, %1;" : "=r"(bit) : "r"(place)); /* clamps, unlike << */
    return bit;
}

template <class R, int T>
static __device__ Lane<R, T> make_lane(const P2pArgs<R>& a, int number, const Tile& tile)
{
    const int  me = static_cast<int>(threadIdx.x % 32);
    Lane<R, T> lane;
    lane.tile           = number;
    lane.first          = tile.x;
    lane.count          = tile.y;
    lane.lanes          = (tile.y + T - 1) / T;
    const float inverse = reciprocal(lane.lanes);
    lane.groups         = quotient(32, inverse);
    lane.group          = quotient(me, inverse);
    lane.l              = me - lane.group * lane.lanes;
    lane.special_begin  = a.special_start[lane.first];
    lane.special_end    = a.special_start[lane.first + lane.count];
    lane.special        = {-1, 0xffffffffu};
    if (me < lane.special_end - lane.special_begin)
    {
        lane.special = a.specials[lane.special_begin + me];
    }
    const bool idle = lane.group >= lane.groups; /* a lane left over: it computes as others do, but is not used */
    lane.group      = idle ? 0 : lane.group;
#pragma unroll
    for (int t = 0; t < T; t++)
    {
        const int index = lane.l + t * lane.lanes, there = min(index, lane.count - 1);
        lane.index[t]  = there;
        lane.target[t] = a.target[lane.first + there];
        lane.sum[t]    = {0, 0, 0, 0};
        for (R& w : lane.w[t])
        {
            w = 0;
        }
        if (idle || index >= lane.count)
        {
            lane.target[t].w = 0; /* adds nothing to the virial */
        }
    }
    return lane;
}

/* The cell of block `number` and the face: the cell's sources `layer` or more cells up in the direction are across a
 * face. Near vectors longer than the box cross several images of the face; the cell then has a block for each of them.
 */
static __device__ inline FaceSide find_face(const int* n, const int* extent, int number, int* place)
{
    FaceSide face = {0, 0};
    int      area = n[1] * n[2];
    while (number >= extent[face.direction] * area)
    {
        number -= extent[face.direction] * area;
        face.direction++;
        area = n[0] * n[3 - face.direction];
    }
    const int d = face.direction, u = d == 0 ? 1 : 0, v = 3 - d - u;
    face.layer = number / area + 1;
    number %= area;
    place[d] = wrapped(-face.layer, n[d]);
    place[u] = number / n[v];
    place[v] = number % n[v];
    return face;
}

#endif
