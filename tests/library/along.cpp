/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Derivatives along a way: against fields of charges and dipoles, THEORY (52), by steps of either. */
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "support/moving.h"
#include "support/norms.h"
#include "support/partly_periodic.h"
#include "support/paths.h"
#include "support/sized.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

/* By two steps of all kernels of dipoles. */
Derivatives bySteps(const Moving& m, const gmxfmm_options& options)
{
    static const std::size_t c_place[9] = {0, 3, 4, 3, 1, 5, 4, 5, 2};
    DipoleSystem             charges = m.system, way = m.system;
    const std::size_t        n = m.system.size();
    for (std::size_t k = 0; k < 3 * n; k++)
    {
        charges.mu[k] = 0;
        way.mu[k]     = m.system.q[k / 3] * m.u[k];
    }
    way.q                  = m.w;
    const DipoleSolution a = solveDipoles(charges, options), b = solveDipoles(way, options);
    Derivatives          r;
    for (std::size_t i = 0; i < n; i++)
    {
        double potential = b.potential[i], term = m.w[i] * a.potential[i];
        for (std::size_t d = 0; d < 3; d++)
        {
            double force = m.system.q[i] * b.field[3 * i + d] + m.w[i] * a.field[3 * i + d];
            for (std::size_t k = 0; k < 3; k++)
            {
                force += m.system.q[i] * m.u[3 * i + k] * a.gradient[6 * i + c_place[3 * d + k]];
            }
            r.force.push_back(force);
            r.felt.push_back(m.system.q[i] * a.field[3 * i + d]);
            potential -= m.u[3 * i + d] * a.field[3 * i + d];
            term -= m.system.q[i] * m.u[3 * i + d] * a.field[3 * i + d];
        }
        r.potential.push_back(potential);
        r.energy += term;
        r.size += std::fabs(term);
    }
    return r;
}

/* By the library's function, twice: before an assignment, and by a plan that was used. */
Derivatives byOneCall(const Moving& m, gmxfmm_options options)
{
    const std::size_t n = m.system.size();
    Plan              plan(m.system, options);
    Derivatives       r;
    r.force.resize(3 * n);
    r.felt.resize(3 * n);
    r.potential.resize(n);
    gmxfmm_along along = sized<gmxfmm_along>();
    along.u            = m.u.data();
    along.w            = m.w.data();
    along.force        = r.force.data();
    along.potential    = r.potential.data();
    for (int again = 0; again < 2; again++)
    {
        along.felt = again ? r.felt.data() : nullptr;
        if (gmxfmm_execute_along(plan.get(), m.system.x.data(), &along) != GMXFMM_OK)
        {
            throw std::runtime_error(gmxfmm_message(plan.get()));
        }
    }
    r.energy = along.energy;
    plan.assign(m.system.x);
    EXPECT_NEAR(plan.energy(m.system.x), Plan(m.system, options).energy(m.system.x), 1e-12 * r.size) << "charges stay";
    return r;
}

/* Both are the same sums: rounding. */
void expectSame(const Moving& m, gmxfmm_options options)
{
    for (const gmxfmm_precision precision : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
    {
        SCOPED_TRACE(precision == GMXFMM_DOUBLE ? "double" : "single");
        options.precision       = precision;
        const double      most  = precision == GMXFMM_DOUBLE ? 1e-12 : 2e-5;
        const Derivatives found = byOneCall(m, options), expected = bySteps(m, options);
        EXPECT_LT(relativeRms(found.force, expected.force), most);
        EXPECT_LT(relativeRms(found.potential, expected.potential), most);
        EXPECT_LT(relativeRms(found.felt, expected.felt), most);
        EXPECT_NEAR(found.energy, expected.energy, most * expected.size);
    }
}

class AlongInBox : public testing::TestWithParam<Path>
{
};

} // namespace

TEST_P(AlongInBox, IsWhatFieldsOfDipolesGive)
{
    const Moving m = moving(ions(boxOfVolume(GetParam().box, 24), 24, 9), true);
    expectSame(m, pathOptions(GetParam(), 6, 4, 1));
    expectSame(m, withBoundary(pathOptions(GetParam(), 6, 4, 1), Boundary::Vacuum));
}

