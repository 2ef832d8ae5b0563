/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements the mdp options of the fast multipole method
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "gmxfmmoptions.h"

#include <cmath>

#include <algorithm>
#include <optional>

#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/mdtypes/interaction_const.h"
#include "gromacs/options/basicoptions.h"
#include "gromacs/options/optionsection.h"
#include "gromacs/pbcutil/pbc.h"
#include "gromacs/utility/gmxassert.h"
#include "gromacs/utility/keyvaluetree.h"
#include "gromacs/utility/keyvaluetreebuilder.h"
#include "gromacs/utility/keyvaluetreetransform.h"
#include "gromacs/utility/strconvert.h"
#include "gromacs/utility/stringutil.h"

#include "fmmslab.h"
#include "fmmsoftcore.h"
#include "fmmversion.h"

namespace gmx
{

namespace
{

//! Section of the options; mdp keys are this, a dash and the tag
constexpr char c_section[] = "fmm";

constexpr char c_accuracyTag[]   = "accuracy";
constexpr char c_orderTag[]      = "order";
constexpr char c_gridTag[]       = "grid";
constexpr char c_treeDepthTag[]  = "tree-depth";
constexpr char c_separationTag[] = "separation";
constexpr char c_m2lTag[]        = "m2l";
constexpr char c_boundaryTag[]   = "boundary";
constexpr char c_measureTag[]    = "measure";
constexpr char c_ljTag[]         = "lj";
constexpr char c_ljRadiusTag[]   = "lj-radius";
constexpr char c_backendTag[]    = "backend";

//! Beyond this, powers in the expansions leave the range of the floating-point type
constexpr int c_maxOrder =
        GMX_DOUBLE ? static_cast<int>(fmmlibrary::order.highest) : fmmlibrary::order_single;

//! Returns the mdp key of an option
std::string mdpKey(const char* tag)
{
    return std::string(c_section) + "-" + tag;
}

//! Declares how the value of one mdp key gets into the section
template<typename Type, typename Transform>
void addRule(IKeyValueTreeTransformRules* rules, const char* tag, Transform transform)
{
    rules->addRule()
            .from<std::string>("/" + mdpKey(tag))
            .to<Type>(std::string("/") + c_section + "/" + tag)
            .transformWith(transform);
}

//! Writes one option with a line of comment
template<typename Type>
void writeOption(KeyValueTreeObjectBuilder* builder, const char* tag, const std::string& comment, const Type& value)
{
    builder->addValue<std::string>("comment-" + mdpKey(tag), "; " + comment);
    builder->addValue<Type>(mdpKey(tag), value);
}

//! Returns the enumerator called \p name
template<typename Enum>
std::optional<Enum> findName(const fmmlibrary::Choice& choice, const std::string& name)
{
    const std::vector<std::string> names = splitDelimitedString(choice.names, '|');
    GMX_RELEASE_ASSERT(names.size() == static_cast<size_t>(Enum::Count),
                       "The library has the same choices");
    for (size_t i = 0; i < names.size(); i++)
    {
        if (equalCaseInsensitive(name, names[i]))
        {
            return static_cast<Enum>(i);
        }
    }
    return std::nullopt;
}

//! How Lennard-Jones interactions are computed
constexpr double             c_leastLJRadius = 0.4; // nm, hydrogen bonds are within
constexpr fmmlibrary::Choice c_ljChoice      = { "full|split", "" };

//! Returns the numbers in \p grid when it has exactly three
std::optional<std::array<int, 3>> parseGrid(const std::string& grid)
{
    try
    {
        return parsedArrayFromInputString<int, 3>(grid);
    }
    catch (const InvalidInputError&)
    {
        return std::nullopt;
    }
}

//! Returns all names, separated by commas
std::string allNames(const fmmlibrary::Choice& choice)
{
    return replaceAll(choice.names, "|", ", ");
}

//! Returns the range of an option in words, and what else is allowed
std::string inRange(const fmmlibrary::Range& range, const std::string& orElse)
{
    return formatString("between %g and %g", range.lowest, range.highest) + orElse;
}

//! Returns whether a number leaves the choice to the library
bool isAutomatic(const int n)
{
    return n == 0;
}

//! Returns whether a number is in the range, which NaN is not
bool isIn(const double value, const fmmlibrary::Range& range)
{
    return value >= range.lowest && value <= range.highest;
}

//! Returns the message for a value that is not allowed
std::string notAllowed(const char* tag, const std::string& value, const std::string& allowed)
{
    return formatString(
            "%s = %s is not allowed; it has to be %s", mdpKey(tag).c_str(), value.c_str(), allowed.c_str());
}

} // namespace

bool fmmCellsAreGiven(const FmmParameters& parameters)
{
    return parameters.grid[XX] > 0 || parameters.treeDepth > 0;
}

bool fmmParametersAreFixed(const FmmParameters& parameters)
{
    return parameters.order > 0 && fmmCellsAreGiven(parameters);
}

bool fmmParametersAreLimited(const FmmParameters& parameters)
{
    return parameters.order > 0 || fmmCellsAreGiven(parameters) || parameters.separation > 1;
}

std::string withFmmPage(const std::string& message)
{
    return message + (endsWith(message, ".") ? " " : ". ") + "See docs/refused.md of gmx-fmm.";
}

bool usesOctree(const FmmM2L method)
{
    return method != FmmM2L::Auto && method != FmmM2L::Fft;
}

void FmmOptions::initMdpTransform(IKeyValueTreeTransformRules* rules)
{
    addTransformRules(rules);
    addRule<std::string>(rules, c_backendTag, [](std::string s) { return s; });
}

void FmmOptions::addTransformRules(IKeyValueTreeTransformRules* rules)
{
    const auto& identity = [](std::string s) { return s; };
    addRule<double>(rules, c_accuracyTag, &fromStdString<double>);
    addRule<int>(rules, c_orderTag, &fromStdString<int>);
    addRule<std::string>(rules, c_gridTag, identity);
    addRule<int>(rules, c_treeDepthTag, &fromStdString<int>);
    addRule<int>(rules, c_separationTag, &fromStdString<int>);
    addRule<std::string>(rules, c_m2lTag, identity);
    addRule<std::string>(rules, c_boundaryTag, identity);
    addRule<bool>(rules, c_measureTag, &fromStdString<bool>);
    addRule<std::string>(rules, c_ljTag, identity);
    addRule<double>(rules, c_ljRadiusTag, &fromStdString<double>);
}

void FmmOptions::initMdpOptions(IOptionsContainerWithSections* options)
{
    auto section = options->addSection(OptionSection(c_section));
    addOptions(&section);
    section.addOption(StringOption(c_backendTag).store(&backend_));
}

void FmmOptions::addOptions(IOptionsContainerWithSections* section)
{
    section->addOption(DoubleOption(c_accuracyTag).store(&values_.accuracy));
    section->addOption(IntegerOption(c_orderTag).store(&values_.order));
    section->addOption(StringOption(c_gridTag).store(&grid_));
    section->addOption(IntegerOption(c_treeDepthTag).store(&values_.treeDepth));
    section->addOption(IntegerOption(c_separationTag).store(&values_.separation));
    section->addOption(StringOption(c_m2lTag).store(&m2l_));
    section->addOption(StringOption(c_boundaryTag).store(&boundary_));
    section->addOption(BooleanOption(c_measureTag).store(&values_.measure));
    section->addOption(StringOption(c_ljTag).store(&lj_));
    section->addOption(DoubleOption(c_ljRadiusTag).store(&values_.ljRadius));
}

bool FmmOptions::areIn(const KeyValueTreeObject& section)
{
    return section.keyExists(c_accuracyTag);
}

void FmmOptions::buildMdpOutput(KeyValueTreeObjectBuilder* builder) const
{
    builder->addValue<std::string>("comment-fmm-empty-line", "");
    builder->addValue<std::string>("comment-fmm-module",
                                   "; Fast multipole method (coulombtype = FMM)");
    addOutput(builder);
    writeOption(builder, c_backendTag, "Library that computes it: gmxfmm", backend_);
}

void FmmOptions::addOutput(KeyValueTreeObjectBuilder* builder) const
{
    const auto write = [builder](const char* tag, const std::string& help, const auto& value)
    { writeOption(builder, tag, help, value); };
    write(c_accuracyTag, fmmlibrary::accuracy.help, values_.accuracy);
    write(c_orderTag, fmmlibrary::order.help + std::string("; 0: automatic"), values_.order);
    write(c_gridTag, fmmlibrary::grid.help + std::string("; 0 0 0: automatic"), grid_);
    write(c_treeDepthTag, fmmlibrary::depth.help + std::string("; -1: automatic"), values_.treeDepth);
    write(c_separationTag, fmmlibrary::separation.help + std::string("; 0: automatic"), values_.separation);
    write(c_m2lTag, fmmlibrary::m2l.help + (": " + allNames(fmmlibrary::m2l)), m2l_);
    write(c_boundaryTag,
          fmmlibrary::boundary.help + (": " + allNames(fmmlibrary::boundary)) + " (with pbc = no)",
          boundary_);
    write(c_measureTag,
          "measure errors at the start of mdrun, and choose by them what is automatic",
          std::string(values_.measure ? "yes" : "no"));
    write(c_ljTag,
          "Lennard-Jones interactions of all pairs of atoms, or beyond a radius of groups at their "
          "centres: "
                  + allNames(c_ljChoice),
          lj_);
    write(c_ljRadiusTag, "that radius (nm); 0: automatic", values_.ljRadius);
}

std::vector<std::string> FmmOptions::errors() const
{
    std::vector<std::string> messages;
    const auto               require = [&messages](bool isAllowed, const std::string& message)
    {
        if (!isAllowed)
        {
            messages.push_back(message);
        }
    };

    require(isIn(values_.accuracy, fmmlibrary::accuracy),
            notAllowed(c_accuracyTag,
                       formatString("%g", values_.accuracy),
                       inRange(fmmlibrary::accuracy, "")));
    require(isAutomatic(values_.order) || (values_.order >= 1 && values_.order <= c_maxOrder),
            notAllowed(c_orderTag,
                       toString(values_.order),
                       formatString("between 1 and %d, or 0 for automatic", c_maxOrder)));
    const auto grid = parseGrid(grid_);
    require(grid.has_value()
                    && (std::all_of(grid->begin(),
                                    grid->end(),
                                    [](int n) { return isIn(n, fmmlibrary::grid); })
                        || std::all_of(grid->begin(), grid->end(), &isAutomatic)),
            notAllowed(c_gridTag,
                       grid_,
                       "three numbers of cells, each "
                               + inRange(fmmlibrary::grid, ", or 0 0 0 for automatic")));
    require(values_.treeDepth == -1 || isIn(values_.treeDepth, fmmlibrary::depth),
            notAllowed(c_treeDepthTag,
                       toString(values_.treeDepth),
                       inRange(fmmlibrary::depth, ", or -1 for automatic")));
    require(isAutomatic(values_.separation) || isIn(values_.separation, fmmlibrary::separation),
            notAllowed(c_separationTag,
                       toString(values_.separation),
                       inRange(fmmlibrary::separation, ", or 0 for automatic")));
    const auto m2l = findName<FmmM2L>(fmmlibrary::m2l, m2l_);
    require(m2l.has_value(), notAllowed(c_m2lTag, m2l_, "one of " + allNames(fmmlibrary::m2l)));
    require(findName<FmmBoundary>(fmmlibrary::boundary, boundary_).has_value(),
            notAllowed(c_boundaryTag, boundary_, "one of " + allNames(fmmlibrary::boundary)));
    require(findName<FmmLJ>(c_ljChoice, lj_).has_value(),
            notAllowed(c_ljTag, lj_, "one of " + allNames(c_ljChoice)));
    require(values_.ljRadius == 0 || values_.ljRadius >= c_leastLJRadius,
            notAllowed(c_ljRadiusTag,
                       formatString("%g", values_.ljRadius),
                       formatString("%g at least, or 0 for automatic", c_leastLJRadius)));
    require(values_.ljRadius < c_leastLJRadius || equalCaseInsensitive(lj_, "split"),
            formatString(
                    "fmm-lj-radius = %g is the radius of the pair list with fmm-lj = split; use "
                    "that, or leave it at 0",
                    values_.ljRadius));
    require(equalCaseInsensitive(backend_, "gmxfmm"), notAllowed(c_backendTag, backend_, "gmxfmm"));

    const FmmM2L method = m2l.value_or(FmmM2L::Auto);
    require(values_.treeDepth < 1 || usesOctree(method),
            formatString("fmm-tree-depth = %d belongs to the methods with an octree; use fmm-m2l = "
                         "rotation, symmetric or naive, or leave it at -1",
                         values_.treeDepth));
    const int parts = 1 << std::clamp(values_.treeDepth, 1, static_cast<int>(fmmlibrary::depth.highest));
    require(!grid.has_value() || !usesOctree(method)
                    || std::all_of(
                            grid->begin(), grid->end(), [parts](int n) { return n % parts == 0; }),
            formatString(
                    "fmm-grid = %s: with fmm-m2l = %s it counts the leaves of the octree, so it "
                    "must be three multiples of %d (2 to the power of fmm-tree-depth), or 0 0 0",
                    grid_.c_str(),
                    m2l_.c_str(),
                    parts));
    return messages;
}

FmmParameters FmmOptions::parameters() const
{
    FmmParameters parameters = values_;
    parameters.grid          = parseGrid(grid_).value();
    parameters.m2l           = findName<FmmM2L>(fmmlibrary::m2l, m2l_).value();
    parameters.boundary      = findName<FmmBoundary>(fmmlibrary::boundary, boundary_).value();
    parameters.lj            = findName<FmmLJ>(c_ljChoice, lj_).value();
    return parameters;
}

/*! \brief Returns steps in which atoms stay in their cells for that time at most: equal parts of nstlist
 *
 * \param[in] inputrec  Input record
 * \param[in] maxTime   The time, ps
 * \param[in] latency   Steps after an assignment between pair searches that still have the old cells
 */
static int maxStepsInCells(const t_inputrec& inputrec, double maxTime, int latency)
{
    if (!EI_DYNAMICS(inputrec.eI) || inputrec.delta_t <= 0)
    {
        return 0;
    }
    // At most a million, so that any time step leaves it in the range of int
    const int most  = static_cast<int>(std::clamp(maxTime / inputrec.delta_t, 1.0, 1e6));
    const int steps = std::max(most - latency, 1);
    if (inputrec.nstlist <= 0)
    {
        return steps; // No other pair search than the first
    }
    const int numParts = (inputrec.nstlist + steps - 1) / steps;
    return inputrec.nstlist <= most ? 0 : (inputrec.nstlist + numParts - 1) / numParts;
}

bool fmmSoftensCoulomb(const t_inputrec& inputrec)
{
    return inputrec.efep != FreeEnergyPerturbationType::No
           && softensCoulomb(interaction_const_t::SoftCoreParameters(*inputrec.fepvals));
}

//! Returns values that lambda of Coulomb interactions takes after that of the start, as many as tell how charges change
static std::vector<double> laterLambdas(const t_inputrec& inputrec)
{
    if (inputrec.efep == FreeEnergyPerturbationType::No)
    {
        return {};
    }
    const t_lambda& fep = *inputrec.fepvals;
    if (fep.delta_lambda == 0 && inputrec.efep != FreeEnergyPerturbationType::Expanded && !inputrec.bDoAwh)
    {
        return {};
    }
    std::vector<double> states = fep.all_lambda[FreeEnergyPerturbationCouplingType::Coul];
    if (states.empty())
    {
        constexpr int c_numParts = 10;
        const double  start      = startLambdaOfCoulomb(inputrec);
        // A run without an end comes as far as lambda can
        const double change = inputrec.nsteps >= 0 ? inputrec.nsteps * fep.delta_lambda
                                                   : std::copysign(1.0, fep.delta_lambda);
        for (int i = 1; i <= c_numParts; i++)
        {
            states.push_back(std::clamp(start + change * i / c_numParts, 0.0, 1.0));
        }
    }
    return states;
}

/*! \brief Atoms that are nearer count as being so far apart in minimisations, nm
 *
 * GROMACS's pair kernels in single precision have it for Lennard-Jones interactions
 * (c_nbnxnMinDistanceSquared), which move atoms apart that stand at one place.
 */
static constexpr double c_leastDistance = 6.18061e-4;

FmmParameters fmmParameters(const t_inputrec& inputrec)
{
    FmmParameters parameters        = fmmOptions(inputrec).parameters();
    parameters.maxStepsInCellsOnCpu = maxStepsInCells(inputrec, c_fmmMaxTimeInCellsOnCpu, 0);
    parameters.maxStepsInCellsOnGpu =
            maxStepsInCells(inputrec, c_fmmMaxTimeInCellsOnGpu, c_fmmStepsOfAssignmentOnGpu);
    parameters.atomsMoveInCells      = EI_DYNAMICS(inputrec.eI) && inputrec.nstlist != 1;
    parameters.havePeriodicMolecules = inputrec.bPeriodicMols;
    parameters.minDistance           = EI_ENERGY_MINIMIZATION(inputrec.eI) ? c_leastDistance : 0;
    parameters.softCoreMinDistance   = fmmSoftensCoulomb(inputrec) ? c_fmmSoftCoreMinDistance : 0;
    parameters.startLambda           = startLambdaOfCoulomb(inputrec);
    parameters.laterLambdas          = laterLambdas(inputrec);
    parameters.periodicity           = fmmPeriodicity(inputrec);
    if (inputrec.pbcType == PbcType::No)
    {
        parameters.boundary = FmmBoundary::Open;
    }
    else if (parameters.m2l == FmmM2L::Auto && boxMayTilt(inputrec))
    {
        parameters.m2l = FmmM2L::Fft; // The others need a rectangular box, also later
    }
    return parameters;
}

bool fmmNeedsWholeMolecules(const t_inputrec& inputrec)
{
    return inputrec.coulombtype == CoulombInteractionType::Fmm
           && fmmParameters(inputrec).boundary == FmmBoundary::Vacuum;
}

} // namespace gmx
