/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Declares what the FMM writes to md.log
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMREPORT_H
#define GMX_FMM_FMMREPORT_H

#include <gmxfmm.h>
#include <gmxfmm_parallel.h>

#include <cstdint>
#include <cstdio>

#include <array>
#include <string>

#include "gromacs/utility/arrayref.h"
#include "gromacs/utility/real.h"

namespace gmx
{

class FmmPlan;
class MDLogger;
//! A box in the form the library wants, as in fmmplan.h
using FmmBox = std::array<double, 9>;
struct FmmGpuTimes;
struct FmmMeasuredError;

//! Returns the parameters in use, as text
std::string describeFmm(const FmmPlan& plan);

/*! \brief Writes the parameters in use and what was measured of them, with requests to cite
 *
 * \param[in] plan             What computes
 * \param[in] maxStepsInCells  Steps between pair searches after which atoms are assigned to cells, 0: never
 * \param[in] mdlog            Logger for the parameters
 * \param[in] fplog            Log file for papers to cite
 */
void logFmmSetup(const FmmPlan& plan, int maxStepsInCells, const MDLogger& mdlog, FILE* fplog);

//! Returns what the log says of a choice between one GPU and those in \p info by the times of a step in s
std::string fmmDevicesNote(double timeOfOne, double timeOfAll, const gmxfmm_info& info, bool areAllUsed);
//! Writes such a text, if there is one, which tells of GPUs that were asked for and are not used if \p areAskedFor
void logFmmDevices(const std::string& note, bool areAskedFor, const MDLogger& mdlog);

//! Tells on how many ranks the FMM runs, and whether it is divided over them
void logFmmRanks(int numRanks, bool isDivided, const MDLogger& mdlog);
//! Tells that the first of several ranks computes the FMM on its GPU, or with those of others, and with how many positions go by the host
void logFmmRanksOnGpus(int numRanks, int numByHost, const MDLogger& mdlog);

//! What a rank has of the FMM and did of it; reals, which ranks can add up
struct FmmRankWork
{
    //! Number of members
    static constexpr int c_size = 11;
    //! Own cells and atoms, atoms near to these, bytes and messages that it sends in a step
    real numCells, numAtoms, numImported, bytes, messages;
    //! Seconds of computing, and in exchanges
    real work, positions, expansions, spectra, results, sums;
};

//! Returns this for the plan of a rank
FmmRankWork fmmRankWork(const gmxfmm_ranks_info& info);
//! Seconds in exchanges of a rank, waiting for others included
double fmmExchangeTime(const gmxfmm_ranks_info& info);
//! Writes what the ranks did, and how even their work was
void logFmmRanksWork(ArrayRef<const FmmRankWork> ranks, const MDLogger& mdlog);

//! Tells how many atoms have perturbed charges, and whether their interactions are soft-core ones
void logFmmPerturbation(int numAtoms, bool areSoftened, const MDLogger& mdlog);

//! Warns and returns true when the volume is far from that of the box for which parameters were chosen
bool logFmmVolume(const FmmBox& box, const FmmBox& startBox, const MDLogger& mdlog);

//! The same for the mean number of atoms near one in an open system
bool logFmmOpenDensity(double nearAtoms, double nearAtomsAtStart, const MDLogger& mdlog);

/*! \brief Warns and returns true when perturbed charges are others than those for which parameters were chosen
 *
 * \param[in] squares         Sum of the squares of all charges now
 * \param[in] squaresAtStart  The same at the lambda of the .tpr file
 * \param[in] mdlog           Logger
 */
bool logFmmCharges(double squares, double squaresAtStart, const MDLogger& mdlog);

//! Writes the time that the CPU spent in each stage
void logFmmTimesOnCpu(const gmxfmm_info& info, const MDLogger& mdlog);
//! Writes how much of the near field each GPU has at the end, after shares were tried
void logFmmShares(const gmxfmm_info& info, const MDLogger& mdlog);
//! Writes the time of each stage of a step on the GPU
void logFmmTimesOnGpu(const FmmGpuTimes& times, const MDLogger& mdlog);

/*! \brief Writes the force error at the last coordinates of a run, with a warning when it is far above what was asked for
 *
 * \param[in] error  At the end
 * \param[in] plan   What computed the run
 * \param[in] mdlog  Logger
 */
void logFmmErrorAtEnd(const FmmMeasuredError& error, const FmmPlan& plan, const MDLogger& mdlog);

//! Tells that order and cells were chosen anew at a step, where the error of those before was \p before
void logFmmChosenAnew(int64_t step, double before, const FmmPlan& plan, const MDLogger& mdlog);
//! Tells that this could not be done, and why
void logFmmNotChosenAnew(int64_t step, double error, double accuracy, const char* why, const MDLogger& mdlog);

//! What measurements during a run came to
struct FmmRemeasurements
{
    int    numMeasured = 0, numChosen = 0;
    double seconds = 0;
};

//! Tells of measurements during the run, if there were any
void logFmmRemeasurements(const FmmRemeasurements& done, const MDLogger& mdlog);

} // namespace gmx

#endif
