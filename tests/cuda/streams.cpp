/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a host program with its own streams relies on: steps on device memory, without waiting, in graphs, several plans
 * side by side, the same bits every time, and bad input reported on the device. */
#include <algorithm>
#include <limits>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "support/norms.h"
#include "support/on_stream.h"
#include "support/paths.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

class CudaStreams : public OnStream<testing::Test>
{
  protected:
    System         system_  = water({2, 0, 0, 0, 2.2, 0, 0, 0, 1.8}, 5);
    gmxfmm_options options_ = onDevice(explicitOptions(8, 5, 5, 4, 1));
};

} // namespace

TEST_F(CudaStreams, EnqueueGivesWhatExecuteDoes)
{
    Plan                plan(system_, options_);
    const Result        expected = plan.execute(system_.x);
    DeviceArray<double> x(system_.x);
    Outputs             out(system_.size());
    enqueue(plan.get(), x, out, stream_);
    wait();
    expectSameBits(out, expected);
}

TEST_F(CudaStreams, AssignTakesPositionsOfTheDevice)
{
    DeviceArray<double> x(system_.x);
    for (const gmxfmm_options& options : {options_, withBoundary(options_, Boundary::Open)})
    {
        Plan         plan(system_, options);
        const Result expected = plan.execute(system_.x);
        ASSERT_EQ(gmxfmm_assign(plan.get(), x.data()), GMXFMM_OK) << gmxfmm_message(plan.get());
        EXPECT_EQ(plan.execute(system_.x).force, expected.force);
    }
}

TEST_F(CudaStreams, ChargesAndTargetsMayBeOfTheDevice)
{
    const System          probes  = ions(system_.box, 200, 4);
    gmxfmm_options        single  = explicitOptions(8, 5, 5, 4, 1, GMXFMM_SINGLE);
    const gmxfmm_options& options = options_;
    for (const gmxfmm_options& o : {options, onDevice(single), withBoundary(options, Boundary::Open)})
    {
        Plan                plan(withoutExclusions(system_), o);
        const std::int64_t  n = static_cast<std::int64_t>(system_.size()), m = static_cast<std::int64_t>(probes.size());
        DeviceArray<double> q(system_.q), x(system_.x), at(probes.x);
        const Result        expected = plan.execute(system_.x);
        ASSERT_EQ(gmxfmm_set_charges(plan.get(), n, std::vector<double>(system_.size()).data()), GMXFMM_OK);
        EXPECT_EQ(plan.execute(system_.x).energy, 0);
        ASSERT_EQ(gmxfmm_set_charges(plan.get(), n, q.data()), GMXFMM_OK) << gmxfmm_message(plan.get());
        EXPECT_EQ(plan.execute(system_.x).force, expected.force);
        std::vector<double> host(probes.size()), device(probes.size());
        for (const bool there : {false, true})
        {
            gmxfmm_output out   = sized<gmxfmm_output>();
            out.potential       = (there ? device : host).data();
            const void* targets = there ? static_cast<const void*>(at.data()) : probes.x.data();
            ASSERT_EQ(gmxfmm_set_targets(plan.get(), m, targets), GMXFMM_OK) << gmxfmm_message(plan.get());
            ASSERT_EQ(gmxfmm_assign(plan.get(), x.data()), GMXFMM_OK) << gmxfmm_message(plan.get());
            ASSERT_EQ(gmxfmm_execute(plan.get(), system_.x.data(), &out), GMXFMM_OK) << gmxfmm_message(plan.get());
        }
        EXPECT_EQ(device, host);
        std::vector<double> bad = system_.q;
        bad[5]                  = std::numeric_limits<double>::quiet_NaN();
        q.put(bad);
        EXPECT_EQ(gmxfmm_set_charges(plan.get(), n, q.data()), GMXFMM_ERROR_CHARGE);
    }
}

