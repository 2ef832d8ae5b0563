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
    return has_parts(d) && d->parts->connected && d->parts->no_room != plan->far.arrays && fmm_is_periodic(plan) &&
           plan->domain.tree == NULL && d->far.cells.own_transforms && targets_of(d) == &d->particles.sources;
}

/* Room for a part as large as the first device's arrays, and copies of its tables. */
static gmxfmm_status reserve_slab(gmxfmm_plan* plan, DevicePart* part)
{
    const fmm_device* d   = plan->device;
    DeviceSlab*       far = &part->far;
    {
        DeviceScope scope(part->id);
        FMM_TRY(fmm_device_reserve(plan, &far->field, d->far.cells.field.capacity));
        FMM_TRY(fmm_device_reserve(plan, &far->spectrum, d->far.cells.spectrum.capacity));
        FMM_TRY(fmm_device_reserve(plan, &far->local_spectrum, d->far.cells.local_spectrum.capacity));
        FMM_TRY(fmm_device_reserve(plan, &far->s, d->far.cells.s.capacity));
        FMM_TRY(fmm_device_reserve(plan, &far->twiddles, d->far.cells.twiddles.capacity));
        FMM_TRY(fmm_device_reserve(plan, &far->work_items, d->far.cells.work_items.capacity));
        FMM_TRY(fmm_device_reserve(plan, &far->background, c_background * sizeof(double)));
    }
    FMM_TRY(fmm_cuda_upload(plan, far->twiddles.memory, d->far.cells.twiddles.memory, d->far.cells.twiddles.capacity));
    return fmm_cuda_upload(plan, far->work_items.memory, d->far.cells.work_items.memory,
                           d->far.cells.work_items.capacity);
}

