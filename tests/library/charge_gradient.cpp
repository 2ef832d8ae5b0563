/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Derivatives of the energy by parameters of charges: of the truncated energy, at any order. It is quadratic in the
 * charges, so that central differences of any width have no error but rounding. */
#include <cmath>

#include <gtest/gtest.h>

#include "support/norms.h"
#include "support/paths.h"
#include "support/plan.h"
#include "support/suites.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

/* Parameters that share particles, name one twice, and have none. */
struct Parameters
{
    std::vector<int>    start = {0, 3, 3, 7, 9}, index = {0, 3, 9, 3, 20, 21, 22, 5, 5};
    std::vector<double> dq = {1, -0.5, 2, 1, 0.3, -0.7, 0.1, 0.25, 0.5};

    int num() const
    {
        return static_cast<int>(start.size()) - 1;
    }
    gmxfmm_status give(gmxfmm_plan* plan) const
    {
        return gmxfmm_set_charge_derivatives(plan, num(), start.data(), index.data(), dq.data());
    }
};

System ionsIn(const BoxType& type)
{
    System s = ions(boxOfVolume(type, 64), 64, 9);
    s.q[3]   = 1.7; /* a net charge */
    s.q[20]  = 0;   /* a charge that is about to grow */
    s.exclude(0, 1);
    s.exclude(5, 20);
    s.exclude(5, farthestFrom(s, 5));
    return s;
}

std::vector<double> gradientOf(Plan& plan, const System& s, int num, gmxfmm_output output = sized<gmxfmm_output>())
{
    std::vector<double> gradient(static_cast<std::size_t>(num), NAN);
    output.charge_gradient = gradient.data();
    EXPECT_EQ(gmxfmm_execute(plan.get(), s.x.data(), &output), GMXFMM_OK) << gmxfmm_message(plan.get());
    return gradient;
}

void expectGradient(const System& s, const gmxfmm_options& options)
{
    const double     rounding = options.precision == GMXFMM_DOUBLE ? 1e-11 : 1e-4; /* of differences of energies */
    const Parameters parameters;
    Plan             plan(s, options);
    ASSERT_EQ(parameters.give(plan.get()), GMXFMM_OK) << gmxfmm_message(plan.get());
    const std::vector<double> gradient = gradientOf(plan, s, parameters.num());
    const double              scale    = std::fabs(plan.energy(s.x));
    for (std::size_t k = 0; k < gradient.size(); k++)
    {
        const auto energy = [&](double step)
        {
            System at = s;
            for (int j = parameters.start[k]; j < parameters.start[k + 1]; j++)
            {
                const std::size_t i = static_cast<std::size_t>(parameters.index[static_cast<std::size_t>(j)]);
                at.q[i] += step * parameters.dq[static_cast<std::size_t>(j)];
            }
            EXPECT_EQ(gmxfmm_set_charges(plan.get(), static_cast<int64_t>(s.size()), at.q.data()), GMXFMM_OK);
            return plan.energy(s.x);
        };
        EXPECT_NEAR(gradient[k], (energy(0.5) - energy(-0.5)), rounding * scale) << "parameter " << k;
    }
    EXPECT_EQ(gradient[1], 0);
}

class ChargeGradient : public testing::TestWithParam<Path>
{
};

} // namespace

TEST_P(ChargeGradient, IsThatOfTheEnergy)
{
    expectGradient(ionsIn(GetParam().box), pathOptions(GetParam(), 4, 6, 1));
}

TEST_P(ChargeGradient, IsThatOfTheEnergyInVacuum)
{
    gmxfmm_options options = withBoundary(pathOptions(GetParam(), 8, 5, 2), Boundary::Vacuum);
    options.prefactor      = 138.9;
    expectGradient(ionsIn(GetParam().box), options);
}

INSTANTIATE_TEST_SUITE_P(Paths, ChargeGradient, testing::ValuesIn(paths()), pathName);

TEST(ChargeGradientOf, AnOpenSystem)
{
    System s = droplet(64, 2.5, 2);
    s.exclude(0, 1);
    for (gmxfmm_m2l m2l : {GMXFMM_M2L_FFT, GMXFMM_M2L_ROTATION})
    {
        expectGradient(s, withBoundary(methodOptions(m2l, 4, 6, 1), Boundary::Open));
    }
}

