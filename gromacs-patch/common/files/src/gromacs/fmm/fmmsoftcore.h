/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Soft-core Coulomb interactions beside the FMM
 *
 * The free-energy kernel adds the softened interactions of perturbed pairs and takes off
 * those that the FMM has: 1/r, or at shorter distances that of the shortest, where both
 * would have forces whose digits are lost in one another.
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMSOFTCORE_H
#define GMX_FMM_FMMSOFTCORE_H

#include "gromacs/mdtypes/md_enums.h"
#include "gromacs/simd/simd.h"
#include "gromacs/simd/simd_math.h"
#include "gromacs/utility/real.h"

namespace gmx
{

//! Pairs that are nearer have the potential of this distance and no force by the FMM, nm
constexpr real c_fmmSoftCoreMinDistance = 0.01;

//! Returns whether soft-core functions apply to Coulomb interactions, given the parameters of the free-energy kernel
template<typename SoftCoreParameters>
bool softensCoulomb(const SoftCoreParameters& parameters)
{
    return parameters.softcoreType == SoftcoreType::Beutler ? parameters.alphaCoulomb != 0
                                                            : parameters.gapsysScaleLinpointCoul != 0;
}

/*! \brief Returns the interaction of a pair of unit charges by the FMM
 *
 * \param[in]  rInv   Inverse of the distance
 * \param[out] pot    Potential
 * \param[out] force  Force times distance
 */
template<bool computeForces, typename RealType>
static inline void fmmCoulombVF(const RealType rInv, RealType* pot, RealType gmx_unused* force)
{
    const RealType most(1 / c_fmmSoftCoreMinDistance);
    *pot = min(rInv, most);
    if constexpr (computeForces)
    {
        *force = selectByMask(rInv, rInv < most);
    }
}

} // namespace gmx

#endif
