/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "support/sites.h"

#include <algorithm>
#include <cmath>

#include "support/systems.h"

namespace fmmtest
{

namespace
{

using Real = long double;

struct Value
{
    Real potential, force;
};

/* r^-p with a modifier, by the formulas of the GROMACS reference manual, "Modified non-bonded interactions". */
Value modified(const gmxfmm_lj_range& range, int p, Real r)
{
    const Real rc = range.cutoff, r1 = range.start, plain = std::pow(r, Real(-p)), slope = p * plain / r;
    if (r >= rc)
    {
        return {0, 0};
    }
    switch (range.modifier)
    {
    case GMXFMM_LJ_CUT:
        return {plain, slope};
    case GMXFMM_LJ_POTENTIAL_SHIFT:
        return {plain - std::pow(rc, Real(-p)), slope};
    case GMXFMM_LJ_FORCE_SWITCH:
    {
        const Real w = rc - r1, t = r > r1 ? r - r1 : 0;
        const Real a = -p * ((p + 4) * rc - (p + 1) * r1) / (std::pow(rc, Real(p + 2)) * w * w);
        const Real b = p * ((p + 3) * rc - (p + 1) * r1) / (std::pow(rc, Real(p + 2)) * w * w * w);
        const Real c = std::pow(rc, Real(-p)) - a / 3 * w * w * w - b / 4 * w * w * w * w;
        return {plain - a / 3 * t * t * t - b / 4 * t * t * t * t - c, slope + a * t * t + b * t * t * t};
    }
    default:
    {
        const Real w = rc - r1, t = r > r1 ? (r - r1) / w : 0;
        const Real s  = 1 - 10 * t * t * t + 15 * t * t * t * t - 6 * t * t * t * t * t;
        const Real ds = (-30 * t * t + 60 * t * t * t - 30 * t * t * t * t) / w;
        return {plain * s, slope * s - plain * ds};
    }
    }
}

/* All tests have switches that begin beyond that. Closer sites have the same V, but digits of L - S would be lost. */
const Real c_constant = 0.3L;

Value pairOf(const Groups& g, std::size_t a, std::size_t b, Real distance)
{
    const Real        least = g.inner.cutoff > 0 ? c_constant : g.outer.cutoff / 100;
    const Real        r     = distance > least ? distance : least;
    const std::size_t pair  = static_cast<std::size_t>(g.type[a] * g.numTypes + g.type[b]);
    const Value       o6 = modified(g.outer, 6, r), o12 = modified(g.outer, 12, r);
    const Value       i6 = modified(g.inner, 6, r), i12 = modified(g.inner, 12, r);
    const Real        c6 = g.c6[pair], c12 = g.c12[pair];
    return {c12 * (o12.potential - i12.potential) - c6 * (o6.potential - i6.potential),
            c12 * (o12.force - i12.force) - c6 * (o6.force - i6.force)};
}

using Place = std::array<Real, 3>;

/* All images up to `most` vectors away. */
std::vector<Place> images(const Groups& g, int most)
{
    std::vector<Place> all;
    const int          ab = g.numPeriodic > 0 ? most : 0, c = g.numPeriodic == 3 ? most : 0;
    for (int i = -ab; i <= ab; i++)
    {
        for (int j = -ab; j <= ab; j++)
        {
            for (int k = -c; k <= c; k++)
            {
                Place shift;
                for (std::size_t d = 0; d < 3; d++)
                {
                    shift[d] = i * Real(g.box[d]) + j * Real(g.box[3 + d]) + k * Real(g.box[6 + d]);
                }
                all.push_back(shift);
            }
        }
    }
    return all;
}

Real square(const Place& p)
{
    return p[0] * p[0] + p[1] * p[1] + p[2] * p[2];
}

/* In double precision, which is much faster; far: by more than it is rounded. */
bool isFar(const Place& a, const Place& b, const Place& shift, Real most)
{
    const double x = static_cast<double>(a[0] - b[0] - shift[0]), y = static_cast<double>(a[1] - b[1] - shift[1]);
    const double z = static_cast<double>(a[2] - b[2] - shift[2]), limit = static_cast<double>(most) * 1.001;
    return x * x + y * y + z * z > limit * limit;
}

std::vector<Place> sitesOf(const Groups& g)
{
    std::vector<Place>       sites;
    const std::vector<Place> shifts = images(g, 3);
    for (std::size_t i = 0; i < g.type.size(); i++)
    {
        const std::size_t first = static_cast<std::size_t>(g.atom[static_cast<std::size_t>(g.start[i])]);
        Place             site  = {g.x[3 * first], g.x[3 * first + 1], g.x[3 * first + 2]};
        const Place       heavy = site;
        for (std::size_t k = static_cast<std::size_t>(g.start[i]); k < static_cast<std::size_t>(g.start[i + 1]); k++)
        {
            const std::size_t atom = static_cast<std::size_t>(g.atom[k]);
            Place             best = {1e6L, 1e6L, 1e6L};
            for (const Place& shift : shifts)
            {
                Place d;
                for (std::size_t e = 0; e < 3; e++)
                {
                    d[e] = g.x[3 * atom + e] + shift[e] - heavy[e];
                }
                best = square(d) < square(best) ? d : best;
            }
            for (std::size_t e = 0; e < 3; e++)
            {
                site[e] += Real(g.weight[k]) * best[e];
            }
        }
        sites.push_back(site);
    }
    return sites;
}

} // namespace

gmxfmm_sites_system Groups::system(gmxfmm_precision precision, gmxfmm_device device, int threads) const
{
    gmxfmm_sites_system s = {};
    s.size                = sizeof(s);
    s.device              = device;
    s.precision           = precision;
    s.num_threads         = threads;
    s.num_periodic        = numPeriodic;
    s.num_atoms           = numAtoms();
    s.num_groups          = numGroups();
    s.start               = start.data();
    s.atom                = atom.data();
    s.weight              = weight.data();
    s.type                = type.data();
    s.num_types           = numTypes;
    s.c6                  = c6.data();
    s.c12                 = c12.data();
    s.outer               = outer;
    s.inner               = inner;
    s.exclusion_start     = exclusionStart.empty() ? nullptr : exclusionStart.data();
    s.exclusion           = exclusion.empty() ? nullptr : exclusion.data();
    return s;
}

void Groups::exclude(const std::vector<std::vector<int>>& rows)
{
    exclusionStart = {0};
    exclusion.clear();
    for (const std::vector<int>& row : rows)
    {
        exclusion.insert(exclusion.end(), row.begin(), row.end());
        exclusionStart.push_back(static_cast<int>(exclusion.size()));
    }
}

bool Groups::excludes(std::size_t a, std::size_t b) const
{
    return !exclusionStart.empty() && std::count(exclusion.begin() + exclusionStart[a],
                                                 exclusion.begin() + exclusionStart[a + 1], static_cast<int>(b)) > 0;
}

void Groups::add(const Vec3& at, int ofType)
{
    atom.push_back(numAtoms());
    weight.push_back(1);
    x.insert(x.end(), at.begin(), at.end());
    start.push_back(static_cast<int>(atom.size()));
    type.push_back(ofType);
}

Groups randomGroups(const Mat3& box, int numPeriodic, int num, int numTypes, std::uint64_t seed)
{
    Random random(seed);
    Groups g;
    g.box         = box;
    g.numPeriodic = numPeriodic;
    g.numTypes    = numTypes;
    g.c6.resize(static_cast<std::size_t>(numTypes * numTypes));
    g.c12 = g.c6;
    for (std::size_t i = 0, n = static_cast<std::size_t>(numTypes); i < n; i++)
    {
        for (std::size_t j = 0; j <= i; j++)
        {
            g.c6[i * n + j] = g.c6[j * n + i] = i == 3 ? 0 : 5e-3 * random.uniform();
            g.c12[i * n + j] = g.c12[j * n + i] = i == 3 ? 0 : 1e-5 * random.uniform();
        }
    }
    for (int i = 0; i < num; i++)
    {
        const double u[3]  = {random.uniform(), random.uniform(), random.uniform()};
        Vec3         heavy = {};
        for (std::size_t d = 0; d < 3; d++)
        {
            heavy[d] = u[0] * box[d] + u[1] * box[3 + d] + u[2] * box[6 + d];
        }
        g.add(heavy, static_cast<int>(random.uniform() * numTypes));
        for (int light = i % 4; light > 0; light--)
        {
            const Vec3 to = random.direction();
            Vec3       at = {};
            for (std::size_t d = 0; d < 3; d++)
            {
                at[d] = heavy[d] + 0.12 * to[d];
            }
            for (int v = numPeriodic - 1; v >= 0; v--)
            {
                const std::size_t row = static_cast<std::size_t>(3 * v);
                const double k = std::floor(at[static_cast<std::size_t>(v)] / box[row + static_cast<std::size_t>(v)]);
                for (std::size_t d = 0; d < 3; d++)
                {
                    at[d] -= k * box[row + d];
                }
            }
            g.weight[static_cast<std::size_t>(g.start[g.start.size() - 2])] -= 0.11;
            g.weight.push_back(0.11);
            g.atom.push_back(g.numAtoms());
            g.x.insert(g.x.end(), at.begin(), at.end());
            g.start.back()++;
        }
        if (i % 7 == 0)
        {
            g.x.insert(g.x.end(), heavy.begin(), heavy.end()); /* of no group */
        }
    }
    return g;
}

std::vector<std::vector<int>> chainExclusions(int num, int length)
{
    std::vector<std::vector<int>> rows;
    for (int i = 0; i < num * length; i++)
    {
        rows.emplace_back();
        for (int j = i - 3; j <= i + 3; j++)
        {
            if (j != i && j >= i / length * length && j < (i / length + 1) * length)
            {
                rows.back().push_back(j);
            }
        }
    }
    return rows;
}

Groups randomChains(const Mat3& box, int numPeriodic, int num, int length, int numTypes, std::uint64_t seed)
{
    Random                   random(seed);
    Groups                   g      = randomGroups(box, numPeriodic, 0, numTypes, seed);
    const std::vector<Place> shifts = images(g, 1);
    g.inner                         = {};
    g.outer                         = {GMXFMM_LJ_FORCE_SWITCH, 0.55, 0.75};
    g.exclude(chainExclusions(num, length));
    const auto isFree = [&](const Vec3& at)
    {
        const std::size_t i = g.type.size();
        for (std::size_t j = 0; j < i; j++)
        {
            for (const Place& shift : shifts)
            {
                const Place one = {at[0], at[1], at[2]}, other = {g.x[3 * j], g.x[3 * j + 1], g.x[3 * j + 2]};
                if (!g.excludes(i, j) && !isFar(one, other, shift, 0.22L))
                {
                    return false;
                }
            }
        }
        return true;
    };
    int tries = 0; /* since the last atom; a chain may have no way out */
    while (g.numGroups() < num * length)
    {
        if (++tries > 200)
        {
            const std::size_t first =
                g.type.size() / static_cast<std::size_t>(length) * static_cast<std::size_t>(length);
            g.type.resize(first);
            g.atom.resize(first);
            g.weight.resize(first);
            g.start.resize(first + 1);
            g.x.resize(3 * first);
            tries = 0;
        }
        const std::size_t i    = g.type.size();
        const double      u[3] = {random.uniform(), random.uniform(), random.uniform()};
        const Vec3        to   = random.direction();
        Vec3              at   = {};
        for (std::size_t d = 0; d < 3; d++)
        {
            at[d] = g.numGroups() % length == 0 ? u[0] * box[d] + u[1] * box[3 + d] + u[2] * box[6 + d]
                                                : g.x[3 * (i - 1) + d] + 0.15 * to[d];
        }
        if (isFree(at))
        {
            g.add(at, static_cast<int>(random.uniform() * numTypes));
            tries = 0;
        }
    }
    return g;
}

SiteSums sumOfSites(const Groups& g)
{
    const std::vector<Place> sites = sitesOf(g), shifts = images(g, 2);
    std::vector<Place>       force(sites.size(), Place{0, 0, 0});
    Real                     energy = 0, virial[9] = {0};
    SiteSums                 sums;
    const Real               most = g.outer.cutoff;
    for (std::size_t a = 0; a < sites.size(); a++)
    {
        for (std::size_t b = 0; b < a; b++)
        {
            for (const Place& shift : shifts)
            {
                if (isFar(sites[a], sites[b], shift, most))
                {
                    continue;
                }
                const Place d  = {sites[a][0] - sites[b][0] - shift[0], sites[a][1] - sites[b][1] - shift[1],
                                  sites[a][2] - sites[b][2] - shift[2]};
                const Real  r2 = square(d);
                if (r2 >= most * most)
                {
                    continue;
                }
                const Real r = std::sqrt(r2);
                sums.within += 2;
                if (g.excludes(a, b))
                {
                    continue;
                }
                const Value pair = pairOf(g, a, b, r);
                energy += pair.potential;
                for (std::size_t i = 0; i < 3; i++)
                {
                    const Real f = pair.force * d[i] / r;
                    force[a][i] += f;
                    force[b][i] -= f;
                    for (std::size_t j = 0; j < 3; j++)
                    {
                        virial[3 * j + i] -= d[j] * f / 2;
                    }
                }
            }
        }
    }
    sums.force.resize(g.x.size());
    for (std::size_t i = 0; i < sites.size(); i++)
    {
        for (std::size_t k = static_cast<std::size_t>(g.start[i]); k < static_cast<std::size_t>(g.start[i + 1]); k++)
        {
            for (std::size_t d = 0; d < 3; d++)
            {
                sums.force[3 * static_cast<std::size_t>(g.atom[k]) + d] =
                    static_cast<double>(g.weight[k] * force[i][d]);
            }
        }
    }
    sums.energy = static_cast<double>(energy);
    for (std::size_t i = 0; i < 9; i++)
    {
        sums.virial[i] = static_cast<double>(virial[i]);
    }
    return sums;
}

Mat3 scaled(const Mat3& box, double factor)
{
    Mat3 larger = box;
    for (double& x : larger)
    {
        x *= factor;
    }
    return larger;
}

const std::vector<SitesBox>& sitesBoxes()
{
    static const double                r2 = std::sqrt(2.), r3 = std::sqrt(3.);
    static const std::vector<SitesBox> boxes = {
        {"Cubic", 3, {1, 0, 0, 0, 1, 0, 0, 0, 1}},
        {"Rectangular", 3, {1, 0, 0, 0, 1.3, 0, 0, 0, 1.7}},
        {"Triclinic", 3, {1.1, 0, 0, -0.35, 1.2, 0, 0.4, 0.5, 1.1}},
        {"Octahedron", 3, {1, 0, 0, 1 / 3., 2 * r2 / 3, 0, -1 / 3., r2 / 3, r2 / r3}},
        {"Dodecahedron", 3, {1, 0, 0, 0, 1, 0, 0.5, 0.5, r2 / 2}},
        {"Slab", 2, {1, 0, 0, 0.3, 1.2, 0, 0, 0, 1.5}},
        {"Open", 0, {1, 0, 0, 0, 1.2, 0, 0, 0, 1.1}},
    };
    return boxes;
}

} // namespace fmmtest
