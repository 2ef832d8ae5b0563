/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements what the split of Lennard-Jones changes, and how it is measured
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmljspliterrors.h"

#include <cmath>
#include <cstdio>

#include <algorithm>
#include <numeric>
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

//! A distance with powers of it
struct Distance
{
    explicit Distance(double distance2) :
        r(std::sqrt(distance2)), inverse(1 / r), minusSix(1 / (distance2 * distance2 * distance2))
    {
    }
    double r, inverse, minusSix;
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

    PairTerm operator()(const Distance& distance, double c6, double c12) const
    {
        if (distance.r >= cutoff_)
        {
            return {};
        }
        const PairTerm repulsion =
                modified(distance, 12, distance.minusSix * distance.minusSix, repulsion_, shift12_);
        const PairTerm dispersion = modified(distance, 6, distance.minusSix, dispersion_, shift6_);
        return { c12 * repulsion.force - c6 * dispersion.force,
                 c12 * repulsion.energy - c6 * dispersion.energy };
    }

private:
    //! The modified potential \p plain = r^-p
    PairTerm modified(const Distance& distance, double p, double plain, const FmmForceSwitch& constants, double atCutoff) const
    {
        const double t          = std::max(0.0, distance.r - start_);
        const double plainForce = p * plain * distance.inverse;
        switch (modifier_)
        {
            case InteractionModifiers::ForceSwitch:
                return { (plainForce + p * t * t * (constants.c2 + constants.c3 * t)) * distance.inverse,
                         plain - p * t * t * t * (constants.c2 / 3 + constants.c3 / 4 * t)
                                 + constants.shift };
            case InteractionModifiers::PotSwitch:
            {
                const double range = cutoff_ - start_;
                const double s     = t / range;
                const double value = 1 - s * s * s * (10 - 15 * s + 6 * s * s);
                const double slope = -30 * s * s * (1 - s) * (1 - s) / range;
                return { (plainForce * value - plain * slope) * distance.inverse, plain * value };
            }
            case InteractionModifiers::PotShift:
                return { plainForce * distance.inverse, plain - atCutoff };
            default: return { plainForce * distance.inverse, plain };
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

//! Returns numbers below \p number in an order by chance
std::vector<int> shuffled(const int number)
{
    std::mt19937     random(2015);
    std::vector<int> order(number);
    std::iota(order.begin(), order.end(), 0);
    for (int i = 0; i + 1 < number; i++)
    {
        std::swap(order[i], order[i + static_cast<int>(random() % (number - i))]);
    }
    return order;
}

//! Returns for each atom of a kind of molecule the atoms that constraints keep at their distance to it
std::vector<std::vector<int>> constrainedPartners(const gmx_moltype_t& moltype)
{
    std::vector<std::vector<int>> partners(moltype.atoms.nr);
    for (const auto& [a, b] : constrainedPairs(moltype))
    {
        partners[a].push_back(b);
        partners[b].push_back(a);
    }
    return partners;
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

//! Returns whether a value with a standard error is within what is allowed
static std::optional<bool> isWithin(const double value, const double deviation, const double allowed)
{
    if (std::abs(value) - c_certain * deviation > allowed)
    {
        return false;
    }
    return std::abs(value) + c_certain * deviation <= allowed ? std::make_optional(true) : std::nullopt;
}

std::optional<bool> bothHold(const std::optional<bool> one, const std::optional<bool> other)
{
    if (one == std::make_optional(false) || other == std::make_optional(false))
    {
        return false;
    }
    return one && other ? std::make_optional(true) : std::nullopt;
}

std::optional<bool> FmmLJSplitErrors::forcesAreWithin(const double allowed) const
{
    return isWithin(force, forceDeviation, allowed);
}

std::optional<bool> FmmLJSplitErrors::pressureIsWithin(const std::array<double, 3>& expected,
                                                       const double                 allowed) const
{
    std::optional<bool> result = true;
    for (int d = 0; d < DIM; d++)
    {
        result = bothHold(result, isWithin(pressure[d] - expected[d], pressureDeviation[d], allowed));
    }
    return result;
}

double FmmLJSplitErrors::pressureUncertainty() const
{
    return c_certain * *std::max_element(pressureDeviation.begin(), pressureDeviation.end());
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
    Impl(const FmmLJSplit&    split,
         const t_inputrec&    inputrec,
         const gmx_mtop_t&    mtop,
         const matrix         box,
         ArrayRef<const RVec> x);
    double                        farthestExclusion() const;
    std::vector<FmmLJSplitErrors> errors(ArrayRef<const double> radii, int mostAtoms) const;

    const gmx_mtop_t& mtop_;
    double            coulombForce_;

private:
    //! Potentials with the cut-off that was asked for, and with those of some radii
    struct Potentials
    {
        Potentials(const FmmLJRange& whole, ArrayRef<const double> radii);
        LennardJones              full;
        std::vector<LennardJones> shorter;
    };
    //! What a group has with each radius: forces on its atoms and its site, and sums
    struct OfGroup
    {
        explicit OfGroup(size_t numRadii) : siteForces(numRadii), sums(numRadii) {}
        //! Starts with a group of so many atoms
        void clear(size_t numAtoms);
        //! Adds what a pair has with a radius: its force, and half of the rest
        void addPair(size_t k, const PairTerm& change, const DVec& dx, const DVec& betweenCentres, DVec* force);
        //! Spreads the forces on the site to atoms, and finishes the sums
        void finish(ArrayRef<const double> weights);

        std::vector<DVec> forces; // by atoms, then radii
        std::vector<DVec> siteForces;
        std::vector<Sums> sums;
    };

    double measureCoulombForce();
    //! Sets sites, and vectors from atoms and sites to the centres of mass of rigid groups
    void setSites();
    //! Returns groups of about so many atoms
    std::vector<int> sample(int mostAtoms) const;
    //! Adds what changes in pairs of atoms of a group
    void addPairsOfAtoms(int group, const Potentials& potentials, OfGroup* ofGroup) const;
    //! Adds what its site has
    void addPairsOfSites(int group, const Potentials& potentials, OfGroup* ofGroup) const;
    //! Returns errors by sums over some groups
    FmmLJSplitErrors errorsOfSums(const Sums& sums, double numSampled) const;

    const FmmLJSplit&          split_;
    const t_inputrec&          inputrec_;
    ArrayRef<const RVec>       x_;
    AllAtoms                   atoms_;
    double                     volume_;
    std::vector<RVec>          sites_;
    std::vector<DVec>          toCentre_, siteToCentre_;
    t_pbc                      pbc_;
    AnalysisNeighborhood       neighborhood_;
    AnalysisNeighborhoodSearch search_, siteSearch_;
};

FmmLJSplitMeasurement::Impl::Impl(const FmmLJSplit&    split,
                                  const t_inputrec&    inputrec,
                                  const gmx_mtop_t&    mtop,
                                  const matrix         box,
                                  ArrayRef<const RVec> x) :
    mtop_(mtop),
    split_(split),
    inputrec_(inputrec),
    x_(x),
    atoms_(mtop),
    volume_(fmmVolumeOfAtoms(inputrec, mtop, box))
{
    set_pbc(&pbc_, inputrec.pbcType, box);
    setSites();
    neighborhood_.setCutoff(static_cast<real>(split.settings().whole.cutoff));
    const auto search = [this](ArrayRef<const RVec> places)
    {
        return neighborhood_.initSearch(&pbc_,
                                        AnalysisNeighborhoodPositions(as_rvec_array(places.data()),
                                                                      static_cast<int>(places.size())));
    };
    search_       = search(x);
    siteSearch_   = search(sites_);
    coulombForce_ = measureCoulombForce();
}

FmmLJSplitMeasurement::Impl::Potentials::Potentials(const FmmLJRange& whole, ArrayRef<const double> radii) :
    full(whole.modifier, whole.cutoff, whole.start)
{
    for (const double radius : radii)
    {
        shorter.emplace_back(InteractionModifiers::ForceSwitch, radius, radius - FmmLJSplit::c_switchRange);
    }
}

void FmmLJSplitMeasurement::Impl::OfGroup::clear(const size_t numAtoms)
{
    forces.assign(sums.size() * numAtoms, DVec(0, 0, 0));
    std::fill(siteForces.begin(), siteForces.end(), DVec(0, 0, 0));
    std::fill(sums.begin(), sums.end(), Sums());
}

void FmmLJSplitMeasurement::Impl::OfGroup::addPair(const size_t    k,
                                                   const PairTerm& change,
                                                   const DVec&     dx,
                                                   const DVec&     betweenCentres,
                                                   DVec*           force)
{
    const DVec ofPair = dx * change.force;
    *force += ofPair;
    sums[k].energy += 0.5 * change.energy;
    for (int d = 0; d < DIM; d++)
    {
        sums[k].virial[d] += 0.5 * ofPair[d] * betweenCentres[d];
    }
}

void FmmLJSplitMeasurement::Impl::OfGroup::finish(ArrayRef<const double> weights)
{
    const size_t numRadii = sums.size();
    for (size_t k = 0; k < numRadii; k++)
    {
        for (size_t a = 0; a < weights.size(); a++)
        {
            sums[k].square += (forces[a * numRadii + k] + siteForces[k] * weights[a]).norm2();
        }
        sums[k].setSquares();
    }
}

double FmmLJSplitMeasurement::Impl::measureCoulombForce()
{
    const double     forceAtCutoff = dampedCoulombForce(split_.settings().whole.cutoff);
    std::vector<int> sample        = shuffled(mtop_.natoms);
    sample.resize(std::min(mtop_.natoms, c_coulombAtoms));
    double sum = 0;
    for (const int i : sample)
    {
        DVec force      = { 0, 0, 0 };
        auto pairSearch = search_.startPairSearch(AnalysisNeighborhoodPositions(x_[i]));
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

void FmmLJSplitMeasurement::Impl::setSites()
{
    toCentre_.assign(mtop_.natoms, DVec(0, 0, 0));
    int group = 0, first = 0;
    for (const gmx_molblock_t& molblock : mtop_.molblock)
    {
        const gmx_moltype_t& moltype  = mtop_.moltype[molblock.type];
        const auto           partners = constrainedPartners(moltype);
        for (int m = 0; m < molblock.nmol; m++, first += moltype.atoms.nr)
        {
            for (const std::vector<int>& atoms : split_.groupsOf(molblock.type).atoms)
            {
                const double*           weights = split_.weights().data() + split_.start()[group++];
                const std::vector<int>& fixed   = partners[atoms[0]];
                std::vector<DVec>       places; // seen from the heavy atom
                DVec                    site(0, 0, 0), centre(0, 0, 0);
                double                  mass    = 0;
                bool                    isRigid = atoms.size() > 1;
                for (const int a : atoms)
                {
                    rvec dx;
                    pbc_dx(&pbc_, x_[first + a], x_[first + atoms[0]], dx);
                    places.emplace_back(dx[XX], dx[YY], dx[ZZ]);
                    site += places.back() * weights[places.size() - 1];
                    centre += places.back() * atoms_.mass[first + a];
                    mass += atoms_.mass[first + a];
                    isRigid = isRigid
                              && (a == atoms[0]
                                  || std::find(fixed.begin(), fixed.end(), a) != fixed.end());
                }
                sites_.push_back(x_[first + atoms[0]] + site.toRVec());
                siteToCentre_.emplace_back(0, 0, 0);
                if (isRigid && mass > 0)
                {
                    centre *= 1 / mass;
                    siteToCentre_.back() = centre - site;
                    for (size_t k = 0; k < atoms.size(); k++)
                    {
                        toCentre_[first + atoms[k]] = centre - places[k];
                    }
                }
            }
        }
    }
}

double FmmLJSplitMeasurement::Impl::farthestExclusion() const
{
    real farthest2 = 0;
    int  first     = 0; // group of a molecule
    for (const gmx_molblock_t& molblock : mtop_.molblock)
    {
        const FmmLJGroups& groups = split_.groupsOf(molblock.type);
        for (int m = 0; m < molblock.nmol; m++, first += static_cast<int>(groups.atoms.size()))
        {
            for (const auto& [a, b] : groups.excluding)
            {
                rvec dx;
                pbc_dx(&pbc_, sites_[first + a], sites_[first + b], dx);
                farthest2 = std::max(farthest2, norm2(dx));
            }
        }
    }
    return std::sqrt(farthest2);
}

std::vector<int> FmmLJSplitMeasurement::Impl::sample(const int mostAtoms) const
{
    std::vector<int> groups   = shuffled(split_.numGroups());
    int              numAtoms = 0;
    for (size_t g = 0; g < groups.size(); g++)
    {
        if (numAtoms >= mostAtoms)
        {
            groups.resize(g);
            break;
        }
        numAtoms += split_.start()[groups[g] + 1] - split_.start()[groups[g]];
    }
    return groups;
}

void FmmLJSplitMeasurement::Impl::addPairsOfAtoms(const int         group,
                                                  const Potentials& potentials,
                                                  OfGroup*          ofGroup) const
{
    const int    firstAtom = split_.start()[group];
    const size_t numRadii  = potentials.shorter.size();
    for (int a = firstAtom; a < split_.start()[group + 1]; a++)
    {
        const int i          = split_.atoms()[a];
        DVec*     forces     = &ofGroup->forces[(a - firstAtom) * numRadii];
        auto      pairSearch = search_.startPairSearch(AnalysisNeighborhoodPositions(x_[i]));
        AnalysisNeighborhoodPair pair;
        while (pairSearch.findNextPair(&pair))
        {
            const int   j = pair.refIndex();
            const auto& lj =
                    mtop_.ffparams.iparams[atoms_.type[i] * mtop_.ffparams.atnr + atoms_.type[j]].lj;
            if (j == i || (lj.c6 == 0 && lj.c12 == 0) || atoms_.areExcluded(i, j))
            {
                continue;
            }
            const Distance distance(pair.distance2());
            const PairTerm full = potentials.full(distance, lj.c6, lj.c12);
            const DVec     dx(pair.dx()[XX], pair.dx()[YY], pair.dx()[ZZ]);
            const DVec     betweenCentres = dx + toCentre_[j] - toCentre_[i];
            for (size_t k = 0; k < numRadii; k++)
            {
                const PairTerm shorter = potentials.shorter[k](distance, lj.c6, lj.c12);
                ofGroup->addPair(k,
                                 { shorter.force - full.force, shorter.energy - full.energy },
                                 dx,
                                 betweenCentres,
                                 &forces[k]);
            }
        }
    }
}

void FmmLJSplitMeasurement::Impl::addPairsOfSites(const int         group,
                                                  const Potentials& potentials,
                                                  OfGroup*          ofGroup) const
{
    auto pairSearch = siteSearch_.startPairSearch(AnalysisNeighborhoodPositions(sites_[group]));
    AnalysisNeighborhoodPair pair;
    while (pairSearch.findNextPair(&pair))
    {
        const int other = pair.refIndex();
        if (other == group)
        {
            continue;
        }
        const int      entry = split_.types()[group] * split_.numTypes() + split_.types()[other];
        const double   c6 = split_.c6()[entry], c12 = split_.c12()[entry];
        const Distance distance(pair.distance2());
        const PairTerm full = potentials.full(distance, c6, c12);
        const DVec     dx(pair.dx()[XX], pair.dx()[YY], pair.dx()[ZZ]);
        const DVec     betweenCentres = dx + siteToCentre_[other] - siteToCentre_[group];
        for (size_t k = 0; k < potentials.shorter.size(); k++)
        {
            const PairTerm shorter = potentials.shorter[k](distance, c6, c12);
            ofGroup->addPair(k,
                             { full.force - shorter.force, full.energy - shorter.energy },
                             dx,
                             betweenCentres,
                             &ofGroup->siteForces[k]);
        }
    }
}

std::vector<FmmLJSplitErrors> FmmLJSplitMeasurement::Impl::errors(ArrayRef<const double> radii,
                                                                  const int mostAtoms) const
{
    const Potentials       potentials(split_.settings().whole, radii);
    const std::vector<int> groups   = sample(mostAtoms);
    const size_t           numRadii = radii.size();

    // Sums of a block have an order of their own, whatever the number of threads
    constexpr int     c_blocks = 256;
    std::vector<Sums> sums(c_blocks * numRadii);
#pragma omp parallel for schedule(dynamic) num_threads(gmx_omp_get_max_threads())
    for (int block = 0; block < c_blocks; block++)
    {
        OfGroup ofGroup(numRadii);
        for (size_t g = block; g < groups.size(); g += c_blocks)
        {
            const int    first    = split_.start()[groups[g]];
            const size_t numAtoms = split_.start()[groups[g] + 1] - first;
            ofGroup.clear(numAtoms);
            addPairsOfAtoms(groups[g], potentials, &ofGroup);
            addPairsOfSites(groups[g], potentials, &ofGroup);
            ofGroup.finish(split_.weights().subArray(first, numAtoms));
            for (size_t k = 0; k < numRadii; k++)
            {
                sums[block * numRadii + k].add(ofGroup.sums[k]);
            }
        }
    }

    std::vector<FmmLJSplitErrors> errors;
    for (size_t k = 0; k < numRadii; k++)
    {
        Sums sum;
        for (int block = 0; block < c_blocks; block++)
        {
            sum.add(sums[block * numRadii + k]);
        }
        errors.push_back(errorsOfSums(sum, static_cast<double>(groups.size())));
        errors.back().energy -= split_.excludedEnergy(radii[k]);
    }
    return errors;
}

FmmLJSplitErrors FmmLJSplitMeasurement::Impl::errorsOfSums(const Sums& sum, const double numSampled) const
{
    FmmLJSplitErrors error;
    const double     numGroups = split_.numGroups();
    const double     part      = numSampled / numGroups;
    if (numSampled == 0)
    {
        return error;
    }
    error.energy = sum.energy / part;
    if (coulombForce_ > 0 && sum.square > 0)
    {
        // Of all atoms, those without Lennard-Jones included
        const double perAtom    = numGroups / mtop_.natoms;
        const double meanSquare = perAtom * sum.square / numSampled;
        error.force             = std::sqrt(meanSquare) / coulombForce_;
        error.forceDeviation    = error.force * perAtom
                               * standardError(sum.square, sum.squareOfSquare, numSampled, part)
                               / (2 * meanSquare);
    }
    const double toBar = numGroups * c_presfac / volume_;
    for (int d = 0; d < DIM && inputrec_.pbcType != PbcType::No; d++)
    {
        error.pressure[d] = toBar * sum.virial[d] / numSampled;
        error.pressureDeviation[d] =
                toBar * standardError(sum.virial[d], sum.virialSquare[d], numSampled, part);
    }
    return error;
}

FmmLJSplitMeasurement::FmmLJSplitMeasurement(const FmmLJSplit&    split,
                                             const t_inputrec&    inputrec,
                                             const gmx_mtop_t&    mtop,
                                             const matrix         box,
                                             ArrayRef<const RVec> x) :
    impl_(std::make_unique<Impl>(split, inputrec, mtop, box, x))
{
}

FmmLJSplitMeasurement::~FmmLJSplitMeasurement() = default;

double FmmLJSplitMeasurement::coulombForce() const
{
    return impl_->coulombForce_;
}

double FmmLJSplitMeasurement::farthestExclusion() const
{
    return impl_->farthestExclusion();
}

std::vector<FmmLJSplitErrors> FmmLJSplitMeasurement::errors(ArrayRef<const double> radii,
                                                            const int              mostAtoms) const
{
    return impl_->errors(radii, mostAtoms);
}

std::pair<size_t, FmmLJSplitErrors> FmmLJSplitMeasurement::firstRadius(ArrayRef<const double> radii,
                                                                       const Decision& isGoodEnough,
                                                                       const int mostAtoms) const
{
    constexpr int c_more = 4; // halves standard errors
    const int     numAll = impl_->mtop_.natoms;
    size_t        first  = 0; // those before are not good enough
    for (int numAtoms = mostAtoms;; numAtoms = (numAtoms > numAll / c_more ? numAll : c_more * numAtoms))
    {
        const std::vector<FmmLJSplitErrors> measured =
                errors(radii.subArray(first, radii.size() - first), numAtoms);
        size_t              k        = 0;
        std::optional<bool> decision = isGoodEnough(measured[0]);
        while (decision == std::make_optional(false) && ++k < measured.size())
        {
            decision = isGoodEnough(measured[k]);
        }
        // Of all atoms there are no standard errors
        if (decision || numAtoms >= numAll)
        {
            return { first + k, measured[std::min(k, measured.size() - 1)] };
        }
        first += k;
        if (c_more * numAtoms >= c_slow)
        {
            std::fprintf(stderr,
                         "Measuring what the split of Lennard-Jones changes at %d atoms\n",
                         std::min(numAll, c_more * numAtoms));
        }
    }
}

} // namespace gmx
