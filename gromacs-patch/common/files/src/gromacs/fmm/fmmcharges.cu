/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements the computation of perturbed charges on a GPU
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmcharges.cuh"

#include "gromacs/gpu_utils/device_stream.h"

namespace gmx
{

static constexpr int c_numThreads = 128;

static __global__ void
perturbedCharges(const float* chargesA, const float* difference, int numAtoms, float lambda, float* charges)
{
    const int i = blockIdx.x * c_numThreads + threadIdx.x;
    if (i < numAtoms)
    {
        charges[i] = fmaf(lambda, difference[i], chargesA[i]);
    }
}

void launchPerturbedChargesKernel(DeviceBuffer<float> chargesA,
                                  DeviceBuffer<float> difference,
                                  int                 numAtoms,
                                  float               lambda,
                                  DeviceBuffer<float> charges,
                                  const DeviceStream& stream)
{
    perturbedCharges<<<(numAtoms + c_numThreads - 1) / c_numThreads, c_numThreads, 0, stream.stream()>>>(
            chargesA, difference, numAtoms, lambda, charges);
}

} // namespace gmx
