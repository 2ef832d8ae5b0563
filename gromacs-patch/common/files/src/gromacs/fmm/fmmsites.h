/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Declares Lennard-Jones interactions of groups of atoms at their sites
 *
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMSITES_H
#define GMX_FMM_FMMSITES_H

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "gromacs/utility/arrayref.h"

#include "fmmplan.h"
#include "fmmversion.h"

struct gmx_enerdata_t;
struct gmx_mtop_t;
struct gmxfmm_sites;

namespace gmx
{

class FmmLJSplit;
class ForceWithVirial;
class StepWorkload;

//! Energy and virial, row-major, of a step
using FmmSiteSums = std::array<double, 1 + DIM * DIM>;

//! Where and how sites are computed
struct FmmSitesSetup
{
    //! Number of atoms of the system
    int numAtoms = 0;
    //! Number of periodic vectors of the box
    int numPeriodic = DIM;
    //! What lists of pairs of sites reach beyond the cut-off
    double buffer = 0;
    //! Number of OpenMP threads
    int numThreads = 1;
    //! The GPU, -1 for none
    int deviceId = -1;
};

//! Frees what the library has
struct FmmSitesDeleter
{
    void operator()(gmxfmm_sites* sites) const;
};

//! What the library has of some groups, and how far its lists reach
struct FmmSitesPart
{
    std::unique_ptr<gmxfmm_sites, FmmSitesDeleter> sites;
    double                                         reach = 0;
};

/*! \internal \brief
 * Lennard-Jones of groups at their sites, see FmmLJSplit, by the gmxfmm library
 *
 * On a GPU that of single atoms, up to the shorter cut-off, is there, too. What takes a stream puts
 * work into it, and does not wait for it.
 *
 * \ingroup module_fmm
 */
class FmmSites
{
public:
    //! Copies these groups of a split
    FmmSites(const FmmLJSplit& split, ArrayRef<const int> groups, const FmmSitesSetup& setup);
    ~FmmSites();
    //! Adds pairs of atoms up to the shorter cut-off, on a GPU
    void addAtoms(const FmmLJSplit& split, const gmx_mtop_t& mtop, const FmmSitesSetup& setup);

    //! Sets how far lists of pairs of sites reach, from the next search on
    void setReach(double reach) { parts_[0].reach = reach; }

    /*! \brief Sets which atoms of the topology are at home, on one of several ranks
     *
     * Forces are computed on groups with one of them. A group counts for energy and virial where its first atom is.
     */
    void setHomeAtoms(ArrayRef<const int> home);

    /*! \brief Lists pairs of sites near each other
     *
     * Waits for the stream. With coordinates on the device if sites are there.
     */
    void search(const void* x, const FmmBox& box, void* stream);

    //! Adds forces on the CPU, and returns energy and virial where they are wanted, without what is constant
    FmmSiteSums calculate(ArrayRef<const RVec> x, const FmmBox& box, bool needsSums, ArrayRef<RVec> force);

    //! Sets the box of later steps on the GPU
    void setBox(const FmmBox& box, void* stream);
    /*! \brief Computes forces on sites and on atoms on the GPU, each in a stream of its own
     *
     * \p sums is nullptr or memory of it for two FmmSiteSums, one of each.
     */
    void enqueue(const void* x, double* sums, const std::array<void*, 2>& streams);
    //! Adds these forces to those of atoms on the GPU
    void enqueueForces(void* force, void* stream);
    //! As long as this is the same, steps can be repeated as a graph
    int graphVersion() const;

    //! Returns whether this rank adds what is constant
    bool addsConstants() const { return addsConstants_; }
    //! Returns sums of a step with what is constant: pairs that exclude each other, and the pressure that the split adds
    FmmSiteSums withConstants(const FmmSiteSums& sums, const FmmBox& box) const;

private:
    //! Throws where the library has failed
    static void check(const FmmSitesPart& part, int status);
    //! Groups at their sites, and on a GPU single atoms
    std::vector<FmmSitesPart> parts_;
    //! For each atom the group that it is in, -1 for none, and for each group its first atom
    std::vector<int> groupOfAtom_, firstAtom_;
    //! Energy of pairs that exclude each other
    double excludedEnergy_;
    //! What the split adds to the pressure, and the volume for that
    std::array<double, DIM> pressure_;
    double                  volume_;
    bool                    hasVolume_;
    //! Whether this rank adds what is constant
    bool addsConstants_ = true;
};

//! Adds the energy of sites and their virial, those that are wanted
void addFmmSiteSums(const FmmSiteSums&  sums,
                    const StepWorkload& stepWork,
                    ForceWithVirial*    forceWithVirial,
                    gmx_enerdata_t*     enerd);

} // namespace gmx

#endif
