/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements what the FMM takes from the pair kernels on a GPU
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmpairkernels.h"

#include "config.h"

#if GMX_GPU_CUDA
#    include "gromacs/nbnxm/gpu_types_common.h"
#endif

namespace gmx
{

const void* pairKernelCoordinates(const NBAtomDataGpu* atomData)
{
#if GMX_GPU_CUDA
    return atomData->xq;
#else
    static_cast<void>(atomData);
    return nullptr;
#endif
}

DeviceBuffer<RVec> pairKernelShiftForces(const NBAtomDataGpu* atomData)
{
#if GMX_GPU_CUDA
    return atomData->fShift;
#else
    static_cast<void>(atomData);
    return {};
#endif
}

} // namespace gmx
