/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements what the FMM writes to md.log
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmreport.h"

#include <algorithm>

#include "gromacs/utility/logger.h"
#include "gromacs/utility/pleasecite.h"
#include "gromacs/utility/stringutil.h"

#include "fmmgpusteps.h"
#include "fmmplan.h"
#include "fmmsystem.h"
#include "gmxfmmoptions.h"

namespace gmx
{

//! Measured errors above so many times the accuracy asked for get a warning
static constexpr double c_worthAWarning = 1.5;

//! Returns a line about what is not periodic, empty where all is
static std::string describePeriodicity(const FmmPlan& plan)
{
    if (plan.isOpen())
    {
        return "\n     open boundary; the number of cells follows the extent of the "
               "system, at each pair search";
    }
    switch (plan.periodicity())
    {
        case FmmPeriodicity::SlabBetweenWalls:
            return "\n     periodic along x and y, open along z between two walls, no background "
                   "charge";
        case FmmPeriodicity::Film:
            return "\n     periodic along x and y, open along z, no background charge; the number "
                   "of cells along z\n     follows the extent of the system, at each pair search";
        default: return "";
    }
}

std::string describeFmm(const FmmPlan& plan)
{
    const gmxfmm_info info = plan.info();
    std::string cells = formatString("%d x %d x %d cells", info.grid[XX], info.grid[YY], info.grid[ZZ]);
    if (info.depth >= 0)
    {
        cells = formatString(
                "octree of depth %d, %s, %d of them occupied", info.depth, cells.c_str(), info.num_cells);
    }
    const FmmMeasuredError& measured = plan.measured();
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
            describePeriodicity(plan).c_str(),
            info.predicted_error,
            measured.status == FmmMeasurementStatus::Measured
                    ? formatString(", measured %.1e to %.1e", measured.error, measured.errorMoved).c_str()
                    : "");
}

//! Returns how much of a field each GPU has, as text
static std::string describeShares(const gmxfmm_info& info, const double* shares)
{
    std::string text;
    for (int i = 0; i < info.num_devices; i++)
    {
        text += formatString("%s %.0f %% on %d", i > 0 ? "," : "", 100 * shares[i], info.devices[i]);
    }
    return text;
}

//! Returns the GPUs that share a step and how much of the near and the far field each has, as text
static std::string describeDevices(const gmxfmm_info& info)
{
    if (info.num_devices < 2)
    {
        return "GPU";
    }
    return "GPUs (near field:" + describeShares(info, info.shares)
           + "; far field:" + describeShares(info, info.far_shares) + ")";
}

std::string fmmDevicesNote(const double timeOfOne, const double timeOfAll, const gmxfmm_info& info, const bool areAllUsed)
{
    std::string text = formatString(
            "FMM: a step of it takes %.3f ms on one GPU and %.3f ms on %d: %s used%s",
            1e3 * timeOfOne,
            1e3 * timeOfAll,
            info.num_devices,
            areAllUsed ? "all are" : "one is",
            areAllUsed ? "" : "\n     several pay from some size on, without NVLink from a larger one");
    return info.devices_note[0] != '\0' ? text + "\n     " + info.devices_note : text;
}

void logFmmDevices(const std::string& note, const bool areAskedFor, const MDLogger& mdlog)
{
    if (note.empty())
    {
        return;
    }
    if (areAskedFor)
    {
        GMX_LOG(mdlog.warning).asParagraph().appendText("NOTE: FMM: " + note);
    }
    else
    {
        GMX_LOG(mdlog.info).asParagraph().appendText(note);
    }
}

