/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Kernels of M2L by rotations (rotation.h), O(p^3), for one order and precision.
 *
 * The rotation about z by a = phi - pi/2 and the flip, M -> B D(a) M, depend only on the plane through the z axis in
 * which the displacement R lies: 16 planes for 189 displacements (ws = 1; phi and phi + pi are one plane, as theta has
 * a sign). So `rotate_sources` rotates all multipoles to each plane once, a twelfth of the work of a rotation for each
 * translation, and the last flip and rotation of locals follow the sum over a plane. For each translation there
 * remains
 *   L' += D(theta) B^T T(r) conj-flip D(theta) M'.
 *
 * In `translate` the lanes of a warp are 32 targets of one slab with the same displacement. So all angles and matrix
 * elements are the same for all lanes (operator-centric), and sources, stored in tiles of 32 cells, are mostly
 * contiguous. A group of warps computes a translation together: each warp has some degrees and some columns. Rows of
 * one degree are rotated in registers and written to the group's tile in shared memory, [coefficient][lane]; columns of
 * one m are translated along z in place; rows are rotated back and added to the warp's sums, which stay in registers
 * for all of a plane. All sizes are compile-time constants; matrix elements are immediate operands or come from
 * constant memory. The groups of a block have the same targets and divide its list by planes (target-centric). Each has
 * locals in shared memory, which are added up at the end; where there is no room for them, groups add to the locals one
 * after the other, in a fixed order. Groups form teams, whose warps wait for each other between these stages.
 *
 * Translations for which the reduced order is enough (tree_truncation.c) follow in a second pass. They use the first
 * rows of the multipoles and add to the first rows of the locals.
 */
#ifndef FMM_CUDA_ROTATION_KERNELS_H
#define FMM_CUDA_ROTATION_KERNELS_H

#include "cuda/octree/rotation_arguments.h"
#include "cuda/octree/rotation_rows.h"

namespace rotation
{

/* Rotates the multipoles of 32 cells to one plane, B D(a) M. Grid: (tiles / warps, planes). */
template <class R, int P>
__global__ void __launch_bounds__(256) rotate_sources(Arguments<R> a)
{
    const int lane = threadIdx.x % 32, tile = (blockIdx.x * blockDim.x + threadIdx.x) / 32, cell = 32 * tile + lane;
    if (32 * tile > a.lists.num)
    {
        return;
    }
    const R* angle = static_cast<const R*>(a.schedule.angle) + static_cast<size_t>(blockIdx.y) * (2 * P);
    const R* in    = a.multipole + (cell <= a.lists.num ? cell : a.lists.num);
    R*       out = a.rotated + blockIdx.y * a.plane_size + static_cast<size_t>(tile) * (32 * (P + 1) * (P + 1)) + lane;
    static_for<0, P + 1>(
        [&](auto degree)
        {
            constexpr int          n      = decltype(degree)::value;
            constexpr Places<P, n> places = make_places<P, n>();
            R                      row[2 * n + 1], flipped[2 * n + 1];
#pragma unroll
            for (int i = 0; i <= 2 * n; i++)
            {
                row[i] = in[places.at[i] * a.lists.stride];
            }
            rotate<n>(angle, row);
            flip<n>(flips<R, P>(ROT_FLIP), row, flipped);
#pragma unroll
            for (int i = 0; i <= 2 * n; i++)
            {
                out[(n * n + i) * 32] = flipped[i];
            }
        });
}

template <class R, int Size>
__device__ __forceinline__ void clear(R (&sums)[Size])
{
    static_for<0, Size>([&](auto i) { sums[decltype(i)::value] = 0; });
}

/* The current translation of a group and, in each lane, its source. */
struct CurrentStep
{
    int  vector, plane, rank, source;
    bool any; /* whether any lane has a source */
};

/* A barrier of all warps of a team; each warp may call it from a different place in the code. Waiting for the warps of
 * one group would be enough, but warps that run the same instructions at the same time fetch them once. A warp that is
 * a team by itself (ALONE) need not wait: each of its lanes has its own column of the tile (a level takes 0.91 to 0.98
 * of the time at orders 3 to 5: benchmarks/results/nvidia-h200/pairs-rotation.json). */
template <bool ALONE>
__device__ __forceinline__ void wait_for_team(int barrier, int threads)
{
    if constexpr (!ALONE)
    {
        asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
    }
}

/* Translations of order Q between expansions of order P: the work of warp number Warp of a group of Warps. */
template <class R, int P, int Q, int Warps, int Warp>
struct Translator
{
    static constexpr bool c_hasSums = fmm_rotation_has_sums(P, sizeof(R) == sizeof(double));
    static constexpr bool c_isAlone = c_hasSums && Warps == 1; /* each group is a team, and a single warp */

