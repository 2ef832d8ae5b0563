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

#include <cstdlib>

#include <array>
#include <memory>
#include <vector>

#include "gromacs/mdlib/gmx_omp_nthreads.h"
#include "gromacs/mdtypes/enerdata.h"
#include "gromacs/mdtypes/forceoutput.h"
#include "gromacs/mdtypes/simulation_workload.h"
#include "gromacs/timing/cyclecounter.h"
#include "gromacs/timing/wallcycle.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/exceptions.h"
#include "gromacs/utility/logger.h"
#include "gromacs/utility/pleasecite.h"
#include "gromacs/utility/stringutil.h"

#include "fmmgpu.h"
#include "fmmmeasure.h"
#include "fmmopensystem.h"
#include "fmmpairlist.h"
#include "gmxfmmoptions.h"

namespace gmx
{

namespace
{

//! Throws the exception that fits \p status, unless that is success
void throwOnError(gmxfmm_status status, const char* message, bool isOnGpu)
{
    if (status == GMXFMM_OK)
    {
        return;
    }
    std::string text = std::string("FMM: ") + (message[0] != '\0' ? message : gmxfmm_status_text(status));
    if (isOnGpu && (status == GMXFMM_ERROR_UNSUPPORTED || status == GMXFMM_ERROR_MEMORY || status == GMXFMM_ERROR_DEVICE))
    {
        text += " (on the GPU; with mdrun -fmm cpu the CPU does it)";
    }
    switch (status)
    {
        case GMXFMM_ERROR_POSITION:
        case GMXFMM_ERROR_COINCIDENT:
            GMX_THROW(SimulationInstabilityError(text + " (particle 0 is the first atom)"));
        case GMXFMM_ERROR_OPTION:
        case GMXFMM_ERROR_BOX:
        case GMXFMM_ERROR_CHARGE:
        case GMXFMM_ERROR_EXCLUSION:
        case GMXFMM_ERROR_UNSUPPORTED: GMX_THROW(InconsistentInputError(text));
        default: GMX_THROW(InternalError(text));
    }
}

//! Returns the far-field method in terms of the library
gmxfmm_m2l libraryM2L(FmmM2L m2l)
{
    switch (m2l)
    {
        case FmmM2L::Fft: return GMXFMM_M2L_FFT;
        case FmmM2L::Rotation: return GMXFMM_M2L_ROTATION;
        case FmmM2L::Symmetric: return GMXFMM_M2L_SYMMETRIC;
        case FmmM2L::Dynamic: return GMXFMM_M2L_DYNAMIC;
        case FmmM2L::Naive: return GMXFMM_M2L_NAIVE;
        default: return GMXFMM_M2L_AUTO;
    }
}

//! Returns the boundary in terms of the library
gmxfmm_boundary libraryBoundary(FmmBoundary boundary)
{
    switch (boundary)
    {
        case FmmBoundary::Vacuum: return GMXFMM_VACUUM;
        case FmmBoundary::Open: return GMXFMM_OPEN;
        default: return GMXFMM_TINFOIL;
    }
}

//! Returns the box in the form the library wants
std::array<double, 9> flatten(const matrix box)
{
    return { { box[XX][XX],
               box[XX][YY],
               box[XX][ZZ],
               box[YY][XX],
               box[YY][YY],
               box[YY][ZZ],
               box[ZZ][XX],
               box[ZZ][YY],
               box[ZZ][ZZ] } };
}

//! Folder for kernels that the library has to compile for a GPU, as XDG Base Directory says; empty if there is none
std::string kernelCacheFolder()
{
    const char* cache = std::getenv("XDG_CACHE_HOME");
    const char* home  = std::getenv("HOME");
    if (cache != nullptr && cache[0] == '/')
    {
        return std::string(cache) + "/gmxfmm";
    }
    return home != nullptr && home[0] == '/' ? std::string(home) + "/.cache/gmxfmm" : std::string();
}

//! Time spent on the near field and its lists, in seconds
double nearTime(const gmxfmm_info& info)
{
    return info.time_assign + info.time_near;
}

//! Time spent on all the rest, in seconds
double farTime(const gmxfmm_info& info)
{
    return info.time_spectra + info.time_permute + info.time_p2m + info.time_m2m + info.time_m2l
           + info.time_l2l + info.time_l2p + info.time_output;
}

//! Adds energies and virial of a step
void addSums(double              energyNear,
             double              energyFar,
             const double*       virial,
             const StepWorkload& stepWork,
             ForceWithVirial*    forceWithVirial,
             gmx_enerdata_t*     enerd)
{
    if (stepWork.computeEnergy)
    {
        enerd->grpp.energyGroupPairTerms[NonBondedEnergyTerms::CoulombSR][0] += energyNear;
        coulombReciprocalTerm(enerd) += energyFar;
    }
    if (stepWork.computeVirial)
    {
        matrix virialMatrix;
        for (int d = 0; d < DIM; d++)
        {
            for (int e = 0; e < DIM; e++)
            {
                virialMatrix[d][e] = virial[d * DIM + e];
            }
        }
        forceWithVirial->addVirialContribution(virialMatrix);
    }
}

//! Returns whether nothing of the step is wanted on the host before the update, and the virial after it
bool virialComesLater(const StepWorkload& stepWork)
{
    return stepWork.computeVirialOnGpu && !stepWork.computeEnergy;
}

//! Frees a plan
struct PlanDeleter
{
    void operator()(gmxfmm_plan* plan) const { gmxfmm_destroy(plan); }
};

} // namespace

std::string whyNoFmmOnDevice(int deviceId)
{
    std::array<char, 256> message = { { '\0' } };
    const gmxfmm_status   status =
            gmxfmm_check_device(GMXFMM_CUDA, deviceId, message.data(), message.size());
    return status == GMXFMM_OK ? std::string()
                               : std::string("the gmxfmm library says: ") + message.data();
}

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
        wcycle_(wcycle),
        isOpen_(parameters.boundary == FmmBoundary::Open),
        maxStepsInCells_(gpuStreams != nullptr ? parameters.maxStepsInCellsOnGpu
                                               : parameters.maxStepsInCellsOnCpu),
        gpu_(gpuStreams != nullptr ? std::make_unique<FmmGpu>(*gpuStreams) : nullptr),
        box_(flatten(box)),
        accuracy_(parameters.accuracy),
        cacheFolder_(kernelCacheFolder()),
        occupiedVolume_(openSystemVolume(x))
    {
        gmxfmm_options& options = options_;
        gmxfmm_default_options(&options);
        options.accuracy = parameters.accuracy;
        options.order    = parameters.order == 0 ? -1 : parameters.order;
        for (int d = 0; d < DIM; d++)
        {
            options.grid[d] = parameters.grid[d];
        }
        options.depth = parameters.treeDepth;
        // One layer is the default, but not what an accuracy far beyond the default one should be
        // reached with: at the orders that this takes, single pairs in corners of cells spoil it.
        const bool chooseSeparation = parameters.separation == 1 && parameters.accuracy < 1e-5
                                      && parameters.order == 0 && parameters.grid[XX] == 0
                                      && parameters.treeDepth < 1;
        options.separation   = chooseSeparation ? 0 : parameters.separation;
        options.m2l          = libraryM2L(parameters.m2l);
        options.boundary     = libraryBoundary(parameters.boundary);
        options.precision    = GMX_DOUBLE ? GMXFMM_DOUBLE : GMXFMM_SINGLE;
        options.array_type   = options.precision;
        options.num_threads  = numThreads;
        options.reproducible = reproducible ? 1 : 0;
        options.prefactor    = epsfac;
        if (gpu_)
        {
            options.device    = GMXFMM_CUDA;
            options.device_id = gpu_->deviceId();
        }
        options.cache_dir = cacheFolder_.empty() ? nullptr : cacheFolder_.c_str();

        if (parameters.measure)
        {
            // With order and cells given there is nothing to choose
            const bool isFixed = options.order >= 0 && (options.grid[0] > 0 || options.depth > 0);
            measured_ = measureFmmError(mtop, x, isOpen_ ? nullptr : box_.data(), !isFixed, &options);
            if (measured_.status == FmmMeasurementStatus::OutOfReach)
            {
                throwOnError(
                        GMXFMM_ERROR_OPTION,
                        formatString("fmm-accuracy = %g: %s", accuracy_, measured_.message.c_str()).c_str(),
                        gpu_ != nullptr);
            }
        }
        const int              numAtoms = mtop.natoms;
        std::array<char, 1024> message  = { { '\0' } };
        gmxfmm_plan*           plan     = nullptr;
        const gmxfmm_status    status   = gmxfmm_create(
                &plan, &options, numAtoms, isOpen_ ? nullptr : box_.data(), message.data(), message.size());
        plan_.reset(plan);
        throwOnError(status, message.data(), gpu_ != nullptr);

        // With an octree or an open boundary, order and size of cells are chosen at the first
        // assignment and kept; the charges do not matter for that.
        const std::vector<real> noCharges(numAtoms, 0);
        check(gmxfmm_set_charges(plan_.get(), numAtoms, noCharges.data()));
        check(gmxfmm_assign(plan_.get(), x.data()));
    }

