/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tables of the octree's operators for the device: creation, contents for a shape of the cell, memory, destruction. */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "cuda/octree/state.h"
#include "cuda/octree/sweep.h"
#include "cuda/octree/strain.h"

#define FOLD_T double
#define FOLD_R double
#include "fmm/math/fold.h"
#include "fmm/math/rotation.h"
#include "fmm/math/theta.h"

extern "C" void fmm_shift_tables_d(int p, const double* s, double* up, double* down);

namespace
{

template <class R>
void store(const double* from, size_t count, R* to)
{
    for (size_t i = 0; i < count; i++)
    {
        to[i] = static_cast<R>(from[i]);
    }
}

void displacement(const fmm_octree_operators* ops, const double* cell, int v, double* r)
{
    const int* k = ops->vector + 3 * v;
    for (int d = 0; d < 3; d++)
    {
        r[d] = k[0] * cell[d] + k[1] * cell[3 + d] + k[2] * cell[6 + d];
    }
}

/* cos and sin of m a, m = 1..p. */
void powers(int p, double c, double s, double* out)
{
    double re = 1, im = 0;
    for (int m = 1; m <= p; m++)
    {
        const double t = re * c - im * s;
        im             = re * s + im * c;
        re             = t;
        out[2 * m - 2] = re;
        out[2 * m - 1] = im;
    }
}

/* e^{i phi} of a plane, in the direction of its first displacement, not the opposite one. */
void plane_direction(const fmm_octree_operators* ops, const double* cell, int plane, double* e)
{
    double r[3];
    displacement(ops, cell, ops->plane_vector[plane], r);
    const double rho = std::hypot(r[0], r[1]);
    e[0]             = r[0] / rho;
    e[1]             = r[1] / rho;
}

void direction_table(const fmm_octree_operators* ops, const double* cell, int v, double* out)
{
    const int p = ops->order;
    double    r[3], e[2];
    displacement(ops, cell, v, r);
    plane_direction(ops, cell, ops->plane_of[v], e);
    const double length = std::sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
    powers(p, r[2] / length, (r[0] * e[0] + r[1] * e[1]) / length, out);
    double w = 1;
    for (int n = 0; n <= p; n++)
    {
        out[2 * p + n]     = w;          /* n!/r^n */
        out[3 * p + 1 + n] = w / length; /* n!/r^{n+1} */
        w *= (n + 1) / length;
    }
}

void folded_table(int p, const double* theta, double* out)
{
    for (int m = 0; m <= p; m++)
    {
        for (int l = 0; l <= p; l++)
        {
            double* block[4];
            for (int i = 0; i < 4; i++, out += folded_stride(p))
            {
                block[i] = out;
            }
            fold_m2l(2 * p + 1, m, l, 2 * p - m - l + 1, theta, block);
        }
    }
}

template <class R>
void fill_shape(fmm_octree_operators* ops, const double* cell)
{
    const int           p = ops->order;
    char*               h = static_cast<char*>(ops->host_shape);
    std::vector<double> theta(ops->theta_size), folded(ops->folded_size);
    const size_t        row = static_cast<size_t>(rotation_direction_size(p)), shift = 4u * (p + 1) * (p + 1) * (p + 1);
    std::vector<double> direction(row), up(shift), down(shift);
    for (int v = 0; v < ops->num_vectors; v++)
    {
        double    r[3];
        const int reference =
            static_cast<int>(std::find(ops->reference, ops->reference + ops->num_references, v) - ops->reference);
        displacement(ops, cell, v, r);
        theta_fill(2 * p + 1, r, theta.data());
        store(theta.data(), ops->theta_size, reinterpret_cast<R*>(h + ops->theta_at) + v * ops->theta_size);
        direction_table(ops, cell, v, direction.data());
        store(direction.data(), row, reinterpret_cast<R*>(h + ops->direction_at) + v * row);
        if (reference < ops->num_references)
        {
            folded_table(p, theta.data(), folded.data());
            store(folded.data(), ops->folded_size,
                  reinterpret_cast<R*>(h + ops->folded_at) + reference * ops->folded_size);
        }
    }
    for (int plane = 0; plane < ops->num_planes; plane++)
    {
        double e[2];
        plane_direction(ops, cell, plane, e);
        powers(p, e[1], -e[0], direction.data()); /* a = phi - pi/2 */
        store(direction.data(), 2u * p, reinterpret_cast<R*>(h + ops->angle_at) + static_cast<size_t>(plane) * 2 * p);
    }
    double s[3];
    for (int d = 0; d < 3; d++)
    {
        s[d] = 0.5 * (cell[d] + cell[3 + d] + cell[6 + d]);
    }
    fmm_shift_tables_d(p, s, up.data(), down.data());
    store(up.data(), shift, reinterpret_cast<R*>(h + ops->up_at));
    store(down.data(), shift, reinterpret_cast<R*>(h + ops->down_at));
    fmm_octree_strain_table(p, ops->num_vectors, ops->vector, ops->order_of, cell,
                            reinterpret_cast<double*>(h + ops->strain_at));
}

/* Sets the places and sizes of the tables in ops->shape. */
void lay_out_shape(fmm_octree_operators* ops)
{
    const size_t p = static_cast<size_t>(ops->order), real = ops->is_double ? sizeof(double) : sizeof(float);
    ops->theta_size  = static_cast<size_t>(harm_size(2 * ops->order + 1));
    ops->folded_size = 4 * (p + 1) * (p + 1) * static_cast<size_t>(folded_stride(ops->order));
    size_t     at    = 0;
    const auto place = [&](size_t reals)
    {
        const size_t here = at;
        at                = octree_aligned(at + reals * real);
        return here;
    };
    const size_t vectors = static_cast<size_t>(ops->num_vectors), row = rotation_direction_size(ops->order);
    ops->theta_at     = place(vectors * ops->theta_size);
    ops->folded_at    = place(static_cast<size_t>(ops->num_references) * ops->folded_size);
    ops->direction_at = place(vectors * row);
    ops->angle_at     = place(static_cast<size_t>(ops->num_planes) * 2 * p);
    ops->up_at        = place(4 * (p + 1) * (p + 1) * (p + 1));
    ops->down_at      = place(4 * (p + 1) * (p + 1) * (p + 1));
    ops->strain_at    = place(strain_table_size(ops->order, ops->num_vectors) * (sizeof(double) / real));
    ops->shape_bytes  = at;
}

gmxfmm_status create(fmm_octree_operators* ops, const fmm_tree* tree, const fmm_cells* cells)
{
    const gmxfmm_status status = fmm_octree_make_lists(ops, tree);
    if (status != GMXFMM_OK)
    {
        return status;
    }
    lay_out_shape(ops);
    FMM_CUDA(ops, ops->shape.reserve(ops->shape_bytes));
    FMM_CUDA(ops, cudaMallocHost(&ops->host_shape, ops->shape_bytes));
    for (RotationSchedule& schedule : ops->schedule)
    {
        const size_t real  = ops->is_double ? sizeof(double) : sizeof(float);
        const size_t first = static_cast<size_t>(schedule.first_plane) * 2 * static_cast<size_t>(ops->order);
        schedule.direction = ops->shape.as<char>() + ops->direction_at;
        schedule.angle     = ops->shape.as<char>() + ops->angle_at + first * real;
    }
    FMM_CUDA(ops, fmm_octree_prepare_dynamic());
    FMM_CUDA(ops, ops->sweep.reserve(c_sweepBytes));
    FMM_CUDA(ops, cudaMemset(ops->sweep.memory, 0, c_sweepBytes));
    const gmxfmm_status filled = fmm_octree_set_shape(ops, cells, nullptr);
    if (filled == GMXFMM_OK)
    {
        FMM_CUDA(ops, cudaStreamSynchronize(nullptr));
    }
    return filled;
}

} // namespace

