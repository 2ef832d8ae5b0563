/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The levels of octree_level.h on the device, with operators. */
#ifndef GMXFMM_TESTS_OCTREE_DEVICE_H
#define GMXFMM_TESTS_OCTREE_DEVICE_H

#include <stdexcept>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

extern "C"
{
#include "cuda/octree/operators.h"
}
#include "cache_folder.h"
#include "octree_level.h"

namespace fmmtest
{

/* A variant of M2L. */
struct M2lMethod
{
    const char*     name;
    gmxfmm_m2l      m2l;
    fmm_octree_m2l* function;
    int             max_order;
};

inline const std::vector<M2lMethod>& m2l_methods()
{
    static const std::vector<M2lMethod> all = {
        {"rotation", GMXFMM_M2L_ROTATION, fmm_octree_m2l_rotation, FMM_OCTREE_MAX_ROTATION_ORDER},
        {"symmetric", GMXFMM_M2L_SYMMETRIC, fmm_octree_m2l_symmetric, FMM_OCTREE_MAX_ORDER},
        {"dynamic", GMXFMM_M2L_DYNAMIC, fmm_octree_m2l_dynamic, FMM_OCTREE_MAX_ORDER},
        {"naive", GMXFMM_M2L_NAIVE, fmm_octree_m2l_naive, FMM_OCTREE_MAX_ORDER},
    };
    return all;
}

template <class R>
class DeviceLevels
{
  public:
    fmm_octree_level      upper{}, lower{};
    fmm_octree_operators* ops = nullptr;

    explicit DeviceLevels(const Level& level) : level_(level)
    {
        try
        {
            upper = make(level.upper, nullptr);
            lower = make(level.lower, &level.multipole);
            expect(fmm_octree_create(&ops, &level.tree, &level.cells, level.order, sizeof(R) == sizeof(double)),
                   "create");
        }
        catch (...)
        {
            free_all();
            throw;
        }
    }

    ~DeviceLevels()
    {
        free_all();
    }
    DeviceLevels(const DeviceLevels&)            = delete;
    DeviceLevels& operator=(const DeviceLevels&) = delete;

    /* Waits, and throws if the call or a kernel has failed. */
    void expect(gmxfmm_status status, const char* what) const
    {
        const cudaError_t error = cudaDeviceSynchronize();
        if (status != GMXFMM_OK || error != cudaSuccess)
        {
            throw std::runtime_error(std::string(what) + ": " + (ops != nullptr ? fmm_octree_message(ops) : "") + "; " +
                                     cudaGetErrorString(error));
        }
    }

    bool reserve(gmxfmm_m2l m2l)
    {
        return reserve(m2l, lower.num);
    }

    /* Room for M2L of num cells; false if this build leaves out the order and it cannot be compiled: message(). */
    bool reserve(gmxfmm_m2l m2l, int num)
    {
        if (m2l == GMXFMM_M2L_ROTATION && rotation_ == nullptr)
        {
            const gmxfmm_status status = fmm_rotation_create(&rotation_, level_.order, sizeof(R) == sizeof(double),
                                                             cacheFolder(), message_, sizeof(message_));
            if (status == GMXFMM_ERROR_UNSUPPORTED)
            {
                return false;
            }
            expect(status, message_);
            fmm_octree_set_rotation(ops, rotation_);
        }
        expect(fmm_octree_reserve(ops, m2l, num), "reserve");
        return true;
    }

    const char* message() const
    {
        return message_;
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

    /* [cell][coefficient] */
    std::vector<R> locals(const fmm_octree_level& l) const
    {
        return get(l, l.local);
    }

    std::vector<R> multipoles(const fmm_octree_level& l) const
    {
        return get(l, l.multipole);
    }

  private:
    const Level&          level_;
    std::vector<void*>    memory_;
    fmm_rotation_kernels* rotation_     = nullptr;
    char                  message_[512] = "";

    void free_all()
    {
        fmm_octree_destroy(ops);
        fmm_rotation_destroy(rotation_);
        for (void* memory : memory_)
        {
            cudaFree(memory);
        }
    }

    void* allocate(size_t size)
    {
        void* memory = nullptr;
        if (cudaMalloc(&memory, size + 1) != cudaSuccess)
        {
            throw std::runtime_error("no device, or no memory");
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

    std::vector<R> get(const fmm_octree_level& l, const void* from) const
    {
        const size_t   coef = static_cast<size_t>(level_.num_coef());
        std::vector<R> columns(coef * l.stride), rows(coef * static_cast<size_t>(l.num));
        cudaMemcpy(columns.data(), from, columns.size() * sizeof(R), cudaMemcpyDeviceToHost);
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

} // namespace fmmtest

#endif