    //! Throws with the message of the plan on errors
    void check(gmxfmm_status status) const
    {
        throwOnError(status, gmxfmm_message(plan_.get()), gpu_ != nullptr);
    }

    //! Returns parameters and times
    gmxfmm_info info() const
    {
        gmxfmm_info info;
        check(gmxfmm_get_info(plan_.get(), &info));
        return info;
    }

    //! Passes on a box that is not the one the plan has
    void setBox(const matrix box)
    {
        const std::array<double, 9> newBox = flatten(box);
        if (newBox != box_ && !isOpen_)
        {
            check(gpu_ ? gmxfmm_enqueue_box(plan_.get(), newBox.data(), gpu_->stream())
                       : gmxfmm_set_box(plan_.get(), newBox.data()));
            box_ = newBox;
            if (gpu_ && info().graph_version == graphVersion_)
            {
                // Steps follow the box, what assigns atoms to cells has it in it
                gpu_->forgetRepeatedAssignment();
            }
            else
            {
                forgetRepeated();
            }
        }
    }

    //! A graph of the step has the buffers in it that it was recorded with, and often the box
    void forgetRepeated()
    {
        repeatedX_ = nullptr;
        if (gpu_)
        {
            graphVersion_ = info().graph_version;
            gpu_->forgetRepeated();
        }
    }

