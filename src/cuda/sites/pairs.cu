/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The launch of pairs of sites, and the kernels without exclusions. */
#include "cuda/sites/pair_kernels.h"

gmxfmm_status sites_pairs(gmxfmm_sites* sites, bool with_energy, cudaStream_t stream)
{
    sites_device* d      = sites_device_of(sites);
    const lj_kind kind   = sites->lj.kind;
    const size_t  shared = c_row * sizeof(float2) * static_cast<size_t>(sites->system.num_types + 1);
    const bool    fits   = shared <= c_mostShared;
    const int     tiles  = sites_sorted(sites).num_tiles;
    /* enough warps in flight for few tiles, few sums over lanes for many */
    const int     warps = tiles <= c_fewTiles ? 4 : tiles <= c_manyTiles ? 2 : 1;
    PairArguments a;
    a.constants             = lj_constants_of(&sites->lj);
    a.s                     = sites_sorted(sites);
    a.box                   = d->box.as<SitesBox>();
    a.table                 = d->table.as<float2>();
    a.num_types             = sites->system.num_types;
    a.units                 = static_cast<float>(1 / d->unit);
    a.rows                  = d->rows.as<double>();
    const PairKernel kernel = sites_have_exclusions(sites) ? sites_kernel_with_exclusions(kind, with_energy, fits)
                                                           : kernel_for<false>(kind, with_energy, fits);
    FMM_CUDA(sites, launch_next(d->has_chains, kernel, dim3(static_cast<unsigned>(tiles)),
                                static_cast<unsigned>(32 * warps), fits ? shared : 0, stream, a));
    return GMXFMM_OK;
}
