/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Slabs on the GPU: what the CPU computes in double precision, for planes of any shape and direction, by cells and by
 * octrees; on streams, in graphs, in boxes that change and turn. Exact values are those of library/slab.cpp, which runs
 * on the GPU, too. */
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <tuple>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "support/agreement.h"
#include "support/norms.h"
#include "support/on_stream.h"
#include "support/partly_periodic.h"
#include "support/paths.h"
#include "support/suites.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

/* A lattice in the plane of the first two vectors, and how thick the slab is. */
struct Plane
{
    std::string        name;
    Mat3               box;
    double             thickness;
    std::array<int, 3> cells, roots; /* of a grid, of an octree */
};

/* With layers and cells of even and odd numbers, and grids that are left to cuFFT. */
const std::vector<Plane>& planes()
{
    static const std::vector<Plane> c_planes = {
        {"Square", {4, 0, 0, 0, 4, 0, 0, 0, 4}, 3, {5, 5, 4}, {1, 1, 1}},
        {"Oblique", {4, 0.3, 0, 1.1, 3.7, 0, 0, 0, 4}, 3, {5, 4, 4}, {0, 0, 0}},
        {"Hexagonal", {4, 0, 0, -2, 3.4641016151377544, 0, 0, 0, 4}, 2, {5, 5, 3}, {0, 0, 0}},
        {"Flat", {6, 0, 0, 0, 6, 0, 0, 0, 4}, 0, {8, 8, 1}, {1, 1, 1}},
        {"Tall", {2, 0, 0, 0, 2, 0, 0, 0, 4}, 12, {2, 2, 12}, {1, 1, 6}},
        {"Long", {12, 0, 0, 0, 2, 0, 0, 0, 4}, 2, {11, 2, 2}, {6, 1, 1}},
        {"Uneven", {4, 0, 0, 0, 6, 0, 0, 0, 4}, 5, {6, 9, 7}, {2, 3, 2}},
    };
    return c_planes;
}

/* Whether a charge is so near that single precision would have lost digits of the distance. */
bool isClose(const System& s, const Vec3& r)
{
    for (std::size_t i = 0; i < s.size(); i++)
    {
        const Vec3 there = s.position(i);
        if (std::hypot(there[0] - r[0], there[1] - r[1], there[2] - r[2]) < 0.1)
        {
            return true;
        }
    }
    return false;
}

/* Unlike charges with a net charge; near and far pairs excluded. */
System chargesIn(const Plane& p, int n = 300)
{
    System s;
    Random random(17);
    s.box = p.box;
    while (static_cast<int>(s.size()) < n)
    {
        const double a = random.uniform(), b = random.uniform(), c = random.uniform();
        const Vec3   r = {a * p.box[0] + b * p.box[3], a * p.box[1] + b * p.box[4], 0.7 + p.thickness * (c - 0.5)};
        if (!isClose(s, r))
        {
            s.add(r, s.size() % 2 == 0 ? 1 : -1);
        }
    }
    s.q[3] += 2.5;
    for (std::size_t i = 0; i < 10; i++)
    {
        s.exclude(20 * i, 20 * i + 1);
        s.exclude(30 * i, farthestFrom(s, 30 * i));
    }
    return s;
}

gmxfmm_options slab(const gmxfmm_options& options)
{
    return periodicAlong(options, {1, 1, 0});
}

class CudaSlab : public OnStream<testing::TestWithParam<std::tuple<Plane, gmxfmm_precision>>>
{
  public:
    static std::string name(const testing::TestParamInfo<ParamType>& info)
    {
        return std::get<0>(info.param).name + (std::get<1>(info.param) == GMXFMM_DOUBLE ? "Double" : "Single");
    }

  protected:
    const Plane& plane() const
    {
        return std::get<0>(GetParam());
    }
    gmxfmm_precision precision() const
    {
        return std::get<1>(GetParam());
    }
    gmxfmm_options options(int order, int separation) const
    {
        return slab(explicitOptions(order, plane().cells, separation, precision()));
    }
    double rounding() const
    {
        return fmmtest::rounding(precision());
    }
};

