/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Targets on the GPU get what they do on the CPU in double precision, by every method; on a stream as a graph, too.
 */
#include <tuple>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "support/cuda.h"
#include "support/norms.h"
#include "support/paths.h"
#include "support/systems.h"

using namespace fmmtest;

namespace
{

/* Rounding, as in agreement.cpp. */
double rounding(gmxfmm_precision precision)
{
    return precision == GMXFMM_DOUBLE ? 1e-11 : 2e-5;
}

class CudaTargets : public testing::TestWithParam<MethodAndPrecision>
{
  protected:
    void SetUp() override
    {
        if (!haveCuda())
        {
            GTEST_SKIP() << "no CUDA device";
        }
    }
    static gmxfmm_options options(int order, int depth, int separation)
    {
        gmxfmm_options o =
            methodOptions(std::get<0>(GetParam()), order, 1 << depth, separation, std::get<1>(GetParam()));
        o.device = GMXFMM_CUDA;
        return o;
    }
};

struct TargetValues
{
    std::vector<double> potential, field;
};

TargetValues valuesAt(const System& s, const std::vector<double>& places, const gmxfmm_options& options)
{
    Plan          plan(s, options);
    TargetValues  v      = {std::vector<double>(places.size() / 3), std::vector<double>(places.size())};
    gmxfmm_output output = sized<gmxfmm_output>();
    output.potential     = v.potential.data();
    output.field         = v.field.data();
    EXPECT_EQ(gmxfmm_set_targets(plan.get(), static_cast<std::int64_t>(places.size() / 3), places.data()), GMXFMM_OK);
    EXPECT_EQ(gmxfmm_assign(plan.get(), s.x.data()), GMXFMM_OK) << gmxfmm_message(plan.get());
    EXPECT_EQ(gmxfmm_execute(plan.get(), s.x.data(), &output), GMXFMM_OK) << gmxfmm_message(plan.get());
    return v;
}

/* Values at a few places may cancel, and what cancels there is of the size of 1: charges of 1 at distances of 1. */
void expectTargetsAgree(const System& s, const std::vector<double>& places, const gmxfmm_options& options)
{
    gmxfmm_options reference = options;
    reference.device         = GMXFMM_CPU;
    reference.precision      = GMXFMM_DOUBLE;
    reference.m2l            = options.m2l == GMXFMM_M2L_DYNAMIC ? GMXFMM_M2L_NAIVE : options.m2l;
    const TargetValues gpu = valuesAt(s, places, options), cpu = valuesAt(s, places, reference);
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

class CudaTargetsOnAStream : public testing::TestWithParam<gmxfmm_m2l>
{
  protected:
    void SetUp() override
    {
        if (!haveCuda())
        {
            GTEST_SKIP() << "no CUDA device";
        }
        options_        = methodOptions(GetParam(), 6, 4, 1);
        options_.device = GMXFMM_CUDA;
    }
    const System              system_ = ions(c_cube, 200, 3);
    const std::vector<double> places_ = ions(c_cube, 300, 9).x;
    gmxfmm_options            options_{};
};

/* Device memory of n doubles, a copy of `from` if there are any. */
double* deviceDoubles(std::size_t n, const double* from)
{
    double* memory = nullptr;
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&memory), n * sizeof(double)), cudaSuccess);
    EXPECT_EQ(from != nullptr ? cudaMemcpy(memory, from, n * sizeof(double), cudaMemcpyHostToDevice)
                              : cudaMemset(memory, 0xff, n * sizeof(double)),
              cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess); /* streams of the tests do not wait for the default one */
    return memory;
}

} // namespace

/* On the caller's stream, as a graph. */
TEST_P(CudaTargetsOnAStream, InAGraph)
{
    const TargetValues   expected = valuesAt(system_, places_, options_);
    const std::size_t    n        = places_.size() / 3;
    Plan                 plan(system_, options_);
    double*              x   = deviceDoubles(system_.x.size(), system_.x.data());
    double *             phi = deviceDoubles(n, nullptr), *field = deviceDoubles(3 * n, nullptr);
    gmxfmm_device_output out = sized<gmxfmm_device_output>();
    out.potential            = phi;
    out.field                = field;
    cudaStream_t    stream;
    cudaGraph_t     graph;
    cudaGraphExec_t exec;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(gmxfmm_set_targets(plan.get(), static_cast<std::int64_t>(n), places_.data()), GMXFMM_OK);
    ASSERT_EQ(gmxfmm_assign(plan.get(), x), GMXFMM_OK) << gmxfmm_message(plan.get());
    ASSERT_EQ(gmxfmm_enqueue(plan.get(), x, &out, stream), GMXFMM_OK) << gmxfmm_message(plan.get());
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    ASSERT_EQ(gmxfmm_enqueue(plan.get(), x, &out, stream), GMXFMM_OK) << gmxfmm_message(plan.get());
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    for (int i = 0; i < 2; i++)
    {
        TargetValues v = {std::vector<double>(n), std::vector<double>(3 * n)};
        ASSERT_EQ(cudaMemsetAsync(phi, 0xff, n * sizeof(double), stream), cudaSuccess);
        ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
        ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
        ASSERT_EQ(cudaMemcpy(v.potential.data(), phi, n * sizeof(double), cudaMemcpyDeviceToHost), cudaSuccess);
        ASSERT_EQ(cudaMemcpy(v.field.data(), field, 3 * n * sizeof(double), cudaMemcpyDeviceToHost), cudaSuccess);
        EXPECT_EQ(v.potential, expected.potential);
        EXPECT_EQ(v.field, expected.field);
    }
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    for (double* memory : {x, phi, field})
    {
        cudaFree(memory);
    }
}

INSTANTIATE_TEST_SUITE_P(Methods, CudaTargetsOnAStream, testing::ValuesIn(methods()), methodName);
