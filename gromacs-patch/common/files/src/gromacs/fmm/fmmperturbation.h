/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares what perturbed charges add to a computation by the FMM
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMPERTURBATION_H
#define GMX_FMM_FMMPERTURBATION_H

#include <array>
#include <memory>
#include <vector>

#include "gromacs/utility/arrayref.h"
#include "gromacs/utility/listoflists.h"
#include "gromacs/utility/real.h"

#include "fmmenergygroups.h"
#include "fmmplan.h"

struct gmx_enerdata_t;
struct t_commrec;

namespace gmx
{

class FmmGpu;
class ForceWithVirial;
class StepWorkload;
struct FmmParameters;

/*! \libinternal \brief
 * Coulomb interactions of perturbed charges
 *
 * The energy is (1-lambda) E[qA] + lambda E[qB], as with PME. With D = qB - qA and q = qA + lambda D
 * it is E[q] + lambda (1-lambda) E[D], as E is quadratic in the charges: the plan of all atoms has
 * the charges q, and a small one, here, those atoms alone whose charges change.
 *
 * dE/dlambda = sum D_i phi_i[q] + (1 - 2 lambda) E[D]; the sum is the charge gradient of the large plan.
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
class FmmPerturbation
{
public:
    /*! \brief Finds the atoms whose charges change, and makes the plan for these
     *
     * \param[in] parameters    What the user asked for
     * \param[in] box           Box; not used with open boundary
     * \param[in] epsfac        Coulomb constant over the relative permittivity
     * \param[in] numThreads    Number of OpenMP threads
     * \param[in] chargesA      Charges at lambda = 0
     * \param[in] chargesB      Charges at lambda = 1
     * \param[in] exclusions    Excluded pairs
     * \param[in] x             Coordinates of the .tpr, at which parameters are measured
     * \param[in] groups        Energy group of each atom; empty: there is one
     */
    FmmPerturbation(const FmmParameters&           parameters,
                    const FmmBox&                  box,
                    real                           epsfac,
                    int                            numThreads,
                    ArrayRef<const real>           chargesA,
                    ArrayRef<const real>           chargesB,
                    const ListOfLists<int>&        exclusions,
                    ArrayRef<const RVec>           x,
                    ArrayRef<const unsigned short> groups);
    ~FmmPerturbation();

    /*! \brief Makes the plan of all atoms one of several ranks, with these of the atoms
     *
     * It then has no derivatives. Coordinates and forces are those of these atoms, assign() and
     * addTo() are called by all ranks, and the main one alone adds energies, virial and derivative.
     *
     * \param[in] cr        The ranks, which have to last as long
     * \param[in] home      Which atoms they are
     * \param[in] chargesA  Charges of all atoms at lambda = 0
     */
    void setHome(const t_commrec& cr, ArrayRef<const int> home, ArrayRef<const real> chargesA);
    //! Returns the derivative of the energy by these charges from the potentials at these atoms; all ranks have to call it
    double chargeGradient(ArrayRef<const real> potential) const;

    //! Makes the atoms' charges the parameter of the charge gradient of the plan of all atoms
    void setDerivatives(FmmPlan* plan) const;
    //! Gives the GPU of the plan of all atoms what charges depend on
    void setUpGpu(FmmGpu* gpu) const;
    /*! \brief Gives the plan of all atoms the charges for lambda, unless it has them
     *
     * \param[in,out] plan    The plan
     * \param[in,out] gpu     Its GPU, in whose stream charges change, or nullptr
     * \param[in]     lambda  Lambda of Coulomb interactions
     */
    void setLambda(FmmPlan* plan, FmmGpu* gpu, real lambda);
    //! Tells that the plan of all atoms is a new one, with the charges of lambda = 0
    void planIsNew(FmmPlan* plan);
    //! Number of atoms whose charges change
    int numAtoms() const { return atoms_.size(); }
    //! Returns the sum of the squares of all charges at this lambda
    double sumOfSquares(double lambda) const;
    //! The charges of all atoms for the lambda that was set
    ArrayRef<const real> charges() const { return charges_; }
    //! Passes on a box
    void setBox(const FmmBox& box);
    //! Assigns the perturbed atoms to cells
    void assign(ArrayRef<const RVec> x);
    /*! \brief Adds what the plan of all atoms lacks
     *
     * \param[in]     x                Coordinates of all atoms
     * \param[in]     stepWork         What is needed
     * \param[in]     chargeGradient   That of the plan of all atoms, when the derivative is needed; 0 where
     *                                 it comes from a GPU
     * \param[in,out] forceWithVirial  Forces and virial
     * \param[in,out] enerd            Energies, and the derivative
     */
    void addTo(ArrayRef<const RVec> x,
               const StepWorkload&  stepWork,
               double               chargeGradient,
               ForceWithVirial*     forceWithVirial,
               gmx_enerdata_t*      enerd);

private:
    //! The coordinates of the perturbed atoms
    const RVec* gather(ArrayRef<const RVec> x);

    std::vector<int> atoms_;
    //! Where they are among the atoms of the plan of all; -1 where that is another rank's
    std::vector<int>    place_;
    std::vector<double> difference_;
    //! The same as the small plan has them
    std::vector<real> differenceOfPlan_;
    //! Of the perturbed atoms, those of lambda = 0
    std::vector<real> chargesA_;
    //! Of all atoms, those of lambda_
    std::vector<real> charges_;
    //! Factors of the powers of lambda in the sum of the squares of charges
    std::array<double, 3>    squares_ = { { 0, 0, 0 } };
    real                     lambda_  = -1;
    std::vector<RVec>        x_;
    std::vector<RVec>        force_;
    std::unique_ptr<FmmPlan> plan_;
    //! Those of the perturbed atoms, empty with one energy group
    std::unique_ptr<FmmEnergyGroups> energyGroups_;
    //! nullptr on one rank
    const t_commrec* cr_ = nullptr;
};

} // namespace gmx

#endif
