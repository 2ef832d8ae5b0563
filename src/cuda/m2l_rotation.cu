/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* M2L by rotations: dispatch to the kernels for an order and precision (rotation_kernels.h). */
#include "octree_state.h"
#include "rotation_kernels.h"
#include "rotation_orders.h"

namespace rotation
{
#define DECLARE(p)                                                                                                     \
    cudaError_t turn_float_##p(AllowedKernels*, const Arguments<float>&, cudaStream_t);                                \
    cudaError_t turn_double_##p(AllowedKernels*, const Arguments<double>&, cudaStream_t);                              \
    cudaError_t translate_float_##p(AllowedKernels*, const Arguments<float>&, cudaStream_t);                           \
    cudaError_t translate_double_##p(AllowedKernels*, const Arguments<double>&, cudaStream_t);
FMM_ROTATION_ORDERS(DECLARE)
} // namespace rotation

template <class R>
using Launch = cudaError_t(AllowedKernels*, const rotation::Arguments<R>&, cudaStream_t);
#define FLOAT(p) {rotation::turn_float_##p, rotation::translate_float_##p},
#define DOUBLE(p) {rotation::turn_double_##p, rotation::translate_double_##p},
static Launch<float>* const  c_launchFloat[][2]  = {FMM_ROTATION_ORDERS(FLOAT)};
static Launch<double>* const c_launchDouble[][2] = {FMM_ROTATION_ORDERS(DOUBLE)};

/* Adds the locals by blocks that shared a list, in their order. */
template <class R>
__global__ void __launch_bounds__(256) add_partial(R* local, const R* partial, size_t size, int num)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * 256 + threadIdx.x;
    if (i < size)
    {
        R sum = local[i];
#pragma unroll 4
        for (int split = 0; split < num; split++)
        {
            sum += partial[static_cast<size_t>(split) * size + i];
        }
        local[i] = sum;
    }
}

template <class R>
static gmxfmm_status launch(fmm_octree_operators*   ops,
                            const fmm_octree_level* upper,
                            const fmm_octree_level* lower,
                            Launch<R>* const*       kernels,
                            cudaStream_t            stream)
{
    rotation::Arguments<R> a;
    a.lists            = octree_lists(ops, upper, lower);
    a.turned           = static_cast<R*>(ops->turned);
    a.plane_size       = (static_cast<size_t>(lower->num) + 32) / 32 * 32 * static_cast<size_t>(ops->num_coef);
    a.multipole        = static_cast<const R*>(lower->multipole);
    a.local_size       = static_cast<size_t>(ops->num_coef) * lower->stride;
    const int    tiles = rotation::rotation_tiles(a.lists);
    const size_t plane = a.plane_size * sizeof(R), bytes = c_rotationSplits * a.local_size * sizeof(R);
    const bool   whole  = static_cast<size_t>(ops->num_planes) * plane <= ops->turned_bytes;
    const bool   split  = whole && tiles <= c_rotationFewTiles && bytes <= ops->partial_bytes;
    const int    first  = split ? c_rotationSplit : whole ? c_rotationWhole : c_rotationPart;
    const int    number = whole ? 1 : c_rotationParts;
    a.local             = static_cast<R*>(split ? ops->partial : lower->local);
    if (split)
    {
        FMM_OCTREE_CUDA(ops, cudaMemsetAsync(ops->partial, 0, bytes, stream));
    }
    for (int s = first; s < first + number && tiles > 0; s++)
    {
        a.schedule = ops->schedule[s];
        if (static_cast<size_t>(a.schedule.num_planes) * plane > ops->turned_bytes)
        {
            return fmm_octree_failed(ops, GMXFMM_ERROR_ORDER, "more cells than reserved", __FILE__, __LINE__);
        }
        FMM_OCTREE_CUDA(ops, kernels[0](&ops->allowed, a, stream));
        FMM_OCTREE_CUDA(ops, kernels[1](&ops->allowed, a, stream));
    }
    if (split)
    {
        add_partial<<<static_cast<unsigned>((a.local_size + 255) / 256), 256, 0, stream>>>(
            static_cast<R*>(lower->local), a.local, a.local_size, c_rotationSplits);
        FMM_OCTREE_CUDA(ops, cudaGetLastError());
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_octree_m2l_rotation(fmm_octree_operators*   ops,
                                      const fmm_octree_level* upper,
                                      const fmm_octree_level* lower,
                                      void*                   stream)
{
    return ops->is_double
               ? launch<double>(ops, upper, lower, c_launchDouble[ops->order], static_cast<cudaStream_t>(stream))
               : launch<float>(ops, upper, lower, c_launchFloat[ops->order], static_cast<cudaStream_t>(stream));
}