/* One process, a plan on every device; arrays for assign may be of another one. */
TEST_F(CudaStreams, APlanOnEachOfTwoDevices)
{
    int num = 0, current = -1;
    ASSERT_EQ(cudaGetDeviceCount(&num), cudaSuccess);
    if (num < 2)
    {
        GTEST_SKIP() << "one CUDA device";
    }
    gmxfmm_options octree = onDevice(depthOptions(GMXFMM_M2L_ROTATION, 6, 2, 1));
    System         cubic  = water({2, 0, 0, 0, 2, 0, 0, 0, 2}, 5);
    for (const auto& [system, options] : {std::pair{&system_, options_}, std::pair{&cubic, octree}})
    {
        gmxfmm_options onSecond = options;
        onSecond.device_id      = 1;
        Plan                first(*system, options), second(*system, onSecond);
        DeviceArray<double> x(system->x);
        Outputs             out(system->size());
        const Result        expected = first.execute(system->x);
        EXPECT_EQ(second.execute(system->x).force, expected.force);
        ASSERT_EQ(gmxfmm_assign(second.get(), x.data()), GMXFMM_OK) << gmxfmm_message(second.get());
        ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
        {
            const Stream        stream;
            DeviceArray<double> there(system->x);
            Outputs             outThere(system->size());
            for (int i = 0; i < 20; i++)
            {
                enqueue(first.get(), x, out, stream_);
                enqueue(second.get(), there, outThere, stream);
            }
            ASSERT_EQ(cudaGetDevice(&current), cudaSuccess);
            EXPECT_EQ(current, 1) << "calls leave the caller's device as it was";
            wait();
            stream.wait();
            EXPECT_EQ(outThere.force.get(), expected.force);
            EXPECT_EQ(outThere.energy.get()[1], expected.energyFar);
        }
        ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
        EXPECT_EQ(out.force.get(), expected.force);
    }
}

TEST_F(CudaStreams, EveryRunGivesTheSameBits)
{
    Plan         plan(system_, options_), other(system_, options_);
    const Result first = plan.execute(system_.x);
    for (int i = 0; i < 5; i++)
    {
        for (Plan* p : {&plan, &other})
        {
            const Result again = p->execute(system_.x);
            EXPECT_EQ(again.force, first.force);
            EXPECT_EQ(again.energy, first.energy);
            EXPECT_EQ(again.virial, first.virial);
        }
    }
}

/* The moments that a step needs come another way when no virial is wanted. */
TEST_F(CudaStreams, ForcesDoNotDependOnWhatElseIsWanted)
{
    Plan                plan(system_, options_);
    const Result        expected = plan.execute(system_.x);
    DeviceArray<double> x(system_.x);
    Outputs             out(system_.size());
    auto                some = out.all();
    some.virial              = nullptr;
    some.energy              = nullptr;
    some.field               = nullptr;
    enqueue(plan.get(), x, some, stream_);
    wait();
    EXPECT_LT(relativeRms(out.force.get(), expected.force), 1e-13);
    EXPECT_LT(relativeRms(out.potential.get(), expected.potential), 1e-13);
}

TEST_F(CudaStreams, AStepCanBeCapturedInAGraph)
{
    Plan                plan(system_, options_);
    DeviceArray<double> x(system_.x);
    Outputs             out(system_.size());
    enqueue(plan.get(), x, out, stream_);
    wait();
    const Graph graph(
        stream_, [&] { enqueue(plan.get(), x, out, stream_); }, cudaStreamCaptureModeGlobal);
    std::vector<double> moved = system_.x;
    for (std::size_t i = 0; i < moved.size(); i++)
    {
        moved[i] += 1e-3 * std::sin(static_cast<double>(i));
    }
    x.put(moved);
    graph.launch(stream_);
    wait();
    expectSameBits(out, plan.execute(moved));
}

/* Who waits for the event has the arrays, and energy and virial come with the stream; of each launch of a graph, too.
 */
