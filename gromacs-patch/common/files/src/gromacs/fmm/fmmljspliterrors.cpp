/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements what Lennard-Jones in two lists changes, and how it is measured
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmljspliterrors.h"

#include <cmath>
#include <cstdio>

#include <algorithm>
#include <random>

#include "gromacs/math/units.h"
#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/mdtypes/interaction_const.h"
#include "gromacs/pbcutil/pbc.h"
#include "gromacs/selection/nbsearch.h"
#include "gromacs/topology/topology.h"
#include "gromacs/utility/gmxomp.h"
#include "gromacs/utility/stringutil.h"

#include "fmmslab.h"
#include "fmmsystem.h"

namespace gmx
{

namespace
{

//! Standard errors by which a decision is certain
constexpr double c_certain = 3;
//! Atoms at which Coulomb forces are measured, to one percent
constexpr int c_coulombAtoms = 4000;
//! A measurement of so many atoms takes a second or more
constexpr int c_slow = 40000;

//! Force over distance and energy of a pair
struct PairTerm
{
    double force  = 0;
    double energy = 0;
};

//! Lennard-Jones with one of GROMACS's modifiers, as in its reference manual
class LennardJones
{
public:
    LennardJones(InteractionModifiers modifier, double cutoff, double start) :
        modifier_(modifier),
        cutoff_(cutoff),
        start_(modifier == InteractionModifiers::ForceSwitch || modifier == InteractionModifiers::PotSwitch
                       ? start
                       : 0),
        dispersion_(6, start_, cutoff),
        repulsion_(12, start_, cutoff),
        shift6_(std::pow(cutoff, -6)),
        shift12_(shift6_ * shift6_)
    {
    }

    PairTerm operator()(double r, double c6, double c12) const
    {
        if (r >= cutoff_ || (c6 == 0 && c12 == 0))
        {
            return {};
        }
        const double   plain      = 1 / (r * r * r * r * r * r);
        const PairTerm repulsion  = modified(r, 12, plain * plain, repulsion_, shift12_);
        const PairTerm dispersion = modified(r, 6, plain, dispersion_, shift6_);
        return { c12 * repulsion.force - c6 * dispersion.force,
                 c12 * repulsion.energy - c6 * dispersion.energy };
    }

private:
    //! The modified potential \p plain = r^-p
    PairTerm modified(double r, double p, double plain, const FmmForceSwitch& constants, double atCutoff) const
    {
        const double t = std::max(0.0, r - start_), plainForce = p * plain / r;
        switch (modifier_)
        {
            case InteractionModifiers::ForceSwitch:
                return { (plainForce + p * t * t * (constants.c2 + constants.c3 * t)) / r,
                         plain - p * t * t * t * (constants.c2 / 3 + constants.c3 / 4 * t)
                                 + constants.shift };
            case InteractionModifiers::PotSwitch:
            {
                const double range = cutoff_ - start_;
                const double s     = t / range;
                const double value = 1 - s * s * s * (10 - 15 * s + 6 * s * s);
                const double slope = -30 * s * s * (1 - s) * (1 - s) / range;
                return { (plainForce * value - plain * slope) / r, plain * value };
            }
            case InteractionModifiers::PotShift: return { plainForce / r, plain - atCutoff };
            default: return { plainForce / r, plain };
        }
    }

    InteractionModifiers modifier_;
    double               cutoff_;
    double               start_;
    FmmForceSwitch       dispersion_, repulsion_;
    double               shift6_, shift12_;
};

//! What the measurement needs of all atoms
struct AllAtoms
{
    explicit AllAtoms(const gmx_mtop_t& mtop)
    {
        for (const gmx_molblock_t& molblock : mtop.molblock)
        {
            const gmx_moltype_t& moltype = mtop.moltype[molblock.type];
            for (int m = 0; m < molblock.nmol; m++)
            {
                const int first = static_cast<int>(charge.size());
                for (int a = 0; a < moltype.atoms.nr; a++)
                {
                    type.push_back(moltype.atoms.atom[a].type);
                    charge.push_back(moltype.atoms.atom[a].q);
                    mass.push_back(moltype.atoms.atom[a].m);
                    firstOfMolecule.push_back(first);
                    molecule.push_back(&moltype);
                }
            }
        }
    }
    bool areExcluded(int i, int j) const
    {
        if (firstOfMolecule[i] != firstOfMolecule[j])
        {
            return false;
        }
        const auto excluded = molecule[i]->excls[i - firstOfMolecule[i]];
        return std::find(excluded.begin(), excluded.end(), j - firstOfMolecule[i]) != excluded.end();
    }

