/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A box that changes its shape between steps on a device, as pressure coupling makes it: every step has the lattice
 * sums of its own box, nothing of another shape stays behind, and the host does not wait. */
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>
#include <tuple>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "support/agreement.h"
#include "support/norms.h"
#include "support/on_stream.h"
#include "support/suites.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

void expectSame(const Result& r, const Result& expected, double tolerance)
{
    const double energy = std::fabs(expected.energyNear) + std::fabs(expected.energyFar);
    EXPECT_LE(relativeRms(r.force, expected.force), tolerance);
    EXPECT_LE(relativeRms(r.potential, expected.potential), tolerance);
    EXPECT_NEAR(r.energyNear, expected.energyNear, tolerance * energy);
    EXPECT_NEAR(r.energyFar, expected.energyFar, tolerance * energy);
    EXPECT_LE(maxDifference(r.virial, expected.virial), tolerance * energy);
}

/* What a step left in device memory. */
Result resultOf(const Outputs& out, bool virial)
{
    Result                    r;
    const std::vector<double> energy = out.energy.get(), tensor = out.virial.get();
    r.force      = out.force.get();
    r.potential  = out.potential.get();
    r.energyNear = energy[0];
    r.energyFar  = energy[1];
    for (std::size_t i = 0; i < 9 && virial; i++)
    {
        r.virial[i] = tensor[i];
    }
    return r;
}

/* A semi-isotropic change, others in a row, the last with shear, which all boxes take on the fft path. */
const std::vector<Mat3>& smallStrains()
{
    static const std::vector<Mat3> strains = {{0.004, 0, 0, 0, 0.004, 0, 0, 0, -0.007},
                                              {0.009, 0, 0, 0, -0.003, 0, 0, 0, 0.001},
                                              {-0.012, 0, 0, 0, 0.015, 0, 0, 0, 0.02},
                                              {0.002, 0, 0, 0.011, -0.004, 0, -0.007, 0.013, 0.006}};
    return strains;
}

class CudaBox : public OnStream<testing::TestWithParam<std::tuple<BoxType, gmxfmm_precision>>>
{
  protected:
    const BoxType& box() const
    {
        return std::get<0>(GetParam());
    }
    gmxfmm_precision precision() const
    {
        return std::get<1>(GetParam());
    }
    gmxfmm_options options() const
    {
        return onDevice(explicitOptions(8, evenGrid(box(), 5), 1, precision()));
    }
    /* The CPU in double precision, with the same cells and near set, and the sums of each box itself. */
    gmxfmm_options reference() const
    {
        gmxfmm_options exact = explicitOptions(8, evenGrid(box(), 5), 1);
        exact.reproducible   = 1;
        return exact;
    }
    /* A step in each box, all enqueued before the first is waited for. */
    void expectInFlight(const std::vector<System>& systems, double tolerance);
};

} // namespace

TEST_P(CudaBox, ManySmallChangesAndBack)
{
    const System s = water(boxOfVolume(box(), 5), 7);
    Plan         plan(s, options()), cpu(s, reference());
    const Result first = plan.execute(s.x);
    for (const Mat3& strain : smallStrains())
    {
        const System deformed = strained(s, strain);
        plan.setBox(deformed.box);
        cpu.setBox(deformed.box);
        expectSame(plan.execute(deformed.x), cpu.execute(deformed.x), rounding(precision()));
    }
    plan.setBox(s.box);
    expectSame(plan.execute(s.x), first, rounding(precision()));
}

/* An assign may choose another near set, and has no other memory of the boxes before. */
TEST_P(CudaBox, AssignedAnewItIsAFreshPlan)
{
    const System s = water(boxOfVolume(box(), 5), 7);
    Plan         plan(s, options());
    plan.execute(s.x);
    /* the last two: bricks whose near set is another one, cells whose vectors are others */
    std::vector<Mat3> strains = smallStrains();
    strains.push_back({-0.15, 0, 0, 0, -0.12, 0, 0, 0, 0.5});
    strains.push_back({0.3, 0, 0, 0.2, -0.1, 0, 0, 0.15, 0.1});
    for (const Mat3& strain : strains)
    {
        const System deformed = strained(s, strain);
        plan.setBox(deformed.box);
        plan.assign(deformed.x);
        Plan fresh(deformed, options());
        expectSame(plan.execute(deformed.x), fresh.execute(deformed.x), rounding(precision()));
    }
    plan.setBox(s.box);
    plan.assign(s.x);
    Plan fresh(s, options());
    expectSame(plan.execute(s.x), fresh.execute(s.x), rounding(precision()));
}

