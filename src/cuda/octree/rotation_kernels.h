/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Kernels of M2L by rotations (rotation.h), O(p^3), for one order and precision.
 *
 * A turn about z by a = phi - pi/2 and a flip, M -> B D(a) M, depend on the plane through the z axis in which the
 * displacement R lies, not on where R points in it: 16 planes for 189 displacements (ws = 1; phi and phi + pi are one
 * plane, theta having a sign). So `turn` brings all multipoles to each plane once, a twelfth of the work of one turn
 * for each translation, and the last flip and turn of locals follow the sum over a plane. What is left for each
 * translation is
 *   L' += D(theta) B^T T(r) conj-flip D(theta) M'.
 *
 * In `translate` the lanes of a warp are 32 targets of one slab with the same displacement, so that all angles and
 * matrix elements are the same for all lanes (operator-centric) and sources, stored in tiles of 32 cells, come in runs.
 * A tile of c_roles warps, its roles, shares a translation: each role has some degrees and some columns. Rows of one
 * degree are turned in registers and go to shared memory, [coefficient][lane]; columns of one m are translated along z
 * in place; rows are turned back and added to the role's sums, which stay in registers for all of a plane. All sizes
 * are known to the compiler; matrix elements are immediate operands or come from constant memory. Groups of roles share
 * the targets of a block and divide its list by planes (target-centric). Each has locals in shared memory, which are
 * added up at the end; where there is no room for them, groups add to the locals one after the other, in an order that
 * is fixed. Groups form teams that go through the stages together.
 *
 * Translations that need no more than the reduced order (tree_truncation.c) follow those of the full one in a pass of
 * their own: a lower order is the beginning of a higher one in rows, and what it adds to locals is, too.
 */
#ifndef FMM_CUDA_ROTATION_KERNELS_H
#define FMM_CUDA_ROTATION_KERNELS_H

#include "cuda/octree/rotation_arguments.h"
#include "cuda/octree/rotation_rows.h"

