/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sums: a block has some targets of a batch in registers and goes through all of its lists, sources and Chebyshev
 * points in shared memory; no atomics, the same bits in every run. In single precision pairs are relative to the
 * batch's centre and each cluster's sum is added in double.
 */
#include "cuda/treecode/device.h"

#include <cstdlib>
#include <type_traits>

#define TREECODE_FUNCTION __device__ __forceinline__

namespace single
{
typedef float                    real;
typedef float                    number;
__device__ __forceinline__ float kernel_rsqrt(float x)
{
    return rsqrtf(x);
}
__device__ __forceinline__ float kernel_exp(float x)
{
    return __expf(x);
}
#include "fmm/treecode/kernels.h"
} // namespace single

#undef TREECODE_KERNEL_FUNCTIONS

namespace twice
{
typedef double real;
typedef double number;
/* An estimate to 2^-20 and, with e = 1 - x y^2, the step y (1 + e/2 + 3/8 e^2), which leaves 5/16 e^3. */
__device__ __forceinline__ double kernel_rsqrt(double x)
{
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    const double e = fma(-x, y * y, 1.0);
    return fma(y * e, fma(e, 0.375, 0.5), y);
}
__device__ __forceinline__ double kernel_exp(double x)
{
    return exp(x);
}
#include "fmm/treecode/kernels.h"
} // namespace twice

namespace
{

enum
{
    c_threads = 128,
    c_targets = 2,                     /* of a thread */
    c_tile    = c_threads * c_targets, /* of a block */
    c_chunk   = 256                    /* sources in shared memory at a time */
};

template <class R>
struct Parameters;
template <>
struct Parameters<float> : single::kernel_parameters
{
};
template <>
struct Parameters<double> : twice::kernel_parameters
{
};

template <treecode_kernel kernel>
__device__ __forceinline__ void evaluate(float r2, const Parameters<float>& k, float* g, float* slope)
{
    single::kernel_evaluate(kernel, r2, k, g, slope);
}

template <treecode_kernel kernel>
__device__ __forceinline__ void evaluate(double r2, const Parameters<double>& k, double* g, double* slope)
{
    twice::kernel_evaluate(kernel, r2, k, g, slope);
}

struct Arguments
{
    TreecodeTree        sources, targets;
    const double *      q, *charge;
    const TreecodeTile* tile;
    const int *         cluster, *approximated, *direct;
    const int64_t *     approximated_start, *direct_start;
    int                 separate, degree;
    TreecodePoints      points;
    double *            phi, *slope[3];
};

/* A thread's targets, and what one cluster adds to them. */
template <class R>
struct Targets
{
    R x[3][c_targets], phi[c_targets], field[3][c_targets];
};

template <class R, treecode_kernel kernel, bool withField>
__device__ __forceinline__ void meet(Targets<R>* a, int i, R dx, R dy, R dz, R q, bool other, const Parameters<R>& k)
{
    R g, slope;
    evaluate<kernel>(dx * dx + dy * dy + dz * dz, k, &g, &slope);
    a->phi[i] += other ? g * q : R(0);
    if (withField)
    {
        const R f = other ? slope * q : R(0);
        a->field[0][i] -= f * dx;
        a->field[1][i] -= f * dy;
        a->field[2][i] -= f * dz;
    }
}

/* Sources in shared memory; own: source j is this thread's target i where j == own + i, and left out. */
template <class R, treecode_kernel kernel, bool withField, bool hasOwn>
__device__ __forceinline__ void
meetSources(Targets<R>* a, const R* sm_source, int count, int own, const Parameters<R>& k)
{
#pragma unroll 4
    for (int j = 0; j < count; j++)
    {
        const R y0 = sm_source[4 * j], y1 = sm_source[4 * j + 1], y2 = sm_source[4 * j + 2], q = sm_source[4 * j + 3];
#pragma unroll
        for (int i = 0; i < c_targets; i++)
        {
            meet<R, kernel, withField>(a, i, a->x[0][i] - y0, a->x[1][i] - y1, a->x[2][i] - y2, q,
                                       !hasOwn || j != own + i, k);
        }
    }
}

template <class R, treecode_kernel kernel, bool withField>
__device__ __forceinline__ void
meetPoints(Targets<R>* a, const R* sm_point, const R* sm_charge, int edge, const Parameters<R>& k)
{
    for (int k1 = 0; k1 < edge; k1++)
    {
        for (int k2 = 0; k2 < edge; k2++, sm_charge += edge)
        {
            R dx[c_targets], dy[c_targets], plane[c_targets], slopes[c_targets];
#pragma unroll
            for (int i = 0; i < c_targets; i++)
            {
                dx[i]     = a->x[0][i] - sm_point[k1];
                dy[i]     = a->x[1][i] - sm_point[TREECODE_MAX_EDGE + k2];
                plane[i]  = dx[i] * dx[i] + dy[i] * dy[i];
                slopes[i] = 0;
            }
#pragma unroll 4
            for (int k3 = 0; k3 < edge; k3++)
            {
                const R z = sm_point[2 * TREECODE_MAX_EDGE + k3], q = sm_charge[k3];
#pragma unroll
                for (int i = 0; i < c_targets; i++)
                {
                    const R dz = a->x[2][i] - z;
                    R       g, slope;
                    evaluate<kernel>(plane[i] + dz * dz, k, &g, &slope);
                    a->phi[i] += g * q;
                    if (withField)
                    {
                        const R f = slope * q;
                        slopes[i] += f;
                        a->field[2][i] -= f * dz;
                    }
                }
            }
#pragma unroll
            for (int i = 0; i < c_targets && withField; i++)
            {
                a->field[0][i] -= slopes[i] * dx[i];
                a->field[1][i] -= slopes[i] * dy[i];
            }
        }
    }
}

/* What a thread's targets have from all clusters so far; takes what one has added. */
struct Sums
{
    double phi[c_targets], field[3][c_targets];

