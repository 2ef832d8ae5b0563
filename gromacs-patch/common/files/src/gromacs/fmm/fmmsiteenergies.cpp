/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements gmx::FmmSiteEnergies
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmsiteenergies.h"

#include <cmath>

#include "gromacs/mdtypes/enerdata.h"
#include "gromacs/mdtypes/group.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/gmxassert.h"

#include "fmmljsplit.h"

namespace gmx
{

FmmSiteEnergies::FmmSiteEnergies(const FmmLJSplit&    split,
                                 const gmx_mtop_t&    mtop,
                                 const int            numEnergyGroups,
                                 const FmmSitesSetup& setup) :
    numGroups_(numEnergyGroups),
    sites_(numEnergyGroups * numEnergyGroups),
    areAll_(numEnergyGroups * numEnergyGroups),
    force_(setup.numAtoms, RVec{ 0, 0, 0 })
{
    std::vector<unsigned short> groupOfAtom;
    groupOfAtom.reserve(mtop.natoms);
    for (int i = 0; i < mtop.natoms; i++)
    {
        groupOfAtom.push_back(getGroupType(mtop.groups, SimulationAtomGroupType::EnergyOutput, i));
    }
    excludedEnergies_ = split.excludedEnergies(mtop, groupOfAtom, numGroups_);
    for (int a = 0; a < numGroups_; a++)
    {
        for (int b = a; b < numGroups_; b++)
        {
            const int        pair = a * numGroups_ + b;
            std::vector<int> those;
            for (int g = 0; g < split.numGroups(); g++)
            {
                const int group = groupOfAtom[split.atoms()[split.start()[g]]];
                if (group == a || group == b)
                {
                    those.push_back(g);
                }
            }
            areAll_[pair] = ssize(those) == split.numGroups();
            if (!those.empty() && !areAll_[pair])
            {
                sites_[pair] = std::make_unique<FmmSites>(split, those, setup);
            }
        }
    }
}

void FmmSiteEnergies::setHomeAtoms(ArrayRef<const int> home)
{
    for (auto& sites : sites_)
    {
        if (sites)
        {
            sites->setHomeAtoms(home);
        }
    }
}

void FmmSiteEnergies::setReach(const double reach)
{
    for (auto& sites : sites_)
    {
        if (sites)
        {
            sites->setReach(reach);
        }
    }
}

std::vector<double> FmmSiteEnergies::energies(ArrayRef<const RVec> x, const FmmBox& box, const double total)
{
    std::vector<double> together(sites_.size(), 0);
    for (size_t pair = 0; pair < sites_.size(); pair++)
    {
        if (sites_[pair])
        {
            if (areListsOld_)
            {
                sites_[pair]->search(x.data(), box, nullptr);
            }
            together[pair] = sites_[pair]->calculate(x, box, true, force_)[0];
        }
        else if (areAll_[pair])
        {
            together[pair] = total;
        }
    }
    areListsOld_ = false;
    for (int a = 0; a < numGroups_; a++)
    {
        for (int b = a + 1; b < numGroups_; b++)
        {
            together[a * numGroups_ + b] -= together[a * numGroups_ + a] + together[b * numGroups_ + b];
        }
    }
    return together;
}

void FmmSiteEnergies::addTo(ArrayRef<const RVec> x,
                            const FmmBox&        box,
                            const double         total,
                            const bool           addsConstants,
                            gmx_enerdata_t*      enerd)
{
    const std::vector<double> ofSites = energies(x, box, total);
    std::vector<real>& energies = enerd->grpp.energyGroupPairTerms[NonBondedEnergyTerms::LJSR];
    const int          numAll   = std::lround(std::sqrt(static_cast<double>(energies.size())));
    GMX_RELEASE_ASSERT(numGroups_ <= numAll, "Atoms need to be in energy groups");
    for (int a = 0; a < numGroups_; a++)
    {
        for (int b = a; b < numGroups_; b++)
        {
            const int pair = a * numGroups_ + b;
            energies[GID(a, b, numAll)] += ofSites[pair] - (addsConstants ? excludedEnergies_[pair] : 0);
        }
    }
}

} // namespace gmx
