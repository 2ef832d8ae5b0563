/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements what the FMM needs and GROMACS versions offer in different ways
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmversion.h"

#include "gromacs/domdec/domdec.h"
#include "gromacs/domdec/domdec_struct.h"
#include "gromacs/fileio/checkpoint.h"
#include "gromacs/fileio/warninp.h"
#include "gromacs/gmxlib/network.h"
#include "gromacs/math/vec.h"
#include "gromacs/mdlib/calc_verletbuf.h"
#include "gromacs/mdrun/mdmodules.h"
#include "gromacs/mdtypes/commrec.h"
#include "gromacs/mdtypes/enerdata.h"
#include "gromacs/mdtypes/imdmodule.h"
#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/mdtypes/interaction_const.h"
#include "gromacs/options/options.h"
#include "gromacs/options/treesupport.h"
#include "gromacs/timing/wallcycle.h"
#include "gromacs/topology/ifunc.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/keyvaluetree.h"
#include "gromacs/utility/keyvaluetreebuilder.h"
#include "gromacs/utility/mdmodulesnotifiers.h"

#include "fmmchoice.h"
#include "gmxfmmoptions.h"

namespace gmx
{

void addFmmError(FmmWarningHandler* wi, const std::string& text)
{
    warning_error(wi, text);
}

void addFmmWarning(FmmWarningHandler* wi, const std::string& text)
{
    warning(wi, text);
}

void addFmmNote(FmmWarningHandler* wi, const std::string& text)
{
    warning_note(wi, text);
}

bool usesGmxfmm(const t_inputrec& inputrec)
{
    return inputrec.coulombtype == CoulombInteractionType::Fmm;
}

bool gmxfmmOptionsAreStored(const KeyValueTreeObject& params)
{
    return params.keyExists(FmmOptions::c_scope);
}

FmmOptions fmmOptions(const t_inputrec& inputrec)
{
    FmmOptions fmmOptions;
    if (gmxfmmOptionsAreStored(*inputrec.params))
    {
        Options options;
        fmmOptions.initMdpOptions(&options);
        assignOptionsFromKeyValueTree(&options, (*inputrec.params)[FmmOptions::c_scope].asObject(), nullptr);
    }
    return fmmOptions;
}

bool hasPressureCoupling(const t_inputrec& inputrec)
{
    return inputrec.epc != PressureCoupling::No;
}

bool hasBoxDeformation(const t_inputrec& inputrec)
{
    return inputrecDeform(&inputrec);
}

//! Returns whether an element below the diagonal, where boxes have theirs, is not zero
static bool hasElementsOffDiagonal(const tensor matrix)
{
    return matrix[YY][XX] != 0 || matrix[ZZ][XX] != 0 || matrix[ZZ][YY] != 0;
}

bool boxMayTilt(const t_inputrec& inputrec)
{
    return hasElementsOffDiagonal(inputrec.deform)
           || (hasPressureCoupling(inputrec) && inputrec.epct == PressureCouplingType::Anisotropic
               && hasElementsOffDiagonal(inputrec.compress));
}

double startLambdaOfCoulomb(const t_inputrec& inputrec)
{
    if (inputrec.efep == FreeEnergyPerturbationType::No)
    {
        return 0;
    }
    const t_lambda& fep   = *inputrec.fepvals;
    const int       state = fep.init_fep_state;
    return state < 0 ? std::max(0.0, fep.init_lambda)
                     : fep.all_lambda[FreeEnergyPerturbationCouplingType::Coul][state];
}

bool hasNeuralNetworkPotential(const t_inputrec& /*inputrec*/)
{
    return false;
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

real fmmListRadius(const gmx_mtop_t& mtop,
                   const t_inputrec& inputrec,
                   const matrix      box,
                   ArrayRef<const RVec> /*x*/,
                   const int nstlist)
{
    if (!haveBufferByTemperature(inputrec))
    {
        return 0;
    }
    return calcVerletBufferSize(mtop, det(box), inputrec, nstlist, nstlist - 1, -1, c_listSetup);
}

interaction_const_t makeFmmInteractionConstants(const t_inputrec& inputrec, const gmx_mtop_t& mtop)
{
    return init_interaction_const(nullptr, inputrec, mtop, false);
}

namespace
{

//! Returns pairs of the first and another atom of interactions of some kinds
std::vector<std::pair<int, int>> pairsOfAtoms(const gmx_moltype_t& moltype, bool (*isWanted)(int ftype))
{
    std::vector<std::pair<int, int>> pairs;
    for (int ftype = 0; ftype < F_NRE; ftype++)
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
                        [](int ftype)
                        {
                            return ftype == F_SETTLE
                                   || (NRAL(ftype) == 2
                                       && (interaction_function[ftype].flags & IF_CHEMBOND) != 0);
                        });
}

std::vector<std::pair<int, int>> constrainedPairs(const gmx_moltype_t& moltype)
{
    return pairsOfAtoms(moltype,
                        [](int ftype)
                        { return ftype == F_SETTLE || ftype == F_CONSTR || ftype == F_CONSTRNC; });
}

std::vector<std::pair<int, int>> virtualSitePairs(const gmx_moltype_t& moltype)
{
    return pairsOfAtoms(
            moltype, [](int ftype) { return (interaction_function[ftype].flags & IF_VSITE) != 0; });
}

bool usesLennardJones(const gmx_ffparams_t& ffparams)
{
    return ffparams.functype[0] == F_LJ && ffparams.reppow == 12;
}

real& coulombReciprocalTerm(gmx_enerdata_t* enerd)
{
    return enerd->term[F_COUL_RECIP];
}

int numRanksWithDomains(const t_commrec& cr)
{
    return havePPDomainDecomposition(&cr) ? cr.dd->nnodes : 1;
}

int rankWithDomain(const t_commrec& cr)
{
    return havePPDomainDecomposition(&cr) ? cr.dd->rank : 0;
}

MPI_Comm communicatorOfRanks(const t_commrec& cr)
{
    return cr.mpi_comm_mygroup;
}

bool isMainRank(const t_commrec& cr)
{
    return MASTER(&cr);
}

void broadcastToRanks(const t_commrec& cr, const std::size_t numBytes, void* data)
{
    gmx_bcast(numBytes, data, cr.mpi_comm_mygroup);
}

void sumOverRanks(const t_commrec& cr, ArrayRef<real> data)
{
    gmx_sum(data.ssize(), data.data(), &cr);
}

void sumDoublesOverRanks(const t_commrec& cr, ArrayRef<double> data)
{
    gmx_sumd(data.ssize(), data.data(), &cr);
}

bool changeDomainCutoff(t_commrec* cr, const matrix box, ArrayRef<const RVec> x, const real cutoff)
{
    return change_dd_cutoff(cr, box, x, cutoff, true);
}

void startLaunchCounter(gmx_wallcycle* wcycle)
{
    wallcycle_start_nocount(wcycle, WallCycleCounter::LaunchGpu);
}

void stopLaunchCounter(gmx_wallcycle* wcycle)
{
    wallcycle_stop(wcycle, WallCycleCounter::LaunchGpu);
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
    void subscribeToSimulationSetupNotifications(MDModulesNotifiers* notifiers) override
    {
        notifiers->checkpointingNotifier_.subscribe([this](MDModulesWriteCheckpointData data)
                                                    { writeFmmChoice(*choice_, data.builder_); });
        notifiers->checkpointingNotifier_.subscribe(
                [this](MDModulesCheckpointReadingDataOnMaster data)
                { *choice_ = readFmmChoice(data.checkpointedData_); });
    }

private:
    FmmChoice* choice_;
};

} // namespace

void keepFmmChoice(MDModules* modules, FmmChoice* choice)
{
    modules->add(std::make_shared<FmmChoiceModule>(choice));
}

} // namespace gmx
