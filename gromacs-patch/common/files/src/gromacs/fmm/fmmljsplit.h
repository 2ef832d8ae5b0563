/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \libinternal \file
 * \brief
 * Declares Lennard-Jones of atoms that are near, and of groups at their centres beyond
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMLJSPLIT_H
#define GMX_FMM_FMMLJSPLIT_H

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "gromacs/mdtypes/md_enums.h"
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

//! Cut-off of Lennard-Jones interactions, and how they end there
struct FmmLJRange
{
    //! The range of an input record
    static FmmLJRange of(const t_inputrec& inputrec);

    InteractionModifiers modifier = InteractionModifiers::None;
    //! Where a switch starts, and the cut-off, nm
    double start = 0, cutoff = 0;
};

//! How often pairs of atoms and of sites are listed on a GPU, and up to which distance those of atoms
struct FmmSiteLists
{
    //! 0: the pair search lists pairs of atoms
    int    interval = 0;
    double radius   = 0;
};

/*! \brief Atoms of a molecule that sites have an interaction for and the force field has not
 *
 * Of two groups that exclude each other these are the heavy ones, with what pairs of their atoms
 * have. Of one group, where sites have nothing, they are atoms that do not exclude each other, with
 * the opposite.
 */
struct FmmLJExcludedPair
{
    int    a, b;
    double c6, c12;
};

//! What grompp settles and the .tpr file stores
struct FmmLJSplitSettings
{
    //! The cut-off that was asked for; none: that of the input record
    FmmLJRange whole;
    //! Cut-off of the pair list of atoms, nm
    double radius = 0;
    //! What the split adds to the pressure along x, y and z, bar, as grompp measured it
    std::array<double, 3> pressure = {};
    //! Volume at which that was measured, nm^3; of films it is that of so many atoms in water
    double volume = 0;

    //! Returns that pressure at another volume: it goes with the number of pairs in a volume
    std::array<double, 3> pressureAt(double otherVolume) const;
    //! Stores the settings
    void store(KeyValueTreeObjectBuilder* builder) const;
    //! Returns the settings of an input record, none if all pairs are in one list
    static std::optional<FmmLJSplitSettings> stored(const t_inputrec& inputrec);
};

/*! \brief Groups of a kind of molecule: a heavy atom and the hydrogens that are bound to it
 *
 * A hydrogen is bound to one atom that is none. Its atomic number says that it is one, or where
 * that is not known a mass below 4.5 u and a heavier partner. Virtual sites and shells are none.
 */
struct FmmLJGroups
{
    FmmLJGroups(const gmx_moltype_t& moltype, const std::vector<bool>& usesVdw);

    //! More hydrogens than a heavy atom has here have groups of their own, as have all other atoms
    static constexpr int c_maxNumHydrogens = 4;
    //! Atoms of the groups, heavy ones first, then hydrogens by their types; groups without Lennard-Jones are left out
    std::vector<std::vector<int>> atoms;
    //! Pairs of groups with atoms that exclude each other
    std::vector<std::array<int, 2>> excluding;
    //! Whether heavy atoms of such pairs are more than three bonds apart
    bool haveFarExclusions = false;

private:
    //! Sets the groups; returns for each atom the number of its group, -1 for none
    std::vector<int> setAtoms(const gmx_moltype_t& moltype, const std::vector<bool>& usesVdw);
    //! Sets which groups exclude each other
    void setExclusions(const gmx_moltype_t&     moltype,
                       const std::vector<bool>& usesVdw,
                       const std::vector<int>&  groupOf);
};

