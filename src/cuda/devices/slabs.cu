/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The far field on several devices: memory, shares, and the order in which devices wait for each other. */
#include "cuda/devices/slabs.h"

#include <algorithm>

#include "cuda/convolution/convolution.h"
#include "cuda/devices/parts.h"
#include "cuda/runtime/copy_rows.h"

/* The columns of a slab, of all rows of a spectrum: num_coef coefficients or pairs, and layers; by the device that is
 * the current one. */
static gmxfmm_status copy_slab(
    gmxfmm_plan* plan, const Slab& slab, int num_coef, const void* from, void* to, int processors, cudaStream_t stream)
{
    const RowsPart a      = {static_cast<size_t>(num_coef) * static_cast<size_t>(fmm_convolved(plan)->n[0]),
                             static_cast<size_t>(num_columns(plan)), static_cast<size_t>(slab.first_column),
                             static_cast<size_t>(slab.end_column - slab.first_column)};
    const int      blocks = c_copyBlocks * processors;
    if (is_double(plan))
    {
        copy_rows<<<blocks, c_copyThreads, 0, stream>>>(a, static_cast<const Vec2<double>*>(from),
                                                        static_cast<Vec2<double>*>(to));
    }
    else
    {
        copy_rows<<<blocks, c_copyThreads, 0, stream>>>(a, static_cast<const Vec2<float>*>(from),
                                                        static_cast<Vec2<float>*>(to));
    }
    FMM_CUDA(plan, cudaGetLastError());
    return GMXFMM_OK;
}

bool fmm_cuda_can_have_slabs(const gmxfmm_plan* plan)
{
    const fmm_device* d = plan->device;
    return has_others(d) && d->group->connected && d->group->no_room != plan->far.arrays && fmm_is_periodic(plan) &&
           plan->domain.tree == NULL && d->far.cells.own_transforms && targets_of(d) == &d->particles.sources;
}

gmxfmm_status fmm_cuda_release_slabs(gmxfmm_plan* plan)
{
    FMM_CUDA(plan, cudaStreamSynchronize(plan->device->schedule.own));
    plan->device->group->slab_arrays = 0;
    for (int k = 1; k < num_devices(plan->device); k++)
    {
        fmm_device* d = &plan->device[k];
        DeviceScope scope(d->id);
        FMM_CUDA(plan, cudaStreamSynchronize(d->schedule.near));
        FMM_CUDA(plan, cudaStreamSynchronize(d->schedule.far));
        fmm_cuda_release_transforms(plan, d);
        fmm_cuda_release_background(plan, d);
    }
    return GMXFMM_OK;
}

/* Room for a part as large as the first device's arrays, and copies of its tables. */
static gmxfmm_status reserve_slab(gmxfmm_plan* plan, fmm_device* d)
{
    FMM_TRY(fmm_cuda_copy_transforms(plan, d));
    return fmm_cuda_reserve_background(plan, d);
}

gmxfmm_status fmm_cuda_reserve_slabs(gmxfmm_plan* plan)
{
    return fmm_cuda_reserve_far(plan, fmm_cuda_can_have_slabs(plan), &plan->device->group->slab_arrays, reserve_slab,
                                fmm_cuda_release_slabs);
}

/* Layers whose particles P2M reads: its first and last block may have cells of other parts, too. */
static void set_needed_layers(const gmxfmm_plan* plan, DeviceRange* range)
{
    const int* n    = fmm_convolved(plan)->n;
    const int  area = n[1] * n[2], size = fmm_cuda_p2m_leaves(plan);
    const int  first = range->slab.first_layer * area, end = range->slab.end_layer * area;
    range->first_layer = end > first ? first / size * size / area : 0;
    range->end_layer   = end > first ? blocks_for(std::min(blocks_for(end, size) * size, n[0] * area), area) : 0;
}

gmxfmm_status fmm_cuda_set_slabs(gmxfmm_plan* plan, const double* share, cudaStream_t stream)
{
    DeviceGroup* group = plan->device->group;
    const bool   can   = fmm_cuda_can_have_slabs(plan);
    const int    all[] = {can ? fmm_convolved(plan)->n[0] : 0, can ? num_columns(plan) : 0};
    double       sum   = 0;
    Slab         last  = {0, 0, 0, 0};
    group->slabs       = false;
    for (int k = 0; k < group->num; k++)
    {
        DeviceRange* range = &plan->device[k].range;
        sum += share[k];
        const double before = k < group->num - 1 ? std::min(sum, 1.0) : 1.0;
        last                = {last.end_layer, static_cast<int>(before * all[0] + 0.5), last.end_column,
                               static_cast<int>(before * all[1] + 0.5)};
        range->slab         = last;
        range->has_slab     = last.end_layer > last.first_layer || last.end_column > last.first_column;
        group->slabs        = group->slabs || (k > 0 && range->has_slab);
        group->far_share[k] = share[k];
        if (can)
        {
            set_needed_layers(plan, range);
        }
    }
    return has_s(plan) ? fmm_cuda_share_spectra(plan, stream) : GMXFMM_OK;
}

