/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Dipoles on the GPU: what the CPU gives in double precision, at all orders and by every method; on streams, in graphs,
 * with dipoles, charges and assignments that change. (The suite dipoles runs there, too, with
 * GMXFMM_TESTS_DEVICE=cuda.)
 */
#include <algorithm>
#include <cmath>
#include <tuple>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "support/agreement.h"
#include "support/dipoles.h"
#include "support/norms.h"
#include "support/on_stream.h"
#include "support/partly_periodic.h"
#include "support/paths.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

const Mat3 c_cube = {4, 0, 0, 0, 4, 0, 0, 0, 4};

/* Charges and dipoles with a net charge, and pairs excluded near and far. */
DipoleSystem mixtureOf(System s)
{
    s.q[1] += 1.5;
    for (std::size_t i = 0; i + 40 < s.size(); i += 20)
    {
        s.exclude(i, i + 1);
        s.exclude(i, i + 7);
        s.exclude(i + 3, i + 37);
    }
    return withDipoles(s, 0.4, 5);
}

/* Each result on the GPU is that of the CPU in double precision; gradients are sums of larger numbers. */
void expectAgreement(const DipoleSystem& s, gmxfmm_options options)
{
    gmxfmm_options reference = options;
    reference.device         = GMXFMM_CPU;
    reference.precision      = GMXFMM_DOUBLE;
    reference.m2l            = options.m2l == GMXFMM_M2L_DYNAMIC ? GMXFMM_M2L_NAIVE : options.m2l;
    const DipoleSolution gpu = solveDipoles(s, onDevice(options)), cpu = solveDipoles(s, reference);
    const double         tolerance = rounding(options.precision), more = 5 * tolerance;
    const double         energy = std::fabs(cpu.energyNear) + std::fabs(cpu.energyFar);
    EXPECT_LE(rmsDifference(gpu.potential, cpu.potential), tolerance * rms(cpu.potential));
    EXPECT_LE(rmsDifference(gpu.field, cpu.field), tolerance * rms(cpu.field));
    EXPECT_LE(rmsDifference(gpu.gradient, cpu.gradient), more * rms(cpu.gradient));
    EXPECT_LE(rmsDifference(gpu.force, cpu.force), more * rms(cpu.force));
    EXPECT_LE(rmsDifference(gpu.torque, cpu.torque), more * rms(cpu.torque));
    EXPECT_NEAR(gpu.energyNear, cpu.energyNear, tolerance * energy);
    EXPECT_NEAR(gpu.energyFar, cpu.energyFar, tolerance * energy);
    EXPECT_LE(maxDifference(gpu.virial, cpu.virial), more * energy);
}

class CudaDipoles : public WithCuda<testing::TestWithParam<MethodAndPrecision>>
{
  protected:
    static gmxfmm_options options(int order, int depth, int separation)
    {
        return methodOptions(std::get<0>(GetParam()), order, 1 << depth, separation, std::get<1>(GetParam()));
    }
};

} // namespace

TEST_P(CudaDipoles, InABox)
{
    const DipoleSystem s = mixtureOf(ions(c_cube, 200, 3));
    for (const Boundary boundary : {Boundary::Tinfoil, Boundary::Vacuum})
    {
        expectAgreement(s, withBoundary(options(8, 2, 1), boundary));
        expectAgreement(s, withBoundary(options(5, 3, 2), boundary));
    }
}

TEST_P(CudaDipoles, InAnOpenSystem)
{
    const DipoleSystem s = mixtureOf(droplet(300, 3, 4));
    expectAgreement(s, withBoundary(options(8, 3, 1), Boundary::Open));
    expectAgreement(s, withBoundary(options(4, 2, 2), Boundary::Open));
}

