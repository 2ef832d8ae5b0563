/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Arrays of a host program, on the host or a device: copied to where they are needed; the extent of their particles;
 * and memory for the plan's own arrays of particles. */
#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdlib>

#include <cub/device/device_reduce.cuh>
#include <thrust/iterator/counting_iterator.h>

#include "cuda/device.h"
#include "cuda/particles/particles.h"
#include "cuda/runtime/recording.h"

/* Number of the device whose memory x is in, -1 for the host. Managed memory, which both can address, counts as host
 * memory if x is wanted on the host (for_host), otherwise as that of the plan's device, so that it is never copied. */
static int device_of(const gmxfmm_plan* plan, const void* x, bool for_host)
{
    cudaPointerAttributes attributes;
    if (cudaPointerGetAttributes(&attributes, x) != cudaSuccess)
    {
        cudaGetLastError();
        return -1;
    }
    return attributes.type == cudaMemoryTypeDevice    ? attributes.device
           : attributes.type == cudaMemoryTypeManaged ? (for_host ? -1 : plan->device->id)
                                                      : -1;
}

gmxfmm_status fmm_device_on_host(gmxfmm_plan* plan, const void** x, size_t num)
{
    fmm_device*  d     = plan->device;
    const size_t bytes = num * array_word(plan);
    DeviceScope  scope(d->id);
    if (num == 0 || device_of(plan, *x, true) < 0)
    {
        return GMXFMM_OK;
    }
    if (bytes > d->particles.host_copy_bytes)
    {
        std::free(d->particles.host_copy);
        d->particles.host_copy       = std::malloc(bytes);
        d->particles.host_copy_bytes = d->particles.host_copy != NULL ? bytes : 0;
    }
    if (d->particles.host_copy == NULL)
    {
        return fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory");
    }
    FMM_CUDA(plan, fmm_cuda_wait_for_device()); /* for whatever writes the array */
    FMM_CUDA(plan, cudaMemcpy(d->particles.host_copy, *x, bytes, cudaMemcpyDefault));
    *x = d->particles.host_copy;
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_on_device(gmxfmm_plan* plan, const void** x)
{
    fmm_device* d = plan->device;
    if (plan->particles.n == 0 || device_of(plan, *x, false) == d->id)
    {
        return GMXFMM_OK;
    }
    FMM_TRY(fmm_cuda_upload(plan, d->particles.x_copy.memory, *x,
                            3 * static_cast<size_t>(plan->particles.n) * array_word(plan)));
    *x = d->particles.x_copy.memory;
    return GMXFMM_OK;
}

template <class X>
static gmxfmm_status widen(gmxfmm_plan* plan, const X* x, int n, const char* what, double* low, double* high)
{
    fmm_device*                          d   = plan->device;
    const thrust::counting_iterator<int> all = thrust::counting_iterator<int>(0);
    Extent* const                        out = &d->particles.assign_results.as<AssignResults>()->extent;
    AssignResults                        results;
    Extent                               none;
    size_t                               bytes = 0;
    PointExtent<X>                       point = {x, {0}};
    std::copy(plan->frame.axes, plan->frame.axes + 9, point.axes);
    for (int i = 0; i < 3; i++)
    {
        none.low[i]  = low[i];
        none.high[i] = high[i];
    }
    none.bad = INT_MAX;
    FMM_CUDA(plan,
             cub::DeviceReduce::TransformReduce(NULL, bytes, all, out, n, BothExtents{}, point, none, d->schedule.own));
    FMM_TRY(fmm_device_reserve(plan, &d->particles.sort_scratch, bytes));
    FMM_CUDA(plan, cub::DeviceReduce::TransformReduce(d->particles.sort_scratch.memory, bytes, all, out, n,
                                                      BothExtents{}, point, none, d->schedule.own));
    FMM_TRY(fmm_cuda_assign_results(plan, &results, d->schedule.own));
    if (results.extent.bad != INT_MAX)
    {
        return fmm_fail(plan, GMXFMM_ERROR_POSITION, "position of %s %d is not finite", what, results.extent.bad);
    }
    for (int i = 0; i < 3; i++)
    {
        low[i]  = results.extent.low[i];
        high[i] = results.extent.high[i];
    }
    return GMXFMM_OK;
}

template <class X>
static gmxfmm_status extent(gmxfmm_plan* plan, const void* x, double* low, double* high)
{
    const ParticleSet *sources = &plan->device->particles.sources, *targets = &plan->device->particles.targets;
    if (sources->n > 0)
    {
        FMM_TRY(widen(plan, static_cast<const X*>(x), sources->n, "particle", low, high));
    }
    return targets->n > 0 ? widen(plan, plan->device->particles.target_x.as<X>(), targets->n, "target", low, high)
                          : GMXFMM_OK;
}

gmxfmm_status fmm_device_extent(gmxfmm_plan* plan, const void** x, double* low, double* high)
{
    DeviceScope scope(plan->device->id);
    FMM_CUDA(plan, fmm_cuda_wait_for_device());
    FMM_TRY(fmm_cuda_on_device(plan, x));
    return plan->options.array_type == GMXFMM_DOUBLE ? extent<double>(plan, *x, low, high)
                                                     : extent<float>(plan, *x, low, high);
}

gmxfmm_status fmm_cuda_create_particles(gmxfmm_plan* plan)
{
    fmm_device* d = plan->device;
    FMM_CUDA(plan, cudaHostAlloc(reinterpret_cast<void**>(&d->particles.beyond), sizeof(int), cudaHostAllocMapped));
    *d->particles.beyond = 0;
    FMM_TRY(fmm_device_reserve(plan, &d->output.results, sizeof(StepResults)));
    FMM_TRY(fmm_device_reserve(plan, &d->particles.assign_results, sizeof(AssignResults)));
    FMM_TRY(fmm_device_reserve(plan, &d->output.partial, sizeof(double) * c_numSums * 2 * c_sumBlocks));
    FMM_CUDA(plan, cudaMemset(d->output.results.memory, 0, sizeof(StepResults)));
    FMM_CUDA(plan, cudaMemset(&d->output.results.as<StepResults>()->bad_positions, c_none & 0xff, 4 * sizeof(int)));
    return GMXFMM_OK;
}

void fmm_cuda_destroy_particles(fmm_device* device)
{
    if (device->particles.beyond != NULL) /* the first device's; NULL would be an error that a later call reports */
    {
        cudaFreeHost(device->particles.beyond);
    }
    std::free(device->particles.host_copy);
}

static gmxfmm_status reserve_set(gmxfmm_plan* plan, ParticleSet* set, int64_t num)
{
    const size_t n = static_cast<size_t>(num) + 1;
    FMM_TRY(fmm_device_reserve(plan, &set->sorted, n * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &set->position, n * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &set->cell_of, n * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &set->anchor, n * sizeof(Anchor)));
    FMM_TRY(fmm_device_reserve(plan, &set->xq, n * 4 * real_size(plan)));
    if (fmm_has_given(plan))
    {
        FMM_TRY(fmm_device_reserve(plan, &set->given, n * 4 * real_size(plan)));
    }
    set->n = static_cast<int>(num);
    return GMXFMM_OK;
}

gmxfmm_status fmm_cuda_reserve_dipoles(gmxfmm_plan* plan)
{
    fmm_device*  d       = plan->device;
    const size_t sources = static_cast<size_t>(d->particles.sources.n) + 1; /* one more, as P2M reads ahead */
    const size_t targets = static_cast<size_t>(targets_of(d)->n) + 1, tensors = 6 * targets * real_size(plan);
    if (!fmm_has_dipoles(plan))
    {
        return GMXFMM_OK;
    }
    FMM_TRY(fmm_device_reserve(plan, &d->particles.sources.mu, sources * 4 * real_size(plan)));
    FMM_TRY(fmm_device_reserve(plan, &d->output.near_gradient, tensors));
    FMM_TRY(fmm_device_reserve(plan, &d->output.far_gradient, tensors));
    /* torques and gradients of a synchronous execute behind the rest */
    FMM_TRY(fmm_device_reserve(plan, &d->output.copy, 16 * targets * array_word(plan)));
    FMM_CUDA(plan, cudaMemset(d->particles.sources.mu.memory, 0, sources * 4 * real_size(plan)));
    FMM_CUDA(plan, cudaMemset(d->output.near_gradient.memory, 0, tensors));
    FMM_CUDA(plan, cudaMemset(d->output.far_gradient.memory, 0, tensors));
    return GMXFMM_OK;
}

void fmm_cuda_release_dipoles(gmxfmm_plan* plan)
{
    fmm_device* d = plan->device;
    for (DeviceBuffer* buffer :
         {&d->particles.sources.mu, &d->particles.sources.scaled_mu, &d->output.near_gradient, &d->output.far_gradient})
    {
        fmm_device_release(plan, buffer);
    }
}

/* Memory used for sources and targets one after the other, and for results at the targets. */
static gmxfmm_status reserve_particles(gmxfmm_plan* plan)
{
    fmm_device* d  = plan->device;
    const int most = d->particles.sources.n > d->particles.targets.n ? d->particles.sources.n : d->particles.targets.n;
    const size_t n = static_cast<size_t>(most) + 1, targets = static_cast<size_t>(targets_of(d)->n) + 1;
    const size_t vec  = 4 * real_size(plan);
    const size_t word = array_word(plan);
    FMM_TRY(fmm_device_reserve(plan, &d->particles.keys, n * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &d->particles.values, n * sizeof(int)));
    FMM_TRY(fmm_device_reserve(plan, &d->particles.references, 3 * n * sizeof(float)));
    FMM_TRY(fmm_device_reserve(plan, &d->output.near, targets * vec));
    FMM_TRY(fmm_device_reserve(plan, &d->output.far, targets * vec));
    /* positions, forces, fields, potentials of a synchronous execute */
    FMM_TRY(fmm_device_reserve(plan, &d->particles.x_copy, 3 * n * word));
    FMM_TRY(fmm_device_reserve(plan, &d->output.copy, 7 * targets * word));
    /* a step that computes only one of the two fields (stages) reads both, which must be finite */
    FMM_CUDA(plan, cudaMemset(d->output.near.memory, 0, targets * vec));
    FMM_CUDA(plan, cudaMemset(d->output.far.memory, 0, targets * vec));
    FMM_TRY(fmm_cuda_reserve_dipoles(plan));
    d->particles.room_of_sources = d->particles.sources.n;
    d->particles.room_of_targets = d->particles.targets.n;
    return GMXFMM_OK;
}

static bool has_room(const fmm_device* d)
{
    const DeviceParticles& p = d->particles;
    return p.room_of_sources == p.sources.n && p.room_of_targets == p.targets.n;
}

static gmxfmm_status reserve_sources(gmxfmm_plan* plan)
{
    plan->device->particles.room_of_sources = -1;
    FMM_TRY(reserve_set(plan, &plan->device->particles.sources, plan->particles.n));
    return reserve_particles(plan);
}

gmxfmm_status fmm_cuda_reserve_sources(gmxfmm_plan* plan)
{
    const fmm_device* d = plan->device;
    return d->particles.sources.n == plan->particles.n && has_room(d) ? GMXFMM_OK : reserve_sources(plan);
}

static gmxfmm_status take_targets(gmxfmm_plan* plan, const void* x)
{
    fmm_device*  d    = plan->device;
    const size_t size = 3 * static_cast<size_t>(plan->particles.num_targets) * array_word(plan);
    FMM_TRY(reserve_set(plan, &d->particles.targets, plan->particles.num_targets));
    FMM_TRY(reserve_particles(plan));
    FMM_TRY(fmm_device_reserve(plan, &d->particles.target_x, size));
    return fmm_cuda_upload(plan, d->particles.target_x.memory, x, size);
}

gmxfmm_status fmm_device_set_targets(gmxfmm_plan* plan, const void* x)
{
    fmm_device* d = plan->device;
    DeviceScope scope(d->id);
    FMM_CUDA(plan, fmm_cuda_wait_for_device());
    d->particles.room_of_targets = -1;
    const gmxfmm_status status   = take_targets(plan, x);
    d->particles.targets.n       = status == GMXFMM_OK ? d->particles.targets.n : 0;
    return status;
}

gmxfmm_status fmm_cuda_ready_particles(gmxfmm_plan* plan)
{
    *plan->device->particles.beyond = 0;
    return fmm_cuda_reserve_sources(plan);
}

gmxfmm_status fmm_cuda_reserve_scaled(gmxfmm_plan* plan)
{
    for (ParticleSet* set : {&plan->device->particles.sources, &plan->device->particles.targets})
    {
        /* one more than there are, as P2M reads ahead */
        FMM_TRY(fmm_device_reserve(plan, &set->scaled, (static_cast<size_t>(set->n) + 1) * 4 * real_size(plan)));
    }
    const DeviceBuffer& scaled = plan->device->particles.sources.scaled;
    return fmm_has_dipoles(plan) ? fmm_device_reserve(plan, &plan->device->particles.sources.scaled_mu, scaled.capacity)
                                 : GMXFMM_OK;
}

/* Positions that P2P takes (near.h), which are as many bytes in each array. */
static gmxfmm_status reserve_positions(gmxfmm_plan* plan, ParticleSet* to, size_t bytes)
{
    return fmm_device_reserve(plan, fmm_has_given(plan) ? &to->given : &to->xq, bytes);
}

gmxfmm_status fmm_cuda_reserve_particle_copies(gmxfmm_plan* plan, fmm_device* to)
{
    const ParticleSet *sources = &plan->device->particles.sources, *targets = targets_of(plan->device);
    ParticleSet*       to_targets = targets != sources ? &to->particles.targets : &to->particles.sources;
    FMM_TRY(fmm_device_reserve(plan, &to->particles.sources.cell_start, sources->cell_start.capacity));
    FMM_TRY(fmm_device_reserve(plan, &to_targets->tiles, targets->tiles.capacity));
    FMM_TRY(reserve_positions(plan, &to->particles.sources, sources->xq.capacity));
    return targets != sources ? reserve_positions(plan, to_targets, targets->xq.capacity) : GMXFMM_OK;
}

DeviceBuffer* fmm_cuda_assigned_particles(fmm_device* device, int i)
{
    ParticleSet*  s     = &device->particles.sources;
    DeviceBuffer* all[] = {&s->sorted,     &s->position,   &s->cell_of, &s->anchor,
                           &s->cell_start, &s->tile_start, &s->tiles,   &device->particles.assign_results};
    static_assert(sizeof(all) / sizeof(all[0]) == static_cast<size_t>(c_nextParticles),
                  "next has room for each of them");
    return all[i];
}

gmxfmm_status fmm_cuda_reserve_next_particles(gmxfmm_plan* plan)
{
    fmm_device* d = plan->device;
    for (int i = 0; i < c_nextParticles; i++)
    {
        FMM_TRY(fmm_device_reserve(plan, &d->particles.next[i], fmm_cuda_assigned_particles(d, i)->capacity));
    }
    return GMXFMM_OK;
}

void fmm_cuda_swap_particles(fmm_device* device)
{
    for (int i = 0; i < c_nextParticles; i++)
    {
        fmm_cuda_assigned_particles(device, i)->swap(&device->particles.next[i]);
    }
}
