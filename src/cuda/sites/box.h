/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The periodic box of sites as kernels see it, and nearest images in it. */
#ifndef CUDA_SITES_BOX_H
#define CUDA_SITES_BOX_H

#include <cuda_runtime.h>

/* A lower triangle. Along a direction that is not periodic the vector and its inverse are 0, and half is large. */
struct SitesBox
{
    float xx, yx, yy, zx, zy, zz;
    float inverse[3];    /* of the diagonal */
    float half[3];       /* of the diagonal */
    int   skewed, tight; /* tight: there are pairs within reach that are not within half of the diagonal */
};

/* The image whose components are within half of the diagonal. Of vectors to all images, one shorter than half of the
 * shortest diagonal element is this one. */
static __device__ __forceinline__ void nearest_image(const SitesBox& box, float* x, float* y, float* z)
{
    const float c = rintf(*z * box.inverse[2]);
    *x -= c * box.zx;
    *y -= c * box.zy;
    *z -= c * box.zz;
    const float b = rintf(*y * box.inverse[1]);
    *x -= b * box.yx;
    *y -= b * box.yy;
    *x -= rintf(*x * box.inverse[0]) * box.xx;
}

/* The shortest one of images. In a tight box it may be one beside that of nearest_image. */
static __device__ __forceinline__ void shortest_image(const SitesBox& box, float* x, float* y, float* z)
{
    nearest_image(box, x, y, z);
    if (box.tight)
    {
        const float x0 = *x, y0 = *y, z0 = *z;
        float       least = x0 * x0 + y0 * y0 + z0 * z0;
#pragma unroll 1
        for (int k = 0; k < 27; k++)
        {
            const float a = static_cast<float>(k % 3 - 1), b = static_cast<float>(k / 3 % 3 - 1);
            const float c  = static_cast<float>(k / 9 - 1);
            const float xk = x0 + a * box.xx + b * box.yx + c * box.zx, yk = y0 + b * box.yy + c * box.zy;
            const float zk = z0 + c * box.zz, r2 = xk * xk + yk * yk + zk * zk;
            if (r2 < least)
            {
                least = r2;
                *x    = xk;
                *y    = yk;
                *z    = zk;
            }
        }
    }
}

/* The image in the box between 0 and the diagonal. */
static __device__ __forceinline__ void wrap(const SitesBox& box, float* x, float* y, float* z)
{
    const float c = floorf(*z * box.inverse[2]);
    *x -= c * box.zx;
    *y -= c * box.zy;
    *z -= c * box.zz;
    const float b = floorf(*y * box.inverse[1]);
    *x -= b * box.yx;
    *y -= b * box.yy;
    *x -= floorf(*x * box.inverse[0]) * box.xx;
}

/* Whether each place within half[3] of a centre has one image alone in reach of the centre's neighbours, so that images
 * may be chosen by the centre. A little room is left for what moves until the next search. */
static __device__ __forceinline__ bool has_one_image(const SitesBox& box, float4 half, float reach)
{
    const float room = 0.98f;
    return half.x + reach < room * box.half[0] && half.y + reach < room * box.half[1] &&
           half.z + reach < room * box.half[2];
}

/* A lower bound for the square of the distance of two boxes with a sum of half edges: d is the nearest image of the
 * vector between their centres. In a triangle an image along z shifts y and x, too: they count where z has one alone.
 */
static __device__ __forceinline__ float
gap_squared(const SitesBox& box, float x, float y, float z, float4 half, float reach)
{
    const float dx = fmaxf(fabsf(x) - half.x, 0.f), dy = fmaxf(fabsf(y) - half.y, 0.f);
    const float dz    = fmaxf(fabsf(z) - half.z, 0.f);
    const bool  has_y = !box.skewed || half.z + reach < box.half[2];
    const bool  has_x = has_y && (!box.skewed || half.y + reach < box.half[1]);
    return dz * dz + (has_y ? dy * dy : 0.f) + (has_x ? dx * dx : 0.f);
}

#endif
