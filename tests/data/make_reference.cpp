/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes the project's own reference systems, files NAME.txt.gz with potential and field, by the slow sums of
 * tests/support:
 *   make_reference FOLDER
 */
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>

#include <zlib.h>

#include "support/direct.h"
#include "support/ewald.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

/* Splitting of the sums: not what tests take by default, so that these files are not their own sums once more. */
constexpr double splitting = 1.2;

void write(const std::string& folder, const std::string& name, const System& s, Boundary boundary)
{
    const bool     open = boundary == Boundary::Open;
    const Solution r    = open ? directSum(s) : ewald(s, boundary, splitting);
    gzFile         file = gzopen((folder + "/" + name + ".txt.gz").c_str(), "wb");
    if (!file)
    {
        throw std::runtime_error("cannot write into " + folder);
    }
    gzprintf(file, "# %s, by tests/data/make_reference.cpp\n# columns: x y z q potential fx fy fz\n", name.c_str());
    if (open)
    {
        gzprintf(file, "# periodic: 0 0 0\n");
    }
    else
    {
        gzprintf(file, "# box:");
        for (double component : s.box)
        {
            gzprintf(file, " %.17g", component);
        }
        gzprintf(file, "\n# periodic: 1 1 1\n# boundary: %s\n", boundary == Boundary::Vacuum ? "vacuum" : "tinfoil");
    }
    for (std::size_t i = 0; i < s.size(); i++)
    {
        const double* x = &s.x[3 * i];
        const double* e = &r.field[3 * i];
        gzprintf(file, "%.17g %.17g %.17g %.17g %.17g %.17g %.17g %.17g\n", x[0], x[1], x[2], s.q[i], r.potential[i],
                 e[0], e[1], e[2]);
    }
    if (gzclose(file) != Z_OK)
    {
        throw std::runtime_error("cannot write into " + folder);
    }
}

const BoxType& boxType(const std::string& name)
{
    for (const BoxType& type : boxTypes())
    {
        if (type.name == name)
        {
            return type;
        }
    }
    throw std::runtime_error("no box is called " + name);
}

/* A crystal whose ions are off their places by up to `most` in each direction. */
System displaced(System s, double most, std::uint64_t seed)
{
    Random random(seed);
    for (double& x : s.x)
    {
        x += most * random.centred();
    }
    return s;
}

/* A crystal of which one ion has moved: the forces are those of a dipole, small against those between neighbours. */
System oneMoved(System s)
{
    const double by[3] = {0.07, -0.04, 0.11};
    for (std::size_t d = 0; d < 3; d++)
    {
        s.x[3 * 100 + d] += by[d];
    }
    return s;
}

/* Two walls of charges, one of each sign, and a neutral cloud between them. */
System walls()
{
    System s;
    Random random(3);
    for (int i = 0; i < 400; i++)
    {
        const double y = 0.5 * (i / 2 / 10), z = 0.5 * (i / 2 % 10);
        s.add({i % 2 ? 0.0 : 10.0, y, z}, i % 2 ? -1 : 1);
    }
    const System cloud = ions({8, 0, 0, 0, 8, 0, 0, 0, 4}, 400, 5);
    for (std::size_t i = 0; i < cloud.size(); i++)
    {
        const Vec3 r = cloud.position(i);
        s.add({r[0] + 1, r[1] + 1, r[2] + 0.5}, cloud.q[i]);
    }
    return s;
}

System positive(System s)
{
    for (double& q : s.q)
    {
        q = std::fabs(q);
    }
    return s;
}

} // namespace

int main(int argc, char** argv)
{
    if (argc != 2)
    {
        std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    const std::string folder = argv[1];
    const System      melt   = ions({11, 0, 0, 0, 11, 0, 0, 0, 11}, 1331, 1);
    write(folder, "own-melt_1331", melt, Boundary::Tinfoil);
    write(folder, "own-melt_1331-vacuum", melt, Boundary::Vacuum);
    write(folder, "own-skewed_228", ions(boxOfVolume(boxType("Skewed"), 228), 228, 2), Boundary::Tinfoil);
    write(folder, "own-turned_228", ions(boxOfVolume(boxType("Turned"), 228), 228, 3), Boundary::Tinfoil);
    write(folder, "own-crystal_1000", sodiumChloride(5), Boundary::Tinfoil);
    write(folder, "own-crystal_displaced_1000", displaced(sodiumChloride(5), 0.05, 4), Boundary::Tinfoil);
    write(folder, "own-crystal_one_moved_512", oneMoved(sodiumChloride(4)), Boundary::Tinfoil);
    write(folder, "own-walls_800", walls(), Boundary::Open);
    write(folder, "own-ball_500", positive(droplet(500, 5, 1)), Boundary::Open);
    return 0;
}
