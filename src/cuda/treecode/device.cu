/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The life cycle of the device part of a treecode, and its stages in their order. */
#include <climits>
#include <cstdlib>
#include <new>

#include "cuda/device.h"
#include "cuda/runtime/event.h"
#include "cuda/runtime/recording.h"
#include "cuda/treecode/memory.h"
#include "cuda/treecode/stages.h"
#include "cuda/treecode/step.h"

gmxfmm_status treecode_device_on_host(treecode* t, const void** x, size_t bytes)
{
    DeviceScope           scope(t->options.device_id);
    cudaPointerAttributes attributes;
    if (cudaPointerGetAttributes(&attributes, *x) != cudaSuccess || attributes.type != cudaMemoryTypeDevice)
    {
        (void)cudaGetLastError();
        return GMXFMM_OK;
    }
    try
    {
        t->device->host_copy.resize(bytes);
    }
    catch (const std::bad_alloc&)
    {
        return treecode_fail(t, GMXFMM_ERROR_MEMORY, "out of memory");
    }
    FMM_CUDA(t, fmm_cuda_wait_for_device()); /* whatever makes the array is done */
    FMM_TRY(treecode_download(t, t->device->host_copy.data(), *x, bytes));
    *x = t->device->host_copy.data();
    return GMXFMM_OK;
}

static gmxfmm_status create(treecode* t)
{
    const int id = t->options.device_id;
    FMM_TRY(fmm_device_check(id, t->message, sizeof(t->message)));
    t->device = new (std::nothrow) treecode_device();
    if (t->device == nullptr)
    {
        return treecode_fail(t, GMXFMM_ERROR_MEMORY, "out of memory");
    }
    DeviceScope scope(id);
    FMM_CUDA(t, device_limits(id, &t->device->limits));
    FMM_CUDA(t, cudaDeviceGetAttribute(&t->device->multiprocessors, cudaDevAttrMultiProcessorCount, id));
    FMM_CUDA(t, cudaStreamCreateWithFlags(&t->device->stream, cudaStreamNonBlocking));
    for (int k = 0; k < 2; k++)
    {
        FMM_CUDA(t, cudaMallocHost(&t->device->staging[k], c_staging));
        FMM_CUDA(t, cudaEventCreateWithFlags(&t->device->staged[k], cudaEventDisableTiming));
    }
    return treecode_grow(t, &t->device->results, sizeof(TreecodeResults));
}

static void destroy(treecode* t)
{
    treecode_device* d = t->device;
    if (d == nullptr)
    {
        return;
    }
    DeviceScope scope(t->options.device_id);
    if (d->stream != nullptr)
    {
        (void)cudaStreamSynchronize(d->stream);
        (void)cudaStreamDestroy(d->stream);
    }
    for (int k = 0; k < 2; k++)
    {
        (void)cudaFreeHost(d->staging[k]);
        if (d->staged[k] != nullptr)
        {
            (void)cudaEventDestroy(d->staged[k]);
        }
    }
    delete d;
    t->device = nullptr;
}

static gmxfmm_status take_charges(treecode* t, const double* q)
{
    DeviceScope scope(t->options.device_id);
    if (t->n > INT_MAX / 4)
    {
        return treecode_fail(t, GMXFMM_ERROR_OPTION, "number of particles is %lld, allowed on a device is %d",
                             (long long)t->n, INT_MAX / 4);
    }
    FMM_CUDA(t, fmm_cuda_wait_for_device()); /* steps in flight keep their charges */
    FMM_TRY(treecode_upload(t, &t->device->q, q, (size_t)t->n * sizeof(double)));
    FMM_CUDA(t, cudaStreamSynchronize(t->device->stream));
    return GMXFMM_OK;
}

static gmxfmm_status lists(treecode* t)
{
    DeviceScope      scope(t->options.device_id);
    treecode_device* d = t->device;
    FMM_TRY(t->options.dual ? treecode_device_dual_lists(t) : treecode_device_lists(t));
    t->info.num_batches      = d->lists.num;
    const double pairs       = d->lists.pairs + (t->options.dual ? d->point_lists.pairs : 0);
    t->info.pairs_per_target = t->num_targets > 0 ? pairs / (double)t->num_targets : 0;
    return GMXFMM_OK;
}

static gmxfmm_status check_shared(treecode* t)
{
    const size_t charges = treecode_device_charges_shared(t->options.degree);
    const size_t down    = t->options.dual ? treecode_device_downward_shared(t->options.degree) : 0;
    const size_t shared  = charges > down ? charges : down;
    if (shared > (size_t)t->device->limits.max_shared)
    {
        return treecode_fail(t, GMXFMM_ERROR_UNSUPPORTED,
                             "degree %d needs %zu bytes of shared memory, a block of this device has %d: use a lower "
                             "degree, or the CPU",
                             t->options.degree, shared, t->device->limits.max_shared);
    }
    return GMXFMM_OK;
}

