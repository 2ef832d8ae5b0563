/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Charges that go along a way, and what derivatives along it are compared in. */
#ifndef GMXFMM_TESTS_MOVING_H
#define GMXFMM_TESTS_MOVING_H

#include <cstddef>
#include <vector>

#include "support/dipoles.h"
#include "support/systems.h"

namespace fmmtest
{

/* What either has to be. */
struct Derivatives
{
    std::vector<double> force, potential, felt;
    double              energy = 0, size = 0; /* size: sum of the moduli of the energy's terms */
};

/* Charges and their ways: two of them without charge, of which one stands where another particle does. */
struct Moving
{
    DipoleSystem        system;
    std::vector<double> u, w;
};

inline Moving moving(const System& s, bool excluded)
{
    Moving m = {withDipoles(s, 0.3, 7), {}, {}};
    Random random(4);
    m.system.q[2] = m.system.q[3] = 0;
    for (std::size_t i = 0; i < s.size(); i++)
    {
        m.w.push_back(i == 2 ? 0 : random.uniform() - 0.5);
    }
    m.u    = m.system.mu;
    m.w[4] = m.u[12] = m.u[13] = m.u[14] = 0; /* a charge that stays, which moves against others */
    for (std::size_t d = 0; d < 3; d++)
    {
        m.system.x[6 + d] = m.system.x[33 + d];
    }
    if (excluded)
    {
        m.system.exclude(0, 1);
        m.system.exclude(5, 20);
        m.system.exclude(8, farthestFrom(m.system, 8));
    }
    return m;
}

/* Of an open system that is dense in the middle, whose ways are of the size of distances there. */
inline Moving movingInLeaves()
{
    System s = droplet(900, 4, 2);
    for (std::size_t i = 0; i < s.size(); i++)
    {
        const Vec3   r  = s.position(i);
        const double r2 = (r[0] * r[0] + r[1] * r[1] + r[2] * r[2]) / 16;
        for (std::size_t d = 0; d < 3; d++)
        {
            s.x[3 * i + d] *= r2 * r2;
        }
    }
    Moving m = moving(s, false);
    for (std::size_t k = 0; k < m.u.size(); k++)
    {
        m.u[k] = 0.01 * m.system.x[k];
    }
    return m;
}

} // namespace fmmtest

#endif
