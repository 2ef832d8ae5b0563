/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares what the FMM needs and GROMACS versions offer in different ways
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMVERSION_H
#define GMX_FMM_FMMVERSION_H

#include <cstddef>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gromacs/utility/arrayref.h"
#include "gromacs/utility/gmxmpi.h"
#include "gromacs/utility/real.h"

#include "fmmversiontypes.h"

struct gmx_enerdata_t;
struct gmx_ffparams_t;
struct gmx_moltype_t;
struct gmx_mtop_t;
struct gmx_wallcycle;
struct interaction_const_t;
struct t_commrec;
struct t_inputrec;

namespace gmx
{

class FmmOptions;
class KeyValueTreeObject;

//! Adds an error, a warning or a note
void addFmmError(FmmWarningHandler* wi, const std::string& text);
void addFmmWarning(FmmWarningHandler* wi, const std::string& text);
void addFmmNote(FmmWarningHandler* wi, const std::string& text);

/*! \brief Returns whether the gmxfmm library computes the Coulomb interactions
 *
 * It does with coulombtype = FMM. Where the module has other libraries, too, fmm-backend
 * may choose one of these, or the input record may be one of GROMACS without gmxfmm.
 */
bool usesGmxfmm(const t_inputrec& inputrec);
//! Returns whether these are the module options of an input record with those of gmxfmm
bool gmxfmmOptionsAreStored(const KeyValueTreeObject& params);
//! Returns the options stored in an input record
FmmOptions fmmOptions(const t_inputrec& inputrec);

//! Returns whether the pressure is coupled
bool hasPressureCoupling(const t_inputrec& inputrec);
//! Returns whether the box is deformed
bool hasBoxDeformation(const t_inputrec& inputrec);
/*! \brief Returns whether a rectangular box may become another one
 *
 * By deformation or by pressure coupling with a compressibility off the diagonal.
 */
bool boxMayTilt(const t_inputrec& inputrec);
//! Returns lambda of Coulomb interactions at the start, 0 without free-energy perturbation
double startLambdaOfCoulomb(const t_inputrec& inputrec);
//! Returns whether a neural network computes interactions
bool hasNeuralNetworkPotential(const t_inputrec& inputrec);

/*! \brief Returns the radius of a list of pairs of single atoms that is used for so many steps
 *
 * It is that of groups of eight atoms with single ones. 0 where the input record has no tolerance to make it by.
 */
real fmmListRadius(const gmx_mtop_t&    mtop,
                   const t_inputrec&    inputrec,
                   const matrix         box,
                   ArrayRef<const RVec> x,
                   int                  nstlist);
//! Returns constants of interactions of an input record
interaction_const_t makeFmmInteractionConstants(const t_inputrec& inputrec, const gmx_mtop_t& mtop);

/*! \brief Returns pairs of atoms of a molecule that are bound to one another
 *
 * By chemical bonds, constraints, or as hydrogen and oxygen of rigid water.
 */
std::vector<std::pair<int, int>> boundPairs(const gmx_moltype_t& moltype);
//! Returns pairs of atoms of a molecule that a constraint or rigid water keeps at their distance
std::vector<std::pair<int, int>> constrainedPairs(const gmx_moltype_t& moltype);
//! Returns pairs of virtual sites of a molecule and the atoms that they are put in their places by
std::vector<std::pair<int, int>> virtualSitePairs(const gmx_moltype_t& moltype);
//! Returns whether pair interactions are those of Lennard-Jones, with r^-12
bool usesLennardJones(const gmx_ffparams_t& ffparams);

//! The energy term of the far field
real& coulombReciprocalTerm(gmx_enerdata_t* enerd);

//! Returns the number of ranks that have domains, 1 without domains
int numRanksWithDomains(const t_commrec& cr);
//! Returns the number of this one of them
int rankWithDomain(const t_commrec& cr);
//! Returns the communicator of these, where there are several
MPI_Comm communicatorOfRanks(const t_commrec& cr);
//! Returns whether this is the main one of them
bool isMainRank(const t_commrec& cr);
//! Copies data of the main rank to the others that have domains
void broadcastToRanks(const t_commrec& cr, std::size_t numBytes, void* data);
//! Adds up data of the ranks that have domains, each of which gets the sums
void sumOverRanks(const t_commrec& cr, ArrayRef<real> data);
//! The same in double precision
void sumDoublesOverRanks(const t_commrec& cr, ArrayRef<double> data);

/*! \brief Changes how far from a domain its neighbours' atoms are sent, and returns whether that fits
 *
 * All ranks have to call it, and get the same answer.
 */
bool changeDomainCutoff(t_commrec* cr, const matrix box, ArrayRef<const RVec> x, real cutoff);

//! Starts and stops the cycle counter of launches on the GPU
void startLaunchCounter(gmx_wallcycle* wcycle);
void stopLaunchCounter(gmx_wallcycle* wcycle);

} // namespace gmx

#endif