static inline bool has_layers(const fmm_device& d)
{
    return d.range.slab.end_layer > d.range.slab.first_layer;
}

static inline bool has_columns(const fmm_device& d)
{
    return d.range.slab.end_column > d.range.slab.first_column;
}

gmxfmm_status fmm_cuda_share_spectra(gmxfmm_plan* plan, cudaStream_t stream)
{
    const fmm_device* first = plan->device;
    const int         pairs = (2 * plan->far.order + 1) * (plan->far.order + 1); /* of degree 2 p */
    for (int k = 1; has_slabs(plan) && k < num_devices(first); k++)
    {
        const fmm_device& d = plan->device[k];
        if (has_columns(d))
        {
            FMM_TRY(copy_slab(plan, d.range.slab, pairs, first->far.cells.s.memory, d.far.cells.s.memory,
                              first->limits.processors, stream));
        }
    }
    return GMXFMM_OK;
}

PositionCopies fmm_cuda_position_copies(const gmxfmm_plan* plan)
{
    PositionCopies copies = {};
    const int      area   = fmm_convolved(plan)->n[1] * fmm_convolved(plan)->n[2];
    for (int k = 1; has_slabs(plan) && k < num_devices(plan->device); k++)
    {
        const fmm_device&  d     = plan->device[k];
        const DeviceRange& range = d.range;
        if (range.end_layer > range.first_layer)
        {
            copies.copy[copies.num++] = {range.first_layer * area, range.end_layer * area,
                                         d.particles.sources.xq.memory};
        }
    }
    return copies;
}

/* What device k has of the far field. */
static FarPart far_part(const gmxfmm_plan* plan, int k)
{
    fmm_device*              d    = &plan->device[k];
    const DeviceConvolution& c    = d->far.cells;
    const int                area = fmm_convolved(plan)->n[1] * fmm_convolved(plan)->n[2];
    FarPart                  far  = whole_far_field(plan);
    far.allowed                   = &d->allowed;
    far.has_chains                = d->has_chains;
    far.shared                    = true;
    far.slab                      = d->range.slab;
    far.first_cell                = d->range.slab.first_layer * area;
    far.end_cell                  = d->range.slab.end_layer * area;
    far.cell_start = far.target_start = d->particles.sources.cell_start.as<int>();
    far.xq = far.target_xq = d->particles.sources.xq.memory;
    far.multipole = far.local = far.field = c.field.memory;
    far.twiddles                          = c.twiddles.memory;
    far.s                                 = c.s.memory;
    far.work_items                        = c.work_items.memory;
    if (k > 0)
    {
        far.moments      = d->far.moments.background.as<double>();
        far.total_charge = far.moments + c_background - 1;
    }
    return far;
}

/* The spectra of all devices, of multipoles or, local, of what the product leaves where both are needed. */
static Spectra spectra_of(const gmxfmm_plan* plan, int own, bool local)
{
    Spectra all = {num_devices(plan->device), own, {}, {}, {}};
    for (int k = 0; k < all.num; k++)
    {
        const fmm_device& d = plan->device[k];
        all.array[k]        = (local ? d.far.cells.local_spectrum : d.far.cells.spectrum).memory;
        all.end_layer[k]    = d.range.slab.end_layer;
        all.end_column[k]   = d.range.slab.end_column;
    }
    return all;
}

/* The first device has to wait for the others whether it has a slab or not. */
static inline bool takes_part(const gmxfmm_plan* plan, int k)
{
    return k == 0 || plan->device[k].range.has_slab;
}