gmxfmm_status
fmm_octree_failed(fmm_octree_operators* ops, gmxfmm_status status, const char* call, const char* file, int line)
{
    std::snprintf(ops->message, sizeof(ops->message), "%s (%s:%d)", call, file, line);
    return status;
}

gmxfmm_status
fmm_octree_create(fmm_octree_operators** made, const fmm_tree* tree, const fmm_cells* cells, int order, int is_double)
{
    fmm_octree_operators* ops = new (std::nothrow) fmm_octree_operators();
    *made                     = ops;
    if (ops == nullptr)
    {
        return GMXFMM_ERROR_MEMORY;
    }
    if (order < 0 || order > FMM_OCTREE_MAX_ROTATION_ORDER)
    {
        return fmm_octree_failed(ops, GMXFMM_ERROR_UNSUPPORTED, "order beyond what the device has", __FILE__, __LINE__);
    }
    ops->order       = order;
    ops->is_double   = is_double;
    ops->num_coef    = harm_size(order);
    ops->num_near    = tree->num_near;
    ops->num_vectors = tree->num_vectors;
    ops->vector      = static_cast<int*>(std::malloc(7 * static_cast<size_t>(tree->num_vectors) * sizeof(int)));
    if (ops->vector == nullptr)
    {
        return GMXFMM_ERROR_MEMORY;
    }
    ops->plane_of     = ops->vector + 3 * tree->num_vectors;
    ops->plane_vector = ops->plane_of + tree->num_vectors;
    ops->reference    = ops->plane_vector + tree->num_vectors;
    ops->order_of     = ops->reference + tree->num_vectors;
    for (int v = 0; v < tree->num_vectors; v++)
    {
        const bool reduced = tree->truncation != nullptr && tree->truncation[v] <= rot_reduced_order(order);
        ops->order_of[v]   = reduced ? rot_reduced_order(order) : order;
    }
    std::memcpy(ops->vector, tree->vector, 3 * static_cast<size_t>(tree->num_vectors) * sizeof(int));
    try
    {
        return create(ops, tree, cells);
    }
    catch (const std::bad_alloc&)
    {
        return GMXFMM_ERROR_MEMORY;
    }
}

