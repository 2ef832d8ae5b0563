/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements the sum for the virial of short-range forces
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmvirial.cuh"

#include <algorithm>

#include "gromacs/gpu_utils/cuda_arch_utils.cuh"
#include "gromacs/gpu_utils/device_stream.h"
#include "gromacs/pbcutil/ishift.h"

namespace gmx
{

static constexpr int c_numThreads = 256;
static constexpr int c_numWarps   = c_numThreads / 32;

//! Sum of \p value over the threads of a block, in its first warp
static __device__ double blockSum(double value)
{
    __shared__ double ofWarp[c_numWarps];
    for (int offset = 16; offset > 0; offset /= 2)
    {
        value += __shfl_down_sync(c_fullWarpMask, value, offset);
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0)
    {
        ofWarp[threadIdx.x / 32] = value;
    }
    __syncthreads();
    value = threadIdx.x < c_numWarps ? ofWarp[threadIdx.x] : 0;
    for (int offset = c_numWarps / 2; offset > 0; offset /= 2)
    {
        value += __shfl_down_sync(c_fullWarpMask, value, offset);
    }
    return value;
}

//! Argument of a kernel
struct ShiftVectors
{
    float3 vector[c_numShiftVectors];
};

//! Adds coordinates times force, row-major
static __device__ void addProduct(const double x, const double y, const double z, const float3& f, double* sum)
{
    const double position[DIM] = { x, y, z };
    const double force[DIM]    = { f.x, f.y, f.z };
    for (int d = 0; d < DIM * DIM; d++)
    {
        sum[d] += position[d / DIM] * force[d % DIM];
    }
}

//! The last block to end adds the sums of all blocks, in their order: the same input gives the same bits
static __global__ void sumShortRangeVirial(const float4*      xq,
                                           const float3*      f,
                                           int                numAtoms,
                                           const float3*      shiftForces,
                                           const ShiftVectors shift,
                                           FmmVirialSums*     sums)
{
    double sum[DIM * DIM] = { 0 };
    for (int i = blockIdx.x * c_numThreads + threadIdx.x; i < numAtoms; i += gridDim.x * c_numThreads)
    {
        addProduct(xq[i].x, xq[i].y, xq[i].z, f[i], sum);
    }
    if (blockIdx.x == 0 && threadIdx.x < c_numShiftVectors)
    {
        const float3& vector = shift.vector[threadIdx.x];
        addProduct(vector.x, vector.y, vector.z, shiftForces[threadIdx.x], sum);
    }
    for (int d = 0; d < DIM * DIM; d++)
    {
        const double ofBlock = blockSum(sum[d]);
        if (threadIdx.x == 0)
        {
            sums->ofBlock[blockIdx.x][d] = ofBlock;
        }
    }

    __shared__ bool isLast;
    if (threadIdx.x == 0)
    {
        __threadfence();
        isLast = atomicAdd(&sums->numBlocksDone, 1U) == gridDim.x - 1;
    }
    __syncthreads();
    if (isLast)
    {
        __threadfence();
        for (int d = 0; d < DIM * DIM; d++)
        {
            const double total = blockSum(threadIdx.x < gridDim.x ? sums->ofBlock[threadIdx.x][d] : 0);
            if (threadIdx.x == 0)
            {
                sums->total[d] = total;
            }
        }
        if (threadIdx.x == 0)
        {
            sums->numBlocksDone = 0;
        }
    }
}

void launchShortRangeVirialKernel(const void*          xq,
                                  DeviceBuffer<RVec>   f,
                                  int                  numAtoms,
                                  DeviceBuffer<RVec>   shiftForces,
                                  ArrayRef<const RVec> shiftVectors,
                                  FmmVirialSums*       sums,
                                  const DeviceStream&  stream)
{
    static_assert(c_numShiftVectors <= c_numThreads, "One thread has a shift vector");
    static_assert(FmmVirialSums::c_maxNumBlocks <= c_numThreads,
                  "One thread reads the sum of a block");
    const int numBlocks =
            std::min(FmmVirialSums::c_maxNumBlocks, (numAtoms + c_numThreads - 1) / c_numThreads);
    ShiftVectors shift;
    for (int i = 0; i < c_numShiftVectors; i++)
    {
        shift.vector[i] = make_float3(shiftVectors[i][XX], shiftVectors[i][YY], shiftVectors[i][ZZ]);
    }
    sumShortRangeVirial<<<std::max(1, numBlocks), c_numThreads, 0, stream.stream()>>>(
            static_cast<const float4*>(xq),
            reinterpret_cast<const float3*>(f),
            numAtoms,
            reinterpret_cast<const float3*>(shiftForces),
            shift,
            sums);
}

} // namespace gmx
