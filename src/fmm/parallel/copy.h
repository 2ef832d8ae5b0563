/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* memcpy by several threads. */
#ifndef FMM_PARALLEL_COPY_H
#define FMM_PARALLEL_COPY_H

#include <stddef.h>

/* By the processors that are there for one of num_ranks ranks: one alone has a fraction of the bandwidth, and makes all
 * pages of new memory. */
void fmm_ranks_copy(void* to, const void* from, size_t bytes, int num_ranks);

#endif
