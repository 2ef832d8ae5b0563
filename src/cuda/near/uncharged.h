/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Near sums of a target without a charge that stands where a source does. */
#ifndef FMM_CUDA_UNCHARGED_H
#define FMM_CUDA_UNCHARGED_H

#include "cuda/geometry.h"
#include "cuda/near/p2p_args.h"

/* Whether target `index` of the tile excludes the source at this place of the list. */
template <class R>
static __device__ bool is_excluded(const P2pArgs<R>& a, const Tile& tile, int index, int place)
{
    for (int e = a.special_start[tile.x]; e < a.special_start[tile.x + tile.y]; e++)
    {
        if (a.specials[e].place == place && (a.specials[e].mask >> index & 1u))
        {
            return true;
        }
    }
    return false;
}

/* The sums that P2P would have for target s of this cell, one of the sources, without those that are at its place but
 * for rounding. Few targets need it, so that one thread computes them. */
template <class R>
static __device__ inline Vec4<R> sums_elsewhere(const P2pArgs<R>& a, int s, int cell)
{
    const double  near   = sizeof(R) == 8 ? 4e-15 : 2e-6;
    const Vec4<R> target = a.target[s];
    const int2*   runs   = a.runs != NULL ? a.runs + a.run_start[cell] : NULL;
    const int     num    = runs != NULL ? a.run_start[cell + 1] - a.run_start[cell] : a.g.num_near;
    double        sum[4] = {0};
    int           place = 0, c[3], number = a.tile_start[cell];
    while (s >= a.tiles[number].x + a.tiles[number].y)
    {
        number++;
    }
    const Tile tile = a.tiles[number];
    cell_place(a.g, cell, c);
#pragma unroll 1
    for (int o = 0; o < num; o++)
    {
        const double* edge = a.box->cell;
        const int4    k    = runs != NULL ? make_int4(0, 0, 0, 0) : a.near_vectors[o];
        const int     at =
            cell_at(a.g, wrapped(c[0] + k.x, a.g.n[0]), wrapped(c[1] + k.y, a.g.n[1]), wrapped(c[2] + k.z, a.g.n[2]));
        const int begin = runs != NULL ? runs[o].x : a.cell_start[at];
        const int end   = runs != NULL ? begin + runs[o].y : a.cell_start[at + 1];
#pragma unroll 1
        for (int j = begin; j < end; j++, place++)
        {
            const Vec4<R> source = a.xq[j];
            const double  dx     = target.x - (source.x + k.x * edge[0] + k.y * edge[3] + k.z * edge[6]);
            const double  dy     = target.y - (source.y + k.x * edge[1] + k.y * edge[4] + k.z * edge[7]);
            const double  dz     = target.z - (source.z + k.x * edge[2] + k.y * edge[5] + k.z * edge[8]);
            const double  r2     = dx * dx + dy * dy + dz * dz;
            if (source.w == 0 || r2 < near * near || is_excluded(a, tile, s - tile.x, place))
            {
                continue;
            }
            const double inv = rsqrt(r2), p = source.w * inv, f = p * (inv * inv);
            sum[0] += f * dx;
            sum[1] += f * dy;
            sum[2] += f * dz;
            sum[3] += p;
        }
    }
    return {static_cast<R>(sum[0]), static_cast<R>(sum[1]), static_cast<R>(sum[2]), static_cast<R>(sum[3])};
}

#endif
