/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares what the FMM needs where mdrun has domains on several ranks
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMRANKS_H
#define GMX_FMM_FMMRANKS_H

#include <memory>
#include <string>
#include <vector>

#include "gromacs/mdtypes/forceoutput.h"
#include "gromacs/utility/arrayref.h"
#include "gromacs/utility/real.h"

#include "fmmversion.h"

struct gmx_mtop_t;
struct gmx_wallcycle;
struct t_commrec;
struct t_inputrec;

namespace gmx
{

class DeviceStreamManager;
class FmmSolver;
class StepWorkload;
enum class TaskTarget : int;
struct FmmChoice;
struct FmmParameters;
struct FmmRankWork;

/*! \brief Returns why the FMM cannot run on several ranks, and what to change; empty if it can
 *
 * \param[in]     inputrec         The input record
 * \param[in]     numPmeRanks      The user's number with mdrun -npme
 * \param[in]     numDomainsAlongZ The last number of mdrun -dd, 0 without
 * \param[in]     numFmmGpus       The user's number with mdrun -fmmgpus, 0 without
 * \param[in]     fmmTarget        The user's choice with mdrun -fmm
 * \param[in,out] nonbondedTarget  The user's choice with mdrun -nb; with pbc = xy then the CPU, if
 * that was left to mdrun
 */
std::string whyNoFmmOnRanks(const t_inputrec& inputrec,
                            int               numPmeRanks,
                            int               numDomainsAlongZ,
                            int               numFmmGpus,
                            TaskTarget        fmmTarget,
                            TaskTarget*       nonbondedTarget);

//! Returns the choice of the main rank, with its coordinates; all ranks have to call it, and those of others do not matter
FmmChoice shareFmmChoice(const t_commrec& cr, const FmmChoice& choice);

/*! \libinternal \brief
 * The atoms of all ranks
 *
 * A rank has atoms at home. Where the library does not divide the FMM, each rank computes that of
 * all atoms: it gets the coordinates of all, in the order of the topology, and keeps the forces on
 * its own. The main rank alone keeps energies and virial, which are sums over all atoms.
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
class FmmRanks
{
public:
    /*! \brief Begins with no atom at home
     *
     * \param[in] cr        The ranks, which have to last as long
     * \param[in] inputrec  The input record
     * \param[in] mtop      The system
     */
    FmmRanks(const t_commrec& cr, const t_inputrec& inputrec, const gmx_mtop_t& mtop);

    //! The ranks
    const t_commrec& commrec() const { return cr_; }
    //! Number of ranks
    int size() const;
    //! Atoms of the topology that are at home
    ArrayRef<const int> home() const { return home_; }
    //! Charges of all atoms, those of lambda = 0 where they are perturbed
    ArrayRef<const real> charges() const { return charges_; }
    //! Charges of lambda = 1, empty without free-energy perturbation
    ArrayRef<const real> chargesB() const { return chargesB_; }
    //! Energy group of each atom
    ArrayRef<const unsigned short> energyGroups() const { return energyGroups_; }
    //! Sets which atoms of the topology are at home, in the order that they have there
    void setHomeAtoms(ArrayRef<const int> home);
    //! Returns what this rank is to compute, of what the step needs
    StepWorkload workOfThisRank(const StepWorkload& stepWork) const;
    /*! \brief Returns the coordinates of all atoms, in the order of the topology
     *
     * All ranks have to call it.
     *
     * \param[in] x  Coordinates, of the atoms at home first
     */
    ArrayRef<const RVec> gather(ArrayRef<const RVec> x);
    //! Returns forces of zero on all atoms, and a virial of zero
    ForceWithVirial clearedForces(const StepWorkload& stepWork);
    //! Returns what all ranks did, in their order, from that of this one; all have to call it
    std::vector<FmmRankWork> gatherWork(const FmmRankWork& own) const;
    //! Adds those of the forces on all atoms that act on atoms at home, and the virial
    void addHomeForces(const ForceWithVirial& ofAll, ForceWithVirial* forceWithVirial) const;

private:
    const t_commrec&            cr_;
    std::vector<real>           charges_, chargesB_;
    std::vector<unsigned short> energyGroups_;
    //! Atoms of the topology that are at home
    std::vector<int> home_;
    //! Of all atoms
    std::vector<RVec> x_, force_;
};

/*! \brief Makes the solver, on each of several ranks that have domains
 *
 * The main rank has box and coordinates of the .tpr file. It measures errors and chooses
 * parameters, the others take these. All ranks have to call it. Parameters are those of FmmSolver.
 */
std::unique_ptr<FmmSolver> makeFmmSolver(const t_commrec&           cr,
                                         const t_inputrec&          inputrec,
                                         FmmParameters              parameters,
                                         const gmx_mtop_t&          mtop,
                                         const matrix               tprBox,
                                         ArrayRef<const RVec>       tprCoordinates,
                                         real                       epsfac,
                                         bool                       reproducible,
                                         int                        numThreads,
                                         gmx_wallcycle*             wcycle,
                                         const DeviceStreamManager* gpuStreams);

} // namespace gmx

#endif