void logFmmSetup(const FmmPlan& plan, int maxStepsInCells, const MDLogger& mdlog, FILE* fplog)
{
    const gmxfmm_info info  = plan.info();
    const std::string where = plan.isOnGpu() ? describeDevices(info)
                                             : formatString("CPU, %d OpenMP thread%s",
                                                            info.num_threads,
                                                            info.num_threads == 1 ? "" : "s");
    std::string       renewal;
    if (maxStepsInCells > 0)
    {
        renewal = formatString(
                "\n     atoms are assigned to cells at pair searches and every %d steps", maxStepsInCells);
    }
    GMX_LOG(mdlog.info)
            .asParagraph()
            .appendText(describeFmm(plan) + "\n")
            .appendTextFormatted("     near and far field in %s precision on the %s, %.1f MB%s",
                                 info.precision == GMXFMM_DOUBLE ? "double" : "single",
                                 where.c_str(),
                                 info.bytes * 1e-6,
                                 renewal.c_str());
    const FmmMeasuredError& measured = plan.measured();
    if (!measured.table.empty())
    {
        GMX_LOG(mdlog.info).asParagraph().appendText(measured.table);
    }
    if (measured.status == FmmMeasurementStatus::NotMeasured)
    {
        GMX_LOG(mdlog.warning)
                .asParagraph()
                .appendTextFormatted(
                        "NOTE: The error of the FMM forces with the parameters given could not be "
                        "measured at the start (%s).",
                        measured.message.c_str());
    }
    else if (measured.error > plan.accuracy())
    {
        GMX_LOG(mdlog.warning)
                .asParagraph()
                .appendTextFormatted(
                        "NOTE: With the FMM parameters given, the relative RMS error of the forces "
                        "is %.1e, while fmm-accuracy = %g.",
                        measured.error,
                        plan.accuracy());
    }
    // A larger one than when atoms have just been assigned is in the nature of small cells, but not without limit
    if (plan.atomsMoveInCells()
        && measured.errorMoved > c_worthAWarning * std::max(plan.accuracy(), measured.error))
    {
        GMX_LOG(mdlog.warning)
                .asParagraph()
                .appendTextFormatted(
                        "WARNING: With these FMM parameters the relative RMS error of the forces "
                        "grows "
                        "from %.1e to %.1e when atoms move between their assignments to cells, "
                        "while fmm-accuracy = %g. Use larger cells (a smaller fmm-grid or "
                        "fmm-tree-depth), a larger fmm-order or a smaller fmm-accuracy.",
                        measured.error,
                        measured.errorMoved,
                        plan.accuracy());
    }
    please_cite(fplog, "Dehnen2014");
    if (info.m2l == GMXFMM_M2L_FFT)
    {
        please_cite(fplog, "Ong2003");
    }
    please_cite(fplog, "Kohnke2021");
}

void logFmmRanks(const int numRanks, const bool isDivided, const MDLogger& mdlog)
{
    const char* how =
            isDivided ? "FMM: divided over %d ranks. Each computes the forces in a range of "
                        "cells, and is sent the atoms in and near them. Ranges follow the "
                        "measured work of the ranks."
                      : "FMM: each of the %d ranks computes the interactions of all "
                        "atoms and keeps the forces on its own. That is so with an octree "
                        "and with pbc = xy. "
                        "All other interactions are divided over the ranks. With one rank "
                        "and as many OpenMP threads the FMM itself is faster.";
    GMX_LOG(mdlog.info).asParagraph().appendTextFormatted(how, numRanks);
}

FmmRankWork fmmRankWork(const gmxfmm_ranks_info& info)
{
    FmmRankWork work;
    work.numCells    = info.num_cells;
    work.numAtoms    = info.num_particles;
    work.numImported = info.num_imported;
    work.bytes       = info.bytes_sent;
    work.messages    = info.messages;
    work.work        = info.time_work;
    work.positions   = info.time_positions;
    work.expansions  = info.time_expansions;
    work.spectra     = info.time_spectra;
    work.results     = info.time_results;
    work.sums        = info.time_sums;
    return work;
}

double fmmExchangeTime(const gmxfmm_ranks_info& info)
{
    return info.time_positions + info.time_expansions + info.time_spectra + info.time_results + info.time_sums;
}

void logFmmRanksWork(ArrayRef<const FmmRankWork> ranks, const MDLogger& mdlog)
{
    const std::string title = formatString("FMM: its parts on %d ranks", static_cast<int>(ranks.size()));
    std::string       table =
            formatString("%-41s %11s %11s %11s\n\n", title.c_str(), "mean", "least", "most");
    // Returns the largest over the mean
    const auto addLine = [&](const char* name, const char* format, real FmmRankWork::*member, double unit)
    {
        double sum = 0, least = ranks[0].*member, most = least;
        for (const FmmRankWork& rank : ranks)
        {
            sum += rank.*member;
            least = std::min<double>(least, rank.*member);
            most  = std::max<double>(most, rank.*member);
        }
        const double mean = sum / ranks.size();
        table += formatString(" %-40s", name)
                 + formatString(format, mean / unit, least / unit, most / unit) + "\n";
        return mean > 0 ? most / mean : 1;
    };
    constexpr char c_counts[] = " %11.0f %11.0f %11.0f";
    constexpr char c_times[]  = " %11.3f %11.3f %11.3f";
    addLine("Cells", c_counts, &FmmRankWork::numCells, 1);
    addLine("Atoms in them", c_counts, &FmmRankWork::numAtoms, 1);
    addLine("Atoms of other ranks near them", c_counts, &FmmRankWork::numImported, 1);
    addLine("Sent in a step, kB", c_counts, &FmmRankWork::bytes, 1000);
    addLine("Messages in a step", c_counts, &FmmRankWork::messages, 1);
    const double imbalance = addLine("Work, s", c_times, &FmmRankWork::work, 1);
    addLine("Exchange and waiting: positions, s", c_times, &FmmRankWork::positions, 1);
    addLine("                      expansions, s", c_times, &FmmRankWork::expansions, 1);
    addLine("                      spectra, s", c_times, &FmmRankWork::spectra, 1);
    addLine("                      forces, s", c_times, &FmmRankWork::results, 1);
    addLine("                      sums, s", c_times, &FmmRankWork::sums, 1);
    table += formatString("\n Imbalance of work, most over mean less 1: %.1f %%\n", 100 * (imbalance - 1));
    GMX_LOG(mdlog.info).asParagraph().appendText(table);
}

