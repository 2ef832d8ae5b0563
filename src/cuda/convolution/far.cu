/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The far field by cells of one level: a convolution over their grid. An octree uses the convolution for its roots. */
#include "cuda/convolution/convolution.h"
#include "cuda/expansions/expansions.h"

void fmm_cuda_free_transforms(fmm_device* device)
{
    if (device->far.cells.has_transforms)
    {
        cufftDestroy(device->far.cells.forward);
        cufftDestroy(device->far.cells.backward);
        device->far.cells.has_transforms = 0;
    }
}

static gmxfmm_status make_transforms(gmxfmm_plan* plan)
{
    fmm_device*       d    = plan->device;
    const int*        c    = fmm_convolved(plan)->n;
    int               n[3] = {c[0], c[1], c[2]}; /* a copy, since cuFFT takes no const array */
    const bool        dp   = is_double(plan);
    const cufftResult first =
        cufftPlanMany(&d->far.cells.forward, 3, n, NULL, 1, 0, NULL, 1, 0, dp ? CUFFT_D2Z : CUFFT_R2C, d->far.num_coef);
    const cufftResult second = first == CUFFT_SUCCESS ? cufftPlanMany(&d->far.cells.backward, 3, n, NULL, 1, 0, NULL, 1,
                                                                      0, dp ? CUFFT_Z2D : CUFFT_C2R, d->far.num_coef)
                                                      : first;
    if (first == CUFFT_SUCCESS && second != CUFFT_SUCCESS)
    {
        cufftDestroy(d->far.cells.forward);
    }
    if (second != CUFFT_SUCCESS)
    {
        return fmm_fail(plan, second == CUFFT_ALLOC_FAILED ? GMXFMM_ERROR_MEMORY : GMXFMM_ERROR_DEVICE,
                        "cuFFT makes no plan for %d transforms of %d x %d x %d cells (error %d)", d->far.num_coef, n[0],
                        n[1], n[2], static_cast<int>(second));
    }
    d->far.cells.has_transforms = 1;
    return GMXFMM_OK;
}

/* Pairs (P, Q) of a spectrum of degree `top`, one for each degree and 0 <= m <= degree. */
static size_t pairs(int top)
{
    return static_cast<size_t>(top + 1) * static_cast<size_t>(top + 2) / 2;
}

gmxfmm_status fmm_cuda_set_transforms(gmxfmm_plan* plan)
{
    fmm_device*      d    = plan->device;
    const fmm_cells* c    = fmm_convolved(plan);
    d->far.cells.num_freq = c->n[0] * c->n[1] * (c->n[2] / 2 + 1);
    const size_t coef = static_cast<size_t>(d->far.num_coef), real = real_size(plan);
    const size_t cells = static_cast<size_t>(c->num_cells), freq = static_cast<size_t>(d->far.cells.num_freq);
    FMM_TRY(fmm_device_reserve(plan, &d->far.cells.field, coef * cells * real));
    FMM_TRY(fmm_device_reserve(plan, &d->far.cells.spectrum, coef * freq * 2 * real));
    FMM_TRY(fmm_device_reserve(plan, &d->far.cells.local_spectrum, coef * freq * 2 * real));
    FMM_TRY(fmm_device_reserve(plan, &d->far.cells.s, pairs(2 * plan->far.order) * freq * 2 * real));
    FMM_TRY(fmm_device_reserve(plan, &d->far.cells.z, pairs(2 * plan->far.order + 2) * freq * 2 * real));
    FMM_TRY(fmm_device_reserve(plan, &d->far.cells.virial,
                               static_cast<size_t>(fmm_cuda_virial_blocks(plan)) * 5 * sizeof(double)));
    FMM_TRY(fmm_cuda_product_items(plan));
    FMM_TRY(fmm_cuda_fft_prepare(plan));
    return d->far.cells.own_transforms ? GMXFMM_OK : make_transforms(plan);
}

gmxfmm_status fmm_cuda_reserve_nodes(gmxfmm_plan* plan)
{
    DeviceConvolution* cells = &plan->device->far.cells;
    for (int i = 0; i < FMM_LINE_NODES && plan->far.line.active; i++)
    {
        FMM_TRY(fmm_device_reserve(plan, &cells->node_s[i], cells->s.capacity));
        FMM_TRY(fmm_device_reserve(plan, &cells->node_z[i], cells->z.capacity));
    }
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_copy_transforms(gmxfmm_plan* plan, fmm_device* to)
{
    const DeviceConvolution& first = plan->device->far.cells;
    DeviceConvolution*       c     = &to->far.cells;
    {
        DeviceScope scope(to->id);
        FMM_TRY(fmm_device_reserve(plan, &c->field, first.field.capacity));
        FMM_TRY(fmm_device_reserve(plan, &c->spectrum, first.spectrum.capacity));
        FMM_TRY(fmm_device_reserve(plan, &c->local_spectrum, first.local_spectrum.capacity));
        FMM_TRY(fmm_device_reserve(plan, &c->s, first.s.capacity));
        FMM_TRY(fmm_device_reserve(plan, &c->twiddles, first.twiddles.capacity));
        FMM_TRY(fmm_device_reserve(plan, &c->work_items, first.work_items.capacity));
    }
    FMM_TRY(fmm_cuda_upload(plan, c->twiddles.memory, first.twiddles.memory, first.twiddles.capacity));
    return fmm_cuda_upload(plan, c->work_items.memory, first.work_items.memory, first.work_items.capacity);
}

void fmm_cuda_release_transforms(gmxfmm_plan* plan, fmm_device* to)
{
    DeviceConvolution* c = &to->far.cells;
    for (DeviceBuffer* buffer : {&c->field, &c->spectrum, &c->local_spectrum, &c->s, &c->twiddles, &c->work_items})
    {
        fmm_device_release(plan, buffer);
    }
}

gmxfmm_status fmm_cuda_convolve(gmxfmm_plan* plan, bool virial, cudaEvent_t ready, cudaStream_t stream)
{
    fmm_device* d = plan->device;
    /* a block may write what others of the same frequencies have not read yet, and a virial reads it later */
    const DeviceBuffer& to = virial || d->far.cells.num_parts > 1 ? d->far.cells.local_spectrum : d->far.cells.spectrum;
    FMM_TRY(fmm_cuda_transform(plan, true, d->far.cells.spectrum, stream));
    FMM_CUDA(plan, cudaEventRecord(d->schedule.spectrum_done, stream));
    if (ready != NULL)
    {
        FMM_CUDA(plan, cudaStreamWaitEvent(stream, ready, 0));
    }
    FMM_TRY(fmm_cuda_product(plan, to, stream));
    return fmm_cuda_transform(plan, false, to, stream);
}

static gmxfmm_status create_cells(gmxfmm_plan* plan)
{
    FMM_TRY(fmm_cuda_p2m_reserve(plan));
    return fmm_cuda_set_transforms(plan);
}

static Expansions expansions_of_cells(const gmxfmm_plan* plan)
{
    const fmm_device* d = plan->device;
    Expansions        far;
    far.leaves.num    = plan->domain.cells.num_cells;
    far.leaves.edge   = 1;
    far.leaves.stride = static_cast<size_t>(far.leaves.num);
    far.leaves.cell   = NULL;
    far.multipole     = d->far.cells.field.memory;
    far.local         = d->far.cells.field.memory;
    far.strain        = NULL;
    return far;
}

const DevicePath fmm_cuda_by_cells = {create_cells,      fmm_cuda_set_lattice, NULL,
                                      fmm_cuda_convolve, expansions_of_cells,  size_t(4) << 20};
