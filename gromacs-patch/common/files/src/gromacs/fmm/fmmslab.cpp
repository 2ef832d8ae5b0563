/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements what is different with pbc = xy: slabs, which are periodic in the xy plane and open along z
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmslab.h"

#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/mdtypes/md_enums.h"
#include "gromacs/pbcutil/pbc.h"
#include "gromacs/utility/stringutil.h"

namespace gmx
{

bool isFilm(const PbcType pbcType, const int numWalls)
{
    return pbcType == PbcType::XY && numWalls != 2;
}

double volumeOfFilm(const int numAtoms)
{
    constexpr double c_density = 100; // nm^-3
    return numAtoms / c_density;
}

FmmPeriodicity fmmPeriodicity(const t_inputrec& inputrec)
{
    return inputrec.pbcType != PbcType::XY            ? FmmPeriodicity::Box
           : isFilm(inputrec.pbcType, inputrec.nwall) ? FmmPeriodicity::Film
                                                      : FmmPeriodicity::SlabBetweenWalls;
}

PbcType fmmPbcType(const FmmParameters& parameters)
{
    return parameters.boundary == FmmBoundary::Open        ? PbcType::No
           : parameters.periodicity == FmmPeriodicity::Box ? PbcType::Xyz
                                                           : PbcType::XY;
}

void checkFmmSlab(const t_inputrec&                                    inputrec,
                  const FmmParameters&                                 parameters,
                  const std::function<void(bool, const std::string&)>& refuse,
                  FmmWarningHandler*                                   wi)
{
    const bool isFor3dc = inputrec.ewald_geometry == EwaldGeometry::ThreeDC;
    if (inputrec.pbcType != PbcType::XY)
    {
        refuse(isFor3dc && inputrec.pbcType == PbcType::Xyz,
               "needs no correction for slabs (ewald-geometry = 3dc); for a slab, with walls or "
               "without, use pbc = xy, else ewald-geometry = 3d");
        refuse(isFor3dc && inputrec.pbcType != PbcType::Xyz,
               "does not use ewald-geometry = 3dc; use ewald-geometry = 3d");
        return;
    }
    refuse(parameters.boundary == FmmBoundary::Vacuum,
           "with pbc = xy has no surroundings to choose; use fmm-boundary = tinfoil, the default");
    constexpr real c_defaultZfac = 3;
    if (inputrec.nwall == 2 && (isFor3dc || inputrec.wall_ewald_zfac != c_defaultZfac))
    {
        addFmmNote(wi,
                   "coulombtype = FMM computes slabs without periodic images along z, so "
                   "wall-ewald-zfac is ignored");
    }
    if (isFilm(inputrec.pbcType, inputrec.nwall))
    {
        refuse(hasBoxDeformation(inputrec),
               "with pbc = xy and fewer than two walls has no box to deform; use deform = 0 0 0 0 "
               "0 0");
    }
}

} // namespace gmx
