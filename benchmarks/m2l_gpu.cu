/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * M2L of one level of the octree on a GPU: every variant checked against the formulas in double precision on some
 * targets, then timed on a dense periodic level; beside them the two bounding microkernels of Kohnke et al. 2020.
 * Usage: m2l_gpu FILE.json COMMIT [quick|check] (the command line goes to the file's head)
 */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "m2l_gpu_bounds.h"
#include "m2l_gpu_device.h"

namespace
{

struct Method
{
    const char*     name;
    gmxfmm_m2l      m2l;
    fmm_octree_m2l* function;
    int             max_order;
};

const Method c_methods[] = {
    {"rotation", GMXFMM_M2L_ROTATION, fmm_octree_m2l_rotation, FMM_OCTREE_MAX_ROTATION_ORDER},
    {"symmetric", GMXFMM_M2L_SYMMETRIC, fmm_octree_m2l_symmetric, FMM_OCTREE_MAX_ORDER},
    {"dynamic", GMXFMM_M2L_DYNAMIC, fmm_octree_m2l_dynamic, FMM_OCTREE_MAX_ORDER},
    {"naive", GMXFMM_M2L_NAIVE, fmm_octree_m2l_naive, FMM_OCTREE_MAX_ORDER},
};

int g_failed = 0;

/* Median of the times of at least `repetitions` calls, ms, by events; fewer if they would take more than `seconds`. */
template <class F>
double median_ms(F&& call, int* repetitions, double seconds)
{
    cudaEvent_t        a, b;
    std::vector<float> times;
    cudaEventCreate(&a);
    cudaEventCreate(&b);
    call();
    cudaDeviceSynchronize();
    double total = 0;
    for (int i = 0; i < *repetitions && total < 1e3 * seconds; i++)
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

void report(const char* what, const Level& level, bool is_double, double error)
{
    /* sums of about 200 translations, each of some hundred roundings that do not add up in one direction */
    const double limit = is_double ? 2e-13 : 6e-6;
    const bool   ok    = error <= limit;
    g_failed += !ok;
    std::printf("%s %-10s %s p=%d ws=%d %s%s cells %d: relative error %.2e, limit %.0e\n", ok ? "PASS" : "FAIL", what,
                is_double ? "double" : "single", level.order, level.ws, level.periodic ? "periodic" : "open",
                level.fill < 1 ? ", sparse" : "", level.lower.num, error, limit);
}

template <class R>
void check(int depth, int order, int ws, bool periodic, double fill, double stretch, bool slow)
{
    Level           level(depth, order, ws, periodic, fill, stretch);
    DeviceLevels<R> device(level);
    const bool      is_double = sizeof(R) == sizeof(double);
    for (const Method& m : c_methods)
    {
        if (order > m.max_order || (!slow && m.m2l != GMXFMM_M2L_ROTATION && m.m2l != GMXFMM_M2L_SYMMETRIC))
        {
            continue;
        }
        device.clear_locals();
        device.reserve(m.m2l);
        device.expect(m.function(device.ops, &device.upper, &device.lower, nullptr), m.name);
        report(m.name, level, is_double, level.m2l_error(device.template locals<R>(device.lower)));
        const std::vector<R> first = device.template locals<R>(device.lower);
        device.clear_locals();
        device.expect(m.function(device.ops, &device.upper, &device.lower, nullptr), m.name);
        const std::vector<R> second = device.template locals<R>(device.lower);
        if (std::memcmp(first.data(), second.data(), first.size() * sizeof(R)) != 0)
        {
            std::printf("FAIL %s: not the same twice\n", m.name);
            g_failed++;
        }
    }
    device.expect(fmm_octree_m2m(device.ops, &device.upper, &device.lower, nullptr), "m2m");
    report("m2m", level, is_double, level.m2m_error(device.template multipoles<R>(device.upper)));
    device.clear_locals();
    device.set_upper_locals();
    device.expect(fmm_octree_l2l(device.ops, &device.upper, &device.lower, nullptr), "l2l");
    report("l2l", level, is_double, level.l2l_error(device.template locals<R>(device.lower)));
}

void check_all(bool quick)
{
    for (int order : quick ? std::vector<int>{4, 12} : std::vector<int>{0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 20, 24})
    {
        check<float>(3, order, 1, true, 1, 1, true);
        check<double>(3, order, 1, true, 1, 1, true);
        check<float>(4, order, 1, false, 0.3, 1.2, order <= 8);
        check<double>(4, order, 1, false, 0.3, 1.2, false);
        if (order <= 12)
        {
            check<float>(3, order, 2, true, 1, 1.1, false);
            check<double>(3, order, 2, false, 0.5, 1, false);
        }
    }
}

struct Record
{
    std::string method;
    bool        is_double;
    int         depth, order, repetitions;
    double      ms, fraction;
};

double peak(bool is_double)
{
    int sms = 0, khz = 0;
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
    cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0);
    return 1e3 * khz * sms * (is_double ? 64.0 : 128.0); /* fused multiply-adds per second, compute capability 9.0 */
}

void add(std::vector<Record>* records,
         const char*          method,
         bool                 is_double,
         const Level&         level,
         int                  repetitions,
         double               ms,
         double               fma)
{
    const Record r = {
        method, is_double, level.depth, level.order, repetitions, ms, fma / (1e-3 * ms) / peak(is_double)};
    records->push_back(r);
    std::printf("%-13s %s d=%d p=%2d  %9.4f ms  %5.1f %% of peak  (%d repetitions)\n", method,
                is_double ? "double" : "single", r.depth, r.order, ms, 100 * r.fraction, repetitions);
    std::fflush(stdout);
}

template <class R>
void time_microkernels(
    const Level& level, DeviceLevels<R>* device, double translations, std::vector<Record>* records, bool with_memory)
{
    const bool   is_double = sizeof(R) == sizeof(double);
    const int    p = level.order, num = level.lower.num, num_coef = (p + 1) * (p + 1);
    const double products = complex_products(p);
    const int    list     = level.tree.num_list[0];
    const int    share = (list + 20) / 21, parts = (list + share - 1) / share;
    R*           out         = nullptr;
    int          repetitions = 50;
    cudaMalloc(reinterpret_cast<void**>(&out), static_cast<size_t>(parts) * num * sizeof(R));
    const int    fma     = (static_cast<int>(4 * products / num_coef) + 15) / 16 * 16;
    const double compute = median_ms(
        [&]
        {
            compute_bound<R><<<dim3(static_cast<unsigned>((num + 127) / 128), static_cast<unsigned>(parts)), 128>>>(
                static_cast<const R*>(device->lower.multipole), static_cast<const R*>(device->upper.multipole), out,
                num, num_coef, list, share, fma);
        },
        &repetitions, 3);
    add(records, "compute-bound", is_double, level, repetitions, compute * 4 * products / num_coef / fma,
        translations * 4 * products);
    cudaFree(out);
    if (with_memory)
    {
        typedef typename std::conditional<sizeof(R) == 8, double2, float2>::type R2;
        const long size = 64l << 20; /* three arrays beyond the L2 cache */
        R2*        arrays[3];
        for (R2*& array : arrays)
        {
            cudaMalloc(reinterpret_cast<void**>(&array), size * sizeof(R2));
            cudaMemset(array, 0, size * sizeof(R2));
        }
        repetitions         = 50;
        const double memory = median_ms(
            [&]
            {
                memory_bound<R2><<<132 * 16, 256>>>(arrays[0], arrays[1], arrays[2], size,
                                                    static_cast<long>(translations * products));
            },
            &repetitions, 6);
        add(records, "memory-bound", is_double, level, repetitions, memory, translations * 4 * products);
        for (R2* array : arrays)
        {
            cudaFree(array);
        }
    }
}

template <class R>
void time_level(int depth, int order, bool slow, std::vector<Record>* records)
{
    Level           level(depth, order, 1, true, 1, 1);
    DeviceLevels<R> device(level);
    const bool      is_double    = sizeof(R) == sizeof(double);
    double          translations = 0;
    for (int c = 0; c < 8; c++)
    {
        translations += static_cast<double>(level.lower.slab[c + 1] - level.lower.slab[c]) * level.tree.num_list[c];
    }
    for (const Method& m : c_methods)
    {
        const bool is_slow = m.m2l == GMXFMM_M2L_NAIVE || (m.m2l == GMXFMM_M2L_DYNAMIC && (depth < 5 || order <= 8));
        if (order > m.max_order ||
            (m.m2l != GMXFMM_M2L_ROTATION && m.m2l != GMXFMM_M2L_SYMMETRIC && !(is_slow && slow)))
        {
            continue;
        }
        int repetitions = 50;
        device.clear_locals();
        device.reserve(m.m2l);
        const double ms =
            median_ms([&] { m.function(device.ops, &device.upper, &device.lower, nullptr); }, &repetitions, 12);
        device.expect(cudaGetLastError() == cudaSuccess ? GMXFMM_OK : GMXFMM_ERROR_DEVICE, m.name);
        const double fma = m.m2l == GMXFMM_M2L_ROTATION    ? rotation_fma(level, translations, device.num_planes())
                           : m.m2l == GMXFMM_M2L_SYMMETRIC ? symmetric_fma(level)
                                                           : translations * 4 * complex_products(order);
        add(records, m.name, is_double, level, repetitions, ms, fma);
    }
    time_microkernels<R>(level, &device, translations, records, slow && depth < 5 && !is_double);
    int        repetitions = 50;
    const auto m2m =
        median_ms([&] { fmm_octree_m2m(device.ops, &device.upper, &device.lower, nullptr); }, &repetitions, 3);
    const auto l2l =
        median_ms([&] { fmm_octree_l2l(device.ops, &device.upper, &device.lower, nullptr); }, &repetitions, 3);
    std::printf("              m2m %.4f ms, l2l %.4f ms\n", m2m, l2l);
}

void time_all(bool quick, std::vector<Record>* records)
{
    const std::vector<int> orders = quick ? std::vector<int>{4, 12} : std::vector<int>{3, 4, 5, 6, 8, 10, 12, 20};
    for (int order : orders)
    {
        time_level<float>(5, order, !quick && order <= 10, records);
        time_level<double>(5, order, !quick && (order == 4 || order == 6), records);
    }
    for (int order : quick ? std::vector<int>{} : std::vector<int>{4, 6, 8, 10, 12})
    {
        time_level<float>(4, order, order <= 10, records);
        time_level<double>(4, order, false, records);
    }
}

void write(const char* file, const char* commit, const std::string& command, const std::vector<Record>& records)
{
    cudaDeviceProp properties;
    int            runtime = 0, driver = 0;
    char           date[32];
    const time_t   now = std::time(nullptr);
    cudaGetDeviceProperties(&properties, 0);
    cudaRuntimeGetVersion(&runtime);
    cudaDriverGetVersion(&driver);
    std::strftime(date, sizeof(date), "%Y-%m-%d", std::gmtime(&now));
    FILE* f = std::fopen(file, "w");
    if (f == nullptr)
    {
        std::fprintf(stderr, "cannot write %s\n", file);
        g_failed++;
        return;
    }
    std::fprintf(f, "{\n \"device\": \"%s\",\n \"driver\": \"CUDA %d.%d\",\n \"cuda\": \"%d.%d\",\n", properties.name,
                 driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    std::fprintf(f, " \"date\": \"%s\",\n \"commit\": \"%s\",\n \"command\": \"%s\",\n", date, commit, command.c_str());
    std::fprintf(
        f,
        " \"note\": \"dense periodic level, ws = 1; fraction_of_peak: fused multiply-adds that the method needs "
        "over those at %.3g FP32 or %.3g FP64 per second, the highest clock\",\n \"records\": [\n",
        peak(false), peak(true));
    for (size_t i = 0; i < records.size(); i++)
    {
        const Record& r = records[i];
        std::fprintf(f,
                     "  {\"method\": \"%s\", \"precision\": \"%s\", \"depth\": %d, \"order\": %d, \"ms\": %.5g, "
                     "\"fraction_of_peak\": %.4g, \"repetitions\": %d}%s\n",
                     r.method.c_str(), r.is_double ? "double" : "single", r.depth, r.order, r.ms, r.fraction,
                     r.repetitions, i + 1 < records.size() ? "," : "");
    }
    std::fprintf(f, " ]\n}\n");
    std::fclose(f);
}

} // namespace

int main(int argc, char** argv)
{
    if (argc < 3)
    {
        std::fprintf(stderr, "usage: %s FILE.json COMMIT [quick|check|time]\n", argv[0]);
        return 2;
    }
    const std::string   mode = argc > 3 ? argv[3] : "";
    std::vector<Record> records;
    std::string         command;
    for (int i = 0; i < argc; i++)
    {
        command += (i > 0 ? " " : "") + std::string(argv[i]);
    }
    if (mode.compare(0, 4, "time") != 0)
    {
        check_all(mode == "quick" || mode == "time-quick");
    }
    if (mode != "check")
    {
        time_all(mode == "quick", &records);
        write(argv[1], argv[2], command, records);
    }
    std::printf("%s\n", g_failed > 0 ? "FAILED" : "all right");
    return g_failed > 0;
}
