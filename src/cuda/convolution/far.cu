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

/* The spectra of all devices, of multipoles or, local, of what the product leaves where both are needed. */
static Spectra spectra_of(const gmxfmm_plan* plan, int own, bool local)
{
    Spectra all = {num_devices(plan->device), own, {}, {}, {}};
    for (int k = 0; k < all.num; k++)
    {
        const fmm_device& d = plan->device[k];
        all.array[k]        = (local ? d.far.cells.local_spectrum : d.far.cells.spectrum).memory;
        all.end_layer[k]    = d.range.grid.end_layer;
        all.end_column[k]   = d.range.grid.end_column;
    }
    return all;
}

/* What device k needs of others: their planes, or columns that come back. */
static gmxfmm_status wait_for_others(gmxfmm_plan* plan, int k, bool returned)
{
    for (int i = 0; shares_cells(plan) && i < num_devices(plan->device); i++)
    {
        const fmm_device* other = &plan->device[i];
        if (i != k && (returned ? has_columns(other) : has_layers(other)))
        {
            FMM_CUDA(plan, cudaStreamWaitEvent(plan->device[k].schedule.far,
                                               returned ? other->schedule.returned : other->schedule.sent, 0));
        }
    }
    return GMXFMM_OK;
}

/* The layers of device k forward. */
static gmxfmm_status convolve_layers(gmxfmm_plan* plan, int k)
{
    const FarRange        far = far_range(plan, k);
    const DeviceSchedule& s   = plan->device[k].schedule;
    DeviceScope           scope(plan->device[k].id);
    FMM_TRY(fmm_cuda_planes(plan, far, true, spectra_of(plan, k, false), true, s.far));
    FMM_CUDA(plan, far.shared ? cudaEventRecord(s.sent, s.far) : cudaSuccess);
    return GMXFMM_OK;
}

/* The columns of device k: forward, the product, and back. */
static gmxfmm_status convolve_columns(gmxfmm_plan* plan, int k, bool beside, cudaEvent_t ready)
{
    const FarRange        far  = far_range(plan, k);
    const Spectra         from = spectra_of(plan, k, false), to = spectra_of(plan, k, beside);
    const DeviceSchedule& s = plan->device[k].schedule;
    DeviceScope           scope(plan->device[k].id);
    FMM_TRY(wait_for_others(plan, k, false));
    FMM_TRY(fmm_cuda_lines(plan, far, true, from, !far.shared, s.far));
    FMM_CUDA(plan, cudaEventRecord(s.spectrum_done, s.far));
    FMM_CUDA(plan, ready != NULL ? cudaStreamWaitEvent(s.far, ready, 0) : cudaSuccess);
    FMM_TRY(fmm_cuda_product(plan, far, from.array[k], to.array[k], !far.shared || ready == NULL, s.far));
    FMM_TRY(fmm_cuda_lines(plan, far, false, to, true, s.far));
    FMM_CUDA(plan, far.shared ? cudaEventRecord(s.returned, s.far) : cudaSuccess);
    return GMXFMM_OK;
}

/* The layers of device k back. */
static gmxfmm_status return_layers(gmxfmm_plan* plan, int k, bool beside)
{
    const FarRange far = far_range(plan, k);
    DeviceScope    scope(plan->device[k].id);
    FMM_TRY(wait_for_others(plan, k, true));
    return fmm_cuda_planes(plan, far, false, spectra_of(plan, k, beside), !far.shared, plan->device[k].schedule.far);
}

gmxfmm_status fmm_cuda_convolve(gmxfmm_plan* plan, bool virial, cudaEvent_t ready)
{
    /* a block may write what others of the same frequencies have not read yet, and a virial reads it later */
    const bool beside = virial || plan->device->far.cells.num_parts > 1;
    const int  num    = num_devices(plan->device);
    for (int k = 0; k < num; k++)
    {
        FMM_TRY(convolves(plan, k) ? convolve_layers(plan, k) : GMXFMM_OK);
    }
    for (int k = 0; k < num; k++)
    {
        FMM_TRY(convolves(plan, k) ? convolve_columns(plan, k, beside, ready) : GMXFMM_OK);
    }
    for (int k = 0; k < num; k++)
    {
        FMM_TRY(convolves(plan, k) ? return_layers(plan, k, beside) : GMXFMM_OK);
    }
    return GMXFMM_OK;
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

static bool can_share_cells(const gmxfmm_plan* plan)
{
    const fmm_device* d = plan->device;
    return fmm_is_periodic(plan) && d->far.cells.own_transforms && targets_of(d) == &d->particles.sources;
}

/* What a device that convolves a range has: arrays as large as those of the first, and copies of its tables. */
enum
{
    c_rangeArrays = 6,
    c_rangeTables = 2 /* the first of these */
};

static DeviceBuffer* range_array(DeviceConvolution* c, int i)
{
    DeviceBuffer* all[] = {&c->twiddles, &c->work_items, &c->field, &c->spectrum, &c->local_spectrum, &c->s};
    static_assert(sizeof(all) / sizeof(all[0]) == static_cast<size_t>(c_rangeArrays), "all of them");
    return all[i];
}

static gmxfmm_status reserve_range(gmxfmm_plan* plan, fmm_device* d)
{
    for (int i = 0; i < c_rangeArrays; i++)
    {
        const DeviceBuffer* from = range_array(&plan->device->far.cells, i);
        DeviceBuffer*       to   = range_array(&d->far.cells, i);
        FMM_TRY(fmm_cuda_reserve_like(plan, d, to, *from));
        FMM_TRY(i < c_rangeTables ? fmm_cuda_upload(plan, to->memory, from->memory, from->capacity) : GMXFMM_OK);
    }
    return fmm_cuda_reserve_background(plan, d);
}

static void release_range(gmxfmm_plan* plan, fmm_device* d)
{
    for (int i = 0; i < c_rangeArrays; i++)
    {
        fmm_device_release(plan, range_array(&d->far.cells, i));
    }
    fmm_cuda_release_background(plan, d);
}

const DevicePath fmm_cuda_by_cells = {create_cells,      fmm_cuda_set_lattice, NULL,
                                      fmm_cuda_convolve, expansions_of_cells,  can_share_cells,
                                      reserve_range,     release_range,        size_t(4) << 20};
