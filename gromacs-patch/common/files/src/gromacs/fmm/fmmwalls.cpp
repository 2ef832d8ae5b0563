/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*! \internal \file
 * \brief
 * Implements forces of walls by several threads
 *
 * \ingroup module_fmm
 */
#include "gmxpre.h"

#include "fmmwalls.h"

#include <algorithm>
#include <array>

#include "gromacs/gmxlib/nrnb.h"
#include "gromacs/mdlib/gmx_omp_nthreads.h"
#include "gromacs/mdlib/wall.h"
#include "gromacs/mdtypes/forceoutput.h"
#include "gromacs/mdtypes/inputrec.h"
#include "gromacs/mdtypes/md_enums.h"
#include "gromacs/utility/exceptions.h"

namespace gmx
{

namespace
{

//! As many parts the atoms are divided into at most
constexpr int c_maxParts = 32;
//! A part of fewer atoms is not worth a thread
constexpr int c_minAtomsOfPart = 500;
//! Up to as many pairs of energy groups, walls included, a part has its own energies
constexpr int c_maxGroupPairs = 64;

//! What a part of the atoms adds to sums
struct Part
{
    std::array<real, c_maxGroupPairs> energies   = { { 0 } };
    matrix                            virial     = { { 0 } };
    real                              dvdl       = 0;
    double                            count      = 0;
    bool                              isComputed = false;
};

//! Returns whether no atom is where do_walls() may end with an error
bool areBetweenWalls(const t_inputrec& ir, const matrix box, const ArrayRef<const RVec> x)
{
    return ir.wall_r_linpot > 0
           || std::all_of(x.begin(),
                          x.end(),
                          [&](const RVec& r)
                          { return r[ZZ] > 0 && (ir.nwall < 2 || r[ZZ] < box[ZZ][ZZ]); });
}

} // namespace

real fmmWalls(const t_inputrec&                    ir,
              const t_forcerec&                    fr,
              const matrix                         box,
              const ArrayRef<const int>            typeA,
              const ArrayRef<const int>            typeB,
              const ArrayRef<const unsigned short> cENER,
              const int                            homenr,
              const int                            numPerturbedAtoms,
              const ArrayRef<const RVec>           x,
              ForceWithVirial*                     forceWithVirial,
              const real                           lambda,
              ArrayRef<real>                       Vlj,
              t_nrnb*                              nrnb)
{
    const int numParts = std::min(
            { gmx_omp_nthreads_get(ModuleMultiThread::Nonbonded), c_maxParts, homenr / c_minAtomsOfPart });
    if (ir.coulombtype != CoulombInteractionType::Fmm || numParts < 2 || Vlj.ssize() > c_maxGroupPairs)
    {
        return do_walls(
                ir, fr, box, typeA, typeB, cENER, homenr, numPerturbedAtoms, x, forceWithVirial, lambda, Vlj, nrnb);
    }

    std::array<Part, c_maxParts> parts;
    auto                         compute = [&](const int p, const bool onlyWithoutErrors)
    {
        const int begin = static_cast<int>(static_cast<int64_t>(homenr) * p / numParts);
        const int size = static_cast<int>(static_cast<int64_t>(homenr) * (p + 1) / numParts) - begin;
        const auto ofPart = [begin, size](auto all)
        { return all.empty() ? all : all.subArray(begin, size); };
        Part& part      = parts[p];
        part.isComputed = !onlyWithoutErrors || areBetweenWalls(ir, box, ofPart(x));
        if (!part.isComputed)
        {
            return;
        }
        ForceWithVirial force(ofPart(forceWithVirial->force_), forceWithVirial->computeVirial_);
        t_nrnb          count;
        part.dvdl = do_walls(ir,
                             fr,
                             box,
                             ofPart(typeA),
                             ofPart(typeB),
                             ofPart(cENER),
                             size,
                             numPerturbedAtoms,
                             ofPart(x),
                             &force,
                             lambda,
                             ArrayRef<real>(part.energies).subArray(0, Vlj.ssize()),
                             &count);
        copy_mat(force.getVirial(), part.virial);
        part.count = count.n[eNR_WALLS];
    };
#pragma omp parallel for schedule(static) num_threads(numParts)
    for (int p = 0; p < numParts; p++)
    {
        try
        {
            compute(p, true);
        }
        GMX_CATCH_ALL_AND_EXIT_WITH_FATAL_ERROR
    }
    for (int p = 0; p < numParts; p++)
    {
        if (!parts[p].isComputed)
        {
            compute(p, false); // one error ends the run, not one of each thread
        }
    }

    real dvdl = 0;
    for (const Part& part : ArrayRef<const Part>(parts).subArray(0, numParts))
    {
        for (int k = 0; k < Vlj.ssize(); k++)
        {
            Vlj[k] += part.energies[k];
        }
        forceWithVirial->addVirialContribution(part.virial);
        nrnb->n[eNR_WALLS] += part.count;
        dvdl += part.dvdl;
    }
    return dvdl;
}

} // namespace gmx
