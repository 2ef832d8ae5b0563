/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Life cycle of a plan's device part: streams, events, the memory that depends on options alone, grid and shape. */

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "cuda/convolution/convolution.h"
#include "cuda/device.h"
#include "cuda/devices/leaf_parts.h"
#include "cuda/devices/parts.h"
#include "cuda/tree/far.h"
#include "cuda/tree/levels.h"
#include "cuda/resources.h"
#include "fmm/math/harmonics.h"

gmxfmm_status fmm_device_check(int id, char* message, size_t size)
{
    int          count  = 0;
    DeviceLimits limits = {0, 0, 0};
    cudaError_t  error  = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && id < count)
    {
        error = device_limits(id, &limits);
    }
    if (error != cudaSuccess || count == 0)
    {
        cudaGetLastError();
        std::snprintf(message, size, "no CUDA device: %s",
                      error != cudaSuccess ? cudaGetErrorString(error) : "none found");
        return GMXFMM_ERROR_DEVICE;
    }
    if (id >= count)
    {
        const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
        std::snprintf(message, size, "device_id is %d, but there are %d CUDA devices%s%s", id, count,
                      visible != NULL ? ", with CUDA_VISIBLE_DEVICES=" : "", visible != NULL ? visible : "");
        return GMXFMM_ERROR_DEVICE;
    }
    if (limits.capability < c_leastCapability)
    {
        std::snprintf(message, size, "CUDA device %d has compute capability %d.%d, needed is %d.%d", id,
                      limits.capability / 10, limits.capability % 10, c_leastCapability / 10, c_leastCapability % 10);
        return GMXFMM_ERROR_DEVICE;
    }
    return GMXFMM_OK;
}

static gmxfmm_status make_streams(gmxfmm_plan* plan)
{
    fmm_device* device = plan->device;
    int         low = 0, high = 0, near = 0;
    FMM_CUDA(plan, cudaDeviceGetStreamPriorityRange(&low, &high));
    /* The far field is a chain of short kernels, which must not queue behind the blocks of the near field. The near
     * field in turn must not queue behind kernels that a host program runs at the lowest priority at the same time;
     * these then fill the multiprocessors that the last blocks of the near field leave idle. */
    FMM_TRY(fmm_cuda_near_priority(plan, &near));
    FMM_CUDA(plan, cudaStreamCreateWithPriority(&device->schedule.far, cudaStreamNonBlocking, high));
    FMM_CUDA(plan, cudaStreamCreateWithPriority(&device->schedule.side, cudaStreamNonBlocking, high));
    FMM_CUDA(plan, cudaStreamCreateWithPriority(&device->schedule.near, cudaStreamNonBlocking, near));
    FMM_CUDA(plan, cudaStreamCreateWithPriority(&device->schedule.prefetch, cudaStreamNonBlocking, low));
    FMM_CUDA(plan, cudaStreamCreateWithPriority(&device->schedule.sums, cudaStreamNonBlocking, low));
    FMM_CUDA(plan, cudaStreamCreateWithPriority(&device->schedule.own, cudaStreamNonBlocking, high));
    FMM_CUDA(plan, cudaEventCreateWithFlags(&device->schedule.fork, cudaEventDisableTiming));
    FMM_CUDA(plan, cudaEventCreateWithFlags(&device->schedule.near_done, cudaEventDisableTiming));
    FMM_CUDA(plan, cudaEventCreateWithFlags(&device->schedule.far_done, cudaEventDisableTiming));
    FMM_CUDA(plan, cudaEventCreateWithFlags(&device->schedule.side_done, cudaEventDisableTiming));
    FMM_CUDA(plan, cudaEventCreateWithFlags(&device->schedule.prefetch_done, cudaEventDisableTiming));
    FMM_CUDA(plan, cudaEventCreateWithFlags(&device->schedule.spectrum_done, cudaEventDisableTiming));
    FMM_CUDA(plan, cudaEventCreateWithFlags(&device->schedule.output_done, cudaEventDisableTiming));
    FMM_CUDA(plan, cudaEventCreateWithFlags(&device->schedule.sums_done, cudaEventDisableTiming));
    FMM_CUDA(plan, cudaEventCreateWithFlags(&device->schedule.cells_found, cudaEventDisableTiming));
    FMM_CUDA(plan, cudaEventCreate(&device->schedule.begin));
    FMM_CUDA(plan, cudaEventCreate(&device->schedule.end));
    FMM_CUDA(plan, device_limits(device->id, &device->limits));
    FMM_TRY(fmm_cuda_find_chains(plan));
    FMM_TRY(fmm_device_reserve(plan, &device->domain.box, sizeof(BoxValues)));
    if (fmm_has_places(plan))
    {
        FMM_TRY(fmm_device_reserve(plan, &device->domain.no_box, sizeof(BoxValues)));
        FMM_CUDA(plan, cudaMemset(device->domain.no_box.memory, 0, sizeof(BoxValues)));
    }
    FMM_CUDA(plan,
             cudaHostAlloc(reinterpret_cast<void**>(&device->particles.left_cells), sizeof(int), cudaHostAllocMapped));
    *device->particles.left_cells = 0;
    FMM_TRY(fmm_device_reserve(plan, &device->output.results, sizeof(StepResults)));
    FMM_TRY(fmm_device_reserve(plan, &device->particles.assign_results, sizeof(AssignResults)));
    FMM_TRY(fmm_device_reserve(plan, &device->charges.results, sizeof(ChargeResults)));
    FMM_TRY(fmm_device_reserve(plan, &device->output.partial, sizeof(double) * c_numSums * 2 * c_sumBlocks));
    FMM_CUDA(plan, cudaMemset(device->output.results.memory, 0, sizeof(StepResults)));
    FMM_CUDA(plan,
             cudaMemset(&device->output.results.as<StepResults>()->bad_positions, c_none & 0xff, 4 * sizeof(int)));
    FMM_CUDA(plan, cudaMemset(device->charges.results.memory, 0, sizeof(ChargeResults)));
    return GMXFMM_OK;
}

