/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernels of sums in double precision. */
#include "cuda/treecode/sums_kernel.h"

gmxfmm_status
treecode_sums_double(treecode* t, const DeviceLists* lists, const SumsArguments& a, bool withField, cudaStream_t stream)
{
    return launchKernel<double>(t, lists, a, withField, stream);
}
