/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Slabs: Parry 1975, Surf. Sci. 49, 433 (erratum 1976, 54, 195); in this form Heyes, Barber & Clarke 1977, J. Chem.
 * Soc. Faraday Trans. 2 73, 1485: with d = r_i - r_j, rho its part in the plane, A the area and h the reciprocal
 * vectors, phi(d) = sum_t erfc(alpha |d + t|) / |d + t|
 *            + pi / A sum_h cos(h rho) / h [e^(h z) erfc(h / 2 alpha + alpha z) + e^(-h z) erfc(h / 2 alpha - alpha z)]
 *            - 2 pi / A [z erf(alpha z) + e^(-alpha^2 z^2) / (alpha sqrt(pi))],
 * and a charge with itself has -2 alpha / sqrt(pi) for the term t = 0.
 *
 * Wires: lim [sum_{|t| <= N} 1 / |d + t L| - (2 / L) ln N], images t and -t less 2 / (t L) each, whose sum and the
 * logarithm are 2 gamma / L, Euler's constant. Beyond N pairs of images are (2 z^2 - rho^2) / (t L)^3 +
 * (2 z^4 - 6 z^2 rho^2 + 3/4 rho^4) / (t L)^5 + ..., of which the next one is below rounding.
 */
#include "support/partly_periodic.h"

#include <cmath>

#include "support/charge_reader.h"
#include "support/systems.h"

