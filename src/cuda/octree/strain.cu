/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Strain derivative of the energies of M2L and L2L, THEORY (35), as in src/fmm/cpu (m2l.c, l2l.c). Here forces are
 * computed for each pair of cells again: steps with a virial are rare, and the locals from M2L lack degree p + 1 and do
 * not tell the displacements that they came along.
 *
 * Each lane has a target, or a parent. The coefficients of a translation are divided among the warps of a block,
 * translations among blocks along y. Each block writes a row of six sums, and one block adds up the rows, so that the
 * same input gives the same bits.
 */
#define HARM_T double
#define HARM_R double
#include "cuda/octree/strain.h"

#include "cuda/octree/m2l_element.h"
#include "cuda/runtime/sums.h"
#include "fmm/math/strain.h"

enum
{
    c_strainThreads = 256,
    c_strainWarps   = c_strainThreads / 32,
    c_strainRows    = 2048, /* blocks that fill the device */
    c_strainSplits  = 64    /* most blocks for one tile of cells */
};

static int tiles_of(int num)
{
    return (num + 31) / 32;
}

static int splits_of(int tiles)
{
    const int splits = c_strainRows / tiles;
    return splits < 1 ? 1 : splits < c_strainSplits ? splits : c_strainSplits;
}

size_t fmm_octree_strain_rows(int num)
{
    const int tiles = tiles_of(num);
    return static_cast<size_t>(tiles > c_strainRows ? tiles : c_strainRows);
}

void fmm_octree_strain_table(
    int p, int num_vectors, const int* vector, const int* order_of, const double* cell, double* table)
{
    double* child   = table + strain_child_at(num_vectors);
    double* upsilon = table + strain_upsilon_at(num_vectors);
    double  inverse[(FMM_OCTREE_MAX_ROTATION_ORDER + 1) * (FMM_OCTREE_MAX_ROTATION_ORDER + 1)];
    harm_fill_inverse(p, inverse);
    for (int v = 0; v < num_vectors; v++, table += c_strainVector)
    {
        const int* k = vector + 3 * v;
        for (int d = 0; d < 3; d++)
        {
            table[d] = k[0] * cell[d] + k[1] * cell[3 + d] + k[2] * cell[6 + d];
        }
        /* lists also have the opposite translation, with the opposite force: only one of the two is computed, twice */
        const bool is_first = k[0] > 0 || (k[0] == 0 && (k[1] > 0 || (k[1] == 0 && k[2] > 0)));
        table[3]            = is_first ? 2 : 0;
        table[4]            = order_of[v];
    }
    for (int octant = 0; octant < 8; octant++, child += c_strainVector, upsilon += harm_size(p))
    {
        for (int d = 0; d < 3; d++)
        {
            child[d] = 0;
            for (int e = 0; e < 3; e++)
            {
                child[d] += (octant >> (2 - e) & 1 ? 0.5 : -0.5) * cell[3 * e + d];
            }
        }
        child[3] = 1;
        for (int i = 0; i < harm_size(p); i++)
        {
            upsilon[i] = 0;
        }
        harm_add_upsilon(p, child[0], child[1], child[2], 1.0, inverse, upsilon);
    }
}

/* Writes the block's sums to its row. */
static __device__ void write_row(const double (&w)[6], double* rows)
{
    double* row = rows + 6 * (static_cast<size_t>(blockIdx.y) * gridDim.x + blockIdx.x);
    for (int i = 0; i < 6; i++)
    {
        const double sum = block_sum<c_strainThreads>(w[i]);
        if (threadIdx.x == 0)
        {
            row[i] = sum;
        }
    }
}

template <class R>
__global__ void __launch_bounds__(c_strainThreads)
    m2l_strain(M2lElement<R> a, const double* __restrict__ displacement, const double* scale, double* rows)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, target = static_cast<int>(blockIdx.x) * 32 + lane;
    double    w[6] = {0};
    if (target < a.lists.num)
    {
        const int slab = slab_of(a.lists, target);
        for (int t = static_cast<int>(blockIdx.y); t < a.num_list[slab]; t += static_cast<int>(gridDim.y))
        {
            const OctreeTranslation x = a.list[slab][t];
            const double*           r = displacement + static_cast<size_t>(x.vector) * c_strainVector;
            if (r[3] != 0)
            {
                const int source = source_of(a.lists, target, x);
                if (source < a.lists.num)
                {
                    R force[3] = {0, 0, 0};
                    strain_add_m2l_force(a.p, static_cast<int>(r[4]),
                                         a.theta + static_cast<size_t>(x.vector) * a.theta_size, a.multipole + source,
                                         a.multipole + target, a.lists.stride, warp, static_cast<int>(c_strainWarps),
                                         force);
                    const double factor    = -0.5 * r[3] * (scale != NULL ? scale[target] : 1.0);
                    const double pulled[3] = {factor * static_cast<double>(force[0]),
                                              factor * static_cast<double>(force[1]),
                                              factor * static_cast<double>(force[2])};
                    fmm_add_symmetric(1, r, pulled, w);
                }
            }
        }
    }
    write_row(w, rows);
}

