/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The systems that the tests compute. Everything random comes from a seed and is the same on every machine. */
#ifndef GMXFMM_TESTS_SYSTEMS_H
#define GMXFMM_TESTS_SYSTEMS_H

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "support/system.h"

namespace fmmtest
{

/* Uniform numbers from a seed (splitmix64: the library's random distributions differ between implementations). */
class Random
{
  public:
    explicit Random(std::uint64_t seed) : state_(seed)
    {
    }
    /* in [0, 1) */
    double uniform();
    /* in [-1, 1) */
    double centred()
    {
        return 2 * uniform() - 1;
    }
    /* on the unit sphere */
    Vec3 direction();

  private:
    std::uint64_t state_;
};

struct BoxType
{
    std::string        name;        /* letters and digits, for test names */
    Mat3               shape;       /* of volume 1 */
    Vec3               proportions; /* of numbers of cells along the edges that make cells as even as can be */
    std::array<int, 3> roots;       /* of an octree in this box; zeros if it takes none */
};

/* cubic, rectangular, mildly triclinic, rhombic dodecahedron, truncated octahedron, hexagonal, strongly skewed, and a
 * triclinic one in general orientation. */
const std::vector<BoxType>& boxTypes();

/* The rectangular ones, those with one root and with many, and a long one: 1 : 1 : 7. */
const std::vector<BoxType>& octreeBoxTypes();

Mat3 boxOfVolume(const BoxType& type, double volume);

/* About n cells along each edge, in even proportions. */
std::array<int, 3> evenGrid(const BoxType& type, int n);

/* Crystals with nearest neighbours at distance 1, cells unit cells along each edge, moved as a whole by shift. */
System sodiumChloride(int cells, const Vec3& shift = {0, 0, 0});
System caesiumChloride(int cells, const Vec3& shift = {0, 0, 0});
System zincblende(int cells, const Vec3& shift = {0, 0, 0});

/* n charges +1, -1, +1, ... at random places, no two of them closer than 0.6 of their mean spacing. */
System ions(const Mat3& box, int n, std::uint64_t seed);

/* Adds n charges +1, -1, ... anywhere in a brick, close pairs too. */
void scatter(System* s, int n, const Vec3& corner, const Vec3& edges, Random* random);

/* SPC molecules (-0.82, 0.41, 0.41 e; 0.1 nm, 109.47 degrees) in random places and orientations at the density of
 * water, 33.4 per nm^3; the three pairs of a molecule are excluded. Whole molecules, first atoms in the box. */
System water(const Mat3& box, std::uint64_t seed);

/* 216 molecules of liquid water (tests/data/water216.gro, or the file that GMXFMM_TESTS_WATER names), copied copies
 * times along each edge, molecules as in water(). file: another one, as GROMACS's spc216.gro. */
System liquidCube(int copies, const std::string& file = "");

/* Liquid water in a box of any shape: cut out of that cube repeated, without the molecules that overlap with images of
 * others at the cut. */
System liquidWater(const Mat3& box);

/* The ions of ions() within a ball, without box. */
System droplet(int n, double radius, std::uint64_t seed);

System withoutExclusions(System system);

/* With pairs excluded that a molecule's size does not keep near: far at first, near or far as particles move. */
System withFarExclusions(System system);

/* Each coordinate moved by up to `distance`. */
std::vector<double> moved(std::vector<double> x, double distance, std::uint64_t seed = 3);

/* All particles near the origin's corner of the box. */
std::vector<double> crowded(std::vector<double> x);

} // namespace fmmtest

#endif
