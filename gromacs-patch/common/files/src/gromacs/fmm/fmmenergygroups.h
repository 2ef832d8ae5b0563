/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Declares gmx::FmmEnergyGroups
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMENERGYGROUPS_H
#define GMX_FMM_FMMENERGYGROUPS_H

#include <vector>

#include "gromacs/utility/arrayref.h"
#include "gromacs/utility/real.h"

#include "fmmversion.h"

struct gmx_enerdata_t;
struct t_commrec;

namespace gmx
{

class FmmPlan;

/*! \internal \brief
 * Coulomb energies between groups of atoms
 *
 * E_AB = sum over i in A of q_i phi_i[q_B], half of that for A = B, where phi[q_B] is the potential
 * of the charges of B alone, with their images. The potential is evaluated for each group but the
 * most charged, whose energy with itself is what the others leave of the total.
 *
 * \ingroup module_fmm
 */
class FmmEnergyGroups
{
public:
    /*! \brief Takes the groups
     *
     * \param[in] groupOfAtom  Energy group of each atom of a plan
     * \param[in] charges      Their charges, by which the most charged group is found
     */
    FmmEnergyGroups(ArrayRef<const unsigned short> groupOfAtom, ArrayRef<const real> charges);

    /*! \brief Makes the plan one of several ranks, which has these of the atoms
     *
     * addTo() is then called by all ranks.
     *
     * \param[in] cr    The ranks, which have to last as long
     * \param[in] home  Which atoms they are
     */
    void setHome(const t_commrec& cr, ArrayRef<const int> home);

    /*! \brief Adds the energies of all pairs of groups
     *
     * \param[in]     plan     Plan whose atoms are assigned; it has the same charges afterwards
     * \param[in]     x        Coordinates
     * \param[in]     charges  The charges that it has
     * \param[in]     total    Their energy
     * \param[in]     factor   What energies are multiplied by
     * \param[in,out] enerd    Gets the energies, on several ranks of the main one
     */
    void addTo(FmmPlan*             plan,
               const RVec*          x,
               ArrayRef<const real> charges,
               double               total,
               double               factor,
               gmx_enerdata_t*      enerd);

private:
    std::vector<unsigned short> groupOfAll_, groupOfAtom_;
    int                         numGroups_ = 0;
    int                         largest_   = 0;
    //! Of one group, and their potential
    std::vector<real> charges_, potential_;
    //! Sums of q_i phi_i[q_B] over i in A: [numGroups * B + A]
    std::vector<double> sums_;
    //! nullptr on one rank
    const t_commrec* cr_ = nullptr;
};

} // namespace gmx

#endif