namespace rotation
{

/* Multipoles of 32 cells turned into one plane, B D(a) M. grid: (tiles / warps, planes). */
template <class R, int P>
__global__ void __launch_bounds__(256) turn(Arguments<R> a)
{
    const int lane = threadIdx.x % 32, tile = (blockIdx.x * blockDim.x + threadIdx.x) / 32, cell = 32 * tile + lane;
    if (32 * tile > a.lists.num)
    {
        return;
    }
    const R* angle = static_cast<const R*>(a.schedule.angle) + static_cast<size_t>(blockIdx.y) * (2 * P);
    const R* in    = a.multipole + (cell <= a.lists.num ? cell : a.lists.num);
    R*       out   = a.turned + blockIdx.y * a.plane_size + static_cast<size_t>(tile) * (32 * (P + 1) * (P + 1)) + lane;
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

/* What a group has in hand: a translation and, in each lane, its source. */
struct InHand
{
    int  vector, plane, turn, source;
    bool any; /* lane with a source */
};

/* Waits for all warps of a team, each of which may be at a place of its own in the code: also where the roles of one
 * group would be enough, since warps that run the same instructions at the same time fetch them once. A warp by itself
 * need not: each of its lanes has a column of the tile of its own (a level takes 0.91 to 0.98 of the time at orders 3
 * to 5: benchmarks/results/nvidia-h200/pairs-rotation.json). */
template <bool ALONE>
__device__ __forceinline__ void meet(int barrier, int threads)
{
    if constexpr (!ALONE)
    {
        asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
    }
}

/* Translations of order Q between expansions of order P. */
template <class R, int P, int Q, int Roles, int Role>
struct Translator
{
    static constexpr bool c_hasSums = fmm_rotation_has_sums(P, sizeof(R) == sizeof(double));
    static constexpr bool c_isAlone = c_hasSums && Roles == 1; /* each group is a team then */

    /* D(theta) and the flip that conjugates, times n!/r^n: rows of the source to the tile. */
    static __device__ __forceinline__ void turn_rows(const R* source, const R* direction, R* tile)
    {
        static_for<0, Q + 1>(
            [&](auto degree)
            {
                constexpr int n = decltype(degree)::value;
                if constexpr (divide_labour<Q, Roles>().degree_role[n] == Role)
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
                if constexpr (divide_labour<Q, Roles>().column_role[m] == Role)
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

    /* k!/r^{k+1}, the flip back and D(theta): rows of the tile added to sums. */
    template <int Size>
    static __device__ __forceinline__ void add_rows(const R* tile, const R* direction, R (&sums)[Size])
    {
        static_for<0, Q + 1>(
            [&](auto degree)
            {
                constexpr int n = decltype(degree)::value;
                if constexpr (divide_labour<Q, Roles>().degree_role[n] == Role)
                {
                    constexpr Places<Q, n> places = make_places<Q, n>();
                    constexpr int          at     = divide_labour<Q, Roles>().degree_at[n];
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

    /* The last flip and D(a), and on to the locals. */
    template <int Size>
    static __device__ __forceinline__ void
    add_to_local(const R* angle, R (&sums)[Size], bool is_target, R* local, size_t stride)
    {
        static_for<0, Q + 1>(
            [&](auto degree)
            {
                constexpr int n = decltype(degree)::value;
                if constexpr (divide_labour<Q, Roles>().degree_role[n] == Role)
                {
                    constexpr Places<P, n> places = make_places<P, n>();
                    constexpr int          at     = divide_labour<Q, Roles>().degree_at[n];
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

    /* Whether the locals have all before this run. The first run of the reduced order waits for the full order's of all
     * roles, since degrees are with other roles then. Atomics, since others write while this one waits. */
    static __device__ __forceinline__ bool is_turn(int mine, int first, int* turn)
    {
        bool is_mine = atomicAdd(turn + Role, 0) == mine;
        if (Q < P && mine == first)
        {
#pragma unroll
            for (int role = 0; role < Roles; role++)
            {
                is_mine = is_mine && atomicAdd(turn + role, 0) >= first;
            }
        }
        return is_mine;
    }

    /* Adds the sums of a run to the group's locals in shared memory, or, where there is no room for them, to those of
     * all groups when it is its turn; `first`: the first run of this order's. */
    template <int Size>
    static __device__ __forceinline__ void finish(const Arguments<R>& a,
                                                  const InHand&       last,
                                                  int                 first,
                                                  R (&sums)[Size],
                                                  bool is_target,
                                                  R*   local,
                                                  R*   group_local,
                                                  int* turn)
    {
        const R* angle = static_cast<const R*>(a.schedule.angle) + last.plane * (2 * P);
        if constexpr (c_hasSums)
        {
            add_to_local(angle, sums, true, group_local, 32);
        }
        else
        {
            while (threadIdx.x % 32 == 0 && !is_turn(last.turn, first, turn))
            {
            }
            __syncwarp();
            size_t stride = a.lists.stride;
            asm volatile("" : "+l"(stride)); /* or addresses would be computed ahead, and spilled */
            add_to_local(angle, sums, is_target, local, stride);
            __threadfence_block();
            __syncwarp();
            if (threadIdx.x % 32 == 0)
            {
                atomicExch(turn + Role, last.turn + 1);
            }
        }
    }

    /* The translation at *step if it is before `end`. */
    static __device__ __forceinline__ InHand take(const Arguments<R>& a,
                                                  const RotationStep* step,
                                                  const RotationStep* end,
                                                  const int*          near)
    {
        InHand x = {0, 0, -1, a.lists.num, false};
        if (step < end)
        {
            const RotationStep s = *step;
            x.vector             = s.vector;
            x.plane              = s.plane;
            x.turn               = s.turn;
            x.source             = a.lists.child[8 * near[32 * s.near] + s.octant];
        }
        x.any = __any_sync(0xffffffffu, x.source != a.lists.num); /* in all roles alike */
        return x;
    }

    static __device__ __forceinline__ const R* rows_of(const Arguments<R>& a, const InHand& x)
    {
        return a.turned + x.plane * a.plane_size + static_cast<size_t>(x.source / 32) * (32 * (P + 1) * (P + 1)) +
               x.source % 32;
    }

    /* All translations of a group, in step with the other groups of its team; as many steps as the group of the block
     * that has most, so that all warps meet equally often (racecheck of compute-sanitizer assumes that). */
    static __device__ __forceinline__ void run(const Arguments<R>& a,
                                               int                 slab,
                                               int                 group,
                                               const int*          near,
                                               bool                is_target,
                                               R*                  local,
                                               R*                  tile,
                                               R*                  group_local,
                                               int*                turn)
    {
        constexpr int       row_size = (4 * P + 5) / 4 * 4, pass = Q < P;
        const R*            directions = static_cast<const R*>(a.schedule.direction);
        const int*          start      = a.schedule.start[pass][slab] + blockIdx.y * a.schedule.groups + group;
        const RotationStep* step       = a.schedule.step[slab] + start[0];
        const RotationStep* end        = a.schedule.step[slab] + start[1];
        const int           first      = Q < P ? a.schedule.full_runs[slab][blockIdx.y] : 0;
        const int           team       = group % a.schedule.teams;
        const int           most       = a.schedule.most[pass][slab][blockIdx.y];
        const int barrier = c_hasSums ? team + 1 : team; /* 0: of the whole block, which waits for its groups' locals */
        const int threads = 32 * Roles * ((a.schedule.groups - team + a.schedule.teams - 1) / a.schedule.teams);
        R         sums[divide_labour<Q, Roles>().sums[Role]];
        clear(sums);
        InHand next = take(a, step, end, near);
        for (int i = 0; i < most; i++)
        {
            const InHand x         = next;
            const R*     direction = directions + x.vector * row_size;
            next                   = take(a, ++step, end, near);
            if (x.any)
            {
                turn_rows(rows_of(a, x), direction, tile);
            }
            meet<c_isAlone>(barrier, threads);
            if (x.any)
            {
                translate_columns(tile);
            }
            meet<c_isAlone>(barrier, threads);
            if (x.any)
            {
                add_rows(tile, direction, sums);
            }
            meet<c_isAlone>(barrier, threads);
            if (x.turn >= 0)
            {
                finish(a, x, first, sums, is_target, local, group_local, turn);
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
    return num_warps<R>(p) / num_roles<R>(p);
}

/* A block has 32 targets; blocks 8 i + c go through slab c, those along y share a list. Shared memory: tiles, locals of
 * groups, near cells of the targets' parents. */
template <class R, int P>
__global__ void __launch_bounds__(32 * num_warps<R>(P), fmm_rotation_blocks(P, sizeof(R) == sizeof(double)))
    translate(Arguments<R> a)
{
    constexpr int            roles = num_roles<R>(P);
    extern __shared__ double memory[];
    __shared__ int           turn[roles];
    const int                slab = blockIdx.x % 8, first = a.lists.slab[slab] + 32 * (blockIdx.x / 8);
    if (first >= a.lists.slab[slab + 1])
    {
        return;
    }
    const int      lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = warp / roles, role = warp % roles;
    const bool     is_target = first + lane < a.lists.slab[slab + 1];
    const int      target    = is_target ? first + lane : a.lists.slab[slab + 1] - 1;
    constexpr int  groups = num_groups<R>(P), tile_size = 32 * (P + 1) * (P + 1);
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
    if (threadIdx.x < roles)
    {
        turn[threadIdx.x] = 0;
    }
    __syncthreads();
    R* tile  = tiles + group * tile_size + lane;
    R* local = a.local + blockIdx.y * a.local_size;
    static_for<0, roles>(
        [&](auto which)
        {
            constexpr int mine = decltype(which)::value;
            if (role == mine)
            {
                constexpr int reduced = rot_reduced_order(P);
                Translator<R, P, P, roles, mine>::run(a, slab, group, near + lane, is_target, local + target, tile,
                                                      sums + group * tile_size + lane, turn);
                if constexpr (reduced < P)
                {
                    Translator<R, P, reduced, roles, mine>::run(a, slab, group, near + lane, is_target, local + target,
                                                                tile, sums + group * tile_size + lane, turn);
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
