/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sums over particles that come out the same in every run: blocks write rows, the last one to finish adds them up. */
#ifndef FMM_CUDA_SUMS_H
#define FMM_CUDA_SUMS_H

#include <cuda_runtime.h>

enum
{
    c_rowsAtOnce = 12 /* that a thread has on their way from memory in column_sum */
};

/* Sum over the threads of a block, valid in thread 0; all threads must come here. */
template <int THREADS>
static __device__ double block_sum(double value)
{
    __shared__ double warp_sum[THREADS / 32];
    for (int step = 16; step > 0; step /= 2)
    {
        value += __shfl_down_sync(0xffffffffu, value, step);
    }
    __syncthreads(); /* warp_sum of an earlier call has been read */
    if (threadIdx.x % 32 == 0)
    {
        warp_sum[threadIdx.x / 32] = value;
    }
    __syncthreads();
    double sum = 0;
    for (int w = 0; w < THREADS / 32 && threadIdx.x == 0; w++)
    {
        sum += warp_sum[w];
    }
    return sum;
}

/* Sums of each of `value` over the threads of a block to to[N], each by another thread; all threads must come here,
 * once in a kernel. First each warp adds up to LEFT parts, then all warps have some of the sums each: to add up all of
 * them in each warp is so much code that fetching it takes longer than the sums. Shared memory: N LEFT THREADS / 4
 * bytes. */
template <int THREADS, int LEFT, int N>
static __device__ void block_sums(const double (&value)[N], double* to)
{
    constexpr int     width = THREADS / 32 * LEFT;
    __shared__ double part[N][width];
    const int         lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
#pragma unroll /* values in registers */
    for (int k = 0; k < N; k++)
    {
        double sum = value[k];
        for (int step = 16; step >= LEFT; step /= 2)
        {
            sum += __shfl_down_sync(0xffffffffu, sum, step);
        }
        if (lane < LEFT)
        {
            part[k][LEFT * warp + lane] = sum;
        }
    }
    __syncthreads();
#pragma unroll 1
    for (int k = warp; k < N; k += THREADS / 32)
    {
        double sum = 0;
        for (int i = lane; i < width; i += 32)
        {
            sum += part[k][i];
        }
        for (int step = 16; step > 0; step /= 2)
        {
            sum += __shfl_down_sync(0xffffffffu, sum, step);
        }
        if (lane == 0)
        {
            to[k] = sum;
        }
    }
}

/* True in all threads of the last block that gets here; what the others wrote before is visible to it then. */
static __device__ bool is_last_block(unsigned* done)
{
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
    {
        last = atomicAdd(done, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (last)
    {
        __threadfence();
    }
    return last;
}

/* Column sums of rows[num_rows][width] in a fixed order, width <= THREADS: groups of `width` threads have every so many
 * rows, since one thread a column would wait for memory at each. Valid in threads < width; all threads of a block of
 * THREADS must come here. */
template <int THREADS, class T>
static __device__ double column_sum(const T* rows, int num_rows, int width)
{
    __shared__ double part[THREADS];
    const int         me = static_cast<int>(threadIdx.x), groups = THREADS / width, group = me / width;
    double            sum = 0, total = 0;
    const T*          from = rows + me % width;
#pragma unroll 1
    for (int row = group < groups ? group : num_rows; row < num_rows; row += c_rowsAtOnce * groups)
    {
        double part_of[c_rowsAtOnce]; /* loads that do not wait for each other, those of the last rows neither */
#pragma unroll
        for (int k = 0; k < c_rowsAtOnce; k++)
        {
            const int at = row + k * groups;
            part_of[k]   = at < num_rows ? static_cast<double>(__ldcg(from + static_cast<size_t>(at) * width)) : 0;
        }
#pragma unroll
        for (int k = 0; k < c_rowsAtOnce; k++)
        {
            sum += part_of[k];
        }
    }
    __syncthreads(); /* part of an earlier call has been read */
    part[me] = sum;
    __syncthreads();
#pragma unroll 4
    for (int g = 0; g < groups && me < width; g++)
    {
        total += part[g * width + me];
    }
    return total;
}

#endif
