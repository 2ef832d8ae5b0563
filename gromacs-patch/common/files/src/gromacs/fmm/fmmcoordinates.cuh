/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Declares the conversion of coordinates to the order of the pair kernels
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMCOORDINATES_CUH
#define GMX_FMM_FMMCOORDINATES_CUH

#include "gromacs/gpu_utils/devicebuffer_datatype.h"

#include "fmmversion.h"

class DeviceStream;

namespace gmx
{

/*! \brief Enqueues the conversion for all pair-search grids at once
 *
 * Of one grid it is a kernel of its own, and with three grids the launches take longer than the work.
 *
 * \param[in,out] xq           Coordinates and charges, float4, in the order of the pair kernels
 * \param[in]     x            Coordinates in the order of atoms
 * \param[in]     atomIndices  Atom of each place in that order, -1 for fillers, which are left as they are
 * \param[in]     numIndices   Number of these
 * \param[in]     stream       Stream
 */
void launchCoordinateConversion(void*               xq,
                                DeviceBuffer<RVec>  x,
                                const int*          atomIndices,
                                int                 numIndices,
                                const DeviceStream& stream);

} // namespace gmx

#endif
