/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory of the host that a plan counts. */
#ifndef FMM_MEMORY_H
#define FMM_MEMORY_H

#include <stddef.h>

#include "fmm/gmxfmm.h"

/* Aligned memory, a multiple of FMM_ALIGN, all zero; counted in plan->bytes. NULL when there is none,
 * or more is asked for than the machine or the container can give: memory is touched, and the process would be killed.
 */
void* fmm_alloc(gmxfmm_plan* plan, size_t bytes);

/* Makes *memory hold at least `bytes`, contents lost; *capacity is what it holds. Returns 0 if there is none. */
int fmm_grow(gmxfmm_plan* plan, void** memory, size_t* capacity, size_t bytes);

/* Sets memory to zero by all threads. */
void fmm_clear(void* memory, size_t bytes, int num_threads);

#endif
