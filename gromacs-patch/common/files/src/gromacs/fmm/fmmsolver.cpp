/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements the solver behind coulombtype = FMM with the gmxfmm library
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmsolver.h"

#include <gmxfmm.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/mdtypes/multipletimestepping.h"
#include "gromacs/mdtypes/simulation_workload.h"
#include "gromacs/nbnxm/pairlist_tuning.h"
#include "gromacs/pbcutil/pbc.h"
#include "gromacs/timing/cyclecounter.h"
#include "gromacs/timing/wallcycle.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/exceptions.h"
#include "gromacs/utility/logger.h"
#include "gromacs/utility/stringutil.h"

#include "fmmcoincidence.h"
#include "fmmcommunicator.h"
#include "fmmdomains.h"
#include "fmmenergygroups.h"
#include "fmmgpu.h"
#include "fmmgpuranks.h"
#include "fmmgpusteps.h"
#include "fmmljsplit.h"
#include "fmmljsplitchoice.h"
#include "fmmopensystem.h"
#include "fmmpairlist.h"
#include "fmmperturbation.h"
#include "fmmplan.h"
#include "fmmranks.h"
#include "fmmremeasure.h"
#include "fmmreport.h"
#include "fmmsiteenergies.h"
#include "fmmsites.h"
#include "fmmslab.h"
#include "fmmstep.h"
#include "fmmsystem.h"
#include "gmxfmmoptions.h"

namespace gmx
{

std::string whyNoFmmOnDevice(int deviceId, bool isSlab)
{
    std::array<char, 256> message = { { '\0' } };
    gmxfmm_status status = gmxfmm_check_device(GMXFMM_CUDA, deviceId, message.data(), message.size());
    if (status == GMXFMM_OK && isSlab)
    {
        // What the library offers, the smallest plan of that kind tells
        constexpr std::array<double, 9> c_unitBox = { { 1, 0, 0, 0, 1, 0, 0, 0, 1 } };
        gmxfmm_options                  options;
        gmxfmm_plan*                    plan = nullptr;
        gmxfmm_default_options(&options);
        options.device       = GMXFMM_CUDA;
        options.device_id    = deviceId;
        options.periodic[XX] = 1;
        options.periodic[YY] = 1;
        status = gmxfmm_create(&plan, &options, 1, c_unitBox.data(), message.data(), message.size());
        gmxfmm_destroy(plan);
    }
    return status == GMXFMM_OK ? std::string()
                               : std::string("the gmxfmm library says: ") + message.data();
}

namespace
{

//! Makes a plan for these GPUs
using PlanMaker = std::function<std::unique_ptr<FmmPlan>(ArrayRef<const int>)>;

//! A plan, and the time of its steps in s
struct TimedPlan
{
    std::unique_ptr<FmmPlan> plan;
    double                   time = 0;
};

//! Returns the GPUs of a step, with the one of mdrun's task first
std::vector<int> devicesInOrder(const int first, const FmmDevices& devices)
{
    std::vector<int> others = devices.available;
    const auto       itself = std::find(others.begin(), others.end(), first);
    if (itself != others.end())
    {
        others.erase(itself);
    }
    const size_t     num   = devices.num > 0 ? devices.num : GMXFMM_MAX_DEVICES;
    std::vector<int> order = { first };
    order.insert(order.end(), others.begin(), others.begin() + std::min(num - 1, others.size()));
    return order;
}

/*! \brief Makes a plan for one GPU and one for all, and returns the one with the faster steps
 *
 * Each has the parameters that are best for it. Where one of them cannot be made, it is the other.
 */
std::unique_ptr<FmmPlan> makeFasterPlan(const PlanMaker&     make,
                                        ArrayRef<const int>  devices,
                                        const gmx_mtop_t&    mtop,
                                        ArrayRef<const RVec> x,
                                        FmmGpu*              gpu,
                                        std::string*         note)
{
    constexpr double c_lessByChance = 0.98; // of two times of the same step
    const auto       one            = devices.subArray(0, 1);
    gpu->setNumAtoms(mtop.natoms);
    const void* xOnDevice = gpu->upload(x);
    const auto  timed     = [&](ArrayRef<const int> those)
    {
        TimedPlan made;
        try
        {
            made.plan = make(those);
            made.time = made.plan->timeOfStep(mtop, x, xOnDevice, gpu->stream());
        }
        catch (const GromacsException& failure)
        {
            made.plan = nullptr;
            *note     = formatString(
                    "%s: %s used", failure.what(), those.size() > 1 ? "one GPU is" : "all GPUs are");
        }
        return made;
    };
    TimedPlan onAll = timed(devices);
    if (onAll.plan == nullptr)
    {
        return make(one);
    }
    const gmxfmm_info info = onAll.plan->info();
    if (info.num_devices < 2)
    {
        *note = std::string("FMM: one GPU is used: ") + info.devices_note;
        return std::move(onAll.plan);
    }
    TimedPlan onOne = timed(one);
    if (onOne.plan == nullptr)
    {
        return std::move(onAll.plan);
    }
    const bool isFaster = onAll.time < c_lessByChance * onOne.time;
    *note               = fmmDevicesNote(onOne.time, onAll.time, info, isFaster);
    return std::move(isFaster ? onAll.plan : onOne.plan);
}

//! Makes the plan; \p note becomes what the log is to say of its GPUs
std::unique_ptr<FmmPlan> makePlan(const PlanMaker&     make,
                                  const FmmDevices&    devices,
                                  const gmx_mtop_t&    mtop,
                                  ArrayRef<const RVec> x,
                                  FmmGpu*              gpu,
                                  std::string*         note)
{
    if (gpu == nullptr)
    {
        return make({});
    }
    const std::vector<int> order = devicesInOrder(gpu->deviceId(), devices);
    if (devices.num == 0 && order.size() > 1)
    {
        return makeFasterPlan(make, order, mtop, x, gpu, note);
    }
    std::unique_ptr<FmmPlan> plan = make(order);
    *note                         = plan->info().devices_note;
    return plan;
}

//! Coordinates and box by which parameters are chosen: those of the .tpr file, or of a choice during the run
class Place
{
public:
    Place(const FmmChoice& choice, ArrayRef<const RVec> x, const matrix box) : x_(x)
    {
        copy_mat(box, box_);
        if (ssize(choice.x) == DIM * x.ssize() && !choice.x.empty())
        {
            own_.reserve(x.size());
            for (size_t i = 0; i < choice.x.size(); i += DIM)
            {
                own_.emplace_back(choice.x[i], choice.x[i + 1], choice.x[i + 2]);
            }
            for (int i = 0; i < DIM * DIM; i++)
            {
                box_[i / DIM][i % DIM] = choice.box[i];
            }
            x_ = own_;
        }
    }
    ArrayRef<const RVec> x() const { return x_; }
    const matrix&        box() const { return box_; }

private:
    std::vector<RVec>    own_;
    ArrayRef<const RVec> x_;
    matrix               box_;
};

//! Seconds of a steady clock
double secondsNow()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

} // namespace

class FmmSolver::Impl
{
public:
    Impl(const FmmParameters&       parameters,
         const gmx_mtop_t&          mtop,
         const matrix               box,
         ArrayRef<const RVec>       x,
         real                       epsfac,
         bool                       reproducible,
         int                        numThreads,
         gmx_wallcycle*             wcycle,
         const DeviceStreamManager* gpuStreams) :
        Impl(parameters, mtop, box, x, Place(parameters.choice, x, box), epsfac, reproducible, numThreads, wcycle, gpuStreams)
    {
    }

