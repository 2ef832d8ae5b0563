/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements what the pair search leaves out when the FMM computes all Coulomb interactions
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmpairlist.h"

#include <cmath>
#include <cstdlib>

#include <algorithm>

#include "gromacs/listed_forces/listed_forces_gpu.h"
#include "gromacs/mdtypes/atominfo.h"
#include "gromacs/mdtypes/md_enums.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/stringutil.h"

#include "fmmopensystem.h"

namespace gmx
{

std::vector<bool> fmmAtomsOffPairSearchGrid(const CoulombInteractionType coulombType,
                                            const gmx_mtop_t&            mtop,
                                            const gmx_moltype_t&         moltype,
                                            const std::vector<bool>&     atomUsesVdw)
{
    std::vector<bool> isOffGrid(moltype.atoms.nr, false);
    // Interactions between molecules do not stand in the molecules they act on
    if (coulombType != CoulombInteractionType::Fmm || mtop.bIntermolecularInteractions
        || std::getenv("GMX_FMM_FULL_PAIRLIST") != nullptr)
    {
        return isOffGrid;
    }
    for (int a = 0; a < moltype.atoms.nr; a++)
    {
        const t_atom& atom = moltype.atoms.atom[a];
        isOffGrid[a]       = !atomUsesVdw[atom.type] && !atomUsesVdw[atom.typeB];
    }
    for (const auto ftype : fTypesOnGpu)
    {
        const InteractionList& list = moltype.ilist[ftype];
        for (int i = 0; i < list.size(); i += 1 + NRAL(ftype))
        {
            for (int a = 0; a < NRAL(ftype); a++)
            {
                isOffGrid[list.iatoms[i + 1 + a]] = false;
            }
        }
    }
    return isOffGrid;
}

std::string fmmPairListDescription(ArrayRef<const AtomInfoWithinMoleculeBlock> atomInfo)
{
    int64_t numAtoms = 0, numOffGrid = 0;
    for (const AtomInfoWithinMoleculeBlock& block : atomInfo)
    {
        const int64_t blockSize =
                block.indexOfLastAtomInMoleculeBlock - block.indexOfFirstAtomInMoleculeBlock;
        // One entry for each atom of the block, or of each of its molecules
        const int64_t numRepeats = block.atomInfo.empty() ? 0 : blockSize / ssize(block.atomInfo);
        numAtoms += blockSize;
        numOffGrid += numRepeats
                      * std::count_if(block.atomInfo.begin(),
                                      block.atomInfo.end(),
                                      [](AtomInfo info)
                                      { return (info & sc_atomInfo_NotOnPairSearchGrid) != 0; });
    }
    return formatString(
            "FMM: %ld of %ld atoms are in the pair list, the others have no Van der Waals "
            "interactions",
            static_cast<long>(numAtoms - numOffGrid),
            static_cast<long>(numAtoms));
}

Index fmmNumAtomsOnPairSearchGrid(ArrayRef<const AtomInfo> atomInfo)
{
    return std::count_if(atomInfo.begin(),
                         atomInfo.end(),
                         [](AtomInfo info) { return (info & sc_atomInfo_NotOnPairSearchGrid) == 0; });
}

real fmmShareOnPairSearchGrid(ArrayRef<const AtomInfo> atomInfo)
{
    return atomInfo.empty() ? 1
                            : static_cast<real>(fmmNumAtomsOnPairSearchGrid(atomInfo))
                                      / static_cast<real>(atomInfo.size());
}

std::vector<int> fmmHomeAtomsOffPairSearchGrid(ArrayRef<const AtomInfo> atomInfo,
                                               ArrayRef<const int>      moved,
                                               ArrayRef<const int>      globalIndices)
{
    std::vector<int> atoms;
    for (Index i = 0; i < atomInfo.ssize(); i++)
    {
        if ((atomInfo[i] & sc_atomInfo_NotOnPairSearchGrid) && (moved.empty() || moved[i] >= 0))
        {
            atoms.push_back(i);
        }
    }
    // Those that were at home before are in order, others have come behind them
    const auto isBefore = [&globalIndices](int a, int b)
    { return globalIndices[a] < globalIndices[b]; };
    const auto firstNew = std::is_sorted_until(atoms.begin(), atoms.end(), isBefore);
    std::sort(firstNew, atoms.end(), isBefore);
    std::inplace_merge(atoms.begin(), firstNew, atoms.end(), isBefore);
    return atoms;
}

real fmmPairSearchDensity(const GridCorners& region, const Index numAtomsOnGrid, const real occupiedVolume)
{
    real volume = 1;
    for (int d = 0; d < DIM; d++)
    {
        volume *= region.upper[d] - region.lower[d];
    }
    // The occupied volume is an estimate on the low side, so it is used where it makes a difference
    const real density = static_cast<real>(numAtomsOnGrid)
                         / (occupiedVolume < 0.5_real * volume ? occupiedVolume : volume);
    // A molecule far off leaves nearly all columns of the grid empty, but each takes memory and
    // time. The smallest cells are cubes with four atoms at this density.
    constexpr double c_atomsInCell = 4, c_leastColumns = 1e6, c_columnsPerAtom = 4;
    const double     area = static_cast<double>(region.upper[XX] - region.lower[XX])
                        * (region.upper[YY] - region.lower[YY]);
    const double mostColumns = std::max(c_leastColumns, c_columnsPerAtom * numAtomsOnGrid);
    const double mostDensity = c_atomsInCell * std::pow(mostColumns / area, 1.5);
    return std::min(density, static_cast<real>(std::min<double>(mostDensity, GMX_REAL_MAX)));
}

} // namespace gmx
