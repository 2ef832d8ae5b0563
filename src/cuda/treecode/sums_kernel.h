/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sums: a block has a tile, two targets a thread in registers, and goes through a part of its batch's lists, with
 * sources, or the Chebyshev points along each dimension and the modified charges, in shared memory; no atomics, the
 * same bits in every run. What a pair costs is 1/r: in double precision that is 5 operations of the FP64 pipe behind an
 * estimate, beside one each for the distance and the sum; in single precision one of the special function units, which
 * do 16 a cycle. So the squares of differences are made once a row, and of all points along the last dimension once a
 * cluster, kept in registers, for which the number of points along an edge is a constant of the usual kernels.
 *
 * In single precision pairs are relative to the batch's centre and each cluster's sum is added in double. Particles
 * nearer than 1/64 of the batch's radius would lose digits by that: their distance is taken from positions in double
 * precision.
 *
 * Sources without charge are moved out of reach. Targets without charge that stand where a charge does have no finite
 * sum here: sites.cu mends that.
 */
#ifndef CUDA_TREECODE_SUMS_KERNEL_H
#define CUDA_TREECODE_SUMS_KERNEL_H

#include "cuda/treecode/device_kernels.h"
#include "cuda/treecode/sums.h"
#include "cuda/treecode/tiles.h"