    /* Rows of the source, times D(theta), the flip that conjugates, and n!/r^n, are written to the tile. */
    static __device__ __forceinline__ void rotate_rows(const R* source, const R* direction, R* tile)
    {
        static_for<0, Q + 1>(
            [&](auto degree)
            {
                constexpr int n = decltype(degree)::value;
                if constexpr (divide_work<Q, Warps>().degree_warp[n] == Warp)
                {
                    constexpr Places<Q, n> places = make_places<Q, n>();
                    R                      row[2 * n + 1], flipped[2 * n + 1];
#pragma unroll
                    for (int i = 0; i <= 2 * n; i++)
                    {
                        row[i] = __ldg(source + (n * n + i) * 32);
                    }
                    rotate<n>(direction, row);
                    flip<n>(flips<R, P>(ROT_FLIP_TURNED), row, flipped);
                    const R w = direction[2 * P + n];
#pragma unroll
                    for (int i = 0; i <= 2 * n; i++)
                    {
                        tile[places.at[i] * 32] = flipped[i] * w;
                    }
                }
            });
    }

    static __device__ __forceinline__ void translate_columns(R* tile)
    {
        static_for<0, Q + 1>(
            [&](auto column)
            {
                constexpr int m = decltype(column)::value, size = Q + 1 - m;
                if constexpr (divide_work<Q, Warps>().column_warp[m] == Warp)
                {
                    R* at = tile + 32 * harm_re(Q, m, m);
#pragma unroll 1 /* the same instructions for real and imaginary parts */
                    for (int im = 0; im <= (m > 0); im++, at += 32 * size)
                    {
                        R in[size];
#pragma unroll
                        for (int n = 0; n < size; n++)
                        {
                            in[n] = at[32 * n];
                        }
#pragma unroll
                        for (int k = 0; k < size; k++)
                        {
                            R sum = binomial<R, P>(k + m, m) * in[0];
#pragma unroll
                            for (int n = 1; n < size; n++)
                            {
                                sum += binomial<R, P>(k + m, n + m) * in[n];
                            }
                            at[32 * k] = sum;
                        }
                    }
                }
            });
    }

    /* Rows of the tile, times k!/r^{k+1}, the flip back and D(theta), are added to sums. */
    template <int Size>
    static __device__ __forceinline__ void add_rows(const R* tile, const R* direction, R (&sums)[Size])
    {
        static_for<0, Q + 1>(
            [&](auto degree)
            {
                constexpr int n = decltype(degree)::value;
                if constexpr (divide_work<Q, Warps>().degree_warp[n] == Warp)
                {
                    constexpr Places<Q, n> places = make_places<Q, n>();
                    constexpr int          at     = divide_work<Q, Warps>().degree_at[n];
                    R                      row[2 * n + 1], flipped[2 * n + 1];
                    const R                w = direction[3 * P + 1 + n];
#pragma unroll
                    for (int i = 0; i <= 2 * n; i++)
                    {
                        row[i] = tile[places.at[i] * 32] * w;
                    }
                    flip<n>(flips<R, P>(ROT_FLIP_LOCAL), row, flipped);
                    sums[at] += flipped[0];
#pragma unroll
                    for (int m = 1; m <= n; m++)
                    {
                        const Angle<R> e  = angle_of(direction, m);
                        const R        re = flipped[rot_re(n, m) - n * n], im = flipped[rot_im(n, m) - n * n];
                        sums[at + rot_re(n, m) - n * n] += re * e.c - im * e.s;
                        sums[at + rot_im(n, m) - n * n] += re * e.s + im * e.c;
                    }
                }
            });
    }

    /* The sums, times the last flip and D(a), are added to the locals. */
    template <int Size>
    static __device__ __forceinline__ void
    add_to_local(const R* angle, R (&sums)[Size], bool is_target, R* local, size_t stride)
    {
        static_for<0, Q + 1>(
            [&](auto degree)
            {
                constexpr int n = decltype(degree)::value;
                if constexpr (divide_work<Q, Warps>().degree_warp[n] == Warp)
                {
                    constexpr Places<P, n> places = make_places<P, n>();
                    constexpr int          at     = divide_work<Q, Warps>().degree_at[n];
                    R                      row[2 * n + 1], flipped[2 * n + 1];
#pragma unroll
                    for (int i = 0; i <= 2 * n; i++)
                    {
                        row[i] = sums[at + i];
                    }
                    flip<n>(flips<R, P>(ROT_FLIP_LOCAL), row, flipped);
                    rotate<n>(angle, flipped);
                    if (is_target)
                    {
#pragma unroll
                        for (int i = 0; i <= 2 * n; i++)
                        {
                            local[places.at[i] * stride] += flipped[i];
                        }
                    }
                }
            });
    }