namespace fmmtest
{

namespace
{

const double pi = 3.14159265358979323846;

/* erfc(6) = 2e-17 */
const double reach = 6;

struct Sum
{
    double            alpha, area;
    std::vector<Vec3> t;    /* translations that may be within reach */
    std::vector<Vec3> h;    /* one of each pair h, -h */
    double            span; /* a diagonal of the cell */
};

Sum prepare(const System& s, double alpha)
{
    const Mat3&  b       = s.box;
    const double area    = std::fabs(b[0] * b[4] - b[1] * b[3]);
    Sum          sum     = {alpha > 0 ? alpha : 2.2 / std::sqrt(area), area, {}, {}, 0};
    sum.span             = std::hypot(b[0], b[1]) + std::hypot(b[3], b[4]);
    const Vec3   dual[2] = {{2 * pi * b[4] / area, -2 * pi * b[3] / area, 0},
                            {-2 * pi * b[1] / area, 2 * pi * b[0] / area, 0}};
    const double most = 2 * sum.alpha * reach, far = reach / sum.alpha + sum.span;
    const int    hRange = static_cast<int>(most * sum.span / (2 * pi)) + 1;
    const int    tRange = static_cast<int>(far * sum.span / area) + 1;
    for (int i = -hRange; i <= hRange; i++)
    {
        for (int j = -hRange; j <= hRange; j++)
        {
            const Vec3 h = {i * dual[0][0] + j * dual[1][0], i * dual[0][1] + j * dual[1][1], 0};
            if ((i > 0 || (i == 0 && j > 0)) && std::hypot(h[0], h[1]) < most)
            {
                sum.h.push_back(h);
            }
        }
    }
    for (int i = -tRange; i <= tRange; i++)
    {
        for (int j = -tRange; j <= tRange; j++)
        {
            const Vec3 t = {i * b[0] + j * b[3], i * b[1] + j * b[4], 0};
            if (std::hypot(t[0], t[1]) < far)
            {
                sum.t.push_back(t);
            }
        }
    }
    return sum;
}

/* Potential, and field, of a unit charge and all its images at d; of itself at d = 0. */
void addPair(const Sum& s, const Vec3& d, double* phi, double* field)
{
    const double a = s.alpha;
    for (const Vec3& t : s.t)
    {
        const Vec3   r  = {d[0] + t[0], d[1] + t[1], d[2]};
        const double r2 = r[0] * r[0] + r[1] * r[1] + r[2] * r[2], distance = std::sqrt(r2);
        if (r2 == 0)
        {
            *phi -= 2 * a / std::sqrt(pi);
            continue;
        }
        const double screened = std::erfc(a * distance) / distance;
        const double slope    = (screened + 2 * a / std::sqrt(pi) * std::exp(-a * a * r2)) / r2;
        *phi += screened;
        for (std::size_t e = 0; e < 3; e++)
        {
            field[e] += slope * r[e];
        }
    }
    const double z = d[2];
    for (const Vec3& h : s.h)
    {
        const double k = std::hypot(h[0], h[1]), angle = h[0] * d[0] + h[1] * d[1], w = 2 * pi / (s.area * k);
        const double up   = std::exp(k * z) * std::erfc(k / (2 * a) + a * z);
        const double down = std::exp(-k * z) * std::erfc(k / (2 * a) - a * z);
        *phi += w * std::cos(angle) * (up + down);
        field[0] += w * h[0] * std::sin(angle) * (up + down);
        field[1] += w * h[1] * std::sin(angle) * (up + down);
        field[2] -= w * k * std::cos(angle) * (up - down);
    }
    *phi -= 2 * pi / s.area * (z * std::erf(a * z) + std::exp(-a * a * z * z) / (a * std::sqrt(pi)));
    field[2] += 2 * pi / s.area * std::erf(a * z);
}

/* The image of r nearest in the plane. */
Vec3 nearest(const Sum& s, const Vec3& r)
{
    Vec3 best = r;
    for (const Vec3& t : s.t)
    {
        const Vec3 image = {r[0] + t[0], r[1] + t[1], r[2]};
        best             = std::hypot(image[0], image[1]) < std::hypot(best[0], best[1]) ? image : best;
    }
    return best;
}

/* Potential, and field, of a unit charge and all its images at distances of `period` along z. */
void addWirePair(double period, const Vec3& d, double* phi, double* field)
{
    const int    last = 2000;
    const double rho2 = d[0] * d[0] + d[1] * d[1], euler = 0.57721566490153286061;
    for (int t = -last; t <= last; t++)
    {
        const Vec3   r  = {d[0], d[1], d[2] + t * period};
        const double r2 = r[0] * r[0] + r[1] * r[1] + r[2] * r[2], distance = std::sqrt(r2);
        *phi -= t != 0 ? 1 / (std::abs(t) * period) : 0;
        if (r2 > 0)
        {
            *phi += 1 / distance;
            for (std::size_t e = 0; e < 3; e++)
            {
                field[e] += r[e] / (r2 * distance);
            }
        }
    }
    /* sums of t^-3 and t^-5 beyond `last`, by the midpoint rule and its first correction */
    const double from = last + 0.5, p3 = std::pow(period, -3.0), p5 = std::pow(period, -5.0), z = d[2];
    const double third = p3 * (0.5 / (from * from) - 0.125 / std::pow(from, 4)), fifth = p5 * 0.25 / std::pow(from, 4);
    *phi += 2 * euler / period + third * (2 * z * z - rho2) +
            fifth * (2 * std::pow(z, 4) - 6 * z * z * rho2 + 0.75 * rho2 * rho2);
    for (std::size_t e = 0; e < 2; e++)
    {
        field[e] -= d[e] * (-2 * third + fifth * (-12 * z * z + 3 * rho2));
    }
    field[2] -= 4 * z * third + fifth * (8 * z * z * z - 12 * z * rho2);
}

/* All pairs; add(d, phi, field) of the vector d between nearest images, near(d). */
template <typename Nearest, typename Add>
Solution sumOfPairs(const System& system, const Nearest& nearestOf, const Add& add)
{
    const std::size_t n   = system.size();
    Solution          out = emptySolution(n);
    for (std::size_t i = 0; i < n; i++)
    {
        for (std::size_t j = 0; j < n; j++)
        {
            const Vec3 a = system.position(i), b = system.position(j);
            const Vec3 d   = nearestOf(Vec3{a[0] - b[0], a[1] - b[1], a[2] - b[2]});
            double     phi = 0, field[3] = {0, 0, 0};
            add(d, &phi, field);
            for (int other : i < system.excluded.size() ? system.excluded[i] : std::vector<int>())
            {
                const double r = std::sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
                if (static_cast<std::size_t>(other) == j)
                {
                    phi -= 1 / r;
                    for (std::size_t e = 0; e < 3; e++)
                    {
                        field[e] -= d[e] / (r * r * r);
                    }
                }
            }
            out.potential[i] += system.q[j] * phi;
            for (std::size_t e = 0; e < 3; e++)
            {
                out.field[3 * i + e] += system.q[j] * field[e];
            }
        }
    }
    finishSolution(system, &out);
    return out;
}

} // namespace

Solution slabSum(const System& system, double alpha)
{
    const Sum sum = prepare(system, alpha);
    return sumOfPairs(
        system, [&](const Vec3& d) { return nearest(sum, d); },
        [&](const Vec3& d, double* phi, double* field) { addPair(sum, d, phi, field); });
}

Solution wireSum(const System& system)
{
    const double period = std::fabs(system.box[8]);
    return sumOfPairs(
        system,
        [&](const Vec3& d) {
            return Vec3{d[0], d[1], d[2] - period * std::round(d[2] / period)};
        },
        [&](const Vec3& d, double* phi, double* field) { addWirePair(period, d, phi, field); });
}

void expectTargets(const System&              s,
                   const gmxfmm_options&      options,
                   const std::vector<double>& places,
                   Solution (*sum)(const System&),
                   double tolerance)
{
    Plan   plan(s, options);
    System probed = withoutExclusions(s);
    for (std::size_t i = 0; i < places.size(); i += 3)
    {
        probed.add({places[i], places[i + 1], places[i + 2]}, 0);
    }
    ASSERT_EQ(gmxfmm_set_exclusions(plan.get(), nullptr, nullptr), GMXFMM_OK);
    const Values   v         = valuesAt(plan.get(), s.x, places);
    const Solution reference = sum(probed);
    for (std::size_t i = 0; i < places.size(); i++)
    {
        EXPECT_NEAR(v.field[i], reference.field[3 * s.size() + i], tolerance * rms(reference.field));
        EXPECT_NEAR(v.potential[i / 3], reference.potential[s.size() + i / 3], tolerance * rms(reference.potential));
    }
}

void expectReference(const std::string& name, const gmxfmm_options& options)
{
    if (presentOf({name}).empty())
    {
        GTEST_SKIP() << name << " is not there";
    }
    const ReferenceSystem file = referenceSystem(name);
    const Result          r    = solve(file.system, options);
    EXPECT_LT(relativeRms(r.field, file.reference.field), 1e-10);
    EXPECT_LT(relativeRms(r.potential, file.reference.potential), 1e-10);
}

} // namespace fmmtest
