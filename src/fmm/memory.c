/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory of the host that a plan counts. */
#include "fmm/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/available.h"
#include "fmm/math/portable.h"
#include "fmm/state.h"

/* First touch is a good part of the time that a plan of a million particles takes, and most of it where there are
 * gigabytes, for a box with a million roots, say. */
void fmm_clear(void* memory, size_t bytes, int num_threads)
{
    const size_t part = (size_t)1 << 20;
    const int    num  = (int)((bytes + part - 1) / part);
#pragma omp parallel for num_threads(num_threads) schedule(static) if (num > 1)
    for (int i = 0; i < num; i++)
    {
        const size_t begin = (size_t)i * part;
        memset((char*)memory + begin, 0, bytes - begin < part ? bytes - begin : part);
    }
    (void)num_threads; /* without OpenMP */
}

void* fmm_alloc(gmxfmm_plan* plan, size_t bytes)
{
    const size_t much = (size_t)256 << 20;
    if (bytes > SIZE_MAX - 2 * FMM_ALIGN || (bytes > much && bytes > fmm_available_memory()))
    {
        return NULL;
    }
    const size_t rounded = (bytes + FMM_ALIGN - 1) / FMM_ALIGN * FMM_ALIGN + FMM_ALIGN;
    void*        memory  = aligned_alloc(FMM_ALIGN, rounded);
    if (memory != NULL)
    {
        fmm_clear(memory, rounded, plan->num_threads); /* padding must hold finite numbers */
        plan->bytes += rounded;
    }
    return memory;
}

int fmm_grow(gmxfmm_plan* plan, void** memory, size_t* capacity, size_t bytes)
{
    if (*memory != NULL && *capacity >= bytes)
    {
        return 1;
    }
    free(*memory);
    plan->bytes -= *capacity;
    const size_t before = plan->bytes;
    *memory             = fmm_alloc(plan, bytes + bytes / 8); /* numbers fluctuate from search to search */
    *capacity           = plan->bytes - before;
    return *memory != NULL;
}
