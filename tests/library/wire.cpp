/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Wires: periodic along one vector, open across, without a background. */
#include <gtest/gtest.h>

#include "support/derivatives.h"
#include "support/norms.h"
#include "support/partly_periodic.h"
#include "support/plan.h"
#include "support/suites.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

/* Of order 20 with two layers of near cells, as in slab.cpp. */
const double truncation = 1e-10;

struct Line
{
    std::string        name;
    double             period, width[2];
    std::array<int, 3> cells;
};

const std::vector<Line>& lines()
{
    static const std::vector<Line> c_lines = {{"Even", 4, {3, 2.5}, {3, 3, 4}},
                                              {"OnTheAxis", 6, {0, 0}, {1, 1, 6}},
                                              {"Long", 30, {1, 1}, {1, 1, 20}},
                                              {"Short", 1, {5, 4}, {5, 4, 1}},
                                              {"Ribbon", 3, {6, 0}, {6, 1, 3}}};
    return c_lines;
}

void PrintTo(const Line& line, std::ostream* out)
{
    *out << line.name;
}

System chargesIn(const Line& p, double net = 2.5)
{
    System s;
    Random random(23);
    s.box = {1, 0, 0, 0, 1, 0, 0, 0, p.period};
    for (int i = 0; i < 60; i++)
    {
        /* none so close to another that single precision does not tell the distance */
        const double a = random.centred(), b = random.centred(), c = (17 * i % 60 + 0.5 * random.uniform()) / 60;
        s.add({0.4 + 0.5 * p.width[0] * a, -3 + 0.5 * p.width[1] * b, p.period * c}, i % 2 == 0 ? 1 : -1);
    }
    s.q[3] += net;
    s.exclude(0, 1);
    s.exclude(5, 20);
    s.exclude(7, 45);
    return s;
}

gmxfmm_options wire(const gmxfmm_options& options)
{
    return periodicAlong(options, {0, 0, 1});
}

gmxfmm_options fine(const Line& p, gmxfmm_precision precision = GMXFMM_DOUBLE)
{
    return wire(explicitOptions(20, p.cells, 2, precision));
}

class Wire : public testing::TestWithParam<Line>
{
};

} // namespace

TEST_P(Wire, IsTheSumOverImages)
{
    const System   s         = chargesIn(GetParam());
    const Solution reference = wireSum(s);
    expectAgreement(solve(s, fine(GetParam())), reference, truncation);
    expectAgreement(solve(s, fine(GetParam(), GMXFMM_SINGLE)), reference, 1e-5);
    for (const double accuracy : {1e-3, 1e-5, 1e-7, 1e-9})
    {
        EXPECT_LT(relativeRms(solve(s, wire(askedOptions(accuracy))).force, reference.force), accuracy);
    }
    for (const double accuracy : {1e-3, 1e-5})
    {
        EXPECT_LT(relativeRms(solve(s, wire(askedOptions(accuracy, GMXFMM_SINGLE))).force, reference.force), accuracy);
    }
}

/* Along the wire cells strain with the box, so that it is the derivative of the truncated energy; across at high order.
 */
TEST_P(Wire, VirialIsTheStrainDerivative)
{
    const System s = chargesIn(GetParam());
    expectStrainDerivatives(s, wire(explicitOptions(4, GetParam().cells, 1)), {8});
    expectStrainDerivatives(s, wire(explicitOptions(20, GetParam().cells, 2)), {0, 1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_P(Wire, IsTheSameAlongOtherAxes)
{
    const System s = chargesIn(GetParam());
    const Result a = solve(s, fine(GetParam()));
    for (const std::array<std::size_t, 3>& axes :
         {std::array<std::size_t, 3>{1, 2, 0}, std::array<std::size_t, 3>{2, 0, 1}})
    {
        System             other    = s;
        std::array<int, 3> periodic = {0, 0, 0}, cells = {0, 0, 0};
        other.box = {};
        for (std::size_t d = 0; d < 3; d++)
        {
            cells[axes[d]] = GetParam().cells[d];
            for (std::size_t i = 0; i < s.size(); i++)
            {
                other.x[3 * i + axes[d]] = s.x[3 * i + d];
            }
        }
        periodic[axes[2]]      = 1;
        other.box[4 * axes[2]] = -s.box[8];
        const Result r         = solve(other, periodicAlong(explicitOptions(20, cells, 2), periodic));
        EXPECT_NEAR(r.energy, a.energy, 1e-11 * std::fabs(a.energy)); /* rounding */
        EXPECT_EQ(r.info.grid[axes[2]], GetParam().cells[2]);
        for (std::size_t i = 0; i < 9; i++)
        {
            EXPECT_NEAR(r.virial[3 * axes[i / 3] + axes[i % 3]], a.virial[i], 1e-11 * std::fabs(a.energy));
        }
    }
    const System tilted = rotated(s, {1, 2, 3}, 0.7);
    EXPECT_NEAR(solve(tilted, fine(GetParam())).energy, a.energy, 1e-9 * std::fabs(a.energy)); /* other cells */
}

TEST_P(Wire, HasTargets)
{
    const System        s = chargesIn(GetParam());
    std::vector<double> places;
    for (const double t : {0.1, 0.5, 0.9})
    {
        places.insert(places.end(), {0.4 + t, -3 + 0.3 * t, t * s.box[8]});
    }
    expectTargets(s, fine(GetParam()), places, wireSum, truncation);
}

INSTANTIATE_TEST_SUITE_P(Lines, Wire, testing::ValuesIn(lines()), parameterName<Line>);

/* Much wider than its period: cells are wider than high, by more than cubes would be. */
TEST(WideWire, IsTheSumOverImages)
{
    System s;
    Random random(5);
    s.box = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    scatter(&s, 150, {0, 0, 0}, {40, 40, 1}, &random);
    const Solution reference = wireSum(s);
    for (const double accuracy : {1e-3, 1e-6})
    {
        EXPECT_LT(relativeRms(solve(s, wire(askedOptions(accuracy))).force, reference.force), accuracy);
    }
}

/* The file's period is along z; it is good to 4e-12. */
TEST(ReferenceWire, IsThatOfTheFile)
{
    expectReference("1d-cloud_wall_2400", wire(explicitOptions(20, 6, 6, 6, 2)));
}

TEST(RefusedWire, SaysWhy)
{
    const double   box[9] = {1, 0, 0, 0, 1, 0, 0, 0, 0};
    gmxfmm_options options;
    gmxfmm_default_options(&options);
    options = wire(options);
    expectRefused(options, 10, box, GMXFMM_ERROR_BOX, "the periodic vector of the box is");
    options.m2l = GMXFMM_M2L_ROTATION;
    expectRefused(options, 10, box, GMXFMM_ERROR_UNSUPPORTED, "use m2l = fft");
    options.m2l    = GMXFMM_M2L_FFT;
    options.device = GMXFMM_CUDA;
    expectRefused(options, 10, box, GMXFMM_ERROR_UNSUPPORTED, "a wire is not offered on a GPU, use the CPU");
}
