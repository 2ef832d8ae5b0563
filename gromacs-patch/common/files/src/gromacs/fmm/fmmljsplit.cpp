/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements Lennard-Jones in two pair lists
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmljsplit.h"

#include "config.h"

#include <cmath>

#include <algorithm>
#include <numeric>
#include <string>

#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/mdtypes/interaction_const.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/exceptions.h"
#include "gromacs/utility/keyvaluetree.h"
#include "gromacs/utility/keyvaluetreebuilder.h"
#include "gromacs/utility/strconvert.h"
#include "gromacs/utility/stringutil.h"

#include "fmmpairlist.h"

namespace gmx
{

namespace
{

//! Keys of the settings among the internal parameters
constexpr char c_key[]        = "fmm-lj-split";
constexpr char c_radiusKey[]  = "radius";
constexpr char c_typesKey[]   = "light-types";
constexpr char c_lightPairs[] = "pairs-of-light-atoms";

//! The heavy atom of each light atom of a molecule, other atoms themselves
std::vector<int> heavyAtoms(const gmx_moltype_t& moltype, const std::vector<bool>& isLightType)
{
    const t_atoms&                atoms = moltype.atoms;
    std::vector<std::vector<int>> bound(atoms.nr);
    for (const auto& [a, b] : boundPairs(moltype))
    {
        bound[a].push_back(b);
        bound[b].push_back(a);
    }
    const auto isReal = [&](int a) { return atoms.atom[a].ptype == ParticleType::Atom; };

    std::vector<int> heavyAtom(atoms.nr), numLight(atoms.nr, 0);
    std::iota(heavyAtom.begin(), heavyAtom.end(), 0);
    for (int a = 0; a < atoms.nr; a++)
    {
        if (!isLightType[atoms.atom[a].type] || !isReal(a))
        {
            continue;
        }
        // The constraint between hydrogens of rigid water does not count
        std::vector<int> heavy;
        std::copy_if(bound[a].begin(),
                     bound[a].end(),
                     std::back_inserter(heavy),
                     [&](int b) { return !isLightType[atoms.atom[b].type]; });
        std::sort(heavy.begin(), heavy.end());
        heavy.erase(std::unique(heavy.begin(), heavy.end()), heavy.end());
        if (heavy.size() == 1 && isReal(heavy[0]))
        {
            heavyAtom[a] = heavy[0];
            numLight[heavy[0]]++;
        }
    }
    for (int a = 0; a < atoms.nr; a++)
    {
        if (numLight[heavyAtom[a]] > FmmLJSplit::c_maxNumLight)
        {
            heavyAtom[a] = a;
        }
    }
    return heavyAtom;
}

//! The same for the pair kernels, for the short list
shift_consts_t shortSwitch(double p, double radius)
{
    const FmmForceSwitch constants(p, radius - FmmLJSplit::c_switchRange, radius);
    return { static_cast<real>(constants.c2),
             static_cast<real>(constants.c3),
             static_cast<real>(constants.shift) };
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

void FmmLJSplitSettings::store(KeyValueTreeObjectBuilder* builder) const
{
    auto section = builder->addObject(c_key);
    section.addValue<double>(c_radiusKey, radius);
    section.addValue<std::string>(
            c_typesKey, formatAndJoin(lightTypes, " ", [](int type) { return toString(type); }));
    section.addValue<bool>(c_lightPairs, havePairsOfLightAtoms);
}

std::optional<FmmLJSplitSettings> FmmLJSplitSettings::stored(const t_inputrec& inputrec)
{
    if (inputrec.internalParameters == nullptr || !inputrec.internalParameters->keyExists(c_key))
    {
        return std::nullopt;
    }
    const KeyValueTreeObject& section = (*inputrec.internalParameters)[c_key].asObject();
    FmmLJSplitSettings        settings;
    settings.radius = section[c_radiusKey].cast<double>();
    for (const std::string& type : splitString(section[c_typesKey].cast<std::string>()))
    {
        settings.lightTypes.push_back(fromStdString<int>(type));
    }
    settings.havePairsOfLightAtoms = section[c_lightPairs].cast<bool>();
    return settings;
}

FmmLJSplit::FmmLJSplit(const FmmLJSplitSettings& settings, const t_inputrec& inputrec, const gmx_mtop_t& mtop) :
    settings_(settings),
    isPeriodic_(inputrec.pbcType != PbcType::No),
    shortConstants_(forceSwitchedVanDerWaals(static_cast<real>(settings.radius),
                                             c_switchRange,
                                             shortSwitch(6, settings.radius),
                                             shortSwitch(12, settings.radius))),
    largestLongParameters_(mtop.ffparams),
    largestShortParameters_(mtop.ffparams)
{
    sortAtoms(inputrec, mtop);
    setParameters(mtop);
}

int FmmLJSplit::typeIndex(const Type& type, const int numOriginal)
{
    const auto found =
            std::find_if(types_.begin() + numOriginal,
                         types_.end(),
                         [&type](const Type& other)
                         { return other.parts == type.parts && other.isLight == type.isLight; });
    const int index = static_cast<int>(found - types_.begin());
    if (found == types_.end())
    {
        types_.push_back(type);
    }
    return index;
}

void FmmLJSplit::sortAtoms(const t_inputrec& inputrec, const gmx_mtop_t& mtop)
{
    const int         numOriginal = mtop.ffparams.atnr;
    std::vector<bool> isLightType(numOriginal, false), usesVdw(numOriginal, false);
    for (const int type : settings_.lightTypes)
    {
        isLightType[type] = true;
    }
    for (int a = 0; a < numOriginal; a++)
    {
        types_.push_back({ { a }, false });
        for (int b = 0; b < numOriginal; b++)
        {
            const auto& lj = mtop.ffparams.iparams[a * numOriginal + b].lj;
            usesVdw[a]     = usesVdw[a] || lj.c6 != 0 || lj.c12 != 0;
        }
    }

    std::vector<std::vector<int>> typesOfMolecule, numOnGrid; // by kinds of molecules
    for (const gmx_moltype_t& moltype : mtop.moltype)
    {
        const std::vector<bool> isOffGrid =
                fmmAtomsOffPairSearchGrid(inputrec.coulombtype, mtop, moltype, usesVdw);
        std::vector<int>              heavyAtom = heavyAtoms(moltype, isLightType);
        const int                     numAtoms  = moltype.atoms.nr;
        std::vector<std::vector<int>> lightTypesOf(numAtoms);
        for (int a = 0; a < numAtoms; a++)
        {
            if (isOffGrid[heavyAtom[a]])
            {
                // Nothing on a list can act for it
                heavyAtom[a] = a;
            }
            if (heavyAtom[a] != a)
            {
                lightTypesOf[heavyAtom[a]].push_back(moltype.atoms.atom[a].type);
            }
        }
        std::vector<int> grids(numAtoms, Heavy), types(numAtoms), onGrid(c_numGrids, 0);
        for (int a = 0; a < numAtoms; a++)
        {
            types[a] = moltype.atoms.atom[a].type;
            if (isOffGrid[a])
            {
                grids[a] = Light;
                continue;
            }
            Type type = { { types[a] }, heavyAtom[a] != a };
            if (type.isLight)
            {
                grids[a] = Light;
                types[a] = typeIndex(type, numOriginal);
            }
            else if (!lightTypesOf[a].empty())
            {
                grids[a] = HeavyWithLight;
                std::sort(lightTypesOf[a].begin(), lightTypesOf[a].end());
                type.parts.insert(type.parts.end(), lightTypesOf[a].begin(), lightTypesOf[a].end());
                types[a] = typeIndex(type, numOriginal);
            }
            onGrid[grids[a]]++;
        }
        numOnGrid.push_back(onGrid);
        grids_.push_back(grids);
        heavyAtoms_.push_back(heavyAtom);
        typesOfMolecule.push_back(types);
    }
    for (const gmx_molblock_t& molblock : mtop.molblock)
    {
        for (int grid = 0; grid < c_numGrids; grid++)
        {
            numAtoms_[grid] += molblock.nmol * numOnGrid[molblock.type][grid];
        }
        for (int m = 0; m < molblock.nmol; m++)
        {
            const std::vector<int>& types = typesOfMolecule[molblock.type];
            atomTypes_.insert(atomTypes_.end(), types.begin(), types.end());
        }
    }
}

void FmmLJSplit::setParameters(const gmx_mtop_t& mtop)
{
    const int  numOriginal = mtop.ffparams.atnr, numNew = numTypes();
    const auto lj = [&mtop, numOriginal](int a, int b)
    { return mtop.ffparams.iparams[a * numOriginal + b].lj; };

    nbfp_.assign(2 * numNew * numNew, 0);
    shortNbfp_ = nbfp_;
    for (gmx_ffparams_t* largest : { &largestLongParameters_, &largestShortParameters_ })
    {
        for (int i = 0; i < numOriginal * numOriginal; i++)
        {
            largest->iparams[i].lj.c6  = 0;
            largest->iparams[i].lj.c12 = 0;
        }
    }
    std::vector<bool> isUsed(numNew, false);
    for (const int type : atomTypes_)
    {
        isUsed[type] = true;
    }
    const auto keepLargest = [&](gmx_ffparams_t* largest, int a, int b, const real* entry)
    {
        if (isUsed[a] && isUsed[b])
        {
            auto& kept = largest->iparams[types_[a].parts[0] * numOriginal + types_[b].parts[0]].lj;
            kept.c6    = std::max(kept.c6, std::abs(entry[0]) / 6);
            kept.c12   = std::max(kept.c12, std::abs(entry[1]) / 12);
        }
    };
    for (int a = 0; a < numNew; a++)
    {
        for (int b = 0; b < numNew; b++)
        {
            const Type &typeA = types_[a], typeB = types_[b];
            const auto  own = lj(typeA.parts[0], typeB.parts[0]);
            double      c6  = 0; // of the atoms and of all light atoms that they have
            for (const int ofA : typeA.parts)
            {
                for (const int ofB : typeB.parts)
                {
                    c6 += lj(ofA, ofB).c6;
                }
            }
            real* entry      = &nbfp_[2 * (a * numNew + b)];
            real* shortEntry = &shortNbfp_[2 * (a * numNew + b)];
            if (!typeA.isLight && !typeB.isLight)
            {
                entry[0] = static_cast<real>(6 * c6);
                entry[1] = 12 * own.c12;
                // Beyond the radius of the short list the two cancel
                shortEntry[0] = typeA.parts.size() + typeB.parts.size() > 2 ? 6 * own.c6 - entry[0] : 0;
            }
            else if (!typeA.isLight || !typeB.isLight || settings_.havePairsOfLightAtoms)
            {
                shortEntry[0] = 6 * own.c6;
                shortEntry[1] = 12 * own.c12;
            }
            keepLargest(&largestLongParameters_, a, b, entry);
            keepLargest(&largestShortParameters_, a, b, shortEntry);
        }
    }
}

FmmLJSplit::~FmmLJSplit() = default;

std::unique_ptr<FmmLJSplit> FmmLJSplit::make(const t_inputrec& inputrec, const gmx_mtop_t& mtop)
{
    const std::optional<FmmLJSplitSettings> settings = FmmLJSplitSettings::stored(inputrec);
    return settings ? std::make_unique<FmmLJSplit>(*settings, inputrec, mtop) : nullptr;
}

void FmmLJSplit::checkResources(const bool useGpu, const bool emulateGpu)
{
    if (emulateGpu || (useGpu && !GMX_GPU_CUDA))
    {
        GMX_THROW(NotImplementedError(
                "fmm-lj = split needs pair interactions on a CPU, or with CUDA on a GPU. Use "
                "mdrun -nb cpu, or fmm-lj = full."));
    }
}

void FmmLJSplit::checkDomains(const real shortRadius, const real longRadius)
{
    if (shortRadius > longRadius)
    {
        GMX_THROW(InconsistentInputError(
                formatString("fmm-lj = split on several ranks: with its buffer the second pair "
                             "list reaches as far as %.3f nm, beyond the %.3f nm of the first. "
                             "Domains have no atoms of others so far off. Use a smaller "
                             "fmm-lj-radius, or one rank (mdrun -ntmpi 1).",
                             shortRadius,
                             longRadius)));
    }
}

void FmmLJSplit::setDomainAtoms(ArrayRef<const int> globalIndices)
{
    haveDomains_ = true;
    domainAtomTypes_.resize(globalIndices.size());
    std::transform(globalIndices.begin(),
                   globalIndices.end(),
                   domainAtomTypes_.begin(),
                   [this](int i) { return atomTypes_[i]; });
}

std::vector<std::pair<int, int>> FmmLJSplit::gridPairs()
{
    return { { Heavy, Heavy }, { Heavy, HeavyWithLight }, { HeavyWithLight, HeavyWithLight } };
}

std::vector<std::pair<int, int>> FmmLJSplit::shortGridPairs() const
{
    std::vector<std::pair<int, int>> pairs = { { Heavy, HeavyWithLight },
                                               { HeavyWithLight, HeavyWithLight },
                                               { Light, Heavy },
                                               { Light, HeavyWithLight } };
    if (settings_.havePairsOfLightAtoms)
    {
        pairs.emplace_back(Light, Light);
    }
    return pairs;
}

} // namespace gmx
