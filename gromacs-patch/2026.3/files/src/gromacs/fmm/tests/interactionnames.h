/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Names of interactions that the tests use, which differ between GROMACS versions
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_TESTS_INTERACTIONNAMES_H
#define GMX_FMM_TESTS_INTERACTIONNAMES_H

#include "gromacs/topology/ifunc.h"

namespace gmx
{

//! The interaction of rigid water
constexpr auto c_settle = InteractionFunction::SETTLE;
//! The harmonic bond
constexpr auto c_bond = InteractionFunction::Bonds;
//! The virtual site on the line between two atoms
constexpr auto c_vsite2 = InteractionFunction::VirtualSite2;
//! Pairs with r^-6 and r^-12
constexpr auto c_lennardJones = InteractionFunction::LennardJonesShortRange;

} // namespace gmx

#endif
