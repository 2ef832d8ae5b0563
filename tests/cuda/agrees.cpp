/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The GPU computes what the CPU does in double precision: every box shape, boundary, order, separation and precision.
 */
#include <tuple>

#include <gtest/gtest.h>

#include "support/agreement.h"
#include "support/cuda.h"
#include "support/suites.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

class CudaAgrees : public WithCuda<testing::TestWithParam<std::tuple<BoxType, gmxfmm_precision>>>
{
  protected:
    BoxType box() const
    {
        return std::get<0>(GetParam());
    }
    gmxfmm_options options(int order, int cells, int separation) const
    {
        return explicitOptions(order, evenGrid(box(), cells), separation, std::get<1>(GetParam()));
    }
};

} // namespace

TEST_P(CudaAgrees, InWater)
{
    expectAgreement(water(boxOfVolume(box(), 5), 7), options(8, 5, 1));
}

TEST_P(CudaAgrees, WithTwoNearLayers)
{
    expectAgreement(water(boxOfVolume(box(), 5), 7), options(5, 7, 2));
}

TEST_P(CudaAgrees, InVacuum)
{
    expectAgreement(water(boxOfVolume(box(), 4), 3), withBoundary(options(6, 4, 1), Boundary::Vacuum));
}

/* Sides whose lengths are left to cuFFT, and odd and even ones. */
TEST_P(CudaAgrees, OnUnevenGrids)
{
    const System s = ions(boxOfVolume(box(), 100), 400, 5);
    for (const std::array<int, 3>& cells :
         {std::array<int, 3>{11, 6, 7}, {6, 13, 8}, {7, 5, 11}, {9, 10, 8}, {5, 6, 9}, {4, 4, 3}})
    {
        expectAgreement(s, explicitOptions(4, cells, 1, std::get<1>(GetParam())));
    }
}

TEST_P(CudaAgrees, WithANetCharge)
{
    System s = ions(boxOfVolume(box(), 100), 200, 5);
    for (double& q : s.q)
    {
        q += 0.25;
    }
    expectAgreement(s, options(6, 4, 1));
}

INSTANTIATE_TEST_SUITE_P(Boxes,
                         CudaAgrees,
                         testing::Combine(testing::ValuesIn(boxTypes()), testing::Values(GMXFMM_DOUBLE, GMXFMM_SINGLE)),
                         boxAndPrecisionName);

using CudaOrders = WithCuda<testing::TestWithParam<int>>;
using CudaCells  = WithCuda<>;

TEST_P(CudaOrders, Periodic)
{
    const BoxType& rectangular = boxTypes()[1];
    const System   s           = ions(boxOfVolume(rectangular, 64), 160, 11);
    for (gmxfmm_precision precision : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
    {
        expectAgreement(s, explicitOptions(GetParam(), evenGrid(rectangular, 4), 1, precision));
    }
}

TEST_P(CudaOrders, Open)
{
    const System s = droplet(300, 3, 17);
    for (gmxfmm_precision precision : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
    {
        expectAgreement(s, withBoundary(explicitOptions(GetParam(), 4, 4, 4, 1, precision), Boundary::Open));
        expectAgreement(s, withBoundary(explicitOptions(GetParam(), 7, 6, 5, 2, precision), Boundary::Open));
    }
}

/* The longest first dimension that is transformed without cuFFT, 100, open and periodic. */
TEST_P(CudaOrders, OfANeedle)
{
    System open = droplet(300, 3, 17), periodic = ions({25, 0, 0, 0, 2, 0, 0, 0, 2}, 160, 11);
    for (std::size_t i = 0; i < open.size(); i++)
    {
        open.x[3 * i] *= 12;
    }
    for (gmxfmm_precision precision : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
    {
        expectAgreement(open, withBoundary(explicitOptions(GetParam(), 50, 4, 4, 1, precision), Boundary::Open));
        expectAgreement(periodic, explicitOptions(GetParam(), 100, 8, 8, 1, precision));
    }
}

INSTANTIATE_TEST_SUITE_P(All, CudaOrders, testing::Range(0, GMXFMM_MAX_ORDER_SINGLE + 1));

/* A cell far beyond what one list in shared memory holds, beside empty ones. */
TEST_F(CudaCells, WithFiveThousandParticles)
{
    Random random(3);
    System s;
    s.box = {6, 0, 0, 0, 6, 0, 0, 0, 6};
    scatter(&s, 5000, {2.05, 2.05, 2.05}, {0.9, 0.9, 0.9}, &random);
    scatter(&s, 40, {0, 0, 0}, {6, 6, 2}, &random);
    for (int i = 0; i + 2 < 5000; i += 3)
    {
        s.exclude(static_cast<std::size_t>(i), static_cast<std::size_t>(i + 2));
    }
    /* random points come as close as 1e-4 of a cell: in single precision that pair's force is off by 1e-3 */
    expectAgreement(s, explicitOptions(6, 6, 6, 6, 1, GMXFMM_DOUBLE));
    gmxfmm_options open = withBoundary(explicitOptions(6, 6, 6, 6, 1, GMXFMM_DOUBLE), Boundary::Open);
    expectAgreement(s, open);
}

TEST_F(CudaCells, MostlyEmpty)
{
    const System s = ions({20, 0, 0, 0, 20, 0, 0, 0, 20}, 30, 3);
    expectAgreement(s, explicitOptions(6, 20, 20, 20, 1, GMXFMM_DOUBLE));
    expectAgreement(s, explicitOptions(6, 20, 20, 20, 2, GMXFMM_SINGLE));
}

TEST_F(CudaCells, OneOrNoParticle)
{
    System s;
    s.box = {3, 0, 0, 0, 3, 0, 0, 0, 3};
    for (gmxfmm_precision precision : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
    {
        gmxfmm_options options = explicitOptions(6, 3, 3, 3, 1, precision);
        options.device         = GMXFMM_CUDA;
        const Result none      = solve(s, options);
        EXPECT_EQ(none.energy, 0);
        System one = s;
        one.add({1.2, 2.9, 0.1}, 1);
        expectAgreement(one, options);
    }
}
