/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Derivatives along a way on the GPU: what gmxfmm_execute_along gives on the CPU in double precision, by every method;
 * on streams, in graphs, with charges and assignments that change; and charges that are what they were. (The suite
 * along runs there, too, with GMXFMM_TESTS_DEVICE=cuda.) */
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "support/agreement.h"
#include "support/moving.h"
#include "support/norms.h"
#include "support/on_stream.h"
#include "support/partly_periodic.h"
#include "support/paths.h"
#include "support/sized.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

const Mat3 c_cube = {4, 0, 0, 0, 4, 0, 0, 0, 4};

/* A way, and all that is found along it, in device memory. */
template <class X>
struct AlongArrays
{
    explicit AlongArrays(const Moving& m)
        : u(asArray<X>(m.u)), w(asArray<X>(m.w)), force(m.u.size()), potential(m.w.size()), felt(m.u.size()), energy(1),
          outside(1), status(1)
    {
    }
    gmxfmm_device_along all() const
    {
        gmxfmm_device_along along = sized<gmxfmm_device_along>();
        along.u                   = u.data();
        along.w                   = w.data();
        along.force               = force.data();
        along.potential           = potential.data();
        along.felt                = felt.data();
        along.energy              = energy.data();
        along.status              = status.data();
        along.outside             = outside.data();
        return along;
    }
    DeviceArray<X>      u, w, force, potential, felt;
    DeviceArray<double> energy, outside;
    DeviceArray<int>    status;
};

template <class X>
void enqueueAlong(gmxfmm_plan* plan, const DeviceArray<X>& x, const AlongArrays<X>& arrays, cudaStream_t stream)
{
    const gmxfmm_device_along along = arrays.all();
    ASSERT_EQ(gmxfmm_enqueue_along(plan, x.data(), &along, stream), GMXFMM_OK) << gmxfmm_message(plan);
}

/* By the call that waits, with arrays of double. */
Derivatives executed(const Moving& m, const gmxfmm_options& options)
{
    Plan        plan(m.system, options);
    Derivatives r;
    r.force.resize(m.u.size());
    r.felt.resize(m.u.size());
    r.potential.resize(m.w.size());
    gmxfmm_along along = sized<gmxfmm_along>();
    along.u            = m.u.data();
    along.w            = m.w.data();
    along.force        = r.force.data();
    along.potential    = r.potential.data();
    along.felt         = r.felt.data();
    if (gmxfmm_execute_along(plan.get(), m.system.x.data(), &along) != GMXFMM_OK)
    {
        throw std::runtime_error(gmxfmm_message(plan.get()));
    }
    r.energy = along.energy;
    r.size   = rms(r.potential) * rms(m.system.q) * static_cast<double>(m.w.size());
    return r;
}

/* On the CPU in double precision, by the same method. */
Derivatives onHost(const Moving& m, gmxfmm_options options)
{
    options.device     = GMXFMM_CPU;
    options.precision  = GMXFMM_DOUBLE;
    options.array_type = GMXFMM_DOUBLE;
    options.m2l        = options.m2l == GMXFMM_M2L_DYNAMIC ? GMXFMM_M2L_NAIVE : options.m2l;
    return executed(m, options);
}

template <class X>
std::vector<double> numbers(const DeviceArray<X>& array)
{
    const std::vector<X> v = array.get();
    return std::vector<double>(v.begin(), v.end());
}

template <class X>
void expectSame(const AlongArrays<X>& found, const Derivatives& expected, gmxfmm_precision precision)
{
    const double tolerance = rounding(precision), more = 5 * tolerance; /* gradients are sums of larger numbers */
    ASSERT_EQ(found.status.get()[0], GMXFMM_OK);
    EXPECT_EQ(found.outside.get()[0], 0);
    EXPECT_LE(relativeRms(numbers(found.force), expected.force), more);
    EXPECT_LE(relativeRms(numbers(found.potential), expected.potential), more);
    EXPECT_LE(relativeRms(numbers(found.felt), expected.felt), tolerance);
    EXPECT_NEAR(found.energy.get()[0], expected.energy, more * expected.size);
}