gmxfmm_status fmm_cuda_release_slabs(gmxfmm_plan* plan)
{
    DeviceParts* parts = plan->device->parts;
    FMM_CUDA(plan, cudaStreamSynchronize(plan->device->schedule.own));
    parts->slab_arrays = 0;
    for (int k = 1; k < parts->num; k++)
    {
        DevicePart* part = &parts->part[k];
        DeviceSlab* far  = &part->far;
        DeviceScope scope(part->id);
        FMM_CUDA(plan, cudaStreamSynchronize(part->stream));
        FMM_CUDA(plan, cudaStreamSynchronize(far->stream));
        for (DeviceBuffer* buffer : {&far->field, &far->spectrum, &far->local_spectrum, &far->s, &far->twiddles,
                                     &far->work_items, &far->background})
        {
            fmm_device_release(plan, buffer);
        }
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_reserve_slabs(gmxfmm_plan* plan)
{
    DeviceParts* parts = plan->device->parts;
    if (!fmm_cuda_can_have_slabs(plan) || !fmm_cuda_may_share_far(plan))
    {
        return parts->slab_arrays != 0 ? fmm_cuda_release_slabs(plan) : GMXFMM_OK;
    }
    for (int k = 1; k < parts->num; k++)
    {
        const gmxfmm_status status = reserve_slab(plan, &parts->part[k]);
        if (status == GMXFMM_ERROR_MEMORY)
        {
            fmm_cuda_has_no_room(plan, parts->part[k].id);
            return fmm_cuda_release_slabs(plan);
        }
        FMM_TRY(status);
    }
    parts->slab_arrays = plan->far.arrays;
    return GMXFMM_OK;
}

/* Layers whose particles P2M reads: its first and last block may have cells of other parts, too. */
static void set_needed_layers(const gmxfmm_plan* plan, DeviceSlab* far)
{
    const int* n    = fmm_convolved(plan)->n;
    const int  area = n[1] * n[2], size = fmm_cuda_p2m_leaves(plan);
    const int  first = far->slab.first_layer * area, end = far->slab.end_layer * area;
    far->first_layer = end > first ? first / size * size / area : 0;
    far->end_layer   = end > first ? blocks_for(std::min(blocks_for(end, size) * size, n[0] * area), area) : 0;
}

gmxfmm_status fmm_cuda_set_slabs(gmxfmm_plan* plan, const double* share, cudaStream_t stream)
{
    DeviceParts* parts = plan->device->parts;
    const bool   can   = fmm_cuda_can_have_slabs(plan);
    const int    all[] = {can ? fmm_convolved(plan)->n[0] : 0, can ? num_columns(plan) : 0};
    double       sum   = 0;
    Slab         last  = {0, 0, 0, 0};
    parts->slabs       = false;
    for (int k = 0; k < parts->num; k++)
    {
        DeviceSlab* far = &parts->part[k].far;
        sum += share[k];
        const double before = k < parts->num - 1 ? std::min(sum, 1.0) : 1.0;
        far->slab           = {last.end_layer, static_cast<int>(before * all[0] + 0.5), last.end_column,
                               static_cast<int>(before * all[1] + 0.5)};
        far->active  = far->slab.end_layer > far->slab.first_layer || far->slab.end_column > far->slab.first_column;
        last         = far->slab;
        parts->slabs = parts->slabs || (k > 0 && far->active);
        parts->far_share[k] = share[k];
        if (can)
        {
            set_needed_layers(plan, far);
        }
    }
    return has_s(plan) ? fmm_cuda_share_spectra(plan, stream) : GMXFMM_OK;
}

static inline bool has_layers(const DevicePart& part)
{
    return part.far.slab.end_layer > part.far.slab.first_layer;
}

static inline bool has_columns(const DevicePart& part)
{
    return part.far.slab.end_column > part.far.slab.first_column;
}

gmxfmm_status fmm_cuda_share_spectra(gmxfmm_plan* plan, cudaStream_t stream)
{
    const fmm_device*  d     = plan->device;
    const DeviceParts* parts = d->parts;
    if (!has_slabs(plan))
    {
        return GMXFMM_OK;
    }
    const int pairs = (2 * plan->far.order + 1) * (plan->far.order + 1); /* of degree 2 p */
    for (int k = 1; k < parts->num; k++)
    {
        const DeviceSlab& far = parts->part[k].far;
        if (has_columns(parts->part[k]))
        {
            FMM_TRY(
                copy_slab(plan, far.slab, pairs, d->far.cells.s.memory, far.s.memory, d->limits.processors, stream));
        }
    }
    return GMXFMM_OK;
}

PositionCopies fmm_cuda_position_copies(const gmxfmm_plan* plan)
{
    const DeviceParts* parts  = plan->device->parts;
    PositionCopies     copies = {};
    for (int k = 1; has_slabs(plan) && k < parts->num; k++)
    {
        const DevicePart& part = parts->part[k];
        const int         area = fmm_convolved(plan)->n[1] * fmm_convolved(plan)->n[2];
        if (part.far.end_layer > part.far.first_layer)
        {
            copies.copy[copies.num++] = {part.far.first_layer * area, part.far.end_layer * area, part.sources.memory};
        }
    }
    return copies;
}

/* Part number k of the far field. */
static FarPart far_part(const gmxfmm_plan* plan, int k)
{
    DevicePart* part = &plan->device->parts->part[k];
    DeviceSlab* own  = &part->far;
    const int   area = fmm_convolved(plan)->n[1] * fmm_convolved(plan)->n[2];
    FarPart     far  = whole_far_field(plan);
    far.shared       = true;
    far.slab         = own->slab;
    far.first_cell   = own->slab.first_layer * area;
    far.end_cell     = own->slab.end_layer * area;
    if (k > 0)
    {
        far.allowed    = &part->allowed;
        far.has_chains = part->has_chains;
        far.cell_start = far.target_start = part->cell_start.as<int>();
        far.xq = far.target_xq = part->sources.memory;
        far.multipole = far.local = far.field = own->field.memory;
        far.twiddles                          = own->twiddles.memory;
        far.s                                 = own->s.memory;
        far.work_items                        = own->work_items.memory;
        far.moments                           = own->background.as<double>();
        far.total_charge                      = own->background.as<double>() + c_background - 1;
    }
    return far;
}

/* The spectra of all devices, of multipoles or, local, of what the product leaves where both are needed. */
static Spectra spectra_of(const gmxfmm_plan* plan, int own, bool local)
{
    const fmm_device*  d     = plan->device;
    const DeviceParts* parts = d->parts;
    Spectra            all   = {parts->num, own, {}, {}, {}};
    for (int k = 0; k < parts->num; k++)
    {
        const DeviceSlab& far = parts->part[k].far;
        all.array[k]          = k == 0 ? (local ? d->far.cells.local_spectrum.memory : d->far.cells.spectrum.memory)
                                       : (local ? far.local_spectrum.memory : far.spectrum.memory);
        all.end_layer[k]      = far.slab.end_layer;
        all.end_column[k]     = far.slab.end_column;
    }
    return all;
}

/* The first part has to wait for the others whether it has a slab or not. */
static inline bool takes_part(const DeviceParts* parts, int k)
{
    return k == 0 || parts->part[k].far.active;
}

static inline cudaStream_t stream_of(const gmxfmm_plan* plan, int k)
{
    return k == 0 ? plan->device->schedule.far : plan->device->parts->part[k].far.stream;
}

gmxfmm_status fmm_cuda_begin_slabs(gmxfmm_plan* plan, Moments moments)
{
    const DeviceParts* parts = plan->device->parts;
    for (int k = 0; k < parts->num; k++)
    {
        if (takes_part(parts, k))
        {
            const FarPart      far    = far_part(plan, k);
            const cudaStream_t stream = stream_of(plan, k);
            DeviceScope        scope(parts->part[k].id);
            FMM_TRY(fmm_cuda_p2m(plan, far, moments, stream));
            FMM_TRY(fmm_cuda_planes(plan, far, true, spectra_of(plan, k, false), true, stream));
            FMM_CUDA(plan, cudaEventRecord(parts->part[k].far.sent, stream));
        }
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_slab_moments(gmxfmm_plan* plan, bool sum, cudaStream_t stream)
{
    const DeviceParts* parts = plan->device->parts;
    double*            to[GMXFMM_MAX_DEVICES];
    int                num = 0;
    for (int k = 0; k < parts->num; k++)
    {
        if (has_layers(parts->part[k]) && sum)
        {
            FMM_CUDA(plan, cudaStreamWaitEvent(stream, parts->part[k].far.sent, 0));
        }
        if (has_layers(parts->part[k]) && k > 0)
        {
            to[num++] = parts->part[k].far.background.as<double>();
        }
    }
    return fmm_cuda_share_moments(plan, sum, to, num, stream);
}

/* What other parts have sent or returned to part k. */
static gmxfmm_status wait_for_others(gmxfmm_plan* plan, int k, bool returned)
{
    const DeviceParts* parts = plan->device->parts;
    for (int i = 0; i < parts->num; i++)
    {
        const DevicePart& other = parts->part[i];
        if (i != k && (returned ? has_columns(other) : has_layers(other)))
        {
            FMM_CUDA(plan, cudaStreamWaitEvent(stream_of(plan, k), returned ? other.far.returned : other.far.sent, 0));
        }
    }
    return GMXFMM_OK;
}

/* The columns of part k: a product may write what others of its blocks have not read yet, and a virial reads it later.
 */
static gmxfmm_status convolve_columns(gmxfmm_plan* plan, int k, bool virial, cudaEvent_t ready)
{
    const FarPart      far    = far_part(plan, k);
    const cudaStream_t stream = stream_of(plan, k);
    const Spectra      from   = spectra_of(plan, k, false);
    const Spectra      to     = spectra_of(plan, k, virial || plan->device->far.cells.num_parts > 1);
    DeviceParts*       parts  = plan->device->parts;
    DeviceScope        scope(parts->part[k].id);
    FMM_TRY(wait_for_others(plan, k, false));
    FMM_TRY(fmm_cuda_lines(plan, far, true, from, false, stream));
    FMM_CUDA(plan,
             cudaEventRecord(k == 0 ? plan->device->schedule.spectrum_done : parts->part[k].far.spectrum_done, stream));
    if (ready != NULL)
    {
        FMM_CUDA(plan, cudaStreamWaitEvent(stream, ready, 0));
    }
    FMM_TRY(fmm_cuda_part_of_product(plan, far, from.array[k], to.array[k], ready == NULL, stream));
    FMM_TRY(fmm_cuda_lines(plan, far, false, to, true, stream));
    FMM_CUDA(plan, cudaEventRecord(parts->part[k].far.returned, stream));
    return GMXFMM_OK;
}

/* The rest of part k. */
static gmxfmm_status end_slab(gmxfmm_plan* plan, int k, bool virial, cudaEvent_t ready)
{
    const FarPart      far    = far_part(plan, k);
    const cudaStream_t stream = stream_of(plan, k);
    DevicePart*        part   = &plan->device->parts->part[k];
    DeviceScope        scope(part->id);
    FMM_TRY(wait_for_others(plan, k, true));
    if (ready != NULL)
    {
        FMM_CUDA(plan, cudaStreamWaitEvent(stream, ready, 0));
    }
    FMM_TRY(fmm_cuda_planes(plan, far, false, spectra_of(plan, k, virial || plan->device->far.cells.num_parts > 1),
                            false, stream));
    FMM_TRY(fmm_cuda_l2p(plan, far, stream));
    if (k == 0)
    {
        return GMXFMM_OK;
    }
    FMM_CUDA(plan, cudaEventRecord(part->far.far_done, stream));
    if (virial && has_columns(*part))
    {
        FMM_TRY(copy_slab(plan, part->far.slab, plan->device->far.num_coef, part->far.spectrum.memory,
                          plan->device->far.cells.spectrum.memory, part->processors, stream));
        FMM_CUDA(plan, cudaEventRecord(part->far.gathered, stream));
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_end_slabs(gmxfmm_plan* plan, bool virial, cudaEvent_t ready, bool before_product)
{
    const DeviceParts* parts = plan->device->parts;
    for (int k = 0; k < parts->num; k++)
    {
        if (takes_part(parts, k))
        {
            FMM_TRY(convolve_columns(plan, k, virial, before_product ? ready : NULL));
        }
    }
    for (int k = 0; k < parts->num; k++)
    {
        if (takes_part(parts, k))
        {
            FMM_TRY(end_slab(plan, k, virial, before_product ? NULL : ready));
        }
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_wait_gathered(gmxfmm_plan* plan, cudaStream_t stream)
{
    const DeviceParts* parts = plan->device->parts;
    for (int k = 1; k < parts->num; k++)
    {
        if (has_columns(parts->part[k]))
        {
            FMM_CUDA(plan, cudaStreamWaitEvent(stream, parts->part[k].far.gathered, 0));
        }
    }
    return GMXFMM_OK;
}
