/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Charges with dipoles: systems of them, references in extended precision, and plans. */
#ifndef GMXFMM_TESTS_DIPOLES_H
#define GMXFMM_TESTS_DIPOLES_H

#include <cstdint>
#include <vector>

#include "support/plan.h"
#include "support/system.h"

namespace fmmtest
{

struct DipoleSystem : System
{
    std::vector<double> mu; /* 3 n */
};

struct DipoleSolution : Solution
{
    std::vector<double> gradient; /* 6 n: xx, yy, zz, xy, xz, yz of d E_b / d x_a */
    std::vector<double> torque;   /* 3 n */
    double              energyNear = 0, energyFar = 0;
};

/* A dipole for each particle, components in [-size, size); every third particle is a dipole alone, every fourth a
 * charge alone. */
DipoleSystem withDipoles(const System& system, double size, std::uint64_t seed);

/* Ewald sums in long double, in boxes of any shape, without excluded pairs at their nearest image (a plain sum of Smith
 * 1998, equations 2.8 to 2.20); the virial by differences of its energy. alpha: the splitting, on which nothing must
 * depend; 0: a good one. */
DipoleSolution dipoleEwald(const DipoleSystem& system, Boundary boundary = Boundary::Tinfoil, double alpha = 0);

/* All pairs without a box, in long double; the virial is -1/2 sum of r F. */
DipoleSolution dipoleDirect(const DipoleSystem& system);

/* A plan with dipoles; calls that must succeed. With options.array_type = SINGLE all numbers are rounded. */
class DipolePlan : public Plan
{
  public:
    DipolePlan(const DipoleSystem& system, const gmxfmm_options& options);
    void           setDipoles(const std::vector<double>& mu);
    DipoleSolution solution(const std::vector<double>& x);

  private:
    std::size_t n_;
    bool        floats_;
};

DipoleSolution solveDipoles(const DipoleSystem& system, const gmxfmm_options& options);

/* Box, positions and dipoles under the proper rotation by angle about axis. */
DipoleSystem rotatedDipoles(const DipoleSystem& system, const Vec3& axis, double angle);

} // namespace fmmtest

#endif