TEST_F(CudaStreams, AnEventTellsThatTheArraysAreThere)
{
    const System cubic = water({2, 0, 0, 0, 2, 0, 0, 0, 2}, 5);
    const struct
    {
        const char*    name;
        const System&  system;
        gmxfmm_options options;
    } cases[] = {
        {"cells", system_, options_},
        {"cells, vacuum", system_, withBoundary(options_, Boundary::Vacuum)},
        {"cells, open", system_, withBoundary(options_, Boundary::Open)},
        {"octree", cubic, onDevice(depthOptions(GMXFMM_M2L_ROTATION, 6, 2, 1))},
        {"octree, open", cubic, withBoundary(onDevice(depthOptions(GMXFMM_M2L_ROTATION, 6, 2, 1)), Boundary::Open)}};
    const Stream second;
    const Event  event;
    for (const auto& [name, system, options] : cases)
    {
        Plan                 plan(system, options);
        DeviceArray<double>  x(system.x), early(3 * system.size());
        Outputs              out(system.size());
        gmxfmm_device_output wanted = out.all();
        wanted.arrays_done          = event;
        enqueue(plan.get(), x, wanted, stream_);
        wait(); /* one step of a plan at a time */
        const Graph graph(stream_, [&] { enqueue(plan.get(), x, wanted, stream_); });
        for (int i = 0; i < 6; i++)
        {
            SCOPED_TRACE(std::string(name) + ", " + std::to_string(i));
            std::vector<double> moved = system.x;
            for (std::size_t k = 0; k < moved.size(); k++)
            {
                moved[k] += 1e-3 * std::sin(static_cast<double>(k + 7 * static_cast<std::size_t>(i)));
            }
            const Result expected = plan.execute(moved);
            x.put(moved);
            ASSERT_EQ(cudaMemsetAsync(out.force.data(), 0xff, 24 * system.size(), stream_), cudaSuccess);
            i % 2 == 0 ? enqueue(plan.get(), x, wanted, stream_) : graph.launch(stream_);
            ASSERT_EQ(cudaStreamWaitEvent(second, event, 0), cudaSuccess);
            ASSERT_EQ(
                cudaMemcpyAsync(early.data(), out.force.data(), 24 * system.size(), cudaMemcpyDeviceToDevice, second),
                cudaSuccess);
            second.wait();
            EXPECT_EQ(early.get(), expected.force);
            wait();
            expectSameBits(out, expected);
        }
    }
}

/* Forces that are there before, and are written on another stream while the step runs. */
TEST_F(CudaStreams, ForcesAreAddedBehindAnEvent)
{
    System cubic = system_;
    cubic.box    = {5, 0, 0, 0, 5, 0, 0, 0, 5};
    const struct
    {
        const char*    name;
        System         system;
        gmxfmm_options options;
    } cases[] = {
        {"cells", system_, options_},
        {"octree, open", cubic, withBoundary(onDevice(depthOptions(GMXFMM_M2L_ROTATION, 6, 2, 1)), Boundary::Open)}};
    const Stream second;
    const Event  written;
    for (const auto& [name, system, options] : cases)
    {
        SCOPED_TRACE(name);
        Plan                 plan(system, options);
        const Result         alone = plan.execute(system.x);
        DeviceArray<double>  x(system.x), before(3 * system.size());
        Outputs              out(system.size());
        gmxfmm_device_output wanted = out.all();
        wanted.add_forces           = 1;
        wanted.arrays_after         = written;
        std::vector<double> added(3 * system.size());
        for (std::size_t k = 0; k < added.size(); k++)
        {
            added[k] = std::cos(static_cast<double>(k));
        }
        before.put(added);
        for (int i = 0; i < 3; i++)
        {
            ASSERT_EQ(
                cudaMemcpyAsync(out.force.data(), before.data(), 24 * system.size(), cudaMemcpyDeviceToDevice, second),
                cudaSuccess);
            ASSERT_EQ(cudaEventRecord(written, second), cudaSuccess);
            enqueue(plan.get(), x, wanted, stream_);
            wait();
            const std::vector<double> force = out.force.get();
            for (std::size_t k = 0; k < added.size(); k++)
            {
                ASSERT_NEAR(force[k], alone.force[k] + added[k], 1e-14 * (std::abs(force[k]) + 1)); /* one rounding */
            }
        }
    }
}

TEST_F(CudaStreams, PlansRunSideBySide)
{
    const System        other = ions({5, 0, 0, 1, 4, 0, 0, 1, 6}, 500, 9);
    Plan                a(system_, options_), b(other, onDevice(explicitOptions(10, 4, 4, 5, 1, GMXFMM_SINGLE)));
    const Result        expectedA = a.execute(system_.x), expectedB = b.execute(other.x);
    const Stream        second;
    DeviceArray<double> xa(system_.x), xb(other.x);
    Outputs             outA(system_.size()), outB(other.size());
    for (int i = 0; i < 20; i++)
    {
        enqueue(a.get(), xa, outA, stream_);
        enqueue(b.get(), xb, outB, second);
    }
    wait();
    second.wait();
    EXPECT_EQ(outA.force.get(), expectedA.force);
    EXPECT_EQ(outB.force.get(), expectedB.force);
}

