/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Every call in a thread whose stack is 64 kB, as threads of other programs have it: what a plan needs is on the heap.
 * A call that needs more ends the program. */
#include <functional>

#include <pthread.h>

#include <gtest/gtest.h>

#include "support/paths.h"
#include "support/plan.h"
#include "support/suites.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
const std::size_t stackBytes = 1 << 20; /* sanitizers put space around each array */
#else
const std::size_t stackBytes = 1 << 16;
#endif

void* call(void* function)
{
    (*static_cast<std::function<void()>*>(function))();
    return nullptr;
}

void onSmallStack(std::function<void()> function)
{
    pthread_attr_t attributes;
    pthread_t      thread;
    ASSERT_EQ(pthread_attr_init(&attributes), 0);
    ASSERT_EQ(pthread_attr_setstacksize(&attributes, stackBytes), 0);
    ASSERT_EQ(pthread_create(&thread, &attributes, call, &function), 0);
    ASSERT_EQ(pthread_join(thread, nullptr), 0);
    pthread_attr_destroy(&attributes);
}

/* Calls that return a status, in the order of a program: a plan, measured where that is asked for, steps, another box,
 * and targets. */
gmxfmm_status callAll(const System& s, const gmxfmm_options& options, const gmxfmm_system* measured, double* force)
{
    gmxfmm_plan*  plan   = nullptr;
    gmxfmm_output output = sized<gmxfmm_output>();
    const auto    n      = static_cast<std::int64_t>(s.size());
    const bool    open   = options.boundary == GMXFMM_OPEN;
    gmxfmm_status status = GMXFMM_OK;
    const auto    then   = [&](const std::function<gmxfmm_status()>& next)
    { status = status == GMXFMM_OK ? next() : status; };
    then(
        [&]
        {
            return measured != nullptr
                       ? gmxfmm_create_measured(&plan, &options, measured, nullptr, nullptr, nullptr, nullptr, 0)
                       : gmxfmm_create(&plan, &options, n, open ? nullptr : s.box.data(), nullptr, 0);
        });
    then([&] { return gmxfmm_set_charges(plan, n, s.q.data()); });
    then([&] { return gmxfmm_assign(plan, s.x.data()); });
    output.force       = force;
    output.want_energy = 1;
    output.want_virial = options.method == GMXFMM_FMM;
    then([&] { return gmxfmm_execute(plan, s.x.data(), &output); });
    Mat3 box = s.box;
    for (double& b : box)
    {
        b *= 1.01;
    }
    then([&] { return open ? GMXFMM_OK : gmxfmm_set_box(plan, box.data()); });
    then([&] { return gmxfmm_assign(plan, s.x.data()); });
    then([&] { return gmxfmm_execute(plan, s.x.data(), &output); });
    const bool dipoles = (gmxfmm_capabilities(plan) & GMXFMM_CAN_DIPOLES) != 0;
    then([&] { return dipoles ? gmxfmm_set_dipoles(plan, n, s.x.data()) : GMXFMM_OK; });
    then([&] { return gmxfmm_assign(plan, s.x.data()); });
    then([&] { return gmxfmm_execute(plan, s.x.data(), &output); });
    output       = sized<gmxfmm_output>();
    output.field = force;
    then([&] { return gmxfmm_set_targets(plan, 1, s.box.data()); });
    then([&] { return gmxfmm_assign(plan, s.x.data()); });
    then([&] { return gmxfmm_execute(plan, s.x.data(), &output); });
    gmxfmm_destroy(plan);
    return status;
}

void expectOk(const System& s, const gmxfmm_options& options, bool measured)
{
    std::vector<double>        force(3 * s.size());
    const Boundary             boundary = options.boundary == GMXFMM_OPEN ? Boundary::Open : Boundary::Tinfoil;
    const SystemView           view(s, boundary);
    const gmxfmm_system        system = view.get();
    gmxfmm_status              status = GMXFMM_NUM_STATUS;
    const gmxfmm_system* const given  = measured ? &system : nullptr;
    onSmallStack([&] { status = callAll(s, options, given, force.data()); });
    EXPECT_EQ(status, GMXFMM_OK) << gmxfmm_status_text(status);
}

