/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lattice sums of a wire, images one by one and a series, THEORY (47), against waves along it, (46). */
#include <cmath>
#include <complex>
#include <vector>

#include <gtest/gtest.h>

extern "C"
{
#define HARM_T double
#define HARM_R double
#include "fmm/math/harmonics.h"
#include "fmm/geometry/lattice_wire.h"
}

using Complex = std::complex<double>;

namespace
{

const double pi = 3.14159265358979323846;

enum
{
    c_degree = 40
};

/* THEORY (46) at a distance of half a period from the axis or more, m >= 0. */
Complex waves(double period, const double* r, int n, int m)
{
    const double  rho = std::hypot(r[0], r[1]);
    const Complex i(0, 1), direction = std::pow(Complex(r[0], r[1]) / rho, m);
    Complex       sum = 0;
    for (int k = 1; k < 400; k++)
    {
        const double g = 2 * pi * k / period;
        if (g * rho > 700)
        {
            break; /* e^-700 */
        }
        const double  bessel = std::cyl_bessel_k(static_cast<double>(m), g * rho) * std::pow(-g, m);
        const Complex up     = std::pow(i * g, n - m) * std::polar(1.0, g * r[2]);
        sum += bessel * 2 * up.real(); /* g and -g */
    }
    sum *= 2 / period;
    if (n == m)
    {
        sum += m == 0 ? 2 / period * std::log(2 * period / rho)
                      : -2 / period * (m % 2 == 0 ? -1 : 1) * std::exp(std::lgamma(m)) * std::pow(2.0, m - 1) /
                            std::pow(rho, m);
    }
    return (n % 2 == 0 ? 1.0 : -1.0) * direction * sum;
}

} // namespace

TEST(WireSums, AreSumsOfWaves)
{
    for (const int num : {1, 2, 3})
    {
        const int    inner[3] = {4, 4, num}, periodic[3] = {0, 0, 1};
        const double box[9] = {4, 0, 0, 0, 4, 0, 0, 0, 1.0 * num};
        fmm_cells    cells  = {};
        ASSERT_EQ(fmm_cells_set(&cells, box, inner, periodic, 1, 0), GMXFMM_OK);
        for (const int z : {0, 1})
        {
            const int           k[3] = {2, -3, z}; /* no vector of it is near */
            std::vector<double> work(FMM_WIRE_WORK), s(static_cast<std::size_t>(harm_size(c_degree)));
            const double        r[3] = {2, -3, 1.0 * z};
            fmm_wire_sums(&cells, FMM_SUM_S, c_degree, k, work.data(), s.data());
            for (int m = 0; m <= c_degree; m++)
            {
                for (int n = m; n <= c_degree; n++)
                {
                    const Complex expected = waves(num, r, n, m);
                    /* rounding, relative to the size of Theta_n^m at the nearest image */
                    const double unit = std::exp(0.5 * (std::lgamma(n - m + 1) + std::lgamma(n + m + 1))) /
                                        std::pow(std::hypot(2, 3), n + 1);
                    const double tolerance = 1e-13 * std::max(unit, std::abs(expected));
                    EXPECT_NEAR(s[static_cast<std::size_t>(harm_re(c_degree, n, m))], expected.real(), tolerance)
                        << n << " " << m;
                    if (m > 0)
                    {
                        EXPECT_NEAR(s[static_cast<std::size_t>(harm_im(c_degree, n, m))], expected.imag(), tolerance)
                            << n << " " << m;
                    }
                }
            }
        }
        fmm_cells_free(&cells);
    }
}