    Impl(const FmmParameters&       parameters,
         const gmx_mtop_t&          mtop,
         const matrix               box,
         ArrayRef<const RVec>       x,
         const Place&               place,
         real                       epsfac,
         bool                       reproducible,
         int                        numThreads,
         gmx_wallcycle*             wcycle,
         const DeviceStreamManager* gpuStreams) :
        parameters_(parameters),
        mtop_(mtop),
        epsfac_(epsfac),
        reproducible_(reproducible),
        numThreads_(numThreads),
        wcycle_(wcycle),
        gpu_(gpuStreams != nullptr ? std::make_unique<FmmGpu>(*gpuStreams) : nullptr),
        plan_(makePlan(
                [&](ArrayRef<const int> devices)
                {
                    return std::make_unique<FmmPlan>(
                            parameters, mtop, place.box(), place.x(), epsfac, reproducible, numThreads, devices);
                },
                parameters.devices,
                mtop,
                place.x(),
                gpu_.get(),
                &devicesNote_)),
        gpuSteps_(gpu_ ? std::make_unique<FmmGpuSteps>(*plan_, gpu_.get(), wcycle) : nullptr),
        startBox_(fmmBox(parameters.periodicity, box)),
        box_(fmmBox(parameters.periodicity, place.box())),
        nearAtomsAtStart_(plan_->info().near_particles),
        assignments_(gpu_ ? parameters.maxStepsInCellsOnGpu : parameters.maxStepsInCellsOnCpu),
        occupiedVolume_(openSystemVolume(x)),
        startX_(x.begin(), x.end())
    {
        ownChoice_ = parameters.choice;
        if (plan_->isChosenByTimes() || parameters.choice.asked > 0)
        {
            takeChoice();
        }
    }

    //! Without a plan, which the main rank has
    Impl(const FmmParameters&       parameters,
         const gmx_mtop_t&          mtop,
         gmx_wallcycle*             wcycle,
         const DeviceStreamManager& gpuStreams) :
        parameters_(parameters),
        mtop_(mtop),
        epsfac_(0),
        reproducible_(false),
        numThreads_(1),
        wcycle_(wcycle),
        gpu_(std::make_unique<FmmGpu>(gpuStreams)),
        startBox_({}),
        box_({}),
        nearAtomsAtStart_(0),
        assignments_(0),
        occupiedVolume_(0)
    {
    }

    //! Keeps what the plan has chosen, with the coordinates that are kept
    void takeChoice()
    {
        FmmChoice choice       = plan_->choice();
        choice.x               = std::move(choice_->x);
        choice.box             = choice_->box;
        choice.schedule        = choice_->schedule;
        choice.nstlist         = choice_->nstlist;
        choice.isNstlistForGpu = choice_->isNstlistForGpu;
        choice.nstlistRanks    = choice_->nstlistRanks;
        *choice_               = std::move(choice);
    }

    //! Passes on a box that is not the one the plan has
    void setBox(const matrix box)
    {
        if (plan_ == nullptr)
        {
            return;
        }
        const FmmBox newBox = fmmBox(parameters_.periodicity, box);
        if (newBox == box_ || plan_->isOpen())
        {
            return;
        }
        if (gpuSteps_)
        {
            gpuSteps_->setBox(newBox);
        }
        else
        {
            plan_->check(gmxfmm_set_box(plan_->get(), newBox.data()));
        }
        if (perturbation_)
        {
            perturbation_->setBox(newBox);
        }
        box_ = newBox;
        if (mdlog_ != nullptr && logFmmVolume(box_, startBox_, *mdlog_))
        {
            mdlog_ = nullptr; // Once is enough
        }
    }

    //! Tells once when atoms that are not bound to a box have become much denser, or less dense, and nothing was measured since
    void watchDensity()
    {
        const bool isBound = !plan_->isOpen() && parameters_.periodicity == FmmPeriodicity::Box;
        if (isBound || mdlog_ == nullptr || remeasurements_.numMeasured > 0)
        {
            return;
        }
        const double nearAtoms = plan_->info().near_particles;
        if (logFmmOpenDensity(nearAtoms, nearAtomsAtStart_, *mdlog_))
        {
            mdlog_ = nullptr; // Once is enough
        }
    }

    //! Returns what was chosen, with the coordinates that are kept
    FmmChoice choiceForOtherRanks() const
    {
        FmmChoice choice = plan_->asked();
        choice.x         = choice_->x;
        choice.box       = choice_->box;
        return choice;
    }

    //! See FmmSolver::followAtoms()
    void followAtoms(ArrayRef<const RVec> x, const matrix box, const int64_t step)
    {
        if (!fmmIsMeasuredAgain(parameters_))
        {
            return;
        }
        if (!ranks_)
        {
            followAllAtoms(x, box, step);
            return;
        }
        // The main rank measures and chooses, others take what it has chosen
        const ArrayRef<const RVec> xOfAll    = ranks_->gather(x);
        const int                  numBefore = remeasurements_.numChosen;
        const bool                 isMain    = isMainRank(ranks_->commrec());
        if (isMain)
        {
            followAllAtoms(xOfAll, box, step);
        }
        bool isChosen = remeasurements_.numChosen > numBefore;
        broadcastToRanks(ranks_->commrec(), sizeof(isChosen), &isChosen);
        if (isChosen)
        {
            const FmmChoice choice =
                    shareFmmChoice(ranks_->commrec(), isMain ? choiceForOtherRanks() : FmmChoice());
            if (!isMain)
            {
                takeNewPlan(xOfAll, box, &choice);
            }
        }
    }

    //! The same, with the coordinates of all atoms
    void followAllAtoms(ArrayRef<const RVec> x, const matrix box, const int64_t step)
    {
        const double            spread   = fmmSpread(fmmPbcType(parameters_), x);
        FmmMeasurementSchedule& schedule = choice_->schedule;
        if (isFirstSearch_)
        {
            isFirstSearch_   = false;
            firstSearchTime_ = secondsNow();
            schedule         = schedule.since < 0 ? firstFmmMeasurement(spread) : schedule;
            countedFrom_     = numEvaluations_ - schedule.since;
        }
        schedule.since = numEvaluations_ - countedFrom_;
        if (fmmMeasurementIsDue(schedule, spread))
        {
            constexpr int c_leastToTime = 100; // evaluations
            const bool    isTimed = plan_->isChosenByTimes() && numEvaluations_ >= c_leastToTime;
            const double  begin   = secondsNow();
            const double aStep = (begin - firstSearchTime_) / std::max<int64_t>(1, numEvaluations_);
            const bool   isChosen = measureAgain(x, box, step, fmmSpreadIsOther(schedule, spread));
            const double seconds  = secondsNow() - begin;
            remeasurements_.seconds += seconds;
            // Times are others in each run, which is to do the same, unless it has chosen by times
            const double assumed = c_fmmCostOfMeasurement + (isChosen ? c_fmmCostOfChoice : 0);
            noteFmmMeasurement(
                    &schedule, spread, isTimed ? std::max(assumed, seconds / aStep) : assumed, isChosen);
            countedFrom_ = numEvaluations_;
        }
    }

