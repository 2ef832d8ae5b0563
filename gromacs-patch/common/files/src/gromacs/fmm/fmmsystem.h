/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares what the FMM is told of a system before its first step
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMSYSTEM_H
#define GMX_FMM_FMMSYSTEM_H

#include <vector>

#include "gromacs/utility/arrayref.h"
#include "gromacs/utility/listoflists.h"
#include "gromacs/utility/real.h"

#include "fmmversion.h"

enum class PbcType : int;
struct gmx_mtop_t;

namespace gmx
{

//! Returns the charges of all atoms, those for lambda where they are perturbed
std::vector<real> fmmCharges(const gmx_mtop_t& mtop, double lambda);

//! Returns the sum of the squares of the same, e^2
double fmmSumOfSquares(const gmx_mtop_t& mtop, double lambda);

/*! \brief Returns whether a system is another than the one for which parameters of the FMM were chosen
 *
 * The spacing of its atoms has changed by a quarter, or its charges have by 0.4.
 *
 * \param[in] ratio  Of the two systems' volumes, densities or squares of charges
 */
bool fmmIsOther(double ratio);

//! Returns whether any perturbed atom, of whatever kind of perturbation, has a charge in one of the states
bool fmmPerturbedAtomsAreCharged(const gmx_mtop_t& mtop);

//! Returns the excluded atoms of all atoms, in their own molecule and in others, as mdrun passes them on
ListOfLists<int> fmmExclusions(const gmx_mtop_t& mtop);

//! Excluded atoms of all atoms in the form the library wants
struct FmmExclusionLists
{
    std::vector<int> start = { 0 };
    std::vector<int> list;
};

//! Returns exclusions in that form; the last of the atoms may have none in \p exclusions
FmmExclusionLists fmmExclusionLists(const ListOfLists<int>& exclusions, int numAtoms);

/*! \brief Charges and excluded atoms of all atoms, in four bytes each
 *
 * Atoms with the same charge, whose excluded atoms have the same places relative to them, are of one kind. There are few
 * kinds where molecules are alike. So they stay in the processor's cache when atoms are looked up in any order.
 */
class FmmAtomKinds
{
public:
    FmmAtomKinds() = default;
    //! The last of the atoms may have none in \p exclusions
    FmmAtomKinds(ArrayRef<const real> charges, const ListOfLists<int>& exclusions);

    int  kind(int atom) const { return kinds_[atom]; }
    real charge(int kind) const { return charges_[kind]; }
    //! Numbers of the excluded atoms, less that of the atom
    ArrayRef<const int> excluded(int kind) const { return excluded_[kind]; }
    int                 numKinds() const { return gmx::ssize(charges_); }

private:
    //! Of each atom
    std::vector<int> kinds_;
    //! Of each kind
    std::vector<real> charges_;
    ListOfLists<int>  excluded_;
};

/*! \brief Returns coordinates in which virtual sites are where other atoms put them
 *
 * mdrun builds them at its start, and in a file they may be anywhere. Without
 * virtual sites the coordinates are as given, otherwise molecules are made
 * whole, unless they are periodic: these stay as they are.
 */
std::vector<RVec> fmmCoordinates(const gmx_mtop_t&    mtop,
                                 PbcType              pbcType,
                                 bool                 havePeriodicMolecules,
                                 const matrix         box,
                                 ArrayRef<const RVec> x);

} // namespace gmx

#endif
