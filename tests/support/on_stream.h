/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A test with a stream of the GPU; skipped where there is none. */
#ifndef GMXFMM_TESTS_ON_STREAM_H
#define GMXFMM_TESTS_ON_STREAM_H

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "support/cuda.h"

namespace fmmtest
{

template <class Base>
class OnStream : public Base
{
  protected:
    void SetUp() override
    {
        if (!haveCuda())
        {
            GTEST_SKIP() << "no CUDA device";
        }
        ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    }
    void TearDown() override
    {
        if (stream_ != nullptr)
        {
            cudaStreamDestroy(stream_);
        }
    }
    void wait() const
    {
        ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    }
    cudaStream_t stream_ = nullptr;
};

} // namespace fmmtest

#endif