/* How a plan is told of a box, and a step put into a stream. */
enum class Way
{
    setBox,
    enqueueBox,
    enqueueBoxAndGraph
};

void CudaBox::expectInFlight(const std::vector<System>& systems, double tolerance)
{
    Plan                                              plan(systems[0], options()), cpu(systems[0], reference());
    std::vector<std::unique_ptr<DeviceArray<double>>> x;
    std::vector<std::unique_ptr<Outputs>>             out;
    std::vector<Graph>                                graphs;
    for (const System& system : systems)
    {
        x.push_back(std::make_unique<DeviceArray<double>>(system.x));
    }
    for (const Way way : {Way::setBox, Way::enqueueBox, Way::enqueueBoxAndGraph})
    {
        SCOPED_TRACE(static_cast<int>(way));
        out.clear();
        for (std::size_t k = 0; k < systems.size(); k++)
        {
            out.push_back(std::make_unique<Outputs>(systems[k].size()));
            auto wanted = out[k]->all();
            if (k % 3 == 1)
            {
                wanted.virial = nullptr;
            }
            if (way == Way::setBox)
            {
                plan.setBox(systems[k].box);
            }
            else
            {
                enqueueBox(plan.get(), systems[k].box, stream_);
            }
            const auto step = [&] { enqueue(plan.get(), *x[k], wanted, stream_); };
            if (way == Way::enqueueBoxAndGraph && k % 2 == 1)
            {
                graphs.emplace_back(stream_, step);
                graphs.back().launch(stream_);
            }
            else
            {
                step();
            }
        }
        wait();
        for (std::size_t k = 0; k < systems.size(); k++)
        {
            const bool virial = k % 3 != 1;
            cpu.setBox(systems[k].box);
            Result expected = cpu.execute(systems[k].x);
            expected.virial = virial ? expected.virial : Mat3{};
            expectSame(resultOf(*out[k], virial), expected, tolerance);
        }
    }
}

/* Steps in flight keep the box that they were enqueued with; some want a virial, whose sums come only then. A graph is
 * behind what it needs and before what replaces that. */
TEST_P(CudaBox, EveryStepInFlightHasItsOwn)
{
    const System        s = water(boxOfVolume(box(), 5), 7);
    std::vector<System> systems;
    for (int round = 0; round < 3; round++)
    {
        for (const Mat3& strain : smallStrains())
        {
            Mat3 scaled = strain;
            for (double& e : scaled)
            {
                e *= 1 - 0.3 * round;
            }
            systems.push_back(strained(s, scaled));
        }
    }
    expectInFlight(systems, rounding(precision()));
}

/* The same of boxes stretched along z, whose sums are interpolated between nodes that come and go: potentials differ by
 * 6 h^3 at most, h^3 being 2.5e-3 of the error (node_spacing of far_field.c), other results by less. */
TEST_P(CudaBox, EveryStepInFlightHasItsOwnBetweenNodes)
{
    const System        s = water(boxOfVolume(box(), 5), 7);
    std::vector<System> systems;
    for (const double t :
         {0.0, 0.001, 0.003, -0.002, -0.012, 0.004, 0.021, 0.019, 0.013, 0.002, 0.001, 0.045, 0.03, 0.001})
    {
        systems.push_back(strained(s, {std::exp(-t / 2) - 1, 0, 0, 0, std::exp(-t / 2) - 1, 0, 0, 0, std::exp(t) - 1}));
    }
    const double error = std::min(options().accuracy, Plan(s, options()).info().predicted_error);
    expectInFlight(systems, rounding(precision()) + 6 * 2.5e-3 * error);
}

/* Few sums for many shapes: those of two shapes, the first and the next, and of three nodes. */
TEST_P(CudaBox, ShapesOfALineShareSums)
{
    const System s = water(boxOfVolume(box(), 5), 7);
    Plan         plan(s, options());
    plan.execute(s.x);
    for (int i = 1; i <= 20; i++)
    {
        const double t = 1e-5 * i;
        const System deformed =
            strained(s, {std::exp(-t / 2) - 1, 0, 0, 0, std::exp(-t / 2) - 1, 0, 0, 0, std::exp(t) - 1});
        plan.setBox(deformed.box);
        plan.execute(deformed.x);
    }
    EXPECT_EQ(plan.info().num_spectra, 2 + 3);
}