INSTANTIATE_TEST_SUITE_P(Methods,
                         CudaDipoles,
                         testing::Combine(testing::Values(GMXFMM_M2L_FFT,
                                                          GMXFMM_M2L_ROTATION,
                                                          GMXFMM_M2L_SYMMETRIC,
                                                          GMXFMM_M2L_DYNAMIC,
                                                          GMXFMM_M2L_NAIVE),
                                          testing::Values(GMXFMM_DOUBLE, GMXFMM_SINGLE)),
                         methodAndPrecisionName);

namespace
{

using CudaDipolesOfOrder = WithCuda<testing::TestWithParam<int>>;
using CudaDipolesInCells = WithCuda<testing::TestWithParam<gmxfmm_precision>>;

} // namespace

TEST_P(CudaDipolesOfOrder, InABox)
{
    const DipoleSystem s = mixtureOf(ions(boxOfVolume(boxTypes()[3], 64), 160, 11));
    for (const gmxfmm_precision precision : {GMXFMM_DOUBLE, GMXFMM_SINGLE})
    {
        expectAgreement(s, explicitOptions(GetParam(), evenGrid(boxTypes()[3], 4), 1, precision));
    }
}

INSTANTIATE_TEST_SUITE_P(All, CudaDipolesOfOrder, testing::Range(0, GMXFMM_MAX_ORDER_SINGLE + 1));

/* Few particles in a cell and many, more than one list in shared memory holds, beside empty cells; and cells of more
 * than one tile. */
TEST_P(CudaDipolesInCells, OfAnyOccupancy)
{
    expectAgreement(mixtureOf(ions(boxOfVolume(boxTypes()[1], 100), 60, 5)),
                    explicitOptions(6, evenGrid(boxTypes()[1], 6), 1, GetParam()));
    expectAgreement(mixtureOf(ions(boxOfVolume(boxTypes()[1], 100), 3000, 5)),
                    explicitOptions(6, evenGrid(boxTypes()[1], 4), 1, GetParam()));
    Random random(3);
    System s;
    s.box = {6, 0, 0, 0, 6, 0, 0, 0, 6};
    scatter(&s, 1500, {2.05, 2.05, 2.05}, {0.9, 0.9, 0.9}, &random);
    expectAgreement(withDipoles(s, 0.05, 5), explicitOptions(6, 6, 6, 6, 1, GetParam()));
}

/* More cells than a warp has a column of in P2M. */
TEST_P(CudaDipolesInCells, OfWhichThereAreMany)
{
    expectAgreement(mixtureOf(ions({14, 0, 0, 0, 14, 0, 0, 0, 14}, 3000, 5)),
                    explicitOptions(5, 28, 28, 28, 1, GetParam()));
}

TEST_P(CudaDipolesInCells, OfSlabs)
{
    const Mat3         box = {3, 0.2, -0.3, 0.4, 2.8, 0.5, -0.2, 0.3, 3.1};
    const DipoleSystem s   = mixtureOf(ions(box, 200, 9));
    for (const std::array<int, 3>& periodic : std::vector<std::array<int, 3>>{{1, 1, 0}, {1, 0, 1}, {0, 1, 1}})
    {
        expectAgreement(s, periodicAlong(explicitOptions(6, 4, 4, 4, 1, GetParam()), periodic));
    }
}

static std::string precisionName(const testing::TestParamInfo<gmxfmm_precision>& info)
{
    return info.param == GMXFMM_DOUBLE ? "Double" : "Single";
}

INSTANTIATE_TEST_SUITE_P(Precisions, CudaDipolesInCells, testing::Values(GMXFMM_DOUBLE, GMXFMM_SINGLE), precisionName);

