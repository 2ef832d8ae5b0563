/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements what takes the place of the box where there is no periodicity: along all axes (pbc = no), or along z
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmopensystem.h"

#include <cmath>

#include <algorithm>
#include <array>
#include <vector>

#include "gromacs/pbcutil/pbc.h"
#include "gromacs/utility/exceptions.h"
#include "gromacs/utility/stringutil.h"

#include "fmmslab.h"

namespace gmx
{

namespace
{

//! Throws when a coordinate is not finite
void checkFinite(ArrayRef<const RVec> x)
{
    for (int i = 0; i < x.ssize(); i++)
    {
        if (!(std::isfinite(x[i][XX]) && std::isfinite(x[i][YY]) && std::isfinite(x[i][ZZ])))
        {
            GMX_THROW(SimulationInstabilityError(formatString(
                    "The position of atom %d is (%g, %g, %g)", i + 1, x[i][XX], x[i][YY], x[i][ZZ])));
        }
    }
}

//! Makes an extent along an axis at least c_openMinimumExtent
void widenToMinimum(const int d, GridCorners* corners)
{
    const real missing = c_openMinimumExtent - (corners->upper[d] - corners->lower[d]);
    if (missing > 0)
    {
        corners->lower[d] -= 0.5_real * missing;
        corners->upper[d] += 0.5_real * missing;
    }
}

} // namespace

GridCorners gridCorners(PbcType pbcType, int numWalls, const matrix box, ArrayRef<const RVec> x)
{
    GridCorners corners = { { 0, 0, 0 }, { box[XX][XX], box[YY][YY], box[ZZ][ZZ] } };
    const int   first   = pbcType == PbcType::No ? XX : isFilm(pbcType, numWalls) ? ZZ : DIM;
    if (first == DIM)
    {
        return corners;
    }
    checkFinite(x);
    for (int d = first; d < DIM; d++)
    {
        corners.lower[d] = corners.upper[d] = x.empty() ? 0 : x[0][d];
    }
    for (const RVec& xi : x)
    {
        for (int d = first; d < DIM; d++)
        {
            corners.lower[d] = std::min(corners.lower[d], xi[d]);
            corners.upper[d] = std::max(corners.upper[d], xi[d]);
        }
    }
    for (int d = first; d < DIM; d++)
    {
        widenToMinimum(d, &corners);
    }
    return corners;
}

void setExtentAlongZ(ArrayRef<const RVec> x, RVec* lower, RVec* upper)
{
    GridCorners corners = { { 0, 0, GMX_REAL_MAX }, { 0, 0, -GMX_REAL_MAX } };
    for (const RVec& xi : x)
    {
        // What is not finite is found where all ranks know of it
        if (std::isfinite(xi[ZZ]))
        {
            corners.lower[ZZ] = std::min(corners.lower[ZZ], xi[ZZ]);
            corners.upper[ZZ] = std::max(corners.upper[ZZ], xi[ZZ]);
        }
    }
    if (corners.lower[ZZ] > corners.upper[ZZ])
    {
        corners.lower[ZZ] = corners.upper[ZZ] = 0;
    }
    widenToMinimum(ZZ, &corners);
    (*lower)[ZZ] = corners.lower[ZZ];
    (*upper)[ZZ] = corners.upper[ZZ];
}

real openSystemVolume(ArrayRef<const RVec> x)
{
    if (x.empty())
    {
        return 1;
    }
    checkFinite(x);
    // Most cells of a far-flung system are empty, so the cells of the atoms are sorted instead
    std::vector<std::array<double, DIM>> cells;
    cells.reserve(x.size());
    for (const RVec& xi : x)
    {
        std::array<double, DIM> cell;
        for (int d = 0; d < DIM; d++)
        {
            cell[d] = std::floor(xi[d] / c_openDensityCellEdge);
        }
        cells.push_back(cell);
    }
    std::sort(cells.begin(), cells.end());

    double sumOfSquares = 0;
    for (auto first = cells.begin(); first != cells.end();)
    {
        const auto   last  = std::upper_bound(first, cells.end(), *first);
        const double count = static_cast<double>(last - first);
        sumOfSquares += count * count;
        first = last;
    }
    const double numAtoms = static_cast<double>(x.size());
    return numAtoms * numAtoms * power3(static_cast<double>(c_openDensityCellEdge)) / sumOfSquares;
}

void setDensityBox(PbcType pbcType, int numWalls, const matrix box, ArrayRef<const RVec> x, matrix densityBox)
{
    if (isFilm(pbcType, numWalls))
    {
        copy_mat(box, densityBox);
        clear_rvec(densityBox[ZZ]);
        densityBox[ZZ][ZZ] = openSystemVolume(x) / (box[XX][XX] * box[YY][YY]);
    }
    else if (pbcType == PbcType::No)
    {
        const real edge = std::cbrt(openSystemVolume(x));
        clear_mat(densityBox);
        densityBox[XX][XX] = edge;
        densityBox[YY][YY] = edge;
        densityBox[ZZ][ZZ] = edge;
    }
    else
    {
        copy_mat(box, densityBox);
    }
}

} // namespace gmx
