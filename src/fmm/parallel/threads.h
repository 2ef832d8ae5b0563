/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whether ranks are threads of one process. */
#ifndef FMM_PARALLEL_THREADS_H
#define FMM_PARALLEL_THREADS_H

#include "fmm/gmxfmm_parallel.h"

/* 1: comm is of gmxfmm_threads_comm, so that all ranks have the same memory and know all devices by the same numbers.
 */
int fmm_ranks_are_threads(const gmxfmm_comm* comm);

#endif
