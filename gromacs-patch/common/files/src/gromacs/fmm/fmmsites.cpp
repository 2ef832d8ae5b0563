/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements Lennard-Jones interactions of groups of atoms at their sites
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmsites.h"

#include <gmxfmm_sites.h>

#include <algorithm>
#include <iterator>

#include "gromacs/math/units.h"
#include "gromacs/mdtypes/enerdata.h"
#include "gromacs/mdtypes/forceoutput.h"
#include "gromacs/mdtypes/simulation_workload.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/exceptions.h"
#include "gromacs/utility/stringutil.h"

#include "fmmljsplit.h"
#include "fmmsystem.h"

namespace gmx
{

namespace
{

//! Says what has failed
std::string failure(const std::string& message)
{
    return "Lennard-Jones interactions of groups (fmm-lj = split): " + message
           + ". Use fmm-lj = full, if that does not tell what to change.";
}

//! The range as the library has it
gmxfmm_lj_range rangeOf(const FmmLJRange& range)
{
    gmxfmm_lj_range ofLibrary = {};
    ofLibrary.start           = range.start;
    ofLibrary.cutoff          = range.cutoff;
    switch (range.modifier)
    {
        case InteractionModifiers::PotShift: ofLibrary.modifier = GMXFMM_LJ_POTENTIAL_SHIFT; break;
        case InteractionModifiers::ForceSwitch: ofLibrary.modifier = GMXFMM_LJ_FORCE_SWITCH; break;
        case InteractionModifiers::PotSwitch:
            ofLibrary.modifier = GMXFMM_LJ_POTENTIAL_SWITCH;
            break;
        default: ofLibrary.modifier = GMXFMM_LJ_CUT;
    }
    return ofLibrary;
}

/*! \internal \brief
 * Groups and parameters, as the library takes them
 */
struct Groups
{
    std::vector<int>    start = { 0 }, atoms, types;
    std::vector<double> weights;
    //! Rows of groups that exclude a group; empty without exclusions
    std::vector<int>    exclusionStart, exclusions;
    int                 numTypes = 0;
    std::vector<double> c6, c12;
    gmxfmm_lj_range     outer = {}, inner = {};
};

//! Returns these groups of a split
Groups groupsOfSplit(const FmmLJSplit& split, ArrayRef<const int> chosen)
{
    Groups groups;
    for (const int g : chosen)
    {
        groups.types.push_back(split.types()[g]);
        for (int k = split.start()[g]; k < split.start()[g + 1]; k++)
        {
            groups.atoms.push_back(split.atoms()[k]);
            groups.weights.push_back(split.weights()[k]);
        }
        groups.start.push_back(static_cast<int>(groups.atoms.size()));
    }
    groups.numTypes = split.numTypes();
    groups.c6.assign(split.c6().begin(), split.c6().end());
    groups.c12.assign(split.c12().begin(), split.c12().end());
    groups.outer = rangeOf(split.settings().whole);
    groups.inner = rangeOf(split.shortRange());
    return groups;
}

//! Returns single atoms with Lennard-Jones interactions up to the shorter cut-off
Groups singleAtoms(const FmmLJSplit& split, const gmx_mtop_t& mtop)
{
    Groups                  groups;
    const std::vector<bool> usesVdw = FmmLJSplit::typesWithLennardJones(mtop.ffparams);
    std::vector<int>        rowOf(mtop.natoms, -1);
    int                     i = 0;
    for (const gmx_molblock_t& molblock : mtop.molblock)
    {
        const t_atoms& molecule = mtop.moltype[molblock.type].atoms;
        for (int k = 0; k < molblock.nmol * molecule.nr; k++, i++)
        {
            const int type = molecule.atom[k % molecule.nr].type;
            if (usesVdw[type])
            {
                rowOf[i] = static_cast<int>(groups.atoms.size());
                groups.atoms.push_back(i);
                groups.types.push_back(type);
                groups.start.push_back(static_cast<int>(groups.atoms.size()));
            }
        }
    }
    groups.weights.assign(groups.atoms.size(), 1);

    const ListOfLists<int> exclusions = fmmExclusions(mtop);
    groups.exclusionStart             = { 0 };
    for (const int atom : groups.atoms)
    {
        for (const int other : exclusions[atom])
        {
            if (rowOf[other] >= 0)
            {
                groups.exclusions.push_back(rowOf[other]);
            }
        }
        groups.exclusionStart.push_back(static_cast<int>(groups.exclusions.size()));
    }

    groups.numTypes = mtop.ffparams.atnr;
    for (int k = 0; k < groups.numTypes * groups.numTypes; k++)
    {
        groups.c6.push_back(mtop.ffparams.iparams[k].lj.c6);
        groups.c12.push_back(mtop.ffparams.iparams[k].lj.c12);
    }
    groups.outer = rangeOf(split.shortRange());
    return groups;
}

//! Returns what the library makes of these groups
FmmSitesPart makePart(const Groups& groups, const FmmSitesSetup& setup)
{
    gmxfmm_sites_system system = {};
    system.size                = sizeof(system);
    system.device              = setup.deviceId >= 0 ? GMXFMM_CUDA : GMXFMM_CPU;
    system.device_id           = std::max(setup.deviceId, 0);
    system.precision           = GMX_DOUBLE ? GMXFMM_DOUBLE : GMXFMM_SINGLE;
    system.num_threads         = setup.numThreads;
    system.num_periodic        = setup.numPeriodic;
    system.num_atoms           = setup.numAtoms;
    system.num_groups          = static_cast<int>(groups.types.size());
    system.start               = groups.start.data();
    system.atom                = groups.atoms.data();
    system.weight              = groups.weights.data();
    system.type                = groups.types.data();
    system.num_types           = groups.numTypes;
    system.c6                  = groups.c6.data();
    system.c12                 = groups.c12.data();
    system.outer               = groups.outer;
    system.inner               = groups.inner;
    system.exclusion_start = groups.exclusionStart.empty() ? nullptr : groups.exclusionStart.data();
    system.exclusion       = groups.exclusions.data();

    std::array<char, 512> message = { { '\0' } };
    gmxfmm_sites*         sites   = nullptr;
    if (gmxfmm_sites_create(&sites, &system, message.data(), message.size()) != GMXFMM_OK)
    {
        GMX_THROW(InconsistentInputError(failure(message.data())));
    }
    FmmSitesPart part;
    part.sites.reset(sites);
    part.reach = groups.outer.cutoff + setup.buffer;
    return part;
}

} // namespace

void FmmSitesDeleter::operator()(gmxfmm_sites* sites) const
{
    gmxfmm_sites_destroy(sites);
}

FmmSites::FmmSites(const FmmLJSplit& split, ArrayRef<const int> groups, const FmmSitesSetup& setup) :
    groupOfAtom_(setup.numAtoms, -1),
    excludedEnergy_(split.excludedEnergy(split.settings().radius)),
    pressure_(split.settings().pressure),
    volume_(split.settings().volume),
    hasVolume_(setup.numPeriodic == DIM)
{
    const Groups ofSplit = groupsOfSplit(split, groups);
    parts_.push_back(makePart(ofSplit, setup));
    for (size_t g = 0; g < ofSplit.types.size(); g++)
    {
        firstAtom_.push_back(ofSplit.atoms[ofSplit.start[g]]);
        for (int k = ofSplit.start[g]; k < ofSplit.start[g + 1]; k++)
        {
            groupOfAtom_[ofSplit.atoms[k]] = static_cast<int>(g);
        }
    }
}

void FmmSites::addAtoms(const FmmLJSplit& split, const gmx_mtop_t& mtop, const FmmSitesSetup& setup)
{
    parts_.push_back(makePart(singleAtoms(split, mtop), setup));
}

FmmSites::~FmmSites() = default;

void FmmSites::check(const FmmSitesPart& part, const int status)
{
    if (status != GMXFMM_OK)
    {
        GMX_THROW(InconsistentInputError(failure(gmxfmm_sites_message(part.sites.get()))));
    }
}

void FmmSites::setHomeAtoms(ArrayRef<const int> home)
{
    std::vector<int> counted, others;
    for (const int i : home)
    {
        const int g = groupOfAtom_[i];
        if (g >= 0)
        {
            (firstAtom_[g] == i ? counted : others).push_back(g);
        }
    }
    // A group whose first atom is at home was counted; of others each once
    std::sort(counted.begin(), counted.end());
    std::sort(others.begin(), others.end());
    others.erase(std::unique(others.begin(), others.end()), others.end());
    std::vector<int> targets = counted;
    std::set_difference(
            others.begin(), others.end(), counted.begin(), counted.end(), std::back_inserter(targets));
    // For the library no array means all groups, and a rank may have none
    const int none = 0;
    check(parts_[0],
          gmxfmm_sites_set_targets(parts_[0].sites.get(),
                                   static_cast<int>(targets.size()),
                                   static_cast<int>(counted.size()),
                                   targets.empty() ? &none : targets.data()));
    // One rank has the first group
    addsConstants_ = !counted.empty() && counted[0] == 0;
}

void FmmSites::search(const void* x, const FmmBox& box, void* stream)
{
    for (const FmmSitesPart& part : parts_)
    {
        check(part, gmxfmm_sites_search(part.sites.get(), box.data(), x, part.reach, stream));
    }
}

FmmSiteSums FmmSites::calculate(ArrayRef<const RVec> x, const FmmBox& box, const bool needsSums, ArrayRef<RVec> force)
{
    FmmSiteSums sums = {};
    check(parts_[0],
          gmxfmm_sites_execute(parts_[0].sites.get(),
                               box.data(),
                               x.data(),
                               force.data(),
                               needsSums ? &sums[0] : nullptr,
                               needsSums ? &sums[1] : nullptr));
    return sums;
}

void FmmSites::setBox(const FmmBox& box, void* stream)
{
    for (const FmmSitesPart& part : parts_)
    {
        check(part, gmxfmm_sites_enqueue_box(part.sites.get(), box.data(), stream));
    }
}

void FmmSites::enqueue(const void* x, double* sums, const std::array<void*, 2>& streams)
{
    for (size_t p = 0; p < parts_.size(); p++)
    {
        double* ofPart = sums != nullptr ? sums + p * FmmSiteSums().size() : nullptr;
        check(parts_[p], gmxfmm_sites_enqueue(parts_[p].sites.get(), x, ofPart, streams[p]));
    }
}

void FmmSites::enqueueForces(void* force, void* stream)
{
    for (const FmmSitesPart& part : parts_)
    {
        check(part, gmxfmm_sites_enqueue_forces(part.sites.get(), force, stream));
    }
}

int FmmSites::graphVersion() const
{
    int version = 0; // each part's grows
    for (const FmmSitesPart& part : parts_)
    {
        version += gmxfmm_sites_graph_version(part.sites.get());
    }
    return version;
}

FmmSiteSums FmmSites::withConstants(const FmmSiteSums& sums, const FmmBox& box) const
{
    FmmSiteSums all = sums;
    if (!addsConstants_)
    {
        return all;
    }
    all[0] -= excludedEnergy_;
    if (hasVolume_)
    {
        // The pressure is 2 / V (kinetic energy - virial), and goes with the number of pairs in a volume
        const double volume = box[0] * box[4] * box[8];
        const double scale  = (volume_ / volume) * (volume_ / volume) * volume / (2 * c_presfac);
        for (int d = 0; d < DIM; d++)
        {
            all[1 + (DIM + 1) * d] += scale * pressure_[d];
        }
    }
    return all;
}

void addFmmSiteSums(const FmmSiteSums&  sums,
                    const StepWorkload& stepWork,
                    ForceWithVirial*    forceWithVirial,
                    gmx_enerdata_t*     enerd)
{
    if (stepWork.computeEnergy)
    {
        enerd->grpp.energyGroupPairTerms[NonBondedEnergyTerms::LJSR][0] += sums[0];
    }
    if (stepWork.computeVirial)
    {
        matrix virial;
        for (int d = 0; d < DIM * DIM; d++)
        {
            virial[d / DIM][d % DIM] = sums[1 + d];
        }
        forceWithVirial->addVirialContribution(virial);
    }
}

} // namespace gmx
