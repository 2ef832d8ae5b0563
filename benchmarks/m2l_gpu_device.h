/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The levels of m2l_gpu_level.h on the device, with operators. */
#ifndef M2L_GPU_DEVICE_H
#define M2L_GPU_DEVICE_H

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#include "m2l_gpu_level.h"
#include "octree.h"

template <class R>
class DeviceLevels
{
  public:
    fmm_octree_level      upper{}, lower{};
    fmm_octree_operators* ops = nullptr;

    explicit DeviceLevels(const Level& level) : level_(level)
    {
        upper = make(level.upper, nullptr);
        lower = make(level.lower, &level.multipole);
        expect(fmm_octree_create(&ops, &level.tree, &level.cells, level.order, sizeof(R) == sizeof(double)), "create");
    }

    ~DeviceLevels()
    {
        fmm_octree_destroy(ops);
        for (void* memory : memory_)
        {
            cudaFree(memory);
        }
    }
    DeviceLevels(const DeviceLevels&)            = delete;
    DeviceLevels& operator=(const DeviceLevels&) = delete;

    void expect(gmxfmm_status status, const char* what) const
    {
        const cudaError_t error = cudaDeviceSynchronize();
        if (status != GMXFMM_OK || error != cudaSuccess)
        {
            std::fprintf(stderr, "%s: %s; %s\n", what, fmm_octree_message(ops), cudaGetErrorString(error));
            std::exit(1);
        }
    }

    void reserve(gmxfmm_m2l m2l)
    {
        expect(fmm_octree_reserve(ops, m2l, lower.num), "reserve");
    }

    int num_planes() const
    {
        return level_.ws == 1 ? 16 : 40;
    }

    void clear_locals()
    {
        cudaMemset(lower.local, 0, bytes(lower));
        cudaMemset(upper.local, 0, bytes(upper));
    }

    void set_upper_locals()
    {
        put(upper, level_.upper_local, upper.local);
    }

    template <class T>
    std::vector<T> locals(const fmm_octree_level& l) const
    {
        return get<T>(l, l.local);
    }

    template <class T>
    std::vector<T> multipoles(const fmm_octree_level& l) const
    {
        return get<T>(l, l.multipole);
    }

  private:
    const Level&       level_;
    std::vector<void*> memory_;

    void* allocate(size_t size)
    {
        void* memory = nullptr;
        if (cudaMalloc(&memory, size + 1) != cudaSuccess)
        {
            std::fprintf(stderr, "no device, or no memory\n");
            std::exit(1);
        }
        memory_.push_back(memory);
        return memory;
    }

    int* copy(const std::vector<int>& v)
    {
        int* memory = static_cast<int*>(allocate(v.size() * sizeof(int)));
        cudaMemcpy(memory, v.data(), v.size() * sizeof(int), cudaMemcpyHostToDevice);
        return memory;
    }

    size_t bytes(const fmm_octree_level& l) const
    {
        return static_cast<size_t>(level_.num_coef()) * l.stride * sizeof(R);
    }

    fmm_octree_level make(const HostLevel& host, const std::vector<double>* multipole)
    {
        fmm_octree_level l{};
        l.num = host.num;
        for (int i = 0; i < 9; i++)
        {
            l.slab[i] = host.slab[i];
        }
        l.parent    = copy(host.parent);
        l.child     = copy(host.child);
        l.near      = copy(host.near);
        l.stride    = (static_cast<size_t>(host.num) + 64) / 64 * 64;
        l.multipole = allocate(bytes(l));
        l.local     = allocate(bytes(l));
        cudaMemset(l.multipole, 0, bytes(l));
        cudaMemset(l.local, 0, bytes(l));
        if (multipole != nullptr)
        {
            put(l, *multipole, l.multipole);
        }
        return l;
    }

    void put(const fmm_octree_level& l, const std::vector<double>& from, void* to) const
    {
        const size_t   coef = static_cast<size_t>(level_.num_coef());
        std::vector<R> columns(coef * l.stride, R(0));
        for (size_t i = 0; i < static_cast<size_t>(l.num); i++)
        {
            for (size_t f = 0; f < coef; f++)
            {
                columns[f * l.stride + i] = static_cast<R>(from[i * coef + f]);
            }
        }
        cudaMemcpy(to, columns.data(), columns.size() * sizeof(R), cudaMemcpyHostToDevice);
    }

    template <class T>
    std::vector<T> get(const fmm_octree_level& l, const void* from) const
    {
        const size_t   coef = static_cast<size_t>(level_.num_coef());
        std::vector<T> columns(coef * l.stride), rows(coef * static_cast<size_t>(l.num));
        cudaMemcpy(columns.data(), from, columns.size() * sizeof(T), cudaMemcpyDeviceToHost);
        for (size_t i = 0; i < static_cast<size_t>(l.num); i++)
        {
            for (size_t f = 0; f < coef; f++)
            {
                rows[i * coef + f] = columns[f * l.stride + i];
            }
        }
        return rows;
    }
};

#endif
