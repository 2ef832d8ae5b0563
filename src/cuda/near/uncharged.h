/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Near sums of a target without a charge, or dipole, that stands where a source does. */
#ifndef FMM_CUDA_UNCHARGED_H
#define FMM_CUDA_UNCHARGED_H

#include "cuda/geometry.h"
#include "cuda/near/p2p_args.h"

#define DIPOLE_T double
#define DIPOLE_R double
#include "fmm/math/dipoles.h"

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

/* Calls add(j, dx, dy, dz, r2) for each near source j of target s of this cell, one of the sources, but for those that
 * it excludes or that are at its place but for rounding; d: from the source's image to the target. Few targets need it,
 * so that one thread computes their sums. */
template <class R, class Add>
static __device__ inline void for_sources_elsewhere(const P2pArgs<R>& a, int s, int cell, const Add& add)
{
    const double  near   = sizeof(R) == 8 ? 4e-15 : 2e-6;
    const Vec4<R> target = a.target[s];
    const int2*   runs   = a.runs != NULL ? a.runs + a.run_start[cell] : NULL;
    const int     num    = runs != NULL ? a.run_start[cell + 1] - a.run_start[cell] : a.g.num_near;
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
            if (!(r2 < near * near) && !is_excluded(a, tile, s - tile.x, place))
            {
                add(j, dx, dy, dz, r2);
            }
        }
    }
}

/* The sums that P2P would have for target s. */
template <class R>
static __device__ inline Vec4<R> sums_elsewhere(const P2pArgs<R>& a, int s, int cell)
{
    double sum[4] = {0};
    for_sources_elsewhere(a, s, cell,
                          [&](int j, double dx, double dy, double dz, double r2)
                          {
                              const R q = a.xq[j].w;
                              if (q != 0)
                              {
                                  const double inv = rsqrt(r2), p = q * inv, f = p * (inv * inv);
                                  sum[0] += f * dx;
                                  sum[1] += f * dy;
                                  sum[2] += f * dz;
                                  sum[3] += p;
                              }
                          });
    return {static_cast<R>(sum[0]), static_cast<R>(sum[1]), static_cast<R>(sum[2]), static_cast<R>(sum[3])};
}

/* The same with dipoles: field and potential, and the gradient of the field. */
template <class R>
static __device__ inline Vec4<R>
dipole_sums_elsewhere(const P2pArgs<R>& a, const DipoleArgs<R>& dipoles, int s, int cell, Symmetric<R>* gradient)
{
    double sum[4] = {0}, g[6] = {0};
    for_sources_elsewhere(a, s, cell,
                          [&](int j, double dx, double dy, double dz, double r2)
                          {
                              const double        unit = static_cast<double>(dipoles.unit), q = a.xq[j].w;
                              const Vec4<R>       of = dipoles.mu[j];
                              const dipole_vector mu = {of.x * unit, of.y * unit, of.z * unit}, r = {dx, dy, dz};
                              const double        w     = rsqrt(r2);
                              const dipole_source from  = dipole_see(q, mu, r, w);
                              const dipole_vector field = dipole_field(&from);
                              sum[0] += field.x * w * w;
                              sum[1] += field.y * w * w;
                              sum[2] += field.z * w * w;
                              sum[3] += from.potential * w;
                              dipole_add_gradient(&from, w * w * w, g);
                          });
    dipole_end_gradient(g);
    for (int i = 0; i < 6; i++)
    {
        gradient->t[i] = static_cast<R>(g[i]);
    }
    return {static_cast<R>(sum[0]), static_cast<R>(sum[1]), static_cast<R>(sum[2]), static_cast<R>(sum[3])};
}

#endif