    //! Measures the parameters in use; chooses others if they miss the accuracy, or in any case. Returns whether it tried to.
    bool measureAgain(ArrayRef<const RVec> x, const matrix box, const int64_t step, const bool isToChoose)
    {
        const double           lambda     = perturbation_ ? lambda_ : 0;
        const FmmMeasuredError measured   = plan_->measureAt(mtop_, x, box, lambda);
        const bool             isMeasured = measured.status == FmmMeasurementStatus::Measured;
        remeasurements_.numMeasured++;
        if (isMeasured && measured.error <= plan_->accuracy() && !isToChoose)
        {
            return false;
        }
        std::string why = measured.message;
        if (isMeasured)
        {
            try
            {
                takeNewPlan(x, box, nullptr);
                remeasurements_.numChosen++;
                if (mdlog_ != nullptr)
                {
                    logFmmChosenAnew(step, measured.error, *plan_, *mdlog_);
                }
                return true;
            }
            catch (const GromacsException& failure)
            {
                why = failure.what();
            }
        }
        if (mdlog_ != nullptr)
        {
            logFmmNotChosenAnew(step, measured.error, plan_->accuracy(), why.c_str(), *mdlog_);
        }
        return true;
    }

    //! Chooses parameters for these coordinates, unless the main rank has, and makes the plan anew, on the same devices
    void takeNewPlan(ArrayRef<const RVec> x, const matrix box, const FmmChoice* ofMainRank)
    {
        const gmxfmm_info info = plan_->info();
        FmmParameters     anew = parameters_;
        anew.choice            = ofMainRank != nullptr ? *ofMainRank : FmmChoice();
        std::vector<int> devices(info.devices, info.devices + (gpu_ ? info.num_devices : 0));
        auto             plan = std::make_unique<FmmPlan>(
                anew, mtop_, box, x, epsfac_, reproducible_, numThreads_, devices);
        plan->setAtoms(fmmCharges(mtop_, 0), fmmExclusions(mtop_));
        if (gpuSteps_)
        {
            gpuSteps_ = std::make_unique<FmmGpuSteps>(*plan, gpu_.get(), wcycle_);
            gpuSteps_->setAtoms(mtop_.natoms, perturbation_ != nullptr);
            gpuSteps_->setSites(sites_.get(), siteLists_, fmmBox(parameters_.periodicity, box));
        }
        plan_ = std::move(plan);
        box_  = fmmBox(parameters_.periodicity, box);
        if (perturbation_)
        {
            perturbation_->planIsNew(plan_.get());
            perturbation_->setBox(box_);
        }
        assignments_.atomsHaveChanged();
        choice_->x.clear();
        for (const RVec& xi : x)
        {
            choice_->x.insert(choice_->x.end(), { xi[XX], xi[YY], xi[ZZ] });
        }
        for (int i = 0; i < DIM * DIM; i++)
        {
            choice_->box[i] = box[i / DIM][i % DIM];
        }
        takeChoice();
    }

    //! Tells once when perturbed charges are others than those for which parameters were chosen
    void watchCharges()
    {
        if (!perturbation_ || mdlog_ == nullptr)
        {
            return;
        }
        const double squares = perturbation_->sumOfSquares(lambda_);
        const bool   isOther =
                std::all_of(plan_->lambdas().begin(),
                            plan_->lambdas().end(),
                            [&](double known)
                            { return fmmIsOther(squares / perturbation_->sumOfSquares(known)); });
        if (isOther && logFmmCharges(squares, perturbation_->sumOfSquares(parameters_.startLambda), *mdlog_))
        {
            mdlog_ = nullptr; // Once is enough
        }
    }

    //! See FmmSolver::splitLennardJones()
    void splitLennardJones(const t_inputrec&    inputrec,
                           const FmmSiteLists&  lists,
                           const matrix         box,
                           ArrayRef<const RVec> x,
                           const MDLogger&      mdlog)
    {
        const std::unique_ptr<FmmLJSplit> split = FmmLJSplit::make(inputrec, mtop_);
        if (split == nullptr || plan_ == nullptr)
        {
            return; // or the main rank computes them
        }
        FmmLJSplit::checkResources();
        if (!ranks_ || isMainRank(ranks_->commrec()))
        {
            checkLJSplit(*split, inputrec, mtop_, box, x, parameters_.accuracy, mdlog);
        }
        const int           numPeriodic = plan_->isOpen()                                  ? 0
                                          : parameters_.periodicity == FmmPeriodicity::Box ? DIM
                                                                                           : DIM - 1;
        const FmmSitesSetup setup       = { mtop_.natoms,
                                            numPeriodic,
                                            split->buffer(inputrec, mtop_, lists),
                                            numThreads_,
                                      gpu_ ? gpu_->deviceId() : -1 };
        std::vector<int>    all(split->numGroups());
        std::iota(all.begin(), all.end(), 0);
        sites_ = std::make_unique<FmmSites>(*split, all, setup);
        if (lists.interval > 0)
        {
            sites_->addAtoms(*split, mtop_, setup);
        }
        siteLists_        = lists;
        siteLists_.radius = split->radius() + setup.buffer;
        if (gpuSteps_)
        {
            gpuSteps_->setSites(sites_.get(), siteLists_, box_);
        }
        logFmmSiteLists(siteLists_, split->settings().whole.cutoff + setup.buffer, mdlog);
        const int numEnergyGroups = inputrec.opts.ngener - inputrec.nwall;
        if (numEnergyGroups > 1)
        {
            GMX_RELEASE_ASSERT(!gpu_, "Energies of groups are computed on the CPU");
            siteEnergies_ = std::make_unique<FmmSiteEnergies>(*split, mtop_, numEnergyGroups, setup);
        }
    }

