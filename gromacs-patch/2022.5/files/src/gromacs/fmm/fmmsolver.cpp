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

#include <array>
#include <memory>
#include <vector>

#include "gromacs/math/vec.h"
#include "gromacs/mdtypes/enerdata.h"
#include "gromacs/mdtypes/forceoutput.h"
#include "gromacs/mdtypes/simulation_workload.h"
#include "gromacs/timing/cyclecounter.h"
#include "gromacs/timing/wallcycle.h"
#include "gromacs/utility/exceptions.h"
#include "gromacs/utility/logger.h"
#include "gromacs/utility/pleasecite.h"
#include "gromacs/utility/stringutil.h"

#include "fmmoptions.h"

namespace gmx
{

namespace
{

//! Throws the exception that fits \p status, unless that is success
void throwOnError(gmxfmm_status status, const char* message)
{
    if (status == GMXFMM_OK)
    {
        return;
    }
    const std::string text =
            std::string("FMM: ") + (message[0] != '\0' ? message : gmxfmm_status_text(status));
    switch (status)
    {
        case GMXFMM_ERROR_POSITION:
        case GMXFMM_ERROR_COINCIDENT:
            GMX_THROW(SimulationInstabilityError(
                    text + " (particles counted from 0, in the order of mdrun, which changes)"));
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

//! Frees a plan
struct PlanDeleter
{
    void operator()(gmxfmm_plan* plan) const { gmxfmm_destroy(plan); }
};

} // namespace

class FmmSolver::Impl
{
public:
    Impl(const FmmParameters& parameters,
         int                  numAtoms,
         const matrix         box,
         ArrayRef<const RVec> x,
         real                 epsfac,
         bool                 reproducible,
         int                  numThreads,
         gmx_wallcycle*       wcycle) :
        wcycle_(wcycle), isOpen_(parameters.boundary == FmmBoundary::Open), box_(flatten(box))
    {
        gmxfmm_options options;
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

        std::array<char, 1024> message = { { '\0' } };
        gmxfmm_plan*           plan    = nullptr;
        const gmxfmm_status    status  = gmxfmm_create(
                &plan, &options, numAtoms, isOpen_ ? nullptr : box_.data(), message.data(), message.size());
        plan_.reset(plan);
        throwOnError(status, message.data());

        // With an octree or an open boundary, order and size of cells are chosen at the first
        // assignment and kept; the charges do not matter for that.
        const std::vector<real> noCharges(numAtoms, 0);
        check(gmxfmm_set_charges(plan_.get(), numAtoms, noCharges.data()));
        check(gmxfmm_assign(plan_.get(), x.data()));
    }

    //! Throws with the message of the plan on errors
    void check(gmxfmm_status status) const { throwOnError(status, gmxfmm_message(plan_.get())); }

    //! Returns parameters and times
    gmxfmm_info info() const
    {
        gmxfmm_info info;
        check(gmxfmm_get_info(plan_.get(), &info));
        return info;
    }

    std::unique_ptr<gmxfmm_plan, PlanDeleter> plan_;
    gmx_wallcycle*                            wcycle_;
    //! Whether there is no periodicity and so no box
    bool isOpen_;
    //! The box that the plan has
    std::array<double, 9> box_;
    //! Whether the atoms have been changed since they were assigned to cells
    bool needToAssign_ = true;
    //! Output of the library, which overwrites
    std::vector<RVec> force_;
};

FmmSolver::FmmSolver(const FmmParameters& parameters,
                     int                  numAtoms,
                     const matrix         box,
                     ArrayRef<const RVec> x,
                     real                 epsfac,
                     bool                 reproducible,
                     int                  numThreads,
                     gmx_wallcycle*       wcycle) :
    impl_(std::make_unique<Impl>(parameters, numAtoms, box, x, epsfac, reproducible, numThreads, wcycle))
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
            "     expected relative RMS force error %.1e",
            gmxfmm_m2l_name(info.m2l),
            info.order,
            cells.c_str(),
            info.separation,
            info.num_near_cells,
            info.near_particles,
            impl_->isOpen_ ? "\n     open boundary; the number of cells follows the extent of the "
                             "system, at each pair search"
                           : "",
            info.predicted_error);
}

double FmmSolver::expectedError() const
{
    return impl_->info().predicted_error;
}

void FmmSolver::logSetup(const MDLogger& mdlog, FILE* fplog) const
{
    const gmxfmm_info info = impl_->info();
    GMX_LOG(mdlog.info)
            .asParagraph()
            .appendText(description() + "\n")
            .appendTextFormatted(
                    "     near and far field in %s precision on the CPU, %d OpenMP thread%s, %.1f "
                    "MB",
                    info.precision == GMXFMM_DOUBLE ? "double" : "single",
                    info.num_threads,
                    info.num_threads == 1 ? "" : "s",
                    info.bytes * 1e-6);
    please_cite(fplog, "Dehnen2014");
    if (info.m2l == GMXFMM_M2L_FFT)
    {
        please_cite(fplog, "Ong2003");
    }
    please_cite(fplog, "Kohnke2021");
}

void FmmSolver::logTimes(const MDLogger& mdlog) const
{
    const gmxfmm_info info  = impl_->info();
    const double      total = nearTime(info) + farTime(info);
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
    impl_->force_.resize(numAtoms);
    impl_->needToAssign_ = true;
}

void FmmSolver::calculate(ArrayRef<const RVec> x,
                          const matrix         box,
                          const StepWorkload&  stepWork,
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

    const std::array<double, 9> newBox = flatten(box);
    if (newBox != impl_->box_ && !impl_->isOpen_)
    {
        impl_->check(gmxfmm_set_box(impl_->plan_.get(), newBox.data()));
        impl_->box_ = newBox;
    }
    if (stepWork.doNeighborSearch || impl_->needToAssign_)
    {
        impl_->check(gmxfmm_assign(impl_->plan_.get(), x.data()));
        impl_->needToAssign_ = false;
    }

    gmxfmm_output output = {};
    output.force         = stepWork.computeForces ? impl_->force_.data() : nullptr;
    output.want_energy   = stepWork.computeEnergy ? 1 : 0;
    output.want_virial   = stepWork.computeVirial ? 1 : 0;
    impl_->check(gmxfmm_execute(impl_->plan_.get(), x.data(), &output));

    if (stepWork.computeForces)
    {
        const int            numAtoms   = ssize(impl_->force_);
        const int gmx_unused numThreads = infoBefore.num_threads;
#pragma omp parallel for num_threads(numThreads) schedule(static)
        for (int i = 0; i < numAtoms; i++)
        {
            forceWithVirial->force_[i] += impl_->force_[i];
        }
    }
    if (stepWork.computeEnergy)
    {
        enerd->grpp.energyGroupPairTerms[NonBondedEnergyTerms::CoulombSR][0] += output.energy_near;
        enerd->term[F_COUL_RECIP] += output.energy_far;
    }
    if (stepWork.computeVirial)
    {
        matrix virial;
        for (int d = 0; d < DIM; d++)
        {
            for (int e = 0; e < DIM; e++)
            {
                virial[d][e] = output.virial[d * DIM + e];
            }
        }
        forceWithVirial->addVirialContribution(virial);
    }

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

} // namespace gmx
