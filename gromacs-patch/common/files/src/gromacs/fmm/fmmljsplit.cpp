/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements Lennard-Jones in two pair lists
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmljsplit.h"

#include <cmath>
#include <cstdlib>

#include <algorithm>
#include <map>
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

    std::vector<int> heavyAtom(atoms.nr);
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
        }
    }
    return heavyAtom;
}

//! Returns constants of a potential r^-p whose force is switched to zero in c_switchRange before \p radius
shift_consts_t forceSwitch(double p, double radius)
{
    const double start = radius - FmmLJSplit::c_switchRange;
    const double range = FmmLJSplit::c_switchRange;
    const double scale = 1 / (std::pow(radius, p + 2) * range * range);
    const double c2    = ((p + 1) * start - (p + 4) * radius) * scale;
    const double c3    = -((p + 1) * start - (p + 3) * radius) * scale / range;
    const double shift =
            -std::pow(radius, -p) + p * c2 / 3 * std::pow(range, 3) + p * c3 / 4 * std::pow(range, 4);
    return { static_cast<real>(c2), static_cast<real>(c3), static_cast<real>(shift) };
}

} // namespace

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
    shortConstants_(forceSwitchedVanDerWaals(static_cast<real>(settings.radius),
                                             c_switchRange,
                                             forceSwitch(6, settings.radius),
                                             forceSwitch(12, settings.radius))),
    largestShortParameters_(mtop.ffparams)
{
    const int  numOriginal = mtop.ffparams.atnr;
    const auto lj          = [&mtop, numOriginal](int a, int b)
    { return mtop.ffparams.iparams[a * numOriginal + b].lj; };

    std::vector<bool> isLightType(numOriginal, false), usesVdw(numOriginal, false);
    for (const int type : settings.lightTypes)
    {
        isLightType[type] = true;
    }
    for (int a = 0; a < numOriginal; a++)
    {
        for (int b = 0; b < numOriginal; b++)
        {
            usesVdw[a] = usesVdw[a] || lj(a, b).c6 != 0 || lj(a, b).c12 != 0;
        }
    }

    // Each type is a list of types of the topology: of the atom itself, and of light atoms that it has
    std::vector<std::vector<int>>   types;
    std::vector<bool>               isLight(numOriginal, false);
    std::map<std::vector<int>, int> typeWithLightAtoms;
    std::map<int, int>              typeOfLightAtom;
    for (int a = 0; a < numOriginal; a++)
    {
        types.push_back({ a });
    }
    std::vector<std::vector<int>> typesOfMolecule(mtop.moltype.size());
    for (size_t m = 0; m < mtop.moltype.size(); m++)
    {
        const gmx_moltype_t&    moltype = mtop.moltype[m];
        const std::vector<bool> isOffGrid =
                fmmAtomsOffPairSearchGrid(inputrec.coulombtype, mtop, moltype, usesVdw);
        const std::vector<int> heavyAtom = heavyAtoms(moltype, isLightType);

        std::vector<std::vector<int>> lightTypesOf(moltype.atoms.nr);
        for (int a = 0; a < moltype.atoms.nr; a++)
        {
            if (heavyAtom[a] != a)
            {
                lightTypesOf[heavyAtom[a]].push_back(moltype.atoms.atom[a].type);
            }
        }
        grids_.emplace_back(moltype.atoms.nr);
        heavyAtoms_.push_back(heavyAtom);
        for (int a = 0; a < moltype.atoms.nr; a++)
        {
            const int original = moltype.atoms.atom[a].type;
            int       type     = original;
            int       grid     = Heavy;
            if (isOffGrid[a])
            {
                grid = Light;
            }
            else if (heavyAtom[a] != a)
            {
                grid                      = Light;
                const auto [entry, isNew] = typeOfLightAtom.try_emplace(original, ssize(types));
                type                      = entry->second;
                if (isNew)
                {
                    types.push_back({ original });
                    isLight.push_back(true);
                }
            }
            else if (!lightTypesOf[a].empty())
            {
                grid                 = HeavyWithLight;
                std::vector<int> all = { original };
                std::sort(lightTypesOf[a].begin(), lightTypesOf[a].end());
                all.insert(all.end(), lightTypesOf[a].begin(), lightTypesOf[a].end());
                const auto [entry, isNew] = typeWithLightAtoms.try_emplace(all, ssize(types));
                type                      = entry->second;
                if (isNew)
                {
                    types.push_back(all);
                    isLight.push_back(false);
                }
            }
            grids_[m][a] = grid;
            typesOfMolecule[m].push_back(type);
        }
        for (const gmx_molblock_t& molblock : mtop.molblock)
        {
            for (int a = 0; a < moltype.atoms.nr && molblock.type == static_cast<int>(m); a++)
            {
                numAtoms_[grids_[m][a]] += isOffGrid[a] ? 0 : molblock.nmol;
            }
        }
    }
    for (const gmx_molblock_t& molblock : mtop.molblock)
    {
        for (int m = 0; m < molblock.nmol; m++)
        {
            const std::vector<int>& ofMolecule = typesOfMolecule[molblock.type];
            atomTypes_.insert(atomTypes_.end(), ofMolecule.begin(), ofMolecule.end());
        }
    }

    numTypes_ = ssize(types);
    nbfp_.assign(2 * numTypes_ * numTypes_, 0);
    shortNbfp_ = nbfp_;
    for (t_iparams& largest : largestShortParameters_.iparams)
    {
        largest.lj.c6  = 0;
        largest.lj.c12 = 0;
    }
    for (int a = 0; a < numTypes_; a++)
    {
        for (int b = 0; b < numTypes_; b++)
        {
            const auto own = lj(types[a][0], types[b][0]);
            double     c6  = 0; // of the atoms and of all light atoms that they have
            for (const int ofA : types[a])
            {
                for (const int ofB : types[b])
                {
                    c6 += lj(ofA, ofB).c6;
                }
            }
            real*      entry      = &nbfp_[2 * (a * numTypes_ + b)];
            real*      shortEntry = &shortNbfp_[2 * (a * numTypes_ + b)];
            const bool isOfLight  = isLight[a] || isLight[b];
            if (!isOfLight)
            {
                entry[0] = static_cast<real>(6 * c6);
                entry[1] = 12 * own.c12;
                // Beyond the radius of the short list the two cancel
                shortEntry[0] = types[a].size() + types[b].size() > 2 ? 6 * own.c6 - entry[0] : 0;
            }
            else if (!isLight[a] || !isLight[b] || settings_.havePairsOfLightAtoms)
            {
                shortEntry[0] = 6 * own.c6;
                shortEntry[1] = 12 * own.c12;
            }
            auto& largest = largestShortParameters_.iparams[types[a][0] * numOriginal + types[b][0]].lj;
            largest.c6  = std::max(largest.c6, std::abs(shortEntry[0]) / 6);
            largest.c12 = std::max(largest.c12, std::abs(shortEntry[1]) / 12);
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
    if (emulateGpu || (useGpu && std::getenv("GMX_FMM_LJ_SPLIT_ON_GPU") == nullptr))
    {
        GMX_THROW(
                NotImplementedError("fmm-lj = split is for pair interactions on a CPU so far. Use "
                                    "mdrun -nb cpu, or fmm-lj = full."));
    }
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