INSTANTIATE_TEST_SUITE_P(Paths, AlongInBox, testing::ValuesIn(fastPaths()), pathName);

TEST(Along, InSlabsAndWires)
{
    /* vectors in general orientation, whose axes are turned */
    const Moving m = moving(ions(boxOfVolume(boxTypes().back(), 24), 24, 9), true);
    for (const std::array<int, 3>& periodic : {std::array<int, 3>{1, 1, 0}, {0, 1, 1}, {0, 0, 1}, {0, 1, 0}})
    {
        SCOPED_TRACE(testing::Message() << periodic[0] << periodic[1] << periodic[2]);
        expectSame(m, periodicAlong(explicitOptions(6, 3, 3, 3, 1), periodic));
    }
}

TEST(Along, InOpenSystems)
{
    for (const gmxfmm_m2l m2l : methods())
    {
        SCOPED_TRACE(methodWord(m2l));
        expectSame(moving(droplet(200, 4, 2), true), withBoundary(methodOptions(m2l, 6, 4, 1), Boundary::Open));
    }
    /* one cell, which has no far field */
    expectSame(moving(droplet(60, 4, 2), true), withBoundary(explicitOptions(4, 1, 1, 1, 1), Boundary::Open));
}

TEST(Along, InLeavesOfSeveralLevels)
{
    const Moving   m       = movingInLeaves();
    gmxfmm_options options = withBoundary(automatic(GMXFMM_M2L_ROTATION, 1e-3), Boundary::Open);
    options.order          = 6;
    expectSame(m, options);
}

TEST(Along, IsRefusedByName)
{
    const Moving        m = moving(ions(boxOfVolume(boxTypes()[0], 24), 24, 9), false);
    Plan                plan(m.system, explicitOptions(6, 4, 4, 4, 1));
    std::vector<double> force(72), potential(24);
    gmxfmm_along        along   = sized<gmxfmm_along>();
    const auto          refused = [&](gmxfmm_status status, const char* word)
    {
        EXPECT_EQ(gmxfmm_execute_along(plan.get(), m.system.x.data(), &along), status);
        EXPECT_NE(std::string(gmxfmm_message(plan.get())).find(word), std::string::npos) << gmxfmm_message(plan.get());
    };
    refused(GMXFMM_ERROR_NULL, "NULL");
    along.u         = m.u.data();
    along.w         = m.w.data();
    along.force     = force.data();
    along.potential = potential.data();
    ASSERT_EQ(gmxfmm_set_dipoles(plan.get(), 24, m.system.mu.data()), GMXFMM_OK);
    refused(GMXFMM_ERROR_OPTION, "dipoles");
    ASSERT_EQ(gmxfmm_set_dipoles(plan.get(), 24, nullptr), GMXFMM_OK);
    ASSERT_EQ(gmxfmm_set_targets(plan.get(), 1, m.system.x.data()), GMXFMM_OK);
    refused(GMXFMM_ERROR_OPTION, "targets");
    ASSERT_EQ(gmxfmm_set_targets(plan.get(), 0, nullptr), GMXFMM_OK);
    std::vector<double> bad = m.w;
    bad[7]                  = NAN;
    along.w                 = bad.data();
    refused(GMXFMM_ERROR_CHARGE, "particle 7");
    EXPECT_EQ(gmxfmm_execute_along(plan.get(), m.system.x.data(), nullptr), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_execute_along(nullptr, m.system.x.data(), &along), GMXFMM_ERROR_NULL);
    gmxfmm_device_along enqueued = sized<gmxfmm_device_along>();
    EXPECT_EQ(gmxfmm_enqueue_along(nullptr, m.system.x.data(), &enqueued, nullptr), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_enqueue_along(plan.get(), m.system.x.data(), nullptr, nullptr), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_enqueue_along(plan.get(), m.system.x.data(), &enqueued, nullptr),
              gmxfmm_capabilities(plan.get()) & GMXFMM_CAN_ENQUEUE ? GMXFMM_ERROR_NULL : GMXFMM_ERROR_UNSUPPORTED);
    along.w = m.w.data();
    EXPECT_EQ(gmxfmm_execute_along(plan.get(), m.system.x.data(), &along), GMXFMM_OK) << gmxfmm_message(plan.get());
}
