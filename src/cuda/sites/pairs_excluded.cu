/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernels of pairs of sites with exclusions. */
#include "cuda/sites/pair_kernels.h"

PairKernel sites_kernel_with_exclusions(lj_kind kind, bool with_energy, bool shared)
{
    return kernel_for<true>(kind, with_energy, shared);
}
