/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Device memory that grows, and frees itself. */
#ifndef FMM_CUDA_BUFFER_H
#define FMM_CUDA_BUFFER_H

#include <stddef.h>

#include <utility>

#include <cuda_runtime.h>

struct DeviceBuffer
{
    void*  memory   = nullptr;
    size_t capacity = 0; /* bytes */

    DeviceBuffer()                               = default;
    DeviceBuffer(const DeviceBuffer&)            = delete;
    DeviceBuffer& operator=(const DeviceBuffer&) = delete;
    ~DeviceBuffer()
    {
        cudaFree(memory);
    }

    template <class T>
    T* as() const
    {
        return static_cast<T*>(memory);
    }

    void swap(DeviceBuffer* other)
    {
        std::swap(memory, other->memory);
        std::swap(capacity, other->capacity);
    }

    void release()
    {
        cudaFree(memory);
        memory   = nullptr;
        capacity = 0;
    }

    /* Makes room for at least `bytes`; what was there is lost if it grows. */
    cudaError_t reserve(size_t bytes)
    {
        if (bytes <= capacity)
        {
            return cudaSuccess;
        }
        release();
        const cudaError_t error = cudaMalloc(&memory, bytes);
        capacity                = error == cudaSuccess ? bytes : 0;
        return error;
    }
};

#endif
