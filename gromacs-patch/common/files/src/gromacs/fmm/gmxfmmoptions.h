/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares the mdp options of the fast multipole method (coulombtype = FMM)
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_GMXFMMOPTIONS_H
#define GMX_FMM_GMXFMMOPTIONS_H

#include <array>
#include <string>
#include <vector>

#include "gromacs/mdtypes/imdpoptionprovider.h"

#include "fmmchoice.h"
#include "fmmversion.h"

struct t_inputrec;

namespace gmx
{

class KeyValueTreeObject;

/*! \brief Time in ps for which atoms may stay in their cells without much loss of accuracy
 *
 * In water at 300 K the RMS force error grows by half in 0.04 ps and doubles
 * in 0.08 ps. At constant energy each assignment heats a little, and the more
 * the longer atoms have been in their cells. On a CPU an assignment takes less
 * than half the time of a step.
 */
constexpr double c_fmmMaxTimeInCellsOnCpu = 0.0201, c_fmmMaxTimeInCellsOnGpu = 0.0501;
/*! \brief Steps that still have the old cells on a GPU when an assignment between pair searches has begun
 *
 * In small systems it takes longer than a step, which would wait for it.
 */
constexpr int c_fmmStepsOfAssignmentOnGpu = 4;

//! Ways through the far field
enum class FmmM2L : int
{
    Auto,
    Fft,
    Rotation,
    Symmetric,
    Dynamic,
    Naive,
    Count
};

//! How Lennard-Jones interactions are computed
enum class FmmLJ : int
{
    Full,
    Split,
    Count
};

//! Along which box vectors there are periodic images
enum class FmmPeriodicity : int
{
    //! All three, or none where the boundary is open
    Box,
    //! The two in the xy plane, between two walls that bound the system along z
    SlabBetweenWalls,
    //! The two in the xy plane, with one wall or none: any extent along z, and no volume
    Film
};

//! Surroundings of the infinite periodic system, or that there is no such thing
enum class FmmBoundary : int
{
    Tinfoil,
    Vacuum,
    Open,
    Count
};

/*! \brief Ranges, names and comments of the library's options, by their names there
 *
 * From the library's source, so that they are known in builds without it, too.
 */
namespace fmmlibrary
{
//! An option with a number, or three
struct Range
{
    double      lowest;
    double      highest;
    const char* help;
};
//! An option with a word: all of them in the order of the enumeration, | in between
struct Choice
{
    const char* names;
    const char* help;
};
#define REAL(name, standard, lowest, highest, help)              \
    constexpr Range  name           = { lowest, highest, help }; \
    constexpr double name##_default = standard;
#define AUTOMATIC(name, text, lowest, highest, help) \
    constexpr Range name = { lowest, highest, help };
#define INTEGER(name, standard, lowest, highest, help) \
    constexpr Range name = { lowest, highest, help };
#define GRID(name, text, lowest, highest, help) constexpr Range name = { lowest, highest, help };
#define CHOICE(name, standard, text, last, names, help) constexpr Choice name = { names, help };
#define IN_SINGLE(name, highest) constexpr int name##_single = highest;
#include "gmxfmmoptions.def"
} // namespace fmmlibrary

//! GPUs of this process that may share a step
struct FmmDevices
{
    //! Their numbers, in any order; the one that mdrun computes on is the first to be used
    std::vector<int> available;
    //! How many of them to use, 0: all or one, whichever is faster
    int num = 1;
};

//! Parameters as the user asks for them
struct FmmParameters
{
    //! Relative RMS force error that chooses what is left automatic
    double accuracy = fmmlibrary::accuracy_default;
    //! Expansion order, 0: automatic
    int order = 0;
    //! Cells along each box vector, all 0: automatic
    std::array<int, 3> grid = { { 0, 0, 0 } };
    //! Octree depth, -1: automatic
    int treeDepth = -1;
    //! Layers of near cells, 0: automatic
    int separation = 1;
    //! Way through the far field
    FmmM2L m2l = FmmM2L::Auto;
    //! Surroundings
    FmmBoundary boundary = FmmBoundary::Tinfoil;
    //! Along which box vectors there are images; not an option, but what pbc and nwall say
    FmmPeriodicity periodicity = FmmPeriodicity::Box;
    //! Lennard-Jones interactions of all pairs of atoms, or of groups beyond a radius
    FmmLJ lj = FmmLJ::Full;
    //! That radius, 0: automatic
    double ljRadius = 0;
    //! Whether mdrun measures errors at the start, and chooses by them what is automatic
    bool measure = true;
    /*! \brief Steps between pair searches after which atoms are assigned to cells again, 0: never
     *
     * Not options, but what c_fmmMaxTimeInCellsOnCpu and OnGpu mean for nstlist and the time step.
     */
    int maxStepsInCellsOnCpu = 0, maxStepsInCellsOnGpu = 0;
    //! Whether atoms move between their assignments to cells, as in dynamics; not an option
    bool atomsMoveInCells = false;
    //! Whether molecules are bound to their periodic images, so that none is ever whole; not an option
    bool havePeriodicMolecules = false;
    //! Lambda of Coulomb interactions at the start; not an option
    double startLambda = 0;
    //! Values that it takes later in the run, if it changes; not an option
    std::vector<double> laterLambdas;
    //! Distance below which pairs have the potential of this distance and no force, nm; 0: none; not an option
    double minDistance = 0;
    //! The same where perturbed atoms are charged and soft-core interactions replace those of nearer pairs
    double softCoreMinDistance = 0;
    //! What an earlier part of this run has chosen by times, if it has; not an option
    FmmChoice choice;
    //! Whether that is what another rank of this run has chosen, so that there is nothing to choose; not an option
    bool isChosenByMainRank = false;
    //! GPUs, when the FMM runs on a GPU; not an option
    FmmDevices devices;
};

//! Returns whether cells are given
bool fmmCellsAreGiven(const FmmParameters& parameters);

//! Returns whether order and cells are given, so that there is nothing to choose
bool fmmParametersAreFixed(const FmmParameters& parameters);

//! Returns whether one of order, cells and layers of near cells is given, so that the others have to make up for it
bool fmmParametersAreLimited(const FmmParameters& parameters);

//! Returns whether a method has cells on several levels
bool usesOctree(FmmM2L method);

//! Returns the message of an error, and which page explains it
std::string withFmmPage(const std::string& message);

/*! \libinternal \brief
 * The mdp options of the fast multipole method
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
class FmmOptions final : public IMdpOptionProvider
{
public:
    //! Top-level section of the options in the .tpr file, as in later versions of GROMACS
    static constexpr char c_scope[] = "fast-multipole-method";

    void initMdpTransform(IKeyValueTreeTransformRules* rules) override;
    void initMdpOptions(IOptionsContainerWithSections* options) override;
    void buildMdpOutput(KeyValueTreeObjectBuilder* builder) const override;

    /*! \brief
     * What these three do, without a section of its own, its headline and the choice of a backend
     *
     * For versions of GROMACS that have a section for several backends.
     */
    void        addOptions(IOptionsContainerWithSections* section);
    static void addTransformRules(IKeyValueTreeTransformRules* rules);
    void        addOutput(KeyValueTreeObjectBuilder* builder) const;
    //! Returns whether the options are in this section of stored options
    static bool areIn(const KeyValueTreeObject& section);
    //! Sets the backend where it was not read with the other options
    void setBackend(const std::string& name) { backend_ = name; }

    //! Returns one message for each option with a value that is out of range or not offered
    std::vector<std::string> errors() const;

    //! Returns the parameters, only valid when there are no errors
    FmmParameters parameters() const;

private:
    //! Numbers as set by the options; the other members of it are stored as the strings below
    FmmParameters values_;
    std::string   grid_     = "0 0 0";
    std::string   m2l_      = "auto";
    std::string   boundary_ = "tinfoil";
    std::string   lj_       = "full";
    std::string   backend_  = "gmxfmm";
};

/*! \brief Returns the parameters stored in an input record, which should have passed grompp
 *
 * The boundary is open with pbc = no, whatever the option says.
 */
FmmParameters fmmParameters(const t_inputrec& inputrec);

//! Returns whether perturbed Coulomb interactions, if there are such, are soft-core ones
bool fmmSoftensCoulomb(const t_inputrec& inputrec);

//! Returns whether the dipole of the system is needed, which broken molecules do not give
bool fmmNeedsWholeMolecules(const t_inputrec& inputrec);

} // namespace gmx

#endif