    std::vector<int>                  type;
    std::vector<double>               charge, mass;
    std::vector<int>                  firstOfMolecule;
    std::vector<const gmx_moltype_t*> molecule;
};

//! Returns groups of one atom and the light atoms that it has
std::vector<std::vector<int>> groupsOfLightAtoms(const FmmLJSplit& split, const gmx_mtop_t& mtop)
{
    std::vector<std::vector<int>> groups;
    int                           first = 0;
    for (const gmx_molblock_t& molblock : mtop.molblock)
    {
        const int numAtoms = mtop.moltype[molblock.type].atoms.nr;
        for (int m = 0; m < molblock.nmol; m++, first += numAtoms)
        {
            std::vector<std::vector<int>> ofMolecule(numAtoms);
            for (int a = 0; a < numAtoms; a++)
            {
                ofMolecule[split.heavyAtom(molblock.type, a)].push_back(first + a);
            }
            std::copy_if(ofMolecule.begin(),
                         ofMolecule.end(),
                         std::back_inserter(groups),
                         [](const std::vector<int>& group) { return !group.empty(); });
        }
    }
    return groups;
}

/*! \brief Damped Coulomb force between unit charges, by 1/(4 pi eps0)
 *
 * Cut off and shifted, its RMS is that of an Ewald sum within some percent:
 * C. Fennell, J. Gezelter, J. Chem. Phys. 124, 234104 (2006).
 */
double dampedCoulombForce(double r)
{
    constexpr double c_damping = 2; // 1/nm
    return std::erfc(c_damping * r) / (r * r)
           + 2 * c_damping / std::sqrt(M_PI) * std::exp(-c_damping * c_damping * r * r) / r;
}

//! Leaves groups of about \p mostAtoms atoms, by chance
void takeSample(std::vector<std::vector<int>>* groups, const int mostAtoms)
{
    std::mt19937 random(2015);
    int          numAtoms = 0;
    for (size_t g = 0; g < groups->size(); g++)
    {
        if (numAtoms >= mostAtoms)
        {
            groups->resize(g);
            break;
        }
        std::swap((*groups)[g], (*groups)[g + random() % (groups->size() - g)]);
        numAtoms += static_cast<int>((*groups)[g].size());
    }
}

//! Returns for each kind of molecule which atoms constraints keep at their distance to their heavy atom
std::vector<std::vector<bool>> constrainedAtoms(const FmmLJSplit& split, const gmx_mtop_t& mtop)
{
    std::vector<std::vector<bool>> areConstrained;
    for (size_t m = 0; m < mtop.moltype.size(); m++)
    {
        std::vector<bool>& ofMolecule = areConstrained.emplace_back(mtop.moltype[m].atoms.nr, false);
        for (const auto& [a, b] : constrainedPairs(mtop.moltype[m]))
        {
            const int type = static_cast<int>(m);
            ofMolecule[a]  = ofMolecule[a] || split.heavyAtom(type, a) == b;
            ofMolecule[b]  = ofMolecule[b] || split.heavyAtom(type, b) == a;
        }
    }
    return areConstrained;
}

//! Sums over groups of what a group has, and their squares
struct Sums
{
    double                  square = 0, squareOfSquare = 0, energy = 0;
    std::array<double, DIM> virial = {}, virialSquare = {};

