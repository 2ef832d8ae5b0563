/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "support/dipoles.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <stdexcept>

#include "support/systems.h"

namespace fmmtest
{

namespace
{

using Real = long double;

const Real c_pi = 3.14159265358979323846264338327950288L;

/* Potential, field and its gradient at one place. */
struct Local
{
    Real phi = 0, e[3] = {0, 0, 0}, g[3][3] = {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}};
};

/* Adds sign times those of charge q and dipole mu at r from them, given B_0 .. B_3: B_0 the potential of a unit charge,
 * B_(n+1) = -B_n'/r. */
void addSource(Real sign, const Real* b, Real q, const Real* mu, const Real* r, Local* to)
{
    const Real along = mu[0] * r[0] + mu[1] * r[1] + mu[2] * r[2];
    to->phi += sign * (q * b[0] + along * b[1]);
    for (int i = 0; i < 3; i++)
    {
        to->e[i] += sign * ((q * b[1] + along * b[2]) * r[i] - mu[i] * b[1]);
        for (int j = 0; j < 3; j++)
        {
            to->g[i][j] += sign * ((i == j ? q * b[1] + along * b[2] : 0) - (q * b[2] + along * b[3]) * r[i] * r[j] +
                                   (mu[i] * r[j] + r[i] * mu[j]) * b[2]);
        }
    }
}

void bareFactors(Real r2, Real* b)
{
    b[0] = 1 / std::sqrt(r2);
    for (int n = 1; n < 4; n++)
    {
        b[n] = (2 * n - 1) * b[n - 1] / r2;
    }
}

void screenedFactors(Real r2, Real alpha, Real* b)
{
    const Real r = std::sqrt(r2), decay = std::exp(-alpha * alpha * r2) / (alpha * std::sqrt(c_pi));
    Real       power = 1;
    b[0]             = std::erfc(alpha * r) / r;
    for (int n = 1; n < 4; n++)
    {
        power *= 2 * alpha * alpha;
        b[n] = ((2 * n - 1) * b[n - 1] + power * decay) / r2;
    }
}

void dipoleOf(const DipoleSystem& s, std::size_t i, Real* mu)
{
    for (std::size_t d = 0; d < 3; d++)
    {
        mu[d] = s.mu[3 * i + d];
    }
}

/* Takes off excluded pairs, at the vectors from j to i. */
void takeExcluded(const DipoleSystem& s, const std::vector<std::vector<Vec3>>& vectors, std::vector<Local>* at)
{
    for (std::size_t i = 0; i < s.excluded.size(); i++)
    {
        for (std::size_t k = 0; k < s.excluded[i].size(); k++)
        {
            const std::size_t j    = static_cast<std::size_t>(s.excluded[i][k]);
            const Vec3&       v    = vectors[i][k];
            const Real        r[3] = {v[0], v[1], v[2]};
            Real              b[4], mu[3];
            dipoleOf(s, j, mu);
            bareFactors(r[0] * r[0] + r[1] * r[1] + r[2] * r[2], b);
            addSource(-1, b, s.q[j], mu, r, &(*at)[i]);
        }
    }
}

/* Vectors of excluded pairs: of nearest images, or with a box of zeros as they stand. */
std::vector<std::vector<Vec3>> excludedVectors(const DipoleSystem& s)
{
    std::vector<std::vector<Vec3>> vectors(s.excluded.size());
    for (std::size_t i = 0; i < s.excluded.size(); i++)
    {
        for (const int other : s.excluded[i])
        {
            const std::size_t j = static_cast<std::size_t>(other);
            const Vec3 d = {s.x[3 * i] - s.x[3 * j], s.x[3 * i + 1] - s.x[3 * j + 1], s.x[3 * i + 2] - s.x[3 * j + 2]};
            vectors[i].push_back(volume(s.box) > 0 ? Lattice(s.box).nearest(d) : d);
        }
    }
    return vectors;
}

Real energyOf(const DipoleSystem& s, const std::vector<Local>& at)
{
    Real energy = 0;
    for (std::size_t i = 0; i < s.size(); i++)
    {
        energy += s.q[i] * at[i].phi / 2;
        for (std::size_t d = 0; d < 3; d++)
        {
            energy -= s.mu[3 * i + d] * at[i].e[d] / 2;
        }
    }
    return energy;
}

DipoleSolution finish(const DipoleSystem& s, const std::vector<Local>& at)
{
    static const int c_row[6] = {0, 1, 2, 0, 0, 1}, c_column[6] = {0, 1, 2, 1, 2, 2};
    DipoleSolution   out;
    static_cast<Solution&>(out) = emptySolution(s.size());
    out.energy                  = static_cast<double>(energyOf(s, at));
    for (std::size_t i = 0; i < s.size(); i++)
    {
        const Local& l = at[i];
        Real         mu[3];
        dipoleOf(s, i, mu);
        out.potential[i] = static_cast<double>(l.phi);
        for (std::size_t d = 0; d < 3; d++)
        {
            const std::size_t next = (d + 1) % 3, last = (d + 2) % 3;
            out.field[3 * i + d] = static_cast<double>(l.e[d]);
            out.force[3 * i + d] =
                static_cast<double>(s.q[i] * l.e[d] + mu[0] * l.g[0][d] + mu[1] * l.g[1][d] + mu[2] * l.g[2][d]);
            out.torque.push_back(static_cast<double>(mu[next] * l.e[last] - mu[last] * l.e[next]));
        }
        for (int k = 0; k < 6; k++)
        {
            out.gradient.push_back(static_cast<double>(l.g[c_row[k]][c_column[k]]));
        }
    }
    return out;
}

/* exp(-limit^2) is 2e-17. */
const Real c_limit = 6.2L;

void addRealSpace(const DipoleSystem& s, Real alpha, std::vector<Local>* at)
{
    const Real cutoff = c_limit / alpha;
    const Mat3 star   = reciprocal(s.box);
    int        most[3];
    for (std::size_t v = 0; v < 3; v++)
    {
        const double* k = &star[3 * v]; /* its length is one over the distance of lattice planes */
        most[v]         = static_cast<int>(
                      std::ceil(static_cast<double>(cutoff) * std::sqrt(k[0] * k[0] + k[1] * k[1] + k[2] * k[2]))) +
                  1;
    }
    for (std::size_t i = 0; i < s.size(); i++)
    {
        for (std::size_t j = 0; j < s.size(); j++)
        {
            Real mu[3];
            dipoleOf(s, j, mu);
            for (int a = -most[0]; a <= most[0]; a++)
            {
                for (int b = -most[1]; b <= most[1]; b++)
                {
                    for (int c = -most[2]; c <= most[2]; c++)
                    {
                        Real r[3], r2 = 0, factors[4];
                        for (std::size_t d = 0; d < 3; d++)
                        {
                            r[d] = static_cast<Real>(s.x[3 * i + d]) - s.x[3 * j + d] + a * s.box[d] +
                                   b * s.box[3 + d] + c * s.box[6 + d];
                            r2 += r[d] * r[d];
                        }
                        if (r2 < cutoff * cutoff && r2 > 0)
                        {
                            screenedFactors(r2, alpha, factors);
                            addSource(1, factors, s.q[j], mu, r, &(*at)[i]);
                        }
                    }
                }
            }
        }
    }
}

/* One wave vector, and its negative. wave: exp(i k.x) of each particle. */
void addWave(const DipoleSystem&                    s,
             const Real*                            k,
             const std::vector<std::complex<Real>>& wave,
             Real                                   factor,
             std::vector<Local>*                    at)
{
    Real re = 0, im = 0;
    for (std::size_t i = 0; i < s.size(); i++)
    {
        const Real c = wave[i].real(), w = wave[i].imag();
        const Real along = k[0] * s.mu[3 * i] + k[1] * s.mu[3 * i + 1] + k[2] * s.mu[3 * i + 2];
        /* (q - i k.mu) exp(-i k.x) */
        re += s.q[i] * c - along * w;
        im -= s.q[i] * w + along * c;
    }
    for (std::size_t i = 0; i < s.size(); i++)
    {
        const Real c = wave[i].real(), w = wave[i].imag();
        const Real real = factor * (c * re - w * im), imaginary = factor * (c * im + w * re);
        Local&     to = (*at)[i];
        to.phi += real;
        for (int a = 0; a < 3; a++)
        {
            to.e[a] += k[a] * imaginary; /* -i k */
            for (int b = 0; b < 3; b++)
            {
                to.g[a][b] += k[a] * k[b] * real;
            }
        }
    }
}

void addReciprocalSpace(const DipoleSystem& s, Real alpha, std::vector<Local>* at)
{
    const Mat3                      star   = reciprocal(s.box);
    const Real                      cutoff = 2 * alpha * c_limit;
    int                             most[3];
    std::vector<std::complex<Real>> waves[3];
    for (std::size_t v = 0; v < 3; v++)
    {
        const double* a = &s.box[3 * v];
        most[v]         = static_cast<int>(
            std::ceil(static_cast<double>(cutoff / (2 * c_pi)) * std::sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])));
        for (std::size_t i = 0; i < s.size(); i++)
        {
            Real f = 0;
            for (std::size_t d = 0; d < 3; d++)
            {
                f += static_cast<Real>(star[3 * v + d]) * s.x[3 * i + d];
            }
            for (int m = -most[v]; m <= most[v]; m++)
            {
                waves[v].push_back(std::polar(Real(1), 2 * c_pi * m * f));
            }
        }
    }
    std::vector<std::complex<Real>> wave(s.size());
    for (int a = -most[0]; a <= most[0]; a++)
    {
        for (int b = -most[1]; b <= most[1]; b++)
        {
            for (int c = -most[2]; c <= most[2]; c++)
            {
                Real k[3], k2 = 0;
                for (std::size_t d = 0; d < 3; d++)
                {
                    k[d] = 2 * c_pi *
                           (a * static_cast<Real>(star[d]) + b * static_cast<Real>(star[3 + d]) +
                            c * static_cast<Real>(star[6 + d]));
                    k2 += k[d] * k[d];
                }
                const bool first = a > 0 || (a == 0 && (b > 0 || (b == 0 && c > 0)));
                if (!first || k2 >= cutoff * cutoff)
                {
                    continue;
                }
                const int index[3] = {a, b, c};
                for (std::size_t i = 0; i < s.size(); i++)
                {
                    wave[i] = 1;
                    for (std::size_t v = 0; v < 3; v++)
                    {
                        const std::size_t row = static_cast<std::size_t>(2 * most[v] + 1);
                        const auto w = waves[v][i * row + static_cast<std::size_t>(most[v] + index[v])], u = wave[i];
                        wave[i] = {u.real() * w.real() - u.imag() * w.imag(),
                                   u.real() * w.imag() + u.imag() * w.real()};
                    }
                }
                const Real factor = 8 * c_pi / (static_cast<Real>(volume(s.box)) * k2);
                addWave(s, k, wave, factor * std::exp(-k2 / (4 * alpha * alpha)), at);
            }
        }
    }
}

