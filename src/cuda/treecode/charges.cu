/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Modified charges, as in src/fmm/treecode/charges.c: a block a leaf, whose threads have the Chebyshev points among
 * them and meet its particles in their order; then a block a parent, level by level. The same bits in every run.
 */
#include "cuda/treecode/device.h"

namespace
{

enum
{
    c_threads   = 128,
    c_particles = 32 /* whose Lagrange polynomials are in shared memory at a time */
};

__global__ void __launch_bounds__(c_threads)
    leafCharges(TreecodeTree tree, const double* q, const int* leaf, int degree, TreecodePoints points, double* charge)
{
    extern __shared__ double sm_lagrange[]; /* [3][c_particles][edge], the last times the charge; then the sums */
    const int                edge = degree + 1, size = edge * edge * edge, cluster = leaf[blockIdx.x];
    double*                  sm_sum = sm_lagrange + 3 * c_particles * edge;
    const int64_t            begin = tree.begin[cluster], end = tree.end[cluster];
    for (int k = threadIdx.x; k < size; k += c_threads)
    {
        sm_sum[k] = 0;
    }
    for (int64_t first = begin; first < end; first += c_particles)
    {
        const int count = end - first < c_particles ? (int)(end - first) : c_particles;
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

/* out[k, ab] = sum_j l[k][j] in[ab, j] */
__device__ void contract(int edge, const double* sm_l, const double* in, double* out)
{
    const int plane = edge * edge;
    for (int o = threadIdx.x; o < plane * edge; o += c_threads)
    {
        const int k = o / plane, ab = o % plane;
        double    sum = 0;
        for (int j = 0; j < edge; j++)
        {
            sum += sm_l[k * edge + j] * in[ab * edge + j];
        }
        out[o] = sum;
    }
}

__global__ void __launch_bounds__(c_threads) parentCharges(TreecodeTree   tree,
                                                           const int*     child,
                                                           const int*     num_children,
                                                           int            first,
                                                           int            degree,
                                                           TreecodePoints points,
                                                           double*        charge)
{
    extern __shared__ double sm_memory[];
    const int                edge = degree + 1, plane = edge * edge, size = plane * edge, parent = first + blockIdx.x;
    double *                 sm_l = sm_memory, *sm_one = sm_l + 3 * plane, *sm_other = sm_one + size;
    double*                  sum = charge + (size_t)parent * size;
    for (int c = 0; c < num_children[parent]; c++)
    {
        const int part = child[parent] + c;
        __syncthreads();
        for (int task = threadIdx.x; task < 3 * edge; task += c_threads)
        {
            const int d = task / edge, j = task % edge;
            double    centre, half, part_centre, part_half, l[TREECODE_MAX_EDGE];
            tree.box(parent, d, &centre, &half);
            tree.box(part, d, &part_centre, &part_half);
            chebyshev_lagrange(degree, points.s, chebyshev_place(part_centre + part_half * points.s[j], centre, half),
                               l);
            for (int k = 0; k < edge; k++)
            {
                sm_l[d * plane + k * edge + j] = l[k];
            }
        }
        __syncthreads();
        contract(edge, sm_l + 2 * plane, charge + (size_t)part * size, sm_one);
        __syncthreads();
        contract(edge, sm_l + plane, sm_one, sm_other);
        __syncthreads();
        contract(edge, sm_l, sm_other, sm_one);
        for (int o = threadIdx.x; o < size; o += c_threads) /* those that this thread has made */
        {
            sum[o] = (c > 0 ? sum[o] : 0) + sm_one[o];
        }
    }
}

gmxfmm_status uploadSources(treecode* t)
{
    treecode_device*         d = t->device;
    const treecode_clusters* s = &t->sources;
    const size_t             n = (size_t)t->n, num = (size_t)s->num;
    const struct
    {
        DeviceBuffer* buffer;
        const void*   from;
        size_t        bytes;
    } arrays[] = {
        {&d->x[0], s->x[0], n * sizeof(double)},
        {&d->x[1], s->x[1], n * sizeof(double)},
        {&d->x[2], s->x[2], n * sizeof(double)},
        {&d->q, t->sorted_q, n * sizeof(double)},
        {&d->low, s->low, 3 * num * sizeof(double)},
        {&d->high, s->high, 3 * num * sizeof(double)},
        {&d->begin, s->begin, num * sizeof(int64_t)},
        {&d->end, s->end, num * sizeof(int64_t)},
        {&d->child, s->child, num * sizeof(int)},
        {&d->num_children, s->num_children, num * sizeof(int)},
        {&d->leaf, s->leaf, (size_t)s->num_leaves * sizeof(int)},
    };
    for (const auto& one : arrays)
    {
        FMM_TRY(treecode_upload(t, one.buffer, one.from, one.bytes));
    }
    return GMXFMM_OK;
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

gmxfmm_status treecode_device_charges(treecode* t)
{
    treecode_device*         d      = t->device;
    const treecode_clusters* s      = &t->sources;
    const int                degree = t->options.degree, edge = degree + 1;
    DeviceScope              scope(t->options.device_id);
    FMM_TRY(uploadSources(t));
    if (s->num == 0)
    {
        return GMXFMM_OK;
    }
    const TreecodeTree   tree   = {{d->x[0].as<double>(), d->x[1].as<double>(), d->x[2].as<double>()},
                                   d->low.as<double>(),
                                   d->high.as<double>(),
                                   d->begin.as<int64_t>(),
                                   d->end.as<int64_t>()};
    const TreecodePoints points = treecode_points(degree);
    const size_t         leaf = leafShared(edge), parent = parentShared(edge);
    FMM_CUDA(t, allow_shared(&d->allowed, leafCharges));
    FMM_CUDA(t, allow_shared(&d->allowed, parentCharges));
    leafCharges<<<(unsigned)s->num_leaves, c_threads, leaf, d->stream>>>(tree, d->q.as<double>(), d->leaf.as<int>(),
                                                                         degree, points, d->charge.as<double>());
    FMM_CUDA(t, cudaGetLastError());
    for (int l = s->num_levels - 2; l >= 0; l--)
    {
        /* leaves of the level have no children, and keep what they have */
        parentCharges<<<(unsigned)(s->level[l + 1] - s->level[l]), c_threads, parent, d->stream>>>(
            tree, d->child.as<int>(), d->num_children.as<int>(), s->level[l], degree, points, d->charge.as<double>());
        FMM_CUDA(t, cudaGetLastError());
    }
    FMM_CUDA(t, cudaStreamSynchronize(d->stream));
    return GMXFMM_OK;
}
