/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The sums of lists, by the kernels of sums_kernel.h, and of their parts, added up in their order. */
#include "cuda/treecode/sums.h"

#include <algorithm>

#include "cuda/treecode/stages.h"
#include "cuda/treecode/tiles.h"

namespace
{

struct Parts
{
    const TreecodeTile* tile;
    const double*       from; /* values of parts of tiles */
    double*             to[4];
    int                 parts, values, adds;
};

__global__ void addParts(Parts p)
{
    const TreecodeTile tile  = p.tile[blockIdx.x];
    const int64_t      tiles = gridDim.x, room = c_tileTargets * blockDim.x;
    for (int i = (int)threadIdx.x; i < tile.count; i += (int)blockDim.x)
    {
        for (int v = 0; v < p.values; v++)
        {
            double sum = 0;
            for (int part = 0; part < p.parts; part++)
            {
                sum += p.from[((v * p.parts + part) * tiles + blockIdx.x) * room + i];
            }
            p.to[v][tile.first + i] = p.adds ? p.to[v][tile.first + i] + sum : sum;
        }
    }
}

/* before: lists whose sums are there, to which these are added; NULL: none. */
gmxfmm_status sums(treecode*          t,
                   const DeviceLists* lists,
                   const DeviceLists* before,
                   gmxfmm_precision   precision,
                   int                with_field,
                   cudaStream_t       stream)
{
    treecode_device* d = t->device;
    if (lists->num_tiles == 0)
    {
        return GMXFMM_OK;
    }
    const int             adds    = before != nullptr;
    const DeviceClusters* targets = treecode_device_targets(t);
    double* const         to[4]   = {(lists->points ? d->point : d->phi).as<double>(), d->slope[0].as<double>(),
                                     d->slope[1].as<double>(), d->slope[2].as<double>()};
    SumsArguments         a       = {d->sources.view(),
                                     targets->view(),
                                     lists->view(),
                                     d->sorted_q.as<double>(),
                                     d->charge.as<double>(),
                                     lists->tile.as<TreecodeTile>(),
                                     t->separate,
                                     t->options.degree,
                                     treecode_points(t->options.degree),
                                     {t->parameter[0], t->parameter[1], t->parameter[2]},
                                     {to[0], to[1], to[2], to[3]},
                                     adds && lists->parts == 1};
    const Parts           p       = {a.tile,       d->partial.as<double>(), {to[0], to[1], to[2], to[3]},
                                     lists->parts, with_field ? 4 : 1,      adds};
    for (int v = 0; v < 4 && lists->parts > 1; v++)
    {
        a.sum[v] = d->partial.as<double>() + (size_t)v * treecode_part_values(lists);
    }
    FMM_TRY(precision == GMXFMM_DOUBLE ? treecode_sums_double(t, lists, a, with_field != 0, stream)
                                       : treecode_sums_single(t, lists, a, with_field != 0, stream));
    if (lists->parts > 1)
    {
        addParts<<<(unsigned)lists->num_tiles, (unsigned)lists->threads, 0, stream>>>(p);
        FMM_CUDA(t, cudaGetLastError());
    }
    if (!t->separate && !lists->points)
    {
        std::copy(to, to + 4, a.sum);
        FMM_TRY(treecode_sums_of_sites(t, lists, before, a, p.values, stream));
    }
    return GMXFMM_OK;
}

} // namespace

gmxfmm_status treecode_device_sums(
    treecode* t, const DeviceLists* lists, gmxfmm_precision precision, int with_field, cudaStream_t stream)
{
    return sums(t, lists, nullptr, precision, with_field, stream);
}

gmxfmm_status treecode_device_add_sums(treecode*          t,
                                       const DeviceLists* lists,
                                       const DeviceLists* more,
                                       gmxfmm_precision   precision,
                                       int                with_field,
                                       cudaStream_t       stream)
{
    return sums(t, more, lists, precision, with_field, stream);
}
