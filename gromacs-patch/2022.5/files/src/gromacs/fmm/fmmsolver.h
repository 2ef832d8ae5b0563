/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares the solver behind coulombtype = FMM
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMSOLVER_H
#define GMX_FMM_FMMSOLVER_H

#include <cstdio>

#include <memory>
#include <string>

#include "gromacs/math/vectypes.h"
#include "gromacs/utility/arrayref.h"
#include "gromacs/utility/listoflists.h"
#include "gromacs/utility/real.h"

struct gmx_enerdata_t;
struct gmx_wallcycle;

namespace gmx
{

class ForceWithVirial;
class MDLogger;
class StepWorkload;
struct FmmParameters;

/*! \libinternal \brief
 * Computes all Coulomb interactions by the fast multipole method, except those of listed pairs
 *
 * The near field takes the place of the Coulomb part of the non-bonded
 * kernels, the far field that of the PME mesh.
 *
 * Errors of the library become exceptions with its message.
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
class FmmSolver
{
public:
    /*! \brief Chooses the parameters that were left automatic and sets up the computation
     *
     * \param[in] parameters    What the user asked for
     * \param[in] numAtoms      Number of atoms
     * \param[in] box           Box for which parameters are chosen; not used with open boundary
     * \param[in] x             Coordinates for which parameters are chosen
     * \param[in] epsfac        Coulomb constant over the relative permittivity
     * \param[in] reproducible  Whether the same input has to give the same bits in each run
     * \param[in] numThreads    Number of OpenMP threads
     * \param[in] wcycle        Cycle counters, can be nullptr
     */
    FmmSolver(const FmmParameters& parameters,
              int                  numAtoms,
              const matrix         box,
              ArrayRef<const RVec> x,
              real                 epsfac,
              bool                 reproducible,
              int                  numThreads,
              gmx_wallcycle*       wcycle);
    ~FmmSolver();

    //! Returns the parameters in use, as text
    std::string description() const;
    //! Returns the expected relative RMS force error
    double expectedError() const;

    //! Writes the parameters to the log, with requests to cite
    void logSetup(const MDLogger& mdlog, FILE* fplog) const;
    //! Writes the time spent in each stage to the log
    void logTimes(const MDLogger& mdlog) const;

    //! Sets charges and exclusions, at each change of the order of atoms
    void setAtoms(ArrayRef<const real> charges, const ListOfLists<int>& exclusions);

    /*! \brief Adds forces, energies and virial of the atoms passed to setAtoms()
     *
     * Atoms are assigned to cells at pair-search steps and stay there until
     * the next one, so that energy is conserved in between. No pair is lost
     * meanwhile, as the near field is all pairs in neighboring cells, but
     * expansions converge more slowly for atoms that left their cell, see
     * c_fmmMaxTimeInCells.
     */
    void calculate(ArrayRef<const RVec> x,
                   const matrix         box,
                   const StepWorkload&  stepWork,
                   ForceWithVirial*     forceWithVirial,
                   gmx_enerdata_t*      enerd);

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace gmx

#endif