/* The axes of a system in another order, right-handed or not. */
System reordered(const System& s, const std::array<std::size_t, 3>& axes)
{
    System other = s;
    for (std::size_t row = 0; row < 3; row++)
    {
        for (std::size_t d = 0; d < 3; d++)
        {
            other.box[3 * axes[row] + axes[d]] = s.box[3 * row + d];
        }
    }
    for (std::size_t i = 0; i < s.size(); i++)
    {
        for (std::size_t d = 0; d < 3; d++)
        {
            other.x[3 * i + axes[d]] = s.x[3 * i + d];
        }
    }
    return other;
}

/* Particles that move within their slab: all but its lowest and its highest, so that cells around them are the same. */
System movedWithin(const System& s, Random* random)
{
    System other = s;
    double low = s.x[2], high = s.x[2];
    for (std::size_t i = 0; i < s.size(); i++)
    {
        low  = std::min(low, s.x[3 * i + 2]);
        high = std::max(high, s.x[3 * i + 2]);
    }
    for (std::size_t i = 0; i < s.size(); i++)
    {
        const bool first = s.x[3 * i + 2] <= low || s.x[3 * i + 2] >= high;
        for (std::size_t d = 0; d < 3; d++)
        {
            other.x[3 * i + d] += first ? 0 : 1.5 * (random->uniform() - 0.5);
        }
        other.x[3 * i + 2] = std::min(high, std::max(low, other.x[3 * i + 2]));
    }
    return other;
}

} // namespace

TEST_P(CudaSlab, Agrees)
{
    const System s = chargesIn(plane());
    for (const int order : {2, 6, 8, 13})
    {
        SCOPED_TRACE(order);
        expectAgreement(s, options(order, 1));
    }
    expectAgreement(s, options(5, 2));
}

TEST_P(CudaSlab, AgreesAlongOtherAxes)
{
    const System s = chargesIn(plane());
    for (const std::array<std::size_t, 3>& axes :
         {std::array<std::size_t, 3>{1, 2, 0}, {2, 0, 1}, {1, 0, 2}, {0, 2, 1}})
    {
        std::array<int, 3> periodic = {1, 1, 1}, cells = {0, 0, 0};
        for (std::size_t row = 0; row < 3; row++)
        {
            cells[axes[row]] = plane().cells[row];
        }
        periodic[axes[2]] = 0;
        expectAgreement(reordered(s, axes), periodicAlong(explicitOptions(6, cells, 1, precision()), periodic));
    }
    expectAgreement(rotated(s, {1, 2, 3}, 0.7), options(6, 1));
    expectAgreement(rotated(s, {3, -1, 1}, 2.1), options(6, 1));
}

TEST_P(CudaSlab, AgreesByOctrees)
{
    if (plane().box[1] != 0 || plane().box[3] != 0)
    {
        GTEST_SKIP() << "an octree needs right angles";
    }
    const System s = chargesIn(plane());
    for (const gmxfmm_m2l m2l : {GMXFMM_M2L_ROTATION, GMXFMM_M2L_SYMMETRIC, GMXFMM_M2L_DYNAMIC, GMXFMM_M2L_NAIVE})
    {
        SCOPED_TRACE(gmxfmm_m2l_name(m2l));
        /* the CPU has no dynamic parallelism: its reference is the same sum by another way */
        gmxfmm_options reference = slab(depthOptions(m2l == GMXFMM_M2L_DYNAMIC ? GMXFMM_M2L_NAIVE : m2l, 6, 2, 1));
        gmxfmm_options here      = onDevice(slab(depthOptions(m2l, 6, 2, 1, precision())));
        for (gmxfmm_options* o : {&reference, &here})
        {
            o->m2l_truncate = 0;
            std::transform(plane().roots.begin(), plane().roots.end(), o->grid, [](int roots) { return 4 * roots; });
        }
        const Result cpu = solve(s, reference), gpu = solve(s, here);
        const double energy = std::fabs(cpu.energyNear) + std::fabs(cpu.energyFar);
        EXPECT_LE(rmsDifference(gpu.field, cpu.field), rounding() * rms(cpu.field));
        EXPECT_LE(rmsDifference(gpu.potential, cpu.potential), rounding() * rms(cpu.potential));
        EXPECT_NEAR(gpu.energy, cpu.energy, rounding() * energy);
        EXPECT_LE(maxDifference(gpu.virial, cpu.virial), rounding() * energy);
        EXPECT_EQ(gpu.info.depth, 2);
    }
}