gmxfmm_status fmm_octree_set_shape(fmm_octree_operators* ops, const fmm_cells* cells, void* stream)
{
    try
    {
        ops->is_double ? fill_shape<double>(ops, cells->cell) : fill_shape<float>(ops, cells->cell);
    }
    catch (const std::bad_alloc&)
    {
        return GMXFMM_ERROR_MEMORY;
    }
    FMM_CUDA(ops, cudaMemcpyAsync(ops->shape.memory, ops->host_shape, ops->shape_bytes, cudaMemcpyHostToDevice,
                                  static_cast<cudaStream_t>(stream)));
    return GMXFMM_OK;
}

void fmm_octree_set_rotation(fmm_octree_operators* ops, const fmm_rotation_kernels* kernels)
{
    ops->rotation = kernels;
}

/* The most cells with locals of their own for each block, on levels where lists are divided among blocks. */
static size_t partial_cells(const fmm_octree_operators* ops)
{
    const int few = ops->schedule[c_rotationSplit].splits * (c_rotationFewTiles + 2);
    const int some =
        ops->schedule[c_rotationSome].splits > 1 ? ops->schedule[c_rotationSome].splits * (c_rotationSomeTiles + 2) : 0;
    return 32 * static_cast<size_t>(std::max(few, some));
}

gmxfmm_status fmm_octree_reserve(fmm_octree_operators* ops, gmxfmm_m2l m2l, int num)
{
    if (m2l == GMXFMM_M2L_ROTATION && !fmm_rotation_is_for(ops->rotation, ops->order, ops->is_double))
    {
        return fmm_octree_failed(ops, GMXFMM_ERROR_ORDER, "no kernels of rotation for this order", __FILE__, __LINE__);
    }
    const size_t rows = fmm_octree_strain_rows(num) * 6 * sizeof(double);
    FMM_CUDA(ops, ops->strain_rows.reserve(rows));
    if (m2l == GMXFMM_M2L_ROTATION)
    {
        const size_t real    = ops->is_double ? sizeof(double) : sizeof(float);
        const size_t coef    = static_cast<size_t>(ops->num_coef) * real;
        const size_t plane   = (static_cast<size_t>(num) + 32) / 32 * 32 * coef;
        const size_t planes  = static_cast<size_t>(ops->num_planes);
        const size_t in_part = (planes + c_rotationParts - 1) / c_rotationParts;
        FMM_CUDA(ops, ops->partial.reserve(partial_cells(ops) * coef));
        cudaError_t error = ops->rotated.reserve(planes * plane);
        if (error == cudaErrorMemoryAllocation)
        {
            cudaGetLastError();
            error = ops->rotated.reserve(in_part * plane); /* slower: fewer planes are divided less evenly */
        }
        FMM_CUDA(ops, error);
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_octree_reserve_cells(fmm_octree_operators* ops, gmxfmm_m2l m2l, int num)
{
    const gmxfmm_status status = fmm_octree_reserve(ops, m2l, num);
    if (status == GMXFMM_OK && m2l == GMXFMM_M2L_ROTATION && num <= 32 * c_rotationCellTiles)
    {
        const size_t real   = ops->is_double ? sizeof(double) : sizeof(float);
        const size_t column = (static_cast<size_t>(num) + 1 + 31) / 32 * 32;
        const size_t splits = static_cast<size_t>(ops->schedule[c_rotationSplit].splits);
        FMM_CUDA(ops, ops->partial.reserve(splits * column * static_cast<size_t>(ops->num_coef) * real));
    }
    return status;
}

size_t fmm_octree_bytes(const fmm_octree_operators* ops)
{
    return ops->shape_bytes + ops->rotated.capacity + ops->partial.capacity + ops->strain_rows.capacity;
}

void fmm_octree_destroy(fmm_octree_operators* ops)
{
    if (ops != nullptr)
    {
        cudaFreeHost(ops->host_shape);
        std::free(ops->vector);
        delete ops;
    }
}

const char* fmm_octree_message(const fmm_octree_operators* ops)
{
    return ops->message;
}
