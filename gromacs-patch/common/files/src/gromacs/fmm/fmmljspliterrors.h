/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares what the split of Lennard-Jones changes, and how it is measured
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMLJSPLITERRORS_H
#define GMX_FMM_FMMLJSPLITERRORS_H

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gromacs/utility/arrayref.h"

#include "fmmljsplit.h"

namespace gmx
{

//! What the split changes, against one list of all pairs, with standard errors where not all groups were looked at
struct FmmLJSplitErrors
{
    //! RMS of the difference of forces, over the RMS of Coulomb forces
    double force = 0, forceDeviation = 0;
    //! Difference of the pressure along x, y and z, bar
    std::array<double, 3> pressure = {}, pressureDeviation = {};
    //! Difference of the Lennard-Jones energy, without the constants of groups that exclude each other, kJ/mol
    double energy = 0;

    /*! \brief Returns whether forces are within what is allowed, or beyond, by three standard errors
     *
     * Returns nothing where that is not known.
     */
    std::optional<bool> forcesAreWithin(double allowed) const;
    //! Returns the same of the difference of the pressure from what is expected
    std::optional<bool> pressureIsWithin(const std::array<double, 3>& expected, double allowed) const;
    //! Returns three standard errors of the pressure, along the axis where it is known least, bar
    double pressureUncertainty() const;
    //! Returns the errors in words
    std::string description() const;
};

//! Returns whether both hold, or one does not, as far as that is known
std::optional<bool> bothHold(std::optional<bool> one, std::optional<bool> other);

/*! \brief Measures such errors, in double precision
 *
 * The pressure is that of groups as a whole, where constraints keep hydrogens at their distances:
 * forces of the constraints take the rest.
 */
class FmmLJSplitMeasurement
{
public:
    //! Decides by errors whether they are good enough, or says that it cannot, yet
    using Decision = std::function<std::optional<bool>(const FmmLJSplitErrors&)>;

    //! The arguments are used until the end; the radius of the split is not used
    FmmLJSplitMeasurement(const FmmLJSplit&    split,
                          const t_inputrec&    inputrec,
                          const gmx_mtop_t&    mtop,
                          const matrix         box,
                          ArrayRef<const RVec> x);
    ~FmmLJSplitMeasurement();

    //! Returns the RMS of Coulomb forces, kJ/mol/nm
    double coulombForce() const;
    //! Returns the largest distance between the sites of groups with atoms that exclude each other, nm
    double farthestExclusion() const;
    /*! \brief Returns the errors with each of some radii
     *
     * \param[in] radii     Cut-offs of the pair list of atoms
     * \param[in] mostAtoms About how many atoms are looked at
     */
    std::vector<FmmLJSplitErrors> errors(ArrayRef<const double> radii, int mostAtoms) const;
    /*! \brief Returns the errors with the first of some radii that is good enough, and which radius that is
     *
     * It looks at more and more atoms, starting with \p mostAtoms, until this is known.
     * The index is the number of radii where none is; the errors then are those of the last.
     */
    std::pair<size_t, FmmLJSplitErrors> firstRadius(ArrayRef<const double> radii,
                                                    const Decision&        isGoodEnough,
                                                    int                    mostAtoms) const;

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

//! Returns the volume of the box; without one, and of films, that of so many atoms in water
double fmmVolumeOfAtoms(const t_inputrec& inputrec, const gmx_mtop_t& mtop, const matrix box);

} // namespace gmx

#endif