    /* Whether all runs of lower rank have been added to the locals. added: by warp of a group, the number of runs
     * added. The first run of the reduced order waits for all warps' runs of the full order, since warps have other
     * degrees then. Atomics, since other groups write while this one waits. */
    static __device__ __forceinline__ bool is_next(int rank, int first, int* added)
    {
        bool is_mine = atomicAdd(added + Warp, 0) == rank;
        if (Q < P && rank == first)
        {
#pragma unroll
            for (int warp = 0; warp < Warps; warp++)
            {
                is_mine = is_mine && atomicAdd(added + warp, 0) >= first;
            }
        }
        return is_mine;
    }

    /* Adds the sums of a run to the group's locals in shared memory or, where there is no room for them, in the order
     * of ranks to those of all groups. first: the lowest rank of this order. */
    template <int Size>
    static __device__ __forceinline__ void finish(const Arguments<R>& a,
                                                  const CurrentStep&  last,
                                                  int                 first,
                                                  R (&sums)[Size],
                                                  bool is_target,
                                                  R*   local,
                                                  R*   group_local,
                                                  int* added)
    {
        const R* angle = static_cast<const R*>(a.schedule.angle) + last.plane * (2 * P);
        if constexpr (c_hasSums)
        {
            add_to_local(angle, sums, true, group_local, 32);
        }
        else
        {
            while (threadIdx.x % 32 == 0 && !is_next(last.rank, first, added))
            {
            }
            __syncwarp();
            size_t stride = a.lists.stride;
            asm volatile("" : "+l"(stride)); /* else addresses would be computed in advance, and spilled */
            add_to_local(angle, sums, is_target, local, stride);
            __threadfence_block();
            __syncwarp();
            if (threadIdx.x % 32 == 0)
            {
                atomicExch(added + Warp, last.rank + 1);
            }
        }
    }

    /* Loads the translation at *step, or none if that is `end` or later. */
    static __device__ __forceinline__ CurrentStep load_step(const Arguments<R>& a,
                                                            const RotationStep* step,
                                                            const RotationStep* end,
                                                            const int*          near)
    {
        CurrentStep x = {0, 0, -1, a.lists.num, false};
        if (step < end)
        {
            const RotationStep s = *step;
            x.vector             = s.vector;
            x.plane              = s.plane;
            x.rank               = s.rank;
            x.source             = a.lists.child[8 * near[32 * s.near] + s.octant];
        }
        x.any = __any_sync(0xffffffffu, x.source != a.lists.num); /* the same for all warps of the group */
        return x;
    }

    static __device__ __forceinline__ const R* rows_of(const Arguments<R>& a, const CurrentStep& x)
    {
        return a.rotated + x.plane * a.plane_size + static_cast<size_t>(x.source / 32) * (32 * (P + 1) * (P + 1)) +
               x.source % 32;
    }

