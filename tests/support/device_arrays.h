/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Arrays of the GPU, and all that a step on a stream can give. */
#ifndef GMXFMM_TESTS_DEVICE_ARRAYS_H
#define GMXFMM_TESTS_DEVICE_ARRAYS_H

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <vector>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "gmxfmm.h"
#include "support/plan.h"

namespace fmmtest
{

template <class T>
class DeviceArray
{
  public:
    explicit DeviceArray(std::size_t n) : n_(n)
    {
        EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&memory_), (n + 1) * sizeof(T)), cudaSuccess);
        EXPECT_EQ(cudaMemset(memory_, 0xff, (n + 1) * sizeof(T)), cudaSuccess); /* not a number, if it stays */
        EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess); /* streams of the tests do not wait for the default one */
    }
    explicit DeviceArray(const std::vector<T>& v) : DeviceArray(v.size())
    {
        put(v);
    }
    ~DeviceArray()
    {
        cudaFree(memory_);
    }
    DeviceArray(const DeviceArray&)            = delete;
    DeviceArray& operator=(const DeviceArray&) = delete;
    void         put(const std::vector<T>& v)
    {
        EXPECT_EQ(cudaMemcpy(memory_, v.data(), n_ * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
        EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    }
    std::vector<T> get() const
    {
        std::vector<T> v(n_);
        EXPECT_EQ(cudaMemcpy(v.data(), memory_, n_ * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
        return v;
    }
    T* data() const
    {
        return memory_;
    }

  private:
    T*          memory_ = nullptr;
    std::size_t n_;
};

/* Everything that a step can give, in device memory; X: the array type. */
template <class X>
struct OutputsOf
{
    explicit OutputsOf(std::size_t n) : force(3 * n), field(3 * n), potential(n), energy(2), virial(9), status(1)
    {
    }
    gmxfmm_device_output all() const
    {
        gmxfmm_device_output out = sized<gmxfmm_device_output>();
        out.force                = force.data();
        out.field                = field.data();
        out.potential            = potential.data();
        out.energy               = energy.data();
        out.virial               = virial.data();
        out.status               = status.data();
        return out;
    }
    DeviceArray<X>      force, field, potential;
    DeviceArray<double> energy, virial;
    DeviceArray<int>    status;
};

using Outputs = OutputsOf<double>;

template <class X>
void expectSameBits(const OutputsOf<X>& out, const OutputsOf<X>& expected)
{
    EXPECT_EQ(out.status.get()[0], GMXFMM_OK);
    EXPECT_EQ(expected.status.get()[0], GMXFMM_OK);
    EXPECT_EQ(out.force.get(), expected.force.get());
    EXPECT_EQ(out.field.get(), expected.field.get());
    EXPECT_EQ(out.potential.get(), expected.potential.get());
    EXPECT_EQ(out.energy.get(), expected.energy.get());
    EXPECT_EQ(out.virial.get(), expected.virial.get());
}

/* The bits of the call that waits. */
inline void expectSameBits(const Outputs& out, const Result& expected)
{
    const std::vector<double> virial = out.virial.get();
    EXPECT_EQ(out.status.get()[0], GMXFMM_OK);
    EXPECT_EQ(out.force.get(), expected.force);
    EXPECT_EQ(out.field.get(), expected.field);
    EXPECT_EQ(out.potential.get(), expected.potential);
    EXPECT_EQ(out.energy.get(), (std::vector<double>{expected.energyNear, expected.energyFar}));
    EXPECT_TRUE(std::equal(virial.begin(), virial.end(), expected.virial.begin()));
}

template <class X>
std::vector<X> asArray(const std::vector<double>& x)
{
    return std::vector<X>(x.begin(), x.end());
}

/* Arrays of X. */
template <class X>
gmxfmm_options withArrays(gmxfmm_options options)
{
    options.array_type = std::is_same<X, double>::value ? GMXFMM_DOUBLE : GMXFMM_SINGLE;
    return options;
}

/* test(X()) for the type. */
template <class Test>
void forArrays(gmxfmm_precision type, const Test& test)
{
    type == GMXFMM_DOUBLE ? test(double()) : test(float());
}

inline gmxfmm_options onDevice(gmxfmm_options options)
{
    options.device = GMXFMM_CUDA;
    return options;
}

} // namespace fmmtest

#endif