TEST(ChargeGradientOf, SinglePrecision)
{
    expectGradient(ionsIn(boxTypes()[1]), methodOptions(GMXFMM_M2L_FFT, 6, 4, 1, GMXFMM_SINGLE));
}

/* A hundred parameters at random, against the potentials, alone and beside other outputs; again after new charges. */
TEST(ChargeGradientOf, ManyParameters)
{
    const System s = ionsIn(boxTypes()[1]);
    Plan         plan(s, methodOptions(GMXFMM_M2L_FFT, 6, 4, 1));
    Random       random(4);
    Parameters   parameters;
    parameters.start.assign(1, 0);
    parameters.index.clear();
    parameters.dq.clear();
    for (int k = 0; k < 100; k++)
    {
        const int length = k == 50 ? 3000 : k % 7; /* a long list is summed in pieces */
        for (int j = 0; j < length; j++)
        {
            parameters.index.push_back(static_cast<int>(static_cast<double>(s.size()) * random.uniform()));
            parameters.dq.push_back(random.centred());
        }
        parameters.start.push_back(static_cast<int>(parameters.index.size()));
    }
    ASSERT_EQ(parameters.give(plan.get()), GMXFMM_OK) << gmxfmm_message(plan.get());
    for (double scale : {1.0, -2.5})
    {
        std::vector<double> q = s.q, potential(s.size()), force(3 * s.size());
        for (double& one : q)
        {
            one *= scale;
        }
        ASSERT_EQ(gmxfmm_set_charges(plan.get(), static_cast<int64_t>(s.size()), q.data()), GMXFMM_OK);
        gmxfmm_output output                = sized<gmxfmm_output>();
        output.potential                    = potential.data();
        output.want_virial                  = 1;
        const std::vector<double> beside    = gradientOf(plan, s, parameters.num(), output);
        gmxfmm_output             forces    = sized<gmxfmm_output>();
        forces.force                        = force.data();
        const std::vector<double> alone     = gradientOf(plan, s, parameters.num());
        const std::vector<double> withForce = gradientOf(plan, s, parameters.num(), forces);
        std::vector<double>       sums;
        for (int k = 0; k < parameters.num(); k++)
        {
            double sum = 0;
            for (int j = parameters.start[static_cast<std::size_t>(k)];
                 j < parameters.start[static_cast<std::size_t>(k) + 1]; j++)
            {
                const std::size_t at = static_cast<std::size_t>(j);
                sum += parameters.dq[at] * potential[static_cast<std::size_t>(parameters.index[at])];
            }
            sums.push_back(sum);
        }
        EXPECT_LT(relativeRms(beside, sums), 1e-13);
        EXPECT_EQ(gradientOf(plan, s, parameters.num(), output), beside);
        EXPECT_LT(relativeRms(alone, sums), 1e-12); /* sums may be taken in another order */
        EXPECT_LT(relativeRms(withForce, sums), 1e-12);
    }
}