    /* All translations of a group, in step with the other groups of its team. Every group makes as many steps as the
     * one with most in the block, so that all warps reach the barriers equally often (racecheck of compute-sanitizer
     * assumes that). */
    static __device__ __forceinline__ void run(const Arguments<R>& a,
                                               int                 slab,
                                               int                 group,
                                               const int*          near,
                                               bool                is_target,
                                               R*                  local,
                                               R*                  tile,
                                               R*                  group_local,
                                               int*                added)
    {
        constexpr int       row_size = (4 * P + 5) / 4 * 4, pass = Q < P;
        const R*            directions = static_cast<const R*>(a.schedule.direction);
        const int*          start      = a.schedule.start[pass][slab] + blockIdx.y * a.schedule.groups + group;
        const RotationStep* step       = a.schedule.step[slab] + start[0];
        const RotationStep* end        = a.schedule.step[slab] + start[1];
        const int           first      = Q < P ? a.schedule.full_runs[slab][blockIdx.y] : 0;
        const int           team       = group % a.schedule.teams;
        const int           most       = a.schedule.most[pass][slab][blockIdx.y];
        /* barrier 0 is __syncthreads, which blocks that add up locals need at the end */
        const int barrier = c_hasSums ? team + 1 : team;
        const int threads = 32 * Warps * ((a.schedule.groups - team + a.schedule.teams - 1) / a.schedule.teams);
        R         sums[divide_work<Q, Warps>().sums[Warp]];
        clear(sums);
        CurrentStep next = load_step(a, step, end, near);
        for (int i = 0; i < most; i++)
        {
            const CurrentStep x         = next;
            const R*          direction = directions + x.vector * row_size;
            next                        = load_step(a, ++step, end, near);
            if (x.any)
            {
                rotate_rows(rows_of(a, x), direction, tile);
            }
            wait_for_team<c_isAlone>(barrier, threads);
            if (x.any)
            {
                translate_columns(tile);
            }
            wait_for_team<c_isAlone>(barrier, threads);
            if (x.any)
            {
                add_rows(tile, direction, sums);
            }
            wait_for_team<c_isAlone>(barrier, threads);
            if (x.rank >= 0)
            {
                finish(a, x, first, sums, is_target, local, group_local, added);
                clear(sums);
            }
        }
    }
};

template <class R>
FMM_HD int num_warps(int p)
{
    return fmm_rotation_warps(p, sizeof(R) == sizeof(double));
}

template <class R>
FMM_HD int num_groups(int p)
{
    return num_warps<R>(p) / group_warps<R>(p);
}

/* A block has 32 targets. Blocks 8 i + c have the targets of slab c; the list of the same targets is divided among the
 * blocks along y. Shared memory: tiles, locals of groups, near cells of the targets' parents. */
template <class R, int P>
__global__ void __launch_bounds__(32 * num_warps<R>(P), fmm_rotation_blocks(P, sizeof(R) == sizeof(double)))
    translate(Arguments<R> a)
{
    constexpr int            per_group = group_warps<R>(P); /* warps */
    extern __shared__ double memory[];
    __shared__ int           added[per_group];
    const int                slab = blockIdx.x % 8, first = a.lists.slab[slab] + 32 * (blockIdx.x / 8);
    if (first >= a.lists.slab[slab + 1])
    {
        return;
    }
    const int     lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = warp / per_group, member = warp % per_group;
    const bool    is_target = first + lane < a.lists.slab[slab + 1];
    const int     target    = is_target ? first + lane : a.lists.slab[slab + 1] - 1;
    constexpr int groups = num_groups<R>(P), tile_size = 32 * (P + 1) * (P + 1);
    constexpr bool has_sums = fmm_rotation_has_sums(P, sizeof(R) == sizeof(double));
    R*             tiles    = reinterpret_cast<R*>(memory);
    R*             sums     = tiles + groups * tile_size;
    int*           near     = reinterpret_cast<int*>(has_sums ? sums + groups * tile_size : sums);
    const int      parent   = a.lists.parent[target];
    for (int o = warp; o < a.lists.num_near; o += num_warps<R>(P))
    {
        near[32 * o + lane] = a.lists.near[static_cast<size_t>(parent) * a.lists.num_near + o];
    }
    for (int i = threadIdx.x; has_sums && i < groups * tile_size; i += blockDim.x)
    {
        sums[i] = 0;
    }
    if (threadIdx.x < per_group)
    {
        added[threadIdx.x] = 0;
    }
    __syncthreads();
    R* tile  = tiles + group * tile_size + lane;
    R* local = a.local + blockIdx.y * a.local_size;
    static_for<0, per_group>(
        [&](auto which)
        {
            constexpr int mine = decltype(which)::value;
            if (member == mine)
            {
                constexpr int reduced = rot_reduced_order(P);
                Translator<R, P, P, per_group, mine>::run(a, slab, group, near + lane, is_target, local + target, tile,
                                                          sums + group * tile_size + lane, added);
                if constexpr (reduced < P)
                {
                    Translator<R, P, reduced, per_group, mine>::run(a, slab, group, near + lane, is_target,
                                                                    local + target, tile,
                                                                    sums + group * tile_size + lane, added);
                }
            }
        });
    if constexpr (has_sums)
    {
        __syncthreads();
        for (int i = warp; is_target && i < (P + 1) * (P + 1); i += num_warps<R>(P))
        {
            R sum = local[i * a.lists.stride + target];
            for (int g = 0; g < groups; g++)
            {
                sum += sums[g * tile_size + 32 * i + lane];
            }
            local[i * a.lists.stride + target] = sum;
        }
    }
}

} // namespace rotation

#endif
