/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The octree on the GPU computes what that of the CPU does in double precision (targets that are no charges:
 * targets.cpp). */
#include <tuple>

#include <gtest/gtest.h>

#include "support/agreement.h"
#include "support/cuda.h"
#include "support/norms.h"
#include "support/paths.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

const Mat3 cube  = {1.9, 0, 0, 0, 1.9, 0, 0, 0, 1.9};
const Mat3 brick = {1.2, 0, 0, 0, 1.6, 0, 0, 0, 3.6};

class CudaTree : public WithCuda<testing::TestWithParam<MethodAndPrecision>>
{
  protected:
    /* Rotation with translations of two orders, as it is by default; all of one order: ToOneOrder, octree.cpp. */
    gmxfmm_options options(int order, int depth, int separation) const
    {
        gmxfmm_options options =
            depthOptions(std::get<0>(GetParam()), order, depth, separation, std::get<1>(GetParam()));
        options.m2l_truncate = GMXFMM_AUTO;
        return options;
    }
};

/* 5000 ions fill 4 % of the places of cells at depth 4: empty cells on every level but the first. */
System sparse()
{
    System s = ions({1.6, 0, 0, 0, 1.6, 0, 0, 0, 1.6}, 4000, 3);
    s.add(ions({0.9, 0, 0, 0, 0.9, 0, 0, 0, 0.9}, 1000, 5), {6.3, 2.2, 3.1});
    s.box = {8, 0, 0, 0, 8, 0, 0, 0, 8};
    return s;
}

} // namespace

TEST_P(CudaTree, InWater)
{
    const System s = water(cube, 7);
    expectAgreement(s, options(6, 2, 1));
    expectAgreement(s, options(3, 3, 2));
    expectAgreement(s, withBoundary(options(5, 2, 1), Boundary::Vacuum));
}

TEST_P(CudaTree, ToOneOrder)
{
    gmxfmm_options options = this->options(6, 2, 1);
    options.m2l_truncate   = 0;
    expectAgreement(water(cube, 7), options);
}

TEST_P(CudaTree, OfSeveralRoots)
{
    expectAgreement(water(brick, 9), options(5, 1, 1));
    expectAgreement(water(brick, 9), options(5, 2, 1));
}

TEST_P(CudaTree, OfADroplet)
{
    const System s = droplet(600, 2, 17);
    for (int depth = 1; depth <= 4; depth++)
    {
        expectAgreement(s, withBoundary(options(4, depth, 1), Boundary::Open));
    }
    expectAgreement(s, withBoundary(options(4, 3, 2), Boundary::Open));
}

TEST_P(CudaTree, MostlyEmpty)
{
    expectAgreement(sparse(), options(4, 4, 1));
    expectAgreement(sparse(), withBoundary(options(4, 4, 1), Boundary::Open));
}

TEST_P(CudaTree, WithANetCharge)
{
    System s = ions(cube, 400, 5);
    for (double& q : s.q)
    {
        q += 0.25;
    }
    expectAgreement(s, options(6, 2, 1));
}

TEST_P(CudaTree, OneOrNoParticle)
{
    System s;
    s.box                  = {3, 0, 0, 0, 3, 0, 0, 0, 3};
    gmxfmm_options options = this->options(6, 2, 1);
    options.device         = GMXFMM_CUDA;
    EXPECT_EQ(solve(s, options).energy, 0);
    s.add({1.2, 2.9, 0.1}, 1);
    expectAgreement(s, this->options(6, 2, 1));
    expectAgreement(s, withBoundary(this->options(6, 2, 1), Boundary::Open));
}

TEST_P(CudaTree, AtEveryOrder)
{
    const System s        = droplet(300, 2, 11);
    const bool   rotation = std::get<0>(GetParam()) == GMXFMM_M2L_ROTATION;
    const int    last     = rotation && std::get<1>(GetParam()) == GMXFMM_DOUBLE ? 24 : 20;
    for (int order = 0; order <= last; order++)
    {
        SCOPED_TRACE(order);
        expectAgreement(s, withBoundary(options(order, 2, 1), Boundary::Open));
    }
    for (int order = 19; order <= last; order++)
    {
        SCOPED_TRACE(order);
        expectAgreement(water(cube, 7), options(order, 2, 1));
    }
}

/* Two plans in turn, each twice, and other particles in the same plan: nothing is kept that should not be. */
TEST_P(CudaTree, OfOtherParticlesInTheSamePlan)
{
    gmxfmm_options options = this->options(4, 3, 1);
    options.device         = GMXFMM_CUDA;
    const System s = water(cube, 7), other = ions(cube, static_cast<int>(s.size()), 3);
    Plan         plan(withoutExclusions(s), options), second(withoutExclusions(s), options);
    const Result first = plan.execute(s.x), again = second.execute(s.x);
    EXPECT_EQ(first.force, again.force);
    plan.assign(other.x);
    plan.execute(other.x);
    plan.assign(s.x);
    EXPECT_EQ(plan.execute(s.x).force, first.force);
    EXPECT_EQ(plan.execute(s.x).force, first.force);
}

INSTANTIATE_TEST_SUITE_P(Methods,
                         CudaTree,
                         testing::Combine(testing::Values(GMXFMM_M2L_ROTATION, GMXFMM_M2L_SYMMETRIC, GMXFMM_M2L_NAIVE),
                                          testing::Values(GMXFMM_DOUBLE, GMXFMM_SINGLE)),
                         methodAndPrecisionName);

using CudaDynamic = WithCuda<>;

TEST_F(CudaDynamic, InWater)
{
    gmxfmm_options options = depthOptions(GMXFMM_M2L_NAIVE, 5, 2, 1), dynamic = options;
    const System   s = water(cube, 7);
    options.device = dynamic.device = GMXFMM_CUDA;
    dynamic.m2l                     = GMXFMM_M2L_DYNAMIC;
    /* the same products in another order */
    EXPECT_LT(relativeRms(solve(s, dynamic).force, solve(s, options).force), 1e-12);
}