    //! See FmmSolver::choosePairList()
    void choosePairList(const t_inputrec&           inputrec,
                        int                         multipleOf,
                        FmmListChanger              change,
                        std::unique_ptr<FmmDomains> domains,
                        const MDLogger&             mdlog)
    {
        // A search at each evaluation was probably set for a reason, as mdrun's rule has it, too
        const int          mtsFactor = nonbondedMtsFactor(inputrec);
        const FmmListTuner tuner(inputrec.nstlist, std::lcm(multipleOf, mtsFactor));
        if (supportsDynamicPairlistGenerationInterval(inputrec) && inputrec.nstlist > mtsFactor
            && !tuner.isDone())
        {
            list_ = std::make_unique<PairList>(PairList{ tuner,
                                                         std::move(change),
                                                         std::move(domains),
                                                         inputrec,
                                                         mdlog,
                                                         inputrec.nstlist,
                                                         inputrec.rlist,
                                                         FmmLJSplit::make(inputrec, mtop_) });
        }
        if (list_ && list_->domains)
        {
            list_->domains->begin();
        }
    }

    //! See FmmSolver::tunePairList()
    void tunePairList(const int64_t step, const matrix box, ArrayRef<const RVec> x)
    {
        if (!list_)
        {
            return;
        }
        const double now = secondsNow();
        if (list_->searchStep >= 0)
        {
            double seconds = now - list_->searchTime;
            if (ranks_)
            {
                // With the same times all ranks choose the same
                broadcastToRanks(ranks_->commrec(), sizeof(seconds), &seconds);
            }
            list_->tuner.add(step - list_->searchStep, seconds);
        }
        list_->searchStep = step;
        list_->searchTime = now;

        const MDLogger noLog;
        if (!changePairList(box, x, list_->tuner.isDone() ? list_->mdlog : noLog))
        {
            list_->tuner.refuse();
            changePairList(box, x, list_->mdlog);
        }
        if (list_->tuner.isDone())
        {
            choice_->nstlist         = list_->inputrec.nstlist;
            choice_->isNstlistForGpu = gpu_ != nullptr;
            choice_->nstlistRanks    = ranks_ ? ranks_->size() : 1;
            if (list_->domains)
            {
                list_->domains->end();
            }
            logFmmListChoice(
                    list_->firstNstlist, list_->firstRlist, list_->inputrec, list_->tuner.trials(), list_->mdlog);
            list_.reset();
        }
    }

    //! Takes the nstlist that is to be used next, and returns whether there is room for its lists in box and domains
    bool changePairList(const matrix box, ArrayRef<const RVec> x, const MDLogger& mdlog)
    {
        const t_inputrec& inputrec = list_->inputrec;
        const int         nstlist  = list_->tuner.nstlist();
        // A list that is chosen is told of, though it be in use
        if (nstlist == inputrec.nstlist && !(list_->tuner.isDone() && nstlist != list_->firstNstlist))
        {
            return true;
        }
        const bool isLonger = nstlist > inputrec.nstlist;
        list_->change(nstlist, mdlog);
        double reach = inputrec.rlist;
        if (const FmmLJSplit* split = list_->split.get())
        {
            reach = split->settings().whole.cutoff + split->buffer(inputrec, mtop_, siteLists_);
            sites_->setReach(reach);
            if (siteEnergies_)
            {
                siteEnergies_->setReach(reach);
            }
        }
        const FmmParameters anew = fmmParameters(inputrec);
        assignments_.setMaxStepsInCells(gpu_ ? anew.maxStepsInCellsOnGpu : anew.maxStepsInCellsOnCpu);
        if (FmmDomains* domains = list_->domains.get())
        {
            if (!domains->makeRoom(inputrec, box, x))
            {
                return false;
            }
            reach = std::max<double>(reach, domains->cutoff());
        }
        // Of the box's limit, so that a later box can be somewhat smaller
        constexpr double c_mostOfLimit = 0.95;
        return !isLonger || inputrec.pbcType == PbcType::No
               || reach < c_mostOfLimit * std::sqrt(max_cutoff2(inputrec.pbcType, box));
    }

    //! Adds Lennard-Jones interactions of groups on the CPU, with coordinates of and forces on all atoms
    void calculateSites(ArrayRef<const RVec> x,
                        const StepWorkload&  stepWork,
                        ForceWithVirial*     forceWithVirial,
                        gmx_enerdata_t*      enerd)
    {
        if (stepWork.doNeighborSearch || !haveSiteLists_)
        {
            sites_->search(x.data(), box_, nullptr);
            haveSiteLists_ = true;
            if (siteEnergies_)
            {
                siteEnergies_->listsAreOld();
            }
        }
        const bool        needsSums = stepWork.computeEnergy || stepWork.computeVirial;
        const FmmSiteSums plain = sites_->calculate(x, box_, needsSums, forceWithVirial->force_);
        FmmSiteSums       sums  = sites_->withConstants(plain, box_);
        if (siteEnergies_ && stepWork.computeEnergy)
        {
            siteEnergies_->addTo(x, box_, plain[0], sites_->addsConstants(), enerd);
            sums[0] = 0;
        }
        addFmmSiteSums(sums, stepWork, forceWithVirial, enerd);
    }

    //! The same on one of several ranks, with coordinates of and forces on its home atoms
    void calculateSitesOnRank(ArrayRef<const RVec> x,
                              const StepWorkload&  stepWork,
                              ForceWithVirial*     forceWithVirial,
                              gmx_enerdata_t*      enerd)
    {
        ForceWithVirial ofAll = ranks_->clearedForces(stepWork);
        calculateSites(ranks_->gather(x), stepWork, &ofAll, enerd);
        ranks_->addHomeForces(ofAll, forceWithVirial);
    }

    //! Throws when a step on the CPU has failed at these coordinates, with the names of atoms that stand at one place
    void checkStep(gmxfmm_status status, ArrayRef<const RVec> x) const
    {
        if (status == GMXFMM_ERROR_COINCIDENT)
        {
            // An error of all ranks
            const auto    ofAll = isDivided_ ? ranks_->gather(x) : x;
            const double* box   = plan_->isOpen() ? nullptr : box_.data();
            plan_->check(status, fmmAtomsAtOnePlace(gmxfmm_message(plan_->get()), mtop_, ofAll, box));
        }
        plan_->check(status);
    }