TEST(ChargeGradientOf, WhatIsWrong)
{
    const System     s       = withoutExclusions(ionsIn(boxTypes()[1])); /* targets take none */
    gmxfmm_options   options = methodOptions(GMXFMM_M2L_FFT, 4, 4, 1);
    const Parameters good;
    double           gradient[4];
    gmxfmm_output    output = sized<gmxfmm_output>();
    output.charge_gradient  = gradient;
    EXPECT_EQ(gmxfmm_set_charge_derivatives(nullptr, 0, nullptr, nullptr, nullptr), GMXFMM_ERROR_NULL);
    Plan       plan(s, options);
    const auto refused = [&](gmxfmm_status wanted, const char* text, gmxfmm_status status)
    {
        EXPECT_EQ(status, wanted) << text;
        EXPECT_NE(std::string(gmxfmm_message(plan.get())).find(text), std::string::npos) << gmxfmm_message(plan.get());
    };
    gmxfmm_plan* p = plan.get();
    EXPECT_TRUE(gmxfmm_capabilities(p) & GMXFMM_CAN_CHARGE_GRADIENT);
    refused(GMXFMM_ERROR_ORDER, "set_charge_derivatives must come before", gmxfmm_execute(p, s.x.data(), &output));
    refused(GMXFMM_ERROR_NULL, "start", gmxfmm_set_charge_derivatives(p, 1, nullptr, nullptr, nullptr));
    refused(GMXFMM_ERROR_OPTION, "number of parameters is -1",
            gmxfmm_set_charge_derivatives(p, -1, nullptr, nullptr, nullptr));
    const int    start[] = {0, 2, 1}, late[] = {1, 2}, one[] = {0, 1}, index[] = {0, 64};
    const double dq[] = {1, INFINITY};
    refused(GMXFMM_ERROR_OPTION, "falls from 2 to 1 at parameter 1",
            gmxfmm_set_charge_derivatives(p, 2, start, index, dq));
    refused(GMXFMM_ERROR_OPTION, "start[0] of charge derivatives is 1",
            gmxfmm_set_charge_derivatives(p, 1, late, index, dq));
    refused(GMXFMM_ERROR_NULL, "dq of charge derivatives", gmxfmm_set_charge_derivatives(p, 1, one, index, nullptr));
    refused(GMXFMM_ERROR_CHARGE, "is 64, not 0 to 63", gmxfmm_set_charge_derivatives(p, 1, one, index + 1, dq));
    refused(GMXFMM_ERROR_CHARGE, "derivative 0 is inf", gmxfmm_set_charge_derivatives(p, 1, one, index, dq + 1));
    ASSERT_EQ(good.give(p), GMXFMM_OK);
    refused(GMXFMM_ERROR_CHARGE, "is 64, not 0 to 63", gmxfmm_set_charge_derivatives(p, 1, one, index + 1, dq));
    EXPECT_EQ(gmxfmm_execute(p, s.x.data(), &output), GMXFMM_OK); /* the good ones are still there */
    ASSERT_EQ(gmxfmm_set_targets(p, 1, s.x.data()), GMXFMM_OK);
    ASSERT_EQ(gmxfmm_assign(p, s.x.data()), GMXFMM_OK);
    refused(GMXFMM_ERROR_OPTION, "with targets", gmxfmm_execute(p, s.x.data(), &output));
    EXPECT_FALSE(gmxfmm_capabilities(p) & GMXFMM_CAN_CHARGE_GRADIENT);
    ASSERT_EQ(gmxfmm_set_targets(p, 0, nullptr), GMXFMM_OK);
    ASSERT_EQ(gmxfmm_assign(p, s.x.data()), GMXFMM_OK);
    ASSERT_EQ(gmxfmm_execute(p, s.x.data(), &output), GMXFMM_OK);
    ASSERT_EQ(gmxfmm_set_charge_derivatives(p, 0, nullptr, nullptr, nullptr), GMXFMM_OK);
    refused(GMXFMM_ERROR_ORDER, "must come before", gmxfmm_execute(p, s.x.data(), &output));
    ASSERT_EQ(good.give(p), GMXFMM_OK);
    ASSERT_EQ(gmxfmm_set_charges(p, 10, s.q.data()), GMXFMM_OK); /* another number */
    ASSERT_EQ(gmxfmm_assign(p, s.x.data()), GMXFMM_OK);
    refused(GMXFMM_ERROR_ORDER, "must come before", gmxfmm_execute(p, s.x.data(), &output));

    gmxfmm_plan* tree = nullptr;
    char         text[256];
    gmxfmm_default_options(&options);
    options.boundary = GMXFMM_OPEN;
    options.method   = GMXFMM_TREECODE;
    ASSERT_EQ(gmxfmm_create(&tree, &options, 64, nullptr, text, sizeof(text)), GMXFMM_OK) << text;
    ASSERT_EQ(gmxfmm_set_charges(tree, 64, s.q.data()), GMXFMM_OK);
    EXPECT_EQ(good.give(tree), GMXFMM_ERROR_UNSUPPORTED);
    gmxfmm_destroy(tree);
}