/*! \libinternal \brief
 * Lennard-Jones of atoms that are near, and of groups at their centres beyond
 *
 * Where the FMM computes all Coulomb interactions, the pair list serves
 * Lennard-Jones alone. Here it has a shorter cut-off than rvdw, with a potential
 * S whose force is switched to zero. The rest of the potential L that was asked
 * for is that of groups of a heavy atom and its hydrogens. They act from their
 * sites, the centres of their dispersion R = sum_k w_k x_k, with the sums of c6
 * and c12 over pairs of their atoms, as L(R) - S(R). Closer than the switch
 * that is a constant, so that groups whose atoms exclude each other need no
 * exception, only their constants taken off.
 *
 * The idea of one site for a group beyond a radius is that of Relative Resolution:
 * A. Chaimovich, C. Peter, K. Kremer, J. Chem. Phys. 143, 243107 (2015).
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
class FmmLJSplit
{
public:
    //! Range of the switch of the pair list of atoms, nm
    static constexpr real c_switchRange = 0.2;

    FmmLJSplit(const FmmLJSplitSettings& settings, const t_inputrec& inputrec, const gmx_mtop_t& mtop);

    //! Returns the split stored in an input record, nullptr if there is none
    static std::unique_ptr<FmmLJSplit> make(const t_inputrec& inputrec, const gmx_mtop_t& mtop);

    //! Throws NotImplementedError where the pair kernels are none that switch forces
    static void checkResources();

    const FmmLJSplitSettings& settings() const { return settings_; }
    //! Returns the cut-off of the pair list of atoms
    real radius() const { return static_cast<real>(settings_.radius); }
    //! Returns the range of the pair list of atoms
    FmmLJRange shortRange() const;
    /*! \brief Gives mdrun's input record that range where there is a split, with the buffer that pair lists had
     *
     * What has the cut-off that was asked for reads it from settings().
     */
    static void shortenCutoff(t_inputrec* inputrec);
    /*! \brief Leaves all pairs of atoms to lists on the GPU that has the FMM, where there is a split
     *
     * The pair search then has nothing to list: it keeps the order of atoms that bonded interactions on the GPU need.
     *
     * \param[in,out] inputrec       The input record, with the shorter cut-off; gets next to none, and longer intervals of pair searches
     * \param[in]     nstlistOfUser  Interval given to mdrun, 0 if none was
     * \param[in]     useGpuForFmm   Whether the FMM runs on a GPU, and there are no domains
     * \param[in]     mtop           The system
     * \param[in]     box            The box
     * \param[in]     x              Coordinates, on the main rank
     */
    static FmmSiteLists leavePairsToGpu(t_inputrec*          inputrec,
                                        int                  nstlistOfUser,
                                        bool                 useGpuForFmm,
                                        const gmx_mtop_t&    mtop,
                                        const matrix         box,
                                        ArrayRef<const RVec> x);
    //! Returns constants of interactions with the cut-off that was asked for, nullptr where there is no split
    static std::unique_ptr<interaction_const_t> constantsOfWholeCutoff(const t_inputrec& inputrec,
                                                                       const gmx_mtop_t& mtop);

    /*! \brief Returns what pair lists of sites need to reach beyond the cut-off, nm
     *
     * That is what the pair list of atoms does, or more where forces are not switched to zero at
     * the cut-off: the atoms' list has clusters of atoms, which give it more than its buffer.
     */
    double buffer(const t_inputrec& inputrec, const gmx_mtop_t& mtop, const FmmSiteLists& lists) const;

    //! Returns how many groups there are
    int numGroups() const { return static_cast<int>(types_.size()); }
    //! Group g has atoms()[start()[g]] to atoms()[start()[g + 1] - 1], the heavy one first, in the order of the topology
    ArrayRef<const int> start() const { return start_; }
    ArrayRef<const int> atoms() const { return atoms_; }
    //! Weights of these atoms for the sites, 1 in sum of each group
    ArrayRef<const double> weights() const { return weights_; }
    //! Types of groups
    ArrayRef<const int> types() const { return types_; }
    int                 numTypes() const { return static_cast<int>(typeIndices_.size()); }
    //! Sums of c6 and c12 over pairs of atoms, for pairs of types
    ArrayRef<const double> c6() const { return c6_; }
    ArrayRef<const double> c12() const { return c12_; }
    //! Sums of c6 and c12 over pairs of atoms that sites have an interaction for and the force field has not
    std::array<double, 2> excludedSums() const { return { { excludedC6_, excludedC12_ } }; }
    /*! \brief Returns the energy that sites have of these pairs, with some radius
     *
     * They are closer than the switch of the pair list starts, where what sites have is a constant.
     */
    double excludedEnergy(double radius) const;
    /*! \brief Returns that energy for pairs of energy groups, with the radius of the settings
     *
     * \param[in] mtop          The system
     * \param[in] energyGroups  Energy group of each atom
     * \param[in] numGroups     Number of energy groups: that of a and b >= a is [a * numGroups + b]
     */
    std::vector<double> excludedEnergies(const gmx_mtop_t&              mtop,
                                         ArrayRef<const unsigned short> energyGroups,
                                         int                            numGroups) const;

    //! Returns for each atom type whether it has Lennard-Jones interactions
    static std::vector<bool> typesWithLennardJones(const gmx_ffparams_t& ffparams);
    //! Returns the groups of a kind of molecule
    const FmmLJGroups& groupsOf(int moltype) const { return groups_[moltype]; }
    //! Returns whether any pair of groups that exclude each other may be far apart
    bool haveFarExclusions() const;
    //! Returns whether any group has more than one atom
    bool haveHydrogens() const { return types_.size() < atoms_.size(); }
    //! Returns how many atoms the pair list has
    int numAtomsInPairList() const { return numAtomsInPairList_; }

private:
    //! Sets atoms, weights and types of all groups
    void setGroups(const gmx_mtop_t& mtop, const std::vector<double>& strengths);
    //! Returns the mass of the lightest group that has one, u
    double smallestMass(const gmx_mtop_t& mtop) const;
    //! Sets what pairs of types have
    void setParameters(const gmx_mtop_t& mtop);
    //! Sets what pairs of atoms that exclude each other have, and adds it up
    void setExcludedPairs(const gmx_mtop_t& mtop);
    //! Returns the energy that sites have of pairs with these sums, with some radius
    double excludedEnergy(double c6, double c12, double radius) const;

    FmmLJSplitSettings                          settings_;
    std::vector<FmmLJGroups>                    groups_; // by kinds of molecules
    std::vector<std::vector<int>>               typesOfGroups_;
    std::map<std::vector<int>, int>             typeIndices_; // by the types of their atoms
    std::vector<int>                            start_ = { 0 }, atoms_, types_;
    std::vector<double>                         weights_, c6_, c12_;
    std::vector<std::vector<FmmLJExcludedPair>> excludedPairs_; // by kinds of molecules
    double                                      excludedC6_ = 0, excludedC12_ = 0;
    int                                         numAtomsInPairList_ = 0;
};

} // namespace gmx

#endif
