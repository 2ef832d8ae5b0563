/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The downward pass of dual traversal, as in src/fmm/treecode/downward.c: from points to those of children, level by
 * level, a block a child; then from points to particles, a block a leaf, whose polynomial is that of the nearest
 * cluster, itself or above, that has points. Fields are the polynomial's derivative.
 */
#include "cuda/treecode/stages.h"

#include <algorithm>

#include "cuda/treecode/contract.h"
#include "cuda/treecode/tiles.h"

namespace
{

enum
{
    c_threads   = 128,
    c_particles = 64 /* threads of a block of particles, each with its Lagrange polynomials in shared memory */
};

__global__ void __launch_bounds__(c_threads)
    toChildren(TreecodeTree tree, int first, int degree, TreecodePoints points, double* point)
{
    extern __shared__ double sm_memory[];
    const int edge = degree + 1, plane = edge * edge, size = plane * edge, child = first + (int)blockIdx.x;
    const int parent = tree.parent[child];
    double *  sm_l = sm_memory, *sm_one = sm_l + 3 * plane, *sm_other = sm_one + size;
    if (tree.count(child) <= size)
    {
        return; /* has no points */
    }
    lagrangeAtChild<c_threads>(tree, parent, child, degree, points, true, sm_l);
    __syncthreads();
    contractAll<c_threads>(edge, sm_l, point + (size_t)parent * size, sm_one, sm_other);
    for (int o = (int)threadIdx.x; o < size; o += c_threads) /* those that this thread has made */
    {
        point[(size_t)child * size + o] += sm_one[o];
    }
}

/* sm_l: [3][edge][c_particles], with a field [6]: and derivatives behind. */
template <bool withField>
__device__ void evaluate(int edge, const double* sm_point, const double* sm_l, double* phi, double gradient[3])
{
    const int     stride = edge * c_particles;
    const double* own    = sm_l + threadIdx.x;
    double        sum    = 0;
    gradient[0] = gradient[1] = gradient[2] = 0;
    for (int k1 = 0; k1 < edge; k1++)
    {
        double plane = 0, plane_y = 0, plane_z = 0;
        for (int k2 = 0; k2 < edge; k2++, sm_point += edge)
        {
            double row = 0, row_z = 0;
#pragma unroll 4
            for (int k3 = 0; k3 < edge; k3++)
            {
                row += sm_point[k3] * own[2 * stride + k3 * c_particles];
                if (withField)
                {
                    row_z += sm_point[k3] * own[5 * stride + k3 * c_particles];
                }
            }
            plane += row * own[stride + k2 * c_particles];
            if (withField)
            {
                plane_y += row * own[4 * stride + k2 * c_particles];
                plane_z += row_z * own[stride + k2 * c_particles];
            }
        }
        sum += plane * own[k1 * c_particles];
        if (withField)
        {
            gradient[0] += plane * own[3 * stride + k1 * c_particles];
            gradient[1] += plane_y * own[k1 * c_particles];
            gradient[2] += plane_z * own[k1 * c_particles];
        }
    }
    *phi = sum;
}

template <bool withField>
__global__ void __launch_bounds__(c_particles) toParticles(TreecodeTree   tree,
                                                           int            degree,
                                                           TreecodePoints points,
                                                           const double*  point,
                                                           double*        phi,
                                                           double*        slope0,
                                                           double*        slope1,
                                                           double*        slope2)
{
    extern __shared__ double sm_memory[];
    const int                edge = degree + 1, size = edge * edge * edge, leaf = tree.leaf[blockIdx.x];
    double *                 sm_point = sm_memory, *sm_d = sm_point + size, *sm_l = sm_d + edge * edge;
    double* const            slope[3] = {slope0, slope1, slope2};
    int                      cluster  = leaf;
    while (cluster >= 0 && tree.count(cluster) <= size)
    {
        cluster = tree.parent[cluster];
    }
    if (cluster < 0)
    {
        return;
    }
    for (int k = (int)threadIdx.x; k < size; k += c_particles)
    {
        sm_point[k] = point[(size_t)cluster * size + k];
    }
    if (withField)
    {
        for (int j = (int)threadIdx.x; j < edge; j += c_particles)
        {
            chebyshev_differentiate(degree, points.s, j, sm_d + j * edge);
        }
    }
    __syncthreads();
    for (int i = tree.begin[leaf] + (int)threadIdx.x; i < tree.end[leaf]; i += c_particles)
    {
        double one, gradient[3], scale[3];
        for (int d = 0; d < 3; d++)
        {
            double  centre, half, l[TREECODE_MAX_EDGE];
            double* own = sm_l + d * edge * c_particles + threadIdx.x;
            tree.box(cluster, d, &centre, &half);
            scale[d] = half > 0 ? 1 / half : 0;
            chebyshev_lagrange(degree, points.s, chebyshev_place(tree.x[d][i], centre, half), l);
            for (int k = 0; k < edge; k++)
            {
                own[k * c_particles] = l[k];
            }
            for (int k = 0; k < edge && withField; k++)
            {
                double derivative = 0; /* a polynomial itself, known at the points */
                for (int j = 0; j < edge; j++)
                {
                    derivative += l[j] * sm_d[j * edge + k];
                }
                own[(3 * edge + k) * c_particles] = derivative;
            }
        }
        evaluate<withField>(edge, sm_point, sm_l, &one, gradient); /* a thread reads what it wrote */
        phi[i] += one;
        for (int d = 0; d < 3 && withField; d++)
        {
            slope[d][i] -= gradient[d] * scale[d];
        }
    }
}

size_t particleShared(int degree)
{
    const size_t edge = (size_t)degree + 1;
    return (treecode_cube(degree) + edge * edge + 6 * edge * c_particles) * sizeof(double);
}

size_t childShared(int degree)
{
    const size_t edge = (size_t)degree + 1;
    return (3 * edge * edge + 2 * treecode_cube(degree)) * sizeof(double);
}

} // namespace

size_t treecode_device_downward_shared(int degree)
{
    return std::max(particleShared(degree), childShared(degree));
}

gmxfmm_status treecode_device_downward(treecode* t, int with_field, cudaStream_t stream)
{
    treecode_device*      d      = t->device;
    const DeviceClusters* tree   = treecode_device_targets(t);
    const int             degree = t->options.degree;
    const TreecodePoints  points = treecode_points(degree);
    const size_t          shared = particleShared(degree);
    const auto            last   = with_field ? toParticles<true> : toParticles<false>;
    if (tree->num == 0)
    {
        return GMXFMM_OK;
    }
    FMM_CUDA(t, allow_shared(&d->allowed, toChildren));
    FMM_CUDA(t, allow_shared(&d->allowed, last));
    for (size_t l = 1; l + 1 < tree->level.size(); l++)
    {
        toChildren<<<(unsigned)(tree->level[l + 1] - tree->level[l]), c_threads, childShared(degree), stream>>>(
            tree->view(), tree->level[l], degree, points, d->point.as<double>());
        FMM_CUDA(t, cudaGetLastError());
    }
    last<<<(unsigned)tree->num_leaves, c_particles, shared, stream>>>(
        tree->view(), degree, points, d->point.as<double>(), d->phi.as<double>(), d->slope[0].as<double>(),
        d->slope[1].as<double>(), d->slope[2].as<double>());
    FMM_CUDA(t, cudaGetLastError());
    return GMXFMM_OK;
}
