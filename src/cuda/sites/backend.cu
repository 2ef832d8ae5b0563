/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The life cycle of sites on a device, the box, and the search. */
#include <climits>
#include <cmath>
#include <new>
#include <vector>

#include "cuda/runtime/device_limits.h"
#include "cuda/device.h"
#include "cuda/runtime/recording.h"
#include "cuda/sites/stages.h"

enum
{
    c_mostBits   = 10,
    c_withChains = 90 /* compute capability */
};

static __global__ void set_box(SitesBox box, SitesBox* to)
{
    *to = box;
}

static gmxfmm_status enqueue_box(gmxfmm_sites* sites, void* stream)
{
    DeviceScope scope(sites->system.device_id);
    set_box<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(sites_box(sites),
                                                            sites_device_of(sites)->box.as<SitesBox>());
    FMM_CUDA(sites, cudaGetLastError());
    return GMXFMM_OK;
}

template <class T>
static gmxfmm_status upload(gmxfmm_sites* sites, DeviceBuffer* to, const std::vector<T>& from)
{
    FMM_CUDA(sites, to->reserve(from.empty() ? 1 : from.size() * sizeof(T)));
    FMM_CUDA(sites, cudaMemcpy(to->memory, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
    return GMXFMM_OK;
}

/* The largest force of a pair: at a third of the distance where its potential is zero, if atoms interact as they are.
 * With an inner range it is at some distance between the start of its switch and the outer cut-off. */
static double largest_force(const gmxfmm_sites* sites)
{
    const int          num = sites->system.num_groups > 0 ? sites->system.num_types : 0, samples = 16;
    const double       low = lj_floor(&sites->lj), high = sites->lj.outer.cutoff;
    const bool         is_alone = !sites_has_inner(&sites->system);
    const lj_constants c        = lj_constants_of(&sites->lj);
    double             largest  = 0;
    for (int k = 0; k < num * num; k++)
    {
        const double c6 = std::fabs(sites->c6[k]), c12 = std::fabs(sites->c12[k]);
        const double zero = c6 > 0 && c12 > 0 ? std::pow(c12 / c6, 1. / 6) : 0.2 * high;
        const double from = is_alone ? std::fmin(std::fmax(low, zero / 3), 0.5 * high) : low;
        for (int i = 0; i < (is_alone ? 1 : samples); i++)
        {
            const double    r = from + (high - from) * i / samples;
            const lj_values v = lj_force(&c, sites->lj.kind, 0, static_cast<float>(r * r),
                                         static_cast<float>(6 * sites->c6[k]), static_cast<float>(12 * sites->c12[k]));
            largest           = std::fmax(largest, r * std::fabs(static_cast<double>(v.force)));
        }
    }
    return largest;
}

/* The unit of sums of forces, a power of 2: the largest force of a pair is 2^c_pairBits of it. */
static double unit_of_forces(const gmxfmm_sites* sites)
{
    const double largest = largest_force(sites);
    return largest > 0 ? std::exp2(std::ceil(std::log2(largest)) - c_pairBits) : 1;
}

/* Groups, with the group of each entry, and the table of parameters with a type more that has none. */
static gmxfmm_status upload_system(gmxfmm_sites* sites)
{
    sites_device*            d = sites_device_of(sites);
    const int                n = sites->system.num_groups, num = d->num_entries;
    const size_t             width = static_cast<size_t>(n > 0 ? sites->system.num_types : 0) + 1;
    const std::vector<int>   start(sites->start, sites->start + (n > 0 ? n + 1 : 0));
    const std::vector<int>   atom(sites->atom, sites->atom + num), type(sites->type, sites->type + n);
    const std::vector<float> weight(sites->weight, sites->weight + num);
    std::vector<int>         group(static_cast<size_t>(num));
    std::vector<float2>      table(width * width, make_float2(0.f, 0.f));
    for (int g = 0; g < n; g++)
    {
        for (int k = start[g]; k < start[g + 1]; k++)
        {
            group[k] = g;
        }
    }
    for (size_t a = 0; a + 1 < width; a++)
    {
        for (size_t b = 0; b + 1 < width; b++)
        {
            const size_t k = a * (width - 1) + b;
            table[a * width + b] =
                make_float2(static_cast<float>(6 * sites->c6[k]), static_cast<float>(12 * sites->c12[k]));
        }
    }
    FMM_TRY(upload(sites, &d->start, start));
    FMM_TRY(upload(sites, &d->atom, atom));
    FMM_TRY(upload(sites, &d->group, group));
    FMM_TRY(upload(sites, &d->type, type));
    FMM_TRY(upload(sites, &d->weight, weight));
    if (sites_have_exclusions(sites))
    {
        const int* rows = sites->exclusion_start;
        FMM_TRY(upload(sites, &d->exclusion_start, std::vector<int>(rows, rows + n + 1)));
        FMM_TRY(upload(sites, &d->exclusion, std::vector<int>(sites->exclusion, sites->exclusion + rows[n])));
    }
    return upload(sites, &d->table, table);
}

static gmxfmm_status reserve_bounds(gmxfmm_sites* sites, SitesBoundsMemory* bounds, int num)
{
    FMM_CUDA(sites, bounds->centre.reserve(static_cast<size_t>(num) * sizeof(float4)));
    FMM_CUDA(sites, bounds->half.reserve(static_cast<size_t>(num) * sizeof(float4)));
    return GMXFMM_OK;
}

/* Memory whose size the number of sites determines. */
static gmxfmm_status reserve_arrays(gmxfmm_sites* sites)
{
    sites_device* d     = sites_device_of(sites);
    const int     num   = sites->system.num_groups > 0 ? sites->system.num_groups : 1;
    const size_t  n     = static_cast<size_t>(num);
    const int     tiles = sites_quotient(num, c_tile);
    for (int k = 0; k < 2; k++)
    {
        FMM_CUDA(sites, d->key[k].reserve(n * sizeof(unsigned)));
        FMM_CUDA(sites, d->value[k].reserve(n * sizeof(int)));
    }
    FMM_CUDA(sites, d->placed.reserve(n * sizeof(float4)));
    FMM_CUDA(sites, d->site.reserve((n + 1) * sizeof(float4)));
    FMM_CUDA(sites, d->force.reserve(3 * n * sizeof(long long)));
    FMM_CUDA(sites, d->beyond.reserve(3 * n * sizeof(float)));
    FMM_CUDA(sites, d->range.reserve(n * sizeof(int2)));
    FMM_CUDA(sites, d->sorted_type.reserve(n * sizeof(int)));
    FMM_CUDA(sites, d->count.reserve(static_cast<size_t>(tiles) * sizeof(int)));
    FMM_CUDA(sites, d->rank.reserve(n * sizeof(int)));
    if (sites_have_exclusions(sites))
    {
        FMM_CUDA(sites, d->excluded.reserve(n * sizeof(unsigned)));
    }
    FMM_CUDA(sites, d->rows.reserve(static_cast<size_t>(tiles) * c_sitesSums * sizeof(double)));
    FMM_CUDA(sites, d->box.reserve(sizeof(SitesBox)));
    FMM_CUDA(sites, d->found.reserve(sizeof(SitesFound)));
    FMM_TRY(reserve_bounds(sites, &d->tile, tiles));
    FMM_TRY(reserve_bounds(sites, &d->block, sites_quotient(num, c_block)));
    FMM_TRY(reserve_bounds(sites, &d->cluster, sites_quotient(num, c_cluster)));
    FMM_CUDA(sites, cudaMallocHost(reinterpret_cast<void**>(&d->results), sizeof(SitesFound)));
    return sites_sort_memory(sites);
}

static int64_t device_bytes(const sites_device* d)
{
    const DeviceBuffer* all[] = {&d->start,
                                 &d->atom,
                                 &d->group,
                                 &d->weight,
                                 &d->type,
                                 &d->table,
                                 &d->box,
                                 &d->found,
                                 &d->placed,
                                 &d->key[0],
                                 &d->key[1],
                                 &d->value[0],
                                 &d->value[1],
                                 &d->scratch,
                                 &d->range,
                                 &d->sorted_type,
                                 &d->site,
                                 &d->count,
                                 &d->list,
                                 &d->tile.centre,
                                 &d->tile.half,
                                 &d->block.half,
                                 &d->block.centre,
                                 &d->cluster.half,
                                 &d->cluster.centre,
                                 &d->force,
                                 &d->beyond,
                                 &d->rows,
                                 &d->exclusion_start,
                                 &d->exclusion,
                                 &d->rank,
                                 &d->excluded};
    int64_t             sum   = 0;
    for (const DeviceBuffer* buffer : all)
    {
        sum += static_cast<int64_t>(buffer->capacity);
    }
    return sum;
}

static void destroy(gmxfmm_sites* sites)
{
    sites_device* d = sites_device_of(sites);
    if (d != nullptr)
    {
        DeviceScope scope(sites->system.device_id);
        (void)cudaFreeHost(d->results);
        delete d;
        sites->memory = nullptr;
    }
}

static gmxfmm_status fill(gmxfmm_sites* sites)
{
    DeviceScope   scope(sites->system.device_id);
    sites_device* d = sites_device_of(sites);
    DeviceLimits  limits;
    FMM_CUDA(sites, device_limits(sites->system.device_id, &limits));
    d->has_chains  = limits.capability >= c_withChains;
    d->num_entries = sites->system.num_groups > 0 ? sites->start[sites->system.num_groups] : 0;
    d->is_single   = d->num_entries == sites->system.num_groups; /* a group has one atom at least */
    /* some two cells for a site, and more in long boxes */
    d->bits = static_cast<int>(std::ceil(std::log2(1. + sites->system.num_groups) / 3)) + 1;
    d->bits = d->bits < c_mostBits ? d->bits : c_mostBits;
    d->unit = unit_of_forces(sites);
    try
    {
        FMM_TRY(upload_system(sites));
    }
    catch (const std::bad_alloc&)
    {
        return sites_fail(sites, GMXFMM_ERROR_MEMORY, "out of memory");
    }
    FMM_TRY(reserve_arrays(sites));
    FMM_CUDA(sites, fmm_cuda_wait_for_device()); /* the caller's streams do not wait for copies */
    sites->device_bytes = device_bytes(d);
    return GMXFMM_OK;
}

static gmxfmm_status create(gmxfmm_sites* sites)
{
    FMM_TRY(fmm_device_check(sites->system.device_id, sites->message, sizeof(sites->message)));
    sites->memory = new (std::nothrow) sites_device();
    if (sites->memory == nullptr)
    {
        return sites_fail(sites, GMXFMM_ERROR_MEMORY, "out of memory");
    }
    const gmxfmm_status status = fill(sites);
    if (status != GMXFMM_OK)
    {
        destroy(sites);
    }
    return status;
}

static gmxfmm_status reserve_lists(gmxfmm_sites* sites, int stride)
{
    sites_device* d     = sites_device_of(sites);
    const size_t  tiles = static_cast<size_t>(sites_quotient(sites->system.num_groups, c_tile));
    d->stride           = 0;
    FMM_CUDA(sites, d->list.reserve((tiles * static_cast<size_t>(stride) + c_ahead) * sizeof(SitesEntry)));
    d->stride = stride;
    sites->graph_version++; /* captured steps have the addresses of lists */
    return GMXFMM_OK;
}

/* Of lists, where sites fill a periodic box evenly: half of those within reach of a cube, and a third more. Otherwise
 * as in water for sites of molecules. */
static int first_stride(const gmxfmm_sites* sites, double reach)
{
    const double* box   = sites->box;
    const int     usual = 384;
    if (sites->system.num_periodic < 3)
    {
        return usual;
    }
    const double density = sites->system.num_groups / (box[0] * box[4] * box[8]), edge = std::cbrt(c_tile / density);
    const double pi     = 3.14159265358979323846;
    const double volume = edge * edge * edge + reach * (6 * edge * edge + reach * pi * (3 * edge + reach * (4. / 3)));
    const double length = std::fmin(0.67 * density * volume, sites->system.num_groups);
    return 32 * sites_quotient(static_cast<int>(length), 32) + 32;
}

/* Lists in the room that there is; the results are then on the host. */
static gmxfmm_status try_lists(gmxfmm_sites* sites, double reach, cudaStream_t stream)
{
    sites_device* d = sites_device_of(sites);
    FMM_TRY(sites_make_lists(sites, reach, stream));
    FMM_CUDA(sites, cudaMemcpyAsync(d->results, d->found.memory, sizeof(*d->results), cudaMemcpyDeviceToHost, stream));
    FMM_CUDA(sites, cudaStreamSynchronize(stream));
    return GMXFMM_OK;
}

static gmxfmm_status search(gmxfmm_sites* sites, const void* x, double reach, void* stream_of)
{
    DeviceScope        scope(sites->system.device_id);
    sites_device*      d      = sites_device_of(sites);
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_of);
    const double       wide   = reach * (1 + 1e-5); /* single precision */
    sites->num_pairs = sites->num_within = 0;
    d->reach                             = wide;
    if (sites->system.num_groups == 0)
    {
        return GMXFMM_OK;
    }
    if (d->stride == 0)
    {
        FMM_TRY(reserve_lists(sites, first_stride(sites, wide)));
    }
    FMM_TRY(sites_sort(sites, static_cast<const float*>(x), wide, stream));
    FMM_TRY(try_lists(sites, wide, stream));
    if (d->results->bad != INT_MAX)
    {
        return sites_fail(sites, GMXFMM_ERROR_POSITION, "the site of group %d is not finite", d->results->bad);
    }
    if (d->results->lists.most > d->stride)
    {
        /* an eighth more, for later searches */
        FMM_TRY(reserve_lists(sites, 32 * sites_quotient(d->results->lists.most / 8 * 9, 32) + 32));
        FMM_TRY(try_lists(sites, wide, stream));
    }
    sites->num_pairs    = static_cast<int64_t>(d->results->lists.pairs);
    sites->num_within   = static_cast<int64_t>(d->results->lists.within);
    sites->device_bytes = device_bytes(d);
    return GMXFMM_OK;
}

extern "C" const struct sites_backend sites_cuda = {
    create, destroy, search, nullptr, enqueue_box, sites_cuda_enqueue, sites_cuda_enqueue_forces};