    //! Adds sums of other groups
    void add(const Sums& other)
    {
        square += other.square;
        squareOfSquare += other.squareOfSquare;
        energy += other.energy;
        for (int d = 0; d < DIM; d++)
        {
            virial[d] += other.virial[d];
            virialSquare[d] += other.virialSquare[d];
        }
    }
    //! Fills in the squares, of one group
    void setSquares()
    {
        squareOfSquare = square * square;
        for (int d = 0; d < DIM; d++)
        {
            virialSquare[d] = virial[d] * virial[d];
        }
    }
};

//! The standard error of a mean over \p part of all groups, which are \p number
double standardError(double sum, double sumOfSquares, double number, double part)
{
    const double mean = sum / number;
    return std::sqrt(std::max(0.0, (1 - part) * (sumOfSquares / number - mean * mean) / number));
}

} // namespace

double fmmVolumeOfAtoms(const t_inputrec& inputrec, const gmx_mtop_t& mtop, const matrix box)
{
    return inputrec.pbcType == PbcType::No || isFilm(inputrec.pbcType, inputrec.nwall)
                   ? volumeOfFilm(mtop.natoms)
                   : static_cast<double>(box[XX][XX]) * box[YY][YY] * box[ZZ][ZZ];
}

std::optional<bool> FmmLJSplitErrors::areWithin(const double allowedForce, const double allowedPressure) const
{
    bool       areAll    = true;
    bool       isBeyond  = false;
    const auto compareTo = [&](double allowed, double value, double deviation)
    {
        areAll   = areAll && std::abs(value) + c_certain * deviation <= allowed;
        isBeyond = isBeyond || std::abs(value) - c_certain * deviation > allowed;
    };
    compareTo(allowedForce, force, forceDeviation);
    for (int d = 0; d < DIM; d++)
    {
        compareTo(allowedPressure, pressure[d], pressureDeviation[d]);
    }
    return isBeyond ? std::make_optional(false) : areAll ? std::make_optional(true) : std::nullopt;
}

std::string FmmLJSplitErrors::description() const
{
    return formatString(
            "forces %.1e (+- %.0e) of the RMS Coulomb force, pressure %.2f %.2f %.2f bar (+- %.2f) "
            "along x, y, z, energy %.3g kJ/mol",
            force,
            forceDeviation,
            pressure[XX],
            pressure[YY],
            pressure[ZZ],
            *std::max_element(pressureDeviation.begin(), pressureDeviation.end()),
            energy);
}

class FmmLJSplitMeasurement::Impl
{
public:
    Impl(const t_inputrec& inputrec, const gmx_mtop_t& mtop, const matrix box, ArrayRef<const RVec> x);
    std::vector<FmmLJSplitErrors> errors(const FmmLJSplit& split, ArrayRef<const double> radii, int mostAtoms);

    const gmx_mtop_t& mtop_;
    double            coulombForce_;

private:
    double measureCoulombForce();
    //! Vectors from atoms to the centres of mass of their groups, where these are rigid
    std::vector<DVec> toCentres(const FmmLJSplit& split, const std::vector<std::vector<int>>& groups) const;

