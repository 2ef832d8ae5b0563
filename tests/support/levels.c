/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Operators that tests call by themselves, where the library has a copy of them for each level of x86-64: the plan's.
 */
#include "fmm/state.h"

#define DEFINE(name, real, parameters, arguments)                                                                      \
    void name##_##real##_v2 parameters;                                                                                \
    void name##_##real##_v3 parameters;                                                                                \
    void name##_##real##_v4 parameters;                                                                                \
    void name##_##real parameters                                                                                      \
    {                                                                                                                  \
        plan->level == 4   ? name##_##real##_v4   arguments                                                            \
        : plan->level == 3 ? name##_##real##_v3 arguments                                                              \
                           : name##_##real##_v2 arguments;                                                             \
    }

DEFINE(fmm_m2m, f, (const gmxfmm_plan* plan, int level), (plan, level))
DEFINE(fmm_m2m, d, (const gmxfmm_plan* plan, int level), (plan, level))
DEFINE(fmm_m2l, f, (gmxfmm_plan * plan, int level, double* strain), (plan, level, strain))
DEFINE(fmm_m2l, d, (gmxfmm_plan * plan, int level, double* strain), (plan, level, strain))
DEFINE(fmm_l2l, f, (gmxfmm_plan * plan, int level, double* strain), (plan, level, strain))
DEFINE(fmm_l2l, d, (gmxfmm_plan * plan, int level, double* strain), (plan, level, strain))
DEFINE(fmm_operators_set_shape, f, (gmxfmm_plan * plan), (plan))
DEFINE(fmm_operators_set_shape, d, (gmxfmm_plan * plan), (plan))