    //! A graph has the address of the coordinates in it, too
    void setAddress(const void* x)
    {
        if (x != repeatedX_)
        {
            forgetRepeated();
            repeatedX_ = x;
        }
    }

    //! Puts an evaluation into the stream: forces, and energy or virial or both if they are wanted
    void enqueueEvaluation(const void* x, bool wantEnergy, bool wantVirial)
    {
        setAddress(x);
        gpu_->enqueueRepeated(wantEnergy,
                              wantVirial,
                              [&](bool withEnergy, bool withVirial)
                              {
                                  FmmStepSums*         sums   = gpu_->sumsAddress();
                                  gmxfmm_device_output output = {};
                                  output.force                = gpu_->forceAddress();
                                  output.energy               = withEnergy ? sums->energy : nullptr;
                                  output.virial               = withVirial ? sums->virial : nullptr;
                                  const bool withSums         = withEnergy || withVirial;
                                  output.status               = withSums ? &sums->status : nullptr;
                                  output.arrays_done = withSums ? gpu_->forcesWritten() : nullptr;
                                  check(gmxfmm_enqueue(plan_.get(), x, &output, gpu_->stream()));
                              });
    }

    //! Waits for what was sent to the host at this step, and returns the sums in it; throws when the step has failed
    FmmStepSums waitForSums(const StepWorkload& stepWork) const
    {
        wallcycle_start(wcycle_, WallCycleCounter::WaitGpuFmm);
        gpu_->waitForTransfer();
        FmmStepSums sums = gpu_->hostSums();
        if (stepWork.computeVirialOnGpu)
        {
            const ArrayRef<const double> shortRange = gpu_->waitForShortRangeVirial();
            for (int i = 0; i < DIM * DIM; i++)
            {
                sums.virial[i] -= 0.5 * shortRange[i];
            }
        }
        wallcycle_stop(wcycle_, WallCycleCounter::WaitGpuFmm);
        if (stepWork.computeEnergy || stepWork.computeVirial)
        {
            throwOnError(static_cast<gmxfmm_status>(sums.status), "", true);
        }
        return sums;
    }

