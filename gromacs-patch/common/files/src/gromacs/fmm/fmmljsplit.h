/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares Lennard-Jones in two pair lists, a long one without light atoms and a short one
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMLJSPLIT_H
#define GMX_FMM_FMMLJSPLIT_H

#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gromacs/topology/forcefieldparameters.h"
#include "gromacs/utility/arrayref.h"
#include "gromacs/utility/real.h"

#include "fmmversion.h"

struct gmx_mtop_t;
struct interaction_const_t;

namespace gmx
{

class KeyValueTreeObjectBuilder;

/*! \brief Constants by which a force switch changes a potential r^-p, of which the force is p (r^-(p+1) + c2 t^2 + c3 t^3)
 *
 * t is the distance beyond the start of the switch, \p shift makes the potential zero at the
 * cut-off: GROMACS reference manual, "Modified non-bonded interactions".
 */
struct FmmForceSwitch
{
    FmmForceSwitch(double p, double start, double cutoff);
    double c2, c3, shift;
};

//! What grompp settles and the .tpr file stores
struct FmmLJSplitSettings
{
    //! Range of the light atoms, of the short list
    double radius = 0;
    //! Atom types that are light where such an atom is bound to one heavy atom
    std::vector<int> lightTypes;
    //! Whether light atoms have Lennard-Jones interactions with one another
    bool havePairsOfLightAtoms = false;

    //! Stores the settings
    void store(KeyValueTreeObjectBuilder* builder) const;
    //! Returns the settings of an input record, none if all pairs are in one list
    static std::optional<FmmLJSplitSettings> stored(const t_inputrec& inputrec);
};

/*! \libinternal \brief
 * Lennard-Jones interactions in two pair lists
 *
 * Where the FMM computes all Coulomb interactions, pair lists serve Lennard-
 * Jones alone. Hydrogens that have a little of it would put all atoms on the
 * long list. Here such light atoms interact by themselves at short range only;
 * beyond it the heavy atom that they are bound to has their dispersion:
 *
 * - the long list has the pairs of heavy atoms up to rvdw, with their own
 *   repulsion and the sum of c6 over all pairs of {a, light atoms of a} and
 *   {b, light atoms of b};
 * - the short list has the pairs with a light atom up to a smaller radius, and
 *   those of heavy atoms with minus what was added to their c6, all of it
 *   switched to zero, so that beyond that radius the sums remain.
 *
 * The idea is that of Relative Resolution: A. Chaimovich, C. Peter, K. Kremer,
 * J. Chem. Phys. 143, 243107 (2015).
 *
 * Atoms have three pair-search grids: heavy ones without light atoms, heavy
 * ones with some, light ones. Clusters of pairs then have atoms of one kind.
 * With domains each zone has three such grids.
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
class FmmLJSplit
{
public:
    //! Local pair-search grids
    enum Grid : int
    {
        Heavy,          //!< Heavy atoms without light ones
        HeavyWithLight, //!< Heavy atoms with light ones
        Light,          //!< Light atoms, and those that are on no grid
        c_numGrids
    };
    //! Range of the switch of the short list, nm
    static constexpr real c_switchRange = 0.1;
    //! The largest number of light atoms of a heavy one. Where there are more, all of them are heavy.
    static constexpr int c_maxNumLight = 3;

    FmmLJSplit(const FmmLJSplitSettings& settings, const t_inputrec& inputrec, const gmx_mtop_t& mtop);
    ~FmmLJSplit();

    //! Returns the split stored in an input record, nullptr if there is none
    static std::unique_ptr<FmmLJSplit> make(const t_inputrec& inputrec, const gmx_mtop_t& mtop);

    //! Throws NotImplementedError where there are no kernels for two lists, or none that were tried
    static void checkResources(bool useGpu, bool emulateGpu);

    /*! \brief Throws InconsistentInputError where the halo of domains, which is as wide as the long list, is too narrow for the short one
     *
     * \param[in] shortRadius  Radius of the short list with its buffer
     * \param[in] longRadius   The same of the long list
     */
    static void checkDomains(real shortRadius, real longRadius);

    const FmmLJSplitSettings& settings() const { return settings_; }
    //! Returns the grid of an atom of a kind of molecule
    int localGrid(int moltype, int atom) const { return grids_[moltype][atom]; }
    //! Returns the heavy atom that a light atom of a kind of molecule is bound to, the atom itself for others
    int heavyAtom(int moltype, int atom) const { return heavyAtoms_[moltype][atom]; }
    //! Returns whether molecules can be at both sides of a box
    bool isPeriodic() const { return isPeriodic_; }
    //! Returns how many atoms are in clusters on a grid
    int numAtomsOnGrid(Grid grid) const { return numAtoms_[grid]; }

    //! Returns pairs of grids that the long and the short list are of
    static std::vector<std::pair<int, int>> gridPairs();
    std::vector<std::pair<int, int>>        shortGridPairs() const;

    //! Types of the parameters below for all atoms, in the order of the topology
    ArrayRef<const int> atomTypes() const { return atomTypes_; }
    //! Sets which atoms of the topology a domain has, those of its halo included
    void setDomainAtoms(ArrayRef<const int> globalIndices);
    //! Returns the types of these, or without domains those of all atoms
    ArrayRef<const int> domainAtomTypes() const
    {
        return haveDomains_ ? ArrayRef<const int>(domainAtomTypes_) : atomTypes();
    }
    int numTypes() const { return static_cast<int>(types_.size()); }
    //! Parameters of the long and the short list, as in t_forcerec: 6 c6 and 12 c12 of pairs of types
    ArrayRef<const real> nbfp() const { return nbfp_; }
    ArrayRef<const real> shortNbfp() const { return shortNbfp_; }
    //! Cut-off and modifier of the short list
    const interaction_const_t& shortConstants() const { return *shortConstants_; }
    real                       shortRadius() const { return static_cast<real>(settings_.radius); }
    //! For pairs of types of the topology the largest parameters that the long and the short list have
    const gmx_ffparams_t& largestLongParameters() const { return largestLongParameters_; }
    const gmx_ffparams_t& largestShortParameters() const { return largestShortParameters_; }

private:
    //! Types of the topology that a type is made of: of the atom itself, and of light atoms that it has
    struct Type
    {
        std::vector<int> parts;
        bool             isLight = false;
    };
    //! Returns the index of a type beyond those of the topology, and adds it where it is new
    int typeIndex(const Type& type, int numOriginal);
    //! Sorts atoms to grids and gives them types
    void sortAtoms(const t_inputrec& inputrec, const gmx_mtop_t& mtop);
    //! Sets the parameters of both lists for pairs of types
    void setParameters(const gmx_mtop_t& mtop);

    FmmLJSplitSettings settings_;
    bool               isPeriodic_;
    std::vector<Type>  types_; // those of the topology come first
    // By kinds of molecules
    std::vector<std::vector<int>>        grids_, heavyAtoms_;
    std::array<int, c_numGrids>          numAtoms_ = {};
    std::vector<int>                     atomTypes_, domainAtomTypes_;
    bool                                 haveDomains_ = false;
    std::vector<real>                    nbfp_, shortNbfp_;
    std::unique_ptr<interaction_const_t> shortConstants_;
    gmx_ffparams_t                       largestLongParameters_, largestShortParameters_;
};

} // namespace gmx

#endif
