/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes tests/data/water216.gro: 216 SPC molecules (Berendsen et al. 1981) of liquid water, by Metropolis Monte Carlo
 * from a random start. Electrostatics by a reaction field beyond 0.9 nm: the structure of a liquid is what tests want,
 * not its free energy. make_water SWEEPS > water216.gro
 */
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "support/systems.h"

using namespace fmmtest;

namespace
{

constexpr double edge = 1.862, cutoff = 0.9; /* nm: 216 molecules at the density of water */
constexpr double thermal = 0.00831446 * 300; /* kJ/mol */
constexpr double coulomb = 138.935458, c6 = 0.0026173456, c12 = 2.634129e-6;
constexpr double field = 1 / (2 * cutoff * cutoff * cutoff), shift = 3 / (2 * cutoff);

struct Molecule
{
    Vec3 site[3]; /* oxygen first */
};

double image(double d)
{
    return d - edge * std::round(d / edge);
}

double pairEnergy(const Molecule& a, const Molecule& b)
{
    const double charge[3] = {-0.82, 0.41, 0.41};
    Vec3         move; /* from b's oxygen to its nearest image */
    double       r2 = 0;
    for (std::size_t d = 0; d < 3; d++)
    {
        const double apart = a.site[0][d] - b.site[0][d];
        move[d]            = image(apart) - apart;
        r2 += image(apart) * image(apart);
    }
    if (r2 > cutoff * cutoff)
    {
        return 0;
    }
    double energy = (c12 / (r2 * r2 * r2) - c6) / (r2 * r2 * r2);
    for (std::size_t i = 0; i < 3; i++)
    {
        for (std::size_t j = 0; j < 3; j++)
        {
            double s2 = 0;
            for (std::size_t d = 0; d < 3; d++)
            {
                const double apart = a.site[i][d] - b.site[j][d] + move[d];
                s2 += apart * apart;
            }
            energy += coulomb * charge[i] * charge[j] * (1 / std::sqrt(s2) + field * s2 - shift);
        }
    }
    return energy;
}

/* A move, and a turn about an axis through the oxygen (Rodrigues). */
Molecule moved(const Molecule& m, Random* random)
{
    const double longest = 0.012, widest = 0.25;
    const Vec3   step  = {longest * random->centred(), longest * random->centred(), longest * random->centred()};
    const Vec3   axis  = random->direction();
    const double angle = widest * random->centred(), c = std::cos(angle), s = std::sin(angle);
    Molecule     out = m;
    for (std::size_t k = 0; k < 3; k++)
    {
        Vec3 v;
        for (std::size_t d = 0; d < 3; d++)
        {
            v[d] = m.site[k][d] - m.site[0][d];
        }
        const double along = axis[0] * v[0] + axis[1] * v[1] + axis[2] * v[2];
        for (std::size_t d = 0; d < 3; d++)
        {
            const std::size_t e = (d + 1) % 3, f = (d + 2) % 3;
            out.site[k][d] =
                m.site[0][d] + step[d] + c * v[d] + s * (axis[e] * v[f] - axis[f] * v[e]) + (1 - c) * along * axis[d];
        }
    }
    return out;
}

double energyOf(const std::vector<Molecule>& all, std::size_t i, const Molecule& m)
{
    double energy = 0;
    for (std::size_t j = 0; j < all.size(); j++)
    {
        energy += j == i ? 0 : pairEnergy(m, all[j]);
    }
    return energy;
}

} // namespace

int main(int argc, char** argv)
{
    const int             sweeps = argc > 1 ? std::atoi(argv[1]) : 20000;
    const System          start  = water({edge, 0, 0, 0, edge, 0, 0, 0, edge}, 1);
    std::vector<Molecule> all;
    for (std::size_t i = 0; i < start.size(); i += 3)
    {
        all.push_back({{start.position(i), start.position(i + 1), start.position(i + 2)}});
    }
    Random random(2);
    for (int sweep = 0; sweep < sweeps; sweep++)
    {
        for (std::size_t i = 0; i < all.size(); i++)
        {
            const Molecule trial  = moved(all[i], &random);
            const double   change = energyOf(all, i, trial) - energyOf(all, i, all[i]);
            if (change <= 0 || random.uniform() < std::exp(-change / thermal))
            {
                all[i] = trial;
            }
        }
        if (sweep % 1000 == 0)
        {
            double energy = 0;
            for (std::size_t i = 0; i < all.size(); i++)
            {
                energy += 0.5 * energyOf(all, i, all[i]);
            }
            std::fprintf(stderr, "sweep %d: %.2f kJ/mol a molecule\n", sweep, energy / static_cast<double>(all.size()));
        }
    }
    std::printf("Liquid SPC water, made by tests/data/make_water.cpp\n%5zu\n", 3 * all.size());
    const char* const name[3] = {"OW", "HW1", "HW2"};
    for (std::size_t i = 0; i < all.size(); i++)
    {
        for (std::size_t k = 0; k < 3; k++)
        {
            /* whole molecules, the oxygen in the box */
            Vec3 r;
            for (std::size_t d = 0; d < 3; d++)
            {
                r[d] = all[i].site[k][d] - edge * std::floor(all[i].site[0][d] / edge);
            }
            std::printf("%5zuSOL  %5s%5zu%8.3f%8.3f%8.3f\n", i + 1, name[k], 3 * i + k + 1, r[0], r[1], r[2]);
        }
    }
    std::printf("%10.5f%10.5f%10.5f\n", edge, edge, edge);
    return 0;
}
