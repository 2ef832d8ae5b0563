/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements what the FMM needs where mdrun has domains on several ranks
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmranks.h"

#include <algorithm>

#include "gromacs/mdlib/gmx_omp_nthreads.h"
#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/mdtypes/md_enums.h"
#include "gromacs/mdtypes/simulation_workload.h"
#include "gromacs/pbcutil/pbc.h"
#include "gromacs/taskassignment/decidegpuusage.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/stringutil.h"

#include "fmmgpuranks.h"
#include "fmmreport.h"
#include "fmmslab.h"
#include "fmmsolver.h"
#include "fmmsystem.h"
#include "fmmtaskassignment.h"
#include "gmxfmmoptions.h"

namespace gmx
{

namespace
{

//! The numbers of a choice that the library is asked for; bytes of it travel from rank to rank
struct SharedChoice
{
    double accuracy       = 0;
    int    m2l            = 0;
    int    order          = 0;
    int    depth          = 0;
    int    separation     = 0;
    int    grid[DIM]      = { 0, 0, 0 };
    int    numCoordinates = 0;
    double box[DIM * DIM] = { 0, 0, 0, 0, 0, 0, 0, 0, 0 };
};

} // namespace

std::string whyNoFmmOnRanks(const t_inputrec& inputrec,
                            const int         numPmeRanks,
                            const int         numDomainsAlongZ,
                            const int         numFmmGpus,
                            const TaskTarget  fmmTarget,
                            TaskTarget*       nonbondedTarget)
{
    if (numPmeRanks > 0)
    {
        return formatString(
                "mdrun -npme %d: with coulombtype = FMM there is no PME, and each rank has a "
                "domain. Leave -npme out.",
                numPmeRanks);
    }
    if (numFmmGpus != 0)
    {
        return formatString(
                "mdrun -fmmgpus %d: on several ranks the FMM has the GPUs of all of them. Leave "
                "-fmmgpus "
                "out; -gpu_id and -gputasks say which GPUs ranks have.",
                numFmmGpus);
    }
    if (isFilm(inputrec.pbcType, inputrec.nwall) && numDomainsAlongZ > 1)
    {
        return formatString(
                "mdrun -dd with %d along z: with pbc = xy and fewer than two walls nothing bounds "
                "the system along z. Give 1 as the last number of -dd, or leave -dd out.",
                numDomainsAlongZ);
    }
    const FmmParameters parameters = fmmParameters(inputrec);
    if (inputrec.pbcType == PbcType::XY)
    {
        if (fmmTarget == TaskTarget::Gpu || *nonbondedTarget == TaskTarget::Gpu)
        {
            return "coulombtype = FMM with pbc = xy runs on GPUs of one rank only. Start one rank "
                   "for each simulation (-ntmpi 1), or use mdrun -nb cpu and leave -fmm gpu out.";
        }
        *nonbondedTarget = TaskTarget::Cpu;
    }
    std::string what;
    if (inputrec.pbcType != PbcType::Xyz && inputrec.pbcType != PbcType::XY)
    {
        what = formatString("pbc = %s", c_pbcTypeNames[inputrec.pbcType].c_str());
    }
    else if (parameters.boundary == FmmBoundary::Vacuum)
    {
        what = "fmm-boundary = vacuum";
    }
    else if (inputrec.eI == IntegrationAlgorithm::NM)
    {
        what = "integrator = nm";
    }
    return what.empty() ? std::string()
                        : "coulombtype = FMM with " + what
                                  + " runs on one rank only. Start one rank for each simulation (-ntmpi 1) "
                                    "and use more OpenMP threads (-ntomp).";
}

FmmChoice shareFmmChoice(const t_commrec& cr, const FmmChoice& choice)
{
    SharedChoice shared;
    shared.accuracy       = choice.accuracy;
    shared.m2l            = choice.m2l;
    shared.order          = choice.order;
    shared.depth          = choice.depth;
    shared.separation     = choice.separation;
    shared.numCoordinates = static_cast<int>(choice.x.size());
    std::copy(choice.grid.begin(), choice.grid.end(), shared.grid);
    std::copy(choice.box.begin(), choice.box.end(), shared.box);
    broadcastToRanks(cr, sizeof(shared), &shared);

    FmmChoice taken  = choice;
    taken.accuracy   = shared.accuracy;
    taken.m2l        = shared.m2l;
    taken.order      = shared.order;
    taken.depth      = shared.depth;
    taken.separation = shared.separation;
    std::copy(shared.grid, shared.grid + DIM, taken.grid.begin());
    std::copy(shared.box, shared.box + DIM * DIM, taken.box.begin());
    taken.x.resize(shared.numCoordinates);
    if (!taken.x.empty())
    {
        broadcastToRanks(cr, taken.x.size() * sizeof(taken.x[0]), taken.x.data());
    }
    return taken;
}

FmmRanks::FmmRanks(const t_commrec& cr, const t_inputrec& inputrec, const gmx_mtop_t& mtop) :
    cr_(cr), charges_(fmmCharges(mtop, 0)), x_(mtop.natoms), force_(mtop.natoms)
{
    if (inputrec.efep != FreeEnergyPerturbationType::No)
    {
        chargesB_ = fmmCharges(mtop, 1);
    }
    energyGroups_.reserve(mtop.natoms);
    for (int i = 0; i < mtop.natoms; i++)
    {
        energyGroups_.push_back(getGroupType(mtop.groups, SimulationAtomGroupType::EnergyOutput, i));
    }
}

int FmmRanks::size() const
{
    return numRanksWithDomains(cr_);
}

void FmmRanks::setHomeAtoms(ArrayRef<const int> home)
{
    home_.assign(home.begin(), home.end());
}

StepWorkload FmmRanks::workOfThisRank(const StepWorkload& stepWork) const
{
    StepWorkload work = stepWork;
    if (!isMainRank(cr_))
    {
        work.computeEnergy = false;
        work.computeVirial = false;
        work.computeDhdl   = false;
    }
    return work;
}

ArrayRef<const RVec> FmmRanks::gather(ArrayRef<const RVec> x)
{
    // Each atom is at home on one rank: it is added to zeros, which is exact
    std::fill(x_.begin(), x_.end(), RVec{ 0, 0, 0 });
    for (size_t i = 0; i < home_.size(); i++)
    {
        x_[home_[i]] = x[i];
    }
    sumOverRanks(cr_, arrayRefFromArray(as_rvec_array(x_.data())[0], DIM * x_.size()));
    return x_;
}

ForceWithVirial FmmRanks::clearedForces(const StepWorkload& stepWork)
{
    std::fill(force_.begin(), force_.end(), RVec{ 0, 0, 0 });
    return ForceWithVirial(force_, stepWork.computeVirial);
}

std::vector<FmmRankWork> FmmRanks::gatherWork(const FmmRankWork& own) const
{
    std::vector<FmmRankWork> all(size(), FmmRankWork{});
    static_assert(sizeof(FmmRankWork) == FmmRankWork::c_size * sizeof(real), "it has reals alone");
    all[rankWithDomain(cr_)] = own;
    sumOverRanks(cr_, arrayRefFromArray(&all[0].numCells, all.size() * FmmRankWork::c_size));
    return all;
}

void FmmRanks::addHomeForces(const ForceWithVirial& ofAll, ForceWithVirial* forceWithVirial) const
{
    const int gmx_unused numThreads = gmx_omp_nthreads_get(ModuleMultiThread::Default);
    const auto           numHome    = static_cast<int>(home_.size());
#pragma omp parallel for num_threads(numThreads) schedule(static)
    for (int i = 0; i < numHome; i++)
    {
        forceWithVirial->force_[i] += ofAll.force_[home_[i]];
    }
    forceWithVirial->addVirialContribution(ofAll.getVirial());
}

std::unique_ptr<FmmSolver> makeFmmSolver(const t_commrec&           cr,
                                         const t_inputrec&          inputrec,
                                         FmmParameters              parameters,
                                         const gmx_mtop_t&          mtop,
                                         const matrix               tprBox,
                                         ArrayRef<const RVec>       tprCoordinates,
                                         const real                 epsfac,
                                         const bool                 reproducible,
                                         const int                  numThreads,
                                         gmx_wallcycle*             wcycle,
                                         const DeviceStreamManager* gpuStreams)
{
    const auto make = [&](const matrix box, ArrayRef<const RVec> x)
    {
        return std::make_unique<FmmSolver>(
                parameters, mtop, box, x, epsfac, reproducible, numThreads, wcycle, gpuStreams);
    };
    if (numRanksWithDomains(cr) == 1)
    {
        return make(tprBox, tprCoordinates);
    }
    if (gpuStreams != nullptr)
    {
        auto gpuRanks      = std::make_unique<FmmGpuRanks>(cr, mtop.natoms, *gpuStreams);
        parameters.devices = fmmDevicesOfRanks(gpuRanks->devices(), reproducible);
        auto solver        = gpuRanks->isMain()
                                     ? make(tprBox, tprCoordinates)
                                     : std::make_unique<FmmSolver>(parameters, mtop, wcycle, *gpuStreams);
        auto ranks = gpuRanks->isMain() ? std::make_unique<FmmRanks>(cr, inputrec, mtop) : nullptr;
        solver->setGpuRanks(std::move(gpuRanks), std::move(ranks));
        return solver;
    }
    matrix            box;
    std::vector<RVec> x(tprCoordinates.begin(), tprCoordinates.end());
    copy_mat(tprBox, box);
    x.resize(mtop.natoms);
    broadcastToRanks(cr, sizeof(box), box);
    broadcastToRanks(cr, x.size() * sizeof(RVec), x.data());

    std::unique_ptr<FmmSolver> solver;
    if (isMainRank(cr))
    {
        solver = make(box, x);
    }
    parameters.choice = shareFmmChoice(cr, solver ? solver->choiceForOtherRanks() : FmmChoice());
    if (!solver)
    {
        parameters.isChosenByMainRank = true;
        solver                        = make(box, x);
    }
    auto ranks     = std::make_unique<FmmRanks>(cr, inputrec, mtop);
    bool isDivided = solver->canBeDivided();
    broadcastToRanks(cr, sizeof(isDivided), &isDivided);
    solver->setRanks(std::move(ranks), isDivided);
    return solver;
}

} // namespace gmx
