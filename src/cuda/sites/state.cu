/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Arrays and the box as kernels see them. */
#include <cmath>

#include "cuda/sites/state.h"

gmxfmm_status fmm_cuda_failed(gmxfmm_sites* sites, cudaError_t error, const char* call, const char* file, int line)
{
    return fmm_describe_failure(error, call, file, line, sites->message, sizeof(sites->message));
}

SitesGroups sites_groups(const gmxfmm_sites* sites)
{
    const sites_device* d = sites_device_of(sites);
    return {sites->system.num_groups, d->num_entries,    d->start.as<int>(),   d->atom.as<int>(),
            d->group.as<int>(),       d->type.as<int>(), d->weight.as<float>()};
}

SitesSorted sites_sorted(const gmxfmm_sites* sites)
{
    const sites_device* d = sites_device_of(sites);
    const int           n = sites->system.num_groups;
    return {n,
            sites_quotient(n, c_tile),
            d->stride,
            d->value[1].as<int>(),
            d->sorted_type.as<int>(),
            d->range.as<int2>(),
            d->site.as<float4>(),
            d->tile.view(),
            d->block.view(),
            d->cluster.view(),
            d->count.as<int>(),
            d->rank.as<int>(),
            d->list.as<SitesEntry>(),
            d->excluded.as<unsigned>(),
            d->force.as<long long>(),
            d->beyond.as<float>()};
}

SitesExclusions sites_exclusions(const gmxfmm_sites* sites)
{
    const sites_device* d = sites_device_of(sites);
    return {d->exclusion_start.as<int>(), d->exclusion.as<int>()};
}

/* For what moves until the next search, and the change of the box. */
static const double c_room = 1.05;

SitesBox sites_box(const gmxfmm_sites* sites)
{
    const double* h   = sites->box;
    const int     num = sites->system.num_periodic;
    SitesBox      box = {};
    for (int d = 0; d < 3; d++)
    {
        const bool periodic = d < num;
        box.inverse[d]      = periodic ? static_cast<float>(1 / h[4 * d]) : 0.f;
        box.half[d]         = periodic ? static_cast<float>(0.5 * h[4 * d]) : 1e30f;
    }
    if (num >= 2)
    {
        box.xx = static_cast<float>(h[0]);
        box.yx = static_cast<float>(h[3]);
        box.yy = static_cast<float>(h[4]);
    }
    if (num == 3)
    {
        box.zx = static_cast<float>(h[6]);
        box.zy = static_cast<float>(h[7]);
        box.zz = static_cast<float>(h[8]);
    }
    box.skewed = box.yx != 0.f || box.zx != 0.f || box.zy != 0.f;
    box.tight  = box.skewed &&
                c_room * sites_device_of(sites)->reach > std::fmin(box.half[0], std::fmin(box.half[1], box.half[2]));
    return box;
}
