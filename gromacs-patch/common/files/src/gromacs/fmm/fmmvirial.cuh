/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Declares the sum for the virial of short-range forces
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMVIRIAL_CUH
#define GMX_FMM_FMMVIRIAL_CUH

#include "gromacs/gpu_utils/devicebuffer_datatype.h"
#include "gromacs/utility/arrayref.h"

#include "fmmversion.h"

class DeviceStream;

namespace gmx
{

//! Device memory of launchShortRangeVirialKernel(), zero before the first launch
struct FmmVirialSums
{
    //! Most blocks of the kernel
    static constexpr int c_maxNumBlocks = 256;
    //! Sum of each block
    double ofBlock[c_maxNumBlocks][DIM * DIM];
    //! Sum of all, row-major: component of the coordinates, component of the forces
    double total[DIM * DIM];
    //! Blocks that have ended, zero between launches
    unsigned int numBlocksDone;
};

/*! \brief Enqueues the sum of coordinates times forces over atoms and of shift vectors times shift forces
 *
 * \param[in]     xq            Coordinates and charges, float4, in the order of the pair kernels
 * \param[in]     f             Forces in the same order
 * \param[in]     numAtoms      Number of atoms in this order, fillers included, on which no forces act
 * \param[in]     shiftForces   Shift forces of the pair kernels and bonded interactions
 * \param[in]     shiftVectors  Shift vectors, on the host
 * \param[in,out] sums          The sums
 * \param[in]     stream        Stream that has computed the forces
 */
void launchShortRangeVirialKernel(const void*          xq,
                                  DeviceBuffer<RVec>   f,
                                  int                  numAtoms,
                                  DeviceBuffer<RVec>   shiftForces,
                                  ArrayRef<const RVec> shiftVectors,
                                  FmmVirialSums*       sums,
                                  const DeviceStream&  stream);

} // namespace gmx

#endif
