/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements Lennard-Jones of atoms that are near, and of groups at their centres beyond
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmljsplit.h"

#include "config.h"

#include <cmath>
#include <cstdlib>

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

#include "gromacs/math/units.h"
#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/mdtypes/interaction_const.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/exceptions.h"
#include "gromacs/utility/keyvaluetree.h"
#include "gromacs/utility/keyvaluetreebuilder.h"

#include "fmmpairlist.h"

namespace gmx
{

namespace
{

//! Keys of the settings among the internal parameters
constexpr char c_key[]         = "fmm-lj-split";
constexpr char c_radiusKey[]   = "radius";
constexpr char c_pressureKey[] = "pressure";
constexpr char c_volumeKey[]   = "volume";
constexpr char c_modifierKey[] = "vdw-modifier";
constexpr char c_startKey[]    = "rvdw-switch";
constexpr char c_cutoffKey[]   = "rvdw";

//! For each atom of a molecule others
using Neighbors = std::vector<std::vector<int>>;

//! Adds pairs of neighbors, each once
void addPairs(const std::vector<std::pair<int, int>>& pairs, Neighbors* neighbors)
{
    for (const auto& [a, b] : pairs)
    {
        (*neighbors)[a].push_back(b);
        (*neighbors)[b].push_back(a);
    }
    for (std::vector<int>& ofAtom : *neighbors)
    {
        std::sort(ofAtom.begin(), ofAtom.end());
        ofAtom.erase(std::unique(ofAtom.begin(), ofAtom.end()), ofAtom.end());
    }
}

//! Returns whether an atom with these partners may be a hydrogen
bool isHydrogen(const t_atoms& atoms, const int a, const std::vector<int>& bound)
{
    constexpr real c_heaviest = 4.5_real; // of hydrogens that were made heavier
    const t_atom&  atom       = atoms.atom[a];
    if (atom.ptype != ParticleType::Atom || atom.atomnumber > 0)
    {
        return atom.ptype == ParticleType::Atom && atom.atomnumber == 1;
    }
    return atom.m < c_heaviest
           && std::any_of(bound.begin(), bound.end(), [&](int b) { return atoms.atom[b].m > atom.m; });
}

//! Returns the heavy atom of each hydrogen of a molecule, for other atoms themselves
std::vector<int> heavyAtoms(const t_atoms& atoms, const Neighbors& bound)
{
    std::vector<bool> isLight(atoms.nr);
    for (int a = 0; a < atoms.nr; a++)
    {
        isLight[a] = isHydrogen(atoms, a, bound[a]);
    }
    std::vector<int> heavyAtom(atoms.nr), numHydrogens(atoms.nr, 0);
    std::iota(heavyAtom.begin(), heavyAtom.end(), 0);
    for (int a = 0; a < atoms.nr; a++)
    {
        const auto mayHave = [&](int b)
        { return !isLight[b] && atoms.atom[b].ptype == ParticleType::Atom; };
        if (isLight[a] && std::count_if(bound[a].begin(), bound[a].end(), mayHave) == 1)
        {
            heavyAtom[a] = *std::find_if(bound[a].begin(), bound[a].end(), mayHave);
            numHydrogens[heavyAtom[a]]++;
        }
    }
    for (int a = 0; a < atoms.nr; a++)
    {
        if (numHydrogens[heavyAtom[a]] > FmmLJGroups::c_maxNumHydrogens)
        {
            heavyAtom[a] = a;
        }
    }
    return heavyAtom;
}

//! Returns the atoms within so many bonds of one
std::vector<int> atomsWithin(const Neighbors& bound, const int atom, const int numBonds)
{
    std::vector<int> within = { atom };
    size_t           first  = 0;
    for (int bond = 0; bond < numBonds; bond++)
    {
        const size_t last = within.size();
        for (; first < last; first++)
        {
            for (const int b : bound[within[first]])
            {
                if (std::find(within.begin(), within.end(), b) == within.end())
                {
                    within.push_back(b);
                }
            }
        }
    }
    return within;
}

//! Returns for each atom type the sum of c6 with all atoms of the system
std::vector<double> dispersionOfTypes(const gmx_mtop_t& mtop)
{
    const int           numTypes = mtop.ffparams.atnr;
    std::vector<double> numbers(numTypes, 0), strengths(numTypes, 0);
    for (const gmx_molblock_t& molblock : mtop.molblock)
    {
        const t_atoms& atoms = mtop.moltype[molblock.type].atoms;
        for (int a = 0; a < atoms.nr; a++)
        {
            numbers[atoms.atom[a].type] += molblock.nmol;
        }
    }
    for (int a = 0; a < numTypes; a++)
    {
        for (int b = 0; b < numTypes; b++)
        {
            strengths[a] += numbers[b] * mtop.ffparams.iparams[a * numTypes + b].lj.c6;
        }
    }
    return strengths;
}

//! Returns the weights of the atoms of a group, the heavy one first
std::vector<double> weightsOfGroup(const std::vector<int>& types, const std::vector<double>& strengths)
{
    double sum = 0;
    for (const int type : types)
    {
        sum += strengths[type];
    }
    std::vector<double> weights(types.size(), 0);
    weights[0] = 1;
    for (size_t k = 0; k < types.size() && sum > 0; k++)
    {
        weights[k] = strengths[types[k]] / sum;
    }
    return weights;
}

//! Returns the pairs of atoms of a molecule with these groups that exclude each other
std::vector<FmmLJExcludedPair> excludedPairsOf(const gmx_mtop_t&                    mtop,
                                               const gmx_moltype_t&                 moltype,
                                               const std::vector<std::vector<int>>& groups)
{
    std::vector<FmmLJExcludedPair> pairs;
    std::vector<int>               heavyAtom(moltype.atoms.nr, -1);
    const auto                     parameters = [&](int a, int b) -> const auto&
    {
        return mtop.ffparams
                .iparams[moltype.atoms.atom[a].type * mtop.ffparams.atnr + moltype.atoms.atom[b].type]
                .lj;
    };
    const auto exclude = [&](int a, int b)
    {
        const auto ofAtom = moltype.excls[a];
        return std::find(ofAtom.begin(), ofAtom.end(), b) != ofAtom.end();
    };
    for (const std::vector<int>& group : groups)
    {
        for (const int a : group)
        {
            heavyAtom[a] = group[0];
        }
    }
    for (int a = 0; a < moltype.atoms.nr; a++)
    {
        for (const int b : moltype.excls[a])
        {
            if (b > a && heavyAtom[a] >= 0 && heavyAtom[b] >= 0 && heavyAtom[a] != heavyAtom[b])
            {
                pairs.push_back({ heavyAtom[a], heavyAtom[b], parameters(a, b).c6, parameters(a, b).c12 });
            }
        }
    }
    // Within a group sites have nothing, and the pair list has pairs without exclusions
    for (const std::vector<int>& group : groups)
    {
        for (size_t i = 0; i < group.size(); i++)
        {
            for (size_t j = 0; j < i; j++)
            {
                const int a = group[i], b = group[j];
                if (!exclude(a, b))
                {
                    pairs.push_back({ a, b, -parameters(a, b).c6, -parameters(a, b).c12 });
                }
            }
        }
    }
    return pairs;
}

} // namespace

FmmForceSwitch::FmmForceSwitch(const double p, const double start, const double cutoff)
{
    const double range = cutoff - start;
    const double scale = 1 / (std::pow(cutoff, p + 2) * range * range);
    c2                 = ((p + 1) * start - (p + 4) * cutoff) * scale;
    c3                 = -((p + 1) * start - (p + 3) * cutoff) * scale / range;
    shift = -std::pow(cutoff, -p) + p * c2 / 3 * std::pow(range, 3) + p * c3 / 4 * std::pow(range, 4);
}

FmmLJRange FmmLJRange::of(const t_inputrec& inputrec)
{
    return { inputrec.vdw_modifier, inputrec.rvdw_switch, inputrec.rvdw };
}

std::array<double, 3> FmmLJSplitSettings::pressureAt(const double otherVolume) const
{
    const double scale = otherVolume > 0 ? (volume / otherVolume) * (volume / otherVolume) : 0;
    return { { scale * pressure[0], scale * pressure[1], scale * pressure[2] } };
}

void FmmLJSplitSettings::store(KeyValueTreeObjectBuilder* builder) const
{
    auto section = builder->addObject(c_key);
    section.addValue<double>(c_radiusKey, radius);
    section.addValue<double>(c_volumeKey, volume);
    section.addValue<int>(c_modifierKey, static_cast<int>(whole.modifier));
    section.addValue<double>(c_startKey, whole.start);
    section.addValue<double>(c_cutoffKey, whole.cutoff);
    auto values = section.addUniformArray<double>(c_pressureKey);
    for (const double value : pressure)
    {
        values.addValue(value);
    }
}

std::optional<FmmLJSplitSettings> FmmLJSplitSettings::stored(const t_inputrec& inputrec)
{
    if (inputrec.internalParameters == nullptr || !inputrec.internalParameters->keyExists(c_key))
    {
        return std::nullopt;
    }
    const KeyValueTreeObject& section = (*inputrec.internalParameters)[c_key].asObject();
    if (!section.keyExists(c_pressureKey))
    {
        GMX_THROW(InconsistentInputError(
                "The .tpr file has Lennard-Jones interactions in two pair lists, as fmm-lj = split "
                "had them in an earlier version. Run grompp again."));
    }
    FmmLJSplitSettings settings;
    settings.radius    = section[c_radiusKey].cast<double>();
    settings.volume    = section[c_volumeKey].cast<double>();
    settings.whole     = { static_cast<InteractionModifiers>(section[c_modifierKey].cast<int>()),
                           section[c_startKey].cast<double>(),
                           section[c_cutoffKey].cast<double>() };
    const auto& values = section[c_pressureKey].asArray().values();
    for (size_t d = 0; d < settings.pressure.size(); d++)
    {
        settings.pressure[d] = values[d].cast<double>();
    }
    return settings;
}

FmmLJGroups::FmmLJGroups(const gmx_moltype_t& moltype, const std::vector<bool>& usesVdw)
{
    setExclusions(moltype, usesVdw, setAtoms(moltype, usesVdw));
}

std::vector<int> FmmLJGroups::setAtoms(const gmx_moltype_t& moltype, const std::vector<bool>& usesVdw)
{
    const t_atoms& molecule = moltype.atoms;
    const auto     type     = [&](int a) { return molecule.atom[a].type; };
    Neighbors      bound(molecule.nr), ofHeavyAtom(molecule.nr);
    addPairs(boundPairs(moltype), &bound);
    const std::vector<int> heavyAtom = heavyAtoms(molecule, bound);
    for (int a = 0; a < molecule.nr; a++)
    {
        ofHeavyAtom[heavyAtom[a]].push_back(a);
    }
    std::vector<int> groupOf(molecule.nr, -1);
    for (int heavy = 0; heavy < molecule.nr; heavy++)
    {
        std::vector<int>& group = ofHeavyAtom[heavy];
        if (std::any_of(group.begin(), group.end(), [&](int a) { return usesVdw[type(a)]; }))
        {
            std::sort(group.begin(),
                      group.end(),
                      [&](int a, int b) {
                          return std::make_tuple(a != heavy, type(a), a)
                                 < std::make_tuple(b != heavy, type(b), b);
                      });
            for (const int a : group)
            {
                groupOf[a] = static_cast<int>(atoms.size());
            }
            atoms.push_back(group);
        }
    }
    return groupOf;
}

void FmmLJGroups::setExclusions(const gmx_moltype_t&     moltype,
                                const std::vector<bool>& usesVdw,
                                const std::vector<int>&  groupOf)
{
    const auto isThere = [&](int a) { return usesVdw[moltype.atoms.atom[a].type]; };
    Neighbors  bound(moltype.atoms.nr);
    addPairs(boundPairs(moltype), &bound);
    addPairs(virtualSitePairs(moltype), &bound);
    for (int g = 0; g < static_cast<int>(atoms.size()); g++)
    {
        std::vector<int> others;
        for (const int a : atoms[g])
        {
            for (const int b : moltype.excls[a])
            {
                if (groupOf[b] > g && isThere(a) && isThere(b))
                {
                    others.push_back(groupOf[b]);
                }
            }
        }
        std::sort(others.begin(), others.end());
        others.erase(std::unique(others.begin(), others.end()), others.end());
        constexpr int          c_nearBonds = 3;
        const std::vector<int> near        = atomsWithin(bound, atoms[g][0], c_nearBonds);
        for (const int other : others)
        {
            const int otherHeavy = atoms[other][0];
            excluding.push_back({ { g, other } });
            haveFarExclusions = haveFarExclusions
                                || std::find(near.begin(), near.end(), otherHeavy) == near.end();
        }
    }
}

FmmLJSplit::FmmLJSplit(const FmmLJSplitSettings& settings, const t_inputrec& inputrec, const gmx_mtop_t& mtop) :
    settings_(settings)
{
    if (settings_.whole.cutoff <= 0)
    {
        settings_.whole = FmmLJRange::of(inputrec);
    }
    const std::vector<bool> usesVdw = FmmLJSplit::typesWithLennardJones(mtop.ffparams);
    std::vector<int>        numInPairList;
    for (const gmx_moltype_t& moltype : mtop.moltype)
    {
        groups_.emplace_back(moltype, usesVdw);
        const std::vector<bool> isOffGrid =
                fmmAtomsOffPairSearchGrid(inputrec.coulombtype, mtop, moltype, usesVdw);
        numInPairList.push_back(static_cast<int>(std::count(isOffGrid.begin(), isOffGrid.end(), false)));
    }
    for (const gmx_molblock_t& molblock : mtop.molblock)
    {
        numAtomsInPairList_ += molblock.nmol * numInPairList[molblock.type];
    }
    setGroups(mtop, dispersionOfTypes(mtop));
    setParameters(mtop);
    setExcludedPairs(mtop);
}

void FmmLJSplit::setGroups(const gmx_mtop_t& mtop, const std::vector<double>& strengths)
{
    std::vector<std::vector<double>> weightsOfGroups; // by kinds of molecules
    for (size_t m = 0; m < mtop.moltype.size(); m++)
    {
        std::vector<int>&    typesOfGroups = typesOfGroups_.emplace_back();
        std::vector<double>& weights       = weightsOfGroups.emplace_back();
        for (const std::vector<int>& group : groups_[m].atoms)
        {
            std::vector<int> types;
            for (const int a : group)
            {
                types.push_back(mtop.moltype[m].atoms.atom[a].type);
            }
            const std::vector<double> ofGroup = weightsOfGroup(types, strengths);
            weights.insert(weights.end(), ofGroup.begin(), ofGroup.end());
            typesOfGroups.push_back(typeIndices_.emplace(types, numTypes()).first->second);
        }
    }
    int first = 0; // atom of a molecule
    for (const gmx_molblock_t& molblock : mtop.molblock)
    {
        const std::vector<int>&    typesOfGroups = typesOfGroups_[molblock.type];
        const std::vector<double>& weights       = weightsOfGroups[molblock.type];
        for (int m = 0; m < molblock.nmol; m++)
        {
            for (const std::vector<int>& group : groups_[molblock.type].atoms)
            {
                for (const int a : group)
                {
                    atoms_.push_back(first + a);
                }
                start_.push_back(static_cast<int>(atoms_.size()));
            }
            types_.insert(types_.end(), typesOfGroups.begin(), typesOfGroups.end());
            weights_.insert(weights_.end(), weights.begin(), weights.end());
            first += mtop.moltype[molblock.type].atoms.nr;
        }
    }
}

void FmmLJSplit::setParameters(const gmx_mtop_t& mtop)
{
    const int numOriginal = mtop.ffparams.atnr;
    c6_.assign(numTypes() * numTypes(), 0);
    c12_ = c6_;
    for (const auto& [typesA, a] : typeIndices_)
    {
        for (const auto& [typesB, b] : typeIndices_)
        {
            if (b > a)
            {
                continue; // rounded in the same way
            }
            double c6 = 0, c12 = 0;
            for (const int ofA : typesA)
            {
                for (const int ofB : typesB)
                {
                    const auto& lj = mtop.ffparams.iparams[ofA * numOriginal + ofB].lj;
                    c6 += lj.c6;
                    c12 += lj.c12;
                }
            }
            c6_[a * numTypes() + b] = c6_[b * numTypes() + a] = c6;
            c12_[a * numTypes() + b] = c12_[b * numTypes() + a] = c12;
        }
    }
}

void FmmLJSplit::setExcludedPairs(const gmx_mtop_t& mtop)
{
    for (size_t m = 0; m < mtop.moltype.size(); m++)
    {
        excludedPairs_.push_back(excludedPairsOf(mtop, mtop.moltype[m], groups_[m].atoms));
    }
    for (const gmx_molblock_t& molblock : mtop.molblock)
    {
        for (const FmmLJExcludedPair& pair : excludedPairs_[molblock.type])
        {
            excludedC6_ += molblock.nmol * pair.c6;
            excludedC12_ += molblock.nmol * pair.c12;
        }
    }
}

double FmmLJSplit::excludedEnergy(const double radius) const
{
    return excludedEnergy(excludedC6_, excludedC12_, radius);
}

std::vector<double> FmmLJSplit::excludedEnergies(const gmx_mtop_t&              mtop,
                                                 ArrayRef<const unsigned short> energyGroups,
                                                 const int                      numGroups) const
{
    std::vector<double> energies(numGroups * numGroups, 0);
    int                 first = 0; // atom of a molecule
    for (const gmx_molblock_t& molblock : mtop.molblock)
    {
        for (int m = 0; m < molblock.nmol; m++)
        {
            for (const FmmLJExcludedPair& pair : excludedPairs_[molblock.type])
            {
                const auto [a, b] =
                        std::minmax({ energyGroups[first + pair.a], energyGroups[first + pair.b] });
                energies[a * numGroups + b] += excludedEnergy(pair.c6, pair.c12, settings_.radius);
            }
            first += mtop.moltype[molblock.type].atoms.nr;
        }
    }
    return energies;
}

double FmmLJSplit::excludedEnergy(const double c6, const double c12, const double radius) const
{
    // By which potentials differ from plain ones before a switch starts
    const auto shift = [](const FmmLJRange& range, double p)
    {
        return range.modifier == InteractionModifiers::ForceSwitch
                       ? FmmForceSwitch(p, range.start, range.cutoff).shift
               : range.modifier == InteractionModifiers::PotShift ? -std::pow(range.cutoff, -p)
                                                                  : 0;
    };
    const FmmLJRange ofAtoms = { InteractionModifiers::ForceSwitch, radius - c_switchRange, radius };
    return c12 * (shift(settings_.whole, 12) - shift(ofAtoms, 12))
           - c6 * (shift(settings_.whole, 6) - shift(ofAtoms, 6));
}

std::unique_ptr<FmmLJSplit> FmmLJSplit::make(const t_inputrec& inputrec, const gmx_mtop_t& mtop)
{
    const std::optional<FmmLJSplitSettings> settings = FmmLJSplitSettings::stored(inputrec);
    return settings ? std::make_unique<FmmLJSplit>(*settings, inputrec, mtop) : nullptr;
}

void FmmLJSplit::checkResources()
{
    if (std::getenv("GMX_EMULATE_GPU") != nullptr)
    {
        GMX_THROW(NotImplementedError(
                "fmm-lj = split does not work with GMX_EMULATE_GPU, whose pair kernels do not "
                "switch forces. Unset it, or use fmm-lj = full."));
    }
}

FmmLJRange FmmLJSplit::shortRange() const
{
    return { InteractionModifiers::ForceSwitch, settings_.radius - c_switchRange, settings_.radius };
}

void FmmLJSplit::shortenCutoff(t_inputrec* inputrec)
{
    if (const auto settings = FmmLJSplitSettings::stored(*inputrec))
    {
        inputrec->rlist += static_cast<real>(settings->radius) - inputrec->rvdw;
        inputrec->rvdw         = static_cast<real>(settings->radius);
        inputrec->rcoulomb     = inputrec->rvdw;
        inputrec->rvdw_switch  = static_cast<real>(settings->radius - c_switchRange);
        inputrec->vdw_modifier = InteractionModifiers::ForceSwitch;
    }
}

std::vector<bool> FmmLJSplit::typesWithLennardJones(const gmx_ffparams_t& ffparams)
{
    std::vector<bool> haveAny(ffparams.atnr, false);
    for (int a = 0; a < ffparams.atnr; a++)
    {
        for (int b = 0; b < ffparams.atnr; b++)
        {
            const auto& lj = ffparams.iparams[a * ffparams.atnr + b].lj;
            haveAny[a]     = haveAny[a] || lj.c6 != 0 || lj.c12 != 0;
        }
    }
    return haveAny;
}

FmmSiteLists FmmLJSplit::leavePairsToGpu(t_inputrec*          inputrec,
                                         const int            nstlistOfUser,
                                         const bool           useGpuForFmm,
                                         const gmx_mtop_t&    mtop,
                                         const matrix         box,
                                         ArrayRef<const RVec> x)
{
    const auto settings = FmmLJSplitSettings::stored(*inputrec);
    if (!settings || !useGpuForFmm)
    {
        return {};
    }
    // Lists on the device take little time: a short interval, with a short buffer, is the best
    constexpr int c_interval = 40, c_searchInterval = 400;
    FmmSiteLists  lists;
    lists.interval      = nstlistOfUser > 0 ? nstlistOfUser : c_interval;
    const real computed = fmmListRadius(mtop, *inputrec, box, x, lists.interval);
    if (computed <= 0)
    {
        // The buffer is that of the input record, which is for its own interval
        lists.interval = inputrec->nstlist;
        lists.radius   = inputrec->rlist;
    }
    else
    {
        lists.radius      = computed;
        inputrec->nstlist = (c_searchInterval + lists.interval - 1) / lists.interval * lists.interval;
    }
    // No two atoms that do not exclude each other are so close
    constexpr real c_none   = 0.01_real;
    inputrec->rvdw          = c_none;
    inputrec->rcoulomb      = c_none;
    inputrec->rlist         = c_none;
    inputrec->rvdw_switch   = 0;
    inputrec->vdw_modifier  = InteractionModifiers::None;
    inputrec->verletbuf_tol = -1;
    return lists;
}

double FmmLJSplit::buffer(const t_inputrec& inputrec, const gmx_mtop_t& mtop, const FmmSiteLists& lists) const
{
    const bool   isOnGpu    = lists.interval > 0;
    const int    interval   = isOnGpu ? lists.interval : inputrec.nstlist;
    const double ofAtoms    = isOnGpu ? lists.radius - radius() : inputrec.rlist - inputrec.rvdw;
    const bool   isSwitched = settings_.whole.modifier == InteractionModifiers::ForceSwitch
                            || settings_.whole.modifier == InteractionModifiers::PotSwitch;
    if (isSwitched || !EI_DYNAMICS(inputrec.eI))
    {
        return ofAtoms;
    }
    constexpr double c_unknown   = 300; // K, without a thermostat
    const auto&      opts        = inputrec.opts;
    double           temperature = 0;
    for (int group = 0; group < opts.ngtc; group++)
    {
        temperature = std::max<double>(temperature, opts.ref_t[group]);
    }
    // By this a pair of sites comes closer until the next search, in straight lines
    const double time     = (interval - 1) * inputrec.delta_t;
    const double variance = 2 * c_boltz * (temperature > 0 ? temperature : c_unknown) * time * time
                            / smallestMass(mtop);
    constexpr double c_deviations = 1.5; // misses a fourteenth of what no buffer would
    return std::max(ofAtoms, c_deviations * std::sqrt(variance));
}

std::unique_ptr<interaction_const_t> FmmLJSplit::constantsOfWholeCutoff(const t_inputrec& inputrec,
                                                                        const gmx_mtop_t& mtop)
{
    const auto settings = FmmLJSplitSettings::stored(inputrec);
    if (!settings)
    {
        return nullptr;
    }
    t_inputrec whole;
    whole.coulombtype      = inputrec.coulombtype;
    whole.coulomb_modifier = inputrec.coulomb_modifier;
    whole.epsilon_r        = inputrec.epsilon_r;
    whole.vdwtype          = inputrec.vdwtype;
    whole.vdw_modifier     = settings->whole.modifier;
    whole.rvdw             = static_cast<real>(settings->whole.cutoff);
    whole.rvdw_switch      = static_cast<real>(settings->whole.start);
    whole.rcoulomb         = whole.rvdw;
    return std::make_unique<interaction_const_t>(makeFmmInteractionConstants(whole, mtop));
}

double FmmLJSplit::smallestMass(const gmx_mtop_t& mtop) const
{
    double smallest = std::numeric_limits<double>::max();
    for (size_t m = 0; m < groups_.size(); m++)
    {
        for (const std::vector<int>& group : groups_[m].atoms)
        {
            double mass = 0;
            for (const int a : group)
            {
                mass += mtop.moltype[m].atoms.atom[a].m;
            }
            smallest = mass > 0 ? std::min(smallest, mass) : smallest;
        }
    }
    return smallest;
}

bool FmmLJSplit::haveFarExclusions() const
{
    return std::any_of(groups_.begin(),
                       groups_.end(),
                       [](const FmmLJGroups& groups) { return groups.haveFarExclusions; });
}

} // namespace gmx