static size_t bytes_of(const treecode_device* d)
{
    size_t sum = 0;
    for (const DeviceClusters* tree : {&d->sources, &d->targets})
    {
        for (const DeviceBuffer* b :
             {&tree->x[0], &tree->x[1], &tree->x[2], &tree->low, &tree->high, &tree->order, &tree->begin, &tree->end,
              &tree->child, &tree->num_children, &tree->parent, &tree->leaf})
        {
            sum += b->capacity;
        }
    }
    for (const DeviceLists* l : {&d->lists, &d->point_lists, &d->sample})
    {
        for (const DeviceBuffer* b : {&l->cluster, &l->begin, &l->end, &l->approximated_start, &l->direct_start,
                                      &l->approximated, &l->direct, &l->tile})
        {
            sum += b->capacity;
        }
    }
    for (const DeviceBuffer* b : {&d->x_copy, &d->y_copy, &d->q, &d->sorted_q, &d->charge, &d->point, &d->phi,
                                  &d->slope[0], &d->slope[1], &d->slope[2], &d->partial, &d->scratch})
    {
        sum += b->capacity;
    }
    for (const DeviceBuffer& b : d->work)
    {
        sum += b.capacity;
    }
    return sum;
}

static gmxfmm_status reserve(treecode* t)
{
    DeviceScope      scope(t->options.device_id);
    treecode_device* d = t->device;
    FMM_TRY(check_shared(t));
    const size_t edge = (size_t)t->options.degree + 1, size = edge * edge * edge * sizeof(double);
    const size_t m = (size_t)t->num_targets * sizeof(double);
    struct
    {
        DeviceBuffer* buffer;
        size_t        bytes;
    } const wanted[] = {
        {&d->sorted_q, (size_t)(t->n + t->imported) * sizeof(double)},
        {&d->charge, (size_t)(d->sources.num + t->num_points) * size},
        {&d->point, t->options.dual ? (size_t)treecode_device_targets(t)->num * size : 0},
        {&d->phi, m},
        {&d->slope[0], m},
        {&d->slope[1], m},
        {&d->slope[2], m},
        {&d->x_copy, treecode_copy_bytes(t)},
        {&d->energies, c_energyBlocks * sizeof(double)},
    };
    for (const auto& one : wanted)
    {
        FMM_TRY(treecode_grow(t, one.buffer, one.bytes));
    }
    t->info.bytes = bytes_of(d);
    return GMXFMM_OK;
}

static gmxfmm_status gather(treecode* t, const void* x)
{
    DeviceScope      scope(t->options.device_id);
    treecode_device* d    = t->device;
    const size_t     word = t->options.floats ? sizeof(float) : sizeof(double);
    FMM_TRY(treecode_on_device(t, &x, &d->x_copy, 3 * (size_t)t->n * word));
    return treecode_device_gather(t, x, d->stream);
}

static gmxfmm_status charges(treecode* t)
{
    DeviceScope scope(t->options.device_id);
    return treecode_device_charges(t, t->device->stream);
}

gmxfmm_status treecode_device_begin_sums(treecode* t, int with_field, cudaStream_t stream)
{
    treecode_device* d = t->device;
    for (const DeviceBuffer* sum : {&d->phi, &d->slope[0], &d->slope[1], &d->slope[2]})
    {
        if (d->lists.num_tiles == 0) /* targets without sources */
        {
            FMM_CUDA(t, cudaMemsetAsync(sum->memory, 0, (size_t)t->num_targets * sizeof(double), stream));
        }
    }
    FMM_TRY(treecode_device_sums(t, &d->lists, t->options.precision, with_field, stream));
    if (t->options.dual)
    {
        const size_t edge = (size_t)t->options.degree + 1;
        FMM_CUDA(t, cudaMemsetAsync(d->point.memory, 0,
                                    (size_t)treecode_device_targets(t)->num * edge * edge * edge * sizeof(double),
                                    stream));
        FMM_TRY(treecode_device_sums(t, &d->point_lists, t->options.precision, 0, stream));
    }
    return GMXFMM_OK;
}

gmxfmm_status treecode_device_end_sums(treecode* t, int with_field, cudaStream_t stream)
{
    return t->options.dual ? treecode_device_downward(t, with_field, stream) : GMXFMM_OK;
}

static gmxfmm_status sum_all(treecode* t, int with_field, cudaStream_t stream)
{
    FMM_TRY(treecode_device_begin_sums(t, with_field, stream));
    return treecode_device_end_sums(t, with_field, stream);
}

