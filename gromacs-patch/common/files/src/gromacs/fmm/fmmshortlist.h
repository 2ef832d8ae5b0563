/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Declares the short list of Lennard-Jones in two pair lists, on a GPU
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
#ifndef GMX_FMM_FMMSHORTLIST_H
#define GMX_FMM_FMMSHORTLIST_H

#include <memory>
#include <utility>
#include <vector>

#include "gromacs/utility/arrayref.h"

#include "fmmversion.h"

class DeviceContext;
class DeviceStream;
struct gmx_mtop_t;

namespace gmx
{

class FmmLJSplit;

//! What does not change in a run: which light atoms belong to a heavy atom, and pairs that no search has to find
struct FmmShortListTopology
{
    /*! \brief Collects it
     *
     * \throws NotImplementedError where an atom is not excluded from another
     *                             as the heavy atoms of the two are.
     */
    FmmShortListTopology(const FmmLJSplit& ljSplit, const gmx_mtop_t& mtop);

    //! The largest number of light atoms that a heavy atom has
    int maxNumLight = 1;
    //! For each atom of the system \p maxNumLight light atoms, -1 for none
    std::vector<int> lightAtoms;
    /*! \brief Interacting pairs whose heavy atoms exclude each other or are one
     *
     * The long list does not have the pairs of these heavy atoms.
     */
    std::vector<std::pair<int, int>> bondedPairs;
};

//! Radii of the short list
struct FmmShortListRadii
{
    real outer, inner;
    //! Number of force computations after which pairs beyond the inner radius are sorted out again, 0 for never
    int pruneInterval;
};

//! The list of pairs of heavy atoms, as the pair kernels have it on the device
struct FmmLongListOnDevice
{
    //! Entries of nbnxn_sci_t, of four clusters with their masks, of nbnxn_excl_t
    const void* sci;
    const void* clusters;
    const void* exclusions;
    int         numSci;
};

//! Atom data of the pair kernels on the device
struct FmmPairKernelData
{
    //! Float4 each
    const void* xq;
    const int*  atomTypes;
    //! Three float each
    void*       f;
    const void* shiftVectors;
    void*       shiftForces;
    float*      energy;
};

//! Returns the radius that the long list must have, from which a short list with this radius is made
real fmmLongListRadius(const FmmLJSplit& ljSplit, real radius);

/*! \libinternal \brief
 * Pairs within the short list's radius, and the kernels for them
 *
 * Each heavy atom, with its light atoms, has a list of heavy atoms. Kernels for
 * pairs of clusters, which GROMACS has, would compute many pairs beyond the
 * radius: clusters are about as wide. Such lists take no time of the host: they
 * are made from the long list. They are made for the outer radius, and pruned
 * to the inner one at intervals.
 *
 * \inlibraryapi
 * \ingroup module_fmm
 */
class FmmShortList
{
public:
    /*! \brief Copies what does not change to the device
     *
     * \param[in] ljSplit        Parameters and radii
     * \param[in] mtop           The topology
     * \param[in] radii          Radii of the list, and the interval of pruning
     * \param[in] deviceContext  The device
     * \param[in] deviceStream   The stream to copy in
     */
    FmmShortList(const FmmLJSplit&        ljSplit,
                 const gmx_mtop_t&        mtop,
                 const FmmShortListRadii& radii,
                 const DeviceContext&     deviceContext,
                 const DeviceStream&      deviceStream);
    ~FmmShortList();

    /*! \brief Makes the list, at every pair search, before the long list is pruned
     *
     * Waits until it is there: the kernels that use it run in another stream.
     *
     * \param[in] longList       Pairs of heavy atoms
     * \param[in] data           Atom data
     * \param[in] numHeavySlots  Heavy atoms are those before this one in the order of the pair search
     * \param[in] slotOfAtom     That order, for the atoms of the system
     * \param[in] deviceStream   Stream that has the data
     */
    void make(const FmmLongListOnDevice& longList,
              const FmmPairKernelData&   data,
              int                        numHeavySlots,
              ArrayRef<const int>        slotOfAtom,
              const DeviceStream&        deviceStream);

    /*! \brief Enqueues kernels that add forces, and energy or shift forces
     *
     * \param[in] data                   Atom data
     * \param[in] computeEnergyOrVirial  Whether energy and shift forces are needed
     * \param[in] deviceStream           Stream, which must wait for coordinates
     */
    void launchForces(const FmmPairKernelData& data, bool computeEnergyOrVirial, const DeviceStream& deviceStream);

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace gmx

#endif
