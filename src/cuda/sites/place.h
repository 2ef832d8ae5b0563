/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The site of a group, from the positions of its atoms. */
#ifndef CUDA_SITES_PLACE_H
#define CUDA_SITES_PLACE_H

#include "cuda/sites/state.h"

/* R = x_0 + sum_k w_k (x_k - x_0), by nearest images. Type in w. */
static __device__ __forceinline__ float4
place_site(const SitesGroups& a, const SitesBox& box, const float* x, int first, int num, int type)
{
    const float* at = x + 3 * static_cast<size_t>(a.atom[first]);
    const float  x0 = at[0], y0 = at[1], z0 = at[2];
    float4       site = {x0, y0, z0, __int_as_float(type)};
    for (int k = first + 1; k < first + num; k++)
    {
        const float* other = x + 3 * static_cast<size_t>(a.atom[k]);
        const float  w     = a.weight[k];
        float        dx = other[0] - x0, dy = other[1] - y0, dz = other[2] - z0;
        nearest_image(box, &dx, &dy, &dz);
        site.x += w * dx;
        site.y += w * dy;
        site.z += w * dz;
    }
    return site;
}

#endif