class CudaAlong : public OnStream<testing::TestWithParam<MethodAndPrecision>>
{
  protected:
    static gmxfmm_options options(int order, int cells)
    {
        return methodOptions(std::get<0>(GetParam()), order, cells, 1, std::get<1>(GetParam()));
    }
    /* Twice, as the first call makes room; with arrays of each type. */
    template <class X>
    void expectAgreementOf(const Moving& m, const gmxfmm_options& options)
    {
        Plan                 plan(m.system, onDevice(withArrays<X>(options)));
        const DeviceArray<X> x(asArray<X>(m.system.x));
        const Derivatives    expected = onHost(m, options);
        for (int again = 0; again < 2; again++)
        {
            const AlongArrays<X> arrays(m);
            enqueueAlong(plan.get(), x, arrays, stream_);
            wait();
            expectSame(arrays, expected, options.precision);
        }
    }
    void expectAgreement(const Moving& m, const gmxfmm_options& options)
    {
        expectAgreementOf<double>(m, options);
        if (options.precision == GMXFMM_SINGLE)
        {
            expectAgreementOf<float>(m, options);
        }
    }
};

} // namespace

TEST_P(CudaAlong, InABox)
{
    const Moving m = moving(ions(c_cube, 60, 9), true);
    expectAgreement(m, options(6, 4));
    expectAgreement(m, withBoundary(options(6, 4), Boundary::Vacuum));
}

TEST_P(CudaAlong, InAnOpenSystem)
{
    expectAgreement(moving(droplet(200, 4, 2), true), withBoundary(options(6, 4), Boundary::Open));
}

INSTANTIATE_TEST_SUITE_P(Methods,
                         CudaAlong,
                         testing::Combine(testing::Values(GMXFMM_M2L_FFT,
                                                          GMXFMM_M2L_ROTATION,
                                                          GMXFMM_M2L_SYMMETRIC,
                                                          GMXFMM_M2L_DYNAMIC,
                                                          GMXFMM_M2L_NAIVE),
                                          testing::Values(GMXFMM_DOUBLE, GMXFMM_SINGLE)),
                         methodAndPrecisionName);

namespace
{

class CudaAlongOnAStream : public OnStream<testing::Test>
{
  protected:
    /* What a step gives, as bits. */
    std::vector<double> forces(gmxfmm_plan* plan, const DeviceArray<double>& x)
    {
        const Outputs out(m_.system.size());
        enqueue(plan, x, out, stream_);
        wait();
        EXPECT_EQ(out.status.get()[0], GMXFMM_OK);
        return out.force.get();
    }
    void expectRefused(gmxfmm_plan* plan, gmxfmm_device_along along, gmxfmm_status status, const std::string& word)
    {
        const DeviceArray<double> x(m_.system.x);
        EXPECT_EQ(gmxfmm_enqueue_along(plan, x.data(), &along, stream_), status);
        expectMessage(plan, word);
    }

    const Moving         m_       = moving(ions(c_cube, 60, 9), true);
    const gmxfmm_options options_ = onDevice(explicitOptions(6, 4, 4, 4, 1));
};

} // namespace

TEST_F(CudaAlongOnAStream, InSlabs)
{
    /* vectors in general orientation, whose axes are turned */
    const Moving m = moving(ions({3, 0.2, -0.3, 0.4, 2.8, 0.5, -0.2, 0.3, 3.1}, 60, 9), true);
    for (const std::array<int, 3>& periodic : std::vector<std::array<int, 3>>{{1, 1, 0}, {1, 0, 1}, {0, 1, 1}})
    {
        const gmxfmm_options      options = periodicAlong(explicitOptions(6, 4, 4, 4, 1), periodic);
        Plan                      plan(m.system, onDevice(options));
        const DeviceArray<double> x(m.system.x);
        const AlongArrays<double> arrays(m);
        enqueueAlong(plan.get(), x, arrays, stream_);
        wait();
        expectSame(arrays, onHost(m, options), GMXFMM_DOUBLE);
    }
}

TEST_F(CudaAlongOnAStream, InLeavesOfSeveralLevels)
{
    const Moving   m       = movingInLeaves();
    gmxfmm_options options = withBoundary(automatic(GMXFMM_M2L_ROTATION, 1e-3), Boundary::Open);
    options.order          = 6;
    Plan                      plan(m.system, onDevice(options));
    const DeviceArray<double> x(m.system.x);
    const AlongArrays<double> arrays(m);
    enqueueAlong(plan.get(), x, arrays, stream_);
    wait();
    expectSame(arrays, executed(m, onDevice(options)), options.precision);
}

