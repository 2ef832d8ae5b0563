/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements what the FMM needs and GROMACS versions offer in different ways
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmversion.h"

#include <optional>

#include "gromacs/applied_forces/nnpot/nnpot.h"
#include "gromacs/domdec/domdec.h"
#include "gromacs/fileio/warninp.h"
#include "gromacs/gmxlib/network.h"
#include "gromacs/mdlib/calc_verletbuf.h"
#include "gromacs/mdrun/mdmodules.h"
#include "gromacs/mdrunutility/mdmodulesnotifiers.h"
#include "gromacs/mdtypes/commrec.h"
#include "gromacs/mdtypes/enerdata.h"
#include "gromacs/mdtypes/imdmodule.h"
#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/mdtypes/interaction_const.h"
#include "gromacs/options/options.h"
#include "gromacs/options/treesupport.h"
#include "gromacs/pbcutil/pbc.h"
#include "gromacs/timing/wallcycle.h"
#include "gromacs/topology/ifunc.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/enumerationhelpers.h"
#include "gromacs/utility/keyvaluetree.h"
#include "gromacs/utility/keyvaluetreebuilder.h"

#include "fmm_mdmodule.h"
#include "fmm_mdpoptions.h"
#include "fmmchoice.h"
#include "fmmopensystem.h"
#include "fmmslab.h"
#include "gmxfmmoptions.h"