gmxfmm_status fmm_cuda_begin_slabs(gmxfmm_plan* plan, Moments moments)
{
    for (int k = 0; k < num_devices(plan->device); k++)
    {
        if (takes_part(plan, k))
        {
            const FarPart         far = far_part(plan, k);
            const DeviceSchedule& s   = plan->device[k].schedule;
            DeviceScope           scope(plan->device[k].id);
            FMM_TRY(fmm_cuda_p2m(plan, far, moments, s.far));
            FMM_TRY(fmm_cuda_planes(plan, far, true, spectra_of(plan, k, false), true, s.far));
            FMM_CUDA(plan, cudaEventRecord(s.sent, s.far));
        }
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_slab_moments(gmxfmm_plan* plan, bool sum, cudaStream_t stream)
{
    double* to[GMXFMM_MAX_DEVICES];
    int     num = 0;
    for (int k = 0; k < num_devices(plan->device); k++)
    {
        const fmm_device& d = plan->device[k];
        if (has_layers(d) && sum)
        {
            FMM_CUDA(plan, cudaStreamWaitEvent(stream, d.schedule.sent, 0));
        }
        if (has_layers(d) && k > 0)
        {
            to[num++] = d.far.moments.background.as<double>();
        }
    }
    return fmm_cuda_share_moments(plan, sum, to, num, stream);
}

/* What other devices have sent or returned to device k. */
static gmxfmm_status wait_for_others(gmxfmm_plan* plan, int k, bool returned)
{
    for (int i = 0; i < num_devices(plan->device); i++)
    {
        const fmm_device& other = plan->device[i];
        if (i != k && (returned ? has_columns(other) : has_layers(other)))
        {
            FMM_CUDA(plan, cudaStreamWaitEvent(plan->device[k].schedule.far,
                                               returned ? other.schedule.returned : other.schedule.sent, 0));
        }
    }
    return GMXFMM_OK;
}

/* The columns of device k: a product may write what others of its blocks have not read yet, and a virial reads it
 * later. */
static gmxfmm_status convolve_columns(gmxfmm_plan* plan, int k, bool virial, cudaEvent_t ready)
{
    const FarPart         far  = far_part(plan, k);
    const Spectra         from = spectra_of(plan, k, false);
    const Spectra         to   = spectra_of(plan, k, virial || plan->device->far.cells.num_parts > 1);
    const DeviceSchedule& s    = plan->device[k].schedule;
    DeviceScope           scope(plan->device[k].id);
    FMM_TRY(wait_for_others(plan, k, false));
    FMM_TRY(fmm_cuda_lines(plan, far, true, from, false, s.far));
    FMM_CUDA(plan, cudaEventRecord(s.spectrum_done, s.far));
    if (ready != NULL)
    {
        FMM_CUDA(plan, cudaStreamWaitEvent(s.far, ready, 0));
    }
    FMM_TRY(fmm_cuda_part_of_product(plan, far, from.array[k], to.array[k], ready == NULL, s.far));
    FMM_TRY(fmm_cuda_lines(plan, far, false, to, true, s.far));
    FMM_CUDA(plan, cudaEventRecord(s.returned, s.far));
    return GMXFMM_OK;
}

/* The rest of device k. */
static gmxfmm_status end_slab(gmxfmm_plan* plan, int k, bool virial, cudaEvent_t ready)
{
    const FarPart            far   = far_part(plan, k);
    const fmm_device&        d     = plan->device[k];
    const DeviceSchedule&    s     = d.schedule;
    const DeviceConvolution& first = plan->device->far.cells;
    DeviceScope              scope(d.id);
    FMM_TRY(wait_for_others(plan, k, true));
    if (ready != NULL)
    {
        FMM_CUDA(plan, cudaStreamWaitEvent(s.far, ready, 0));
    }
    FMM_TRY(fmm_cuda_planes(plan, far, false, spectra_of(plan, k, virial || first.num_parts > 1), false, s.far));
    FMM_TRY(fmm_cuda_l2p(plan, far, s.far));
    if (k == 0) /* the step records its own */
    {
        return GMXFMM_OK;
    }
    FMM_CUDA(plan, cudaEventRecord(s.far_done, s.far));
    if (virial && has_columns(d))
    {
        FMM_TRY(copy_slab(plan, d.range.slab, plan->device->far.num_coef, d.far.cells.spectrum.memory,
                          first.spectrum.memory, d.limits.processors, s.far));
        FMM_CUDA(plan, cudaEventRecord(s.gathered, s.far));
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_end_slabs(gmxfmm_plan* plan, bool virial, cudaEvent_t ready, bool before_product)
{
    for (int k = 0; k < num_devices(plan->device); k++)
    {
        if (takes_part(plan, k))
        {
            FMM_TRY(convolve_columns(plan, k, virial, before_product ? ready : NULL));
        }
    }
    for (int k = 0; k < num_devices(plan->device); k++)
    {
        if (takes_part(plan, k))
        {
            FMM_TRY(end_slab(plan, k, virial, before_product ? NULL : ready));
        }
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_wait_gathered(gmxfmm_plan* plan, cudaStream_t stream)
{
    for (int k = 1; k < num_devices(plan->device); k++)
    {
        if (has_columns(plan->device[k]))
        {
            FMM_CUDA(plan, cudaStreamWaitEvent(stream, plan->device[k].schedule.gathered, 0));
        }
    }
    return GMXFMM_OK;
}