TEST_F(CudaStreams, NewChargesAndBoxesCount)
{
    Plan   plan(system_, options_);
    System changed = system_;
    for (double& q : changed.q)
    {
        q *= 1.25;
    }
    changed.box = {2.03, 0, 0, 0.05, 2.2, 0, 0, 0, 1.75};
    for (std::size_t i = 0; i < changed.size(); i++)
    {
        changed.x[3 * i] += 0.015 * changed.x[3 * i] + 0.05 / 2.2 * changed.x[3 * i + 1];
        changed.x[3 * i + 2] *= 1.75 / 1.8;
    }
    ASSERT_EQ(gmxfmm_set_charges(plan.get(), static_cast<std::int64_t>(changed.size()), changed.q.data()), GMXFMM_OK);
    plan.setBox(changed.box);
    gmxfmm_options cpu = options_;
    cpu.device         = GMXFMM_CPU;
    Plan reference(system_, cpu);
    ASSERT_EQ(gmxfmm_set_charges(reference.get(), static_cast<std::int64_t>(changed.size()), changed.q.data()),
              GMXFMM_OK);
    reference.setBox(changed.box);
    const Result r = plan.execute(changed.x), expected = reference.execute(changed.x);
    EXPECT_LT(relativeRms(r.force, expected.force), 1e-11);
    EXPECT_NEAR(r.energy, expected.energy, 1e-11 * std::fabs(expected.energyNear));
    EXPECT_LT(maxDifference(r.virial, expected.virial), 1e-10 * std::fabs(expected.energyNear));
}

/* Each stage, several together and all; what they leave is as it was. */
TEST_F(CudaStreams, StagesAreTimed)
{
    const System cubic = water({2, 0, 0, 0, 2, 0, 0, 0, 2}, 5);
    for (const gmxfmm_options& options : {onDevice(explicitOptions(8, 5, 5, 5, 1)),
                                          withBoundary(onDevice(explicitOptions(8, 5, 5, 5, 1)), Boundary::Open),
                                          onDevice(depthOptions(GMXFMM_M2L_ROTATION, 6, 2, 1))})
    {
        Plan                plan(cubic, options);
        DeviceArray<double> x(cubic.x);
        const Result        expected = plan.execute(cubic.x);
        const std::int64_t  version  = gmxfmm_graph_version(plan.get());
        for (const unsigned stages : {0U, 1U * GMXFMM_STAGE_PERMUTE, 1U * GMXFMM_STAGE_NEAR, 1U * GMXFMM_STAGE_FAR,
                                      1U * GMXFMM_STAGE_OUTPUT, 1U * GMXFMM_STAGE_NEAR | GMXFMM_STAGE_FAR})
        {
            for (const int repeats : {1, 20})
            {
                double seconds = std::numeric_limits<double>::quiet_NaN();
                ASSERT_EQ(gmxfmm_time_stages(plan.get(), x.data(), stages, repeats, stream_, &seconds), GMXFMM_OK)
                    << gmxfmm_message(plan.get());
                EXPECT_GT(seconds, 0) << stages;
                EXPECT_LT(seconds, 1) << stages; /* a mean, of a step of 1 ms at most */
            }
        }
        EXPECT_EQ(plan.execute(cubic.x).force, expected.force);
        EXPECT_EQ(gmxfmm_graph_version(plan.get()), version);
    }
}

/* With few large cells the near field is nearly all of a step: it counts twice. */
TEST_F(CudaStreams, TheNearFieldCountsTwiceWithPairsBeside)
{
    const System        s         = liquidCube(4);
    gmxfmm_options      options   = onDevice(explicitOptions(4, 6, 6, 6, 1, GMXFMM_SINGLE));
    gmxfmm_reference*   reference = nullptr;
    double              time[2];
    char                message[512] = "";
    const SystemView    view(s, Boundary::Tinfoil);
    const gmxfmm_system system = view.get();
    ASSERT_EQ(gmxfmm_reference_create(&reference, &options, &system, message, sizeof(message)), GMXFMM_OK) << message;
    for (int i = 0; i < 40; i++) /* the least of 20 each: the device may have other work */
    {
        gmxfmm_measurement m = sized<gmxfmm_measurement>();
        options.pairs_beside = i % 2;
        ASSERT_EQ(gmxfmm_measure(reference, &options, 2, &m, message, sizeof(message)), GMXFMM_OK) << message;
        time[i % 2] = i < 2 ? m.time : std::min(time[i % 2], m.time);
    }
    gmxfmm_reference_destroy(reference);
    EXPECT_GT(time[1], 1.3 * time[0]);
}