/* Steps before and after have the same bits. Assignments, charges and boxes between them are followed. */
TEST_F(CudaAlongOnAStream, TheChargesStay)
{
    Plan                      plan(m_.system, options_);
    DeviceArray<double>       x(m_.system.x);
    const AlongArrays<double> arrays(m_);
    const std::vector<double> before  = forces(plan.get(), x);
    const std::int64_t        version = gmxfmm_graph_version(plan.get());
    enqueueAlong(plan.get(), x, arrays, stream_);
    EXPECT_EQ(forces(plan.get(), x), before);
    enqueueAssign(plan.get(), x, stream_);
    enqueueAlong(plan.get(), x, arrays, stream_);
    enqueueAssign(plan.get(), x, stream_);
    EXPECT_LE(relativeRms(forces(plan.get(), x), before), 1e-13); /* particles of a cell in another order */
    expectSame(arrays, onHost(m_, options_), GMXFMM_DOUBLE);
    EXPECT_EQ(gmxfmm_graph_version(plan.get()), version);
    Moving other = m_;
    for (double& q : other.system.q)
    {
        q *= -0.5;
    }
    static_cast<System&>(other.system) = strained(other.system, {-0.02, 0, 0, 0, -0.02, 0, 0, 0, -0.02});
    const DeviceArray<double> q(other.system.q);
    x.put(other.system.x);
    enqueueCharges(plan.get(), other.system.size(), q, stream_);
    enqueueBox(plan.get(), other.system.box, stream_);
    enqueueAssign(plan.get(), x, stream_);
    enqueueAlong(plan.get(), x, arrays, stream_);
    wait();
    expectSame(arrays, onHost(other, options_), GMXFMM_DOUBLE);
}

/* Forces that were asked for alone, with dipoles before and after, and another number of particles. */
TEST_F(CudaAlongOnAStream, BesideDipolesAndOtherNumbers)
{
    Plan                      plan(m_.system, options_);
    const DeviceArray<double> x(m_.system.x);
    const AlongArrays<double> arrays(m_);
    const Derivatives         expected = onHost(m_, options_);
    const std::int64_t        n        = static_cast<std::int64_t>(m_.system.size());
    gmxfmm_device_along       some     = arrays.all();
    some.felt                          = nullptr;
    some.energy                        = nullptr;
    some.status                        = nullptr;
    some.outside                       = nullptr;
    ASSERT_EQ(gmxfmm_enqueue_along(plan.get(), x.data(), &some, stream_), GMXFMM_OK) << gmxfmm_message(plan.get());
    wait();
    EXPECT_LE(relativeRms(arrays.force.get(), expected.force), 1e-10);
    ASSERT_EQ(gmxfmm_set_dipoles(plan.get(), n, m_.system.mu.data()), GMXFMM_OK);
    plan.assign(m_.system.x);
    expectRefused(plan.get(), arrays.all(), GMXFMM_ERROR_OPTION, "dipoles");
    ASSERT_EQ(gmxfmm_set_dipoles(plan.get(), n, nullptr), GMXFMM_OK);
    expectRefused(plan.get(), arrays.all(), GMXFMM_ERROR_ORDER, "assign");
    plan.assign(m_.system.x);
    enqueueAlong(plan.get(), x, arrays, stream_);
    wait();
    expectSame(arrays, expected, GMXFMM_DOUBLE);
    const Moving more = moving(ions(c_cube, 90, 5), false);
    ASSERT_EQ(gmxfmm_set_charges(plan.get(), static_cast<std::int64_t>(more.system.size()), more.system.q.data()),
              GMXFMM_OK);
    plan.assign(more.system.x);
    const DeviceArray<double> places(more.system.x);
    const AlongArrays<double> found(more);
    enqueueAlong(plan.get(), places, found, stream_);
    wait();
    expectSame(found, onHost(more, options_), GMXFMM_DOUBLE);
}

TEST_F(CudaAlongOnAStream, InAGraph)
{
    Plan                      plan(m_.system, options_);
    DeviceArray<double>       x(m_.system.x);
    AlongArrays<double>       arrays(m_);
    const gmxfmm_device_along along = arrays.all();
    const auto                step  = [&] { enqueueAlong(plan.get(), x, arrays, stream_); };
    cudaGraph_t               none  = nullptr;
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(gmxfmm_enqueue_along(plan.get(), x.data(), &along, stream_), GMXFMM_ERROR_ORDER);
    expectMessage(plan.get(), "captured");
    ASSERT_EQ(cudaStreamEndCapture(stream_, &none), cudaSuccess);
    cudaGraphDestroy(none);
    step();
    wait();
    const Graph graph(stream_, step);
    Moving      other = m_;
    for (std::size_t k = 0; k < other.u.size(); k++)
    {
        other.system.x[k] += 1e-3 * std::sin(static_cast<double>(k));
        other.u[k] *= -0.9;
    }
    x.put(other.system.x);
    arrays.u.put(other.u);
    graph.launch(stream_);
    wait();
    const std::vector<double> found = arrays.force.get();
    EXPECT_LE(relativeRms(found, onHost(other, options_).force), 1e-2); /* the host assigns anew */
    step();
    wait();
    EXPECT_EQ(arrays.force.get(), found);
}