/* From memory of the device, in the type of its arrays; the same bits in a graph, again and again. */
TEST_P(CudaSlab, RunsOnAStreamAndInAGraph)
{
    const System         s       = rotated(chargesIn(plane()), {1, 2, 3}, 0.7);
    const gmxfmm_options options = onDevice(this->options(6, 1));
    Plan                 plan(s, options);
    const Result         expected = plan.execute(s.x);
    DeviceArray<double>  x(s.x);
    ASSERT_EQ(gmxfmm_assign(plan.get(), x.data()), GMXFMM_OK) << gmxfmm_message(plan.get());
    Outputs direct(s.size()), captured(s.size());
    enqueue(plan.get(), x, direct, stream_);
    wait();
    EXPECT_EQ(direct.force.get(), expected.force);
    const Graph graph(stream_, [&] { enqueue(plan.get(), x, captured, stream_); });
    for (int i = 0; i < 3; i++)
    {
        graph.launch(stream_);
        wait();
        expectSameBits(captured, direct);
    }
}

TEST_P(CudaSlab, TakesArraysInSinglePrecision)
{
    const System   s       = rotated(chargesIn(plane()), {1, 2, 3}, 0.7);
    gmxfmm_options options = onDevice(this->options(6, 1));
    const Result   doubles = solve(s, options);
    options.array_type     = GMXFMM_SINGLE;
    Plan                     plan(s, options);
    const DeviceArray<float> x(asArray<float>(s.x));
    OutputsOf<float>         out(s.size());
    enqueue(plan.get(), x, out, stream_);
    wait();
    EXPECT_EQ(out.status.get()[0], GMXFMM_OK);
    const std::vector<float> force = out.force.get();
    /* positions to 6e-8 of the box, which is some hundred times the shortest distance */
    EXPECT_LE(rmsDifference(std::vector<double>(force.begin(), force.end()), doubles.force), 1e-4 * rms(doubles.force));
}

/* Coupling of the plane, its shear, and a plane that turns, on a stream with all steps in flight; each step has the
 * sums and the axes of its own box. */
TEST_P(CudaSlab, FollowsTheBoxOnAStream)
{
    const System                                      s = chargesIn(plane());
    std::vector<System>                               boxes;
    std::vector<std::unique_ptr<Outputs>>             out;
    std::vector<std::unique_ptr<DeviceArray<double>>> x;
    const std::vector<Mat3>                           strains = {{0.004, 0, 0, 0, 0.004, 0, 0, 0, 0},
                                                                 {0.009, 0, 0, 0, -0.003, 0, 0, 0, 0},
                                                                 {0.002, 0.004, 0, 0.004, -0.004, 0, 0, 0, 0},
                                                                 {0, 0, 0, 0, 0, 0, 0, 0, 0}};
    for (const Mat3& strain : strains)
    {
        boxes.push_back(strained(s, strain));
    }
    boxes.push_back(rotated(s, {1, 2, 3}, 0.02));
    boxes.push_back(rotated(boxes[1], {1, -2, 3}, 0.03));
    Plan plan(s, onDevice(options(6, 1)));
    plan.execute(s.x);
    for (const System& there : boxes)
    {
        x.push_back(std::make_unique<DeviceArray<double>>(there.x));
        out.push_back(std::make_unique<Outputs>(s.size()));
    }
    for (std::size_t num = 0; num < boxes.size(); num++)
    {
        enqueueBox(plan.get(), boxes[num].box, stream_);
        enqueue(plan.get(), *x[num], *out[num], stream_);
    }
    wait();
    for (std::size_t i = 0; i < boxes.size(); i++)
    {
        SCOPED_TRACE(i);
        gmxfmm_options exact = slab(explicitOptions(6, plane().cells, 1));
        exact.reproducible   = 1; /* no sums of shapes nearby */
        Plan cpu(s, exact);
        cpu.setBox(boxes[i].box);
        const Result              expected = cpu.execute(boxes[i].x);
        const std::vector<double> force = out[i]->force.get(), virial = out[i]->virial.get();
        const double              energy = std::fabs(expected.energyNear) + std::fabs(expected.energyFar);
        EXPECT_EQ(out[i]->status.get()[0], GMXFMM_OK);
        EXPECT_LE(rmsDifference(force, expected.force), rounding() * rms(expected.force));
        for (std::size_t k = 0; k < 9; k++)
        {
            EXPECT_NEAR(virial[k], expected.virial[k], rounding() * energy);
        }
    }
}