TEST_F(CudaStreams, StagesThatCannotBeTimed)
{
    Plan                plan(system_, options_);
    DeviceArray<double> x(system_.x);
    double              seconds = 5;
    gmxfmm_plan*        p       = plan.get();
    EXPECT_EQ(gmxfmm_time_stages(nullptr, x.data(), 0, 1, stream_, &seconds), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_time_stages(p, nullptr, 0, 1, stream_, &seconds), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_time_stages(p, x.data(), 0, 1, stream_, nullptr), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_time_stages(p, x.data(), 0, 0, stream_, &seconds), GMXFMM_ERROR_OPTION);
    EXPECT_EQ(gmxfmm_time_stages(p, x.data(), 0, -3, stream_, &seconds), GMXFMM_ERROR_OPTION);
    expectMessage(p, "-3");
    ASSERT_EQ(gmxfmm_create(&p, &options_, 8, system_.box.data(), nullptr, 0), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_time_stages(p, x.data(), 0, 1, stream_, &seconds), GMXFMM_ERROR_ORDER);
    gmxfmm_destroy(p);
    gmxfmm_options cpu = options_;
    cpu.device         = GMXFMM_CPU;
    Plan host(system_, cpu);
    EXPECT_EQ(gmxfmm_time_stages(host.get(), x.data(), 0, 1, stream_, &seconds), GMXFMM_ERROR_UNSUPPORTED);
    EXPECT_EQ(seconds, 5);
}

TEST_F(CudaStreams, BadPositionsAreReported)
{
    Plan                plan(system_, options_);
    Outputs             out(system_.size());
    std::vector<double> bad  = system_.x;
    const double        good = bad[100];
    DeviceArray<double> x(bad);
    for (double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    {
        bad[100] = value;
        x.put(bad);
        enqueue(plan.get(), x, out, stream_);
        wait();
        EXPECT_EQ(out.status.get()[0], GMXFMM_ERROR_POSITION);
        EXPECT_EQ(gmxfmm_assign(plan.get(), x.data()), GMXFMM_ERROR_POSITION);
        expectMessage(plan.get(), "33");
        plan.assign(system_.x);
    }
    bad[100] = good;
    for (std::size_t d = 0; d < 3; d++)
    {
        bad[3 * 40 + d] = bad[3 * 7 + d]; /* of other molecules */
    }
    x.put(bad);
    plan.assign(bad); /* which puts them into one cell */
    enqueue(plan.get(), x, out, stream_);
    wait();
    EXPECT_EQ(out.status.get()[0], GMXFMM_ERROR_COINCIDENT);
    x.put(system_.x);
    plan.assign(system_.x);
    enqueue(plan.get(), x, out, stream_);
    wait();
    EXPECT_EQ(out.status.get()[0], GMXFMM_OK);
}

TEST_F(CudaStreams, MisuseIsRefused)
{
    Plan                 plan(system_, options_);
    gmxfmm_device_output out = sized<gmxfmm_device_output>();
    DeviceArray<double>  x(system_.x);
    EXPECT_EQ(gmxfmm_enqueue(nullptr, x.data(), &out, stream_), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_enqueue(plan.get(), nullptr, &out, stream_), GMXFMM_ERROR_NULL);
    EXPECT_EQ(gmxfmm_enqueue(plan.get(), x.data(), nullptr, stream_), GMXFMM_ERROR_NULL);
    for (const std::size_t size : {std::size_t(0), sizeof(out) - 1, static_cast<std::size_t>(-1)})
    {
        out.size = size;
        EXPECT_EQ(gmxfmm_enqueue(plan.get(), x.data(), &out, stream_), GMXFMM_ERROR_OPTION);
        expectMessage(plan.get(), "sizeof(gmxfmm_device_output)");
    }
    out                 = sized<gmxfmm_device_output>();
    gmxfmm_options none = options_;
    none.device_id      = 200;
    gmxfmm_plan* p      = nullptr;
    EXPECT_EQ(gmxfmm_create(&p, &none, 8, system_.box.data(), nullptr, 0), GMXFMM_ERROR_DEVICE);
    gmxfmm_options cpu = options_;
    cpu.device         = GMXFMM_CPU;
    Plan host(system_, cpu);
    EXPECT_EQ(gmxfmm_enqueue(host.get(), x.data(), &out, stream_), GMXFMM_ERROR_UNSUPPORTED);
    ASSERT_EQ(gmxfmm_create(&p, &options_, 8, system_.box.data(), nullptr, 0), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_enqueue(p, x.data(), &out, stream_), GMXFMM_ERROR_ORDER);
    gmxfmm_destroy(p);
}
