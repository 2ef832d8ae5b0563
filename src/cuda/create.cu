/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Life cycle of a plan's device part: its objects, grid and shape. */

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "cuda/convolution/convolution.h"
#include "cuda/device.h"
#include "cuda/devices/devices.h"
#include "cuda/near/near.h"
#include "cuda/particles/particles.h"
#include "cuda/runtime/recording.h"
#include "cuda/schedule.h"
#include "cuda/tree/far.h"
#include "cuda/tree/levels.h"
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

/* What depends on options alone. */
static gmxfmm_status create_objects(gmxfmm_plan* plan)
{
    fmm_device* first = plan->device;
    FMM_TRY(fmm_cuda_create_schedule(plan, first));
    FMM_CUDA(plan, device_limits(first->id, &first->limits));
    FMM_TRY(fmm_cuda_find_chains(plan));
    FMM_TRY(fmm_cuda_create_domain(plan));
    FMM_TRY(fmm_cuda_create_particles(plan));
    return fmm_cuda_create_charges(plan);
}

/* Other devices of a step, which get room for copies when particles are assigned. */
static gmxfmm_status create_others(gmxfmm_plan* plan)
{
    const fmm_device* first = plan->device;
    for (int k = 1; k < num_devices(first); k++)
    {
        fmm_device* d = &plan->device[k];
        DeviceScope scope(d->id);
        FMM_CUDA(plan, device_limits(d->id, &d->limits));
        d->has_chains = first->has_chains && d->limits.capability == first->limits.capability;
        FMM_TRY(fmm_cuda_create_schedule(plan, d));
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_device_create(gmxfmm_plan* plan)
{
    const int id = plan->options.device_id;
    plan->device = new (std::nothrow) fmm_device[std::max(plan->options.num_devices, 1)]();
    if (plan->device == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory");
    }
    plan->device->id = id;
    DeviceScope scope(id);
    FMM_TRY(create_objects(plan));
    FMM_TRY(fmm_cuda_create_group(plan));
    FMM_TRY(create_others(plan));
    /* Loaded or compiled now if the method and the order are given already: an open system gets its octree only at
     * assign. */
    const bool is_given = plan->far.m2l == GMXFMM_M2L_ROTATION && plan->options.order >= 0;
    return is_given ? fmm_cuda_rotation_create(plan, plan->device, plan->options.order) : GMXFMM_OK;
}

/* All but its buffers. */
static void destroy_objects(fmm_device* d)
{
    DeviceScope scope(d->id);
    for (cudaStream_t stream : {d->schedule.near, d->schedule.far})
    {
        if (stream != NULL)
        {
            cudaStreamSynchronize(stream);
        }
    }
    fmm_cuda_free_transforms(d);
    fmm_cuda_tree_destroy(d);
    fmm_cuda_destroy_schedule(d);
    fmm_cuda_destroy_particles(d);
    fmm_cuda_destroy_near_set(d);
}

void fmm_device_destroy(gmxfmm_plan* plan)
{
    fmm_device* first = plan->device;
    if (first == NULL)
    {
        return;
    }
    DeviceScope scope(first->id);
    /* what a host program has enqueued may still be running */
    fmm_cuda_wait_for_device();
    for (int k = num_devices(first) - 1; k >= 0; k--)
    {
        destroy_objects(&first[k]);
    }
    fmm_cuda_destroy_group(plan);
    delete[] first; /* and all buffers, which are freed from whatever device is current */
    plan->device = NULL;
}

gmxfmm_status fmm_device_set_grid(gmxfmm_plan* plan)
{
    fmm_device* d = plan->device;
    DeviceScope scope(d->id);
    FMM_CUDA(plan, fmm_cuda_wait_for_device());
    fmm_cuda_free_transforms(d);
    const DevicePath* path = plan->domain.tree != NULL ? &fmm_cuda_by_octree : &fmm_cuda_by_cells;
    if (d->far.path != path && d->group->far_arrays != 0)
    {
        FMM_TRY(fmm_cuda_release_far(plan)); /* what others have for the other way */
    }
    d->far.num_coef = harm_size(plan->far.order);
    d->far.path     = path;
    FMM_TRY(path->create(plan));
    return fmm_cuda_divide_far(plan, d->group->share.far, d->schedule.own);
}

gmxfmm_status fmm_device_set_shape(gmxfmm_plan* plan)
{
    fmm_device* d = plan->device;
    DeviceScope scope(d->id);
    FMM_TRY(d->far.path->set_shape(plan));
    return fmm_cuda_reserve_nodes(plan);
}

int fmm_device_has_one(const gmxfmm_plan* plan)
{
    return !has_others(plan->device);
}

void fmm_device_get_info(const gmxfmm_plan* plan, gmxfmm_info* info)
{
    const DeviceGroup* group = plan->device->group;
    const DeviceTree*  tree  = &plan->device->far.tree;
    if (plan->domain.tree != NULL)
    {
        info->num_cells = fmm_is_adaptive(plan) ? tree->leaves.num : tree->level[plan->domain.tree->depth].num;
    }
    info->num_devices  = group->num;
    info->devices_note = group->note;
    for (int k = 0; k < group->num; k++)
    {
        const DeviceRange& range = plan->device[k].range;
        info->devices[k]         = plan->device[k].id;
        info->shares[k]          = group->share.near[k];
        info->far_shares[k]      = shares_cells(plan)
                                       ? group->share.far[k]
                                       : static_cast<double>(range.end_octant - range.first_octant) / c_octants;
    }
}