template <class R>
struct L2lStrainArguments
{
    int           p, num, empty; /* parents; the empty child */
    const int*    child;
    size_t        upper_stride, lower_stride;
    const R *     local, *multipole;   /* of parents, of children */
    const double *children, *upsilons; /* by octant */
    const double* scale;               /* of children, or NULL */
};

template <class R>
__global__ void __launch_bounds__(c_strainThreads) l2l_strain(L2lStrainArguments<R> a, double* rows)
{
    const int lane = threadIdx.x % 32, octant = threadIdx.x / 32, parent = static_cast<int>(blockIdx.x) * 32 + lane;
    double    w[6]  = {0};
    const int child = parent < a.num ? a.child[8 * static_cast<size_t>(parent) + octant] : a.empty;
    if (child != a.empty)
    {
        double force[3] = {0, 0, 0};
        strain_add_l2l_force(a.p, a.upsilons + octant * harm_size(a.p), a.local + parent, a.upper_stride,
                             a.multipole + child, a.lower_stride, static_cast<int>(blockIdx.y),
                             static_cast<int>(gridDim.y), force);
        fmm_add_symmetric(a.scale != NULL ? -a.scale[child] : -1.0, a.children + octant * c_strainVector, force, w);
    }
    write_row(w, rows);
}

/* Adds scale times the sum of the rows to strain6. */
__global__ void __launch_bounds__(c_strainThreads)
    add_rows(const double* rows, int num_rows, double scale, double* strain6)
{
    for (int i = 0; i < 6; i++)
    {
        double part = 0;
        for (int row = threadIdx.x; row < num_rows; row += c_strainThreads)
        {
            part += rows[6 * static_cast<size_t>(row) + i];
        }
        const double sum = block_sum<c_strainThreads>(part);
        if (threadIdx.x == 0)
        {
            strain6[i] += scale * sum;
        }
    }
}

static gmxfmm_status add_up(fmm_octree_operators* ops, dim3 grid, double scale, double* strain6, cudaStream_t stream)
{
    FMM_CUDA(ops, cudaGetLastError());
    add_rows<<<1, c_strainThreads, 0, stream>>>(ops->strain_rows.as<double>(), static_cast<int>(grid.x * grid.y), scale,
                                                strain6);
    FMM_CUDA(ops, cudaGetLastError());
    return GMXFMM_OK;
}

static dim3 grid_of(int num)
{
    const int tiles = tiles_of(num);
    return dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(splits_of(tiles)));
}

template <class R>
static gmxfmm_status launch_m2l(fmm_octree_operators*   ops,
                                const fmm_octree_level* upper,
                                const fmm_octree_level* lower,
                                double                  scale,
                                double*                 strain6,
                                cudaStream_t            stream)
{
    if (lower->num == 0)
    {
        return GMXFMM_OK;
    }
    const dim3 grid = grid_of(lower->num);
    m2l_strain<R><<<grid, c_strainThreads, 0, stream>>>(m2l_element<R>(ops, upper, lower),
                                                        octree_table<double>(ops, ops->strain_at), lower->scale,
                                                        ops->strain_rows.as<double>());
    return add_up(ops, grid, scale, strain6, stream);
}

template <class R>
static gmxfmm_status launch_l2l(fmm_octree_operators*   ops,
                                const fmm_octree_level* upper,
                                const fmm_octree_level* lower,
                                double                  scale,
                                double*                 strain6,
                                cudaStream_t            stream)
{
    if (upper->num == 0)
    {
        return GMXFMM_OK;
    }
    const double*         table = octree_table<double>(ops, ops->strain_at);
    const dim3            grid  = grid_of(upper->num);
    L2lStrainArguments<R> a;
    a.p            = ops->order;
    a.num          = upper->num;
    a.empty        = lower->num;
    a.child        = upper->child;
    a.upper_stride = upper->stride;
    a.lower_stride = lower->stride;
    a.local        = static_cast<const R*>(upper->local);
    a.multipole    = static_cast<const R*>(lower->multipole);
    a.children     = table + strain_child_at(ops->num_vectors);
    a.upsilons     = table + strain_upsilon_at(ops->num_vectors);
    a.scale        = lower->scale;
    l2l_strain<R><<<grid, c_strainThreads, 0, stream>>>(a, ops->strain_rows.as<double>());
    return add_up(ops, grid, scale, strain6, stream);
}

gmxfmm_status fmm_octree_m2l_strain(fmm_octree_operators*   ops,
                                    const fmm_octree_level* upper,
                                    const fmm_octree_level* lower,
                                    double                  scale,
                                    double*                 strain6,
                                    void*                   stream)
{
    const cudaStream_t s = static_cast<cudaStream_t>(stream);
    return ops->is_double ? launch_m2l<double>(ops, upper, lower, scale, strain6, s)
                          : launch_m2l<float>(ops, upper, lower, scale, strain6, s);
}

gmxfmm_status fmm_octree_l2l_strain(fmm_octree_operators*   ops,
                                    const fmm_octree_level* upper,
                                    const fmm_octree_level* lower,
                                    double                  scale,
                                    double*                 strain6,
                                    void*                   stream)
{
    const cudaStream_t s = static_cast<cudaStream_t>(stream);
    return ops->is_double ? launch_l2l<double>(ops, upper, lower, scale, strain6, s)
                          : launch_l2l<float>(ops, upper, lower, scale, strain6, s);
}
