/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements the conversion of coordinates to the order of the pair kernels
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmcoordinates.cuh"

#include "gromacs/gpu_utils/cudautils.cuh"
#include "gromacs/gpu_utils/device_stream.h"

namespace gmx
{

static constexpr int c_numThreads = 128;

static __global__ void convertCoordinates(float4* __restrict__ xq,
                                          const float3* __restrict__ x,
                                          const int* __restrict__ atomIndices,
                                          const int numIndices)
{
    const int place = blockIdx.x * c_numThreads + threadIdx.x;
    const int atom  = place < numIndices ? atomIndices[place] : -1;
    if (atom >= 0)
    {
        // The charge stays
        *reinterpret_cast<float3*>(&xq[place]) = x[atom];
    }
}

void launchCoordinateConversion(void*               xq,
                                DeviceBuffer<RVec>  x,
                                const int*          atomIndices,
                                const int           numIndices,
                                const DeviceStream& stream)
{
    if (numIndices > 0)
    {
        convertCoordinates<<<(numIndices + c_numThreads - 1) / c_numThreads, c_numThreads, 0, stream.stream()>>>(
                static_cast<float4*>(xq), reinterpret_cast<const float3*>(x), atomIndices, numIndices);
        checkDeviceError(cudaGetLastError(),
                         "Coordinates could not be converted to the order of the pair kernels.");
    }
}

} // namespace gmx