TEST_F(CudaAlongOnAStream, WhatIsNotFiniteIsFound)
{
    Plan                      plan(m_.system, options_);
    DeviceArray<double>       x(m_.system.x);
    AlongArrays<double>       arrays(m_);
    const Derivatives         expected = onHost(m_, options_);
    const std::vector<double> before   = forces(plan.get(), x);
    const auto                status   = [&]
    {
        enqueueAlong(plan.get(), x, arrays, stream_);
        wait();
        return arrays.status.get()[0];
    };
    for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()})
    {
        std::vector<double> u = m_.u, w = m_.w;
        w[7] = bad;
        arrays.w.put(w);
        EXPECT_EQ(status(), GMXFMM_ERROR_CHARGE);
        arrays.w.put(m_.w);
        u[22] = bad;
        arrays.u.put(u);
        EXPECT_EQ(status(), GMXFMM_ERROR_CHARGE);
        arrays.u.put(m_.u);
        std::vector<double> places = m_.system.x, q = m_.system.q;
        places[5] = bad;
        x.put(places);
        EXPECT_EQ(status(), GMXFMM_ERROR_POSITION);
        x.put(m_.system.x);
        q[1] = bad;
        const DeviceArray<double> none(q), charges(m_.system.q);
        enqueueCharges(plan.get(), q.size(), none, stream_);
        EXPECT_EQ(status(), GMXFMM_ERROR_CHARGE);
        enqueueCharges(plan.get(), q.size(), charges, stream_);
        EXPECT_EQ(forces(plan.get(), x), before);
        EXPECT_EQ(status(), GMXFMM_OK);
        expectSame(arrays, expected, GMXFMM_DOUBLE);
    }
}

TEST_F(CudaAlongOnAStream, IsRefusedByName)
{
    const AlongArrays<double> arrays(m_);
    Plan                      plan(m_.system, options_);
    gmxfmm_device_along       none = arrays.all();
    none.w                         = nullptr;
    expectRefused(plan.get(), none, GMXFMM_ERROR_NULL, "NULL");
    none      = arrays.all();
    none.size = 8;
    expectRefused(plan.get(), none, GMXFMM_ERROR_OPTION, "gmxfmm_device_along");
    const DeviceArray<double> x(m_.system.x);
    enqueueAssignPart(plan.get(), GMXFMM_ASSIGN_BEGIN, x, stream_);
    expectRefused(plan.get(), arrays.all(), GMXFMM_ERROR_ORDER, "in parts");
    enqueueAssignPart(plan.get(), GMXFMM_ASSIGN_SORT, x, stream_);
    enqueueAssignPart(plan.get(), GMXFMM_ASSIGN_END, x, stream_);
    enqueueAlong(plan.get(), x, arrays, stream_);
    wait();
    expectSame(arrays, onHost(m_, options_), GMXFMM_DOUBLE);
    ASSERT_EQ(gmxfmm_set_targets(plan.get(), 1, m_.system.x.data()), GMXFMM_OK);
    expectRefused(plan.get(), arrays.all(), GMXFMM_ERROR_OPTION, "targets");
    gmxfmm_options two = options_;
    two.num_devices    = 2;
    Plan shared(m_.system, two);
    expectRefused(shared.get(), arrays.all(), GMXFMM_ERROR_UNSUPPORTED, "GPU");
    gmxfmm_options least = options_;
    least.min_distance   = 0.01;
    Plan limited(m_.system, least);
    expectRefused(limited.get(), arrays.all(), GMXFMM_ERROR_OPTION, "min_distance");
    gmxfmm_options tree = defaultOptions();
    tree.method         = GMXFMM_TREECODE;
    tree.boundary       = GMXFMM_OPEN;
    Plan treecode(withoutExclusions(droplet(60, 4, 2)), onDevice(tree));
    expectRefused(treecode.get(), arrays.all(), GMXFMM_ERROR_UNSUPPORTED, "FMM");
}