/* Steps with a virial as a graph, as mdrun has them: captured while spectra for it are still being made, and captured
 * in a new box but launched after a step that needs what the graph would make. */
TEST_P(CudaBox, AGraphOfAStepHasItsSpectra)
{
    const System s = water(boxOfVolume(box(), 5), 7);
    Plan         plan(s, options()), cpu(s, reference());
    plan.execute(s.x);
    for (const bool ahead : {true, false})
    {
        for (const Mat3& strain : smallStrains())
        {
            const System         deformed = strained(s, strain);
            DeviceArray<double>  x(deformed.x);
            Outputs              inGraph(s.size()), beside(s.size());
            gmxfmm_device_output captured = inGraph.all(), eager = beside.all();
            eager.virial = ahead ? nullptr : eager.virial;
            plan.setBox(deformed.box);
            cpu.setBox(deformed.box);
            if (ahead)
            {
                enqueue(plan.get(), x, eager, stream_);
            }
            const Graph graph(stream_, [&] { enqueue(plan.get(), x, captured, stream_); });
            if (!ahead)
            {
                enqueue(plan.get(), x, eager, stream_);
            }
            graph.launch(stream_);
            wait();
            Result expected = cpu.execute(deformed.x);
            expectSame(resultOf(inGraph, true), expected, rounding(precision()));
            expected.virial = ahead ? Mat3{} : expected.virial;
            expectSame(resultOf(beside, !ahead), expected, rounding(precision()));
        }
    }
}

/* One graph of a step for forces and one for all, captured once, serve all boxes of a line and what is scaled
 * isotropically, and the steps that are no graphs between them; the number that says so changes where they do not. */
TEST_P(CudaBox, GraphsFollowTheBoxWhereTheVersionDoes)
{
    const System         s = water(boxOfVolume(box(), 5), 7);
    Plan                 plan(s, options()), cpu(s, reference());
    const double         error = std::min(options().accuracy, plan.info().predicted_error);
    Outputs              out(s.size());
    Graph                graphs[2];
    DeviceArray<double>  x(s.x);
    gmxfmm_device_output wanted[2] = {sized<gmxfmm_device_output>(), out.all()};
    wanted[0].force                = wanted[1].force;
    const auto setBox              = [&](const System& system)
    {
        wait();
        x.put(system.x);
        enqueueBox(plan.get(), system.box, stream_);
        cpu.setBox(system.box);
    };
    const auto inLine = [&](double t, double scale)
    {
        const double across = scale * std::exp(-t / 2) - 1;
        return strained(s, {across, 0, 0, 0, across, 0, 0, 0, scale * std::exp(t) - 1});
    };
    const auto expectStep = [&](const System& system, int all, bool asGraph)
    {
        asGraph ? graphs[all].launch(stream_) : enqueue(plan.get(), x, wanted[all], stream_);
        wait();
        const Result expected = cpu.execute(system.x), r = resultOf(out, all == 1);
        EXPECT_LE(relativeRms(r.force, expected.force), rounding(precision()) + 5e-3 * error);
        if (all == 1)
        {
            expectSame(r, expected, rounding(precision()) + 6 * 2.5e-3 * error);
        }
    };
    for (const double t : {0.001, 0.002})
    {
        setBox(inLine(t, 1));
        expectStep(inLine(t, 1), 1, false);
    }
    for (int all = 0; all < 2; all++)
    {
        graphs[all] = Graph(stream_, [&] { enqueue(plan.get(), x, wanted[all], stream_); });
    }
    const std::int64_t version = gmxfmm_graph_version(plan.get());
    for (const double t : {0.003, 0.001, -0.02, 0.002, 0.002, 0.05, 0.001})
    {
        const System deformed = inLine(t, 1 + 0.2 * t);
        setBox(deformed);
        expectStep(deformed, 0, true);
        expectStep(deformed, 1, true);
        expectStep(deformed, 0, t > 0.01);
        const System larger = inLine(t, 1 + 0.3 * t);
        setBox(larger);
        EXPECT_EQ(gmxfmm_graph_version(plan.get()), version);
        expectStep(larger, t > 0 ? 1 : 0, true);
        expectStep(larger, 1, false);
    }
    setBox(strained(s, smallStrains()[1]));
    EXPECT_NE(gmxfmm_graph_version(plan.get()), version);
}

