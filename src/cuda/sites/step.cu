/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A step: sites from positions, pairs, sums of energy and virial, and forces of sites to atoms. */
#include "cuda/runtime/chain.h"
#include "cuda/runtime/sums.h"
#include "cuda/sites/place.h"
#include "cuda/sites/stages.h"

enum
{
    c_threads    = 128,
    c_sumThreads = 1024
};

/* A site, and its sums of forces. */
static __device__ __forceinline__ void set_site(const SitesSorted& s, int i, float4 site)
{
    s.site[i] = site;
#pragma unroll
    for (int d = 0; d < 3; d++)
    {
        s.force[static_cast<size_t>(d) * s.n + i]  = 0;
        s.beyond[static_cast<size_t>(d) * s.n + i] = 0.f;
    }
}

/* The force on a site. */
static __device__ __forceinline__ float force_of(const SitesSorted& s, int d, int i, float unit)
{
    const size_t at = static_cast<size_t>(d) * s.n + i;
    return unit * static_cast<float>(s.force[at]) + s.beyond[at];
}

static __global__ void __launch_bounds__(c_threads)
    place_sites(SitesGroups a, SitesSorted s, const SitesBox* box, const float* x)
{
    const int i = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    if (i < s.n)
    {
        const int2 range = s.range[i];
        set_site(s, i, place_site(a, *box, x, range.x, range.y, s.type[i]));
    }
}

/* The same for groups of one atom. */
static __global__ void __launch_bounds__(c_threads) place_atoms(SitesSorted s, const float* x)
{
    const int i = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    if (i < s.n)
    {
        const int2   one = s.range[i]; /* atom, type */
        const float* at  = x + 3 * static_cast<size_t>(one.x);
        set_site(s, i, make_float4(at[0], at[1], at[2], __int_as_float(one.y)));
    }
}

/* The virial is -1/2 sum_pairs R (x) F. */
static __global__ void __launch_bounds__(c_sumThreads) add_rows(const double* rows, int num_rows, double* sums)
{
    wait_for_previous();
    const double sum = column_sum<c_sumThreads>(rows, num_rows, c_sitesSums);
    const int    k   = static_cast<int>(threadIdx.x);
    if (k == 0)
    {
        sums[0] = sum;
    }
    else if (k < c_sitesSums)
    {
        const int row = k < 4 ? k - 1 : k < 6 ? 0 : 1, column = k < 4 ? k - 1 : k < 5 ? 1 : 2;
        sums[1 + 3 * row + column] = sums[1 + 3 * column + row] = -0.5 * sum;
    }
}

/* An atom is in one group alone. */
static __global__ void __launch_bounds__(c_threads) spread_forces(SitesGroups a, SitesSorted s, float unit, float* f)
{
    const int k = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    if (k < a.num_entries)
    {
        const int   i  = s.rank[a.group[k]];
        const float w  = a.weight[k];
        float*      at = f + 3 * static_cast<size_t>(a.atom[k]);
#pragma unroll
        for (int d = 0; d < 3; d++)
        {
            at[d] += w * force_of(s, d, i, unit);
        }
    }
}

static __global__ void __launch_bounds__(c_threads) spread_to_atoms(SitesSorted s, float unit, float* f)
{
    const int i = static_cast<int>(blockIdx.x * c_threads + threadIdx.x);
    if (i < s.n)
    {
        float* at = f + 3 * static_cast<size_t>(s.range[i].x);
#pragma unroll
        for (int d = 0; d < 3; d++)
        {
            at[d] += force_of(s, d, i, unit);
        }
    }
}

gmxfmm_status sites_cuda_enqueue(gmxfmm_sites* sites, const void* x, double* sums, void* stream_of)
{
    DeviceScope        scope(sites->system.device_id);
    sites_device*      d      = sites_device_of(sites);
    const SitesSorted  s      = sites_sorted(sites);
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_of);
    if (s.n > 0)
    {
        const float* positions = static_cast<const float*>(x);
        const int    blocks    = sites_quotient(s.n, c_threads);
        if (d->is_single)
        {
            place_atoms<<<blocks, c_threads, 0, stream>>>(s, positions);
        }
        else
        {
            place_sites<<<blocks, c_threads, 0, stream>>>(sites_groups(sites), s, d->box.as<SitesBox>(), positions);
        }
        FMM_CUDA(sites, cudaGetLastError());
        FMM_TRY(sites_pairs(sites, sums != nullptr, stream));
    }
    if (sums != nullptr)
    {
        FMM_CUDA(sites, launch_next(d->has_chains && s.n > 0, add_rows, dim3(1), c_sumThreads, 0, stream,
                                    d->rows.as<double>(), s.num_tiles, sums));
    }
    return GMXFMM_OK;
}

gmxfmm_status sites_cuda_enqueue_forces(gmxfmm_sites* sites, void* f, void* stream_of)
{
    DeviceScope        scope(sites->system.device_id);
    sites_device*      d      = sites_device_of(sites);
    const cudaStream_t stream = static_cast<cudaStream_t>(stream_of);
    const int          blocks = sites_quotient(d->num_entries, c_threads);
    if (d->num_entries > 0)
    {
        const SitesSorted s    = sites_sorted(sites);
        const float       unit = static_cast<float>(d->unit);
        if (d->is_single)
        {
            spread_to_atoms<<<blocks, c_threads, 0, stream>>>(s, unit, static_cast<float*>(f));
        }
        else
        {
            spread_forces<<<blocks, c_threads, 0, stream>>>(sites_groups(sites), s, unit, static_cast<float*>(f));
        }
        FMM_CUDA(sites, cudaGetLastError());
    }
    return GMXFMM_OK;
}
