/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Groups of atoms at random, and their Lennard-Jones sums by all pairs of sites and all images. */
#ifndef GMXFMM_TESTS_SITES_H
#define GMXFMM_TESTS_SITES_H

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gmxfmm_sites.h"
#include "support/system.h"

namespace fmmtest
{

/* Arrays of a gmxfmm_sites_system, positions, and the box. */
struct Groups
{
    std::vector<double> x, weight, c6, c12;
    std::vector<int>    start       = {0}, atom, type;
    int                 numTypes    = 1;
    int                 numPeriodic = 3;
    Mat3                box         = {};
    std::vector<int>    exclusionStart, exclusion; /* empty: none */
    gmxfmm_lj_range     outer = {GMXFMM_LJ_FORCE_SWITCH, 0.9, 1.2}, inner = {GMXFMM_LJ_FORCE_SWITCH, 0.55, 0.8};

    int numGroups() const
    {
        return static_cast<int>(type.size());
    }
    int numAtoms() const
    {
        return static_cast<int>(x.size() / 3);
    }
    const double* boxOrNull() const
    {
        return numPeriodic > 0 ? box.data() : nullptr;
    }
    gmxfmm_sites_system system(gmxfmm_precision precision, gmxfmm_device device = GMXFMM_CPU, int threads = 1) const;
    /* A group of one atom. */
    void add(const Vec3& at, int ofType);
    /* Rows of groups that do not interact. */
    void exclude(const std::vector<std::vector<int>>& rows);
    bool excludes(std::size_t a, std::size_t b) const;
};

/* num groups of one to four atoms, within 0.12 of the first; atoms without a group between them. Atoms are in the box
 * one by one, so that groups lie across its faces. */
Groups randomGroups(const Mat3& box, int numPeriodic, int num, int numTypes, std::uint64_t seed);

/* Atoms of molecules, each a group, without an inner range: num chains of `length` atoms, 0.15 from each other, up to
 * three neighbours of which are excluded. All others are 0.22 or more from each other. */
Groups randomChains(const Mat3& box, int numPeriodic, int num, int length, int numTypes, std::uint64_t seed);

/* Those rows. */
std::vector<std::vector<int>> chainExclusions(int num, int length);

struct SiteSums
{
    std::vector<double>   force;
    double                energy = 0;
    std::array<double, 9> virial = {};
    std::int64_t          within = 0; /* pairs within the cut-off, each counted twice */
};

SiteSums sumOfSites(const Groups& g);

/* Boxes as GROMACS writes them, whose shortest vector has the length 1. */
struct SitesBox
{
    std::string name;
    int         numPeriodic;
    Mat3        shape;
};

const std::vector<SitesBox>& sitesBoxes();

Mat3 scaled(const Mat3& box, double factor);

} // namespace fmmtest

#endif