    //! Computes a step on the CPU
    void calculate(ArrayRef<const RVec> x,
                   const matrix         box,
                   const StepWorkload&  stepWork,
                   int64_t              step,
                   ForceWithVirial*     forceWithVirial,
                   gmx_enerdata_t*      enerd)
    {
        numEvaluations_++;
        setBox(box);
        if (perturbation_)
        {
            perturbation_->setLambda(plan_.get(), nullptr, lambda_);
        }
        if (assignments_.due(stepWork, step) != FmmAssignment::No)
        {
            plan_->check(gmxfmm_assign(plan_->get(), x.data()));
            if (perturbation_)
            {
                perturbation_->assign(x);
            }
            watchDensity();
            watchCharges();
        }

        // All ranks compute what any of them needs, and the main one alone adds sums
        const StepWorkload ownWork       = isDivided_ ? ranks_->workOfThisRank(stepWork) : stepWork;
        const bool         needsGradient = perturbation_ && stepWork.computeDhdl;
        double             chargeGradient = 0;
        gmxfmm_output      output         = {};
        output.size                       = sizeof(output);
        output.force                      = stepWork.computeForces ? force_.data() : nullptr;
        output.want_energy                = ownWork.computeEnergy ? 1 : 0;
        output.want_virial                = ownWork.computeVirial ? 1 : 0;
        output.charge_gradient = needsGradient && !isDivided_ ? &chargeGradient : nullptr;
        output.potential       = needsGradient && isDivided_ ? potential_.data() : nullptr;
        checkStep(plan_->execute(x.data(), &output), x);
        if (needsGradient && isDivided_)
        {
            chargeGradient = perturbation_->chargeGradient(potential_);
        }

        addFmmForces(force_, stepWork, forceWithVirial);
        if (energyGroups_ && stepWork.computeEnergy)
        {
            energyGroups_->addTo(plan_.get(),
                                 x.data(),
                                 perturbation_ ? perturbation_->charges() : charges_,
                                 output.energy_near + output.energy_far,
                                 1,
                                 enerd);
            output.energy_near = output.energy_far = 0;
        }
        addFmmSums(output.energy_near, output.energy_far, output.virial, ownWork, forceWithVirial, enerd);
        if (perturbation_)
        {
            perturbation_->addTo(x, stepWork, chargeGradient, forceWithVirial, enerd);
        }
    }

    //! Computes a step on the CPU, and counts the cycles of near and far field
    void calculateAndCount(ArrayRef<const RVec> x,
                           const matrix         box,
                           const StepWorkload&  stepWork,
                           int64_t              step,
                           ForceWithVirial*     forceWithVirial,
                           gmx_enerdata_t*      enerd)
    {
        // GROMACS resets its counters some time after the start, ours should cover the same steps
        if (wcycle_ != nullptr && wcycle_->wcc[WallCycleCounter::FmmNear].n == 0)
        {
            gmxfmm_reset_times(plan_->get());
            gmxfmm_reset_ranks_times(plan_->get());
        }
        const gmxfmm_info  infoBefore  = plan_->info();
        const double       ranksBefore = fmmExchangeTime(plan_->ranksInfo());
        const gmx_cycles_t cycleBefore = gmx_cycles_read();

        calculate(x, box, stepWork, step, forceWithVirial, enerd);

        // Near and far field are computed in one call, so divide the cycles by the times they took
        const gmx_cycles_t cyclesUsed   = gmx_cycles_read() - cycleBefore;
        const gmxfmm_info  info         = plan_->info();
        const double       timeNear     = fmmNearTime(info) - fmmNearTime(infoBefore);
        const double       timeFar      = fmmFarTime(info) - fmmFarTime(infoBefore);
        const double       timeExchange = fmmExchangeTime(plan_->ranksInfo()) - ranksBefore;
        const double       time         = timeNear + timeFar + timeExchange;
        const auto         cyclesOf     = [&](double part)
        { return time > 0 ? static_cast<gmx_cycles_t>(part / time * cyclesUsed) : 0; };
        const gmx_cycles_t cyclesNear = cyclesOf(timeNear), cyclesExchange = cyclesOf(timeExchange);
        wallcycle_add(wcycle_, WallCycleCounter::FmmNear, cyclesNear);
        wallcycle_add(wcycle_, WallCycleCounter::FmmFar, cyclesUsed - cyclesNear - cyclesExchange);
        if (isDivided_)
        {
            wallcycle_add(wcycle_, WallCycleCounter::FmmExchange, cyclesExchange);
        }
    }

    //! Passes on the home atoms of this rank, where the library divides the FMM
    void setDividedAtoms(ArrayRef<const int> home)
    {
        if (!communicator_)
        {
            communicator_ = std::make_unique<FmmCommunicator>(ranks_->commrec());
            const ListOfLists<int> exclusions = fmmExclusions(mtop_);
            atomKinds_                        = FmmAtomKinds(ranks_->charges(), exclusions);
            setEnergyGroups(ranks_->charges(), ranks_->energyGroups());
            setPerturbation(ranks_->charges(), ranks_->chargesB(), exclusions, ranks_->energyGroups());
            plan_->divide(communicator_->get(), mtop_.natoms, box_);
        }
        plan_->setHomeAtoms(home, atomKinds_);
        force_.resize(home.size());
        potential_.resize(perturbation_ ? home.size() : 0);
        if (perturbation_)
        {
            perturbation_->setHome(ranks_->commrec(), home, ranks_->charges());
        }
        if (energyGroups_)
        {
            energyGroups_->setHome(ranks_->commrec(), home);
            charges_.clear();
            std::transform(home.begin(),
                           home.end(),
                           std::back_inserter(charges_),
                           [this](int i) { return ranks_->charges()[i]; });
        }
        assignments_.atomsHaveChanged();
    }

    //! Sets the energy groups, if there are several
    void setEnergyGroups(ArrayRef<const real> charges, ArrayRef<const unsigned short> groups)
    {
        energyGroups_.reset();
        if (std::any_of(groups.begin(), groups.end(), [](unsigned short group) { return group > 0; }))
        {
            GMX_RELEASE_ASSERT(!gpu_, "Energies of groups are computed on the CPU");
            charges_.assign(charges.begin(), charges.end());
            energyGroups_ = std::make_unique<FmmEnergyGroups>(groups, charges);
        }
    }

    //! Sets the atoms whose charges are perturbed, if there are such
    void setPerturbation(ArrayRef<const real>           chargesA,
                         ArrayRef<const real>           chargesB,
                         const ListOfLists<int>&        exclusions,
                         ArrayRef<const unsigned short> groups)
    {
        perturbation_.reset();
        if (std::equal(chargesB.begin(), chargesB.end(), chargesA.begin()))
        {
            startX_ = std::vector<RVec>();
            return; // also where there are none
        }
        perturbation_ = std::make_unique<FmmPerturbation>(
                parameters_,
                box_,
                epsfac_,
                numThreads_,
                chargesA,
                chargesB,
                exclusions,
                startX_,
                energyGroups_ ? groups : ArrayRef<const unsigned short>());
        if (!isDivided_)
        {
            perturbation_->setDerivatives(plan_.get());
        }
        if (gpu_)
        {
            perturbation_->setUpGpu(gpu_.get());
        }
        if (mdlog_ != nullptr && !isPerturbationLogged_)
        {
            logFmmPerturbation(perturbation_->numAtoms(), parameters_.softCoreMinDistance > 0, *mdlog_);
            isPerturbationLogged_ = true;
        }
    }

    //! See FmmSolver::mayBeInGraph()
    bool mayBeInGraph(int64_t step)
    {
        numEvaluations_++;
        countedStep_ = step;
        // The host makes molecules whole, and computes what perturbed charges add
        return !isGivenByHost_ && !perturbation_
               && gpuSteps_->mayBeInGraph(step, assignments_.isDueBetweenSearches(step));
    }

    //! See FmmSolver::enqueueBeforeGraph()
    bool enqueueBeforeGraph(int64_t step)
    {
        const bool isToAssign = assignments_.due(StepWorkload(), step) != FmmAssignment::No;
        const bool isWaiting  = gpuSteps_->enqueueBeforeGraph(step, isToAssign);
        if (isToAssign)
        {
            watchDensity();
            watchCharges();
        }
        return isWaiting;
    }

