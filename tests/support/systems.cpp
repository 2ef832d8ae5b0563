/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "support/systems.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <stdexcept>

namespace fmmtest
{

namespace
{

const double pi = 3.14159265358979323846;

const double oxygenCharge = -0.82, hydrogenCharge = 0.41; /* SPC */

Vec3 plus(const Vec3& a, const Vec3& b, double factor = 1)
{
    return {a[0] + factor * b[0], a[1] + factor * b[1], a[2] + factor * b[2]};
}

double length2(const Vec3& v)
{
    return v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
}

Mat3 scaled(Mat3 box, double factor)
{
    for (double& component : box)
    {
        component *= factor;
    }
    return box;
}

BoxType unitVolume(const std::string&        name,
                   const Mat3&               box,
                   const Vec3&               proportions,
                   const std::array<int, 3>& roots = {0, 0, 0})
{
    return {name, scaled(box, 1 / std::cbrt(volume(box))), proportions, roots};
}

Mat3 turned(const Mat3& box)
{
    System carrier;
    carrier.box = box;
    return rotated(carrier, {1, 2, -1.5}, 0.8).box;
}

/* Places of a unit cell repeated along the edges of a cube. */
System
crystal(int cells, double edge, const std::vector<Vec3>& places, const std::vector<double>& charges, const Vec3& shift)
{
    System s;
    s.box = {cells * edge, 0, 0, 0, cells * edge, 0, 0, 0, cells * edge};
    for (int i = 0; i < cells * cells * cells; i++)
    {
        const Vec3 corner = {static_cast<double>(i % cells), static_cast<double>(i / cells % cells),
                             static_cast<double>(i / (cells * cells))};
        for (std::size_t k = 0; k < places.size(); k++)
        {
            s.add(plus(shift, plus(corner, places[k]), edge), charges[k]);
        }
    }
    return s;
}

bool tooClose(const Lattice* lattice, const std::vector<Vec3>& placed, const Vec3& r, double distance)
{
    for (const Vec3& other : placed)
    {
        const Vec3 d = plus(r, other, -1);
        if (length2(lattice ? lattice->nearest(d) : d) < distance * distance)
        {
            return true;
        }
    }
    return false;
}

Vec3 somewhere(const Mat3& box, Random* random)
{
    const double a = random->uniform(), b = random->uniform(), c = random->uniform();
    return rowTimes({a, b, c}, box);
}

void excludeMolecule(System* s, std::size_t first)
{
    s->exclude(first, first + 1);
    s->exclude(first, first + 2);
    s->exclude(first + 1, first + 2);
}

/* The two hydrogen atoms of a molecule at the origin, in a random orientation. */
void orient(Random* random, Vec3* h1, Vec3* h2)
{
    const double half = 0.5 * std::acos(-1.0 / 3.0), bond = 0.1;
    const Vec3   u = random->direction();
    Vec3         v;
    do
    {
        v              = random->direction();
        const double p = u[0] * v[0] + u[1] * v[1] + u[2] * v[2];
        v              = plus(v, u, -p);
    } while (length2(v) < 0.01);
    const double n = std::sqrt(length2(v));
    for (std::size_t d = 0; d < 3; d++)
    {
        (*h1)[d] = bond * (std::cos(half) * u[d] + std::sin(half) * v[d] / n);
        (*h2)[d] = bond * (std::cos(half) * u[d] - std::sin(half) * v[d] / n);
    }
}

} // namespace

double Random::uniform()
{
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z               = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z               = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    z               = z ^ (z >> 31);
    return static_cast<double>(z >> 11) * 0x1p-53;
}

Vec3 Random::direction()
{
    const double z = centred(), angle = 2 * pi * uniform(), r = std::sqrt(1 - z * z);
    return {r * std::cos(angle), r * std::sin(angle), z};
}

const std::vector<BoxType>& boxTypes()
{
    const double                      r2 = std::sqrt(2.0), r3 = std::sqrt(3.0), r6 = std::sqrt(6.0);
    static const std::vector<BoxType> types = {
        unitVolume("Cubic", {1, 0, 0, 0, 1, 0, 0, 0, 1}, {1, 1, 1}, {1, 1, 1}),
        unitVolume("Rectangular", {1, 0, 0, 0, 1.3, 0, 0, 0, 1.9}, {0.74, 0.96, 1.41}, {2, 3, 4}),
        unitVolume("Triclinic", {1, 0, 0, 0.2, 0.95, 0, -0.15, 0.25, 1.1}, {1, 1, 1}),
        unitVolume("Dodecahedron", {1, 0, 0, 0, 1, 0, 0.5, 0.5, 0.5 * r2}, {1, 1, 1}),
        unitVolume("Octahedron", {1, 0, 0, 1.0 / 3, 2 * r2 / 3, 0, -1.0 / 3, r2 / 3, r6 / 3}, {1, 1, 1}),
        unitVolume("Hexagonal", {1, 0, 0, 0.5, 0.5 * r3, 0, 0, 0, 1.2}, {0.94, 0.94, 1.13}),
        unitVolume("Skewed", {4, 0, 0, 2, 2, 0, 2, 2, 2}, {1, 1, 1}),
        unitVolume("Turned", turned({1, 0, 0, 0.3, 0.9, 0, -0.2, 0.3, 1.2}), {0.94, 0.9, 1.18}),
    };
    return types;
}

const std::vector<BoxType>& octreeBoxTypes()
{
    static const std::vector<BoxType> types = {
        boxTypes()[0],
        boxTypes()[1],
        unitVolume("Long", {1, 0, 0, 0, 1, 0, 0, 0, 7}, {0.52, 0.52, 3.66}, {1, 1, 7}),
        unitVolume("Uneven", {1, 0, 0, 0, 2.6, 0, 0, 0, 1.5}, {0.64, 1.65, 0.95}, {2, 5, 3}),
    };
    return types;
}

Mat3 boxOfVolume(const BoxType& type, double volume)
{
    return scaled(type.shape, std::cbrt(volume));
}

std::array<int, 3> evenGrid(const BoxType& type, int n)
{
    std::array<int, 3> cells;
    for (std::size_t d = 0; d < 3; d++)
    {
        cells[d] = static_cast<int>(std::lround(n * type.proportions[d]));
    }
    return cells;
}

System sodiumChloride(int cells, const Vec3& shift)
{
    std::vector<Vec3>   places;
    std::vector<double> charges;
    for (int i = 0; i < 8; i++)
    {
        const int a = i & 1, b = i >> 1 & 1, c = i >> 2 & 1;
        places.push_back({0.5 * a, 0.5 * b, 0.5 * c});
        charges.push_back((a + b + c) % 2 ? -1 : 1);
    }
    return crystal(cells, 2, places, charges, shift);
}

System caesiumChloride(int cells, const Vec3& shift)
{
    return crystal(cells, 2 / std::sqrt(3.0), {{0, 0, 0}, {0.5, 0.5, 0.5}}, {1, -1}, shift);
}

System zincblende(int cells, const Vec3& shift)
{
    std::vector<Vec3>   places;
    std::vector<double> charges;
    for (const Vec3& f : {Vec3{0, 0, 0}, Vec3{0, 0.5, 0.5}, Vec3{0.5, 0, 0.5}, Vec3{0.5, 0.5, 0}})
    {
        places.push_back(f);
        charges.push_back(1);
        places.push_back({f[0] + 0.25, f[1] + 0.25, f[2] + 0.25});
        charges.push_back(-1);
    }
    return crystal(cells, 4 / std::sqrt(3.0), places, charges, shift);
}

System ions(const Mat3& box, int n, std::uint64_t seed)
{
    System        s;
    Random        random(seed);
    const Lattice lattice(box);
    const double  distance = 0.6 * std::cbrt(volume(box) / n);
    s.box                  = box;
    std::vector<Vec3> placed;
    while (static_cast<int>(placed.size()) < n)
    {
        const Vec3 r = somewhere(box, &random);
        if (!tooClose(&lattice, placed, r, distance))
        {
            s.add(r, placed.size() % 2 ? -1 : 1);
            placed.push_back(r);
        }
    }
    return s;
}

System water(const Mat3& box, std::uint64_t seed)
{
    System        s;
    Random        random(seed);
    const Lattice lattice(box);
    const int     molecules = static_cast<int>(std::lround(33.4 * volume(box)));
    s.box                   = box;
    /* 0.25 nm between oxygen atoms is as near to 0.28 as random places at this density allow; 0.16 nm is the usual
     * length of a hydrogen bond less 0.02. */
    const double      oxygenDistance = 0.25, hydrogenDistance = 0.16;
    std::vector<Vec3> oxygen, hydrogen;
    while (static_cast<int>(oxygen.size()) < molecules)
    {
        const Vec3 o = somewhere(box, &random);
        Vec3       h1, h2;
        if (tooClose(&lattice, oxygen, o, oxygenDistance) || tooClose(&lattice, hydrogen, o, hydrogenDistance))
        {
            continue;
        }
        for (int attempt = 0; attempt < 20; attempt++)
        {
            orient(&random, &h1, &h2);
            h1 = plus(o, h1);
            h2 = plus(o, h2);
            if (!tooClose(&lattice, hydrogen, h1, hydrogenDistance) &&
                !tooClose(&lattice, hydrogen, h2, hydrogenDistance) &&
                !tooClose(&lattice, oxygen, h1, hydrogenDistance) && !tooClose(&lattice, oxygen, h2, hydrogenDistance))
            {
                const std::size_t first = s.size();
                s.add(o, oxygenCharge);
                s.add(h1, hydrogenCharge);
                s.add(h2, hydrogenCharge);
                excludeMolecule(&s, first);
                oxygen.push_back(o);
                hydrogen.push_back(h1);
                hydrogen.push_back(h2);
                break;
            }
        }
    }
    return s;
}

System liquidCube(int copies, const std::string& file)
{
    const char*       given = std::getenv("GMXFMM_TESTS_WATER");
    const std::string path  = !file.empty() ? file : given && *given ? given : GMXFMM_TESTS_DATA "/water216.gro";
    std::ifstream     lines(path);
    std::string       line;
    if (!lines || !std::getline(lines, line) || !std::getline(lines, line))
    {
        throw std::runtime_error(path + " cannot be read");
    }
    const std::size_t n = static_cast<std::size_t>(std::stoi(line));
    std::vector<Vec3> atoms;
    for (std::size_t i = 0; i < n && std::getline(lines, line); i++)
    {
        /* fixed columns: residue, atom, number in 20 characters, then three of 8 */
        atoms.push_back({std::stod(line.substr(20, 8)), std::stod(line.substr(28, 8)), std::stod(line.substr(36, 8))});
    }
    double edge = 0;
    lines >> edge;
    if (atoms.size() != 648 || !(edge > 1.8 && edge < 1.9))
    {
        throw std::runtime_error(path + " is not a file of 216 molecules of water in their cube");
    }
    System s;
    s.box = {copies * edge, 0, 0, 0, copies * edge, 0, 0, 0, copies * edge};
    for (int c = 0; c < copies * copies * copies; c++)
    {
        const Vec3 corner = {static_cast<double>(c % copies), static_cast<double>(c / copies % copies),
                             static_cast<double>(c / (copies * copies))};
        for (std::size_t i = 0; i < n; i++)
        {
            s.add(plus(atoms[i], corner, edge), i % 3 == 0 ? oxygenCharge : hydrogenCharge);
        }
    }
    for (std::size_t i = 0; i < s.size(); i += 3)
    {
        excludeMolecule(&s, i);
    }
    return s;
}

/* Whether the last molecule has an atom closer to another one than the liquid ever has: 0.23 nm between oxygen atoms,
 * else 0.14 nm. */
static bool lastMoleculeOverlaps(const System& s, const Lattice& lattice)
{
    const std::size_t last = s.size() - 3;
    for (std::size_t i = 0; i < last; i++)
    {
        for (std::size_t j = last; j < s.size(); j++)
        {
            const double limit = i % 3 == 0 && j == last ? 0.23 : 0.14;
            if (length2(lattice.nearest(plus(s.position(i), s.position(j), -1))) < limit * limit)
            {
                return true;
            }
        }
    }
    return false;
}

/* Copies one molecule, oxygen first, if its oxygen is in the box and nothing overlaps. */
static void addIfItFits(System* s, const Lattice& lattice, const System& from, std::size_t first, const Vec3& shift)
{
    const Vec3 o     = plus(from.position(first), shift);
    const Mat3 recip = reciprocal(s->box);
    for (std::size_t d = 0; d < 3; d++)
    {
        const double f = o[0] * recip[3 * d] + o[1] * recip[3 * d + 1] + o[2] * recip[3 * d + 2];
        if (f < 0 || f >= 1)
        {
            return;
        }
    }
    for (std::size_t a = first; a < first + 3; a++)
    {
        s->add(plus(from.position(a), shift), from.q[a]);
    }
    if (lastMoleculeOverlaps(*s, lattice))
    {
        s->x.resize(s->x.size() - 9);
        s->q.resize(s->q.size() - 3);
    }
}

System liquidWater(const Mat3& box)
{
    const System  liquid = liquidCube(1);
    System        s;
    const Lattice lattice(box);
    const double  edge = liquid.box[0];
    int           low[3], high[3]; /* copies of the cube that the corners of the box span */
    for (std::size_t d = 0; d < 3; d++)
    {
        const double a = box[d], b = box[3 + d], c = box[6 + d];
        low[d]  = static_cast<int>(std::floor((std::fmin(a, 0) + std::fmin(b, 0) + std::fmin(c, 0)) / edge)) - 1;
        high[d] = static_cast<int>(std::ceil((std::fmax(a, 0) + std::fmax(b, 0) + std::fmax(c, 0)) / edge)) + 1;
    }
    s.box = box;
    for (int h = low[0]; h < high[0]; h++)
    {
        for (int k = low[1]; k < high[1]; k++)
        {
            for (int l = low[2]; l < high[2]; l++)
            {
                for (std::size_t i = 0; i < liquid.size(); i += 3)
                {
                    addIfItFits(&s, lattice, liquid, i, {h * edge, k * edge, l * edge});
                }
            }
        }
    }
    for (std::size_t i = 0; i < s.size(); i += 3)
    {
        excludeMolecule(&s, i);
    }
    return s;
}

System droplet(int n, double radius, std::uint64_t seed)
{
    System            s;
    Random            random(seed);
    const double      distance = 0.6 * std::cbrt(4.0 / 3.0 * pi * radius * radius * radius / n);
    std::vector<Vec3> placed;
    while (static_cast<int>(placed.size()) < n)
    {
        const double x = radius * random.centred(), y = radius * random.centred(), z = radius * random.centred();
        const Vec3   r = {x, y, z};
        if (length2(r) < radius * radius && !tooClose(nullptr, placed, r, distance))
        {
            s.add(r, placed.size() % 2 ? -1 : 1);
            placed.push_back(r);
        }
    }
    return s;
}

void scatter(System* s, int n, const Vec3& corner, const Vec3& edges, Random* random)
{
    for (int i = 0; i < n; i++)
    {
        const double x = random->uniform(), y = random->uniform(), z = random->uniform();
        s->add({corner[0] + edges[0] * x, corner[1] + edges[1] * y, corner[2] + edges[2] * z}, i % 2 ? -1 : 1);
    }
}

System withoutExclusions(System system)
{
    system.excluded.clear();
    return system;
}

System withFarExclusions(System system)
{
    for (std::size_t i = 0; i < 10; i++)
    {
        system.exclude(30 * i, farthestFrom(system, 30 * i));
    }
    return system;
}

std::vector<double> moved(std::vector<double> x, double distance, std::uint64_t seed)
{
    Random random(seed);
    for (double& xi : x)
    {
        xi += distance * random.centred();
    }
    return x;
}

std::vector<double> crowded(std::vector<double> x)
{
    for (double& xi : x)
    {
        xi *= 0.15;
    }
    return x;
}

} // namespace fmmtest
