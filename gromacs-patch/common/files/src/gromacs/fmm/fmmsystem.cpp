/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements what the FMM is told of a system before its first step
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmsystem.h"

#include <algorithm>
#include <map>
#include <utility>

#include "gromacs/mdlib/vsite.h"
#include "gromacs/pbcutil/pbc.h"
#include "gromacs/topology/ifunc.h"
#include "gromacs/topology/mtop_util.h"
#include "gromacs/topology/topology.h"

namespace gmx
{

std::vector<real> fmmCharges(const gmx_mtop_t& mtop, const double lambda)
{
    std::vector<real> charges;
    charges.reserve(mtop.natoms);
    for (const gmx_molblock_t& molblock : mtop.molblock)
    {
        const t_atoms& atoms = mtop.moltype[molblock.type].atoms;
        for (int m = 0; m < molblock.nmol; m++)
        {
            for (int a = 0; a < atoms.nr; a++)
            {
                const t_atom& atom = atoms.atom[a];
                charges.push_back(lambda == 0   ? atom.q
                                  : lambda == 1 ? atom.qB
                                                : atom.q + lambda * (atom.qB - atom.q));
            }
        }
    }
    return charges;
}

double fmmSumOfSquares(const gmx_mtop_t& mtop, const double lambda)
{
    double sum = 0;
    for (const real charge : fmmCharges(mtop, lambda))
    {
        sum += charge * charge;
    }
    return sum;
}

bool fmmIsOther(const double ratio)
{
    constexpr double c_mostChange = 2;
    return ratio > c_mostChange || ratio < 1 / c_mostChange;
}

bool fmmPerturbedAtomsAreCharged(const gmx_mtop_t& mtop)
{
    return std::any_of(mtop.moltype.begin(),
                       mtop.moltype.end(),
                       [](const gmx_moltype_t& moltype)
                       {
                           const t_atom* atoms = moltype.atoms.atom;
                           return std::any_of(
                                   atoms,
                                   atoms + moltype.atoms.nr,
                                   [](const t_atom& atom)
                                   { return PERTURBED(atom) && (atom.q != 0 || atom.qB != 0); });
                       });
}

ListOfLists<int> fmmExclusions(const gmx_mtop_t& mtop)
{
    gmx_localtop_t local(mtop.ffparams);
    gmx_mtop_generate_local_top(mtop, &local, false);
    return local.excls;
}

FmmExclusionLists fmmExclusionLists(const ListOfLists<int>& exclusions, const int numAtoms)
{
    FmmExclusionLists lists;
    lists.start.reserve(numAtoms + 1);
    lists.list.reserve(exclusions.numElements());
    for (int i = 0; i < numAtoms; i++)
    {
        if (i < exclusions.ssize())
        {
            const auto excluded = exclusions[i];
            lists.list.insert(lists.list.end(), excluded.begin(), excluded.end());
        }
        lists.start.push_back(lists.list.size());
    }
    return lists;
}

FmmAtomKinds::FmmAtomKinds(ArrayRef<const real> charges, const ListOfLists<int>& exclusions)
{
    std::map<std::pair<real, std::vector<int>>, int> known;
    // Of each kind, the one of the atom that came behind it last: molecules repeat
    std::vector<int> next;
    std::vector<int> excluded;
    int              last = -1;
    kinds_.reserve(charges.size());
    for (int atom = 0; atom < charges.ssize(); atom++)
    {
        excluded.clear();
        if (atom < exclusions.ssize())
        {
            for (const int other : exclusions[atom])
            {
                excluded.push_back(other - atom);
            }
        }
        int kind = (last >= 0 ? next[last] : -1);
        if (kind < 0 || charges_[kind] != charges[atom]
            || !std::equal(
                    excluded.begin(), excluded.end(), excluded_[kind].begin(), excluded_[kind].end()))
        {
            const auto [entry, isNew] = known.insert({ { charges[atom], excluded }, numKinds() });
            kind                      = entry->second;
            if (isNew)
            {
                charges_.push_back(charges[atom]);
                excluded_.pushBack(excluded);
                next.push_back(-1);
            }
        }
        if (last >= 0)
        {
            next[last] = kind;
        }
        kinds_.push_back(kind);
        last = kind;
    }
}

std::vector<RVec> fmmCoordinates(const gmx_mtop_t&    mtop,
                                 const PbcType        pbcType,
                                 const bool           havePeriodicMolecules,
                                 const matrix         box,
                                 ArrayRef<const RVec> x)
{
    std::vector<RVec> built(x.begin(), x.end());
    if (havePeriodicMolecules || gmx_mtop_interaction_count(mtop, IF_VSITE) == 0)
    {
        return built;
    }
    if (pbcType != PbcType::No)
    {
        do_pbc_mtop(pbcType, box, &mtop, as_rvec_array(built.data()));
    }
    constructVirtualSitesGlobal(mtop, built);
    return built;
}

} // namespace gmx