    //! Puts all of a step into the stream of the GPU
    void enqueue(const void* x, const matrix box, const StepWorkload& stepWork, int64_t step)
    {
        if (std::exchange(countedStep_, -1) != step)
        {
            numEvaluations_++;
        }
        setBox(box);
        if (perturbation_)
        {
            perturbation_->setLambda(plan_.get(), gpu_.get(), lambda_);
        }
        if (gpuSteps_->haveAtomsLeft())
        {
            assignments_.atomsHaveLeft();
        }
        const FmmAssignment assignment =
                gpu_->isInGraph() ? FmmAssignment::No : assignments_.due(stepWork, step);
        isToAssign_ = assignment != FmmAssignment::No;
        gpuSteps_->enqueue(x, assignment, stepWork, step);
        if (isToAssign_)
        {
            watchDensity();
            watchCharges();
        }
    }

    //! Puts the part of this rank into streams: its coordinates, on the main rank also the step of all ranks
    void enqueueOnRanks(DeviceBuffer<RVec>    x,
                        GpuEventSynchronizer* xReady,
                        const matrix          box,
                        const StepWorkload&   stepWork,
                        int64_t               step)
    {
        gpuRanks_->sendCoordinates(x, xReady);
        if (gpuRanks_->isMain())
        {
            enqueue(gpuRanks_->gatherCoordinates(), box, workOfAllRanks(stepWork), step);
            gpuRanks_->sendForces(gpu_->forceAddress());
        }
    }

    //! Waits for forces on home atoms where the host adds them, and on the main rank for energies and virial
    void waitAndReduceOnRanks(const StepWorkload& stepWork, ForceWithVirial* forceWithVirial, gmx_enerdata_t* enerd)
    {
        wallcycle_start(wcycle_, WallCycleCounter::WaitGpuFmm);
        gpuRanks_->receiveForces(!stepWork.useGpuFBufferOps);
        wallcycle_stop(wcycle_, WallCycleCounter::WaitGpuFmm);
        if (gpuRanks_->isMain())
        {
            gpuSteps_->waitAndReduce(workOfAllRanks(stepWork), forceWithVirial, enerd);
        }
        if (!stepWork.useGpuFBufferOps)
        {
            wallcycle_start(wcycle_, WallCycleCounter::WaitGpuFmm);
            const ArrayRef<const RVec> force = gpuRanks_->waitForHostForces();
            wallcycle_stop(wcycle_, WallCycleCounter::WaitGpuFmm);
            addFmmForces(force, stepWork, forceWithVirial);
        }
    }

    //! The step that the main rank computes, whose forces go back to the GPUs of ranks
    static StepWorkload workOfAllRanks(const StepWorkload& stepWork)
    {
        StepWorkload work     = stepWork;
        work.useGpuFBufferOps = true;
        return work;
    }

    //! Computes on the CPU, while the GPU is busy with the step, what perturbed charges add to it
    void addPerturbation(ArrayRef<const RVec> x,
                         const StepWorkload&  stepWork,
                         ForceWithVirial*     forceWithVirial,
                         gmx_enerdata_t*      enerd)
    {
        if (isToAssign_)
        {
            perturbation_->assign(x);
        }
        perturbation_->addTo(x, stepWork, 0, forceWithVirial, enerd);
    }