TEST_P(CudaSlab, HasTargetsAndOtherCharges)
{
    System s = withoutExclusions(chargesIn(plane()));
    s        = rotated(s, {1, 2, 3}, 0.7);
    Plan                plan(s, onDevice(options(6, 1))), cpu(s, slab(explicitOptions(6, plane().cells, 1)));
    std::vector<double> twice = s.q;
    for (double& q : twice)
    {
        q *= -2;
    }
    const DeviceArray<double> charges(twice), x(s.x);
    Outputs                   out(s.size());
    enqueueCharges(plan.get(), s.size(), charges, stream_);
    enqueue(plan.get(), x, out, stream_);
    wait();
    const Result before = cpu.execute(s.x);
    EXPECT_NEAR(out.energy.get()[1], 4 * before.energyFar,
                rounding() * 4 * (std::fabs(before.energyNear) + std::fabs(before.energyFar)));

    std::vector<double> places;
    for (std::size_t i = 0; i < s.x.size(); i++)
    {
        places.push_back(s.x[i] + (i % 3 == 0 ? 0.05 : -0.03));
    }
    for (Plan* p : {&plan, &cpu})
    {
        ASSERT_EQ(gmxfmm_set_charges(p->get(), static_cast<std::int64_t>(s.size()), s.q.data()), GMXFMM_OK);
    }
    const Values here = valuesAt(plan.get(), s.x, places), there = valuesAt(cpu.get(), s.x, places);
    EXPECT_LE(rmsDifference(here.potential, there.potential), rounding() * rms(there.potential));
    EXPECT_LE(rmsDifference(here.field, there.field), rounding() * rms(there.field));
}

/* An assignment on a stream, or in parts, gives what the one that waits does; the second part in a graph. */
TEST_P(CudaSlab, AssignsOnAStream)
{
    const System         s       = rotated(chargesIn(plane()), {1, 2, 3}, 0.7);
    const gmxfmm_options options = onDevice(this->options(6, 1));
    Plan                 plan(s, options);
    DeviceArray<double>  x(s.x);
    Random               random(5);
    Graph                graph;
    const auto           part = [&](gmxfmm_assign_part which) { enqueueAssignPart(plan.get(), which, x, stream_); };
    for (int i = 0; i < 4; i++)
    {
        SCOPED_TRACE(i);
        const System now = rotated(movedWithin(chargesIn(plane()), &random), {1, 2, 3}, 0.7);
        x.put(now.x);
        EXPECT_NE(gmxfmm_capabilities(plan.get()) & GMXFMM_CAN_ENQUEUE_ASSIGN, 0U);
        if (i == 0)
        {
            enqueueAssign(plan.get(), x, stream_);
        }
        else
        {
            part(GMXFMM_ASSIGN_BEGIN);
            if (i == 1)
            {
                graph = Graph(stream_, [&] { part(GMXFMM_ASSIGN_SORT); });
            }
            graph.launch(stream_);
            part(GMXFMM_ASSIGN_END);
        }
        const Outputs out(s.size());
        enqueue(plan.get(), x, out, stream_);
        wait();
        Plan         anew(now, options);
        const Result expected = anew.execute(now.x);
        EXPECT_EQ(out.status.get()[0], GMXFMM_OK);
        /* the rotation moves the faces of the slab in their last digits */
        EXPECT_LE(rmsDifference(out.force.get(), expected.force), rounding() * rms(expected.force));
        EXPECT_LE(rmsDifference(out.potential.get(), expected.potential), rounding() * rms(expected.potential));
        EXPECT_NEAR(out.energy.get()[0] + out.energy.get()[1], expected.energy,
                    rounding() * (std::fabs(expected.energyNear) + std::fabs(expected.energyFar)));
    }
}

/* The highest particle and the lowest leave: cells at the faces hold them with errors like those of cells around all,
 * and soon after the plan asks for these. */
