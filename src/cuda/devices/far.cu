/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The far field on several devices: its ranges, room for them, and what devices send each other. */
#include <algorithm>

#include "cuda/devices/devices.h"
#include "cuda/expansions/expansions.h"
#include "cuda/runtime/copy_rows.h"

/* The columns of a range, of all rows of a spectrum: num_coef coefficients or pairs, and layers; by the device that is
 * the current one. */
static gmxfmm_status copy_columns(gmxfmm_plan*     plan,
                                  const GridRange& range,
                                  int              num_coef,
                                  const void*      from,
                                  void*            to,
                                  int              processors,
                                  cudaStream_t     stream)
{
    const RowsPart a = {static_cast<size_t>(num_coef) * static_cast<size_t>(fmm_convolved(plan)->n[0]),
                        static_cast<size_t>(num_columns(plan)), static_cast<size_t>(range.first_column),
                        static_cast<size_t>(range.end_column - range.first_column)};
    FMM_CUDA(plan, is_double(plan) ? launch_copy_rows<Vec2<double>>(a, from, to, processors, stream)
                                   : launch_copy_rows<Vec2<float>>(a, from, to, processors, stream));
    return GMXFMM_OK;
}

bool fmm_cuda_can_share_far(const gmxfmm_plan* plan)
{
    const fmm_device* d = plan->device;
    return has_others(d) && d->group->connected && d->group->no_room != plan->far.arrays &&
           d->far.path->can_share(plan);
}

