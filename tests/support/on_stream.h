/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Streams and graphs of the GPU, and calls for them that must succeed. */
#ifndef GMXFMM_TESTS_ON_STREAM_H
#define GMXFMM_TESTS_ON_STREAM_H

#include <utility>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "support/cuda.h"
#include "support/device_arrays.h"

namespace fmmtest
{

class Stream
{
  public:
    Stream()
    {
        EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    }
    ~Stream()
    {
        cudaStreamDestroy(stream_);
    }
    Stream(const Stream&)            = delete;
    Stream& operator=(const Stream&) = delete;
            operator cudaStream_t() const
    {
        return stream_;
    }
    void wait() const
    {
        ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    }

  private:
    cudaStream_t stream_ = nullptr;
};

class Event
{
  public:
    Event()
    {
        EXPECT_EQ(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), cudaSuccess);
    }
    ~Event()
    {
        cudaEventDestroy(event_);
    }
    Event(const Event&)            = delete;
    Event& operator=(const Event&) = delete;
           operator cudaEvent_t() const
    {
        return event_;
    }

  private:
    cudaEvent_t event_ = nullptr;
};

/* What enqueue() puts on the stream, captured. */
class Graph
{
  public:
    Graph() = default;
    template <class Enqueue>
    Graph(cudaStream_t stream, const Enqueue& enqueue, cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal)
    {
        cudaGraph_t graph = nullptr;
        EXPECT_EQ(cudaStreamBeginCapture(stream, mode), cudaSuccess);
        enqueue();
        EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
        EXPECT_EQ(cudaGraphInstantiate(&exec_, graph, 0), cudaSuccess);
        cudaGraphDestroy(graph);
    }
    Graph(Graph&& other) noexcept : exec_(std::exchange(other.exec_, nullptr))
    {
    }
    Graph& operator=(Graph&& other) noexcept
    {
        std::swap(exec_, other.exec_);
        return *this;
    }
    ~Graph()
    {
        if (exec_ != nullptr)
        {
            cudaGraphExecDestroy(exec_);
        }
    }
    explicit operator bool() const
    {
        return exec_ != nullptr;
    }
    void launch(cudaStream_t stream) const
    {
        ASSERT_EQ(cudaGraphLaunch(exec_, stream), cudaSuccess);
    }

  private:
    cudaGraphExec_t exec_ = nullptr;
};

template <class Base>
class OnStream : public WithCuda<Base>
{
  protected:
    void SetUp() override
    {
        WithCuda<Base>::SetUp();
        if (!testing::Test::IsSkipped())
        {
            ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
        }
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

template <class X>
void enqueue(gmxfmm_plan* plan, const DeviceArray<X>& x, const gmxfmm_device_output& out, cudaStream_t stream)
{
    ASSERT_EQ(gmxfmm_enqueue(plan, x.data(), &out, stream), GMXFMM_OK) << gmxfmm_message(plan);
}

template <class X>
void enqueue(gmxfmm_plan* plan, const DeviceArray<X>& x, const OutputsOf<X>& out, cudaStream_t stream)
{
    enqueue(plan, x, out.all(), stream);
}

template <class X>
void enqueueAssign(gmxfmm_plan* plan, const DeviceArray<X>& x, cudaStream_t stream)
{
    ASSERT_EQ(gmxfmm_enqueue_assign(plan, x.data(), stream), GMXFMM_OK) << gmxfmm_message(plan);
}

template <class X>
void enqueueAssignPart(gmxfmm_plan* plan, gmxfmm_assign_part part, const DeviceArray<X>& x, cudaStream_t stream)
{
    ASSERT_EQ(gmxfmm_enqueue_assign_part(plan, part, x.data(), stream), GMXFMM_OK) << gmxfmm_message(plan);
}

inline void enqueueBox(gmxfmm_plan* plan, const Mat3& box, cudaStream_t stream)
{
    ASSERT_EQ(gmxfmm_enqueue_box(plan, box.data(), stream), GMXFMM_OK) << gmxfmm_message(plan);
}

/* Of all n particles, or of those of the index. */
template <class X>
void enqueueCharges(
    gmxfmm_plan* plan, std::size_t n, const DeviceArray<X>& q, cudaStream_t stream, const int* index = nullptr)
{
    ASSERT_EQ(gmxfmm_enqueue_charges(plan, static_cast<std::int64_t>(n), index, q.data(), stream), GMXFMM_OK)
        << gmxfmm_message(plan);
}

} // namespace fmmtest

#endif