namespace
{

/* All that a step with dipoles can give, in device memory. */
struct DipoleOutputs
{
    explicit DipoleOutputs(std::size_t n) : charges(n), torque(3 * n), gradient(6 * n)
    {
    }
    gmxfmm_device_output all() const
    {
        gmxfmm_device_output out = charges.all();
        out.torque               = torque.data();
        out.field_gradient       = gradient.data();
        return out;
    }
    Outputs             charges;
    DeviceArray<double> torque, gradient;
};

/* The bits of the call that waits. */
void expectSameBits(const DipoleOutputs& out, const DipoleSolution& expected)
{
    const std::vector<double> virial = out.charges.virial.get();
    EXPECT_EQ(out.charges.status.get()[0], GMXFMM_OK);
    EXPECT_EQ(out.charges.force.get(), expected.force);
    EXPECT_EQ(out.charges.field.get(), expected.field);
    EXPECT_EQ(out.charges.potential.get(), expected.potential);
    EXPECT_EQ(out.charges.energy.get(), (std::vector<double>{expected.energyNear, expected.energyFar}));
    EXPECT_TRUE(std::equal(virial.begin(), virial.end(), expected.virial.begin()));
    EXPECT_EQ(out.torque.get(), expected.torque);
    EXPECT_EQ(out.gradient.get(), expected.gradient);
}

class CudaDipolesOnAStream : public OnStream<testing::TestWithParam<gmxfmm_m2l>>
{
  protected:
    const DipoleSystem   system_  = mixtureOf(ions(c_cube, 200, 3));
    const gmxfmm_options options_ = onDevice(methodOptions(GetParam(), 6, 4, 1));
};

} // namespace

TEST_P(CudaDipolesOnAStream, InAGraphThatHasOtherDipolesToo)
{
    DipolePlan                plan(system_, options_);
    const DeviceArray<double> mu(system_.mu);
    DeviceArray<double>       x(system_.x);
    const DipoleOutputs       out(system_.size());
    const auto                step = [&] { enqueue(plan.get(), x, out.all(), stream_); };
    step();
    wait();
    expectSameBits(out, plan.solution(system_.x));
    const Graph        graph(stream_, step);
    const std::int64_t version = gmxfmm_graph_version(plan.get());
    DipoleSystem       other   = system_;
    for (int i = 0; i < 3; i++)
    {
        for (std::size_t k = 0; k < other.x.size(); k++)
        {
            other.x[k] = system_.x[k] + 1e-3 * std::sin(static_cast<double>(k) + i);
            other.mu[k] *= -0.9;
        }
        x.put(other.x);
        plan.setDipoles(other.mu);
        EXPECT_EQ(gmxfmm_graph_version(plan.get()), version);
        ASSERT_EQ(cudaMemsetAsync(out.torque.data(), 0xff, 24 * system_.size(), stream_), cudaSuccess);
        graph.launch(stream_);
        wait();
        expectSameBits(out, plan.solution(other.x));
    }
    /* those of an array of the device are the same */
    ASSERT_EQ(gmxfmm_set_dipoles(plan.get(), static_cast<std::int64_t>(system_.size()), mu.data()), GMXFMM_OK)
        << gmxfmm_message(plan.get());
    const DipoleSolution with = plan.solution(system_.x);
    plan.setDipoles(system_.mu);
    EXPECT_EQ(plan.solution(system_.x).force, with.force);
    /* without any, graphs are of another step */
    ASSERT_EQ(gmxfmm_set_dipoles(plan.get(), static_cast<std::int64_t>(system_.size()), nullptr), GMXFMM_OK);
    EXPECT_NE(gmxfmm_graph_version(plan.get()), version);
}

TEST_P(CudaDipolesOnAStream, OfSomeStagesAndResults)
{
    DipolePlan           plan(system_, options_);
    DeviceArray<double>  x(system_.x);
    const DipoleOutputs  out(system_.size());
    const DipoleSolution expected = plan.solution(system_.x);
    gmxfmm_device_output some     = out.all();
    for (const unsigned stage : {GMXFMM_STAGE_PERMUTE, GMXFMM_STAGE_NEAR, GMXFMM_STAGE_FAR, GMXFMM_STAGE_OUTPUT})
    {
        some.stages = stage;
        enqueue(plan.get(), x, some, stream_);
    }
    wait();
    expectSameBits(out, expected);
    some                = out.all();
    some.force          = nullptr;
    some.field_gradient = nullptr;
    some.virial         = nullptr;
    enqueue(plan.get(), x, some, stream_);
    wait();
    EXPECT_LT(relativeRms(out.torque.get(), expected.torque), 1e-12); /* other kernels */
    EXPECT_NEAR(out.charges.energy.get()[1], expected.energyFar, 1e-12 * std::fabs(expected.energyFar));
}