TEST_P(CudaSlab, HoldsParticlesThatLeaveUntilCellsAreMadeAnew)
{
    const System         s       = withoutExclusions(chargesIn(plane()));
    const gmxfmm_options options = onDevice(this->options(8, 1));
    Plan                 plan(s, options);
    System               now = s;
    DeviceArray<double>  x(s.x);
    std::size_t          low = 0, high = 1;
    int                  accepted = 0;
    const double         step     = 0.02 * (plane().thickness > 0 ? plane().thickness : 6) / plane().cells[2];
    for (std::size_t i = 0; i < s.size(); i++)
    {
        low  = s.x[3 * i + 2] < s.x[3 * low + 2] ? i : low;
        high = s.x[3 * i + 2] > s.x[3 * high + 2] ? i : high;
    }
    while (accepted < 200 && gmxfmm_capabilities(plan.get()) & GMXFMM_CAN_ENQUEUE_ASSIGN)
    {
        now.x[3 * high + 2] += step;
        now.x[3 * low + 2] -= step;
        x.put(now.x);
        enqueueAssign(plan.get(), x, stream_);
        accepted++;
    }
    const Outputs out(s.size());
    enqueue(plan.get(), x, out, stream_);
    wait();
    /* a sixteenth of a cell, and what they have to the faces of their cells at first: less than a cell */
    EXPECT_GE(accepted, 3);
    EXPECT_LE(accepted, 60);
    const std::vector<double> outside = out.force.get();
    EXPECT_EQ(out.status.get()[0], GMXFMM_OK);
    for (int i = 0; i < 2; i++)
    {
        const gmxfmm_status status =
            i == 0 ? gmxfmm_enqueue_assign(plan.get(), x.data(), stream_)
                   : gmxfmm_enqueue_assign_part(plan.get(), GMXFMM_ASSIGN_BEGIN, x.data(), stream_);
        EXPECT_EQ(status, GMXFMM_ERROR_ORDER);
        expectMessage(plan.get(), "left the cells of the slab");
    }
    plan.assign(now.x);
    EXPECT_NE(gmxfmm_capabilities(plan.get()) & GMXFMM_CAN_ENQUEUE_ASSIGN, 0U);
    enqueueAssign(plan.get(), x, stream_);
    /* two of 300 have larger errors, and what they act on */
    const Result exact = solve(now, slab(explicitOptions(20, plane().cells, 1)));
    const double error = relativeRms(plan.execute(now.x).force, exact.force);
    EXPECT_LE(relativeRms(outside, exact.force), 3 * error + rounding());
    System lost = now;
    lost.x[3 * high + 2] += 10 * std::max(plane().thickness, 1.0);
    x.put(lost.x);
    enqueueAssign(plan.get(), x, stream_);
    enqueue(plan.get(), x, out, stream_);
    wait();
    EXPECT_EQ(out.status.get()[0], GMXFMM_ERROR_POSITION);
    EXPECT_EQ(gmxfmm_capabilities(plan.get()) & GMXFMM_CAN_ENQUEUE_ASSIGN, 0U);
}

INSTANTIATE_TEST_SUITE_P(Planes,
                         CudaSlab,
                         testing::Combine(testing::ValuesIn(planes()), testing::Values(GMXFMM_DOUBLE, GMXFMM_SINGLE)),
                         CudaSlab::name);

using CudaSlabPlan = OnStream<testing::Test>;

/* Layers come and go with the particles. */
TEST_F(CudaSlabPlan, FollowsItsParticles)
{
    const System   s       = chargesIn(planes()[0]);
    gmxfmm_options options = slab(automatic(GMXFMM_M2L_FFT, 1e-6, GMXFMM_DOUBLE));
    Plan           cpu(s, options);
    Plan           gpu(s, onDevice(options));
    for (const double stretch : {1.0, 3.0, 0.1, 1.0})
    {
        System other = s;
        for (std::size_t i = 0; i < s.size(); i++)
        {
            other.x[3 * i + 2] = stretch * s.x[3 * i + 2] + 10 * (stretch - 1);
        }
        cpu.assign(other.x);
        gpu.assign(other.x);
        const Result expected = cpu.execute(other.x), r = gpu.execute(other.x);
        EXPECT_LE(rmsDifference(r.force, expected.force), 2e-6 * rms(expected.force)); /* cells of its own */
        EXPECT_NEAR(r.energy, expected.energy, 2e-6 * std::fabs(expected.energyFar));
    }
}