gmxfmm_status fmm_cuda_release_far(gmxfmm_plan* plan)
{
    FMM_CUDA(plan, cudaStreamSynchronize(plan->device->schedule.own));
    plan->device->group->far_arrays = 0;
    for (int k = 1; k < num_devices(plan->device); k++)
    {
        fmm_device* d = &plan->device[k];
        DeviceScope scope(d->id);
        FMM_CUDA(plan, cudaStreamSynchronize(d->schedule.near));
        FMM_CUDA(plan, cudaStreamSynchronize(d->schedule.far));
        plan->device->far.path->release(plan, d);
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_reserve_far(gmxfmm_plan* plan)
{
    DeviceGroup* group = plan->device->group;
    const bool   may   = group->share.far[0] < 1 || (!group->far_given && fmm_cuda_shares_are_old(plan));
    if (!may || !fmm_cuda_can_share_far(plan))
    {
        return group->far_arrays != 0 ? fmm_cuda_release_far(plan) : GMXFMM_OK;
    }
    for (int k = 1; k < group->num; k++)
    {
        const gmxfmm_status status = plan->device->far.path->reserve(plan, &plan->device[k]);
        if (status == GMXFMM_ERROR_MEMORY)
        {
            group->no_room   = plan->far.arrays;
            plan->message[0] = '\0';
            fmm_cuda_add_note(group, "the far field is on device %d alone: device %d has no memory for a part of it",
                              plan->device->id, plan->device[k].id);
            return fmm_cuda_release_far(plan);
        }
        FMM_TRY(status);
    }
    group->far_arrays = plan->far.arrays;
    return GMXFMM_OK;
}

/* Layers whose particles P2M reads: its first and last block may have cells of other ranges, too. */
static void set_needed_layers(const gmxfmm_plan* plan, DeviceRange* range)
{
    const int* n    = fmm_convolved(plan)->n;
    const int  area = n[1] * n[2], size = fmm_cuda_p2m_leaves(plan);
    const int  first = range->grid.first_layer * area, end = range->grid.end_layer * area;
    range->first_layer = end > first ? first / size * size / area : 0;
    range->end_layer   = end > first ? blocks_for(std::min(blocks_for(end, size) * size, n[0] * area), area) : 0;
}

gmxfmm_status fmm_cuda_divide_far(gmxfmm_plan* plan, const double* share, cudaStream_t stream)
{
    DeviceGroup* group = plan->device->group;
    const bool   can = group->far_arrays != 0 && group->far_arrays == plan->far.arrays && fmm_cuda_can_share_far(plan);
    const bool   octree = plan->domain.tree != NULL;
    const int    layers = fmm_convolved(plan)->n[0], columns = num_columns(plan);
    const int*   leaves = plan->device->far.tree.level[octree ? plan->domain.tree->depth : 0].slab; /* by octant */
    double       sum    = 0;
    GridRange    last   = {0, 0, 0, 0};
    int          octant = 0;
    group->shares_far   = false;
    for (int k = 0; k < group->num; k++)
    {
        DeviceRange* range = &plan->device[k].range;
        sum += share[k];
        const double before = k < group->num - 1 ? std::min(sum, 1.0) : 1.0; /* this much is before the next one's */
        const double cells = can && !octree ? before : 1, octants = can && octree ? before : 1;
        last                = {last.end_layer, static_cast<int>(cells * layers + 0.5), last.end_column,
                               static_cast<int>(cells * columns + 0.5)};
        range->grid         = last;
        range->first_octant = octant;
        range->end_octant = octant = static_cast<int>(octants * c_octants + 0.5);
        range->first_layer = range->end_layer = 0;
        if (can && !octree)
        {
            set_needed_layers(plan, range);
        }
        group->shares_far =
            group->shares_far ||
            (k > 0 && can && (octree ? leaves[range->end_octant] > leaves[range->first_octant] : convolves(plan, k)));
        group->share.far[k] = share[k];
    }
    return has_s(plan) ? fmm_cuda_share_spectra(plan, stream) : GMXFMM_OK;
}

gmxfmm_status fmm_cuda_share_spectra(gmxfmm_plan* plan, cudaStream_t stream)
{
    const fmm_device* first = plan->device;
    const int         pairs = (2 * plan->far.order + 1) * (plan->far.order + 1); /* of degree 2 p */
    for (int k = 1; k < num_devices(first); k++)
    {
        const fmm_device* d = &plan->device[k];
        if (has_columns(d))
        {
            FMM_TRY(copy_columns(plan, d->range.grid, pairs, first->far.cells.s.memory, d->far.cells.s.memory,
                                 first->limits.processors, stream));
        }
    }
    return GMXFMM_OK;
}

PositionCopies fmm_cuda_position_copies(const gmxfmm_plan* plan)
{
    PositionCopies copies = {};
    const int      area   = fmm_convolved(plan)->n[1] * fmm_convolved(plan)->n[2];
    for (int k = 1; k < num_devices(plan->device); k++)
    {
        const fmm_device*  d     = &plan->device[k];
        const DeviceRange& range = d->range;
        if (range.end_layer > range.first_layer)
        {
            copies.copy[copies.num++] = {range.first_layer * area, range.end_layer * area,
                                         d->particles.sources.xq.memory};
        }
    }
    return copies;
}

gmxfmm_status fmm_cuda_send_moments(gmxfmm_plan* plan, bool sum, cudaStream_t stream)
{
    double* to[GMXFMM_MAX_DEVICES];
    int     num = 0;
    for (int k = 0; shares_cells(plan) && k < num_devices(plan->device); k++)
    {
        const fmm_device* d = &plan->device[k];
        if (has_layers(d) && sum)
        {
            FMM_CUDA(plan, cudaStreamWaitEvent(stream, d->schedule.p2m_done, 0));
        }
        if (has_layers(d) && k > 0)
        {
            to[num++] = d->far.moments.background.as<double>();
        }
    }
    return shares_cells(plan) ? fmm_cuda_share_moments(plan, sum, to, num, stream) : GMXFMM_OK;
}

gmxfmm_status fmm_cuda_end_far(gmxfmm_plan* plan, bool virial)
{
    const fmm_device* first = plan->device;
    for (int k = 1; k < num_devices(first); k++)
    {
        const fmm_device*     d = &plan->device[k];
        const DeviceSchedule& s = d->schedule;
        DeviceScope           scope(d->id);
        FMM_CUDA(plan, convolves(plan, k) ? cudaEventRecord(s.far_done, s.far) : cudaSuccess);
        if (virial && has_columns(d))
        {
            FMM_TRY(copy_columns(plan, d->range.grid, first->far.num_coef, d->far.cells.spectrum.memory,
                                 first->far.cells.spectrum.memory, d->limits.processors, s.far));
            FMM_CUDA(plan, cudaEventRecord(s.gathered, s.far));
        }
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_wait_gathered(gmxfmm_plan* plan, cudaStream_t stream)
{
    for (int k = 1; k < num_devices(plan->device); k++)
    {
        const fmm_device* d = &plan->device[k];
        FMM_CUDA(plan, has_columns(d) ? cudaStreamWaitEvent(stream, d->schedule.gathered, 0) : cudaSuccess);
    }
    return GMXFMM_OK;
}