std::vector<Local>
ewaldLocals(const DipoleSystem& s, Boundary boundary, Real alpha, const std::vector<std::vector<Vec3>>& excluded)
{
    std::vector<Local> at(s.size());
    const Real         v = volume(s.box), root = std::sqrt(c_pi);
    Real               charge = 0, total[3] = {0, 0, 0};
    addRealSpace(s, alpha, &at);
    addReciprocalSpace(s, alpha, &at);
    for (std::size_t i = 0; i < s.size(); i++)
    {
        charge += s.q[i];
        for (std::size_t d = 0; d < 3; d++)
        {
            total[d] += s.q[i] * static_cast<Real>(s.x[3 * i + d]) + s.mu[3 * i + d];
        }
    }
    for (std::size_t i = 0; i < s.size(); i++)
    {
        const Real self = 4 * alpha * alpha * alpha / (3 * root);
        at[i].phi -= 2 * alpha / root * s.q[i] + c_pi * charge / (alpha * alpha * v);
        for (std::size_t d = 0; d < 3; d++)
        {
            const Real surface = boundary == Boundary::Vacuum ? 4 * c_pi / (3 * v) * total[d] : 0;
            at[i].e[d] += self * s.mu[3 * i + d] - surface;
            at[i].g[d][d] -= self * s.q[i];
            at[i].phi += surface * s.x[3 * i + d];
        }
    }
    takeExcluded(s, excluded, &at);
    return at;
}

