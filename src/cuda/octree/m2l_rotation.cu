/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* M2L by rotations: launches of the kernels for an order and precision (rotation_kernels.h). */
#include "cuda/octree/state.h"
#include "cuda/octree/rotation_orders.h"

/* Adds up, in a fixed order, the locals of the blocks among which lists were divided. */
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
static cudaError_t launch_rotate_sources(const fmm_octree_operators* ops, rotation::Arguments<R> a, cudaStream_t stream)
{
    const unsigned tiles        = (static_cast<unsigned>(a.lists.num) + 32) / 32;
    void*          parameters[] = {&a};
    return cudaLaunchKernel(ops->rotation->rotate_sources,
                            dim3((tiles + 7) / 8, static_cast<unsigned>(a.schedule.num_planes)), dim3(256), parameters,
                            0, stream);
}

template <class R>
static cudaError_t launch_translate(fmm_octree_operators* ops, rotation::Arguments<R> a, cudaStream_t stream)
{
    const bool   is_double    = sizeof(R) == sizeof(double);
    const int    warps        = fmm_rotation_warps(ops->order, is_double);
    const size_t groups       = static_cast<size_t>(warps / fmm_rotation_group_warps(ops->order, is_double));
    const size_t tile         = 32 * static_cast<size_t>(ops->num_coef) * sizeof(R);
    const size_t tiles        = groups * tile * (fmm_rotation_has_sums(ops->order, is_double) ? 2 : 1);
    const size_t near         = 32 * sizeof(int) * static_cast<size_t>(a.lists.num_near);
    void*        parameters[] = {&a};
    const dim3   grid(static_cast<unsigned>(rotation_tiles(a.lists.slab)), static_cast<unsigned>(a.schedule.splits));
    const cudaError_t error = allow_shared(&ops->allowed, ops->rotation->translate);
    return error != cudaSuccess
               ? error
               : cudaLaunchKernel(ops->rotation->translate, grid, dim3(32 * static_cast<unsigned>(warps)), parameters,
                                  tiles + near, stream);
}

/* Rounds of blocks on the multiprocessors, each as long as all of a list takes. */
static double rounds(const fmm_octree_operators* ops, int tiles, int schedule)
{
    const int at_once = c_rotationProcessors * fmm_rotation_blocks(ops->order, ops->is_double != 0);
    const int splits  = ops->schedule[schedule].splits;
    return static_cast<double>((tiles * splits + at_once - 1) / at_once) / splits;
}

/* How lists are divided for as many tiles. Parts of a list take longer than it takes whole, as their runs are shorter
 * and their locals are added up: they have to save a quarter of the rounds. */
static int schedule_for(const fmm_octree_operators* ops, const fmm_octree_level* lower, int tiles)
{
    if (lower->scale == NULL)
    {
        return tiles <= c_rotationFewTiles    ? c_rotationSplit
               : tiles <= c_rotationSomeTiles ? c_rotationSome
                                              : c_rotationWhole;
    }
    const int larger = tiles <= c_rotationSomeTiles ? c_rotationSome : c_rotationWhole;
    return tiles <= c_rotationCellTiles && 4 * rounds(ops, tiles, c_rotationSplit) <= 3 * rounds(ops, tiles, larger)
               ? c_rotationSplit
               : larger;
}

template <class R>
static gmxfmm_status
launch(fmm_octree_operators* ops, const fmm_octree_level* upper, const fmm_octree_level* lower, cudaStream_t stream)
{
    rotation::Arguments<R> a;
    a.lists             = octree_lists(ops, upper, lower);
    a.rotated           = ops->rotated.as<R>();
    a.plane_size        = rotation_plane_size(ops, lower->num);
    a.multipole         = static_cast<const R*>(lower->multipole);
    a.local_size        = static_cast<size_t>(ops->num_coef) * lower->stride;
    const int    own    = rotation_tiles(a.lists.slab);
    const int    tiles  = lower->tiles > 0 ? lower->tiles : own;
    const size_t plane  = a.plane_size * sizeof(R);
    const bool   whole  = rotation_holds_planes(ops, lower->num);
    const int    shared = schedule_for(ops, lower, tiles);
    const int    splits = whole ? ops->schedule[shared].splits : 1;
    const size_t bytes  = static_cast<size_t>(splits) * a.local_size * sizeof(R);
    const bool   split  = splits > 1 && bytes <= ops->partial.capacity;
    const int    first  = split ? shared : whole ? c_rotationWhole : c_rotationPart;
    const int    number = whole ? 1 : c_rotationParts;
    a.local             = static_cast<R*>(split ? ops->partial.memory : lower->local);
    if (split)
    {
        FMM_CUDA(ops, cudaMemsetAsync(ops->partial.memory, 0, bytes, stream));
    }
    for (int s = first; s < first + number && own > 0; s++)
    {
        a.schedule = ops->schedule[s];
        if (static_cast<size_t>(a.schedule.num_planes) * plane > ops->rotated.capacity)
        {
            return fmm_octree_failed(ops, GMXFMM_ERROR_ORDER, "more cells than reserved", __FILE__, __LINE__);
        }
        FMM_CUDA(ops, launch_rotate_sources(ops, a, stream));
        FMM_CUDA(ops, launch_translate(ops, a, stream));
    }
    if (split)
    {
        add_partial<<<static_cast<unsigned>((a.local_size + 255) / 256), 256, 0, stream>>>(
            static_cast<R*>(lower->local), a.local, a.local_size, splits);
        FMM_CUDA(ops, cudaGetLastError());
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_octree_m2l_rotation(fmm_octree_operators*   ops,
                                      const fmm_octree_level* upper,
                                      const fmm_octree_level* lower,
                                      void*                   stream)
{
    return ops->is_double ? launch<double>(ops, upper, lower, static_cast<cudaStream_t>(stream))
                          : launch<float>(ops, upper, lower, static_cast<cudaStream_t>(stream));
}
