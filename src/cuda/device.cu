/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Life cycle of a plan's device part: streams, memory, charges, exclusions, transforms. */
#include "cuda/state.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "fmm/math/harmonics.h"

gmxfmm_status fmm_device_check(int id, char* message, size_t size)
{
    int          count  = 0;
    DeviceLimits limits = {0, 0};
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
        std::snprintf(message, size, "device_id is %d, but there are %d CUDA devices", id, count);
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

gmxfmm_status fmm_cuda_failed(gmxfmm_plan* plan, cudaError_t error, const char* call, const char* file, int line)
{
    return fmm_describe_failure(error, call, file, line, plan->message, sizeof(plan->message));
}

gmxfmm_status fmm_device_reserve(gmxfmm_plan* plan, DeviceBuffer* buffer, size_t bytes)
{
    if (bytes <= buffer->capacity && buffer->memory != NULL)
    {
        return GMXFMM_OK;
    }
    plan->bytes -= buffer->capacity;
    const cudaError_t error = buffer->reserve((bytes + 511) / 256 * 256);
    plan->bytes += buffer->capacity;
    FMM_CUDA(plan, error);
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_upload(gmxfmm_plan* plan, void* to, const void* from, size_t bytes)
{
    if (bytes > 0)
    {
        FMM_CUDA(plan, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, plan->device->own));
        FMM_CUDA(plan, cudaStreamSynchronize(plan->device->own));
    }
    return GMXFMM_OK;
}

static gmxfmm_status make_streams(gmxfmm_plan* plan)
{
    fmm_device* device = plan->device;
    int         low = 0, high = 0;
    FMM_CUDA(plan, cudaDeviceGetStreamPriorityRange(&low, &high));
    /* The far field is a chain of short kernels, which must not queue behind the blocks of the near field; and the near
     * field not behind what a host program runs beside it at the lowest priority, which fills the near field's tail
     * then. Smaller numbers are higher priorities. */
    const int near = low - high > 1 ? low - 1 : low;
    FMM_CUDA(plan, cudaStreamCreateWithPriority(&device->far, cudaStreamNonBlocking, high));
    FMM_CUDA(plan, cudaStreamCreateWithPriority(&device->beside, cudaStreamNonBlocking, high));
    FMM_CUDA(plan, cudaStreamCreateWithPriority(&device->near, cudaStreamNonBlocking, near));
    FMM_CUDA(plan, cudaStreamCreateWithPriority(&device->ahead, cudaStreamNonBlocking, low));
    FMM_CUDA(plan, cudaStreamCreateWithPriority(&device->sums, cudaStreamNonBlocking, low));
    FMM_CUDA(plan, cudaStreamCreateWithPriority(&device->own, cudaStreamNonBlocking, high));
    FMM_CUDA(plan, cudaEventCreateWithFlags(&device->fork, cudaEventDisableTiming));
    FMM_CUDA(plan, cudaEventCreateWithFlags(&device->near_done, cudaEventDisableTiming));
    FMM_CUDA(plan, cudaEventCreateWithFlags(&device->far_done, cudaEventDisableTiming));
    FMM_CUDA(plan, cudaEventCreateWithFlags(&device->beside_done, cudaEventDisableTiming));
    FMM_CUDA(plan, cudaEventCreateWithFlags(&device->ahead_done, cudaEventDisableTiming));
    FMM_CUDA(plan, cudaEventCreateWithFlags(&device->spectrum_done, cudaEventDisableTiming));
    FMM_CUDA(plan, cudaEventCreateWithFlags(&device->output_done, cudaEventDisableTiming));
    FMM_CUDA(plan, cudaEventCreateWithFlags(&device->sums_done, cudaEventDisableTiming));
    FMM_CUDA(plan, cudaEventCreate(&device->begin));
    FMM_CUDA(plan, cudaEventCreate(&device->end));
    FMM_CUDA(plan, device_limits(device->id, &device->limits));
    FMM_TRY(fmm_cuda_find_chains(plan));
    FMM_TRY(fmm_device_reserve(plan, &device->box, sizeof(BoxValues)));
    FMM_TRY(fmm_device_reserve(plan, &device->results, sizeof(StepResults)));
    FMM_TRY(fmm_device_reserve(plan, &device->assign_results, sizeof(AssignResults)));
    FMM_TRY(fmm_device_reserve(plan, &device->partial, sizeof(double) * c_numSums * 2 * c_sumBlocks));
    FMM_CUDA(plan, cudaMemset(device->results.memory, 0, sizeof(StepResults)));
    FMM_CUDA(plan, cudaMemset(&device->results.as<StepResults>()->bad_positions, c_none & 0xff, 3 * sizeof(int)));
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
    /* now, since an open system has its octree only when it is assigned */
    const bool known = plan->far.m2l == GMXFMM_M2L_ROTATION && plan->options.order >= 0;
    return known ? fmm_cuda_rotation_create(plan, plan->options.order) : GMXFMM_OK;
}

static void free_transforms(fmm_device* device)
{
    if (device->has_transforms)
    {
        cufftDestroy(device->forward);
        cufftDestroy(device->backward);
        device->has_transforms = 0;
    }
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
    free_transforms(d);
    fmm_cuda_tree_destroy(plan);
    cudaStreamDestroy(d->near);
    cudaStreamDestroy(d->far);
    cudaStreamDestroy(d->beside);
    cudaStreamDestroy(d->ahead);
    cudaStreamDestroy(d->sums);
    cudaStreamDestroy(d->own);
    cudaEventDestroy(d->fork);
    cudaEventDestroy(d->near_done);
    cudaEventDestroy(d->far_done);
    cudaEventDestroy(d->beside_done);
    cudaEventDestroy(d->ahead_done);
    cudaEventDestroy(d->spectrum_done);
    cudaEventDestroy(d->output_done);
    cudaEventDestroy(d->sums_done);
    cudaEventDestroy(d->begin);
    cudaEventDestroy(d->end);
    std::free(d->host_copy);
    std::free(d->near_on_device);
    delete d; /* and all buffers */
    plan->device = NULL;
}

static gmxfmm_status reserve_set(gmxfmm_plan* plan, ParticleSet* set, int64_t num)
{
    const size_t n = static_cast<size_t>(num) + 1;
    FMM_TRY(fmm_device_reserve(plan, &set->sorted, n * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &set->position, n * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &set->cell_of, n * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &set->anchor, n * sizeof(Anchor)));
    FMM_TRY(fmm_device_reserve(plan, &set->xq, n * 4 * real_size(plan)));
    set->n = static_cast<int>(num);
    return GMXFMM_OK;
}

/* What serves both sets, or the one that receives. */
static gmxfmm_status reserve_particles(gmxfmm_plan* plan)
{
    fmm_device*  d    = plan->device;
    const int    most = d->sources.n > d->targets.n ? d->sources.n : d->targets.n;
    const size_t n = static_cast<size_t>(most) + 1, targets = static_cast<size_t>(targets_of(d)->n) + 1;
    const size_t vec  = 4 * real_size(plan);
    const size_t word = plan->options.array_type == GMXFMM_DOUBLE ? sizeof(double) : sizeof(float);
    FMM_TRY(fmm_device_reserve(plan, &d->keys, n * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &d->values, n * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &d->references, 3 * n * sizeof(float)));
    FMM_TRY(fmm_device_reserve(plan, &d->special_start, n * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &d->far_start, n * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &d->near_out, targets * vec));
    FMM_TRY(fmm_device_reserve(plan, &d->far_out, targets * vec));
    /* positions, forces, fields, potentials of a synchronous execute */
    FMM_TRY(fmm_device_reserve(plan, &d->x_copy, 3 * n * word));
    FMM_TRY(fmm_device_reserve(plan, &d->out_copy, 7 * targets * word));
    /* what a step leaves out (stages) must be finite all the same */
    FMM_CUDA(plan, cudaMemset(d->near_out.memory, 0, targets * vec));
    FMM_CUDA(plan, cudaMemset(d->far_out.memory, 0, targets * vec));
    return GMXFMM_OK;
}

gmxfmm_status fmm_device_set_charges(gmxfmm_plan* plan)
{
    fmm_device*  d = plan->device;
    const size_t n = static_cast<size_t>(plan->particles.n);
    DeviceScope  scope(d->id);
    FMM_CUDA(plan, cudaDeviceSynchronize()); /* an enqueued step may be reading the old ones */
    if (d->sources.n != plan->particles.n || d->keys.memory == NULL)
    {
        FMM_TRY(reserve_set(plan, &d->sources, plan->particles.n));
        FMM_TRY(reserve_particles(plan));
    }
    FMM_TRY(fmm_device_reserve(plan, &d->charge, n * sizeof(double)));
    FMM_TRY(fmm_cuda_upload(plan, d->charge.memory, plan->charges.q, n * sizeof(double)));
    return fmm_is_assigned(plan) ? fmm_cuda_sort_charges(plan) : GMXFMM_OK;
}

gmxfmm_status fmm_device_set_targets(gmxfmm_plan* plan, const void* x)
{
    fmm_device*  d    = plan->device;
    const size_t word = plan->options.array_type == GMXFMM_DOUBLE ? sizeof(double) : sizeof(float);
    const size_t size = 3 * static_cast<size_t>(plan->particles.num_targets) * word;
    DeviceScope  scope(d->id);
    FMM_CUDA(plan, cudaDeviceSynchronize());
    FMM_TRY(reserve_set(plan, &d->targets, plan->particles.num_targets));
    FMM_TRY(reserve_particles(plan));
    FMM_TRY(fmm_device_reserve(plan, &d->target_x, size));
    return fmm_cuda_upload(plan, d->target_x.memory, x, size);
}

gmxfmm_status fmm_device_set_exclusions(gmxfmm_plan* plan, const int* start, const int* list, int64_t n)
{
    fmm_device* d = plan->device;
    DeviceScope scope(d->id);
    d->has_exclusions = start != NULL;
    if (start != NULL)
    {
        const size_t starts = (static_cast<size_t>(n) + 1) * sizeof(int);
        const size_t words  = static_cast<size_t>(start[n]) * sizeof(int);
        FMM_TRY(fmm_device_reserve(plan, &d->excl_start, starts));
        FMM_TRY(fmm_device_reserve(plan, &d->excl_list, words));
        FMM_TRY(fmm_cuda_upload(plan, d->excl_start.memory, start, starts));
        FMM_TRY(fmm_cuda_upload(plan, d->excl_list.memory, list, words));
    }
    return GMXFMM_OK;
}

static gmxfmm_status make_transforms(gmxfmm_plan* plan)
{
    fmm_device*       d    = plan->device;
    const int*        c    = fmm_convolved(plan)->n;
    int               n[3] = {c[0], c[1], c[2]}; /* cuFFT asks for one it may write to */
    const bool        dp   = is_double(plan);
    const cufftResult first =
        cufftPlanMany(&d->forward, 3, n, NULL, 1, 0, NULL, 1, 0, dp ? CUFFT_D2Z : CUFFT_R2C, d->num_coef);
    const cufftResult second = first == CUFFT_SUCCESS ? cufftPlanMany(&d->backward, 3, n, NULL, 1, 0, NULL, 1, 0,
                                                                      dp ? CUFFT_Z2D : CUFFT_C2R, d->num_coef)
                                                      : first;
    if (first == CUFFT_SUCCESS && second != CUFFT_SUCCESS)
    {
        cufftDestroy(d->forward);
    }
    if (second != CUFFT_SUCCESS)
    {
        return fmm_fail(plan, second == CUFFT_ALLOC_FAILED ? GMXFMM_ERROR_MEMORY : GMXFMM_ERROR_DEVICE,
                        "cuFFT makes no plan for %d transforms of %d x %d x %d cells (error %d)", d->num_coef, n[0],
                        n[1], n[2], static_cast<int>(second));
    }
    d->has_transforms = 1;
    return GMXFMM_OK;
}

/* Pairs (P, Q) of a spectrum of degree `top`, one for each degree and 0 <= m <= degree. */
static size_t pairs(int top)
{
    return static_cast<size_t>(top + 1) * static_cast<size_t>(top + 2) / 2;
}

gmxfmm_status fmm_cuda_set_transforms(gmxfmm_plan* plan)
{
    fmm_device*      d = plan->device;
    const fmm_cells* c = fmm_convolved(plan);
    d->num_freq        = c->n[0] * c->n[1] * (c->n[2] / 2 + 1);
    const size_t coef = static_cast<size_t>(d->num_coef), real = real_size(plan);
    const size_t cells = static_cast<size_t>(c->num_cells), freq = static_cast<size_t>(d->num_freq);
    FMM_TRY(fmm_device_reserve(plan, &d->field, coef * cells * real));
    FMM_TRY(fmm_device_reserve(plan, &d->spectrum, coef * freq * 2 * real));
    FMM_TRY(fmm_device_reserve(plan, &d->local_spectrum, coef * freq * 2 * real));
    FMM_TRY(fmm_device_reserve(plan, &d->s, pairs(2 * plan->far.order) * freq * 2 * real));
    FMM_TRY(fmm_device_reserve(plan, &d->z, pairs(2 * plan->far.order + 2) * freq * 2 * real));
    FMM_TRY(fmm_device_reserve(plan, &d->far_virial,
                               static_cast<size_t>(fmm_cuda_virial_blocks(plan)) * 5 * sizeof(double)));
    FMM_TRY(fmm_cuda_product_items(plan));
    FMM_TRY(fmm_cuda_fft_prepare(plan));
    return d->own_transforms ? GMXFMM_OK : make_transforms(plan);
}

gmxfmm_status fmm_device_set_grid(gmxfmm_plan* plan)
{
    fmm_device* d = plan->device;
    DeviceScope scope(d->id);
    FMM_CUDA(plan, cudaDeviceSynchronize());
    free_transforms(d);
    d->num_coef = harm_size(plan->far.order);
    d->s_valid = d->z_valid = d->lattice_ready = 0;
    d->ewald_distance                          = 0;
    d->path                                    = fmm_cuda_path(plan);
    return d->path->create(plan);
}

gmxfmm_status fmm_device_set_shape(gmxfmm_plan* plan)
{
    fmm_device* d = plan->device;
    DeviceScope scope(d->id);
    d->s_valid = d->z_valid = 0;
    d->z_expected           = d->z_used;
    d->z_used               = 0;
    FMM_TRY(d->path->set_shape(plan));
    for (int i = 0; i < FMM_LINE_NODES && plan->far.line.active; i++)
    {
        FMM_TRY(fmm_device_reserve(plan, &d->node_s[i], d->s.capacity));
        FMM_TRY(fmm_device_reserve(plan, &d->node_z[i], d->z.capacity));
    }
    return GMXFMM_OK;
}
