/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements what perturbed charges add to a computation by the FMM
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmperturbation.h"

#include <gmxfmm.h>

#include <algorithm>
#include <array>

#include "gromacs/mdtypes/enerdata.h"
#include "gromacs/mdtypes/forceoutput.h"
#include "gromacs/mdtypes/simulation_workload.h"

#include "fmmgpu.h"
#include "fmmstep.h"
#include "gmxfmmoptions.h"

namespace gmx
{

namespace
{

/*! \brief Returns parameters for the perturbed atoms alone
 *
 * Errors of so few atoms depend on where in their cells they are: what was measured at one place
 * would not hold for a molecule that moves. Ten times the accuracy costs next to nothing.
 */
FmmParameters ofPerturbedAtoms(const FmmParameters& all)
{
    FmmParameters few;
    few.accuracy            = std::max(0.1 * all.accuracy, fmmlibrary::accuracy.lowest);
    few.boundary            = all.boundary;
    few.periodicity         = all.periodicity;
    few.minDistance         = all.minDistance;
    few.softCoreMinDistance = all.softCoreMinDistance;
    return few;
}

//! Returns the number of threads for that many atoms: with few, one is done before others have begun
int numThreadsFor(const int numAtoms, const int most)
{
    constexpr int c_atomsOfThread = 500;
    return std::clamp(numAtoms / c_atomsOfThread, 1, most);
}

} // namespace

FmmPerturbation::FmmPerturbation(const FmmParameters&           parameters,
                                 const FmmBox&                  box,
                                 const real                     epsfac,
                                 const int                      numThreads,
                                 ArrayRef<const real>           chargesA,
                                 ArrayRef<const real>           chargesB,
                                 const ListOfLists<int>&        exclusions,
                                 ArrayRef<const RVec>           x,
                                 ArrayRef<const unsigned short> groups) :
    charges_(chargesA.begin(), chargesA.end())
{
    std::vector<int> place(chargesA.size(), -1);
    for (Index i = 0; i < chargesA.ssize(); i++)
    {
        const double charge = chargesA[i], change = chargesB[i] - chargesA[i];
        squares_[0] += charge * charge;
        squares_[1] += 2 * charge * change;
        squares_[2] += change * change;
        if (chargesA[i] != chargesB[i])
        {
            place[i] = atoms_.size();
            atoms_.push_back(i);
            chargesA_.push_back(chargesA[i]);
            // The plans' charges are of type real: their derivative is the difference of these
            differenceOfPlan_.push_back(chargesB[i] - chargesA[i]);
            difference_.push_back(differenceOfPlan_.back());
        }
    }
    ListOfLists<int> excluded;
    std::vector<int> ofAtom;
    for (const int i : atoms_)
    {
        ofAtom.clear();
        if (i < exclusions.ssize())
        {
            for (const int j : exclusions[i])
            {
                if (place[j] >= 0)
                {
                    ofAtom.push_back(place[j]);
                }
            }
        }
        excluded.pushBack(ofAtom);
    }
    x_.resize(atoms_.size());
    force_.resize(atoms_.size());
    place_ = atoms_;
    gather(x);
    plan_ = std::make_unique<FmmPlan>(ofPerturbedAtoms(parameters),
                                      differenceOfPlan_,
                                      excluded,
                                      x_,
                                      box,
                                      epsfac,
                                      numThreadsFor(atoms_.size(), numThreads));
    if (!groups.empty())
    {
        std::vector<unsigned short> ofThese;
        for (const int i : atoms_)
        {
            ofThese.push_back(groups[i]);
        }
        energyGroups_ = std::make_unique<FmmEnergyGroups>(ofThese, differenceOfPlan_);
    }
}

FmmPerturbation::~FmmPerturbation() = default;

double FmmPerturbation::sumOfSquares(const double lambda) const
{
    return squares_[0] + lambda * (squares_[1] + lambda * squares_[2]);
}

void FmmPerturbation::setHome(const t_commrec& cr, ArrayRef<const int> home, ArrayRef<const real> chargesA)
{
    cr_ = &cr;
    std::vector<int> homeOf(chargesA.size(), -1);
    charges_.clear();
    for (Index i = 0; i < home.ssize(); i++)
    {
        homeOf[home[i]] = i;
        charges_.push_back(chargesA[home[i]]);
    }
    std::transform(atoms_.begin(), atoms_.end(), place_.begin(), [&](int i) { return homeOf[i]; });
    lambda_ = -1; // The plan has the charges of lambda = 0
}

double FmmPerturbation::chargeGradient(ArrayRef<const real> potential) const
{
    double sum = 0;
    for (size_t k = 0; k < atoms_.size(); k++)
    {
        sum += place_[k] >= 0 ? difference_[k] * potential[place_[k]] : 0;
    }
    sumDoublesOverRanks(*cr_, arrayRefFromArray(&sum, 1));
    return sum;
}

void FmmPerturbation::setDerivatives(FmmPlan* plan) const
{
    const std::array<int, 2> start = { { 0, static_cast<int>(atoms_.size()) } };
    plan->check(gmxfmm_set_charge_derivatives(
            plan->get(), 1, start.data(), atoms_.data(), difference_.data()));
}

void FmmPerturbation::setUpGpu(FmmGpu* gpu) const
{
    gpu->setPerturbedCharges(atoms_, chargesA_, differenceOfPlan_);
}

void FmmPerturbation::setLambda(FmmPlan* plan, FmmGpu* gpu, const real lambda)
{
    if (lambda == lambda_)
    {
        return;
    }
    const bool isFirst = lambda_ < 0;
    for (size_t k = 0; k < atoms_.size(); k++)
    {
        if (place_[k] >= 0)
        {
            charges_[place_[k]] = chargesA_[k] + lambda * difference_[k];
        }
    }
    if (gpu == nullptr || isFirst || (gmxfmm_capabilities(plan->get()) & GMXFMM_CAN_ENQUEUE_CHARGES) == 0)
    {
        plan->check(gmxfmm_set_charges(plan->get(), charges_.size(), charges_.data()));
    }
    else
    {
        gpu->computePerturbedCharges(lambda);
        plan->check(gmxfmm_enqueue_charges(plan->get(),
                                           atoms_.size(),
                                           gpu->perturbedAtomsAddress(),
                                           gpu->perturbedChargesAddress(),
                                           gpu->stream()));
    }
    lambda_ = lambda;
}

void FmmPerturbation::planIsNew(FmmPlan* plan)
{
    setDerivatives(plan);
    lambda_ = -1;
}

void FmmPerturbation::setBox(const FmmBox& box)
{
    plan_->check(gmxfmm_set_box(plan_->get(), box.data()));
}

const RVec* FmmPerturbation::gather(ArrayRef<const RVec> x)
{
    std::transform(place_.begin(),
                   place_.end(),
                   x_.begin(),
                   [x](int i) {
                       return i >= 0 ? x[i] : RVec{ 0, 0, 0 };
                   });
    if (cr_ != nullptr) // Each is at home on one rank: it is added to zeros, which is exact
    {
        sumOverRanks(*cr_, arrayRefFromArray(as_rvec_array(x_.data())[0], DIM * x_.size()));
    }
    return x_.data();
}

void FmmPerturbation::assign(ArrayRef<const RVec> x)
{
    plan_->check(gmxfmm_assign(plan_->get(), gather(x)));
}

void FmmPerturbation::addTo(ArrayRef<const RVec> x,
                            const StepWorkload&  stepWork,
                            const double         chargeGradient,
                            ForceWithVirial*     forceWithVirial,
                            gmx_enerdata_t*      enerd)
{
    const double factor = static_cast<double>(lambda_) * (1 - static_cast<double>(lambda_));
    if (factor == 0 && !stepWork.computeDhdl)
    {
        return;
    }
    gmxfmm_output output = {};
    output.size          = sizeof(output);
    output.force         = stepWork.computeForces && factor != 0 ? force_.data() : nullptr;
    output.want_energy   = 1;
    output.want_virial   = stepWork.computeVirial && factor != 0 ? 1 : 0;
    plan_->check(plan_->execute(gather(x), &output));
    const double energy = output.energy_near + output.energy_far;

    for (size_t k = 0; k < atoms_.size() && output.force != nullptr; k++)
    {
        if (place_[k] >= 0)
        {
            forceWithVirial->force_[place_[k]] += static_cast<real>(factor) * force_[k];
        }
    }
    if (cr_ != nullptr && !isMainRank(*cr_))
    {
        return;
    }
    for (double& element : output.virial) // zero where it is not wanted
    {
        element *= factor;
    }
    if (energyGroups_ && stepWork.computeEnergy && factor != 0)
    {
        energyGroups_->addTo(plan_.get(), x_.data(), differenceOfPlan_, energy, factor, enerd);
    }
    addFmmSums(0, energyGroups_ ? 0 : factor * energy, output.virial, stepWork, forceWithVirial, enerd);
    if (stepWork.computeDhdl)
    {
        enerd->dvdl_lin[FreeEnergyPerturbationCouplingType::Coul] +=
                chargeGradient + (1 - 2 * static_cast<double>(lambda_)) * energy;
    }
}

} // namespace gmx
