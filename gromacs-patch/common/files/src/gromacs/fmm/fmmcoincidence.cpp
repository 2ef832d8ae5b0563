/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements what is said of atoms that stand at one place
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmcoincidence.h"

#include <cctype>
#include <cmath>
#include <cstdlib>

#include <algorithm>
#include <limits>
#include <vector>

#include "gromacs/topology/mtop_lookup.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/listoflists.h"
#include "gromacs/utility/stringutil.h"

#include "fmmsystem.h"

namespace gmx
{

namespace
{

//! Returns the number behind the word "particle" in a message of the library, -1 if there is none
int particleIn(const std::string& message)
{
    const std::string word  = "particle ";
    const size_t      found = message.find(word);
    const size_t      begin = found + word.size();
    return found != std::string::npos && begin < message.size() && std::isdigit(message[begin]) != 0
                   ? std::atoi(message.c_str() + begin)
                   : -1;
}

//! Returns the square of the distance of two atoms, or of their images where these are at about one place
double squaredDistance(const RVec& a, const RVec& b, const double* box)
{
    double d[DIM] = { a[XX] - b[XX], a[YY] - b[YY], a[ZZ] - b[ZZ] };
    for (int v = DIM - 1; v >= 0 && box != nullptr; v--)
    {
        const double* row    = box + DIM * v;
        const double  images = row[v] != 0 ? std::round(d[v] / row[v]) : 0;
        for (int e = 0; e < DIM; e++)
        {
            d[e] -= images * row[e];
        }
    }
    return d[XX] * d[XX] + d[YY] * d[YY] + d[ZZ] * d[ZZ];
}

//! Returns which of the atoms that interact with \p atom is nearest, -1 if none does
int nearestAtom(const int atom, const gmx_mtop_t& mtop, ArrayRef<const RVec> x, const double* box)
{
    const std::vector<real> chargesA = fmmCharges(mtop, 0), chargesB = fmmCharges(mtop, 1);
    const ListOfLists<int>  exclusions = fmmExclusions(mtop);
    const auto excluded = atom < exclusions.ssize() ? exclusions[atom] : ArrayRef<const int>();
    int        nearest  = -1;
    double     least    = std::numeric_limits<double>::infinity();
    for (int i = 0; i < mtop.natoms; i++)
    {
        const bool   isCharged  = chargesA[i] != 0 || chargesB[i] != 0;
        const bool   isExcluded = std::find(excluded.begin(), excluded.end(), i) != excluded.end();
        const double distance   = squaredDistance(x[i], x[atom], box);
        if (i != atom && isCharged && !isExcluded && distance < least)
        {
            nearest = i;
            least   = distance;
        }
    }
    return nearest;
}

//! Returns number, name and residue of an atom, with numbers as users know them
std::string nameOfAtom(const int atom, const gmx_mtop_t& mtop)
{
    const char* name          = nullptr;
    const char* residueName   = nullptr;
    int         residueNumber = 0, block = 0;
    mtopGetAtomAndResidueName(mtop, atom, &block, &name, &residueNumber, &residueName, nullptr);
    return formatString("atom %d (%s of %s %d)", atom + 1, name, residueName, residueNumber);
}

} // namespace

std::string fmmAtomsAtOnePlace(const std::string&   message,
                               const gmx_mtop_t&    mtop,
                               ArrayRef<const RVec> x,
                               const double*        box)
{
    const int atom  = particleIn(message);
    const int other = atom >= 0 && atom < mtop.natoms ? nearestAtom(atom, mtop, x, box) : -1;
    if (other < 0)
    {
        return message;
    }
    return formatString(
            "%s and %s stand at one place, and they do not exclude each other. Minimise the energy "
            "before (integrator = steep), or correct the coordinates.",
            nameOfAtom(std::min(atom, other), mtop).c_str(),
            nameOfAtom(std::max(atom, other), mtop).c_str());
}

} // namespace gmx