void logFmmRanksOnGpus(const int numRanks, const int numByHost, const MDLogger& mdlog)
{
    std::string text = formatString(
            "FMM: the first of %d ranks computes it for all of them. Positions of their home atoms "
            "are copied to its GPU, forces back.",
            numRanks);
    if (numByHost > 0)
    {
        text += formatString(
                " Those of %d rank%s go by the host's memory and messages: %s not see the memory "
                "of "
                "that GPU.",
                numByHost,
                numByHost == 1 ? "" : "s",
                numByHost == 1 ? "it does" : "these do");
    }
    GMX_LOG(mdlog.info).asParagraph().appendText(text);
}

void logFmmPerturbation(const int numAtoms, const bool areSoftened, const MDLogger& mdlog)
{
    GMX_LOG(mdlog.info)
            .asParagraph()
            .appendTextFormatted(
                    "FMM: %d atom%s perturbed charges; their interactions with one another are "
                    "computed a second time%s",
                    numAtoms,
                    numAtoms == 1 ? " has" : "s have",
                    areSoftened
                            ? ". With soft-core Coulomb interactions all atoms are in the pair list"
                            : "");
}

bool logFmmVolume(const FmmBox& box, const FmmBox& startBox, const MDLogger& mdlog)
{
    // Rows of a box are a lower triangle; without a volume there is the area
    const bool isVolume = hasVolume(box.data());
    const auto volume = [isVolume](const FmmBox& b) { return b[0] * b[4] * (isVolume ? b[8] : 1); };
    const double ratio = volume(box) / volume(startBox);
    if (!fmmIsOther(ratio))
    {
        return false;
    }
    GMX_LOG(mdlog.warning)
            .asParagraph()
            .appendTextFormatted(
                    "WARNING: The %s of the box is now %.2f times that of the .tpr file, for "
                    "which the parameters of the FMM were chosen. Errors of the forces may be "
                    "larger than fmm-accuracy, and steps slower than they need to be: make a new "
                    ".tpr file from the present coordinates to go on.",
                    isVolume ? "volume" : "area",
                    ratio);
    return true;
}

bool logFmmOpenDensity(const double nearAtoms, const double nearAtomsAtStart, const MDLogger& mdlog)
{
    const double ratio = nearAtoms / nearAtomsAtStart;
    if (!fmmIsOther(ratio))
    {
        return false;
    }
    GMX_LOG(mdlog.warning)
            .asParagraph()
            .appendTextFormatted(
                    "WARNING: An atom now has %.0f atoms in the cells near it, %.2f times as many "
                    "as in the .tpr file, for which the parameters of the FMM were chosen. "
                    "Steps are slower than they need to be: make a new .tpr file from the present "
                    "coordinates to go on.",
                    nearAtoms,
                    ratio);
    return true;
}

bool logFmmCharges(const double squares, const double squaresAtStart, const MDLogger& mdlog)
{
    // Without any charge there are no errors, either
    if (squares == 0 || !fmmIsOther(squares / squaresAtStart))
    {
        return false;
    }
    GMX_LOG(mdlog.warning)
            .asParagraph()
            .appendTextFormatted(
                    "WARNING: The squares of charges now add up to %.4g e^2, and to %.4g e^2 at "
                    "the "
                    "lambda of the .tpr file, for which the parameters of the FMM were chosen. "
                    "Errors relative to the forces may be larger than fmm-accuracy: make a new "
                    ".tpr file that begins at this lambda to go on.",
                    squares,
                    squaresAtStart);
    return true;
}

