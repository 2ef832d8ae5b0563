/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements the plan by which the gmxfmm library computes
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmplan.h"

#include <cstdlib>

#include <algorithm>
#include <string>
#include <vector>

#include "gromacs/topology/topology.h"
#include "gromacs/utility/exceptions.h"
#include "gromacs/utility/gmxassert.h"
#include "gromacs/utility/stringutil.h"

#include "fmmsystem.h"
#include "gmxfmmoptions.h"

namespace gmx
{

namespace
{

//! Returns a message of the library with "atom" and numbers from 1, as GROMACS has them, for "particle" and numbers from 0
std::string withAtomNumbers(std::string text)
{
    const std::string particle = "particle ";
    for (size_t at = text.find(particle); at != std::string::npos; at = text.find(particle, at + 1))
    {
        const size_t begin = at + particle.size();
        const size_t end   = std::min(text.find_first_not_of("0123456789", begin), text.size());
        if (end > begin)
        {
            const long long number = std::stoll(text.substr(begin, end - begin));
            text.replace(at, end - at, "atom " + std::to_string(number + 1));
        }
    }
    return text;
}

//! Throws the exception that fits \p status, unless that is success
void throwOnError(gmxfmm_status status, const char* message, bool isOnGpu)
{
    if (status == GMXFMM_OK)
    {
        return;
    }
    std::string text =
            "FMM: " + withAtomNumbers(message[0] != '\0' ? message : gmxfmm_status_text(status));
    if (isOnGpu && (status == GMXFMM_ERROR_UNSUPPORTED || status == GMXFMM_ERROR_MEMORY || status == GMXFMM_ERROR_DEVICE))
    {
        text += " (on the GPU; with mdrun -fmm cpu the CPU does it)";
    }
    switch (status)
    {
        case GMXFMM_ERROR_POSITION:
        case GMXFMM_ERROR_LEFT:
        case GMXFMM_ERROR_COINCIDENT: GMX_THROW(SimulationInstabilityError(text));
        case GMXFMM_ERROR_OPTION:
        case GMXFMM_ERROR_BOX:
        case GMXFMM_ERROR_CHARGE:
        case GMXFMM_ERROR_EXCLUSION:
        case GMXFMM_ERROR_UNSUPPORTED: GMX_THROW(InconsistentInputError(withFmmPage(text)));
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

//! Passes on along which box vectors there are images
void setLibraryPeriodicity(FmmPeriodicity periodicity, gmxfmm_options* options)
{
    if (periodicity != FmmPeriodicity::Box)
    {
        options->periodic[XX] = 1;
        options->periodic[YY] = 1;
    }
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

//! Returns a number in terms of the library; where the parameters have 0 or less, it chooses
int orAutomatic(int n)
{
    return n > 0 ? n : GMXFMM_AUTO;
}

/*! \brief Returns the number of layers of near cells in terms of the library
 *
 * One layer is the default, which leaves the number to the library where it chooses order and cells.
 */
int librarySeparation(const FmmParameters& parameters)
{
    const bool isLeft = parameters.separation == 1 && parameters.order == 0
                        && parameters.grid[XX] == 0 && parameters.treeDepth < 1;
    return isLeft ? GMXFMM_AUTO : orAutomatic(parameters.separation);
}

//! Returns the options of the library but for those of a device
gmxfmm_options libraryOptions(const FmmParameters& parameters, real epsfac, bool reproducible, int numThreads)
{
    gmxfmm_options options;
    gmxfmm_default_options(&options);
    options.accuracy = parameters.accuracy;
    options.order    = orAutomatic(parameters.order);
    for (int d = 0; d < DIM; d++)
    {
        options.grid[d] = orAutomatic(parameters.grid[d]);
    }
    options.depth      = orAutomatic(parameters.treeDepth);
    options.separation = librarySeparation(parameters);
    options.m2l        = libraryM2L(parameters.m2l);
    options.boundary   = libraryBoundary(parameters.boundary);
    setLibraryPeriodicity(parameters.periodicity, &options);
    options.precision    = GMX_DOUBLE ? GMXFMM_DOUBLE : GMXFMM_SINGLE;
    options.array_type   = options.precision;
    options.num_threads  = numThreads;
    options.reproducible = reproducible ? 1 : 0;
    options.prefactor    = epsfac;
    options.min_distance = std::max(parameters.minDistance, parameters.softCoreMinDistance);
    options.pairs_beside = 1; // Lennard-Jones kernels
    return options;
}

//! Takes what was chosen into the options of the library
void takeChoice(const FmmChoice& choice, gmxfmm_options* options)
{
    options->accuracy   = choice.accuracy;
    options->m2l        = static_cast<gmxfmm_m2l>(choice.m2l);
    options->order      = choice.order;
    options->depth      = choice.depth;
    options->separation = choice.separation;
    std::copy(choice.grid.begin(), choice.grid.end(), options->grid);
}

//! Returns whether a choice was made for this accuracy and has all that is given
bool isChoiceOf(const FmmChoice& choice, double accuracy, const gmxfmm_options& given)
{
    const auto isGiven = [](int asked, int chosen)
    { return asked == GMXFMM_AUTO || asked == chosen; };
    bool isSame = choice.asked == accuracy && isGiven(given.order, choice.order)
                  && isGiven(given.depth, choice.depth) && isGiven(given.separation, choice.separation)
                  && (given.m2l == GMXFMM_M2L_AUTO || given.m2l == choice.m2l);
    for (int d = 0; d < DIM; d++)
    {
        isSame = isSame && isGiven(given.grid[d], choice.grid[d]);
    }
    return isSame;
}

} // namespace

FmmBox fmmBox(const FmmPeriodicity periodicity, const matrix box)
{
    const bool isBox = periodicity == FmmPeriodicity::Box;
    return { { box[XX][XX],
               box[XX][YY],
               box[XX][ZZ],
               box[YY][XX],
               box[YY][YY],
               box[YY][ZZ],
               isBox ? box[ZZ][XX] : 0,
               isBox ? box[ZZ][YY] : 0,
               periodicity == FmmPeriodicity::Film ? 0 : box[ZZ][ZZ] } };
}

bool hasVolume(const double* box)
{
    return box != nullptr && box[8] != 0;
}

double fmmNearTime(const gmxfmm_info& info)
{
    return info.time_assign + info.time_near;
}

double fmmFarTime(const gmxfmm_info& info)
{
    return info.time_spectra + info.time_permute + info.time_p2m + info.time_m2m + info.time_m2l
           + info.time_l2l + info.time_l2p + info.time_output;
}

FmmPlan::FmmPlan(const FmmParameters& parameters,
                 const gmx_mtop_t&    mtop,
                 const matrix         box,
                 ArrayRef<const RVec> x,
                 real                 epsfac,
                 bool                 reproducible,
                 int                  numThreads,
                 ArrayRef<const int>  devices) :
    periodicity_(parameters.periodicity),
    accuracy_(parameters.accuracy),
    atomsMoveInCells_(parameters.atomsMoveInCells),
    startLambda_(parameters.startLambda),
    cacheFolder_(kernelCacheFolder()),
    options_(libraryOptions(parameters, epsfac, reproducible, numThreads))
{
    if (!devices.empty())
    {
        GMX_RELEASE_ASSERT(devices.ssize() <= GMXFMM_MAX_DEVICES, "The number has been checked");
        options_.device      = GMXFMM_CUDA;
        options_.num_devices = devices.ssize();
        std::copy(devices.begin(), devices.end(), options_.devices);
        options_.device_id = devices[0];
    }
    options_.cache_dir = cacheFolder_.empty() ? nullptr : cacheFolder_.c_str();
    if (!fmmPerturbedAtomsAreCharged(mtop))
    {
        options_.min_distance = parameters.minDistance; // No pair is softened
    }

    const FmmBox  givenBox   = fmmBox(periodicity_, box);
    const double* libraryBox = isOpen() ? nullptr : givenBox.data();
    if (parameters.isChosenByMainRank)
    {
        takeChoice(parameters.choice, &options_);
    }
    else if (parameters.measure)
    {
        measure(parameters, mtop, x, libraryBox);
    }
    const int numAtoms = mtop.natoms;
    create(numAtoms, libraryBox);

    // With an octree or an open boundary, order and size of cells are chosen at the first
    // assignment and kept; the charges do not matter for that.
    const std::vector<real> noCharges(numAtoms, 0);
    check(gmxfmm_set_charges(plan_.get(), numAtoms, noCharges.data()));
    check(gmxfmm_assign(plan_.get(), x.data()));
}

FmmPlan::FmmPlan(const FmmParameters&    parameters,
                 ArrayRef<const real>    charges,
                 const ListOfLists<int>& exclusions,
                 ArrayRef<const RVec>    x,
                 const FmmBox&           box,
                 real                    epsfac,
                 int                     numThreads) :
    periodicity_(parameters.periodicity),
    accuracy_(parameters.accuracy),
    atomsMoveInCells_(parameters.atomsMoveInCells),
    startLambda_(parameters.startLambda),
    options_(libraryOptions(parameters, epsfac, true, numThreads))
{
    options_.precision = GMXFMM_DOUBLE;
    create(charges.ssize(), isOpen() ? nullptr : box.data());
    setAtoms(charges, exclusions);
    check(gmxfmm_assign(plan_.get(), x.data())); // What is chosen at the first assignment is the same in each run
}

void FmmPlan::create(const int numAtoms, const double* box)
{
    std::array<char, 1024> message = { { '\0' } };
    gmxfmm_plan*           plan    = nullptr;
    const gmxfmm_status    status =
            gmxfmm_create(&plan, &options_, numAtoms, box, message.data(), message.size());
    plan_.reset(plan);
    throwOnError(status, message.data(), isOnGpu());
}

void FmmPlan::measure(const FmmParameters& parameters,
                      const gmx_mtop_t&    mtop,
                      ArrayRef<const RVec> x,
                      const double*        box)
{
    const bool isFixed = fmmParametersAreFixed(parameters);
    const bool isKept  = !isFixed && isChoiceOf(parameters.choice, parameters.accuracy, options_);
    const gmxfmm_options given = options_;
    if (isKept)
    {
        choice_ = parameters.choice;
        takeChoice(choice_, &options_);
    }
    measured_ = measureFmmError(mtop, x, box, startLambda_, !isFixed && !isKept, &options_);
    if (isKept && measured_.error > accuracy_)
    {
        // The system has become another: for the coordinates of this .tpr file something else is chosen
        FmmParameters anew = parameters;
        anew.choice        = FmmChoice();
        choice_            = FmmChoice();
        options_           = given;
        measure(anew, mtop, x, box);
        return;
    }
    measured_.message = withAtomNumbers(measured_.message);
    checkMeasured(isFixed, fmmCellsAreGiven(parameters));
    if (measured_.status == FmmMeasurementStatus::Measured)
    {
        measureLater(parameters, mtop, x, box, isFixed || isKept ? nullptr : &given);
    }
    if (!isFixed && !isKept && measured_.status == FmmMeasurementStatus::Measured)
    {
        choice_ = asked();
    }
}

FmmChoice FmmPlan::asked() const
{
    FmmChoice choice;
    choice.asked      = accuracy_;
    choice.accuracy   = options_.accuracy;
    choice.m2l        = options_.m2l;
    choice.order      = options_.order;
    choice.depth      = options_.depth;
    choice.separation = options_.separation;
    std::copy(options_.grid, options_.grid + DIM, choice.grid.begin());
    return choice;
}

void FmmPlan::measureLater(const FmmParameters&  parameters,
                           const gmx_mtop_t&     mtop,
                           ArrayRef<const RVec>  x,
                           const double*         box,
                           const gmxfmm_options* given)
{
    std::string tables;
    const auto  at = [&](double lambda, gmxfmm_options options)
    { return measureFmmError(mtop, x, box, lambda, false, &options); };
    const auto reaches = [&](const FmmMeasuredError& measured)
    {
        return measured.status == FmmMeasurementStatus::Measured
               && std::max(measured.error, measured.errorAnywhere) <= accuracy_;
    };
    const double allowed =
            std::max(fmmAllowedVirialError(box, mtop.natoms, accuracy_), measured_.errorVirial);
    lambdas_ = { startLambda_ };
    for (const double lambda : parameters.laterLambdas)
    {
        const double squares = fmmSumOfSquares(mtop, lambda);
        const bool   isOther = std::all_of(
                lambdas_.begin(),
                lambdas_.end(),
                [&](double known) { return fmmIsOther(squares / fmmSumOfSquares(mtop, known)); });
        if (squares == 0 || !isOther)
        {
            continue;
        }
        FmmMeasuredError later = at(lambda, options_);
        if (given != nullptr && !(reaches(later) && later.errorVirial <= allowed))
        {
            gmxfmm_options         options = *given;
            const FmmMeasuredError chosen  = measureFmmError(mtop, x, box, lambda, true, &options);
            const bool             servesAll =
                    reaches(chosen)
                    && std::all_of(lambdas_.begin(),
                                   lambdas_.end(),
                                   [&](double known) { return reaches(at(known, options)); });
            if (servesAll)
            {
                options_  = options;
                measured_ = at(startLambda_, options);
                later     = chosen;
            }
        }
        // Else the log tells when the run comes there
        if (reaches(later))
        {
            lambdas_.push_back(lambda);
        }
        tables += formatString("\nFMM: with the charges at lambda = %g\n\n", lambda) + later.table;
    }
    measured_.table += tables;
}

void FmmPlan::checkMeasured(const bool isFixed, const bool areCellsGiven) const
{
    const char* c_unmeasured =
            "To run without measuring, use fmm-measure = no, or mdrun -notunefmm with an existing "
            ".tpr file.";
    std::string message;
    if (measured_.status == FmmMeasurementStatus::NotComputable)
    {
        message = measured_.message;
    }
    // Parameters that are given are computed with, and the log tells what they reach
    else if (measured_.status == FmmMeasurementStatus::OutOfReach
             || (measured_.status == FmmMeasurementStatus::NotMeasured && !isFixed))
    {
        message = formatString(
                "fmm-accuracy = %g: %s. %s", accuracy_, measured_.message.c_str(), c_unmeasured);
    }
    // No larger errors may be asked for: these would be no forces
    else if (areCellsGiven && atomsMoveInCells_ && measured_.error <= fmmlibrary::accuracy.highest
             && !(measured_.errorMoved <= fmmlibrary::accuracy.highest))
    {
        message = formatString(
                "the cells are too small. The relative RMS error of the forces is %.1e just after "
                "atoms have been assigned to cells, and %.1e after 0.05 ps more. Use a smaller "
                "fmm-grid or fmm-tree-depth, or leave them automatic. %s",
                measured_.error,
                measured_.errorMoved,
                c_unmeasured);
    }
    if (!message.empty())
    {
        throwOnError(GMXFMM_ERROR_OPTION, message.c_str(), isOnGpu());
    }
}

void FmmPlan::check(gmxfmm_status status) const
{
    throwOnError(status, gmxfmm_message(plan_.get()), isOnGpu());
}

void FmmPlan::check(gmxfmm_status status, const std::string& message) const
{
    throwOnError(status, message.c_str(), isOnGpu());
}

gmxfmm_status FmmPlan::execute(const void* x, gmxfmm_output* output) const
{
    gmxfmm_status status = gmxfmm_execute(plan_.get(), x, output);
    if (status == GMXFMM_ERROR_LEFT)
    {
        check(gmxfmm_assign(plan_.get(), x));
        status = gmxfmm_execute(plan_.get(), x, output);
    }
    return status;
}

bool FmmPlan::checkStep(int status, double outside) const
{
    if (status != GMXFMM_ERROR_LEFT)
    {
        const bool isCoincident = status == GMXFMM_ERROR_COINCIDENT;
        check(static_cast<gmxfmm_status>(status),
              isCoincident ? "two atoms stand at one place (mdrun -fmm cpu names them)" : "");
        return false;
    }
    // Beyond it near cells do not hold all close pairs, see gmxfmm_execute
    const double most = 0.5 * info().separation;
    if (!(outside <= most))
    {
        GMX_THROW(SimulationInstabilityError(
                formatString("FMM: an atom is %.2g cells outside its cell, and %g are allowed. The "
                             "system is not stable, or nstlist is too large. Minimise the energy "
                             "before, or use a smaller dt or nstlist.",
                             outside,
                             most)));
    }
    return true;
}

gmxfmm_info FmmPlan::info() const
{
    gmxfmm_info info = {};
    info.size        = sizeof(info);
    check(gmxfmm_get_info(plan_.get(), &info));
    return info;
}

FmmMeasuredError FmmPlan::measureAt(const gmx_mtop_t&    mtop,
                                    ArrayRef<const RVec> x,
                                    const matrix         box,
                                    const double         lambda) const
{
    const gmxfmm_info inUse   = info();
    gmxfmm_options    options = options_;
    options.accuracy          = accuracy_;
    options.m2l               = inUse.m2l;
    options.order             = inUse.order;
    options.separation        = inUse.separation;
    options.depth             = orAutomatic(inUse.depth);
    for (int d = 0; d < DIM && !isOpen(); d++)
    {
        options.grid[d] = inUse.grid[d];
    }
    const FmmBox givenBox = fmmBox(periodicity_, box);
    // Cells that follow the atoms have a size that no options have
    const bool       doCellsFollow = isOpen() || periodicity_ == FmmPeriodicity::Film;
    FmmMeasuredError measured      = measureFmmError(mtop,
                                                x,
                                                isOpen() ? nullptr : givenBox.data(),
                                                lambda,
                                                false,
                                                &options,
                                                doCellsFollow ? plan_.get() : nullptr);
    measured.message               = withAtomNumbers(measured.message);
    return measured;
}

double FmmPlan::timeOfStep(const gmx_mtop_t& mtop, ArrayRef<const RVec> x, const void* xOnDevice, void* stream)
{
    constexpr int c_numWarmUp = 2, c_numRepeats = 20;
    double        seconds = 0;
    setAtoms(fmmCharges(mtop, startLambda_), fmmExclusions(mtop));
    check(gmxfmm_assign(plan_.get(), x.data()));
    check(gmxfmm_time_stages(plan_.get(), xOnDevice, 0, c_numWarmUp, stream, &seconds));
    check(gmxfmm_time_stages(plan_.get(), xOnDevice, 0, c_numRepeats, stream, &seconds));
    return seconds;
}

gmxfmm_ranks_info FmmPlan::ranksInfo() const
{
    gmxfmm_ranks_info info;
    check(gmxfmm_get_ranks_info(plan_.get(), &info));
    return info;
}

void FmmPlan::divide(const gmxfmm_comm& comm, const int numAtoms, const FmmBox& box)
{
    std::array<char, 1024> message = { { '\0' } };
    gmxfmm_plan*           plan    = nullptr;
    gmxfmm_options         options = options_;
    options.m2l                    = GMXFMM_M2L_FFT;
    const gmxfmm_status status     = gmxfmm_create_parallel(
            &plan, &options, &comm, numAtoms / comm.size, box.data(), message.data(), message.size());
    plan_.reset(plan);
    throwOnError(status, message.data(), isOnGpu());
}

void FmmPlan::setHomeAtoms(ArrayRef<const int> home, const FmmAtomKinds& kinds)
{
    // By themselves: each load waits for memory, beside the others
    homeKinds_.resize(home.size());
    std::transform(home.begin(),
                   home.end(),
                   homeKinds_.begin(),
                   [&kinds](const int atom) { return kinds.kind(atom); });
    FmmExclusionLists& lists = homeExclusions_;
    homeCharges_.resize(home.size());
    lists.start.resize(home.size() + 1);
    lists.start[0] = 0;
    int num        = 0;
    for (Index k = 0; k < home.ssize(); k++)
    {
        const ArrayRef<const int> excluded = kinds.excluded(homeKinds_[k]);
        if (num + excluded.ssize() > gmx::ssize(lists.list))
        {
            lists.list.resize(2 * (num + excluded.size()));
        }
        for (const int other : excluded)
        {
            lists.list[num++] = home[k] + other;
        }
        lists.start[k + 1] = num;
        homeCharges_[k]    = kinds.charge(homeKinds_[k]);
    }
    check(gmxfmm_set_charges(plan_.get(), homeCharges_.size(), homeCharges_.data()));
    check(gmxfmm_set_ids(plan_.get(), home.data()));
    check(gmxfmm_set_exclusions(plan_.get(), lists.start.data(), lists.list.data()));
}

void FmmPlan::setAtoms(ArrayRef<const real> charges, const ListOfLists<int>& exclusions)
{
    const FmmExclusionLists lists = fmmExclusionLists(exclusions, charges.ssize());
    check(gmxfmm_set_charges(plan_.get(), charges.ssize(), charges.data()));
    check(gmxfmm_set_exclusions(plan_.get(), lists.start.data(), lists.list.data()));
}

} // namespace gmx