    template <class R>
    __device__ __forceinline__ void take(Targets<R>* a)
    {
#pragma unroll
        for (int i = 0; i < c_targets; i++)
        {
            phi[i] += a->phi[i];
            a->phi[i] = 0;
#pragma unroll
            for (int d = 0; d < 3; d++)
            {
                field[d][i] += a->field[d][i];
                a->field[d][i] = 0;
            }
        }
    }
};

/* Particles begin .. end - 1 as sources relative to the centre: x, y, z, q. */
template <class R>
__device__ void loadSources(const Arguments& a, int64_t begin, int count, const double* centre, R* sm_source)
{
    for (int task = threadIdx.x; task < 4 * count; task += c_threads)
    {
        const int     d = task / count, j = task % count;
        const int64_t s      = begin + j;
        sm_source[4 * j + d] = d < 3 ? R(a.sources.x[d][s] - centre[d]) : R(a.q[s]);
    }
}

template <class R, treecode_kernel kernel, bool withField>
__global__ void __launch_bounds__(c_threads) batchSums(Arguments a, Parameters<R> k)
{
    extern __shared__ __align__(16) unsigned char sm_bytes[];
    R* const                                      sm_points = reinterpret_cast<R*>(sm_bytes); /* along each dimension */
    R* const                                      sm_source = sm_points + 3 * TREECODE_MAX_EDGE;
    const TreecodeTile                            tile      = a.tile[blockIdx.x];
    const int  edge = a.degree + 1, size = edge * edge * edge, first = (int)threadIdx.x * c_targets;
    const bool active = (int)(threadIdx.x / 32 * 32) * c_targets < tile.count; /* any target of the warp */
    double     centre[3];
    Targets<R> mine = {};
    Sums       sums = {};
    for (int d = 0; d < 3; d++)
    {
        double half;
        a.targets.box(a.cluster[tile.batch], d, &centre[d], &half);
        for (int i = 0; i < c_targets; i++)
        {
            const int here = first + i < tile.count ? first + i : 0;
            mine.x[d][i]   = R(a.targets.x[d][tile.first + here] - centre[d]);
        }
    }
    for (int64_t l = a.direct_start[tile.batch]; l < a.direct_start[tile.batch + 1]; l++)
    {
        const int64_t last = a.sources.end[a.direct[l]];
        for (int64_t from = a.sources.begin[a.direct[l]]; from < last; from += c_chunk)
        {
            const int  count = last - from < c_chunk ? (int)(last - from) : c_chunk;
            const bool own   = !a.separate && from < tile.first + tile.count && tile.first < from + count;
            __syncthreads();
            loadSources(a, from, count, centre, sm_source);
            __syncthreads();
            if (active && own)
            {
                meetSources<R, kernel, withField, true>(&mine, sm_source, count, (int)(tile.first + first - from), k);
            }
            else if (active)
            {
                meetSources<R, kernel, withField, false>(&mine, sm_source, count, 0, k);
            }
        }
        sums.take(&mine);
    }
    for (int64_t l = a.approximated_start[tile.batch]; l < a.approximated_start[tile.batch + 1]; l++)
    {
        const int cluster = a.approximated[l];
        __syncthreads();
        for (int task = threadIdx.x; task < 3 * edge; task += c_threads)
        {
            const int d = task / edge, j = task % edge;
            double    other, half;
            a.sources.box(cluster, d, &other, &half);
            sm_points[d * TREECODE_MAX_EDGE + j] = R(other - centre[d] + half * a.points.s[j]);
        }
        for (int j = threadIdx.x; j < size; j += c_threads)
        {
            sm_source[j] = R(a.charge[(size_t)cluster * size + j]);
        }
        __syncthreads();
        if (active)
        {
            meetPoints<R, kernel, withField>(&mine, sm_points, sm_source, edge, k);
        }
        sums.take(&mine);
    }
    for (int i = 0; i < c_targets && first + i < tile.count; i++)
    {
        a.phi[tile.first + first + i] = sums.phi[i];
        for (int d = 0; d < 3 && withField; d++)
        {
            a.slope[d][tile.first + first + i] = sums.field[d][i];
        }
    }
}

/* Lists, separate targets and tiles; *num_tiles blocks. */
gmxfmm_status uploadLists(treecode* t, const treecode_lists* lists, int* num_tiles)
{
    treecode_device* d     = t->device;
    size_t           tiles = 0;
    for (int b = 0; b < lists->num; b++)
    {
        tiles += (size_t)((lists->end[b] - lists->begin[b] + c_tile - 1) / c_tile);
    }
    if (tiles > d->tile_capacity)
    {
        free(d->tiles);
        d->tiles         = static_cast<TreecodeTile*>(malloc(tiles * sizeof(TreecodeTile)));
        d->tile_capacity = d->tiles != nullptr ? tiles : 0;
        if (d->tiles == nullptr)
        {
            return treecode_fail(t, GMXFMM_ERROR_MEMORY, "out of memory");
        }
    }
    *num_tiles = 0;
    for (int b = 0; b < lists->num; b++)
    {
        /* even parts of a batch */
        const int64_t num = lists->end[b] - lists->begin[b], parts = (num + c_tile - 1) / c_tile;
        for (int64_t p = 0; p < parts; p++)
        {
            const int64_t first = lists->begin[b] + num * p / parts, last = lists->begin[b] + num * (p + 1) / parts;
            d->tiles[(*num_tiles)++] = {b, (int)(last - first), first};
        }
    }
    const treecode_clusters* targets = treecode_targets(t);
    const size_t m = t->separate ? (size_t)targets->n : 0, boxes = t->separate ? 3 * (size_t)targets->num : 0;
    const size_t num = (size_t)lists->num;
    const struct
    {
        DeviceBuffer* buffer;
        const void*   from;
        size_t        bytes;
    } arrays[] = {
        {&d->tile, d->tiles, tiles * sizeof(TreecodeTile)},
        {&d->cluster, lists->cluster, num * sizeof(int)},
        {&d->approximated_start, lists->approximated_start, (num + 1) * sizeof(int64_t)},
        {&d->direct_start, lists->direct_start, (num + 1) * sizeof(int64_t)},
        {&d->approximated, lists->approximated, (size_t)lists->approximated_start[num] * sizeof(int)},
        {&d->direct, lists->direct, (size_t)lists->direct_start[num] * sizeof(int)},
        {&d->target_x[0], targets->x[0], m * sizeof(double)},
        {&d->target_x[1], targets->x[1], m * sizeof(double)},
        {&d->target_x[2], targets->x[2], m * sizeof(double)},
        {&d->target_low, targets->low, boxes * sizeof(double)},
        {&d->target_high, targets->high, boxes * sizeof(double)},
    };
    for (const auto& one : arrays)
    {
        FMM_TRY(treecode_upload(t, one.buffer, one.from, one.bytes));
    }
    return GMXFMM_OK;
}

template <class R, treecode_kernel kernel>
gmxfmm_status launch(treecode* t, const Arguments& a, int num_tiles, bool withField)
{
    const size_t  edge = (size_t)a.degree + 1, points = edge * edge * edge;
    const size_t  source = points > 4 * c_chunk ? points : 4 * c_chunk;
    const size_t  bytes  = (3 * TREECODE_MAX_EDGE + source) * sizeof(R);
    const auto    run    = withField ? batchSums<R, kernel, true> : batchSums<R, kernel, false>;
    Parameters<R> k;
    for (int i = 0; i < TREECODE_PARAMETERS; i++)
    {
        k.p[i] = R(t->parameter[i]);
    }
    FMM_CUDA(t, allow_shared(&t->device->allowed, run));
    run<<<(unsigned)num_tiles, c_threads, bytes, t->device->stream>>>(a, k);
    FMM_CUDA(t, cudaGetLastError());
    return GMXFMM_OK;
}

template <class R>
gmxfmm_status launchKernel(treecode* t, const Arguments& a, int num_tiles, bool withField)
{
#define LAUNCH_CASE(name, value, first, second, third)                                                                 \
    case treecode_##name:                                                                                              \
        return launch<R, treecode_##name>(t, a, num_tiles, withField);
    switch (t->options.kernel)
    {
        TREECODE_KERNELS(LAUNCH_CASE)
    default:
        return treecode_fail(t, GMXFMM_ERROR_OPTION, "kernel %d is not known", (int)t->options.kernel);
    }
#undef LAUNCH_CASE
}

} // namespace

