/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the sites of groups keep on a device. A search sorts sites along Hilbert's curve. Sorted sites have tiles of 8,
 * the targets of a thread block, in groups of 4; blocks of 32 and clusters of 32 blocks have bounding boxes, by which
 * the search finds what is near a tile. The sites outside a tile that are within reach of any of its own are its list,
 * but for those of tiles that list this one. Of two tiles the first has the list if both numbers are even or both odd,
 * otherwise the second: so lists are of equal lengths.
 */
#ifndef CUDA_SITES_STATE_H
#define CUDA_SITES_STATE_H

#include <cuda_runtime.h>

#include "fmm/math/lj.h"
extern "C"
{
#include "fmm/sites/state.h"
}
#include "cuda/runtime/buffer.h"
#include "cuda/runtime/call.h"
#include "cuda/runtime/device_scope.h"
#include "cuda/sites/box.h"

/* 1 / sqrt(x) of a normal number: the function of CUDA also takes those too small to be one. */
static __host__ __device__ __forceinline__ float sites_rsqrt(float x)
{
#ifdef __CUDA_ARCH__
    float root;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
    return root;
#else
    return 1 / sqrtf(x);
#endif
}

#define LJ_R float
#define LJ_T float
#define LJ_MASK bool
#define LJ_WHERE(mask, x) ((mask) ? (x) : 0.f)
#define LJ_UNLESS(mask, x) ((mask) ? 0.f : (x))
#define LJ_AT_LEAST(x, least) fmaxf(x, least)
#define LJ_RSQRT(x) sites_rsqrt(x)
#include "fmm/math/lj_force.h"

enum
{
    c_tile      = 8,
    c_group     = 4,
    c_groups    = c_tile / c_group,
    c_block     = 32,
    c_cluster   = 32 * c_block,
    c_pairBits  = 48, /* of sums of forces: pair_kernels.h */
    c_partBits  = 52,
    c_ahead     = 512, /* entries of a list that a thread block loads before it knows the list's length */
    c_sitesSums = 7    /* energy, and the virial: xx yy zz xy xz yz */
};

/* Counts of a search, for the host. Extents are numbers in the order of floats (sort.cu). */
struct SitesFound
{
    int      bad; /* lowest group whose site is not finite, or INT_MAX */
    unsigned low[3], high[3];
    struct
    {
        int                most; /* length of a list */
        unsigned long long pairs, within;
    } lists;
};

/* Bounding boxes: centres and half edges. */
struct SitesBounds
{
    float4 *centre, *half;
};

struct SitesBoundsMemory
{
    DeviceBuffer centre, half;

    SitesBounds view() const
    {
        return {centre.as<float4>(), half.as<float4>()};
    }
};

/* Groups, as the caller numbers them. */
struct SitesGroups
{
    int          n, num_entries;
    const int *  start, *atom, *group, *type; /* group: of each entry of atom */
    const float* weight;
};

/* Sorted rows of groups. start: NULL without exclusions. */
struct SitesExclusions
{
    const int *start, *group;
};

/* A source in a list. mask: a bit for each target that excludes it, and above them a bit for each group of targets that
 * it is within reach of. */
struct alignas(8) SitesEntry
{
    int      site;
    unsigned mask;
};

/* Arrays of sorted sites. site[n + 1]: position, and the type in w; the last one, with which lists are filled up, has a
 * type without parameters. tile.centre.w is 1 where images may be chosen by the centre, otherwise 0. rank: the place of
 * a group. force, beyond: three rows of sums each (pair_kernels.h). excluded is of systems
 * with exclusions: of a site the mask of those of its tile that exclude it. */
struct SitesSorted
{
    int         n, num_tiles, stride; /* stride: of lists */
    int *       order, *type;         /* group, and its type */
    int2*       range;                /* first entry of the group, and how many; of single atoms: atom, and type */
    float4*     site;
    SitesBounds tile, block, cluster;
    int *       count, *rank;
    SitesEntry* list;
    unsigned*   excluded;
    long long*  force;
    float*      beyond;
};

struct sites_device
{
    int    num_entries = 0, stride = 0, bits = 0; /* bits: of a coordinate in a key */
    bool   has_chains = false, is_single = false; /* is_single: each group is one atom */
    double reach = 0;                             /* of the last search */
    double unit  = 1;                             /* of forces in sums */
    /* of create */
    DeviceBuffer start, atom, group, weight, type, table, box, found, exclusion_start, exclusion;
    /* of a search */
    DeviceBuffer      placed, key[2], value[2], scratch;
    DeviceBuffer      range, sorted_type, site, count, list, rank, excluded;
    SitesBoundsMemory tile, block, cluster;
    /* of a step */
    DeviceBuffer force, beyond, rows;
    SitesFound*  results = nullptr; /* pinned */
};

static inline sites_device* sites_device_of(const gmxfmm_sites* sites)
{
    return static_cast<sites_device*>(sites->memory);
}

static inline int sites_quotient(int a, int b)
{
    return (a + b - 1) / b;
}

gmxfmm_status fmm_cuda_failed(gmxfmm_sites* sites, cudaError_t error, const char* call, const char* file, int line);

static inline bool sites_have_exclusions(const gmxfmm_sites* sites)
{
    return sites->exclusion_start != nullptr;
}

SitesGroups     sites_groups(const gmxfmm_sites* sites);
SitesSorted     sites_sorted(const gmxfmm_sites* sites);
SitesExclusions sites_exclusions(const gmxfmm_sites* sites);
SitesBox        sites_box(const gmxfmm_sites* sites);

#endif
