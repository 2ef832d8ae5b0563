/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sums over particles with the same bits in every run: each block writes a row, and the last block to finish adds up
 * the rows in a fixed order. */
#ifndef FMM_CUDA_SUMS_H
#define FMM_CUDA_SUMS_H

#include <cuda_runtime.h>

enum
{
    c_rowsAtOnce = 12 /* loads of a thread in flight at once in column_sum */
};

/* Sum over the threads of a block, valid in thread 0; all threads must call this. */
template <int THREADS>
static __device__ double block_sum(double value)
{
    __shared__ double warp_sum[THREADS / 32];
    for (int step = 16; step > 0; step /= 2)
    {
        value += __shfl_down_sync(0xffffffffu, value, step);
    }
    __syncthreads(); /* all threads have read warp_sum of an earlier call */
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

/* to[i] = sum of value[i] over the threads of a block, each written by another thread. All threads must call this, and
 * only once in a kernel. Each warp first reduces its values to LEFT partial sums; then the N sums are divided among the
 * warps. Reducing all N completely in each warp is so much code that fetching it takes longer than the additions.
 * Shared memory: N LEFT THREADS / 4 bytes. */
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

/* True in all threads of the last block that calls this. What the others wrote before is then visible to it. */
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

/* Column sums of rows[num_rows][width] in a fixed order, width <= THREADS. The rows are divided among groups of `width`
 * threads, since one thread for each column would wait for memory at every row. Valid in threads < width; all threads
 * of a block of THREADS must call this. */
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
        double part_of[c_rowsAtOnce]; /* independent loads, those of the last rows included */
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
    __syncthreads(); /* all threads have read `part` of an earlier call */
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