    //! Adds the forces of a step
    void addForces(ArrayRef<const RVec> force, const StepWorkload& stepWork, ForceWithVirial* forceWithVirial) const
    {
        if (!stepWork.computeForces)
        {
            return;
        }
        const int gmx_unused numThreads = gmx_omp_nthreads_get(ModuleMultiThread::Default);
#pragma omp parallel for num_threads(numThreads) schedule(static)
        for (Index i = 0; i < force.ssize(); i++)
        {
            forceWithVirial->force_[i] += force[i];
        }
    }

    //! Returns whether atoms are to be assigned to cells now, and takes note of it
    bool assignmentIsDue(const StepWorkload& stepWork, int64_t step)
    {
        // Counted from the last pair search, at which checkpoints are written, so that a continued
        // run assigns at the same steps. With multiple time stepping not all steps come here.
        const bool isDue = stepWork.doNeighborSearch || needToAssign_
                           || (maxStepsInCells_ > 0
                               && (step - searchStep_) / maxStepsInCells_
                                          != (assignStep_ - searchStep_) / maxStepsInCells_);
        if (stepWork.doNeighborSearch || needToAssign_)
        {
            searchStep_ = step;
        }
        if (isDue)
        {
            assignStep_ = step;
        }
        return isDue;
    }

    //! Assigns atoms with these coordinates on the device to cells, without the host's waiting where that is possible
    void assignOnGpu(const void* x)
    {
        gmxfmm_status status = GMXFMM_ERROR_ORDER;
        if (!needToAssign_)
        {
            setAddress(x);
            status = GMXFMM_OK;
            gpu_->enqueueRepeatedAssignment(
                    [&] { status = gmxfmm_enqueue_assign(plan_.get(), x, gpu_->stream()); });
        }
        if (status == GMXFMM_ERROR_ORDER || status == GMXFMM_ERROR_UNSUPPORTED)
        {
            // The first of repeated calls, which never are a graph
            status = gmxfmm_assign(plan_.get(), x);
            forgetRepeated();
        }
        check(status);
        needToAssign_ = false;
    }

    /*! \brief Measures the stages of a step one after the other, which in a step overlap
     *
     * Once, after the first evaluation: events in each step would cost more than they tell.
     */
    void measureGpuTimes(const void* x)
    {
        constexpr int        c_numRepeats = 5;
        gmxfmm_device_output output       = {};
        output.force                      = gpu_->forceAddress();
        // The kernels of this kind of step are loaded by their first launch, which is not to be timed
        check(gmxfmm_enqueue(plan_.get(), x, &output, gpu_->stream()));
        gpu_->waitForTransfer();
        const auto timeOf = [&](unsigned stages)
        {
            output.stages = stages;
            return gpu_->timeOf(
                           [&]
                           {
                               for (int i = 0; i < c_numRepeats; i++)
                               {
                                   check(gmxfmm_enqueue(plan_.get(), x, &output, gpu_->stream()));
                               }
                           })
                   / c_numRepeats;
        };
        gpuTimes_ = "FMM: time of its stages on the GPU, measured at the first step one by one\n\n";
        const auto addLine = [this](const char* name, double time)
        { gpuTimes_ += formatString(" %-34s %12.4f ms\n", name, time); };
        addLine("Near field", timeOf(GMXFMM_STAGE_NEAR));
        addLine("Far field", timeOf(GMXFMM_STAGE_FAR));
        addLine("Sort coordinates, output", timeOf(GMXFMM_STAGE_PERMUTE | GMXFMM_STAGE_OUTPUT));
        addLine("All, near and far field overlapped", timeOf(0));
        addLine("Assign atoms to cells", gpu_->timeOf([&] { assignOnGpu(x); }));
    }