const System& periodicIons()
{
    static const System s = ions({4, 0, 0, 0, 4, 0, 0, 0, 4}, 100, 3);
    return s;
}

struct SmallStack : testing::TestWithParam<std::tuple<gmxfmm_precision, int>>
{
    gmxfmm_options options(double asked = 1e-3) const
    {
        gmxfmm_options o = askedOptions(asked, std::get<0>(GetParam()));
        o.device         = GMXFMM_CPU;
        o.num_threads    = std::get<1>(GetParam());
        return o;
    }
    int highest() const
    {
        return std::get<0>(GetParam()) == GMXFMM_SINGLE ? GMXFMM_MAX_ORDER_SINGLE : GMXFMM_MAX_ORDER;
    }
};

} // namespace

TEST_P(SmallStack, IsEnoughForMeasuredPlans)
{
    expectOk(periodicIons(), options(), true);
    if (std::get<1>(GetParam()) > 1)
    {
        return;
    }
    expectOk(periodicIons(), options(1e-5), true);
    gmxfmm_options open = options();
    open.boundary       = GMXFMM_OPEN;
    expectOk(droplet(300, 3, 4), open, true);
}

TEST_P(SmallStack, IsEnoughForAllMethods)
{
    for (const gmxfmm_m2l m2l : methods())
    {
        gmxfmm_options o = options();
        o.m2l            = m2l;
        expectOk(periodicIons(), o, false);
        o.order = isSlow(m2l) || o.num_threads > 1 ? 12 : highest();
        expectOk(periodicIons(), o, false);
        o.boundary = GMXFMM_OPEN;
        expectOk(periodicIons(), o, false);
        o.vertical_rotation = m2l != GMXFMM_M2L_FFT;
        o.boundary          = GMXFMM_TINFOIL;
        expectOk(periodicIons(), o, false);
    }
}

TEST_P(SmallStack, IsEnoughForSlabsAndWires)
{
    for (const int along : {1, 2})
    {
        gmxfmm_options o = options();
        o.periodic[2]    = 1;
        o.periodic[1]    = along - 1;
        expectOk(periodicIons(), o, true);
        o.order = 20;
        expectOk(periodicIons(), o, false);
    }
}

/* Clusters so far apart that leaves are of many levels. */
TEST_P(SmallStack, IsEnoughForDeepOctrees)
{
    System s = droplet(600, 1, 5);
    for (std::size_t i = 0; i < s.size(); i += 2)
    {
        s.x[3 * i] += i % 20 == 0 ? 5e4 : 0;
    }
    gmxfmm_options o = options();
    o.boundary       = GMXFMM_OPEN;
    expectOk(s, o, false);
    o.m2l = GMXFMM_M2L_ROTATION;
    expectOk(s, o, false);
}

TEST_P(SmallStack, IsEnoughForTheTreecode)
{
    for (const gmxfmm_traversal traversal : {GMXFMM_PARTICLE, GMXFMM_DUAL})
    {
        gmxfmm_options o = options();
        o.boundary       = GMXFMM_OPEN;
        o.method         = GMXFMM_TREECODE;
        o.traversal      = traversal;
        expectOk(droplet(3000, 6, 6), o, true);
        o.degree = GMXFMM_MAX_DEGREE;
        o.theta  = 0.5;
        o.leaf   = 200;
        expectOk(droplet(3000, 6, 6), o, false);
    }
}

INSTANTIATE_TEST_SUITE_P(Steps,
                         SmallStack,
                         testing::Combine(testing::Values(GMXFMM_DOUBLE, GMXFMM_SINGLE), testing::Values(1, 2)),
                         [](const auto& test)
                         {
                             return std::string(std::get<0>(test.param) == GMXFMM_DOUBLE ? "Double" : "Single") +
                                    std::to_string(std::get<1>(test.param));
                         });