namespace
{

enum
{
    c_targets = c_tileTargets,
    c_group   = 4,  /* sources that are taken together */
    c_chunk   = 256 /* sources in shared memory at a time, in groups */
};

/* Numbers of 16 bytes, which are loaded at once. */
template <class R>
struct Load;
template <>
struct Load<float>
{
    typedef float4 type;
};
template <>
struct Load<double>
{
    typedef double2 type;
};

/* A thread's targets, and what one cluster adds to them. */
template <class R>
struct Targets
{
    R x[3][c_targets], phi[c_targets], field[3][c_targets];
};

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

/* A pair at (dx, dy, dz) with the square r2. */
template <class R, treecode_kernel kernel, bool withField>
__device__ __forceinline__ void
interact(Targets<R>* a, int i, R dx, R dy, R dz, R r2, R q, bool other, const KernelParameters<R>& k)
{
    R g, slope;
    evaluate<kernel>(r2, k, &g, &slope);
    a->phi[i] += other ? g * q : R(0);
    if (withField)
    {
        const R f = other ? slope * q : R(0);
        a->field[0][i] -= f * dx;
        a->field[1][i] -= f * dy;
        a->field[2][i] -= f * dz;
    }
}

/* A group of sources, of which some are too near for single precision: their distances are those of positions in
 * double. */
template <treecode_kernel kernel, bool withField>
__device__ __forceinline__ void meetClosely(const SumsArguments&           a,
                                            Targets<float>*                mine,
                                            const float*                   sm_source,
                                            int                            source,
                                            int                            target,
                                            float                          limit,
                                            const KernelParameters<float>& k)
{
#pragma unroll 1
    for (int l = 0; l < c_group; l++)
    {
        const float *y = sm_source + 4 * l, q = y[3];
#pragma unroll
        for (int i = 0; i < c_targets; i++)
        {
            const float dx = mine->x[0][i] - y[0], dy = mine->x[1][i] - y[1], dz = mine->x[2][i] - y[2];
            const float r2 = dx * dx + dy * dy + dz * dz;
            if (r2 >= limit)
            {
                interact<float, kernel, withField>(mine, i, dx, dy, dz, r2, q, true, k);
            }
            else if (source + l != target + i || a.separate)
            {
                KernelParameters<double> exact;
                double                   g, slope, d[3], square = 0;
                const int t = min(target + i, a.targets.n - 1); /* a thread's last one may not be there */
                for (int p = 0; p < TREECODE_PARAMETERS; p++)
                {
                    exact.p[p] = a.parameter[p];
                }
                for (int c = 0; c < 3; c++)
                {
                    d[c] = a.targets.x[c][t] - a.sources.x[c][source + l];
                    square += d[c] * d[c];
                }
                evaluate<kernel>(square, exact, &g, &slope);
                mine->phi[i] += (float)(g * a.q[source + l]);
                for (int c = 0; c < 3 && withField; c++)
                {
                    mine->field[c][i] -= (float)(slope * a.q[source + l] * d[c]);
                }
            }
        }
    }
}

/* Sources in shared memory, those from number `source` of the tree on, padded to groups with some that are far and have
 * no charge. near: some may be targets, which do not interact with themselves, or nearer than single precision needs;
 * target: number of the thread's first target; limit: the square of the distance below which single precision loses
 * digits. */
template <class R, treecode_kernel kernel, bool withField, bool near>
__device__ __forceinline__ void meetSources(const SumsArguments&       a,
                                            Targets<R>*                mine,
                                            const R*                   sm_source,
                                            int                        count,
                                            int                        source,
                                            int                        target,
                                            R                          limit,
                                            const KernelParameters<R>& k)
{
    typedef typename Load<R>::type Vector;
    constexpr int                  lanes = sizeof(Vector) / sizeof(R);
#pragma unroll 1
    for (int j = 0; j < count; j += c_group)
    {
        R dx[c_group][c_targets], dy[c_group][c_targets], dz[c_group][c_targets], r2[c_group][c_targets], q[c_group];
        R least = R(1e30);
#pragma unroll
        for (int l = 0; l < c_group; l++)
        {
            Vector y[4 / lanes];
#pragma unroll
            for (int v = 0; v < 4 / lanes; v++)
            {
                y[v] = reinterpret_cast<const Vector*>(sm_source + 4 * (j + l))[v];
            }
            const R* place = reinterpret_cast<const R*>(y);
            q[l]           = place[3];
#pragma unroll
            for (int i = 0; i < c_targets; i++)
            {
                dx[l][i] = mine->x[0][i] - place[0];
                dy[l][i] = mine->x[1][i] - place[1];
                dz[l][i] = mine->x[2][i] - place[2];
                r2[l][i] = dx[l][i] * dx[l][i] + dy[l][i] * dy[l][i] + dz[l][i] * dz[l][i];
                least    = near ? min(least, r2[l][i]) : least;
            }
        }
        if constexpr (near && sizeof(R) == sizeof(float))
        {
            if (least < limit)
            {
                meetClosely<kernel, withField>(a, mine, sm_source + 4 * j, source + j, target, limit, k);
                continue;
            }
        }
#pragma unroll
        for (int l = 0; l < c_group; l++)
        {
#pragma unroll
            for (int i = 0; i < c_targets; i++)
            {
                interact<R, kernel, withField>(mine, i, dx[l][i], dy[l][i], dz[l][i], r2[l][i], q[l],
                                               !near || sizeof(R) == sizeof(float) || source + j + l != target + i, k);
            }
        }
    }
}

/* Numbers of a row of charges in shared memory, so that rows can be loaded in vectors. */
template <class R>
__device__ __forceinline__ int rowOf(int edge)
{
    constexpr int lanes = 16 / (int)sizeof(R);
    return (edge + lanes - 1) / lanes * lanes;
}

/* Keeps a value in its register: a compiler that computes it again where it is used spends an operation a pair. */
__device__ __forceinline__ void keep(float* x)
{
    asm("" : "+f"(*x));
}

__device__ __forceinline__ void keep(double* x)
{
    asm("" : "+d"(*x));
}

/* Potentials, of EDGE points along an edge. */
template <class R, treecode_kernel kernel, int EDGE>
__device__ __forceinline__ void
meetPoints(Targets<R>* a, const R* sm_point, const R* sm_charge, const KernelParameters<R>& k)
{
    typedef typename Load<R>::type Vector;
    constexpr int                  lanes = sizeof(Vector) / sizeof(R), vectors = (EDGE + lanes - 1) / lanes;
    R                              z2[EDGE][c_targets];
#pragma unroll
    for (int k3 = 0; k3 < EDGE; k3++)
    {
#pragma unroll
        for (int i = 0; i < c_targets; i++)
        {
            const R dz = a->x[2][i] - sm_point[2 * TREECODE_MAX_EDGE + k3];
            z2[k3][i]  = dz * dz;
            keep(&z2[k3][i]);
        }
    }
#pragma unroll 1
    for (int k1 = 0; k1 < EDGE; k1++)
    {
        R x2[c_targets];
#pragma unroll
        for (int i = 0; i < c_targets; i++)
        {
            const R dx = a->x[0][i] - sm_point[k1];
            x2[i]      = dx * dx;
        }
#pragma unroll 1
        for (int k2 = 0; k2 < EDGE; k2++, sm_charge += vectors * lanes)
        {
            R      plane[c_targets];
            Vector charges[vectors];
#pragma unroll
            for (int v = 0; v < vectors; v++)
            {
                charges[v] = reinterpret_cast<const Vector*>(sm_charge)[v];
            }
            const R* q = reinterpret_cast<const R*>(charges);
#pragma unroll
            for (int i = 0; i < c_targets; i++)
            {
                const R dy = a->x[1][i] - sm_point[TREECODE_MAX_EDGE + k2];
                plane[i]   = x2[i] + dy * dy;
            }
#pragma unroll
            for (int k3 = 0; k3 < EDGE; k3++)
            {
#pragma unroll
                for (int i = 0; i < c_targets; i++)
                {
                    R g, slope;
                    evaluateInTurn<kernel>(k3 * c_targets + i, plane[i] + z2[k3][i], k, &g, &slope);
                    a->phi[i] += g * q[k3];
                }
            }
        }
    }
}

/* Any number of points. */
template <class R, treecode_kernel kernel, bool withField>
__device__ __forceinline__ void
meetAnyPoints(Targets<R>* a, const R* sm_point, const R* sm_charge, int edge, const KernelParameters<R>& k)
{
    const int row = rowOf<R>(edge);
    for (int k1 = 0; k1 < edge; k1++)
    {
        for (int k2 = 0; k2 < edge; k2++, sm_charge += row)
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

/* Particles source .. source + count - 1 relative to the centre: x, y, z, q, those without charge far away; and some
 * such up to a group.
 * Whether one of this thread's is as near to the batch's box as limit, the square of a distance, says. */
template <class R>
__device__ __forceinline__ bool loadSources(
    const SumsArguments& a, int source, int count, const double* centre, const double* half, R limit, R* sm_source)
{
    const int padded = (count + c_group - 1) / c_group * c_group;
    bool      near   = false;
    for (int j = (int)threadIdx.x; j < padded; j += (int)blockDim.x)
    {
        const int s        = source + j;
        const R   q        = j < count ? R(a.q[s]) : R(0);
        R         distance = 0;
        for (int d = 0; d < 3; d++)
        {
            const R y   = q != 0 ? R(a.sources.x[d][s] - centre[d]) : R(8); /* the system is no longer than 1 */
            const R out = (y < 0 ? -y : y) - R(half[d]);
            distance += out > 0 ? out * out : R(0);
            sm_source[4 * j + d] = y;
        }
        sm_source[4 * j + 3] = q;
        near                 = near || distance <= limit;
    }
    return near;
}

/* The points of a cluster relative to the centre, along each dimension, and its charges in rows. */
template <class R, int EDGE>
__device__ __forceinline__ void
loadPoints(const SumsArguments& a, int cluster, const double* centre, R* sm_point, R* sm_charge)
{
    const int     edge = EDGE > 0 ? EDGE : a.degree + 1, size = edge * edge * edge, row = rowOf<R>(edge);
    const double* charge = a.charge + (size_t)cluster * size;
    for (int task = (int)threadIdx.x; task < 3 * edge; task += (int)blockDim.x)
    {
        const int d = task / edge, j = task - d * edge;
        double    other, half;
        a.sources.box(cluster, d, &other, &half);
        sm_point[d * TREECODE_MAX_EDGE + j] = R(other - centre[d] + half * a.points.s[j]);
    }
#pragma unroll 4
    for (int j = (int)threadIdx.x; j < size; j += (int)blockDim.x)
    {
        const int above                           = j / edge;
        sm_charge[above * row + j - above * edge] = R(charge[j]);
    }
}

template <class R>
__device__ __forceinline__ Targets<R>
loadTargets(const SumsArguments& a, const TreecodeTile& tile, int first, const double* centre, const double* half)
{
    Targets<R> mine = {};
    const int  edge = a.degree + 1;
    for (int i = 0; i < c_targets; i++)
    {
        const int target = tile.first + (first + i < tile.count ? first + i : 0);
        const int point  = a.lists.points ? target % (edge * edge * edge) : 0;
        const int k[3]   = {point / (edge * edge), point / edge % edge, point % edge};
        for (int d = 0; d < 3; d++)
        {
            mine.x[d][i] = a.lists.points ? R(half[d] * a.points.s[k[d]]) : R(a.targets.x[d][target] - centre[d]);
        }
    }
    return mine;
}

/* EDGE: points along an edge, or 0 for any number. */
template <class R, treecode_kernel kernel, bool withField, int EDGE>
__global__ void __launch_bounds__(c_mostThreads) tileSums(SumsArguments a, KernelParameters<R> k)
{
    extern __shared__ __align__(16) unsigned char sm_bytes[];
    R* const           sm_source = reinterpret_cast<R*>(sm_bytes); /* sources, or charges of points */
    const int          edge      = EDGE > 0 ? EDGE : a.degree + 1;
    R* const           sm_point  = sm_source + max(4 * c_chunk, edge * edge * rowOf<R>(edge));
    const TreecodeTile tile      = a.tile[blockIdx.x];
    const int          first = (int)threadIdx.x * c_targets, part = (int)blockIdx.y, parts = (int)gridDim.y;
    const bool         active = (int)(threadIdx.x / 32 * 32) * c_targets < tile.count; /* any target of the warp */
    double             centre[3], half[3], square = 0;
    for (int d = 0; d < 3; d++)
    {
        a.targets.box(a.lists.cluster[tile.batch], d, &centre[d], &half[d]);
        square += half[d] * half[d];
    }
    twice::fillPowers();
    Targets<R>    mine  = loadTargets<R>(a, tile, first, centre, half);
    const R       limit = a.lists.points ? R(0) : R(fmax(square / 4096, 1e-37));
    Sums          sums  = {};
    const int64_t d0 = a.lists.direct_start[tile.batch], num_direct = a.lists.direct_start[tile.batch + 1] - d0;
    for (int64_t l = d0 + num_direct * part / parts; l < d0 + num_direct * (part + 1) / parts; l++)
    {
        const int last = a.sources.end[a.lists.direct[l]];
        for (int from = a.sources.begin[a.lists.direct[l]]; from < last; from += c_chunk)
        {
            const int  count = min(last - from, (int)c_chunk);
            const bool own =
                !a.separate && !a.lists.points && from < tile.first + tile.count && tile.first < from + count;
            __syncthreads();
            const bool close = loadSources(a, from, count, centre, half, R(2) * limit, sm_source); /* not to miss one */
            const bool near  = __syncthreads_or(close && !a.lists.points && sizeof(R) == sizeof(float)) != 0 || own;
            if (active && near)
            {
                meetSources<R, kernel, withField, true>(a, &mine, sm_source, count, from, tile.first + first, limit, k);
            }
            else if (active)
            {
                meetSources<R, kernel, withField, false>(a, &mine, sm_source, count, from, tile.first + first, limit,
                                                         k);
            }
        }
        sums.take(&mine);
    }
    const int64_t a0         = a.lists.approximated_start[tile.batch];
    const int64_t num_points = a.lists.approximated_start[tile.batch + 1] - a0;
    for (int64_t l = a0 + num_points * part / parts; l < a0 + num_points * (part + 1) / parts; l++)
    {
        __syncthreads();
        loadPoints<R, EDGE>(a, a.lists.approximated[l], centre, sm_point, sm_source);
        __syncthreads();
        if (active)
        {
            if constexpr (EDGE > 0)
            {
                meetPoints<R, kernel, EDGE>(&mine, sm_point, sm_source, k);
            }
            else
            {
                meetAnyPoints<R, kernel, withField>(&mine, sm_point, sm_source, edge, k);
            }
        }
        sums.take(&mine);
    }
    for (int i = 0; i < c_targets && first + i < tile.count; i++)
    {
        const int64_t to = parts > 1 ? ((int64_t)part * gridDim.x + blockIdx.x) * blockDim.x * c_targets + first + i
                                     : tile.first + first + i;
        a.sum[0][to]     = a.adds ? a.sum[0][to] + sums.phi[i] : sums.phi[i];
        for (int d = 0; d < 3 && withField; d++)
        {
            a.sum[1 + d][to] = a.adds ? a.sum[1 + d][to] + sums.field[d][i] : sums.field[d][i];
        }
    }
}

template <class R, treecode_kernel kernel, bool withField, int EDGE>
gmxfmm_status launch(treecode* t, const DeviceLists* lists, const SumsArguments& a, cudaStream_t stream)
{
    const int           edge = a.degree + 1, lanes = 16 / (int)sizeof(R), row = (edge + lanes - 1) / lanes * lanes;
    const int           source = edge * edge * row > 4 * c_chunk ? edge * edge * row : 4 * c_chunk;
    const size_t        bytes  = ((size_t)source + 3 * TREECODE_MAX_EDGE) * sizeof(R);
    const auto          run    = tileSums<R, kernel, withField, EDGE>;
    KernelParameters<R> k;
    for (int i = 0; i < TREECODE_PARAMETERS; i++)
    {
        k.p[i] = R(a.parameter[i]);
    }
    FMM_CUDA(t, allow_shared(&t->device->allowed, run));
    run<<<dim3((unsigned)lists->num_tiles, (unsigned)lists->parts), (unsigned)lists->threads, bytes, stream>>>(a, k);
    FMM_CUDA(t, cudaGetLastError());
    return GMXFMM_OK;
}

/* Potentials of the kernels that users have, by the degrees that are of use: constants. */
template <class R, treecode_kernel kernel, bool withField>
gmxfmm_status launchDegree(treecode* t, const DeviceLists* lists, const SumsArguments& a, cudaStream_t stream)
{
    if constexpr (!withField && (kernel == treecode_coulomb || kernel == treecode_yukawa))
    {
        switch (a.degree)
        {
#define SUMS_CASE(degree)                                                                                              \
case degree:                                                                                                           \
    return launch<R, kernel, withField, degree + 1>(t, lists, a, stream);
            SUMS_CASE(3)
            SUMS_CASE(4)
            SUMS_CASE(5)
            SUMS_CASE(6)
            SUMS_CASE(7)
            SUMS_CASE(8)
            SUMS_CASE(9)
            SUMS_CASE(10)
#undef SUMS_CASE
        default:
            break;
        }
    }
    return launch<R, kernel, withField, 0>(t, lists, a, stream);
}

template <class R>
gmxfmm_status
launchKernel(treecode* t, const DeviceLists* lists, const SumsArguments& a, bool withField, cudaStream_t stream)
{
#define SUMS_CASE(name, value, first, second, third)                                                                   \
case treecode_##name:                                                                                                  \
    return withField ? launchDegree<R, treecode_##name, true>(t, lists, a, stream)                                     \
                     : launchDegree<R, treecode_##name, false>(t, lists, a, stream);
    switch (t->options.kernel)
    {
        TREECODE_KERNELS(SUMS_CASE)
    default:
        return treecode_fail(t, GMXFMM_ERROR_OPTION, "kernel %d is not known", (int)t->options.kernel);
    }
#undef SUMS_CASE
}

} // namespace

#endif
