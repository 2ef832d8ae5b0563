/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Targets on the GPU get what they do on the CPU in double precision, by every method; on a stream as a graph, too.
 */
#include <tuple>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "support/agreement.h"
#include "support/norms.h"
#include "support/on_stream.h"
#include "support/paths.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

class CudaTargets : public WithCuda<testing::TestWithParam<MethodAndPrecision>>
{
  protected:
    static gmxfmm_options options(int order, int depth, int separation)
    {
        return onDevice(methodOptions(std::get<0>(GetParam()), order, 1 << depth, separation, std::get<1>(GetParam())));
    }
};

Values valuesAt(const System& s, const std::vector<double>& places, const gmxfmm_options& options)
{
    Plan plan(s, options);
    return fmmtest::valuesAt(plan.get(), s.x, places);
}

/* Values at a few places may cancel, and what cancels there is of the size of 1: charges of 1 at distances of 1. */
void expectTargetsAgree(const System& s, const std::vector<double>& places, const gmxfmm_options& options)
{
    gmxfmm_options reference = options;
    reference.device         = GMXFMM_CPU;
    reference.precision      = GMXFMM_DOUBLE;
    reference.m2l            = options.m2l == GMXFMM_M2L_DYNAMIC ? GMXFMM_M2L_NAIVE : options.m2l;
    const Values gpu = valuesAt(s, places, options), cpu = valuesAt(s, places, reference);
    EXPECT_LT(rmsDifference(gpu.potential, cpu.potential),
              rounding(options.precision) * std::max(rms(cpu.potential), 1.0));
    EXPECT_LT(rmsDifference(gpu.field, cpu.field), rounding(options.precision) * std::max(rms(cpu.field), 1.0));
}

const Mat3 c_cube = {4, 0, 0, 0, 4, 0, 0, 0, 4};

} // namespace

TEST_P(CudaTargets, InABox)
{
    const System s = ions(c_cube, 200, 3);
    for (int n : {1, 70, 900})
    {
        expectTargetsAgree(s, ions(c_cube, n, 9).x, options(8, 2, 1));
        expectTargetsAgree(s, ions(c_cube, n, 9).x, options(5, 3, 2));
    }
}

/* In an open system they may be anywhere. */
TEST_P(CudaTargets, OutsideOfOpenSystems)
{
    std::vector<double> places = ions({16, 0, 0, 0, 16, 0, 0, 0, 16}, 100, 9).x;
    for (double& x : places)
    {
        x -= 8;
    }
    expectTargetsAgree(droplet(300, 3, 4), places, withBoundary(options(8, 3, 1), Boundary::Open));
}

INSTANTIATE_TEST_SUITE_P(Methods,
                         CudaTargets,
                         testing::Combine(testing::Values(GMXFMM_M2L_FFT,
                                                          GMXFMM_M2L_ROTATION,
                                                          GMXFMM_M2L_SYMMETRIC,
                                                          GMXFMM_M2L_DYNAMIC,
                                                          GMXFMM_M2L_NAIVE),
                                          testing::Values(GMXFMM_DOUBLE, GMXFMM_SINGLE)),
                         methodAndPrecisionName);

namespace
{

class CudaTargetsOnAStream : public OnStream<testing::TestWithParam<gmxfmm_m2l>>
{
  protected:
    const System              system_  = ions(c_cube, 200, 3);
    const std::vector<double> places_  = ions(c_cube, 300, 9).x;
    const gmxfmm_options      options_ = onDevice(methodOptions(GetParam(), 6, 4, 1));
};

} // namespace

/* On the caller's stream, as a graph. */
TEST_P(CudaTargetsOnAStream, InAGraph)
{
    const Values              expected = valuesAt(system_, places_, options_);
    const std::size_t         n        = places_.size() / 3;
    Plan                      plan(system_, options_);
    const DeviceArray<double> x(system_.x), phi(n), field(3 * n);
    gmxfmm_device_output      out = sized<gmxfmm_device_output>();
    out.potential                 = phi.data();
    out.field                     = field.data();
    ASSERT_EQ(gmxfmm_set_targets(plan.get(), static_cast<std::int64_t>(n), places_.data()), GMXFMM_OK);
    ASSERT_EQ(gmxfmm_assign(plan.get(), x.data()), GMXFMM_OK) << gmxfmm_message(plan.get());
    const auto step = [&] { enqueue(plan.get(), x, out, stream_); };
    step();
    const Graph graph(stream_, step);
    for (int i = 0; i < 2; i++)
    {
        ASSERT_EQ(cudaMemsetAsync(phi.data(), 0xff, n * sizeof(double), stream_), cudaSuccess);
        graph.launch(stream_);
        wait();
        EXPECT_EQ(phi.get(), expected.potential);
        EXPECT_EQ(field.get(), expected.field);
    }
}

INSTANTIATE_TEST_SUITE_P(Methods, CudaTargetsOnAStream, testing::ValuesIn(methods()), methodName);