INSTANTIATE_TEST_SUITE_P(Boxes,
                         CudaBox,
                         testing::Combine(testing::ValuesIn(boxTypes()), testing::Values(GMXFMM_DOUBLE, GMXFMM_SINGLE)),
                         boxAndPrecisionName);

namespace
{

using CudaBoxInFlight = OnStream<testing::Test>;

struct Gate
{
    std::atomic<bool> open{false}, passed{false};
};

/* Holds a stream until the gate is open, or ten seconds: then whoever should open it waits for the stream. */
void CUDART_CB waitAtGate(void* data)
{
    Gate*      gate  = static_cast<Gate*>(data);
    const auto begin = std::chrono::steady_clock::now();
    while (!gate->open && std::chrono::steady_clock::now() - begin < std::chrono::seconds(10))
    {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    gate->passed = gate->open.load();
}

} // namespace

/* With the stream held, boxes are set and steps enqueued: neither waits for the device. */
TEST_F(CudaBoxInFlight, SettingItDoesNotWait)
{
    const System         s = water({2, 0, 0, 0, 2.2, 0, 0, 0, 1.8}, 5);
    Plan                 plan(s, onDevice(explicitOptions(8, 5, 5, 4, 1, GMXFMM_SINGLE)));
    DeviceArray<double>  x(s.x);
    Outputs              out(s.size());
    gmxfmm_device_output all = out.all();
    Gate                 gate;
    bool                 ahead = true;
    const auto           step  = [&](const Mat3& strain)
    {
        const System deformed = strained(s, strain);
        if (ahead)
        {
            enqueueBox(plan.get(), deformed.box, stream_);
        }
        plan.setBox(deformed.box);
        enqueue(plan.get(), x, all, stream_);
    };
    /* kernels are loaded when they are first used, and memory for nodes comes with the second change along a line */
    step({0.001, 0, 0, 0, 0.001, 0, 0, 0, -0.002});
    step({0.001, 0, 0, 0, 0.001, 0, 0, 0, -0.003});
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    ASSERT_EQ(cudaLaunchHostFunc(stream_, waitAtGate, &gate), cudaSuccess);
    std::vector<Mat3> strains = smallStrains();
    for (const double e : {0.001, 0.002, 0.003, 0.004})
    {
        strains.push_back({e, 0, 0, 0, e, 0, 0, 0, -e}); /* a line */
    }
    for (const bool begunAhead : {false, true})
    {
        ahead = begunAhead;
        for (const Mat3& strain : strains)
        {
            step(strain);
        }
    }
    gate.open = true;
    wait();
    EXPECT_TRUE(gate.passed);
}

/* Where P2P fills the device the caller's stream does what is beside the far field: it waits for the spectra of a
 * virial, too, that an earlier step has begun. */
TEST_F(CudaBoxInFlight, AVirialWaitsForItsSpectraOnAFullDevice)
{
    /* a tile each of 4,096 cells, 31 for each of an H100's multiprocessors */
    const System   s       = ions({8, 0, 0, 0, 8, 0, 0, 0, 8}, 12000, 3);
    gmxfmm_options options = onDevice(explicitOptions(10, 16, 16, 16, 1, GMXFMM_SINGLE));
    options.check          = GMXFMM_CHECK_REPORT; /* particles stay where they are, cells do not */
    Plan                      plan(s, options), alone(s, options);
    Outputs                   first(s.size()), second(s.size()), third(s.size());
    gmxfmm_device_output      all = first.all(), again = third.all(), some = second.all();
    const DeviceArray<double> x(s.x);
    some.virial = nullptr;
    enqueue(plan.get(), x, all, stream_);
    alone.execute(s.x);
    for (const Mat3& strain : smallStrains())
    {
        const Mat3 box = strained(s, strain).box;
        plan.setBox(box);
        enqueue(plan.get(), x, some, stream_); /* begins the spectra of a virial behind it */
        enqueue(plan.get(), x, again, stream_);
        wait();
        alone.setBox(box);
        const Result expected = alone.execute(s.x);
        EXPECT_EQ(resultOf(third, true).virial, expected.virial);
        EXPECT_EQ(third.force.get(), expected.force);
        EXPECT_LT(relativeRms(second.force.get(), expected.force), rounding(GMXFMM_SINGLE));
    }
}
