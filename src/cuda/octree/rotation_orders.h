/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The orders that rotation_kernels.h is compiled for in the build, and how many warps and blocks each order uses. */
#ifndef FMM_CUDA_ROTATION_ORDERS_H
#define FMM_CUDA_ROTATION_ORDERS_H

/* FMM_FEW_ORDERS is defined unless GMXFMM_CUDA_ALL_ORDERS is ON (octree.cmake). */
#ifdef FMM_FEW_ORDERS
#    define FMM_ROTATION_ORDERS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#else
// clang-format off
#    define FMM_ROTATION_ORDERS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) \
                                   X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24)
// clang-format on
#endif

#define FMM_COUNT_ORDER(p) +1
static inline int fmm_last_rotation_order()
{
    return FMM_ROTATION_ORDERS(FMM_COUNT_ORDER) - 1;
}
#undef FMM_COUNT_ORDER

/* Warps of a group, which compute a translation together. Each holds the sums of about (p+1)^2 / warps coefficients, in
 * 1 or 2 registers each. Fewer warps in a group mean more groups in a block, so that more warps run the same
 * instructions, of which there are more than the instruction cache holds. */
constexpr __host__ __device__ int fmm_rotation_group_warps(int p, bool is_double)
{
    const int registers = (p + 1) * (p + 1) * (is_double ? 2 : 1);
    return registers <= (is_double ? 50 : 40) ? 1
           : registers <= 170                 ? 2
           : registers <= 340                 ? 4
           : registers <= 650 && is_double    ? 4
                                              : 8;
}

/* Blocks on a multiprocessor: with two, of half the size, one computes while the other waits for its slowest warp (the
 * far field takes 0.74 of the time at order 6, 0.94 at order 8: benchmarks/results/nvidia-h200/pairs-octree.json). */
constexpr __host__ __device__ int fmm_rotation_blocks(int p, bool is_double)
{
    return !is_double && p <= 10 ? 2 : 1;
}

/* Warps of a block. With 16 warps a thread has 128 registers, with 12 168, with 8 255, or 128 if there are two blocks.
 */
constexpr __host__ __device__ int fmm_rotation_warps(int p, bool is_double)
{
    const int registers = (p + 1) * (p + 1) * (is_double ? 2 : 1);
    return fmm_rotation_blocks(p, is_double) > 1 || (is_double && p > 12)   ? 8
           : fmm_rotation_group_warps(p, is_double) == 2 && registers > 130 ? 12
                                                                            : 16;
}

/* Whether each group has locals of its own in shared memory, so that none waits for another until the end: a level
 * takes 0.65 to 0.85 of the time at orders 4 to 8 (benchmarks/results/nvidia-h200/pairs-rotation.json). They have if
 * there are two blocks on a multiprocessor, and one fits on devices with 99 KiB. */
constexpr __host__ __device__ bool fmm_rotation_has_sums(int p, bool is_double)
{
    const int groups = fmm_rotation_warps(p, is_double) / fmm_rotation_group_warps(p, is_double);
    const int tiles = 2 * groups * 32 * (p + 1) * (p + 1) * 4, near = 32 * 125 * 4;
    return fmm_rotation_blocks(p, is_double) > 1 && tiles + near <= 99 * 1024;
}

/* Teams of a block; groups are in step with those of their team only. There is one team for each group, so that one
 * loads while another computes, or one for all, so that instructions are fetched once. Which is faster was measured for
 * all numbers of teams (d = 5, H200). */
constexpr __host__ __device__ int fmm_rotation_teams(int p, bool is_double)
{
    return p <= (is_double ? 8 : 12) ? fmm_rotation_warps(p, is_double) / fmm_rotation_group_warps(p, is_double) : 1;
}

#endif
