/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "operators.h"

void FN(fmm_m2l_symmetric)(const FN(fmm_m2l_job) * job, int first, int lanes, const FN(fmm_scratch) * scratch)
{
    FN(fmm_m2l_naive)(job, first, lanes, scratch);
}
