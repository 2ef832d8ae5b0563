/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements what the short list on a GPU takes from the topology
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmshortlist.h"

#include <algorithm>

#include "gromacs/topology/topology.h"
#include "gromacs/utility/exceptions.h"
#include "gromacs/utility/stringutil.h"

#include "fmmljsplit.h"

namespace gmx
{

namespace
{

//! More than the longest bond of an atom that can be light, nm: of iodine with carbon it is 0.21
constexpr real c_maxBondLength = 0.22;

//! Tells of an exclusion that the short list does not have
[[noreturn]] void throwForExclusion(const int a, const int b)
{
    GMX_THROW(NotImplementedError(
            formatString("fmm-lj = split on a GPU needs heavy atoms that exclude "
                         "each other where their light atoms do. Atoms "
                         "%d and %d exclude each other, their heavy "
                         "atoms do not. Use mdrun -nb cpu, or fmm-lj = full.",
                         a + 1,
                         b + 1)));
}

//! Exclusions of a kind of molecule that can be searched
class Exclusions
{
public:
    explicit Exclusions(const gmx_moltype_t& moltype) : ofAtom_(moltype.atoms.nr)
    {
        for (int a = 0; a < moltype.atoms.nr; a++)
        {
            const auto list = moltype.excls[a];
            ofAtom_[a].assign(list.begin(), list.end());
            ofAtom_[a].push_back(a);
            std::sort(ofAtom_[a].begin(), ofAtom_[a].end());
            ofAtom_[a].erase(std::unique(ofAtom_[a].begin(), ofAtom_[a].end()), ofAtom_[a].end());
        }
    }
    const std::vector<int>& of(int a) const { return ofAtom_[a]; }
    bool                    have(int a, int b) const
    {
        return std::binary_search(ofAtom_[a].begin(), ofAtom_[a].end(), b);
    }

private:
    std::vector<std::vector<int>> ofAtom_;
};

//! A heavy atom and its light ones, for each heavy atom of a kind of molecule
std::vector<std::vector<int>> groups(const FmmLJSplit& ljSplit, const int moltype, const int numAtoms)
{
    std::vector<std::vector<int>> members(numAtoms);
    for (int a = 0; a < numAtoms; a++)
    {
        if (ljSplit.localGrid(moltype, a) != FmmLJSplit::Light)
        {
            members[a].insert(members[a].begin(), a);
        }
        else if (ljSplit.heavyAtom(moltype, a) != a)
        {
            members[ljSplit.heavyAtom(moltype, a)].push_back(a);
        }
    }
    return members;
}

} // namespace

real fmmLongListRadius(const FmmLJSplit& ljSplit, const real radius)
{
    return radius + c_maxBondLength * (ljSplit.settings().havePairsOfLightAtoms ? 2 : 1);
}

FmmShortListTopology::FmmShortListTopology(const FmmLJSplit& ljSplit, const gmx_mtop_t& mtop)
{
    const bool havePairsOfLight = ljSplit.settings().havePairsOfLightAtoms;

    std::vector<std::vector<std::vector<int>>>    membersOfMolecule; // by kinds of molecules
    std::vector<std::vector<std::pair<int, int>>> pairsOfMolecule;
    for (int moltype = 0; moltype < gmx::ssize(mtop.moltype); moltype++)
    {
        const int        numAtoms = mtop.moltype[moltype].atoms.nr;
        const auto       members  = groups(ljSplit, moltype, numAtoms);
        const Exclusions exclusions(mtop.moltype[moltype]);
        const auto       interact = [&](int a, int b)
        {
            const int numLight =
                    (ljSplit.heavyAtom(moltype, a) != a) + (ljSplit.heavyAtom(moltype, b) != b);
            return numLight == 1 || (numLight == 2 && havePairsOfLight);
        };
        std::vector<std::pair<int, int>> pairs;
        for (int a = 0; a < numAtoms; a++)
        {
            if (members[a].empty())
            {
                // On no grid, or light: pairs of it are found with its heavy atom
                const int heavyA = ljSplit.heavyAtom(moltype, a);
                for (const int b : exclusions.of(a))
                {
                    const int heavyB = ljSplit.heavyAtom(moltype, b);
                    if (heavyA != a && !members[heavyB].empty() && interact(a, b)
                        && !exclusions.have(heavyA, heavyB))
                    {
                        throwForExclusion(a, b);
                    }
                }
                continue;
            }
            maxNumLight = std::max(maxNumLight, static_cast<int>(members[a].size()) - 1);
            for (const int b : exclusions.of(a))
            {
                for (const int ofA : b < a ? std::vector<int>() : members[a])
                {
                    for (const int ofB : members[b])
                    {
                        if ((a != b || ofA < ofB) && interact(ofA, ofB) && !exclusions.have(ofA, ofB))
                        {
                            pairs.emplace_back(ofA, ofB);
                        }
                    }
                }
            }
        }
        membersOfMolecule.push_back(members);
        pairsOfMolecule.push_back(pairs);
    }

    std::vector<bool> isInGroup(mtop.natoms, false); // that excludes all of its atoms from one another
    for (const int a : mtop.intermolecularExclusionGroup)
    {
        isInGroup[a] = true;
    }
    lightAtoms.assign(static_cast<size_t>(mtop.natoms) * maxNumLight, -1);
    int offset = 0;
    for (const gmx_molblock_t& molblock : mtop.molblock)
    {
        for (int m = 0; m < molblock.nmol; m++)
        {
            for (const std::vector<int>& members : membersOfMolecule[molblock.type])
            {
                for (size_t i = 1; i < members.size(); i++)
                {
                    const int heavy = offset + members[0], light = offset + members[i];
                    if (isInGroup[heavy] != isInGroup[light])
                    {
                        throwForExclusion(heavy, light);
                    }
                    lightAtoms[static_cast<size_t>(heavy) * maxNumLight + i - 1] = light;
                }
            }
            for (const auto& [a, b] : pairsOfMolecule[molblock.type])
            {
                if (!isInGroup[offset + a] || !isInGroup[offset + b])
                {
                    bondedPairs.emplace_back(offset + a, offset + b);
                }
            }
            offset += mtop.moltype[molblock.type].atoms.nr;
        }
    }
}

} // namespace gmx
