/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "support/direct.h"

#include <algorithm>
#include <cmath>

namespace fmmtest
{

static bool isExcluded(const System& system, std::size_t i, std::size_t j)
{
    if (i == j)
    {
        return true;
    }
    if (system.excluded.empty())
    {
        return false;
    }
    const std::vector<int>& row = system.excluded[i];
    return std::find(row.begin(), row.end(), static_cast<int>(j)) != row.end();
}

/* Everything that acts on particle i: half of each pair, so that energies and virials add up over i. */
static Mat3 addParticle(const System& system, std::size_t i, Solution* out)
{
    Mat3 virial = {};
    for (std::size_t j = 0; j < system.size(); j++)
    {
        if (isExcluded(system, i, j))
        {
            continue;
        }
        const Vec3   r  = {system.x[3 * i] - system.x[3 * j], system.x[3 * i + 1] - system.x[3 * j + 1],
                           system.x[3 * i + 2] - system.x[3 * j + 2]};
        const double r2 = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
        const double u  = system.q[j] / std::sqrt(r2);
        out->potential[i] += u;
        for (std::size_t a = 0; a < 3; a++)
        {
            const double e = u * r[a] / r2;
            out->field[3 * i + a] += e;
            for (std::size_t b = 0; b < 3; b++)
            {
                virial[3 * a + b] -= 0.25 * system.q[i] * e * r[b];
            }
        }
    }
    return virial;
}

Solution directSum(const System& system)
{
    Solution   out = emptySolution(system.size());
    const long n   = static_cast<long>(system.size());
#pragma omp parallel for schedule(static)
    for (long i = 0; i < n; i++)
    {
        const Mat3 virial = addParticle(system, static_cast<std::size_t>(i), &out);
#pragma omp critical
        for (std::size_t a = 0; a < 9; a++)
        {
            out.virial[a] += virial[a];
        }
    }
    finishSolution(system, &out);
    return out;
}

} // namespace fmmtest