void logFmmTimesOnGpu(const FmmGpuTimes& times, const MDLogger& mdlog)
{
    std::string table =
            "FMM: time of its stages on the GPU, measured at the first step one by one\n\n";
    const auto addLine = [&table](const char* name, double time)
    { table += formatString(" %-34s %12.4f ms\n", name, time); };
    addLine("Near field", times.near);
    addLine("Far field", times.far);
    addLine("Sort coordinates, output", times.sortAndOutput);
    addLine("All, near and far field overlapped", times.all);
    addLine("Assign atoms to cells", times.assign);
    GMX_LOG(mdlog.info).asParagraph().appendText(table);
}

void logFmmShares(const gmxfmm_info& info, const MDLogger& mdlog)
{
    GMX_LOG(mdlog.info)
            .asParagraph()
            .appendText("FMM: near field at the end:" + describeShares(info, info.shares)
                        + ", as steps were fastest of those tried between pair searches");
}

void logFmmTimesOnCpu(const gmxfmm_info& info, const MDLogger& mdlog)
{
    const double total = fmmNearTime(info) + fmmFarTime(info);
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

void logFmmErrorAtEnd(const FmmMeasuredError& error, const FmmPlan& plan, const MDLogger& mdlog)
{
    if (error.status != FmmMeasurementStatus::Measured)
    {
        GMX_LOG(mdlog.warning)
                .asParagraph()
                .appendTextFormatted(
                        "NOTE: The error of the FMM forces could not be measured at the end (%s).",
                        error.message.c_str());
        return;
    }
    GMX_LOG(mdlog.info).asParagraph().appendText("At the end of the run\n" + error.table);
    if (error.error > c_worthAWarning * plan.accuracy())
    {
        const bool   isChosen = plan.choice().asked > 0;
        const double smaller =
                std::max(fmmlibrary::accuracy.lowest, plan.accuracy() * plan.accuracy() / error.error);
        GMX_LOG(mdlog.warning)
                .asParagraph()
                .appendTextFormatted(
                        "WARNING: At the end of the run the relative RMS error of the FMM forces "
                        "is %.1e, while fmm-accuracy = %g. At the coordinates by which order and "
                        "cells were %s it was %.1e. ",
                        error.error,
                        plan.accuracy(),
                        isChosen ? "chosen" : "measured",
                        plan.measured().error)
                .appendText(
                        isChosen ? formatString(
                                "If the system has become another since, go on with a .tpr "
                                "file made from the last coordinates. If it has not, its errors "
                                "differ from place to place, as those of few charges do: use "
                                "fmm-accuracy = %.0e.",
                                smaller)
                                 : std::string("Leave order and cells automatic to go on, or use "
                                               "a larger fmm-order."));
    }
}

void logFmmChosenAnew(const int64_t step, const double before, const FmmPlan& plan, const MDLogger& mdlog)
{
    GMX_LOG(mdlog.info)
            .asParagraph()
            .appendTextFormatted(
                    "FMM, step %lld: order and cells no longer suit the atoms, with a relative RMS "
                    "force error of %.1e; they are chosen anew\n",
                    static_cast<long long>(step),
                    before)
            .appendText(describeFmm(plan));
}

void logFmmNotChosenAnew(const int64_t   step,
                         const double    error,
                         const double    accuracy,
                         const char*     why,
                         const MDLogger& mdlog)
{
    GMX_LOG(mdlog.warning)
            .asParagraph()
            .appendTextFormatted(
                    "NOTE: FMM, step %lld: the relative RMS force error is %.1e, while "
                    "fmm-accuracy = %g. Order and cells stay, as others could not be chosen: %s",
                    static_cast<long long>(step),
                    error,
                    accuracy,
                    why);
}

void logFmmRemeasurements(const FmmRemeasurements& done, const MDLogger& mdlog)
{
    if (done.numMeasured > 0)
    {
        GMX_LOG(mdlog.info)
                .asParagraph()
                .appendTextFormatted(
                        "FMM: errors were measured again %d time%s during the run, and order and "
                        "cells chosen anew %d time%s, in %.3g s",
                        done.numMeasured,
                        done.numMeasured == 1 ? "" : "s",
                        done.numChosen,
                        done.numChosen == 1 ? "" : "s",
                        done.seconds);
    }
}

} // namespace gmx