    const t_inputrec&          inputrec_;
    ArrayRef<const RVec>       x_;
    AllAtoms                   atoms_;
    double                     volume_;
    t_pbc                      pbc_;
    AnalysisNeighborhood       neighborhood_;
    AnalysisNeighborhoodSearch search_;
};

FmmLJSplitMeasurement::Impl::Impl(const t_inputrec&    inputrec,
                                  const gmx_mtop_t&    mtop,
                                  const matrix         box,
                                  ArrayRef<const RVec> x) :
    mtop_(mtop), inputrec_(inputrec), x_(x), atoms_(mtop), volume_(fmmVolumeOfAtoms(inputrec, mtop, box))
{
    set_pbc(&pbc_, inputrec.pbcType, box);
    neighborhood_.setCutoff(static_cast<real>(inputrec.rvdw));
    search_ = neighborhood_.initSearch(
            &pbc_, AnalysisNeighborhoodPositions(as_rvec_array(x.data()), static_cast<int>(x.size())));
    coulombForce_ = measureCoulombForce();
}

double FmmLJSplitMeasurement::Impl::measureCoulombForce()
{
    const double                  forceAtCutoff = dampedCoulombForce(inputrec_.rvdw);
    std::vector<std::vector<int>> sample;
    for (int i = 0; i < mtop_.natoms; i++)
    {
        sample.push_back({ i });
    }
    takeSample(&sample, c_coulombAtoms);
    double sum = 0;
    for (const std::vector<int>& atom : sample)
    {
        const int i          = atom[0];
        DVec      force      = { 0, 0, 0 };
        auto      pairSearch = search_.startPairSearch(AnalysisNeighborhoodPositions(x_[i]));
        AnalysisNeighborhoodPair pair;
        while (pairSearch.findNextPair(&pair))
        {
            const int j = pair.refIndex();
            if (j != i)
            {
                const double r     = std::sqrt(pair.distance2());
                const double whole = atoms_.areExcluded(i, j) ? 1 / (r * r) : 0;
                const double scale = atoms_.charge[i] * atoms_.charge[j]
                                     * (dampedCoulombForce(r) - forceAtCutoff - whole) / r;
                for (int d = 0; d < DIM; d++)
                {
                    force[d] += scale * pair.dx()[d];
                }
            }
        }
        sum += force.norm2();
    }
    return c_one4PiEps0 / inputrec_.epsilon_r * std::sqrt(sum / static_cast<double>(sample.size()));
}

std::vector<DVec> FmmLJSplitMeasurement::Impl::toCentres(const FmmLJSplit&                    split,
                                                         const std::vector<std::vector<int>>& groups) const
{
    const auto        areConstrained = constrainedAtoms(split, mtop_);
    std::vector<DVec> toCentre(mtop_.natoms, DVec(0, 0, 0));
    std::vector<int>  kind(mtop_.natoms);
    int               first = 0;
    for (const gmx_molblock_t& molblock : mtop_.molblock)
    {
        const int num = molblock.nmol * mtop_.moltype[molblock.type].atoms.nr;
        std::fill_n(kind.begin() + first, num, molblock.type);
        first += num;
    }
    for (const std::vector<int>& group : groups)
    {
        int    heavy   = group[0];
        double mass    = 0;
        bool   isRigid = group.size() > 1;
        for (const int a : group)
        {
            const int ofMolecule = a - atoms_.firstOfMolecule[a];
            if (split.heavyAtom(kind[a], ofMolecule) == ofMolecule)
            {
                heavy = a;
            }
            else
            {
                isRigid = isRigid && areConstrained[kind[a]][ofMolecule];
            }
            mass += atoms_.mass[a];
        }
        if (!isRigid || mass <= 0)
        {
            continue;
        }
        DVec              centre = { 0, 0, 0 }; // seen from the heavy atom, as the atoms are
        std::vector<DVec> place;
        for (const int a : group)
        {
            rvec dx;
            pbc_dx(&pbc_, x_[a], x_[heavy], dx);
            place.emplace_back(dx[XX], dx[YY], dx[ZZ]);
            centre += place.back() * (atoms_.mass[a] / mass);
        }
        for (size_t k = 0; k < group.size(); k++)
        {
            toCentre[group[k]] = centre - place[k];
        }
    }
    return toCentre;
}

std::vector<FmmLJSplitErrors> FmmLJSplitMeasurement::Impl::errors(const FmmLJSplit&      split,
                                                                  ArrayRef<const double> radii,
                                                                  const int              mostAtoms)
{
    const int                 numTypes = split.numTypes();
    const LennardJones        longLJ(inputrec_.vdw_modifier, inputrec_.rvdw, inputrec_.rvdw_switch);
    std::vector<LennardJones> shortLJ;
    for (const double radius : radii)
    {
        shortLJ.emplace_back(InteractionModifiers::ForceSwitch, radius, radius - FmmLJSplit::c_switchRange);
    }
    // Both are linear in their parameters
    const auto addPair = [&](int i, int j, double r, ArrayRef<PairTerm> change)
    {
        const auto& lj =
                mtop_.ffparams.iparams[atoms_.type[i] * mtop_.ffparams.atnr + atoms_.type[j]].lj;
        const int      entry = 2 * (split.atomTypes()[i] * numTypes + split.atomTypes()[j]);
        const PairTerm far =
                longLJ(r, split.nbfp()[entry] / 6 - lj.c6, split.nbfp()[entry + 1] / 12 - lj.c12);
        for (size_t k = 0; k < shortLJ.size(); k++)
        {
            const PairTerm near =
                    shortLJ[k](r, split.shortNbfp()[entry] / 6, split.shortNbfp()[entry + 1] / 12);
            change[k] = { far.force + near.force, far.energy + near.energy };
        }
    };

    // What a light atom loses its heavy atom has, so that the two are taken together
    std::vector<std::vector<int>> groups    = groupsOfLightAtoms(split, mtop_);
    const std::vector<DVec>       toCentre  = toCentres(split, groups);
    const double                  numGroups = static_cast<double>(groups.size());
    takeSample(&groups, mostAtoms);

    // Sums of a block have an order of their own, whatever the number of threads
    constexpr int     c_blocks = 256;
    const int         numRadii = static_cast<int>(radii.size());
    std::vector<Sums> sums(c_blocks * numRadii);
#pragma omp parallel for schedule(dynamic) num_threads(gmx_omp_get_max_threads())
    for (int block = 0; block < c_blocks; block++)
    {
        std::vector<PairTerm> change(numRadii);
        std::vector<DVec>     difference(numRadii);
        std::vector<Sums>     ofGroup(numRadii);
        for (size_t g = block; g < groups.size(); g += c_blocks)
        {
            std::fill(ofGroup.begin(), ofGroup.end(), Sums());
            for (const int i : groups[g])
            {
                std::fill(difference.begin(), difference.end(), DVec(0, 0, 0));
                auto pairSearch = search_.startPairSearch(AnalysisNeighborhoodPositions(x_[i]));
                AnalysisNeighborhoodPair pair;
                while (pairSearch.findNextPair(&pair))
                {
                    const int j = pair.refIndex();
                    if (j == i || atoms_.areExcluded(i, j))
                    {
                        continue;
                    }
                    addPair(i, j, std::sqrt(pair.distance2()), change);
                    const DVec dx(pair.dx()[XX], pair.dx()[YY], pair.dx()[ZZ]);
                    const DVec betweenCentres = dx + toCentre[j] - toCentre[i];
                    for (int k = 0; k < numRadii; k++)
                    {
                        const DVec force = dx * change[k].force;
                        difference[k] += force;
                        ofGroup[k].energy += 0.5 * change[k].energy;
                        for (int d = 0; d < DIM; d++)
                        {
                            ofGroup[k].virial[d] += 0.5 * force[d] * betweenCentres[d];
                        }
                    }
                }
                for (int k = 0; k < numRadii; k++)
                {
                    ofGroup[k].square += difference[k].norm2();
                }
            }
            for (int k = 0; k < numRadii; k++)
            {
                ofGroup[k].setSquares();
                sums[block * numRadii + k].add(ofGroup[k]);
            }
        }
    }

    int numAtoms = 0;
    for (const std::vector<int>& group : groups)
    {
        numAtoms += static_cast<int>(group.size());
    }
    const double                  numSampled = static_cast<double>(groups.size());
    const double                  part       = numSampled / numGroups;
    const double                  toBar      = numGroups * c_presfac / volume_;
    std::vector<FmmLJSplitErrors> errors(numRadii);
    for (int k = 0; k < numRadii; k++)
    {
        Sums sum;
        for (int block = 0; block < c_blocks; block++)
        {
            sum.add(sums[block * numRadii + k]);
        }
        FmmLJSplitErrors& error = errors[k];
        error.energy            = sum.energy / part;
        if (coulombForce_ > 0 && sum.square > 0)
        {
            const double meanSquare = sum.square / numAtoms;
            const double deviation = standardError(sum.square, sum.squareOfSquare, numSampled, part)
                                     * numSampled / numAtoms;
            error.force          = std::sqrt(meanSquare) / coulombForce_;
            error.forceDeviation = error.force * deviation / (2 * meanSquare);
        }
        for (int d = 0; d < DIM && inputrec_.pbcType != PbcType::No; d++)
        {
            error.pressure[d] = toBar * sum.virial[d] / numSampled;
            error.pressureDeviation[d] =
                    toBar * standardError(sum.virial[d], sum.virialSquare[d], numSampled, part);
        }
    }
    return errors;
}

FmmLJSplitMeasurement::FmmLJSplitMeasurement(const t_inputrec&    inputrec,
                                             const gmx_mtop_t&    mtop,
                                             const matrix         box,
                                             ArrayRef<const RVec> x) :
    impl_(std::make_unique<Impl>(inputrec, mtop, box, x))
{
}

FmmLJSplitMeasurement::~FmmLJSplitMeasurement() = default;

double FmmLJSplitMeasurement::coulombForce() const
{
    return impl_->coulombForce_;
}

std::vector<FmmLJSplitErrors> FmmLJSplitMeasurement::errors(const FmmLJSplit&      split,
                                                            ArrayRef<const double> radii,
                                                            const int              mostAtoms) const
{
    return impl_->errors(split, radii, mostAtoms);
}

std::pair<size_t, FmmLJSplitErrors> FmmLJSplitMeasurement::leastRadius(const FmmLJSplit&      split,
                                                                       ArrayRef<const double> radii,
                                                                       const double allowedForce,
                                                                       const double allowedPressure,
                                                                       const int    mostAtoms) const
{
    constexpr int c_more = 4; // halves standard errors
    const int     numAll = impl_->mtop_.natoms;
    for (int numAtoms = mostAtoms;; numAtoms = (numAtoms > numAll / c_more ? numAll : c_more * numAtoms))
    {
        const std::vector<FmmLJSplitErrors> measured = errors(split, radii, numAtoms);
        size_t                              k        = 0;
        std::optional<bool>                 isWithin = false;
        while (k < measured.size() && isWithin == std::make_optional(false))
        {
            isWithin = measured[k].areWithin(allowedForce, allowedPressure);
            k += (isWithin == std::make_optional(false)) ? 1 : 0;
        }
        // Of all atoms there are no standard errors
        if (isWithin || numAtoms >= numAll)
        {
            return { k, measured[std::min(k, measured.size() - 1)] };
        }
        if (c_more * numAtoms >= c_slow)
        {
            std::fprintf(stderr,
                         "Measuring Lennard-Jones in two pair lists at %d atoms\n",
                         std::min(numAll, c_more * numAtoms));
        }
    }
}

} // namespace gmx