/* Half of a film far above the other, by a plan of its own, and by one that was made for the film and is chosen again.
 */
TEST_F(CudaSlabPlan, ReachesWhatIsAskedWhereMostCellsAreEmpty)
{
    const gmxfmm_options options = slab(askedOptions(1e-5));
    gmxfmm_options       exact   = slab(automatic(GMXFMM_M2L_FFT, 1e-8, GMXFMM_DOUBLE));
    exact.device                 = GMXFMM_CPU;
    const System whole           = ions({8, 0, 0, 0, 8, 0, 0, 0, 2}, 3000, 4);
    System       apart           = whole;
    Plan         plan(whole, onDevice(options));
    for (std::size_t i = 0; i < whole.size(); i++)
    {
        apart.x[3 * i + 2] += whole.x[3 * i + 2] > 1 ? 90 : 0;
    }
    const Result of_whole = solve(whole, exact), of_apart = solve(apart, exact);
    EXPECT_LE(relativeRms(plan.execute(whole.x).force, of_whole.force), 1e-5);
    EXPECT_LE(relativeRms(solve(apart, onDevice(options)).force, of_apart.force), 1e-5);
    plan.assign(apart.x);
    EXPECT_LE(relativeRms(plan.execute(apart.x).force, of_apart.force), 1e-5);
    plan.assign(whole.x);
    EXPECT_LE(relativeRms(plan.execute(whole.x).force, of_whole.force), 1e-5);
    gmxfmm_options octree = slab(automatic(GMXFMM_M2L_ROTATION, 1e-5, GMXFMM_DOUBLE));
    EXPECT_LE(relativeRms(solve(apart, onDevice(octree)).force, of_apart.force), 1e-5);
}

/* A position that is wrong, once, with a virial: the steps after it are right. */
TEST_F(CudaSlabPlan, ForgetsABadPosition)
{
    const System        s = chargesIn(planes()[0]);
    Plan                plan(s, onDevice(slab(explicitOptions(6, planes()[0].cells, 1))));
    const Result        expected = plan.execute(s.x);
    std::vector<double> bad      = s.x;
    std::vector<double> force(s.x.size());
    gmxfmm_output       out = sized<gmxfmm_output>();
    bad[5]                  = NAN;
    out.force               = force.data();
    out.want_virial         = 1;
    EXPECT_EQ(gmxfmm_execute(plan.get(), bad.data(), &out), GMXFMM_ERROR_POSITION);
    out.want_virial = 0;
    ASSERT_EQ(gmxfmm_execute(plan.get(), s.x.data(), &out), GMXFMM_OK) << gmxfmm_message(plan.get());
    EXPECT_EQ(force, expected.force);
}

TEST_F(CudaSlabPlan, HasNoGraphOfAnAssignment)
{
    const System              s = chargesIn(planes()[0]);
    Plan                      plan(s, onDevice(slab(explicitOptions(6, planes()[0].cells, 1))));
    const DeviceArray<double> x(s.x);
    cudaGraph_t               graph = nullptr;
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(gmxfmm_enqueue_assign(plan.get(), x.data(), stream_), GMXFMM_ERROR_UNSUPPORTED);
    expectMessage(plan.get(), "cannot be captured");
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    cudaGraphDestroy(graph);
    Plan octree(s, onDevice(slab(depthOptions(GMXFMM_M2L_ROTATION, 6, 2, 1))));
    EXPECT_EQ(gmxfmm_enqueue_assign(octree.get(), x.data(), stream_), GMXFMM_ERROR_UNSUPPORTED);
}

TEST_F(CudaSlabPlan, OfAWireIsRefused)
{
    const Mat3 box = {4, 0, 0, 0, 4, 0, 0, 0, 4};
    expectRefused(onDevice(periodicAlong(explicitOptions(6, 3, 3, 3, 1), {0, 0, 1})), 10, box.data(),
                  GMXFMM_ERROR_UNSUPPORTED, "a wire is not offered on a GPU, use the CPU");
}
