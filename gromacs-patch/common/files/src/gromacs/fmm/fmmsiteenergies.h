/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Declares gmx::FmmSiteEnergies
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMSITEENERGIES_H
#define GMX_FMM_FMMSITEENERGIES_H

#include <memory>
#include <vector>

#include "gromacs/utility/arrayref.h"

#include "fmmplan.h"
#include "fmmsites.h"
#include "fmmversion.h"

struct gmx_enerdata_t;
struct gmx_mtop_t;

namespace gmx
{

class FmmLJSplit;

/*! \internal \brief
 * Lennard-Jones energies between energy groups, of groups of atoms at their sites
 *
 * A site counts for the energy group of its heavy atom. E_AA is the energy of the sites of A alone,
 * and E_AB what those of A and B have together, less E_AA and E_BB. On several ranks each adds its
 * part of all of these.
 *
 * \ingroup module_fmm
 */
class FmmSiteEnergies
{
public:
    //! Takes energy groups of the system, several of them, without those of walls
    FmmSiteEnergies(const FmmLJSplit&    split,
                    const gmx_mtop_t&    mtop,
                    int                  numEnergyGroups,
                    const FmmSitesSetup& setup);

    //! See FmmSites::setHomeAtoms()
    void setHomeAtoms(ArrayRef<const int> home);
    //! See FmmSites::setReach()
    void setReach(double reach);
    //! Pairs of sites are to be listed anew
    void listsAreOld() { areListsOld_ = true; }
    /*! \brief Adds energies of all pairs of energy groups
     *
     * \param[in]     x              Coordinates of all atoms
     * \param[in]     box            The box
     * \param[in]     total          Energy of all sites, on this rank
     * \param[in]     addsConstants  Whether this rank adds what is constant
     * \param[in,out] enerd          Gets the energies
     */
    void addTo(ArrayRef<const RVec> x, const FmmBox& box, double total, bool addsConstants, gmx_enerdata_t* enerd);

private:
    //! Returns the energies of sites of each pair of groups, without what is constant
    std::vector<double> energies(ArrayRef<const RVec> x, const FmmBox& box, double total);

    int numGroups_;
    //! Sites of groups a and b > a together, [a * numGroups_ + b], and of each alone, a = b; empty where they are none, or all
    std::vector<std::unique_ptr<FmmSites>> sites_;
    //! Whether groups have all sites together, likewise
    std::vector<bool> areAll_;
    //! Energies of pairs of atoms that exclude each other, likewise
    std::vector<double> excludedEnergies_;
    //! Forces, which are not used
    std::vector<RVec> force_;
    bool              areListsOld_ = true;
};

} // namespace gmx

#endif
