/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Declares the computation of perturbed charges on a GPU
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMCHARGES_CUH
#define GMX_FMM_FMMCHARGES_CUH

#include "gromacs/gpu_utils/devicebuffer_datatype.h"

class DeviceStream;

namespace gmx
{

/*! \brief Enqueues charges that depend linearly on lambda: chargesA + lambda difference
 *
 * \param[in]  chargesA    Charges at lambda = 0
 * \param[in]  difference  Charges at lambda = 1 less these
 * \param[in]  numAtoms    Number of both
 * \param[in]  lambda      An argument of the kernel, so that no memory of the host has to last
 * \param[out] charges     Charges at lambda
 * \param[in]  stream      Stream of the FMM
 */
void launchPerturbedChargesKernel(DeviceBuffer<float> chargesA,
                                  DeviceBuffer<float> difference,
                                  int                 numAtoms,
                                  float               lambda,
                                  DeviceBuffer<float> charges,
                                  const DeviceStream& stream);

} // namespace gmx

#endif