/* Long double energy under the strain of component k; excluded pairs keep their image. */
Real strainedEnergy(const DipoleSystem&                   s,
                    Boundary                              boundary,
                    Real                                  alpha,
                    const std::vector<std::vector<Vec3>>& excluded,
                    std::size_t                           k,
                    double                                strain)
{
    Mat3 tensor                            = {0, 0, 0, 0, 0, 0, 0, 0, 0};
    tensor[k]                              = strain;
    DipoleSystem deformed                  = s;
    static_cast<System&>(deformed)         = strained(s, tensor);
    std::vector<std::vector<Vec3>> vectors = excluded;
    for (std::vector<Vec3>& row : vectors)
    {
        for (Vec3& r : row)
        {
            const Vec3 before = r;
            r[k % 3] += before[k / 3] * strain;
        }
    }
    return energyOf(deformed, ewaldLocals(deformed, boundary, alpha, vectors));
}

} // namespace

DipoleSystem withDipoles(const System& system, double size, std::uint64_t seed)
{
    DipoleSystem s;
    Random       random(seed);
    static_cast<System&>(s) = system;
    for (std::size_t i = 0; i < system.size(); i++)
    {
        for (int d = 0; d < 3; d++)
        {
            const double component = size * random.centred();
            s.mu.push_back(i % 4 == 1 ? 0 : component);
        }
        s.q[i] = i % 3 == 0 ? 0 : s.q[i];
    }
    return s;
}

