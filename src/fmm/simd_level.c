/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which level of x86-64 computes: the highest of the processor, or what GMXFMM_SIMD says. */
#include "fmm/simd_level.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char* const c_names[] = {"", "", "v2", "v3", "v4"};

const char* fmm_simd_level_name(int level)
{
    return level > 0 && level < (int)(sizeof(c_names) / sizeof(c_names[0])) ? c_names[level] : "";
}

#ifdef FMM_LEVELS

/* The highest level of this processor; 1: none of those compiled. */
static int of_processor(void)
{
    __builtin_cpu_init();
    const int v2 =
        __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
    const int v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                   __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const int v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512vl");
    return 1 + v2 + v3 + v4;
}

/* What GMXFMM_SIMD says: 0: nothing, -1: what is not a level. */
static int of_environment(void)
{
    const char* name = getenv("GMXFMM_SIMD");
    if (name == NULL || name[0] == '\0')
    {
        return 0;
    }
    for (int level = 2; level <= 4; level++)
    {
        if (strcmp(name, c_names[level]) == 0)
        {
            return level;
        }
    }
    return -1;
}

int fmm_simd_level(void)
{
    const int asked = of_environment();
    return asked > 0 ? asked : of_processor();
}

gmxfmm_status fmm_check_simd_level(char* message, size_t size)
{
    const int asked = of_environment(), most = of_processor();
    if (asked < 0)
    {
        snprintf(message, size, "GMXFMM_SIMD in the environment is '%.40s': set it to v2, v3 or v4, or not at all",
                 getenv("GMXFMM_SIMD"));
        return GMXFMM_ERROR_OPTION;
    }
    if (asked > most)
    {
        snprintf(message, size,
                 "GMXFMM_SIMD in the environment is %s, but this processor has x86-64%s%s only: unset it",
                 c_names[asked], most > 1 ? "-" : "", fmm_simd_level_name(most));
        return GMXFMM_ERROR_UNSUPPORTED;
    }
    if (most < 2)
    {
        snprintf(message, size,
                 "this processor is older than x86-64-v2: build the library on it with GMXFMM_ARCH=native");
        return GMXFMM_ERROR_UNSUPPORTED;
    }
    return GMXFMM_OK;
}

#else

int fmm_simd_level(void)
{
    return 0;
}

gmxfmm_status fmm_check_simd_level(char* message, size_t size)
{
    const char* name = getenv("GMXFMM_SIMD");
    if (name != NULL && name[0] != '\0')
    {
        snprintf(message, size,
                 "GMXFMM_SIMD in the environment is '%.40s', but this library is compiled for one processor: unset it",
                 name);
        return GMXFMM_ERROR_OPTION;
    }
    return GMXFMM_OK;
}

#endif
