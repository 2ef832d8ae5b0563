/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A build without CUDA: create refuses, so that the others are never called. */
#include "fmm/treecode/state.h"

static gmxfmm_status unsupported(treecode* t)
{
    return treecode_fail(t, GMXFMM_ERROR_UNSUPPORTED, "this build has no device support: use the CPU");
}

gmxfmm_status treecode_device_create(treecode* t)
{
    return unsupported(t);
}

void treecode_device_destroy(treecode* t)
{
    (void)t;
}

gmxfmm_status treecode_device_reserve(treecode* t)
{
    return unsupported(t);
}

gmxfmm_status treecode_device_charges(treecode* t)
{
    return unsupported(t);
}

gmxfmm_status treecode_device_sums(treecode* t, const treecode_lists* lists, gmxfmm_precision precision, int with_field)
{
    (void)lists;
    (void)precision;
    (void)with_field;
    return unsupported(t);
}