gmxfmm_status treecode_device_sums(treecode* t, const treecode_lists* lists, gmxfmm_precision precision, int with_field)
{
    treecode_device* d         = t->device;
    int              num_tiles = 0;
    if (lists->num == 0)
    {
        return GMXFMM_OK;
    }
    DeviceScope scope(t->options.device_id);
    FMM_TRY(uploadLists(t, lists, &num_tiles));
    if (num_tiles == 0)
    {
        return GMXFMM_OK;
    }
    const TreecodeTree sources = {{d->x[0].as<double>(), d->x[1].as<double>(), d->x[2].as<double>()},
                                  d->low.as<double>(),
                                  d->high.as<double>(),
                                  d->begin.as<int64_t>(),
                                  d->end.as<int64_t>()};
    const TreecodeTree targets = {
        {d->target_x[0].as<double>(), d->target_x[1].as<double>(), d->target_x[2].as<double>()},
        d->target_low.as<double>(),
        d->target_high.as<double>(),
        nullptr,
        nullptr};
    const Arguments a = {sources,
                         t->separate ? targets : sources,
                         d->q.as<double>(),
                         d->charge.as<double>(),
                         d->tile.as<TreecodeTile>(),
                         d->cluster.as<int>(),
                         d->approximated.as<int>(),
                         d->direct.as<int>(),
                         d->approximated_start.as<int64_t>(),
                         d->direct_start.as<int64_t>(),
                         t->separate,
                         t->options.degree,
                         treecode_points(t->options.degree),
                         d->phi.as<double>(),
                         {d->slope[0].as<double>(), d->slope[1].as<double>(), d->slope[2].as<double>()}};
    FMM_TRY(precision == GMXFMM_DOUBLE ? launchKernel<double>(t, a, num_tiles, with_field != 0)
                                       : launchKernel<float>(t, a, num_tiles, with_field != 0));
    const size_t bytes = (size_t)t->num_targets * sizeof(double);
    FMM_CUDA(t, cudaMemcpyAsync(t->phi, d->phi.memory, bytes, cudaMemcpyDeviceToHost, d->stream));
    for (int i = 0; i < 3 && with_field; i++)
    {
        FMM_CUDA(t, cudaMemcpyAsync(t->slope[i], d->slope[i].memory, bytes, cudaMemcpyDeviceToHost, d->stream));
    }
    FMM_CUDA(t, cudaStreamSynchronize(d->stream));
    return GMXFMM_OK;
}