gmxfmm_status fmm_device_create(gmxfmm_plan* plan)
{
    const int id = plan->options.device_id;
    plan->device = new (std::nothrow) fmm_device();
    if (plan->device == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory");
    }
    plan->device->id = id;
    DeviceScope scope(id);
    FMM_TRY(make_streams(plan));
    FMM_TRY(fmm_cuda_create_parts(plan));
    /* Loaded or compiled now if the method and the order are given already: an open system gets its octree only at
     * assign. */
    const bool is_given = plan->far.m2l == GMXFMM_M2L_ROTATION && plan->options.order >= 0;
    return is_given ? fmm_cuda_rotation_create(plan, plan->options.order) : GMXFMM_OK;
}

void fmm_device_destroy(gmxfmm_plan* plan)
{
    fmm_device* d = plan->device;
    if (d == NULL)
    {
        return;
    }
    DeviceScope scope(d->id);
    /* what a host program has enqueued may still be running */
    cudaDeviceSynchronize();
    fmm_cuda_destroy_parts(plan);
    fmm_cuda_free_transforms(d);
    fmm_cuda_tree_destroy(plan);
    cudaStreamDestroy(d->schedule.near);
    cudaStreamDestroy(d->schedule.far);
    cudaStreamDestroy(d->schedule.side);
    cudaStreamDestroy(d->schedule.prefetch);
    cudaStreamDestroy(d->schedule.sums);
    cudaStreamDestroy(d->schedule.own);
    cudaEventDestroy(d->schedule.fork);
    cudaEventDestroy(d->schedule.near_done);
    cudaEventDestroy(d->schedule.far_done);
    cudaEventDestroy(d->schedule.side_done);
    cudaEventDestroy(d->schedule.prefetch_done);
    cudaEventDestroy(d->schedule.spectrum_done);
    cudaEventDestroy(d->schedule.output_done);
    cudaEventDestroy(d->schedule.sums_done);
    cudaEventDestroy(d->schedule.cells_found);
    cudaEventDestroy(d->schedule.begin);
    cudaEventDestroy(d->schedule.end);
    cudaFreeHost(d->particles.left_cells);
    std::free(d->particles.host_copy);
    std::free(d->near.on_device);
    delete d; /* and all buffers */
    plan->device = NULL;
}

gmxfmm_status fmm_device_set_grid(gmxfmm_plan* plan)
{
    fmm_device* d = plan->device;
    DeviceScope scope(d->id);
    FMM_CUDA(plan, cudaDeviceSynchronize());
    fmm_cuda_free_transforms(d);
    d->far.num_coef = harm_size(plan->far.order);
    d->far.path     = plan->domain.tree != NULL ? &fmm_cuda_by_octree : &fmm_cuda_by_cells;
    return d->far.path->create(plan);
}

gmxfmm_status fmm_device_set_shape(gmxfmm_plan* plan)
{
    fmm_device* d = plan->device;
    DeviceScope scope(d->id);
    FMM_TRY(d->far.path->set_shape(plan));
    FMM_TRY(fmm_cuda_set_shape_of_leaf_parts(plan));
    for (int i = 0; i < FMM_LINE_NODES && plan->far.line.active; i++)
    {
        FMM_TRY(fmm_device_reserve(plan, &d->far.cells.node_s[i], d->far.cells.s.capacity));
        FMM_TRY(fmm_device_reserve(plan, &d->far.cells.node_z[i], d->far.cells.z.capacity));
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_device_set_first_share(gmxfmm_plan* plan, double share)
{
    if (!has_parts(plan->device))
    {
        return fmm_fail(plan, GMXFMM_ERROR_UNSUPPORTED, "one device is used");
    }
    fmm_cuda_set_first_share(plan->device, share);
    return GMXFMM_OK;
}

void fmm_device_get_info(const gmxfmm_plan* plan, gmxfmm_info* info)
{
    const DeviceParts* parts = plan->device->parts;
    info->shares[0] = info->far_shares[0] = 1;
    if (parts != NULL)
    {
        info->num_devices  = parts->num;
        info->devices_note = parts->note;
    }
    for (int k = 0; parts != NULL && k < parts->num; k++)
    {
        info->devices[k]    = parts->part[k].id;
        info->shares[k]     = parts->share[k];
        info->far_shares[k] = has_slabs(plan)        ? parts->far_share[k]
                              : has_leaf_parts(plan) ? fmm_cuda_share_of_leaves(plan, k)
                                                     : k == 0;
    }
}
