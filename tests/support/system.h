/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A set of point charges, and what a solver says about it. */
#ifndef GMXFMM_TESTS_SYSTEM_H
#define GMXFMM_TESTS_SYSTEM_H

#include <array>
#include <cstddef>
#include <vector>

namespace fmmtest
{

using Vec3 = std::array<double, 3>;
using Mat3 = std::array<double, 9>; /* row-major; a box has its vectors as rows */

enum class Boundary
{
    Tinfoil,
    Vacuum,
    Open
};

struct System
{
    Mat3                          box = {0, 0, 0, 0, 0, 0, 0, 0, 0}; /* unused when open */
    std::vector<double>           x;                                 /* 3 n */
    std::vector<double>           q;                                 /* n */
    std::vector<std::vector<int>> excluded;                          /* empty, or one list a particle, both ways */

    std::size_t size() const
    {
        return q.size();
    }
    Vec3 position(std::size_t i) const
    {
        return {x[3 * i], x[3 * i + 1], x[3 * i + 2]};
    }
    void add(const Vec3& r, double charge);
    /* Another one, moved by `by`, without its exclusions. */
    void add(const System& other, const Vec3& by);
    /* Excludes the pair i, j. */
    void exclude(std::size_t i, std::size_t j);
};

struct Solution
{
    std::vector<double> potential; /* n */
    std::vector<double> field;     /* 3 n, -grad potential */
    std::vector<double> force;     /* 3 n, q times field */
    double              energy = 0;
    Mat3                virial = {0, 0, 0, 0, 0, 0, 0, 0, 0}; /* half the strain derivative of the energy */
};

/* Allocates the arrays of a solution, zeroed. */
Solution emptySolution(std::size_t n);

/* Fills in force and energy from potential and field. */
void finishSolution(const System& system, Solution* solution);

double volume(const Mat3& box);

/* Rows a*, b*, c* with a . a* = 1 and a . b* = 0: fractional coordinates are x . a*, x . b*, x . c*. */
Mat3 reciprocal(const Mat3& box);

/* v m: the combination of the rows of m. */
Vec3 rowTimes(const Vec3& v, const Mat3& m);

/* A lattice by its shortest basis, for nearest images in boxes of any shape. */
class Lattice
{
  public:
    explicit Lattice(const Mat3& box);
    /* The shortest of d plus all lattice vectors. */
    Vec3 nearest(const Vec3& d) const;

  private:
    Mat3 basis_;
    Mat3 reciprocal_;
};

/* The particle whose nearest image is farthest from particle i. */
std::size_t farthestFrom(const System& system, std::size_t i);

/* Distance of the nearest images of two particles. */
double nearestDistance(const System& system, std::size_t i, std::size_t j);

/* x (1 + strain), box and positions alike. */
System strained(const System& system, const Mat3& strain);

/* Box and positions under the proper rotation by angle about axis. */
System rotated(const System& system, const Vec3& axis, double angle);

} // namespace fmmtest

#endif
