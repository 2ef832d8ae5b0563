/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements gmx::FmmEnergyGroups
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmenergygroups.h"

#include <cmath>

#include <algorithm>

#include "gromacs/mdtypes/enerdata.h"
#include "gromacs/mdtypes/group.h"
#include "gromacs/utility/gmxassert.h"

#include "fmmplan.h"

namespace gmx
{

FmmEnergyGroups::FmmEnergyGroups(ArrayRef<const unsigned short> groupOfAtom, ArrayRef<const real> charges) :
    groupOfAll_(groupOfAtom.begin(), groupOfAtom.end()),
    groupOfAtom_(groupOfAll_),
    charges_(groupOfAtom.size()),
    potential_(groupOfAtom.size())
{
    std::vector<double> charged;
    for (size_t i = 0; i < groupOfAtom_.size(); i++)
    {
        charged.resize(std::max<size_t>(charged.size(), groupOfAtom_[i] + 1), 0);
        charged[groupOfAtom_[i]] += std::fabs(static_cast<double>(charges[i]));
    }
    numGroups_ = charged.size();
    largest_   = std::max_element(charged.begin(), charged.end()) - charged.begin();
    sums_.resize(numGroups_ * numGroups_);
}

void FmmEnergyGroups::setHome(const t_commrec& cr, ArrayRef<const int> home)
{
    cr_ = &cr;
    groupOfAtom_.clear();
    for (const int i : home)
    {
        groupOfAtom_.push_back(groupOfAll_[i]);
    }
    charges_.resize(home.size());
    potential_.resize(home.size());
}

void FmmEnergyGroups::addTo(FmmPlan*             plan,
                            const RVec*          x,
                            ArrayRef<const real> charges,
                            const double         total,
                            const double         factor,
                            gmx_enerdata_t*      enerd)
{
    const Index numAtoms = charges.ssize();
    std::fill(sums_.begin(), sums_.end(), 0);
    std::vector<double> numCharged(numGroups_, 0);
    for (Index i = 0; i < numAtoms; i++)
    {
        numCharged[groupOfAtom_[i]] += charges[i] != 0;
    }
    if (cr_ != nullptr)
    {
        sumDoublesOverRanks(*cr_, numCharged);
    }
    for (int group = 0; group < numGroups_; group++)
    {
        if (group == largest_ || numCharged[group] == 0)
        {
            continue;
        }
        for (Index i = 0; i < numAtoms; i++)
        {
            charges_[i] = groupOfAtom_[i] == group ? charges[i] : 0;
        }
        gmxfmm_output output = {};
        output.size          = sizeof(output);
        output.potential     = potential_.data();
        plan->check(gmxfmm_set_charges(plan->get(), numAtoms, charges_.data()));
        plan->check(plan->execute(x, &output));
        for (Index i = 0; i < numAtoms; i++)
        {
            sums_[numGroups_ * group + groupOfAtom_[i]] +=
                    static_cast<double>(charges[i]) * static_cast<double>(potential_[i]);
        }
    }
    plan->check(gmxfmm_set_charges(plan->get(), numAtoms, charges.data()));
    if (cr_ != nullptr)
    {
        sumDoublesOverRanks(*cr_, sums_);
        if (!isMainRank(*cr_))
        {
            return;
        }
    }

    std::vector<real>& energies = enerd->grpp.energyGroupPairTerms[NonBondedEnergyTerms::CoulombSR];
    const int          numAll   = std::lround(std::sqrt(static_cast<double>(energies.size())));
    GMX_RELEASE_ASSERT(numGroups_ <= numAll, "Atoms need to be in energy groups");
    double rest = total;
    for (int a = 0; a < numGroups_; a++)
    {
        for (int b = 0; b <= a; b++)
        {
            const double ofA = sums_[numGroups_ * a + b], ofB = sums_[numGroups_ * b + a];
            if (a == largest_ && b == largest_)
            {
                continue;
            }
            const double energy = a == largest_   ? ofB
                                  : b == largest_ ? ofA
                                                  : 0.5 * (ofA + ofB) * (a == b ? 0.5 : 1.0);
            energies[GID(a, b, numAll)] += factor * energy;
            rest -= energy;
        }
    }
    energies[GID(largest_, largest_, numAll)] += factor * rest;
}

} // namespace gmx
