/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Modified charges, as in src/fmm/treecode/charges.c: a block a leaf, whose threads have the Chebyshev points among
 * them and take its particles in their order; then a block a parent, level by level. The same bits in every run.
 */
#include "cuda/treecode/stages.h"

#include "cuda/treecode/contract.h"

namespace
{

enum
{
    c_threads   = 128,
    c_particles = 32 /* whose Lagrange polynomials are in shared memory at a time */
};

__global__ void __launch_bounds__(c_threads)
    leafCharges(TreecodeTree tree, const double* q, int degree, TreecodePoints points, double* charge)
{
    extern __shared__ double sm_lagrange[]; /* [3][c_particles][edge], the last times the charge; then the sums */
    const int                edge = degree + 1, size = edge * edge * edge, cluster = tree.leaf[blockIdx.x];
    double*                  sm_sum = sm_lagrange + 3 * c_particles * edge;
    const int                begin = tree.begin[cluster], end = tree.end[cluster];
    for (int k = threadIdx.x; k < size; k += c_threads)
    {
        sm_sum[k] = 0;
    }
    for (int first = begin; first < end; first += c_particles)
    {
        const int count = end - first < c_particles ? end - first : c_particles;
        __syncthreads();
        for (int task = threadIdx.x; task < 3 * count; task += c_threads)
        {
            const int i = task / 3, d = task % 3;
            double    centre, half, l[TREECODE_MAX_EDGE];
            tree.box(cluster, d, &centre, &half);
            chebyshev_lagrange(degree, points.s, chebyshev_place(tree.x[d][first + i], centre, half), l);
            for (int k = 0; k < edge; k++)
            {
                sm_lagrange[(d * c_particles + i) * edge + k] = d == 2 ? l[k] * q[first + i] : l[k];
            }
        }
        __syncthreads();
        for (int k = threadIdx.x; k < size; k += c_threads)
        {
            const double* l1  = sm_lagrange + k / (edge * edge);
            const double* l2  = sm_lagrange + c_particles * edge + k / edge % edge;
            const double* l3  = sm_lagrange + 2 * c_particles * edge + k % edge;
            double        sum = sm_sum[k];
            for (int i = 0; i < count; i++)
            {
                sum += l1[i * edge] * l2[i * edge] * l3[i * edge];
            }
            sm_sum[k] = sum;
        }
    }
    for (int k = threadIdx.x; k < size; k += c_threads) /* those that this thread has summed */
    {
        charge[(size_t)cluster * size + k] = sm_sum[k];
    }
}

/* Also the box of the parent, around those of its children. */
__global__ void __launch_bounds__(c_threads)
    parentCharges(TreecodeTree tree, int first, int degree, TreecodePoints points, double* charge)
{
    extern __shared__ double sm_memory[];
    const int edge = degree + 1, plane = edge * edge, size = plane * edge, parent = first + (int)blockIdx.x;
    const int child = tree.child[parent], num_children = tree.num_children[parent];
    double *  sm_l = sm_memory, *sm_one = sm_l + 3 * plane, *sm_other = sm_one + size;
    double*   sum = charge + (size_t)parent * size;
    if (num_children == 0)
    {
        return; /* a leaf has its own */
    }
    if (threadIdx.x < 3)
    {
        const size_t d   = threadIdx.x;
        double       low = tree.low[3 * (size_t)child + d], high = tree.high[3 * (size_t)child + d];
        for (int c = child + 1; c < child + num_children; c++)
        {
            low  = fmin(low, tree.low[3 * (size_t)c + d]);
            high = fmax(high, tree.high[3 * (size_t)c + d]);
        }
        tree.low[3 * (size_t)parent + d]  = low;
        tree.high[3 * (size_t)parent + d] = high;
    }
    for (int c = 0; c < num_children; c++)
    {
        const int part = child + c;
        __syncthreads();
        lagrangeAtChild<c_threads>(tree, parent, part, degree, points, false, sm_l);
        __syncthreads();
        contractAll<c_threads>(edge, sm_l, charge + (size_t)part * size, sm_one, sm_other);
        for (int o = (int)threadIdx.x; o < size; o += c_threads) /* those that this thread has made */
        {
            sum[o] = (c > 0 ? sum[o] : 0) + sm_one[o];
        }
    }
}

size_t leafShared(int edge)
{
    return (size_t)(3 * c_particles * edge + edge * edge * edge) * sizeof(double);
}

size_t parentShared(int edge)
{
    return (size_t)(3 * edge * edge + 2 * edge * edge * edge) * sizeof(double);
}

} // namespace

size_t treecode_device_charges_shared(int degree)
{
    const size_t leaf = leafShared(degree + 1), parent = parentShared(degree + 1);
    return leaf > parent ? leaf : parent;
}

gmxfmm_status treecode_device_charges(treecode* t, cudaStream_t stream)
{
    treecode_device*      d      = t->device;
    const DeviceClusters* tree   = &d->sources;
    const int             degree = t->options.degree, edge = degree + 1;
    const TreecodePoints  points = treecode_points(degree);
    if (tree->num == 0)
    {
        return GMXFMM_OK;
    }
    FMM_CUDA(t, allow_shared(&d->allowed, leafCharges));
    FMM_CUDA(t, allow_shared(&d->allowed, parentCharges));
    leafCharges<<<(unsigned)tree->num_leaves, c_threads, leafShared(edge), stream>>>(
        tree->view(), d->sorted_q.as<double>(), degree, points, d->charge.as<double>());
    FMM_CUDA(t, cudaGetLastError());
    for (size_t l = tree->level.size() - 2; l-- > 0;)
    {
        parentCharges<<<(unsigned)(tree->level[l + 1] - tree->level[l]), c_threads, parentShared(edge), stream>>>(
            tree->view(), tree->level[l], degree, points, d->charge.as<double>());
        FMM_CUDA(t, cudaGetLastError());
    }
    return GMXFMM_OK;
}