    //! Puts all of a step into the stream
    void enqueueStep(const void* x, const matrix box, const StepWorkload& stepWork, int64_t step)
    {
        numEvaluations_++;
        setBox(box);
        const bool isFirst = needToAssign_;
        if (assignmentIsDue(stepWork, step))
        {
            assignOnGpu(x);
        }
        const bool needSums = stepWork.computeEnergy || stepWork.computeVirial;
        enqueueEvaluation(x, stepWork.computeEnergy, stepWork.computeVirial);
        gpu_->markForcesReady(needSums);
        gpu_->launchTransfer(!stepWork.useGpuFBufferOps, needSums);
        if (isFirst && gpuTimes_.empty())
        {
            measureGpuTimes(x);
        }
    }

    std::unique_ptr<gmxfmm_plan, PlanDeleter> plan_;
    gmx_wallcycle*                            wcycle_;
    //! Whether there is no periodicity and so no box
    bool isOpen_;
    //! Steps between pair searches after which atoms are assigned to cells again, 0: never
    int maxStepsInCells_;
    //! Steps of the last pair search and the last assignment
    int64_t searchStep_ = 0, assignStep_ = 0;
    //! Empty on the CPU
    std::unique_ptr<FmmGpu> gpu_;
    //! The box that the plan has
    std::array<double, 9> box_;
    //! Whether the atoms have been changed since they were assigned to cells
    bool needToAssign_ = true;
    //! Number of atoms on the pair-search grid, -1 before the first pair search
    Index numAtomsOnGrid_ = -1;
    //! The force error that was asked for
    double accuracy_;
    //! Where the library keeps compiled kernels
    std::string cacheFolder_;
    //! What the plan was made with; its accuracy is what the library was asked for
    gmxfmm_options options_;
    //! What the parameters were measured to reach, empty if they were not
    FmmMeasuredError measured_;
    //! Evaluations so far
    int64_t numEvaluations_ = 0;
    //! Volume that the atoms fill at the coordinates of the .tpr
    real occupiedVolume_;
    //! Address of the coordinates that was last given to setAddress()
    const void* repeatedX_ = nullptr;
    //! gmxfmm_info.graph_version of the graphs of steps
    int64_t graphVersion_ = 0;
    //! Time of each stage on a GPU in ms, as text
    std::string gpuTimes_;
    //! Output of the library, which overwrites
    std::vector<RVec> force_;
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
    impl_(std::make_unique<Impl>(parameters, mtop, box, x, epsfac, reproducible, numThreads, wcycle, gpuStreams))
{
}

FmmSolver::~FmmSolver() = default;

std::string FmmSolver::description() const
{
    const gmxfmm_info info = impl_->info();
    std::string cells = formatString("%d x %d x %d cells", info.grid[XX], info.grid[YY], info.grid[ZZ]);
    if (info.depth >= 0)
    {
        cells = formatString(
                "octree of depth %d, %s, %d of them occupied", info.depth, cells.c_str(), info.num_cells);
    }
    return formatString(
            "FMM: far field by %s, expansion order %d, %s, separation %d (%d near cells, %.0f "
            "atoms)%s\n"
            "     expected relative RMS force error %.1e%s",
            gmxfmm_m2l_name(info.m2l),
            info.order,
            cells.c_str(),
            info.separation,
            info.num_near_cells,
            info.near_particles,
            impl_->isOpen_ ? "\n     open boundary; the number of cells follows the extent of the "
                             "system, at each pair search"
                           : "",
            info.predicted_error,
            impl_->measured_.status == FmmMeasurementStatus::Measured
                    ? formatString(
                              ", measured %.1e to %.1e", impl_->measured_.error, impl_->measured_.errorMoved)
                              .c_str()
                    : "");
}

double FmmSolver::expectedError() const
{
    return impl_->info().predicted_error;
}

void FmmSolver::logSetup(const MDLogger& mdlog, FILE* fplog) const
{
    const gmxfmm_info info  = impl_->info();
    const std::string where = impl_->gpu_ ? std::string("GPU")
                                          : formatString("CPU, %d OpenMP thread%s",
                                                         info.num_threads,
                                                         info.num_threads == 1 ? "" : "s");
    std::string       renewal;
    if (impl_->maxStepsInCells_ > 0)
    {
        renewal = formatString(
                "\n     atoms are assigned to cells at pair searches and every %d steps",
                impl_->maxStepsInCells_);
    }
    GMX_LOG(mdlog.info)
            .asParagraph()
            .appendText(description() + "\n")
            .appendTextFormatted("     near and far field in %s precision on the %s, %.1f MB%s",
                                 info.precision == GMXFMM_DOUBLE ? "double" : "single",
                                 where.c_str(),
                                 info.bytes * 1e-6,
                                 renewal.c_str());
    if (!impl_->measured_.table.empty())
    {
        GMX_LOG(mdlog.info).asParagraph().appendText(impl_->measured_.table);
    }
    if (impl_->measured_.status == FmmMeasurementStatus::NotMeasured)
    {
        GMX_LOG(mdlog.warning)
                .asParagraph()
                .appendTextFormatted(
                        "NOTE: The error of the FMM forces could not be measured at the start "
                        "(%s), so that parameters are those that are expected to be as accurate in "
                        "a liquid.",
                        impl_->measured_.message.c_str());
    }
    else if (impl_->measured_.error > impl_->accuracy_)
    {
        GMX_LOG(mdlog.warning)
                .asParagraph()
                .appendTextFormatted(
                        "NOTE: With the FMM parameters given, the relative RMS error of the forces "
                        "is %.1e, while fmm-accuracy = %g.",
                        impl_->measured_.error,
                        impl_->accuracy_);
    }
    please_cite(fplog, "Dehnen2014");
    if (info.m2l == GMXFMM_M2L_FFT)
    {
        please_cite(fplog, "Ong2003");
    }
    please_cite(fplog, "Kohnke2021");
}

void FmmSolver::logTimes(const MDLogger& mdlog) const
{
    if (!impl_->gpuTimes_.empty())
    {
        GMX_LOG(mdlog.info).asParagraph().appendText(impl_->gpuTimes_);
    }
    const gmxfmm_info info  = impl_->info();
    const double      total = impl_->gpu_ ? 0 : nearTime(info) + farTime(info);
    if (info.num_executes == 0 || total <= 0)
    {
        return;
    }
    std::string table   = formatString("FMM: time in its stages, %d evaluations\n\n",
                                     static_cast<int>(info.num_executes));
    const auto  addLine = [&table, total](const char* name, double time)
    { table += formatString(" %-34s %12.3f s %7.1f %%\n", name, time, 100 * time / total); };
    addLine("Near: assign atoms to cells", info.time_assign);
    addLine("Near: pairs", info.time_near);
    addLine("Far:  lattice sums", info.time_spectra);
    addLine("Far:  sort coordinates", info.time_permute);
    addLine("Far:  charges to multipoles", info.time_p2m);
    if (info.depth >= 0)
    {
        addLine("Far:  multipoles up the tree", info.time_m2m);
    }
    addLine("Far:  multipoles to local", info.time_m2l);
    if (info.depth >= 0)
    {
        addLine("Far:  local down the tree", info.time_l2l);
    }
    addLine("Far:  local to forces", info.time_l2p);
    addLine("Far:  output", info.time_output);
    addLine("Total", total);
    GMX_LOG(mdlog.info).asParagraph().appendText(table);
}

void FmmSolver::measureAtEnd(const MDLogger&      mdlog,
                             const gmx_mtop_t&    mtop,
                             ArrayRef<const RVec> x,
                             const matrix         box) const
{
    constexpr int    c_leastToMeasure = 1000; // of fewer steps it would be a large part
    constexpr double c_worthAWarning  = 1.5;
    if (impl_->measured_.status != FmmMeasurementStatus::Measured || impl_->numEvaluations_ < c_leastToMeasure)
    {
        return;
    }
    const gmxfmm_info info    = impl_->info();
    gmxfmm_options    options = impl_->options_;
    options.accuracy          = impl_->accuracy_;
    options.m2l               = info.m2l;
    options.order             = info.order;
    options.separation        = info.separation;
    options.depth             = info.depth > 0 ? info.depth : -1;
    for (int d = 0; d < DIM && !impl_->isOpen_; d++)
    {
        options.grid[d] = info.grid[d];
    }
    const std::array<double, 9> lastBox = flatten(box);
    const FmmMeasuredError      last =
            measureFmmError(mtop, x, impl_->isOpen_ ? nullptr : lastBox.data(), false, &options);
    if (last.status != FmmMeasurementStatus::Measured)
    {
        GMX_LOG(mdlog.warning)
                .asParagraph()
                .appendTextFormatted(
                        "NOTE: The error of the FMM forces could not be measured at the end (%s).",
                        last.message.c_str());
        return;
    }
    GMX_LOG(mdlog.info).asParagraph().appendText("At the end of the run\n" + last.table);
    if (last.error > c_worthAWarning * impl_->accuracy_)
    {
        GMX_LOG(mdlog.warning)
                .asParagraph()
                .appendTextFormatted(
                        "WARNING: At the end of the run the relative RMS error of the FMM forces "
                        "is %.1e, while fmm-accuracy = %g. The system is another than the one of "
                        "the .tpr file, by which parameters were chosen: make a new one from these "
                        "coordinates to go on.",
                        last.error,
                        impl_->accuracy_);
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

void FmmSolver::setAtoms(ArrayRef<const real> charges, const ListOfLists<int>& exclusions)
{
    const int        numAtoms = charges.ssize();
    std::vector<int> start    = { 0 };
    std::vector<int> list;
    start.reserve(numAtoms + 1);
    list.reserve(exclusions.numElements());
    for (int i = 0; i < numAtoms; i++)
    {
        if (i < exclusions.ssize())
        {
            const auto excluded = exclusions[i];
            list.insert(list.end(), excluded.begin(), excluded.end());
        }
        start.push_back(list.size());
    }
    impl_->check(gmxfmm_set_charges(impl_->plan_.get(), numAtoms, charges.data()));
    impl_->check(gmxfmm_set_exclusions(impl_->plan_.get(), start.data(), list.data()));
    if (impl_->gpu_)
    {
        impl_->gpu_->setNumAtoms(numAtoms);
        impl_->forgetRepeated();
    }
    else
    {
        impl_->force_.resize(numAtoms);
    }
    impl_->needToAssign_ = true;
}

void FmmSolver::calculate(ArrayRef<const RVec> x,
                          const matrix         box,
                          const StepWorkload&  stepWork,
                          int64_t              step,
                          ForceWithVirial*     forceWithVirial,
                          gmx_enerdata_t*      enerd)
{
    // GROMACS resets its counters some time after the start, ours should cover the same steps
    if (impl_->wcycle_ != nullptr && impl_->wcycle_->wcc[WallCycleCounter::FmmNear].n == 0)
    {
        gmxfmm_reset_times(impl_->plan_.get());
    }
    const gmxfmm_info  infoBefore  = impl_->info();
    const gmx_cycles_t cycleBefore = gmx_cycles_read();

    impl_->numEvaluations_++;
    impl_->setBox(box);
    if (impl_->assignmentIsDue(stepWork, step))
    {
        impl_->check(gmxfmm_assign(impl_->plan_.get(), x.data()));
        impl_->needToAssign_ = false;
    }

    gmxfmm_output output = {};
    output.force         = stepWork.computeForces ? impl_->force_.data() : nullptr;
    output.want_energy   = stepWork.computeEnergy ? 1 : 0;
    output.want_virial   = stepWork.computeVirial ? 1 : 0;
    impl_->check(gmxfmm_execute(impl_->plan_.get(), x.data(), &output));

    impl_->addForces(impl_->force_, stepWork, forceWithVirial);
    addSums(output.energy_near, output.energy_far, output.virial, stepWork, forceWithVirial, enerd);

    // Near and far field are computed in one call, so divide the cycles by the times they took
    const gmx_cycles_t cyclesUsed = gmx_cycles_read() - cycleBefore;
    const gmxfmm_info  info       = impl_->info();
    const double       timeNear   = nearTime(info) - nearTime(infoBefore);
    const double       timeFar    = farTime(info) - farTime(infoBefore);
    const double       nearShare  = timeNear + timeFar > 0 ? timeNear / (timeNear + timeFar) : 0;
    const auto         cyclesNear = static_cast<gmx_cycles_t>(nearShare * cyclesUsed);
    wallcycle_add(impl_->wcycle_, WallCycleCounter::FmmNear, cyclesNear);
    wallcycle_add(impl_->wcycle_, WallCycleCounter::FmmFar, cyclesUsed - cyclesNear);
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
    impl_->gpu_->waitInStream(xReady);
    impl_->enqueueStep(FmmGpu::address(x), box, stepWork, step);
    stopLaunchCounter(impl_->wcycle_);
}

void FmmSolver::launchGpuWithHostCoordinates(ArrayRef<const RVec> x,
                                             const matrix         box,
                                             const StepWorkload&  stepWork,
                                             int64_t              step)
{
    startLaunchCounter(impl_->wcycle_);
    impl_->enqueueStep(impl_->gpu_->upload(x), box, stepWork, step);
    stopLaunchCounter(impl_->wcycle_);
}

DeviceBuffer<RVec> FmmSolver::gpuForces() const
{
    return impl_->gpu_->forces();
}

GpuEventSynchronizer* FmmSolver::gpuForcesReady() const
{
    return impl_->gpu_->forcesReady();
}

void FmmSolver::waitAndReduceGpu(const StepWorkload& stepWork,
                                 ForceWithVirial*    forceWithVirial,
                                 gmx_enerdata_t*     enerd)
{
    const bool needForces = !stepWork.useGpuFBufferOps;
    const bool needSums   = stepWork.computeEnergy || stepWork.computeVirial;
    if (virialComesLater(stepWork) || (!needForces && !needSums))
    {
        return;
    }
    const FmmStepSums sums = impl_->waitForSums(stepWork);
    if (needSums)
    {
        addSums(sums.energy[0], sums.energy[1], sums.virial, stepWork, forceWithVirial, enerd);
    }
    if (needForces)
    {
        impl_->addForces(impl_->gpu_->hostForces(), stepWork, forceWithVirial);
    }
}

void FmmSolver::waitAndAddVirial(const StepWorkload& stepWork, tensor virial)
{
    if (!virialComesLater(stepWork))
    {
        return;
    }
    const FmmStepSums sums = impl_->waitForSums(stepWork);
    for (int i = 0; i < DIM; i++)
    {
        for (int j = 0; j < DIM; j++)
        {
            virial[i][j] += sums.virial[DIM * i + j];
        }
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

} // namespace gmx