    //! What the user asked for
    const FmmParameters parameters_;
    //! Charges and exclusions of all atoms
    const gmx_mtop_t& mtop_;
    const real        epsfac_;
    const bool        reproducible_;
    const int         numThreads_;
    gmx_wallcycle*    wcycle_;
    //! Empty on the CPU
    std::unique_ptr<FmmGpu> gpu_;
    //! What the log says of the choice between one and several GPUs
    std::string devicesNote_;
    //! By which the library divides the FMM over ranks, if it does; made with the first home atoms
    std::unique_ptr<FmmCommunicator> communicator_;
    std::unique_ptr<FmmPlan>         plan_;
    //! Empty on the CPU
    std::unique_ptr<FmmGpuSteps> gpuSteps_;
    //! The box for which parameters were chosen
    const FmmBox startBox_;
    //! The box that the plan has
    FmmBox box_;
    //! Where to tell that it or charges have become others, nullptr when there is no such place or it was told
    const MDLogger* mdlog_ = nullptr;
    //! Mean number of atoms near one at the coordinates of the .tpr
    const double   nearAtomsAtStart_;
    FmmAssignments assignments_;
    //! Whether atoms are assigned to cells in this step, on a GPU
    bool isToAssign_ = false;
    //! Lambda of Coulomb interactions in this step
    real lambda_ = 0;
    //! Number of atoms on the pair-search grid, -1 before the first pair search
    Index numAtomsOnGrid_ = -1;
    //! Volume that the atoms fill at the coordinates of the .tpr
    real occupiedVolume_;
    //! Coordinates of the .tpr, kept where charges are perturbed
    std::vector<RVec> startX_;
    //! Evaluations so far, also by graphs of mdrun's
    int64_t numEvaluations_ = 0;
    //! The step that mayBeInGraph() counted last
    int64_t countedStep_ = -1;
    //! Whether the host gave the coordinates of the last step on a GPU
    bool isGivenByHost_ = false;
    //! What checkpoints keep: that of keepChoice(), or before there is one an own one
    FmmChoice  ownChoice_;
    FmmChoice* choice_ = &ownChoice_;
    //! Whether there was no pair search yet, and the time of the first
    bool   isFirstSearch_   = true;
    double firstSearchTime_ = 0;
    //! Evaluations at the last measurement; less than 0 if an earlier part of the run had that
    int64_t           countedFrom_ = 0;
    FmmRemeasurements remeasurements_;
    //! While times of steps choose nstlist
    struct PairList
    {
        FmmListTuner   tuner;
        FmmListChanger change;
        //! Empty on one rank
        std::unique_ptr<FmmDomains> domains;
        const t_inputrec&           inputrec;
        const MDLogger&             mdlog;
        const int                   firstNstlist;
        const real                  firstRlist;
        //! Empty where Lennard-Jones is not split
        std::unique_ptr<FmmLJSplit> split;
        //! The last pair search, -1: none to time from
        int64_t searchStep = -1;
        double  searchTime = 0;
    };
    //! Empty where they do not, or have
    std::unique_ptr<PairList> list_;
    //! Output of the library on the CPU, which overwrites
    std::vector<RVec> force_;
    //! Potentials at home atoms, where the library divides perturbed charges over ranks
    std::vector<real> potential_;
    //! Empty without perturbed charges
    std::unique_ptr<FmmPerturbation> perturbation_;
    //! Whether the log tells of these
    bool isPerturbationLogged_ = false;
    //! Empty where Lennard-Jones is not split
    std::unique_ptr<FmmSites> sites_;
    FmmSiteLists              siteLists_;
    //! Whether pairs of sites were searched on the CPU since atoms were set
    bool haveSiteLists_ = false;
    //! Empty with one energy group
    std::unique_ptr<FmmSiteEnergies> siteEnergies_;
    //! Empty on one rank
    std::unique_ptr<FmmRanks> ranks_;
    //! Whether the library divides the FMM over them
    bool isDivided_ = false;
    //! Of all atoms, where it does
    FmmAtomKinds atomKinds_;
    //! Empty unless the main rank of several computes all on its GPU
    std::unique_ptr<FmmGpuRanks> gpuRanks_;
    //! Otherwise whether charges and exclusions of all atoms are set
    bool areAtomsOfRanksSet_ = false;
    //! Empty with one energy group; with several, the charges of lambda = 0 are kept
    std::unique_ptr<FmmEnergyGroups> energyGroups_;
    std::vector<real>                charges_;
};

FmmSolver::FmmSolver(const FmmParameters&       parameters,
                     const gmx_mtop_t&          mtop,
                     const matrix               box,
                     ArrayRef<const RVec>       x,
                     real                       epsfac,
                     bool                       reproducible,
                     int                        numThreads,
                     gmx_wallcycle*             wcycle,
                     const DeviceStreamManager* gpuStreams) :
    impl_(std::make_unique<Impl>(
            parameters,
            mtop,
            box,
            fmmCoordinates(mtop, fmmPbcType(parameters), parameters.havePeriodicMolecules, box, x),
            epsfac,
            reproducible,
            numThreads,
            wcycle,
            gpuStreams))
{
}

FmmSolver::FmmSolver(const FmmParameters&       parameters,
                     const gmx_mtop_t&          mtop,
                     gmx_wallcycle*             wcycle,
                     const DeviceStreamManager& gpuStreams) :
    impl_(std::make_unique<Impl>(parameters, mtop, wcycle, gpuStreams))
{
}

FmmSolver::~FmmSolver() = default;

void FmmSolver::splitLennardJones(const t_inputrec&    inputrec,
                                  const FmmSiteLists&  lists,
                                  const matrix         box,
                                  ArrayRef<const RVec> x,
                                  const MDLogger&      mdlog)
{
    impl_->splitLennardJones(inputrec, lists, box, x, mdlog);
}

std::string FmmSolver::description() const
{
    return describeFmm(*impl_->plan_);
}

void FmmSolver::keepChoice(FmmChoice* choice)
{
    *choice        = std::move(*impl_->choice_);
    impl_->choice_ = choice;
}

void FmmSolver::choosePairList(const t_inputrec&           inputrec,
                               const int                   multipleOf,
                               FmmListChanger              change,
                               std::unique_ptr<FmmDomains> domains,
                               const MDLogger&             mdlog)
{
    impl_->choosePairList(inputrec, multipleOf, std::move(change), std::move(domains), mdlog);
}

void FmmSolver::tunePairList(const int64_t step, const matrix box, ArrayRef<const RVec> x)
{
    impl_->tunePairList(step, box, x);
}

bool FmmSolver::hasAllPairs() const
{
    return impl_->siteLists_.interval > 0;
}

double FmmSolver::expectedError() const
{
    return impl_->plan_->info().predicted_error;
}

void FmmSolver::logSetup(const MDLogger& mdlog, FILE* fplog)
{
    if (impl_->plan_ == nullptr)
    {
        return;
    }
    impl_->mdlog_ = &mdlog;
    logFmmSetup(*impl_->plan_, impl_->assignments_.maxStepsInCells(), mdlog, fplog);
    logFmmDevices(impl_->devicesNote_, impl_->parameters_.devices.num > 1, mdlog);
    if (impl_->gpuRanks_)
    {
        logFmmRanksOnGpus(impl_->gpuRanks_->size(), impl_->gpuRanks_->numByHost(), mdlog);
    }
    else if (impl_->ranks_)
    {
        logFmmRanks(impl_->ranks_->size(), impl_->isDivided_, mdlog);
    }
}

void FmmSolver::logTimes(const MDLogger& mdlog) const
{
    logFmmRemeasurements(impl_->remeasurements_, mdlog);
    if (impl_->plan_ == nullptr)
    {
        return;
    }
    if (!impl_->gpuSteps_)
    {
        logFmmTimesOnCpu(impl_->plan_->info(), mdlog);
        if (impl_->isDivided_)
        {
            logFmmRanksWork(impl_->ranks_->gatherWork(fmmRankWork(impl_->plan_->ranksInfo())), mdlog);
        }
    }
    else if (impl_->gpuSteps_->times().has_value())
    {
        logFmmTimesOnGpu(impl_->gpuSteps_->times().value(), mdlog);
        if (impl_->gpuSteps_->haveTunedShares())
        {
            logFmmShares(impl_->plan_->info(), mdlog);
        }
    }
}

void FmmSolver::measureAtEnd(const MDLogger&      mdlog,
                             const gmx_mtop_t&    mtop,
                             ArrayRef<const RVec> x,
                             const matrix         box) const
{
    constexpr int  c_leastToMeasure = 1000; // of fewer steps it would be a large part
    const FmmPlan& plan             = *impl_->plan_;
    if (plan.measured().status == FmmMeasurementStatus::Measured && impl_->numEvaluations_ >= c_leastToMeasure)
    {
        const double lambda = impl_->perturbation_ ? impl_->lambda_ : 0; // Others do not depend on it
        logFmmErrorAtEnd(plan.measureAt(mtop, x, box, lambda), plan, mdlog);
    }
}

real FmmSolver::pairSearchDensity(const GridCorners& region, ArrayRef<const AtomInfo> atomInfo)
{
    if (impl_->numAtomsOnGrid_ < 0)
    {
        impl_->numAtomsOnGrid_ = fmmNumAtomsOnPairSearchGrid(atomInfo);
    }
    return fmmPairSearchDensity(region, impl_->numAtomsOnGrid_, impl_->occupiedVolume_);
}

real FmmSolver::homeDensity(const real atomDensity, ArrayRef<const AtomInfo> atomInfo) const
{
    real density = atomDensity;
    if (impl_->parameters_.periodicity == FmmPeriodicity::Film)
    {
        // The occupied volume is an estimate on the low side, so it is used where it makes a difference
        const real occupied = static_cast<real>(impl_->mtop_.natoms) / impl_->occupiedVolume_;
        density             = occupied > 2 * atomDensity ? occupied : atomDensity;
    }
    return density * fmmShareOnPairSearchGrid(atomInfo);
}

void FmmSolver::setAtoms(ArrayRef<const real>           charges,
                         ArrayRef<const real>           chargesB,
                         const ListOfLists<int>&        exclusions,
                         ArrayRef<const unsigned short> groups)
{
    impl_->plan_->setAtoms(charges, exclusions);
    impl_->setEnergyGroups(charges, groups);
    impl_->setPerturbation(charges, chargesB, exclusions, groups);
    if (impl_->gpuSteps_)
    {
        impl_->gpuSteps_->setAtoms(charges.ssize(), impl_->perturbation_ != nullptr);
    }
    else
    {
        impl_->force_.resize(charges.size());
    }
    impl_->assignments_.atomsHaveChanged();
}

void FmmSolver::setRanks(std::unique_ptr<FmmRanks> ranks, const bool isDivided)
{
    impl_->ranks_     = std::move(ranks);
    impl_->isDivided_ = isDivided;
}

void FmmSolver::setGpuRanks(std::unique_ptr<FmmGpuRanks> gpuRanks, std::unique_ptr<FmmRanks> ranks)
{
    impl_->gpuRanks_ = std::move(gpuRanks);
    impl_->ranks_    = std::move(ranks);
}

bool FmmSolver::canBeDivided() const
{
    return impl_->plan_->info().m2l == GMXFMM_M2L_FFT
           && impl_->parameters_.periodicity == FmmPeriodicity::Box;
}

void FmmSolver::setHomeAtoms(ArrayRef<const int> home)
{
    if (impl_->ranks_)
    {
        impl_->ranks_->setHomeAtoms(home);
    }
    if (impl_->gpuRanks_)
    {
        impl_->gpuRanks_->setHomeAtoms(home);
    }
    else if (impl_->sites_)
    {
        impl_->sites_->setHomeAtoms(home);
        if (impl_->siteEnergies_)
        {
            impl_->siteEnergies_->setHomeAtoms(home);
        }
        impl_->haveSiteLists_ = false;
    }
    if (impl_->isDivided_)
    {
        impl_->setDividedAtoms(home);
    }
    else if (impl_->plan_ && !impl_->areAtomsOfRanksSet_)
    {
        setAtoms(impl_->ranks_->charges(),
                 impl_->ranks_->chargesB(),
                 fmmExclusions(impl_->mtop_),
                 impl_->ranks_->energyGroups());
        impl_->areAtomsOfRanksSet_ = true;
    }
}

FmmChoice FmmSolver::choiceForOtherRanks() const
{
    return impl_->choiceForOtherRanks();
}

void FmmSolver::calculate(ArrayRef<const RVec> x,
                          const matrix         box,
                          const StepWorkload&  stepWork,
                          int64_t              step,
                          ForceWithVirial*     forceWithVirial,
                          gmx_enerdata_t*      enerd)
{
    if (impl_->gpu_)
    {
        if (impl_->perturbation_)
        {
            impl_->addPerturbation(x, stepWork, forceWithVirial, enerd);
        }
        return;
    }
    if (impl_->isDivided_)
    {
        impl_->calculateAndCount(
                x.subArray(0, impl_->ranks_->home().size()), box, stepWork, step, forceWithVirial, enerd);
    }
    else if (impl_->ranks_)
    {
        const StepWorkload work   = impl_->ranks_->workOfThisRank(stepWork);
        const auto         xOfAll = impl_->ranks_->gather(x);
        ForceWithVirial    ofAll  = impl_->ranks_->clearedForces(work);
        impl_->calculateAndCount(xOfAll, box, work, step, &ofAll, enerd);
        impl_->ranks_->addHomeForces(ofAll, forceWithVirial);
    }
    else
    {
        impl_->calculateAndCount(x, box, stepWork, step, forceWithVirial, enerd);
    }
    if (impl_->sites_)
    {
        impl_->ranks_ ? impl_->calculateSitesOnRank(x, stepWork, forceWithVirial, enerd)
                      : impl_->calculateSites(x, stepWork, forceWithVirial, enerd);
    }
}

void FmmSolver::setLambda(real lambda)
{
    impl_->lambda_ = lambda;
}

void FmmSolver::followAtoms(ArrayRef<const RVec> x, const matrix box, const int64_t step)
{
    impl_->followAtoms(x, box, step);
}

void FmmSolver::setBox(const matrix box)
{
    impl_->setBox(box);
}

void FmmSolver::launchGpu(DeviceBuffer<RVec>    x,
                          GpuEventSynchronizer* xReady,
                          const matrix          box,
                          const StepWorkload&   stepWork,
                          int64_t               step)
{
    startLaunchCounter(impl_->wcycle_);
    if (impl_->gpuRanks_)
    {
        impl_->enqueueOnRanks(x, xReady, box, stepWork, step);
    }
    else
    {
        impl_->gpu_->waitInStream(xReady);
        impl_->enqueue(FmmGpu::address(x), box, stepWork, step);
    }
    stopLaunchCounter(impl_->wcycle_);
}

void FmmSolver::launchGpuWithHostCoordinates(ArrayRef<const RVec> x,
                                             const matrix         box,
                                             const StepWorkload&  stepWork,
                                             int64_t              step)
{
    startLaunchCounter(impl_->wcycle_);
    impl_->isGivenByHost_ = true;
    impl_->enqueue(impl_->gpu_->upload(x), box, stepWork, step);
    stopLaunchCounter(impl_->wcycle_);
}

bool FmmSolver::mayBeInGraph(const int64_t step)
{
    return impl_->mayBeInGraph(step);
}

bool FmmSolver::enqueueBeforeGraph(const int64_t step)
{
    return impl_->enqueueBeforeGraph(step);
}

DeviceBuffer<RVec> FmmSolver::gpuForces() const
{
    return impl_->gpuRanks_ ? impl_->gpuRanks_->forces() : impl_->gpu_->forces();
}

GpuEventSynchronizer* FmmSolver::gpuForcesReady() const
{
    return impl_->gpuRanks_ ? impl_->gpuRanks_->forcesReady() : impl_->gpu_->forcesReady();
}

void FmmSolver::waitAndReduceGpu(const StepWorkload& stepWork,
                                 ForceWithVirial*    forceWithVirial,
                                 gmx_enerdata_t*     enerd)
{
    if (impl_->gpuRanks_)
    {
        impl_->waitAndReduceOnRanks(stepWork, forceWithVirial, enerd);
    }
    else
    {
        impl_->gpuSteps_->waitAndReduce(stepWork, forceWithVirial, enerd);
    }
}

void FmmSolver::waitAndAddVirial(const StepWorkload& stepWork, tensor virial)
{
    if (!impl_->gpuRanks_)
    {
        impl_->gpuSteps_->waitAndAddVirial(stepWork, virial);
    }
}

void FmmSolver::launchShortRangeVirial(const void*          xq,
                                       DeviceBuffer<RVec>   f,
                                       int                  numAtoms,
                                       DeviceBuffer<RVec>   shiftForces,
                                       ArrayRef<const RVec> shiftVectors)
{
    impl_->gpu_->launchShortRangeVirial(xq, f, numAtoms, shiftForces, shiftVectors);
}

void FmmSolver::beginBesideNonbonded()
{
    impl_->gpu_->beginBesideNonbonded();
}

void FmmSolver::endBesideNonbonded()
{
    impl_->gpu_->endBesideNonbonded();
}

} // namespace gmx
