/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Transforms of many fields side by side, against the definition. */
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "support/transforms.h"

namespace
{

using Grid    = std::array<int, 3>;
using Complex = std::complex<long double>;

std::size_t points_of(const Grid& n)
{
    return static_cast<std::size_t>(n[0]) * static_cast<std::size_t>(n[1]) * static_cast<std::size_t>(n[2]);
}

/* sum over x of field(x) e^(-2 pi i f.x/n), one direction after the other, all frequencies */
std::vector<Complex> definition(const Grid& n, const double* field)
{
    std::vector<Complex> values(field, field + points_of(n));
    for (int d = 0; d < 3; d++)
    {
        const auto           length = static_cast<std::size_t>(n[static_cast<std::size_t>(d)]);
        const std::size_t    stride = d == 2   ? 1
                                      : d == 1 ? static_cast<std::size_t>(n[2])
                                               : static_cast<std::size_t>(n[1]) * static_cast<std::size_t>(n[2]);
        std::vector<Complex> root(length), line(length);
        for (std::size_t k = 0; k < length; k++)
        {
            const long double angle =
                -8 * std::atan(1.0L) * static_cast<long double>(k) / static_cast<long double>(length);
            root[k] = std::polar(1.0L, angle);
        }
        for (std::size_t first = 0; first < values.size(); first++)
        {
            if (first / stride % length != 0)
            {
                continue;
            }
            for (std::size_t f = 0; f < length; f++)
            {
                line[f] = 0;
                for (std::size_t x = 0; x < length; x++)
                {
                    line[f] += values[first + x * stride] * root[f * x % length];
                }
            }
            for (std::size_t f = 0; f < length; f++)
            {
                values[first + f * stride] = line[f];
            }
        }
    }
    return values;
}

/* Largest error of the spectra over their root mean square, and of the field that comes back over its own. */
void check(const Grid& n, const std::array<int, 2>& used, int fields, bool is_double)
{
    const std::size_t   points = points_of(n), rows = points / static_cast<std::size_t>(n[2]);
    const std::size_t   half = static_cast<std::size_t>(n[2] / 2 + 1), freqs = rows * half;
    std::vector<double> field(points * static_cast<std::size_t>(fields)), back(field.size()), back3(field.size());
    std::vector<double> spectrum(2 * freqs * static_cast<std::size_t>(fields)), spectrum3(spectrum.size());
    std::mt19937        random(7);
    for (std::size_t i = 0; i < field.size(); i++)
    {
        const auto row = static_cast<int>(i % points / static_cast<std::size_t>(n[2]));
        const bool in  = row / n[1] < used[0] && row % n[1] < used[1];
        field[i]       = in ? static_cast<float>(std::uniform_real_distribution<double>(-1, 1)(random)) : 0;
    }
    const auto transforms = is_double ? transforms_double : transforms_single;
    ASSERT_EQ(transforms(n.data(), used.data(), fields, 1, field.data(), spectrum.data(), back.data()), 0);
    ASSERT_EQ(transforms(n.data(), used.data(), fields, 3, field.data(), spectrum3.data(), back3.data()), 0);
    /* the same bits with any number of threads */
    EXPECT_EQ(spectrum, spectrum3);
    EXPECT_EQ(back, back3);
    long double worst = 0, sum = 0, worst_back = 0;
    for (std::size_t k = 0; k < static_cast<std::size_t>(fields); k++)
    {
        const std::vector<Complex> expected = definition(n, field.data() + k * points);
        for (std::size_t i = 0; i < freqs; i++)
        {
            const Complex exact = expected[i / half * static_cast<std::size_t>(n[2]) + i % half];
            const Complex got(spectrum[2 * (k * freqs + i)], spectrum[2 * (k * freqs + i) + 1]);
            worst = std::max<long double>(worst, std::abs(got - exact));
            sum += std::norm(exact);
        }
        for (std::size_t i = 0; i < points; i++)
        {
            const double got = back[k * points + i] / static_cast<double>(points);
            worst_back       = std::max<long double>(worst_back, std::abs(got - field[k * points + i]));
        }
    }
    /* rounding: the largest of some 10^4 errors, each of some forty operations, and of sums over a prime's elements */
    const int    prime = std::max({n[0], n[1], n[2]});
    const double eps   = is_double ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
    const double limit = 16 * eps * std::max(1.0, std::sqrt(prime / 20.0));
    EXPECT_LE(worst, limit * std::sqrt(sum / static_cast<long double>(freqs * static_cast<std::size_t>(fields))));
    EXPECT_LE(worst_back, limit);
}

class Transforms : public testing::TestWithParam<bool>
{
};

/* Every length up to 50, and some with large prime factors, in each direction: all codes for short transforms, one to
 * several stages, odd and even numbers of rows and points of a row. */
TEST_P(Transforms, HaveAnyLengthInAnyDirection)
{
    std::vector<int> lengths{53, 64, 77, 97, 100, 121, 128, 210, 243, 251};
    for (int n = 1; n <= 50; n++)
    {
        lengths.push_back(n);
    }
    for (const int n : lengths)
    {
        for (const Grid& grid : {Grid{n, 3, 2}, Grid{2, n, 3}, Grid{3, 1, n}})
        {
            SCOPED_TRACE(testing::Message() << grid[0] << " x " << grid[1] << " x " << grid[2]);
            check(grid, {grid[0], grid[1]}, 5, GetParam());
        }
    }
}

TEST_P(Transforms, HaveAnyNumberOfFields)
{
    for (const int fields : {1, 2, 4, 9, 16, 17, 81})
    {
        SCOPED_TRACE(testing::Message() << fields << " fields");
        check({6, 7, 10}, {6, 7}, fields, GetParam());
    }
}

/* as those of open systems, which are padded */
TEST_P(Transforms, HaveFieldsThatEndBeforeTheGrid)
{
    const Grid n{10, 9, 8};
    for (const std::array<int, 2>& used : {std::array<int, 2>{5, 5}, {4, 9}, {10, 4}, {1, 1}, {3, 2}})
    {
        SCOPED_TRACE(testing::Message() << used[0] << " planes, " << used[1] << " rows");
        check(n, used, 5, GetParam());
    }
}

INSTANTIATE_TEST_SUITE_P(Precision,
                         Transforms,
                         testing::Bool(),
                         [](const testing::TestParamInfo<bool>& of) { return of.param ? "Double" : "Single"; });

} // namespace