DipoleSolution dipoleEwald(const DipoleSystem& s, Boundary boundary, double alpha)
{
    const auto     excluded = excludedVectors(s);
    const Real     a        = alpha > 0 ? alpha : 5 / std::cbrt(static_cast<Real>(volume(s.box)));
    DipoleSolution out      = finish(s, ewaldLocals(s, boundary, a, excluded));
    for (std::size_t k = 0; k < 9; k++)
    {
        const auto   energy = [&](double strain) { return strainedEnergy(s, boundary, a, excluded, k, strain); };
        const double h      = 1e-3; /* h^4 / 30 of the fifth derivative */
        out.virial[k]       = static_cast<double>((8 * (energy(h) - energy(-h)) - (energy(2 * h) - energy(-2 * h))) /
                                            (24 * static_cast<Real>(h)));
    }
    return out;
}

DipoleSolution dipoleDirect(const DipoleSystem& s)
{
    std::vector<Local> at(s.size());
    for (std::size_t i = 0; i < s.size(); i++)
    {
        for (std::size_t j = 0; j < s.size(); j++)
        {
            Real r[3], mu[3], b[4], r2 = 0;
            dipoleOf(s, j, mu);
            for (std::size_t d = 0; d < 3; d++)
            {
                r[d] = static_cast<Real>(s.x[3 * i + d]) - s.x[3 * j + d];
                r2 += r[d] * r[d];
            }
            if (i != j)
            {
                bareFactors(r2, b);
                addSource(1, b, s.q[j], mu, r, &at[i]);
            }
        }
    }
    DipoleSystem open = s;
    open.box          = {0, 0, 0, 0, 0, 0, 0, 0, 0};
    takeExcluded(open, excludedVectors(open), &at);
    DipoleSolution out = finish(s, at);
    for (std::size_t i = 0; i < s.size(); i++)
    {
        for (std::size_t k = 0; k < 9; k++)
        {
            out.virial[k] -= 0.5 * s.x[3 * i + k / 3] * out.force[3 * i + k % 3];
        }
    }
    return out;
}

DipolePlan::DipolePlan(const DipoleSystem& s, const gmxfmm_options& options)
    : Plan(s, options), n_(s.size()), floats_(options.array_type == GMXFMM_SINGLE)
{
    setDipoles(s.mu);
    assign(s.x);
}

void DipolePlan::setDipoles(const std::vector<double>& mu)
{
    const std::vector<float> floats(mu.begin(), mu.end());
    const void* const        array = floats_ ? static_cast<const void*>(floats.data()) : mu.data();
    if (gmxfmm_set_dipoles(get(), static_cast<std::int64_t>(n_), array) != GMXFMM_OK)
    {
        throw std::runtime_error(gmxfmm_message(get()));
    }
}

DipoleSolution DipolePlan::solution(const std::vector<double>& x)
{
    DipoleSolution r;
    static_cast<Solution&>(r) = emptySolution(n_);
    r.gradient.resize(6 * n_);
    r.torque.resize(3 * n_);
    std::vector<double>* const to[5] = {&r.potential, &r.field, &r.force, &r.torque, &r.gradient};
    std::vector<float>         single[5];
    void*                      array[5];
    for (std::size_t k = 0; k < 5; k++)
    {
        single[k].resize(to[k]->size());
        array[k] = floats_ ? static_cast<void*>(single[k].data()) : to[k]->data();
    }
    gmxfmm_output output  = sized<gmxfmm_output>();
    output.potential      = array[0];
    output.field          = array[1];
    output.force          = array[2];
    output.torque         = array[3];
    output.field_gradient = array[4];
    output.want_energy    = 1;
    output.want_virial    = 1;
    const std::vector<float> positions(x.begin(), x.end());
    const void* const        at = floats_ ? static_cast<const void*>(positions.data()) : x.data();
    if (gmxfmm_execute(get(), at, &output) != GMXFMM_OK)
    {
        throw std::runtime_error(gmxfmm_message(get()));
    }
    for (std::size_t k = 0; k < 5 && floats_; k++)
    {
        to[k]->assign(single[k].begin(), single[k].end());
    }
    r.energyNear = output.energy_near;
    r.energyFar  = output.energy_far;
    r.energy     = output.energy_near + output.energy_far;
    std::copy(output.virial, output.virial + 9, r.virial.begin());
    return r;
}

DipoleSolution solveDipoles(const DipoleSystem& s, const gmxfmm_options& options)
{
    return DipolePlan(s, options).solution(s.x);
}

DipoleSystem rotatedDipoles(const DipoleSystem& s, const Vec3& axis, double angle)
{
    DipoleSystem turned          = s;
    System       arrows          = s; /* dipoles as positions */
    static_cast<System&>(turned) = rotated(s, axis, angle);
    arrows.x                     = s.mu;
    turned.mu                    = rotated(arrows, axis, angle).x;
    return turned;
}

} // namespace fmmtest