namespace gmx
{

void addFmmError(FmmWarningHandler* wi, const std::string& text)
{
    wi->addError(text);
}

void addFmmWarning(FmmWarningHandler* wi, const std::string& text)
{
    wi->addWarning(text);
}

void addFmmNote(FmmWarningHandler* wi, const std::string& text)
{
    wi->addNote(text);
}

bool gmxfmmOptionsAreStored(const KeyValueTreeObject& params)
{
    if (!params.keyExists(FmmOptions::c_scope))
    {
        return false;
    }
    const KeyValueTreeObject& scope = params[FmmOptions::c_scope].asObject();
    const std::string         section(FmmModuleInfo::sc_name);
    return scope.keyExists(section) && FmmOptions::areIn(scope[section].asObject());
}

//! Reads the options of the module stored in an input record
static void readModuleOptions(const t_inputrec& inputrec, FmmMdpOptions* mdpOptions)
{
    mdpOptions->declareGmxfmmOptions();
    if (inputrec.params->keyExists(FmmOptions::c_scope))
    {
        Options options;
        mdpOptions->initMdpOptions(&options);
        assignOptionsFromKeyValueTree(&options, (*inputrec.params)[FmmOptions::c_scope].asObject(), nullptr);
    }
}

bool usesGmxfmm(const t_inputrec& inputrec)
{
    if (inputrec.coulombtype != CoulombInteractionType::Fmm || !gmxfmmOptionsAreStored(*inputrec.params))
    {
        return false;
    }
    FmmMdpOptions mdpOptions;
    readModuleOptions(inputrec, &mdpOptions);
    const ActiveFmmBackend backend = mdpOptions.activeFmmBackend();
    return backend != ActiveFmmBackend::ExaFmm && backend != ActiveFmmBackend::FMSolvr;
}

FmmOptions fmmOptions(const t_inputrec& inputrec)
{
    FmmMdpOptions mdpOptions;
    readModuleOptions(inputrec, &mdpOptions);
    FmmOptions options = mdpOptions.gmxfmmOptions();
    options.setBackend(fmmBackendName(mdpOptions.activeFmmBackend()));
    return options;
}

bool hasPressureCoupling(const t_inputrec& inputrec)
{
    return inputrec.pressureCouplingOptions.epc != PressureCoupling::No;
}

bool hasBoxDeformation(const t_inputrec& inputrec)
{
    return ir_haveBoxDeformation(inputrec);
}

//! Returns whether an element below the diagonal, where boxes have theirs, is not zero
static bool hasElementsOffDiagonal(const tensor matrix)
{
    return matrix[YY][XX] != 0 || matrix[ZZ][XX] != 0 || matrix[ZZ][YY] != 0;
}

bool boxMayTilt(const t_inputrec& inputrec)
{
    return hasElementsOffDiagonal(inputrec.deform)
           || (hasPressureCoupling(inputrec)
               && inputrec.pressureCouplingOptions.epct == PressureCouplingType::Anisotropic
               && hasElementsOffDiagonal(inputrec.pressureCouplingOptions.compress));
}

double startLambdaOfCoulomb(const t_inputrec& inputrec)
{
    return inputrec.efep == FreeEnergyPerturbationType::No
                   ? 0
                   : inputrec.fepvals->initialLambda(FreeEnergyPerturbationCouplingType::Coul);
}

bool hasNeuralNetworkPotential(const t_inputrec& inputrec)
{
    constexpr char    c_scope[] = "applied-forces", c_active[] = "active";
    const std::string section(NNPotModuleInfo::sc_name);
    if (!inputrec.params->keyExists(c_scope) || !(*inputrec.params)[c_scope].asObject().keyExists(section))
    {
        return false;
    }
    const KeyValueTreeObject& nnpot = (*inputrec.params)[c_scope].asObject()[section].asObject();
    return nnpot.keyExists(c_active) && nnpot[c_active].cast<bool>();
}

real effectiveAtomDensity(const t_inputrec&          inputrec,
                          const ArrayRef<const RVec> x,
                          const matrix               box,
                          const real                 cutoff,
                          const MPI_Comm             communicator)
{
    if (inputrec.pbcType != PbcType::No && !isFilm(inputrec.pbcType, inputrec.nwall))
    {
        return computeEffectiveAtomDensity(x, box, cutoff, communicator);
    }
    // The main rank has the coordinates
    real density = x.empty() ? 0 : static_cast<real>(x.size()) / openSystemVolume(x);
    if (communicator != MPI_COMM_NULL)
    {
        gmx_bcast(sizeof(density), &density, communicator);
    }
    return density;
}

namespace
{

//! Returns whether a buffer of pair lists can be computed by the temperature
bool haveBufferByTemperature(const t_inputrec& inputrec)
{
    return EI_DYNAMICS(inputrec.eI) && inputrec.verletbuf_tol > 0
           && !(EI_MD(inputrec.eI) && inputrec.etc == TemperatureCoupling::No);
}

//! Lists of what is near any of eight atoms
constexpr VerletbufListSetup c_listSetup = { 8, 1 };

} // namespace

real fmmListRadius(const gmx_mtop_t&    mtop,
                   const t_inputrec&    inputrec,
                   const matrix         box,
                   ArrayRef<const RVec> x,
                   const int            nstlist)
{
    if (!haveBufferByTemperature(inputrec))
    {
        return 0;
    }
    if (x.empty())
    {
        return inputrec.rlist; // of a rank that lists no pairs
    }
    const real density = computeEffectiveAtomDensity(x, box, inputrec.rvdw, MPI_COMM_NULL);
    return calcVerletBufferSize(
            mtop, density, inputrec, inputrec.verletBufferPressureTolerance, nstlist, nstlist - 1, -1, c_listSetup);
}

interaction_const_t makeFmmInteractionConstants(const t_inputrec& inputrec, const gmx_mtop_t& mtop)
{
    return init_interaction_const(nullptr, inputrec, mtop, false, std::nullopt);
}

namespace
{

//! Returns pairs of the first and another atom of interactions of some kinds
std::vector<std::pair<int, int>> pairsOfAtoms(const gmx_moltype_t& moltype,
                                              bool (*isWanted)(InteractionFunction ftype))
{
    std::vector<std::pair<int, int>> pairs;
    for (const auto ftype : EnumerationWrapper<InteractionFunction>{})
    {
        const InteractionList& list = moltype.ilist[ftype];
        for (int i = 0; i < list.size() && isWanted(ftype); i += 1 + NRAL(ftype))
        {
            for (int a = 1; a < NRAL(ftype); a++)
            {
                pairs.emplace_back(list.iatoms[i + 1], list.iatoms[i + 1 + a]);
            }
        }
    }
    return pairs;
}

} // namespace

std::vector<std::pair<int, int>> boundPairs(const gmx_moltype_t& moltype)
{
    return pairsOfAtoms(moltype,
                        [](InteractionFunction ftype)
                        {
                            return ftype == InteractionFunction::SETTLE
                                   || (NRAL(ftype) == 2
                                       && (interaction_function[ftype].flags & IF_CHEMBOND) != 0);
                        });
}

std::vector<std::pair<int, int>> constrainedPairs(const gmx_moltype_t& moltype)
{
    return pairsOfAtoms(moltype,
                        [](InteractionFunction ftype)
                        {
                            return ftype == InteractionFunction::SETTLE
                                   || ftype == InteractionFunction::Constraints
                                   || ftype == InteractionFunction::ConstraintsNoCoupling;
                        });
}

std::vector<std::pair<int, int>> virtualSitePairs(const gmx_moltype_t& moltype)
{
    return pairsOfAtoms(moltype,
                        [](InteractionFunction ftype)
                        { return (interaction_function[ftype].flags & IF_VSITE) != 0; });
}

bool usesLennardJones(const gmx_ffparams_t& ffparams)
{
    return ffparams.functype[0] == InteractionFunction::LennardJonesShortRange && ffparams.reppow == 12;
}

real& coulombReciprocalTerm(gmx_enerdata_t* enerd)
{
    return enerd->term[InteractionFunction::CoulombReciprocalSpace];
}

int numRanksWithDomains(const t_commrec& cr)
{
    return haveDDAtomOrdering(cr) ? cr.commMyGroup.size() : 1;
}

int rankWithDomain(const t_commrec& cr)
{
    return cr.commMyGroup.rank();
}

MPI_Comm communicatorOfRanks(const t_commrec& cr)
{
    return cr.commMyGroup.comm();
}

bool isMainRank(const t_commrec& cr)
{
    return cr.commMyGroup.isMainRank();
}

void broadcastToRanks(const t_commrec& cr, const std::size_t numBytes, void* data)
{
    gmx_bcast(numBytes, data, cr.commMyGroup.comm());
}

void sumOverRanks(const t_commrec& cr, ArrayRef<real> data)
{
    cr.commMyGroup.sumReduce(data);
}

void sumDoublesOverRanks(const t_commrec& cr, ArrayRef<double> data)
{
    cr.commMyGroup.sumReduce(data);
}

bool changeDomainCutoff(t_commrec* cr, const matrix box, ArrayRef<const RVec> x, const real cutoff)
{
    return change_dd_cutoff(cr->dd, box, x, cutoff, true);
}

void startLaunchCounter(gmx_wallcycle* wcycle)
{
    wallcycle_start_nocount(wcycle, WallCycleCounter::LaunchGpuPp);
}

void stopLaunchCounter(gmx_wallcycle* wcycle)
{
    wallcycle_stop(wcycle, WallCycleCounter::LaunchGpuPp);
}

namespace
{

//! Makes checkpoints keep a choice
class FmmChoiceModule final : public IMDModule
{
public:
    explicit FmmChoiceModule(FmmChoice* choice) : choice_(choice) {}

    IMdpOptionProvider* mdpOptionProvider() override { return nullptr; }
    IMDOutputProvider*  outputProvider() override { return nullptr; }
    void                initForceProviders(ForceProviders* /*forceProviders*/) override {}
    void subscribeToPreProcessingNotifications(MDModulesNotifiers* /*notifiers*/) override {}
    void subscribeToSimulationRunNotifications(MDModulesNotifiers* /*notifiers*/) override {}
    void subscribeToSimulationSetupNotifications(MDModulesNotifiers* notifiers) override
    {
        notifiers->checkpointingNotifier_.subscribe([this](MDModulesWriteCheckpointData data)
                                                    { writeFmmChoice(*choice_, data.builder_); });
        notifiers->checkpointingNotifier_.subscribe(
                [this](MDModulesCheckpointReadingDataOnMain data)
                { *choice_ = readFmmChoice(data.checkpointedData_); });
    }

private:
    FmmChoice* choice_;
};

} // namespace

void keepFmmChoice(MDModules* modules, FmmChoice* choice)
{
    modules->add("gmxfmm-choice", std::make_shared<FmmChoiceModule>(choice));
}

} // namespace gmx
