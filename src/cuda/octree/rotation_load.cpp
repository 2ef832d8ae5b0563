/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Kernels of M2L by rotations for an order and precision: those of the build, or compiled and loaded at run time. */
#include <cstdio>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "cuda/octree/state.h"
#include "cuda/octree/rotation_compile.h"
#include "cuda/octree/rotation_orders.h"

/* of m2l_rotation_order.cu: addresses of kernels */
namespace rotation
{
#define DECLARE(p)                                                                                                     \
    const void* rotate_sources_float_##p();                                                                            \
    const void* rotate_sources_double_##p();                                                                           \
    const void* translate_float_##p();                                                                                 \
    const void* translate_double_##p();
FMM_ROTATION_ORDERS(DECLARE)
} // namespace rotation

using Address = const void*();
#define ADDRESSES(p)                                                                                                   \
    {{rotation::rotate_sources_float_##p, rotation::translate_float_##p},                                              \
     {rotation::rotate_sources_double_##p, rotation::translate_double_##p}},
static Address* const c_compiled[][2][2] = {FMM_ROTATION_ORDERS(ADDRESSES)}; /* [order][is_double][kernel] */

#ifdef FMM_FEW_ORDERS

/* Compiles both kernels, each in its own thread. False and the cause if one cannot be compiled. */
static bool
compile_both(const RotationProgram& program, const char* cache_dir, std::vector<char> (&code)[2], std::string* cause)
{
    const RuntimeCompiler compiler;
    RotationProgram       programs[2] = {program, program};
    std::string           causes[2];
    bool                  done[2] = {false, false};
    programs[0].kernel            = "rotate_sources";
    programs[1].kernel            = "translate";
    const auto compile            = [&](int i)
    {
        try
        {
            done[i] = fmm_rotation_compile(compiler, programs[i], cache_dir, &code[i], &causes[i]);
        }
        catch (const std::bad_alloc&)
        {
            done[i] = false;
        }
    };
    if (!compiler.found())
    {
        *cause = compiler.cause();
        return false;
    }
    std::thread other;
    try
    {
        other = std::thread(compile, 0);
    }
    catch (const std::system_error&) /* no thread to be had: one after the other */
    {
        compile(0);
    }
    compile(1);
    if (other.joinable())
    {
        other.join();
    }
    *cause = !done[0] && !causes[0].empty() ? causes[0] : !causes[1].empty() ? causes[1] : "out of memory";
    return done[0] && done[1];
}

/* Loads the single kernel of a cubin, so that errors in it are found now and not in a step. */
static cudaError_t load(const std::vector<char>& code, cudaLibrary_t* library, const void** kernel)
{
    cudaKernel_t       handle = nullptr;
    cudaFuncAttributes attributes;
    cudaError_t        error = cudaLibraryLoadData(library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    error                    = error == cudaSuccess ? cudaLibraryEnumerateKernels(&handle, 1, *library) : error;
    *kernel                  = reinterpret_cast<const void*>(handle);
    return error == cudaSuccess ? cudaFuncGetAttributes(&attributes, *kernel) : error;
}

static gmxfmm_status compile_and_load(fmm_rotation_kernels* kernels, const char* cache_dir, char* message, size_t size)
{
    DeviceLimits      limits = {0, 0, 0};
    cudaError_t       error  = current_device_limits(&limits);
    std::vector<char> code[2];
    std::string       cause;
    if (error == cudaSuccess &&
        !compile_both({kernels->order, kernels->is_double != 0, "", limits.capability}, cache_dir, code, &cause))
    {
        std::snprintf(
            message, size,
            "m2l = rotation at order %d is compiled when it is first used, and %s: install NVRTC, use an order "
            "up to %d or another m2l, or build the library with -DGMXFMM_CUDA_ALL_ORDERS=ON",
            kernels->order, cause.c_str(), fmm_last_rotation_order());
        return GMXFMM_ERROR_UNSUPPORTED;
    }
    cudaLibrary_t library[2] = {nullptr, nullptr};
    error                    = error == cudaSuccess ? load(code[0], &library[0], &kernels->rotate_sources) : error;
    error                    = error == cudaSuccess ? load(code[1], &library[1], &kernels->translate) : error;
    kernels->library[0]      = library[0];
    kernels->library[1]      = library[1];
    if (error != cudaSuccess)
    {
        cudaGetLastError();
        std::snprintf(message, size, "kernels of m2l = rotation, compiled for order %d, cannot be loaded: %s",
                      kernels->order, cudaGetErrorString(error));
        return error == cudaErrorMemoryAllocation ? GMXFMM_ERROR_MEMORY : GMXFMM_ERROR_DEVICE;
    }
    return GMXFMM_OK;
}

static void unload(fmm_rotation_kernels* kernels)
{
    for (void* library : kernels->library)
    {
        if (library != nullptr)
        {
            cudaLibraryUnload(static_cast<cudaLibrary_t>(library));
        }
    }
}

#else

static gmxfmm_status compile_and_load(fmm_rotation_kernels* kernels, const char*, char* message, size_t size)
{
    std::snprintf(message, size, "m2l = rotation goes to order %d, asked for is %d", fmm_last_rotation_order(),
                  kernels->order);
    return GMXFMM_ERROR_UNSUPPORTED;
}

static void unload(fmm_rotation_kernels*)
{
}

#endif

gmxfmm_status fmm_rotation_create(
    fmm_rotation_kernels** made, int order, int is_double, const char* cache_dir, char* message, size_t size)
{
    fmm_rotation_kernels* kernels = new (std::nothrow) fmm_rotation_kernels{order, is_double, nullptr, nullptr, {}};
    *made                         = kernels;
    if (kernels == nullptr)
    {
        std::snprintf(message, size, "out of memory");
        return GMXFMM_ERROR_MEMORY;
    }
    if (order <= fmm_last_rotation_order())
    {
        kernels->rotate_sources = c_compiled[order][is_double][0]();
        kernels->translate      = c_compiled[order][is_double][1]();
        return GMXFMM_OK;
    }
    gmxfmm_status status = GMXFMM_ERROR_MEMORY;
    try
    {
        status = compile_and_load(kernels, cache_dir, message, size);
    }
    catch (const std::bad_alloc&)
    {
        std::snprintf(message, size, "out of memory for kernels of order %d", order);
    }
    if (status != GMXFMM_OK)
    {
        fmm_rotation_destroy(kernels);
        *made = nullptr;
    }
    return status;
}

void fmm_rotation_destroy(fmm_rotation_kernels* kernels)
{
    if (kernels != nullptr)
    {
        unload(kernels);
        delete kernels;
    }
}

int fmm_rotation_is_for(const fmm_rotation_kernels* kernels, int order, int is_double)
{
    return kernels != nullptr && kernels->order == order && kernels->is_double == is_double;
}
