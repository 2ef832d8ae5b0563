/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "support/system.h"

#include <cmath>

namespace fmmtest
{

void System::add(const Vec3& r, double charge)
{
    x.insert(x.end(), r.begin(), r.end());
    q.push_back(charge);
}

void System::add(const System& other, const Vec3& by)
{
    for (std::size_t i = 0; i < other.size(); i++)
    {
        const Vec3 r = other.position(i);
        add({r[0] + by[0], r[1] + by[1], r[2] + by[2]}, other.q[i]);
    }
}

void System::exclude(std::size_t i, std::size_t j)
{
    excluded.resize(size());
    excluded[i].push_back(static_cast<int>(j));
    excluded[j].push_back(static_cast<int>(i));
}

Solution emptySolution(std::size_t n)
{
    Solution s;
    s.potential.assign(n, 0.0);
    s.field.assign(3 * n, 0.0);
    s.force.assign(3 * n, 0.0);
    return s;
}

void finishSolution(const System& system, Solution* solution)
{
    solution->energy = 0;
    for (std::size_t i = 0; i < system.size(); i++)
    {
        solution->energy += 0.5 * system.q[i] * solution->potential[i];
        for (std::size_t d = 0; d < 3; d++)
        {
            solution->force[3 * i + d] = system.q[i] * solution->field[3 * i + d];
        }
    }
}

double volume(const Mat3& b)
{
    return b[0] * (b[4] * b[8] - b[5] * b[7]) - b[1] * (b[3] * b[8] - b[5] * b[6]) + b[2] * (b[3] * b[7] - b[4] * b[6]);
}

Mat3 reciprocal(const Mat3& b)
{
    const double v = volume(b);
    Mat3         r;
    for (std::size_t i = 0; i < 3; i++)
    {
        const double* p = &b[3 * ((i + 1) % 3)];
        const double* q = &b[3 * ((i + 2) % 3)];
        r[3 * i]        = (p[1] * q[2] - p[2] * q[1]) / v;
        r[3 * i + 1]    = (p[2] * q[0] - p[0] * q[2]) / v;
        r[3 * i + 2]    = (p[0] * q[1] - p[1] * q[0]) / v;
    }
    return r;
}

Vec3 rowTimes(const Vec3& v, const Mat3& m)
{
    return {v[0] * m[0] + v[1] * m[3] + v[2] * m[6], v[0] * m[1] + v[1] * m[4] + v[2] * m[7],
            v[0] * m[2] + v[1] * m[5] + v[2] * m[8]};
}

static double norm2(const double* v)
{
    return v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
}

/* Replaces one basis vector by a shorter one that differs by at most one of each other vector; false if there is none.
 */
static bool shorten(Mat3* basis)
{
    for (std::size_t i = 0; i < 3; i++)
    {
        const double* p = &(*basis)[3 * ((i + 1) % 3)];
        const double* q = &(*basis)[3 * ((i + 2) % 3)];
        for (int k = -1; k <= 1; k++)
        {
            for (int l = -1; l <= 1; l++)
            {
                double trial[3];
                for (std::size_t d = 0; d < 3; d++)
                {
                    trial[d] = (*basis)[3 * i + d] + k * p[d] + l * q[d];
                }
                if (norm2(trial) < norm2(&(*basis)[3 * i]) * (1 - 1e-12))
                {
                    std::copy(trial, trial + 3, &(*basis)[3 * i]);
                    return true;
                }
            }
        }
    }
    return false;
}

Lattice::Lattice(const Mat3& box) : basis_(box)
{
    while (shorten(&basis_))
    {
    }
    reciprocal_ = reciprocal(basis_);
}

Vec3 Lattice::nearest(const Vec3& d) const
{
    Vec3 s;
    for (std::size_t i = 0; i < 3; i++)
    {
        s[i] = d[0] * reciprocal_[3 * i] + d[1] * reciprocal_[3 * i + 1] + d[2] * reciprocal_[3 * i + 2];
        s[i] = -std::round(s[i]);
    }
    Vec3   best  = d;
    double best2 = -1;
    /* Rounding in a shortest basis is at most one step from the nearest lattice point along each basis vector. */
    for (int h = -1; h <= 1; h++)
    {
        for (int k = -1; k <= 1; k++)
        {
            for (int l = -1; l <= 1; l++)
            {
                const Vec3   t     = rowTimes({s[0] + h, s[1] + k, s[2] + l}, basis_);
                const Vec3   image = {d[0] + t[0], d[1] + t[1], d[2] + t[2]};
                const double r2    = norm2(image.data());
                if (best2 < 0 || r2 < best2)
                {
                    best2 = r2;
                    best  = image;
                }
            }
        }
    }
    return best;
}

double nearestDistance(const System& system, std::size_t i, std::size_t j)
{
    const Vec3 a = system.position(i), b = system.position(j);
    const Vec3 d = Lattice(system.box).nearest({a[0] - b[0], a[1] - b[1], a[2] - b[2]});
    return std::sqrt(norm2(d.data()));
}

std::size_t farthestFrom(const System& system, std::size_t i)
{
    std::size_t farthest = i;
    double      most     = 0;
    for (std::size_t j = 0; j < system.size(); j++)
    {
        const double distance = nearestDistance(system, i, j);
        if (distance > most)
        {
            most     = distance;
            farthest = j;
        }
    }
    return farthest;
}

static void applyToAll(System* system, const Mat3& m)
{
    for (std::size_t i = 0; i < system->size(); i++)
    {
        const Vec3 r = rowTimes(system->position(i), m);
        std::copy(r.begin(), r.end(), &system->x[3 * i]);
    }
    for (std::size_t i = 0; i < 3; i++)
    {
        const Vec3 v = rowTimes({system->box[3 * i], system->box[3 * i + 1], system->box[3 * i + 2]}, m);
        std::copy(v.begin(), v.end(), &system->box[3 * i]);
    }
}

System strained(const System& system, const Mat3& strain)
{
    System out = system;
    Mat3   m   = strain;
    m[0] += 1;
    m[4] += 1;
    m[8] += 1;
    applyToAll(&out, m);
    return out;
}

System rotated(const System& system, const Vec3& axis, double angle)
{
    System       out = system;
    const double n   = std::sqrt(norm2(axis.data()));
    const double u = axis[0] / n, v = axis[1] / n, w = axis[2] / n;
    const double c = std::cos(angle), s = std::sin(angle), t = 1 - c;
    /* Rodrigues' formula, transposed because vectors are rows */
    const Mat3 m = {t * u * u + c,     t * u * v + s * w, t * u * w - s * v, t * u * v - s * w, t * v * v + c,
                    t * v * w + s * u, t * u * w + s * v, t * v * w - s * u, t * w * w + c};
    applyToAll(&out, m);
    return out;
}

} // namespace fmmtest
