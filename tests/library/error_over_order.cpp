/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The error falls with the order, in both precisions, and as predicted. */
#include <tuple>

#include <gtest/gtest.h>

#include "support/ewald.h"
#include "support/norms.h"
#include "support/paths.h"
#include "support/plan.h"
#include "support/suites.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

System cubeOfWater()
{
    return water(boxOfVolume(boxTypes()[0], 12), 5);
}

struct Layers
{
    int    separation;
    int    cells;
    double ratio; /* of the errors of orders p + 2 and p */
    double last;  /* error at order 20 */
};

using MethodAndLayers = std::tuple<gmxfmm_m2l, Layers>;

std::string layersName(const testing::TestParamInfo<MethodAndLayers>& info)
{
    return methodWord(std::get<0>(info.param)) + "Separation" + std::to_string(std::get<1>(info.param).separation);
}

class ErrorOverOrder : public testing::TestWithParam<MethodAndLayers>
{
  protected:
    static const Layers& layers()
    {
        return std::get<1>(GetParam());
    }
    static bool slow()
    {
        return isSlow(std::get<0>(GetParam()));
    }
    static double error(const System& s, const Solution& reference, int order, gmxfmm_precision precision)
    {
        /* order 40 by loops of O(p^4) takes a second a cell: there are 8 then */
        const int  cells = std::get<0>(GetParam()) == GMXFMM_M2L_FFT ? layers().cells : slow() && order > 20 ? 2 : 4;
        const auto result =
            solve(s, methodOptions(std::get<0>(GetParam()), order, cells, layers().separation, precision));
        return relativeRms(result.force, reference.force);
    }
};

} // namespace

/* The worst pair of cells has expansion radii a = sqrt(3)/2 of the edge and is 2 or 3 edges away, so that an order is
 * worth a / (2 - a) = 0.76 or a / (3 - a) = 0.41 at the worst: 0.58 and 0.17 for two orders. Most pairs converge
 * faster. */
TEST_P(ErrorOverOrder, ErrorFallsWithOrder)
{
    const System        s         = cubeOfWater();
    const Solution      reference = ewald(s);
    const int           last      = slow() ? 12 : 20;
    std::vector<double> errors;
    for (int order = 0; order <= last; order++)
    {
        errors.push_back(error(s, reference, order, GMXFMM_DOUBLE));
    }
    EXPECT_LT(errors[0], 1);
    for (std::size_t p = 0; p + 2 < errors.size(); p++)
    {
        EXPECT_LT(errors[p + 2], layers().ratio * errors[p]) << "order " << p;
    }
    EXPECT_LT(error(s, reference, 20, GMXFMM_DOUBLE), layers().last);
}

/* On to the highest order at the same rate, until rounding is met: of FMM and reference, some 1e-14 each of potentials
 * that are 10 times larger than what is left of them. */
TEST_P(ErrorOverOrder, GoesOnToOrder40)
{
    const System   s         = cubeOfWater();
    const Solution reference = ewald(s);
    const int      step = 10, last = slow() && layers().separation == 2 ? 30 : GMXFMM_MAX_ORDER;
    double         before = error(s, reference, 20, GMXFMM_DOUBLE);
    for (int order = 20 + step; order <= last; order += step)
    {
        const double now = error(s, reference, order, GMXFMM_DOUBLE);
        EXPECT_LT(now, std::pow(layers().ratio, 0.5 * step) * before + 1e-13) << "order " << order;
        before = now;
    }
}

/* No overflow, underflow or amplified rounding at high orders: the error in single precision is that in double until
 * rounding, some 1e-6, is reached, and stays there. */
TEST_P(ErrorOverOrder, SinglePrecisionHoldsToOrder20)
{
    const System   s         = cubeOfWater();
    const Solution reference = ewald(s);
    for (int order : slow() ? std::vector<int>{0, 8, 20} : std::vector<int>{0, 1, 4, 8, 12, 13, 16, 19, 20})
    {
        const double exact   = error(s, reference, order, GMXFMM_DOUBLE);
        const double rounded = error(s, reference, order, GMXFMM_SINGLE);
        EXPECT_LT(rounded, 1.05 * exact + 3e-6) << "order " << order;
    }
}

INSTANTIATE_TEST_SUITE_P(Layers,
                         ErrorOverOrder,
                         testing::Combine(testing::ValuesIn(methods()),
                                          testing::Values(Layers{1, 5, 0.6, 1e-6}, Layers{2, 8, 0.2, 1e-11})),
                         layersName);

class Prediction : public testing::TestWithParam<Path>
{
};

/* The model that chooses the parameters knows the error it chooses, for what it is made for, water in a box of any
 * shape: within a factor of 3, about one order. */
TEST_P(Prediction, IsTheErrorReached)
{
    const System   s         = liquidWater(boxOfVolume(GetParam().box, 12));
    const Solution reference = ewald(s);
    for (double asked : {1e-2, 4e-4, 1e-6})
    {
        const Result r       = solve(s, automatic(GetParam().m2l, asked));
        const double reached = relativeRms(r.force, reference.force);
        EXPECT_LE(r.info.predicted_error, asked);
        EXPECT_LT(r.info.predicted_error, 3 * reached) << "order " << r.info.order << ", ws " << r.info.separation;
        EXPECT_GT(r.info.predicted_error, reached / 3) << "order " << r.info.order << ", ws " << r.info.separation;
    }
}

INSTANTIATE_TEST_SUITE_P(Paths, Prediction, testing::ValuesIn(fastPaths()), pathName);