INSTANTIATE_TEST_SUITE_P(Methods, CudaDipolesOnAStream, testing::ValuesIn(methods()), methodName);

namespace
{

class CudaDipolesInCellsOnAStream : public OnStream<testing::Test>
{
  protected:
    const DipoleSystem   system_  = mixtureOf(ions(c_cube, 200, 3));
    const gmxfmm_options options_ = onDevice(explicitOptions(6, 4, 4, 4, 1));
};

} // namespace

/* Particles move into other cells, where an enqueued assignment puts them. */
TEST_F(CudaDipolesInCellsOnAStream, MoveBetweenCells)
{
    DipolePlan          plan(system_, options_);
    DeviceArray<double> x(system_.x);
    const DipoleOutputs out(system_.size());
    DipoleSystem        moved = system_;
    for (std::size_t k = 0; k < moved.x.size(); k++)
    {
        moved.x[k] += 0.7 * std::sin(static_cast<double>(k));
    }
    x.put(moved.x);
    enqueueAssign(plan.get(), x, stream_);
    enqueue(plan.get(), x, out.all(), stream_);
    wait();
    expectSameBits(out, solveDipoles(moved, options_));
}

/* Charges set on a stream beside dipoles; and other boxes. */
TEST_F(CudaDipolesInCellsOnAStream, WithOtherChargesAndBoxes)
{
    DipolePlan          plan(system_, options_);
    DipoleSystem        other = system_;
    const DipoleOutputs out(system_.size());
    for (double& q : other.q)
    {
        q *= 0.5;
    }
    static_cast<System&>(other) = strained(other, {-0.02, 0, 0, 0, -0.02, 0, 0, 0, -0.02});
    const DeviceArray<double> q(other.q), x(other.x);
    enqueueCharges(plan.get(), other.size(), q, stream_);
    enqueueBox(plan.get(), other.box, stream_);
    enqueue(plan.get(), x, out.all(), stream_);
    wait();
    const DipoleSolution expected = solveDipoles(other, options_);
    EXPECT_EQ(out.charges.status.get()[0], GMXFMM_OK);
    EXPECT_LT(relativeRms(out.charges.force.get(), expected.force), 1e-12);
    EXPECT_LT(relativeRms(out.torque.get(), expected.torque), 1e-12);
    EXPECT_LT(relativeRms(out.gradient.get(), expected.gradient), 1e-12);
}

TEST_F(CudaDipolesInCellsOnAStream, WithoutDipolesTheirResultsAreRefused)
{
    Plan                 plan(system_, options_);
    DeviceArray<double>  x(system_.x), torque(system_.x.size());
    gmxfmm_device_output out = sized<gmxfmm_device_output>();
    out.torque               = torque.data();
    EXPECT_EQ(gmxfmm_enqueue(plan.get(), x.data(), &out, stream_), GMXFMM_ERROR_ORDER);
}

/* Parts of a step have none: this one is refused. */
TEST_F(CudaDipolesInCellsOnAStream, SeveralDevicesRefuseThem)
{
    gmxfmm_options two = options_;
    two.num_devices    = 2;
    Plan plan(system_, two);
    EXPECT_EQ(gmxfmm_capabilities(plan.get()) & GMXFMM_CAN_DIPOLES, 0U);
    EXPECT_EQ(gmxfmm_set_dipoles(plan.get(), static_cast<std::int64_t>(system_.size()), system_.mu.data()),
              GMXFMM_ERROR_UNSUPPORTED);
    EXPECT_NE(std::string(gmxfmm_message(plan.get())).find("dipoles"), std::string::npos);
}
