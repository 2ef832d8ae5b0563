/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares what Lennard-Jones in two lists changes, and how it is measured
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMLJSPLITERRORS_H
#define GMX_FMM_FMMLJSPLITERRORS_H

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gromacs/utility/arrayref.h"

#include "fmmljsplit.h"

namespace gmx
{

//! What Lennard-Jones in two lists changes, against one list of all pairs, with standard errors where not all atoms were looked at
struct FmmLJSplitErrors
{
    //! RMS of the difference of forces, over the RMS of Coulomb forces
    double force = 0, forceDeviation = 0;
    //! Difference of the pressure along x, y and z, bar
    std::array<double, 3> pressure = {}, pressureDeviation = {};
    //! Difference of the Lennard-Jones energy, kJ/mol
    double energy = 0;

    /*! \brief Returns whether errors are within bounds, or one is beyond, by three standard errors
     *
     * Returns nothing where that is not known.
     */
    std::optional<bool> areWithin(double allowedForce, double allowedPressure) const;
    //! Returns the errors in words
    std::string description() const;
};

/*! \brief Measures such errors, in double precision
 *
 * The pressure is that of groups of a heavy atom and its light ones, where constraints keep these
 * at their distances: forces of the constraints take the rest.
 */
class FmmLJSplitMeasurement
{
public:
    //! The arguments are used until the end
    FmmLJSplitMeasurement(const t_inputrec&    inputrec,
                          const gmx_mtop_t&    mtop,
                          const matrix         box,
                          ArrayRef<const RVec> x);
    ~FmmLJSplitMeasurement();

    //! Returns the RMS of Coulomb forces, kJ/mol/nm
    double coulombForce() const;
    /*! \brief Returns the errors with each of some radii of the short list
     *
     * \param[in] split     The light atoms; its own radius is not used
     * \param[in] radii     Radii of the short list
     * \param[in] mostAtoms About how many atoms are looked at
     */
    std::vector<FmmLJSplitErrors> errors(const FmmLJSplit&      split,
                                         ArrayRef<const double> radii,
                                         int                    mostAtoms) const;
    /*! \brief Returns the errors with the least of some radii that is within bounds, and which radius that is
     *
     * It looks at more and more atoms, starting with \p mostAtoms, until this is known.
     * The index is the number of radii where none is; the errors then are those of the last.
     */
    std::pair<size_t, FmmLJSplitErrors> leastRadius(const FmmLJSplit&      split,
                                                    ArrayRef<const double> radii,
                                                    double                 allowedForce,
                                                    double                 allowedPressure,
                                                    int                    mostAtoms) const;

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

//! Returns the volume of the box; without one, and of films, that of so many atoms in water
double fmmVolumeOfAtoms(const t_inputrec& inputrec, const gmx_mtop_t& mtop, const matrix box);

} // namespace gmx

#endif
