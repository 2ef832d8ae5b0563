/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares what the FMM takes from the pair kernels on a GPU
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMPAIRKERNELS_H
#define GMX_FMM_FMMPAIRKERNELS_H

#include "gromacs/gpu_utils/devicebuffer_datatype.h"

#include "fmmversion.h"

namespace gmx
{

struct NBAtomDataGpu;

//! Returns the address on the device of coordinates and charges in the order of the pair kernels
const void* pairKernelCoordinates(const NBAtomDataGpu* atomData);
//! Returns the shift forces of pair kernels and bonded interactions on the device
DeviceBuffer<RVec> pairKernelShiftForces(const NBAtomDataGpu* atomData);

} // namespace gmx

#endif
