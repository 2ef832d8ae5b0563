/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * M2L of one level of the octree on a GPU, every variant, on a dense periodic level, and the two bounding microkernels
 * of Kohnke et al. 2020: m2l_gpu [quick]. A line of JSON for each on stdout. tests/cuda/octree.cpp has checks.
 */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <vector>

#include "m2l_gpu_bounds.h"
#include "octree_device.h"

using namespace fmmtest;

namespace
{

/* Median of the times of calls, ms, by events: of 50, of fewer if they would take more than 0.4 s, of five at the
 * least. */
template <class F>
double median_ms(F&& call, int* repetitions)
{
    cudaEvent_t        a, b;
    std::vector<float> times;
    cudaEventCreate(&a);
    cudaEventCreate(&b);
    call();
    cudaDeviceSynchronize();
    double total = 0;
    for (int i = 0; i < 5 || (i < 50 && total < 400); i++)
    {
        float ms = 0;
        cudaEventRecord(a);
        call();
        cudaEventRecord(b);
        cudaEventSynchronize(b);
        cudaEventElapsedTime(&ms, a, b);
        times.push_back(ms);
        total += ms;
    }
    cudaEventDestroy(a);
    cudaEventDestroy(b);
    *repetitions = static_cast<int>(times.size());
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

double peak(bool is_double)
{
    int sms = 0, khz = 0;
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
    cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0);
    return 1e3 * khz * sms * (is_double ? 64.0 : 128.0); /* fused multiply-adds per second, compute capability 9.0 */
}

/* fma: fused multiply-adds that the method needs; share: part of the work that was timed. */
void print(const char* method, bool is_double, const Level& level, int repetitions, double ms, double fma, double share)
{
    std::printf("{\"method\": \"%s\", \"precision\": \"%s\", \"depth\": %d, \"order\": %d, \"ms\": %.5g, "
                "\"fraction_of_peak\": %.4g, \"repetitions\": %d, \"share_timed\": %.3g}\n",
                method, is_double ? "double" : "single", level.depth, level.order, ms,
                fma / (1e-3 * ms) / peak(is_double), repetitions, share);
    std::fflush(stdout);
}

/* O(p^2) accesses: what the products alone take. Time is in proportion to the products of a coefficient, of which a
 * multiple of 16 is computed. */
template <class R>
void time_compute_bound(const Level& level, const DeviceLevels<R>& device, double translations)
{
    const int    num = level.lower.num, num_coef = level.num_coef(), list = level.tree.num_list[0];
    const int    share = (list + 20) / 21, parts = (list + share - 1) / share;
    const double fma_each = 4 * complex_products(level.order) / num_coef;
    const int    fma      = (static_cast<int>(fma_each) + 15) / 16 * 16;
    const dim3   grid(static_cast<unsigned>((num + 127) / 128), static_cast<unsigned>(parts));
    R*           out         = nullptr;
    int          repetitions = 0;
    cudaMalloc(reinterpret_cast<void**>(&out), static_cast<size_t>(parts) * num * sizeof(R));
    const double ms = median_ms(
        [&]
        {
            compute_bound<R><<<grid, 128>>>(static_cast<const R*>(device.lower.multipole),
                                            static_cast<const R*>(device.upper.multipole), out, num, num_coef, list,
                                            share, fma);
        },
        &repetitions);
    cudaFree(out);
    device.expect(GMXFMM_OK, "compute-bound");
    print("compute-bound", sizeof(R) == sizeof(double), level, repetitions, ms * fma_each / fma,
          translations * 4 * complex_products(level.order), fma / fma_each);
}

/* O(p^4) accesses. They are all alike: where they are more than 2e9, as many are timed. */
template <class R>
void time_memory_bound(const Level& level, const DeviceLevels<R>& device, double translations)
{
    typedef typename std::conditional<sizeof(R) == 8, double2, float2>::type R2;
    const long   size     = 64l << 20; /* three arrays beyond the L2 cache */
    const double products = translations * complex_products(level.order), share = std::min(1.0, 2e9 / products);
    R2*          arrays[3];
    int          repetitions = 0;
    for (R2*& array : arrays)
    {
        cudaMalloc(reinterpret_cast<void**>(&array), size * sizeof(R2));
        cudaMemset(array, 0, size * sizeof(R2));
    }
    const double ms = median_ms(
        [&] {
            memory_bound<R2>
                <<<132 * 16, 256>>>(arrays[0], arrays[1], arrays[2], size, static_cast<long>(share * products));
        },
        &repetitions);
    for (R2* array : arrays)
    {
        cudaFree(array);
    }
    device.expect(GMXFMM_OK, "memory-bound");
    print("memory-bound", sizeof(R) == sizeof(double), level, repetitions, ms / share, 4 * products, share);
}

/* naive and dynamic, which are slow, on demand. */
template <class R>
void time_level(const Level& level, bool slow)
{
    DeviceLevels<R> device(level);
    const bool      is_double    = sizeof(R) == sizeof(double);
    double          translations = 0;
    int             repetitions  = 0;
    for (int c = 0; c < 8; c++)
    {
        translations += static_cast<double>(level.lower.slab[c + 1] - level.lower.slab[c]) * level.tree.num_list[c];
    }
    for (const M2lMethod& m : m2l_methods())
    {
        if (level.order > m.max_order || (!slow && (m.m2l == GMXFMM_M2L_NAIVE || m.m2l == GMXFMM_M2L_DYNAMIC)))
        {
            continue;
        }
        device.clear_locals();
        if (!device.reserve(m.m2l))
        {
            continue;
        }
        const double ms =
            median_ms([&] { m.function(device.ops, &device.upper, &device.lower, nullptr); }, &repetitions);
        device.expect(GMXFMM_OK, m.name);
        const double fma = m.m2l == GMXFMM_M2L_ROTATION    ? rotation_fma(level, translations, device.num_planes())
                           : m.m2l == GMXFMM_M2L_SYMMETRIC ? symmetric_fma(level)
                                                           : translations * 4 * complex_products(level.order);
        print(m.name, is_double, level, repetitions, ms, fma, 1);
    }
    time_compute_bound(level, device, translations);
    time_memory_bound(level, device, translations);
}

void time_both(int depth, int order, bool slow, bool slow_double)
{
    const Level level(depth, order, 1, true, 1, 1);
    time_level<float>(level, slow);
    time_level<double>(level, slow_double);
}

void time_all(bool quick)
{
    if (quick)
    {
        time_both(4, 4, true, false);
        time_both(4, 8, true, false);
        return;
    }
    for (int order = 3; order <= 20; order++)
    {
        time_both(5, order, order <= 10, order == 4 || order == 6 || order == 10);
    }
    for (int depth : {2, 3, 4, 6})
    {
        for (int order : {4, 6, 8, 10, 12})
        {
            time_both(depth, order, depth < 5, false);
        }
    }
}

} // namespace

int main(int argc, char** argv)
{
    try
    {
        time_all(argc > 1 && std::strcmp(argv[1], "quick") == 0);
    }
    catch (const std::exception& error)
    {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