static gmxfmm_status all_sums(treecode* t, int with_field)
{
    DeviceScope scope(t->options.device_id);
    return sum_all(t, with_field, t->device->stream);
}

static gmxfmm_status output(treecode* t, treecode_output* o)
{
    DeviceScope      scope(t->options.device_id);
    treecode_device* d = t->device;
    const size_t     m = (size_t)t->num_targets, word = t->options.floats ? sizeof(float) : sizeof(double);
    char*            copy = d->x_copy.as<char>();
    TreecodeResults  results;
    struct
    {
        void * there, *here;
        size_t bytes;
    } const arrays[]           = {{o->potential != nullptr ? copy : nullptr, o->potential, m * word},
                                  {o->field != nullptr ? copy + m * word : nullptr, o->field, 3 * m * word},
                                  {o->force != nullptr ? copy + 4 * m * word : nullptr, o->force, 3 * m * word}};
    const TreecodeOutput there = {arrays[0].there, arrays[1].there, arrays[2].there, nullptr, nullptr};
    FMM_TRY(treecode_device_output(t, there, d->stream));
    for (const auto& one : arrays)
    {
        if (one.here != nullptr && one.bytes > 0)
        {
            FMM_TRY(treecode_download(t, one.here, one.there, one.bytes));
        }
    }
    FMM_TRY(treecode_download(t, &results, d->results.memory, sizeof(results)));
    o->energy = results.energy;
    if (results.bad_positions > 0)
    {
        return treecode_fail(t, GMXFMM_ERROR_POSITION, "a position is not finite");
    }
    const gmxfmm_status status = results.bad_results > 0 ? treecode_coincident(t, -1) : GMXFMM_OK;
    t->bad_target              = (int64_t)results.bad_target - 1;
    return status;
}

static gmxfmm_status wait(treecode* t)
{
    DeviceScope scope(t->options.device_id);
    FMM_CUDA(t, cudaStreamSynchronize(t->device->stream));
    return GMXFMM_OK;
}

static gmxfmm_status sums(treecode* t, const treecode_lists* some, gmxfmm_precision precision, int with_field)
{
    DeviceScope scope(t->options.device_id);
    FMM_TRY(treecode_device_upload_lists(t, &t->device->sample, some));
    return treecode_device_sums(t, &t->device->sample, precision, with_field, t->device->stream);
}

/* Arrays of the host for all targets, of which only the sample's are touched. */
static gmxfmm_status fetch(treecode* t, const treecode_lists* some)
{
    DeviceScope         scope(t->options.device_id);
    treecode_device*    d       = t->device;
    const DeviceBuffer* from[4] = {&d->phi, &d->slope[0], &d->slope[1], &d->slope[2]};
    double**            to[4]   = {&t->phi, &t->slope[0], &t->slope[1], &t->slope[2]};
    for (int i = 0; i < 4; i++)
    {
        if (*to[i] == nullptr)
        {
            *to[i] = static_cast<double*>(malloc(((size_t)t->num_targets + 1) * sizeof(double)));
        }
        if (*to[i] == nullptr)
        {
            return treecode_no_memory(t);
        }
        for (int b = 0; b < some->num; b++)
        {
            const int64_t first = some->begin[b];
            if (some->end[b] > first)
            {
                FMM_CUDA(t, cudaMemcpyAsync(*to[i] + first, from[i]->as<double>() + first,
                                            (size_t)(some->end[b] - first) * sizeof(double), cudaMemcpyDeviceToHost,
                                            d->stream));
            }
        }
    }
    FMM_CUDA(t, cudaStreamSynchronize(d->stream));
    return GMXFMM_OK;
}

gmxfmm_status treecode_device_enqueue(treecode* t, const void* x, const TreecodeStep* step)
{
    const cudaStream_t stream = static_cast<cudaStream_t>(step->stream);
    DeviceScope        scope(t->options.device_id);
    FMM_TRY(treecode_device_gather(t, x, stream));
    FMM_TRY(treecode_device_charges(t, stream));
    FMM_TRY(sum_all(t, step->field != nullptr || step->force != nullptr, stream));
    FMM_TRY(treecode_device_output(t, {step->potential, step->field, step->force, step->energy, step->status}, stream));
    FMM_CUDA(t, record_for_caller(step->arrays_done, stream));
    return GMXFMM_OK;
}

extern "C" const treecode_stages treecode_on_cuda;
const treecode_stages            treecode_on_cuda = {
               1,
               create,
               destroy,
               take_charges,
               treecode_device_extent,
               treecode_device_trees,
               treecode_device_mirror,
               lists,
               reserve,
               gather,
               charges,
               all_sums,
               output,
               wait,
               sums,
               fetch,
};
